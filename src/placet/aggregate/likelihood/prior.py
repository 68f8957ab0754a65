"""Prior width of the scores, learned from the data by marginal likelihood.

With n scores that are normal with mean 0 and standard deviation w, the marginal likelihood of the data satisfies
d log p / d log w = E[theta' theta] / w^2 - n, the expectation being under the posterior for this w (Fisher's identity).
A prior density of w proportional to w keeps it away from 0, where a few items would seem exactly equal (Chung et al.,
A nondegenerate penalized likelihood estimator for variance parameters, Psychometrika 2013); the best w then satisfies
E[theta' theta] / (n - 1) = w^2.  Two items determine no width; with many items the density of w hardly matters.
Laplace approximation: the posterior is normal around its mode, with the inverse Hessian as covariance.
"""

import math
from collections.abc import Callable
from typing import Any

LEARN = "learn"
NARROWEST, WIDEST_PRIOR = 0.01, 10.0
"""Bounds of a learned width: the best width is 0 if items do not differ, and infinite if there are no upsets."""

ACCURACY = 0.005
"""Relative accuracy of a learned width, far finer than the data can resolve."""

MOST_DRAWS, DRAWN_ACCURACY = 8, 1e-3
"""For sampled variances: maximum number of draws, and the relative accuracy of the mean square at which they stop."""

EXTRA_PRIOR = 10.0
"""Standard deviation of the normal prior of the tie parameter and of the effects of controls (scaled by their root mean
squares), used if the scores have a prior."""

LEARNING_TOLERANCE = 1e-6
"""Tolerance of the fits from which the prior width is learned."""


def check_prior(prior: Any) -> None:
    """Raise ``ValueError`` unless ``prior`` is a positive number, "learn" or None."""
    if prior is None or prior == LEARN:
        return
    if isinstance(prior, str) or not 0 < prior < math.inf:
        raise ValueError(f'prior must be a positive standard deviation, "learn" or None, not {prior!r}')


def learn_width(mean_square: Callable[[float], tuple[float, float]], start: float = 1.0, max_iter: int = 40) -> float:
    """The width w at which ``mean_square(w)`` is w^2, within [NARROWEST, WIDEST_PRIOR].

    ``mean_square(w)`` returns E[theta' theta] / (n - 1) under the posterior with a prior of width w, and the (possibly
    rough) derivative of its logarithm in log w.  The first step on log w is a Newton step, the others are bracketed
    secant steps; with many data the mean square hardly depends on w, and one call is enough.

    >>> square = lambda w: (1 / (1 / w**2 + 1) + (2 / (1 + 1 / w**2)) ** 2, 0.5)  # x = 2 +- 1: w^2 = 3
    >>> round(learn_width(square), 2)
    1.73
    """
    low, high = math.log(NARROWEST), math.log(WIDEST_PRIOR)
    u = min(max(math.log(start), low), high)
    before: tuple[float, float] | None = None
    for _ in range(max_iter):
        square, growth = mean_square(math.exp(u))
        excess = 0.5 * math.log(max(square, 1e-300)) - u
        low, high = (u, high) if excess > 0 else (low, u)
        first = before is None or u == before[0]
        slope = 0.5 * growth - 1 if before is None or first else (excess - before[1]) / (u - before[0])
        step = -excess / min(slope, -1e-3)
        before = (u, excess)
        new = u + step
        if not low < new < high:  # the bound itself if not tried yet, else the midpoint
            new = high if new >= high and high == math.log(WIDEST_PRIOR) else 0.5 * (low + high)
        elif first and 0 <= growth < 0.5 and growth * step**2 <= ACCURACY:  # growth falls off as 1 / w^2
            return math.exp(new)
        if abs(new - u) <= ACCURACY or high - low <= ACCURACY:
            return math.exp(new)
        u = new
    return math.exp(u)


def prior_note(width: float, learned: bool) -> str:
    """Note on the prior of the scores."""
    how = ""
    if learned:
        how = ", learned from the data"
        if width <= NARROWEST * (1 + ACCURACY):
            how += " (at the lower limit of the search: they show no differences)"
        elif width >= WIDEST_PRIOR * (1 - ACCURACY):
            how += " (at the upper limit of the search)"
    return f"prior: scores are normal with mean 0 and standard deviation {width:.3g}{how}"
