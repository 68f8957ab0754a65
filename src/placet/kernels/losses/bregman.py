"""NDCG-consistent surrogates: Bregman divergences between the normalized gains of a list and a map of its scores.

The family is psi(x) = a sum(x log x - x) + b sum(x^2) + c |x|_q^2 with a, b, c >= 0, not all zero.  Its conjugate is
psi*(s) = sup_x <s, x> - psi(x), attained at x = grad psi*(s), where

    a log x_i + 2 b x_i + 2 c |x|_q^(2 - q) |x_i|^(q - 1) sign(x_i) = s_i,
    psi*(s) = a sum(x) + b sum(x^2) + c |x|_q^2.

A single term has a closed form.  Several are solved as x = N y with |y|_q = 1: for a given N every y_i is the root of
a convex, increasing function, so Newton's method started from the right never overshoots; and log |y(N)|_q decreases
with log N at a slope between -1 and -1 / (q - 1), so one evaluation brackets N.
"""

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.sums import max_abs

# Beyond x = e^300 the exponential is continued along its tangent, so that squares of the gradient stay finite.  This is
# the conjugate of the same psi restricted to x <= e^300; the gains it is compared with never exceed 1 / discount(1).
LOG_CAP = 300.0
MAX_STEPS = 200
# Newton's method converges quadratically: after a step of this size, in logarithms, the error is below rounding.
LAST_STEP = 1e-9
# |y|^(q - 2) of a row with score 0 is 0 and its curvature infinite; this floor keeps it finite.
FLOOR = 1e-12


@jit()
def targets(gain, offsets, discount, out):
    """p = G / |G|_D, |G|_D the sum of gains times ``discount``; zeros for lists without gain or of one row.  O(rows).

    Gains are in descending order within each list.
    """
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        if hi - lo < 2 or gain[lo] == 0.0:
            continue
        top, norm = gain[lo], 0.0
        for i in range(lo, hi):
            norm += gain[i] / top * discount[i - lo]
        for i in range(lo, hi):
            out[i] = gain[i] / top / norm


@jit()
def exponent(q, m):
    """Exponent of the q-norm for a list of m rows: ``q``, or log(m) + 2 if ``q`` is 0."""
    return q if q > 0.0 else np.log(m) + 2.0


@jit()
def power_norm(x, q):
    """|x|_q = (sum |x_i|^q)^(1/q), scaled by the largest entry.  O(m)."""
    top = max_abs(x)
    if top == 0.0:
        return 0.0
    total = 0.0
    for i in range(len(x)):
        total += (abs(x[i]) / top) ** q
    return top * total ** (1.0 / q)


@jit()
def entropy_root(r, a, kb, kc, q, start):
    """z with a z + kb e^z + kc e^((q - 1) z) = r, for a > 0, by Newton's method from ``start``, below an upper bound.

    The function is convex and increasing, so from the second step on z decreases to the root, quadratically.
    """
    high = r / a
    if kb + kc >= r:
        high = min(high, 0.0)
    else:
        if kb > 0.0:
            high = min(high, np.log(r / kb))
        if kc > 0.0:
            high = min(high, np.log(r / kc) / (q - 1.0))
    z = min(start, high)
    for _ in range(MAX_STEPS):
        eb = kb * np.exp(z) if kb > 0.0 else 0.0
        ec = kc * np.exp((q - 1.0) * z) if kc > 0.0 else 0.0
        step = (a * z + eb + ec - r) / (a + eb + (q - 1.0) * ec)
        z = min(z - step, high)
        if abs(step) <= LAST_STEP + 1e-15 * abs(z):
            break
    return z


@jit()
def power_root(r, kb, kc, q, start):
    """t > 0 with kb t + kc t^(q - 1) = r > 0, and t^(q - 1), by Newton steps from ``start``, or a bound if it is inf.

    As in ``entropy_root``; a step from below goes at most to t r / (kb t + kc t^(q - 1)), so no upper bound is needed.
    """
    t = start
    if t == np.inf and kb > 0.0:
        t = r / kb
    if start == np.inf and kc > 0.0:
        t = min(t, (r / kc) ** (1.0 / (q - 1.0)))
    power = 0.0
    for _ in range(MAX_STEPS):
        power = t ** (q - 1.0)
        eb, ec = kb * t, kc * power
        relative = (eb + ec - r) / (eb + (q - 1.0) * ec)
        t -= t * relative
        if abs(relative) <= LAST_STEP:
            power -= (q - 1.0) * power * relative  # to first order, which is accurate to rounding here
            break
    return t, power


