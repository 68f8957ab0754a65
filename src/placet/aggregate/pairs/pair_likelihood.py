"""The likelihood of pair counts, in the scores, an optional tie parameter and the effects of controls.

The Hessian is a graph Laplacian with a thin border: [L + c I, B'; B, D].  Up to DIRECT unknowns it is factored; beyond,
conjugate gradients need only the counts, so memory stays O(pairs).
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from placet import optim
from placet.aggregate.likelihood.information import (
    DIRECT,
    LEAST_PRECISION,
    inverse_of,
    sampled_stderr,
    with_mean_zero,
    with_precision,
)
from placet.aggregate.likelihood.prior import (
    DRAWN_ACCURACY,
    EXTRA_PRIOR,
    LEARNING_TOLERANCE,
    MOST_DRAWS,
    NARROWEST,
    UNTOLD,
    WIDEST_PRIOR,
    Prior,
    learn_width,
    trend_of,
    trend_root,
    width_uncertainty,
    with_width,
    without_trend,
)
from placet.data import Comparisons
from placet.data.arrays import Floats
from placet.kernels import for_rows
from placet.kernels.losses import pairs as kernels
from placet.losses.pairwise import PAIR_MODELS
from placet.threads import sum_over_rows

ROWS_PER_RANGE = 16384

MOST_HALVINGS = 60

STEP_ACCURACY = 1e-4
"""Relative residual to which the last Newton step is solved: a step of sqrt(tol) then leaves an error below tol."""


class PairCounts(NamedTuple):
    """Counts by pair, divided by ``scale`` so that neither they nor a prior's precision exceed 1.

    ``control`` (pairs, k): columns of controls, each divided by its root mean square ``unit`` (k,); the effect of
    coming first is the control that is 1 everywhere.  In x, the scores are followed by the tie parameter if ``tie`` is
    true, and by the effects of the controls.  The tie parameter is stored in x in the parametrization in which the
    model is convex (`PairModel`).  ``precision`` is the prior precision of the scores and ``extra_precision`` that of
    the other unknowns.  ``trend`` (n, k) is that of the prior's mean (`placet.aggregate.likelihood.prior`).
    """

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    wins_i: Floats
    wins_j: Floats
    ties: Floats
    n_items: int
    model: str
    precision: float
    extra_precision: float
    scale: float
    tie: bool
    control: Floats
    unit: Floats
    trend: Floats

    @property
    def n_extra(self) -> int:
        return int(self.tie) + self.control.shape[1]


class Derivatives(NamedTuple):
    """Gradient (n + q,), curvature of each pair (pairs,), and the Hessian's border (q, n) and corner (q, q)."""

    gradient: Floats
    curvature: Floats
    border: Floats
    corner: Floats


def pair_counts(
    c: Comparisons,
    model: str,
    prior: float | None,
    order: bool,
    control: tuple[Floats, Floats] | None = None,
    trend: Floats | None = None,
) -> PairCounts:
    """The scaled counts of ``c``; the tie parameter is an unknown if the model has one and there are ties.

    ``order`` adds the effect of coming first as a control after those of ``c``.  ``control`` is the result of
    `controls_of`, if already computed; ``trend`` is that of the prior's mean, which is 0 without one.
    """
    counts = (c.wins_i, c.wins_j, c.ties)
    largest = max(float(column.max(initial=0.0)) for column in counts)
    precision, extra = (0.0, 0.0) if prior is None else (1.0 / prior**2, 1.0 / EXTRA_PRIOR**2)
    scale = max(largest, precision, extra) or 1.0
    if prior is not None:
        precision, extra = max(precision / scale, LEAST_PRECISION), max(extra / scale, LEAST_PRECISION)
    tie = model != "bradley-terry" and bool((c.ties > 0).any())
    won, lost, tied = (column / scale for column in counts)
    i, j = c.i.astype(np.int32), c.j.astype(np.int32)  # fits are limited by memory bandwidth
    model = model if tie else "bradley-terry"
    columns, unit = controls_of(c, order) if control is None else control
    trend = np.zeros((c.n_items, 0)) if trend is None else trend
    return PairCounts(i, j, won, lost, tied, c.n_items, model, precision, extra, scale, tie, columns, unit, trend)


