"""The result of a tracker, and how its chains are combined."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from placet.data.arrays import Floats
from placet.tracking.geometry import AXES, displacements, exact_distance, points_at, weighted_mean, wrap_longitude
from placet.tracking.observations import CLUTTER, Arrivals, Beacons
from placet.tracking.particles import FilterRun

LIKELY = 10.0  # a chain whose log-likelihood is below the best by more than this has hardly any weight
APART = 3.0  # chains disagree if their means differ by this many standard deviations of the wider one
TWO_CLOUDS = 0.9  # share of variance explained by a split in two (0.64 for a normal cloud) above which there are two
RUN = 5  # after this many consecutive steps of disagreement the track is not determined
COLLAPSED = 10.0  # effective particles below which a standard deviation is meaningless


@dataclass(frozen=True)
class Track:
    """A float's positions and their uncertainty.

    Parameters
    ----------
    day : (steps,)
    position : (steps, 2), (x, y) or (lat, lon)
    covariance : (steps, 2, 2), in km^2 north and east if geographic
    ess : (steps,), effective number of particles behind a position: weighted particles of the filter or, if smoothed,
        distinct states among the trajectories drawn, if those are fewer
    association : (signals, beacons), P(signal from beacon | all data used)
    clutter : (signals,), P(signal is clutter | all data used)
    time : (signals,), recorded arrival times
    offsets : (steps + 1,); the signals ``offsets[k]:offsets[k + 1]`` belong to step k
    log_likelihood : of the whole run (jointly with the end position if given)
    chain_position : (chains, steps, 2)
    chain_log_likelihood : (chains,)
    chain_lost : (chains,), whether a chain explains the signals far worse than the best one and is elsewhere
    agree : (steps,), False if two chains that are not lost are apart, or one of them is bimodal
    beacons : the beacons used
    smoothed : whether each position also uses the later signals
    epoch : ISO date of day 0
    parameters : the parameters of the tracker, as text by name

    >>> from placet.tracking import Arrivals, Beacons, RankedSignalTracker
    >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
    >>> arrivals = Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20))
    >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.05, clutter_rate=0.1, diffusion=0.1, particles=500)
    >>> track = tracker.track(arrivals, start=(3, 4))
    >>> track.position.round(1)[-1], round(float(track.sd()[-1]), 2)
    (array([3., 4.]), 0.05)
    >>> track.association.argmax(axis=1)[:3]  # which beacon each signal came from
    array([0, 2, 1])
    """

    day: Floats
    position: Floats
    covariance: Floats
    ess: Floats
    association: Floats
    clutter: Floats
    time: Floats
    offsets: np.ndarray
    log_likelihood: float
    chain_position: Floats
    chain_log_likelihood: Floats
    chain_lost: np.ndarray
    agree: np.ndarray
    beacons: Beacons = field(repr=False)
    smoothed: bool = False
    epoch: str = "1970-01-01"
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.day)

    @property
    def geometry(self) -> str:
        """ "plane" or "geographic"."""
        return self.beacons.geometry

    @property
    def determined(self) -> bool | None:
        """False if chains disagree on five consecutive steps; None if only one chain is left to compare."""
        if has_run(~self.agree):
            return False
        return True if np.sum(~self.chain_lost) > 1 else None

    @property
    def collapsed(self) -> np.ndarray:
        """Whether each step (steps,) has too few effective particles for a meaningful standard deviation."""
        return self.ess < COLLAPSED

    @property
    def source(self) -> np.ndarray:
        """Most probable origin of each signal (signals,): the index of a beacon, or -2 for clutter."""
        best = self.association.argmax(axis=1) if self.association.size else np.zeros(len(self.clutter), int)
        top = self.association.max(axis=1, initial=0.0)
        return np.where(top > self.clutter, best, CLUTTER)

    @property
    def date(self) -> list[str]:
        """ISO date and time of each step."""
        zero = datetime.fromisoformat(self.epoch).replace(tzinfo=UTC)
        return [(zero + timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ") for day in self.day.tolist()]

    def sd(self) -> Floats:
        """Standard deviation of the position (steps,): root of the mean variance of the two axes.

        Returns
        -------
        array
            (steps,).
        """
        return np.sqrt(np.trace(self.covariance, axis1=1, axis2=2) / 2)

    def error(self, truth: Floats) -> Floats:
        """Distance (steps,) between the track and ``truth`` (steps, 2).

        Returns
        -------
        array
            (steps,).
        """
        return exact_distance(self.position, truth, self.geometry)

    def inside(self, truth: Floats, level: float = 0.95) -> np.ndarray:
        """Whether ``truth`` (steps, 2) lies in the ellipse containing ``level`` of a normal distribution (steps,).

        Returns
        -------
        array of bool
            (steps,).
        """
        gap = displacements(np.asarray(truth, dtype=np.float64), self.position, self.geometry)
        variance, axes = np.linalg.eigh(self.covariance)
        along = np.einsum("ka,kab->kb", gap, axes)
        with np.errstate(divide="ignore"):  # zero variance: only the identical point is inside
            square = np.divide(along**2, variance, out=np.zeros_like(along), where=along != 0).sum(axis=1)
        return square <= -2 * np.log1p(-level)

    def outline(self, level: float = 0.95, n_points: int = 48) -> Floats:
        """Ellipse containing ``level`` of a normal distribution for each step, as points (steps, n_points, 2).

        Returns
        -------
        array
            The points of an ellipse.
        """
        variance, axes = np.linalg.eigh(self.covariance)
        radius = np.sqrt(-2 * np.log1p(-level) * np.maximum(variance, 0.0))
        turn = np.linspace(0, 2 * np.pi, n_points, endpoint=False)
        circle = np.column_stack([np.cos(turn), np.sin(turn)])
        return points_at(self.position[:, None], np.einsum("kab,kb,nb->kna", axes, radius, circle), self.geometry)

    def on_map(self, points: Floats) -> Floats:
        """Points (..., 2) in map coordinates, east or x first.

        Longitudes are shifted to be nearest to the start of the track, so that a track across the date line stays
        connected.

        Returns
        -------
        array
            Positions as they are drawn.
        """
        points = np.asarray(points, dtype=np.float64)
        if self.geometry == "plane":
            return points
        middle = self.position[0, 1]
        return np.stack([middle + wrap_longitude(points[..., 1] - middle), points[..., 0]], axis=-1)

    def to_frame(self) -> Any:
        """A Polars frame with one row per step: day, date, position, sd, covariance, ess, agree.

        Returns
        -------
        DataFrame
            A row per day (Polars).

        >>> from placet.tracking import Arrivals, Beacons, RankedSignalTracker
        >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
        >>> arrivals = Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20))
        >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.05, clutter_rate=0.1, diffusion=0.1, particles=500)
        >>> track = tracker.track(arrivals, start=(3, 4))
        >>> track.to_frame().columns
        ['day', 'date', 'x', 'y', 'sd', 'var_x', 'cov_x_y', 'var_y', 'ess', 'agree']
        """
        import polars as pl

        first, second = AXES[self.geometry]
        return pl.DataFrame(
            {
                "day": self.day,
                "date": self.date,
                first: self.position[:, 0],
                second: self.position[:, 1],
                "sd": self.sd(),
                f"var_{first}": self.covariance[:, 0, 0],
                f"cov_{first}_{second}": self.covariance[:, 0, 1],
                f"var_{second}": self.covariance[:, 1, 1],
                "ess": self.ess,
                "agree": self.agree,
            }
        )

    def _repr_html_(self) -> str:
        from placet.tracking.plot import html_track

        return html_track(self)

    def plot(self, truth: Floats | None = None) -> Any:
        """Plot arrivals by source, and the path with its uncertainty, with matplotlib; return both axes.

        Returns
        -------
        Axes
            Those of matplotlib.
        """
        from placet.tracking.plot import show_track

        return show_track(self, truth)

    def associations_frame(self) -> Any:
        """A Polars frame with one row per signal.

        Its columns are day, date and time, the most probable source, its probability, and the probability of clutter.

        Returns
        -------
        DataFrame
            A row per signal (Polars).

        >>> from placet.tracking import Arrivals, Beacons, RankedSignalTracker
        >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
        >>> arrivals = Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20))
        >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.05, clutter_rate=0.1, diffusion=0.1, particles=500)
        >>> track = tracker.track(arrivals, start=(3, 4))
        >>> track.associations_frame().columns
        ['day', 'date', 'arrival_s', 'source', 'probability', 'clutter']
        """
        import polars as pl

        step = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        source, date = self.source, self.date
        return pl.DataFrame(
            {
                "day": self.day[step],
                "date": pl.Series([date[k] for k in step], dtype=pl.String),
                "arrival_s": self.time,
                "source": pl.Series([self.beacons.names[i] if i >= 0 else "clutter" for i in source], dtype=pl.String),
                "probability": np.where(source >= 0, self.association.max(axis=1, initial=0.0), self.clutter),
                "clutter": self.clutter,
            }
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats about the track: chains that are lost, disagree or are alone, and particles that collapsed."""
        chains, lost = len(self.chain_lost), int(self.chain_lost.sum())
        behind = self.chain_log_likelihood.max() - self.chain_log_likelihood
        notes = []
        if self.collapsed.any():
            few = self.day[self.collapsed]
            notes.append(
                f"COLLAPSED: on {len(few)} of {len(self)} steps fewer than {COLLAPSED:g} particles count (first on day "
                f"{few[0]:g}, last on day {few[-1]:g}); the standard deviation there is too small to be believed, and "
                "the position may be far off. Raise particles, or sigma and diffusion if they are too small."
            )
        if lost:
            notes.append(
                f"{lost} of {chains} chains lost the float: they are elsewhere and explain the signals far worse (by "
                f"up to {behind[self.chain_lost].max():.0f} in log-likelihood). More particles would help."
            )
        noisy = (behind > LIKELY) & ~self.chain_lost
        if noisy.any():
            notes.append(
                f"{noisy.sum()} of {chains} chains are where the best one is, but their log-likelihood is lower by up "
                f"to {behind[noisy].max():.0f}: it is not known better than that. More particles would help."
            )
        if self.determined is False:
            apart = self.day[~self.agree]
            notes.append(
                "NOT DETERMINED: chains that explain the signals about equally well are apart, or see two places at "
                f"once, on {len(apart)} of {len(self)} steps (first on day {apart[0]:g}, last on day {apart[-1]:g}). "
                "Signals of at least three beacons, or a known end, are needed."
            )
        elif self.determined:
            who = f"The {chains - lost} other" if lost else "Both" if chains == 2 else f"All {chains}"
            notes.append(f"{who} chains agree: no sign that the track is ambiguous.")
        elif chains == 1:
            notes.append("One chain only: whether others would agree was not tested.")
        else:
            notes.append(f"One chain of {chains} is left: whether others would agree was not tested. Raise particles.")
        return tuple(notes)

    def summary(self) -> str:
        """Summary of the run in a few sentences, followed by the notes.

        Returns
        -------
        str
            One line.

        >>> from placet.tracking import Arrivals, Beacons, RankedSignalTracker
        >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
        >>> arrivals = Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20))
        >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.05, clutter_rate=0.1, diffusion=0.1, particles=500)
        >>> track = tracker.track(arrivals, start=(3, 4))
        >>> print(track.summary())
        5 steps, day 1 to 5; 15 signals, 0 classified as clutter.
        Standard deviation of the position: median 0.0453, largest 0.0458.
        log-likelihood 8.0; effective particles at least 20.
        Both chains agree: no sign that the track is ambiguous.
        """
        unit = " km" if self.geometry == "geographic" else ""
        words = [
            f"{len(self)} steps, day {self.day[0]:g} to {self.day[-1]:g}; {len(self.clutter)} signals, "
            f"{np.sum(self.clutter > 0.5)} classified as clutter.",
            f"Standard deviation of the position: median {np.median(self.sd()):.3g}{unit}, "
            f"largest {self.sd().max():.3g}{unit}.",
            f"log-likelihood {self.log_likelihood:.1f}; effective particles at least {self.ess.min():.0f}.",
        ]
        return "\n".join([*words, *self.notes])


