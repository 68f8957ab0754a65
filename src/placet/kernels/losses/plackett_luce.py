"""Plackett-Luce stages: tiers are removed from the top; stage k makes ``count[k]`` draws from all remaining rows.

With L_k the log-sum-exp over R_k (the rows of tiers k, k + 1, ...), l_k that over tier k alone, share_k = e^{l_k - L_k}
and rest_k = e^{L_{k+1} - L_k}, every sum over stages is a recurrence with coefficients in [0, 1] times counts:
A_k = sum_{j <= k} count_j e^{L_k - L_j} = rest_{k-1} A_{k-1} + count_k.  So nothing overflows, and the cost is O(rows).
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.losses.softmax import exponentials
from placet.kernels.ranges import find_tiers, longest


@jit()
def suffixes(n_tiers, own, left, share, rest):
    """Compute L_k, share_k and rest_k from l_k, from the lowest tier upward."""
    left[n_tiers - 1], share[n_tiers - 1], rest[n_tiers - 1] = own[n_tiers - 1], 1.0, 0.0
    for k in range(n_tiers - 2, -1, -1):
        gap = own[k] - left[k + 1]
        e = math.exp(-abs(gap))
        larger, smaller = 1.0 / (1.0 + e), e / (1.0 + e)
        left[k] = max(own[k], left[k + 1]) + math.log1p(e)
        share[k], rest[k] = (larger, smaller) if gap > 0 else (smaller, larger)


@jit()
def shuffled(grade, a, b, uniform, order):
    """Write rows a..b to ``order``, shuffling each run of equal grades by the rows' uniforms (Fisher-Yates)."""
    first = a
    for r in range(a, b):
        if r > a and grade[r] != grade[r - 1]:
            first = r
        place = first + int(uniform[r] * (r - first + 1))
        order[r - a] = order[place - a]
        order[place - a] = r


@jit()
def places(grade, a, b, k):
    """Number of ordered places: k, or if k < 0, all rows above the lowest tier."""
    if k >= 0:
        return min(k, b - a)
    r = b
    while r > a and grade[r - 1] == grade[b - 1]:
        r -= 1
    return r - a


@jit()
def ordered_stages(s, grade, a, b, uniform, k, order, x, e, own, starts):
    """Build one tier per ordered place and one for the rest; return the number of tiers and of ordered places.

    ``x``: the scores in that order; ``e``: their softmax within each tier; ``own``: log-sum-exp of each tier.
    """
    shuffled(grade, a, b, uniform, order)
    top = places(grade, a, b, k)
    n = b - a
    for j in range(n):
        x[j] = s[order[j]]
    for j in range(top):
        starts[j], own[j], e[j] = j, x[j], 1.0
    n_tiers = top
    if top < n:
        starts[top] = top
        own[top] = exponentials(x, top, n, e)[1]
        lift = math.exp(-own[top] + np.max(x[top:n]))
        for j in range(top, n):
            e[j] *= lift
        n_tiers += 1
    starts[n_tiers] = n
    return n_tiers, top


@jit()
def stage_factor(stage, row):
    """Factor of the stage that starts at this row: 1 if ``stage`` is empty."""
    return stage[row] if len(stage) else 1.0


@jit()
def ordered(s, grade, offsets, weight, values, grad, uniform, k, stage):
    """sum over the first k places j of log sum_{l >= j} e^{s_l} - s_j, ties ordered by ``uniform``.  O(rows).

    ``stage`` (rows, or empty): factors of the places.
    """
    n = longest(offsets)
    order, starts = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    x, e, own, left, share, rest = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        n_tiers, top = ordered_stages(s, grade, a, b, uniform, k, order, x, e, own, starts)
        suffixes(n_tiers, own, left, share, rest)
        total, draws = 0.0, 0.0
        for t in range(n_tiers):
            count = stage_factor(stage, a + t) if t < top else 0.0
            if t < top:
                total += count * (left[t] - x[t])
            draws = count if t == 0 else rest[t - 1] * draws + count
            for j in range(starts[t], starts[t + 1]):
                grad[order[j]] = weight[q] * (e[j] * share[t] * draws - count)
        values[q] = weight[q] * total


@jit()
def ordered_curvature(s, grade, offsets, weight, out, uniform, k, stage):
    """Diagonal of the Hessian of `ordered`: sum over stages of p (1 - p).  O(rows)."""
    n = longest(offsets)
    order, starts = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    x, e, own, left, share, rest = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        n_tiers, top = ordered_stages(s, grade, a, b, uniform, k, order, x, e, own, starts)
        suffixes(n_tiers, own, left, share, rest)
        draws, squares = 0.0, 0.0
        for t in range(n_tiers):
            count = stage_factor(stage, a + t) if t < top else 0.0
            kept = rest[t - 1] if t > 0 else 0.0
            draws, squares = kept * draws + count, kept * kept * squares + count
            for j in range(starts[t], starts[t + 1]):
                p = e[j] * share[t]
                out[order[j]] = weight[q] * max(p * (draws - p * squares), 0.0)


