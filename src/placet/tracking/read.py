"""Beacons and arrivals from tables: CSV, tab-separated, JSON lines, Parquet, or any data frame."""

from datetime import UTC, datetime
from typing import Any

import numpy as np

from placet.data import DataError
from placet.io.tables import Table, as_number, read_table
from placet.tracking.arrivals import CLUTTER, UNKNOWN, Arrivals
from placet.tracking.beacons import SOUND_KM_PER_S, Beacons

EPOCH = "1970-01-01"
DATE_WAY_OUT = "write a day number or an ISO date such as 2009-01-25"


def read_beacons(source: Any, *, speed: float = SOUND_KM_PER_S, epoch: str = EPOCH) -> Beacons:
    """Beacons from a table with the columns

    ``id``; ``lat, lon`` in degrees, or ``x, y`` in the plane; and, if there are any, ``ping_offset_s`` (seconds
    after the start of listening, else 0), ``clock_drift_s_per_day`` (positive: sounds later each day, else 0),
    ``speed_km_s`` (else ``speed``),
    ``deployed`` and ``recovered`` (day numbers or ISO dates).  ``epoch`` is the date of day 0.
    """
    table = read_table(source, "raise")
    geographic = "lat" in table.names
    axes = ("lat", "lon") if geographic else ("x", "y")
    way_out = "beacons need id and either lat, lon or x, y"
    names = [str(name) for name in table.labels("id", way_out)]
    position = np.column_stack([table.numbers(axis, way_out) for axis in axes])
    columns = {
        "emission": _numbers(table, "ping_offset_s", 0.0),
        "drift": _numbers(table, "clock_drift_s_per_day", 0.0),
        "speed": _numbers(table, "speed_km_s", speed),
        "since": _days(table, "deployed", -np.inf, epoch),
        "until": _days(table, "recovered", np.inf, epoch),
    }
    table.good_rows()
    geometry = "geographic" if geographic else "plane"
    return Beacons(position, **columns, names=tuple(names), geometry=geometry)


def read_arrivals(
    source: Any, *, capacity: int | None = None, window: tuple[float, float] = (0.0, np.inf),
    clock: tuple[float, float] = (0.0, 0.0), epoch: str = EPOCH, beacons: Beacons | None = None, labels: bool = False,
) -> Arrivals:  # fmt: skip
    """Arrivals from a table with one row for each recorded signal, sorted by day and time, with the columns

    ``day`` (a number, or an ISO date); ``arrival_s`` (seconds on the float's clock; a day with one row and no time
    is a day on which nothing was heard); ``confidence`` if there is any; ``source`` if ``labels``: a name of
    ``beacons``, ``clutter``, or nothing.  ``capacity``, the most signals the float stores in a day, is by default
    the most it did store.
    """
    table = read_table(source, "raise")
    way_out = "arrivals need the columns day and arrival_s"
    day = _days(table, "day", None, epoch)
    cells = table.column("arrival_s", way_out)
    heard = np.array([cell is not None for cell in cells], dtype=bool)
    time = np.array([_time(table, row, cell) for row, cell in enumerate(cells)])
    confidence = np.array(table.numbers("confidence", way_out)) if "confidence" in table.names else None
    label = _labels(table, beacons) if labels else None
    table.good_rows()
    if len(day) == 0:
        raise DataError(f"{table.name}: there are no arrivals")
    back = np.diff(day) < 0
    if back.any():
        row = int(np.argmax(back)) + 1
        raise DataError(
            f"{table.name}:{table.line(row)}: day {cells_said(table, 'day', row)} comes after "
            f"{cells_said(table, 'day', row - 1)} ({back.sum()} such lines); sort by day"
        )
    days, index = np.unique(day, return_inverse=True)
    counts = np.bincount(index[heard], minlength=len(days))
    lone = ~heard & (np.bincount(index, minlength=len(days))[index] > 1)
    if lone.any():
        row = int(np.argmax(lone))
        raise DataError(
            f"{table.name}:{table.line(row)}: no arrival_s, but its day has other rows ({lone.sum()} such lines); "
            "leave out what was not recorded"
        )
    return Arrivals(
        days, time[heard], np.concatenate([[0], np.cumsum(counts)]),
        capacity=max(1, int(counts.max())) if capacity is None else capacity, window=window,
        confidence=None if confidence is None else confidence[heard], source=None if label is None else label[heard],
        clock=clock, epoch=epoch,
    )  # fmt: skip


def cells_said(table: Table, name: str, row: int) -> str:
    """A cell as it stands in the table."""
    return str(table.cells(name)[row])


def _time(table: Table, row: int, cell: Any) -> float:
    number = 0.0 if cell is None else as_number(cell)
    if number is None:
        table.reject(
            row, "arrival_s", f"arrival_s {cell!r} is not a finite number", "leave the cell empty if nothing was heard"
        )
        return 0.0
    return number


def _numbers(table: Table, name: str, default: float) -> np.ndarray:
    """A column of numbers; an empty cell, or no column at all, stands for the default."""
    out = np.full(table.n_rows, float(default))
    if name in table.names:
        for row, cell in enumerate(table.column(name, "")):
            number = default if cell is None else as_number(cell)
            if number is None:
                table.reject(row, name, f"{name} {cell!r} is not a finite number", f"write {name} as a plain decimal")
                number = default
            out[row] = number
    return out


def _days(table: Table, name: str, default: float | None, epoch: str) -> np.ndarray:
    """A column of day numbers or ISO dates, as days after ``epoch``; without ``default`` every row must have one."""
    zero = _date(epoch)
    if zero is None:
        raise ValueError(f"epoch {epoch!r} is not an ISO date such as 1970-01-01")
    if default is not None and name not in table.names:
        return np.full(table.n_rows, default)
    out = np.zeros(table.n_rows)
    for row, cell in enumerate(table.column(name, "arrivals need the columns day and arrival_s")):
        number = default if cell is None else as_number(cell)
        date = None if number is not None or cell is None else _date(str(cell))
        if date is not None:
            number = (date - zero).total_seconds() / 86400
        if number is None:
            table.reject(row, name, f"{name} {cell!r} is not a day", DATE_WAY_OUT)
            number = 0.0
        out[row] = number
    return out


def _date(text: str) -> datetime | None:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date


def _labels(table: Table, beacons: Beacons | None) -> np.ndarray:
    if beacons is None:
        raise ValueError("labels name beacons: pass beacons too")
    index = {name: k for k, name in enumerate(beacons.names)} | {"clutter": CLUTTER}
    out = np.full(table.n_rows, UNKNOWN)
    for row, cell in enumerate(table.column("source", "labels need the column source")):
        if cell is None:
            continue
        if str(cell) not in index:
            table.reject(
                row, "source", f"source {str(cell)!r} is no beacon", "write an id of the beacons, 'clutter' or nothing"
            )
        else:
            out[row] = index[str(cell)]
    return out
