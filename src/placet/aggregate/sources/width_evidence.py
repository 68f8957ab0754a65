"""Laplace's evidence of scales and widths, its derivatives, and where it is largest.

At the joint mode every likelihood is replaced by its quadratic, u' L u / 2 - r' u with the other parameters eliminated.
With L = V diag(l) V' and rho = V' r, a source integrated over its own scores u = a theta + e, e ~ N(0, v^2), gives
theta the precision a^2 V diag(l / (1 + l v^2)) V', the linear term a V (rho / (1 + l v^2)), and the factor
prod (1 + l v^2)^(-1/2) exp(v^2 rho^2 / (2 (1 + l v^2))), so the evidence of z = (log w, log a_k, log v_k) is in closed
form.  Directions that a source does not see (l = 0), such as a common shift of all scores, contribute nothing.

Prior of z: w has a density proportional to w times a half normal one of standard deviation `SPREAD_PRIOR`, as a source
that sees no differences must not make the target's vanish; v_k is half normal with standard deviation `WIDTH_PRIOR`,
and log a_k normal with mean 0 and standard deviation `SCALE_PRIOR`.
"""

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, lapack

from placet.aggregate.sources.joint_mode import JointPosterior, Widths, add_square
from placet.aggregate.sources.vote_sites import SiteSource
from placet.data.arrays import Floats, Ints
from placet.data.errors import DataError

SPREAD_PRIOR, SCALE_PRIOR, WIDTH_PRIOR = 3.0, 1.5, 1.0
STEP, MOST_STEPS = 1e-4, 100
"""The search for the largest evidence stops when no logarithm moves by more than this, or after so many steps."""

LEAST_CURVATURE = 0.25
"""Least curvature of the evidence along an axis: no axis is looked at farther than two units of a logarithm."""


class Quadratic(NamedTuple):
    """A source at the mode: numbers of its items, eigenvalues and vectors of L, and rho; of a source that is tied to
    theta directly (`placet.aggregate.sources.paired_votes`), also V' C'.
    """

    items: Ints
    values: Floats
    vectors: Floats
    rho: Floats
    cross: Floats | None = None


def quadratic(likelihood: Any, x: Floats) -> tuple[Floats, Floats]:
    """L (m, m) and r (m,) of a likelihood at x, its other parameters eliminated.

    The last ``held`` parameters of a score table, its slopes, stay as they are: they multiply the abilities, and a
    quadratic in both would leave the scale of the abilities open.
    """
    g, H = likelihood.derivatives(x)
    kept = len(H) - getattr(likelihood, "held", 0)
    g, H = g[:kept], H[:kept, :kept]
    m = len(likelihood.index)
    L, slope = H[:m, :m], g[:m]
    if len(H) > m:
        back = np.linalg.solve(H[m:, m:], np.column_stack([H[m:, :m], g[m:]]))
        L, slope = L - H[:m, m:] @ back[:, :-1], slope - H[:m, m:] @ back[:, -1]
    L = (L + L.T) / 2
    return L, L @ x[:m] - slope


class Posterior(NamedTuple):
    """At given widths: log evidence with the prior, mean and covariance of theta, and F with covariance F F'."""

    value: float
    mean: Floats
    covariance: Floats
    factor: Floats


def _cholesky(S: Floats) -> Floats:
    """The upper factor of a precision; a ``DataError`` if rounding leaves none, as weights of 1e16 do."""
    try:
        return np.asarray(cholesky(S, check_finite=False))
    except np.linalg.LinAlgError:
        raise DataError(
            f"the sources have a precision of {np.abs(S).max():.3g}, beside which the differences of some items are "
            "lost to rounding; divide all weights by a common factor, so that the largest is below 1e9"
        ) from None


