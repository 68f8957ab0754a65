"""Breaks of the experiments on models over ordered partitions."""

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.breaks.mutant import Mutant, after, always, before, give, loss

LOSSES = "placet.losses:LOSSES"
TABLE1, TABLE2 = "pmop.table1", "pmop.table2"


def random_products(chosen: Any, *_: Any) -> Any:
    """As many products, of features at random."""
    n = len(chosen.mean)
    pairs = np.sort(np.random.default_rng(5).integers(0, n, chosen.pairs.shape), axis=1)
    return replace(chosen, pairs=pairs[(pairs[:, 0] > 3) | (pairs[:, 0] == pairs[:, 1])])


def no_products(chosen: Any, *_: Any) -> Any:
    return replace(chosen, pairs=chosen.pairs[:0])


def bent(found: tuple[float, np.ndarray, Any], *_: Any) -> tuple[float, np.ndarray, Any]:
    """A fifth too much wherever the gradient is above 0."""
    value, grad, slopes = found
    return value, np.where(grad > 0, 1.2 * grad, grad), slopes


def squared(times: tuple[float, float], loss: str, length: int, *_: Any) -> tuple[float, float]:
    """Times that grow by the length once more."""
    return times[0] * length**1.5, times[1] * length**1.5


BREAKS = [
    Mutant(TABLE1, "ListMLE for PMOP-FD", f"{LOSSES}[pmop-fd]", loss("listmle")),
    Mutant(
        TABLE1, "Gibbs for Metropolis-Hastings", "experiments.pmop.table1:METHODS[PMOP-MH]", give(("pmop-gibbs", {}))
    ),
    Mutant(
        TABLE1,
        "no Hastings correction",
        "experiments.pmop.table1:METHODS[PMOP-MH]",
        give(("pmop-mh", {"as_published": True})),
    ),
    Mutant(TABLE1, "Davidson for Rao-Kupper", f"{LOSSES}[rao-kupper]", loss("davidson")),
    Mutant(TABLE1, "PMOP-FD for pmop-exact", f"{LOSSES}[pmop-exact]", loss("pmop-fd")),
    Mutant(TABLE1, "lower bound for pl-partition", f"{LOSSES}[pl-partition]", loss("pl-lower-bound")),
    Mutant(
        TABLE1, "random second-order features", "placet.rank.feature_tables:Products.from_sums", after(random_products)
    ),
    Mutant(TABLE1, "no second-order features", "placet.rank.feature_tables:Products.from_sums", after(no_products)),
    Mutant(TABLE1, "gradients 20 % off where positive", "placet.losses.loss:Bound.evaluate", after(bent)),
    Mutant(
        TABLE1,
        "the ranker fits ListMLE where PMOP-FD is asked",
        "placet.rank.linear.linear_ranker:PenalizedLoss",
        before(lambda data, name, *rest: (data, "listmle" if name == "pmop-fd" else name, *rest)),
    ),
    Mutant(TABLE1, "four iterations of L-BFGS", "placet.rank.linear.linear_ranker:lbfgs", always(max_iter=4)),
    Mutant(TABLE2, "ListMLE for PMOP-FD", f"{LOSSES}[pmop-fd]", loss("listmle")),
    Mutant(TABLE2, "RankNet for Davidson's pairs", "experiments.pmop.table2:METHODS[PairTies-D]", give("ranknet")),
    Mutant(TABLE2, "lower bound for pl-partition", f"{LOSSES}[pl-partition]", loss("pl-lower-bound")),
    Mutant(TABLE2, "times that grow too fast", "experiments.pmop.table2:measured", after(squared)),
]
