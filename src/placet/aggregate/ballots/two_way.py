"""Ratings as item plus user: the least-squares equations in the items, with the users' levels profiled out.

With D the weight of each item's ratings and m_u the number of ratings of ballot u, the sum of squares is minimal over
the levels at L theta = b, L = D - sum_u (w_u / m_u) 1_u 1_u' (a graph Laplacian), b the deviations of ratings
from their ballot's mean, summed by item.  A prior that leaves the columns of Z free adds ``ratio`` P,
P = I - Z (Z'Z)^-1 Z'.
"""

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from placet.data import Rankings
from placet.data.arrays import Floats, Ints, list_of_rows

FEWEST_FOR_SUPPORT = 20
"""Number of items from which the prior's mean may follow the number of ratings."""

SOLVED = 1e-9
"""Relative residual of the solved equations."""


class TwoWay:
    """The equations of ratings ``score`` (rows,) with the weights of their ballots; a solution has mean zero."""

    def __init__(self, data: Rankings, score: Floats, weight: Floats):
        self.n, self.item = data.n_items, data.item
        self.offsets, self.weight = data.offsets, weight
        self.ballot = list_of_rows(data.offsets)
        self.size = np.diff(data.offsets).astype(np.float64)
        self.deviation = score - self._means(score)[self.ballot]
        self.score = score
        ones = np.ones(len(self.item))
        self.seen = sparse.csr_matrix((ones, self.item.astype(np.int32), data.offsets), (len(data), self.n))
        self.by_item = self.seen.T.tocsr()
        self.share = np.divide(weight, self.size, out=np.zeros(len(weight)), where=self.size > 0)
        row_weight = weight[self.ballot]
        self.support = np.bincount(self.item, row_weight, self.n).astype(np.float64)
        self.own = self.support - np.bincount(self.item, self.share[self.ballot], self.n)  # the diagonal of L
        self.goal = np.bincount(self.item, row_weight * self.deviation, self.n).astype(np.float64)
        self.total = float(weight @ self.size) - float(weight[self.size > 0].sum())  # ratings less levels

    def _means(self, values: Floats) -> Floats:
        """The mean of the rows of each ballot."""
        total = np.bincount(self.ballot, values, len(self.size))
        return np.divide(total, self.size, out=np.zeros(len(self.size)), where=self.size > 0)

    @cached_property
    def free(self) -> Floats:
        """(n, 1 or 2): orthonormal columns that the prior leaves free: the mean, and the log of the support."""
        constant = np.full((self.n, 1), max(self.n, 1) ** -0.5)
        if self.n < FEWEST_FOR_SUPPORT:
            return constant
        x = np.log1p(self.support)
        x -= x.mean()
        norm = float(np.linalg.norm(x))
        if norm < 1e-6 * self.n**0.5:
            return constant
        return np.column_stack([constant[:, 0], x / norm])

    def slope(self, theta: Floats) -> float:
        """The slope of scores in the log of one plus the support; 0 if the prior ignores the support."""
        if self.free.shape[1] == 1:
            return 0.0
        x = np.log1p(self.support)
        return float(self.free[:, 1] @ theta) / float(np.linalg.norm(x - x.mean()))

    def ignore_support(self) -> None:
        """Let the prior's mean be the same for all items."""
        self.__dict__["free"] = self.free[:, :1]

    def unfree(self, v: Floats) -> Floats:
        """P v: what is left of v (n, ...) outside the free columns."""
        return v - self.free @ (self.free.T @ v)

    def times(self, v: Floats, ratio: float) -> Floats:
        """(L + ratio P) v for v (n, ...).  O(rows) for each column."""
        inside = self.by_item @ (self.seen @ v * (self.share if v.ndim == 1 else self.share[:, None]))
        outside = v * (self.support if v.ndim == 1 else self.support[:, None])
        return outside - inside + ratio * self.unfree(v)

    def solve(self, b: Floats, ratio: float, rtol: float = SOLVED, start: Floats | None = None) -> Floats:
        """(L + ratio P)^-1 b for each column of b (n, k), with mean zero; conjugate gradients."""
        if not self.n:
            return b
        b = b - b.mean(axis=0)
        scale = 1.0 / np.maximum(self.own + ratio, 1e-300)[:, None]
        x = np.zeros_like(b) if start is None else start - start.mean(axis=0)
        residual = b - self.times(x, ratio) if start is not None else b.copy()
        goal = rtol * _norms(b) + 1e-300
        scaled = scale * residual
        direction, square = scaled.copy(), (residual * scaled).sum(axis=0)
        for _ in range(20 * self.n):
            if (_norms(residual) <= goal).all():
                break
            image = self.times(direction, ratio)
            bend = (direction * image).sum(axis=0)
            step = np.divide(square, bend, out=np.zeros_like(bend), where=bend > 1e-300)
            x += step * direction
            residual -= step * image
            residual -= residual.mean(axis=0)
            scaled = scale * residual
            before, square = square, (residual * scaled).sum(axis=0)
            turn = np.divide(square, before, out=np.zeros_like(before), where=before > 1e-300)
            direction = scaled + turn * direction
        return x - x.mean(axis=0)

    def dense(self, ratio: float) -> Floats:
        """L + ratio P as a dense matrix, made regular along the common shift of all items."""
        root = sparse.diags(np.sqrt(self.share)) @ self.seen
        L = -np.asarray((root.T @ root).todense())
        L[np.arange(self.n), np.arange(self.n)] += self.support + ratio
        return L - ratio * (self.free @ self.free.T) + (ratio + self.own.mean()) / self.n

    def residuals(self, theta: Floats) -> Floats:
        """(rows,): rating less item and level."""
        own = theta[self.item]
        return self.deviation - own + self._means(own)[self.ballot]

    def squares(self, theta: Floats) -> float:
        """The weighted sum of squared residuals."""
        return float(self.weight[self.ballot] @ self.residuals(theta) ** 2)

    def level(self, theta: Floats) -> float:
        """The mean over ballots of their level: the mean rating of an item of score 0."""
        used = self.weight * (self.size > 0)
        return float(used @ self._means(self.score - theta[self.item]) / used.sum()) if used.sum() > 0 else 0.0

    def gradients(self, theta: Floats, unit: Ints | None) -> Any:
        """Sparse (units, n): the gradient by item of each voter's squares, half of it; without voters, of ballots."""
        g = self.residuals(theta)
        if unit is None:
            g *= np.sqrt(self.weight)[self.ballot]
            return sparse.csr_matrix((g, self.item, self.offsets), self.seen.shape)
        g *= self.weight[self.ballot]
        units = int(unit.max(initial=-1)) + 1
        return sparse.csr_matrix((g, (unit[self.ballot], self.item)), (units, self.n))

    def groups(self) -> Ints:
        """The group of each item: items that chains of ballots connect."""
        counts = self.weight[self.ballot] > 0
        first = self.item[self.offsets[:-1][self.ballot[counts]]]
        edges = sparse.coo_matrix((np.ones(len(first), np.int8), (first, self.item[counts])), (self.n, self.n))
        return np.asarray(connected_components(edges.tocsr(), directed=False)[1])


def _norms(v: Floats) -> Floats:
    """The norm of each column of v (n, k); squares of vast weights would overflow."""
    most = np.maximum(np.abs(v).max(axis=0), 1e-300)
    return np.asarray(most * np.linalg.norm(v / most, axis=0))
