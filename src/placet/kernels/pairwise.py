"""Losses of ordered pairs, d = s_i - s_j with i graded above j, and of tied pairs: sums over all pairs of a list.

Second derivatives come as  out_i = sum_j h_ij (v_i - other v_j)  over the pairs of i:  ``other`` = 1 is the Hessian
times v, ``other`` = 0 with v = 1 its diagonal.
Loops with a division take NumPy's error model: a test for a zero divisor would keep them out of vector registers.
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.ranges import find_tiers, longest
from placet.kernels.vector import exp

BLOCK = 256  # rows per logarithm: factors of at most 2 are multiplied first, and 2^256 is far from overflow


@jit(fastmath={"contract"}, error_model="numpy")
def softplus_terms(x, s, sign, flat, factor, slope):
    """softplus(z) = flat + log(factor), z = sign s_j + x: flat = max(z, 0), factor = 1 + e^{-|z|}; and its slope."""
    for j in range(len(s)):
        z = sign * s[j] + x
        e = exp(-abs(z))
        flat[j] = z if z > 0.0 else 0.0
        factor[j] = 1.0 + e
        slope[j] = (1.0 if z > 0.0 else e) / (1.0 + e)


@jit(fastmath={"reassoc", "contract"})
def add_terms(flat, factor, slope, weight, grad):
    """grad += weight * slope; returns sum flat + log factor, and sum slope.

    Apart from `exp`, which no flag may reorder.
    """
    value, product, total = 0.0, 1.0, 0.0
    for j in range(len(grad)):
        value += flat[j]
        product *= factor[j]
        total += slope[j]
        grad[j] += weight * slope[j]
    return value + math.log(product), total


@jit()
def softplus_row(x, s, sign, weight, grad, flat, factor, slope):
    """sum_j softplus(sign s_j + x); grad += weight * slope_j; returns the sum and that of the slopes.

    O(len(s)), in blocks.
    """
    value, total = 0.0, 0.0
    for a in range(0, len(s), BLOCK):
        part = s[a : a + BLOCK]
        softplus_terms(x, part, sign, flat, factor, slope)
        here, slopes = add_terms(flat, factor, slope, weight, grad[a : a + BLOCK])
        value += here
        total += slopes
    return value, total


@jit()
def rao_kupper(s, grade, offsets, weight, grad, eta, ties, eta_slope):
    """sum over i above j of softplus(eta - d) and, with ``ties``, over tied pairs of softplus(eta - d) + softplus(eta
    + d).

    eta = log theta; the constant - log(theta^2 - 1) per tie is the caller's.  eta = 0 without ties is the logistic
    loss. ``eta_slope[a]`` becomes the derivative with respect to eta of the list that starts at row a.  O(N^2) per
    list.
    """
    start = np.empty(longest(offsets) + 1, np.int64)
    flat, factor, slope = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    value = 0.0
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        w = weight[q]
        for t in range(find_tiers(grade, a, b, start)):
            end = start[t + 1]
            for i in range(start[t], end):
                here, pull = softplus_row(eta - s[i], s[end:b], 1.0, w, grad[end:b], flat, factor, slope)
                grad[i] -= w * pull
                if ties:
                    tied, tied_grad = s[i + 1 : end], grad[i + 1 : end]
                    up, up_pull = softplus_row(eta - s[i], tied, 1.0, w, tied_grad, flat, factor, slope)
                    down, down_pull = softplus_row(eta + s[i], tied, -1.0, -w, tied_grad, flat, factor, slope)
                    grad[i] += w * (down_pull - up_pull)
                    here += up + down
                    pull += up_pull + down_pull
                value += w * here
                eta_slope[a] += w * pull
    return value


@jit(fastmath={"contract"}, error_model="numpy")
def logistic_bends(x, s, bend):
    """bend_j = p (1 - p), p the logistic function of x - s_j: the same at s_j - x."""
    for j in range(len(s)):
        e = exp(-abs(x - s[j]))
        bend[j] = e / ((1.0 + e) * (1.0 + e))


@jit(fastmath={"reassoc", "contract"})
def add_bends(bend, v_i, v, other, weight, out):
    """out_j += weight * bend_j (v_j - other v_i); returns sum_j bend_j (v_i - other v_j)."""
    total = 0.0
    for j in range(len(bend)):
        total += bend[j] * (v_i - other * v[j])
        out[j] += weight * bend[j] * (v[j] - other * v_i)
    return total


@jit()
def rao_kupper_second(s, grade, offsets, weight, out, v, other, eta, ties):
    """Second derivatives of `rao_kupper` in s: h = p (1 - p) at p = logistic(eta - d), for a tie also at eta + d.

    O(N^2).
    """
    rows = longest(offsets)
    start, bend = np.empty(rows + 1, np.int64), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        w = weight[q]
        for t in range(find_tiers(grade, a, b, start)):
            end = start[t + 1]
            for i in range(start[t], end):
                logistic_bends(s[i] - eta, s[end:b], bend)
                out[i] += w * add_bends(bend[: b - end], v[i], v[end:b], other, w, out[end:b])
                if ties:
                    for shift in (-eta, eta):
                        logistic_bends(s[i] + shift, s[i + 1 : end], bend)
                        out[i] += w * add_bends(bend[: end - i - 1], v[i], v[i + 1 : end], other, w, out[i + 1 : end])
    return 0.0


@jit(fastmath={"contract"}, error_model="numpy")
def davidson_terms(x, s, nu, win, flat, factor, slope, tied):
    """log(e^{d/2} + e^{-d/2} + nu) - win d/2 = flat + log(factor), d = x - s_j; its slopes in s_j and in log nu."""
    for j in range(len(s)):
        d = x - s[j]
        e = exp(-0.5 * abs(d))
        total = 1.0 + e * e + nu * e
        lost = 1.0 if d < 0.0 else e * e
        flat[j] = 0.5 * (abs(d) - win * d)
        factor[j] = total
        tied[j] = nu * e / total
        slope[j] = (lost + 0.5 * win * nu * e - 0.5 * (1.0 - win) * (1.0 + e * e)) / total


@jit()
def davidson_row(x, s, nu, win, weight, grad, scratch):
    """Sum of `davidson_terms` over s; grad += weight * slope; returns it and the sums of both slopes.

    O(len(s)), in blocks.
    """
    flat, factor, slope, tied = scratch[0], scratch[1], scratch[2], scratch[3]
    value, total, tie_total = 0.0, 0.0, 0.0
    block = scratch.shape[1]
    for a in range(0, len(s), block):
        part = s[a : a + block]
        davidson_terms(x, part, nu, win, flat, factor, slope, tied)
        here, slopes = add_terms(flat, factor, slope, weight, grad[a : a + block])
        value += here
        total += slopes
        tie_total += tied[: len(part)].sum()
    return value, total, tie_total


@jit()
def davidson(s, grade, offsets, weight, grad, nu, nu_slope):
    """sum over all pairs of log(e^{d/2} + e^{-d/2} + nu), less d/2 where i is above j.

    The constant - log nu per tie is the caller's.  ``nu_slope[a]`` becomes the derivative with respect to log nu of the
    list that starts at row a.  O(N^2) per list.
    """
    start = np.empty(longest(offsets) + 1, np.int64)
    scratch = np.empty((4, max(1, min(BLOCK, int(600.0 / math.log(2.0 + nu))))))  # (2 + nu)^block stays below e^600
    value = 0.0
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        w = weight[q]
        for t in range(find_tiers(grade, a, b, start)):
            end = start[t + 1]
            for i in range(start[t], end):
                won, won_pull, won_tie = davidson_row(s[i], s[end:b], nu, 1.0, w, grad[end:b], scratch)
                tie, tie_pull, tie_tie = davidson_row(s[i], s[i + 1 : end], nu, 0.0, w, grad[i + 1 : end], scratch)
                grad[i] -= w * (won_pull + tie_pull)
                value += w * (won + tie)
                nu_slope[a] += w * (won_tie + tie_tie)
    return value


@jit(fastmath={"contract"}, error_model="numpy")
def davidson_bends(x, s, nu, bend):
    """Second derivative of log(e^{d/2} + e^{-d/2} + nu): the variance of a win counted 1/2, a loss -1/2, a tie 0."""
    for j in range(len(s)):
        e = exp(-0.5 * abs(x - s[j]))
        factor = 1.0 + e * e + nu * e
        bend[j] = e * (e + 0.25 * nu * (1.0 + e * e)) / (factor * factor)


@jit()
def davidson_second(s, grade, offsets, weight, out, v, other, nu):
    """Second derivatives of `davidson` in s.  O(N^2) per list."""
    bend = np.empty(longest(offsets))
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        w = weight[q]
        for i in range(a, b):
            davidson_bends(s[i], s[i + 1 : b], nu, bend)
            out[i] += w * add_bends(bend[: b - i - 1], v[i], v[i + 1 : b], other, w, out[i + 1 : b])
    return 0.0


@jit()
def count_ties(grade, offsets, weight):
    """Weighted number of tied pairs.  O(rows)."""
    start = np.empty(longest(offsets) + 1, np.int64)
    total = 0.0
    for q in range(len(offsets) - 1):
        for t in range(find_tiers(grade, offsets[q], offsets[q + 1], start)):
            size = start[t + 1] - start[t]
            total += weight[q] * 0.5 * size * (size - 1.0)
    return total


@jit()
def fenwick_add(tree, k, amount):
    """Add to place k of a binary indexed tree.  O(log len(tree))."""
    k += 1
    while k < len(tree):
        tree[k] += amount
        k += k & -k


@jit()
def fenwick_sum(tree, k):
    """Sum of the places before k.  O(log len(tree))."""
    total = 0.0
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@jit()
def active_sums(s, tier, n_tiers, v, count_above, sum_above, count_below, sum_below):
    """For each row the number and the sum of v of the rows graded above (below) it with which its pair has d < 1.

    Rows by ascending score; a tree over the tiers holds the rows within reach of the current one.  O(N log N).
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
    """The tier of each row, 0 the best.  O(rows)."""
    for t in range(n_tiers):
        tier[start[t] - start[0] : start[t + 1] - start[0]] = t


