"""Tracking with ranked signals: locate an ocean float from the first few unlabeled arrivals of each day."""

from placet.tracking.estimate import Estimate, NotIdentified, estimate_by_em, estimate_on_grid
from placet.tracking.minfactor import min_factor_inference
from placet.tracking.observation_model import SignalModel, clutter_probability, clutter_rate
from placet.tracking.observations import Arrivals, Beacons
from placet.tracking.plot import plot_track
from placet.tracking.track_files import (
    read_arrivals,
    read_beacons,
    write_arrivals,
    write_associations,
    write_beacons,
    write_track,
)
from placet.tracking.track_result import Track
from placet.tracking.tracker import RankedSignalTracker

__all__ = [
    "Arrivals",
    "Beacons",
    "Estimate",
    "NotIdentified",
    "RankedSignalTracker",
    "SignalModel",
    "Track",
    "clutter_probability",
    "clutter_rate",
    "estimate_by_em",
    "estimate_on_grid",
    "min_factor_inference",
    "plot_track",
    "read_arrivals",
    "read_beacons",
    "write_arrivals",
    "write_associations",
    "write_beacons",
    "write_track",
]
