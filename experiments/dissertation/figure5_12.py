"""Figure 5.12: a target that is heard by two beacons only for a while; then neither labels nor the model determine its track.

Four beacons sound at first and two of them stop.  The target comes to the line between the two that are left, on
which its mirror image meets it, and leaves it again.  Chains with different seeds then part, for a filter that was
given every label (equation 5.73) as for the ranked model without any; with the known end they meet again.
"""

from dataclasses import replace

import numpy as np

from experiments.common import check, expected, output_folder, parser
from placet.simulate.signals import ranked_signals
from placet.tracking import Arrivals, Beacons, RankedSignalTracker, Track, plot_track

LOSS = 60  # the day after which two beacons are silent


def main() -> None:
    args = parser(__doc__).parse_args()
    beacons = Beacons([[0, 5], [10, 5], [2, 0], [8, 0]], speed=1.0, until=[np.inf, np.inf, LOSS, LOSS])
    t = np.linspace(0, 1, 140)
    way = np.column_stack([2 + 5 * t, 5 + 6 * np.abs(t - 0.6)])
    drawn = ranked_signals(
        beacons, way, capacity=4, detection=0.95, clutter_rate=1.0, sigma=0.05, window=(0, 12),
        random_state=1 + args.seed,
    )  # fmt: skip
    ours = RankedSignalTracker(
        beacons=beacons, detection=0.95, clutter_rate=1.0, sigma=0.05, diffusion=0.01, particles=500 if args.quick else 1000,
        chains=10, trajectories=50, candidates=500, random_state=args.seed,
    )  # fmt: skip
    labeled = Arrivals(
        drawn.arrivals.day, drawn.arrivals.time, drawn.arrivals.offsets, 4, drawn.arrivals.window, source=drawn.source
    )
    runs = {
        "ranked": ours.track(drawn.arrivals, way[0]),
        "labeled": replace(ours, ranked=False).track(labeled, way[0]),
        "ranked with end": ours.track(drawn.arrivals, way[0], way[-1]),
    }
    path = expected(__file__, "quick" if args.quick else "")
    values = {}
    for name, track in runs.items():
        print(f"{name}: {track.summary()}\n")
        plot_track(track, output_folder(path) / f"{name.replace(' ', '_')}.png", truth=way)
        before, after = spread(track, slice(0, LOSS)), spread(track, slice(110, 140))
        values |= {
            f"simulated, {name}, distance of chains while four are heard": before,
            f"simulated, {name}, distance of chains at the end": after,
            f"simulated, {name}, determined": float(track.determined is True),
            f"simulated, {name}, mean error while four are heard": float(track.error(way)[:LOSS].mean()),
        }
    check(values, path)


def spread(track: Track, steps: slice) -> float:
    """Mean over the steps of the largest distance between two chains."""
    place = track.chain_position[:, steps]
    gap = np.hypot(*np.moveaxis(place[:, None] - place[None], -1, 0))
    return float(gap.max(axis=(0, 1)).mean())


if __name__ == "__main__":
    main()
