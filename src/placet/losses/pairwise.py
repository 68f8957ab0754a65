"""Losses of pairs, d = s_i - s_j: sums (not means) over the ordered pairs of each list, i graded above j.

`ranknet`, `ranksvm` and `rank_regress` leave tied pairs out.  `rao_kupper` and `davidson` give them a probability of
their own; the three results of a pair sum to 1, and ``tie = -inf`` is the Bradley-Terry model, in which a tie is
impossible and costs an infinite value.
"""

import math

import numpy as np

from placet.kernels import pairwise as kernels
from placet.losses.loss import Columns, Kernel, Plan, read_only


def _plan(lists: Columns, value: tuple[object, ...], second: Kernel, *args: object) -> Plan:
    """``second`` gives out_i = sum_j h_ij (v_i - other v_j): diagonal at v = 1, other = 0; products at other = 1."""
    ones = read_only(np.ones(len(lists.grade)))
    return Plan(value, curvature=(second, ones, 0.0, *args), hvp=(second, 1.0, *args))


def ranknet(lists: Columns) -> Plan:
    """Logistic: sum over i above j of log(1 + e^{-d}); the Bradley-Terry model.  O(N^2) per list."""
    return _plan(lists, (kernels.ranknet,), kernels.rao_kupper_second, 0.0, False)


def ranksvm(lists: Columns) -> Plan:
    """Hinge: sum over i above j of max(0, 1 - d).  O(N log N) per list; the slope at d = 1 is taken as 0.

    The hinge has no second derivative; in its place stands that of max(0, 1 - d)^2 / 2, which bends where the hinge
    slopes.
    """
    return _plan(lists, (kernels.hinge,), kernels.hinge_second)


def rank_regress(lists: Columns) -> Plan:
    """Quadratic: sum over i above j of (1 - d)^2.  O(rows)."""
    return _plan(lists, (kernels.quadratic,), kernels.quadratic_second)


def rao_kupper(lists: Columns, *, tie: float = 0.0) -> Plan:
    """Ties by theta = 1 + e^tie: P(i > j) = 1 / (1 + theta e^{-d}), P(tie) = (theta^2 - 1) P(i > j) P(j > i).

    - log P(i > j) = softplus(log theta - d), and a tie costs softplus(log theta - d) + softplus(log theta + d)
    - log(theta^2 - 1).  O(N^2) per list.
    """
    eta = float(np.logaddexp(0.0, tie))  # log theta
    above_one = float(np.logaddexp(math.log(2.0), tie))  # log(theta + 1)
    value = (kernels.rao_kupper, eta, tie + above_one, math.exp(tie - eta), 1.0 + math.exp(tie - above_one))
    return _plan(lists, value, kernels.rao_kupper_second, eta, True)


def davidson(lists: Columns, *, tie: float = 0.0) -> Plan:
    """A win, a loss and a tie weigh e^{d/2}, e^{-d/2} and e^tie.

    - log P(i > j) = log(e^{d/2} + e^{-d/2} + e^tie) - d/2; a tie has - tie in place of - d/2.  O(N^2) per list.
    """
    return _plan(lists, (kernels.davidson, float(tie)), kernels.davidson_second, float(tie))
