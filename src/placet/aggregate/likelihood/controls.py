"""Controls: covariates of a vote or row that may have influenced it, and their estimated effects.

The difference of two scores is theta_i - theta_j + z . gamma, where z are the controls of the vote: how much longer the
answer of i was, or 1 if it was shown first or played at home.  Items are ranked at z = 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats

if TYPE_CHECKING:
    import polars as pl

POINTS = 400.0 / math.log(10.0)
"""Elo points in one unit of a score: a difference of 400 points is odds of ten to one."""

ORDER = "order"
"""The name of the control that is 1 for the item that came first."""

MOST_NOTED = 8


@dataclass(frozen=True)
class Controls:
    """The effects of controls on a difference of scores, in the original units of the controls.

    ``coefficient`` and ``stderr`` have shape (k,); ``typical`` (k,) holds the root mean squares of the controls over
    all votes, or of their differences between two rows of a ballot.
    """

    names: tuple[str, ...]
    coefficient: Floats
    stderr: Floats | None
    typical: Floats

    def to_frame(self) -> "pl.DataFrame":
        """One row per control; ``points`` and ``typical_points``: effect of one unit and of a typical value, in Elo."""
        import polars as pl

        errors = [None] * len(self.names) if self.stderr is None else self.stderr
        return pl.DataFrame(
            {
                "name": list(self.names),
                "coefficient": self.coefficient,
                "stderr": pl.Series(errors, dtype=pl.Float64),
                "points": POINTS * self.coefficient,
                "typical": self.typical,
                "typical_points": POINTS * self.coefficient * self.typical,
            }
        )

    def notes(self) -> list[str]:
        """A sentence for each control; of many, only for those with the largest effects."""
        worth = POINTS * self.coefficient * self.typical
        order = sorted(range(len(self.names)), key=lambda k: -abs(worth[k]))
        shown = sorted(order[:MOST_NOTED])
        found = []
        for k in shown:
            error = "" if self.stderr is None else f" ± {self.stderr[k]:.2g}"
            found.append(
                f"control {self.names[k]}: {self.coefficient[k]:.3g}{error} for each unit; its typical size, "
                f"{self.typical[k]:.3g}, is worth {worth[k]:.3g} Elo points; items are ranked at 0"
            )
        more = len(self.names) - len(shown)
        return [*found, f"{more} more controls are in consensus.controls"] if more else found


def control_names(data: Comparisons, order: bool) -> tuple[str, ...]:
    """The names of the controls of ``data``, followed by that of the order effect if ``order``."""
    names = data.controls or ()
    if order and ORDER in names:
        raise DataError(f"a control is called {ORDER!r}, as the effect of coming first is; rename it")
    return (*names, ORDER) if order else names


def refuse_row_controls(data: Rankings | Comparisons, method: str) -> None:
    """Raise ``DataError`` if ballots have row controls, which a model of pairs cannot use."""
    if isinstance(data, Rankings) and getattr(data, "control", None) is not None:
        raise DataError(f"{method!r} counts the pairs of ballots, which have no controls of rows; use 'plackett-luce'")


def unused_note(data: Rankings | Comparisons, method: str) -> list[str]:
    """A note if ``data`` have controls that the method ignores."""
    names: Sequence[str] | None = getattr(data, "controls", None)
    return [f"{method!r} does not look at the controls ({', '.join(names)})"] if names else []
