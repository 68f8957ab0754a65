"""Columns of tables as codes of their distinct cells, so that each distinct cell is interpreted once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from placet.data.arrays import Floats, Ints, first_appearance, is_missing
from placet.io.text import parse_decimal

if TYPE_CHECKING:
    import polars as pl


SHORT = 1000
"""With fewer rows, Python encodes a text column faster than Polars plans it, which matters for wide tables."""


@dataclass(frozen=True)
class Column:
    """Cells as codes (rows,) of ``values``, the distinct cells in order of first appearance; a missing one is None.

    Iterating yields the cells themselves.  Text is stripped, and counts as missing if it is then empty.
    """

    code: NDArray[Any]
    values: list[Any]

    def __iter__(self) -> Iterator[Any]:
        return map(self.values.__getitem__, self.code.tolist())

    def __len__(self) -> int:
        return len(self.code)

    def map(self, judge: Callable[[Any], Any], dtype: Any) -> NDArray[Any]:
        """Apply ``judge`` to every cell, calling it once per distinct cell."""
        return np.array([judge(value) for value in self.values], dtype=dtype)[self.code]

    @property
    def codes_and_values(self) -> tuple[NDArray[Any], list[Any]]:
        """The codes and the values."""
        return self.code, self.values

    def take(self, rows: NDArray[Any]) -> "Column":
        """The selected rows."""
        return Column(self.code[rows], self.values)

    def is_missing(self) -> NDArray[np.bool_]:
        """Mask of the missing cells."""
        return np.array([value is None for value in self.values], dtype=bool)[self.code]


def strip(value: Any) -> Any:
    """A cell with its text stripped; ``None`` if it is missing or empty."""
    if isinstance(value, str):
        return value.strip() or None
    return None if is_missing(value) else value


def as_number(value: Any) -> float | None:
    """A cell as a finite number, or ``None``; booleans are not numbers."""
    if isinstance(value, str):
        return parse_decimal(value)
    if value is None or isinstance(value, bool | np.bool_):
        return None
    try:
        return parse_decimal(repr(float(value)))
    except (TypeError, ValueError, OverflowError):
        return None


def code_cells(cells: Any) -> Column:
    """The cells of a Polars series, an array or a sequence as a ``Column``.  O(rows)."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iufb" and cells.ndim == 1:
        return _code_numbers(cells)
    if type(cells).__module__.startswith("polars"):
        return _code_series(cells)
    return _code_objects(cells.tolist() if isinstance(cells, np.ndarray) else list(cells))


def _code_numbers(cells: NDArray[Any]) -> Column:
    if cells.dtype.kind in "iu" and len(cells):
        low, high = int(cells.min()), int(cells.max())
        if high - low <= 4 * len(cells) and high < 2**63:  # integers in a small range need no sorting
            return _in_order(cells.astype(np.int64) - low, list(range(low, high + 1)))
    values, code = np.unique(cells, return_inverse=True)
    return _in_order(code, [strip(value) for value in values.tolist()])


def _in_order(code: Ints, values: list[Any]) -> Column:
    """The column with its values in order of first appearance and equal ones merged."""
    order = first_appearance(code, len(values))
    place: dict[Any, int] = {}
    new = np.zeros(len(values), np.int32)
    for k in order.tolist():
        new[k] = place.setdefault(values[k], len(place))
    return Column(new[code], list(place))


def _code_objects(cells: list[Any]) -> Column:
    """Encode cells of any type; equal values such as 1 and 1.0 share a code."""
    index: dict[Any, int] = {}
    try:
        code = np.fromiter((index.setdefault(cell, len(index)) for cell in cells), np.int64, len(cells))
    except TypeError:  # lists and dictionaries are not names; they become text for messages
        return _code_objects([cell if isinstance(cell, str | int | float | None) else str(cell) for cell in cells])
    types = set(map(type, index))
    if bool in set(map(type, cells)) and (int in types or float in types):  # True equals 1, but is not a number
        return _code_objects([str(cell) if isinstance(cell, bool) else cell for cell in cells])
    place: dict[Any, int] = {}
    new = np.array([place.setdefault(strip(value), len(place)) for value in index], np.int32)
    return Column(new[code], list(place))


def _code_series(series: "pl.Series") -> Column:
    import polars as pl

    if series.dtype in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == pl.String and len(series) < SHORT:
        return _code_objects(series.to_list())
    if series.dtype == pl.String:
        distinct = series.unique(maintain_order=True).drop_nulls()
        code = series.cast(pl.Enum(distinct)).to_physical().cast(pl.Int64).fill_null(len(distinct)).to_numpy()
        values = [strip(value) for value in distinct.to_list()]
        return _in_order(code, [*values, None])
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        missing = series.is_null().to_numpy()
        found = _code_numbers(series.drop_nulls().to_numpy())
        if not missing.any():
            return found
        code = np.full(len(series), len(found.values))
        code[~missing] = found.code
        return _in_order(code, [*found.values, None])
    return _code_objects(series.to_list())


def as_numbers(cells: Any) -> Floats | None:
    """A column as numbers, NaN for other cells; ``None`` if the cells must be converted one by one."""
    if isinstance(cells, np.ndarray):
        return cells.astype(np.float64) if cells.dtype.kind in "iuf" else None
    if not type(cells).__module__.startswith("polars"):
        return None
    import polars as pl

    if cells.dtype == pl.String:  # Polars parses what ``parse_decimal`` does, plus nan and inf, which are not finite
        cells = cells.str.strip_chars().cast(pl.Float64, strict=False)
    return cells.cast(pl.Float64).fill_null(np.nan).to_numpy().copy() if cells.dtype.is_numeric() else None


def repeated_pairs(a: Column, b: Column, rows: Ints) -> NDArray[np.bool_]:
    """Mask (len(a),) of those ``rows`` whose pair of cells occurs in an earlier one of them.  O(rows log rows)."""
    pair = a.code[rows].astype(np.int64) * len(b.values) + b.code[rows]
    found = np.zeros(len(a), bool)
    ordered = np.sort(pair)
    if (ordered[1:] == ordered[:-1]).any():  # usually none, and sorting alone is faster
        order = np.argsort(pair, kind="stable")
        found[rows[order[1:][pair[order[1:]] == pair[order[:-1]]]]] = True
    return found


def join_columns(columns: list[Column]) -> Column:
    """Concatenate the columns of several parts."""
    if len(columns) == 1:
        return columns[0]
    index: dict[Any, int] = {}
    codes = []
    for column in columns:
        place = np.array([index.setdefault(value, len(index)) for value in column.values], np.int64)
        codes.append(place[column.code])
    return Column(np.concatenate(codes), list(index))
