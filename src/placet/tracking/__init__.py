"""Tracking with ranked signals: an ocean float from the first few unlabelled arrivals."""

from placet.tracking.arrivals import Arrivals
from placet.tracking.beacons import Beacons
from placet.tracking.model import SignalModel, clutter_probability, clutter_rate
from placet.tracking.track import Track
from placet.tracking.tracker import RankedSignalTracker

__all__ = [
    "Arrivals",
    "Beacons",
    "RankedSignalTracker",
    "SignalModel",
    "Track",
    "clutter_probability",
    "clutter_rate",
]
