"""Chains of unknowns over time, too many to factor the Hessian: conjugate gradients, and sampled variances.

H = T + (couplings between chains), with T tridiagonal within the chain of each item.  T is factored exactly and serves
as preconditioner, so the iterations only resolve the couplings: some dozens of products, regardless of the number of
time steps.  O(rows + unknowns) each.
"""

from typing import Any

import numpy as np

from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.pairs.time_blocks import Chains
from placet.data.arrays import Floats
from placet.kernels.aggregate import tridiagonal as kernels
from placet.kernels.losses import pairs as pair_kernels
from placet.optim import cg

DRAWS = 16
"""Draws for estimating variances: with the exact variances within each chain, an error of a few percent each."""


class Chained:
    """A Hessian over chains, used through products; `time_blocks.Fronts` is factored."""

    def __init__(
        self,
        chains: Chains,
        p: pair_likelihood.PairCounts,
        curvature: Floats,
        own: Floats,
        link: Floats,
        accuracy: float,
    ) -> None:
        """``own`` (u,): diagonal terms from priors and links; ``link`` (u,): precision of the link to the next one.

        ``accuracy``: relative residual of solutions.
        """
        self.n, self.p, self.following = len(own), p, chains.next
        self.curvature, self.own, self.link, self.accuracy = curvature, own, link, accuracy
        diagonal = own.copy()
        pair_kernels.laplacian_diagonal(p.i, p.j, curvature, diagonal)
        self.pivot, self.ratio = np.empty(self.n), np.empty(self.n)
        kernels.factor(diagonal, link, self.following, self.pivot, self.ratio)

    def times(self, v: Floats) -> Floats:
        """H v."""

        def flow(rows: slice, out: Floats) -> None:
            pair_kernels.laplacian_product(self.p.i[rows], self.p.j[rows], self.curvature[rows], v, out)

        out = pair_likelihood.over_rows(self.p, flow, self.n)
        kernels.add_product(self.own, self.link, self.following, v, out)
        return out

    def precondition(self, b: Floats) -> Floats:
        """T^-1 b: the solution for uncoupled chains."""
        x = b.copy()
        kernels.solve(self.pivot, self.ratio, self.following, x)
        return x

    def solve(self, b: Floats) -> Floats:
        """H^-1 b for b (u,) or (u, k)."""
        if b.ndim == 2:
            return np.column_stack([self.solve(column) for column in b.T]) if b.shape[1] else b
        return cg(self.times, np.ascontiguousarray(b), rtol=self.accuracy, precondition=self.precondition)

    def variances(self, i: Any, j: Any) -> tuple[Floats, Floats, Floats]:
        """Estimates from H^-1: the diagonal (u,), entries with the next unknown (u,), Var(x_i - x_j) of every row.

        If z has covariance H, then x = H^-1 z has covariance H^-1.  Given all other chains, a chain has covariance T^-1
        around x - T^-1 z, so only the variance of the latter is sampled, always with the same draws.
        """
        rng = np.random.default_rng(0)
        own, link, across = np.empty(self.n), np.empty(self.n), np.zeros(len(i))
        kernels.inverse(self.pivot, self.ratio, self.following, own, link)
        linked = np.flatnonzero(self.following >= 0)
        after = self.following[linked]
        for _ in range(DRAWS):
            z = self._draw(rng)
            x = self.solve(z)
            across += x[i] * x[j] / DRAWS
            x -= self.precondition(z)
            own += x * x / DRAWS
            link[linked] += x[linked] * x[after] / DRAWS
        return own, link, np.maximum(own[i] + own[j] - 2 * across, 0.0)

    def _draw(self, rng: np.random.Generator) -> Floats:
        """Draw a vector (u,) with covariance H, from one normal number per row, link and first unknown."""
        prior = self.own - self.link
        linked = np.flatnonzero(self.following >= 0)
        prior[self.following[linked]] -= self.link[linked]
        z = np.sqrt(np.maximum(prior, 0.0)) * rng.standard_normal(self.n)
        kernels.scatter_links(self.following, np.sqrt(self.link) * rng.standard_normal(self.n), z)
        noise = np.sqrt(self.curvature) * rng.standard_normal(len(self.curvature))
        pair_kernels.scatter(self.p.i, self.p.j, noise, z)
        return z
