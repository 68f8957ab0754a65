"""Numbers formatted for people: rounded to their errors, with thousands separators, aligned in columns."""

from collections.abc import Sequence

import numpy as np

from placet.aggregate.result.display import decimals
from placet.data.arrays import Floats

MOST_DECIMALS = 12
FIGURE_SPACE, POINT_SPACE = "\u2007", "\u2008"
"""Spaces as wide as a digit and as a decimal point, used to align numbers of different lengths."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """A single number: ``digits`` significant digits, thousands separators, a true minus sign, never 2.06e+03.

    >>> number(2056.4), number(-0.00123456), number(0.5), number(3.0), number(12345678.0), number(1e-12)
    ('2,056', '−0.00123', '0.5', '3', '12,345,678', '1 × 10⁻¹²')
    """
    if not np.isfinite(value):
        return {np.inf: "∞", -np.inf: "−∞"}.get(value, "")
    size = _power(value)
    if not -6 <= size < 15:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        return f"{number(float(mantissa), digits)} × 10{str(int(power)).translate(_RAISED)}"
    text = with_decimals(value, min(max(digits - 1 - size, 0), MOST_DECIMALS))
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_decimals(value: float, decimals: int) -> str:
    """A number with ``decimals`` decimals.

    >>> with_decimals(1234.5, 2), with_decimals(-0.001, 2)
    ('1,234.50', '0.00')
    """
    text = f"{abs(value):,.{decimals}f}"
    return f"−{text}" if value < 0 and text.strip("0.,") else text


def percent(share: float, *, sampled: bool = False) -> str:
    """A probability as a percentage; values close to 0 or 1 are not shown as 0% or 100%.

    ``sampled`` is for shares of random draws, where even "all" and "none" are not certain.

    >>> percent(0.8521), percent(0.99999), percent(1.0), percent(0.0001), percent(0.0)
    ('85.2%', 'more than 99.9%', '100%', 'less than 0.1%', '0%')
    >>> percent(1.0, sampled=True), percent(0.0, sampled=True)
    ('more than 99.9%', 'less than 0.1%')
    """
    if share in (0, 1) and not sampled:
        return f"{share:.0%}"
    if share >= 0.9995:
        return "more than 99.9%"
    return "less than 0.1%" if share < 0.0005 else f"{share:.1%}"


def decimals_for(errors: Floats) -> list[int]:
    """Number of decimals that shows two digits of each error; for an error of 0, that of the others.

    >>> decimals_for(np.array([0.0312, 0.5, 35.0, 0.0]))
    [3, 2, 0, 3]
    """
    errors = np.asarray(errors, np.float64)
    known = np.isfinite(errors) & (errors > 0)
    found = np.zeros(len(errors), np.int64)
    found[known] = [decimals(error, MOST_DECIMALS) for error in errors[known]]
    found[~known] = found[known].max(initial=2)
    return [int(d) for d in found]


def decimals_of(values: Floats, digits: int = 5) -> int:
    """Number of decimals for numbers without errors: ``digits`` significant digits of the largest, no trailing zeros.

    >>> decimals_of([3.0, 12.0]), decimals_of([0.5, 0.25]), decimals_of([2056.3333, 1.0]), decimals_of([1e-9])
    (0, 2, 1, 9)
    """
    values = np.asarray(values, np.float64)
    values = values[np.isfinite(values)]
    largest = _power(float(np.abs(values).max(initial=0.0)))
    most = min(max(digits - 1 - largest, 0), MOST_DECIMALS)
    texts = [f"{value:.{most}f}".rstrip("0") for value in values]
    return max((len(text) - text.index(".") - 1 for text in texts if "." in text), default=0) if most else 0


def aligned_numbers(values: Floats, decimals: Sequence[int]) -> list[str]:
    """Numbers of a right-aligned column, padded with spaces so that their decimal points are aligned."""
    most = max(decimals, default=0)
    texts = []
    for value, own in zip(values, decimals):
        blank = FIGURE_SPACE * (most - own) + (POINT_SPACE if most and not own else "")
        texts.append(with_decimals(float(value), own) + blank)
    return texts


def counts(values: Floats) -> list[str]:
    """Weights or counts of a column, without decimals if all are integers.

    >>> counts([1200.0, 3.0]), counts([1.5, 20.0])
    (['1,200', '3'], ['1.5', '20.0'])
    """
    values = np.asarray(values, np.float64)
    most = min(decimals_of(values), 2)
    return [with_decimals(float(value), most) for value in values]


def fact_text(value: object) -> str:
    """A fact as text: yes or no, four significant digits, thousands separators."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return number(value, 4)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _power(value: float) -> int:
    """The power of ten of a number's leading digit."""
    return int(np.floor(np.log10(abs(value)))) if value else 0
