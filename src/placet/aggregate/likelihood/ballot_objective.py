"""The likelihood of ballots as a function of item scores, as a sum over the parts of the data, and its minimum."""

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
    refuse_rising,
    united_groups,
)
from placet.aggregate.likelihood.information import LEAST_PRECISION
from placet.aggregate.likelihood.local_optima import Optima, find_optima, finite_optima
from placet.aggregate.likelihood.prior import Prior, trend_of, trend_root, width_uncertainty, with_width, without_trend
from placet.aggregate.places import listed_weight
from placet.aggregate.result.learned.control_effects import Controls
from placet.aggregate.result.uncertainty import MOST_SIMULATED, SAMPLED
from placet.data import Parts, Rankings
from placet.data.arrays import Floats, Ints, Names
from placet.data.graph import free_sets_over
from placet.data.parts import OnePart, as_parts
from placet.losses import LOSSES

Map = Callable[[Floats], Floats]

ROUGH, GRADIENT = 1e-4, 10.0
"""Gradient tolerances of L-BFGS, and of Newton's method by Hessian products in units of ``tol``."""

STEP_ACCURACY = 1e-4
"""Relative residual of Newton steps: a step of sqrt(tol) then has an error of about tol."""

PRODUCT_TOLERANCE = 1e-6
ROUGH_TOLERANCE, ROUGH_SCORES = 1e-8, 1e-3
"""Tolerance of the fits by which the prior's width is learned, and how exact their scores must be."""

MOST_POLISHED = 64
"""Maximum items whose scores are checked, and finished, by steps with a dense Hessian (`_polished`)."""

ROUNDING = 2e-16
"""Rounding of a gradient per unit of weight."""

MOST_BENDS = 500
"""Maximum items for dense Hessians of a loss that is not convex: beyond, the result may be a saddle point."""

MOST_ROW_PAIRS, MOST_ROW_PAIRS_PER_ROW = 200_000_000, 1000
"""Maximum row pairs for a closed Hessian in every step: in total, or per row of a Hessian product if that is more.

A step needs fifty products or more, and a row of a product takes as long as twenty pairs.
"""

CLOSED = "pl-partition"
"""The loss whose Hessian has a closed form."""

MOST_SWAPPED_ROWS = 100_000_000
"""Maximum rows to evaluate in a search for optima with two items exchanged: about two seconds."""


