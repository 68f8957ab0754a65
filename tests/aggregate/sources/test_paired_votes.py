"""Votes of two sources on the same answers: derivatives, evidence by integration, invariances, honest errors."""

from collections import Counter

import numpy as np
import pytest

from placet import Comparisons, DataError, Parts, Sources, consensus
from placet.aggregate.sources.joint_mode import Widths
from placet.aggregate.sources.paired_votes import (
    PairedEvidence,
    PairedPosterior,
    PairedVotes,
    paired_rows,
    verdicts_on,
)
from placet.aggregate.sources.source_likelihood import likelihood_of
from placet.aggregate.sources.width_evidence import SourceEvidence, log_prior


def answers(seed, n=6, voted=150, judged=400, shared=2.0, ties=0.2, first=None, length=None):
    """True scores, votes of people and of a judge on the same answers, whose quality both see.

    ``first`` and ``length``: what coming first, and a control, are worth to people and to the judge, who sees half of
    the pairs the other way round.
    """
    rng = np.random.default_rng(seed)
    theta = 0.7 * rng.standard_normal(n)
    i = rng.integers(0, n, judged)
    j = (i + rng.integers(1, n, judged)) % n
    quality = shared * rng.standard_normal(judged)
    steep = np.sqrt(1 + 0.346 * shared**2)

    def votes(scores, count, who):
        turned = (rng.random(judged) < 0.5 * who) if first or length else np.zeros(judged, bool)
        a, b, sign = np.where(turned, j, i), np.where(turned, i, j), np.where(turned, -1, 1)
        longer = rng.standard_normal(judged)
        odds = steep * (scores[a] - scores[b]) + sign * quality
        odds += steep * ((first or (0, 0))[who] + (length or (0, 0))[who] * longer)
        outcome = np.where(rng.random(judged) < 1 / (1 + np.exp(-odds)), "a", "b")
        outcome = np.where(rng.random(judged) < ties, "tie", outcome)[:count].tolist()
        more = {"control": {"length": longer[:count]}} if length else {}
        names = [f"q{k}" for k in range(count)]
        sides = a[:count].tolist(), b[:count].tolist()
        return Comparisons.from_battles(*sides, outcome, agent=names, items=range(n), ordered=first is not None, **more)

    seen = 1.2 * (theta + 0.2 * rng.standard_normal(n))
    return theta - theta.mean(), votes(theta, voted, 0), votes(seen, judged, 1)


def posterior(ties="davidson", **helped):
    _, human, judge = answers(0, **helped)
    sources = Sources({"human": human, "judge": judge}, "human", paired=True)
    order = bool(helped)
    own = likelihood_of(judge, sources.index("judge"), ties, "auto", order)
    target = PairedVotes(paired_rows(sources, sources, order), sources.index("human"), ties, own, 0)
    target.steepness = np.where(target.seen > 0, 1.3, 1.0)
    target.judge_shift = 0.3 * np.random.default_rng(7).standard_normal(len(target.seen)) * order
    joint = PairedPosterior(target, [own], 6)
    joint.widths = Widths(1.1, np.array([1.2]), np.array([0.4]))
    return joint


def test_verdicts_are_matched_by_id_and_items():
    human = Comparisons.from_battles("xyxx", "yzzy", ["a", "b", "a", "tie"], agent=["1", "2", "3", "4"])
    judge = Comparisons.from_battles("yyxz", "xzxx"[:2] + "zx"[:2], ["a", "tie", "b", "a"], agent=["1", "2", "9", "3"])
    sources = Sources({"human": human, "judge": judge}, "human", paired=True)
    rows = paired_rows(sources, sources)
    named = {(rows.votes.items[i], rows.votes.items[j]) for i, j in zip(rows.votes.i, rows.votes.j)}
    assert named == {("x", "y"), ("x", "z"), ("y", "z")}
    found = {
        (rows.votes.items[i] + rows.votes.items[j], v, s)
        for i, j, v, s in zip(rows.votes.i, rows.votes.j, rows.verdict, rows.seen)
    }
    assert found == {("xy", -1.0, 1.0), ("xy", 0.0, 0.0), ("xz", -1.0, 1.0), ("yz", 0.0, 1.0)}
    assert rows.answered == 3


def verdicts_vote_by_vote(target, judged, order):
    """Mean verdict and mean controls on the same answers, from sums in a dictionary."""
    lead, total, helped = Counter(), Counter(), Counter()
    for r in range(len(judged)):
        a, b, q = judged.items[judged.i[r]], judged.items[judged.j[r]], judged.agents[judged.agent[r]]
        votes = judged.wins_i[r] + judged.wins_j[r] + judged.ties[r]
        column = [*([] if judged.control is None else judged.control[r]), *([1.0] if order else [])]
        for key, side in (((q, a, b), 1), ((q, b, a), -1)):
            lead[key] += side * (judged.wins_i[r] - judged.wins_j[r])
            total[key] += votes
            for k, z in enumerate(column):
                helped[key, k] += side * votes * z
    verdict, more = [], []
    for r in range(len(target)):
        key = target.agents[target.agent[r]], target.items[target.i[r]], target.items[target.j[r]]
        verdict.append(lead[key] / total[key] if total[key] else np.nan)
        more.append([helped[key, k] / total[key] if total[key] else 0.0 for k in range(len(column))])
    return np.array(verdict), np.array(more)


