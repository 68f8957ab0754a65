"""Sources of table rows: delimited text, JSON, Parquet, sheets of workbooks, and data frames of any kind.

Files are read by Polars in streaming mode; equal rows are merged and counted if the reader allows it, and a file is
read again to find line numbers only if some line is bad.
"""

import contextlib
import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.data.arrays import Ints, first_repeat, refuse_masked_or_complex
from placet.escaping import UNQUOTE, from_sheet
from placet.io.files import HEAD, OpenedFile, bare_suffix, decode, read_bytes, refuse_wide
from placet.io.tables.sheets import SHEET_SUFFIXES, is_workbook, sheet_rows
from placet.io.text import Problems, quote

if TYPE_CHECKING:
    import polars as pl

FORMAT_OF = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    **dict.fromkeys(SHEET_SUFFIXES, "sheet"),
}
FORMATS = tuple(dict.fromkeys(FORMAT_OF.values()))
SEPARATORS = (",", ";", "\t", "|")
WIDE = 200  # with more columns, rows are filtered column by column
SHORT = 1 << 14  # shorter text is read record by record, which takes less time than importing Polars
_ROW, _COUNT = "\0row", "\0count"  # columns added to those of a file


def _is_blank(record: Sequence[str]) -> bool:
    """Whether a record has no text; a line of two quotes is a row, as for Polars."""
    return not any(field.strip() for field in record) and list(record) != [""]


class RowSource:
    """A source of rows: ``names`` are its columns, ``load`` loads some of them, ``lines`` are the line numbers of rows.

    ``load(names, distinct)`` returns the cells of each column, the record number of each row, and how often each row
    occurs (``None``: once); with ``distinct``, equal rows may be merged, in order of first appearance.
    """

    name: str
    names: list[str]

    def load(self, names: Sequence[str], distinct: bool) -> "tuple[list[Any], Ints, Ints | None]":
        raise NotImplementedError

    def lines(self, records: Sequence[int]) -> list[int]:
        raise NotImplementedError


@dataclass
class InMemory(RowSource):
    """Columns in memory.

    ``records`` are the record numbers of the rows (default: 0, 1, ...); record ``k`` is in line ``line_of[k]``, or in
    row ``k + first`` if there are no lines.
    """

    name: str
    names: list[str]
    n_rows: int
    cells: Callable[[str], Any]
    first: int = 0
    records: Ints | None = None
    line_of: Sequence[int] | None = None

    def load(self, names: Sequence[str], distinct: bool) -> tuple[list[Any], Ints, None]:
        return (
            [self.cells(name) for name in names],
            np.arange(self.n_rows) if self.records is None else self.records,
            None,
        )

    def lines(self, records: Sequence[int]) -> list[int]:
        return [k + self.first if self.line_of is None else self.line_of[k] for k in records]


@dataclass
class Lazy(RowSource):
    """A Polars query, for Parquet files and for Polars and Arrow frames."""

    name: str
    names: list[str]
    query: "pl.LazyFrame"
    first: int = 0

    def load(self, names: Sequence[str], distinct: bool) -> tuple[list[Any], Ints, Ints | None]:
        import polars as pl

        try:
            return _collect(self.query.with_row_index(_ROW), names, distinct)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            if distinct:  # cells that cannot be compared, such as lists
                return self.load(names, False)
            raise _not_parquet(self.name, error) from None

    def lines(self, records: Sequence[int]) -> list[int]:
        return [k + self.first for k in records]


