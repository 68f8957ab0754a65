"""Belief propagation on the bipartite graph of sources and signals: for more signals than subsets can be counted for.

The arguments of a step are those of ``placet.kernels.association``.
"""

import math

import numpy as np

from placet.kernels.association import log_add, log_factors
from placet.kernels.jit import jit

FLOOR = 1e-200  # stands for "no clutter": keeps the messages of a signal that must be matched finite


@jit()
def propagate(pair, unheard, clutter, to_signal, to_source, tolerance, max_iter):
    """Messages at their fixed point, and the number of iterations; ``pair, unheard, clutter`` are plain factors, not
    logarithms.

    to_signal_ij = pair_ij / (unheard_i + sum_{k != j} pair_ik to_source_ik)
    to_source_ij = 1 / (clutter_j + sum_{k != i} to_signal_kj)

    The fixed point is unique (Williams and Lau).  O(sources x signals) for each iteration.
    """
    s, r = pair.shape
    before = np.empty(s)
    for j in range(r):
        total = clutter[j] + pair[:, j].sum()
        for i in range(s):
            to_source[i, j] = 1.0 / max(total, FLOOR)
    for iteration in range(max_iter):
        # "All but this one" as what lies before plus what lies after: a difference from the whole sum would lose its
        # digits.
        for i in range(s):
            total = unheard[i]
            for j in range(r):
                to_signal[i, j] = total
                total += pair[i, j] * to_source[i, j]
            total = 0.0
            for j in range(r - 1, -1, -1):
                others = to_signal[i, j] + total
                to_signal[i, j] = pair[i, j] / max(others, FLOOR)
                total += pair[i, j] * to_source[i, j]
        change = 0.0
        for j in range(r):
            total = clutter[j]
            for i in range(s):
                before[i] = total
                total += to_signal[i, j]
            total = 0.0
            for i in range(s - 1, -1, -1):
                message = 1.0 / max(before[i] + total, FLOOR)
                change = max(change, abs(message - to_source[i, j]) / message)
                to_source[i, j] = message
                total += to_signal[i, j]
        if change < tolerance:
            return iteration + 1
    return max_iter


@jit()
def bethe(pair, unheard, clutter, to_signal, to_source):
    """log Z by the Bethe free energy: node terms less edge terms, exact when the pairs that are not 0 form a forest."""
    s, r = pair.shape
    value = 0.0
    for i in range(s):
        node = unheard[i]
        for j in range(r):
            node += pair[i, j] * to_source[i, j]
            value -= math.log1p(to_signal[i, j] * to_source[i, j])
        value += math.log(max(node, FLOOR))
    for j in range(r):
        value += math.log(max(clutter[j] + to_signal[:, j].sum(), FLOOR))
    return value


@jit()
def scale(pair, unheard, clutter, label, factor, missed, plain_clutter):
    """Plain factors with a largest entry of 1 for each signal; returns the log of what was divided out."""
    s, r = pair.shape
    taken = 0.0
    for j in range(r):
        log_clutter = math.log(clutter[j]) if clutter[j] > 0 and label[j] < 0 else -np.inf
        top = max(pair[:, j].max(), log_clutter) if s else log_clutter
        if top == -np.inf:
            return -np.inf
        taken += top
        plain_clutter[j] = math.exp(log_clutter - top)
        for i in range(s):
            factor[i, j] = math.exp(pair[i, j] - top)
    for i in range(s):
        missed[i] = math.exp(unheard[i])
    return taken


@jit()
def log_likelihood(
    distance, shift, speed, sigma, detection, low, cut, time, clutter, label, level, log_level, ranked, out
):
    """``out[p]`` += log p(signals | position p) by the Bethe free energy.  O(iterations x sources x signals) each."""
    s, r = distance.shape[1], len(time)
    pair, unheard = np.empty((s, r)), np.empty(s)
    factor, missed, plain = np.empty((s, r)), np.empty(s), np.empty(r)
    to_signal, to_source = np.empty((s, r)), np.empty((s, r))
    for p in range(len(distance)):
        total = -np.inf
        for q in range(len(level)):
            log_factors(
                distance[p],
                shift,
                speed,
                sigma,
                detection,
                low,
                cut,
                time,
                clutter,
                label,
                level[q],
                ranked,
                pair,
                unheard,
            )
            taken = scale(pair, unheard, clutter, label, factor, missed, plain)
            if taken == -np.inf:
                continue
            propagate(factor, missed, plain, to_signal, to_source, 1e-9, 1000)
            value = bethe(factor, missed, plain, to_signal, to_source)
            total = log_add(total, log_level[q] + taken + value)
        out[p] += total


@jit()
def marginals(distance, shift, speed, sigma, detection, low, cut, time, clutter, label, level, log_level, ranked, out):
    """``out[p, j, i]`` = belief that signal j came from source i: to_signal_ij / (clutter_j + sum_k to_signal_kj)."""
    s, r = distance.shape[1], len(time)
    pair, unheard = np.empty((s, r)), np.empty(s)
    factor, missed, plain = np.empty((s, r)), np.empty(s), np.empty(r)
    to_signal, to_source = np.empty((s, r)), np.empty((s, r))
    for p in range(len(distance)):
        total = -np.inf
        out[p] = 0.0
        for q in range(len(level)):
            log_factors(
                distance[p],
                shift,
                speed,
                sigma,
                detection,
                low,
                cut,
                time,
                clutter,
                label,
                level[q],
                ranked,
                pair,
                unheard,
            )
            taken = scale(pair, unheard, clutter, label, factor, missed, plain)
            if taken == -np.inf:
                continue
            propagate(factor, missed, plain, to_signal, to_source, 1e-9, 1000)
            value = log_level[q] + taken + bethe(factor, missed, plain, to_signal, to_source)
            total = log_add(total, value)
            share = math.exp(value - total)
            for j in range(r):
                node = max(plain[j] + to_signal[:, j].sum(), FLOOR)
                for i in range(s):
                    # A running mean over the levels, each with its share of the likelihood so far.
                    out[p, j, i] += share * (to_signal[i, j] / node - out[p, j, i])
        if total == -np.inf:
            out[p] = np.nan
