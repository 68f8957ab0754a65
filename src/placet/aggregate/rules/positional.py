"""Positional rules: a place on a ballot is worth points, and points add up.

With h(1) >= ... >= h(n) the score of an item is the weighted sum of h(place) over ballots; tied items share the mean of
their places' points.  Ballots that list only m of the n items need a stated treatment of the rest, ``unlisted``:

``"absent"``  the ballot is an election among its m items: they get mean(h_n) + h_m(place) - mean(h_m), and an unlisted
              item gets the average mean(h_n), so that it neither gains nor loses;
``"last"``    unlisted items tie for places m + 1 .. n;
``"zero"``    unlisted items get the points of the last place, h_n(n), which is zero for Borda: being listed is
              evidence, as in meta-search.

On complete ballots all three agree with the plain rule.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.aggregate.places import UnlistedPlaces, ballots_of, mean_points, sum_by_item, tier_starts
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules.scored import Scored
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats
from placet.data.errors import one_of

UNLISTED = ("absent", "last", "zero")

POSITIONAL: dict[str, Callable[[Floats], Floats]] = {
    "borda": lambda i: len(i) - i,
    "plurality": lambda i: (i == 1).astype(np.float64),
    "anti-plurality": lambda i: (i < len(i)).astype(np.float64),
    "log": lambda i: -np.log(i),
    "squared": lambda i: -(i**2),
    "dowdall": lambda i: 1 / i,
}
"""Name -> h of the places 1 .. n: n - i; 1 for the first; 0 for the last and 1 for others; -log i; -i^2; 1 / i."""


def positional_vector(name: str, n: int) -> Floats:
    """Points h(1), ..., h(n) of a named rule.

    >>> positional_vector("borda", 4)
    array([3., 2., 1., 0.])
    """
    one_of(name, tuple(POSITIONAL), "positional rule")
    if n < 0:
        raise ValueError(f"n must be at least 0, not {n}")
    return POSITIONAL[name](np.arange(1, n + 1, dtype=np.float64))


def positional(
    data: Rankings, h: str | ArrayLike | Callable[[int], ArrayLike] = "borda", unlisted: UnlistedPlaces = "absent"
) -> Floats:
    """Scores of any positional rule; ``h`` is a name, a function of n, or n points, best place first.

    With ``unlisted="absent"``, a ballot of m items uses the first m of points given as numbers.
    O(rows + sum over distinct ballot sizes).

    >>> votes = Rankings.from_orders([["a", "b", "c"], ["a", ("b", "c")]])
    >>> positional(votes, [5, 2, 0])
    array([10.,  3.,  1.])
    """
    rankings = ballots_of(data, "positional")
    one_of(unlisted, UNLISTED, "unlisted")
    n = rankings.n_items
    vector = _vector(h, n)
    whole = vector(n)
    first, size = tier_starts(rankings)
    weight = rankings.weight
    row_weight = weight[rankings.ballot]
    sizes = np.diff(rankings.offsets)
    if unlisted == "absent":
        points = np.zeros(len(first))
        average = whole.mean() if n else 0.0
        m_of_row = sizes[rankings.ballot]
        for m in np.unique(sizes[sizes > 0]):
            rows = m_of_row == m
            own = vector(int(m)) if m < n else whole
            points[rows] = mean_points(own, first[rows], size[rows]) - (own.mean() if m < n else average)
        return sum_by_item(rankings.item, row_weight * points, n) + weight.sum() * average
    if unlisted == "last":
        total = np.concatenate([np.cumsum(whole[::-1])[::-1], [0.0]])
        default = np.where(sizes < n, total[sizes] / np.maximum(n - sizes, 1), 0.0)
    else:
        default = np.where(sizes < n, whole[-1] if n else 0.0, 0.0)
    points = mean_points(whole, first, size)
    listed_default = sum_by_item(rankings.item, (weight * default)[rankings.ballot], n)
    return sum_by_item(rankings.item, row_weight * points, n) + ((weight * default).sum() - listed_default)


def by_points(
    data: Rankings, h: str | ArrayLike | Callable[[int], ArrayLike] = "borda", unlisted: UnlistedPlaces = "absent"
) -> Scored:
    """Any positional rule: ``h`` is a name, a function of n, or n points, best place first; see `positional`.

    Scores that differ only by rounding tie: by less than 1e-9 of the total weight times the largest point.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    >>> by_points(votes, [3, 1, 0]).scores
    array([9., 9., 2.])
    """
    scores = positional(data, h, unlisted)
    largest = float(np.abs(_vector(h, data.n_items)(data.n_items)).max(initial=0.0))
    return Scored(scores, tolerance=RELATIVE_TOLERANCE * largest * float(data.weight.sum()))


def borda(data: Rankings | Comparisons, unlisted: UnlistedPlaces = "absent") -> Floats:
    """Borda count: an item gains one point for every item below it on a ballot, half a point for a tie.

    For pairs (`Comparisons`), it counts wins plus half of the ties.  O(rows).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> borda(Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]]))
    array([3., 3., 0.])
    """
    if isinstance(data, Comparisons):
        left = sum_by_item(data.i, data.wins_i + data.ties / 2, data.n_items)
        return left + sum_by_item(data.j, data.wins_j + data.ties / 2, data.n_items)
    return positional(ballots_of(data, "borda"), "borda", unlisted)


def plurality(data: Rankings, unlisted: UnlistedPlaces = "absent") -> Floats:
    """Number of first places.  O(rows).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    >>> plurality(votes)
    array([3., 2., 0.])
    """
    return positional(ballots_of(data, "plurality"), "plurality", unlisted)


def anti_plurality(data: Rankings, unlisted: UnlistedPlaces = "absent") -> Floats:
    """Number of places other than the last.  O(rows).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    >>> anti_plurality(votes)
    array([3., 5., 2.])
    """
    return positional(ballots_of(data, "anti-plurality"), "anti-plurality", unlisted)


def logarithmic(data: Rankings, unlisted: UnlistedPlaces = "absent") -> Floats:
    """h(i) = -log i: differences at the top count most.  O(rows).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    >>> logarithmic(votes).round(3)
    array([-2.197, -2.079, -4.682])
    """
    return positional(ballots_of(data, "log"), "log", unlisted)


def squared(data: Rankings, unlisted: UnlistedPlaces = "absent") -> Floats:
    """h(i) = -i^2: differences at the bottom count most.  O(rows).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    >>> squared(votes)
    array([-21., -14., -35.])
    """
    return positional(ballots_of(data, "squared"), "squared", unlisted)


def dowdall(data: Rankings, unlisted: UnlistedPlaces = "absent") -> Floats:
    """The Dowdall system of Nauru: place i is worth 1 / i.  O(rows).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    >>> dowdall(votes).round(2)
    array([3.67, 3.5 , 2.  ])
    """
    return positional(ballots_of(data, "dowdall"), "dowdall", unlisted)


def reciprocal(data: Rankings, k: float = 60.0) -> Floats:
    """Reciprocal rank fusion: the sum over ballots of 1 / (k + place); an unlisted item gains nothing.  O(rows).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    >>> reciprocal(votes, k=60).round(4)
    array([0.0809, 0.0812, 0.0799])
    """
    rankings = ballots_of(data, "rrf")
    if not k > -1:
        raise ValueError(f"k must be above -1, not {k}")
    first, size = tier_starts(rankings)
    points = mean_points(1.0 / (k + np.arange(1, rankings.n_items + 1, dtype=np.float64)), first, size)
    return sum_by_item(rankings.item, rankings.weight[rankings.ballot] * points, rankings.n_items)


def _vector(h: Any, n: int) -> Callable[[int], Floats]:
    """``h`` as a function of the number of places."""
    if isinstance(h, str):
        return lambda m: positional_vector(h, m)
    if callable(h):
        return lambda m: _points(h(m), m)
    points = _points(h, n)
    return lambda m: points[:m]


def _points(h: ArrayLike, n: int) -> Floats:
    points = np.asarray(h, dtype=np.float64)
    if points.shape != (n,) or not np.isfinite(points).all():
        raise DataError(f"h must be {n} finite points, one for each place, not of shape {points.shape}")
    return points
