"""Files in parts: whole files, row groups of Parquet and ranges of text, cut between lists and never through one."""

import inspect
import io
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import Comparisons, DataError, Parts, Queries, Rankings
from placet.data.engine import Engine, add, engine_of
from placet.data.parts import Log, Summary, first_span, summary_of
from placet.io.ballot_tables import find_columns
from placet.io.columns import find_column, split_names
from placet.io.features import QIDS
from placet.io.files import NamedBytes, plain_path
from placet.io.formats import FORMATS, choose_format, expand, formats_with
from placet.io.ratings import KNOWN
from placet.io.sources import Delimited, Lazy, open_part
from placet.io.tables import SUFFIXES, Sample, Table, take_sample
from placet.io.text import Problems

PART_BYTES = 1 << 26
"""Bytes of a file that make one part, about."""

_KINDS = (Rankings, Comparisons, Queries)


@dataclass(frozen=True)
class Span:
    """Part of a file: rows of Parquet, or bytes of text (without the header), from ``start`` up to ``end``."""

    unit: str
    start: int
    end: int


@dataclass(frozen=True)
class FilePiece:
    """A file or a span of one, how it is read, and what the file was like when it was scanned."""

    path: str
    bytes_in_file: int
    modified: int
    span: Span | None
    format: str
    options: Mapping[str, Any]
    key_column: str | None = None
    completes: bool = False

    @cached_property
    def key(self) -> str:
        return repr(
            (self.path, self.bytes_in_file, self.modified, self.span, self.format, sorted(self.options.items()))
        )

    @property
    def name(self) -> str:
        if self.span is None:
            return self.path
        return f"{self.path} ({self.span.unit} {self.span.start} to {self.span.end})"

    @property
    def size(self) -> int:
        if self.span is None:
            return self.bytes_in_file
        if self.span.unit == "bytes":
            return self.span.end - self.span.start
        rows = max(_parquet_rows(self.path), 1)
        return int(self.bytes_in_file * (self.span.end - self.span.start) / rows)

    def load(self) -> Any:
        """The data, where the file is what it was."""
        self.check()
        reader = FORMATS[self.format].read
        try:
            data = reader(self.source(), **self.options)
        except DataError:
            if self.span is None or self.span.unit != "bytes" or self.is_table:
                raise
            # blank lines in place of those before the range, so that the message names the right line
            before = NamedBytes(b"\n" * self.lines_before() + self._range(), self.path)
            return reader(before, **self.options)
        self.check()
        return getattr(data, "rankings", data)  # LETOR for aggregation holds its ballots

    def check(self) -> None:
        """A ``DataError`` where the file is gone or another."""
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            raise DataError(
                f"{self.path}: the file is gone since it was scanned; put it back, or scan what there is"
            ) from None
        if (now.st_size, now.st_mtime_ns) != (self.bytes_in_file, self.modified):
            raise DataError(
                f"{self.path}: the file has changed since it was scanned ({self.bytes_in_file:,} bytes then, "
                f"{now.st_size:,} now); scan it again"
            )

    @property
    def is_table(self) -> bool:
        return SUFFIXES[0] in FORMATS[self.format].suffixes

    def source(self) -> Any:
        """What the reader reads."""
        if self.span is None:
            return self.path
        return self.table() if self.is_table else NamedBytes(self._range(), self.path)

    def table(self) -> Table:
        """The rows as a table."""
        on_error = self.options.get("on_error", "raise")
        problems = Problems(self.path, on_error)
        given = {name: self.options.get(name) for name in ("format", "separator")}
        part = open_part(self.path, given["format"], None, given["separator"], problems, 0)
        span = self.span
        if span is not None and isinstance(part, Lazy):
            part = replace(
                part, query=part.query.slice(span.start, span.end - span.start), first=part.first + span.start
            )
            problems.unit = "row"
        elif span is not None and isinstance(part, Delimited):
            part = TextRange(part.name, self._range(), part.separator, part.names, problems, 0, self)
        elif isinstance(part, Lazy):
            problems.unit = "row"
        return Table([part], problems)

    def _range(self) -> bytes:
        assert self.span is not None
        with open(self.path, "rb") as file:
            file.seek(self.span.start)
            return file.read(self.span.end - self.span.start)

    def lines_before(self) -> int:
        """Lines of the file before the range."""
        assert self.span is not None
        count, left = 0, self.span.start
        with open(self.path, "rb") as file:
            while left > 0 and (block := file.read(min(left, 1 << 20))):
                count, left = count + block.count(b"\n"), left - len(block)
        return count

    # Lists

    def list_names(self, data: Any) -> list[Any]:
        """The names of the ballots or queries in it, where rows of one might stand elsewhere."""
        if isinstance(data, Queries):
            return list(data.qid)
        if self.format == "ratings":
            return list(data.agents)
        if self.key_column is None:
            return []
        column = self.table().rows(self.key_column, distinct=True).column(self.key_column)
        return [name for name in column.values if name is not None]

    def list_named(self, key: int) -> str:
        """The list whose name has this hash."""
        names = self.list_names(self.load())
        found = [name for name, own in zip(names, hashes(names).tolist()) if own == key]
        what = {"features": "query", "letor": "query", "ratings": "user"}.get(self.format, "ballot")
        return f"{what} {found[0]!r}" if found else f"a {what}"


