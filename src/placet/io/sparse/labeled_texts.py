"""Tables of texts and their labels: a column of text, and a column with the names of each text's labels."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import is_missing
from placet.data.parameters import with_checked_options
from placet.io.files import Source
from placet.io.tables.column_names import find_column, split_names
from placet.io.tables.tables import Table, TableRows, read_table
from placet.io.text import OnError

TEXTS = ("text", "body", "content", "document", "message", "description", "abstract", "title")
LABELS = ("labels", "tags", "label", "tag", "categories", "category", "topics")
DELIMITERS = (";", "|", ",")
"""What may stand between the labels of a cell."""

LabelSet = tuple[str, ...]


@dataclass(frozen=True, repr=False)
class LabeledTexts:
    """Texts, and the names of the labels of each; ``labels`` is None for texts to score.

    >>> LabeledTexts(("My card was charged twice", "Hi"), (("billing", "refund"), ())).labels
    (('billing', 'refund'), ())
    """

    texts: tuple[str, ...]
    labels: tuple[LabelSet, ...] | None = None
    column: str | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        count = "" if self.labels is None else f", {len(set().union(*self.labels))} labels"
        return f"LabeledTexts({len(self)} texts{count})"


@with_checked_options
def read_labeled_texts(
    source: Source | Any,
    *,
    text: str | None = None,
    labels: str | None = None,
    delimiter: str | None = None,
    labeled: bool = True,
    ignore: str | Sequence[str] = (),
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> LabeledTexts:
    """Read a column of texts and a column of their labels, for `LabelRanker`.

    Parameters
    ----------
    text, labels : the columns; by default found by their names (``TEXTS``, ``LABELS``).  A cell of labels is a list
        (Parquet, JSON), or text such as ``billing; refund`` or ``["billing", "refund"]``; an empty one is no label.
    delimiter : what stands between the labels of a cell; by default the one of ``; | ,`` that occurs in the column.
    labeled : False for texts to score, which need no labels.
    ignore : columns to ignore.
    separator, format : of the file, if they cannot be inferred from its first lines and suffix.
    sheet : the sheet of a workbook, by name; needed if several have cells.

    Returns
    -------
    LabeledTexts
        The texts, and the names of the labels of each.

    >>> import io
    >>> read_labeled_texts(io.StringIO("text,tags\\nMy card was charged twice,billing; refund\\nHi,\\n")).labels
    (('billing', 'refund'), ())
    """
    table = read_table(source, on_error, format, separator=separator, sheet=sheet)
    table = table.without(split_names(ignore)) if ignore else table
    own = text or _find(table, TEXTS, "text")
    used = [own, labels or _find(table, LABELS, "labels", other=own)] if labeled else [own]
    for name in used:
        table.require(name, "name the columns with text= and labels=")
    if len(set(used)) < len(used):
        raise DataError(f"{table.name}: the column {own!r} cannot be both the text and the labels; name two columns")
    rows = table.rows(*used)
    texts = _texts(rows, own)
    sets = _label_sets(rows, used[1], delimiter) if labeled else None
    good = rows.good_rows().tolist()
    if not good:
        raise DataError(f"{table.name}: no texts")
    found = None if sets is None else tuple(sets[k] for k in good)
    note = table.note("texts with labels" if labeled else "texts", used)
    return LabeledTexts(tuple(texts[k] for k in good), found, own, (note,))


def _find(table: Table, known: tuple[str, ...], role: str, other: str | None = None) -> str:
    name = find_column([name for name in table.names if name != other], known)
    if name is None:
        raise DataError(
            f"{table.name}: which column holds the {role}? The columns are {table.names}; name it with {role}="
        )
    return name


def _cells(rows: TableRows, name: str) -> list[Any]:
    """The cells of a column as they are: lists stay lists."""
    cells: list[Any] = []
    for part in rows.cells[name]:
        cells += part.to_list() if hasattr(part, "to_list") else list(part)
    return cells


def _texts(rows: TableRows, name: str) -> list[str]:
    cells = _cells(rows, name)
    missing = np.array([is_missing(cell) or (isinstance(cell, str) and not cell.strip()) for cell in cells], bool)
    rows.reject(missing, "text", f"{name} is missing", "write a text, or leave the row out")
    other = np.array([not isinstance(cell, str) for cell in cells], bool) & ~missing
    if other.any():
        raise DataError(
            f"{rows.name}: {name!r} holds {cells[int(np.argmax(other))]!r}, which is not text ({int(other.sum())} such "
            "rows); name a column of text"
        )
    return ["" if cell is None else str(cell) for cell in cells]


def _label_sets(rows: TableRows, name: str, delimiter: str | None) -> list[LabelSet]:
    """The labels of every row."""
    cells = [_as_list(cell) for cell in _cells(rows, name)]
    words = [cell for cell in cells if isinstance(cell, str)]
    own = _delimiter(words, rows.name, name) if delimiter is None else delimiter
    sets = [_names(cell.split(own) if isinstance(cell, str) and own else cell) for cell in cells]
    twice = np.array([len(set(names)) < len(names) for names in sets], bool)
    rows.reject(twice, "twice", lambda row: f"{name} {rows.quote(name, row)}: a label occurs twice", "keep one of each")
    return sets


def _as_list(cell: Any) -> list[Any] | str:
    """The labels of a cell, or its text if they are still to be split."""
    if hasattr(cell, "to_list"):
        cell = cell.to_list()
    if isinstance(cell, list | tuple):
        return list(cell)
    if isinstance(cell, str) and cell.strip()[:1] == "[":
        try:
            listed = json.loads(cell)
        except ValueError:
            return cell
        return listed if isinstance(listed, list) else cell
    return cell if isinstance(cell, str) else [cell]


def _names(cell: "Iterable[Any] | str") -> LabelSet:
    listed = [cell] if isinstance(cell, str) else cell
    return tuple(str(one).strip() for one in listed if not is_missing(one) and str(one).strip())


def _delimiter(cells: Sequence[str], file: str, name: str) -> str:
    """The only one of DELIMITERS in the cells; empty if there is none, and so one label in each cell."""
    found = [mark for mark in DELIMITERS if any(mark in cell for cell in cells)]
    if len(found) > 1:
        example = next(cell for cell in cells if any(mark in cell for mark in found))
        ways = [f'delimiter="{mark}"' for mark in found]
        raise DataError.of_ways(
            f"{file}: {' and '.join(map(repr, found))} occur in {name!r} ({example!r:.60}): which one stands between "
            f"labels? Say {' or '.join(ways)}",
            ways,
        )
    return found[0] if found else ""
