"""Ballots whose rows have controls z: the score of a row is theta[item] + z . gamma, with gamma unknown too."""

from typing import Any

import numpy as np

from placet.aggregate.likelihood import information
from placet.aggregate.likelihood.ballot_objective import Ballots
from placet.aggregate.likelihood.ballot_part import BallotPart
from placet.aggregate.likelihood.information import LEAST_PRECISION
from placet.aggregate.likelihood.prior import EXTRA_PRIOR, trend_of
from placet.aggregate.pairs.unidentified_effects import refuse_confounded, refuse_endless, unidentified_names
from placet.aggregate.result.learned.control_effects import Controls
from placet.data import DataError, Rankings
from placet.data.arrays import Floats, Ints

LEAST_DIFFERENCE = 1e-12
"""Differences of a control within ballots smaller than this, relative to its largest value, are rounding errors."""


class ControlledPart(BallotPart):
    """Ballots in x = (scores, effects of controls in units of typical differences).

    ``Z`` (rows, k): controls minus their ballot means, which have no effect, divided by ``unit`` (k,), the root mean
    square of their differences between two rows of a ballot.
    """

    def __init__(self, ballots: Rankings, weight: Floats, loss: str, number: int = 0):
        super().__init__(ballots, weight, loss, number)
        self.unit = typical_differences(ballots, weight)
        self.Z = within_ballots(ballots) / self.unit

    def to_rows(self, theta: Floats) -> Floats:
        return theta[self.item] + self.Z @ theta[self.n :]

    def by_item(self, rows: Floats) -> Floats:
        return np.concatenate([np.bincount(self.item, rows, self.n), rows @ self.Z])

    def by_unit(self, rows: Floats, unit: Ints, n_units: int) -> Any:
        from scipy.sparse import csr_matrix, hstack

        effects = [np.bincount(unit, rows * z, n_units) for z in self.Z.T]
        return csr_matrix(hstack([super().by_unit(rows, unit, n_units), csr_matrix(np.array(effects).T)]))

    def curvature(self, theta: Floats) -> Floats:
        rows = self.bound.curvature(self.to_rows(theta))
        return np.concatenate([np.bincount(self.item, rows, self.n), rows @ self.Z**2])

    def outer_products(self, theta: Floats) -> Floats:
        g, n, k, sizes = self.row_gradient(theta), self.n, self.Z.shape[1], np.diff(self.offsets)
        starts = self.offsets[:-1][sizes > 0]
        along = np.zeros((len(sizes), k))
        along[sizes > 0] = np.add.reduceat(g[:, None] * self.Z, starts, axis=0) if len(starts) else 0.0
        J = np.empty((n + k, n + k))
        J[:n, :n] = information.outer_products(g, self.item, self.offsets, self.weight, n)
        weighted = self.weight[:, None] * along
        rows = np.repeat(weighted, sizes, axis=0) * g[:, None]
        for c in range(k):
            J[n + c, :n] = J[:n, n + c] = np.bincount(self.item, rows[:, c], n)
        J[n:, n:] = along.T @ weighted
        return J


class ControlledBallots(Ballots):
    """Negative log posterior of ballots in memory whose rows have controls.

    Rows of one item have different scores, so the closed-form Hessian does not apply: Hessian products of the loss are
    used throughout.
    """

    part = ControlledPart

    def __init__(self, ballots: Rankings, weight: Floats, loss: str, prior: float | None, existence: str | None = None):
        if ballots.control is None or ballots.controls is None:
            raise DataError("these ballots have no controls")
        super().__init__(ballots, weight, loss, prior, existence)
        self.names, self.closed = ballots.controls, False
        self._ballots, self._weight = ballots, weight
        self.unit = typical_differences(ballots, weight)
        self.varies = np.abs(within_ballots(ballots)).max(axis=0, initial=0.0) > 0
        self.n = self.n_items + len(self.names)
        self.extra = 0.0 if prior is None else max(1.0 / EXTRA_PRIOR**2 / self.scale, LEAST_PRECISION)
        if prior is None:
            why = "one is the same for all rows of a ballot, or a sum of others or of items"
            refuse_confounded(self._unidentified(np.zeros(self.n)), why)

    @property
    def precisions(self) -> Floats:
        return np.repeat([self.precision, self.extra], [self.n_items, len(self.names)])

    def item_trend(self) -> Floats:
        """The trend of the prior's mean on the items' support and on the means of their controls within ballots."""
        weight = np.repeat(self._weight, np.diff(self._ballots.offsets))
        item, Z = self._ballots.item, within_ballots(self._ballots) / self.unit
        listed: Any = np.bincount(item, weight, self.n_items)
        sums: Floats = np.column_stack([np.bincount(item, weight * z, self.n_items) for z in Z.T])
        means: Floats = sums / np.where(listed > 0, listed, 1.0)[:, None]
        if (listed > 0).any():
            means[listed <= 0] = means[listed > 0].mean(axis=0)
        return trend_of(listed, means)

    def effects(self, x: Floats, covariance: Floats | None) -> Controls:
        n = self.n_items
        if self.precision == 0.0:
            refuse_endless(self._unidentified(x), "the order of ballots")
        stderr = None if covariance is None else np.sqrt(np.diag(covariance)[n:])
        return Controls.in_units(self.names, x[n:], stderr, self.unit, self.varies)

    def _unidentified(self, x: Floats) -> str:
        """Names of controls with almost no information at x, given that scores and other controls are unknown too."""
        n, H, first = self.n_items, self.dense(x), self.dense(np.zeros(self.n))
        own = np.sqrt(np.maximum(np.diag(first)[n:], 1e-6))  # of order 1 if a control varies at all
        left = H[n:, n:] - H[n:, :n] @ np.linalg.pinv(H[:n, :n], rcond=1e-12, hermitian=True) @ H[:n, n:]
        return unidentified_names(left, own, self.names)


def typical_differences(ballots: Rankings, weight: Floats) -> Floats:
    """Root mean square (k,) of the difference of each control between two rows of a ballot; 1 if it does not vary.

    The mean square of a ballot, 2 m / (m - 1) times the variance of its m rows, is weighted by the ballot's weight.
    """
    Z, sizes = np.asarray(ballots.control), np.diff(ballots.offsets)
    top = np.abs(Z).max(axis=0, initial=0.0)
    top[top == 0.0] = 1.0
    shares = np.where(sizes > 1, weight / (weight.max(initial=0.0) or 1.0), 0.0)
    shares = 2.0 * shares / (shares.sum() or 1.0) / np.maximum(sizes - 1, 1)
    unit = np.sqrt(shares[ballots.ballot] @ (within_ballots(ballots) / top) ** 2)
    return top * np.where(unit < LEAST_DIFFERENCE, 1.0, unit)


def within_ballots(ballots: Rankings) -> Floats:
    """The controls (rows, k) minus their means in each ballot."""
    Z, n, row = np.asarray(ballots.control), len(ballots), ballots.ballot
    sizes = np.maximum(np.diff(ballots.offsets), 1)
    means = [np.bincount(row, z / sizes[row], n) for z in Z.T]
    return Z - np.array(means).reshape(len(means), n).T[row]
