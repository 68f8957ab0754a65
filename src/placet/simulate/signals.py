"""Simulated signals recorded by a float: beacons may be missed, clutter is added, and only a few signals are kept."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import Floats
from placet.data.errors import as_choices, one_of
from placet.tracking.delays import KNOWN, check_emission
from placet.tracking.geometry import checked_points, exact_distance
from placet.tracking.motion import plan_moves
from placet.tracking.observation_model import KEEP
from placet.tracking.observations import CLUTTER, Arrivals, Beacons
from placet.tracking.particles import draw_paths


class RankedSignals(NamedTuple):
    """Arrivals, the true source of every signal (-2: clutter), and the true positions."""

    arrivals: Arrivals
    source: np.ndarray
    position: Floats


def ranked_signals(
    beacons: Beacons, position: ArrayLike, *, capacity: int = 4, detection: ArrayLike = 0.9, clutter_rate: float = 1.0,
    sigma: ArrayLike = 5.0, window: tuple[float, float], clutter: Any = None, keep: str = "earliest",
    day: ArrayLike | None = None, clock: tuple[float, float] = (0.0, 0.0), epoch: str = "1970-01-01",
    emission: Any = "known", random_state: int | np.random.Generator = 0,
) -> RankedSignals:  # fmt: skip
    """Draw the signals that a float at ``position`` (steps, 2) records on each ``day`` (by default 1, 2, ...).

    Beacon i is heard with probability ``detection`` at N(emission + drift + distance / speed + clock offset,
    sigma^2); a Poisson number (``clutter_rate``) of clutter signals comes from ``clutter`` (uniform over the window
    by default).  Of all signals inside the window, the ``capacity`` earliest are kept, or, with ``keep="strongest"``,
    those with the largest independent uniform strengths.  ``emission`` other than "known" delays all beacons of a step
    alike: by a normal time of that deviation, by a uniform one between two seconds, or, if "unknown", by one that is
    uniform over the window.

    Returns
    -------
    RankedSignals
        The recorded ``arrivals``, and the true ``source`` of each signal.

    >>> beacons = Beacons([[0, 0], [3, 4]], speed=1.0)
    >>> drawn = ranked_signals(beacons, [[0, 0], [1, 1]], sigma=0.01, detection=1, clutter_rate=0, window=(-1, 9),
    ...                        random_state=0)
    >>> drawn.source.tolist(), np.round(drawn.arrivals.time).tolist()
    ([0, 1, 0, 1], [0.0, 5.0, 1.0, 4.0])
    """
    one_of(keep, KEEP, "keep")
    check_emission(emission)
    rng = np.random.default_rng(random_state)
    position = checked_points(position, beacons.geometry, "position")
    n, s = len(position), len(beacons)
    days = np.arange(1.0, n + 1) if day is None else np.asarray(day, dtype=np.float64)
    blank = Arrivals(days, np.empty(0), np.zeros(n + 1, int), capacity, window, clock=clock, epoch=epoch)
    offset = blank.clock_offset() + _delays(emission, n, window, rng)
    chance = np.broadcast_to(np.asarray(detection, dtype=np.float64), (s,))
    spread = np.broadcast_to(np.asarray(sigma, dtype=np.float64), (s,))
    time, source, strength, counts = [], [], [], []
    for k in range(n):
        on = beacons.active_beacons(days[k])
        heard = on[rng.random(len(on)) < chance[on]]
        far = exact_distance(position[k], beacons.position[heard], beacons.geometry) if len(heard) else np.empty(0)
        mean = beacons.emission_times(days[k])[heard] + far / np.asarray(beacons.speed)[heard] + offset[k]
        junk = _clutter(rng.poisson(clutter_rate), clutter, window, rng)
        t = np.concatenate([mean + spread[heard] * rng.standard_normal(len(heard)), junk])
        who = np.concatenate([heard, np.full(len(junk), CLUTTER)])
        loud = rng.random(len(t))
        inside = np.flatnonzero((t >= window[0]) & (t <= window[1]))
        best = inside[np.argsort(t[inside] if keep == "earliest" else -loud[inside], kind="stable")[:capacity]]
        best = best[np.argsort(t[best], kind="stable")]
        time.append(t[best])
        source.append(who[best])
        strength.append(loud[best])
        counts.append(len(best))
    arrivals = Arrivals(
        days, np.concatenate(time), np.cumsum([0, *counts]), capacity, window, clock=clock, epoch=epoch,
        confidence=np.concatenate(strength) if keep == "strongest" else None,
    )  # fmt: skip
    return RankedSignals(arrivals, np.concatenate(source).astype(np.int64), position)


def _delays(emission: Any, n: int, window: tuple[float, float], rng: np.random.Generator) -> Any:
    """The delay of each of ``n`` steps; 0 if emission times are known."""
    if emission == KNOWN:
        return 0.0
    if isinstance(emission, Real):
        return float(emission) * rng.standard_normal(n)
    first, last = window if isinstance(emission, str) else emission
    return rng.uniform(first, last, n)


def _clutter(n: int, clutter: Any, window: tuple[float, float], rng: np.random.Generator) -> Floats:
    """``n`` clutter times inside the window, by inversion if a distribution is given."""
    if clutter is None:
        return rng.uniform(*window, n)
    low, high = clutter.cdf(window[0]), clutter.cdf(window[1])
    return np.asarray(clutter.ppf(rng.uniform(low, high, n)), dtype=np.float64)


PATHS = ("line", "spiral", "walk")


def simulated_path(
    kind: str, steps: int, rng: np.random.Generator, size: float = 10.0, diffusion: float = 0.01
) -> Floats:
    """A path (steps, 2) in a square of side ``size``: a diagonal line, an outward spiral, or a random walk from its
    center.
    """
    t = np.linspace(0, 1, steps)
    if kind == "line":
        return size * np.column_stack([0.2 + 0.6 * t, 0.2 + 0.6 * t])
    if kind == "spiral":
        turn, radius = 4 * np.pi * t, 0.05 + 0.3 * t
        return size * np.column_stack([0.5 + radius * np.cos(turn), 0.5 + radius * np.sin(turn)])
    if kind == "walk":
        return size / 2 + np.sqrt(diffusion) * np.cumsum(rng.standard_normal((steps, 2)), axis=0)
    raise ValueError(f"path {kind!r} is unknown; choose from {as_choices(PATHS)}")


def simulated_drift(
    day: ArrayLike, start: ArrayLike, end: ArrayLike | None = None, *, diffusion: ArrayLike, persistence: float = 0.0,
    geometry: str = "plane", start_day: float | None = None, end_day: float | None = None, n_paths: int = 4000,
    random_state: int | np.random.Generator = 0,
) -> Floats:  # fmt: skip
    """Positions (steps, 2) on each ``day`` of a float that drifts according to the tracker's motion model.

    With ``end``, the path is conditioned on reaching ``end`` on ``end_day``: one of ``n_paths`` paths drawn toward the
    end, chosen by its weight (``placet.tracking.particles.draw_paths``).

    >>> way = simulated_drift([1, 2, 3], (0, 0), (8, 4), diffusion=0.01, random_state=0)
    >>> np.round(way).tolist()
    [[2.0, 1.0], [4.0, 2.0], [6.0, 3.0]]
    """
    rng = np.random.default_rng(random_state)
    here = checked_points(start, geometry, "start")[0]
    there = None if end is None else checked_points(end, geometry, "end")[0]
    plan = plan_moves(
        np.asarray(day, dtype=np.float64), diffusion, persistence, there, start_day=start_day, end_day=end_day
    )
    way, weight = draw_paths(plan, here, geometry, 1 if there is None else n_paths, rng)
    return way[:, rng.choice(len(weight), p=weight)]
