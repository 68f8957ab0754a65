"""The Plackett-Luce family: 40-digit arithmetic, enumeration, reductions, a peer."""

import math

import choix
import numpy as np
import oracle
import pytest
from hypothesis import given, settings, strategies as st

from placet.data import Lists
from placet.kernels import vector
from placet.kernels.losses import quadrature
from placet.losses import LOSSES, list_columns

RNG = np.random.default_rng(11)


def two_tiers(tied, rest):
    s = np.append(tied, rest).astype(float)
    return s, Lists(np.append(np.ones(len(tied)), np.zeros(len(rest))), [0, len(s)])


def from_few(values, n):
    """n scores that take few values, so that 500 of them cost the oracle little."""
    return np.resize(np.asarray(values, float), n)


HARD = {
    "one": ([0.3], [0.0, 1.0]),
    "two": ([0.3, -2.0], [0.0, 1.0]),
    "equal to a single one": ([0.0] * 3, [0.0]),
    "far below the rest": (RNG.normal(-40, 1, 5), RNG.normal(0, 1, 20)),
    "far above the rest": (RNG.normal(40, 1, 5), RNG.normal(0, 1, 20)),
    "spread over +-50": (RNG.uniform(-50, 50, 12), RNG.uniform(-50, 50, 20)),
    "a cliff left of the peak": (from_few([3.0], 100), [0.0]),
    "a cliff far left of the peak": (from_few([9.0], 500), [0.0]),
    "cliff below a slow item": (np.append(from_few([10.0], 400), 0.0), [0.0]),
    "two cliffs": (np.concatenate([from_few([12.0], 300), from_few([5.0], 150), [-1.0]]), [0.0, -1.0]),
    "500 unsaturated": (from_few([-8.0, -7.0, -6.5], 500), [0.0]),
    "500 near saturation": (from_few([2.5, 3.0, 3.2, 3.7], 500), [0.0]),
    "500 of all kinds": (from_few([-50, -20, -5, -1, 0, 1, 5, 20, 50], 500), [0.0, 3.0]),
    "500 over +-50": (from_few(np.linspace(-50, 50, 9), 500), np.linspace(-50, 50, 7)),
    "500 far below the rest": (from_few([-50.0, -47.0, -41.0], 500), [50.0, 44.0, -10.0]),
    "500 far above the rest": (from_few([50.0, 47.0, 41.0], 500), [-50.0, -44.0, -48.0]),
    "levels that agree by chance": (np.append(np.full(212, 14.1), [13.8] * 3), [0.0]),
    "thousands below": (RNG.normal(0, 1, 6), RNG.normal(0, 1, 3000)),
}


@pytest.mark.parametrize("name", HARD)
def test_partition_agrees_with_40_digits(name):
    tied, rest = HARD[name]
    log_p, at_tied, at_rest = oracle.stage_integral(tied, rest)
    s, lists = two_tiers(tied, rest)
    scale = max(1.0, abs(log_p))
    value, grad = LOSSES["pl-partition"](s, lists)
    assert abs(value + log_p) / scale < 1e-11
    assert np.abs(grad + np.append(at_tied, at_rest)).max() / scale < 1e-11
    for tol in (1e-4, 1e-6, 1e-8):
        rough_value, rough_grad = LOSSES["pl-partition"](s, lists, tol=tol)
        assert abs(rough_value + log_p) / scale < tol
        assert np.abs(rough_grad - grad).max() / scale < tol


def test_tolerance_is_kept_over_many_stages():
    """Against the rule itself with a far smaller tolerance: 600 stages of all shapes."""
    rng = np.random.default_rng(0)
    for _ in range(600):
        n = int(np.exp(rng.uniform(np.log(2), np.log(300))))
        spread, shift = rng.choice([0, 0.1, 0.3, 1, 3, 10, 50]), rng.uniform(-10, 20)
        shape = rng.integers(3)
        tied = shift + spread * [rng.normal(size=n), rng.uniform(-1, 1, n), (rng.random(n) < 0.1) * 1.0][shape]
        s, lists = two_tiers(tied, [0.0])
        fine_value, fine_grad = LOSSES["pl-partition"](s, lists, tol=1e-14)
        for tol in (1e-11, 1e-8, 1e-6, 1e-4, 1e-2):
            value, grad = LOSSES["pl-partition"](s, lists, tol=tol)
            assert abs(value - fine_value) <= tol * max(1.0, fine_value)
            assert np.abs(grad - fine_grad)[:-1].max() <= tol
            assert abs(grad[-1] - fine_grad[-1]) <= 10 * tol * max(1.0, fine_value)


