"""Models of a single pair, and sums over pairs of items or rows.

Given the difference d of two scores, the first side wins, loses or ties with these probabilities:

    Bradley-Terry   1 / (1 + e^-d), 1 / (1 + e^d), 0
    Rao-Kupper      1 / (1 + e^{t - d}), 1 / (1 + e^{t + d}), a tie: e^2t - 1 times their product; t = log theta >= 0
    Davidson        in proportion to e^{d/2}, e^{-d/2}, e^t

Their negative logarithms are convex in (d, t).  `softplus` and `davidson_pair` hold the formulas and are inlined into
every loop that calls them: over pair counts (the estimators) and over lists (the losses).
Loops with an exponential or a division contain no gathers, sums or tests for zero, so that they vectorize.
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.ranges import find_tiers, longest
from placet.kernels.vector import exp, log

BLOCK = 256  # rows per logarithm: factors of at most 3 are multiplied first, and 3^256 is far from overflow
MOST_TIE = 300.0


# ---- the models


@jit(forceinline=True, error_model="numpy", fastmath={"contract"})
def softplus(z):
    """(flat, e) such that log(1 + e^z) = flat + log(1 + e), flat = max(z, 0) and 0 < e = e^-abs(z) <= 1.

    -log P(win) is softplus(-d) (Bradley-Terry) or softplus(t - d) (Rao-Kupper); -log P(loss) has d or t + d instead.
    Its slope is 1 / (1 + e) if z is positive, else e / (1 + e), and its second derivative e / (1 + e)^2.
    """
    return max(z, 0.0), exp(-abs(z))


@jit(forceinline=True, error_model="numpy", fastmath={"contract"})
def tie_weight(tie):
    """(nu, excess) such that e^tie = nu e^excess, nu <= e^MOST_TIE; computed once per loop."""
    excess = max(tie - MOST_TIE, 0.0)
    return math.exp(tie - excess), excess


@jit(forceinline=True, error_model="numpy", fastmath={"contract"})
def davidson_pair(d, nu, excess):
    """(flat, behind, tied) such that log(e^{d/2} + e^{-d/2} + e^tie) = flat + log(1 + behind + tied).

    ``behind`` and ``tied`` are the weights of the trailing side and of a tie, relative to the leading side.
    -log P is this sum minus d/2, -d/2 or ``tie``.  Any excess of ``tie`` over `MOST_TIE` is subtracted from it and from
    abs(d)/2: against a tie of that weight the trailing side is negligible, and only the other two matter.
    """
    half = max(0.5 * abs(d) - excess, 0.0)
    e = exp(-half)
    return half + excess, e * e, nu * e


@jit(error_model="numpy", fastmath={"contract"})
def bradley_terry_costs(d, t, win, loss, tied):
    """Negative log probabilities of a win, a loss and a tie for each row.  O(rows)."""
    for r in range(len(d)):
        flat, e = softplus(d[r])
        log_sum = log(1.0 + e)
        win[r] = flat - d[r] + log_sum
        loss[r] = flat + log_sum
        tied[r] = math.inf


@jit(error_model="numpy", fastmath={"contract"})
def rao_kupper_costs(d, t, win, loss, tied):
    """Negative log probabilities of a win, a loss and a tie for each row.  O(rows)."""
    gain = 2.0 * t + math.log(-math.expm1(-2.0 * t))
    for r in range(len(d)):
        flat, e = softplus(t - d[r])
        win[r] = flat + log(1.0 + e)
        flat, e = softplus(t + d[r])
        loss[r] = flat + log(1.0 + e)
        tied[r] = win[r] + loss[r] - gain


@jit(error_model="numpy", fastmath={"contract"})
def davidson_costs(d, t, win, loss, tied):
    """Negative log probabilities of a win, a loss and a tie for each row.  O(rows)."""
    nu, excess = tie_weight(t)
    for r in range(len(d)):
        flat, behind, even = davidson_pair(d[r], nu, excess)
        log_sum = log(1.0 + behind + even)
        win[r] = flat - 0.5 * d[r] + log_sum
        loss[r] = flat + 0.5 * d[r] + log_sum
        tied[r] = flat - t + log_sum


# ---- counts: row r compares items i[r] and j[r]; d is the advantage of i


@jit()
def advantage(theta, control, effect, i, j, out):
    """out_r = theta_i - theta_j + sum_k control_rk effect_k."""
    for r in range(len(i)):
        d = theta[i[r]] - theta[j[r]]
        for k in range(len(effect)):
            d += control[r, k] * effect[k]
        out[r] = d


@jit(error_model="numpy", fastmath={"contract"})
def bradley_terry_slopes(d, t, wins_i, wins_j, ties, slope, curvature, cross, tie_slope, tie_curvature):
    """f_d and f_dd of each row's negative log likelihood f.  A tie counts as half a win for each side.  O(rows)."""
    for r in range(len(d)):
        _, e = softplus(d[r])
        share = 1.0 / (1.0 + e)
        p = share if d[r] > 0.0 else e * share
        n = wins_i[r] + wins_j[r] + ties[r]
        slope[r] = n * p - wins_i[r] - 0.5 * ties[r]
        curvature[r] = n * share * (e * share)


