"""The penalized loss of a linear score, as a function of its weights and a sum over the parts of the data."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from placet.data import Parts, Queries
from placet.data.arrays import Floats, Ints
from placet.data.parts import as_parts
from placet.losses import LOSSES, Bound
from placet.rank.feature_tables import Columns, moments_over, times, transposed_times


@dataclass(frozen=True)
class Unknowns:
    """The vector x: weights of standardized columns, a constant if the loss sees one, and learned parameters.

    Column k enters as (column - shift[k]) / scale[k]; ``learned`` holds the parameters' initial values.
    """

    shift: Floats
    scale: Floats
    n_constants: int
    learned: Mapping[str, float]

    @property
    def zero(self) -> Floats:
        """The x whose weights and constant are 0."""
        return np.concatenate([np.zeros(len(self.scale) + self.n_constants), list(self.learned.values())])

    def raw_weights(self, x: Floats) -> tuple[Floats, float]:
        """Weights of the unstandardized columns, and the constant."""
        n = len(self.scale)
        w = x[:n] / self.scale
        return w, float(x[n : n + self.n_constants].sum() - self.shift @ w)

    def at_weights(self, w: Floats, intercept: float, learned: Mapping[str, float]) -> Floats:
        """The x at which the unstandardized columns have weights ``w``."""
        constant = [intercept + float(self.shift @ w)] * self.n_constants
        return np.concatenate([w * self.scale, constant, [learned.get(k, v) for k, v in self.learned.items()]])

    def learned_at(self, x: Floats) -> dict[str, float]:
        """The learned parameters at x."""
        return dict(zip(self.learned, x[len(self.scale) + self.n_constants :].tolist()))


class LinearPart:
    """The loss of a linear score on one part of the queries.

    s = (X - shift) / scale @ w + constant, computed as X @ (w / scale) + (constant - shift @ (w / scale)), so that the
    table is never copied.
    """

    def __init__(self, X: Any, bound: Bound, unknowns: Unknowns) -> None:
        self.X, self.bound, self.unknowns = X, bound, unknowns
        self._last: tuple[Floats, Floats] | None = None

    def scores(self, x: Floats) -> Floats:
        """Row scores; those of the last x are cached for Hessian products."""
        if self._last is None or not np.array_equal(self._last[0], x):
            self._last = x.copy(), self._along(x)
        return self._last[1]

    def _along(self, x: Floats) -> Floats:
        w, constant = self.unknowns.raw_weights(x)
        s = times(self.X, w)
        s += constant
        return s

    def pull_back(self, g: Floats) -> Floats:
        """Gradient in the weights and the constant, given the gradient in row scores."""
        total, to = float(g.sum()), self.unknowns
        weights = (transposed_times(self.X, g) - to.shift * total) / to.scale
        return np.append(weights, [total] * to.n_constants)

    def value(self, x: Floats, rng: np.random.Generator | None) -> tuple[float, Floats]:
        """Value and gradient at x."""
        value, g, slopes = self.bound.evaluate(self.scores(x), self.unknowns.learned_at(x), rng)
        return value, np.append(self.pull_back(g), slopes)

    def hvp(self, x: Floats, v: Floats) -> Floats:
        """Hessian in the weights and the constant times v, with learned parameters as they are at x."""
        return self.pull_back(self.bound.hvp(self.scores(x), self._along(v), self.unknowns.learned_at(x)))

    def hold(self, x: Floats) -> None:
        """Fix the weights of pairs at the places of the scores at x."""
        self.bound.hold(self.scores(x))

    def release(self) -> None:
        """Weigh pairs by the places of the current scores again."""
        self.bound.hold(None)


class PenalizedLoss:
    """Penalized loss per unit weight in the `Unknowns` of a linear score; queries in memory are one part.

    Shift-invariant losses have no constant.  Scale-invariant losses have no penalty, which would shrink their weights
    to 0.  ``l2_of_last`` holds the penalties of the last columns.
    """

    def __init__(
        self,
        data: Queries | Parts,
        loss: str,
        l2: float,
        standardize: bool,
        params: Mapping[str, Any],
        columns: Columns = Columns(),  # noqa: B008  immutable
        l2_of_last: Floats | None = None,
    ) -> None:
        parts, self.loss = as_parts(data), LOSSES[loss]
        shift, scale = moments_over(parts, columns.table)  # computed even if unused, to reject NaN
        if not standardize:
            shift, scale = np.zeros(len(shift)), np.ones(len(scale))
        self.n, self.total = len(scale), float(np.sum(data.weight))
        learned = self.loss.learned_beside(params)
        self.unknowns = Unknowns(shift, scale, int(not self.loss.shift_invariant), learned)
        self.start = self.unknowns.zero
        self.l2: float | Floats = 0.0 if self.loss.scale_invariant else l2
        if l2_of_last is not None and not self.loss.scale_invariant:
            self.l2 = np.append(np.full(self.n - len(l2_of_last), float(l2)), l2_of_last)
        self.parts = parts.map(_linear_part, loss, dict(params), self.total, columns, self.unknowns)
        self._last: tuple[Floats, float, Floats] | None = None

    def with_parameters(self, params: Mapping[str, Any]) -> Self:
        """The same objective with other parameters of the loss."""
        return self._with_parts(_with_parameters, dict(params), self.total)

    def part(self, queries: Ints) -> Self:
        """The same objective over some of the queries, for data in memory."""
        return self._with_parts(_some_queries, queries)

    def _with_parts(self, make: Any, *args: Any) -> Self:
        out = copy.copy(self)
        out.parts, out._last = self.parts.map(make, *args), None
        return out

    def __call__(self, x: Floats, rng: np.random.Generator | None = None) -> tuple[float, Floats]:
        """Value and gradient; those of the last x are kept, as an optimizer asks twice for its first and last x."""
        if rng is not None:
            return self._sum(x, rng)
        if self._last is None or not np.array_equal(self._last[0], x):
            self._last = x.copy(), *self._sum(x, None)
        _, value, grad = self._last
        return value, grad.copy()

    def _sum(self, x: Floats, rng: np.random.Generator | None) -> tuple[float, Floats]:
        w = x[: self.n]

        def penalized(value: float, grad: Floats) -> tuple[float, Floats]:
            grad = grad.copy()  # that of an engine may be read-only
            grad[: self.n] += self.l2 * w
            return value + 0.5 * float((self.l2 * w) @ w), grad

        return self.parts.objective(LinearPart.value, x, rng, then=penalized)

    def hvp(self, x: Floats, v: Floats) -> Floats:
        """Hessian in the weights and the constant times v."""
        out: Floats = self.parts.sum(LinearPart.hvp, x, v, name="Hessian product").copy()
        out[: self.n] += self.l2 * v[: self.n]
        return out

    def hold(self, x: Floats) -> None:
        """Fix the weights of pairs at the places of the scores at x, for data in memory and losses that reweight."""
        self.parts.sum(LinearPart.hold, x)
        self._last = None

    def release(self) -> None:
        """Weigh pairs by the places of the current scores again."""
        self.parts.sum(LinearPart.release)
        self._last = None


def _linear_part(
    number: int,
    queries: Queries,
    loss: str,
    params: dict[str, Any],
    total: float,
    columns: Columns,
    unknowns: Unknowns,
) -> LinearPart:
    return LinearPart(columns.table(queries), Bound(loss, queries.lists(), params, total=total), unknowns)


def _with_parameters(number: int, part: LinearPart, params: dict[str, Any], total: float) -> LinearPart:
    return LinearPart(part.X, Bound(part.bound.loss, part.bound.lists, params, total=total), part.unknowns)


def _some_queries(number: int, part: LinearPart, queries: Ints) -> LinearPart:
    rows, bound = part.bound.part(queries)
    return LinearPart(part.X[rows], bound, part.unknowns)
