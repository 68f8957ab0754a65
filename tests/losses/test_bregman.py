"""NDCG-consistent surrogates: divergences from the definition, conjugates in 40 digits, derivatives, consistency, refusals."""

import itertools
import math

import mpmath
import numpy as np
import oracle
import pytest
from hypothesis import given, settings, strategies as st

from placet.data import Lists
from placet.data.gains import discounts, gains
from placet.kernels.losses import bregman as kernels
from placet.losses import LOSSES
from placet.losses.bregman import conjugate, normalized_gains

examples = settings(max_examples=40)

FAMILY = [
    ("bregman-ce", {"beta": 1.0}),
    ("bregman-ce", {"beta": 0.2}),
    ("bregman-square", {}),
    ("bregman-qnorm", {}),
    ("bregman-qnorm", {"q": 5.0}),
    ("bregman", {"beta": 0.3}),
    ("bregman", {"psi": ("ce", "square"), "alpha": (2.0, 0.25)}),
    ("bregman", {"psi": ("ce", "qnorm"), "alpha": (1.0, 3.0), "beta": 0.1}),
    ("bregman", {"psi": ("square", "qnorm"), "alpha": (0.1, 1.0)}),
    ("cosine", {}),
]
family = pytest.mark.parametrize(("name", "params"), FAMILY, ids=[f"{n}{p or ''}" for n, p in FAMILY])
mixtures = pytest.mark.parametrize("alpha", [(1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1), (0.01, 5, 0.3), (20, 0.01, 1)])


def away_from_zero(rng, n):
    """Scores where every member of the family is smooth."""
    return rng.uniform(0.2, 2.0, n) * rng.choice([-1.0, 1.0], n)


@family
@pytest.mark.parametrize("seed", range(4))
def test_derivatives_are_derivatives(name, params, seed):
    rng = np.random.default_rng(seed)
    sizes = [4, 1, 0, 7, 3]
    lists = Lists(rng.integers(0, 4, 15), np.append(0, np.cumsum(sizes)), rng.uniform(0.5, 2, 5))
    s, v = away_from_zero(rng, 15), rng.normal(size=15)
    grad = LOSSES[name](s, lists, **params)[1]
    slope = oracle.central_difference(lambda x: LOSSES[name](x, lists, **params)[0], s)
    scale = np.abs(slope).max()
    np.testing.assert_allclose(grad, slope, rtol=1e-6, atol=1e-7 * scale)
    hessian = oracle.central_difference(lambda x: LOSSES[name](x, lists, **params)[1], s)
    scale = np.abs(hessian).max()
    np.testing.assert_allclose(LOSSES[name].hvp(s, lists, v, **params), hessian @ v, rtol=1e-5, atol=1e-6 * scale)
    curvature = LOSSES[name].curvature(s, lists, **params)
    if name == "cosine":
        assert (curvature >= np.diag(hessian) - 1e-7).all()
        assert (curvature[[0, 1, 2, 3, 5, 6]] > 0).all()
    else:
        np.testing.assert_allclose(curvature, np.diag(hessian), rtol=1e-5, atol=1e-6 * scale)


def exact_point(s, a, b, c, q):
    """x with grad psi(x) = s in 40 digits: for a guess of the norm each log |x_i|, then the norm, by bisection and secants."""

    def root(f, low, high):
        """Bisection to about 1e-6, then secant steps."""
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (low, middle) if f(middle) > 0 else (middle, high)
        return mpmath.findroot(f, (low, high), solver="secant", tol=1e-60, maxsteps=20)

    def sizes(log_n):
        def slope(t):
            return a * t + 2 * b * mpmath.exp(t) + 2 * c * mpmath.exp(log_n + (q - 1) * (t - log_n))

        return [root(lambda t, r=r: slope(t) - r, mpmath.mpf(-40000), mpmath.mpf(40)) for r in s]

    log_norm = lambda log_x: mpmath.log(sum(mpmath.exp(q * t) for t in log_x)) / q  # noqa: E731
    log_n = root(lambda t: t - log_norm(sizes(t)), mpmath.mpf(-40), mpmath.mpf(20)) if c else mpmath.mpf(0)
    return [mpmath.exp(t) for t in sizes(log_n)]


