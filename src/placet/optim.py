"""Optimizers that return a `Fit`; the main criterion is the largest gradient component per unit weight."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import Floats
from placet.data.errors import one_of

Objective = Callable[[Floats], tuple[float, Floats]]
Callback = Callable[[Floats, float], None]
Progress = Callable[[int, int], None]
"""Called as ``progress(done, total)`` after each step of something long."""

FIRST_STEPS = (1.0, 1e-2, 1e-4, 1e-6, 1e-8)
"""Maximum lengths of the first L-BFGS step, tried in turn until one lowers the value."""


class ConvergenceWarning(UserWarning):
    """An optimizer stopped before it converged; the message names the parameter to raise.

    >>> issubclass(ConvergenceWarning, UserWarning)
    True
    """


@dataclass(frozen=True)
class Fit:
    """Final point of an optimizer, and whether it converged.

    >>> fit = lbfgs(lambda x: (float(x @ x), 2 * x), np.ones(2))
    >>> fit.converged, round(fit.value, 6)
    (True, 0.0)
    """

    x: Floats
    value: float
    grad_norm: float
    n_iter: int
    converged: bool
    message: str


def lbfgs(
    fun: Objective,
    x0: ArrayLike,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    rel_tol: float | None = None,
    relative: bool = False,
    bounds: tuple[Floats, Floats] | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Minimize ``fun(x) -> (value, gradient)`` by L-BFGS until max abs(gradient) <= ``tol``.

    ``bounds``: lower and upper bounds of x; gradient components that point out of an active bound count as 0.

    ``relative``: ``tol`` is relative to max abs(gradient) at ``x0``.  ``rel_tol`` adds a second criterion: stop if an
    iteration lowers the value by less than this fraction of it.  The first step has length at most 1; if the line
    search fails from there, the optimizer restarts with a shorter one.

    Returns
    -------
    Fit
        The point, and whether the criterion was met.

    >>> fit = lbfgs(lambda x: (float((x - 3) @ (x - 3)), 2 * (x - 3)), np.zeros(2))
    >>> fit.x.round(6), fit.converged
    (array([3., 3.]), True)
    """
    from scipy.optimize import minimize

    start = np.array(x0, dtype=np.float64)
    unit = _size(fun(start)[1]) or 1.0 if relative else 1.0
    small_step = False
    previous = math.inf
    length = FIRST_STEPS[0]

    def near(z: Floats) -> tuple[float, Floats]:
        value, gradient = fun(start + length * z)
        return value / unit, (length / unit) * gradient

    def after(intermediate_result: Any) -> None:
        nonlocal small_step, previous
        value = float(intermediate_result.fun) * unit
        if callback is not None:
            callback(start + length * intermediate_result.x, value)
        small_step = rel_tol is not None and _small(previous, value, rel_tol)
        previous = value
        if small_step:
            raise StopIteration

    def inside(x: Floats, gradient: Floats) -> Floats:
        if bounds is None:
            return gradient
        return np.where((x <= bounds[0]) & (gradient > 0) | (x >= bounds[1]) & (gradient < 0), 0.0, gradient)

    options = {"maxiter": max_iter, "maxfun": 100 * max_iter, "ftol": 0.0, "maxcor": 20}
    for length in FIRST_STEPS:
        options["gtol"] = tol * length
        box = None if bounds is None else list(zip(*((bound - start) / length for bound in bounds)))
        result = minimize(
            near, np.zeros_like(start), jac=True, method="L-BFGS-B", bounds=box, callback=after, options=options
        )
        if result.x.any() or small_step:
            break
        if np.abs(inside(start, result.jac)).max(initial=0.0) <= tol * length:
            break
    x = start + length * result.x
    x = x if bounds is None else np.clip(x, *bounds)
    value, gradient = fun(x)
    return _fit(x, value, inside(x, gradient), int(result.nit), tol * unit, max_iter, small_step)


