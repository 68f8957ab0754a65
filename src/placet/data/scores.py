"""Score tables: items (models, systems) by tasks or by questions of tasks; missing cells stay missing."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import (
    Floats,
    Ints,
    Names,
    data_html,
    encode,
    integers,
    refuse_masked_or_complex,
    same_columns,
    set_columns,
    unique_names,
)
from placet.data.errors import DataError
from placet.data.rankings import Rankings

MOST_SCORE = 1e150
"""Largest score, whose square is a number still."""


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """``value`` (n_items, n_columns): higher is better, NaN where an item has no score.

    A column is a question, and ``task`` (n_columns,) the index of its task; without questions, a column is a task.
    ``questions`` are their names.  ``notes`` are sentences about how the data were read.

    >>> Scores.from_table([[0.9, 0.7], [0.8, np.nan]], items=["x", "y"], tasks=["maths", "law"])
    Scores(2 items, 2 tasks, 3 scores, 1 missing)
    """

    value: Floats
    task: Ints
    items: Names
    tasks: Names
    questions: Names | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        value = np.array(self.value, dtype=np.float64)
        task = integers(self.task, "task")
        items, tasks = unique_names(self.items, "item"), unique_names(self.tasks, "task")
        if value.ndim != 2 or value.shape != (len(items), len(task)):
            raise DataError(f"value has shape {value.shape}; {len(items)} items and {len(task)} columns are needed")
        if np.isinf(value).any():
            i, c = np.argwhere(np.isinf(value))[0]
            raise DataError(
                f"item {items[i]!r} has score {value[i, c]} in column {c}; scores are finite, or missing (NaN)"
            )
        if (np.abs(value) > MOST_SCORE).any():  # NaN is not
            i, c = np.argwhere(np.abs(value) > MOST_SCORE)[0]
            raise DataError(
                f"item {items[i]!r} has score {value[i, c]:g} in column {c}, whose square is beyond floating-point "
                "numbers; divide the scores of the task by a common factor"
            )
        if len(task) and not (task.min() >= 0 and task.max() < len(tasks)):
            raise DataError(f"task has numbers in {task.min()}..{task.max()}; there are {len(tasks)} tasks")
        if unused := set(range(len(tasks))) - set(task.tolist()):
            raise DataError(f"task {tasks[min(unused)]!r} has no column")
        set_columns(self, value=value, task=task, items=items, tasks=tasks)

    def __setstate__(self, state: dict[str, Any]) -> None:
        set_columns(self, **state)

    @classmethod
    def from_table(
        cls, value: ArrayLike, *, items: Sequence[Hashable] | None = None, tasks: Sequence[Hashable] | None = None
    ) -> "Scores":
        """Build scores from a matrix with a row per item and a column per task; NaN where there is no score.

        Returns
        -------
        Scores
            A table without questions.

        >>> table = Scores.from_table([[0.5, 0.75], [1.0, float("nan")]], items=["p", "q"], tasks=["law", "art"])
        >>> table
        Scores(2 items, 2 tasks, 3 scores, 1 missing)
        """
        refuse_masked_or_complex(value)
        table = np.asarray(value, dtype=np.float64)
        if table.ndim != 2:
            raise DataError(f"value has shape {table.shape}; a row for each item and a column for each task are needed")
        n, t = table.shape
        names = tuple(range(n)) if items is None else tuple(items)
        return cls(table, np.arange(t), names, tuple(range(t)) if tasks is None else tuple(tasks))

    @classmethod
    def from_rows(
        cls,
        item: Sequence[Hashable],
        task: Sequence[Hashable],
        score: ArrayLike,
        question: Sequence[Hashable] | None = None,
        notes: tuple[str, ...] = (),
    ) -> "Scores":
        """Build scores from one row per score; ``question`` optionally names a question within its task.

        An item has at most one score per task or question; a second one is a ``DataError``.

        Returns
        -------
        Scores
            A cell for each row.

        >>> Scores.from_rows(["p", "q", "p"], ["law", "law", "art"], [0.5, 1.0, 0.75]).value
        array([[0.5 , 0.75],
               [1.  ,  nan]])
        """
        refuse_masked_or_complex(score)
        values = np.asarray(score, dtype=np.float64)
        i, items = encode(item, "item")
        t, tasks = encode(task, "task")
        if question is None:
            column, task_of, names = t, np.arange(len(tasks)), None
        else:
            column, keys = encode(list(zip(t.tolist(), question)), "question")
            task_of = np.array([key[0] for key in keys], np.int64)  # type: ignore[index]
            names = tuple(key[1] for key in keys)  # type: ignore[index]
        cell = i * max(len(task_of), 1) + column
        _, first, count = np.unique(cell, return_index=True, return_counts=True)
        if (count > 1).any():
            k = int(first[np.argmax(count > 1)])
            where = "" if question is None else f", question {question[k]!r}"
            way_out = "average them first, or name the column of questions"
            raise DataError(
                f"item {item[k]!r} has {count.max()} scores for task {task[k]!r}{where} "
                f"({(count > 1).sum()} such cells); {way_out}"
            )
        value = np.full((len(items), len(task_of)), np.nan)
        value[i, column] = values
        return cls(value, task_of, items, tasks, names, notes)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    def __len__(self) -> int:
        return len(self.items)

    _repr_html_ = data_html

    def __repr__(self) -> str:
        there = int((~np.isnan(self.value)).sum())
        questions = f", {len(self.task)} questions" if self.questions is not None else ""
        missing = f", {self.value.size - there} missing" if there < self.value.size else ""
        return f"Scores({self.n_items} items, {self.n_tasks} tasks{questions}, {there} scores{missing})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scores):
            return NotImplemented
        return same_columns(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: "Scores") -> "Scores":
        """Concatenate the two, matching items and tasks by name; ``concat`` accepts more than two."""
        from placet.data.concatenation import concat

        return concat([self, other]) if isinstance(other, Scores) else NotImplemented

    def by_task(self, weight: ArrayLike | None = None) -> Floats:
        """(n_items, n_tasks): mean of the questions that an item has scores for, weighted by column; NaN if none.

        Returns
        -------
        array
            The means.

        >>> table = Scores.from_table([[0.5, 0.75], [1.0, float("nan")]], items=["p", "q"], tasks=["law", "art"])
        >>> table.by_task()
        array([[0.5 , 0.75],
               [1.  ,  nan]])
        """
        w = np.ones(len(self.task)) if weight is None else np.asarray(weight, dtype=np.float64)
        there = ~np.isnan(self.value)
        one = np.zeros((len(self.task), self.n_tasks))
        one[np.arange(len(self.task)), self.task] = w
        total, count = np.where(there, self.value, 0.0) @ one, there @ one
        return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)

    @property
    def has_holes(self) -> bool:
        """Whether an item has no score for a task."""
        return bool(np.isnan(self.by_task()).any())

    def to_rankings(self) -> Rankings:
        """One ballot per task: items by their scores; equal scores tie, and items without a score are absent.

        Returns
        -------
        Rankings
            The ballots, with the scores.

        >>> table = Scores.from_table([[0.5, 0.75], [1.0, float("nan")]], items=["p", "q"], tasks=["law", "art"])
        >>> table.to_rankings().orders()
        [['q', 'p'], ['p']]
        """
        table = self.by_task()
        t, i = np.nonzero(~np.isnan(table.T))
        columns = {"task": [self.tasks[k] for k in t], "item": [self.items[k] for k in i], "score": table.T[t, i]}
        ballots = Rankings.from_scores(columns, ballot="task", item="item", score="score")
        return replace(ballots, notes=(*self.notes, *ballots.notes))

    def describe(self) -> dict[str, Any]:
        """Counts, including missing cells, and the range of scores.

        Returns
        -------
        dict
            Fact -> value.

        >>> table = Scores.from_table([[0.5, 0.75], [1.0, float("nan")]], items=["p", "q"], tasks=["law", "art"])
        >>> table.describe()["scores"], table.describe()["missing"]
        (3, 1)
        """
        there = ~np.isnan(self.value)
        return {
            "items": self.n_items,
            "tasks": self.n_tasks,
            "questions": None if self.questions is None else len(self.task),
            "scores": int(there.sum()),
            "missing": int((~there).sum()),
            "lowest": float(np.nanmin(self.value)) if there.any() else None,
            "highest": float(np.nanmax(self.value)) if there.any() else None,
        }
