"""Agreement between two orders of the same rows: by score and by grade.

Higher is better in both, and only the orders matter.  A score of -inf is simply the lowest score.
"""

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import Floats, Ints
from placet.metrics.ranking import Ranking, checked_column, checked_depth, rank, sorted_rows
from placet.metrics.relevance import RowScores, per_list_total, ratio


def kendall_tau(s: RowScores, grade: ArrayLike, offsets: ArrayLike) -> Floats:
    """Kendall's tau-b: (concordant - discordant) / sqrt((pairs not tied in s)(pairs not tied in grade)).

    NaN if s or grade is constant (so also for fewer than two rows).  O(rows log rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> kendall_tau([3.0, 2.0, 1.0], [2, 1, 1], [0, 3]).round(4)  # 2 / sqrt(3 * 2)
    array([0.8165])
    """
    from placet.kernels import metrics as kernels  # see ``relevance.cascaded_sum``

    ranking = rank(s, offsets)
    grade = checked_column(grade, ranking, "grade")
    s, offsets = ranking.s, ranking.offsets
    list_of = np.repeat(np.arange(ranking.n_lists), np.diff(offsets))
    by_grade, _ = sorted_rows(grade, offsets)
    order = by_grade[sorted_rows(s[by_grade], offsets)[0]]  # stable, so grades descend among equal scores
    x, y, z = s[order], grade[order], grade[by_grade]
    same_list = list_of[1:] == list_of[:-1]
    tied_x = _tied_pairs(same_list & (x[1:] == x[:-1]), list_of, ranking.n_lists)
    tied_both = _tied_pairs(same_list & (x[1:] == x[:-1]) & (y[1:] == y[:-1]), list_of, ranking.n_lists)
    tied_y = _tied_pairs(same_list & (z[1:] == z[:-1]), list_of, ranking.n_lists)
    discordant = np.zeros(ranking.n_lists)
    kernels.inversions(y, offsets, discordant)
    n = np.diff(offsets).astype(np.float64)
    pairs = n * (n - 1) / 2
    concordant = pairs - tied_x - tied_y + tied_both - discordant
    return ratio(concordant - discordant, np.sqrt(pairs - tied_x) * np.sqrt(pairs - tied_y), np.nan)


def spearman_rho(s: RowScores, grade: ArrayLike, offsets: ArrayLike) -> Floats:
    """Spearman's rho: correlation of the ranks; tied rows share the mean of their ranks.

    NaN if s or grade is constant.  O(rows log rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> spearman_rho([3.0, 2.0, 1.0], [3, 1, 2], [0, 3])  # 1 - 6 (0 + 1 + 1) / (3 * 8)
    array([0.5])
    """
    a, b, offsets = _two_rankings(s, grade, offsets)
    n = np.diff(offsets)
    middle = np.repeat((n + 1) / 2, n)
    x, y = _mean_ranks(a) - middle, _mean_ranks(b) - middle
    both = per_list_total(x * y, offsets)
    return ratio(both, np.sqrt(per_list_total(x * x, offsets)) * np.sqrt(per_list_total(y * y, offsets)), np.nan)


def footrule(s: RowScores, grade: ArrayLike, offsets: ArrayLike, *, normalize: bool = True) -> Floats:
    """Spearman's footrule, a distance: sum of abs(rank by s - rank by grade), over its maximum floor(n^2 / 2).

    0 is best.  Tied rows share the mean of their ranks.  ``normalize=False`` returns the sum.  NaN for fewer than two
    rows.  O(rows log rows).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> footrule([3.0, 2.0, 1.0], [1, 2, 3], [0, 3])
    array([1.])
    """
    a, b, offsets = _two_rankings(s, grade, offsets)
    n = np.diff(offsets)
    total = per_list_total(np.abs(_mean_ranks(a) - _mean_ranks(b)), offsets)
    if normalize:
        return ratio(total, n * n // 2, np.nan)
    return np.where(n > 1, total, np.nan)


def rbo(s: RowScores, grade: ArrayLike, offsets: ArrayLike, k: int | None = None, *, p: float = 0.9) -> Floats:
    """Extrapolated rank-biased overlap: X_D/D p^D + (1-p)/p sum_{d<=D} X_d/d p^d.

    X_d is the number of rows among the first d of both orders, D is k or the length of the list; p in (0, 1) is the
    probability of reading on.  With ties, X_d is its expectation when the ties of each order are broken at random,
    independently (so two equal orders with ties stay below 1).  NaN for an empty list.  O(rows log rows + rows x
    longest tied block).

    Returns
    -------
    array
        One value per list (lists,); NaN where it is undefined.

    >>> rbo([2.0, 1.0], [2, 1], [0, 2])
    array([1.])
    >>> rbo([2.0, 1.0], [1, 2], [0, 2], p=0.5)  # X_1 = 0, X_2 = 2: 0.25 + 0.25
    array([0.5])
    """
    from placet.kernels import metrics as kernels  # see ``relevance.cascaded_sum``

    if not 0 < p < 1:
        raise ValueError(f"p is {p}; it must be between 0 and 1 (0.9 looks at about the first ten places)")
    a, b, offsets = _two_rankings(s, grade, offsets)
    out = np.full(a.n_lists, np.nan)
    kernels.overlap(*_places(a), *_places(b), offsets, float(p), checked_depth(k, offsets), out)
    out[np.diff(offsets) == 0] = np.nan
    return out


def _two_rankings(s: RowScores, grade: ArrayLike, offsets: ArrayLike) -> tuple[Ranking, Ranking, Ints]:
    """Rankings by s and by grade, with every row in a block."""
    ranking = rank(s, offsets)
    return (
        _ranked_whole(ranking.s, ranking.offsets),
        _ranked_whole(checked_column(grade, ranking, "grade"), ranking.offsets),
        ranking.offsets,
    )


def _ranked_whole(x: Floats, offsets: Ints) -> Ranking:
    """Ranking in which -inf is an ordinary score."""
    if np.isinf(x).any():
        x = np.unique(x, return_inverse=True)[1].astype(np.float64)
    return rank(x, offsets)


def _places(ranking: Ranking) -> tuple[Ints, Ints]:
    """Number of places above each row's block, and up to its end, in the caller's row order."""
    size = ranking.stop - ranking.start
    first, last = np.empty_like(ranking.order), np.empty_like(ranking.order)
    first[ranking.order] = np.repeat(ranking.before, size)
    last[ranking.order] = np.repeat(ranking.before + size, size)
    return first, last


def _mean_ranks(ranking: Ranking) -> Floats:
    """Rank of each row from 1, the mean for tied rows, in the caller's row order."""
    first, last = _places(ranking)
    return (first + last + 1) / 2


def _tied_pairs(same_as_before: np.ndarray, list_of: Ints, n_lists: int) -> Floats:
    """Number of pairs of equal rows in each list, given which rows equal the previous one."""
    new = np.flatnonzero(np.append(True, ~same_as_before)) if len(list_of) else np.zeros(0, np.int64)
    run = np.diff(np.append(new, len(list_of)))
    return np.bincount(list_of[new], weights=run * (run - 1) / 2.0, minlength=n_lists).astype(np.float64)
