"""The linear ranker: every loss, gradients, the same answer by every solver and storage, and the one-hot identity."""

import itertools
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.sparse import csr_matrix

from placet.aggregate import consensus
from placet.data import DataError, Lists, Queries, Rankings
from placet.data.parts import OnePart
from placet.losses import LOSSES
from placet.metrics import ndcg
from placet.optim import ConvergenceWarning
from placet.rank import LinearRanker
from placet.rank.feature_tables import Products, moments, times, transposed_times
from placet.rank.linear.penalized_loss import PenalizedLoss
from placet.simulate import queries

DATA = queries(40, (1, 8), 4, grades=3, noise=0.3, random_state=5)
TRAIN, TEST = DATA[:25], DATA[25:]
EXACT = sorted(name for name, record in LOSSES.items() if not record.samples)


def fitted(loss, data=TRAIN, **params):
    return LinearRanker(loss, **{"l2": 1e-2, "solver": "sgd" if LOSSES[loss].samples else "lbfgs", **params}).fit(data)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_learns_an_order(loss):
    ranker = fitted(loss, max_iter=200)
    chance = np.nanmean(ndcg(np.zeros(len(TEST.grade)), TEST.grade, TEST.offsets, 10))
    assert ranker.score(TEST) > chance + 0.5 * (1 - chance)
    assert set(ranker.learned_) == set(LOSSES[loss].learned) - set(LOSSES[loss].scaling)


