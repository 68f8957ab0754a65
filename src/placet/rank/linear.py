"""A linear score of the features, fitted to any loss."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Queries
from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.losses import HVPS, LEARNT
from placet.metrics import metric as metric_of
from placet.optim import Fit, by_products, lbfgs, newton, sgd
from placet.rank.objective import SAMPLED, Objective, parameters_for, times
from placet.rank.products import ROWS_AT_ONCE, Products
from placet.rank.ranker import Ranker, largest_first, mean_defined, two_rows

SOLVERS = ("lbfgs", "newton", "sgd")
KINKED = frozenset({"ranksvm"})  # no gradient vanishes at a kink: these stop by improvement as well
EVERY_STEP = 10  # steps that are all tried on the validation set; later ones as often as they are 1/10 further


class LinearRanker(Ranker):
    """``s = X @ w``, with ``w`` minimising  sum_q weight_q loss_q(s) / sum_q weight_q + l2 / 2 |w|^2.

    With ``standardize`` the penalty is on weights of features brought to mean 0 and deviation 1, without copying them.
    ``second_order=0.15`` adds products of standardised features whose absolute correlation with the grade exceeds 0.15
    (they are held: memory grows by their number).  The cosine does not depend on the length of ``w`` and is not
    penalised.  Parameters that a loss learns jointly (``losses.LEARNT``) are in ``learnt_``.

    ``solver`` "lbfgs" or "newton" stops when the largest component of the gradient is ``tol`` times what it was at the
    start (all weights 0), whatever the scale of the loss; float32 features give gradients to about 1e-4.  ``rel_tol``
    adds a second way: ``tol=1e-6, rel_tol=1e-5, max_iter=100`` stops as in the PMOP paper.  ``solver="sgd"``, for
    losses that sample, takes ``max_iter`` steps of kind ``step`` ("adagrad", "adam" or "plain") and length
    ``learning_rate``, on ``batch`` queries drawn for each (None: all).

    With a validation set the weights of the step with the best ``metric`` on it are kept; after the first steps it is
    tried less often, so that it costs a small share of the fit.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> ranker = LinearRanker("ranknet", l2=1e-3).fit(data[:40])
    >>> round(ranker.score(data[40:], metric="ndcg@5"), 2)
    0.92
    """

    _state = ("coef_", "intercept_", "learnt_", "pairs_", "mean_", "scale_")

    def __init__(
        self,
        loss: str = "pmop-fd",
        l2: float = 1e-4,
        *,
        solver: str = "lbfgs",
        standardize: bool = True,
        second_order: float | None = None,
        tol: float = 1e-3,
        rel_tol: float | None = None,
        max_iter: int = 1000,
        step: str = "adagrad",
        learning_rate: float = 0.1,
        batch: int | None = None,
        metric: str = "ndcg@10",
        loss_params: Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.l2 = l2
        self.solver = solver
        self.standardize = standardize
        self.second_order = second_order
        self.tol = tol
        self.rel_tol = rel_tol
        self.max_iter = max_iter
        self.step = step
        self.learning_rate = learning_rate
        self.batch = batch
        self.metric = metric
        self.loss_params = loss_params
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        params = parameters_for(self.loss, self.loss_params, self.tol)
        self._check()
        self.pairs_, self.mean_, self.scale_ = np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(0)
        if self.second_order is not None:
            chosen = Products.selected(queries.X, queries.grade, self.second_order)
            self.pairs_, self.mean_, self.scale_ = chosen.pairs, chosen.mean, chosen.scale
        X = self._table(queries.X)
        objective = Objective(X, queries.lists(), self.loss, self.l2, self.standardize, params)
        watch = Watch(self._judge(objective, valid), lambda n, found: self._tell(n, self.max_iter, found))
        try:
            fit: Fit | None = self._solve(objective, queries, watch)
        except KeyboardInterrupt:
            if watch.x is None:
                raise
            fit = None
        x = watch.chosen(None if fit is None else fit.x)
        self.coef_, self.intercept_ = objective.raw_weights(x)
        self.learnt_ = objective.learnt_at(x)
        self.fit_summary_ = {
            "converged": fit is not None and fit.converged,
            "n_iter": watch.n_iter if fit is None else fit.n_iter,
            "message": "interrupted" if fit is None else fit.message,
            "interrupted": fit is None,
            "value": watch.value,
            "validation": watch.best,
        }

    def _solve(self, objective: Objective, queries: Queries, watch: "Watch") -> Fit:
        """Minimise the objective in units of its gradient at the start."""
        if self.solver == "sgd":
            draw = _drawn(objective, queries, self.batch)
            steps: dict[str, Any] = {
                "method": self.step,
                "learning_rate": self.learning_rate,
                "max_iter": self.max_iter,
            }
            return sgd(draw, objective.start, rng=np.random.default_rng(self.random_state), callback=watch, **steps)
        unit = float(np.abs(objective(objective.start)[1]).max(initial=0.0)) or 1.0

        def scaled(x: Floats) -> tuple[float, Floats]:
            value, grad = objective(x)
            return value / unit, grad / unit

        def after(x: Floats, value: float) -> None:
            watch(x, value * unit)

        common: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "callback": after}
        if self.solver == "newton":
            bend = lambda x, v: objective.hvp(x, v) / unit  # noqa: E731
            return newton(scaled, by_products(bend), objective.start, rel_tol=self.rel_tol, **common)
        rel_tol = 1e-6 if self.rel_tol is None and self.loss in KINKED else self.rel_tol
        return lbfgs(scaled, objective.start, rel_tol=rel_tol, **common)

    def _judge(self, objective: Objective, valid: Queries | None) -> Callable[[Floats], float] | None:
        """x -> mean of the metric on the validation set."""
        if valid is None:
            return None
        metric, X = metric_of(self.metric), self._table(valid.X)

        def judge(x: Floats) -> float:
            return mean_defined(metric(times(X, objective.raw_weights(x)[0]), valid.grade, valid.offsets))

        return judge

    def _table(self, X: Any) -> Any:
        """The features with the chosen products, if any."""
        return Products(self.pairs_, self.mean_, self.scale_).table(X) if len(self.pairs_) else X

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Floats:
        if len(self.pairs_):
            blocks = (X[a : a + ROWS_AT_ONCE] for a in range(0, X.shape[0], ROWS_AT_ONCE))
            parts = [times(self._table(block), self.coef_) for block in blocks]
            s = np.concatenate(parts) if parts else np.zeros(0)
        else:
            s = times(X, self.coef_)
        s += self.intercept_
        bad = ~np.isfinite(s)
        if bad.any():
            raise DataError(
                f"row {int(np.argmax(bad))}: a feature is NaN or infinite ({bad.sum()} such rows); replace such "
                "values, or use TreeRanker, which knows what to do with NaN"
            )
        return s

    def explain(self, X: Any, i: int, j: int) -> list[tuple[Any, float]]:
        """Why row i is above row j: what each column adds to s_i - s_j, largest first; the parts sum to it."""
        pair = two_rows(self, X, i, j)
        pair = self._table(np.asarray(pair.toarray() if hasattr(pair, "toarray") else pair, dtype=np.float64))
        names = list(self.features_ if self.features_ is not None else range(self.n_features_in_))
        names += [(names[a], names[b]) for a, b in self.pairs_]
        return largest_first(names, (pair[0] - pair[1]) * self.coef_)

    def _check(self) -> None:
        one_of(self.solver, SOLVERS, "solver")
        if self.solver == "newton" and (self.loss not in HVPS or self.loss in LEARNT):
            raise ValueError(
                f"solver 'newton' needs a Hessian and no learnt parameters, which {self.loss!r} does not offer; "
                "use 'lbfgs'"
            )
        if self.loss in SAMPLED and self.solver != "sgd":
            raise ValueError(f"loss {self.loss!r} is sampled: use solver='sgd'")
        if not self.l2 >= 0:
            raise ValueError(f"l2 {self.l2} must not be negative")
        if not self.tol > 0 or self.max_iter < 1:
            raise ValueError(f"tol {self.tol} must be above 0 and max_iter {self.max_iter} at least 1")
        if self.batch is not None and (self.batch < 1 or self.solver != "sgd"):
            raise ValueError(f"batch {self.batch} must be at least 1, and belongs to solver='sgd'")


class Watch:
    """Keeps the step to go home with: the best on the validation set (``judge``), else the last.  A callback."""

    def __init__(self, judge: Callable[[Floats], float] | None, tell: Callable[[int, float | None], None]) -> None:
        self.judge, self.tell = judge, tell
        self.n_iter = self.judged = 0
        self.x: Floats | None = None
        self.value: float | None = None
        self.best: float | None = None

    def __call__(self, x: Floats, value: float) -> None:
        self.n_iter += 1
        self.value = float(value)
        found = None
        if self.judge is None:
            self.x = x.copy()
        elif self.n_iter <= EVERY_STEP or self.n_iter >= 1.1 * self.judged:
            found = self._try(x)
        self.tell(self.n_iter, found)

    def chosen(self, last: Floats | None) -> Floats:
        """What to keep, when the optimiser stopped at ``last`` (None: it was interrupted)."""
        if last is not None:
            if self.judge is None:
                return last
            self._try(last)
        assert self.x is not None
        return self.x

    def _try(self, x: Floats) -> float:
        assert self.judge is not None
        self.judged, found = self.n_iter, self.judge(x)
        if self.best is None or found > self.best:
            self.x, self.best = x.copy(), found
        return found


def _drawn(
    objective: Objective, queries: Queries, batch: int | None
) -> Callable[[Floats, np.random.Generator], tuple[float, Floats]]:
    """(x, rng) -> the objective on ``batch`` queries drawn with ``rng``; sampled losses draw from it too."""
    lists = queries.lists()

    def estimate(x: Floats, rng: np.random.Generator) -> tuple[float, Floats]:
        part = objective
        if batch is not None and batch < len(queries):
            part = objective.part(np.sort(rng.choice(len(queries), batch, replace=False)), lists)
        return part(x, **({"random_state": rng} if objective.loss in SAMPLED else {}))

    return estimate
