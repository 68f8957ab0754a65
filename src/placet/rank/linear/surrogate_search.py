"""Selection of the surrogate itself: weights of a dictionary of convex functions, by the metric on held-out queries."""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from placet.data import DataError, Queries
from placet.data.arrays import Floats, hold_out
from placet.losses.bregman import PSI
from placet.optim import ConvergenceWarning, lbfgs
from placet.rank.feature_tables import times
from placet.rank.linear.penalized_loss import PenalizedLoss
from placet.rank.ranker import Ranker
from placet.rank.saving.fitted_state import Array, Maybe, Number, RankerOf, holds

SurrogateState = tuple[Floats, Floats, float, Ranker | None]
"""alpha, linear weights, their constant, and the final ranker."""

GRID = 1 / 64  # search points are multiples of it, so that no point is fitted twice


@dataclass
class PatternSearch:
    """Result of a pattern search: the best point, its value, and all points tried with their values, in order."""

    x: Floats
    value: float
    tried: list[tuple[Floats, float]] = field(default_factory=list)


def pattern_search(
    fun: Callable[[Floats], float],
    starts: Iterable[Floats],
    *,
    step: float = 0.5,
    least_step: float = 1 / 16,
    max_evaluations: int = 200,
) -> PatternSearch:
    """Maximize ``fun`` over x >= 0 without derivatives, from every start; ``fun`` may be piecewise constant.

    From a point, one coordinate at a time is moved up or down by the step; the first better point is accepted and the
    step doubled (up to its initial length), and if none is better the step is halved, until it is below ``least_step``.
    Points are rounded to multiples of ``GRID`` and cached.  ``max_evaluations`` is shared among the starts.

    >>> found = pattern_search(lambda x: -abs(x[0] - 0.75) - abs(x[1]), [np.ones(2)])
    >>> found.x, len(found.tried) < 30
    (array([0.75, 0.  ]), True)
    """
    values: dict[bytes, float] = {}
    tried: list[tuple[Floats, float]] = []
    points = [np.asarray(x, dtype=np.float64) for x in starts]

    def value_at(x: Floats) -> float:
        key = x.tobytes()
        if key not in values and len(tried) >= limit:
            return -math.inf
        if key not in values:
            values[key] = float(fun(x))
            tried.append((x, values[key]))
        return values[key]

    limit = max_evaluations
    for start in points:  # every start is evaluated
        value_at(_on_grid(start))
    for k, start in enumerate(points):
        limit = len(tried) + (max_evaluations - len(tried)) // (len(points) - k)
        x = _on_grid(start)
        value, length = value_at(x), step
        while length >= least_step and len(tried) < limit:
            found = _better_neighbor(value_at, x, value, length)
            if found is None:
                length /= 2
            else:
                x, value = found
                length = min(2 * length, step)
    best = max(tried, key=lambda point: point[1])
    return PatternSearch(best[0], best[1], tried)


def _better_neighbor(
    value_at: Callable[[Floats], float], x: Floats, value: float, length: float
) -> tuple[Floats, float] | None:
    for k in range(len(x)):
        for sign in (1.0, -1.0):
            y = x.copy()
            y[k] = max(y[k] + sign * length, 0.0)
            if np.array_equal(x, y):
                continue
            found = value_at(_on_grid(y))
            if found > value:
                return _on_grid(y), found
    return None


def _on_grid(x: Floats) -> Floats:
    return np.round(np.maximum(x, 0.0) / GRID) * GRID


