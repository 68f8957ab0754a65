"""A linear ranker on queries in parts: the weights, scores and metrics of the same queries in memory."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Parts, Queries
from placet.data.engines.serial import EngineError
from placet.metrics import evaluate, evaluate_parts
from placet.rank import LinearRanker, TreeRanker
from placet.rank.feature_tables import Columns, moments, moments_over


@pytest.fixture(scope="module")
def data():
    return placet.simulate.queries(60, 9, 5, noise=0.5, random_state=2)


def cut(queries, *bounds):
    return Parts.of([queries[a:b] for a, b in zip((0, *bounds), (*bounds, len(queries)))])


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "pmop-fd"},
        {"loss": "pl-partition", "solver": "newton"},
        {"loss": "davidson"},  # learns a parameter
        {"loss": "rank-regress", "standardize": False},
        {"loss": "bregman-square"},  # sees shifts
        {"loss": "ranknet", "second_order": 0.05},
    ],
    ids=lambda params: params["loss"],
)
def test_the_weights_are_those_in_memory(data, params):
    whole = LinearRanker(**params, tol=1e-6).fit(data)
    parts = LinearRanker(**params, tol=1e-6).fit(cut(data, 7, 30, 31))
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, atol=1e-10)
    assert parts.learned_ == pytest.approx(whole.learned_, abs=1e-10)
    assert parts.fit_summary_["converged"] == whole.fit_summary_["converged"]
    assert parts.pairs_.tolist() == whole.pairs_.tolist()


def test_sparse_features(data):
    X = np.where(np.abs(data.X) < 0.7, 0.0, data.X)
    dense, sparse = (Queries(M, data.grade, data.offsets) for M in (X, csr_matrix(X)))
    whole, parts = LinearRanker("ranknet").fit(dense), LinearRanker("ranknet").fit(cut(sparse, 20, 40))
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-8)
    for matrix in (X, csr_matrix(X)):
        found = moments_over(cut(Queries(matrix, data.grade, data.offsets), 20, 40), Columns().table)
        np.testing.assert_allclose(found, moments(X), rtol=1e-12)


def test_a_validation_set_in_parts_or_in_memory(data):
    train, valid = data[:40], data[40:]
    ranker = LinearRanker("ranknet", l2=0.0, metric="ndcg@3")
    whole = LinearRanker("ranknet", l2=0.0, metric="ndcg@3").fit(train, valid=valid)
    for other in (valid, cut(valid, 5)):
        ranker.fit(cut(train, 11), valid=other)
        np.testing.assert_allclose(ranker.coef_, whole.coef_, atol=1e-10)
        assert ranker.fit_summary_["validation"] == pytest.approx(whole.fit_summary_["validation"], abs=1e-12)


def test_predictions_stand_in_the_order_of_the_files(tmp_path, data):
    ranker = LinearRanker("ranknet").fit(data)
    rng = np.random.default_rng(0)
    import polars as pl

    frame = pl.DataFrame({"qid": data.query, "label": data.grade, **{f"f{k}": data.X[:, k] for k in range(5)}})
    mixed = frame[rng.permutation(len(frame)).tolist()]
    mixed.filter(pl.col("qid") < 20).write_parquet(tmp_path / "0.parquet")
    mixed.filter(pl.col("qid") >= 20).write_parquet(tmp_path / "1.parquet")
    rows = pl.concat([pl.read_parquet(path) for path in sorted(tmp_path.iterdir())])
    parts = placet.scan(tmp_path / "*.parquet")
    again = LinearRanker("ranknet").fit(parts)
    scores = again.predict(parts)
    np.testing.assert_allclose(
        scores, rows.drop("qid", "label").to_numpy() @ ranker.coef_ + ranker.intercept_, atol=1e-8
    )
    chosen = ["ndcg@5", "err@5", "map"]
    expected = evaluate(chosen, ranker.predict(data), data.grade, data.offsets)
    largest = f"err@5(max_grade={data.grade.max()})"
    for values in (evaluate_parts(chosen, scores, parts), evaluate_parts(chosen, again.predict, parts)):
        assert list(values) == ["ndcg@5", largest, "average_precision"]
        for ours, theirs in zip(values.values(), expected.values()):
            np.testing.assert_allclose(np.sort(ours), np.sort(theirs), atol=1e-9)
    assert again.score(parts, metric="ndcg@5") == pytest.approx(ranker.score(data, metric="ndcg@5"), abs=1e-9)
    with pytest.raises(ValueError, match="3 scores and"):
        evaluate_parts(chosen, scores[:3], parts)


def test_parts_that_do_not_fit_give_the_same_bytes(tmp_path, data, monkeypatch):
    placet.io.write_letor(data, tmp_path / "q.letor")
    parts = placet.scan(tmp_path / "q.letor", part_bytes=3000)
    assert len(parts) > 5
    roomy = LinearRanker("ranknet").fit(parts)
    placet.data.engines.serial.CACHE.drop()
    monkeypatch.setenv("PLACET_MEMORY", "4K")
    tight = LinearRanker("ranknet").fit(parts)
    assert tight.coef_.tobytes() == roomy.coef_.tobytes()
    assert placet.data.engines.serial.CACHE.bytes <= 4096
    placet.data.engines.serial.CACHE.drop()


def test_what_cannot_work_on_parts_says_so(data):
    parts = cut(data, 20)
    with pytest.raises(ValueError, match="trees grow on parts only on a cluster.*parts.load"):
        TreeRanker().fit(parts)
    with pytest.raises(ValueError, match="ListwiseReranker needs all queries at once.*LinearRanker and TreeRanker do"):
        placet.rank.ListwiseReranker().fit(parts)
    with pytest.raises(ValueError, match="loss 'davidson' has a level or parameters that all rows share.*pmop-fd"):
        TreeRanker("davidson").fit(parts)
    with pytest.raises(ValueError, match="solver='sgd'.*does not work on parts.*'ranknet'"):
        LinearRanker(solver="sgd").fit(parts)
    with pytest.raises(DataError, match="hold Rankings; rankers are fitted to queries"):
        LinearRanker().fit(Parts.of([placet.Rankings.from_orders([["a", "b"]])]))
    flat = Queries(data.X, np.zeros(len(data.grade)), data.offsets)
    with pytest.raises(DataError, match="none of the 60 queries has two different grades"):
        LinearRanker().fit(cut(flat, 20))
    with pytest.raises(DataError, match="validation parts have"):
        LinearRanker().fit(parts, valid=cut(placet.simulate.queries(5, 9, 4, random_state=1), 2))
    with pytest.raises(ValueError, match="engine works on data in parts"):
        LinearRanker().fit(data, engine=object())
    with pytest.raises(TypeError, match="start must be a fitted TreeRanker, the path of a saved one, or a LightGBM"):
        TreeRanker().fit(data, start="x")


class Lost:
    """An engine that loses its workers after some passes."""

    def __init__(self, passes):
        self.left = passes

    def sum(self, f, pieces, x, *, name, merge):
        self.left -= 1
        if self.left < 0:
            raise EngineError("all workers are lost")
        return placet.data.engines.serial.run(f, pieces, x, merge)


def test_a_lost_cluster_leaves_weights_to_start_from(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts, ranker = cut(data, 20, 40), LinearRanker("davidson", tol=1e-5)
    whole = LinearRanker("davidson", tol=1e-5).fit(parts)
    with pytest.raises(EngineError, match=r"all workers are lost; the best weights so far are in .*start=") as caught:
        ranker.fit(parts, engine=Lost(8))
    again = ranker.fit(parts, start=caught.value.checkpoint)
    assert again.fit_summary_["n_iter"] < whole.fit_summary_["n_iter"]
    np.testing.assert_allclose(again.coef_, whole.coef_, atol=1e-2)
    warm = LinearRanker("davidson", tol=1e-2).fit(parts, start=whole)
    assert warm.fit_summary_["n_iter"] <= 3
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(DataError, match="not a checkpoint"):
        ranker.fit(parts, start=tmp_path / "x.json")
