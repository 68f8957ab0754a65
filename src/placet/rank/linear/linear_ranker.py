"""A linear score of the features, fitted to any loss."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from placet.data import DataError, Parts, Queries
from placet.data.arrays import Floats
from placet.data.engines.checkpoints import write_checkpoint
from placet.data.engines.serial import EngineError
from placet.data.parts import as_parts
from placet.losses import LOSSES
from placet.metrics import evaluate_parts
from placet.optim import Fit, by_products, lbfgs, newton, sgd
from placet.rank.controls import control_rows
from placet.rank.feature_tables import Columns, Products, times
from placet.rank.linear.coefficients import (
    CoefficientTable,
    CovarianceKind,
    clusters_of,
    covariance,
    errors_of,
    to_maximum,
)
from placet.rank.linear.initial_weights import start_weights
from placet.rank.linear.penalized_loss import PenalizedLoss
from placet.rank.monotone import directions
from placet.rank.query_rows import as_queries, check_columns, mean_defined
from placet.rank.ranker import Ids, Ranker, largest_first, two_rows
from placet.rank.saving.fitted_state import Array, Learned, Number, holds
from placet.rank.saving.onnx_export import OnnxGraph, add_linear
from placet.rank.validation import Best

LARGEST_WEIGHT = 1e100  # of a standardized feature
TOLERANCE, ACCURATE, MOST_EXACT = 1e-3, 1e-9, 3e9
"""Default tolerance; that of the integrals where all digits count; most rows * features^2 for which they do: about the
operations of a Newton step.
"""

ROUNDS, SETTLED = 10, 0.01  # maximum number of rounds and relative tolerance of `minimize_reweighted`
SOLVERS: dict[str, tuple[str, ...]] = {
    "lbfgs": ("no sampling",),
    "newton": ("hvp", "no learned parameters", "no sampling"),
    "sgd": (),
}
"""What each solver requires of a loss; "sgd" accepts any."""


class LinearRanker(Ranker):
    """``s = X @ w``, where ``w`` minimizes  sum_q weight_q loss_q(s) / sum_q weight_q + l2 / 2 |w|^2.

    Scale-invariant losses have no penalty.  Parameters learned jointly with the weights are in ``learned_``.  With a
    validation set, the weights of the step with the best ``metric`` on it are kept; after the first steps it is
    evaluated less often, so that it takes a small fraction of the time.

    ``fit(..., control=Z)`` fits ``s = X @ w + Z @ gamma``; ``controls_`` maps the column names of ``Z`` to gamma, per
    unit of each control.  All scores, including those of a validation set, are for ``Z = 0``.

    Parameters
    ----------
    loss : str
        A name in ``LOSSES``.
    l2 : float
        Penalty on the weights.
    solver : str
        "lbfgs", "newton" (for losses with Hessian products), or "sgd" (for losses that sample, or for batches).
    standardize : bool
        Penalize the weights of features scaled to mean 0 and deviation 1 (the features are not copied).
    second_order : float, optional
        Add products of standardized features whose absolute correlation with the grade exceeds this, such as 0.15;
        products are computed on the fly, not stored.
    tol : float, optional
        "lbfgs" and "newton" stop when the largest component of the gradient is below this fraction of its value with
        all weights 0, whatever the scale of the loss; float32 features give gradients to about 1e-4.  Default: 1e-3;
        and where the fit is one of maximum likelihood (``l2=0``, a loss with a law, float64 features in memory, no
        validation set; at most 3e9 rows * features^2), Newton steps then lead to the maximum, to all digits.
    rel_tol : float, optional
        Also stop when an iteration lowers the value by less than this fraction.  ``tol=1e-6, rel_tol=1e-5,
        max_iter=100`` are the stopping criteria of the PMOP paper.
    max_iter : int
        Maximum number of iterations; "sgd" always uses all of them.
    step : str
        Step rule of "sgd": "adagrad", "adam" or "plain".
    learning_rate : float
        Learning rate of "sgd".
    batch : int, optional
        Queries drawn for each step of "sgd"; all of them if None.
    metric : str
        Validation metric.
    loss_params : mapping, optional
        Parameters of the loss.
    control_l2 : float, optional
        Penalty on the effects of controls; ``l2`` if None.
    monotone : mapping or sequence, optional
        Signs of weights: 1, -1 or 0 (either) for every feature, or a mapping from feature names.  For "lbfgs" only.
    random_state : int
        Seed of "sgd".

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> ranker = LinearRanker("ranknet", l2=1e-3).fit(data[:40])
    >>> round(ranker.score(data[40:], metric="ndcg@5"), 2)
    0.92
    """

    takes_parts = takes_start = takes_control = True
    _state = holds(
        coef_=Array("columns"),
        intercept_=Number(),
        learned_=Learned(),
        pairs_=Array("products", 2, dtype="int64", low=0),
        mean_=Array("standardized"),
        scale_=Array("standardized", above=0),
        controls_=Learned(),
    )

    def __init__(
        self,
        loss: str = "pmop-fd",
        l2: float = 1e-4,
        *,
        solver: Literal["lbfgs", "newton", "sgd"] = "lbfgs",
        standardize: bool = True,
        second_order: float | None = None,
        tol: float | None = None,
        rel_tol: float | None = None,
        max_iter: int = 1000,
        step: Literal["adagrad", "adam", "plain"] = "adagrad",
        learning_rate: float = 0.1,
        batch: int | None = None,
        metric: str = "ndcg@10",
        loss_params: Mapping[str, Any] | None = None,
        control_l2: float | None = None,
        monotone: Mapping[str, int] | Sequence[int] | None = None,
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
        self.control_l2 = control_l2
        self.monotone = monotone
        self.random_state = random_state

    def _fit(self, queries: Queries | Parts, valid: Queries | Parts | None) -> None:
        self._check()
        exact = self._maximizes_likelihood(queries, valid)
        params = self._loss_record().training_parameters(self.loss_params, ACCURATE if exact else self._tolerance())
        self.pairs_, self.mean_, self.scale_ = np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(0)
        if self.second_order is not None:
            chosen = Products.select(as_parts(queries), self.second_order)
            self.pairs_, self.mean_, self.scale_ = chosen.pairs, chosen.mean, chosen.scale
        n_columns = self.n_features_in_ + len(self.pairs_)
        objective = self._objective(queries, params)
        unknowns = objective.unknowns
        if self._start is not None:
            weights, constant, learned = start_weights(self._start, n_columns)
            known = getattr(self._start, "controls_", {})
            effects = [known.get(name, 0.0) for name in self._control_names()]
            objective.start = unknowns.at_weights(np.append(weights, effects), constant, learned)
        judge = self._judge_weights(valid, lambda x: unknowns.raw_weights(x)[0][:n_columns])
        best = self._keep_best(judge, self.max_iter, thin=True, copy=np.copy)
        fit: Fit | None = None
        with best, self._checkpoint(best, objective):
            fit = self._solve(objective, len(queries), best)  # counted for batches: in memory only
            fit = to_maximum(objective, fit) if exact else fit
            best.consider(fit.x)
        x = best.state
        weights, self.intercept_ = unknowns.raw_weights(x)
        self.coef_ = weights[:n_columns]
        self.controls_ = dict(zip(self._control_names(), weights[n_columns:].tolist()))
        self.learned_ = unknowns.learned_at(x)
        self.fit_summary_ = {
            "converged": fit is not None and fit.converged,
            "n_iter": best.steps if fit is None else fit.n_iter,
            "message": "interrupted" if fit is None else fit.message,
            "value": objective(x)[0],
            **best.summary(),
        }

    def _objective(self, queries: Queries | Parts, params: Mapping[str, Any]) -> PenalizedLoss:
        record = LOSSES[self.loss]
        if isinstance(queries, Parts) and (self.solver == "sgd" or record.reweights or record.samples):
            able = [name for name, loss in LOSSES.items() if not (loss.samples or loss.reweights)]
            raise ValueError(
                f"solver={self.solver!r} with loss={self.loss!r} draws or reweights lists and does not work on parts; "
                f"use 'lbfgs' or 'newton' with one of {able}, or load all queries (parts.load()) where they fit"
            )
        columns, of_controls = self._columns(), None
        if self._control is not None:
            columns = replace(columns, control=self._control[0])
            if self.control_l2 is not None:
                of_controls = np.full(self._control[0].shape[1], float(self.control_l2))
        return PenalizedLoss(queries, self.loss, self.l2, self.standardize, params, columns, of_controls)

    def _judge_weights(
        self, valid: Queries | Parts | None, weights: Callable[[Floats], Floats]
    ) -> Callable[[Floats], float] | None:
        """x -> mean metric on the validation set of the scores with ``weights(x)``."""
        columns = self._columns()
        if isinstance(valid, Parts):
            scores = lambda x: partial(_scores_with, columns, weights(x))  # noqa: E731
            names = self._metric_names()
            found = lambda x: map(mean_defined, evaluate_parts(names, scores(x), valid).values())  # noqa: E731
            return lambda x: self._note(dict(zip(names, found(x))))
        table = None if valid is None else columns.table(valid)
        return self._judge(valid, lambda x: times(table, weights(x)))

    @contextlib.contextmanager
    def _checkpoint(self, best: Best[Floats], objective: PenalizedLoss) -> Iterator[None]:
        """If an engine fails, save the best weights so far in a file."""
        try:
            yield
        except EngineError as error:
            if not best.empty:
                weights, constant = objective.unknowns.raw_weights(best.state)
                found = {"constant": constant, "learned": objective.unknowns.learned_at(best.state)}
                write_checkpoint(error, "weights", {"weights": weights.tolist(), **found})
            raise

    def _solve(self, objective: PenalizedLoss, n_queries: int, best: Best[Floats]) -> Fit:
        after, start = self._after(best), objective.start
        if self.solver == "sgd":
            rng = np.random.default_rng(self.random_state)

            def estimate(x: Floats, rng: np.random.Generator) -> tuple[float, Floats]:
                if self.batch is None or self.batch >= n_queries:
                    return objective(x, rng)
                return objective.part(np.sort(rng.choice(n_queries, self.batch, replace=False)))(x, rng)

            steps: dict[str, Any] = {"learning_rate": self.learning_rate, "max_iter": self.max_iter}
            return sgd(estimate, start, method=self.step, rng=rng, callback=after, **steps)
        if objective.loss.reweights:
            return minimize_reweighted(
                objective, start, after, tol=self._tolerance(), max_iter=self.max_iter, bounds=self._box(len(start))
            )
        tol = self._tolerance()
        common: dict[str, Any] = {"tol": tol, "max_iter": self.max_iter, "relative": True, "callback": after}
        if self._start is not None:  # still relative to the gradient with all weights 0
            first = float(np.abs(objective(objective.unknowns.zero)[1]).max(initial=0.0)) or 1.0
            common |= {"tol": tol * first, "relative": False}
        if self.solver == "newton":
            return newton(objective, by_products(objective.hvp), start, rel_tol=self.rel_tol, **common)
        kinked = not objective.loss.differentiable  # the gradient need not vanish at a kink
        rel_tol = 1e-6 if self.rel_tol is None and kinked else self.rel_tol
        return lbfgs(objective, start, rel_tol=rel_tol, bounds=self._box(len(start)), **common)

    def _tolerance(self) -> float:
        return TOLERANCE if self.tol is None else self.tol

    def _maximizes_likelihood(self, queries: Queries | Parts, valid: Queries | Parts | None) -> bool:
        """Whether the fit is to be the maximum of a likelihood, to all digits."""
        free = self.l2 == 0 and not self.control_l2 and self.monotone is None and valid is None
        own = self.tol is None and self.rel_tol is None and self.solver != "sgd"
        if not isinstance(queries, Queries) or queries.X.dtype != np.float64:
            return False
        small = float(queries.X.shape[0]) * queries.n_features**2 <= MOST_EXACT
        return free and own and small and LOSSES[self.loss].law is not None and self.second_order is None

    def coefficients(
        self,
        X: Any,
        y: Any = None,
        qid: Ids | None = None,
        *,
        weight: ArrayLike | None = None,
        control: Any = None,
        errors: CovarianceKind | None = None,
        cluster: Any = None,
        level: float = 0.95,
    ) -> CoefficientTable:
        """The coefficients with standard errors, z, p and intervals, from the rows of the fit; print it for a table.

        For losses that are likelihoods (those with a ``law``).  ``errors``: "observed" (information), "query" (a
        sandwich over queries, which count as independent), or "cluster" (a sandwich over the names in ``cluster``, one
        per query or row, such as the person who chose); by default "cluster" if that is given, else "observed", and
        "query" for losses of pairs, as the pairs of a query depend on one another.  A query of weight 3 counts as
        three equal ones; for weights of a survey, give each query a cluster of its own.  Controls of the fit come
        last, in the units given, then learned parameters of the loss.  A penalty is a normal prior: the errors are
        then those of the penalized estimates.

        >>> import placet
        >>> data = placet.simulate.queries(60, 8, 2, noise=0.3, random_state=1)
        >>> table = LinearRanker("listmle", l2=0).fit(data).coefficients(data)
        >>> table.names, bool((table.p < 0.001).all())
        ((0, 1), True)
        """
        self._check_fitted()
        record, errors = errors_of(self.loss, errors, cluster, level)
        queries = as_queries(X, y, qid, weight)
        check_columns(queries.X, queries.features, self.n_features_in_, self.features_)
        self._control = control_rows(control, queries, in_order=isinstance(X, Queries))
        try:
            names = (*self._column_names(), *self._control_names())
            if set(self._control_names()) != set(self.controls_):
                raise ValueError(f"the fit had the controls {list(self.controls_)}; give the same with control=")
            objective = self._objective(queries, record.training_parameters(self.loss_params, ACCURATE))
            effects = [self.controls_[name] for name in self._control_names()]
        finally:
            self.__dict__.pop("_control", None)
        x = objective.unknowns.at_weights(np.append(self.coef_, effects), self.intercept_, self.learned_)
        clusters = None if cluster is None else clusters_of(cluster, queries)
        found = covariance(objective, x, errors, queries.weight, clusters)
        return CoefficientTable.of_fit(
            (*names, *self.learned_), np.array([*self.coef_, *effects, *self.learned_.values()]), found, errors, level
        )

    def _box(self, n: int) -> tuple[Floats, Floats] | None:
        """Bounds on the unknowns from the signs of ``monotone``; the scale of a feature is positive."""
        if self.monotone is None:
            return None
        sign = directions(self.monotone, self.features_, self.n_features_in_)
        low, high = np.full(n, -np.inf), np.full(n, np.inf)
        low[: len(sign)][sign > 0] = 0.0
        high[: len(sign)][sign < 0] = 0.0
        return low, high

    def _after(self, best: Best[Floats]) -> Callable[[Floats, float], None]:
        """The optimizer's callback after each step."""

        def after(x: Floats, value: float) -> None:
            if not np.abs(x).max(initial=0.0) < LARGEST_WEIGHT:
                raise ValueError(
                    f"training diverged: the weights grow without bound (after {best.steps + 1} steps); lower "
                    f"learning_rate ({self.learning_rate}), or use solver='lbfgs'"
                )
            best.see(x)

        return after

    def _control_names(self) -> tuple[str, ...]:
        return () if self._control is None else self._control[1]

    def _columns(self) -> Columns:
        """The features and the chosen products, if any."""
        return Columns(Products(self.pairs_, self.mean_, self.scale_) if len(self.pairs_) else None)

    def _scores(self, queries: Queries) -> Floats:
        s = times(self._columns().table(queries), self.coef_)
        s += self.intercept_
        bad = ~np.isfinite(s)
        if bad.any():
            raise DataError(
                f"row {int(np.argmax(bad))}: a feature is NaN or infinite ({bad.sum()} such rows); replace such "
                "values, or use TreeRanker, which knows what to do with NaN"
            )
        return s

    def explain(self, X: Any, i: int, j: int) -> list[tuple[Any, float]]:
        """Why row i is above row j: the contributions of the columns to s_i - s_j, which sum to it, largest first."""
        rows = self._columns().of(two_rows(self, X, i, j))
        pair = rows.dense() if len(self.pairs_) else rows
        return largest_first(self._column_names(), (pair[0] - pair[1]) * self.coef_)

    def _column_names(self) -> list[Any]:
        """Names of the features (numbers, if they have none) and of the products."""
        names = list(self.features_ if self.features_ is not None else range(self.n_features_in_))
        return names + [(names[a], names[b]) for a, b in self.pairs_]

    def _add_onnx(self, graph: OnnxGraph) -> str:
        rows = graph.table
        if len(self.pairs_):
            z = graph.standardize(self.mean_, self.scale_)
            sides = [graph.add("Gather", [z, graph.constant(self.pairs_[:, k])], axis=1) for k in (0, 1)]
            rows = graph.add("Concat", [graph.table, graph.add("Mul", sides)], axis=1)
        return add_linear(graph, rows, self.coef_, self.intercept_)

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the solver requires of the loss."""
        return SOLVERS[self.solver]

    def _check_state(self) -> None:
        n, products = self.n_features_in_, len(self.pairs_)
        if len(self.coef_) != n + products or (products and (len(self.mean_) != n or self.pairs_.max() >= n)):
            raise DataError(f"{len(self.coef_)} weights and {products} products do not fit {n} features")

    def _check(self) -> None:
        if not self.l2 >= 0 or not (self.control_l2 is None or self.control_l2 >= 0):
            raise ValueError(f"l2 {self.l2} and control_l2 {self.control_l2} must not be negative")
        if not self._tolerance() > 0 or self.max_iter < 1:
            raise ValueError(f"tol {self.tol} must be above 0 and max_iter {self.max_iter} at least 1")
        if self.batch is not None and (self.batch < 1 or self.solver != "sgd"):
            raise ValueError(f"batch {self.batch} must be at least 1, and belongs to solver='sgd'")
        if self.monotone is not None and (self.solver != "lbfgs" or self.second_order is not None):
            raise ValueError("monotone belongs to solver='lbfgs', without second_order")


def _scores_with(columns: Columns, w: Floats, queries: Queries) -> Floats:
    return times(columns.table(queries), w)


def minimize_reweighted(
    objective: PenalizedLoss,
    x: Floats,
    after: Callable[[Floats, float], None],
    *,
    tol: float,
    max_iter: int,
    bounds: tuple[Floats, Floats] | None,
) -> Fit:
    """Minimize a loss whose pair weights depend on the current ranks, by rounds of L-BFGS.

    A round fixes the pair weights at the previous solution, which makes the loss smooth and convex.  Rounds end when
    no unknown changes by more than ``SETTLED`` times the largest, or after ``ROUNDS``, since ranks that keep swapping
    have no fixed point.  At the start, where all rows tie, a pair has its mean weight over all orders.
    """
    objective.hold(x)
    unit = float(np.abs(objective(x)[1]).max(initial=0.0)) or 1.0
    steps, done, settled = 0, 0, False
    while done < ROUNDS and not settled:
        done += 1
        objective.hold(x)
        fit = lbfgs(
            objective, x, tol=tol * unit, max_iter=max(max_iter - steps, 1), rel_tol=1e-6, bounds=bounds, callback=after
        )
        moved, x, steps = float(np.abs(fit.x - x).max(initial=0.0)), fit.x, steps + fit.n_iter
        settled = moved <= SETTLED * float(np.abs(x).max(initial=0.0))
        if not fit.converged or steps >= max_iter:
            break
    objective.release()
    message = f"the weights of pairs {'settled' if settled else 'still move'} after {done} rounds; {fit.message}"
    return Fit(x, fit.value, fit.grad_norm, steps, settled and fit.converged, message)
