"""Label ranking: a table of cases with features, and of each case an order of labels, the same for all cases.

A case becomes a list with a row for every label that it orders.  The columns of a row are, for each label l, a constant
(``constant:l``) and every feature x of the case (``x:l``), which are 0 in the rows of other labels: a linear score of
them is a linear model of its own for each label.
"""

import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, offsets_from_sizes
from placet.data.parameters import with_checked_options
from placet.io.files import Source
from placet.io.surveys.choice_tables import COUNTERS, by_number, cell_text, levels_of
from placet.io.tables.column_names import plain_name, split_names
from placet.io.tables.tables import Table, TableRows, read_table
from placet.io.text import OnError, parse_tiers

_RANK_OF = re.compile(r"\s*rank[ _-]+(?=\S)", re.IGNORECASE)
"""The start of a column's name that is followed by the label whose rank it has."""
ORDERS = ("order", "ranking", "label_ranking", "ranked", "preference")
_NAME_THEM = 'name the column of the order ("a > b > c") with order=, or the columns of ranks with order="first,second"'


class CaseColumns(NamedTuple):
    """The labels, and the features of a case, of columns that `read_label_orders` made."""

    labels: tuple[str, ...]
    features: tuple[str, ...]

    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        of_features = (f"{name}:{label}" for name in self.features for label in self.labels)
        return (*(f"constant:{label}" for label in self.labels), *of_features)


def case_columns(names: Sequence[Hashable] | None) -> CaseColumns | None:
    """The labels and features behind the names of columns; None if they are not those of a label ranking.

    >>> case_columns(("constant:a", "constant:b", "age:a", "age:b"))
    CaseColumns(labels=('a', 'b'), features=('age',))
    """
    own = [str(name) for name in names or ()]
    labels = tuple(name.removeprefix("constant:") for name in own if name.startswith("constant:"))
    if len(labels) < 2:
        return None
    ends = own[len(labels) :: len(labels)]
    found = CaseColumns(labels, tuple(name.removesuffix(f":{labels[0]}") for name in ends))
    return found if found.names() == tuple(own) else None


