"""The Rasch model: an item of ability theta solves a question of difficulty d with probability expit(theta - d).

For questions answered right or wrong, difficulties are normal with mean 0 and a learned standard deviation sigma, and
are integrated out (Bock and Aitkin, Marginal maximum likelihood estimation of item parameters, Psychometrika 1981) by
Gauss-Hermite quadrature:

    log L = sum over columns c of w_c log sum_k q_k prod_i p_ik^x_ic (1 - p_ik)^(1 - x_ic),
    p_ik = expit(theta_i - sigma z_k)

Estimating every question's difficulty jointly with the abilities would spread the abilities too far, by n / (n - 1)
with n items, however many questions there are.  For tasks with shares of many questions solved, difficulties are well
determined: there they are free parameters, and the cost is the cross-entropy of shares and probabilities.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from placet import optim
from placet.data.arrays import Floats
from placet.data.engines.memory import refuse_square

NODES = 31
SIGMA_WIDTH = 1.5
"""Standard deviation of the prior of log sigma, which keeps it finite if the data do not determine it."""


@dataclass(frozen=True)
class RaschFit:
    """``theta`` (n,) with mean 0, and ``influence`` (n, columns): the derivative of theta in the columns' weights.

    ``sigma``: the standard deviation of difficulties, None if they are free.
    """

    theta: Floats
    sigma: float | None
    influence: Floats
    converged: bool


def fit_rasch(share: Floats, weight: Floats, prior: float | None) -> RaschFit:
    """Abilities from shares (n, columns) in 0..1, NaN where missing, and weights (columns,).

    ``prior``: the prior standard deviation of the abilities around their mean, or None.  Newton's method with the exact
    Hessian (Louis 1982); O(n^2 columns nodes) per step.
    """
    n = len(share)
    if not are_questions(share):
        return _fit_free(share, weight, prior)
    model = _Marginal(share, weight, prior)
    z = np.zeros(n + 1)
    found = optim.newton(model.value, model.solve, z, step_tol=1e-8, max_iter=200)
    theta = found.x[:n]
    H, columns = model.hessian(found.x), model.column_gradients(found.x)
    influence: Floats = np.linalg.solve(H, columns)[:n].astype(np.float64)
    return RaschFit(theta - theta.mean(), float(np.exp(found.x[n])), influence, found.converged)


def are_questions(share: Floats) -> bool:
    """Whether all scores are 0 or 1 (wrong or right)."""
    return bool(np.isin(share[~np.isnan(share)], (0.0, 1.0)).all())


def _fit_free(share: Floats, weight: Floats, prior: float | None) -> RaschFit:
    """Fit with free difficulties, eliminated from every Newton step; O(n^2 columns) per step.

    Columns that all items solve completely, or not at all, have no finite difficulty and are skipped.
    """
    n, m = share.shape
    there = ~np.isnan(share)
    x = np.where(there, share, 0.0)
    told = (x.sum(axis=0) > 0) & (((1 - x) * there).sum(axis=0) > 0)
    x, w = x[:, told], there[:, told] * weight[told]
    precision, scale = (0.0 if prior is None else 1.0 / prior**2), float(max(m, 1))
    refuse_square(n + x.shape[1], "the information of abilities and difficulties", "take fewer items or columns")
    center = precision * (np.eye(n) - 1.0 / n)

    def value(z: Floats) -> tuple[float, Floats]:
        d = z[:n, None] - z[n:]
        cost = -(w * (x * log_expit(d) + (1 - x) * log_expit(-d))).sum() + 0.5 * z[:n] @ center @ z[:n]
        g = w * (expit(d) - x)
        return float(cost) / scale, np.concatenate([g.sum(axis=1) + center @ z[:n], -g.sum(axis=0)]) / scale

    def parts(z: Floats) -> tuple[Floats, Floats, Floats]:
        p = expit(z[:n, None] - z[n:])
        B = w * np.maximum(p * (1 - p), 1e-12)
        column = B.sum(axis=0)
        S = np.diag(B.sum(axis=1)) + center - (B / column) @ B.T
        return S + np.full((n, n), column.sum() / n**2), B, column  # abilities have an arbitrary mean: make it 0

    def solve(z: Floats, g: Floats) -> Floats:
        S, B, column = parts(z)
        theta = np.linalg.solve(S, scale * (g[:n] + (B / column) @ g[n:]))
        return np.concatenate([theta, (scale * g[n:] + B.T @ theta) / column])

    found = optim.newton(value, solve, np.zeros(n + x.shape[1]), step_tol=1e-8, max_iter=200, convex=True)
    theta, difficulty = found.x[:n], found.x[n:]
    influence = np.zeros((n, m))
    influence[:, told] = np.linalg.solve(parts(found.x)[0], there[:, told] * (x - expit(theta[:, None] - difficulty)))
    return RaschFit(theta - theta.mean(), None, influence, found.converged)


class _Marginal:
    """Negative log posterior of (theta, log sigma), divided by the number of columns."""

    def __init__(self, share: Floats, weight: Floats, prior: float | None):
        there = ~np.isnan(share)
        self.x, self.there = np.where(there, share, 0.0), there.astype(np.float64)
        self.weight, self.scale = weight, float(max(len(weight), 1))
        self.precision = 0.0 if prior is None else 1.0 / prior**2
        nodes, masses = np.polynomial.hermite_e.hermegauss(NODES)
        self.nodes, self.log_mass = nodes, np.log(masses / masses.sum())

    def _posterior(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Log likelihood (columns,), weights of the nodes (nodes, columns), and p (nodes, n)."""
        d = z[:-1] - np.exp(z[-1]) * self.nodes[:, None]
        joint = self.log_mass[:, None] + log_expit(d) @ self.x + log_expit(-d) @ (self.there - self.x)
        total = logsumexp(joint, axis=0)
        return total, np.exp(joint - total), expit(d)

    def _scores(self, z: Floats, p: Floats, k: int) -> Floats:
        """(n + 1, columns): gradient of the log likelihood of every column at node k."""
        own = self.x - self.there * p[k][:, None]
        return np.vstack([own, -np.exp(z[-1]) * self.nodes[k] * own.sum(axis=0)])

    def column_gradients(self, z: Floats) -> Floats:
        """(n + 1, columns): gradient of every column's marginal log likelihood."""
        _, share, p = self._posterior(z)
        return sum((share[k] * self._scores(z, p, k) for k in range(NODES)), np.zeros((len(z), len(self.weight))))

    def value(self, z: Floats) -> tuple[float, Floats]:
        total, share, p = self._posterior(z)
        theta = z[:-1] - z[:-1].mean()
        cost = -self.weight @ total + 0.5 * self.precision * theta @ theta + 0.5 * (z[-1] / SIGMA_WIDTH) ** 2
        own = self.x * share.sum(axis=0) - self.there * (p.T @ share)
        last = sum(-np.exp(z[-1]) * self.nodes[k] * (share[k] * (self.x - self.there * p[k][:, None])).sum(axis=0)
                   for k in range(NODES))  # fmt: skip
        grad = -np.concatenate([own @ self.weight, [last @ self.weight]])
        grad[:-1] += self.precision * theta
        grad[-1] += z[-1] / SIGMA_WIDTH**2
        return float(cost) / self.scale, grad / self.scale

    def hessian(self, z: Floats) -> Floats:
        """Hessian (n + 1, n + 1) of the cost times ``scale``: minus the posterior mean of the second derivatives of the
        log likelihood, and minus the covariance of the first.
        """
        _, share, p = self._posterior(z)
        n, sigma = len(z) - 1, float(np.exp(z[-1]))
        H, mean = np.zeros((n + 1, n + 1)), np.zeros((n + 1, len(self.weight)))
        for k in range(NODES):
            w = self.weight * share[k]
            bend = (p[k] * (1 - p[k])) * (self.there @ w)  # (n,)
            s = self._scores(z, p, k)
            J = -sigma * self.nodes[k]
            H[np.arange(n), np.arange(n)] += bend
            H[:n, n] += J * bend
            H[n, :n] += J * bend
            H[n, n] += J * J * bend.sum() - w @ s[n]
            H -= (s * w) @ s.T
            mean += share[k] * s
        H += (mean * self.weight) @ mean.T
        H[:n, :n] += self.precision * (np.eye(n) - 1.0 / n)
        H[n, n] += 1 / SIGMA_WIDTH**2
        return H

    def solve(self, z: Floats, g: Floats) -> Floats:
        """The Newton step; eigenvalues of the Hessian that are not positive are made so."""
        values, vectors = np.linalg.eigh(self.hessian(z) / self.scale)
        values = np.maximum(np.abs(values), 1e-6 * max(float(np.abs(values).max()), 1e-12))
        return vectors @ ((vectors.T @ g) / values)
