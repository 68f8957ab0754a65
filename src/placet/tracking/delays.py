"""Emission times that are not known: a delay that all signals of a step share, integrated out.

With tau the delay, p(T | x) is the integral of p(tau) p(T | x, tau), where every source arrives tau later than its own
emission says.  Delaying all sources by tau is the same as moving source i farther away by tau speed_i, so the sum over
associations is that of a known emission at each node of a quadrature: O(s r 2^r) a node.  If a label names the source
of a signal, the labeled signals alone give a normal density of tau, and nodes cover that; only differences of arrival
times then count.  Otherwise nodes cover every place where a signal could be that of a source
(`placet.kernels.tracking.delay_nodes`).
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from placet.data.arrays import Floats, Ints
from placet.kernels.tracking import delay_nodes
from placet.kernels.tracking.association import SignalStep
from placet.tracking.geometry import exact_distance
from placet.tracking.observations import Beacons

KNOWN, UNKNOWN_EMISSION = "known", "unknown"
NORMAL_REACH = 8.0  # standard deviations of a normal delay that nodes cover
LABELED_REACH = 6.5  # standard deviations on either side of the delay that labels give


class DelayPrior(NamedTuple):
    """Uniform from ``first`` to ``last`` if ``deviation`` is infinite, else normal around 0, with nodes between."""

    first: float
    last: float
    deviation: float


class DelayNodes(NamedTuple):
    """Nodes of several positions: rows ``offsets[p]:offsets[p + 1]`` belong to position ``p``."""

    offsets: Ints
    delay: Floats
    log_mass: Floats  # log of the prior's mass around each node

    @property
    def position(self) -> Ints:
        """(nodes,): the position of each node."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def check_emission(emission: Any) -> None:
    """Reject an emission that is not "known", "unknown", a deviation in seconds, or an earliest and a latest second."""
    if isinstance(emission, str) and emission in (KNOWN, UNKNOWN_EMISSION):
        return
    if isinstance(emission, Real) and not isinstance(emission, bool) and 0 < float(emission) < np.inf:
        return
    if isinstance(emission, tuple | list) and len(emission) == 2 and all(isinstance(v, Real) for v in emission):
        first, last = emission
        if -np.inf < first < last < np.inf:
            return
    raise ValueError(
        f"emission {emission!r} must be {KNOWN!r}, {UNKNOWN_EMISSION!r}, a standard deviation in seconds, or a pair "
        "(earliest, latest) in seconds"
    )


def emission_of(text: str) -> Any:
    """An emission as the command line writes it: a word, a number, or two comma-separated numbers.

    >>> emission_of("-1,2.5"), emission_of("0.1"), emission_of("unknown")
    ((-1.0, 2.5), 0.1, 'unknown')
    """
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        return text
    return values if len(values) > 1 else values[0]


def delay_prior(emission: Any, beacons: Beacons, window: tuple[float, float], has_clutter: bool) -> DelayPrior | None:
    """The prior of the delay; None if emission times are known.

    "unknown": uniform over all delays at which a signal could be heard from within twice the largest distance between
    beacons.
    """
    if isinstance(emission, str):
        if emission == KNOWN:
            return None
        travel = 2 * _largest_distance(beacons) / float(np.min(beacons.speed))
        emitted = np.asarray(beacons.emission)
        return DelayPrior(window[0] - travel - float(emitted.max()), window[1] - float(emitted.min()), np.inf)
    if isinstance(emission, Real):
        most = float(emission) * (NORMAL_REACH if has_clutter else delay_nodes.FAR_REACH)
        return DelayPrior(-most, most, float(emission))
    return DelayPrior(float(emission[0]), float(emission[1]), np.inf)


def _largest_distance(beacons: Beacons) -> float:
    place = beacons.position
    return max(float(exact_distance(here, place, beacons.geometry).max()) for here in place)


def free_nodes(prior: DelayPrior, step: SignalStep, far: Floats) -> DelayNodes:
    """Nodes at positions with distances ``far`` (n, sources), where no label names a source."""
    offsets, none = np.zeros(len(far) + 1, np.int64), np.empty(0)
    delay_nodes.delay_nodes(far, step, tuple(prior), offsets, none, none)
    delay, log_mass = np.empty(offsets[-1]), np.empty(offsets[-1])
    delay_nodes.delay_nodes(far, step, tuple(prior), offsets, delay, log_mass)
    return DelayNodes(offsets, delay, log_mass)


def labeled_nodes(prior: DelayPrior, rest: SignalStep, apparent: Floats, sigma: Floats) -> DelayNodes:
    """Nodes where labels name sources whose signals come ``apparent`` (n, labeled) seconds late, with their ``sigma``.

    ``rest`` holds the signals and sources without a label.
    """
    uniform = prior.deviation == np.inf
    precision = 1 / sigma**2
    total = float(precision.sum()) + prior.deviation**-2
    center, half = apparent @ precision / total, LABELED_REACH / np.sqrt(total)
    cut = uniform and bool((center - half < prior.first).any() or (center + half > prior.last).any())
    if cut:
        center = np.clip(center, prior.first, prior.last)
    first, last = (np.clip(center + side, prior.first, prior.last) if cut else center + side for side in (-half, half))
    width = (last - first)[:, None]
    narrowest = float(rest.sigma.min(initial=np.inf))
    sharp = total + max(1, min(len(rest.time), len(rest.sigma))) / narrowest**2  # steps of sources not heard, or peaks
    place, share = _unit_nodes(2 * half * np.sqrt(sharp), cut)
    delay = first[:, None] + width * place
    log_mass = np.log(width * share)
    if uniform:
        log_mass -= np.log(prior.last - prior.first)
    else:
        log_mass -= 0.5 * (delay / prior.deviation) ** 2 + np.log(prior.deviation * np.sqrt(2 * np.pi))
    return DelayNodes(np.arange(len(apparent) + 1) * len(place), delay.ravel(), log_mass.ravel())


def _unit_nodes(width: float, cut: bool) -> tuple[Floats, Floats]:
    """Nodes and weights from 0 to 1 for an interval of ``width`` deviations of the narrowest peak."""
    n = int(np.ceil(width / (delay_nodes.PANEL if cut else delay_nodes.SPACING)))
    middle = (np.arange(n) + 0.5) / n
    if not cut:
        return middle, np.full(n, 1 / n)
    gauss = np.array(delay_nodes.GAUSS) / (2 * n)
    return (middle[:, None] + gauss).ravel(), np.tile(np.array(delay_nodes.GAUSS_SHARE) / n, n)
