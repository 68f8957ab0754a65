"""Every ranker of the table: rows in any order, relations in every method, interrupts, saved files, one best."""

import inspect
import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from typer.testing import CliRunner

import placet
from placet.cli import app
from placet.data import Queries
from placet.losses import LOSSES
from placet.optim import ConvergenceWarning
from placet.rank import RANKERS, LinearRanker, TreeRanker
from placet.rank.listwise.diversity import simulated_intents
from placet.rank.ranker import Ranker
from placet.rank.validation import Best

pytestmark = pytest.mark.jit
DATA = placet.simulate.queries(40, (3, 8), 3, 3, noise=0.4, random_state=4)


def related(queries, seed=0):
    """The same queries with a symmetric relation between their rows."""
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((len(queries.grade),) * 2) > 0.5, 1.0, 0.0) * (queries.query[:, None] == queries.query)
    return Queries(queries.X, queries.grade, queries.offsets, relations={"links": csr_matrix(np.maximum(A, A.T))})


RELATED = related(DATA)
RANKS = Queries(np.argsort(np.argsort(DATA.X, axis=0), axis=0) + 1.0, DATA.grade, DATA.offsets)
INTENTS = simulated_intents(12, 10, 3, 4, random_state=1)
DOCUMENTS = csr_matrix(np.tile(np.eye(4), (12, 1))), csr_matrix(np.tile(np.eye(4, 6) + np.eye(4, 6, 1), (12, 1)))
NETWORK = {"hidden": (6,), "learning_rate": 1e-2, "epochs": 4, "batch": 8}

# an unfitted ranker with parameters that make it quick, training data as fit takes them, validation data
CASES = {
    "linear": (LinearRanker("pl-partition"), (DATA[:25],), DATA[25:]),
    "trees": (TreeRanker("pl-partition", n_trees=6, min_rows=3), (DATA[:25],), DATA[25:]),
    "forest": (RANKERS["forest"]("pl-partition", 24), (DATA[:25],), DATA[25:]),
    "neural": (RANKERS["neural"]("pl-partition", **NETWORK), (DATA[:25],), DATA[25:]),
    "booster": (RANKERS["booster"]("pl-partition", 6, learners=("feature", "listwise"), kernels=("links",)), (RELATED[:25],), RELATED[25:]),
    "rankboost": (RANKERS["rankboost"](6, learners=("stump", "feature")), (DATA[:25],), DATA[25:]),
    "adarank": (RANKERS["adarank"](6, learners=("stump", "feature")), (DATA[:25],), DATA[25:]),
    "coordinate": (RANKERS["coordinate"](2, tol=0.0), (DATA[:25],), DATA[25:]),
    "surrogate": (RANKERS["surrogate"](("ce", "square"), max_evaluations=6), (DATA[:25],), DATA[25:]),
    "structrank": (RANKERS["structrank"]("linear", 1, epochs=2, starts=2), (DATA[:25],), DATA[25:]),
    "listwise": (RANKERS["listwise"](TreeRanker("pl-partition", n_trees=6, min_rows=3)), (DATA[:25],), DATA[25:]),
    "reranker": (RANKERS["reranker"](LinearRanker("ranknet"), ("links", "cosine"), "pl-partition", terms=3, positive=True), (RELATED[:25],), RELATED[25:]),
    "crf": (RANKERS["crf"]("links", loss="pl-partition"), (RELATED[:25],), RELATED[25:]),
    "diversity": (RANKERS["diversity"](0, metric="alpha_ndcg@5"), (INTENTS.queries[:8], INTENTS.judged[:80]), (INTENTS.queries[8:], INTENTS.judged[80:])),
    "fusion": (RANKERS["fusion"]([("linear", {"l2": 0.1}), ("trees", {"n_trees": 3, "min_rows": 3}), ("linear", {})]), (RANKS[:25],), RANKS[25:]),
    "blend": (RANKERS["blend"]([LinearRanker(), TreeRanker(n_trees=3, min_rows=3), LinearRanker("ranknet")]), (DATA[:25],), DATA[25:]),
    "labels": (RANKERS["labels"]("pl-partition", **NETWORK), DOCUMENTS, DOCUMENTS),
}  # fmt: skip
EVERY = pytest.mark.parametrize("name", CASES)