def combine_chains(
    runs: list[FilterRun], beacon: list[np.ndarray], arrivals: Arrivals, beacons: Beacons, smoothed: bool
) -> Track:
    """Combine chains, each weighted by its likelihood: a mean over chains of unbiased estimates."""
    geometry = beacons.geometry
    log_z = np.array([run.log_likelihood for run in runs])
    weight = np.exp(log_z - log_z.max())
    log_total = float(log_z.max() + np.log(weight.mean()))
    weight /= weight.sum()
    mean, within = np.array([run.mean for run in runs]), np.array([run.covariance for run in runs])
    split, ess = np.array([run.split for run in runs]), np.array([run.ess for run in runs])
    lost = _lost_chains(mean, within, log_z, geometry)
    n, signals = len(arrivals), len(arrivals.time)
    position, covariance, agree = np.empty((n, 2)), np.empty((n, 2, 2)), np.empty(n, dtype=bool)
    association = np.zeros((signals, len(beacons)))
    for k in range(n):
        position[k] = weighted_mean(mean[:, k], weight, geometry)
        apart = displacements(mean[:, k], position[k], geometry)
        covariance[k] = np.einsum("c,cab->ab", weight, within[:, k]) + (apart * weight[:, None]).T @ apart
        agree[k] = (split[~lost, k] <= TWO_CLOUDS).all() and not _any_apart(apart[~lost], within[~lost, k])
        for w, run in zip(weight, runs):
            association[arrivals.offsets[k] : arrivals.offsets[k + 1], beacon[k]] += w * run.association[k]
    return Track(
        day=arrivals.day,
        position=position,
        covariance=covariance,
        ess=1 / (weight[:, None] ** 2 / ess).sum(axis=0),
        association=association,
        clutter=np.clip(1 - association.sum(axis=1), 0.0, 1.0),
        time=arrivals.time,
        offsets=arrivals.offsets,
        log_likelihood=log_total,
        chain_position=mean,
        chain_log_likelihood=log_z,
        chain_lost=lost,
        agree=agree,
        beacons=beacons,
        smoothed=smoothed,
        epoch=arrivals.epoch,
    )


