"""Widths of drifting scores, of the first score and of a step: learned; and which drifts errors are averaged over.

Errors of scores depend on the drift: with few votes in a step, scores of a fast walk follow the latest votes, and those
of a slow one all of them.  Few votes leave it open how fast the walk is.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

from placet import optim
from placet.aggregate.likelihood.prior import MOST_SPREAD, NARROWEST, WIDEST_PRIOR
from placet.data.arrays import Floats

if TYPE_CHECKING:
    from placet.aggregate.pairs.drift import Walk, WalkVariances

FIRST_DRIFT = 0.2
SLOWEST, FASTEST = 1e-3, 10.0
"""Bounds of a learned drift per step."""

MOST_ROUNDS, ROUND_ACCURACY = 40, 0.02
USUAL_ROUNDS = 5
"""Expected number of rounds, including the final fit, for reporting progress."""

STEEPEST, FARTHEST = -1.0, 1.2
"""Steepest slope of log(root mean square / width) against log width, and longest step in log width."""

COARSE = 4e-2
"""Tolerance of the fits while learning the drift: they stop when a step moves no score by more than 0.2."""

LEAST_SPREAD = 0.05
"""Standard deviation of the logarithm of the drift below which it counts as known."""

NODES = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""Where scores are computed for other drifts, in standard deviations of the logarithm of the drift."""


class WalkWidths(NamedTuple):
    """Standard deviations of a first score and of a step, and that of the logarithm of the latter, 0 if it is given."""

    prior: float
    drift: float
    spread: float

    def drifts(self) -> list[float]:
        """Drifts to average over: the learned one, and if the data leave it open, others around it."""
        if self.spread < LEAST_SPREAD:
            return [self.drift]
        return [self.drift * math.exp(self.spread * node) for node in NODES]


def learn_drift(
    walk: "Walk",
    x: Floats,
    width: float,
    prior: float | None,
    drift: float | None,
    max_iter: int,
    progress: optim.Progress | None = None,
) -> tuple[WalkWidths, Floats]:
    """Learn the prior width and the drift (unless given); also returns unknowns close to the fit.

    ``width`` is the initial prior width.  As for votes without dates (`placet.aggregate.likelihood.prior`), the
    evidence times a density proportional to w is largest where the expected sum of squares over (count - 1) is w^2;
    this is solved by secant steps in log w.  If the data hardly determine a single unknown, the squares are close to
    w^2 for any w, so the slope is guessed from the share that the data determine.  The log evidence has the derivative
    (count - 1) (square / w^2 - 1) in log w, and so the curvature 2 (count - 1) slope.
    """
    widths = [width if prior is None else prior, FIRST_DRIFT if drift is None else drift]
    free = [k for k, given in enumerate((prior, drift)) if given is None]
    if not len(walk.linked):
        free = [k for k in free if k == 0]
    bounds = ((NARROWEST, WIDEST_PRIOR), (SLOWEST, FASTEST))
    before: dict[int, tuple[float, float]] = {}
    spread, steps = 0.0, max(len(walk.linked) - 1, 1)
    for k in range(MOST_ROUNDS if free else 0):
        if progress is not None:
            progress(k, max(k + 2, USUAL_ROUNDS))
        walk.set_widths(widths[0], widths[1])
        fit, H = walk.fit(x, max_iter, COARSE)
        x = fit.x
        better, shares = _mean_squares(walk, x, walk.spread(x, H))
        moved = 0.0
        for which in free:
            u, excess = math.log(widths[which]), math.log(better[which] / widths[which])
            slope, flattest = -0.5 * shares[which] ** 1.2, -0.2 * shares[which] ** 1.5
            if which in before and u != before[which][0]:
                slope = min(max((excess - before[which][1]) / (u - before[which][0]), STEEPEST), flattest)
            before[which] = u, excess
            spread = min(1 / math.sqrt(-2 * steps * slope), MOST_SPREAD) if which else spread
            longest = min(max(-excess / slope, -FARTHEST), FARTHEST)
            new = min(max(math.exp(u + longest), bounds[which][0]), bounds[which][1])
            moved, widths[which] = max(moved, abs(math.log(new / widths[which]))), new
        if moved < ROUND_ACCURACY:
            break
    return WalkWidths(widths[0], widths[1], spread), x


def _mean_squares(walk: "Walk", x: Floats, spread: "WalkVariances") -> tuple[tuple[float, float], tuple[float, float]]:
    """Root mean expected squares (over count - 1) of first scores and of increments, and the share of such an unknown
    that the data determine.
    """
    theta, first = x[: walk.n] + spread.shift, walk.chains.first
    width, share = _root(theta[first] ** 2, spread.own[first], walk.prior)
    if not len(walk.linked):
        return (width, walk.drift), (share, 1.0)
    delta = theta[walk.following] - theta[walk.linked]
    drift, of_steps = _root(delta**2 / walk.gaps, spread.moves / walk.gaps, walk.drift)
    return (width, drift), (share, of_steps)


def _root(square: Floats, variance: Floats, width: float) -> tuple[float, float]:
    n = max(len(square) - 1, 1)
    share = 1 - float(variance.sum()) / (n * width**2)
    return math.sqrt(float((square + variance).sum()) / n), min(max(share, 1e-3), 1.0)