@mixtures
@pytest.mark.parametrize("scale", [0.01, 3.0, 500.0])
def test_conjugate_of_a_combination_is_right_to_rounding(alpha, scale):
    """Against 40-digit arithmetic; without cross-entropy the map is odd, so its signs come from the scores."""
    rng = np.random.default_rng(7)
    s = rng.normal(size=4) * scale
    s[0] = scale
    value, x = conjugate(s, alpha=alpha, beta=0.05)
    with mpmath.workdps(40):
        a, b, c = (mpmath.mpf(t) for t in (0.05 * alpha[0], alpha[1], alpha[2]))
        q = mpmath.mpf(math.log(4) + 2)
        signs = np.ones(4) if alpha[0] else np.sign(s)
        expected = exact_point([mpmath.mpf(t) for t in s * signs], a, b, c, q)
        norm = sum(t**q for t in expected) ** (1 / q)
        entropy = sum(t * mpmath.log(t) - t for t in expected)
        psi = a * entropy + b * sum(t**2 for t in expected) + c * norm**2
        sup = float(sum(mpmath.mpf(u) * t for u, t in zip(s * signs, expected)) - psi)
    # A score of size S moves log x by S / a times a rounding error.
    rounding = 1e-14 * (1 + (scale / (0.05 * alpha[0]) if alpha[0] else 0))
    np.testing.assert_allclose(x, signs * np.array(expected, float), rtol=rounding, atol=1e-300)
    assert value == pytest.approx(sup, rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("m", [2, 5, 300])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 4.0])
def test_newton_agrees_with_the_closed_forms(m, scale):
    """The solver for several terms, given one term, against that term's formula."""
    s = np.random.default_rng(m).normal(size=m) * scale
    q, x = math.log(m) + 2, np.empty(m)
    kernels.mixed_point(s, 0.05, 0.0, 0.0, q, x)
    np.testing.assert_allclose(x, np.exp(s / 0.05), rtol=1e-13)
    kernels.mixed_point(s, 0.0, 0.3, 0.0, q, x)
    np.testing.assert_allclose(x, s / 0.6, rtol=1e-14)
    kernels.mixed_point(s, 0.0, 0.0, 0.7, q, x)
    dual = q / (q - 1)
    norm = np.sum(np.abs(s) ** dual) ** (1 / dual)
    np.testing.assert_allclose(x, norm ** (2 - dual) * np.abs(s) ** (dual - 1) * np.sign(s) / 1.4, rtol=1e-13)


@pytest.mark.parametrize(("k", "name"), [(0, "ce"), (1, "square"), (2, "qnorm")])
def test_single_psi_is_the_limit_and_the_case_of_combinations(k, name):
    s = np.random.default_rng(3).uniform(0.01, 0.05, 6)  # above 0: any share of cross-entropy keeps x there
    alone = conjugate(s, name)
    alpha = np.full(3, 1e-9)
    alpha[k] = 1.0
    combined = conjugate(s, alpha=alpha)
    assert combined[0] == pytest.approx(alone[0], rel=1e-5)
    np.testing.assert_allclose(combined[1], alone[1], rtol=1e-4)
    lists = Lists([3, 2, 2, 1, 0, 0], [0, 6])
    one_hot = np.eye(3)[k]
    by_name = LOSSES[f"bregman-{name}"](s, lists)
    combined = LOSSES["bregman"](s, lists, alpha=one_hot)
    assert by_name[0] == combined[0]
    np.testing.assert_array_equal(by_name[1], combined[1])


@mixtures
@examples
@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8))
def test_conjugate_solves_its_equation_at_any_scores(alpha, s):
    s = np.array(s)
    value, x = conjugate(s, alpha=alpha)
    assert np.isfinite(value)
    assert np.isfinite(x).all()
    q, a = math.log(len(s)) + 2, 0.01 * alpha[0]
    norm = np.max(np.abs(x)) * np.sum((np.abs(x) / max(np.max(np.abs(x)), 1e-300)) ** q) ** (1 / q)
    seen = x != 0  # e^(-10000 / 0.01) is 0
    y = x[seen]
    slope = 2 * alpha[1] * y + 2 * alpha[2] * norm * (np.abs(y) / max(norm, 1e-300)) ** (q - 1) * np.sign(y)
    if a:
        slope = slope + a * np.log(y)
        assert (s[~seen] / a < -690).all()
        seen &= x > 1e-300
        slope = slope[y > 1e-300]
    np.testing.assert_allclose(slope, s[seen], rtol=1e-12, atol=1e-13 * max(1.0, np.abs(s).max()))


@family
@examples
@given(data=st.data())
def test_divergence_is_never_negative_and_0_only_at_the_gains(name, params, data):
    n = data.draw(st.integers(2, 7))
    grade = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), float)
    s = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=n, max_size=n)))
    lists = Lists(grade, [0, n])
    assert LOSSES[name](s, lists, **params)[0] >= -1e-12
    if name != "cosine" and grade.min() > 0:
        a, b, c, q = coefficients(name, params, n)
        p = normalized_gains(lists)
        best = grad_psi(p, a, b, c, q)
        value, grad = LOSSES[name](best, lists, **params)
        assert value == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(grad, 0.0, atol=1e-12)


