"""Concatenation of data of one kind: items, agents and instances are matched by name, and nothing counts twice."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from placet.data.arrays import Ints, Names, distinct, encode, is_sparse, offsets_from_sizes
from placet.data.comparisons import Comparisons
from placet.data.errors import DataError
from placet.data.queries import Queries
from placet.data.rankings import Rankings
from placet.data.scores import Scores

JoinedData = TypeVar("JoinedData", Rankings, Comparisons, Queries, Scores)


def concat(parts: Iterable[JoinedData]) -> JoinedData:
    """Concatenate ballots, comparisons, queries or score tables in order.

    Items, agents, instances and tasks are matched by name, in order of first appearance.  A query belongs to one part:
    a name in two parts is a ``DataError``, and so are two different scores of an item for one task.  The notes are
    those of all parts, without duplicates.

    Returns
    -------
    Rankings, Comparisons, Queries or Scores
        The same kind as the parts.

    >>> a, b = Rankings.from_orders([["x", "y"]]), Rankings.from_orders([["z", "y"]])
    >>> both = concat([a, b])
    >>> both.items, list(both)
    (('x', 'y', 'z'), [[('x',), ('y',)], [('z',), ('y',)]])
    """
    given = list(parts)
    if not given:
        raise ValueError("nothing to put together; give at least one part")
    kinds = {type(part) for part in given}
    if len(kinds) > 1 or not kinds <= set(_JOIN):
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"{names} cannot be put together; give all rankings, comparisons, queries or scores")
    if len(given) > 1 and any(getattr(part, "weights", None) == "design" for part in given):
        raise DataError("design weights are relative to all rows: put the tables together before they are read")
    return given[0] if len(given) == 1 else cast(JoinedData, _JOIN[kinds.pop()](given))


def _join_rankings(parts: list[Rankings]) -> Rankings:
    items, item = _unite(parts, "items", "item")
    agents, agent = _unite(parts, "agents", "agent")
    instances, instance = _unite(parts, "instances", "instance")
    scored = [part.score is not None for part in parts]
    notes = _notes(parts)
    if any(scored) and not all(scored):
        notes += (f"scores are left out: {scored.count(False)} of {len(parts)} parts have none",)
    return Rankings(
        item,  # type: ignore[arg-type]
        _column(parts, "tier"),
        offsets_from_sizes(np.concatenate([np.diff(part.offsets) for part in parts])),
        _column(parts, "weight"),
        agent,
        instance,
        items,  # type: ignore[arg-type]
        agents,
        instances,
        _column(parts, "score") if all(scored) else None,
        notes,
        _column_of_all(parts, "control"),
        _same_controls(parts),
    )


def _join_comparisons(parts: list[Comparisons]) -> Comparisons:
    if len({part.ordered for part in parts}) > 1:
        raise DataError("some comparisons keep who came first and others do not; read them all with the same ordered=")
    items, i = _unite(parts, "items", "i")
    _, j = _unite(parts, "items", "j")
    agents, agent = _unite(parts, "agents", "agent")
    columns: dict[str, Any] = {name: _column(parts, name) for name in ("wins_i", "wins_j", "ties")}
    columns |= {"i": i, "j": j, "agent": agent, "items": items, "agents": agents}
    columns |= {name: _column_of_all(parts, name) for name in ("control", "time")}
    columns["controls"] = _same_controls(parts)
    return Comparisons(**columns, ordered=parts[0].ordered, notes=_notes(parts))


def _join_queries(parts: list[Queries]) -> Queries:
    owner: dict[Any, int] = {}
    for k, part in enumerate(parts):
        for name in part.qid:
            if owner.setdefault(name, k) != k:
                raise DataError(
                    f"query {name!r} is in parts {owner[name]} and {k}; a query belongs to one part: "
                    "put its rows together, or rename one"
                )
    first = parts[0]
    for k, part in enumerate(parts):
        if part.n_features != first.n_features or part.features != first.features:
            raise DataError(
                f"part {k} has {part.n_features} features and part 0 has {first.n_features}, or their names differ; "
                "give all parts the same columns (n_features= of the reader)"
            )
        if set(part.relations or {}) != set(first.relations or {}):
            raise DataError(f"part {k} has other relations than part 0; give all parts the same")
    relations = None
    if first.relations:
        relations = {name: _diagonal([(part.relations or {})[name] for part in parts]) for name in first.relations}
    starts = np.cumsum([0, *(int(part.row.max(initial=-1)) + 1 for part in parts)])
    return Queries(
        _stack([part.X for part in parts]),
        _column(parts, "grade"),
        offsets_from_sizes(np.concatenate([np.diff(part.offsets) for part in parts])),
        _column(parts, "weight"),
        tuple(name for part in parts for name in part.qid),
        relations,
        np.concatenate([part.row + start for part, start in zip(parts, starts)]),
        first.features,
        _notes(parts),
    )


def _join_scores(parts: list[Scores]) -> Scores:
    """Concatenate score tables over all items and tasks (or questions); one table may fill the gaps of another."""
    asked = [part.questions is not None for part in parts]
    if any(asked) and not all(asked):
        raise DataError(
            f"{asked.count(True)} of {len(parts)} score tables have questions and the others do not; read them alike"
        )
    columns = [
        list(zip((part.tasks[t] for t in part.task.tolist()), part.questions or [None] * len(part.task)))
        for part in parts
    ]
    row, items = encode([name for part in parts for name in part.items], "item")
    place, found = encode([key for own in columns for key in own], "task")
    keys: list[Any] = list(found)
    tasks = distinct(part.tasks for part in parts)
    value = np.full((len(items), len(keys)), np.nan)
    rows = np.split(row, np.cumsum([part.n_items for part in parts])[:-1])
    for part, i, c in zip(parts, rows, np.split(place, np.cumsum([len(own) for own in columns])[:-1])):
        before = value[np.ix_(i, c)]
        if (twice := ~np.isnan(before) & ~np.isnan(part.value) & (before != part.value)).any():
            k, q = np.argwhere(twice)[0]
            raise DataError(
                f"item {part.items[k]!r} has {before[k, q]:g} for task {part.tasks[part.task[q]]!r} in one table and "
                f"{part.value[k, q]:g} in another ({twice.sum()} such scores); keep one of the two"
            )
        value[np.ix_(i, c)] = np.where(np.isnan(part.value), before, part.value)
    number = {name: t for t, name in enumerate(tasks)}
    task = np.array([number[key[0]] for key in keys], np.int64)
    questions = tuple(key[1] for key in keys) if all(asked) else None
    return Scores(value, task, items, tasks, questions, _notes(parts))


def _unite(parts: Sequence[Any], names: str, code: str) -> tuple[Names | None, Ints | None]:
    """The distinct names of all parts, and one column of all parts recoded to them."""
    own = [getattr(part, names) for part in parts]
    missing = [k for k, values in enumerate(own) if values is None]
    if len(missing) == len(parts):
        return None, None
    if missing:
        raise DataError(
            f"part {missing[0]} has no {names} and others have ({len(missing)} such parts); name them or drop them"
        )
    place, united = encode([name for values in own for name in values], names.removesuffix("s"))
    starts = np.cumsum([0, *map(len, own)])
    return united, np.concatenate([place[start:][getattr(part, code)] for part, start in zip(parts, starts)])


def _same_controls(parts: Sequence[Any]) -> tuple[str, ...] | None:
    """The names of the controls, which must be the same in all parts."""
    names: set[tuple[str, ...] | None] = {part.controls for part in parts}
    if len(names) > 1:
        raise DataError("the parts have different controls; read them all with the same control=")
    return names.pop()


def _column(parts: Sequence[Any], name: str) -> Any:
    return np.concatenate([getattr(part, name) for part in parts])


def _column_of_all(parts: Sequence[Any], name: str) -> Any:
    """Concatenate a column that all parts have; None if none has it."""
    missing = [k for k, part in enumerate(parts) if getattr(part, name) is None]
    if len(missing) == len(parts):
        return None
    if missing:
        raise DataError(f"part {missing[0]} has no {name} and others have; read them all with the same {name}=")
    kinds = {getattr(part, name).dtype.kind for part in parts}
    if len(kinds) > 1:
        raise DataError(f"some parts have dates and others numbers as {name}; write them alike")
    return _column(parts, name)


def _notes(parts: Sequence[Any]) -> tuple[str, ...]:
    return distinct(part.notes for part in parts)


def _stack(matrices: list[Any]) -> Any:
    if not any(map(is_sparse, matrices)):
        return np.concatenate(matrices)
    from scipy.sparse import csr_matrix, vstack

    return vstack([csr_matrix(X) for X in matrices], format="csr")


def _diagonal(matrices: list[Any]) -> Any:
    from scipy.sparse import block_diag

    return block_diag(matrices, format="csr")


_JOIN: dict[type, Callable[[list[Any]], Any]] = {
    Rankings: _join_rankings,
    Comparisons: _join_comparisons,
    Queries: _join_queries,
    Scores: _join_scores,
}
