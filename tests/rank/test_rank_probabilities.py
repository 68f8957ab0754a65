"""What scores mean: probabilities against enumeration, and a calibration that sees what is wrong."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from placet.data import DataError, Lists, Queries
from placet.losses import LOSSES
from placet.rank import LinearRanker, TreeRanker, probabilities
from placet.simulate import queries

DATA = queries(60, (2, 9), 3, grades=3, noise=0.7, random_state=1)


def places_by_enumeration(s):
    """P(row at place) summed over all orders, 50 digits."""
    with mpmath.workdps(50):
        e = [mpmath.exp(x) for x in s]
        out = [[mpmath.mpf(0)] * len(s) for _ in s]
        for order in itertools.permutations(range(len(s))):
            p = mpmath.mpf(1)
            for r, i in enumerate(order):
                p *= e[i] / sum(e[j] for j in order[r:])
            for r, i in enumerate(order):
                out[i][r] += p
        return np.array([[float(x) for x in row] for row in out])


@settings(max_examples=30)
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=5))
def test_places_equal_the_sum_over_orders(s):
    assert_allclose(probabilities.place_probabilities(s), places_by_enumeration(s), atol=1e-13)


@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("n", [30, 200])
def test_places_of_long_lists_are_doubly_stochastic(n, spread):
    s = spread * np.random.default_rng(n).normal(size=n)
    P = probabilities.place_probabilities(s)
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=0), 1, atol=1e-12)
    assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert_allclose(P[:, 0], probabilities.top1(s, np.array([0, n])), atol=1e-13)
    if spread == 0.0:
        assert_allclose(P, 1 / n, atol=1e-13)


def test_places_say_who_is_above_whom_of_two():
    P = probabilities.place_probabilities([1.0, 0.0])
    assert_allclose(P[0, 0], probabilities.probability_above(1.0, "pl-partition", {}), atol=1e-14)
    assert probabilities.place_probabilities([]).shape == (0, 0)


@pytest.mark.parametrize(
    ("loss", "params"), [("ranknet", {}), ("rao-kupper", {"tie": 0.3}), ("davidson", {"tie": -0.4})]
)
@pytest.mark.parametrize("gap", [-3.0, 0.0, 0.7])
def test_pairs_have_the_probability_that_the_loss_gives_them(loss, params, gap):
    value, _ = LOSSES[loss](np.array([gap, 0.0]), Lists([1, 0], [0, 2]), **params)
    assert probabilities.probability_above(gap, loss, params) == pytest.approx(np.exp(-value))
    tie = 1 - probabilities.probability_above(gap, loss, params) - probabilities.probability_above(-gap, loss, params)
    if loss == "ranknet":
        assert tie == pytest.approx(0)
    else:
        value, _ = LOSSES[loss](np.array([gap, 0.0]), Lists([0, 0], [0, 2]), **params)
        assert tie == pytest.approx(np.exp(-value))


@pytest.mark.parametrize("loss", sorted(name for name, record in LOSSES.items() if record.law == "order"))
def test_orders_without_ties_have_the_law_of_plackett_luce(loss):
    s = np.array([0.4, -1.0, 0.1])
    p = {}
    for order in itertools.permutations(range(3)):
        grade = np.empty(3)
        grade[list(order)] = [2, 1, 0]
        p[order] = np.exp(-LOSSES[loss](s, Lists(grade, [0, 3]))[0])
    total = sum(p.values())  # below 1 where the model has ties too
    first = [sum(v for order, v in p.items() if order[0] == i) / total for i in range(3)]
    last = [sum(v for order, v in p.items() if order[2] == i) / total for i in range(3)]
    assert_allclose(probabilities.place_probabilities(s)[:, [0, 2]], np.column_stack([first, last]), atol=1e-9)


@pytest.mark.parametrize(
    "made", [LinearRanker, lambda loss: TreeRanker(loss, n_trees=5, min_rows=3)], ids=["linear", "trees"]
)
def test_rankers_answer_in_the_order_of_the_rows(made):
    ranker = made("pl-partition").fit(DATA[:40])
    test = DATA[40:]
    X, qid = np.asarray(test.X), np.array(test.qid)[test.query]
    order = np.random.default_rng(0).permutation(len(X))
    top = ranker.top1_probability(X[order], qid[order])
    assert_allclose(np.bincount(qid[order], top)[40:], 1)
    assert_allclose(top, ranker.top1_probability(test)[order])
    s = ranker.predict(X[order])
    i, j = np.array([0, 5]), np.array([3, 1])
    assert_allclose(ranker.pairwise_probability(X[order], i, j), 1 / (1 + np.exp(s[j] - s[i])))
    tables = ranker.rank_distribution(test)
    assert [len(table) for table in tables] == np.diff(test.offsets).tolist()
    assert_allclose(np.concatenate([table[:, 0] for table in tables]), ranker.top1_probability(test), atol=1e-12)
    assert ranker.rank_distribution(X[:4])[0].shape == (4, 4)


def test_a_loss_without_probabilities_is_refused():
    ranker = LinearRanker("bregman-ce").fit(DATA)
    for ask in (ranker.top1_probability, ranker.rank_distribution, ranker.calibration):
        with pytest.raises(ValueError, match="loss 'bregman-ce' gives no probability"):
            ask(DATA)
    pairs = LinearRanker("davidson").fit(DATA)
    assert "tie" in pairs.learned_
    p = pairs.pairwise_probability(DATA, 0, 1) + pairs.pairwise_probability(DATA, 1, 0)
    assert 0.05 < p < 0.999  # the rest is a tie
    with pytest.raises(ValueError, match="pairwise_probability is defined"):
        pairs.top1_probability(DATA)


def drawn(n_queries, seed, n=8):
    """Orders drawn from Plackett-Luce with scores 1.5 X."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n, 1))
    noisy = (1.5 * X[:, 0] + rng.gumbel(size=n_queries * n)).reshape(n_queries, n)
    return Queries(X, noisy.argsort(axis=1).argsort(axis=1).ravel(), np.arange(0, n_queries * n + 1, n))


