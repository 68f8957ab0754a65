"""Read and write beacons and arrivals as tables; write tracks as CSV, GeoJSON, or netCDF with the CF conventions."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import placet
from placet.data import DataError
from placet.io.files import writing
from placet.io.tables.cells import as_number
from placet.io.tables.tables import TableRows, read_table, write_table
from placet.tracking.geometry import AXES
from placet.tracking.observations import CLUTTER, SOUND_KM_PER_S, UNKNOWN, Arrivals, Beacons
from placet.tracking.track_result import Track

EPOCH = "1970-01-01"
DATE_WAY_OUT = "write a day number or an ISO date such as 2009-01-25"


def read_beacons(source: Any, *, speed: float = SOUND_KM_PER_S, epoch: str = EPOCH) -> Beacons:
    """Read beacons from a table.

    Its columns are ``id``; ``lat, lon`` in degrees, or ``x, y`` in the plane; and, optionally, ``ping_offset_s``
    (seconds after the start of listening, default 0), ``clock_drift_s_per_day`` (positive: sounds later each day,
    default 0), ``speed_km_s`` (default ``speed``), ``deployed`` and ``recovered`` (day numbers or ISO dates).
    ``epoch`` is the date of day 0.

    Returns
    -------
    Beacons
        The beacons, geographic if the table has ``lat`` and ``lon``.

    >>> read_beacons({"id": ["north", "south"], "lat": [60.0, 50.0], "lon": [100.0, 104.0]}).names
    ('north', 'south')
    """
    table = read_table(source, "raise").rows()
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
    """Read arrivals from a table with one row per recorded signal, sorted by day and time.

    Its columns are ``day`` (a number, or an ISO date); ``arrival_s`` (seconds on the float's clock; a single row
    without a time means that nothing was heard that day); optionally ``confidence``; and, with ``labels``, ``source``:
    a name in ``beacons``, ``clutter``, or empty.  ``capacity``, the number of signals the float can store in a day, is
    by default the largest number it did store.

    Returns
    -------
    Arrivals
        The signals, by day.

    >>> found = read_arrivals({"day": [1, 1, 2], "arrival_s": [5.0, 6.7, 5.1]})
    >>> found.time, found.capacity
    (array([5. , 6.7, 5.1]), 2)
    """
    table = read_table(source, "raise").rows()
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
            f"{table.name}:{table.line(row)}: day {cell_text(table, 'day', row)} comes after "
            f"{cell_text(table, 'day', row - 1)} ({back.sum()} such lines); sort by day"
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


def cell_text(table: TableRows, name: str, row: int) -> str:
    """The text of a cell, as written in the table."""
    column = table.column(name)
    return str(column.values[column.code[row]])


def _time(table: TableRows, row: int, cell: Any) -> float:
    number = 0.0 if cell is None else as_number(cell)
    if number is None:
        table.reject(
            row, "arrival_s", f"arrival_s {cell!r} is not a finite number", "leave the cell empty if nothing was heard"
        )
        return 0.0
    return number


def _numbers(table: TableRows, name: str, default: float) -> np.ndarray:
    """A column of numbers; empty cells or a missing column give the default."""
    out = np.full(len(table), float(default))
    if name in table.names:
        for row, cell in enumerate(table.column(name, "")):
            number = default if cell is None else as_number(cell)
            if number is None:
                table.reject(row, name, f"{name} {cell!r} is not a finite number", f"write {name} as a plain decimal")
                number = default
            out[row] = number
    return out


def _days(table: TableRows, name: str, default: float | None, epoch: str) -> np.ndarray:
    """A column of day numbers or ISO dates, as days after ``epoch``; without ``default`` no cell may be empty."""
    zero = _parse_date(epoch)
    if zero is None:
        raise ValueError(f"epoch {epoch!r} is not an ISO date such as 1970-01-01")
    if default is not None and name not in table.names:
        return np.full(len(table), default)
    out = np.zeros(len(table))
    for row, cell in enumerate(table.column(name, "arrivals need the columns day and arrival_s")):
        number = default if cell is None else as_number(cell)
        date = None if number is not None or cell is None else _parse_date(str(cell))
        if date is not None:
            number = (date - zero).total_seconds() / 86400
        if number is None:
            table.reject(row, name, f"{name} {cell!r} is not a day", DATE_WAY_OUT)
            number = 0.0
        out[row] = number
    return out


def _parse_date(text: str) -> datetime | None:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date


def _labels(table: TableRows, beacons: Beacons | None) -> np.ndarray:
    if beacons is None:
        raise ValueError("labels name beacons: pass beacons too")
    index = {name: k for k, name in enumerate(beacons.names)} | {"clutter": CLUTTER}
    out = np.full(len(table), UNKNOWN)
    for row, cell in enumerate(table.column("source", "labels need the column source")):
        if cell is None:
            continue
        if str(cell) not in index:
            table.reject(
                row,
                "source",
                f"source {str(cell)!r} is not a beacon",
                "write an id of the beacons, 'clutter' or nothing",
            )
        else:
            out[row] = index[str(cell)]
    return out


def write_track(track: Track, target: str | Path) -> None:
    """Write the track in the format given by the suffix of ``target``: .csv, .geojson or .nc.

    >>> from placet.tracking import Arrivals, Beacons, RankedSignalTracker
    >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
    >>> arrivals = Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20))
    >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.05, clutter_rate=0.1, diffusion=0.1, particles=500)
    >>> track = tracker.track(arrivals, start=(3, 4))
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "track.csv"
    >>> write_track(track, file)
    >>> len(file.read_text().splitlines())  # a head, and a line per day
    6
    """
    path = Path(target)
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ValueError(f"{path.name}: a track is written as one of {list(WRITERS)}")
    writer(track, path)


def write_csv(track: Track, target: str | Path) -> None:
    """Write one row per step, with the columns of ``Track.to_frame``."""
    write_table(target, track.to_frame().to_dict(as_series=False), "csv")


def write_associations(track: Track, target: str | Path) -> None:
    """Write one row per signal, with the columns of ``Track.associations_frame``.

    >>> from placet.tracking import Arrivals, Beacons, RankedSignalTracker
    >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
    >>> arrivals = Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20))
    >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.05, clutter_rate=0.1, diffusion=0.1, particles=500)
    >>> track = tracker.track(arrivals, start=(3, 4))
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "signals.csv"
    >>> write_associations(track, file)
    >>> len(file.read_text().splitlines())  # a head, and a line per signal
    16
    """
    write_table(target, track.associations_frame().to_dict(as_series=False), "csv")


def write_geojson(track: Track, target: str | Path) -> None:
    """Write a line and one point per step (RFC 7946): longitude first, the line cut where it crosses the date line."""
    if track.geometry != "geographic":
        raise ValueError("GeoJSON holds longitude and latitude; this track is in the plane: write .csv or .nc")
    lines = _cut(track.position[:, ::-1])
    shape = {"type": "LineString", "coordinates": lines[0]} if len(lines) == 1 else None
    shape = shape or {"type": "MultiLineString", "coordinates": lines}
    about = {"log_likelihood": track.log_likelihood, "determined": track.determined, "smoothed": track.smoothed}
    features: list[dict[str, Any]] = [{"type": "Feature", "geometry": shape, "properties": about}]
    date, sd = track.date, track.sd()
    for k, (lat, lon) in enumerate(track.position.tolist()):
        seen = {"day": float(track.day[k]), "date": date[k], "sd_km": float(sd[k])}
        seen |= {"ess": float(track.ess[k]), "agree": bool(track.agree[k])}
        point = {"type": "Point", "coordinates": [lon, lat]}
        features.append({"type": "Feature", "geometry": point, "properties": seen})
    with writing(target) as file:
        file.write(json.dumps({"type": "FeatureCollection", "features": features}).encode())


def write_netcdf(track: Track, target: str | Path) -> None:
    """Write CF-1.8, ``featureType = trajectory``: coordinates by time, covariance, and association of every signal."""
    try:
        from netCDF4 import Dataset
    except ImportError as error:
        raise ImportError("netCDF files need the package netCDF4; install placet[tracking], or write .csv") from error
    data = Dataset("track.nc", "w", memory=1024)
    data.setncatts({"Conventions": "CF-1.8", "featureType": "trajectory", "title": "Track from ranked signals"})
    data.setncatts(
        {
            "log_likelihood": track.log_likelihood,
            "determined": {True: "true", False: "false", None: "untested"}[track.determined],
        }
    )
    data.setncatts({"comment": track.summary().replace("\n", " "), "source": f"Placet {placet.__version__}"})
    data.setncatts({f"parameter_{name}": value for name, value in track.parameters.items()})
    for name, size in (("time", len(track)), ("signal", len(track.clutter)), ("beacon", len(track.beacons))):
        data.createDimension(name, size)
    _coordinates(data, track)
    where = {"coordinates": "time " + " ".join(_names(track)), "cell_methods": "time: point"}
    unit = "km2" if track.geometry == "geographic" else "1"
    first, second = AXES[track.geometry]
    for name, a, b in ((f"var_{first}", 0, 0), (f"cov_{first}_{second}", 0, 1), (f"var_{second}", 1, 1)):
        text = f"covariance of the position, axes {a} and {b} (north, east when geographic)"
        _variable(data, name, ("time",), track.covariance[:, a, b], long_name=text, units=unit, **where)
    _variable(data, "ess", ("time",), track.ess, long_name="effective number of particles", units="1", **where)
    agree = {"flag_values": np.array([0, 1], "i1"), "flag_meanings": "chains_apart chains_agree"}
    _variable(data, "agree", ("time",), track.agree.astype("i1"), long_name="whether chains agree", **agree, **where)
    _associations(data, track)
    with writing(target) as file:
        file.write(bytes(data.close()))


def write_beacons(beacons: Beacons, target: str | Path) -> None:
    """Write beacons as a table that ``read_beacons`` can read.

    >>> from placet.tracking import Beacons
    >>> beacons = Beacons([[0, 0], [3, 4]], speed=1.0)
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "beacons.csv"
    >>> write_beacons(beacons, file)
    >>> file.read_text().splitlines()[0]
    'id,x,y,ping_offset_s,clock_drift_s_per_day,speed_km_s,deployed,recovered'
    """
    first, second = AXES[beacons.geometry]
    columns: dict[str, Any] = {
        "id": list(beacons.names),
        first: beacons.position[:, 0].tolist(),
        second: beacons.position[:, 1].tolist(),
        "ping_offset_s": np.asarray(beacons.emission).tolist(),
        "clock_drift_s_per_day": np.asarray(beacons.drift).tolist(),
        "speed_km_s": np.asarray(beacons.speed).tolist(),
        "deployed": [v if np.isfinite(v) else None for v in np.asarray(beacons.since).tolist()],
        "recovered": [v if np.isfinite(v) else None for v in np.asarray(beacons.until).tolist()],
    }
    write_table(target, columns, "csv")


def write_arrivals(arrivals: Arrivals, target: str | Path, source: list[str] | None = None) -> None:
    """Write arrivals as a table that ``read_arrivals`` can read; a step without signals is a row without a time.

    >>> from placet.tracking import Arrivals
    >>> arrivals = Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20))
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "arrivals.csv"
    >>> write_arrivals(arrivals, file)
    >>> file.read_text().splitlines()[:2]
    ['day,arrival_s', '1.0,5.0']
    """
    rows: list[tuple[float, float | None, int]] = []
    for k, day in enumerate(arrivals.day.tolist()):
        signals = range(arrivals.offsets[k], arrivals.offsets[k + 1])
        rows += [(day, float(arrivals.time[j]), j) for j in signals] or [(day, None, -1)]
    columns: dict[str, Any] = {"day": [row[0] for row in rows], "arrival_s": [row[1] for row in rows]}
    if arrivals.confidence is not None:
        columns["confidence"] = [float(arrivals.confidence[j]) if j >= 0 else 0.0 for _, _, j in rows]
    if source is not None:
        columns["source"] = [source[j] if j >= 0 else None for _, _, j in rows]
    write_table(target, columns, "csv")


WRITERS = {".csv": write_csv, ".geojson": write_geojson, ".json": write_geojson, ".nc": write_netcdf}


def _cut(points: np.ndarray) -> list[list[list[float]]]:
    """Split (lon, lat) points into lines that do not cross the date line."""
    lines: list[list[list[float]]] = [[points[0].tolist()]]
    for (lon, lat), (next_lon, next_lat) in zip(points[:-1].tolist(), points[1:].tolist()):
        if abs(next_lon - lon) > 180:
            edge = 180.0 if lon > 0 else -180.0
            way = next_lon + 2 * edge - lon
            crossing = lat + (next_lat - lat) * ((edge - lon) / way if way else 0.5)
            lines[-1].append([edge, crossing])
            lines.append([[-edge, crossing]])
        lines[-1].append([next_lon, next_lat])
    return lines


def _names(track: Track) -> tuple[str, str]:
    return AXES[track.geometry][0], AXES[track.geometry][1]


def _coordinates(data: Any, track: Track) -> None:
    """Add time, the two coordinates of the position, and the name of the trajectory."""
    units = f"days since {track.epoch}"
    _variable(data, "time", ("time",), track.day, standard_name="time", units=units, calendar="standard", axis="T")
    geographic = track.geometry == "geographic"
    standard = ("latitude", "longitude") if geographic else ("projection_x_coordinate", "projection_y_coordinate")
    unit = ("degrees_north", "degrees_east") if geographic else ("km", "km")
    axis = ("Y", "X") if geographic else ("X", "Y")
    for k, name in enumerate(_names(track)):
        _variable(
            data, name, ("time",), track.position[:, k], standard_name=standard[k], units=unit[k], axis=axis[k]
        )  # fmt: skip
    _variable(data, "trajectory", (), "float", cf_role="trajectory_id", long_name="name of the trajectory")


def _associations(data: Any, track: Track) -> None:
    """Add, for every signal, its step, the probability of each beacon, and that of clutter."""
    step = np.repeat(np.arange(len(track)), np.diff(track.offsets)).astype("i4")
    _variable(data, "step", ("signal",), step, long_name="index of the time at which the signal was recorded")
    _variable(data, "beacon_name", ("beacon",), np.array(track.beacons.names, dtype=object), long_name="beacon")
    text = "probability that the signal came from the beacon"
    _variable(data, "association", ("signal", "beacon"), track.association, long_name=text, units="1")
    _variable(
        data, "clutter", ("signal",), track.clutter, long_name="probability that the signal is clutter", units="1"
    )


def _variable(data: Any, name: str, dimensions: tuple[str, ...], values: Any, **attributes: Any) -> None:
    text = isinstance(values, str) or np.asarray(values).dtype == object
    variable = data.createVariable(name, str if text else np.asarray(values).dtype, dimensions)
    if text and not dimensions:
        variable[...] = np.array(values, dtype=object)
    else:
        variable[...] = values
    variable.setncatts(attributes)
