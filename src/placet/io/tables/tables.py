"""Tables: named columns of files and frames, encoded by distinct cells, with bad rows reported by line."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.io.escaping import in_sheet
from placet.io.files import Source, bare_suffix, first_lines, name_of, peek, writing
from placet.io.tables.cells import Column, as_number, as_numbers, code_cells, join_columns
from placet.io.tables.row_sources import FORMAT_OF, FORMATS, Delimited, RowSource, from_frame, in_memory, open_part
from placet.io.text import MOST_LISTED, OnError, Problems, plural, quote

SUFFIXES = tuple(FORMAT_OF)  # suffixes of table files
FIRST_CELLS = 100
_PART_BITS = 44  # a row of part k has the number (k << _PART_BITS) + its record number


@dataclass
class Table:
    """Named columns of one source, or of several with the same columns."""

    parts: list[RowSource]
    problems: Problems
    hidden: tuple[str, ...] = field(default=(), kw_only=True)  # columns to ignore

    def __post_init__(self) -> None:
        self.problems.locate = self.locate

    def without(self, names: Sequence[str]) -> "Table":
        """The table without some columns, which must exist."""
        for name in names:
            self.require(name, "ignore= names columns to pass over")
        return replace(self, hidden=(*self.hidden, *names)) if names else self

    @property
    def name(self) -> str:
        return self.problems.name

    @property
    def names(self) -> list[str]:
        return [name for name in self.parts[0].names if name not in self.hidden]

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
    """The evidence for recognizing a format: the suffix and first lines of a text, or the columns of a table.

    ``source`` can be read from the start; ``lines`` are the first lines that are neither blank nor comments, and
    ``text`` is the head of the file.  ``control``: the requested controls, whose columns have no other role.
    """

    source: Any
    name: str
    suffix: str
    lines: list[str]
    text: str
    table: Table | None
    on_error: OnError
    control: Any = None

    @property
    def sources(self) -> list[Any]:
        """All sources, each readable from the start."""
        return self.source if isinstance(self.source, list) else [self.source]

    @property
    def first(self) -> str:
        """The first line, without its comment."""
        return self.lines[0].partition("#")[0] if self.lines else ""


def take_sample(source: Any, on_error: OnError) -> FileHead:
    """Take a sample of a path, an open file, a frame, or a list of these."""
    first = source[0] if isinstance(source, list) else source
    if isinstance(first, Table) or in_memory(first):
        return FileHead(source, "<frame>", "", [], "", read_table(source, on_error), on_error)
    head, held = peek(first)
    source = [held, *source[1:]] if isinstance(source, list) else held
    suffix, name = bare_suffix(first), name_of(first)
    text = head.decode("utf-8-sig", errors="replace")
    table = read_table(source, on_error) if suffix in SUFFIXES or head[:4] == b"PAR1" else None
    return FileHead(source, name, suffix, first_lines(head, 200), text, table, on_error)


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
) -> Table:
    """Open a path, open file, mapping of columns or data frame, or a list of these, as one table.

    ``format`` is one of FORMATS (default: by the suffix, else by the content).  ``header`` names the columns of text
    without a header.  ``separator`` is by default the one of SEPARATORS that fits the first lines.
    """
    if isinstance(source, Table):
        return source
    if format is not None:
        one_of(format, FORMATS, "format")
    sources = source if isinstance(source, list) else [source]
    names = ["<frame>" if in_memory(one) else name_of(one) for one in sources]
    others = f" and {plural(len(names) - 1, 'other')}" if len(names) > 1 else ""
    problems = Problems(names[0] + others, on_error)
    parts = [
        from_frame(one) if in_memory(one) else open_part(one, format, header, separator, problems, k << _PART_BITS)
        for k, one in enumerate(sources)
    ]
    if not all(isinstance(part, Delimited) or getattr(part, "line_of", None) is not None for part in parts):
        problems.unit = "row"
    return Table(parts, problems)


def write_table(target: Source, columns: Mapping[str, Any], format: str | None = None, *, header: bool = True) -> None:
    """Write columns as CSV, tab-separated text, JSON or Parquet, by ``format`` or the suffix of ``target``."""
    import polars as pl

    kind = format or FORMAT_OF.get(bare_suffix(target), "csv")
    one_of(kind, FORMATS, "format")
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
