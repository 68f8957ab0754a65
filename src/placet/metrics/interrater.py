"""Agreement between raters: Krippendorff's alpha, Kendall's W.

Tables have a row per rater and a column per unit (an item, a pair, a question); NaN marks a missing rating.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, table
from placet.data.engines.memory import refuse_table
from placet.data.errors import one_of

ROUNDS = 200
"""Bootstrap rounds in `describe_agreement`."""


class Agreement(NamedTuple):
    """A coefficient of agreement, 1 if all agree and about 0 by chance, with the ends of its bootstrap interval.

    >>> Agreement(0.62, 0.5, 0.7).value
    0.62
    """

    value: float
    low: float | None = None
    high: float | None = None


FEWER = "give fewer, or round the values"


def _ordinal(totals: Floats, values: Floats) -> Floats:
    below = np.cumsum(totals)
    middle = below - totals / 2
    return (middle[:, None] - middle[None, :]) ** 2


def _ratio(totals: Floats, values: Floats) -> Floats:
    total = values[:, None] + values[None, :]
    return ((values[:, None] - values[None, :]) / np.where(total == 0, 1.0, total)) ** 2


DIFFERENCES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "nominal": lambda totals, values: 1.0 - np.eye(len(values)),
    "ordinal": _ordinal,
    "interval": lambda totals, values: (values[:, None] - values[None, :]) ** 2,
    "ratio": _ratio,
}
"""Level of measurement -> function of the values' frequencies and the values: squared differences (values, values)."""


def krippendorff_alpha(
    ratings: Any, level: str = "nominal", *, bootstrap: int = 0, confidence: float = 0.95, random_state: int = 0
) -> Agreement:
    """Krippendorff's alpha, 1 - observed / expected disagreement, of a table (raters, units) or of votes.

    With n_uv ratings v of unit u, n_u ratings of unit u and n ratings of all units with two or more, the coincidences
    of v and w are sum_u n_uv (n_uw - [v = w]) / (n_u - 1), and those expected by chance n_v (n_w - [v = w]) / (n - 1).
    ``level`` is "nominal", "ordinal", "interval" or "ratio".  For votes (`Comparisons`), units are pairs and ratings
    are their outcomes.  ``bootstrap``: rounds of resampling units, for an interval at ``confidence``.  NaN if all
    ratings are equal.  O(raters units + values^2).

    Returns
    -------
    Agreement
        The ``value``, and the ends of its interval if ``bootstrap`` asks for one.

    >>> krippendorff_alpha([[1, 2, 3, 3], [1, 2, 3, 3], [1, 2, 3, 4]]).value.__round__(3)  # 1 - 2 / (100 / 11)
    0.78
    """
    one_of(level, DIFFERENCES, "level")
    counts, values = _counts(ratings)
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        raise DataError("no unit has two ratings, so nothing is known about agreement")
    value = _alpha(counts, values, level)
    if not bootstrap:
        return Agreement(value)
    rng = np.random.default_rng(random_state)
    n = len(counts)
    draws = [_alpha(counts, values, level, rng.multinomial(n, np.full(n, 1 / n))) for _ in range(bootstrap)]
    tail = (1 - confidence) / 2
    known = [draw for draw in draws if draw == draw]
    low, high = np.quantile(known, [tail, 1 - tail]) if known else (np.nan, np.nan)
    return Agreement(value, float(low), float(high))


def _counts(ratings: Any) -> tuple[Floats, Floats]:
    """Number of times each unit received each value (units, values), and the values."""
    if isinstance(ratings, Comparisons):
        lower, upper = np.minimum(ratings.i, ratings.j), np.maximum(ratings.i, ratings.j)
        _, unit = np.unique(lower * ratings.n_items + upper, return_inverse=True)
        first = np.where(ratings.i < ratings.j, ratings.wins_i, ratings.wins_j)
        second = np.where(ratings.i < ratings.j, ratings.wins_j, ratings.wins_i)
        columns = [np.bincount(unit, weight) for weight in (first, ratings.ties, second)]
        return np.column_stack(columns), np.array([1.0, 0.0, -1.0])[::-1]
    matrix = _matrix(ratings)
    listed = ~np.isnan(matrix)
    values, code = np.unique(matrix[listed], return_inverse=True)
    unit = np.nonzero(listed)[1]
    refuse_table(matrix.shape[1] + 4 * len(values), len(values), "tables of units and values", FEWER, 2.0)
    cell = np.bincount(unit * len(values) + code, minlength=matrix.shape[1] * len(values))
    return cell.reshape(matrix.shape[1], len(values)).astype(np.float64), values


