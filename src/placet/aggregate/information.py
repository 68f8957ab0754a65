"""Newton's method with a dense Hessian, and information matrices of ballot likelihoods."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from placet.aggregate.pairwise import DIRECT, centred, inverse_of
from placet.data.arrays import Floats, Ints
from placet.kernels import orders
from placet.optim import Fit

BALLOTS_AT_ONCE = 1024


def newton(
    fun: Callable[[Floats], tuple[float, Floats]],
    hessian: Callable[[Floats], Floats],
    x: Floats,
    *,
    tol: float,
    max_iter: int,
) -> Fit:
    """Minimise a convex function; steps are halved until they descend.

    Converged when a step solved to 1e-4 moves no unknown by more than sqrt(tol): what is left is of the order of tol.
    """
    value, g = fun(x)
    size, n_iter = 1.0, 0
    message = f"not converged in {max_iter} steps; raise max_iter"
    while n_iter < max_iter:
        n_iter += 1
        accuracy = min(0.02, max(size, 1e-2) * 1e-2)
        step = solve(hessian(x), -g, accuracy)
        slope = float(g @ step)
        while True:
            new_value, new_g = fun(x + step)
            if new_value <= value + 1e-4 * slope + 1e-13 * abs(value):
                break
            step, slope = step / 2, slope / 2
        x, value, g = x + step, new_value, new_g
        size = float(np.abs(step).max(initial=0.0))
        if size <= np.sqrt(tol) and accuracy <= 1e-4:
            message = "converged"
            break
    return Fit(x, value, float(np.abs(g).max(initial=0.0)), n_iter, message == "converged", message)


def solve(H: Floats, b: Floats, accuracy: float) -> Floats:
    """H^-1 b: by Cholesky when small, else by conjugate gradients to a relative ``accuracy``."""
    if len(b) <= DIRECT:
        return inverse_of(H) @ b
    diagonal = np.diag(H).copy()
    precondition = LinearOperator(H.shape, matvec=lambda v: v / diagonal, dtype=np.float64)
    x, _ = cg(H, b, rtol=accuracy, atol=0.0, maxiter=20 * len(b), M=precondition)
    return x


def held(H: Floats, precision: float) -> Floats:
    """H with the prior's precision on its diagonal; without a prior the common shift of all scores is held instead."""
    n = len(H)
    if precision > 0:
        H[np.arange(n), np.arange(n)] += precision
    elif n:
        H += np.trace(H) / n**2
    return H


def by_columns(times: Callable[[Floats], Floats], n: int) -> Floats:
    """A dense matrix from its products with the unit vectors."""
    H = np.empty((n, n))
    unit = np.zeros(n)
    for k in range(n):
        unit[k] = 1.0
        H[k] = times(unit)
        unit[k] = 0.0
    return (H + H.T) / 2


def outer_products(g: Floats, item: Ints, offsets: Ints, weight: Floats, n: int) -> Floats:
    """Sum over ballots of weight times the outer product of its gradient ``g`` (rows,); long ones by matrix product."""
    out = np.zeros((n, n))
    sizes = np.diff(offsets)
    if len(sizes) * n * n > 16 * int((sizes * sizes).sum()):
        orders.add_outer_products(g, item, offsets, weight, out)
        return out
    for a in range(0, len(sizes), BALLOTS_AT_ONCE):
        z = min(a + BALLOTS_AT_ONCE, len(sizes))
        rows = slice(offsets[a], offsets[z])
        ballot = np.repeat(np.arange(z - a), sizes[a:z])
        G = np.zeros((z - a, n))
        G[ballot, item[rows]] = g[rows] * np.sqrt(weight[a:z])[ballot]
        out += G.T @ G
    return out


def covariance(H: Floats, meat: Floats | None, scale: float) -> Floats:
    """H^-1, or H^-1 M H^-1 where ``meat`` is M, of scores with mean zero, in the units of the data.  O(n^3)."""
    inverse = inverse_of(H)
    if meat is not None:
        inverse = inverse @ meat @ inverse
    return centred(inverse, len(inverse)) / scale


def sampled_stderr(
    times: Callable[[Floats], Floats],
    diagonal: Floats,
    draw: Callable[[], Floats],
    rounds: int = 16,
) -> Floats:
    """Standard errors without a dense matrix, from x = H^-1 z with z drawn with covariance H.

    Var x_i = 1 / H_ii + Var(E[x_i | others]), and only the second term is sampled.  O(rounds x solves).
    """
    shape = (len(diagonal), len(diagonal))
    H = LinearOperator(shape, matvec=times, dtype=np.float64)
    precondition: Any = LinearOperator(shape, matvec=lambda v: v / diagonal, dtype=np.float64)
    spread = np.zeros(len(diagonal))
    for _ in range(rounds):
        x, _ = cg(H, draw(), rtol=1e-3, atol=0.0, maxiter=1000, M=precondition)
        x -= times(x) / diagonal
        spread += (x - x.mean()) ** 2  # scores have mean zero, whatever the prior leaves open
    return np.sqrt(1 / diagonal + spread / rounds)
