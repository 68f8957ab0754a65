"""The likelihood of ballots as a function of item scores: a loss applied to row scores s = theta[item]."""

import math
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from placet import optim
from placet.aggregate.likelihood import information
from placet.aggregate.likelihood.existence import informative_rows
from placet.aggregate.likelihood.information import LEAST_PRECISION
from placet.aggregate.likelihood.prior import DRAWN_ACCURACY, MOST_DRAWS, WIDEST_PRIOR, learn_width
from placet.aggregate.result.control_effects import Controls
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import DataError, Lists, Rankings
from placet.data.arrays import Floats, Ints, read_only, rows_of, tier_runs
from placet.data.graph import always_together
from placet.kernels.aggregate import strict_orders
from placet.kernels.losses import partition
from placet.losses import LOSSES, Bound

Map = Callable[[Floats], Floats]

WIDEST = 600.0
"""Maximum range of scores for closed forms; beyond, the losses sum exponentials in log space."""

ROUGH, GRADIENT = 1e-4, 10.0
"""Gradient tolerances of L-BFGS, and of Newton's method by Hessian products in units of ``tol``."""

STEP_ACCURACY = 1e-4
"""Relative residual of Newton steps: a step of sqrt(tol) then has an error of about tol."""

ROUGH_TOLERANCE = 1e-8
"""Tolerance of the fits used to learn the prior's width."""

PRODUCT_TOLERANCE = 1e-6
MOST_SADDLES, MOST_BENDS = 5, 500
MOST_INVERTED, MOST_COLUMNS = 1024, 24
"""Maximum unknowns for exact traces, with a closed Hessian and with one computed by columns."""

MOST_ROW_PAIRS, MOST_ROW_PAIRS_PER_ROW = 200_000_000, 50
"""Maximum row pairs for a closed Hessian: in total, or per row of a Hessian product if that is more."""

CLOSED = "pl-partition"
"""The loss whose Hessian has a closed form."""

HESSIAN_ACCURACY = 1e-8
"""Relative accuracy of probabilities of tied stages in the Hessian."""

NODES = 32
"""Approximate number of integration nodes per tied stage."""

MOST_PRODUCT_ROWS = 4_000_000