def test_node_count_follows_the_tolerance():
    def nodes(d, tol):
        d = np.asarray(d, float)
        item, node = np.empty((4, len(d))), np.empty((3, quadrature.MAX_NODES))
        return quadrature.log_probability(d, len(d), tol, *item, *node, np.empty(quadrature.MAX_NODES, np.int64))[1]

    assert nodes([-1.0, -2.0, 0.5], 1e-4) == 16
    assert nodes(np.full(50, -3.0), 1e-11) == 40
    assert nodes(np.append(np.full(499, 10.0), 0.0), 1e-11) <= 320


@pytest.mark.parametrize("gap", [700.0, 5_000.0, 20_000.0])
def test_extreme_gaps_have_known_limits(gap):
    s, lists = two_tiers([gap, gap + 1], [0.0, 0.0])  # certain
    value, grad = LOSSES["pl-partition"](s, lists)
    assert value == pytest.approx(0.0, abs=1e-11)
    assert np.abs(grad).max() < 1e-11
    s, lists = two_tiers([-gap, -gap], [0.0])  # P = 2 e^{-2 gap}
    value, grad = LOSSES["pl-partition"](s, lists)
    assert value == pytest.approx(2 * gap - math.log(2), rel=1e-13)
    np.testing.assert_allclose(grad, [-1, -1, 2], atol=1e-11)
    s, lists = two_tiers([gap, -gap], [0.0])
    value, grad = LOSSES["pl-partition"](s, lists)
    assert value == pytest.approx(gap, rel=1e-13)
    np.testing.assert_allclose(grad, [0, -1, 1], atol=1e-11)


def test_rows_below_may_vanish_beside_the_tied_ones():
    """The rest underflows relative to the first tier, and still decides the second stage."""
    s = np.array([0.0, 0.0, -900.0, -901.0, -902.0])
    lists = Lists([2, 2, 1, 1, 0], [0, 5])
    expected = oracle.pl_partition([-900.0, -901.0, -902.0], [1, 1, 0])
    value, grad = LOSSES["pl-partition"](s, lists)
    assert value == pytest.approx(expected, rel=1e-11)
    assert grad[2:].sum() == pytest.approx(0.0, abs=1e-12)
    assert np.abs(grad[2:]).min() > 0.05


