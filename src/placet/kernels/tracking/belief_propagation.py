"""Belief propagation on the bipartite graph of sources and signals, for too many signals to enumerate subsets."""

import math

import numpy as np

from placet.kernels.jit import jit

FLOOR = 1e-200  # replaces zero clutter: keeps the messages of a signal that must be matched finite


@jit()
def propagate(pair, unheard, clutter, to_signal, to_source, tolerance, max_iter):
    """Iterate the messages to their fixed point; return the number of iterations.

    ``pair``, ``unheard`` and ``clutter`` are plain factors, not logarithms.

    to_signal_ij = pair_ij / (unheard_i + sum_{k != j} pair_ik to_source_ik)
    to_source_ij = 1 / (clutter_j + sum_{k != i} to_signal_kj)

    The fixed point is unique (Williams and Lau).  O(sources x signals) per iteration.
    """
    s, r = pair.shape
    before = np.empty(s)
    for j in range(r):
        total = clutter[j] + pair[:, j].sum()
        for i in range(s):
            to_source[i, j] = 1.0 / max(total, FLOOR)
    for iteration in range(max_iter):
        # Sums over all but one as prefix plus suffix: subtracting from the total would lose precision.
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
def bethe_free_energy(pair, unheard, clutter, to_signal, to_source):
    """log Z by the Bethe free energy: node terms minus edge terms, exact if the nonzero pairs form a forest."""
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
def sum_by_bethe(pair, unheard, log_clutter, messages, share):
    """Log of the sum over all associations by the Bethe free energy.

    Unless it has no rows, ``share[j, i]`` receives the belief that signal j came from source i, to_signal_ij /
    (clutter_j + sum_k to_signal_kj).  ``pair`` (sources, signals), ``unheard`` (sources,), ``log_clutter`` (signals,):
    log factors; ``messages`` (3, sources, signals) is overwritten.  O(iterations x sources x signals).
    """
    s, r = pair.shape
    factor, to_signal, to_source = messages[0], messages[1], messages[2]
    clutter = np.empty(r)
    taken = 0.0
    for j in range(r):  # plain factors, scaled to a largest entry of 1 for each signal
        top = max(pair[:, j].max(), log_clutter[j]) if s else log_clutter[j]
        if top == -np.inf:
            return -np.inf
        taken += top
        clutter[j] = math.exp(log_clutter[j] - top)
        for i in range(s):
            factor[i, j] = math.exp(pair[i, j] - top)
    missed = np.exp(unheard)
    propagate(factor, missed, clutter, to_signal, to_source, 1e-9, 1000)
    for j in range(len(share)):
        node = max(clutter[j] + to_signal[:, j].sum(), FLOOR)
        for i in range(s):
            share[j, i] = to_signal[i, j] / node
    return taken + bethe_free_energy(factor, missed, clutter, to_signal, to_source)
