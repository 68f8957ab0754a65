"""Lists of rows: their order, checked and made without leaving compiled code; their lengths and their tiers."""

import numpy as np

from placet.kernels.jit import jit

ONE = np.uint64(1)  # rows count as unsigned in a loop: a signed one would be tested for counting from the end


@jit()
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


@jit()
def clear(column, offsets):
    """Set the rows of these lists to zero.  O(rows)."""
    column[offsets[0] : offsets[-1]] = 0.0


@jit()
def descending_order(grade, offsets):
    """Row order that puts each list in descending grade; rows of equal grade keep their order.  O(rows log rows)."""
    order = np.empty(len(grade), np.int64)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        order[a:b] = a + np.argsort(-grade[a:b], kind="mergesort")
    return order


@jit()
def longest(offsets):
    """Rows of the longest list.  O(lists)."""
    rows = 0
    for q in range(len(offsets) - 1):
        rows = max(rows, offsets[q + 1] - offsets[q])
    return rows


@jit()
def lowest_tier(grade, a, b):
    """First row of the lowest tier of the list of rows a..b (not empty, grades never rise).  O(log rows)."""
    low, high, least = a, b - 1, grade[b - 1]
    while low < high:
        middle = (low + high) // 2
        if grade[middle] > least:
            low = middle + 1
        else:
            high = middle
    return low


@jit()
def find_tiers(grade, a, b, start):
    """Number of tiers of the list of rows a..b; their first rows go to ``start``, followed by b.

    O(rows above the lowest tier): the lowest, often by far the largest, is found by halving.
    """
    n_tiers = min(1, b - a)
    start[0] = a
    end = min(lowest_tier(grade, a, b) + 1, b) if b > a else b
    for r in range(np.uint64(a) + ONE, np.uint64(end)):
        start[n_tiers] = r  # kept if a tier starts here; written always, since the branch would be mispredicted
        n_tiers += grade[r] != grade[r - ONE]
    start[n_tiers] = b
    return n_tiers
