"""A 300-day simulation on the real geometry of DIMES: real sources, launch and surfacing points, and clock offsets.

The true way is drawn by the tracker's own motion, given launch and surfacing point (eddies of a few days, 8 km a day),
so that about 95 % of it should lie in the ellipses of 95 %.  The float stores the 4 earliest of all signals (section
5.5.2: P_D 0.9, one clutter signal a day so that P_C = 0.5, sigma 5 s, 1.5 km/s).  Errors are geodesic kilometers.  The
tables of sources and floats are those of rafos/ in the data.  `--quick`: an invented array of six sources and one
float, 100 days.
"""

import csv
from argparse import Namespace
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.common import check, expected, need, need_data, output_folder, parser
from placet.simulate.signals import ranked_signals, simulated_drift
from placet.tracking import Beacons, RankedSignalTracker, plot_track, read_beacons
from placet.tracking.geometry import exact_distance

EPOCH = "1970-01-01"
FIRST = (date(2010, 2, 10) - date(1970, 1, 1)).days  # by then every DIMES source sounds
STEPS = 300
WINDOW = (3000.0, 9000.0)
MOTION = {"diffusion": 512.0, "persistence": 4.0}  # km^2 a day, days: velocities of 8 km a day


class Float(NamedTuple):
    name: str
    start: np.ndarray
    end: np.ndarray
    clock: tuple[float, float]


def main() -> None:
    args = parser(__doc__).parse_args()
    need("pyproj")
    path = expected(__file__, "quick" if args.quick else "")
    sources, floats, steps = invented() if args.quick else dimes()
    errors, shares, inside = ({"filtered": [], "smoothed": []} for _ in range(3))
    for k, launched in enumerate(floats, start=args.seed):
        way, found = one_float(sources, launched, steps, k, args)
        for kind, (track, right) in found.items():
            errors[kind].append(track.error(way))
            shares[kind].append(right)
            inside[kind].append(track.inside(way))
            words = f"median error {np.median(errors[kind][-1]):.1f} km, {100 * right:.0f} % of the signals right"
            print(f"float {launched.name}, {kind}: {words}", flush=True)
    ours = {
        "floats": float(len(floats)),
        "median error, km": float(np.median(np.concatenate(errors["filtered"]))),
        "median error with smoothing, km": float(np.median(np.concatenate(errors["smoothed"]))),
        "median error, smoothed / filtered": float(
            np.median(np.concatenate(errors["smoothed"])) / np.median(np.concatenate(errors["filtered"]))
        ),
        "largest error with smoothing, km": float(np.concatenate(errors["smoothed"]).max()),
        "share of associations right": float(np.mean(shares["filtered"])),
        "share of associations right with smoothing": float(np.mean(shares["smoothed"])),
        "share of true positions in the 95 % ellipses": float(np.mean(inside["filtered"])),
        "share of true positions in the 95 % ellipses with smoothing": float(np.mean(inside["smoothed"])),
    }
    check({f"simulated, {name}": value for name, value in ours.items()}, path)


def one_float(sources: Beacons, launched: Float, steps: int, seed: int, args: Namespace) -> tuple[np.ndarray, dict]:
    """The true way; and of the filtered and the smoothed track: the track and the share of associations that are right."""
    day = FIRST + np.arange(steps, dtype=float)
    way = simulated_drift(day, launched.start, launched.end, geometry="geographic", random_state=1000 + seed, **MOTION)
    drawn = ranked_signals(
        sources, way, capacity=4, detection=0.9, clutter_rate=1.0, sigma=5.0, window=WINDOW, clock=launched.clock,
        day=day, epoch=EPOCH, random_state=seed,
    )  # fmt: skip
    tracker = RankedSignalTracker(
        beacons=sources, detection=0.9, clutter_rate=1.0, sigma=5.0, particles=2000 if args.quick else 10_000, chains=2,
        random_state=seed, **MOTION,
    )  # fmt: skip
    found = {}
    for kind, known in (("filtered", None), ("smoothed", launched.end)):
        track = tracker.track(drawn.arrivals, launched.start, known)
        found[kind] = track, float((track.source == drawn.source).mean())
    picture = output_folder(expected(__file__, "quick" if args.quick else "")) / f"float_{launched.name}.png"
    plot_track(found["smoothed"][0], picture, truth=way)
    return way, found


def dimes() -> tuple[Beacons, list[Float], int]:
    """Sources, six floats and days of the experiment."""
    folder = need_data("rafos")
    rows = [row for row in read(folder / "sound_sources.csv") if row["project"] == "DIMES"]
    sources = read_beacons({name: [row[name] for row in rows] for name in rows[0]}, epoch=EPOCH)
    floats = [
        Float(
            row["float"],
            *(np.array([float(row[f"{w}_lat"]), float(row[f"{w}_lon"])]) for w in ("deploy", "recover")),
            (float(row["clock_offset_start_s"]), float(row["clock_offset_end_s"])),
        )
        for row in read(folder / "dimes_floats.csv")
    ]
    floats = [one for one in floats if reachable(one, sources)]
    return sources, floats[:: max(1, len(floats) // 6)][:6], STEPS


def invented() -> tuple[Beacons, list[Float], int]:
    """Six sources in two rows 500 km apart, and one float between them."""
    lat, lon = np.meshgrid([-60.0, -55.5], [-95.0, -88.0, -81.0])
    sources = Beacons(np.column_stack([lat.ravel(), lon.ravel()]), np.linspace(3900, 6300, 6), geometry="geographic")
    return sources, [Float("invented", np.array([-58.5, -92.0]), np.array([-57.0, -87.0]), (0.0, 10.0))], 100


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def reachable(one: Float, sources: Beacons) -> bool:
    """Launched and surfaced among the sources: no farther than the array reaches, at no more than 12 km a day."""
    low, high = sources.position.min(axis=0) - 2, sources.position.max(axis=0) + 2
    points = np.array([one.start, one.end])
    return bool(((points > low) & (points < high)).all() and exact_distance(*points, "geographic")[0] < 12 * STEPS)


if __name__ == "__main__":
    main()