@jit(error_model="numpy", fastmath={"contract"})
def rao_kupper_slopes(d, t, wins_i, wins_j, ties, slope, curvature, cross, tie_slope, tie_curvature):
    """f_d, f_dd, f_dt, f_t, f_tt of each row, t > 0.  O(rows).

    f = (wins_i + ties) softplus(t - d) + (wins_j + ties) softplus(t + d) - ties log(e^2t - 1).
    """
    g = -math.expm1(-2.0 * t)
    gain_slope, gain_curvature = 2.0 / g, -4.0 * (1.0 - g) / (g * g)
    for r in range(len(d)):
        up, down = wins_i[r] + ties[r], wins_j[r] + ties[r]
        _, e = softplus(t - d[r])
        share = up / (1.0 + e)
        up_slope, h = share if t > d[r] else e * share, e * share / (1.0 + e)
        _, e = softplus(t + d[r])
        share = down / (1.0 + e)
        down_slope, k = share if t > -d[r] else e * share, e * share / (1.0 + e)
        slope[r] = down_slope - up_slope
        curvature[r] = h + k
        cross[r] = k - h
        tie_slope[r] = up_slope + down_slope - ties[r] * gain_slope
        tie_curvature[r] = h + k - ties[r] * gain_curvature


@jit(error_model="numpy", fastmath={"contract"})
def davidson_slopes(d, t, wins_i, wins_j, ties, slope, curvature, cross, tie_slope, tie_curvature):
    """f_d, f_dd, f_dt, f_t, f_tt of each row.  O(rows)."""
    nu, excess = tie_weight(t)
    for r in range(len(d)):
        _, behind, even = davidson_pair(d[r], nu, excess)
        high = 1.0 / (1.0 + behind + even)
        low, tied = behind * high, even * high
        lead = math.copysign(high - low, d[r])
        n = wins_i[r] + wins_j[r] + ties[r]
        slope[r] = 0.5 * (n * lead - wins_i[r] + wins_j[r])
        curvature[r] = n * (high * low + 0.25 * tied * (high + low))
        cross[r] = -0.5 * n * tied * lead
        tie_slope[r] = n * tied - ties[r]
        tie_curvature[r] = n * tied * (high + low)


@jit()
def scatter(i, j, values, out):
    """out_i += v, out_j -= v for every row.  If rows are sorted by i, the sum over each run stays in a register."""
    r = 0
    while r < len(i):
        item, total = i[r], 0.0
        while r < len(i) and i[r] == item:
            total += values[r]
            out[j[r]] -= values[r]
            r += 1
        out[item] += total


@jit()
def bradley_terry_sums(theta, control, effect, t, i, j, wins_i, wins_j, ties, f_d, f_dd, f_dt, f_t, f_tt, out, across):
    """`bradley_terry_slopes` at all advantages; the sums of f_d by item, added to ``out``.  O(rows)."""
    advantage(theta, control, effect, i, j, f_d)
    bradley_terry_slopes(f_d, t, wins_i, wins_j, ties, f_d, f_dd, f_dt, f_t, f_tt)
    scatter(i, j, f_d, out)


@jit()
def rao_kupper_sums(theta, control, effect, t, i, j, wins_i, wins_j, ties, f_d, f_dd, f_dt, f_t, f_tt, out, across):
    """`rao_kupper_slopes` at all advantages; the sums of f_d and f_dt by item, added to ``out`` and ``across``."""
    advantage(theta, control, effect, i, j, f_d)
    rao_kupper_slopes(f_d, t, wins_i, wins_j, ties, f_d, f_dd, f_dt, f_t, f_tt)
    scatter(i, j, f_d, out)
    scatter(i, j, f_dt, across)


@jit()
def davidson_sums(theta, control, effect, t, i, j, wins_i, wins_j, ties, f_d, f_dd, f_dt, f_t, f_tt, out, across):
    """`davidson_slopes` at all advantages; the sums of f_d and f_dt by item, added to ``out`` and ``across``."""
    advantage(theta, control, effect, i, j, f_d)
    davidson_slopes(f_d, t, wins_i, wins_j, ties, f_d, f_dd, f_dt, f_t, f_tt)
    scatter(i, j, f_d, out)
    scatter(i, j, f_dt, across)


