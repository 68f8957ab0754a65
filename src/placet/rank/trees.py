"""Gradient-boosted trees: LightGBM, XGBoost or CatBoost grows them, Placet's losses say where to."""

import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.data import DataError, Lists, Parts, Queries
from placet.data.arrays import Floats, Ints, encode, offsets_from_sizes
from placet.data.errors import one_of
from placet.losses import LOSSES, Bound, needs
from placet.rank.controls import Effects, effects_of
from placet.rank.engines import BACKENDS, Engine, Settings, engine_errors, lightgbm, lightgbm_params
from placet.rank.forest import Forest
from placet.rank.monotone import directions
from placet.rank.of_trees import OfTrees
from placet.rank.state import Learnt, Number, Trees, holds
from placet.rank.trees_in_parts import best_number, grow_together
from placet.rank.validation import Best
from placet.threads import StepThread

NUMBER_OF_TREES = (
    "n_estimators",
    "num_iterations",
    "num_iteration",
    "num_trees",
    "num_round",
    "num_boost_round",
    "n_iter",
)
LARGE = 1_000_000  # cells from which a round may be long
LONG_ROUND = 0.5  # seconds
PATIENCE = 0.5  # seconds that an interrupt leaves a round that is not at its end
FLOOR = 1e-3  # least curvature of a row, in units of the mean: keeps Newton steps of a leaf bounded


