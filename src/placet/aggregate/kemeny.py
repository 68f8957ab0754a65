"""Kemeny's rule: the order with the least weight of disagreement with ballots, pair by pair, and a proof that it is
least.

The distance of an order is the weight of (ballot, pair) where the ballot puts below what the order puts above; ties and
absences on a ballot cost nothing.  With w(i, j) the weight of ballots that put i above j, no order is closer than the
sum over pairs of min(w(i, j), w(j, i)).  Strong components of the majority graph (i -> j where w(i, j) > w(j, i))
follow one another in some best order, so each is solved alone.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse.csgraph import connected_components

from placet.aggregate import linear_order
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.kernels import kemeny as kernels

MOST_ITEMS = 20_000
"""Tables of pairs beyond this many items do not fit in memory (3.2 GB each)."""


@dataclass(frozen=True)
class KemenyOrder:
    """An order, best first, its distance, and a bound that no order can beat; ``optimal`` where the two meet.

    ``components`` is how many groups the majority graph falls into; each was solved alone.
    """

    order: Ints
    distance: float
    lower_bound: float
    optimal: bool
    components: int

    def __repr__(self) -> str:
        proof = "optimal" if self.optimal else f"at least {self.lower_bound:g}"
        return f"KemenyOrder({len(self.order)} items, distance {self.distance:g}, {proof})"


def pair_tables(data: Rankings | Comparisons) -> tuple[Floats, Floats]:
    """w(i, j), weight for i above j, and the weight of ties, both (n, n).  O(pairs on ballots + n^2)."""
    if not isinstance(data, Rankings | Comparisons):
        raise TypeError(f"data must be Rankings or Comparisons, not {type(data).__name__}")
    n = data.n_items
    if n > MOST_ITEMS:
        raise DataError(f"{n} items are too many for a table of pairs (at most {MOST_ITEMS}); use 'borda' or a model")
    wins, ties = np.zeros((n, n)), np.zeros((n, n))
    if isinstance(data, Comparisons):
        np.add.at(wins, (data.i, data.j), data.wins_i)
        np.add.at(wins, (data.j, data.i), data.wins_j)
        np.add.at(ties, (data.i, data.j), data.ties)
        np.add.at(ties, (data.j, data.i), data.ties)
    else:
        kernels.pair_wins(data.item, data.tier, data.offsets, data.weight, wins, ties)
    return wins, ties


def kemeny_order(
    data: Rankings | Comparisons,
    method: Literal["exact", "local"] = "exact",
    *,
    time_limit: float | None = None,
    random_state: int = 0,
) -> KemenyOrder:
    """The closest order, with its certificate.

    ``"exact"``: linear programs over pairs with triangle inequalities added where they are violated, variables fixed by
    reduced cost against a local search, then branch and bound (HiGHS) over what is left; `time_limit` seconds cap it,
    and the result then carries the bound that was reached.  ``"local"``: insertion moves from several starts, O(n^2)
    a sweep, with the bound of pairs alone.

    >>> votes = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]])
    >>> kemeny_order(votes)
    KemenyOrder(3 items, distance 4, optimal)
    """
    one_of(method, ("exact", "local"), "method")
    wins, _ = pair_tables(data)
    unit = _unit(wins)
    wins = wins / unit
    margin = wins - wins.T
    base = float(np.minimum(wins, wins.T).sum() / 2)
    parts = majority_components(margin)
    rng = np.random.default_rng(random_state)
    clock = linear_order.deadline(time_limit)
    order: list[int] = []
    extra, proved = 0.0, 0.0
    for part in parts:
        inner = np.ascontiguousarray(margin[np.ix_(part, part)])
        if len(part) == 1:
            order.append(int(part[0]))
            continue
        found = linear_order.search(inner, rng)
        lost = linear_order.lost(inner, found)
        bound = 0.0
        if method == "exact":
            found, bound = linear_order.solve(inner, found, clock)
            lost = linear_order.lost(inner, found)
        order.extend(part[found].tolist())
        extra, proved = extra + lost, proved + min(bound, lost)
    optimal = extra - proved <= 1e-9 * max(1.0, extra)
    distance = unit * (base + extra)
    bound = distance if optimal else unit * (base + proved)
    return KemenyOrder(np.array(order, np.int64), distance, bound, bool(optimal), len(parts))


def _unit(wins: Floats) -> float:
    """What weights are counted in: 1, or the largest where weights are so small or large that tolerances would fail."""
    largest = float(wins.max(initial=0.0))
    return 1.0 if largest == 0.0 or 1e-3 <= largest <= 1e9 else largest


def kemeny(data: Rankings | Comparisons, *, time_limit: float | None = None) -> Floats:
    """Scores of an exact Kemeny order: minus the place, from 0, with equal scores where the exchange is free.

    Neighbours in the order tie when every order of them is as close; of several best orders one is taken.

    >>> kemeny(Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]]))
    array([-0.5, -0.5, -2. ])
    """
    return _scores(data, kemeny_order(data, "exact", time_limit=time_limit).order)


def kemeny_local(data: Rankings | Comparisons, *, random_state: int = 0) -> Floats:
    """Scores of an order that no move of one item improves, for sets too large to be exact.  O(n^2) a sweep."""
    return _scores(data, kemeny_order(data, "local", random_state=random_state).order)


def majority_components(margin: Floats) -> list[Ints]:
    """Strong components of i -> j where margin(i, j) > 0, best first; without a path between them by mean margin."""
    n = len(margin)
    if not n:
        return []
    count, label = connected_components(margin > 0, directed=True, connection="strong")
    beats = np.zeros((count, count), bool)
    i, j = np.nonzero(margin > 0)
    beats[label[i], label[j]] = True
    np.fill_diagonal(beats, False)
    mean = np.bincount(label, margin.sum(axis=1), count) / np.bincount(label, minlength=count)
    first = np.full(count, n)
    np.minimum.at(first, label, np.arange(n))
    waiting = beats.sum(axis=0)
    left = set(range(count))
    parts: list[Ints] = []
    while left:
        best = min((c for c in left if waiting[c] == 0), key=lambda c: (-mean[c], first[c]))
        left.remove(best)
        waiting = waiting - beats[best]
        parts.append(np.flatnonzero(label == best))
    return parts


def tied_places(order: Ints, free: Any) -> Floats:
    """Minus the place of every item; neighbours share a mean place where ``free(x, y)`` holds for all pairs of them."""
    n = len(order)
    scores = np.empty(n)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and all(free(order[p], order[stop]) for p in range(start, stop)):
            stop += 1
        scores[order[start:stop]] = -(start + stop - 1) / 2
        start = stop
    return scores


def _scores(data: Rankings | Comparisons, order: Ints) -> Floats:
    wins, _ = pair_tables(data)
    scale = np.finfo(np.float64).eps * 8 * float(np.abs(wins).max(initial=0.0))
    return tied_places(order, lambda x, y: abs(wins[x, y] - wins[y, x]) <= scale)
