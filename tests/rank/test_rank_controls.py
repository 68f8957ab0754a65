"""Controls of rankers: fitted beside the features, left out of the scores, kept in files."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Parts, Queries
from placet.rank.feature_tables import Products, ProductTable, SideBySide, moments, times, transposed_times
from placet.rank.linear.linear_ranker import LinearRanker
from placet.rank.ranker import RANKERS

TIGHT = {"loss": "ranknet", "solver": "newton", "tol": 1e-8, "l2": 1e-2}


def drawn(n_queries, size, seed, *, effect=(0.0,), mixed=True):
    """Rows of shuffled queries: features, controls, grades of a noisy score with the controls, and queries."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = rng.normal(size=(n, 3))
    Z = 5.0 + 3.0 * rng.normal(size=(n, len(effect))) - 2.0 * X[:, :1]
    s = X @ [1.0, -0.5, 0.25] + Z @ effect + rng.logistic(size=n)
    qid = np.repeat(np.arange(n_queries), size)
    order = rng.permutation(n) if mixed else np.arange(n)
    return X[order], Z[order], np.digitize(s, [-1.0, 1.0])[order], qid[order]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"solver": "lbfgs", "loss": "pmop-fd"},
        {"standardize": False},
        {"solver": "sgd", "loss": "listnet", "batch": 7, "max_iter": 30},
        {"solver": "lbfgs", "loss": "rao-kupper"},
        {"solver": "lbfgs", "loss": "bregman-square"},
        {"solver": "lbfgs", "loss": "lambdarank"},
    ],
    ids=str,
)
def test_equal_to_columns_beside_the_features_that_are_0_in_scores(options):
    X, Z, y, qid = drawn(25, 6, 0, effect=(0.3, -0.2))
    options = TIGHT | options | ({} if options.get("solver") is None else {"tol": 1e-6})
    found = LinearRanker(**options).fit(X, y, qid, control=pd.DataFrame(Z, columns=["place", "length"]))
    slow = LinearRanker(**options).fit(np.hstack([X, Z]), y, qid)
    np.testing.assert_allclose(found.coef_, slow.coef_[:3], rtol=1e-4, atol=1e-6)
    assert list(found.controls_) == ["place", "length"]
    np.testing.assert_allclose(list(found.controls_.values()), slow.coef_[3:], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.predict(X), slow.predict(np.hstack([X, 0 * Z])), rtol=1e-4, atol=1e-6)
    assert found.learned_ == pytest.approx(slow.learned_, rel=1e-3)


def test_products_of_features_do_not_multiply_controls():
    X, Z, y, qid = drawn(30, 6, 1, effect=(0.3,))
    y = y + (X[:, 0] * X[:, 1] > 0.5)
    found = LinearRanker(second_order=0.05, **TIGHT).fit(X, y, qid, control=Z)
    products = Products(found.pairs_, found.mean_, found.scale_)
    assert len(found.pairs_)
    slow = LinearRanker(**TIGHT).fit(np.hstack([ProductTable(X, products).dense(), Z]), y, qid)
    np.testing.assert_allclose([*found.coef_, *found.controls_.values()], slow.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [csr_matrix, np.float32])
def test_sparse_and_short_features_keep_their_type(kind):
    X, Z, y, qid = drawn(20, 5, 2, effect=(0.5,))
    found = LinearRanker(**TIGHT | {"tol": 1e-4}).fit(
        X.astype(kind) if kind is np.float32 else kind(X), y, qid, control=Z
    )
    slow = LinearRanker(**TIGHT).fit(X, y, qid, control=Z)
    np.testing.assert_allclose(found.coef_, slow.coef_, rtol=1e-3)
    assert found.controls_ == pytest.approx(slow.controls_, rel=1e-3)