@pytest.mark.parametrize("loss", EXACT)
def test_default_tolerance_is_reached_in_few_steps_whatever_the_scale_of_the_loss(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        steps = [fitted(loss, data).fit_summary_["n_iter"] for data in (TRAIN, heavier(TRAIN, 1e6))]
    assert 1 <= steps[0] < 150
    assert abs(steps[0] - steps[1]) <= 2 + steps[0] // 5  # rounding alone


@pytest.mark.parametrize("loss", ["attrank", "rank-regress"])
@pytest.mark.parametrize("factor", [0.01, 1.0])
def test_the_gradient_falls_to_its_share_of_the_start(loss, factor):
    drawn = queries(20, 40, 6, noise=0.5, random_state=0)
    data = Queries(factor * drawn.X, drawn.grade, drawn.offsets)
    f = objective(loss, data, standardize=False, l2=1e-9)
    start = np.abs(f(f.start)[1]).max()  # 0.005 to 600
    end = np.abs(f(fitted(loss, data, standardize=False, l2=1e-9).coef_)[1]).max()
    assert 1e-5 < end / start <= 1.01e-3


def heavier(data, factor):
    return Queries(data.X, data.grade, data.offsets, data.weight * factor)


def objective(loss, data=TRAIN, standardize=True, l2=0.1, **params):
    return PenalizedLoss(data, loss, l2, standardize, LOSSES[loss].training_parameters(params, 1e-12))


@pytest.mark.parametrize("loss", EXACT)
@pytest.mark.parametrize("standardize", [True, False])
def test_gradient_is_the_derivative(loss, standardize):
    f = objective(loss, standardize=standardize)
    x = f.start + np.random.default_rng(1).normal(0, 0.3, len(f.start))
    assert_allclose(f(x)[1], approx_fprime(x, lambda x: f(x)[0], 1e-6), rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("loss", [k for k, v in LOSSES.items() if v.hvp and not v.learned and v.differentiable])
def test_hessian_product_is_the_derivative_of_the_gradient(loss):
    f = objective(loss)
    rng = np.random.default_rng(1)
    x, v = rng.normal(0, 0.3, (2, len(f.start)))
    found = (f(x + 1e-5 * v)[1] - f(x - 1e-5 * v)[1]) / 2e-5
    assert_allclose(f.hvp(x, v), found, rtol=1e-4, atol=1e-5)


def test_the_constant_is_fitted_for_the_losses_that_see_a_level():
    s, lists = np.array([0.3, -0.2, 1.0]), Lists([2.0, 1.0, 0.0], [0, 3], [1.0])
    for loss in EXACT:
        moved = abs(LOSSES[loss](s + 0.5, lists)[0] - LOSSES[loss](s, lists)[0])
        assert (moved > 1e-6) == (not LOSSES[loss].shift_invariant), loss
    assert objective("bregman-square").start.shape == (5,)
    assert objective("ranknet").start.shape == (4,)
    assert abs(fitted("bregman-square").intercept_ + moments(TRAIN.X)[0] @ fitted("bregman-square").coef_) > 0.01


@pytest.mark.parametrize("loss", ["pl-partition", "pmop-fd", "ranknet", "bregman-ce", "rank-regress"])
def test_newton_and_lbfgs_agree(loss):
    a = fitted(loss, tol=1e-8).coef_
    b = fitted(loss, tol=1e-8, solver="newton").coef_
    assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_stochastic_gradients_come_near_the_optimum():
    exact = fitted("pmop-exact", tol=1e-6).coef_
    for loss in sorted(set(LOSSES) - set(EXACT)):
        found = fitted(loss, max_iter=1000, loss_params={"n_steps": 3}).coef_
        assert np.corrcoef(found, exact)[0, 1] > 0.98
    batches = LinearRanker("ranknet", 1e-2, solver="sgd", batch=5, max_iter=1500).fit(TRAIN)
    assert np.corrcoef(batches.coef_, fitted("ranknet").coef_)[0, 1] > 0.99
    again = LinearRanker("ranknet", 1e-2, solver="sgd", batch=5, max_iter=1500).fit(TRAIN)
    np.testing.assert_array_equal(batches.coef_, again.coef_)
    other = LinearRanker("ranknet", 1e-2, solver="sgd", batch=5, max_iter=1500, random_state=1).fit(TRAIN)
    assert (other.coef_ != batches.coef_).any()


def test_the_rule_of_the_paper_stops_earlier():
    paper = fitted("pmop-fd", tol=1e-6, rel_tol=1e-5, max_iter=100)
    exact = fitted("pmop-fd", tol=1e-8)
    assert paper.fit_summary_["n_iter"] < exact.fit_summary_["n_iter"]
    assert paper.fit_summary_["value"] == pytest.approx(exact.fit_summary_["value"], rel=1e-3)
    assert "rel_tol" in paper.fit_summary_["message"]


def test_the_penalty_is_the_stated_one():
    ranker = fitted("ranknet", l2=0.3, tol=1e-9)
    mean, scale = moments(TRAIN.X)
    w = ranker.coef_ * scale
    value, g = LOSSES["ranknet"](ranker.predict(TRAIN), TRAIN.lists())
    z = (TRAIN.X - mean) / scale
    assert_allclose(z.T @ g / len(TRAIN) + 0.3 * w, 0, atol=1e-8)  # stationary
    assert ranker.fit_summary_["value"] == pytest.approx(value / len(TRAIN) + 0.15 * w @ w)


def test_training_is_the_same_for_csr_and_dense_and_keeps_float32():
    X = np.where(np.random.default_rng(2).random(TRAIN.X.shape) < 0.5, 0.0, TRAIN.X)
    for loss in ("pl-partition", "bregman-ce"):
        dense = fitted(loss, Queries(X, TRAIN.grade, TRAIN.offsets), tol=1e-8)
        sparse = fitted(loss, Queries(csr_matrix(X), TRAIN.grade, TRAIN.offsets), tol=1e-8)
        assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6, atol=1e-8)
        assert_allclose(sparse.predict(csr_matrix(X)), dense.predict(X), rtol=1e-6, atol=1e-8)
        single = fitted(loss, Queries(X.astype(np.float32), TRAIN.grade, TRAIN.offsets))
        assert_allclose(single.predict(X), dense.predict(X), rtol=0.02, atol=0.02)


class OnlyFloat32(np.ndarray):
    """A table that refuses to meet double precision, so that nothing can have copied it to that."""

    def __matmul__(self, other):
        assert other.dtype == np.float32
        return np.asarray(self) @ other

    def __rmatmul__(self, other):
        assert other.dtype == np.float32
        return other @ np.asarray(self)


def test_products_run_in_the_type_of_the_table():
    rng = np.random.default_rng(0)
    X, w, g = rng.normal(size=(40_000, 3)).astype(np.float32), rng.normal(size=3), rng.normal(size=40_000)
    assert_allclose(times(X.view(OnlyFloat32), w), X.astype(float) @ w, atol=1e-5)
    exact = X.astype(float).T @ g
    for scale in (1.0, 1e60, 1e-60):  # float32 holds none of the last two
        assert_allclose(transposed_times(X.view(OnlyFloat32), scale * g), scale * exact, rtol=1e-4)
        assert_allclose(transposed_times(csr_matrix(X), scale * g), scale * exact, rtol=1e-4)
    assert not transposed_times(X, 0 * g).any()


def test_no_order_of_rows_copies_the_table():
    f = objective("pmop-fd")
    assert f.parts.data.X is TRAIN.X
    order = np.lexsort((-TRAIN.grade, TRAIN.query))
    assert (order != np.arange(len(order))).any()
    in_order = objective("pmop-fd", Queries(TRAIN.X[order], TRAIN.grade[order], TRAIN.offsets))
    x = np.array([0.3, -1.0, 0.2, 0.1])
    assert_allclose(in_order(x)[1], f(x)[1], rtol=1e-10)


def test_part_of_the_queries_is_the_objective_of_these_alone():
    f, some = objective("davidson"), np.array([1, 4, 7])
    x = f.start + 0.2
    alone = objective("davidson", TRAIN[some])
    alone.parts.data.unknowns = f.unknowns
    for a, b in zip(f.part(some)(x), alone(x)):
        assert_allclose(a, b, rtol=1e-10)


@settings(max_examples=20)
@given(st.data())
def test_moments_equal_those_of_numpy(data):
    shape = data.draw(st.tuples(st.integers(1, 30), st.integers(1, 4)))
    X = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])))
    X = X.reshape(shape).astype(float) + data.draw(st.sampled_from([0.0, 1e4]))
    expected = np.where(X.std(axis=0) > 1e-6, X.std(axis=0), 1.0)
    for table in (X, csr_matrix(X)):
        mean, scale = moments(table)
        assert_allclose(mean, X.mean(axis=0), atol=1e-9)
        assert_allclose(scale, expected, rtol=1e-9)


