"""The posterior of pair counts, as signed roots look at it (`placet.aggregate.likelihood.signed_roots`)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placet.aggregate.likelihood.signed_roots import MOST_FAR_PAIRS
from placet.aggregate.pairs import pair_likelihood
from placet.data.arrays import Floats


@dataclass(frozen=True, eq=False)
class PairHeights:
    """The posterior of the counts ``p``."""

    p: pair_likelihood.PairCounts
    most_pairs: int = MOST_FAR_PAIRS

    @property
    def scale(self) -> float:
        return self.p.scale

    @property
    def n_items(self) -> int:
        return self.p.n_items

    def value(self, x: Floats) -> float:
        return pair_likelihood.value(self.p, x)

    def slopes(self, x: Floats) -> tuple[Floats, Floats]:
        at = pair_likelihood.derivatives(self.p, x)
        return at.gradient, pair_likelihood.hessian(self.p, at)

    def allowed(self, x: Floats) -> bool:
        return not (self.p.model == "rao-kupper" and x[self.p.n_items] <= 0)

    def perfect(self) -> NDArray[np.bool_]:
        p, n = self.p, self.p.n_items
        won = np.bincount(p.i, p.wins_i, n) + np.bincount(p.j, p.wins_j, n)
        lost = np.bincount(p.i, p.wins_j, n) + np.bincount(p.j, p.wins_i, n)
        tied = np.bincount(p.i, p.ties, n) + np.bincount(p.j, p.ties, n)
        return (tied == 0) & ((won == 0) != (lost == 0))