@jit()
def control_sums(i, j, weight, control, by_item, corner):
    """by_item_i += w z, by_item_j -= w z, corner += w z z' for the controls z (k,) of every row.  O(rows k^2)."""
    k = control.shape[1]
    for r in range(len(i)):
        for c in range(k):
            wz = weight[r] * control[r, c]
            by_item[i[r], c] += wz
            by_item[j[r], c] -= wz
            for e in range(c + 1):
                corner[c, e] += wz * control[r, e]
    for c in range(k):
        for e in range(c):
            corner[e, c] = corner[c, e]


@jit(error_model="numpy")
def expected_wins(phi, i, j, count, out):
    """out_i += v, out_j -= v for the expected wins v = count phi_i / (phi_i + phi_j) of i over j; phi = e^theta."""
    r = 0
    while r < len(i):
        item, total = i[r], 0.0
        x = phi[item]
        while r < len(i) and i[r] == item:
            v = count[r] * x / (x + phi[j[r]])
            total += v
            out[j[r]] -= v
            r += 1
        out[item] += total


@jit()
def laplacian_product(i, j, weight, v, out):
    """out += L v, where v' L v = sum over rows of weight (v_i - v_j)^2."""
    r = 0
    while r < len(i):
        item, total = i[r], 0.0
        centre = v[item]
        while r < len(i) and i[r] == item:
            flow = weight[r] * (centre - v[j[r]])
            total += flow
            out[j[r]] -= flow
            r += 1
        out[item] += total


@jit()
def laplacian_diagonal(i, j, weight, out):
    """out += diagonal of L."""
    for r in range(len(i)):
        out[i[r]] += weight[r]
        out[j[r]] += weight[r]


@jit()
def laplacian_fill(i, j, weight, out):
    """Add L to the dense matrix ``out``."""
    for r in range(len(i)):
        a, b, w = i[r], j[r], weight[r]
        out[a, a] += w
        out[b, b] += w
        out[a, b] -= w
        out[b, a] -= w


@jit()
def count_draws(cells, block, draws_in, place, n_cells):
    """Count how often each cell is drawn: draws_in[b] votes from block b, at ``place`` in it; vote k is in cells[k]."""
    counts = np.zeros(n_cells)
    k = 0
    for b in range(len(draws_in)):
        for _ in range(draws_in[b]):
            counts[cells[b * block + place[k]]] += 1.0
            k += 1
    return counts


@jit()
def spreads(i, j, over, under, forward, sweeps):
    """Whether item 0 reaches every item along "beats" (``forward``) or "is beaten by"; False also if sweeps run out.

    Row r is an edge from i to j if over[r], and from j to i if under[r].  O(sweeps x rows); two or three sweeps suffice
    if most pairs have met.
    """
    n = 0
    for r in range(len(i)):
        n = max(n, i[r] + 1, j[r] + 1)
    reached = np.zeros(n, np.bool_)
    reached[:1] = True
    left = n - 1
    for _ in range(sweeps):
        before = left
        for r in range(len(i)):
            a, b = (over[r], under[r]) if forward else (under[r], over[r])
            if a and reached[i[r]] and not reached[j[r]]:
                reached[j[r]] = True
                left -= 1
            if b and reached[j[r]] and not reached[i[r]]:
                reached[i[r]] = True
                left -= 1
            if left == 0:
                return n, True
        if left == before:
            break
    return n, left <= 0


# ---- lists: d = s_i - s_j over all pairs of rows with i graded above j or tied with it


@jit(fastmath={"contract"}, error_model="numpy")
def softplus_terms(x, s, sign, flat, factor, slope):
    """`softplus` at sign s_j + x."""
    for j in range(len(s)):
        z = sign * s[j] + x
        flat[j], e = softplus(z)
        factor[j] = 1.0 + e
        slope[j] = (1.0 if z > 0.0 else e) / (1.0 + e)


@jit(fastmath={"reassoc", "contract"})
def add_terms(flat, factor, slope, weight, grad):
    """grad += weight * slope; returns sum flat + log factor, and sum slope.

    Kept separate from `exp`, which must not be compiled with a flag that allows reordering.
    """
    value, product, total = 0.0, 1.0, 0.0
    for j in range(len(grad)):
        value += flat[j]
        product *= factor[j]
        total += slope[j]
        grad[j] += weight * slope[j]
    return value + math.log(product), total


