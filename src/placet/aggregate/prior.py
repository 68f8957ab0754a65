"""The width of the scores' prior, learnt from the data by the marginal likelihood.

With n scores that are normal with mean 0 and standard deviation w, the marginal likelihood of the data satisfies
d log p / d log w = E[theta' theta] / w^2 - n, the expectation under the posterior with this w (Fisher's identity).
A density of w that rises like w keeps it away from 0, where a few items would seem to be known as equal (Chung et al.,
A nondegenerate penalized likelihood estimator for variance parameters, Psychometrika 2013); the best w then has
E[theta' theta] / (n - 1) = w^2.  Two items give no width, many items the one of the marginal likelihood alone.
Laplace: the posterior is normal about its mode, with the inverse Hessian as covariance.
"""

import math
from collections.abc import Callable
from typing import Any

LEARN = "learn"
NARROWEST, WIDEST_PRIOR = 0.01, 10.0
"""Bounds of a learnt width: without differences between the items the best is 0, without surprises it is infinite."""

ACCURACY = 0.005
"""Relative accuracy of a learnt width, far below what the data can tell."""

MOST_DRAWS, DRAWN_ACCURACY = 8, 1e-3
"""Where variances are sampled: draws at most, and the relative accuracy of the mean square at which they end."""


def check_prior(prior: Any) -> None:
    """A ``ValueError`` unless ``prior`` is a positive number, "learn" or None."""
    if prior is None or prior == LEARN:
        return
    if isinstance(prior, str) or not 0 < prior < math.inf:
        raise ValueError(f'prior must be a positive standard deviation, "learn" or None, not {prior!r}')


def learn_width(mean_square: Callable[[float], tuple[float, float]], start: float = 1.0, max_iter: int = 40) -> float:
    """The width w at which ``mean_square(w)`` is w^2, within [NARROWEST, WIDEST_PRIOR].

    ``mean_square(w)``: E[theta' theta] / (n - 1) under the posterior with a prior of width w, and how its logarithm
    grows with log w, which may be rough.  The first step on log w is Newton's, the others are secants in a bracket;
    where the data are many the mean square hardly depends on w, and one call is enough.

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
        step = -excess / min(slope, -0.02)
        before = (u, excess)
        new = u + step
        if not low < new < high:  # the bound itself where it has not been tried yet, else the middle
            new = high if new >= high and high == math.log(WIDEST_PRIOR) else 0.5 * (low + high)
        elif first and 0 <= growth < 0.5 and growth * step**2 <= ACCURACY:  # growth falls off as 1 / w^2
            return math.exp(new)
        if abs(new - u) <= ACCURACY or high - low <= ACCURACY:
            return math.exp(new)
        u = new
    return math.exp(u)


def prior_note(width: float, learnt: bool) -> str:
    """What the notes say about the prior of the scores."""
    how = ""
    if learnt:
        how = ", learnt from the data"
        if width <= NARROWEST * (1 + ACCURACY):
            how += " (the least that is tried: they show no differences)"
        elif width >= WIDEST_PRIOR * (1 - ACCURACY):
            how += " (the most that is tried)"
    return f"prior: scores are normal with mean 0 and standard deviation {width:.3g}{how}"
