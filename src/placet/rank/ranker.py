"""What every ranker has in common: queries in, scores out in the caller's order, saving, and what a score means."""

import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from placet.data import DataError, Queries
from placet.data.queries import Missing, table
from placet.metrics import metric as metric_of
from placet.rank import files, meaning

Scores = NDArray[np.float64]
Ids = Sequence[Hashable] | NDArray[Any]
Progress = Callable[[int, int, float | None], None]
"""Called as ``progress(step, steps at most, metric on the validation set or None)`` while a ranker is fitted."""


class Ranker(BaseEstimator):
    """Base of rankers.  A subclass fits ``_fit(queries, valid)`` and scores rows by ``_scores(X, offsets)``.

    ``fit(X, y, qid=...)`` takes rows in any order; ``fit(queries)`` takes ``Queries``.  ``predict`` answers in the
    order of the rows it is given.  ``qid`` is metadata in the sense of scikit-learn, requested by default: with
    ``sklearn.set_config(enable_metadata_routing=True)``, ``GridSearchCV(ranker, grid, cv=GroupKFold()).fit(X, y,
    groups=qid, qid=qid)`` works.
    """

    # names of the fitted attributes that a saved model keeps, beside what fit sets for every ranker
    _state: tuple[str, ...] = ()
    _common = ("n_features_in_", "features_", "fit_summary_")
    _missing: Missing = "error"  # "keep" where the ranker knows what to do with NaN
    _progress: Progress | None = None

    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__predict: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True}

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        qid: Ids | None = None,
        *,
        weight: ArrayLike | None = None,
        valid: Queries | tuple[Any, Any, Any] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit on ``Queries``, or on features, grades and query of every row.

        ``weight``: one per query, or one per row that is equal inside a query.  ``valid`` is ``Queries`` or (X, y,
        qid): what is kept is the state of the ranker that was best on it.  An interrupt (Ctrl-C) keeps the best so
        far.  ``progress`` is called after each step.
        """
        queries = as_queries(X, y, qid, weight, self._missing)
        held_out = self._held_out(valid, queries)
        refuse_uninformative(queries)
        self.n_features_in_ = queries.n_features
        self.features_ = queries.features
        self.fit_summary_: dict[str, Any] = {}
        self._progress = progress
        try:
            self._fit(queries, held_out)
        except BaseException:
            del self.n_features_in_  # what failed is not fitted
            raise
        finally:
            del self._progress
        return self

    def predict(self, X: Any, qid: Ids | None = None) -> Scores:
        """A score for every row of ``X``, in the order given; higher is better.

        ``X`` is a table, or ``Queries``: then scores stand beside their ``grade``, and their ``restore`` puts them in
        the order of the rows that the queries were made from.  ``qid`` matters only where a score depends on the list.
        """
        queries = self._seen(X, qid)
        scores = self._scores(queries.X, queries.offsets)
        return scores if isinstance(X, Queries) else restored(queries, scores)

    def score(self, X: Any, y: ArrayLike | None = None, qid: Ids | None = None, metric: str | None = None) -> float:
        """Mean of ``metric`` (the ranker's own unless given) over the queries in which it is defined."""
        queries = as_queries(X, y, qid, None, self._missing)
        chosen = metric_of(str(metric or getattr(self, "metric", "ndcg@10")))
        return mean_defined(chosen(self.predict(queries), queries.grade, queries.offsets))

    def top1_probability(self, X: Any, qid: Ids | None = None) -> Scores:
        """Probability (rows,) that the row is first in its list, under the fitted model; sums to 1 in each list.

        For losses that are likelihoods of the Plackett-Luce family (``meaning.ORDERS``): softmax of the scores.
        """
        meaning.refuse_unless_order(self._loss())
        queries = self._seen(X, qid)
        shares = meaning.top1(self._scores(queries.X, queries.offsets), queries.offsets)
        return shares if isinstance(X, Queries) else restored(queries, shares)

    def pairwise_probability(self, X: Any, i: ArrayLike, j: ArrayLike) -> Scores:
        """Probability that row ``i`` of ``X`` is above row ``j`` of the same list (numbers, or arrays of them).

        For losses in ``meaning.ORDERS``, logistic(s_i - s_j), and for models of pairs (``meaning.PAIRS``), whose ties
        take their share of the probability.
        """
        meaning.refuse_unless_pairs(self._loss())
        queries = self._seen(X, None)
        s = self._scores(queries.X, queries.offsets)
        return meaning.above(s[np.asarray(i)] - s[np.asarray(j)], self._loss(), self._loss_parameters())

    def rank_distribution(self, X: Any, qid: Ids | None = None) -> list[Scores]:
        """For each list a table (rows, places): the probability of each row at each place.  O(rows^2) per list.

        For losses in ``meaning.ORDERS``.  Lists come in order of first appearance, rows in the order given.
        """
        meaning.refuse_unless_order(self._loss())
        queries = self._seen(X, qid)
        s = self._scores(queries.X, queries.offsets)
        return [meaning.places(s[a:b]) for a, b in zip(queries.offsets[:-1], queries.offsets[1:])]

    def calibration(
        self, X: Any, y: ArrayLike | None = None, qid: Ids | None = None, *, bins: int = 10
    ) -> meaning.Calibration:
        """Do pairs that are predicted to come in an order with probability p do so in a share p of cases?

        Over the pairs with different grades of queries that should not be those of the fit.
        """
        meaning.refuse_unless_pairs(self._loss())
        queries = as_queries(X, y, qid, None, self._missing)
        return meaning.calibration(
            self.predict(queries), queries.lists(), self._loss(), self._loss_parameters(), bins=bins
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker to one file, which ``placet.load`` reads."""
        self._check_fitted()
        state = {name: getattr(self, name) for name in (*self._common, *self._state)}
        files.write(path, type(self).__name__, self.get_params(deep=False), state)

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any]) -> Self:
        """The ranker that ``save`` wrote, or a ``DataError``."""
        expected = {*cls._common, *cls._state}
        if not isinstance(state, dict) or set(state) != expected:
            raise DataError(f"the state of a {cls.__name__} is {sorted(expected)}, not {sorted(state)}")
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}
        unknown = sorted(set(given) - set(cls._get_param_names()))
        if unknown:
            raise DataError(f"{cls.__name__} has no parameters {unknown}; update Placet to read this model")
        ranker = cls(**given)
        for name, value in state.items():
            setattr(ranker, name, tuple(value) if name == "features_" and value is not None else value)
        return ranker

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        raise NotImplementedError

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Scores:
        raise NotImplementedError

    def _tell(self, step: int, steps: int, value: float | None) -> None:
        """For ``_fit`` to call after each step; ``value`` is the metric on the validation set, where it is known."""
        if self._progress is not None:
            self._progress(step, steps, value)

    def _loss(self) -> str:
        return str(getattr(self, "loss", ""))

    def _loss_parameters(self) -> dict[str, Any]:
        """Parameters of the loss: given, and learnt in the fit."""
        return {**(getattr(self, "loss_params", None) or {}), **getattr(self, "learnt_", {})}

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "n_features_in_")

    def _seen(self, X: Any, qid: Ids | None) -> Queries:
        """Rows to score, as queries whose columns are those at fit; without ``qid`` they are one list."""
        self._check_fitted()
        if isinstance(X, Queries):
            if qid is not None:
                raise ValueError("Queries hold their query ids; give them alone, without qid")
            check_columns(X.X, X.features, self.n_features_in_, self.features_)
            return X
        matrix, names = rows_of(X)
        check_columns(matrix, names, self.n_features_in_, self.features_)
        n_rows = matrix.shape[0]
        if qid is None:
            return Queries(matrix, np.zeros(n_rows), np.array([0, n_rows]) if n_rows else np.zeros(1, np.int64))
        return Queries.from_arrays(matrix, np.zeros(n_rows), qid, missing="keep")

    def _held_out(self, valid: Queries | tuple[Any, Any, Any] | None, queries: Queries) -> Queries | None:
        """The validation set, checked: same columns, and the metric is defined somewhere."""
        if valid is None:
            return None
        if not isinstance(valid, Queries) and len(valid) != 3:
            raise ValueError(f"valid must be Queries or (X, y, qid), not {len(valid)} things")
        held_out = valid if isinstance(valid, Queries) else as_queries(*valid, weight=None, missing=self._missing)
        if not len(held_out):
            raise DataError("the validation set is empty; leave it out or give queries")
        check_columns(held_out.X, held_out.features, queries.n_features, queries.features)
        chosen = getattr(self, "metric", "ndcg@10")
        if np.isnan(metric_of(chosen)(np.zeros(len(held_out.grade)), held_out.grade, held_out.offsets)).all():
            raise DataError(
                f"{chosen} is undefined in all {len(held_out)} queries of the validation set; "
                "give queries with something relevant, or leave it out"
            )
        return held_out


def as_queries(
    X: Any, y: ArrayLike | None, qid: Any, weight: ArrayLike | None = None, missing: Missing = "error"
) -> Queries:
    """``Queries`` as they are, or made from columns; says what is missing."""
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


def rows_of(X: Any) -> tuple[Any, Sequence[Hashable] | None]:
    """A table or sparse matrix, and its column names where it has any."""
    matrix, names = table(X)
    return (matrix if hasattr(matrix, "tocsr") else np.asarray(matrix)), names


def restored(queries: Queries, values: Scores) -> Scores:
    """Values of the rows in the caller's order; nothing to do where rows were grouped already."""
    in_order = bool((queries.row[1:] > queries.row[:-1]).all())
    return values if in_order else queries.restore(values)


def check_columns(X: Any, names: Any, n_features: int, expected: Any) -> None:
    """Refuse a table whose columns are not the ones that the ranker was fitted on."""
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
    """Refuse queries none of which has two different grades, or none of which counts."""
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


def mean_defined(values: NDArray[np.float64]) -> float:
    """Mean of the values that are not NaN; NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def two_rows(ranker: Ranker, X: Any, i: int, j: int) -> Any:
    """Rows i and j of a table or of ``Queries``, checked against the columns at fit."""
    queries = ranker._seen(X, None)
    n_rows = queries.X.shape[0]
    for k in (i, j):
        if not 0 <= k < n_rows:
            raise IndexError(f"row {k} is not in 0..{n_rows - 1}")
    return queries.X[[i, j]]


def largest_first(names: Sequence[Any], parts: Scores) -> list[tuple[Any, float]]:
    """Names with their parts, the largest in absolute value first."""
    return [(names[k], float(parts[k])) for k in np.argsort(-np.abs(parts), kind="stable")]
