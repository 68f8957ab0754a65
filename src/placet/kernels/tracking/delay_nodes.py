"""Nodes of a quadrature over the delay that all signals of a step share.

At a given position the likelihood of a step, as a function of the delay, has a peak as wide as an arrival at T_j -
mean_i for every signal j and source i, a smooth step where an arrival enters or leaves the record, and is constant
elsewhere.  Midpoints in equal steps integrate a normal density of deviation w to 5e-6 if they are 1.2 w apart; where it
is cut off by the prior, or the prior is hardly wider, Gauss's five points on panels of 2 w do.
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.tracking.association import SQRT_2PI

REACH = 5.5  # standard deviations on either side of a peak or step that nodes cover
FAR_REACH = 37.0  # the same where no signal can be clutter, so that positions far from the truth have a likelihood
SPACING, PANEL = 1.2, 2.0  # distance of midpoints and width of panels, in deviations of the narrowest peak
WIDE = 30.0  # a normal prior with more than this many deviations of an arrival is flat beside a peak
GAUSS = tuple(np.polynomial.legendre.leggauss(5)[0].tolist())
GAUSS_SHARE = tuple((np.polynomial.legendre.leggauss(5)[1] / 2).tolist())


@jit()
def put_gap(a, b, prior, at, node, log_mass):
    """Write one node for all delays from ``a`` to ``b``, where the likelihood is constant; return the next index."""
    first, last, deviation = prior
    if b <= a:
        return at
    if len(node):
        width = deviation * math.sqrt(2.0)
        mass = (b - a) / (last - first) if deviation == np.inf else 0.5 * (math.erf(b / width) - math.erf(a / width))
        node[at], log_mass[at] = 0.5 * (a + b), math.log(mass) if mass > 0 else -np.inf
    return at + 1


@jit()
def put_node(delay, width, prior, at, node, log_mass):
    """Write a node that stands for ``width`` seconds around ``delay``; with empty arrays it is only counted."""
    first, last, deviation = prior
    if len(node):
        node[at] = delay
        if deviation == np.inf:
            log_mass[at] = math.log(width / (last - first))
        else:
            z = delay / deviation
            log_mass[at] = math.log(width / (deviation * SQRT_2PI)) - 0.5 * z * z
    return at + 1


@jit()
def put_cluster(a, b, narrow, cut, prior, at, node, log_mass):
    """Write nodes from ``a`` to ``b`` for peaks of deviation ``narrow`` or more; ``cut``: one may be cut off."""
    n = math.ceil((b - a) / (narrow * (PANEL if cut else SPACING)))
    step = (b - a) / n
    for k in range(n):
        if cut:
            for q in range(5):
                delay = a + (k + 0.5 + 0.5 * GAUSS[q]) * step
                at = put_node(delay, step * GAUSS_SHARE[q], prior, at, node, log_mass)
        else:
            at = put_node(a + (k + 0.5) * step, step, prior, at, node, log_mass)
    return at


@jit()
def find_spans(mean, step, reach, start, end, signal):
    """Intervals of the delay around each peak and each smooth step; ``signal`` is -1 for the latter.  Their number."""
    n = 0
    for i in range(len(mean)):
        if step.detection[i] == 0.0:
            continue
        half = reach * step.sigma[i]
        for j in range(len(step.time)):
            if step.label[j] == -1:
                start[n], end[n], signal[n] = step.time[j] - mean[i] - half, step.time[j] - mean[i] + half, j
                n += 1
        if step.ranked:
            for edge in (step.low, step.cut):
                if math.isfinite(edge):
                    start[n], end[n], signal[n] = edge - mean[i] - half, edge - mean[i] + half, -1
                    n += 1
    return n


@jit()
def nodes_of_one(mean, step, prior, at, node, log_mass):
    """Write the nodes of one position from index ``at`` on and return the next index; see `delay_nodes`.

    Where a signal cannot be clutter, only clusters of peaks that explain all such signals have nodes.
    """
    first, last, deviation = prior
    s, r = len(mean), len(step.time)
    must = 0
    for j in range(r):
        if step.label[j] == -1 and step.clutter[j] == 0.0:
            must |= 1 << j
    start, end, signal = np.empty(s * (r + 2)), np.empty(s * (r + 2)), np.empty(s * (r + 2), np.int64)
    n = find_spans(mean, step, FAR_REACH if must else REACH, start, end, signal)
    order = np.argsort(start[:n])
    narrowest, done, k = step.sigma.min() if s else 1.0, first, 0
    while k < n:
        a, b, peaks, explained = start[order[k]], end[order[k]], 0, 0
        while k < n and start[order[k]] <= b:
            own = order[k]
            b = max(b, end[own])
            if signal[own] >= 0:
                peaks += 1
                explained |= 1 << signal[own]
            k += 1
        cut = a < first or b > last if deviation == np.inf else deviation < WIDE * narrowest
        a, b = max(a, done), min(b, last)
        if b <= a:
            continue
        if not must:  # constant between clusters
            at = put_gap(done, a, prior, at, node, log_mass)
        if must & ~explained == 0:
            sharp = max(1, min(peaks, r, s)) / narrowest**2 + 1 / deviation**2
            at = put_cluster(a, b, 1 / math.sqrt(sharp), cut, prior, at, node, log_mass)
        done = b
    return at if must else put_gap(done, last, prior, at, node, log_mass)


@jit()
def delay_nodes(distance, step, prior, offsets, node, log_mass):
    """Nodes and log masses of the delay at each position, the rows ``offsets[p]:offsets[p + 1]``.

    ``distance`` (positions, sources); ``prior`` = (first, last, deviation): uniform between first and last if the
    deviation is infinite, else normal around 0.  With empty ``node`` only ``offsets`` is filled.
    O(sources x signals log) for each position.
    """
    mean = np.empty(distance.shape[1])
    at = 0
    for p in range(len(distance)):
        for i in range(len(mean)):
            mean[i] = step.shift[i] + distance[p, i] / step.speed[i]
        offsets[p] = at
        at = nodes_of_one(mean, step, prior, at, node, log_mass)
    offsets[len(distance)] = at
