"""Draw subsets under the models over ordered partitions: Markov chains for learning, exact draws for simulation.

The caller supplies all uniform random numbers.
"""

import math

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.losses.pmop import log_subsets
from placet.kernels.losses.pmop_exact import forward_table
from placet.kernels.ranges import find_tiers, longest

GIBBS, HASTINGS, AS_PUBLISHED = 0, 1, 2


@jit()
def log_binomial(n, m):
    """log of the binomial coefficient n over m."""
    return math.lgamma(n + 1.0) - math.lgamma(m + 1.0) - math.lgamma(n - m + 1.0)


@jit()
def subset_mean(s, inside):
    """Number of rows inside the subset and the mean of their scores."""
    count, total = 0, 0.0
    for r in range(len(s)):
        if inside[r]:
            count += 1
            total += s[r]
    return count, total / count


@jit()
def gibbs_sweep(s, inside, u):
    """One Gibbs sweep: each row in turn is included with probability Phi(S + r) / (Phi(S + r) + Phi(S - r)).

    Phi(S) = e^{mean of s over S}.  The only row of a set is never removed: the empty set has no weight.  O(rows).
    """
    count, mean = subset_mean(s, inside)
    total = count * mean
    for r in range(len(s)):
        others, rest = count, total
        if inside[r]:
            others, rest = count - 1, total - s[r]
        if others == 0:
            continue
        gain = (rest + s[r]) / (others + 1) - rest / others
        inside[r] = u[r] * (1.0 + math.exp(min(-gain, 700.0))) < 1.0
        count, total = others, rest
        if inside[r]:
            count, total = others + 1, rest + s[r]


@jit()
def metropolis_step(s, inside, pool, u, corrected):
    """One step: propose a uniform size m in 1..N and m uniform rows; accept with probability min(1, ratio).

    The proposal has probability 1 / (N binom(N, m)), so the ratio is Phi(S') binom(N, |S'|) / (Phi(S) binom(N, |S|)).
    Without the binomials (not ``corrected``) the chain converges to Phi(S) / binom(N, |S|).  ``pool`` holds the rows in
    any order.  O(rows).
    """
    n = len(s)
    m = min(int(u[0] * n), n - 1) + 1
    total = 0.0
    for j in range(m):
        k = min(j + int(u[1 + j] * (n - j)), n - 1)
        pool[j], pool[k] = pool[k], pool[j]
        total += s[pool[j]]
    count, mean = subset_mean(s, inside)
    ratio = total / m - mean
    if corrected:
        ratio += log_binomial(n, m) - log_binomial(n, count)
    if u[n + 1] < math.exp(min(ratio, 0.0)):
        inside[:] = False
        for j in range(m):
            inside[pool[j]] = True


@jit()
def uniforms_needed(grade, offsets, rule):
    """Number of uniforms that one step of `contrast` uses in each list: N_k (Gibbs) or N_k + 2 per stage.  O(rows)."""
    start = np.empty(longest(offsets) + 1, np.int64)
    needed = np.zeros(len(offsets) - 1, np.int64)
    for q in range(len(needed)):
        a, b = offsets[q], offsets[q + 1]
        for t in range(find_tiers(grade, a, b, start)):
            needed[q] += b - start[t] + (0 if rule == GIBBS else 2)
    return needed


@jit()
def contrast(s, grade, offsets, weight, values, grad, uniforms, first, n_steps, rule):
    """sum_k (1/n) sum_l mean of s over S_l  -  mean of s over X_k, S_1..S_n a chain that starts at X_k.

    ``uniforms[first[a]:]`` are used by the list that starts at row a.  O(n N_k) per stage.
    """
    rows = longest(offsets)
    start, pool, inside = np.empty(rows + 1, np.int64), np.empty(rows, np.int64), np.empty(rows, np.bool_)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        used = first[a]
        for t in range(find_tiers(grade, a, b, start)):
            i, j = start[t], start[t + 1]
            n = b - i
            for r in range(n):
                inside[r] = r < j - i
                pool[r] = r
            values[q] -= weight[q] * s[i:j].mean()
            grad[i:j] -= weight[q] / (j - i)
            for _ in range(n_steps):
                if rule == GIBBS:
                    gibbs_sweep(s[i:b], inside[:n], uniforms[used : used + n])
                    used += n
                else:
                    metropolis_step(s[i:b], inside[:n], pool[:n], uniforms[used : used + n + 2], rule == HASTINGS)
                    used += n + 2
                count, mean = subset_mean(s[i:b], inside[:n])
                values[q] += weight[q] * mean / n_steps
                for r in range(n):
                    if inside[r]:
                        grad[i + r] += weight[q] / (n_steps * count)


