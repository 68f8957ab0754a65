"""Tables: named columns of files and frames, encoded by distinct cells, with bad rows reported by line."""

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.escaping import in_sheet
from placet.io.files import OpenedFile, Source, bare_suffix, first_lines, name_of, opened, writing
from placet.io.tables.cells import Column, as_number, as_numbers, code_cells, join_columns
from placet.io.tables.column_names import plain_name
from placet.io.tables.row_sources import FORMAT_OF, FORMATS, Delimited, RowSource, from_frame, in_memory, open_part
from placet.io.tables.sheets import is_workbook
from placet.io.text import MOST_LISTED, OnError, Problems, plural, quote

SUFFIXES = tuple(FORMAT_OF)  # suffixes of table files
FIRST_CELLS = 100
_PART_BITS = 44  # a row of part k has the number (k << _PART_BITS) + its record number


@dataclass
class Table:
    """Named columns of one source, or of several with the same columns.

    ``layout`` is what the format found in the columns, for its reader.
    """

    parts: list[RowSource]
    problems: Problems
    hidden: tuple[str, ...] = field(default=(), kw_only=True)  # columns to ignore
    layout: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.problems.locate = self.locate

    def without(self, names: Sequence[str]) -> "Table":
        """The table without some columns, which must exist."""
        new = [name for name in names if name not in self.hidden]
        for name in new:
            self.require(name, "ignore= names columns to pass over")
        return replace(self, hidden=(*self.hidden, *new)) if new else self

    @property
    def name(self) -> str:
        return self.problems.name

    @cached_property
    def names(self) -> list[str]:
        return [name for name in self.parts[0].names if name not in self.hidden]

    @cached_property
    def plain_names(self) -> dict[str, str]:
        """The columns by their plain names; of two with one plain name, the first."""
        return {plain_name(name): name for name in reversed(self.names)}

    def find(self, known: Iterable[str]) -> str | None:
        """The column with the first of the ``known`` names that occurs, or None."""
        return next((self.plain_names[name] for name in known if name in self.plain_names), None)

    def require(self, name: str, way_out: str) -> None:
        """Raise a ``DataError`` unless there is such a column."""
        for part, known in zip(self.parts, self._names_in_parts):
            if name not in known:
                raise DataError(f"{part.name}: column {name!r} is not there; the columns are {part.names}; {way_out}")

    @cached_property
    def _names_in_parts(self) -> list[frozenset[str]]:
        return [frozenset(part.names) for part in self.parts]

    def rows(self, *names: str, distinct: bool = False) -> "TableRows":
        """The rows with the given columns (default: all); ``distinct``: equal rows may be merged and counted."""
        wanted = list(names or self.names)
        loaded = [part.load(wanted, distinct) for part in self.parts]
        place = np.concatenate([records + (k << _PART_BITS) for k, (_, records, _) in enumerate(loaded)])
        counts = [np.ones(len(records), np.int64) if n is None else n for _, records, n in loaded]
        cells = {name: [columns[k] for columns, _, _ in loaded] for k, name in enumerate(wanted)}
        return TableRows(self, cells, place, np.concatenate(counts))

    def note(self, kind: str, used: Sequence[str], words: Sequence[str] | None = None) -> str:
        """A note on how columns were read: "read as votes: model_a, model_b, winner; ignored: date, judge".

        ``words`` replace the names of the columns used.
        """
        taken = set(used)
        ignored = [name for name in (*self.names, *self.hidden) if name not in taken]
        said = f"read as {kind}: {_list(used if words is None else words)}"
        return f"{said}; ignored: {_list(ignored)}" if ignored else said

    def locate(self, places: Sequence[int]) -> list[tuple[str, int]]:
        """The source and line of each row."""
        result: dict[int, tuple[str, int]] = {}
        for k, part in enumerate(self.parts):
            own = sorted({place for place in places if place >> _PART_BITS == k})
            lines = part.lines([place - (k << _PART_BITS) for place in own])
            result |= {place: (part.name, line) for place, line in zip(own, lines)}
        return [result[place] for place in places]


def _list(names: Sequence[str], most: int = 8) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


