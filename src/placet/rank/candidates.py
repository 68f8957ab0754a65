"""What ``autorank`` tries: a stated list, and candidates at random."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

Candidate = tuple[str, Mapping[str, Any]]

SECOND_STAGE: Mapping[str, Any] = {
    "kernels": ("cosine", "gaussian"),
    "average": True,
    "positive": True,
    "l2": (1e-2, 1e-1, 1.0),
}
"""How a listwise second stage is fitted over any base: means of two kernels, the base itself among the choices."""

DRAWN: Mapping[str, Any] = {"learning_rate": 0.05, "leaves": 15, "feature_fraction": 0.5, "subsample": 0.7}
"""Trees for each of which half of the features and most of the rows are drawn."""

FEWER: Mapping[str, Any] = {**DRAWN, "feature_fraction": 0.3}
"""The same with fewer features, as where those of the list make three of one."""

TO_NDCG: Mapping[str, Any] = {"loss_params": {"stage_weight": "dcg"}}
"""Stages of a likelihood count as much as their places do in NDCG."""

NORMED: Mapping[str, Any] = {"loss_params": {"norm": True}}
"""LambdaRank with LightGBM's two further factors."""

SHORT_LIST: tuple[Candidate, ...] = (
    ("linear", {"loss": "pmop-fd", "l2": 1e-3}),
    ("trees", {"loss": "pmop-fd", **DRAWN}),
    ("linear", {"loss": "pl-partition", "l2": 1e-2, **TO_NDCG}),
    ("trees", {"loss": "xendcg", **DRAWN}),
    ("listwise", {"base": ("linear", {"loss": "pmop-fd", "l2": 1e-2})}),
    ("forest", {"loss": "xendcg", "n_trees": 100}),
    ("trees", {"loss": "lambdarank", **DRAWN, **NORMED}),
    ("booster", {"loss": "attrank", "learning_rate": 0.3, "feature_fraction": 0.5, "subsample": 0.7}),
    ("trees", {"loss": "pl-partition", **DRAWN, **TO_NDCG}),
    ("listwise", {"base": ("trees", {"loss": "pmop-fd", **FEWER})}),
    ("linear", {"loss": "xendcg", "l2": 1e-2}),
    ("listwise", {"base": ("linear", {"loss": "pl-partition", "l2": 1e-1})}),
    ("trees", {"loss": "ranknet", **DRAWN}),
    ("linear", {"loss": "attrank", "l2": 1e-3}),
    ("trees", {"loss": "xendcg", **DRAWN, "feature_fraction": 0.2, "subsample": 0.5}),
    ("trees", {"loss": "lambdarank", **FEWER, "min_rows": 40, "l2": 5.0, **NORMED}),
    ("listwise", {"base": ("trees", {"loss": "lambdarank", **FEWER, **NORMED})}),
    ("linear", {"loss": "pl-partition", "l2": 1e-1, **TO_NDCG}),
    ("listwise", {"base": ("trees", {"loss": "xendcg", **FEWER})}),
    ("listwise", {"base": ("trees", {"loss": "pl-partition", **FEWER, **TO_NDCG})}),
    ("reranker", {"base": ("linear", {"loss": "pmop-fd", "l2": 1e-3}), **SECOND_STAGE}),
    ("reranker", {"base": ("trees", {"loss": "pmop-fd", **DRAWN}), **SECOND_STAGE}),
)
"""What ``autorank`` tries, in this order: first kinds that differ much (linear, trees, features of the list, a forest,
boosted features), with likelihoods, cross entropies, pairs and losses that aim at NDCG; at last a listwise second
stage.  In the first 20 kinds of trees and others alternate so that each of four parts has both with ``rotate``."""

LOSSES_TO_DRAW = {
    "linear": ("pmop-fd", "pl-partition", "bregman-ce", "attrank", "ranknet", "xendcg", "cosine", "approx-ndcg"),
    "trees": ("pmop-fd", "pl-partition", "attrank", "ranknet", "xendcg", "lambdarank", "lambdaloss", "neural-ndcg"),
    "booster": ("pmop-fd", "pl-partition", "bregman-ce", "attrank", "ranknet"),
}
"""Which losses ``draw_candidates`` gives to which ranker."""

LISTWISE = 0.25  # share of draws that are a linear ranker or trees on features of the list beside those of the row


def draw_candidates(n: int, random_state: int | np.random.Generator = 0) -> list[Candidate]:
    """``n`` candidates at random: linear, trees or boosted columns, each with a loss and settings of its own.

    Penalties, rates and sizes are uniform in their logarithm, shares uniform.  Boosted columns are features, or (twice
    as often) their products with similarities to the rest of the list.  Half of the likelihoods weigh their stages as
    NDCG does; a quarter of the draws see features of the list beside those of the row.  The first of many draws are
    those of few.

    >>> draw_candidates(1, 34)
    [('linear', {'loss': 'pmop-fd', 'l2': 0.00094})]
    """
    return list(islice(drawn_without_end(random_state), n))


def drawn_without_end(random_state: int | np.random.Generator = 0) -> Iterator[Candidate]:
    """Candidates at random, one after the other; see ``draw_candidates``."""
    rng = np.random.default_rng(random_state)
    while True:
        name, params = _draw(rng)
        listwise = rng.random() < LISTWISE and name != "booster"
        yield ("listwise", {"base": (name, params)}) if listwise else (name, params)


def _draw(rng: np.random.Generator) -> Candidate:
    def between(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.2g}")

    def share(low: float) -> float:
        return float(f"{rng.uniform(low, 1):.2g}")

    name = list(LOSSES_TO_DRAW)[rng.integers(len(LOSSES_TO_DRAW))]
    params: dict[str, Any] = {"loss": str(rng.choice(LOSSES_TO_DRAW[name]))}
    if params["loss"] in ("pmop-fd", "pl-partition") and name != "booster" and rng.integers(2):
        params |= TO_NDCG
    if params["loss"] == "lambdarank":
        params |= {"loss_params": {"norm": bool(rng.integers(2))}}
    if name == "linear":
        params |= {"l2": between(1e-4, 1)}
    elif name == "trees":
        params |= {"learning_rate": between(0.02, 0.2), "leaves": int(between(4, 33)), "min_rows": int(between(5, 101))}
        params |= {"l2": between(0.1, 100), "subsample": share(0.5), "feature_fraction": share(0.2)}
    else:
        params |= {"learning_rate": between(0.1, 1), "subsample": share(0.5)}
        kernels = (None, ("cosine",), ("gaussian",))[rng.integers(3)]
        params |= {"feature_fraction": share(0.2)} if kernels is None else {"learners": "listwise", "kernels": kernels}
    return name, params