def has_run(mask: np.ndarray) -> bool:
    """Whether RUN consecutive steps (all steps, if there are fewer) are True."""
    runs = np.convolve(mask.astype(int), np.ones(RUN, int)) if len(mask) else np.zeros(1, int)
    return bool(runs.max() >= min(RUN, max(len(mask), 1)))


def _lost_chains(mean: Floats, covariance: Floats, log_z: Floats, geometry: str) -> np.ndarray:
    """Whether each chain (chains,) is far less likely than the best one and also elsewhere for several steps."""
    best = int(np.argmax(log_z))
    lost = log_z < log_z[best] - LIKELY
    for c in np.flatnonzero(lost).tolist():
        gap = displacements(mean[c], mean[best], geometry)
        lost[c] = has_run(
            np.array([_any_apart(np.array([[0.0, 0.0], gap[k]]), covariance[[best, c], k]) for k in range(len(gap))])
        )
    return lost


def _any_apart(place: Floats, covariance: Floats) -> bool:
    """Whether any two of the places (chains, 2) are more than APART standard deviations from each other.

    The standard deviation is that of the wider of the two chains, along the line between them.
    """
    for a in range(len(place)):
        gap = place[:a] - place[a]
        square = (gap**2).sum(axis=1)
        spread = np.maximum(
            np.einsum("bi,bij,bj->b", gap, covariance[:a], gap), np.einsum("bi,ij,bj->b", gap, covariance[a], gap)
        )
        if (square**2 > APART**2 * spread).any():
            return True
    return False
