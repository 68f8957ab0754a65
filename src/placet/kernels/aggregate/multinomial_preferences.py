"""Multinomial preference model: likelihoods of scores, variances and adherences, instance by instance.

An instance has M items and groups of agents that share an adherence t and have T preferences in total.  Without
variances Z(t) = (sum_i e^{t s_i}) (sum_i e^{-t s_i}) - M, and

    f(s) = sum_g T_g log Z(t_g) - net . s + precision / 2 |s|^2,    net_i = sum_n t_n (wins - losses of i with agent n).

Exponentials are shifted by the largest and smallest score, so they never overflow; as A B >= M^2, nothing cancels.
"""

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.sums import dot, max_abs
from placet.kernels.vector import exp


@jit()
def exponentials(s, t, up, down):
    """up_i = e^{t (s_i - max s)}, down_i = e^{-t (s_i - min s)}; their sums, Z e^-r and r = t (max s - min s)."""
    high, low = s[0], s[0]
    for i in range(len(s)):
        high, low = max(high, s[i]), min(low, s[i])
    A = B = 0.0
    for i in range(len(s)):
        up[i] = np.exp(t * (s[i] - high))
        down[i] = np.exp(-t * (s[i] - low))
        A += up[i]
        B += down[i]
    r = t * (high - low)
    return A, B, A * B - len(s) * np.exp(-r), r


@jit()
def scores_value(s, net, adherence, total, precision, up, down, sums, grad):
    """f(s) and its gradient; fills ``up``, ``down`` (groups, M), ``sums`` (groups, 3) for `scores_hvp`. O(groups M)."""
    value = 0.0
    for i in range(len(s)):
        grad[i] = precision * s[i] - net[i]
        value += s[i] * (0.5 * precision * s[i] - net[i])
    for g in range(len(adherence)):
        t = adherence[g]
        A, B, Z, r = exponentials(s, t, up[g], down[g])
        sums[g, 0], sums[g, 1], sums[g, 2] = A, B, Z
        value += total[g] * (np.log(Z) + r)
        c = total[g] * t / Z
        for i in range(len(s)):
            grad[i] += c * (up[g, i] * B - down[g, i] * A)
    return value


@jit()
def scores_hvp(v, adherence, total, precision, up, down, sums, out):
    """Hessian of f times v, at the scores last passed to `scores_value`.  O(groups M).

    Z'' / Z - Z' Z'^T / Z^2 with Z'' = t^2 (diag(a B + b A) - a b^T - b a^T), a = up, b = down.
    """
    for i in range(len(v)):
        out[i] = precision * v[i]
    for g in range(len(adherence)):
        A, B, Z = sums[g, 0], sums[g, 1], sums[g, 2]
        c = total[g] * adherence[g] * adherence[g] / Z
        av = bv = 0.0
        for i in range(len(v)):
            av += up[g, i] * v[i]
            bv += down[g, i] * v[i]
        slope = (av * B - bv * A) / Z
        for i in range(len(v)):
            a, b = up[g, i], down[g, i]
            out[i] += c * ((a * B + b * A) * v[i] - a * bv - b * av - (a * B - b * A) * slope)


@jit()
def scores_diagonal(adherence, total, precision, up, down, sums, out):
    """Write the diagonal of the Hessian of f.  O(groups M)."""
    for i in range(len(out)):
        out[i] = precision
    for g in range(len(adherence)):
        A, B, Z = sums[g, 0], sums[g, 1], sums[g, 2]
        c = total[g] * adherence[g] * adherence[g] / Z
        for i in range(len(out)):
            a, b = up[g, i], down[g, i]
            out[i] += c * (a * B + b * A - 2.0 * a * b - (a * B - b * A) ** 2 / Z)


@jit()
def center(x):
    """Subtract the mean from x in place."""
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    for i in range(len(x)):
        x[i] -= total / len(x)


