"""Fusion of rank lists by their scores: CombSUM and CombMNZ.  Reciprocal rank fusion is in ``positional``."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from placet.aggregate.places import ballots_of, listed_weight, sum_by_item
from placet.data import DataError, Rankings
from placet.data.arrays import MOST_WEIGHT, Floats
from placet.data.errors import one_of

Normalization = Literal["min-max", "sum", "none"]

NORMALIZATIONS: dict[str, Callable[[Floats, Floats, Floats, Floats], Floats]] = {
    "min-max": lambda x, low, high, mean: np.divide(x - low, high - low, out=np.full(len(x), 0.5), where=high > low),
    "sum": lambda x, low, high, mean: np.divide(x - low, mean - low, out=np.ones(len(x)), where=mean > low),
    "none": lambda x, low, high, mean: x,
}
"""Name -> normalization of the scores on a ballot: to 0..1 (0.5 if all are equal); to minimum 0 and mean 1 (1 if all
are equal); none."""


def combsum(data: Rankings, normalize: Normalization = "min-max") -> Floats:
    """CombSUM: the weighted sum of normalized scores over ballots; an unlisted item gains nothing.  O(rows).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> run = {"q": [1, 1, 2, 2], "doc": ["a", "b", "a", "b"], "s": [9.0, 1.0, 2.0, 1.0]}
    >>> combsum(Rankings.from_scores(run, ballot="q", item="doc", score="s"))
    array([2., 0.])
    """
    rankings = ballots_of(data, "combsum")
    value = _normalized_scores(rankings, normalize)
    return sum_by_item(rankings.item, rankings.weight[rankings.ballot] * value, rankings.n_items)


def combmnz(data: Rankings, normalize: Normalization = "min-max") -> Floats:
    """CombMNZ: CombSUM times the weight of ballots that list the item.  O(rows).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> run = {"q": [1, 1, 2, 2], "doc": ["a", "b", "a", "b"], "s": [9.0, 1.0, 2.0, 1.0]}
    >>> combmnz(Rankings.from_scores(run, ballot="q", item="doc", score="s"))
    array([4., 0.])
    """
    total, weight = combsum(data, normalize), listed_weight(ballots_of(data, "combmnz"))
    if float(np.abs(total).max(initial=0.0)) > MOST_WEIGHT / max(float(weight.max(initial=0.0)), 1.0):
        raise DataError(
            f"'combmnz' multiplies sums of scores by the weight of the lists, and with a weight of {weight.max():.3g} "
            "the products are beyond floating-point numbers; divide all weights by a common factor"
        )
    return total * weight


def _normalized_scores(rankings: Rankings, normalize: str) -> Floats:
    one_of(normalize, tuple(NORMALIZATIONS), "normalize")
    if rankings.score is None:
        raise DataError(
            "these ballots keep no scores; Rankings.from_scores keeps them, and 'rrf' or 'borda' need places only"
        )
    if not len(rankings.item):
        return np.zeros(0)
    full = np.diff(rankings.offsets) > 0
    starts = rankings.offsets[:-1][full]
    number = np.cumsum(full)[rankings.ballot] - 1
    low, high = (reduce.reduceat(rankings.score, starts)[number] for reduce in (np.minimum, np.maximum))
    mean = (np.add.reduceat(rankings.score, starts) / np.diff(rankings.offsets)[full])[number]
    return NORMALIZATIONS[normalize](rankings.score, low, high, mean)
