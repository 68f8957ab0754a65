"""Splitting of files into pieces: between rows or lines, and always between lists."""

import io
from itertools import pairwise
from typing import Any

from placet.io.scanning.file_pieces import FilePiece, Span, parquet_rows
from placet.io.tables.row_sources import Delimited, Lazy


def spans_of(piece: FilePiece, part_bytes: int) -> list[Span]:
    """The spans of a file; empty if it stays whole."""
    if piece.bytes_in_file <= part_bytes or not piece.is_plain:
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


def _row_spans(piece: FilePiece, part: Lazy, part_bytes: int) -> list[Span]:
    """Spans of Parquet rows of about ``part_bytes``, each extended to the end of its last list."""
    rows = parquet_rows(piece.path)
    step = max(1, int(rows * part_bytes / piece.bytes_in_file))
    cuts = [0]
    while cuts[-1] < rows:
        at = min(cuts[-1] + step, rows)
        if piece.key_column is not None and at < rows:
            at = _next_list(part, piece.key_column, at, rows)
        cuts.append(at)
    return [Span("rows", a, b) for a, b in pairwise(cuts)]


def _next_list(part: Lazy, key: str, at: int, rows: int) -> int:
    """The first row from ``at`` on whose list differs from that of row ``at - 1``."""
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
    """Byte ranges of delimited text after the header, split at line ends outside quotes and between lists."""
    with open(piece.path, "rb") as file:
        while (line := file.readline()) and not line.strip():
            pass
        start = file.tell()
    key = None if piece.key_column is None else part.names.index(piece.key_column)
    if key is not None and _has_quotes(piece.path):
        return []  # keys are found by splitting at separators, so a file with quotes stays whole
    return _cut_lines(piece, start, part_bytes, None if key is None else _field(part.separator.encode(), key))


def _letor_spans(piece: FilePiece, part_bytes: int) -> list[Span]:
    """Byte ranges of LETOR text, split where the query changes."""
    return _cut_lines(piece, 0, part_bytes, _letor_query)


def _field(separator: bytes, k: int) -> Any:
    return lambda line: line.split(separator)[k].strip() if line.count(separator) >= k else line


def _letor_query(line: bytes) -> bytes:
    for token in line.split(b"#")[0].split()[:2]:
        if token.startswith(b"qid:"):
            return token
    return line


def _cut_lines(piece: FilePiece, start: int, part_bytes: int, key: Any) -> list[Span]:
    """Byte ranges of whole lines; with ``key``, a range ends where the key of the line changes."""
    end = piece.bytes_in_file
    cuts = [start]
    with open(piece.path, "rb") as file:
        while cuts[-1] + part_bytes < end:
            at = _line_end(file, cuts[-1], part_bytes, end, quotes=key is None)
            if key is not None and at < end:
                at = _next_key(file, at, end, key)
            if at >= end:
                break
            cuts.append(at)
    cuts.append(end)
    return [Span("bytes", a, b) for a, b in pairwise(cuts) if b > a]


def _line_end(file: io.BufferedReader, start: int, size: int, end: int, *, quotes: bool) -> int:
    """The first line end at least ``size`` bytes after ``start`` (outside quotes, if there may be ``quotes``)."""
    quoted = False
    if quotes:
        file.seek(start)
        left, count = size, 0
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            count, left = count + block.count(b'"'), left - len(block)
        quoted = count % 2 == 1
    file.seek(start + size)
    while True:
        line = file.readline()
        if not line:
            return end
        if quotes and line.count(b'"') % 2 == 1:
            quoted = not quoted
        if not quoted:
            return file.tell()


def _next_key(file: io.BufferedReader, at: int, end: int, key: Any) -> int:
    """The start of the first line from ``at`` on whose key differs from that of the line before ``at``."""
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
