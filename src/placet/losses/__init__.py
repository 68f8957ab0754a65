"""Losses: pure functions of row scores, ``LOSSES[name](s, lists, **params) -> (value, gradient)``.

A value is minus a log likelihood, or the surrogate to minimise, summed over lists with their weights.

>>> from placet.data import Lists
>>> value, gradient = LOSSES["listmle"]([0.0, 0.0, 0.0], Lists([2, 1, 0], [0, 3]))
>>> round(value, 6)  # log 6: one of 3! equally likely orders
1.791759
"""

from collections.abc import Callable

from placet.losses import bregman as _bregman
from placet.losses import pairwise as _pairwise
from placet.losses import plackett_luce as _plackett_luce
from placet.losses import pmop as _pmop
from placet.losses import softmax as _softmax
from placet.losses import structrank as _structrank

LOSSES: dict[str, Callable] = {
    "pl-partition": _plackett_luce.pl_partition,
    "pl-topk": _plackett_luce.pl_topk,
    "listmle": _plackett_luce.listmle,
    "pl-lower-bound": _plackett_luce.pl_lower_bound,
    "attrank": _softmax.attrank,
    "listnet": _softmax.attrank,
    "bregman-ce": _bregman.bregman_ce,
    "bregman-square": _bregman.bregman_square,
    "bregman-qnorm": _bregman.bregman_qnorm,
    "bregman": _bregman.bregman,
    "cosine": _bregman.cosine,
    "structrank": _structrank.structrank,
    "pmop-fd": _pmop.pmop_fd,
    "pmop-exact": _pmop.pmop_exact,
    "pmop-gibbs": _pmop.pmop_gibbs,
    "pmop-mh": _pmop.pmop_mh,
    "pmop-backward": _pmop.pmop_backward,
    "ranknet": _pairwise.ranknet,
    "ranksvm": _pairwise.ranksvm,
    "rank-regress": _pairwise.rank_regress,
    "rao-kupper": _pairwise.rao_kupper,
    "davidson": _pairwise.davidson,
}
"""``(s, lists, **params) -> (value, gradient)``."""

CURVATURES: dict[str, Callable] = {
    "pl-partition": _plackett_luce.pl_partition_curvature,
    "pl-topk": _plackett_luce.pl_topk_curvature,
    "listmle": _plackett_luce.listmle_curvature,
    "pl-lower-bound": _plackett_luce.pl_lower_bound_curvature,
    "attrank": _softmax.attrank_curvature,
    "listnet": _softmax.attrank_curvature,
    "bregman-ce": _bregman.bregman_ce_curvature,
    "bregman-square": _bregman.bregman_square_curvature,
    "bregman-qnorm": _bregman.bregman_qnorm_curvature,
    "bregman": _bregman.bregman_curvature,
    "cosine": _bregman.cosine_curvature,
    "structrank": _structrank.structrank_curvature,
    "pmop-fd": _pmop.pmop_fd_curvature,
    "pmop-exact": _pmop.pmop_exact_curvature,
    "pmop-backward": _pmop.pmop_backward_curvature,
    "ranknet": _pairwise.ranknet_curvature,
    "ranksvm": _pairwise.ranksvm_curvature,
    "rank-regress": _pairwise.rank_regress_curvature,
    "rao-kupper": _pairwise.rao_kupper_curvature,
    "davidson": _pairwise.davidson_curvature,
}
"""``(s, lists, **params) -> (rows,)``: the diagonal of the Hessian, or the upper bound that the function states."""

HVPS: dict[str, Callable] = {
    "pl-partition": _plackett_luce.pl_partition_hvp,
    "pl-topk": _plackett_luce.pl_topk_hvp,
    "listmle": _plackett_luce.listmle_hvp,
    "pl-lower-bound": _plackett_luce.pl_lower_bound_hvp,
    "attrank": _softmax.attrank_hvp,
    "listnet": _softmax.attrank_hvp,
    "bregman-ce": _bregman.bregman_ce_hvp,
    "bregman-square": _bregman.bregman_square_hvp,
    "bregman-qnorm": _bregman.bregman_qnorm_hvp,
    "bregman": _bregman.bregman_hvp,
    "cosine": _bregman.cosine_hvp,
    "pmop-fd": _pmop.pmop_fd_hvp,
    "pmop-exact": _pmop.pmop_exact_hvp,
    "pmop-backward": _pmop.pmop_backward_hvp,
    "ranknet": _pairwise.ranknet_hvp,
    "ranksvm": _pairwise.ranksvm_hvp,
    "rank-regress": _pairwise.rank_regress_hvp,
    "rao-kupper": _pairwise.rao_kupper_hvp,
    "davidson": _pairwise.davidson_hvp,
}
"""``(s, lists, v, **params) -> (rows,)``: the Hessian times a vector."""

LIKELIHOODS: frozenset[str] = frozenset(
    {
        "pl-partition",
        "pl-topk",
        "listmle",
        "pmop-fd",
        "pmop-exact",
        "pmop-backward",
        "ranknet",  # these three over the results of a pair; a longer list is a product of pairs
        "rao-kupper",
        "davidson",
    }
)
"""Names whose ``exp(-value)`` sums to 1 over all outcomes."""

LEARNT: dict[str, dict[str, float]] = {
    "structrank": {"w1": 1.0, "w2": 1.0},
    "rao-kupper": {"alpha": 0.0},
    "davidson": {"beta": 0.0},
}
"""Parameters learnt jointly with the scores, and their starting values."""
