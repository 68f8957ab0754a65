"""Weak learners: the best split of a gradient by binned features."""

import numpy as np

from placet.kernels.jit import jit


@jit()
def best_split(bins, n_bins, d, columns):
    """Feature, bin and gain of the best stump for the gradient ``d`` (rows,); rows in bins up to that bin go left.

    Gain = (sum_left d)^2 / n_left + (sum_right d)^2 / n_right, the squared norm of the projection of d onto functions
    that are constant on each side.  ``bins`` (features, rows) holds bin numbers from 0; ``columns`` are the features
    to try.  O(rows columns + bins columns).
    """
    n_rows = bins.shape[1]
    total = 0.0
    for i in range(n_rows):
        total += d[i]
    best_feature, best_bin, best_gain = -1, 0, 0.0
    sums, counts = np.zeros(256), np.zeros(256)
    for f in columns:
        sums[:], counts[:] = 0.0, 0.0
        for i in range(n_rows):
            sums[bins[f, i]] += d[i]
            counts[bins[f, i]] += 1.0
        left, n_left = 0.0, 0.0
        for b in range(n_bins[f] - 1):
            left += sums[b]
            n_left += counts[b]
            if n_left == 0.0 or n_left == n_rows:
                continue
            gain = left * left / n_left + (total - left) * (total - left) / (n_rows - n_left)
            if gain > best_gain:
                best_feature, best_bin, best_gain = f, b, gain
    return best_feature, best_bin, best_gain
