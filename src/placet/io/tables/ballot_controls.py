"""Controls of the rows of ballots, from the columns of a table.

In a long table (a row per ballot and item) a control is written as for votes (`placet.io.tables.controls`): "position",
"one-hot(position)", "shown - seen".  In a wide table a control has one column per item: "shown" means the columns
"shown_tea", "shown_milk", ...  (or "tea shown", "shown [tea]").

A column that is constant within each ballot, such as the voter's age, has no effect on the order by itself, but may
interact with items: "age * tea" is the age in the rows of tea and 0 elsewhere, and "age * items" is the same for each
item except the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placet.data import DataError, Rankings
from placet.data.arrays import Floats, Ints
from placet.io.tables.column_names import name_in_brackets, plain_name, split_names
from placet.io.tables.controls import MOST_VALUES, Term, find_terms, row_terms
from placet.io.tables.tables import TableRows
from placet.io.text import quote

EVERY = "items"
_TIMES = " * "


@dataclass
class ControlRequest:
    """A requested control: columns of the table, and the item whose rows it applies to (``EVERY``: each item)."""

    name: str
    term: Term | None  # None: a column for each item
    item: str | None = None


def find_controls(names: Sequence[str], control: str | Sequence[str] | None, wide: bool) -> list[ControlRequest]:
    """The requested controls in terms of the columns of a table; text may name several, separated by commas."""
    return [_parse_request(names, text, wide) for text in split_names(control or ())]


def _parse_request(names: Sequence[str], text: str, wide: bool) -> ControlRequest:
    first, times, item = text.rpartition(_TIMES)
    if times and text not in names:
        return ControlRequest(text, find_terms(names, [first.strip()])[0], item.strip())
    if wide and text not in names and item_columns(names, text):
        return ControlRequest(text, None)
    return ControlRequest(text, find_terms(names, [text])[0])


def item_columns(names: Sequence[str], stem: str) -> dict[str, str]:
    """Columns of one control, keyed by the plain name of their item: ``shown_tea``, ``Tea shown``, ``shown [tea]``."""
    plain = plain_name(stem)
    found: dict[str, str] = {}
    for name in names:
        own = plain_name(name)
        if name_in_brackets(name) != name.strip() and plain_name(name[: name.rindex("[")]) == plain:
            found[plain_name(name_in_brackets(name))] = name
        elif own.startswith(f"{plain}_"):
            found[own.removeprefix(f"{plain}_")] = name
        elif own.endswith(f"_{plain}"):
            found[own.removesuffix(f"_{plain}")] = name
    return found


def columns_of(names: Sequence[str], control: str | Sequence[str] | None, wide: bool) -> list[str]:
    """The columns of the table that the controls use."""
    found: list[str] = []
    for one in find_controls(names, control, wide):
        found += item_columns(names, one.name).values() if one.term is None else one.term.columns
    return list(dict.fromkeys(found))


@dataclass
class RowControls:
    """Values of the controls in the rows of a table, read before bad rows are reported."""

    rows: TableRows
    requests: list[ControlRequest]

    def __post_init__(self) -> None:
        self.values = [{} if one.term is None else row_terms(self.rows, [one.term]) for one in self.requests]

    def add_to(self, ballots: Rankings, row: Ints) -> Rankings:
        """The ballots with their controls added; ``row`` is the table row of each row of the ballots."""
        if not self.requests:
            return ballots
        found: dict[str, Floats] = {}
        for one, values in zip(self.requests, self.values):
            if one.term is None:
                found[one.name] = self._by_item(one.name, ballots, row)
            for name, column in values.items():
                found |= self._by_row(name, one, column[row], ballots)
        return replace(ballots, control=np.column_stack(list(found.values())), controls=tuple(found))

    def _by_row(self, name: str, one: ControlRequest, value: Floats, ballots: Rankings) -> dict[str, Floats]:
        if one.item is None:
            starts = ballots.offsets[:-1][np.diff(ballots.offsets) > 0]
            sizes = np.diff(ballots.offsets)[np.diff(ballots.offsets) > 0]
            if (value == np.repeat(value[starts], sizes)).all():
                example = quote(str(ballots.items[0]))[1:-1]
                raise DataError(
                    f"{self.rows.name}: control {one.name!r} is the same for all rows of a ballot, which moves no "
                    f'order; "{one.name} * {example}" is its effect on {example}, "{one.name} * {EVERY}" on each item'
                )
            return {name: value}
        names = [str(item) for item in ballots.items]
        chosen = range(1, len(names)) if one.item == EVERY else [k for k in range(len(names)) if names[k] == one.item]
        if not chosen:
            raise DataError(
                f"{self.rows.name}: control {one.name!r}: {one.item!r} is not an item; they are {names[:8]}"
            )
        if len(chosen) > MOST_VALUES:
            raise DataError(
                f"{self.rows.name}: control {one.name!r} has an effect for each of {len(chosen)} items; at most "
                f"{MOST_VALUES}: name the items"
            )
        return {f"{name}{_TIMES}{names[k]}": np.where(ballots.item == k, value, 0.0) for k in chosen}

    def _by_item(self, stem: str, ballots: Rankings, row: Ints) -> Floats:
        """Values of a control with one column per item; items on the ballot must have a number."""
        columns, found = item_columns(list(self.rows.cells), stem), np.zeros(len(row))
        by_item = np.split(np.argsort(ballots.item, kind="stable"), np.cumsum(np.bincount(ballots.item))[:-1])
        for item, own in zip(ballots.items, by_item):
            if not len(own):
                continue
            if (name := columns.get(plain_name(str(item)))) is None:
                raise DataError(
                    f"{self.rows.name}: control {stem!r} has no column for the item {item!r}; those found are "
                    f"{list(columns.values())}"
                )
            values = self.rows.numbers(name, optional=True)
            self.rows.table.problems.close()
            found[own] = values[row[own]]
            if (missing := np.isnan(found[own])).any():
                line = self.rows.line(int(row[own[np.argmax(missing)]]))
                raise DataError(
                    f"{self.rows.name}:{line}: {name} is empty, but {item!r} is on the "
                    f"ballot ({missing.sum()} such cells); fill it in"
                )
        return found
