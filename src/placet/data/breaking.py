"""Rank breaking in both directions: ballots to pairs or sums of pairs, and preferences to ordered partitions."""

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, get_args

import numpy as np

from placet.data import graph
from placet.data.arrays import Floats, Ints, Names, list_of_rows, offsets_from_sizes, tier_runs
from placet.data.comparisons import pair_keys
from placet.data.errors import DataError, one_of

PairStrength = Literal["binary", "difference", "rating"]
PAIRS_AT_ONCE = 4_000_000


def strength_values(strength: str, tier: Ints, score: Floats | None) -> Floats:
    """Values whose differences measure strength, higher is better: minus the tier, or the score behind the tier."""
    one_of(strength, get_args(PairStrength), "strength")
    if strength != "rating":
        return -tier.astype(np.float64)
    if score is None:
        raise DataError("these ballots keep no scores to take differences of; use strength='difference' (of tiers)")
    return score


def count_pairs(
    item: Ints, value: Floats, offsets: Ints, weight: Floats, agent: Ints | None, n_items: int, strength: str
) -> tuple[Ints, Ints, Floats, Floats, Floats, Ints | None]:
    """Columns i, j, wins_i, wins_j, ties, agent of all pairs on the ballots, summed block by block.  O(pairs)."""
    pair_keys(n_items, agent)
    item = item.astype(np.int64, copy=False)  # products of narrow codes would overflow
    ballot = list_of_rows(offsets)
    later = offsets[1:][ballot] - np.arange(len(item)) - 1
    done = np.cumsum(later)
    total: tuple[Any, ...] = (np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
    start = 0
    while start < len(item):
        base = done[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(done, base + PAIRS_AT_ONCE)))
        rows = np.arange(start, min(stop, len(item)))
        left = np.repeat(rows, later[rows])
        right = left + 1 + np.arange(len(left)) - np.repeat(done[rows] - later[rows] - base, later[rows])
        w = weight[ballot[left]]
        gap = value[left] - value[right]
        size = w if strength == "binary" else w * np.abs(gap)
        flip = item[left] > item[right]
        key = np.where(flip, item[right], item[left]) * n_items + np.where(flip, item[left], item[right])
        if agent is not None:
            key += agent[ballot[left]] * (n_items * n_items)
        first = (gap > 0) != flip
        tied = gap == 0
        block = (key, np.where(first & ~tied, size, 0.0), np.where(~first & ~tied, size, 0.0), np.where(tied, w, 0.0))
        total = _add(*(np.concatenate(pair) for pair in zip(total, block)))
        start = stop
    key, *counts = total
    n = max(n_items, 1)
    pair = key % (n * n)
    return pair // n, pair % n, *counts, None if agent is None else key // (n * n)


def _add(key: Ints, *counts: Floats) -> tuple[Any, ...]:
    unique, group = np.unique(key, return_inverse=True)
    return unique, *(np.bincount(group, values, len(unique)) for values in counts)


def net_wins(value: Floats, tier: Ints, offsets: Ints, strength: str) -> tuple[Floats, Floats]:
    """Wins minus losses of each row against the other rows of its ballot, and the sum of wins of each ballot.

    With differences: m v_i - sum(v), and for rows in descending order of v the sum over ranks r of (m - 1 - 2 r) v_(r).
    With binary counts: rows below minus rows above, and the pairs from different tiers.  Rows are sorted by tier.
    O(rows).
    """
    ballot = list_of_rows(offsets)
    n_ballots = len(offsets) - 1
    size = np.diff(offsets)
    if strength == "binary":
        first, length = tier_runs(tier, offsets)
        above = np.repeat(first, length) - offsets[:-1][ballot]
        below = size[ballot] - above - np.repeat(length, length)
        return (below - above).astype(np.float64), _sums(ballot, below, n_ballots)
    rank = np.arange(len(value)) - offsets[:-1][ballot]
    wins = _sums(ballot, (size[ballot] - 1 - 2 * rank) * value, n_ballots)
    return size[ballot] * value - _sums(ballot, value, n_ballots)[ballot], wins


def _sums(group: Ints, values: Any, n: int) -> Floats:
    return np.bincount(group, values, n).astype(np.float64)


