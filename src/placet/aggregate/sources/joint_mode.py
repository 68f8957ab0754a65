"""The mode of the joint posterior of all sources, at given scales and widths.

Source k has scores u_k = a_k theta + e_k of its own, e_k normal with standard deviation v_k; the target has theta
itself.  Minus the log posterior is

    |theta|^2 / (2 w^2) + f_t(theta, eta_t) + sum_k f_k(u_k, eta_k) + |u_k - a_k theta|^2 / (2 v_k^2)

Given theta the sources are independent, so the Hessian is block arrowhead: a block for each source, and the shared
unknowns (theta and the target's others), to which a source is tied only by -a_k / v_k^2 on the diagonal.  A Newton step
factors every block and the Schur complement: O(sum of m_k^3 + n^3).
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placet import optim
from placet.aggregate.likelihood.information import inverse_of
from placet.data.arrays import Floats, Ints

STEP = 1e-6
"""Newton's method stops when no unknown moves by more than this."""


class Widths(NamedTuple):
    """``w``: standard deviation of theta; ``a``, ``v`` (others,): scale and width of every source but the target."""

    w: float
    a: Floats
    v: Floats

    @classmethod
    def of(cls, z: Floats) -> "Widths":
        """From z = (log w, log a, log v)."""
        k = len(z) // 2
        return cls(float(np.exp(z[0])), np.exp(z[1 : 1 + k]), np.exp(z[1 + k :]))


class JointPosterior:
    """Minus the log posterior of x = (theta, target's others, then u_k and others of every other source)."""

    def __init__(self, target: Any, others: Sequence[Any], n: int):
        self.target, self.others, self.n = target, others, n
        self.n_shared = n + (0 if target is None else target.size - len(target.index))
        ends = np.cumsum([self.n_shared, *(one.size for one in others)])
        self.blocks = [slice(a, z) for a, z in itertools.pairwise(ends)]
        self.size = int(ends[-1])
        self.widths = Widths.of(np.zeros(1 + 2 * len(others)))
        self._known: tuple[Floats, list[tuple[Floats, Floats]]] = (np.zeros(0), [])

    def start(self) -> Floats:
        """Every source by itself near its start; theta at 0."""
        x = np.zeros(self.size)
        if self.target is not None:
            own = self.target.start()
            x[self.target.index] = own[: len(self.target.index)]
            x[self.n : self.n_shared] = own[len(self.target.index) :]
        for one, block in zip(self.others, self.blocks):
            x[block] = one.start()
        return x

    def own(self, x: Floats, k: int) -> Floats:
        """The unknowns of source k among the others."""
        return x[self.blocks[k]]

    def of_target(self, x: Floats) -> Floats:
        """The target's scores and others."""
        return np.append(x[self.target.index], x[self.n : self.n_shared])

    def _places(self) -> Any:
        """Numbers in x of the target's unknowns."""
        return np.append(self.target.index, np.arange(self.n, self.n_shared))

    def derivatives(self, x: Floats) -> list[tuple[Floats, Floats]]:
        """Gradient and Hessian of every likelihood, the target's last; those of the latest x are kept."""
        if not np.array_equal(self._known[0], x):
            found = [one.derivatives(self.own(x, k)) for k, one in enumerate(self.others)]
            if self.target is not None:
                found.append(self.target.derivatives(self.of_target(x)))
            self._known = (x.copy(), found)
        return self._known[1]

    def _allows(self, x: Floats) -> bool:
        """Whether all likelihoods have a value at x."""
        own = [(one, self.own(x, k)) for k, one in enumerate(self.others)]
        own += [] if self.target is None else [(self.target, self.of_target(x))]
        return all(one.allows(part) for one, part in own if hasattr(one, "allows"))

    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        if not self._allows(x):
            return np.inf, np.zeros(self.size)
        w, a, v = self.widths
        theta, grad, slopes = x[: self.n], np.zeros(self.size), self.derivatives(x)
        value = 0.5 * float(theta @ theta) / w**2
        grad[: self.n] = theta / w**2
        if self.target is not None:
            value += self.target.value(self.of_target(x))
            grad[self._places()] += slopes[-1][0]
        for k, (one, block) in enumerate(zip(self.others, self.blocks)):
            own, m = x[block], len(one.index)
            e = own[:m] - a[k] * theta[one.index]
            value += one.value(own) + 0.5 * float(e @ e) / v[k] ** 2
            grad[block] = slopes[k][0]
            grad[block][:m] += e / v[k] ** 2
            grad[one.index] -= a[k] * e / v[k] ** 2
        return value, grad

    def solve(self, x: Floats, gradient: Floats) -> Floats:
        """H(x)^-1 times the gradient.  Where that does not point upward, which scores of tables with little in common
        may bring about, tables take their expected Hessians for this step.
        """
        tables = [(one, one.precision) for one in (self.target, *self.others) if hasattr(one, "precision")]
        try:
            step = self._step(x, gradient)
            if not tables or gradient @ step > 0:
                return step
        except np.linalg.LinAlgError:
            if not tables:
                raise
        self._known = (np.zeros(0), [])
        for one, _ in tables:
            one.precision = 0.0
        step = self._step(x, gradient)
        self._known = (np.zeros(0), [])
        for one, precision in tables:
            one.precision = precision
        return step

    def _step(self, x: Floats, gradient: Floats) -> Floats:
        (w, a, v), slopes = self.widths, self.derivatives(x)
        S = np.zeros((self.n_shared, self.n_shared))
        S[np.arange(self.n), np.arange(self.n)] = 1 / w**2
        if self.target is not None:
            at = self._places()
            add_square(S, at, slopes[-1][1])
        right, inverses = gradient[: self.n_shared].copy(), []
        for k, (one, block) in enumerate(zip(self.others, self.blocks)):
            m, tied = len(one.index), a[k] / v[k] ** 2
            H = slopes[k][1].copy()
            H[np.arange(m), np.arange(m)] += 1 / v[k] ** 2
            inverse = inverse_of(H)
            added = -(tied**2) * inverse[:m, :m]
            added[np.arange(m), np.arange(m)] += a[k] * tied
            add_square(S, one.index, added)
            right[one.index] += tied * (inverse[:m] @ gradient[block])
            inverses.append((inverse, tied))
        step = np.empty(self.size)
        step[: self.n_shared] = np.linalg.solve(S, right)
        for (inverse, tied), one, block in zip(inverses, self.others, self.blocks):
            own = gradient[block].copy()
            own[: len(one.index)] += tied * step[one.index]
            step[block] = inverse @ own
        return step

    def mode(self, x: Floats, widths: Widths, max_iter: int) -> optim.Fit:
        """The most probable unknowns at these scales and widths, by Newton's method from ``x``."""
        self.widths, self._known = widths, (np.zeros(0), [])  # tables learn between modes
        for one, width in zip((self.target, *self.others), (widths.w, *widths.v.tolist())):
            if hasattr(one, "precision"):  # with which a table's Hessian is to be positive definite
                one.precision = width**-2
        return optim.newton(self.value_and_gradient, self.solve, x, step_tol=STEP, max_iter=max_iter)


def add_square(S: Floats, items: Ints, added: Floats) -> None:
    """Add (m, m) to the rows and columns ``items`` of S; without a copy if they are all of them, in order."""
    if len(items) == len(S) and (items == np.arange(len(S))).all():
        S += added
    else:
        S[np.ix_(items, items)] += added
