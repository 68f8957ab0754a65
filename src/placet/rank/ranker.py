"""The base class of rankers: fitting, scores in the caller's row order, probabilities, and saved files."""

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from placet.data import DataError, Lists, Parts, Queries
from placet.data.arrays import Ints, table
from placet.data.errors import one_of
from placet.data.parameters import check_parameters
from placet.data.queries import Missing
from placet.lazy import Classes
from placet.losses import LOSSES, Loss
from placet.losses import needs as check_needs
from placet.metrics import evaluate_parts
from placet.metrics import metric as metric_of
from placet.rank import probabilities
from placet.rank.controls import ControlTable, control_rows
from placet.rank.feature_tables import to_dense
from placet.rank.query_rows import (
    ScoreColumn,
    as_queries,
    check_columns,
    in_order_of,
    mean_defined,
    refuse_infinite_scores,
    refuse_uninformative,
)
from placet.rank.saving import model_files
from placet.rank.saving.fitted_state import Attribute, check_saved_params, check_state, fitted_attributes, holds
from placet.rank.saving.onnx_export import OnnxGraph, write_onnx
from placet.rank.sklearn_conventions import refuse_other_arguments, refuse_search_without_routing
from placet.rank.tier_probabilities import stage_potential
from placet.rank.validation import Best
from placet.threads import algebra_threads

Ids = Sequence[Hashable] | NDArray[Any]
TrainingProgress = Callable[[int, int, float | None], None]
"""Called as ``progress(steps done, maximum number of steps, validation metric or None)`` during a fit."""


RANKERS = Classes(
    "placet.rank",
    {
        "linear": "linear.linear_ranker:LinearRanker",
        "trees": "trees.tree_ranker:TreeRanker",
        "forest": "trees.forest_ranker:ForestRanker",
        "neural": "torch.neural:NeuralRanker",
        "booster": "boosting.consistent_booster:ConsistentBooster",
        "rankboost": "boosting.rankboost:RankBoost",
        "adarank": "boosting.adarank:AdaRank",
        "coordinate": "boosting.coordinate_ascent:CoordinateAscent",
        "surrogate": "linear.surrogate_search:SurrogateSearch",
        "structrank": "listwise.structrank:StructRank",
        "listwise": "listwise.listwise_features:ListwiseFeatures",
        "reranker": "listwise.reranker:ListwiseReranker",
        "crf": "listwise.crf:ContinuousCRF",
        "diversity": "listwise.diversity:DiversityReranker",
        "fusion": "fusion:SupervisedFusion",
        "blend": "search.blend:Blend",
        "labels": "labels:LabelRanker",
    },
)
"""All rankers by short name, for saved files, the command line and ``autorank``."""


def ranker_class(name: str, what: str = "ranker") -> "type[Ranker]":
    """The class with this short name; ``what`` is what the error message calls it."""
    return RANKERS[one_of(name, RANKERS, what)]


