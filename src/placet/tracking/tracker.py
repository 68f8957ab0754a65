"""The tracker: estimates a track from arrivals."""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from placet.data import DataError
from placet.data.arrays import Floats
from placet.tracking.delays import KNOWN
from placet.tracking.geometry import checked_points, exact_distance, moments, two_clouds
from placet.tracking.motion import MotionPlan, checked_diffusion, plan_moves
from placet.tracking.observation_model import Evidence, SignalModel, association_probabilities, evidence
from placet.tracking.observations import Arrivals, Beacons
from placet.tracking.particles import FilterRun, Genealogy, backward_pass, particle_filter
from placet.tracking.track_result import Track, combine_chains


class SampledTracks(NamedTuple):
    """Trajectories (steps, n, 2 or 4), the evidence and motion used to draw them, and the log-likelihood."""

    state: Floats
    steps: list[Evidence]
    plan: MotionPlan
    start: Floats
    log_likelihood: float


@dataclass(frozen=True, kw_only=True)
class RankedSignalTracker:
    """Track a float from the first few unlabeled arrival times of each step.

    The observation model is defined in ``placet.tracking.observation_model``, the motion in
    ``placet.tracking.motion``.  The same ``random_state`` gives the same track with any number of threads.

    Parameters
    ----------
    beacons : the sources of the signals
    detection : P_D, the probability of hearing a beacon; one number, or one per beacon
    clutter_rate : lambda, the mean number of clutter signals per step; P_C = lambda / (1 + lambda)
    sigma : standard deviation of an arrival time, in seconds; one number, or one per beacon
    diffusion : variance gained per day (km^2 if geographic): one number, two, or a matrix
    persistence : correlation time of the velocity in days; 0 for a random walk
    clutter : distribution of clutter times, an object with ``pdf`` and ``cdf``; uniform over the window by default
    keep : which signals the float stores, "earliest" or "strongest"
    ranked : False for the baseline that ignores the order (equation 5.72)
    confidence_ratio : function that maps confidences to p(confidence | clutter) / p(confidence | signal)
    method : how to sum over associations: "exact", "bethe" or "auto"
    emission : "known" or "unknown": whether the seconds at which the beacons sound are known, or only the differences
        between beacons in a step; or a standard deviation, or a pair (earliest, latest), of the delay in seconds
    particles : number of particles per chain
    chains : number of independent filters, run to see whether they agree
    threshold : resample when the effective number of particles falls below this share
    trajectories : number of trajectories drawn backwards per chain when smoothing
    candidates : number of states per step that a trajectory may come from, in addition to its own ancestor
    random_state : seed of all random numbers

    >>> import numpy as np
    >>> from placet.tracking import Arrivals, Beacons
    >>> tracker = RankedSignalTracker(
    ...     beacons=Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0),
    ...     sigma=0.05, clutter_rate=0.1, diffusion=0.1, particles=500)
    >>> track = tracker.track(Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20)), start=(3, 4))
    >>> bool(np.abs(track.position - [3, 4]).max() < 0.2)
    True
    """

    beacons: Beacons
    detection: ArrayLike = 0.9
    clutter_rate: float = 1.0
    sigma: ArrayLike = 5.0
    diffusion: ArrayLike = 25.0
    persistence: float = 0.0
    clutter: Any = None
    keep: str = "earliest"
    ranked: bool = True
    confidence_ratio: Any = None
    method: str = "auto"
    emission: Any = "known"
    particles: int = 10_000
    chains: int = 2
    threshold: float = 0.5
    trajectories: int = 200
    candidates: int = 1000
    random_state: int = 0

    def __post_init__(self) -> None:
        for name in ("particles", "chains", "trajectories", "candidates"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold {self.threshold} must lie in (0, 1]")
        if not 0 <= self.persistence < np.inf:
            raise ValueError(f"persistence {self.persistence} must be 0 (random walk) or a number of days")
        checked_diffusion(self.diffusion)
        self.model  # noqa: B018 - constructing it validates its parameters

    @property
    def model(self) -> SignalModel:
        """The observation model."""
        return SignalModel(
            self.detection,
            self.clutter_rate,
            self.sigma,
            self.clutter,
            self.keep,
            self.ranked,
            self.confidence_ratio,
            self.method,
            self.emission,
        )

    def track(
        self, arrivals: Arrivals, start: ArrayLike, end: ArrayLike | None = None, *, start_day: float | None = None,
        end_day: float | None = None, start_sd: float = 0.0, end_sd: float = 0.0, smooth: bool | None = None,
    ) -> Track:  # fmt: skip
        """Estimate the track from the known ``start`` (and, if known, to ``end``): (x, y), or (lat, lon).

        The float is at the start on ``start_day`` and at the end on ``end_day`` (by default one step before the first
        and one after the last), each with its standard deviation.  With ``smooth``, the default if ``end`` is given,
        each position also uses the later signals.

        Returns
        -------
        Track
            The positions with their uncertainty, and where each signal came from.

        >>> from placet.tracking import Arrivals, Beacons, RankedSignalTracker
        >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
        >>> arrivals = Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20))
        >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.05, clutter_rate=0.1, diffusion=0.1, particles=500)
        >>> track = tracker.track(arrivals, start=(3, 4))
        >>> track.position.round(1)[-1]
        array([3., 4.])
        """
        steps = evidence(self.model, self.beacons, arrivals)
        here = self._checked_start(arrivals, start)
        way = self._plan(arrivals, start_day, end, end_day, end_sd)
        smooth = end is not None if smooth is None else smooth
        seeds = np.random.SeedSequence(self.random_state).spawn(self.chains)
        runs = [self._run(steps, arrivals, way, here, start_sd, smooth, np.random.default_rng(seed)) for seed in seeds]
        track = combine_chains(runs, [item.beacon for item in steps], arrivals, self.beacons, smooth)
        return replace(track, parameters=self.described())

    def described(self) -> dict[str, str]:
        """The parameters as text, by name; the beacons are in the track itself.

        Returns
        -------
        dict
            Name -> value, as text.
        """
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "beacons"}
        return {name: str(v.tolist() if isinstance(v, np.ndarray | np.generic) else v) for name, v in own.items()}

    def sample(
        self, arrivals: Arrivals, start: ArrayLike, end: ArrayLike | None = None, *, start_day: float | None = None,
        end_day: float | None = None,
    ) -> SampledTracks:  # fmt: skip
        """Draw ``trajectories`` whole tracks from their distribution given all signals, with one chain.

        Returns
        -------
        SampledTracks
            Whole tracks, drawn from their joint distribution.
        """
        steps = evidence(self.model, self.beacons, arrivals)
        here = self._checked_start(arrivals, start)
        way = self._plan(arrivals, start_day, end, end_day, 0.0)
        rng = np.random.default_rng(self.random_state)
        run = self._filter(steps, arrivals, way, here, 0.0, self.candidates, rng)
        paths, _ = backward_pass(run.genealogy, way, self.beacons.geometry, self.trajectories, rng)
        return SampledTracks(paths, steps, way, here, run.log_likelihood)

    def _run(
        self, steps: list[Evidence], arrivals: Arrivals, way: MotionPlan, here: Floats, start_sd: float, smooth: bool,
        rng: np.random.Generator,
    ) -> FilterRun:  # fmt: skip
        """Run one chain; with ``smooth``, moments and associations are those of the trajectories drawn backwards."""
        geometry = self.beacons.geometry
        run = self._filter(steps, arrivals, way, here, start_sd, self.candidates if smooth else 0, rng)
        if not smooth:
            return run
        paths, different = backward_pass(run.genealogy, way, geometry, self.trajectories, rng)
        weight = np.full(self.trajectories, 1 / self.trajectories)
        for k, item in enumerate(steps):
            points = np.ascontiguousarray(paths[k, :, :2])
            run.mean[k], run.covariance[k] = moments(points, weight, geometry)
            run.split[k] = two_clouds(points, geometry)
            run.association[k] = association_probabilities(item, points, geometry).mean(axis=0)
        return run._replace(genealogy=Genealogy(), ess=np.minimum(run.ess, different))

    def _filter(
        self, steps: list[Evidence], arrivals: Arrivals, way: MotionPlan, here: Floats, start_sd: float, keep: int,
        rng: np.random.Generator,
    ) -> FilterRun:  # fmt: skip
        return particle_filter(
            steps, arrivals.day, way, here, start_sd, self.beacons.geometry, self.particles, rng, self.threshold,
            keep=min(keep, self.particles),
        )  # fmt: skip

    def _plan(
        self, arrivals: Arrivals, start_day: float | None, end: ArrayLike | None, end_day: float | None, end_sd: float
    ) -> MotionPlan:
        place = None if end is None else checked_points(end, self.beacons.geometry, "end")[0]
        return plan_moves(
            arrivals.day, self.diffusion, self.persistence, place, start_day=start_day, end_day=end_day, end_sd=end_sd
        )

    def _checked_start(self, arrivals: Arrivals, start: ArrayLike) -> Floats:
        """The start; raises a ``DataError`` if no beacon of the first day could be heard from it within the window."""
        beacons = self.beacons
        here = checked_points(start, beacons.geometry, "start")[0]
        on = beacons.active_beacons(arrivals.day[0])
        if len(on) == 0:
            raise DataError(
                f"day {arrivals.day[0]:g}: no beacon sounds on the first day; check since and until, and the epoch"
            )
        if self.model.emission != KNOWN:
            return here
        far = exact_distance(here, beacons.position[on], beacons.geometry)
        slack = 10 * np.max(self.sigma)
        reach = (arrivals.window[1] + slack - beacons.emission_times(arrivals.day[0])[on]) * np.asarray(beacons.speed)[
            on
        ]
        if (far > reach).all():
            i = int(np.argmin(far - reach))
            raise DataError(
                f"start {tuple(here.tolist())} is {far[i]:.0f} from beacon {beacons.names[on[i]]}, which can be heard "
                f"up to {max(reach[i], 0):.0f} inside the window {arrivals.window}, and no other is nearer; "
                "check signs and order"
            )
        return here
