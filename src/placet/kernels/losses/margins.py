"""Hinge and quadratic losses of the margins d = s_i - s_j of pairs with i graded above j, in less than O(N^2).

Second derivatives are returned as  out_i = sum_j h_ij (v_i - other v_j)  over the pairs of i:  ``other`` = 1 gives the
Hessian times v, ``other`` = 0 with v = 1 its diagonal.
"""

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.ranges import find_tiers, longest


@jit()
def fenwick_add(tree, k, amount):
    """Add ``amount`` at index k of a binary indexed tree.  O(log len(tree))."""
    k += 1
    while k < len(tree):
        tree[k] += amount
        k += k & -k


@jit()
def fenwick_sum(tree, k):
    """Sum over the indices before k.  O(log len(tree))."""
    total = 0.0
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@jit()
def active_sums(s, tier, n_tiers, v, count_above, sum_above, count_below, sum_below):
    """For each row, count the rows graded above (below) it that form a pair with d < 1 with it, and sum their v.

    Visits rows by ascending score; a tree over the tiers holds the rows within reach of the current one.  O(N log N).
    """
    order = np.argsort(s)
    counts, sums = np.zeros(n_tiers + 1), np.zeros(n_tiers + 1)
    ahead = 0
    for r in order:  # rows i with s_i < s_r + 1, in tiers before that of r
        while ahead < len(s) and s[order[ahead]] < s[r] + 1.0:
            fenwick_add(counts, tier[order[ahead]], 1.0)
            fenwick_add(sums, tier[order[ahead]], v[order[ahead]])
            ahead += 1
        count_above[r] = fenwick_sum(counts, tier[r])
        sum_above[r] = fenwick_sum(sums, tier[r])
    counts[:] = 0.0
    sums[:] = 0.0
    behind = len(s) - 1
    for r in order[::-1]:  # rows j with s_r < s_j + 1, in tiers after that of r
        while behind >= 0 and s[r] < s[order[behind]] + 1.0:
            fenwick_add(counts, n_tiers - 1 - tier[order[behind]], 1.0)
            fenwick_add(sums, n_tiers - 1 - tier[order[behind]], v[order[behind]])
            behind -= 1
        count_below[r] = fenwick_sum(counts, n_tiers - 1 - tier[r])
        sum_below[r] = fenwick_sum(sums, n_tiers - 1 - tier[r])


@jit()
def tier_numbers(start, n_tiers, tier):
    """Write the tier of each row, 0 being the best.  O(rows)."""
    for t in range(n_tiers):
        tier[start[t] - start[0] : start[t + 1] - start[0]] = t


@jit()
def hinge(s, grade, offsets, weight, values, grad):
    """sum over i above j of max(0, 1 - d).  O(N log N) per list."""
    rows = longest(offsets)
    start, tier = np.empty(rows + 1, np.int64), np.empty(rows, np.int64)
    above, sum_above, below, sum_below = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        n_tiers = find_tiers(grade, a, b, start)
        if n_tiers < 2:
            continue
        tier_numbers(start, n_tiers, tier)
        x = s[a:b] - s[a:b].mean()
        active_sums(x, tier[: b - a], n_tiers, x, above, sum_above, below, sum_below)
        for r in range(b - a):
            values[q] += weight[q] * (above[r] * (1.0 + x[r]) - sum_above[r])
            grad[a + r] = weight[q] * (above[r] - below[r])


@jit()
def hinge_second(s, grade, offsets, weight, out, v, other):
    """h = 1 for pairs with d < 1: the second derivative of max(0, 1 - d)^2 / 2.  O(N log N) per list."""
    rows = longest(offsets)
    start, tier = np.empty(rows + 1, np.int64), np.empty(rows, np.int64)
    above, sum_above, below, sum_below = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        n_tiers = find_tiers(grade, a, b, start)
        if n_tiers < 2:
            continue
        tier_numbers(start, n_tiers, tier)
        x = s[a:b] - s[a:b].mean()
        active_sums(x, tier[: b - a], n_tiers, v[a:b], above, sum_above, below, sum_below)
        for r in range(b - a):
            pairs = above[r] + below[r]
            out[a + r] = weight[q] * (pairs * v[a + r] - other * (sum_above[r] + sum_below[r]))


@jit()
def tier_means(s, start, n_tiers, mean, scatter):
    """Mean of each tier and the sum of squares about it.  O(rows)."""
    for t in range(n_tiers):
        rows = s[start[t] : start[t + 1]]
        mean[t] = rows.mean()
        scatter[t] = ((rows - mean[t]) ** 2).sum()


@jit()
def quadratic(s, grade, offsets, weight, values, grad):
    """sum over i above j of (1 - d)^2.  O(rows).

    A tier of n rows with mean m and scatter S, and all rows below with n', m', S', contribute
    n n' (1 - m + m')^2 + n' S + n S', without cancellation.
    """
    rows = longest(offsets)
    start, mean, scatter = np.empty(rows + 1, np.int64), np.empty(rows), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        n_tiers = find_tiers(grade, a, b, start)
        tier_means(s, start, n_tiers, mean, scatter)
        n, m, spread = 0, 0.0, 0.0
        for t in range(n_tiers - 1, -1, -1):
            size, step = start[t + 1] - start[t], mean[t] - m
            values[q] += weight[q] * (size * n * (1.0 - step) ** 2 + n * scatter[t] + size * spread)
            for r in range(start[t], start[t + 1]):
                grad[r] -= weight[q] * 2.0 * n * (1.0 - s[r] + m)
            spread += scatter[t] + step * step * n * size / (n + size)
            m += step * size / (n + size)
            n += size
        n, m = 0, 0.0
        for t in range(n_tiers):
            for r in range(start[t], start[t + 1]):
                grad[r] += weight[q] * 2.0 * n * (1.0 - m + s[r])
            size = start[t + 1] - start[t]
            m += (mean[t] - m) * size / (n + size)
            n += size


@jit()
def quadratic_second(s, grade, offsets, weight, out, v, other):
    """h = 2 for every ordered pair.  O(rows)."""
    start = np.empty(longest(offsets) + 1, np.int64)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        total = v[a:b].sum()
        for t in range(find_tiers(grade, a, b, start)):
            i, j = start[t], start[t + 1]
            pairs, others = b - a - (j - i), total - v[i:j].sum()
            for r in range(i, j):
                out[r] = weight[q] * 2.0 * (pairs * v[r] - other * others)
