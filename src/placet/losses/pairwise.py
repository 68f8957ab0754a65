"""Losses of pairs, d = s_i - s_j: sums (not means) over the ordered pairs of each list, i graded above j.

`ranknet`, `ranksvm` and `rank_regress` leave tied pairs out.  `rao_kupper` and `davidson` give them a probability of
their own; the three results of a pair sum to 1.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Lists
from placet.data.arrays import Floats
from placet.kernels import pairwise as kernels
from placet.kernels import ranges
from placet.losses.apply import checked, frozen, over_lists

Slopes = dict[str, float]


def _ones(s: ArrayLike) -> Floats:
    return np.ones(len(np.asarray(s)))


def ranknet(s: ArrayLike, lists: Lists) -> tuple[float, Floats]:
    """Logistic: sum over i above j of log(1 + e^{-d}); the Bradley-Terry model.  O(N^2) per list."""
    unused = np.zeros(len(np.asarray(s)))
    return over_lists(kernels.rao_kupper, s, lists, 0.0, False, unused)


def ranknet_curvature(s: ArrayLike, lists: Lists) -> Floats:
    """Diagonal of the Hessian: sum over the row's pairs of p (1 - p), p = 1 / (1 + e^d)."""
    return over_lists(kernels.rao_kupper_second, s, lists, 0.0, 0.0, False, rows=[_ones(s)])[1]


def ranknet_hvp(s: ArrayLike, lists: Lists, v: ArrayLike) -> Floats:
    """Hessian times ``v``: sum over the row's pairs of p (1 - p) (v_i - v_j)."""
    return over_lists(kernels.rao_kupper_second, s, lists, 1.0, 0.0, False, rows=[v])[1]


def ranksvm(s: ArrayLike, lists: Lists) -> tuple[float, Floats]:
    """Hinge: sum over i above j of max(0, 1 - d).  O(N log N) per list; the slope at d = 1 is taken as 0."""
    return over_lists(kernels.hinge, s, lists)


def ranksvm_curvature(s: ArrayLike, lists: Lists) -> Floats:
    """Number of the row's pairs with d < 1.

    The hinge has no second derivative; this is that of max(0, 1 - d)^2 / 2, which bends where the hinge slopes.
    """
    return over_lists(kernels.hinge_second, s, lists, 0.0, rows=[_ones(s)])[1]


def ranksvm_hvp(s: ArrayLike, lists: Lists, v: ArrayLike) -> Floats:
    """sum over the row's pairs with d < 1 of (v_i - v_j): as `ranksvm_curvature`, for max(0, 1 - d)^2 / 2."""
    return over_lists(kernels.hinge_second, s, lists, 1.0, rows=[v])[1]


def rank_regress(s: ArrayLike, lists: Lists) -> tuple[float, Floats]:
    """Quadratic: sum over i above j of (1 - d)^2.  O(rows)."""
    return over_lists(kernels.quadratic, s, lists)


def rank_regress_curvature(s: ArrayLike, lists: Lists) -> Floats:
    """Diagonal of the Hessian: twice the number of rows in other tiers."""
    return over_lists(kernels.quadratic_second, s, lists, 0.0, rows=[_ones(s)])[1]


def rank_regress_hvp(s: ArrayLike, lists: Lists, v: ArrayLike) -> Floats:
    """Hessian times ``v``: 2 sum over the rows j of other tiers of (v_i - v_j)."""
    return over_lists(kernels.quadratic_second, s, lists, 1.0, rows=[v])[1]


def _tied_pairs(s: ArrayLike, lists: Lists) -> float:
    _, grade, offsets, weight = checked(s, lists)
    if not ranges.is_descending(grade, offsets):
        grade = frozen(grade[ranges.descending_order(grade, offsets)])
    return kernels.count_ties(grade, offsets, weight)


def _times(pairs: float, log_weight: float) -> float:
    """pairs * log_weight, where no pairs at an infinite weight are nothing."""
    return pairs * log_weight if pairs else 0.0