def coefficients(name, params, n):
    psi = {"bregman": params.get("psi", ("ce", "square", "qnorm"))}.get(name, (name.removeprefix("bregman-"),))
    alpha = dict(zip(psi, params.get("alpha", (1.0,) * len(psi))))
    q = params.get("q", math.log(n) + 2)
    return params.get("beta", 0.01) * alpha.get("ce", 0), alpha.get("square", 0), alpha.get("qnorm", 0), q


def grad_psi(x, a, b, c, q):
    """For x > 0."""
    norm = np.sum(x**q) ** (1 / q)
    return (a * np.log(x) if a else 0) + 2 * b * x + 2 * c * norm * (x / norm) ** (q - 1)


@family
@pytest.mark.parametrize("seed", range(3))
def test_consistency_the_minimiser_sorts_for_expected_ndcg(name, params, seed):
    """A random law over label vectors: minimise the expected surrogate over scores, compare with every order's expected NDCG."""
    from scipy.optimize import minimize

    n, n_vectors = 4, 6
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, (n_vectors, n))
    labels[:, 0] = np.maximum(labels[:, 0], 1)  # every vector has gain
    probability = rng.dirichlet(np.ones(n_vectors))
    lists = Lists(labels.ravel(), n * np.arange(n_vectors + 1), probability)

    def expected(s):
        value, grad = LOSSES[name](np.tile(s, n_vectors), lists, **params)
        return value, grad.reshape(n_vectors, n).sum(axis=0)

    start = np.linspace(0.3, 0.1, n)
    found = minimize(
        expected, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-10}
    )
    ndcg = {}
    for order in itertools.permutations(range(n)):
        got = [sum((2.0 ** r[i] - 1) / math.log2(k + 2) for k, i in enumerate(order)) for r in labels]
        best = [sum((2.0**g - 1) / math.log2(k + 2) for k, g in enumerate(sorted(r)[::-1])) for r in labels]
        ndcg[order] = float(probability @ (np.array(got) / np.array(best)))
    chosen = tuple(np.argsort(-found.x).tolist())
    assert ndcg[chosen] == pytest.approx(max(ndcg.values()), abs=1e-9)
    assert len({round(x, 9) for x in ndcg.values()}) > 1


