"""Trees on any loss: LightGBM's and XGBoost's own loops, early stopping, explanations."""

import os
import signal
import sys
import threading
import types

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Queries
from placet.losses import LOSSES
from placet.metrics import ndcg
from placet.rank import LinearRanker, TreeRanker, boosting_objective
from placet.rank.tree_arrays import Forest
from placet.rank.trees import tree_ranker
from placet.rank.trees.tree_ranker import FARTHEST, FLOOR, Slopes, rate_for
from placet.simulate import queries

DATA = queries(70, (1, 8), 3, grades=3, noise=0.2, random_state=2)
TRAIN, TEST = DATA[:50], DATA[50:]
SMALL = {"n_trees": 30, "min_rows": 3, "leaves": 8}
WHOLE = {"learning_rate": 0.1, "subsample": 1.0, "feature_fraction": 1.0}
QUIET = {"verbosity": -1, "min_data_in_leaf": 3, "num_leaves": 8, "deterministic": True, "force_row_wise": True}


def mixed(data, seed=0):
    """Columns with the rows of queries far apart."""
    order = np.random.default_rng(seed).permutation(len(data.grade))
    return np.asarray(data.X)[order], data.grade[order], np.array(data.qid)[data.query][order]


@pytest.mark.parametrize("loss", sorted(name for name, record in LOSSES.items() if record.curvature))
def test_every_loss_with_a_curvature_learns_an_order(loss):
    more = queries(300, (1, 8), 3, grades=3, noise=0.2, random_state=2)
    train, test = more[:100], more[100:]
    ranker = TreeRanker(loss, **SMALL).fit(train)
    chance = np.nanmean(ndcg(np.zeros(len(test.grade)), test.grade, test.offsets, 10))
    assert ranker.score(test) > chance + 0.4 * (1 - chance)
    assert set(ranker.learned_) == set(LOSSES[loss].learned) - set(LOSSES[loss].scaling)


@pytest.mark.parametrize("loss", ["pmop-fd", "ranknet", "bregman-square"])
def test_slopes_are_gradient_and_curvature_in_the_callers_order(loss):
    X, y, qid = mixed(TRAIN)
    s = np.random.default_rng(1).normal(size=len(y))
    grouped = Queries.from_arrays(X, y, qid)
    slopes = boosting_objective(loss, qid)
    found_g, found_h = slopes(y, s)
    assert slopes.level == 0 or loss == "bregman-square"
    inner = s[grouped.row] + slopes.level
    g = grouped.restore(LOSSES[loss](inner, grouped.lists())[1])
    h = grouped.restore(LOSSES[loss].curvature(inner, grouped.lists()))
    assert_allclose(found_g, g / h.mean(), atol=1e-12)
    least = np.abs(found_g) / FARTHEST if LOSSES[loss].law == "order" else 0.0
    assert_allclose(found_h, np.maximum.reduce([h / h.mean(), np.full(len(h), FLOOR), least + 0 * h]), atol=1e-12)
    assert (np.abs(found_g) / found_h <= 2.0 + 1e-9).all() == (LOSSES[loss].law == "order")


@pytest.mark.parametrize("loss", ["bregman-ce", "bregman-square", "bregman-qnorm"])
def test_losses_that_see_the_level_start_at_their_best_one(loss):
    slopes = Slopes(loss)
    slopes.bind(TRAIN.lists())
    slopes.at(np.zeros(len(TRAIN.grade)))
    value = lambda level: LOSSES[loss](np.full(len(TRAIN.grade), level), TRAIN.lists())[0]  # noqa: E731
    assert abs(slopes.level) > 1e-3
    step = 1e-3 * abs(slopes.level)
    assert value(slopes.level) < min(value(slopes.level - step), value(slopes.level + step), value(0.0))
    # with a strong penalty no split from level 0 is worth it: all rows want to go the same way
    assert TreeRanker(loss, **{**SMALL, "l2": 300.0}).fit(TRAIN).n_trees_ > 0


def test_learned_parameters_reach_their_optimum():
    slopes = Slopes("davidson")
    slopes.bind(TRAIN.lists())
    s = LinearRanker("davidson").fit(TRAIN).predict(TRAIN)
    for _ in range(30):
        slopes.at(s)
    slope = LOSSES["davidson"](s, TRAIN.lists(), **slopes.learned, parameter_gradient=True)[2]["tie"]
    assert abs(slope) < 1e-2
    fixed = TreeRanker("davidson", **SMALL, loss_params={"tie": 0.5}).fit(TRAIN)
    assert fixed.learned_ == {}