@jit()
def newton_step(grad, diagonal, unit, adherence, total, precision, up, down, sums, step, work):
    """Solve H step = -grad by conjugate gradients with the diagonal as preconditioner.

    H is a diagonal plus three outer products per group, so a few iterations suffice.  Stops at a residual of
    min(0.1, sqrt of the largest gradient entry per preference) |grad|, so the outer convergence is superlinear.
    """
    n = len(grad)
    r, p, hp = work[0], work[1], work[2]
    rz = 0.0
    for i in range(n):
        step[i] = 0.0
        r[i] = -grad[i]
        p[i] = r[i] / diagonal[i]
        rz += r[i] * p[i]
    target = min(0.1, np.sqrt(max_abs(grad) / unit)) * np.sqrt(dot(grad, grad))
    for _ in range(min(2 * n, 200)):
        scores_hvp(p, adherence, total, precision, up, down, sums, hp)
        curvature = dot(p, hp)
        if curvature <= 0.0:
            break
        alpha = rz / curvature
        for i in range(n):
            step[i] += alpha * p[i]
            r[i] -= alpha * hp[i]
        if np.sqrt(dot(r, r)) <= target:
            break
        new = 0.0
        for i in range(n):
            new += r[i] * r[i] / diagonal[i]
        for i in range(n):
            p[i] = r[i] / diagonal[i] + new / rz * p[i]
        rz = new
    center(step)


@jit()
def fit_instance(net, t, T, unit, precision, x, max_iter, tol):
    """Minimize f in place from ``x`` by Newton's method with step halving; return value, largest gradient, steps."""
    n, G = len(x), len(t)
    up, down, sums = np.empty((G, n)), np.empty((G, n)), np.empty((G, 3))
    grad, step, trial, diagonal, work = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty((3, n))
    center(x)
    value = scores_value(x, net, t, T, precision, up, down, sums, grad)
    steps = 0
    while steps < max_iter and max_abs(grad) > tol * unit:
        scores_diagonal(t, T, precision, up, down, sums, diagonal)
        for i in range(n):
            diagonal[i] = max(diagonal[i], 1e-12 * unit)
        newton_step(grad, diagonal, unit, t, T, precision, up, down, sums, step, work)
        slope, before, length = dot(grad, step), value, 1.0
        for _ in range(40):
            for i in range(n):
                trial[i] = x[i] + length * step[i]
            value = scores_value(trial, net, t, T, precision, up, down, sums, grad)
            if value <= before + 1e-4 * length * slope + 1e-13 * abs(before):
                break
            length *= 0.5
        for i in range(n):
            x[i] = trial[i]
        steps += 1
    return value, max_abs(grad) / unit, steps


@jit()
def fit_scores(net, bounds, adherence, total, group_bounds, precision, s, max_iter, tol, grad_norm, steps_taken):
    """Minimize f for every instance in place from ``s``; return the sum of the values.

    Entries bounds[l]:bounds[l + 1] are the items of instance l, groups group_bounds[l]:group_bounds[l + 1] its agents.
    ``grad_norm`` (instances,) receives the largest gradient entry per preference, ``steps_taken`` the steps.
    """
    values = 0.0
    for inst in range(len(bounds) - 1):
        a, b = bounds[inst], bounds[inst + 1]
        ga, gb = group_bounds[inst], group_bounds[inst + 1]
        unit = 0.0
        for g in range(ga, gb):
            unit += total[g]
        if b - a < 2 or unit == 0.0:
            s[a:b] = 0.0
            continue
        value, grad_norm[inst], steps_taken[inst] = fit_instance(
            net[a:b], adherence[ga:gb], total[ga:gb], unit, precision, s[a:b], max_iter, tol
        )
        values += value
    return values


@jit()
def adherence_derivatives(s, bounds, instance, total, agreement, first, last, t, up, down):
    """First and second derivative in t of the negative log likelihood of an agent with parts first:last.

    Part k is in instance[k], with total[k] preferences and agreement sum_i (wins - losses of i) s_i.  With sa, sb the
    sums of s up and s down, d log Z / dt = (sa B - sb A) / Z.  O(sum of M over its instances).
    """
    slope = curvature = 0.0
    for k in range(first, last):
        x = s[bounds[instance[k]] : bounds[instance[k] + 1]]
        if len(x) < 2:
            continue
        A, B, Z, _r = exponentials(x, t, up, down)
        sa = sb = second = 0.0
        for i in range(len(x)):
            sa += x[i] * up[i]
            sb += x[i] * down[i]
            second += x[i] * x[i] * (up[i] * B + down[i] * A)
        mean = (sa * B - sb * A) / Z
        slope += total[k] * mean - agreement[k]
        curvature += total[k] * ((second - 2.0 * sa * sb) / Z - mean * mean)
    return slope, curvature