@jit()
def entropy_norm(s, a, b, c, q, nu, z):
    """log |y|_q and its slope in nu, where y_i = e^z_i are the roots for N = e^nu; ``z`` holds start values.  O(m)."""
    n = np.exp(nu)
    kb, kc = 2.0 * b * n, 2.0 * c * n
    top = -np.inf
    for i in range(len(s)):
        z[i] = entropy_root(s[i] - a * nu, a, kb, kc, q, z[i])
        top = max(top, z[i])
    total = slope = 0.0
    for i in range(len(s)):
        share = np.exp(q * (z[i] - top))
        eb, ec = kb * np.exp(z[i]), kc * np.exp((q - 1.0) * z[i])
        total += share
        slope -= share * (a + eb + ec) / (a + eb + (q - 1.0) * ec)
    return top + np.log(total) / q, slope / total


@jit()
def power_mean_norm(s, b, c, q, nu, y):
    """log |y|_q and its slope in nu, with y_i >= 0 the roots for N = e^nu, a = 0; ``y`` holds start values.  O(m)."""
    n = np.exp(nu)
    kb, kc = 2.0 * b * n, 2.0 * c * n
    total = slope = 0.0
    for i in range(len(s)):
        if s[i] == 0.0:
            y[i] = 0.0
            continue
        y[i], power = power_root(abs(s[i]), kb, kc, q, y[i])
        eb, ec = kb * y[i], kc * power
        total += y[i] * power
        slope -= y[i] * power * (eb + ec) / (eb + (q - 1.0) * ec)
    return np.log(total) / q, slope / total


@jit()
def norm_at(s, a, b, c, q, nu, x):
    """log |y|_q and its slope in nu, by the solver for the terms present."""
    if a > 0.0:
        return entropy_norm(s, a, b, c, q, nu, x)
    return power_mean_norm(s, b, c, q, nu, x)


@jit()
def coupled_point(s, a, b, c, q, nu, x):
    """x = grad psi*(s) for c > 0, by bracketed Newton steps for nu = log |x|_q, each started from the last roots."""
    for i in range(len(s)):
        x[i] = np.inf
    g, slope = norm_at(s, a, b, c, q, nu, x)
    low, high = nu + min(g, (q - 1.0) * g), nu + max(g, (q - 1.0) * g)
    for _ in range(MAX_STEPS):
        trial = nu - g / slope
        if not low <= trial <= high:
            trial = 0.5 * (low + high)
        step, nu = trial - nu, trial
        g, slope = norm_at(s, a, b, c, q, nu, x)
        if abs(step) <= LAST_STEP + 1e-15 * abs(nu):
            break
        if g > 0.0:
            low = nu
        else:
            high = nu
    for i in range(len(s)):
        x[i] = np.exp(nu + x[i]) if a > 0.0 else np.copysign(np.exp(nu) * x[i], s[i])


@jit()
def mixed_point(s, a, b, c, q, x):
    """x = grad psi*(s) by Newton's method, for any a, b, c.  O(m) per step; about 5 for the norm, 2 to 5 per row."""
    m = len(s)
    if a > 0.0 and c > 0.0:
        coupled_point(s, a, b, c, q, 0.0, x)
    elif a > 0.0:
        for i in range(m):
            x[i] = np.exp(entropy_root(s[i], a, 2.0 * b, 0.0, 2.0, np.inf))
    elif c > 0.0:  # grad psi* is homogeneous: solve for scores scaled to size 1, from an upper bound on the norm
        scale = max_abs(s)
        unit = np.empty(m)
        for i in range(m):
            x[i] = 0.0
            unit[i] = s[i] / scale if scale > 0.0 else 0.0
        if scale == 0.0:
            return
        bound = power_norm(unit, q / (q - 1.0)) / (2.0 * c)
        if b > 0.0:
            bound = min(bound, power_norm(unit, q) / (2.0 * b))
        coupled_point(unit, 0.0, b, c, q, np.log(bound), x)
        for i in range(m):
            x[i] *= scale
    else:
        for i in range(m):
            x[i] = s[i] / (2.0 * b)


@jit()
def conjugate(s, a, b, c, q, x):
    """Return psi*(s) and write grad psi*(s) to ``x``: closed form for one term, Newton's method for several.  O(m)."""
    total = 0.0
    if b == 0.0 and c == 0.0:
        for i in range(len(s)):
            z = s[i] / a
            x[i] = np.exp(min(z, LOG_CAP))
            total += a * x[i] * (1.0 + max(z - LOG_CAP, 0.0))
        return total
    if a == 0.0 and b == 0.0:
        dual = q / (q - 1.0)
        n = power_norm(s, dual)
        for i in range(len(s)):
            x[i] = np.copysign(n * (abs(s[i]) / n) ** (dual - 1.0) / (2.0 * c), s[i]) if n > 0.0 else 0.0
        return n * n / (4.0 * c)
    mixed_point(s, a, b, c, q, x)
    for i in range(len(s)):
        total += a * x[i] + b * x[i] * x[i]
    return total + (c * power_norm(x, q) ** 2 if c > 0.0 else 0.0)


