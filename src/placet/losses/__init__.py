"""Losses: pure functions of row scores, ``LOSSES[name](s, lists, **params) -> (value, gradient)``.

A value is minus a log likelihood, or the surrogate to minimise, summed over lists with their weights.

>>> from placet.data import Lists
>>> value, gradient = LOSSES["listmle"]([0.0, 0.0, 0.0], Lists([2, 1, 0], [0, 3]))
>>> round(value, 6)  # log 6: one of 3! equally likely orders
1.791759
"""

from collections.abc import Callable

from placet.losses import plackett_luce as _plackett_luce
from placet.losses import softmax as _softmax

LOSSES: dict[str, Callable] = {
    "pl-topk": _plackett_luce.pl_topk,
    "listmle": _plackett_luce.listmle,
    "pl-lower-bound": _plackett_luce.pl_lower_bound,
    "attrank": _softmax.attrank,
    "listnet": _softmax.attrank,
}
"""``(s, lists, **params) -> (value, gradient)``."""

CURVATURES: dict[str, Callable] = {
    "pl-topk": _plackett_luce.pl_topk_curvature,
    "listmle": _plackett_luce.listmle_curvature,
    "pl-lower-bound": _plackett_luce.pl_lower_bound_curvature,
    "attrank": _softmax.attrank_curvature,
    "listnet": _softmax.attrank_curvature,
}
"""``(s, lists, **params) -> (rows,)``: the diagonal of the Hessian, or the upper bound that the function states."""

HVPS: dict[str, Callable] = {
    "pl-topk": _plackett_luce.pl_topk_hvp,
    "listmle": _plackett_luce.listmle_hvp,
    "pl-lower-bound": _plackett_luce.pl_lower_bound_hvp,
    "attrank": _softmax.attrank_hvp,
    "listnet": _softmax.attrank_hvp,
}
"""``(s, lists, v, **params) -> (rows,)``: the Hessian times a vector."""

LIKELIHOODS: frozenset[str] = frozenset(
    {
        "pl-topk",
        "listmle",
    }
)
"""Names whose ``exp(-value)`` sums to 1 over all outcomes."""

LEARNT: dict[str, dict[str, float]] = {}
"""Parameters learnt jointly with the scores, and their starting values."""
