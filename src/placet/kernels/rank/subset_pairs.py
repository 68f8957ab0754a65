"""Probabilities of pairs of rows under the general-state model over ordered partitions: a sum over all subsets.

A stage draws a tier D from the remaining rows T with probability e^{mean of s over D} / Z(T).  Let P(T) be the
probability that T remains before some stage, and q(T) = P(T) / Z(T):

    P(R) = sum over nonempty D outside R of q(R + D) Phi(D),    P(all) = 1,
    P(i above j) = sum over tiers D with i, without j, of Phi(D) Q(D + j),    Q(U) = sum over T that contain U of q(T).

Z(T) is not a product, nor a sum, of terms of its rows, so the remaining sets do not merge into fewer states: time is
3^N, memory 2^N.  Rows descend, so that the lowest row of a set is its best, and sets are bit masks.  Potentials
and normalizers are relative to the best row of their set: nothing overflows, and what underflows is below 1e-300 of a
probability.
"""

import math

import numpy as np

from placet.kernels.jit import jit


@jit()
def lowest_rows(n, low):
    """low[mask], the number of the lowest bit of every mask above 0."""
    for i in range(n):
        step = 1 << i
        for mask in range(step, 1 << n, 2 * step):
            low[mask] = i


@jit()
def potentials(s, low, phi):
    """phi[mask] = e^{mean of s over the mask - s of its best row}."""
    sums, sizes = np.zeros(len(phi)), np.zeros(len(phi))
    for mask in range(1, len(phi)):
        i = low[mask]
        rest = mask & (mask - 1)
        sums[mask], sizes[mask] = sums[rest] + s[i], sizes[rest] + 1.0
        phi[mask] = math.exp(sums[mask] / sizes[mask] - s[i])


@jit()
def normalizers(n, low, phi, ratio, z):
    """z[mask] = sum over nonempty subsets of phi, relative to the best row of the mask: each by one pass over the rows.

    ``z`` first holds phi, then at step i the sums over subsets that differ in rows below i alone.  O(N 2^N).
    """
    z[:] = phi
    for i in range(n):
        bit = 1 << i
        for mask in range(1, len(z)):
            if mask & bit and mask != bit:
                rest = mask ^ bit
                z[mask] += z[rest] * ratio[low[mask], low[rest]]


@jit()
def remaining(n, low, phi, ratio, z, q):
    """q[mask] = P(mask remains before some stage) / z[mask].  O(3^N)."""
    every = (1 << n) - 1
    q[every] = 1.0 / z[every]
    for rest in range(every - 1, 0, -1):
        outside, best, total = every ^ rest, low[rest], 0.0
        tier = outside
        while tier:
            first = low[tier]
            term = q[rest | tier] * phi[tier]
            total += term if first < best else term * ratio[best, first]
            tier = (tier - 1) & outside
        q[rest] = total / z[rest]


@jit()
def sums_of_supersets(n, low, ratio, q):
    """Replace q[mask] by its sum over all masks that contain this one, relative to the best row of this one."""
    for i in range(n):
        bit = 1 << i
        for mask in range(1, len(q)):
            if not mask & bit:
                more = mask | bit
                q[mask] += q[more] * ratio[low[more], low[mask]]


@jit()
def pairs_above(s, above):
    """above[i, j] = P(row i above row j) for descending ``s``.  O(3^N)."""
    n = len(s)
    low = np.zeros(1 << n, np.int64)
    phi, z, q = np.zeros(1 << n), np.empty(1 << n), np.zeros(1 << n)
    ratio = np.empty((n, n))  # ratio[i, j] = e^{s_j - s_i}, used where row i is the better
    for i in range(n):
        for j in range(n):
            ratio[i, j] = math.exp(min(s[j] - s[i], 0.0))
    lowest_rows(n, low)
    potentials(s, low, phi)
    normalizers(n, low, phi, ratio, z)
    remaining(n, low, phi, ratio, z, q)
    sums_of_supersets(n, low, ratio, q)
    above[:] = 0.0
    for tier in range(1, 1 << n):
        for j in range(n):
            if not tier >> j & 1:
                more = tier | 1 << j
                weight = phi[tier] * q[more] * ratio[low[more], low[tier]]
                for i in range(n):
                    if tier >> i & 1:
                        above[i, j] += weight