@pytest.mark.parametrize("order", [True, False])
def test_verdicts_are_those_of_a_look_at_every_vote(order):
    """Ids that repeat, pairs in both directions, items and ids that only one has; in memory and in parts."""
    rng = np.random.default_rng(3)

    def votes(count, names, ids, **more):
        i = rng.integers(0, len(names), count)
        j = (i + rng.integers(1, len(names), count)) % len(names)
        outcome = rng.choice(["a", "b", "tie"], count).tolist()
        agent = [f"q{k}" for k in rng.integers(0, ids, count)]
        sides = [names[k] for k in i], [names[k] for k in j]
        return Comparisons.from_battles(*sides, outcome, agent=agent, ordered=order, **more)

    target = votes(150, "dcba", 12)
    pieces = [votes(80, "abce", 9, control={"length": rng.integers(-1, 2, 80)}) for _ in range(3)]
    whole = Parts.of(pieces).load()
    expected, helped = verdicts_vote_by_vote(target, whole, order)
    assert 20 < np.isnan(expected).sum() < 130
    for judged in (whole, Parts.of(pieces)):
        verdict, own = verdicts_on(target, judged, order)
        assert verdict == pytest.approx(expected, nan_ok=True)
        assert own == pytest.approx(helped)


@pytest.mark.parametrize(
    ("ties", "helped"),
    [("davidson", {}), ("none", {}), ("davidson", {"first": (0.6, -0.4), "length": (0.3, 0.8)})],
)
def test_gradient_and_newton_step(ties, helped):
    joint = posterior(ties, **helped)
    rng = np.random.default_rng(1)
    x = joint.start() + 0.2 * rng.standard_normal(joint.size)
    x[joint.target.gamma] = 0.8
    step = 1e-5
    by_difference = [
        (joint.value_and_gradient(x + step * e)[0] - joint.value_and_gradient(x - step * e)[0]) / (2 * step)
        for e in np.eye(joint.size)
    ]
    assert joint.value_and_gradient(x)[1] == pytest.approx(np.array(by_difference), abs=1e-5)
    found = joint.mode(joint.start(), joint.widths, 100)
    assert found.converged
    assert found.n_iter < 15


def test_evidence_is_that_of_the_joint_quadratic():
    """The source's own scores integrated out in closed form, against a dense normal of all unknowns."""
    joint = posterior("none")
    x = joint.mode(joint.start(), joint.widths, 100).x
    evidence = PairedEvidence(joint, x, np.ones(3))
    target = joint.target
    g, H = target.derivatives(joint.of_target(x))
    G, K = joint.others[0].derivatives(joint.own(x, 0))
    m = 6
    full = np.zeros((m + 1 + m, m + 1 + m))  # theta, gamma, u
    full[:7, :7], full[:7, 7:], full[7:, :7] = H, target.cross, target.cross.T
    full[7:, 7:] = K + target.own
    right = full @ x - np.concatenate([g, G + target.pull])

    def dense(z):
        w, a, v = Widths.of(z)
        prior = np.zeros_like(full)
        prior[:6, :6] = np.eye(6) * (w**-2 + a[0] ** 2 / v[0] ** 2)
        prior[:6, 7:] = prior[7:, :6] = -np.eye(6) * a[0] / v[0] ** 2
        prior[7:, 7:] = np.eye(6) / v[0] ** 2
        C = np.linalg.inv(full + prior)
        value = -6 * np.log(w) - 6 * np.log(v[0]) - 0.5 * np.linalg.slogdet(full + prior)[1]
        return value + 0.5 * right @ C @ right + log_prior(z)[0], (C @ right)[:6], C[:6, :6]

    z = np.log([0.9, 1.2, 0.5])
    here, other = evidence.at(z), evidence.at(z + 0.3)
    assert here.value - other.value == pytest.approx(dense(z)[0] - dense(z + 0.3)[0], abs=1e-7)
    assert here.mean == pytest.approx(dense(z)[1])
    assert here.covariance == pytest.approx(dense(z)[2])
    gradient, hessian, slope = evidence.derivatives(z, here)
    assert gradient == pytest.approx([(dense(z + e)[0] - dense(z - e)[0]) / 2e-4 for e in 1e-4 * np.eye(3)], abs=1e-4)
    move = np.array([0, 1e-4, 0])
    assert slope[1] == pytest.approx((dense(z + move)[1] - dense(z - move)[1]) / 2e-4, abs=1e-5)
    near = [(evidence.derivatives(z + e, evidence.at(z + e))[0] - gradient) / 1e-3 for e in 1e-3 * np.eye(3)]
    assert hessian == pytest.approx(np.array(near), abs=0.05)
    plain = SourceEvidence(joint, x, np.ones(3))
    assert np.abs(plain.at(z).covariance - here.covariance).max() > 1e-4  # the tie matters


