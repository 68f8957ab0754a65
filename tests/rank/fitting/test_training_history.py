"""Metrics after each step: those of the shorter fit, the first decides, and a plot of them."""

import numpy as np
import pytest
from ranker_cases import CASES, DATA, fit

import placet
from placet.metrics import METRICS, metric
from placet.metrics.metric_table import BY_SUBTOPIC, DISTANCES
from placet.rank import RANKERS, LinearRanker, NeuralRanker, TreeRanker
from placet.rank.fitting.training_history import write_history

pytestmark = pytest.mark.jit
TRAIN, VALID = DATA[:25], DATA[25:]
PLAIN = {"learning_rate": 0.1, "subsample": 1.0, "feature_fraction": 1.0, "min_rows": 3}


def test_a_row_of_the_history_is_the_metric_of_the_shorter_fit():
    ranker = TreeRanker("pl-partition", n_trees=6, **PLAIN).fit(TRAIN, valid=VALID, metrics=["map", "tau", "footrule"])
    history = ranker.history_
    assert history.columns == ["step", "ndcg@10", "map", "tau", "footrule"]
    assert history["step"].to_list() == [1, 2, 3, 4, 5, 6]
    for n in (1, 4, 6):
        short = TreeRanker("pl-partition", n_trees=n, **PLAIN).fit(TRAIN)
        for name in history.columns[1:]:
            assert history[name][n - 1] == pytest.approx(short.score(VALID, metric=name), abs=1e-12)
    assert ranker.n_trees_ == history["step"][history["ndcg@10"].arg_max()]


@pytest.mark.parametrize("name", [name for name in CASES if RANKERS[name].records_metrics])
def test_every_ranker_that_validates_has_a_history(name, tmp_path):
    further = ["map", "err@3"] if name != "labels" else ["p@1", "p@3"]
    ranker = fit(name, valid=True, metrics=further)
    assert ranker.history_.columns[2:] == further
    best = ranker.history_[ranker.history_.columns[1]].max()
    assert best == pytest.approx(ranker.fit_summary_["validation"])
    ranker.save(tmp_path / "model")
    assert placet.load(tmp_path / "model").history_.equals(ranker.history_)


@pytest.mark.parametrize("name", [name for name in CASES if not RANKERS[name].records_metrics])
def test_others_say_so(name):
    with pytest.raises(ValueError, match="records no metrics by step"):
        fit(name, valid=True, metrics=["map"])


@pytest.mark.parametrize("name", [name for name in METRICS if name not in (*BY_SUBTOPIC, "psp", "psndcg")])
@pytest.mark.parametrize("kind", [LinearRanker, TreeRanker, NeuralRanker])
def test_training_stops_by_any_metric_of_graded_rows(kind, name):
    quick = {"n_trees": 3, "min_rows": 3} if kind is TreeRanker else {"epochs": 2} if kind is NeuralRanker else {}
    ranker = kind("pl-partition", metric=name, **quick)
    if name in DISTANCES:
        with pytest.raises(ValueError, match="is a distance, of which the lowest is best"):
            ranker.fit(TRAIN, valid=VALID)
        return
    found = ranker.fit(TRAIN, valid=VALID).fit_summary_["validation"]
    assert found == pytest.approx(np.nanmean(metric(name)(ranker.predict(VALID), VALID.grade, VALID.offsets)))


def test_a_metric_needs_a_validation_set_and_a_known_name():
    with pytest.raises(ValueError, match="recorded on a validation set; give valid="):
        LinearRanker().fit(TRAIN, metrics=["map"])
    with pytest.raises(ValueError, match="metric 'nope' is unknown"):
        LinearRanker().fit(TRAIN, valid=VALID, metrics=["nope"])
    with pytest.raises(AttributeError, match="it had no validation set"):
        _ = LinearRanker().fit(TRAIN).history_


def test_the_plot_has_a_line_for_each_metric_and_a_mark_at_the_best(tmp_path):
    pytest.importorskip("matplotlib")
    import matplotlib.figure

    ranker = TreeRanker(n_trees=5, **PLAIN).fit(TRAIN, valid=VALID, metrics=["map"])
    axes = ranker.plot_history(matplotlib.figure.Figure().subplots())
    ndcg, precision, mark = axes.get_lines()
    assert np.array_equal(ndcg.get_ydata(), ranker.history_["ndcg@10"])
    assert np.array_equal(precision.get_ydata(), ranker.history_["map"])
    assert mark.get_ydata() == ranker.history_["ndcg@10"].max()
    for suffix, start in ((".csv", b"step,ndcg@10,map"), (".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        write_history(ranker.history_, tmp_path / f"history{suffix}")
        assert (tmp_path / f"history{suffix}").read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"as \.csv, \.svg, \.png, \.pdf, not \.txt"):
        write_history(ranker.history_, tmp_path / "history.txt")
