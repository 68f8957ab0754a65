"""Scores of rules whose answer is an order: places by several keys, and notes on ties broken in several ways."""

import numpy as np

from placet.data.arrays import Floats, Ints

MOST_UNIVERSES = 256
"""Maximum tie-breaking outcomes to explore; beyond, equals are treated alike."""


def scores_of(places: Ints) -> Floats:
    """Minus the number of items before each."""
    return 0.0 - places.astype(np.float64)


def places_by(*keys: tuple[Floats, float]) -> Ints:
    """Number of items before each one, sorted by the first key, then by the second, ...; lower comes first.

    Every key has a tolerance within which values are equal.
    """
    n = len(keys[0][0])
    group = np.zeros(n, np.int64)
    for values, close in keys:
        order = np.lexsort((values, group))
        new = np.diff(group[order], prepend=-1) > 0
        new |= np.diff(values[order], prepend=-np.inf) > close
        group[order] = np.cumsum(new) - 1
    size = np.bincount(group, minlength=1)
    return (np.cumsum(size) - size)[group]


def check_seats(seats: int, n_items: int) -> int:
    """Seats as a whole number of at least 1 and at most the number of items."""
    if not (isinstance(seats, int | np.integer) and 1 <= seats <= max(n_items, 1)):
        raise ValueError(f"seats must be a whole number in 1..{n_items}, the number of items, not {seats}")
    return int(seats)


def ties_note(ways: int, where: str) -> tuple[str, ...]:
    """A note that ties were broken in several ways; empty if there was only one."""
    if ways <= 1:
        return ()
    return (f"ties {where} have {ways} outcomes: an item's place is the best that it reaches in any of them",)