class Ballots:
    """Negative log posterior of ballots, divided by ``scale`` so that total weight and prior precision are at most 1.

    ``closed``: the Hessian of Plackett-Luce is computed in closed form, for ballots that tie only in their lowest tier
    (`placet.kernels.aggregate.strict_orders`) and for the others, ``rest`` (`placet.kernels.losses.partition`).  If the
    loss is not convex, items that are always in the same tier of the same ballots (``group``) share their mean score:
    the ballots do not distinguish them, but the prior alone might.
    """

    def __init__(self, ballots: Rankings, weight: Floats, loss: str, prior: float | None):
        largest = float(weight.max(initial=0.0))
        total = largest * float((weight / largest).sum()) if largest > 0 else 0.0
        self.scale, self.precision = scale_and_precision(total, prior)
        self._set_columns(ballots, weight, loss)
        self.group: Ints | None = None
        if not LOSSES[loss].convex:
            self.group = always_together(*informative_rows(ballots, weight), self.n)
        self.closed = loss == CLOSED and is_closed(*self.work())

    @classmethod
    def part(cls, ballots: Rankings, weight: Floats, loss: str, scale: float, closed: bool) -> "Ballots":
        """The objective of one part of the ballots, without a prior, divided by the overall scale."""
        if ballots.control is not None:
            raise DataError("ballots in parts are fitted without controls; load them (parts.load()) where they fit")
        own = cls.__new__(cls)
        own.scale, own.precision, own.group, own.closed = scale, 0.0, None, closed
        own._set_columns(ballots, weight, loss)
        return own

    def _set_columns(self, ballots: Rankings, weight: Floats, loss: str) -> None:
        self.item, self.offsets, self.n = ballots.item, ballots.offsets, ballots.n_items
        self.tier, self.weight, self.loss = ballots.tier, weight / self.scale, loss
        self.tops = strict_orders.strict_places(self.tier, self.offsets)

    def with_prior(self, prior: float) -> "Ballots":
        """The same objective and scale with another prior."""
        other = copy(self)
        other.precision = precision_of(prior, self.scale)
        return other

    @property
    def n_items(self) -> int:
        """Number of leading unknowns that are scores, to which the learned prior applies."""
        return self.n

    @property
    def n_rows(self) -> int:
        return len(self.item)

    def work(self) -> tuple[float, float]:
        """Costs of the closed Hessian (pairs of rows) and of a Hessian product (rows), counted at every node."""
        sizes = np.diff(self.offsets)
        each = np.where((sizes == self.n) & (self.tops >= 0), self.tops, sizes).astype(np.float64)
        pairs = float((each * each).sum())
        if self.rest is None:
            return pairs, self.n_rows
        first, size = tier_runs(self.rest.tier, self.rest.offsets)
        tied = size.astype(np.float64)
        tied[np.searchsorted(first, self.rest.offsets[1:]) - 1] = 0.0  # the lowest tier is not a stage
        return pairs + NODES * float((tied * tied).sum()), self.n_rows + NODES * float(tied.sum())

    @cached_property
    def rest(self) -> "Ballots | None":
        """The ballots with ties above the lowest tier, without a prior; None if there are none."""
        tied = np.flatnonzero(self.tops < 0)
        if not len(tied):
            return None
        own = copy(self)
        rows, own.offsets = rows_of(self.offsets, tied)
        own.closed, own.precision = False, 0.0
        own.item, own.tier, own.weight, own.tops = self.item[rows], self.tier[rows], self.weight[tied], self.tops[tied]
        own.__dict__.pop("bound", None)
        return own

    def average(self, theta: Floats) -> Floats:
        """Replace every score by the mean of its group."""
        return average_in_groups(theta, self.group)

    @cached_property
    def bound(self) -> Bound:
        """The loss bound to the ballots, with weights divided by the scale."""
        return Bound(self.loss, Lists(-self.tier.astype(np.float64), self.offsets, self.weight), total=1.0)

    def value(self, theta: Floats) -> tuple[float, Floats]:
        """Value and gradient by item.  O(rows), or O(places) if ballots are strict and complete."""
        top = theta.max(initial=-np.inf)
        grad = self.precisions * theta
        prior = 0.5 * float(theta @ grad)
        if self.closed and self.n and top - theta.min() < WIDEST:
            shifted = theta - top
            columns = (self.item, self.offsets, self.tops, self.weight)
            value = strict_orders.value_and_gradient(shifted, np.exp(shifted), *columns, grad) + prior
            if self.rest is None:
                return value, grad
            others, slope = self.rest.value(theta)
            return value + others, grad + slope
        value, by_row = self.bound.value_and_grad(self.to_rows(self.average(theta)))
        return value + prior, grad + self.average(self.by_item(by_row))

    def times(self, theta: Floats, v: Floats) -> Floats:
        """Hessian at theta times v.  O(rows)."""
        rows = self.bound.hvp(self.to_rows(self.average(theta)), self.to_rows(self.average(v)))
        return self.average(self.by_item(rows)) + self.precisions * v

    def hessian(self, theta: Floats) -> Floats:
        """The dense Hessian in closed form."""
        return information.with_precision(self.closed_hessian(theta), self.precision)

    def closed_hessian(self, theta: Floats) -> Floats:
        """As `hessian`, without the prior; scores are clipped to WIDEST / 2 below the best."""
        H = np.zeros((self.n, self.n))
        shifted = np.maximum(theta - theta.max(initial=-np.inf), -WIDEST / 2)  # squares do not underflow
        strict_orders.hessian(np.exp(shifted), self.item, self.offsets, self.tops, self.weight, H)
        if self.rest is not None:
            s, grade = read_only(theta[self.rest.item]), read_only(-self.rest.tier.astype(np.float64))
            columns, half = (self.rest.item, grade, self.rest.offsets, self.rest.weight), np.zeros_like(H)
            partition.partition_hessian(s, *columns, HESSIAN_ACCURACY, half)
            H += half
            H += half.T
        return H

    def dense(self, theta: Floats) -> Floats:
        """The dense Hessian, computed column by column.  O(items x rows)."""
        return information.by_columns(partial(self.times, theta), self.n)

    def diagonal(self, theta: Floats) -> Floats:
        """The Hessian's diagonal, or the loss's bound on it; 1 where it is 0."""
        d = self.curvature(theta) + self.precisions
        return np.where(d > 0, d, 1.0)

    def curvature(self, theta: Floats) -> Floats:
        """Curvature by item, without a prior."""
        return self.by_item(self.bound.curvature(theta[self.item]))

    def row_gradient(self, theta: Floats) -> Floats:
        """Gradient (rows,) of every ballot with unit weight."""
        return Bound(self.loss, self.bound.lists._replace(weight=None), total=1.0).value_and_grad(self.to_rows(theta))[
            1
        ]

    def outer_products(self, theta: Floats) -> Floats:
        """Sum over ballots of the outer product of their gradients."""
        return information.outer_products(self.row_gradient(theta), self.item, self.offsets, self.weight, self.n)

    @property
    def precisions(self) -> float | Floats:
        """The prior precision of every unknown, or one common to all."""
        return self.precision

    def effects(self, x: Floats, covariance: Floats | None) -> Controls | None:
        """Effects of controls, from the unknowns after the scores; None without controls."""
        return None

    def to_rows(self, theta: Floats) -> Floats:
        """The score of every row; `by_item` is its transpose."""
        return theta[self.item]

    def by_item(self, rows: Floats) -> Floats:
        return np.bincount(self.item, rows, self.n).astype(np.float64, copy=False)

    def noise(self, theta: Floats, rng: np.random.Generator) -> Callable[[], Floats]:
        """A sampler with covariance equal to the outer products of the ballots' gradients plus the prior precision."""
        rows, root, sizes = self.row_gradient(theta), np.sqrt(self.weight), np.diff(self.offsets)

        def draw() -> Floats:
            noise = np.repeat(root * rng.standard_normal(len(root)), sizes)
            return self.by_item(rows * noise) + np.sqrt(self.precision) * rng.standard_normal(self.n)

        return draw


