"""Feature scaling to [0, 1] within each list, and sums of inner products with the other rows of a list."""

import numpy as np

from placet.kernels.jit import jit


@jit()
def to_unit_interval(X, offsets):
    """Scale every column within each list to (x - min) / (max - min), or 0 if constant, in place.  O(entries)."""
    n_features = X.shape[1]
    low, high = np.empty(n_features), np.empty(n_features)
    for q in range(len(offsets) - 1):
        low[:], high[:] = np.inf, -np.inf
        for i in range(offsets[q], offsets[q + 1]):
            for f in range(n_features):
                low[f], high[f] = min(low[f], X[i, f]), max(high[f], X[i, f])
        for i in range(offsets[q], offsets[q + 1]):
            for f in range(n_features):
                X[i, f] = (X[i, f] - low[f]) / (high[f] - low[f]) if high[f] > low[f] else 0.0


@jit()
def to_unit_length(X):
    """Divide every row by its Euclidean norm, in place; rows of zeros are unchanged.  O(entries)."""
    for i in range(X.shape[0]):
        square = 0.0
        for f in range(X.shape[1]):
            square += X[i, f] * X[i, f]
        if square > 0.0:
            length = np.sqrt(square)
            for f in range(X.shape[1]):
                X[i, f] /= length


@jit()
def inner_sums(U, offsets, v, out):
    """out_i = sum over j != i in the list of <u_i, u_j> v_j, as <u_i, sum_j v_j u_j> - |u_i|^2 v_i.  O(entries)."""
    n_features = U.shape[1]
    total = np.empty(n_features)
    for q in range(len(offsets) - 1):
        total[:] = 0.0
        for i in range(offsets[q], offsets[q + 1]):
            for f in range(n_features):
                total[f] += v[i] * U[i, f]
        for i in range(offsets[q], offsets[q + 1]):
            dot = own = 0.0
            for f in range(n_features):
                dot += U[i, f] * total[f]
                own += U[i, f] * U[i, f]
            out[i] = dot - own * v[i]
