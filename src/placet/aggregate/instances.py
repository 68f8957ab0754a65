"""Instances: separate aggregation problems in one set of ballots, each with only the items on its own ballots."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from placet.aggregate.places import tier_starts
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, Ints, rows_of
from placet.data.sources import Sources


@dataclass(frozen=True)
class Instance:
    """One aggregation problem: ``item`` (M,) codes of its items; ``place`` (ballots, M), NaN for unlisted items.

    Places are those on the ballot itself, 1 is best, ties share the mean; ``listed`` (ballots,) counts its items;
    ``score`` (ballots, M) holds the ballots' scores or ratings, if any.
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
    """Yield every instance with the items on its ballots, or all items if there are no instances.  O(ballots items)."""
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


def refuse_instances(data: Rankings | Comparisons, method: str) -> None:
    """Raise ``DataError`` if the ballots belong to several instances, which only `placet.consensus` separates."""
    code = None if isinstance(data, Comparisons) else data.instance
    if code is not None and len(code) and (code != code[0]).any():
        raise DataError(
            f"these ballots belong to {len(np.unique(code))} instances, which {method!r} alone would mix; "
            f"placet.consensus(data, {method!r}) answers each of them"
        )


def without_empty_instances(data: Rankings) -> Rankings:
    """The ballots without empty instances, with notes on these and on unlisted items."""
    assert data.instance is not None
    assert data.instances is not None
    used, code = np.unique(data.instance, return_inverse=True)
    notes = list(data.notes)
    if empty := sorted(set(range(len(data.instances))) - set(used.tolist())):
        notes.append(f"{len(empty)} instances have no ballots and are left out, first {data.instances[empty[0]]!r}")
    unlisted = np.bincount(data.item, minlength=data.n_items) == 0
    if unlisted.any():
        first = data.items[int(np.argmax(unlisted))]
        notes.append(f"{unlisted.sum()} items are on no ballot and are left out, first {first!r}")
    if len(notes) == len(data.notes):
        return data
    return replace(data, instance=code, instances=tuple(data.instances[k] for k in used), notes=tuple(notes))


def split(data: Rankings) -> Iterator[tuple[Hashable, Rankings]]:
    """Yield every instance's name and ballots, with items in the order in which the ballots list them.

    Instances that differ only in names thus have equal columns.  O(rows log rows).
    """
    assert data.instances is not None
    order = np.argsort(data.instance, kind="stable")  # type: ignore[arg-type]
    bounds = np.searchsorted(data.instance[order], np.arange(len(data.instances) + 1))  # type: ignore[index]
    for k, name in enumerate(data.instances):
        ballots = order[bounds[k] : bounds[k + 1]]
        rows, offsets = rows_of(data.offsets, ballots)
        used, first, code = np.unique(data.item[rows], return_index=True, return_inverse=True)
        listed = np.argsort(first)
        place = np.empty(len(used), np.int64)
        place[listed] = np.arange(len(used))
        yield (
            name,
            Rankings(
                place[code],
                data.tier[rows],
                offsets,
                data.weight[ballots],
                agent=None if data.agent is None else data.agent[ballots],
                agents=data.agents,
                items=tuple(data.items[i] for i in used[listed].tolist()),
                score=None if data.score is None else data.score[rows],
                control=None if data.control is None else data.control[rows],
                controls=data.controls,
                weights=data.weights,
            ),
        )


def sources_by_instance(sources: Sources) -> dict[Hashable, Sources]:
    """The sources of every instance, matched by name; none if no ballots have instances."""
    several = {name: isinstance(part, Rankings) and part.instance is not None for name, part in sources.items()}
    if not any(several.values()):
        return {}
    if not all(several.values()):
        has, lacks = (next(name for name, own in several.items() if own is which) for which in (True, False))
        raise DataError(
            f"source {has!r} has ballots of several instances, and source {lacks!r} does not say which it is about; "
            "give both as ballots with instances, or join the sources of one instance at a time"
        )
    apart = {name: dict(split(without_empty_instances(part))) for name, part in sources.items()}
    target, found = sources.target, {}
    for instance in dict.fromkeys(name for own in apart.values() for name in own):
        if target is not None and instance not in apart[target]:
            raise DataError(f"instance {instance!r} has no ballot of the target {target!r}; leave it out")
        found[instance] = Sources({name: own[instance] for name, own in apart.items() if instance in own}, target)
    return found


def _table(shape: tuple[int, int], cell: tuple[Ints, Ints], values: Floats) -> Floats:
    table = np.full(shape, np.nan)
    table[cell] = values
    return table
