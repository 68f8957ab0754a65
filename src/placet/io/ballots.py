"""Ballots as text, such as ``12: A > B = C``, or as a long or wide table."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from placet.data import DataError, Rankings
from placet.data.arrays import WeightKind, first_repeat, set_columns
from placet.data.errors import one_of
from placet.data.parameters import with_checked_options
from placet.data.rankings import Unlisted
from placet.io.files import Source, bare_suffix, layout_of, name_of, opened, read_lines, write_lines
from placet.io.tables.ballot_controls import columns_of
from placet.io.tables.ballot_tables import WIDE, BallotLayout, ColumnRoles, find_columns, read_columns
from placet.io.tables.column_names import split_names
from placet.io.tables.row_sources import in_memory
from placet.io.tables.tables import SUFFIXES, FileHead, Table, read_table, write_table
from placet.io.text import TEXT, OnError, Problems, format_number, parse_decimal, parse_tiers, quote, quoted_name

_COUNT = re.compile(r"\s*([+-]?(?:[0-9.][0-9A-Za-z_.+-]*|nan|inf|infinity))\s*:", re.IGNORECASE)
_ORDER = re.compile(r"\s*(?:[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*:\s*\S.*|[^:]*>.*)")
_ITEMS = re.compile(r"\s*#\s*items\s*:(.*)", re.DOTALL)
_SHAPE = 'a line is: count: A > B = C, with quotes around names that hold one of > = # : "'


def looks_like_ballots(head: FileHead) -> ColumnRoles | str | None:
    """Match a table with ballot columns, or text whose first line is an order or that has a list of items."""
    if head.table is not None:
        keys = tuple(head.pick("ballot", "item", "rank").values())
        special = head.pick("weight", "agent", "instance")
        return _find(head.table, keys, special, **head.pick("layout", "items", "ignore", "control"))
    return TEXT if _ORDER.fullmatch(head.first) or "# items:" in head.text else None


def _find(
    table: Table,
    keys: tuple[str | None, ...],
    special: Mapping[str, str | None],
    layout: BallotLayout | None,
    items: Sequence[Hashable] | None,
    ignore: str | Sequence[str] | None,
    control: str | Sequence[str] | None,
) -> ColumnRoles | None:
    """The columns by role; those of controls have no other."""
    beside = columns_of(table.names, control, wide=True) if control else []
    found = find_columns(table, layout, keys, special, items, [*split_names(ignore or ()), *beside])
    if found is not None:
        found.control = columns_of(table.names, control, found.layout != "long")
    return found


@with_checked_options
def read_ballots(
    source: Source | Any,
    *,
    layout: Literal["text"] | BallotLayout | None = None,
    ballot: str | None = None,
    item: str | None = None,
    rank: str | None = None,
    weight: str | None = None,
    agent: str | None = None,
    instance: str | None = None,
    control: str | Sequence[str] | None = None,
    items: Sequence[Hashable] | None = None,
    ignore: str | Sequence[str] = (),
    unlisted: Unlisted = "absent",
    weights: WeightKind = "counts",
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Rankings:
    """Read ballots from text or from a table (file or frame).

    Parameters
    ----------
    layout : how the ballots are written.  The default is text, unless the suffix is that of a table, ``separator`` or
        ``format`` is given, or ``source`` is a frame: then the layout is inferred from the columns, and ambiguity is an
        error.

        "text": a ballot per line, best first, ``>`` between tiers and ``=`` within one, an optional count and colon
        before it, ``#`` before a comment; a line ``# items: A = B = C`` fixes the items and their order.

        "long": a row per ballot and item, with a rank (lower is better, equal ranks tie).

        "ranks": a row per ballot, a column per item, cells are ranks or empty.

        "scores": the same with scores, higher is better.

        "places": a row per ballot, columns ``1``, ``2``, ... (or ``rank1``, ``choice 2``, ``Third choice``), cells
        are items or empty.

        "orders": a row per ballot, one column with ``A > B = C`` (or names separated by ``;``).
    ballot, item, rank : columns of the long layout.
    weight, agent, instance : columns with how often a ballot counts, who cast it, and which problem it belongs to; by
        default the columns with these names (or ``count`` for the weight).
    control : numeric columns that may have helped a row (`placet.io.tables.ballot_controls`): ``"position"`` or
        ``"one-hot(position)"`` in a long table; ``"shown"`` for columns ``shown_tea``, ``shown_milk``, ... in a wide
        one; ``"age * tea"`` (or ``"age * items"``) for a number per ballot that may help that item (or each item).
    items : names of all items, in order; by default those in the data.
    ignore : columns to ignore.
    unlisted : "last" puts the items that a ballot leaves out in one last tier.
    weights : "design" if the weight of a ballot is not how often it was seen but how many voters it stands for
        (`Rankings.with_design_weights`).
    separator, format : of the file, if they cannot be inferred from its first lines and suffix.
    sheet : the sheet of a workbook, by name; needed if several have cells.

    Columns of a grid (``Question [item]``) are named by the text in brackets.

    Returns
    -------
    Rankings
        One list per ballot.

    >>> import io
    >>> read_ballots(io.StringIO("3: tea > milk = water\\nmilk > tea\\n")).orders()
    [['tea', ('milk', 'water')], ['milk', 'tea']]
    >>> read_ballots({"First choice": ["tea", "milk"], "Second choice": ["milk", "tea"]}).orders()
    [['tea', 'milk'], ['milk', 'tea']]
    """
    if layout is not None:
        one_of(layout, (TEXT, *get_args(BallotLayout)), "layout")
    layout = layout or (TEXT if layout_of(source) == TEXT else None)
    if layout == TEXT or (layout is None and not is_table(source, separator or sheet or format)):
        if control:
            raise DataError(f"{name_of(source)}: ballots as text have no columns for control=; write a table (.csv)")
        columns_named: dict[str, Any] = {"ballot": ballot, "item": item, "rank": rank, "weight": weight, "agent": agent}
        columns_named |= {"instance": instance, "ignore": ignore}
        for name, value in columns_named.items():
            if value:
                raise DataError(f"{name_of(source)}: ballots in lines of text have no columns; leave {name}= out")
        lines = _from_text(source, items, unlisted, on_error)
        return lines.with_design_weights() if weights == "design" else lines
    one_of(unlisted, get_args(Unlisted), "unlisted")
    table = read_table(source, on_error, format, separator=separator, sheet=sheet)
    special = {"weight": weight, "agent": agent, "instance": instance}
    columns: ColumnRoles | None
    columns = table.layout or _find(table, (ballot, item, rank), special, layout, items, ignore, control)
    if columns is None:
        raise DataError(f"{table.name}: the columns {table.names} may be read in two ways, or in none; {WIDE}")
    result = read_columns(table, columns, items, _line, control)
    result = result.completed() if unlisted == "last" else result
    said = table.note(f"ballots ({_MEANING[columns.layout]})", columns.column_names())
    set_columns(result, notes=(said, *result.heads_note()))
    return result.with_design_weights() if weights == "design" else result


_MEANING = {
    "long": "a row per ballot and item",
    "ranks": "a column per item, cells are ranks, 1 is best",
    "scores": "a column per item, cells are scores, the highest is best",
    "places": "a column per place, cells are items",
    "orders": "orders in text",
}


def is_table(source: Any, given: str | None) -> bool:
    """Whether the source is a table: a separator or format is given, or it is a frame, or its suffix says so."""
    if given is not None or in_memory(source):
        return True
    if bare_suffix(source) == ".zip":
        with opened(source) as file:
            return bare_suffix(file) in SUFFIXES
    return bare_suffix(source) in SUFFIXES


# Text


def _from_text(source: Source, items: Sequence[Hashable] | None, unlisted: Unlisted, on_error: OnError) -> Rankings:
    problems = Problems(name_of(source), on_error)
    orders: list[list[tuple[str, ...]]] = []
    weights: list[float] = []
    known = set(items or ())
    for number, line in read_lines(source):
        if match := _ITEMS.match(line):
            tiers = parse_tiers(match.group(1))
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
    tiers = parse_tiers(line)
    if isinstance(tiers, str):
        return tiers
    listed = [name for tier in tiers for name in tier]
    if len(set(listed)) < len(listed):
        return f"item {quote(first_repeat(listed))} occurs more than once on one ballot"
    return weight, tiers


# Writing


def write_ballots(rankings: Rankings, target: Source, *, format: str | None = None) -> None:
    """Write ballots as text (``12: A > B = C``), or as a long table if the suffix or ``format`` says so.

    Text lists the items in its first line and reads back equal if names are text; agents and instances need a table,
    which reads back equal with ``items=rankings.items`` (and ``agent="agent"``, ``instance="instance"``,
    ``control=rankings.controls``).  Scores are not written.

    >>> import io
    >>> import placet
    >>> file = io.BytesIO()
    >>> write_ballots(placet.Rankings.from_orders([["tea", "milk"], [("milk", "tea")]], weight=[3, 1]), file)
    >>> print(file.getvalue().decode())
    # items: tea = milk
    3: tea > milk
    1: tea = milk
    """
    if format is not None or is_table(target, None):
        _write_long(rankings, target, format)
        return
    for what in ("agent", "instance", "control"):
        if getattr(rankings, what) is not None:
            raise DataError(f"ballots as text have no place for the {what}; write a table, such as .csv")
    write_lines(target, _lines(rankings))


def _lines(rankings: Rankings) -> Iterator[str]:
    quoted = {name: quoted_name(str(name)) for name in rankings.items}
    yield "# items: " + " = ".join(quoted.values())
    for weight, ballot in zip(rankings.weight.tolist(), rankings):
        yield f"{format_number(weight)}: " + " > ".join(" = ".join(quoted[name] for name in tier) for tier in ballot)


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
    if rankings.control is not None and rankings.controls is not None:
        columns |= {name: values.tolist() for name, values in zip(rankings.controls, rankings.control.T)}
    write_table(target, columns, format)
