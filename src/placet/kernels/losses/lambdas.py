"""LambdaRank and LambdaLoss: pairwise losses weighted by the change in NDCG, at the places of the current order.

Rows i and j at places a < b by score (0 is the top) with gains g have weight
W = [a < k] (D_a - D_b + mu (D_{b-a-1} - D_{b-a})) abs(g_i - g_j), D the discounts; the pair costs W softplus(-sigma d),
d the score of the better row minus that of the other.  Derivatives hold W fixed.

For tied scores W is its mean over all orders of the tied rows, so the order of the input does not matter.  For a tied
block at places lo..hi, every mean is a few differences of S, the prefix sums of D.  Rows with equal score and gain form
a class with a count, and loops run over pairs of classes: O(N log N + k N) unless a tied block with many gains crosses
place k.
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.losses.pairs import softplus
from placet.kernels.ranges import longest
from placet.kernels.vector import log

LEAST_GAP = 0.01  # as in LightGBM: weights are divided by this plus the distance of the scores


@jit()
def prefix_sums(discount, n):
    """S_p = D_0 + ... + D_{p-1}, for p = 0..n."""
    sums = np.zeros(n + 1)
    for p in range(n):
        sums[p + 1] = sums[p] + discount[p]
    return sums


@jit()
def group(s, gain, at, a, b, order, member, score, gains, count, low, high):
    """Group rows a..b into classes, in descending order of ``at``; return the number of classes.

    ``order`` (b - a,): the rows in that order; ``member``: the class of each.  Each class has a score, a gain, a count
    and the places ``low``..``high`` of its tied block.
    """
    n = b - a
    order[:n] = np.argsort(-at[a:b], kind="mergesort")
    n_classes, start = 0, 0
    for p in range(n):
        r = a + order[p]
        before = a + order[p - 1]
        apart = p == 0 or at[r] != at[before]
        if apart:
            for c in range(n_classes - 1, -1, -1):
                if low[c] != start:
                    break
                high[c] = p
            start = p
        if apart or gain[r] != gain[before] or s[r] != s[before]:
            score[n_classes], gains[n_classes], count[n_classes], low[n_classes] = s[r], gain[r], 0.0, start
            n_classes += 1
        member[p] = n_classes - 1
        count[n_classes - 1] += 1.0
    for c in range(n_classes - 1, -1, -1):
        if low[c] != start:
            break
        high[c] = n
    return n_classes


@jit()
def pair_weights(c, n_classes, gains, low, high, sums, k, mu, out):
    """out_d = W of a row of class c and a row of class d > c, classes as in `group`.  O(classes)."""
    lo, hi = low[c], high[c]
    size, top = float(hi - lo), min(hi, k) - lo  # places of the block above the cut
    kept, kept_sum = top / size, (sums[lo + top] - sums[lo]) / size
    inside = -1.0  # W between two rows of the block itself, computed when first needed
    for d in range(c + 1, n_classes):
        first, last = low[d], high[d]
        if first == lo:
            if inside < 0.0:
                total = mu * (top * sums[1] - (sums[hi - lo] - sums[hi - lo - top]))
                for p in range(lo, lo + top):
                    total += (hi - 1 - p) * (sums[p + 1] - sums[p]) - (sums[hi] - sums[p + 1])
                inside = 2.0 * total / (size * (size - 1.0))
            w = inside
        else:
            m = float(last - first)
            w = kept_sum - kept * (sums[last] - sums[first]) / m
            if mu > 0.0:
                i, j = first - lo, last - lo
                w += mu * (sums[i] - sums[i - top] - sums[j] + sums[j - top]) / (size * m)
        out[d] = max(w, 0.0) * abs(gains[c] - gains[d])


@jit(fastmath={"contract"}, error_model="numpy")
def pair_terms(x, g, score, gains, sigma, cost, slope, bend):
    """Softplus at z = -sigma times the lead of the better row: its value, its slope in z, positive if the row with gain
    g and score x is the better one and negative otherwise, and its curvature (``bend``).
    """
    for d in range(len(score)):
        side = 1.0 if g > gains[d] else -1.0
        z = -sigma * side * (x - score[d])
        flat, e = softplus(z)
        share = 1.0 / (1.0 + e)
        cost[d] = flat + log(1.0 + e)
        slope[d] = side * (share if z > 0.0 else e * share)
        bend[d] = e * share * share


@jit()
def shrink_by_distance(c, n_classes, x, weights):
    """Divide the weights of class c's pairs by LEAST_GAP plus the distance of the scores."""
    for d in range(c + 1, n_classes):
        weights[d] /= LEAST_GAP + abs(x[c] - x[d])