def equal_lists(item: Ints, tier: Ints, offsets: Ints, agent: Ints | None, instance: Ints | None) -> tuple[Ints, Ints]:
    """The first ballot of each group of equal ballots, and the group of each ballot.  O(rows)."""
    groups: dict[tuple[Any, ...], int] = {}
    first: list[int] = []
    group = np.empty(len(offsets) - 1, np.int64)
    both = np.stack([item, tier], axis=1)
    for b in range(len(offsets) - 1):
        key = (
            both[offsets[b] : offsets[b + 1]].tobytes(),
            None if agent is None else int(agent[b]),
            None if instance is None else int(instance[b]),
        )
        group[b] = groups.setdefault(key, len(first))
        if group[b] == len(first):
            first.append(b)
    return np.array(first, np.int64), group


def describe_rankings(item: Ints, tier: Ints, offsets: Ints, weight: Floats, n_items: int) -> dict[str, Any]:
    """Counts, ties, coverage, groups in which wins lead both ways, ballots that compare nothing."""
    ballot = list_of_rows(offsets)
    n_ballots, size = len(offsets) - 1, np.diff(offsets)
    tiers = np.zeros(n_ballots, np.int64)
    np.maximum.at(tiers, ballot, tier + 1)
    seen = np.bincount(item, minlength=n_items) > 0
    counts = weight[ballot] > 0
    sizes = np.where(weight > 0, size, 0)
    parts = graph.components(item[counts], tier[counts], offsets_from_sizes(sizes), n_items)
    return {
        "kind": "rankings",
        "ballots": n_ballots,
        "weight": float(weight.sum()),
        "items": n_items,
        "rows": len(item),
        "items never listed": int((~seen).sum()),
        "ballots with ties": int((tiers < size).sum()),
        "complete ballots": int((size == n_items).sum()),
        "ballots that compare nothing": int((tiers < 2).sum()),
        "largest tier": int(tier_runs(tier, offsets)[1].max(initial=0)),
        "coverage": len(item) / (n_ballots * n_items) if n_ballots and n_items else float("nan"),
        "groups with wins both ways": int(parts.max(initial=-1)) + 1,
    }


def partition(better: Ints, worse: Ints, items: Names, place: str) -> list[list[int]]:
    """Tiers such that every item of a tier is preferred, directly or through others, to every item of a later tier.

    In any topological order, a cut after position k is valid iff every sink among the items above it is preferred
    directly to every source among the items below it, since a path between the two has no other step on either side.
    An edge v -> w joins such a sink and source for last(w) <= k < first(v), where last(w) is the position of w's last
    predecessor and first(v) that of v's first successor; so edges, sinks and sources are counted for all cuts at once.
    O(items + preferences).
    """
    above: dict[int, set[int]] = {}
    for v, w in zip(better.tolist(), worse.tolist()):
        above.setdefault(v, set())
        above.setdefault(w, set()).add(v)
    try:
        order = list(TopologicalSorter(above).static_order())
    except CycleError as error:
        cycle = " > ".join(str(items[k]) for k in error.args[1])
        raise DataError(f"{place}: preferences go round in a cycle, {cycle}; remove one of them") from None
    n = len(order)
    place_of = {v: k for k, v in enumerate(order)}
    edges = np.array([(place_of[v], place_of[w]) for w, over in above.items() for v in over], np.int64).reshape(-1, 2)
    first, last = np.full(n, n - 1), np.zeros(n, np.int64)  # cuts are after positions 0 .. n - 2
    np.minimum.at(first, edges[:, 0], edges[:, 1])
    np.maximum.at(last, edges[:, 1], edges[:, 0])
    everyone = np.arange(n)
    sinks = _cover(everyone, first, n)
    sources = _cover(last, everyone, n)
    joined = _cover(last[edges[:, 1]], first[edges[:, 0]], n)
    cuts = np.flatnonzero(joined[: n - 1] == (sinks * sources)[: n - 1]) + 1
    return [sorted(order[a:b]) for a, b in zip([0, *cuts], [*cuts, n]) if b > a]


def partitions(
    group: Ints, better: Ints, worse: Ints, items: Names, place: Callable[[int], str]
) -> Iterator[tuple[int, list[list[int]]]]:
    """Yield (group, tiers) for each group of preferences in ascending order; ``place`` names a group in errors."""
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        if len(rows):
            own = int(group[rows[0]])
            yield own, partition(better[rows], worse[rows], items, place(own))


def _cover(start: Ints, stop: Ints, n: int) -> Ints:
    """For each k in 0..n-1, the number of intervals [start, stop) that contain it."""
    full = start < stop
    change = np.bincount(start[full], minlength=n + 1) - np.bincount(stop[full], minlength=n + 1)
    return np.cumsum(change)[:n]
