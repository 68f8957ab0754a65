"""Queries: rows with features and grades, in any order, grouped by query."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import breaking
from placet.data.arrays import (
    Floats,
    Ints,
    Lists,
    Names,
    as_csr,
    column,
    column_names,
    data_html,
    encode,
    integers,
    is_sparse,
    list_of_rows,
    numbers,
    offsets_from_sizes,
    offsets_of,
    read_only,
    refuse_masked_or_complex,
    rows_of,
    same_columns,
    set_columns,
    table,
    unique_names,
)
from placet.data.errors import DataError, one_of
from placet.data.rankings import Rankings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Missing = Literal["error", "keep"]


@dataclass(frozen=True, eq=False, repr=False)
class Queries:
    """Queries as frozen columns; rows ``offsets[q]:offsets[q + 1]`` are query ``q``.

    ``X`` (rows, features) is dense float32 or float64, or a SciPy CSR matrix.  ``grade`` (rows,): any floats, higher is
    better.  ``weight`` (queries,), ``qid`` (queries,) names.  ``row`` (rows,) is the caller's index of each row, so
    ``restore`` puts predictions in the caller's order.  ``relations``: named CSR matrices (rows, rows) whose entries
    stay within queries.  ``features``: column names, if the caller had any.
    ``notes``: sentences about how the data were read.

    >>> q = Queries.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], ["b", "a", "b"])
    >>> q, q.qid, q.grade, q.restore(q.grade)
    (Queries(2 queries, 3 rows, 1 features), ('b', 'a'), array([0., 2., 1.]), array([0., 1., 2.]))
    """

    X: Any
    grade: Floats
    offsets: Ints
    weight: Floats = None  # type: ignore[assignment]  # ones
    qid: Names = None  # type: ignore[assignment]  # 0, 1, ...
    relations: "Mapping[str, csr_matrix] | None" = None
    row: Ints = None  # type: ignore[assignment]  # 0, 1, ...
    features: Names | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        X, grade = _features(self.X), numbers(self.grade, "grade")
        n_rows = X.shape[0]
        offsets = offsets_of(self.offsets, n_rows)
        n = len(offsets) - 1
        weight = numbers(np.ones(n) if self.weight is None else self.weight, "weight", positive=True, unit="query")
        qid = unique_names(range(n) if self.qid is None else self.qid, "query")
        row = integers(np.arange(n_rows) if self.row is None else self.row, "row")
        rows, queries = f"X has {n_rows} rows", f"there are {n} queries"
        for name, values, size, unit in (
            ("grade", grade, n_rows, rows),
            ("row", row, n_rows, rows),
            ("weight", weight, n, queries),
            ("qid", qid, n, queries),
        ):
            if len(values) != size:
                raise DataError(f"{name} has {len(values)} entries; {unit}")
        features = None if self.features is None else unique_names(self.features, "feature")
        if features is not None and len(features) != X.shape[1]:
            raise DataError(f"{len(features)} feature names for {X.shape[1]} columns")
        set_columns(self, X=X, grade=grade, offsets=offsets, weight=weight, qid=qid, row=row, features=features)
        if self.relations is not None:
            query = list_of_rows(offsets)
            set_columns(self, relations={name: _relation(m, name, query) for name, m in self.relations.items()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        set_columns(self, **state)  # unpickled arrays are writable

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        grade: ArrayLike,
        qid: Sequence[Hashable] | NDArray[Any],
        *,
        weight: ArrayLike | None = None,
        relations: "Mapping[str, csr_matrix] | None" = None,
        missing: Missing = "error",
    ) -> "Queries":
        """Build queries from rows in any order; ``qid`` (rows,) names the query of each, as numbers or text.

        ``X`` is a table (dense, SciPy sparse, or any data frame, whose column names are kept).  ``weight`` has a number
        per query, in order of first appearance, or one per row, equal within a query.  ``relations`` are (rows, rows)
        matrices in the caller's order.  NaN in ``X`` is an error unless ``missing="keep"`` (trees can handle it);
        infinity always is.

        Returns
        -------
        Queries
            The rows, query by query, each from the best grade to the worst.

        >>> Queries.from_arrays([[0.1], [0.4], [0.2]], [0, 1, 0], qid=[7, 7, 8])
        Queries(2 queries, 3 rows, 1 features)
        """
        matrix, features = table(X)
        matrix = _features(matrix)
        _refuse_values(matrix, missing)
        code, names = _encode_qid(qid)
        n_rows = matrix.shape[0]
        if len(code) != n_rows:
            raise DataError(f"qid has {len(code)} entries; X has {n_rows} rows")
        grade = numbers(grade, "grade")
        if len(grade) != n_rows:
            raise DataError(f"grade has {len(grade)} entries; X has {n_rows} rows")
        offsets = offsets_from_sizes(np.bincount(code, minlength=len(names)))
        grouped = bool((code[1:] >= code[:-1]).all())
        row = np.arange(n_rows) if grouped else np.argsort(code, kind="stable")
        if not grouped:
            matrix, grade = matrix[row], grade[row]
            relations = relations and {name: as_csr(m, name)[row][:, row] for name, m in relations.items()}
        per_query: Any = _query_weight(weight, code, len(names))
        return cls(matrix, grade, offsets, per_query, names, relations, row, features)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        qid: str = "qid",
        grade: str = "label",
        features: Sequence[str] | None = None,
        weight: str | None = None,
        missing: Missing = "error",
    ) -> "Queries":
        """Build queries from any data frame or mapping of columns; ``features`` defaults to all other columns.

        Returns
        -------
        Queries
            The rows, in the order of their queries.

        >>> frame = {"qid": [1, 1, 2], "label": [0, 2, 1], "clicks": [3.0, 4.0, 5.0], "length": [10, 20, 30]}
        >>> queries = Queries.from_frame(frame)
        >>> queries, queries.features
        (Queries(2 queries, 3 rows, 2 features), ('clicks', 'length'))
        """
        own = (qid, grade) if weight is None else (qid, grade, weight)
        chosen = [name for name in column_names(frame) if name not in own] if features is None else list(features)
        columns = [np.asarray(column(frame, name)) for name in chosen]
        for name, values in zip(chosen, columns):
            if values.dtype.kind not in "iufb":
                example = next((value for value in values.tolist() if not isinstance(value, int | float)), None)
                raise DataError(
                    f"column {name!r} is not numbers ({example!r}); name the features with features=, or convert it"
                )
        narrow = bool(columns) and all(values.dtype == np.float32 for values in columns)
        X = np.column_stack(columns).astype(np.float32 if narrow else np.float64, copy=False) if columns else None
        if X is None:
            raise DataError(f"no features among the columns {column_names(frame)}; name them with features=")
        weights = None if weight is None else np.asarray(column(frame, weight), dtype=np.float64)
        found = cls.from_arrays(X, column(frame, grade), column(frame, qid), weight=weights, missing=missing)
        set_columns(found, features=unique_names(chosen, "feature"))
        return found

    @classmethod
    def from_preferences(
        cls,
        X: Any,
        better: ArrayLike,
        worse: ArrayLike,
        qid: Sequence[Hashable] | NDArray[Any],
        *,
        weight: ArrayLike | None = None,
        missing: Missing = "error",
    ) -> "Queries":
        """Build queries graded by preferences between rows of one query: row ``better[k]`` over row ``worse[k]``.

        The preferences of a query become its finest consistent ordered partition (`Rankings.from_preferences`), and the
        grade is the number of tiers below.  Rows without a preference are not comparable and are left out, with a note;
        a cycle, or a preference between two queries, is an error.

        Returns
        -------
        Queries
            The rows that preferences compare.

        >>> q = Queries.from_preferences([[1.0], [2.0], [3.0], [4.0]], [0, 0, 3, 3], [1, 2, 1, 2], list("aaaa"))
        >>> q.grade
        array([1., 0., 0., 1.])
        """
        over, under = integers(better, "better"), integers(worse, "worse")
        code, names = encode(qid, "query")
        n_rows = len(code)
        if len(over) != len(under):
            raise DataError(f"better has {len(over)} entries and worse {len(under)}")
        for what, rows in (("better", over), ("worse", under)):
            outside = (rows < 0) | (rows >= n_rows)
            if outside.any():
                k = int(np.argmax(outside))
                raise DataError(f"{what}[{k}] is row {rows[k]}; rows are 0 to {n_rows - 1} ({outside.sum()} such)")
        apart = code[over] != code[under]
        if apart.any():
            k = int(np.argmax(apart))
            first, second = names[code[over[k]]], names[code[under[k]]]
            raise DataError(
                f"preference {k} is between rows of {first!r} and {second!r} ({apart.sum()} such); "
                "compare rows of one query"
            )
        grade = np.full(n_rows, np.nan)
        place = lambda q: f"query {names[q]!r}, rows"  # noqa: E731
        for _, tiers in breaking.partitions(code[over], over, under, tuple(range(n_rows)), place):
            for k, tier in enumerate(tiers):
                grade[tier] = len(tiers) - 1 - k
        kept = np.flatnonzero(~np.isnan(grade))
        if not len(kept):
            raise DataError("no preferences, so no row is comparable with another")
        columns, features = table(X)
        chosen = columns[kept] if is_sparse(columns) else np.asarray(columns)[kept]
        own_qid = [names[k] for k in code[kept].tolist()]
        found = cls.from_arrays(chosen, grade[kept], own_qid, weight=weight, missing=missing)
        left = n_rows - len(kept)
        notes = (f"{left} of {n_rows} rows are in no preference and were left out",) if left else ()
        set_columns(found, row=kept[found.row], features=features, notes=notes)
        return found

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def query(self) -> Ints:
        """The query number of every row."""
        return list_of_rows(self.offsets)

    def lists(self) -> Lists:
        """Grades, offsets and weights, for losses.

        Returns
        -------
        Lists
            A list per query.

        >>> Queries.from_arrays([[1.0], [2.0]], [0, 1], ["q", "q"]).lists().grade
        array([0., 1.])
        """
        return Lists(self.grade, self.offsets, self.weight)

    def restore(self, values: ArrayLike) -> NDArray[Any]:
        """Put values of the rows back in the caller's order.

        Returns
        -------
        array
            The same values, in another order.

        >>> mixed = Queries.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 1], ["q", "r", "q"])
        >>> mixed.X[:, 0], mixed.restore(mixed.X[:, 0])
        (array([1., 3., 2.]), array([1., 2., 3.]))
        """
        values = np.asarray(values)
        back = np.empty_like(values)
        back[np.argsort(np.argsort(self.row))] = values
        return back

    def to_rankings(self) -> Rankings:
        """Each query as a ballot over its rows, tiers by grade; an item is (query, index of the row in it).

        Returns
        -------
        Rankings
            A ballot per query.

        >>> Queries.from_arrays([[1.0], [2.0]], [0, 1], ["q", "q"]).to_rankings().orders()
        [[('q', 1), ('q', 0)]]
        """
        order = np.lexsort((-self.grade, self.query))
        place = np.arange(len(self.grade)) - self.offsets[:-1][self.query]
        names = tuple(zip((self.qid[q] for q in self.query), place.tolist()))
        tier = -self.grade[order]
        whole = np.unique(tier, return_inverse=True)[1]
        return Rankings(order, whole, self.offsets, self.weight, items=names, score=self.grade[order])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    _repr_html_ = data_html

    def __repr__(self) -> str:
        return f"Queries({len(self)} queries, {len(self.grade)} rows, {self.n_features} features)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Queries):
            return NotImplemented
        if not (_same_matrix(self.X, other.X) and same_columns(self, other, but=("X", "relations"))):
            return False
        a, b = self.relations or {}, other.relations or {}
        return a.keys() == b.keys() and all(_same_matrix(a[name], b[name]) for name in a)

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator["Queries"]:
        return (self[q] for q in range(len(self)))

    def __getitem__(self, which: Any) -> "Queries":
        """The selected queries (index, slice, mask or indices); ``row`` still refers to the caller's rows."""
        chosen = np.atleast_1d(np.arange(len(self))[which])
        rows, offsets = rows_of(self.offsets, chosen)
        contiguous = len(rows) and len(rows) == rows[-1] - rows[0] + 1 and (np.diff(rows) == 1).all()
        at: Any = slice(int(rows[0]), int(rows[-1]) + 1) if contiguous else rows
        relations = self.relations and {name: m[at][:, at] for name, m in self.relations.items()}
        qid = tuple(self.qid[q] for q in chosen)
        return Queries(
            self.X[at], self.grade[at], offsets, self.weight[chosen], qid, relations, self.row[at], self.features
        )

    def __add__(self, other: "Queries") -> "Queries":
        """Concatenate the two; ``concat`` accepts more than two."""
        from placet.data.concatenation import concat

        return concat([self, other]) if isinstance(other, Queries) else NotImplemented

    def describe(self) -> dict[str, Any]:
        """Counts, grades, and queries without information (one row, or one grade).  O(rows).

        Returns
        -------
        dict
            Fact -> value.

        >>> Queries.from_arrays([[1.0], [2.0]], [0, 1], ["q", "q"]).describe()["rows"]
        2
        """
        size = np.diff(self.offsets)
        full = size > 0
        low, high = np.full(len(self), np.inf), np.full(len(self), -np.inf)
        if len(self.grade):
            starts = self.offsets[:-1][full]
            low[full], high[full] = np.minimum.reduceat(self.grade, starts), np.maximum.reduceat(self.grade, starts)
        values, counts = np.unique(self.grade, return_counts=True)
        entries = self.X.shape[0] * self.X.shape[1]
        stored = np.count_nonzero(self.X) if isinstance(self.X, np.ndarray) else self.X.nnz
        return {
            "kind": "queries",
            "queries": len(self),
            "weight": float(self.weight.sum()),
            "rows": len(self.grade),
            "features": self.n_features,
            "rows per query": (int(size.min()), float(np.median(size)), int(size.max())) if len(size) else (0, 0.0, 0),
            "grades": dict(zip(values.tolist(), counts.tolist()))
            if len(values) <= 32
            else f"{len(values)} different values",
            "queries with one row": int((size == 1).sum()),
            "queries with one grade": int((full & (low == high) & (size > 1)).sum()),
            "density": float(stored / entries) if entries else float("nan"),
        }