def _alpha(counts: Floats, values: Floats, level: str, draws: Any = None) -> float:
    """Alpha of units with two or more ratings; ``draws``: how often each unit counts."""
    draws = np.ones(len(counts)) if draws is None else draws
    share = draws / (counts.sum(axis=1) - 1)
    observed = counts.T @ (share[:, None] * counts) - np.diag(share @ counts)
    totals = draws @ counts
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    difference = DIFFERENCES[level](totals, values)
    by_chance = float((expected * difference).sum())
    return 1 - float((observed * difference).sum()) / by_chance if by_chance > 0 else float("nan")


def kendall_w(ratings: Any) -> float:
    """Kendall's coefficient of concordance of a complete table (raters, items): 0 no agreement, 1 identical orders.

    W = 12 S / (m^2 (n^3 - n) - m sum T), S the sum of squared deviations of the items' rank sums, and T = t^3 - t for
    every group of t items tied by a rater.  Ratings may be higher-is-better or lower-is-better.  For ballots
    (`Rankings`), each ballot is a rater, counted by its weight, and must rank all items.  NaN if every rater ties all
    items.

    Returns
    -------
    float
        W, from 0 to 1; NaN if every rater ties all items.

    >>> round(kendall_w([[1, 2, 3], [1, 2, 3], [1, 3, 2]]), 4)  # rank sums 3, 7, 8: S = 14
    0.7778
    """
    matrix, weight = _rank_table(ratings)
    m, n = float(weight.sum()), matrix.shape[1]
    if np.isnan(matrix).any():
        gaps = int(np.isnan(matrix).sum())
        raise DataError(f"{gaps} ratings are missing; Kendall's W needs all of them: use krippendorff_alpha")
    if m < 2 or n < 2:
        raise DataError(f"{m:g} raters and {n} items: agreement needs two of each at least")
    from scipy.stats import rankdata  # takes half a second to import

    ranks = np.apply_along_axis(rankdata, 1, matrix)
    sums = weight @ ranks
    ties = [float(((size := np.unique(row, return_counts=True)[1]) ** 3 - size).sum()) for row in ranks]
    whole = m**2 * (n**3 - n) - m * float(weight @ ties)
    return 12 * float(((sums - sums.mean()) ** 2).sum()) / whole if whole > 0 else float("nan")


def _rank_table(ratings: Any) -> tuple[Floats, Floats]:
    """A table (raters, items) and the weight of each rater."""
    if not isinstance(ratings, Rankings):
        matrix = _matrix(ratings)
        return matrix, np.ones(len(matrix))
    sizes, n = np.diff(ratings.offsets), ratings.n_items
    short = sizes != n
    if short.any():
        k = int(np.argmax(short))
        raise DataError(
            f"ballot {k} ranks {sizes[k]} of {n} items ({short.sum()} such ballots); Kendall's W needs ballots of all "
            "items"
        )
    refuse_table(len(sizes), n, "a table of ballots and items", FEWER, 3.0)
    matrix = np.empty((len(sizes), n))
    matrix[np.repeat(np.arange(len(sizes)), sizes), ratings.item] = ratings.tier
    return matrix, np.asarray(ratings.weight, np.float64)


def describe_agreement(data: Any, rounds: int = ROUNDS) -> str:
    """Describe the agreement of the raters of votes, or of complete ballots, in words; "" if it is undefined."""
    if isinstance(data, Comparisons):
        if data.agent is None:
            return ""
        try:
            alpha = krippendorff_alpha(data, bootstrap=rounds)
        except DataError:
            return "no pair was judged twice, so nothing is known about how far raters agree"
        if np.isnan(alpha.value):
            return ""
        ends = f"95%: {alpha.low:.2f} to {alpha.high:.2f}"
        return f"raters agree on pairs by Krippendorff's alpha = {alpha.value:.3f} ({ends}); 0 is chance, 1 all agree"
    whole = isinstance(data, Rankings) and len(data) > 1 and data.n_items > 1 and data.instance is None
    if not whole or (np.diff(data.offsets) != data.n_items).any() or data.weight.sum() < 2:
        return ""
    w = kendall_w(data)
    return "" if np.isnan(w) else f"ballots agree by Kendall's W = {w:.3f}; 0 is none, 1 the same order throughout"


def _matrix(ratings: Any) -> Floats:
    matrix = np.asarray(table(ratings)[0], dtype=np.float64)
    if matrix.ndim != 2:
        raise DataError(f"ratings must be a table of raters x units, not of shape {matrix.shape}")
    return matrix