def test_an_inconsistent_loss_fails_where_these_do_not():
    """The same check is no tautology: a squared error to raw gains sorts differently from expected NDCG on this law."""
    labels = np.array([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    probability = np.array([0.4, 0.3, 0.3])
    raw = probability @ (2.0**labels - 1)
    ours = probability @ np.array([normalized_gains(Lists(r, [0, 3])) for r in labels])
    assert raw.argmax() == 0
    assert ours.argmax() == 1


def test_norm_is_the_ideal_dcg_whatever_the_order():
    grade = np.array([0.0, 2.0, 1.0, 2.0, 0.0])
    np.testing.assert_allclose(normalized_gains(Lists(grade, [0, 5])), oracle.ideal_gains(grade.tolist()), rtol=1e-14)
    reciprocal = normalized_gains(Lists(grade, [0, 5]), gain="linear", discount="reciprocal")
    expected = oracle.ideal_gains(grade.tolist(), lambda r: r, lambda place: 1 / place)
    np.testing.assert_allclose(reciprocal, expected, rtol=1e-14)
    own = normalized_gains(Lists(grade, [0, 5]), gain=np.sqrt, discount=lambda place: 0.5**place)
    np.testing.assert_allclose(own, oracle.ideal_gains(grade.tolist(), math.sqrt, lambda k: 0.5**k), rtol=1e-14)


@family
def test_lists_that_say_nothing_contribute_nothing(name, params):
    s = np.array([1.0, -2.0, 0.5, 3.0, 1.5])
    lists = Lists([0, 0, 0, 2, 1], [0, 3, 4, 4, 5])
    value, grad = LOSSES[name](s, lists, **params)
    assert value == 0
    for column in (grad, LOSSES[name].curvature(s, lists, **params), LOSSES[name].hvp(s, lists, s, **params)):
        np.testing.assert_array_equal(column, np.zeros(5))


@family
def test_equal_grades_with_gain_ask_for_equal_scores(name, params):
    lists = Lists([2, 2, 2], [0, 3])
    equal, grad = LOSSES[name]([0.3, 0.3, 0.3], lists, **params)
    assert np.ptp(grad) == pytest.approx(0.0, abs=1e-14)
    assert np.isfinite(equal)


def test_cross_entropy_goes_on_along_its_tangent():
    lists = Lists([1, 0], [0, 2])
    at, step = 300 * 0.01, 1e-3
    (v0, g0), (v1, g1), (v2, g2) = (LOSSES["bregman-ce"]([at + k * step, 0.0], lists) for k in (1, 2, 3))
    assert v2 - v1 == pytest.approx(v1 - v0, rel=1e-9)
    np.testing.assert_array_equal(g0, g2)
    assert v1 - v0 == pytest.approx(step * g1[0], rel=1e-9)
    below = LOSSES["bregman-ce"]([at - 1e-9, 0.0], lists)
    above = LOSSES["bregman-ce"]([at + 1e-9, 0.0], lists)
    assert above[0] == pytest.approx(below[0], rel=1e-6)
    assert np.square(g2).sum() < np.inf


def test_scores_of_0_are_met():
    """q-norm: 1/2 along each axis from 0, and a finite cap where one score is 0; cosine: a way down from 0."""
    lists = Lists([2, 1, 0], [0, 3])
    np.testing.assert_allclose(LOSSES["bregman-qnorm"].curvature(np.zeros(3), lists), 0.5)
    one = [LOSSES["bregman-qnorm"]([h, 0.0, 0.0], lists)[1][0] for h in (0.0, 1e-3)]
    assert (one[1] - one[0]) / 1e-3 == pytest.approx(0.5)
    v = np.array([0.3, -1.0, 2.0])
    directional = (LOSSES["bregman-qnorm"](1e-6 * v, lists)[1] - LOSSES["bregman-qnorm"](0 * v, lists)[1]) / 1e-6
    np.testing.assert_allclose(LOSSES["bregman-qnorm"].hvp(np.zeros(3), lists, v), directional, rtol=1e-6)
    assert np.isfinite(LOSSES["bregman-qnorm"].curvature([0.0, 1.0, 2.0], lists)).all()
    value, grad = LOSSES["cosine"](np.zeros(3), lists)
    p = normalized_gains(lists)
    twice = Lists([2, 1, 0, 2, 1, 0], [0, 3, 6])
    directions = np.random.default_rng(0).normal(size=(200, 3))
    everywhere = np.mean([LOSSES["cosine"](np.concatenate([u, -u]), twice)[0] / 2 for u in directions])
    assert value == pytest.approx(everywhere)
    np.testing.assert_array_equal(grad, -p)
    assert LOSSES["cosine"](1e-3 * p, lists)[0] < value
    many = Lists(np.ones(50), [0, 50])  # |p| is small: 0 must not be the least
    assert LOSSES["cosine"](np.ones(50), many)[0] < LOSSES["cosine"](np.zeros(50), many)[0]
    np.testing.assert_allclose(LOSSES["cosine"](p, lists)[0], LOSSES["cosine"](1000 * p, lists)[0])


def test_large_grades_do_not_overflow():
    lists = Lists([1000, 999, 0], [0, 3])
    p = normalized_gains(lists)
    np.testing.assert_allclose(p[:2] / p[0], [1.0, 0.5])
    assert p[0] * (1 + 0.5 / math.log2(3)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gain": "cubic"}, "gain 'cubic' is unknown; choose from"),
        ({"discount": "log"}, "discount 'log' is unknown; choose from"),
        (
            {"gain": lambda r: r - 1},
            r"row 2: the gain of grade 0 is -1, not a finite number of at least 0 \(1 such rows\)",
        ),
        ({"gain": lambda r: r[:1]}, "gain gives shape"),
        ({"discount": lambda k: k}, "discount of place 2 is 2; discounts must"),
        ({"discount": lambda k: 0 * k}, "discount of place 1 is 0"),
        ({"psi": ("ce", "cube")}, "psi 'cube' is unknown"),
        ({"alpha": (1, -1, 0)}, "must be one finite number >= 0"),
        ({"alpha": (0, 0, 0)}, "not all 0"),
        ({"alpha": (1, 1)}, "must be one finite number >= 0 for each"),
        ({"beta": 0.0}, "beta must be a finite number above 0"),
        ({"q": 1.5}, "q must be a finite number of at least 2"),
    ],
)
def test_refusals_say_what_and_where(params, message):
    with pytest.raises(ValueError, match=message):
        LOSSES["bregman"]([1.0, 2.0, 3.0], Lists([2, 1, 0], [0, 3]), **params)


def test_gains_and_discounts_by_name():
    np.testing.assert_allclose(gains(np.array([0.0, 1.0]), "log2"), [0, 1.0])
    np.testing.assert_allclose(discounts(3, "none"), [1, 1, 1])
    with pytest.raises(ValueError, match="the gain of grade 2000 is inf"):
        gains(np.array([2000.0]))
