"""Metrics of a ranking against graded or binary judgments of the same rows.

Every function takes ``s`` (rows,), ``grade`` (rows,), ``offsets`` (lists + 1,) and a depth ``k`` (None: the whole
list), and returns one value per list.  Common conventions:

- Tied scores: the exact expectation over all orders of the tied rows, so row order does not matter.
- A score of -inf marks a row that was not retrieved: it occupies no place but counts among the relevant rows and in the
  ideal.
- A list without relevant rows has the value ``empty``, NaN by default.
- ``compat`` follows the conventions of another package (``placet.metrics.CONVENTIONS``), which determine parameters
  left at None.  ``name`` (rows,) breaks ties under ``compat="trec_eval"``.
- Relevant means grade >= ``threshold``, or grade > 0 if it is None.
- ``s`` may be the ``Ranking`` of the scores, so that several metrics share one sort.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data.arrays import Floats, Ints
from placet.data.gains import Curve, discounts, gains, without_overflow
from placet.metrics.conventions import Convention, convention
from placet.metrics.ranking import Ranking, batches, checked_column, checked_depth, rank

RowScores = ArrayLike | Ranking


def ndcg(
    s: RowScores,
    grade: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    gain: str | Curve | None = None,
    discount: str | Curve | None = None,
    empty: float | None = None,
    compat: str | None = None,
    name: ArrayLike | None = None,
) -> Floats:
    """Normalized discounted cumulative gain: sum_{i<=k} g(r_i) d(i) over the same sum for the best order of all rows.

    By default g(r) = 2^r - 1 ("exp2"; also "linear", "log2" or a function of grades) and d(i) = 1/log2(1 + i) ("log2";
    also "letor", "reciprocal", "none" or a function of places 1, 2, ...).  Relevant means a gain above 0.
    O(rows log rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> ndcg([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4)  # (3/log2 3 + 1/2) / (3 + 1/log2 3)
    array([0.659])
    >>> ndcg([0.0, 0.0], [1, 0], [0, 2]).round(4)  # (1 + 1/log2 3) / 2: the mean of both orders
    array([0.8155])
    """
    conv = convention(compat, "ndcg")
    ranking = rank(s, offsets, conv.ties, name)
    grade = checked_column(grade, ranking, "grade")
    gain_of_row = without_overflow(gains(grade, conv.gain if gain is None else gain, clip=compat == "trec_eval"))
    places = checked_depth(k, ranking.offsets)
    d = discounts(places, conv.discount if discount is None else discount)
    best = ideal(gain_of_row, ranking.offsets, d)
    value = ratio(discounted_sum(ranking, gain_of_row, d), best, conv.empty if empty is None else empty)
    if compat == "letor" and k is not None:
        value[np.diff(ranking.offsets) < k] = 0.0  # LETOR's script prints no value beyond the last document
    return value


def average_precision(
    s: RowScores,
    grade: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    threshold: float | None = None,
    empty: float | None = None,
    compat: str | None = None,
    name: ArrayLike | None = None,
) -> Floats:
    """Average precision: sum over relevant rows at places i <= k of (relevant rows at places <= i)/i, over their total.

    With k the divisor is still the number of relevant rows, as in trec_eval; LightGBM and XGBoost divide by at most k.
    For a tied block of m rows, r relevant, after b rows with c relevant, the expectation is the sum over t = 1..m of
    r/m (c + 1 + (t - 1)(r - 1)/(m - 1)) / (b + t)  (McSherry and Najork 2008).  O(rows log rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> average_precision([3.0, 2.0, 1.0], [1, 0, 1], [0, 3]).round(4)  # (1/1 + 2/3) / 2
    array([0.8333])
    """
    conv = convention(compat, "average_precision")
    ranking = rank(s, offsets, conv.ties, name)
    places = checked_depth(k, ranking.offsets)
    if compat == "sklearn" and k is not None:
        raise ValueError(f"k is {k}; scikit-learn's average precision has no depth: leave k at None")
    if ranking.untied and compat != "sklearn":
        above = is_above(checked_column(grade, ranking, "grade"), conv.threshold if threshold is None else threshold)
        found_precision, total = _precision_at_hits(ranking, above, places)
        total = np.minimum(total, places) if compat in ("lightgbm", "xgboost") else total
        return ratio(found_precision, total, conv.empty if empty is None else empty)
    ranking, relevant, total = _relevance_of_rows(ranking, grade, offsets, conv, threshold, name)
    hits = block_sums(ranking, relevant)
    some = np.flatnonzero(hits)
    hits, list_of = hits[some], ranking.list_of[some]
    earlier = np.cumsum(hits) - hits
    found = np.bincount(list_of, weights=hits, minlength=ranking.n_lists)
    earlier -= (np.cumsum(found) - found)[list_of]
    if compat == "sklearn":  # a tied block is one step of the curve: every hit has the precision at the block's end
        share = hits * (earlier + hits) / (ranking.stop[some] - ranking.offsets[list_of])
    else:
        share = _expected_precision(ranking, hits, earlier, some, places)
    if compat in ("lightgbm", "xgboost"):
        total = np.minimum(total, places)
    return ratio(ranking.per_list(share, some), total, conv.empty if empty is None else empty)


def precision(
    s: RowScores,
    grade: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    threshold: float | None = None,
    empty: float | None = None,
    compat: str | None = None,
    name: ArrayLike | None = None,
) -> Floats:
    """Precision: relevant rows at places <= k, over k; without k, over the number of retrieved rows.

    Places beyond the end of a list count as irrelevant (XGBoost divides by the length of a shorter list).  O(rows log
    rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> precision([3.0, 2.0, 1.0], [1, 0, 1], [0, 3], 2)
    array([0.5])
    """
    conv = convention(compat, "precision")
    ranking, relevant, total = _relevance_of_rows(s, grade, offsets, conv, threshold, name)
    hits = discounted_sum(ranking, relevant, np.ones(checked_depth(k, ranking.offsets)))
    retrieved = ranking.per_list(ranking.stop - ranking.start)
    if k is None or compat == "xgboost":
        places = np.minimum(retrieved, np.inf if k is None else k)
    else:
        places = np.full(ranking.n_lists, float(k))
    value = ratio(hits, places, 0.0)
    default = 0.0 if compat == "xgboost" else conv.empty  # XGBoost: 0 here, 1 in its other metrics
    value[total == 0] = default if empty is None else empty
    return value


def recall(
    s: RowScores,
    grade: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    threshold: float | None = None,
    empty: float | None = None,
    compat: str | None = None,
    name: ArrayLike | None = None,
) -> Floats:
    """Recall: relevant rows at places <= k, over all relevant rows of the list.  O(rows log rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> recall([3.0, 2.0, 1.0], [1, 0, 1], [0, 3], 2)
    array([0.5])
    """
    conv = convention(compat, "recall")
    ranking, relevant, total = _relevance_of_rows(s, grade, offsets, conv, threshold, name)
    hits = discounted_sum(ranking, relevant, np.ones(checked_depth(k, ranking.offsets)))
    return ratio(hits, total, conv.empty if empty is None else empty)


def mrr(
    s: RowScores,
    grade: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    threshold: float | None = None,
    empty: float | None = None,
    compat: str | None = None,
    name: ArrayLike | None = None,
) -> Floats:
    """Reciprocal rank: 1/i for the first relevant row at a place i <= k, else 0; its mean over lists is MRR.

    In a tied block of m rows with r relevant, the first of these is at t with probability C(m - t, r - 1)/C(m, r).
    O(rows log rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> mrr([3.0, 2.0, 1.0], [0, 1, 1], [0, 3])
    array([0.5])
    >>> mrr([0.0, 0.0], [0, 1], [0, 2])  # (1 + 1/2) / 2
    array([0.75])
    """
    conv = convention(compat, "mrr")
    ranking, relevant, total = _relevance_of_rows(s, grade, offsets, conv, threshold, name)
    value = cascaded_sum(ranking, relevant, discounts(checked_depth(k, ranking.offsets), "reciprocal"))
    value[total == 0] = conv.empty if empty is None else empty
    return value


def err(
    s: RowScores,
    grade: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    max_grade: float | None = None,
    empty: float = np.nan,
) -> Floats:
    """Expected reciprocal rank: sum_{i<=k} V_i/i prod_{j<i} (1 - V_j), V = (2^r - 1)/2^max_grade.

    ``max_grade`` is the largest grade of the scale; None uses the largest grade passed, so set it if lists come in
    parts.  Tied rows: exact, by symmetric means of 1 - V.  Relevant means a grade above 0.  O(rows log rows), and
    O(m min(m, k, 42/mean V)) for a block of m tied rows.

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> err([3.0, 2.0], [1, 2], [0, 2]).round(4)  # 1/4 + 1/2 * 3/4 * 3/4
    array([0.5312])
    """
    ranking = rank(s, offsets)
    grade = checked_column(grade, ranking, "grade")
    top = grade.max(initial=0.0) if max_grade is None else float(max_grade)
    outside = (grade < 0) | (grade > top)
    if outside.any():
        at = int(np.argmax(outside))
        raise ValueError(
            f"row {at}: grade {grade[at]:g} is not in [0, {top:g}] ({int(outside.sum())} such rows); "
            "ERR needs grades from 0 to max_grade"
        )
    value = cascaded_sum(
        ranking, np.exp2(grade - top) - np.exp2(-top), discounts(checked_depth(k, ranking.offsets), "reciprocal")
    )
    value[per_list_total(grade > 0, ranking.offsets) == 0] = empty
    return value


def _relevance_of_rows(
    s: RowScores,
    grade: ArrayLike,
    offsets: ArrayLike,
    conv: Convention,
    threshold: float | None,
    name: ArrayLike | None,
) -> tuple[Ranking, Floats, Floats]:
    """Ranking, relevance of each row (1 or 0) and number of relevant rows in each list."""
    ranking = rank(s, offsets, conv.ties, name)
    relevant = is_relevant(checked_column(grade, ranking, "grade"), conv.threshold if threshold is None else threshold)
    return ranking, relevant, per_list_total(relevant, ranking.offsets)


def is_relevant(grade: Floats, threshold: float | None) -> Floats:
    """1.0 for relevant rows, else 0.0."""
    return is_above(grade, threshold).astype(np.float64)


def is_above(grade: Floats, threshold: float | None) -> NDArray[np.bool_]:
    """Whether each row is relevant."""
    return np.asarray(grade > 0 if threshold is None else grade >= threshold)


def per_list_total(x: NDArray[Any], offsets: Ints) -> Floats:
    """Sum over the rows of each list.  O(rows)."""
    total = np.add.reduceat(np.append(x.astype(np.float64), 0.0), offsets[:-1]) if len(offsets) > 1 else np.zeros(0)
    total[np.diff(offsets) == 0] = 0.0  # reduceat returns the next row there
    return total


def ratio(above: Floats, below: NDArray[Any], empty: float) -> Floats:
    """above / below, or ``empty`` where below is 0."""
    return np.divide(above, below, out=np.full(len(above), float(empty)), where=below > 0)


def discounted_sum(ranking: Ranking, x: Floats, d: Floats) -> Floats:
    """Expected sum_i x_i d_i in each list: each place of a tied block has the block's mean x.  O(rows)."""
    if ranking.untied and ranking.n_lists * len(d) <= 2 * len(x):
        return _top_sums(ranking, x, d)
    before = ranking.before
    reached = np.flatnonzero(before < len(d))
    before, size = before[reached], (ranking.stop - ranking.start)[reached]
    if (size == 1).all():  # no ties near the top, as in most lists: no need to gather every row
        return ranking.per_list(x[ranking.order[ranking.start[reached]]] * d[before], reached)
    mass = np.append(0.0, np.cumsum(d))
    places = np.where(size == 1, d[before], mass[np.minimum(before + size, len(d))] - mass[before])
    return ranking.per_list(block_sums(ranking, x, reached) / size * places, reached)


def _top_sums(ranking: Ranking, x: Floats, d: Floats) -> Floats:
    """`discounted_sum` without ties, by a table of the first places of every list.  O(lists x places)."""
    if not len(d):
        return np.zeros(ranking.n_lists)
    place = np.arange(len(d))
    inside = place < np.diff(ranking.offsets)[:, None]
    at = ranking.offsets[:-1, None] + place
    top = x[ranking.order[np.where(inside, at, 0)]] if len(x) else np.zeros(inside.shape)
    return np.asarray(np.cumsum(np.where(inside, top * d, 0.0), axis=1)[:, -1])


def _precision_at_hits(ranking: Ranking, relevant: NDArray[np.bool_], places: int) -> tuple[Floats, Floats]:
    """Sum of the precisions at the relevant rows of each list up to ``places``, and number of relevant rows.

    For rankings without ties.  O(rows).
    """
    hit = np.flatnonzero(relevant[ranking.order])
    ends = np.searchsorted(hit, ranking.offsets)
    count = np.diff(ends)
    place = hit + 1.0 - np.repeat(ranking.offsets[:-1], count)
    there = (np.arange(1.0, len(hit) + 1.0) - np.repeat(ends[:-1], count)) / place
    if places < np.diff(ranking.offsets).max(initial=0):
        there[place > places] = 0.0
    total = np.bincount(np.repeat(np.arange(ranking.n_lists), count), weights=there, minlength=ranking.n_lists)
    return total.astype(np.float64), count.astype(np.float64)


def cascaded_sum(ranking: Ranking, stop_prob: Floats, d: Floats) -> Floats:
    """Expected sum_i d_i R_i prod_{j<i} (1 - R_j) in each list, over the orders of tied rows."""
    from placet.kernels import metrics as kernels  # the only part that needs Numba, which takes half a second to import

    out = np.zeros(ranking.n_lists)
    kernels.cascade(stop_prob[ranking.order], ranking.start, ranking.stop, ranking.list_of, ranking.offsets, d, out)
    return out


def ideal(x: Floats, offsets: Ints, d: Floats) -> Floats:
    """sum_i x_(i) d_i in each list with x in descending order.  O(rows log rows)."""
    out = np.zeros(len(offsets) - 1)
    for lists, rows in batches(offsets):
        best = np.sort(x[rows].reshape(len(lists), -1), axis=1)[:, ::-1][:, : len(d)]
        out[lists] = np.cumsum(best * d[: best.shape[1]], axis=1)[:, -1]  # in sequence, as in ``discounted_sum``
    return out


def block_sums(ranking: Ranking, x: Floats, blocks: NDArray[Any] | slice = slice(None)) -> Floats:
    """Sum of x over the rows of (some) blocks.  O(rows)."""
    start, stop = ranking.start[blocks], ranking.stop[blocks]
    if len(start) == 0:
        return np.zeros(0)
    placed = np.append(x[ranking.order], 0.0)
    if (stop - start == 1).all():
        return placed[start]
    return np.add.reduceat(placed, np.column_stack([start, stop]).ravel())[::2]


def _expected_precision(ranking: Ranking, hits: Floats, earlier: Floats, blocks: NDArray[Any], places: int) -> Floats:
    """Sum over the places of each block, up to ``places``, of P(relevant there) x E[precision there | relevant]."""
    before, size = ranking.before[blocks].astype(np.float64), (ranking.stop - ranking.start)[blocks]
    reached = np.clip(places - before, 0, size)
    if (size == 1).all():
        return np.where(reached > 0, (earlier + 1.0) / (before + 1.0), 0.0)
    inverse = np.append(0.0, np.cumsum(1.0 / np.arange(1.0, before.max() + size.max() + 1.0)))
    last = (before + reached).astype(np.int64)
    harmonic = np.where(size == 1, 1.0 / (before + 1.0), inverse[last] - inverse[before.astype(np.int64)])
    slope = (hits - 1.0) / np.maximum(size - 1, 1)
    # sum_t (c + 1 + (t - 1) slope) / (b + t) with t - 1 = (b + t) - (b + 1)
    value = hits / size * ((earlier + 1.0 - slope * (before + 1.0)) * harmonic + slope * reached)
    return np.where(reached > 0, value, 0.0)
