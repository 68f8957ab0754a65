"""The likelihood of ballots as a function of item scores, as a sum over the parts of the data, and its minimum."""

import math
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from placet import optim
from placet.aggregate.likelihood import information
from placet.aggregate.likelihood.ballot_part import BallotPart, WeightOf, given_weight
from placet.aggregate.likelihood.existence import (
    PartGraph,
    graph_of_part,
    informative_rows,
    notes_of_parts,
    refuse_free,
    united_groups,
)
from placet.aggregate.likelihood.information import LEAST_PRECISION
from placet.aggregate.likelihood.prior import DRAWN_ACCURACY, MOST_DRAWS, WIDEST_PRIOR, learn_width
from placet.aggregate.places import listed_weight
from placet.aggregate.result.control_effects import Controls
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import Parts, Rankings
from placet.data.arrays import Floats, Ints, Names
from placet.data.parts import as_parts
from placet.losses import LOSSES

Map = Callable[[Floats], Floats]

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

MOST_PRODUCT_ROWS = 4_000_000


class Ballots:
    """Negative log posterior of ballots, divided by ``scale`` so that total weight and prior precision are at most 1.

    Every quantity is a sum over the parts of the data; data in memory are one part.  ``weight``: the weights of the
    ballots, or a function that gives those of a part.  ``closed``: whether the Hessian of Plackett-Luce is computed in
    closed form.  If the loss is not convex, items that are always in the same tier of the same ballots (``group``)
    share their mean score: the ballots do not distinguish them, but the prior alone might.  ``existence``: the
    condition for finite scores that `notes` checks (`notes_of_rankings`).
    """

    part: type[BallotPart] = BallotPart

    def __init__(
        self,
        data: Rankings | Parts,
        weight: Floats | WeightOf,
        loss: str,
        prior: float | None,
        existence: str | None = None,
    ):
        self.data = as_parts(data)
        self.weight_of = partial(given_weight, weight) if isinstance(weight, np.ndarray) else weight
        self.n = self.n_items = data.n_items
        self.loss, self.existence = loss, existence
        found = self.data.sum(_facts, self.weight_of, loss, existence, name="comparisons")
        total, pairs, rows, self.n_rows, self.support, self.graphs = found
        self.scale, self.precision = scale_and_precision(total, prior)
        self.closed = loss == CLOSED and is_closed(pairs, rows)
        self.group: Ints | None = united_groups(self.graphs, self.n)
        self.parts = self.data.map(_bound_part, self.part, self.weight_of, loss, self.scale, self.closed)
        self.best: list[tuple[float, Floats]] = []  # the least value and its scores under the current prior

    def notes(self, items: Names, prior: float | None) -> list[str]:
        """Notes on what only the prior determines; without a prior, a ``DataError`` if no finite scores exist."""
        if self.existence != "sums" or prior is not None:
            return notes_of_parts(self.graphs, items, prior)
        rows = self.data.map(_informative_rows, self.weight_of)
        group = np.arange(self.n) if self.group is None else self.group
        refuse_free(lambda f, merge, *x: rows.sum(f, *x, name="existence", merge=merge), group, items)
        return []

    def with_prior(self, prior: float) -> "Ballots":
        """The same objective and scale with another prior."""
        other = copy(self)
        other.precision = precision_of(prior, self.scale)
        other.best.clear()
        return other

    def average(self, theta: Floats) -> Floats:
        """Replace every score by the mean of its group."""
        return average_in_groups(theta, self.group)

    @property
    def precisions(self) -> float | Floats:
        """The prior precision of every unknown, or one common to all."""
        return self.precision

    def value(self, theta: Floats) -> tuple[float, Floats]:
        """Value and gradient by item.  O(rows)."""
        prior = self.precisions * theta

        def with_prior(value: float, grad: Floats) -> tuple[float, Floats]:
            return value + 0.5 * float(theta @ prior), prior + self.average(grad)

        found = self.parts.objective(_call, "value", self.average(theta), self.closed, then=with_prior)
        if not self.best or found[0] < self.best[0][0]:
            self.best[:] = [(found[0], theta.copy())]
        return found

    def times(self, theta: Floats, v: Floats) -> Floats:
        """Hessian at theta times v.  O(rows)."""
        product = self.parts.sum(_call, "times", self.average(theta), self.average(v), name="Hessian product")
        return self.average(product) + self.precisions * v

    def hessian(self, theta: Floats) -> Floats:
        """The dense Hessian in closed form."""
        return information.with_precision(self.closed_hessian(theta), self.precision)

    def closed_hessian(self, theta: Floats) -> Floats:
        """As `hessian`, without the prior."""
        found: Floats = self.parts.sum(_call, "closed_hessian", theta, name="Hessian")
        return found

    def dense(self, theta: Floats) -> Floats:
        """The dense Hessian, computed column by column.  O(items x rows)."""
        H = matrix_of_averages(self.parts.sum(_call, "dense", self.average(theta), name="Hessian"), self.group)
        H[np.diag_indices(self.n)] += self.precisions
        return H

    def diagonal(self, theta: Floats) -> Floats:
        """The Hessian's diagonal, or the loss's bound on it; 1 where it is 0."""
        d = self.parts.sum(_call, "curvature", theta, name="curvature") + self.precisions
        return np.where(d > 0, d, 1.0)

    def outer_products(self, theta: Floats) -> Floats:
        """Sum over ballots of the outer product of their gradients."""
        products: Floats = self.parts.sum(_call, "outer_products", theta, name="outer products")
        return products

    def noise(self, theta: Floats, rng: np.random.Generator) -> Callable[[], Floats]:
        """A sampler with covariance equal to the outer products of the ballots' gradients plus the prior precision.

        The draws of each part are seeded by its number.
        """
        own, number = int(rng.integers(1 << 62)), 0

        def draw() -> Floats:
            nonlocal number
            number += 1
            drawn: Floats = self.parts.sum(_call, "noise", theta, (own, number), name="draws")
            return drawn + np.sqrt(self.precision) * rng.standard_normal(self.n)

        return draw

    def effects(self, x: Floats, covariance: Floats | None) -> Controls | None:
        """Effects of controls, from the unknowns after the scores; None without controls."""
        return None


def _facts(
    data: Rankings, weight_of: WeightOf, loss: str, existence: str | None
) -> tuple[float, float, float, int, Floats, list[PartGraph]]:
    """Total weight, the costs of a Hessian and of a Hessian product, rows, support, and the graph of comparisons."""
    weight = weight_of(data)
    largest = float(weight.max(initial=0.0))
    total = largest * float((weight / largest).sum()) if largest > 0 else 0.0
    graph = graph_of_part(data, weight, existence, together=not LOSSES[loss].convex)
    work = BallotPart(data, weight, loss).work() if loss == CLOSED else (0.0, 0.0)
    return total, *work, len(data.item), listed_weight(data), [graph]


def _informative_rows(number: int, data: Rankings, weight_of: WeightOf) -> tuple[Ints, Ints, Ints]:
    return informative_rows(data, weight_of(data))


def _bound_part(
    number: int, data: Rankings, kind: type[BallotPart], weight_of: WeightOf, loss: str, scale: float, closed: bool
) -> BallotPart:
    part = kind(data, weight_of(data) / scale, loss, number)
    if not closed:
        part.bound  # noqa: B018  computed here so that its memory is counted
    return part


def _call(part: BallotPart, method: str, *x: Any) -> Any:
    """The result of a method of the part."""
    return getattr(part, method)(*x)


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
