"""What may be removed from data: single votes or ballots, or all of a voter, a day, a task or a source.

Things that may be removed come in kinds, each with a ``size``: the 40 votes for x against y that a voter gave on a day
are one kind of size 40, a voter is a kind of size 1.  A removal is how many of each kind are taken away.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from placet.data import Comparisons, DataError, Rankings, Scores
from placet.data.arrays import Floats, Ints, with_columns
from placet.data.breaking import equal_lists
from placet.data.errors import one_of

RemovedBy = Literal["vote", "voter", "judge", "task", "day"]
BYS: tuple[RemovedBy, ...] = ("vote", "voter", "judge", "task", "day")
OUTCOME_COLUMNS = ("wins_i", "wins_j", "ties")


@dataclass(frozen=True, eq=False)
class Removable:
    """Kinds of things that may be removed: ``size`` (kinds,) of each, and ``unit``, what one of them is called.

    ``without(take)`` gives the data without ``take`` (kinds,) of them; ``name(kind)`` says what a kind is, as columns
    of a table.  ``share(take)`` (rows,) or (3, rows) is the weight that is taken from each row of the data.  ``group``
    (rows,) is the kind of each row if rows go together, and ``weight`` what they weigh; ``kinds_of_rows`` (rows,) is
    that of each ballot if equal ballots are of one kind.  At least the number ``stays`` cannot be removed.
    """

    data: Any
    unit: str
    size: Ints
    without: Callable[[Ints], Any]
    name: Callable[[int], dict[str, Any]]
    share: Callable[[Ints], Floats]
    group: Ints | None = None
    weight: Floats | None = None
    kinds_of_rows: Ints | None = None
    stays: int = 1

    @property
    def total(self) -> int:
        """How many things there are."""
        return int(self.size.sum())

    def sums(self, value: Floats) -> Floats:
        """(kinds,): the sum of values of single votes or ballots over all of each kind; their own if a kind is one."""
        if self.kinds_of_rows is not None:
            own = np.zeros(len(self.size))
            own[self.kinds_of_rows] = value  # equal ballots have equal values
            return own
        if self.group is None or self.weight is None:
            return value.ravel()
        each = value * self.weight
        found = np.bincount(self.group, each.sum(axis=0) if each.ndim == 2 else each, len(self.size))
        return found.astype(np.float64)


def removable(data: Any, by: str) -> Removable:
    """What may be removed from the data: ``by`` single votes (ballots), or all of a voter (judge), a day or a task."""
    one_of(by, BYS, "by")
    if isinstance(data, Mapping):
        return _sources(data, by)
    if isinstance(data, Scores):
        return _tasks(data, by)
    if by == "task":
        raise DataError("votes and ballots have no tasks; by='task' is for score tables")
    if by == "vote":
        return _votes(data) if isinstance(data, Comparisons) else _ballots(data)
    if by == "day":
        return _groups(data, *_days(data), "day")
    if data.agent is None or data.agents is None:
        way_out = 'read the file with the column of voters, such as agent="user"'
        raise DataError(f"the data do not say who voted, so nothing can be removed by {by}; {way_out}")
    return _groups(data, data.agent, data.agents, by)


def _units(weight: Floats) -> Ints:
    """How many votes a weight stands for: whole numbers are counts, and a part of a vote is one."""
    return np.ceil(weight - 1e-9).astype(np.int64)


def has_whole_numbers(data: Any) -> bool:
    """Whether the data are votes or ballots whose weights are whole numbers, that is, counts."""
    if not isinstance(data, Comparisons | Rankings):
        return False
    columns = [getattr(data, name) for name in OUTCOME_COLUMNS] if isinstance(data, Comparisons) else [data.weight]
    return all(bool((column == np.floor(column)).all()) for column in columns)


def _votes(data: Comparisons) -> Removable:
    """Votes by row and outcome; kind k is outcome k // rows of row k % rows."""
    rows = len(data)
    weight = np.stack([getattr(data, name) for name in OUTCOME_COLUMNS])

    def share(take: Ints) -> Floats:
        return np.minimum(take.reshape(3, rows), weight)

    def without(take: Ints) -> Comparisons:
        left = weight - share(take)
        return with_columns(data, **dict(zip(OUTCOME_COLUMNS, left)))

    def name(kind: int) -> dict[str, Any]:
        outcome, row = divmod(kind, rows)
        i, j = data.items[data.i[row]], data.items[data.j[row]]
        found = {"item": (i, j, i)[outcome], "against": (j, i, j)[outcome], "outcome": ("win", "win", "tie")[outcome]}
        return found | _of_row(data, row)

    return Removable(data, "vote", _units(weight).ravel(), without, name, share)


