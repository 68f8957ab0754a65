"""Observations: the moored sources and the arrivals that the float stored."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats
from placet.tracking.geometry import AXES, checked_points

SOUND_KM_PER_S = 1.5
UNKNOWN, CLUTTER = -1, -2


@dataclass(frozen=True)
class Beacons:
    """Sources of signals; every column has one entry per beacon, or a single number for all.

    Parameters
    ----------
    position : (n, 2), (x, y) in the plane, (lat, lon) in degrees if geographic
    emission : time of emission, in seconds after the start of listening
    drift : delay of the emission in seconds per day, counted from ``since`` (from day 0 if that is minus infinity)
    speed : speed of sound on the path from this beacon, in distance units (km) per second
    since : first day on which the beacon sounds
    until : last day on which the beacon sounds
    names : one per beacon; "0", "1", ... by default
    geometry : "plane" or "geographic"

    >>> Beacons([[0, 0], [3, 4]], speed=1.0).names
    ('0', '1')
    """

    position: Floats
    emission: Floats | float = 0.0
    drift: Floats | float = 0.0
    speed: Floats | float = SOUND_KM_PER_S
    since: Floats | float = -np.inf
    until: Floats | float = np.inf
    names: tuple[str, ...] = ()
    geometry: str = field(default="plane", kw_only=True)

    def __post_init__(self) -> None:
        position = checked_points(self.position, self.geometry, "beacon")
        n = len(position)
        if n == 0:
            raise DataError("there are no beacons")
        if n > 1 and (position == position[0]).all():
            where = dict(zip(AXES[self.geometry], position[0].tolist()))
            raise DataError(f"all {n} beacons are at one point, {where}; they give a distance but no direction")
        _freeze(self, "position", position)
        names = tuple(str(k) for k in range(n)) if len(self.names) == 0 else tuple(str(k) for k in self.names)
        if len(names) != n or len(set(names)) != n:
            raise DataError(f"{n} beacons need {n} different names, not {len(names)} ({len(set(names))} different)")
        object.__setattr__(self, "names", names)
        for column in ("emission", "drift", "speed", "since", "until"):
            values = np.array(np.broadcast_to(np.asarray(getattr(self, column), dtype=np.float64), (n,)))
            bad = np.isnan(values) if column in ("since", "until") else ~np.isfinite(values)
            bad |= (values <= 0) if column == "speed" else False
            if bad.any():
                k = int(np.argmax(bad))
                raise DataError(f"beacon {names[k]}: {column} {values[k]} cannot be used ({bad.sum()} such)")
            _freeze(self, column, values)
        bad = np.asarray(self.since) > np.asarray(self.until)
        if bad.any():
            raise DataError(f"beacon {names[int(np.argmax(bad))]}: since is after until ({bad.sum()} such)")

    def __len__(self) -> int:
        return len(self.position)

    def active_beacons(self, day: float) -> np.ndarray:
        """Indices of the beacons that sound on ``day``.

        Returns
        -------
        array of int
            The numbers of the beacons.

        >>> from placet.tracking import Beacons
        >>> beacons = Beacons([[0, 0], [3, 4]], speed=1.0, until=[10, 20])
        >>> beacons.active_beacons(15)
        array([1])
        """
        return np.flatnonzero((np.asarray(self.since) <= day) & (day <= np.asarray(self.until)))

    def emission_times(self, day: float) -> Floats:
        """Seconds after the start of listening at which each beacon sounds on ``day``.

        Returns
        -------
        array
            Seconds after the start of listening (beacons,).

        >>> from placet.tracking import Beacons
        >>> beacons = Beacons([[0, 0], [3, 4]], speed=1.0, drift=[0, 0.5])
        >>> beacons.emission_times(10)
        array([0., 5.])
        """
        since = np.asarray(self.since)
        return np.asarray(self.emission) + np.asarray(self.drift) * (day - np.where(np.isfinite(since), since, 0.0))


@dataclass(frozen=True)
class Arrivals:
    """Recorded signals of one float; the signals ``offsets[k]:offsets[k + 1]`` belong to step ``k``.

    Parameters
    ----------
    day : (steps,), strictly increasing.  A step without signals is a day on which the float listened and heard nothing;
        a day without a step was not observed, and the track skips it
    time : (signals,), seconds on the float's clock, nondecreasing within a step
    offsets : (steps + 1,)
    capacity : number of signals the float can store in one step; if a step is full, later signals may have been lost
    window : (first, last) second of listening; an infinite end means the latest recorded time
    confidence : (signals,), optional, finite; larger means more certain
    source : (signals,), optional manual labels: the index of the beacon, -1 unknown, -2 clutter
    clock : float clock minus true time on the first and on the last day, in seconds; linear between them
    epoch : ISO date of day 0, for files

    >>> found = Arrivals.from_lists([[5.0, 6.7, 8.1], [], [5.1]], capacity=4)
    >>> found.day.tolist(), found.offsets.tolist()
    ([1.0, 2.0, 3.0], [0, 3, 3, 4])
    """

    day: np.ndarray
    time: np.ndarray
    offsets: np.ndarray
    capacity: int
    window: tuple[float, float] = (0.0, np.inf)
    confidence: np.ndarray | None = None
    source: np.ndarray | None = None
    clock: tuple[float, float] = (0.0, 0.0)
    epoch: str = "1970-01-01"

    def __post_init__(self) -> None:
        day, time = (np.array(v, dtype=np.float64) for v in (self.day, self.time))
        offsets = np.array(self.offsets, dtype=np.int64)
        if day.ndim != 1 or len(day) == 0:
            raise DataError("there are no steps: at least one day is needed")
        if len(offsets) != len(day) + 1 or offsets[0] != 0 or offsets[-1] != len(time) or (np.diff(offsets) < 0).any():
            raise DataError(f"offsets must rise from 0 to the number of signals, {len(time)}, over {len(day)} steps")
        _check_days(day)
        if np.max(np.diff(offsets), initial=0) > self.capacity or self.capacity < 1:
            k = int(np.argmax(np.diff(offsets)))
            raise DataError(
                f"day {day[k]:g}: {np.diff(offsets)[k]} signals, but the float stores {self.capacity}; raise capacity"
            )
        last = float(np.max(time, initial=0.0)) if np.isfinite(time).all() else np.inf
        window = (float(self.window[0]), last if self.window[1] == np.inf else float(self.window[1]))
        _check_times(day, time, offsets, window)
        for name, values in (("day", day), ("time", time), ("offsets", offsets)):
            _freeze(self, name, values)
        object.__setattr__(self, "window", window)
        if self.confidence is not None:
            _freeze(self, "confidence", _column(self.confidence, "confidence", len(time), np.float64))
        if self.source is not None:
            _freeze(self, "source", _column(self.source, "source", len(time), np.int64))
        if len(self.clock) != 2 or not np.isfinite(self.clock).all():
            raise DataError(
                f"clock {self.clock} must be two finite offsets in seconds, at the first and at the last day"
            )

    @classmethod
    def from_lists(cls, times: Sequence[Sequence[float]], day: np.ndarray | None = None, **columns: Any) -> "Arrivals":
        """Create arrivals from one list of times per step.

        By default the days are 1, 2, ... and the capacity is the length of the longest list.

        >>> Arrivals.from_lists([[3.0, 4.5], []]).offsets.tolist()
        [0, 2, 2]
        """
        lengths = [len(step) for step in times]
        columns.setdefault("capacity", max([1, *lengths]))
        flat = np.array([t for step in times for t in step], dtype=np.float64)
        return cls(np.arange(1.0, len(times) + 1) if day is None else day, flat, np.cumsum([0, *lengths]), **columns)

    def __len__(self) -> int:
        return len(self.day)

    def clock_offset(self) -> np.ndarray:
        """Float clock minus true time (steps,), linear between the offsets on the first and the last day.

        Returns
        -------
        array
            Seconds (steps,).

        >>> Arrivals.from_lists([[5.0], [5.1], [5.2]], clock=(0.0, 1.0)).clock_offset()
        array([0. , 0.5, 1. ])
        """
        if len(self) == 1:
            return np.full(1, float(self.clock[0]))
        return np.interp(self.day, [self.day[0], self.day[-1]], self.clock)


def _check_days(day: np.ndarray) -> None:
    if not np.isfinite(day).all():
        raise DataError(
            f"step {np.argmax(~np.isfinite(day))}: its day is not finite ({(~np.isfinite(day)).sum()} such)"
        )
    back = np.diff(day) <= 0
    if back.any():
        k = int(np.argmax(back))
        raise DataError(
            f"step {k + 1}: day {day[k + 1]:g} does not come after {day[k]:g} ({back.sum()} such); sort by day"
        )


def _check_times(day: np.ndarray, time: np.ndarray, offsets: np.ndarray, window: tuple[float, float]) -> None:
    step = np.repeat(np.arange(len(day)), np.diff(offsets))
    bad = ~np.isfinite(time)
    if bad.any():
        k = int(np.argmax(bad))
        raise DataError(
            f"day {day[step[k]]:g}: arrival time {time[k]} is not finite ({bad.sum()} such); "
            "leave out what was not recorded"
        )
    back = (np.diff(time) < 0) & (np.diff(step) == 0)
    if back.any():
        k = int(np.argmax(back))
        raise DataError(
            f"day {day[step[k]]:g}: arrival {time[k + 1]:g} comes after {time[k]:g} ({back.sum()} such); "
            "sort within each day"
        )
    if not window[0] <= window[1]:
        raise DataError(f"window {window}: listening must end after it begins")
    out = (time < window[0]) | (time > window[1])
    if out.any():
        k = int(np.argmax(out))
        raise DataError(f"day {day[step[k]]:g}: arrival {time[k]:g} is outside the window {window} ({out.sum()} such)")


def _column(values: np.ndarray, name: str, n: int, kind: type) -> np.ndarray:
    values = np.asarray(values)
    if values.shape != (n,) or not np.isfinite(values.astype(np.float64)).all():
        raise DataError(f"{name} must hold {n} finite values, one for each signal; it has shape {values.shape}")
    return np.array(values, dtype=kind)


def _freeze(owner: object, name: str, values: np.ndarray) -> None:
    values.setflags(write=False)
    object.__setattr__(owner, name, values)
