"""Reading of files in the studio: a preview, the role of each column, a summary of the data, and invalid lines."""

import inspect
import os
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from placet.data import Comparisons, Queries, Rankings, Scores
from placet.io import FORMATS, read_files, read_slices
from placet.io.compression import COMPRESSED
from placet.io.files import HEAD, NamedBytes, Source, bare_suffix, first_lines, opened
from placet.io.formats import roles_in_table
from placet.io.tables.ballot_tables import LAYOUTS
from placet.io.tables.column_names import roles_by_column
from placet.io.tables.sheets import is_workbook
from placet.io.tables.tables import SUFFIXES, FileHead, Table, open_head, read_table
from placet.report.data_words import DATA
from placet.studio.file_lists import files_of, paths_of, source_of, stamp_of

PREVIEWED = 20
MOST_KEPT = 2
ROLES: dict[str, tuple[str, ...]] = {
    "battles": ("a", "b", "winner", "loser", "scores", "agent", "weight", "control", "time", "source"),
    "ratings": ("user", "item", "rating"),
    "features": ("qid", "label", "weight", "features", "ignore"),
    "scores": ("item", "task", "score", "question", "tasks", "ignore"),
    "preferences": ("ballot", "better", "worse"),
    "ballots": ("ballot", "item", "rank", "weight", "agent", "instance", "source", "ignore"),
}
"""Format -> possible roles of a table's columns: names of the reader's options; and "source", which splits rows."""

SEVERAL = ("scores", "features", "ignore", "winner", "control", "tasks")
"""Roles that several columns may have."""

WORDS = {
    "a": "first side",
    "b": "second side",
    "winner": "who won",
    "loser": "who lost",
    "scores": "score of a side",
    "agent": "voter",
    "weight": "count",
    "user": "user",
    "item": "item",
    "rating": "rating",
    "qid": "query",
    "label": "grade",
    "features": "feature",
    "ignore": "not used",
    "ballot": "ballot",
    "rank": "rank",
    "instance": "contest",
    "control": "control",
    "time": "time",
    "task": "task",
    "tasks": "scores of a task",
    "score": "score",
    "question": "question",
    "better": "what is preferred",
    "worse": "to what",
    "source": "source",
}
READINGS = 3
"""How often a file that changes while it is read is read again."""


class Loaded(NamedTuple):
    """Data as they were read, the reader's warnings, and the stamp of the files they were read from."""

    data: Any
    notes: list[str]
    stamp: str


_DATA: "OrderedDict[tuple[Any, ...], Loaded]" = OrderedDict()
_FIRST_STAMPS: dict[str, str] = {}


def warm_up(progress: Any, *, items: int) -> dict[str, Any]:
    """Load and compile what a first board of about this many items needs."""
    from placet.aggregate import consensus

    i, j = np.triu_indices(items, 1)
    wins = np.ones(len(i))
    votes = Comparisons(i, j, 2 * wins, wins, wins)
    return {"items": len(consensus(votes, "bradley-terry").to_frame())}


def read_ahead(progress: Any, *, path: str, reading: dict[str, Any]) -> dict[str, Any]:
    """Read a file before its board is requested; errors are reported when the file is opened."""
    try:
        load(path, reading)
    except (ValueError, OSError) as error:
        return {"error": str(error)}
    return {}


def load(path: str, reading: Mapping[str, Any], by: str = "") -> Loaded:
    """The data of a file read with the given options; the last few are cached until the file changes.

    With ``by`` the data are a mapping from the values of that column to their slices.  A file that changes while it is
    read is read again; one that never rests is taken as it was, under a stamp that is then no longer its own.
    """
    for left in reversed(range(READINGS)):
        stamp = stamp_of(path)
        key = (path, stamp, repr(sorted(reading.items())), by)
        if key in _DATA:
            break
        try:
            found = _read(path, reading, by, stamp)
        except (ValueError, OSError):
            if not left or stamp_of(path) == stamp:
                raise
            continue
        if not left or stamp_of(path) == stamp:
            _DATA[key] = found
            break
    while len(_DATA) > MOST_KEPT:
        _DATA.popitem(last=False)
    _DATA.move_to_end(key)
    return _DATA[key]