def controls_of(c: Comparisons, order: bool) -> tuple[Floats, Floats]:
    """Columns of controls (rows, k) divided by their root mean squares over votes, and those root mean squares (k,)."""
    rows = len(c.i)
    control = np.zeros((rows, 0)) if c.control is None else np.array(c.control)
    if order:
        control = np.column_stack([control, np.ones(rows)])
    if not control.shape[1]:
        return control, np.zeros(0)
    votes = c.wins_i + c.wins_j + c.ties
    top = np.abs(control).max(axis=0, initial=0.0)
    top[top == 0.0] = 1.0
    share = votes / (votes.sum() or 1.0)
    unit = top * np.sqrt(share @ (control / top) ** 2)
    unit[unit == 0.0] = 1.0
    return np.ascontiguousarray(control / unit), unit


def start_of(p: PairCounts, theta: Any = None) -> Floats:
    """Initial x: scores as given or from the odds of winning, tie parameter from the share of ties, zero effects."""
    x = np.zeros(p.n_items + p.n_extra)
    x[: p.n_items] = log_odds(p) if theta is None else theta
    if p.tie:
        tied, decided = p.ties.sum(), (p.wins_i + p.wins_j).sum()
        x[p.n_items] = PAIR_MODELS[p.model].inner(math.log(2 * (tied + 1e-6 * decided) / (decided + 1e-6 * tied)))
    return x


def log_odds(p: PairCounts) -> Floats:
    """Log of wins over losses, with half a vote added to each: the scores if all opponents were average.  O(pairs)."""
    n, lead, votes = p.n_items, p.wins_i - p.wins_j, p.wins_i + p.wins_j + p.ties
    ahead = np.bincount(p.i, lead, n) - np.bincount(p.j, lead, n)
    total = 1.0 / p.scale + np.bincount(p.i, votes, n) + np.bincount(p.j, votes, n)
    least = LEAST_PRECISION * total  # in case half a vote is lost to rounding
    won, lost = np.maximum(total + ahead, least), np.maximum(total - ahead, least)
    theta = np.log(won / lost)
    return theta - theta.mean() if n else theta


def over_rows(p: PairCounts, work: Callable[[slice, Floats], None], size: int) -> Floats:
    """Sum over the rows of pairs of what ``work(rows, out)`` adds to ``out`` (size,); in threads if there are many."""
    if len(p.i) > ROWS_PER_RANGE:
        return sum_over_rows(work, len(p.i), size, ROWS_PER_RANGE)
    out = np.zeros(size)
    work(slice(0, len(p.i)), out)
    return out


def parameters(p: PairCounts, x: Floats) -> tuple[Floats, float, Floats]:
    """Scores, the tie parameter as stored in x (0 if it is not an unknown), and the effects of controls."""
    extra = x[p.n_items :]
    return x[: p.n_items], float(extra[0]) if p.tie else 0.0, extra[int(p.tie) :]


def tie_parameter(p: PairCounts, x: Floats) -> tuple[float, float]:
    """The tie parameter (-inf if no ties are expected) and its derivative in the number stored in x."""
    if not p.tie:
        return -math.inf, 1.0
    tie, slope, _ = PAIR_MODELS[p.model].outer(float(x[p.n_items]))
    return tie, slope


def derivatives(p: PairCounts, x: Floats) -> Derivatives:
    """First and second derivatives of the negative log posterior at x.  O(pairs)."""
    n, k, size, rows = p.n_items, int(p.tie), len(x), len(p.i)
    theta, t, effect = x[:n], float(x[n]) if p.tie else 0.0, x[n + k :]
    slope, curvature = np.empty((2, rows))
    extra = cross, tie_slope, tie_curvature = np.empty((3, rows if p.tie else 0))
    sums = getattr(for_rows(kernels, rows), f"{PAIR_MODELS[p.model].name}_sums")

    def add(part: slice, out: Floats) -> None:
        counts = (p.wins_i[part], p.wins_j[part], p.ties[part])
        each = (slope[part], curvature[part], *(column[part] for column in extra))
        sums(theta, p.control[part], effect, t, p.i[part], p.j[part], *counts, *each, out[:size], out[size:])

    out = over_rows(p, add, size + k * n)
    gradient, border, corner = out[:size], np.zeros((size - n, n)), np.zeros((size - n, size - n))
    gradient[:n] += p.precision * (without_trend(p.trend, theta) if p.trend.size else theta)
    if p.tie:
        tie, first, second = PAIR_MODELS[p.model].outer(t)
        gradient[n] += tie_slope.sum() + p.extra_precision * tie * first
        border[0] = out[size:]
        corner[0, 0] = tie_curvature.sum() + p.extra_precision * (first * first + tie * second)
    if len(effect):
        gradient[n + k :] += p.control.T @ slope + p.extra_precision * effect
        fill_controls(p, curvature, cross, border, corner)
        corner[k:, k:] += p.extra_precision * np.eye(len(effect))
    return Derivatives(gradient, curvature, border, corner)


