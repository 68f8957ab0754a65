"""RankBoost: exponential weights of the ordered pairs of lists, summed per row without enumerating pairs."""

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.sums import log_add


@jit()
def pair_potential(s, grade, offsets, log_weight, potential):
    """log Z, Z = sum over lists of w sum over pairs (i above j) of e^(s_j - s_i); rows in descending grade.

    ``potential`` (rows,) receives the sum of D over the pairs in which the row is above minus that over the pairs in
    which it is below, D = w e^(s_j - s_i) / Z: minus the gradient of log Z.  ``log_weight`` (lists,).  O(rows), for
    scores of any size.
    """
    n = len(s)
    above, below = np.full(n, -np.inf), np.full(n, -np.inf)
    total = -np.inf
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        under, j = -np.inf, hi  # log of the sum of e^s over lower tiers
        while j > lo:
            i = j - 1
            while i > lo and grade[i - 1] == grade[j - 1]:
                i -= 1
            for row in range(i, j):
                above[row] = log_weight[k] + under - s[row]
                total = log_add(total, above[row])
            for row in range(i, j):
                under = log_add(under, s[row])
            j = i
        over, i = -np.inf, lo  # log of the sum of e^-s over higher tiers
        while i < hi:
            j = i + 1
            while j < hi and grade[j] == grade[i]:
                j += 1
            for row in range(i, j):
                below[row] = log_weight[k] + over + s[row]
            for row in range(i, j):
                over = log_add(over, -s[row])
            i = j
    for row in range(n):
        potential[row] = np.exp(above[row] - total) - np.exp(below[row] - total)
    return total


@jit()
def best_threshold(bins, n_bins, d, columns):
    """Feature and bin that maximize |sum of d over the rows in bins up to that bin|, and this maximum.

    ``bins`` (features, rows) holds bin numbers from 0.  O(rows columns + bins columns).
    """
    best_feature, best_bin, best = -1, 0, 0.0
    sums = np.zeros(256)
    for f in columns:
        sums[:] = 0.0
        for i in range(bins.shape[1]):
            sums[bins[f, i]] += d[i]
        left = 0.0
        for b in range(n_bins[f] - 1):
            left += sums[b]
            if abs(left) > best:
                best_feature, best_bin, best = f, b, abs(left)
    return best_feature, best_bin, best
