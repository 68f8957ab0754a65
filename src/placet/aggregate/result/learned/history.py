"""Fitted scores over time: on any date, by item, and as forecasts."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from placet.aggregate.result.learned.forecast import Forecast
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
    by item and step; ``offsets`` (items + 1,) are the bounds of each item.  ``window``: the number of steps after which
    an item without votes is idle, or None; ``forecast``: what was known after the last vote.
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
    support: Floats | None = None
    window: float | None = None
    forecast: Forecast | None = None

    @cached_property
    def number(self) -> dict[Hashable, int]:
        """The number of each item, which boards may leave out."""
        return {name: k for k, name in enumerate(self.items)}

    def step_of(self, when: Any) -> float:
        """A date counted in steps."""
        like = np.array([self.last])
        return float(self.steps.fraction(np.array([moment(when, like)], like.dtype))[0])

    def active(self, tau: float) -> NDArray[np.bool_]:
        """Items (items,) that were compared in the ``window`` before a time, counted in steps; all if none was."""
        if self.window is None:
            return np.ones(len(self.items), np.bool_)
        low, high = math.floor(tau - self.window + 0.5), math.floor(tau + 0.5)
        if self.forecast is not None and tau >= self.step_of(self.last):
            return self.forecast.last >= low - 0.5
        inside = np.append(0, np.cumsum((self.step >= low) & (self.step <= high)))
        found = inside[self.offsets[1:]] > inside[self.offsets[:-1]]
        return found if found.any() else ~found

    def rows_of(self, k: int) -> slice:
        """The unknowns of item number ``k``."""
        return slice(int(self.offsets[k]), int(self.offsets[k + 1]))

    def at(self, when: Any) -> tuple[Floats, Floats]:
        """Scores and standard errors (items,) at a date; errors grow outside the range of comparisons."""
        return self.at_step(self.step_of(when))

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

        ``win(x, y)`` is the probability given scores x and y, which are assumed independent.  From the last vote on it
        is a forecast, in which results vary as much as they did when past votes were forecast.
        """
        tau = self.step_of(when)
        if self.forecast is not None and tau >= self.step_of(self.last):
            gap, spread = self.forecast.gap(a, b, tau)
        else:
            score, stderr = self.at_step(tau)
            gap, spread = float(score[a] - score[b]), math.hypot(float(stderr[a]), float(stderr[b]))
        z, weight = np.polynomial.hermite_e.hermegauss(NODES)
        return float(weight @ np.asarray(win(gap + spread * z, np.zeros(NODES))) / weight.sum())

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
