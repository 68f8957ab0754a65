"""Ballots in tables: long (a row per ballot and item), wide (a column per item or place), or one column of orders."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Rankings
from placet.data.arrays import Ints, dense_tiers, encode, first_repeat, offsets_from_sizes, recode
from placet.io.tables.ballot_controls import RowControls, find_controls
from placet.io.tables.cells import Column, as_number, join_columns, repeated_pairs
from placet.io.tables.column_names import (
    ABOUT,
    COUNTS,
    SIDES,
    find_column,
    name_in_brackets,
    plain_name,
    roles_by_column,
)
from placet.io.tables.tables import Table, TableRows
from placet.io.text import quote

BallotLayout = Literal["long", "ranks", "scores", "places", "orders"]
LAYOUTS: tuple[BallotLayout, ...] = get_args(BallotLayout)
# Column names that are recognized by default.
BALLOTS = ("ballot", "ballot_id", "voter", "voter_id", "respondent", "respondent_id", "judge", "judge_id", "agent")
ITEMS = ("item", "candidate", "option", "alternative", "item_id", "candidate_id", "name")
RANKS = ("rank", "ranking", "place", "position", "preference", "pos")
ORDERS = (
    "ballot",
    "order",
    "ranking",
    "rankings",
    "ranked_ballot",
    "preferences",
    "preference",
    "vote",
    "votes",
    "choices",
)
NO_CHOICE = ("skipped", "undervote", "overvote", "blank", "exhausted")  # words in cells that do not name an item
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_PLACE = re.compile(
    r"(?:(?:rank|place|choice|preference|pref|position|option|number|no|top)_?)?"
    rf"(?:([0-9]{{1,6}})(?:st|nd|rd|th)?|({'|'.join(_ORDINALS)}))"
    r"(?:_?(?:rank|place|choice|preference|pref|position|option))?"
)
_SEPARATORS = (">", ";", "|", ",")
WIDE = (
    'say layout="ranks" (a column per item, cells are ranks, 1 is best), layout="scores" (cells are scores, higher is '
    'better), layout="places" (a column per place, cells are items) or layout="orders" (one column, cells are A > B)'
)
_KEYS = ("ballot", "item", "rank")
_LONG = "name the columns with ballot=, item=, rank="


@dataclass
class ColumnRoles:
    """The columns of a table by role."""

    layout: BallotLayout
    main: list[str]  # ballot, item and rank; or one column per item or place; or the column of orders
    special: dict[str, str] = field(default_factory=dict)  # weight, agent, instance
    control: list[str] = field(default_factory=list)

    def column_names(self) -> list[str]:
        return list(dict.fromkeys([*self.main, *self.special.values(), *self.control]))

    def roles(self) -> dict[str, str]:
        """The role of each column: the option of the reader that names it, or what a column of a wide table is."""
        word = {"places": "a place", "orders": "orders"}.get(self.layout, "an item")
        main = dict(zip(self.main, _KEYS)) if self.layout == "long" else dict.fromkeys(self.main, word)
        return dict.fromkeys(self.control, "control") | main | roles_by_column(self.special)


MANY_COLUMNS = 16
"""Tables with more columns are loaded whole, not column by column, to look for orders."""


def place_number(name: str) -> int | None:
    """The place that a name or cell denotes: ``1``, ``2nd``, ``Choice 3``, ``Fourth choice``; else ``None``.

    >>> [place_number(name) for name in ("1", "2nd", "Choice 3", "Fourth choice", "rank5", "Apple")]
    [1, 2, 3, 4, 5, None]
    """
    match = _PLACE.fullmatch(plain_name(name))
    if match is None:
        return None
    return int(match.group(1)) if match.group(1) else _ORDINALS.index(match.group(2)) + 1


def find_columns(
    table: Table,
    layout: BallotLayout | None,
    keys: Sequence[str | None],
    special: Mapping[str, str | None],
    items: Sequence[Hashable] | None,
    ignore: Sequence[str],
) -> ColumnRoles | None:
    """The columns of ballots: those given, or else found by names and cells; ``None`` if there are none."""
    names = [name for name in table.names if name not in ignore]
    chosen = {what: name or find_column(names, known) for (what, name), known in zip(special.items(), _SPECIAL)}
    extra = {what: name for what, name in chosen.items() if name is not None}
    rest = [name for name in names if name not in extra.values()]
    if layout in (None, "long"):
        found = [key or find_column(rest, known) for key, known in zip(keys, (BALLOTS, ITEMS, RANKS))]
        found[0] = found[0] or special.get("agent")  # without a ballot column, each voter has one ballot
        if layout == "long" or all(found):
            default = zip(found, _KEYS)
            return ColumnRoles("long", [name or key for name, key in default], extra)
    rest = [name for name in rest if name != keys[0]]
    if layout is not None:
        main = _columns_of(table, layout, rest, items) if rest else []
        if not main:
            raise DataError(f"{table.name}: no columns of ballots among {table.names}; {WIDE}")
        return ColumnRoles(layout, main, extra)
    places, orders = _place_columns(rest), _order_columns(table, rest)
    ranks = _rank_columns(table, rest, items)
    if places and ranks:
        said = f"{table.name}: the columns {table.names} may be read in two ways; {WIDE}"
        raise DataError.of_ways(said, ['layout="places"', 'layout="ranks"'])
    if places:
        return ColumnRoles("places", places, extra)
    if ranks:
        return ColumnRoles("ranks", ranks, extra)
    if len(orders) > 1:
        ways = [f"ignore={[name for name in orders if name != one]}" for one in orders]
        said = f"{table.name}: {' and '.join(map(repr, orders))} all hold orders; say {' or '.join(ways)}"
        raise DataError.of_ways(said, ways)
    return ColumnRoles("orders", orders, extra) if orders else None


_SPECIAL = (COUNTS, ("agent",), ("instance",))


def _columns_of(table: Table, layout: BallotLayout, rest: list[str], items: Sequence[Hashable] | None) -> list[str]:
    """The columns of a given layout."""
    if layout == "places":
        return _place_columns(rest) or rest
    if layout == "orders":
        return _order_columns(table, rest) or [find_column(rest, ORDERS) or rest[0]]
    if items is not None:
        if not isinstance(items, Iterable):
            raise ValueError(f"items must be names, not {items!r}")
        wanted = set(items)
        return [name for name in rest if name_in_brackets(name) in wanted or name in wanted]
    return [name for name in rest if plain_name(name) not in ABOUT]


def _place_columns(rest: list[str]) -> list[str]:
    """Columns named by places, including place 1; a single one must be the only column."""
    found = [name for name in rest if place_number(name_in_brackets(name)) is not None]
    numbers = {place_number(name_in_brackets(name)) for name in found}
    return found if 1 in numbers and (len(found) > 1 or len(rest) == 1) else []


def _rank_columns(table: Table, rest: list[str], items: Sequence[Hashable] | None) -> list[str]:
    """Columns, k in number, whose cells are all ranks 1..k or blank, with a 1 in every row that is not blank."""
    wanted = _columns_of(table, "ranks", rest, items)
    if not wanted:
        return []
    rows = table.rows(*wanted)
    ranks = {name: rows.column(name).map(_rank, float) for name in wanted}
    filled = {name: ~rows.column(name).is_missing() for name in wanted}
    within = {name: (rank >= 1) & (rank <= len(wanted)) & (rank == np.round(rank)) for name, rank in ranks.items()}
    some = [name for name in wanted if within[name].any()]
    whole = [name for name in some if (within[name] | ~filled[name]).all()]
    highest = {name: float(np.nanmax(ranks[name])) for name in whole}
    by_rank = sorted(whole, key=highest.__getitem__)  # keep the largest k of these with no rank above k
    while by_rank and highest[by_rank[-1]] > len(by_rank):
        by_rank.pop()
    kept = set(by_rank)
    whole = [name for name in whole if name in kept]
    sides = tuple(map(plain_name, whole))
    if len(whole) < 2 or (sides in SIDES and sides != ("a", "b")):  # two sides without a winner are not items
        return []
    partly = [name for name in some if name not in kept]
    if partly:
        name = partly[0]
        row = int(np.argmax(filled[name] & ~(within[name] & (ranks[name] <= len(some)))))
        raise DataError(
            f"{table.name}: column {name!r} holds {rows.quote(name, row)} beside ranks; correct it, or say "
            f'ignore={name!r} if it is not an item, or layout="ranks" if any number is a rank'
        )
    first = np.nanmin(np.where([filled[name] for name in whole], [ranks[name] for name in whole], np.inf), axis=0)
    if ((first != 1) & np.isfinite(first)).any():
        row = int(np.argmax((first != 1) & np.isfinite(first)))
        raise DataError.of_ways(
            f"{table.name}: {', '.join(whole[:8])} hold small whole numbers, but a row has no 1 "
            f"(its cells are {', '.join(rows.quote(name, row) for name in whole[:8])}): ranks or scores; {WIDE}",
            ['layout="ranks"', 'layout="scores"'],
        )
    return whole


def _rank(cell: Any) -> float:
    """A cell as a rank: a number, or a place in words; NaN if it is neither."""
    number = as_number(cell)
    if number is None and isinstance(cell, str) and "_" not in cell and any(map(str.isalpha, cell)):
        number = place_number(cell)
    return float("nan") if number is None else float(number)


def _order_columns(table: Table, rest: list[str]) -> list[str]:
    """Text columns of orders such as ``A > B``, known by their names, or by ``>`` or ``;`` in every cell."""
    found = []
    at_once = table.rows(*rest) if len(rest) > MANY_COLUMNS else None  # a wide file would be read once per column
    for name in rest:
        rows = at_once or table.rows(name, distinct=True)
        cells = [cell for cell in rows.column(name).values if cell is not None]
        if not cells or not all(isinstance(cell, str) for cell in cells):
            continue
        separator = _separator(cells)
        every = separator is not None and all(separator in cell for cell in cells)
        if separator is not None and (plain_name(name) in ORDERS or (every and separator in ">;")):
            found.append(name)
    named = [name for name in found if plain_name(name) in ORDERS]
    return named or found


def _separator(cells: Sequence[str]) -> str | None:
    return next((mark for mark in _SEPARATORS if any(mark in cell for cell in cells)), None)


def read_columns(
    table: Table,
    columns: ColumnRoles,
    items: Sequence[Hashable] | None,
    parse: Callable[[str], Any],
    control: str | Sequence[str] | None = None,
) -> Rankings:
    """The ballots of a table; ``parse`` parses a ballot in text."""
    for name in columns.column_names():
        table.require(name, _LONG if columns.layout == "long" else "name the columns with weight=, agent=, instance=")
    rows = table.rows(*columns.column_names())
    wide = columns.layout != "long"
    controls = RowControls(rows, find_controls(table.names, control, wide))
    if not wide:
        ballots, row = _from_long(rows, columns.main, columns.special, items)
        return controls.add_to(ballots, row)
    special = _special(rows, columns.special)
    if columns.layout == "places":
        ballots = _from_places(rows, columns.main, special, items)
    elif columns.layout == "orders":
        ballots = _from_orders(rows, columns.main[0], special, items, parse)
    else:
        ballots = _from_ranks(rows, columns.main, special, items, columns.layout == "scores")
    return controls.add_to(ballots, np.flatnonzero(~rows.bad)[ballots.ballot])


@dataclass
class Special:
    """Weights, agents and instances of the rows."""

    weight: NDArray[np.float64] | None
    names: dict[str, Column]  # agent, instance

    def of(self, rows: Ints) -> dict[str, Any]:
        """Keyword arguments of ``Rankings.of_rows`` for the ballots in ``rows``."""
        chosen: dict[str, Any] = {what: list(column.take(rows)) for what, column in self.names.items()}
        return chosen | {"weight": None if self.weight is None else self.weight[rows]}


def _special(rows: TableRows, special: dict[str, str]) -> Special:
    weight = rows.numbers(special["weight"], positive=True) if "weight" in special else None
    return Special(weight, {what: rows.labels(special[what]) for what in ("agent", "instance") if what in special})


def _from_long(
    rows: TableRows, keys: list[str], others: dict[str, str], items: Sequence[Hashable] | None
) -> tuple[Rankings, Ints]:
    """The ballots, and the table row of each of their rows."""
    who, what = rows.labels(keys[0]), rows.labels(keys[1])
    ranks = rows.numbers(keys[2])
    special = _special(rows, others)
    rows.reject(
        repeated_pairs(who, what, np.arange(len(rows))),
        "twice",
        lambda row: f"item {rows.quote(keys[1], row)} occurs more than once on ballot {rows.quote(keys[0], row)}",
        "keep one",
    )
    start = np.zeros(len(who.values), np.int64)  # the first row of each ballot
    usable = np.flatnonzero(~rows.bad)
    start[who.code[usable[::-1]]] = usable[::-1]
    if special.weight is not None:
        _same_in_ballot(rows, "weight", special.weight, special.weight.tolist(), start[who.code])
    for name, column in special.names.items():
        _same_in_ballot(rows, name, column.code, list(column), start[who.code])
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{rows.table.name}: no ballots; a row has a ballot, an item and a rank")
    ballot, names = recode(who.code[good], who.values, "ballot")
    code, found = recode(what.code[good], what.values, "item", items)
    tier = np.unique(ranks[good], return_inverse=True)[1]
    order = np.lexsort((code, tier, ballot))
    first = np.zeros(len(names), np.int64)
    first[ballot[::-1]] = good[::-1]
    offsets = offsets_from_sizes(np.bincount(ballot))
    return Rankings.of_rows(code[order], tier[order], offsets, found, **special.of(first)), good[order]


def _same_in_ballot(rows: TableRows, name: str, values: NDArray[Any], cells: Sequence[Any], start: Ints) -> None:
    rows.reject(
        values != values[start],
        name,
        lambda row: f"{name} {quote(cells[row])} differs from that of its ballot before",
        f"a ballot has one {name}",
    )


def _from_ranks(
    rows: TableRows, names: list[str], special: Special, items: Sequence[Hashable] | None, scores: bool
) -> Rankings:
    """Ballots from a column per item; cells are ranks, or scores (higher is better)."""
    what = "score" if scores else "rank"
    numbers = np.empty((len(rows), len(names)))
    for k, name in enumerate(names):
        column = rows.column(name)
        numbers[:, k] = column.map(_rank, float)
        wrong = np.isnan(numbers[:, k]) & ~column.is_missing()
        said = lambda row, name=name: f"{what} {rows.quote(name, row)} of {quote(name)} is not a finite number"  # noqa: E731
        rows.reject(wrong, None, said, f"cells are {what}s or empty")
    good = _ballots(rows)
    listed = ~np.isnan(numbers[good])
    ballot, item = np.nonzero(listed)
    value = numbers[good][listed] * (-1 if scores else 1)
    order = np.lexsort((value, ballot))
    offsets = offsets_from_sizes(listed.sum(axis=1))
    code = np.arange(len(names))
    found: tuple[Hashable, ...] = tuple(map(name_in_brackets, names))
    if items is not None:
        used = np.unique(item)
        code[used], found = encode([found[k] for k in used.tolist()], "item", items)
    score = -value[order] if scores else None
    return Rankings.of_rows(
        code[item[order]], dense_tiers(value[order], offsets), offsets, found, **special.of(good), score=score
    )


def _ballots(rows: TableRows) -> Ints:
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{rows.table.name}: no ballots; {WIDE}")
    return good


def _from_places(rows: TableRows, names: list[str], special: Special, items: Sequence[Hashable] | None) -> Rankings:
    """Ballots from a column per place; cells are items."""
    places = []
    for name in names:
        place = place_number(name_in_brackets(name))
        if place is None:
            raise DataError(f"{rows.table.name}: column {name!r} is not the number of a place; {WIDE}")
        places.append(place)
    order = np.argsort(places, kind="stable")
    every = join_columns([rows.column(names[k]) for k in order.tolist()])
    absent = every.map(lambda cell: cell is None or (isinstance(cell, str) and cell.lower() in NO_CHOICE), bool)
    code = np.where(absent, -1, every.code).reshape(len(names), -1).T  # (ballots, places)
    ordered = np.sort(code, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    rows.reject(
        twice,
        None,
        lambda row: (
            f"item {quote(every.values[first_repeat(k for k in code[row].tolist() if k >= 0)])} "
            "occurs more than once on one ballot"
        ),
        "an item has one place on a ballot",
    )
    good = _ballots(rows)
    listed = code[good] >= 0
    offsets = offsets_from_sizes(listed.sum(axis=1))
    item, found = recode(code[good][listed], every.values, "item", items)
    tier = np.broadcast_to(np.unique(places, return_inverse=True)[1][order], listed.shape)[listed]
    return Rankings.of_rows(item, dense_tiers(tier, offsets), offsets, found, **special.of(good))


def _from_orders(
    rows: TableRows, name: str, special: Special, items: Sequence[Hashable] | None, parse: Callable[[str], Any]
) -> Rankings:
    """Ballots from one column of orders in text: ``A > B = C``, or names separated by ; | or ,"""
    column = rows.column(name)
    separator = _separator([cell for cell in column.values if isinstance(cell, str)]) or ">"
    parsed = [_parse_order(cell, separator, parse) for cell in column.values]
    wrong = np.array([isinstance(order, str) for order in parsed])[column.code]
    rows.reject(wrong, None, lambda row: str(parsed[column.code[row]]), f"cells of {name} are orders such as A > B = C")
    rows.reject(column.is_missing(), name, f"{name} is missing", "fill it in")
    good = _ballots(rows)
    chosen = [parsed[k] for k in column.code[good].tolist()]
    weight = np.array([weight for weight, _ in chosen])
    extra = special.of(good)
    extra["weight"] = weight if extra["weight"] is None else weight * extra["weight"]
    return Rankings.from_orders([tiers for _, tiers in chosen], items=items, **extra)


def _parse_order(cell: Any, separator: str, parse: Callable[[str], Any]) -> Any:
    """(weight, tiers) of a cell, or what is wrong with it."""
    if separator == ">" or cell is None:
        return parse("" if cell is None else str(cell))
    names = [name.strip() for name in str(cell).split(separator) if name.strip()]
    if (twice := first_repeat(names)) is not None:
        return f"item {quote(twice)} occurs more than once on one ballot"
    return 1.0, [(name,) for name in names]
