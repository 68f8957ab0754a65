"""Mixtures: EM never goes down, memberships are Bayes' rule, simulated groups are found, one group is the plain model."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from oracle import pl_partition
from sklearn.metrics import adjusted_rand_score
from strategies import ballots
from typer.testing import CliRunner

import placet
from placet import simulate
from placet.aggregate import MODELS, Groups, Mixture, consensus
from placet.aggregate.likelihood.prior import EXTRA_PRIOR
from placet.aggregate.method_table import MIXED
from placet.aggregate.mixture.em import MixtureFit, ascend, best_of_starts, responsibilities, run_from
from placet.aggregate.mixture.families import GroupFit, family_of
from placet.aggregate.mixture.joint_prior import joint_information, joint_slope
from placet.aggregate.mixture.mixture_errors import observed_information
from placet.aggregate.mixture.voters import voters_of
from placet.aggregate.pairs import pair_likelihood
from placet.cli import app
from placet.data import Comparisons, DataError, Rankings, concat
from placet.report import consensus_page

UP, DOWN = [2.5, 1.5, 0.5, -0.5, -1.5, -2.5], [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]


def two_kinds(n=120, m=80, seed=0):
    """Plackett-Luce ballots of two kinds, and the kind of each."""
    parts = [
        simulate.plackett_luce(t, k, items="abcdef", random_state=seed + j)
        for j, (t, k) in enumerate([(UP, n), (DOWN, m)])
    ]
    return concat(parts), np.repeat([0, 1], [n, m])


def voting_agents(seed=0, agents=30, each=25, ties="none"):
    """Votes of agents of two kinds with opposite tastes."""
    rng = np.random.default_rng(seed)
    kind = np.arange(agents) % 3 == 0
    rows = []
    for agent in range(agents):
        theta = np.array(DOWN if kind[agent] else UP)
        for _ in range(each):
            a, b = rng.choice(6, 2, replace=False)
            tie = ties != "none" and rng.random() < 0.2
            first = rng.random() < 1 / (1 + math.exp(theta[b] - theta[a]))
            rows.append(("abcdef"[a], "abcdef"[b], "tie" if tie else "a" if first else "b", agent))
    a, b, outcome, agent = zip(*rows)
    return Comparisons.from_battles(a, b, outcome, agent=agent, items="abcdef"), kind


@settings(max_examples=25)
@given(ballots(max_items=4, min_ballots=3), st.sampled_from(sorted(MIXED)), st.integers(0, 5))
def test_em_never_lowers_the_objective(votes, name, seed):
    model = MIXED[name]() if name == "mallows" else MIXED[name](prior=2.0)
    voters = voters_of(votes)
    family = family_of(model, voters)
    first = np.random.default_rng(seed).dirichlet([1.0, 1.0], len(voters))
    trace = np.array(run_from(family, voters.count, first, 15, 0.0).trace)
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-9 * (1 + np.abs(trace[1:]))).all()


@settings(max_examples=20)
@given(ballots(max_items=4, min_ballots=2), st.floats(0.1, 0.9), st.integers(0, 9))
def test_memberships_are_bayes_rule(votes, share, seed):
    """Against the formula: probabilities of every ballot by enumeration of the orders that agree with it."""
    voters = voters_of(votes)
    family = family_of(MIXED["plackett-luce"](), voters)
    theta = np.random.default_rng(seed).normal(size=(2, votes.n_items))
    shares = np.array([share, 1 - share])
    found, total = responsibilities(family, shares, [GroupFit(row, 1.0) for row in theta])
    for b in range(len(votes)):
        rows = slice(votes.offsets[b], votes.offsets[b + 1])
        item, tier = votes.item[rows], votes.tier[rows]
        joint = [shares[k] * math.exp(-pl_partition(theta[k][item], -tier) if len(item) else 0.0) for k in range(2)]
        np.testing.assert_allclose(found[voters.unit[b]], np.array(joint) / sum(joint), atol=1e-9)
        assert total[voters.unit[b]] == pytest.approx(math.log(sum(joint)), abs=1e-9)


@pytest.mark.parametrize("name", ["plackett-luce", "mallows", "bradley-terry", "pmop-fd"])
def test_simulated_groups_are_found(name):
    votes, kind = two_kinds()
    found = Mixture(name, 2, restarts=3).fit(votes).groups_
    assert adjusted_rand_score(kind, found.likeliest) > 0.9
    assert found.converged
    assert found[1].ranking == list("abcdef")
    assert found[2].ranking == list("fedcba")
    assert found.shares[0] == pytest.approx(0.6, abs=0.03)
    assert (np.diff(found.shares) <= 0).all()


def test_close_groups_are_found_as_far_as_bayes_rule_finds_them():
    """Three kinds of Mallows voters, of whom the true model itself finds nearly all."""
    centers, phi = ["abcdefgh", "hgfedcba", "defghabc"], 0.45
    votes = simulate.mallows_mixture(centers, phi, 500, share=[0.5, 0.3, 0.2], items="abcdefgh", random_state=3)
    found = Mixture("mallows", 3, restarts=4).fit(votes)
    family = family_of(MIXED["mallows"](), voters_of(votes))
    truth = [type(found._states[0])(np.array(["abcdefgh".index(x) for x in c]), -math.log(phi)) for c in centers]
    bayes = responsibilities(family, np.array([0.5, 0.3, 0.2]), truth)[0].argmax(axis=1)[voters_of(votes).unit]
    assert adjusted_rand_score(bayes, found.groups_.likeliest) > 0.95
    assert [c.ranking for c in found.groups_.values()] == [list(c) for c in centers]


def test_agents_have_one_membership_for_all_their_votes():
    votes, kind = voting_agents()
    found = Mixture("bradley-terry", 2, restarts=3).fit(votes).groups_
    assert found.membership.shape == (30, 2)
    assert adjusted_rand_score(kind, found.likeliest) > 0.9
    assert found.voters == votes.agents
    frame = found.membership_frame()
    assert frame.columns == ["voter", "count", "group", "group 1", "group 2"]
    with pytest.raises(DataError, match="name no agents"):
        Mixture("bradley-terry", 2).fit(votes.pooled())


@pytest.mark.parametrize("ties", ["rao-kupper", "davidson"])
def test_ties_have_a_parameter_in_every_group(ties):
    votes, kind = voting_agents(ties=ties)
    found = Mixture(MODELS["bradley-terry"](ties=ties), 2, restarts=2).fit(votes).groups_
    assert adjusted_rand_score(kind, found.likeliest) > 0.9
    for c in found.values():
        assert c.tie_stderr > 0
        assert c.win_probability("a", "b") + c.win_probability("b", "a") < 1


@pytest.mark.parametrize("name", sorted(MIXED))
def test_one_group_is_the_plain_model(name):
    votes, _ = two_kinds(30, 10)
    own = {"stderr": "observed"} if name.startswith("pmop") else {}  # its own: the scatter of ballots
    plain, found = consensus(votes, name, **own), Mixture(name, 1).fit(votes).groups_
    np.testing.assert_allclose(
        found[1].scores, plain.scores, atol=1e-3
    )  # a learned width of the prior is known to 0.5%
    if plain.stderr is not None:
        np.testing.assert_allclose(found[1].stderr, plain.stderr, rtol=0.05)  # less the uncertainty of that width
    assert found.shares.tolist() == [1.0]


def test_one_group_of_agents_is_the_plain_model():
    votes, _ = voting_agents()
    plain, found = consensus(votes, "bradley-terry"), Mixture("bradley-terry", 1).fit(votes).groups_
    np.testing.assert_allclose(found[1].scores, plain.scores, atol=1e-3)  # the prior's width is learned to 0.5%


@pytest.mark.parametrize("name", ["plackett-luce", "mallows"])
def test_order_and_names_do_not_matter(name):
    votes, _ = two_kinds(60, 40)
    found = Mixture(name, 2, restarts=2).fit(votes).groups_
    turned = np.random.default_rng(5).permutation(len(votes))
    shuffled = Mixture(name, 2, restarts=2).fit(votes[turned]).groups_
    np.testing.assert_allclose(shuffled.shares, found.shares, atol=1e-5)
    np.testing.assert_allclose(shuffled.membership, found.membership[turned], atol=1e-4)
    other = Rankings.from_orders([[x.upper() for x in order] for order in votes.orders()], items="FEDCBA")
    renamed = Mixture(name, 2, restarts=2).fit(other).groups_
    np.testing.assert_allclose(renamed.shares, found.shares, atol=1e-5)
    for g in (1, 2):
        np.testing.assert_allclose(renamed[g].scores[::-1], found[g].scores, atol=1e-3)


def test_weights_are_counts():
    votes, _ = two_kinds(60, 40)
    whole, once = Mixture(k=2, restarts=2).fit(votes.collapsed()).groups_, Mixture(k=2, restarts=2).fit(votes).groups_
    assert whole.log_likelihood == pytest.approx(once.log_likelihood, abs=1e-4)
    np.testing.assert_allclose(whole.share_stderr, once.share_stderr, rtol=1e-3)


@pytest.mark.parametrize("criterion", ["bic", "valid"])
def test_the_number_of_groups_is_found(criterion):
    votes, _ = two_kinds(35, 25)
    found = Mixture("mallows", criterion=criterion, most=3, restarts=1).fit(votes).groups_
    assert len(found) == 2
    assert [one.groups for one in found.tried] == [1, 2, 3]
    assert found.bic == pytest.approx(found.tried[1].bic, abs=1e-3)
    same = simulate.mallows("abcdef", 0.4, 100, random_state=1)
    assert len(Mixture("mallows", most=2, restarts=2).fit(same).groups_) == 1


def test_the_information_is_minus_the_second_derivative():
    """Louis' formula against differences of the log likelihood in all unknowns, on overlapping groups."""
    votes, _ = two_kinds(40, 30)
    votes = Rankings.from_orders([order[:3] for order in votes.orders()], items="abcdef")
    voters = voters_of(votes)
    family = family_of(MIXED["plackett-luce"](prior=1.0), voters)
    found = best_of_starts(family, voters, voters.count, 2, 2, 50, 1e-9, 0)
    n, k = family.size, 2

    def objective(x):
        a = x[k * n :]
        shares = np.exp(a) / np.exp(a).sum()
        states = [GroupFit(x[g * n : (g + 1) * n], 1.0) for g in range(k)]
        value = float(voters.count @ responsibilities(family, shares, states)[1])
        return value + sum(map(family.log_prior, states))

    x = np.concatenate([*(state.x for state in found.states), np.log(found.shares)])
    H = observed_information(family, found, voters.count)
    rng = np.random.default_rng(0)
    for _ in range(6):
        v = rng.normal(size=len(x))
        h = 1e-3
        second = (objective(x + h * v) - 2 * objective(x) + objective(x - h * v)) / h**2
        assert v @ H @ v == pytest.approx(-second, rel=2e-3)


