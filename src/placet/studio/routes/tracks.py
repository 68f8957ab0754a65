"""Tracks: a float's path from two tables, arrivals and beacons."""

import asyncio
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from placet.studio.file_lists import paths_of
from placet.studio.file_uses import usable
from placet.studio.pages import page
from placet.studio.routes.common import body_of, start_job, store_of

NUMBERS = {
    "detection": (0.9, 0.0, 1.0),
    "clutter_rate": (1.0, 0.0, 1e6),
    "sigma": (5.0, 1e-9, 1e6),
    "diffusion": (25.0, 1e-12, 1e12),
    "persistence": (0.0, 0.0, 1e6),
    "particles": (10_000, 10, 1_000_000),
    "chains": (4, 1, 64),
}
"""Parameter -> the default of ``placet track``, the minimum and the maximum."""

WHOLE = ("particles", "chains")


async def show(request: Request) -> Response:
    """The form and the plot."""
    found = await asyncio.to_thread(usable, store_of(request).datasets(), "arrivals", "beacons")
    arrivals, beacons = found["arrivals"], found["beacons"]
    return page(request, "tracks.html", arrivals=arrivals, beacons=beacons, numbers=NUMBERS)


async def compute(request: Request) -> Response:
    """Track a float."""
    values = await body_of(request)
    try:
        files = {name: store_of(request).dataset(str(values.get(name))).path for name in ("arrivals", "beacons")}
    except KeyError:
        raise HTTPException(404, "choose two datasets: arrivals and beacons") from None
    if any(len(paths_of(path)) > 1 for path in files.values()):
        raise HTTPException(400, "arrivals and beacons are one file each; choose one that is not joined")
    asked = {"start": _place(values, "start"), "end": _place(values, "end") if values.get("end") else None}
    model = {name: _number(values, name, *limits) for name, limits in NUMBERS.items()}
    speed = _number(values, "speed", 1.5, 1e-9, 1e6)
    return start_job(request, "track", {**files, **asked, "model": model, "speed": speed})


def _place(values: dict[str, Any], name: str) -> list[float]:
    place = values.get(name)
    if not isinstance(place, list) or len(place) != 2 or not all(isinstance(x, int | float) for x in place):
        raise HTTPException(400, f"{name} must be two numbers: latitude and longitude, or x and y")
    return [float(x) for x in place]


def _number(values: dict[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = values.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise HTTPException(400, f"{name} must be in {low:g}..{high:g}, not {value!r}")
    return int(value) if name in WHOLE else float(value)


routes = [Route("/tracks", show), Route("/api/tracks", compute, methods=["POST"])]
