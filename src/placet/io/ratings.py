"""Ratings: who rated what how high, from MovieLens files, CSV, JSON lines, Parquet or any data frame."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from placet.data import DataError, Rankings
from placet.data.arrays import encode
from placet.io.files import NamedBytes, Source, bare_suffix, decode, name_of, read_bytes
from placet.io.tables import Sample, Table, in_memory, read_table, write_table
from placet.io.text import OnError, parse_decimal

# Column names that need not be given.
KNOWN = {
    "user": ("user", "user_id", "userId", "userid", "agent", "rater", "worker"),
    "item": ("item", "item_id", "itemId", "movie", "movie_id", "movieId", "product", "film"),
    "rating": ("rating", "ratings", "score", "stars", "value"),
}
_MOVIELENS = ("user", "item", "rating", "timestamp")


def looks_like_ratings(sample: Sample) -> dict[str, Any] | None:
    """A table with a column of each kind in ``KNOWN``, or lines of MovieLens."""
    if sample.table is not None:
        return {} if all(set(names) & set(sample.table.names) for names in KNOWN.values()) else None
    fields = sample.first.split()
    tabs = len(fields) == 4 and "\t" in sample.first and all(parse_decimal(field) is not None for field in fields)
    return {} if tabs or sample.first.count("::") in (2, 3) else None


def read_ratings(
    source: Source | Any,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    items: Sequence[Hashable] | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Rankings:
    """One ballot per user from a table of ratings; equal ratings tie, and the ratings stay in ``score``.

    Text whose first line is numbers has no header: its columns are user, item, rating and perhaps a time stamp, with
    tabs, ``::`` or commas between them (MovieLens ``u.data``, ``ratings.dat``).  Otherwise the columns are those
    named, or the first of ``KNOWN`` that is there.  Names are text where the file is text.
    """
    table = _table(source, format, on_error)
    given = {"user": user, "item": item, "rating": rating}
    names = {what: _chosen(what, given[what], table) for what in given}
    way_out = "name the columns with user=, item=, rating="
    users, things = table.labels(names["user"], way_out), table.labels(names["item"], way_out)
    values = table.numbers(names["rating"], way_out)
    _note_repeats(table, users, things)
    rows = table.good_rows()
    if not rows:
        raise DataError(f"{table.name}: no ratings; a row has a user, an item and a number")
    columns = {name: [values_[row] for row in rows] for name, values_ in zip(given, (users, things, values))}
    return Rankings.from_scores(columns, ballot="user", item="item", score="rating", items=items)


def _table(source: Any, format: str | None, on_error: OnError) -> Table:
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
        text, first = text.replace("::", "\t"), first.replace("::", "\t")
    separator = "\t" if "\t" in first else ","
    fields = first.strip().split(separator)
    bare = len(fields) in (3, 4) and fields[2].strip()[:1].isdigit()
    header = _MOVIELENS[: len(fields)] if bare else None
    return read_table(NamedBytes(text.encode(), name), on_error, format, header=header, separator=separator)


def _chosen(what: str, given: str | None, table: Table) -> str:
    if given is not None:
        return given
    for name in KNOWN[what]:
        if name in table.names:
            return name
    raise DataError(f"{table.name}: no column for the {what} among {table.names}; name it with {what}=")


def _note_repeats(table: Table, users: list[Any], things: list[Any]) -> None:
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


def write_ratings(rankings: Rankings, target: Source, *, format: str | None = None) -> None:
    """Ballots with scores as rows ``user, item, rating``; without agents the ballots are numbered from 1.

    With the suffix ``.data`` the text has no header, as in MovieLens.  Read back with ``items=rankings.items`` the
    ballots are equal, where every agent has one ballot, weights are 1 and names are text.
    """
    if rankings.score is None:
        raise DataError("these ballots have no scores; only ballots made from ratings can be written as ratings")
    code = np.arange(len(rankings)) if rankings.agent is None else rankings.agent
    names: Sequence[Hashable] = range(1, len(rankings) + 1) if rankings.agents is None else rankings.agents
    columns = {
        "user": [names[k] for k in code[rankings.ballot].tolist()],
        "item": [rankings.items[k] for k in rankings.item.tolist()],
        "rating": rankings.score.tolist(),
    }
    bare = format is None and bare_suffix(target) == ".data"
    write_table(target, columns, "tsv" if bare else format, header=not bare)