class SurrogateSearch(Ranker):
    """A linear ranker fitted to the surrogate of psi = sum_k alpha_k psi_k, with alpha >= 0 chosen by the metric.

    For each alpha the weights minimize the Bregman surrogate of psi on the training queries, starting from the weights
    of the nearest alpha tried so far; alpha maximizes ``metric`` on held-out queries.  The search is ``pattern_search``
    from each psi_k alone, all ones, and a small random point.  With a validation set, the ranker returned is the one
    evaluated on it, so its metric there is at least that of any psi_k alone.

    All positive alpha are consistent with NDCG; they differ on finite data.  The scale of alpha affects only the
    strength of ``l2``: beta psi has the surrogate beta D(p, s / beta), and a linear score absorbs the factor.

    Parameters
    ----------
    psi : sequence of str
        The dictionary, names in ``placet.losses.bregman.PSI``.
    l2 : float
        Penalty on the weights.
    beta : float
        The factor of "ce".
    validation : float
        Fraction of the queries to hold out at random if ``fit`` is given no validation set; the final fit uses all
        queries.
    final : Ranker, optional
        An unfitted ranker with ``loss`` and ``loss_params``, such as ``ConsistentBooster``, to fit to the surrogate of
        every alpha instead of the linear one; it is evaluated by its own scores.
    step : float
        Initial step of the search over alpha.
    least_step : float
        The search stops below this step.
    max_evaluations : int
        Maximum number of values of alpha; at least one per psi_k.
    tol : float
        Each fit stops when the gradient is below this fraction of its value at weights 0.
    max_iter : int
        Maximum number of iterations of a fit.
    metric : str
        Metric that selects alpha.
    random_state : int
        Seed of the held-out queries and of the random point.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> search = SurrogateSearch(("ce", "square"), max_evaluations=10).fit(data[:40])
    >>> search.alpha_.shape, search.score(data[40:]) > 0.9
    ((2,), True)
    """

    _state = holds(
        alpha_=Array("psi", low=0),
        coef_=Array("features"),
        intercept_=Number(),
        tried_=Array("tried", "psi and value"),
        final_=Maybe(RankerOf()),
    )

    def __init__(
        self,
        psi: Sequence[str] = PSI,
        *,
        l2: float = 1e-3,
        beta: float = 0.01,
        validation: float = 0.25,
        final: Ranker | None = None,
        step: float = 0.5,
        least_step: float = 1 / 16,
        max_evaluations: int = 60,
        tol: float = 1e-3,
        max_iter: int = 200,
        metric: str = "ndcg@10",
        random_state: int = 0,
    ) -> None:
        self.psi = psi
        self.l2 = l2
        self.beta = beta
        self.validation = validation
        self.final = final
        self.step = step
        self.least_step = least_step
        self.max_evaluations = max_evaluations
        self.tol = tol
        self.max_iter = max_iter
        self.metric = metric
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        self._check(len(queries), valid)
        rng = np.random.default_rng(self.random_state)
        train, held_out = queries, valid
        if held_out is None:
            train, held_out = (queries[part] for part in hold_out(len(queries), self.validation, rng))
        path = Path(train, self.psi, self.l2, self.beta, self.tol, self.max_iter) if self.final is None else None
        best = self._keep_best(self._judge(held_out, lambda state: _scores_of(state, held_out)), self.max_evaluations)
        tried: list[list[float]] = []

        def quality(alpha: Floats) -> float:
            if not alpha.any():
                return -math.inf  # no surrogate at all
            state = self._fit_at(alpha, train, held_out, path)
            found = best.see(state)
            if state[3] is not None and state[3].fit_summary_["interrupted"]:
                raise KeyboardInterrupt
            if found is None or not math.isfinite(found):
                return -math.inf
            tried.append([*alpha.tolist(), found])
            return found

        with best:
            pattern_search(
                quality,
                starts(len(self.psi), rng),
                step=self.step,
                least_step=self.least_step,
                max_evaluations=self.max_evaluations,
            )
        self.alpha_, self.coef_, self.intercept_, self.final_ = best.state
        with best:  # an interrupt keeps the ranker that was evaluated
            if not best.interrupted and train is not queries:
                whole = Path(queries, self.psi, self.l2, self.beta, self.tol, self.max_iter) if path else None
                if whole is not None and path is not None:
                    whole.points.append((self.alpha_, path.nearest(self.alpha_)))
                _, self.coef_, self.intercept_, self.final_ = self._fit_at(self.alpha_, queries, None, whole)
        self.tried_ = np.array(tried).reshape(-1, len(self.psi) + 1)
        self.fit_summary_ = {
            "alpha": dict(zip(self.psi, self.alpha_.tolist())),
            "evaluations": best.steps,
            **best.summary(),
        }
        if self.final_ is not None and self.final_.fit_summary_["interrupted"]:
            self.fit_summary_["interrupted"] = True

    def _fit_at(self, alpha: Floats, queries: Queries, valid: Queries | None, path: "Path | None") -> "SurrogateState":
        """The state for one alpha: weights from the path, or a final ranker; a single psi_k uses its own loss."""
        if path is not None:
            return (alpha, *path.at(alpha), None)
        used = np.flatnonzero(alpha)
        params: dict[str, Any]
        if len(used) == 1:
            name = self.psi[int(used[0])]
            loss, params = f"bregman-{name}", {"beta": self.beta} if name == "ce" else {}
        else:
            loss, params = "bregman", {"psi": tuple(self.psi), "alpha": alpha.tolist(), "beta": self.beta}
        ranker = clone(self.final).set_params(loss=loss, loss_params=params).fit(queries, valid=valid)
        return alpha, np.zeros(queries.n_features), 0.0, ranker

    def _scores(self, queries: Queries) -> Floats:
        return _scores_of((self.alpha_, self.coef_, self.intercept_, self.final_), queries)

    def _check_state(self) -> None:
        n = self.n_features_in_
        if self.tried_.shape[1] != len(self.alpha_) + 1:
            raise DataError(f"{self.tried_.shape[1]} columns of what was tried do not fit {len(self.alpha_)} functions")
        if self.final_ is not None and self.final_.n_features_in_ != n:
            raise DataError(f"the final ranker takes {self.final_.n_features_in_} features, not {n}")

    def _check(self, n: int, valid: Queries | None) -> None:
        if isinstance(self.psi, str) or not len(self.psi) or any(name not in PSI for name in self.psi):
            raise ValueError(f"psi {self.psi!r} must be one or more of {list(PSI)}")
        if not (self.l2 >= 0 and self.beta > 0 and self.tol > 0 and self.max_iter >= 1 and self.max_evaluations >= 1):
            raise ValueError(
                "l2 must not be negative, beta and tol be above 0, max_iter and max_evaluations at least 1"
            )
        if self.max_evaluations < len(self.psi):
            raise ValueError(
                f"max_evaluations {self.max_evaluations} must be one for each psi: at least {len(self.psi)}"
            )
        if valid is None and not 0 < self.validation < 1:
            raise ValueError(f"validation {self.validation} must lie between 0 and 1; or give a validation set")
        if valid is None and n < 2:
            raise DataError(f"there are too few queries to hold out a share of them ({n}); give a validation set")