def scale_and_precision(total: float, prior: float | None) -> tuple[float, float]:
    """The divisor of the weights, and the precision of the prior divided by it."""
    precision = 0.0 if prior is None else 1.0 / prior**2
    scale = max(min(total, 1e308), precision) or 1.0
    return scale, precision_of(prior, scale)


def precision_of(prior: float | None, scale: float) -> float:
    """The precision of a prior of this width, divided by ``scale``."""
    return 0.0 if prior is None else max(1.0 / prior**2 / scale, LEAST_PRECISION)


def is_closed(pairs: float, rows: float) -> bool:
    """Whether the closed Hessian of Plackett-Luce is cheap enough (see `Ballots.work`)."""
    return pairs <= max(MOST_ROW_PAIRS, MOST_ROW_PAIRS_PER_ROW * rows)


def average_in_groups(theta: Floats, group: Ints | None) -> Floats:
    """Replace every score by the mean of its group."""
    if group is None:
        return theta
    return (np.bincount(group, theta) / np.bincount(group))[group]


def averages_in_groups(group: Ints) -> Floats:
    """(n, n): the matrix that replaces every score by the mean of its group."""
    return (group[:, None] == group) / np.bincount(group)[group]


def matrix_of_averages(M: Floats, group: Ints | None) -> Floats:
    """A M A' with A the averages in groups: the covariance, or Hessian, of scores that are means of their groups."""
    average = partial(average_in_groups, group=group)
    return M if group is None else np.apply_along_axis(average, 0, np.apply_along_axis(average, 1, M))


def with_curvature_in_groups(H: Floats, group: Ints | None) -> Floats:
    """The Hessian made regular: differences within a group are not free, so any curvature will do for them."""
    if group is None:
        return H
    return H + (np.eye(len(H)) - averages_in_groups(group)) * np.trace(H) / len(H)


def minimize(b: Ballots, theta: Floats, max_iter: int, tol: float) -> optim.Fit:
    """Newton's method with the closed Hessian, or by Hessian products in coordinates with a near-identity Hessian.

    The coordinates come from the outer products of the ballots' gradients near the optimum, which L-BFGS first
    approaches in the coordinates of the start; with many items, from the Hessian's diagonal.
    """
    if b.closed and b.n <= MOST_SIMULATED:
        solve = lambda x, g: information.solve(b.hessian(x), g, STEP_ACCURACY)  # noqa: E731
        return optim.newton(b.value, solve, theta, step_tol=np.sqrt(tol), max_iter=max_iter, convex=True)
    if b.n > MOST_SIMULATED:
        unit = 1 / np.sqrt(b.diagonal(theta))
        back, forward, y = (lambda y: y * unit), (lambda g: g * unit), theta / unit
    else:
        back, forward, y = _units(b, theta)
        with warnings.catch_warnings():  # only the convergence of Newton's method matters
            warnings.simplefilter("ignore", optim.ConvergenceWarning)
            theta = back(optim.lbfgs(_in_coordinates(b, back, forward), y, tol=ROUGH, max_iter=max_iter).x)
        back, forward, y = _units(b, theta)
    times = lambda y, v: forward(b.times(back(y), back(v)))  # noqa: E731
    solve = optim.by_products(times, GRADIENT * tol)
    found = optim.newton(_in_coordinates(b, back, forward), solve, y, tol=GRADIENT * tol, max_iter=max_iter)
    return replace(found, x=back(found.x))


