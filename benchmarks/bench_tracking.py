"""Tracking: Placet with unlabeled signals and clutter, against Stone Soup's particle filter with known labels.

10 beacons, 4 signals per step, 300 steps, 10,000 particles.  Then the cost against particles and steps, the likelihood
alone, and memory.

    python -m benchmarks.bench_tracking [part ...] [--quick]
"""

import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.harness import compare, main
from placet.simulate.signals import RankedSignals, ranked_signals, simulated_path
from placet.tracking import Beacons, RankedSignalTracker
from placet.tracking.geometry import distances
from placet.tracking.observation_model import evidence, log_likelihood

STEPS, PARTICLES, DIFFUSION, SIGMA = 300, 10_000, 0.005, 0.02


def scene(steps: int = STEPS) -> tuple[Beacons, RankedSignals]:
    rng = np.random.default_rng(0)
    beacons = Beacons(rng.uniform(0, 10, (10, 2)), speed=1.0)
    way = simulated_path("line", STEPS, rng)[:steps]
    return beacons, ranked_signals(
        beacons, way, capacity=4, detection=0.7, clutter_rate=4.0, sigma=SIGMA, window=(0.0, 15.0), random_state=rng
    )


def placet(steps: int = STEPS, particles: int = PARTICLES, **options) -> np.ndarray:
    beacons, drawn = scene(steps)
    tracker = RankedSignalTracker(
        beacons=beacons,
        detection=0.7,
        clutter_rate=4.0,
        sigma=SIGMA,
        diffusion=DIFFUSION,
        particles=particles,
        chains=1,
    )
    return tracker.track(drawn.arrivals, drawn.position[0], **options).error(drawn.position)


def stone_soup(particles: int = PARTICLES) -> np.ndarray:
    """Track with the same signals, without clutter and with every signal labeled with its beacon."""
    from stonesoup.models.transition.linear import CombinedLinearGaussianTransitionModel, RandomWalk
    from stonesoup.predictor.particle import ParticlePredictor
    from stonesoup.resampler.particle import ESSResampler
    from stonesoup.types.detection import Detection
    from stonesoup.types.hypothesis import SingleHypothesis
    from stonesoup.types.numeric import Probability
    from stonesoup.types.particle import Particle  # noqa: F401 - imported before the states that need it
    from stonesoup.types.state import ParticleState, StateVector, StateVectors
    from stonesoup.updater.particle import ParticleUpdater

    beacons, drawn = scene()
    walk = CombinedLinearGaussianTransitionModel([RandomWalk(DIFFUSION), RandomWalk(DIFFUSION)])
    predictor, updater = ParticlePredictor(walk), ParticleUpdater(None, ESSResampler())
    now = datetime(2020, 1, 1)
    state = ParticleState(
        StateVectors(np.repeat(drawn.position[0][:, None], particles, axis=1)),
        weight=np.full(particles, Probability(1 / particles)),
        timestamp=now,
    )
    offsets, found = drawn.arrivals.offsets, []
    for k in range(STEPS):
        rows = slice(offsets[k], offsets[k + 1])
        true = drawn.source[rows] >= 0
        time, source = drawn.arrivals.time[rows][true], drawn.source[rows][true]
        state = predictor.predict(state, timestamp=now + timedelta(seconds=k + 1))
        if len(time):
            model = range_model(beacons.position[source])
            state = updater.update(SingleHypothesis(state, Detection(StateVector(time), measurement_model=model)))
        found.append(np.asarray(state.mean, dtype=float).ravel())
    return np.hypot(*(np.array(found) - drawn.position).T)


def range_model(places: np.ndarray):
    """A Stone Soup measurement model: distances to the given places with independent Gaussian noise."""
    from stonesoup.base import Property
    from stonesoup.models.measurement.nonlinear import NonLinearGaussianMeasurement
    from stonesoup.types.state import StateVectors

    class Ranges(NonLinearGaussianMeasurement):
        places: np.ndarray = Property(doc="Positions (n, 2)")

        @property
        def ndim_meas(self) -> int:
            return len(self.places)

        def function(self, state, noise=False, **kwargs):
            x = np.asarray(state.state_vector, dtype=float)
            return StateVectors(np.hypot(x[0] - self.places[:, :1], x[1] - self.places[:, 1:]))

    return Ranges(ndim_state=2, mapping=(0, 1), noise_covar=SIGMA**2 * np.eye(len(places)), places=places)


def likelihood_alone() -> float:
    """Microseconds per particle and step, including distances, on one thread: the median over steps of the scene."""
    beacons, drawn = scene()
    tracker = RankedSignalTracker(beacons=beacons, detection=0.7, clutter_rate=4.0, sigma=SIGMA, diffusion=DIFFUSION)
    items = evidence(tracker.model, beacons, drawn.arrivals)
    rng = np.random.default_rng(1)
    spent = []
    for item, here in zip(items, drawn.position):
        cloud = here + np.sqrt(DIFFUSION) * rng.standard_normal((PARTICLES, 2))
        begin = time.perf_counter()
        log_likelihood(item, cloud, "plane", np.zeros(PARTICLES))
        spent.append(time.perf_counter() - begin)
        assert distances(cloud[:1], item.position, "plane").shape == (1, 10)
    return 1e6 * float(np.median(spent)) / PARTICLES


def linear(quick: bool) -> None:
    """CPU seconds against particles and steps; the last column is the cost per particle and step."""
    sizes = [(100, 5000), (100, 10_000), (100, 20_000), (50, 10_000), (200, 10_000)]
    for steps, particles in sizes if quick else [*sizes, (100, 80_000), (300, 10_000)]:
        begin = time.process_time()
        placet(steps, particles)
        spent = time.process_time() - begin
        print(
            f"{steps:5d} steps {particles:7d} particles {spent:7.2f} s {1e6 * spent / (steps * particles):6.2f} us each"
        )


def beside_stone_soup(quick: bool) -> None:
    ours, theirs = placet(), stone_soup()
    notes = {
        "placet, no labels": f"rms error {np.sqrt((ours**2).mean()):.3f}",
        "stone soup, labels given": f"rms error {np.sqrt((theirs**2).mean()):.3f}",
    }
    contestants = {"placet, no labels": placet, "stone soup, labels given": stone_soup}
    compare("tracking 10 beacons 300 steps", contestants, repeat=1 if quick else 3, notes=notes)


def likelihood(quick: bool) -> None:
    print(f"likelihood: {likelihood_alone():.2f} us for each particle and step")


def memory(quick: bool) -> None:
    used = whole_memory(10 if quick else STEPS)
    print(f"100,000 particles, smoothed: {used:.0f} MB for the whole process")
    if used > 1000:
        sys.exit("100,000 particles need more than 1 GB")


def whole_memory(steps: int) -> float:
    """Peak resident megabytes of a fresh process that tracks with 100,000 particles, including interpreter and code."""
    code = f"from benchmarks import bench_tracking as b; b.placet({steps}, 100_000, smooth=True); import resource; "
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


PARTS = {"stone-soup": beside_stone_soup, "likelihood": likelihood, "growth": linear, "memory": memory}


if __name__ == "__main__":
    main(__doc__, PARTS)
