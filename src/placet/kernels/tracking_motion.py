"""How particles move, are weighed against a known end, resampled, and traced backwards.

A state is (north or first coordinate, east or second coordinate[, velocity of both]).  On the ellipsoid positions
are degrees and every displacement is in kilometres of the tangent plane where it starts.  A move from state z, seen
from its own position (so z = (0, 0, v)), is z' = F z + K (end - position - A F z) + L n, n standard normal: with K =
0 the free motion, else the motion that is to reach the known end (a Brownian bridge when there is no velocity).
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.tracking_distance import km_per_degree

LOG_2PI = math.log(2 * math.pi)


@jit()
def displacement(here, there, geographic):
    """``there`` as seen from ``here``: (first, second) difference, in kilometres when geographic."""
    first, second = there[0] - here[0], there[1] - here[1]
    if geographic:
        north, east = km_per_degree(here[0])
        second -= 360.0 * np.round(second / 360.0)
        return first * north, second * east
    return first, second


@jit()
def log_normal(x, root, log_det):
    """log density of N(0, L L') at ``x``, L lower triangular, ``log_det`` = log |L|; destroys ``x``."""
    square = 0.0
    for a in range(len(x)):
        for b in range(a):
            x[a] -= root[a, b] * x[b]
        x[a] /= root[a, a]
        square += x[a] * x[a]
    return -0.5 * square - log_det - 0.5 * len(x) * LOG_2PI


@jit()
def log_reach(state, end, ahead, root, log_det, geographic):
    """log density of the known end given a state: the position plus ``ahead`` x velocity, with covariance root
    root'.
    """
    gap = np.empty(2)
    gap[0], gap[1] = displacement(state, end, geographic)
    if len(state) == 4:
        gap[0] -= ahead * state[2]
        gap[1] -= ahead * state[3]
    return log_normal(gap, root, log_det)


@jit()
def move(state, normal, F, L, geographic):
    """Every state moved freely, in place.  O(particles)."""
    n, d = state.shape
    step = np.empty(d)
    for p in range(n):
        for a in range(d):
            step[a] = 0.0
            for b in range(2, d):
                step[a] += F[a, b] * state[p, b]
            for b in range(a + 1):
                step[a] += L[a, b] * normal[p, b]
        place(state[p], step, geographic)


@jit()
def place(state, step, geographic):
    """``state`` moved by ``step``: its position by the first two entries, its velocity replaced by the others."""
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
def place_all(state, step, geographic):
    """Every state moved by its own step, in place."""
    for p in range(len(state)):
        place(state[p], step[p], geographic)


@jit()
def log_reach_all(state, end, ahead, root, geographic, out):
    """``out[p]`` = log density of the known end given state ``p``."""
    log_det = np.log(np.diag(root)).sum()
    for p in range(len(state)):
        out[p] = log_reach(state[p], end, ahead, root, log_det, geographic)


@jit()
def move_towards(
    state, normal, F, Q_root, K, AF, L, end, ahead, reach_root, next_ahead, next_root, geographic, log_weight
):
    """Every state moved towards the known end, in place; adds log f(z'|z) h'(z') / (q(z'|z) h(z)) to ``log_weight``.

    f is the free motion, q the motion used, h the density of the end given a state.  In the plane the sum is 0 for
    every particle; on the ellipsoid it mends the tangent planes.  O(particles).
    """
    n, d = state.shape
    step, rest, gap = np.empty(d), np.empty(d), np.empty(2)
    q_det, l_det = np.log(np.diag(Q_root)).sum(), np.log(np.diag(L)).sum()
    h_det, next_det = np.log(np.diag(reach_root)).sum(), np.log(np.diag(next_root)).sum()
    for p in range(n):
        gain = -log_reach(state[p], end, ahead, reach_root, h_det, geographic)
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
        place(state[p], step, geographic)
        gain += log_reach(state[p], end, next_ahead, next_root, next_det, geographic)
        log_weight[p] += gain


@jit()
def systematic(weight, u, out):
    """Indices drawn in proportion to ``weight`` at the points (k + u) / len(out).  O(particles + draws)."""
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
def log_step(state, following, F, Q_root, q_det, geographic, north, east, rest):
    """log density of the free motion from ``state`` to ``following``; ``rest`` (d,) is overwritten."""
    turn = following[1] - state[1]
    if geographic:
        turn -= 360.0 * np.round(turn / 360.0)
    rest[0], rest[1] = (following[0] - state[0]) * north, turn * east
    for a in range(2, len(rest)):
        rest[a] = following[a]
    for a in range(len(rest)):
        for b in range(2, len(rest)):
            rest[a] -= F[a, b] * state[b]
    return log_normal(rest, Q_root, q_det)


@jit()
def tangent_plane(state, has_end, end, ahead, reach_root, h_det, geographic):
    """Kilometers per degree at ``state``, and the part of its log weight that does not depend on what follows.

    Densities per square kilometer of different tangent planes become densities per square degree, over h(state).
    """
    north, east, fixed = 1.0, 1.0, 0.0
    if geographic:
        north, east = km_per_degree(state[0])
        fixed = math.log(north * east)
    if has_end:
        fixed -= log_reach(state, end, ahead, reach_root, h_det, geographic)
    return north, east, fixed


@jit()
def trace_back(state, ancestor, following, u, F, Q_root, has_end, end, ahead, reach_root, geographic, out):
    """``out[m]`` = index of one of the states, or ``len(state)`` for ``ancestor[m]``, the state that following[m] came
    from; drawn in proportion to f(following[m] | state) / h(state).  O(draws x states).

    With states drawn from the cloud, this is iterated sampling importance resampling: it leaves the distribution of
    the ancestor given what follows as it is, however few the states are, and never takes a step that the motion could
    not take.
    """
    n, d = state.shape
    log_weight, rest = np.empty(n + 1), np.empty(d)
    q_det, h_det = np.log(np.diag(Q_root)).sum(), np.log(np.diag(reach_root)).sum()
    north, east, fixed = np.empty(n), np.empty(n), np.empty(n)
    for p in range(n):
        north[p], east[p], fixed[p] = tangent_plane(state[p], has_end, end, ahead, reach_root, h_det, geographic)
    for m in range(len(following)):
        km_north, km_east, more = tangent_plane(ancestor[m], has_end, end, ahead, reach_root, h_det, geographic)
        top = log_step(ancestor[m], following[m], F, Q_root, q_det, geographic, km_north, km_east, rest) + more
        log_weight[n] = top
        for p in range(n):
            value = log_step(state[p], following[m], F, Q_root, q_det, geographic, north[p], east[p], rest) + fixed[p]
            log_weight[p] = value
            top = max(top, value)
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
