"""Gradient-boosted trees: LightGBM grows them, Placet's losses say where to."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import DataError, Lists, Queries
from placet.data.columns import encode, offsets_from_sizes
from placet.kernels import ranges
from placet.losses import CURVATURES, LEARNT, LOSSES
from placet.metrics import metric as metric_of
from placet.rank.ranker import Ranker

Array = NDArray[np.float64]
FLOOR = 1e-3  # least curvature of a row, in units of the mean: keeps Newton steps of a leaf bounded


class TreeRanker(Ranker):
    """A sum of regression trees fitted to any loss that has a curvature, with LightGBM as the engine.

    Gradients and curvatures are divided by the mean curvature at the start, so ``l2`` and LightGBM's own limits mean
    the same for every loss: a row counts as about one.  With a validation set, training stops when ``metric`` has not
    improved for ``patience`` rounds, and the best round is kept.  An interrupt (Ctrl-C) keeps the trees so far.
    ``engine`` passes further parameters to LightGBM.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> TreeRanker("pmop-fd", n_trees=20).fit(data[:40]).score(data[40:], metric="ndcg@5") > 0.7
    True
    """

    _state = ("trees_", "learnt_", "n_trees_")

    def __init__(
        self,
        loss: str = "pmop-fd",
        n_trees: int = 300,
        *,
        learning_rate: float = 0.1,
        leaves: int = 31,
        min_rows: int = 20,
        l2: float = 1.0,
        rows: float = 1.0,
        columns: float = 1.0,
        patience: int = 50,
        metric: str = "ndcg@10",
        loss_params: Mapping[str, Any] | None = None,
        engine: Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.leaves = leaves
        self.min_rows = min_rows
        self.l2 = l2
        self.rows = rows
        self.columns = columns
        self.patience = patience
        self.metric = metric
        self.loss_params = loss_params
        self.engine = engine
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        lgb = lightgbm()
        slopes = Slopes(self.loss, dict(self.loss_params or {}))
        slopes.see(queries.grade, queries.offsets, queries.weight)
        train = lgb.Dataset(queries.X, queries.grade, free_raw_data=False)
        booster = lgb.Booster({**self._engine(), **(self.engine or {})}, train)
        score = metric_of(self.metric)
        if valid is not None:
            booster.add_valid(lgb.Dataset(valid.X, valid.grade, reference=train), "valid")
        best, best_round, rounds, interrupted = -np.inf, 0, 0, False

        def held_out(preds: Array, _: Any) -> tuple[str, float, bool]:
            return self.metric, float(np.nanmean(score(preds, valid.grade, valid.offsets))), True  # type: ignore[union-attr]

        try:
            while rounds < self.n_trees and rounds - best_round < (self.patience if valid is not None else np.inf):
                if booster.update(fobj=slopes):
                    break  # no leaf can be split any more
                rounds += 1
                if valid is not None:
                    found = booster.eval_valid(feval=held_out)[0][2]
                    best, best_round = (found, rounds) if found > best else (best, best_round)
        except KeyboardInterrupt:
            interrupted = True
        self.n_trees_ = best_round if valid is not None and best_round else rounds
        self.trees_ = np.frombuffer(booster.model_to_string(num_iteration=self.n_trees_).encode(), np.uint8)
        self.learnt_ = dict(slopes.learnt)
        self.fit_summary_ = {"trees": self.n_trees_, "rounds": rounds, "interrupted": interrupted}
        if valid is not None:
            self.fit_summary_["validation"] = float(best)

    def _engine(self) -> dict[str, Any]:
        return {
            "objective": "none",
            "metric": "none",
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.min_rows,
            "min_sum_hessian_in_leaf": 1e-3,
            "lambda_l2": self.l2,
            "bagging_fraction": self.rows,
            "bagging_freq": int(self.rows < 1),
            "feature_fraction": self.columns,
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }

    def _booster(self) -> Any:
        """The trees as LightGBM's object, read from text once."""
        if getattr(self, "_read", (None, None))[0] is not self.trees_:
            self._read = self.trees_, lightgbm().Booster(model_str=self.trees_.tobytes().decode())
        return self._read[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_read"}

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Array:
        return np.asarray(self._booster().predict(X), dtype=np.float64)

    def explain(self, X: Any, i: int, j: int) -> list[tuple[Any, float]]:
        """Why row i is above row j: what each feature adds to s_i - s_j (Shapley values), largest first."""
        rows = X.X if isinstance(X, Queries) else X
        part = self._booster().predict(rows[[i, j]], pred_contrib=True)
        part = np.asarray(part.toarray() if hasattr(part, "toarray") else part)
        gap = (part[0] - part[1])[:-1]
        names = self.features_ if self.features_ is not None else range(self.n_features_in_)
        return [(names[k], float(gap[k])) for k in np.argsort(-np.abs(gap), kind="stable")]


class Slopes:
    """Gradient and curvature of a loss in the order of the caller's rows, in the form that boosting engines call.

    Called with (scores, data set with get_label) as LightGBM and XGBoost do, or with two arrays (labels, scores) as
    their scikit-learn interfaces do.
    """

    def __init__(self, loss: str, params: dict[str, Any], qid: Sequence[Hashable] | None = None) -> None:
        if loss not in CURVATURES:
            raise ValueError(f"loss {loss!r} has no curvature for trees; choose from {sorted(CURVATURES)}")
        self.loss, self.params, self.qid = loss, params, qid
        self.learnt = {name: value for name, value in LEARNT.get(loss, {}).items() if name not in params}
        self.lists: Lists | None = None
        self.row: NDArray[np.int64] | None = None
        self.unit = 0.0

    def see(self, grade: ArrayLike, offsets: NDArray[np.int64], weight: ArrayLike | None = None) -> None:
        """Fix the lists; rows are put in descending grade once, not in every round."""
        grade = np.asarray(grade, dtype=np.float64)
        self.row = None if ranges.is_descending(grade, offsets) else ranges.descending_order(grade, offsets)
        self.lists = Lists(grade if self.row is None else grade[self.row], offsets, weight)

    def __call__(self, first: Any, second: Any) -> tuple[Array, Array]:
        labels = hasattr(second, "get_label")
        scores, grade = (first, second.get_label) if labels else (second, lambda: first)
        if self.lists is None:
            self._group(np.asarray(grade(), dtype=np.float64))
        return self.at(np.asarray(scores, dtype=np.float64))

    def at(self, s: Array) -> tuple[Array, Array]:
        """Gradient and curvature at scores ``s``; learnt parameters take a step of their own on the way."""
        assert self.lists is not None
        s = s if self.row is None else s[self.row]
        if self.learnt:
            self._learn(s)
        _, g = LOSSES[self.loss](s, self.lists, **self.params, **self.learnt)
        h = CURVATURES[self.loss](s, self.lists, **self.params, **self.learnt)
        if not self.unit:
            self.unit = float(np.mean(h)) or 1.0
        g, h = g / self.unit, np.maximum(h / self.unit, FLOOR)
        if self.row is None:
            return g, h
        back_g, back_h = np.empty_like(g), np.empty_like(h)
        back_g[self.row], back_h[self.row] = g, h
        return back_g, back_h

    def _learn(self, s: Array) -> None:
        """One safeguarded Newton step in each learnt parameter, its curvature taken from a difference of slopes."""
        slope = lambda learnt: LOSSES[self.loss](s, self.lists, **self.params, **learnt, parameter_gradient=True)[2]  # noqa: E731
        here = slope(self.learnt)
        for name, value in list(self.learnt.items()):
            near = slope({**self.learnt, name: value + 1e-4})
            bend = (near[name] - here[name]) / 1e-4
            step = -here[name] / bend if bend > 0 else -np.sign(here[name])
            self.learnt[name] = value + float(np.clip(step, -1.0, 1.0))

    def _group(self, grade: Array) -> None:
        if self.qid is None or len(self.qid) != len(grade):
            raise DataError(
                f"qid has {0 if self.qid is None else len(self.qid)} entries; there are {len(grade)} labels"
            )
        code, names = encode(self.qid, "qid")
        order = np.lexsort((-grade, code))
        self.row = order
        self.lists = Lists(grade[order], offsets_from_sizes(np.bincount(code, minlength=len(names))))


def objective(loss: str, qid: Sequence[Hashable], **params: Any) -> Callable[[Any, Any], tuple[Array, Array]]:
    """A custom objective for LightGBM's or XGBoost's own training loop, which does not tell it the groups.

    ``qid`` (rows,) names the query of each row, in any order.  ``params`` are those of the loss.

    >>> f = objective("ranknet", qid=["q", "q"])
    >>> gradient, curvature = f(np.array([1.0, 0.0]), np.array([0.0, 0.0]))  # labels, scores
    >>> gradient.round(6), curvature.round(6)  # in units of the curvature at the start
    (array([-2.,  2.]), array([1., 1.]))
    """
    return Slopes(loss, params, qid)


def lightgbm() -> Any:
    """LightGBM, or words on how to get it."""
    try:
        import lightgbm
    except ImportError:
        raise ImportError("TreeRanker needs LightGBM; install it with: pip install 'placet[trees]'") from None
    return lightgbm
