"""Likelihood of ranked, unlabeled signals given a position: a sum over all associations of signals with sources.

``sum_exactly`` runs over all subsets of the signals; ``sum_by_bethe`` (``placet.kernels.tracking.belief_propagation``)
takes over when there are too many signals to enumerate subsets.  ``log_sums`` is the loop around both.
"""

import math
from typing import NamedTuple

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.sums import log_add
from placet.kernels.tracking.belief_propagation import sum_by_bethe

SQRT_2PI = math.sqrt(2 * math.pi)
TINY = 1e-30
SMALLEST = 1e-280  # sums of density products below this are recomputed in log space


class SignalStep(NamedTuple):
    """One time step, in the form passed to the kernels."""

    shift: np.ndarray  # (sources,): the mean arrival is shift + distance / speed
    speed: np.ndarray  # (sources,)
    sigma: np.ndarray  # (sources,): standard deviation of an arrival
    detection: np.ndarray  # (sources,): probability that a source can be heard
    low: float  # every signal heard between low and cut is among the recorded ones
    cut: float
    time: np.ndarray  # (signals,): recorded times
    clutter: np.ndarray  # (signals,): clutter intensities lambda p_N(T_j)
    label: np.ndarray  # (signals,): -1 unknown, -2 clutter, else the source
    level: np.ndarray  # (levels,): fractions of heard signals too weak to be recorded; only 0 for "earliest"
    log_level: np.ndarray  # (levels,): log weight of each level
    ranked: bool  # if false, a source without a recorded signal has factor 1 - P_D at any time (equation 5.72)


@jit()
def log_upper(z):
    """log P(Z > z) of a standard normal; an asymptotic series where the tail underflows a double."""
    if z < 30.0:
        return math.log(0.5 * math.erfc(z / math.sqrt(2.0)))
    return -0.5 * z * z - math.log(z * SQRT_2PI) + math.log1p(-1 / (z * z) + 3 / (z * z * z * z))


@jit()
def probability_outside(mean, sigma, low, cut):
    """P(t < low or t > cut) for t normal, as a sum of tails so that small values stay accurate."""
    width = sigma * math.sqrt(2.0)
    return 0.5 * (math.erfc((cut - mean) / width) + math.erfc((mean - low) / width))


@jit()
def fast_probability_outside(mean, sigma, low, cut):
    """`probability_outside` to an absolute error of 1e-16, skipping the error function where the result is 0 or 1."""
    far = 8.3 * sigma
    if low + far < mean < cut - far:
        return 0.0
    if mean > cut + far or mean < low - far:
        return 1.0
    return probability_outside(mean, sigma, low, cut)


@jit()
def pairing_limit(sigma, detection, clutter, label, i):
    """Largest z^2 / 2 at which a signal may be paired with source ``i``; negative if its label forbids the pair.

    An association with the pair is at most P_D p_i(T) / ((1 - P_D) clutter) times the one in which the source is
    missed and the signal is clutter; pairs for which this is below 1e-18 do not change the sum.
    """
    if label != -1 and label != i:
        return -1.0
    if clutter == 0.0 or detection == 1.0 or detection == 0.0 or label == i:
        return np.inf
    return max(0.0, math.log(detection / (sigma * SQRT_2PI * (1 - detection) * clutter)) + 41.5)


@jit()
def log_factors(distance, step, level, pair, unheard):
    """``pair[i, j]`` = log P_D p_i(T_j) and ``unheard[i]`` = log(1 - P_D P(low < t_i < cut) (1 - level))."""
    low, cut, time, ranked = step.low, step.cut, step.time, step.ranked
    for i in range(len(distance)):
        sigma, detection = step.sigma[i], step.detection[i]
        mean = step.shift[i] + distance[i] / step.speed[i]
        log_peak = math.log(detection / (sigma * SQRT_2PI)) if detection > 0 else -np.inf
        for j in range(len(time)):
            z = (time[j] - mean) / sigma
            near = 0.5 * z * z <= pairing_limit(sigma, detection, step.clutter[j], step.label[j], i)
            pair[i, j] = log_peak - 0.5 * z * z if near else -np.inf
        if ranked and detection == 1.0 and level == 0.0:
            # No chance of a miss: only the tails, which may underflow a double.
            unheard[i] = log_add(log_upper((cut - mean) / sigma), log_upper((mean - low) / sigma))
        else:
            away = probability_outside(mean, sigma, low, cut) if ranked else 0.0
            left = 1 - detection + detection * (away + (level * (1 - away) if ranked else 0.0))
            unheard[i] = math.log(left) if left > 0 else -np.inf