@dataclass
class TableRows:
    """Some columns of a table.  Row ``r`` represents ``count[r]`` equal rows, the first of them at ``place[r]``."""

    table: Table
    cells: dict[str, list[Any]]
    place: Ints
    count: Ints
    _columns: dict[str, Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bad = np.zeros(len(self.place), bool)

    def __len__(self) -> int:
        return len(self.place)

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def names(self) -> list[str]:
        return list(self.cells)

    def line(self, row: int) -> int:
        """The line (or row number) of a row."""
        return self.table.locate([int(self.place[row])])[0][1]

    def column(self, name: str, way_out: str = "") -> Column:
        """One column, with text stripped and missing values as ``None``."""
        if name not in self.cells:
            self.table.require(name, way_out)
        if name not in self._columns:
            self._columns[name] = join_columns([code_cells(cells) for cells in self.cells[name]])
        return self._columns[name]

    def labels(self, name: str, way_out: str = "") -> Column:
        """One column as names; rows without one are rejected."""
        column = self.column(name, way_out)
        self.reject(column.is_missing(), name, f"{name} is missing", "fill it in")
        zero = column.map(lambda value: isinstance(value, str) and "\0" in value, bool)
        self.reject(zero, name, f"{name} holds a zero byte", "remove it")
        return column

    def numbers(
        self, name: str, way_out: str = "", *, positive: bool = False, optional: bool = False, if_empty: str = ""
    ) -> Floats:
        """One column as finite numbers; rows with anything else are rejected, and get 0 here.

        If ``optional``, an empty cell is NaN; otherwise ``if_empty`` says what to do about it.
        """
        if name not in self.cells:
            self.table.require(name, way_out)
        values = self._numbers(name)
        wrong = ~np.isfinite(values) | (values < 0 if positive else False)
        if optional and wrong.any():
            wrong &= ~self.column(name).is_missing()
        elif if_empty and wrong.any():
            self.reject(wrong & self.column(name).is_missing(), "empty", f"{name} is empty", if_empty)
        kind = "a finite number that is not negative" if positive else "a finite number"
        self.reject(
            wrong, name, lambda row: f"{name} {self.quote(name, row)} is not {kind}", f"write {name} as a plain decimal"
        )
        values[wrong] = 0
        return values

    def _numbers(self, name: str) -> Floats:
        """One column as numbers, NaN where a cell is not a number."""
        parts = [as_numbers(cells) for cells in self.cells[name]]
        if any(part is None for part in parts):
            return self.column(name).map(_number_or_nan, float)
        found = [part for part in parts if part is not None]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def holds_numbers(self, name: str) -> bool:
        """Whether a column contains any number; the first cells usually suffice."""
        first = (as_numbers(cells[:FIRST_CELLS]) for cells in self.cells[name])
        return any(part is not None and np.isfinite(part).any() for part in first) or bool(
            np.isfinite(self._numbers(name)).any()
        )

    def holds_float32(self, name: str) -> bool:
        """Whether a column is float32."""
        return all(str(getattr(cells, "dtype", "")).lower() == "float32" for cells in self.cells[name])

    def quote(self, name: str, row: int) -> str:
        """A cell as it appears in a message."""
        column = self.column(name)
        value = column.values[column.code[row]]
        return "(missing)" if value is None else quote(value)

    def reject(self, where: Any, kind: str | None, text: str | Callable[[int], str], way_out: str) -> None:
        """Mark rows (a mask, or one row) as bad and report the problem; each row is reported once."""
        rows = np.flatnonzero(where) if isinstance(where, np.ndarray) else np.array([where])
        rows = rows[~self.bad[rows]]
        if not len(rows):
            return
        self.bad[rows] = True
        first = int(rows[np.argmin(self.place[rows])])
        said = text if isinstance(text, str) else text(first)
        self.table.problems.add(int(self.place[first]), kind, said, way_out, int(self.count[rows].sum()))
        for row in rows[np.argsort(self.place[rows], kind="stable")][1:MOST_LISTED].tolist():
            self.table.problems.list_line(int(self.place[row]), text if isinstance(text, str) else text(row), way_out)

    def good_rows(self) -> Ints:
        """The rows that are not bad, after raising or warning about the others."""
        self.table.problems.close()
        return np.flatnonzero(~self.bad)


@dataclass
class FileHead:
    """The evidence for recognizing a format: the suffix and first bytes of a file, or the columns of a table.

    ``sources`` can be read from the start, and the first of them is open.  ``options`` are those given for the reader:
    a format that looks at columns uses them as the reader would.  ``table`` is None until the columns are looked at.
    ``named``: the format is given, so that all columns that its reader would accept match, in any order.
    """

    sources: list[Any]
    on_error: OnError
    options: Mapping[str, Any]
    name: str = "<frame>"
    suffix: str = ""
    head: bytes = b""
    table: Table | None = None
    named: bool = False

    @property
    def is_table(self) -> bool:
        """Whether the type of the source, the suffix or the first bytes say that this is a table."""
        first = self.sources[0]
        if not isinstance(first, OpenedFile):
            return True
        return self.suffix in SUFFIXES or self.head[:4] == b"PAR1" or is_workbook(first)

    @cached_property
    def text(self) -> str:
        """The first bytes as text."""
        return self.head.decode("utf-8-sig", errors="replace")

    @cached_property
    def lines(self) -> list[str]:
        """The first lines that are neither blank nor comments."""
        return first_lines(self.head, 200)

    @cached_property
    def first(self) -> str:
        """The first line, without its comment."""
        return self.lines[0].partition("#")[0] if self.lines else ""

    def open_table(self) -> Table:
        """Open the sources as a table, to look at its columns and then to read it."""
        sources = self.sources if len(self.sources) > 1 else self.sources[0]
        self.table = read_table(sources, self.on_error, **self.pick("separator", "sheet"))
        return self.table

    def pick(self, *names: str) -> dict[str, Any]:
        """The values of these options of the reader; None if they are not given."""
        return {name: self.options.get(name) for name in names}

    def with_layout(self, layout: Any) -> Any:
        """What the reader takes: the table if its columns were looked at, else the files; with what was found there."""
        found = self.table or self.sources[0]
        if layout is not None:
            found.layout = layout
        return found if self.table or len(self.sources) == 1 else self.sources


@contextlib.contextmanager
def open_head(sources: list[Any], on_error: OnError, options: Mapping[str, Any] | None = None) -> Iterator[FileHead]:
    """Open the first of the sources (paths, open files or frames) to recognize its format, and then to read it."""
    given = options or {}
    if in_memory(sources[0]):
        yield FileHead(sources, on_error, given)
        return
    with opened(sources[0]) as file:
        yield FileHead([file, *sources[1:]], on_error, given, file.name, bare_suffix(file), file.head)


def _number_or_nan(cell: Any) -> float:
    number = as_number(cell)
    return float("nan") if number is None else number


def read_table(
    source: Any,
    on_error: OnError,
    format: str | None = None,
    *,
    header: Sequence[str] | None = None,
    separator: str | None = None,
    sheet: str | None = None,
) -> Table:
    """Open a path, open file, mapping of columns or data frame, or a list of these, as one table.

    ``format`` is one of FORMATS (default: by the suffix, else by the content).  ``header`` names the columns of text
    without a header.  ``separator`` is by default the one of SEPARATORS that fits the first lines.  ``sheet`` is the
    name of a sheet of a workbook.
    """
    if isinstance(source, Table):
        return source
    if format is not None:
        one_of(format, FORMATS, "format")
    sources = source if isinstance(source, list) else [source]
    names = ["<frame>" if in_memory(one) else name_of(one) for one in sources]
    others = f" and {plural(len(names) - 1, 'other')}" if len(names) > 1 else ""
    problems = Problems(names[0] + others, on_error)
    parts = []
    for k, one in enumerate(sources):
        if in_memory(one):
            parts.append(from_frame(one))
            continue
        with opened(one) as file:
            parts.append(open_part(file, format, header, separator, problems, k << _PART_BITS, sheet))
    if not all(isinstance(part, Delimited) or getattr(part, "line_of", None) is not None for part in parts):
        problems.unit = "row"
    return Table(parts, problems)


def write_table(target: Source, columns: Mapping[str, Any], format: str | None = None, *, header: bool = True) -> None:
    """Write columns as CSV, tab-separated text, JSON or Parquet, by ``format`` or the suffix of ``target``."""
    import polars as pl

    kind = format or FORMAT_OF.get(bare_suffix(target), "csv")
    one_of(kind, FORMATS, "format")
    if kind == "sheet":
        raise DataError(f"{name_of(target)}: workbooks are not written; write .csv and open that")
    try:
        frame = pl.DataFrame(
            {
                name: values if isinstance(values, np.ndarray | pl.Series) else list(values)
                for name, values in columns.items()
            },
            strict=True,
        )
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise DataError(f"names of different types cannot share a column ({error}); write them as text") from None
    buffer = io.BytesIO()
    if kind == "parquet":
        frame.write_parquet(buffer)
    elif kind == "jsonl":
        frame.write_ndjson(buffer)
    elif kind == "json":
        frame.write_json(buffer)
    else:
        frame = frame.rename({name: in_sheet(name) for name in frame.columns}).with_columns(
            pl.col(pl.String).map_elements(in_sheet, return_dtype=pl.String)
        )
        frame.write_csv(buffer, separator="\t" if kind == "tsv" else ",", include_header=header)
    with writing(target) as file:
        file.write(buffer.getvalue())
