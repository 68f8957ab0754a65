"""Order of rows inside lists: checked and made without leaving compiled code."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def is_descending(grade, offsets):
    """Whether the grades of every list never rise.  O(rows)."""
    for q in range(len(offsets) - 1):
        g = grade[offsets[q] : offsets[q + 1]]
        later, earlier = g[1:], g[: max(len(g) - 1, 0)]
        rises = 0  # counted to the end, without a way out: so the loop runs in vector registers
        for r in range(len(later)):
            rises += later[r] > earlier[r]
        if rises:
            return False
    return True


@njit(cache=True, nogil=True)
def descending_order(grade, offsets):
    """Row order that puts each list in descending grade; rows of equal grade keep their order.  O(rows log rows)."""
    order = np.empty(len(grade), np.int64)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        order[a:b] = a + np.argsort(-grade[a:b], kind="mergesort")
    return order