class SourceEvidence:
    """The evidence around a mode ``x`` of the joint posterior, as a function of z = (log w, log a, log v).

    ``rough``: the scores are too far from normal for any expansion but the one about the mode.
    """

    def __init__(self, joint: JointPosterior, x: Floats, free: Floats):
        self.n, self.free, self.related = joint.n, free, np.ones(len(joint.others), bool)
        self.base, self.linear = np.zeros((self.n, self.n)), np.zeros(self.n)
        if joint.target is not None:
            L, r = quadratic(joint.target, joint.of_target(x))
            at = joint.target.index
            self.base[np.ix_(at, at)], self.linear[at] = L, r
        self.sources: list[Quadratic] = []
        self.sites: list[SiteSource] = []
        self.rough = False
        for k, one in enumerate(joint.others):
            L, r = quadratic(one, joint.own(x, k))
            values, vectors = eigh(L, driver="evd", check_finite=False)
            self.sources.append(Quadratic(one.index, np.maximum(values, 0.0), vectors, vectors.T @ r))

    def without(self, k: int) -> "SourceEvidence":
        """The evidence if source k is unrelated: its scale is 0, and it has only scores of its own."""
        other = copy(self)
        other.free, other.related = self.free.copy(), self.related.copy()
        other.free[1 + k], other.related[k] = 0.0, False
        return other

    def precision(self, widths: Widths) -> tuple[Floats, Floats]:
        """Precision (n, n) and linear term (n,) of theta."""
        S, q = self.base.copy(), self.linear.copy()
        S[np.arange(self.n), np.arange(self.n)] += widths.w**-2
        for k, one in enumerate(self.sources):
            add_square(S, one.items, self.part_of(widths, k))
            q[one.items] += widths.a[k] * (one.vectors @ (one.rho / (1 + one.values * widths.v[k] ** 2)))
        return S, q

    def part_of(self, widths: Widths, k: int) -> Floats:
        """(m, m): the precision that source k adds to theta."""
        one = self.sources[k]
        return _gram(one.vectors, widths.a[k] ** 2 * one.values / (1 + one.values * widths.v[k] ** 2))

    def at(self, z: Floats) -> Posterior:
        """Evidence and posterior at z.  O(n^3) for each source."""
        S, q = self.precision(Widths.of(z))
        upper = _cholesky(S)
        factor, _ = lapack.dtrtri(upper)
        m = factor @ (factor.T @ q)
        value = 0.5 * float(q @ m) - float(np.log(np.diag(upper)).sum()) + self._beside(z)
        return Posterior(value, m, factor @ factor.T, factor)

    def _beside(self, z: Floats) -> float:
        """The part of the log evidence that is not theta's: the factors of the sources and the prior of z."""
        value, v = log_prior(z, self.related)[0] - self.n * z[0], Widths.of(z).v
        for k, one in enumerate(self.sources):
            den = 1 + one.values * v[k] ** 2
            value += 0.5 * float((v[k] ** 2 * one.rho**2 / den - np.log(den)).sum())
        return float(value)

    def derivatives(self, z: Floats, here: Posterior) -> tuple[Floats, Floats, Floats]:
        """Gradient (z,) and Hessian (z, z) of the log evidence, and the slopes of the mean (z, n).

        With S_j and q_j the derivatives of precision and linear term, and Z_j = F' S_j F, the derivatives are

            E_j = q_j' m - (m' S_j m + tr Z_j) / 2,   m_j = C (q_j - S_j m),
            E_jk = q_jk' m - (m' S_jk m + tr F' S_jk F) / 2 + m_j' S m_k + tr(Z_j Z_k) / 2

        and those of each source's own factor.  O(n^3) for each source, O(n^2) for each pair of unknowns.  Z_j, large
        and needed for the Hessian only, has single precision.
        """
        widths, count, F = Widths.of(z), len(self.sources), here.factor
        grad, H = np.zeros(len(z)), np.zeros((len(z), len(z)))
        left, Z = np.zeros((len(z), self.n)), np.empty((len(z), self.n, self.n), np.float32)
        square = (np.trace(here.covariance) + here.mean @ here.mean) / widths.w**2
        grad[0], H[0, 0], left[0] = square - self.n, -2 * square, 2 / widths.w**2 * here.mean
        Z[0] = -2 / widths.w**2 * (F.T @ F)
        for k, one in enumerate(self.sources):
            at, G = np.array([1 + k, 1 + count + k]), F[one.items].T @ one.vectors  # Z = G diag(precision) G'
            mean = one.vectors.T @ here.mean[one.items]
            found = _source_slopes(one, widths.a[k], widths.v[k] ** 2, mean, (G**2).sum(axis=0) + mean**2)
            grad[at], H[np.ix_(at, at)] = found.grad, found.hessian
            left[np.ix_(at, one.items)] = (found.linear - found.precision * mean) @ one.vectors.T
            G = G.astype(np.float32)
            Z[at[0]], Z[at[1]] = _gram(G, found.precision[0]), -_gram(G, -found.precision[1])
        slope, flat = left @ F, Z.reshape(len(z), -1)
        H += slope @ slope.T + 0.5 * flat @ flat.T
        prior = log_prior(z, self.related)
        H[np.arange(len(z)), np.arange(len(z))] += prior[2]
        H = H * np.outer(self.free, self.free) - np.diag(1 - self.free)
        return (grad + prior[1]) * self.free, H, self.free[:, None] * (slope @ F.T)

    def best(self, z: Floats) -> Floats:
        """The z of the largest evidence, by Newton's method from ``z``; no step moves a logarithm by more than 1."""
        here = self.at(z)
        for _ in range(MOST_STEPS):
            grad, H, _ = self.derivatives(z, here)
            values, axes = np.linalg.eigh(-H)
            step = (axes / np.maximum(np.abs(values), LEAST_CURVATURE)) @ (axes.T @ grad)
            step /= max(1.0, float(np.abs(step).max()))
            if np.abs(step).max() <= STEP:
                return np.asarray(z + step)
            while np.abs(step).max() > STEP:
                there = self.at(z + step)
                if there.value > here.value:
                    break
                step = step / 2
            else:
                return z
            z, here = z + step, there
        return z