def _features(X: Any) -> Any:
    """Read-only float32 or float64 table, or CSR with sorted indices; other numbers become float64."""
    if is_sparse(X):
        refuse_masked_or_complex(X)
        csr = as_csr(X, "feature")
        if csr.dtype not in (np.float32, np.float64):
            csr = csr.astype(np.float64)
        if not csr.has_sorted_indices:
            csr = csr.sorted_indices()
        return csr
    refuse_masked_or_complex(X)
    try:
        array = np.asarray(X)
        array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"features must be numbers: {error}") from None
    if array.ndim != 2:
        raise DataError(f"features must be a table of rows x features, not of shape {array.shape}")
    return read_only(array)


def _refuse_values(X: Any, missing: Missing) -> None:
    one_of(missing, get_args(Missing), "missing")
    values = X.data if is_sparse(X) else X
    # one pass without allocation: if the sum is finite, so are all values; otherwise look (the sum may overflow)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.isinf(values) if missing == "keep" else ~np.isfinite(values)
    if bad.any():
        at = tuple(int(k) for k in np.argwhere(bad)[0])
        place = f"row {at[0]}, feature {at[1]}" if len(at) == 2 else f"stored value {at[0]}"
        raise DataError(
            f"{place}: {values[at]} ({bad.sum()} such values); replace them, or keep NaN for trees with missing='keep'"
        )


