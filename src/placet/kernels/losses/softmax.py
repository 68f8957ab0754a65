"""Softmax of a list, and cross-entropy of two such distributions."""

import math

import placet.kernels.vector as vector
from placet.kernels.jit import jit
from placet.kernels.sums import total


@jit()
def largest(x):
    """Maximum of x, in four chains so that no comparison waits for the previous one."""
    m0 = m1 = m2 = m3 = x[0]
    body = len(x) // 4 * 4
    for r in range(0, body, 4):
        m0, m1, m2, m3 = max(m0, x[r]), max(m1, x[r + 1]), max(m2, x[r + 2]), max(m3, x[r + 3])
    for r in range(body, len(x)):
        m0 = max(m0, x[r])
    return max(max(m0, m1), max(m2, m3))


@jit(fastmath={"contract"})
def fill_exp(x, top, out):
    """out = e^{x - top}."""
    for r in range(len(x)):
        out[r] = vector.exp(x[r] - top)


@jit()
def exponentials(s, a, b, out):
    """out = e^{s - max} over rows a..b; returns the maximum and log sum e^s."""
    top = largest(s[a:b])
    fill_exp(s[a:b], top, out[a:b])
    return top, top + math.log(total(out[a:b]))


@jit()
def softmax(s, a, b, out):
    """out = softmax of s over rows a..b; returns log sum e^s."""
    top, log_sum = exponentials(s, a, b, out)
    lift = math.exp(top - log_sum)
    for r in range(a, b):
        out[r] *= lift
    return log_sum


@jit()
def listnet(s, target, offsets, weight, values, grad):
    """- sum target log softmax(s); the targets of a list sum to 1, or are all 0 to skip the list.  O(rows)."""
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        mass = total(target[a:b])
        if mass == 0.0:
            continue
        log_sum = softmax(s, a, b, grad)
        cross = 0.0
        for r in range(a, b):
            cross += target[r] * (log_sum - s[r])
            grad[r] = weight[q] * (grad[r] - target[r])
        values[q] = weight[q] * cross


@jit()
def listnet_curvature(s, target, offsets, weight, out):
    """p (1 - p), p = softmax(s).  O(rows)."""
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a > 1 and total(target[a:b]) > 0.0:
            softmax(s, a, b, out)
            for r in range(a, b):
                out[r] *= weight[q] * max(1.0 - out[r], 0.0)


@jit()
def listnet_hvp(s, target, offsets, weight, out, v):
    """p (v - p.v), p = softmax(s).  O(rows)."""
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a > 1 and total(target[a:b]) > 0.0:
            softmax(s, a, b, out)
            mean = 0.0
            for r in range(a, b):
                mean += out[r] * v[r]
            for r in range(a, b):
                out[r] *= weight[q] * (v[r] - mean)


@jit()
def softmax_targets(grade, offsets, out):
    """out = softmax of the grades of each list of two rows or more.  O(rows)."""
    for q in range(len(offsets) - 1):
        if offsets[q + 1] - offsets[q] > 1:
            softmax(grade, offsets[q], offsets[q + 1], out)


@jit()
def attention_targets(grade, offsets, out):
    """out = softmax of the grades above 0 in each list; 0 for the other rows.  O(rows)."""
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2 or largest(grade[a:b]) <= 0.0:
            continue
        exponentials(grade, a, b, out)
        for r in range(a, b):
            if grade[r] <= 0.0:
                out[r] = 0.0
        mass = total(out[a:b])
        for r in range(a, b):
            out[r] /= mass
