"""P(all n tied items come before all the rest), accurate to a tolerance, with a few dozen nodes.

With a_i = e^{d_i}, d_i the score of a tied item minus the log-sum-exp of the rest,
P = integral of e^{-v} prod_i (1 - e^{-a_i v}) dv over v > 0 = integral of g(x) dx with v = e^x and
g(x) = exp(x - v) prod_i (1 - e^{-a_i v}).

log g is strictly concave: its slope is 1 - v + sum_i phi(a_i v) with phi(y) = y / (e^y - 1) falling from 1 to 0.  So
the mode has 1 < v < n + 1, and g(x0 + t) <= g(x0) exp(-v0 (e^t - 1 - t)) bounds the window on both sides.  g is
analytic and vanishes at both ends, so the trapezoid rule converges exponentially; x = x0 + c sinh(z) shortens tails.
If many items saturate together left of the mode, g drops sharply there, and the nodes are made dense there too.
Every level of nodes halves the step and at least squares the error.  So the error estimate has three terms: the change
made by the last level, squared; the change at the level before, to the fourth power; and mass missed between nodes.
The four interleaved quarters of the nodes give the second term regardless of phase (S0 - S2 is its real part, S1 - S3
its imaginary part), whereas the change of the last level is a real part only and can be small by chance.

Derivatives are moments of phi under the normalized integrand: d log P / d d_i = E[phi_i].
"""

import math

import numpy as np

import placet.kernels.vector as vector
from placet.kernels.jit import jit
from placet.kernels.sums import dot, total

# Beyond this in either direction, a factor equals a_i v, or 1, to the last bit; e^{+-LARGEST} times any node is finite.
LARGEST = 600.0
MAX_NODES = 2048
ITEMS_BETWEEN_RESCALING = 16  # in the window, a factor relative to that at the mode exceeds e^-40: 16 cannot underflow
_EXPONENT_BIAS = 1023
_MANTISSA = (1 << 52) - 1
_ONE = _EXPONENT_BIAS << 52
_LN2 = 0.6931471805599453
_SAFETY = 3.0  # keeps the error below tol for tol >= 1e-11, in 8,000 test stages of all shapes


@jit(fastmath={"contract"}, error_model="numpy")
def _mode(a, n, phi, bend):
    """x at the peak of g (to a fiftieth of its width), and the curvature of log g there, by bracketed Newton steps.

    phi_i = y / (e^y - 1) and bend_i = - d phi_i / d log y, at y = a_i v.
    """
    low, high = 0.0, math.log(n + 1.0)
    x = 0.5 * high
    curvature = 1.0
    for _ in range(60):
        v = math.exp(x)
        for i in range(n):
            y = a[i] * v
            e = vector.expm1(-y)
            p = y * (1.0 + e) / -e
            phi[i] = p
            bend[i] = p * (y + p - 1.0)
        slope = 1.0 - v + total(phi[:n])
        curvature = v + total(bend[:n])
        if slope > 0:
            low = x
        else:
            high = x
        step = slope / curvature
        if abs(step) * math.sqrt(curvature) < 0.02:
            break
        x += step
        if not low < x < high:
            x = 0.5 * (low + high)
    return x, curvature


@jit(fastmath={"contract"}, error_model="numpy")
def _end(a, n, scale, x0, cut, side, phi, ratio):
    """x - x0 at which log g has fallen by ``cut`` to 1.2 ``cut``, and the slope there.

    Newton's method from outside, where concavity keeps it: the start t = x - x0 has v0 (e^t - 1 - t) >= cut, so g is
    certainly below e^-cut of its peak.  ``ratio``: factors 1 - e^{-a_i v} relative to those at the mode.
    """
    v0 = math.exp(x0)
    r = cut / v0
    if side > 0:
        x = x0 + min(math.sqrt(2.0 * r), math.log1p(r + math.log1p(r) + math.sqrt(2.0 * r)))
    else:
        x = x0 - (r + 1.0 if r > 4.0 else math.sqrt(2.0 * r) * (1.0 + 0.25 * math.sqrt(r)))
    slope = 1.0
    for _ in range(8):
        v = math.exp(x)
        for i in range(n):
            y = a[i] * v
            e = vector.expm1(-y)
            ratio[i] = -e * scale[i]
            phi[i] = y * (1.0 + e) / -e
        fall = (x0 - x) + (v - v0)
        for first in range(0, n, ITEMS_BETWEEN_RESCALING):
            product = 1.0
            for i in range(first, min(n, first + ITEMS_BETWEEN_RESCALING)):
                product *= ratio[i]
            fall -= math.log(product)
        slope = v - 1.0 - total(phi[:n])
        if fall < 1.2 * cut:
            break
        x -= (fall - 1.05 * cut) / slope
    return x - x0, abs(slope)


