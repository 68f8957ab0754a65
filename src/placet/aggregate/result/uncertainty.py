"""Uncertainty of scores: intervals, simulated ranks, and the pairs to ask about next.

Scores are taken as normal around their estimates with the given covariance, or independent with ``stderr`` without one;
bootstrap draws (rounds, n_items), if any, are used directly.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from placet.data.arrays import Floats, Ints
from placet.stats import normal_quantile
from placet.threads import algebra_threads

MOST_SIMULATED = 4096
"""Largest number of items for which a covariance is kept and ranks are simulated jointly."""

SAMPLED = f"more than {MOST_SIMULATED} items: standard errors are sampled, and differences leave correlations out"
"""The note of a result with more items than that."""

SIMULATED_NUMBERS = 4_000_000
FEWEST_DRAWS, MOST_DRAWS = 100, 4000


LEAST_DRAW, MOST_DRAW = 1e-100, 1e100
"""Sizes of scores whose squares, and sums of these, are floating-point numbers."""


def refuse_without_squares(draws: Floats) -> None:
    """Raise ``ValueError`` for draws whose variances would overflow, or vanish without the draws being equal."""
    size = float(np.abs(draws).max(initial=0.0))
    if size and not LEAST_DRAW <= size <= MOST_DRAW:
        raise ValueError(
            f"scores of up to {size:.3g} have no variances in floating-point numbers, so no standard errors; "
            "multiply all weights, or all scores, by a common factor"
        )


class Roots(Protocol):
    """Signed roots of the posterior, normal near a perfect record too (`placet.aggregate.likelihood.signed_roots`)."""

    def root(self, i: int, j: int) -> float:
        """The signed root of score i - score j."""

    def separated(self, found: NDArray[np.bool_], critical: float) -> NDArray[np.bool_]:
        """``found`` and the pairs of distant scores whose root exceeds ``critical``."""

    def errors_below_and_above(self, z: float) -> tuple[Floats, Floats]:
        """How many standard errors an interval of each score reaches down and up; ``z`` if it is normal."""

    def only(self, keep: NDArray[np.bool_]) -> "Roots":
        """The roots of the items of a mask."""


def score_interval(scores: Floats, stderr: Any, draws: Floats | None, level: float) -> tuple[Floats, Floats]:
    """Quantiles of the draws, between which another draw falls with probability ``level``; else scores -+ z stderr."""
    tail = _tail(level)
    if draws is not None:
        low, high = np.quantile(draws, [tail, 1 - tail], axis=0, method="weibull")
        return low, high
    z = -normal_quantile(tail)
    return scores - z * stderr, scores + z * stderr


def simulated_scores(scores: Floats, stderr: Any, covariance: Floats | None, rng: np.random.Generator) -> Floats:
    """Draws (rounds, n_items) of the scores, from 4000 rounds for few items to 100 for many.  O(n^3 + rounds n^2)."""
    n = len(scores)
    rounds = int(np.clip(SIMULATED_NUMBERS // max(n, 1), FEWEST_DRAWS, MOST_DRAWS))
    z = rng.standard_normal((rounds, n))
    if covariance is None:
        return scores + z * stderr
    with algebra_threads(n):
        return scores + z @ _root(covariance).T


def _root(covariance: Floats) -> Floats:
    """A matrix root up to a common shift of scores, which ranks ignore: centered covariances are singular along it."""
    n = max(len(covariance), 1)
    try:
        return np.linalg.cholesky(covariance + np.trace(covariance) / n)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return vectors * np.sqrt(np.maximum(values, 0.0))


def ranks_of(draws: Floats) -> NDArray[np.int32]:
    """Rank of every item from 1 in every draw; ties share the middle rank, rounded down."""
    order = np.argsort(-draws, axis=1, kind="stable")
    ranks = np.empty(draws.shape, np.int32)
    np.put_along_axis(ranks, order, np.arange(1, draws.shape[1] + 1, dtype=np.int32)[None, :], axis=1)
    for row in np.flatnonzero((np.diff(np.take_along_axis(draws, order, axis=1), axis=1) == 0).any(axis=1)):
        _, group, size = np.unique(-draws[row], return_inverse=True, return_counts=True)
        ranks[row] = (np.cumsum(size) - size + (size + 1) // 2)[group]
    return ranks


def rank_quantiles(draws: Floats, level: float) -> tuple[Ints, Ints]:
    """Best and worst rank of each item at ``level``: quantiles of the ranks of the draws, rounded outward."""
    tail = _tail(level)
    ranks = ranks_of(draws)
    low = np.quantile(ranks, tail, axis=0, method="lower")
    high = np.quantile(ranks, 1 - tail, axis=0, method="higher")
    return low.astype(np.int64), high.astype(np.int64)


def rank_interval_of_many(scores: Floats, stderr: Any, level: float, random_state: int) -> tuple[Ints, Ints]:
    """Ranks of the ends of each score's interval among pooled independent draws of all items.  O(n log n).

    The number of items above a given score is a sum of many independent events, so its variance is neglected.
    """
    rng = np.random.default_rng(random_state)
    rounds = 8
    pool = np.sort((scores + stderr * rng.standard_normal((rounds, len(scores)))).ravel())
    low, high = score_interval(scores, stderr, None, level)
    above = lambda x: (pool.size - np.searchsorted(pool, x, side="right")) // rounds  # noqa: E731
    n = len(scores)
    return np.minimum(above(high) + 1, n).astype(np.int64), np.minimum(above(low) + 1, n).astype(np.int64)


def rank_probabilities(draws: Floats) -> Floats:
    """(n_items, n_items): share of the draws in which item i has rank r + 1."""
    ranks = ranks_of(draws)
    n = draws.shape[1]
    cell = np.arange(n) * n + ranks - 1
    return np.bincount(cell.ravel(), minlength=n * n).reshape(n, n) / len(draws)


def top_k_probability(draws: Floats, k: int) -> Floats:
    """Share of the draws in which each item is among the best k; items that tie for the last place share it."""
    last = -np.partition(-draws, k - 1, axis=1)[:, k - 1 : k]
    above, level = draws > last, draws == last
    share = (k - above.sum(axis=1, keepdims=True)) / level.sum(axis=1, keepdims=True)
    return (above + level * share).mean(axis=0)


def prob_above(
    scores: Floats,
    stderr: Floats | None,
    covariance: Floats | None,
    draws: Floats | None,
    i: int,
    j: int,
    roots: Roots | None = None,
) -> float:
    """P(score i > score j): share of the draws, ties counting half, else Phi of the signed root if it is known, else
    Phi(difference / its standard error).
    """
    if i == j:
        return 0.5
    if draws is None and roots is not None:
        return float(scipy.special.ndtr(roots.root(i, j)))
    if draws is not None:
        return float(((draws[:, i] > draws[:, j]) + 0.5 * (draws[:, i] == draws[:, j])).mean())
    variance = difference_variance(stderr, covariance, i, j)
    gap = scores[i] - scores[j]
    return float(scipy.special.ndtr(gap / np.sqrt(variance))) if variance > 0 else float(0.5 * (1 + np.sign(gap)))


def difference_variance(stderr: Any, covariance: Floats | None, i: Any, j: Any) -> Any:
    """Variance of score i - score j; without a covariance, the two are taken as independent."""
    if covariance is None:
        return stderr[i] ** 2 + stderr[j] ** 2
    return covariance[i, i] + covariance[j, j] - (covariance[i, j] + covariance[j, i])


def order_variance_fall(gap: Any, variance: Any, learned: Any) -> Any:
    """Expected decrease of p (1 - p), p the probability of being above, once ``learned`` of ``variance`` is resolved.

    The difference is N(gap, variance) before; afterward its mean is m ~ N(gap, learned) and p = Phi(m / remaining sd),
    so the decrease is the variance of p.  With h = gap / sd and r = learned / variance, E p^2 is the probability that
    two normal variables of correlation r are below h, so the decrease is 2 T(h, 1) - 2 T(h, sqrt((1 - r) / (1 + r))),
    T being Owen's function.
    """
    h, r = gap / np.sqrt(variance), np.clip(learned / variance, 0.0, 1.0)
    exact = 2 * (scipy.special.owens_t(h, 1.0) - scipy.special.owens_t(h, np.sqrt((1 - r) / (1 + r))))
    return np.where(r < 1e-6, r * np.exp(-h * h) / (2 * np.pi), exact)


def next_pairs(
    scores: Floats, stderr: Floats | None, covariance: Floats | None, win: Callable[..., Any], k: int
) -> list[tuple[int, int]]:
    """The ``k`` pairs with the largest expected decrease of p (1 - p), summed over all pairs that involve either item.

    One answer about (i, j) has information w = p_i p_j on s_i - s_j (p_i the probability that i wins), so with
    u = C (e_i - e_j) the covariance falls by w u u' / (1 + w (u_i - u_j)).  Candidates are preselected by the decrease
    of the pair itself.  O(k n^2) with a covariance; without, only near neighbors in score are considered: O(k n).
    """
    left, right = _candidates(scores, covariance is not None)
    information = np.asarray(win(left, right) * win(right, left), dtype=np.float64)
    C = None if covariance is None else covariance.copy()
    variance = None if stderr is None else stderr**2
    chosen: list[tuple[int, int]] = []
    open_ = np.ones(len(left), bool)
    while len(chosen) < k and open_.any():
        v = difference_variance(None if variance is None else np.sqrt(variance), C, left, right)
        v = np.maximum(v, 1e-300)
        gap = scores[left] - scores[right]
        own = np.where(open_, order_variance_fall(gap, v, information * v * v / (1 + information * v)), -np.inf)
        best = np.argsort(-own, kind="stable")[: max(200, 4 * k)]
        best = best[open_[best]]
        if C is not None:
            total = [_fall_around(scores, C, left[b], right[b], information[b]) for b in best]
            best = best[np.argsort(-np.array(total), kind="stable")]
        b = int(best[0])
        i, j = int(left[b]), int(right[b])
        chosen.append((i, j) if scores[i] >= scores[j] else (j, i))
        open_[b] = False
        if C is not None:
            u = C[:, i] - C[:, j]
            C -= information[b] * np.outer(u, u) / (1 + information[b] * (u[i] - u[j]))
        elif variance is not None:
            for x in (i, j):
                variance[x] -= information[b] * variance[x] ** 2 / (1 + information[b] * v[b])
    return chosen


def _fall_around(scores: Floats, C: Floats, i: int, j: int, information: float) -> float:
    """Expected decrease of p (1 - p) over the pairs (i, x) and (j, x), all x, after one answer about (i, j).  O(n)."""
    u = C[:, i] - C[:, j]
    shrink = information / (1 + information * (u[i] - u[j]))
    diagonal = np.diag(C)
    total = 0.0
    for x in (i, j):
        other = np.arange(len(scores)) != x
        if x == j:
            other[i] = False
        v = np.maximum((diagonal + C[x, x] - 2 * C[:, x])[other], 1e-300)
        gap = (scores - scores[x])[other]
        learned = np.minimum(shrink * (u[other] - u[x]) ** 2, v)
        total += float(order_variance_fall(gap, v, learned).sum())
    return total


def _candidates(scores: Floats, every: bool) -> tuple[Ints, Ints]:
    """All pairs, or the pairs of items at most 10 places apart in score."""
    n = len(scores)
    if every:
        left, right = np.triu_indices(n, 1)
        return left, right
    order = np.argsort(-scores, kind="stable")
    steps = range(1, min(11, n))
    left = np.concatenate([order[:-d] for d in steps]) if n > 1 else order[:0]
    right = np.concatenate([order[d:] for d in steps]) if n > 1 else order[:0]
    return left, right


def check_level(level: float) -> None:
    """Raise ``ValueError`` unless ``level`` is between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, such as 0.95, not {level}")


def _tail(level: float) -> float:
    check_level(level)
    return (1 - level) / 2
