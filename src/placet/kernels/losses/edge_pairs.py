"""Sums of log(1 + e^a_e + e^b_f) over all pairs of two columns, with their derivatives, in O(E) memory.

A small number of pairs is summed directly. Otherwise the values are grouped into cells of width 4. Where a and b are so
far apart that e^-|a - b| is negligible, the term is log(1 + e^max(a, b)) and the pairs of two cells reduce to a product
of counts. Near cells interact through Chebyshev nodes: as a function of a, and of b, the term is analytic up to i pi
from the real line, so the interpolation error falls as 3.43^-n and 30 nodes reach rounding. Every value spreads its
weight over the nodes of its cell (Chebyshev moments), the nodes of near cells are paired, and the sums at the nodes are
interpolated back to the values. A cell of at most 30 values uses them as its nodes. So the work is O(E log E) for a
and b of any size: each cell has at most 30 nodes and at most 23 near cells.
"""

import numpy as np

from placet.kernels.jit import jit
from placet.kernels.sums import max_abs

# With exponents within this bound, 1 + e^a + e^b and products of three such sums do not overflow.
PLAIN = 200.0
# Below this, e^a is negligible compared with 1.
NOTHING = -45.0
WIDTH = 4.0
NODES = 30
# Values of cells whose numbers differ by more than this are at least 44 apart.
REACH = 11.0
# In units of a plain pair: each pair of nodes needs its own logarithm; each edge visits its cell's nodes four times.
NODE_PAIR_COST = 15.0
EDGE_COST = 4.0 * NODES


@jit()
def pair_term(a, b):
    """log(1 + e^a + e^b) and its derivatives in a and b, for a and b of any size."""
    top = max(0.0, max(a, b))
    ea, eb = np.exp(a - top), np.exp(b - top)
    total = np.exp(-top) + ea + eb
    value = np.log1p(ea + eb) if top == 0.0 else top + np.log(total)
    return value, ea / total, eb / total


@jit()
def add_pair(a, b, e, f, ga, gb):
    """Return log(1 + e^a_e + e^b_f) and add its derivatives to ga_e and gb_f."""
    value, pa, pb = pair_term(a[e], b[f])
    ga[e] += pa
    gb[f] += pb
    return value


@jit(fastmath={"reassoc", "contract"})
def plain_sums(a, b, ga, gb):
    """``all_pairs`` for exponents up to ``PLAIN``: one division per pair, one logarithm per block of pairs."""
    n = len(a)
    eb = np.empty(n)
    for f in range(n):
        eb[f] = np.exp(b[f])
    block = max(1, int(700.0 / (max(max_abs(a), max_abs(b)) + 1.1)))  # (1 + e^a + e^b)^block does not overflow
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
def cell_number(x):
    """Number of the cell of width ``WIDTH`` that contains x; values below ``NOTHING`` count as ``NOTHING``."""
    return np.floor(max(x, NOTHING) / WIDTH)


@jit()
def place_in_cell(x, cell):
    """Position of x in the cell, from -1 at its lower end to 1 at its upper end."""
    return min(max(2.0 * (max(x, NOTHING) / WIDTH - cell) - 1.0, -1.0), 1.0)


@jit()
def order_by_cell(x):
    """Numbers of the values, grouped by cell in ascending order.  O(E), or O(E log E) if cells are far apart."""
    low, high = np.inf, -np.inf
    for e in range(len(x)):
        own = cell_number(x[e])
        low, high = min(low, own), max(high, own)
    if not high - low < 2.0 * len(x):
        return np.argsort(x)
    start = np.zeros(int(high - low) + 2, np.int64)
    for e in range(len(x)):
        start[int(cell_number(x[e]) - low) + 1] += 1
    for c in range(1, len(start)):
        start[c] += start[c - 1]
    order = np.empty(len(x), np.int64)
    for e in range(len(x)):
        c = int(cell_number(x[e]) - low)
        order[start[c]] = e
        start[c] += 1
    return order


@jit()
def cells(x, order):
    """Numbers (cells,) of the nonempty cells, ascending, and their bounds (cells + 1,) in ``order``."""
    number, bounds = np.empty(len(x)), np.empty(len(x) + 1, np.int64)
    n = 0
    for place in range(len(x)):
        own = cell_number(x[order[place]])
        if n == 0 or own != number[n - 1]:
            number[n], bounds[n] = own, place
            n += 1
    bounds[n] = len(x)
    return number[:n].copy(), bounds[: n + 1].copy()


@jit()
def points_of_cells(bounds):
    """Bounds (cells + 1,) of each cell's points: its values, or ``NODES`` nodes if it has more values than that."""
    out = np.zeros(len(bounds), np.int64)
    for c in range(len(bounds) - 1):
        out[c + 1] = out[c] + min(bounds[c + 1] - bounds[c], NODES)
    return out


@jit()
def near_cells(number, other):
    """For each cell of ``number``, the first and last + 1 of the near cells in ``other``.  O(cells)."""
    first, last = np.empty(len(number), np.int64), np.empty(len(number), np.int64)
    low = high = 0
    for c in range(len(number)):
        while low < len(other) and other[low] < number[c] - REACH:
            low += 1
        while high < len(other) and other[high] <= number[c] + REACH:
            high += 1
        first[c], last[c] = low, high
    return first, last


@jit()
def n_point_pairs(points_a, points_b, first, last):
    """Number of pairs of points in near cells: the work of ``near_sums`` in addition to O(NODES E)."""
    n = 0
    for c in range(len(first)):
        n += (points_a[c + 1] - points_a[c]) * (points_b[last[c]] - points_b[first[c]])
    return n


