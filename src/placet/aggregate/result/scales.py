"""Scores of pair models as rating points, such as Elo points, where a difference of 400 means odds of 10 to 1."""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.result import Consensus, Win
from placet.data.arrays import Floats
from placet.data.errors import one_of


@dataclass(frozen=True)
class Scale:
    """``points`` for odds of ``base`` to 1, and the default ``value`` of the anchor."""

    points: float
    base: float
    value: float

    @property
    def unit(self) -> float:
        """Points per unit of log odds."""
        return self.points / math.log(self.base)


@dataclass(frozen=True)
class Points:
    """The scale of scores in points: ``unit`` points for one of log odds, and ``zero`` points at 0."""

    name: str
    unit: float
    zero: float


SCALES = {"elo": Scale(400.0, 10.0, 1000.0)}
"""Name -> `Scale`."""


def rescale(
    found: Consensus | ConsensusSet, scale: str = "elo", anchor: Hashable = None, value: float | None = None
) -> Any:
    """The same result in points: x -> unit (x - x_anchor) + value.

    ``anchor``: the item that has ``value`` points (default 1000); without one, the mean over all items has.  The anchor
    only shifts the zero: rank sets, tiers and the errors of differences do not depend on it.  Methods whose scores are
    not log odds (rules, models with a variance for every item) raise ``ValueError``.

    >>> c = Consensus(("a", "b"), [math.log(10), 0.0], method="m", win=lambda x, y: 1 / (1 + np.exp(y - x)))
    >>> rescale(c, "elo", anchor="b", value=1500).scores
    array([1900., 1500.])
    """
    one_of(scale, SCALES, "scale")
    if isinstance(found, ConsensusSet):
        return replace(found, results={k: rescale(c, scale, anchor, value) for k, c in found.items()})
    if found.win is None or found.spread is not None:
        raise ValueError(
            f"the scores of {found.method!r} are not log odds, so they have no {scale} points; "
            "'bradley-terry' and 'plackett-luce' have"
        )
    if found.scale is not None:
        raise ValueError(f"these scores are in points already: {found.scale}")
    record = SCALES[scale]
    value = record.value if value is None else float(value)
    if not math.isfinite(value):
        raise ValueError(f"the anchor's value must be a finite number, not {value}")
    zero = float(np.mean(found.scores)) if anchor is None else float(found.scores[found._number(anchor)])
    unit = record.unit
    who = "the average" if anchor is None else str(anchor)
    note = f"{scale.title()} scale: {record.points:g} points are odds of {record.base:g} to 1; {who} is {value:g}"
    return replace(
        found,
        scores=unit * (found.scores - zero) + value,
        stderr=None if found.stderr is None else unit * found.stderr,
        covariance=None if found.covariance is None else unit**2 * found.covariance,
        draws=None if found.draws is None else unit * (found.draws - zero) + value,
        win=partial(_win_in_points, win=found.win, unit=unit),
        tolerance=unit * found.tolerance,
        notes=(*found.notes, note),
        scale=Points(scale, unit, value - unit * zero),
    )


def in_log_odds(found: Consensus) -> Consensus:
    """The inverse of `rescale`; other results are returned unchanged."""
    if found.scale is None:
        return found
    unit, zero = found.scale.unit, found.scale.zero
    return replace(
        found,
        scores=(found.scores - zero) / unit,
        stderr=None if found.stderr is None else found.stderr / unit,
        covariance=None if found.covariance is None else found.covariance / unit**2,
        draws=None if found.draws is None else (found.draws - zero) / unit,
        win=getattr(found.win, "keywords", {}).get("win"),
        tolerance=found.tolerance / unit,
        scale=None,
    )


def _win_in_points(x: ArrayLike, y: ArrayLike, *, win: Win, unit: float) -> Floats:
    """The probability of winning, from scores in points."""
    return win(np.asarray(x) / unit, np.asarray(y) / unit)
