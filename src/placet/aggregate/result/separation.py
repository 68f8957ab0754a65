"""Confidence sets for ranks: which items are separated beyond chance, and the ranks that remain possible.

Every hypothesis "i is not above j", over all ordered pairs, is tested by the studentized difference of scores against
the distribution of the largest one under the joint distribution of the scores' errors; rejected hypotheses are removed
and the rest are tested again (stepdown).  So the probability of any wrong separation is at most 1 - level.  An item
among n with a items separated above it and b below it has a rank in a + 1 .. n - b.

Mogstad, Romano, Shaikh and Wilhelm, Inference for ranks with applications to mobility across neighbourhoods and
academic achievement across countries, Review of Economic Studies 2024; Romano and Wolf, JASA 2005.
"""

from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from placet.aggregate.result.independent_units import critical_flip
from placet.aggregate.result.uncertainty import check_level
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_square
from placet.kernels.aggregate import studentized_maxima as kernels
from placet.stats import normal_quantile, tiers as tiers
from placet.threads import map_ordered

Separated = NDArray[np.bool_]
RankSetKind = Literal["simultaneous", "marginal", "simulated"]
ErrorKind = Literal["simulated", "bootstrap", "flips"]
"""Where draws of errors come from: a normal law with the given errors; resampled data, whose spread gave the errors
(`from_outside`); or flipped signs of independent units (`placet.aggregate.result.independent_units`)."""

MOST_JOINT = 1000
"""Largest number of items for which critical values come from draws of all differences; beyond, Holm's correction."""

MOST_PAIRED = 4096
"""Largest number of items for which every difference has a standard error; beyond, disjoint intervals are compared."""

WIDE, USEFUL_RANK = 100, 10
"""Number of items from which a board may be too wide for its first rank sets, and the worst rank that is useful."""

MOST_DRAWS = 2000
SCORES_AT_ONCE = 100_000
FEW_ITEMS = 8
"""Number of items up to which the differences of all draws are one array, and no kernel is loaded."""

MOST_STEPS = 20


def separated(scores: Floats, errors: Floats, stderr: Floats, level: float, kind: ErrorKind = "simulated") -> Separated:
    """(n, n): whether row is above column, jointly for all pairs at confidence ``level``.

    ``errors`` (draws, n) are draws of the errors of the scores, or (0, n) if only ``stderr`` (n, n) of the differences
    is known.
    """
    check_level(level)
    statistic = studentized(scores, stderr) if kind != "flips" else ratios(scores, stderr)
    if not len(errors):
        return _holm(statistic, 1 - level)
    weight = np.divide(1.0, stderr, out=np.zeros_like(stderr), where=stderr > 0)
    found = np.isposinf(statistic)
    for _ in range(MOST_STEPS):
        open_ = np.where(found, 0.0, weight)
        largest = largest_differences(errors, open_)
        critical = _critical(largest, level, kind)
        new = found | (statistic > critical)
        if (new == found).all():
            break
        found = new
    return found


def separated_from(
    item: int, scores: Floats, errors: Floats, stderr: Floats, level: float, kind: ErrorKind = "simulated"
) -> tuple[Separated, Separated]:
    """(n,), (n,): whether each item is above, and below, one item chosen beforehand; jointly over its pairs only."""
    check_level(level)
    statistic = studentized(scores, stderr) if kind != "flips" else ratios(scores, stderr)
    to, from_ = statistic[item], statistic[:, item]
    if not len(errors):
        n = len(scores)
        critical = -normal_quantile((1 - level) / max(2 * (n - 1), 1))
        return from_ > critical, to > critical
    weight = np.divide(1.0, stderr[item], out=np.zeros(len(scores)), where=stderr[item] > 0)
    below, above = np.isposinf(to), np.isposinf(from_)
    for _ in range(MOST_STEPS):
        largest = np.empty(len(errors))
        kernels.largest_differences_of(
            item, errors, np.where(below, 0.0, weight), np.where(above, 0.0, weight), largest
        )
        critical = _critical(largest, level, kind)
        new_below, new_above = below | (to > critical), above | (from_ > critical)
        if (new_below == below).all() and (new_above == above).all():
            break
        below, above = new_below, new_above
    return above, below


