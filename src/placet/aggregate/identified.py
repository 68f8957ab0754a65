"""Effects of controls that the data do not tell: refused, by name, where there is no prior to hold them.

Either the scores or other controls say the same ("confounded": no information from the start), or a control tells
winners from losers without fail ("endless": the likelihood rises for ever along it, and the information vanishes).
"""

from collections.abc import Sequence

import numpy as np

from placet import optim
from placet.aggregate.pairs import Derivatives, PairCounts, derivatives, scores_alone
from placet.data import DataError
from placet.data.arrays import Floats

LEAST_INFORMATION = 1e-9
"""Share of a control's information that must be left when scores and other controls are unknown too."""


def untold_names(left: Floats, own: Floats, names: Sequence[str]) -> str:
    """Names of the controls about which next to no information is left, as text; "" where all are told.

    ``left`` (k, k): the information on the effects, the scores unknown too; ``own`` (k,): the roots of what each effect
    had at the start, all else known.
    """
    values, vectors = np.linalg.eigh((left + left.T) / 2 / np.outer(own, own))
    if values[0] >= LEAST_INFORMATION:
        return ""
    return ", ".join(repr(names[k]) for k in np.flatnonzero(np.abs(vectors[:, 0]) > 0.1).tolist())


def refuse_confounded(involved: str, sums: str) -> None:
    """A ``DataError`` where effects cannot be told from the scores or one another; ``sums``: how that may be."""
    if involved:
        raise DataError(
            f"without a prior the effects of the controls {involved} cannot be told from the items' scores or from one "
            f"another ({sums}); leave one out or give a prior"
        )


def refuse_endless(involved: str, what: str) -> None:
    """A ``DataError`` where effects grow for ever and took the information with them; ``what`` they tell."""
    if involved:
        raise DataError(
            f"without a prior the effects of the controls {involved} have no finite values: together with the scores "
            f"they tell {what} without fail; leave one out or give a prior (such as prior=10)"
        )


class PairEffects:
    """The controls of pair counts without a prior, watched from the start ``x`` of a fit to its end."""

    def __init__(self, p: PairCounts, x: Floats, names: Sequence[str]) -> None:
        self.p, self.names = p, names
        self.watched = p.precision == 0.0 and len(names) > 0
        if self.watched:
            at = derivatives(p, x)
            self.own = np.sqrt(np.maximum(np.diag(at.corner)[int(p.tie) :], 1e-300))
            refuse_confounded(self._untold(at), "one is a sum of others, or of differences of items")

    def refuse_endless(self, at: Derivatives) -> None:
        """A ``DataError`` where the derivatives at the end of the fit hold next to no information on some effect."""
        if self.watched:
            refuse_endless(self._untold(at), "winners from losers")

    def _untold(self, at: Derivatives) -> str:
        k = int(self.p.tie)
        times, diagonal, _ = scores_alone(self.p, at, np.random.default_rng(0), None)
        back = [optim.cg(times, row, rtol=1e-8, diagonal=diagonal) for row in at.border[k:]]
        return untold_names(at.corner[k:, k:] - at.border[k:] @ np.array(back).T, self.own, self.names)
