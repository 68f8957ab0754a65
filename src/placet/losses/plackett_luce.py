"""The Plackett-Luce family: full orders, orders of the top, and ordered partitions.

Items leave one by one; each time the next is i with probability e^{s_i} / sum over the items left of e^{s_j}.
"""

import numpy as np

from placet.data.arrays import Floats
from placet.kernels import partition
from placet.kernels import plackett_luce as kernels
from placet.losses.loss import Columns, Plan

_ALL_ROWS = np.iinfo(np.int64).max
_ABOVE_LOWEST_TIER = -1


def _uniforms(lists: Columns, random_state: int) -> Floats:
    """One uniform per row: the shuffle of tied rows depends on the seed and the row alone, not on threads or ranges."""
    return np.random.default_rng(random_state).random(len(lists.grade))


def _ordered(lists: Columns, k: int, random_state: int) -> Plan:
    args = _uniforms(lists, random_state), k
    return Plan(
        (kernels.ordered, *args),
        curvature=(kernels.ordered_curvature, *args),
        hvp=(kernels.ordered_hvp, *args),
    )


def listmle(lists: Columns, *, random_state: int = 0) -> Plan:
    """Full order: sum_j log sum_{l >= j} e^{s_l} - s_j over places j; tied rows in a seeded random order.  O(rows)."""
    return _ordered(lists, _ALL_ROWS, random_state)


def pl_topk(lists: Columns, *, k: int | None = None, random_state: int = 0) -> Plan:
    """Order of the top ``k`` places, the rest unordered below: the first k terms of `listmle`.  O(rows).

    ``k=None`` orders every row above the lowest tier.  Tied rows are put in a seeded random order.
    """
    if k is not None and k < 0:
        raise ValueError(f"k must be at least 0, or None for every row above the lowest tier, not {k}")
    return _ordered(lists, _ABOVE_LOWEST_TIER if k is None else int(k), random_state)


def pl_lower_bound(lists: Columns) -> Plan:
    """Minus the log of Hino's lower bound of the partition's likelihood.  O(rows).

    prod over tiers m above the lowest of n_m! prod_{i in X_m} e^{s_i} / sum_{j in R_m} e^{s_j}: every item of the
    tier is drawn against the whole of R_m.
    """
    return Plan((kernels.lower_bound,), curvature=(kernels.lower_bound_curvature,), hvp=(kernels.lower_bound_hvp,))


def pl_partition(lists: Columns, *, tol: float = 1e-11) -> Plan:
    """Exact likelihood of the ordered partition: - sum over tiers m above the lowest of log P(X_m before R_{m+1}).

    P = integral over u in (0, 1) of prod_{i in X_m} (1 - u^{a_i}), a_i = e^{s_i} / sum_{j in R_{m+1}} e^{s_j}: the
    sum over all orders inside each tier.  ``tol``: the error of each stage in log P, relative to max(1, |log P|), and
    in the gradient of each tied row, estimated from the nodes themselves; over thousands of stages of all shapes it was
    kept at every ``tol`` from 1e-11 up (ten times that for the rows below, which receive minus the sum of the tied
    rows); below 1e-11 rounding counts.  Training can do with 1e-4, at a third of the cost.
    O(rows + nodes * tied rows), 16 to 160 nodes, rarely 320.
    """
    if not 1e-14 <= tol <= 0.1:
        raise ValueError(f"tol must lie in [1e-14, 0.1], not {tol}")
    return Plan(
        (partition.partition, float(tol)),
        curvature=(partition.partition_curvature, float(tol)),
        hvp=(partition.partition_hvp, float(tol)),
    )
