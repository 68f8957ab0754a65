"""Cross-entropy of a law over the rows of a list, made from the grades, and the softmax of the scores.

- sum_i p_i log softmax(s)_i; gradient softmax(s) - p, Hessian diag(q) - q q' at q = softmax(s).  O(rows).
"""

from collections.abc import Callable

import numpy as np

from placet.kernels import softmax as kernels
from placet.losses.loss import Columns, Plan, read_only


def _cross_entropy(lists: Columns, targets: Callable[..., None]) -> Plan:
    p = np.zeros(len(lists.grade))
    targets(lists.grade, lists.offsets, p)
    return Plan(
        (kernels.listnet,),
        curvature=(kernels.listnet_curvature,),
        hvp=(kernels.listnet_hvp,),
        grade=read_only(p),
    )


def listnet(lists: Columns) -> Plan:
    """ListNet (top one): p = softmax(grade), so every row has some mass, those of grade 0 too."""
    return _cross_entropy(lists, kernels.softmax_targets)


def attrank(lists: Columns) -> Plan:
    """AttRank: p in proportion to e^grade over the rows with a grade above 0, nothing elsewhere.

    With two tiers, 0 and one other, p is even over the n_1 better rows: the gradient of `pl-lower-bound` over n_1.
    Lists without a grade above 0 say nothing.
    """
    return _cross_entropy(lists, kernels.attention_targets)
