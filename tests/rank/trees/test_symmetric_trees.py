"""Symmetric trees, grown by Placet: against a search written out, and where they are kept."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Queries
from placet.data.engines import memory
from placet.rank import TreeRanker
from placet.rank.trees import tree_libraries
from placet.rank.trees.symmetric_trees import MOST_BINS, cuts_of
from placet.rank.trees.tree_ranker import Slopes, size_of
from placet.simulate import queries

DATA = queries(70, (1, 8), 3, grades=3, noise=0.2, random_state=2)
TRAIN, TEST = DATA[:50], DATA[50:]
ONE = {"n_trees": 1, "learning_rate": 1.0, "subsample": 1.0, "feature_fraction": 1.0, "backend": "placet"}


def with_gaps(n=240, seed=0):
    """Rows with ties and missing values; one feature is missing where another is large."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1)
    X[X[:, 0] > 0.7, 1] = np.nan
    grade = (np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 2]) + 0.3 * rng.normal(size=n) > 0.2).astype(float)
    return Queries(X, grade, np.arange(0, n + 1, 8))


def written_out(data, depth, l2, min_rows):
    """Scores of one symmetric tree: at each level, all cuts of all features are tried on all leaves."""
    slopes = Slopes("pl-partition")
    slopes.bind(data.lists())
    g, h = slopes.at(np.zeros(len(data.grade)))
    X, leaf = np.where(np.isnan(data.X), -np.inf, data.X), np.zeros(len(g), int)
    worth = lambda rows: g[rows].sum() ** 2 / (h[rows].sum() + l2)  # noqa: E731
    for _ in range(depth):
        best = (1e-12, None)
        for f in range(X.shape[1]):
            for cut in np.unique(X[:, f])[:-1]:
                left, gain, parts = X[:, f] <= cut, 0.0, []
                for j in np.unique(leaf):
                    a, b = (leaf == j) & left, (leaf == j) & ~left
                    if min(a.sum(), b.sum()) >= max(min_rows, 1):
                        gain += worth(a) + worth(b) - worth(leaf == j)
                        parts.append(b)
                best = max(best, (gain, parts), key=lambda pair: pair[0])
        for part in best[1] or ():
            leaf[part] = leaf.max() + 1
    total_g, total_h = np.bincount(leaf, g), np.bincount(leaf, h)
    return (-total_g / (total_h + l2))[leaf], np.bincount(leaf)


@pytest.mark.parametrize(("leaves", "l2", "min_rows"), [(2, 1.0, 1), (8, 1.0, 1), (8, 0.5, 15), (32, 3.0, 10)])
def test_a_tree_is_that_of_a_search_written_out(leaves, l2, min_rows):
    data = with_gaps()
    ranker = TreeRanker("pl-partition", **ONE, leaves=leaves, l2=l2, min_rows=min_rows).fit(data)
    s, rows = written_out(data, round(np.log2(leaves)), l2, min_rows)
    np.testing.assert_allclose(ranker.predict(data), s, atol=1e-9)
    found = ranker.trees_.count[ranker.trees_.feature < 0]
    assert sorted(found) == sorted(rows)
    assert found.min() >= min_rows
    assert (ranker.trees_.feature >= 0).sum() == len(rows) - 1  # no split of a leaf that was left whole


def test_the_scores_of_growing_are_those_of_the_forest():
    """In training and in validation, with missing values and draws."""
    data = with_gaps()
    ranker = TreeRanker("ranknet", 20, min_rows=3, backend="placet")
    settings = ranker.fit(data)._settings(data)
    library, slopes = tree_libraries.BACKENDS["placet"](settings, data, data[:10]), Slopes("ranknet")
    slopes.bind(data.lists())
    assert all(library.grow(slopes) for _ in range(20))
    np.testing.assert_allclose(ranker.predict(data), library.s, atol=1e-12)
    np.testing.assert_allclose(ranker.predict(data[:10]), library.valid_scores(), atol=1e-12)
    assert ranker.trees_.count[ranker.trees_.roots].max() < len(data.grade)  # 0.8 of the rows