def rao_kupper(
    s: ArrayLike, lists: Lists, *, alpha: float = 0.0, parameter_gradient: bool = False
) -> tuple[float, Floats] | tuple[float, Floats, Slopes]:
    """Ties by theta = 1 + e^alpha: P(i > j) = 1 / (1 + theta e^{-d}), P(tie) = (theta^2 - 1) P(i > j) P(j > i).

    - log P(i > j) = softplus(log theta - d), and a tie costs softplus(log theta - d) + softplus(log theta + d)
    - log(theta^2 - 1).  ``alpha = -inf`` is the Bradley-Terry model, under which a tie is impossible: infinite value.
    ``parameter_gradient`` adds {"alpha": d value / d alpha}.  O(N^2) per list.
    """
    eta = float(np.logaddexp(0.0, alpha))
    eta_slope = np.zeros(len(np.asarray(s)))
    value, grad = over_lists(kernels.rao_kupper, s, lists, eta, True, eta_slope)
    pairs = _tied_pairs(s, lists)
    value -= _times(pairs, alpha + float(np.logaddexp(math.log(2.0), alpha)))  # log(theta - 1) + log(theta + 1)
    if not parameter_gradient:
        return value, grad
    by_alpha = math.exp(alpha - eta)  # d eta / d alpha
    above_two = math.exp(alpha - float(np.logaddexp(math.log(2.0), alpha)))
    return value, grad, {"alpha": by_alpha * float(eta_slope.sum()) - pairs * (1.0 + above_two)}


def rao_kupper_curvature(s: ArrayLike, lists: Lists, *, alpha: float = 0.0) -> Floats:
    """Diagonal of the Hessian in s: sum of p (1 - p), p = logistic(log theta - d), for a tie also at log theta + d."""
    eta = float(np.logaddexp(0.0, alpha))
    return over_lists(kernels.rao_kupper_second, s, lists, 0.0, eta, True, rows=[_ones(s)])[1]


def rao_kupper_hvp(s: ArrayLike, lists: Lists, v: ArrayLike, *, alpha: float = 0.0) -> Floats:
    """Hessian in s times ``v``; the weights of `rao_kupper_curvature` times (v_i - v_j)."""
    eta = float(np.logaddexp(0.0, alpha))
    return over_lists(kernels.rao_kupper_second, s, lists, 1.0, eta, True, rows=[v])[1]


def davidson(
    s: ArrayLike, lists: Lists, *, beta: float = 0.0, parameter_gradient: bool = False
) -> tuple[float, Floats] | tuple[float, Floats, Slopes]:
    """Pairs with ties, nu = e^beta: a win, a loss and a tie weigh e^{d/2}, e^{-d/2} and nu.

    - log P(i > j) = log(e^{d/2} + e^{-d/2} + nu) - d/2; a tie has - beta in place of - d/2.  ``beta = -inf`` is the
    Bradley-Terry model, under which a tie is impossible: infinite value.
    ``parameter_gradient`` adds {"beta": d value / d beta}.  O(N^2) per list.
    """
    nu_slope = np.zeros(len(np.asarray(s)))
    value, grad = over_lists(kernels.davidson, s, lists, math.exp(beta), nu_slope)
    pairs = _tied_pairs(s, lists)
    value -= _times(pairs, beta)
    if not parameter_gradient:
        return value, grad
    return value, grad, {"beta": float(nu_slope.sum()) - pairs}


def davidson_curvature(s: ArrayLike, lists: Lists, *, beta: float = 0.0) -> Floats:
    """Diagonal of the Hessian in s: sum of the variances of a result that counts 1/2, -1/2 or, for a tie, 0."""
    return over_lists(kernels.davidson_second, s, lists, 0.0, math.exp(beta), rows=[_ones(s)])[1]


def davidson_hvp(s: ArrayLike, lists: Lists, v: ArrayLike, *, beta: float = 0.0) -> Floats:
    """Hessian in s times ``v``; the weights of `davidson_curvature` times (v_i - v_j)."""
    return over_lists(kernels.davidson_second, s, lists, 1.0, math.exp(beta), rows=[v])[1]
