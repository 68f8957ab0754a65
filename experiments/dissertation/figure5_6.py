"""Figure 5.6: a target that moves along a straight line, 10 beacons, 4 signals, Poisson(4) clutter (P_C = 0.8), sigma
0.02, P_D 0.7.
"""

import numpy as np
from tracking_scenes import arguments, folder, report, scene, tracker

from placet.tracking import plot_track

RATE = 4.0


def main() -> None:
    quick = arguments(__doc__).quick
    drawn = scene("line", steps=300, clutter_rate=RATE, seed=0)
    run = tracker(RATE, diffusion=0.005, particles=2000 if quick else 10_000, chains=2)
    track = run.track(drawn.arrivals, drawn.position[0])
    smoothed = run.track(drawn.arrivals, drawn.position[0], drawn.position[-1])
    plot_track(track, drawn.arrivals, folder("figure5_6") / "track.png", truth=drawn.position)
    print(track.summary())
    ours = {
        "root mean squared error": float(np.sqrt((track.error(drawn.position) ** 2).mean())),
        "largest error": float(track.error(drawn.position).max()),
        "root mean squared error, smoothed": float(np.sqrt((smoothed.error(drawn.position) ** 2).mean())),
        "share of associations right": float((track.source == drawn.source).mean()),
        "changes of the nearest beacon": float(np.sum(np.diff(nearest(drawn.position)) != 0)),
    }
    report("figure5_6", ours)


def nearest(position: np.ndarray) -> np.ndarray:
    gap = position[:, None] - tracker(RATE, 1.0).beacons.position
    return np.hypot(gap[..., 0], gap[..., 1]).argmin(axis=1)


if __name__ == "__main__":
    main()
