"""Prior of the scores: a mean that follows how much data an item has, and a width, both learned from the data.

Popular items are better and verbose models are better, so that a prior with one mean for all would pull a popular item
down and a new one up.  The prior is theta = Z b + e with e normal of standard deviation w.  Z (n, k) holds the normal
scores of the items' support and, with controls, each item's mean controls (Mundlak, Econometrica 1978), so that an
effect is estimated within items and what is common to an item stays in its score.  The coefficients b of columns of
mean square 1 are normal with standard deviation w (support: a prior worth one item) or 3 w (controls), and are
integrated out: theta is normal with covariance w^2 K and K^-1 = I - U U', where U (n, k) is called the trend.

The marginal likelihood of the data satisfies d log p / d log w = E[theta' K^-1 theta] / w^2 - n, the expectation being
under the posterior for this w (Fisher's identity).  The density of w is proportional to w / (1 + (w / 2)^2)^(3/2): it
keeps w away from 0, where a few items would seem exactly equal (Chung et al., A nondegenerate penalized likelihood
estimator for variance parameters, Psychometrika 2013), and decides if the data say nothing.  The mode of the density of
log w given the data is the learned width; its curvature is the uncertainty of log w, which standard errors include.
Laplace approximation: the posterior is normal around its mode, with the inverse Hessian as covariance.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy

from placet.data.arrays import Floats

LEARN = "learn"
UNTOLD = math.sqrt(8.0)
"""The width if the data say nothing: the mode of log w under the density of w alone."""

NARROWEST, WIDEST_PRIOR = 0.01, 10.0
"""Bounds of a learned width: the best width is 0 if items do not differ, and infinite if there are no upsets."""

LEAST_WIDTH, MOST_WIDTH = 1e-9, 1e9
"""Bounds of a given width; beyond them scores are all equal, or free, to the last digit."""

ACCURACY = 0.005
"""Relative accuracy of a learned width, far finer than the data can resolve."""

FEWEST_FOR_TREND = 8
"""Smallest number of items with data from which a trend of the prior's mean is learned."""

CONTROLS_ITEMS = 9.0
"""Prior variance of the coefficients of mean controls in units of w^2; that of the support's coefficient is 1."""

EQUAL_SUPPORT = 1e-9
"""Relative difference of support below which two items have the same."""

MOST_BENT = 256
"""Largest number of items for which the covariance includes its second derivative in log w."""

MOST_SPREAD = 1.0
"""Largest standard deviation of log w that standard errors include."""

MOST_DRAWS, DRAWN_ACCURACY = 8, 1e-3
"""For sampled variances: maximum number of draws, and the relative accuracy of the mean square at which they stop."""

EXTRA_PRIOR = 10.0
"""Standard deviation of the normal prior of the tie parameter and of the effects of controls (scaled by their root mean
squares), used if the scores have a prior."""

LEARNING_TOLERANCE = 1e-6
"""Tolerance of the fits from which the prior width is learned."""


def check_prior(prior: Any) -> None:
    """Raise ``ValueError`` unless ``prior`` is a positive number within bounds, "learn" or None."""
    if prior is None or (isinstance(prior, str) and prior == LEARN):
        return
    if isinstance(prior, str) or not 0 < prior < math.inf:
        raise ValueError(f'prior must be a positive standard deviation, "learn" or None, not {prior!r}')
    check_width(prior, "prior")


def check_width(width: float, name: str) -> None:
    """Raise ``ValueError`` unless a standard deviation is one that float64 resolves."""
    if not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise ValueError(
            f"{name} must be a positive standard deviation in {LEAST_WIDTH:g}..{MOST_WIDTH:g}, not {width!r}"
        )


class Prior(NamedTuple):
    """A learned prior: the width, the standard deviation of its logarithm, and the trend U (n, k) of the mean.

    ``told``: whether the data say anything about it.
    """

    width: float
    spread: float
    trend: Floats
    told: bool = True


