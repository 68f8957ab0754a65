"""A 300-day simulation on the real geometry of DIMES: real sources, launch and surfacing points, and clock offsets.

The true way is drawn by the tracker's own motion, given launch and surfacing point (eddies of a few days, 8 km a day),
so that about 95 % of it should lie in the ellipses of 95 %.  The float stores the 4 earliest of all signals (section
5.5.2: P_D 0.9, one clutter signal a day so that P_C = 0.5, sigma 5 s, 1.5 km/s).  Errors are geodesic kilometers.  The
tables of sources and floats are looked for in the folder of the variable PLACET_DATA, then in ../shared/data.
"""

import csv
import os
import sys
from datetime import date
from pathlib import Path

import numpy as np
from tracking_scenes import arguments, folder, report

from placet.simulate.signals import ranked_signals, simulated_drift
from placet.tracking import Beacons, RankedSignalTracker, plot_track

NAME = "dimes"
EPOCH = "1970-01-01"
FIRST = (date(2010, 2, 10) - date(1970, 1, 1)).days  # by then every DIMES source sounds
STEPS = 300
WINDOW = (3000.0, 9000.0)
MOTION = {"diffusion": 512.0, "persistence": 4.0}  # km^2 a day, days: velocities of 8 km a day


def main() -> None:
    quick = arguments(__doc__).quick
    data = find_data()
    sources = read_sources(data / "rafos" / "sound_sources.csv")
    floats = [row for row in read(data / "rafos" / "dimes_floats.csv") if reachable(row, sources)]
    chosen = floats[:: max(1, len(floats) // (2 if quick else 6))][: 2 if quick else 6]
    day = FIRST + np.arange(STEPS, dtype=float)
    errors, shares, inside = ({"filtered": [], "smoothed": []} for _ in range(3))
    for k, row in enumerate(chosen):
        start, end = (np.array([float(row[f"{w}_lat"]), float(row[f"{w}_lon"])]) for w in ("deploy", "recover"))
        clock = float(row["clock_offset_start_s"]), float(row["clock_offset_end_s"])
        way = simulated_drift(day, start, end, geometry="geographic", random_state=1000 + k, **MOTION)
        drawn = ranked_signals(
            sources, way, capacity=4, detection=0.9, clutter_rate=1.0, sigma=5.0, window=WINDOW, clock=clock,
            day=day, epoch=EPOCH, random_state=k,
        )  # fmt: skip
        tracker = RankedSignalTracker(
            beacons=sources, detection=0.9, clutter_rate=1.0, sigma=5.0, particles=2000 if quick else 10_000, chains=2,
            random_state=k, **MOTION,
        )  # fmt: skip
        for kind, known in (("filtered", None), ("smoothed", end)):
            track = tracker.track(drawn.arrivals, start, known)
            errors[kind].append(track.error(way))
            shares[kind].append((track.source == drawn.source).mean())
            inside[kind].append(track.inside(way))
            print(f"float {row['float']}, {kind}: median error {np.median(errors[kind][-1]):.1f} km, "
                  f"{100 * shares[kind][-1]:.0f} % of {len(drawn.source)} signals right, "
                  f"{100 * inside[kind][-1].mean():.0f} % of the way inside", flush=True)  # fmt: skip
        plot_track(track, drawn.arrivals, folder(NAME) / f"float_{row['float']}.png", truth=way)
    report(NAME, {
        "median error, km": float(np.median(np.concatenate(errors["filtered"]))),
        "median error with smoothing, km": float(np.median(np.concatenate(errors["smoothed"]))),
        "share of associations right": float(np.mean(shares["filtered"])),
        "share of associations right with smoothing": float(np.mean(shares["smoothed"])),
        "share of true positions in the 95 % ellipses": float(np.mean(inside["filtered"])),
        "share of true positions in the 95 % ellipses with smoothing": float(np.mean(inside["smoothed"])),
        "floats": float(len(chosen)),
    })  # fmt: skip


def find_data() -> Path:
    for place in (os.environ.get("PLACET_DATA"), Path(__file__).parents[2] / ".." / "shared" / "data"):
        if place and (Path(place) / "rafos").is_dir():
            return Path(place)
    print("no rafos folder in PLACET_DATA or ../shared/data; nothing to do", file=sys.stderr)
    sys.exit(0)


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def read_sources(path: Path) -> Beacons:
    """The DIMES sources that sound at the beginning of the simulation."""
    from placet.tracking import read_beacons

    rows = [row for row in read(path) if row["project"] == "DIMES"]
    return read_beacons({name: [row[name] for row in rows] for name in rows[0]}, epoch=EPOCH)


def reachable(row: dict[str, str], sources: Beacons) -> bool:
    """Launched and surfaced among the sources: no farther than the array reaches, at no more than 12 km a day."""
    low, high = sources.position.min(axis=0) - 2, sources.position.max(axis=0) + 2
    points = np.array([[float(row[f"{w}_lat"]), float(row[f"{w}_lon"])] for w in ("deploy", "recover")])
    from placet.tracking.geometry import exact_distance

    return bool(((points > low) & (points < high)).all() and exact_distance(*points, "geographic")[0] < 12 * STEPS)


if __name__ == "__main__":
    main()
