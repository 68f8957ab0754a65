"""The readers of tables as they were first written: a Python object for every cell, judged row by row.

Slow and obvious: the oracle of the readers that judge distinct cells and count equal rows.
"""

import csv
import io
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import encode, first_repeat, offsets_from_sizes
from placet.io.battles import WORDS
from placet.io.files import NamedBytes, bare_suffix, decode, name_of, read_bytes
from placet.io.text import Problems, parse_decimal, quote

_FORMAT_OF = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_MEANING = {word: outcome for outcome, words in WORDS.items() for word in words}
_MOVIELENS = ("user", "item", "rating", "timestamp")
KNOWN = {"user": ("user", "userId"), "item": ("item", "movieId"), "rating": ("rating", "stars")}
COUNTS = ("weight", "count")
_PLACE = re.compile("(?:rank|place|choice|preference|pref)?[ _.-]*([0-9]{1,6})(?:st|nd|rd|th)?", re.IGNORECASE)
_WIDE = "say layout="


@dataclass
class Table:
    """Columns by name.  ``line(row)`` is where a row stands: its line in a text, or its number in a frame."""

    name: Any
    names: Any
    n_rows: Any
    cells: Any
    line: Any
    problems: Any
    bad_rows: Any = field(default_factory=set)

    def column(self, name, way_out):
        """One column, text stripped of blanks around it, missing values ``None``."""
        if name not in self.names:
            raise DataError(f"{self.name}: column {name!r} is not there; the columns are {self.names}; {way_out}")
        return [_cell(value) for value in self.cells(name)]

    def reject(self, row, kind, text, way_out):
        """Note that a row cannot be used, once."""
        if row not in self.bad_rows:
            self.bad_rows.add(row)
            self.problems.add(self.line(row), kind, text, way_out)

    def numbers(self, name, way_out, *, positive=False):
        """One column as finite numbers; rows with anything else are noted, and hold 0 here."""
        result = []
        kind = "a finite number that is not negative" if positive else "a finite number"
        for row, value in enumerate(self.column(name, way_out)):
            number = as_number(value)
            if number is None or (positive and number < 0):
                self.reject(row, name, f"{name} {_quote_cell(value)} is not {kind}", f"write {name} as a plain decimal")
                number = 0.0
            result.append(number)
        return result

    def labels(self, name, way_out):
        """One column as names; rows without one are noted."""
        values = self.column(name, way_out)
        for row, value in enumerate(values):
            if value is None:
                self.reject(row, name, f"{name} is missing", "fill it in")
        return values

    def good_rows(self):
        """The rows that can be used, after reporting the others."""
        self.problems.close()
        return [row for row in range(self.n_rows) if row not in self.bad_rows]


def in_memory(source):
    """Whether ``source`` is a table already: a mapping of columns, a data frame, a ``Table``; no path or open file."""
    return not (isinstance(source, str | os.PathLike) or hasattr(type(source), "read"))


def _cell(value):
    if isinstance(value, str):
        return value.strip() or None
    if value is None or value != value or type(value).__name__ in ("NaTType", "NAType"):
        return None
    return value


def _quote_cell(value):
    return "(missing)" if value is None else quote(value)


def as_number(value):
    """A cell as a finite number, else ``None``; true and false are not numbers."""
    if isinstance(value, str):
        return parse_decimal(value)
    if value is None or isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return None
    try:
        return parse_decimal(repr(float(value)))
    except (TypeError, ValueError, OverflowError):
        return None


def read_table(source, on_error, format=None, *, header=None, separator=None):
    """A path, open file, mapping of columns or data frame as a table.

    ``format`` is one of FORMATS (default: by the suffix, else CSV).  ``header`` names the columns of text that has no
    header.
    """
    if isinstance(source, Table):
        return source
    if in_memory(source):
        return _from_frame(source, Problems("<frame>", on_error, "row"))
    if format is not None:
        assert format in ("csv", "tsv", "jsonl", "parquet")
    problems = Problems(name_of(source), on_error)
    data = read_bytes(source)
    kind = format or ("parquet" if data[:4] == b"PAR1" else _FORMAT_OF.get(bare_suffix(source), "csv"))
    if kind == "parquet":
        problems.unit = "row"
        return _from_parquet(data, problems)
    text = decode(problems.name, data)
    if not text.strip():
        raise DataError(f"{problems.name}: the file is empty; nothing can be read from it")
    if kind == "jsonl":
        return _from_jsonl(text, problems)
    return _from_csv(text, separator or ("\t" if kind == "tsv" else ","), header, problems)