def _encode_qid(qid: Any) -> tuple[Ints, Names]:
    """Codes by first appearance, and names; integers are encoded run by run."""
    array = np.asarray(qid) if not isinstance(qid, list | tuple) or (len(qid) and isinstance(qid[0], int)) else None
    if array is None or array.dtype.kind not in "iu" or not array.size:
        return encode(qid, "qid")
    starts = np.flatnonzero(np.concatenate([[True], array[1:] != array[:-1]]))
    code, names = encode(array[starts], "qid")
    return np.repeat(code, np.diff(np.append(starts, len(array)))), names


def _query_weight(weight: ArrayLike | None, code: Ints, n: int) -> Floats | None:
    if weight is None:
        return None
    column = numbers(weight, "weight", positive=True, unit="entry")
    if len(column) == n:
        return column
    if len(column) != len(code):
        raise DataError(f"weight has {len(column)} entries; give one for each of {n} queries or of {len(code)} rows")
    first = np.full(n, -1)
    first[code[::-1]] = np.arange(len(code))[::-1]
    differs = column != column[first][code]
    if differs.any():
        k = int(np.argmax(differs))
        raise DataError(
            f"row {k}: weight {column[k]} differs from its query's first ({differs.sum()} such rows); "
            "a query has one weight"
        )
    return numbers(column[first], "weight")


def _relation(matrix: Any, name: str, query: Ints) -> "csr_matrix":
    n = len(query)
    if not is_sparse(matrix) or matrix.shape != (n, n):
        raise DataError(
            f"relation {name!r} must be a sparse matrix of shape ({n}, {n}), "
            f"not {getattr(matrix, 'shape', type(matrix).__name__)}"
        )
    csr = _features(matrix)
    if not np.isfinite(csr.data).all():
        raise DataError(f"relation {name!r} has {int((~np.isfinite(csr.data)).sum())} entries that are NaN or infinite")
    source = np.repeat(query, np.diff(csr.indptr))
    if (source != query[csr.indices]).any():
        raise DataError(
            f"relation {name!r} has {int((source != query[csr.indices]).sum())} entries between different queries"
        )
    return csr


def _same_matrix(a: Any, b: Any) -> bool:
    if is_sparse(a) != is_sparse(b) or a.shape != b.shape:
        return False
    return bool((a != b).nnz == 0) if is_sparse(a) else bool(np.array_equal(a, b, equal_nan=True))
