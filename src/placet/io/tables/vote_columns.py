"""Columns that hold votes under other names: sides, and another that repeats one of them in every row."""

from collections.abc import Collection, Sequence
from itertools import combinations

from placet.io.tables.column_names import ABOUT, COUNTS, plain_name
from placet.io.tables.tables import Table

MOST_COLUMNS, MOST_ROWS = 12, 200
"""Wider tables are not searched, and only the first rows are looked at."""


def vote_columns(
    table: Table, ties: Collection[str], sides: tuple[str, str] | None = None
) -> tuple[str, str, str] | None:
    """The two sides and the winner of each row, if exactly one choice of three columns can be them.

    In every row the winner is the cell of one side, or empty, or one of ``ties``, words for a tie; at least two rows
    have a winner.  ``sides``: the columns that the two sides must be.
    """
    cells = _first_cells(table)
    names = list(cells)
    if len(names) < 3:
        return None
    pairs = [sides] if sides else list(combinations(names, 2))
    found = [
        (a, b, winner)
        for a, b in pairs
        for winner in names
        if winner not in (a, b) and _decides(cells[a], cells[b], cells[winner], ties)
    ]
    return found[0] if len(found) == 1 else None


def chosen_column(table: Table, shown: Sequence[str]) -> str | None:
    """The column that repeats a cell of the columns ``shown`` in every row, if there is exactly one; else None."""
    cells = _first_cells(table)
    if not set(shown) <= set(cells):
        return None
    rows = list(zip(*(cells[name] for name in shown)))
    found = [
        name
        for name in cells
        if name not in shown and len(rows) > 1 and all(said and said in row for said, row in zip(cells[name], rows))
    ]
    return found[0] if len(found) == 1 else None


def _first_cells(table: Table) -> dict[str, list[str]]:
    """The first cells of the columns that may hold items or winners, as text; none of a wide table."""
    names = [name for name in table.names if plain_name(name) not in ABOUT and plain_name(name) not in COUNTS]
    if len(names) > MOST_COLUMNS:
        return {}
    rows = table.rows(*names)
    return {name: [_text(value) for value, _ in zip(rows.column(name), range(MOST_ROWS))] for name in names}


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _decides(a: list[str], b: list[str], winner: list[str], ties: Collection[str]) -> bool:
    """Whether a third column says in each row which of two different cells won."""
    won = 0
    for left, right, said in zip(a, b, winner):
        if left == right or not left or not right:
            return False
        if said in (left, right):
            won += 1
        elif said and said.lower() not in ties:
            return False
    return won >= 2
