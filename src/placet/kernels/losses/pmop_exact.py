"""General-state model over ordered partitions: a subset has weight e^{mean of its scores}; sums over all subsets.

The subsets of size m have total weight e_m(e^{s_1/m}, ..., e^{s_N/m}), e_m the elementary symmetric polynomial.  With
scores in descending order let f_j(i) be e_j of the first i, divided by its largest term, the product of the first j:

    f_j(i) = f_j(i - 1) + w_ij f_{j-1}(i - 1),    w_ij = e^{(s_i - s_j)/m} <= 1  for i >= j.

Terms are positive, weights at most 1, and 1 <= f_j(i) <= binom(i, j), so nothing can cancel, underflow or (up to 1,000
items) overflow, whatever the scores.  The same recurrence from the other end,

    g_j(i - 1) = g_j(i) + w_{i,j+1} g_{j+1}(i),

gives the probability that item i is in a subset of size m:  sum_j f_{j-1}(i - 1) w_ij g_j(i) / f_m(N).
One size costs O(m (N - m)), all sizes N^3 / 6 steps; memory is O(N^2).
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.losses.pmop import row_sum, scale_rows
from placet.kernels.ranges import find_tiers, longest
from placet.kernels.vector import exp

MOST_ROWS = 1000  # binom(1000, 500) = 2.7e299 still fits in float64


@jit(fastmath={"contract"})
def weights_row(s, i, rate, low, high, w):
    """w[j] = e^{(s_i - s_j) rate} for j in low..high; items are numbered from 1, so s[i - 1] is item i."""
    x, y, out = s[i - 1], s[low - 1 : high], w[low : high + 1]
    for j in range(len(out)):
        out[j] = exp((x - y[j]) * rate)


@jit(fastmath={"contract"})
def forward_row(before, w, row, low, high):
    """row[j] = f_j(i) for j in low..high from before[j] = f_j(i - 1)."""
    stay, take, way, out = before[low : high + 1], before[low - 1 : high], w[low : high + 1], row[low : high + 1]
    for j in range(len(out)):
        out[j] = stay[j] + way[j] * take[j]


@jit()
def forward_table(s, m, w, f):
    """w[i, j] = w_ij, f[i, j] = f_j(i) for all cells on paths from (0, 0) to (N, m); returns log e_m.  O(m (N - m))."""
    n = len(s)
    f[0, 0] = 1.0
    for i in range(1, n + 1):
        low, high = max(1, m - (n - i)), min(i, m)
        weights_row(s, i, 1.0 / m, low, high, w[i])
        f[i, 0] = 1.0
        f[i - 1, i] = 0.0  # i items cannot be chosen from i - 1
        forward_row(f[i - 1], w[i], f[i], low, high)
    return row_sum(s, 0, m) / m + math.log(f[n, m])


@jit(fastmath={"reassoc", "contract"})
def through(before, w, after, low, high):
    """sum_j before[j - 1] w[j] after[j]: total weight of the subsets that contain this item."""
    take, way, rest = before[low - 1 : high], w[low : high + 1], after[low : high + 1]
    total = 0.0
    for j in range(len(rest)):
        total += take[j] * way[j] * rest[j]
    return total


@jit(fastmath={"contract"})
def backward_row(after, w, row, low, high):
    """row[j] = g_j(i - 1) for j in low..high from after[j] = g_j(i) and w[j] = w_ij."""
    stay, take, way, out = after[low : high + 1], after[low + 1 : high + 2], w[low + 1 : high + 2], row[low : high + 1]
    for j in range(len(out)):
        out[j] = stay[j] + way[j] * take[j]


@jit()
def inclusions(n, m, w, f, after, row, out):
    """out[i] = P(i in S) given |S| = m, from the tables of `forward_table`.  O(m (N - m))."""
    after[:] = 0.0
    after[m] = 1.0
    for i in range(n, 0, -1):
        out[i - 1] = through(f[i - 1], w[i], after, max(1, m - (n - i)), min(i, m)) / f[n, m]
        low = max(0, m - (n - i) - 1)
        w[i, m + 1] = 0.0
        row[m + 1] = 0.0
        row[max(low - 1, 0)] = 0.0  # too few items remain to reach m
        backward_row(after, w[i], row, low, min(i - 1, m))
        after, row = row, after


@jit()
def subset_moments(s, first, second):
    """Return log sum_S e^{mean of s over S}; write E[1_i / |S|] to ``first`` and E[1_i / |S|^2] to ``second``.

    ``s`` must be descending.  Sizes are summed in turn, relative to the largest weight so far.  O(N^3).
    """
    n = len(s)
    w, f = np.empty((n + 1, n + 2)), np.empty((n + 1, n + 2))
    after, row, member = np.empty(n + 2), np.empty(n + 2), np.empty(n)
    first[:] = 0.0
    second[:] = 0.0
    top, total = -np.inf, 0.0
    for m in range(1, n + 1):
        size = forward_table(s, m, w, f)
        inclusions(n, m, w, f, after, row, member)
        if size > top:
            shrink = math.exp(top - size)
            total *= shrink
            scale_rows(first, 0, n, shrink)
            scale_rows(second, 0, n, shrink)
            top = size
        share = math.exp(size - top)
        total += share
        for i in range(n):
            first[i] += share * member[i] / m
            second[i] += share * member[i] / (m * m)
    scale_rows(first, 0, n, 1.0 / total)
    scale_rows(second, 0, n, 1.0 / total)
    return top + math.log(total)


@jit()
def pmop_exact(s, grade, offsets, weight, values, grad):
    """sum_k log sum_{S in R_k} e^{mean_S s} - mean_{X_k} s.  O(N_k^3) per stage."""
    rows = longest(offsets)
    start = np.empty(rows + 1, np.int64)
    first, second = np.empty(rows), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        n_tiers = find_tiers(grade, a, b, start)
        for t in range(n_tiers):
            i, j = start[t], start[t + 1]
            order = np.argsort(-s[i:b])
            n = b - i
            moments = subset_moments(s[i:b][order], first[:n], second[:n])
            values[q] += weight[q] * (moments - row_sum(s, i, j) / (j - i))
            for r in range(n):
                grad[i + order[r]] += weight[q] * first[r]
            for r in range(i, j):
                grad[r] -= weight[q] / (j - i)


@jit()
def pmop_exact_curvature(s, grade, offsets, weight, out):
    """sum_k Var(1_i / |S|) over the subsets S of R_k: the Hessian's diagonal.  O(N_k^3) per stage."""
    rows = longest(offsets)
    start = np.empty(rows + 1, np.int64)
    first, second = np.empty(rows), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        n_tiers = find_tiers(grade, a, b, start)
        for t in range(n_tiers):
            i = start[t]
            order = np.argsort(-s[i:b])
            n = b - i
            subset_moments(s[i:b][order], first[:n], second[:n])
            for r in range(n):
                out[i + order[r]] += weight[q] * max(second[r] - first[r] * first[r], 0.0)


