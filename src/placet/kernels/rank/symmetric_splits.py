"""Symmetric regression trees: one split for all leaves of a level, found from histograms of binned features."""

import numpy as np

from placet.kernels.jit import jit

LEAST = 1e-12  # smallest denominator of a step


@jit()
def step(G, H, l2, low, high):
    """The value of a leaf with the gradient ``G`` and the curvature ``H``: -G / (H + l2), between its bounds."""
    return min(max(-G / max(H + l2, LEAST), low), high)


@jit()
def descent(G, H, l2, v):
    """Twice the descent of the loss that the value ``v`` of a leaf promises."""
    return -v * (2.0 * G + (H + l2) * v)


@jit()
def fill_histograms(code, columns, rows, g, h, start, middle, stop, fresh, out):
    """Histograms ``out`` (columns, leaves, 3, bins) of gradient, curvature and number of rows.

    ``rows``, ``g`` and ``h`` are in order of leaves.  Leaf j has been divided at ``middle[j]`` if it lies between
    ``start[j]`` and ``stop[j]``; its right part is leaf j + ``fresh``, and its histogram, that of both parts, becomes
    that of the left part.  Only the smaller part is counted; the rest is the difference.  With ``fresh`` 0, leaf 0 is
    counted as a whole.  O(rows columns).
    """
    for k in range(len(columns)):
        own = code[columns[k]]
        for j in range(max(fresh, 1)):
            if fresh and not start[j] < middle[j] < stop[j]:
                continue
            small_left = not fresh or middle[j] - start[j] < stop[j] - middle[j]
            a, b = (start[j], middle[j]) if small_left else (middle[j], stop[j])
            counted = out[k, j + fresh]
            counted[:] = 0.0
            for i in range(a, b):
                m = own[rows[i]]
                counted[0, m] += g[i]
                counted[1, m] += h[i]
                counted[2, m] += 1.0
            if fresh:
                left = out[k, j]
                for c in range(3):
                    for m in range(left.shape[1]):
                        rest = left[c, m] - counted[c, m]
                        if small_left:
                            left[c, m], counted[c, m] = counted[c, m], rest
                        else:
                            left[c, m] = rest


@jit()
def best_split(counts, n_bins, sign, G, H, N, low, high, l2, min_rows):
    """The column, the bin and the gain of the best split of all leaves; rows in bins up to that bin go left.

    ``counts`` (columns, leaves, 3, bins) are histograms; ``G``, ``H`` and ``N`` (leaves,) their sums, ``low`` and
    ``high`` bounds of values.  A leaf of which a part would have less than ``min_rows`` rows, or the wrong order of
    values by ``sign`` (columns,), is left whole and gains nothing.  O(columns leaves bins).
    """
    best_k, best_bin, best_gain = -1, 0, 0.0
    gains = np.empty(counts.shape[3])
    for k in range(len(n_bins)):
        gains[:] = 0.0
        for j in range(len(G)):
            if N[j] < 2.0 * min_rows:
                continue
            whole = descent(G[j], H[j], l2, step(G[j], H[j], l2, low[j], high[j]))
            g, h, n, gain = 0.0, 0.0, 0.0, 0.0
            for m in range(n_bins[k] - 1):
                if counts[k, j, 2, m] > 0.0:
                    g += counts[k, j, 0, m]
                    h += counts[k, j, 1, m]
                    n += counts[k, j, 2, m]
                    if N[j] - n < max(min_rows, 1.0):
                        break
                    v = step(g, h, l2, low[j], high[j])
                    w = step(G[j] - g, H[j] - h, l2, low[j], high[j])
                    gain = 0.0
                    if n >= min_rows and sign[k] * (w - v) >= 0.0:
                        gain = descent(g, h, l2, v) + descent(G[j] - g, H[j] - h, l2, w) - whole
                gains[m] += gain
        for m in range(n_bins[k] - 1):
            if gains[m] > best_gain:
                best_k, best_bin, best_gain = k, m, gains[m]
    return best_k, best_bin, best_gain


@jit()
def divide(counts, own, last, sign, rows, g, h, start, middle, stop, G, H, N, low, high, l2, min_rows, fresh, divided):
    """Divide every leaf that can be divided; its right part becomes leaf j + ``fresh``, and ``divided[j]`` true.

    ``counts`` (leaves, 3, bins) and ``own`` (rows,) are the histograms and the bins of the column; rows in bins up to
    ``last`` go left.  A monotone split bounds the values of both parts by the mean of their steps.  O(rows).
    """
    buffer, buffer_g, buffer_h = np.empty_like(rows), np.empty_like(g), np.empty_like(h)
    for j in range(fresh):
        left = np.zeros(3)
        for m in range(last + 1):
            left += counts[j, :, m]
        v = step(left[0], left[1], l2, low[j], high[j])
        w = step(G[j] - left[0], H[j] - left[1], l2, low[j], high[j])
        least = max(min_rows, 1.0)
        middle[j] = stop[j]
        divided[j] = left[2] >= least and N[j] - left[2] >= least and sign * (w - v) >= 0.0
        right = j + fresh
        start[right] = stop[right] = stop[j]
        G[right], H[right], N[right], low[right], high[right] = 0.0, 0.0, 0.0, low[j], high[j]
        if not divided[j]:
            continue
        a, n_right = 0, 0
        for i in range(start[j], stop[j]):
            if own[rows[i]] <= last:
                at = start[j] + a
                rows[at], g[at], h[at] = rows[i], g[i], h[i]
                a += 1
            else:
                buffer[n_right], buffer_g[n_right], buffer_h[n_right] = rows[i], g[i], h[i]
                n_right += 1
        middle[j] = start[j] + a
        for i in range(n_right):
            at = middle[j] + i
            rows[at], g[at], h[at] = buffer[i], buffer_g[i], buffer_h[i]
        G[right], H[right], N[right] = G[j] - left[0], H[j] - left[1], N[j] - left[2]
        G[j], H[j], N[j] = left[0], left[1], left[2]
        if sign > 0.0:
            high[j] = low[right] = (v + w) / 2.0
        elif sign < 0.0:
            low[j] = high[right] = (v + w) / 2.0


@jit()
def add_values(code, columns, last, divided, value, out):
    """Add to ``out`` (rows,) the value of the leaf of each row.  O(rows splits)."""
    for i in range(len(out)):
        leaf = 0
        for k in range(len(columns)):
            if divided[k, leaf] and code[columns[k], i] > last[k]:
                leaf += 1 << k
        out[i] += value[leaf]
