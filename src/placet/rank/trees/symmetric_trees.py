"""Symmetric trees, grown by Placet: all leaves of a level are split by the same feature at the same place.

A split must reduce the loss summed over a level, so it follows less of the noise than one chosen for a leaf alone.  And
it acts in all leaves above it: a product of two features takes two levels, whichever is split by first.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data import Queries
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_beyond_memory
from placet.kernels.rank import symmetric_splits as kernels
from placet.kernels.rank.tree_leaves import DEFAULT_LEFT, NAN_IS_MISSING, ZERO
from placet.rank.feature_tables import to_dense
from placet.rank.tree_arrays import Forest
from placet.rank.trees.tree_conversion import Tree, forest_of
from placet.threads import map_ordered

MOST_BINS = 255
LOWEST = -float(np.finfo(np.float64).max)
MOST_LEAVES = 1024
WIDE = 4096
"""Features beyond which LightGBM grows the trees unless others are asked for: its histograms of few bins are small."""


class SymmetricTree(NamedTuple):
    """Level k compares feature ``column[k]`` with its cut ``last[k]`` in the leaves where ``divided[k]``.

    Whether a row lies above it is bit k of its leaf.  ``value`` and ``rows`` (leaves,): of each leaf, and its rows.
    """

    column: Ints
    last: Ints
    divided: NDArray[np.bool_]
    value: Floats
    rows: Ints


class Symmetric:
    """Symmetric trees over at most 255 bins of every feature; leaves take a Newton step."""

    def __init__(self, settings: Any, queries: Queries, valid: Queries | None, threads: int) -> None:
        self.settings, self.threads, self.n_features = settings, threads, queries.n_features
        self.cuts = [cuts_of(column(queries.X, f)) for f in range(queries.n_features)]
        self.n_bins = np.array([len(own) + 1 for own in self.cuts], np.int64)
        self.code, self.s = self._encode(queries.X), np.zeros(queries.X.shape[0])
        self.valid_code = None if valid is None else self._encode(valid.X)
        self.on_valid = np.zeros(0 if valid is None else valid.X.shape[0])
        self.depth = max(1, round(np.log2(settings.leaves)))
        self.n_drawn = max(1, round(settings.feature_fraction * queries.n_features))
        bins, half = int(self.n_bins.max(initial=1)), 1 << (self.depth - 1)
        size = -(-self.n_drawn // threads)
        self.blocks = [slice(a, min(a + size, self.n_drawn)) for a in range(0, self.n_drawn, size)]
        refuse_beyond_memory(
            24.0 * self.n_drawn * half * bins,
            "the table of histograms of symmetric trees",
            "give fewer leaves, a smaller feature_fraction, or backend='lightgbm'",
        )
        self.counts = np.zeros((self.n_drawn, half, 3, bins))
        self.grown: list[list[SymmetricTree]] = []  # one per round: a tree, or none if the drawn features have no split

    def _encode(self, X: Any) -> NDArray[np.uint8]:
        """The bin (features, rows) of every entry; missing values are in the first."""
        code = np.empty((self.n_features, X.shape[0]), np.uint8)
        for f, cuts in enumerate(self.cuts):
            x = column(X, f)
            code[f] = np.where(np.isnan(x), 0, np.searchsorted(cuts, x))
        return code

    def grow(self, slopes: Any) -> bool:
        if not (self.n_bins > 1).any():
            return False
        g, h = slopes.at(self.s)
        own, n = self.settings, len(self.s)
        rng = np.random.default_rng((own.random_state, len(self.grown)))
        rows = np.flatnonzero(rng.random(n) < own.subsample) if own.subsample < 1 else np.arange(n)
        columns = np.sort(rng.choice(self.n_features, self.n_drawn, replace=False))
        tree = self._tree(rows.astype(np.int32), columns, g[rows], h[rows])
        self.grown.append([] if tree is None else [tree])
        if tree is None:  # another draw may find a split
            return bool(own.subsample < 1 or own.feature_fraction < 1)
        kernels.add_values(self.code, *tree[:4], self.s)
        if self.valid_code is not None:
            kernels.add_values(self.valid_code, *tree[:4], self.on_valid)
        return True

    def _tree(self, rows: NDArray[np.int32], columns: Ints, g: Floats, h: Floats) -> SymmetricTree | None:
        """Grow one tree on these rows, with gradients and curvatures in their order; None without a split."""
        own, n_leaves = self.settings, 1 << self.depth
        limits = float(own.l2), float(own.min_rows)
        start, middle, stop = np.zeros((3, n_leaves), np.int64)
        stop[0] = middle[0] = len(rows)
        G, H, N = np.zeros((3, n_leaves))
        G[0], H[0], N[0] = g.sum(), h.sum(), len(rows)
        low, high = np.full(n_leaves, -np.inf), np.full(n_leaves, np.inf)
        sign, n_bins = own.sign[columns].astype(np.float64), self.n_bins[columns]
        divided = np.zeros((self.depth, n_leaves), bool)
        column, last = np.zeros((2, self.depth), np.int64)
        fresh = 0
        for level in range(self.depth):
            leaves = slice(1 << level)

            def search(b: int) -> tuple[int, int, float]:
                block, counts = self.blocks[b], self.counts[self.blocks[b]]
                kernels.fill_histograms(self.code, columns[block], rows, g, h, start, middle, stop, fresh, counts)  # noqa: B023
                here = (sums[leaves] for sums in (G, H, N, low, high))  # noqa: B023
                found: tuple[int, int, float] = kernels.best_split(counts, n_bins[block], sign[block], *here, *limits)
                return found

            found = map_ordered(search, len(self.blocks)) if self.threads > 1 else [search(0)]
            best = int(np.argmax([gain for _, _, gain in found]))
            k, cut, gain = found[best]
            if not gain > 0:
                break
            if fresh:
                new = slice(fresh, 2 * fresh)
                start[new], stop[new], stop[:fresh] = middle[:fresh], stop[:fresh], middle[:fresh]
            k, fresh = k + self.blocks[best].start, 1 << level
            column[level], last[level] = columns[k], cut
            bins = self.counts[k], self.code[columns[k]], cut, sign[k]
            sums = G, H, N, low, high
            kernels.divide(*bins, rows, g, h, start, middle, stop, *sums, *limits, fresh, divided[level])
        step = np.clip(-G / np.maximum(H + limits[0], kernels.LEAST), low, high)
        tree = SymmetricTree(column, last, divided, own.learning_rate * step, N.astype(np.int64))
        return tree if divided.any() else None

    def valid_scores(self) -> Floats:
        return self.on_valid

    def trees(self, n_trees: int) -> Callable[[], Forest]:
        return partial(forest, [tree for drawn in self.grown[:n_trees] for tree in drawn], self.cuts)


def forest(trees: list[SymmetricTree], cuts: list[Floats]) -> Forest:
    """Symmetric trees as a forest, with their row counts."""
    found = [nodes_of(tree, cuts) for tree in trees]
    made = forest_of(found, len(cuts))
    return replace(made, count=np.concatenate([tree["count"] for tree in found]).astype(np.int64)) if found else made


def nodes_of(tree: SymmetricTree, cuts: list[Floats]) -> Tree:
    """The nodes of a symmetric tree, children after their parent, without splits of leaves that were left whole."""
    depth = len(tree.column)
    rows: list[list[Any]] = []
    waiting = [(0, 0, -1, 0)]  # leaf, level, parent, side
    while waiting:
        leaf, level, parent, side = waiting.pop()
        while level < depth and not tree.divided[level, leaf]:
            level += 1
        if parent >= 0:
            rows[parent][2 + side] = len(rows)
        if level == depth:
            rows.append([-1, 0.0, 0, 0, 0, tree.value[leaf], tree.rows[leaf]])
            continue
        f, here = int(tree.column[level]), len(rows)
        rows.append([f, cuts[f][tree.last[level]], 0, 0, NAN_IS_MISSING + DEFAULT_LEFT, 0.0, 0])
        waiting += [(leaf | 1 << level, level + 1, here, 1), (leaf, level + 1, here, 0)]
    for row in rows[::-1]:
        if row[0] >= 0:
            row[6] = rows[row[2]][6] + rows[row[3]][6]
    names = ("feature", "threshold", "left", "right", "how", "value", "count")
    return {name: np.array(column) for name, column in zip(names, zip(*rows))}


def cuts_of(x: Floats) -> Floats:
    """Cut points between neighboring values of a feature, at most 254 of them, with about as many rows between them.

    Missing values lie below all; the first cut parts them from the rest.

    >>> cuts_of(np.array([1.0, 3.0, 2.0, 3.0]))
    array([1.5, 2.5])
    """
    known = np.sort(x[~np.isnan(x)])
    missing = [LOWEST] if len(known) < len(x) else []
    if not len(known):
        return np.zeros(0)
    most = MOST_BINS - len(missing)
    first = np.flatnonzero(np.append(True, known[1:] > known[:-1]))  # the first row with each value
    if len(first) > most:
        places = len(known) * np.arange(1, most) // most
        first = np.unique(np.append(0, first[np.searchsorted(first, places, side="right") - 1]))
    low, high = known[first[1:] - 1], known[first[1:]]
    between = low / 2 + high / 2
    return np.append(missing, np.where((between >= low) & (between < high), between, low))


def column(X: Any, f: int) -> Floats:
    """A feature in double precision, with the numbers that trees take for 0 at 0."""
    own = to_dense(X[:, [f]])[:, 0].astype(np.float64)
    return np.where(np.abs(own) <= ZERO, 0.0, own)
