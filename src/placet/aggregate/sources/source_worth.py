"""Where a source differs from the target, and how many votes of the target it is worth."""

import numpy as np
from scipy.linalg import eigh

from placet.aggregate.sources.width_evidence import Quadratic
from placet.data.arrays import Floats, Ints

MOST_WORTH = 1e4
"""The most that a target's votes are multiplied by to say what a source is worth."""


def deviations(one: Quadratic, a: float, v: float, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Mean and standard error of e = u - a theta of a source, less its mean over items."""
    V, den = one.vectors, 1 + one.values * v * v
    B = (V * (v * v / den)) @ V.T
    G = -a * (V * (one.values * v * v / den)) @ V.T
    if one.cross is not None:
        G = G - (V * (v * v / den)) @ one.cross
    center = np.eye(len(V)) - 1 / len(V)
    theta, C = mean[one.items], covariance[np.ix_(one.items, one.items)]
    e = center @ (B @ (V @ one.rho) + G @ theta)
    spread = center @ (B + G @ C @ G.T) @ center
    return e, np.sqrt(np.maximum(np.diag(spread), 0.0))


def worth(base: Floats, S: Floats, covariance: Floats, items: Ints, votes: float) -> float | None:
    """How many more votes of the target would have made the mean error of its ``items`` as small as a source made it.

    ``S`` is the precision of theta without the source, ``base`` the target's part of it.  That part is multiplied by f
    until the mean variance of centered scores is that of ``covariance``, which the source gave; the worth is (f - 1)
    times the target's votes.  0 if the source made no difference; None if no f up to `MOST_WORTH` would do, as where
    the target's votes do not join all its items.
    """
    share, X = eigh(base, S, check_finite=False)  # X' S X = 1, so the variance is a sum over eigenvectors
    own, C = X[items], covariance[np.ix_(items, items)]
    part = (own**2).mean(axis=0) - own.mean(axis=0) ** 2
    goal = float(np.trace(C) / len(C) - C.mean())

    def variance(f: float) -> float:
        return float((part / (1 + (f - 1) * np.maximum(share, 0.0))).sum())

    if variance(1.0) <= goal:
        return 0.0
    if variance(MOST_WORTH) > goal:
        return None
    low, high = 1.0, MOST_WORTH
    for _ in range(50):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if variance(middle) > goal else (low, middle)
    return (high - 1) * votes
