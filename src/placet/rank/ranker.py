"""What every ranker has in common: queries in, scores out in the caller's order, saving, and what a score means."""

import os
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from placet.data import DataError, Queries
from placet.data.queries import table
from placet.metrics import metric as metric_of
from placet.rank import files

Scores = NDArray[np.float64]


class Ranker(BaseEstimator):
    """Base of rankers.  A subclass fits ``_fit(queries, valid)`` and scores rows by ``_scores(X, offsets)``.

    ``fit(X, y, qid=...)`` takes rows in any order; ``fit(queries)`` takes ``Queries``.  ``predict`` answers in the
    order of the rows it is given.  ``qid`` is metadata in the sense of scikit-learn and can be routed.
    """

    # names of the fitted attributes that a saved model keeps, beside what fit sets for every ranker
    _state: tuple[str, ...] = ()
    _common = ("n_features_in_", "features_", "fit_summary_")

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        qid: Sequence[Hashable] | NDArray[Any] | None = None,
        *,
        weight: ArrayLike | None = None,
        valid: Queries | tuple[Any, Any, Any] | None = None,
    ) -> Self:
        """Fit on ``Queries``, or on features, grades and query of every row; ``valid`` likewise, for early stopping."""
        queries = as_queries(X, y, qid, weight)
        held_out = None if valid is None else valid if isinstance(valid, Queries) else as_queries(*valid)
        if held_out is not None:
            check_columns(held_out.X, held_out.features, queries.n_features, queries.features)
            if not len(held_out):
                raise DataError("the validation set is empty; leave it out or give queries")
        useful = informative(queries)
        if not useful.any():
            raise DataError(
                f"none of the {len(queries)} queries has two different grades; there is nothing to learn an order from"
            )
        self.n_features_in_ = queries.n_features
        self.features_ = queries.features
        self.fit_summary_: dict[str, Any] = {}
        self._fit(queries, held_out)
        return self

    def predict(self, X: Any, qid: Sequence[Hashable] | NDArray[Any] | None = None) -> Scores:
        """A score for every row of ``X`` (a table, or ``Queries``), in the order given; higher is better."""
        if isinstance(X, Queries):
            check_columns(X.X, X.features, self.n_features_in_, self.features_)
            return X.restore(self._scores(X.X, X.offsets))
        matrix, names = table(X)
        matrix = matrix if hasattr(matrix, "shape") else np.asarray(matrix, dtype=np.float64)
        check_columns(matrix, names, self.n_features_in_, self.features_)
        if qid is None:
            return self._scores(matrix, np.array([0, matrix.shape[0]]))
        grouped = Queries.from_arrays(matrix, np.zeros(matrix.shape[0]), qid, missing="keep")
        return grouped.restore(self._scores(grouped.X, grouped.offsets))

    def score(self, X: Any, y: ArrayLike | None = None, qid: Any = None, metric: str = "ndcg@10") -> float:
        """Mean of ``metric`` over the queries in which it is defined."""
        queries = as_queries(X, y, qid)
        scores = self._scores(queries.X, queries.offsets)
        return float(np.nanmean(metric_of(metric)(scores, queries.grade, queries.offsets)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker to one file, which ``placet.load`` reads."""
        state = {name: getattr(self, name) for name in (*self._common, *self._state)}
        files.write(path, type(self).__name__, self.get_params(deep=False), state)

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any]) -> Self:
        """The ranker that ``save`` wrote."""
        names = {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}
        ranker = cls(**names)
        for name, value in state.items():
            setattr(ranker, name, tuple(value) if name == "features_" and value is not None else value)
        return ranker

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        raise NotImplementedError

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Scores:
        raise NotImplementedError


def as_queries(X: Any, y: ArrayLike | None, qid: Any, weight: ArrayLike | None = None) -> Queries:
    """``Queries`` as they are, or made from columns; says what is missing."""
    if isinstance(X, Queries):
        if y is not None or qid is not None:
            raise ValueError("Queries hold their grades and query ids; give them alone, without y and qid")
        return X
    if y is None or qid is None:
        raise ValueError("give y (grades) and qid (the query of every row), or Queries")
    return Queries.from_arrays(X, y, qid, weight=weight)


def check_columns(X: Any, names: Any, n_features: int, expected: Any) -> None:
    """Refuse a table whose columns are not the ones that the ranker was fitted on."""
    if names is not None and expected is not None and tuple(names) != tuple(expected):
        missing = [name for name in expected if name not in names]
        unseen = [name for name in names if name not in expected]
        raise DataError(
            f"columns differ from those at fit: missing {missing[:5]}, unseen {unseen[:5]}"
            + ("" if missing or unseen else "; they are in another order")
        )
    if X.ndim != 2 or X.shape[1] != n_features:
        raise DataError(
            f"the ranker was fitted on {n_features} features; these rows have {X.shape[-1] if X.ndim == 2 else X.shape}"
        )


def informative(queries: Queries) -> NDArray[np.bool_]:
    """Whether each query has two different grades."""
    differs = np.zeros(len(queries), bool)
    change = queries.grade[1:] != queries.grade[:-1]
    inside = queries.query[1:] == queries.query[:-1]
    differs[queries.query[1:][change & inside]] = True
    return differs
