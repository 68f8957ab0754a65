"""Breaks of the experiments on partitioned preferences."""

from typing import Any

import numpy as np

from experiments.breaks.mutant import Mutant, after, before, give, loss, preset

EXACT = "placet.losses:LOSSES[pl-partition]"
EVALUATE = "placet.losses.loss:Bound.evaluate"
FOLDER = "experiments.pl_partition"


def bent(found: tuple[float, np.ndarray, Any], *_: Any) -> tuple[float, np.ndarray, Any]:
    value, grad, slopes = found
    return value, np.where(grad > 0, 1.2 * grad, grad), slopes


def coarse(gaps: Any, n: Any, tol: Any, *rest: Any) -> tuple[Any, ...]:
    return gaps, n, 0.1, *rest


def tables(script: str) -> list[Mutant]:
    return [
        Mutant(script, "lower bound for the exact loss", EXACT, loss("pl-lower-bound")),
        Mutant(script, "RankSVM for RankNet", f"{FOLDER}.label_runs:METHODS[R-Net]", give("ranksvm")),
        Mutant(script, "a gradient 20 % off where positive", EVALUATE, after(bent)),
        Mutant(script, "labels mixed", f"{FOLDER}.label_runs:simulated", after(mixed)),
    ]


def mixed(documents: Any, *_: Any) -> Any:
    """Labels of other documents."""
    order = np.random.default_rng(0).permutation(documents.Y.shape[0])
    return type(documents)(documents.X, documents.Y[order])


BREAKS = [
    Mutant("pl_partition.figure1", "lower bound for the exact loss", EXACT, loss("pl-lower-bound")),
    Mutant("pl_partition.figure1", "a gradient 20 % off where positive", EVALUATE, after(bent)),
    Mutant(
        "pl_partition.figure1", "tiers read upside down", f"{FOLDER}.figure1:grades", after(lambda g, *_: g.max() - g)
    ),
    Mutant("pl_partition.figure2", "lower bound for the exact loss", EXACT, loss("pl-lower-bound")),
    Mutant("pl_partition.figure2", "a gradient 20 % off where positive", EVALUATE, after(bent)),
    Mutant("pl_partition.figure2", "tolerance forgotten", EXACT, preset(tol=0.1)),
    Mutant("pl_partition.figure4", "lower bound for the exact loss", EXACT, loss("pl-lower-bound")),
    Mutant(
        "pl_partition.figure4",
        "tolerance forgotten",
        "placet.kernels.losses.quadrature:log_probability",
        before(coarse),
    ),
    Mutant("pl_partition.figure4", "labels mixed", f"{FOLDER}.label_runs:simulated", after(mixed)),
    Mutant("pl_partition.labels_scale", "lower bound for the exact loss", EXACT, loss("pl-lower-bound")),
    Mutant(
        "pl_partition.labels_scale",
        "no other labels drawn",
        "placet.rank.multilabel.label_losses:draw_others",
        after(lambda drawn, *_: drawn[:0]),
    ),
    Mutant("pl_partition.labels_scale", "a gradient 20 % off where positive", EVALUATE, after(bent)),
    *tables("pl_partition.table1"),
    *tables("pl_partition.table4"),
]
