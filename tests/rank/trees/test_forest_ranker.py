"""A forest: a Newton step of a loss by hand, trees that see the order of values alone, missing ones, saved files."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.tree import ExtraTreeRegressor

import placet
from placet.data import DataError, Queries
from placet.losses import LOSSES
from placet.rank import ForestRanker, LinearRanker
from placet.rank.trees import forest_ranker
from placet.rank.trees.forest_ranker import encode_columns
from placet.rank.trees.tree_ranker import Slopes

DATA = placet.simulate.queries(60, 9, 4, 3, noise=0.3, random_state=1)


def slopes_at_zero(loss, data=DATA):
    slopes = Slopes(loss)
    slopes.bind(data.lists())
    return slopes.at(np.zeros(len(data.grade)))


def leaves_of(forest, X):
    """The leaf (rows, trees) of every row, node by node."""
    found = np.zeros((len(X), len(forest.roots)), int)
    for t, root in enumerate(forest.roots):
        for r, x in enumerate(X):
            node = root
            while forest.feature[node] >= 0:
                value = x[forest.feature[node]]
                left = np.isnan(value) or value <= forest.threshold[node]
                node = forest.left[node] if left else forest.right[node]
            found[r, t] = node
    return found


@pytest.mark.parametrize("loss", ["xendcg", "pmop-fd", "davidson", "bregman-square"])
def test_a_leaf_holds_the_newton_step_of_its_rows(loss):
    ranker = ForestRanker(loss, 10).fit(DATA)
    g, h = slopes_at_zero(loss)
    leaf = leaves_of(ranker.trees_, DATA.X)
    step = np.zeros_like(leaf, float)
    for t in range(10):
        for node in np.unique(leaf[:, t]):
            own = leaf[:, t] == node
            assert own.sum() == ranker.trees_.count[node] >= 3
            step[own, t] = -g[own].sum() / h[own].sum()
    np.testing.assert_allclose(ranker.predict(DATA), step.mean(axis=1), rtol=1e-9, atol=1e-12)


def test_trees_are_those_of_scikit_learn_on_ranks():
    """Codes are ranks of values; new rows lie between them."""
    ranker = ForestRanker("pmop-fd", 6, random_state=5).fit(DATA)
    rank = np.column_stack([np.unique(column, return_inverse=True)[1] for column in DATA.X.T]) + 1.0
    g, h = slopes_at_zero("pmop-fd")
    found = np.zeros((len(DATA.grade), 6))
    for t in range(6):
        seed = int(np.random.default_rng((5, t)).integers(1 << 31))
        tree = ExtraTreeRegressor(min_samples_leaf=3, max_features=0.3, random_state=seed)
        found[:, t] = tree.fit(rank.astype(np.float32), -g / h, sample_weight=h).predict(rank)
    np.testing.assert_allclose(ranker.predict(DATA), found.mean(axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("splits", ["random", "best"])
def test_only_the_order_of_values_counts(splits):
    other = Queries(np.sinh(3 * DATA.X) * [1.0, 1e-3, 1e200, 7.0], DATA.grade, DATA.offsets)
    one, two = (ForestRanker(n_trees=8, splits=splits).fit(data) for data in (DATA, other))
    np.testing.assert_allclose(two.predict(other), one.predict(DATA), rtol=1e-12)
    sparse = Queries(csr_matrix(DATA.X), DATA.grade, DATA.offsets)
    three = ForestRanker(n_trees=8, splits=splits).fit(sparse)
    np.testing.assert_array_equal(three.predict(csr_matrix(DATA.X)), one.predict(DATA))


def test_codes_and_places_between_values(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.choice([-1e308, -2.0, 0.0, 1e-40, 1.0, np.nextafter(1.0, 2), 3.5, 1e308, np.nan], (500, 3))
    cuts, code = encode_columns(X)
    for k in range(3):
        column = np.where(np.abs(X[:, k]) < 1e-35, 0.0, X[:, k])
        assert (code[np.isnan(column), k] == 0).all()
        for m, cut in enumerate(cuts[k]):  # codes up to m + 1 are the values up to the cut
            known = ~np.isnan(column)
            np.testing.assert_array_equal(code[known, k] <= m + 1, column[known] <= cut)
        assert len(np.unique(code[:, k])) == len(np.unique(column[~np.isnan(column)])) + 1
    monkeypatch.setattr(forest_ranker, "MOST_VALUES", 4)
    few, code = encode_columns(X)
    assert [len(own) for own in few] == [3, 3, 3]
    assert set(np.unique(code)) == {0.0, 1.0, 2.0, 3.0, 4.0}


def test_a_missing_value_tells_something():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(540, 2))
    X[DATA.grade == 2, 0] = np.nan
    ranker = ForestRanker(n_trees=20, feature_fraction=1.0).fit(Queries(X, DATA.grade, DATA.offsets))
    s = ranker.predict(X)
    assert s[DATA.grade == 2].min() > s[DATA.grade < 2].max() - 0.5
    assert s[DATA.grade == 2].mean() > s[DATA.grade < 2].mean() + 0.5


def test_weights_of_queries_count():
    both = Queries(
        np.tile(DATA.X, (2, 1)),
        np.append(DATA.grade, 2 - DATA.grade),
        np.append(DATA.offsets, DATA.offsets[1:] + 540),
        np.repeat([1.0, 1e-3], 60),
    )
    first = ForestRanker(n_trees=30).fit(both)  # the second half says the opposite, and hardly counts
    assert np.corrcoef(first.predict(DATA), DATA.grade)[0, 1] > 0.6


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if "curvature" in loss.gives])
def test_every_loss_with_a_curvature_grows_a_forest(loss):
    ranker = ForestRanker(loss, 20).fit(DATA[:40])
    assert ranker.score(DATA[40:], metric="ndcg@5") > 0.6


def test_it_ranks_and_explains_and_is_saved(tmp_path):
    forest = ForestRanker(n_trees=100).fit(DATA[:40], valid=DATA[40:])
    assert forest.fit_summary_["validation"] == pytest.approx(forest.score(DATA[40:]))
    assert forest.score(DATA[40:]) > LinearRanker().fit(DATA[:40]).score(DATA[40:]) - 0.1
    assert forest.fit_summary_["trees"] == 100
    i, j = 0, 1
    parts = forest.explain(DATA.X, i, j)
    s = forest.predict(DATA.X)
    assert sum(part for _, part in parts) == pytest.approx(s[i] - s[j])
    forest.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(DATA), forest.predict(DATA))


@pytest.mark.parametrize("splits", ["random", "best"])
def test_leaves_bound_every_tree(splits):
    whole, some = (ForestRanker(n_trees=5, leaves=leaves, splits=splits).fit(DATA) for leaves in (None, 7))
    assert whole.trees_.leaves().min() > 7
    assert some.trees_.leaves().tolist() == [7] * 5


def test_what_cannot_be_grown_is_refused():
    for ranker, message in (
        (ForestRanker(n_trees=0), "n_trees 0"),
        (ForestRanker(leaves=1), "leaves 1 must be at least 2, or None"),
        (ForestRanker(feature_fraction=0.0), "feature_fraction 0.0"),
        (ForestRanker(splits="middle"), "splits 'middle' is unknown"),
    ):
        with pytest.raises(ValueError, match=message):
            ranker.fit(DATA)
    with pytest.raises(DataError, match="no features"):
        ForestRanker().fit(Queries(np.zeros((540, 0)), DATA.grade, DATA.offsets))


def test_onnx_scores_as_placet(tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    forest = ForestRanker(n_trees=15).fit(DATA)
    forest.to_onnx(tmp_path / "forest.onnx")
    session = runtime.InferenceSession(tmp_path / "forest.onnx", providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": np.asarray(DATA.X, np.float64)})[0]
    np.testing.assert_allclose(found, forest.predict(DATA), atol=1e-5)