@settings(max_examples=40)
@given(st.lists(st.floats(-30, 30), min_size=1, max_size=7))
def test_no_ties_all_are_plackett_luce(s):
    grade = np.arange(len(s))
    lists = Lists(grade, [0, len(s)])
    expected = choix.log_likelihood_rankings([np.argsort(-grade)], np.array(s))
    values, grads = zip(*(LOSSES[name](s, lists) for name in ("pl-partition", "listmle", "pl-topk", "pl-lower-bound")))
    np.testing.assert_allclose(values, -expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(grads, np.broadcast_to(grads[0], (4, len(s))), rtol=1e-9, atol=1e-12)


def test_lower_bound_is_one_and_touches_where_the_tied_are_negligible():
    rng = np.random.default_rng(2)
    for _ in range(50):
        s, lists = two_tiers(rng.normal(0, 2, 4), rng.normal(0, 2, 3))
        assert LOSSES["pl-lower-bound"](s, lists)[0] >= LOSSES["pl-partition"](s, lists)[0]
    s, lists = two_tiers(rng.normal(-40, 1, 4), [0.0])
    assert LOSSES["pl-lower-bound"](s, lists)[0] == pytest.approx(LOSSES["pl-partition"](s, lists)[0], rel=1e-14)


def test_partition_is_the_mean_of_the_shuffles():
    """The partition's probability is n! times the mean probability of an order inside the tier."""
    s, lists = two_tiers([0.4, -0.3, 1.1], [0.0, 0.5])
    values = [LOSSES["pl-topk"](s, lists, random_state=seed)[0] for seed in range(4000)]
    assert len(np.unique(np.round(values, 9))) == 6
    estimate = 6 * np.exp(-np.array(values)).mean()
    assert estimate == pytest.approx(np.exp(-LOSSES["pl-partition"](s, lists)[0]), rel=0.02)


def test_shuffle_depends_on_seed_and_row_alone():
    s, lists = RNG.normal(size=40_000), Lists(np.zeros(40_000), np.arange(0, 40_001, 20))
    value, grad = LOSSES["listmle"](s, lists)
    assert LOSSES["listmle"](s, lists)[1].tobytes() == grad.tobytes()
    assert LOSSES["listmle"](s, lists, random_state=1)[0] != value
    before = list_columns.ROWS_PER_RANGE
    list_columns.ROWS_PER_RANGE = 1000
    try:
        assert LOSSES["listmle"](s, lists)[1].tobytes() == grad.tobytes()
    finally:
        list_columns.ROWS_PER_RANGE = before


def test_topk_counts_places():
    s, lists = np.array([0.3, -1.0, 0.2, 0.9]), Lists([3, 2, 1, 0], [0, 4])
    np.testing.assert_allclose(
        [LOSSES["pl-topk"](s, lists, k=k)[0] for k in (0, 1, 2, 9)],
        [oracle.order_value(s, [0, 1, 2, 3], k) for k in (0, 1, 2, 4)],
    )
    with pytest.raises(ValueError, match="at least 0"):
        LOSSES["pl-topk"](s, lists, k=-1)


@pytest.mark.parametrize("tol", [0.0, 1e-20, 1.0, math.nan])
def test_tolerance_out_of_reach(tol):
    with pytest.raises(ValueError, match="tol must lie in"):
        LOSSES["pl-partition"]([0.0], Lists([0], [0, 1]), tol=tol)


def test_long_tiers_second_derivatives():
    """Where the finite differences of the table's test do not reach: 60 tied rows, three tiers, near saturation."""
    rng = np.random.default_rng(4)
    s = rng.normal(0, 1, 90) + np.repeat([4.0, 2.0, 0.0], 30)
    lists = Lists(np.repeat([2, 1, 0], 30), [0, 90])
    v = rng.normal(size=90)
    step = 1e-5
    up, down = (LOSSES["pl-partition"](s + e * v, lists, tol=1e-13)[1] for e in (step, -step))
    np.testing.assert_allclose(LOSSES["pl-partition"].hvp(s, lists, v), (up - down) / (2 * step), atol=1e-8)
    diagonal = [LOSSES["pl-partition"].hvp(s, lists, e)[i] for i, e in enumerate(np.eye(90))]
    np.testing.assert_allclose(LOSSES["pl-partition"].curvature(s, lists), diagonal, atol=1e-11)


@pytest.mark.jit
def test_memory_does_not_grow_with_nodes_times_items():
    assert quadrature.MAX_NODES * 8 * 4 < 100_000  # bytes of node scratch per range


def test_vector_exponentials_are_right_to_two_units():
    x = np.concatenate([RNG.uniform(-700, 700, 2000), RNG.normal(size=2000), -np.logspace(-300, 2, 500), [0.0]])
    exact = x.astype(np.longdouble)
    exp, expm1 = np.array([vector.exp(y) for y in x]), np.array([vector.expm1(y) for y in x])
    assert (np.abs(exp - np.exp(exact)) <= 2.3e-16 * 2 * np.exp(exact)).all()
    assert (np.abs(expm1 - np.expm1(exact)) <= 2.3e-16 * 2 * np.abs(np.expm1(exact))).all()
    assert vector.exp(-1e9) > 0
    assert np.isfinite(vector.exp(1e9))
    assert vector.expm1(-1e9) == -1.0
