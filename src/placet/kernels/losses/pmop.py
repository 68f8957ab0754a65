"""Full-decomposition model over ordered partitions: a subset's weight is the mean of its items' potentials e^{s_i}.

Stage k removes the tier X_k from the remaining items R_k.  The nonempty subsets of R_k have total weight
C_k sum_{R_k} e^s, C_k = (2^N_k - 1) / N_k, N_k = |R_k|, so a stage costs  log sum_{R_k} e^s - log sum_{X_k} e^s +
log(C_k |X_k|).  The last stage counts too: it also chooses a subset, namely everything that remains.
Loops that should vectorize use unsigned row indices: signed ones are checked for indexing from the end.
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.losses.plackett_luce import stage_factor
from placet.kernels.ranges import find_tiers, longest
from placet.kernels.sums import log_add
from placet.kernels.vector import exp

LOG_2 = math.log(2.0)
NARROW = 150.0  # scores this close to the first row's need no other shift: e^{+-150} times any count is representable
PROPER = 1.0 - 0.5 ** np.arange(61)  # 2^n - 1 = 2^n PROPER[n]; from n = 54 on it is 1
FOLD = 1e100  # products of factors are accumulated up to this size before taking the logarithm


@jit()
def log_subsets(n):
    """log(2^n - 1), the log number of nonempty subsets."""
    return n * LOG_2 + math.log(PROPER[min(n, 60)])


@jit()
def is_narrow(s, a, b):
    """Whether all scores of rows a..b are within NARROW of the first.

    Counts violations instead of stopping at the first, so that the loop vectorizes.
    """
    far = 0
    for r in range(np.uint64(a), np.uint64(b)):
        far += abs(s[r] - s[a]) > NARROW
    return far == 0


@jit(fastmath={"contract"})
def exp_rows(s, a, b, shift, out):
    """out = e^{s - shift} for rows a..b.

    Kept separate from `row_sum`, whose reordering flag would break the rounding inside `exp`.
    """
    for r in range(np.uint64(a), np.uint64(b)):
        out[r] = exp(s[r] - shift)


@jit(fastmath={"reassoc", "contract"})
def row_sum(x, a, b):
    """Sum of x[a:b]."""
    total = 0.0
    for r in range(np.uint64(a), np.uint64(b)):
        total += x[r]
    return total


@jit()
def scale_rows(x, a, b, factor):
    """x[a:b] *= factor."""
    for r in range(np.uint64(a), np.uint64(b)):
        x[r] *= factor


@jit(error_model="numpy")
def fd_narrow(s, start, n_tiers, weight, grad, rest, tier):
    """Return the value of one list of close scores; write the gradient to ``grad``.

    Plain sums with one shift: d / d s_i = e^{s_i} (sum_{k <= t} 1 / sum_{R_k} e^s - 1 / sum_{X_t} e^s), i in X_t.
    """
    end = start[n_tiers]
    exp_rows(s, start[0], end, s[start[0]], grad)
    total, factor, left, twos = 0.0, 1.0, 0.0, 0
    for t in range(n_tiers - 1, -1, -1):
        here = row_sum(grad, start[t], start[t + 1])
        left += here
        rest[t], tier[t] = left, here
        n = end - start[t]
        twos += n
        factor *= PROPER[min(n, 60)] * left * (start[t + 1] - start[t]) / (here * n)
        if not (1.0 / FOLD < factor < FOLD):
            total += math.log(factor)
            factor = 1.0
    share = 0.0
    for t in range(n_tiers):
        share += 1.0 / rest[t]
        scale_rows(grad, start[t], start[t + 1], weight * (share - 1.0 / tier[t]))
    return weight * (total + math.log(factor) + twos * LOG_2)


@jit()
def tier_logs(s, start, n_tiers, rest, tier, scratch):
    """Write log sum_{X_t} e^s to ``tier`` and log sum_{R_t} e^s to ``rest``, for scores of any size.  O(rows)."""
    left = -np.inf
    for t in range(n_tiers - 1, -1, -1):
        a, b = start[t], start[t + 1]
        top = s[a:b].max()
        exp_rows(s, a, b, top, scratch)
        tier[t] = top + math.log(row_sum(scratch, a, b))
        left = log_add(tier[t], left)
        rest[t] = left


@jit(fastmath={"contract"})
def fd_wide(s, start, n_tiers, weight, grad, rest, tier):
    """`fd_narrow` for scores of any size, with sums kept in log space.

    ``share`` is sum_{k <= t} sum_{R_t} e^s / sum_{R_k} e^s, at most the number of stages.
    """
    tier_logs(s, start, n_tiers, rest, tier, grad)
    total, share, before = 0.0, 0.0, np.inf
    for t in range(n_tiers):
        n = start[n_tiers] - start[t]
        total += rest[t] - tier[t] + log_subsets(n) + math.log((start[t + 1] - start[t]) / n)
        share = 1.0 + share * math.exp(rest[t] - before)
        before = rest[t]
        for r in range(np.uint64(start[t]), np.uint64(start[t + 1])):
            grad[r] = weight * (share * exp(s[r] - rest[t]) - exp(s[r] - tier[t]))
    return weight * total


@jit()
def pmop_fd(s, grade, offsets, weight, values, grad):
    """sum_k log sum_{R_k} e^s - log sum_{X_k} e^s + log(C_k |X_k|).  O(rows)."""
    rows = longest(offsets)
    start = np.empty(rows + 1, np.int64)
    rest, tier = np.empty(rows), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        if a == b:
            continue
        n_tiers = find_tiers(grade, a, b, start)
        if is_narrow(s, a, b):
            values[q] = fd_narrow(s, start, n_tiers, weight[q], grad, rest, tier)
        else:
            values[q] = fd_wide(s, start, n_tiers, weight[q], grad, rest, tier)


@jit(fastmath={"contract"})
def fd_curvature_list(s, start, n_tiers, weight, out, rest, tier):
    """Diagonal for one list: p sum_k a_k - p^2 sum_k a_k^2, p the share in R_t, a_k = sum_{R_t} e^s / sum_{R_k} e^s.

    The sums leave out the last stage, which takes all that remains and costs a constant.
    """
    tier_logs(s, start, n_tiers, rest, tier, out)
    first, second, before = 0.0, 0.0, np.inf
    for t in range(n_tiers):
        shrink, counts = math.exp(rest[t] - before), 1.0 if t < n_tiers - 1 else 0.0
        before = rest[t]
        first = counts + first * shrink
        second = counts + second * shrink * shrink
        for r in range(np.uint64(start[t]), np.uint64(start[t + 1])):
            p = exp(s[r] - rest[t])
            bend = p * (first - p * second)
            out[r] = weight * (bend if bend > 0.0 else 0.0)


@jit()
def pmop_fd_curvature(s, grade, offsets, weight, out):
    """sum over k but the last of p_k (1 - p_k), p_k the row's share of R_k: the Hessian's diagonal without its concave
    part.  O(rows)."""
    rows = longest(offsets)
    start = np.empty(rows + 1, np.int64)
    rest, tier = np.empty(rows), np.empty(rows)
    for q in range(len(offsets) - 1):
        n_tiers = find_tiers(grade, offsets[q], offsets[q + 1], start)
        fd_curvature_list(s, start, n_tiers, weight[q], out, rest, tier)


@jit(fastmath={"contract"})
def fd_hvp_list(s, start, n_tiers, weight, out, v, rest, tier, mean_rest, mean_tier):
    """Hessian times v for one list: means of v under the softmax over R_t and X_t, then their sums over the stages."""
    tier_logs(s, start, n_tiers, rest, tier, out)
    below = 0.0
    for t in range(n_tiers - 1, -1, -1):
        here = 0.0
        for r in range(np.uint64(start[t]), np.uint64(start[t + 1])):
            here += exp(s[r] - tier[t]) * v[r]
        below += (here - below) * math.exp(tier[t] - rest[t])
        mean_tier[t], mean_rest[t] = here, below
    share, pulled, before = 0.0, 0.0, np.inf
    for t in range(n_tiers):
        shrink = math.exp(rest[t] - before)
        before = rest[t]
        share = 1.0 + share * shrink
        pulled = mean_rest[t] + pulled * shrink
        for r in range(np.uint64(start[t]), np.uint64(start[t + 1])):
            p, own = exp(s[r] - rest[t]), exp(s[r] - tier[t])
            out[r] = weight * (p * (share * v[r] - pulled) - own * (v[r] - mean_tier[t]))


@jit()
def pmop_fd_hvp(s, grade, offsets, weight, out, v):
    """sum_k p_k (v - p_k.v) - q (v - q.v), p_k the softmax over R_k and q over the row's own tier.  O(rows)."""
    rows = longest(offsets)
    start = np.empty(rows + 1, np.int64)
    rest, tier, mean_rest, mean_tier = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    for q in range(len(offsets) - 1):
        n_tiers = find_tiers(grade, offsets[q], offsets[q + 1], start)
        fd_hvp_list(s, start, n_tiers, weight[q], out, v, rest, tier, mean_rest, mean_tier)


