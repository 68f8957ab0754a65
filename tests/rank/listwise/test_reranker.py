"""Listwise reranking: similarity sums against double loops, the formula, exchangeability, bad input, files."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse import csr_matrix, random_array
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import placet
from placet.data import DataError, Queries
from placet.losses import Bound
from placet.metrics import ndcg
from placet.rank import LinearRanker, ListwiseReranker, similarity
from placet.rank.listwise.reranker import _TermObjective, fit_base, list_scores


@pytest.fixture(scope="module")
def data():
    return placet.simulate.queries(40, (2, 12), 4, 3, w=[1, 1, 0, 0], noise=0.3, random_state=3)


def block_relation(queries, seed=0):
    rng = np.random.default_rng(seed)
    full = rng.random((len(queries.grade),) * 2) * (queries.query[:, None] == queries.query)
    return csr_matrix(np.where(full > 0.5, full, 0.0))


def double_loop(S, queries):
    """sum_{j != i} S[i, j] by the definition."""
    out = np.zeros(len(queries.grade))
    for a, b in zip(queries.offsets[:-1], queries.offsets[1:]):
        for i in range(a, b):
            out[i] = sum(S(i, j) for j in range(a, b) if j != i)
    return out


def slow_normalize(queries):
    Z = np.zeros_like(queries.X)
    for a, b in zip(queries.offsets[:-1], queries.offsets[1:]):
        for f in range(Z.shape[1]):
            x = queries.X[a:b, f]
            spread = x.max() - x.min()
            Z[a:b, f] = (x - x.min()) / spread if spread > 0 else 0.0
    return Z


def slow_cosine(u, v):
    return float(u @ v) / (np.linalg.norm(u) * np.linalg.norm(v)) if u.any() and v.any() else 0.0


def test_cosine_and_gaussian_sums_are_the_double_loops(data):
    Z = slow_normalize(data)
    got = similarity.sums(("cosine", "gaussian"), data.X, data.offsets, bandwidth=0.4)
    np.testing.assert_allclose(got[:, 0], double_loop(lambda i, j: slow_cosine(Z[i], Z[j]), data), atol=1e-10)
    kernel = lambda i, j: np.exp(-np.mean((Z[i] - Z[j]) ** 2) / (2 * 0.4**2))  # noqa: E731
    np.testing.assert_allclose(got[:, 1], double_loop(kernel, data), atol=1e-10)


def test_a_constant_column_says_nothing():
    Z = similarity.normalize(np.array([[5.0, 1.0], [5.0, 2.0]]), np.array([0, 2]))
    np.testing.assert_array_equal(Z, [[0.0, 0.0], [0.0, 1.0]])


def test_block_sums_of_a_user_function_do_not_depend_on_the_block(data, monkeypatch):
    whole = similarity.sums((lambda A, B: A @ B.T,), data.X, data.offsets)[:, 0]
    np.testing.assert_allclose(whole, double_loop(lambda i, j: data.X[i] @ data.X[j], data), atol=1e-9)
    monkeypatch.setattr(similarity, "BLOCK", 3)
    np.testing.assert_allclose(similarity.sums((lambda A, B: A @ B.T,), data.X, data.offsets)[:, 0], whole, atol=1e-9)


def test_relation_sums_leave_out_the_diagonal_and_turn_round(data):
    A = block_relation(data)
    got = similarity.sums(("r", "r.T"), data.X, data.offsets, {"r": A})
    dense = A.toarray()
    np.testing.assert_allclose(got[:, 0], double_loop(lambda i, j: dense[i, j], data), atol=1e-12)
    np.testing.assert_allclose(got[:, 1], double_loop(lambda i, j: dense[j, i], data), atol=1e-12)


def test_sparse_cosine_is_the_dense_one_of_rows_as_they_are():
    X = random_array((30, 9), density=0.3, rng=np.random.default_rng(0)).tocsr()
    queries = Queries(X, np.zeros(30), [0, 10, 11, 30])
    dense = X.toarray()
    expected = double_loop(lambda i, j: slow_cosine(dense[i], dense[j]), queries)
    np.testing.assert_allclose(similarity.sums(("cosine",), X, queries.offsets)[:, 0], expected, atol=1e-12)


def test_predictions_are_the_formula(data):
    base = LinearRanker("ranknet").fit(data)
    ranker = ListwiseReranker(base, ("cosine", "gaussian")).fit(data)
    T = similarity.center(similarity.sums(("cosine", "gaussian"), data.X, data.offsets), data.offsets)
    assert ranker.w_.shape == (1, 2)
    assert ranker.w_.any()
    np.testing.assert_allclose(ranker.predict(data), base.predict(data) * np.exp(T @ ranker.w_[0]), rtol=1e-12)


@pytest.mark.parametrize("positive", [False, True])
def test_weights_of_zero_give_the_base_ranking_back(data, positive):
    base = LinearRanker("ranknet").fit(data)
    ranker = ListwiseReranker(base, positive=positive).fit(data)
    ranker.w_ = np.zeros_like(ranker.w_)
    b, s = base.predict(data), ranker.predict(data)
    if not positive:
        np.testing.assert_array_equal(s, b)
    for low, high in zip(data.offsets[:-1], data.offsets[1:]):
        np.testing.assert_array_equal(np.argsort(s[low:high]), np.argsort(b[low:high]))


@settings(max_examples=20)
@given(st.randoms(use_true_random=False), st.sampled_from([1, 3]))
def test_exchangeability(random, terms):
    """Permuting the rows of a list permutes the scores."""
    data = placet.simulate.queries(12, 6, 3, random_state=random.randrange(100))
    ranker = ListwiseReranker(0, ("cosine", "gaussian"), terms=terms, l2=0.1).fit(data)
    order = np.array(random.sample(range(6), 6))
    X = data.X[6:12]
    np.testing.assert_allclose(ranker.predict(X[order]), ranker.predict(X)[order], rtol=1e-9)


def test_gradient_of_the_objective_by_differences(data):
    """The weights found are a stationary point: moving any of them does not lower the loss."""
    b, T = data.X[:, 0] + 3.0, similarity.sums(("cosine", "gaussian"), data.X, data.offsets)
    z = T / T.std(axis=0)
    problem = _TermObjective(b, z, Bound("bregman-square", data.lists()))
    w = problem.first_term(0.01, 200)
    level = problem.level

    def objective(w):
        s = level[2] * level[0] + np.exp(level[1]) * b / level[3] * np.exp(z @ w)
        return problem.bound.value_and_grad(s)[0] + 0.005 * w @ w

    for k in range(2):
        step = np.zeros(2)
        step[k] = 1e-4
        slope = (objective(w + step) - objective(w - step)) / 2e-4
        assert abs(slope) < 1e-5


def test_similarity_is_learned_where_it_decides():
    """Relevance is being unlike the others: the base knows nothing of it, the reranker finds a negative weight."""
    rng = np.random.default_rng(0)
    X, grade = [], []
    for _ in range(40):
        center = np.eye(5)[rng.integers(4) + 1]
        odd = rng.random(12) < 0.25
        rows = np.where(odd[:, None], rng.dirichlet(np.ones(5), 12), center + rng.uniform(0, 0.05, (12, 5)))
        X.append(np.column_stack([1.0 + 0.01 * rng.random(12), rows]))
        grade.append(odd.astype(float))
    data = Queries(np.concatenate(X), np.concatenate(grade), np.arange(0, 481, 12))
    ranker = ListwiseReranker(0, loss="bregman-square").fit(data[:20])
    test = data[20:]
    gain = np.nanmean(
        ndcg(ranker.predict(test), test.grade, test.offsets, 5) - ndcg(test.X[:, 0], test.grade, test.offsets, 5)
    )
    assert ranker.w_[0, 0] < 0
    assert gain > 0.3


def test_more_terms_lower_the_training_loss(data):
    base = LinearRanker("ranknet", max_iter=1000).fit(data)
    values = [
        ListwiseReranker(base, ("cosine", "gaussian"), terms=t, l2=0.0).fit(data).fit_summary_["value"] for t in (1, 4)
    ]
    assert values[1] < values[0]


def test_any_base_gives_its_scores(data):
    import lightgbm

    forest = LinearRegression().fit(data.X, data.grade)
    trees = lightgbm.train({"verbosity": -1, "min_data_in_leaf": 2}, lightgbm.Dataset(data.X, data.grade), 5)
    for base, expected in ((forest, forest.predict(data.X)), (trees, trees.predict(data.X)), (-1, data.X[:, -1])):
        ranker = ListwiseReranker(base).fit(data)
        ranker.w_[:] = 0.0
        np.testing.assert_allclose(ranker.predict(data), expected)


def test_an_unfitted_base_is_cloned_and_fitted_out_of_fold(data):
    base = LinearRanker("ranknet", max_iter=5, tol=10.0)
    ranker = ListwiseReranker(base, folds=3).fit(data)
    assert not hasattr(base, "coef_")
    np.testing.assert_allclose(ranker.base_.coef_, clone(base).fit(data).coef_)


def test_training_scores_come_from_fits_on_the_other_folds(data):
    base = LinearRanker("ranknet", max_iter=5, tol=10.0)
    _, got, _ = fit_base(base, data, None, 3, 1)
    part = np.random.default_rng(1).permutation(len(data)) % 3
    for k in range(3):
        other = clone(base).fit(data[part != k])
        np.testing.assert_allclose(got[part[data.query] == k], other.predict(data[part == k]))


def test_the_base_is_kept_where_it_is_the_best_on_the_validation_set(data):
    """Trained where dissimilarity decides, validated where the base knows all."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1.0, 1.1, 200), rng.random((200, 3)) ** 4])
    T = similarity.sums(("cosine",), X, np.arange(0, 201, 10))[:, 0]
    train = Queries(X, (np.quantile(T, 0.2) > T).astype(float), np.arange(0, 201, 10))
    valid = Queries(X, np.round(100 * X[:, 0]) - 100, np.arange(0, 201, 10))
    ranker = ListwiseReranker(0, loss="bregman-square", l2=1e-6).fit(train, valid=valid)
    assert ranker.fit_summary_["base kept"]
    assert not ranker.w_.any()
    assert ListwiseReranker(0, loss="bregman-square", l2=1e-6).fit(train).w_.any()