def test_float32_columns_far_from_zero_keep_their_deviation():
    X = (1e5 + np.random.default_rng(0).normal(size=(50_000, 1))).astype(np.float32)
    for table in (X, csr_matrix(X)):
        assert moments(table)[1][0] == pytest.approx(X.astype(float).std(), rel=1e-9)


def test_one_hot_rows_give_the_scores_of_the_aggregation_model():
    rng = np.random.default_rng(4)
    orders = []
    for _ in range(30):
        some = rng.permutation(5)[: rng.integers(2, 6)].tolist()
        orders.append([tuple(some[:2]), *some[2:]] if rng.random() < 0.5 and len(some) > 2 else some)
    ballots = Rankings.from_orders(orders, weight=rng.integers(1, 4, 30), items=range(5))
    prior = 2.0
    theta = consensus(ballots, "plackett-luce", prior=prior).scores
    X = np.eye(5)[ballots.item]
    total = ballots.weight.sum()
    ranker = LinearRanker("pl-partition", l2=1 / prior**2 / total, standardize=False, tol=1e-8, solver="newton")
    ranker.fit(Queries(X, -ballots.tier.astype(float), ballots.offsets, ballots.weight))
    assert_allclose(ranker.predict(np.eye(5)), theta, atol=1e-7)


def pearson(product, grade):
    return 0.0 if product.std() < 1e-12 else abs(np.corrcoef(product, grade)[0, 1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_second_order_features_are_those_that_correlate(dtype):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(3, 2, (500, 4)), np.ones(500)]).astype(dtype)
    z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    grade = z[:, 0] * z[:, 1] + 0.5 * z[:, 2] ** 2 - z[:, 0] * z[:, 3] + rng.normal(size=500)
    expected = [
        (a, b)
        for a, b in itertools.combinations_with_replacement(range(5), 2)
        if pearson(z[:, a] * z[:, b], grade) > 0.15
    ]
    chosen = Products.select(OnePart(Queries(X, grade, [0, 500])), 0.15)
    assert [tuple(pair) for pair in chosen.pairs] == expected
    assert {(0, 1), (0, 3)} <= set(expected)  # one falls with the grade
    table = chosen.table(X)
    assert table.dtype == dtype
    slow = np.column_stack([X, *(z[:, a] * z[:, b] for a, b in expected)]).astype(np.float64)
    assert table.shape == slow.shape
    tight = {"rtol": 1e-3, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    assert_allclose(table[3:9].dense(), slow[3:9], **tight)
    w, g = rng.normal(size=slow.shape[1]), rng.normal(size=500)
    assert_allclose(times(table, w), slow @ w, **tight)
    assert_allclose(transposed_times(table, g), slow.T @ g, **(tight | {"atol": 500 * tight["atol"]}))
    assert_allclose(
        moments(table), [slow.mean(axis=0), np.where(slow.std(axis=0) > 1e-6, slow.std(axis=0), 1)], **tight
    )


@pytest.mark.filterwarnings("ignore::placet.optim.ConvergenceWarning")
def test_second_order_features_are_never_held():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 40))
    data = Queries(X, (X[:, 0] * X[:, 1] > 0.5).astype(float), np.arange(0, 4001, 20))
    LinearRanker(second_order=0.0, max_iter=3).fit(data[:10])  # compiled before memory is counted
    tracemalloc.start()
    ranker = LinearRanker(second_order=0.0, max_iter=3).fit(data, valid=data)
    ranker.predict(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ranker.pairs_) > 800
    assert peak < 0.5 * 4000 * len(ranker.pairs_) * 8