@jit()
def softplus_row(x, s, sign, weight, grad, flat, factor, slope):
    """grad_j += weight * slope_j of softplus(sign s_j + x); returns the sums of the values and of the slopes.

    O(len(s)), in blocks.
    """
    value, total = 0.0, 0.0
    for a in range(0, len(s), BLOCK):
        part = s[a : a + BLOCK]
        softplus_terms(x, part, sign, flat, factor, slope)
        here, slopes = add_terms(flat, factor, slope, weight, grad[a : a + BLOCK])
        value += here
        total += slopes
    return value, total


@jit()
def rao_kupper_rows(s, start, n_tiers, eta, ties, w, grad, flat, factor, slope):
    """`rao_kupper` of one list without ``tie_gain``, ignoring tied pairs unless ``ties``.

    Returns the value, its derivative in eta and the number of tied pairs; adds w times the gradient.  O(N^2).
    """
    value, by_eta, tied_pairs, b = 0.0, 0.0, 0.0, start[n_tiers]
    for t in range(n_tiers):
        end = start[t + 1]
        tied_pairs += 0.5 * (end - start[t]) * (end - start[t] - 1.0)
        for i in range(start[t], end):
            here, pull = softplus_row(eta - s[i], s[end:b], 1.0, w, grad[end:b], flat, factor, slope)
            grad[i] -= w * pull
            if ties:
                tied, tied_grad = s[i + 1 : end], grad[i + 1 : end]
                up, up_pull = softplus_row(eta - s[i], tied, 1.0, w, tied_grad, flat, factor, slope)
                down, down_pull = softplus_row(eta + s[i], tied, -1.0, -w, tied_grad, flat, factor, slope)
                grad[i] += w * (down_pull - up_pull)
                here += up + down
                pull += up_pull + down_pull
            value += here
            by_eta += pull
    return value, by_eta, tied_pairs


@jit()
def ranknet(s, grade, offsets, weight, values, grad):
    """sum over i above j of softplus(-d).  O(N^2) per list."""
    start = np.empty(longest(offsets) + 1, np.int64)
    flat, factor, slope = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for q in range(len(offsets) - 1):
        n_tiers = find_tiers(grade, offsets[q], offsets[q + 1], start)
        value, _, _ = rao_kupper_rows(s, start, n_tiers, 0.0, False, weight[q], grad, flat, factor, slope)
        values[q] = weight[q] * value


@jit()
def rao_kupper(s, grade, offsets, weight, values, grad, slopes, eta, tie_gain, eta_by_tie, gain_by_tie):
    """sum over i above j of softplus(eta - d) plus, over tied pairs, softplus(eta - d) + softplus(eta + d) - tie_gain.

    ``slopes[q, 0]``: the derivative in the tie parameter, given those of eta and ``tie_gain``.  O(N^2) per list.
    """
    start = np.empty(longest(offsets) + 1, np.int64)
    flat, factor, slope = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for q in range(len(offsets) - 1):
        n_tiers = find_tiers(grade, offsets[q], offsets[q + 1], start)
        value, by_eta, tied = rao_kupper_rows(s, start, n_tiers, eta, True, weight[q], grad, flat, factor, slope)
        if tied > 0.0:  # avoids 0 times infinity if there are no tied pairs
            value -= tied * tie_gain
        values[q] = weight[q] * value
        slopes[q, 0] = weight[q] * (eta_by_tie * by_eta - tied * gain_by_tie)


@jit(fastmath={"contract"}, error_model="numpy")
def logistic_bends(x, s, bend):
    """Second derivative of `softplus` at x - s_j, which equals that at s_j - x."""
    for j in range(len(s)):
        _, e = softplus(x - s[j])
        bend[j] = e / ((1.0 + e) * (1.0 + e))


@jit(fastmath={"reassoc", "contract"})
def add_bends(bend, v_i, v, other, weight, out):
    """out_j += weight * bend_j (v_j - other v_i); returns sum_j bend_j (v_i - other v_j)."""
    total = 0.0
    for j in range(len(bend)):
        total += bend[j] * (v_i - other * v[j])
        out[j] += weight * bend[j] * (v[j] - other * v_i)
    return total