@jit()
def add_source_in_logs(ways, pair, unheard, out):
    """``out[m]`` = log of the sum over all ways to explain the signals in ``m`` with one more source.

    The new source's log factors are ``pair`` (signals,) and ``unheard``.
    """
    for m in range(len(ways)):
        total = ways[m] + unheard
        for j in range(len(pair)):
            if m >> j & 1 and pair[j] > -np.inf:
                total = log_add(total, ways[m ^ (1 << j)] + pair[j])
        out[m] = total


@jit()
def sum_exactly(pair, unheard, log_clutter, before, share):
    """Log of the sum over all associations, entirely in log space; ``share[j, i]`` = P(signal j from source i).

    before_i(m): total weight of explaining exactly the signals in m by clutter and the sources before i (``before``
    (sources + 1, 2^signals) is overwritten); after_i(m): the same for the sources from i on.  P(j from i) is
    proportional to pair_ij sum_m before_i(m) after_{i+1}(all - m - j).  If ``share`` has no rows, only the sum is
    computed.  O(sources x signals x 2^signals).
    """
    s, r = pair.shape
    full = (1 << r) - 1
    for m in range(full + 1):
        before[0, m] = 0.0
        for j in range(r):
            if m >> j & 1:
                before[0, m] += log_clutter[j]
    for i in range(s):
        add_source_in_logs(before[i], pair[i], unheard[i], before[i + 1])
    total = before[s, full]
    if len(share) == 0 or total == -np.inf:
        return total
    after, next_after = np.full(full + 1, -np.inf), np.empty(full + 1)
    after[0] = 0.0
    for i in range(s - 1, -1, -1):
        for j in range(r):
            ways = -np.inf
            if pair[i, j] > -np.inf:
                for m in range(full + 1):
                    if not m >> j & 1:
                        ways = log_add(ways, before[i, m] + after[full ^ m ^ (1 << j)])
            share[j, i] = math.exp(pair[i, j] + ways - total) if ways > -np.inf else 0.0
        add_source_in_logs(after, pair[i], unheard[i], next_after)
        after, next_after = next_after, after
    return total


@jit()
def log_sums(distance, step, exact, out, share):
    """``out[p]`` = log p(signals | position p) from distances (particles, sources), without under- or overflow.

    ``share[p, j, i]`` = P(signal j came from source i | position p), unless ``share`` is empty.
    """
    s, r, levels = distance.shape[1], len(step.time), len(step.level)
    pair, unheard, log_clutter = np.empty((s, r)), np.empty(s), np.empty(r)
    before, messages = np.empty((s + 1, 1 << r if exact else 0)), np.empty((3, s, r))
    part = np.empty((r if len(share) else 0, s))
    for j in range(r):
        as_clutter = step.clutter[j] > 0 and step.label[j] < 0
        log_clutter[j] = math.log(step.clutter[j]) if as_clutter else -np.inf
    for p in range(len(distance)):
        total = -np.inf
        for q in range(levels):
            log_factors(distance[p], step, step.level[q], pair, unheard)
            value = step.log_level[q]
            if exact:
                value += sum_exactly(pair, unheard, log_clutter, before, part)
            else:
                value += sum_by_bethe(pair, unheard, log_clutter, messages, part)
            if value == -np.inf:
                continue
            first = total == -np.inf
            total = log_add(total, value)
            # A running mean over the levels, each weighted by its share of the likelihood so far.
            weight = math.exp(value - total)
            for j in range(len(part)):
                for i in range(s):
                    share[p, j, i] = part[j, i] if first else share[p, j, i] + weight * (part[j, i] - share[p, j, i])
        out[p] = total
        if total == -np.inf and len(share):
            share[p] = np.nan


@jit()
def add_source(n_pairs, partner, factor, out, divide, ways):
    """Add a source with any number of pairs in place, from large to small subsets: smaller ones still exclude it."""
    for m in range(len(ways) - 1, -1, -1):
        total = 0.0
        for k in range(n_pairs):
            j = partner[k]
            if m >> j & 1:
                total += ways[m ^ (1 << j)] * factor[k]
        ways[m] = ways[m] + total / out if divide else ways[m] * out + total


