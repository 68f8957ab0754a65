"""Choices among alternatives: tables with a row per alternative (long) or per choice (wide).

A long table marks the alternative that was chosen in each choice set; a wide one names it, and has a column for each
attribute of each alternative, such as ``price_train`` and ``price_bus`` (or ``train_price``, ``price.train``, ...).
"""

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.data.arrays import Floats, Ints, offsets_from_sizes
from placet.data.parameters import with_checked_options
from placet.io.files import Source
from placet.io.surveys.best_worst import PEOPLE, SETS, join_cells
from placet.io.tables.cells import Column, as_number, repeated_pairs
from placet.io.tables.column_names import COUNTS, find_column, plain_name, split_names
from placet.io.tables.tables import Table, TableRows, read_table
from placet.io.text import OnError

ChoiceLayout = Literal["long", "wide"]
CHOSEN = ("chosen", "choice", "choose", "selected", "picked", "mode", "decision", "y")
CHOICE_SETS = ("choice_set", "chid", "choice_id", "situation", *SETS, "case", "case_id", "observation", "obs", "id")
ALTERNATIVES = ("alternative", "alt", "alt_id", "alternative_id", "option", "mode", "brand", "item")
COUNTERS = ("", "id", "index", "row", "row_id", "rownames", "unnamed0")
_MARKS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "no": 0.0, "yes": 1.0}
_NAME_THEM = (
    "name the columns with chosen=, choice_set= and alternative= (a row per alternative), or with chosen= alone "
    "if columns are named after the alternatives, such as price_train and price_bus (a row per choice)"
)
_OWN = "give each choice its own name, with agent= and choice_set="
_FORMS = (r"(?P<what>.+)[._:\- ](?P<alt>{})", r"(?P<alt>{})[._:\- ](?P<what>.+)", r"(?P<what>.*\D)(?P<alt>{})")
"""How columns of wide tables are named; the last, as in price1 and price2, for alternatives that are numbers."""


@dataclass(frozen=True, eq=False)
class ChoiceTable:
    r"""Choice sets: rows ``offsets[q]:offsets[q + 1]`` are the alternatives of set q, one of which is ``chosen``.

    ``attributes`` hold a column (rows,) each, ``case`` a column (sets,) each.  ``alternative`` (rows,) are codes of
    ``alternatives``, None if the table does not name them; ``agent`` (sets,) are codes of ``agents``, who chose.
    ``names`` (sets,) are those of the sets.

    >>> import io
    >>> from placet.io import read_choices
    >>> found = read_choices(io.StringIO("mode,price_bus,price_car\nbus,2,5\ncar,3,5\n"))
    >>> found.alternatives, found.chosen.tolist(), found.offsets.tolist()
    (('bus', 'car'), [True, False, False, True], [0, 2, 4])
    """

    chosen: NDArray[np.bool_]
    offsets: Ints
    attributes: dict[str, Floats]
    case: dict[str, Floats]
    weight: Floats
    alternative: Ints | None
    alternatives: tuple[str, ...]
    agent: Ints | None = None
    agents: tuple[Hashable, ...] = ()
    names: tuple[Hashable, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets) - 1


class _Roles(NamedTuple):
    chosen: str
    choice_set: str | None
    alternative: str | None
    agent: str | None
    weight: str | None