def trend_of(support: Floats, means: Floats | None = None) -> Floats:
    """The trend U (n, k) of a prior whose mean follows the support (n,) and the items' ``means`` of controls (n, c).

    Only items with data count for the scale of the columns, so that an item without any changes nothing for the
    others; it has the mean of the item with the least support.  No columns if the items with data are few, or have
    equal support and equal means.  O(n k^2).
    """
    known = support > 0
    if known.sum() < FEWEST_FOR_TREND:
        return np.zeros((len(support), 0))
    blocks = [_spread_out(_normal_scores(support, known)[:, None], known)]
    if means is not None:
        blocks.append(math.sqrt(CONTROLS_ITEMS) * _spread_out(means, known))
    direction, size, _ = np.linalg.svd(np.concatenate(blocks, axis=1), full_matrices=False)
    kept = size > 1e-6
    return direction[:, kept] * (size / np.sqrt(1 + size**2))[kept]


def _spread_out(Z: Floats, known: Any) -> Floats:
    """Combinations of the columns of Z that have mean 0 and mean square 1 and are orthogonal over the known items."""
    Z = Z - Z[known].mean(axis=0)
    scale = np.sqrt((Z[known] ** 2).mean(axis=0))
    Z = Z / np.where(scale > EQUAL_SUPPORT, scale, np.inf)
    _, size, across = np.linalg.svd(Z[known], full_matrices=False)
    kept = size > 1e-6 * math.sqrt(known.sum())
    return Z @ (across[kept].T / size[kept]) * math.sqrt(known.sum())


def _normal_scores(support: Floats, known: Any) -> Floats:
    """Normal quantiles (n,) of the places of the items by support; equal support shares the mean place."""
    logs = np.log(support[known])
    order = np.argsort(logs, kind="stable")
    group = np.empty(len(logs), np.int64)
    group[order] = np.cumsum(np.diff(logs[order], prepend=logs[order[0]]) > EQUAL_SUPPORT)
    sizes = np.bincount(group)
    quantile = scipy.special.ndtri((np.cumsum(sizes) - sizes / 2) / len(logs))
    out = np.full(len(support), quantile[0])
    out[known] = quantile[group]
    return out


def without_trend(trend: Floats, v: Floats) -> Floats:
    """K^-1 v = v - U U' v, for v (n,) or (n, m)."""
    return v - trend @ (trend.T @ v) if trend.shape[1] else v


def trend_root(trend: Floats, v: Floats) -> Floats:
    """K^-1/2 v, using that the columns of U are orthogonal."""
    square = (trend**2).sum(axis=0)
    return v - trend @ ((1 - np.sqrt(1 - square)) / square * (trend.T @ v)) if trend.shape[1] else v


def freedom(n: int, width: float, unit: float = 2.0) -> tuple[float, float]:
    """The value of E[theta' K^-1 theta] / w^2 at the mode of log w for n items, and its derivative in log w.

    The density of w is proportional to w / (1 + (w / unit)^2)^(3/2), so that w is unit sqrt(2) without data.
    """
    square, own = width**2, unit**2
    return n - 2 + 3 * square / (own + square), 6 * own * square / (own + square) ** 2