@jit()
def to_points(x, order, number, bounds, points, table):
    """Positions and weights (points,): a cell's values with weight 1, or its nodes, each weighted by its Lagrange
    polynomial summed over the cell's values.  O(NODES E)."""
    place, weight = np.empty(points[-1]), np.empty(points[-1])
    moment = np.empty(NODES)
    for c in range(len(number)):
        at = points[c]
        if bounds[c + 1] - bounds[c] <= NODES:
            for k in range(bounds[c], bounds[c + 1]):
                place[at + k - bounds[c]], weight[at + k - bounds[c]] = x[order[k]], 1.0
            continue
        moment[:] = 0.0
        for k in range(bounds[c], bounds[c + 1]):
            u = place_in_cell(x[order[k]], number[c])
            before, now = 1.0, u
            moment[0] += 0.5
            for j in range(1, NODES):
                moment[j] += now
                before, now = now, 2.0 * u * now - before
        for k in range(NODES):
            place[at + k] = (number[c] + 0.5 * (table[1, k] + 1.0)) * WIDTH
            weight[at + k] = 0.0
            for j in range(NODES):
                weight[at + k] += 2.0 / NODES * moment[j] * table[j, k]
    return place, weight


@jit()
def from_points(at_points, x, order, number, bounds, points, table, out):
    """Interpolate a function given at the points of every cell, and add its values at x to ``out``.  O(NODES E)."""
    coefficient = np.empty(NODES)
    for c in range(len(number)):
        at = points[c]
        if bounds[c + 1] - bounds[c] <= NODES:
            for k in range(bounds[c], bounds[c + 1]):
                out[order[k]] += at_points[at + k - bounds[c]]
            continue
        for j in range(NODES):
            coefficient[j] = 0.0
            for k in range(NODES):
                coefficient[j] += (2.0 if j > 0 else 1.0) / NODES * at_points[at + k] * table[j, k]
        for k in range(bounds[c], bounds[c + 1]):
            u = place_in_cell(x[order[k]], number[c])
            first = second = 0.0
            for j in range(NODES - 1, 0, -1):
                first, second = 2.0 * u * first - second + coefficient[j], first
            out[order[k]] += max(u * first - second + coefficient[0], 0.0)


@jit()
def add_far(x, order, bounds, n_below, grad):
    """Sum of n log(1 + e^x) over values x, n the number of the other column's values far below x's cell.  O(E)."""
    value = 0.0
    for c in range(len(bounds) - 1):
        if n_below[c] == 0:
            continue
        for k in range(bounds[c], bounds[c + 1]):
            own = x[order[k]]
            e = np.exp(-abs(own))
            value += n_below[c] * (np.log1p(e) + max(own, 0.0))
            grad[order[k]] += n_below[c] * (1.0 / (1.0 + e) if own >= 0.0 else e / (1.0 + e))
    return value


@jit()
def near_sums(a, b, most, ga, gb):
    """``all_pairs`` by cells, accurate to rounding of the largest sums: (value, pairs of points).  O(E log E).

    If there are more than ``most`` pairs of points, nothing is added and the value is NaN.
    """
    order_a, order_b = order_by_cell(a), order_by_cell(b)
    number_a, bounds_a = cells(a, order_a)
    number_b, bounds_b = cells(b, order_b)
    points_a, points_b = points_of_cells(bounds_a), points_of_cells(bounds_b)
    first, last = near_cells(number_a, number_b)
    n = n_point_pairs(points_a, points_b, first, last)
    if n > most:
        return np.nan, n
    table = chebyshev(NODES)
    at_a, weight_a = to_points(a, order_a, number_a, bounds_a, points_a, table)
    at_b, weight_b = to_points(b, order_b, number_b, bounds_b, points_b, table)
    sum_a, sum_b = np.zeros(len(at_a)), np.zeros(len(at_b))
    value = add_far(a, order_a, bounds_a, bounds_b[first], ga)
    value += add_far(b, order_b, bounds_b, bounds_a[near_cells(number_b, number_a)[0]], gb)
    for c in range(len(number_a)):
        for k in range(points_a[c], points_a[c + 1]):
            for m in range(points_b[first[c]], points_b[last[c]]):
                term, pa, pb = pair_term(at_a[k], at_b[m])
                value += weight_a[k] * weight_b[m] * term
                sum_a[k] += pa * weight_b[m]
                sum_b[m] += pb * weight_a[k]
    from_points(sum_a, a, order_a, number_a, bounds_a, points_a, table, ga)
    from_points(sum_b, b, order_b, number_b, bounds_b, points_b, table, gb)
    return value, n


@jit()
def all_pairs(a, b, ga, gb):
    """Sum over e, f of log(1 + e^a_e + e^b_f); derivatives are written to ``ga`` and ``gb``, which must be zero.

    O(E log E) for a and b of any size, or E^2 additions if that is cheaper; NaN if an entry is.
    """
    n = len(a)
    for e in range(n):
        if np.isnan(a[e]) or np.isnan(b[e]):  # belongs to no cell
            return np.nan
    plain = max(max_abs(a), max_abs(b)) <= PLAIN
    most = np.inf
    if plain:
        most = (float(n) * n - EDGE_COST * n) / NODE_PAIR_COST
        if most <= 0.0:
            return plain_sums(a, b, ga, gb)
    value, pairs = near_sums(a, b, most, ga, gb)
    return plain_sums(a, b, ga, gb) if pairs > most else value