class TreeRanker(OfTrees):
    """A sum of regression trees fitted to any loss that has a curvature.

    Gradients and curvatures are divided by the mean curvature at the start, so ``l2`` and the engine's own limits mean
    the same for every loss: a row counts as about one.  NaN in a feature is a value of its own.  Each parameter's name
    in LightGBM is given where it differs; further ones go into ``engine``.  Whatever grew them, the trees are kept as
    Placet's own arrays, which score, explain, are saved and become ONNX without the engine.

    Parameters
    ----------
    loss : str
        A name of ``LOSSES``.
    n_trees : int
        Trees at most (LightGBM: ``n_estimators``).
    learning_rate : float
        Factor of each tree.
    leaves : int
        Leaves of a tree at most (``num_leaves``; "catboost": the power of 2 next to it).
    min_rows : int
        Rows of a leaf at least (``min_child_samples``; "xgboost": their curvature; CatBoost's symmetric trees have no
        such limit).
    l2 : float
        Penalty on the values of leaves (``reg_lambda``).
    subsample : float
        Share of the rows drawn for each tree (with ``subsample_freq`` 1).
    feature_fraction : float
        Share of the features drawn for each tree (``colsample_bytree``).
    patience : int
        With a validation set, training stops after this many trees without a better ``metric``; the best are kept
        (``early_stopping_rounds``).
    metric : str
        Judges on the validation set (``eval_metric``).
    loss_params : mapping, optional
        Parameters of the loss.
    engine : mapping, optional
        Further parameters of the backend, in its own words.
    backend : str
        "lightgbm", "xgboost" or "catboost": whose package grows the trees.
    monotone : mapping or sequence, optional
        How the score may move with a feature: 1 (only rise), -1 (only fall) or 0 (either) for every feature, or a
        mapping from names of features (``monotone_constraints``).
    random_state : int
        Seed of the draws.

    ``fit(..., control=Z)`` fits ``s = trees + Z @ gamma``, a step in gamma after every tree at the rate of the trees;
    ``controls_`` maps the names of the controls to gamma, and `predict` gives the trees alone.

    On `Parts` with ``engine=client`` the workers of a Dask cluster grow the trees together; all ``n_trees`` are grown,
    and as many kept as are best on the validation set.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> TreeRanker("pmop-fd", n_trees=20).fit(data[:40]).score(data[40:], metric="ndcg@5") > 0.7
    True
    """

    takes_parts = takes_control = True
    needs = ("curvature",)
    _state = holds(trees_=Trees(), learnt_=Learnt(), n_trees_=Number(low=0, whole=True), controls_=Learnt())
    _missing = "keep"
    _factor: Floats | None = None  # by which the score of a row counts in the loss; set by `placet.rank.clicks` alone

    def __init__(
        self,
        loss: str = "pmop-fd",
        n_trees: int = 300,
        *,
        learning_rate: float = 0.1,
        leaves: int = 31,
        min_rows: int = 20,
        l2: float = 1.0,
        subsample: float = 1.0,
        feature_fraction: float = 1.0,
        patience: int = 50,
        metric: str = "ndcg@10",
        loss_params: Mapping[str, Any] | None = None,
        engine: Mapping[str, Any] | None = None,
        backend: str = "lightgbm",
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
        self.engine = engine
        self.backend = backend
        self.monotone = monotone
        self.random_state = random_state

    def _fit(self, queries: Queries | Parts, valid: Queries | Parts | None) -> None:
        one_of(self.backend, BACKENDS, "backend")
        self._check()
        slopes, settings = Slopes(self.loss, self.loss_params), self._settings(queries)
        self.controls_: dict[str, float] = {}
        if isinstance(queries, Parts):
            self._fit_parts(queries, valid, slopes, settings)
        else:
            self._fit_queries(queries, valid.load() if isinstance(valid, Parts) else valid, slopes, settings)

    def _fit_queries(self, queries: Queries, valid: Queries | None, slopes: "Slopes", settings: Settings) -> None:
        """Grow trees in this process, and keep as many as are best on the validation set."""
        slopes.bind(queries.lists())
        slopes.effects, slopes.rate, slopes.factor = effects_of(self._control), self.learning_rate, self._factor
        with engine_errors(self.backend):
            thread = StepThread(queries.X.shape[0] * queries.n_features >= LARGE)
            engine: Engine = thread.run(lambda: BACKENDS[self.backend](settings, queries, valid))
            best, self.n_trees_, self.trees_ = self._grow(engine, slopes, valid, thread)
        if not (self.trees_.feature >= 0).any():
            self.n_trees_, self.trees_ = 0, Forest.empty(queries.n_features)
            self._say_no_tree(len(queries.grade))
        self.learnt_ = dict(slopes.learnt)
        self.controls_ = {} if slopes.effects is None else slopes.effects.values_after(self.n_trees_)
        self.fit_summary_ = {"trees": self.n_trees_, "rounds": best.steps, **best.summary()}

    def _say_no_tree(self, n_rows: int) -> None:
        """Refuse too few rows; warn where nothing could be split."""
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
        names = ("learning_rate", "leaves", "min_rows", "l2", "subsample", "feature_fraction", "random_state")
        sign = directions(self.monotone, data.features, data.n_features)
        return Settings(**{name: getattr(self, name) for name in names}, sign=sign, own=self._further())

    def _check(self) -> None:
        if self.n_trees < 1 or self.patience < 1:
            raise ValueError(f"n_trees {self.n_trees} and patience {self.patience} must be at least 1")
        if self.leaves < 2:
            raise ValueError(f"leaves {self.leaves} must be at least 2")
        for name in ("min_rows", "l2"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} {getattr(self, name)} must not be negative")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate {self.learning_rate} must be above 0")
        self._check_shares("subsample", "feature_fraction")

    def _further(self) -> dict[str, Any]:
        """``engine``, where it does not say again what a parameter of the ranker says."""
        for name in self.engine or {}:
            if name in NUMBER_OF_TREES:
                raise ValueError(f"engine holds {name}; the number of trees is n_trees ({self.n_trees})")
        return dict(self.engine or {})

    def _fit_parts(self, parts: Parts, valid: Any, slopes: "Slopes", settings: Settings) -> None:
        """Grow all trees on a cluster, then keep as many as are best on the validation set."""
        if self.backend != "lightgbm":
            raise ValueError(f"backend={self.backend!r} grows trees on queries in memory; parts take 'lightgbm'")
        record = self._loss_record()
        if not record.shift_invariant or record.learnt:
            able = [
                k
                for k, loss in LOSSES.items()
                if loss.shift_invariant and not loss.learnt and "curvature" in loss.gives
            ]
            raise ValueError(
                f"loss {self.loss!r} has a level or parameters that all rows share, which trees on parts do not learn; "
                f"choose from {able}"
            )
        with engine_errors(self.backend):
            text = grow_together(parts, self.loss, slopes.params, lightgbm_params(settings), self.n_trees)
        grown = lightgbm().Booster(model_str=text)
        self.n_trees_, quality = grown.num_trees(), None
        if valid is not None:
            held_out = valid if isinstance(valid, Parts) else Parts.of([valid])
            self.n_trees_, quality = best_number(held_out, text, self.metric, self.n_trees_)
        self.trees_ = Forest.from_text(grown.model_to_string(num_iteration=self.n_trees_))
        self.learnt_ = {}
        self.fit_summary_ = {"trees": self.n_trees_, "rounds": grown.num_trees(), "validation": quality}

    def _grow(
        self, engine: Engine, slopes: "Slopes", valid: Queries | None, thread: StepThread
    ) -> tuple[Best[int], int, Forest]:
        """Grow trees, and return the best number of them and these; the state of a training is the number of rounds.

        An engine that grows a tree takes no notice of signals, nor gives its trees away.  Where rounds are long, copies
        of the best so far are kept, for a twentieth of the time, and an interrupt does not wait for the end of a round.
        """
        judge = self._judge(valid, lambda _: engine.valid_scores())
        best = self._keep_best(judge, self.n_trees, patience=self.patience)
        kept, again = (0, engine.trees(0)), 0.0
        with best:
            while best.steps < self.n_trees and not best.stale:
                if not thread.run(lambda: engine.grow(slopes)):
                    break  # no leaf can be split any more
                best.see(best.steps + 1)
                start = time.monotonic()
                if thread.seconds > LONG_ROUND and start >= again and kept[0] != best.state:
                    kept = best.state, engine.trees(best.state)
                    again = time.monotonic() + 20 * (time.monotonic() - start)
        if kept[0] == 0 or thread.ends_within(PATIENCE):
            n_trees = 0 if best.empty else best.state
            kept = n_trees, engine.trees(n_trees)
        return best, kept[0], kept[1]()


