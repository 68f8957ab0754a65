"""Trees grown by XGBoost and CatBoost: the same losses, kept as arrays that send every row where their library does."""

import json
import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Queries
from placet.metrics import ndcg
from placet.rank import TreeRanker, autorank
from placet.rank.trees import tree_libraries
from placet.rank.trees.tree_conversion import (
    _monotone_values,
    forest_of,
    last_below,
    trees_of_catboost,
    trees_of_xgboost,
)
from placet.simulate import queries

pytestmark = pytest.mark.jit
DATA = queries(70, (1, 8), 3, grades=3, noise=0.2, random_state=2)
TRAIN, TEST = DATA[:50], DATA[50:]
SMALL = {"n_trees": 30, "min_rows": 3, "leaves": 8}


@pytest.fixture(params=["xgboost", "catboost"])
def backend(request):
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return request.param


@pytest.fixture(params=["placet", "xgboost", "catboost"])
def grower(request):
    """Placet as well."""
    if request.param != "placet":
        pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return request.param


def table(n=400, seed=0):
    """Rows with missing values, ties and numbers that float32 cannot hold."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)), 1) + 1e-9 * rng.normal(size=(n, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, np.nan_to_num(X[:, 0]) + np.isnan(X[:, 1]) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("loss", ["pmop-fd", "ranknet", "bregman-ce", "davidson", "lambdarank"])
def test_every_backend_learns_an_order(grower, loss):
    ranker = TreeRanker(loss, **SMALL, backend=grower).fit(TRAIN)
    chance = np.nanmean(ndcg(np.zeros(len(TEST.grade)), TEST.grade, TEST.offsets, 10))
    assert ranker.score(TEST) > chance + 0.4 * (1 - chance)


def test_a_tree_takes_the_newton_step_in_its_leaves(backend):
    """One tree from score 0: every leaf has -sum g / (sum h + l2) of its rows, times the rate."""
    from placet.rank.trees.tree_ranker import Slopes

    own = {"xgboost": {"subsample": 1.0}, "catboost": {"thread_count": 1}}[backend]
    ranker = TreeRanker(
        "ranknet", 1, leaves=4, min_rows=1, l2=2.0, learning_rate=0.5, backend=backend, backend_params=own
    )
    s = ranker.fit(TRAIN).predict(TRAIN)
    slopes = Slopes("ranknet")
    slopes.bind(TRAIN.lists())
    g, h = slopes.at(np.zeros(len(s)))
    assert 2 <= len(np.unique(s)) <= 4
    scale = h.mean() if backend == "catboost" else 1.0  # CatBoost takes the penalty in units of the mean weight
    for value in np.unique(s):
        leaf = s == value
        assert value == pytest.approx(-0.5 * g[leaf].sum() / (h[leaf].sum() + 2.0 * scale), rel=1e-4)


def test_trees_as_arrays_predict_what_xgboost_does():
    xgb = pytest.importorskip("xgboost")
    X, y = table()
    booster = xgb.train({"max_depth": 5, "base_score": 0.0, "nthread": 1}, xgb.DMatrix(X, y), 20)
    forest = forest_of(trees_of_xgboost(json.loads(booster.save_raw("json")), 20), 3).with_row_counts(X)
    forest.check()
    for rows in (X, table(seed=1)[0], forest.probe(np.random.default_rng(0)).clip(-1e30, 1e30)):
        np.testing.assert_allclose(forest.predict(rows), booster.predict(xgb.DMatrix(rows)), atol=1e-5)
    few = forest_of(trees_of_xgboost(json.loads(booster.save_raw("json")), 7), 3)
    np.testing.assert_allclose(few.predict(X), booster.predict(xgb.DMatrix(X), iteration_range=(0, 7)), atol=1e-5)


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_trees_as_arrays_predict_what_catboost_does(policy, nan_mode, tmp_path):
    catboost = pytest.importorskip("catboost")
    X, y = table()
    params = {"iterations": 10, "depth": 4, "grow_policy": policy, "nan_mode": nan_mode, "thread_count": 1}
    model = catboost.CatBoost({**params, "logging_level": "Silent", "allow_writing_files": False}).fit(X, y)
    model.save_model(str(tmp_path / "m.json"), format="json")
    written = json.loads((tmp_path / "m.json").read_text())
    bias = float(np.sum(written["scale_and_bias"][1]))
    written["scale_and_bias"][1] = [0.0]  # it would be added once for every tree
    forest = forest_of(trees_of_catboost(written, np.zeros(3, int)), 3).with_row_counts(X)
    forest.check()
    for rows in (X, table(seed=1)[0], forest.probe(np.random.default_rng(0)).clip(-1e30, 1e30)):
        np.testing.assert_allclose(forest.predict(rows) + bias, model.predict(rows), atol=1e-9)


def test_thresholds_stand_between_numbers_of_float32():
    at = np.float32([0.1, -0.1, 1.0, 2.0, 1e-20, 3e10, 0.0])
    t = last_below(at)
    assert (t.astype(np.float32) < at).all()
    assert (np.nextafter(t, np.inf).astype(np.float32) >= at).all()


def test_early_stopping_progress_and_seeds(grower):
    values = []
    ranker = TreeRanker("pmop-fd", n_trees=80, min_rows=3, leaves=8, patience=10, backend=grower)
    ranker.fit(TRAIN, valid=TEST, progress=lambda step, steps, value: values.append(value))
    assert ranker.n_trees_ == 1 + int(np.argmax(values))
    assert len(values) == min(ranker.n_trees_ + 10, 80)
    assert ranker.score(TEST) == pytest.approx(max(values), abs=1e-6)
    drawn = {**SMALL, "subsample": 0.5, "feature_fraction": 0.7, "backend": grower, "n_trees": 5}
    first, again, other = (TreeRanker(**drawn, random_state=seed).fit(TRAIN).predict(TEST) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_monotone_features_move_the_score_one_way(grower):
    ranker = TreeRanker("ranknet", n_trees=40, min_rows=1, leaves=16, backend=grower, monotone=[1, -1, 0])
    ranker.fit(TRAIN)
    free = TreeRanker("ranknet", n_trees=40, min_rows=1, leaves=16, backend=grower).fit(TRAIN)
    rng = np.random.default_rng(0)
    moves = {name: [] for name in ("bound", "free")}
    for name, one in (("bound", ranker), ("free", free)):
        for column, sign in ((0, 1), (1, -1)):
            X = np.repeat(2 * rng.normal(size=(60, 3)), 25, axis=0)
            X[:, column] = np.tile(np.linspace(-3, 3, 25), 60)
            moves[name].append(sign * np.diff(one.predict(X).reshape(60, 25), axis=1))
    assert min(move.min() for move in moves["bound"]) >= -1e-6
    assert min(move.min() for move in moves["free"]) < -1e-3
    assert np.ptp(ranker.predict(TEST)) > 0.1


@pytest.mark.parametrize("direction", [[1, 1, 1, 1], [1, -1, 1], [0, 1, 0, -1]])
def test_leaves_without_rows_keep_the_order_of_all_pairs_of_leaves(direction):
    rng, direction = np.random.default_rng(0), np.array(direction)
    bits = (np.arange(2 ** len(direction))[:, None] >> np.arange(len(direction))) & 1
    for share in rng.uniform(0.05, 0.9, 40):
        full = rng.random(len(bits)) < share
        known = bits @ (direction * rng.random(len(direction))) + bits @ (
            (direction == 0) * rng.normal(size=len(direction))
        )
        values = _monotone_values(np.where(full, known, rng.normal(size=len(bits))), full, direction)
        np.testing.assert_array_equal(values[full], known[full])
        for a in range(len(bits)):
            for b in range(len(bits)):
                step = bits[b] - bits[a]
                if (step * direction >= 0).all() and not step[direction == 0].any():
                    assert values[a] <= values[b]


def test_rounds_of_several_trees_keep_all_of_them():
    pytest.importorskip("xgboost")
    own = {"num_parallel_tree": 3}
    ranker = TreeRanker("pl-partition", 5, min_rows=1, subsample=0.5, backend="xgboost", backend_params=own).fit(TRAIN)
    assert (ranker.n_trees_, ranker.fit_summary_["trees"], len(ranker.trees_.roots)) == (5, 15, 15)
    judged = TreeRanker(
        "pl-partition", 40, min_rows=1, subsample=0.5, patience=5, backend="xgboost", backend_params=own
    )
    judged.fit(TRAIN, valid=TEST)
    assert judged.score(TEST) == pytest.approx(judged.fit_summary_["validation"], abs=1e-6)


def test_a_draw_without_features_is_followed_by_the_next():
    pytest.importorskip("catboost")
    ranker = TreeRanker("ranknet", 12, leaves=4, feature_fraction=0.2, backend="catboost").fit(TRAIN)
    assert ranker.fit_summary_["rounds"] == 12
    assert 0 < len(ranker.trees_.roots) < 12  # of 3 features, no split has one to choose from with probability 1 / 2


def test_saved_trees_need_no_engine(backend, tmp_path, monkeypatch):
    ranker = TreeRanker(**SMALL, backend=backend).fit(TRAIN)
    ranker.save(tmp_path / "m")
    monkeypatch.setitem(sys.modules, backend, None)
    again = placet.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(TEST), ranker.predict(TEST))
    assert again.backend == backend
    np.testing.assert_array_equal(again.feature_importances_, ranker.feature_importances_)


def test_an_absent_package_is_named(backend, monkeypatch):
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(ImportError, match=f"needs the package {backend}; install it with: pip install {backend}"):
        TreeRanker(backend=backend).fit(TRAIN)
    choice = autorank(TRAIN, TEST, candidates=[("trees", {"backend": backend}), ("linear", {"loss": "ranknet"})])
    assert "pip install" in choice.trials[0].failure
    assert choice.best.ranker == "linear"


def test_what_a_backend_does_not_take_is_refused(backend):
    with pytest.raises(DataError, match="takes what a sparse table does not store for missing"):
        TreeRanker(backend=backend).fit(Queries(csr_matrix(TRAIN.X), TRAIN.grade, TRAIN.offsets))
    with pytest.raises(ValueError, match="backend 'forest' is unknown"):
        TreeRanker(backend="forest").fit(TRAIN)
    with pytest.raises(ValueError, match="grows trees on queries in memory"):
        TreeRanker(backend=backend).fit(placet.Parts.of([TRAIN]))
    flat = Queries(np.ones((len(TRAIN.grade), 2)), TRAIN.grade, TRAIN.offsets)
    with pytest.warns(UserWarning, match="no tree could be grown"):
        ranker = TreeRanker(backend=backend, n_trees=3).fit(flat)
    own = {"xgboost": {"max_leaves": -3}, "catboost": {"depth": 99}}[backend]
    with pytest.raises(ValueError, match=r"(XGBoost|CatBoost) cannot grow such trees"):
        TreeRanker(backend=backend, n_trees=3, backend_params=own).fit(TRAIN)
    assert (ranker.n_trees_, ranker.predict(flat).any()) == (0, False)


@pytest.mark.parametrize(
    ("package", "own", "words"),
    [
        (
            "lightgbm",
            {"num_laves": 3},
            "backend_params holds num_laves, which LightGBM does not know; did you mean num_leaves",
        ),
        ("lightgbm", {"num_classes": 3}, "backend_params holds num_class=3, but a ranker has one score per row"),
        ("lightgbm", {"linear_tree": True}, "backend_params holds linear_tree=True, but leaves must hold one value"),
        ("lightgbm", {"boost": "dart"}, "changes earlier trees .* fit without a validation set"),
        (
            "xgboost",
            {"max_leafs": 3},
            "backend_params holds max_leafs, which XGBoost does not know; did you mean max_leaves",
        ),
        ("xgboost", {"booster": "gblinear"}, "backend_params holds booster='gblinear', but only plain sums of trees"),
        ("xgboost", {"booster": "dart"}, "backend_params holds booster='dart', but only plain sums of trees"),
        ("xgboost", {"num_class": 3}, "backend_params holds num_class=3, but a ranker has one score per row"),
        ("catboost", {"num_laves": 3}, "CatBoost cannot grow such trees: .*num_laves"),
    ],
)
def test_engine_parameters_that_would_be_ignored_or_cannot_be_kept_are_refused(package, own, words):
    pytest.importorskip(package)
    with pytest.raises(ValueError, match=words):
        TreeRanker(n_trees=2, min_rows=3, backend=package, backend_params=own).fit(TRAIN, valid=TEST)


@pytest.mark.parametrize(("package", "name"), [("lightgbm", "eta"), ("xgboost", "learning_rate")])
def test_a_second_name_of_a_parameter_counts(package, name):
    pytest.importorskip(package)
    given, meant = ({"backend_params": {name: 0.5}}, {"learning_rate": 0.5})
    one, other = (TreeRanker(n_trees=3, min_rows=3, backend=package, **more).fit(TRAIN) for more in (given, meant))
    np.testing.assert_array_equal(one.predict(TEST), other.predict(TEST))


def test_engines_use_placets_threads_and_one_for_small_tables(monkeypatch):
    pytest.importorskip("xgboost")
    pytest.importorskip("catboost")
    settings = TreeRanker()._settings(TRAIN)
    assert tree_libraries.LightGBM(settings, TRAIN, None).booster.params["num_threads"] == 1
    config = json.loads(tree_libraries.XGBoost(settings, TRAIN, None).booster.save_config())
    assert config["learner"]["generic_param"]["nthread"] == "1"
    assert tree_libraries.CatBoost(settings, TRAIN, None)._params()["thread_count"] == 1
    monkeypatch.setattr(tree_libraries, "SMALL_TABLE", 0)
    monkeypatch.setattr(tree_libraries, "get_threads", lambda: 5)
    assert tree_libraries.n_threads(TRAIN) == 5
    monkeypatch.setattr(tree_libraries, "is_forked", lambda: True)
    assert tree_libraries.n_threads(TRAIN) == 1


def test_importances_are_shares_of_the_variance_and_shapley_values_sum(grower):
    X = np.asarray(TRAIN.X)
    ranker = TreeRanker("pmop-fd", **SMALL, backend=grower).fit(TRAIN)
    assert ranker.feature_importances_.sum() == pytest.approx(1)
    one = TreeRanker("pmop-fd", n_trees=1, min_rows=3, leaves=8, backend=grower).fit(TRAIN)
    forest, part = one.trees_, np.zeros(3)
    n = forest.count / forest.count[0]
    leaf = forest.feature < 0
    variance = (n * forest.value**2)[leaf].sum() - (n * forest.value)[leaf].sum() ** 2
    for node in np.flatnonzero(~leaf):
        sides = []
        for child in (forest.left[node], forest.right[node]):
            inside = {int(child)}
            for k in range(child, len(leaf)):
                if k in inside and not leaf[k]:
                    inside |= {int(forest.left[k]), int(forest.right[k])}
            own = [k for k in inside if leaf[k]]
            sides.append((n[own].sum(), (n[own] * forest.value[own]).sum() / n[own].sum()))
        (a, u), (b, v) = sides
        part[forest.feature[node]] += a * b / (a + b) * (u - v) ** 2
    assert part.sum() == pytest.approx(variance)
    np.testing.assert_allclose(forest.importances(), part / variance)
    s, background = ranker.predict(X[:5]), 0.0
    for root, end in zip(ranker.trees_.roots, [*ranker.trees_.roots[1:], len(ranker.trees_.feature)]):
        nodes = np.arange(root, end)[ranker.trees_.feature[root:end] < 0]
        background += (ranker.trees_.value * ranker.trees_.count)[nodes].sum() / ranker.trees_.count[root]
    np.testing.assert_allclose(ranker.shapley(X[:5]).sum(axis=1), s - background, atol=1e-9)


def test_onnx_gives_the_scores(grower, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    X, y = table(300)
    grade = np.digitize(y, [0, 1]).astype(float)
    ranker = TreeRanker("pmop-fd", **SMALL, backend=grower).fit(X, grade, qid=np.arange(300) // 10)
    ranker.to_onnx(tmp_path / "m.onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    rows = np.vstack([X, ranker.trees_.probe(np.random.default_rng(1))])
    np.testing.assert_allclose(session.run(["scores"], {"X": rows})[0], ranker.predict(rows), rtol=1e-5, atol=1e-5)


def test_clicks_are_fitted_by_every_backend(grower):
    from placet.rank import fit_clicks
    from placet.simulate import clicks

    log = clicks(TRAIN, np.asarray(TRAIN.X)[:, 0], 20, random_state=0)
    fit = fit_clicks(TreeRanker("pl-partition", **SMALL, backend=grower), np.asarray(TRAIN.X)[log.document], log)
    assert np.isfinite(fit.ranker.predict(TEST)).all()
    assert fit.examination[0] == 1.0
    assert fit.examination[-1] < 0.8
