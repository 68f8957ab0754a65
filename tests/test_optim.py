"""Optimisers: the known optimum, one criterion, honest results."""

import numpy as np
import pytest

from placet.data import Lists
from placet.losses import HVPS, LOSSES
from placet.optim import ConvergenceWarning, lbfgs, newton, sgd

RNG = np.random.default_rng(3)
N = 8
ORDERS = [RNG.permutation(N) for _ in range(40)]
LISTS = Lists(np.concatenate([-np.argsort(order) for order in ORDERS]), N * np.arange(len(ORDERS) + 1))
L2 = 0.1


def aggregate(rows):
    return rows.reshape(-1, N).sum(axis=0)


def objective(theta):
    value, grad = LOSSES["listmle"](np.tile(theta, len(ORDERS)), LISTS)
    return value / len(ORDERS) + L2 / 2 * theta @ theta, aggregate(grad) / len(ORDERS) + L2 * theta


def hessian(theta, v):
    rows = HVPS["listmle"](np.tile(theta, len(ORDERS)), LISTS, np.tile(v, len(ORDERS)))
    return aggregate(rows) / len(ORDERS) + L2 * v


def rosenbrock(x):
    a, b = x
    return (1 - a) ** 2 + 100 * (b - a**2) ** 2, np.array([-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)])


def rosenbrock_hessian(x, v):
    a, b = x
    return np.array([[2 - 400 * b + 1200 * a**2, -400 * a], [-400 * a, 200]]) @ v


def test_lbfgs_and_newton_agree():
    first = lbfgs(objective, np.zeros(N), tol=1e-7)
    second = newton(objective, hessian, np.zeros(N), tol=1e-11)
    assert first.converged
    assert second.converged
    assert second.n_iter < 12  # quadratic near the optimum
    np.testing.assert_allclose(first.x, second.x, atol=1e-6)
    assert second.grad_norm == np.abs(objective(second.x)[1]).max() <= 1e-11


def test_newton_passes_a_curved_valley():
    fit = newton(rosenbrock, rosenbrock_hessian, [-1.2, 1.0])
    assert fit.converged
    np.testing.assert_allclose(fit.x, [1, 1], atol=1e-7)


def test_newton_leaves_a_region_that_is_not_convex():
    fit = newton(lambda x: (float(np.sum(x**4 / 4 - x**2 / 2)), x**3 - x), lambda x, v: (3 * x**2 - 1) * v, [0.1])
    np.testing.assert_allclose(fit.x, [1.0], atol=1e-6)


@pytest.mark.parametrize("optimiser", [lbfgs, lambda f, x, **kw: newton(f, hessian, x, **kw)])
def test_too_few_iterations_warn_and_name_what_to_raise(optimiser):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fit = optimiser(objective, np.zeros(N), tol=1e-12, max_iter=1)
    assert not fit.converged
    assert fit.grad_norm > 1e-12


def test_unreachable_tolerance_is_not_called_converged():
    with pytest.warns(ConvergenceWarning, match="raise tol"):
        fit = newton(objective, hessian, np.zeros(N), tol=0.0)
    assert not fit.converged
    assert fit.grad_norm < 1e-12


def test_relative_improvement_stops_early():
    loose, tight = lbfgs(objective, np.zeros(N), rel_tol=1e-2), lbfgs(objective, np.zeros(N))
    assert loose.converged
    assert "rel_tol" in loose.message
    assert loose.n_iter < tight.n_iter
    assert loose.value < objective(np.zeros(N))[0]


@pytest.mark.parametrize(("method", "lr"), [("plain", 0.5), ("adagrad", 0.3), ("adam", 0.05)])
def test_sgd_reaches_the_optimum_of_the_full_batch(method, lr):
    best = newton(objective, hessian, np.zeros(N))
    fit = sgd(lambda x, rng: objective(x), np.zeros(N), method=method, lr=lr, n_iter=3000, tol=1e-7)
    assert fit.converged
    np.testing.assert_allclose(fit.x, best.x, atol=1e-5)


def test_sgd_is_reproducible_and_says_that_it_has_no_criterion():
    def noisy(x, rng):
        value, gradient = objective(x)
        return value, gradient + 0.01 * rng.normal(size=N)

    first, second = (sgd(noisy, np.zeros(N), n_iter=30, rng=7) for _ in range(2))
    assert first.x.tobytes() == second.x.tobytes()
    assert first.x.tobytes() != sgd(noisy, np.zeros(N), n_iter=30, rng=8).x.tobytes()
    assert not first.converged
    assert first.n_iter == 30


def test_first_steps_of_the_adaptive_methods():
    def constant(x, rng):
        return 0.0, np.array([3.0, -0.5])

    for method in ("adagrad", "adam"):  # the first step has length lr in every coordinate
        fit = sgd(constant, np.zeros(2), method=method, lr=0.1, n_iter=1)
        np.testing.assert_allclose(fit.x, [-0.1, 0.1], rtol=1e-6)
    fit = sgd(constant, np.zeros(2), method="adagrad", lr=0.1, n_iter=2)
    np.testing.assert_allclose(fit.x, np.array([-0.1, 0.1]) * (1 + 1 / np.sqrt(2)), rtol=1e-8)


def test_unknown_method():
    with pytest.raises(ValueError, match=r"'sgd' is unknown; choose from \['plain', 'adagrad', 'adam'\]"):
        sgd(lambda x, rng: objective(x), np.zeros(N), method="sgd")


def test_callback_sees_progress_and_interrupts_pass():
    seen = []
    lbfgs(objective, np.zeros(N), callback=lambda x, value: seen.append(value))
    assert len(seen) > 2
    assert seen == sorted(seen, reverse=True)

    def interrupt(x, value):
        raise KeyboardInterrupt

    for optimiser in (lbfgs, lambda f, x, **kw: newton(f, hessian, x, **kw)):
        with pytest.raises(KeyboardInterrupt):
            optimiser(objective, np.zeros(N), callback=interrupt)


def test_start_is_left_alone():
    start = np.zeros(N)
    lbfgs(objective, start)
    newton(objective, hessian, start)
    sgd(lambda x, rng: objective(x), start, n_iter=3)
    assert not start.any()


def test_a_first_step_into_an_explosion_is_taken_back():
    # a first step of length 1 raises the value to infinity, from which no line search interpolates
    def steep(x):
        with np.errstate(over="ignore"):
            e = np.exp(1000 * x)
        return float((e / 1000 - 2 * x).sum()), e - 2

    fit = lbfgs(steep, np.zeros(1), tol=1e-6)
    assert fit.converged
    np.testing.assert_allclose(fit.x, np.log(2) / 1000, rtol=1e-6)
