"""How few votes, and how few voters, decide the first three places: what the page and the studio show."""

from typing import TYPE_CHECKING

import numpy as np

from placet.aggregate.result.asked import Asked
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, Rankings, Scores

if TYPE_CHECKING:
    from placet.aggregate.proof.fragility_result import Fragility
    from placet.aggregate.proof.removal import RemovedBy

MOST_PLACES = 3
FEWEST_VOTES = 30
"""Votes below which nothing is computed unasked: of so few, each decides something."""

MOST_SECONDS = 0.05
"""Expected seconds of a fit above which nothing is computed unasked, as one place takes up to about 20 fits."""

MOST_ITEMS = 1000
"""Items above which nothing is computed unasked."""

MOST_CELLS = 2000
"""Cells of a score table above which nothing is computed unasked, as a fit is needed for each task."""


def decided_places(board: Consensus, *, unasked: bool = False) -> "list[Fragility]":
    """For each of the first three places: how few votes (ballots, tasks) decide it, and how few voters, if known.

    With ``unasked`` nothing, if it could take long or the votes are few.
    """
    asked = board.asked
    if asked is None or len(board.items) < 2:
        return []
    if unasked and not (len(asked.items) <= MOST_ITEMS and _is_quick(asked, board.method)):
        return []
    from placet.aggregate.proof.fragility_search import fragility_of

    found = [
        fragility_of(board, asked, goal="place", k=k, by=by, prove=0 if unasked else None)
        for by in _ways(asked)
        for k in range(1, min(MOST_PLACES, len(board.items) - 1) + 1)
    ]
    return [one for one in found if one.claims]


def _ways(asked: Asked) -> "list[RemovedBy]":
    """What may be removed: votes, and voters if at least two of them gave more than a vote each."""
    data = asked.data
    if isinstance(data, Scores):
        return ["task"]
    if not isinstance(data, Comparisons | Rankings):
        return ["judge"]
    if data.agent is None or data.agents is None:
        return ["vote"]
    votes = data.wins_i + data.wins_j + data.ties if isinstance(data, Comparisons) else data.weight
    present = np.bincount(data.agent, votes, len(data.agents)) > 0
    return ["vote", "voter"] if 2 <= int(present.sum()) < float(votes.sum()) else ["vote"]


def _is_quick(asked: Asked, method: str) -> bool:
    data = asked.data
    if asked.bootstrap:
        return False
    if isinstance(data, Scores):
        return data.value.size <= MOST_CELLS and len(data.tasks) > 1
    if asked.seconds(asked, method) > MOST_SECONDS:
        return False
    votes = data.wins_i + data.wins_j + data.ties if isinstance(data, Comparisons) else data.weight
    return float(votes.sum()) >= FEWEST_VOTES
