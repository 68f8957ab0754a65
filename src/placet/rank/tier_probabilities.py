"""Probabilities of the first tier and of pairs under models over ordered partitions, where rows are drawn in tiers."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data.arrays import Floats, Ints
from placet.kernels.losses import pmop_exact, softmax
from placet.kernels.rank import subset_pairs, tier_pairs as kernels
from placet.losses import LOSSES

MOST_ROWS = 1000
"""Longest list for probabilities of pairs by sums: a table of as many rows and columns, computed once."""

MOST_ROWS_BY_MEANS = 18
"""Longest list for probabilities of pairs by means: 3^18 steps, about a second."""


def stage_potential(loss: str) -> str | None:
    """How the probability of a tier depends on its scores: by their "sums" or "means"; None for other models."""
    return LOSSES[loss].potential if loss in LOSSES else None


def refuse_stages(loss: str, params: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` if stages differ in the fitted model, so that the formulas do not apply."""
    given = [name for name in ("stage_scale", "stage_weight") if params.get(name) is not None]
    if given:
        raise ValueError(
            f"loss {loss!r} with {given[0]}={params[given[0]]!r} has no probabilities of rows and pairs; fit without "
            f"{given[0]}"
        )


def first_shares(s: Floats, offsets: NDArray[np.int64], loss: str) -> Floats:
    """E[1_i / |S|] (rows,), S the first tier of the row's list: P(first), the rows of the first tier drawing lots.

    By sums: p_i E[1 / m] + (1 - p_i) E[(m - 1) / m] / (N - 1), p the softmax of the list's scores and P(m) proportional
    to binom(N, m).  By means: O(N^3), at most 1,000 rows.

    >>> first_shares(np.log([2.0, 1.0]), np.array([0, 2]), "pmop-fd").round(6)  # 2/3 (2/3, 1/3) + 1/3 (1/2, 1/2)
    array([0.611111, 0.388889])
    """
    out = np.zeros(len(s))
    for a, b in pairwise(offsets):
        if b == a:
            continue
        if stage_potential(loss) == "means":
            _refuse_long(b - a, pmop_exact.MOST_ROWS)
            order = a + np.argsort(-s[a:b], kind="stable")
            share = np.empty(b - a)
            pmop_exact.subset_moments(s[order], share, np.empty(b - a))
            out[order] = share
        else:
            softmax.softmax(s, a, b, out)
            alone = _mean_inverse_size(b - a)
            out[a:b] = out[a:b] * alone + (1 - out[a:b]) * (1 - alone) / max(b - a - 1, 1)
    return out


def _mean_inverse_size(n: int) -> float:
    """E[1 / m] for P(m) proportional to binom(n, m), m = 1..n."""
    from scipy.special import gammaln

    m = np.arange(1, n + 1)
    log = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    weight = np.exp(log - log.max())
    return float((weight / m).sum() / weight.sum())


def pair_outcomes(s: Floats, i: Ints, j: Ints, loss: str) -> tuple[Floats, Floats]:
    """P(row i of the list above row j), P(below), for arrays of rows; the rest is P(in one tier).

    Both depend on all rows of the list: the more there are, the more often a row is drawn with another's tier.  By
    sums: O(nodes (N^2 + N pairs)), with at most 1,000 rows.  By means: O(3^N), with at most 18, as the probability of
    each set of remaining rows has a normalizer of its own.

    >>> i, j = np.array([0]), np.array([1])
    >>> [p.round(6).tolist() for p in pair_outcomes(np.zeros(2), i, j, "pmop-fd")]
    [[0.333333], [0.333333]]
    >>> [p.round(6).tolist() for p in pair_outcomes(np.array([1.0, 0.0]), i, j, "pmop-exact")]  # e : 1 : sqrt(e)
    [[0.50648], [0.186324]]
    """
    n = len(s)
    if stage_potential(loss) == "means":
        _refuse_long(
            n,
            MOST_ROWS_BY_MEANS,
            "pairs of rows under the general state sum over all sets of rows that may remain, 3^rows steps",
            "give the best rows of the list, or fit with pmop-fd or pl-partition",
        )
        order = np.argsort(-s, kind="stable")
        table, place = np.empty((n, n)), np.empty(n, np.int64)
        subset_pairs.pairs_above(np.ascontiguousarray(s[order], np.float64), table)
        place[order] = np.arange(n)
        return table[place[i], place[j]], table[place[j], place[i]]
    _refuse_long(n, MOST_ROWS)
    apart, ahead = _laws(n)
    pair, back = np.unique(np.stack([np.minimum(i, j), np.maximum(i, j)]), axis=1, return_inverse=True)
    out = np.zeros((pair.shape[1], 2))
    kernels.pair_sums(np.ascontiguousarray(s, np.float64), pair[0], pair[1], apart, ahead, out)
    apart_k, ahead_k = out[back.ravel()].T
    lead = np.tanh((s[i] - s[j]) / 2) * ahead_k
    return (apart_k + lead) / 2, (apart_k - lead) / 2


@lru_cache(maxsize=64)
def _laws(n: int) -> tuple[Floats, Floats]:
    apart, ahead = np.zeros((n + 1, n)), np.zeros((n + 1, n))
    kernels.pair_laws(n, apart, ahead)
    return apart[n], ahead[n]


def _refuse_long(
    n: int,
    most: int,
    what: str = "probabilities under models over ordered partitions",
    way_out: str = "give the best rows of the list, or fit with pl-partition",
) -> None:
    if n > most:
        raise ValueError(f"a list has {n} rows; {what}, at most {most} rows: {way_out}")
