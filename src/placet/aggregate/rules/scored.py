"""The answer of a rule: scores, notes, and the tolerance within which two scores tie."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from placet.aggregate.result.result import tied_groups
from placet.data.arrays import Floats


@dataclass(frozen=True)
class Scored:
    """Scores (n_items,), notes, and the tolerance within which two scores tie (default: 1e-9 of the largest).

    ``extras`` are passed on to the `Consensus`; those that hold names of items have a method ``renamed(items)``.
    """

    scores: Floats
    notes: tuple[str, ...] = ()
    tolerance: float | None = None
    extras: Mapping[str, object] = field(default_factory=dict)


def level_ties(scores: Floats, close: float) -> Floats:
    """Replace the scores of each tied group by the middle of the group, so that ties are equal to the last bit."""
    tier, size = tied_groups(scores, close)
    if (size == 1).all():
        return scores
    high, low = np.full(len(size), -np.inf), np.full(len(size), np.inf)
    np.maximum.at(high, tier, scores)
    np.minimum.at(low, tier, scores)
    return np.where(size[tier] > 1, (low + (high - low) / 2)[tier], scores)
