"""Features of the whole list: definitions by loops, exchangeability, bases of every kind, candidates of autorank."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Queries
from placet.metrics import compare, ndcg
from placet.rank import LinearRanker, ListwiseFeatures, ListwiseReranker, TreeRanker, autorank
from placet.rank.listwise.listwise_features import deviations, places
from placet.rank.search.autorank import SHORT_LIST, build_ranker

pytestmark = pytest.mark.jit


@pytest.fixture(scope="module")
def data():
    found = placet.simulate.queries(30, (1, 8), 3, 3, noise=0.3, random_state=2)
    X = np.array(found.X)
    X[::3, 1] = 0.5  # ties
    X[:5, 2] = 7.0
    return Queries(X, found.grade, found.offsets)


def test_deviation_and_place_by_loops(data):
    D, P = deviations(data.X, data), places(data.X, data)
    for a, b in zip(data.offsets[:-1], data.offsets[1:]):
        for k in range(3):
            x = data.X[a:b, k]
            spread = x.std() if np.ptp(x) > 0 else 1.0
            np.testing.assert_allclose(D[a:b, k], (x - x.mean()) / spread, atol=1e-9)
            for i in range(b - a):
                others = np.delete(x, i)
                share = (others < x[i]).sum() + 0.5 * (others == x[i]).sum()
                assert P[a + i, k] == pytest.approx(share / len(others) if len(others) else 0.5)


@pytest.mark.parametrize("base", [None, LinearRanker("ranknet"), TreeRanker(n_trees=5, min_rows=3)], ids=str)
def test_scores_are_exchangeable(data, base):
    ranker = ListwiseFeatures(base, kernels=("cosine", "gaussian")).fit(data)
    s = ranker.predict(data)
    order = np.random.default_rng(0).permutation(len(s))
    np.testing.assert_allclose(ranker.predict(data.X[order], qid=data.query[order]), s[order], rtol=1e-6, atol=1e-9)


def test_what_depends_on_the_list_is_learned():
    """Grades are those of the place in the list, and lists lie at levels of their own: one row alone says little."""
    rng = np.random.default_rng(3)
    n, m = 90, 8
    x = rng.normal(size=(n, m))
    level = 8 * rng.normal(size=(n, 1))
    grade = (x.argsort(axis=1).argsort(axis=1) >= m - 2).astype(float)
    X = np.column_stack([(x + level).ravel(), rng.normal(size=n * m)])
    flip = np.where(level > 0, 1.0, -1.0)  # a weight of one sign cannot be right for all lists
    X[:, 0] *= np.repeat(flip, m)
    whole = Queries(np.column_stack([X, np.repeat(flip, m)]), grade.ravel(), m * np.arange(n + 1))
    train, test = whole[:60], whole[60:]
    trees = TreeRanker(n_trees=60, min_rows=5)
    values = {
        name: ndcg(ranker.fit(train).predict(test), test.grade, test.offsets, 5)
        for name, ranker in (("rows", trees), ("lists", ListwiseFeatures(TreeRanker(n_trees=60, min_rows=5))))
    }
    assert compare(values["lists"], values["rows"]).low > 0.05


def test_the_metric_reaches_the_base_and_the_best_state_is_kept(data):
    train, valid = data[:20], data[20:]
    ranker = ListwiseFeatures(TreeRanker(n_trees=12, min_rows=3), metric="ndcg@3").fit(train, valid=valid)
    assert ranker.base_.metric == "ndcg@3"
    assert ranker.score(valid) == pytest.approx(ranker.fit_summary_["validation"])


def test_every_candidate_of_the_short_list_is_fitted(data):
    """Bases that are candidates themselves, whole lists among them."""
    kinds = [name for name, _ in SHORT_LIST]
    assert {"listwise", "reranker"} <= set(kinds)
    chosen = [candidate for candidate in SHORT_LIST if candidate[0] in ("listwise", "reranker")]
    choice = autorank(data[:15], data[15:], candidates=chosen, metric="ndcg@5")
    assert [trial.failure for trial in choice.trials] == [""] * len(chosen)
    assert choice.value == max(trial.value for trial in choice.trials)
    ranker = build_ranker(*chosen[-1], "ndcg@5", 3)
    assert isinstance(ranker, ListwiseReranker)
    assert (ranker.base.metric, ranker.base.random_state, ranker.metric) == ("ndcg@5", 3, "ndcg@5")


def test_a_second_stage_is_never_below_its_base_on_the_validation_set(data):
    train, valid = data[:15], data[15:]
    for name, params in SHORT_LIST:
        if name == "reranker":
            stage = build_ranker(name, params, "ndcg@10", 0).fit(train, valid=valid)
            assert stage.score(valid) >= stage.base_.score(valid)


def test_bad_input(data):
    for wrong, words in (
        ({"parts": ()}, "one or more of"),
        ({"parts": "place"}, "one or more of"),
        ({"base": 3}, "must be a ranker"),
    ):
        with pytest.raises(ValueError, match=words):
            ListwiseFeatures(**wrong).fit(data)
    with pytest.raises(DataError, match="need dense features"):
        ListwiseFeatures().fit(Queries(csr_matrix(data.X), data.grade, data.offsets))


def test_columns_that_are_equal_but_for_rounding_are_equal(tmp_path):
    """The one row of a list that has a feature lies sqrt(n - 1) deviations above the mean, whatever its value; trees
    would split between the values that rounding makes of it, and ONNX rounds otherwise.
    """
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 7, 3)) * (np.arange(7)[:, None] == rng.integers(0, 7, (60, 1, 3)))
    grade = rng.integers(0, 3, (60, 7)) + (X[:, :, 0] > 0)
    data = Queries(X.reshape(-1, 3), grade.ravel().astype(float), 7 * np.arange(61))
    assert len(np.unique(deviations(data.X, data))) > 10  # 2 in exact arithmetic
    ranker = ListwiseFeatures(TreeRanker(n_trees=20, min_rows=2)).fit(data)
    assert len(np.unique(ranker._expand(data).X[:, 3:6])) == 2
    ranker.to_onnx(tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    again = [session.run(["scores"], {"X": rows})[0] for rows in X]
    np.testing.assert_allclose(np.concatenate(again), ranker.predict(data), rtol=1e-5, atol=1e-6)
