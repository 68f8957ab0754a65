"""Times as dates to the second or plain numbers, and the steps into which time is divided."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data.arrays import Floats, Ints, numbers, refuse_masked_or_complex
from placet.data.errors import DataError

Times = NDArray[Any]
"""(rows,) datetime64[s], or float64."""

UNITS = {"y": "Y", "m": "M", "w": "W", "d": "D", "h": "h"}
_STEP = re.compile(r"\s*([0-9]+)?\s*([a-z])(?:ears?|onths?|eeks?|ays?|ours?)?\s*", re.IGNORECASE)


def time_column(values: Any, n_rows: int) -> Times:
    """Times of rows: datetime64[s] from dates, datetimes and ISO text, float64 from numbers.

    >>> time_column(["2024-06-01", "2024-06-02 12:00"], 2)
    array(['2024-06-01T00:00:00', '2024-06-02T12:00:00'], dtype='datetime64[s]')
    """
    refuse_masked_or_complex(values)
    column = np.asarray(values if isinstance(values, np.ndarray) else list(values))
    if len(column) != n_rows:
        raise DataError(f"time has {len(column)} entries; {n_rows} are needed")
    if column.dtype.kind in "iuf":
        return numbers(column, "time")
    if column.dtype.kind == "O" and all(isinstance(value, int | float) for value in column):
        return numbers(column, "time")
    times = None if _has_zones(column) else _as_dates(column)
    if times is None:
        times = np.array([_moment(value, k) for k, value in enumerate(column.tolist())], "datetime64[s]")
    missing = np.isnat(times)
    if missing.any():
        raise DataError(f"row {int(np.argmax(missing))}: time is missing ({missing.sum()} such rows); fill it in")
    return times


def _has_zones(column: NDArray[Any]) -> bool:
    """Whether text may contain time zones, which NumPy does not support."""
    return column.dtype.kind == "U" and any("+" in text or "Z" in text or text.count("-") > 2 for text in column)


def _as_dates(column: NDArray[Any]) -> Times | None:
    """The column as dates, or None if NumPy cannot parse it."""
    try:
        return column.astype("datetime64[s]")
    except (ValueError, TypeError):
        return None


def _moment(value: Any, row: int) -> np.datetime64:
    """Parse one time; text may be a date, a date and time with or without a zone, a month or a year."""
    from datetime import UTC, date, datetime

    try:
        if isinstance(value, str):
            text = value.strip()
            if re.fullmatch(r"[0-9]{4}(-[0-9]{2})?", text):
                return np.datetime64(text, "s")
            value = datetime.fromisoformat(text.replace("/", "-"))
        if isinstance(value, datetime):
            value = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            return np.datetime64(value, "s")
        if isinstance(value, date):
            return np.datetime64(value, "s")
    except ValueError:
        pass
    raise DataError(f"row {row}: time {value!r} is neither a date such as 2024-06-01 nor a number; correct it")


def moment(value: Any, like: Times) -> Any:
    """Convert one time to the type of ``like``."""
    if like.dtype.kind == "M":
        return _moment(str(value) if isinstance(value, int | np.datetime64) else value, 0)
    try:
        return np.float64(value)
    except (TypeError, ValueError):
        raise DataError(f"time {value!r} is not a number, as the times of the data are") from None


def since(value: Any, last: Any) -> Any:
    """The time that ``value`` names: a time, or a duration such as "2y" before ``last``; None if times are numbers and
    it is a duration.

    >>> since("2y", np.datetime64("2026-11-18", "s"))
    np.datetime64('2024-01-01T00:00:00')
    """
    like = np.array([last])
    match = _STEP.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2].lower() not in UNITS:
        return moment(value, like)
    if like.dtype.kind != "M":
        return None
    unit = UNITS[match[2].lower()]
    return (like.astype(f"datetime64[{unit}]") - int(match[1] or 1)).astype("datetime64[s]")[0]


class TimeSteps:
    """Division of time into steps: ``"1y"``, ``"6m"``, ``"2w"``, ``"30d"``, ``"12h"`` for dates, a number for numbers.

    Years and months are calendar years and months.  ``number(times)`` is the step that contains each time.

    >>> days = np.array(["2024-01-01", "2024-07-01"], "datetime64[s]")
    >>> TimeSteps("6m", like=days).number(days)
    array([108, 109])
    """

    def __init__(self, step: str | float, like: Times) -> None:
        self.dates = like.dtype.kind == "M"
        if not self.dates:
            if isinstance(step, str) or not 0 < step < np.inf:
                raise ValueError(f"step must be a positive number, as the times are numbers, not {step!r}")
            self.size, self.unit = float(step), ""
            return
        match = _STEP.fullmatch(step) if isinstance(step, str) else None
        if match is None or match[2].lower() not in UNITS or match[1] == "0":
            raise ValueError(
                f'step must be such as "1y", "6m", "2w", "30d" or "12h" where times are dates, not {step!r}'
            )
        self.size, self.unit = float(match[1] or 1), UNITS[match[2].lower()]

    def number(self, times: Times) -> Ints:
        """The number of the step that contains each time (rows,)."""
        if not self.dates:
            return np.floor(np.asarray(times, np.float64) / self.size).astype(np.int64)
        return np.asarray(times).astype(f"datetime64[{self.unit}]").astype(np.int64) // int(self.size)

    def start(self, number: Any) -> Times:
        """Start times of steps."""
        first = np.asarray(number, np.int64)
        if not self.dates:
            return first * self.size
        return (first * int(self.size)).astype(f"datetime64[{self.unit}]").astype("datetime64[s]")

    def fraction(self, times: Times) -> Floats:
        """Times in units of steps, so that the middle of step k is k."""
        k = self.number(times)
        begin, end = self.start(k), self.start(k + 1)
        share: Floats = np.asarray((np.asarray(times) - begin) / (end - begin), np.float64)
        return k + share - np.float64(0.5)