def test_the_validation_set_chooses_and_may_keep_the_base(data):
    base = LinearRanker("ranknet").fit(data[:20])
    ranker = ListwiseReranker(base, l2=(0.0, 1.0, 1e3)).fit(data[:20], valid=data[20:])
    at_base = np.nanmean(ndcg(base.predict(data[20:]), data[20:].grade, data[20:].offsets, 10))
    assert ranker.fit_summary_["validation"] >= at_base


def test_rows_come_back_in_the_callers_order(data):
    ranker = ListwiseReranker(0).fit(data)
    order = np.random.default_rng(0).permutation(len(data.grade))
    np.testing.assert_allclose(
        ranker.predict(data.X[order], qid=data.query[order]), ranker.predict(data)[order], rtol=1e-9
    )


@pytest.mark.parametrize("kind", ["column", "ours", "lightgbm"])
def test_saved_and_loaded(data, tmp_path, kind):
    import lightgbm

    base = {
        "column": 1,
        "ours": LinearRanker("ranknet").fit(data),
        "lightgbm": lightgbm.train({"verbosity": -1, "min_data_in_leaf": 2}, lightgbm.Dataset(data.X, data.grade), 5),
    }[kind]
    ranker = ListwiseReranker(base, ("cosine", "gaussian"), terms=2).fit(data)
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(data), ranker.predict(data))


