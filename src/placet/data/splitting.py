"""Random splits into training and validation parts."""

import numpy as np

from placet.data.arrays import Ints


def hold_out(n: int, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Split 0 .. ``n`` - 1 at random, each part in ascending order: the rest, and a ``share`` held out.

    Both parts have at least one, if there are two.

    >>> rest, held_out = hold_out(10, 0.2, np.random.default_rng(0))
    >>> rest, held_out
    (array([0, 1, 2, 3, 5, 7, 8, 9]), array([4, 6]))
    """
    order = rng.permutation(n)
    size = min(max(1, round(share * n)), max(n - 1, 0))
    return np.sort(order[size:]), np.sort(order[:size])