@jit()
def draw_subset_fd(s, left, u):
    """Move a subset drawn with P(S) ~ mean of e^s over S to the front of ``left``; return its size.  O(N).

    Sizes have weight binom(N, m); given the size, one leading row is drawn with probability ~ e^s and the others
    uniformly.  Uses 1 + size uniforms.
    """
    n = len(left)
    m, mass = 1, math.exp(math.log(n) - log_subsets(n))
    while m < n and mass <= u[0]:
        m += 1
        mass += math.exp(log_binomial(n, m) - log_subsets(n))
    top = s[left].max()
    target = 0.0
    for r in range(n):
        target += math.exp(s[left[r]] - top)
    target *= u[1]
    leader, mass = 0, math.exp(s[left[0]] - top)
    while leader < n - 1 and mass <= target:
        leader += 1
        mass += math.exp(s[left[leader]] - top)
    left[0], left[leader] = left[leader], left[0]
    for j in range(1, m):
        k = min(j + int(u[1 + j] * (n - j)), n - 1)
        left[j], left[k] = left[k], left[j]
    return m


@jit()
def draw_size_exact(s, w, f, sizes, u):
    """Draw a size with the weight e_m(e^{s/m}) of all subsets of that size.  ``s`` must be descending.  O(N^3)."""
    n = len(s)
    for m in range(1, n + 1):
        sizes[m - 1] = forward_table(s, m, w, f)
    total = 0.0
    top = sizes[:n].max()
    for m in range(n):
        sizes[m] = math.exp(sizes[m] - top)
        total += sizes[m]
    m, mass = 1, sizes[0]
    while m < n and mass <= u * total:
        m += 1
        mass += sizes[m - 1]
    return m


@jit()
def draw_subset_exact(s, left, u, w, f, sizes, chosen):
    """Move a subset drawn with P(S) ~ e^{mean of s over S} to the front of ``left``; return its size.  O(N^3).

    Given the size, rows are drawn from the lowest score upward: with j to choose among the first i rows, all of i'+1..i
    are excluded with probability f_j(i') / f_j(i), so one uniform determines the next row.  Uses 1 + size uniforms.
    """
    n = len(left)
    left[:] = left[np.argsort(-s[left], kind="mergesort")]
    x = s[left]
    m = draw_size_exact(x, w, f, sizes, u[0])
    forward_table(x, m, w, f)
    i, j = n, m
    while j > 0:
        target = u[1 + m - j] * f[i, j]
        while i > j and f[i - 1, j] > target:
            i -= 1
        chosen[j - 1] = i - 1
        i, j = i - 1, j - 1
    for j in range(m):  # chosen rows are ascending, so no swap moves a later one
        left[j], left[chosen[j]] = left[chosen[j]], left[j]
    return m


@jit()
def draw_partitions(s, uniforms, exact, tier):
    """Fill each row of ``tier`` (draws, N) with an ordered partition; 2 N uniforms per draw suffice."""
    n = len(s)
    left, chosen = np.empty(n, np.int64), np.empty(n, np.int64)
    w, f, sizes = np.empty((n + 1, n + 2)), np.empty((n + 1, n + 2)), np.empty(n)
    for d in range(len(tier)):
        left[:] = np.arange(n)
        placed, used, k = 0, 0, 0
        while placed < n:
            u = uniforms[d, used:]
            if exact:
                m = draw_subset_exact(s, left[placed:], u, w, f, sizes, chosen)
            else:
                m = draw_subset_fd(s, left[placed:], u)
            for r in range(placed, placed + m):
                tier[d, left[r]] = k
            placed += m
            used += 1 + m
            k += 1
