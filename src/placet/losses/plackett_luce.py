"""The Plackett-Luce family: full orders, orders of the top, and ordered partitions.

Items are drawn one by one; the next is i with probability e^{s_i} / sum over the remaining items of e^{s_j}.
"""

from typing import Any

import numpy as np

from placet.data import Lists
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.data.gains import Curve, check_curves
from placet.kernels.losses import partition, plackett_luce as kernels
from placet.losses.bregman import dcg_shares
from placet.losses.list_columns import NO_ROWS, ListColumns, read_only
from placet.losses.loss import Plan

_ALL_ROWS = np.iinfo(np.int64).max
_ABOVE_LOWEST_TIER = -1


def _uniforms(lists: ListColumns, random_state: int) -> Floats:
    """One uniform per row: the shuffle of tied rows depends only on the seed and the row, not on threads or ranges."""
    return np.random.default_rng(random_state).random(len(lists.grade))


def stage_weights(
    lists: ListColumns, stage_weight: str | None, gain: str | Curve, discount: str | Curve, *, tiers: bool
) -> Floats:
    """Factor of each stage (rows,): its share of the ideal DCG for "dcg"; empty for None, meaning 1 everywhere.

    Stored at the row of the stage's place; with ``tiers`` a stage is a tier, and its factor is at its first row.
    """
    check_curves(gain, discount)
    if one_of(stage_weight, (None, "dcg"), "stage_weight") is None:
        return read_only(np.zeros(0))
    share = dcg_shares(Lists(lists.grade, lists.offsets), gain, discount)
    if tiers and len(share):
        starts = np.append(True, np.diff(lists.grade) != 0.0)
        starts[lists.offsets[:-1][np.diff(lists.offsets) > 0]] = True
        first = np.flatnonzero(starts)
        summed = np.add.reduceat(share, first)
        share = np.zeros(len(share))
        share[first] = summed
    return read_only(share)


def _ordered(lists: ListColumns, k: int, random_state: int, stage: Floats) -> Plan:
    args = _uniforms(lists, random_state), k, stage
    return Plan(
        (kernels.ordered, *args),
        curvature=(kernels.ordered_curvature, *args),
        hvp=(kernels.ordered_hvp, *args),
    )


def listmle(lists: ListColumns, *, random_state: int = 0) -> Plan:
    """Full order: sum_j log sum_{l >= j} e^{s_l} - s_j over places j; tied rows in a seeded random order.  O(rows)."""
    return _ordered(lists, _ALL_ROWS, random_state, read_only(np.zeros(0)))


def pl_topk(
    lists: ListColumns,
    *,
    k: int | None = None,
    random_state: int = 0,
    stage_weight: str | None = None,
    gain: str | Curve = "exp2",
    discount: str | Curve = "log2",
) -> Plan:
    """Order of the top ``k`` places, the rest unordered below: the first k terms of `listmle`.  O(rows).

    ``k=None`` orders every row above the lowest tier.  Tied rows are put in a seeded random order.
    ``stage_weight="dcg"`` multiplies the term of place j by gain(grade) discount(j) over the ideal DCG of the list, so
    that the loss focuses on the same places as NDCG (it is then no longer a likelihood).
    """
    if k is not None and k < 0:
        raise ValueError(f"k must be at least 0, or None for every row above the lowest tier, not {k}")
    stage = stage_weights(lists, stage_weight, gain, discount, tiers=False)
    return _ordered(lists, _ABOVE_LOWEST_TIER if k is None else int(k), random_state, stage)


def pl_lower_bound(lists: ListColumns) -> Plan:
    """Negative log of Hino's lower bound on the partition's likelihood.  O(rows).

    prod over tiers m above the lowest of n_m! prod_{i in X_m} e^{s_i} / sum_{j in R_m} e^{s_j}: every item of the
    tier is drawn from all of R_m.
    """
    return Plan((kernels.lower_bound,), curvature=(kernels.lower_bound_curvature,), hvp=(kernels.lower_bound_hvp,))


_NO_VALUES = np.empty(0)


def _partition(s: Floats, grade: Floats, offsets: Ints, weight: Floats, values: Floats, *more: Any) -> None:
    grad, *args = more
    partition.partition(s, grade, offsets, weight, values, grad, NO_ROWS, *args)


def _partition_hvp(s: Floats, grade: Floats, offsets: Ints, weight: Floats, out: Floats, *more: Any) -> None:
    v, *args = more
    partition.partition(s, grade, offsets, weight, _NO_VALUES, out, read_only(v), *args)


def pl_partition(
    lists: ListColumns,
    *,
    tol: float = 1e-11,
    stage_weight: str | None = None,
    gain: str | Curve = "exp2",
    discount: str | Curve = "log2",
) -> Plan:
    """Exact likelihood of the ordered partition: - sum over tiers m above the lowest of log P(X_m before R_{m+1}).

    P = integral over u in (0, 1) of prod_{i in X_m} (1 - u^{a_i}), a_i = e^{s_i} / sum_{j in R_{m+1}} e^{s_j}: the
    sum over all orders within each tier.  ``tol``: error of each stage in log P, relative to max(1, |log P|), and in
    the gradient of each tied row, estimated from the nodes; in tests on thousands of stages of all shapes it held for
    every ``tol`` of at least 1e-11 (ten times that for the rows below, which receive minus the sum of the tied rows);
    below 1e-11, rounding dominates.  For training 1e-4 suffices, at a third of the cost.
    O(rows + nodes * tied rows), 16 to 160 nodes, rarely 320.  ``stage_weight="dcg"`` multiplies the term of a tier by
    its share of the ideal DCG of the list, with ``gain`` and ``discount``.
    """
    if not 1e-14 <= tol <= 0.1:
        raise ValueError(f"tol must lie in [1e-14, 0.1], not {tol}")
    args = float(tol), stage_weights(lists, stage_weight, gain, discount, tiers=True)
    return Plan(
        (_partition, *args),
        curvature=(partition.partition_curvature, *args),
        hvp=(_partition_hvp, *args),
    )