@with_checked_options
def read_label_orders(
    source: Source | Any,
    *,
    order: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    like: Sequence[Hashable] | None = None,
    ignore: str | Sequence[str] = (),
    graded: bool = True,
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Queries:
    """Read cases and their orders of labels as queries, one for each case, which every ranker can learn from.

    Parameters
    ----------
    order : column of orders such as ``a > b = c``, or several columns with the rank of a label each (1 the best; the
        label is the column's name without ``rank_``).  Labels that a case does not order have no row in its list.
    features : columns of the features of a case; by default all other numbers.  Text becomes an indicator of each
        level but the first.
    like : ``features`` of queries read before, as those of a fitted ranker: the same labels and features are read.
    graded : False for cases to score, which need no orders.

    Returns
    -------
    Queries
        A list of labels per case, whose features are those of the case for each label.

    >>> import io
    >>> rows = read_label_orders(io.StringIO("age,order\\n30,tea > milk\\n50,milk > tea\\n"))
    >>> rows.features, rows.grade
    (('constant:milk', 'constant:tea', 'age:milk', 'age:tea'), array([0., 1., 1., 0.]))
    """
    table = read_table(source, on_error, format, separator=separator, sheet=sheet)
    table = table.without(split_names(ignore)) if ignore else table
    known = None if like is None else case_columns(like)
    if like is not None and known is None:
        raise ValueError(f"like= must be the columns of a label ranking, not {list(like)[:5]}")
    columns = _order_columns(table, order, graded)
    rows = table.rows()
    grade, labels = _grades(rows, columns, known) if graded else _no_grades(rows, known)
    X, names = _features(rows, columns, features, known)
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{table.name}: no cases; {_NAME_THEM}")
    own = CaseColumns(labels, names)
    used = [*columns, *(name.partition("=")[0] for name in names)]
    note = table.note("cases, each with an order of labels", used, [*columns, *names])
    lists = _expanded(X[good], grade[good], own)
    return Queries(*lists, qid=tuple((good + 1).tolist()), features=own.names(), notes=(note,))


def orders_of(queries: Queries, scores: Floats) -> list[tuple[str, ...]]:
    """The labels of each case, the one with the highest score first, of queries that `read_label_orders` made.

    Returns
    -------
    list of tuple
        An order of labels per case.

    >>> import io
    >>> rows = read_label_orders(io.StringIO("age,order\\n30,tea > milk\\n50,milk > tea\\n"))
    >>> orders_of(rows, np.array([0.1, 0.7, 0.4, 0.2]))
    [('tea', 'milk'), ('milk', 'tea')]
    """
    known = case_columns(queries.features)
    if known is None:
        raise ValueError("these queries are no cases of a label ranking; read them with read_label_orders")
    label = np.asarray(queries.X[:, : len(known.labels)].argmax(axis=1)).ravel()
    order = np.lexsort((-scores, queries.query))
    names = [known.labels[k] for k in label[order]]
    return [tuple(names[a:b]) for a, b in zip(queries.offsets[:-1], queries.offsets[1:])]


def _order_columns(table: Table, order: str | Sequence[str] | None, graded: bool) -> list[str]:
    """The column of orders, or those of ranks; none if they are not given and rows need no grades."""
    if order is None:
        own = table.find(ORDERS)
        ranks = [name for name in table.names if _RANK_OF.match(name)]
        found = [own] if own is not None else ranks if len(ranks) > 1 else []
    else:
        found = split_names(order)
    for name in found if order is not None and graded else ():
        table.require(name, _NAME_THEM)
    if graded and not found:
        raise DataError(f"{table.name}: which column has the orders? The columns are {table.names}; {_NAME_THEM}")
    return [name for name in found if name in table.names]


def _grades(rows: TableRows, columns: Sequence[str], known: CaseColumns | None) -> tuple[Floats, tuple[str, ...]]:
    """(cases, labels): higher is better, NaN where a case does not order the label; and the labels."""
    if len(columns) == 1:
        grade, labels = _from_texts(rows, columns[0], known)
    else:
        values = [rows.numbers(name, optional=True) for name in columns]
        named = [_RANK_OF.sub("", name) or name for name in columns]
        if known is not None and set(named) != set(known.labels):
            raise DataError(f"{rows.name}: the ranks are of {named}; the model orders {list(known.labels)}")
        labels = tuple(named) if known is None else known.labels
        grade = -np.stack([values[named.index(label)] for label in labels], axis=1)
    few = (~np.isnan(grade)).sum(axis=1) < 2
    rows.reject(few, "few", "fewer than two labels are ordered", "order two or more, or remove the case")
    return grade, labels


def _from_texts(rows: TableRows, name: str, known: CaseColumns | None) -> tuple[Floats, tuple[str, ...]]:
    column = rows.labels(name)
    parsed: list[Any] = ["missing" if value is None else parse_tiers(str(value)) for value in column.values]
    listed = [[] if isinstance(tiers, str) else [label for tier in tiers for label in tier] for tiers in parsed]
    labels = tuple(sorted({one for names in listed for one in names}, key=by_number)) if known is None else known.labels
    place = {label: k for k, label in enumerate(labels)}
    table = np.full((len(parsed), len(labels)), np.nan)
    wrong: list[str] = []
    for k, tiers in enumerate(parsed):
        unknown = [label for label in listed[k] if label not in place]
        twice = len(set(listed[k])) < len(listed[k])
        wrong.append(
            tiers if isinstance(tiers, str)
            else f"label {unknown[0]!r} is not one of the model's {list(labels)}" if unknown
            else "a label occurs twice" if twice else ""
        )  # fmt: skip
        for depth, tier in enumerate(() if wrong[-1] else tiers):
            for label in tier:
                table[k, place[label]] = -depth
        if not wrong[-1]:
            table[k] += len(tiers) - 1
    bad = np.array([bool(words) for words in wrong])[column.code]
    said = lambda row: f"{name} {rows.quote(name, row)}: {wrong[int(column.code[row])]}"  # noqa: E731
    rows.reject(bad, name, said, "write it as a > b > c")
    return table[column.code], labels


def _no_grades(rows: TableRows, known: CaseColumns | None) -> tuple[Floats, tuple[str, ...]]:
    if known is None:
        raise ValueError("cases without orders are read like= the columns of a fitted ranker")
    return np.zeros((len(rows), len(known.labels))), known.labels


def _features(
    rows: TableRows, used: Sequence[str], features: str | Sequence[str] | None, known: CaseColumns | None
) -> tuple[Floats, tuple[str, ...]]:
    """The features (cases, features) and their names."""
    if known is not None:
        columns = {name: _known_feature(rows, name) for name in known.features}
    else:
        rest = [n for n in rows.table.names if n not in used and plain_name(n) not in COUNTERS]
        wanted = [n for n in rest if rows.holds_numbers(n)] if features is None else split_names(features)
        columns = {own: values for name in wanted for own, values in levels_of(rows, name).items()}
    return np.column_stack([np.zeros((len(rows), 0)), *columns.values()]), tuple(columns)


def _known_feature(rows: TableRows, name: str) -> Floats:
    column, sign, level = name.rpartition("=")
    if name in rows.table.names or not sign or column not in rows.table.names:
        rows.table.require(name, "it is a feature of the model")
        return rows.numbers(name, if_empty="fill it in")
    return np.where(rows.labels(column).map(cell_text, object) == level, 1.0, 0.0)


def _expanded(X: Floats, grade: Floats, columns: CaseColumns) -> tuple[Any, Floats, Ints]:
    """Features, grades and offsets of queries with a row for every label that a case orders."""
    from scipy.sparse import csr_matrix

    n_labels, width = len(columns.labels), 1 + len(columns.features)
    case, label = np.nonzero(~np.isnan(grade))
    data = np.column_stack([np.ones(len(X)), X])[case]
    indices = label[:, None] + n_labels * np.arange(width)
    shape = (len(case), n_labels * width)
    table = csr_matrix((data.ravel(), indices.ravel(), width * np.arange(len(case) + 1)), shape)
    offsets = offsets_from_sizes(np.bincount(case, minlength=len(X)))
    return table, grade[case, label], offsets
