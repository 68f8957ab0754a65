"""Regression trees as arrays: converted once from the library's format, then independent of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.data.arrays import Floats, Ints, is_sparse
from placet.kernels.rank import tree_leaves as kernels
from placet.rank.feature_tables import to_dense
from placet.threads import get_threads, map_ordered

ROWS_AT_ONCE = 4096
PROBES = 200

Nodes = NDArray[np.int32]


@dataclass(frozen=True)
class Forest:
    """A sum of trees whose predictions equal LightGBM's bit for bit (XGBoost adds leaves in float32, so its differ).

    All nodes are in one table, children after their parent.  ``feature`` is -1 in a leaf; ``how`` says how a split
    treats missing values and categories (``placet.kernels.rank.tree_leaves``); ``value`` is that of a leaf, ``count``
    the number of training rows in a node; ``roots`` holds the root of each tree, in order of summation.  ``bounds`` and
    ``bits`` encode sets of categories.  ``averaged``: 1 if the sum is divided by the number of trees.
    """

    n_features: int
    feature: Nodes
    threshold: Floats
    left: Nodes
    right: Nodes
    how: NDArray[np.uint8]
    value: Floats
    count: Ints
    roots: Ints
    bounds: Ints
    bits: NDArray[np.uint32]
    averaged: int = 0

    def predict(self, X: Any) -> Floats:
        """Score (rows,) of every row of a dense or CSR table."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise DataError(f"the trees were grown on {self.n_features} features; these rows have shape {X.shape}")
        levels, used = self._levels, None
        if is_sparse(X) or 2 * len(self._used_features) < self.n_features:
            levels, used = levels.of_columns(self._used_features), self._used_features
        n = X.shape[0]
        out = np.zeros(n)
        size = max(1, min(ROWS_AT_ONCE, -(-n // get_threads())))

        def block(k: int) -> None:
            rows = slice(k * size, min((k + 1) * size, n))
            part = to_dense(X[rows] if used is None else X[rows][:, used])
            kernels.add_leaf_values(part, *levels.walk, levels.value, self.bounds, self.bits, out[rows])

        if len(self.roots):
            map_ordered(block, -(-n // size))
        return out / len(self.roots) if self.averaged and len(self.roots) else out

    def shapley(self, x: Floats) -> Floats:
        """Shapley value (features,) of each feature for the score of one row."""
        out = np.zeros(self.n_features)
        parent = np.full(len(self.feature), -1, np.int64)
        inner = np.flatnonzero(self.feature >= 0)
        parent[self.left[inner]] = parent[self.right[inner]] = inner
        kernels.add_shapley_values(
            np.ascontiguousarray(x, np.float64), self.feature, self.threshold, self.left, self.right, self.how,
            self.value, self.count, parent, self.bounds, self.bits, out,
        )  # fmt: skip
        return out / len(self.roots) if self.averaged and len(self.roots) else out

    def with_row_counts(self, X: Floats) -> "Forest":
        """The same trees with node counts from the rows of a dense table; a leaf without rows counts as one."""
        count, levels = np.zeros(len(self.feature), np.int64), self._levels
        if len(self.roots):
            kernels.add_rows_of_leaves(np.ascontiguousarray(X, np.float64), *levels.walk, self.bounds, self.bits, count)
            count[levels.node] = count.copy()
        count = np.where(self.feature < 0, np.maximum(count, 1), 0)
        for node in np.flatnonzero(self.feature >= 0)[::-1]:  # children come after their parent
            count[node] = count[self.left[node]] + count[self.right[node]]
        return replace(self, count=count)

    def importances(self) -> Floats:
        """Fraction (features,) of the variance of the trees' training scores due to splits on each feature.

        A split of node p into children c adds sum_c n_c (m_c - m_p)^2, n the training rows in a node and m the mean
        of the leaves below it, weighted by rows; over all splits of a tree this is n times the variance of its score.
        Importances sum to 1; without a split all are 0.
        """
        mean, total = self.value.copy(), np.zeros(self.n_features)
        n, inner = self.count.astype(np.float64), np.flatnonzero(self.feature >= 0)
        for k in inner[::-1]:  # children come after their parent
            a, b = self.left[k], self.right[k]
            mean[k] = (n[a] * mean[a] + n[b] * mean[b]) / (n[a] + n[b])
            total[self.feature[k]] += n[a] * n[b] / (n[a] + n[b]) * (mean[a] - mean[b]) ** 2
        whole = total.sum()
        return total / whole if whole > 0 else total

    def leaves(self) -> Ints:
        """The number of leaves of every tree."""
        tree = np.searchsorted(self.roots, np.arange(len(self.feature)), side="right") - 1
        return np.bincount(tree[self.feature < 0], minlength=len(self.roots))

    @cached_property
    def _used_features(self) -> Ints:
        """The features used in splits."""
        return np.unique(self.feature[self.feature >= 0]).astype(np.int64)

    @cached_property
    def _levels(self) -> "Levels":
        return Levels.of(self)

    def check(self) -> None:
        """Raise a ``DataError`` if walking the trees might not end at a leaf with a finite value."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, dtype in DTYPES.items():
            part = parts[name]
            if not isinstance(part, np.ndarray) or part.dtype != dtype or part.ndim != 1:
                raise DataError(f"{name} of the trees must be one row of {dtype.name}")
        n = len(self.feature)
        if any(len(parts[name]) != n for name in OF_NODES):
            raise DataError(f"the trees have {n} nodes, but {[len(parts[name]) for name in OF_NODES]} entries for them")
        if not all(type(number) is int and number >= 0 for number in (self.n_features, self.averaged)):
            raise DataError(f"the trees cannot have {self.n_features!r} features")
        _check_nodes(self.feature, self.left, self.right, self.roots, self.n_features)
        # LightGBM's threshold of a split that only separates missing values is inf
        fine = np.isfinite(self.threshold) | ((self.threshold == np.inf) & (self.feature >= 0))
        if not (fine.all() and np.isfinite(self.value).all() and (self.count >= 1).all()):
            raise DataError("thresholds and values of the trees must be finite, and every node have rows")
        if (self.how > kernels.PLAIN).any() or not _offsets(self.bounds, len(self.bits)):
            raise DataError("the splits of the trees are of no known kind")
        sets = self.threshold[(self.feature >= 0) & (self.how & kernels.CATEGORY != 0)]
        if not np.array_equal(np.sort(sets), np.arange(len(self.bounds) - 1)):
            raise DataError("splits of the trees and their sets of categories do not fit together")

    @classmethod
    def empty(cls, n_features: int) -> "Forest":
        """A forest without trees: every score is 0."""
        none: dict[str, Any] = {name: np.zeros(int(name == "bounds"), dtype) for name, dtype in DTYPES.items()}
        return cls(n_features, **none)

    @classmethod
    def of_splits(
        cls, n_features: int, feature: Ints, threshold: Floats, left: Ints, right: Ints, value: Floats, count: Ints
    ) -> "Forest":
        """One tree of plain splits: values up to the threshold go left; node 0 is the root, a leaf has feature -1."""
        how = np.where(feature >= 0, kernels.PLAIN, 0)
        given: tuple[Any, ...] = (feature, threshold, left, right, how, value, count, [0], [0], [])
        arrays: dict[str, Any] = {name: np.asarray(part, DTYPES[name]) for name, part in zip(DTYPES, given)}
        return cls(n_features, **arrays)

    @classmethod
    def sum_of(cls, trees: Sequence[tuple["Forest", float]], n_features: int) -> "Forest":
        """The trees of several forests in one table, the values of each times its factor."""
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in DTYPES}
        nodes = sets = words = 0
        for one, factor in trees:
            inner = one.feature >= 0
            category = inner & (one.how & kernels.CATEGORY != 0)
            moved = {"left": np.where(inner, one.left + nodes, 0), "right": np.where(inner, one.right + nodes, 0)}
            moved |= {"threshold": one.threshold + sets * category, "value": factor * one.value}
            moved |= {"roots": one.roots + nodes, "bounds": one.bounds[1:] + words}
            for name, own in parts.items():
                own.append(moved.get(name, getattr(one, name)))
            nodes, sets, words = nodes + len(inner), sets + len(one.bounds) - 1, words + len(one.bits)
        parts["bounds"].insert(0, np.zeros(1))
        arrays: dict[str, Any] = {name: _concatenate(values, DTYPES[name]) for name, values in parts.items()}
        return cls(n_features, **arrays)

    @classmethod
    def from_lightgbm(cls, model: Any) -> "Forest":
        """Convert a fitted LightGBM model; a ``ValueError`` if it does not predict the sum of its trees."""
        booster = getattr(model, "booster_", model)
        forest = cls.from_text(booster.model_to_string())
        probe = forest.probe(np.random.default_rng(0))
        found = np.asarray(model.predict(probe), dtype=np.float64)
        if found.shape != (len(probe),) or not np.array_equal(found, forest.predict(probe)):
            raise ValueError(
                "this model of LightGBM does not predict the sum of its trees: its objective transforms it; train it "
                "with objective='lambdarank' or 'regression', or give its scores as a column"
            )
        return forest

    @classmethod
    def from_text(cls, text: str) -> "Forest":
        """Parse the trees that LightGBM wrote as text (``model_to_string``), whose numbers are exact."""
        head, *blocks = text.split("\nend of trees")[0].split("\nTree=")
        known = _lines(head)
        if known.get("num_class", "1") != "1" or known.get("num_tree_per_iteration", "1") != "1":
            raise ValueError("a model of LightGBM for several classes has no one score to rank by")
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in DTYPES}
        at, n_sets, n_words = 0, 0, 0
        for block in blocks:
            tree = _tree(_lines(block))
            inner = tree["feature"] >= 0
            for name in ("left", "right"):
                tree[name] = np.where(inner, tree[name] + at, 0)
            tree["threshold"] = tree["threshold"] + n_sets * (inner & (tree["how"] & kernels.CATEGORY != 0))
            tree["roots"], tree["bounds"] = np.array([at]), tree["bounds"][1:] + n_words
            at, n_sets, n_words = at + len(inner), n_sets + len(tree["bounds"]), n_words + len(tree["bits"])
            for name, values in tree.items():
                parts[name].append(values)
        parts["bounds"].insert(0, np.zeros(1))
        arrays: dict[str, Any] = {name: _concatenate(values, DTYPES[name]) for name, values in parts.items()}
        return cls(int(known["max_feature_idx"]) + 1, **arrays, averaged=int("average_output" in known))

    def probe(self, rng: np.random.Generator) -> Floats:
        """Random rows with entries at and next to the thresholds of their column, including 0 and NaN."""
        X = rng.normal(size=(PROBES, self.n_features))
        for f in np.unique(self.feature[self.feature >= 0]):
            own = self.threshold[self.feature == f]
            values = np.concatenate([own, np.nextafter(own, np.inf), np.floor(own), [0.0, np.nan, -1.0, 1e300]])
            X[:, f] = rng.choice(values, PROBES)
        return X


class Levels(NamedTuple):
    """The nodes of a forest in the order of walking: tree by tree, level by level, a right child after the left one.

    ``walk``: what `placet.kernels.rank.tree_leaves.find_leaves` needs of all trees (roots, depth, whether a tree only
    compares) and of all nodes (code, threshold, child, how).  ``value`` and ``node`` (nodes,): the values of leaves and
    the indices in the forest.  Values that LightGBM takes for 0 lie on one side of every threshold.
    """

    walk: tuple[NDArray[Any], ...]
    value: Floats
    node: Ints

    @classmethod
    def of(cls, forest: Forest) -> "Levels":
        """Put the nodes of a forest in order."""
        node, depth, tree = _level_order(forest)
        place = np.empty(len(node), np.int64)
        place[node] = np.arange(len(node))
        inner, how = forest.feature[node] >= 0, forest.how[node]
        to_left, at = comparisons(forest)
        compares = np.ones(len(depth), bool)
        compares[tree[inner & (how & (kernels.CATEGORY | kernels.ZERO_IS_MISSING) != 0)]] = False
        code = np.where(inner, 2 * forest.feature[node] + ~to_left[node], 0).astype(np.uint32)
        child = np.arange(len(node), dtype=np.uint32)
        child[inner] = place[forest.left[node[inner]]]
        threshold = np.where(inner, at[node], np.inf)
        roots = place[forest.roots].astype(np.uint32)
        return cls((roots, depth, compares, code, threshold, child, how), forest.value[node], node)

    def of_columns(self, columns: Ints) -> "Levels":
        """The same for a table that holds these columns only."""
        roots, depth, compares, code, *rest = self.walk
        code = (2 * np.searchsorted(columns, code >> 1) + (code & 1)).astype(np.uint32)
        return self._replace(walk=(roots, depth, compares, code, *rest))


def _level_order(forest: Forest) -> tuple[Ints, Ints, Ints]:
    """The nodes (nodes,) tree by tree and level by level, the depth of every tree, and the tree of each such node."""
    level, tree = forest.roots, np.arange(len(forest.roots))
    depth, levels, trees = np.zeros(len(tree), np.int64), [level], [tree]
    while len(level):
        inner = forest.feature[level] >= 0
        level, tree = level[inner], tree[inner]
        depth[tree] += 1
        level = np.column_stack([forest.left[level], forest.right[level]]).ravel().astype(np.int64)
        tree = np.repeat(tree, 2)
        levels.append(level)
        trees.append(tree)
    node, tree = np.concatenate(levels), np.concatenate(trees)
    order = np.argsort(tree, kind="stable")
    return node[order], depth, tree[order]


def comparisons(forest: Forest) -> tuple[NDArray[np.bool_], Floats]:
    """Whether NaN goes left (nodes,), and thresholds (nodes,) to compare with if values near 0 are not rounded to 0.

    They are valid in splits that are neither of categories nor take zeros as missing.
    """
    how, at = forest.how, forest.threshold
    # a NaN that does not count as missing is a zero
    to_left = np.where(how & kernels.NAN_IS_MISSING, how & kernels.DEFAULT_LEFT != 0, at >= 0.0)
    to_left &= how & kernels.PLAIN == 0
    # values within ZERO of 0 count as 0, all on one side of a threshold
    rounds = (forest.feature >= 0) & (how & (kernels.PLAIN | kernels.CATEGORY) == 0)
    at = np.where(rounds & (at >= -kernels.ZERO) & (at < 0.0), np.nextafter(-kernels.ZERO, -1.0), at)
    return to_left, np.where(rounds & (at >= 0.0) & (at < kernels.ZERO), kernels.ZERO, at)


DTYPES: dict[str, np.dtype[Any]] = {
    "feature": np.dtype(np.int32),
    "threshold": np.dtype(np.float64),
    "left": np.dtype(np.int32),
    "right": np.dtype(np.int32),
    "how": np.dtype(np.uint8),
    "value": np.dtype(np.float64),
    "count": np.dtype(np.int64),
    "roots": np.dtype(np.int64),
    "bounds": np.dtype(np.int64),
    "bits": np.dtype(np.uint32),
}
"""The arrays of a forest and their types."""

OF_NODES = ("threshold", "left", "right", "how", "value", "count")


def _check_nodes(feature: Any, left: Any, right: Any, roots: Any, n_features: int) -> None:
    """Raise a ``DataError`` unless these are trees: every node is a root or the child of exactly one earlier node."""
    n = len(feature)
    if n and (feature.min() < -1 or feature.max() >= n_features):
        raise DataError(f"a split of the trees asks for feature {int(feature.max())} of {n_features}")
    inner = np.flatnonzero(feature >= 0)
    children = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    if ((children <= np.tile(inner, 2)) | (children >= n)).any():
        raise DataError("a node of the trees has a child that does not come after it, or is not there")
    if len(roots) and (roots.min() < 0 or roots.max() >= n):
        raise DataError(f"the trees have a root outside their {n} nodes")
    if not (np.bincount(np.concatenate([children, roots]).astype(np.int64), minlength=n) == 1).all():
        raise DataError("a node of the trees belongs to none of them, or twice")


def _offsets(bounds: Ints, n: int) -> bool:
    return len(bounds) > 0 and bounds[0] == 0 and bounds[-1] == n and bool((bounds[1:] >= bounds[:-1]).all())


def _lines(block: str) -> dict[str, str]:
    """Parse ``name=value`` lines; a name alone has an empty value."""
    return dict(line.partition("=")[::2] for line in block.splitlines())


def _concatenate(parts: list[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *(part.astype(dtype) for part in parts)])


def _tree(lines: dict[str, str]) -> dict[str, Any]:
    """The arrays of one tree: its splits, then its leaves."""
    if lines.get("is_linear", "0") != "0":
        raise ValueError("linear trees of LightGBM cannot be kept; train with linear_tree=False")
    n_leaves, n_sets = int(lines["num_leaves"]), int(lines["num_cat"])

    def numbers(name: str, n: int, *, inside: bool) -> Floats:
        found = np.array(lines.get(name, "").split() if n else [], dtype=np.float64)
        if len(found) != n:
            raise ValueError(f"LightGBM wrote {len(found)} numbers of {name} for {n} nodes")
        other = np.zeros(n_leaves if inside else n_leaves - 1)
        return np.concatenate([found, other] if inside else [other, found])

    n_inner = n_leaves - 1
    kind = numbers("decision_type", n_inner, inside=True).astype(np.int64)  # 1 category, 2 default left, 4 * missing
    category, rest = kind & 1, kind >> 1
    counts = [numbers("internal_count", n_inner, inside=True)]
    counts.append(numbers("leaf_count", n_leaves, inside=False) if n_inner else np.ones(n_leaves))
    child = {name: numbers(f"{name}_child", n_inner, inside=True).astype(np.int64) for name in ("left", "right")}
    feature = numbers("split_feature", n_inner, inside=True).astype(np.int64)
    feature[n_inner:] = -1
    return {
        "feature": feature,
        "threshold": numbers("threshold", n_inner, inside=True),
        **{name: np.where(nodes < 0, n_inner - 1 - nodes, nodes) for name, nodes in child.items()},
        "how": (rest | (category * kernels.CATEGORY)).astype(np.uint8),
        "value": numbers("leaf_value", n_leaves, inside=False),
        "count": np.maximum(sum(counts), 1.0),
        "bounds": np.array(lines["cat_boundaries"].split() if n_sets else [0], dtype=np.int64),
        "bits": np.array(lines["cat_threshold"].split() if n_sets else [], dtype=np.uint32),
    }
