"""Tracks as files: CSV, GeoJSON, and netCDF by the CF conventions."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from placet.io.files import writing
from placet.io.tables import write_table
from placet.tracking.arrivals import Arrivals
from placet.tracking.beacons import Beacons
from placet.tracking.geometry import AXES
from placet.tracking.track import Track


def write_track(track: Track, target: str | Path) -> None:
    """The track as ``target``'s suffix says: .csv, .geojson or .nc."""
    path = Path(target)
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ValueError(f"{path.name}: a track is written as one of {list(WRITERS)}")
    writer(track, path)


def write_csv(track: Track, target: str | Path) -> None:
    """One row for each step: day, date, position, covariance, effective particles, whether the chains agree."""
    first, second = AXES[track.geometry]
    columns = {
        "day": track.day,
        "date": [_date(track, k) for k in range(len(track))],
        first: track.position[:, 0],
        second: track.position[:, 1],
        f"var_{first}": track.covariance[:, 0, 0],
        f"cov_{first}_{second}": track.covariance[:, 0, 1],
        f"var_{second}": track.covariance[:, 1, 1],
        "ess": track.ess,
        "agree": track.agree,
    }
    write_table(target, {name: np.asarray(values).tolist() for name, values in columns.items()}, "csv")


def write_associations(track: Track, arrivals: Arrivals, target: str | Path) -> None:
    """One row for each signal: day, time, most probable source, its probability, the probability of clutter."""
    step = np.repeat(np.arange(len(track)), np.diff(track.offsets))
    source = track.source
    best = np.where(source >= 0, track.association.max(axis=1, initial=0.0), track.clutter)
    columns: dict[str, Any] = {
        "day": track.day[step].tolist(),
        "arrival_s": arrivals.time.tolist(),
        "source": [track.beacons.names[i] if i >= 0 else "clutter" for i in source],
        "probability": best.tolist(),
        "clutter": track.clutter.tolist(),
    }
    write_table(target, columns, "csv")


def write_geojson(track: Track, target: str | Path) -> None:
    """A line and one point for each step (RFC 7946): longitude first, the line cut where it crosses the date line."""
    if track.geometry != "geographic":
        raise ValueError("GeoJSON holds longitude and latitude; this track is in the plane: write .csv or .nc")
    lines = _cut(track.position[:, ::-1])
    shape = {"type": "LineString", "coordinates": lines[0]} if len(lines) == 1 else None
    shape = shape or {"type": "MultiLineString", "coordinates": lines}
    about = {"log_likelihood": track.log_likelihood, "determined": track.determined, "smoothed": track.smoothed}
    features: list[dict[str, Any]] = [{"type": "Feature", "geometry": shape, "properties": about}]
    for k, (lat, lon) in enumerate(track.position.tolist()):
        seen = {"day": float(track.day[k]), "date": _date(track, k), "sd_km": float(track.sd()[k])}
        seen |= {"ess": float(track.ess[k]), "agree": bool(track.agree[k])}
        point = {"type": "Point", "coordinates": [lon, lat]}
        features.append({"type": "Feature", "geometry": point, "properties": seen})
    with writing(target) as file:
        file.write(json.dumps({"type": "FeatureCollection", "features": features}).encode())


def write_netcdf(track: Track, target: str | Path) -> None:
    """CF-1.8, ``featureType = trajectory``: coordinates by time, covariance, and the association of every signal."""
    try:
        from netCDF4 import Dataset
    except ImportError as error:
        raise ImportError("netCDF files need the package netCDF4; install placet[tracking], or write .csv") from error
    data = Dataset("track.nc", "w", memory=1024)
    data.setncatts({"Conventions": "CF-1.8", "featureType": "trajectory", "title": "Track from ranked signals"})
    data.setncatts({"log_likelihood": track.log_likelihood, "determined": str(track.determined).lower()})
    data.setncatts({"comment": track.summary().replace("\n", " ")})
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
    """Beacons as a table that ``read_beacons`` reads."""
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
    """Arrivals as a table that ``read_arrivals`` reads; a step without signals is a row without a time."""
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


def _date(track: Track, k: int) -> str:
    when = datetime.fromisoformat(track.epoch).replace(tzinfo=UTC) + timedelta(days=float(track.day[k]))
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def _cut(points: np.ndarray) -> list[list[list[float]]]:
    """(lon, lat) points as lines that never jump over the date line."""
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
    """Time, the two coordinates of the position, and the name of the trajectory."""
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
    """For every signal its step, the probability of each beacon, and that of clutter."""
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
