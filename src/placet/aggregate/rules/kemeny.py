"""Kemeny's rule: the order with the least weight of pairwise disagreement with the ballots, with a certificate.

The distance of an order is the total weight of (ballot, pair) on which the ballot orders the pair the other way; ties
and absences on a ballot cost nothing.  With w(i, j) the weight of ballots that rank i above j, no order is closer than
the sum over pairs of min(w(i, j), w(j, i)).  Let i -> j if w(i, j) > w(j, i).  Some optimal order puts the strongly
connected components of this majority graph one after the other, so each is solved separately.

Several orders can be equally close.  Which one is returned depends only on the weights, never on the order of ballots
or items:

- within a component, the order that is best at the top: its items' net wins (sum of w(i, j) - w(j, i) over all j), read
  from the top, are lexicographically largest; items whose places differ among such orders are tied;
- components follow the edges between them, which puts some number a of items above an item and b below it, and leaves
  its order with the rest open; its place is (a + 1) (n + 1) / (a + b + 2), the expected place among all n of the
  (a + 1)-st of a + b + 1; equal places tie.

So some way of breaking the ties gives an optimal order.
"""

import weakref
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy

from placet.aggregate.places import MOST_ITEMS
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules import linear_order
from placet.aggregate.rules.scored import Scored
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, Ints, read_only
from placet.data.engines.memory import refuse_square
from placet.data.errors import one_of
from placet.kernels.aggregate import kemeny as kernels

MOST_KEPT = 1024
"""Maximum items for caching the latest tables (8 MB each): an audit uses them for every rule."""

MOST_SUBSETS = 14
"""Maximum items for dynamic programming over subsets."""


@dataclass(frozen=True)
class KemenyOrder:
    """An order, best first, its distance, and a lower bound on all distances; ``optimal`` if the two are equal.

    ``components``: number of strong components of the majority graph, each solved separately.  ``scores`` (n,):
    minus the place, from 0, with equally good places tied.  ``best_orders``: number of orders known to be equally
    close; ``counted``: whether that is all of them.
    """

    order: Ints
    distance: float
    lower_bound: float
    optimal: bool
    components: int
    scores: Floats
    best_orders: float
    counted: bool

    def __repr__(self) -> str:
        proof = "optimal" if self.optimal else f"at least {self.lower_bound:g}"
        return f"KemenyOrder({len(self.order)} items, distance {self.distance:g}, {proof})"

    def notes(self) -> tuple[str, ...]:
        """The certificate, and whether other orders are equally good."""
        known = "no order is closer" if self.optimal else f"not proved least; no order is below {self.lower_bound:g}"
        proof = f"Kemeny distance {self.distance:g}: {known}"
        if self.best_orders < 2:
            return (proof,)
        return (proof, several_orders(self.best_orders, self.counted, "net wins from the top"))


def several_orders(count: float, counted: bool, choice: str) -> str:
    """The note on a result that is not unique."""
    number = f"{count:,.0f}" if count < 1e6 else f"{count:.2g}"
    return f"{number if counted else f'at least {number}'} orders are equally close; chosen by {choice}, else tied"


_last: list[tuple[weakref.ref[Any], tuple[Floats, Floats]]] = []  # cache of the latest data and their tables


def pair_tables(data: Rankings | Comparisons) -> tuple[Floats, Floats]:
    """w(i, j), the weight for i above j, and the weight of ties, both (n, n), read-only.  O(pairs on ballots + n^2)."""
    if not isinstance(data, Rankings | Comparisons):
        raise TypeError(f"data must be Rankings or Comparisons, not {type(data).__name__}")
    n = data.n_items
    if n > MOST_ITEMS:
        raise DataError(f"{n} items are too many for a table of pairs (at most {MOST_ITEMS}); use 'borda' or a model")
    for known, tables in _last:
        if known() is data:
            return tables
    tables = _count_pairs(data)
    _last[:] = [(weakref.ref(data, lambda _: _last.clear()), tables)] if n <= MOST_KEPT else []
    return tables


def _count_pairs(data: Rankings | Comparisons) -> tuple[Floats, Floats]:
    n = data.n_items
    refuse_square(n, "a table of all pairs", "take fewer items, or another method such as 'borda' or a model", 5.0)
    wins, ties = np.zeros((n, n)), np.zeros((n, n))
    if isinstance(data, Comparisons):
        np.add.at(wins, (data.i, data.j), data.wins_i)
        np.add.at(wins, (data.j, data.i), data.wins_j)
        np.add.at(ties, (data.i, data.j), data.ties)
        np.add.at(ties, (data.j, data.i), data.ties)
    else:
        kernels.pair_wins(data.item, data.tier, data.offsets, data.weight, wins, ties)
    return read_only(wins), read_only(ties)


def margins(wins: Floats) -> Floats:
    """w(i, j) - w(j, i), set to 0 if within rounding error: 1e-9 of the largest weight."""
    margin = wins - wins.T
    margin[np.abs(margin) <= RELATIVE_TOLERANCE * float(wins.max(initial=0.0))] = 0.0
    return margin


