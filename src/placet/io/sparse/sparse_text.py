"""Sparse text in blocks of whole lines: parsed by threads, checked, and assembled into a dense or CSR matrix."""

import io
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from placet.data import DataError
from placet.data.arrays import list_of_rows
from placet.io.files import refuse_wide
from placet.io.text import Problems, format_number, parse_decimal, quote
from placet.kernels import interpreted, parse
from placet.threads import get_threads

BLOCK = 1 << 20
SMALL_TEXT = 1 << 15  # bytes that plain Python parses faster than a kernel compiles,
MIDDLE_TEXT = 1 << 19  # and faster than Numba imports
MAX_FEATURES = 1 << 24
DENSE_FROM = 0.25
Sparse = Literal["auto"] | bool


class Bad(NamedTuple):
    """A line that cannot be read: its number in the block, from 0, and the message."""

    line: int
    kind: str
    text: str
    way_out: str


@dataclass
class TextBlock:
    """Rows of one block: per-row ``columns`` (``line`` among them) and CSR values; ``index`` is None if every row is
    full.
    """

    columns: dict[str, NDArray[Any]]
    indptr: NDArray[np.int64]
    index: NDArray[np.int32] | None
    value: NDArray[Any]
    top: int
    lines: int
    bad: list[Bad]
    slot: int | None = None  # its first row in the dense table, once its values have been moved there

    def copy(self) -> "TextBlock":
        """Move the arrays out of the buffers they were parsed into, so that these can be reused."""
        self.columns = {name: column.copy() for name, column in self.columns.items()}
        self.indptr = self.indptr.copy()
        self.index = None if self.index is None else self.index.copy()
        self.value = self.value if self.slot is not None else self.value.copy()
        return self

    def drop(self, rows: set[int]) -> "TextBlock":
        """The block without some of its rows."""
        keep = np.ones(len(self.indptr) - 1, bool)
        keep[list(rows)] = False
        size = np.diff(self.indptr)
        values = np.repeat(keep, size)
        assert self.index is not None
        columns = {name: column[keep] for name, column in self.columns.items()}
        indptr = np.concatenate([[0], np.cumsum(size[keep])])
        index, value = self.index[values], self.value[values]
        return TextBlock(columns, indptr, index, value, int(index.max(initial=-1)), self.lines, self.bad)