@jit()
def potential(p, a, b, c, q):
    """psi(p) for p >= 0, with 0 log 0 = 0.  O(m)."""
    total = 0.0
    for i in range(len(p)):
        total += b * p[i] * p[i] - a * p[i]
        if p[i] > 0.0:
            total += a * p[i] * np.log(p[i])
    return total + (c * power_norm(p, q) ** 2 if c > 0.0 else 0.0)


@jit()
def bregman(s, target, offsets, weight, values, grad, a, b, c, q):
    """D_psi(p, grad psi*(s)) = psi(p) + psi*(s) - <p, s>; gradient grad psi*(s) - p.  0 where p = 0.  O(rows)."""
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        p = target[lo:hi]
        if hi - lo < 2 or max_abs(p) == 0.0:
            continue
        qk = exponent(q, hi - lo)
        x = grad[lo:hi]
        one = conjugate(s[lo:hi], a, b, c, qk, x) + potential(p, a, b, c, qk)
        for i in range(hi - lo):
            one -= p[i] * s[lo + i]
            x[i] = weight[k] * (x[i] - p[i])
        values[k] = weight[k] * one


@jit()
def inverse_hessian_parts(x, a, b, c, q, w, u):
    """Write w and u and return g such that hess psi*(s) = diag(w) - g (w u)(w u)^T.  O(m).

    By Sherman-Morrison, as hess psi(x) = diag(1 / w) + 2 c (2 - q) u u^T, u_i = |y_i|^(q - 1) sign(y_i), y = x / |x|_q.
    """
    n = power_norm(x, q) if c > 0.0 else 0.0
    tau = 0.0
    for i in range(len(x)):
        y = abs(x[i]) / n if n > 0.0 else 0.0
        ratio = y ** (q - 2.0) if c > 0.0 else 0.0
        if a == 0.0 and b == 0.0:
            ratio = max(ratio, FLOOR)
        d = 2.0 * b + 2.0 * c * (q - 1.0) * ratio
        w[i] = x[i] / (a + x[i] * d) if a > 0.0 else 1.0 / d
        u[i] = np.copysign(y * ratio, x[i])
        tau += u[i] * u[i] * w[i]
    rank_one = 2.0 * c * (2.0 - q)
    return rank_one / (1.0 + rank_one * tau)


@jit()
def bregman_curvature(s, target, offsets, weight, out, a, b, c, q):
    """Diagonal of hess psi*(s) times the weight; 1 / (2 (b + c)) if all scores and a are 0.  O(rows)."""
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        if hi - lo < 2 or max_abs(target[lo:hi]) == 0.0:
            continue
        if a == 0.0 and max_abs(s[lo:hi]) == 0.0:
            for i in range(lo, hi):
                out[i] = weight[k] / (2.0 * (b + c))
            continue
        qk = exponent(q, hi - lo)
        x, w, u = np.empty(hi - lo), np.empty(hi - lo), np.empty(hi - lo)
        conjugate(s[lo:hi], a, b, c, qk, x)
        g = inverse_hessian_parts(x, a, b, c, qk, w, u)
        for i in range(hi - lo):
            out[lo + i] = weight[k] * (w[i] - g * (w[i] * u[i]) ** 2)


@jit()
def bregman_hvp(s, target, offsets, weight, out, v, a, b, c, q):
    """Hessian-vector product hess psi*(s) v times the weight (grad psi*(v) at s = 0, a = 0).  O(rows)."""
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        if hi - lo < 2 or max_abs(target[lo:hi]) == 0.0:
            continue
        qk = exponent(q, hi - lo)
        if a == 0.0 and max_abs(s[lo:hi]) == 0.0:
            conjugate(v[lo:hi], a, b, c, qk, out[lo:hi])
            for i in range(lo, hi):
                out[i] *= weight[k]
            continue
        x, w, u = np.empty(hi - lo), np.empty(hi - lo), np.empty(hi - lo)
        conjugate(s[lo:hi], a, b, c, qk, x)
        g = inverse_hessian_parts(x, a, b, c, qk, w, u)
        along = 0.0
        for i in range(hi - lo):
            along += w[i] * u[i] * v[lo + i]
        for i in range(hi - lo):
            out[lo + i] = weight[k] * w[i] * (v[lo + i] - g * u[i] * along)
