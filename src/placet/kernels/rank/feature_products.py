"""Products of pairs of standardized features, computed row by row on demand and never stored."""

import numpy as np
from numba import njit

from placet.kernels.jit import jit


@njit(inline="always")
def standardize(x, mean, scale, z):
    for f in range(len(z)):
        z[f] = (x[f] - mean[f]) / scale[f]


@jit()
def scores(X, mean, scale, pairs, w, out):
    """out[r] += sum over pairs p of w[p] z[pairs[p, 0]] z[pairs[p, 1]], z the standardized row r.  O(rows pairs)."""
    z = np.empty(X.shape[1])
    for r in range(X.shape[0]):
        standardize(X[r], mean, scale, z)
        total = 0.0
        for p in range(len(pairs)):
            total += w[p] * z[pairs[p, 0]] * z[pairs[p, 1]]
        out[r] += total


@jit()
def sums(X, mean, scale, pairs, g, out):
    """out[p] += sum over rows r of g[r] times the product p of row r.  O(rows pairs)."""
    z = np.empty(X.shape[1])
    for r in range(X.shape[0]):
        if g[r] == 0.0:
            continue
        standardize(X[r], mean, scale, z)
        for p in range(len(pairs)):
            out[p] += g[r] * z[pairs[p, 0]] * z[pairs[p, 1]]


@jit()
def squares(X, mean, scale, pairs, center, out):
    """out[p] += sum over rows of (product p - center[p])^2.  O(rows pairs)."""
    z = np.empty(X.shape[1])
    for r in range(X.shape[0]):
        standardize(X[r], mean, scale, z)
        for p in range(len(pairs)):
            gap = z[pairs[p, 0]] * z[pairs[p, 1]] - center[p]
            out[p] += gap * gap
