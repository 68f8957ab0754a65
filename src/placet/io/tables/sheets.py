"""Workbooks: a sheet of an Excel or OpenDocument file as rows of text, as if it had been saved as CSV."""

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import first_repeat
from placet.io.compression import ZIP
from placet.io.files import OpenedFile, bare_suffix

if TYPE_CHECKING:
    import polars as pl

MOST_WAYS = 8
SHEET_SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def is_workbook(file: OpenedFile) -> bool:
    """Whether a file is a workbook, by its first bytes and the names of what is in it."""
    if file.head[:8] == _OLD_EXCEL:
        return True
    if file.head[:4] != ZIP:
        return False
    return any(name.startswith("xl/") for name in file.members) or "content.xml" in file.members


def sheet_rows(file: OpenedFile, sheet: str | None) -> tuple[list[str], list[Any], np.ndarray[Any, Any]]:
    """The names of the columns, their cells, and the number of each row below the header, from 0; blank rows are left
    out.

    ``sheet``: its name; needed if several sheets have cells.  The first row that is not empty is the header.
    """
    if not is_workbook(file):
        raise DataError(f"{file.name}: not a workbook, though its name ends in {bare_suffix(file)}; give its suffix")
    frame = _frame(file, sheet)
    header = [_text(value) for value in frame.row(0)]
    used = [k for k, name in enumerate(header) if name or frame[:, k].null_count() < len(frame)]
    names = [header[k] for k in used]
    if len(set(names)) != len(names):
        raise DataError(f"{file.name}:1: two columns are named {first_repeat(names)!r}; rename one")
    body = frame[1:, used]
    filled = np.zeros(len(body), bool)
    for column in body.iter_columns():
        filled |= column.is_not_null().to_numpy()
    return names, [column.filter(filled) for column in body.iter_columns()], np.flatnonzero(filled)


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _frame(file: OpenedFile, sheet: str | None) -> "pl.DataFrame":
    """All cells of a sheet as text, without names of columns."""
    import polars as pl

    try:
        import fastexcel
    except ImportError:
        raise DataError(
            f"{file.name}: workbooks need the package fastexcel; pip install 'placet[sheets]', or save the sheet as "
            "CSV UTF-8 and give that file"
        ) from None
    data = file.read()
    try:
        names = fastexcel.read_excel(data).sheet_names
        if sheet is not None and sheet not in names:
            raise DataError(f"{file.name}: there is no sheet {sheet!r}; the sheets are {names}")
        found = {name: _cells(pl, data, name) for name in (names if sheet is None else [sheet])}
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataError(
            f"{file.name}: not a whole workbook, or one with a password; save the sheet as CSV UTF-8 and give that file"
        ) from error
    filled = {name: frame for name, frame in found.items() if len(frame)}
    if not filled:
        raise DataError(f"{file.name}: {'the workbook' if sheet is None else f'sheet {sheet!r}'} is empty")
    if len(filled) > 1:
        ways = [f'sheet="{name}"' for name in filled][:MOST_WAYS]
        more = ", ..." if len(filled) > len(ways) else ""
        raise DataError.of_ways(f"{file.name}: {len(filled)} sheets have cells; say {' or '.join(ways)}{more}", ways)
    return next(iter(filled.values()))


def _cells(pl: Any, data: bytes, name: str) -> "pl.DataFrame":
    return pl.read_excel(
        io.BytesIO(data),
        sheet_name=name,
        has_header=False,
        read_options={"dtypes": "string"},
        infer_schema_length=None,
        drop_empty_rows=False,
        drop_empty_cols=False,
        raise_if_empty=False,
    )