@jit()
def largest_instance(bounds):
    """Number of items of the largest instance."""
    most = 0
    for inst in range(len(bounds) - 1):
        most = max(most, bounds[inst + 1] - bounds[inst])
    return most


@jit()
def fit_adherence(s, bounds, instance, total, agreement, offsets, cap, out):
    """Maximize the likelihood over every agent's adherence in [0, cap] at given scores.

    The parts of agent n are offsets[n]:offsets[n + 1], as in `adherence_derivatives`.  The derivative increases with t,
    so about ten Newton steps safeguarded by bisection suffice.
    """
    most = largest_instance(bounds)
    up, down = np.empty(most), np.empty(most)
    for n in range(len(offsets) - 1):
        agrees = 0.0
        for k in range(offsets[n], offsets[n + 1]):
            agrees += agreement[k]
        if agrees <= 0.0:  # log Z is flat at t = 0, so the derivative there is minus the agreement
            out[n] = 0.0
            continue
        a, z = offsets[n], offsets[n + 1]
        slope, curvature = adherence_derivatives(s, bounds, instance, total, agreement, a, z, cap, up, down)
        if slope <= 0.0:
            out[n] = cap
            continue
        low, high, t = 0.0, cap, min(max(out[n], 1e-3 * cap), cap)
        for _ in range(60):
            slope, curvature = adherence_derivatives(s, bounds, instance, total, agreement, a, z, t, up, down)
            if slope > 0.0:
                high = t
            else:
                low = t
            step = t - slope / curvature if curvature > 0.0 else -1.0
            new = step if low < step < high else 0.5 * (low + high)
            if abs(new - t) <= 1e-12 * cap or high - low <= 1e-13 * cap:
                t = new
                break
            t = new
        out[n] = t


@jit()
def largest_gap(s, gamma, low, high):
    """Largest abs(s_i - s_j) / (gamma_i + gamma_j) over pairs i < j with low <= i < high.  O((high - low) M)."""
    best = 0.0
    for i in range(low, high):
        for j in range(i + 1, len(s)):
            best = max(best, abs(s[i] - s[j]) / (gamma[i] + gamma[j]))
    return best


@jit(fastmath={"reassoc", "contract"})
def variance_rows(s, gamma, net, adherence, shift, low, high, out):
    """Sums over pairs i < j, low <= i < high, for a model with variances, u = (s_i - s_j) / (gamma_i + gamma_j).

    For each group g: Z_g e^{-t shift} = sum e^{t (u - shift)} + e^{-t (u + shift)} in out[g, 2 M], the derivatives of
    Z_g in s and in beta = log gamma in out[g, :M] and out[g, M:2 M]; the last row holds the same for sum_{i < j}
    net_ij u.  O((high - low) M groups).
    """
    M = len(s)
    last = len(adherence)
    z, q, qu = np.empty(M), np.empty(M), np.empty(M)
    for i in range(low, high):
        for g in range(last):
            two_ways(s, gamma, i, adherence[g], shift, z, q, qu)
            add_row(gamma, i, z, q, qu, out[g])
        one_way(s, gamma, i, net[i], z, q, qu)
        add_row(gamma, i, z, q, qu, out[last])


@jit(error_model="numpy", fastmath={"contract"})
def two_ways(s, gamma, i, t, shift, z, q, qu):
    """For j > i: z = e^{t (u - shift)} + e^{-t (u + shift)}, q = dz / d(s_i), and q u."""
    for j in range(np.uint64(i + 1), np.uint64(len(s))):
        spread = 1.0 / (gamma[i] + gamma[j])
        u = (s[i] - s[j]) * spread
        plus, minus = exp(t * (u - shift)), exp(-t * (u + shift))
        z[j] = plus + minus
        q[j] = t * (plus - minus) * spread
        qu[j] = q[j] * u


