"""Decided votes between every two items, as evidence that may be looked at needs them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placet.aggregate.data_facts import with_votes_counted
from placet.aggregate.pairs.ballot_pairs import counted_pairs
from placet.data import Comparisons, Parts, Rankings
from placet.data.arrays import Floats, Ints, Names


@dataclass(frozen=True, eq=False)
class HeadToHead:
    """One row per pair that was compared: ``i`` won ``wins_i`` votes against ``j``, and lost ``wins_j``; no ties."""

    items: Names
    i: Ints
    j: Ints
    wins_i: Floats
    wins_j: Floats

    @classmethod
    def from_data(cls, data: Any) -> "HeadToHead":
        """Of votes, or of the pairs on the same ballot; an agent counts once for a pair, by what it mostly said."""
        votes = _votes_of(data)
        i, j = votes.i.astype(np.int64), votes.j.astype(np.int64)
        swap = i > j  # rows may know who came first
        key = np.where(swap, j, i) * votes.n_items + np.where(swap, i, j)
        first, second = np.where(swap, votes.wins_j, votes.wins_i), np.where(swap, votes.wins_i, votes.wins_j)
        if votes.agent is not None:
            key, first, second = _one_voice_each(votes, key, first, second)
        pairs, row = np.unique(key, return_inverse=True)
        won, lost = (np.bincount(row, column, len(pairs)).astype(np.float64) for column in (first, second))
        return cls(votes.items, pairs // max(votes.n_items, 1), pairs % max(votes.n_items, 1), won, lost)

    def among(self, items: Sequence[Hashable]) -> "HeadToHead":
        """The same votes under the numbers of these ``items``, of which some may be new; others are left out."""
        if tuple(items) == self.items:
            return self
        number = {name: k for k, name in enumerate(items)}
        new = np.array([number.get(name, -1) for name in self.items], np.int64)
        i, j = new[self.i], new[self.j]
        keep = (i >= 0) & (j >= 0)
        return HeadToHead(tuple(items), i[keep], j[keep], self.wins_i[keep], self.wins_j[keep])

    def renamed(self, names: Sequence[Hashable]) -> "HeadToHead":
        """The same votes with other names of the items."""
        return replace(self, items=tuple(names))

    @property
    def n_items(self) -> int:
        return len(self.items)


def _votes_of(data: Any) -> Comparisons:
    """Votes in one table; the pairs of ballots, whose agents are kept only if one of them has several ballots."""
    if isinstance(data, Parts):
        found = with_votes_counted(data)
        return found if isinstance(found, Comparisons) else counted_pairs(data)
    if isinstance(data, Comparisons):
        return data
    assert isinstance(data, Rankings)
    repeated = data.agent is not None and len(np.unique(data.agent)) < len(data.agent)
    return (data if repeated else replace(data, agent=None, agents=None)).to_comparisons()


def _one_voice_each(votes: Comparisons, key: Ints, first: Floats, second: Floats) -> tuple[Ints, Floats, Floats]:
    """Votes of agents of which one has several on a pair, as one vote each: for the item it prefers more often."""
    assert votes.agent is not None
    size = votes.n_items**2
    own, row = np.unique(votes.agent.astype(np.int64) * size + key, return_inverse=True)
    more = np.bincount(row, first - second, len(own))
    return own % size, (more > 0).astype(np.float64), (more < 0).astype(np.float64)
