"""StructRank: a cumulative distribution network over the preference edges of a list, with bivariate sigmoids.

An edge e = (i, j) joins two rows of a list with grade_i > grade_j; its margin is r_e = s_i - s_j.  A pair of edges
costs log(1 + e^(-w1 r_e) + e^(-w2 r_f)).  Edges are numbered by i, then j, and stored as one margin each: O(E) memory,
never O(E^2).
"""

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.losses.edge_pairs import add_pair, all_pairs, pair_term

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


@jit()
def first_below(grade, i, hi):
    """First row after ``i`` with a lower grade, or ``hi``; rows are in descending grade."""
    j = i + 1
    while j < hi and grade[j] == grade[i]:
        j += 1
    return j


@jit()
def disconnected(s, grade, offsets, weight, values, grad, slopes, w1, second):
    """sum_e log(1 + e^(-w1 r_e)); the derivative in w1 is added to slopes[list, 0].  O(E) time, O(1) memory.

    With ``second``, the diagonal of the Hessian is added to grad instead of the gradient.
    """
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        j0 = lo
        one = 0.0
        for i in range(lo, hi):
            if j0 < hi and (j0 <= i or grade[j0] == grade[i]):
                j0 = first_below(grade, i, hi)
            for j in range(j0, hi):
                r = s[i] - s[j]
                e = np.exp(-abs(w1 * r))
                p = e / (1.0 + e) if w1 * r >= 0.0 else 1.0 / (1.0 + e)
                one += np.log1p(e) + max(-w1 * r, 0.0)
                slopes[k, 0] -= weight[k] * r * p
                if second:
                    grad[i] += weight[k] * w1 * w1 * e / (1.0 + e) ** 2
                    grad[j] += weight[k] * w1 * w1 * e / (1.0 + e) ** 2
                else:
                    grad[i] -= weight[k] * w1 * p
                    grad[j] += weight[k] * w1 * p
        values[k] = weight[k] * one


