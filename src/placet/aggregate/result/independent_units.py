"""Separation from few independent units (tasks, ballots, agents): sign flips of what each unit adds to the scores.

If items i and j are equal, a unit's contribution d to their difference is as likely d as -d, so every choice of signs
of the units gives data as probable as those seen.  The statistic of a pair is |sum d| / sqrt(sum d^2), which orders
data as Student's t does; its largest value over all pairs is compared with that under flipped signs: all of them if
units are few, else random ones.  So the probability of any wrong separation is at most 1 - level for any number of
units and items, without assuming normal errors, and no spread at all is no certainty: n units that agree have
probability 2^(1 - n), and fewer than six units separate nothing at level 0.95.

Fisher, The Design of Experiments, 1935; Westfall and Young, Resampling-based multiple testing, 1993.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from placet.data.arrays import Floats

if TYPE_CHECKING:
    from placet.aggregate.result.result import Consensus

MOST_UNITS = 1000
"""Number of units up to which signs are flipped; beyond, errors are close to normal and their spread is known."""

MOST_ITEMS = 1000
"""Number of items up to which the largest of all differences is taken under every pattern of signs."""

MOST_ENUMERATED = 12
"""Number of units up to which all sign patterns are enumerated."""

FEW = 100
"""Number of units below which bootstrap draws are widened."""

FLIPS = 1999
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Units:
    """What independent units add to the scores: ``part`` (rows, n_items), ``count`` (rows,) units alike in each row.

    ``word`` is what a unit is called.  ``decides``: differences of scores are sums of those of ``part``, so flips alone
    decide what is separated; else they are a condition beside the errors of the scores.
    """

    word: str
    part: Floats
    count: Floats
    decides: bool = True

    @cached_property
    def total(self) -> int:
        """The number of units."""
        return int(self.count.sum())

    @cached_property
    def scores(self) -> Floats:
        """(n_items,): the sum over units, in units of the largest part, as all that follows: flips know no scale."""
        return self.count @ self._relative

    @cached_property
    def centered(self) -> Floats:
        x = self._relative
        return x - x.mean(axis=1, keepdims=True) if x.size else x

    @cached_property
    def _relative(self) -> Floats:
        """The parts divided by the largest, so that squares of large weights do not overflow."""
        return self.part / (float(np.abs(self.part).max(initial=0.0)) or 1.0)

    @cached_property
    def root(self) -> Floats:
        """(n_items, n_items): the root of the sum over units of squared contributions to each difference."""
        x = self.centered
        q = (x * self.count[:, None]).T @ x
        own = np.diag(q)
        square = own[:, None] + own[None, :] - 2 * q
        square[square <= 1e-12 * (own[:, None] + own[None, :])] = 0.0  # rounding
        return np.sqrt(square)

    def flipped(self, random_state: int) -> Floats:
        """(patterns, n_items): sums over units under flipped signs, those seen first; up to a common sign."""
        return self._signs(random_state) @ self.centered

    def _signs(self, random_state: int) -> Floats:
        """(patterns, rows): the sum of the signs of each row's units."""
        n = self.total
        if n <= MOST_ENUMERATED:
            row = np.repeat(np.arange(len(self.count)), self.count.astype(np.int64))
            pattern = np.arange(1 << max(n - 1, 0))[:, None] >> np.arange(n) & 1
            return (1.0 - 2.0 * pattern) @ (row[:, None] == np.arange(len(self.count)))
        rng = np.random.default_rng(random_state)
        count = self.count.astype(np.int64)
        return np.vstack([self.count, 2.0 * rng.binomial(count, 0.5, (FLIPS, len(count))) - count])

    def only(self, keep: NDArray[np.bool_]) -> "Units":
        """The same units with the items of a mask only."""
        return replace(self, part=self.part[:, keep])

    def most_probable(self) -> float:
        """The largest probability that units can give to an order: all of them agree, and chance might have done it."""
        return 1.0 - 0.5 ** max(1, min(self.total, 1000))  # nobody says as little as one does

    def student(self, level: float) -> float:
        """How much wider an interval is than a normal one: the ratio of Student's quantile to the normal one."""
        tail = (1 + level) / 2
        if self.total < 2:
            return math.inf
        return float(scipy.special.stdtrit(self.total - 1, tail) / scipy.special.ndtri(tail))

    def student_factors(self, draws: int, random_state: int) -> Floats:
        """(draws,): factors that make normal draws of errors draws of Student's law, as the errors are estimated."""
        freedom = max(self.total - 1, 1)
        return np.sqrt(freedom / np.random.default_rng(random_state).chisquare(freedom, draws))

    def notes(self, level: float = 0.95) -> list[str]:
        """A note if there are too few units for anything to be separated."""
        least = fewest_units(level)
        if self.total >= least:
            return []
        units = self.word if self.total == 1 else f"{self.word}s"
        return [
            f"{self.total} {units}: too few to separate items at {100 * level:g}%, which takes at least {least} "
            "even if all of them agree"
        ]


def fewest_units(level: float) -> int:
    """The least number n of units that can separate anything: 2^(1 - n) <= 1 - level."""
    return 1 + math.ceil(-math.log2(1 - level) - ROUNDING)


def critical_flip(largest: Floats, level: float) -> float:
    """The value that a statistic must exceed, given the largest one of each pattern; the data seen are one of these."""
    n = len(largest)
    rejected = math.floor((1 - level) * n * (1 + ROUNDING))
    place = n - 1 - min(rejected, n - 1)
    return float(np.partition(largest, place)[place]) * (1 + ROUNDING)


def with_bootstrap(result: "Consensus", draws: Floats, what: str, units: Units | None = None) -> "Consensus":
    """The result with bootstrap draws (rounds, n_items) in place of its standard errors; ``what`` was resampled.

    Samples of n units have (n - 1) / n of their variance, so draws of few are widened around the scores.  One unit
    does not vary at all, which says nothing: there are then no draws.
    """
    note = f"uncertainty from {len(draws)} bootstrap rounds of {what}"
    known: dict[str, Any] = {"stderr": None, "covariance": None, "units": units}
    if units is None or not units.total:
        known["units"] = None
        return replace(result, draws=draws, notes=(*result.notes, note), **known)
    if units.total < 2:
        note = f"one {units.word} alone does not say how sure the order is; a bootstrap needs more"
        return replace(result, notes=(*result.notes, note), **known)
    if units.total < FEW:
        draws = result.scores + math.sqrt(units.total / (units.total - 1)) * (draws - result.scores)
    return replace(result, draws=draws, notes=(*result.notes, note, *units.notes()), **known)
