"""The answer of a rule: scores, notes, and the tolerance within which two scores tie."""

from dataclasses import dataclass

import numpy as np

from placet.aggregate.result.election_record import Record
from placet.aggregate.result.result import tied_groups
from placet.data.arrays import Floats


@dataclass(frozen=True)
class Scored:
    """Scores (n_items,), notes, and the tolerance within which two scores tie (default: 1e-9 of the largest).

    ``record``: the rounds of an election.
    """

    scores: Floats
    notes: tuple[str, ...] = ()
    tolerance: float | None = None
    record: Record | None = None


def level_ties(scores: Floats, close: float) -> Floats:
    """Replace the scores of each tied group by the middle of the group, so that ties are equal to the last bit."""
    tier, size = tied_groups(scores, close)
    if (size == 1).all():
        return scores
    high, low = np.full(len(size), -np.inf), np.full(len(size), np.inf)
    np.maximum.at(high, tier, scores)
    np.minimum.at(low, tier, scores)
    return np.where(size[tier] > 1, (low + (high - low) / 2)[tier], scores)
