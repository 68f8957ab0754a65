"""The joint fit: derivatives by differences, evidence and posterior by quadrature, invariances."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
from placet import Comparisons, DataError, Rankings, Scores, Sources, consensus
from placet.aggregate.scores import rasch
from placet.aggregate.sources import item_response, width_average
from placet.aggregate.sources.item_response import TableLikelihood
from placet.aggregate.sources.joint_mode import JointPosterior, Widths
from placet.aggregate.sources.source_fit import fit_sources
from placet.aggregate.sources.source_likelihood import BallotLikelihood, VoteLikelihood
from placet.aggregate.sources.source_worth import deviations
from placet.aggregate.sources.width_evidence import Quadratic, SourceEvidence, log_prior, quadratic

NAMES = list("abcdef")


def drawn(scores, count, rng, ties=0.0, names=None):
    """Votes on random pairs, by Bradley-Terry, some of them ties."""
    n = len(scores)
    names = NAMES[:n] if names is None else names
    i = rng.integers(0, n, count)
    j = (i + rng.integers(1, n, count)) % n
    won = rng.random(count) < 1 / (1 + np.exp(scores[j] - scores[i]))
    outcome = np.where(rng.random(count) < ties, "tie", np.where(won, "a", "b"))
    return Comparisons.from_battles([names[k] for k in i], [names[k] for k in j], outcome.tolist(), items=names)


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(5)
    theta = np.array([1.2, 0.6, 0.2, -0.4, -0.6, -1.0])
    human = drawn(theta, 120, rng, ties=0.2)
    judge = drawn(1.5 * theta + np.array([0, 0, 0.8, 0, 0, 0]), 900, rng, ties=0.1)
    return human, judge


def likelihoods():
    rng = np.random.default_rng(0)
    theta = np.linspace(1, -1, 5)
    orders = [[NAMES[k] for k in np.argsort(-(theta + rng.gumbel(size=5)))[:4]] for _ in range(12)]
    orders.append([("a", "b"), "c"])
    ballots = Rankings.from_orders(orders, items=NAMES[:5])
    table = np.clip(0.5 + 0.2 * theta[:, None] + 0.1 * rng.standard_normal((5, 4)), 0.05, 0.95)
    table[0, 1] = np.nan
    index = np.arange(5)
    return {
        "votes": VoteLikelihood(drawn(theta, 60, rng, 0.3), index, "davidson"),
        "rao-kupper": VoteLikelihood(drawn(theta, 60, rng, 0.3), index, "rao-kupper"),
        "ballots": BallotLikelihood(ballots, index),
        "share": TableLikelihood.of(Scores.from_table(table), index),
        "number": TableLikelihood.of(Scores.from_table(100 * table), index),
    }


@pytest.mark.parametrize("kind", ["votes", "rao-kupper", "ballots", "share", "number"])
def test_derivatives_are_those_of_the_value(kind):
    one = likelihoods()[kind]
    x = one.start() + 0.1 * np.random.default_rng(1).standard_normal(one.size)
    grad, H = one.derivatives(x)
    step = 1e-5
    by_difference = np.array(
        [(one.value(x + step * e) - one.value(x - step * e)) / (2 * step) for e in np.eye(one.size)]
    )
    assert grad == pytest.approx(by_difference, abs=2e-5)
    second = np.array([one.derivatives(x + step * e)[0] - one.derivatives(x - step * e)[0] for e in np.eye(one.size)])
    assert pytest.approx(second / (2 * step), abs=2e-4) == H


def test_a_newton_step_solves_with_the_full_hessian():
    every = likelihoods()
    joint = JointPosterior(every["votes"], [every["ballots"], every["share"]], 5)
    joint.widths = Widths(1.3, np.array([0.7, 1.4]), np.array([0.4, 0.6]))
    rng = np.random.default_rng(2)
    x = joint.start() + 0.05 * rng.standard_normal(joint.size)
    step = 1e-5
    value = [
        (joint.value_and_gradient(x + step * e)[0] - joint.value_and_gradient(x - step * e)[0])
        for e in np.eye(joint.size)
    ]
    assert joint.value_and_gradient(x)[1] == pytest.approx(np.array(value) / (2 * step), abs=1e-4)
    H = np.array(
        [
            joint.value_and_gradient(x + step * e)[1] - joint.value_and_gradient(x - step * e)[1]
            for e in np.eye(joint.size)
        ]
    )
    b = rng.standard_normal(joint.size)
    assert joint.solve(x, b) == pytest.approx(np.linalg.solve(H / (2 * step), b), rel=1e-4, abs=1e-4)


def test_evidence_and_its_derivatives(pair):
    """The evidence is that of a joint normal with every unknown written out; its derivatives are its differences."""
    index, some = np.arange(6), np.array([3, 1, 0, 5])
    second = drawn(np.array([0.4, 0.0, 1.0, -1.0]), 90, np.random.default_rng(1))
    others = [VoteLikelihood(pair[1], index, "none"), VoteLikelihood(second, some, "none")]
    joint = JointPosterior(VoteLikelihood(pair[0], index, "none"), others, 6)
    x = joint.mode(joint.start(), Widths(1.0, np.array([1.3, 1.0]), np.array([0.4, 0.3])), 100).x
    evidence = SourceEvidence(joint, x, np.ones(5))

    def dense(z):
        w, a, v = Widths.of(z)
        (L, r), eye = quadratic(joint.target, joint.of_target(x)), np.eye(6)
        H, prior, right = np.zeros((16, 16)), np.eye(16), np.append(r, np.zeros(10))
        H[:6, :6], prior[:6, :6] = L, eye / w**2
        for k, at in enumerate((slice(6, 12), slice(12, 16))):
            H[at, at], right[at] = quadratic(others[k], joint.own(x, k))
            own = eye[others[k].index]  # u = a own theta + e
            prior[:6, :6] += a[k] ** 2 / v[k] ** 2 * own.T @ own
            prior[at, :6] = -a[k] / v[k] ** 2 * own
            prior[:6, at] = prior[at, :6].T
            prior[at, at] = np.eye(len(own)) / v[k] ** 2
        H += prior
        value = 0.5 * np.linalg.slogdet(prior)[1] - 0.5 * np.linalg.slogdet(H)[1]
        inverse = np.linalg.inv(H)
        return value + 0.5 * right @ inverse @ right + log_prior(z)[0], (inverse @ right)[:6], inverse[:6, :6]

    z = np.log([0.9, 1.2, 0.8, 0.5, 0.3])
    here, other = evidence.at(z), evidence.at(z + 0.2)
    assert here.value - other.value == pytest.approx(dense(z)[0] - dense(z + 0.2)[0], abs=1e-8)
    assert here.mean == pytest.approx(dense(z)[1])
    assert here.covariance == pytest.approx(dense(z)[2])

    def difference(of):
        return np.array([(of(z + 1e-5 * e) - of(z - 1e-5 * e)) / 2e-5 for e in np.eye(5)])

    gradient, hessian, slope = evidence.derivatives(z, here)
    assert gradient == pytest.approx(difference(lambda z: evidence.at(z).value), abs=1e-6)
    assert slope == pytest.approx(difference(lambda z: evidence.at(z).mean), abs=1e-6)
    assert hessian == pytest.approx(difference(lambda z: evidence.derivatives(z, evidence.at(z))[0]), abs=1e-5)
    best = evidence.best(z)
    assert np.abs(evidence.derivatives(best, evidence.at(best))[0]).max() < 1e-3
    held = SourceEvidence(joint, x, np.array([0.0, 1, 1, 1, 1]))
    assert held.best(z)[0] == z[0]
    assert held.derivatives(z, here)[0][0] == 0


def test_axes_that_are_well_known_need_no_nodes(monkeypatch):
    """With many items and votes, the answer without nodes is the one with them."""
    rng = np.random.default_rng(0)
    theta, names = rng.standard_normal(40), [str(k) for k in range(40)]
    seen = [theta, 1.3 * theta + 0.4 * rng.standard_normal(40), theta + 0.8 * rng.standard_normal(40)]
    votes = [VoteLikelihood(drawn(s, 4000, rng, names=names), np.arange(40), "none") for s in seen]
    found = fit_sources(votes[0], votes[1:], 40)
    with_nodes = width_average.average(found.evidence, found.z)
    monkeypatch.setattr(width_average, "WELL_KNOWN", 1.0)
    without = width_average.average(found.evidence, found.z)
    error = np.sqrt(np.diag(with_nodes.covariance))
    assert np.abs(without.mean - with_nodes.mean).max() < 0.02 * error.min()
    assert np.sqrt(np.diag(without.covariance)) == pytest.approx(error, rel=0.02)


@pytest.mark.parametrize("kind", ["votes", "rao-kupper", "ballots"])
def test_skew_is_what_the_mean_gradient_adds(kind):
    """f''' : C / 2 against the average of the gradient over a small normal spread of the scores."""
    one = likelihoods()[kind]
    rng = np.random.default_rng(4)
    x = one.start() + 0.3 * rng.standard_normal(one.size)
    B = 0.02 * rng.standard_normal((5, 5))
    m, here = len(one.index), one.derivatives(x)[0]
    total = np.zeros(m)
    for axis in np.concatenate([B, -B]):
        total += 0.5 * (one.derivatives(x + np.append(axis, np.zeros(one.size - m)))[0] - here)[:m]
    assert one.skew(x, B.T @ B) == pytest.approx(total, rel=0.02, abs=2e-5)


def test_a_biased_judge_helps_and_its_favorite_is_named(pair):
    human, judge = pair
    rng = np.random.default_rng(3)
    theta = np.linspace(1.5, -1.5, 6)
    sure = drawn(theta, 4000, rng)
    biased = drawn(theta + np.array([0, 0, 0, 0, 0, 2.0]), 6000, rng)
    found = consensus(Sources({"human": sure, "judge": biased}, "human"))
    assert found.method == "sources"
    assert found.ranking == list("abcdef")
    frame = found.sources_frame()
    assert frame["source"].to_list() == ["human", "judge"]
    assert "favors f by" in frame["favors"][1]
    assert any("favors f" in note for note in found.notes)
    small = consensus(Sources({"human": human, "judge": judge}, "human"))
    alone = consensus(human)
    assert small.stderr.mean() < alone.stderr.mean()
    assert small.sources_frame()["worth"][1] > 0


def test_effects_of_controls_are_each_sources_own():
    """Like those of each source alone, where that has many votes; a control moves the verdicts, not the items."""
    rng = np.random.default_rng(2)
    theta = np.linspace(1, -1, 6)

    def controlled(scores, count, effect):
        i = rng.integers(0, 6, count)
        j = (i + rng.integers(1, 6, count)) % 6
        z = 10 * rng.standard_normal(count) + 8.0 * (i - j)  # later items are longer
        won = rng.random(count) < 1 / (1 + np.exp(scores[j] - scores[i] - effect * z))
        outcome = np.where(rng.random(count) < 0.2, "tie", np.where(won, "a", "b")).tolist()
        names = [NAMES[k] for k in i], [NAMES[k] for k in j]
        return Comparisons.from_battles(*names, outcome, items=NAMES, control={"length": z})

    human, judge = controlled(theta, 1500, 0.02), controlled(1.3 * theta, 6000, 0.1)
    found = consensus(Sources({"human": human, "plain": drawn(theta, 300, rng), "judge": judge}, "human"))
    assert found.ranking == NAMES
    assert found.effects.names == ("human: length", "judge: length")
    for name, votes in (("human", human), ("judge", judge)):
        effect, error = found.effects.of(f"{name}: length")
        alone, alone_error = consensus(votes).effects.of("length")
        assert effect == pytest.approx(alone, abs=0.6 * alone_error)
        assert 0.6 * alone_error < error < 1.1 * alone_error
    assert found.effects.of("judge: length")[0] == pytest.approx(0.1, abs=0.02)
    assert any(note.startswith("control judge: length: 0.") for note in found.notes)


def test_coming_first_and_controls_of_rows_are_effects_of_their_sources():
    """Like those of each source alone, where that has many votes or ballots."""
    rng = np.random.default_rng(6)
    theta = np.linspace(1, -1, 5)

    def ordered(scores, count, first):
        i = rng.integers(0, 5, count)
        j = (i + rng.integers(1, 5, count)) % 5
        won = rng.random(count) < 1 / (1 + np.exp(scores[j] - scores[i] - first))
        sides = [NAMES[k] for k in i], [NAMES[k] for k in j]
        return Comparisons.from_battles(*sides, np.where(won, "a", "b").tolist(), items=NAMES[:5], ordered=True)

    place = rng.standard_normal((150, 5))
    seen = np.argsort(-(theta + 0.7 * place + rng.gumbel(size=(150, 5))), axis=1)
    control = {"place": np.take_along_axis(place, seen, axis=1).ravel().tolist()}
    lists = Rankings.from_orders([[NAMES[k] for k in row] for row in seen], items=NAMES[:5])
    lists = Rankings(lists.item, lists.tier, lists.offsets, items=lists.items, control=control)
    human, judge = ordered(theta, 500, 0.6), ordered(1.2 * theta, 3000, -0.4)
    plain = drawn(theta, 200, rng, names=NAMES[:5])
    found = consensus(
        Sources({"human": human, "judge": judge, "lists": lists, "plain": plain}, "human"), order_effect=True
    )
    assert found.effects.names == ("human: order", "judge: order", "lists: place")
    alone = consensus(human, order_effect=True), consensus(judge, order_effect=True), consensus(lists, "plackett-luce")
    for name, own, board in zip(found.effects.names, ("order", "order", "place"), alone):
        (effect, error), (expected, expected_error) = found.effects.of(name), board.effects.of(own)
        assert effect == pytest.approx(expected, abs=0.5 * expected_error)
        assert error == pytest.approx(expected_error, rel=0.2)
    with pytest.raises(DataError, match="no source has votes that do"):
        consensus(Sources({"plain": plain, "lists": lists}, "plain"), order_effect=True)


def test_a_useless_judge_adds_nothing_and_it_is_said():
    rng = np.random.default_rng(4)
    theta = np.linspace(1.5, -1.5, 6)
    human = drawn(theta, 600, rng)
    for scores in (np.zeros(6), -theta):
        found = consensus(Sources({"human": human, "coin": drawn(scores, 3000, rng)}, "human"))
        assert "coin adds nothing here: it does not agree with human beyond chance" in found.notes
        assert found.sources_frame()["related"][1] < 0.5
        assert found.sources_frame()["worth"][1] == 0
        assert np.abs(found.scores - consensus(human).scores).max() < 0.1


def test_three_small_judges_are_each_worth_something():
    rng = np.random.default_rng(9)
    theta, names = 0.8 * rng.standard_normal(12), [str(k) for k in range(12)]
    data = {"human": drawn(theta, 150, rng, names=names)}
    for k in range(3):
        data[f"judge {k}"] = drawn(1.2 * (theta + 0.2 * rng.standard_normal(12)), 150, rng, names=names)
    found = consensus(Sources(data, "human"))
    assert sum(" is worth " in note for note in found.notes) == 3
    alone = consensus(data["human"])
    assert found.stderr.mean() < 0.8 * alone.stderr.mean()


@pytest.mark.parametrize("seed", [1, 3])
def test_a_judge_is_unrelated_as_often_as_its_evidence_says(seed):
    """The odds are those of a grid of scales and widths, to Laplace's accuracy; the average is that of both models."""
    rng = np.random.default_rng(seed)
    theta, names = 0.8 * rng.standard_normal(12), [str(k) for k in range(12)]
    index = np.arange(12)
    human = VoteLikelihood(drawn(theta, 60, rng, names=names), index, "none")
    judge = VoteLikelihood(drawn(0.6 * rng.standard_normal(12) + 0.3 * theta, 500, rng, names=names), index, "none")
    found = fit_sources(human, [judge], 12)
    z, evidence, apart = found.z, found.evidence, found.evidence.without(0)
    top = evidence.at(z).value

    def integral(of, *axes):
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        return sum(np.exp(of.at(x).value - top) for x in points) * (axes[0][1] - axes[0][0]) * (axes[2][1] - axes[2][0])

    w, a, v = np.linspace(-2, 1, 11), np.linspace(-6, 2, 21), np.linspace(-1.5, 0.5, 9)
    related = integral(evidence, w, a, v) * 0.4 / (1.5 * np.sqrt(2 * np.pi))  # the prior of the log scale
    alone = integral(apart, w, [-30.0], v)
    odds = 0.3 / 0.7 * alone / related
    assert np.log(found.unrelated[0] / (1 - found.unrelated[0])) == pytest.approx(np.log(odds), abs=0.22)
    two, (average, chance) = (
        (width_average.average(evidence, z), width_average.average(apart, apart.best(np.array([z[0], -30.0, z[2]])))),
        (width_average.average_over_relations(evidence, z)),
    )
    weight = 1 / (1 + np.exp(two[1].mass - two[0].mass))
    assert chance[0] == pytest.approx(1 - weight)
    assert average.mean == pytest.approx(weight * two[0].mean + (1 - weight) * two[1].mean)


def test_one_source_is_todays_answer(pair):
    alone, today = consensus(Sources({"human": pair[0]}, "human")), consensus(pair[0])
    assert (alone.scores == today.scores).all()
    assert alone.method == today.method


def test_order_of_sources_items_and_rows_and_splits(pair):
    human, judge = pair
    first = consensus(Sources({"human": human, "judge": judge}, "human"))
    turned = list(reversed(NAMES))

    def flipped(votes):
        names = [votes.items[k] for k in votes.i], [votes.items[k] for k in votes.j]
        columns = zip(*names, votes.wins_i, votes.wins_j, votes.ties)
        rows = [(a, b, o, w) for a, b, x, y, t in columns for o, w in (("a", x), ("b", y), ("tie", t)) if w][::-1]
        a, b, outcome, weight = zip(*rows)
        return Comparisons.from_battles(a, b, outcome, weight=weight, items=turned)

    other = consensus(Sources({"judge": flipped(judge), "human": flipped(human)}, "human"))
    by_name = dict(zip(other.items, other.scores))
    assert [by_name[name] for name in first.items] == pytest.approx(first.scores.tolist(), abs=1e-3)
    third = consensus(
        Sources({"human": human, "judge": placet.concat([judge.reweighted(0.5), judge.reweighted(0.5)])}, "human")
    )
    assert third.scores == pytest.approx(first.scores, abs=1e-6)


@pytest.mark.parametrize("ties", ["davidson", "rao-kupper", "none"])
def test_votes_that_are_all_ties_are_joined(pair, ties):
    """The tie parameter goes far out, and a step of Newton's method may leave its domain."""
    for weight in (0.001, 1.0, 30.0):
        even = drawn(np.zeros(6), 60, np.random.default_rng(26), 1.0).reweighted(weight)
        found = consensus(Sources({"human": pair[0], "judge": even}, "human"), ties=ties)
        assert found.fit.converged
        assert np.isfinite(found.stderr).all()
        assert found.ranking[0] == consensus(pair[0], ties=ties).ranking[0]
    ahead = Comparisons.from_battles(["a"] * 3, ["b"] * 3, ["b", "tie", "tie"], weight=[60.0, 15.0, 15.0])
    little = Comparisons.from_battles(["a"] * 2, ["b"] * 2, ["b", "tie"], weight=[0.039, 0.021])
    even = Comparisons.from_battles(["a"], ["b"], ["tie"], weight=[10.0])
    for data in ({"one": ahead, "two": little, "three": even}, {"one": ahead, "three": even}):
        assert np.isfinite(consensus(Sources(data), ties=ties).stderr).all()  # at some points sites go astray
    two = [drawn(np.zeros(2), k, np.random.default_rng(1), 1.0).reweighted(30.0) for k in (1, 10)]
    assert consensus(Sources({"human": two[0], "judge": two[1]}), ties=ties).scores == pytest.approx([0, 0], abs=1e-6)


def test_ballots_and_tables_join_votes(pair):
    human, judge = pair
    rng = np.random.default_rng(8)
    theta = np.array([1.2, 0.6, 0.2, -0.4, -0.6, -1.0])
    orders = Rankings.from_orders([[NAMES[k] for k in np.argsort(-(theta + rng.gumbel(size=6)))] for _ in range(30)])
    table = 1 / (1 + np.exp(-(theta[:, None] - np.linspace(-1, 1, 5)) + 0.1 * rng.standard_normal((6, 5))))
    table[1, 2] = np.nan
    bench = Scores.from_table(table, items=NAMES)
    found = consensus(Sources({"human": human, "judge": judge, "lists": orders, "bench": bench}, "human"))
    assert found.sources_frame()["kind"].to_list() == ["votes", "votes", "ballots", "scores"]
    assert found.fit.converged
    assert found.stderr.mean() < consensus(human).stderr.mean()
    common = consensus(Sources({"human": human, "judge": judge, "lists": orders, "bench": bench}))
    assert any("no target" in note for note in common.notes)
    assert common.ranking[0] == "a"
    target = consensus(Sources({"human": human, "bench": bench}, "bench"))
    assert target.ranking == NAMES
    parts = consensus(Sources({"human": placet.Parts.of([human]), "lists": placet.Parts.of([orders])}, "human"))
    whole = consensus(Sources({"human": human, "lists": orders}, "human"))
    assert parts.scores == pytest.approx(whole.scores, abs=1e-9)


def test_instances_are_joined_one_by_one(pair):
    rng = np.random.default_rng(5)

    def lists(count, width, instances):
        theta = {"cats": np.array([1.0, 0.0, -1.0, -2.0]), "dogs": np.array([-1.0, 1.0, 2.0, 0.0])}
        orders, names = [], []
        for name in instances:
            for _ in range(count):
                seen = theta[name] + width * rng.standard_normal(4) + rng.gumbel(size=4)
                orders.append([f"{name} {k}" for k in np.argsort(-seen)])
                names.append(name)
        return Rankings.from_orders(orders, instance=names)

    people, judge = lists(20, 0.0, ["cats", "dogs"]), lists(60, 0.3, ["cats", "dogs"])
    found = consensus(Sources({"people": people, "judge": judge}, "people"))
    assert list(found) == ["cats", "dogs"]
    one = {name: Rankings.from_orders(list(own.orders())) for name, own in people.by_instance()}
    other = {name: Rankings.from_orders(list(own.orders())) for name, own in judge.by_instance()}
    for name in found:
        alone = consensus(Sources({"people": one[name], "judge": other[name]}, "people"))
        by_name = dict(zip(alone.items, alone.scores))
        assert [by_name[item] for item in found[name].items] == pytest.approx(found[name].scores.tolist(), abs=1e-3)
        assert found[name].sources_frame()["source"].to_list() == ["people", "judge"]
    with pytest.raises(DataError, match="source 'human' does not say which"):
        consensus(Sources({"judge": judge, "human": drawn(np.zeros(2), 4, rng, names=["cats 1", "dogs 1"])}))
    with pytest.raises(DataError, match="instance 'dogs' has no ballot of the target 'people'"):
        consensus(Sources({"people": lists(3, 0.0, ["cats"]), "judge": judge}, "people"))


def test_items_of_one_source_only_are_ranked_and_said(pair):
    _human, judge = pair
    less = drawn(np.array([0.5, 0.0, -0.5]), 200, np.random.default_rng(1))
    found = consensus(Sources({"human": less, "judge": judge}, "human"))
    assert set(found.items) == set(NAMES)
    assert "only judge has d, e, f" in found.notes
    assert found.stderr[3:].min() > found.stderr[:3].max() * 0.9
    assert 0 < found.sources.worth[1] < 10_000  # of the errors of items that the target has


def test_a_judge_that_joins_what_the_target_leaves_apart_has_no_number():
    apart = Comparisons.from_battles(
        ["a", "c"] * 30, ["b", "d"] * 30, ["a", "b", "b", "a", "a"] * 12, items=list("abcd")
    )
    judge = drawn(np.array([1.0, 0.5, -0.5, -1.0]), 500, np.random.default_rng(3))
    found = consensus(Sources({"human": apart, "judge": judge}, "human"))
    assert found.sources.worth[1] is None
    assert any("tells what no number of human votes like these would" in note for note in found.notes)


def test_bootstrap_resamples_every_source(pair):
    human, judge = pair
    found = consensus(Sources({"human": human, "judge": judge}, "human"), bootstrap=5)
    assert found.draws.shape == (5, 6)
    assert np.ptp(found.draws, axis=0).min() > 0


def test_bad_sources_are_refused(pair):
    human, judge = pair
    with pytest.raises(DataError, match=r"target 'x' is not a source; choose from human"):
        Sources({"human": human}, "x")
    with pytest.raises(DataError, match="source 'judge' has no item in common with 'human'"):
        Sources({"human": human, "judge": drawn(np.zeros(2), 4, np.random.default_rng(0), names=["x", "y"])})
    with pytest.raises(DataError, match="has 1 item"):
        Sources({"human": human, "one": Scores.from_table([[1.0]], items=["a"])})
    with pytest.raises(TypeError, match="source 'words' is str"):
        Sources({"words": "abc"})
    with pytest.raises(DataError, match="no sources"):
        Sources({})
    with pytest.raises(ValueError, match="leave the method out"):
        consensus(Sources({"human": human, "judge": judge}), "borda")
    with pytest.raises(ValueError, match="joins several sources"):
        consensus(human, "sources")
    with pytest.raises(ValueError, match="unknown to 'sources'"):
        consensus(Sources({"human": human, "judge": judge}), drift=1)
    table = Scores.from_table([[50.0, 60.0], [70.0, 20.0]], items=["a", "b"])
    with pytest.raises(DataError, match="item 'a' has 50 for task 0"):
        consensus(Sources({"human": human, "bench": table}, "human"), response="share")


def test_items_that_no_source_joins_are_said():
    def pairs(count):
        return Comparisons.from_battles(["a", "c"] * count, ["b", "d"] * count, ["a", "b"] * count, items=list("abcd"))

    found = consensus(Sources({"human": pairs(5), "judge": pairs(20)}, "human"))
    assert any("fall into 2 groups that no source joins (a, ... and c, ...)" in note for note in found.notes)
    table = Scores.from_table([[0.2], [0.6]], items=["b", "c"])
    found = consensus(Sources({"human": pairs(5), "judge": pairs(20), "bench": table}, "human"))
    assert not any("no source joins" in note for note in found.notes)


def test_weights_are_votes(pair):
    """Twice the weight is every vote given twice, in every source."""
    human, judge = pair
    double = consensus(Sources({"human": human.reweighted(2.0), "judge": judge.reweighted(2.0)}, "human"))
    twice = consensus(Sources({"human": placet.concat([human] * 2), "judge": placet.concat([judge] * 2)}, "human"))
    assert double.scores == pytest.approx(twice.scores, abs=1e-8)
    assert double.stderr == pytest.approx(twice.stderr, abs=1e-8)
    once = consensus(Sources({"human": human, "judge": judge}, "human"))
    assert double.stderr.mean() < once.stderr.mean()


def test_tasks_of_a_table_are_sources_of_their_own():
    rng = np.random.default_rng(6)
    theta = rng.standard_normal(20)
    seen = theta[:, None] + np.array([0.1, 0.1, 3.0]) * rng.standard_normal((20, 3))
    value = 1 / (1 + np.exp(-seen))
    value[3, 1] = np.nan
    table = Scores.from_table(value, tasks=["math", "code", "noise"])
    tasks = Sources.of_tasks(table, target="math")
    assert tasks["code"].items == tuple(k for k in range(20) if k != 3)
    found = consensus(tasks)
    frame = found.sources_frame()
    assert frame["agreement"][1] > 0.9 > 0.8 > frame["agreement"][2]
    assert any("code is worth" in note and "math scores here" in note for note in found.notes)
    human = drawn(theta, 100, rng, names=list(range(20)))
    joined = consensus(Sources({"human": human, **tasks}, "human"))
    assert np.corrcoef(joined.scores, theta)[0, 1] > np.corrcoef(consensus(human).scores, theta)[0, 1]


def test_a_task_with_a_name_that_is_taken_keeps_its_table(pair):
    table = Scores.from_table([[0.5, 0.2], [0.7, 0.1]], items=["a", "b"], tasks=["human", "code"])
    found = Sources.of_tasks({"bench": table, "human": pair[0]}, target="human")
    assert list(found) == ["human", "bench human", "code"]
    assert found["bench human"].value.tolist() == [[0.5], [0.7]]


def test_a_source_is_predicted_from_the_others_alone(pair):
    human, judge = pair
    rng = np.random.default_rng(4)
    third = drawn(np.array([1.2, 0.6, 0.2, -0.4, -0.6, -1.0]), 400, rng)
    coin = drawn(rng.permutation(np.linspace(-1, 1, 6)), 2000, rng)
    found = consensus(Sources({"human": human, "judge": judge, "third": third, "coin": coin}, "human"), ties="none")
    seen = found.predict_source("third")
    others = consensus(Sources({"human": human, "judge": judge, "coin": coin}, "human"), ties="none")
    assert seen.predicted == pytest.approx(others.scores)
    assert (seen.stderr > others.stderr).all()
    assert seen.own == pytest.approx(consensus(third).scores)
    score = dict(zip(seen.items, seen.predicted))
    right = [
        x if score[third.items[i]] > score[third.items[j]] else y
        for i, j, x, y in zip(third.i, third.j, third.wins_i, third.wins_j)
    ]
    assert seen.right == pytest.approx(sum(right) / (third.wins_i + third.wins_j).sum())
    assert seen.right <= seen.own_right + 0.02
    assert seen.to_frame()["predicted"].is_sorted(descending=True)
    assert seen.correlation > 0.9 > found.predict_source("coin").correlation
    assert "correlation 0.9" in repr(seen)
    assert found.predict_source("human").correlation > 0.8  # of what the others have in common
    with pytest.raises(ValueError, match="source 'x' is not among the sources"):
        found.predict_source("x")
    with pytest.raises(ValueError, match="only one source"):
        consensus(human).predict_source("human")


def test_ballots_tables_and_parts_are_predicted_too(pair):
    table = Scores.from_table([[0.9, 0.8], [0.7, 0.8], [0.2, 0.1]], items=["a", "b", "f"])
    orders = Rankings.from_orders([["a", "b", "c"], ["a", "d", "f"]], items=NAMES)
    parts = placet.Parts.of([pair[1]])
    found = consensus(Sources({"human": pair[0], "bench": table, "lists": orders, "judge": parts}, "human"))
    bench, lists, judge = (found.predict_source(name) for name in ("bench", "lists", "judge"))
    assert bench.items == ("a", "b", "f")
    assert bench.right == pytest.approx(1.0)
    assert lists.right == 1.0
    assert judge.right is None
    assert repr(judge).startswith("SourcePrediction(judge: correlation 0.")


def test_zeros_and_ones_with_slopes_held_are_rasch(monkeypatch):
    """With every slope 1, difficulties free and no dispersion, the mode is that of the Rasch model."""
    rng = np.random.default_rng(7)
    theta, hard = rng.standard_normal(8), rng.standard_normal(30)
    solved = (rng.random((8, 30)) < 1 / (1 + np.exp(hard - theta[:, None]))).astype(float)
    solved[2, 5] = np.nan
    monkeypatch.setattr(item_response, "SLOPE_PRIOR", 1e-5)
    monkeypatch.setattr(item_response, "DIFFICULTY_PRIOR", 1e4)
    told = (np.nansum(solved, axis=0) > 0) & (np.nansum(1 - solved, axis=0) > 0)
    table = TableLikelihood.of(Scores.from_table(solved[:, told]), np.arange(8), "share")
    table.dispersion[:] = 1.0
    joint = JointPosterior(table, [], 8)
    found = joint.mode(joint.start(), Widths(3.0, np.zeros(0), np.zeros(0)), 200).x[:8]
    expected = rasch._fit_free(solved, np.ones(30), 3.0).theta
    assert found - found.mean() == pytest.approx(expected, abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 3.0), st.floats(0.1, 3.0))
def test_deviations_are_centered_and_errors_finite(seed, v, a):
    rng = np.random.default_rng(seed)
    L = np.cov(rng.standard_normal((6, 20)))
    values, vectors = np.linalg.eigh(L - L.mean())
    one = Quadratic(np.arange(6), np.maximum(values, 0), vectors, rng.standard_normal(6))
    e, error = deviations(one, a, v, rng.standard_normal(6), np.eye(6))
    assert e.sum() == pytest.approx(0, abs=1e-8)
    assert np.isfinite(error).all()


def _votes_on_a_pair(won, lost, tied):
    n = won + lost + tied
    return Comparisons.from_battles(["a"] * n, ["b"] * n, ["a"] * won + ["b"] * lost + ["tie"] * tied)


@pytest.mark.parametrize(
    ("asked", "other", "rough"),
    [
        ((0, 60, 30), (0, 0, 10), True),
        ((0, 60, 1), (0, 0, 10), True),
        ((0, 60, 5), (10, 0, 3), True),
        ((0, 1, 30), (10, 0, 3), False),
        ((1, 0, 100), (10, 0, 3), True),
        ((60, 1, 1), (0, 10, 0), True),
        ((3, 0, 5), (0, 10, 0), True),
        ((60, 40, 20), (50, 50, 10), False),
    ],
)
def test_ridges_of_ties_and_few_wins_lead_nowhere(asked, other, rough):
    """Where nearly no vote is won by one side, or nearly all tie, scores and tie rate are open together."""
    votes = _votes_on_a_pair(*asked)
    board = placet.consensus(placet.Sources({"asked": votes, "other": _votes_on_a_pair(*other)}, "asked"))
    alone, joined = (float(one.scores[0] - one.scores[1]) for one in (placet.consensus(votes), board))
    assert abs(joined - alone) < 6.0  # between 16 and 1,800 apart before
    assert np.isfinite(board.stderr).all()
    if not other[0] and not other[1]:
        assert joined * alone > 0  # ties of another source do not turn the order round
    assert any("rougher than usual" in note for note in board.notes) == rough
