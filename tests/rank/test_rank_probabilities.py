"""What scores mean: probabilities against enumeration, and a calibration that sees what is wrong."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from placet.data import DataError, Lists, Queries
from placet.losses import LOSSES
from placet.rank import LinearRanker, TreeRanker, probabilities, tier_probabilities
from placet.simulate import ordered_partitions, queries

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


def partitions(n):
    """Tiers of every ordered partition of n rows."""
    for tier in itertools.product(range(n), repeat=n):
        if set(tier) == set(range(max(tier) + 1)):
            yield np.array(tier)


def by_enumeration(s, loss):
    """P(row above row) and P(first, by lot among the first tier), summed over all ordered partitions."""
    above, first = np.zeros((len(s), len(s))), np.zeros(len(s))
    for tier in partitions(len(s)):
        p = np.exp(-LOSSES[loss](s, Lists(-tier.astype(float), [0, len(s)]))[0])
        above += p * (tier[:, None] < tier)
        first += p * (tier == 0) / (tier == 0).sum()
    return above, first


@settings(max_examples=25)
@given(st.lists(st.floats(-12, 12), min_size=1, max_size=5))
def test_tiers_have_their_own_probabilities_of_pairs_and_of_being_first(scores):
    s = np.array(scores)
    above, first = by_enumeration(s, "pmop-fd")
    i, j = np.nonzero(~np.eye(len(s), dtype=bool))
    by_means = by_enumeration(s, "pmop-exact")
    for loss, table in (("pmop-fd", above), ("pmop-exact", by_means[0])):
        one, other = tier_probabilities.pair_outcomes(s, i, j, loss)
        assert_allclose(one, table[i, j], atol=1e-12)
        assert_allclose(other, table[j, i], atol=1e-12)
    assert_allclose(tier_probabilities.first_shares(s, np.array([0, len(s)]), "pmop-fd"), first, atol=1e-12)
    exact = tier_probabilities.first_shares(s, np.array([0, 0, len(s)]), "pmop-exact")
    assert_allclose(exact, by_means[1], atol=1e-12)


def test_pairs_of_a_long_list_are_as_often_apart_as_in_draws():
    s = 2 * np.random.default_rng(3).normal(size=40)
    ballots = ordered_partitions(s, 20_000, random_state=1)
    tier = np.empty((20_000, 40))
    tier[ballots.ballot, ballots.item] = ballots.tier
    i, j = np.array([0, 5, int(s.argmax()), 7]), np.array([1, 3, int(s.argmin()), 2])
    one, other = tier_probabilities.pair_outcomes(s, i, j, "pmop-fd")
    assert_allclose(one, (tier[:, i] < tier[:, j]).mean(axis=0), atol=0.015)
    assert_allclose(other, (tier[:, i] > tier[:, j]).mean(axis=0), atol=0.015)
    shifted = tier_probabilities.pair_outcomes(s[::-1] + 100, 39 - i, 39 - j, "pmop-fd")
    assert_allclose(shifted[0], one, atol=1e-11)


def test_rankers_of_tiers_give_the_probabilities_of_tiers():
    data = queries(60, (3, 5), 3, grades=3, noise=0.7, random_state=1)
    ranker, test = LinearRanker("pmop-fd").fit(data[:40]), data[40:]
    X, qid = np.asarray(test.X), np.array(test.qid)[test.query]
    order = np.random.default_rng(0).permutation(len(X))
    s = ranker.predict(test)[: test.offsets[1]]
    above, first = by_enumeration(s, "pmop-fd")
    assert_allclose(ranker.top1_probability(test)[: len(s)], first, atol=1e-12)
    assert_allclose(np.bincount(qid[order], ranker.top1_probability(X[order], qid[order]))[40:], 1)
    place = np.argsort(order)
    assert_allclose(ranker.pairwise_probability(X[order], place[0], place[1], qid[order]), above[0, 1], atol=1e-12)
    found = ranker.pairwise_probability(test, [0, 1], [1, 0])
    assert_allclose(found, [above[0, 1], above[1, 0]], atol=1e-12)
    with pytest.raises(ValueError, match=r"are in different lists \(1 such pairs\)"):
        ranker.pairwise_probability(test, [0, 0], [1, len(X) - 1])
    with pytest.raises(ValueError, match="gives no useful tiers"):
        ranker.predict_tiers(test)
    staged = LinearRanker("pmop-fd", loss_params={"stage_scale": (1.0, 0.5)}).fit(data[:40])
    for ask in (staged.top1_probability, staged.calibration):
        with pytest.raises(ValueError, match="with stage_scale"):
            ask(test)
    with pytest.raises(ValueError, match="'pmop-backward' gives no probability that one row is above another"):
        LinearRanker("pmop-backward").fit(data[:20]).pairwise_probability(test, 0, 1)
    for loss, n in (("pmop-fd", 1000), ("pmop-exact", 18)):
        with pytest.raises(ValueError, match=f"has {n + 1} rows.* at most {n} rows"):
            tier_probabilities.pair_outcomes(np.zeros(n + 1), np.array([0]), np.array([1]), loss)


def test_pairs_by_means_depend_on_neither_order_shift_nor_range_of_scores():
    s, i, j = 3 * np.random.default_rng(5).normal(size=9), np.arange(8), np.arange(1, 9)
    one, other = tier_probabilities.pair_outcomes(s, i, j, "pmop-exact")
    again = tier_probabilities.pair_outcomes(s[::-1] + 1e4, 8 - i, 8 - j, "pmop-exact")
    assert_allclose(again[0], one, atol=1e-11)
    assert_allclose(again[1], other, atol=1e-11)
    # gaps of 10,000: each stage draws the best row alone, whatever underflows
    steep = np.array([-2e4, 1e4, 0.0, -1e4])
    found = tier_probabilities.pair_outcomes(steep, np.array([1, 2, 3]), np.array([2, 3, 0]), "pmop-exact")
    assert_allclose(found, [[1.0] * 3, [0.0] * 3], atol=1e-12)
    close = np.array([1e4, -1e4, -1e4 + 1.0])  # the pair that remains is that of a list of two
    found = tier_probabilities.pair_outcomes(close, np.array([2]), np.array([1]), "pmop-exact")
    alone = tier_probabilities.pair_outcomes(close[1:], np.array([1]), np.array([0]), "pmop-exact")
    assert_allclose(found, alone, atol=1e-12)


def test_rankers_by_means_give_the_probabilities_of_their_own_tiers():
    data = queries(60, (3, 5), 3, grades=3, noise=0.7, random_state=1)
    ranker, test = LinearRanker("pmop-exact").fit(data[:40]), data[40:]
    s = ranker.predict(test)[: test.offsets[1]]
    above, first = by_enumeration(s, "pmop-exact")
    assert_allclose(ranker.top1_probability(test)[: len(s)], first, atol=1e-12)
    assert_allclose(ranker.pairwise_probability(test, [0, 1], [1, 0]), [above[0, 1], above[1, 0]], atol=1e-12)
    p = ranker.calibration(test).predicted
    ranker.loss = "pmop-fd"  # the same scores under another model
    assert not np.allclose(p[:3], ranker.calibration(test).predicted[:3], atol=1e-3)


def test_draws_of_tiers_are_calibrated_and_plackett_luce_is_too_sure_of_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 1))
    lists = [ordered_partitions(2.5 * X[a : a + 4, 0], 1, random_state=a) for a in range(0, 1200, 4)]
    grade = np.concatenate([-one.tier[np.argsort(one.item)] for one in lists])
    data = Queries(X, grade - grade.min(), np.arange(0, 1201, 4))
    ranker = LinearRanker("pmop-fd", l2=0.0).fit(data)
    ranker.coef_ = np.array([2.5])
    right = ranker.calibration(data)
    assert right.error < 0.04
    assert right.slope == pytest.approx(1, abs=0.35)
    ranker.loss = "pl-partition"
    assert ranker.calibration(data).error > 0.1


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
