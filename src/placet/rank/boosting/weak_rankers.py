"""Weak ranking functions for boosting: columns, stumps and regression trees.

A family has ``propose(d, rows, columns) -> (h on all training rows, function) | None``, which selects h by the gradient
d on ``rows``.  Functions are plain tuples: ("column", k), ("level", 0) or ("tree", nodes), where nodes are the five
arrays of ``kernels.boosting.add_trees``.  For rankers that need weak rankings of equal range,
``propose_by_range(p) -> (h, function, unit) | None`` returns the h = unit x function with range 1 on the training rows
and the largest |<p, h>|, and ``all_by_range(n)`` yields all such h, with ``n`` thresholds per feature for stumps.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from placet.data.arrays import Floats, Ints
from placet.kernels.rank import weak_learners as kernels
from placet.kernels.rank.exponential_pairs import best_threshold
from placet.rank.feature_tables import need_dense, reduce_per_list, to_dense
from placet.rank.tree_arrays import Forest
from placet.rank.trees.tree_libraries import lightgbm

LEARNERS = ("feature", "stump", "tree", "listwise")
ByRange = tuple[Floats, Any, float]
EXPONENTS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
N_BINS = 255


class ColumnLearner:
    """h = a column of a table; with ``center``, minus its mean over the training rows, and also h = a constant.

    Neither changes the order; both let the scores fit a shift without spending features on it.
    """

    def __init__(self, table: Any, center: bool) -> None:
        self.table, self.center = table, center
        n = max(table.shape[0], 1)
        self.mean = np.asarray(table.mean(axis=0), dtype=np.float64).ravel() if center else np.zeros(table.shape[1])
        self.norm = np.sqrt(np.maximum(_squares(table) - n * self.mean**2, 0.0))
        self.norm[self.norm <= 1e-7 * np.sqrt(n) * np.abs(self.mean)] = 0.0  # constant columns, up to rounding

    def propose(self, d: Floats, rows: Ints | None, columns: Ints | None) -> tuple[Floats, Any] | None:
        """The column with the largest |<d, h>| / |h|.  O(entries)."""
        if rows is None:
            part, own, norm = self.table, d, self.norm
        else:
            part, own = self.table[rows], d[rows]
            sums = np.asarray(part.sum(axis=0), dtype=np.float64).ravel()
            square = _squares(part) - 2.0 * self.mean * sums + len(rows) * self.mean**2
            norm = np.where(self.norm > 0, np.sqrt(np.maximum(square, 0.0)), 0.0)
        dots = np.asarray(part.T @ own.astype(part.dtype)) - self.mean * own.sum()
        margin = np.abs(dots) / np.where(norm > 0, norm, np.inf)
        if columns is not None:
            allowed = np.zeros(len(margin), bool)
            allowed[columns] = True
            margin = np.where(allowed, margin, -1.0)
        k = int(margin.argmax())
        if self.center and abs(own.sum()) / np.sqrt(max(len(own), 1)) > margin[k]:
            return np.ones(len(d)), ("level", 0)
        return (column(self.table, k) - self.mean[k], ("column", k)) if margin[k] > 0 else None

    @cached_property
    def range(self) -> Floats:
        """Largest minus smallest value of each column (columns,)."""
        high, low = self.table.max(axis=0), self.table.min(axis=0)
        dense = [x.toarray() if hasattr(x, "toarray") else np.asarray(x) for x in (high, low)]
        return np.asarray(dense[0] - dense[1], np.float64).ravel()

    def propose_by_range(self, p: Floats) -> ByRange | None:
        margin = np.abs(np.asarray(self.table.T @ p)) / np.where(self.range > 0, self.range, np.inf)
        k = int(margin.argmax())
        return self._by_range(k) if margin[k] > 0 else None

    def all_by_range(self, n: int) -> Iterator[ByRange]:
        return (self._by_range(k) for k in np.flatnonzero(self.range > 0).tolist())

    def _by_range(self, k: int) -> ByRange:
        unit = 1.0 / float(self.range[k])
        return unit * column(self.table, k), ("column", k), unit

    def functions_with_deviations(self, n: int) -> list[tuple[Any, float]]:
        """Non-constant columns, and their standard deviations."""
        norm = np.sqrt(np.maximum(_squares(self.table) / self.table.shape[0] - _means(self.table) ** 2, 0.0))
        return [(("column", int(k)), float(norm[k])) for k in np.flatnonzero((self.range > 0) & (norm > 0))]


def _means(table: Any) -> Floats:
    return np.asarray(table.mean(axis=0), dtype=np.float64).ravel()


def _squares(table: Any) -> Floats:
    """Sums of squares of the columns."""
    squares = table.multiply(table) if hasattr(table, "multiply") else np.square(table, dtype=np.float64)
    return np.asarray(squares.sum(axis=0), dtype=np.float64).ravel()


def column(table: Any, k: int) -> Floats:
    """A column of a dense or sparse table as a dense array."""
    return to_dense(table[:, [k]])[:, 0]


def values_of(name: str, function: Any, X: Any, listwise: Any) -> Floats:
    """Evaluate a weak function of a family on rows with features X and listwise columns."""
    kind, what = function
    if kind == "column":
        return column(X if name == "feature" else listwise, what)
    found: Floats = what.predict(np.ascontiguousarray(X, np.float64))
    return found


class Stumps:
    """h = the mean of -d on each side of a threshold of one feature; thresholds lie between quantiles."""

    def __init__(self, X: Floats) -> None:
        self.X = X
        self.edges = [_edges(X[:, f]) for f in range(X.shape[1])]
        self.bins = np.empty((X.shape[1], X.shape[0]), np.uint8)
        for f, edges in enumerate(self.edges):
            self.bins[f] = np.searchsorted(edges, X[:, f], side="left")
        self.n_bins = np.array([len(edges) + 1 for edges in self.edges])

    def propose(self, d: Floats, rows: Ints | None, columns: Ints | None) -> tuple[Floats, Any] | None:
        """The stump with the largest |<d, h>| / |h|.  O(entries)."""
        bins = self.bins if rows is None else np.ascontiguousarray(self.bins[:, rows])
        own = d if rows is None else d[rows]
        tried = np.arange(len(self.edges)) if columns is None else columns
        f, b, gain = kernels.best_split(bins, self.n_bins, own, tried)
        if gain <= 0.0 or f < 0:
            return None
        left = bins[f] <= b
        return self._stump(f, b, -own[left].mean(), -own[~left].mean())

    def propose_by_range(self, p: Floats) -> ByRange | None:
        f, b, margin = best_threshold(self.bins, self.n_bins, p, np.arange(len(self.edges)))
        return (*self._stump(f, b, 0.0, 1.0), 1.0) if margin > 0 else None

    def all_by_range(self, n: int) -> Iterator[ByRange]:
        for f, edges in enumerate(self.edges):
            places = np.searchsorted(edges, np.quantile(self.X[:, f], (np.arange(n) + 1) / (n + 1)))
            for b in np.unique(np.minimum(places, len(edges) - 1)).tolist() if len(edges) else ():
                yield (*self._stump(f, b, 0.0, 1.0), 1.0)

    def functions_with_deviations(self, n: int) -> list[tuple[Any, float]]:
        """Stumps at ``n`` quantiles of each feature, and their standard deviations."""
        return [(function, float(h.std())) for h, function, _ in self.all_by_range(n) if h.std() > 0]

    def _stump(self, f: int, b: int, left: float, right: float) -> tuple[Floats, Any]:
        """The stump with these values on the two sides of edge b of feature f: on the training rows, and as a tree."""
        goes_left = self.bins[f] <= b
        n, n_left = len(goes_left), int(goes_left.sum())
        counts = np.maximum([n, n_left, n - n_left], 1)
        splits = np.array([f, -1, -1]), np.array([self.edges[f][b], 0.0, 0.0]), np.array([1, 0, 0]), np.array([2, 0, 0])
        tree = Forest.of_splits(self.X.shape[1], *splits, np.array([0.0, left, right]), counts)
        return np.where(goes_left, left, right), ("tree", tree)


class TreeLearner:
    """h = a regression tree fitted to -d by least squares, grown by LightGBM or scikit-learn."""

    def __init__(self, X: Floats, backend: str, leaves: int, min_rows: int, random_state: int) -> None:
        self.X, self.backend, self.leaves, self.min_rows, self.random_state = X, backend, leaves, min_rows, random_state
        self.grown = 0
        self.data: Any = None

    def propose(self, d: Floats, rows: Ints | None, columns: Ints | None) -> tuple[Floats, Any] | None:
        self.grown += 1
        tree = (_lightgbm_tree if self.backend == "lightgbm" else _sklearn_tree)(self, -d, rows, columns)
        return None if tree is None else (tree.predict(self.X), ("tree", tree))

    def propose_by_range(self, p: Floats) -> ByRange | None:
        """A tree fitted to p, scaled to range 1."""
        found = self.propose(-p, None, None)
        if found is None or np.ptp(found[0]) == 0.0:
            return None
        unit = 1.0 / float(np.ptp(found[0]))
        return unit * found[0], found[1], unit


def _edges(x: Floats) -> Floats:
    """Thresholds between the distinct values of a column, at most ``N_BINS``; a value equal to one goes left."""
    values = np.unique(x)
    if len(values) > N_BINS:
        values = np.unique(np.quantile(x, np.linspace(0.0, 1.0, N_BINS), method="lower"))
    middle = 0.5 * (values[1:] + values[:-1])
    return np.where(middle < values[1:], middle, values[:-1])


def _sklearn_tree(family: TreeLearner, target: Floats, rows: Ints | None, columns: Ints | None) -> Forest | None:
    from sklearn.tree import DecisionTreeRegressor

    X = family.X if rows is None else family.X[rows]
    names = np.arange(family.X.shape[1]) if columns is None else columns
    tree = DecisionTreeRegressor(
        max_leaf_nodes=family.leaves, min_samples_leaf=family.min_rows, random_state=family.random_state + family.grown
    )
    grown = tree.fit(X[:, names], target if rows is None else target[rows]).tree_
    if grown.node_count < 2:
        return None
    inner = grown.feature >= 0
    feature = np.where(inner, names[np.where(inner, grown.feature, 0)], -1)
    left, right = np.where(inner, grown.children_left, 0), np.where(inner, grown.children_right, 0)
    threshold, value = np.where(inner, grown.threshold, 0.0), np.where(inner, 0.0, grown.value[:, 0, 0])
    return Forest.of_splits(family.X.shape[1], feature, threshold, left, right, value, grown.n_node_samples)


def _lightgbm_tree(family: TreeLearner, target: Floats, rows: Ints | None, columns: Ints | None) -> Forest | None:
    lgb = lightgbm()
    names = None if columns is None else columns.tolist()
    common = {"verbosity": -1, "min_data_in_leaf": family.min_rows, "deterministic": True, "force_row_wise": True}
    grow = {
        **common,
        "objective": "regression",
        "boost_from_average": False,
        "learning_rate": 1.0,
        "num_leaves": family.leaves,
        "lambda_l2": 0.0,
        "min_sum_hessian_in_leaf": 0.0,
        "num_threads": 1,
    }
    if family.data is None:  # binned once; later rounds change only the target and the subset of rows
        family.data = lgb.Dataset(family.X, target, params=common, free_raw_data=False)
    # LightGBM counts rows of weight 0 in a leaf, so a subset of the rows is a separate Dataset
    data = family.data if rows is None else family.data.subset(np.sort(rows))
    data.construct()
    data.set_label(target if rows is None else target[np.sort(rows)])
    if names is not None:
        grow["feature_contri"] = [1.0 if f in set(names) else 0.0 for f in range(family.X.shape[1])]
    booster = lgb.Booster(grow, data)
    booster.update()
    forest = Forest.from_text(booster.model_to_string())
    return None if forest.feature[0] < 0 else forest


def listwise_table(X: Any, z: Floats, offsets: Ints) -> Floats:
    """Columns b(x_i) exp(w z_ik - max over the list of w z_k) for b = 1, every feature, all k and w in ``EXPONENTS``.

    (rows, kernels len(EXPONENTS) (features + 1)): the terms of a sum of products over the other rows, with z
    (rows, kernels) the sums over these rows.  The largest factor of a list is 1, so long lists cannot overflow.
    """
    base = np.column_stack([np.ones(X.shape[0]), need_dense(X, "listwise learners need")])
    blocks = []
    for k in range(z.shape[1]):
        for w in EXPONENTS:
            exponent = w * z[:, k]
            blocks.append(base * np.exp(exponent - reduce_per_list(np.maximum, exponent, offsets))[:, None])
    return np.concatenate(blocks, axis=1)


def families(
    learners: Sequence[str],
    X: Any,
    listwise: Floats | None,
    *,
    center: bool,
    backend: str,
    leaves: int,
    min_rows: int,
    random_state: int,
) -> dict[str, Any]:
    """Families of weak ranking functions by name; stumps and trees need dense features."""
    found: dict[str, Any] = {}
    of_dense = sorted({"stump", "tree"} & set(learners))
    dense = None
    if of_dense:
        dense = np.ascontiguousarray(need_dense(X, f"learners {of_dense} need", "'feature'"), np.float64)
    for name in learners:
        if name == "feature":
            found[name] = ColumnLearner(np.asfortranarray(X) if isinstance(X, np.ndarray) else csc_array(X), center)
        elif name == "listwise":
            found[name] = ColumnLearner(np.asfortranarray(listwise), center)
        elif name == "stump":
            assert dense is not None
            found[name] = Stumps(dense)
        else:
            assert dense is not None
            found[name] = TreeLearner(dense, backend, leaves, min_rows, random_state)
    return found
