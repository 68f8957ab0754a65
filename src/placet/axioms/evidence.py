"""Statistical evidence in pairwise votes: which majorities are beyond chance, tested for all pairs jointly."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from placet.axioms.profiles import PairWeights
from placet.data.arrays import Floats

LEVEL = 0.95
"""Familywise confidence level at which a majority is beyond chance."""


def sign_test(wins: Floats, losses: Floats) -> Floats:
    """Two-sided p-value of the sign test: the probability of an at least equally uneven split between equal items.

    2 P(X >= max(wins, losses)), X ~ binomial(wins + losses, 1/2), at most 1; each unit of weight counts as one vote,
    and weights need not be integers (P(X >= k) = I_{1/2}(k, n - k + 1)).

    >>> sign_test([1.0, 5.0, 3.0], [0.0, 0.0, 3.0])
    array([1.    , 0.0625, 1.    ])
    """
    more, less = np.maximum(wins, losses), np.minimum(wins, losses)
    tail = np.ones(np.shape(more))
    some = more > 0
    tail[some] = betainc(more[some], less[some] + 1, 0.5)
    return np.minimum(2 * tail, 1.0)


def beyond_chance(pairs: PairWeights, level: float = LEVEL) -> NDArray[np.bool_]:
    """(n, n): whether row leads column by more than chance, with Holm's correction over all compared pairs.

    Ties are no evidence for either side.  O(n^2 log n).
    """
    n = len(pairs.wins)
    i, j = np.triu_indices(n, 1)
    wins, losses = pairs.wins[i, j], pairs.wins[j, i]
    asked = wins + losses > 0
    i, j, wins, losses = i[asked], j[asked], wins[asked], losses[asked]
    p = sign_test(wins, losses)
    order = np.argsort(p, kind="stable")
    passed = p[order] <= (1 - level) / (len(p) - np.arange(len(p)))
    sure = order[np.cumprod(passed).astype(bool)]
    found = np.zeros((n, n), bool)
    ahead = wins[sure] > losses[sure]
    found[np.where(ahead, i[sure], j[sure]), np.where(ahead, j[sure], i[sure])] = True
    return found
