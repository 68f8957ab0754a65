"""Signed roots of the posterior: how sure the order of two items is, near a perfect record too.

A standard error comes from the curvature at the mode.  An item that wins 200 of 200 has its mode where votes hardly
bend the posterior, so that its score seems less certain than after 199 of 200.  The signed root compares heights:
r = sign(d) sqrt(2 (f(0) - f(d))), where f(0) is the least negative log posterior with both scores equal, and f(d) the
least of all; P(above) is about Phi(r) (Barndorff-Nielsen and Cox, Inference and Asymptotics, 1994).  Another win adds
log 2 to f(0), and less than that to f(d) if the item is above: r never falls.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from placet.aggregate.likelihood.information import inverse_of
from placet.data.arrays import Floats, Ints

MOST_STEPS, MOST_HALVINGS = 100, 30
STEP_TOLERANCE = 1e-5

FAR = 2.4
"""Difference of scores beyond which another win can make the studentized difference smaller: 11 wins in 12."""

MOST_FAR_PAIRS = 500
"""Largest number of pairs whose roots are computed for one table of votes."""

MOST_PERFECT, FARTHEST_ERRORS = 50, 64.0
"""Largest number of perfect records whose intervals are profiled, and how far these may reach."""

REACH_ACCURACY = 1e-3
"""Accuracy of the ends of an interval, in standard errors."""

CONTINUITY = 0.5
"""Votes by which the winner's count is lowered in tests, as counts are whole numbers."""


