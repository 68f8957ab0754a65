"""Probabilities of pairs of rows under the full-decomposition model over ordered partitions.

A stage with n rows draws a size m with weight binom(n, m), a leader with weight e^s, and m - 1 of the others uniformly.
Leaders are the first arrivals among the remaining rows if every row has an exponential arrival time of rate e^s, so
given the order of arrival, who is drawn with whom depends on places alone.  Of two rows, let a be the number of others
that arrive before both: it is independent of which of the two comes first.
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.rank.rank_distribution import LEFT, RIGHT, add_without, counts_of, step_for

LOG_2 = math.log(2.0)


@jit()
def pair_laws(n_rows, apart, ahead):
    """apart[n, a] = P(the two rows are in different tiers), ahead[n, a] = P(the first to arrive is above) - P(below).

    n rows remain, a of them arrive before both.  With a = 0 the first is the leader, and above unless the other is
    drawn with it.  Else the leader goes, and its companions are drawn uniformly: either of the two alone, both, or
    neither; then n' rows remain, of which a uniform share of the a - 1 others.  O(n_rows^3).
    """
    for n in range(2, n_rows + 1):
        half = 0.5**n
        z = 1.0 - half
        apart[n, 0] = ahead[n, 0] = n * (0.5 - half) / ((n - 1.0) * z)
        for a in range(1, n - 1):
            apart[n, a] = 2.0 * (0.25 * n * (n + 1) / z - n) / ((n - 1.0) * (n - 2.0))
            ahead[n, a] = 0.0
    thinned = np.empty((2, n_rows))
    for left in range(2, n_rows):  # rows that remain after a stage
        thinned[0, : left - 1] = apart[left, : left - 1]
        thinned[1, : left - 1] = ahead[left, : left - 1]
        for n in range(left + 1, n_rows + 1):
            m = n - left
            log_w = math.lgamma(n + 1.0) - math.lgamma(m + 1.0) - math.lgamma(left + 1.0) - n * LOG_2
            share = math.exp(log_w) / (1.0 - 0.5**n) * left * (left - 1.0) / ((n - 1.0) * (n - 2.0))
            for a in range(1, n - 1):
                apart[n, a] += share * thinned[0, a - 1]
                ahead[n, a] += share * thinned[1, a - 1]
            r = n - 2  # one more row besides the two and the leader
            for row in range(2):
                thinned[row, r] = thinned[row, r - 1]
                for a in range(r - 1, 0, -1):
                    thinned[row, a] += a / r * (thinned[row, a - 1] - thinned[row, a])


@jit()
def pair_sums(s, first, second, apart, ahead, out):
    """out[k] = (P(in different tiers), P(first to arrive above) - P(below)) of the rows first[k] and second[k].

    ``apart`` and ``ahead`` (rows - 1,) are the laws of `pair_laws` for all rows of ``s``; ``first`` is ascending.  The
    earlier of two rows arrives at time e^x with density y e^-y, y = e^x (e^{s_i} + e^{s_j}); by then others have
    arrived independently.  Trapezoid rule in x.  O(nodes (N^2 + N pairs)).
    """
    n = len(s)
    p, count, work = np.empty(n), np.empty(n + 1), np.empty(n)
    without, rest = np.empty(n), np.empty(n)
    step = step_for(n)
    top = s.max()
    stop = math.ceil((RIGHT - s.min()) / step)
    node = math.floor((LEFT - top - LOG_2) / step)
    while node <= stop:
        x = node * step
        node += 1
        for j in range(n):
            z = x + s[j]
            p[j] = 1.0 if z > RIGHT else (-math.expm1(-math.exp(z)) if z > -700.0 else 0.0)
        low, high = counts_of(p, count, work)
        last = -1
        for k in range(len(first)):
            i, j = first[k], second[k]
            z = x + max(s[i], s[j]) + math.log1p(math.exp(-abs(s[i] - s[j])))
            if z < LEFT or z > RIGHT:
                continue
            if i != last:
                without[:] = 0.0
                add_without(count, low, high, p[i], 1.0, without)
                last = i
            rest[:] = 0.0
            add_without(without, max(low - 1, 0), min(high, n - 1), p[j], 1.0, rest[: n - 1])
            y = math.exp(z)
            density = step * y * math.exp(-y)
            for a in range(max(low - 2, 0), min(high, n - 2) + 1):
                out[k, 0] += density * rest[a] * apart[a]
                out[k, 1] += density * rest[a] * ahead[a]
