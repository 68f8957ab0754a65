"""Distribution of ranks under the Plackett-Luce model."""

import math

import numpy as np

from placet.kernels.jit import jit

LEFT, RIGHT = -37.0, 3.8  # beyond these, y e^-y at y = e^(x + s) is below 1e-16
NEGLIGIBLE = 1e-25  # probabilities of counts below this are dropped


@jit()
def step_for(n):
    """Step of the trapezoid rule for n rows.

    A single row needs 1/4: its integrand is analytic for |Im x| < pi/2, so the error is e^(-pi^2 / step).  Among n
    equal rows a rank is settled within a Gaussian of width 1.24 / sqrt(n): an error of e^(-2 (pi width / step)^2).
    """
    return min(0.25, 0.9 / math.sqrt(n))


@jit()
def counts_of(p, out, work):
    """out[k] = probability that k of the independent events with probabilities p happen.  O(N^2).

    Returns the first and last k whose probability is not negligible; ``out`` is set only there.
    """
    low = high = 0
    out[0] = 1.0
    for j in range(len(p)):
        if p[j] == 0.0:
            continue
        work[low : high + 1] = out[low : high + 1]
        not_p = 1.0 - p[j]
        out[high + 1] = 0.0
        for k in range(low, high + 1):
            out[k] *= not_p
        for k in range(low, high + 1):
            out[k + 1] += work[k] * p[j]
        high += 1
        while out[low] < NEGLIGIBLE:
            low += 1
        while out[high] < NEGLIGIBLE:
            high -= 1
    return low, high


@jit()
def add_without(count, low, high, p, scale, out):
    """out[k] += scale * probability of k events after one of probability p is removed from ``count``.  O(N).

    Divides the generating function by (1 - p + p z), from the end at which the ratio of its coefficients is at most 1.
    """
    rest = 0.0
    if p <= 0.5:
        head, ratio = 1.0 / (1.0 - p), p / (1.0 - p)
        for k in range(low, min(high + 1, len(out))):
            rest = max(head * count[k] - ratio * rest, 0.0)
            out[k] += scale * rest
    else:
        head, ratio = 1.0 / p, (1.0 - p) / p
        for k in range(high - 1, max(low - 2, -1), -1):
            rest = max(head * count[k + 1] - ratio * rest, 0.0)
            out[k] += scale * rest


@jit()
def place_law(s, out):
    """out[i, r] += P(exactly r rows are above row i), where rows are ordered by exponential arrival times of rates e^s.

    Row i arrives at time e^x with density y e^-y in x, y = e^(x + s_i); by then row j has arrived with probability
    1 - exp(-e^(x + s_j)), independently.  Trapezoid rule in x over the nodes at which a row may arrive.
    O(nodes N^2), nodes = (41 + spread of s) / step.
    """
    n = len(s)
    p, count, work = np.empty(n), np.empty(n + 1), np.empty(n)
    step = step_for(n)
    order = np.sort(-s)  # centers of the rows' arrival densities, in x
    first, last = 0, -1
    start = math.floor((order[0] + LEFT) / step)
    stop = math.ceil((order[n - 1] + RIGHT) / step)
    node = start
    while node <= stop:
        x = node * step
        while last + 1 < n and order[last + 1] + LEFT <= x:
            last += 1
        while first <= last and order[first] + RIGHT < x:
            first += 1
        if first > last:  # no row arrives near here: skip to where the next one may
            node = max(node + 1, math.floor((order[last + 1] + LEFT) / step)) if last + 1 < n else stop + 1
            continue
        for j in range(n):
            z = x + s[j]
            p[j] = 1.0 if z > RIGHT else (-math.expm1(-math.exp(z)) if z > -700.0 else 0.0)
        low, high = counts_of(p, count, work)
        for i in range(n):
            z = x + s[i]
            if LEFT <= z <= RIGHT:
                y = math.exp(z)
                add_without(count, low, high, p[i], step * y * math.exp(-y), out[i])
        node += 1
