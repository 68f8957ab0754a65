"""The Plackett-Luce family: full orders, orders of the top, and ordered partitions.

Items leave one by one; each time the next is i with probability e^{s_i} / sum over the items left of e^{s_j}.
"""

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Lists
from placet.data.arrays import Floats
from placet.kernels import partition
from placet.kernels import plackett_luce as kernels
from placet.losses.apply import over_lists

_ALL_ROWS = np.iinfo(np.int64).max
_ABOVE_LOWEST_TIER = -1


def _draws(lists: Lists, random_state: int) -> Floats:
    """One uniform per row: the shuffle of tied rows depends on the seed and the row alone, not on threads or ranges."""
    return np.random.default_rng(random_state).random(len(np.asarray(lists[0])))


def _top(k: int | None) -> int:
    if k is None:
        return _ABOVE_LOWEST_TIER
    if k < 0:
        raise ValueError(f"k must be at least 0, or None for every row above the lowest tier, not {k}")
    return int(k)


def listmle(s: ArrayLike, lists: Lists, *, random_state: int = 0) -> tuple[float, Floats]:
    """Full order: sum_j log sum_{l >= j} e^{s_l} - s_j over places j; tied rows in a seeded random order.  O(rows)."""
    return over_lists(kernels.ordered, s, lists, _draws(lists, random_state), _ALL_ROWS)


def listmle_curvature(s: ArrayLike, lists: Lists, *, random_state: int = 0) -> Floats:
    """Diagonal of the Hessian: sum over the stages of p (1 - p), p the row's softmax share.  O(rows)."""
    return over_lists(kernels.ordered_curvature, s, lists, _draws(lists, random_state), _ALL_ROWS)[1]


def listmle_hvp(s: ArrayLike, lists: Lists, v: ArrayLike, *, random_state: int = 0) -> Floats:
    """Hessian times ``v``: sum over the stages of p (v - p.v).  O(rows)."""
    return over_lists(kernels.ordered_hvp, s, lists, _draws(lists, random_state), _ALL_ROWS, rows=[v])[1]


def pl_topk(s: ArrayLike, lists: Lists, *, k: int | None = None, random_state: int = 0) -> tuple[float, Floats]:
    """Order of the top ``k`` places, the rest unordered below: the first k terms of `listmle`.  O(rows).

    ``k=None`` orders every row above the lowest tier.  Tied rows are put in a seeded random order.
    """
    return over_lists(kernels.ordered, s, lists, _draws(lists, random_state), _top(k))


def pl_topk_curvature(s: ArrayLike, lists: Lists, *, k: int | None = None, random_state: int = 0) -> Floats:
    """Diagonal of the Hessian of `pl_topk`."""
    return over_lists(kernels.ordered_curvature, s, lists, _draws(lists, random_state), _top(k))[1]


def pl_topk_hvp(s: ArrayLike, lists: Lists, v: ArrayLike, *, k: int | None = None, random_state: int = 0) -> Floats:
    """Hessian of `pl_topk` times ``v``."""
    return over_lists(kernels.ordered_hvp, s, lists, _draws(lists, random_state), _top(k), rows=[v])[1]


def pl_lower_bound(s: ArrayLike, lists: Lists) -> tuple[float, Floats]:
    """Minus the log of Hino's lower bound of the partition's likelihood.  O(rows).

    prod over tiers m above the lowest of n_m! prod_{i in X_m} e^{s_i} / sum_{j in R_m} e^{s_j}: every item of the
    tier is drawn against the whole of R_m.
    """
    return over_lists(kernels.lower_bound, s, lists)


def pl_lower_bound_curvature(s: ArrayLike, lists: Lists) -> Floats:
    """Diagonal of the Hessian: sum over tiers m of n_m p (1 - p), p the row's share of R_m."""
    return over_lists(kernels.lower_bound_curvature, s, lists)[1]


def pl_lower_bound_hvp(s: ArrayLike, lists: Lists, v: ArrayLike) -> Floats:
    """Hessian times ``v``: sum over tiers m of n_m p (v - p.v), p the softmax over R_m."""
    return over_lists(kernels.lower_bound_hvp, s, lists, rows=[v])[1]


def pl_partition(s: ArrayLike, lists: Lists, *, tol: float = 1e-11) -> tuple[float, Floats]:
    """Exact likelihood of the ordered partition: - sum over tiers m above the lowest of log P(X_m before R_{m+1}).

    P = integral over u in (0, 1) of prod_{i in X_m} (1 - u^{a_i}), a_i = e^{s_i} / sum_{j in R_{m+1}} e^{s_j}: the
    sum over all orders inside each tier.  ``tol``: the error of each stage in log P, relative to max(1, |log P|), and
    in the gradient of each tied row, estimated from the nodes themselves; over thousands of stages of all shapes it was
    kept at every ``tol`` from 1e-11 up (ten times that for the rows below, which receive minus the sum of the tied
    rows); below 1e-11 rounding counts.  Training can do with 1e-4, at a third of the cost.
    O(rows + nodes * tied rows), 16 to 160 nodes, rarely 320.
    """
    return over_lists(partition.partition, s, lists, _tolerance(tol))


def pl_partition_curvature(s: ArrayLike, lists: Lists, *, tol: float = 1e-11) -> Floats:
    """Diagonal of the Hessian of `pl_partition`, from the same nodes."""
    return over_lists(partition.partition_curvature, s, lists, _tolerance(tol))[1]


def pl_partition_hvp(s: ArrayLike, lists: Lists, v: ArrayLike, *, tol: float = 1e-11) -> Floats:
    """Hessian of `pl_partition` times ``v``, from the same nodes."""
    return over_lists(partition.partition_hvp, s, lists, _tolerance(tol), rows=[v])[1]


def _tolerance(tol: float) -> float:
    if not 1e-14 <= tol <= 0.1:
        raise ValueError(f"tol must lie in [1e-14, 0.1], not {tol}")
    return float(tol)
