"""Likelihood of ranked, unlabelled signals given a position: every association of signals and sources summed.

A *step* reaches the kernels as the same arguments everywhere (``placet.tracking.model.Step``):

``shift, speed, sigma, detection`` (sources,): the mean arrival is ``shift + distance / speed``, its standard deviation
``sigma``; a signal can be heard with probability ``detection``.
``low, cut``: a detected signal that arrives in ``(low, cut)`` must be among the recorded ones.
``time, clutter, label`` (signals,): recorded times, clutter intensities lambda p_N(T_j), and labels
(-1 unknown, -2 clutter, else the source).
``level, log_level`` (levels,): the shares of heard signals that are too weak to be kept, and the log weight of each
share; the earliest signals are kept at the one level 0.
``ranked``: when false, sources without a recorded signal count 1 - P_D whatever their time (equation 5.72).
"""

import math

import numpy as np

from placet.kernels.jit import jit

SQRT_2PI = math.sqrt(2 * math.pi)
TINY = 1e-30
SMALLEST = 1e-280  # below this a product of densities is added up again in logarithms


@jit()
def log_upper(z):
    """log P(Z > z) of a standard normal; the asymptotic series where the tail is no longer a double."""
    if z < 30.0:
        return math.log(0.5 * math.erfc(z / math.sqrt(2.0)))
    return -0.5 * z * z - math.log(z * SQRT_2PI) + math.log1p(-1 / (z * z) + 3 / (z * z * z * z))


