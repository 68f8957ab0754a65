"""Games: two sides of one or several items and their points, from delimited text, JSON, Parquet or any data frame."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.contests.games import Games, SideScore
from placet.data.parameters import with_checked_options
from placet.io.battles import SCORES, WINNERS, BattleColumns, battle_outcomes
from placet.io.files import Source
from placet.io.tables.cells import join_columns
from placet.io.tables.column_names import COUNTS, SIDES, find_pair, split_names
from placet.io.tables.controls import control_table, find_terms, read_times
from placet.io.tables.tables import FileHead, Table, TableRows, read_table
from placet.io.text import OnError

_NAME_THEM = "name the columns with a=, b= and scores= (or winner=)"
FIRST = "first"
"""Name of the control that is 1 where the side named first may have an advantage."""
TRUE = ("true", "1", "1.0", "yes", "y")


def looks_like_games(head: FileHead) -> None:
    """Never: a table of two sides and their points is read as votes unless games are asked for."""


@with_checked_options
def read_games(
    source: Source | Any,
    *,
    a: str | Sequence[str] | None = None,
    b: str | Sequence[str] | None = None,
    scores: str | tuple[str, str] | None = None,
    winner: str | None = None,
    members: str | None = None,
    side: SideScore = "sum",
    ordered: bool = False,
    neutral: str | None = None,
    weight: str | None = None,
    control: str | Sequence[str] | None = None,
    time: str | None = None,
    items: Sequence[Hashable] | None = None,
    ignore: str | Sequence[str] = (),
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Games:
    """Read games from a table with a row per game: a path, an open file, or a frame.

    Parameters
    ----------
    a, b : columns of the two sides, found by their names if not given; several columns for sides of several items
        (``a="player1,player2"``), of which empty cells are left out.
    scores : two numeric columns with the points of the sides; found by their names, too.
    winner : a column that says who won, as in `read_battles`, if there are no points: a win counts 1 to 0.
    members : what separates the items of a side in one cell, such as "/" or "+".
    side : the score of a side is the "sum" or the "mean" of those of its items.
    ordered : the first side may have an advantage (home), which is learned as the control "first".
    neutral : a column of true and false, true where nobody has this advantage.
    weight, time, control, items, ignore, separator, sheet, format : as in `read_battles`.

    Returns
    -------
    Games
        The games, with points and teams.

    >>> read_games({"home": ["x", "y/z"], "away": ["y", "x"], "score_a": [2, 0], "score_b": [1, 3]}, members="/")
    Games(2 games, 3 items, sides of up to 2)
    """
    if members == "":
        raise ValueError("members must be what separates the items of a side, such as '/', not ''")
    table = read_table(source, on_error, format, separator=separator, sheet=sheet).without(split_names(ignore))
    first, second, said, points = _columns(table, a, b, scores, winner)
    weight = weight or table.find(COUNTS)
    terms = find_terms(table.names, control)
    own = [*first, *second, *(points or ()), *([said] if said else [])]
    used = [*own, *(name for name in (weight, time, neutral) if name)]
    used += [name for term in terms for name in term.columns]
    for name in used:
        table.require(name, _NAME_THEM if name in own else "name it with weight=, time=, neutral= or control=")
    rows = table.rows(*dict.fromkeys(used), distinct=False)
    sides = [_sides(rows, names, members) for names in (first, second)]
    for x, y, names in zip(*sides, (first, second)):
        empty = np.array([not one for one in (x if names is first else y)])
        rows.reject(empty, names[0], f"{names[0]} is missing", "fill it in")
    met = np.array([bool(set(x) & set(y)) or len(set(x)) + len(set(y)) < len(x) + len(y) for x, y in zip(*sides)])
    rows.reject(
        met, "self", lambda row: f"an item is in the game twice: {sides[0][row]}, {sides[1][row]}", "correct it"
    )
    found = _points(rows, first[0], second[0], said, points)
    counts = np.ones(len(rows)) if weight is None else rows.numbers(weight, positive=True)
    helped = dict(control_table(rows, terms))
    if ordered or neutral:
        helped[FIRST] = _advantage(rows, neutral)
    times = None if time is None else read_times(rows, time)
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{table.name}: no games in it; a row has two sides and their points")
    return Games.from_results(
        [sides[0][k] for k in good],
        [sides[1][k] for k in good],
        found[good, 0],
        found[good, 1],
        weight=counts[good],
        time=None if times is None else times[good],
        control={name: values[good] for name, values in helped.items()} or None,
        items=items,
        side=side,
        notes=(table.note("games", list(dict.fromkeys(used))),),
    )


def _columns(
    table: Table,
    a: str | Sequence[str] | None,
    b: str | Sequence[str] | None,
    scores: str | Sequence[str] | None,
    winner: str | None,
) -> tuple[list[str], list[str], str | None, tuple[str, str] | None]:
    """Columns of the first side, of the second, of who won and of the points."""
    if (a is None) != (b is None):
        raise ValueError("a= and b= name the columns of the two sides; give both or none")
    pair = None if a is not None else find_pair(table, SIDES, _NAME_THEM, 'a="{}", b="{}"')
    if a is None and pair is None:
        raise DataError(f"{table.name}: the columns {table.names} are not those of games; {_NAME_THEM}")
    first, second = (split_names(a), split_names(b)) if a is not None and b is not None else ([pair[0]], [pair[1]])  # type: ignore[index]
    if scores is not None:
        points = tuple(split_names(scores))
        if len(points) != 2:
            raise ValueError(f"scores must name two columns, not {list(points)}")
        return first, second, None, points
    both = find_pair(table, SCORES, "name the columns with scores=", 'scores="{},{}"') if winner is None else None
    if both is not None:
        return first, second, None, both
    said = winner or table.find(WINNERS)
    if said is None:
        raise DataError(f"{table.name}: no points and no winner among {table.names}; {_NAME_THEM}")
    return first, second, said, None


def _sides(rows: TableRows, names: Sequence[str], members: str | None) -> list[tuple[Any, ...]]:
    """The items of one side in every row."""
    columns = [rows.column(name) for name in names]
    cells = [[column.values[code] if code >= 0 else None for code in column.code] for column in columns]
    found = []
    for row in zip(*cells):
        names_of_row = [cell for cell in row if cell is not None]
        if members is not None:
            names_of_row = [part.strip() for cell in names_of_row for part in str(cell).split(members) if part.strip()]
        found.append(tuple(names_of_row))
    return found


def _points(rows: TableRows, a: str, b: str, winner: str | None, points: tuple[str, str] | None) -> Floats:
    """Points (rows, 2) of both sides: as given, or 1 and 0 by who won."""
    if points is not None:
        return np.column_stack([rows.numbers(name, "name the columns with scores=") for name in points])
    both = join_columns([rows.column(a), rows.column(b)])
    x, y = both.code[: len(rows)], both.code[len(rows) :]
    won = battle_outcomes(rows, BattleColumns(a, b, winner), both, x, y, None)
    return np.column_stack([won == 0, won == 1]).astype(np.float64)


def _advantage(rows: TableRows, neutral: str | None) -> NDArray[Any]:
    """1 in every row that is not neutral."""
    if neutral is None:
        return np.ones(len(rows))
    return 1.0 - rows.column(neutral).map(lambda cell: str(cell).strip().lower() in TRUE, float)
