"""A forest of random trees on the grades: what scikit-learn grew, kept as Placet's own arrays."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.ensemble import ExtraTreesRegressor

import placet
from placet.data import DataError, Queries
from placet.rank import ForestRanker, LinearRanker
from placet.rank.extra_trees import forest_of_sklearn, last_as_float32

DATA = placet.simulate.queries(60, 9, 4, 3, noise=0.3, random_state=1)


def test_scores_are_those_of_scikit_learn():
    model = ExtraTreesRegressor(24, min_samples_leaf=3, max_features=0.3, random_state=5).fit(DATA.X, DATA.grade)
    forest = ForestRanker(24, random_state=5).fit(DATA)
    np.testing.assert_allclose(forest.predict(DATA), model.predict(DATA.X), rtol=1e-12)
    probe = np.random.default_rng(0).normal(size=(400, 4))
    thresholds = np.concatenate([tree.tree_.threshold[tree.tree_.feature >= 0] for tree in model.estimators_])
    probe[:200] = np.random.default_rng(1).choice(thresholds, (200, 4))  # on the thresholds
    probe[200:] = np.nextafter(np.random.default_rng(2).choice(thresholds, (200, 4)), np.inf)
    found = forest_of_sklearn(model.estimators_, 4).predict(probe)
    np.testing.assert_allclose(found, model.predict(probe), rtol=1e-12)
    np.testing.assert_allclose(forest.feature_importances_.sum(), 1.0)


def test_thresholds_part_the_numbers_that_float32_parts():
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.normal(size=200), np.float32(rng.normal(size=200)).astype(float), [0.0, 1e30, -1e30]])
    edge = last_as_float32(t)
    assert (edge.astype(np.float32) <= t).all()
    assert (np.nextafter(edge, np.inf).astype(np.float32) > t).all()


def test_sparse_rows_weights_gains_and_centers():
    dense = ForestRanker(12, gain="exp2", center=True).fit(DATA)
    sparse = ForestRanker(12, gain="exp2", center=True).fit(Queries(csr_matrix(DATA.X), DATA.grade, DATA.offsets))
    np.testing.assert_allclose(sparse.predict(csr_matrix(DATA.X)), dense.predict(DATA.X), rtol=1e-9)
    assert abs(dense.predict(DATA).mean()) < 0.05  # leaves are means of gains less those of their lists
    assert ForestRanker(12).fit(DATA).predict(DATA).mean() == pytest.approx(DATA.grade.mean(), abs=0.1)
    both = Queries(
        np.tile(DATA.X, (2, 1)),
        np.append(DATA.grade, 2 - DATA.grade),
        np.append(DATA.offsets, DATA.offsets[1:] + 540),
        np.repeat([1.0, 1e-3], 60),
    )
    first = ForestRanker(30).fit(both)  # the second half says the opposite, and hardly counts
    assert np.corrcoef(first.predict(DATA), DATA.grade)[0, 1] > 0.6


def test_it_ranks_and_explains_and_is_saved(tmp_path):
    forest = ForestRanker(100).fit(DATA[:40], valid=DATA[40:])
    assert forest.fit_summary_["validation"] == pytest.approx(forest.score(DATA[40:]))
    assert forest.score(DATA[40:]) > LinearRanker().fit(DATA[:40]).score(DATA[40:]) - 0.1
    assert forest.fit_summary_["trees"] == 100
    i, j = 0, 1
    parts = forest.explain(DATA.X, i, j)
    s = forest.predict(DATA.X)
    assert sum(part for _, part in parts) == pytest.approx(s[i] - s[j])
    forest.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(DATA), forest.predict(DATA))


def test_what_cannot_be_grown_is_refused():
    for ranker, message in (
        (ForestRanker(0), "n_trees 0"),
        (ForestRanker(feature_fraction=0.0), "feature_fraction 0.0"),
        (ForestRanker(gain="cubic"), "gain 'cubic' is unknown"),
    ):
        with pytest.raises(ValueError, match=message):
            ranker.fit(DATA)
    with pytest.raises(DataError, match=r"a feature is 1e\+39"):
        ForestRanker().fit(Queries(np.where(DATA.X > 1, 1e39, DATA.X), DATA.grade, DATA.offsets))


def test_onnx_scores_as_placet(tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    forest = ForestRanker(15).fit(DATA)
    forest.to_onnx(tmp_path / "forest.onnx")
    session = runtime.InferenceSession(tmp_path / "forest.onnx", providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": np.asarray(DATA.X, np.float64)})[0]
    np.testing.assert_allclose(found, forest.predict(DATA), atol=1e-5)