def _from_frame(frame, problems):
    if isinstance(frame, Mapping):
        columns = {str(name): list(values) for name, values in frame.items()}
        sizes = {len(values) for values in columns.values()}
        if len(sizes) > 1:
            raise DataError(f"columns differ in length: { {name: len(values) for name, values in columns.items()} }")
        return Table(
            "<frame>", list(columns), sizes.pop() if sizes else 0, columns.__getitem__, lambda row: row, problems
        )
    import narwhals as nw

    try:
        table = nw.from_native(frame)
    except TypeError:
        raise TypeError(f"expected a path, an open file or a data frame, not {type(frame).__name__}") from None
    eager = table.collect() if isinstance(table, nw.LazyFrame) else table
    return Table(
        "<frame>", list(eager.columns), len(eager), lambda name: eager[name].to_list(), lambda row: row, problems
    )


def _from_parquet(data, problems):
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"{problems.name}: not a whole Parquet file ({reason}); fetch or write it again") from None
    return Table(
        problems.name, frame.columns, frame.height, lambda name: frame[name].to_list(), lambda row: row + 1, problems
    )


def _from_jsonl(text, problems):
    rows = []
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            problems.add(number, "json", f"not JSON ({str(error)[:80]})", "write one object per line")
            continue
        if isinstance(value, dict):
            rows.append(value)
            lines.append(number)
        else:
            problems.add(number, "object", f"{quote(line.strip())} is not an object", "write one object per line")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table(
        problems.name,
        names,
        len(rows),
        lambda name: [_plain(row.get(name)) for row in rows],
        lines.__getitem__,
        problems,
    )


def _plain(value):
    """Lists and objects inside a JSON row are no names; shown as text where they must be shown."""
    return json.dumps(value) if isinstance(value, dict | list) else value


def _refuse_constant(word):
    raise ValueError(f"{word} is not a number")


def _from_csv(text, separator, header, problems):
    """By Polars; where it finds the text malformed, record by record, so that the lines can be named."""
    import polars as pl

    names = list(header) if header else _first_record(text, separator, problems.name)
    if len(set(names)) != len(names):
        raise DataError(f"{problems.name}:1: two columns are named {first_repeat(names)!r}; rename one")
    try:
        frame = pl.read_csv(
            text.encode(), has_header=header is None, separator=separator, infer_schema=False, glob=False
        )
        if len(frame.columns) != len(names):
            raise pl.exceptions.ShapeError("the columns differ")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return _record_by_record(text, separator, names, header is None, problems)
    frame = frame.rename(dict(zip(frame.columns, names)))
    filled = frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
    place = range(frame.height)
    if not filled.all():
        place = [row for row, has_cells in enumerate(filled.to_list()) if has_cells]
        frame = frame.filter(filled)
    starts = []

    def line(row):
        if not starts:
            starts.extend((start for start, _ in _records(text, separator, problems.name)))
        at = place[row] + (header is None)
        return starts[at] if at < len(starts) else at + 1

    return Table(problems.name, names, frame.height, lambda name: frame[name].to_list(), line, problems)


