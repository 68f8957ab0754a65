"""What a tracker returns, and how its chains are put together."""

from dataclasses import dataclass, field

import numpy as np

from placet.data.arrays import Floats
from placet.tracking.data import Arrivals, Beacons
from placet.tracking.geometry import displacements, exact_distance, weighted_mean
from placet.tracking.particles import FilterRun

LIKELY = 10.0  # chains whose log-likelihood is lower by more than this have lost the float
APART = 3.0  # standard deviations of the wider chain between the means of two chains that disagree
TWO_CLOUDS = 0.9  # share of variance explained by a cut in two (0.64 for a normal cloud) above which there are two
ON_END = 5  # so many steps on end without agreement, and the track is not determined


@dataclass(frozen=True)
class Track:
    """A float's positions and how sure they are.

    ``day`` (steps,); ``position`` (steps, 2): (x, y) or (lat, lon); ``covariance`` (steps, 2, 2): km^2 north and
    east when geographic; ``ess`` (steps,): effective number of particles, all chains together.
    ``association`` (signals, beacons): P(signal from beacon | all that was used); ``clutter`` (signals,): the rest;
    signals
    ``offsets[k]:offsets[k + 1]`` belong to step k.
    ``log_likelihood``: of the whole run (jointly with the end position when it was given).
    ``chain_position`` (chains, steps, 2) and ``chain_log_likelihood`` (chains,) show whether independent runs agree;
    ``agree`` (steps,): False where the chains that explain the signals about equally well are apart, or the position is
    one of two clouds within a chain.
    """

    day: Floats
    position: Floats
    covariance: Floats
    ess: Floats
    association: Floats
    clutter: Floats
    offsets: np.ndarray
    log_likelihood: float
    chain_position: Floats
    chain_log_likelihood: Floats
    agree: np.ndarray
    beacons: Beacons = field(repr=False)
    smoothed: bool = False
    epoch: str = "1970-01-01"

    def __len__(self) -> int:
        return len(self.day)

    @property
    def geometry(self) -> str:
        """ "plane" or "geographic"."""
        return self.beacons.geometry

    @property
    def determined(self) -> bool:
        """Whether nowhere five steps on end are without agreement."""
        apart = ~self.agree
        runs = np.convolve(apart.astype(int), np.ones(ON_END, int)) if len(apart) else np.zeros(1, int)
        return bool(runs.max() < min(ON_END, len(apart)))

    @property
    def source(self) -> np.ndarray:
        """Most probable origin of each signal (signals,): the index of a beacon, or -2 for clutter."""
        best = self.association.argmax(axis=1) if self.association.size else np.zeros(len(self.clutter), int)
        top = self.association.max(axis=1, initial=0.0)
        return np.where(top > self.clutter, best, -2)

    def sd(self) -> Floats:
        """Standard deviation of the position (steps,): root of the mean variance of the two axes."""
        return np.sqrt(np.trace(self.covariance, axis1=1, axis2=2) / 2)

    def error(self, truth: Floats) -> Floats:
        """Distance (steps,) of the track from ``truth`` (steps, 2)."""
        return exact_distance(self.position, truth, self.geometry)

    def inside(self, truth: Floats, level: float = 0.95) -> np.ndarray:
        """Whether ``truth`` (steps, 2) lies in the ellipse that holds ``level`` of a normal distribution (steps,)."""
        gap = displacements(np.asarray(truth, dtype=np.float64), self.position, self.geometry)
        variance, axes = np.linalg.eigh(self.covariance)
        along = np.einsum("ka,kab->kb", gap, axes)
        with np.errstate(divide="ignore"):  # no variance at all: only the very same point is inside
            square = np.divide(along**2, variance, out=np.zeros_like(along), where=along != 0).sum(axis=1)
        return square <= -2 * np.log1p(-level)

    def summary(self) -> str:
        """The run in a few plain sentences, above all whether the track is determined."""
        unit = " km" if self.geometry == "geographic" else ""
        chains = len(self.chain_log_likelihood)
        words = [
            f"{len(self)} steps, day {self.day[0]:g} to {self.day[-1]:g}; {len(self.clutter)} signals, "
            f"{np.sum(self.clutter > 0.5)} of them taken for clutter.",
            f"Standard deviation of the position: median {np.median(self.sd()):.3g}{unit}, "
            f"largest {self.sd().max():.3g}{unit}.",
            f"log-likelihood {self.log_likelihood:.1f}; effective particles at least {self.ess.min():.0f}.",
        ]
        lost = self.chain_log_likelihood < self.chain_log_likelihood.max() - LIKELY
        if lost.any():
            words.append(
                f"{lost.sum()} of {chains} chains explain the signals far worse (by up to "
                f"{np.ptp(self.chain_log_likelihood):.0f} in log-likelihood) and hardly count: they lost the float; "
                "more particles would help."
            )
        if chains == 1:
            words.append("One chain only: whether others would agree was not tried.")
        if self.determined and chains > 1:
            words.append(
                f"The {chains - lost.sum()} chains that count agree: nothing speaks against a determined track."
            )
        if not self.determined:
            apart = self.day[~self.agree]
            words.append(
                "NOT DETERMINED: chains that explain the signals about equally well are apart, or see two places at "
                f"once, on {len(apart)} of {len(self)} steps (first on day {apart[0]:g}, last on day {apart[-1]:g}). "
                "Signals of at least three beacons, or a known end, are needed."
            )
        return "\n".join(words)


