"""Losses of pairs: dense sums over all pairs, reductions, kinks, tie parameters, recovery."""

import math

import choix
import numpy as np
import oracle
import pytest
from scipy import optimize

from placet import simulate
from placet.data import Lists
from placet.kernels.losses import pairs as kernels
from placet.kernels.vector import log
from placet.losses import LOSSES

TIES = {"rao-kupper": "tie", "davidson": "tie"}
PAIRS = ["ranknet", "ranksvm", "rank-regress", *TIES]


def one_list(grade, weight=1.0):
    return Lists(np.asarray(grade, float), np.array([0, len(grade)]), np.array([weight]))


def softplus(x):
    return np.logaddexp(0.0, x)


def logistic(x):
    return np.exp(-softplus(-x))


def dense(name, s, grade, tie=0.0):
    """(value, gradient, matrix of second derivatives by pair) from the table of all differences."""
    d = s[:, None] - s
    above, tied = grade[:, None] > grade, np.triu(grade[:, None] == grade, 1)
    eta, nu = softplus(tie), math.exp(tie)
    log_total = np.logaddexp(np.logaddexp(d / 2, -d / 2), tie)
    win, loss = np.exp(d / 2 - log_total), np.exp(-d / 2 - log_total)
    bend = win + loss - (win - loss) ** 2
    # value, slope and second derivative in d of a pair i above j, and of a tie
    ordered, tying = {
        "ranknet": ((softplus(-d), -logistic(-d), logistic(-d) * logistic(d)), None),
        "ranksvm": ((np.maximum(0, 1 - d), -1.0 * (d < 1.0), 1.0 * (d < 1.0)), None),
        "rank-regress": (((1 - d) ** 2, -2 * (1 - d), 2.0 + 0 * d), None),
        "rao-kupper": (
            (softplus(eta - d), -logistic(eta - d), logistic(eta - d) * logistic(d - eta)),
            (
                softplus(eta - d) + softplus(eta + d) - math.log((1 + nu) ** 2 - 1),
                logistic(eta + d) - logistic(eta - d),
                logistic(eta - d) * logistic(d - eta) + logistic(eta + d) * logistic(-eta - d),
            ),
        ),
        "davidson": (
            (log_total - d / 2, (win - loss) / 2 - 0.5, bend / 4),
            (log_total - tie, (win - loss) / 2, bend / 4),
        ),
    }[name]
    terms = [np.where(above, term, 0.0) for term in ordered]
    if tying is not None:
        terms = [a + np.where(tied, b, 0.0) for a, b in zip(terms, tying)]
    value, slope, second = terms
    return value.sum(), slope.sum(axis=1) - slope.sum(axis=0), second + second.T


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("levels", [1, 2, 5, 10_000])
def test_long_lists_match_the_table_of_all_pairs(name, levels):
    """700 rows: more than one block of a row of pairs, and a remainder."""
    rng = np.random.default_rng(levels)
    n = 700
    assert n > 2 * kernels.BLOCK
    s, grade, v = rng.normal(0, 2, n), rng.integers(0, levels, n).astype(float), rng.normal(size=n)
    params = {TIES[name]: 0.4} if name in TIES else {}
    value, grad, second = dense(name, s, grade, 0.4)
    ours, our_grad = LOSSES[name](s, one_list(grade, 2.0), **params)
    assert ours == pytest.approx(2 * value, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(our_grad, 2 * grad, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        LOSSES[name].curvature(s, one_list(grade, 2.0), **params), 2 * second.sum(axis=1), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        LOSSES[name].hvp(s, one_list(grade, 2.0), v, **params), 2 * (second.sum(axis=1) * v - second @ v), atol=1e-8
    )


@pytest.mark.parametrize("name", PAIRS)
def test_far_apart_scores_keep_their_digits(name):
    s, grade = np.array([10_000.0, -10_000.0, 9_999.5, 3.0]), np.array([1.0, 1.0, 0.0, 2.0])
    value, grad, _ = dense(name, s, grade)
    ours, our_grad = LOSSES[name](s, one_list(grade))
    assert ours == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(our_grad, grad, rtol=1e-12, atol=1e-12)


def test_pairs_of_rows_are_the_comparisons_of_choix():
    rng = np.random.default_rng(9)
    theta = rng.normal(0, 2, 12)
    winner, loser = rng.integers(0, 12, (2, 300))
    winner, loser = winner[winner != loser], loser[winner != loser]
    rows = np.column_stack([winner, loser]).ravel()
    lists = Lists(np.tile([1.0, 0.0], len(winner)), np.arange(0, len(rows) + 1, 2))
    value, _ = LOSSES["ranknet"](theta[rows], lists)
    expected = choix.log_likelihood_pairwise(list(zip(winner, loser)), theta)
    assert value == pytest.approx(-expected, rel=1e-12)


# ---- hinge


def test_hinge_slope_is_the_derivative_away_from_the_kink():
    rng = np.random.default_rng(0)
    s, grade = rng.normal(0, 1, 60), rng.integers(0, 6, 60).astype(float)
    slope = oracle.central_difference(lambda x: LOSSES["ranksvm"](x, one_list(grade))[0], s, 1e-7)
    np.testing.assert_allclose(LOSSES["ranksvm"](s, one_list(grade))[1], slope, atol=1e-4)


def test_hinge_is_flat_at_its_kink():
    value, grad = LOSSES["ranksvm"]([3.0, 2.0, 2.0], one_list([1, 0, 0]))
    assert value == 0
    assert not grad.any()
    assert not LOSSES["ranksvm"].curvature([3.0, 2.0, 2.0], one_list([1, 0, 0])).any()


def test_hinge_slopes_of_a_list_cancel_exactly():
    """Each pair is seen from both sides: rounding must not let one side count it and the other not."""
    rng = np.random.default_rng(4)
    half = np.round(rng.normal(0, 1, 1000), 1)  # tenths about 0: many differences within rounding of 1
    s = np.ravel(np.column_stack([half, -half]))
    assert LOSSES["ranksvm"](s, one_list(rng.integers(0, 9, 2000)))[1].sum() == 0


# ---- ties


def test_the_logarithm_that_runs_in_vectors():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.exp(rng.uniform(-700, 700, 200)), rng.uniform(0.5, 2, 200), 1 + 1e-9 * rng.normal(size=50)])
    assert log(1.0) == 0.0
    np.testing.assert_allclose([log(v) for v in x], np.log(x), rtol=4.5e-16)