def test_the_rate_follows_the_size_of_the_data():
    """Few rows or few queries: slow; few trees: fast, but never above 0.2; a rate that is given is kept."""
    assert rate_for(10**6, 10**4, 600) == rate_for(20_000, 500, 600) == 0.07
    assert rate_for(10_000, 10**4, 600) == rate_for(10**6, 250, 600) == 0.035
    assert rate_for(400, 20, 600) == 0.01 == rate_for(10**6, 20, 600)
    assert rate_for(10**6, 10**4, 1000) == 0.042
    small = {"n_trees": 100, "min_rows": 3, "leaves": 8}
    alone, named = TreeRanker(**small).fit(TRAIN), TreeRanker(**small, learning_rate=0.06).fit(TRAIN)
    assert_allclose(alone.predict(TEST), named.predict(TEST), atol=1e-12)  # 6 / 100
    assert not np.allclose(alone.predict(TEST), TreeRanker(**small, learning_rate=0.1).fit(TRAIN).predict(TEST))


def test_lightgbms_own_loop_grows_the_same_trees():
    X, y, qid = mixed(TRAIN)
    weight = np.linspace(1, 2, 50)
    params = {
        **QUIET,
        "learning_rate": 0.1,
        "lambda_l2": 1.0,
        "objective": boosting_objective("pmop-fd", qid, weight=weight),
    }
    own = lgb.train(params, lgb.Dataset(X, y), 30)
    ours = TreeRanker("pmop-fd", **SMALL, **WHOLE, backend="lightgbm").fit(X, y, qid=qid, weight=weight)
    assert np.corrcoef(own.predict(X), ours.predict(X))[0, 1] > 0.99
    assert ours.score(X, y, qid) > 0.9


def test_xgboosts_own_loop_and_the_scikit_learn_interface_take_it():
    X, y, qid = mixed(TRAIN)
    chance = np.nanmean(ndcg(np.zeros(len(TEST.grade)), TEST.grade, TEST.offsets, 10))
    params = {"max_depth": 3, "min_child_weight": 0, "eta": 0.2, "nthread": 1}
    booster = xgb.train(params, xgb.DMatrix(X, y), 30, obj=boosting_objective("pl-partition", qid))
    s = booster.predict(xgb.DMatrix(np.asarray(TEST.X)))
    assert np.nanmean(ndcg(s, TEST.grade, TEST.offsets, 10)) > chance + 0.4 * (1 - chance)
    model = lgb.LGBMRegressor(
        objective=boosting_objective("ranknet", qid), n_estimators=30, **{**QUIET, "min_child_samples": 3}
    )
    s = model.fit(X, y).predict(np.asarray(TEST.X))
    assert np.nanmean(ndcg(s, TEST.grade, TEST.offsets, 10)) > chance + 0.4 * (1 - chance)


def test_objective_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="needs a loss with curvature, which 'pmop-gibbs' does not offer"):
        boosting_objective("pmop-gibbs", [0, 0])
    with pytest.raises(ValueError, match="no parameter 'beta'"):
        boosting_objective("ranknet", [0, 0], beta=1.0)
    with pytest.raises(DataError, match="qid has 3 entries; there are 2 labels"):
        boosting_objective("ranknet", [0, 0, 1])(np.zeros(2), np.zeros(2))
    with pytest.raises(DataError, match=r"weight has shape \(2,\); give one for each of 1 queries"):
        boosting_objective("ranknet", [0, 0], weight=[1.0, 1.0])(np.zeros(2), np.zeros(2))


def test_early_stopping_keeps_the_best_round():
    values = []
    ranker = TreeRanker("pmop-fd", n_trees=200, min_rows=3, patience=10, metric="map")
    ranker.fit(TRAIN, valid=TEST, progress=lambda step, steps, value: values.append(value))
    assert ranker.n_trees_ == 1 + int(np.argmax(values))
    assert len(values) == ranker.n_trees_ + 10 == ranker.fit_summary_["rounds"]
    assert ranker.score(TEST) == pytest.approx(max(values))  # by its own metric
    assert ranker.fit_summary_["validation"] == pytest.approx(max(values))


