"""Random walks over items that move toward preferred items; the time spent at an item gives its score."""

import numpy as np
import scipy

from placet.aggregate.rules.kemeny import margins, pair_tables
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats


def mc4(data: Rankings | Comparisons, jump: float = 0.05) -> Floats:
    """MC4: from item i, draw another item and move there if a majority of those who compared the two prefer it.

    With probability ``jump`` the walk restarts at a random item, so the stationary distribution is positive and unique.
    Scores are the stationary probabilities.  O(pairs + n^3).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> mc4(Rankings.from_orders([["a", "b"]]), jump=0.5)
    array([0.66666667, 0.33333333])
    """
    if not 0 < jump <= 1:
        raise ValueError(f"jump must be in (0, 1], not {jump}")
    margin = margins(pair_tables(data)[0])
    n = len(margin)
    if not n:
        return np.zeros(0)
    walk = (margin < 0) / n  # row i: to the items that beat it
    np.fill_diagonal(walk, 1.0 - walk.sum(axis=1))
    return stationary((1 - jump) * walk + jump / n)


def rank_centrality(data: Rankings | Comparisons, prior: float | None = 0.1) -> Floats:
    """Rank centrality: log stationary probabilities of a walk from i to j in proportion to j's share of wins over i.

    ``prior`` is a number of wins added in each direction to every pair, which makes the scores finite and unique; with
    ``None`` nothing is added, and data in which items are not strongly connected by wins are an error.
    Scores are centered.  O(pairs + n^3).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> rank_centrality(Rankings.from_orders([["a", "b"], ["a", "b"], ["b", "a"]]), prior=None).round(3)
    array([ 0.347, -0.347])
    """
    if prior is not None and not prior > 0:
        raise ValueError(f"prior must be above 0, or None, not {prior}")
    wins, ties = pair_tables(data)
    n = len(wins)
    if n < 2:
        return np.zeros(n)
    if prior is None:
        _refuse_groups(wins + ties, data)
    won = wins + ties / 2 + (prior or 0.0)
    met = won + won.T
    np.fill_diagonal(won, 0.0)
    share = np.divide(won.T, met, out=np.zeros((n, n)), where=met > 0)
    np.fill_diagonal(share, 0.0)
    walk = share / max(np.count_nonzero(share, axis=1).max(), 1)
    np.fill_diagonal(walk, 1.0 - walk.sum(axis=1))
    scores = np.log(np.maximum(stationary(walk), np.finfo(np.float64).tiny))  # 0 by a prior that rounds away
    return scores - scores.mean()


def stationary(walk: Floats) -> Floats:
    """Stationary distribution p of an irreducible walk: p walk = p, sum 1.  O(n^3).

    Eliminating one state at a time without subtractions (Grassmann, Taksar, Heyman) keeps even small probabilities
    accurate to rounding; beyond 300 items a linear solve is used, which is accurate relative to the largest only.
    """
    n = len(walk)
    if n > 300:
        system = np.eye(n) - walk.T
        system[-1] = 1.0
        share = scipy.linalg.solve(system, np.eye(1, n, n - 1).ravel())
        return np.maximum(share, np.finfo(np.float64).tiny)
    p = walk.copy()
    for k in range(n - 1, 0, -1):
        p[:k, k] /= p[k, :k].sum()
        p[:k, :k] += np.outer(p[:k, k], p[k, :k])
    share = np.zeros(n)
    share[0] = 1.0
    for k in range(1, n):
        share[k] = share[:k] @ p[:k, k]
    return share / share.sum()


def _refuse_groups(over: Floats, data: Rankings | Comparisons) -> None:
    count, label = scipy.sparse.csgraph.connected_components(over > 0, directed=True, connection="strong")
    if count > 1:
        least = int(np.argmin(np.bincount(label)[label]))
        raise DataError(
            f"no finite scores exist: {len(label)} items fall into {count} groups, and no wins lead from one back to "
            f"another, such as the one of {data.items[least]!r}; give a prior or leave items out"
        )
