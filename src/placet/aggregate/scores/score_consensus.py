"""Consensus of score tables: mean, mean win rate and Rasch, with errors from a paired bootstrap of tasks or questions.

All items are measured on the same tasks, so a hard task is hard for all of them: tasks (or the questions within each
task) are reweighted for all items at once, by Dirichlet weights (Rubin, The Bayesian bootstrap, Annals of Statistics
1981), so that common effects of tasks cancel in differences between items.  Draws are stretched around the scores so
that for plain means the standard error is the unbiased one, s / sqrt(n).

With missing cells, means are those of the two-way model x = item + task fitted to the observed cells, which is the
plain mean if all are observed.

What is separated follows from flipped signs of what tasks (or questions) add to the differences
(`placet.aggregate.result.independent_units`): spreads of few tasks vary, and the smallest of many is far too small.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from placet.aggregate.likelihood.prior import check_width
from placet.aggregate.method import Method
from placet.aggregate.result.independent_units import MOST_ITEMS, MOST_UNITS, Units
from placet.aggregate.result.result import Consensus
from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.data.scores import Scores

Unit = Literal["task", "question"]
FEW = 10
"""Number of tasks or questions below which a note warns that errors estimated from them are uncertain."""


class ScoreFit(NamedTuple):
    """How a method of score tables is computed.

    ``fit(scores, weight, **params)`` returns scores (n_items,) for weights (n_columns,) of the columns; ``prepare``
    checks the table once and returns notes; ``refit(scores, **params)``, if fits are slow, returns a function from
    weights to scores that is accurate enough for errors; ``parts(scores, **params)`` returns (n_items, n_columns) what
    columns add to the scores, up to a common shift; ``answer(scores, method, bootstrap, random_state, progress,
    **params)`` gives the whole result of a method that has errors of its own.
    """

    fit: Callable[..., Floats]
    prepare: Callable[..., list[str]]
    parts: Callable[..., Floats]
    refit: Callable[..., Callable[[Floats], Floats]] | None = None
    answer: Callable[..., Consensus] | None = None

    @staticmethod
    def check_unit(unit: Any) -> None:
        """Raise a ``ValueError`` for a unit of resampling that there is not."""
        one_of(unit, get_args(Unit), "unit")


ROUNDS = 1000
"""Default number of resampling rounds."""


def mean(scores: Scores, weight: Floats) -> Floats:
    """The mean over equally weighted tasks; with missing cells, that of the model x = item + column.

    O(items columns), or O(items^2 columns) with missing cells.

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> import placet
    >>> placet.consensus(placet.Scores.from_table([[0.5, 0.75], [1.0, 0.5]], items="ab"), "mean").scores
    array([0.625, 0.75 ])
    """
    u = weight / np.bincount(scores.task, minlength=scores.n_tasks)[scores.task]
    there = ~np.isnan(scores.value)
    u = np.where(there.any(axis=0), u, 0.0)  # a column without scores says nothing
    if there.all():
        return scores.value @ u / u.sum()
    x = np.where(there, scores.value, 0.0)
    W = there * u
    by_column = W.sum(axis=0)
    by_column[by_column == 0.0] = 1.0
    a = _additive_parts(x, W).sum(axis=1)
    b = (W * (x - a[:, None])).sum(axis=0) / by_column
    return a + b @ u / u.sum()


def _additive_parts(x: Floats, W: Floats) -> Floats:
    """(n_items, n_columns): what columns of x add to the item effects, with mean 0, of x = item + column weighted by W.

    O(items^2 columns).
    """
    n = len(x)
    by_column = W.sum(axis=0)
    share = W / np.where(by_column > 0, by_column, 1.0)
    A = np.diag(W.sum(axis=1)) - share @ W.T + np.full((n, n), W.sum() / n**2)  # the mean is free: make it 0
    found: Floats = np.linalg.solve(A, W * x - share * (W * x).sum(axis=0))
    return found


def _parts_of_means(scores: Scores) -> Floats:
    there = ~np.isnan(scores.value)
    size = np.bincount(scores.task, minlength=scores.n_tasks)[scores.task]
    return _additive_parts(np.where(there, scores.value, 0.0), there / size)


def mean_win_rate(scores: Scores, weight: Floats) -> Floats:
    """The share of other items that an item beats on a task, ties counting half, averaged over the tasks it has.

    Column weights apply to questions within tasks, and their sums to tasks.

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> import placet
    >>> table = placet.Scores.from_table([[0.5, 0.75], [1.0, 0.5], [0.2, 0.1]], items="abc")
    >>> placet.consensus(table, "mean-win-rate").scores
    array([0.75, 0.75, 0.  ])
    """
    rate = _win_rates(scores.by_task(weight))
    there = ~np.isnan(rate)
    size = np.bincount(scores.task, minlength=scores.n_tasks)
    u = np.bincount(scores.task, weight, scores.n_tasks) / size
    total = there @ u
    if (total <= 0).any():
        k = int(np.argmax(total <= 0))
        raise DataError(f"item {scores.items[k]!r} has no task in common with another item; leave it out")
    return (np.where(there, rate, 0.0) @ u) / total


def _win_rates(table: Floats) -> Floats:
    """(n_items, n_tasks): the share of the other items that an item beats; NaN if it has no score, or alone has one."""
    from scipy.stats import rankdata

    others = (~np.isnan(table)).sum(axis=0) - 1.0
    return (rankdata(table, axis=0, nan_policy="omit") - 1) / np.where(others > 0, others, np.nan)


def _parts_of_rates(scores: Scores) -> Floats:
    """What tasks add to the win rates less one half; that of a task is shared by its questions, by what they add to
    the difference of its means: only their signs matter.
    """
    rate = _win_rates(scores.by_task())
    there = ~np.isnan(rate)
    parts = np.where(there, rate - 0.5, 0.0) / np.maximum(there.sum(axis=1, keepdims=True), 1)
    return parts[:, scores.task] if scores.questions is None else _parts_of_means(scores)


def _parts_of_abilities(scores: Scores, prior: float | None = 3.0, top: float = 1.0) -> Floats:
    """Influences of the columns on the abilities, and the shares of the abilities themselves by the additive model."""
    from placet.aggregate.scores.rasch import fit_rasch

    fit = fit_rasch(scores.value / top, np.ones(len(scores.task)), prior)
    there = ~np.isnan(scores.value)
    return fit.influence + _additive_parts(there * fit.theta[:, None], there.astype(np.float64))


def rasch(scores: Scores, weight: Floats, prior: float | None = 3.0, top: float = 1.0) -> Floats:
    """Ability in the Rasch model, see `placet.aggregate.scores.rasch`; ``top`` is the score for solving everything.

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> import placet
    >>> board = placet.consensus(placet.Scores.from_table([[0.5, 0.75], [0.9, 0.95], [0.2, 0.4]], items="abc"), "rasch")
    >>> board.ranking
    ['b', 'a', 'c']
    """
    from placet.aggregate.scores.rasch import fit_rasch

    return fit_rasch(scores.value / top, weight, prior).theta


def _prepare_means(scores: Scores) -> list[str]:
    notes = []
    missing = int(np.isnan(scores.value).sum())
    if missing:
        notes.append(
            f"{missing} of {scores.value.size} scores {'is' if missing == 1 else 'are'} missing; the means are "
            f"adjusted for {'it' if missing == 1 else 'them'} (additive model: item + task)"
        )
    table = scores.by_task()
    size = np.abs(np.where(np.isnan(table), 0.0, table)).max(axis=0)
    if size.min() > 0 and size.max() > 20 * size.min():
        large, small = (scores.tasks[int(k)] for k in (np.argmax(size), np.argmin(size)))
        notes.append(
            f"tasks are on different scales ({large!r} up to {size.max():.4g}, {small!r} up to {size.min():.4g}), so "
            "the large ones decide the mean; 'mean-win-rate' does not depend on scales"
        )
    return notes


def _prepare_rates(scores: Scores) -> list[str]:
    missing = int(np.isnan(scores.by_task()).sum())
    return [f"{missing} scores are missing: win rates are among the items that have a task"] if missing else []


def _prepare_rasch(scores: Scores, prior: float | None = 3.0, top: float = 1.0) -> list[str]:
    if prior is not None:
        check_width(prior, "prior")
    if not top > 0:
        raise ValueError(f"top must be positive, the score of an item that solves all, not {top}")
    wrong = (scores.value < 0) | (scores.value > top)
    if wrong.any():
        i, c = np.argwhere(wrong)[0]
        raise DataError(
            f"'rasch' needs shares of questions solved, 0..{top:g}; item {scores.items[i]!r} has "
            f"{scores.value[i, c]:g} for task {scores.tasks[scores.task[c]]!r} ({wrong.sum()} such scores); "
            "say top=100 for percents, or use "
            "'mean-win-rate'"
        )
    shares = np.unique(scores.value[~np.isnan(scores.value)] / top)
    if len(shares) < 2 and set(shares) <= {0.0, 1.0}:
        raise DataError("every item solves all or nothing of every task: 'rasch' cannot tell them apart; use 'mean'")
    return [] if prior is None else [f"prior: abilities are normal with mean 0 and standard deviation {prior:g}"]


def consensus_of_scores(
    scores: Scores, method: Method, bootstrap: int, random_state: int, progress: Any = None, **params: Any
) -> Consensus:
    """The consensus of a score table by one of its methods; ``bootstrap=0`` uses `ROUNDS` rounds.

    ``unit``: what is resampled, "task" or "question" (within each task); by default questions if the table has them.
    """
    record: ScoreFit = method.function
    if record.answer is not None:
        return record.answer(scores, method, bootstrap, random_state, progress, **params)
    unit: str = params.pop("unit", None) or ("question" if scores.questions is not None else "task")
    if unit == "question" and scores.questions is None:
        raise ValueError('unit="question" needs a table with questions: name their column with question=')
    refuse_apart(scores)
    notes = [*scores.notes, *record.prepare(scores, **params)]
    found = record.fit(scores, np.ones(len(scores.task)), **params)
    rounds = bootstrap or ROUNDS
    rng = np.random.default_rng(random_state)
    groups = scores.task if unit == "question" else None
    n = len(scores.task) if unit == "question" else scores.n_tasks
    draws: Floats | None = None
    units: Units | None = None
    if n > 1:
        again = record.refit(scores, **params) if record.refit else lambda w: record.fit(scores, w, **params)
        rows = []
        for k in range(rounds):
            rows.append(again(_weights(scores, groups, rng)))
            if progress is not None:
                progress(k + 1, rounds)
        draws = found + _widening(scores, groups) * (np.array(rows) - found)
        notes.append(f"uncertainty: {rounds:,} random reweightings of the {n} {unit}s, shared by all items")
        units = _units(scores, record.parts(scores, **params), unit)
        few = units.notes() if units is not None else []
        if n < FEW and not few:
            few = [f"{n} {unit}s are few: errors estimated from them are themselves uncertain"]
        notes += few
    else:
        notes.append("one task alone does not say how sure the order is; give its questions, or more tasks")
    return Consensus(
        scores.items,
        found,
        method=method.name,
        params={"unit": unit, **params},
        draws=draws,
        units=units,
        notes=tuple(notes),
        support=(~np.isnan(scores.by_task())).sum(axis=1).astype(np.float64),
    )


def _units(scores: Scores, parts: Floats, unit: str) -> Units | None:
    """What each task or question adds to the scores; None if they are many."""
    if unit == "task":
        parts = np.array([np.bincount(scores.task, row, scores.n_tasks) for row in parts])
    if parts.shape[1] > MOST_UNITS or len(parts) > MOST_ITEMS:
        return None
    return Units(unit, np.ascontiguousarray(parts.T), np.ones(parts.shape[1]))


def _one_step(scores: Scores, prior: float | None = 3.0, top: float = 1.0) -> Callable[[Floats], Floats]:
    """A function from column weights to abilities, by one Newton step from the optimum, which suffices for errors."""
    from placet.aggregate.scores.rasch import fit_rasch

    fit = fit_rasch(scores.value / top, np.ones(len(scores.task)), prior)

    def step(weight: Floats) -> Floats:
        moved = fit.theta + fit.influence @ (weight - 1)
        return moved - moved.mean()

    return step


MEAN = ScoreFit(mean, _prepare_means, _parts_of_means)
MEAN_WIN_RATE = ScoreFit(mean_win_rate, _prepare_rates, _parts_of_rates)
RASCH = ScoreFit(rasch, _prepare_rasch, _parts_of_abilities, _one_step)


def _weights(scores: Scores, groups: Any, rng: np.random.Generator) -> Floats:
    """Dirichlet weights of the columns with mean 1: over tasks, or over the questions within each task."""
    if groups is None:
        g = rng.standard_exponential(scores.n_tasks)
        return (g / g.mean())[scores.task]
    g = rng.standard_exponential(len(groups))
    size = np.bincount(groups)
    return g / (np.bincount(groups, g) / size)[groups]


def _widening(scores: Scores, groups: Any) -> float:
    """sqrt((n + 1) / (n - 1)), as a Dirichlet-weighted mean of n has variance s^2 (n - 1) / (n (n + 1)); averaged over
    tasks of different sizes.
    """
    if groups is None:
        return float(np.sqrt((scores.n_tasks + 1) / (scores.n_tasks - 1)))
    size = np.bincount(groups)
    size = size[size > 1]
    return float(np.sqrt(np.mean((size + 1) / (size - 1)))) if len(size) else 1.0


def refuse_apart(scores: Scores) -> None:
    """Raise `DataError` for items that share no task, even indirectly, and so cannot be compared."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    if not scores.n_items:
        raise DataError("the table has no items")
    there = csr_matrix(~np.isnan(scores.value))
    n = scores.n_items
    if (there.sum(axis=1) == 0).any():
        k = int(np.argmax(np.asarray(there.sum(axis=1)).ravel() == 0))
        raise DataError(f"item {scores.items[k]!r} has no score at all; leave it out")
    one, column = there.nonzero()
    graph = csr_matrix((np.ones(len(one)), (one, n + column)), shape=(n + there.shape[1],) * 2)
    _, group = connected_components(graph, directed=False)
    if len(np.unique(group[:n])) > 1:
        other = int(np.argmax(group[:n] != group[0]))
        raise DataError(
            f"items {scores.items[0]!r} and {scores.items[other]!r} share no task, not even through others; "
            f"the table falls into {len(np.unique(group[:n]))} parts: compare each alone"
        )
