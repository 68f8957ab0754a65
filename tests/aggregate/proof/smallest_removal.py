"""The slow and obvious answer: every removal of 1, 2, 3, ... votes is fitted, until one changes the claim.

Bradley-Terry with a normal prior of width 1 and ties as half a win for either side, by Newton's method on all removals
of a size at once.
"""

from itertools import combinations_with_replacement

import numpy as np

MOST = 4


def kinds_of(votes):
    """(i, j, outcome) of every kind of vote, and how many there are."""
    counts = (votes.wins_i, votes.wins_j, votes.ties)
    rows = [(i, j, k, counts[k][r]) for k in range(3) for r, (i, j) in enumerate(zip(votes.i, votes.j)) if counts[k][r]]
    return [row[:3] for row in rows], np.array([row[3] for row in rows])


def scores(kinds, counts, n):
    """Scores (removals, n) for counts (removals, kinds)."""
    theta = np.zeros((len(counts), n))
    for _ in range(8):
        gradient, hessian = theta.copy(), np.tile(np.eye(n), (len(counts), 1, 1))
        for (i, j, outcome), count in zip(kinds, counts.T):
            p = 1 / (1 + np.exp(theta[:, j] - theta[:, i]))
            slope, curve = count * (p - (1.0, 0.0, 0.5)[outcome]), count * p * (1 - p)
            gradient[:, i] += slope
            gradient[:, j] -= slope
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                hessian[:, a, b] += sign * curve
        theta -= np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    return theta


def best_sets(theta, k):
    """(removals, n): whether an item is among the best k."""
    above = (theta[:, None, :] > theta[:, :, None] + 1e-7).sum(axis=2)
    return above < k


def smallest(votes, k=1, most=MOST):
    """The fewest votes whose removal changes which items have the ranks 1 .. k; None if more than ``most``."""
    kinds, size = kinds_of(votes)
    whole = best_sets(scores(kinds, size[None], votes.n_items), k)[0]
    for count in range(1, min(most, int(size.sum()) - 1) + 1):
        chosen = list(combinations_with_replacement(range(len(kinds)), count))
        take = np.array([np.bincount(one, minlength=len(kinds)) for one in chosen])
        take = take[(take <= size).all(axis=1)]
        if (best_sets(scores(kinds, size - take, votes.n_items), k) != whole).any():
            return count
    return None