def rank_sets(above: Separated) -> tuple[Ints, Ints]:
    """Best and worst rank of each item, given which rows are above which columns."""
    n = len(above)
    return (above.sum(axis=0) + 1).astype(np.int64), (n - above.sum(axis=1)).astype(np.int64)


def rank_sets_of_many(scores: Floats, stderr: Floats, level: float) -> tuple[Ints, Ints]:
    """Rank sets of very many items, whose errors are taken as independent.  O(n log n).

    Items are separated if their intervals score -+ z stderr do not overlap, with z by Bonferroni over all pairs, which
    is conservative.
    """
    check_level(level)
    n = len(scores)
    z = critical_of_pairs(n, level)
    low, high = scores - z * stderr, scores + z * stderr
    above = n - np.searchsorted(np.sort(low), high, side="right")
    below = np.searchsorted(np.sort(high), low, side="left")
    return (above + 1).astype(np.int64), (n - below).astype(np.int64)


def useful_support(scores: Floats, stderr: Floats, support: Floats, level: float) -> float | None:
    """The least support, rounded, at which the rank set of the first item is useful: its worst rank is at most ten.

    None if the board is not wide (fewer than WIDE items, or a worst rank of at most a tenth of them), or no such
    support leaves ten items.  Rank sets are those of `rank_sets_of_many`.
    """

    def worst_of_first(keep: NDArray[np.bool_]) -> int:
        return int(rank_sets_of_many(scores[keep], stderr[keep], level)[1][np.argmax(scores[keep])])

    n = len(scores)
    if n < WIDE or worst_of_first(np.ones(n, bool)) <= max(USEFUL_RANK, n // 10):
        return None
    for k in range(3 * 16):
        least = (1.0, 2.0, 5.0)[k % 3] * 10.0 ** (k // 3)
        keep = support >= least
        if keep.sum() < USEFUL_RANK:
            return None
        if worst_of_first(keep) <= USEFUL_RANK:
            return least
    return None


def critical_of_pairs(n: int, level: float) -> float:
    """The normal quantile that is exceeded for none of the ordered pairs of n items, by Bonferroni."""
    return -normal_quantile((1 - level) / max(n * (n - 1.0), 1.0))


def open_pairs(scores: Floats, above: Separated, goal: str, k: int, items: tuple[int, ...]) -> tuple[Ints, Ints]:
    """The pairs that matter for a goal and are not separated, the higher item of each first.

    "order": neighbors; "top": the best k and the rest; "best": the first of ``items``, or of the order, and every
    other, unless some item is above it; "tiers": neighbors at the borders of k tiers; "above": two items, or one and
    every other.
    """
    order = np.argsort(-scores, kind="stable")
    if goal == "tiers":
        cuts = separated_cuts(above[np.ix_(order, order)])
        more = max(k - 1 - len(cuts), 0)
        wide = np.argsort(np.diff(scores[order]), kind="stable")
        first = np.sort(wide[~np.isin(wide + 1, cuts)][:more])
        return order[first], order[first + 1]
    if goal == "order":
        i, j = order[:-1], order[1:]
    elif goal == "top":
        i, j = np.repeat(order[:k], len(order) - k), np.tile(order[k:], k)
    else:
        item = items[0] if items else int(order[0])
        others = np.array(items[1:], np.int64) if len(items) > 1 else np.delete(np.arange(len(order)), item)
        i, j = np.full(len(others), item), others
        if goal == "best" and above[:, item].any():
            return i[:0], j[:0]
    told = above[i, j] | above[j, i] if goal == "above" else above[i, j]
    swap = scores[i] < scores[j]
    return np.where(swap, j, i)[~told], np.where(swap, i, j)[~told]


def separated_cuts(above: Separated) -> Ints:
    """Numbers m such that the first m rows are all above all other columns."""
    n = len(above)
    open_ = np.triu(~above, 1)
    last = np.where(open_.any(axis=1), n - 1 - np.argmax(open_[:, ::-1], axis=1), 0)
    return (1 + np.flatnonzero(np.maximum.accumulate(last)[:-1] <= np.arange(n - 1))).astype(np.int64)


def studentized(scores: Floats, stderr: Floats) -> Floats:
    """(n, n) differences divided by their standard errors; infinite if nonzero and known exactly."""
    gap = scores[:, None] - scores[None, :]
    out = np.zeros_like(gap)
    np.divide(gap, stderr, out=out, where=stderr > 0)
    out[(stderr <= 0) & (gap > 0)] = np.inf
    out[(stderr <= 0) & (gap < 0)] = -np.inf
    return out


def ratios(scores: Floats, root: Floats) -> Floats:
    """(n, n) sums divided by the roots of the sums of squares; 0 where no unit distinguishes two items."""
    gap = scores[:, None] - scores[None, :]
    return np.divide(gap, root, out=np.zeros_like(gap), where=root > 0)


def difference_errors(stderr: Floats | None, covariance: Floats | None, errors: Floats | None) -> Floats:
    """(n, n) standard errors of score differences: from draws, a covariance, or independent standard errors."""
    given = next(one for one in (errors, covariance, stderr) if one is not None)
    n = given.shape[-1]
    refuse_square(n, "a table of the differences", "rank fewer items (--min-support), or take the scores alone", 5.0)
    if errors is not None:
        covariance = np.atleast_2d(np.cov(errors, rowvar=False))
    if covariance is not None:
        variance = np.diag(covariance)
        square = variance[:, None] + variance[None, :] - 2 * covariance
        return np.sqrt(np.maximum(square, 0.0))
    assert stderr is not None
    out = np.hypot(stderr[:, None], stderr[None, :])
    np.fill_diagonal(out, 0.0)
    return out


def largest_differences(errors: Floats, weight: Floats) -> Floats:
    """Largest weighted difference of each draw, with draws divided among threads."""
    if not errors.size:
        return np.zeros(len(errors))
    errors = errors - errors.mean(axis=1, keepdims=True)  # a common shift is irrelevant and costs precision
    if len(weight) <= FEW_ITEMS:
        return ((errors[:, :, None] - errors[:, None, :]) * weight).max(axis=(1, 2), initial=0.0)
    size = np.sqrt(np.mean(errors**2, axis=0))
    size[size == 0.0] = 1.0
    most = (weight * np.hypot(size[:, None], size[None, :])).max(axis=1, initial=0.0)
    out, step = np.empty(len(errors)), max(1, SCORES_AT_ONCE // max(len(weight), 1))
    starts = range(0, len(errors), step)

    def work(k: int) -> None:
        part = slice(starts[k], starts[k] + step)
        kernels.largest_differences(errors[part], weight, size, most, out[part])

    map_ordered(work, len(starts))
    return out


def from_outside(largest: Floats) -> Floats:
    """Convert largest differences studentized by all draws into ones studentized by the other draws only.

    Each of B draws contributes to their standard deviation; a draw at r of these is at r sqrt((B - 2) / (B - 1 - r^2))
    of the other draws.  The scores did not contribute either: with 200 draws of a hundred items, 4 becomes 4.2.
    """
    n = len(largest)
    return largest * np.sqrt(max(n - 2, 1) / np.maximum(n - 1 - largest**2, 1.0))


def _critical(largest: Floats, level: float, kind: ErrorKind) -> float:
    """The value that the studentized difference of two scores must exceed."""
    if kind == "flips":
        return critical_flip(largest, level)
    return _quantile(from_outside(largest) if kind == "bootstrap" else largest, level)


def _quantile(largest: Floats, level: float) -> float:
    """Quantile of the draws at ``level``, with the data themselves counted as one more draw."""
    n = len(largest)
    place = min(int(np.ceil(level * (n + 1))) - 1, n - 1)
    return float(np.partition(largest, place)[place])


def _holm(statistic: Floats, alpha: float) -> Separated:
    """Holm's stepdown over all ordered pairs, by normal tails; valid under any dependence.  O(n^2 log n)."""
    n = len(statistic)
    size = n * (n - 1)
    falling = np.sort(statistic, axis=None)[::-1][:size]
    limits = -scipy.special.ndtri(alpha / np.maximum(size - np.arange(size), 1.0))
    kept = np.flatnonzero(~(falling > limits))
    critical = falling[kept[0]] if len(kept) else -np.inf
    return statistic > max(critical, 0.0)
