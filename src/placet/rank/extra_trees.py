"""A forest of random trees on the grades: no loss, no rounds, hardly a setting to choose."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Queries
from placet.data.arrays import Floats, list_of_rows
from placet.data.errors import one_of
from placet.data.gains import GAINS, gains
from placet.rank.foreign import Tree, forest_of, last_below
from placet.rank.forest import Forest
from placet.rank.of_trees import OfTrees
from placet.rank.state import Trees, holds

AT_ONCE = 10  # trees between two looks at the clock
LARGEST = float(np.finfo(np.float32).max)


class ForestRanker(OfTrees):
    """The mean of extremely randomized trees that are fitted to the gains of the grades.

    At each split some features are drawn, for each of them a threshold, and the best of these is taken: single trees
    err much and in different places, so their mean errs little where training queries are few, and in another way than
    boosted trees and linear rankers do, which makes it a good member of a blend.  Grown by scikit-learn, kept as
    Placet's own arrays.  Geurts, Ernst and Wehenkel, Extremely randomized trees, 2006.

    Parameters
    ----------
    n_trees : int
        Trees; more are never worse, and take longer.
    min_rows : int
        Rows of a leaf at least.
    feature_fraction : float
        Share of the features drawn at each split.
    gain : str
        What the trees are fitted to: the "linear", "exp2" or "log2" gain of a grade.
    center : bool
        Less the mean of the list, so that the trees need not tell queries apart.
    metric : str
        Judges on the validation set; nothing is chosen by it.
    random_state : int
        Seed of the draws.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> ForestRanker(50).fit(data[:40]).score(data[40:], metric="ndcg@5") > 0.8
    True
    """

    _state = holds(trees_=Trees())

    def __init__(
        self,
        n_trees: int = 200,
        *,
        min_rows: int = 3,
        feature_fraction: float = 0.3,
        gain: str = "linear",
        center: bool = False,
        metric: str = "ndcg@10",
        random_state: int = 0,
    ) -> None:
        self.n_trees = n_trees
        self.min_rows = min_rows
        self.feature_fraction = feature_fraction
        self.gain = gain
        self.center = center
        self.metric = metric
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        self._check(queries)
        query = list_of_rows(queries.offsets)
        y = gains(queries.grade, self.gain)
        if self.center:
            y = y - (np.bincount(query, y) / np.maximum(np.bincount(query), 1))[query]
        model = ExtraTreesRegressor(
            min_samples_leaf=self.min_rows,
            max_features=self.feature_fraction,
            random_state=self.random_state,
            warm_start=True,
        )
        sizes = [*range(AT_ONCE, self.n_trees, AT_ONCE), self.n_trees]
        best = self._keep_best(None, len(sizes))
        with best:
            for n in sizes:
                model.set_params(n_estimators=n).fit(queries.X, y, sample_weight=queries.weight[query])
                best.see(n)
        self.trees_ = forest_of_sklearn(model.estimators_[: best.state], queries.n_features)
        judge = self._judge(valid, lambda _: self._scores(valid))  # type: ignore[arg-type]
        self.fit_summary_ = {
            **best.summary(),
            "trees": int(best.state),
            "validation": None if judge is None else judge(None),
        }

    def _check(self, queries: Queries) -> None:
        if self.n_trees < 1 or self.min_rows < 1:
            raise ValueError(f"n_trees {self.n_trees} and min_rows {self.min_rows} must be at least 1")
        if not 0 < self.feature_fraction <= 1:
            raise ValueError(f"feature_fraction {self.feature_fraction} must be a share, above 0 and at most 1")
        one_of(self.gain, GAINS, "gain")
        if not queries.n_features:
            raise DataError("the rows have no features to split by")
        values = queries.X.data if hasattr(queries.X, "tocsr") else queries.X
        large = np.abs(values) > LARGEST
        if large.any():
            raise DataError(
                f"a feature is {np.asarray(values)[large].flat[0]:g} ({int(large.sum())} such values); a forest "
                f"compares features as float32, at most {LARGEST:.3g}: divide them, take ranks, or use TreeRanker"
            )


def forest_of_sklearn(estimators: Any, n_features: int) -> Forest:
    """The mean of fitted regression trees of scikit-learn, which compares features as float32."""
    trees: list[Tree] = []
    counts: list[NDArray[np.int64]] = []
    for estimator in estimators:
        grown = estimator.tree_
        inner = grown.children_left >= 0
        trees.append(
            {
                "feature": np.where(inner, grown.feature, -1),
                "threshold": np.where(inner, last_as_float32(grown.threshold), 0.0),
                "left": grown.children_left,
                "right": grown.children_right,
                "how": np.zeros(len(inner), np.uint8),
                "value": np.where(inner, 0.0, grown.value[:, 0, 0]),
            }
        )
        counts.append(np.asarray(grown.n_node_samples, np.int64))
    return replace(forest_of(trees, n_features), count=np.concatenate(counts), averaged=1)


def last_as_float32(threshold: Floats) -> Floats:
    """The largest double that as a float32 is not above ``threshold``: x <= it where float32(x) <= threshold.

    >>> t = last_as_float32(np.array([0.1]))[0]
    >>> bool(np.float32(t) <= 0.1), bool(np.float32(np.nextafter(t, 1)) <= 0.1)
    (True, False)
    """
    near = threshold.astype(np.float32)
    below = np.where(near.astype(np.float64) > threshold, np.nextafter(near, np.float32(-np.inf)), near)
    return last_below(np.nextafter(below.astype(np.float32), np.float32(np.inf)))
