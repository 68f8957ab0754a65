"""Losses that aim at NDCG: their derivatives, what LightGBM computes, ties, truncation, held weights, stage weights."""

import itertools

import numpy as np
import oracle
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from strategies import lists_and_scores

from placet.data import DataError, Lists
from placet.losses import LOSSES, Bound

NAMES = ("lambdarank", "lambdaloss", "neural-ndcg")
CASES = [
    ("lambdarank", {}),
    ("lambdarank", {"k": 3, "sigma": 2.0}),
    ("lambdaloss", {}),
    ("lambdaloss", {"k": 3}),
    ("neural-ndcg", {}),
    ("neural-ndcg", {"k": 3, "temperature": 2.0}),
    ("neural-ndcg", {"sinkhorn": 50}),
    ("neural-ndcg", {"k": 3, "sinkhorn": 4, "temperature": 2.0}),
]
examples = settings(max_examples=20)


def draw(seed, sizes=(7, 1, 12, 5), grades=4):
    """Lists with distinct scores."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    return rng.permutation(n) / 7.0, Lists(
        rng.integers(0, grades, n), np.append(0, np.cumsum(sizes)), rng.uniform(0.5, 2, len(sizes))
    )


@pytest.mark.parametrize(("name", "params"), CASES)
def test_gradient_is_the_derivative_where_no_two_scores_tie(name, params):
    s, lists = draw(1)
    expected = oracle.central_difference(lambda x: LOSSES[name](x, lists, **params)[0], s)
    assert_allclose(LOSSES[name](s, lists, **params)[1], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("name", "params"), CASES[:4])
def test_second_derivatives_hold_the_places(name, params):
    s, lists = draw(2)
    hessian = oracle.central_difference(lambda x: LOSSES[name](x, lists, **params)[1], s)
    v = np.cos(np.arange(len(s)))
    assert_allclose(LOSSES[name].hvp(s, lists, v, **params), v @ hessian, rtol=1e-5, atol=1e-8)
    assert_allclose(LOSSES[name].curvature(s, lists, **params), np.diag(hessian), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["lambdarank", "lambdaloss"])
@examples
@given(data=st.data())
def test_gradient_with_held_places_is_the_derivative_at_ties_too(name, data):
    s, lists = data.draw(lists_and_scores())
    other = np.round(np.sin(1.0 + np.arange(len(s))), 1)
    bound = Bound(name, lists, {"k": 2})
    bound.hold(s)
    expected = oracle.central_difference(lambda x: bound.value_and_grad(x)[0], other)
    assert_allclose(bound.value_and_grad(other)[1], expected if len(s) else s, rtol=1e-6, atol=1e-7)
    hessian = oracle.central_difference(lambda x: bound.value_and_grad(x)[1], other)
    v = np.cos(np.arange(len(s)))
    assert_allclose(bound.hvp(other, v), v @ hessian if len(s) else v, rtol=1e-5, atol=1e-6)
    here, there = bound.value_and_grad(s)[1], Bound(name, lists, {"k": 2}).value_and_grad(s)[1]
    assert_allclose(here, there, rtol=1e-12, atol=1e-14)
    bound.hold(None)
    assert_allclose(bound.value_and_grad(other)[1], Bound(name, lists, {"k": 2}).value_and_grad(other)[1])


@examples
@given(data=st.data())
def test_tied_scores_have_the_mean_gradient_of_scores_next_to_them(data):
    """Breaking ties by a hair in every way and taking the mean changes nothing but a hair."""
    grade = data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    s, lists = np.array([0.5, 0.5, 0.5, -0.3]), Lists(grade, [0, 4])
    for name in ("lambdarank", "lambdaloss"):
        near = [LOSSES[name](s + 1e-9 * np.array([*p, 0]), lists, k=2)[1] for p in itertools.permutations(range(3))]
        assert_allclose(LOSSES[name](s, lists, k=2)[1], np.mean(near, axis=0), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("k", "norm"), [(30, True), (30, False), (3, True), (3, False)])
def test_lambdarank_is_that_of_lightgbm(k, norm):
    """A tree of small leaves, at a rate of 1 and without penalty, steps by minus gradient over curvature (a table there)."""
    lgb = pytest.importorskip("lightgbm")
    s, lists = draw(3, sizes=(9, 14))
    settings = {"objective": "lambdarank", "lambdarank_truncation_level": k, "lambdarank_norm": norm, "verbosity": -1}
    settings |= {"num_leaves": 64, "min_data_in_leaf": 1, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0}
    settings |= {
        "learning_rate": 1.0,
        "lambda_l2": 0.0,
        "min_gain_to_split": 0.0,
        "boost_from_average": False,
        "max_bin": 255,
    }
    rows = np.random.default_rng(0).permutation(len(s)).astype(float)[:, None]
    data = lgb.Dataset(rows, lists.grade, group=np.diff(lists.offsets), init_score=s)
    data.params = settings
    step = lgb.Booster(settings, data)
    step.update()
    plain = lists._replace(weight=np.ones(2))
    _, g = LOSSES["lambdarank"](s, plain, k=k, norm=norm)
    h = LOSSES["lambdarank"].curvature(s, plain, k=k, norm=norm)
    leaf = step.predict(rows, pred_leaf=True).ravel().astype(int)
    assert len(np.unique(leaf)) > 12
    g, h = np.bincount(leaf, g), np.bincount(leaf, h)
    assert_allclose([step.get_leaf_output(0, n) for n in range(len(g))], -g / h, rtol=1e-3, atol=1e-5)
    table = step.trees_to_dataframe().set_index("node_index")
    assert_allclose([table["weight"][f"0-L{n}"] for n in range(len(g))], h, rtol=1e-3, atol=1e-6)


def test_a_long_list_of_ties_costs_no_more_than_its_classes():
    n = 200_000
    lists = Lists(np.arange(n) % 5, [0, n])
    value, grad = LOSSES["lambdarank"](np.zeros(n), lists)
    assert np.isfinite(value)
    assert [len(np.unique(grad[g::5].round(12))) for g in range(5)] == [1] * 5
    assert grad[4] < grad[3] < grad[2] < grad[1] < grad[0]


def test_xendcg_draws_as_published_and_otherwise_takes_one_number():
    s, lists = draw(4)
    seeds = [LOSSES["xendcg"](s, lists, gamma="uniform", random_state=k)[0] for k in (0, 0, 1)]
    assert seeds[0] == seeds[1] != seeds[2]
    with pytest.raises(ValueError, match=r"gamma must be a number in \[0, 1\] or 'uniform', not 'mean'"):
        LOSSES["xendcg"](s, lists, gamma="mean")
    with pytest.raises(ValueError, match="row 0: the gain of grade -1 is -0.5"):
        LOSSES["xendcg"]([0.0, 1.0], Lists([-1, -1], [0, 2]))


def test_xendcg_of_gains_whose_sum_is_beyond_the_largest_number():
    value, grad = LOSSES["xendcg"]([1.0, 2.0, 3.0], Lists([1023, 1023, 0], [0, 3]))
    softmax = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    assert value == pytest.approx(-np.log(softmax[:2]).mean())
    assert_allclose(grad, softmax - [0.5, 0.5, 0.0])


def test_neural_ndcg_without_sinkhorn_steps_holds_no_table_of_pairs(monkeypatch):
    from placet.data.engines import memory

    monkeypatch.setattr(memory, "available", lambda: 10**7)
    lists = Lists(np.arange(3000) % 3, [0, 3000])
    assert LOSSES["neural-ndcg"](np.zeros(3000), lists, k=2)[0] > 0
    with pytest.raises(DataError, match="this loss on a list of 3,000 rows needs about"):
        LOSSES["neural-ndcg"](np.zeros(3000), lists, k=2, sinkhorn=1)
    with pytest.raises(DataError, match="this loss on a list of 2 rows needs about"):
        LOSSES["neural-ndcg"](np.zeros(2), Lists([1, 0], [0, 2]), sinkhorn=10**9)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("lambdarank", {"k": 0}, "k must be at least 1, or None for all places, not 0"),
        ("lambdarank", {"sigma": 0.0}, "sigma must be a finite number above 0, not 0.0"),
        ("lambdaloss", {"mu": -1.0}, "mu must be a finite number of at least 0, not -1.0"),
        ("approx-ndcg", {"temperature": -1.0}, "temperature must be a finite number above 0, not -1.0"),
        ("neural-ndcg", {"k": -2}, "k must be at least 1"),
        ("neural-ndcg", {"sinkhorn": -1}, "sinkhorn must be a number of steps, 0 or more, not -1"),
        ("neural-ndcg", {"sinkhorn": 0.5}, "parameter sinkhorn of the loss must be a whole number, not 0.5"),
        ("pl-topk", {"stage_weight": "map"}, r"stage_weight 'map' is unknown; choose from None, dcg"),
        ("lambdarank", {"discount": lambda place: place}, "discounts must start above 0 and never rise"),
    ],
)
def test_wrong_parameters_are_refused(name, params, message):
    with pytest.raises(ValueError, match=message):
        LOSSES[name]([0.0, 1.0], Lists([1, 0], [0, 2]), **params)


@pytest.mark.parametrize("name", ["approx-ndcg", "neural-ndcg"])
def test_at_a_low_temperature_the_value_is_1_minus_ndcg(name):
    from placet.metrics import ndcg

    s, lists = draw(5)
    params = {"temperature": 1e-3}
    value = LOSSES[name].per_list(s, lists._replace(weight=None), **params)
    expected = 1 - np.nan_to_num(ndcg(s, lists.grade, lists.offsets), nan=1.0)
    expected[1] = 0.0  # of one row
    assert_allclose(value, expected, atol=1e-9)


def test_a_scaled_matrix_has_rows_and_columns_of_sum_one_so_the_value_stays_in_0_1():
    from placet.kernels.losses.smooth_ndcg import scale_to_sums_of_one

    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(6) / 3, size=6)
    columns, rows = np.zeros((2, 500, 6))
    assert 0 < scale_to_sums_of_one(P, 6, 500, columns, rows) < 500
    assert_allclose(P.sum(axis=0), 1.0, atol=1e-8)
    assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    close = Lists([0, 3, 0, 3, 0, 0, 0, 0], [0, 8])
    drawn = 3 * np.random.default_rng(0).normal(size=(300, 8))
    plain, scaled = ([LOSSES["neural-ndcg"](s, close, sinkhorn=steps)[0] for s in drawn] for steps in (0, 500))
    assert min(plain) < 0 <= min(scaled)


def test_scaling_goes_through_scores_far_apart_and_tied():
    lists = Lists([2, 0, 1, 1], [0, 4])
    for s in ([1e4, -1e4, 0.0, 0.0], [0.0] * 4, [5.0, 5.0, -800.0, -800.0]):
        value, gradient = LOSSES["neural-ndcg"](np.array(s), lists, sinkhorn=50)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


def test_stage_weights_sum_to_one_and_cut_what_ndcg_does_not_see():
    from placet.losses.bregman import dcg_shares

    share = dcg_shares(Lists([3, 1, 1, 0, 0, 2, 0], [0, 5, 7]))
    assert_allclose(np.add.reduceat(share, [0, 5]), 1.0)
    s, grade = np.array([0.3, -1.0, 0.4, 2.0]), [2, 0, 0, 0]
    whole = LOSSES["pl-partition"](s, Lists(grade, [0, 4]), stage_weight="dcg")[0]
    assert whole == pytest.approx(LOSSES["pl-partition"](s, Lists(grade, [0, 4]))[0])  # one stage, which is all of NDCG


def test_scaling_goes_on_until_the_value_is_that_of_all_steps():
    s, grade = [1.5, 0.0, 0.0], [1.0, 0.0, 0.0]
    found = LOSSES["neural-ndcg"](np.array(s), Lists(np.array(grade), np.array([0, 3])), sinkhorn=50)[0]
    assert found == pytest.approx(oracle.neural_ndcg(s, grade, sinkhorn=50), abs=1e-10)
