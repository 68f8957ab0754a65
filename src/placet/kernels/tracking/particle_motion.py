"""Particle motion: moves, weights given a known end, resampling, and backward tracing.

A state is (north or first coordinate, east or second coordinate[, velocity of both]).  On the ellipsoid, positions
are in degrees and displacements in kilometers of the tangent plane at their start.  A move from state z, relative to
its own position (so z = (0, 0, v)), is z' = F z + K (end - position - A F z) + L n, n standard normal: K = 0 gives
free motion, any other K motion conditioned on the known end (a Brownian bridge if there is no velocity).
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.tracking.beacon_distance import km_per_degree

LOG_2PI = math.log(2 * math.pi)


@jit()
def displacement(here, there, geographic):
    """``there`` as seen from ``here``: (first, second) difference, in kilometers when geographic."""
    first, second = there[0] - here[0], there[1] - here[1]
    if geographic:
        north, east = km_per_degree(here[0])
        second -= 360.0 * np.round(second / 360.0)
        return first * north, second * east
    return first, second


@jit()
def log_normal(x, root, log_det):
    """log density of N(0, L L') at ``x``, L lower triangular, ``log_det`` = log |L|; overwrites ``x``."""
    square = 0.0
    for a in range(len(x)):
        for b in range(a):
            x[a] -= root[a, b] * x[b]
        x[a] /= root[a, a]
        square += x[a] * x[a]
    return -0.5 * square - log_det - 0.5 * len(x) * LOG_2PI


@jit()
def log_end_density(state, end, ahead, root, log_det, geographic):
    """log density of the known end given a state: mean position + ``ahead`` x velocity, covariance root root'."""
    gap = np.empty(2)
    gap[0], gap[1] = displacement(state, end, geographic)
    if len(state) == 4:
        gap[0] -= ahead * state[2]
        gap[1] -= ahead * state[3]
    return log_normal(gap, root, log_det)


@jit()
def move(state, normal, F, L, geographic):
    """Move every state freely, in place.  O(particles)."""
    n, d = state.shape
    step = np.empty(d)
    for p in range(n):
        for a in range(d):
            step[a] = 0.0
            for b in range(2, d):
                step[a] += F[a, b] * state[p, b]
            for b in range(a + 1):
                step[a] += L[a, b] * normal[p, b]
        apply_step(state[p], step, geographic)


@jit()
def apply_step(state, step, geographic):
    """Move the position of ``state`` by the first two entries of ``step``; replace its velocity by the others."""
    north, east = 1.0, 1.0
    if geographic:
        north, east = km_per_degree(state[0])
    state[0] += step[0] / north
    state[1] += step[1] / east
    if geographic:
        state[1] -= 360.0 * np.round(state[1] / 360.0)
    for a in range(2, len(step)):
        state[a] = step[a]


@jit()
def apply_steps(state, step, geographic):
    """Move every state by its own step, in place."""
    for p in range(len(state)):
        apply_step(state[p], step[p], geographic)


@jit()
def log_end_densities(state, end, ahead, root, geographic, out):
    """``out[p]`` = log density of the known end given state ``p``."""
    log_det = np.log(np.diag(root)).sum()
    for p in range(len(state)):
        out[p] = log_end_density(state[p], end, ahead, root, log_det, geographic)


@jit()
def move_towards(
    state, normal, F, Q_root, K, AF, L, end, ahead, reach_root, next_ahead, next_root, geographic, log_weight
):
    """Move every state towards the known end, in place; add log f(z'|z) h'(z') / (q(z'|z) h(z)) to ``log_weight``.

    f is the free motion, q the motion used, h the density of the end given a state.  In the plane this is 0 for every
    particle; on the ellipsoid it corrects for the tangent planes.  O(particles).
    """
    n, d = state.shape
    step, rest, gap = np.empty(d), np.empty(d), np.empty(2)
    q_det, l_det = np.log(np.diag(Q_root)).sum(), np.log(np.diag(L)).sum()
    h_det, next_det = np.log(np.diag(reach_root)).sum(), np.log(np.diag(next_root)).sum()
    for p in range(n):
        gain = -log_end_density(state[p], end, ahead, reach_root, h_det, geographic)
        gap[0], gap[1] = displacement(state[p], end, geographic)
        for b in range(2, d):
            gap[0] -= AF[0, b] * state[p, b]
            gap[1] -= AF[1, b] * state[p, b]
        for a in range(d):
            free = 0.0
            for b in range(2, d):
                free += F[a, b] * state[p, b]
            step[a] = free + K[a, 0] * gap[0] + K[a, 1] * gap[1]
            for b in range(a + 1):
                step[a] += L[a, b] * normal[p, b]
            rest[a] = step[a] - free
            gain += 0.5 * normal[p, a] * normal[p, a] + 0.5 * LOG_2PI
        gain += l_det + log_normal(rest, Q_root, q_det)
        apply_step(state[p], step, geographic)
        gain += log_end_density(state[p], end, next_ahead, next_root, next_det, geographic)
        log_weight[p] += gain


@jit()
def systematic(weight, u, out):
    """Systematic resampling: indices in proportion to ``weight``, at (k + u) / len(out).  O(particles + draws)."""
    total = weight.sum()
    last = len(weight) - 1
    p, below = 0, weight[0]
    for k in range(len(out)):
        target = (k + u) / len(out) * total
        while below <= target and p < last:
            p += 1
            below += weight[p]
        out[k] = p


@jit()
def prepare_origin(state, p, F, whiten, has_end, end, ahead, reach_root, h_det, geographic, column):
    """Fill column ``p`` of ``column`` (9, n) with the data that ``trace_back`` needs of a possible ancestor state.

    Its position; kilometers per degree there; the part of its log weight that does not depend on its successor; and its
    whitened mean move.
    """
    north, east, fixed = 1.0, 1.0, 0.0
    if geographic:
        north, east = km_per_degree(state[0])
        # Convert densities per square kilometer of different tangent planes to densities per square degree.
        fixed = math.log(north * east)
    if has_end:
        fixed -= log_end_density(state, end, ahead, reach_root, h_det, geographic)
    column[0, p], column[1, p], column[2, p], column[3, p], column[4, p] = state[0], state[1], north, east, fixed
    for a in range(len(state)):
        mean = 0.0
        for b in range(a + 1):
            for c in range(2, len(state)):
                mean += whiten[a, b] * F[b, c] * state[c]
        column[5 + a, p] = mean


@jit()
def trace_back(state, ancestor, following, u, F, Q_root, has_end, end, ahead, reach_root, geographic, out):
    """Draw an ancestor of each following[m] in proportion to f(following[m] | state) / h(state).  O(draws x states).

    ``out[m]`` is the index of a state, or ``len(state)`` for ``ancestor[m]``, the state that following[m] came from.
    With states drawn from the particle cloud, this is iterated sampling importance resampling: it leaves the
    distribution of the ancestor given its successor invariant, even for few states, and never takes a step that is
    impossible for the motion.
    """
    n, d = state.shape
    whiten = np.linalg.inv(Q_root)
    h_det = np.log(np.diag(reach_root)).sum()
    column, log_weight = np.zeros((9, n + 1)), np.empty(n + 1)
    for p in range(n):
        prepare_origin(state[p], p, F, whiten, has_end, end, ahead, reach_root, h_det, geographic, column)
    first, second, north, east, fixed = column[0], column[1], column[2], column[3], column[4]
    mean_0, mean_1, mean_2, mean_3 = column[5], column[6], column[7], column[8]
    w00, w10, w11 = whiten[0, 0], whiten[1, 0], whiten[1, 1]
    for m in range(len(following)):
        prepare_origin(ancestor[m], n, F, whiten, has_end, end, ahead, reach_root, h_det, geographic, column)
        here, there = following[m, 0], following[m, 1]
        for p in range(n + 1):
            turn = there - second[p]
            if geographic:
                turn -= 360.0 * np.round(turn / 360.0)
            along, across = (here - first[p]) * north[p], turn * east[p]
            z0 = w00 * along - mean_0[p]
            z1 = w10 * along + w11 * across - mean_1[p]
            log_weight[p] = fixed[p] - 0.5 * (z0 * z0 + z1 * z1)
            if d == 4:
                v0, v1 = following[m, 2], following[m, 3]
                z2 = whiten[2, 0] * along + whiten[2, 1] * across + whiten[2, 2] * v0 - mean_2[p]
                z3 = whiten[3, 0] * along + whiten[3, 1] * across + whiten[3, 2] * v0 + whiten[3, 3] * v1 - mean_3[p]
                log_weight[p] -= 0.5 * (z2 * z2 + z3 * z3)
        top = log_weight.max()
        total = 0.0
        for p in range(n + 1):
            gap = log_weight[p] - top
            log_weight[p] = math.exp(gap) if gap > -45.0 else 0.0
            total += log_weight[p]
        target, p = u[m] * total, 0
        below = log_weight[0]
        while below <= target and p < n:
            p += 1
            below += log_weight[p]
        out[m] = p