class SourceSlopes(NamedTuple):
    """Derivatives in (log a, log v) of a source's part of the evidence: ``grad`` (2,), ``hessian`` (2, 2); of the
    diagonals of its precision and linear term in its eigenvectors: ``precision`` and ``linear`` (2, m).
    """

    grad: Floats
    hessian: Floats
    precision: Floats
    linear: Floats


def _source_slopes(one: Quadratic, a: float, x: float, mean: Floats, square: Floats) -> SourceSlopes:
    """``x`` = v^2; ``mean`` (m,) and ``square`` (m,): E t and E t^2 of theta in the eigenvectors, t = V' theta."""
    curve, rho, den = one.values, one.rho, 1 + one.values * x
    once, twice = curve / den, (curve / den) ** 2
    bend = 4 * x * twice * (2 * x * once - 1)
    precision = a * a * np.array([2 * once, -2 * x * twice])
    second = a * a * np.array([[4 * once, -4 * x * twice], [-4 * x * twice, bend]])
    turn = -2 * x * rho * once / den
    linear = a * np.array([rho / den, turn])
    second_linear = a * np.array([[rho / den, turn], [turn, 4 * x * rho * once / den * (2 * x * once - 1)]])
    own = x * (rho / den) ** 2
    grad = linear @ mean - 0.5 * precision @ square + [0.0, (own - x * once).sum()]
    hessian = second_linear @ mean - 0.5 * second @ square
    hessian[1, 1] += (2 * own * (1 - 2 * x * once) - 2 * x * once / den).sum()
    return SourceSlopes(grad, hessian, precision, linear)


def _gram(vectors: Any, weight: Floats) -> Any:
    """V diag(weight) V' for weights that are not negative, in the precision of V."""
    B = vectors * np.sqrt(weight).astype(vectors.dtype)
    return B @ B.T


def log_prior(z: Floats, related: Any = slice(None)) -> tuple[float, Floats, Floats]:
    """`log_prior_density` of z, its gradient, and the diagonal of its Hessian."""
    k = len(z) // 2
    square = _squares_over_prior(z)
    slope, bend = np.append(2.0, np.ones(k)) - square, np.full(k, -1 / SCALE_PRIOR**2)
    return (
        float(log_prior_density(z, related)),
        np.concatenate([slope[:1], bend * z[1 : 1 + k], slope[1:]]),
        np.concatenate([-2 * square[:1], bend, -2 * square[1:]]),
    )


def log_prior_density(z: Floats, related: Any = slice(None)) -> Floats:
    """Log prior density of z (..., z), up to a constant.

    ``related`` (sources,): which sources have a scale; unless said, all.
    """
    k = z.shape[-1] // 2
    a = z[..., 1 : 1 + k][..., related]
    wide = 2 * z[..., 0] + z[..., 1 + k :].sum(axis=-1)
    return np.asarray(wide - 0.5 * _squares_over_prior(z).sum(axis=-1) - 0.5 * (a**2).sum(axis=-1) / SCALE_PRIOR**2)


def _squares_over_prior(z: Floats) -> Floats:
    """(..., 1 + sources): the squares of w and v in units of their priors."""
    k = z.shape[-1] // 2
    wide = np.concatenate([z[..., :1], z[..., 1 + k :]], axis=-1)
    return np.asarray(np.exp(2 * wide) / np.append(SPREAD_PRIOR, np.full(k, WIDTH_PRIOR)) ** 2)
