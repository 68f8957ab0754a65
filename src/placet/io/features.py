"""Queries as tables: a row per document with a query, a grade and a column per feature (or one column of lists)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Queries
from placet.data.arrays import Floats, set_columns
from placet.data.engines.memory import refuse_dense
from placet.data.parameters import with_checked_options
from placet.data.queries import Missing
from placet.io.files import Source
from placet.io.tables.column_names import ABOUT, find_roles, plain_name, roles_by_column, split_names
from placet.io.tables.controls import find_terms, row_terms
from placet.io.tables.tables import FileHead, Table, TableRows, read_table, write_table
from placet.io.text import OnError, parse_whole, plural

# Column names that are recognized by default.
QIDS = ("qid", "query_id", "queryid", "query", "search_id", "srch_id", "topic", "topic_id", "group", "group_id")
LABELS = ("label", "grade", "relevance", "relevance_label", "rel", "target", "judgment", "judgement", "y")
KNOWN = {"qid": QIDS, "label": LABELS}
_NAME_THEM = "name the columns with qid=, label= and features="
_KEEP_THEM = 'fill it in, keep empty cells for trees with missing="keep"'


class FeatureColumns(NamedTuple):
    """The columns of queries: of the query, the grade (rows to score may have none), the weight, and the features."""

    qid: str
    label: str | None
    weight: str | None = None
    features: tuple[str, ...] = ()

    def roles(self) -> dict[str, str]:
        """The role of each column: the option of the reader that names it."""
        return roles_by_column(self._asdict())


def looks_like_features(head: FileHead) -> FeatureColumns | None:
    """Match a table with a query, a label, and other columns."""
    keys = None if head.table is None else find_roles(head.table, KNOWN, head.pick(*KNOWN))
    if head.table is None or keys is None:
        return None
    chosen = head.pick("weight", "features")
    found = _find(head.table, keys["qid"], keys["label"], **chosen, ignore=head.options.get("ignore", ()))
    return found if found.features or head.named else None


def _find(
    table: Table,
    qid: str,
    label: str | None,
    weight: str | None,
    features: str | Sequence[str] | None,
    ignore: str | Sequence[str],
) -> FeatureColumns:
    """The columns of queries, with the features that are given, or else all columns that do not describe a row."""
    rest = features if features is not None else _others(table, (qid, label, weight, *split_names(ignore)))
    return FeatureColumns(qid, label, weight, tuple(split_names(rest)))


def _others(table: Table, used: Sequence[str | None]) -> list[str]:
    return [name for name in table.names if name not in used and plain_name(name) not in ABOUT]


@with_checked_options
def read_features(
    source: Source | Any,
    *,
    qid: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    ignore: str | Sequence[str] = (),
    missing: Missing = "error",
    graded: bool = True,
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Queries:
    """Read queries from a table with a row per document: a path, an open file, or a frame.

    Parameters
    ----------
    qid, label : columns of the query and of the grade; by default found by their names (``QIDS``, ``LABELS``).
    features : columns of the features, or one column of lists; by default all numeric columns except those that
        describe a row (``id``, ``date``, ...).  ``notes`` list the columns that were not used.
    weight : column with the weight of a row's query.
    ignore : columns to ignore.
    missing : "keep" reads empty cells as NaN (for trees); "error" refuses them.
    graded : False for rows to score, which need no grades: they are 0 if there is no column of grades.
    separator, format : of the file, if they cannot be inferred from its first lines and suffix.
    sheet : the sheet of a workbook, by name; needed if several have cells.

    Features that are all float32 stay float32.  Query names that are whole numbers become ``int``.

    Returns
    -------
    Queries
        Rows with features, query by query.

    >>> read_features({"qid": [1, 1, 2], "label": [2, 0, 1], "length": [3.0, 1.0, 2.0], "bm25": [1.0, 5.0, 4.0]})
    Queries(2 queries, 3 rows, 2 features)
    """
    return read_controlled(
        source,
        (),
        qid=qid,
        label=label,
        features=features,
        weight=weight,
        ignore=ignore,
        missing=missing,
        graded=graded,
        separator=separator,
        sheet=sheet,
        format=format,
        on_error=on_error,
    )[0]


def read_controlled(
    source: Source | Any,
    control: str | Sequence[str],
    *,
    qid: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    ignore: str | Sequence[str] = (),
    missing: Missing = "error",
    graded: bool = True,
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> tuple[Queries, dict[str, Floats]]:
    """Queries as from `read_features`, and columns (rows,) of controls by name, in the order of the queries' rows.

    ``control``: columns that may have affected the grades ("position", "one-hot(position)", "shown - seen"); they are
    not features, unless ``features`` names them too.
    """
    table = read_table(source, on_error, format, separator=separator, sheet=sheet)
    terms = find_terms(table.names, control or None)
    beside = [name for term in terms for name in term.columns]
    layout: FeatureColumns | None = table.layout
    if layout is None:
        qid = qid or table.find(QIDS) or "qid"
        label = label or table.find(LABELS) or ("label" if graded else None)
        layout = _find(table, qid, label, weight, features, [*split_names(ignore), *beside])
    qid, label, weight, chosen = layout.qid, layout.label, layout.weight, list(layout.features)
    used = [qid, *((label,) if label else ()), *((weight,) if weight else ()), *chosen]
    for name in used:
        table.require(name, _NAME_THEM)
    rows = table.rows(*dict.fromkeys([*used, *beside]))
    query = rows.labels(qid)
    grade = rows.numbers(label) if label else np.zeros(len(rows))
    weights = None if weight is None else rows.numbers(weight, positive=True)
    controls = row_terms(rows, terms)
    X, names = _matrix(rows, chosen, features is not None, missing)
    good = rows.good_rows()
    if not len(good) or not names:
        raise DataError(f"{table.name}: no rows with features; {_NAME_THEM}")
    whole = len(good) == len(rows)
    found = Queries.from_arrays(
        X if whole else X[good],
        grade[good],
        query.code[good],
        weight=None if weights is None else weights[good],
        missing=missing,
    )
    keys = [name for name in used if name not in chosen]
    own = chosen if len(chosen) == 1 else list(names)
    said = [*keys, plural(len(names), "feature"), *((plural(len(controls), "control"),) if controls else ())]
    note = table.note("queries", [*keys, *own, *beside], said)
    set_columns(found, qid=_names([query.values[k] for k in found.qid]), features=names, notes=(note,))  # type: ignore[call-overload]
    placed = {name: column[good][found.row] for name, column in controls.items()}
    for name, column in placed.items():
        if (column == column[found.offsets[found.query]]).all():
            raise DataError(
                f"{table.name}: control {name!r} is the same for all rows of a query, which cannot change its order; "
                "leave it out"
            )
    return found, placed


def _names(values: list[Any]) -> tuple[Any, ...]:
    """Names of queries; as in LETOR text, they become ``int`` if all are whole numbers."""
    numbers = [parse_whole(value) if isinstance(value, str) else value for value in values]
    same = all(isinstance(n, int) and str(n) == str(value) for n, value in zip(numbers, values))
    return tuple(numbers if same else values)


def _matrix(rows: TableRows, chosen: list[str], given: bool, missing: Missing) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The features (rows, features) and their names; columns without any number are skipped, unless ``given``."""
    if len(chosen) == 1 and (lists := _lists(rows, chosen[0])) is not None:
        return lists, tuple(f"{chosen[0]}{k + 1}" for k in range(lists.shape[1]))
    columns, names = [], []
    for name in chosen:
        if given or rows.holds_numbers(name):
            columns.append(rows.numbers(name, optional=missing == "keep", if_empty=_KEEP_THEM))
            names.append(name)
    dtype = np.float32 if names and all(rows.holds_float32(name) for name in names) else np.float64
    X = np.empty((len(rows), len(names)), dtype)
    for k, column in enumerate(columns):
        X[:, k] = column
    return X, tuple(names)