@jit()
def log_add(a, b):
    """log(e^a + e^b); minus infinity is an empty sum."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@jit()
def outside(mean, sigma, low, cut):
    """P(t < low or t > cut) for t normal: a sum of tails, so that a small one keeps its digits."""
    width = sigma * math.sqrt(2.0)
    return 0.5 * (math.erfc((cut - mean) / width) + math.erfc((mean - low) / width))


@jit()
def quickly_outside(mean, sigma, low, cut):
    """The same to an absolute 1e-16, without the error function where the answer is 0 or 1."""
    far = 8.3 * sigma
    if low + far < mean < cut - far:
        return 0.0
    if mean > cut + far or mean < low - far:
        return 1.0
    return outside(mean, sigma, low, cut)


@jit()
def farthest(sigma, detection, clutter, label, i):
    """Largest z^2 / 2 at which a signal may be paired with source ``i``; negative when its label forbids every one.

    An association with the pair is P_D p_i(T) / ((1 - P_D) clutter) times the one in which the source is missed and
    the signal is clutter, at the most; where that is below 1e-18 the pair does not change the sum.
    """
    if label != -1 and label != i:
        return -1.0
    if clutter == 0.0 or detection == 1.0 or detection == 0.0 or label == i:
        return np.inf
    return max(0.0, math.log(detection / (sigma * SQRT_2PI * (1 - detection) * clutter)) + 41.5)


@jit()
def log_factors(distance, shift, speed, sigma, detection, low, cut, time, clutter, label, level, ranked, pair, unheard):
    """``pair[i, j]`` = log P_D p_i(T_j) and ``unheard[i]`` = log(1 - P_D P(low < t_i < cut) (1 - level))."""
    for i in range(len(distance)):
        mean = shift[i] + distance[i] / speed[i]
        log_peak = math.log(detection[i] / (sigma[i] * SQRT_2PI)) if detection[i] > 0 else -np.inf
        for j in range(len(time)):
            z = (time[j] - mean) / sigma[i]
            near = 0.5 * z * z <= farthest(sigma[i], detection[i], clutter[j], label[j], i)
            pair[i, j] = log_peak - 0.5 * z * z if near else -np.inf
        if ranked and detection[i] == 1.0 and level == 0.0:
            # No chance of a miss: the tails alone, which may be smaller than any double.
            unheard[i] = log_add(log_upper((cut - mean) / sigma[i]), log_upper((mean - low) / sigma[i]))
        else:
            away = outside(mean, sigma[i], low, cut) if ranked else 0.0
            left = 1 - detection[i] + detection[i] * (away + (level * (1 - away) if ranked else 0.0))
            unheard[i] = math.log(left) if left > 0 else -np.inf


@jit()
def log_prefix(pair, unheard, clutter, label, prefix):
    """``prefix[i, m]``: log sum over the ways in which clutter and the sources before ``i`` are exactly the signals
    of ``m``.

    O(sources x signals x 2^signals).
    """
    s, r = pair.shape
    for m in range(1 << r):
        prefix[0, m] = 0.0
        for j in range(r):
            if m >> j & 1:
                as_clutter = clutter[j] > 0 and label[j] < 0
                prefix[0, m] += math.log(clutter[j]) if as_clutter else -np.inf
    for i in range(s):
        for m in range(1 << r):
            total = prefix[i, m] + unheard[i]
            for j in range(r):
                if m >> j & 1 and pair[i, j] > -np.inf:
                    total = log_add(total, prefix[i, m ^ (1 << j)] + pair[i, j])
            prefix[i + 1, m] = total


@jit()
def log_suffix(pair, unheard, suffix):
    """``suffix[i, m]``: log sum over the ways in which the sources from ``i`` on are exactly the signals of ``m``."""
    s, r = pair.shape
    suffix[s, :] = -np.inf
    suffix[s, 0] = 0.0
    for i in range(s - 1, -1, -1):
        for m in range(1 << r):
            total = suffix[i + 1, m] + unheard[i]
            for j in range(r):
                if m >> j & 1 and pair[i, j] > -np.inf:
                    total = log_add(total, suffix[i + 1, m ^ (1 << j)] + pair[i, j])
            suffix[i, m] = total


@jit()
def add_source(n_pairs, partner, factor, out, divide, ways):
    """One source with any number of pairs, from large subsets to small: the smaller ones still lack this source."""
    for m in range(len(ways) - 1, -1, -1):
        total = 0.0
        for k in range(n_pairs):
            j = partner[k]
            if m >> j & 1:
                total += ways[m ^ (1 << j)] * factor[k]
        ways[m] = ways[m] + total / out if divide else ways[m] * out + total


@jit()
def log_subset_sum(n_pairs, partner, factor, unheard, start, ways):
    """Log of the sum over all associations of the product of their factors, by subsets of the signals.

    W_0(m) = product of clutter over m; W_{i+1}(m) = W_i(m) unheard_i + sum_{j in m} W_i(m - j) pair_ij; the answer is
    W_s(all).  Source i has ``n_pairs[i]`` pairs, with the signals ``partner[i]`` and the factors ``factor[i]``.
    O(sources + pairs x 2^signals); minus infinity when the sum is too small for a double.
    """
    full = len(ways) - 1
    ways[:] = start
    # unheard_i is taken out of every sum (W and pair_ij divided by it), so a source without pairs costs one product.
    common, log_common = 1.0, 0.0
    for i in range(len(n_pairs)):
        out = unheard[i]
        divide = out > TINY  # a division by less could overflow
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
    """``start[m]`` = product of the clutter intensities of the signals of ``m``."""
    start[0] = 1.0
    for m in range(1, len(start)):
        j = 0
        while not m >> j & 1:
            j += 1
        start[m] = start[m ^ (1 << j)] * (clutter[j] if label[j] < 0 else 0.0)


@jit()
def log_likelihood(
    distance, shift, speed, sigma, detection, low, cut, time, clutter, label, level, log_level, ranked, out
):
    """``out[p]`` += log p(signals | position p), exact.  O(sources x signals + pairs x 2^signals) per particle and
    level.
    """
    s, r = distance.shape[1], len(time)
    limit, partner, factor = np.empty((s, r)), np.empty((s, r), np.int64), np.empty((s, r))
    n_pairs, unheard, away, reach = np.empty(s, np.int64), np.empty(s), np.empty(s), np.zeros(s)
    start, ways, prefix = np.empty(1 << r), np.empty(1 << r), np.empty((s + 1, 1 << r))
    clutter_products(clutter, label, start)
    for i in range(s):
        for j in range(r):
            limit[i, j] = min(farthest(sigma[i], detection[i], clutter[j], label[j], i), 700.0)
            reach[i] = max(reach[i], sigma[i] * math.sqrt(2 * max(limit[i, j], 0.0)))
    slow, narrow, peak = 1 / speed, 1 / sigma, detection / (sigma * SQRT_2PI)
    for p in range(len(distance)):
        for i in range(s):
            mean = shift[i] + distance[p, i] * slow[i]
            away[i] = 0.0
            if ranked:
                # With P_D near 1 the chance to go unheard is the tail itself, and needs all its digits.
                exactly = detection[i] > 0.99
                away[i] = outside(mean, sigma[i], low, cut) if exactly else quickly_outside(mean, sigma[i], low, cut)
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
            total = log_add(total, log_level[q] + log_subset_sum(n_pairs, partner, factor, unheard, start, ways))
        if total < -600.0:
            total = log_likelihood_of_one(
                distance[p],
                shift,
                speed,
                sigma,
                detection,
                low,
                cut,
                time,
                clutter,
                label,
                level,
                log_level,
                ranked,
                prefix,
            )
        out[p] += total


@jit()
def log_likelihood_of_one(
    distance, shift, speed, sigma, detection, low, cut, time, clutter, label, level, log_level, ranked, prefix
):
    """The same for one particle, all in logarithms: slower, and never out of the range of a double."""
    s, r = len(distance), len(time)
    pair, unheard = np.empty((s, r)), np.empty(s)
    total = -np.inf
    for q in range(len(level)):
        log_factors(
            distance, shift, speed, sigma, detection, low, cut, time, clutter, label, level[q], ranked, pair, unheard
        )
        log_prefix(pair, unheard, clutter, label, prefix)
        total = log_add(total, log_level[q] + prefix[s, (1 << r) - 1])
    return total


@jit()
def marginals(distance, shift, speed, sigma, detection, low, cut, time, clutter, label, level, log_level, ranked, out):
    """``out[p, j, i]`` = P(signal j came from source i | position p, all signals); the rest of each row is clutter.

    P(j from i) is proportional to pair_ij sum_m prefix_i(m) suffix_{i+1}(all - m - j).  O(2^signals sources x
    signals) each.
    """
    s, r = distance.shape[1], len(time)
    full = (1 << r) - 1
    pair, unheard = np.empty((s, r)), np.empty(s)
    prefix, suffix = np.empty((s + 1, full + 1)), np.empty((s + 1, full + 1))
    for p in range(len(distance)):
        total = -np.inf
        out[p] = -np.inf
        for q in range(len(level)):
            log_factors(
                distance[p],
                shift,
                speed,
                sigma,
                detection,
                low,
                cut,
                time,
                clutter,
                label,
                level[q],
                ranked,
                pair,
                unheard,
            )
            log_prefix(pair, unheard, clutter, label, prefix)
            log_suffix(pair, unheard, suffix)
            total = log_add(total, log_level[q] + prefix[s, full])
            for i in range(s):
                for j in range(r):
                    if pair[i, j] == -np.inf:
                        continue
                    ways = -np.inf
                    for m in range(full + 1):
                        if not m >> j & 1:
                            ways = log_add(ways, prefix[i, m] + suffix[i + 1, full ^ m ^ (1 << j)])
                    out[p, j, i] = log_add(out[p, j, i], log_level[q] + pair[i, j] + ways)
        for i in range(s):
            for j in range(r):
                out[p, j, i] = math.exp(out[p, j, i] - total) if total > -np.inf else np.nan
