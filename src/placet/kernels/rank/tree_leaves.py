"""Regression trees stored as arrays: the leaf that each row reaches, and each feature's contribution."""

import numpy as np

from placet.kernels.jit import jit

ZERO = float(np.float32(1e-35))  # LightGBM treats absolute values up to this as 0
ROWS_TOGETHER = 32  # rows that go down a tree together: their features stay in the first cache
DEFAULT_LEFT, ZERO_IS_MISSING, NAN_IS_MISSING, CATEGORY, PLAIN = 1, 2, 4, 8, 16


@jit()
def goes_left(x, threshold, how, bounds, bits):
    """Whether a value goes to the left child of a node, by LightGBM's rules.

    ``how`` is a sum of the constants above.  A category goes left if its bit is set in ``bits``, from
    ``bounds[threshold]`` to ``bounds[threshold + 1]``.  NaN counts as 0 unless NaN denotes a missing value.  A PLAIN
    split has no such rules: values up to the threshold go left.
    """
    if how == PLAIN:
        return x <= threshold
    if how & CATEGORY:
        if np.isnan(x) or x <= -1.0 or x >= 2147483648.0:
            return False
        k = int(threshold)
        word = bounds[k] + int(x) // 32
        return word < bounds[k + 1] and (bits[word] >> np.uint32(int(x) % 32)) & np.uint32(1) == np.uint32(1)
    if -ZERO <= x <= ZERO or (np.isnan(x) and not how & NAN_IS_MISSING):
        x = 0.0
    if (how & ZERO_IS_MISSING and x == 0.0) or (how & NAN_IS_MISSING and np.isnan(x)):
        return how & DEFAULT_LEFT != 0
    return x <= threshold


@jit()
def find_leaves(X, root, depth, compares, code, threshold, child, how, bounds, bits, node):
    """Set ``node`` (rows,) to the leaf of one tree that each row reaches.

    The right child of a node follows the left one, ``child[node]``; a leaf is its own child, and its threshold is
    infinite.  ``code`` is twice the column of a split, plus 1 if NaN goes right.  If a tree only compares, all rows go
    down one level together, without a branch or a signed index: there is no jump to foresee and no row to wait for.
    """
    for i in range(len(node)):
        node[i] = root
    if compares:
        for _ in range(depth):
            for i in range(len(node)):
                k = node[i]
                x = X[np.uint64(i), code[k] >> np.uint32(1)]
                nan_right = (x != x) & ((code[k] & np.uint32(1)) != 0)
                node[i] = child[k] + np.uint32((x > threshold[k]) | nan_right)
    else:
        for i in range(len(node)):
            while child[node[i]] != node[i]:
                k = node[i]
                left = goes_left(X[i, code[k] >> np.uint32(1)], threshold[k], how[k], bounds, bits)
                node[i] = child[k] + np.uint32(not left)


@jit()
def add_leaf_values(X, roots, depth, compares, code, threshold, child, how, value, bounds, bits, out):
    """Add the leaf values of all trees, in order, to ``out`` (rows,).  O(rows trees depth)."""
    node = np.empty(ROWS_TOGETHER, np.uint32)
    for a in range(0, len(X), ROWS_TOGETHER):
        own = node[: min(ROWS_TOGETHER, len(X) - a)]
        for t in range(len(roots)):
            find_leaves(X[a:], roots[t], depth[t], compares[t], code, threshold, child, how, bounds, bits, own)
            for i in range(len(own)):
                out[a + i] += value[own[i]]


@jit()
def add_rows_of_leaves(X, roots, depth, compares, code, threshold, child, how, bounds, bits, count):
    """For each row and tree, add 1 to ``count`` (nodes,) at the leaf reached.  O(rows trees depth)."""
    node = np.empty(len(X), np.uint32)
    for t in range(len(roots)):
        find_leaves(X, roots[t], depth[t], compares[t], code, threshold, child, how, bounds, bits, node)
        for i in range(len(node)):
            count[node[i]] += 1


@jit()
def add_shapley_values(x, feature, threshold, left, right, how, value, count, parent, bounds, bits, out):
    """Add the Shapley values of the features of one row ``x`` to ``out`` (features,).

    The value of a set S of features at a leaf is v prod_{f in S} o_f prod_{f not in S} z_f: o_f is 1 if the row passes
    all splits of f on the path to the leaf, else 0; z_f is the share of training rows that do.  The Shapley values have
    a closed form in the coefficients of prod_g (z_g + o_g t).  O(leaves depth^3).
    """
    path = np.empty(len(feature), np.int64)  # distinct features on the path to the leaf
    zero, one = np.empty(len(feature)), np.empty(len(feature))
    for leaf in range(len(feature)):
        if feature[leaf] >= 0:
            continue
        n, node = 0, leaf
        while parent[node] >= 0:
            above = parent[node]
            f, k = feature[above], 0
            while k < n and path[k] != f:
                k += 1
            if k == n:
                path[k], zero[k], one[k] = f, 1.0, 1.0
                n += 1
            zero[k] *= count[node] / count[above]
            if goes_left(x[f], threshold[above], how[above], bounds, bits) != (left[above] == node):
                one[k] = 0.0
            node = above
        ways = np.empty(n)  # ways[m] = sum over sets of m features without k of the products above
        for k in range(n):
            ways[:], ways[0], m = 0.0, 1.0, 0
            for g in range(n):
                if g != k:
                    m += 1
                    for size in range(m, 0, -1):
                        ways[size] = ways[size] * zero[g] + ways[size - 1] * one[g]
                    ways[0] *= zero[g]
            total, chance = 0.0, 1.0 / n  # m! (n - m - 1)! / n!
            for size in range(n):
                total += chance * ways[size]
                chance *= (size + 1.0) / max(n - size - 1.0, 1.0)
            out[path[k]] += value[leaf] * (one[k] - zero[k]) * total
