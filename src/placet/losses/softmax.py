"""Cross-entropy between a distribution over the rows of a list, derived from the grades, and the softmax of the scores.

- sum_i p_i log softmax(s)_i; gradient softmax(s) - p, Hessian diag(q) - q q' at q = softmax(s).  O(rows).
"""

from collections.abc import Callable

import numpy as np

from placet.data.arrays import Floats, list_of_rows
from placet.data.gains import Curve, gains, without_overflow
from placet.kernels.losses import softmax as kernels
from placet.losses.list_columns import ListColumns, read_only
from placet.losses.loss import Plan


def _cross_entropy(lists: ListColumns, targets: Callable[..., None]) -> Plan:
    p = np.zeros(len(lists.grade))
    targets(lists.grade, lists.offsets, p)
    return _plan(p)


def _plan(p: Floats) -> Plan:
    return Plan(
        (kernels.listnet,),
        curvature=(kernels.listnet_curvature,),
        hvp=(kernels.listnet_hvp,),
        grade=read_only(p),
    )


def listnet(lists: ListColumns) -> Plan:
    """ListNet (top one): p = softmax(grade), so every row has some mass, even those of grade 0."""
    return _cross_entropy(lists, kernels.softmax_targets)


def attrank(lists: ListColumns) -> Plan:
    """AttRank: p in proportion to e^grade over the rows with a grade above 0, and 0 elsewhere.

    With two tiers, 0 and one other, p is uniform over the n_1 better rows: the gradient of `pl-lower-bound` over n_1.
    Lists without a grade above 0 are ignored.
    """
    return _cross_entropy(lists, kernels.attention_targets)


def xendcg(lists: ListColumns, *, gamma: float | str = 0.5, gain: str | Curve = "exp2", random_state: int = 0) -> Plan:
    """XE-NDCG: p in proportion to G(grade) + 1 - gamma, G(r) = 2^r - 1; its cross-entropy bounds mean NDCG.

    ``gamma`` in [0, 1]: one number for all rows, or "uniform" for a number per row drawn from (0, 1) by
    ``random_state``, as published.  Convex; it pulls the scores of a list with equal grades together.
    """
    value = gains(lists.grade, gain)
    if gamma == "uniform":
        lower: float | Floats = np.random.default_rng(random_state).random(len(value))
    elif isinstance(gamma, str) or not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must be a number in [0, 1] or 'uniform', not {gamma!r}")
    else:
        lower = float(gamma)
    phi, which = without_overflow(value + 1.0 - lower), list_of_rows(lists.offsets)
    mass = np.bincount(which, phi, len(lists.weight))[which]
    return _plan(np.divide(phi, mass, out=np.zeros_like(phi), where=mass > 0.0))
