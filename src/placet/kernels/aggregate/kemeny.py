"""Kernels for Kemeny orders: tables of pairwise wins, local search, triangle cuts and exact enumeration."""

import numpy as np

from placet.kernels.jit import jit


@jit()
def pair_wins(item, tier, offsets, weight, wins, ties):
    """Add the weight of ballots with i above j to wins[i, j], that of ties to ties[i, j] and ties[j, i].  O(pairs)."""
    for b in range(len(offsets) - 1):
        w = weight[b]
        for x in range(offsets[b], offsets[b + 1]):
            for y in range(x + 1, offsets[b + 1]):
                i, j = item[x], item[y]
                if tier[x] < tier[y]:
                    wins[i, j] += w
                else:
                    ties[i, j] += w
                    ties[j, i] += w


@jit()
def insertion_search(margin, order):
    """Improve ``order`` in place until moving any single item no longer helps; return the total gain.

    margin[i, j] = weight for i above j minus weight against (antisymmetric); an order's value is the sum of margin
    over pairs with i above j.  One pass in each direction finds an item's best place, so a sweep is O(n^2).
    """
    n = len(order)
    gained = 0.0
    improved = True
    while improved:
        improved = False
        for k in range(n):
            # after a move, another item may be at place k; a sweep without any move has tried every item
            i = order[k]
            best, target = 0.0, k
            gain = 0.0
            for p in range(k - 1, -1, -1):
                gain += 2.0 * margin[i, order[p]]
                if gain > best:
                    best, target = gain, p
            gain = 0.0
            for p in range(k + 1, n):
                gain -= 2.0 * margin[i, order[p]]
                if gain > best:
                    best, target = gain, p
            if best > 1e-9 * (1.0 + abs(margin[i, order[target]])):
                step = 1 if target > k else -1
                for p in range(k, target, step):
                    order[p] = order[p + step]
                order[target] = i
                gained += best
                improved = True
    return gained


@jit()
def restarts(margin, order, swaps, best):
    """Iterated local search: perturb the best order by random swaps (rows of ``swaps``), then run insertion search.

    ``best`` (n,) holds the best order found; returns its improvement over the first local optimum.
    """
    total, ahead = 0.0, 0.0
    for r in range(len(swaps)):
        order[:] = best
        change = 0.0
        for c in range(0, swaps.shape[1], 2):
            p, q = swaps[r, c], swaps[r, c + 1]
            if p > q:
                p, q = q, p
            if p == q:
                continue
            i, j = order[p], order[q]
            change -= 2.0 * margin[i, j]
            for t in range(p + 1, q):
                change += 2.0 * (margin[order[t], i] - margin[order[t], j])
            order[p], order[q] = j, i
        ahead = change + insertion_search(margin, order)
        if ahead > 1e-9:
            total += ahead
            best[:] = order
    return total


@jit()
def violated_triangles(x, threshold, most, found):
    """Find triangles i < j < k with x_ij + x_jk - x_ik outside [0, 1] by more than ``threshold``.

    x (n, n) holds x_ij for i above j.  Writes rows (i, j, k, side) to ``found``, at most ``most`` for each i, and
    returns their number.  O(n^3).
    """
    n = len(x)
    count = 0
    for i in range(n):
        kept = 0
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                cycle = x[i, j] + x[j, k] - x[i, k]
                if cycle > 1.0 + threshold or cycle < -threshold:
                    if count >= len(found) or kept >= most:
                        break
                    found[count, 0], found[count, 1], found[count, 2] = i, j, k
                    found[count, 3] = 1 if cycle > 1.0 else 0
                    count += 1
                    kept += 1
    return count


@jit()
def footrule_costs(item, place, weight, ballot, cost):
    """Add weight times abs(p + 1 - place) of each row to cost[i, p].  O(rows x n)."""
    n = cost.shape[1]
    for r in range(len(item)):
        w, x, i = weight[ballot[r]], place[r], item[r]
        for p in range(n):
            cost[i, p] += w * abs(p + 1 - x)


