"""Propensity-scored metrics of extreme multi-label classification (Jain et al. 2016).

Lists are the points, rows are labels with scores.  If rows hold only the labels proposed by a model, add the point's
other true labels as rows with a score of -inf, so that the best possible value is known.
"""

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import Floats, refuse_masked_or_complex
from placet.data.errors import one_of
from placet.data.gains import discounts
from placet.metrics.ranking import Ranking, checked_column, checked_depth, rank
from placet.metrics.relevance import RowScores, discounted_sum, ideal, is_relevant, per_list_total, ratio

NORMALIZE = ("all", "list", "none")


def propensities(label_counts: ArrayLike, n_points: int, a: float = 0.55, b: float = 1.5) -> Floats:
    """Probability that a true label was observed: p = 1 / (1 + C (N + b)^-a), C = (log n_points - 1)(b + 1)^a.

    ``label_counts`` (labels,): N, the number of the ``n_points`` training points with each label.  The usual a, b are
    0.5, 0.4 for Wikipedia, 0.6, 2.6 for Amazon, 0.55, 1.5 otherwise.

    Returns
    -------
    array
        The probability of each label (labels,).

    >>> propensities([1, 10, 1000], 10_000).round(3)
    array([0.109, 0.22 , 0.767])
    """
    refuse_masked_or_complex(label_counts)
    counts = np.asarray(label_counts, dtype=np.float64)
    bad = ~((counts >= 0) & (counts <= n_points))
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"label {at}: count {counts.ravel()[at]:g} is not in 0..{n_points} ({int(bad.sum())} such labels)"
        )
    if n_points < 3 or a <= 0 or b <= 0:
        raise ValueError(f"n_points must be at least 3, a and b above 0; they are {n_points}, {a} and {b}")
    return 1.0 / (1.0 + (np.log(n_points) - 1.0) * (b + 1.0) ** a * (counts + b) ** -a)


def psp(
    s: RowScores,
    grade: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    propensity: ArrayLike | None = None,
    normalize: str = "all",
    empty: float = np.nan,
) -> Floats:
    """Propensity-scored precision: sum over true labels at places <= k of 1/p, over k.

    ``propensity`` (rows,): p of each row's label.  True labels have grade > 0.  ``normalize="all"`` divides by the
    mean over the lists of the largest possible value, so that the mean of the result is the repository's ratio of
    sums; ``"list"`` divides each list by its own largest value; ``"none"`` does not normalize.  Lists without a true
    label have the value ``empty`` and enter neither sum.  Ties: exact expectation.  O(rows log rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> psp([2.0, 1.0], [1, 1], [0, 2], 1, propensity=[0.5, 0.25])  # 2 of 4
    array([0.5])
    """
    ranking, worth, n_true = _worth(s, grade, offsets, propensity)
    d = np.ones(checked_depth(k, ranking.offsets))
    places = np.diff(ranking.offsets) if k is None else k
    scale = 1.0 / np.maximum(places, 1.0)
    return _normalize(
        scale * discounted_sum(ranking, worth, d), scale * ideal(worth, ranking.offsets, d), n_true, normalize, empty
    )


def psndcg(
    s: RowScores,
    grade: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    propensity: ArrayLike | None = None,
    normalize: str = "all",
    empty: float = np.nan,
) -> Floats:
    """Propensity-scored nDCG: sum over true labels at places i <= k of 1/(p log2(1 + i)), over sum_{i <= min(k, true)}
    1/log2(1 + i).

    Parameters and conventions as in ``psp``.

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> psndcg([2.0, 1.0], [1, 0], [0, 2], 2, propensity=[0.5, 0.25])
    array([1.])
    """
    ranking, worth, n_true = _worth(s, grade, offsets, propensity)
    d = discounts(checked_depth(k, ranking.offsets), "log2")
    flat = np.append(0.0, np.cumsum(d))[np.minimum(n_true, len(d)).astype(np.int64)]
    scale = ratio(np.ones(ranking.n_lists), flat, 0.0)
    return _normalize(
        scale * discounted_sum(ranking, worth, d), scale * ideal(worth, ranking.offsets, d), n_true, normalize, empty
    )


def _worth(
    s: RowScores, grade: ArrayLike, offsets: ArrayLike, propensity: ArrayLike | None
) -> tuple[Ranking, Floats, Floats]:
    """Ranking, 1/p for true labels (0 for others) and number of true labels of each list."""
    if propensity is None:
        raise ValueError(
            "propensity is missing; pass the propensity of each row's label, propensities(counts, n_points)[label]"
        )
    ranking = rank(s, offsets)
    true = is_relevant(checked_column(grade, ranking, "grade"), None)
    p = checked_column(propensity, ranking, "propensity")
    bad = ~((p > 0) & (p <= 1))
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"row {at}: propensity {p[at]:g} is not in (0, 1] ({int(bad.sum())} such rows); "
            "pass propensities, not their inverses"
        )
    return ranking, true / p, per_list_total(true, ranking.offsets)


def _normalize(value: Floats, best: Floats, n_true: Floats, normalize: str, empty: float) -> Floats:
    one_of(normalize, NORMALIZE, "normalize")
    defined = n_true > 0
    if normalize == "list":
        return ratio(value, best, empty)
    if normalize == "all" and defined.any():
        value = value / best[defined].mean()
    return np.where(defined, value, empty)