class Ranker(BaseEstimator):
    """Base of rankers.  A subclass implements ``_fit(queries, valid)`` and ``_scores(queries)``.

    ``fit(X, y, qid=...)`` accepts rows in any order; ``fit(queries)`` accepts ``Queries``.  ``predict`` returns scores
    in the order of the rows given.  ``qid`` is scikit-learn metadata, requested by default: with
    ``sklearn.set_config(enable_metadata_routing=True)``, ``GridSearchCV(ranker, grid, cv=GroupKFold()).fit(X, y,
    groups=qid, qid=qid)`` works, also if the ranker is the last step of a ``Pipeline``; without it the search raises.
    """

    # fitted attributes to save, with their specifications (placet.rank.saving.fitted_state), besides those common to
    # all rankers
    _state: Mapping[str, Attribute] = holds()
    _missing: Missing = "error"  # "keep" if the ranker handles NaN
    _progress: TrainingProgress | None = None
    _start: Any = None
    _control: ControlTable | None = None
    takes_parts: ClassVar[bool] = False  # whether it can be fitted to queries in parts
    takes_start: ClassVar[bool] = False  # whether it can start from another fit
    takes_control: ClassVar[bool] = False  # whether it can fit controls, which are left out of the scores
    needs: tuple[str, ...] = ()  # what the loss must provide, in the terms of ``placet.losses.needs``
    own_losses: ClassVar[tuple[str, ...]] = ()  # names of losses accepted in addition to ``LOSSES``
    learns_from: ClassVar[str] = "queries"  # or "labels", "rank lists", "subtopics", "rankers": the input of fit

    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__predict: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True}

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Ids | None = None,
        *,
        weight: ArrayLike | None = None,
        valid: Any = None,
        progress: TrainingProgress | None = None,
        start: Any = None,
        engine: Any = None,
        control: Any = None,
        **others: Any,
    ) -> Self:
        """Fit to ``Queries``, to features, grades and query ids of rows, or to `Parts` of queries (`placet.scan`).

        ``weight``: one per query, or one per row, constant within a query.  ``valid`` is ``Queries`` or (X, y, qid):
        the ranker keeps the state that was best on it.  An interrupt (Ctrl-C) keeps the best state so far.
        ``progress`` is called after each step, and within long ones.  ``start``: for linear rankers, a fitted ranker or
        the path of a checkpoint to start from.  ``engine``: what processes parts, a `distributed.Client` or None for
        this process.  ``control``: for rankers with ``takes_control``, a numeric table, one row per row of ``X``, of
        covariates that may have affected the grades (such as the position shown); their effects (``controls_``) are
        fitted along with the scores and left out by `predict`.  ``others``: arguments of other libraries raise an error
        that names the equivalent.
        """
        refuse_other_arguments(others)
        refuse_search_without_routing()
        self.fit_summary_: dict[str, Any] = {}
        self._progress, self._start = progress, start
        if start is not None and not self.takes_start:
            raise ValueError(f"{type(self).__name__} starts from nothing; start is for linear rankers")
        if control is not None and not self.takes_control:
            able = [kind.__name__ for kind in map(ranker_class, RANKERS) if kind.takes_control]
            raise ValueError(
                f"{type(self).__name__} fits no effects of controls beside its scores; {', '.join(able)} do, or leave "
                "control out"
            )
        if isinstance(X, Parts):
            X = X if engine is None else X.on(engine)
        elif engine is not None:
            raise ValueError("engine works on data in parts; placet.scan makes them of files, Parts.of of data")
        try:
            self.check_names()
            data = self._training_data(X, y, qid, weight)
            self._control = control_rows(control, data, in_order=isinstance(X, Queries))
            with algebra_threads():
                self._fit(data, None if valid is None else self._validation_data(valid, data))
            self.fit_summary_ = {"interrupted": False, **self.fit_summary_}
            refuse_infinite(self)
        except BaseException:
            self.__dict__.pop("n_features_in_", None)  # after a failure, the ranker is not fitted
            raise
        finally:
            self.__dict__.pop("_control", None)
            del self._progress, self._start
        return self

    def check_names(self) -> None:
        """Raise a ``ValueError`` if a parameter does not match its annotation, or the metric or loss is unknown.

        `fit` calls this first.
        """
        check_parameters(type(self), self.get_params(deep=False), type(self).__name__)
        metric_of(self._metric())
        if self._loss():
            one_of(self._loss(), (*self.own_losses, *LOSSES), "loss")

    def predict(self, X: Any, qid: Ids | None = None) -> ScoreColumn:
        """A score for every row of ``X``, in the order given; higher is better.

        ``X`` is a table, or ``Queries``: then scores are in the order of its ``grade``, and its ``restore`` puts them
        in the order of the original rows.  If a score depends on the other rows of the list, pass ``qid``: without it
        all rows form one list.  Relations between rows require ``Queries``.  The scores of `Parts` are in the order of
        the rows in their files.
        """
        if isinstance(X, Parts):
            return np.concatenate(X.sum(_scores_of_part, self, name="scores"))
        queries = self._rows_to_score(X, qid)
        with algebra_threads():
            s = self._scores(queries)
        refuse_infinite_scores(s)
        return in_order_of(X, queries, s)

    def score(
        self,
        X: Any,
        y: Any = None,
        qid: Ids | None = None,
        metric: str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean of ``metric`` (by default the ranker's own) over the queries for which it is defined.

        ``sample_weight`` (scikit-learn's name): the weight of each query in the mean, in the form of ``weight`` in
        `fit`.
        """
        chosen = metric_of(metric or self._metric())
        if isinstance(X, Parts):
            return mean_defined(*evaluate_parts([metric or self._metric()], self.predict, X).values())
        queries = as_queries(X, y, qid, sample_weight, self._missing)
        weight = None if sample_weight is None else queries.weight
        return mean_defined(chosen(self.predict(queries), queries.grade, queries.offsets), weight)

    def top1_probability(self, X: Any, qid: Ids | None = None) -> ScoreColumn:
        """Probability (rows,) that the row is first in its list, under the fitted model; sums to 1 in each list.

        For losses that define a distribution over orders (Plackett-Luce family): softmax of the scores.  Under PMOP
        several rows may be first: the rows of the first tier share its probability equally.
        """
        loss = self._loss()
        probabilities.refuse_unless_first(loss)
        queries = self._rows_to_score(X, qid)
        s, offsets = self._model_scores(queries)
        first = probabilities.first_probability(s.ravel(), offsets, loss, self._loss_parameters())
        return in_order_of(X, queries, first.reshape(s.shape))

    def pairwise_probability(self, X: Any, i: ArrayLike, j: ArrayLike, qid: Ids | None = None) -> ScoreColumn:
        """Probability that row ``i`` of ``X`` is above row ``j`` of the same list (numbers, or arrays of them).

        For losses that define a distribution over orders, logistic(s_i - s_j), or over the outcomes of a pair, which
        may include ties.  Under "pmop-fd" it depends on all rows of the list, and the rest is P(below) and P(tied).
        """
        probabilities.refuse_unless_pairs(self._loss())
        queries = self._rows_to_score(X, qid)
        s = in_order_of(X, queries, self._model_scores(queries)[0])
        if stage_potential(self._loss()) is not None:
            which = in_order_of(X, queries, queries.query) if s.ndim == 1 else None
            return probabilities.above_in_lists(s, which, i, j, self._loss(), self._loss_parameters())
        gap = s[..., np.asarray(i)] - s[..., np.asarray(j)]
        return probabilities.probability_above(gap, self._loss(), self._loss_parameters())

    def predict_tiers(self, X: Any, qid: Ids | None = None) -> NDArray[np.int64]:
        """Tier of every row in its list, 0 the best, in the most probable partition consistent with the scores.

        For losses with a probability of ties for each pair: Rao-Kupper and Davidson.
        """
        probabilities.refuse_unless_tiers(self._loss())
        queries = self._rows_to_score(X, qid)
        s, offsets = self._model_scores(queries)
        params, loss = self._loss_parameters(), self._loss()
        lists = [probabilities.most_probable_tiers(s.ravel()[a:b], loss, params) for a, b in pairwise(offsets)]
        tiers = np.concatenate(lists) if lists else np.zeros(0, np.int64)
        return in_order_of(X, queries, tiers)

    def rank_distribution(self, X: Any, qid: Ids | None = None) -> list[ScoreColumn]:
        """For each list a table (rows, positions): the probability of each row at each position.  O(rows^2) per list.

        For losses that define a distribution over orders; under "pmop-fd", given that no rows tie.  Lists are in order
        of first appearance, rows in the order given.
        """
        probabilities.refuse_unless_order(self._loss())
        s, offsets = self._model_scores(self._rows_to_score(X, qid))
        s = s.ravel()
        return [probabilities.place_probabilities(s[a:b]) for a, b in pairwise(offsets)]

    def calibration(
        self, X: Any, y: Any = None, qid: Ids | None = None, *, bins: int = 10
    ) -> probabilities.Calibration:
        """Compare the predicted probability of the order of pairs with how often that order is observed.

        Uses pairs with different grades; the queries should not be those of the fit.
        """
        probabilities.refuse_unless_pairs(self._loss())
        queries, lists = self._rows_and_grades(X, y, qid)
        s, _ = self._model_scores(queries)
        return probabilities.calibration(s.ravel(), lists, self._loss(), self._loss_parameters(), bins=bins)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker, with all rankers it contains, to one file, to be read by ``placet.load``."""
        self._check_fitted()
        model_files.save(path, self, RANKERS)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the score as an ONNX model, from float64 ``X`` (rows, features) to ``scores`` (rows,).

        For linear rankers, trees and networks, which score each row by itself; a ranker of labels gives ``scores``
        (rows, labels) of dense rows.  Needs the package onnx
        (``pip install 'placet[onnx]'``); onnxruntime reproduces the scores of `predict` to about seven digits.
        """
        self._check_fitted()
        write_onnx(path, self.n_features_in_, self._add_onnx)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the features, if ``fit`` was given a data frame whose column names are all strings."""
        names = getattr(self, "features_", None)
        if names is None or not all(isinstance(name, str) for name in names):
            raise AttributeError(f"{type(self).__name__} has no feature_names_in_: it was not fitted to named columns")
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: grades are required, sparse features accepted, and NaN if the ranker handles it."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._missing == "keep"
        return tags

    def saved_state(self) -> dict[str, Any] | None:
        """The fitted attributes to save; None if the ranker is not fitted."""
        names = fitted_attributes(type(self)) if hasattr(self, "n_features_in_") else ()
        return {name: getattr(self, name) for name in names} or None

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any] | None) -> Self:
        """A ranker with these parameters, fitted unless ``state`` is None; raise a ``DataError`` if invalid."""
        check_saved_params(cls, params)
        ranker = cls(**params)
        if state is not None:
            check_state(cls, state)
            for name, value in state.items():
                setattr(ranker, name, value)
            try:
                ranker._check_state()
            except DataError as error:
                raise DataError(f"the saved model is damaged: {error}") from None
        return ranker

    def _check_state(self) -> None:
        """Raise a ``DataError`` if parameters and fitted attributes, valid by themselves, are inconsistent."""

    def _training_data(self, X: Any, y: Any, qid: Ids | None, weight: ArrayLike | None) -> Any:
        """Check and convert the data for ``_fit``; set the number and names of the features."""
        if isinstance(X, Parts):
            self._check_parts(X)
            self.n_features_in_, self.features_ = X.n_features, X.features
            return X
        queries = as_queries(X, y, qid, weight, self._missing)
        refuse_uninformative(queries)
        self._set_columns(queries)
        return queries

    def _check_parts(self, parts: Parts) -> None:
        """Raise if the parts hold no queries, are uninformative, or if this ranker does not support parts."""
        if parts.kind is not Queries:
            raise DataError(f"these parts hold {parts.kind.__name__}; rankers are fitted to queries")
        if not self.takes_parts:
            raise ValueError(
                f"{type(self).__name__} needs all queries at once and does not work on parts; LinearRanker and "
                "TreeRanker do, or load them (parts.load()) where they fit in memory"
            )
        if not any(one.informative for one in parts.summaries):
            raise DataError(
                f"none of the {parts.n_lists} queries has two different grades and a weight; there is nothing to learn "
                "an order from"
            )

    def _validation_data(self, valid: Any, data: Any) -> Any:
        """The validation set, with its columns checked and the metric defined for some query."""
        if isinstance(valid, Parts):
            if (valid.n_features, valid.features) != (data.n_features, data.features) or not self.takes_parts:
                raise DataError(
                    f"the validation parts have {valid.n_features} features and the others {data.n_features}, or other "
                    "names; scan both with the same options"
                )
            return valid
        if isinstance(valid, Queries):
            held_out = valid
        elif len(valid) == 3:
            X, y, qid = valid
            held_out = as_queries(X, y, qid, None, self._missing)
        else:
            raise ValueError(f"valid must be Queries or (X, y, qid), not {len(valid)} things")
        if not len(held_out):
            raise DataError("the validation set is empty; leave it out or give queries")
        check_columns(held_out.X, held_out.features, data.n_features, data.features)
        metric = metric_of(self._metric())
        if np.isnan(metric(held_out.grade, held_out.grade, held_out.offsets)).all():
            raise DataError(
                f"{metric!r} is undefined in all {len(held_out)} queries of the validation set; "
                "give queries with something relevant, or leave it out"
            )
        return held_out

    def _fit(self, data: Any, valid: Any) -> None:
        raise NotImplementedError

    def _scores(self, queries: Queries) -> ScoreColumn:
        """Scores (rows,) of the rows of queries; a ranker of labels returns (rows, labels)."""
        raise NotImplementedError

    def _add_onnx(self, graph: OnnxGraph) -> str:
        """Add the nodes that score each row to an ONNX graph; return the name of the last output."""
        able = [kind.__name__ for kind in map(ranker_class, RANKERS) if kind._add_onnx is not Ranker._add_onnx]
        raise ValueError(f"{type(self).__name__} has no ONNX form; {', '.join(able)} have one")

    def _model_scores(self, queries: Queries) -> tuple[ScoreColumn, Ints]:
        """Scores on the scale of the fitted model, and the offsets of their lists; a row of a 2-D table is a list."""
        s = self._scores(queries)
        return s, queries.offsets if s.ndim == 1 else s.shape[1] * np.arange(len(s) + 1)

    def _judge(self, valid: Queries | None, scores: Callable[[Any], ScoreColumn]) -> Callable[[Any], float] | None:
        """state -> mean metric on the validation set, given ``scores(state)`` of its rows."""
        if valid is None:
            return None
        metric = metric_of(self._metric())
        return lambda state: mean_defined(metric(scores(state), valid.grade, valid.offsets))

    def _rows_and_grades(self, X: Any, y: Any, qid: Ids | None) -> tuple[Queries, Lists]:
        """Rows to score, and their grades as lists."""
        queries = self._rows_to_score(as_queries(X, y, qid, None, self._missing), None)
        return queries, queries.lists()

    def _keep_best(
        self,
        judge: Callable[[Any], float] | None,
        n_steps: int,
        *,
        instead: Callable[[Any], float] | None = None,
        **options: Any,
    ) -> Best[Any]:
        """A tracker of the best state over at most ``n_steps`` training steps, which also reports progress.

        ``judge`` is the metric on the validation set; without one, ``instead`` is used (None: the last state is best).
        """
        tell = lambda step, quality: self._report_progress(step, n_steps, None if judge is None else quality)  # noqa: E731
        return Best(judge or instead, validates=judge is not None, tell=tell, **options)

    def _report_progress(self, step: int, steps: int, value: float | None) -> None:
        """Report progress after each step of ``_fit``; ``value``: the validation metric, if known."""
        if self._progress is not None:
            self._progress(step, steps, value)

    def _metric(self) -> str:
        return str(getattr(self, "metric", "ndcg@10"))

    def _loss(self) -> str:
        return str(getattr(self, "loss", ""))

    def _loss_record(self) -> Loss:
        """The record of the loss; raise if it lacks what the ranker needs."""
        return check_needs(self._loss(), *self.needs, who=type(self).__name__)

    def _loss_parameters(self) -> dict[str, Any]:
        """Parameters of the loss, both given and learned in the fit."""
        return {**(getattr(self, "loss_params", None) or {}), **getattr(self, "learned_", {})}

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "n_features_in_")

    def _set_columns(self, queries: Queries) -> None:
        self.n_features_in_ = queries.n_features
        self.features_ = queries.features

    def _rows_to_score(self, X: Any, qid: Ids | None) -> Queries:
        """Rows to score, as queries with the columns of the fit; without ``qid`` they form one list."""
        self._check_fitted()
        if isinstance(X, Queries):
            if qid is not None:
                raise ValueError("Queries hold their query ids; give them alone, without qid")
            check_columns(X.X, X.features, self.n_features_in_, self.features_)
            return X
        matrix, names = table(X)
        matrix = matrix if hasattr(matrix, "tocsr") else np.asarray(matrix)
        check_columns(matrix, names, self.n_features_in_, self.features_)
        n_rows = matrix.shape[0]
        if qid is None:
            offsets = np.array([0, n_rows]) if n_rows else np.zeros(1, np.int64)
            return Queries(matrix, np.zeros(n_rows), offsets, features=names)
        rows = Queries.from_arrays(matrix, np.zeros(n_rows), qid, missing="keep")
        return rows if names is None else Queries(
            rows.X, rows.grade, rows.offsets, rows.weight, rows.qid, row=rows.row, features=names
        )  # fmt: skip