def leave_saddles(b: Ballots, found: optim.Fit, max_iter: int, tol: float) -> optim.Fit:
    """Descend along a direction of negative curvature, if any, and minimize again; up to MOST_SADDLES times.

    The Hessian is computed column by column, so only for up to MOST_BENDS items: beyond, the result may be a saddle
    point.
    """
    for _ in range(MOST_SADDLES):
        if LOSSES[b.loss].convex or not 1 < b.n <= MOST_BENDS:
            break
        values, vectors = np.linalg.eigh(b.dense(found.x))
        if values[0] >= -1e-7 * max(float(values[-1]), 1e-300):
            break
        v = b.average(vectors[:, 0])
        steps = [found.x + sign * length * v for sign in (1, -1) for length in 0.5 ** np.arange(0, 12)]
        best = min(steps, key=lambda x: b.value(x)[0])
        if b.value(best)[0] >= found.value:
            break
        found = minimize(b, best, max_iter, tol)
    return found


def _units(b: Ballots, theta: Floats) -> tuple[Map, Map, Floats]:
    """back, forward, y: theta = back(y), gradient in y = forward(gradient), and near-identity outer products in y."""
    J = b.outer_products(theta)
    own = np.diag(J)
    J[np.arange(b.n), np.arange(b.n)] += 0.1 * own + max(
        b.precision, 1e-3 * float(own.max(initial=0.0)), LEAST_PRECISION
    )
    root = np.linalg.cholesky(J)
    back = partial(solve_triangular, root, lower=True, trans="T", check_finite=False)
    return back, partial(solve_triangular, root, lower=True, check_finite=False), root.T @ theta


def _in_coordinates(b: Ballots, back: Map, forward: Map) -> Callable[[Floats], tuple[float, Floats]]:
    """The objective in coordinates y with theta = back(y); its gradient is forward(gradient)."""

    def fun(y: Floats) -> tuple[float, Floats]:
        value, grad = b.value(back(y))
        return value, forward(grad)

    return fun


def fit_ballots(b: Ballots, theta: Floats, max_iter: int, tol: float) -> optim.Fit:
    """The minimum near ``theta``; not a saddle point, even if the loss is not convex."""
    return leave_saddles(b, minimize(b, theta, max_iter, tol), max_iter, tol)


def mean_square(b: Ballots, theta: Floats, random_state: int) -> tuple[float, float]:
    """E[theta' theta] / (n - 1) under the Laplace approximation, and the approximate slope of its log by log width.

    (theta' theta + tr C - tr(C dH)) / (n - 1) with C = H^-1 and dH the derivative of H along C theta, from the
    derivative of Laplace's marginal likelihood with respect to the prior's precision.  If that is too costly, traces
    are estimated from z' C z with random signs z, the same in every call and assigned in the order of the scores, so
    that the order of the items does not matter.  The slope is then an upper bound.
    """
    n, scale = b.n_items, b.scale
    scores = np.append(theta[:n], np.zeros(b.n - n))
    own = float(scores @ scores)
    if b.n <= (MOST_INVERTED if b.closed else MOST_COLUMNS):
        C = _inverse(b, _hessian(b, theta))
        back = C @ scores
        trace, spread = float(np.trace(C[:n, :n])), b.precision * float((C[:n, :n] ** 2).sum())
        bend = float((C * _directional_derivative(lambda x: _hessian(b, x), theta, back)).sum())
    else:
        times, diagonal = _products(b, theta)
        back = optim.cg(times, scores, rtol=STEP_ACCURACY, diagonal=diagonal)
        rng, order = np.random.default_rng(random_state), np.argsort(theta[:n], kind="stable")
        total, bends, draws, trace = 0.0, 0.0, 0, math.inf
        while draws < MOST_DRAWS and trace * math.sqrt(2 / (n * max(draws, 1))) > DRAWN_ACCURACY * own * scale:
            z = np.zeros(b.n)
            z[order] = rng.choice([-1.0, 1.0], n)
            y = optim.cg(times, z, rtol=1e-2, diagonal=diagonal)
            bends += float(y @ _directional_derivative(partial(_swapped_product, b, z), theta, back))
            total, draws = total + float(z @ y), draws + 1
            trace = total / draws
        bend, spread = bends / draws, trace
    square = own + (trace - bend) / scale
    growth = 4 * b.precision * float(scores @ back) + 2 * spread / scale
    return square / max(n - 1, 1), growth / square if square > 0 else 0.0