def newton(
    fun: Objective,
    solve: Callable[[Floats, Floats], Floats],
    x0: ArrayLike,
    *,
    tol: float = 1e-8,
    step_tol: float | None = None,
    max_iter: int = 100,
    rel_tol: float | None = None,
    relative: bool = False,
    convex: bool = False,
    callback: Callback | None = None,
) -> Fit:
    """Minimize ``fun(x) -> (value, gradient)`` by steps ``-solve(x, gradient)``; ``solve`` returns H(x)^-1 gradient.

    ``solve`` is called with x and the gradient of the most recent call of ``fun``.  Stops when max abs(gradient) <=
    ``tol`` (``relative``: relative to its value at ``x0``) or, if ``step_tol`` is given, when a step moves no unknown
    by more than that.  ``rel_tol``: as in `lbfgs`.  ``convex``: the line search uses gradients only, so ``fun`` may
    return NaN as value.

    Returns
    -------
    Fit
        The point, and whether the criterion was met.

    >>> square = lambda x: (float((x - 3) @ (x - 3)), 2 * (x - 3))
    >>> newton(square, lambda x, g: g / 2, np.zeros(2)).n_iter
    1
    """
    x = np.array(x0, dtype=np.float64)
    value, gradient = fun(x)
    unit = _size(gradient) or 1.0 if relative else 1.0
    n_iter, small_step, moved = 0, False, math.inf
    while n_iter < max_iter and not small_step:
        if step_tol is None and _size(gradient) <= tol * unit:
            break
        step = -solve(x, gradient)
        found = _slope_search(fun, x, gradient, step) if convex else _line_search(fun, x, value, gradient, step)
        if found is None:
            moved = min(moved, _size(step))  # nothing is lower, and a step that is short already is the last one
            break
        previous, before = value, x
        x, value, gradient = found
        n_iter += 1
        if callback is not None:
            callback(x, value)
        small_step = rel_tol is not None and _small(previous, value, rel_tol)
        moved = float(np.abs(x - before).max(initial=0.0))
        if step_tol is not None and moved <= step_tol:
            break
    if step_tol is None:
        return _fit(x, value, gradient, n_iter, tol * unit, max_iter, small_step)
    return fit_by_steps(x, value, gradient, n_iter, moved, step_tol)


def fit_by_steps(x: Floats, value: float, gradient: Floats, steps: int, moved: float, step_tol: float) -> Fit:
    """The `Fit` of steps whose last moved no unknown by more than ``moved``, with a warning if that is too much.

    Returns
    -------
    Fit
        ``converged`` if the last step was small enough.

    >>> fit_by_steps(np.zeros(2), 0.0, np.zeros(2), steps=7, moved=1e-9, step_tol=1e-6).converged
    True
    """
    converged = moved <= step_tol or not len(x)
    message = f"the last step moved no unknown by more than {moved:.2g}"
    if not converged:
        message = f"not converged in {steps} steps: {message}; raise max_iter"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return Fit(x, float(value), _size(gradient), steps, converged, message)


def by_products(hvp: Callable[[Floats, Floats], Floats], tol: float = 0.0) -> Callable[[Floats, Floats], Floats]:
    """A ``solve`` for `newton` by conjugate gradients on Hessian products ``hvp(x, v)``, truncated when far off.

    Solves to a relative residual of min(1/2, sqrt(norm of the gradient)), so that the last steps converge
    superlinearly, but no further than half the ``tol`` at which `newton` stops.  In a direction without positive
    curvature it stops early; the result is still a descent direction.

    Returns
    -------
    function
        Of x and the gradient: a step.

    >>> square = lambda x: (float((x - 3) @ (x - 3)), 2 * (x - 3))
    >>> newton(square, by_products(lambda x, v: 2 * v), np.zeros(2)).x.round(6)
    array([3., 3.])
    """

    def solve(x: Floats, gradient: Floats) -> Floats:
        norm = float(np.linalg.norm(gradient))
        accuracy = min(0.5, max(math.sqrt(norm), 0.5 * tol / norm))
        return cg(lambda v: hvp(x, v), gradient, rtol=accuracy, max_iter=2 * len(gradient) + 10)

    return solve


def cg(
    times: Callable[[Floats], Floats],
    b: Floats,
    *,
    rtol: float,
    diagonal: Floats | None = None,
    precondition: Callable[[Floats], Floats] | None = None,
    max_iter: int | None = None,
) -> Floats:
    """Solve A x = b by conjugate gradients to a relative residual of ``rtol``; ``times(v)`` is A v, A symmetric.

    Preconditioned by the ``diagonal`` of A, or by ``precondition(r)``, a symmetric approximation of A^-1 r.  Stops
    before a direction without positive curvature (if it is the first, returns b itself).

    Returns
    -------
    array
        x.

    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> cg(lambda v: A @ v, np.array([3.0, 4.0]), rtol=1e-9).round(6)
    array([1., 1.])
    """
    goal = rtol * float(np.linalg.norm(b))
    if precondition is None:
        precondition = lambda r: r if diagonal is None else r / diagonal  # noqa: E731
    x, residual = np.zeros_like(b), b.copy()
    scaled = precondition(residual)
    direction, square = scaled.copy(), float(residual @ scaled)
    for k in range(20 * len(b) if max_iter is None else max_iter):
        if float(np.linalg.norm(residual)) <= goal:
            break
        image = times(direction)
        bend = float(direction @ image)
        if bend <= 1e-14 * float(direction @ direction):
            return x if k else b.copy()
        x += (square / bend) * direction
        residual -= (square / bend) * image
        scaled = precondition(residual)
        previous, square = square, float(residual @ scaled)
        direction = scaled + (square / previous) * direction
    return x