@with_checked_options
def read_choices(
    source: Source | Any,
    *,
    chosen: str | None = None,
    choice_set: str | None = None,
    alternative: str | None = None,
    agent: str | None = None,
    attributes: str | Sequence[str] | None = None,
    case: str | Sequence[str] = (),
    weight: str | None = None,
    layout: ChoiceLayout | None = None,
    ignore: str | Sequence[str] = (),
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> ChoiceTable:
    """Read choices from a table: a path, an open file, or a frame.

    Parameters
    ----------
    chosen : column that marks the chosen alternative with 1 (long), or names it (wide).
    choice_set, alternative : columns of the choice and of the alternative of each row (long).
    agent : column of who chose; choice sets need only differ within a person.
    attributes : columns of the alternatives' attributes; in a wide table without the alternatives' names (``price``).
        By default all numbers that differ between alternatives.  Text becomes an indicator of each level but the first.
    case : columns that describe the choice or the person, equal for all its alternatives.
    weight : column of how often a choice counts.
    layout : "long" or "wide", if both are possible.

    In a wide table, an alternative whose attributes are all empty was not available.

    Returns
    -------
    ChoiceTable
        The choices, their alternatives and attributes.

    >>> import io
    >>> wide = "mode,price_bus,price_car,income\\nbus,2,5,10\\ncar,3,5,40\\n"
    >>> found = read_choices(io.StringIO(wide), case="income")
    >>> found.alternatives, found.attributes["price"], found.chosen, found.case["income"]
    (('bus', 'car'), array([2., 5., 3., 5.]), array([ True, False, False,  True]), array([10., 40.]))
    """
    table = read_table(source, on_error, format, separator=separator, sheet=sheet).without(_names(ignore))
    given = {"choice_set": choice_set, "alternative": alternative, "agent": agent, "weight": weight}
    marker = chosen or table.find(CHOSEN)
    for name in (marker, *given.values(), *_names(case)):
        if name is not None:
            table.require(name, _NAME_THEM)
    if marker is None:
        raise DataError(f"{table.name}: which column says what was chosen? The columns are {table.names}; {_NAME_THEM}")
    rows = table.rows()
    if not len(rows):
        raise DataError(f"{table.name}: no rows; {_NAME_THEM}")
    wide = _wide_columns(table, rows, marker)
    roles = _find_roles(table, marker, given)
    if agent is None and roles.agent is not None and len(rows.column(roles.agent).values) == len(rows):
        roles = roles._replace(agent=None)  # a number of the row, not who chose
    if (layout or _layout(table, rows, roles, wide)) == "wide":
        return _from_wide(rows, roles._replace(choice_set=None, alternative=None), wide, attributes, _names(case))
    return _from_long(rows, roles, attributes, _names(case))


def _names(names: str | Sequence[str]) -> list[str]:
    return split_names(names) if names else []


def _find_roles(table: Table, chosen: str, given: Mapping[str, str | None]) -> _Roles:
    """The columns of all roles, given or found by their names, each at most once."""
    known = {"choice_set": CHOICE_SETS, "alternative": ALTERNATIVES, "agent": (*PEOPLE, "id"), "weight": COUNTS}
    rest = [name for name in table.names if name != chosen and name not in given.values()]
    found: dict[str, str | None] = {}
    for role, names in known.items():
        found[role] = given[role] or find_column(rest, names)
        rest = [name for name in rest if name != found[role]]
    return _Roles(chosen, **found)


def _layout(table: Table, rows: TableRows, roles: _Roles, wide: dict[str, dict[str, str]]) -> ChoiceLayout:
    long = all(_mark(value) is not None for value in rows.column(roles.chosen).values)
    if roles.choice_set is not None:
        column = rows.column(roles.choice_set)
        long &= len(column.values) < len(column)
    if long and roles.choice_set is not None and wide:
        if all(column == f"{what}{name}" for what, own in wide.items() for name, column in own.items()):
            return "long"  # x0 and x1 beside marks of 0 and 1 are two attributes
        raise DataError.of_ways(
            f"{table.name}: this may be a row per alternative (choice set {roles.choice_set!r}), or a row per choice "
            f"(attributes {', '.join(wide)}); say layout='long' or layout='wide'",
            ["layout='long'", "layout='wide'"],
        )
    if not long and not wide:
        raise DataError(
            f"{table.name}: {roles.chosen!r} neither marks rows with 0 and 1 in choice sets of several rows, nor names "
            f"alternatives that columns are named after; the columns are {table.names}; {_NAME_THEM}"
        )
    return "wide" if wide else "long"


def _mark(cell: Any) -> float | None:
    """1 for a cell that marks the chosen alternative, 0 for one that does not or is empty, else None."""
    return 0.0 if cell is None else _MARKS.get(cell_text(cell).lower())


def cell_text(cell: Any) -> str:
    """The name of an alternative or a level; 1.0 and 1 are the same."""
    number = as_number(cell)
    return str(cell) if number is None else f"{number:g}"


def by_number(name: str) -> tuple[float, str]:
    """A key that sorts names that are numbers by their values, before the others."""
    number = as_number(name)
    return math.inf if number is None else number, name


def _wide_columns(table: Table, rows: TableRows, chosen: str) -> dict[str, dict[str, str]]:
    """attribute -> alternative -> column: the attributes that have a column for every alternative.

    Alternatives that nobody chose are those that all these attributes have a column for.
    """
    names = {cell_text(value) for value in rows.column(chosen).values if value is not None}
    columns = [name for name in table.names if name != chosen]
    if not 1 < len(names) <= len(columns):
        return {}
    for form in _FORMS if all(name.isdigit() for name in names) else _FORMS[:2]:
        whole = {what: own for what, own in _by_attribute(columns, names, form).items() if set(own) == names}
        if not whole:
            continue
        others = _by_attribute(columns, None, form)
        known = {name.lower() for name in names}
        never = set.intersection(*({n for n in others[what] if n.lower() not in known} for what in whole))
        shared = names | never
        return {
            what: {n: (others[what] | own)[n] for n in sorted(shared, key=by_number)} for what, own in whole.items()
        }
    return {}


def _by_attribute(columns: Sequence[str], names: set[str] | None, form: str) -> dict[str, dict[str, str]]:
    """attribute -> alternative -> column for columns named in one form; ``names`` None: any alternative."""
    found: dict[str, dict[str, str]] = {}
    anything = r"\d+" if form is _FORMS[2] else r"[^._:\- ]+"
    for name in sorted(names) if names else [""]:
        pattern = re.compile(form.format(re.escape(name) if name else anything), re.IGNORECASE)
        for column in columns:
            if match := pattern.fullmatch(column):
                found.setdefault(match["what"], {}).setdefault(name or match["alt"], column)
    return found


def _from_wide(
    rows: TableRows,
    roles: _Roles,
    wide: dict[str, dict[str, str]],
    attributes: str | Sequence[str] | None,
    case: Sequence[str],
) -> ChoiceTable:
    table, wanted = rows.table, _names(attributes or ()) or list(wide)
    for name in wanted:
        if name not in wide:
            raise DataError(
                f"{table.name}: attribute {name!r} has no column for each alternative; those that have are {list(wide)}"
            )
    names = list(wide[wanted[0]])
    numbers = {column: rows.numbers(column, optional=True) for what in wanted for column in wide[what].values()}
    X = np.stack([np.stack([numbers[wide[what][n]] for n in names], axis=1) for what in wanted], axis=2)
    there: NDArray[np.bool_] = np.asarray(~np.isnan(X).all(axis=2))  # (choices, alternatives)
    half = (np.isnan(X) & there[:, :, None]).any(axis=(1, 2))
    rows.reject(half, "empty", "some attributes of an alternative are empty, and others are not", "fill them in")
    rows.reject(there.sum(axis=1) < 2, "alone", "fewer than two alternatives were available", "remove the choice")
    label = rows.labels(roles.chosen)
    at = label.map(lambda cell: -1 if cell is None else names.index(cell_text(cell)), np.int64)
    absent = ~there[np.arange(len(rows)), np.maximum(at, 0)] | (at < 0)
    said = lambda row: f"{roles.chosen} {rows.quote(roles.chosen, row)} has no attributes"  # noqa: E731
    rows.reject(absent, "absent", said, "fill them in")
    of_case = {own: values for name in case for own, values in levels_of(rows, name).items()}
    weight = np.ones(len(rows)) if roles.weight is None else rows.numbers(roles.weight, positive=True)
    agent = None if roles.agent is None else rows.labels(roles.agent)
    good = _some_rows(rows)
    shown = there[good]
    alternative = np.broadcast_to(np.arange(len(names)), shown.shape)
    note = table.note("choices, a row each", [*numbers, *case, *filter(None, roles)], [roles.chosen, *wanted, *of_case])
    found = ChoiceTable(
        (alternative == at[good][:, None])[shown],
        offsets_from_sizes(shown.sum(axis=1)),
        {what: X[good][:, :, k][shown] for k, what in enumerate(wanted)},
        {name: values[good] for name, values in of_case.items()},
        weight[good],
        alternative[shown],
        tuple(names),
        names=tuple((good + 1).tolist()),
        notes=(note,),
    )
    return _with_agents(found, agent, good)


def _from_long(
    rows: TableRows, roles: _Roles, attributes: str | Sequence[str] | None, case: Sequence[str]
) -> ChoiceTable:
    table = rows.table
    if roles.choice_set is None:
        raise DataError(f"{table.name}: no column says which rows are one choice; {_NAME_THEM}")
    agent = None if roles.agent is None else rows.labels(roles.agent)
    own_set = rows.labels(roles.choice_set)
    key = Column(*join_cells([own_set] if agent is None else [agent, own_set]))
    names = None if roles.alternative is None else rows.labels(roles.alternative)
    weight = np.ones(len(rows)) if roles.weight is None else rows.numbers(roles.weight, positive=True)
    marks = _check_sets(rows, roles, key, names)
    used = [name for name in roles if name]
    rest = [name for name in table.names if name not in (*used, *case) and plain_name(name) not in COUNTERS]
    wanted = [name for name in rest if rows.holds_numbers(name)] if attributes is None else _names(attributes)
    columns = {own: values for name in wanted for own, values in levels_of(rows, name).items()}
    of_case = {own: values for name in case for own, values in levels_of(rows, name).items()}
    for name in filter(None, (*case, roles.weight)):
        _reject_unequal(rows, name, key)
    good = _some_rows(rows)
    good = good[np.argsort(key.code[good], kind="stable")]
    offsets = offsets_from_sizes(np.unique(key.code[good], return_counts=True)[1])
    first = good[offsets[:-1]]
    inside = np.repeat(first, np.diff(offsets))
    fixed = [name for name, values in columns.items() if (values[good] == values[inside]).all()]
    notes = [table.note("choices, a row per alternative", [*used, *wanted, *case], [*used, *columns, *of_case])]
    if attributes is None and fixed:
        columns = {name: values for name, values in columns.items() if name not in fixed}
        notes.append(f"not used, being equal for all alternatives of a choice: {', '.join(fixed)} (see case=)")
    texts = [] if names is None else [cell_text(value) for value in names.values]
    present = sorted({texts[k] for k in np.unique(names.code[good]).tolist()} if names else (), key=by_number)
    code = np.array([present.index(text) if text in present else 0 for text in texts], np.int64)
    found = ChoiceTable(
        marks[good] == 1,
        offsets,
        {name: values[good] for name, values in columns.items()},
        {name: values[first] for name, values in of_case.items()},
        weight[first],
        None if names is None else code[names.code[good]],
        tuple(present),
        names=tuple(own_set.take(first)),
        notes=tuple(notes),
    )
    return _with_agents(found, agent, first)


def _check_sets(rows: TableRows, roles: _Roles, key: Column, names: Column | None) -> Floats:
    """1 for the chosen rows, 0 for the others; reject sets without exactly one, and alternatives that come twice."""
    column, name = rows.column(roles.chosen), roles.chosen
    marks = column.map(lambda cell: math.nan if _mark(cell) is None else _mark(cell), float)
    said = lambda row: f"{name} {rows.quote(name, row)} is not 0 or 1"  # noqa: E731
    rows.reject(np.isnan(marks), name, said, "write 1 for the alternative chosen, else 0")
    if names is not None and roles.alternative is not None:
        who = roles.alternative
        twice = repeated_pairs(key, names, np.arange(len(rows)))
        rows.reject(twice, "twice", lambda row: f"{who} {rows.quote(who, row)} is twice in one choice", _OWN)
    of_set = lambda value: np.bincount(key.code, value, len(key.values))[key.code]  # noqa: E731
    n_chosen = of_set(marks == 1)
    what = lambda row: f"choice {rows.quote(roles.choice_set or '', row)}"  # noqa: E731
    rows.reject(n_chosen > 1, "several", lambda row: f"{what(row)} has {n_chosen[row]:.0f} chosen rows", _OWN)
    rows.reject(n_chosen == 0, "none", lambda row: f"in {what(row)} nothing is chosen", "mark one row with 1")
    rows.reject(of_set(np.ones(len(rows))) < 2, "alone", lambda row: f"{what(row)} has one row", _OWN)
    if rows.table.problems.on_error == "skip":  # else the wrong row itself is named
        rows.reject(of_set(rows.bad) > 0, "rest", "another row of the choice is wrong", "correct that row")
    return marks


def _reject_unequal(rows: TableRows, name: str, key: Column) -> None:
    first, cell = np.zeros(len(key.values), np.int64), rows.column(name).code
    first[key.code[::-1]] = np.arange(len(key))[::-1]
    said = lambda row: f"{name} {rows.quote(name, row)} differs from that of another row of its choice"  # noqa: E731
    rows.reject(cell != cell[first[key.code]], name, said, "write one value for all rows of a choice")


def levels_of(rows: TableRows, name: str) -> dict[str, Floats]:
    """A column of numbers as it is; one of text as an indicator of each level but the first, ``name=level``."""
    rows.table.require(name, _NAME_THEM)
    column = rows.column(name)
    if any(as_number(value) is not None for value in column.values):
        return {name: rows.numbers(name, if_empty="fill it in, or ignore the column")}
    label = rows.labels(name)
    levels = sorted({cell_text(value) for value in label.values if value is not None})
    texts = label.map(cell_text, object)
    return {f"{name}={level}": (texts == level).astype(np.float64) for level in levels[1:]}


def _some_rows(rows: TableRows) -> Ints:
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{rows.name}: no choices are left; {_NAME_THEM}")
    return good


def _with_agents(found: ChoiceTable, agent: Column | None, first: Ints) -> ChoiceTable:
    """The table with the agent of every set, whose first rows are ``first``."""
    if agent is None:
        return found
    codes, numbers = np.unique(agent.code[first], return_inverse=True)
    return replace(found, agent=numbers.astype(np.int64), agents=tuple(agent.values[k] for k in codes.tolist()))