def _directional_derivative(at: Map, theta: Floats, v: Floats, h: float = 1e-3) -> Floats:
    """Derivative of ``at`` along v at theta, by central differences."""
    size = float(np.abs(v).max(initial=0.0))
    if size == 0.0:
        return 0.0 * at(theta)
    step = h / size * v
    return (at(theta + step) - at(theta - step)) / (2 * h / size)


def _swapped_product(b: Ballots, v: Floats, theta: Floats) -> Floats:
    return b.times(theta, v)


def _products(b: Ballots, theta: Floats) -> tuple[Map, Floats]:
    """The function v -> H v and the diagonal of H; from the closed Hessian if there is one."""
    if b.closed and b.n <= MOST_SIMULATED:
        H = b.hessian(theta)
        return lambda v: H @ v, np.diag(H)
    return partial(b.times, theta), b.diagonal(theta)


def _hessian(b: Ballots, theta: Floats) -> Floats:
    return b.hessian(theta) if b.closed else b.dense(theta)


def _inverse(b: Ballots, H: Floats) -> Floats:
    """H^-1; if the loss is not convex, with eigenvalues of H raised to at least the prior's precision."""
    if LOSSES[b.loss].convex:
        return information.inverse_of(H)
    values, vectors = np.linalg.eigh(H)
    return (vectors / np.maximum(values, b.precision)) @ vectors.T


def learn_prior(b: Ballots, theta: Floats, max_iter: int, random_state: int) -> tuple[float, Floats]:
    """Learn the width of the scores' prior by marginal likelihood; also returns scores close to the fit.  O(fits)."""
    if not b.n or not b.n_rows:
        return WIDEST_PRIOR, theta
    fits = 0

    def at_width(width: float) -> tuple[float, float]:
        nonlocal theta, fits
        other = b.with_prior(width)
        fit = (
            minimize(other, theta, max_iter, ROUGH_TOLERANCE)
            if fits
            else fit_ballots(other, theta, max_iter, ROUGH_TOLERANCE)
        )
        theta, fits = other.average(fit.x), fits + 1
        return mean_square(other, theta, random_state)

    width = learn_width(at_width)
    return width, theta


def uncertainty_of(b: Ballots, theta: Floats, kind: str | None, rng: np.random.Generator) -> tuple[Any, Any, list[str]]:
    """Covariance or standard errors, and notes on how they were computed."""
    if kind is None or b.n == 0:
        return None, None, []
    if b.n > MOST_SIMULATED and b.n > b.n_items:
        return None, None, [f"no standard errors: controls of rows, and more than {MOST_SIMULATED} unknowns"]
    if b.n > MOST_SIMULATED:
        return (
            None,
            _sampled_errors(b, theta, rng),
            [f"more than {MOST_SIMULATED} items: standard errors are sampled, and differences leave correlations out"],
        )
    notes = []
    robust = b.outer_products(theta) if kind == "sandwich" else None
    if b.closed:
        H = b.hessian(theta)
    elif b.n_rows * b.n <= MOST_PRODUCT_ROWS or kind == "sandwich" or b.n > b.n_items:
        H = b.dense(theta)
        if not b.precision > 0:
            information.with_precision(H[: b.n_items, : b.n_items], 0.0)
    else:
        H = information.with_precision(b.outer_products(theta), b.precision)
        notes.append("standard errors are from the outer products of the ballots' gradients")
    H = with_curvature_in_groups(H, b.group)
    try:
        covariance = information.covariance(H, robust, b.scale, b.n_items)
        if b.group is not None:
            covariance = matrix_of_averages(covariance, b.group)
            covariance[np.diag_indices(b.n)] = np.maximum(np.diag(covariance), 0.0)  # rounding, if all are one group
        return covariance, None, notes
    except np.linalg.LinAlgError:
        return None, None, [*notes, "no standard errors: the information matrix is not positive definite"]


def _sampled_errors(b: Ballots, theta: Floats, rng: np.random.Generator) -> Floats:
    """Standard errors for many items, sampled from the ballots' gradients times normal numbers."""
    times = lambda v: b.times(theta, v)  # noqa: E731
    return information.sampled_stderr(times, b.diagonal(theta), b.noise(theta, rng)) / np.sqrt(b.scale)
