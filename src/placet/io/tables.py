"""Tables: CSV, tab-separated, JSON lines and Parquet files, and any data frame, as named columns with line numbers."""

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from placet.data import DataError
from placet.data.arrays import first_repeat
from placet.data.errors import one_of
from placet.io.files import NamedBytes, Source, bare_suffix, decode, first_lines, name_of, peek, read_bytes, writing
from placet.io.text import OnError, Problems, parse_decimal, quote

FORMATS = ("csv", "tsv", "jsonl", "parquet")
_FORMAT_OF = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
SUFFIXES = tuple(_FORMAT_OF)  # of tables


@dataclass
class Table:
    """Columns by name.  ``line(row)`` is where a row stands: its line in a text, or its number in a frame."""

    name: str
    names: list[str]
    n_rows: int
    cells: Callable[[str], list[Any]]
    line: Callable[[int], int]
    problems: Problems
    bad_rows: set[int] = field(default_factory=set)

    def column(self, name: str, way_out: str) -> list[Any]:
        """One column, text stripped of blanks around it, missing values ``None``."""
        if name not in self.names:
            raise DataError(f"{self.name}: column {name!r} is not there; the columns are {self.names}; {way_out}")
        return [_cell(value) for value in self.cells(name)]

    def reject(self, row: int, kind: str | None, text: str, way_out: str) -> None:
        """Note that a row cannot be used, once."""
        if row not in self.bad_rows:
            self.bad_rows.add(row)
            self.problems.add(self.line(row), kind, text, way_out)

    def numbers(self, name: str, way_out: str, *, positive: bool = False) -> list[float]:
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

    def labels(self, name: str, way_out: str) -> list[Any]:
        """One column as names; rows without one are noted."""
        values = self.column(name, way_out)
        for row, value in enumerate(values):
            if value is None:
                self.reject(row, name, f"{name} is missing", "fill it in")
        return values

    def good_rows(self) -> list[int]:
        """The rows that can be used, after reporting the others."""
        self.problems.close()
        return [row for row in range(self.n_rows) if row not in self.bad_rows]


class Sample(NamedTuple):
    """What a format is recognized by: the suffix and first lines of a text, or a table.

    ``source`` is what to read from the start; ``lines`` are the first that are neither blank nor comments, ``text`` is
    the head of the file, and ``table`` is the source as a table, where its suffix or first bytes say that it is one.
    """

    source: Any
    name: str
    suffix: str
    lines: list[str]
    text: str
    table: Table | None

    @property
    def first(self) -> str:
        """The first line, without its comment."""
        return self.lines[0].partition("#")[0] if self.lines else ""


def take_sample(source: Source, on_error: OnError) -> Sample:
    """A sample of a path or open file."""
    head, source = peek(source)
    suffix, name = bare_suffix(source), name_of(source)
    if suffix in SUFFIXES or head[:4] == b"PAR1":
        table = read_table(source, on_error)
        if isinstance(source, NamedBytes):
            source.seek(0)
        return Sample(source, name, suffix or ".parquet", [], "", table)
    return Sample(source, name, suffix, first_lines(head, 200), head.decode("utf-8-sig", errors="replace"), None)


def in_memory(source: Any) -> bool:
    """Whether ``source`` is a table already: a mapping of columns, a data frame, a ``Table``; no path or open file."""
    return not (isinstance(source, str | os.PathLike) or hasattr(type(source), "read"))


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip() or None
    if value is None or value != value or type(value).__name__ in ("NaTType", "NAType"):
        return None
    return value


def _quote_cell(value: Any) -> str:
    return "(missing)" if value is None else quote(value)


def as_number(value: Any) -> float | None:
    """A cell as a finite number, else ``None``; true and false are not numbers."""
    if isinstance(value, str):
        return parse_decimal(value)
    if value is None or isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return None
    try:
        return parse_decimal(repr(float(value)))
    except (TypeError, ValueError, OverflowError):
        return None


def read_table(
    source: Any,
    on_error: Any,
    format: str | None = None,
    *,
    header: Sequence[str] | None = None,
    separator: str | None = None,
) -> Table:
    """A path, open file, mapping of columns or data frame as a table.

    ``format`` is one of FORMATS (default: by the suffix, else CSV).  ``header`` names the columns of text that has no
    header.
    """
    if isinstance(source, Table):
        return source
    if in_memory(source):
        return _from_frame(source, Problems("<frame>", on_error, "row"))
    if format is not None:
        one_of(format, FORMATS, "format")
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


def _from_frame(frame: Any, problems: Problems) -> Table:
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


def _from_parquet(data: bytes, problems: Problems) -> Table:
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"{problems.name}: not a whole Parquet file ({reason}); fetch or write it again") from None
    return Table(
        problems.name, frame.columns, frame.height, lambda name: frame[name].to_list(), lambda row: row + 1, problems
    )


def _from_jsonl(text: str, problems: Problems) -> Table:
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
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


def _plain(value: Any) -> Any:
    """Lists and objects inside a JSON row are no names; shown as text where they must be shown."""
    return json.dumps(value) if isinstance(value, dict | list) else value


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number")


def _from_csv(text: str, separator: str, header: Sequence[str] | None, problems: Problems) -> Table:
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
    place: Sequence[int] = range(frame.height)
    if not filled.all():  # blank lines
        place = [row for row, has_cells in enumerate(filled.to_list()) if has_cells]
        frame = frame.filter(filled)
    starts: list[int] = []

    def line(row: int) -> int:
        if not starts:
            starts.extend(start for start, _ in _records(text, separator, problems.name))
        at = place[row] + (header is None)
        return starts[at] if at < len(starts) else at + 1

    return Table(problems.name, names, frame.height, lambda name: frame[name].to_list(), line, problems)


def _records(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """(first line, fields) of every record from the first that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    before, begun = 0, False
    try:
        for record in reader:
            begun = begun or bool(record)
            if begun:
                yield before + 1, record
            before = reader.line_num
    except csv.Error as error:
        raise DataError(f"{name}:{reader.line_num}: not CSV ({error}); close the quotes or remove the line") from None


def _first_record(text: str, separator: str, name: str) -> list[str]:
    _, record = next(_records(text, separator, name), (0, []))
    return [field.strip() for field in record]


def _record_by_record(text: str, separator: str, names: list[str], has_header: bool, problems: Problems) -> Table:
    rows: list[list[str]] = []
    lines: list[int] = []
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


def write_table(
    target: Source, columns: Mapping[str, Sequence[Any]], format: str | None = None, *, header: bool = True
) -> None:
    """Columns as CSV, tab-separated text, JSON lines or Parquet, as ``format`` or the suffix of ``target`` says."""
    import polars as pl

    kind = format or _FORMAT_OF.get(bare_suffix(target), "csv")
    one_of(kind, FORMATS, "format")
    try:
        frame = pl.DataFrame({name: list(values) for name, values in columns.items()}, strict=True)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise DataError(f"names of different types cannot share a column ({error}); write them as text") from None
    buffer = io.BytesIO()
    if kind == "parquet":
        frame.write_parquet(buffer)
    elif kind == "jsonl":
        frame.write_ndjson(buffer)
    else:
        frame.write_csv(buffer, separator="\t" if kind == "tsv" else ",", include_header=header)
    with writing(target) as file:
        file.write(buffer.getvalue())
