"""Smooth approximations of NDCG: ApproxNDCG (smooth places) and NeuralNDCG (smooth sorting).

Gains are divided by the ideal DCG.  The loss of a list is 1 - NDCG, or 0 without gains.
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.losses.pairs import softplus
from placet.kernels.losses.softmax import softmax
from placet.kernels.ranges import longest
from placet.kernels.sums import total

LN2 = 0.6931471805599453


@jit(fastmath={"contract"}, error_model="numpy")
def steps(x, s, temperature, share, slope):
    """Logistic function of (s_j - x) / temperature and its derivative in s_j."""
    for j in range(len(s)):
        z = (s[j] - x) / temperature
        _, e = softplus(z)
        one = 1.0 / (1.0 + e)
        share[j] = one if z > 0.0 else e * one
        slope[j] = e * one * one / temperature


@jit()
def discount_at(place):
    """D = 1 / log2(1 + place) at a real-valued place, and its first and second derivatives."""
    size = math.log(1.0 + place)
    first = LN2 / (size * size * (1.0 + place))
    return LN2 / size, -first, first * (2.0 + size) / (size * (1.0 + place))


@jit()
def approx_ndcg(s, gain, offsets, weight, values, grad, temperature):
    """1 - sum_i g_i D(1/2 + sum_j logistic((s_j - s_i) / temperature)).  O(rows with a gain x rows) per list."""
    n = longest(offsets)
    share, slope = np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        value, some = 1.0, False
        for i in range(a, b):
            if gain[i] == 0.0:
                continue
            some = True
            steps(s[i], s[a:b], temperature, share, slope)
            d, first, _ = discount_at(0.5 + total(share[: b - a]))
            value -= gain[i] * d
            pull = -weight[q] * gain[i] * first
            for j in range(b - a):
                grad[a + j] += pull * slope[j]
            grad[i] -= pull * total(slope[: b - a])
        values[q] = weight[q] * value if some else 0.0


@jit()
def approx_ndcg_curvature(s, gain, offsets, weight, out, temperature):
    """A bound on the Hessian's diagonal: sum over pairs of g_i abs(D'_i) times the logistic's slope over temperature.

    The term in D'' is negative, and the logistic's second derivative is at most its slope over the temperature.
    """
    n = longest(offsets)
    share, slope = np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        for i in range(a, b):
            if gain[i] == 0.0:
                continue
            steps(s[i], s[a:b], temperature, share, slope)
            _, first, _ = discount_at(0.5 + total(share[: b - a]))
            slope[i - a] = 0.0
            pull = -weight[q] * gain[i] * first / temperature
            for j in range(b - a):
                out[a + j] += pull * slope[j]
            out[i] += pull * total(slope[: b - a])


@jit()
def approx_ndcg_hvp(s, gain, offsets, weight, out, v, temperature):
    """Hessian times v: with m_i the derivative of place i along v and h_ij the logistic's second derivative,
    - g_i (D''_i m_i slope_ij + D'_i h_ij (v_j - v_i)) at j and minus the sum of these over j at i.
    """
    n = longest(offsets)
    share, slope = np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        for i in range(a, b):
            if gain[i] == 0.0:
                continue
            steps(s[i], s[a:b], temperature, share, slope)
            _, first, second = discount_at(0.5 + total(share[: b - a]))
            moved, back = 0.0, 0.0
            for j in range(b - a):
                moved += slope[j] * (v[a + j] - v[i])
            for j in range(b - a):
                bend = slope[j] * (1.0 - 2.0 * share[j]) / temperature
                change = second * moved * slope[j] + first * bend * (v[a + j] - v[i])
                out[a + j] -= weight[q] * gain[i] * change
                back += change
            out[i] += weight[q] * gain[i] * back


@jit()
def distances(s, order, out, signs):
    """out_i = sum_j abs(s_i - s_j), signs_i = sum_j sign(s_i - s_j); ``order`` sorts s in ascending order.  O(rows)."""
    n = len(s)
    whole = 0.0
    for r in range(n):
        whole += s[r] - s[order[0]]
    below, first = 0.0, 0
    while first < n:
        x, last = s[order[first]] - s[order[0]], first
        while last < n and s[order[last]] == s[order[first]]:
            last += 1
        above = whole - below - x * (last - first)
        for p in range(first, last):
            out[order[p]] = x * first - below + above - x * (n - last)
            signs[order[p]] = first - (n - last)
        below += x * (last - first)
        first = last


@jit()
def pull_of_distances(s, order, pull, out):
    """out_i += sum_j (pull_i + pull_j) sign(s_i - s_j).  O(rows)."""
    n, whole, below, first = len(s), total(pull), 0.0, 0
    while first < n:
        last, here = first, 0.0
        while last < n and s[order[last]] == s[order[first]]:
            here += pull[order[last]]
            last += 1
        for p in range(first, last):
            r = order[p]
            out[r] += pull[r] * (first - (n - last)) + below - (whole - below - here)
        below += here
        first = last


@jit()
def relaxed_row(s, apart, place, temperature, p):
    """Row ``place`` (1 is the top) of NeuralSort's matrix: softmax of ((n + 1 - 2 place) s - apart) / temperature."""
    n = len(s)
    for i in range(n):
        p[i] = ((n + 1.0 - 2.0 * place) * s[i] - apart[i]) / temperature
    softmax(p, 0, n, p)


@jit()
def neural_ndcg(s, gain, offsets, weight, values, grad, discount, k, temperature):
    """1 - sum over places up to k of D times the mean gain under NeuralSort's row.  O(N log N + k N) per list."""
    n = longest(offsets)
    apart, signs, p, pull, back = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        m = b - a
        if m < 2 or gain[a:b].max() == 0.0:
            continue
        x, g, order = s[a:b], gain[a:b], np.argsort(s[a:b])
        distances(x, order, apart[:m], signs[:m])
        pull[:m], back[:m] = 0.0, 0.0
        value = 1.0
        for place in range(1, min(k, m) + 1):
            relaxed_row(x, apart[:m], place, temperature, p[:m])
            mean = 0.0
            for i in range(m):
                mean += p[i] * g[i]
            d = discount[place - 1]
            value -= d * mean
            for i in range(m):
                t = -d * p[i] * (g[i] - mean) / temperature
                back[i] += t * (m + 1.0 - 2.0 * place)
                pull[i] -= t
        pull_of_distances(x, order, pull[:m], back[:m])
        values[q] = weight[q] * value
        for i in range(m):
            grad[a + i] = weight[q] * back[i]


SCALED = 1e-11  # tolerance of the column sums of a scaled matrix


@jit()
def scale_to_sums_of_one(P, n, steps, columns, rows):
    """Sinkhorn scaling of P (n, n) in place: divide columns, then rows, by their sums, at most ``steps`` times.

    Stops once all columns sum to 1.  ``columns[t]`` and ``rows[t]`` store the divisors of step t.  No sum is 0: the
    largest entry of each row of NeuralSort's matrix is at least 1 / n, and every column has such an entry.  Returns the
    number of steps taken.  O(n^2) each.
    """
    for t in range(steps):
        columns[t, :n] = 0.0
        for r in range(n):
            for i in range(n):
                columns[t, i] += P[r, i]
        apart = 0.0
        for i in range(n):
            apart = max(apart, abs(columns[t, i] - 1.0))
        if apart <= SCALED:
            return t
        for r in range(n):
            rows[t, r] = 0.0
            for i in range(n):
                P[r, i] /= columns[t, i]
                rows[t, r] += P[r, i]
            for i in range(n):
                P[r, i] /= rows[t, r]
    return steps


@jit()
def pull_through_scaling(P, G, n, taken, columns, rows, inside):
    """Backpropagate the gradient G (n, n) through the scaling of P, in place, and restore P itself.  O(n^2 taken).

    For P' = P / sum, dP = (dP' - sum dP' P') / sum, along rows and along columns.
    """
    for t in range(taken - 1, -1, -1):
        inside[:n] = 0.0
        for r in range(n):
            mean = 0.0
            for i in range(n):
                mean += G[r, i] * P[r, i]
            for i in range(n):
                G[r, i] = (G[r, i] - mean) / rows[t, r]
                P[r, i] *= rows[t, r]
                inside[i] += G[r, i] * P[r, i]
        for r in range(n):
            for i in range(n):
                G[r, i] = (G[r, i] - inside[i]) / columns[t, i]
                P[r, i] *= columns[t, i]


@jit()
def neural_ndcg_scaled(s, gain, offsets, weight, values, grad, discount, k, temperature, steps):
    """`neural_ndcg` with rows and columns of NeuralSort's matrix scaled to sum to 1.  O(N^2 steps) per list."""
    n = longest(offsets)
    apart, signs, pull, back, inside = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    P, G = np.empty((n, n)), np.empty((n, n))
    columns, rows = np.empty((steps, n)), np.empty((steps, n))
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        m = b - a
        if m < 2 or gain[a:b].max() == 0.0:
            continue
        x, g, order = s[a:b], gain[a:b], np.argsort(s[a:b])
        distances(x, order, apart[:m], signs[:m])
        for place in range(1, m + 1):
            relaxed_row(x, apart[:m], place, temperature, P[place - 1, :m])
        taken = scale_to_sums_of_one(P, m, steps, columns, rows)
        value = 1.0
        for r in range(m):
            d = discount[r] if r < k else 0.0
            for i in range(m):
                value -= d * P[r, i] * g[i]
                G[r, i] = -d * g[i]
        pull_through_scaling(P, G, m, taken, columns, rows, inside)
        pull[:m], back[:m] = 0.0, 0.0
        for r in range(m):
            mean = 0.0
            for i in range(m):
                mean += P[r, i] * G[r, i]
            for i in range(m):
                t = P[r, i] * (G[r, i] - mean) / temperature
                back[i] += t * (m - 1.0 - 2.0 * r)
                pull[i] -= t
        pull_of_distances(x, order, pull[:m], back[:m])
        values[q] = weight[q] * value
        for i in range(m):
            grad[a + i] = weight[q] * back[i]


@jit()
def neural_ndcg_curvature(s, gain, offsets, weight, out, discount, k, temperature):
    """Positive substitute for the second derivatives, which have either sign: sum over places of
    D p_i abs(g_i - mean) (slope of row i's entry in s_i)^2.
    """
    n = longest(offsets)
    apart, signs, p = np.empty(n), np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        m = b - a
        if m < 2 or gain[a:b].max() == 0.0:
            continue
        x, g = s[a:b], gain[a:b]
        distances(x, np.argsort(x), apart[:m], signs[:m])
        for place in range(1, min(k, m) + 1):
            relaxed_row(x, apart[:m], place, temperature, p[:m])
            mean = 0.0
            for i in range(m):
                mean += p[i] * g[i]
            for i in range(m):
                slope = (m + 1.0 - 2.0 * place - signs[i]) / temperature
                out[a + i] += weight[q] * discount[place - 1] * p[i] * abs(g[i] - mean) * slope * slope
