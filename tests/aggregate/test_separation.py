"""Ranks that may be believed: coverage by simulation, the stepdown by brute force, tiers, and when there are enough votes."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
from placet import simulate
from placet.aggregate import Consensus
from placet.aggregate.result import separation


def covers(ends, truth):
    return (ends[0] <= truth) & (truth <= ends[1])


@pytest.mark.parametrize("gap", [0.0, 1e-4, 0.05])
@pytest.mark.parametrize("kind", ["votes", "ballots", "bootstrap"])
def test_rank_sets_cover_near_ties(gap, kind):
    n, runs = 6, 60
    theta = gap * np.arange(n)[::-1]
    truth = np.arange(1, n + 1)
    found = {"simultaneous": [], "marginal": []}
    for seed in range(runs):
        if kind == "ballots":
            data = simulate.plackett_luce(theta, 150, random_state=seed)
            c = placet.consensus(data, "plackett-luce", prior=10.0)
        else:
            data = simulate.battles(theta, 600, model="bradley-terry", random_state=seed)
            rounds = 200 if kind == "bootstrap" else 0
            c = placet.consensus(data, "bradley-terry", prior=10.0, bootstrap=rounds, random_state=seed)
        # without a gap every order is the truth: nothing may be separated
        found["simultaneous"].append(not c.separated().any() if gap == 0 else covers(c.rank_interval(), truth).all())
        found["marginal"].append(covers(c.rank_interval(kind="marginal"), truth) if gap else ~c.separated().any(axis=0))
    least = 0.95 - 3 * np.sqrt(0.95 * 0.05 / runs)
    assert np.mean(found["simultaneous"]) >= least
    assert np.mean(found["marginal"], axis=0).min() >= least


def test_simulated_ranks_do_not_cover_near_ties_and_the_docs_say_so():
    truth, inside = np.arange(1, 11), []
    for seed in range(20):
        votes = simulate.battles(1e-4 * np.arange(10)[::-1], 2000, model="bradley-terry", random_state=seed)
        fit = placet.consensus(votes, "bradley-terry", prior=10.0)
        inside.append(covers(fit.rank_interval(kind="simulated"), truth).all())
    assert np.mean(inside) < 0.6


def brute_force(scores, errors, stderr, level):
    """The stepdown in plain loops: reject the pairs above the quantile of the largest statistic, until none is."""
    n = len(scores)
    pairs = {(i, j) for i in range(n) for j in range(n) if i != j}
    above = set()
    while True:
        open_ = pairs - above
        largest = sorted(max([0.0] + [(e[i] - e[j]) / stderr[i][j] for i, j in open_]) for e in errors)
        critical = largest[min(int(np.ceil(level * (len(errors) + 1))) - 1, len(errors) - 1)]
        new = {(i, j) for i, j in open_ if (scores[i] - scores[j]) / stderr[i][j] > critical}
        if not new:
            return above
        above |= new


@settings(max_examples=25)
@given(st.integers(2, 6), st.integers(0, 10**6), st.floats(0.5, 4.0))
def test_the_stepdown_is_the_plain_one(n, seed, spread):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    covariance = A @ A.T + 0.1 * np.eye(n)
    scores, errors = spread * rng.normal(size=n) * 2, rng.multivariate_normal(np.zeros(n), covariance, 60)
    stderr = separation.difference_errors(None, covariance, None)
    found = separation.separated(scores, errors, stderr, 0.9)
    assert set(zip(*np.nonzero(found))) == brute_force(scores, errors, stderr, 0.9)
    single = separation.studentized(scores, stderr) > separation._quantile(
        separation.largest_differences(errors, 1 / np.where(stderr > 0, stderr, np.inf)), 0.9
    )
    assert (found | ~single).all()  # never fewer pairs than without stepping down


def test_the_largest_difference_is_that_over_all_pairs():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, shared = int(rng.integers(1, 13)), rng.choice([0.0, 1.0, 30.0])  # few items, and more
        size = np.exp(rng.normal(0, rng.choice([0.0, 2.0]), n))
        errors = rng.normal(size=(9, n)) * size + shared * rng.normal(size=(9, 1))
        weight = rng.uniform(0, 1, (n, n)) * (rng.random((n, n)) < 0.7) / np.hypot(size[:, None], size)
        expected = [max([0.0, *((x[:, None] - x) * weight).ravel()]) for x in errors]
        np.testing.assert_allclose(separation.largest_differences(errors, weight), expected, rtol=1e-12)


@settings(max_examples=25)
@given(st.integers(1, 8), st.integers(0, 10**6))
def test_ranks_lie_in_their_sets_and_no_tier_holds_a_separated_pair(n, seed):
    rng = np.random.default_rng(seed)
    scores, stderr = rng.normal(0, 2, n).round(1), rng.uniform(0.01, 1, n)
    c = Consensus(tuple(range(n)), scores, method="m", stderr=stderr)
    for kind in ("simultaneous", "marginal", "simulated"):
        assert covers(c.rank_interval(kind=kind), c.ranks).all()
    above = c.separated()
    assert not (above & above.T).any()
    for group in c.tiers():
        assert not above[np.ix_(group, group)].any()
    assert [k for group in c.tiers() for k in group] == [c.items[k] for k in c.order]


def test_known_differences_are_separated_and_equal_scores_are_not():
    c = Consensus("abc", [1.0, 1.0, 0.0], method="m", stderr=[0.0, 0.0, 0.0])
    np.testing.assert_array_equal(c.separated(), [[False, False, True], [False, False, True], [False, False, False]])
    assert c.tiers() == [("a", "b"), ("c",)]


@pytest.mark.parametrize("n", [1500, 5000])
def test_many_items_are_separated_only_beyond_chance(n):
    rng = np.random.default_rng(0)
    scores, stderr = np.concatenate([rng.normal(0, 1, n - 5), 20.0 + 20.0 * np.arange(5)]), np.ones(n)
    c = Consensus(tuple(range(n)), scores, method="m", stderr=stderr)
    low, high = c.rank_interval()
    assert (low[:-5] == 6).all()
    assert (high[:-5] == n).all()
    np.testing.assert_array_equal(low[-5:], [5, 4, 3, 2, 1])
    assert covers((low, high), c.ranks).all()
    assert "tier" in c.to_frame().columns


def test_enough_votes_depends_on_the_goal():
    c = Consensus("abcd", [9.0, 5.0, 4.9, 1.0], method="m", stderr=[0.1] * 4)
    assert c.enough("best", look="once")
    assert c.enough("best", item="d", look="once")  # it is known not to be the best
    assert c.enough("top", k=3, look="once")
    assert not c.enough("top", k=2, look="once")
    assert not c.enough("order", look="once")
    with pytest.raises(ValueError, match="goal 'all' is unknown"):
        c.enough("all", look="once")
    with pytest.raises(ValueError, match=r"k must be in 1\.\.4"):
        c.enough("top", k=5, look="once")
    with pytest.raises(ValueError, match="kind 'exact' is unknown"):
        c.rank_interval(kind="exact")


def test_nothing_to_ask_once_the_goal_is_reached():
    votes = simulate.battles([3.0, 0.02, 0.0], 3000, model="bradley-terry", random_state=1)
    board = placet.consensus(votes, "bradley-terry")
    assert board.next_pairs(3, goal="best") == []
    assert board.next_pairs(3, goal="order")


def test_order_and_names_of_items_do_not_matter():
    rng = np.random.default_rng(3)
    votes = simulate.battles(rng.normal(0, 0.3, 8), 2000, model="bradley-terry", random_state=2)
    order = rng.permutation(8)
    again = placet.Comparisons(
        order[votes.i], order[votes.j], votes.wins_i, votes.wins_j, votes.ties, items=tuple(np.argsort(order))
    )
    first, second = (placet.consensus(data, "bradley-terry") for data in (votes, again))
    agree = (first.separated() == second.separated()[np.ix_(order, order)]).mean()
    assert agree > 0.95  # critical values come from other draws


def test_a_draw_is_measured_by_the_other_draws():
    rng = np.random.default_rng(3)
    draws = rng.normal(size=(30, 1)) ** 3
    inside = np.abs(draws[:, 0] - draws.mean()) / draws.std(ddof=1)
    slow = [
        abs(draws[k, 0] - draws.mean())
        / np.sqrt(((draws - draws.mean()) ** 2).sum() - (draws[k, 0] - draws.mean()) ** 2)
        for k in range(30)
    ]
    np.testing.assert_allclose(separation.from_outside(inside), np.array(slow) * np.sqrt(28))


def test_few_draws_of_many_items_separate_nothing_that_is_equal():
    """Over standard errors in which each draw has a part, some of 60 equal items are separated in 16 of 40 samples."""
    wrong = {False: 0, True: 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scores, errors = rng.normal(size=60), rng.normal(size=(40, 60))
        stderr = separation.difference_errors(None, None, errors)
        for own in wrong:
            kind = "bootstrap" if own else "simulated"
            wrong[own] += separation.separated(scores, errors, stderr, 0.95, kind).any()
    assert wrong[True] <= 5 < wrong[False]


def test_a_board_without_items_has_no_ranks():
    board = placet.consensus(placet.Rankings.from_orders([]), "borda", bootstrap=20)
    assert [len(end) for end in board.rank_interval()] == [0, 0]


def wide_board(veterans, newcomers, seed=0):
    """Scores, standard errors and support: known veterans whose best is far ahead, and newcomers with a few votes."""
    rng = np.random.default_rng(seed)
    support = np.append(np.full(veterans, 400.0), rng.integers(1, 9, newcomers))
    scores = np.append(np.linspace(3, -3, veterans), rng.normal(0, 0.5, newcomers))
    return scores, 4 / np.sqrt(support), support


def test_the_least_useful_support_is_found():
    scores, stderr, support = wide_board(30, 200)
    least = separation.useful_support(scores, stderr, support, 0.95)
    for minimum in (1.0, 2.0, 5.0, 10.0, 20.0):
        keep = support >= minimum
        worst = separation.rank_sets_of_many(scores[keep], stderr[keep], 0.95)[1][np.argmax(scores[keep])]
        assert (worst <= 10) == (minimum >= least)
    assert least == 10.0
    turn = np.random.default_rng(1).permutation(len(scores))
    assert separation.useful_support(scores[turn], stderr[turn], support[turn], 0.95) == least


@pytest.mark.parametrize(("veterans", "newcomers"), [(30, 60), (120, 0), (5, 200)])
def test_no_support_is_suggested_where_it_is_no_use(veterans, newcomers):
    """Few items; a board that is not wide; or hardly anything left."""
    assert separation.useful_support(*wide_board(veterans, newcomers), 0.95) is None
