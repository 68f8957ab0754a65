"""Maxima of studentized differences in each draw of the scores."""

import math

import numpy as np

from placet.kernels.jit import jit

ROUNDING = 1.0 + 1e-12  # margin for the different rounding of a bound and of the value it bounds


@jit(fastmath={"reassoc", "nnan", "nsz"})
def largest_in_row(x_i, x, weight):
    """max_j (x_i - x_j) weight_j, at least 0."""
    top = 0.0
    for j in range(len(x)):
        top = max(top, (x_i - x[j]) * weight[j])
    return top


@jit()
def largest_differences(draws, weight, size, most, out):
    """out[d] = max over i, j of (x_i - x_j) weight_ij in draw d, at least 0; a weight of 0 excludes a pair.

    With z_i = x_i / size_i and a the largest of -z_j and 0, (x_i - x_j) / sqrt(size_i^2 + size_j^2) is at most
    sqrt(max(z_i, 0)^2 + a^2), whatever the sizes; so no entry of row i exceeds that times ``most``_i = max_j weight_ij
    sqrt(size_i^2 + size_j^2), and rows whose bound does not exceed the maximum so far are skipped.  O(draws n) if sizes
    are the scores' own and the scores nearly independent, at most O(draws n^2).
    """
    n = draws.shape[1]
    bound = np.empty(n)
    for d in range(len(draws)):
        x, deepest, first = draws[d], 0.0, 0
        for i in range(n):
            deepest = max(deepest, -x[i] / size[i])
        for i in range(n):
            bound[i] = most[i] * math.hypot(max(x[i] / size[i], 0.0), deepest) * ROUNDING
            if bound[i] > bound[first]:
                first = i
        top = largest_in_row(x[first], x, weight[first]) if n else 0.0
        for i in range(n):
            if bound[i] > top:
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
