"""Plackett-Luce on ballots that rank their top items strictly and leave the rest in one lowest tier.

With e_i = e^{theta_i} and Z_k the sum of e over the items from place k on, the negative log likelihood of a ballot is
the sum over its ``tops`` strict places of log Z_k - theta_k.  With a_k, Q_k the sums of 1 / Z, 1 / Z^2 up to place k,
the gradient is e_k a_k - 1 at strict places and e_i a_last below, and the Hessian for places k < l is -e_k e_l Q_k.
"""

import math

import numpy as np

from placet.kernels.jit import jit

SAFE_REST = 1e-2


@jit()
def strict_places(tier, offsets):
    """Number of places above the lowest tier of each ballot, or -1 if any of them are tied.  O(places)."""
    tops = np.zeros(len(offsets) - 1, np.int64)
    for b in range(len(offsets) - 1):
        a, z = offsets[b], offsets[b + 1]
        k = a
        while k < z and tier[k] < tier[z - 1]:
            if k > a and tier[k] == tier[k - 1]:
                tops[b] = -1
                break
            k += 1
        if tops[b] == 0:
            tops[b] = k - a
    return tops


@jit()
def _most(tops):
    """The largest number of strict places, 0 if there are none (``tops.max()`` takes Numba half a second)."""
    most = 0
    for top in tops:
        most = max(most, top)
    return most


@jit()
def _places(e, total, item, a, z, top, n_items, Z):
    """Write Z of every strict place, from last to first; return whether the ballot was summed by its complement.

    The lowest tier of a complete ballot sums to the total minus its strict places, unless these make up nearly all of
    the total, so that the difference would lose precision.
    """
    rest = total
    for k in range(top):
        rest -= e[item[a + k]]
    complement = z - a == n_items and rest > SAFE_REST * total
    if not complement:
        rest = 0.0
        for r in range(a + top, z):
            rest += e[item[r]]
    for k in range(top - 1, -1, -1):
        rest += e[item[a + k]]
        Z[k] = rest
    return complement


@jit()
def value_and_gradient(theta, e, item, offsets, tops, weight, grad):
    """Return the value; add the gradient to ``grad``.  ``e`` = e^theta, theta <= 0.  O(places) for complete ballots."""
    n = len(e)
    total, value, common = e.sum(), 0.0, 0.0
    Z = np.empty(_most(tops))
    for b in range(len(tops)):
        a, z, top, w = offsets[b], offsets[b + 1], tops[b], weight[b]
        if top <= 0 or w == 0.0:
            continue
        complete = _places(e, total, item, a, z, top, n, Z)
        last = 0.0
        for k in range(top):
            last += w / Z[k]
        running = 0.0
        for k in range(top):
            i = item[a + k]
            running += w / Z[k]
            value += w * (math.log(Z[k]) - theta[i])
            grad[i] += e[i] * (running - last if complete else running) - w
        if complete:
            common += last
        else:
            for r in range(a + top, z):
                grad[item[r]] += e[item[r]] * last
    for i in range(n):
        grad[i] += e[i] * common
    return value


@jit()
def hessian(e, item, offsets, tops, weight, H):
    """Add the Hessian to ``H`` (n, n).  O(places^2) for complete ballots, O(rows^2) for others, plus O(n^2) once."""
    n = len(e)
    total, common, common_square = e.sum(), 0.0, 0.0
    Z = np.empty(_most(tops))
    tilt = np.zeros(n)
    for b in range(len(tops)):
        a, z, top, w = offsets[b], offsets[b + 1], tops[b], weight[b]
        if top <= 0 or w == 0.0:
            continue
        complete = _places(e, total, item, a, z, top, n, Z)
        last, last_square = 0.0, 0.0
        for k in range(top):
            last += w / Z[k]
            last_square += w / (Z[k] * Z[k])
        stop = a + top if complete else z
        running, square = 0.0, 0.0
        for r in range(a, stop):
            i = item[r]
            if r < a + top:
                running += w / Z[r - a]
                square += w / (Z[r - a] * Z[r - a])
            # all rows of complete ballots get -last_square e e' from the common part; only the difference is added here
            missing = last_square - square
            if complete:
                tilt[i] += missing
                H[i, i] += e[i] * (running - last) - e[i] * e[i] * missing
                for q in range(a, r):
                    j = item[q]
                    H[i, j] -= e[i] * e[j] * missing
                    H[j, i] -= e[i] * e[j] * missing
            else:
                H[i, i] += e[i] * running - e[i] * e[i] * square
                for q in range(r + 1, stop):
                    j = item[q]
                    H[i, j] -= e[i] * e[j] * square
                    H[j, i] -= e[i] * e[j] * square
        if complete:
            common += last
            common_square += last_square
    for i in range(n):
        H[i, i] += e[i] * common
        for j in range(n):
            H[i, j] += e[i] * e[j] * (tilt[i] + tilt[j] - common_square)


@jit()
def add_outer_products(g, item, offsets, weight, out):
    """out += sum over ballots of weight times the outer product of its gradient ``g`` (rows,).  O(sum of rows^2)."""
    for b in range(len(offsets) - 1):
        for r in range(offsets[b], offsets[b + 1]):
            x = weight[b] * g[r]
            for q in range(offsets[b], offsets[b + 1]):
                out[item[r], item[q]] += x * g[q]


@jit()
def spreads(item, tier, offsets, weight, n_items, forward, sweeps):
    """Whether item 0 reaches every item along "some ballot ranks it above" (or below); False also if sweeps run out.

    Each ballot makes every item below its best reached tier (or above its worst) reached.  O(sweeps x rows).
    """
    reached = np.zeros(n_items, np.bool_)
    reached[:1] = True
    left = n_items - 1
    for _ in range(sweeps):
        before = left
        for b in range(len(offsets) - 1):
            a, z = offsets[b], offsets[b + 1]
            if weight[b] == 0.0 or z == a:
                continue
            step = 1 if forward else -1
            r = a if forward else z - 1
            while a <= r < z and not reached[item[r]]:
                r += step
            if not a <= r < z:
                continue
            edge = tier[r]
            r = z - 1 if forward else a
            while tier[r] != edge:
                if not reached[item[r]]:
                    reached[item[r]] = True
                    left -= 1
                r -= step
            if left <= 0:
                return True
        if left == before:
            break
    return left <= 0
