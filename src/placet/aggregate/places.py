"""Places on ballots: 1 is best, tied items share the mean of their places, unlisted items are treated explicitly."""

from typing import Any, Literal

import numpy as np

from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, Ints, tier_runs

UnlistedPlaces = Literal["absent", "last", "zero"]

MOST_ITEMS = 20_000
"""Maximum items for tables of pairs or places (3.2 GB each)."""


def ballots_of(data: Any, rule: str) -> Rankings:
    """The data if they are ballots; for pairs, an error that names the rule and alternatives."""
    if isinstance(data, Rankings):
        return data
    if isinstance(data, Comparisons):
        raise DataError(
            f"{rule!r} needs whole ballots, and {len(data)} pairs do not say which ballots they came from; "
            "use a rule of pairs, such as 'borda', 'copeland' or 'kemeny'"
        )
    raise TypeError(f"{rule!r} needs Rankings, not {type(data).__name__}; Rankings.from_orders makes them")


def tier_starts(rankings: Rankings) -> tuple[Ints, Ints]:
    """For each row, the place from 0 of the first row of its tier, and the size of that tier.  O(rows)."""
    starts, size = tier_runs(rankings.tier, rankings.offsets)
    first = starts - rankings.offsets[rankings.ballot[starts]]
    return np.repeat(first, size), np.repeat(size, size)


def refuse_many_places(n: int) -> None:
    """Raise ``DataError`` if a table (items, places) would be too large."""
    if n > MOST_ITEMS:
        raise DataError(f"{n} items are too many for a table of places (at most {MOST_ITEMS}); use 'median-rank'")


def mean_points(h: Floats, first: Ints, size: Ints) -> Floats:
    """Mean of ``h`` (points by place, from 0) over places first .. first + size - 1.  O(rows + places)."""
    alone = size == 1
    total = np.concatenate([[0.0], np.cumsum(h)])
    means = (total[first + size] - total[first]) / size
    return np.where(alone, h[np.minimum(first, len(h) - 1)], means) if len(h) else np.zeros(0)


def places(rankings: Rankings, unlisted: UnlistedPlaces = "absent") -> Floats:
    """Place of every row among all ``n_items``, 1 is best.

    Place p on a ballot of m of the n items becomes p (n + 1) / (m + 1), the expected place of that item among all n if
    the m were drawn at random; with ``unlisted="last"`` it stays p.  O(rows).
    """
    first, size = tier_starts(rankings)
    place = first + (size + 1) / 2
    if unlisted == "last":
        return place
    m = np.diff(rankings.offsets)[rankings.ballot]
    return place * (rankings.n_items + 1) / (m + 1)


def sum_by_item(item: Ints, value: Floats, n_items: int) -> Floats:
    """Sum of the values of each item's rows.  O(rows)."""
    return np.bincount(item, value, n_items).astype(np.float64)


def listed_weight(rankings: Rankings) -> Floats:
    """Weight of the ballots that list each item."""
    return sum_by_item(rankings.item, rankings.weight[rankings.ballot], rankings.n_items)
