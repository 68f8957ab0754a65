"""Maxima of studentized differences, over draws of the scores."""

import numpy as np

from placet.kernels.jit import jit


@jit(fastmath={"reassoc", "nnan", "nsz"})
def largest_in_row(x_i, x, weight):
    """max_j (x_i - x_j) weight_j, at least 0."""
    top = 0.0
    for j in range(len(x)):
        top = max(top, (x_i - x[j]) * weight[j])
    return top


@jit()
def largest_differences(draws, weight, most, out):
    """out[d] = max over i, j of (x_i - x_j) weight_ij at draw d, at least 0; a weight of 0 leaves a pair out.

    ``most`` (n,) are the largest weights of the rows.  Row i holds nothing above (x_i - min x) most_i, so rows whose
    bound is not above what is found are passed over: O(draws n) where weights are alike, at most O(draws n^2).
    """
    n = draws.shape[1]
    for d in range(len(draws)):
        x, low, first, bound = draws[d], np.inf, 0, -1.0
        for i in range(n):
            low = min(low, x[i])
        for i in range(n):
            if (x[i] - low) * most[i] > bound:
                first, bound = i, (x[i] - low) * most[i]
        top = largest_in_row(x[first], x, weight[first]) if n else 0.0
        for i in range(n):
            if (x[i] - low) * most[i] > top:
                top = max(top, largest_in_row(x[i], x, weight[i]))
        out[d] = top


@jit()
def largest_differences_of(i, draws, weight_to, weight_from, out):
    """out[d] = max over j of (x_i - x_j) weight_to_j and of (x_j - x_i) weight_from_j.  O(draws n)."""
    for d in range(len(draws)):
        top = largest_in_row(draws[d, i], draws[d], weight_to)
        for j in range(draws.shape[1]):
            top = max(top, (draws[d, j] - draws[d, i]) * weight_from[j])
        out[d] = top