@jit()
def rao_kupper_second(s, grade, offsets, weight, out, v, other, eta, ties):
    """Second derivatives of `rao_kupper` in s: h = p (1 - p) at p = logistic(eta - d), for ties also at eta + d.

    O(N^2).
    """
    rows = longest(offsets)
    start, bend = np.empty(rows + 1, np.int64), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        w = weight[q]
        for t in range(find_tiers(grade, a, b, start)):
            end = start[t + 1]
            for i in range(start[t], end):
                logistic_bends(s[i] - eta, s[end:b], bend)
                out[i] += w * add_bends(bend[: b - end], v[i], v[end:b], other, w, out[end:b])
                if ties:
                    for shift in (-eta, eta):
                        logistic_bends(s[i] + shift, s[i + 1 : end], bend)
                        out[i] += w * add_bends(bend[: end - i - 1], v[i], v[i + 1 : end], other, w, out[i + 1 : end])


@jit(fastmath={"contract"}, error_model="numpy")
def davidson_terms(x, s, tie, win, flat, factor, slope, tied):
    """log(e^{d/2} + e^{-d/2} + e^tie) - win d/2 = flat + log(factor), d = x - s_j; its slopes in s_j and in ``tie``."""
    nu, excess = tie_weight(tie)
    for j in range(len(s)):
        d = x - s[j]
        level, behind, even = davidson_pair(d, nu, excess)
        total = 1.0 + behind + even
        lost = behind if d > 0.0 else 1.0
        flat[j] = level - 0.5 * win * d
        factor[j] = total
        tied[j] = even / total
        slope[j] = (lost + 0.5 * (win * even - (1.0 - win) * (1.0 + behind))) / total


@jit()
def rows_per_logarithm(tie):
    """Number of factors of `davidson_pair` that can be multiplied without overflow."""
    return max(1, min(BLOCK, int(600.0 / math.log(2.0 + math.exp(min(tie, MOST_TIE))))))


@jit()
def davidson_row(x, s, tie, win, weight, grad, scratch):
    """grad += weight * slope of `davidson_terms` over s; returns the sums of the values and of both derivatives.

    O(len(s)), in blocks.
    """
    flat, factor, slope, tied = scratch[0], scratch[1], scratch[2], scratch[3]
    value, total, tie_total = 0.0, 0.0, 0.0
    block = len(flat)
    for a in range(0, len(s), block):
        part = s[a : a + block]
        davidson_terms(x, part, tie, win, flat, factor, slope, tied)
        here, slopes = add_terms(flat, factor, slope, weight, grad[a : a + block])
        value += here
        total += slopes
        tie_total += tied[: len(part)].sum()
    return value, total, tie_total


@jit()
def davidson(s, grade, offsets, weight, values, grad, slopes, tie):
    """sum over all pairs of log(e^{d/2} + e^{-d/2} + e^tie), minus d/2 if i is above j and minus tie if they tie.

    ``slopes[q, 0]``: the derivative in ``tie``.  O(N^2) per list.
    """
    start = np.empty(longest(offsets) + 1, np.int64)
    scratch = np.empty((4, rows_per_logarithm(tie)))
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        w = weight[q]
        value, by_tie, tied_pairs = 0.0, 0.0, 0.0
        for t in range(find_tiers(grade, a, b, start)):
            end = start[t + 1]
            tied_pairs += 0.5 * (end - start[t]) * (end - start[t] - 1.0)
            for i in range(start[t], end):
                won, won_pull, won_tie = davidson_row(s[i], s[end:b], tie, 1.0, w, grad[end:b], scratch)
                even, pull, even_tie = davidson_row(s[i], s[i + 1 : end], tie, 0.0, w, grad[i + 1 : end], scratch)
                grad[i] -= w * (won_pull + pull)
                value += won + even
                by_tie += won_tie + even_tie
        if tied_pairs > 0.0:  # avoids 0 times infinity if there are no tied pairs
            value -= tied_pairs * tie
        values[q] = w * value
        slopes[q, 0] = w * (by_tie - tied_pairs)


@jit(fastmath={"contract"}, error_model="numpy")
def davidson_bends(x, s, tie, bend):
    """Second derivative of log(e^{d/2} + e^{-d/2} + e^tie): the variance of a result (win 1/2, loss -1/2, tie 0)."""
    nu, excess = tie_weight(tie)
    for j in range(len(s)):
        _, behind, even = davidson_pair(x - s[j], nu, excess)
        total = 1.0 + behind + even
        bend[j] = (behind + 0.25 * even * (1.0 + behind)) / (total * total)


@jit()
def davidson_second(s, grade, offsets, weight, out, v, other, tie):
    """Second derivatives of `davidson` in s.  O(N^2) per list."""
    bend = np.empty(longest(offsets))
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        w = weight[q]
        for i in range(a, b):
            davidson_bends(s[i], s[i + 1 : b], tie, bend)
            out[i] += w * add_bends(bend[: b - i - 1], v[i], v[i + 1 : b], other, w, out[i + 1 : b])