@dataclass
class Delimited(RowSource):
    """CSV and similar text, read by Polars; record by record if short, or malformed, so that bad lines can be named."""

    name: str
    source: str | bytes  # the path of a plain file, or the text itself
    separator: str
    header: Sequence[str] | None
    problems: Problems
    base: int  # the number of its first row in the table
    head: bytes

    @cached_property
    def names(self) -> list[str]:  # type: ignore[override]
        if self.header:
            return list(self.header)
        names = [from_sheet(field.strip()) for field in self._first_record()]
        if len(set(names)) != len(names):
            raise DataError(f"{self.name}:1: two columns are named {first_repeat(names)!r}; rename one")
        return names

    def _first_record(self) -> list[str]:
        """The fields of the header, from the head of the file, or from the file if the head ends before it does."""
        text = io.StringIO(self.head.decode("utf-8-sig", errors="replace"), newline="")
        record = next(_records(text, self.separator, self.name), (0, []))[1]
        if text.read(1) or len(self.head) < HEAD:
            return record
        with self._records() as records:
            return next(records, (0, []))[1]

    def load(self, names: Sequence[str], distinct: bool) -> tuple[list[Any], Ints, Ints | None]:
        if isinstance(self.source, bytes) and len(self.source) < SHORT:
            return self._rows_in_memory.load(names, distinct)
        import polars as pl

        try:
            query = pl.scan_csv(
                self.source if isinstance(self.source, str) else io.BytesIO(self.source),
                has_header=self.header is None,
                separator=self.separator,
                infer_schema=False,
                glob=False,
            )
            found = query.collect_schema().names()
            if len(found) != len(self.names):
                raise pl.exceptions.ShapeError("the columns differ")
            query = query.rename(dict(zip(found, self.names))).with_row_index(_ROW)
            # drop blank lines, and make Polars look at all fields, so that it notices lines with too many
            if len(self.names) > WIDE:
                query = _without_blank_rows(query.collect(), self.names).lazy()
            else:
                query = query.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in self.names))
            return _collect(query, names, distinct, unquote=True)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return self._rows_in_memory.load(names, distinct)

    @cached_property
    def _rows_in_memory(self) -> InMemory:
        """All records, read one by one.

        If some have too many fields, those with too few are problems as well; else their last cells are missing.
        """
        decode(self.name, read_bytes(self.source) if isinstance(self.source, str) else self.source)
        with self._records() as found:
            numbered = enumerate((record for _, record in found), start=-1 if self.header is None else 0)
            every = [(k, record) for k, record in numbered if k >= 0 and not _is_blank(record)]
        width = len(self.names)
        shortest = width if any(len(record) > width for _, record in every) else 0  # else cells at the end are missing
        rows: list[list[str]] = []
        records: list[int] = []
        for k, record in every:
            if not shortest <= len(record) <= width:
                said = f"{len(record)} fields where the header has {width}"
                way_out = "give every line as many fields, with quotes around separators in them"
                self.problems.add(self.base + k, "fields", said, way_out)
                continue
            rows.append([from_sheet(field) for field in record] + [""] * (width - len(record)))
            records.append(k)
        at = {name: k for k, name in enumerate(self.names)}
        cells = lambda name: [row[at[name]] for row in rows]  # noqa: E731
        return InMemory(self.name, self.names, len(rows), cells, records=np.array(records, np.int64))

    def lines(self, records: Sequence[int]) -> list[int]:
        wanted = set(records)
        found: dict[int, int] = {}
        with self._records() as every:
            for k, (line, _) in enumerate(every, start=-1 if self.header is None else 0):
                if k in wanted:
                    found[k] = line
                    if len(found) == len(wanted):
                        break
        return [found[k] for k in records]

    @contextlib.contextmanager
    def _records(self) -> Iterator[Iterator[tuple[int, list[str]]]]:
        """(first line, fields) of each record, starting with the first that is not blank."""
        limit = csv.field_size_limit(1 << 30)
        try:
            with (
                open(self.source, "rb") if isinstance(self.source, str) else io.BytesIO(self.source) as raw,
                io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="") as text,
            ):
                yield _records(text, self.separator, self.name)
        finally:
            csv.field_size_limit(limit)


def _records(text: io.TextIOBase, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text, delimiter=separator)
    before, begun = 0, False
    try:
        for record in reader:
            begun = begun or bool(record)
            if begun:
                yield before + 1, record
            before = reader.line_num
    except csv.Error as error:
        raise DataError(f"{name}:{reader.line_num}: not CSV ({error}); close the quotes or remove the line") from None


def _without_blank_rows(frame: "pl.DataFrame", names: Sequence[str]) -> "pl.DataFrame":
    """The rows with a non-empty cell, found column by column since Polars plans a filter of n columns in O(n^2)."""
    blank: NDArray[np.bool_] | None = None
    for name in names:
        column = frame[name]
        if not column.null_count():
            return frame
        missing = column.is_null().to_numpy()
        blank = missing if blank is None else blank & missing
        if not blank.any():
            return frame
    return frame if blank is None else frame.filter(~blank)