@jit()
def mean_below(n_tiers, share, rest, inner, mean):
    """Mean of v under the softmax over R_k, from the means ``inner`` within each tier."""
    mean[n_tiers - 1] = inner[n_tiers - 1]
    for k in range(n_tiers - 2, -1, -1):
        mean[k] = share[k] * inner[k] + rest[k] * mean[k + 1]


@jit()
def ordered_hvp(s, grade, offsets, weight, out, v, uniform, k, stage):
    """Hessian of `ordered` times v: sum over stages of p (v - p.v).  O(rows)."""
    n = longest(offsets)
    order, starts = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    x, e, own, left, share, rest = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    inner, mean = np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        n_tiers, top = ordered_stages(s, grade, a, b, uniform, k, order, x, e, own, starts)
        suffixes(n_tiers, own, left, share, rest)
        for t in range(n_tiers):
            inner[t] = 0.0
            for j in range(starts[t], starts[t + 1]):
                inner[t] += e[j] * v[order[j]]
        mean_below(n_tiers, share, rest, inner, mean)
        draws, pull = 0.0, 0.0
        for t in range(n_tiers):
            count = stage_factor(stage, a + t) if t < top else 0.0
            kept = rest[t - 1] if t > 0 else 0.0
            draws, pull = kept * draws + count, kept * pull + count * mean[t]
            for j in range(starts[t], starts[t + 1]):
                out[order[j]] = weight[q] * e[j] * share[t] * (draws * v[order[j]] - pull)


@jit()
def tier_stages(s, grade, a, b, starts, e, own, left, share, rest):
    """Write the tiers of a list, the softmax within each tier (to e, at the list's rows), L_k and the shares.

    Returns the number of tiers.
    """
    n_tiers = find_tiers(grade, a, b, starts)
    for t in range(n_tiers):
        top, own[t] = exponentials(s, starts[t], starts[t + 1], e)
        lift = math.exp(top - own[t])
        for r in range(starts[t], starts[t + 1]):
            e[r] *= lift
    suffixes(n_tiers, own, left, share, rest)
    return n_tiers


@jit()
def lower_bound(s, grade, offsets, weight, values, grad):
    """sum over tiers above the lowest of n_k log sum_{R_k} e^s - sum_{X_k} s - log n_k!.  O(rows)."""
    n = longest(offsets)
    starts = np.empty(n + 1, np.int64)
    own, left, share, rest = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        n_tiers = tier_stages(s, grade, a, b, starts, grad, own, left, share, rest)
        total, draws = 0.0, 0.0
        for t in range(n_tiers):
            size = starts[t + 1] - starts[t]
            here = 1.0 if t < n_tiers - 1 else 0.0
            draws = here * size + (rest[t - 1] * draws if t > 0 else 0.0)
            total -= here * math.lgamma(size + 1.0)
            for r in range(starts[t], starts[t + 1]):
                total += here * (left[t] - s[r])
                grad[r] = weight[q] * (grad[r] * share[t] * draws - here)
        values[q] = weight[q] * total


@jit()
def lower_bound_curvature(s, grade, offsets, weight, out):
    """Diagonal of the Hessian of `lower_bound`: sum over tiers of n_k p (1 - p).  O(rows)."""
    n = longest(offsets)
    starts = np.empty(n + 1, np.int64)
    own, left, share, rest = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        n_tiers = tier_stages(s, grade, a, b, starts, out, own, left, share, rest)
        draws, squares = 0.0, 0.0
        for t in range(n_tiers):
            count = float(starts[t + 1] - starts[t]) if t < n_tiers - 1 else 0.0
            kept = rest[t - 1] if t > 0 else 0.0
            draws, squares = kept * draws + count, kept * kept * squares + count
            for r in range(starts[t], starts[t + 1]):
                p = out[r] * share[t]
                out[r] = weight[q] * max(p * (draws - p * squares), 0.0)


@jit()
def lower_bound_hvp(s, grade, offsets, weight, out, v):
    """Hessian of `lower_bound` times v: sum over tiers of n_k p (v - p.v).  O(rows)."""
    n = longest(offsets)
    starts = np.empty(n + 1, np.int64)
    own, left, share, rest, inner, mean = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        n_tiers = tier_stages(s, grade, a, b, starts, out, own, left, share, rest)
        for t in range(n_tiers):
            inner[t] = 0.0
            for r in range(starts[t], starts[t + 1]):
                inner[t] += out[r] * v[r]
        mean_below(n_tiers, share, rest, inner, mean)
        draws, pull = 0.0, 0.0
        for t in range(n_tiers):
            count = float(starts[t + 1] - starts[t]) if t < n_tiers - 1 else 0.0
            kept = rest[t - 1] if t > 0 else 0.0
            draws, pull = kept * draws + count, kept * pull + count * mean[t]
            for r in range(starts[t], starts[t + 1]):
                out[r] *= weight[q] * share[t] * (draws * v[r] - pull)