def test_second_order_features_find_what_a_line_cannot():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    grade = (X[:, 0] * X[:, 1] > 0.5).astype(float)
    data = Queries(X, grade, np.arange(0, 1201, 12))
    plain, crossed = LinearRanker().fit(data[:70]), LinearRanker(second_order=0.15).fit(data[:70])
    assert crossed.score(data[70:]) > plain.score(data[70:]) + 0.2
    parts = crossed.explain(data, 3, 8)
    s = crossed.predict(data)
    assert sum(part for _, part in parts) == pytest.approx(s[3] - s[8])
    assert parts[0][0] == (0, 1)
    with pytest.raises(DataError, match="need dense features"):
        LinearRanker(second_order=0.15).fit(Queries(csr_matrix(X), grade, data.offsets))
    with pytest.raises(ValueError, match="second_order 1.5"):
        LinearRanker(second_order=1.5).fit(data)


def test_a_fit_that_diverges_is_an_error_and_one_that_only_stops_says_so():
    with pytest.raises(
        ValueError, match=r"training diverged: the weights grow without bound \(after \d+ steps\); lower learning_rate"
    ):
        LinearRanker("rank-regress", solver="sgd", step="plain").fit(TRAIN)
    ranker = LinearRanker("rank-regress", solver="sgd", step="plain", learning_rate=1e-3, max_iter=20).fit(TRAIN)
    assert np.isfinite(ranker.coef_).all()
    assert ranker.fit_summary_["converged"] is False
    assert "took 20 steps" in ranker.fit_summary_["message"]


def test_explanations_sum_to_the_difference():
    ranker = fitted("pmop-fd")
    s = ranker.predict(TEST)
    for X in (TEST, TEST.X, csr_matrix(TEST.X)):
        parts = ranker.explain(X, 4, 9)
        assert sum(part for _, part in parts) == pytest.approx(s[4] - s[9])
        assert [abs(part) for _, part in parts] == sorted((abs(part) for _, part in parts), reverse=True)
    with pytest.raises(IndexError, match="row -1"):
        ranker.explain(TEST, 0, -1)


def test_parameters_that_make_no_sense_are_refused():
    for params, words in (
        ({"solver": "magic"}, "solver 'magic' is unknown"),
        ({"solver": "newton", "loss": "davidson"}, "needs a loss with no learned parameters"),
        ({"loss": "pmop-mh"}, "LinearRanker needs a loss with no sampling"),
        ({"l2": -1.0}, "l2 -1.0"),
        ({"tol": 0.0}, "tol 0.0"),
        ({"batch": 3}, "belongs to solver='sgd'"),
        ({"metric": "fame@3"}, "metric 'fame'"),
    ):
        with pytest.raises(ValueError, match=words):
            LinearRanker(**params).fit(TRAIN, valid=TEST)


@pytest.mark.parametrize("loss", ["ranknet", "lambdarank", "bregman-ce"])
def test_signs_of_weights_are_kept_and_the_rest_is_optimal(loss):
    free = fitted(loss).coef_
    signs = -np.sign(free).astype(int)
    signs[2:] = 0
    ranker = fitted(loss, monotone=signs.tolist(), tol=1e-5)
    assert (ranker.coef_[:2] == 0).all()  # the data want them on the other side
    assert (ranker.coef_[2:] != 0).all()
    other = Queries(TRAIN.X[:, 2:], TRAIN.grade, TRAIN.offsets)
    assert_allclose(ranker.coef_[2:], fitted(loss, other, tol=1e-5).coef_, rtol=2e-2, atol=1e-3)
    assert_allclose(fitted(loss, monotone=np.sign(free).astype(int).tolist()).coef_, free, rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize(
    ("monotone", "more", "message"),
    [
        ([1], {}, "monotone has 1 entries; there are 4 features"),
        ([1, 2, 0, 0], {}, "monotone holds 2; give 1"),
        ([-0.9, 0.5, 0, 0], {}, "monotone holds -0.9; give 1"),
        (1, {}, "monotone is 1; give 1, -1 or 0 for each of 4 features, or map names"),
        ("1,0,0,0", {}, "monotone is '1,0,0,0'; give 1"),
        ({"length": 1}, {}, "monotone feature 'length' is unknown; choose from"),
        ([1, 0, 0, 0], {"solver": "newton"}, "monotone belongs to solver='lbfgs'"),
    ],
)
def test_signs_that_cannot_be_kept_are_refused(monotone, more, message):
    with pytest.raises(ValueError, match=message):
        fitted("ranknet", monotone=monotone, **more)