@jit(fastmath={"contract"}, error_model="numpy")
def _products(a, n, scale, v, product, exponent):
    """prod_i (1 - e^{-a_i v}) at the nodes v, relative to its value at the mode, as product * 2^exponent."""
    for t in range(len(v)):
        product[t] = 1.0
        exponent[t] = 0
    for start in range(0, n, ITEMS_BETWEEN_RESCALING):
        for i in range(start, min(n, start + ITEMS_BETWEEN_RESCALING)):
            ai, ci = -a[i], -scale[i]
            for t in range(len(v)):
                product[t] *= ci * vector.expm1(ai * v[t])
        for t in range(len(v)):
            bits = vector.to_bits(product[t])
            exponent[t] += (bits >> 52) - _EXPONENT_BIAS
            product[t] = vector.from_bits((bits & _MANTISSA) | _ONE)


@jit()
def _coordinate(x, width, x2, width2):
    """z(x) and dz/dx, x relative to the mode: dense within ``width`` of it and, if > 0, within ``width2`` of x2."""
    z, slope = math.asinh(x / width), 1.0 / math.hypot(x, width)
    if width2 > 0:
        z += math.asinh((x - x2) / width2)
        slope += 1.0 / math.hypot(x - x2, width2)
    return z, slope


@jit(fastmath={"contract"}, error_model="numpy")
def _place(x0, x_left, z0, step, width, x2, width2, v, weight):
    """Nodes v = e^{x0 + x} and weights e^x dx/dz at z0, z0 + step, ...

    x is explicit for one center; for two, it is found by Newton's method from the previous node.
    """
    if width2 > 0:
        at = x_left
        for t in range(len(v)):
            goal = z0 + t * step
            for _ in range(12):
                z, slope = _coordinate(at, width, x2, width2)
                at += (goal - z) / slope
                if abs(goal - z) < 1e-7:
                    break
            v[t] = at
            weight[t] = 1.0 / _coordinate(at, width, x2, width2)[1]
    else:
        for t in range(len(v)):
            e = vector.exp(z0 + t * step)
            v[t] = 0.5 * width * (e - 1.0 / e)
            weight[t] = 0.5 * width * (e + 1.0 / e)
    for t in range(len(v)):
        weight[t] *= vector.exp(v[t])
        v[t] = vector.exp(x0 + v[t])


@jit(fastmath={"contract"}, error_model="numpy")
def _weigh(v0, v, product, exponent, weight):
    """Turn ``weight`` from (v / v0) dx/dz into g(x) / g(x0) dx/dz; return its sums over even and odd nodes."""
    for t in range(len(v)):
        weight[t] *= product[t] * vector.exp((v0 - v[t]) + exponent[t] * _LN2)
    even, odd = 0.0, 0.0
    for t in range(0, len(v) - 1, 2):
        even += weight[t]
        odd += weight[t + 1]
    return even, odd


@jit()
def _unresolved(weight, logs):
    """Mass that the rule may miss: sum of w exp(-6 pi^2 / bend), where bend is minus the second difference of log w.

    A Gaussian of variance s^2 sampled at step h has an error of 2 exp(-2 pi^2 s^2 / h^2), and bend = h^2 / s^2; all
    levels together have half the step, which turns the 2 in the exponent into 8.  6 allows for heavier tails.
    """
    for t in range(len(weight)):
        logs[t] = math.log(weight[t])
    missed = 0.0
    for t in range(1, len(weight) - 1):
        bend = 2.0 * logs[t] - logs[t - 1] - logs[t + 1]
        if bend > 0.5:
            missed += max(weight[t - 1], weight[t], weight[t + 1]) * math.exp(-6.0 * math.pi**2 / bend)
    return missed


