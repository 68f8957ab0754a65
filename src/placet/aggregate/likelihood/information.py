"""Information matrices of ballot likelihoods, and the resulting standard errors."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.linalg import lapack

from placet.data.arrays import Floats, Ints
from placet.kernels.aggregate import strict_orders
from placet.optim import cg

Stderr = Literal["auto", "observed", "sandwich", None]
"""Standard errors from the observed information, from the robust sandwich estimator, or none."""

SCORE_TOLERANCE = 1e-8
"""Scores that a fit by Newton's method cannot tell apart."""

WHAT, WAY_OUT = "the information", "take fewer items, or leave out the standard errors with stderr=None"


DIRECT = 256
"""Maximum unknowns for factoring a system."""

LEAST_PRECISION = 1e-14
"""Lower bound on a prior's precision relative to the scale: float64 resolves no less."""

BALLOTS_AT_ONCE = 1024


def solve(H: Floats, b: Floats, accuracy: float) -> Floats:
    """H^-1 b, by Cholesky if small, else by conjugate gradients to a relative ``accuracy``.

    Where rounding of vast weights leaves H with no factor, in the directions that float64 resolves.
    """
    if len(b) <= DIRECT:
        try:
            return inverse_of(H.copy()) @ b
        except np.linalg.LinAlgError:
            value, vector = np.linalg.eigh(H)
            least = LEAST_PRECISION * float(value[-1])
            if not value[0] >= -least:  # no rounding
                raise
            return np.asarray(vector @ (vector.T @ b / np.maximum(value, least or 1.0)))
    return cg(lambda v: H @ v, b, rtol=accuracy, diagonal=np.diag(H))


def inverse_of(H: Floats) -> Floats:
    """Inverse of a positive definite matrix, overwriting it.  O(n^3)."""
    if len(H) == 0:
        return H
    factor, failed = lapack.dpotrf(H.T, lower=1, overwrite_a=1)
    inverse, failed_too = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed or failed_too:
        raise np.linalg.LinAlgError("the Hessian is not positive definite")
    return np.tril(inverse) + np.tril(inverse, -1).T


def with_mean_zero(covariance: Floats, n_items: int) -> Floats:
    """The covariance after subtracting the mean of the first ``n_items`` unknowns from them."""
    covariance = covariance.copy()
    if n_items == 0:
        return covariance
    covariance[:n_items] -= covariance[:n_items].mean(axis=0)
    covariance[:, :n_items] -= covariance[:, :n_items].mean(axis=1, keepdims=True)
    return covariance


def with_precision(H: Floats, precision: float) -> Floats:
    """H with the prior's precision added to its diagonal; without a prior, the common shift of all scores is fixed."""
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
    """Weighted sum over ballots of the outer product of the gradient ``g`` (rows,); long ones by matrix product."""
    out = np.zeros((n, n))
    sizes = np.diff(offsets)
    if len(sizes) * n * n > 16 * int((sizes * sizes).sum()):
        strict_orders.add_outer_products(g, item, offsets, weight, out)
        return out
    for a in range(0, len(sizes), BALLOTS_AT_ONCE):
        z = min(a + BALLOTS_AT_ONCE, len(sizes))
        rows = slice(offsets[a], offsets[z])
        ballot = np.repeat(np.arange(z - a), sizes[a:z])
        G = np.zeros((z - a, n))
        G[ballot, item[rows]] = g[rows] * np.sqrt(weight[a:z])[ballot]
        out += G.T @ G
    return out


def covariance(H: Floats, meat: Floats | None, scale: float, n_items: int | None = None) -> Floats:
    """H^-1, or H^-1 M H^-1 if ``meat`` is M, for scores with mean zero and divided by ``scale``.  O(n^3).

    ``n_items``: number of leading unknowns that are scores; None for all.
    """
    inverse, n = inverse_of(H), len(H) if n_items is None else n_items
    return with_mean_zero(inverse, n) / scale if meat is None else sandwich(inverse, meat, scale, n)


def sandwich(inverse: Floats, meat: Floats, scale: float, n_items: int) -> Floats:
    """H^-1 M H^-1 / ``scale`` from H^-1 and M for scores with mean zero: symmetric, and without negative variances."""
    meat = meat / scale  # before the products, which overflow if weights are vast and few units have them
    found = with_mean_zero(inverse @ meat @ inverse, n_items)
    if (np.diag(found) >= 0).all():
        return (found + found.T) / 2
    value, vector = np.linalg.eigh(meat)  # rounding has taken over: the square of a root has no negative variances
    root = inverse @ (vector * np.sqrt(np.maximum(value, 0.0)))
    root[:n_items] -= root[:n_items].mean(axis=0) if n_items else 0.0
    return root @ root.T


def sampled_stderr(
    times: Callable[[Floats], Floats], diagonal: Floats, draw: Callable[[], Floats], *, robust: bool = False
) -> Floats:
    """Standard errors without a dense matrix, from x = H^-1 z with z of covariance H; ``times(v)`` is H v.

    Var x_i = 1 / H_ii + Var(E[x_i | others]) and only the second term is sampled, so 16 draws suffice.  ``robust``: z
    has another covariance, and 64 draws give each error to about 9%.  O(draws x solves).
    """
    spread, rounds = np.zeros(len(diagonal)), 64 if robust else 16
    for _ in range(rounds):
        x = cg(times, draw(), rtol=1e-3, diagonal=diagonal)
        if not robust:
            x -= times(x) / diagonal
        spread += (x - x.mean()) ** 2  # scores have mean zero, even if the prior does not enforce it
    return np.sqrt((0.0 if robust else 1 / diagonal) + spread / rounds)