@jit()
def partner(seed, counter, n):
    """Pseudorandom number below ``n``, determined by the list's seed and the counter (SplitMix64)."""
    z = seed + (np.uint64(counter) + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    z = z ^ (z >> np.uint64(31))
    return int(np.float64(z >> np.uint64(11)) * 2.0**-53 * n)


@jit()
def some_pairs(a, b, n_partners, seed, ga, gb):
    """``all_pairs`` restricted to ``n_partners`` edges f for every edge e, determined by the seed.  O(n_partners E)."""
    n = len(a)
    value = 0.0
    for e in range(n):
        for c in range(n_partners):
            f = partner(seed, e * n_partners + c, n)
            value += add_pair(a, b, e, f, ga, gb)
    return value


@jit()
def n_drawn(share, n):
    """Number of pairs to draw: ``share`` times ``n`` edges, rounded, at least 1."""
    return max(1, int(share * n + 0.5))


@jit()
def drawn_pairs(a, b, share, seed, ga, gb):
    """``all_pairs`` over share * E random pairs (e, f) of edges, determined by the seed.  O(share E)."""
    value = 0.0
    for c in range(n_drawn(share, len(a))):
        e, f = partner(seed, 2 * c, len(a)), partner(seed, 2 * c + 1, len(a))
        value += add_pair(a, b, e, f, ga, gb)
    return value


@jit()
def row_above(start, edge):
    """Row i whose edges start[i]:start[i + 1] include ``edge``.  O(log rows)."""
    low, high = 0, len(start) - 2
    while low < high:
        middle = (low + high + 1) // 2
        if start[middle] <= edge:
            low = middle
        else:
            high = middle - 1
    return low


@jit()
def sparsely(s, grade, offsets, weight, values, grad, slopes, w1, w2, share, seeds, second):
    """``connected`` over the pairs of ``drawn_pairs``, looking edges up by number: O(rows + share E log rows).

    Memory is O(rows): no edge is stored.
    """
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        n = count_edges(grade, lo, hi)
        if n == 0:
            continue
        start, below = np.zeros(hi - lo + 1, np.int64), np.empty(hi - lo, np.int64)
        j0 = lo
        for i in range(lo, hi):
            if j0 < hi and (j0 <= i or grade[j0] == grade[i]):
                j0 = first_below(grade, i, hi)
            below[i - lo] = j0
            start[i - lo + 1] = start[i - lo] + hi - j0
        one = 0.0
        for c in range(n_drawn(share, n)):
            e, f = partner(seeds[lo], 2 * c, n), partner(seeds[lo], 2 * c + 1, n)
            i, p = row_above(start, e), row_above(start, f)
            j, q = below[i] + e - start[i], below[p] + f - start[p]
            i, p = lo + i, lo + p
            r_e, r_f = s[i] - s[j], s[p] - s[q]
            v, ge, gf = pair_term(-w1 * r_e, -w2 * r_f)
            one += v
            slopes[k, 0] -= weight[k] * r_e * ge
            slopes[k, 1] -= weight[k] * r_f * gf
            first, last = weight[k] * w1 * ge, weight[k] * w2 * gf
            if second:
                grad[i] += w1 * first
                grad[j] += w1 * first
                grad[p] += w2 * last
                grad[q] += w2 * last
            else:
                grad[i] -= first
                grad[j] += first
                grad[p] -= last
                grad[q] += last
        values[k] = weight[k] * one


@jit()
def count_edges(grade, lo, hi):
    """Number of pairs of rows lo..hi with different grades.  O(rows)."""
    n, i = 0, lo
    while i < hi:
        j = first_below(grade, i, hi)
        n += (j - i) * (hi - j)
        i = j
    return n


@jit()
def connected(s, grade, offsets, weight, values, grad, slopes, w1, w2, n_partners, seeds, second):
    """sum of log(1 + e^(-w1 r_e) + e^(-w2 r_f)) over all (e, f), or over ``n_partners`` f per e if ``n_partners`` > 0.

    Derivatives in w1, w2 are added to slopes[list]; ``seeds`` holds a list's seed at its first row.  With ``second``,
    grad receives a bound on the diagonal of the Hessian: the sum of w1^2 p_e + w2^2 p_f over the pairs with an edge at
    the row (a second moment in place of a variance).  Costs as ``all_pairs``, or O(n_partners E); O(E) memory.
    """
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        n = count_edges(grade, lo, hi)
        if n == 0:
            continue
        r, a, b = np.empty(n), np.empty(n), np.empty(n)
        e, j0 = 0, lo
        for i in range(lo, hi):
            if j0 < hi and (j0 <= i or grade[j0] == grade[i]):
                j0 = first_below(grade, i, hi)
            for j in range(j0, hi):
                r[e] = s[i] - s[j]
                a[e], b[e] = -w1 * r[e], -w2 * r[e]
                e += 1
        ga, gb = np.zeros(n), np.zeros(n)
        if n_partners > 0:
            one = some_pairs(a, b, n_partners, seeds[lo], ga, gb)
        else:
            one = all_pairs(a, b, ga, gb)
        e, j0 = 0, lo
        for i in range(lo, hi):
            if j0 < hi and (j0 <= i or grade[j0] == grade[i]):
                j0 = first_below(grade, i, hi)
            for j in range(j0, hi):
                slopes[k, 0] -= weight[k] * r[e] * ga[e]
                slopes[k, 1] -= weight[k] * r[e] * gb[e]
                if second:
                    bound = weight[k] * (w1 * w1 * ga[e] + w2 * w2 * gb[e])
                    grad[i] += bound
                    grad[j] += bound
                else:
                    push = weight[k] * (w1 * ga[e] + w2 * gb[e])
                    grad[i] -= push
                    grad[j] += push
                e += 1
        values[k] = weight[k] * one


@jit()
def disconnected_second(s, grade, offsets, weight, out, w1):
    """Diagonal of the Hessian of `disconnected`."""
    n = len(offsets) - 1
    disconnected(s, grade, offsets, weight, np.zeros(n), out, np.zeros((n, 2)), w1, True)


@jit()
def sparsely_second(s, grade, offsets, weight, out, w1, w2, share, seeds):
    """A bound on the diagonal of the Hessian of `sparsely`."""
    n = len(offsets) - 1
    sparsely(s, grade, offsets, weight, np.zeros(n), out, np.zeros((n, 2)), w1, w2, share, seeds, True)


@jit()
def connected_second(s, grade, offsets, weight, out, w1, w2, n_partners, seeds):
    """A bound on the diagonal of the Hessian of `connected`."""
    n = len(offsets) - 1
    connected(s, grade, offsets, weight, np.zeros(n), out, np.zeros((n, 2)), w1, w2, n_partners, seeds, True)
