"""Spearman's footrule: the order with the least sum of absolute differences of places, an assignment problem.

Items listed by nobody are excluded and placed in the middle.  If several orders are optimal, those that agree best with
the mean places m are selected, with most weight on the top (least sum of m / place; items missing from a ballot count
as in the middle).  Items that differ in place among the selected orders are tied, together with all items in between.
"""

from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from placet.aggregate.places import ballots_of, listed_weight, places, refuse_many_places, sum_by_item
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules.kemeny import MOST_SUBSETS, minus_places, several_orders
from placet.aggregate.rules.scored import Scored
from placet.data import Rankings
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_square
from placet.data.errors import one_of
from placet.kernels.aggregate import kemeny as kernels


def footrule(data: Rankings, unlisted: Literal["absent", "last"] = "absent") -> Scored:
    """Minus the place, from 0, in an order that minimizes the sum of abs(place in it - place on a ballot) over ballots.

    Item i at place p costs the weighted sum over ballots of abs(p - place).  Unlisted items are treated as in
    `median_rank`; those that nobody lists come in the middle.  Of several optimal orders, the one closest to the mean
    places is chosen, and items it does not separate are tied; a note says how many there are.  O(rows n + n^3).

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> footrule(Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"]])).scores
    array([ 0., -1., -2.])
    """
    one_of(unlisted, ("absent", "last"), "unlisted")
    rankings = ballots_of(data, "footrule")
    n = rankings.n_items
    refuse_many_places(n)
    rankings = rankings.completed() if unlisted == "last" else rankings
    listed = np.flatnonzero(listed_weight(rankings) > 0)
    scores, notes = _closest(rankings.restricted([rankings.items[k] for k in listed]))
    every = np.full(n, -(len(listed) - 1) / 2)
    every[listed] = scores
    return Scored(minus_places(every), notes)


def _closest(rankings: Rankings) -> tuple[Floats, tuple[str, ...]]:
    """Minus the place, from 0, of items that are all listed; also returns notes."""
    n = rankings.n_items
    total = float(rankings.weight.max(initial=0.0)) or 1.0
    refuse_square(n, "a table of costs", "take fewer items, or another method such as 'borda'", 4.0)
    cost = np.zeros((n, n))
    kernels.footrule_costs(rankings.item, places(rankings), rankings.weight / total, rankings.ballot, cost)
    _, allowed = best_assignments(cost, np.ones((n, n), bool))
    closer = _mean_places(rankings)[:, None] / np.arange(1.0, n + 1)[None, :]
    place, still = best_assignments(closer, allowed)
    scores = minus_places(-_tiers(still, place))
    count, counted = _count(allowed, place)
    return scores, (several_orders(count, counted, "mean places"),) if count > 1 else ()


def best_assignments(cost: Floats, allowed: NDArray[np.bool_]) -> tuple[Ints, NDArray[np.bool_]]:
    """The column of every row in an optimal assignment over allowed pairs, and the pairs used by any optimal one.

    Let d(i, j) be the extra cost if row i takes the column of row j.  No cycle has a negative sum, so shortest
    distances u give d(i, j) + u_i - u_j >= 0, and cycles of zeros among these lead to the other optimal
    assignments.  O(n^3).
    """
    n = len(cost)
    if not n:
        return np.zeros(0, np.int64), allowed
    _, column = scipy.optimize.linear_sum_assignment(np.where(allowed, cost, np.inf))
    more = np.where(allowed[:, column], cost[:, column] - cost[np.arange(n), column][:, None], np.inf)
    close = RELATIVE_TOLERANCE * float(np.abs(cost).max())
    u = np.zeros(n)
    for _ in range(n):
        shorter = np.minimum(u, (more + u[:, None]).min(axis=0))
        if (u - shorter).max() <= close / 100:
            break
        u = shorter
    free = more + u[:, None] - u[None, :] <= close
    _, group = scipy.sparse.csgraph.connected_components(free, directed=True, connection="strong")
    pairs = np.zeros((n, n), bool)
    pairs[:, column] = free & (group[:, None] == group[None, :])
    return column.astype(np.int64), pairs


def _tiers(pairs: NDArray[np.bool_], column: Ints) -> Floats:
    """A tier for every row, from 0: rows that can exchange columns share one, as do all rows between them."""
    groups, group = _exchanges(pairs, column)
    low, high = np.full(groups, len(column)), np.full(groups, -1)
    np.minimum.at(low, group, column)
    np.maximum.at(high, group, column)
    order = np.argsort(low)
    reached = np.maximum.accumulate(high[order])
    tier = np.empty(groups)
    tier[order] = np.cumsum(np.append(False, low[order][1:] > reached[:-1])) if groups else 0.0
    return tier[group]


def _exchanges(pairs: NDArray[np.bool_], column: Ints) -> tuple[int, Ints]:
    """Number and labels of the groups of rows that can exchange columns."""
    if not len(column):
        return 0, np.zeros(0, np.int64)
    count, group = scipy.sparse.csgraph.connected_components(pairs[:, column], directed=True, connection="strong")
    return int(count), group.astype(np.int64)


def _mean_places(rankings: Rankings) -> Floats:
    """Mean place of every item, counting the middle for ballots that do not list it."""
    n, total = rankings.n_items, float(rankings.weight.sum())
    middle = (n + 1) / 2
    gap = sum_by_item(rankings.item, rankings.weight[rankings.ballot] * (places(rankings) - middle), n)
    return middle + (gap / total if total > 0 else gap)


def _count(pairs: NDArray[np.bool_], column: Ints) -> tuple[float, bool]:
    """Number of assignments that use only these pairs (a lower bound for many rows), and whether it is exact."""
    if len(column) <= MOST_SUBSETS:
        return float(kernels.count_matchings(pairs)), True
    groups, group = _exchanges(pairs, column)
    size = np.bincount(group, minlength=groups)
    edges = np.bincount(group, pairs.sum(axis=1), groups)
    return float(np.prod(edges - 2.0 * size + 2)), bool((size == 1).all())
