"""A linear score of the features, fitted to any loss."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import Lists, Queries
from placet.kernels import ranges
from placet.losses import HVPS, LEARNT, LOSSES
from placet.metrics import metric as metric_of
from placet.optim import Fit, lbfgs, newton, sgd
from placet.rank.products import Products, moments
from placet.rank.ranker import Ranker

Array = NDArray[np.float64]
SOLVERS = ("lbfgs", "newton", "sgd")
SAMPLED = frozenset({"pmop-gibbs", "pmop-mh"})
KINKED = frozenset({"ranksvm"})  # no gradient vanishes at a kink: these stop by improvement alone
ROWS_AT_ONCE = 65_536
SCALES = frozenset({"w1", "w2"})  # multiply all scores, as the length of the weights does already: left at their start


class LinearRanker(Ranker):
    """``s = X @ w``, with ``w`` minimising  sum_q weight_q loss_q(s) / sum_q weight_q + l2 / 2 |w|^2.

    With ``standardize`` the penalty is on weights of features brought to mean 0 and deviation 1, without copying them.
    ``second_order=0.15`` adds products of standardised features whose absolute correlation with the grade exceeds 0.15.
    ``rel_tol=1e-5, max_iter=100`` stops as in the PMOP paper.  Losses that sample use ``solver="sgd"``.
    The cosine does not depend on the length of ``w`` and is not penalised.
    Parameters that a loss learns jointly (``losses.LEARNT``) are in ``learnt_``.  With a validation set the weights of
    the iteration with the best ``metric`` on it are kept.

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
        tol: float = 1e-5,
        rel_tol: float | None = None,
        max_iter: int = 1000,
        learning_rate: float = 0.1,
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
        self.learning_rate = learning_rate
        self.metric = metric
        self.loss_params = loss_params
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        _check(self.loss, self.solver, self.l2)
        X, lists = in_order(queries)
        self.pairs_ = np.zeros((0, 2), np.int64)
        self.mean_ = self.scale_ = np.zeros(0)
        if self.second_order is not None:
            products = Products.selected(X, np.asarray(lists.grade), self.second_order)
            self.pairs_, self.mean_, self.scale_ = products.pairs, products.mean, products.scale
            X = products.table(X)
        objective = Objective(X, lists, self.loss, self.l2, self.standardize, dict(self.loss_params or {}))
        best = Best(self, objective, valid)
        fit = self._solve(objective, best if valid is not None else None)
        self._set(objective, fit.x if best.x is None else best.x)
        self.fit_summary_ = {
            "converged": fit.converged,
            "n_iter": fit.n_iter,
            "value": fit.value,
            "message": fit.message,
            "validation": best.value,
        }

    def _solve(self, objective: "Objective", callback: Any) -> Fit:
        x0 = objective.start
        if self.solver == "sgd":
            rng = np.random.default_rng(self.random_state)

            def draw(x: Array) -> tuple[float, Array]:
                return objective(x, random_state=int(rng.integers(2**31)))

            fun = draw if self.loss in SAMPLED else objective
            return sgd(fun, x0, method="adagrad", lr=self.learning_rate, n_iter=self.max_iter, callback=callback)
        if self.solver == "newton":
            return newton(objective, objective.hvp, x0, tol=self.tol, max_iter=self.max_iter, callback=callback)
        rel_tol = 1e-8 if self.rel_tol is None and self.loss in KINKED else self.rel_tol
        return lbfgs(objective, x0, tol=self.tol, rel_tol=rel_tol, max_iter=self.max_iter, callback=callback)

    def _set(self, objective: "Objective", x: Array) -> None:
        self.coef_, self.intercept_ = objective.raw_weights(x)
        self.learnt_ = objective.parameters(x)

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Array:
        if not len(self.pairs_):
            return times(X, self.coef_) + self.intercept_
        products = Products(self.pairs_, self.mean_, self.scale_)
        blocks = (X[a : a + ROWS_AT_ONCE] for a in range(0, X.shape[0], ROWS_AT_ONCE))
        return np.concatenate([times(products.table(block), self.coef_) for block in blocks]) + self.intercept_

    def explain(self, X: Any, i: int, j: int) -> list[tuple[Any, float]]:
        """Why row i is above row j: what each column adds to s_i - s_j, largest first; the parts sum to it."""
        rows = X.X if isinstance(X, Queries) else X
        pair = np.vstack([np.asarray(rows[k].toarray()).ravel() if hasattr(rows, "tocsr") else rows[k] for k in (i, j)])
        if len(self.pairs_):
            pair = Products(self.pairs_, self.mean_, self.scale_).table(pair)
        names = list(self.features_ if self.features_ is not None else range(self.n_features_in_))
        names += [(names[a], names[b]) for a, b in self.pairs_]
        part = (pair[0] - pair[1]) * self.coef_
        return [(names[k], float(part[k])) for k in np.argsort(-np.abs(part), kind="stable")]