@jit()
def class_terms(c, m, score, x, norm, gains, low, high, sums, k, mu, sigma, w, cost, slope, bend):
    """Weights and terms of the pairs of class c with later ones, at ``score``; ``norm``: divide by distances in x."""
    pair_weights(c, m, gains, low, high, sums, k, mu, w)
    if norm and x[0] != x[m - 1]:
        shrink_by_distance(c, m, x, w)
    part = slice(c + 1, m)
    pair_terms(score[c], gains[c], score[part], gains[part], sigma, cost[part], slope[part], bend[part])


@jit()
def list_factor(n_classes, x, gains, count, low, high, sums, k, mu, sigma, w, cost, slope, bend):
    """log2(1 + T) / T with T the sum of both slopes of all pairs: LightGBM's normalization of a list."""
    total = 0.0
    for c in range(n_classes):
        if low[c] >= k:
            break
        class_terms(c, n_classes, x, x, True, gains, low, high, sums, k, mu, sigma, w, cost, slope, bend)
        for d in range(c + 1, n_classes):
            total += 2.0 * sigma * count[c] * count[d] * w[d] * abs(slope[d])
    return math.log2(1.0 + total) / total if total > 0.0 else 1.0


@jit()
def lambdas(s, gain, offsets, weight, values, grad, held, discount, k, sigma, mu, unit, norm):
    """unit times the sum over pairs of W softplus(-sigma d); ``held``: scores that fix the places, or empty for ``s``.

    ``norm``: divide W by LEAST_GAP + abs(d) and multiply the list by log2(1 + T) / T (`list_factor`), as in LightGBM.
    """
    n = longest(offsets)
    at, sums = held if len(held) else s, prefix_sums(discount, n)
    order, member, low, high = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )
    score, x, gains, count, pull = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    w, cost, slope, bend = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2 or gain[a:b].max() == gain[a:b].min():
            continue
        m = group(s, gain, at, a, b, order, member, score, gains, count, low, high)
        factor = unit
        if norm:
            for p in range(b - a):
                x[member[p]] = at[a + order[p]]
            factor *= list_factor(m, x, gains, count, low, high, sums, k, mu, sigma, w, cost, slope, bend)
        pull[:m] = 0.0
        total = 0.0
        for c in range(m):
            if low[c] >= k:
                break
            class_terms(c, m, score, x, norm, gains, low, high, sums, k, mu, sigma, w, cost, slope, bend)
            for d in range(c + 1, m):
                total += count[c] * count[d] * w[d] * cost[d]
                push = sigma * w[d] * slope[d]
                pull[c] -= count[d] * push
                pull[d] += count[c] * push
        values[q] = weight[q] * factor * total
        for p in range(b - a):
            grad[a + order[p]] = weight[q] * factor * pull[member[p]]


@jit()
def lambdas_second(s, gain, offsets, weight, out, held, v, other, discount, k, sigma, mu, unit, norm):
    """out_i = sum_j h_ij (v_i - other v_j) of `lambdas` with W fixed: the Hessian's diagonal for v = 1 and other = 0,
    Hessian-vector products for other = 1.
    """
    n = longest(offsets)
    at, sums = held if len(held) else s, prefix_sums(discount, n)
    order, member, low, high = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )
    score, x, gains, count = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    w, cost, slope, bend, along, own, rest = (
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    )  # fmt: skip
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2 or gain[a:b].max() == gain[a:b].min():
            continue
        m = group(s, gain, at, a, b, order, member, score, gains, count, low, high)
        factor = unit
        if norm:
            for p in range(b - a):
                x[member[p]] = at[a + order[p]]
            factor *= list_factor(m, x, gains, count, low, high, sums, k, mu, sigma, w, cost, slope, bend)
        along[:m], own[:m], rest[:m] = 0.0, 0.0, 0.0
        for p in range(b - a):
            along[member[p]] += v[a + order[p]]
        for c in range(m):
            if low[c] >= k:
                break
            class_terms(c, m, score, x, norm, gains, low, high, sums, k, mu, sigma, w, cost, slope, bend)
            for d in range(c + 1, m):
                h = sigma * sigma * w[d] * bend[d]
                own[c] += h * count[d]
                own[d] += h * count[c]
                rest[c] += h * along[d]
                rest[d] += h * along[c]
        for p in range(b - a):
            r, c = a + order[p], member[p]
            out[r] = weight[q] * factor * (own[c] * v[r] - other * rest[c])