def test_standard_errors_cover():
    """90% intervals of shares and of a difference of scores hold the truth in about 90% of 40 samples."""
    inside = []
    theta = [np.array([1.5, 0.5, -0.5, -1.5]), np.array([-1.5, -0.5, 0.5, 1.5])]
    for seed in range(40):
        parts = [
            simulate.plackett_luce(t, n, items="abcd", random_state=100 * seed + n) for t, n in zip(theta, (180, 120))
        ]
        found = Mixture(k=2, restarts=1).fit(concat(parts)).groups_
        share = abs(found.shares[0] - 0.6) / found.share_stderr[0]
        gap = found[1].scores[0] - found[1].scores[3]
        C = found[1].covariance
        error = math.sqrt(C[0, 0] + C[3, 3] - 2 * C[0, 3])
        inside += [share < 1.645, abs(gap - 3.0) / error < 1.645]
    assert 0.78 <= np.mean(inside) <= 0.99


def test_the_door_the_bootstrap_and_new_voters():
    votes, _ = two_kinds(40, 25)
    mixture = Mixture("plackett-luce", 2, restarts=2)
    found = placet.consensus(votes, mixture)
    assert isinstance(found, Groups)
    again = placet.consensus(votes, mixture, bootstrap=4)
    assert again[1].draws.shape == (4, 6)
    assert (again.share_stderr > 0).all()
    more, other = two_kinds(20, 20, seed=50)
    fitted = mixture.fit(votes)
    assert adjusted_rand_score(other, fitted.membership(more).argmax(axis=1)) > 0.9
    one = Mixture("plackett-luce", 1).fit(votes)
    assert fitted.log_likelihood(more).mean() > one.log_likelihood(more).mean() + 0.5
    with pytest.raises(ValueError, match="belong to it"):
        placet.consensus(votes, mixture, prior=3.0)
    with pytest.raises(DataError, match="other items"):
        fitted.membership(simulate.plackett_luce([0.0, 1.0], 3))


