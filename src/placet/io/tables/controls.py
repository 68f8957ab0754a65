"""Controls and times of tables: numeric columns, differences of two columns, and one-hot columns.

"bold"                      the column of that name; else the difference of "bold_a" and "bold_b"
"length_a - length_b"       the difference of two columns
"one-hot(slot_a - slot_b)"  for each value v except the smallest, 1 where slot_a is v, minus 1 where slot_b is v
"one-hot(slot)"             for each value v, 1 where slot is v; for two columns slot_a, slot_b as above
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.times import Times, time_column
from placet.io.tables.cells import as_number
from placet.io.tables.column_names import find_column, plain_name, split_names
from placet.io.tables.tables import TableRows

MOST_VALUES = 200
_ONE_HOT = re.compile(r"\s*one[-_ ]hot\s*\((.*)\)\s*", re.IGNORECASE)
_SIDES = (
    *(("_a", "_b"), ("1", "2"), ("_left", "_right"), ("_first", "_second"), ("_home", "_away")),
    *(("_winner", "_loser"), ("_white", "_black")),
)


class Term(NamedTuple):
    """A requested control: its name, one column or the two whose difference it is, and whether it is one-hot."""

    name: str
    columns: tuple[str, ...]
    one_hot: bool


def find_terms(names: Sequence[str], control: str | Sequence[str] | None) -> list[Term]:
    """The requested controls in terms of the columns of a table; text may name several, separated by commas."""
    return [_term(names, text) for text in split_names(() if control is None else control)]


def _term(names: Sequence[str], text: str) -> Term:
    inside = _ONE_HOT.fullmatch(text)
    name = (inside[1] if inside else text).strip()
    if name in names:
        return Term(name, (name,), inside is not None)
    left, minus, right = name.partition(" - ")
    if minus:
        pair = (left.strip(), right.strip())
    else:
        stem = plain_name(name)
        sides = ((f"{stem}{a}", f"{stem}{b}") for a, b in _SIDES)
        before = ((f"{a.strip('_')}_{stem}", f"{b.strip('_')}_{stem}") for a, b in _SIDES)
        both = ((find_column(names, [a]), find_column(names, [b])) for a, b in (*sides, *before))
        pair = next(((a, b) for a, b in both if a and b), (name, name))
    missing = [column for column in pair if column not in names]
    if missing:
        raise DataError(
            f"control {text!r}: column {missing[0]!r} is not there; the columns are {list(names)}; "
            'a control is such as "bold", "length_a - length_b" or "one-hot(slot_a - slot_b)"'
        )
    return Term(name, pair, inside is not None)


def control_table(rows: TableRows, terms: Sequence[Term]) -> dict[str, Floats]:
    """The columns (rows,) of the controls by name; rows without a number are rejected."""
    found: dict[str, Floats] = {}
    for term in terms:
        values = [_numbers(rows, name) for name in term.columns]
        if term.one_hot:
            found |= _one_hot(rows, term, values)
        else:
            found[term.name] = values[0] if len(values) == 1 else values[0] - values[1]
    return found


def row_terms(rows: TableRows, terms: Sequence[Term]) -> dict[str, Floats]:
    """`control_table` for rows that are compared with one another: the smallest value of a one-hot column is left out,
    since the columns would otherwise add up to 1 in every row.
    """
    found: dict[str, Floats] = {}
    for term in terms:
        columns = control_table(rows, [term])
        if term.one_hot and len(term.columns) == 1:
            del columns[next(iter(columns))]
        found |= columns
    return found


def _numbers(rows: TableRows, name: str) -> Floats:
    """A column as numbers, with 1 and 0 for true and false."""
    words = {"true": 1.0, "false": 0.0}
    said = rows.column(name).values
    if all(str(value).lower() in words for value in said if value is not None):
        flags = rows.column(name).map(lambda value: words.get(str(value).lower(), np.nan), float)
        rows.reject(np.isnan(flags), name, f"{name} is missing", "fill it in")
        return np.nan_to_num(flags, nan=0.0)
    return rows.numbers(name, "name the columns with control=")


def _one_hot(rows: TableRows, term: Term, values: Sequence[Floats]) -> dict[str, Floats]:
    """One-hot columns of whole numbers; for a difference, the smallest is left out, as it is implied by the others."""
    for name, column in zip(term.columns, values):
        say = partial(_not_whole, rows, name)
        rows.reject(column != np.floor(column), name, say, "round it, or use the number itself")
    used = np.concatenate([column[~rows.bad] for column in values])
    levels = np.unique(used[used == np.floor(used)])
    if len(levels) > MOST_VALUES:
        raise DataError(f"control one-hot({term.name}) has {len(levels)} values; at most {MOST_VALUES}: use the number")
    if len(values) == 2:
        levels = levels[1:]
    return {
        f"{term.name}={level:g}": np.subtract(*((column == level).astype(np.float64) for column in values))
        if len(values) == 2
        else (values[0] == level).astype(np.float64)
        for level in levels.tolist()
    }


def _not_whole(rows: TableRows, name: str, row: int) -> str:
    return f"{name} {rows.quote(name, row)} is not a whole number"


def read_times(rows: TableRows, name: str) -> Times:
    """A column of dates or numbers; rows without one are rejected, and get an arbitrary time."""
    column = rows.column(name, "name the column with time=")
    rows.reject(column.is_missing(), name, f"{name} is missing", "fill it in")
    values = [value for value in column.values if value is not None]
    numeric = all(as_number(value) is not None for value in values) and not all(_is_year(value) for value in values)
    parse = as_number if numeric else _date
    parsed = [None if value is None else parse(value) for value in column.values]
    wrong = np.array([value is None for value in parsed])[column.code]
    rows.reject(
        wrong, name, lambda row: f"{name} {rows.quote(name, row)} is neither a date nor a number", "write 2024-06-01"
    )
    some = next((value for value in parsed if value is not None), 0.0)
    filled = np.array([some if value is None else value for value in parsed])
    return filled[column.code]


def _is_year(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[12][0-9]{3}", value) is not None


def _date(value: Any) -> Any:
    try:
        return time_column([value], 1)[0]
    except DataError:
        return None