@jit()
def best_orders(margin, score, close, above, order):
    """Find all orders of minimal loss by dynamic programming over sets of top items; return that loss and their number.

    An order loses margin[i, j] for each pair with margin[i, j] > 0 in which it puts j above i.  Among the minimal
    orders, those are selected whose item scores (``score`` (n,)), read from the top, are lexicographically largest:
    above[i, j] is set if i is above j in any of them, and ``order`` is one of them.  Losses and scores within ``close``
    count as equal.  O(2^n n^2) time and 2^n n numbers of memory, n <= 16.
    """
    n = len(margin)
    full = (1 << n) - 1
    least, count, sizes = np.empty(full + 1), np.empty(full + 1), np.empty(full + 1, np.int64)
    last = np.empty((full + 1, n))  # least loss of an order of the set s that puts i last; infinite if i is not in s
    ends = np.empty(full + 1, np.int8)  # sets of top items of some minimal order
    kept = np.empty(full + 1, np.int8)  # those of them with the largest scores so far
    for s in range(full + 1):
        least[s], count[s], sizes[s], ends[s], kept[s] = np.inf, 0.0, 0, 0, 0
    least[0], count[0], ends[full], kept[0] = 0.0, 1.0, 1, 1
    for s in range(1, full + 1):
        sizes[s] = sizes[s >> 1] + (s & 1)
        for i in range(n):
            last[s, i] = np.inf
            if s >> i & 1:
                loss = least[s ^ (1 << i)]
                for j in range(n):
                    if s >> j & 1 and margin[i, j] > 0:
                        loss += margin[i, j]
                last[s, i] = loss
                least[s] = min(least[s], loss)
        for i in range(n):
            if last[s, i] <= least[s] + close:
                count[s] += count[s ^ (1 << i)]
    for s in range(full, 0, -1):
        if ends[s]:
            for i in range(n):
                if last[s, i] <= least[s] + close:
                    ends[s ^ (1 << i)] = 1
    largest = np.empty(n)
    for size in range(n):
        largest[size] = -np.inf
        for mark in range(2):  # first find the largest next score, then mark the sets that attain it
            for s in range(full + 1):
                if kept[s] and sizes[s] == size:
                    for i in range(n):
                        t = s | (1 << i)
                        if t != s and ends[t] and last[t, i] <= least[t] + close:
                            if mark == 0:
                                largest[size] = max(largest[size], score[i])
                            elif score[i] >= largest[size] - close:
                                kept[t] = 1
    for s in range(full):
        ends[s] = 0
    for s in range(full, 0, -1):  # backward pass: not every marked set extends to a complete order
        if ends[s]:
            for i in range(n):
                t = s ^ (1 << i)
                if last[s, i] <= least[s] + close and kept[t] and score[i] >= largest[sizes[t]] - close:
                    ends[t] = 1
                    for j in range(n):
                        if t >> j & 1:
                            above[j, i] = True
    s = full
    while s:  # read off one selected order, from the last item
        for i in range(n):
            t = s ^ (1 << i)
            if ends[t] and last[s, i] <= least[s] + close and kept[t] and score[i] >= largest[sizes[t]] - close:
                order[sizes[t]] = i
                s = t
                break
    return least[full], count[full]


@jit()
def count_matchings(allowed):
    """Number of ways to assign each row a distinct allowed column.  O(2^n n)."""
    n = len(allowed)
    ways = np.zeros(1 << n)
    ways[0] = 1.0
    for s in range(1 << n):
        if ways[s] > 0:
            row, rest = 0, s
            while rest:
                row += rest & 1
                rest >>= 1
            if row < n:
                for column in range(n):
                    if allowed[row, column] and not s >> column & 1:
                        ways[s | (1 << column)] += ways[s]
    return ways[-1]
