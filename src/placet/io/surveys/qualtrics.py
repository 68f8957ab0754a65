"""Rank order questions in the exports of Qualtrics: three rows of headers, a column per item, cells are ranks."""

import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from placet.data import DataError, Rankings
from placet.data.arrays import set_columns
from placet.data.parameters import with_checked_options
from placet.io.files import OpenedFile, Source
from placet.io.tables.cells import as_number
from placet.io.tables.sheets import is_workbook
from placet.io.tables.tables import FileHead, Table, TableRows, read_table
from placet.io.text import OnError, plural

_MARK = '{"ImportId"'
_RECORD = (1 << 44) - 1  # the number of a row within its file
_PART_OF = re.compile(r"(.+)_([0-9]+)(?:_RANK)?")
_HEADERS = 2  # rows below the names of columns that are no answers


class QualtricsColumns(NamedTuple):
    """The columns of one rank order question."""

    question: str
    columns: tuple[str, ...]

    def roles(self) -> dict[str, str]:
        """The role of each column."""
        return dict.fromkeys(self.columns, "an item")


def looks_like_qualtrics(head: FileHead) -> QualtricsColumns | None:
    """Match a table whose third row of headers names the imports of Qualtrics."""
    if head.table is None or not isinstance(head.sources[0], OpenedFile):
        return None
    if b"ImportId" not in head.head and not is_workbook(head.sources[0]):
        return None
    if not _is_export(head.table):
        return None
    return _find(head.table, head.options.get("question"))


def _is_export(table: Table) -> bool:
    rows = table.rows(table.names[0])
    cells = [str(cell) for cell, place in zip(rows.column(table.names[0]), rows.place.tolist()) if place & _RECORD == 1]
    return bool(cells) and all(cell.startswith(_MARK) for cell in cells)


def _find(table: Table, question: str | None) -> QualtricsColumns:
    """The columns of the question; one is found if it is the only one that is answered by different ranks."""
    groups: dict[str, list[str]] = {}
    for name in table.names:
        if match := _PART_OF.fullmatch(name):
            groups.setdefault(match[1], []).append(name)
    groups = {name: columns for name, columns in groups.items() if len(columns) > 1}
    if question is not None:
        if question not in groups:
            raise DataError(f"{table.name}: no question {question!r} with several columns; there are {list(groups)}")
        return QualtricsColumns(question, tuple(groups[question]))
    ranked = {name: columns for name, columns in groups.items() if _is_ranked(table, columns)}
    if len(ranked) != 1:
        ways = [f'question="{name}"' for name in ranked or groups]
        found = f"{len(ranked)} questions are" if ranked else "no question is"
        said = " or ".join(ways) or "a rank order question is needed"
        raise DataError.of_ways(f"{table.name}: {found} answered by ranks; say {said}", ways)
    name, columns = ranked.popitem()
    return QualtricsColumns(name, tuple(columns))


def _is_ranked(table: Table, columns: Sequence[str]) -> bool:
    """Whether the ranks of each answer are 1, 2, ..., each at most once."""
    rows = table.rows(*columns)
    ranks = _ranks(rows, columns)[_answers(rows)]
    given = ~np.isnan(ranks)
    if not given.any():
        return False
    ordered = np.sort(ranks, axis=1)  # those that are missing last
    wanted = np.arange(1, len(columns) + 1)
    return bool(((ordered == wanted) | np.isnan(ordered)).all())


def _answers(rows: TableRows) -> np.ndarray[Any, Any]:
    return np.flatnonzero((rows.place & _RECORD) >= _HEADERS)


def _ranks(rows: TableRows, columns: Sequence[str]) -> np.ndarray[Any, Any]:
    return np.stack([rows.column(name).map(_rank, float) for name in columns], axis=1)


def _rank(cell: Any) -> float:
    number = as_number(cell)
    return float("nan") if number is None else number