@jit(fastmath={"contract"})
def slope_row(before, turning, w, v, i, rate, low, high, row):
    """row[j], the derivative of f_j(i) along v for j in low..high; that of w_ij is w_ij (v_i - v_j) rate."""
    stay, take = turning[low : high + 1], turning[low - 1 : high]
    kept, way, y, out = before[low - 1 : high], w[low : high + 1], v[low - 1 : high], row[low : high + 1]
    x = v[i - 1]
    for j in range(len(out)):
        out[j] = stay[j] + way[j] * (take[j] + (x - y[j]) * rate * kept[j])


@jit()
def forward_slopes(v, m, w, f, df):
    """df[i, j], the derivative of f_j(i) along v; returns that of log e_m.  O(m (N - m))."""
    n = len(v)
    df[0, 0] = 0.0
    for i in range(1, n + 1):
        df[i, 0] = 0.0
        df[i - 1, i] = 0.0
        slope_row(f[i - 1], df[i - 1], w[i], v, i, 1.0 / m, max(1, m - (n - i)), min(i, m), df[i])
    return row_sum(v, 0, m) / m + df[n, m] / f[n, m]


@jit(fastmath={"reassoc", "contract"})
def through_slope(before, turning, w, v, i, rate, after, turned, low, high):
    """The derivative of `through` along v, by the product rule for its three factors."""
    take, kept, way, y = turning[low - 1 : high], before[low - 1 : high], w[low : high + 1], v[low - 1 : high]
    rest, turn = after[low : high + 1], turned[low : high + 1]
    x = v[i - 1]
    total = 0.0
    for j in range(len(rest)):
        total += way[j] * ((take[j] + (x - y[j]) * rate * kept[j]) * rest[j] + kept[j] * turn[j])
    return total


