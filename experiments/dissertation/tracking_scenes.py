"""What the tracking experiments share: the scene of section 5.5.1, and a target followed through it."""

import math
from argparse import Namespace
from pathlib import Path

import numpy as np

from experiments.common import check, output_folder
from placet.simulate.signals import RankedSignals, ranked_signals, simulated_path
from placet.tracking import Beacons, RankedSignalTracker, plot_track

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


def follow(target: str, args: Namespace, path: Path, rate: float = 4.0) -> None:
    """Track one target along a path, with and without its known end: picture, numbers, check."""
    drawn = scene(target, steps=300, clutter_rate=rate, seed=args.seed)
    run = tracker(rate, diffusion=0.005, particles=2000 if args.quick else 10_000, chains=2, random_state=args.seed)
    track = run.track(drawn.arrivals, drawn.position[0])
    smoothed = run.track(drawn.arrivals, drawn.position[0], drawn.position[-1])
    plot_track(track, output_folder(path) / "track.png", truth=drawn.position)
    print(track.summary())
    changes = np.sum(np.diff(nearest(drawn.position, run.beacons.position)) != 0)
    print(f"On the way the nearest beacon changes {changes} times.")
    ours = {
        "root mean squared error": float(np.sqrt((track.error(drawn.position) ** 2).mean())),
        "largest error": float(track.error(drawn.position).max()),
        "root mean squared error, smoothed": float(np.sqrt((smoothed.error(drawn.position) ** 2).mean())),
        "root mean squared error, smoothed / filtered": math.sqrt(
            (smoothed.error(drawn.position) ** 2).mean() / (track.error(drawn.position) ** 2).mean()
        ),
        "log-likelihood": track.log_likelihood,
        "share of true positions in the 95 % ellipses": float(track.inside(drawn.position).mean()),
        "share of associations right": float((track.source == drawn.source).mean()),
        "share of associations right, smoothed": float((smoothed.source == drawn.source).mean()),
    }
    check({f"simulated, {name}": value for name, value in ours.items()}, path)


def nearest(position: np.ndarray, beacons: np.ndarray) -> np.ndarray:
    gap = position[:, None] - beacons
    return np.hypot(gap[..., 0], gap[..., 1]).argmin(axis=1)