@dataclass
class TextRange(Delimited):
    """A range of delimited text, whose lines count from the start of the file."""

    piece: FilePiece

    def lines(self, records: Sequence[int]) -> list[int]:
        before = self.piece.lines_before()
        return [before + line for line in super().lines(records)]


@dataclass(frozen=True)
class Survey:
    """The first pass over a piece: it loads as a summary."""

    piece: FilePiece

    @property
    def key(self) -> str:
        return f"survey-{self.piece.key}"

    @property
    def name(self) -> str:
        return self.piece.name

    @property
    def size(self) -> int:
        return self.piece.size

    def load(self) -> list[Summary]:
        data = self.piece.load()
        names = self.piece.list_names(data)
        return summary_of(data, hashes(names) if names else None)


def hashes(names: Sequence[Hashable]) -> NDArray[np.uint64]:
    """A hash of every name that is the same in every process."""
    import polars as pl

    return pl.Series([str(name) for name in names], dtype=pl.String).hash(seed=0).to_numpy()


def scan(
    source: Any,
    format: str | None = None,
    *,
    items: Sequence[Hashable] | None = None,
    part_bytes: int = PART_BYTES,
    engine: Any = None,
    **options: Any,
) -> Parts:
    """Files as `Parts`, which are read when they are needed and may together be larger than memory.

    ``source`` is a path, a pattern (``votes/*.parquet``), a folder or a list of these; ``format`` and ``options`` are
    those of `placet.read`, found by the first part where they are not given.  Files are cut into parts of about
    ``part_bytes``: Parquet between row groups, delimited tables and LETOR text between lines, and always
    between ballots or queries; compressed and other files are one part each.  Rows of a ballot or query that stand in
    two files are a ``DataError`` that names it; a file in which they lie apart becomes one part.  A first pass (done by
    ``engine``) finds the names of all items.  A file that changes afterwards is a ``DataError`` that names it.

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
        # rows of a list lie apart in this file: it is read as one
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


def _survey(engine: Engine, pieces: Sequence[FilePiece], log: Log) -> list[Summary]:
    surveys = [Survey(piece) for piece in pieces]
    found, read = engine.sum(_itself, surveys, (), name="vocabulary", merge=add)
    log.note("vocabulary", read, None, None)
    return list(found)


def _itself(value: Any) -> Any:
    return value


def _same_features(
    engine: Engine, pieces: list[FilePiece], found: list[Summary], log: Log
) -> tuple[list[FilePiece], list[Summary]]:
    """Queries with the same columns in all parts: those of any part, or as many as the most."""
    if len({(one.n_features, one.features) for one in found}) == 1:
        return pieces, found
    if pieces[0].format == "letor":
        more: dict[str, Any] = {"n_features": max(one.n_features for one in found)}
    elif all(one.features is not None for one in found) and "features" not in pieces[0].options:
        names = dict.fromkeys(name for one in found for name in one.features or ())
        more = {"features": list(names)}
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
    """All files cut into pieces, of the format that the first shows."""
    possible = formats_with(options, format)
    sample = take_sample(paths[0], options.get("on_error", "raise"))
    if len(possible) == 1:
        name = possible[0]
        known = {} if options or sample.table is not None else FORMATS[name].looks_like(sample) or {}
    else:
        name, known, _ = choose_format(_head_of(sample, paths[0], part_bytes), possible)
    if FORMATS[name].kind not in _KINDS and name != "letor-agg":
        raise DataError(f"{paths[0]}: {name} cannot be read in parts; votes, ballots, ratings and queries can")
    known = {**options, **known}
    if items is not None and "items" in inspect.signature(FORMATS[name].read).parameters:
        known["items"] = tuple(items)
    pieces = []
    for path in paths:
        now = os.stat(path)
        piece = FilePiece(path, now.st_size, now.st_mtime_ns, None, name, known, completes=completes)
        if piece.is_table:
            piece = replace(piece, key_column=_key_column(piece))
        pieces += [replace(piece, span=span) for span in _spans(piece, part_bytes)] or [piece]
    return pieces


def _head_of(sample: Sample, path: str, part_bytes: int) -> Sample:
    """The sample with only the first part of a long table, so that cells to guess by are few."""
    part = sample.table.parts[0] if sample.table is not None and len(sample.table.parts) == 1 else None
    if isinstance(part, Lazy):
        sample.table = Table([replace(part, query=part.query.head(10_000))], Problems(path, sample.on_error))
    elif isinstance(part, Delimited) and isinstance(part.source, str) and os.path.getsize(path) > part_bytes:
        with open(path, "rb") as file:
            head = file.read(1 << 20)
        head = head[: head.rfind(b"\n") + 1]
        problems = Problems(path, sample.on_error)
        sample.table = Table([Delimited(part.name, head, part.separator, part.header, problems, 0)], problems)
    return sample


def _key_column(piece: FilePiece) -> str | None:
    """The column that names the ballot or query of a row; None where every row is on its own."""
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
        with open(part.source, "rb") as file:
            head = file.read(1 << 20)
        cut = head.rfind(b"\n") + 1
        return replace(part, source=head[:cut] or head)
    return part


# Where files are cut


def _spans(piece: FilePiece, part_bytes: int) -> list[Span]:
    """The spans of a file; none where it stays whole."""
    if plain_path(piece.path) is None or piece.bytes_in_file <= part_bytes:
        return []
    if piece.is_table:
        part = piece.table().parts[0]
        if piece.format == "ratings" and piece.key_column is None:
            return []  # text without a header
        if isinstance(part, Lazy):
            return _row_spans(piece, part, part_bytes)
        if isinstance(part, Delimited):
            return _table_spans(piece, part, part_bytes)
        return []
    return _letor_spans(piece, part_bytes) if piece.format == "letor" and "group" not in piece.options else []


def _parquet_rows(path: str) -> int:
    import polars as pl

    return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())


def _row_spans(piece: FilePiece, part: Lazy, part_bytes: int) -> list[Span]:
    """Rows of Parquet, about as many as make ``part_bytes``, cut at the next row of another list."""
    rows = _parquet_rows(piece.path)
    step = max(1, int(rows * part_bytes / piece.bytes_in_file))
    cuts = [0]
    while cuts[-1] < rows:
        at = min(cuts[-1] + step, rows)
        if piece.key_column is not None and at < rows:
            at = _next_list(part, piece.key_column, at, rows)
        cuts.append(at)
    return [Span("rows", a, b) for a, b in pairwise(cuts)]


def _next_list(part: Lazy, key: str, at: int, rows: int) -> int:
    """The first row from ``at`` on whose list is not that of the row before."""
    column = part.query.select(key)
    last = column.slice(at - 1, 1).collect().item()
    size = 1 << 12
    while at < rows:
        block = column.slice(at, size).collect().to_series()
        other = (block != last).fill_null(True).arg_max() if len(block) else None
        if other is not None and block[other] != last:
            return at + int(other)
        at, size = at + len(block), 4 * size
    return rows


def _table_spans(piece: FilePiece, part: Delimited, part_bytes: int) -> list[Span]:
    """Bytes of delimited text after the header, cut at line ends outside quotes, and between lists."""
    with open(piece.path, "rb") as file:
        while (line := file.readline()) and not line.strip():
            pass
        start = file.tell()
    key = None if piece.key_column is None else part.names.index(piece.key_column)
    if key is not None and _has_quotes(piece.path):
        return []  # keys are found by separators alone: a file with quotes stays whole
    return _cut_lines(piece, start, part_bytes, None if key is None else _field(part.separator.encode(), key))


def _letor_spans(piece: FilePiece, part_bytes: int) -> list[Span]:
    """Bytes of LETOR text, cut where the query changes."""
    return _cut_lines(piece, 0, part_bytes, _letor_query)


def _field(separator: bytes, k: int) -> Any:
    return lambda line: line.split(separator)[k].strip() if line.count(separator) >= k else line


def _letor_query(line: bytes) -> bytes:
    for token in line.split(b"#")[0].split()[:2]:
        if token.startswith(b"qid:"):
            return token
    return line


def _cut_lines(piece: FilePiece, start: int, part_bytes: int, key: Any) -> list[Span]:
    """Ranges of whole lines; with ``key``, a range ends where the key of the line changes."""
    end = piece.bytes_in_file
    cuts, inside = [start], False
    with open(piece.path, "rb") as file:
        while cuts[-1] + part_bytes < end:
            at, inside = _line_end(file, cuts[-1], part_bytes, end, inside if key is None else None)
            if key is not None and at < end:
                at = _next_key(file, at, end, key)
            if at >= end:
                break
            cuts.append(at)
    cuts.append(end)
    return [Span("bytes", a, b) for a, b in pairwise(cuts) if b > a]


def _line_end(file: io.BufferedReader, start: int, size: int, end: int, inside: bool | None) -> tuple[int, bool]:
    """The first line end at least ``size`` bytes on (outside quotes, where ``inside`` counts them)."""
    quoted = False
    if inside is not None:
        file.seek(start)
        left, quotes = size, 0
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            quotes, left = quotes + block.count(b'"'), left - len(block)
        quoted = quotes % 2 == 1
    file.seek(start + size)
    while True:
        line = file.readline()
        if not line:
            return end, False
        if inside is not None and line.count(b'"') % 2 == 1:
            quoted = not quoted
        if not quoted:
            return file.tell(), False


def _next_key(file: io.BufferedReader, at: int, end: int, key: Any) -> int:
    """The start of the first line from ``at`` on whose key differs from that of the line before."""
    back = max(0, at - (1 << 16))
    file.seek(back)
    before = file.read(at - back).rstrip(b"\r\n")
    last = key(before[before.rfind(b"\n") + 1 :])
    file.seek(at)
    while at < end:
        line = file.readline()
        if line.strip() and key(line.rstrip(b"\r\n")) != last:
            return at
        at += len(line)
    return end


def _has_quotes(path: str) -> bool:
    with open(path, "rb") as file:
        return any(b'"' in block for block in iter(lambda: file.read(1 << 20), b""))
