"""Tracks with unknown emission times, by simulation: how often does the ellipse of a step hold the true position?

    python -m experiments.uncertainty.emission [--quick] [--seed N]      # from the project's root

Six beacons sound each day at a time nobody knows, uniform over the 30 seconds of listening; a target drifts among them for
20 days.  Ellipses of level 0.95, with the sources labeled and not; without clutter beside the labeled ones, too.  Beside them the
same arrivals as if emission times were known: those tracks must fail, else the simulation would not need what is tested.
"""

from dataclasses import replace

import numpy as np
from scipy.stats import chi2

from experiments.common import check, expected, parser
from placet.data import DataError
from placet.simulate.signals import ranked_signals, simulated_drift
from placet.tracking import Arrivals, Beacons, RankedSignalTracker

STEPS, SIGMA, DIFFUSION, DETECTION, START = 20, 0.1, 0.05, 0.8, (5.0, 5.0)
SETTINGS = {  # labeled, clutter a day, particles, runs, runs of the quick form
    "labeled": (True, 1.0, 2000, 60, 12),
    "labeled, no clutter": (True, 0.0, 2000, 60, 12),
    "unlabeled": (False, 1.0, 1000, 12, 2),
}


def one(seed: int, labeled: bool, clutter_rate: float, particles: int) -> tuple[float, float]:
    """Share of steps whose ellipse holds the truth, with the delays integrated out and with emission taken as known."""
    rng = np.random.default_rng([seed, labeled])
    beacons = Beacons(rng.uniform(0, 10, (6, 2)), speed=1.0)
    way = simulated_drift(np.arange(1.0, STEPS + 1), START, diffusion=DIFFUSION, random_state=rng)
    shared = {"detection": DETECTION, "clutter_rate": clutter_rate, "sigma": SIGMA}
    drawn = ranked_signals(beacons, way, capacity=4, window=(0.0, 30.0), emission="unknown", random_state=rng, **shared)
    arrivals = replace(drawn.arrivals, source=drawn.source) if labeled else drawn.arrivals
    tracker = RankedSignalTracker(
        beacons=beacons, diffusion=DIFFUSION, particles=particles, chains=1, emission="unknown", random_state=seed,
        **shared,
    )  # fmt: skip
    return held(tracker, arrivals, way), held(replace(tracker, emission="known"), arrivals, way)


def held(tracker: RankedSignalTracker, arrivals: Arrivals, way: np.ndarray) -> float:
    try:
        track = tracker.track(arrivals, START)
    except DataError:  # no particle explains the signals
        return 0.0
    gap = track.position - way
    spread = track.covariance + 1e-12 * np.eye(2)  # a wrong model may leave a single particle
    square = np.einsum("ka,ka->k", gap, np.linalg.solve(spread, gap[:, :, None])[:, :, 0])
    return float((square < chi2.ppf(0.95, 2)).mean())


def main() -> None:
    args = parser(__doc__).parse_args()
    values = {}
    for name, (labeled, clutter_rate, particles, runs, few) in SETTINGS.items():
        n = few if args.quick else runs
        found = np.array([one(1000 * args.seed + k, labeled, clutter_rate, particles) for k in range(n)])
        for how, share in zip(("integrated out", "taken as known"), found.T):
            values[f"simulated, {name}, {how}"] = float(share.mean())
            print(f"{name}, {how}: {share.mean():.3f} ± {share.std() / np.sqrt(n):.3f}", flush=True)
    check(values, expected(__file__, "quick" if args.quick else ""))


if __name__ == "__main__":
    main()
