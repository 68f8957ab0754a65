"""RankBoost, AdaRank and coordinate ascent: the published formulas written out, every weak learner, what they raise."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_matrix
from strategies import lists_and_scores

import placet
from placet.data import Queries
from placet.kernels.rank import exponential_pairs as kernels
from placet.metrics import average_precision, ndcg
from placet.rank import AdaRank, CoordinateAscent, RankBoost
from placet.rank.boosting import weak_rankers
from placet.rank.boosting.rankboost import OrderedPairs

pytestmark = pytest.mark.jit


@pytest.fixture(scope="module")
def data():
    return placet.simulate.queries(30, (2, 9), 4, 3, w=[1.0, -1.0, 0.5, 0.0], noise=0.3, random_state=5)


def pairs_of(grade, offsets):
    return [
        (q, i, j)
        for q, (a, b) in enumerate(pairwise(offsets))
        for i in range(a, b)
        for j in range(a, b)
        if grade[i] > grade[j]
    ]


@settings(max_examples=40)
@given(lists_and_scores())
def test_potential_is_that_of_all_pairs(case):
    s, lists = case
    found = pairs_of(lists.grade, lists.offsets)
    weight = np.asarray(lists.weight, float)
    if not any(weight[q] > 0 for q, _, _ in found):
        return
    queries = Queries(np.zeros((len(s), 1)), lists.grade, lists.offsets, lists.weight)
    for balance in ("pairs", "queries"):
        each = {q: sum(1 for p in found if p[0] == q) for q, _, _ in found}
        D = np.array(
            [weight[q] / (each[q] if balance == "queries" else 1) * math.exp(s[j] - s[i]) for q, i, j in found]
        )
        expected = np.zeros(len(s))
        for (_, i, j), d in zip(found, D / D.sum()):
            expected[i] += d
            expected[j] -= d
        log_z, potential = OrderedPairs(queries, balance).log_sum(np.asarray(s))
        assert log_z == pytest.approx(math.log(D.sum()), rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(potential, expected, atol=1e-11)


def test_potential_is_finite_far_away():
    queries = Queries(np.zeros((4, 1)), [2, 1, 0, 0], [0, 4])
    log_z, potential = OrderedPairs(queries, "pairs").log_sum(np.array([-1e4, 0.0, 1e4, 1e4]))
    assert log_z == pytest.approx(2e4 + math.log(2))
    np.testing.assert_allclose(potential, [1, 0, -0.5, -0.5], atol=1e-12)


def test_rounds_of_rankboost_by_hand(data):
    """All thresholds of all features, all pairs, the third method of the paper."""
    booster = RankBoost(4, learners="stump").fit(data)
    found = pairs_of(data.grade, data.offsets)
    s, start = np.zeros(len(data.grade)), len(found)
    for t in range(4):
        D = np.array([math.exp(s[j] - s[i]) for _, i, j in found])
        D /= D.sum()
        best, chosen = 0.0, None
        for f in range(4):
            for c in np.unique(data.X[:, f])[:-1]:
                h = (data.X[:, f] > c).astype(float)
                r = sum(d * (h[i] - h[j]) for d, (_, i, j) in zip(D, found))
                if abs(r) > abs(best) + 1e-12:
                    best, chosen = r, h
        s = s + 0.5 * math.log((1 + best) / (1 - best)) * chosen
        assert booster.rounds_[t].gamma == pytest.approx(abs(best), rel=1e-9)
        assert booster.rounds_[t].step == pytest.approx(0.5 * math.log((1 + best) / (1 - best)), rel=1e-9)
        z = sum(math.exp(s[j] - s[i]) for _, i, j in found)
        assert booster.rounds_[t].value == pytest.approx(math.log(z / start), rel=1e-9)
    np.testing.assert_allclose(booster.predict(data) - booster.predict(data)[0], s - s[0], atol=1e-9)


@pytest.mark.parametrize("step", ["bound", "line-search"])
@pytest.mark.parametrize("learners", [*weak_rankers.LEARNERS, ("stump", "feature")])
def test_rankboost_lowers_the_exponential_loss_with_every_learner(data, learners, step):
    options = {"learners": learners, "leaves": 4, "min_rows": 3, "backend": "sklearn"}
    booster = RankBoost(20, step=step, **options).fit(data)
    values = [0.0, *(r.value for r in booster.rounds_)]
    assert len(values) > 5
    assert all(b < a for a, b in pairwise(values))
    found = pairs_of(data.grade, data.offsets)
    s = booster.predict(data)
    z = sum(math.exp(s[j] - s[i]) for _, i, j in found) / len(found)
    assert math.log(z) == pytest.approx(values[-1], rel=1e-9)
    if step == "line-search":
        slower = RankBoost(1, step="bound", **options).fit(data)
        assert values[1] <= slower.rounds_[0].value + 1e-9


def test_a_feature_that_orders_everything_ends_rankboost_in_finite_numbers():
    data = placet.simulate.queries(10, 5, 1, 3, w=[1.0], noise=1e-9, random_state=0)
    for step in ("bound", "line-search"):
        booster = RankBoost(5, learners="feature", step=step).fit(data)
        assert np.isfinite(booster.predict(data)).all()
        assert booster.score(data) == pytest.approx(1.0)


def test_sparse_features_and_rows_in_another_order(data):
    X = np.where(np.asarray(data.X) > 0.2, np.asarray(data.X), 0.0)
    dense, sparse = (Queries(x, data.grade, data.offsets) for x in (X, csr_matrix(X)))
    for ranker in (RankBoost(5, learners="feature"), AdaRank(5)):
        a, b = (ranker.fit(rows).predict(rows) for rows in (dense, sparse))
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
        order = np.random.default_rng(0).permutation(len(X))
        again = ranker.fit(X[order], data.grade[order], data.query[order]).predict(X)
        np.testing.assert_allclose(again, a, rtol=1e-6, atol=1e-9)
    values = [CoordinateAscent(1, starts=1).fit(rows).rounds_[0].value for rows in (dense, sparse)]
    assert values[0] == pytest.approx(values[1], abs=1e-3)  # later steps may part where metrics are equal


def test_rounds_of_adarank_by_hand(data):
    ranker = AdaRank(3, metric="average_precision").fit(data)
    E = lambda s: average_precision(s, data.grade, data.offsets)  # noqa: E731
    counts = ~np.isnan(E(np.zeros(len(data.grade))))
    P, s = np.full(counts.sum(), 1 / counts.sum()), np.zeros(len(data.grade))
    for t in range(3):
        columns = [sign * data.X[:, f] / np.ptp(data.X[:, f]) for sign in (1, -1) for f in range(4)]
        best = max(columns, key=lambda h: P @ E(h)[counts])
        gamma = P @ E(best)[counts]
        alpha = 0.5 * math.log((1 + gamma) / (1 - gamma))
        s = s + alpha * best
        P = np.exp(-E(s)[counts])
        P /= P.sum()
        assert ranker.rounds_[t].gamma == pytest.approx(gamma, rel=1e-9)
        assert ranker.rounds_[t].step == pytest.approx(alpha, rel=1e-9)
        assert ranker.rounds_[t].value == pytest.approx(E(s)[counts].mean(), rel=1e-9)


def test_one_feature_is_not_taken_for_ever(data):
    """As published, a sum that keeps its order keeps the weights of the queries, and takes the same feature again."""
    X = np.asarray(data.X)
    data = Queries(np.where(X > 0.2, X, 0.0), data.grade, data.offsets)
    published = AdaRank(12, repeats=None).fit(data)
    assert len({round(r.gamma, 12) for r in published.rounds_[2:]}) == 1
    rested = AdaRank(12, repeats=2).fit(data)
    assert len({round(r.gamma, 12) for r in rested.rounds_}) > 3
    assert rested.fit_summary_["value"] > published.fit_summary_["value"]


@pytest.mark.parametrize("learners", [*weak_rankers.LEARNERS, ("tree", "feature")])
def test_adarank_beats_its_first_round_with_every_learner(data, learners):
    ranker = AdaRank(25, learners=learners, leaves=4, min_rows=3, backend="sklearn").fit(data)
    assert ranker.fit_summary_["value"] >= ranker.rounds_[0].value
    own = ndcg(ranker.predict(data), data.grade, data.offsets, 10)
    assert np.nanmean(own) == pytest.approx(ranker.fit_summary_["value"], rel=1e-9)
    assert ranker.score(data) > ndcg(np.zeros(len(data.grade)), data.grade, data.offsets, 10)[~np.isnan(own)].mean()


@pytest.mark.parametrize("learners", ["feature", "stump", "listwise", ("feature", "stump", "listwise")])
def test_coordinate_ascent_raises_the_metric_in_every_pass(data, learners):
    ranker = CoordinateAscent(3, starts=2, learners=learners, thresholds=3, tol=0.0).fit(data)
    assert all(r.gamma >= 0 for r in ranker.rounds_)
    assert ranker.score(data) == pytest.approx(max(r.value for r in ranker.rounds_), abs=1e-6)
    if learners == "feature":
        one = max(np.nanmean(ndcg(s * data.X[:, f], data.grade, data.offsets, 10)) for f in range(4) for s in (1, -1))
        assert ranker.score(data) > one
        assert np.sign(ranker.coef_[:2]).tolist() == [1, -1]


def test_what_is_best_on_the_validation_set_is_kept(data):
    train, valid = data[:15], data[15:]
    stumps = CoordinateAscent(2, learners="stump", thresholds=3)
    for ranker in (RankBoost(30, patience=5), AdaRank(30, patience=5), CoordinateAscent(3), stumps):
        about = ranker.fit(train, valid=valid).fit_summary_
        assert ranker.score(valid) == pytest.approx(about["validation"])
        assert about["validation"] >= max(r.validation for r in ranker.rounds_) - 1e-12


def test_stumps_by_range_are_the_best_of_all_thresholds(data):
    p = np.random.default_rng(1).normal(size=len(data.grade))
    p -= p.mean()
    h, (kind, nodes), unit = weak_rankers.Stumps(np.ascontiguousarray(data.X)).propose_by_range(p)
    best = max(abs(p[data.X[:, f] > c].sum()) for f in range(4) for c in np.unique(data.X[:, f])[:-1])
    assert abs(p @ h) == pytest.approx(best)
    np.testing.assert_array_equal(nodes.predict(np.ascontiguousarray(data.X)), h)
    assert (kind, unit, sorted(set(h))) == ("tree", 1.0, [0.0, 1.0])


def test_log_add():
    assert kernels.log_add(-np.inf, -np.inf) == -np.inf
    assert kernels.log_add(1e4, -np.inf) == 1e4
    assert kernels.log_add(0.0, 1.0) == pytest.approx(math.log(1 + math.e))


@pytest.mark.parametrize(
    ("ranker", "words"),
    [
        (RankBoost(learners="x"), "choose from"),
        (RankBoost(step="x"), "choose from"),
        (RankBoost(balance="x"), "choose from"),
        (RankBoost(learning_rate=0.0), "above 0"),
        (RankBoost(n_rounds=0), "at least 1"),
        (AdaRank(thresholds=0), "at least 1"),
        (AdaRank(repeats=0), "at least 1"),
        (AdaRank(learners=()), "choose from"),
        (CoordinateAscent(learners="tree"), "weights columns"),
        (CoordinateAscent(starts=0), "at least 1"),
        (CoordinateAscent(learners="stump", thresholds=0), "at least 1"),
    ],
)
def test_bad_parameters(data, ranker, words):
    with pytest.raises(ValueError, match=words):
        ranker.fit(data)
