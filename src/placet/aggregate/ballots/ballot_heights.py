"""The posterior of ballots, as signed roots look at it (`placet.aggregate.likelihood.signed_roots`)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placet.aggregate.likelihood.ballot_objective import Ballots, dense_hessian, with_curvature_in_groups
from placet.aggregate.likelihood.information import DIRECT
from placet.aggregate.likelihood.signed_roots import MOST_FAR_PAIRS, SignedRoots
from placet.data import Rankings
from placet.data.arrays import Floats, Ints
from placet.losses import LOSSES

MOST_ROWS, MOST_WORK = 20_000, 1_000_000
"""Largest cost (`_cost`) of the ballots whose roots are computed, and of that times pairs for a table."""

BY_PRODUCTS = 5
"""How many rows with a closed Hessian take as long as one row and item without."""


@dataclass(frozen=True, eq=False)
class BallotHeights:
    """The posterior ``b`` of ``ballots`` in memory."""

    b: Ballots
    ballots: Rankings

    @property
    def scale(self) -> float:
        return self.b.scale

    @property
    def n_items(self) -> int:
        return self.b.n_items

    @property
    def most_pairs(self) -> int:
        """As many as take a few seconds; by products, a pair takes as long as twenty."""
        return min(MOST_FAR_PAIRS, MOST_WORK // max(_cost(self.b) * (1 if self.b.closed else 20), 1))

    def value(self, x: Floats) -> float:
        return self.b.value(x)[0]

    def slopes(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian; where a loss that is not convex bends down, its curvature upside down."""
        H = with_curvature_in_groups(dense_hessian(self.b, x), self.b.group)
        if not LOSSES[self.b.loss].convex:
            values, axes = np.linalg.eigh(H)
            H = (axes * np.maximum(np.abs(values), 1e-9 * np.abs(values).max())) @ axes.T
        return self.b.value(x)[1], H

    def allowed(self, x: Floats) -> bool:
        return True

    def perfect(self) -> NDArray[np.bool_]:
        """Items that are alone in the first tier, or alone in the last, of all ballots that compare them."""
        data, n = self.ballots, self.b.n_items
        ballot = np.repeat(np.arange(len(data)), np.diff(data.offsets))
        last: Ints = np.maximum.reduceat(np.append(data.tier, 0), data.offsets[:-1])[ballot] if len(data) else ballot
        with_tiers = ballot * (int(data.tier.max(initial=0)) + 1) + data.tier
        _, of, size = np.unique(with_tiers, return_inverse=True, return_counts=True)
        counts = (last > 0) & (data.weight[ballot] > 0)
        first, final = (counts & (size[of] == 1) & (data.tier == end) for end in (0, last))
        seen, won, lost = (np.bincount(data.item[rows], minlength=n) for rows in (counts, first, final))
        return (seen > 0) & ((won == seen) | (lost == seen))


def ballot_roots(b: Ballots, x: Floats, covariance: Floats | None = None) -> SignedRoots | None:
    """The signed roots of the posterior of ballots at its minimum x; None for too many rows, and for design weights.

    Data in parts are loaded, as they are few.  ``covariance``: that of the scores, if it is not that of the curvature.
    """
    if _cost(b) > MOST_ROWS or len(x) > DIRECT:
        return None
    held, ballots = b.loaded()
    if ballots.weights != "counts":
        return None
    return SignedRoots(BallotHeights(held, ballots), x, np.arange(b.n_items), covariance)


def _cost(b: Ballots) -> int:
    """Rows of ballots, times the number of items and `BY_PRODUCTS` if the Hessian is computed by products."""
    return b.n_rows * (1 if b.closed else BY_PRODUCTS * b.n)
