"""Reading of files in parts: the pieces they are split into, and a first pass over them."""

import inspect
import os
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from placet.data import Comparisons, DataError, Parts, Queries, Rankings
from placet.data.arrays import distinct
from placet.data.engines.serial import Engine, add, engine_of
from placet.data.parts import Log, PieceSummary, first_span
from placet.io.features import QIDS
from placet.io.formats import FORMATS, choose_format, expand, formats_with
from placet.io.ratings import KNOWN
from placet.io.scanning.file_pieces import FilePiece, Survey
from placet.io.scanning.split_files import spans_of
from placet.io.sparse.letor import QueriesBy, sizes_beside
from placet.io.tables.ballot_tables import find_columns
from placet.io.tables.column_names import find_column, split_names
from placet.io.tables.row_sources import Delimited, Lazy
from placet.io.tables.tables import Table, open_head
from placet.io.text import Problems

PART_BYTES = 1 << 26
"""Approximate bytes of a file per part."""

_KINDS = (Rankings, Comparisons, Queries)


def scan(
    source: Any,
    format: str | None = None,
    *,
    items: Sequence[Hashable] | None = None,
    part_bytes: int = PART_BYTES,
    engine: Any = None,
    **options: Any,
) -> Parts:
    """Open files as `Parts`, which are read when needed and may together be larger than memory.

    ``source`` is a path, a pattern (``votes/*.parquet``), a folder or a list of these; ``format`` and ``options`` are
    those of `placet.read`, inferred from the first part if not given.  Files are split into parts of about
    ``part_bytes``: Parquet between rows, delimited tables and LETOR text between lines, and always between ballots or
    queries; compressed and other files are one part each.  A ballot or query with rows in two files is a ``DataError``
    that names it; a file in which its rows are not adjacent becomes one part.  A first pass (done by ``engine``)
    collects the names of all items.  A file that changes afterwards is a ``DataError`` that names it.

    Returns
    -------
    Parts
        What `placet.consensus` and rankers take in place of the data.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for k in range(2):
    ...     _ = (folder / f"{k}.csv").write_text("model_a,model_b,winner\\nx,y,model_a\\ny,z,tie\\n")
    >>> scan(folder / "*.csv")
    Parts(2 parts, 4 pairs, 3 items, 4 rows)
    """
    if part_bytes < 1:
        raise ValueError(f"part_bytes must be at least 1, not {part_bytes}")
    files = expand(source)
    for one in files:
        if not isinstance(one, str | os.PathLike):
            raise TypeError(f"only files can be read in parts, not {type(one).__name__}; Parts.of takes data in memory")
    worker, log = engine_of(engine), Log()
    unlisted = options.pop("unlisted", "absent")
    paths = [os.fspath(one) for one in files]
    pieces = _first_pieces(paths, format, options, items, part_bytes, unlisted == "last")
    found = _survey(worker, pieces, log)
    while (span := first_span(found)) is not None and pieces[span[0]].path == pieces[span[1]].path:
        # the rows of a list are not adjacent in this file, so it is read as one part
        path = pieces[span[0]].path
        at = next(k for k, piece in enumerate(pieces) if piece.path == path)
        whole = replace(pieces[at], span=None)
        found = [*(one for one, piece in zip(found, pieces) if piece.path != path)]
        pieces = [piece for piece in pieces if piece.path != path]
        found.insert(at, _survey(worker, [whole], log)[0])
        pieces.insert(at, whole)
    if found[0].kind is Queries:
        pieces, found = _same_features(worker, pieces, found, log)
    return Parts.from_summaries(pieces, found, worker, log, items or ())


def _survey(engine: Engine, pieces: Sequence[FilePiece], log: Log) -> list[PieceSummary]:
    surveys = [Survey(piece) for piece in pieces]
    found, read = engine.sum(_itself, surveys, (), name="vocabulary", merge=add)
    log.note("vocabulary", read, None, None)
    return list(found)


def _itself(value: Any) -> Any:
    return value


