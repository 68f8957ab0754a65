"""Unidentified effects of controls, which are refused by name if there is no prior to bound them.

Either an effect is confounded with the scores or other controls (no information from the start), or a control separates
winners from losers perfectly (the effect is endless: the likelihood increases forever and the information vanishes).
"""

from collections.abc import Sequence

import numpy as np

from placet import optim
from placet.aggregate.pairs.pair_likelihood import Derivatives, PairCounts, derivatives, fit_counts, scores_alone
from placet.data import DataError
from placet.data.arrays import Floats

LEAST_INFORMATION = 1e-9
"""Least fraction of a control's information that must remain when scores and other controls are unknown too."""


def unidentified_names(left: Floats, own: Floats, names: Sequence[str]) -> str:
    """Names of the unidentified controls as text; "" if all are identified.

    ``left`` (k, k): the information on the effects with the scores unknown too; ``own`` (k,): the roots of the initial
    information on each effect with everything else known.
    """
    values, vectors = np.linalg.eigh((left + left.T) / 2 / np.outer(own, own))
    if values[0] >= LEAST_INFORMATION:
        return ""
    return ", ".join(repr(names[k]) for k in np.flatnonzero(np.abs(vectors[:, 0]) > 0.1).tolist())


def refuse_confounded(involved: str, sums: str) -> None:
    """Raise ``DataError`` if effects are confounded with the scores or each other; ``sums`` explains how."""
    if involved:
        raise DataError(
            f"without a prior the effects of the controls {involved} cannot be told from the items' scores or from one "
            f"another ({sums}); leave one out or give a prior"
        )


def refuse_endless(involved: str, what: str) -> None:
    """Raise ``DataError`` if effects diverge; ``what`` names what they separate perfectly."""
    if involved:
        raise DataError(
            f"without a prior the effects of the controls {involved} have no finite values: together with the scores "
            f"they tell {what} without fail; leave one out or give a prior (such as prior=10)"
        )


def fit_identified(
    p: PairCounts, x: Floats, names: Sequence[str], *, max_iter: int, tol: float
) -> tuple[optim.Fit, Derivatives]:
    """As `fit_counts`, without a prior, with a ``DataError`` if the effects of controls are not identified."""
    effects = PairEffects(p, x, names)
    found, at = fit_counts(p, x, max_iter=max_iter, tol=tol)
    effects.refuse_endless(at)
    return found, at


class PairEffects:
    """Identifiability check for the controls of pair counts without a prior, at the start ``x`` and end of a fit."""

    def __init__(self, p: PairCounts, x: Floats, names: Sequence[str]) -> None:
        self.p, self.names = p, names
        at = derivatives(p, x)
        self.own = np.sqrt(np.maximum(np.diag(at.corner)[int(p.tie) :], 1e-300))
        refuse_confounded(self._untold(at), "one is a sum of others, or of differences of items")

    def refuse_endless(self, at: Derivatives) -> None:
        """Raise ``DataError`` if the derivatives at the end of the fit have almost no information on some effect."""
        refuse_endless(self._untold(at), "winners from losers")

    def _untold(self, at: Derivatives) -> str:
        k = int(self.p.tie)
        times, diagonal, _ = scores_alone(self.p, at, np.random.default_rng(0), None)
        back = [optim.cg(times, row, rtol=1e-8, diagonal=diagonal) for row in at.border[k:]]
        return unidentified_names(at.corner[k:, k:] - at.border[k:] @ np.array(back).T, self.own, self.names)
