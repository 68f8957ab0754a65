"""Pairs of items: derivatives of pair likelihoods, and the Laplacians that they make.

Row r compares items i[r] and j[r]; a family sees the advantage d of i (theta_i - theta_j, and the effect of coming
first) and a tie parameter t.  Of minus its log likelihood f it writes, for each row, f_d and f_dd (``slope``,
``curvature``) and, if it has ties, f_dt, f_t and f_tt (``cross``, ``tie_slope``, ``tie_curvature``).  O(rows); loops
hold no gathers, branches or sums, so that they run in vector registers.
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.vector import exp


@jit()
def advantage(theta, order, i, j, out):
    """out_r = theta_i - theta_j + order."""
    for r in range(len(i)):
        out[r] = theta[i[r]] - theta[j[r]] + order


@jit(error_model="numpy", fastmath={"contract"})
def bradley_terry(d, tie, wins_i, wins_j, ties, slope, curvature, cross, tie_slope, tie_curvature):
    """P(i) = 1 / (1 + e^-d); a tie is half a win for either side, and there is no tie parameter."""
    for r in range(len(d)):
        e = exp(-d[r])
        p = 1.0 / (1.0 + e)
        n = wins_i[r] + wins_j[r] + ties[r]
        slope[r] = n * p - wins_i[r] - 0.5 * ties[r]
        curvature[r] = n * p * (e * p)


@jit(error_model="numpy", fastmath={"contract"})
def rao_kupper(d, tie, wins_i, wins_j, ties, slope, curvature, cross, tie_slope, tie_curvature):
    """P(i) = s(d - t), P(j) = s(-d - t), P(tie) = (e^2t - 1) s(d - t) s(-d - t), s the logistic function, t > 0.

    So a row is two logistic terms, with wins_i + ties and wins_j + ties, minus ties log(e^2t - 1): convex in (d, t).
    """
    g = -math.expm1(-2.0 * tie)
    for r in range(len(d)):
        up, down = wins_i[r] + ties[r], wins_j[r] + ties[r]
        e, f = exp(d[r] - tie), exp(-d[r] - tie)
        q, u = 1.0 / (1.0 + e), 1.0 / (1.0 + f)
        h, k = up * q * (e * q), down * u * (f * u)
        slope[r] = down * u - up * q
        curvature[r] = h + k
        cross[r] = k - h
        tie_slope[r] = up * q + down * u - ties[r] * (2.0 / g)
        tie_curvature[r] = h + k + ties[r] * (4.0 * (1.0 - g) / (g * g))


@jit(error_model="numpy", fastmath={"contract"})
def davidson(d, tie, wins_i, wins_j, ties, slope, curvature, cross, tie_slope, tie_curvature):
    """P(i), P(j), P(tie) in proportion to e^{d/2}, e^{-d/2}, e^t: convex in (d, t)."""
    nu = math.exp(tie)
    for r in range(len(d)):
        b = exp(-0.5 * abs(d[r]))
        high = 1.0 / (1.0 + b * b + nu * b)
        low, tied = b * b * high, nu * b * high
        lead = math.copysign(high - low, d[r])
        n = wins_i[r] + wins_j[r] + ties[r]
        slope[r] = 0.5 * (n * lead - wins_i[r] + wins_j[r])
        curvature[r] = n * (high * low + 0.25 * tied * (1.0 - tied))
        cross[r] = -0.5 * n * tied * lead
        tie_slope[r] = n * tied - ties[r]
        tie_curvature[r] = n * tied * (1.0 - tied)


@jit()
def scatter(i, j, values, out):
    """out_i += v, out_j -= v for every row.  Rows in order of i keep the sum of a run in a register."""
    r = 0
    while r < len(i):
        item, total = i[r], 0.0
        while r < len(i) and i[r] == item:
            total += values[r]
            out[j[r]] -= values[r]
            r += 1
        out[item] += total


@jit(error_model="numpy")
def expected_wins(phi, i, j, count, out):
    """out_i += v, out_j -= v for the expected wins v = count phi_i / (phi_i + phi_j) of i over j; phi = e^theta."""
    r = 0
    while r < len(i):
        item, total = i[r], 0.0
        x = phi[item]
        while r < len(i) and i[r] == item:
            v = count[r] * x / (x + phi[j[r]])
            total += v
            out[j[r]] -= v
            r += 1
        out[item] += total


@jit()
def laplacian_product(i, j, weight, v, out):
    """out += L v, where v' L v = sum over rows of weight (v_i - v_j)^2."""
    r = 0
    while r < len(i):
        item, total = i[r], 0.0
        centre = v[item]
        while r < len(i) and i[r] == item:
            flow = weight[r] * (centre - v[j[r]])
            total += flow
            out[j[r]] -= flow
            r += 1
        out[item] += total


@jit()
def laplacian_diagonal(i, j, weight, out):
    """out += diagonal of L."""
    for r in range(len(i)):
        out[i[r]] += weight[r]
        out[j[r]] += weight[r]


@jit()
def laplacian_fill(i, j, weight, out):
    """Add L to the dense matrix ``out``."""
    for r in range(len(i)):
        a, b, w = i[r], j[r], weight[r]
        out[a, a] += w
        out[b, b] += w
        out[a, b] -= w
        out[b, a] -= w


@jit()
def count_draws(cells, block, draws_in, place, n_cells):
    """How often each cell was drawn: draws_in[b] times a vote of block b, at ``place`` in it; vote k is in cells[k]."""
    counts = np.zeros(n_cells)
    k = 0
    for b in range(len(draws_in)):
        for _ in range(draws_in[b]):
            counts[cells[b * block + place[k]]] += 1.0
            k += 1
    return counts


@jit()
def spreads(i, j, over, under, forward, sweeps):
    """Whether item 0 reaches every item along "beats" (``forward``) or "is beaten by"; False also if sweeps run out.

    A row is an edge from i to j where over[r] and from j to i where under[r].  O(sweeps x rows), and two or three
    sweeps are enough where most pairs have met.
    """
    n = 0
    for r in range(len(i)):
        n = max(n, i[r] + 1, j[r] + 1)
    reached = np.zeros(n, np.bool_)
    reached[:1] = True
    left = n - 1
    for _ in range(sweeps):
        before = left
        for r in range(len(i)):
            a, b = (over[r], under[r]) if forward else (under[r], over[r])
            if a and reached[i[r]] and not reached[j[r]]:
                reached[j[r]] = True
                left -= 1
            if b and reached[j[r]] and not reached[i[r]]:
                reached[i[r]] = True
                left -= 1
            if left == 0:
                return n, True
        if left == before:
            break
    return n, left <= 0
