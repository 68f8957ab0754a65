"""Signed roots: against a slow constrained fit, monotone in the evidence, and valid as tests."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.special import ndtr

from placet import Comparisons, consensus
from placet.aggregate.result.result import Consensus


def votes(counts):
    """Comparisons from a matrix of wins of row over column."""
    counts = np.asarray(counts, float)
    i, j = np.triu_indices(len(counts), 1)
    return Comparisons(i, j, counts[i, j], counts[j, i], np.zeros(len(i)), items=range(len(counts)))


def least(counts, width, merged=None):
    """The least negative log posterior by a general optimizer, with two scores equal if they are ``merged``."""
    counts = np.asarray(counts, float)
    n = len(counts)

    def cost(free):
        theta = np.insert(free, merged[1], free[merged[0]]) if merged else free
        d = theta[:, None] - theta
        return float((counts * np.logaddexp(0, -d)).sum() + theta @ theta / (2 * width**2))

    return minimize(cost, np.zeros(n - (merged is not None)), method="BFGS", options={"gtol": 1e-9}).fun


matrices = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 6), min_size=n, max_size=n), min_size=n, max_size=n)
)


@settings(max_examples=25)
@given(matrices, st.sampled_from([0.5, 2.0]))
def test_roots_are_falls_of_the_log_posterior(counts, width):
    np.fill_diagonal(counts := np.array(counts), 0)
    c = consensus(votes(counts), "bradley-terry", prior=width)
    fall = least(counts, width, (0, 1)) - least(counts, width)
    root = math.copysign(math.sqrt(2 * max(fall, 0)), c.scores[0] - c.scores[1])
    assert c.prob_above(0, 1) == pytest.approx(ndtr(root), abs=2e-4)
    assert c.prob_above(0, 1) + c.prob_above(1, 0) == pytest.approx(1)


@settings(max_examples=40)
@given(matrices, st.sampled_from([0.5, 10.0]))
def test_another_win_never_lowers_the_probability_of_being_above(counts, width):
    np.fill_diagonal(counts := np.array(counts), 0)
    before = consensus(votes(counts), "bradley-terry", prior=width).prob_above(0, 1)
    counts[0, 1] += 1
    assert consensus(votes(counts), "bradley-terry", prior=width).prob_above(0, 1) >= before - 1e-7


@pytest.mark.parametrize("losses", [0, 1, 3])
def test_a_longer_record_is_surer_under_a_learned_prior(losses):
    wins = [losses, *range(losses + 1, 12), 20, 50, 199, 200, 400]
    found = [consensus(votes([[0, w], [losses, 0]]), "bradley-terry").prob_above(0, 1) for w in wins]
    assert (np.diff(found) >= -1e-9).all()
    crowd = np.array([[0, 3, 2, 3, 1], [2, 0, 4, 1, 2], [2, 1, 0, 3, 4], [1, 3, 2, 0, 3], [2, 3, 1, 2, 0]])
    found = []
    for more in range(0, 30, 3):
        crowd[0, 1] = 3 + more
        found.append(consensus(votes(crowd), "bradley-terry").prob_above(0, 1))
    assert (np.diff(found) >= -1e-9).all()


@pytest.mark.parametrize("prior", ["learn", 10.0])
def test_a_perfect_record_is_no_less_sure_than_one_loss(prior):
    one, none = (consensus(votes([[0, w], [200 - w, 0]]), "bradley-terry", prior=prior) for w in (199, 200))
    assert none.prob_above(0, 1) >= one.prob_above(0, 1) > 0.9999
    assert none.tiers() == [(0,), (1,)]
    assert none.enough("order")
    swept = np.triu(np.full((4, 4), 200.0), 1)
    assert len(consensus(votes(swept), "bradley-terry", prior=prior).tiers()) == 4


@pytest.mark.parametrize("prior", ["learn", 3.0, 10.0])
def test_a_short_perfect_record_is_no_proof(prior):
    """Equal items win all of four or five votes in more than one run in twenty."""
    for wins in range(1, 6):
        assert not consensus(votes([[0, wins], [0, 0]]), "bradley-terry", prior=prior).separated().any()
    assert consensus(votes([[0, 9], [0, 0]]), "bradley-terry", prior=prior).separated()[0, 1]


def test_equal_items_with_few_votes_are_hardly_ever_separated():
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(150):
        pairs = rng.binomial(3, 0.5, (5, 5))
        counts = np.triu(pairs, 1) + np.triu(3 - pairs, 1).T
        counts[0, 1:], counts[1:, 0] = 0, 0
        counts[0, 1] = rng.binomial(6, 0.5)
        counts[1, 0] = 6 - counts[0, 1]
        wrong += consensus(votes(counts), "bradley-terry", prior=10.0).separated().any()
    assert wrong <= 15  # 0.05 of 150, and 2.8 standard errors


@pytest.mark.parametrize("ties", ["rao-kupper", "davidson"])
def test_ties_and_controls_take_part(ties):
    c = Comparisons([0, 0, 1], [1, 2, 2], [60.0, 50.0, 4.0], [0.0, 0.0, 3.0], [0.0, 0.0, 2.0])
    fit = consensus(c, "bradley-terry", ties=ties, prior=10.0)
    assert fit.prob_above(0, 1) > 0.9999
    assert fit.separated()[0, 1:].all()


def test_a_part_of_the_board_and_other_errors():
    counts = np.triu(np.full((5, 5), 30.0), 1) + np.tril(np.full((5, 5), 2.0), -1)
    counts[3, :], counts[:, 3] = [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]
    whole = consensus(votes(counts), "bradley-terry")
    part = whole.with_min_support(10)
    assert part.items == (0, 1, 2, 4)
    assert part.prob_above(2, 4) == pytest.approx(whole.prob_above(2, 4))
    assert (part.separated() == consensus(votes(counts), "bradley-terry").with_min_support(10).separated()).all()
    assert consensus(votes(counts), "bradley-terry", stderr="sandwich").roots is None
    assert Consensus(("a", "b"), [1.0, 0.0], method="m", stderr=[1.0, 0.0]).prob_above("a", "b") == ndtr(1)


def board(won, lost):
    sides = ["a"] * won + ["b"] * lost, ["b"] * won + ["a"] * lost
    return consensus(Comparisons.from_battles(*sides, ["a"] * (won + lost), items="ab"), "bradley-terry", prior=2)


def test_a_win_more_never_lowers_the_bounds_of_a_score():
    """Score -+ errors gave the winner of 20 of 20 the interval -0.1 to 5.1, that of 20 of 21 the interval 0.5 to 2.3."""
    for lost in (0, 1, 3):
        bounds = [[end[0] for end in board(won, lost).interval()] for won in (3, 4, 8, 20, 60, 200)]
        assert (np.diff(bounds, axis=0) > 0).all()
    assert board(20, 0).interval()[0][0] > board(20, 1).interval()[0][0] > 0
    assert board(20, 0).interval()[1][0] > board(20, 1).interval()[1][0]
    assert board(20, 0).interval()[0][0] == pytest.approx(-board(20, 0).interval()[1][1], abs=1e-3)


def test_the_interval_of_a_perfect_record_is_a_profile():
    """Two scores s and -s with the prior's sd 2: f(s) = 20 log(1 + exp(-2 s)) + s^2 / 4."""
    f = lambda s: 20 * np.log1p(np.exp(-2 * s)) + s**2 / 4  # noqa: E731
    grid = np.linspace(0, 12, 1_200_001)
    values = f(grid)
    inside = grid[2 * (values - values.min()) <= 1.959964**2]
    low, high = board(20, 0).interval()
    assert (low[0], high[0]) == pytest.approx((inside[0], inside[-1]), abs=2e-3)
    wide = board(20, 0).interval(0.99)
    assert wide[0][0] < low[0]
    assert wide[1][0] > high[0]


def test_other_records_keep_their_normal_interval():
    votes = Comparisons.from_battles("aabbc", "bbcca", ["a", "b", "a", "a", "tie"])
    found = consensus(votes, "bradley-terry")
    z = 1.959964 * found.stderr
    np.testing.assert_allclose(found.interval(), (found.scores - z, found.scores + z), atol=1e-5)
