"""Ranking questions in the results of SurveyJS: JSON objects, one for each response, with a list of names in order."""

import json
import re
from collections.abc import Hashable, Sequence
from typing import Any

from placet.data import DataError, Rankings
from placet.data.arrays import set_columns
from placet.data.parameters import with_checked_options
from placet.io.files import Source
from placet.io.tables.tables import FileHead, Table, TableRows, read_table
from placet.io.text import OnError, plural

_LIST = re.compile(r":\s*\[\s*[\"0-9-]")


def looks_like_surveyjs(head: FileHead) -> dict[str, str] | None:
    """Match JSON objects with lists of names in one column, all of them orders of the same names, and not all alike."""
    if head.table is None or head.text.lstrip()[:1] not in ("{", "[") or not _LIST.search(head.text):
        return None
    name = head.options.get("question") or _find_question(head.table)
    return None if name is None else {"question": name}


def _find_question(table: Table) -> str | None:
    """The only column of rankings; several are a ``DataError``."""
    lists = _columns_of_lists(table)
    ranked = [name for name, cells in lists.items() if len(cells) > 1 and len({frozenset(cell) for cell in cells}) == 1]
    if not ranked:
        return None
    if len(ranked) > 1:
        ways = [f'question="{name}"' for name in ranked]
        said = f"{table.name}: {' and '.join(map(repr, ranked))} hold rankings; say {' or '.join(ways)}"
        raise DataError.of_ways(said, ways)
    return ranked[0]


def _columns_of_lists(table: Table) -> dict[str, list[list[Any]]]:
    """The different lists in each column whose cells are empty or lists of at least two different names."""
    found = {}
    for name in table.names:
        rows = table.rows(name)
        if not all(str(cell).startswith("[") for part in rows.cells[name] for cell in part if cell is not None):
            continue
        cells = [_order(cell) for cell in rows.column(name).values if cell is not None]
        if cells and all(cell is not None and len(cell) > 1 for cell in cells):
            found[name] = [cell for cell in cells if cell is not None]
    return found


def _order(cell: Any) -> list[Any] | None:
    """The names in a cell that is a list of different texts or numbers; None for anything else."""
    if not isinstance(cell, str) or cell[:1] != "[":
        return None
    try:
        values = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    names = [value for value in values if isinstance(value, str | int) and not isinstance(value, bool)]
    return names if len(names) == len(values) == len(set(names)) else None


@with_checked_options
def read_surveyjs(
    source: Source | Any,
    *,
    question: str | None = None,
    items: Sequence[Hashable] | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Rankings:
    """Read a ranking question of SurveyJS results (a list of JSON objects, or one per line) as ballots, best first.

    ``question`` is the name of the question; by default the only one whose answers are all orders of the same names.
    A list of chosen names (a checkbox question) has no order: name a question only if its lists are rankings.
    Responses without an answer are counted in a note.

    Returns
    -------
    Rankings
        A ballot per response with an answer.

    >>> import io, json
    >>> answers = [{"age": 3, "fruit": ["Fig", "Kiwi"]}, {"fruit": ["Kiwi", "Fig"]}]
    >>> read_surveyjs(io.StringIO(json.dumps(answers))).orders()
    [['Fig', 'Kiwi'], ['Kiwi', 'Fig']]
    """
    table = read_table(source, on_error, format)
    name = question or (table.layout or {}).get("question") or _find_question(table)
    if name is None:
        raise DataError(f"{table.name}: name the ranking question with question=, one of {table.names}")
    table.require(name, "name the ranking question with question=")
    rows: TableRows = table.rows(name)
    column = rows.column(name)
    wrong = column.map(lambda cell: cell is not None and not _order(cell), bool)
    rows.reject(
        wrong, name, lambda row: f"{name} {rows.quote(name, row)} is not a list of names", "an answer is a list"
    )
    good = rows.good_rows()
    orders = [_order(cell) for cell in column.take(good) if cell is not None]
    if not orders:
        raise DataError(f"{table.name}: nobody ranked anything in question {name!r}")
    result = Rankings.from_orders([list(map(str, order or ())) for order in orders], items)
    said = [f"read as surveyjs: question {name}, {plural(len(result.items), 'item')}"]
    if len(orders) < len(good):
        said.append(f"{plural(len(good) - len(orders), 'answer')} without any rank left out")
    set_columns(result, notes=tuple(said))
    return result