@pytest.mark.parametrize("backend", ["placet", "lightgbm"])
def test_csr_and_dense_grow_the_same_trees_and_a_seed_the_same_bytes(backend):
    X = np.where(np.random.default_rng(0).random(TRAIN.X.shape) < 0.5, 0.0, TRAIN.X)
    dense = TreeRanker(**SMALL, backend=backend).fit(Queries(X, TRAIN.grade, TRAIN.offsets))
    sparse = TreeRanker(**SMALL, backend=backend).fit(Queries(csr_matrix(X), TRAIN.grade, TRAIN.offsets))
    assert_allclose(dense.predict(X), sparse.predict(csr_matrix(X)), atol=1e-9)
    drawn = {**SMALL, "subsample": 0.5, "feature_fraction": 0.7, "random_state": 7, "backend": backend}
    assert (
        TreeRanker(**drawn).fit(TRAIN).trees_.value.tobytes() == TreeRanker(**drawn).fit(TRAIN).trees_.value.tobytes()
    )
    assert (TreeRanker(**drawn).fit(TRAIN).predict(TEST) != TreeRanker(**SMALL).fit(TRAIN).predict(TEST)).any()


def test_explanations_sum_to_the_difference():
    ranker = TreeRanker(**SMALL).fit(TRAIN)
    s = ranker.predict(TEST)
    for X in (TEST, csr_matrix(TEST.X)):
        parts = ranker.explain(X, 2, 11)
        assert sum(part for _, part in parts) == pytest.approx(s[2] - s[11], abs=1e-6)
        assert {name for name, _ in parts} == {0, 1, 2}


def test_engine_parameters_reach_lightgbm_and_no_split_is_said():
    stumps = TreeRanker(**SMALL, backend_params={"num_leaves": 2}).fit(TRAIN)
    assert (stumps.trees_.leaves() == 2).all()
    with pytest.warns(UserWarning, match=r"no tree could be grown .* features that vary"):
        flat = TreeRanker(min_rows=3).fit(Queries(np.ones_like(TRAIN.X), TRAIN.grade, TRAIN.offsets))
    assert not flat.predict(TEST).any()
    assert not flat.feature_importances_.any()
    n = len(TRAIN.grade)
    with pytest.raises(DataError, match=rf"{n} rows are too few to grow a tree: min_rows \({n}\).* use LinearRanker"):
        TreeRanker(min_rows=n).fit(TRAIN)
    with pytest.raises(ValueError, match="n_trees 0"):
        TreeRanker(n_trees=0).fit(TRAIN)


@pytest.mark.parametrize("missing", [None, "nan", "zero"])
@pytest.mark.parametrize("boosting", ["gbdt", "dart", "rf"])
def test_trees_kept_as_arrays_predict_what_lightgbm_does_to_the_last_bit(missing, boosting):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 5)).round(1)
    X[rng.random(X.shape) < 0.2] = {"nan": np.nan}.get(missing, 0.0)
    X[:, 4] = rng.integers(0, 70, len(X))
    y = np.nan_to_num(X[:, 0]) + (X[:, 4] % 3) + rng.normal(size=len(X))
    params = {"verbosity": -1, "min_data_in_leaf": 3, "boosting": boosting, "cat_smooth": 1, "min_data_per_group": 3}
    params |= {
        "zero_as_missing": missing == "zero",
        "bagging_freq": 1,
        "bagging_fraction": 0.7,
        "objective": "regression",
    }
    booster = lgb.train(params, lgb.Dataset(X, y, categorical_feature=[4]), 12)
    forest = Forest.from_lightgbm(booster)
    assert (forest.how & 8).any()  # categories are among the splits
    probe = np.vstack([X, forest.probe(rng), rng.normal(size=(100, 5)) * 1e-35, np.full((1, 5), -0.5)])
    np.testing.assert_array_equal(forest.predict(probe), booster.predict(probe))
    sparse = csr_matrix(np.nan_to_num(probe[:400]))
    np.testing.assert_array_equal(forest.predict(sparse), booster.predict(sparse))
    np.testing.assert_array_equal(forest.predict(X.astype(np.float32)), booster.predict(X.astype(np.float32)))
    if boosting == "gbdt":
        expected = booster.predict(probe[380:420], pred_contrib=True)[:, :-1]
        np.testing.assert_allclose([forest.shapley(x) for x in probe[380:420]], expected, rtol=1e-9, atol=1e-12)