@jit(fastmath={"contract"})
def backward_slope_row(after, turned, w, v, i, rate, low, high, row):
    """row[j], the derivative of g_j(i - 1) along v for j in low..high."""
    stay, take = turned[low : high + 1], turned[low + 1 : high + 2]
    kept, way, y, out = after[low + 1 : high + 2], w[low + 1 : high + 2], v[low : high + 1], row[low : high + 1]
    x = v[i - 1]
    for j in range(len(y)):
        out[j] = stay[j] + way[j] * (take[j] + (x - y[j]) * rate * kept[j])


@jit()
def inclusion_slopes(v, m, w, f, df, member, g, dg, out):
    """out[i], the derivative of P(i in S) given |S| = m along v; ``g`` and ``dg`` are scratch.  O(m (N - m))."""
    n = len(v)
    after, row, turned, turned_row = g[0], g[1], dg[0], dg[1]
    after[:] = 0.0
    turned[:] = 0.0
    after[m] = 1.0
    for i in range(n, 0, -1):
        low, high = max(1, m - (n - i)), min(i, m)
        slope = through_slope(f[i - 1], df[i - 1], w[i], v, i, 1.0 / m, after, turned, low, high)
        out[i - 1] = (slope - member[i - 1] * df[n, m]) / f[n, m]
        low, high = max(0, m - (n - i) - 1), min(i - 1, m)
        for edge in (m + 1, max(low - 1, 0)):
            row[edge] = 0.0
            turned_row[edge] = 0.0
        backward_row(after, w[i], row, low, high)
        backward_slope_row(after, turned, w[i], v, i, 1.0 / m, low, high, turned_row)
        after, row = row, after
        turned, turned_row = turned_row, turned


@jit()
def subset_slopes(s, v, out):
    """out[i], the derivative of E[1_i / |S|] along v: Cov(1_i / |S|, mean of v over S).  O(N^3)."""
    n = len(s)
    w, f, df = np.empty((n + 1, n + 2)), np.empty((n + 1, n + 2)), np.empty((n + 1, n + 2))
    after, row, member, turn = np.empty(n + 2), np.empty(n + 2), np.empty(n), np.empty(n)
    g, dg, mean = np.empty((2, n + 2)), np.empty((2, n + 2)), np.zeros(n)
    out[:] = 0.0
    top, total, drift = -np.inf, 0.0, 0.0
    for m in range(1, n + 1):
        size = forward_table(s, m, w, f)
        inclusions(n, m, w, f, after, row, member)
        slope = forward_slopes(v, m, w, f, df)
        inclusion_slopes(v, m, w, f, df, member, g, dg, turn)
        if size > top:
            shrink = math.exp(top - size)
            total *= shrink
            drift *= shrink
            scale_rows(mean, 0, n, shrink)
            scale_rows(out, 0, n, shrink)
            top = size
        share = math.exp(size - top)
        total += share
        drift += share * slope
        for i in range(n):
            mean[i] += share * member[i] / m
            out[i] += share * (slope * member[i] + turn[i]) / m
    for i in range(n):
        out[i] = (out[i] - drift / total * mean[i]) / total


@jit()
def pmop_exact_hvp(s, grade, offsets, weight, out, v):
    """sum_k Cov(1_i / |S|, mean of v over S) over the subsets S of R_k.  O(N_k^3) per stage."""
    rows = longest(offsets)
    start = np.empty(rows + 1, np.int64)
    slopes = np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        n_tiers = find_tiers(grade, a, b, start)
        for t in range(n_tiers):
            i = start[t]
            order = np.argsort(-s[i:b])
            subset_slopes(s[i:b][order], v[i:b][order], slopes[: b - i])
            for r in range(b - i):
                out[i + order[r]] += weight[q] * slopes[r]