class Slopes:
    """Gradient and curvature of a loss in the order of the caller's rows, in the form that boosting engines call.

    Called with (scores, data set with get_label) as LightGBM and XGBoost do, or with two arrays (labels, scores) as
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
        self.row: Ints | None = None  # the caller's number of each row, where lists had to be put together
        self.learnt: dict[str, float] = {}
        self.unit = self.level = 0.0
        self.effects: Effects | None = None  # of controls, which take a step of their own at every call
        self.rate = 1.0
        self.factor: Floats | None = None  # (rows,) by which scores count, effects apart

    def bind(self, lists: Lists, row: Ints | None = None) -> None:
        """Fix the lists."""
        self.bound, self.row = Bound(self.loss, lists, self.params), row
        self.learnt = dict(self.bound.learnt)

    def __call__(self, first: Any, second: Any) -> tuple[Floats, Floats]:
        labels = hasattr(second, "get_label")
        scores, grade = (first, second.get_label) if labels else (second, lambda: first)
        if self.bound is None:
            self._group(np.asarray(grade(), dtype=np.float64))
        return self.at(np.asarray(scores, dtype=np.float64))

    def at(self, s: Floats) -> tuple[Floats, Floats]:
        """Gradient and curvature at scores ``s``; learnt parameters take a step of their own on the way.

        Some losses are not invariant to shifts, though a shift changes no order; there the scores stand for ``s +
        level``, the level that was best at the first call: far from it all gradients point one way, and no split is
        worth it.
        """
        assert self.bound is not None
        s = s if self.row is None else s[self.row]
        s = s if self.factor is None else self.factor * s
        s = s if self.effects is None else s + self.effects.scores()
        if self.learnt:
            self._learn(self.bound, s)
        if not self.unit:
            self.level = self.bound.best_level(s, self.learnt)
        s = s + self.level if self.level else s
        _, g = self.bound.value_and_grad(s, self.learnt)
        h = self.bound.curvature(s, self.learnt)
        if not self.unit:
            self.unit = float(np.mean(h)) or 1.0
        g, h = g / self.unit, np.maximum(h / self.unit, FLOOR)
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
        """One safeguarded Newton step in each learnt parameter, its curvature taken from a difference of slopes."""
        slopes = lambda learnt: bound.value_grad_slopes(s, learnt)[2]  # noqa: E731
        here = slopes(self.learnt)
        for k, (name, value) in enumerate(list(self.learnt.items())):
            bend = (slopes({**self.learnt, name: value + 1e-4})[k] - here[k]) / 1e-4
            step = -here[k] / bend if bend > 0 else -np.sign(here[k])
            self.learnt[name] = value + float(np.clip(step, -1.0, 1.0))

    def _group(self, grade: Floats) -> None:
        """Find the lists from ``qid``, when the first call brings the grades."""
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
    """A custom objective for LightGBM's or XGBoost's own training loop, which does not tell it the groups.

    ``qid`` (rows,) names the query of each row, in any order; ``weight``: one per query, in order of first appearance.
    ``params`` are those of the loss.

    >>> f = boosting_objective("ranknet", qid=["q", "q"])
    >>> gradient, curvature = f(np.array([1.0, 0.0]), np.array([0.0, 0.0]))  # labels, scores
    >>> gradient.round(6), curvature.round(6)  # in units of the curvature at the start
    (array([-2.,  2.]), array([1., 1.]))
    """
    return Slopes(loss, params, qid, weight)