def _records(text, separator, name):
    """(first line, fields) of every record from the first that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    before, begun = (0, False)
    try:
        for record in reader:
            begun = begun or bool(record)
            if begun:
                yield (before + 1, record)
            before = reader.line_num
    except csv.Error as error:
        raise DataError(f"{name}:{reader.line_num}: not CSV ({error}); close the quotes or remove the line") from None


def _first_record(text, separator, name):
    _, record = next(_records(text, separator, name), (0, []))
    return [field.strip() for field in record]


def _record_by_record(text, separator, names, has_header, problems):
    rows = []
    lines = []
    for k, (line, record) in enumerate(_records(text, separator, problems.name)):
        if (k == 0 and has_header) or not any(field.strip() for field in record):
            continue
        if len(record) != len(names):
            said = f"{len(record)} fields where the header has {len(names)}"
            problems.add(line, "fields", said, "give every line as many fields, with quotes around separators in them")
            continue
        rows.append(record)
        lines.append(line)
    index = {name: k for k, name in enumerate(names)}
    return Table(
        problems.name, names, len(rows), lambda name: [row[index[name]] for row in rows], lines.__getitem__, problems
    )


def read_battles(
    source,
    *,
    a="model_a",
    b="model_b",
    winner="winner",
    scores=None,
    agent=None,
    weight=None,
    outcomes=None,
    items=None,
    ordered=False,
    format=None,
    on_error="raise",
):
    """Comparisons from a table with a row per battle: a path, an open file, or a frame.

    ``a``, ``b`` and ``winner`` name columns.  The winner's column holds a word of ``WORDS`` (in any case), a word that
    ``outcomes`` explains as "a", "b" or "tie", or else the name of the item that won.  With ``scores=(of_a, of_b)``
    two columns of numbers say who won: the higher, and equal numbers tie.  ``agent`` and ``weight`` name optional
    columns.  ``ordered`` keeps who was ``a``.  Names are text where the file is text.
    """
    table = read_table(source, on_error, format)
    way_out = "name the columns with a=, b=, winner= (or scores=)"
    first, second = (table.labels(a, way_out), table.labels(b, way_out))
    for row, (x, y) in enumerate(zip(first, second)):
        if x is not None and x == y:
            table.reject(row, "self", f"{x!r} meets itself", "a battle has two different items")
    if scores is not None:
        won = _by_scores(table, scores)
    else:
        won = _by_words(table, table.column(winner, way_out), first, second, winner, outcomes or {})
    agents = None if agent is None else table.labels(agent, "name the column with agent=")
    weights = None if weight is None else table.numbers(weight, "name the column with weight=", positive=True)
    rows = table.good_rows()
    if not rows:
        raise DataError(f"{table.name}: no votes in it; a row has two items and who won")
    sides = [[values[row] for row in rows] for values in (first, second, won)]
    extra = {
        name: None if values is None else [values[row] for row in rows]
        for name, values in (("weight", weights), ("agent", agents))
    }
    return Comparisons.from_battles(*sides, **extra, items=items, ordered=ordered)


def _by_words(table, said, first, second, winner, outcomes):
    for word, meaning in outcomes.items():
        if meaning not in WORDS:
            raise ValueError(f"outcomes explains {word!r} as {meaning!r}; choose from {list(WORDS)}")
    known = _MEANING | {str(word).strip().lower(): outcome for word, outcome in outcomes.items()}
    won = []
    for row, value in enumerate(said):
        outcome = None
        if value is not None and (not isinstance(value, bool)):
            outcome = known.get(str(value).lower())
        if outcome is None and value is not None and (value in (first[row], second[row])):
            outcome = "a" if value == first[row] else "b"
        if outcome is None:
            text = "is missing" if value is None else f"{str(value)[:60]!r} is not a, b or tie"
            table.reject(
                row, "winner", f"{winner} {text}", 'say what it means with outcomes={"word": "a" | "b" | "tie"}'
            )
        won.append(outcome or "tie")
    return won


def _by_scores(table, scores):
    x, y = (np.array(table.numbers(name, "name the columns with scores=")) for name in scores)
    names = ["b", "tie", "a"]
    return [names[int(sign) + 1] for sign in np.sign(x - y)]


def read_ratings(source, *, user=None, item=None, rating=None, items=None, format=None, on_error="raise"):
    """One ballot per user from a table of ratings; equal ratings tie, and the ratings stay in ``score``.

    Text whose first line is numbers has no header: its columns are user, item, rating and perhaps a time stamp, with
    tabs, ``::`` or commas between them (MovieLens ``u.data``, ``ratings.dat``).  Otherwise the columns are those
    named, or the first of ``KNOWN`` that is there.  Names are text where the file is text.
    """
    table = _table(source, format, on_error)
    given = {"user": user, "item": item, "rating": rating}
    names = {what: _chosen(what, given[what], table) for what in given}
    way_out = "name the columns with user=, item=, rating="
    users, things = (table.labels(names["user"], way_out), table.labels(names["item"], way_out))
    values = table.numbers(names["rating"], way_out)
    _note_repeats(table, users, things)
    rows = table.good_rows()
    if not rows:
        raise DataError(f"{table.name}: no ratings; a row has a user, an item and a number")
    columns = {name: [values_[row] for row in rows] for name, values_ in zip(given, (users, things, values))}
    return Rankings.from_scores(columns, ballot="user", item="item", score="rating", items=items)


def _table(source, format, on_error):
    if in_memory(source) or format in ("jsonl", "parquet"):
        return read_table(source, on_error, format)
    if bare_suffix(source) in (".jsonl", ".ndjson", ".parquet", ".pq"):
        return read_table(source, on_error, format)
    name = name_of(source)
    data = read_bytes(source)
    if data[:4] == b"PAR1":
        return read_table(NamedBytes(data, name), on_error, "parquet")
    text = decode(name, data)
    first = next((line for line in text.split("\n") if line.strip()), "")
    if "::" in first:
        text, first = (text.replace("::", "\t"), first.replace("::", "\t"))
    separator = "\t" if "\t" in first else ","
    fields = first.strip().split(separator)
    bare = len(fields) in (3, 4) and fields[2].strip()[:1].isdigit()
    header = _MOVIELENS[: len(fields)] if bare else None
    return read_table(NamedBytes(text.encode(), name), on_error, format, header=header, separator=separator)


def _chosen(what, given, table):
    if given is not None:
        return given
    for name in KNOWN[what]:
        if name in table.names:
            return name
    raise DataError(f"{table.name}: no column for the {what} among {table.names}; name it with {what}=")


def _note_repeats(table, users, things):
    rows = [row for row in range(table.n_rows) if row not in table.bad_rows]
    if not rows:
        return
    user, _ = encode([users[row] for row in rows], "user")
    item, names = encode([things[row] for row in rows], "item")
    _, first = np.unique(user * len(names) + item, return_index=True)
    for k in np.setdiff1d(np.arange(len(rows)), first).tolist():
        row = rows[k]
        said = f"user {users[row]!r} rates {things[row]!r} more than once"
        table.reject(row, "twice", said, "keep one rating of each item")


def read_ballots(
    source,
    *,
    layout=None,
    ballot="ballot",
    item="item",
    rank="rank",
    weight=None,
    agent=None,
    instance=None,
    items=None,
    unlisted="absent",
    separator=None,
    format=None,
    on_error="raise",
):
    """Ballots of a table."""
    table = read_table(source, on_error, format, separator=separator)
    special = {"weight": weight or next((name for name in COUNTS if name in table.names), None)}
    special |= {"agent": agent, "instance": instance}
    layout = layout or _layout(table, (ballot, item, rank), {name for name in special.values() if name})
    if layout == "long":
        result = _from_long(table, (ballot, item, rank), special, items)
    else:
        result = _from_wide(table, layout, ballot, special, items)
    return result.completed() if unlisted == "last" else result


def _layout(table, keys, special):
    if all(key in table.names for key in keys):
        return "long"
    rest = [name for name in table.names if name not in special and name != keys[0]]
    numbered = all(_PLACE.fullmatch(name) for name in rest)
    cells = [cell for name in rest for cell in table.column(name, "") if cell is not None]
    numeric = all(as_number(cell) is not None for cell in cells)
    if numbered == numeric:
        raise DataError(f"{table.name}: the columns {table.names} may be read in two ways, or in none; {_WIDE}")
    return "places" if numbered else "ranks"


def _special(table, special):
    way_out = "name the columns with weight=, agent=, instance="
    found = {"weight": None}
    if special["weight"]:
        found["weight"] = table.numbers(special["weight"], way_out, positive=True)
    for what in ("agent", "instance"):
        name = special[what]
        found[what] = table.labels(name, way_out) if name else None
    return found


def _from_long(table, keys, special, items):
    way_out = "name the columns with ballot=, item=, rank="
    who, what = (table.labels(keys[0], way_out), table.labels(keys[1], way_out))
    ranks = table.numbers(keys[2], way_out)
    per_row = _special(table, special)
    seen = set()
    first = {}
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
    return Rankings.from_codes(code[order], tier[order], offsets_from_sizes(np.bincount(ballot)), names, **chosen)


def _from_wide(table, layout, key, special, items):
    """A row per ballot: either a column per item with ranks, or a column per place with items."""
    known = {name for name in special.values() if name}
    rest = [name for name in table.names if name not in known and name != key]
    per_row = _special(table, special)
    places = _places(table, rest) if layout == "places" else []
    columns = [table.column(name, "") for name in rest]
    orders = []
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
    return Rankings.from_orders([orders[row] for row in rows], items=items, **chosen)


def _places(table, names):
    places = []
    for name in names:
        match = _PLACE.fullmatch(name)
        if match is None:
            raise DataError(f"{table.name}: column {name!r} is not the number of a place; {_WIDE}")
        places.append(int(match.group(1)))
    return places


def _row_of_ranks(names, cells):
    tiers = {}
    for name, cell in zip(names, cells):
        if cell is not None:
            number = as_number(cell)
            if number is None:
                return f"rank {quote(cell)} of {quote(name)} is not a finite number"
            tiers.setdefault(number, []).append(name)
    return [tuple(tiers[rank]) for rank in sorted(tiers)]


def _row_of_places(places, cells):
    tiers = {}
    seen = set()
    for place, cell in zip(places, cells):
        if cell is not None:
            if cell in seen:
                return f"item {quote(cell)} occurs more than once on one ballot"
            seen.add(cell)
            tiers.setdefault(place, []).append(cell)
    return [tuple(tiers[place]) for place in sorted(tiers)]
