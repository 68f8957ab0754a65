"""What the tracking experiments share: the scene of section 5.5.1, and how a result meets its expected values."""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from placet.simulate.signals import RankedSignals, ranked_signals, simulated_path
from placet.tracking import Beacons, RankedSignalTracker, plot_track

HERE = Path(__file__).parent
DETECTION, SIGMA, CAPACITY, WINDOW = 0.7, 0.02, 4, (0.0, 15.0)


def beacons() -> Beacons:
    """Ten beacons spread over a square of side 10; sound takes one time unit for one unit of length."""
    return Beacons(np.random.default_rng(7).uniform(0, 10, (10, 2)), speed=1.0)


def scene(path: str, steps: int, clutter_rate: float, seed: int) -> RankedSignals:
    """Signals of a float on its way, as section 5.5.1 draws them."""
    rng = np.random.default_rng(seed)
    return ranked_signals(
        beacons(), simulated_path(path, steps, rng), capacity=CAPACITY, detection=DETECTION, clutter_rate=clutter_rate,
        sigma=SIGMA, window=WINDOW, random_state=rng,
    )  # fmt: skip


def tracker(clutter_rate: float, diffusion: float, **options) -> RankedSignalTracker:
    """A tracker that knows how the scene was drawn."""
    return RankedSignalTracker(
        beacons=beacons(), detection=DETECTION, sigma=SIGMA, clutter_rate=clutter_rate, diffusion=diffusion, **options
    )


def arguments(about: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="a smaller run, for continuous integration")
    return parser.parse_args()


def folder(name: str) -> Path:
    """Where the numbers and pictures of an experiment go; nothing in it is kept."""
    (HERE / name).mkdir(exist_ok=True)
    return HERE / name


def report(name: str, ours: dict[str, float]) -> None:
    """Write <name>/ours.csv, compare it with expected_<name>.csv (quantity, low, high), and exit with 1 on a miss."""
    with open(folder(name) / "ours.csv", "w", newline="") as file:
        csv.writer(file).writerows([("quantity", "value"), *((key, f"{value:.6g}") for key, value in ours.items())])
    missed = 0
    with open(HERE / f"expected_{name}.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["quantity"] not in ours:
                continue  # a quick run leaves some out
            value = ours.pop(row["quantity"])
            good = float(row["low"]) <= value <= float(row["high"])
            missed += not good
            print(
                f"{'ok  ' if good else 'MISS'} {row['quantity']} = {value:.6g} (expected {row['low']} .. {row['high']})"
            )
    for key, value in ours.items():
        print(f"     {key} = {value:.6g}")
    sys.exit(1 if missed else 0)


def follow(name: str, path: str, quick: bool, rate: float = 4.0) -> None:
    """Track one target along a path, with and without its known end: picture, numbers, check."""
    drawn = scene(path, steps=300, clutter_rate=rate, seed=0)
    run = tracker(rate, diffusion=0.005, particles=2000 if quick else 10_000, chains=2)
    track = run.track(drawn.arrivals, drawn.position[0])
    smoothed = run.track(drawn.arrivals, drawn.position[0], drawn.position[-1])
    plot_track(track, drawn.arrivals, folder(name) / "track.png", truth=drawn.position)
    print(track.summary())
    ours = {
        "root mean squared error": float(np.sqrt((track.error(drawn.position) ** 2).mean())),
        "largest error": float(track.error(drawn.position).max()),
        "root mean squared error, smoothed": float(np.sqrt((smoothed.error(drawn.position) ** 2).mean())),
        "share of associations right": float((track.source == drawn.source).mean()),
        "changes of the nearest beacon": float(np.sum(np.diff(nearest(drawn.position, run.beacons.position)) != 0)),
    }
    report(name, ours)


def nearest(position: np.ndarray, beacons: np.ndarray) -> np.ndarray:
    gap = position[:, None] - beacons
    return np.hypot(gap[..., 0], gap[..., 1]).argmin(axis=1)
