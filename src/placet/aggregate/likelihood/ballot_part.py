"""The ballots of one part with their loss: value and derivatives in item scores, row scores being s = theta[item]."""

from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np

from placet.aggregate.likelihood import information
from placet.data import DataError, Lists, Rankings
from placet.data.arrays import Floats, Ints, read_only, rows_of, tier_runs
from placet.kernels.aggregate import strict_orders
from placet.kernels.losses import partition
from placet.losses import Bound

WIDEST = 600.0
"""Maximum range of scores for closed forms; beyond, the losses sum exponentials in log space."""

HESSIAN_ACCURACY = 1e-8
"""Relative accuracy of probabilities of tied stages in the Hessian."""

NODES = 32
"""Approximate number of integration nodes per tied stage."""


class BallotPart:
    """Ballots with their weights and loss, without a prior; ``number`` is that of the part.

    Closed forms of Plackett-Luce are for ballots that tie only in their lowest tier
    (`placet.kernels.aggregate.strict_orders`) and for the others, ``rest`` (`placet.kernels.losses.partition`).
    """

    def __init__(self, ballots: Rankings, weight: Floats, loss: str, number: int = 0):
        self.item, self.offsets, self.n = ballots.item, ballots.offsets, ballots.n_items
        self.tier, self.weight, self.loss, self.number = ballots.tier, weight, loss, number
        self.tops = strict_orders.strict_places(self.tier, self.offsets)

    def work(self) -> tuple[float, float]:
        """Costs of the closed Hessian (pairs of rows) and of a Hessian product (rows), counted at every node."""
        sizes, n_rows = np.diff(self.offsets), float(len(self.item))
        each = np.where((sizes == self.n) & (self.tops >= 0), self.tops, sizes).astype(np.float64)
        pairs = float((each * each).sum())
        if self.rest is None:
            return pairs, n_rows
        first, size = tier_runs(self.rest.tier, self.rest.offsets)
        tied = size.astype(np.float64)
        tied[np.searchsorted(first, self.rest.offsets[1:]) - 1] = 0.0  # the lowest tier is not a stage
        return pairs + NODES * float((tied * tied).sum()), n_rows + NODES * float(tied.sum())

    @cached_property
    def some_strict(self) -> bool:
        """Whether any ballot ties only in its lowest tier; if none does, the kernels for these need not be compiled."""
        return bool((self.tops >= 0).any())

    @cached_property
    def rest(self) -> "BallotPart | None":
        """The ballots with ties above the lowest tier; None if there are none."""
        tied = np.flatnonzero(self.tops < 0)
        if not len(tied):
            return None
        own = copy(self)
        rows, own.offsets = rows_of(self.offsets, tied)
        own.item, own.tier, own.weight, own.tops = self.item[rows], self.tier[rows], self.weight[tied], self.tops[tied]
        for name in ("bound", "some_strict"):
            own.__dict__.pop(name, None)
        return own

    @cached_property
    def bound(self) -> Bound:
        """The loss bound to the ballots and their weights."""
        return Bound(self.loss, Lists(-self.tier.astype(np.float64), self.offsets, self.weight), total=1.0)

    def value(self, theta: Floats, closed: bool) -> tuple[float, Floats]:
        """Value and gradient by item, in closed form or by the loss.  O(rows), or O(places) if strict and complete."""
        top = theta.max(initial=-np.inf)
        if not (closed and self.n and self.some_strict and top - theta.min() < WIDEST):
            value, by_row = self.bound.value_and_grad(self.to_rows(theta))
            return value, self.by_item(by_row)
        shifted, grad = theta - top, np.zeros(len(theta))
        columns = (self.item, self.offsets, self.tops, self.weight)
        value = strict_orders.value_and_gradient(shifted, np.exp(shifted), *columns, grad)
        if self.rest is None:
            return value, grad
        others, slope = self.rest.value(theta, False)
        return value + others, grad + slope

    def times(self, theta: Floats, v: Floats) -> Floats:
        """Hessian at theta times v.  O(rows)."""
        return self.by_item(self.bound.hvp(self.to_rows(theta), self.to_rows(v)))

    def closed_hessian(self, theta: Floats) -> Floats:
        """The dense Hessian in closed form; scores are clipped to WIDEST / 2 below the best."""
        H = np.zeros((self.n, self.n))
        shifted = np.maximum(theta - theta.max(initial=-np.inf), -WIDEST / 2)  # squares do not underflow
        if self.some_strict:
            strict_orders.hessian(np.exp(shifted), self.item, self.offsets, self.tops, self.weight, H)
        if self.rest is not None:
            s, grade = read_only(theta[self.rest.item]), read_only(-self.rest.tier.astype(np.float64))
            offsets, weight, half = read_only(self.rest.offsets), read_only(self.rest.weight), np.zeros_like(H)
            partition.partition_hessian(s, self.rest.item, grade, offsets, weight, HESSIAN_ACCURACY, half)
            H += half
            H += half.T
        return H

    def dense(self, theta: Floats) -> Floats:
        """The dense Hessian by products: one for each item, or for each place of the longest ballot if these are fewer.

        A product with the rows that are first on their ballots gives the first column of every ballot's own Hessian.
        O(rows) each.
        """
        sizes = np.diff(self.offsets)
        longest = int(sizes.max(initial=0))
        if longest >= self.n or len(theta) > self.n:
            return information.by_columns(partial(self.times, theta), len(theta))
        s, place = self.to_rows(theta), np.arange(len(self.item)) - np.repeat(self.offsets[:-1], sizes)
        H = np.zeros((self.n, self.n))
        for k in range(longest):
            column = self.bound.hvp(s, (place == k).astype(np.float64))
            rows = np.repeat(sizes > k, sizes)
            at = np.repeat(self.item[self.offsets[:-1][sizes > k] + k], sizes[sizes > k])
            np.add.at(H, (self.item[rows], at), column[rows])
        return (H + H.T) / 2

    def curvature(self, theta: Floats) -> Floats:
        """The Hessian's diagonal, or the loss's bound on it."""
        return self.by_item(self.bound.curvature(self.to_rows(theta)))

    def row_gradient(self, theta: Floats) -> Floats:
        """Gradient (rows,) of every ballot with unit weight."""
        alone = self.bound.lists._replace(weight=None)
        return Bound(self.loss, alone, total=1.0).value_and_grad(self.to_rows(theta))[1]

    def outer_products(self, theta: Floats) -> Floats:
        """Sum over ballots of the outer product of their gradients."""
        return information.outer_products(self.row_gradient(theta), self.item, self.offsets, self.weight, self.n)

    def noise(self, theta: Floats, entropy: tuple[int, int]) -> Floats:
        """A draw with covariance equal to the outer products of the ballots' gradients."""
        rng = np.random.default_rng(np.random.SeedSequence((*entropy, self.number)))
        drawn = np.sqrt(self.weight) * rng.standard_normal(len(self.weight))
        return self.by_item(self.row_gradient(theta) * np.repeat(drawn, np.diff(self.offsets)))

    def to_rows(self, theta: Floats) -> Floats:
        """The score of every row; `by_item` is its transpose."""
        return theta[self.item]

    def by_item(self, rows: Floats) -> Floats:
        return np.bincount(self.item, rows, self.n).astype(np.float64, copy=False)

    def by_unit(self, rows: Floats, unit: Ints, n_units: int) -> Any:
        """(units, unknowns), sparse: `by_item` for the rows of each unit."""
        from scipy.sparse import csr_matrix

        return csr_matrix((rows, (unit, self.item)), shape=(n_units, self.n))


WeightOf = Callable[[Rankings], Floats]
"""The weights of the ballots of a part, from its data."""


def given_weight(weight: Floats, data: Rankings) -> Floats:
    """The weights ``weight`` (ballots,) of data in memory."""
    return weight


def part_weight(factor: Floats | None, data: Rankings) -> Floats:
    """The weights of the ballots of a part, times the factors (agents,) of their agents if given."""
    if data.control is not None:
        raise DataError("ballots in parts are fitted without controls; load them (parts.load()) where they fit")
    return data.weight if factor is None else data.weight * factor[data.agent]
