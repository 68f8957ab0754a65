"""What every ranker keeps: the caller's order, column names, types, scikit-learn's ways, and saved files."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from safetensors.numpy import save
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold

import placet
from placet.data import DataError, Queries
from placet.metrics import ndcg
from placet.rank import Blend, LinearRanker, TreeRanker, autorank
from placet.rank.saving import file_format
from placet.rank.search.autorank import SHORT_LIST
from placet.simulate import queries

DATA = queries(50, (2, 12), 4, noise=0.5, random_state=3)
TRAIN, VALID = DATA[:35], DATA[35:]
LINEAR = LinearRanker("pmop-fd", l2=1e-3)
TREES = TreeRanker("pmop-fd", n_trees=8, min_rows=3, subsample=1.0)  # which rows are drawn depends on their order
FINE = {"tol": 1e-8, "standardize": False}  # deviations are of rows as they come, whatever their weight
BOTH = pytest.mark.parametrize("ranker", [LINEAR, TREES], ids=["linear", "trees"])


def columns(data=TRAIN):
    return np.asarray(data.X), data.grade, np.array(data.qid)[data.query]


@BOTH
def test_rows_of_a_query_may_come_in_any_order(ranker):
    X, y, qid = columns()
    order = np.random.default_rng(0).permutation(len(y))
    grouped = clone(ranker).fit(X, y, qid=qid)
    mixed = clone(ranker).fit(X[order], y[order], qid=qid[order])
    np.testing.assert_allclose(mixed.predict(X[order]), grouped.predict(X)[order], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(mixed.predict(X[order], qid=qid[order]), mixed.predict(X[order]))


@BOTH
def test_predictions_of_queries_stand_beside_their_grades(ranker):
    X, y, qid = columns()
    order = np.random.default_rng(0).permutation(len(y))
    mixed = Queries.from_arrays(X[order], y[order], qid[order])
    fitted = clone(ranker).fit(mixed)
    np.testing.assert_array_equal(mixed.restore(fitted.predict(mixed)), fitted.predict(X[order]))
    by_hand = np.nanmean(ndcg(fitted.predict(mixed), mixed.grade, mixed.offsets, 10))
    assert fitted.score(mixed) == pytest.approx(by_hand)
    assert fitted.score(X, y, qid) == pytest.approx(by_hand)


@BOTH
def test_weight_two_is_a_query_twice(ranker):
    X, y, qid = columns(DATA[:20])
    weight = np.where(np.arange(20) < 7, 2.0, 1.0)
    twice = qid < 7
    rows = np.concatenate([np.arange(len(y)), np.flatnonzero(twice)])
    names = np.concatenate([qid, 100 + qid[twice]])
    ranker = clone(ranker).set_params(**({"min_rows": 1} if isinstance(ranker, TreeRanker) else FINE))
    a = ranker.fit(X, y, qid=qid, weight=weight).predict(X)
    row_weight = weight[np.searchsorted(np.unique(qid), qid)]
    np.testing.assert_array_equal(clone(ranker).fit(X, y, qid=qid, weight=row_weight).predict(X), a)
    if isinstance(ranker, LinearRanker):  # trees count rows in their limits, so two rows are not one of weight 2
        b = clone(ranker).fit(X[rows], y[rows], qid=names).predict(X)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert np.abs(a - clone(ranker).fit(X, y, qid=qid).predict(X)).max() > 1e-4


@BOTH
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_keep_their_columns(ranker, frame):
    X, y, qid = columns()
    names = ["bm25", "age", "length", "clicks"]
    table = frame({name: X[:, k] for k, name in enumerate(names)})
    fitted = clone(ranker).fit(table, y, qid=qid)
    np.testing.assert_allclose(fitted.predict(table), fitted.predict(X), rtol=1e-12, atol=1e-12)
    top = fitted.explain(table, 0, 1)
    assert {name for name, _ in top} == set(names)
    with pytest.raises(DataError, match=r"missing \['clicks'\] \(1\), unseen \['kicks'\] \(1\)"):
        fitted.predict(
            table.rename(
                **{"columns": {"clicks": "kicks"}} if frame is pd.DataFrame else {"mapping": {"clicks": "kicks"}}
            )
        )
    with pytest.raises(DataError, match="another order"):
        fitted.predict(table[names[::-1]])
    with pytest.raises(DataError, match="fitted on 4 features; these rows have 3"):
        fitted.predict(X[:, :3])
    with pytest.raises(DataError, match="columns differ"):
        clone(ranker).fit(table, y, qid=qid, valid=(table[names[::-1]], y, qid))


@BOTH
def test_whole_numbers_and_lists_are_features_too(ranker):
    X, y, qid = columns()
    whole = np.round(10 * X).astype(int)
    fitted = clone(ranker).fit(whole, y, qid=qid.tolist())
    expected = clone(ranker).fit(whole.astype(float), y, qid=qid).predict(whole.astype(float))
    np.testing.assert_array_equal(fitted.predict(whole), expected)
    np.testing.assert_array_equal(fitted.predict(whole.tolist()), expected)
    assert len(fitted.predict(X[:0])) == 0


@BOTH
def test_sklearn_clone_and_parameters(ranker):
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert not hasattr(copy.set_params(loss="ranknet"), "n_features_in_")
    with pytest.raises(NotFittedError):
        copy.predict(TRAIN)
    with pytest.raises(NotFittedError):
        copy.save("nowhere.placet")


@BOTH
def test_grid_search_with_group_folds_and_routed_qid(ranker):
    X, y, qid = columns()
    grid = {"loss": ["pmop-fd", "ranknet"]}
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(ranker, grid, cv=GroupKFold(3), error_score="raise")
        search.fit(X, y, qid=qid, groups=qid)
        assert search.score(X, y, qid=qid) == pytest.approx(search.best_estimator_.score(X, y, qid))
    by_hand = []
    for fit, held in GroupKFold(3).split(X, y, qid):
        fitted = clone(ranker).fit(X[fit], y[fit], qid=qid[fit])
        by_hand.append(fitted.score(X[held], y[held], qid[held]))
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(by_hand))
    assert 0.5 < search.best_score_ < 1
    with pytest.raises(ValueError, match="enable_metadata_routing"):  # scikit-learn then passes qid to fit alone
        GridSearchCV(ranker, grid, cv=GroupKFold(3), error_score="raise").fit(X, y, qid=qid, groups=qid)


@BOTH
@pytest.mark.parametrize("loss", ["pmop-fd", "davidson"])
def test_a_saved_ranker_predicts_the_same(ranker, loss, tmp_path):
    X, y, qid = columns()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    fitted = clone(ranker).set_params(loss=loss).fit(frame, y, qid=qid, valid=(frame, y, qid))
    path = tmp_path / "model.placet"
    fitted.save(path)
    (tmp_path / "plain").touch()
    assert os.stat(path).st_mode == os.stat(tmp_path / "plain").st_mode  # readable by whom other files are
    (tmp_path / "plain").unlink()
    back = placet.load(path)
    assert type(back) is type(fitted)
    assert back.get_params() == fitted.get_params()
    assert back.fit_summary_ == fitted.fit_summary_
    assert back.features_ == ("a", "b", "c", "d")
    assert back.learned_ == fitted.learned_
    np.testing.assert_array_equal(back.predict(frame), fitted.predict(frame))
    assert back.explain(frame, 0, 1) == fitted.explain(frame, 0, 1)
    assert list(tmp_path.iterdir()) == [path]


def test_second_order_models_and_odd_parameters_are_saved(tmp_path):
    ranker = LinearRanker(l2=np.float32(0.5), second_order=0.05, loss_params={"stage_scale": np.array([1.0, 0.5])})
    ranker.fit(TRAIN).save(tmp_path / "m")
    back = placet.load(tmp_path / "m")
    assert len(back.pairs_)
    np.testing.assert_array_equal(back.predict(VALID), ranker.predict(VALID))
    with pytest.raises(ValueError, match="loss_params holds a function"):
        LinearRanker("bregman-ce", loss_params={"gain": lambda grade: grade}).fit(TRAIN).save(tmp_path / "n")
    assert not (tmp_path / "n").exists()


def damage(path, change):
    """Change the entries and arrays of a saved file."""
    header, arrays = file_format.read(path)
    change(header["rankers"], arrays)
    file_format.write(path, header, arrays)


def test_files_that_are_no_models_say_so(tmp_path):
    path = tmp_path / "m"
    for content in (b"", b"2 qid:1 1:0.5\n", b"\x10\0\0\0\0\0\0\0{"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"m: this is not a saved model; .*damaged: its header is cut off"):
            placet.load(path)
    path.write_bytes(save({"a": np.zeros(2)}, metadata={"placet": "{}"}))
    with pytest.raises(DataError, match="not a model that Placet saved"):
        placet.load(path)
    for header, words in (
        ({"format": 99, "rankers": []}, "format 99"),
        ({"format": 1, "rankers": []}, "format 1"),
        ({"format": 2}, "damaged: it holds no rankers"),
        ({"format": 2, "rankers": {}}, "damaged: it holds no rankers"),
        ({"format": 2, "rankers": [3]}, "damaged: a ranker has no kind"),
        ({"format": 2, "rankers": [{"kind": "os.system", "params": {}, "state": {}}]}, "model 'os.system' is unknown"),
        ({"format": 2, "rankers": [{"kind": ["linear"], "params": {}, "state": {}}]}, "is unknown"),
        ({"format": 2, "rankers": [{"kind": "linear", "params": 1, "state": {}}]}, "damaged: it has no parameters"),
    ):
        file_format.write(path, header, {"a": np.zeros(2)})
        with pytest.raises(DataError, match=words):
            placet.load(path)
    with pytest.raises(FileNotFoundError):
        placet.load(tmp_path / "none")


def test_a_damaged_state_is_refused(tmp_path):
    path = tmp_path / "m"
    LINEAR_FITTED = clone(LINEAR).fit(TRAIN)
    for change, words in (
        (lambda e, a: e[0]["state"].update(predict=1), "the state of a LinearRanker"),
        (lambda e, a: e[0]["state"].pop("coef_"), "the state of a LinearRanker"),
        (lambda e, a: e[0]["params"].update(depth=3), r"has no parameters \['depth'\]"),
        (lambda e, a: a.clear(), "the saved model is damaged"),
        (lambda e, a: e[0]["state"].update(coef_={"$array": 7}), "the saved model is damaged"),
        (lambda e, a: e[0]["state"].update(coef_={"$ranker": 0}), "the saved model is damaged"),
        (lambda e, a: e[0]["state"].update(coef_={"$ranker": -1}), "the saved model is damaged"),
        (lambda e, a: e[0]["state"].update(coef_={"$tuple": 1}), "the saved model is damaged"),
    ):
        LINEAR_FITTED.save(path)
        damage(path, change)
        with pytest.raises(DataError, match=words):
            placet.load(path)
    for number in (-1, 1, 2, "0", None):  # a ranker may hold those before it alone
        Blend([LINEAR, LINEAR]).fit(TRAIN).save(path)
        damage(path, lambda e, a, number=number: e[1]["state"].update(coef_={"$ranker": number}))
        with pytest.raises(DataError, match="the saved model is damaged"):
            placet.load(path)
    clone(TREES).fit(TRAIN).save(path)
    damage(path, lambda e, a: a[e[0]["state"]["trees_"]["$trees"]["left"]["$array"]].fill(0))
    with pytest.raises(DataError, match="a node of the trees has a child that does not come after it"):
        placet.load(path)


@BOTH
def test_what_teaches_nothing_is_refused_in_words(ranker):
    X = np.arange(8.0)[:, None]
    with pytest.raises(DataError, match=r"none of the 8 queries .* \(8 have one row, 0 have equal grades\)"):
        clone(ranker).fit(X, np.arange(8), qid=np.arange(8))
    with pytest.raises(DataError, match=r"none of the 2 queries .* \(0 have one row, 2 have equal grades\)"):
        clone(ranker).fit(X, [1, 1, 1, 1, 0, 0, 0, 0], qid=[0, 0, 0, 0, 1, 1, 1, 1])
    with pytest.raises(DataError, match="validation set is empty"):
        clone(ranker).fit(TRAIN, valid=VALID[:0])
    with pytest.raises(DataError, match=r"ndcg@10 is undefined in all 15 queries of the validation set"):
        clone(ranker).fit(TRAIN, valid=Queries(VALID.X, np.zeros(len(VALID.grade)), VALID.offsets))
    with pytest.raises(ValueError, match=r"give y \(grades\) and qid"):
        clone(ranker).fit(X, np.arange(8))
    with pytest.raises(ValueError, match="give them alone"):
        clone(ranker).fit(TRAIN, TRAIN.grade)
    with pytest.raises(ValueError, match=r"valid must be Queries or \(X, y, qid or sizes of queries\), not 2 things"):
        clone(ranker).fit(TRAIN, valid=(TRAIN.X, TRAIN.grade))
    with pytest.raises(DataError, match="all 35 queries have weight 0"):
        clone(ranker).fit(Queries(TRAIN.X, TRAIN.grade, TRAIN.offsets, np.zeros(35)))
    with pytest.raises(ValueError, match="loss 'plackett'"):
        clone(ranker).set_params(loss="plackett").fit(TRAIN)
    twice = clone(ranker).fit(TRAIN)
    with pytest.raises(ValueError, match="loss 'plackett'"):
        twice.set_params(loss="plackett").fit(TRAIN)
    with pytest.raises(NotFittedError):
        twice.predict(TRAIN)
    with pytest.raises(ValueError, match="has no parameter 'alpha'"):
        clone(ranker).set_params(loss_params={"alpha": 1.0}).fit(TRAIN)


def test_linear_refuses_nan_and_trees_keep_it():
    X, y, qid = columns()
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    with pytest.raises(DataError, match="NaN"):
        clone(LINEAR).fit(X, y, qid=qid)
    kept = Queries.from_arrays(X, y, qid, missing="keep")
    for standardize in (True, False):
        with pytest.raises(DataError, match=r"feature 0 has NaN .* \(4 such features\)"):
            clone(LINEAR).set_params(standardize=standardize).fit(kept)
    with pytest.raises(DataError, match=r"row \d+: a feature is NaN"):
        clone(LINEAR).fit(TRAIN).predict(X)
    assert clone(TREES).fit(X, y, qid=qid).score(X, y, qid) > 0.6
    np.testing.assert_array_equal(clone(TREES).fit(kept).predict(X), clone(TREES).fit(X, y, qid=qid).predict(X))


@BOTH
def test_progress_is_told_and_validation_keeps_the_best(ranker):
    steps = []
    fitted = clone(ranker).fit(TRAIN, valid=VALID, progress=lambda *step: steps.append(step))
    values = [value for _, _, value in steps]
    assert [step for step, _, _ in steps] == list(range(1, len(steps) + 1))
    assert fitted.fit_summary_["validation"] == pytest.approx(max(values))
    assert fitted.score(VALID) == pytest.approx(max(values))
    assert not hasattr(fitted, "_progress") or fitted._progress is None


@BOTH
def test_an_interrupt_keeps_the_best_so_far(ranker):
    def interrupt(step, steps, value):
        if step == 3:
            raise KeyboardInterrupt

    stopped = clone(ranker).fit(TRAIN, progress=interrupt)
    assert stopped.fit_summary_["interrupted"]
    short = clone(ranker).set_params(**({"n_trees": 3} if isinstance(ranker, TreeRanker) else {"max_iter": 3}))
    with pytest.warns(UserWarning, match="after 3 iterations") if isinstance(ranker, LinearRanker) else _nothing():
        short.fit(TRAIN)
    np.testing.assert_allclose(stopped.predict(VALID), short.predict(VALID), rtol=1e-9, atol=1e-12)

    values = []

    def later(step, steps, value):
        values.append(value)
        interrupt(step, steps, value)

    best = clone(ranker).fit(TRAIN, valid=VALID, progress=later)
    assert best.score(VALID) == pytest.approx(max(values))

    def at_once(step, steps, value):
        raise KeyboardInterrupt

    first = clone(ranker).fit(TRAIN, progress=at_once)
    assert np.isfinite(first.predict(VALID)).all()


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def test_autorank_says_what_it_tried():
    choice = autorank(TRAIN, VALID, budget=3, metric="ndcg@5")
    assert [(t.ranker, t.params) for t in choice.trials] == list(SHORT_LIST[:3])
    assert choice.best.value == max(t.value for t in choice.trials)
    assert choice.ranker.score(VALID, metric="ndcg@5") == pytest.approx(choice.best.value)
    shown = repr(choice)
    assert shown.count("\n") == 3
    assert "* " in shown
    assert "ndcg@5" in shown
    same = autorank(TRAIN, VALID, budget=3, metric="ndcg@5")
    assert [t.value for t in same.trials] == [t.value for t in choice.trials]
    with pytest.raises(AttributeError):
        choice.metric = "err"
    with pytest.raises(ValueError, match="budget 0"):
        autorank(TRAIN, VALID, budget=0)
    with pytest.raises(ValueError, match="ranker 'oracle' is unknown"):
        autorank(TRAIN, VALID, candidates=[("oracle", {})])


def test_autorank_without_an_engine_goes_on(monkeypatch):
    from placet.rank.trees import tree_libraries

    def absent():
        raise ImportError("TreeRanker needs LightGBM")

    monkeypatch.setattr(tree_libraries, "lightgbm", absent)
    choice = autorank(TRAIN, VALID, budget=2)
    assert choice.best.ranker == "linear"
    assert choice.trials[1].failure == "TreeRanker needs LightGBM"
    assert "failed: TreeRanker needs LightGBM" in repr(choice)


def test_sizes_of_consecutive_queries_stand_for_query_ids():
    sizes, qid = np.diff(DATA.offsets), DATA.query
    by_size = LinearRanker().fit(DATA.X, DATA.grade, group=sizes, valid=(DATA.X, DATA.grade, sizes))
    by_name = LinearRanker().fit(DATA.X, DATA.grade, qid=qid, valid=(DATA.X, DATA.grade, qid))
    np.testing.assert_array_equal(by_size.coef_, by_name.coef_)
    for group, said in (
        (sizes[1:], "have the sum"),
        (sizes * 1.5, "whole numbers"),
        ([[1]], "whole numbers"),
        (["a"], "whole numbers"),
    ):
        with pytest.raises(DataError, match=said):
            LinearRanker().fit(DATA.X, DATA.grade, group=group)
    with pytest.raises(ValueError, match="not both"):
        LinearRanker().fit(DATA.X, DATA.grade, qid, group=sizes)


def test_the_best_rows_of_each_query_are_those_of_a_plain_sort():
    ranker = LinearRanker().fit(DATA)
    shuffled = np.random.default_rng(0).permutation(len(DATA.grade))
    X, qid = np.array(DATA.X)[shuffled], np.array([f"q{k}" for k in DATA.query])[shuffled]
    s = ranker.predict(X)
    found = ranker.predict_top(X, 3, qid)
    for name, own in found.group_by("query"):
        rows = np.flatnonzero(qid == name[0])
        assert own["row"].to_list() == rows[np.argsort(-s[rows], kind="stable")][:3].tolist()
        assert own["rank"].to_list() == list(range(1, 1 + len(own)))
        np.testing.assert_array_equal(own["score"], s[own["row"].to_numpy()])
    assert ranker.predict_top(DATA, 1).height == len(DATA)
    assert ranker.predict_top(X[:0], 1).height == 0
    for k in (0, 1.5, True - 1):
        with pytest.raises(ValueError, match="at least 1"):
            ranker.predict_top(DATA, k)
