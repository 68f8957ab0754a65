"""What rankers ask of rows: queries from columns, the columns and the row order of the caller, finite scores."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import DataError, Queries
from placet.data.arrays import encode, numbers
from placet.data.queries import Missing

if TYPE_CHECKING:
    import polars

ScoreColumn = NDArray[np.float64]


def as_queries(X: Any, y: Any, qid: Any, weight: ArrayLike | None = None, missing: Missing = "error") -> Queries:
    """Return ``Queries`` unchanged, or build them from columns; raise if something is missing."""
    if isinstance(X, Queries):
        if y is not None or qid is not None or weight is not None:
            raise ValueError("Queries hold their grades, query ids and weights; give them alone")
        return X
    if y is None or qid is None:
        raise ValueError(
            "give y (grades) and qid (the query of every row), or Queries; scikit-learn passes qid on only after "
            "sklearn.set_config(enable_metadata_routing=True)"
        )
    return Queries.from_arrays(X, y, qid, weight=weight, missing=missing)


def queries_of_sizes(group: ArrayLike, qid: Any, y: Any) -> NDArray[np.int64]:
    """The query of every row, from the sizes of consecutive queries; raise a ``DataError`` if they are not that."""
    size = np.asarray(group)
    if qid is not None:
        raise ValueError("give qid (the query of every row) or group (sizes of consecutive queries), not both")
    if size.ndim != 1 or size.dtype.kind not in "iuf" or not (size == np.floor(size)).all() or (size < 0).any():
        raise DataError(f"group must hold the sizes of consecutive queries, whole numbers, not {group!r:.60}")
    n_rows = 0 if y is None else len(y)
    if size.sum() != n_rows:
        raise DataError(f"the {len(size)} sizes of group have the sum {size.sum():g}; there are {n_rows} rows")
    return np.repeat(np.arange(len(size)), size.astype(np.int64))


def row_weights(weight: ArrayLike | None, qid: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Weights of rows that differ within a query; None if there are none, or if they are weights of queries."""
    if weight is None or qid is None or np.shape(weight) != (n_rows,):
        return None
    code, names = encode(qid, "qid")
    own = numbers(weight, "weight", positive=True, unit="row")
    first = np.zeros(len(names))
    first[code[::-1]] = own[::-1]
    if len(code) != n_rows or (own == first[code]).all():
        return None
    return own


def best_rows(queries: Queries, s: ScoreColumn, k: int, in_queries: bool) -> "polars.DataFrame":
    """The k best rows of every query, best first, from scores in the order of the queries.

    ``row`` is that of the caller's table, or, ``in_queries``, the place in the queries.
    """
    import polars

    if s.ndim != 1:
        raise ValueError("each row has a score for every label; top(X, k) has the best labels of every row")
    order = np.lexsort((-s, queries.query))
    rank = np.arange(len(s)) - queries.offsets[:-1][queries.query[order]]
    kept = order[rank < k]
    names = [queries.qid[q] for q in queries.query[kept].tolist()]
    row = kept if in_queries else queries.row[kept]
    return polars.DataFrame({"query": names, "rank": rank[rank < k] + 1, "row": row, "score": s[kept]}, strict=False)


def in_order_of(X: Any, queries: Queries, values: NDArray[Any]) -> NDArray[Any]:
    """Put values of the rows of ``queries``, which were built from ``X``, in the row order of ``X``."""
    if isinstance(X, Queries) or bool((queries.row[1:] > queries.row[:-1]).all()):
        return values
    return queries.restore(values)


def check_columns(X: Any, names: Any, n_features: int, expected: Any) -> None:
    """Raise if the columns of a table are not those of the fit."""
    if names is not None and expected is not None and tuple(names) != tuple(expected):
        missing = [name for name in expected if name not in names]
        unseen = [name for name in names if name not in expected]
        raise DataError(
            f"columns differ from those at fit: missing {missing[:5]} ({len(missing)}), unseen {unseen[:5]} "
            f"({len(unseen)})" + ("" if missing or unseen else "; they are the same in another order")
        )
    if X.ndim != 2 or X.shape[1] != n_features:
        raise DataError(
            f"the ranker was fitted on {n_features} features; these rows have {X.shape[-1] if X.ndim == 2 else X.shape}"
        )


def refuse_uninformative(queries: Queries) -> None:
    """Raise if the queries have no features, if all weights are 0, or if no query has two different grades."""
    if not queries.n_features:
        raise DataError(f"the table of {len(queries.grade)} rows has no features; there is nothing to learn from")
    if len(queries) and not queries.weight.any():
        raise DataError(f"all {len(queries)} queries have weight 0; there is nothing to learn from")
    size = np.diff(queries.offsets)
    change = queries.grade[1:] != queries.grade[:-1]
    inside = queries.query[1:] == queries.query[:-1]
    if not (change & inside).any():
        one = int((size == 1).sum())
        raise DataError(
            f"none of the {len(queries)} queries has two different grades ({one} have one row, "
            f"{int((size > 1).sum())} have equal grades); there is nothing to learn an order from"
        )


def refuse_infinite_scores(s: ScoreColumn) -> None:
    """Raise if scores are NaN or infinite: they cannot be ordered."""
    if not np.isfinite(s).all():
        bad = ~np.isfinite(s)
        raise DataError(
            f"row {int(np.argmax(bad))}: the score is {s[bad][0]} ({int(bad.sum())} of {len(s)} such rows); its "
            "features are too large for this ranker, or of very different scales: bring them to a common one"
        )


def mean_defined(values: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> float:
    """Mean of the values that are not NaN; NaN if there are none, or all have weight 0."""
    defined = ~np.isnan(values)
    if weight is not None:
        total = weight[defined].sum()
        return float(weight[defined] @ values[defined] / total) if total > 0 else float("nan")
    return float(values[defined].mean()) if defined.any() else float("nan")