def checked_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype, which must be float32 or float64."""
    try:
        known = np.dtype(dtype)
    except TypeError:
        known = np.dtype(object)
    if known not in (np.float32, np.float64):
        raise ValueError(f"dtype {dtype} is not possible; choose from float32, float64")
    return known


def kernels_for(size: int) -> Any:
    """The kernels to parse text of ``size`` bytes with: plain Python if it finishes before Numba is ready."""
    return interpreted("parse") if size <= (SMALL_TEXT if "numba" in sys.modules else MIDDLE_TEXT) else parse


class Buffers:
    """Reusable buffers for parsing one block: its text and the arrays that the kernel fills.

    Page faults in fresh memory would cost more than the parsing itself.
    """

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.text: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.lines = self.colons = self.slot = 0
        self.kernels: Any = None
        self._arrays: dict[str, NDArray[Any]] = {}

    def fill(self, file: IO[bytes], rest: bytes) -> tuple[bool, bytes]:
        """Read the next whole lines after ``rest``; return whether there is more, and the incomplete last line."""
        filled, cut, n = len(rest), 0, 1
        self._reserve(filled, rest)
        while n and cut == 0:
            if len(self.buffer) - filled < BLOCK:  # a line longer than the buffer
                self._reserve(2 * filled, self.buffer[:filled])
            n = _read_into(file, memoryview(self.buffer)[filled:-1])
            cut = self.buffer.rfind(b"\n", filled, filled + n) + 1
            filled += n
        if n == 0:
            cut = filled
            if cut and self.buffer[cut - 1] != 10:
                self.buffer[cut] = 10
                cut += 1
        self.text = np.frombuffer(self.buffer, np.uint8)[:cut]
        return n > 0, bytes(self.buffer[cut:filled])

    def _reserve(self, size: int, content: bytes | bytearray) -> None:
        """Make room for BLOCK + 1 bytes after ``size`` and put ``content`` first; a buffer in use cannot be resized."""
        if len(self.buffer) < size + BLOCK + 1:
            self.buffer = bytearray(size + BLOCK + 1)
        self.buffer[: len(content)] = content

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """A reusable, uninitialized array."""
        size = int(np.prod(shape))
        array = self._arrays.get(name)
        if array is None or len(array) < size:
            array = self._arrays[name] = np.empty(size + size // 8, dtype)
        return array[:size].reshape(shape)

    def csr(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        """Arrays of row pointers, indices and values, large enough for the text."""
        indptr = self.array("indptr", (self.lines + 1,), np.int64)
        return indptr, self.array("index", (self.colons,), np.int32), self.array("value", (self.colons,), np.float64)

    def count(self, first: bool) -> None:
        """Choose the kernels for this text (``first``: it begins its file) and count its lines and colons."""
        self.kernels = kernels_for(len(self.text)) if first else parse
        self.lines, self.colons = self.kernels.count(self.content)

    @property
    def content(self) -> Any:
        """The text as the kernels expect it: bytes for those in Python, which are then faster and do not overflow."""
        return self.text if self.kernels is parse else self.text.tobytes()

    def token(self, start: int, end: int) -> bytes:
        """Bytes ``start`` to ``end`` of the text."""
        return self.text[start:end].tobytes()


class DenseTable:
    """A dense table that full rows are moved into as they are parsed; allocated if the first block's rows are full."""

    def __init__(self, wanted: bool, size: int | None, dtype: DTypeLike) -> None:
        self.size = size if wanted else None
        self.dtype = dtype
        self.X: NDArray[Any] | None = None

    def reserve(self, buffers: Buffers, block: "TextBlock") -> None:
        """Allocate rows for the whole text, estimated from its first block; pages are used only once written."""
        rows = len(block.indptr) - 1
        if self.size is None or block.index is not None or rows == 0 or block.top < 0:
            return
        estimate = int(buffers.lines * self.size / len(buffers.text) * 1.1) + 1000
        try:
            self.X = np.empty((estimate, block.top + 1), self.dtype)
        except MemoryError:
            return

    def put(self, block: "TextBlock", slot: int) -> None:
        """Move the values of a block of full rows into the rows from ``slot`` on, if the width matches and they fit."""
        rows = len(block.indptr) - 1
        if self.X is None or block.index is not None or slot + rows > len(self.X) or block.top + 1 != self.X.shape[1]:
            return
        self.X[slot : slot + rows] = block.value.reshape(rows, -1)
        block.value, block.slot = self.X[slot : slot + rows].reshape(-1), slot

    def take(self, blocks: "list[TextBlock]") -> NDArray[Any] | None:
        """The table, if all rows are in it; gaps left by blank and bad lines are closed."""
        if self.X is None or any(block.slot is None for block in blocks if len(block.indptr) > 1):
            return None
        at = 0
        for block in blocks:
            n = len(block.indptr) - 1
            if n and block.slot is not None and block.slot != at:
                self.X[at : at + n] = self.X[block.slot : block.slot + n].copy()
            block.value = self.X[:0].reshape(-1)
            at += n
        X, self.X = self.X, None
        X.resize((at, X.shape[1]), refcheck=False)  # all views of it were released above
        return X


def read_blocks(file: IO[bytes], name: str) -> Iterator[Buffers]:
    """Yield blocks of whole lines, each ending in a newline, of about BLOCK bytes, in rotating buffers; a byte order
    mark is removed.
    """
    all_buffers = [Buffers() for _ in range(get_threads() + 2)]
    rest, slot, turn, more = b"", 0, 0, True
    while more:
        buffers = all_buffers[turn % len(all_buffers)]
        more, rest = buffers.fill(file, rest)
        if turn == 0:
            refuse_wide(name, buffers.token(0, 1 << 16))
            buffers.text = buffers.text[3:] if buffers.token(0, 3) == b"\xef\xbb\xbf" else buffers.text
        turn += 1
        if len(buffers.text):
            buffers.count(first=turn == 1)
            buffers.slot, slot = slot, slot + buffers.lines
            yield buffers


def _read_into(file: IO[bytes], view: memoryview) -> int:
    """Read into ``view``; return the number of bytes, 0 only at the end."""
    if hasattr(file, "readinto"):
        return file.readinto(view) or 0
    chunk = file.read(len(view))
    view[: len(chunk)] = chunk
    return len(chunk)


