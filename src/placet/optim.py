"""Optimisers: functions that return a `Fit`.  One criterion: the largest component of the gradient per unit weight."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import Floats
from placet.data.errors import one_of

Objective = Callable[[Floats], tuple[float, Floats]]
Callback = Callable[[Floats, float], None]

FIRST_STEPS = (1.0, 1e-2, 1e-4, 1e-6, 1e-8)
"""Longest first steps that L-BFGS tries, one after the other, until one of them lowers the value."""


class ConvergenceWarning(UserWarning):
    """An optimiser stopped before its criterion held; the message names what to raise."""


@dataclass(frozen=True)
class Fit:
    """Where an optimiser stopped, and whether its criterion held there."""

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
    callback: Callback | None = None,
) -> Fit:
    """Minimise ``fun(x) -> (value, gradient)`` by L-BFGS until max abs(gradient) <= ``tol``.

    ``rel_tol`` adds a second way to stop: an iteration that lowers the value by less than ``rel_tol`` of itself.  The
    first step has length 1 at most; where that leads to values from which no line search comes back, it starts again
    with a shorter one.

    >>> fit = lbfgs(lambda x: (float((x - 3) @ (x - 3)), 2 * (x - 3)), np.zeros(2))
    >>> fit.x.round(6), fit.converged
    (array([3., 3.]), True)
    """
    from scipy.optimize import minimize

    small_step = False
    previous = math.inf

    start = np.array(x0, dtype=np.float64)
    length = FIRST_STEPS[0]

    def near(z: Floats) -> tuple[float, Floats]:
        value, gradient = fun(start + length * z)
        return value, length * gradient

    def after(intermediate_result) -> None:
        nonlocal small_step, previous
        value = float(intermediate_result.fun)
        if callback is not None:
            callback(start + length * intermediate_result.x, value)
        small_step = _small(previous, value, rel_tol)
        previous = value
        if small_step:
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 100 * max_iter, "ftol": 0.0, "maxcor": 20}
    for length in FIRST_STEPS:
        options["gtol"] = tol * length
        result = minimize(near, np.zeros_like(start), jac=True, method="L-BFGS-B", callback=after, options=options)
        if result.x.any() or small_step:
            break
        if np.abs(result.jac).max(initial=0.0) <= tol * length:
            break
    x = start + length * result.x
    value, gradient = fun(x)
    return _fit(x, value, gradient, int(result.nit), tol, max_iter, small_step)


def newton(
    fun: Objective,
    hvp: Callable[[Floats, Floats], Floats],
    x0: ArrayLike,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    rel_tol: float | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Minimise ``fun`` by Newton steps: conjugate gradients on ``hvp(x, v)``, cut short far off; then a line search."""
    x = np.array(x0, dtype=np.float64)
    value, gradient = fun(x)
    n_iter, small_step = 0, False
    while n_iter < max_iter and not small_step and np.abs(gradient).max(initial=0.0) > tol:
        step = _newton_step(partial(hvp, x), gradient)
        found = _line_search(fun, x, value, gradient, step)
        if found is None:
            break
        previous = value
        x, value, gradient = found
        n_iter += 1
        small_step = _small(previous, value, rel_tol)
        if callback is not None:
            callback(x, value)
    return _fit(x, value, gradient, n_iter, tol, max_iter, small_step)


