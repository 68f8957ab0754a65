"""Ballots as people write them down: ``12: A > B = C`` in text, or a table, long or wide."""

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from placet.data import DataError, Rankings
from placet.data.arrays import encode, first_repeat, offsets_from_sizes
from placet.data.errors import one_of
from placet.io.files import Source, bare_suffix, name_of, read_lines, write_lines
from placet.io.tables import SUFFIXES, Sample, Table, as_number, in_memory, read_table, write_table
from placet.io.text import OnError, Problems, format_number, parse_decimal, quote

Unlisted = Literal["absent", "last"]
Layout = Literal["text", "long", "ranks", "places"]
LAYOUTS = ("text", "long", "ranks", "places")
COUNTS = ("weight", "count")  # columns of a table that count a ballot, when they are there

_COUNT = re.compile(r"\s*([+-]?(?:[0-9.][0-9A-Za-z_.+-]*|nan|inf|infinity))\s*:", re.IGNORECASE)
_ORDER = re.compile(r"\s*(?:[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*:\s*\S.*|[^:]*>.*)")
_ENTRY = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^">=#][^>=#]*))([>=]|#.*|$)', re.DOTALL)
_ITEMS = re.compile(r"\s*#\s*items\s*:(.*)", re.DOTALL)
_PLACE = re.compile(r"(?:rank|place|choice|preference|pref)?[ _.-]*([0-9]{1,6})(?:st|nd|rd|th)?", re.IGNORECASE)
_SHAPE = 'a line is: count: A > B = C, with quotes around names that hold one of > = # : "'
_WIDE = (
    'say layout="ranks" (a column per item, cells are ranks) or layout="places" (a column per place, cells are items)'
)


def looks_like_ballots(sample: Sample) -> dict[str, Any] | None:
    """Any table, and text whose first line is an order or follows a list of items."""
    if sample.table is not None:
        return {name: name for name in ("agent", "instance") if name in sample.table.names}
    return {} if _ORDER.fullmatch(sample.first) or "# items:" in sample.text else None


