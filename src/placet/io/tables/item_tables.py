"""What a table says beside the votes: columns that its owner keeps about items, and the dates of its rows."""

from collections.abc import Mapping
from typing import Any

from placet.data.errors import DataError
from placet.data.times import time_column
from placet.io.tables.cells import as_number
from placet.io.tables.tables import read_table

ITEM_NAMES = ("item", "name", "model", "option", "candidate", "system", "player", "team")
DATE_NAMES = ("date", "time", "timestamp", "tstamp", "datetime", "day", "created_at", "created", "submitted_at")
UNIX_SECONDS = (1e8, 1e10)
"""Numbers between these, in a column of dates, are seconds since 1970: from 1973 to 2286."""


def read_item_columns(source: Any) -> dict[str, dict[str, str]]:
    """Columns about items, such as their organization, license and link: item -> column -> text.

    The item is named in the column ``item`` (or name, model, ...), else in the first.

    Parameters
    ----------
    source : a path, an open file, a data frame or a mapping of columns

    Returns
    -------
    dict
        For every item the texts of all columns; a missing cell is empty.

    >>> read_item_columns({"item": ["ant", "bee"], "habitat": ["soil", None]})
    {'ant': {'habitat': 'soil'}, 'bee': {'habitat': ''}}
    """
    table = read_table(source, "raise")
    key = table.find(ITEM_NAMES) or table.names[0]
    rows = table.rows()
    columns = {name: ["" if cell is None else str(cell) for cell in rows.column(name)] for name in table.names}
    items = columns.pop(key)
    if not columns:
        raise DataError(f"{table.name}: {key!r} is its only column; add columns to show, such as organization")
    seen: dict[str, int] = {}
    for row, item in enumerate(items):
        if not item:
            raise DataError(f"{table.name}:{rows.line(row)}: {key} is missing; fill it in")
        if seen.setdefault(item, row) != row:
            raise DataError(f"{table.name}:{rows.line(row)}: {item!r} has a row above, too; leave one of them out")
    return {item: {name: texts[row] for name, texts in columns.items()} for row, item in enumerate(items)}


def period_of(source: Any, column: str | None = None) -> tuple[str, str] | None:
    """The first and the last date (ISO, to the day) of a table's ``column``, by default one that is named like a date.

    None if there is none, or if its cells are not dates.

    >>> period_of({"winner": ["a", "b"], "date": ["2026-03-01", "2026-01-31"]})
    ('2026-01-31', '2026-03-01')
    """
    try:
        table = read_table(source, "skip")
        name = column or table.find(DATE_NAMES)
        if name is None:
            return None
        cells = [cell for cell in table.rows(name, distinct=True).column(name).values if cell is not None]
        return _ends(cells) if cells else None
    except (DataError, OSError, UnicodeError):
        return None


def _ends(cells: list[Any]) -> tuple[str, str] | None:
    numbers = [as_number(cell) for cell in cells]
    low, high = UNIX_SECONDS
    if all(value is not None and low <= value <= high for value in numbers):
        times = time_column([int(value or 0) for value in numbers], len(cells)).astype("datetime64[s]")
    elif any(value is not None for value in numbers):
        return None
    else:
        times = time_column(cells, len(cells))
    return str(times.min().astype("datetime64[D]")), str(times.max().astype("datetime64[D]"))


def links_of(columns: Mapping[str, str]) -> tuple[str, str]:
    """The name of the column whose text is a web address, and the address; two empty texts if there is none.

    >>> links_of({"license": "MIT", "link": "https://example.org/ant"}), links_of({"link": "javascript:alert(1)"})
    (('link', 'https://example.org/ant'), ('', ''))
    """
    found = ((name, text) for name, text in columns.items() if text.startswith(("https://", "http://")))
    return next(found, ("", ""))
