"""Gradient-boosted trees: LightGBM grows them, Placet's losses say where to."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Queries
from placet.data.arrays import Floats
from placet.metrics import metric as metric_of
from placet.rank.ranker import Ranker, largest_first, mean_defined, two_rows
from placet.rank.slopes import Slopes


class TreeRanker(Ranker):
    """A sum of regression trees fitted to any loss that has a curvature, with LightGBM as the engine.

    Gradients and curvatures are divided by the mean curvature at the start, so ``l2`` and LightGBM's own limits mean
    the same for every loss: a row counts as about one.  With a validation set, training stops when ``metric`` has not
    improved for ``patience`` rounds, and the best round is kept.  An interrupt (Ctrl-C) keeps the trees so far.
    NaN in a feature is a value of its own.  ``engine`` passes further parameters to LightGBM.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> TreeRanker("pmop-fd", n_trees=20).fit(data[:40]).score(data[40:], metric="ndcg@5") > 0.7
    True
    """

    _state = ("trees_", "learnt_", "n_trees_")
    _missing = "keep"

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
        if self.n_trees < 1 or self.patience < 1:
            raise ValueError(f"n_trees {self.n_trees} and patience {self.patience} must be at least 1")
        slopes = Slopes(self.loss, self.loss_params)
        slopes.see(queries.grade, queries.offsets, queries.weight)
        train = lgb.Dataset(queries.X, queries.grade)
        booster = lgb.Booster({**self._engine(), **(self.engine or {})}, train)
        if valid is not None:
            booster.add_valid(lgb.Dataset(valid.X, valid.grade, reference=train), "valid")
        rounds, best_round, best, interrupted = self._grow(booster, slopes, valid)
        if rounds == 0:
            warnings.warn(
                f"no tree could be grown on {len(queries.grade)} rows: every score is 0; lower min_rows "
                f"({self.min_rows}), or give features that vary",
                stacklevel=3,
            )
        self.n_trees_ = rounds if valid is None else best_round
        text = booster.model_to_string(num_iteration=self.n_trees_ or None)
        self.trees_ = np.frombuffer(text.encode(), np.uint8)
        self.learnt_ = dict(slopes.learnt)
        self.fit_summary_ = {"trees": self.n_trees_, "rounds": rounds, "interrupted": interrupted, "validation": best}

    def _grow(self, booster: Any, slopes: Slopes, valid: Queries | None) -> tuple[int, int, float | None, bool]:
        """Rounds grown, the best of them on the validation set, its metric, and whether an interrupt came."""
        metric = metric_of(self.metric)
        rounds, best_round, best = 0, 0, None

        def held_out(s: Floats, _: Any) -> tuple[str, float, bool]:
            return self.metric, mean_defined(metric(s, valid.grade, valid.offsets)), True  # type: ignore[union-attr]

        try:
            while rounds < self.n_trees and (valid is None or rounds - best_round < self.patience):
                if booster.update(fobj=slopes):
                    break  # no leaf can be split any more
                rounds += 1
                found = None
                if valid is not None:
                    found = float(booster.eval_valid(feval=held_out)[0][2])
                    best, best_round = (found, rounds) if best is None or found > best else (best, best_round)
                self._tell(rounds, self.n_trees, found)
        except KeyboardInterrupt:
            if rounds == 0:
                raise
            return rounds, best_round, best, True
        return rounds, best_round, best, False

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
            lgb = lightgbm()
            try:
                booster = lgb.Booster(model_str=self.trees_.tobytes().decode())
            except (lgb.basic.LightGBMError, UnicodeDecodeError) as error:
                raise DataError(f"the trees of this model are damaged ({error})") from None
            self._read = self.trees_, booster
        return self._read[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_read"}

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Floats:
        if not X.shape[0]:
            return np.zeros(0)
        return np.asarray(self._booster().predict(X), dtype=np.float64)

    def explain(self, X: Any, i: int, j: int) -> list[tuple[Any, float]]:
        """Why row i is above row j: what each feature adds to s_i - s_j (Shapley values), largest first."""
        part = self._booster().predict(two_rows(self, X, i, j), pred_contrib=True)
        part = np.asarray(part.toarray() if hasattr(part, "toarray") else part)
        names = self.features_ if self.features_ is not None else range(self.n_features_in_)
        return largest_first(names, (part[0] - part[1])[:-1])


def lightgbm() -> Any:
    """LightGBM, or words on how to get it."""
    try:
        import lightgbm
    except ImportError:
        raise ImportError("TreeRanker needs LightGBM; install it with: pip install 'placet[trees]'") from None
    return lightgbm
