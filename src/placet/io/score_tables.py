"""Score tables: a row per model and a column per task, or a row per score."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.parameters import with_checked_options
from placet.data.scores import Scores
from placet.io.files import Source
from placet.io.tables.cells import as_number
from placet.io.tables.column_names import ABOUT, WHO, plain_name, roles_by_column, split_names
from placet.io.tables.tables import FileHead, Table, TableRows, read_table, write_table
from placet.io.text import OnError

ITEMS = (
    "model",
    "model_name",
    "system",
    "system_name",
    "method",
    "submission",
    "algorithm",
    "checkpoint",
    "llm",
    "item",
)
TASKS = ("task", "task_name", "benchmark", "dataset", "dataset_name", "subject", "scenario", "eval", "test")
SCORES = ("score", "accuracy", "acc", "value", "correct", "metric_value", "result_score", "main_score", "pass")
QUESTIONS = (
    "question",
    "question_id",
    "example",
    "example_id",
    "doc_id",
    "sample",
    "sample_id",
    "prompt_id",
    "problem",
)
# Columns that are derived from the others or describe the model.
DERIVED = frozenset(
    "average avg mean mean_score overall total rank borda params parameters size n_params size_b license organization "
    "org precision type architecture revision likes downloads release price cost".split()
)
MISSING = frozenset(("", "-", "--", "–", "—", "n/a", "na", "nan", "none", "null", "?"))
_NAME_THEM = "name the columns with item=, task=, score=, or with item= and tasks="


class ScoreColumns(NamedTuple):
    """The columns of scores: of items, and either of tasks, scores and perhaps questions, or one for each task."""

    item: str
    task: str | None = None
    score: str | None = None
    question: str | None = None
    tasks: tuple[str, ...] = ()

    def roles(self) -> dict[str, str]:
        """The role of each column: the option of the reader that names it."""
        return roles_by_column(self._asdict())


def looks_like_scores(head: FileHead) -> ScoreColumns | None:
    """Match a table with columns of models, tasks and scores, or of models and numeric columns.

    A single numeric column must be the only other one; scores of an ``item`` are ratings if somebody gave them.
    """
    table = head.table
    if table is None or (item := head.options.get("item") or table.find(ITEMS)) is None:
        return None
    if "item" not in head.options and plain_name(item) == "item" and (len(table.names) < 3 or table.find(WHO)):
        return None
    long = _find_long(table, item, **head.pick("task", "score", "question", "tasks"))
    if long is not None or not (head.named or head.options.get("tasks") is not None or table.names[0] == item):
        return long
    wide = _find_wide(table, item, **head.pick("tasks", "ignore"))
    return wide if len(wide.tasks) > 1 or (wide.tasks and len(table.names) == 2) else None


def _find_long(
    table: Table,
    item: str,
    task: str | None,
    score: str | None,
    question: str | None,
    tasks: str | Sequence[str] | None,
) -> ScoreColumns | None:
    """The columns of tasks, scores and questions: those given, or else those with known names."""
    task = task or (None if tasks is not None else table.find(TASKS))
    score = score or (None if task is None else table.find(SCORES))
    if task is None or score is None:
        return None
    return ScoreColumns(item, task, score, question or table.find(QUESTIONS))


def _find_wide(
    table: Table, item: str, tasks: str | Sequence[str] | None, ignore: str | Sequence[str] | None
) -> ScoreColumns:
    """The columns of tasks: those given, or else the numeric ones."""
    own = split_names(tasks) if tasks is not None else task_columns(table, item, split_names(ignore or ()))
    return ScoreColumns(item, tasks=tuple(own))


@with_checked_options
def read_scores(
    source: Source | Any,
    *,
    item: str | None = None,
    task: str | None = None,
    score: str | None = None,
    question: str | None = None,
    tasks: str | Sequence[str] | None = None,
    lower: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Scores:
    """Read scores of items (models, systems) on tasks from a path, an open file, or a frame.

    Wide: a row per item and a column per task.  Long: a row per score with columns for item, task and optionally
    question.  Columns that are not given are found by their names (``ITEMS``, ``TASKS``, ``SCORES``, ``QUESTIONS``);
    averages, ranks and descriptions of models (``DERIVED``) are not tasks.  ``notes`` list the columns used.

    Parameters
    ----------
    item, task, score, question : columns.
    tasks : columns of the tasks in a wide table; by default all numeric columns.
    lower : tasks for which lower scores are better, such as errors or seconds; their signs are flipped.
    ignore : columns to ignore.

    An empty cell, ``-`` and ``n/a`` are missing, never 0; ``71.3%`` is 71.3.

    Returns
    -------
    Scores
        One value per item and task, or question.

    >>> read_scores({"model": ["A", "B"], "mmlu": [0.71, 0.69], "gsm8k": [0.6, None]})
    Scores(2 items, 2 tasks, 3 scores, 1 missing)
    """
    table = read_table(source, on_error, format, separator=separator, sheet=sheet)
    layout: ScoreColumns | None = table.layout
    if layout is None:
        item = item or table.find(ITEMS)
        if item is None:
            raise DataError(f"{table.name}: the columns {table.names} name no model or system; {_NAME_THEM}")
        table.require(item, _NAME_THEM)
        long = _find_long(table, item, task, score, question, tasks)
        layout = long or _find_wide(table, item, tasks, ignore)
    found = _long(table, layout) if layout.score else _wide(table, layout.item, list(layout.tasks))
    return _flip_signs(found, split_names(lower) if lower else [])


def task_columns(table: Table, item: str, passed: Sequence[str]) -> list[str]:
    """Numeric columns that are neither derived nor descriptions of the model."""
    rows = table.rows()
    names = [name for name in table.names if name != item and name not in passed]
    names = [name for name in names if plain_name(name) not in DERIVED | ABOUT]
    return [name for name in names if _is_numeric(rows, name)]


def _is_numeric(rows: TableRows, name: str) -> bool:
    cells = [number_of(cell) for cell in rows.column(name).values]
    return None not in cells and any(cell == cell for cell in cells)


def number_of(cell: Any) -> float | None:
    """A score as a number, NaN if it is missing, None if it is something else.

    >>> number_of("71.3%"), number_of("n/a"), number_of(True), number_of("good")
    (71.3, nan, 1.0, None)
    """
    if cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING):
        return float("nan")
    if isinstance(cell, bool) or (isinstance(cell, str) and cell.strip().lower() in ("true", "false")):
        return float(str(cell).strip().lower() == "true")
    return as_number(cell.strip().removesuffix("%").strip() if isinstance(cell, str) else cell)


def _values(rows: TableRows, name: str) -> Floats:
    """A column of scores; rows whose cells are not numbers are rejected."""
    column = rows.column(name, _NAME_THEM)
    wrong = column.map(lambda cell: number_of(cell) is None, bool)
    rows.reject(
        wrong,
        name,
        lambda row: f"{name} {rows.quote(name, row)} is not a score",
        "write a number, or leave the cell empty",
    )
    return column.map(lambda cell: np.nan if (x := number_of(cell)) is None else x, float)


def _wide(table: Table, item: str, columns: list[str]) -> Scores:
    if not columns:
        raise DataError(f"{table.name}: the columns {table.names} hold no task; {_NAME_THEM}")
    for name in columns:
        table.require(name, _NAME_THEM)
    rows = table.rows(item, *columns)
    names = rows.labels(item)
    values = np.stack([_values(rows, name) for name in columns], axis=1)
    first: dict[Any, int] = {}
    twice = np.array([first.setdefault(name, k) != k for k, name in enumerate(names)], bool)
    rows.reject(twice, item, lambda row: f"{item} {rows.quote(item, row)} has a second row", "give each model one row")
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{table.name}: no scores; a row has a model and its scores")
    labels = list(names)
    note = table.note("scores", [item, *columns])
    task = np.arange(len(columns))
    return Scores(values[good], task, tuple(labels[k] for k in good), tuple(columns), notes=(note,))


def _long(table: Table, layout: ScoreColumns) -> Scores:
    item, task, score, question, _ = layout
    assert task is not None
    assert score is not None
    used = [item, task, score, *((question,) if question else ())]
    for name in used:
        table.require(name, _NAME_THEM)
    rows = table.rows(*used)
    names, tasks, values = rows.labels(item), rows.labels(task), _values(rows, score)
    asked = None if question is None else rows.labels(question)
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{table.name}: no scores; a row has a model, a task and a score")
    try:
        return Scores.from_rows(
            list(names.take(good)),
            list(tasks.take(good)),
            values[good],
            None if asked is None else list(asked.take(good)),
            notes=(table.note("scores", used),),
        )
    except DataError as error:
        raise DataError(f"{table.name}: {error}") from None


def _flip_signs(found: Scores, lower: list[str]) -> Scores:
    """The table with the signs of the tasks in ``lower`` flipped, so that higher is better for all."""
    if not lower:
        return found
    if unknown := [name for name in lower if name not in found.tasks]:
        raise DataError(f"lower names {unknown[0]!r}, which is not among the tasks {list(found.tasks)}")
    turned = np.isin(found.task, [found.tasks.index(name) for name in lower])
    note = f"lower is better, so signs are changed: {', '.join(lower)}"
    value = np.where(turned, -found.value, found.value)
    return Scores(value, found.task, found.items, found.tasks, found.questions, (*found.notes, note))


def write_scores(scores: Scores, target: Source, *, format: str | None = None) -> None:
    """Write a wide table, or if there are questions, a row per score that is not missing.

    >>> import io
    >>> import placet
    >>> file = io.BytesIO()
    >>> write_scores(placet.Scores.from_table([[0.5, 0.75]], items=["p"], tasks=["law", "art"]), file, format="csv")
    >>> print(file.getvalue().decode())
    model,law,art
    p,0.5,0.75
    """
    if scores.questions is None:
        columns: dict[str, Any] = {"model": list(scores.items)}
        columns |= {str(name): _cells(scores.value[:, k]) for k, name in enumerate(scores.tasks)}
    else:
        i, c = np.nonzero(~np.isnan(scores.value))
        columns = {
            "model": [scores.items[k] for k in i],
            "task": [scores.tasks[scores.task[k]] for k in c],
            "question": [scores.questions[k] for k in c],
            "score": scores.value[i, c].tolist(),
        }
    write_table(target, columns, format)


def _cells(values: Floats) -> list[float | None]:
    return [None if v != v else v for v in values.tolist()]
