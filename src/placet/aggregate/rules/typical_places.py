"""Rules of typical places: the median place of an item, the most frequent ballot, the first majority (Bucklin)."""

from typing import Literal

import numpy as np

from placet.aggregate.places import ballots_of, places, refuse_many_places, sum_by_item, tier_starts
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules.order_scores import places_by, scores_of
from placet.aggregate.rules.scored import Scored
from placet.data import Rankings
from placet.data.arrays import Floats
from placet.data.errors import one_of


def median_rank(data: Rankings, unlisted: Literal["absent", "last"] = "absent") -> Floats:
    """Minus the weighted median place (the midpoint if there are several medians).

    ``"absent"``: over ballots that list the item, using its expected place among all n; an item that nobody lists gets
    the middle place.  ``"last"``: unlisted items share places m + 1 .. n.  O(rows log rows), O(ballots n) with
    ``"last"``.

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> median_rank(Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"]]))
    array([-1., -2., -3.])
    """
    one_of(unlisted, ("absent", "last"), "unlisted")
    rankings = ballots_of(data, "median-rank")
    rankings = rankings.completed() if unlisted == "last" else rankings
    item, place, weight = rankings.item, places(rankings), rankings.weight[rankings.ballot]
    counts = weight > 0
    item, place, weight = item[counts], place[counts], weight[counts]
    order = np.lexsort((place, item))
    item, place, weight = item[order], place[order], weight[order]
    scores = np.full(rankings.n_items, -(rankings.n_items + 1) / 2)
    bounds = np.searchsorted(item, np.arange(rankings.n_items + 1))
    for i in np.flatnonzero(np.diff(bounds)):
        own = slice(bounds[i], bounds[i + 1])
        share = np.cumsum(weight[own] / weight[own].sum())
        low = place[own][np.searchsorted(share, 0.5 - RELATIVE_TOLERANCE)]
        high = place[own][min(int(np.searchsorted(share, 0.5 + RELATIVE_TOLERANCE)), len(share) - 1)]
        scores[i] = -(low + high) / 2
    return scores


def mode(data: Rankings) -> Scored:
    """Minus the places on the most frequent ballot, averaged if several ballots are equally frequent.

    Items not on it tie for the places after it.  Ballots that list different items are different.  O(rows).

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> mode(Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]])).scores
    array([-1., -2.])
    """
    rankings = ballots_of(data, "mode")
    plain = Rankings(rankings.item, rankings.tier, rankings.offsets, rankings.weight, items=rankings.items)
    ballots = plain.collapsed()
    n = rankings.n_items
    ballots = ballots[(np.diff(ballots.offsets) > 0) & (ballots.weight > 0)]
    if not len(ballots):
        return Scored(np.full(n, -(n + 1) / 2))
    top = ballots[ballots.weight >= ballots.weight.max() * (1 - RELATIVE_TOLERANCE)]
    full = top.completed()
    first, size = tier_starts(full)
    notes = (f"{len(top)} ballots are equally frequent; the mean of their places is taken",) if len(top) > 1 else ()
    return Scored(-sum_by_item(full.item, first + (size + 1) / 2, n) / len(top), notes)


def bucklin(data: Rankings) -> Floats:
    """Bucklin: items are ordered by the smallest k such that more than half of the weight ranks them in the top k.

    Equal k are ordered by the weight at k; items that never reach a majority come last, by the weight of the ballots
    that list them.  An item of a tied tier counts by the fraction of the tier's places that are in the top k.  The
    score is minus the number of items above.  O(rows + n^2).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> bucklin(Rankings.from_orders([["a", "b", "c"]] * 2 + [["b", "c", "a"]] * 2 + [["c", "b", "a"]]))
    array([-2.,  0., -1.])
    """
    rankings = ballots_of(data, "bucklin")
    n = rankings.n_items
    refuse_many_places(n)
    total = float(rankings.weight[np.diff(rankings.offsets) > 0].sum())
    close = RELATIVE_TOLERANCE * total
    among_first = np.cumsum(place_weights(rankings), axis=1)
    majority = np.column_stack([among_first > total / 2 + close, np.ones(n, np.bool_)])
    reached = majority.argmax(axis=1)
    weight = among_first[np.arange(n), np.minimum(reached, n - 1)] if n else np.zeros(0)
    return scores_of(places_by((reached.astype(np.float64), 0.0), (-weight, close)))


def place_weights(rankings: Rankings) -> Floats:
    """Weight (n, n) of every item at every place; tied items share their places equally.  O(rows + n^2)."""
    n = rankings.n_items
    first, size = tier_starts(rankings)
    share = rankings.weight[rankings.ballot] / np.maximum(size, 1)
    row = rankings.item.astype(np.int64) * (n + 1)
    change = np.bincount(row + first, share, n * (n + 1)) - np.bincount(row + first + size, share, n * (n + 1))
    return np.cumsum(change.reshape(n, n + 1), axis=1)[:, :n]
