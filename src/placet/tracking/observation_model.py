"""The observation model: the likelihood of recorded signals given a position.

Given the position x of the float, beacon i is heard with probability P_D at a time t_i ~ N(shift_i + |x - b_i| /
speed_i, sigma^2), and clutter arrives as a Poisson process of intensity lambda p_N(t).  Of all signals inside the
window the float keeps the r earliest.  With n signals T_1 <= ... <= T_n recorded, let cut = T_n if the store is full
(n = r), else the end of the window.  Then

    p(T | x) = exp(-lambda F_N(cut)) * sum over associations of
               prod_{clutter} lambda p_N(T_j)  prod_{matched} P_D p_i(T_j | x)  prod_{others} (1 - P_D P(low < t_i <
               cut | x))

which is a density: it integrates to 1 over all records of at most r signals.  If the r *strongest* are kept instead,
each signal (clutter or not) has a strength from a common unknown distribution; with u the share of strengths below
the weakest one kept, the factor of the others becomes 1 - P_D P(in window) (1 - u), the clutter factor exp(-lambda
(1 - u)), and u is integrated out against r (1 - u)^(r - 1).  If emission times are not known, all signals of a step are
late by the same tau, which is integrated out (``placet.tracking.delays``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from placet.data import DataError
from placet.data.arrays import Floats, Ints
from placet.data.errors import as_choices
from placet.kernels.tracking import association
from placet.kernels.tracking.association import SignalStep
from placet.tracking.delays import DelayNodes, DelayPrior, check_emission, delay_prior, free_nodes, labeled_nodes
from placet.tracking.geometry import distances
from placet.tracking.observations import CLUTTER, UNKNOWN, Arrivals, Beacons

EXACT_LIMIT = 10
LEVELS = 16  # Gauss-Legendre nodes for the unknown share u of weaker strengths
METHODS = ("auto", "exact", "bethe")
KEEP = ("earliest", "strongest")
POSITIONS_AT_ONCE = 64  # whose delays are integrated out together
LEAST_DELAY = 1e-9  # delays of less than this probability are left out of associations


def clutter_probability(rate: float) -> float:
    """P_C = lambda / (1 + lambda).

    Returns
    -------
    float
        P_C.

    >>> clutter_probability(4)
    0.8
    """
    return rate / (1 + rate)


def clutter_rate(probability: float) -> float:
    """lambda = P_C / (1 - P_C), the inverse of ``clutter_probability``.

    Returns
    -------
    float
        lambda.

    >>> round(clutter_rate(0.8), 6)
    4.0
    """
    return probability / (1 - probability)


class Labeled(NamedTuple):
    """The signals of a step whose source is known: their factor, and what is left to sum over."""

    signal: np.ndarray  # (known,): signals with a known source
    source: np.ndarray  # (known,): their sources, among the active beacons
    open_signal: np.ndarray  # signals with an unknown source
    open_source: np.ndarray  # beacons that no label names
    log_clutter: float  # of the signals labeled as clutter


class Evidence(NamedTuple):
    """A step together with the beacons active in it; ``rest`` is what a sum over associations runs over.

    A known source takes its signal and itself out of the sum, so labels make it shorter.
    """

    beacon: np.ndarray  # indices of the active beacons
    position: Floats  # of the active beacons
    step: SignalStep
    exact: bool
    rest: SignalStep
    known: Labeled | None
    delay: DelayPrior | None


@dataclass(frozen=True)
class SignalModel:
    """Parameters of the observation model.

    Parameters
    ----------
    detection : P_D, one number or one per beacon
    clutter_rate : lambda, the mean number of clutter signals per step
    sigma : standard deviation of an arrival in seconds, one number or one per beacon
    clutter : distribution of clutter times, an object with ``pdf`` and ``cdf`` (a frozen ``scipy.stats`` distribution);
        uniform over the window by default
    keep : "earliest" or "strongest"
    ranked : False for the baseline of equation 5.72: a source without a signal contributes 1 - P_D whatever its time
    confidence_ratio : function that maps recorded confidences to p(confidence | clutter) / p(confidence | signal);
        without it confidences are ignored
    method : "exact", "bethe" or "auto" (exact up to 10 signals per step)
    emission : "known" or "unknown": whether the seconds at which the beacons sound are known, or only the differences
        between beacons in a step; or a standard deviation, or a pair (earliest, latest), of the delay in seconds

    >>> SignalModel(detection=0.7, sigma=0.1).clutter_rate
    1.0
    """

    detection: ArrayLike = 0.9
    clutter_rate: float = 1.0
    sigma: ArrayLike = 5.0
    clutter: Any = None
    keep: str = "earliest"
    ranked: bool = True
    confidence_ratio: Callable[[Floats], Floats] | None = None
    method: str = "auto"
    emission: Any = "known"

    def __post_init__(self) -> None:
        check_emission(self.emission)
        detection, sigma = np.asarray(self.detection, dtype=float), np.asarray(self.sigma, dtype=float)
        if not ((detection >= 0) & (detection <= 1)).all():
            raise ValueError(f"detection {self.detection} must lie in [0, 1]")
        if not ((sigma > 0) & np.isfinite(sigma)).all():
            raise ValueError(f"sigma {self.sigma} must be positive and finite")
        if not 0 <= self.clutter_rate < np.inf:
            raise ValueError(f"clutter_rate {self.clutter_rate} must be 0 or more; P_C = 0.8 is a rate of 4")
        for name, value, table in (("keep", self.keep, KEEP), ("method", self.method, METHODS)):
            if value not in table:
                raise ValueError(f"{name} {value!r} is unknown; choose from {as_choices(table)}")
        if self.confidence_ratio is not None and self.keep == "strongest":
            raise ValueError(
                "confidence_ratio needs keep='earliest': among the strongest, confidence already decides what is kept"
            )


def evidence(model: SignalModel, beacons: Beacons, arrivals: Arrivals) -> list[Evidence]:
    """Prepare every step of ``arrivals`` for the kernels; data that the model cannot explain raise a ``DataError``."""
    per_beacon = [
        np.broadcast_to(np.asarray(v, dtype=np.float64), (len(beacons),)) for v in (model.sigma, model.detection)
    ]
    intensity, mass = _clutter(model, arrivals)
    label = np.full(len(arrivals.time), UNKNOWN) if arrivals.source is None else arrivals.source
    _check_labels(label, beacons, arrivals)
    offset = arrivals.clock_offset()
    delay = delay_prior(model.emission, beacons, arrivals.window, model.clutter_rate > 0)
    out = []
    for k, day in enumerate(arrivals.day):
        rows = slice(arrivals.offsets[k], arrivals.offsets[k + 1])
        time = np.array(arrivals.time[rows])
        on = beacons.active_beacons(day)
        if model.clutter_rate == 0 and len(time) > len(on):
            raise DataError(
                f"day {day:g}: {len(time)} signals but only {len(on)} beacons sound; "
                "with clutter_rate=0 this cannot happen"
            )
        full = len(time) == arrivals.capacity
        early = model.keep == "earliest"
        cut = float(time[-1]) if full and early else arrivals.window[1]
        level, log_level = _levels(len(time), full and not early, model.clutter_rate * mass(cut))
        step = SignalStep(
            shift=np.ascontiguousarray(beacons.emission_times(day)[on] + offset[k]),
            speed=np.ascontiguousarray(np.asarray(beacons.speed)[on]),
            sigma=np.ascontiguousarray(per_beacon[0][on]),
            detection=np.ascontiguousarray(per_beacon[1][on]),
            low=float(arrivals.window[0]),
            cut=cut,
            time=time,
            clutter=np.ascontiguousarray(intensity[rows]),
            label=_local_labels(label[rows], on, beacons, day),
            level=level,
            log_level=log_level,
            ranked=model.ranked,
        )
        rest, known = without_labels(step)
        exact = model.method == "exact" or (model.method == "auto" and len(rest.time) <= EXACT_LIMIT)
        out.append(Evidence(on, np.ascontiguousarray(beacons.position[on]), step, exact, rest, known, delay))
    return out


def without_labels(step: SignalStep) -> tuple[SignalStep, Labeled | None]:
    """The step without its labeled signals and their sources, and these; None if no signal has a label."""
    if (step.label == UNKNOWN).all():
        return step, None
    signal, open_signal = np.flatnonzero(step.label >= 0), np.flatnonzero(step.label == UNKNOWN)
    source = step.label[signal]
    open_source = np.setdiff1d(np.arange(len(step.shift)), source)
    with np.errstate(divide="ignore"):  # clutter where there is none: minus infinity
        log_clutter = float(np.log(step.clutter[step.label == CLUTTER]).sum())
    by_source = {name: getattr(step, name)[open_source] for name in ("shift", "speed", "sigma", "detection")}
    by_signal = {name: getattr(step, name)[open_signal] for name in ("time", "clutter", "label")}
    return step._replace(**by_source, **by_signal), Labeled(signal, source, open_signal, open_source, log_clutter)


def _apparent_delay(item: Evidence, known: Labeled, far: Floats) -> Floats:
    """Seconds (n, known) by which the labeled signals are late, at distances (n, active beacons)."""
    step, i = item.step, known.source
    return np.asarray(step.time[known.signal] - step.shift[i] - far[:, i] / step.speed[i])


def _log_known(item: Evidence, known: Labeled, far: Floats) -> Floats:
    """Log factor (n,) of the labeled signals at distances (n, active beacons): normal densities, and clutter."""
    step, i = item.step, known.source
    z = _apparent_delay(item, known, far) / step.sigma[i]
    with np.errstate(divide="ignore"):  # a beacon that is never heard: minus infinity
        peak = np.log(step.detection[i] / (step.sigma[i] * np.sqrt(2 * np.pi)))
    return np.asarray((peak - 0.5 * z * z).sum(axis=1) + known.log_clutter)


def log_likelihood(item: Evidence, position: Floats, geometry: str, out: Floats) -> Floats:
    """Add log p(signals of the step | position) to ``out`` (n,) for positions (n, 2)."""
    far = distances(position, item.position, geometry)
    if item.delay is None:
        return _add_log_likelihood(item, far, out)
    for first in range(0, len(far), POSITIONS_AT_ONCE):
        rows = slice(first, first + POSITIONS_AT_ONCE)
        out[rows] += _over_delays(item, item.delay, far[rows])[2]
    return out


def _add_log_likelihood(item: Evidence, far: Floats, out: Floats) -> Floats:
    """Add log p(signals | distances) to ``out`` (n,) for distances (n, active beacons)."""
    if item.known is not None:
        out += _log_known(item, item.known, far)
        far = np.ascontiguousarray(far[:, item.known.open_source])
    association.log_likelihood(far, item.rest, item.exact, out)
    return out


def _over_delays(item: Evidence, prior: DelayPrior, far: Floats) -> tuple[DelayNodes, Floats, Floats]:
    """Nodes of the delay at distances (n, active beacons), their log share of the integral, and its log (n,)."""
    known = item.known
    if known is not None and len(known.source):
        late = _apparent_delay(item, known, far)
        nodes = labeled_nodes(prior, item.rest, late, item.step.sigma[known.source])
    else:
        nodes = free_nodes(prior, item.rest, far)
    value = np.append(_add_log_likelihood(item, _delayed(item, far, nodes), nodes.log_mass.copy()), -np.inf)
    begin = nodes.offsets[:-1]
    top = np.where(np.diff(nodes.offsets) > 0, np.maximum.reduceat(value, begin), -np.inf)
    own = nodes.position
    with np.errstate(divide="ignore", invalid="ignore"):  # what cannot happen: minus infinity
        part = np.exp(value[:-1] - np.where(top > -np.inf, top, 0.0)[own])
        total = top + np.log(np.bincount(own, part, len(far)))
        return nodes, value[:-1] - total[own], np.where(top > -np.inf, total, -np.inf)


def _delayed(item: Evidence, far: Floats, nodes: DelayNodes) -> Floats:
    """Distances (nodes, active beacons) at which signals without a delay would come as late."""
    return np.ascontiguousarray(far[nodes.position] + nodes.delay[:, None] * item.step.speed)


def probable_distances(item: Evidence, position: Floats, geometry: str) -> tuple[Ints, Floats, Floats]:
    """Distances that explain the signals without a delay, (m, active beacons), given positions (n, 2).

    Also the position of each (m,), and its probability (m,) given the signals: 1 if emission times are known.
    """
    far = distances(position, item.position, geometry)
    if item.delay is None:
        return np.arange(len(far)), far, np.ones(len(far))
    nodes, log_share, total = _over_delays(item, item.delay, far)
    share = np.where(total[nodes.position] > -np.inf, np.exp(log_share), 0.0)
    few = share > LEAST_DELAY
    return nodes.position[few], _delayed(item, far, nodes)[few], share[few]


def association_probabilities(item: Evidence, position: Floats, geometry: str) -> Floats:
    """P(signal j from active beacon i | position p), (n, signals, active beacons); the rest of each row is clutter."""
    own, far, share = probable_distances(item, position, geometry)
    found = associations(item, far)
    if item.delay is None:
        return found
    out = np.zeros((len(position), *found.shape[1:]))
    np.add.at(out, own, share[:, None, None] * found)
    out[np.bincount(own, minlength=len(position)) == 0] = np.nan
    return out


def associations(item: Evidence, far: Floats) -> Floats:
    """P(signal j from active beacon i | distances), (n, signals, active beacons)."""
    known, total = item.known, np.empty(len(far))
    if known is None:
        out = np.empty((len(far), len(item.step.time), len(item.beacon)))
        association.log_sums(far, item.rest, item.exact, total, out)
        return out
    part = np.empty((len(far), len(known.open_signal), len(known.open_source)))
    association.log_sums(np.ascontiguousarray(far[:, known.open_source]), item.rest, item.exact, total, part)
    out = np.zeros((len(far), len(item.step.time), len(item.beacon)))
    out[:, known.signal, known.source] = 1.0
    out[:, known.open_signal[:, None], known.open_source] = part
    out[total + _log_known(item, known, far) == -np.inf] = np.nan
    return out


def _clutter(model: SignalModel, arrivals: Arrivals) -> tuple[Floats, Callable[[float], float]]:
    """Clutter intensity at every signal, and the function t -> P(a clutter signal in the window arrives before t)."""
    low, high = arrivals.window
    if model.clutter is None:
        if model.clutter_rate > 0 and high <= low:
            raise DataError(f"window ({low:g}, {high:g}) is empty; clutter needs a window to be uniform on")
        density = np.full(len(arrivals.time), 1 / (high - low) if high > low else 0.0)

        def mass(t: float) -> float:
            return (t - low) / (high - low) if high > low else 1.0
    else:
        inside = float(model.clutter.cdf(high) - model.clutter.cdf(low))
        if not inside > 0:
            raise DataError(f"the clutter distribution has no mass in the window ({low:g}, {high:g})")
        density = np.asarray(model.clutter.pdf(arrivals.time), dtype=np.float64) / inside

        def mass(t: float) -> float:
            return float(model.clutter.cdf(t) - model.clutter.cdf(low)) / inside

    if model.confidence_ratio is not None:
        if arrivals.confidence is None:
            raise DataError("confidence_ratio is given but the arrivals carry no confidence")
        ratio = np.asarray(model.confidence_ratio(arrivals.confidence), dtype=np.float64)
        if ratio.shape != density.shape or not (np.isfinite(ratio) & (ratio >= 0)).all():
            raise ValueError(f"confidence_ratio must give {len(density)} finite ratios, none negative")
        density = density * ratio
    return model.clutter_rate * density, mass


def _levels(n: int, strongest: bool, expected: float) -> tuple[Floats, Floats]:
    """Nodes for the share u of strengths below the weakest signal kept, and their log weights.

    ``expected`` is the mean number of clutter signals before the cut.
    """
    if not strongest:
        return np.zeros(1), np.full(1, -expected)
    node, weight = np.polynomial.legendre.leggauss(LEVELS)
    u = (node + 1) / 2
    return u, np.log(weight / 2) + np.log(n) + (n - 1) * np.log1p(-u) - expected * (1 - u)


def _check_labels(label: np.ndarray, beacons: Beacons, arrivals: Arrivals) -> None:
    bad = (label < -2) | (label >= len(beacons))
    if bad.any():
        k = int(np.argmax(bad))
        raise DataError(
            f"signal {k}: source {label[k]} is not -1 (unknown), -2 (clutter) or 0..{len(beacons) - 1} "
            f"({bad.sum()} such)"
        )
    step = np.repeat(np.arange(len(arrivals)), np.diff(arrivals.offsets))
    known = label >= 0
    pairs, count = np.unique(np.column_stack([step[known], label[known]]), axis=0, return_counts=True)
    if (count > 1).any():
        k, i = pairs[np.argmax(count)]
        raise DataError(
            f"day {arrivals.day[k]:g}: {count.max()} signals are labeled {beacons.names[i]}; a beacon sounds once"
        )


def _local_labels(label: np.ndarray, on: np.ndarray, beacons: Beacons, day: float) -> np.ndarray:
    """Labels as indices among the active beacons."""
    known = label >= 0
    silent = known & ~np.isin(label, on)
    if silent.any():
        name = beacons.names[label[np.argmax(silent)]]
        raise DataError(f"day {day:g}: a signal is labeled {name}, which does not sound on that day")
    out = np.array(label, dtype=np.int64)
    out[known] = np.searchsorted(on, label[known])
    return out
