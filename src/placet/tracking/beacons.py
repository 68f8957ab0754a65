"""The moored sources: where they are, when they sound, how their clocks drift."""

from dataclasses import dataclass, field

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats
from placet.tracking.geometry import AXES, checked_points

SOUND_KM_PER_S = 1.5


@dataclass(frozen=True)
class Beacons:
    """Sources of signals; every column has one entry for each beacon, or one number for all.

    ``position`` (n, 2): (x, y) in the plane, (lat, lon) in degrees when ``geometry="geographic"``.
    ``emission``: seconds after the start of listening at which the beacon sounds.
    ``drift``: seconds per day by which it sounds later, counted from ``since`` (from day 0 when that is minus
    infinity).
    ``speed``: of sound on the way from this beacon, distance units (km) per second.
    ``since, until``: first and last day on which it sounds.

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
        _set(self, "position", position)
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
            _set(self, column, values)
        bad = np.asarray(self.since) > np.asarray(self.until)
        if bad.any():
            raise DataError(f"beacon {names[int(np.argmax(bad))]}: since is after until ({bad.sum()} such)")

    def __len__(self) -> int:
        return len(self.position)

    def active(self, day: float) -> np.ndarray:
        """Indices of the beacons that sound on ``day``."""
        return np.flatnonzero((np.asarray(self.since) <= day) & (day <= np.asarray(self.until)))

    def emitted(self, day: float) -> Floats:
        """Seconds after the start of listening at which each beacon sounds on ``day``."""
        since = np.asarray(self.since)
        return np.asarray(self.emission) + np.asarray(self.drift) * (day - np.where(np.isfinite(since), since, 0.0))


def _set(owner: object, name: str, values: Floats) -> None:
    values.setflags(write=False)
    object.__setattr__(owner, name, values)