class Objective:
    """Penalised loss per unit weight in x = (weights of standardised columns, learnt parameters), and its gradient.

    s = (X - shift) / scale @ w = X @ (w / scale) - shift @ (w / scale), so that the table is never copied.
    """

    def __init__(self, X: Any, lists: Lists, loss: str, l2: float, standardize: bool, params: dict[str, Any]) -> None:
        self.X, self.lists, self.loss, self.params = X, lists, loss, params
        self.l2 = 0.0 if loss == "cosine" else l2  # the cosine does not see the length of the weights
        self.n = X.shape[1]
        self.shift: Array
        self.scale: Array
        self.shift, self.scale = moments(X) if standardize else (np.zeros(self.n), np.ones(self.n))
        self.total = float(np.asarray(lists.weight).sum())
        self.learnt = [name for name in LEARNT.get(loss, {}) if name not in params and name not in SCALES]
        self.start = np.concatenate([self.first_weights(), [LEARNT[loss][name] for name in self.learnt]])

    def first_weights(self) -> Array:
        """Zeros; for the cosine, which has no gradient at 0, the covariance of each column with the grade."""
        if self.loss != "cosine":
            return np.zeros(self.n)
        grade = np.asarray(self.lists.grade, dtype=np.float64)
        return self.pull_back(grade - grade.mean()) / len(grade)

    def raw_weights(self, x: Array) -> tuple[Array, float]:
        """Weights of the columns as they are, and the constant."""
        w = x[: self.n] / self.scale
        return w, -float(self.shift @ w)

    def parameters(self, x: Array) -> dict[str, float]:
        """The learnt parameters."""
        return dict(zip(self.learnt, x[self.n :].tolist()))

    def scores(self, x: Array) -> Array:
        w, constant = self.raw_weights(x)
        return times(self.X, w) + constant

    def pull_back(self, g: Array) -> Array:
        """Gradient in the weights of standardised columns from the gradient in row scores."""
        return (transposed_times(self.X, g) - self.shift * g.sum()) / self.scale

    def __call__(self, x: Array, **more: Any) -> tuple[float, Array]:
        learnt = self.parameters(x)
        extra = {"parameter_gradient": True} if learnt else {}
        value, g, *slopes = LOSSES[self.loss](self.scores(x), self.lists, **self.params, **learnt, **extra, **more)
        slope = [slopes[0][k] for k in self.learnt]
        w = x[: self.n]
        grad = np.concatenate([self.pull_back(g), slope]) / self.total
        grad[: self.n] += self.l2 * w
        return value / self.total + 0.5 * self.l2 * float(w @ w), grad

    def hvp(self, x: Array, v: Array) -> Array:
        """Hessian times v; the learnt parameters are held."""
        w = v[: self.n] / self.scale
        along = times(self.X, w) - float(self.shift @ w)
        g = HVPS[self.loss](self.scores(x), self.lists, along, **self.params, **self.parameters(x))
        return self.pull_back(g) / self.total + self.l2 * v


class Best:
    """Remembers the iterate with the best validation metric; called after each iteration."""

    def __init__(self, ranker: LinearRanker, objective: Objective, valid: Queries | None) -> None:
        self.ranker, self.objective, self.valid = ranker, objective, valid
        self.metric = metric_of(ranker.metric)
        self.x: Array | None = None
        self.value: float | None = None

    def __call__(self, x: Array, value: float) -> None:
        assert self.valid is not None
        self.ranker._set(self.objective, x)
        scores = self.ranker._scores(self.valid.X, self.valid.offsets)
        found = float(np.nanmean(self.metric(scores, self.valid.grade, self.valid.offsets)))
        if self.value is None or found > self.value:
            self.x, self.value = x.copy(), found


def in_order(queries: Queries) -> tuple[Any, Lists]:
    """Rows with grades never rising inside a query, as kernels like them; copied only if they were not so."""
    lists = Lists(queries.grade, queries.offsets, queries.weight)
    if ranges.is_descending(queries.grade, queries.offsets):
        return queries.X, lists
    order = ranges.descending_order(queries.grade, queries.offsets)
    return queries.X[order], lists._replace(grade=queries.grade[order])


def times(X: Any, w: Array) -> Array:
    """X @ w in double precision out; the product runs in the type of X."""
    return np.asarray(X @ w.astype(X.dtype, copy=False), dtype=np.float64)


def transposed_times(X: Any, g: Array) -> Array:
    """X.T @ g; blocks of rows are added in double precision, so that float32 features lose no digits over many rows."""
    if not isinstance(X, np.ndarray):
        return np.asarray(X.T @ g.astype(X.dtype, copy=False), dtype=np.float64)
    out = np.zeros(X.shape[1])
    for a in range(0, len(X), ROWS_AT_ONCE):
        out += g[a : a + ROWS_AT_ONCE].astype(X.dtype, copy=False) @ X[a : a + ROWS_AT_ONCE]
    return out


def _check(loss: str, solver: str, l2: float) -> None:
    if loss not in LOSSES:
        raise ValueError(f"loss {loss!r} is unknown; choose from {sorted(LOSSES)}")
    if solver not in SOLVERS:
        raise ValueError(f"solver {solver!r} is unknown; choose from {list(SOLVERS)}")
    if solver == "newton" and (loss not in HVPS or loss in LEARNT):
        raise ValueError(
            f"solver 'newton' needs a Hessian and no learnt parameters, and {loss!r} does not fit; use 'lbfgs'"
        )
    if loss in SAMPLED and solver != "sgd":
        raise ValueError(f"loss {loss!r} is sampled: use solver='sgd'")
    if not l2 >= 0:
        raise ValueError(f"l2 {l2} must not be negative")