def _collect(
    query: "pl.LazyFrame", names: Sequence[str], distinct: bool, *, unquote: bool = False
) -> "tuple[list[Any], Ints, Ints | None]":
    """The cells of columns, the number of each row, and its count; ``unquote`` undoes `in_sheet`.

    Rows are merged as written in the file, and merged again after unquoting, when there are fewer of them.
    """
    import polars as pl

    wanted = list(dict.fromkeys(names))
    if distinct and wanted:
        query = query.group_by(wanted).agg(pl.col(_ROW).min(), pl.len().alias(_COUNT)).sort(_ROW)
    else:
        query = query.select(*wanted, _ROW)
    frame = query.collect(engine="streaming")
    quoted = [name for name in wanted if unquote and frame[name].str.starts_with("'").any()]
    if quoted:
        frame = frame.with_columns(pl.col(name).str.replace(UNQUOTE, "${1}") for name in quoted)
        if distinct:
            frame = frame.group_by(wanted).agg(pl.col(_ROW).min(), pl.col(_COUNT).sum()).sort(_ROW)
    count = frame[_COUNT].cast(pl.Int64).to_numpy() if distinct and wanted else None
    return [frame[name] for name in names], frame[_ROW].cast(pl.Int64).to_numpy(), count


def _not_parquet(name: str, error: BaseException) -> DataError:
    reason = str(error).split("\n")[0]
    return DataError(f"{name}: not a whole Parquet file ({reason}); fetch or write it again")


def in_memory(source: Any) -> bool:
    """Whether ``source`` is a table in memory (mapping of columns, data frame, ``Table``), not a path or open file."""
    return not (isinstance(source, str | os.PathLike) or hasattr(type(source), "read"))


def open_part(
    file: OpenedFile,
    format: str | None,
    header: Sequence[str] | None,
    separator: str | None,
    problems: Problems,
    base: int,
    sheet: str | None = None,
) -> RowSource:
    """The rows of a file, whose number in the table begins at ``base``; ``sheet`` is that of a workbook."""
    head, name = file.head, file.name
    kind = format or _kind_of(file)
    if kind == "sheet":
        names, cells, records = sheet_rows(file, sheet)
        of = dict(zip(names, cells))
        return InMemory(name, names, len(records), of.__getitem__, first=2, records=records)
    if sheet is not None:
        raise DataError(f"{name}: not a workbook, so it has no sheets; leave sheet= out")
    data = head if len(head) < HEAD else file.path or file.read()
    if kind == "parquet":
        return _from_parquet(data, name)
    refuse_wide(name, head)
    if not (head if isinstance(data, str) else data).removeprefix(b"\xef\xbb\xbf").strip():
        raise DataError(f"{name}: the file is empty; nothing can be read from it")
    if kind in ("json", "jsonl"):
        text = decode(name, file.read() if isinstance(data, str) else data)
        return (_from_json if kind == "json" else _from_jsonl)(text, name, problems, base)
    separator = separator or ("\t" if kind == "tsv" else sniff_separator(head) or ",")
    return Delimited(name, data, separator, header, problems, base, head)


def _kind_of(file: OpenedFile) -> str:
    """The kind of a table file by its first bytes, then its suffix, then its first character."""
    if file.head[:4] == b"PAR1":
        return "parquet"
    return "sheet" if is_workbook(file) else FORMAT_OF.get(bare_suffix(file)) or _text_format(file.head)


def _text_format(head: bytes) -> str:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {b"{": "jsonl", b"[": "json"}.get(start, "csv")


def sniff_separator(head: bytes) -> str | None:
    """The separator that splits the first two records into equally many fields, and into the most; else None."""
    text = head.decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()][:2]
    best, most = None, 1
    for separator in SEPARATORS:
        sizes = {len(record) for record in csv.reader(lines, delimiter=separator)}
        if len(sizes) == 1 and (size := sizes.pop()) > most:
            best, most = separator, size
    return best


