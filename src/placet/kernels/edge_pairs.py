"""Sums of log(1 + e^a_e + e^b_f) over all pairs of two columns, with their derivatives, in O(E) memory.

Few pairs are added one by one.  For many the two columns meet at Chebyshev nodes instead: as a function of a, and of b,
the term is analytic up to i pi from the real line, so on cells of width 4 the interpolation error falls as 3.43^-n and
30 nodes reach rounding.  Every value passes its weight to the nodes of its cell (Chebyshev moments), the nodes of the
cells are paired, and the sums at the nodes are read back at the values: O(30 E + nodes^2) instead of O(E^2).
"""

import numpy as np

from placet.kernels.bregman import max_abs
from placet.kernels.jit import jit

# With exponents within this bound 1 + e^a + e^b and the product of three of them are numbers.
PLAIN = 200.0
# Below this e^a is nothing beside 1.
NOTHING = -45.0
WIDTH = 4.0
NODES = 30
# Measured in plain pairs: a pair of nodes has a logarithm of its own; an edge meets the nodes of its cell four times.
NODE_PAIR_COST = 6.0
EDGE_COST = 4.0 * NODES


@jit()
def pair_term(a, b):
    """log(1 + e^a + e^b) and its derivatives in a and b, at any size of a and b."""
    top = max(0.0, max(a, b))
    ea, eb = np.exp(a - top), np.exp(b - top)
    total = np.exp(-top) + ea + eb
    return top + np.log(total), ea / total, eb / total


@jit()
def add_pair(a, b, e, f, ga, gb):
    """log(1 + e^a_e + e^b_f); its derivatives are added to ga_e and gb_f."""
    value, pa, pb = pair_term(a[e], b[f])
    ga[e] += pa
    gb[f] += pb
    return value


@jit(fastmath={"reassoc", "contract"})
def plain_sums(a, b, ga, gb):
    """As ``all_pairs`` where no exponent is beyond ``PLAIN``: a division per pair, a logarithm per block of them."""
    n = len(a)
    eb = np.empty(n)
    for f in range(n):
        eb[f] = np.exp(b[f])
    block = max(1, int(700.0 / (max(max_abs(a), max_abs(b)) + 1.1)))  # (1 + e^a + e^b)^block is a number
    value = 0.0
    for e in range(n):
        ea = np.exp(a[e])
        row = 0.0
        for start in range(0, n, block):
            product = 1.0
            for f in range(start, min(start + block, n)):
                z = 1.0 + ea + eb[f]
                product *= z
                t = 1.0 / z
                row += t
                gb[f] += t
            value += np.log(product)
        ga[e] = ea * row
    for f in range(n):
        gb[f] *= eb[f]
    return value


@jit()
def chebyshev(n):
    """(n, n) table of T_j at the n nodes cos(pi (k + 1/2) / n): row j, column k."""
    table = np.empty((n, n))
    for j in range(n):
        for k in range(n):
            table[j, k] = np.cos(np.pi * j * (k + 0.5) / n)
    return table


@jit()
def to_nodes(x, low, n_cells, table):
    """(n_cells, NODES) weights: sum over the values of a cell of the node's Lagrange polynomial.  O(NODES E)."""
    moment = np.zeros((n_cells, NODES))
    for e in range(len(x)):
        cell = min(int((max(x[e], NOTHING) - low) / WIDTH), n_cells - 1)
        u = 2.0 * (max(x[e], NOTHING) - low - cell * WIDTH) / WIDTH - 1.0
        before, now = 1.0, u
        moment[cell, 0] += 0.5
        for j in range(1, NODES):
            moment[cell, j] += now
            before, now = now, 2.0 * u * now - before
    weight = np.zeros((n_cells, NODES))
    for cell in range(n_cells):
        for j in range(NODES):
            for k in range(NODES):
                weight[cell, k] += 2.0 / NODES * moment[cell, j] * table[j, k]
    return weight


@jit()
def from_nodes(at_nodes, x, low, table, out):
    """Interpolated values at x of the function known at the nodes of every cell.  O(NODES E)."""
    n_cells = len(at_nodes)
    coefficient = np.zeros((n_cells, NODES))
    for cell in range(n_cells):
        for j in range(NODES):
            for k in range(NODES):
                coefficient[cell, j] += (2.0 if j > 0 else 1.0) / NODES * at_nodes[cell, k] * table[j, k]
    for e in range(len(x)):
        cell = min(int((max(x[e], NOTHING) - low) / WIDTH), n_cells - 1)
        u = 2.0 * (max(x[e], NOTHING) - low - cell * WIDTH) / WIDTH - 1.0
        first = second = 0.0
        for j in range(NODES - 1, 0, -1):
            first, second = 2.0 * u * first - second + coefficient[cell, j], first
        out[e] = max(u * first - second + coefficient[cell, 0], 0.0)


@jit()
def cells(x):
    """Lower end and number of the cells that cover the values (what is below ``NOTHING`` counts as that)."""
    low, high = np.inf, -np.inf
    for e in range(len(x)):
        low, high = min(low, x[e]), max(high, x[e])
    low, high = max(low, NOTHING), max(high, NOTHING)
    return low, int((high - low) / WIDTH) + 1


@jit()
def node_sums(a, b, ga, gb):
    """As ``all_pairs``, through Chebyshev nodes, to rounding of the largest sums.  O(NODES E + (NODES cells)^2)."""
    table = chebyshev(NODES)
    low_a, n_a = cells(a)
    low_b, n_b = cells(b)
    wa, wb = to_nodes(a, low_a, n_a, table), to_nodes(b, low_b, n_b, table)
    sum_a, sum_b = np.zeros((n_a, NODES)), np.zeros((n_b, NODES))
    eb = np.empty((n_b, NODES))
    for cell in range(n_b):
        for k in range(NODES):
            eb[cell, k] = np.exp(low_b + (cell + 0.5 * (table[1, k] + 1.0)) * WIDTH)
    value = 0.0
    for cell in range(n_a):
        for k in range(NODES):
            ea = np.exp(low_a + (cell + 0.5 * (table[1, k] + 1.0)) * WIDTH)
            for other in range(n_b):
                for m in range(NODES):
                    z = 1.0 + ea + eb[other, m]
                    value += wa[cell, k] * wb[other, m] * np.log(z)
                    sum_a[cell, k] += ea / z * wb[other, m]
                    sum_b[other, m] += eb[other, m] / z * wa[cell, k]
    from_nodes(sum_a, a, low_a, table, ga)
    from_nodes(sum_b, b, low_b, table, gb)
    return value


@jit()
def all_pairs(a, b, ga, gb):
    """sum over e, f of log(1 + e^a_e + e^b_f); derivatives go to the zeros in ``ga``, ``gb``.  O(E^2); many: O(E)."""
    n = len(a)
    if max(max_abs(a), max_abs(b)) <= PLAIN:
        through_nodes = NODE_PAIR_COST * cells(a)[1] * cells(b)[1] * NODES * NODES + EDGE_COST * n
        return node_sums(a, b, ga, gb) if through_nodes < float(n) * n else plain_sums(a, b, ga, gb)
    value = 0.0
    for e in range(n):
        for f in range(n):
            value += add_pair(a, b, e, f, ga, gb)
    return value
