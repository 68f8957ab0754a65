"""Gradient-boosted trees for Placet's losses, grown by Placet, LightGBM, XGBoost or CatBoost."""

import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from placet.data import DataError, Lists, Parts, Queries
from placet.data.arrays import Floats, Ints, encode, is_sparse, offsets_from_sizes
from placet.data.errors import as_choices
from placet.losses import LOSSES, Bound, needs
from placet.rank.controls import Effects, effects_of
from placet.rank.monotone import directions
from placet.rank.query_rows import row_weights
from placet.rank.saving.fitted_state import Learned, LevelsOf, Number, TreesOf, holds
from placet.rank.tree_arrays import Forest
from placet.rank.trees.backend_words import NUMBER_OF_TREES, OTHER_NAMES
from placet.rank.trees.symmetric_trees import MOST_LEAVES, WIDE
from placet.rank.trees.tree_libraries import BACKENDS, Settings, TreeLibrary, library_errors, lightgbm, lightgbm_params
from placet.rank.trees.tree_scores import OfTrees
from placet.rank.trees.trees_on_dask import best_number, grow_together
from placet.rank.validation import Best
from placet.threads import StepThread

LARGE = 1_000_000  # cells from which rounds may be long and run in a separate thread
LONG_ROUND = 0.5  # seconds above which a round is long
PATIENCE = 0.5  # seconds to wait for the current round after an interrupt
FLOOR = 1e-3  # smallest curvature of a row, relative to the mean, to bound the Newton steps of leaves
LEAST_SUM, MOST_SUM, FASTEST = 6.0, 42.0, 0.2
"""Sums of the learning rates of all trees for few and for many data, and the largest rate."""
MANY_ROWS, MANY_QUERIES = 20_000, 500
FARTHEST = 2.0
"""Largest Newton step of a row by a likelihood of orders or partitions; the step of a pair of equal scores is as large.

A chosen row has the gradient p - 1 and the curvature p (1 - p), p its probability at its stage: from equal scores it
alone would go as far as the list is long, and a leaf with some chosen rows several times as far as it should."""


