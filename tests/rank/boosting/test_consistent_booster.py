"""Consistent boosting: algorithm 1 step by step, weak learners against slow searches, edges, reasons to stop, files."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Queries
from placet.losses import LOSSES, Bound
from placet.losses.bregman import conjugate, normalized_gains
from placet.metrics import ndcg
from placet.rank import ConsistentBooster
from placet.rank.boosting import weak_rankers
from placet.rank.boosting.score_level import best_constant
from placet.rank.tree_arrays import Forest


@pytest.fixture(scope="module")
def data():
    return placet.simulate.queries(30, (2, 9), 4, 3, noise=0.3, random_state=5)


@pytest.mark.parametrize("loss", ["bregman-ce", "bregman-square", "bregman-qnorm"])
def test_the_functional_gradient_is_that_of_algorithm_1(data, loss):
    """d = grad psi*(s) - G(r) / |G(r)|_D, by the conjugate of every list (lists without gain do not count)."""
    s = np.random.default_rng(0).normal(0, 0.02, len(data.grade))
    psi = loss.removeprefix("bregman-")
    p = normalized_gains(data.lists())
    expected = np.zeros(len(s))
    for a, b in zip(data.offsets[:-1], data.offsets[1:]):
        if p[a:b].any():
            expected[a:b] = conjugate(s[a:b], psi)[1] - p[a:b]
    got = Bound(loss, data.lists()).value_and_grad(s)[1] * len(data)
    np.testing.assert_allclose(got, expected, atol=1e-9)


@pytest.mark.parametrize("loss", ["bregman-ce", "bregman-square", "bregman-qnorm", "ranknet"])
def test_the_best_constant_is_a_minimum(data, loss):
    bound = Bound(loss, data.lists())
    level = best_constant(bound)
    value = lambda c: bound.value_and_grad(np.full(bound.n_rows, c))[0]  # noqa: E731
    if loss == "ranknet":
        assert level == 0.0
    else:
        assert value(level) <= min(value(0.0), value(level + 1e-4), value(level - 1e-4)) + 1e-12


def test_published_rounds_by_hand(data):
    """Features, projection, start at 0, nothing centered: equations 3.18 to 3.21 written out."""
    booster = ConsistentBooster(
        "bregman-square", 5, step="projection", learning_rate=0.3, start="zero", center=False
    ).fit(data)
    F, w = np.zeros(len(data.grade)), np.zeros(4)
    for t in range(5):
        d = LOSSES["bregman-square"](F, data.lists())[1]
        margin = np.abs(data.X.T @ d) / np.linalg.norm(data.X, axis=0)
        k = int(margin.argmax())
        h = data.X[:, k]
        alpha = -0.3 * (d @ h) / (h @ h)
        F, w[k] = F + alpha * h, w[k] + alpha
        gamma = abs(d @ h) / (np.abs(d).sum() * np.abs(h).max())
        assert booster.rounds_[t].step == pytest.approx(alpha, rel=1e-9)
        assert booster.rounds_[t].gamma == pytest.approx(gamma, rel=1e-9)
    np.testing.assert_allclose(booster.coef_, w, rtol=1e-9)
    np.testing.assert_allclose(booster.predict(data), F, rtol=1e-9)


@pytest.mark.parametrize("learners", ["feature", "stump", "tree", "listwise", ("feature", "stump")])
@pytest.mark.parametrize("loss", ["bregman-ce", "bregman-square"])
def test_the_loss_falls_and_predictions_are_the_sum(data, learners, loss):
    booster = ConsistentBooster(loss, 25, learners=learners, min_rows=3, leaves=6).fit(data)
    values = [r.value for r in booster.rounds_]
    assert len(values) > 3
    assert all(b <= a for a, b in pairwise(values))
    s = booster.predict(data)
    assert LOSSES[loss](s, data.lists())[0] / len(data) == pytest.approx(values[-1], rel=1e-9)


def test_features_reach_the_minimum_over_their_span(data):
    """With an edge in every round boosting goes to the least-squares fit, and says that there is no edge left."""
    booster = ConsistentBooster("bregman-square", 3000, min_edge=1e-7).fit(data)
    p = normalized_gains(data.lists())
    counts = np.repeat(np.add.reduceat(p, data.offsets[:-1]) > 0, np.diff(data.offsets))
    A = np.column_stack([data.X, np.ones(len(p))])[counts]
    w = np.linalg.lstsq(A, 2 * p[counts], rcond=None)[0]
    np.testing.assert_allclose(booster.coef_, w[:4], atol=1e-4)
    assert "no weak learner has an edge" in booster.fit_summary_["stopped"]
    assert len(booster.rounds_) < 3000


def test_an_edge_that_is_bounded_below_leads_to_the_minimum_over_all_scores(data):
    """Proposition 4.  A column for each row has an edge of at least 1 / rows at every gradient; one column has none."""
    own = Queries(np.eye(len(data.grade)), data.grade, data.offsets)
    booster = ConsistentBooster("bregman-square", 400, center=False, min_edge=0.0).fit(own)
    least = Bound("bregman-square", own.lists()).value_and_grad(2 * normalized_gains(own.lists()))[0]
    assert all(r.gamma >= 1 / len(own.grade) - 1e-12 for r in booster.rounds_)
    assert booster.fit_summary_["value"] == pytest.approx(least, abs=1e-9)
    one = ConsistentBooster("bregman-square", 400, center=False, min_edge=0.0).fit(
        Queries(data.X[:, :1], data.grade, data.offsets)
    )
    assert one.fit_summary_["least edge"] < 1e-3
    assert one.fit_summary_["value"] > least + 0.01


def test_stumps_are_the_best_of_all_thresholds(data):
    d = np.random.default_rng(1).normal(size=len(data.grade))
    h, (kind, nodes) = weak_rankers.Stumps(np.ascontiguousarray(data.X)).propose(d, None, None)
    best = 0.0
    for f in range(4):
        for c in np.unique(data.X[:, f])[:-1]:
            left = data.X[:, f] <= c
            best = max(best, d[left].sum() ** 2 / left.sum() + d[~left].sum() ** 2 / (~left).sum())
    assert kind == "tree"
    assert (d @ h) ** 2 / (h @ h) == pytest.approx(best, rel=1e-9)
    np.testing.assert_array_equal(nodes.predict(np.ascontiguousarray(data.X)), h)


def test_a_value_on_the_threshold_goes_left():
    splits = np.array([0, -1, -1]), np.array([0.5, 0, 0]), np.array([1, 0, 0]), np.array([2, 0, 0])
    tree = Forest.of_splits(1, *splits, np.array([0, -1.0, 1.0]), np.array([3, 2, 1]))
    np.testing.assert_array_equal(tree.predict(np.array([[0.5], [0.6], [0.4]])), [-1, 1, -1])
    tree.check()


def test_plain_splits_tell_the_smallest_numbers_apart():
    """LightGBM takes values up to 1e-35 for 0; a stump between two of them does not."""
    X = np.array([[1e-40], [2e-40]])
    h, (_, tree) = weak_rankers.Stumps(X).propose(np.array([1.0, -1.0]), None, None)
    np.testing.assert_array_equal(tree.predict(X), h)
    assert h.tolist() == [-1.0, 1.0]


def test_a_sum_of_forests_adds_their_scores_times_their_factors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    trees = [weak_rankers.TreeLearner(X, backend, 5, 5, k).propose(rng.normal(size=60), None, None)[1][1]
             for k, backend in enumerate(("lightgbm", "sklearn", "lightgbm"))]  # fmt: skip
    whole = Forest.sum_of(list(zip(trees, (1.0, -2.0, 0.5))), 3)
    whole.check()
    expected = trees[0].predict(X) - 2 * trees[1].predict(X) + 0.5 * trees[2].predict(X)
    np.testing.assert_allclose(whole.predict(X), expected, rtol=1e-12, atol=1e-15)
    assert whole.leaves().sum() == sum(tree.leaves().sum() for tree in trees)
    assert Forest.sum_of([], 3).predict(X).tolist() == [0.0] * 60


def test_stumps_of_a_column_with_many_values_use_quantiles():
    X = np.random.default_rng(0).normal(size=(5000, 1))
    stumps = weak_rankers.Stumps(X)
    assert len(stumps.edges[0]) <= weak_rankers.N_BINS
    _, (_, nodes) = stumps.propose(np.where(X[:, 0] <= 0.3, 1.0, -1.0), None, None)
    assert nodes.threshold[0] == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("backend", ["lightgbm", "sklearn"])
def test_trees_as_arrays_predict_as_their_engine(backend):
    X = np.random.default_rng(0).normal(size=(300, 3))
    d = -np.sign(X[:, 0]) * (1 + (X[:, 1] > 0.5))
    h, (_, nodes) = weak_rankers.TreeLearner(X, backend, 8, 5, 0).propose(d, None, None)
    assert (h @ d) ** 2 / (h @ h) > 0.95 * (d @ d)
    assert (nodes.feature >= 0).sum() <= 7
    assert np.abs(h + d).max() < 0.5


def test_trees_and_stumps_look_only_at_the_rows_and_features_drawn():
    X = np.random.default_rng(0).normal(size=(200, 2))
    rows = np.arange(100)
    d = np.where(np.arange(200) < 100, -np.sign(X[:, 1]), 7 * np.sign(X[:, 1]))
    for backend in ("lightgbm", "sklearn"):
        h, _ = weak_rankers.TreeLearner(X, backend, 4, 5, 0).propose(d, rows, None)
        assert (h[rows] @ d[rows]) < -50
        _, (_, nodes) = weak_rankers.TreeLearner(X, backend, 4, 5, 0).propose(d, rows, np.array([0])) or (
            None,
            (None, None),
        )
        assert nodes is None or set(nodes.feature.tolist()) <= {0, -1}
    _, (_, nodes) = weak_rankers.Stumps(X).propose(d, rows, np.array([0]))
    assert nodes.feature[0] == 0


def test_the_edge_is_that_of_proposition_4_and_positive(data):
    booster = ConsistentBooster("bregman-ce", 20, learners=("feature", "tree"), min_rows=3).fit(data)
    assert all(0 < r.gamma <= 1 for r in booster.rounds_)
    assert booster.fit_summary_["least edge"] == min(r.gamma for r in booster.rounds_)


def test_reasons_to_stop(data):
    def reason(**params):
        return ConsistentBooster("bregman-square", **params).fit(data[:20], valid=data[20:]).fit_summary_["stopped"]

    assert "all 2 rounds" in reason(n_rounds=2)
    assert "3 rounds without a better ndcg@10" in reason(n_rounds=500, patience=3)
    flat = Queries(np.ones((4, 1)), [1, 0, 0, 1], [0, 2, 4])
    assert "no weak learner has an edge" in ConsistentBooster("bregman-square").fit(flat).fit_summary_["stopped"]
    overshoot = ConsistentBooster("bregman-ce", step="projection", learning_rate=1e3).fit(data)
    assert "raises the loss" in overshoot.fit_summary_["stopped"]


def test_the_best_round_on_the_validation_set_is_kept(data):
    booster = ConsistentBooster("bregman-square", 40, learners="stump").fit(data[:20], valid=data[20:])
    kept = booster.fit_summary_["rounds kept"]
    seen = [r.validation for r in booster.rounds_]
    assert kept == int(np.argmax(seen)) + 1
    found = np.nanmean(ndcg(booster.predict(data[20:]), data[20:].grade, data[20:].offsets, 10))
    assert found == pytest.approx(max(seen))


def test_subsampling_is_reproducible_and_shrinkage_shrinks(data):
    def fit(seed):
        drawn = {"subsample": 0.5, "feature_fraction": 0.5, "learning_rate": 0.3, "random_state": seed}
        return ConsistentBooster("bregman-ce", 20, learners="stump", **drawn).fit(data)

    np.testing.assert_array_equal(fit(1).predict(data), fit(1).predict(data))
    assert (fit(1).predict(data) != fit(2).predict(data)).any()
    whole, part = (
        ConsistentBooster("bregman-square", 1, learning_rate=r).fit(data).rounds_[0].step for r in (1.0, 0.1)
    )
    assert part == pytest.approx(0.1 * whole)


def test_the_factor_of_the_cross_entropy_changes_nothing_with_line_search(data):
    orders = [
        ConsistentBooster("bregman-ce", 15, loss_params={"beta": b}).fit(data).predict(data) / b for b in (0.01, 1.0)
    ]
    np.testing.assert_allclose(orders[0], orders[1], rtol=1e-5, atol=1e-5)


def test_sparse_features_give_the_weights_of_dense_ones():
    dense = placet.simulate.queries(20, 6, 8, density=0.4, random_state=2)
    as_dense = Queries(dense.X.toarray(), dense.grade, dense.offsets)
    a, b = (ConsistentBooster("bregman-square", 30).fit(q) for q in (dense, as_dense))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-8)
    with pytest.raises(DataError, match="dense features"):
        ConsistentBooster(learners="stump").fit(dense)


def test_listwise_terms_are_exchangeable(data):
    booster = ConsistentBooster("bregman-ce", 20, learners="listwise", kernels=("cosine", "gaussian")).fit(data)
    assert booster.listwise_coef_.any()
    X = data.X[:7]
    order = np.random.default_rng(0).permutation(7)
    np.testing.assert_allclose(booster.predict(X[order]), booster.predict(X)[order], rtol=1e-9)


def test_listwise_terms_of_a_long_list_stay_finite(data):
    booster = ConsistentBooster("bregman-ce", 20, learners="listwise").fit(data)
    assert booster.listwise_coef_.any()
    X = np.random.default_rng(0).random((20_000, 4))
    s = booster.predict(X)
    assert np.isfinite(s).all()
    z = 1e4 * np.random.default_rng(1).normal(size=(9, 1))
    table = weak_rankers.listwise_table(np.ones((9, 1)), z, np.array([0, 5, 5, 9]))
    for a, b in ((0, 5), (5, 9)):
        np.testing.assert_array_equal(table[a:b].max(axis=0), np.ones(table.shape[1]))


@pytest.mark.parametrize("learners", ["feature", "listwise", ("tree", "stump", "feature")])
def test_saved_and_loaded(data, tmp_path, learners):
    booster = ConsistentBooster("bregman-ce", 10, learners=learners, min_rows=3).fit(data)
    booster.save(tmp_path / "model")
    again = placet.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(data), booster.predict(data))
    assert again.rounds_ == booster.rounds_


def test_bad_parameters(data):
    for wrong, words in (
        ({"loss": "plackett"}, "unknown"),
        ({"loss": "davidson"}, "no learned parameters"),
        ({"learners": "bush"}, "choose from"),
        ({"learners": ()}, "choose from"),
        ({"step": "leap"}, "line-search"),
        ({"backend": "x"}, "lightgbm"),
        ({"start": "x"}, "level"),
        ({"n_rounds": 0}, "at least 1"),
        ({"subsample": 0.0}, "subsample and feature_fraction"),
    ):
        with pytest.raises(ValueError, match=words):
            ConsistentBooster(**wrong).fit(data)
    with pytest.raises(DataError, match="nothing to learn"):
        ConsistentBooster().fit(data.X, np.ones(len(data.grade)), data.query)
    with pytest.raises(DataError, match="no such relation"):
        ConsistentBooster(learners="listwise", kernels=("links",)).fit(data)
    links = {"links": csr_matrix((len(data.grade),) * 2)}
    related = Queries(data.X, data.grade, data.offsets, relations=links)
    assert np.isfinite(
        ConsistentBooster(n_rounds=3, learners="listwise", kernels=("links",)).fit(related).predict(related)
    ).all()
