"""Effects of controls on the difference of two scores, as a fit found them."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placet.data.arrays import Floats

if TYPE_CHECKING:
    import polars as pl

POINTS = 400.0 / math.log(10.0)
"""Elo points in one unit of a score: a difference of 400 points is odds of ten to one."""

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

    @classmethod
    def in_units(
        cls, names: tuple[str, ...], effect: Floats, stderr: Floats | None, unit: Floats, varies: Any = True
    ) -> "Controls":
        """The effects of controls that were divided by ``unit`` (k,), their typical sizes, in the original units.

        ``varies`` (k,): False for a control that is 0 throughout, whose unit is arbitrary and typical size 0.
        """
        return cls(names, effect / unit, None if stderr is None else stderr / unit, np.where(varies, unit, 0.0))

    def of(self, name: str) -> tuple[float, float | None]:
        """The coefficient of a control and its standard error."""
        k = self.names.index(name)
        return float(self.coefficient[k]), None if self.stderr is None else float(self.stderr[k])

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
            if self.typical[k] == 0:
                found.append(f"control {self.names[k]} never differs, so the data say nothing about its effect")
                continue
            found.append(
                f"control {self.names[k]}: {self.coefficient[k]:.3g}{error} for each unit; its typical size, "
                f"{self.typical[k]:.3g}, is worth {worth[k]:.3g} Elo points; items are ranked at 0"
            )
        more = len(self.names) - len(shown)
        return [*found, f"{more} more controls are in consensus.controls"] if more else found
