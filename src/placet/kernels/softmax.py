"""The softmax of a list, and the cross-entropy of two of them."""

import math

import numpy as np
from numba import njit

from placet.kernels import vector


@njit(cache=True, nogil=True)
def longest(offsets):
    """Rows of the longest list."""
    n = 0
    for q in range(len(offsets) - 1):
        n = max(n, offsets[q + 1] - offsets[q])
    return n


@njit(cache=True, nogil=True, fastmath={"contract"})
def exponentials(s, a, b, out):
    """out = e^{s - max} over rows a..b; returns the maximum and log sum e^s.  Four sums, so that the loop is not a chain."""
    top = s[a]
    for r in range(a, b):
        top = max(top, s[r])
    for r in range(a, b):
        out[r] = vector.exp(s[r] - top)
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    body = a + (b - a) // 4 * 4
    for r in range(a, body, 4):
        t0 += out[r]
        t1 += out[r + 1]
        t2 += out[r + 2]
        t3 += out[r + 3]
    for r in range(body, b):
        t0 += out[r]
    return top, top + math.log((t0 + t1) + (t2 + t3))


@njit(cache=True, nogil=True)
def softmax(s, a, b, out):
    """out = softmax of s over rows a..b; returns log sum e^s."""
    top, total = exponentials(s, a, b, out)
    lift = math.exp(top - total)
    for r in range(a, b):
        out[r] *= lift
    return total


@njit(cache=True, nogil=True)
def attrank(s, grade, offsets, weight, grad):
    """- sum softmax(grade) log softmax(s).  O(rows)."""
    target = np.empty(longest(offsets))
    value = 0.0
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        softmax(grade[a:b], 0, b - a, target)
        total = softmax(s, a, b, grad)
        cross = 0.0
        for r in range(a, b):
            cross += target[r - a] * (total - s[r])
            grad[r] = weight[q] * (grad[r] - target[r - a])
        value += weight[q] * cross
    return value


@njit(cache=True, nogil=True)
def attrank_curvature(s, grade, offsets, weight, out):
    """p (1 - p), p = softmax(s).  O(rows)."""
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a > 1:
            softmax(s, a, b, out)
            for r in range(a, b):
                out[r] *= weight[q] * max(1.0 - out[r], 0.0)
    return 0.0


@njit(cache=True, nogil=True)
def attrank_hvp(s, grade, offsets, weight, out, v):
    """p (v - p.v), p = softmax(s).  O(rows)."""
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a > 1:
            softmax(s, a, b, out)
            mean = 0.0
            for r in range(a, b):
                mean += out[r] * v[r]
            for r in range(a, b):
                out[r] *= weight[q] * (v[r] - mean)
    return 0.0