@with_checked_options
def read_qualtrics(
    source: Source | Any,
    *,
    question: str | None = None,
    items: Sequence[Hashable] | None = None,
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Rankings:
    r"""Read a rank order question of an export of Qualtrics (CSV, TSV or workbook, numeric values) as ballots.

    Its first row has the names of columns (``Q5_1``), its second their texts ("Rank the fruit - Apple"), whose part
    after what they have in common names the items, and its third the identifiers of imports.  ``question`` names the
    question (``"Q5"``), if several are answered by ranks.  Items without a rank were not compared; people who ranked
    nothing are counted in a note.  ``ResponseId`` is the agent.

    Returns
    -------
    Rankings
        A ballot per person who ranked anything.

    >>> import io
    >>> head = "ResponseId,Q5_1,Q5_2\nResponse ID,Rank it - Apple,Rank it - Fig\n"
    >>> marks = '"{""ImportId"":""_recordId""}","{""ImportId"":""QID5_1""}","{""ImportId"":""QID5_2""}"\n'
    >>> read_qualtrics(io.StringIO(head + marks + "R_1,2,1\nR_2,1,2\n")).orders()
    [['Fig', 'Apple'], ['Apple', 'Fig']]
    """
    table = read_table(source, on_error, format, separator=separator, sheet=sheet)
    layout: QualtricsColumns = table.layout or _find(table, question)
    columns = list(layout.columns)
    who = table.find(("response_id",))
    rows = table.rows(*columns, *([who] if who else []))
    answers = _answers(rows)
    names = _item_names(rows, columns)
    ranks = _ranks(rows, columns)
    for k, name in enumerate(columns):
        column = rows.column(name)
        wrong = ~column.is_missing() & ~((ranks[:, k] >= 1) & (ranks[:, k] == np.rint(ranks[:, k])))
        wrong[(rows.place & _RECORD) < _HEADERS] = False
        said = lambda row, name=name: f"{name} {rows.quote(name, row)} is not a rank"  # noqa: E731
        rows.reject(wrong, name, said, "export numeric values, not the text of choices")
    rows.table.problems.close()
    kept = answers[~rows.bad[answers]]
    ranked = kept[~np.isnan(ranks[kept]).all(axis=1)]
    if not len(ranked):
        raise DataError(f"{table.name}: nobody ranked anything in question {layout.question!r}")
    result = Rankings.from_ranks(ranks[ranked], names)
    agents = None if who is None else [rows.column(who).values[k] for k in rows.column(who).code[ranked]]
    result = Rankings.from_codes(
        result.item, result.tier, result.offsets, result.items, agent=agents if agents and all(agents) else None
    )
    notes = [f"read as qualtrics: question {layout.question}, {plural(len(names), 'item')}"]
    if len(ranked) < len(kept):
        notes.append(f"{plural(len(kept) - len(ranked), 'answer')} without any rank left out")
    set_columns(result, notes=tuple(notes))
    return result if items is None else _with_items(result, items)


def _with_items(data: Rankings, items: Sequence[Hashable]) -> Rankings:
    found = Rankings.from_orders(list(data), items, agent=None if data.agents is None else _agents(data))
    set_columns(found, notes=data.notes)
    return found


def _agents(data: Rankings) -> list[Hashable]:
    assert data.agent is not None
    assert data.agents is not None
    return [data.agents[k] for k in data.agent.tolist()]


def _item_names(rows: TableRows, columns: Sequence[str]) -> list[str]:
    """The texts of the columns, without what they have in common up to " - "."""
    top = int(np.flatnonzero((rows.place & _RECORD) == 0)[0])
    texts = [str(rows.column(name).values[rows.column(name).code[top]] or name) for name in columns]
    common = texts[0]
    while not all(text.startswith(common) for text in texts):
        common = common[:-1]
    cut = common.rfind(" - ") + 3 if " - " in common else 0
    names = [text[cut:].strip() for text in texts]
    return names if len(set(names)) == len(names) else list(columns)
