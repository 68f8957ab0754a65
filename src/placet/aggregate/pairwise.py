"""Newton's method on pair counts: scores, and where there are some a tie parameter and the effect of coming first.

The Hessian is a graph Laplacian with a thin border: [L + c I, B'; B, D].  Up to DIRECT unknowns it is factored; beyond,
conjugate gradients use the counts alone, so memory stays O(pairs).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, cg

from placet.data.arrays import Floats, Ints
from placet.kernels import pairs as kernels
from placet.optim import Fit
from placet.threads import map_ordered

DIRECT = 256
ROWS_PER_RANGE, MOST_RANGES = 16384, 16
LEAST_PRECISION = 1e-14
"""The prior's share of the largest count is held above this: float64 resolves no less."""

FAMILIES: dict[str, Callable[..., None]] = {
    "none": kernels.bradley_terry,
    "rao-kupper": kernels.rao_kupper,
    "davidson": kernels.davidson,
}


class Pairs(NamedTuple):
    """Counts by pair, divided by ``scale`` so that neither they nor the prior's ``precision`` exceed 1.

    ``tie`` and ``order`` say whether those parameters are unknowns; they follow the scores in x, in this order.
    """

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    wins_i: Floats
    wins_j: Floats
    ties: Floats
    n_items: int
    family: str
    precision: float
    scale: float
    tie: bool
    order: bool

    @property
    def n_extra(self) -> int:
        return int(self.tie) + int(self.order)


class Derivatives(NamedTuple):
    """Gradient (n + q,), curvature of each pair (pairs,), and the Hessian's border (q, n) and corner (q, q)."""

    gradient: Floats
    curvature: Floats
    border: Floats
    corner: Floats


def scaled(
    i: Ints, j: Ints, wins_i: Floats, wins_j: Floats, ties: Floats, n_items: int, family: str, prior: Any, order: bool
) -> Pairs:
    """Pairs with scaled counts; the tie parameter is an unknown where the family has one and there are ties."""
    largest = max((float(c.max(initial=0.0)) for c in (wins_i, wins_j, ties)), default=0.0)
    precision = 0.0 if prior is None else 1.0 / prior**2
    scale = max(largest, precision)
    held = 0.0 if prior is None else max(precision / scale, LEAST_PRECISION)
    tie = family != "none" and bool((ties > 0).any())
    won, lost, tied = (c / scale if scale > 0 else c for c in (wins_i, wins_j, ties))
    short = i.astype(np.int32), j.astype(np.int32)  # the fit is as fast as memory is read
    return Pairs(*short, won, lost, tied, n_items, family if tie else "none", held, scale or 1.0, tie, order)


def start_of(p: Pairs, theta: Any = None) -> Floats:
    """Scores as given or from the odds of winning, tie parameter from the share of ties, no effect of order."""
    x = np.zeros(p.n_items + p.n_extra)
    x[: p.n_items] = log_odds(p) if theta is None else theta
    if p.tie:
        tied, decided = p.ties.sum(), (p.wins_i + p.wins_j).sum()
        odds = (tied + 1e-6 * decided) / (decided + 1e-6 * tied)
        x[p.n_items] = np.log1p(odds) if p.family == "rao-kupper" else np.log(2 * odds)
    return x


def log_odds(p: Pairs) -> Floats:
    """log of wins over losses, half a vote added to either: the scores, were all opponents average.  O(pairs)."""
    n = p.n_items
    lead, total = np.zeros(n), np.full(n, 1.0 / p.scale)
    kernels.scatter(p.i, p.j, p.wins_i - p.wins_j, lead)
    kernels.laplacian_diagonal(p.i, p.j, p.wins_i + p.wins_j + p.ties, total)
    least = LEAST_PRECISION * total  # where half a vote is lost in rounding
    won, lost = np.maximum(total + lead, least), np.maximum(total - lead, least)
    theta = np.log(won / lost)
    return theta - theta.mean() if n else theta