def _of_row(data: Any, row: int) -> dict[str, Any]:
    """The voter and the time of a row, if they are known."""
    found: dict[str, Any] = {}
    if data.agent is not None and data.agents is not None:
        found["voter"] = data.agents[data.agent[row]]
    if getattr(data, "time", None) is not None:
        found["time"] = str(data.time[row])
    return found


def _ballots(data: Rankings) -> Removable:
    """Ballots; equal ones are of one kind, unless more is known of them, and weight w stands for w of them."""
    if data.agent is None and data.score is None and data.control is None:
        first, kind = equal_lists(data.item, data.tier, data.offsets, None, None)
    else:
        first = kind = np.arange(len(data))
    order = np.argsort(kind, kind="stable")
    weight = np.bincount(kind, data.weight, len(first)).astype(np.float64)
    before = np.cumsum(data.weight[order]) - data.weight[order]
    before -= before[np.searchsorted(kind[order], np.arange(len(first)))][kind[order]]

    def share(take: Ints) -> Floats:
        found = np.empty(len(data))
        found[order] = np.clip(take[kind[order]] - before, 0.0, data.weight[order])
        return found

    def name(number: int) -> dict[str, Any]:
        tiers = [" = ".join(map(str, tier)) for tier in data[int(first[number])]]
        return {"ballot": int(first[number]) + 1, "order": " > ".join(tiers)} | _of_row(data, int(first[number]))

    without = lambda take: _lighter(data, share(take))  # noqa: E731
    return Removable(data, "ballot", _units(weight), without, name, share, kinds_of_rows=kind)


def _lighter(data: Rankings, share: Floats) -> Rankings:
    """The ballots with ``share`` (ballots,) of their weight taken away, without those that have none left."""
    left = data.weight - share
    keep = left > 0
    return replace(data[np.flatnonzero(keep)], weight=left[keep], notes=data.notes)


def _groups(data: Any, group: Ints, names: Any, by: str) -> Removable:
    """Groups of rows that go together."""
    votes = isinstance(data, Comparisons)
    weight = np.stack([getattr(data, column) for column in OUTCOME_COLUMNS]) if votes else data.weight

    def share(take: Ints) -> Floats:
        return np.where(take[group] > 0, weight, 0.0)

    def without(take: Ints) -> Any:
        if not votes:
            return _lighter(data, share(take))
        return with_columns(data, **dict(zip(OUTCOME_COLUMNS, weight - share(take))))

    counts = np.bincount(group, weight.sum(axis=0) if votes else weight, len(names))
    what = "votes" if votes else "ballots"
    name = lambda k: {by: names[k], what: float(counts[k])}  # noqa: E731
    return Removable(data, by, (counts > 0).astype(np.int64), without, name, share, group, weight)


def _days(data: Any) -> tuple[Ints, list[Hashable]]:
    """The day of each row and the names of the days; times that are numbers are days of their own."""
    time = getattr(data, "time", None)
    if time is None:
        raise DataError('the data have no dates; read the votes with their column, such as time="date"')
    days, group = np.unique(time.astype("datetime64[D]") if time.dtype.kind == "M" else time, return_inverse=True)
    return group.reshape(-1), [str(day) for day in days]


def _tasks(data: Scores, by: str) -> Removable:
    """Tasks of a score table with all their questions."""
    if by not in ("task", "vote"):
        raise DataError(f"a score table has tasks; by={by!r} is for votes and ballots: say by='task'")

    def share(take: Ints) -> Floats:
        return (take[data.task] > 0).astype(np.float64)

    def without(take: Ints) -> Scores:
        keep = np.flatnonzero(take == 0)
        columns = np.flatnonzero(take[data.task] == 0)
        number = np.searchsorted(keep, data.task[columns])
        questions = None if data.questions is None else tuple(data.questions[c] for c in columns)
        names = tuple(data.tasks[t] for t in keep)
        return replace(data, value=data.value[:, columns], task=number, tasks=names, questions=questions)

    size = np.ones(len(data.tasks), np.int64)
    return Removable(data, "task", size, without, lambda k: {"task": data.tasks[k]}, share)


def _sources(data: Any, by: str) -> Removable:
    """Sources of a joint fit other than the target."""
    if by not in ("judge", "vote"):
        raise DataError(f"of several sources whole sources are removed (by='judge'), not by {by!r}")
    names = [name for name in data if name != data.target]

    def without(take: Ints) -> Any:
        gone = {names[k] for k in np.flatnonzero(take)}
        kept = {name: part for name, part in data.items() if name not in gone}
        return type(data)(kept, target=data.target)

    size = np.ones(len(names), np.int64)
    share = lambda take: take.astype(np.float64)  # noqa: E731
    stays = 1 if data.target is None else 0  # the target does
    return Removable(data, "judge", size, without, lambda k: {"judge": names[k]}, share, stays=stays)
