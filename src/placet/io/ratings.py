"""Ratings of items by users, from MovieLens files, delimited text, JSON, Parquet or any data frame."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from placet.data import DataError, Rankings
from placet.data.parameters import with_checked_options
from placet.io.files import NamedBytes, OpenedFile, Source, bare_suffix, first_lines, opened
from placet.io.tables.ballot_controls import RowControls, columns_of, find_controls
from placet.io.tables.cells import repeated_pairs
from placet.io.tables.column_names import find_roles, split_names
from placet.io.tables.row_sources import in_memory
from placet.io.tables.tables import FileHead, Table, read_table, write_table
from placet.io.text import TEXT, OnError, parse_decimal

# Column names that are recognized by default.
KNOWN = {
    "user": (
        *("user", "user_id", "userid", "agent", "rater", "rater_id", "worker", "worker_id", "reviewer", "reviewer_id"),
        *("reviewer_name", "customer", "customer_id", "respondent", "respondent_id", "annotator", "judge", "username"),
    ),
    "item": (
        *("item", "item_id", "itemid", "movie", "movie_id", "movieid", "product", "product_id", "film", "title"),
        *("book", "book_id", "isbn", "asin", "restaurant", "business", "business_id", "anime_id", "song", "track"),
    ),
    "rating": ("rating", "ratings", "score", "stars", "star_rating", "value", "overall", "review_score"),
}
_MOVIELENS = ("user", "item", "rating", "timestamp")


def looks_like_ratings(head: FileHead) -> dict[str, str] | str | None:
    """Match a table with a column of each kind in ``KNOWN``, or MovieLens text."""
    if head.table is not None:
        return find_roles(head.table, KNOWN, head.pick(*KNOWN))
    fields = head.first.split()
    tabs = len(fields) == 4 and "\t" in head.first and all(parse_decimal(field) is not None for field in fields)
    return TEXT if tabs or head.first.count("::") in (2, 3) else None


@with_checked_options
def read_ratings(
    source: Source | Any,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    control: str | Sequence[str] | None = None,
    items: Sequence[Hashable] | None = None,
    ignore: str | Sequence[str] = (),
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Rankings:
    """Read one ballot per user from a table of ratings; equal ratings tie, and the ratings are kept in ``score``.

    Text whose first line has a numeric rating has no header: its columns are user, item, rating and optionally a
    timestamp, separated by tabs, ``::`` or commas (MovieLens ``u.data``, ``ratings.dat``).  Otherwise the columns are
    given, or found by the names in ``KNOWN``; ``ignore`` names columns to ignore.  Names are text if the file is text.
    ``control``: numeric columns that may have helped a row, as in `read_ballots`.

    Returns
    -------
    Rankings
        One list per user, with the ratings as ``score``.

    >>> stars = {"user": ["u1", "u1", "u2"], "film": ["Alien", "Heat", "Heat"], "stars": [5, 4, 3]}
    >>> ratings = read_ratings(stars)
    >>> ratings.orders(), ratings.score
    ([['Alien', 'Heat'], ['Heat']], array([5., 4., 3.]))
    """
    table = _table(source, format, separator, sheet, on_error).without(split_names(ignore))
    given = {"user": user, "item": item, "rating": rating}
    names: dict[str, str] = table.layout or {what: given[what] or _find(what, table) for what in given}
    for name in names.values():
        table.require(name, "name the columns with user=, item=, rating=")
    wanted = find_controls(table.names, control, wide=False)
    used = list(dict.fromkeys([*names.values(), *columns_of(table.names, control, wide=False)]))
    rows = table.rows(*used)
    controls = RowControls(rows, wanted)
    users, things = rows.labels(names["user"]), rows.labels(names["item"])
    values = rows.numbers(names["rating"])
    rows.reject(
        repeated_pairs(users, things, np.flatnonzero(~rows.bad)),
        "twice",
        lambda row: f"user {users.values[users.code[row]]!r} rates {things.values[things.code[row]]!r} more than once",
        "keep one rating of each item",
    )
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{table.name}: no ratings; a row has a user, an item and a number")
    note = table.note("ratings", used)
    coded = users.take(good).codes_and_values, things.take(good).codes_and_values
    if not wanted:
        return Rankings.from_coded_scores(*coded, values[good], items, (note,))
    numbered = Rankings.from_coded_scores(*coded, values[good], items, (note,), {"row": good.astype(np.float64)})
    assert numbered.control is not None
    return controls.add_to(numbered, numbered.control[:, 0].astype(np.int64))


def _table(source: Any, format: str | None, separator: str | None, sheet: str | None, on_error: OnError) -> Table:
    """The source as a table; MovieLens text has no header, and may have ``::`` between its fields."""
    if isinstance(source, list) or in_memory(source) or format in ("json", "jsonl", "parquet", "sheet"):
        return read_table(source, on_error, format, separator=separator, sheet=sheet)
    with opened(source) as file:
        first = next(iter(first_lines(file.head, 1)), "")
        text: OpenedFile | NamedBytes = file
        if "::" in first:
            text = NamedBytes(file.read().replace(b"::", b"\t"), file.name)
            first, separator = first.replace("::", "\t"), "\t"
        between = separator or ("\t" if "\t" in first else ",")
        fields = first.strip().split(between)
        bare = len(fields) in (3, 4) and fields[2].strip()[:1].isdigit()
        header = _MOVIELENS[: len(fields)] if bare else None
        return read_table(text, on_error, format, header=header, separator=between if bare else separator, sheet=sheet)


def _find(what: str, table: Table) -> str:
    name = table.find(KNOWN[what])
    if name is None:
        raise DataError(f"{table.name}: no column for the {what} among {table.names}; name it with {what}=")
    return name


def write_ratings(rankings: Rankings, target: Source, *, format: str | None = None) -> None:
    """Write ballots with scores as rows ``user, item, rating``; without agents, the ballots are numbered from 1.

    With the suffix ``.data`` the text has no header, as in MovieLens.  Read back with ``items=rankings.items``, the
    ballots are equal if every agent has one ballot, weights are 1 and names are text.

    >>> import io
    >>> import placet
    >>> ratings = placet.read_ratings({"user": ["u", "u"], "item": ["tea", "milk"], "rating": [5, 3]})
    >>> file = io.BytesIO()
    >>> write_ratings(ratings, file, format="csv")
    >>> print(file.getvalue().decode())
    user,item,rating
    u,tea,5.0
    u,milk,3.0
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