def kemeny_order(
    data: Rankings | Comparisons,
    method: Literal["exact", "local"] = "exact",
    *,
    time_limit: float | None = None,
    random_state: int = 0,
) -> KemenyOrder:
    """The closest order, with its certificate.

    Components of up to 14 items are solved by dynamic programming over sets of items.  For larger ones, ``"exact"``
    uses linear programs over pairs, adding violated triangle inequalities and fixing variables by reduced cost against
    a local search, then branch and bound (HiGHS) over the rest; it stops after ``time_limit`` seconds with the bound
    reached so far.  ``"local"`` uses insertion moves from several starts, O(n^2) per sweep, with only the pairwise
    bound.

    >>> votes = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]])
    >>> kemeny_order(votes)
    KemenyOrder(3 items, distance 4, optimal)
    """
    one_of(method, ("exact", "local"), "method")
    wins, _ = pair_tables(data)
    margin, unit = _in_units(margins(wins))
    net = margin.sum(axis=1)
    n = len(margin)
    parts, above, below = ordered_components(margin)
    largest = max(map(len, parts), default=0)
    if method == "exact" and largest > MOST_SUBSETS:
        linear_order.refuse_many(largest)  # before the local search, which takes half a minute for 3,000 items
    rng = np.random.default_rng(random_state)
    clock = linear_order.deadline(time_limit)
    position, tier = np.zeros(n, np.int64), np.zeros(n, np.int64)
    extra, proved, orders, counted = 0.0, 0.0, 1.0, True
    for part in parts:
        if len(part) == 1:
            continue
        inner = np.ascontiguousarray(margin[np.ix_(part, part)])
        if len(part) <= MOST_SUBSETS:
            found, tiers, bound, ways = _by_subsets(inner, net[part])
        else:
            found, tiers, bound, ways = _by_programs(inner, method, rng, clock)
            counted = False
        lost = linear_order.lost_weight(inner, found)
        position[part[found]], tier[part] = np.arange(len(part)), tiers
        for level in range(int(tiers.max()) + 1):
            above[part[tiers > level]] += (tiers == level).sum()
            below[part[tiers < level]] += (tiers == level).sum()
        extra, proved, orders = extra + lost, proved + min(bound, lost), orders * ways
    place = (above + 1) / (above + below + 2)
    component = np.zeros(n, np.int64)
    for k, part in enumerate(parts):
        component[part] = k
    if ((margin == 0) & (component[:, None] != component)).any():  # items of different components may swap places
        counted = n <= MOST_SUBSETS
        orders = _count_orders(margin) if counted else orders * (1 + (above + below + _sizes(parts, tier) < n).any())
    order = np.lexsort((position, component, np.round(place, 12)))
    base = float(np.minimum(wins, wins.T).sum() / 2)
    optimal = extra - proved <= 1e-9 * max(1.0, extra)
    distance = base + unit * extra
    return KemenyOrder(
        order.astype(np.int64),
        distance,
        distance if optimal else base + unit * proved,
        bool(optimal),
        len(parts),
        minus_places(-place),
        orders,
        counted and bool(optimal),
    )


def kemeny(data: Rankings | Comparisons, *, time_limit: float | None = None) -> Scored:
    """Exact Kemeny order: scores are minus the place, from 0; if several orders are optimal, places tie as described in
    `placet.aggregate.rules.kemeny`, and a note says how many there are.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> kemeny(Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]])).scores
    array([-0.5, -0.5, -2. ])
    """
    found = kemeny_order(data, "exact", time_limit=time_limit)
    return Scored(found.scores, found.notes())


def kemeny_local(data: Rankings | Comparisons, *, random_state: int = 0) -> Scored:
    """Kemeny order by local search, for sets too large to solve exactly: no single move improves it.  O(n^2) per sweep.

    Places tie as in `kemeny`.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    >>> kemeny_local(votes).scores
    array([ 0., -1., -2.])
    """
    found = kemeny_order(data, "local", random_state=random_state)
    return Scored(found.scores, found.notes())


def minus_places(scores: Floats) -> Floats:
    """Minus the place, from 0, of every item by score; equal scores (to 12 digits) share their mean place."""
    _, group, size = np.unique(-np.round(scores, 12), return_inverse=True, return_counts=True)
    return 0.0 - (np.cumsum(size) - size + (size - 1) / 2)[group]


def ordered_components(margin: Floats) -> tuple[list[Ints], Ints, Ints]:
    """Strong components in order, and for every item how many items reach its component and how many it reaches."""
    n = len(margin)
    if not n:
        return [], np.zeros(0, np.int64), np.zeros(0, np.int64)
    count, label = scipy.sparse.csgraph.connected_components(margin > 0, directed=True, connection="strong")
    beats = np.zeros((count, count), bool)
    i, j = np.nonzero(margin > 0)
    beats[label[i], label[j]] = True
    np.fill_diagonal(beats, False)
    size = np.bincount(label, minlength=count)
    reach = _reach(beats)
    above, below = size @ reach, reach @ size
    first = np.full(count, n)
    np.minimum.at(first, label, np.arange(n))
    inner = np.split(np.argsort(label, kind="stable"), np.cumsum(size)[:-1])
    parts = [inner[k] for k in np.lexsort((first, (above + 1) / (above + below + 2)))]
    return parts, above[label].astype(np.int64), below[label].astype(np.int64)