class Ballots:
    """Negative log posterior of ballots, divided by ``scale`` so that total weight and prior precision are at most 1.

    Every quantity is a sum over the parts of the data; data in memory are one part.  ``weight``: the weights of the
    ballots, or a function that gives those of a part.  ``closed``: whether the Hessian of Plackett-Luce is computed in
    closed form.  If the loss is not convex, items that are always in the same tier of the same ballots (``group``)
    share their mean score: the ballots do not distinguish them, but the prior alone might.  ``existence``: the
    condition for finite scores that `notes` checks (`notes_of_rankings`).  ``trend`` (n_items, k) of the prior's mean
    and ``spread``, the standard deviation of the log of its width, are those of a learned prior.
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
        self.total, pairs, rows, self.n_rows, self.support, self.graphs = found
        self.scale, self.precision = scale_and_precision(self.total, prior)
        self.closed = loss == CLOSED and is_closed(pairs, rows)
        self.group: Ints | None = united_groups(self.graphs, self.n)
        self.parts = self.data.map(_bound_part, self.part, self.weight_of, loss, self.scale, self.closed)
        self.free: list[Any] = []  # sets of items that no ballot bounds from above, if they were asked for
        self.trend, self.spread = np.zeros((self.n_items, 0)), 0.0
        self.best: list[tuple[float, Floats]] = []  # the least value and its scores under the current prior

    def notes(self, items: Names, prior: float | None) -> list[str]:
        """Notes on what only the prior determines; without a prior, a ``DataError`` if no finite scores exist."""
        if self.existence != "sums" or prior is not None:
            return notes_of_parts(self.graphs, items, prior)
        rows = self.data.map(_informative_rows, self.weight_of)
        group = np.arange(self.n) if self.group is None else self.group
        self.free = free_sets_over(lambda f, merge, *x: rows.sum(f, *x, name="existence", merge=merge), group)
        if self.free and not searches_optima(self):
            refuse_rising(self.free, items)
        return []

    def with_prior(self, prior: Prior) -> "Ballots":
        """The same objective and scale with another prior."""
        other = copy(self)
        other.precision = precision_of(prior.width, self.scale)
        other.trend, other.spread = prior.trend, prior.spread
        other.best.clear()
        return other

    def average(self, theta: Floats) -> Floats:
        """Replace every score by the mean of its group."""
        return average_in_groups(theta, self.group)

    @property
    def tolerance(self) -> float:
        """Differences of scores that may be rounding: beside vast weights, those of what only the prior bounds."""
        least = information.SCORE_TOLERANCE if self.closed else PRODUCT_TOLERANCE
        return max(least, ROUNDING / self.precision) if self.precision > 0 else least

    @property
    def precisions(self) -> float | Floats:
        """The prior precision of every unknown, or one common to all."""
        return self.precision

    def item_trend(self) -> Floats:
        """The trend (n_items, k) of the prior's mean on the weight of the ballots that list an item."""
        return trend_of(self.support)

    def prior_product(self, v: Floats) -> Floats:
        """The precision matrix of the prior times v."""
        out = self.precisions * v
        if self.trend.shape[1]:
            out[: self.n_items] = self.precision * without_trend(self.trend, v[: self.n_items])
        return out

    def value(self, theta: Floats) -> tuple[float, Floats]:
        """Value and gradient by item.  O(rows)."""
        prior = self.prior_product(theta)

        def with_prior(value: float, grad: Floats) -> tuple[float, Floats]:
            return value + 0.5 * float(theta @ prior), prior + self.average(grad)

        found = self.parts.objective(_call, "value", self.average(theta), self.closed, then=with_prior)
        if not self.best or found[0] < self.best[0][0]:
            self.best[:] = [(found[0], theta.copy())]
        return found

    def times(self, theta: Floats, v: Floats) -> Floats:
        """Hessian at theta times v.  O(rows)."""
        product = self.parts.sum(_call, "times", self.average(theta), self.average(v), name="Hessian product")
        return self.average(product) + self.prior_product(v)

    def hessian(self, theta: Floats) -> Floats:
        """The dense Hessian in closed form."""
        return self.with_trend(information.with_precision(self.closed_hessian(theta), self.precision))

    def with_trend(self, H: Floats) -> Floats:
        """H with the trend's part of the prior's precision."""
        if self.trend.shape[1]:
            H[: self.n_items, : self.n_items] -= (self.precision * self.trend) @ self.trend.T
        return H

    def closed_hessian(self, theta: Floats) -> Floats:
        """As `hessian`, without the prior."""
        found: Floats = self.parts.sum(_call, "closed_hessian", theta, name="Hessian")
        return found

    def dense(self, theta: Floats) -> Floats:
        """The dense Hessian by products (`BallotPart.dense`)."""
        H = matrix_of_averages(self.parts.sum(_call, "dense", self.average(theta), name="Hessian"), self.group)
        H[np.diag_indices(self.n)] += self.precisions
        return self.with_trend(H)

    def diagonal(self, theta: Floats) -> Floats:
        """The Hessian's diagonal, or the loss's bound on it; 1 where it is 0."""
        d = self.parts.sum(_call, "curvature", theta, name="curvature") + self.precisions
        d[: self.n_items] -= self.precision * (self.trend**2).sum(axis=1)
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
            return drawn + np.sqrt(self.precision) * trend_root(self.trend, rng.standard_normal(self.n))

        return draw

    def loaded(self) -> "tuple[Ballots, Rankings]":
        """The same objective over data in memory, and these."""
        if isinstance(self.data, OnePart):
            return self, self.data.data
        own, whole = copy(self), self.data.load()
        own.data, own.weight_of = OnePart(whole), partial(given_weight, self.weight_of(whole))
        own.parts = own.data.map(_bound_part, self.part, own.weight_of, self.loss, self.scale, self.closed)
        return own, whole

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
    return _polished(b, replace(found, x=back(found.x)), max_iter, tol)


def _polished(b: Ballots, found: optim.Fit, max_iter: int, tol: float) -> optim.Fit:
    """The fit, finished by steps with the dense Hessian where so small a gradient still leaves the scores open.

    The gradient is that of a unit of weight: beside vast weights it is small wherever the ballots of small ones, or the
    prior, would pull the scores.  Where it is small beside the prior's precision too, no score is far off: the Hessian
    is at least that precision.
    """
    if not found.converged or not 1 < b.n <= MOST_POLISHED:
        return found
    exact = ROUGH_SCORES if tol >= ROUGH_TOLERANCE else PRODUCT_TOLERANCE
    if float(np.abs(b.value(found.x)[1]).max(initial=0.0)) <= exact * b.precision:
        return found
    if not (b.precision > 0 or (LOSSES[b.loss].convex and b.n == b.n_items)):  # scores or effects may rise for ever
        return found

    def solve(x: Floats, g: Floats) -> Floats:
        H = with_curvature_in_groups(dense_hessian(b, x), b.group)
        return information.solve(H, g, STEP_ACCURACY)

    try:
        return optim.newton(b.value, solve, found.x, step_tol=np.sqrt(tol), max_iter=max_iter, convex=True)
    except np.linalg.LinAlgError:  # a loss that is not convex, far from flat: the gradient has decided
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
    """The minimum near ``theta``; not a saddle point, even if the loss is not convex (`searches_optima`)."""
    descend = partial(minimize, b, max_iter=max_iter, tol=tol)
    return find_optima(b, descend, [theta]).fits[0] if searches_optima(b) else descend(theta)


