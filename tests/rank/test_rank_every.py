"""Every ranker of the table: rows in any order, relations in every method, interrupts, saved files, one best."""

import inspect
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from ranker_cases import CASES, DATA, DOCUMENTS, fit, fitted, rows
from typer.testing import CliRunner

import placet
from placet.cli import app
from placet.losses import LOSSES
from placet.rank import RANKERS
from placet.rank.ranker import Ranker
from placet.rank.validation import Best

pytestmark = pytest.mark.jit
EVERY = pytest.mark.parametrize("name", CASES)


def test_the_table_holds_every_ranker_and_nothing_else():
    assert set(CASES) == set(RANKERS)
    assert {kind.__name__ for kind in RANKERS.values()} <= set(placet.rank.__all__)
    assert all(RANKERS.name_of(kind) == name for name, kind in RANKERS.items())
    public = [getattr(placet.rank, name) for name in placet.rank.__all__]
    assert {kind for kind in public if inspect.isclass(kind) and issubclass(kind, Ranker)} == set(RANKERS.values())


def test_the_how_to_names_every_ranker():
    text = (Path(__file__).parents[2] / "docs" / "howto" / "search.md").read_text()
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
    ranker = fitted(name)
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
    ranker = fitted(name)
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
    ranker = fitted(name)
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
    ranker = fitted(name)
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