def _read(path: str, reading: Mapping[str, Any], by: str, stamp: str) -> Loaded:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read_slices(source_of(path), by, **reading) if by else read_files(paths_of(path), **reading)
    return Loaded(data, [str(warning.message) for warning in caught] + _torn(path, stamp), stamp)


def _torn(path: str, stamp: str) -> list[str]:
    """A note if a file that grows ends in the middle of a line, which may be cut short."""
    if _FIRST_STAMPS.setdefault(path, stamp) == stamp:
        return []
    return [
        f"{name} is being written, and its last line has no end yet; that line may be incomplete"
        for where, name in files_of(path)
        if os.path.splitext(where)[1] not in (".parquet", ".pq", *COMPRESSED) and _last_byte(where) not in (b"", b"\n")
    ]


def _last_byte(where: str) -> bytes:
    with open(where, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 1))
        return file.read(1)


def understand(progress: Any, *, path: str, name: str, reading: dict[str, Any]) -> dict[str, Any]:
    """A preview of a file and a summary of its data; problems are part of the answer, not an error."""
    about: dict[str, Any] = {"name": name, "reading": reading, "formats": list(FORMATS), "error": "", "wrong": []}
    about["files"] = [own for _, own in files_of(path)] if len(files_of(path)) > 1 else [name]
    try:
        about |= _preview(path, reading)
    except (ValueError, OSError) as error:
        about |= {"error": _with_file_names(str(error), path, name), "columns": [], "lines": _lines(paths_of(path)[0])}
    try:
        data, left_out, stamp = load(path, reading)
    except (ValueError, OSError) as error:
        about |= {
            "error": _with_file_names(str(error), path, name),
            "wrong": _wrong_lines(error, path, name),
            "can_skip": _can_skip(error),
        }
        return about
    kind = kind_of(data)
    told = {**data.describe(), "kind": kind}
    facts = [(DATA.get(key, key), _fact(value)) for key, value in told.items() if value is not None]
    notes = [_with_file_names(note, path, name) for note in (*getattr(data, "notes", ()), *left_out)]
    about |= {"kind": kind, "shape": shape_of(data), "facts": facts, "notes": notes, "uses": uses_of(data)}
    about["stamp"] = stamp
    if isinstance(data, Rankings | Comparisons):
        about["groups"] = _groups(data)
    return about


def _fact(value: Any) -> Any:
    """A fact as a page shows it: a mapping, such as the counts of grades, in words."""
    if not isinstance(value, Mapping):
        return value
    names = (f"{name:g}" if isinstance(name, float) else str(name) for name in value)
    return ", ".join(f"{name}: {count:,}" for name, count in zip(names, value.values()))


def column_names(path: str) -> list[str]:
    """The columns of a table; empty if the file is not a table."""
    with open_head(paths_of(path), "skip") as head:
        return head.open_table().names if head.is_table else []


def kind_of(data: Any) -> str:
    """The kind of data as a plain word."""
    words = {Comparisons: "votes", Rankings: "ballots", Queries: "graded rows", Scores: "scores"}
    return words.get(type(data), type(data).__name__)


def shape_of(data: Any) -> str:
    """The size of the data: the part of their ``repr`` in parentheses."""
    return repr(data).partition("(")[2].removesuffix(")")


def uses_of(data: Any) -> list[str]:
    """What the studio can do with data."""
    if isinstance(data, Rankings | Comparisons | Scores):
        return ["board", "methods"]
    return ["rankers"] if isinstance(data, Queries) else []


