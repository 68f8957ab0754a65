"""Numbers formatted for people: rounded to their errors, with thousands separators, aligned in columns.

The page, the studio, notebooks and the terminal all take their numbers from here.
"""

import math
from collections.abc import Iterable, Sequence

MOST_DECIMALS = 12
FIGURE_SPACE, POINT_SPACE = "\u2007", "\u2008"
"""Spaces as wide as a digit and as a decimal point, used to align numbers of different lengths."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """A single number: ``digits`` significant digits, thousands separators, a true minus sign, never 2.06e+03.

    >>> number(2056.4), number(-0.00123456), number(0.5), number(3.0), number(12345678.0), number(1e-12)
    ('2,056', '−0.00123', '0.5', '3', '12,345,678', '1 × 10⁻¹²')
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "")
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    if not -6 <= int(power) < 15:
        return f"{number(float(mantissa), digits)} × 10{str(int(power)).translate(_RAISED)}"
    text = with_decimals(value, min(max(digits - 1 - int(power), 0), MOST_DECIMALS))
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_decimals(value: float, decimals: int, *, plain: bool = False) -> str:
    """A number with ``decimals`` decimals; ``plain``: in ASCII and without separators, for a terminal.

    >>> with_decimals(-1234.5, 2), with_decimals(-1234.5, 2, plain=True), with_decimals(-0.001, 2)
    ('−1,234.50', '-1234.50', '0.00')
    """
    text = f"{abs(value):.{decimals}f}" if plain else f"{abs(value):,.{decimals}f}"
    return ("-" if plain else "−") + text if value < 0 and text.strip("0.,") else text


def each_with_decimals(values: Iterable[float], decimals: Iterable[int]) -> list[str]:
    """`with_decimals` of each number of a column.

    >>> each_with_decimals([1234.5, -0.001], [1, 2])
    ['1,234.5', '0.00']
    """
    texts = [(value < 0, f"{abs(value):,.{places}f}") for value, places in zip(values, decimals)]
    return [f"−{text}" if below and text.strip("0.,") else text for below, text in texts]


def with_error(value: float, error: float | None, digits: int = 3) -> tuple[str, str]:
    """A value rounded to the precision of its standard error, and the error; ``digits`` of the value if it has none.

    >>> with_error(1.23456, 0.0321), with_error(-12.3, 4.0), with_error(2.0, None)
    (('1.235', '± 0.032'), ('−12.3', '± 4.0'), ('2', ''))
    """
    if error is None or not error > 0:
        return number(value, digits), ""
    decimals = error_decimals(error, MOST_DECIMALS)
    return with_decimals(value, decimals), f"± {with_decimals(error, decimals)}"


def percent(share: float, *, sampled: bool = False) -> str:
    """A probability as a percentage; values close to 0 or 1 are not shown as 0% or 100%.

    ``sampled`` is for shares of random draws, where even "all" and "none" are not certain.

    >>> percent(0.8521), percent(0.99999), percent(1.0), percent(0.0001), percent(0.0)
    ('85.2%', 'more than 99.9%', '100%', 'less than 0.1%', '0%')
    >>> percent(1.0, sampled=True), percent(0.0, sampled=True)
    ('more than 99.9%', 'less than 0.1%')
    """
    return percents([share], sampled=sampled)[0]


def percents(shares: Iterable[float], *, sampled: bool = False) -> list[str]:
    """`percent` of each share of a column."""
    return [
        f"{share:.0%}"
        if share in (0, 1) and not sampled
        else "more than 99.9%"
        if share >= 0.9995
        else "less than 0.1%"
        if share < 0.0005
        else f"{share:.1%}"
        for share in shares
    ]


def error_decimals(error: float, most: int = 8) -> int:
    """Number of decimals that shows a standard error to two significant digits.

    >>> error_decimals(0.0321), error_decimals(0.0998), error_decimals(4.0), error_decimals(250.0)
    (3, 2, 1, 0)
    """
    return min(most, max(0, 1 - int(f"{error:.1e}".partition("e")[2])))  # the power of ten once rounded: 0.0998 is 0.10


def decimals_for(errors: Iterable[float]) -> list[int]:
    """`error_decimals` of a column; for an error of 0, the most of the others.

    >>> decimals_for([0.0312, 0.5, 35.0, 0.0])
    [3, 2, 0, 3]
    """
    powers = [int(f"{error:.1e}".partition("e")[2]) if 0 < error < math.inf else None for error in errors]
    found = [None if power is None else min(MOST_DECIMALS, max(0, 1 - power)) for power in powers]
    most = max((decimals for decimals in found if decimals is not None), default=2)
    return [most if decimals is None else decimals for decimals in found]


def decimals_of(values: Iterable[float], digits: int = 5) -> int:
    """Number of decimals for numbers without errors: ``digits`` significant digits of the largest, no trailing zeros.

    >>> decimals_of([3.0, 12.0]), decimals_of([0.5, 0.25]), decimals_of([2056.3333, 1.0]), decimals_of([1e-9])
    (0, 2, 1, 9)
    """
    known = [value for value in values if math.isfinite(value)]
    largest = max(map(abs, known), default=0.0)
    power = math.floor(math.log10(largest)) if largest else 0
    most = min(max(digits - 1 - power, 0), MOST_DECIMALS)
    texts = [f"{value:.{most}f}".rstrip("0") for value in known]
    return max((len(text) - text.index(".") - 1 for text in texts if "." in text), default=0) if most else 0


def aligned_numbers(values: Iterable[float], decimals: Sequence[int]) -> list[str]:
    """Numbers of a right-aligned column, padded with spaces so that their decimal points are aligned."""
    most = max(decimals, default=0)
    blanks = [FIGURE_SPACE * (most - own) + (POINT_SPACE if most and not own else "") for own in decimals]
    return [text + blank for text, blank in zip(each_with_decimals(values, decimals), blanks)]


def counts(values: Iterable[float]) -> list[str]:
    """Weights or counts of a column, without decimals if all are integers.

    >>> counts([1200.0, 3.0]), counts([1.5, 20.0])
    (['1,200', '3'], ['1.5', '20.0'])
    """
    values = list(values)
    return each_with_decimals(values, [min(decimals_of(values), 2)] * len(values))


def count_text(value: float) -> str:
    """One count or weight, with thousands separators.

    >>> count_text(2541.0), count_text(0.5)
    ('2,541', '0.5')
    """
    return counts([value])[0]


def fact_text(value: object) -> str:
    """A fact as text: yes or no, four significant digits, thousands separators.

    >>> fact_text(True), fact_text(0.123456), fact_text(12345), fact_text("as it is")
    ('yes', '0.1235', '12,345', 'as it is')
    """
    return fact_texts([value])[0]


def fact_texts(values: Iterable[object]) -> list[str]:
    """`fact_text` of each fact."""
    return [
        {True: "yes", False: "no", None: "none"}[value]
        if isinstance(value, bool) or value is None
        else number(value, 4)
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
        for value in values
    ]
