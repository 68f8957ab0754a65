"""Breaks of the experiment on cumulative distribution networks."""

from typing import Any

import numpy as np

from experiments.breaks.mutant import Mutant, after, before

FIGURE4 = "structrank.figure4"
RANKER = "placet.rank.listwise.structrank"


def disconnected(graph: Any, s: Any, w: Any, connections: Any, *rest: Any) -> tuple[Any, ...]:
    return graph, s, w, "none" if connections == "full" else connections, *rest


def fixed(theta: np.ndarray, gradient: np.ndarray, *rest: Any) -> tuple[Any, ...]:
    """w1 and w2 stay where they were."""
    return theta, np.append(gradient[:-2], [0.0, 0.0]), *rest


def no_scores(found: tuple[Any, Any], *_: Any) -> tuple[Any, Any]:
    return np.zeros_like(found[0]), found[1]


def bent(found: tuple[float, np.ndarray, np.ndarray], *_: Any) -> tuple[float, np.ndarray, np.ndarray]:
    value, grad, slopes = found
    return value, np.where(grad > 0, 1.2 * grad, grad), slopes


BREAKS = [
    Mutant(FIGURE4, "disconnected for connected", f"{RANKER}:Graph.loss", before(disconnected)),
    Mutant(FIGURE4, "weights never learned", f"{RANKER}:feasible_step", before(fixed)),
    Mutant(FIGURE4, "Nadaraya-Watson returns 0", f"{RANKER}:NadarayaWatson.forward", after(no_scores)),
    Mutant(
        FIGURE4,
        "nothing is learned",
        f"{RANKER}:feasible_step",
        after(lambda found, theta, gradient, rate, *_: (theta, rate)),
    ),
    Mutant(FIGURE4, "a gradient 20 % off where positive", "placet.losses.loss:Bound.evaluate", after(bent)),
]
