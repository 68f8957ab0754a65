"""The base class of rankers: fitting, scores in the caller's row order, probabilities, and saved files."""

import inspect
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from placet.data import DataError, Lists, Parts, Queries
from placet.data.arrays import Ints, table
from placet.data.errors import one_of
from placet.data.parameters import check_parameters
from placet.data.queries import Missing
from placet.lazy import Classes
from placet.losses import LOSSES, Loss, needs as check_needs
from placet.metrics import evaluate_parts, metric as metric_of
from placet.metrics.metric_table import DISTANCES
from placet.rank.controls import ControlTable, control_rows
from placet.rank.feature_tables import to_dense
from placet.rank.fitting.categories import CategoryLevels, coded_rows
from placet.rank.fitting.training_history import check_metrics, history_frame, plot_history
from placet.rank.probabilities import OrderProbabilities
from placet.rank.query_rows import (
    ScoreColumn,
    as_queries,
    best_rows,
    check_columns,
    in_order_of,
    mean_defined,
    queries_of_sizes,
    refuse_infinite_scores,
    refuse_uninformative,
)
from placet.rank.saving import model_files
from placet.rank.saving.fitted_state import Attribute, check_saved_params, check_state, fitted_attributes, holds
from placet.rank.saving.onnx_export import OnnxGraph, write_onnx
from placet.rank.sklearn_conventions import (
    refuse_other_arguments,
    refuse_search_without_routing,
    unknown_parameter,
)
from placet.rank.validation import Best
from placet.threads import algebra_threads

if TYPE_CHECKING:
    import polars

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
        "labels": "multilabel.label_ranker:LabelRanker",
    },
)
"""All rankers by short name, for saved files, the command line and ``autorank``."""


def ranker_class(name: str, what: str = "ranker") -> "type[Ranker]":
    """The class with this short name; ``what`` is what the error message calls it."""
    return RANKERS[one_of(name, RANKERS, what)]


