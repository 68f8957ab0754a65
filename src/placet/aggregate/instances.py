"""Instances one at a time: the items on its ballots, and the ballots over those items alone."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from placet.aggregate.places import tier_starts
from placet.data import Rankings
from placet.data.arrays import Floats, Ints
from placet.data.rankings import rows_of


@dataclass(frozen=True)
class Instance:
    """One aggregation problem: ``item`` (M,) codes of its items; ``place`` (ballots, M), NaN where a ballot lacks the
    item.

    Places are those on the ballot itself, 1 is best, ties share the mean; ``listed`` (ballots,) counts its items;
    ``score`` (ballots, M) holds the ballots' own scores or ratings, where they have them.
    """

    name: Hashable
    item: Ints
    place: Floats
    listed: Ints
    weight: Floats
    agent: Ints | None
    score: Floats | None = None

    def expected(self) -> Floats:
        """Places among all M items: p (M + 1) / (m + 1) on a ballot of m, as if the m had been drawn at random."""
        return self.place * (len(self.item) + 1) / (self.listed[:, None] + 1)


def instances(data: Rankings) -> Iterator[Instance]:
    """Every instance; its items are those on its ballots, or all where data have no instances.  O(ballots items)."""
    first, size = tier_starts(data)
    place = first + (size + 1) / 2
    code = np.zeros(len(data), np.int64) if data.instance is None else data.instance
    names = (None,) if data.instances is None else data.instances
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(names) + 1))
    for k, name in enumerate(names):
        ballots = order[bounds[k] : bounds[k + 1]]
        rows, offsets = rows_of(data.offsets, ballots)
        item = np.arange(data.n_items) if data.instance is None else np.unique(data.item[rows])
        cell = np.repeat(np.arange(len(ballots)), np.diff(offsets)), np.searchsorted(item, data.item[rows])
        shape = len(ballots), len(item)
        agent = None if data.agent is None else data.agent[ballots]
        score = None if data.score is None else _table(shape, cell, data.score[rows])
        table = _table(shape, cell, place[rows])
        yield Instance(name, item, table, np.diff(offsets), data.weight[ballots], agent, score)


def _table(shape: tuple[int, int], cell: tuple[Ints, Ints], values: Floats) -> Floats:
    table = np.full(shape, np.nan)
    table[cell] = values
    return table