def combine_chains(
    runs: list[FilterRun], beacon: list[np.ndarray], arrivals: Arrivals, beacons: Beacons, smoothed: bool
) -> Track:
    """Chains put together, each weighted by its likelihood: a mean over chains of an unbiased estimate each."""
    geometry = beacons.geometry
    log_z = np.array([run.log_likelihood for run in runs])
    weight = np.exp(log_z - log_z.max())
    log_total = float(log_z.max() + np.log(weight.mean()))
    weight /= weight.sum()
    places = np.array([run.mean for run in runs])
    n, signals = len(arrivals), len(arrivals.time)
    position, covariance, agree = np.empty((n, 2)), np.empty((n, 2, 2)), np.empty(n, dtype=bool)
    association = np.zeros((signals, len(beacons)))
    counts = log_z >= log_z.max() - LIKELY
    for k in range(n):
        position[k] = weighted_mean(places[:, k], weight, geometry)
        apart = displacements(places[:, k], position[k], geometry)
        within = sum(w * run.covariance[k] for w, run in zip(weight, runs))
        covariance[k] = within + (apart * weight[:, None]).T @ apart
        kept = [run for run, used in zip(runs, counts) if used]
        covariances, split = (np.array([getattr(run, name)[k] for run in kept]) for name in ("covariance", "split"))
        agree[k] = _agree(apart[counts], covariances, split)
        for w, run in zip(weight, runs):
            association[arrivals.offsets[k] : arrivals.offsets[k + 1], beacon[k]] += w * run.association[k]
    return Track(
        day=arrivals.day,
        position=position,
        covariance=covariance,
        ess=np.sum([run.ess for run in runs], axis=0),
        association=association,
        clutter=np.clip(1 - association.sum(axis=1), 0.0, 1.0),
        offsets=arrivals.offsets,
        log_likelihood=log_total,
        chain_position=places,
        chain_log_likelihood=log_z,
        agree=agree,
        beacons=beacons,
        smoothed=smoothed,
        epoch=arrivals.epoch,
    )


def _agree(apart: Floats, covariance: Floats, split: Floats) -> bool:
    """Whether every chain has one cloud and no two means are APART standard deviations from each other.

    The standard deviation is that of the wider of the two chains, along the line between their means.
    """
    if (split > TWO_CLOUDS).any():
        return False
    for a in range(len(apart)):
        gap = apart[:a] - apart[a]
        square = (gap**2).sum(axis=1)
        spread = np.maximum(
            np.einsum("bi,bij,bj->b", gap, covariance[:a], gap), np.einsum("bi,ij,bj->b", gap, covariance[a], gap)
        )
        if (square**2 > APART**2 * spread).any():
            return False
    return True
