"""Information matrices of ballot likelihoods, and what they say about uncertainty."""

from collections.abc import Callable

import numpy as np

from placet.aggregate.pairwise import DIRECT, centred, inverse_of
from placet.data.arrays import Floats, Ints
from placet.kernels import orders
from placet.optim import cg

BALLOTS_AT_ONCE = 1024


def solve(H: Floats, b: Floats, accuracy: float) -> Floats:
    """H^-1 b: by Cholesky when small, else by conjugate gradients to a relative ``accuracy``."""
    if len(b) <= DIRECT:
        return inverse_of(H) @ b
    return cg(lambda v: H @ v, b, rtol=accuracy, diagonal=np.diag(H))


def with_precision(H: Floats, precision: float) -> Floats:
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
    spread = np.zeros(len(diagonal))
    for _ in range(rounds):
        x = cg(times, draw(), rtol=1e-3, diagonal=diagonal, max_iter=1000)
        x -= times(x) / diagonal
        spread += (x - x.mean()) ** 2  # scores have mean zero, whatever the prior leaves open
    return np.sqrt(1 / diagonal + spread / rounds)