def from_frame(frame: Any) -> RowSource:
    if isinstance(frame, Mapping):
        columns = {str(name): _cells(values) for name, values in frame.items()}
        sizes = {name: len(values) for name, values in columns.items()}
        if len(set(sizes.values())) > 1:
            raise DataError(f"columns differ in length: {sizes}")
        return InMemory("<frame>", list(columns), next(iter(sizes.values()), 0), columns.__getitem__)
    import narwhals as nw
    import polars as pl

    try:
        table = nw.from_native(frame)
    except TypeError:
        raise TypeError(f"expected a path, an open file or a data frame, not {type(frame).__name__}") from None
    eager = table.collect() if isinstance(table, nw.LazyFrame) else table
    native = eager.to_native()
    if type(native).__module__.startswith("pyarrow"):
        native = pl.from_arrow(native)
    if isinstance(native, pl.DataFrame):
        return Lazy("<frame>", native.columns, native.lazy())
    return InMemory("<frame>", [str(name) for name in eager.columns], len(eager), lambda name: _cells(eager[name]))


def _cells(values: Any) -> Any:
    """The cells of a column as a numeric array if possible, else as a list."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iufb":
        refuse_masked_or_complex(values)
        return values
    if hasattr(values, "null_count") and values.dtype.is_numeric() and values.null_count() == 0:
        return values.to_numpy()
    return values.to_list() if hasattr(values, "to_list") else list(values)


def _from_parquet(source: str | bytes, name: str) -> RowSource:
    import polars as pl

    try:
        query = pl.scan_parquet(source if isinstance(source, str) else io.BytesIO(source), glob=False)
        return Lazy(name, query.collect_schema().names(), query, first=1)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise _not_parquet(name, error) from None


def _from_jsonl(text: str, name: str, problems: Problems, base: int) -> RowSource:
    values: list[Any] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                values.append(json.loads(line, parse_constant=_refuse_constant))
            except (ValueError, RecursionError) as error:
                values.append(None)
                problems.add(base + len(lines), "json", f"not JSON ({str(error)[:80]})", "write one object per line")
            else:
                _note_other(values[-1], base + len(lines), problems, "write one object per line")
            lines.append(number)
    return _from_objects(values, name, lines)


def _from_json(text: str, name: str, problems: Problems, base: int) -> RowSource:
    way_out = "write a list of objects: [{...}, {...}]"
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        if isinstance(_first_json(text), dict):
            return _from_jsonl(text, name, problems, base)  # JSON lines with the suffix of JSON
        raise DataError(f"{name}:{error.lineno}: not JSON ({error.msg}); {way_out}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: not JSON ({str(error)[:80]}); {way_out}") from None
    if isinstance(value, dict) and value and all(isinstance(column, list) for column in value.values()):
        return from_frame(value)
    if not isinstance(value, list):
        raise DataError(f"{name}: {quote(text.strip())} is not a list; {way_out}")
    for k, row in enumerate(value):
        _note_other(row, base + k, problems, way_out)
    return _from_objects(value, name, None)


def _first_json(text: str) -> Any:
    try:
        return json.loads(text.lstrip().split("\n", 1)[0])
    except (ValueError, RecursionError):
        return None


def _note_other(value: Any, place: int, problems: Problems, way_out: str) -> None:
    if not isinstance(value, dict):
        problems.add(place, "object", f"{quote(json.dumps(value))} is not an object", way_out)


def _from_objects(values: list[Any], name: str, lines: list[int] | None) -> RowSource:
    """A row per object; other values have already been reported, and are skipped."""
    rows = [value for value in values if isinstance(value, dict)]
    records = np.array([k for k, value in enumerate(values) if isinstance(value, dict)], np.int64)
    names = list(dict.fromkeys(key for row in rows for key in row))
    cells = lambda key: [_plain(row.get(key)) for row in rows]  # noqa: E731
    return InMemory(name, names, len(rows), cells, 1, records, lines)


def _plain(value: Any) -> Any:
    """Lists and objects inside a JSON row as text, since they cannot be names."""
    return json.dumps(value) if isinstance(value, dict | list) else value


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number")
