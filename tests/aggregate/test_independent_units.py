"""Few independent units: sign flips by brute force, exact levels, agents as units, and what a single one says."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
from placet import Comparisons, Rankings, Scores, simulate
from placet.aggregate import Consensus
from placet.aggregate.resample import clusters, net_places, resample, units_of
from placet.aggregate.result.independent_units import Units, critical_flip, fewest_units
from placet.aggregate.scores.score_consensus import _additive_parts, mean


def board(part, count=None, level=0.95):
    part = np.asarray(part, float)
    units = Units("task", part, np.ones(len(part)) if count is None else np.asarray(count, float))
    scores = units.scores
    return Consensus(tuple(range(len(scores))), scores, method="m", stderr=np.ones(len(scores)), units=units)


def brute_force(part, level):
    """The stepdown over every pattern of signs, in plain loops."""
    n_units, n = part.shape
    root = {(i, j): np.sqrt(((part[:, i] - part[:, j]) ** 2).sum()) for i in range(n) for j in range(n) if i != j}
    patterns = list(itertools.product([1, -1], repeat=n_units))
    sums = [np.array(signs) @ part for signs in patterns]
    ratio = lambda s, i, j: (s[i] - s[j]) / root[i, j] if root[i, j] > 1e-9 else 0.0  # noqa: E731
    seen, above = part.sum(axis=0), set()
    while True:
        open_ = set(root) - above
        largest = [max(ratio(s, i, j) for i, j in open_) if open_ else 0.0 for s in sums]
        share = lambda x: np.mean([m >= x - 1e-9 for m in largest])  # noqa: E731, B023
        new = {(i, j) for i, j in open_ if ratio(seen, i, j) > 0 and share(ratio(seen, i, j)) <= 1 - level + 1e-12}
        if not new:
            return above
        above |= new


@settings(max_examples=25)
@given(st.integers(1, 8), st.integers(2, 4), st.integers(0, 10**6), st.sampled_from([0.8, 0.9, 0.95]))
def test_separation_is_that_over_all_signs(n_units, n, seed, level):
    rng = np.random.default_rng(seed)
    part = rng.integers(-3, 4, (n_units, n)) + rng.integers(0, 3) * np.arange(n)[::-1]
    found = board(part).separated(level)
    assert set(zip(*np.nonzero(found))) == brute_force(part.astype(float), level)


def test_a_count_is_that_many_units():
    part = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, -3.0]])
    one, many = board(part, [4, 3]), board(np.repeat(part, [4, 3], axis=0))
    np.testing.assert_array_equal(one.separated(0.9), many.separated(0.9))
    np.testing.assert_allclose(sorted(one.units.flipped(0)[:, 0]), sorted(many.units.flipped(0)[:, 0]), atol=1e-12)
    large = board(part, [40, 30])
    assert large.units.flipped(0).shape == (2000, 3)
    spread = large.units.flipped(0)[1:].std(axis=0)
    np.testing.assert_allclose(spread, np.sqrt(np.array([40, 30]) @ large.units.centered**2), rtol=0.1)


def test_units_that_all_agree_separate_from_six_on():
    for n_units in range(1, 9):
        found = board(np.tile([2.0, 1.0, 0.0], (n_units, 1)))
        assert found.separated().any() == (n_units >= 6)
        assert bool(found.units.notes()) == (n_units < 6)
    assert fewest_units(0.95) == 6
    assert fewest_units(0.5) == 2
    assert fewest_units(0.99) == 8
    assert critical_flip(np.array([3.0, 1.0, 2.0, 0.0]), 0.75) == pytest.approx(2.0)


def test_the_order_and_names_of_items_do_not_matter():
    rng = np.random.default_rng(0)
    part = rng.normal(size=(9, 5)) + np.arange(5)
    order = rng.permutation(5)
    whole, mixed = board(part).separated(), board(part[::-1][:, order]).separated()
    np.testing.assert_array_equal(mixed, whole[np.ix_(order, order)])
    expected = np.sqrt(((part[:, :, None] - part[:, None, :]) ** 2).sum(axis=0)) / np.abs(part).max()
    np.testing.assert_allclose(board(part).units.root, expected, atol=1e-9)
    kept = np.array([True, False, True, True, False])
    rest = part[:, kept]
    np.testing.assert_allclose(board(part).units.only(kept).scores, rest.sum(axis=0) / np.abs(rest).max())


@pytest.mark.parametrize(("items", "tasks", "missing"), [(12, 10, 0.0), (10, 5, 0.0), (8, 7, 0.3)])
@pytest.mark.parametrize("method", ["mean", "mean-win-rate"])
def test_equal_models_are_rarely_separated(items, tasks, missing, method):
    """Without units: 0.84 of runs (40 x 10), 0.79 (10 x 5)."""
    wrong, runs = 0, 30
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        value = rng.normal(size=(items, tasks)) + 3 * rng.normal(size=tasks)
        hole = rng.random(value.shape) < missing
        hole[0], hole[:, 0] = False, False
        value[hole] = np.nan
        wrong += placet.consensus(Scores.from_table(value), method, bootstrap=2).separated().any()
    assert wrong / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize("method", ["borda", "schulze", "irv", "plackett-luce", "bradley-terry"])
def test_equal_items_on_few_ballots_are_rarely_separated(method):
    """Without units: Borda 0.46 of runs with 10 ballots."""
    wrong, runs = 0, 20
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        orders = [[int(k) for k in rng.permutation(6)] for _ in range(10)]
        wrong += placet.consensus(Rankings.from_orders(orders, items=range(6)), method, bootstrap=10).separated().any()
    assert wrong / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


def test_models_that_differ_are_separated_by_ten_tasks():
    rng = np.random.default_rng(1)
    value = rng.normal(0, 0.1, (5, 10)) + 3 * rng.normal(size=10) + 0.5 * np.arange(5)[:, None]
    found = placet.consensus(Scores.from_table(value), "mean", bootstrap=50)
    assert found.enough("order", look="once")
    assert found.rank_interval(kind="marginal")[0].tolist() == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("method", ["borda", "copeland", "bradley-terry", "plackett-luce"])
def test_one_vote_or_ballot_says_nothing(method):
    for data in (Comparisons.from_battles("a", "b", ["a"]), Rankings.from_orders([["a", "b", "c"]])):
        found = placet.consensus(data, method, bootstrap=20)
        assert not found.enough()
        assert not found.enough(look="once")
        assert len(found.tiers()) == 1
        assert any("alone does not say how sure the order is" in note for note in found.notes)


def test_what_tasks_add_sums_to_the_means():
    rng = np.random.default_rng(2)
    value = rng.normal(size=(4, 6))
    value[1, 2] = value[3, 4] = np.nan
    scores = Scores.from_table(value)
    there = ~np.isnan(value)
    found = _additive_parts(np.where(there, value, 0.0), there.astype(float)).sum(axis=1)
    expected = mean(scores, np.ones(6))
    np.testing.assert_allclose(found, expected - expected.mean(), atol=1e-12)


# Agents


def tasteful(rng, n=5, agents=12, each=30):
    """Votes of agents whose tastes differ around equal items."""
    taste = rng.normal(0, 1, (agents, n))
    g = np.repeat(np.arange(agents), each)
    i = rng.integers(0, n, len(g))
    j = (i + rng.integers(1, n, len(g))) % n
    won = rng.random(len(g)) < 1 / (1 + np.exp(taste[g, j] - taste[g, i]))
    return Comparisons.from_battles(i, j, np.where(won, "a", "b"), agent=g, items=range(n))


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce"])
def test_errors_by_agent_are_those_of_the_formula(method):
    votes = tasteful(np.random.default_rng(0))
    found = placet.consensus(votes, method, prior=2.0)
    theta, n, G = found.scores, 5, 12
    H, u, pull = np.eye(n) / 4, np.zeros((G, n)), np.zeros((G, n))
    for i, j, w, l, g in zip(votes.i, votes.j, votes.wins_i, votes.wins_j, votes.agent):  # noqa: E741
        p = 1 / (1 + np.exp(theta[j] - theta[i]))
        e = np.eye(n)[i] - np.eye(n)[j]
        H += (w + l) * p * (1 - p) * np.outer(e, e)
        u[g] += (l * p - w * (1 - p)) * e
        pull[g] += (w + l) * p * (1 - p) * (theta[i] - theta[j]) * e
    M = G / (G - 1) * u.T @ u + np.eye(n) / 4
    C = np.linalg.inv(H) @ M @ np.linalg.inv(H)
    center = np.eye(n) - 1 / n
    np.testing.assert_allclose(found.covariance, center @ C @ center, rtol=1e-4, atol=1e-9)
    added = (pull - u) @ np.linalg.inv(H)
    got = found.units.part - found.units.part.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(got, added - added.mean(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)
    assert any("by agent: 12 agents" in note for note in found.notes)


def test_errors_by_agent_cover_where_those_by_vote_do_not():
    inside = {"auto": [], "observed": []}
    for seed in range(40):
        votes = tasteful(np.random.default_rng(seed))
        for kind in inside:
            low, high = placet.consensus(votes, "bradley-terry", stderr=kind).interval()
            inside[kind].append((low <= 0) & (high >= 0))
    assert np.mean(inside["auto"]) > 0.9
    assert np.mean(inside["observed"]) < 0.85


def test_agents_with_one_vote_each_are_votes():
    votes = simulate.battles(np.arange(4) / 2, 60, model="bradley-terry", random_state=0)
    wins = np.stack([votes.wins_i, votes.wins_j]).astype(int)
    a = np.concatenate([np.repeat(votes.i, wins[0]), np.repeat(votes.j, wins[1])])
    b = np.concatenate([np.repeat(votes.j, wins[0]), np.repeat(votes.i, wins[1])])
    own = Comparisons.from_battles(a, b, ["a"] * len(a), agent=range(len(a)), items=range(4))
    assert clusters(own) is None
    plain, known = placet.consensus(votes, "bradley-terry"), placet.consensus(own, "bradley-terry")
    np.testing.assert_allclose(known.stderr, plain.stderr, rtol=1e-6)
    assert clusters(Comparisons.from_battles("aa", "bb", "ab", agent="xx")) is None  # a single agent


def test_a_bootstrap_draws_agents_with_all_they_gave():
    ballots = Rankings.from_orders([["a", "b"]] * 3 + [["b", "a"]] * 2, agent=["x", "x", "x", "y", "y"])
    rng = np.random.default_rng(0)
    drawn = np.array([resample(ballots, rng).weight for _ in range(200)])
    assert (drawn[:, :3] == drawn[:, :1]).all()
    assert set(drawn.sum(axis=1)) <= {4.0, 5.0, 6.0}
    found = placet.consensus(ballots, "borda", bootstrap=20)
    assert any("2 agents with all they gave" in note for note in found.notes)
    np.testing.assert_allclose(units_of(ballots).part, [[3.0, -3.0], [-2.0, 2.0]])


def test_net_places_count_items_below_less_above():
    ballots = Rankings.from_orders([["a", ("b", "c"), "d"], ["d", "a"]], items="abcd")
    np.testing.assert_array_equal(net_places(ballots), [[3, 0, 0, -3], [-1, 0, 0, 1]])


# Sentences that must be true


def test_notes_do_not_claim_to_have_learned_what_the_data_do_not_say():
    nothing = placet.consensus(Comparisons([], [], [], [], [], items=["a", "b"]), "bradley-terry")
    assert not any("learned from the data" in note for note in nothing.notes)
    assert any("which is assumed: the data compare no items" in note for note in nothing.notes)
    dated = {"time": ["2024-01-01"] * 4}
    votes = Comparisons.from_battles("aabb", "bbaa", "abab", **dated)
    one = placet.consensus(votes, "bradley-terry", drift="learn", step="1y", prior=1.0)
    assert any("which is assumed: all votes are in one step" in note for note in one.notes)
    dated["time"] = ["2024-01-01", "2024-01-01", "2026-01-01", "2026-01-01"]
    votes = Comparisons.from_battles("aabb", "bbaa", "abab", **dated)
    two = placet.consensus(votes, "bradley-terry", drift="learn", step="1y", prior=1.0)
    assert any("in a step of time, learned from the data" in note for note in two.notes)


def test_a_control_of_zeros_has_no_typical_size():
    votes = Comparisons.from_battles("aab", "bba", "aba", control={"length": [0.0, 0, 0], "style": [1.0, -1, 2]})
    found = placet.consensus(votes, "bradley-terry")
    assert found.controls["typical"].to_list() == [0.0, pytest.approx(np.sqrt(2))]
    assert "control length never differs, so the data say nothing about its effect" in found.notes


def test_a_column_that_may_say_who_voted_is_named_if_it_is_not_used():
    rows = {"model_a": ["x", "x"], "model_b": ["y", "y"], "winner": ["model_a", "model_b"], "judge": ["u", "u"]}
    assert any("column 'judge' may say who voted and was not used" in note for note in placet.read_battles(rows).notes)
    assert not any("may say who voted" in note for note in placet.read_battles(rows, agent="judge").notes)
    assert not any("may say who voted" in note for note in placet.read_battles({**rows, "agent": ["v", "w"]}).notes)


def test_an_interval_of_no_unit_or_one_is_never_nan():
    """Student's quantile is infinite then, and an error may be zero: infinity times zero is nothing that is known."""
    alone = placet.Rankings.from_orders([["x"]] * 3, agent=["u", "u", "v"], items=("x",))
    found = placet.consensus(alone, "bradley-terry")
    assert [ends.tolist() for ends in found.interval()] == [[0.0], [0.0]]
    assert found.prob_above("x", "x") == 0.5
    for n in (0, 1):
        units = Units("agent", np.tile([1.0, 0.0], (n, 1)), np.ones(n))
        one = Consensus(("x", "y"), [1.0, 0.0], method="m", stderr=[0.0, 1.0], units=units)
        assert [ends.tolist() for ends in one.interval()] == [[-np.inf] * 2, [np.inf] * 2]
        assert one.prob_above("x", "y") == 0.5
