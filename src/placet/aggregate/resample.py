"""Bootstrap by multinomial counts: the same ballots or votes with resampled weights."""

from dataclasses import replace

import numpy as np

from placet.data import Comparisons, Rankings
from placet.data.arrays import Floats

MOST_COUNTS = 2**53


def resample(data: Rankings | Comparisons, rng: np.random.Generator) -> Rankings | Comparisons:
    """The data with resampled counts: one multinomial draw over ballots (of each instance), or over wins, losses and
    ties of pairs.
    """
    if isinstance(data, Rankings):
        weight = data.weight.copy()
        code = np.zeros(len(data), np.int64) if data.instance is None else data.instance
        for k in np.unique(code):
            weight[code == k] = resampled_counts(weight[code == k], rng)
        return replace(data, weight=weight)
    cells = resampled_counts(np.concatenate([data.wins_i, data.wins_j, data.ties]), rng)
    wins_i, wins_j, ties = np.split(cells, 3)
    return replace(data, wins_i=wins_i, wins_j=wins_j, ties=ties)


def resampled_counts(weight: Floats, rng: np.random.Generator) -> Floats:
    """Counts of a sample of the same size with replacement.

    Integer weights are counts: sum(weight) draws in proportion to them.  With other weights (or sums beyond 2^53), rows
    with a positive weight are resampled as units that keep their weight.
    """
    total = weight.sum()
    if are_counts(weight):
        return rng.multinomial(int(total), weight / total).astype(np.float64) if total > 0 else weight
    present = weight > 0
    drawn = np.zeros(len(weight))
    drawn[present] = rng.multinomial(present.sum(), np.full(present.sum(), 1 / present.sum()))
    return weight * drawn


def are_counts(weight: Floats) -> bool:
    """Whether weights are integers, so that a row of weight 3 represents three identical ones; else rows are units."""
    return bool(weight.sum() <= MOST_COUNTS and np.array_equal(weight, np.floor(weight)))