def fill_controls(p: PairCounts, curvature: Floats, cross: Floats, border: Floats, corner: Floats) -> None:
    """Fill the controls' part of the border (q, n) and corner (q, q) from f_dd and f_dt of each row.  O(pairs k^2)."""
    k = int(p.tie)
    by_item = np.zeros((p.n_items, p.control.shape[1]))
    kernels.control_sums(p.i, p.j, curvature, p.control, by_item, corner[k:, k:])
    border[k:] = by_item.T
    if p.tie:
        corner[0, k:] = corner[k:, 0] = p.control.T @ cross


def value(p: PairCounts, x: Floats) -> float:
    """Negative log posterior up to a constant, divided by ``p.scale``.  O(pairs)."""
    theta, t, effect = parameters(p, x)
    own, tie = for_rows(kernels, len(p.i)), tie_parameter(p, x)[0]
    costs = getattr(own, f"{PAIR_MODELS[p.model].name}_costs")

    def add(rows: slice, out: Floats) -> None:
        d, win, loss, tied = np.empty((4, rows.stop - rows.start))
        own.advantage(theta, p.control[rows], effect, p.i[rows], p.j[rows], d)
        costs(d, t, win, loss, tied)
        even = tied if p.tie else (win + loss) / 2
        out[0] = p.wins_i[rows] @ win + p.wins_j[rows] @ loss + p.ties[rows] @ even

    beside = float(effect @ effect) + (tie**2 if p.tie else 0.0)
    pull = without_trend(p.trend, theta) if p.trend.size else theta
    penalty = p.precision * float(theta @ pull) + p.extra_precision * beside
    return float(over_rows(p, add, 1)[0]) + 0.5 * penalty


def hessian(p: PairCounts, at: Derivatives, *, prior: bool = True) -> Floats:
    """The bordered Laplacian as a dense matrix (n + q, n + q), with the scores' prior unless that is left out.

    If the scores have no prior, a constant fixes their common shift.
    """
    n, size = p.n_items, p.n_items + len(at.corner)
    H = np.zeros((size, size))
    H[np.arange(n), np.arange(n)] = p.precision if prior else 0.0
    H[n:, n:], H[n:, :n], H[:n, n:] = at.corner, at.border, at.border.T
    if prior and p.trend.shape[1]:
        H[:n, :n] -= (p.precision * p.trend) @ p.trend.T
    flat, i, j = H.reshape(-1), p.i.astype(np.int64), p.j.astype(np.int64)
    for ends in (i * size + j, j * size + i):
        np.subtract.at(flat, ends, at.curvature)
    for end in (i, j):
        np.add.at(flat, end * (size + 1), at.curvature)
    if prior and p.precision == 0.0:
        with_precision(H[:n, :n], 0.0)
    return H


def product(p: PairCounts, at: Derivatives, v: Floats) -> Floats:
    """Product of the bordered Laplacian, including the scores' prior, and v (n + q,).  O(pairs)."""
    n = p.n_items

    def flow(rows: slice, out: Floats) -> None:
        kernels.laplacian_product(p.i[rows], p.j[rows], at.curvature[rows], v, out)

    out = over_rows(p, flow, len(v))
    out[:n] += p.precision * without_trend(p.trend, v[:n]) + at.border.T @ v[n:]
    out[n:] = at.border @ v[:n] + at.corner @ v[n:]
    return out


def diagonal_of(p: PairCounts, at: Derivatives) -> Floats:
    """Diagonal of the Hessian; zeros, as for items never compared without a prior, are replaced by 1."""

    def add(rows: slice, out: Floats) -> None:
        kernels.laplacian_diagonal(p.i[rows], p.j[rows], at.curvature[rows], out)

    diagonal = over_rows(p, add, p.n_items + p.n_extra) + p.precision
    if p.trend.shape[1]:
        diagonal[: p.n_items] -= p.precision * (p.trend**2).sum(axis=1)
    diagonal[p.n_items :] = np.diag(at.corner)
    return np.where(diagonal > 0, diagonal, 1.0)


