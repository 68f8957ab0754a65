"""Generalised rank breaking: the finest sound ordered partition of a graph of pairwise preferences."""

from graphlib import CycleError, TopologicalSorter

import numpy as np

from placet.data.columns import Ints, Names
from placet.data.errors import DataError


def partition(better: Ints, worse: Ints, items: Names, place: str) -> list[list[int]]:
    """Tiers such that every item of a tier is preferred, directly or through others, to every item of a later tier.

    In any topological order a cut after position k is sound iff every sink of the items above it is preferred directly
    to every source of the items below it: a path between the two can have no step on either side.  An edge v -> w joins
    such a sink and source for last(w) <= k < first(v), where last(w) is the place of w's last predecessor and first(v)
    that of v's first successor; so edges, sinks and sources are counted for all cuts at once.  O(items + preferences).
    """
    graph: dict[int, set[int]] = {}
    for v, w in zip(better.tolist(), worse.tolist()):
        graph.setdefault(v, set())
        graph.setdefault(w, set()).add(v)
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        cycle = " > ".join(str(items[k]) for k in error.args[1])
        raise DataError(f"{place}: preferences go round in a cycle, {cycle}; remove one of them") from None
    n = len(order)
    place_of = {v: k for k, v in enumerate(order)}
    edges = np.array([(place_of[v], place_of[w]) for w, above in graph.items() for v in above], np.int64).reshape(-1, 2)
    first, last = np.full(n, n - 1), np.zeros(n, np.int64)  # cuts are after positions 0 .. n - 2
    np.minimum.at(first, edges[:, 0], edges[:, 1])
    np.maximum.at(last, edges[:, 1], edges[:, 0])
    everyone = np.arange(n)
    sinks = _cover(everyone, first, n)
    sources = _cover(last, everyone, n)
    joined = _cover(last[edges[:, 1]], first[edges[:, 0]], n)
    cuts = np.flatnonzero(joined[: n - 1] == (sinks * sources)[: n - 1]) + 1
    return [sorted(order[a:b]) for a, b in zip([0, *cuts], [*cuts, n]) if b > a]


def _cover(start: Ints, stop: Ints, n: int) -> Ints:
    """For each k in 0..n-1 the number of intervals [start, stop) that hold it; empty intervals hold nothing."""
    full = start < stop
    change = np.bincount(start[full], minlength=n + 1) - np.bincount(stop[full], minlength=n + 1)
    return np.cumsum(change)[:n]
