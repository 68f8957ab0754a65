"""Models with shared and per-rater parameters: fitting them, and learning the widths of their priors.

Given the N shared parameters (scores, tie parameter, controls), the raters are independent, so the Hessian is an
arrowhead matrix [A, B; B', C], where C is block diagonal with one small block per rater.  A step costs O(data + N^3).
The prior widths are learned under Laplace's approximation, at the mode of the density of log w given the data; the
density of w itself (`placet.aggregate.likelihood.prior`) keeps w away from 0, where raters with few votes would seem
exactly alike, and is FIRST_WIDTH for a kind of rater parameter that the data say nothing about.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from placet import optim
from placet.aggregate.likelihood.prior import EXTRA_PRIOR, LEARNING_TOLERANCE, NARROWEST, WIDEST_PRIOR, freedom
from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.engines.memory import refuse_square

FIRST_WIDTH = 0.5
MOST_ROUNDS = 60
ROUND_ACCURACY = 0.01
"""Widths are learned until none changes by more than this fraction in a round."""

LEAST_SHARPNESS = 0.1
"""Smallest mean sharpness that scores are rescaled by: below it, possibly no rater can tell items apart."""

LONGEST_STEP = 1.0
"""Longest step in the log of a width."""

MOST_ERRORS = 2.0
"""Longest step from the joint mode to where raters are averaged, in standard errors; a first order holds no further."""

LOWEST = 1e-3
"""Smallest width: below it, raters are considered identical."""


@dataclass(frozen=True)
class Arrow:
    """A factored Hessian [A, B; B', C]: A (N, N), B sparse (N, raters * r), C with one (r, r) block per rater."""

    inverse_blocks: Any  # sparse C^-1
    back: Any  # sparse B C^-1
    schur: Any  # Cholesky factor of A - B C^-1 B'

    @classmethod
    def factored(cls, H: Any, n_shared: int, r: int) -> "Arrow":
        """Factor H; raises ``LinAlgError`` if it is not positive definite."""
        refuse_square(n_shared, "the information", "take fewer items")
        A, B = H[:n_shared, :n_shared].toarray(), H[:n_shared, n_shared:].tocsr()
        blocks = H[n_shared:, n_shared:].tobsr(blocksize=(r, r))
        blocks.sort_indices()
        if len(blocks.data) and np.linalg.eigvalsh(blocks.data).min() <= 0:
            raise np.linalg.LinAlgError("a rater's block is not positive definite")
        inverse = sparse.bsr_matrix((np.linalg.inv(blocks.data), blocks.indices, blocks.indptr), shape=blocks.shape)
        back = (B @ inverse).tocsr()
        return cls(inverse, back, cho_factor(A - (back @ B.T).toarray(), lower=True))

    def solve(self, g: Floats) -> Floats:
        """H^-1 g."""
        n = self.back.shape[0]
        shared = cho_solve(self.schur, g[:n] - self.back @ g[n:])
        return np.concatenate([shared, self.inverse_blocks @ g[n:] - self.back.T @ shared])

    @cached_property
    def covariance(self) -> Floats:
        """The (N, N) block of H^-1 that belongs to the shared parameters."""
        n = self.back.shape[0]
        return np.asarray(cho_solve(self.schur, np.eye(n)))

    def variances(self) -> Floats:
        """The diagonal (raters * r,) of H^-1 for the raters' parameters."""
        through = (self.back.T @ self.covariance) * self.back.T.toarray() if self.back.shape[1] else np.zeros((0, 1))
        return np.asarray(self.inverse_blocks.diagonal() + through.sum(axis=1))

    def with_shared(self, k: int) -> Floats:
        """Covariances (raters * r,) of the raters' parameters with shared parameter ``k``."""
        return np.asarray(-(self.back.T @ self.covariance[k]))


class RaterPosterior:
    """Negative log posterior in x = (``n`` scores, other shared parameters, ``kinds`` of each of ``m`` raters).

    Subclasses implement ``value``, ``gradient`` and ``arrow`` at x.  The raters' parameters are ordered by rater, then
    by kind; ``precision`` (parameters,) holds the precisions of the normal priors, the diagonal of ``prior_matrix``.
    """

    def __init__(self, n: int, n_shared: int, m: int, kinds: tuple[str, ...]) -> None:
        self.n, self.n_shared, self.m, self.kinds, self.r = n, n_shared, m, kinds, len(kinds)
        self.factor, self.before = 1.0, np.zeros(n_shared + m * self.r)
        self.precision = np.zeros(n_shared + m * self.r)
        self.precision[n:n_shared] = 1 / EXTRA_PRIOR**2
        self.prior_matrix: Any = sparse.diags(self.precision)

    def value(self, x: Floats) -> float:
        """Negative log posterior up to a constant."""
        raise NotImplementedError

    def gradient(self, x: Floats) -> Floats:
        """Gradient of the value."""
        raise NotImplementedError

    def arrow(self, x: Floats) -> Arrow:
        """The factored Hessian, or a positive definite approximation away from the optimum."""
        raise NotImplementedError

    def set_widths(self, prior: float, widths: Mapping[str, float]) -> None:
        """Set the prior standard deviations of the scores and of each kind of rater parameter."""
        self.precision[: self.n] = 1 / prior**2
        by_kind = [1 / max(widths[kind], LOWEST) ** 2 for kind in self.kinds]
        self.precision[self.n_shared :] = np.tile(by_kind, self.m)
        self.prior_matrix = sparse.diags(self.precision)

    def scores_width(self, x: Floats, arrow: Arrow, width: float) -> float:
        """The next width of the scores' prior."""
        theta, C = x[: self.n], arrow.covariance[: self.n, : self.n]
        square = float(theta @ theta) + float(np.trace(C))
        growth = (4 * float(theta @ C @ theta) + 2 * float((C * C).sum())) / (width**2 * max(square, 1e-300))
        return likelier_width(square, growth, self.n, width, 2.0)

    def normalize(self, x: Floats) -> Floats:
        """Rescale x to a mean sharpness of 1, multiplying scores (and their widths) by ``factor``.

        The likelihood does not change: scores c theta with sharpness a / c give the same differences d.  With fewer
        raters than items, a width of sharpness learned on any other scale would let the scores shrink toward zero.
        """
        self.factor, self.before = 1.0, x
        if "sharpness" not in self.kinds:
            return x
        x, column = x.copy(), self.n_shared + self.kinds.index("sharpness")
        sharpness = 1 + x[column :: self.r]
        self.factor = max(float(sharpness.mean()), LEAST_SHARPNESS)
        x[: self.n] *= self.factor
        x[column :: self.r] = sharpness / self.factor - 1
        return x

    def final_errors(self, arrow: Arrow) -> tuple[Floats, Floats]:
        """Posterior covariance (shared, shared) and variances (raters, kinds) of the parameters after `normalize`.

        Uses the delta method: the factor is the mean sharpness, and its uncertainty scales all scores together.
        """
        unit = np.where(np.arange(self.n_shared) < self.n, self.factor, 1.0)
        C, variances = unit[:, None] * arrow.covariance * unit, arrow.variances().reshape(self.m, self.r)
        if "sharpness" not in self.kinds:
            return C, variances
        k = self.kinds.index("sharpness")
        variances[:, k] /= self.factor**2
        if self.factor == LEAST_SHARPNESS:
            return C, variances
        mean = np.zeros(self.m * self.r)
        mean[k :: self.r] = 1 / self.m
        through = arrow.back @ mean
        with_shared = -(arrow.covariance @ through)
        with_raters = arrow.inverse_blocks @ mean - arrow.back.T @ with_shared
        own = float(mean @ with_raters)
        scores = np.where(np.arange(self.n_shared) < self.n, self.before[: self.n_shared], 0.0)
        moved = unit * with_shared
        C = C + np.outer(scores, moved) + np.outer(moved, scores) + own * np.outer(scores, scores)
        sharpness = (1 + self.before[self.n_shared + k :: self.r]) / self.factor
        variances[:, k] += (sharpness**2 * own - 2 * sharpness * with_raters[k :: self.r]) / self.factor**2
        return C, np.maximum(variances, 0.0)

    def more_widths(self, x: Floats, arrow: Arrow, widths: Mapping[str, float]) -> dict[str, float]:
        """The next widths of parameters that are neither scores nor rater parameters."""
        return {}

    def own(self, x: Floats) -> dict[str, Floats]:
        """The raters' deviations (raters,) by kind."""
        return dict(zip(self.kinds, x[self.n_shared :].reshape(self.m, self.r).T))

    def fit(self, x: Floats, max_iter: int, tol: float) -> tuple[optim.Fit, Arrow]:
        """Minimize by Newton's method; returns the fit and the Hessian there."""
        last: tuple[Floats, Arrow] | None = None

        def solve(x: Floats, gradient: Floats) -> Floats:
            nonlocal last
            last = x, self.arrow(x)
            return last[1].solve(gradient)

        fun = lambda x: (self.value(x), self.gradient(x))  # noqa: E731
        found = optim.newton(fun, solve, x, step_tol=np.sqrt(tol), max_iter=max_iter)
        return found, self.arrow(found.x)

    def with_raters_averaged(self, x: Floats, arrow: Arrow) -> Floats:
        """From the joint mode x to where the gradient, averaged over what the votes leave open about raters, is zero.

        At the joint mode, scores fit raters that fit the scores, so that both are too far out.  The mean of the
        gradient is taken over raters one standard error to either side (given the scores, raters are independent, so
        all move at once), and a Newton step makes it zero: to first order the mode of the scores with raters
        integrated out.  O(r) gradients.
        """
        if self.n_shared == len(x):
            return x
        root = np.linalg.cholesky(arrow.inverse_blocks.data)
        errors = [np.append(np.zeros(self.n_shared), root[:, :, k].ravel()) for k in range(self.r)]

        sides = sum(self.gradient(x + error) + self.gradient(x - error) for error in errors) / 2
        step = arrow.solve(sides - self.r * self.gradient(x))
        if "sharpness" in self.kinds:  # along (scores, -sharpness) the likelihood is level: the mean sharpness stays
            column = slice(self.n_shared + self.kinds.index("sharpness"), None, self.r)
            moved = float(step[column].mean()) / max(float(1 + x[column].mean()), LEAST_SHARPNESS)
            step[: self.n] += moved * x[: self.n]
            step[column] -= moved * (1 + x[column])
        far = np.abs(step[: self.n_shared]) / np.sqrt(np.diag(arrow.covariance))
        return x - step if far.max(initial=0.0) <= MOST_ERRORS else x

    def fit_normalized(self, x: Floats, max_iter: int, tol: float) -> tuple[optim.Fit, Arrow]:
        """The fit with raters averaged, rescaled to a mean sharpness of 1, and the Hessian before rescaling."""
        found, arrow = self.fit(x, max_iter, tol)
        averaged = self.with_raters_averaged(found.x, arrow)
        return replace(found, x=self.normalize(averaged)), self.arrow(averaged)


class RaterFit(NamedTuple):
    """The fit, rescaled to a mean sharpness of 1, its Hessian before that, and the widths of the priors."""

    fit: optim.Fit
    arrow: Arrow
    prior: float
    widths: dict[str, float]


def fit_raters(
    v: RaterPosterior,
    x: Floats,
    prior: float | None,
    max_iter: int,
    tol: float,
    more: Mapping[str, float] | None = None,
    *,
    fixed: Sequence[str] = (),
) -> RaterFit:
    """Learn the widths from the start ``x`` (see `learn_widths`), then fit at these."""
    width, widths, x = learn_widths(v, x, prior, max_iter, more, fixed=fixed)
    v.set_widths(width, widths)
    fit, arrow = v.fit_normalized(x, max_iter, tol)
    return RaterFit(fit, arrow, width * v.factor, widths)


def check_rater_options(prior: Any, stderr: Any) -> None:
    """Raise ``ValueError`` for options that a fit with raters does not have."""
    if prior is None or stderr == "sandwich":
        raise ValueError('agents= needs a prior, such as prior="learn", and has no stderr="sandwich"')


def refuse_no_evidence(weight: float) -> None:
    """Raise ``DataError`` if the votes or ballots of all agents together weigh nothing."""
    if not weight > 0:
        raise DataError("nothing is known about agents: there are no votes or ballots, or all weigh 0")


def learn_widths(
    v: RaterPosterior,
    x: Floats,
    prior: float | None,
    max_iter: int,
    more: Mapping[str, float] | None = None,
    *,
    fixed: Sequence[str] = (),
) -> tuple[float, dict[str, float], Floats]:
    """Learn the widths of the scores' prior (unless given) and of each kind; also returns parameters close to the fit.

    ``more``: initial values of further widths (`RaterPosterior.more_widths`); those in ``fixed`` are not updated.
    Newton steps in log w, with sharpness normalized to a mean of 1.
    """
    theta_width = float(np.std(x[: v.n])) or 1.0 if prior is None else prior
    widths = dict.fromkeys(v.kinds, FIRST_WIDTH) | dict(more or {})
    for _ in range(MOST_ROUNDS):
        v.set_widths(theta_width, widths)
        fit, arrow = v.fit(x, max_iter, LEARNING_TOLERANCE)
        x = fit.x
        variances, averaged = arrow.variances().reshape(v.m, v.r), v.with_raters_averaged(x, arrow)
        own = v.normalize(averaged)[v.n_shared :].reshape(v.m, v.r)
        before = [theta_width, *widths.values()]
        for k, kind in enumerate(v.kinds):
            u, spread, w = own[:, k], variances[:, k], widths[kind]
            square = float(u @ u) + float(spread.sum())
            growth = (4 * float(u * u @ spread) + 2 * float(spread @ spread)) / (w**2 * max(square, 1e-300))
            widths[kind] = likelier_width(square, growth, v.m, w, FIRST_WIDTH / math.sqrt(2))
        widths |= {name: w for name, w in v.more_widths(averaged, arrow, widths).items() if name not in fixed}
        if prior is None:
            theta_width = v.scores_width(averaged, arrow, theta_width)
        change = np.abs(np.log(np.array([theta_width, *widths.values()]) / before))
        if change.max() < ROUND_ACCURACY:
            break
    return theta_width, widths, x


def likelier_width(square: float, growth: float, count: int, width: float, unit: float) -> float:
    """A Newton step in log w toward the mode, within bounds; ``square``: the expected sum of squares under the current
    width, ``growth``: the derivative of its logarithm in log w, ``unit``: of the density of w (`freedom`).
    """
    free, more = freedom(count, width, unit)
    free = max(free, 1e-3 * count)
    excess = 0.5 * math.log(max(square, 1e-300) / free) - math.log(width)
    slope = min(0.5 * (min(growth, 2.0) - more / free) - 1, -0.1)
    step = min(max(-excess / slope, -LONGEST_STEP), LONGEST_STEP)
    return min(max(width * math.exp(step), NARROWEST), WIDEST_PRIOR)


def next_width(u: Floats, variance: Floats, width: float, count: int) -> float:
    """The next width, within bounds: root of the sum of squares over the effective number of parameters."""
    determined = max(count - float(variance.sum()) / width**2, 1e-3 * count)
    return float(
        np.clip(np.sqrt(float(u @ u) / determined), LOWEST if width < NARROWEST else NARROWEST / 2, WIDEST_PRIOR)
    )