def test_splits_that_only_separate_missing_values_are_saved_explained_and_exported(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    X, missing = rng.normal(size=(400, 2)), rng.random(400) < 0.3
    X[missing, 1] = np.nan
    ranker = TreeRanker("pl-partition", n_trees=3, backend="lightgbm")
    ranker.fit(X, missing.astype(float), qid=np.repeat(np.arange(40), 10))
    assert np.isinf(ranker.trees_.threshold).any()
    ranker.save(tmp_path / "model")
    ranker.to_onnx(tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    rows = np.vstack([X, ranker.trees_.probe(rng), np.full((1, 2), np.inf), np.full((1, 2), -np.inf)])
    expected = ranker.trees_.predict(rows)
    np.testing.assert_array_equal(placet.load(tmp_path / "model").trees_.predict(rows), expected)
    assert_allclose(session.run(["scores"], {"X": rows})[0], expected, atol=1e-6)
    rest = expected[:9] - ranker.shapley(X[:9]).sum(axis=1)
    assert_allclose(rest, rest[0])


def test_models_of_lightgbm_that_predict_something_else_are_refused():
    X = np.random.default_rng(0).normal(size=(100, 3))
    data = lgb.Dataset(X, (X[:, 0] > 0).astype(float), free_raw_data=False)
    quiet = {"verbosity": -1, "min_data_in_leaf": 5}
    for params, words in (
        ({"objective": "binary"}, "does not predict the sum of its trees"),
        ({"objective": "multiclass", "num_class": 3}, "several classes"),
        ({"objective": "regression", "linear_tree": True}, "linear trees"),
    ):
        fresh = lgb.Dataset(X, data.label, params={"linear_tree": params.get("linear_tree", False)})
        with pytest.raises(ValueError, match=words):
            Forest.from_lightgbm(lgb.train({**quiet, **params}, fresh, 3))


def test_monotone_features_move_the_score_one_way(tmp_path):
    ranker = TreeRanker("pmop-fd", n_trees=20, min_rows=3, monotone={"1": -1, "0": 1}).fit(TRAIN)
    grid = np.linspace(-3, 3, 50)
    for feature, sign in ((0, 1), (1, -1)):
        X = np.zeros((50, TRAIN.n_features))
        X[:, feature] = grid
        steps = sign * np.diff(ranker.predict(X))
        assert (steps >= 0).all()
    free = TreeRanker("pmop-fd", n_trees=20, min_rows=3).fit(TRAIN)
    X = np.zeros((50, TRAIN.n_features))
    X[:, 1] = grid
    assert (np.diff(free.predict(X)) > 0).any()
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(TRAIN), ranker.predict(TRAIN))


def test_shapley_values_are_those_of_lightgbm():
    grown = lgb.train(
        {"objective": "lambdarank", "verbosity": -1, "min_data_in_leaf": 3},
        lgb.Dataset(TRAIN.X, TRAIN.grade, group=np.diff(TRAIN.offsets)),
        10,
    )
    ranker = TreeRanker(n_trees=1, min_rows=3).fit(TRAIN)
    ranker.trees_ = type(ranker.trees_).from_lightgbm(grown)
    expected = grown.predict(TRAIN.X, pred_contrib=True)
    np.testing.assert_allclose(ranker.shapley(TRAIN.X), expected[:, :-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        ranker.shapley(TRAIN.X).sum(axis=1) + expected[0, -1], ranker.predict(TRAIN.X), rtol=1e-9
    )


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_an_interrupt_inside_a_long_round_keeps_the_trees_before_it(backend, monkeypatch):
    pytest.importorskip(backend)
    data = placet.simulate.queries(30, 8, 3, noise=0.4, random_state=4)
    for name, value in (("LARGE", 0), ("LONG_ROUND", -1.0), ("PATIENCE", 0.01)):
        monkeypatch.setattr(tree_ranker, name, value)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
    release, begun, released = threading.Event(), [], []
    library = tree_ranker.BACKENDS[backend]
    grow = library.grow

    def long_fourth_round(self, slopes):
        begun.append(threading.current_thread())
        if len(begun) == 4:
            os.kill(os.getpid(), signal.SIGINT)
            released.append(release.wait(60))
        return grow(self, slopes)

    monkeypatch.setattr(library, "grow", long_fourth_round)
    try:
        ranker = TreeRanker(n_trees=9, min_rows=3, backend=backend).fit(data)
    finally:
        release.set()
    assert ranker.fit_summary_["interrupted"] is True
    assert False not in released  # heard while the round went on
    assert threading.main_thread() not in begun
    monkeypatch.undo()
    whole = TreeRanker(n_trees=ranker.n_trees_, min_rows=3, backend=backend).fit(data)
    assert 1 <= ranker.n_trees_ <= 3
    assert np.array_equal(whole.predict(data), ranker.predict(data))


def beside_lightgbm(weight=None):
    """Five trees of lambdarank on top of distinct scores, by LightGBM and by Placet with the words of the migration table."""
    rows = queries(60, (5, 40), 5, grades=5, noise=0.5, random_state=1)
    X, grade = np.array(rows.X), rows.grade.astype(int)
    noisy = grade + 0.3 * np.random.default_rng(0).normal(size=len(grade))
    quick = {"n_jobs": 1, "verbose": -1}
    base = lgb.LGBMRegressor(n_estimators=150, num_leaves=63, min_child_samples=3, **quick).fit(X, noisy)
    theirs = lgb.LGBMRanker(n_estimators=5, **quick)
    theirs.fit(
        X, grade, group=np.diff(rows.offsets), init_model=base, sample_weight=weight(len(grade)) if weight else None
    )
    ours = TreeRanker(
        "lambdarank", n_trees=5, learning_rate=0.1, l2=0.0, subsample=1.0, feature_fraction=1.0,
        loss_params={"k": 30, "norm": True}, backend="lightgbm",
    )  # fmt: skip
    ours.fit(X, grade, group=np.diff(rows.offsets), start=base, weight=weight(len(grade)) if weight else None)
    start = np.asarray(base.predict(X))
    assert all(len(np.unique(start[a:b])) == b - a for a, b in zip(rows.offsets[:-1], rows.offsets[1:]))
    return ours.predict(X), np.asarray(theirs.predict(X)), start


def test_lambdarank_by_the_migration_table_gives_lightgbms_numbers():
    """Where no scores tie; LightGBM orders tied rows as they come, Placet takes the mean over all their orders."""
    ours, theirs, start = beside_lightgbm()
    np.testing.assert_allclose(ours, theirs, atol=1e-5)  # LightGBM's sigmoid is a table of 2^20 values
    assert np.std(theirs - start) > 0.1


def test_weights_of_rows_are_lightgbms():
    ours, theirs, _ = beside_lightgbm(lambda n: np.random.default_rng(2).uniform(0.1, 3.0, n))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert np.abs(ours - beside_lightgbm()[0]).max() > 0.05


def test_weights_of_rows_that_agree_in_a_query_are_weights_of_queries():
    by_query = np.random.default_rng(3).uniform(0.5, 2.0, len(DATA))
    a = TreeRanker(n_trees=3, min_rows=3).fit(DATA.X, DATA.grade, DATA.query, weight=by_query)
    b = TreeRanker(n_trees=3, min_rows=3).fit(DATA.X, DATA.grade, DATA.query, weight=by_query[DATA.query])
    np.testing.assert_array_equal(a.predict(DATA), b.predict(DATA))
    with pytest.raises(DataError, match="a query has one weight"):
        LinearRanker().fit(DATA.X, DATA.grade, DATA.query, weight=1.0 + np.arange(len(DATA.grade)))
    with pytest.raises(DataError, match="weight"):
        TreeRanker(n_trees=3).fit(DATA.X, DATA.grade, DATA.query, weight=-1.0 + np.arange(len(DATA.grade)))


def test_an_explanation_in_shaps_format(monkeypatch):
    """Values, base values and data as `shap.Explanation` takes them; LightGBM's own contributions."""
    given = {}
    shap = types.ModuleType("shap")
    shap.Explanation = lambda values, base, data, **more: given.update(values=values, base=base, data=data, **more)
    monkeypatch.setitem(sys.modules, "shap", shap)
    frame = pd.DataFrame(np.array(DATA.X), columns=[f"f{k}" for k in range(DATA.n_features)])
    ranker = TreeRanker(n_trees=6, min_rows=3, subsample=1.0).fit(frame, DATA.grade, qid=DATA.query)
    ranker.to_shap(frame[:9])
    assert given["values"].shape == given["data"].shape == (9, DATA.n_features)
    assert given["feature_names"] == list(frame.columns)
    np.testing.assert_allclose(given["base"], given["base"][0], atol=1e-9)
    np.testing.assert_allclose(given["base"] + given["values"].sum(axis=1), ranker.predict(frame[:9]), atol=1e-9)
    np.testing.assert_array_equal(given["data"], frame[:9])