class Ranker(OrderProbabilities, BaseEstimator):
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
    categories_: CategoryLevels = {}  # noqa: RUF012  # set by rankers that take categories
    _also_record: tuple[str, ...] = ()  # metrics to record besides that of the ranker
    _validated: Mapping[str, float] | None = None  # metrics of the state judged last
    _control: ControlTable | None = None
    takes_parts: ClassVar[bool] = False  # whether it can be fitted to queries in parts
    takes_categories: ClassVar[bool] = False  # whether columns of a data frame may hold categories
    takes_start: ClassVar[bool] = False  # whether it can start from another fit
    records_metrics: ClassVar[bool] = True  # whether it computes further metrics after each step
    takes_control: ClassVar[bool] = False  # whether it can fit controls, which are left out of the scores
    needs: tuple[str, ...] = ()  # what the loss must provide, in the terms of ``placet.losses.needs``
    own_losses: ClassVar[tuple[str, ...]] = ()  # names of losses accepted in addition to ``LOSSES``
    __signature__: ClassVar[inspect.Signature]
    other_names: ClassVar[Mapping[str, str]] = MappingProxyType({})  # names in other libraries -> parameters here
    learns_from: ClassVar[str] = "queries"  # or "labels", "rank lists", "subtopics", "rankers": the input of fit

    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__predict: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _, *own = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature(own)  # documentation would show that of `__new__`

    def __new__(cls, *args: Any, **params: Any) -> Self:
        wrong = unknown_parameter(cls, params)
        if wrong:
            raise TypeError(f"parameter {wrong}")
        return super().__new__(cls)

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Ids | None = None,
        *,
        group: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        valid: Any = None,
        metrics: Sequence[str] = (),
        progress: TrainingProgress | None = None,
        start: Any = None,
        engine: Any = None,
        control: Any = None,
        **others: Any,
    ) -> Self:
        """Fit to ``Queries``, to features, grades and query ids of rows, or to `Parts` of queries (`placet.scan`).

        ``group``: instead of ``qid``, the sizes of consecutive queries, as LightGBM and XGBoost have them.  ``weight``:
        one per query, or one per row, constant within a query (trees: any).  ``valid`` is ``Queries`` or (X, y, qid or
        sizes): the ranker keeps the state that was best on it by its ``metric``.  ``metrics``: further ones to compute
        on it; `history_` has all of them for each step.  An interrupt (Ctrl-C) keeps the best state so far.
        ``progress`` is called after each step, and within long ones.  ``start``: a fitted ranker of the same kind, or
        the path of a saved one, whose training is continued on these data: ``n_trees`` further trees, ``epochs``
        further epochs, iterations from its weights (for linear rankers also the path of a checkpoint).  ``engine``:
        what processes parts, a `distributed.Client` or None for this process.  ``control``: for rankers with
        ``takes_control``, a numeric table, one row per row of ``X``, of covariates that may have affected the grades
        (such as the position shown); their effects (``controls_``) are fitted along with the scores and left out by
        `predict`.  ``others``: arguments of other libraries raise an error that names the equivalent.

        Returns
        -------
        Ranker
            The ranker itself, fitted.

        >>> import placet
        >>> rows = placet.simulate.queries(20, 5, 3, random_state=0)
        >>> placet.LinearRanker().fit(rows).coef_.shape
        (3,)
        """
        refuse_other_arguments(others)
        refuse_search_without_routing()
        self.fit_summary_: dict[str, Any] = {}
        self._also_record = check_metrics(metrics, valid is not None or self.learns_from == "labels")
        if metrics and not self.records_metrics:
            raise ValueError(f"{type(self).__name__} records no metrics by step; leave metrics out, and use score")
        self._progress, self._start = progress, self._model_to_continue(start)
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
            data = self._training_data(X, y, qid if group is None else queries_of_sizes(group, qid, y), weight)
            if isinstance(self._start, Ranker) and hasattr(data, "X"):
                check_columns(data.X, self.features_, self._start.n_features_in_, self._start.features_)
            self._control = control_rows(control, data, in_order=isinstance(X, Queries))
            with algebra_threads():
                self._fit(data, None if valid is None else self._validation_data(valid, data))
            self.fit_summary_ = {"interrupted": False, **self.fit_summary_}
            if self._start is not None:
                self.fit_summary_["continued"] = True
            refuse_infinite(self)
        except BaseException:
            self.__dict__.pop("n_features_in_", None)  # after a failure, the ranker is not fitted
            raise
        finally:
            self.__dict__.pop("_control", None)
            self.__dict__.pop("_validated", None)
            del self._progress, self._start, self._also_record
        return self

    def _model_to_continue(self, start: Any) -> Any:
        """The fitted ranker to start from, loaded if it is a file; a checkpoint stays a path."""
        if start is None:
            return None
        if not self.takes_start:
            able = [kind.__name__ for kind in map(ranker_class, RANKERS) if kind.takes_start]
            raise ValueError(f"{type(self).__name__} does not continue another fit; {', '.join(able)} do")
        if isinstance(start, str | os.PathLike) and model_files.is_saved(start):
            start = load(start)
        if isinstance(start, Ranker):
            start._check_fitted()
            if type(start) is not type(self):
                raise ValueError(f"a {type(self).__name__} cannot continue a {type(start).__name__}")
        return start

    def check_names(self) -> None:
        """Raise a ``ValueError`` if a parameter does not match its annotation, or the metric or loss is unknown.

        `fit` calls this first.
        """
        check_parameters(type(self), self.get_params(deep=False), type(self).__name__)
        if metric_of(self._metric()).name in DISTANCES:
            raise ValueError(
                f"metric {self._metric()!r} is a distance, of which the lowest is best; a ranker keeps what has the "
                "highest metric: choose spearman_rho or kendall_tau (fit can record distances too: metrics=)"
            )
        if self._loss():
            one_of(self._loss(), (*self.own_losses, *LOSSES), "loss")

    def predict(self, X: Any, qid: Ids | None = None) -> ScoreColumn:
        """A score for every row of ``X``, in the order given; higher is better.

        ``X`` is a table, or ``Queries``: then scores are in the order of its ``grade``, and its ``restore`` puts them
        in the order of the original rows.  If a score depends on the other rows of the list, pass ``qid``: without it
        all rows form one list.  Relations between rows require ``Queries``.  The scores of `Parts` are in the order of
        the rows in their files.

        Returns
        -------
        numpy.ndarray
            Scores (rows,).

        >>> import placet
        >>> rows = placet.simulate.queries(20, 5, 3, random_state=0)
        >>> placet.LinearRanker().fit(rows).predict(rows).shape
        (100,)
        """
        if isinstance(X, Parts):
            return np.concatenate(X.sum(_scores_of_part, self, name="scores"))
        queries = self._rows_to_score(X, qid)
        with algebra_threads():
            s = self._scores(queries)
        refuse_infinite_scores(s)
        return in_order_of(X, queries, s)

    def predict_top(self, X: Any, k: int, qid: Ids | None = None) -> "polars.DataFrame":
        """The k best rows of every query, best first: a Polars table of ``query``, ``rank``, ``row`` and ``score``.

        ``row`` is the index in ``X``; rows of equal scores keep their order.  A query of fewer rows has all of them.

        Returns
        -------
        polars.DataFrame
            At most k rows per query.

        >>> import placet
        >>> data = placet.simulate.queries(20, 5, 3, random_state=0)
        >>> placet.LinearRanker().fit(data).predict_top(data, 2)["rank"].to_list()[:4]
        [1, 2, 1, 2]
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"k {k!r} must be a whole number, at least 1")
        queries = self._rows_to_score(X, qid)
        return best_rows(queries, self.predict(queries), int(k), in_queries=isinstance(X, Queries))

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

        Returns
        -------
        float
            The mean; for most metrics 1 is a perfect order.

        >>> import placet
        >>> rows = placet.simulate.queries(20, 5, 3, random_state=0)
        >>> 0.5 < placet.LinearRanker().fit(rows).score(rows, metric="ndcg@5") < 1.0
        True
        """
        chosen = metric_of(metric or self._metric())
        if isinstance(X, Parts):
            return mean_defined(*evaluate_parts([metric or self._metric()], self.predict, X).values())
        queries = as_queries(self._coded(X), y, qid, sample_weight, self._missing)
        weight = None if sample_weight is None else queries.weight
        return mean_defined(chosen(self.predict(queries), queries.grade, queries.offsets), weight)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker, with all rankers it contains, to one file, to be read by ``placet.load``.

        >>> import placet, tempfile
        >>> path = f"{tempfile.mkdtemp()}/model.placet"
        >>> placet.LinearRanker().fit(placet.simulate.queries(20, 5, 3, random_state=0)).save(path)
        >>> placet.load(path).n_features_in_
        3
        """
        self._check_fitted()
        model_files.save(path, self, RANKERS)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the score as an ONNX model, from float64 ``X`` (rows, features) to ``scores`` (rows,).

        For linear rankers, trees, networks and boosted features, which score each row by itself, for listwise features
        of these, and for blends of all of them.  A ranker of labels gives ``scores`` (rows, labels) of dense rows, with
        the names of labels as JSON in the metadata ``labels``; texts become features outside the model
        (``text_features``).  As in ``predict(X)`` without ``qid``, all rows of ``X`` are one list: where scores depend
        on the other rows of the list, run the model once per query.  Needs the package onnx (``pip install
        'placet[onnx]'``); onnxruntime reproduces the scores of `predict` to about seven digits.
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

    @property
    def history_(self) -> "polars.DataFrame":
        """A Polars table: ``step``, and the mean over the validation queries of each metric after it.

        Of a fit with ``valid=``: the ranker's ``metric`` first, then the ``metrics`` of `fit`.  Some rankers compute
        them after some of the steps only.
        """
        self._check_fitted()
        return history_frame(self.fit_summary_)

    def plot_history(self, axes: Any = None) -> Any:
        """Plot `history_` by matplotlib, on ``axes`` or new ones; returns the axes."""
        return plot_history(self.history_, axes)

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
        queries = as_queries(self._coded(X, learn=True), y, qid, weight, self._missing)
        refuse_uninformative(queries)
        self._set_columns(queries)
        return queries

    def _coded(self, X: Any, learn: bool = False) -> Any:
        """``X`` with codes in place of categories; ``learn``: find out which columns have them."""
        known = getattr(self._start, "categories_", {}) if learn else self.categories_
        rows, found = coded_rows(X, known, learn=learn, who=type(self).__name__, takes=self.takes_categories)
        if learn and self.takes_categories:
            self.categories_ = found
        return rows

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
            sizes = np.ndim(qid) == 1 and len(qid) < len(y)
            qid = queries_of_sizes(qid, None, y) if sizes else qid
            held_out = as_queries(self._coded(X), y, qid, None, self._missing)
        else:
            raise ValueError(f"valid must be Queries or (X, y, qid or sizes of queries), not {len(valid)} things")
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

    def _scores_sharing(self, queries: Queries, shared: dict[Hashable, Any]) -> ScoreColumn:
        """As ``_scores``; ``shared`` holds what rankers of the same queries have computed and others can use."""
        return self._scores(queries)

    def _add_onnx(self, graph: OnnxGraph) -> str:
        """Add the nodes that score the rows of ``graph.table`` to an ONNX graph; return the name of the last output."""
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
        metrics = {name: metric_of(name) for name in self._metric_names()}

        def judge(state: Any) -> float:
            s = scores(state)
            return self._note({k: mean_defined(m(s, valid.grade, valid.offsets)) for k, m in metrics.items()})

        return judge

    def _metric_names(self) -> tuple[str, ...]:
        """The ranker's metric, which decides, and the further ones to record."""
        return (self._metric(), *self._also_record)

    def _note(self, found: Mapping[str, float]) -> float:
        """Keep the metrics of a state for the history, and return the first, which decides."""
        self._validated = found
        return next(iter(found.values()))

    def _noted(self, quality: float) -> Mapping[str, float]:
        """The metrics of the state judged last."""
        return self._validated or {self._metric(): quality}

    def _rows_and_grades(self, X: Any, y: Any, qid: Ids | None) -> tuple[Queries, Lists]:
        """Rows to score, and their grades as lists."""
        queries = self._rows_to_score(as_queries(self._coded(X), y, qid, None, self._missing), None)
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
        values = None if judge is None else self._noted
        return Best(judge or instead, validates=judge is not None, tell=tell, values=values, **options)

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
        matrix, names = table(self._coded(X))
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