@jit()
def softmax_rows(s, scale, out):
    """Write the softmax of scale * s to ``out``; return log sum e^{scale s}."""
    shift = -np.inf
    for r in range(len(s)):
        shift = max(shift, scale * s[r])
    for r in range(len(s)):
        out[r] = exp(scale * s[r] - shift)
    total = row_sum(out, 0, len(s))
    scale_rows(out, 0, len(s), 1.0 / total)
    return shift + math.log(total)


@jit()
def pmop_fd_staged(s, grade, offsets, weight, values, grad, scale, stage):
    """`pmop_fd` with e^{c_k s} in place of e^s at stage k, c_k = ``scale[min(k, last)]``, each stage multiplied by its
    factor (`stage_factor`, at the first row of its tier).  O(rows x tiers)."""
    rows = longest(offsets)
    start, p = np.empty(rows + 1, np.int64), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        for t in range(find_tiers(grade, a, b, start)):
            i, j = start[t], start[t + 1]
            c, w = scale[min(t, len(scale) - 1)], weight[q] * stage_factor(stage, start[t])
            cost = softmax_rows(s[i:b], c, p[: b - i])
            grad[i:b] += w * c * p[: b - i]
            cost -= softmax_rows(s[i:j], c, p[: j - i])
            grad[i:j] -= w * c * p[: j - i]
            values[q] += w * (cost + log_subsets(b - i) + math.log((j - i) / (b - i)))


