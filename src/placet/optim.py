"""Optimisers: functions that minimise and return a ``Fit``; one criterion, the largest entry of the gradient.

``fun(x) -> (value, gradient)`` is an objective per unit weight, so ``tol`` means the same for 10 and 10,000 ballots.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]
Callback = Callable[[Array, float], None]


class ConvergenceWarning(UserWarning):
    """An optimiser stopped before its criterion was met; the message names what to raise."""


@dataclass(frozen=True)
class Fit:
    """Where an optimiser stopped: point, value, largest absolute gradient entry, iterations, whether that is good."""

    x: Array
    value: float
    grad_norm: float
    n_iter: int
    converged: bool
    message: str


def lbfgs(
    fun: Objective,
    x0: Array,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    rel_tol: float | None = None,
    memory: int = 10,
    callback: Callback | None = None,
) -> Fit:
    """SciPy's L-BFGS until max |gradient| <= ``tol``, or a step improves by less than ``rel_tol`` of the value."""
    from scipy.optimize import minimize

    state = {"value": np.inf, "stalled": False}

    def step(intermediate_result: object) -> None:
        x, value = intermediate_result.x, float(intermediate_result.fun)  # type: ignore[attr-defined]
        if callback is not None:
            callback(x, value)
        before, state["value"] = state["value"], value
        if rel_tol is not None and np.isfinite(before) and before - value <= rel_tol * abs(before):
            state["stalled"] = True
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": memory, "maxls": 40}
    found = minimize(fun, np.asarray(x0, float), jac=True, method="L-BFGS-B", callback=step, options=options)
    return _ended(found.x, *fun(found.x), int(found.nit), tol, max_iter, bool(state["stalled"]), "lbfgs")


def newton(
    fun: Objective,
    hvp: Callable[[Array, Array], Array],
    x0: Array,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    cg_iter: int | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Newton's method for convex objectives: steps by conjugate gradients on ``hvp(x, v)``, halved until they descend.

    Conjugate gradients stop at a residual of min(1/2, sqrt |g|) |g|, so convergence is superlinear.
    """
    x = np.array(x0, dtype=float)
    value, g = fun(x)
    n_iter = 0
    while np.abs(g).max(initial=0.0) > tol and n_iter < max_iter:
        step = _conjugate_gradients(partial(hvp, x), g, cg_iter or min(4 * len(x) + 10, 1000))
        slope, length = float(g @ step), 1.0
        while True:
            new = x + length * step
            new_value, new_g = fun(new)
            if new_value <= value + 1e-4 * length * slope + 1e-14 * abs(value):
                break
            length *= 0.5
            if length < 1e-10:
                return _ended(x, value, g, n_iter, tol, max_iter, False, "newton (no step descends)")
        x, value, g = new, new_value, new_g
        n_iter += 1
        if callback is not None:
            callback(x, value)
    return _ended(x, value, g, n_iter, tol, max_iter, False, "newton")


def _conjugate_gradients(product: Callable[[Array], Array], g: Array, max_iter: int) -> Array:
    """Approximate solution of H p = -g; a direction of no curvature ends it."""
    p, r = np.zeros_like(g), -g
    d, size = r.copy(), float(r @ r)
    goal = min(0.25, np.sqrt(size)) * size
    for k in range(max_iter):
        if size <= goal:
            break
        h = product(d)
        curvature = float(d @ h)
        if curvature <= 1e-16 * float(d @ d):
            return p if k else -g
        a = size / curvature
        p, r = p + a * d, r - a * h
        size, before = float(r @ r), size
        d = r + (size / before) * d
    return p


def sgd(
    fun: Objective,
    x0: Array,
    *,
    method: str = "adagrad",
    lr: float = 0.1,
    n_iter: int = 1000,
    average: float = 0.0,
    callback: Callback | None = None,
) -> Fit:
    """``n_iter`` steps along stochastic gradients: "plain", "adagrad" or "adam".

    ``average`` is the last share of the iterates whose mean is returned (0: the last one).  There is no criterion to
    meet: ``converged`` is true when all steps were made and are finite.
    """
    if method not in ("plain", "adagrad", "adam"):
        raise ValueError(f"method {method!r} is unknown; choose from ['plain', 'adagrad', 'adam']")
    x = np.array(x0, dtype=float)
    first, second, mean, kept = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x), 0
    value, g = np.nan, np.zeros_like(x)
    for t in range(1, n_iter + 1):
        value, g = fun(x)
        if method == "plain":
            x = x - lr * g
        elif method == "adagrad":
            second += g * g
            x = x - lr * g / (np.sqrt(second) + 1e-10)
        else:
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
            x = x - lr * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        if average and t > (1 - average) * n_iter:
            mean, kept = mean + x, kept + 1
        if callback is not None:
            callback(x, float(value))
    x = mean / kept if kept else x
    finite = bool(np.isfinite(x).all())
    message = f"{n_iter} steps of {method}" if finite else f"{method} diverged; lower the learning rate"
    if not finite:
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return Fit(x, float(value), float(np.abs(g).max(initial=0.0)), n_iter, finite, message)


def _ended(x: Array, value: float, g: Array, n_iter: int, tol: float, max_iter: int, stalled: bool, who: str) -> Fit:
    """The one criterion, and the warning that names what to raise."""
    norm = float(np.abs(g).max(initial=0.0))
    if norm <= tol:
        return Fit(x, float(value), norm, n_iter, True, f"{who}: gradient {norm:.1e} <= {tol:.1e}")
    if stalled:
        return Fit(x, float(value), norm, n_iter, True, f"{who}: relative improvement below rel_tol")
    way_out = "raise max_iter" if n_iter >= max_iter else "raise tol or l2: the objective is flat at rounding error"
    message = f"{who}: gradient {norm:.1e} > {tol:.1e} after {n_iter} iterations; {way_out}"
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return Fit(x, float(value), norm, n_iter, False, message)