def learn_width(
    square_sum: Callable[[float], tuple[float, float]], n: int, start: float = 1.0, max_iter: int = 40
) -> tuple[float, float]:
    """The learned width w, within [NARROWEST, WIDEST_PRIOR], and the standard deviation of log w.

    ``square_sum(w)`` returns E[theta' K^-1 theta] under the posterior with a prior of width w, and the (possibly rough)
    derivative of its logarithm in log w; ``n`` is the number of scores, at least 2.  The first step on log w is a
    Newton step, the others are bracketed secant steps; with many data the sum hardly depends on w, and one call is
    enough.

    >>> def square(w):  # twenty scores of 2 +- 1
    ...     return 20 / (1 / w**2 + 1) + 20 * (2 / (1 + 1 / w**2)) ** 2, 0.5
    >>> [round(x, 2) for x in learn_width(square, 20)]
    [1.78, 0.18]
    """
    low, high = math.log(NARROWEST), math.log(WIDEST_PRIOR)
    u = min(max(math.log(start), low), high)
    before: tuple[float, float] | None = None
    growth = 0.0
    for _ in range(max_iter):
        total, growth = square_sum(math.exp(u))
        free, more = freedom(n, math.exp(u))
        excess = 0.5 * math.log(max(total, 1e-300) / free) - u
        low, high = (u, high) if excess > 0 else (low, u)
        first = before is None or u == before[0]
        slope = 0.5 * (growth - more / free) - 1
        slope = slope if before is None or first else (excess - before[1]) / (u - before[0])
        step = -excess / min(slope, -1e-3)
        before = (u, excess)
        new = u + step
        if not low < new < high:  # the bound itself if not tried yet, else the midpoint
            new = high if new >= high and high == math.log(WIDEST_PRIOR) else 0.5 * (low + high)
        elif first and 0 <= growth < 0.5 and growth * step**2 <= ACCURACY:  # growth falls off as 1 / w^2
            return math.exp(new), _spread(n, math.exp(new), growth)
        u, moved = new, abs(new - u)
        if moved <= ACCURACY or high - low <= ACCURACY:
            break
    return math.exp(u), _spread(n, math.exp(u), growth)


def _spread(n: int, width: float, growth: float) -> float:
    """Standard deviation of log w at its mode, given the derivative of the log of the sum of squares."""
    free, more = freedom(n, width)
    return min(1 / math.sqrt(max((2 - growth) * free + more, 1e-6)), MOST_SPREAD)


def width_uncertainty(C: Floats, theta: Floats, trend: Floats, precision: float, spread: float) -> Floats:
    """What the uncertainty ``spread`` of log w adds to the covariance C (n + q, n + q) of scores with mean zero.

    The mode moves by t = 2 c C K^-1 theta per unit of log w, c the prior's ``precision``; the covariance has the second
    derivative 8 c^2 C K^-1 C K^-1 C - 4 c C K^-1 C if the curvature of the likelihood is taken as constant.  Many items
    determine log w, and the second derivative, whose effect is then below a hundredth, is left out.  O(n^2), of
    few items O(n^3).
    """
    n = len(theta)
    A = C[:, :n].copy()
    A[:n] -= A[:n].mean(axis=0)
    t = 2 * precision * (A @ without_trend(trend, theta))
    if n > MOST_BENT:
        return spread**2 * t[:, None] * t
    S = without_trend(trend, A.T)  # K^-1 A'
    twice = (precision * S.T) @ (precision * C[:n, :n]) @ S
    return spread**2 * (t[:, None] * t + 4 * twice - 2 * precision * (A @ S))


def with_width(covariance: Floats, wider: Floats) -> Floats:
    """A covariance and what the uncertainty of the prior's width adds to it, if no variance becomes negative.

    The second derivative in it is that of the inverse of the curvature, which may exceed a sandwich: votes that are all
    ties have gradients of zero.
    """
    total = covariance + wider
    return total if (np.diag(total) >= 0).all() else covariance


def prior_note(width: float, learned: bool, trend: bool = False, told: bool = True) -> str:
    """Note on the prior of the scores; ``trend``: whether its mean follows the support and mean controls of items.

    ``told``: whether the data, if it is learned from them, compare any items at all.
    """
    how = ""
    if learned and not told:
        how = ", which is assumed: the data compare no items"
    elif learned:
        how = ", learned from the data"
        if width <= NARROWEST * (1 + ACCURACY):
            how += " (at the lower limit of the search: they show no differences)"
        elif width >= WIDEST_PRIOR * (1 - ACCURACY):
            how = ", at the upper limit of the search: the data do not bound it"
    mean = "around a mean that follows the items' support, with" if trend else "with mean 0 and"
    return f"prior: scores are normal {mean} standard deviation {width:.3g}{how}"
