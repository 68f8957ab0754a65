"""The mean of a metric from few queries judged by people and many by a judge, such as a language model."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from placet.metrics.paired import MeanSummary, list_values, summary

LEAST_BOTH = 8
"""Lists with both values, below which what the judge says is not used: a line through fewer says little."""
LEAST_SHARE = 2.0
"""Correlations are used above sqrt(LEAST_SHARE / (n - 1)): a judge that says nothing has 1 / (n - 1) for its square."""
MOST_LEVERAGE = 0.99


@dataclass(frozen=True)
class JudgedMean:
    """The mean under people's judgments, its standard error and interval, beside what each side says alone.

    ``human`` and ``judge`` are the means of each side alone and (``human_low``, ``human_high``) the interval of people
    alone.  ``n_both`` lists have both values; ``correlation`` is that of the two over them, NaN if there is none.
    ``is_used`` says whether the judge has a part in the mean.  ``worth`` is the number of lists that people would have
    to judge for as short an interval without the judge.

    >>> from placet.metrics import judged_mean
    >>> human, judge = [0.5, 0.7, 0.6, 0.4, float("nan"), float("nan")], [0.5, 0.8, 0.6, 0.3, 0.6, 0.7]
    >>> found = judged_mean(human, judge)
    >>> found.n_both, found.human.n_lists, found.judge.n_lists
    (4, 4, 6)
    """

    mean: float
    stderr: float
    low: float
    high: float
    level: float
    human: MeanSummary
    human_low: float
    human_high: float
    judge: MeanSummary
    n_both: int
    correlation: float
    is_used: bool
    worth: float


def judged_mean(human: ArrayLike, judge: ArrayLike, *, level: float = 0.95) -> JudgedMean:
    """The mean of ``human`` (lists,), as if people had judged every list that ``judge`` (lists,) has a value for.

    A value is NaN where a side has judged nothing.  People's lists are taken as a random sample of all.  The mean of
    people is moved along the line of their values on the judge's, by as much as the judge's mean over all lists differs
    from that over people's: a judge that is too kind, or of another scale, does no harm.  The error has two parts, that
    of the line at the judge's mean, and the line's slope times the error of that mean; the interval is by Student's t,
    with the degrees of freedom of both (Welch, Satterthwaite).  If fewer than ``LEAST_BOTH`` lists have both values, or
    these hardly go together, the answer is that of people alone.

    Returns
    -------
    JudgedMean
        The mean and its interval, and those of people alone.

    >>> judge = [0.6, 0.8, 0.5, 0.9, 0.9, 0.4, 0.6, 0.7] + 4 * [0.3, 0.5, 0.6, 0.4]
    >>> human = [0.5, 0.7, 0.4, 0.9, 0.8, 0.3, 0.6, 0.6] + 16 * [float("nan")]
    >>> found = judged_mean(human, judge)
    >>> round(found.human.mean, 2), round(found.mean, 2), round(found.worth)
    (0.6, 0.44, 16)
    """
    h, j = list_values(human, "human"), list_values(judge, "judge")
    if h.shape != j.shape:
        raise ValueError(
            f"human has {len(h)} lists and judge {len(j)}; give both for the same lists, NaN where missing"
        )
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must be between 0 and 1")
    if np.isinf(h).any() or np.isinf(j).any():
        raise ValueError(f"{int(np.isinf(h).sum() + np.isinf(j).sum())} values are infinite; they have no mean")
    people, machine = summary(h), summary(j)
    own = (people.mean, people.stderr, *_interval(people.mean, people.stderr, people.n_lists - 1, level))
    both = ~np.isnan(h) & ~np.isnan(j)
    n, correlation = int(both.sum()), _correlation(h[both], j[both])
    used = n >= LEAST_BOTH and correlation > math.sqrt(LEAST_SHARE / (n - 1))
    found = _by_line(h, j, level) if used else own
    low, high = own[2:]
    worth = people.n_lists * ((high - low) / (found[3] - found[2])) ** 2 if used else float(people.n_lists)
    return JudgedMean(*found, level, people, low, high, machine, n, correlation, used, worth)


def _by_line(h: np.ndarray, j: np.ndarray, level: float) -> tuple[float, float, float, float]:
    """The mean, its standard error and the ends of its interval, by the line of people's values on the judge's.

    A list that people alone have a value for stands at the judge's mean, where the line moves nothing.  The spread
    around the line has one more miss as large as the spread of people's values: a judge that agreed in all of few
    lists may still differ in the next.  It is not below the one that gives each list its own spread (HC3).
    """
    known, seen = ~np.isnan(j), ~np.isnan(h)
    middle = float(j[known].mean())
    x, y = np.where(known, j, middle)[seen], h[seen]
    n, away, shift = len(y), x - x.mean(), middle - float(x.mean())
    square = float(away @ away)
    slope = float(away @ y) / square
    left = y - y.mean() - slope * away
    spread = (float(left @ left) + float(y.var(ddof=1))) / (n - 1)
    weight, leverage = 1 / n + shift * away / square, 1 / n + away**2 / square
    each = weight * left / (1 - np.minimum(leverage, MOST_LEVERAGE))
    line = max(spread * (1 / n + shift**2 / square), float(each @ each))
    far = slope**2 * float(j[known].var(ddof=1)) / int(known.sum())
    freedom = (line + far) ** 2 / (line**2 / (n - 2) + far**2 / (int(known.sum()) - 1))
    mean, stderr = float(y.mean()) + slope * shift, math.sqrt(line + far)
    return (mean, stderr, *_interval(mean, stderr, freedom, level))


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's, NaN if a side has one value only."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def _interval(mean: float, stderr: float, freedom: float, level: float) -> tuple[float, float]:
    if not freedom > 0:
        return -math.inf, math.inf
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, (1 + level) / 2)) * stderr
    return mean - half, mean + half
