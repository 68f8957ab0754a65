"""Slices of a table: the rows with one value of a column, read like a table of their own."""

import inspect
import os
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from placet.data import Comparisons, DataError, Rankings
from placet.data.errors import as_choices
from placet.io.formats import FORMATS, expand, read
from placet.io.tables.tables import Table, TableRows, open_head, read_table
from placet.io.text import OnError, Problems

MOST_SLICES = 1000
BY_WHOM = ("judge", "agent")
"""What logs are taken apart by: judges, and people together; or every agent."""
PEOPLE = "human"
"""The slice of the people in a log that also holds judges."""
NO_VALUE = "(none)"


@dataclass
class _Slice(Table):
    """The rows of a table with one value in the column ``by``, without that column."""

    whole: Table = None  # type: ignore[assignment]
    by: str = ""
    code: int = 0
    cache: dict[tuple[tuple[str, ...], bool], tuple[TableRows, Any]] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        return [name for name in super().names if name != self.by]

    def rows(self, *names: str, distinct: bool = False) -> TableRows:
        wanted = list(names or self.names)
        key = (tuple(wanted), distinct)
        if key not in self.cache:
            found = self.whole.rows(*dict.fromkeys([*wanted, self.by]), distinct=distinct)
            self.whole.problems.close()
            self.cache[key] = found, _codes(found, self.by)[0]
        found, code = self.cache[key]
        keep = code == self.code
        sizes = [len(cells) for cells in found.cells[self.by]]
        masks = np.split(keep, np.cumsum(sizes)[:-1])
        cells = {name: [_pick(part, mask) for part, mask in zip(found.cells[name], masks)] for name in wanted}
        return TableRows(self, cells, found.place[keep], found.count[keep])


def read_slices(
    source: Any, by: str, format: str | None = None, *, on_error: OnError = "raise", **options: Any
) -> dict[Hashable, Any]:
    """Map each value of the column ``by`` to the data in its rows, as read by `placet.read`.

    `placet.consensus` accepts such a mapping and returns one board per slice.  Rows without a value form the slice
    "(none)".  A log of evaluations is taken apart by who judged, ``by="judge"``: each judge, and people together as
    "human" where the log holds both (Argilla, Label Studio); ``by="agent"`` gives each person a slice.

    Returns
    -------
    dict
        The value of the column -> the data in its rows.

    >>> votes = {"a": ["x", "y"], "b": ["y", "x"], "winner": ["a", "a"], "language": ["en", "fr"]}
    >>> read_slices(votes, by="language")
    {'en': Comparisons(1 pairs, 2 items, 1 votes), 'fr': Comparisons(1 pairs, 2 items, 1 votes)}
    """
    sources = expand(source)
    log = _log_format(sources[0], options) if isinstance(sources[0], str | os.PathLike) else None
    if log is not None:
        return _slices_of_log(sources, log, by, on_error, options)
    whole = read_table(sources if len(sources) > 1 else sources[0], on_error, sheet=options.get("sheet"))
    whole.require(by, "name a column with by=")
    _, values = _codes(whole.rows(by, distinct=True), by)
    whole.problems.close()
    if len(values) > MOST_SLICES:
        raise DataError(
            f"{whole.name}: column {by!r} has {len(values):,} values; at most {MOST_SLICES} slices are read"
        )
    found: dict[Hashable, Any] = {}
    cache: dict[tuple[tuple[str, ...], bool], tuple[TableRows, Any]] = {}
    for code, value in enumerate(values):
        problems = Problems(whole.name, on_error, whole.problems.unit)
        part = _Slice(whole.parts, problems, whole, by, code, cache)
        try:
            found[value] = read(part, format, on_error=on_error, **options)
        except DataError as error:
            raise DataError(f"{by} {value!r}: {error}") from error
    return found


def _log_format(source: str | os.PathLike[str], options: dict[str, Any]) -> str | None:
    """The format of a log; None for a table."""
    with open_head([source], "raise", options) as head:
        return next((name for name, one in FORMATS.items() if one.by_head and one.looks_like(head)), None)


def _slices_of_log(
    sources: list[Any], log: str, by: str, on_error: OnError, options: dict[str, Any]
) -> dict[Hashable, Any]:
    """The votes or ballots of a log by who judged."""
    if FORMATS[log].kind not in (Comparisons, Rankings):
        raise DataError(f"{log} logs hold scores, which nobody voted for; name the files instead: NAME=FILE NAME=FILE")
    if by not in BY_WHOM:
        raise DataError(f"{log} logs are taken apart by who judged, {as_choices(BY_WHOM)}, not by {by!r}")
    apart = "who" in inspect.signature(FORMATS[log].read).parameters
    if not (apart and by == "judge"):
        return _by_agent(read(sources, log, on_error=on_error, **options))
    people = read(sources, log, on_error=on_error, **options, who="people")
    return {PEOPLE: replace(people, agent=None, agents=None)} | _by_agent(
        read(sources, log, on_error=on_error, **options, who="judges")
    )


def _by_agent(data: Any) -> dict[Hashable, Any]:
    """The data of each agent, without the agents."""
    parts = {str(name): data[data.agent == k] for k, name in enumerate(data.agents)}
    return {name: replace(part, agent=None, agents=None) for name, part in parts.items()}


def _codes(rows: TableRows, by: str) -> tuple[Any, list[Hashable]]:
    """The code of each row's value, and the values by first appearance in the table."""
    column = rows.column(by)
    values = [NO_VALUE if value is None else value for value in column.values]
    first = np.full(len(values), np.iinfo(np.int64).max)
    np.minimum.at(first, column.code, rows.place)
    order = [k for k in np.argsort(first, kind="stable").tolist() if first[k] < np.iinfo(np.int64).max]
    number = np.full(len(values), -1)
    number[order] = np.arange(len(order))
    return number[column.code], [values[k] for k in order]


def _pick(cells: Any, mask: Any) -> Any:
    if hasattr(cells, "filter"):
        return cells.filter(mask)
    return cells[mask] if isinstance(cells, np.ndarray) else [cell for cell, kept in zip(cells, mask) if kept]
