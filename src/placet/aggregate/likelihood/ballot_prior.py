"""The prior of the scores of ballots, learned by marginal likelihood (`placet.aggregate.likelihood.prior`)."""

import math
from functools import partial

import numpy as np

from placet import optim
from placet.aggregate.likelihood import information
from placet.aggregate.likelihood.ballot_objective import (
    ROUGH_TOLERANCE,
    STEP_ACCURACY,
    Ballots,
    Map,
    fit_ballots,
    minimize,
)
from placet.aggregate.likelihood.existence import compare_items
from placet.aggregate.likelihood.prior import (
    DRAWN_ACCURACY,
    MOST_DRAWS,
    UNTOLD,
    Prior,
    learn_width,
    without_trend,
)
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data.arrays import Floats
from placet.losses import LOSSES

MOST_INVERTED, MOST_COLUMNS = 1024, 24
"""Maximum unknowns for exact traces, with a closed Hessian and with one computed by columns."""


def square_sum(b: Ballots, theta: Floats, random_state: int) -> tuple[float, float]:
    """E[theta' K^-1 theta] under the Laplace approximation, and the approximate slope of its log by log width.

    k' theta + tr K^-1 C - tr(C dH) with k = K^-1 theta, C = H^-1 and dH the derivative of H along C k, from the
    derivative of Laplace's marginal likelihood with respect to the prior's precision.  If that is too costly, traces
    are estimated from z' C z with random signs z, the same in every call and assigned in the order of the scores, so
    that the order of the items does not matter.  The slope is then an upper bound.
    """
    n, scale = b.n_items, b.scale
    pull = np.append(without_trend(b.trend, theta[:n]), np.zeros(b.n - n))
    own = float(theta[:n] @ pull[:n])
    if b.n <= (MOST_INVERTED if b.closed else MOST_COLUMNS):
        C = _inverse(b, _hessian(b, theta))
        back = C @ pull
        S = without_trend(b.trend, C[:n, :n])
        trace, spread = float(np.trace(S)), b.precision * float((S * S.T).sum())
        bend = float((C * _directional_derivative(lambda x: _hessian(b, x), theta, back)).sum())
    else:
        times, diagonal = _products(b, theta)
        back = optim.cg(times, pull, rtol=STEP_ACCURACY, diagonal=diagonal)
        columns = [np.append(u, np.zeros(b.n - n)) for u in b.trend.T]
        along = sum(float(u @ optim.cg(times, u, rtol=STEP_ACCURACY, diagonal=diagonal)) for u in columns)
        rng, order = np.random.default_rng(random_state), np.argsort(theta[:n], kind="stable")
        total, bends, draws, trace = 0.0, 0.0, 0, math.inf
        while draws < MOST_DRAWS and trace * math.sqrt(2 / (n * max(draws, 1))) > DRAWN_ACCURACY * own * scale:
            z = np.zeros(b.n)
            z[order] = rng.choice([-1.0, 1.0], n)
            y = optim.cg(times, z, rtol=1e-2, diagonal=diagonal)
            bends += float(y @ _directional_derivative(partial(_swapped_product, b, z), theta, back))
            total, draws = total + float(z @ y), draws + 1
            trace = total / draws
        trace -= along
        bend, spread = bends / draws, trace
    square = own + (trace - bend) / scale
    growth = 4 * b.precision * float(pull @ back) + 2 * spread / scale
    return square, growth / square if square > 0 else 0.0


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


def learn_prior(
    b: Ballots, theta: Floats, max_iter: int, random_state: int, *, level: bool = False
) -> tuple[Prior, Floats]:
    """Learn the scores' prior by marginal likelihood; also returns scores close to the fit.  O(fits).

    ``level``: the mean is 0 for all items, whatever their support.
    """
    trend = np.zeros((b.n_items, 0)) if level else b.item_trend()
    if b.n_items < 2 or not compare_items(b.graphs, b.n_items):
        return Prior(UNTOLD, 0.0, trend, told=False), theta
    fits = 0

    def at_width(width: float) -> tuple[float, float]:
        nonlocal theta, fits
        other = b.with_prior(Prior(width, 0.0, trend))
        fit = (
            minimize(other, theta, max_iter, ROUGH_TOLERANCE)
            if fits
            else fit_ballots(other, theta, max_iter, ROUGH_TOLERANCE)
        )
        theta, fits = other.average(fit.x), fits + 1
        return square_sum(other, theta, random_state)

    width, spread = learn_width(at_width, b.n_items)
    return Prior(width, spread, trend), theta
