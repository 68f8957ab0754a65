"""Breaks of the experiments on the multinomial preference model and on fusion."""

from typing import Any

import numpy as np

from experiments.breaks.mutant import Mutant, after, always, before

TABLE1, TABLES2_3, FUSION, SUPERVISED = "mpm.table1", "mpm.tables2_3", "mpm.fusion", "mpm.supervised"
NET_WINS = "placet.data.rankings:Rankings.net_wins"
COMPARISONS = "placet.data.rankings:Rankings.to_comparisons"


def once_each(rankings: Any, *_: Any) -> tuple[Any, str]:
    return rankings, "binary"


def all_one(adherence: dict, *_: Any) -> dict:
    return dict.fromkeys(adherence, 1.0)


def same_weights(found: tuple[np.ndarray, Any], *_: Any) -> tuple[np.ndarray, Any]:
    return np.ones_like(found[0]), found[1]


def alike(found: tuple[Any, np.ndarray, Any], *_: Any) -> tuple[Any, np.ndarray, Any]:
    """Variances are never learned."""
    return found[0], np.full_like(found[1], 0.5), found[2]


BREAKS = [
    Mutant(TABLE1, "adherence 1 for all", "experiments.mpm.table1:supervised_adherence", after(all_one)),
    Mutant(TABLE1, "binary counts for differences in MPM", NET_WINS, before(once_each)),
    Mutant(TABLE1, "binary counts for differences in Bradley-Terry", COMPARISONS, before(once_each)),
    Mutant(
        TABLE1,
        "weights of engines never learned",
        "placet.aggregate.distance.cps:CosetPermutation._learn_weights",
        after(same_weights),
    ),
    Mutant(TABLES2_3, "binary counts for differences in MPM", NET_WINS, before(once_each)),
    Mutant(TABLES2_3, "variances never learned", "placet.aggregate.mpm.multinomial_preference:variances", after(alike)),
    Mutant(
        TABLES2_3,
        "Bradley-Terry for MPM",
        "experiments.mpm.tables2_3:fitted",
        after(lambda models, *_: models | {"MPM": _with_scores(models["MPM"], models["Bradley-Terry"].theta_)}),
    ),
    Mutant(FUSION, "weights never learned", "experiments.mpm.fusion:weights", after(lambda w, *_: np.ones_like(w))),
    Mutant(
        FUSION,
        "ranks forgotten, listed or not",
        "experiments.mpm.fusion:points",
        after(lambda x, *_: (x > 0).astype(float)),
    ),
    Mutant(FUSION, "the worst choice is kept", "experiments.mpm.fusion:value", after(lambda value, *_: -value)),
    Mutant(
        SUPERVISED,
        "labels forgotten",
        "experiments.mpm.supervised:queries",
        after(lambda q, *_: type(q)(q.X, np.random.default_rng(0).permutation(q.grade), q.offsets)),
    ),
    Mutant(
        SUPERVISED,
        "all engines take the features of the first",
        "placet.rank.fusion:fusion_features",
        before(lambda rank, offsets: (np.repeat(np.asarray(rank)[:, 4:5], np.shape(rank)[1], axis=1), offsets)),
    ),
    Mutant(
        SUPERVISED,
        "two iterations of training",
        "placet.rank.linear.linear_ranker:lbfgs",
        always(max_iter=1),
    ),
]


def _with_scores(model: Any, theta: np.ndarray) -> Any:
    model.theta_ = theta
    return model
