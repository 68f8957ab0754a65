"""Breaks of the comparison with other libraries."""

from typing import Any

import numpy as np

from experiments.breaks.clicks import anywhere
from experiments.breaks.mutant import Mutant, after, always, give

HERE, ONNX = "experiments.quality", "placet.rank.saving.onnx_export"
LINEAR = 'LinearRanker("pl-partition")'


def at_random(scorer: Any, *_: Any) -> Any:
    """Scores that know nothing of the rows."""
    return lambda queries: np.random.default_rng(0).normal(size=len(queries.grade))


def as_before(_: Any) -> Any:
    """The default of trees up to 18 November 2026."""
    from experiments.quality.defaults import BEFORE_NAME, METHODS

    return METHODS[BEFORE_NAME]


def leaf_wise(_: Any) -> Any:
    """The default, with LightGBM's trees."""
    from experiments.quality.defaults import of_placet
    from placet.rank import TreeRanker

    return of_placet(lambda: TreeRanker(backend="lightgbm"))


def first_leaf_only(best_split: Any) -> Any:
    """Splits of a level that are chosen by its first leaf alone."""
    return lambda counts, n_bins, sign, *rest: best_split(counts, n_bins, sign, *(x[:1] for x in rest[:5]), *rest[5:])


def unweighted(weighted_sum: Any) -> Any:
    """A blend whose graph adds the scores of its members as they are."""
    return lambda graph, columns: weighted_sum(graph, [(name, kind, 1.0) for name, kind, _ in columns])


BREAKS = [
    Mutant("quality.defaults", "the default as before", f"{HERE}.defaults:METHODS[TreeRanker()]", as_before),
    Mutant("quality.defaults", "trees are leaf-wise", f"{HERE}.defaults:METHODS[TreeRanker()]", leaf_wise),
    Mutant(
        "quality.defaults",
        "a level is split for its first leaf",
        "placet.kernels.rank.symmetric_splits:best_split",
        first_leaf_only,
    ),
    Mutant("quality.defaults", "scores at random", f"{HERE}.defaults:METHODS[TreeRanker()]", after(at_random)),
    Mutant("quality.defaults", "steps as long as lists", "placet.rank.trees.tree_ranker:FARTHEST", give(np.inf)),
    Mutant("quality.folds", "Placet's scores at random", f"{HERE}.folds:placet_fit", after(at_random)),
    Mutant("quality.folds", "parts do not rotate", f"{HERE}.folds:autorank", always(rotate=False)),
    Mutant("quality.folds", "one ranker for the blend", f"{HERE}.folds:autorank", always(blend=4)),
    Mutant(
        "quality.letor",
        "Placet's scores at random",
        f"{HERE}.fits:METHODS[Placet]",
        lambda pair: (pair[0], after(at_random)(pair[1])),
    ),
    Mutant("quality.serving", "members of a graph not weighted", f"{ONNX}:OnnxGraph.weighted_sum", unweighted),
    Mutant(
        "quality.serving",
        "thresholds of a graph moved",
        f"{ONNX}:comparisons",
        after(lambda found, *_: (found[0], found[1] + 0.01)),
    ),
    Mutant(
        "quality.serving",
        "scores at random",
        "placet.rank.search.blend:Blend._scores",
        after(lambda s, *_: np.random.default_rng(0).normal(size=len(s))),
    ),
    Mutant(
        "quality.label_orders",
        "a network that hardly learns",
        "placet.rank.multilabel.label_ranker:LabelRanker._rates",
        give(lambda self: (1e-6,)),
    ),
    Mutant(
        "quality.label_orders",
        "features in their own units",
        "placet.rank.multilabel.feature_units:DENSE",
        give(np.inf),
    ),
    Mutant("quality.label_orders", "worst first", f"{HERE}.label_orders:METHODS[{LINEAR}]", after(lambda s, *_: -s)),
    Mutant("quality.msl_size", "trees at random", f"{HERE}.msl_size:GRADE_METHODS[TreeRanker()]", after(at_random)),
    Mutant("quality.msl_size", "positions forgotten", f"{HERE}.msl_size:fit_clicks", always(debias=False)),
    Mutant("quality.msl_size", "clicks on any row", f"{HERE}.msl_size:clicks", after(anywhere)),
    Mutant("quality.letor", "one ranker for the blend", f"{HERE}.letor:autorank", always(blend=1)),
    Mutant(
        "quality.letor",
        "rankers blended in their own units",
        "placet.rank.search.candidate_search:spread",
        after(lambda unit, *_: 1.0),
    ),
]