@jit(error_model="numpy", fastmath={"contract"})
def one_way(s, gamma, i, net, z, q, qu):
    """For j > i: z = net u, q = dz / d(s_i), and q u."""
    for j in range(np.uint64(i + 1), np.uint64(len(s))):
        spread = 1.0 / (gamma[i] + gamma[j])
        u = (s[i] - s[j]) * spread
        z[j] = net[j] * u
        q[j] = net[j] * spread
        qu[j] = q[j] * u


@jit(fastmath={"reassoc", "contract"})
def add_row(gamma, i, z, q, qu, out):
    """Add the contributions of the pairs (i, j), j > i: value to out[2 M], derivatives to the rest."""
    M = len(gamma)
    value = own_s = own_b = 0.0
    for j in range(np.uint64(i + 1), np.uint64(M)):
        value += z[j]
        own_s += q[j]
        own_b -= qu[j]
    s_part, b_part = out[:M], out[M : 2 * M]
    for j in range(np.uint64(i + 1), np.uint64(M)):
        s_part[j] -= q[j]
        b_part[j] -= qu[j] * gamma[j]
    s_part[i] += own_s
    b_part[i] += own_b * gamma[i]
    out[2 * M] += value


@jit()
def net_table(entry, value, tier, offsets, factor, binary, net):
    """Add factor[b] C(i, j) to net[i, j] and subtract it from net[j, i], for pairs of rows of ballot b.

    C is 1 if ``binary``, else value_i - value_j, for i of an earlier tier.  O(pairs).
    """
    for b in range(len(offsets) - 1):
        for x in range(offsets[b], offsets[b + 1]):
            for y in range(x + 1, offsets[b + 1]):
                if tier[x] == tier[y]:
                    continue
                c = factor[b] * (1.0 if binary else value[x] - value[y])
                net[entry[x], entry[y]] += c
                net[entry[y], entry[x]] -= c


@jit()
def subtract_gradients(entry, value, tier, offsets, part, factor, binary, s, gamma, out):
    """Subtract from out[part of b] the gradient in (s, beta) of factor[b] C(i, j) u_ij, over pairs of rows of ballot b.

    u_ij = (s_i - s_j) / (gamma_i + gamma_j), beta = log gamma; C as in `net_table`.  O(pairs).
    """
    M = len(s)
    for b in range(len(offsets) - 1):
        row = out[part[b]]
        for x in range(offsets[b], offsets[b + 1]):
            i = entry[x]
            for y in range(x + 1, offsets[b + 1]):
                if tier[x] == tier[y]:
                    continue
                j = entry[y]
                c = factor[b] * (1.0 if binary else value[x] - value[y]) / (gamma[i] + gamma[j])
                u = (s[i] - s[j]) / (gamma[i] + gamma[j])
                row[i] -= c
                row[j] += c
                row[M + i] += c * u * gamma[i]
                row[M + j] += c * u * gamma[j]


@jit()
def discordance(tier, truth, offsets, wrong, pairs):
    """For every ballot: number of pairs whose truth differs (truth < 0 is unknown) and of those ranked wrongly.

    A tie on the ballot counts as half wrong.  Lower is better in both ``tier`` and ``truth``.  O(pairs).
    """
    for b in range(len(offsets) - 1):
        for x in range(offsets[b], offsets[b + 1]):
            for y in range(x + 1, offsets[b + 1]):
                if truth[x] < 0 or truth[y] < 0 or truth[x] == truth[y]:
                    continue
                pairs[b] += 1.0
                if tier[x] == tier[y]:
                    wrong[b] += 0.5
                elif (tier[x] < tier[y]) != (truth[x] < truth[y]):
                    wrong[b] += 1.0


@jit()
def inverse(H):
    """Inverse of a symmetric positive definite matrix by Cholesky factorization, H = L L^T.  O(M^3), in one thread."""
    n = len(H)
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            x = H[i, j]
            for k in range(j):
                x -= L[i, k] * L[j, k]
            L[i, j] = np.sqrt(x) if i == j else x / L[j, j]
    R = np.zeros((n, n))  # row j: column j of L^-1
    for j in range(n):
        R[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, n):
            x = 0.0
            for k in range(j, i):
                x -= L[i, k] * R[j, k]
            R[j, i] = x / L[i, i]
    out = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            x = 0.0
            for k in range(i, n):
                x += R[i, k] * R[j, k]
            out[i, j] = out[j, i] = x
    return out