def plain_size(file: IO[bytes]) -> int | None:
    """Number of bytes left to read, or None if that is not known without reading."""
    if not isinstance(file, io.BufferedReader | io.BytesIO) or not file.seekable():
        return None
    at = file.tell()
    size = file.seek(0, os.SEEK_END) - at
    file.seek(at)
    return size


def parse_blocks(parse: Callable[[Buffers], TextBlock], texts: Iterator[Buffers], table: DenseTable) -> list[TextBlock]:
    """Parse all blocks in several threads and return them in order; at most ``get_threads() + 1`` buffers are in use
    at a time.
    """

    def one(buffers: Buffers) -> TextBlock:
        block = parse(buffers)
        table.put(block, buffers.slot)
        return block.copy()

    first = next(texts, None)
    if first is None:
        return []
    block = parse(first)
    table.reserve(first, block)
    table.put(block, first.slot)
    blocks = [block.copy()]
    n = get_threads()
    with ThreadPoolExecutor(n, thread_name_prefix="placet-io") as pool:
        waiting: deque[Future[TextBlock]] = deque()
        for buffers in texts:
            waiting.append(pool.submit(one, buffers))
            if len(waiting) > n:
                blocks.append(waiting.popleft().result())
        blocks.extend(future.result() for future in waiting)
    return blocks


def build_block(
    buffers: Buffers,
    columns: dict[str, NDArray[Any]],
    csr: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
    slow: NDArray[np.int64],
    bad: list[Bad],
    answer: tuple[int, int, int, int, int, bool, bool],
    base: int,
    dtype: DTypeLike,
) -> TextBlock:
    """Make a block from the output of a kernel: reparse rare decimals exactly, sort columns, find repeated features."""
    rows, n_slow, _, lines, top, regular, unsorted = answer
    indptr, index, value = csr
    indptr = indptr[: rows + 1]
    nnz = int(indptr[-1])
    columns = {name: column[:rows] for name, column in columns.items()}
    drop: set[int] = set()
    for at, start, end in slow[:n_slow].tolist():
        token = buffers.token(start, end).decode()
        number = parse_decimal(token)
        row = -1 - at if at < 0 else int(np.searchsorted(indptr, at, side="right")) - 1
        if number is None:  # well formed, but infinite in float64
            drop.add(row)
            way_out = "correct the number"
            bad.append(Bad(int(columns["line"][row]), "huge", f"{quote(token)} is beyond any finite number", way_out))
        elif at < 0:
            columns["grade"][row] = number
        else:
            value[at] = number
    block = TextBlock(columns, indptr, index[:nnz], value[:nnz], top, lines, bad)
    if unsorted:
        drop |= _sort_columns(block, base)
    if np.dtype(dtype) != np.float64:
        drop |= _overflows(block, dtype)
    if drop:
        block = block.drop(drop)
    block.value = block.value.astype(dtype, copy=False)
    if regular and not drop:
        block.index = None  # columns 0, 1, ... of every row need not be stored
    return block


def explain_pair(kind: int, token: str, low: int, high: int) -> str:
    """Explain what is wrong with ``token``, which should be ``feature:value`` with a feature in ``low..high``."""
    kinds = interpreted("parse")
    index, _, value = token.partition(":")
    if kind == kinds.INDEX:
        return f"{quote(token)} is not feature:value"
    if kind == kinds.VALUE:
        return f"feature {quote(index)[1:-1]} has the value {quote(value)}, which is not a finite number"
    return f"feature index {quote(index)[1:-1]} is not in {low}..{high}"


def _overflows(block: TextBlock, dtype: DTypeLike) -> set[int]:
    """Record and return the rows with a value that is finite in float64 but not in float32."""
    wide = np.flatnonzero(np.abs(block.value) > np.finfo(np.float32).max)
    rows = np.searchsorted(block.indptr, wide, side="right") - 1
    for k, row in zip(wide.tolist(), rows.tolist()):
        text = f"value {float(block.value[k])!r} does not fit {np.dtype(dtype)}"
        block.bad.append(Bad(int(block.columns["line"][row]), "wide", text, "read with dtype=np.float64"))
    return set(rows.tolist())


