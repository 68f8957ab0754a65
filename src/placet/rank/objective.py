"""The penalised loss of a linear score, as a function that optimisers minimise."""

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from placet.data import Lists
from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.data.rankings import rows_of
from placet.kernels import ranges
from placet.losses import LEARNT, LOSSES, Bound
from placet.rank.products import ROWS_AT_ONCE, moments

SAMPLED = frozenset({"pmop-gibbs", "pmop-mh"})
"""Losses that draw: an integer seed would draw the same at every call, so they are given the generator."""

LEVELLED = frozenset({"bregman", "bregman-ce", "bregman-square", "bregman-qnorm", "cosine"})
"""Losses in which a score means a level, not only an order: for these the constant is fitted, without penalty."""

UNBOUNDED = frozenset({"cosine"})
"""Losses that do not see the length of the scores: a penalty would shrink them to 0, so there is none."""

SCALES = frozenset({"w1", "w2"})
"""Learnt parameters that multiply all scores, as the length of the weights does already: left at their start."""

TRAINING_TOLERANCE = 1e-4
"""Error allowed in the integrals of ``pl-partition``, unless the fit itself is asked for less."""


def parameters_for(loss: str, given: Mapping[str, Any] | None, tol: float = 1.0) -> dict[str, Any]:
    """Parameters of the loss in training: those given, and integrals no more exact than a fit to ``tol`` needs."""
    one_of(loss, LOSSES, "loss")
    params = dict(given or {})
    known = list(LOSSES[loss].parameters)
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ValueError(f"loss {loss!r} has no parameter {unknown[0]!r}; it has {known}")
    if loss == "pl-partition":
        params.setdefault("tol", max(min(TRAINING_TOLERANCE, tol), 1e-14))
    return params


def learnt_for(loss: str, params: Mapping[str, Any]) -> dict[str, float]:
    """Parameters of the loss that are to be learnt, at their starting values: those not given."""
    return {k: v for k, v in LEARNT.get(loss, {}).items() if k not in params and k not in SCALES}


class Objective:
    """Penalised loss per unit weight in x = (weights of standardised columns, constant, learnt parameters).

    s = (X - shift) / scale @ w + constant, computed as X @ (w / scale) + (constant - shift @ (w / scale)), so that the
    table is never copied.  Kernels want the rows of a list in descending grade: the scores are put in this order, not
    the table.  The constant is there only for losses in ``LEVELLED``.
    """

    def __init__(
        self, X: Any, lists: Lists, loss: str, l2: float, standardize: bool, params: Mapping[str, Any]
    ) -> None:
        self.X, self.loss, self.params = X, loss, dict(params)
        self.l2 = 0.0 if loss in UNBOUNDED else l2
        self.n = X.shape[1]
        self.shift: Floats
        self.scale: Floats
        self.shift, self.scale = moments(X)  # also where they are not used: a column with NaN is refused
        if not standardize:
            self.shift, self.scale = np.zeros(self.n), np.ones(self.n)
        self.n_constants = int(loss in LEVELLED)
        learnt = learnt_for(loss, params)
        self.learnt = tuple(learnt)
        self.start = np.concatenate([np.zeros(self.n + self.n_constants), list(learnt.values())])
        self._see(lists)

    def _see(self, lists: Lists) -> None:
        """Fix the lists, and the order of their rows that kernels want (None: as they are)."""
        grade, offsets = np.asarray(lists.grade), np.asarray(lists.offsets)
        self.order = None if ranges.is_descending(grade, offsets) else ranges.descending_order(grade, offsets)
        self.lists = lists if self.order is None else lists._replace(grade=grade[self.order])
        self.total = float(np.asarray(lists.weight).sum())
        self.bound = Bound(self.loss, self.lists, self.params, total=1.0, learn=self.learnt)
        self._last: tuple[Floats, Floats] | None = None

    def part(self, queries: NDArray[np.int64], lists: Lists) -> Self:
        """The same objective over some of the queries; ``lists`` are those of all, in the order of the table."""
        rows, offsets = rows_of(np.asarray(lists.offsets), queries)
        out = copy.copy(self)
        out.X = self.X[rows]
        out._see(Lists(np.asarray(lists.grade)[rows], offsets, np.asarray(lists.weight)[queries]))
        return out

    def raw_weights(self, x: Floats) -> tuple[Floats, float]:
        """Weights of the columns as they are, and the constant."""
        w = x[: self.n] / self.scale
        return w, float(x[self.n : self.n + self.n_constants].sum() - self.shift @ w)

    def learnt_at(self, x: Floats) -> dict[str, float]:
        """The learnt parameters."""
        return dict(zip(self.learnt, x[self.n + self.n_constants :].tolist()))

    def scores(self, x: Floats) -> Floats:
        """Scores in the kernels' order; those of the last x are kept, for Hessian products ask again."""
        if self._last is None or not np.array_equal(self._last[0], x):
            w, constant = self.raw_weights(x)
            s = times(self.X, w)
            s += constant
            self._last = x.copy(), s if self.order is None else s[self.order]
        return self._last[1]

    def pull_back(self, g: Floats) -> Floats:
        """Gradient in the weights and the constant from the gradient in row scores."""
        rows = g
        if self.order is not None:
            rows = np.empty_like(g)
            rows[self.order] = g
        total = float(g.sum())
        weights = (transposed_times(self.X, rows) - self.shift * total) / self.scale
        return np.append(weights, [total] * self.n_constants)

    def __call__(self, x: Floats, random_state: np.random.Generator | None = None) -> tuple[float, Floats]:
        value, g, slopes = self.bound.value_grad_slopes(self.scores(x), self.learnt_at(x), random_state)
        grad = np.append(self.pull_back(g), slopes) / self.total
        w = x[: self.n]
        grad[: self.n] += self.l2 * w
        return value / self.total + 0.5 * self.l2 * float(w @ w), grad

    def hvp(self, x: Floats, v: Floats) -> Floats:
        """Hessian times v, for losses without learnt parameters."""
        w, constant = self.raw_weights(v)
        along = times(self.X, w)
        along += constant
        along = along if self.order is None else along[self.order]
        g = self.bound.hvp(self.scores(x), along)
        out = self.pull_back(g) / self.total
        out[: self.n] += self.l2 * v[: self.n]
        return out


def times(X: Any, w: Floats) -> Floats:
    """X @ w in double precision out; the product runs in the type of X."""
    return np.asarray(X @ w.astype(X.dtype, copy=False), dtype=np.float64)


def transposed_times(X: Any, g: Floats) -> Floats:
    """X.T @ g; the product runs in the type of X, on g brought to at most 1, which float32 can hold.

    Blocks of rows are added in double precision, so that float32 features lose no digits over many rows.
    """
    unit = float(np.abs(g).max(initial=0.0)) if X.dtype == np.float32 else 1.0
    if unit == 0.0 or not np.isfinite(unit):
        return np.full(X.shape[1], unit)
    if not isinstance(X, np.ndarray):
        return unit * np.asarray(X.T @ (g / unit).astype(X.dtype, copy=False), dtype=np.float64)
    out = np.zeros(X.shape[1])
    for a in range(0, len(X), ROWS_AT_ONCE):
        part = g[a : a + ROWS_AT_ONCE] if unit == 1.0 else g[a : a + ROWS_AT_ONCE] / unit
        out += part.astype(X.dtype, copy=False) @ X[a : a + ROWS_AT_ONCE]
    return unit * out
