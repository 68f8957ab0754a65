"""Pieces of files that any process can load: a whole file, rows of Parquet or a range of text."""

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Queries
from placet.data.parts import DerivedPiece, PieceSummary, summary_of
from placet.io.files import NamedBytes, opened
from placet.io.formats import FORMATS, is_tabular
from placet.io.tables.row_sources import Delimited, Lazy, open_part
from placet.io.tables.tables import Table
from placet.io.text import Problems


@dataclass(frozen=True)
class Span:
    """Part of a file: rows of Parquet, or bytes of text (without the header), from ``start`` to before ``end``."""

    unit: str
    start: int
    end: int


@dataclass(frozen=True)
class FilePiece:
    """A file or a span of one, how to read it, and the file's size and modification time when it was scanned."""

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
        rows = max(parquet_rows(self.path), 1)
        return int(self.bytes_in_file * (self.span.end - self.span.start) / rows)

    def load(self) -> Any:
        """Load the data, after checking that the file has not changed."""
        self.check()
        reader = FORMATS[self.format].read
        try:
            data = reader(self.source(), **self.options)
        except DataError:
            if self.span is None or self.span.unit != "bytes" or self.is_table:
                raise
            # put blank lines in place of those before the range, so that the message names the right line
            before = NamedBytes(b"\n" * self.lines_before() + self._range(), self.path)
            return reader(before, **self.options)
        self.check()
        return getattr(data, "rankings", data)  # the ballots of LETOR rank aggregation data

    def check(self) -> None:
        """Refuse a file that is missing or has changed."""
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
        return is_tabular(self.format)

    @property
    def is_plain(self) -> bool:
        """Whether the file is not compressed, so that a span of it can be read."""
        with opened(self.path) as file:
            return file.path is not None

    def source(self) -> Any:
        """The source to pass to the reader."""
        if self.span is None:
            return self.path
        return self.table() if self.is_table else NamedBytes(self._range(), self.path)

    def table(self) -> Table:
        """The rows as a table."""
        on_error = self.options.get("on_error", "raise")
        problems = Problems(self.path, on_error)
        given = {name: self.options.get(name) for name in ("format", "separator", "sheet")}
        with opened(self.path) as file:
            part = open_part(file, given["format"], None, given["separator"], problems, 0, given["sheet"])
        span = self.span
        if span is not None and isinstance(part, Lazy):
            part = replace(
                part, query=part.query.slice(span.start, span.end - span.start), first=part.first + span.start
            )
            problems.unit = "row"
        elif span is not None and isinstance(part, Delimited):
            part = TextRange(part.name, self._range(), part.separator, part.names, problems, 0, b"", self)
        elif isinstance(part, Lazy):
            problems.unit = "row"
        return Table([part], problems)

    def _range(self) -> bytes:
        assert self.span is not None
        with open(self.path, "rb") as file:
            file.seek(self.span.start)
            return file.read(self.span.end - self.span.start)

    def lines_before(self) -> int:
        """Number of lines of the file before the range."""
        assert self.span is not None
        count, left = 0, self.span.start
        with open(self.path, "rb") as file:
            while left > 0 and (block := file.read(min(left, 1 << 20))):
                count, left = count + block.count(b"\n"), left - len(block)
        return count

    # Lists

    def list_names(self, data: Any) -> list[Any]:
        """The names of its ballots or queries, if other pieces might contain rows of them."""
        if isinstance(data, Queries):
            return list(data.qid)
        if self.format == "ratings":
            return list(data.agents)
        if self.key_column is None:
            return []
        column = self.table().rows(self.key_column, distinct=True).column(self.key_column)
        return [name for name in column.values if name is not None]

    def list_named(self, key: int) -> str:
        """A description of the list whose name has this hash."""
        names = self.list_names(self.load())
        found = [name for name, own in zip(names, hashes(names).tolist()) if own == key]
        what = {"features": "query", "letor": "query", "ratings": "user"}.get(self.format, "ballot")
        return f"{what} {found[0]!r}" if found else f"a {what}"


@dataclass
class TextRange(Delimited):
    """A range of delimited text whose lines are numbered from the start of the file."""

    piece: FilePiece

    def lines(self, records: Sequence[int]) -> list[int]:
        before = self.piece.lines_before()
        return [before + line for line in super().lines(records)]


@dataclass(frozen=True)
class Survey(DerivedPiece):
    """The first pass over a piece, which loads as its summary."""

    base: FilePiece

    @property
    def key(self) -> str:
        return f"survey-{self.base.key}"

    def load(self) -> list[PieceSummary]:
        data = self.base.load()
        names = self.base.list_names(data)
        return summary_of(data, hashes(names) if names else None)


def hashes(names: Sequence[Hashable]) -> NDArray[np.uint64]:
    """A hash of each name that is the same in every process."""
    import polars as pl

    return pl.Series([str(name) for name in names], dtype=pl.String).hash(seed=0).to_numpy()


def parquet_rows(path: str) -> int:
    import polars as pl

    return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