def test_a_model_that_is_right_is_calibrated_and_one_that_is_too_sure_is_not():
    ranker = LinearRanker("listmle", l2=0.0).fit(drawn(400, 0))
    test = drawn(400, 1)
    good = ranker.calibration(test)
    assert good.error < 0.02
    assert good.slope == pytest.approx(1, abs=0.08)
    assert good.n_pairs == 400 * 28
    assert good.share.sum() == pytest.approx(1)
    ranker.coef_ = 3 * ranker.coef_
    sure = ranker.calibration(test)
    assert sure.error > 0.08
    assert sure.slope == pytest.approx(good.slope / 3, rel=1e-3)
    assert (sure.observed < sure.predicted)[sure.predicted > 0.7].all()
    assert repr(sure).startswith("Calibration of 11200 pairs in 400 queries")


def test_calibration_by_hand():
    s, lists = np.array([2.0, 0.0, 1.0, 0.0, 0.0]), Lists([1, 0, 0, 0, 1], [0, 3, 5])
    # list 0: pairs (0, 1) gap 2 right, (0, 2) gap 1 right, half weight each; list 1: a pair of equal scores
    found = probabilities.calibration(s, lists, "ranknet", {}, bins=1)
    p = [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(-1)), 0.5]
    assert found.predicted == pytest.approx([(p[0] / 2 + p[1] / 2 + p[2]) / 2])
    assert found.observed == pytest.approx([0.75])
    assert (found.n_pairs, found.n_queries, found.slope) == (3, 2, np.inf)
    assert probabilities.calibration(-s, lists, "ranknet", {}).slope == 0
    with pytest.raises(DataError, match="none of the 1 queries"):
        probabilities.calibration(s[:2], Lists([1, 1], [0, 2]), "ranknet", {})
    with pytest.raises(ValueError, match="bins"):
        probabilities.calibration(s, lists, "ranknet", {}, bins=0)