def _scores_of(state: SurrogateState, queries: Queries) -> Floats:
    _, coef, intercept, final = state
    return times(queries.X, coef) + intercept if final is None else final._scores(queries)


def starts(n: int, rng: np.random.Generator) -> list[Floats]:
    """Each coordinate alone, all ones, and a small random point."""
    return [*np.eye(n), np.ones(n), np.round(rng.uniform(0.0, 0.25, n) / GRID + 1) * GRID]


class Path:
    """Linear weights for a sequence of alpha, each warm-started from the nearest previous alpha."""

    def __init__(self, queries: Queries, psi: Sequence[str], l2: float, beta: float, tol: float, max_iter: int) -> None:
        self.tol, self.max_iter = tol, max_iter
        self.params: dict[str, Any] = {"psi": tuple(psi), "beta": beta}
        self.objective = PenalizedLoss(queries, "bregman", l2, True, self.params)
        self.points: list[tuple[Floats, Floats]] = []

    def nearest(self, alpha: Floats) -> Floats:
        """Initial weights: those of the alpha nearest in direction, scaled to this alpha."""
        if not self.points:
            return self.objective.start
        gap = lambda point: float(np.abs(point[0] / point[0].sum() - alpha / alpha.sum()).sum())  # noqa: E731
        before, x = min(self.points, key=gap)
        return x * (alpha.sum() / before.sum())

    def at(self, alpha: Floats) -> tuple[Floats, float]:
        """Weights and constant that minimize the surrogate for alpha."""
        objective = self.objective.with_parameters({**self.params, "alpha": alpha})
        unit = float(np.abs(objective(objective.start)[1]).max(initial=0.0)) or 1.0  # not at a warm start
        steps: dict[str, Any] = {"tol": self.tol * unit, "max_iter": self.max_iter, "rel_tol": 1e-7}
        with warnings.catch_warnings():  # a fit that has not converged is still evaluated by its metric
            warnings.simplefilter("ignore", ConvergenceWarning)
            x = lbfgs(objective, self.nearest(alpha), **steps).x
        self.points.append((alpha, x))
        return objective.unknowns.raw_weights(x)
