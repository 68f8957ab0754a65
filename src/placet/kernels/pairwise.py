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

LEAST_TIE = -1e5  # e to this is 0 already, and arithmetic with it is finite
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
def rao_kupper_rows(s, start, n_tiers, eta, ties, w, grad, flat, factor, slope):
    """Of one list: the sum over i above j of softplus(eta - d) and, with ``ties``, over tied pairs of softplus(eta - d)
    + softplus(eta + d); its derivative in eta; the number of tied pairs.  Adds w times the gradient.  O(N^2).
    """
    value, by_eta, tied_pairs, b = 0.0, 0.0, 0.0, start[n_tiers]
    for t in range(n_tiers):
        end = start[t + 1]
        tied_pairs += 0.5 * (end - start[t]) * (end - start[t] - 1.0)
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
            value += here
            by_eta += pull
    return value, by_eta, tied_pairs


@jit()
def ranknet(s, grade, offsets, weight, values, grad):
    """sum over i above j of softplus(-d).  O(N^2) per list."""
    start = np.empty(longest(offsets) + 1, np.int64)
    flat, factor, slope = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for q in range(len(offsets) - 1):
        n_tiers = find_tiers(grade, offsets[q], offsets[q + 1], start)
        value, _, _ = rao_kupper_rows(s, start, n_tiers, 0.0, False, weight[q], grad, flat, factor, slope)
        values[q] = weight[q] * value


@jit()
def rao_kupper(s, grade, offsets, weight, values, grad, slopes, eta, tie_gain, eta_by_tie, gain_by_tie):
    """sum over i above j of softplus(eta - d) and over tied pairs of softplus(eta - d) + softplus(eta + d) - tie_gain.

    ``slopes[q, 0]``: the derivative in the tie parameter, given those of eta and of ``tie_gain``.  O(N^2) per list.
    """
    start = np.empty(longest(offsets) + 1, np.int64)
    flat, factor, slope = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for q in range(len(offsets) - 1):
        n_tiers = find_tiers(grade, offsets[q], offsets[q + 1], start)
        value, by_eta, tied = rao_kupper_rows(s, start, n_tiers, eta, True, weight[q], grad, flat, factor, slope)
        if tied > 0.0:  # no tied pairs at an infinite cost cost nothing
            value -= tied * tie_gain
        values[q] = weight[q] * value
        slopes[q, 0] = weight[q] * (eta_by_tie * by_eta - tied * gain_by_tie)


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


@jit(fastmath={"contract"}, error_model="numpy")
def davidson_terms(x, s, tie, win, flat, factor, slope, tied):
    """log(e^{d/2} + e^{-d/2} + e^tie) - win d/2 = flat + log(factor), d = x - s_j, 1 <= factor <= 3; its derivatives in
    s_j and in ``tie``, which may be of any size.
    """
    for j in range(len(s)):
        d = x - s[j]
        half = 0.5 * abs(d)
        z = tie - half
        square, y = exp(-2.0 * half), exp(-abs(z))
        one, nu = (y, 1.0) if z > 0.0 else (1.0, y)  # the larger side and the tie, over the largest of the three
        total = one + one * square + nu
        won, lost = (one, one * square) if d > 0.0 else (one * square, one)
        flat[j] = half - 0.5 * win * d + (z if z > 0.0 else 0.0)
        factor[j] = total
        tied[j] = nu / total
        slope[j] = (win * (lost + 0.5 * nu) + (1.0 - win) * 0.5 * (lost - won)) / total


@jit()
def davidson_row(x, s, tie, win, weight, grad, scratch):
    """Sum of `davidson_terms` over s; grad += weight * slope; returns it and the sums of both derivatives.

    O(len(s)), in blocks.
    """
    flat, factor, slope, tied = scratch[0], scratch[1], scratch[2], scratch[3]
    value, total, tie_total = 0.0, 0.0, 0.0
    for a in range(0, len(s), BLOCK):
        part = s[a : a + BLOCK]
        davidson_terms(x, part, tie, win, flat, factor, slope, tied)
        here, slopes = add_terms(flat, factor, slope, weight, grad[a : a + BLOCK])
        value += here
        total += slopes
        tie_total += tied[: len(part)].sum()
    return value, total, tie_total


@jit()
def davidson(s, grade, offsets, weight, values, grad, slopes, tie):
    """sum over all pairs of log(e^{d/2} + e^{-d/2} + e^tie), less d/2 where i is above j and less tie where they tie.

    ``slopes[q, 0]``: the derivative in ``tie``.  O(N^2) per list.
    """
    start = np.empty(longest(offsets) + 1, np.int64)
    scratch, room = np.empty((4, BLOCK)), max(tie, LEAST_TIE)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        w = weight[q]
        value, by_tie, tied_pairs = 0.0, 0.0, 0.0
        for t in range(find_tiers(grade, a, b, start)):
            end = start[t + 1]
            tied_pairs += 0.5 * (end - start[t]) * (end - start[t] - 1.0)
            for i in range(start[t], end):
                won, won_pull, won_tie = davidson_row(s[i], s[end:b], room, 1.0, w, grad[end:b], scratch)
                even, pull, even_tie = davidson_row(s[i], s[i + 1 : end], room, 0.0, w, grad[i + 1 : end], scratch)
                grad[i] -= w * (won_pull + pull)
                value += won + even
                by_tie += won_tie + even_tie
        if tied_pairs > 0.0:  # no tied pairs at an infinite cost cost nothing
            value -= tied_pairs * tie
        values[q] = w * value
        slopes[q, 0] = w * (by_tie - tied_pairs)


@jit(fastmath={"contract"}, error_model="numpy")
def davidson_bends(x, s, tie, bend):
    """Second derivative of log(e^{d/2} + e^{-d/2} + e^tie): the variance of a win counted 1/2, a loss -1/2, a tie 0."""
    for j in range(len(s)):
        half = 0.5 * abs(x - s[j])
        z = tie - half
        square, y = exp(-2.0 * half), exp(-abs(z))
        one, nu = (y, 1.0) if z > 0.0 else (1.0, y)
        total = one + one * square + nu
        bend[j] = one * (one * square + 0.25 * nu * (1.0 + square)) / (total * total)


@jit()
def davidson_second(s, grade, offsets, weight, out, v, other, tie):
    """Second derivatives of `davidson` in s.  O(N^2) per list."""
    bend = np.empty(longest(offsets))
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        w = weight[q]
        for i in range(a, b):
            davidson_bends(s[i], s[i + 1 : b], max(tie, LEAST_TIE), bend)
            out[i] += w * add_bends(bend[: b - i - 1], v[i], v[i + 1 : b], other, w, out[i + 1 : b])


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

    A tier of n rows, mean m, scatter S against n', m', S' of all below: n n' (1 - m + m')^2 + n' S + n S'; nothing
    cancels.
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