def _preview(path: str, reading: Mapping[str, Any]) -> dict[str, Any]:
    """The first rows, the format, and the role of each column."""
    named = reading.get("format")
    options = {key: value for key, value in reading.items() if key not in ("format", "on_error")}
    with open_head(paths_of(path), "skip", options) as head:
        if not head.is_table and (named not in ROLES or head.suffix in FORMATS["preflib"].suffixes):
            return {"columns": [], "lines": _lines(head.sources[0]), "format": named or "", "layouts": []}
        table = head.open_table()
        cells = _first_rows(head, table)
        format, roles = column_roles(head, named)
    columns = [{"name": name, "role": roles.get(name, ""), "cells": cells.get(name, [])} for name in table.names]
    menus = {name: [(role, WORDS[role]) for role in own] for name, own in ROLES.items()}
    return {"columns": columns, "lines": [], "format": format, "menus": menus, "layouts": list(LAYOUTS)}


def column_roles(head: FileHead, format: str | None) -> tuple[str, dict[str, str]]:
    """The format of a table, and the role of each column: those that its reader would use, and those assigned."""
    for name in [format] if format else ROLES:
        if name not in ROLES or not set(head.options) <= set(inspect.signature(FORMATS[name].read).parameters):
            continue
        try:
            roles = roles_in_table(replace(head, named=bool(format)), name)
        except ValueError:  # the reader says what is wrong
            continue
        if roles:
            return name, _assigned_roles(name, head.options) | roles
    return format or "", _assigned_roles(format or "", head.options)


def _assigned_roles(format: str, options: Mapping[str, Any]) -> dict[str, str]:
    """The roles assigned to columns so far, which may not yet suffice to read the table."""
    return roles_by_column({role: options.get(role) for role in ROLES.get(format, ())})


def _first_rows(head: FileHead, table: Table) -> dict[str, list[str]]:
    """The first cells of each column as text; only the beginning of a text file is read."""
    cut = head.head.rfind(b"\n")
    if head.suffix in (".csv", ".tsv", ".tab") and cut > 0:
        start = head.head if len(head.head) < HEAD else head.head[:cut]
        whole = start if start.count(b'"') % 2 == 0 else start[: start.rfind(b'"')].rsplit(b"\n", 1)[0]
        first = NamedBytes(whole + b"\n", head.name)
        table = read_table(first, "skip", separator=head.options.get("separator"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = table.rows()
    found = {}
    for name in table.names:
        column = rows.column(name)
        found[name] = [_cell(column.values[code]) for code in column.code[:PREVIEWED].tolist()]
    return found


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 200 else text[:200] + "..."


def _lines(path: Source) -> list[str]:
    with opened(path) as file:
        if bare_suffix(file) in (".parquet", ".pq") or is_workbook(file):
            return []
        return [line[:300] for line in first_lines(file.head, PREVIEWED)]


def _with_file_names(words: str, path: str, name: str) -> str:
    """A message with the original file names in place of the studio's paths."""
    files = files_of(path)
    for where, own in files:
        words = words.replace(where, own if len(files) > 1 else name)
    return words


def _wrong_lines(error: Exception, path: str, name: str) -> list[dict[str, Any]]:
    return [
        {"file": _with_file_names(source, path, name), "line": line, "text": text, "way_out": way}
        for source, line, text, way in getattr(error, "lines", ())
    ]


def _can_skip(error: Exception) -> bool:
    return "on_error" in str(error)


def _groups(data: "Rankings | Comparisons") -> list[list[str]]:
    """Groups of items that no vote or ballot connects, largest first; empty if all items are connected."""
    from placet.data.graph import components_of_pairs

    pairs = data if isinstance(data, Comparisons) else None
    if pairs is None:
        assert isinstance(data, Rankings)
        first = data.item[data.offsets[:-1][data.ballot]] if len(data.item) else data.item
        i, j = first, data.item
    else:
        i, j = pairs.i, pairs.j
    label = components_of_pairs(np.concatenate([i, j]), np.concatenate([j, i]), data.n_items)
    sizes = np.bincount(label)
    if len(sizes) < 2:
        return []
    order = np.argsort(-sizes, kind="stable")[:20]
    return [[str(data.items[k]) for k in np.flatnonzero(label == one)[:50]] for one in order]


__all__ = ["SUFFIXES", "column_roles", "kind_of", "load", "understand", "uses_of", "warm_up"]
