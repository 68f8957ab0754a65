"""Gains of grades and discounts of positions, shared by losses and metrics."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import Floats, Ints
from placet.data.errors import as_choices

Curve = Callable[[Floats], ArrayLike]

GAINS: dict[str, Curve] = {
    "exp2": lambda grade: np.exp2(grade) - 1.0,
    "linear": lambda grade: grade,
    "log2": lambda grade: np.log2(1.0 + grade),
}
"""Gain of a grade r: 2^r - 1, r, log2(1 + r)."""

DISCOUNTS: dict[str, Curve] = {
    "log2": lambda place: 1.0 / np.log2(1.0 + place),
    "letor": lambda place: 1.0 / np.maximum(1.0, np.log2(place)),
    "reciprocal": lambda place: 1.0 / place,
    "none": lambda place: np.ones_like(place),
}
"""Discount of position i = 1, 2, ...: 1 / log2(1 + i); 1, 1, 1 / log2(3), ...; 1 / i; 1."""


class GainError(ValueError):
    """Gains that are not finite numbers of at least 0; ``args`` are their rows, grades and gains, each (n,)."""

    def __str__(self) -> str:
        rows, grade, gain = self.args
        k = int(rows.argmin())
        return (
            f"row {rows[k]}: the gain of grade {grade[k]:g} is {gain[k]:g}, not a finite number of at least 0 "
            f"({len(rows)} such rows); choose another gain, or shift or clip the grades"
        )

    def in_order(self, order: Ints) -> "GainError":
        """The same error in the rows of the caller, who passed them in this ``order`` (rows,)."""
        rows, grade, gain = self.args
        return GainError(order[rows], grade, gain)


def gains(grade: Floats, gain: str | Curve = "exp2", *, clip: bool = False) -> Floats:
    """Gains (rows,) of grades, by name or function; negative gains are set to 0 if ``clip``, else they are an error.

    >>> gains(np.array([2.0, 1.0, 0.0]))
    array([3., 1., 0.])
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # such values are refused below
        values = np.ascontiguousarray(_curve(GAINS, gain, "gain")(grade), dtype=np.float64)
    if values.shape != grade.shape:
        raise ValueError(f"gain gives shape {values.shape} for grades of shape {grade.shape}")
    if clip:
        values = np.maximum(values, 0.0)
    bad = ~(np.isfinite(values) & (values >= 0.0))
    if bad.any():
        raise GainError(np.flatnonzero(bad), grade[bad], values[bad])
    return values


def without_overflow(x: Floats) -> Floats:
    """x if the sum of 2^64 such numbers is finite, else x / 2^128, which has the same ratios.

    >>> without_overflow(np.array([2.0**1023, 2.0**1000])).tolist() == [2.0**895, 2.0**872]
    True
    """
    return np.ldexp(x, -128) if x.max(initial=0.0) > 2.0**959 else x


def discounts(n: int, discount: str | Curve = "log2") -> Floats:
    """Discounts (n,) of positions 1..n, by name or function.

    >>> discounts(3)
    array([1.       , 0.63092975, 0.5      ])
    """
    place = np.arange(1, n + 1, dtype=np.float64)
    values = np.ascontiguousarray(_curve(DISCOUNTS, discount, "discount")(place), dtype=np.float64)
    if values.shape != place.shape or not np.isfinite(values).all():
        raise ValueError(
            f"discount must give one finite number per place; for {n} places it gave shape {values.shape}: {values}"
        )
    return values


def check_curves(gain: str | Curve, discount: str | Curve) -> None:
    """Raise a ``ValueError`` unless both are functions or known names."""
    _curve(GAINS, gain, "gain")
    _curve(DISCOUNTS, discount, "discount")


def _curve(table: Mapping[str, Curve], choice: str | Curve, what: str) -> Curve:
    if callable(choice):
        return choice
    if choice not in table:
        raise ValueError(f"{what} {choice!r} is unknown; choose from {as_choices(table)} or give a function")
    return table[choice]