def _lists(rows: TableRows, name: str) -> NDArray[Any] | None:
    """A column of equally long lists of numbers as a matrix; ``None`` if it is not a column of lists."""
    import polars as pl

    parts = []
    for cells in rows.cells[name]:
        if not isinstance(cells, pl.Series) or cells.dtype.base_type() not in (pl.List, pl.Array):
            return None
        sizes = cells.list.len() if cells.dtype.base_type() is pl.List else None
        if sizes is not None and (sizes.n_unique() != 1 or sizes.null_count()):
            raise DataError(f"{rows.table.name}: lists of {name} differ in length; give every row as many features")
        flat = cells.explode().to_numpy()
        parts.append(flat.reshape(len(cells), -1))
    return np.concatenate(parts)


def write_features(queries: Queries, target: Source, *, format: str | None = None) -> None:
    """Write queries as rows ``qid, label`` and a column per feature, in the caller's order.

    Read back they are equal if the features have names (else they are called ``feature1``, ...) and weights are 1 or
    read with ``weight``.

    >>> import io
    >>> import placet
    >>> file = io.BytesIO()
    >>> write_features(placet.Queries.from_arrays([[1.5], [0.5]], [1, 0], ["q", "q"]), file, format="csv")
    >>> print(file.getvalue().decode())
    qid,label,feature1
    q,1.0,1.5
    q,0.0,0.5
    """
    order = np.argsort(queries.row, kind="stable")
    X = queries.X[order]
    refuse_dense(X, "write LETOR text (.letor), which holds what is not 0")
    X = X if isinstance(X, np.ndarray) else X.toarray()
    query = queries.query[order]
    names = queries.features or [f"feature{k + 1}" for k in range(X.shape[1])]
    columns: dict[str, Any] = {"qid": [queries.qid[k] for k in query.tolist()], "label": queries.grade[order]}
    if (queries.weight != 1).any():
        columns["weight"] = queries.weight[query]
    write_table(target, columns | {str(name): X[:, k] for k, name in enumerate(names)}, format)
