"""The NDCG-consistent cosine surrogate: distance of the normalized gains from the direction of the scores."""

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.sums import max_abs

# If all scores are smaller than this, they have no direction.
TINY = 1e-150


@jit()
def euclidean(s):
    """|s|_2 without overflow; 0 if every |s_i| is below ``TINY``."""
    top = max_abs(s)
    if top < TINY:
        return 0.0
    total = 0.0
    for i in range(len(s)):
        total += (s[i] / top) ** 2
    return top * np.sqrt(total)


@jit()
def cosine(s, target, offsets, weight, values, grad):
    """1/2 |p - u|^2 with u = s / |s|; gradient -(p - <p, u> u) / |s|.  Lists with p = 0 give 0.  O(rows).

    At s = 0 there is no direction: the value is the mean over all directions, (|p|^2 + 1) / 2, and the gradient is -p,
    so that any small step down the gradient lowers the loss.
    """
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        if hi - lo < 2 or max_abs(target[lo:hi]) == 0.0:
            continue
        n = euclidean(s[lo:hi])
        along, one = 0.0, 0.0 if n > 0.0 else 0.5
        for i in range(lo, hi):
            u = s[i] / n if n > 0.0 else 0.0
            along += target[i] * u
            one += 0.5 * (target[i] - u) ** 2
        for i in range(lo, hi):
            if n > 0.0:
                grad[i] = -weight[k] * (target[i] - along * (s[i] / n)) / n
            else:
                grad[i] = -weight[k] * target[i]
        values[k] = weight[k] * one


@jit()
def cosine_curvature(s, target, offsets, weight, out):
    """|p| (2 |u_i| + |1 - 3 u_i^2|) / |s|^2, a positive bound on the Hessian's diagonal; |p| at s = 0.  O(rows)."""
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        if hi - lo < 2 or max_abs(target[lo:hi]) == 0.0:
            continue
        n, size = euclidean(s[lo:hi]), euclidean(target[lo:hi])
        for i in range(lo, hi):
            u = abs(s[i]) / n if n > 0.0 else 0.0
            bound = size * (2.0 * u + abs(1.0 - 3.0 * u * u))
            out[i] = weight[k] * (bound / n / n if n > 0.0 else bound)


@jit()
def cosine_hvp(s, target, offsets, weight, out, v):
    """(p <u, v> + u <p, v> + <p, u> (v - 3 u <u, v>)) / |s|^2; zeros at s = 0.  O(rows)."""
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        n = euclidean(s[lo:hi])
        if hi - lo < 2 or max_abs(target[lo:hi]) == 0.0 or n == 0.0:
            continue
        pu = pv = uv = 0.0
        for i in range(lo, hi):
            pu += target[i] * s[i] / n
            pv += target[i] * v[i]
            uv += s[i] / n * v[i]
        for i in range(lo, hi):
            u = s[i] / n
            out[i] = weight[k] * (target[i] * uv + u * pv + pu * (v[i] - 3.0 * u * uv)) / n / n