def test_errors_of_the_same_answers_are_correlated():
    """Judged on the same answers only, both see the same luck: taken as independent, it would look like agreement."""
    ratio = []
    for seed in range(3):
        _, human, judge = answers(seed, n=8, voted=300, judged=300, shared=3.0, ties=0.0)
        found = [consensus(Sources({"human": human, "judge": judge}, "human", paired=p)) for p in (True, False)]
        ratio.append(found[0].stderr.mean() / found[1].stderr.mean())
        assert found[0].sources.worth[1] < found[1].sources.worth[1]
    assert np.mean(ratio) > 1.05  # experiments/sources/pairing: intervals that ignore it cover too rarely


def test_without_common_answers_or_luck_nothing_changes():
    _, human, judge = answers(3)
    other = Comparisons(judge.i, judge.j, judge.wins_i, judge.wins_j, judge.ties, judge.agent, judge.items,
                        tuple(f"other {name}" for name in judge.agents))  # fmt: skip
    apart = consensus(Sources({"human": human, "judge": other}, "human", paired=True))
    plain = consensus(Sources({"human": human, "judge": judge}, "human"))
    assert apart.scores == pytest.approx(plain.scores)
    assert any("nothing is paired" in note for note in apart.notes)
    _, human, judge = answers(4, voted=400, judged=2000, shared=0.0)
    paired, plain = (consensus(Sources({"human": human, "judge": judge}, "human", paired=p)) for p in (True, False))
    assert np.abs(paired.scores - plain.scores).max() < 0.25 * plain.stderr.mean()
    assert paired.fit.converged


def test_coming_first_and_controls_are_each_sources_own():
    """They are what they were drawn with, and like those of the fit that does not pair; in memory and in parts."""
    first, length = (0.6, -0.5), (0.3, 0.8)
    theta, human, judge = answers(8, voted=600, judged=3000, ties=0.0, first=first, length=length)
    data = {"human": human, "judge": judge}
    found = consensus(Sources(data, "human", paired=True), order_effect=True)
    plain = consensus(Sources(data, "human"), order_effect=True)
    assert found.fit.converged
    assert (
        found.effects.names == plain.effects.names == ("human: length", "human: order", "judge: length", "judge: order")
    )
    drawn = [length[0], first[0], length[1], first[1]]
    for name, true in zip(found.effects.names, drawn):
        (effect, error), (other, other_error) = found.effects.of(name), plain.effects.of(name)
        assert abs(effect - true) < 3 * error
        assert abs(effect - other) < 1.5 * other_error
        assert 0.7 * other_error < error < 1.3 * other_error
    assert np.abs(found.scores - theta).max() < 3 * found.stderr.max()
    moved = [float(note.partition("by ")[2].split()[0]) for note in found.notes if "judged the answers" in note]
    none = consensus(Sources(data, "human", paired=True))
    assert moved[0] > 0.3
    assert none.effects.names == ("human: length", "judge: length")
    parts = Sources({name: Parts.of([one[:200], one[200:]]) for name, one in data.items()}, "human", paired=True)
    again = consensus(parts, order_effect=True)
    by_name = dict(zip(again.items, again.scores))
    assert [by_name[name] for name in found.items] == pytest.approx(found.scores.tolist(), abs=1e-7)
    assert next(note for note in found.notes if "judged the answers" in note) in again.notes


def test_order_bootstrap_and_words():
    _, human, judge = answers(5)
    first = consensus(Sources({"human": human, "judge": judge}, "human", paired=True), bootstrap=3)
    assert first.draws.shape == (3, 6)
    assert any("judge judged the answers of 150 of 150 human votes" in note for note in first.notes)
    second = consensus(Sources({"judge": judge, "human": human}, "human", paired=True))
    by_name = dict(zip(second.items, second.scores))
    assert [by_name[name] for name in first.items] == pytest.approx(first.scores.tolist(), abs=1e-3)
    with pytest.raises(DataError, match="paired sources need a target"):
        Sources({"human": human, "judge": judge}, paired=True)
    with pytest.raises(DataError, match="with an id of the answers as their agent"):
        consensus(Sources({"human": human.pooled(), "judge": judge}, "human", paired=True))
    assert not Sources({"human": human, "judge": judge}, "human", paired=True).without("human").paired
