"""Tracks: a float's path estimated from its arrivals, as by ``placet track``."""

from typing import Any

import numpy as np

from placet.tracking.track_files import read_arrivals, read_beacons
from placet.tracking.tracker import RankedSignalTracker

MOST_OUTLINES = 60


def track(
    progress: Any,
    *,
    arrivals: str,
    beacons: str,
    start: list[float],
    end: list[float] | None,
    model: dict[str, Any],
    speed: float,
) -> dict[str, Any]:
    """The path with its uncertainty, the beacons, and each arrival with its most probable source."""
    sources = read_beacons(beacons, speed=speed)
    heard = read_arrivals(arrivals, beacons=sources)
    found = RankedSignalTracker(beacons=sources, **model).track(heard, start, end)
    where = found.on_map(found.position)
    chosen = np.unique(np.linspace(0, len(found) - 1, min(len(found), MOST_OUTLINES)).round().astype(int))
    way = [
        {"x": x, "y": y, "date": date, "sd": sd, "agree": bool(agree)}
        for (x, y), date, sd, agree in zip(where.tolist(), found.date, found.sd().tolist(), found.agree.tolist())
    ]
    signals = found.associations_frame()
    fixed = found.on_map(sources.position)
    return {
        "way": way,
        "outlines": found.on_map(found.outline())[chosen],
        "beacons": [{"id": str(name), "x": x, "y": y} for name, (x, y) in zip(sources.names, fixed.tolist())],
        "arrivals": [
            {"day": day, "time": time, "source": source, "probability": p}
            for day, time, source, p in signals.select("day", "arrival_s", "source", "probability").rows()
        ],
        "geometry": found.geometry,
        "summary": found.summary(),
        "notes": list(found.notes),
        "determined": found.determined,
    }