def test_wrong_parameters_are_refused():
    votes, _ = two_kinds(5, 5)
    for wrong, words in (
        ({"model": "borda"}, "plackett-luce"),
        ({"model": 3}, "not possible"),
        ({"k": 0}, "from 1 on"),
        ({"k": "many"}, "auto"),
        ({"criterion": "aic"}, "valid"),
        ({"restarts": 0}, "at least 1"),
    ):
        with pytest.raises(ValueError, match=words):
            Mixture(**({"model": "plackett-luce", "k": 2} | wrong)).fit(votes)
    with pytest.raises(DataError, match="different voters"):
        Mixture(k=2).fit(Rankings.from_orders([["a", "b"]]))


def test_spearman_ties_and_partial_ballots():
    orders = [["a", "b", ("c", "d")], ["a", "b", "c"], ["b", "a", "c", "d"]] * 8
    orders += [["d", "c", ("a", "b")], ["d", "c", "a"], ["c", "d", "b", "a"]] * 5
    votes = Rankings.from_orders(orders, items="abcd")
    found = Mixture(MODELS["mallows"](distance="spearman"), 2, restarts=2).fit(votes).groups_
    assert adjusted_rand_score(np.repeat([0, 1], [24, 15]), found.likeliest) == 1
    plain = MODELS["mallows"](distance="spearman").fit(votes)
    one = Mixture(MODELS["mallows"](distance="spearman"), 1).fit(votes).groups_
    assert one.log_likelihood == pytest.approx(-plain.fit_.value, rel=1e-6)