def test_the_threads_do_not_matter(monkeypatch):
    monkeypatch.setattr(tree_libraries, "SMALL_TABLE", 0)
    data, before = with_gaps(), placet.threads.get_threads()
    found = []
    try:
        for n in (1, 3):
            placet.set_threads(n)
            found.append(TreeRanker(n_trees=10, min_rows=3, backend="placet").fit(data).predict(data).tobytes())
    finally:
        placet.set_threads(before)
    assert found[0] == found[1]


def test_products_of_features_are_found():
    """None of the features alone tells anything: leaf-wise trees take the first split by chance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 20))
    truth = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 4] * X[:, 5]
    data = Queries(X, (truth + 0.5 * rng.normal(size=8000) > 1.0).astype(float), np.arange(0, 8001, 20))
    fit = {"n_trees": 150, "learning_rate": 0.1}
    ours, leafwise = (
        TreeRanker(**fit, backend=name).fit(data[:200]).score(data[200:]) for name in ("placet", "lightgbm")
    )
    assert ours > leafwise + 0.015


def test_bins_hold_about_as_many_rows():
    x = np.random.default_rng(0).normal(size=5000)
    rows = np.bincount(np.searchsorted(cuts_of(x), x))
    assert len(rows) == MOST_BINS
    assert (rows.min(), rows.max()) == (19, 20)
    assert len(cuts_of(np.append(x, np.nan))) == MOST_BINS - 1
    assert cuts_of(np.array([np.nan, 2.0, 2.0])).tolist() == [-np.finfo(float).max]
    assert not len(cuts_of(np.array([np.nan, np.nan])))
    neighbors = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert cuts_of(neighbors).tolist() == [1.0]


def test_who_grows_the_trees_if_none_is_named():
    chosen = lambda data, **own: TreeRanker(**own)._backend_for(data)  # noqa: E731
    sparse = Queries(csr_matrix(TRAIN.X), TRAIN.grade, TRAIN.offsets)
    assert chosen(TRAIN) == chosen(TRAIN, leaves=1024) == "placet"
    assert chosen(TRAIN, backend="catboost") == "catboost"
    wide = Queries(np.zeros((4, 4097)), [0, 1, 0, 1], [0, 2, 4])
    params = {"leaves": 1025}, {"backend_params": {"x": 1}}
    others = [(sparse, {}), (wide, {}), (placet.Parts.of([TRAIN]), {}), *((TRAIN, own) for own in params)]
    assert {chosen(data, **own) for data, own in others} == {"lightgbm"}


def test_what_placets_trees_do_not_take_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"backend_params holds max_bin, but backend='placet' has no parameters"):
        TreeRanker(backend="placet", backend_params={"max_bin": 3}).fit(TRAIN)
    with pytest.raises(ValueError, match=r"leaves 2000 must be at most 1024 for backend='placet'"):
        TreeRanker(backend="placet", leaves=2000).fit(TRAIN)
    with pytest.raises(ValueError, match="backend='placet' grows trees on queries in memory"):
        TreeRanker(backend="placet").fit(placet.Parts.of([TRAIN]))
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(
        DataError, match=r"the table of histograms of symmetric trees needs about .* or backend='lightgbm'"
    ):
        TreeRanker(backend="placet").fit(TRAIN)


def test_lists_of_equal_grades_do_not_count_for_the_rate():
    told = Queries(np.zeros((7, 1)), [1, 0, 2, 2, 2, 0, 1], [0, 2, 2, 5, 7])
    assert size_of(told) == (4, 2)
    assert size_of(Queries(np.zeros((0, 1)), [], [0])) == (0, 0)
    assert size_of(placet.Parts.of([told])) == (7, 4)