@jit()
def log_subset_sum(n_pairs, partner, factor, unheard, start, ways):
    """Log of the sum over all associations of the product of their factors, by a recursion over subsets of signals.

    W_0(m) = product of clutter over m; W_{i+1}(m) = W_i(m) unheard_i + sum_{j in m} W_i(m - j) pair_ij; the answer is
    W_s(all).  Source i has ``n_pairs[i]`` pairs, with the signals ``partner[i]`` and the factors ``factor[i]``.
    O(sources + pairs x 2^signals); minus infinity if the sum is at most ``SMALLEST``.
    """
    full = len(ways) - 1
    ways[:] = start
    # unheard_i is factored out of every sum (W and pair_ij divided by it), so a source without pairs costs one product.
    common, log_common = 1.0, 0.0
    for i in range(len(n_pairs)):
        out = unheard[i]
        divide = out > TINY  # dividing by a smaller number could overflow
        if divide:
            common *= out
            if common < 1e-200:
                log_common += math.log(common)
                common = 1.0
        if n_pairs[i] == 1 and divide:
            ratio = factor[i, 0] / out
            bit = 1 << partner[i, 0]
            for block in range(bit, full + 1, 2 * bit):
                for m in range(block, block + bit):
                    ways[m] += ways[m - bit] * ratio
        elif n_pairs[i] > 0 or not divide:
            add_source(n_pairs[i], partner[i], factor[i], out, divide, ways)
    value = ways[full] * common
    return math.log(value) + log_common if value > SMALLEST else -np.inf


@jit()
def clutter_products(clutter, label, start):
    """``start[m]`` = product of the clutter intensities of the signals in ``m``."""
    start[0] = 1.0
    for m in range(1, len(start)):
        j = 0
        while not m >> j & 1:
            j += 1
        start[m] = start[m ^ (1 << j)] * (clutter[j] if label[j] < 0 else 0.0)


@jit()
def log_likelihood(distance, step, exact, out):
    """``out[p]`` += log p(signals | position p) from distances (particles, sources).

    If exact, O(sources x signals + pairs x 2^signals) per particle and level, else O(iterations x sources x signals).
    """
    slow_sum, nothing = np.empty(len(distance) if not exact else 1), np.empty((0, 0, 0))
    if not exact:
        log_sums(distance, step, exact, slow_sum, nothing)
        out += slow_sum
        return
    shift, sigma, detection, time, clutter = step.shift, step.sigma, step.detection, step.time, step.clutter
    low, cut, ranked, level = step.low, step.cut, step.ranked, step.level
    s, r = distance.shape[1], len(time)
    limit, partner, factor = np.empty((s, r)), np.empty((s, r), np.int64), np.empty((s, r))
    n_pairs, unheard, away, reach = np.empty(s, np.int64), np.empty(s), np.empty(s), np.zeros(s)
    start, ways = np.empty(1 << r), np.empty(1 << r)
    clutter_products(clutter, step.label, start)
    for i in range(s):
        for j in range(r):
            limit[i, j] = min(pairing_limit(sigma[i], detection[i], clutter[j], step.label[j], i), 700.0)
            reach[i] = max(reach[i], sigma[i] * math.sqrt(2 * max(limit[i, j], 0.0)))
    slow, narrow, peak = 1 / step.speed, 1 / sigma, detection / (sigma * SQRT_2PI)
    for p in range(len(distance)):
        for i in range(s):
            mean = shift[i] + distance[p, i] * slow[i]
            away[i] = 0.0
            if ranked and detection[i] > 0.99:
                # The probability of going unheard is little more than the tail, which therefore needs full precision.
                away[i] = probability_outside(mean, sigma[i], low, cut)
            elif ranked:
                away[i] = fast_probability_outside(mean, sigma[i], low, cut)
            n_pairs[i] = 0
            if r == 0 or mean > time[r - 1] + reach[i] or mean < time[0] - reach[i]:
                continue
            n = 0
            for j in range(r):
                z = (time[j] - mean) * narrow[i]
                square = 0.5 * z * z
                if square <= limit[i, j]:
                    partner[i, n] = j
                    factor[i, n] = peak[i] * math.exp(-square)
                    n += 1
            n_pairs[i] = n
        total = -np.inf
        for q in range(len(level)):
            for i in range(s):
                weak = level[q] * (1 - away[i]) if ranked else 0.0
                unheard[i] = 1 - detection[i] + detection[i] * (away[i] + weak)
            total = log_add(total, step.log_level[q] + log_subset_sum(n_pairs, partner, factor, unheard, start, ways))
        if total < -600.0:
            log_sums(distance[p : p + 1], step, exact, slow_sum, nothing)
            total = slow_sum[0]
        out[p] += total
