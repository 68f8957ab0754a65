"""The candidates of ``autorank``: a fixed list, and random draws."""

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
"""Settings of a listwise second stage over any base: means of two kernels; validation may prefer the base alone."""

LIBRARY: Mapping[str, Any] = {"n_trees": 300, "backend": "lightgbm"}
"""The trees of the search: leaf-wise, each leaf with a split of its own."""

DRAWN: Mapping[str, Any] = {**LIBRARY, "learning_rate": 0.05, "leaves": 15, "feature_fraction": 0.5, "subsample": 0.7}
"""Randomized trees: each is grown on half of the features and most of the rows."""

FEWER: Mapping[str, Any] = {**DRAWN, "feature_fraction": 0.3}
"""The same with fewer features per tree, for listwise features, which turn one feature into three."""

TO_NDCG: Mapping[str, Any] = {"loss_params": {"stage_weight": "dcg"}}
"""Weigh each stage of a likelihood as NDCG weighs its place."""

NORMED: Mapping[str, Any] = {"loss_params": {"norm": True}}
"""LambdaRank with LightGBM's two additional normalizing factors."""

SHORT_LIST: tuple[Candidate, ...] = (
    ("linear", {"loss": "pmop-fd", "l2": 1e-3}),
    ("trees", {"loss": "pmop-fd", **DRAWN}),
    ("linear", {"loss": "pl-partition", "l2": 1e-2, **TO_NDCG}),
    ("trees", {"loss": "xendcg", **DRAWN}),
    ("listwise", {"base": ("linear", {"loss": "pmop-fd", "l2": 1e-2})}),
    ("forest", {"loss": "xendcg", "n_trees": 100, "leaves": 256}),
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
"""The default candidates of ``autorank``, in order: first very different kinds (linear, trees, listwise features, a
forest, boosted features) with likelihoods, cross entropies, pairwise losses and losses aimed at NDCG; last a listwise
second stage.  The first 20 alternate between trees and others so that each of four folds gets both with ``rotate``."""

LOSSES_TO_DRAW = {
    "linear": (
        "pmop-fd", "pl-partition", "bregman-ce", "attrank", "ranknet", "xendcg", "cosine", "approx-ndcg", "pl-topk",
    ),
    "trees": (
        "pmop-fd", "pl-partition", "attrank", "ranknet", "xendcg", "lambdarank", "lambdaloss", "neural-ndcg", "pl-topk",
    ),
    "booster": ("pmop-fd", "pl-partition", "bregman-ce", "attrank", "ranknet"),
}  # fmt: skip
"""Losses that ``draw_candidates`` chooses from, by ranker."""

LISTWISE = 0.25  # probability that a linear ranker or trees also get features of the list


def draw_candidates(n: int, random_state: int | np.random.Generator = 0) -> list[Candidate]:
    """Draw ``n`` random candidates: linear, trees or boosted columns, each with a random loss and settings.

    Penalties, rates and sizes are log-uniform, fractions uniform.  Boosted columns are features, or (twice as often)
    their products with similarities to the rest of the list.  Half of the likelihoods of linear rankers and trees, and
    all orders of the top, weigh their stages as NDCG does; a quarter of linear rankers and trees also get features of
    the list.  A larger ``n`` only appends candidates.

    >>> draw_candidates(1, 34)
    [('linear', {'loss': 'pmop-fd', 'l2': 0.00094})]
    """
    return list(islice(random_candidates(random_state), n))


def random_candidates(random_state: int | np.random.Generator = 0) -> Iterator[Candidate]:
    """Yield random candidates forever; see ``draw_candidates``."""
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
    staged = params["loss"] in ("pmop-fd", "pl-partition") and name != "booster" and rng.integers(2)
    if staged or params["loss"] == "pl-topk":
        params |= TO_NDCG
    if params["loss"] == "lambdarank":
        params |= {"loss_params": {"norm": bool(rng.integers(2))}}
    if name == "linear":
        params |= {"l2": between(1e-4, 1)}
    elif name == "trees":
        params |= {"learning_rate": between(0.02, 0.2), "leaves": int(between(4, 33)), "min_rows": int(between(5, 101))}
        params |= {"l2": between(0.1, 100), "subsample": share(0.5), "feature_fraction": share(0.2), **LIBRARY}
    else:
        params |= {"learning_rate": between(0.1, 1), "subsample": share(0.5)}
        kernels = (None, ("cosine",), ("gaussian",))[rng.integers(3)]
        params |= {"feature_fraction": share(0.2)} if kernels is None else {"learners": "listwise", "kernels": kernels}
    return name, params
