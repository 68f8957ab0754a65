"""Diversity metrics: rows are judged for several subtopics of each list's query.

``judged`` (rows, subtopics), dense or SciPy sparse: above 0 if the row is relevant to the subtopic.  Columns are
numbered within a list (subtopic 0, 1, ... of its query), so lists share them.  Conventions are those of ndeval, the
tool of the TREC Web tracks: judgments are binary, and subtopics without a relevant row are ignored.  Tied scores: the
exact expectation over their orders.  A score of -inf marks a judged row that was not retrieved: it counts only in the
ideal.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data.arrays import Floats, refuse_masked_or_complex
from placet.data.engines.memory import refuse_dense
from placet.data.gains import discounts
from placet.metrics.ranking import Ranking, checked_depth, rank
from placet.metrics.relevance import RowScores, cascaded_sum, discounted_sum, per_list_total, ratio


def alpha_ndcg(
    s: RowScores,
    judged: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    alpha: float = 0.5,
    empty: float = np.nan,
) -> Floats:
    """alpha-nDCG: sum_{i<=k} (1/log2(1 + i)) sum_t J_it (1 - alpha)^(rows above i relevant to t), over its ideal.

    The greedy ideal puts the row with the largest gain at each place; among equal gains, the one with the
    lexicographically largest judgments.  It can fall short of the best order, so values slightly above 1 are possible.
    O(subtopics (rows log rows + k rows)).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> alpha_ndcg([3.0, 2.0, 1.0], [[1, 0], [1, 0], [0, 1]], [0, 3], 2).round(4)  # (1 + 0.5/log2 3) / (1 + 1/log2 3)
    array([0.8066])
    """
    from placet.kernels import metrics as kernels  # see ``relevance.cascaded_sum``

    ranking, dense = _dense_judgments(s, judged, offsets, alpha)
    d = discounts(checked_depth(k, ranking.offsets), "log2")
    best = np.zeros(ranking.n_lists)
    kernels.greedy_alpha_dcg(dense, ranking.offsets, float(alpha), d, best)
    return ratio(_novel_gain(ranking, dense, alpha, d), best, empty)


def err_ia(
    s: RowScores,
    judged: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    alpha: float = 0.5,
    empty: float = np.nan,
) -> Floats:
    """Intent-aware ERR: sum_{i<=k} (1/i) sum_t J_it (1 - alpha)^(rows above i relevant to t), normalized.

    The divisor is T sum_{i<=k} (1 - alpha)^(i-1)/i, the value of k rows relevant to all subtopics, where T is the
    number of subtopics with a relevant row in the list (ndeval's collection-independent normalization, here also at
    k = 1, which ndeval omits).  Without k the depth is the number of rows of the list.  O(subtopics rows log rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> err_ia([3.0, 2.0, 1.0], [[1, 0], [1, 0], [0, 1]], [0, 3], 2)  # (1 + 0.5/2) / (2 (1 + 0.5/2))
    array([0.5])
    """
    ranking, dense = _dense_judgments(s, judged, offsets, alpha)
    d = discounts(checked_depth(k, ranking.offsets), "reciprocal")
    n_topics = np.zeros(ranking.n_lists)
    for column in dense.T:
        n_topics += per_list_total(column, ranking.offsets) > 0
    depth = np.diff(ranking.offsets) if k is None else np.full(ranking.n_lists, int(k))
    i = np.arange(1.0, depth.max(initial=0) + 1.0)
    full = np.append(0.0, np.cumsum((1.0 - alpha) ** (i - 1.0) / i))
    return ratio(_novel_gain(ranking, dense, alpha, d), n_topics * full[depth], empty)


def _dense_judgments(
    s: RowScores, judged: ArrayLike, offsets: ArrayLike, alpha: float
) -> tuple[Ranking, NDArray[np.uint8]]:
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is {alpha}; it must be in [0, 1]")
    ranking = rank(s, offsets)
    if hasattr(judged, "toarray"):
        refuse_dense(judged, "give fewer rows or subtopics at a time")
        judged = judged.toarray()
    refuse_masked_or_complex(judged)
    given = np.asarray(judged)
    if given.ndim != 2 or len(given) != len(ranking.s):
        raise ValueError(
            f"judgments have shape {given.shape}; they must be (rows, subtopics) with {len(ranking.s)} rows"
        )
    nan = np.isnan(given.astype(np.float64)).any(axis=1)
    if nan.any():
        raise ValueError(
            f"row {int(np.argmax(nan))}: a judgment is nan ({int(nan.sum())} such rows); use 0 for not relevant"
        )
    return ranking, np.ascontiguousarray(given > 0, dtype=np.uint8)


def _novel_gain(ranking: Ranking, dense: NDArray[np.uint8], alpha: float, d: Floats) -> Floats:
    """sum_i d_i sum_t J_it (1 - alpha)^(rows above i relevant to t): for each t a cascade of alpha J, over alpha."""
    total = np.zeros(ranking.n_lists)
    for column in dense.T:
        if not column.any():
            continue
        if alpha == 0:
            total += discounted_sum(ranking, column.astype(np.float64), d)
        else:
            total += cascaded_sum(ranking, alpha * column, d) / alpha
    return total