def test_what_cannot_be_saved_says_so(data, tmp_path):
    with pytest.raises(ValueError, match="its base holds a LinearRegression"):
        ListwiseReranker(LinearRegression().fit(data.X, data.grade)).fit(data).save(tmp_path / "a")
    with pytest.raises(ValueError, match="cannot be saved"):
        ListwiseReranker(0, (lambda A, B: A @ B.T,)).fit(data).save(tmp_path / "b")


# --- bad input -------------------------------------------------------------------------------------------------------


def test_a_list_of_one_keeps_its_base_score(data):
    ranker = ListwiseReranker(0, ("cosine", "gaussian")).fit(data)
    np.testing.assert_allclose(ranker.predict(data.X[:1]), data.X[:1, 0])
    assert ranker.predict(data.X[:0]).shape == (0,)


def test_a_list_longer_than_10_000_needs_no_quadratic_memory(data):
    X = np.random.default_rng(0).normal(size=(12_000, 4))
    ranker = ListwiseReranker(0).fit(data)
    similarity.sums(("cosine",), data.X, data.offsets)
    tracemalloc.start()
    ranker.predict(X)
    similarity.sums(("gaussian",), X, np.array([0, len(X)]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000**2 * 8 / 5  # one table of pairs would be 1.15 GB


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("terms", [1, 2])
def test_the_order_of_100_000_rows_is_that_of_log_b_and_the_sums(data, sign, terms):
    """Trained on short lists and used on a long one, whose sums are ten thousand times as large."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0.5, 2.0, 100_000), rng.random((100_000, 3)) ** 3])
    ranker = ListwiseReranker(0).fit(Queries(np.abs(data.X), data.grade, data.offsets))
    ranker.w_ = np.full((terms, 1), 0.7 * sign)  # two equal terms are one with twice the factor
    ranker.v_ = np.array([[0.0, 1.0]] * terms)
    s = ranker.predict(X)
    T = similarity.sums(("cosine",), X, np.array([0, len(X)]))[:, 0]
    exact = np.log(X[:, 0]) + 0.7 * sign * (T - T.mean())
    assert np.ptp(exact) > 2000  # neither e^s nor its inverse is a number
    order = np.argsort(exact)
    assert np.isfinite(s).all()
    gaps = np.diff(exact[order])
    assert (np.diff(s[order])[gaps > 1e-9] > 0).all()
    assert (np.diff(s[order]) > -1e-9).all()


def test_signs_and_zeros_keep_their_place_in_long_lists():
    b = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])
    T = np.array([[500.0], [-700.0], [0.0], [-700.0], [500.0], [-650.0]])
    s = list_scores(b, T, (np.array([[0.0, 1.0]]), np.array([[1.0]])), np.array([0, 6]))
    assert np.argsort(s).tolist() == [0, 1, 2, 3, 5, 4]
    assert (np.sign(s) == np.sign(b)).all()
    near = list_scores(b, T / 100, (np.array([[0.0, 1.0]]), np.array([[1.0]])), np.array([0, 6]))
    np.testing.assert_allclose(near, b * np.exp(T[:, 0] / 100), rtol=1e-14)
    two = list_scores(np.r_[b, b], np.r_[T, T / 100], (np.array([[0.0, 1.0]]), np.array([[1.0]])), np.array([0, 6, 12]))
    np.testing.assert_array_equal(two, np.r_[s, near])  # what is long in one list changes nothing in another


def test_a_reranker_of_short_lists_works_on_long_ones():
    """Rows unlike the others are relevant; eight rows to learn from, 150 to rank."""

    def lists(n_queries, n, seed):
        rng = np.random.default_rng(seed)
        kind = rng.random((n_queries, n)) < 0.25
        direction = np.where(
            kind[..., None], rng.normal(size=(n_queries, n, 5)) ** 2, 3.0 + 0.1 * rng.random((n_queries, n, 5))
        )
        X = np.concatenate([np.ones((n_queries, n, 1)) + 0.01 * rng.random((n_queries, n, 1)), direction], axis=2)
        return Queries(X.reshape(-1, 6), kind.ravel().astype(float), n * np.arange(n_queries + 1))

    ranker = ListwiseReranker(0).fit(lists(60, 8, 0))
    long = lists(5, 150, 1)
    T = similarity.sums(("cosine",), long.X, long.offsets)
    formula = np.log(long.X[:, 0]) + T @ ranker.w_[0]
    expected = np.nanmean(ndcg(formula, long.grade, long.offsets, 10))
    assert ranker.score(long) == pytest.approx(expected)
    assert expected > np.nanmean(ndcg(long.X[:, 0], long.grade, long.offsets, 10)) + 0.3


def test_relations_of_the_wrong_kind(data):
    n = len(data.grade)
    with pytest.raises(DataError, match="must be a sparse matrix of shape"):
        Queries(data.X, data.grade, data.offsets, relations={"r": csr_matrix((n, n + 1))})
    nan = block_relation(data)
    nan.data[0] = np.nan
    with pytest.raises(DataError, match="1 entries that are NaN or infinite"):
        Queries(data.X, data.grade, data.offsets, relations={"r": nan})
    with pytest.raises(DataError, match="have no such relation"):
        ListwiseReranker(0, ("links",)).fit(data)
    related = Queries(data.X, data.grade, data.offsets, relations={"links": block_relation(data)})
    ranker = ListwiseReranker(0, ("links", "links.T")).fit(related)  # asymmetric: allowed, each way a kernel of its own
    with pytest.raises(DataError, match="have no such relation"):
        ranker.predict(data.X, qid=data.query)
    assert np.isfinite(ranker.predict(related)).all()


def test_labels_all_equal_and_wrong_parameters(data):
    with pytest.raises(DataError, match="nothing to learn an order from"):
        ListwiseReranker(0).fit(data.X, np.ones(len(data.grade)), data.query)
    for wrong, words in (
        ({"base": "missing"}, "not the name of a column"),
        ({"base": 99}, "not the number of a column"),
        ({"base": None}, "must be a fitted ranker"),
        ({"kernels": "cosine"}, "sequence"),
        ({"kernels": (lambda A, B: A,)}, "one number for every pair"),
        ({"kernels": (lambda A, B: np.nan * (A @ B.T),)}, "NaN or infinite"),
        ({"loss": "plackett"}, "unknown"),
        ({"l2": (0.1, 1.0)}, "validation set"),
        ({"l2": -1.0}, "not negative"),
        ({"terms": 0}, "at least 1"),
        ({"kernels": ("gaussian",), "bandwidth": 0.0}, "above 0"),
    ):
        with pytest.raises(ValueError, match=words):
            ListwiseReranker(**wrong).fit(data)
