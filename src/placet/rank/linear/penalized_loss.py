"""The penalized loss of a linear score, as a function of its weights."""

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from placet.data import Lists
from placet.data.arrays import Floats, Ints
from placet.losses import Bound
from placet.rank.feature_tables import moments, times, transposed_times


class PenalizedLoss:
    """Penalized loss per unit weight in x = (weights of standardized columns, constant, learned parameters).

    s = (X - shift) / scale @ w + constant, computed as X @ (w / scale) + (constant - shift @ (w / scale)), so that the
    table is never copied.  Shift-invariant losses have no constant.  Scale-invariant losses have no penalty, which
    would shrink their weights to 0.  ``l2_of_last`` holds the penalties of the last columns.
    """

    def __init__(
        self,
        X: Any,
        lists: Lists,
        loss: str,
        l2: float,
        standardize: bool,
        params: Mapping[str, Any],
        l2_of_last: Floats | None = None,
    ) -> None:
        self.X, self.n = X, X.shape[1]
        self.standardize_by(*moments(X), standardize)  # computed even if unused, to reject NaN
        self.bind(Bound(loss, lists, params))
        self.l2: float | Floats = 0.0 if self.bound.loss.scale_invariant else l2
        if l2_of_last is not None and not self.bound.loss.scale_invariant:
            self.l2 = np.append(np.full(self.n - len(l2_of_last), float(l2)), l2_of_last)

    @classmethod
    def of_part(
        cls, X: Any, lists: Lists, loss: str, params: Mapping[str, Any], total: float, shift: Floats, scale: Floats
    ) -> Self:
        """The objective of some of the queries, without penalty, with the total weight and moments of all."""
        own = cls.__new__(cls)
        own.X, own.n, own.l2 = X, X.shape[1], 0.0
        own.standardize_by(shift, scale, True)
        own.bind(Bound(loss, lists, params, total=total))
        return own

    def standardize_by(self, shift: Floats, scale: Floats, standardize: bool) -> None:
        """Use these column moments if ``standardize``, else leave the columns unchanged."""
        self.shift: Floats = shift if standardize else np.zeros(self.n)
        self.scale: Floats = scale if standardize else np.ones(self.n)

    def bind(self, bound: Bound) -> None:
        """Use this loss, bound to lists of the same rows."""
        self.bound = bound
        self.n_constants = int(not bound.loss.shift_invariant)
        self.start = self.zero = np.concatenate([np.zeros(self.n + self.n_constants), list(bound.learned.values())])
        self._last: tuple[Floats, Floats] | None = None

    def part(self, queries: Ints) -> Self:
        """The same objective over some of the queries."""
        out = copy.copy(self)
        rows, bound = self.bound.part(queries)
        out.X = self.X[rows]
        out.bind(bound)
        return out

    def raw_weights(self, x: Floats) -> tuple[Floats, float]:
        """Weights of the unstandardized columns, and the constant."""
        w = x[: self.n] / self.scale
        return w, float(x[self.n : self.n + self.n_constants].sum() - self.shift @ w)

    def at_weights(self, w: Floats, intercept: float, learned: Mapping[str, float]) -> Floats:
        """The x at which the unstandardized columns have weights ``w``."""
        constant = [intercept + float(self.shift @ w)] * self.n_constants
        return np.concatenate([w * self.scale, constant, [learned.get(k, v) for k, v in self.bound.learned.items()]])

    def learned_at(self, x: Floats) -> dict[str, float]:
        """The learned parameters at x."""
        return dict(zip(self.bound.learned, x[self.n + self.n_constants :].tolist()))

    def scores(self, x: Floats) -> Floats:
        """Row scores; those of the last x are cached for Hessian products."""
        if self._last is None or not np.array_equal(self._last[0], x):
            self._last = x.copy(), self._along(x)
        return self._last[1]

    def _along(self, x: Floats) -> Floats:
        w, constant = self.raw_weights(x)
        s = times(self.X, w)
        s += constant
        return s

    def pull_back(self, g: Floats) -> Floats:
        """Gradient in the weights and the constant, given the gradient in row scores."""
        total = float(g.sum())
        weights = (transposed_times(self.X, g) - self.shift * total) / self.scale
        return np.append(weights, [total] * self.n_constants)

    def __call__(self, x: Floats, rng: np.random.Generator | None = None) -> tuple[float, Floats]:
        value, g, slopes = self.bound.value_grad_slopes(self.scores(x), self.learned_at(x), rng)
        grad = np.append(self.pull_back(g), slopes)
        w = x[: self.n]
        grad[: self.n] += self.l2 * w
        return value + 0.5 * float((self.l2 * w) @ w), grad

    def hvp(self, x: Floats, v: Floats) -> Floats:
        """Hessian times v, for losses without learned parameters."""
        out = self.pull_back(self.bound.hvp(self.scores(x), self._along(v)))
        out[: self.n] += self.l2 * v[: self.n]
        return out