def sgd(
    grad_fun: Callable[[Floats, np.random.Generator], tuple[float, Floats]],
    x0: ArrayLike,
    *,
    method: str = "adagrad",
    lr: float = 0.1,
    n_iter: int = 1000,
    rng: np.random.Generator | int = 0,
    tol: float | None = None,
    rel_tol: float | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Follow ``grad_fun(x, rng) -> (value, gradient)``, from a batch that ``rng`` draws, for ``n_iter`` steps.

    ``method``: "plain" x -= lr g; "adagrad" x -= lr g / sqrt(sum g^2); "adam" with decay 0.9 and 0.999.  Without
    ``tol`` and
    ``rel_tol`` there is no criterion: all steps are taken and ``converged`` is False.
    """
    steps = {"plain": _plain, "adagrad": _adagrad, "adam": _adam}
    one_of(method, steps, "method")
    rng = np.random.default_rng(rng)
    x = np.array(x0, dtype=np.float64)
    state = np.zeros((2, *x.shape))
    value, gradient, previous = math.nan, np.zeros_like(x), math.inf
    small_step, done = False, 0
    for done in range(1, n_iter + 1):
        value, gradient = grad_fun(x, rng)
        small_step = _small(previous, value, rel_tol)
        if small_step or (tol is not None and np.abs(gradient).max(initial=0.0) <= tol):
            break
        previous = value
        x = x - lr * steps[method](gradient, state, done)
        if callback is not None:
            callback(x, value)
    if tol is None and rel_tol is None:
        return Fit(
            x, float(value), float(np.abs(gradient).max(initial=0.0)), done, False, f"took {done} steps; no criterion"
        )
    return _fit(x, value, gradient, done, 0.0 if tol is None else tol, n_iter, small_step)


def _plain(gradient: Floats, state: Floats, t: int) -> Floats:
    return gradient


def _adagrad(gradient: Floats, state: Floats, t: int) -> Floats:
    state[0] += gradient**2
    return gradient / (np.sqrt(state[0]) + 1e-10)


def _adam(gradient: Floats, state: Floats, t: int) -> Floats:
    state[0] += 0.1 * (gradient - state[0])
    state[1] += 0.001 * (gradient**2 - state[1])
    return (state[0] / (1 - 0.9**t)) / (np.sqrt(state[1] / (1 - 0.999**t)) + 1e-8)


def _small(previous: float, value: float, rel_tol: float | None) -> bool:
    """Whether a step lowered the value by less than ``rel_tol`` of it (a rise counts as no improvement)."""
    return rel_tol is not None and math.isfinite(previous) and previous - value < rel_tol * abs(previous)


def _newton_step(hvp: Callable[[Floats], Floats], gradient: Floats) -> Floats:
    """Solve H step = -gradient by conjugate gradients, to a relative residual of min(1/2, sqrt|gradient|)."""
    goal = min(0.5, math.sqrt(np.linalg.norm(gradient))) * float(np.linalg.norm(gradient))
    step, residual = np.zeros_like(gradient), -gradient
    direction, square = residual.copy(), float(residual @ residual)
    for k in range(2 * len(gradient) + 10):
        image = hvp(direction)
        bend = float(direction @ image)
        if bend <= 1e-14 * float(
            direction @ direction
        ):  # flat or not convex along it: what has been found is still a descent
            return step if k else -gradient
        length = square / bend
        step = step + length * direction
        residual = residual - length * image
        new_square = float(residual @ residual)
        if math.sqrt(new_square) <= goal:
            break
        direction = residual + (new_square / square) * direction
        square = new_square
    return step


def _line_search(
    fun: Objective, x: Floats, value: float, gradient: Floats, step: Floats
) -> tuple[Floats, float, Floats] | None:
    """Halve the step until the value falls by 1e-4 of what the slope promises; near the last digits a smaller
    gradient will do.
    """
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


def _fit(x: Floats, value: float, gradient: Floats, n_iter: int, tol: float, max_iter: int, small_step: bool) -> Fit:
    """The result, and the warning if the criterion does not hold."""
    grad_norm = float(np.abs(gradient).max(initial=0.0))
    if grad_norm <= tol:
        return Fit(x, float(value), grad_norm, n_iter, True, f"gradient {grad_norm:.2g} <= tol {tol:.2g}")
    if small_step:
        return Fit(x, float(value), grad_norm, n_iter, True, "the last step improved the value by less than rel_tol")
    if n_iter >= max_iter:
        message = (
            f"stopped after {n_iter} iterations with gradient {grad_norm:.2g} > tol {tol:.2g}; raise max_iter or tol"
        )
    else:
        message = f"no step lowers the value though the gradient is {grad_norm:.2g} > tol {tol:.2g}; raise tol"
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return Fit(x, float(value), grad_norm, n_iter, False, message)
