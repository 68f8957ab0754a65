"""Election kernels: widest paths, locking of ranked pairs, tallies of first choices, transfers of votes."""

import numpy as np

from placet.kernels.jit import jit

HOPEFUL = 0
"""Status of an item that is neither elected nor eliminated; all other statuses are larger."""


@jit()
def widest_paths(strength):
    """Replace strength[i, j] by that of the widest path from i to j: max over paths of the least strength.  O(n^3)."""
    n = len(strength)
    for k in range(n):
        for i in range(n):
            first = strength[i, k]
            if i == k or first == 0:
                continue
            for j in range(n):
                strength[i, j] = max(strength[i, j], min(first, strength[k, j]))


@jit()
def lock(i, j, reach):
    """Add i above j to the transitive relation ``reach``.  O(n^2)."""
    n = len(reach)
    for a in range(n):
        if (a == i or reach[a, i]) and not reach[a, j]:
            reach[a, j] = True
            for b in range(n):
                if reach[j, b]:
                    reach[a, b] = True


@jit()
def components(edge):
    """Label each node of a graph edge[i, j] by its strongly connected component.  Two depth-first searches, O(n^2)."""
    n = len(edge)
    order, visited = np.empty(n, np.int64), np.zeros(n, np.bool_)
    stack, place = np.empty(n, np.int64), np.zeros(n, np.int64)
    count = 0
    for root in range(n):
        if visited[root]:
            continue
        depth, stack[0], visited[root] = 1, root, True
        while depth:
            a = stack[depth - 1]
            b = place[a]
            while b < n and (visited[b] or not edge[a, b]):
                b += 1
            place[a] = b
            if b < n:
                visited[b], stack[depth] = True, b
                depth += 1
            else:
                order[count] = a
                count += 1
                depth -= 1
    label = np.full(n, -1, np.int64)
    group = 0
    for k in range(n - 1, -1, -1):
        if label[order[k]] >= 0:
            continue
        depth, stack[0], label[order[k]] = 1, order[k], group
        while depth:
            depth -= 1
            a = stack[depth]
            for b in range(n):
                if edge[b, a] and label[b] < 0:
                    label[b], stack[depth] = group, b
                    depth += 1
        group += 1
    return label


@jit()
def settle(over, under, pairs, reach):
    """Among equally strong ``pairs``, lock those that are locked however ties between them are broken.

    Pairs that ``reach`` implies or contradicts are dropped; pairs on no cycle of locked pairs and pairs of this
    strength are locked.  The others are moved to the front of ``pairs``; returns their number.  O(k^2), k the number
    of items in the pairs.
    """
    n, count = len(reach), 0
    for p in pairs:
        if not reach[over[p], under[p]] and not reach[under[p], over[p]]:
            pairs[count] = p
            count += 1
    if count == 0:
        return 0
    if count == 1:
        lock(over[pairs[0]], under[pairs[0]], reach)
        return 0
    local, items = np.full(n, -1, np.int64), np.empty(min(n, 2 * count), np.int64)
    size = 0
    for k in range(count):
        for item in (over[pairs[k]], under[pairs[k]]):
            if local[item] < 0:
                local[item], items[size] = size, item
                size += 1
    edge = np.zeros((size, size), np.bool_)
    for a in range(size):
        for b in range(size):
            edge[a, b] = reach[items[a], items[b]]
    for k in range(count):
        edge[local[over[pairs[k]]], local[under[pairs[k]]]] = True
    label = components(edge)
    cyclic = 0
    for k in range(count):
        p = pairs[k]
        if label[local[over[p]]] == label[local[under[p]]]:
            pairs[cyclic] = p
            cyclic += 1
        else:
            lock(over[p], under[p], reach)
    return cyclic


@jit()
def lock_classes(over, under, bounds, start, drop, pairs, reach):
    """Lock classes of equally strong pairs, strongest first, from class ``start`` on.

    Class c is over, under [bounds[c]:bounds[c + 1]].  Stops at the first class where a choice must be made, with the
    pairs in question at the front of ``pairs``, and returns (class, their number); with ``drop``, skips such pairs.
    """
    for c in range(start, len(bounds) - 1):
        count = 0
        for p in range(bounds[c], bounds[c + 1]):
            i, j = over[p], under[p]
            if not reach[i, j] and not reach[j, i]:
                pairs[count] = p
                count += 1
        if count == 0:
            continue
        left = settle(over, under, pairs[:count], reach)
        if left and not drop:
            return c, left
    return len(bounds) - 1, 0


@jit()
def first_choices(item, tier, offsets, weight, standing, votes):
    """Split each ballot's weight equally among the ``standing`` items of its best tier that has any; add to ``votes``.

    Returns the total weight of ballots without a standing item.  O(rows).
    """
    exhausted = 0.0
    for b in range(len(weight)):
        row, end = offsets[b], offsets[b + 1]
        found = 0
        while row < end and found == 0:
            stop = row
            while stop < end and tier[stop] == tier[row]:
                found += standing[item[stop]]
                stop += 1
            if found:
                for r in range(row, stop):
                    if standing[item[r]]:
                        votes[item[r]] += weight[b] / found
            row = stop
        if found == 0:
            exhausted += weight[b]
    return exhausted


@jit()
def transfer(item, tier, offsets, weight, status, giver, share, value):
    """On each ballot, move ``share`` of the weight held by ``giver`` to the best hopeful items; return the lost weight.

    value (rows,): the part of the ballot's weight held by the row's item.  O(rows).
    """
    lost = 0.0
    for b in range(len(weight)):
        moved, place = 0.0, -1
        for r in range(offsets[b], offsets[b + 1]):
            if item[r] == giver:
                moved = share * value[r]
                value[r] -= moved
                place = r
                break
        if place < 0 or moved == 0.0:
            continue
        row, end = offsets[b], offsets[b + 1]
        found = 0
        while row < end and found == 0:
            stop = row
            while stop < end and tier[stop] == tier[row]:
                found += status[item[stop]] == HOPEFUL
                stop += 1
            if found:
                for r in range(row, stop):
                    if status[item[r]] == HOPEFUL:
                        value[r] += moved / found
            row = stop
        if found == 0:
            lost += moved
    return lost


@jit()
def kept_votes(item, tier, offsets, weight, keep, nodes, node_weight, votes):
    """Add to ``votes`` what each item keeps of every ballot (Meek's method); return the excess that no item keeps.

    Empty ballots are ignored.

    An item keeps the fraction keep[i] of the weight that reaches it.  Ties are averaged over all orders of the tier:
    item i keeps keep_i times the integral over t in (0, 1) of prod over j != i of (1 - t keep_j).  O(rows), O(rows
    nodes) with ties.
    """
    excess = 0.0
    for b in range(len(weight)):
        left, row, end = weight[b], offsets[b], offsets[b + 1]
        while row < end and left > 0.0:
            stop, active, rest = row, 0, 1.0
            while stop < end and tier[stop] == tier[row]:
                if keep[item[stop]] > 0.0:
                    active += 1
                    rest *= 1.0 - keep[item[stop]]
                stop += 1
            if active == 1:
                for r in range(row, stop):
                    votes[item[r]] += left * keep[item[r]]
            elif active > 1:
                for k in range(len(nodes)):
                    product = 1.0
                    for r in range(row, stop):
                        product *= 1.0 - nodes[k] * keep[item[r]]
                    for r in range(row, stop):
                        kept = keep[item[r]]
                        votes[item[r]] += left * node_weight[k] * kept * product / (1.0 - nodes[k] * kept)
            left *= rest
            row = stop
        if end > offsets[b]:
            excess += left
    return excess
