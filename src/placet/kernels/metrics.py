"""Kernels for metrics that need a recurrence; the others use NumPy.

Arrays are filled by loops, because Numba takes seconds to compile an assignment to a slice.
"""

import numpy as np

from placet.kernels.jit import jit


@jit()
def cascade(stop_prob, start, stop, list_of, offsets, discount, out):
    """Expected discount at the place where a reader going down the list stops, averaged over all orders of tied rows.

    Without ties: sum_i discount_i R_i prod_{j<i} (1 - R_j), R = ``stop_prob`` (rows,) in ranked order.  Blocks of tied
    rows ``start[b]:stop[b]`` belong to list ``list_of[b]``.  The probability of still reading after t rows of a block
    is the mean over t-subsets of prod (1 - R), an elementary symmetric polynomial divided by its binomial:
    E_t <- ((n + 1 - t) E_t + t (1 - R) E_{t-1}) / (n + 1) for the (n+1)-th row; convex combinations, so nothing
    cancels. E_t <= E_1^t (Maclaurin), so places where that is below 1e-18 are skipped.  Adds to ``out`` (lists,).
    O(rows) without ties; for a block of m rows O(m) if every R is 0 or 1, else O(m min(m, places, 42/mean R)).
    """
    places = len(discount)
    reading = 1.0
    current = -1
    longest = 1
    for b in range(len(start)):
        longest = max(longest, min(stop[b] - start[b], places))
    e = np.empty(longest + 1)
    for b in range(len(start)):
        q = list_of[b]
        if q != current:
            current = q
            reading = 1.0
        before = start[b] - offsets[q]
        if before >= places or reading == 0.0:
            continue
        if stop[b] - start[b] == 1:
            r = stop_prob[start[b]]
            out[q] += discount[before] * reading * r
            reading *= 1.0 - r
            continue
        m = stop[b] - start[b]
        depth = min(m, places - before)
        total, certain = 0.0, 0
        for row in range(start[b], stop[b]):
            total += stop_prob[row]
            certain += stop_prob[row] == 1.0
        if total >= m:
            depth = 1
        elif total > 0.0:
            depth = min(depth, int(42.0 / -np.log1p(-total / m)) + 1)
        e[0] = 1.0
        if total == certain:
            for t in range(depth):
                e[t + 1] = e[t] * max(m - certain - t, 0) / (m - t)
        else:
            for t in range(1, depth + 1):
                e[t] = 0.0
            for n in range(m):
                rest = 1.0 - stop_prob[start[b] + n]
                for t in range(min(n + 1, depth), 0, -1):
                    e[t] = ((n + 1 - t) * e[t] + t * rest * e[t - 1]) / (n + 1)
        for t in range(depth):
            out[q] += discount[before + t] * reading * (e[t] - e[t + 1])
        reading *= e[depth]


@jit()
def greedy_alpha_dcg(judged, offsets, alpha, discount, out):
    """alpha-DCG of the greedy ideal order: at each place the row with the largest gain sum_t J_t (1 - alpha)^(seen_t).

    Among equal gains the row with the lexicographically largest judgments goes first, so row order does not matter.
    ``judged`` (rows, subtopics) holds 0 and 1.  O(places rows subtopics).
    """
    n_topics = judged.shape[1]
    worth = np.empty(n_topics)
    for q in range(len(offsets) - 1):
        lo, hi = offsets[q], offsets[q + 1]
        free = np.ones(hi - lo, np.bool_)
        for t in range(n_topics):
            worth[t] = 1.0
        for place in range(min(hi - lo, len(discount))):
            best, best_gain = -1, 0.0
            for row in range(lo, hi):
                if not free[row - lo]:
                    continue
                gain = 0.0
                for t in range(n_topics):
                    if judged[row, t]:
                        gain += worth[t]
                better = gain > best_gain
                if best >= 0 and gain == best_gain:
                    for t in range(n_topics):
                        if judged[row, t] != judged[best, t]:
                            better = judged[row, t] > judged[best, t]
                            break
                if better:
                    best, best_gain = row, gain
            if best < 0:
                break
            free[best - lo] = False
            out[q] += discount[place] * best_gain
            for t in range(n_topics):
                if judged[best, t]:
                    worth[t] *= 1.0 - alpha


@jit()
def inversions(x, offsets, out):
    """out[q] += number of pairs a < b in list q with x[a] < x[b], by merging.  Overwrites ``x``.  O(rows log rows)."""
    spare = np.empty(len(x))
    for q in range(len(offsets) - 1):
        lo, hi = offsets[q], offsets[q + 1]
        width = 1
        while width < hi - lo:
            for a in range(lo, hi, 2 * width):
                mid, b = min(a + width, hi), min(a + 2 * width, hi)
                i, j, p = a, mid, a
                while i < mid and j < b:
                    if x[i] < x[j]:
                        out[q] += mid - i
                        spare[p] = x[j]
                        j += 1
                    else:
                        spare[p] = x[i]
                        i += 1
                    p += 1
                while i < mid:
                    spare[p] = x[i]
                    i += 1
                    p += 1
                while j < b:
                    spare[p] = x[j]
                    j += 1
                    p += 1
            for i in range(lo, hi):
                x[i] = spare[i]
            width *= 2


@jit()
def overlap(first_a, last_a, first_b, last_b, offsets, p, depth, out):
    """Expected extrapolated rank-biased overlap of two rankings of the same rows, over all orders of tied rows.

    A row whose block occupies places first+1 .. last is among the first d with probability c(d) = (d - first)/(last -
    first), clipped to [0, 1]; the expected overlap is X_d = sum_rows c_a(d) c_b(d), and the value is X_D/D p^D +
    (1-p)/p sum_{d<=D} X_d/d p^d. O(rows x longest block).
    """
    for q in range(len(offsets) - 1):
        lo, hi = offsets[q], offsets[q + 1]
        deep = min(depth, hi - lo)
        x = np.zeros(deep + 2)  # x[d] is first X_d - X_{d-1}, then X_d
        for row in range(lo, hi):
            fa, la, fb, lb = first_a[row], last_a[row], first_b[row], last_b[row]
            had = 0.0
            for d in range(max(fa, fb) + 1, min(max(la, lb), deep) + 1):
                ca = 1.0 if d >= la else (d - fa) / (la - fa)
                cb = 1.0 if d >= lb else (d - fb) / (lb - fb)
                x[d] += ca * cb - had
                had = ca * cb
        total, share, power = 0.0, 0.0, 1.0
        for d in range(1, deep + 1):
            x[d] += x[d - 1]
            share = x[d] / d
            power *= p
            total += share * power
        out[q] = share * power + (1.0 - p) / p * total
