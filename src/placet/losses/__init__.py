"""Losses: functions of row scores, ``LOSSES[name](s, lists, **params) -> (value, gradient)``.

A value is a negative log likelihood, or a surrogate to minimize, summed over lists with their weights.  Each entry is a
record (`Loss`) of the loss's properties; `Bound` is a loss bound to its lists.

>>> from placet.data import Lists
>>> value, gradient = LOSSES["listmle"]([0.0, 0.0, 0.0], Lists([2, 1, 0], [0, 3]))
>>> round(value, 6)  # log 6: one of 3! equally likely orders
1.791759
>>> LOSSES["pl-partition"].law
'order'
"""

from typing import Any

from placet.losses import (
    bregman as _bregman,
    ndcg as _ndcg,
    pairwise as _pairs,
    plackett_luce as _pl,
    pmop as _pmop,
    softmax as _softmax,
    structrank as _structrank,
)
from placet.losses.loss import Bound, Loss, needs

__all__ = ["LOSSES", "Bound", "Loss", "needs"]

_PLACKETT = "Plackett, The analysis of permutations, Applied Statistics 1975"
_PMOP = "Truyen, Phung and Venkatesh, Probabilistic models over ordered partitions, SDM 2011"
_BREGMAN = "Ravikumar, Tewari and Yang, On NDCG consistency of listwise ranking methods, AISTATS 2011"

_REWEIGHTED: dict[str, Any] = {
    "smooth": False,
    "convex": False,
    "differentiable": False,
    "values_of_grades": True,
    "reweights": True,
}

LOSSES: dict[str, Loss] = {
    "pl-partition": Loss(
        _pl.pl_partition,
        "Ma et al., Learning-to-rank with partitioned preference, AISTATS 2021",
        law="order",
        sums_lowest_tier=True,
    ),
    "pl-topk": Loss(
        _pl.pl_topk,
        "Xia, Liu and Li, Statistical consistency of top-k ranking, NIPS 2009",
        law="order",
        breaks_ties=True,
    ),
    "listmle": Loss(
        _pl.listmle,
        _PLACKETT + "; Xia et al., Listwise approach to learning to rank, ICML 2008",
        law="order",
        breaks_ties=True,
    ),
    "pl-lower-bound": Loss(
        _pl.pl_lower_bound,
        "Hino, Fujimoto and Murata, A grouped ranking model for item preference parameter, Neural Computation 2010",
        sums_lowest_tier=True,
    ),
    "listnet": Loss(
        _softmax.listnet,
        "Cao et al., Learning to rank: from pairwise to listwise approach, ICML 2007",
        values_of_grades=True,
    ),
    "attrank": Loss(
        _softmax.attrank, "Ai et al., Learning a deep listwise context model, SIGIR 2018", values_of_grades=True
    ),
    "bregman-ce": Loss(_bregman.bregman_ce, _BREGMAN, shift_invariant=False, smooth=False, values_of_grades=True),
    "bregman-square": Loss(_bregman.bregman_square, _BREGMAN, shift_invariant=False, values_of_grades=True),
    "bregman-qnorm": Loss(_bregman.bregman_qnorm, _BREGMAN, shift_invariant=False, smooth=False, values_of_grades=True),
    "bregman": Loss(_bregman.bregman, _BREGMAN, shift_invariant=False, smooth=False, values_of_grades=True),
    "cosine": Loss(
        _bregman.cosine,
        _BREGMAN,
        shift_invariant=False,
        scale_invariant=True,
        smooth=False,
        convex=False,
        exact_curvature=False,
        values_of_grades=True,
    ),
    "lambdarank": Loss(
        _ndcg.lambdarank,
        "Burges, Ragno and Le, Learning to rank with nonsmooth cost functions, NIPS 2006",
        **_REWEIGHTED,
    ),
    "lambdaloss": Loss(
        _ndcg.lambdaloss,
        "Wang et al., The LambdaLoss framework for ranking metric optimization, CIKM 2018",
        **_REWEIGHTED,
    ),
    "xendcg": Loss(
        _softmax.xendcg,
        "Bruch, An alternative cross entropy loss for learning-to-rank, WWW 2021",
        values_of_grades=True,
    ),
    "approx-ndcg": Loss(
        _ndcg.approx_ndcg,
        "Qin, Liu and Li, A general approximation framework for direct optimization of IR measures, 2010",
        convex=False,
        exact_curvature=False,
        values_of_grades=True,
    ),
    "neural-ndcg": Loss(
        _ndcg.neural_ndcg,
        "Pobrotyn and Bialobrzeski, NeuralNDCG, 2021; Grover et al., NeuralSort, ICLR 2019",
        gives=("curvature",),
        smooth=False,
        convex=False,
        differentiable=False,
        exact_curvature=False,
        values_of_grades=True,
    ),
    "structrank": Loss(
        _structrank.structrank,
        "Huang and Frey, Structured ranking learning using cumulative distribution networks, NIPS 2008",
        gives=("curvature",),
        learned={"w1": 1.0, "w2": 1.0},
        scaling=("w1", "w2"),
        exact_curvature=False,
    ),
    "pmop-fd": Loss(_pmop.pmop_fd, _PMOP, law="order", potential="sums", convex=False, exact_curvature=False),
    "pmop-exact": Loss(_pmop.pmop_exact, _PMOP, law="partition", potential="means"),
    "pmop-gibbs": Loss(_pmop.pmop_gibbs, _PMOP, gives=(), samples=True),
    "pmop-mh": Loss(_pmop.pmop_mh, _PMOP, gives=(), samples=True),
    "pmop-backward": Loss(_pmop.pmop_backward, _PMOP, law="partition", convex=False, exact_curvature=False),
    "ranknet": Loss(_pairs.ranknet, "Burges et al., Learning to rank using gradient descent, ICML 2005", law="pairs"),
    "ranksvm": Loss(
        _pairs.ranksvm,
        "Joachims, Optimizing search engines using clickthrough data, KDD 2002",
        smooth=False,
        differentiable=False,
        exact_curvature=False,
    ),
    "rank-regress": Loss(_pairs.rank_regress, "Cossock and Zhang, Subset ranking using regression, COLT 2006"),
    "rao-kupper": Loss(
        _pairs.rao_kupper,
        _pairs.PAIR_MODELS["rao-kupper"].reference,
        learned={"tie": 0.0},
        law="pairs",
    ),
    "davidson": Loss(
        _pairs.davidson,
        _pairs.PAIR_MODELS["davidson"].reference,
        learned={"tie": 0.0},
        law="pairs",
    ),
}
"""Records of all losses, by name."""
