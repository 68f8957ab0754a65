"""Optimisers: the known optimum, one criterion, honest results."""

import numpy as np
import pytest

from placet.data import Lists
from placet.losses import LOSSES
from placet.optim import ConvergenceWarning, by_products, cg, lbfgs, newton, sgd

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
    rows = LOSSES["listmle"].hvp(np.tile(theta, len(ORDERS)), LISTS, np.tile(v, len(ORDERS)))
    return aggregate(rows) / len(ORDERS) + L2 * v


def rosenbrock(x):
    a, b = x
    return (1 - a) ** 2 + 100 * (b - a**2) ** 2, np.array([-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)])


def rosenbrock_hessian(x, v):
    a, b = x
    return np.array([[2 - 400 * b + 1200 * a**2, -400 * a], [-400 * a, 200]]) @ v


def test_lbfgs_and_newton_agree():
    first = lbfgs(objective, np.zeros(N), tol=1e-7)
    second = newton(objective, by_products(hessian), np.zeros(N), tol=1e-11)
    assert first.converged
    assert second.converged
    assert second.n_iter < 12  # quadratic near the optimum
    np.testing.assert_allclose(first.x, second.x, atol=1e-6)
    assert second.grad_norm == np.abs(objective(second.x)[1]).max() <= 1e-11


def test_newton_passes_a_curved_valley():
    fit = newton(rosenbrock, by_products(rosenbrock_hessian), [-1.2, 1.0])
    assert fit.converged
    np.testing.assert_allclose(fit.x, [1, 1], atol=1e-7)


def test_newton_leaves_a_region_that_is_not_convex():
    fit = newton(
        lambda x: (float(np.sum(x**4 / 4 - x**2 / 2)), x**3 - x), by_products(lambda x, v: (3 * x**2 - 1) * v), [0.1]
    )
    np.testing.assert_allclose(fit.x, [1.0], atol=1e-6)


@pytest.mark.parametrize("optimiser", [lbfgs, lambda f, x, **kw: newton(f, by_products(hessian), x, **kw)])
def test_too_few_iterations_warn_and_name_what_to_raise(optimiser):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fit = optimiser(objective, np.zeros(N), tol=1e-12, max_iter=1)
    assert not fit.converged
    assert fit.grad_norm > 1e-12


def test_unreachable_tolerance_is_not_called_converged():
    with pytest.warns(ConvergenceWarning, match="raise tol"):
        fit = newton(objective, by_products(hessian), np.zeros(N), tol=0.0)
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
    best = newton(objective, by_products(hessian), np.zeros(N))
    fit = sgd(lambda x, rng: objective(x), np.zeros(N), method=method, learning_rate=lr, max_iter=3000, tol=1e-7)
    assert fit.converged
    np.testing.assert_allclose(fit.x, best.x, atol=1e-5)


def test_sgd_is_reproducible_and_says_that_it_has_no_criterion():
    def noisy(x, rng):
        value, gradient = objective(x)
        return value, gradient + 0.01 * rng.normal(size=N)

    first, second = (sgd(noisy, np.zeros(N), max_iter=30, rng=7) for _ in range(2))
    assert first.x.tobytes() == second.x.tobytes()
    assert first.x.tobytes() != sgd(noisy, np.zeros(N), max_iter=30, rng=8).x.tobytes()
    assert not first.converged
    assert first.n_iter == 30


def test_first_steps_of_the_adaptive_methods():
    def constant(x, rng):
        return 0.0, np.array([3.0, -0.5])

    for method in ("adagrad", "adam"):  # the first step has length lr in every coordinate
        fit = sgd(constant, np.zeros(2), method=method, learning_rate=0.1, max_iter=1)
        np.testing.assert_allclose(fit.x, [-0.1, 0.1], rtol=1e-6)
    fit = sgd(constant, np.zeros(2), method="adagrad", learning_rate=0.1, max_iter=2)
    np.testing.assert_allclose(fit.x, np.array([-0.1, 0.1]) * (1 + 1 / np.sqrt(2)), rtol=1e-8)


def test_unknown_method():
    with pytest.raises(ValueError, match=r"'sgd' is unknown; choose from plain, adagrad, adam"):
        sgd(lambda x, rng: objective(x), np.zeros(N), method="sgd")


def test_callback_sees_progress_and_interrupts_pass():
    seen = []
    lbfgs(objective, np.zeros(N), callback=lambda x, value: seen.append(value))
    assert len(seen) > 2
    assert seen == sorted(seen, reverse=True)

    def interrupt(x, value):
        raise KeyboardInterrupt

    for optimiser in (lbfgs, lambda f, x, **kw: newton(f, by_products(hessian), x, **kw)):
        with pytest.raises(KeyboardInterrupt):
            optimiser(objective, np.zeros(N), callback=interrupt)


def test_start_is_left_alone():
    start = np.zeros(N)
    lbfgs(objective, start)
    newton(objective, by_products(hessian), start)
    sgd(lambda x, rng: objective(x), start, max_iter=3)
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


@pytest.mark.parametrize("preconditioned", [False, True])
def test_conjugate_gradients_solve_what_a_factorization_solves(preconditioned):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(30, 30))
    A = A @ A.T + np.diag(rng.uniform(1, 100, 30))
    b = rng.normal(size=30)
    x = cg(lambda v: A @ v, b, rtol=1e-12, diagonal=np.diag(A) if preconditioned else None)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-8)


def test_conjugate_gradients_stop_where_the_matrix_bends_down():
    b = np.array([1.0, 2.0])
    np.testing.assert_array_equal(cg(lambda v: -v, b, rtol=1e-6), b)


def test_relative_tolerance_does_not_depend_on_the_unit_of_the_value():
    fits = [
        lbfgs(lambda x, c=c: (c * objective(x)[0], c * objective(x)[1]), np.ones(N), tol=1e-4, relative=True)
        for c in (1.0, 1e6)
    ]
    np.testing.assert_allclose(fits[0].x, fits[1].x, atol=1e-6)
    assert all(fit.converged for fit in fits)


def test_steps_of_a_convex_function_need_no_value():
    def dense(x):
        return np.array([hessian(x, e) for e in np.eye(N)])

    fit = newton(
        lambda x: (np.nan, objective(x)[1]),
        lambda x, g: np.linalg.solve(dense(x), g),
        np.zeros(N),
        convex=True,
        step_tol=1e-9,
    )
    assert fit.converged
    np.testing.assert_allclose(fit.x, lbfgs(objective, np.zeros(N), tol=1e-8).x, atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="not converged in 1 steps"):
        newton(objective, lambda x, g: g / 100, np.zeros(N), convex=True, step_tol=1e-12, max_iter=1)


def test_stochastic_steps_that_diverge_end_at_a_finite_point():
    with pytest.warns(ConvergenceWarning, match="diverged at step"):
        fit = sgd(
            lambda x, rng: (np.inf if abs(x[0]) > 1e9 else float(x @ x), 2 * x),
            np.ones(2),
            method="plain",
            learning_rate=1e3,
            max_iter=500,
        )
    assert np.isfinite(fit.x).all()
    assert not fit.converged
