"""Properties that every loss of the tables keeps.  A family adds its names to the exceptions below where a property is not meant."""

import inspect
import sys

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import lists_and_scores

from placet.data import Lists
from placet.losses import CURVATURES, HVPS, LEARNT, LIKELIHOODS, LOSSES
from placet.losses import apply as threads

# Parameters to try beside the defaults.
SETTINGS: dict[str, list[dict]] = {
    "pl-topk": [{"k": 2}],
}

# Exceptions, by property.
BREAKS_TIES = {
    "listmle",
    "pl-topk",
}  # tied rows take a random order: these see distinct grades where the order would show
SAMPLED: set[str] = set()  # the gradient is a random estimate: tested by its family
KINKED: set[str] = set()  # not differentiable everywhere
NOT_SHIFT_INVARIANT: set[str] = set()  # adding a constant to a list's scores changes the value
CURVATURE_IS_A_BOUND: set[str] = set()  # the curvature is an upper bound of the diagonal, as its docstring states

SETTINGS |= {
    "bregman-ce": [{"beta": 1.0}],
    "bregman-qnorm": [{"q": 3.0}],
    "bregman": [
        {"psi": ("square", "qnorm"), "alpha": (0.5, 2.0)},
        {"psi": ("ce", "qnorm"), "alpha": (1.0, 2.0), "beta": 0.5},
    ],
    "structrank": [{"w1": 0.5, "w2": 2.0}, {"connections": "none", "w1": 1.5}],
}
KINKED |= {
    "bregman-ce",
    "bregman-qnorm",
    "bregman",
    "cosine",
}  # steep, or kinked at scores of 0: derivatives in test_bregman.py
NOT_SHIFT_INVARIANT |= {"bregman-ce", "bregman-square", "bregman-qnorm", "bregman", "cosine"}
CURVATURE_IS_A_BOUND |= {"structrank"}

SETTINGS |= {
    "pmop-fd": [{"stage_scale": (1.5, -0.5, 0.8)}],
    "pmop-backward": [{"form": "exact"}, {"stage_scale": (0.5, 1.0)}],
    "pmop-mh": [{"as_published": True}],
}
SAMPLED |= {"pmop-gibbs", "pmop-mh"}
CURVATURE_IS_A_BOUND |= {"pmop-fd", "pmop-backward"}

SETTINGS |= {"rao-kupper": [{"alpha": 1.5}, {"alpha": -3.0}], "davidson": [{"beta": 1.5}, {"beta": -3.0}]}
KINKED |= {"ranksvm"}  # derivatives in test_pairwise.py
OF_PAIRS = {"ranknet", "rao-kupper", "davidson"}  # likelihoods of the results of a pair

CASES = [(name, params) for name in LOSSES for params in [{}, *SETTINGS.get(name, [])]]


def cases(names=LOSSES, without=frozenset()):
    chosen = [case for case in CASES if case[0] in names and case[0] not in without]
    return pytest.mark.parametrize(("name", "params"), chosen, ids=[f"{n}{p or ''}" for n, p in chosen])


def draw_for(data, name, **kwargs):
    return data.draw(lists_and_scores(tied=name not in BREAKS_TIES, **kwargs))


def each_list(s, lists):
    grade, offsets, weight = lists
    for q, w in enumerate(weight):
        rows = slice(offsets[q], offsets[q + 1])
        yield s[rows], grade[rows], w


examples = settings(max_examples=20, deadline=None)