@pytest.mark.parametrize("name", TIES)
def test_no_room_for_ties_is_bradley_terry(name):
    rng = np.random.default_rng(2)
    s, grade = rng.normal(0, 3, 30), rng.permutation(30)
    value, grad = LOSSES["ranknet"](s, one_list(grade))
    tie_value, tie_grad, slope = LOSSES[name](s, one_list(grade), **{TIES[name]: -np.inf}, parameter_gradient=True)
    assert tie_value == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(tie_grad, grad, rtol=1e-12, atol=1e-13)
    assert slope == pytest.approx({TIES[name]: 0.0}, abs=1e-300)
    assert LOSSES[name]([0.0, 1.0], one_list([1, 1]), **{TIES[name]: -np.inf})[0] == np.inf


@pytest.mark.parametrize("name", TIES)
@pytest.mark.parametrize("tie", [-30.0, -2.0, 0.0, 1.0, 30.0])
@pytest.mark.parametrize("d", [0.0, 0.5, -4.0, 60.0])
def test_the_three_results_of_a_pair_sum_to_1(name, tie, d):
    results = [LOSSES[name]([d, 0.0], one_list(grade), **{TIES[name]: tie})[0] for grade in ([1, 0], [1, 1], [0, 1])]
    assert sum(math.exp(-value) for value in results) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", TIES)
@pytest.mark.parametrize("tie", [-8.0, -1.0, 2.0, 300.0])
def test_the_tie_parameter_slopes(name, tie):
    rng = np.random.default_rng(6)
    s, lists = rng.normal(0, 2, 20), Lists(rng.integers(0, 4, 20), np.array([0, 8, 8, 20]), np.array([0.5, 1.0, 2.0]))

    def loss(x):
        return LOSSES[name](s, lists, **{TIES[name]: x}, parameter_gradient=True)

    slope = (loss(tie + 1e-5)[0] - loss(tie - 1e-5)[0]) / 2e-5
    assert loss(tie)[2][TIES[name]] == pytest.approx(slope, rel=1e-5, abs=1e-6)
    assert np.isfinite(loss(tie)[1]).all()


@pytest.mark.parametrize("name", TIES)
def test_scores_and_tie_parameter_are_recovered_together(name):
    theta, tie = np.array([1.0, 0.4, -0.2, -1.2]), 0.5
    votes = simulate.battles(theta, 40_000, model=name, tie=tie, random_state=8)
    results = [
        (grade, count) for grade, count in (([1, 0], votes.wins_i), ([1, 1], votes.ties), ([0, 1], votes.wins_j))
    ]
    rows = np.column_stack([votes.i, votes.j]).ravel()
    item = np.tile(rows, 3)
    grade = np.concatenate([np.tile(g, len(votes.i)) for g, _ in results])
    lists = Lists(grade, np.arange(0, len(item) + 1, 2), np.concatenate([count for _, count in results]))

    def objective(x):
        value, grad, slope = LOSSES[name](x[:4][item], lists, **{TIES[name]: x[4]}, parameter_gradient=True)
        by_item = np.bincount(item, grad, 4) + x[:4]
        return (value + x[:4] @ x[:4] / 2) / 40_000, np.append(by_item, slope[TIES[name]]) / 40_000

    start = np.append(np.zeros(4), LOSSES[name].learned[TIES[name]])
    fit = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-9})
    np.testing.assert_allclose(fit.x[:4], theta, atol=0.05)
    assert fit.x[4] == pytest.approx(tie, abs=0.05)
