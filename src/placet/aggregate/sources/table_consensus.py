"""The consensus of a score table by item response with slopes, which predicts the cells that are missing."""

from typing import Any

import numpy as np

from placet.aggregate.likelihood.information import SCORE_TOLERANCE, with_mean_zero
from placet.aggregate.method import Method
from placet.aggregate.result.learned.task_responses import TaskResponses
from placet.aggregate.result.result import Consensus
from placet.aggregate.scores.score_consensus import FEW, ScoreFit, refuse_apart
from placet.aggregate.sources.item_response import Response, TableLikelihood
from placet.aggregate.sources.source_fit import SourceFit, fit_sources
from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.scores import Scores


def item_response(scores: Scores, weight: Floats, response: Response = "auto") -> Floats:
    """Abilities by item response with slopes (`placet.aggregate.sources.item_response`); all columns count alike.

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> import placet
    >>> table = placet.simulate.benchmark_table([1.0, 0.0, -1.0], [0.0] * 12, items="abc")
    >>> placet.consensus(table, "item-response").ranking
    ['a', 'b', 'c']
    """
    return _fit(scores, response)[0].mean


def table_consensus(
    scores: Scores, method: Method, bootstrap: int, random_state: int, progress: Any, response: Response = "auto"
) -> Consensus:
    """The result of `item_response`, with errors from the joint information of abilities, difficulties and slopes."""
    refuse_apart(scores)
    found, table = _fit(scores, response)
    n, x = scores.n_items, found.joint.of_target(found.x)
    H = table.derivatives(x)[1]
    H[np.arange(n), np.arange(n)] += found.widths.w**-2
    C: Floats = np.linalg.inv(H).astype(np.float64)
    cells = np.bincount(table.task, minlength=table.n_tasks)
    responses = TaskResponses(
        scores.items, scores.tasks, x, C, table.dispersion, cells, table.link == "share", table.center, table.unit
    )
    draws = _draws(scores, response, bootstrap, random_state) if bootstrap else None
    more = [f"uncertainty from {bootstrap} bootstrap rounds of tasks"] if bootstrap else []
    return Consensus(
        scores.items,
        x[:n] - x[:n].mean(),
        method=method.name,
        params={"response": response},
        covariance=None if bootstrap else with_mean_zero(C[:n, :n], n),
        draws=draws,
        fit=found.fit,
        notes=(*scores.notes, *_notes(scores, table, found), *more),
        tolerance=SCORE_TOLERANCE,
        support=(~np.isnan(scores.by_task())).sum(axis=1).astype(np.float64),
        prior=found.widths.w,
        responses=responses,
    )


def _fit(scores: Scores, response: str) -> tuple[SourceFit, TableLikelihood]:
    if scores.n_tasks < 2:
        raise DataError("one task alone has no slope and no noise to learn; use 'mean' or 'rasch'")
    table = TableLikelihood.of(scores, np.arange(scores.n_items), response)
    if np.ptp(table.y) == 0:
        raise DataError("all scores are equal: item response cannot tell items apart; use 'mean'")
    return fit_sources(table, [], scores.n_items), table


def _draws(scores: Scores, response: str, rounds: int, random_state: int) -> Floats:
    """(rounds, n): abilities from tasks drawn with replacement."""
    rng, by_task, drawn = np.random.default_rng(random_state), scores.by_task(), []
    for _ in range(rounds):
        again = Scores.from_table(by_task[:, rng.integers(scores.n_tasks, size=scores.n_tasks)], items=scores.items)
        mean = _fit(again, response)[0].mean
        drawn.append(mean - mean.mean())
    return np.array(drawn)


def _notes(scores: Scores, table: TableLikelihood, found: SourceFit) -> list[str]:
    missing = int(np.isnan(scores.by_task()).sum())
    notes = [] if found.fit.converged else [found.fit.message]
    if missing:
        total = scores.n_items * scores.n_tasks
        notes.append(f"{missing} of {total} scores are missing; predict(item, task) gives each with its interval")
    if table.link == "number":
        notes.append("scores are not all in 0..1, so they are taken as numbers: each task is standardized")
    if scores.n_tasks < FEW:
        notes.append(f"{scores.n_tasks} tasks are few: slopes are mostly those of the prior")
    return notes


def _parts(scores: Scores, response: Response = "auto") -> Floats:
    """(n_items, n_columns): what every task adds to the abilities, by one Newton step."""
    found, table = _fit(scores, response)
    n, x = scores.n_items, found.joint.of_target(found.x)
    H = table.derivatives(x)[1]
    H[np.arange(n), np.arange(n)] += found.widths.w**-2
    slope = np.zeros((len(H), table.n_tasks))
    slope[table.item, table.task] = table.slopes(x)
    added: Floats = np.linalg.solve(H, -slope)[:n].astype(np.float64)
    return added[:, scores.task] / np.bincount(scores.task)[scores.task]


ITEM_RESPONSE = ScoreFit(item_response, lambda scores: [], _parts, answer=table_consensus)
