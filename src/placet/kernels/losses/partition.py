"""Exact Plackett-Luce likelihood of an ordered partition: stage k is "all of tier k before all of the tiers below it".

With L_k and rest_k as in `plackett_luce`, stage k has log P_k = f(d_i = s_i - L_{k+1}, i in tier k) (`quadrature`).
Its slopes g_i are added to the tied rows, and minus their sum G_k is split among the rows below by softmax shares: a
row of tier t receives e^{s - L_t} B_t with B_{t+1} = rest_t B_t + G_t.  The lowest tier contributes no stage.
``stage`` (rows, or empty): the factor of each stage, at the first row of its tier.
O(rows + nodes * tied rows) time, O(rows of a list) scratch memory.
"""

import math

import numpy as np

import placet.kernels.losses.quadrature as quadrature
from placet.kernels.jit import jit
from placet.kernels.losses.plackett_luce import mean_below, stage_factor, tier_stages
from placet.kernels.ranges import longest, lowest_tier


@jit()
def _stage(s, first, last, below, tol, item, node, exponent):
    """log P of one stage and its number of nodes; d_i, a_i, nodes and weights are left in the scratch arrays."""
    for r in range(first, last):
        item[0, r - first] = s[r] - below
    return quadrature.log_probability(
        item[0], last - first, tol, item[1], item[2], item[3], item[4], node[0], node[1], node[2], exponent
    )


@jit()
def _largest_tied(grade, offsets):
    """Number of rows of the largest tier that is not the lowest of its list."""
    largest = 0
    for q in range(len(offsets) - 1):
        first = offsets[q]
        if first == offsets[q + 1]:
            continue
        for r in range(first + 1, lowest_tier(grade, first, offsets[q + 1]) + 1):
            if grade[r] != grade[r - 1]:
                largest = max(largest, r - first)
                first = r
    return largest


@jit(error_model="numpy")
def _single(d):
    """(log P, slope) of one item before the rest: P = 1 / (1 + e^-d)."""
    e = math.exp(-abs(d))
    if d > 0:
        return -math.log1p(e), e / (1.0 + e)
    return d - math.log1p(e), 1.0 / (1.0 + e)


@jit(error_model="numpy")
def partition(s, grade, offsets, weight, values, out, v, tol, stage):
    """- sum of log P_k over tiers k above the lowest, with its gradient in ``out``; or, given ``v``, Hessian times v.

    With u = v - mean of v below and H the Hessian of log P: - H u at tied rows and p (1'Hu + G (v - mean)) at rows
    below.  An empty ``v`` requests value and gradient; otherwise ``values`` is left unchanged.  One kernel does both,
    since they share the quadrature, which takes longest to compile.
    """
    n, tied, product = longest(offsets), _largest_tied(grade, offsets), len(v) > 0
    starts, exponent = np.empty(n + 1, np.int64), np.empty(quadrature.MAX_NODES, np.int64)
    own, left, share, rest, inner, mean = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    item, node, u = np.empty((5, tied)), np.empty((3, quadrature.MAX_NODES)), np.empty(tied)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        n_tiers = tier_stages(s, grade, a, b, starts, out, own, left, share, rest)
        if product:
            for t in range(n_tiers):
                inner[t] = 0.0
                for r in range(starts[t], starts[t + 1]):
                    inner[t] += out[r] * v[r]
            mean_below(n_tiers, share, rest, inner, mean)
        total, pull, bent = 0.0, 0.0, 0.0
        for t in range(n_tiers):
            first, last = starts[t], starts[t + 1]
            scale = weight[q] * share[t]
            if product:
                for r in range(first, last):
                    out[r] *= scale * (bent + pull * v[r])
            else:
                for r in range(first, last):
                    out[r] *= scale * pull
            if t == n_tiers - 1:
                break
            factor = stage_factor(stage, first)
            change = 0.0
            if last - first == 1:
                log_p, slope = _single(s[first] - left[t + 1])
                if product:
                    change = -slope * (1.0 - slope) * (v[first] - mean[t + 1])
                out[first] -= weight[q] * factor * (change if product else slope)
            else:
                log_p, nodes = _stage(s, first, last, left[t + 1], tol, item, node, exponent)
                m, row = last - first, 2
                slope = quadrature.slopes(item[1], m, node[0], node[1], nodes, node[2], item[2])
                if product:
                    row = 3
                    for r in range(first, last):
                        u[r - first] = v[r] - mean[t + 1]
                    change = quadrature.hessian_product(
                        item[1], m, node[0], node[1], nodes, node[2], item[2], u, item[3]
                    )
                for r in range(first, last):
                    out[r] -= weight[q] * factor * item[row, r - first]
            total -= factor * log_p
            if product:
                bent = rest[t] * bent + factor * (change - slope * mean[t + 1])
            pull = rest[t] * pull + factor * slope
        if not product:
            values[q] = weight[q] * total