def over_rows(p: Pairs, work: Callable[[slice, Floats], None], size: int) -> Floats:
    """Sum of what ``work(rows, out)`` adds to ``out`` (size,), zeros at first, over ranges of rows shared by threads.

    The ranges depend on the pairs alone and are added in order: the sum does not depend on the number of threads.
    """
    n = min(MOST_RANGES, -(-len(p.i) // ROWS_PER_RANGE))
    ends = np.linspace(0, len(p.i), n + 1).astype(np.int64)

    def part(k: int) -> Floats:
        out = np.zeros(size)
        work(slice(ends[k], ends[k + 1]), out)
        return out

    return np.add.reduce(map_ordered(part, n)) if n else np.zeros(size)


def parameters(p: Pairs, x: Floats) -> tuple[Floats, float, float]:
    """Scores, tie parameter and effect of order; those that are not unknowns are 0."""
    extra = x[p.n_items :]
    return x[: p.n_items], float(extra[0]) if p.tie else 0.0, float(extra[-1]) if p.order else 0.0


def derivatives(p: Pairs, x: Floats) -> Derivatives:
    """First and second derivatives of minus the log posterior at x.  O(pairs)."""
    theta, tie, order = parameters(p, x)
    n, q, rows = p.n_items, p.n_extra, len(p.i)
    slope, curvature = np.empty(rows), np.empty(rows)
    cross, tie_slope, tie_curvature = np.empty((3, rows if p.tie else 0))
    extra = (cross, tie_slope, tie_curvature)
    family = FAMILIES[p.family]

    def add(rows: slice, gradient: Floats) -> None:
        kernels.advantage(theta, order, p.i[rows], p.j[rows], slope[rows])
        counts = (p.wins_i[rows], p.wins_j[rows], p.ties[rows])
        family(slope[rows], tie, *counts, slope[rows], curvature[rows], *(column[rows] for column in extra))
        kernels.scatter(p.i[rows], p.j[rows], slope[rows], gradient)

    gradient = over_rows(p, add, len(x)) + p.precision * x
    border, corner = np.zeros((q, n)), np.zeros((q, q))
    if p.tie:
        gradient[n] += tie_slope.sum()
        kernels.scatter(p.i, p.j, cross, border[0])
        corner[0, 0] = tie_curvature.sum() + p.precision
    if p.order:
        gradient[-1] += slope.sum()
        kernels.scatter(p.i, p.j, curvature, border[-1])
        corner[-1, -1] = curvature.sum() + p.precision
    if q == 2:
        corner[0, 1] = corner[1, 0] = cross.sum()
    return Derivatives(gradient, curvature, border, corner)


def value(p: Pairs, x: Floats) -> float:
    """Minus the log posterior, in units of ``p.scale``.  O(pairs)."""
    theta, tie, order = parameters(p, x)

    def add(rows: slice, out: Floats) -> None:
        won, lost, tied = p.wins_i[rows], p.wins_j[rows], p.ties[rows]
        d = np.empty(len(won))
        kernels.advantage(theta, order, p.i[rows], p.j[rows], d)
        if p.family == "rao-kupper":
            win = 2 * tie + np.log(-np.expm1(-2 * tie))
            out[0] = (won + tied) @ softplus(tie - d) + (lost + tied) @ softplus(tie + d) - tied.sum() * win
            return
        count, size = won + lost + tied, np.abs(d)
        out[0] = (count @ size - (won - lost) @ d) / 2
        if p.family == "davidson":
            b = np.exp(-0.5 * size)
            out[0] += count @ np.log1p(b * b + np.exp(tie) * b) - tied.sum() * tie
        else:
            out[0] += count @ np.log(1 + np.exp(-size))

    return float(over_rows(p, add, 1)[0]) + 0.5 * p.precision * float(x @ x)


def softplus(x: Floats) -> Floats:
    """log(1 + e^x), without overflow; np.log of a sum runs in vectors where np.log1p does not."""
    return np.maximum(x, 0.0) + np.log(1 + np.exp(-np.abs(x)))


def dense(p: Pairs, at: Derivatives) -> Floats:
    """The Laplacian with its border as one matrix (n + q, n + q)."""
    n = p.n_items
    H = np.zeros((n + p.n_extra, n + p.n_extra))
    H[n:, n:], H[n:, :n], H[:n, n:] = at.corner, at.border, at.border.T
    kernels.laplacian_fill(p.i, p.j, at.curvature, H)
    return H


def hessian(p: Pairs, at: Derivatives) -> Floats:
    """The dense Hessian (n + q, n + q); without a prior the common shift of all scores is held by a row of ones."""
    n = p.n_items
    H = dense(p, at)
    H[np.arange(n), np.arange(n)] += p.precision
    if p.precision == 0.0:
        H[:n, :n] += np.trace(H[:n, :n]) / n**2
    return H


def solve(p: Pairs, at: Derivatives, b: Floats, accuracy: float) -> Floats:
    """H^-1 b, exactly or to a relative ``accuracy``; without a prior, the solution whose scores add up to zero."""
    n = p.n_items
    if len(b) == 0:
        return b
    if len(b) <= DIRECT:
        factor, failed = lapack.dpotrf(hessian(p, at), lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the Hessian is not positive definite")
        return lapack.dpotrs(factor, b, lower=1)[0]

    def flow(v: Floats, rows: slice, out: Floats) -> None:
        kernels.laplacian_product(p.i[rows], p.j[rows], at.curvature[rows], v, out)

    def times(v: Floats) -> Floats:
        v = np.ascontiguousarray(v)
        out = over_rows(p, partial(flow, v), len(v)) + p.precision * v
        out[:n] += at.border.T @ v[n:]
        out[n:] = at.border @ v[:n] + at.corner @ v[n:]
        return out

    diagonal = diagonal_of(p, at)
    shape = (len(b), len(b))
    precondition = LinearOperator(shape, matvec=lambda v: v / diagonal, dtype=np.float64)
    H = LinearOperator(shape, matvec=times, dtype=np.float64)
    x, _ = cg(H, b, rtol=accuracy, atol=0.0, maxiter=20 * len(b), M=precondition)
    if p.precision == 0.0:
        x[:n] -= x[:n].mean()
    return x


def diagonal_of(p: Pairs, at: Derivatives) -> Floats:
    """Diagonal of the Hessian; 1 where it is zero, which is where an item was never compared and there is no prior."""

    def add(rows: slice, out: Floats) -> None:
        kernels.laplacian_diagonal(p.i[rows], p.j[rows], at.curvature[rows], out)

    diagonal = over_rows(p, add, p.n_items + p.n_extra) + p.precision
    diagonal[p.n_items :] = np.diag(at.corner)
    return np.where(diagonal > 0, diagonal, 1.0)


def newton(p: Pairs, x: Floats, *, max_iter: int, tol: float) -> tuple[Fit, Derivatives]:
    """Newton's method; steps are halved while the slope along them has turned up by more than half.

    f is convex, so slopes along the step say all: no values, and no logarithms, are needed.  Converged when a step
    solved to 1e-4 moves no unknown by more than sqrt(tol): what is left is then of the order of tol.
    """
    at = derivatives(p, x)
    size, n_iter = 1.0, 0
    message = f"not converged in {max_iter} steps; raise max_iter"
    while n_iter < max_iter:
        n_iter += 1
        accuracy = min(0.02, max(size, 1e-2) * 1e-2)
        step = -solve(p, at, at.gradient, accuracy)
        slope = float(at.gradient @ step)
        step, x, at = _line_search(p, x, step, slope)
        size = float(np.abs(step).max(initial=0.0))
        if size <= np.sqrt(tol) and accuracy <= 1e-4:
            message = "converged"
            break
    total = float((p.wins_i + p.wins_j + p.ties).sum()) or 1.0
    norm = float(np.abs(at.gradient).max(initial=0.0))
    fit = Fit(x, value(p, x) / total, norm / total, n_iter, message == "converged", message)
    return fit, at


def _line_search(p: Pairs, x: Floats, step: Floats, slope: float) -> tuple[Floats, Floats, Derivatives]:
    for _ in range(60):
        new = x + step
        if p.family != "rao-kupper" or new[p.n_items] > 0:
            at = derivatives(p, new)
            if float(at.gradient @ step) <= -0.5 * slope:
                break
        step, slope = step / 2, slope / 2
    return step, new, at


def meat(p: Pairs, x: Floats) -> Derivatives:
    """Sum over votes of the outer product of their gradients, in the form of a Hessian.  O(pairs)."""
    theta, tie, order = parameters(p, x)
    n, q, rows = p.n_items, p.n_extra, len(p.i)
    d = np.empty(rows)
    kernels.advantage(theta, order, p.i, p.j, d)
    outer = {name: np.zeros(rows) for name in ("slope", "cross", "tie")}
    for k, count in enumerate((p.wins_i, p.wins_j, p.ties)):
        outcome = np.eye(3)[k][:, None] * np.ones(rows)
        slope, curvature = np.empty(rows), np.empty(rows)
        cross, tie_slope, tie_curvature = np.zeros((3, rows))
        FAMILIES[p.family](d, tie, *outcome, slope, curvature, cross, tie_slope, tie_curvature)
        outer["slope"] += count * slope**2
        outer["cross"] += count * slope * tie_slope
        outer["tie"] += count * tie_slope**2
    border, corner = np.zeros((q, n)), np.zeros((q, q))
    if p.tie:
        kernels.scatter(p.i, p.j, outer["cross"], border[0])
        corner[0, 0] = outer["tie"].sum()
    if p.order:
        kernels.scatter(p.i, p.j, outer["slope"], border[-1])
        corner[-1, -1] = outer["slope"].sum()
    if q == 2:
        corner[0, 1] = corner[1, 0] = outer["cross"].sum()
    return Derivatives(np.zeros(n + q), outer["slope"], border, corner)


def covariance_of(p: Pairs, at: Derivatives, robust: Derivatives | None = None) -> NDArray[np.float64]:
    """H^-1 (n + q, n + q) in the units of the data, or H^-1 M H^-1 where ``robust`` is the `meat` M.

    O(n^3).  The scores' part is that of scores with mean zero.
    """
    inverse = inverse_of(hessian(p, at))
    if robust is not None:
        inverse = inverse @ dense(p, robust) @ inverse
    return centred(inverse, p.n_items) / p.scale


def inverse_of(H: Floats) -> Floats:
    """Inverse of a positive definite matrix, which is overwritten.  O(n^3)."""
    if len(H) == 0:
        return H
    factor, failed = lapack.dpotrf(H.T, lower=1, overwrite_a=1)
    inverse, failed_too = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed or failed_too:
        raise np.linalg.LinAlgError("the Hessian is not positive definite")
    return np.tril(inverse) + np.tril(inverse, -1).T


def centred(covariance: Floats, n_items: int) -> Floats:
    """The covariance when the mean of the first ``n_items`` unknowns is taken off them."""
    covariance = covariance.copy()
    if n_items == 0:
        return covariance
    covariance[:n_items] -= covariance[:n_items].mean(axis=0)
    covariance[:, :n_items] -= covariance[:, :n_items].mean(axis=1, keepdims=True)
    return covariance


def sampled_stderr(p: Pairs, at: Derivatives, rng: np.random.Generator, robust: Derivatives | None = None) -> Floats:
    """Standard errors (n,) without a dense matrix, from draws x = H^-1 z, z ~ N(0, H) or N(0, M) where ``robust`` is M.

    A Laplacian gives z from one normal number for each pair.  With H, Var x_i = 1 / H_ii + Var(E[x_i | others]) and
    only the second term is sampled, so 16 draws are enough; with M, 64 give each error to about 9%.  Tie and order
    parameters are taken as known.  O(draws x solves).
    """
    n = p.n_items
    at = Derivatives(at.gradient[:n], at.curvature, np.zeros((0, n)), np.zeros((0, 0)))
    p = p._replace(tie=False, order=False)
    diagonal = diagonal_of(p, at)
    spread, rounds = np.zeros(n), 16 if robust is None else 64
    for _ in range(rounds):
        root = np.sqrt(at.curvature if robust is None else robust.curvature)
        z = (np.sqrt(p.precision) if robust is None else 0.0) * rng.standard_normal(n)
        kernels.scatter(p.i, p.j, root * rng.standard_normal(len(p.i)), z)
        x = solve(p, at, z - z.mean() if p.precision == 0.0 else z, 1e-3)
        if robust is None:
            product = p.precision * x
            kernels.laplacian_product(p.i, p.j, at.curvature, x, product)
            x -= product / diagonal
        spread += (x - x.mean()) ** 2  # scores have mean zero, whatever the prior leaves open
    known = 1 / diagonal if robust is None else 0.0
    return np.sqrt((known + spread / rounds) / p.scale)