@cases(without=SAMPLED)
@examples
@given(data=st.data())
def test_value_is_the_formula(name, params, data):
    s, lists = draw_for(data, name, max_rows=5)
    expected = sum(
        w * oracle.VALUES[name](x.tolist(), g.tolist(), **params) for x, g, w in each_list(s, lists) if len(x) > 1
    )
    assert LOSSES[name](s, lists, **params)[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@cases(without=SAMPLED | KINKED)
@examples
@given(data=st.data())
def test_gradient_is_the_derivative(name, params, data):
    s, lists = data.draw(lists_and_scores())
    expected = oracle.central_difference(lambda x: LOSSES[name](x, lists, **params)[0], s)
    np.testing.assert_allclose(LOSSES[name](s, lists, **params)[1], expected, rtol=1e-6, atol=1e-7)


@cases(HVPS, without=SAMPLED | KINKED)
@examples
@given(data=st.data())
def test_hessian_vector_product_is_the_derivative_of_the_gradient(name, params, data):
    s, lists = data.draw(lists_and_scores())
    hessian = oracle.central_difference(lambda x: LOSSES[name](x, lists, **params)[1], s)
    v = np.cos(1.0 + np.arange(len(s)))
    np.testing.assert_allclose(HVPS[name](s, lists, v, **params), v @ hessian if len(s) else v, rtol=1e-5, atol=1e-6)


@cases(CURVATURES, without=SAMPLED | KINKED)
@examples
@given(data=st.data())
def test_curvature_is_the_diagonal_of_the_hessian(name, params, data):
    s, lists = data.draw(lists_and_scores())
    hessian = oracle.central_difference(lambda x: LOSSES[name](x, lists, **params)[1], s)
    diagonal = np.diag(hessian) if len(s) else np.zeros(0)
    curvature = CURVATURES[name](s, lists, **params)
    if name in CURVATURE_IS_A_BOUND:
        assert (curvature >= diagonal - 1e-6).all()
        assert (curvature >= 0).all()
    else:
        np.testing.assert_allclose(curvature, diagonal, rtol=1e-5, atol=1e-6)


@cases(without=NOT_SHIFT_INVARIANT)
@examples
@given(data=st.data(), shift=st.floats(-100, 100))
def test_shift_of_a_list_changes_nothing(name, params, data, shift):
    s, lists = data.draw(lists_and_scores())
    moved = s + shift * np.repeat(1.0 + np.arange(len(lists.weight)), np.diff(lists.offsets))
    value, grad = LOSSES[name](s, lists, **params)
    moved_value, moved_grad = LOSSES[name](moved, lists, **params)
    assert moved_value == pytest.approx(value, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(moved_grad, grad, rtol=1e-8, atol=1e-9)


@cases(without=SAMPLED)
@examples
@given(data=st.data())
def test_row_order_does_not_matter(name, params, data):
    s, lists = draw_for(data, name)
    order = np.concatenate(
        [np.zeros(0, int)]
        + [
            np.array(data.draw(st.permutations(range(int(a), int(b)))), dtype=int)
            for a, b in zip(lists.offsets, lists.offsets[1:])
        ]
    )
    value, grad = LOSSES[name](s, lists, **params)
    other_value, other_grad = LOSSES[name](s[order], lists._replace(grade=lists.grade[order]), **params)
    assert other_value == pytest.approx(value, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(other_grad, grad[order], rtol=1e-9, atol=1e-11)
    v = np.sin(1.0 + np.arange(len(s)))
    for table, args, other_args in ((CURVATURES, (), ()), (HVPS, (v,), (v[order],))):
        if name in table:
            second = table[name](s, lists, *args, **params)
            other = table[name](s[order], lists._replace(grade=lists.grade[order]), *other_args, **params)
            np.testing.assert_allclose(other, second[order], rtol=1e-9, atol=1e-11)


@cases(without=SAMPLED)
@examples
@given(data=st.data())
def test_weight_2_is_the_list_twice(name, params, data):
    s, lists = draw_for(data, name)
    n = len(s)
    twice = Lists(np.tile(lists.grade, 2), np.append(lists.offsets, n + lists.offsets[1:]), np.tile(lists.weight, 2))
    value, grad = LOSSES[name](s, lists._replace(weight=2 * lists.weight), **params)
    value_twice, grad_twice = LOSSES[name](np.tile(s, 2), twice, **params)
    assert value_twice == pytest.approx(value, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(grad_twice[:n] + grad_twice[n:], grad, rtol=1e-11, atol=1e-11)


@cases()
@examples
@given(data=st.data())
def test_finite_at_scores_of_10_000(name, params, data):
    s, lists = data.draw(lists_and_scores(spread=10.0))
    s = 10_000 * np.sign(s) * (np.abs(s) > 3) + s
    value, grad = LOSSES[name](s, lists, **params)
    assert np.isfinite(value)
    assert np.isfinite(grad).all()
    if name in CURVATURES:
        curvature = CURVATURES[name](s, lists, **params)
        assert np.isfinite(curvature).all()
        assert (curvature >= 0).all()
    if name in HVPS:
        assert np.isfinite(HVPS[name](s, lists, np.ones(len(s)), **params)).all()


@cases(LIKELIHOODS)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_likelihood_sums_to_1_over_all_outcomes(name, params, n):
    if name in OF_PAIRS:
        n = 2
    s = np.random.default_rng(n).normal(0, 1.5, n)
    outcomes = list(oracle.OUTCOMES[name](n))
    total = sum(np.exp(-LOSSES[name](s, Lists(grade, [0, n]), **params)[0]) for grade in outcomes)
    assert total == pytest.approx(1.0, abs=1e-9)


@pytest.mark.jit
@cases()
def test_two_threads_give_the_same_bytes(name, params):
    rng = np.random.default_rng(5)
    sizes = rng.integers(0, 40, 1200)
    lists = Lists(rng.integers(0, 4, sizes.sum()), np.append(0, np.cumsum(sizes)), rng.uniform(0.5, 2, len(sizes)))
    s = rng.normal(size=sizes.sum())
    before = threads.get_threads()
    results = []
    try:
        for n in (1, 2):
            threads.set_threads(n)
            value, grad = LOSSES[name](s, lists, **params)
            results.append((value, grad.tobytes()))
    finally:
        threads.set_threads(before)
    assert results[0] == results[1]


@pytest.mark.parametrize("late", [0, 1999])
def test_one_list_out_of_order_among_many_ranges(late):
    # the first or the last list alone is not in descending grade: ranges that saw nothing wrong are done again as well
    rng = np.random.default_rng(5)
    grade = np.sort(rng.integers(0, 4, (2000, 20)))[:, ::-1].astype(float)
    s, offsets = rng.normal(size=grade.size), np.arange(0, grade.size + 1, 20)
    value, grad = LOSSES["pmop-fd"](s, Lists(grade.ravel(), offsets))
    turned = grade.copy()
    turned[late] = turned[late, ::-1]
    moved, back = s.reshape(grade.shape).copy(), grad.reshape(grade.shape).copy()
    moved[late], back[late] = moved[late, ::-1].copy(), back[late, ::-1].copy()
    other, other_grad = LOSSES["pmop-fd"](moved.ravel(), Lists(turned.ravel(), offsets))
    assert other == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(other_grad, back.ravel(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", LEARNT)
@examples
@given(data=st.data())
def test_parameter_gradient_is_the_derivative(name, data):
    s, lists = data.draw(lists_and_scores())
    start = dict(LEARNT[name])
    value, grad, slopes = LOSSES[name](s, lists, **start, parameter_gradient=True)
    plain_value, plain_grad = LOSSES[name](s, lists, **start)
    assert value == plain_value
    np.testing.assert_array_equal(grad, plain_grad)
    assert set(slopes) == set(start)
    for parameter, at in start.items():
        up, down = (LOSSES[name](s, lists, **start | {parameter: at + e})[0] for e in (1e-5, -1e-5))
        assert slopes[parameter] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-7)


@cases()
def test_no_rows_and_single_rows_cost_nothing(name, params):
    for s, lists in (([], Lists([], [0])), ([], Lists([], [0, 0])), ([3.0], Lists([1], [0, 0, 1, 1]))):
        value, grad = LOSSES[name](s, lists, **params)
        assert value == 0
        np.testing.assert_array_equal(grad, np.zeros(len(s)))


@pytest.mark.parametrize("name", LOSSES)
def test_frozen_columns_compile_nothing_new(name):
    """Data sets hand over read-only columns; a kernel of its own for each mixture of them would take seconds each."""
    s, grade, offsets, weight = np.zeros(4), np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 4]), np.ones(1)
    expected = LOSSES[name](s, Lists(grade, offsets, weight))
    kernels = [
        k for m in list(sys.modules.values()) if m.__name__.startswith("placet.kernels") for k in vars(m).values()
    ]
    before = sum(len(k.signatures) for k in kernels if hasattr(k, "signatures"))
    for column in (s, grade, offsets, weight):
        column.flags.writeable = False
        value, grad = LOSSES[name](s, Lists(grade, offsets, weight))
        assert value == expected[0]
        np.testing.assert_array_equal(grad, expected[1])
    assert sum(len(k.signatures) for k in kernels if hasattr(k, "signatures")) == before


@pytest.mark.parametrize("name", HVPS)
def test_a_vector_of_another_length_is_refused(name):
    with pytest.raises(ValueError, match=r"the vector has shape \(3,\) and the scores \(2,\)"):
        HVPS[name]([0.0, 1.0], Lists([1, 0], [0, 2]), [1.0, 2.0, 3.0])


def test_tables_agree():
    assert set(CURVATURES) <= set(LOSSES)
    assert set(HVPS) <= set(LOSSES)
    assert set(LIKELIHOODS) <= set(LOSSES)
    assert set(LEARNT) <= set(LOSSES)
    for name, loss in LOSSES.items():
        assert inspect.getdoc(loss), f"{name} does not state its formula"