def fit(name, valid=False, **more):
    ranker, data, held_out = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(ranker).fit(*data, valid=held_out if valid else None, **more)


def rows(name):
    """Rows of the case's own kind to predict for."""
    return CASES[name][1][0]


def test_the_table_holds_every_ranker_and_nothing_else():
    assert set(CASES) == set(RANKERS)
    assert {kind.__name__ for kind in RANKERS.values()} <= set(placet.rank.__all__)
    assert all(RANKERS.name_of(kind) == name for name, kind in RANKERS.items())
    public = [getattr(placet.rank, name) for name in placet.rank.__all__]
    assert {kind for kind in public if inspect.isclass(kind) and issubclass(kind, Ranker)} == set(RANKERS.values())


def test_the_how_to_names_every_ranker():
    text = (Path(__file__).parents[1] / "docs" / "howto" / "search.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [tuple(cell.strip(" `") for cell in row.split("|")[1:3]) for row in rows] == [
        (name, kind.__name__) for name, kind in RANKERS.items()
    ]


SHORTEST = '''
from typing import Any
from placet.rank.ranker import Ranker
from placet.rank.saving.fitted_state import Number, holds

class ColumnRanker(Ranker):
    """The score is a column."""
    _state = holds(column_=Number(whole=True))

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def _fit(self, queries: Any, valid: Any) -> None:
        self.column_ = self.column

    def _scores(self, queries: Any) -> Any:
        return queries.X[:, self.column_].astype(float)
'''


def test_a_ranker_is_added_by_its_module_and_a_row_of_the_table(tmp_path, monkeypatch):
    (tmp_path / "column.py").write_text(SHORTEST)
    monkeypatch.setattr(placet.rank, "__path__", [*placet.rank.__path__, str(tmp_path)])
    monkeypatch.setitem(RANKERS.homes, "column", "column:ColumnRanker")
    placet.io.write(DATA, tmp_path / "data.letor")
    model = str(tmp_path / "model")
    words = ["train", str(tmp_path / "data.letor"), "--ranker", "column", "-p", "column=1", "--save", model]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    np.testing.assert_array_equal(placet.load(model).predict(DATA), DATA.X[:, 1])
    sys.modules.pop("placet.rank.column")


@EVERY
def test_saved_and_loaded_it_is_the_same(name, tmp_path):
    ranker = fit(name, valid=True)
    ranker.save(tmp_path / "model")
    again = placet.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(rows(name)), ranker.predict(rows(name)))
    assert type(again) is RANKERS[name]
    assert again.fit_summary_ == ranker.fit_summary_
    assert repr(again) == repr(ranker)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@EVERY
def test_what_is_kept_is_finite_and_the_summary_says_whether_it_was_interrupted(name):
    ranker = fit(name)
    assert ranker.fit_summary_["interrupted"] is False
    assert np.isfinite(ranker._scores(ranker._rows_to_score(rows(name), None))).all()


def interrupt_at(step, raising):
    def progress(now, steps, quality):
        if now == step:
            raising()

    return progress


def raise_it():
    raise KeyboardInterrupt


def send_it():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
    os.kill(os.getpid(), signal.SIGINT)


@EVERY
@pytest.mark.parametrize(("valid", "how"), [(False, raise_it), (True, send_it)], ids=["raised", "signalled"])
def test_an_interrupt_keeps_the_best_so_far(name, valid, how, tmp_path):
    seen, calls = {}, []

    def progress(step, steps, quality):
        calls.append(step)
        if step:  # long steps are reported within, too, with the number of those done
            seen[step] = quality if seen.get(step) is None else seen[step]
        interrupt_at(2, how)(step, steps, quality)

    ranker = fit(name, valid=valid, progress=progress)
    assert ranker.fit_summary_["interrupted"] is True
    assert list(seen) == [1, 2]
    assert calls.count(2) == 1
    assert np.isfinite(ranker._scores(ranker._rows_to_score(rows(name), None))).all()
    ranker.save(tmp_path / "model")
    assert placet.load(tmp_path / "model").fit_summary_["interrupted"] is True
    if valid and seen[1] is not None:
        assert ranker.fit_summary_["validation"] >= max(seen.values())


@pytest.mark.parametrize("name", ["linear", "trees", "neural", "crf", "blend", "fusion"])
def test_an_interrupt_before_there_is_anything_to_keep_goes_on(name, monkeypatch):
    monkeypatch.setattr(Best, "consider", lambda self, state: raise_it())
    with pytest.raises(KeyboardInterrupt):
        fit(name)
    monkeypatch.undo()


def tables(ranker, data):
    """The methods that give something about every row or pair, on ``data``."""
    return {
        "predict": ranker.predict(data),
        "top1": ranker.top1_probability(data),
        "pair": ranker.pairwise_probability(data, 0, 1),
        "places": ranker.rank_distribution(data)[0],
    }


@pytest.mark.parametrize("name", ["linear", "trees", "neural", "booster", "reranker", "crf", "labels"])
def test_every_method_takes_what_predict_takes(name):
    ranker = fit(name)
    found = tables(ranker, rows(name))
    top1 = found["top1"]
    if name == "labels":
        np.testing.assert_allclose(top1.sum(axis=1), 1)
        assert found["pair"].shape == (len(top1),)
        assert found["places"].shape == (6, 6)
        np.testing.assert_allclose(found["places"][:, 0], top1[0], atol=1e-12)
        assert ranker.calibration(*DOCUMENTS).n_queries == 48
        return
    data = rows(name)
    np.testing.assert_allclose(np.add.reduceat(top1, data.offsets[:-1]), 1)
    np.testing.assert_allclose(found["places"][:, 0], top1[: data.offsets[1]], atol=1e-12)
    assert found["pair"] == pytest.approx(top1[0] / (top1[0] + top1[1]))
    assert np.argsort(found["predict"][: data.offsets[1]]).tolist() == np.argsort(top1[: data.offsets[1]]).tolist()
    assert ranker.calibration(data).n_pairs > 0
    assert 0 < ranker.score(data) <= 1


@pytest.mark.parametrize("name", ["reranker", "crf"])
def test_probabilities_are_those_of_the_scores_that_the_loss_saw(name):
    """The level and scale that training fits beside the score change no order, but they do change probabilities."""
    ranker = fit(name)
    data = rows(name)
    constant, factor = ranker.level_
    assert abs(np.log(factor)) > 0.01
    s = ranker.predict(data)
    assert ranker.pairwise_probability(data, 0, 1) == pytest.approx(1 / (1 + np.exp(-factor * (s[0] - s[1]))))
    value = LOSSES["pl-partition"](constant + factor * s, data.lists())[0] / len(data)
    worse = [LOSSES["pl-partition"](c * factor * s, data.lists())[0] / len(data) for c in (0.8, 1.25)]
    assert value < min(worse)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"labels", "booster", "reranker", "crf"}))
def test_rows_may_come_in_any_order(name):
    ranker = fit(name)
    data = rows(name)
    X, qid = np.asarray(data.X), data.query
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(ranker.predict(X[order], qid=qid[order]), ranker.predict(data)[order], rtol=1e-9)


def test_best_keeps_the_first_of_equals_counts_steps_and_ignores_nan():
    best = Best(judge=lambda x: {1: 0.5, 2: float("nan"), 3: 0.5, 4: 0.7}.get(x, 0.1), patience=2)
    told = []
    best.tell = lambda step, quality: told.append(step)
    assert best.empty
    for x in (2, 1, 3):
        best.see(x)
    assert (best.state, best.quality, best.best_step, best.stale) == (1, 0.5, 2, False)
    best.see(2)
    assert best.stale
    best.see(4)
    assert (best.state, best.stale, told) == (4, False, [1, 2, 3, 4, 5])
    assert best.summary() == {"validation": 0.7, "interrupted": False}


def test_a_thinned_best_judges_the_first_steps_and_then_ever_fewer():
    judged = []
    best = Best(judge=lambda x: judged.append(x) or float(x), thin=True)
    for x in range(1, 201):
        best.see(x)
    assert judged[:10] == list(range(1, 11))
    assert len(judged) < 50
    gaps = np.diff(judged[10:])
    assert (gaps[1:] >= gaps[:-1]).all()
    assert best.state == judged[-1]


def test_best_lets_other_errors_pass():
    def fail():
        with Best() as best:
            best.see(1)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