@jit(error_model="numpy")
def log_probability(d, n, tol, a, scale, phi, ratio, v, weight, product, exponent):
    """(log P, number of nodes) for the n values ``d``; fills a_i, the nodes v_t and their normalized weights.

    O(n) per node; scratch arrays of size n (a, scale, phi, ratio) and MAX_NODES (v, weight, product, exponent).
    """
    below = 0.0
    for i in range(n):
        held = min(max(d[i], -LARGEST), LARGEST)
        a[i] = math.exp(held)
        below += min(d[i] - held, 0.0)
    x0, curvature = _mode(a, n, phi, ratio)
    v0 = math.exp(x0)
    peak = x0 - v0 + below
    for i in range(n):
        factor = -math.expm1(-a[i] * v0)
        scale[i] = 1.0 / factor
        peak += math.log(factor)
    cut = -math.log(tol) + 4.0
    width = 4.0 / math.sqrt(curvature)
    x_left, slope = _end(a, n, scale, x0, cut, -1.0, phi, ratio)
    x_right, _ = _end(a, n, scale, x0, cut, 1.0, phi, ratio)
    width2 = cut / slope
    x2 = x_left + 2.0 * width2
    if width2 > 0.8 * width or x2 > -width2:
        width2 = 0.0
    z_left, z_right = _coordinate(x_left, width, x2, width2)[0], _coordinate(x_right, width, x2, width2)[0]
    last = 4 * math.ceil(cut / 7.0)
    step = (z_right - z_left) / last
    first, mass, before, z0 = 0, 0.0, 0.0, z_left + step
    while True:
        x, dx, factor, power = v[first:last], weight[first:last], product[first:last], exponent[first:last]
        _place(x0, x_left, z0, step, width, x2, width2, x, dx)
        _products(a, n, scale, x, factor, power)
        even, odd = _weigh(v0, x, factor, power, dx)
        change, across = even + odd - mass, even - odd
        mass += even + odd
        if first > 0:
            error = max((change / mass) ** 2, (math.hypot(across, before) / mass) ** 4)
            if _SAFETY * error + _unresolved(dx, product) / mass <= tol or 2 * last > MAX_NODES:
                break
        before = change if first > 0 else across
        if first > 0:
            step *= 0.5
        z0, first, last = z_left + 0.5 * step, last, 2 * last
    for t in range(last):
        weight[t] /= mass
    return peak + math.log(mass * 0.5 * step), last


@jit(fastmath={"contract"}, error_model="numpy")
def slopes(a, n, v, weight, last, term, out):
    """out_i = d log P / d d_i = E[phi_i]; returns their sum.  O(n nodes)."""
    summed = 0.0
    for i in range(n):
        ai = a[i]
        for t in range(last):
            y = ai * v[t]
            e = vector.expm1(-y)
            term[t] = weight[t] * y * (1.0 + e) / -e
        out[i] = total(term[:last])
        summed += out[i]
    return summed


@jit(fastmath={"contract"}, error_model="numpy")
def diagonal(a, n, v, weight, last, term, slope, out):
    """out_i = d^2 log P / d d_i^2 = E[phi_i (1 - y_i)] - E[phi_i]^2.  O(n nodes).

    E[phi_i (1 - y_i)] is E[phi_i^2 + d phi_i / d d_i].
    """
    for i in range(n):
        ai = a[i]
        for t in range(last):
            y = ai * v[t]
            e = vector.expm1(-y)
            term[t] = weight[t] * y * (1.0 + e) / -e * (1.0 - y)
        out[i] = total(term[:last]) - slope[i] * slope[i]


@jit(fastmath={"contract"}, error_model="numpy")
def hessian_product(a, n, v, weight, last, term, slope, u, out):
    """out = H u, H the Hessian of log P in d: covariances of phi, plus E[d phi_i / d d_i] on the diagonal.

    With along_t = sum_j u_j phi_j at node t and mean its expectation, out_i = E[phi_i (along - mean)] +
    u_i E[phi_i (1 - y_i - phi_i)].  Returns the sum of out.  O(n nodes), scratch O(nodes).
    """
    along = np.zeros(last)
    mean = 0.0
    for i in range(n):
        ai, ui = a[i], u[i]
        for t in range(last):
            y = ai * v[t]
            e = vector.expm1(-y)
            along[t] += ui * y * (1.0 + e) / -e
        mean += ui * slope[i]
    summed = 0.0
    for i in range(n):
        ai, ui = a[i], u[i]
        for t in range(last):
            y = ai * v[t]
            e = vector.expm1(-y)
            p = y * (1.0 + e) / -e
            term[t] = weight[t] * p * ((along[t] - mean) + ui * (1.0 - y - p))
        out[i] = total(term[:last])
        summed += out[i]
    return summed


@jit(fastmath={"contract"}, error_model="numpy")
def hessian(a, n, v, weight, last, slope, out, sums):
    """Write the lower triangle of H to ``out`` (n, n) and the row sums of H to ``sums``; return the sum of ``sums``.

    O(n^2 nodes), scratch O(n nodes).
    """
    phi, own = np.empty((n, last)), np.empty(last)
    for i in range(n):
        ai, g, bent = a[i], slope[i], 0.0
        for t in range(last):
            y = ai * v[t]
            e = vector.expm1(-y)
            p = y * (1.0 + e) / -e
            phi[i, t] = p
            own[t] = weight[t] * (p - g)
            bent += weight[t] * p * (1.0 - y)
        out[i, i] = sums[i] = bent - g * g
        for j in range(i):
            out[i, j] = dot(own, phi[j])
            sums[i] += out[i, j]
            sums[j] += out[i, j]
    return total(sums[:n])