@jit()
def hinge(s, grade, offsets, weight, grad):
    """sum over i above j of max(0, 1 - d).  O(N log N) per list."""
    rows = longest(offsets)
    start, tier = np.empty(rows + 1, np.int64), np.empty(rows, np.int64)
    above, sum_above, below, sum_below = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    value = 0.0
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        n_tiers = find_tiers(grade, a, b, start)
        if n_tiers < 2:
            continue
        tier_numbers(start, n_tiers, tier)
        x = s[a:b] - s[a:b].mean()
        active_sums(x, tier[: b - a], n_tiers, x, above, sum_above, below, sum_below)
        for r in range(b - a):
            value += weight[q] * (above[r] * (1.0 + x[r]) - sum_above[r])
            grad[a + r] = weight[q] * (above[r] - below[r])
    return value


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
    return 0.0


@jit()
def tier_means(s, start, n_tiers, mean, scatter):
    """Mean of each tier and the sum of squares about it.  O(rows)."""
    for t in range(n_tiers):
        rows = s[start[t] : start[t + 1]]
        mean[t] = rows.mean()
        scatter[t] = ((rows - mean[t]) ** 2).sum()


@jit()
def quadratic(s, grade, offsets, weight, grad):
    """sum over i above j of (1 - d)^2.  O(rows).

    A tier of n rows, mean m, scatter S against n', m', S' of all below: n n' (1 - m + m')^2 + n' S + n S'; nothing
    cancels.
    """
    rows = longest(offsets)
    start, mean, scatter = np.empty(rows + 1, np.int64), np.empty(rows), np.empty(rows)
    value = 0.0
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        n_tiers = find_tiers(grade, a, b, start)
        tier_means(s, start, n_tiers, mean, scatter)
        n, m, spread = 0, 0.0, 0.0
        for t in range(n_tiers - 1, -1, -1):
            size, step = start[t + 1] - start[t], mean[t] - m
            value += weight[q] * (size * n * (1.0 - step) ** 2 + n * scatter[t] + size * spread)
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
    return value


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
    return 0.0