def _sort_columns(block: TextBlock, base: int) -> set[int]:
    """Sort the columns of every row in place; record and return the rows that have a column twice."""
    index, value = block.index, block.value
    assert index is not None
    row = list_of_rows(block.indptr)
    order = np.lexsort((index, row))
    index[:], value[:] = index[order], value[order]
    twice = np.flatnonzero((row[1:] == row[:-1]) & (index[1:] == index[:-1]))
    found: set[int] = set()
    for k in twice.tolist():
        r = int(row[k])
        if r not in found:
            text = f"feature {int(index[k]) + base} occurs more than once"
            block.bad.append(Bad(int(block.columns["line"][r]), "twice", text, "keep one value of each feature"))
        found.add(r)
    return found


def report_bad_lines(blocks: list[TextBlock], problems: Problems) -> None:
    """Add every bad line to ``problems``, numbered from 1 in the whole text; ``line`` columns are renumbered the same
    way.
    """
    before = 0
    for block in blocks:
        for line, kind, text, way_out in block.bad:
            problems.add(before + line + 1, kind, text, way_out)
        block.columns["line"] = block.columns["line"] + before + 1
        before += block.lines
    problems.close()


def column(blocks: list[TextBlock], name: str) -> NDArray[Any]:
    """One per-row column, concatenated over all blocks."""
    return np.concatenate([block.columns[name] for block in blocks])


def matrix(blocks: list[TextBlock], n_features: int, sparse: Sparse, table: DenseTable) -> Any:
    """All values as a dense table or as CSR; blocks are emptied along the way, so that little is in memory twice.

    ``sparse="auto"`` gives a dense table when at least a quarter of the cells are in the text.
    """
    rows = sum(len(block.indptr) - 1 for block in blocks)
    nnz = sum(len(block.value) for block in blocks)
    if sparse == "auto":
        sparse = nnz < DENSE_FROM * rows * n_features
    dtype = table.dtype
    if sparse:
        return _csr(blocks, rows, nnz, n_features, dtype)
    if table.X is not None and table.X.shape[1] == n_features and (X := table.take(blocks)) is not None:
        return X
    full = all(block.index is None and len(block.value) == (len(block.indptr) - 1) * n_features for block in blocks)
    try:
        X = np.empty((rows, n_features), dtype) if full else np.zeros((rows, n_features), dtype)
    except MemoryError:
        raise DataError(
            f"a dense table of {rows} x {n_features} does not fit into memory; read with sparse=True"
        ) from None
    at = 0
    for block in blocks:
        n = len(block.indptr) - 1
        if block.index is None:
            X[at : at + n, : len(block.value) // n if n else 0] = block.value.reshape(n, -1) if n else 0
        else:
            kernels_for(len(block.value)).scatter(block.indptr, block.index, block.value, X[at : at + n])
        block.value = block.value[:0].copy()
        block.index = None
        at += n
    return X


def _csr(blocks: list[TextBlock], rows: int, nnz: int, n_features: int, dtype: DTypeLike) -> Any:
    from scipy.sparse import csr_matrix

    data, indices = np.empty(nnz, dtype), np.empty(nnz, np.int32)
    indptr = np.zeros(rows + 1, np.int64 if nnz > np.iinfo(np.int32).max else np.int32)
    row = at = 0
    for block in blocks:
        n, k = len(block.indptr) - 1, len(block.value)
        data[at : at + k] = block.value
        indices[at : at + k] = np.tile(np.arange(k // n if n else 0), n) if block.index is None else block.index
        indptr[row + 1 : row + n + 1] = block.indptr[1:] + at
        block.value = block.value[:0].copy()
        block.index = None
        row, at = row + n, at + k
    return csr_matrix((data, indices, indptr), shape=(rows, n_features), copy=False)


def format_rows(X: Any, base: int) -> Iterator[str]:
    """Format each row of a dense or CSR matrix as ``index:value index:value ...``, counting columns from ``base``.

    Dense rows are written with their zeros, CSR rows as they are stored.
    """
    if isinstance(X, np.ndarray):
        labels = [f"{k + base}:" for k in range(X.shape[1])]
        for row in X:
            yield " ".join(label + format_number(v) for label, v in zip(labels, row.tolist()))
        return
    for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist()):
        pairs = zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist())
        yield " ".join(f"{k + base}:{format_number(v)}" for k, v in pairs)
