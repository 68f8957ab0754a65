"""Tests of whether finite scores exist.

For the Plackett-Luce family they do if and only if the "beats" graph is strongly connected; other models have other
conditions.  An item beats the items of lower tiers on the same ballot.  Tiers are linked through one node each: items
of tier k -> node k -> items of tier k + 1, and node k -> node k + 1.  So n rows need at most 3 n edges, not n^2.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data.arrays import list_of_rows, number_tiers

Labels = NDArray[np.int64]

FEW = 10_000  # up to this many edges and nodes, plain Python is used instead of importing SciPy's graph module


def components(
    item: ArrayLike, tier: ArrayLike, offsets: ArrayLike, n_items: int, *, ties_link: bool = False
) -> Labels:
    """Component of each item (n_items,), numbered by first item; ballot rows are sorted by tier.  O(rows + n_items).

    ``ties_link``: items of one tier beat one another, as in models where a tie means that two scores are close.

    >>> components([0, 1, 1, 2, 0], [0, 1, 0, 1, 2], [0, 2, 5], n_items=4)  # 0 > 1, then 1 > 2 > 0; 3 never appears
    array([0, 0, 0, 1])
    """
    return _strong(*_links(item, tier, offsets, n_items, ties_link))


def _links(
    item: ArrayLike, tier: ArrayLike, offsets: ArrayLike, n_items: int, ties_link: bool
) -> tuple[Labels, Labels, int, int]:
    """Starts and ends of the edges between items and tiers, the number of items, and the number of all nodes."""
    item, tier, offsets = (np.asarray(column, dtype=np.int64) for column in (item, tier, offsets))
    node, ballot = number_tiers(tier, offsets)
    is_below = np.append(False, ballot[1:] == ballot[:-1])[: len(ballot)]  # per tier: whether node - 1 is above it
    follows, below = np.flatnonzero(is_below), is_below[node]
    start = np.concatenate([item, n_items + node[below] - 1, n_items + follows - 1])
    end = np.concatenate([n_items + node, item[below], n_items + follows])
    if ties_link:
        start, end = np.concatenate([start, n_items + node]), np.concatenate([end, item])
    return start, end, n_items, n_items + len(ballot)


def reduced_edges(
    item: ArrayLike, tier: ArrayLike, offsets: ArrayLike, n_items: int, *, ties_link: bool = False
) -> tuple[Labels, int]:
    """Edges (edges, 2) with the same reachability between items as the ballots, and the number of nodes.

    Items that reach one another are linked through the first of them, and a tier is linked directly to the next if
    either has a single item; only the remaining tiers keep their nodes.  `components_of_edges` combines the edges of
    several parts, each with its own extra nodes.  O(rows + n_items), and usually O(n_items) edges.

    >>> reduced_edges([0, 1, 1, 0, 1, 2], [0, 1, 0, 1, 0, 1], [0, 2, 4, 6], 3)  # 0 > 1, 1 > 0, 1 > 2
    (array([[0, 1],
           [0, 2],
           [1, 0]]), 3)
    """
    start, end, _, n_nodes = _links(item, tier, offsets, n_items, ties_link)
    label = _labels(start, end, n_nodes)
    first = np.full(int(label.max(initial=-1)) + 1, n_nodes)
    np.minimum.at(first, label, np.arange(n_nodes))  # items come before tiers, so an item if there is one
    node = first[label]
    members = np.flatnonzero(node[:n_items] != np.arange(n_items))
    start, end = node[start], node[end]
    inward, outward = (start < n_items) & (end >= n_items), (start >= n_items) & (end < n_items)
    direct = (start < n_items) & (end < n_items)
    pairs = [
        np.stack([start[direct], end[direct]]),
        np.stack([members, node[members]]),
        np.stack([node[members], members]),
    ]
    into, out = (
        np.unique(np.stack([end[inward], start[inward]]), axis=1),
        np.unique(np.stack([start[outward], end[outward]]), axis=1),
    )
    n_in, n_out = np.bincount(into[0], minlength=n_nodes), np.bincount(out[0], minlength=n_nodes)
    source, target = np.full(n_nodes, -1), np.full(n_nodes, -1)
    source[into[0]], target[out[0]] = into[1], out[1]
    one_in = n_in[out[0]] == 1
    pairs.append(np.stack([source[out[0][one_in]], out[1][one_in]]))
    one_out = (n_out[into[0]] == 1) & (n_in[into[0]] > 1)
    pairs.append(np.stack([into[1][one_out], target[into[0][one_out]]]))
    stays = (n_in > 1) & (n_out > 1)
    number = n_items + np.cumsum(stays) - 1
    kept_in, kept_out = stays[into[0]], stays[out[0]]
    pairs.append(np.stack([into[1][kept_in], number[into[0][kept_in]]]))
    pairs.append(np.stack([number[out[0][kept_out]], out[1][kept_out]]))
    every = np.unique(np.concatenate(pairs, axis=1), axis=1)
    return every[:, every[0] != every[1]].T, n_items + int(stays.sum())


def components_of_edges(parts: Sequence[tuple[Labels, int]], n_items: int) -> Labels:
    """Component of each item (n_items,) from the `reduced_edges` of several parts."""
    edges, n_nodes = [], n_items
    for own, own_nodes in parts:
        edges.append(np.where(own >= n_items, own + (n_nodes - n_items), own))
        n_nodes += own_nodes - n_items
    start, end = np.concatenate([np.zeros((0, 2), np.int64), *edges]).T
    return _strong(start, end, n_items, n_nodes)


def components_of_pairs(winner: ArrayLike, loser: ArrayLike, n_items: int) -> Labels:
    """Component of each item (n_items,) from comparisons; a tie is two rows, one each way.  O(rows + n_items)."""
    return _strong(np.asarray(winner, dtype=np.int64), np.asarray(loser, dtype=np.int64), n_items, n_items)


def _strong(start: Labels, end: Labels, n_items: int, n_nodes: int) -> Labels:
    """Strongly connected components of the first ``n_items`` nodes, numbered by first item."""
    label = _labels(start, end, n_nodes)[:n_items]
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _labels(start: Labels, end: Labels, n_nodes: int) -> Labels:
    """The strongly connected component of every node."""
    if len(start) + n_nodes <= FEW:
        return _few_labels(start.tolist(), end.tolist(), n_nodes)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(start), dtype=bool), (start, end)), shape=(n_nodes, n_nodes)).tocsr()
    labels: Labels = connected_components(graph, directed=True, connection="strong")[1]
    return labels


def _few_labels(start: list[int], end: list[int], n_nodes: int) -> Labels:
    """`_labels` by Kosaraju's algorithm, without the 0.2 seconds that importing SciPy's graph module takes."""
    ahead: list[list[int]] = [[] for _ in range(n_nodes)]
    back: list[list[int]] = [[] for _ in range(n_nodes)]
    for a, b in zip(start, end):
        ahead[a].append(b)
        back[b].append(a)
    reached, finished = [False] * n_nodes, []
    for root in range(n_nodes):
        path = [] if reached[root] else [(root, iter(ahead[root]))]
        reached[root] = True
        while path:
            node, others = path[-1]
            following = next((other for other in others if not reached[other]), None)
            if following is None:
                finished.append(node)
                path.pop()
            else:
                reached[following] = True
                path.append((following, iter(ahead[following])))
    label = np.full(n_nodes, -1, np.int64)
    for number, root in enumerate(reversed(finished)):
        waiting = [root] if label[root] < 0 else []
        while waiting:
            node = waiting.pop()
            if label[node] < 0:
                label[node] = number
                waiting.extend(back[node])
    return label


def always_together(item: ArrayLike, tier: ArrayLike, offsets: ArrayLike, n_items: int) -> Labels:
    """Group of each item (n_items,): items are grouped if they share a tier on every ballot that lists any of them;
    items on no ballot are alone.  O(rows log rows).

    >>> always_together([0, 1, 2, 2, 0, 1], [0, 0, 1, 0, 1, 1], [0, 3, 6], n_items=4)
    array([0, 0, 1, 2])
    """
    item, tier, offsets = (np.asarray(column, dtype=np.int64) for column in (item, tier, offsets))
    ballot = list_of_rows(offsets)
    order = np.lexsort((tier, ballot, item))
    seen: dict[bytes, int] = {}
    place = np.stack([ballot, tier], axis=1)[order]
    bounds = np.searchsorted(item[order], np.arange(n_items + 1))
    group = np.empty(n_items, np.int64)
    for k in range(n_items):
        own = place[bounds[k] : bounds[k + 1]]
        key = own.tobytes() if len(own) else b"alone" + k.to_bytes(8, "little")
        group[k] = seen.setdefault(key, len(seen))
    return group


CANDIDATES_AT_ONCE = 64
"""Number of candidates left out in one pass over the ballots."""

RowColumns = tuple[Labels, Labels, Labels]
OverAll = Callable[..., Any]
"""``over_all(f, merge, *x)`` merges ``f(rows, *x)`` over all parts of the ballots."""


def free_to_rise(item: ArrayLike, tier: ArrayLike, offsets: ArrayLike, n_items: int) -> NDArray[np.bool_] | None:
    """A proper, non-empty set of items that no ballot bounds from above, or None if there is none: on every ballot, if
    the set has an item in some tier, it has one in each tier above it.

    In a model that depends on the sum of e^s over a tier, the scores of such a set can increase together without bound.
    """
    rows: Any = tuple(np.asarray(column, dtype=np.int64) for column in (item, tier, offsets))
    return free_to_rise_over(lambda f, merge, *x: f(rows, *x), np.arange(n_items))


def free_to_rise_over(over_all: OverAll, label: Labels) -> NDArray[np.bool_] | None:
    """`free_to_rise` for ballots in parts; items with the same ``label`` (n_items,) count as one."""
    return next(_free_sets(over_all, label), None)


def free_sets_over(over_all: OverAll, label: Labels) -> list[NDArray[np.bool_]]:
    """As `free_to_rise_over`: for every item, the largest such set without it, each set once."""
    found: dict[bytes, NDArray[np.bool_]] = {}
    for mask in _free_sets(over_all, label):
        found.setdefault(mask.tobytes(), mask)
    return list(found.values())


def _free_sets(over_all: OverAll, label: Labels) -> Iterator[NDArray[np.bool_]]:
    """Masks (n_items,) of sets that are free to rise: the largest one without each label in turn.

    A set with a label below a tier of a single label must also contain that label; labels that require one another are
    merged, over several passes.  For each remaining label, the largest set without it is found by repeatedly removing
    the bounded labels.  O(rows) per pass if one label remains, and that times the number of labels otherwise.
    """
    n = int(label.max(initial=-1)) + 1
    while n > 1:
        needs, needed = over_all(_needs, _unite_edges, label)
        label = components_of_pairs(needs, needed, n)[label]
        fewer = int(label.max()) + 1
        if fewer == n:
            break
        n = fewer
    for first in range(0, n if n > 1 else 0, CANDIDATES_AT_ONCE):
        left_out = np.arange(first, min(first + CANDIDATES_AT_ONCE, n))
        inside = np.arange(n) != left_out[:, None]
        while (down := over_all(_bounded_labels, np.logical_or, label, inside)).any():
            inside &= ~down
        for k in np.flatnonzero(inside.any(axis=1)):
            yield np.asarray(inside[k][label])


def _needs(rows: RowColumns, label: Labels) -> Labels:
    """Edges (2, edges) from a label to another that any set containing it must also contain: that of the nearest tier
    above with a single label, which in turn requires those above it.
    """
    (node, ballot), own = number_tiers(*rows[1:]), label[rows[0]]
    low, high = np.full(len(ballot), len(label)), np.full(len(ballot), -1)
    np.minimum.at(low, node, own)
    np.maximum.at(high, node, own)
    last = np.maximum.accumulate(np.where(low == high, np.arange(len(ballot)), -1))
    above = np.append(-1, last[:-1])[: len(ballot)]
    above = np.where((above >= 0) & (ballot[above] == ballot), above, -1)[node]
    edges = np.stack([own, low[above]])[:, above >= 0] if len(ballot) else np.zeros((2, 0), np.int64)
    return np.unique(edges, axis=1)


def _unite_edges(a: Labels, b: Labels) -> Labels:
    return np.unique(np.concatenate([a, b], axis=1), axis=1)


def _bounded_labels(rows: RowColumns, label: Labels, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask (sets, labels) of the labels of each set that are below a tier in which the set has no label."""
    (node, ballot), own = number_tiers(*rows[1:]), label[rows[0]]
    down = np.zeros_like(inside)
    for k, within in enumerate(inside[:, own]):
        empty = np.bincount(node[within], minlength=len(ballot)) == 0
        first_empty = np.full(len(rows[2]) - 1, len(ballot))
        np.minimum.at(first_empty, ballot[empty], np.flatnonzero(empty))
        down[k, own[within & (node > first_empty[ballot][node])]] = True
    return down