def solve(p: PairCounts, at: Derivatives, b: Floats, accuracy: float) -> Floats:
    """H^-1 b, exactly or to a relative ``accuracy``; without a prior, the solution whose scores sum to zero."""
    n = p.n_items
    if len(b) == 0:
        return b
    if len(b) <= DIRECT:
        factor, failed = lapack.dpotrf(hessian(p, at), lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the Hessian is not positive definite")
        return lapack.dpotrs(factor, b, lower=1)[0]
    x = optim.cg(partial(product, p, at), b, rtol=accuracy, diagonal=diagonal_of(p, at))
    if p.precision == 0.0:
        x[:n] -= x[:n].mean()
    return x


def fit_counts(p: PairCounts, x: Floats, *, max_iter: int, tol: float) -> tuple[optim.Fit, Derivatives]:
    """Newton's method from gradients alone, as the function is convex; the fit, and the derivatives there.

    Converged when a step solved to STEP_ACCURACY moves no unknown by more than sqrt(tol): the remaining error is then
    of the order of tol.  Without a prior, unknowns may diverge until the information vanishes: not converged.
    """
    at, n_iter, moved, step_tol = derivatives(p, x), 0, math.inf, math.sqrt(tol)
    while n_iter < max_iter and moved > step_tol:
        try:
            rough = 1e-2 * min(max(moved, 1e-2), 1.0)  # roughly while steps are long
            step = -solve(p, at, at.gradient, rough)
            if len(x) > DIRECT and rough > STEP_ACCURACY and np.abs(step).max() <= step_tol:
                step = -solve(p, at, at.gradient, STEP_ACCURACY)
        except np.linalg.LinAlgError:
            if p.precision > 0.0:
                raise
            norm = float(np.abs(at.gradient).max(initial=0.0))
            return optim.Fit(x, math.nan, norm, 0, False, "not converged: unknowns without finite values"), at
        slope = float(at.gradient @ step)
        for _ in range(MOST_HALVINGS):  # while the step overshoots: the slope at its end exceeds -1/2 that at its start
            new = x + step
            if not (p.model == "rao-kupper" and new[p.n_items] <= 0):
                there = derivatives(p, new)
                if float(there.gradient @ step) <= -0.5 * slope:
                    break
            step, slope = step / 2, slope / 2
        else:
            break
        moved = float(np.abs(new - x).max(initial=0.0))
        x, at, n_iter = new, there, n_iter + 1
    return optim.fit_by_steps(x, math.nan, at.gradient, n_iter, moved, step_tol), at


def per_vote(p: PairCounts, fit: optim.Fit) -> optim.Fit:
    """The fit with its value, which `fit_counts` does not compute, and gradient per unit weight.  O(pairs)."""
    total = float((p.wins_i + p.wins_j + p.ties).sum()) or 1.0
    return replace(fit, value=value(p, fit.x) / total, grad_norm=fit.grad_norm / total)


# ---- prior width


def square_sum(p: PairCounts, x: Floats, at: Derivatives, random_state: int) -> tuple[float, float]:
    """E[theta' K^-1 theta] under the Laplace posterior, and the approximate derivative of its log in the log of the
    prior width.

    The sum is k' theta + tr K^-1 H^-1 + 2 k' m with k = K^-1 theta, where m = -1/2 H^-1 sum over rows of
    f_ddd Var(d) (e_i - e_j) is the first-order difference between mean and mode; with it, the sum is exactly the
    derivative of the Laplace marginal likelihood.  Beyond DIRECT unknowns variances are sampled, with the same random
    numbers in every call, to an accuracy of DRAWN_ACCURACY.  The derivative, an upper bound if variances are sampled,
    uses d theta / d log w = 2 precision H^-1 k and d H^-1 / d log w = 2 precision H^-1 K^-1 H^-1 <= 2 H^-1.
    """
    n, draws = p.n_items, 0
    pull = np.append(without_trend(p.trend, x[:n]), np.zeros(len(x) - n))
    own = float(x[:n] @ pull[:n])
    if len(x) <= DIRECT:
        C = inverse_of(hessian(p, at))
        S = without_trend(p.trend, C[:n, :n])
        variance, trace, back = C[p.i, p.i] + C[p.j, p.j] - 2 * C[p.i, p.j], float(np.trace(S)), C @ pull
        spread = p.precision * float((S * S.T).sum())
    else:
        total, squares, back = 0.0, np.zeros(len(p.i)), solve(p, at, pull, STEP_ACCURACY)
        columns = [np.append(u, np.zeros(len(x) - n)) for u in p.trend.T]
        along = sum(float(u @ solve(p, at, u, STEP_ACCURACY)) for u in columns)
        times, diagonal, draw = scores_alone(p, at, np.random.default_rng(random_state), None)
        trace = math.inf
        while draws < MOST_DRAWS and trace * math.sqrt(2 / (n * max(draws, 1))) > DRAWN_ACCURACY * own * p.scale:
            z = optim.cg(times, draw(), rtol=1e-2, diagonal=diagonal)
            squares += (z[p.i] - z[p.j]) ** 2
            z -= times(z) / diagonal
            total, draws = total + float(z @ z + (1 / diagonal).sum()), draws + 1
            trace = total / draws
        trace -= along
        variance, spread = squares / draws, trace
    shift = -float((third_derivative(p, x) * variance) @ (back[p.i] - back[p.j]))
    square = own + (trace + shift) / p.scale
    growth = 4 * p.precision * float(pull @ back) + 2 * spread / p.scale
    return square, growth / square if square > 0 else 0.0


def third_derivative(p: PairCounts, x: Floats, h: float = 1e-4) -> Floats:
    """f_ddd of each row (pairs,), from the curvatures at d + h and d - h.  O(pairs)."""
    theta, t, effect = parameters(p, x)
    own, rows, counts = for_rows(kernels, len(p.i)), len(p.i), (p.wins_i, p.wins_j, p.ties)
    slopes = getattr(own, f"{PAIR_MODELS[p.model].name}_slopes")
    d, slope, above, below = np.empty((4, rows))
    extra = np.empty((3, rows))
    own.advantage(theta, p.control, effect, p.i, p.j, d)
    for step, curvature in ((h, above), (-h, below)):
        slopes(d + step, t, *counts, slope, curvature, *extra)
    return (above - below) / (2 * h)


def learn_prior(
    c: Comparisons, model: str, order: bool, start: Any, max_iter: int, random_state: int, *, level: bool = False
) -> tuple[Prior, Floats]:
    """The scores' prior by marginal likelihood, and unknowns close to the fit with it.  O(fits).

    ``level``: the mean is 0 for all items, whatever their support.
    """
    control = controls_of(c, order)
    trend = np.zeros((c.n_items, 0)) if level else item_trend(c, control[0])
    p = pair_counts(c, model, WIDEST_PRIOR, order, control, trend)
    x = start_of(p, start)
    if not (c.wins_i.any() or c.wins_j.any() or c.ties.any()):
        return Prior(UNTOLD, 0.0, trend, told=False), x

    def at_width(width: float) -> tuple[float, float]:
        nonlocal x
        p = pair_counts(c, model, width, order, control, trend)
        fit, at = fit_counts(p, x, max_iter=max_iter, tol=LEARNING_TOLERANCE)
        x = fit.x
        return square_sum(p, x, at, random_state)

    width, spread = learn_width(at_width, p.n_items, max(float(np.std(x[: p.n_items])), NARROWEST))
    return Prior(width, spread, trend), x


def item_trend(c: Comparisons, control: Floats) -> Floats:
    """The trend of the prior's mean on the items' votes and on their mean controls, from the item's side.  O(pairs)."""
    votes = c.wins_i + c.wins_j + c.ties
    support: Any = np.bincount(c.i, votes, c.n_items) + np.bincount(c.j, votes, c.n_items)
    if not control.shape[1]:
        return trend_of(support)
    sums = [np.bincount(c.i, votes * z, c.n_items) - np.bincount(c.j, votes * z, c.n_items) for z in control.T]
    means = np.column_stack(sums) / np.where(support > 0, support, 1.0)[:, None]
    if (support > 0).any():
        means[support <= 0] = means[support > 0].mean(axis=0)
    return trend_of(support, means)


# ---- uncertainty


def gradient_products(p: PairCounts, x: Floats) -> Derivatives:
    """Sum over votes of the outer products of their gradients, plus the precision of the priors of unknowns other than
    scores, stored like a Hessian.  O(pairs)."""
    theta, t, effect = parameters(p, x)
    n, q, rows = p.n_items, p.n_extra, len(p.i)
    d = np.empty(rows)
    kernels.advantage(theta, p.control, effect, p.i, p.j, d)
    outer = {name: np.zeros(rows) for name in ("slope", "cross", "tie")}
    slopes = PAIR_MODELS[p.model].kernel("slopes")
    for k, count in enumerate((p.wins_i, p.wins_j, p.ties)):
        outcome = np.eye(3)[k][:, None] * np.ones(rows)
        slope, curvature = np.empty(rows), np.empty(rows)
        cross, tie_slope, tie_curvature = np.zeros((3, rows))
        slopes(d, t, *outcome, slope, curvature, cross, tie_slope, tie_curvature)
        outer["slope"] += count * slope**2
        outer["cross"] += count * slope * tie_slope
        outer["tie"] += count * tie_slope**2
    border, corner = np.zeros((q, n)), np.zeros((q, q))
    if p.tie:
        kernels.scatter(p.i, p.j, outer["cross"], border[0])
        corner[0, 0] = outer["tie"].sum() + p.extra_precision * PAIR_MODELS[p.model].outer(t)[1] ** 2
    if p.control.shape[1]:
        fill_controls(p, outer["slope"], outer["cross"], border, corner)
        corner[np.arange(int(p.tie), q), np.arange(int(p.tie), q)] += p.extra_precision
    return Derivatives(np.zeros(n + q), outer["slope"], border, corner)


def covariance_of(
    p: PairCounts, at: Derivatives, robust: Derivatives | None = None, theta: Floats | None = None, spread: float = 0.0
) -> Floats:
    """H^-1 (n + q, n + q) in the units of the data, or H^-1 (M + prior) H^-1 if ``robust`` is M (`gradient_products`).

    The prior is as uncertain as it says: an item without votes has its width as an error, not none.  ``spread``: the
    standard deviation of the log of the width at the scores ``theta``, which is then included.  O(n^3).  The scores'
    block is for mean-zero scores.
    """
    inverse = inverse_of(hessian(p, at))
    found = inverse if robust is None else inverse @ hessian(p, robust, prior=p.precision > 0.0) @ inverse
    found = with_mean_zero(found, p.n_items)
    if spread and theta is not None:
        found = with_width(found, width_uncertainty(inverse, theta * math.sqrt(p.scale), p.trend, p.precision, spread))
    return found / p.scale


def scores_alone(
    p: PairCounts, at: Derivatives, rng: np.random.Generator, robust: Derivatives | None
) -> tuple[Callable[[Floats], Floats], Floats, Callable[[], Floats]]:
    """(multiply, diagonal, draw) of the scores' block of the Hessian; draws have it (or ``robust``) as covariance.

    One normal number per pair gives a draw whose covariance is the Laplacian.
    """
    n = p.n_items
    at = Derivatives(at.gradient[:n], at.curvature, np.zeros((0, n)), np.zeros((0, 0)))
    p = p._replace(tie=False, control=p.control[:, :0])
    root = np.sqrt(at.curvature if robust is None else robust.curvature)

    def draw() -> Floats:
        z = math.sqrt(p.precision) * trend_root(p.trend, rng.standard_normal(n))
        kernels.scatter(p.i, p.j, root * rng.standard_normal(len(p.i)), z)
        return z - z.mean() if p.precision == 0.0 else z

    return partial(product, p, at), diagonal_of(p, at), draw


def stderr_of_many(p: PairCounts, at: Derivatives, rng: np.random.Generator, robust: Derivatives | None) -> Floats:
    """Standard errors (n,) without a dense matrix, treating the tie parameter and effects of controls as known."""
    found = sampled_stderr(*scores_alone(p, at, rng, robust), robust=robust is not None)
    return found / math.sqrt(p.scale)


def extra_stderr(p: PairCounts, at: Derivatives, robust: Derivatives | None) -> Floats:
    """Standard errors (q,) of the unknowns other than scores, one solve for each.  O(q solves)."""
    found = np.zeros(p.n_extra)
    for k in range(p.n_extra):
        unit = np.zeros(p.n_items + p.n_extra)
        unit[p.n_items + k] = 1.0
        x = solve(p, at, unit, STEP_ACCURACY)
        variance = x[p.n_items + k] if robust is None else x @ product(p, robust, x)
        found[k] = math.sqrt(variance / p.scale)
    return found