def read_ballots(
    source: Source | Any,
    *,
    layout: Layout | None = None,
    ballot: str = "ballot",
    item: str = "item",
    rank: str = "rank",
    weight: str | None = None,
    agent: str | None = None,
    instance: str | None = None,
    items: Sequence[Hashable] | None = None,
    unlisted: Unlisted = "absent",
    separator: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Rankings:
    """Ballots from text or from a table (file or frame).

    ``layout="text"``: a ballot per line, best first, ``>`` between tiers and ``=`` inside one, an optional count and
    colon before it, ``#`` before a comment; a line ``# items: A = B = C`` fixes the items and their order.
    ``layout="long"``: a row per ballot and item, columns ``ballot``, ``item``, ``rank`` (lower is better, equal ranks
    tie).
    ``layout="ranks"``: a row per ballot, a column per item, cells are ranks or empty.
    ``layout="places"``: a row per ballot, columns ``1``, ``2``, ... (or ``rank1``, ``choice 2``, ...), cells are
    items or empty.
    Without ``layout``: text, unless the suffix says table, ``separator`` or ``format`` is given, or
    ``source`` is a frame; then the columns tell.
    Tables: a column ``weight`` or ``count`` counts the ballot; ``agent`` and ``instance`` name columns.
    """
    if layout is not None:
        one_of(layout, LAYOUTS, "layout")
    if layout == "text" or (layout is None and not _is_table(source, separator or format)):
        return _from_text(source, items, unlisted, on_error)
    table = read_table(source, on_error, format, separator=separator)
    special = {"weight": weight or next((name for name in COUNTS if name in table.names), None)}
    special |= {"agent": agent, "instance": instance}
    layout = layout or _layout(table, (ballot, item, rank), {name for name in special.values() if name})
    if layout == "long":
        result = _from_long(table, (ballot, item, rank), special, items)
    else:
        result = _from_wide(table, layout, ballot, special, items)
    return result.completed() if unlisted == "last" else result


def _is_table(source: Any, told: str | None) -> bool:
    return told is not None or in_memory(source) or bare_suffix(source) in SUFFIXES


# Text


def _from_text(source: Source, items: Sequence[Hashable] | None, unlisted: Unlisted, on_error: OnError) -> Rankings:
    problems = Problems(name_of(source), on_error)
    orders: list[list[tuple[str, ...]]] = []
    weights: list[float] = []
    known = set(items or ())
    for number, line in read_lines(source):
        if match := _ITEMS.match(line):
            tiers = _tiers(match.group(1))
            if isinstance(tiers, list) and items is None:
                items = tuple(name for tier in tiers for name in tier)
                known = set(items)
            continue
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parsed = _line(line)
        if isinstance(parsed, str):
            problems.add(number, None, parsed, _SHAPE)
        elif items is not None and (strange := _strange(parsed[1], known)) is not None:
            problems.add(
                number, "item", f"item {strange!r} is not among the given items", "correct the name or the items"
            )
        else:
            weights.append(parsed[0])
            orders.append(parsed[1])
    problems.close()
    if not orders:
        raise DataError(f"{problems.name}: no ballots; {_SHAPE}")
    return Rankings.from_orders(orders, items=items, weight=weights, unlisted=unlisted)


def _strange(tiers: list[tuple[str, ...]], items: set[Hashable]) -> str | None:
    return next((name for tier in tiers for name in tier if name not in items), None)


def _line(line: str) -> tuple[float, list[tuple[str, ...]]] | str:
    """(weight, tiers) of one line, or what is wrong with it."""
    weight = 1.0
    if match := _COUNT.match(line):
        number = parse_decimal(match.group(1))
        if number is None or number < 0:
            return f"weight {quote(match.group(1))} is not a finite number that is not negative"
        weight = number
        line = line[match.end() :]
        if not line.strip() or line.lstrip().startswith("#"):
            return weight, []
    tiers = _tiers(line)
    if isinstance(tiers, str):
        return tiers
    listed = [name for tier in tiers for name in tier]
    if len(set(listed)) < len(listed):
        return f"item {quote(first_repeat(listed))} occurs more than once on one ballot"
    return weight, tiers


def _tiers(text: str) -> list[tuple[str, ...]] | str:
    """Tiers of names, or what is wrong."""
    tiers: list[list[str]] = [[]]
    at = 0
    while True:
        match = _ENTRY.match(text, at)
        name = None if match is None else (match.group(2) or "").strip() or (match.group(1) or "").replace('""', '"')
        if match is None or not name:
            return f"{quote(text.strip())} has an empty place or an open quote"
        tiers[-1].append(name)
        if match.group(3) == ">":
            tiers.append([])
        elif match.group(3) != "=":
            return [tuple(tier) for tier in tiers]
        at = match.end()


# Tables


def _layout(table: Table, keys: tuple[str, str, str], special: set[str]) -> Layout:
    if all(key in table.names for key in keys):
        return "long"
    rest = [name for name in table.names if name not in special and name != keys[0]]
    numbered = all(_PLACE.fullmatch(name) for name in rest)
    cells = [cell for name in rest for cell in table.column(name, "") if cell is not None]
    numeric = all(as_number(cell) is not None for cell in cells)
    if numbered == numeric:
        raise DataError(f"{table.name}: the columns {table.names} may be read in two ways, or in none; {_WIDE}")
    return "places" if numbered else "ranks"


def _special(table: Table, special: dict[str, str | None]) -> dict[str, list[Any] | None]:
    way_out = "name the columns with weight=, agent=, instance="
    found: dict[str, list[Any] | None] = {"weight": None}
    if special["weight"]:
        found["weight"] = table.numbers(special["weight"], way_out, positive=True)
    for what in ("agent", "instance"):
        name = special[what]
        found[what] = table.labels(name, way_out) if name else None
    return found


def _from_long(
    table: Table, keys: tuple[str, str, str], special: dict[str, str | None], items: Sequence[Hashable] | None
) -> Rankings:
    way_out = "name the columns with ballot=, item=, rank="
    who, what = table.labels(keys[0], way_out), table.labels(keys[1], way_out)
    ranks = table.numbers(keys[2], way_out)
    per_row = _special(table, special)
    seen: set[tuple[Any, Any]] = set()
    first: dict[Any, int] = {}
    for row, pair in enumerate(zip(who, what)):
        if pair in seen:
            table.reject(
                row, "twice", f"item {quote(pair[1])} occurs more than once on ballot {quote(pair[0])}", "keep one"
            )
        seen.add(pair)
        if row not in table.bad_rows:
            start = first.setdefault(pair[0], row)
            for name, column in per_row.items():
                if column is not None and column[row] != column[start]:
                    said = f"{name} {quote(column[row])} differs from that of its ballot before"
                    table.reject(row, name, said, f"a ballot has one {name}")
    rows = table.good_rows()
    if not rows:
        raise DataError(f"{table.name}: no ballots; a row has a ballot, an item and a rank")
    ballot, _ = encode([who[row] for row in rows], "ballot")
    code, names = encode([what[row] for row in rows], "item", items)
    tier = np.unique([ranks[row] for row in rows], return_inverse=True)[1]
    order = np.lexsort((code, tier, ballot))
    starts = sorted(first.values())
    chosen = {name: None if column is None else [column[r] for r in starts] for name, column in per_row.items()}
    return Rankings.from_codes(
        code[order],
        tier[order],
        offsets_from_sizes(np.bincount(ballot)),
        names,
        **chosen,
    )


def _from_wide(
    table: Table, layout: Layout, key: str, special: dict[str, str | None], items: Sequence[Hashable] | None
) -> Rankings:
    """A row per ballot: either a column per item with ranks, or a column per place with items."""
    known = {name for name in special.values() if name}
    rest = [name for name in table.names if name not in known and name != key]
    per_row = _special(table, special)
    places = _places(table, rest) if layout == "places" else []
    columns = [table.column(name, "") for name in rest]
    orders: list[list[tuple[Any, ...]]] = []
    for row in range(table.n_rows):
        cells = [column[row] for column in columns]
        order = _row_of_ranks(rest, cells) if layout == "ranks" else _row_of_places(places, cells)
        if isinstance(order, str):
            way_out = "cells are ranks or empty" if layout == "ranks" else "an item has one place on a ballot"
            table.reject(row, None, order, way_out)
            order = []
        orders.append(order)
    if items is None and layout == "ranks":
        items = tuple(rest)
    rows = table.good_rows()
    if not rows:
        raise DataError(f"{table.name}: no ballots; {_WIDE}")
    chosen = {name: None if column is None else [column[row] for row in rows] for name, column in per_row.items()}
    return Rankings.from_orders([orders[row] for row in rows], items=items, **chosen)  # type: ignore[arg-type]


def _places(table: Table, names: list[str]) -> list[int]:
    places = []
    for name in names:
        match = _PLACE.fullmatch(name)
        if match is None:
            raise DataError(f"{table.name}: column {name!r} is not the number of a place; {_WIDE}")
        places.append(int(match.group(1)))
    return places


def _row_of_ranks(names: list[str], cells: list[Any]) -> list[tuple[Any, ...]] | str:
    tiers: dict[float, list[str]] = {}
    for name, cell in zip(names, cells):
        if cell is not None:
            number = as_number(cell)
            if number is None:
                return f"rank {quote(cell)} of {quote(name)} is not a finite number"
            tiers.setdefault(number, []).append(name)
    return [tuple(tiers[rank]) for rank in sorted(tiers)]


def _row_of_places(places: list[int], cells: list[Any]) -> list[tuple[Any, ...]] | str:
    tiers: dict[int, list[Any]] = {}
    seen: set[Any] = set()
    for place, cell in zip(places, cells):
        if cell is not None:
            if cell in seen:
                return f"item {quote(cell)} occurs more than once on one ballot"
            seen.add(cell)
            tiers.setdefault(place, []).append(cell)
    return [tuple(tiers[place]) for place in sorted(tiers)]


# Writing


def write_ballots(rankings: Rankings, target: Source, *, format: str | None = None) -> None:
    """Ballots as text (``12: A > B = C``), or as a long table where the suffix or ``format`` says so.

    Text fixes the items in its first line and reads back equal, where names are text; agents and instances need a
    table, which reads back equal with ``items=rankings.items`` (and ``agent="agent"``, ``instance="instance"``).
    Scores are not written.
    """
    if format is not None or _is_table(target, None):
        _write_long(rankings, target, format)
        return
    for what in ("agent", "instance"):
        if getattr(rankings, what) is not None:
            raise DataError(f"ballots as text have no place for the {what}; write a table, such as .csv")
    write_lines(target, _lines(rankings))


def _lines(rankings: Rankings) -> Iterator[str]:
    quoted = {name: _quoted(str(name)) for name in rankings.items}
    yield "# items: " + " = ".join(quoted.values())
    for weight, ballot in zip(rankings.weight.tolist(), rankings):
        yield f"{format_number(weight)}: " + " > ".join(" = ".join(quoted[name] for name in tier) for tier in ballot)


def _quoted(name: str) -> str:
    if not name.strip() or "\n" in name or "\r" in name:
        raise DataError(f"item name {name!r} cannot be written as text: a name is one line, not blank")
    plain = name == name.strip() and not any(c in name for c in '>=#:"')
    return name if plain else '"' + name.replace('"', '""') + '"'


def _write_long(rankings: Rankings, target: Source, format: str | None) -> None:
    if (np.diff(rankings.offsets) == 0).any():
        raise DataError("a ballot lists nothing; a long table has no place for it: leave it out or write text")
    ballot = rankings.ballot
    columns: dict[str, list[Any]] = {
        "ballot": (ballot + 1).tolist(),
        "item": [rankings.items[k] for k in rankings.item.tolist()],
        "rank": (rankings.tier + 1).tolist(),
        "weight": rankings.weight[ballot].tolist(),
    }
    for what in ("agent", "instance"):
        code, names = getattr(rankings, what), getattr(rankings, what + "s")
        if code is not None:
            columns[what] = [names[k] for k in code[ballot].tolist()]
    write_table(target, columns, format)
