"""Click logs: a row per document shown, with query, document, position and whether it was clicked."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import set_columns
from placet.data.clicks import Clicks
from placet.io.features import QIDS
from placet.io.files import Source
from placet.io.tables.cells import as_number
from placet.io.tables.column_names import find_column
from placet.io.tables.tables import read_table
from placet.io.text import OnError

DOCUMENTS = ("document", "doc", "document_id", "doc_id", "docid", "item", "item_id", "product_id", "prop_id", "url")
POSITIONS = ("position", "pos", "rank", "place", "slot")
CLICKED = ("clicked", "click", "is_click", "click_bool", "label")
SESSIONS = ("session", "session_id", "impression", "impression_id", "request_id", "search_id", "serp_id")
_WORDS = {"true": 1.0, "false": 0.0}
_MOST = 2.0**53  # positions beyond are not exact as numbers
_NAME_THEM = "name the columns with query=, document=, position= and clicked="


def read_clicks(
    source: Source | Any,
    *,
    query: str | None = None,
    document: str | None = None,
    position: str | None = None,
    clicked: str | None = None,
    session: str | None = None,
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Clicks:
    """Read a click log from a table: a path, an open file, or a frame; one row per document shown.

    Columns are found by their names unless given.  ``position`` counts from 1, ``clicked`` is 0 or 1, true or false.
    Rows of one ``session`` (and query) were shown together; see ``Clicks.from_columns`` for logs without sessions.

    Returns
    -------
    Clicks
        Impressions: what was shown at which position, and what was clicked.

    >>> log = {"session": [1, 1, 2, 2], "query": ["tea"] * 4, "document": list("abab"), "position": [1, 2, 1, 2],
    ...        "clicked": [1, 0, 0, 1]}
    >>> read_clicks(log)
    Clicks(2 impressions of 1 queries, 4 rows, 2 clicks)
    """
    table = read_table(source, on_error, format, separator=separator, sheet=sheet)
    found = {}
    for what, given, known in (
        ("query", query, QIDS),
        ("document", document, DOCUMENTS),
        ("position", position, POSITIONS),
        ("clicked", clicked, CLICKED),
    ):
        found[what] = given or table.find(known) or what
        table.require(found[what], _NAME_THEM)
    if session is not None:
        table.require(session, "session= names the column of rows shown together")
    group = session or next((name for name in [table.find(SESSIONS)] if name not in found.values()), None)
    rows = table.rows(*found.values(), *([group] if group else []))
    names = {what: rows.labels(found[what]) for what in ("query", "document")}
    sessions = rows.labels(group) if group else None
    place, click = rows.numbers(found["position"]), rows.column(found["clicked"]).map(_mark, float)

    def refuse(what: str, wrong: Any, kind: str) -> None:
        name = found[what]
        rows.reject(wrong, name, lambda row: f"{name} {rows.quote(name, row)} is not {kind}", "correct it")

    refuse("position", (place < 1) | (place != np.rint(place)), "a whole number of at least 1")
    refuse("position", place >= _MOST, "below 2^53")
    refuse("clicked", (click != 0) & (click != 1), "0 or 1, true or false")
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{table.name}: no rows; {_NAME_THEM}")
    texts = {what: [column.values[k] for k in column.code[good]] for what, column in names.items()}
    shown = None if sessions is None else [sessions.values[k] for k in sessions.code[good]]
    clicks = Clicks.from_columns(
        texts["query"], texts["document"], place[good].astype(np.int64), click[good] > 0, session=shown
    )
    used = [*found.values(), *([group] if group else [])]
    set_columns(clicks, notes=(table.note("clicks", used), *clicks.notes))
    return clicks


def _mark(cell: Any) -> float:
    """1 for a click, 0 for none, NaN for anything else."""
    if isinstance(cell, bool):
        return float(cell)
    number = _WORDS.get(cell.lower()) if isinstance(cell, str) else None
    number = as_number(cell) if number is None else number
    return float("nan") if number is None else number


def ways_with_clicks(names: Sequence[str]) -> str | None:
    """How to read a table whose columns are those of a log of clicks, for a message; None if they are not."""
    query, document, position, clicked = (find_column(names, one) for one in (QIDS, DOCUMENTS, POSITIONS, CLICKED))
    if not (query and document and position and clicked):
        return None
    group = find_column(names, SESSIONS) or "(the column of what was shown together)"
    return (
        "are those of a log of clicks, which placet.read_clicks reads; if features stand beside them: placet train "
        f'--qid {group} --label {clicked} --control "one-hot({position})" --loss pl-partition'
    )
