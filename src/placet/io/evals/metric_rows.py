"""Scores of a log that has several metrics of a task: one of them is read, and repeated answers are averaged."""

from collections.abc import Sequence
from typing import Any

from placet.data import DataError, Scores
from placet.io.evals.json_logs import refuse_empty
from placet.io.files import Source, name_of
from placet.io.tables.column_names import split_names
from placet.io.text import plural

_MOST_NAMED = 12


class MetricRows:
    """The scores of a log by task and metric.

    ``metric`` names those to read: of each task the first that it has.  None takes the only one, and a task with
    several is a ``DataError`` that names them.
    """

    def __init__(self, source: Source, metric: str | Sequence[str] | None) -> None:
        self.source, self.wanted = source, None if metric is None else split_names(metric)
        self._found: dict[str, dict[str, dict[tuple[str, Any], list[float]]]] = {}

    def add(self, model: str, task: str, metric: str, question: Any, value: float) -> None:
        """Add a score; ``question`` is None where the log has none."""
        of_task = self._found.setdefault(task, {})
        of_task.setdefault(metric, {}).setdefault((model, question), []).append(value)

    def scores(self, format: str, notes: Sequence[str] = ()) -> Scores:
        """The scores of the chosen metrics, with notes that say which these are."""
        refuse_empty(list(self._found), self.source, "scores")
        rows: list[tuple[str, str, float, Any]] = []
        used: dict[str, None] = {}
        repeated = 0
        for task, metrics in self._found.items():
            metric = self._choose(task, list(metrics))
            used[metric] = None
            for (model, question), values in metrics[metric].items():
                repeated += len(values) - 1
                rows.append((model, task, sum(values) / len(values), question))
        models, tasks, means, questions = zip(*rows)
        asked = None if all(question is None for question in questions) else questions
        averaged = [f"{plural(repeated, 'repeated answer')} averaged with the first"] if repeated else []
        said = f"read as {format}: metric {', '.join(used)}"
        return Scores.from_rows(models, tasks, means, asked, notes=(said, *averaged, *notes))

    def _choose(self, task: str, names: list[str]) -> str:
        listed = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
        if self.wanted is not None:
            for name in self.wanted:
                if name in names:
                    return name
            raise DataError(
                f"{name_of(self.source)}: task {task!r} has none of the metrics {self.wanted}; it has {listed}; "
                "name one of these in metric="
            )
        if len(names) == 1:
            return names[0]
        ways = " or ".join(f"--read metric={name}" for name in names[:2])
        raise DataError.of_ways(
            f"{name_of(self.source)}: task {task!r} has {len(names)} metrics ({listed}), and one of them is read; "
            f'choose it: {ways}, in Python metric="{names[0]}"',
            [f'metric="{name}"' for name in names[:_MOST_NAMED]],
        )


def as_score(value: Any) -> float | None:
    """A number, True or False as a score; None for anything else, and for NaN."""
    if not isinstance(value, int | float):
        return None
    return float(value) if value == value else None


def name_or_refuse(given: Any, found: str | None, what: str, source: Source) -> str:
    """The name that was given for a model or task, else the one that was found; a ``DataError`` if there is none."""
    if given is not None and not (isinstance(given, str) and given):
        raise ValueError(f"{what} must be a name, not {given!r}; write it as text")
    if name := given or found:
        return str(name)
    raise DataError(
        f"{name_of(source)}: this log does not name its {what}, and neither does its path; add --read {what}=NAME, "
        f'in Python {what}="..."'
    )