class Heights(Protocol):
    """A negative log posterior of scores (n_items,) and what stands beside them, divided by ``scale``."""

    @property
    def scale(self) -> float: ...
    @property
    def n_items(self) -> int: ...
    @property
    def most_pairs(self) -> int:
        """How many pairs may be looked at for one table."""

    def value(self, x: Floats) -> float: ...
    def slopes(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradient, and a Hessian that is positive definite."""

    def allowed(self, x: Floats) -> bool:
        """Whether x is in the domain."""

    def perfect(self) -> NDArray[np.bool_]:
        """(n_items,): items that were compared, and won all or lost all."""


@dataclass(frozen=True, eq=False)
class SignedRoots:
    """Signed roots of differences of the items numbered ``index`` in the posterior ``p``, whose minimum is ``x``.

    ``covariance`` (n_items, n_items) of the scores, if it does not come from the curvature: where it is wider, roots
    are smaller by the ratio of the errors (Chandler and Bate, Inference for clustered data using the independence
    loglikelihood, Biometrika 2007).
    """

    p: Heights
    x: Floats
    index: Ints
    covariance: Floats | None = None

    def root(self, i: int, j: int) -> float:
        """The signed root of score i - score j, positive if i is above.  O(steps n^3)."""
        a, b = (int(self.index[k]) for k in (i, j))
        if a == b or self.x[a] == self.x[b]:
            return 0.0
        return math.copysign(self._root(a, b, self.x), self.x[a] - self.x[b])

    def separated(self, found: NDArray[np.bool_], critical: float) -> NDArray[np.bool_]:
        """``found`` (n, n) and the pairs of distant scores whose root exceeds ``critical``, row above column.

        Here roots are those of counts with half a vote less for the item above: four wins of four are no proof.
        """
        theta = self.x[self.index]
        far = np.argwhere((theta[:, None] - theta > FAR) & ~found)
        out = found.copy()
        for i, j in far.tolist() if len(far) <= self.p.most_pairs else []:
            a, b = int(self.index[i]), int(self.index[j])
            start = self.x.copy()
            start[[a, b]] = start[[a, b]].mean()
            if self._fall(start, self.x) > critical:  # the root is less
                lowered = minimum(self.p, self.x, a, b, equal=False)
                out[i, j] = lowered[a] > lowered[b] and self._root(a, b, lowered, CONTINUITY) > critical
        return out

    def errors_below_and_above(self, z: float) -> tuple[Floats, Floats]:
        """How many standard errors (n,) an interval of each score reaches down and up, ``z`` if it is normal.

        A score that nobody has beaten, or that beat nobody, may be much further out than its mode and hardly further
        in.  Its interval holds the values t with sqrt(2 (f(t) - f)) <= z, f(t) the least with this score at t above the
        mean; relative to the error of the curvature, so that an error which includes more scales it.  O(steps n^3).
        """
        low, high = np.full((2, len(self.index)), z)
        n = self.p.n_items
        for k in np.flatnonzero(self.p.perfect()[self.index])[:MOST_PERFECT].tolist():
            contrast = np.zeros(len(self.x))
            contrast[:n] = -1.0 / n
            contrast[self.index[k]] += 1.0
            error = math.sqrt(float(contrast @ self._curvature_covariance @ contrast))
            least = max(
                1.0, self._over_used(contrast)
            )  # an error that is less than that of the curvature counts as that
            low[k], high[k] = (least * self._reach(contrast, side * error, z) for side in (-1.0, 1.0))
        return low, high

    @cached_property
    def _curvature_covariance(self) -> Floats:
        """The covariance of all unknowns by the curvature."""
        return inverse_of(self.p.slopes(self.x)[1]) / self.p.scale

    def _over_used(self, contrast: Floats) -> float:
        """The error of ``contrast`` by the curvature over that by ``covariance``."""
        if self.covariance is None:
            return 1.0
        scores = contrast[: self.p.n_items]
        used = float(scores @ self.covariance @ scores)
        return math.sqrt(float(contrast @ self._curvature_covariance @ contrast) / used) if used > 0 else 1.0

    def _reach(self, contrast: Floats, error: float, z: float) -> float:
        """The number of errors, along ``contrast`` in the direction of ``error``, at which the root is ``z``."""
        middle, there = float(contrast @ self.x), self.x
        near, far, errors = 0.0, FARTHEST_ERRORS * z, z
        for _ in range(MOST_STEPS):
            there = minimum_along(self.p, there, contrast, middle + errors * error)
            root = self._fall(there, self.x)
            near, far = (errors, far) if root < z else (near, errors)
            rise = float(contrast @ self.p.slopes(there)[0]) / float(contrast @ contrast)  # of the height, in contrast
            step = (z - root) * root / (self.p.scale * rise * error) if rise * error > 0 else math.inf
            if abs(step) <= REACH_ACCURACY or far - near <= REACH_ACCURACY:
                break
            errors = errors + step if near < errors + step < far else min(2 * errors, (near + far) / 2)
        return errors

    def only(self, keep: NDArray[np.bool_]) -> "SignedRoots":
        """The roots of the items of a mask."""
        return replace(self, index=self.index[keep])

    def _root(self, a: int, b: int, best: Floats, less: float = 0.0) -> float:
        gap = less / self.p.scale * float(best[a] - best[b])
        contrast = np.zeros(len(self.x))
        contrast[[a, b]] = 1.0, -1.0
        share = min(1.0, self._over_used(contrast))
        return share * self._fall(minimum(self.p, self.x, a, b, equal=True), best, gap)

    def _fall(self, x: Floats, best: Floats, more: float = 0.0) -> float:
        fall = self.p.value(x) - self.p.value(best) - more
        return math.sqrt(2 * self.p.scale * max(fall, 0.0))


def minimum(p: Heights, x: Floats, i: int, j: int, *, equal: bool) -> Floats:
    """The minimum with equal scores i and j, or else with CONTINUITY of a vote less for i and more for j.

    By Newton's method from the minimum x of ``p``.
    """
    contrast = np.zeros(len(x))
    contrast[[i, j]] = 1.0, -1.0
    if not equal:
        return _newton(p, x.copy(), contrast, CONTINUITY / p.scale * contrast, fixed=False)
    x = x.copy()
    x[[i, j]] = x[[i, j]].mean()
    return _newton(p, x, contrast, np.zeros(len(x)), fixed=True)


def minimum_along(p: Heights, x: Floats, contrast: Floats, value_there: float) -> Floats:
    """The minimum among the points with ``contrast @ x`` = ``value_there``, from the minimum x of ``p``."""
    along = np.linalg.solve(p.slopes(x)[1], contrast)
    start = x + along * ((value_there - float(contrast @ x)) / float(contrast @ along))
    return _newton(p, start, contrast, np.zeros(len(x)), fixed=True)


def _newton(p: Heights, x: Floats, contrast: Floats, tilt: Floats, *, fixed: bool) -> Floats:
    """Newton's method with ``tilt`` added to the gradient; if ``fixed``, each step minimizes the quadratic
    approximation among the points with the same ``contrast @ x``.
    """
    here = p.value(x) + float(tilt @ x)
    for _ in range(MOST_STEPS):
        gradient, H = p.slopes(x)
        factor, failed = lapack.dpotrf(H, lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the Hessian is not positive definite")
        step, along = lapack.dpotrs(factor, np.column_stack([gradient + tilt, contrast]), lower=1)[0].T
        if fixed:
            step = step - along * (contrast @ step) / (contrast @ along)
        if np.abs(step).max() <= STEP_TOLERANCE:
            break
        for _ in range(MOST_HALVINGS):
            new = x - step
            if p.allowed(new):
                there = p.value(new) + float(tilt @ new)
                if there <= here:
                    x, here = new, there
                    break
            step = step / 2
        else:
            break
    return x