def _same_features(
    engine: Engine, pieces: list[FilePiece], found: list[PieceSummary], log: Log
) -> tuple[list[FilePiece], list[PieceSummary]]:
    """Give all parts the same features: the union of their names, or for LETOR text the largest number."""
    if len({(one.n_features, one.features) for one in found}) == 1:
        return pieces, found
    if pieces[0].format == "letor":
        more: dict[str, Any] = {"n_features": max(one.n_features for one in found)}
    elif all(one.features is not None for one in found) and "features" not in pieces[0].options:
        more = {"features": list(distinct(one.features or () for one in found))}
    else:
        return pieces, found
    again = [replace(piece, options={**piece.options, **more}) for piece in pieces]
    return again, _survey(engine, again, log)


def _first_pieces(
    paths: list[str],
    format: str | None,
    options: dict[str, Any],
    items: Sequence[Hashable] | None,
    part_bytes: int,
    completes: bool,
) -> list[FilePiece]:
    """Split all files into pieces; the format is given or inferred from the first file."""
    with open_head([paths[0]], options.get("on_error", "raise"), options) as head:
        name, layout = choose_format(head, formats_with(options, format), partial(_first_rows, part_bytes=part_bytes))
    if FORMATS[name].kind not in _KINDS and name != "letor-agg":
        raise DataError(f"{paths[0]}: {name} cannot be read in parts; votes, ballots, ratings and queries can")
    if options.get("weights") == "design":
        raise DataError(f"{paths[0]}: design weights are relative to all rows, so they are not read in parts")
    known = dict(options)
    if items is not None and "items" in inspect.signature(FORMATS[name].read).parameters:
        known["items"] = tuple(items)
    pieces = []
    for path in paths:
        now = os.stat(path)
        sizes = {"group": sizes_beside(path)} if isinstance(layout, QueriesBy) and layout.group else {}
        piece = FilePiece(path, now.st_size, now.st_mtime_ns, None, name, known | sizes, completes=completes)
        if piece.is_table:
            piece = replace(piece, key_column=_key_column(piece))
        pieces += [replace(piece, span=span) for span in spans_of(piece, part_bytes)] or [piece]
    return pieces


def _first_rows(table: Table, part_bytes: int) -> Table:
    """The first rows of a long table, so that few cells are read to guess the format."""
    part, problems = table.parts[0], Problems(table.name, table.problems.on_error)
    if isinstance(part, Lazy):
        return Table([replace(part, query=part.query.head(10_000))], problems)
    if isinstance(part, Delimited) and isinstance(part.source, str) and os.path.getsize(part.source) > part_bytes:
        return Table([replace(part, source=_first_lines(part.source), problems=problems)], problems)
    return table


def _key_column(piece: FilePiece) -> str | None:
    """The column that names the ballot or query of a row; None if rows are independent."""
    table, options = piece.table(), piece.options
    if piece.format == "ratings":
        return options.get("user") or find_column(table.names, KNOWN["user"])
    if piece.format == "features":
        return options.get("qid") or find_column(table.names, QIDS)
    if piece.format == "ballots":
        keys = options.get("ballot"), options.get("item"), options.get("rank")
        special = {name: options.get(name) for name in ("weight", "agent", "instance")}
        given = split_names(options.get("ignore", ()))
        found = find_columns(
            Table([_few(table.parts[0])], table.problems),
            options.get("layout"),
            keys,
            special,
            options.get("items"),
            given,
        )
        return found.main[0] if found is not None and found.layout == "long" else None
    return None


def _few(part: Any) -> Any:
    """The first rows of a source."""
    if isinstance(part, Lazy):
        return replace(part, query=part.query.head(1000))
    if isinstance(part, Delimited) and isinstance(part.source, str):
        return replace(part, source=_first_lines(part.source))
    return part


def _first_lines(path: str) -> bytes:
    """The whole lines in the first MiB of a file; if there are none, that MiB."""
    with open(path, "rb") as file:
        head = file.read(1 << 20)
    return head[: head.rfind(b"\n") + 1] or head
