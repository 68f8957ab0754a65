"""Fitted scores over time: on any date, by item, and as forecasts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placet.data.arrays import Floats, Ints, Names, plain_names
from placet.data.times import Times, TimeSteps, moment

if TYPE_CHECKING:
    import polars as pl

NODES = 21
"""Nodes of the Gauss-Hermite quadrature that averages over uncertain scores."""


@dataclass(frozen=True)
class History:
    """Scores of items over time: at every step in which an item was compared, with the random walk in between.

    ``score``, ``variance`` and ``link`` (covariance with the item's next unknown) belong to the unknowns (u,), ordered
    by item and step; ``offsets`` (items + 1,) are the bounds of each item.
    """

    items: Names
    step: Ints
    offsets: Ints
    score: Floats
    variance: Floats
    link: Floats
    drift: float
    prior: float
    steps: TimeSteps
    first: Any
    last: Any

    def rows_of(self, k: int) -> slice:
        """The unknowns of item number ``k``."""
        return slice(int(self.offsets[k]), int(self.offsets[k + 1]))

    def at(self, when: Any) -> tuple[Floats, Floats]:
        """Scores and standard errors (items,) at a date; errors grow outside the range of comparisons."""
        like = np.array([self.last])
        tau = float(self.steps.fraction(np.array([moment(when, like)], like.dtype))[0])
        return self.at_step(tau)

    def at_step(self, tau: float) -> tuple[Floats, Floats]:
        """As `at`, for a time counted in steps."""
        n = len(self.items)
        score, variance = np.zeros(n), np.zeros(n)
        for k in range(n):
            rows = self.rows_of(k)
            step = self.step[rows]
            if not len(step):
                variance[k] = self.prior**2
                continue
            right = int(np.searchsorted(step, tau))
            if right in (0, len(step)):
                u = rows.start + min(right, len(step) - 1)
                score[k], variance[k] = self.score[u], self.variance[u] + self.drift**2 * abs(tau - self.step[u])
                continue
            u, gap = rows.start + right - 1, float(step[right] - step[right - 1])
            w = (tau - step[right - 1]) / gap
            score[k] = (1 - w) * self.score[u] + w * self.score[u + 1]
            between = 2 * w * (1 - w) * self.link[u] + self.drift**2 * gap * w * (1 - w)
            variance[k] = (1 - w) ** 2 * self.variance[u] + w**2 * self.variance[u + 1] + between
        return score, np.sqrt(variance)

    def probability(self, win: Any, a: int, b: int, when: Any) -> float:
        """The probability that item number ``a`` beats ``b`` at a date, averaged over the uncertainty of both scores.

        ``win(x, y)`` is the probability given scores x and y, which are assumed independent.
        """
        score, stderr = self.at(when)
        z, weight = np.polynomial.hermite_e.hermegauss(NODES)
        spread = math.hypot(float(stderr[a]), float(stderr[b]))
        return float(weight @ np.asarray(win(score[a] + spread * z, score[b])) / weight.sum())

    def to_frame(self, which: Sequence[int]) -> "pl.DataFrame":
        """One row per item and step in which it was compared: item, time (start of the step), score, stderr."""
        import polars as pl

        rows = [self.rows_of(k) for k in which]
        names = plain_names([self.items[k] for k, r in zip(which, rows) for _ in range(r.start, r.stop)])
        every = np.concatenate([np.arange(r.start, r.stop) for r in rows]) if rows else np.zeros(0, np.int64)
        times: Times = self.steps.start(self.step[every])
        unit = "datetime64[ms]" if self.steps.unit == "h" else "datetime64[D]"
        return pl.DataFrame(
            {
                "item": names,
                "time": times.astype(unit) if self.steps.dates else times,
                "score": self.score[every],
                "stderr": np.sqrt(self.variance[every]),
            }
        )