def _scores_of_part(queries: Queries, ranker: Ranker) -> list[ScoreColumn]:
    """The scores of one part, in the order of the rows in its file."""
    return [queries.restore(ranker.predict(queries))]


def refuse_infinite(ranker: Ranker) -> None:
    """Raise if the fitted state contains non-finite numbers."""
    for name in ranker._state:
        value = getattr(ranker, name)
        if isinstance(value, np.ndarray | np.floating | float) and not np.isfinite(value).all():
            raise ValueError(
                f"training diverged: {name} holds {int((~np.isfinite(value)).sum())} numbers that are not finite; "
                "lower learning_rate, raise l2, or look for features of very different scales"
            )


def two_rows(ranker: Ranker, X: Any, i: int, j: int) -> ScoreColumn:
    """Dense rows i and j of a table or of ``Queries``, with its columns checked against the fit."""
    queries = ranker._rows_to_score(X, None)
    n_rows = queries.X.shape[0]
    for k in (i, j):
        if not 0 <= k < n_rows:
            raise IndexError(f"row {k} is not in 0..{n_rows - 1}")
    return to_dense(queries.X[[i, j]])


def largest_first(names: Sequence[Any], parts: ScoreColumn) -> list[tuple[Any, float]]:
    """(name, part) pairs, the largest in absolute value first."""
    return [(names[k], float(parts[k])) for k in np.argsort(-np.abs(parts), kind="stable")]


def load(path: str | os.PathLike[str]) -> Any:
    """Load any saved ranker, which predicts as it did when saved.  Nothing is unpickled.

    Returns
    -------
    Ranker
        Of the class that was saved.

    >>> import tempfile, placet
    >>> file = tempfile.mkdtemp() + "/model.placet"
    >>> placet.LinearRanker(l2=0.1).fit(placet.simulate.queries(20, 5, 3)).save(file)
    >>> load(file)
    LinearRanker(l2=0.1)
    """
    return model_files.load(path, RANKERS)
