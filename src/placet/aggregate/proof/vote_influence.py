"""Influence of votes on the difference of two scores under Bradley-Terry.

With H the Hessian of the objective at the fit and c the contrast of two items, removing a vote with gradient g moves
the difference c'theta by c'H^-1 g, to first order, and its squared standard error c'H^-1 c by v (c'H^-1 z)^2, v being
the curvature of the vote and z its own contrast.
"""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import lapack

from placet.aggregate.likelihood.existence import agent_factor
from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.aggregate.pairs.pair_likelihood import PairCounts
from placet.aggregate.proof.removal import OUTCOME_COLUMNS, Removable
from placet.data import Comparisons
from placet.data.arrays import Floats, Ints
from placet.losses.pairwise import PAIR_MODELS, TIES

AttackKind = Literal["swap", "merge", "split"]
MAX_ITER, TOLERANCE = 50, 1e-10


class Attack(NamedTuple):
    """A way to change a claim: put item ``b`` above ``a`` ("swap"); bring ``a``, which is separated from ``b`` below
    it, so near that it is no longer ("merge"); or move them apart until it is ("split").

    ``critical`` is the number of standard errors that separate two items.
    """

    a: int
    b: int
    kind: AttackKind
    critical: float = 0.0


class VoteInfluence:
    """The influence of votes under Bradley-Terry with the prior held at that of all votes."""

    def __init__(self, pieces: Removable, params: dict[str, Any]):
        self.pieces, self.data = pieces, pieces.data
        own = {name: params[name] for name in ("ties", "order_effect", "prior", "agent_weight") if name in params}
        model = BradleyTerry(**own, stderr=None).fit(self.data)
        tie = TIES[model.tie_model(self.data)]
        trend = None if model._learned is None else model._learned.trend
        factor = agent_factor(model.agent_weight, self.data)
        rows: Comparisons = self.data
        self.p = pair_likelihood.pair_counts(rows, tie, model.prior_, model.order_effect, trend=trend)
        self.factor = np.broadcast_to(np.asarray(factor, np.float64), (len(rows),))
        self.x = model.fit_.x
        self._start = self._fit(np.zeros(len(pieces.size), np.int64))  # every attack starts here

    def _counts(self, take: Ints) -> PairCounts:
        left = (self._weight() - self.pieces.share(take)) * self.factor / self.p.scale
        return self.p._replace(wins_i=left[0], wins_j=left[1], ties=left[2])

    def _fit(self, take: Ints) -> tuple[PairCounts, Floats, Any]:
        """The counts that are left, the fit to them, and the Cholesky factor of its Hessian; None if there is none."""
        p = self._counts(take)
        fit, at = pair_likelihood.fit_counts(p, self.x, max_iter=MAX_ITER, tol=TOLERANCE)
        factor, failed = lapack.dpotrf(pair_likelihood.hessian(p, at), lower=1)
        return p, fit.x, None if failed else factor

    def _weight(self) -> Floats:
        return np.stack([getattr(self.data, name) for name in OUTCOME_COLUMNS])

    def effects(self, take: Ints, attack: Attack) -> tuple[float, Floats]:
        """How far the attack is from its end after the removal ``take``, and how much nearer to it each further thing
        of a kind would bring it (kinds,); both in units of scores.
        """
        p, x, factor = self._start if not take.any() else self._fit(take)
        if factor is None:
            return math.nan, np.zeros(len(take))
        contrast = np.zeros(len(x))
        contrast[[attack.a, attack.b]] = 1.0, -1.0
        y = lapack.dpotrs(factor, contrast, lower=1)[0]
        variance = float(contrast @ y) / p.scale
        moved, widened = self._moves(p, x, y)
        error = math.sqrt(max(variance, 1e-300))
        gap = float(x[attack.a] - x[attack.b])
        wider = attack.critical * widened / (2 * error)
        if attack.kind == "split":
            return attack.critical * error - gap, self.pieces.sums(moved - wider)
        return gap - attack.critical * error, self.pieces.sums(wider - moved)

    def _moves(self, p: PairCounts, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """(3, rows): how far one vote of each outcome, removed, moves the difference and its squared error."""
        theta, t, effect = pair_likelihood.parameters(p, x)
        across, tie, along = pair_likelihood.parameters(p, y)
        d = theta[p.i] - theta[p.j] + p.control @ effect
        u = across[p.i] - across[p.j] + p.control @ along
        rows = len(p.i)
        moved, widened = np.empty((2, 3, rows))
        slopes = PAIR_MODELS[p.model].kernel("slopes")
        for k in range(3):
            outcome = np.eye(3)[k][:, None] * np.ones(rows)
            slope, curvature = np.empty(rows), np.empty(rows)
            cross, tie_slope, tie_curvature = np.zeros((3, rows))
            slopes(d, t, *outcome, slope, curvature, cross, tie_slope, tie_curvature)
            moved[k] = self.factor * (slope * u + tie_slope * tie) / p.scale
            widened[k] = self.factor * (curvature * u**2 + 2 * cross * u * tie + tie_curvature * tie**2) / p.scale**2
        return moved, widened