class TreeRanker(OfTrees):
    """A sum of regression trees fitted to any loss that has a curvature.

    Gradients and curvatures are divided by the initial mean curvature, so ``l2`` and the library's own limits mean the
    same for every loss: a row has a curvature of about 1.  NaN in a feature is treated as a separate value, and columns
    of categories in a data frame (pandas, Polars) as categories; one that is new at prediction is missing.  LightGBM's
    name of a parameter is given where it differs.  Placet grows the trees itself unless a library is asked for; for all
    of them, trees are converted to Placet's arrays, so scoring, explaining, saving and ONNX export do not need it.

    Parameters
    ----------
    loss : str
        A key of ``LOSSES``.
    n_trees : int
        Maximum number of trees (LightGBM: ``n_estimators``).
    learning_rate : float, optional
        Factor by which each tree is multiplied; None chooses it by the size of the data (`rate_for`): for 600 trees,
        0.07 from 20,000 rows and 500 queries on, in proportion below, and not less than 0.01.
    leaves : int
        Maximum number of leaves of a tree (``num_leaves``; "placet" and "catboost": rounded to a power of 2).
    min_rows : int
        Minimum number of rows of a leaf (``min_child_samples``; "xgboost": minimum sum of their curvatures; ignored
        by CatBoost's symmetric trees).
    l2 : float
        Penalty on leaf values (``reg_lambda``).
    subsample : float
        Fraction of the rows drawn for each tree (with ``subsample_freq`` 1).  Which rows are drawn depends on their
        order (and on the parts, on a cluster); with 1.0 the order does not matter.
    feature_fraction : float
        Fraction of the features drawn for each tree (``colsample_bytree``).
    patience : int
        With a validation set, training stops after this many trees without a better ``metric``, and the best number
        of trees is kept (``early_stopping_rounds``).
    metric : str
        Validation metric (``eval_metric``).
    loss_params : mapping, optional
        Parameters of the loss.
    backend_params : mapping, optional
        Additional parameters of a library, under its own names.
    backend : str, optional
        What grows the trees: "placet", symmetric ones, in which all leaves of a level are split alike; or "lightgbm",
        "xgboost" or "catboost".  None is "lightgbm" for columns of categories, sparse tables, parts, more than 1,024
        leaves or 4,096 features, and where there are ``backend_params``; "placet" otherwise.
    monotone : mapping or sequence, optional
        Whether the score may only increase (1), only decrease (-1) or do either (0) with each feature, as a sequence
        or a mapping from feature names (``monotone_constraints``).
    random_state : int
        Random seed.

    ``fit(..., weight=w)`` with weights of rows that differ within a query multiplies the gradient and the curvature of
    each row, as LightGBM does: a row of weight 0 is compared with the others, and its own leaf takes no notice.

    ``fit(..., start=ranker)`` adds at most ``n_trees`` trees, fitted to these data, to those of a fitted ranker, of its
    file, or of a LightGBM model, and keeps these; without draws (``subsample`` and ``feature_fraction`` 1) and with
    the same rate and data, the result is that of one longer fit.  With a validation set, no tree is added unless the
    metric rises.

    ``fit(..., control=Z)`` fits ``s = trees + Z @ gamma``, alternating between a tree and a step in gamma at the same
    learning rate; ``controls_`` maps the names of the controls to gamma, and `predict` returns the trees' part only.

    On `Parts` with ``engine=client``, the workers of a Dask cluster grow the trees jointly; all ``n_trees`` are grown,
    then the best number of them on the validation set is kept.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> TreeRanker(n_trees=20).fit(data[:40]).score(data[40:], metric="ndcg@5") > 0.7
    True
    """

    takes_parts = takes_control = takes_start = takes_categories = True
    needs = ("curvature",)
    other_names = OTHER_NAMES
    _state = holds(
        trees_=TreesOf(),
        learned_=Learned(),
        n_trees_=Number(low=0, whole=True),
        controls_=Learned(),
        categories_=LevelsOf(),
    )
    _missing = "keep"
    _row_weight: Floats | None = None  # (rows,) weights within queries
    _factor: Floats | None = None  # (rows,) factors of the scores in the loss; set only by `placet.rank.clicks`

    def __init__(
        self,
        loss: str = "pl-partition",
        n_trees: int = 600,
        *,
        learning_rate: float | None = None,
        leaves: int = 31,
        min_rows: int = 20,
        l2: float = 1.0,
        subsample: float = 0.8,
        feature_fraction: float = 0.8,
        patience: int = 50,
        metric: str = "ndcg@10",
        loss_params: Mapping[str, Any] | None = None,
        backend_params: Mapping[str, Any] | None = None,
        backend: Literal["placet", "lightgbm", "xgboost", "catboost"] | None = None,
        monotone: Mapping[str, int] | Sequence[int] | None = None,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.leaves = leaves
        self.min_rows = min_rows
        self.l2 = l2
        self.subsample = subsample
        self.feature_fraction = feature_fraction
        self.patience = patience
        self.metric = metric
        self.loss_params = loss_params
        self.backend_params = backend_params
        self.backend = backend
        self.monotone = monotone
        self.random_state = random_state

    def _training_data(self, X: Any, y: Any, qid: Any, weight: ArrayLike | None) -> Any:
        own = None if y is None else row_weights(weight, qid, len(y))
        data = super()._training_data(X, y, qid, weight if own is None else None)
        self._row_weight = None if own is None else own[data.row]
        return data

    def _fit(self, queries: Queries | Parts, valid: Queries | Parts | None) -> None:
        self._check()
        slopes, settings = Slopes(self.loss, self.loss_params), self._settings(queries)
        backend = self._backend_for(queries)
        self.controls_: dict[str, float] = {}
        if isinstance(queries, Parts):
            self._fit_parts(queries, valid, slopes, settings, backend)
        else:
            self._fit_queries(queries, valid.load() if isinstance(valid, Parts) else valid, slopes, settings, backend)

    def _backend_for(self, data: Queries | Parts) -> str:
        """The backend, or the one that is chosen if none is given."""
        if self.backend is not None:
            return self.backend
        asks = self.categories_ or self.backend_params or self.leaves > MOST_LEAVES or data.n_features > WIDE
        return "lightgbm" if asks or isinstance(data, Parts) or is_sparse(data.X) else "placet"

    def _fit_queries(
        self, queries: Queries, valid: Queries | None, slopes: "Slopes", settings: Settings, backend: str
    ) -> None:
        """Grow trees in this process and keep the best number of them on the validation set."""
        slopes.bind(queries.lists())
        slopes.effects, slopes.rate, slopes.factor = effects_of(self._control), settings.learning_rate, self._factor
        slopes.row_weight = self._row_weight
        before = self._trees_before(queries.n_features)
        if len(before.roots):
            settings = settings._replace(random_state=settings.random_state + len(before.roots))  # draw other rows
            slopes.continue_from(before.predict(queries.X), self._start)
        with library_errors(backend):
            thread = StepThread(queries.X.shape[0] * queries.n_features >= LARGE)
            library: TreeLibrary = thread.run(lambda: BACKENDS[backend](settings, queries, valid))
            best, n_trees, grown = self._grow(library, slopes, valid, thread, before)
        if not (grown.feature >= 0).any():
            n_trees, grown = 0, Forest.empty(queries.n_features)
            if not len(before.roots):
                self._say_no_tree(len(queries.grade))
        self.n_trees_, self.trees_ = n_trees + len(before.roots), grown
        if len(before.roots):
            self.trees_ = Forest.sum_of([(before, 1.0), (grown, 1.0)], queries.n_features)
        self.learned_ = dict(slopes.learned)
        self.controls_ = {} if slopes.effects is None else slopes.effects.values_after(n_trees)
        self.fit_summary_ = {"trees": len(self.trees_.roots), "rounds": best.steps, **best.summary()}

    def _trees_before(self, n_features: int) -> Forest:
        """The trees of the model to continue; none without one."""
        start = self._start
        if start is None:
            return Forest.empty(n_features)
        if not isinstance(start, TreeRanker) and not hasattr(getattr(start, "booster_", start), "model_to_string"):
            raise TypeError(
                f"start must be a fitted TreeRanker, the path of a saved one, or a LightGBM model, not {start!r:.60}"
            )
        trees = start.trees_ if isinstance(start, TreeRanker) else Forest.from_lightgbm(start)
        if trees.n_features != n_features or trees.averaged:
            raise DataError(
                f"start has trees over {trees.n_features} features, and the rows have {n_features}"
                if not trees.averaged
                else "start is a mean of trees (LightGBM's boosting='rf'), to which none can be added"
            )
        return trees

    def _say_no_tree(self, n_rows: int) -> None:
        """Explain why no tree was grown: raise an error if there are too few rows, otherwise warn."""
        if n_rows < 2 * self.min_rows:
            raise DataError(
                f"{n_rows} rows are too few to grow a tree: min_rows ({self.min_rows}) of them must lie on "
                "either side of a split; lower min_rows, or use LinearRanker"
            )
        warnings.warn(
            f"no tree could be grown on {n_rows} rows: every score is 0; lower min_rows "
            f"({self.min_rows}), or give features that vary",
            stacklevel=5,
        )

    def _settings(self, data: Queries | Parts) -> Settings:
        names = ("leaves", "min_rows", "l2", "subsample", "feature_fraction", "random_state")
        rate = rate_for(*size_of(data), self.n_trees) if self.learning_rate is None else self.learning_rate
        sign = directions(self.monotone, data.features, data.n_features)
        return Settings(
            rate, **{name: getattr(self, name) for name in names}, sign=sign, own=self._further(data.features)
        )

    def _check(self) -> None:
        if self.n_trees < 1 or self.patience < 1:
            raise ValueError(f"n_trees {self.n_trees} and patience {self.patience} must be at least 1")
        if self.leaves < 2:
            raise ValueError(f"leaves {self.leaves} must be at least 2")
        for name in ("min_rows", "l2"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} {getattr(self, name)} must not be negative")
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise ValueError(f"learning_rate {self.learning_rate} must be above 0")
        self._check_shares("subsample", "feature_fraction")

    def _further(self, features: Sequence[Any] | None) -> dict[str, Any]:
        """Return ``backend_params`` as a dict, after checking that it does not set the number of trees.

        Columns of categories are added to it.
        """
        for name in self.backend_params or {}:
            if name in NUMBER_OF_TREES:
                raise ValueError(f"backend_params holds {name}; the number of trees is n_trees ({self.n_trees})")
        own = dict(self.backend_params or {})
        if not self.categories_:
            return own
        if self.backend not in (None, "lightgbm") or "categorical_feature" in own:
            raise ValueError(
                f"columns {', '.join(self.categories_)} hold categories, which backend='lightgbm' takes as they are; "
                "leave backend and categorical_feature out, or give columns of numbers"
            )
        assert features is not None
        return own | {"categorical_feature": [list(features).index(name) for name in self.categories_]}

    def _fit_parts(self, parts: Parts, valid: Any, slopes: "Slopes", settings: Settings, backend: str) -> None:
        """Grow all trees on a cluster, then keep the best number of them on the validation set."""
        if self._start is not None:
            raise ValueError("start continues a fit on queries in memory; load the parts (parts.load()) where they fit")
        if backend != "lightgbm":
            raise ValueError(f"backend={backend!r} grows trees on queries in memory; parts take 'lightgbm'")
        record = self._loss_record()
        if not record.shift_invariant or record.learned:
            able = [
                k
                for k, loss in LOSSES.items()
                if loss.shift_invariant and not loss.learned and "curvature" in loss.gives
            ]
            raise ValueError(
                f"loss {self.loss!r} has a level or parameters that all rows share, which trees on parts do not learn; "
                f"choose from {as_choices(able)}"
            )
        with library_errors(backend):
            text = grow_together(parts, self.loss, slopes.params, lightgbm_params(settings), self.n_trees)
        grown = lightgbm().Booster(model_str=text)
        self.n_trees_, quality = grown.num_trees(), None
        if valid is not None:
            held_out = valid if isinstance(valid, Parts) else Parts.of([valid])
            self.n_trees_, quality = best_number(held_out, text, self.metric, self.n_trees_)
        self.trees_ = Forest.from_text(grown.model_to_string(num_iteration=self.n_trees_))
        self.learned_ = {}
        self.fit_summary_ = {"trees": self.n_trees_, "rounds": grown.num_trees(), "validation": quality}

    def _grow(
        self, library: TreeLibrary, slopes: "Slopes", valid: Queries | None, thread: StepThread, before: Forest
    ) -> tuple[Best[int], int, Forest]:
        """Grow trees; return the training record (its state is the number of rounds), the best number, and the trees.

        While a library grows a tree, it ignores signals and its trees cannot be read.  If rounds are long, the best
        trees so far are copied, in at most 1/20 of the time, so that an interrupt need not wait for the round to end.
        """
        at_start = np.zeros(0) if valid is None else before.predict(valid.X)
        judge = self._judge(valid, lambda n: at_start + library.valid_scores() if n else at_start)
        best = self._keep_best(judge, self.n_trees, patience=self.patience)
        kept, again = (0, library.trees(0)), 0.0
        if len(before.roots):
            best.consider(0)
        with best:
            while best.steps < self.n_trees and not best.stale:
                if not thread.run(lambda: library.grow(slopes)):
                    break  # no leaf can be split any more
                best.see(best.steps + 1)
                start = time.monotonic()
                if thread.seconds > LONG_ROUND and start >= again and kept[0] != best.state:
                    kept = best.state, library.trees(best.state)
                    again = time.monotonic() + 20 * (time.monotonic() - start)
        if kept[0] == 0 or thread.ends_within(PATIENCE):
            n_trees = 0 if best.empty else best.state
            kept = n_trees, library.trees(n_trees)
        return best, kept[0], kept[1]() if kept[0] else Forest.empty(before.n_features)


def rate_for(n_rows: int, n_queries: int, n_trees: int) -> float:
    """The learning rate of ``n_trees`` trees if none is given.

    The rates of all trees sum to 42 min(rows / 20,000, queries / 500), but at least 6 and at most 42; a rate is at most
    0.2.

    >>> rate_for(500_000, 5_000, 600), rate_for(10_000, 60, 600), rate_for(10_000, 60, 20)
    (0.07, 0.01, 0.2)
    """
    total = MOST_SUM * min(n_rows / MANY_ROWS, n_queries / MANY_QUERIES)
    return min(max(min(total, MOST_SUM), LEAST_SUM) / n_trees, FASTEST)


def size_of(data: Queries | Parts) -> tuple[int, int]:
    """The numbers of rows and of lists, without lists of equal grades, which tell nothing; of parts, all."""
    if isinstance(data, Parts):
        return data.n_rows, data.n_lists
    size = np.diff(data.offsets)
    grade, first, size = data.grade, data.offsets[:-1][size > 0], size[size > 0]
    if not len(first):
        return 0, 0
    told = np.maximum.reduceat(grade, first) > np.minimum.reduceat(grade, first)
    return int(size[told].sum()), int(told.sum())


class Slopes:
    """Objective function for tree libraries: gradient and curvature of a loss, in the caller's row order.

    Call with (scores, data set with get_label), as LightGBM and XGBoost do, or with two arrays (labels, scores), as
    their scikit-learn interfaces do.
    """

    def __init__(
        self,
        loss: str,
        params: Mapping[str, Any] | None = None,
        qid: Sequence[Hashable] | None = None,
        weight: ArrayLike | None = None,
    ) -> None:
        record = needs(loss, *TreeRanker.needs, who="gradient boosting")
        self.loss, self.params = loss, record.training_parameters(params)
        self.qid, self.weight = qid, weight
        self.bound: Bound | None = None
        self.row: Ints | None = None  # the caller's index of each row, if rows had to be grouped into lists
        self.learned: dict[str, float] = {}
        self.unit = self.level = 0.0
        self.effects: Effects | None = None  # effects of controls, updated at every call
        self.rate = 1.0
        self.factor: Floats | None = None  # (rows,) by which scores are multiplied, excluding effects
        self.row_weight: Floats | None = None  # (rows,) by which gradients and curvatures are multiplied
        self.before: Floats | None = None  # (rows,) scores to which those of the trees are added

    def bind(self, lists: Lists, row: Ints | None = None) -> None:
        """Set the lists, and initialize the loss and its learned parameters."""
        self.bound, self.row = Bound(self.loss, lists, self.params), row
        self.learned = dict(self.bound.learned)

    def continue_from(self, s: Floats, model: Any) -> None:
        """Start from scores ``s`` of a fitted model; the unit of curvature stays that of scores of 0."""
        effects, self.effects = self.effects, None
        self.at(np.zeros(len(s)))
        self.effects, self.before = effects, s
        known = getattr(model, "learned_", {})
        self.learned |= {name: known[name] for name in self.learned if name in known}
        if effects is not None:
            effects.begin_at(getattr(model, "controls_", {}))

    def __call__(self, first: Any, second: Any) -> tuple[Floats, Floats]:
        labels = hasattr(second, "get_label")
        scores, grade = (first, second.get_label) if labels else (second, lambda: first)
        if self.bound is None:
            self._group(np.asarray(grade(), dtype=np.float64))
        return self.at(np.asarray(scores, dtype=np.float64))

    def at(self, s: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature at scores ``s``; also update learned parameters.

        If the loss is not shift-invariant, it is evaluated at ``s + level``, with the best constant shift ``level`` at
        the first call: far from it, all gradients have the same sign and no split reduces the loss enough.
        """
        assert self.bound is not None
        s = s if self.row is None else s[self.row]
        s = s if self.before is None else s + self.before
        s = s if self.factor is None else self.factor * s
        s = s if self.effects is None else s + self.effects.scores()
        if self.learned:
            self._learn(self.bound, s)
        if not self.unit:
            self.level = self.bound.best_level(s, self.learned)
        s = s + self.level if self.level else s
        _, g = self.bound.value_and_grad(s, self.learned)
        h = self.bound.curvature(s, self.learned)
        if not self.unit:
            self.unit = float(np.mean(h)) or 1.0
        g, h = g / self.unit, np.maximum(h / self.unit, FLOOR)
        if self.bound.loss.law in ("order", "partition"):
            h = np.maximum(h, np.abs(g) / FARTHEST)
        if self.row_weight is not None:
            g, h = self.row_weight * g, self.row_weight * h
        if self.effects is not None:
            self.effects.step(g, h, self.rate)
        if self.factor is not None:
            g, h = self.factor * g, np.maximum(self.factor**2 * h, FLOOR)
        if self.row is None:
            return g, h
        back_g, back_h = np.empty_like(g), np.empty_like(h)
        back_g[self.row], back_h[self.row] = g, h
        return back_g, back_h

    def _learn(self, bound: Bound, s: Floats) -> None:
        """Take a safeguarded Newton step in each learned parameter, with finite-difference curvature."""
        slopes = lambda learned: bound.value_grad_slopes(s, learned)[2]  # noqa: E731
        here = slopes(self.learned)
        for k, (name, value) in enumerate(list(self.learned.items())):
            bend = (slopes({**self.learned, name: value + 1e-4})[k] - here[k]) / 1e-4
            step = -here[k] / bend if bend > 0 else -np.sign(here[k])
            self.learned[name] = value + float(np.clip(step, -1.0, 1.0))

    def _group(self, grade: Floats) -> None:
        """Group rows into lists by ``qid``, once the first call provides the grades."""
        if self.qid is None or len(self.qid) != len(grade):
            raise DataError(
                f"qid has {0 if self.qid is None else len(self.qid)} entries; there are {len(grade)} labels"
            )
        code, names = encode(self.qid, "qid")
        if self.weight is not None and np.shape(self.weight) != (len(names),):
            raise DataError(f"weight has shape {np.shape(self.weight)}; give one for each of {len(names)} queries")
        row = np.argsort(code, kind="stable")
        offsets = offsets_from_sizes(np.bincount(code, minlength=len(names)))
        self.bind(Lists(grade[row], offsets, self.weight), row)


def boosting_objective(
    loss: str, qid: Sequence[Hashable], *, weight: ArrayLike | None = None, **params: Any
) -> Callable[[Any, Any], tuple[Floats, Floats]]:
    """Custom objective for LightGBM's or XGBoost's own training loop, which does not pass it the groups.

    ``qid`` (rows,): the query of each row, in any order; ``weight``: one per query, in order of first appearance;
    ``params``: parameters of the loss.

    Returns
    -------
    function
        Of labels and scores: gradient and curvature (rows,).

    >>> f = boosting_objective("ranknet", qid=["q", "q"])
    >>> gradient, curvature = f(np.array([1.0, 0.0]), np.array([0.0, 0.0]))  # labels, scores
    >>> gradient.round(6), curvature.round(6)  # in units of the curvature at the start
    (array([-2.,  2.]), array([1., 1.]))
    """
    return Slopes(loss, params, qid, weight)
