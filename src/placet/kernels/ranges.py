"""Lists of rows: check and establish their order in compiled code; find their lengths and tiers."""

import numpy as np

from placet.kernels.jit import jit

ONE = np.uint64(1)  # row indices are unsigned in loops: signed ones would be checked for indexing from the end


@jit()
def is_descending(grade, offsets):
    """Whether the grades of every list are in descending order.  O(rows)."""
    for q in range(len(offsets) - 1):
        g = grade[offsets[q] : offsets[q + 1]]
        later, earlier = g[1:], g[: max(len(g) - 1, 0)]
        rises = 0  # counted to the end without early exit, so that the loop vectorizes
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
def begins_beyond(s, offsets, far):
    """Whether the first score of any list is above ``far`` or below ``-far``.  O(lists)."""
    beyond = False
    for q in range(len(offsets) - 1):
        beyond |= offsets[q + 1] > offsets[q] and abs(s[offsets[q]]) > far
    return beyond


@jit()
def descending_order(grade, offsets):
    """Row order that sorts each list by descending grade; rows of equal grade keep their order.  O(rows log rows)."""
    order = np.empty(len(grade), np.int64)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        order[a:b] = a + np.argsort(-grade[a:b], kind="mergesort")
    return order


@jit()
def longest(offsets):
    """Number of rows of the longest list.  O(lists)."""
    rows = 0
    for q in range(len(offsets) - 1):
        rows = max(rows, offsets[q + 1] - offsets[q])
    return rows


@jit()
def lowest_tier(grade, a, b):
    """First row of the lowest tier of the list of rows a..b (nonempty, in descending grade).  O(log rows)."""
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
    """Number of tiers of the list of rows a..b; writes their first rows, followed by b, to ``start``.

    O(rows above the lowest tier): the lowest, often by far the largest, is found by bisection.
    """
    n_tiers = min(1, b - a)
    start[0] = a
    end = min(lowest_tier(grade, a, b) + 1, b) if b > a else b
    for r in range(np.uint64(a) + ONE, np.uint64(end)):
        start[n_tiers] = r  # overwritten unless a tier starts here; a branch instead would be mispredicted
        n_tiers += grade[r] != grade[r - ONE]
    start[n_tiers] = b
    return n_tiers