def sgd(
    grad_fun: Callable[[Floats, np.random.Generator], tuple[float, Floats]],
    x0: ArrayLike,
    *,
    method: str = "adagrad",
    learning_rate: float = 0.1,
    max_iter: int = 1000,
    rng: np.random.Generator | int = 0,
    tol: float | None = None,
    rel_tol: float | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Stochastic gradient descent on ``grad_fun(x, rng) -> (value, gradient)``, which draws a batch at each step.

    ``method``: "plain" x -= rate g; "adagrad" x -= rate g / sqrt(sum g^2); "adam" with decay 0.9 and 0.999.  Without
    ``tol`` and ``rel_tol`` there is no criterion: all ``max_iter`` steps are taken and ``converged`` is False.  If
    the value or gradient becomes non-finite, returns the last x where both were finite, with a warning.

    Returns
    -------
    Fit
        The last point.

    >>> draw = lambda x, rng: (float(x @ x), 2 * x + 0.01 * rng.normal(size=2))
    >>> sgd(draw, np.ones(2), rng=np.random.default_rng(0), max_iter=200, learning_rate=0.1).x.round(1)
    array([0., 0.])
    """
    steps = {"plain": _plain, "adagrad": _adagrad, "adam": _adam}
    one_of(method, steps, "method")
    rng = np.random.default_rng(rng)
    x = np.array(x0, dtype=np.float64)
    state = np.zeros((2, *x.shape))
    value, gradient, previous = math.nan, np.zeros_like(x), math.inf
    small_step, done, last = False, 0, x
    for done in range(1, max_iter + 1):
        value, gradient = grad_fun(x, rng)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            message = f"diverged at step {done}: the value is {value}; lower learning_rate"
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
            return Fit(last, float(previous), math.inf, done, False, message)
        last = x
        small_step = rel_tol is not None and _small(previous, value, rel_tol)
        if small_step or (tol is not None and _size(gradient) <= tol):
            break
        previous = value
        x = x - learning_rate * steps[method](gradient, state, done)
        if callback is not None:
            callback(x, value)
    if tol is None and rel_tol is None:
        return Fit(x, float(value), _size(gradient), done, False, f"took {done} steps; no criterion")
    return _fit(x, value, gradient, done, 0.0 if tol is None else tol, max_iter, small_step)


def _plain(gradient: Floats, state: Floats, t: int) -> Floats:
    return gradient


def _adagrad(gradient: Floats, state: Floats, t: int) -> Floats:
    state[0] += gradient**2
    return gradient / (np.sqrt(state[0]) + 1e-10)


def _adam(gradient: Floats, state: Floats, t: int) -> Floats:
    state[0] += 0.1 * (gradient - state[0])
    state[1] += 0.001 * (gradient**2 - state[1])
    return (state[0] / (1 - 0.9**t)) / (np.sqrt(state[1] / (1 - 0.999**t)) + 1e-8)


def _size(gradient: Floats) -> float:
    """Largest absolute component of a gradient."""
    return float(np.abs(gradient).max(initial=0.0))


def _small(previous: float, value: float, rel_tol: float) -> bool:
    """Whether a step lowered the value by less than the fraction ``rel_tol`` (or raised it)."""
    return math.isfinite(previous) and previous - value < rel_tol * abs(previous)


def _slope_search(fun: Objective, x: Floats, gradient: Floats, step: Floats) -> tuple[Floats, float, Floats] | None:
    """Halve the step while it overshoots: the slope at its end exceeds -1/2 times that at its start, or is NaN."""
    slope = float(gradient @ step)
    for _ in range(60):
        new_value, new_gradient = fun(x + step)
        if float(new_gradient @ step) <= -0.5 * slope:
            return x + step, new_value, new_gradient
        step, slope = step / 2, slope / 2
    return None


def _line_search(
    fun: Objective, x: Floats, value: float, gradient: Floats, step: Floats
) -> tuple[Floats, float, Floats] | None:
    """Halve the step until the value falls by 1e-4 of the predicted drop or, within rounding, the gradient shrinks."""
    slope = float(gradient @ step)
    norm, rounding = np.abs(gradient).max(), 1e-13 * max(1.0, abs(value))
    for halving in range(40):
        length = 0.5**halving
        new_x = x + length * step
        new_value, new_gradient = fun(new_x)
        lower = new_value < value and new_value <= value + 1e-4 * length * slope
        if lower or (new_value <= value + rounding and np.abs(new_gradient).max() < norm):
            return new_x, new_value, new_gradient
    return None


def _fit(x: Floats, value: float, gradient: Floats, steps: int, tol: float, max_iter: int, small_step: bool) -> Fit:
    """The `Fit`, with a warning if not converged."""
    grad_norm = _size(gradient)
    if grad_norm <= tol:
        return Fit(x, float(value), grad_norm, steps, True, f"gradient {grad_norm:.2g} <= tol {tol:.2g}")
    if small_step:
        return Fit(x, float(value), grad_norm, steps, True, "the last step improved the value by less than rel_tol")
    if steps >= max_iter:
        message = (
            f"stopped after {steps} iterations with gradient {grad_norm:.2g} > tol {tol:.2g}; raise max_iter or tol"
        )
    else:
        message = f"no step lowers the value though the gradient is {grad_norm:.2g} > tol {tol:.2g}; raise tol"
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return Fit(x, float(value), grad_norm, steps, False, message)