def test_a_last_ascent_from_an_optimum_stays_there():
    votes, _ = two_kinds(30, 20)
    mixture = Mixture(k=2, restarts=2).fit(votes)
    voters = voters_of(votes)
    family = family_of(MIXED["plackett-luce"](), voters)
    again = ascend(family, voters.count, mixture.shares_, mixture._states, 50, 1e-10)
    assert again.log_likelihood == pytest.approx(mixture.groups_.log_likelihood, abs=1e-3)


# The command and the page


def test_the_command_and_the_page(tmp_path):
    votes, _ = two_kinds(20, 12)
    file = tmp_path / "ballots.soc"
    placet.io.write(votes, file)
    run = lambda *words: CliRunner().invoke(app, ["aggregate", str(file), *words])  # noqa: E731
    members, out, page = tmp_path / "members.csv", tmp_path / "groups.csv", tmp_path / "page.html"
    result = run("--groups", "2", "-p", "restarts=2", "--json", "--members", str(members), "--report", str(page))
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert [row["group"] for row in answer["groups"]] == [1, 2]
    assert sum(row["share"] for row in answer["groups"]) == pytest.approx(1)
    assert sum(voter["count"] for voter in answer["voters"]) == 32
    assert len(members.read_text().splitlines()) == 1 + len(answer["voters"])
    assert "Groups of voters" in page.read_text()
    assert (
        run("--groups", "auto", "-m", "mallows", "-p", "most=2", "-p", "restarts=2", "--out", str(out)).exit_code == 0
    )
    assert out.read_text().startswith("group,share,item,")
    for words in (
        ("--groups", "some"),
        ("--groups", "2", "-m", "borda"),
        ("--members", "x"),
        ("--groups", "2", "-p", "x=1"),
    ):
        assert isinstance(run(*words).exception, ValueError)