@given(st.integers(1, 30), st.integers(0, 4), st.integers(0, 3), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_tables_side_by_side_are_one_table(n, left, right, sparse, seed):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(3.0, size=(n, left)), rng.normal(size=(n, right))
    both, whole = SideBySide(csr_matrix(A) if sparse else A, B), np.hstack([A, B])
    w, g, rows = rng.normal(size=left + right), rng.normal(size=n), rng.integers(0, n, 5)
    assert both.shape == whole.shape
    for table, dense, part in ((both, whole, g), (both[rows], whole[rows], g[rows])):
        np.testing.assert_allclose(times(table, w), dense @ w, atol=1e-9)
        np.testing.assert_allclose(transposed_times(table, part), dense.T @ part, atol=1e-9)
    for one, other in zip(moments(both), moments(whole), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_rows_of_controls_are_those_of_the_table_and_of_queries():
    X, Z, y, qid = drawn(20, 5, 3, effect=(0.5,))
    found = LinearRanker(**TIGHT).fit(X, y, qid, control={"place": Z[:, 0]})
    queries = Queries.from_arrays(X, y, qid)
    assert (queries.row != np.arange(len(y))).any()
    same = LinearRanker(**TIGHT).fit(queries, control=Z[queries.row])
    np.testing.assert_allclose(same.coef_, found.coef_, rtol=1e-8)
    assert list(same.controls_) == ["control 1"]
    shuffled = LinearRanker(**TIGHT).fit(queries, control=Z)
    assert abs(shuffled.controls_["control 1"] - same.controls_["control 1"]) > 0.1


def test_units_are_those_of_the_caller():
    X, Z, y, qid = drawn(20, 5, 4, effect=(0.5,))
    meters = LinearRanker(**TIGHT).fit(X, y, qid, control=Z)
    kilometers = LinearRanker(**TIGHT).fit(X, y, qid, control=Z / 1000 + 7)
    assert kilometers.controls_["control 1"] == pytest.approx(1000 * meters.controls_["control 1"], rel=1e-4)
    np.testing.assert_allclose(kilometers.coef_, meters.coef_, rtol=1e-4)


def test_the_effect_of_a_position_is_taken_out_of_the_scores():
    rng = np.random.default_rng(5)
    n, size = 1500, 6
    X = rng.normal(size=(n, size, 2))
    place = np.argsort(np.argsort(X[..., 1] + 0.5 * rng.normal(size=(n, size)), axis=1), axis=1)  # by the useless one
    s = X[..., 0] - 0.6 * place
    order = np.argsort(-s + -rng.gumbel(size=s.shape), axis=1)  # the law of Plackett-Luce
    grade = size - np.argsort(order, axis=1)
    rows = X.reshape(-1, 2), grade.ravel(), np.repeat(np.arange(n), size)
    raw = LinearRanker("pl-partition", l2=1e-6).fit(*rows)
    free = LinearRanker("pl-partition", l2=1e-6).fit(*rows, control={"place": place.ravel()})
    assert raw.coef_[1] < -0.5  # what was shown low looks bad
    np.testing.assert_allclose(free.coef_, [1.0, 0.0], atol=0.06)
    assert free.controls_["place"] == pytest.approx(-0.6, abs=0.04)


def test_saved_with_the_model(tmp_path):
    X, Z, y, qid = drawn(15, 5, 6)
    found = LinearRanker().fit(X, y, qid, control={"place": Z[:, 0]})
    found.save(tmp_path / "model")
    again = placet.load(tmp_path / "model")
    assert again.controls_ == found.controls_ != {}
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    assert LinearRanker().fit(X, y, qid).controls_ == {}


def test_a_start_and_a_validation_set():
    X, Z, y, qid = drawn(30, 5, 7, effect=(0.4,))
    found = LinearRanker(**TIGHT).fit(X, y, qid, control={"place": Z[:, 0]})
    again = LinearRanker(**TIGHT).fit(X, y, qid, control={"place": Z[:, 0]}, start=found)
    assert again.fit_summary_["n_iter"] <= 2 < found.fit_summary_["n_iter"]
    assert again.controls_ == pytest.approx(found.controls_, rel=1e-4)
    judged = LinearRanker(**TIGHT).fit(X, y, qid, control=Z, valid=(X, y, qid))
    assert judged.score(X, y, qid) >= found.score(X, y, qid)


def test_a_ranker_fitted_again_without_controls_has_none():
    X, Z, y, qid = drawn(15, 5, 8, effect=(0.4,))
    ranker = LinearRanker(**TIGHT).fit(X, y, qid, control=Z)
    plain = LinearRanker(**TIGHT).fit(X, y, qid)
    np.testing.assert_array_equal(ranker.fit(X, y, qid).coef_, plain.coef_)
    assert ranker.controls_ == {}
    assert "_control" not in vars(ranker)  # the table is not held


@pytest.mark.parametrize(
    ("control", "words"),
    [
        (np.zeros((9, 2)), r"controls have the shape \(9, 2\); 75 rows are needed"),
        (np.full(75, np.nan), "row 0: control 'control 1' is nan"),
        ({"place": ["first"] * 75}, "controls must be numbers"),
    ],
)
def test_controls_that_do_not_fit_are_refused(control, words):
    X, _, y, qid = drawn(15, 5, 9)
    with pytest.raises(DataError, match=words):
        LinearRanker().fit(X, y, qid, control=control)


ABLE = {
    "trees": lambda: RANKERS["trees"]("pl-partition", n_trees=150, learning_rate=0.1, leaves=8),
    "neural": lambda: RANKERS["neural"]("pl-partition", hidden=(8,), epochs=30, learning_rate=1e-2),
    "booster": lambda: RANKERS["booster"]("pl-partition", n_rounds=60),
    "listwise": lambda: RANKERS["listwise"](LinearRanker("pl-partition", l2=1e-6), parts=("place",)),
}


def shown_by_the_useless(n, size, seed):
    """Queries shown in the order of a feature that is worth nothing, each place further down worth -0.6."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, size, 2))
    place = np.argsort(np.argsort(X[..., 1] + 0.5 * rng.normal(size=(n, size)), axis=1), axis=1)
    s = X[..., 0] - 0.6 * place
    order = np.argsort(-s - rng.gumbel(size=s.shape), axis=1)
    grade = size - np.argsort(order, axis=1)
    return X.reshape(-1, 2), grade.ravel(), np.repeat(np.arange(n), size), place.ravel()


@pytest.mark.parametrize("name", list(ABLE))
def test_every_ranker_of_a_loss_takes_the_effect_of_a_position_out(name, tmp_path):
    X, y, qid, place = shown_by_the_useless(400, 6, 5)
    new = np.random.default_rng(6).normal(size=(4000, 2))
    part = lambda ranker: np.polyfit(new[:, 1], ranker.predict(new) - new[:, 0], 1)[0]  # noqa: E731
    raw = ABLE[name]().fit(X, y, qid)
    free = ABLE[name]().fit(X, y, qid, control={"place": place})
    assert raw.controls_ == {}
    assert free.controls_["place"] == pytest.approx(-0.6, abs=0.1)
    if name != "listwise":  # whose features depend on the rows that are scored together
        assert part(raw) < -0.4 < -0.15 < part(free)
    assert np.corrcoef(free.predict(new), new[:, 0])[0, 1] > 0.9 > np.corrcoef(raw.predict(new), new[:, 0])[0, 1]
    mixed = np.random.default_rng(7).permutation(len(y))
    queries = Queries.from_arrays(X, y, qid)
    again = ABLE[name]().fit(queries, control={"place": place[queries.row]})
    np.testing.assert_array_equal(again.predict(new), free.predict(new))
    moved = ABLE[name]().fit(X[mixed], y[mixed], qid[mixed], control={"place": 1000 * place[mixed] + 7})
    assert moved.controls_["place"] == pytest.approx(-0.6 / 1000, abs=1e-4)
    free.save(tmp_path / "model")
    loaded = placet.load(tmp_path / "model")
    assert loaded.controls_ == free.controls_
    np.testing.assert_array_equal(loaded.predict(new), free.predict(new))


def test_a_validation_set_chooses_the_effects_with_the_scores():
    X, y, qid, place = shown_by_the_useless(120, 6, 8)
    held = (X[:300], y[:300], qid[:300])
    for name, more in (("trees", {"n_trees": 30}), ("booster", {"n_rounds": 10}), ("neural", {"epochs": 3})):
        ranker = ABLE[name]().set_params(**more).fit(X, y, qid, control={"place": place}, valid=held)
        assert -0.8 < ranker.controls_["place"] < 0.0


@pytest.mark.parametrize("name", [name for name in RANKERS if name not in ("linear", *ABLE)])
def test_rankers_that_fit_no_controls_say_so(name):
    X, Z, y, qid = drawn(15, 5, 10)
    kind = RANKERS[name]
    able = "LinearRanker, TreeRanker, NeuralRanker, ConsistentBooster, ListwiseFeatures do"
    with pytest.raises(ValueError, match=f"{kind.__name__} fits no effects of controls beside its scores; {able}"):
        kind.fit(kind.__new__(kind), X, y, qid, control=Z)
    listwise = RANKERS["listwise"](RANKERS["rankboost"]())
    with pytest.raises(ValueError, match="RankBoost fits no effects"):
        listwise.fit(X, y, qid, control=Z)


def test_parts_have_no_controls():
    X, Z, y, qid = drawn(15, 5, 11, mixed=False)
    queries = Queries.from_arrays(X, y, qid)
    parts = Parts.of([queries[:7], queries[7:]])
    with pytest.raises(ValueError, match="does not work on parts"):
        LinearRanker().fit(parts, control=Z)