def searches_optima(b: Ballots) -> bool:
    """Whether there may be several optima, and few enough items (MOST_BENDS) for dense Hessians to find them."""
    return not LOSSES[b.loss].convex and 1 < b.n <= MOST_BENDS


def fit_optima(b: Ballots, theta: Floats, start: Floats | None, max_iter: int, tol: float, items: Names) -> Optima:
    """All local optima found from equal scores, and from ``start`` if given; else the one near ``theta``.

    Without a prior, a ``DataError`` if the loss falls for ever as the scores of some items rise.
    """
    descend = partial(minimize, b, max_iter=max_iter, tol=tol)
    if not searches_optima(b):
        return Optima([descend(theta)], np.ones(1), True)
    starts = [np.zeros(b.n), *([] if start is None else [start])]
    swaps = b.n_items**2 * b.n_rows <= MOST_SWAPPED_ROWS
    if not b.free:
        return find_optima(b, descend, starts, swaps)
    optima, rising = finite_optima(b, descend, starts, b.free, swaps)
    if rising:
        refuse_rising(rising, items)
    return optima


def uncertainty_of(
    b: Ballots, theta: Floats, kind: str | None, rng: np.random.Generator, meat: Floats | None = None
) -> tuple[Any, Any, list[str]]:
    """Covariance or standard errors, and notes on how they were computed; ``meat``: that of the sandwich, if known."""
    if kind is None or b.n == 0:
        return None, None, []
    if b.n > MOST_SIMULATED and b.n > b.n_items:
        return None, None, [f"no standard errors: controls of rows, and more than {MOST_SIMULATED} unknowns"]
    if b.n > MOST_SIMULATED:
        return None, _sampled_errors(b, theta, rng), [SAMPLED]
    robust = meat
    if kind == "sandwich" and meat is None:  # the prior is as uncertain as it says: unlisted items have its width
        robust = b.with_trend(b.outer_products(theta) + np.diag(np.broadcast_to(b.precisions, b.n)))
    H = with_curvature_in_groups(dense_hessian(b, theta), b.group)
    try:
        wider = _width_errors(b, theta, H) if b.spread else None
        covariance = information.covariance(H, robust, b.scale, b.n_items)
        covariance = covariance if wider is None else with_width(covariance, wider)
        if b.group is not None:
            covariance = matrix_of_averages(covariance, b.group)
            covariance[np.diag_indices(b.n)] = np.maximum(np.diag(covariance), 0.0)  # rounding, if all are one group
        return covariance, None, []
    except np.linalg.LinAlgError:
        return None, None, ["no standard errors: the information matrix is not positive definite"]


def uncertainty_of_optima(
    b: Ballots, optima: Optima, x: Floats, kind: str | None, random_state: int
) -> tuple[Any, Any, list[str]]:
    """As `uncertainty_of` at the scores x; of several optima, the covariance of the mixture of their normal laws."""
    if len(optima.fits) == 1:
        return uncertainty_of(b, x, kind, np.random.default_rng(random_state))
    found = [uncertainty_of(b, fit.x, kind, np.random.default_rng(random_state)) for fit in optima.fits]
    if any(covariance is None for covariance, _, _ in found):
        return found[0] if kind is None else (None, None, found[0][2])
    total = information.with_mean_zero(optima.spread(), b.n_items)
    for share, (covariance, _, _) in zip(optima.share, found):
        total += share * covariance
    return total, None, found[0][2]


def dense_hessian(b: Ballots, theta: Floats) -> Floats:
    """The dense Hessian, in closed form or by products; without a prior, the common shift of scores is fixed.

    The closed form of Plackett-Luce serves even if it is too slow for every step of a fit.
    """
    if b.closed or (b.loss == CLOSED and b.n == b.n_items):
        return b.hessian(theta)
    H = b.dense(theta)
    if not b.precision > 0:
        information.with_precision(H[: b.n_items, : b.n_items], 0.0)
    return H


def _width_errors(b: Ballots, theta: Floats, H: Floats) -> Floats:
    """What the uncertainty of the prior's width adds to the covariance of mean-zero scores."""
    n, covariance = b.n_items, information.inverse_of(H.copy()) / b.scale
    return width_uncertainty(covariance, theta[:n], b.trend, b.precision * b.scale, b.spread)


def _sampled_errors(b: Ballots, theta: Floats, rng: np.random.Generator) -> Floats:
    """Standard errors for many items, sampled from the ballots' gradients times normal numbers."""
    times = lambda v: b.times(theta, v)  # noqa: E731
    return information.sampled_stderr(times, b.diagonal(theta), b.noise(theta, rng)) / np.sqrt(b.scale)