def test_the_page_says_what_was_tried():
    votes, _ = two_kinds(20, 12)
    found = Mixture("mallows", most=2, restarts=1).fit(votes).groups_
    text = consensus_page(found, votes)
    assert "Numbers of groups that were tried" in text
    assert "(chosen)" in text


# Real voters


DATA = Path(os.environ.get("PLACET_DATA", Path(__file__).parents[4] / "shared" / "data")) / "preflib"
FILES = {
    "AGH 2003": "00009-agh/00009-00000001.soc",
    "AGH 2004": "00009-agh/00009-00000002.soc",
    "sushi": "00014-sushi/00014-00000001.soc",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("model", ["plackett-luce", "mallows"])
def test_voters_left_out_are_likelier_with_two_groups(name, model):
    """Every fifth ballot is left out; sushi eaters and students of AGH are of more than one kind."""
    path = DATA / FILES[name]
    if not path.exists():
        pytest.skip(f"no file {path}; set PLACET_DATA to the folder that holds preflib/{FILES[name]}")
    votes = placet.read(path)
    out = np.arange(len(votes)) % 5 == 0
    one, two = (Mixture(model, k, restarts=2, tol=1e-5).fit(votes[~out]) for k in (1, 2))
    weight = votes[out].weight
    gain = weight @ (two.log_likelihood(votes[out]) - one.log_likelihood(votes[out])) / weight.sum()
    assert gain > 0.05


def test_a_note_says_that_groups_are_hardly_told_apart():
    """One group drawn as one, or two that rank alike, is no better as two; opposite groups are."""
    rng = np.random.default_rng(0)

    def fitted(theta, k=2, **options):
        group = np.arange(120) % 2
        orders = np.argsort(-(np.array(theta)[group] + rng.gumbel(size=(120, 5))), axis=1)
        return Mixture("plackett-luce", k, **options).fit(Rankings.from_orders(orders.tolist(), items=range(5)))

    def noted(model):
        return [note for note in model.groups_.set_notes if "are hardly told apart" in note]

    steep = np.linspace(3, -3, 5)
    (said,) = noted(fitted([steep / 3, steep / 3]))
    assert said.startswith("one group describes the voters better (BIC ")
    assert not noted(fitted([steep, -steep]))
    assert not noted(fitted([steep, steep], k=1))
    (said,) = noted(fitted([steep, -steep], k=3))
    assert said.startswith("2 groups describe the voters ")
    chosen = fitted([steep, -steep], k="auto", most=2)  # which has tried one group
    assert chosen.k_ == 2
    assert not noted(chosen)
    assert [one.groups for one in chosen.tried_] == [1, 2]


def half_alike(kind, voters=60):
    """What voters of two groups say who rank two of five items alike."""
    rng = np.random.default_rng(3)
    theta = np.array([[1.5, 0.5, 0.0, -0.5, -1.5], [1.5, 0.5, -1.5, 0.5, 0.0]])[np.arange(voters) % 2]
    if kind == "ballots":
        orders = np.argsort(-(theta + rng.gumbel(size=theta.shape)), axis=1)
        return Rankings.from_orders(orders.tolist(), items=range(5))
    who = np.repeat(np.arange(voters), 8)
    i = rng.integers(0, 5, len(who))
    j = (i + rng.integers(1, 5, len(who))) % 5
    gap = theta[who, i] - theta[who, j] + rng.logistic(size=len(who))
    outcome = np.where(np.abs(gap) < 0.4, "tie", np.where(gap > 0, "a", "b"))
    return Comparisons.from_battles(i, j, outcome, agent=who, items=range(5))


@pytest.mark.parametrize(("kind", "model"), [("ballots", "plackett-luce"), ("votes", "bradley-terry")])
def test_the_joint_prior_against_its_formula(kind, model):
    """Slope and information against differences of the log posterior as it is written; the maximum beats points around it."""
    mixture = Mixture(model, 2, restarts=2, tol=1e-12)
    data = half_alike(kind)
    mixture.fit(data)
    voters = voters_of(data)
    family, prior = family_of(MIXED[model](), voters), mixture._prior
    size, n = family.size, 5
    K = prior.common**2 + prior.apart**2 * np.eye(2)

    def log_posterior(x):
        states = [GroupFit(x[g * size : (g + 1) * size], None) for g in range(2)]
        shares = np.exp(x[2 * size :]) / np.exp(x[2 * size :]).sum()
        value = float(voters.count @ responsibilities(family, shares, states)[1])
        theta = np.array([state.x[:n] for state in states])
        ties = sum(pair_likelihood.tie_parameter(family.law, state.x)[0] ** 2 for state in states) if size > n else 0.0
        return value - 0.5 * np.trace(theta.T @ np.linalg.inv(K) @ theta) - 0.5 * ties / EXTRA_PRIOR**2

    membership, each = responsibilities(family, mixture.shares_, mixture._states)
    found = MixtureFit(mixture.shares_, mixture._states, membership, float(voters.count @ each), (), True)
    x = np.concatenate([*(state.x for state in found.states), np.log(found.shares)])
    slope, H = (f(family, found, voters.count, prior) for f in (joint_slope, joint_information))
    rng, top = np.random.default_rng(0), log_posterior(x)
    assert np.abs(slope).max() < 1e-3
    far = replace(found, states=[s._replace(x=s.x + 0.3 * (s.x > 0)) for s in found.states])
    membership, each = responsibilities(family, far.shares, far.states)
    far = replace(far, membership=membership, log_likelihood=float(voters.count @ each))
    y = np.concatenate([*(state.x for state in far.states), np.log(far.shares)])
    for _ in range(6):
        v = rng.normal(size=len(x))
        v[2 * size :] -= v[2 * size :].mean()
        h = 1e-3
        second = (log_posterior(x + h * v) - 2 * top + log_posterior(x - h * v)) / h**2
        assert v @ H @ v == pytest.approx(-second, rel=2e-3)
        assert log_posterior(x + 0.05 * v) < top
        first = (log_posterior(y + h * v) - log_posterior(y - h * v)) / (2 * h)
        assert v @ joint_slope(family, far, voters.count, prior) == pytest.approx(first, rel=1e-4)


def test_half_alike_groups_lend_each_other_evidence():
    """Scores are nearer to the truth than those of groups with a prior each, and a prior that is given stays as it is."""
    error = {"learn": [], 1.0: []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=(2, 8))
        theta[1, :4] = theta[0, :4]
        theta -= theta.mean(axis=1, keepdims=True)
        orders = np.argsort(-(theta[np.arange(150) % 2] + rng.gumbel(size=(150, 8))), axis=1)
        data = Rankings.from_orders(orders.tolist(), items=range(8))
        for prior, found in error.items():
            groups = Mixture(MIXED["plackett-luce"](prior=prior), 2, restarts=2).fit(data).groups_
            joined = [note for note in groups.set_notes if note.startswith("prior: what the groups have in common")]
            assert len(joined) == (prior == "learn")
            scores = np.array([groups[1].scores, groups[2].scores])
            found.append(min(np.square(scores - theta).mean(), np.square(scores - theta[::-1]).mean()))
    assert np.mean(error["learn"]) < 0.9 * np.mean(error[1.0])
