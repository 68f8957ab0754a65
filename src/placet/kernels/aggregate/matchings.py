"""Sums of e^{-t (sum of squared differences)} over all matchings between two sets of places: special permanents.

Both sides are sorted, so matching them in order is cheapest; dual potentials shift the costs so that the sorted
matching costs 0 and no pair costs less than 0.  The sums are then at least 1 and never overflow.
"""

import numpy as np

from placet.kernels.jit import jit


@jit()
def relative_weights(t, place, center, out):
    """Write e^{-t (cost - u_i - v_j)} for cost_ij = (place_i - center_j)^2; return the cost of the sorted matching.

    u_{i+1} - u_i lies halfway between cost_{i+1,i+1} - cost_{i,i+1} and cost_{i+1,i} - cost_{i,i}, v_i = cost_ii - u_i.
    """
    n = len(place)
    u = np.zeros(n)
    total = 0.0
    for i in range(n):
        total += (place[i] - center[i]) ** 2
        if i > 0:
            low = (place[i] - center[i]) ** 2 - (place[i - 1] - center[i]) ** 2
            high = (place[i] - center[i - 1]) ** 2 - (place[i - 1] - center[i - 1]) ** 2
            u[i] = u[i - 1] + 0.5 * (low + high)
    for i in range(n):
        for j in range(n):
            cost = (place[i] - center[j]) ** 2 - (place[j] - center[j]) ** 2
            out[i, j] = np.exp(-t * max(cost - u[i] + u[j], 0.0))
    return total


@jit()
def permanent(A):
    """Permanent of A, by dynamic programming over the sets of columns used by the first rows.  O(2^n n)."""
    n = len(A)
    total, used = np.zeros(1 << n), np.zeros(1 << n, np.int64)
    total[0] = 1.0
    for columns in range(1 << n):
        row = used[columns]
        for j in range(n):
            if (columns >> j) & 1 == 0:
                more = columns | (1 << j)
                used[more] = row + 1
                total[more] += total[columns] * A[row, j]
    return total[-1]


@jit()
def band_permanent(A, width):
    """`permanent` over permutations that move no row by more than ``width``; returns it divided by e^log, and log.

    Bit b of a state means that column i - width + b is already used when row i is matched.  O(n 4^width).
    """
    n, size = len(A), 2 * width + 1
    total, new = np.zeros(1 << size), np.zeros(1 << size)
    total[(1 << width) - 1] = 1.0  # columns before the first
    log = 0.0
    for i in range(n):
        new[:] = 0.0
        largest = 0.0
        for state in range(1 << size):
            if total[state] == 0.0:
                continue
            for b in range(size):
                j = i - width + b
                if j < 0 or j >= n or (state >> b) & 1:
                    continue
                after = state | (1 << b)
                if after & 1:  # the column leaving the window must have been used
                    new[after >> 1] += total[state] * A[i, j]
                    largest = max(largest, new[after >> 1])
        log += np.log(largest)
        for state in range(1 << size):
            total[state] = new[state] / largest
    return total[(1 << width) - 1], log


@jit()
def log_sums(t, place, center, offsets, weight):
    """Sum over groups of weight times the log of the sum over matchings of e^{-t cost}, computed by `permanent`."""
    value = 0.0
    for b in range(len(offsets) - 1):
        n = offsets[b + 1] - offsets[b]
        own, other = place[offsets[b] : offsets[b + 1]], center[offsets[b] : offsets[b + 1]]
        A = np.empty((n, n))
        cost = relative_weights(t, own, other, A)
        value += weight[b] * (np.log(permanent(A)) - t * cost)
    return value


@jit()
def ranks_on_ballots(center, item, tier, offsets, out):
    """Write each item's rank by ``center`` (from 0) among the items of its ballot, ascending within each tier."""
    for b in range(len(offsets) - 1):
        first, last = offsets[b], offsets[b + 1]
        for x in range(first, last):
            rank = 0
            for y in range(first, last):
                if center[item[y]] < center[item[x]]:
                    rank += 1
            out[x] = rank
        for x in range(first + 1, last):  # insertion sort within tiers
            y = x
            while y > first and tier[y - 1] == tier[y] and out[y - 1] > out[y]:
                out[y - 1], out[y] = out[y], out[y - 1]
                y -= 1