@jit()
def pmop_fd_staged_curvature(s, grade, offsets, weight, out, scale, stage):
    """sum over k but the last of c_k^2 p_k (1 - p_k): the Hessian's diagonal without its concave part.
    O(rows x tiers)."""
    rows = longest(offsets)
    start, p = np.empty(rows + 1, np.int64), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        for t in range(find_tiers(grade, a, b, start) - 1):
            i = start[t]
            c, w = scale[min(t, len(scale) - 1)], weight[q] * stage_factor(stage, start[t])
            softmax_rows(s[i:b], c, p[: b - i])
            for r in range(b - i):
                out[i + r] += w * c * c * p[r] * (1.0 - p[r])


@jit()
def spread(p, v, factor, out):
    """out += factor * p (v - p.v): a softmax's Hessian times v."""
    mean = 0.0
    for r in range(len(v)):
        mean += p[r] * v[r]
    for r in range(len(v)):
        out[r] += factor * p[r] * (v[r] - mean)


@jit()
def pmop_fd_staged_hvp(s, grade, offsets, weight, out, v, scale, stage):
    """sum_k c_k^2 (p_k (v - p_k.v) - q_k (v - q_k.v)).  O(rows x tiers)."""
    rows = longest(offsets)
    start, p = np.empty(rows + 1, np.int64), np.empty(rows)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        for t in range(find_tiers(grade, a, b, start)):
            i, j = start[t], start[t + 1]
            c, w = scale[min(t, len(scale) - 1)], weight[q] * stage_factor(stage, start[t])
            softmax_rows(s[i:b], c, p[: b - i])
            spread(p, v[i:b], w * c * c, out[i:b])
            softmax_rows(s[i:j], c, p[: j - i])
            spread(p, v[i:j], -w * c * c, out[i:j])