@jit(error_model="numpy")
def partition_curvature(s, grade, offsets, weight, out, tol, stage):
    """Diagonal of the Hessian: g^2 - E[phi (1 - y)] at tied rows, G p - p^2 (G + 1'H1) at rows below, H the
    Hessian of log P.
    """
    n, tied = longest(offsets), _largest_tied(grade, offsets)
    starts, exponent = np.empty(n + 1, np.int64), np.empty(quadrature.MAX_NODES, np.int64)
    own, left, share, rest = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    item, node = np.empty((5, tied)), np.empty((3, quadrature.MAX_NODES))
    ones = np.ones(tied)
    for q in range(len(weight)):
        a, b = offsets[q], offsets[q + 1]
        if b - a < 2:
            continue
        n_tiers = tier_stages(s, grade, a, b, starts, out, own, left, share, rest)
        pull, squares = 0.0, 0.0
        for t in range(n_tiers):
            first, last = starts[t], starts[t + 1]
            for r in range(first, last):
                p = out[r] * share[t]
                out[r] = p * (pull - p * squares)
            if t < n_tiers - 1:
                factor = stage_factor(stage, first)
                if last - first == 1:
                    _, slope = _single(s[first] - left[t + 1])
                    bent = -slope * (1.0 - slope)
                    out[first] -= factor * bent
                else:
                    _, nodes = _stage(s, first, last, left[t + 1], tol, item, node, exponent)
                    m = last - first
                    slope = quadrature.slopes(item[1], m, node[0], node[1], nodes, node[2], item[2])
                    quadrature.diagonal(item[1], m, node[0], node[1], nodes, node[2], item[2], item[3])
                    for r in range(first, last):
                        out[r] -= factor * item[3, r - first]
                    bent = quadrature.hessian_product(
                        item[1], m, node[0], node[1], nodes, node[2], item[2], ones, item[3]
                    )
                pull, squares = rest[t] * pull + factor * slope, rest[t] ** 2 * squares + factor * (slope + bent)
            for r in range(first, last):
                out[r] = weight[q] * max(out[r], 0.0)


@jit(error_model="numpy")
def partition_hessian(s, item, grade, offsets, weight, tol, out):
    """Add half of the Hessian by item to ``out`` (n, n): adding the transpose completes it.

    With H the Hessian of log P in a stage, h = H 1 and p the shares of the rows below, the stage adds -H to tied rows,
    h p' between these and the rows below, and G diag(p) - (G + 1'h) p p' to the rows below.
    O(sum over lists of rows^2 + nodes times tied rows^2).
    """
    n, tied = longest(offsets), _largest_tied(grade, offsets)
    starts, exponent = np.empty(n + 1, np.int64), np.empty(quadrature.MAX_NODES, np.int64)
    own, left, share, rest = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    columns, node = np.empty((5, tied)), np.empty((3, quadrature.MAX_NODES))
    within, e, below = np.empty((tied, tied)), np.empty(len(s)), np.empty(n)
    for q in range(len(weight)):
        a, b, w = offsets[q], offsets[q + 1], weight[q]
        if b - a < 2 or w == 0.0:
            continue
        n_tiers = tier_stages(s, grade, a, b, starts, e, own, left, share, rest)
        pull, squares = 0.0, 0.0  # from the stages above, relative to shares among the rows from this tier on
        for t in range(n_tiers):
            first, last = starts[t], starts[t + 1]
            for r in range(first, last):
                e[r] *= share[t]
                i = item[r]
                out[i, i] += 0.5 * w * e[r] * (pull - squares * e[r])
                for k in range(first, r):
                    out[i, item[k]] -= w * squares * e[r] * e[k]
            if t == n_tiers - 1:
                break
            m = last - first
            if m == 1:
                _, slope = _single(s[first] - left[t + 1])
                within[0, 0] = columns[3, 0] = bent = -slope * (1.0 - slope)
            else:
                _, nodes = _stage(s, first, last, left[t + 1], tol, columns, node, exponent)
                slope = quadrature.slopes(columns[1], m, node[0], node[1], nodes, node[2], columns[2])
                bent = quadrature.hessian(columns[1], m, node[0], node[1], nodes, columns[2], within, columns[3])
            lower = w
            for u in range(t + 1, n_tiers):
                for r in range(starts[u], starts[u + 1]):
                    below[r - a] = lower * share[u] * e[r]
                lower *= rest[u]
            for r in range(first, last):
                i, j = item[r], r - first
                out[i, i] -= 0.5 * w * within[j, j]
                for k in range(j):
                    out[i, item[first + k]] -= w * within[j, k]
                across = columns[3, j] - squares * rest[t] * e[r]
                for k in range(last, b):
                    out[i, item[k]] += across * below[k - a]
            squares, pull = rest[t] ** 2 * squares + slope + bent, rest[t] * pull + slope