def _reach(beats: np.ndarray) -> Ints:
    """Reachability (1 or 0) between the nodes of an acyclic graph.  O(nodes x edges / 8) bytes."""
    count = len(beats)
    waiting = beats.sum(axis=0)
    ready = np.flatnonzero(waiting == 0).tolist()
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        under = np.flatnonzero(beats[node])
        waiting[under] -= 1
        ready += under[waiting[under] == 0].tolist()
    packed = np.packbits(beats, axis=1)
    for node in reversed(order):
        under = np.flatnonzero(beats[node])
        if len(under):
            packed[node] |= np.bitwise_or.reduce(packed[under], axis=0)
    return np.unpackbits(packed, axis=1, count=count).astype(np.int64)


def _sizes(parts: list[Ints], tier: Ints) -> Ints:
    """Number of items in each item's component and tier."""
    size = np.ones(len(tier), np.int64)
    for part in parts:
        size[part] = np.bincount(tier[part])[tier[part]]
    return size


def _by_subsets(margin: Floats, net: Floats) -> tuple[Ints, Ints, float, float]:
    """An optimal order, the tier of every item, the least loss, and the number of orders that attain it."""
    n = len(margin)
    above, order = np.zeros((n, n), bool), np.zeros(n, np.int64)
    close = RELATIVE_TOLERANCE * float(np.abs(margin).sum())
    least, count = kernels.best_orders(margin, net, close, above, order)
    groups, label = scipy.sparse.csgraph.connected_components(above & above.T, directed=False)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    rank = np.argsort(np.argsort([place[label == g].min() for g in range(groups)]))
    return order, rank[label], least, count


def _by_programs(
    margin: Floats, method: str, rng: np.random.Generator, clock: linear_order.TimeLeft
) -> tuple[Ints, Ints, float, float]:
    """As `_by_subsets`, for many items, numbered in a canonical order that depends only on the margins.

    Items that the margins do not distinguish share their mean place.
    """
    numbered, kind = _canonical(margin)
    inner = np.ascontiguousarray(margin[np.ix_(numbered, numbered)])
    found = linear_order.search(inner, rng)
    bound = 0.0
    if method == "exact":
        found, bound = linear_order.solve(inner, found, clock)
    order = numbered[found]
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    mean = np.bincount(kind, place) / np.bincount(kind)
    _, tier = np.unique(np.round(mean, 9)[kind], return_inverse=True)
    return order, tier, bound, 1.0 + linear_order.free_moves(margin, order)


def _count_orders(margin: Floats) -> float:
    n = len(margin)
    close = RELATIVE_TOLERANCE * float(np.abs(margin).sum())
    return float(kernels.best_orders(margin, np.zeros(n), close, np.zeros((n, n), bool), np.zeros(n, np.int64))[1])


def _in_units(margin: Floats) -> tuple[Floats, float]:
    """Margins as integer multiples of a unit if there is one, else as fractions of the largest, to 12 digits.

    Equal margins thus become equal numbers, regardless of their scale and of the order in which weights were added.
    """
    size = np.abs(margin)
    largest = float(size.max(initial=0.0))
    if largest == 0.0:
        return margin, 1.0
    unit, close = largest, 1e-7 * largest
    while unit > 1e-6 * largest:
        rest = np.abs(size - unit * np.rint(size / unit))
        off = rest > close / 100
        if not off.any():
            return np.rint(margin / unit) + 0.0, unit
        unit = float(rest[off].min())
    return np.round(margin / largest, 12) + 0.0, largest


def _canonical(margin: Floats) -> tuple[Ints, Ints]:
    """Item numbers in a canonical order that depends only on the margins, and each item's kind.

    Items of a kind have the same net wins and the same margins against the items of each kind: color refinement, as
    for graph isomorphism.  O(n^2) per round.
    """
    n = len(margin)
    net = np.round(margin.sum(axis=1), 9) + 0.0
    color = _mix(net.view(np.uint64))
    kinds = 0
    while kinds < len(np.unique(color)) < n:
        kinds = len(np.unique(color))
        seen = np.zeros(n, np.uint64)
        for rows in np.array_split(np.arange(n), max(1, n * n >> 22)):
            pair = _mix(np.ascontiguousarray(margin[rows]).view(np.uint64)) ^ color[None, :]
            seen[rows] = _mix(pair).sum(axis=1, dtype=np.uint64)
        color = _mix(color ^ _mix(seen))
    order = np.lexsort((color, -net))
    new = np.ones(n, bool)
    new[1:] = (net[order[1:]] != net[order[:-1]]) | (color[order[1:]] != color[order[:-1]])
    kind = np.empty(n, np.int64)
    kind[order] = np.cumsum(new) - 1
    return order.astype(np.int64), kind


def _mix(x: np.ndarray) -> np.ndarray:
    """Hash 64-bit numbers (the finalizer of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
