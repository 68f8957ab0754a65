"""Round numbers and round dates for the axes of charts, and room for labels at the ends of lines."""

from collections.abc import Sequence

import numpy as np

from placet.data.arrays import Floats

MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
MOST_DATES = 7
MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def round_numbers(low: float, high: float) -> list[float]:
    """About five numbers that are easy to read.

    >>> round_numbers(-0.93, 1.2), round_numbers(-2.11, 2.52)
    ([-0.5, 0.0, 0.5, 1.0], [-2.0, -1.0, 0.0, 1.0, 2.0])
    """
    raw = (high - low or 1.0) / 5
    power = 10.0 ** np.floor(np.log10(raw))
    unit = power * next(f for f in (1, 2, 5, 10) if f * power >= 0.8 * raw)
    return [float(round(k * unit, 10)) for k in range(int(np.ceil(low / unit)), int(np.floor(high / unit)) + 1)]


def round_dates(low: np.datetime64, high: np.datetime64) -> list[tuple[np.datetime64, str]]:
    """Starts of months or years between two dates, and what to write there; six days if they are within a month or two.

    >>> [text for _, text in round_dates(np.datetime64("2023-11-20"), np.datetime64("2025-03-02"))]
    ['Jan 2024', 'Apr 2024', 'Jul 2024', 'Oct 2024', 'Jan 2025']
    >>> [text for _, text in round_dates(np.datetime64("2001-11-20"), np.datetime64("2006-03-02"))]
    ['2002', '2003', '2004', '2005', '2006']
    """
    first, last = (int(when.astype("datetime64[M]").astype(np.int64)) for when in (low, high))
    if last - first < 2:
        days = np.unique((low + (high - low) * np.arange(6) // 5).astype("datetime64[D]"))
        return [(day, str(day)) for day in days if low <= day <= high]
    unit = next((months for months in MONTHS if (last - first) / months < MOST_DATES), MONTHS[-1])
    starts = [k for k in range(first + 1, last + 1) if k % unit == 0]
    return [(np.datetime64(k, "M"), _month(k, unit)) for k in starts]


def _month(k: int, unit: int) -> str:
    year = 1970 + k // 12
    return str(year) if unit % 12 == 0 else f"{MONTH_NAMES[k % 12]} {year}"


def spread_apart(places: Sequence[float], room: float, low: float, high: float) -> Floats:
    """Places of labels, each near its own, none within ``room`` of another; from ``low`` to ``high`` if they fit.

    >>> spread_apart([10, 12, 100], 14, 0, 200).tolist()
    [10.0, 24.0, 100.0]
    """
    order = np.argsort(places, kind="stable")
    found = np.array(places, np.float64)[order]
    for k in range(1, len(found)):
        found[k] = max(found[k], found[k - 1] + room)
    if len(found) and found[-1] > high:
        found[-1] = high
        for k in range(len(found) - 2, -1, -1):
            found[k] = min(found[k], found[k + 1] - room)
        found += max(low - found[0], 0.0)
    placed = np.empty(len(found))
    placed[order] = found
    return placed
