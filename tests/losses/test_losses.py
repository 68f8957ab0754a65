"""Properties that every loss of the tables keeps.  A family adds its names to the exceptions below where a property is not meant."""

import inspect
import pickle
import sys

import numpy as np
import oracle
import pytest
from hypothesis import given, settings, strategies as st
from strategies import lists_and_scores

from placet import threads
from placet.data import Lists
from placet.losses import LOSSES, Bound, needs

# Parameters to try beside the defaults.
SETTINGS: dict[str, list[dict]] = {
    "pl-partition": [{"stage_weight": "dcg"}],
    "pl-topk": [{"k": 2}, {"stage_weight": "dcg"}],
    "bregman-ce": [{"beta": 1.0}],
    "bregman-qnorm": [{"q": 3.0}],
    "bregman": [
        {"psi": ("square", "qnorm"), "alpha": (0.5, 2.0)},
        {"psi": ("ce", "qnorm"), "alpha": (1.0, 2.0), "beta": 0.5},
    ],
    "structrank": [{"w1": 0.5, "w2": 2.0}, {"connections": "none", "w1": 1.5}],
    "pmop-fd": [{"stage_scale": (1.5, -0.5, 0.8)}, {"stage_weight": "dcg"}],
    "lambdarank": [{"k": 2, "sigma": 2.0}, {"k": None}, {"k": 3, "norm": True}],
    "lambdaloss": [{"k": 2}, {"mu": 0.0, "sigma": 0.5}],
    "xendcg": [{"gamma": 1.0}],
    "approx-ndcg": [{"temperature": 0.3}],
    "neural-ndcg": [{"k": 2, "temperature": 3.0}, {"sinkhorn": 50}, {"k": 2, "sinkhorn": 3, "temperature": 2.0}],
    "pmop-backward": [{"form": "exact"}, {"stage_scale": (0.5, 1.0)}],
    "pmop-mh": [{"as_published": True}],
    "rao-kupper": [{"tie": 1.5}, {"tie": -3.0}],
    "davidson": [{"tie": 1.5}, {"tie": -3.0}, {"tie": 800.0}],
}
SAMPLED = {name for name, loss in LOSSES.items() if loss.samples}  # tested by their family
KINKED = {name for name, loss in LOSSES.items() if not loss.smooth}  # derivatives are tested by their family
HVPS = {name: loss.hvp for name, loss in LOSSES.items() if loss.hvp}
CURVATURES = {name: loss.curvature for name, loss in LOSSES.items() if loss.curvature}
LIKELIHOODS = {name for name, loss in LOSSES.items() if loss.law}
LEARNT = {name: loss.learned for name, loss in LOSSES.items() if loss.learned}

CASES = [(name, params) for name in LOSSES for params in [{}, *SETTINGS.get(name, [])]]


def cases(names=LOSSES, without=frozenset()):
    chosen = [case for case in CASES if case[0] in names and case[0] not in without]
    return pytest.mark.parametrize(("name", "params"), chosen, ids=[f"{n}{p or ''}" for n, p in chosen])


def draw_for(data, name, **kwargs):
    return data.draw(lists_and_scores(tied=not LOSSES[name].breaks_ties, **kwargs))


def each_list(s, lists):
    grade, offsets, weight = lists
    for q, w in enumerate(weight):
        rows = slice(offsets[q], offsets[q + 1])
        yield s[rows], grade[rows], w


examples = settings(max_examples=20)


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
    value, grad = LOSSES[name](s, lists, **params)
    rounding = 1e-10 * abs(value)  # that of the value over the step
    np.testing.assert_allclose(grad, expected, rtol=1e-6, atol=1e-7 + rounding)


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
    if not LOSSES[name].exact_curvature:
        assert (curvature >= diagonal - 1e-6).all()
        assert (curvature >= 0).all()
    else:
        np.testing.assert_allclose(curvature, diagonal, rtol=1e-5, atol=1e-6)


@cases(without={name for name, loss in LOSSES.items() if not loss.shift_invariant})
@examples
@given(data=st.data(), shift=st.floats(-100, 100))
def test_shift_of_a_list_changes_nothing(name, params, data, shift):
    s, lists = data.draw(lists_and_scores())
    moved = s + shift * np.repeat(1.0 + np.arange(len(lists.weight)), np.diff(lists.offsets))
    value, grad = LOSSES[name](s, lists, **params)
    moved_value, moved_grad = LOSSES[name](moved, lists, **params)
    assert moved_value == pytest.approx(value, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(moved_grad, grad, rtol=1e-8, atol=1e-9)


@cases(without={name for name, loss in LOSSES.items() if not loss.shift_invariant})
@pytest.mark.parametrize("shift", [1e6, -1e12, 1e17])
def test_a_shift_that_keeps_every_difference_changes_nothing_however_far(name, params, shift):
    s = 64.0 * np.array([0, 1, 0, 2, 1, 3, 3, 0, 1])
    lists = Lists([2, 1, 1, 0, 0, 1, 0, 2, 0], [0, 5, 5, 7, 9], [1.0, 3.0, 2.0, 1.0])
    moved = s + shift * np.repeat([1.0, 0.0, 1.0, 0.0], np.diff(lists.offsets))
    value, grad = LOSSES[name](s, lists, **params)
    moved_value, moved_grad = LOSSES[name](moved, lists, **params)
    assert moved_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(moved_grad, grad, rtol=1e-9, atol=1e-12)
    if name in HVPS:
        v = np.arange(9.0)
        products = [HVPS[name](x, lists, v, **params) for x in (moved, s)]
        np.testing.assert_allclose(*products, rtol=1e-9, atol=1e-12)


def test_scores_that_differ_by_more_than_their_size_are_left_alone():
    value, grad = LOSSES["listmle"]([1e17, 1.0, 0.0], Lists([2, 1, 0], [0, 3]))
    assert value == pytest.approx(np.log1p(np.exp(-1)))
    np.testing.assert_allclose(grad, [0.0, -1 / (1 + np.e), 1 / (1 + np.e)])
    low, high = -1.7e308, 1.7e308
    with np.errstate(over="ignore"):  # of kernels that are not compiled
        assert LOSSES["ranknet"]([high, low], Lists([1, 0], [0, 2]))[0] == 0.0


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
    if LOSSES[name].law == "pairs":
        n = 2
    if "stage_weight" in params:
        pytest.skip("weighed stages are no likelihood")
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
        k
        for m in list(sys.modules.values())
        if m.__name__.startswith("placet.kernels")
        for k in vars(m).values()
        if not isinstance(k, type)
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
    with pytest.raises(ValueError, match=r"the vector has shape \(3,\) and the lists have 2 rows"):
        HVPS[name]([0.0, 1.0], Lists([1, 0], [0, 2]), [1.0, 2.0, 3.0])


def test_every_record_states_its_formula_and_its_source():
    for name, loss in LOSSES.items():
        assert inspect.getdoc(loss.plan), f"{name} does not state its formula"
        assert loss.reference, name
        assert set(loss.scaling) <= set(loss.learned) <= set(loss.parameters), name


@cases(without=SAMPLED)
@examples
@given(data=st.data())
def test_values_per_list_are_those_of_the_lists_alone(name, params, data):
    s, lists = draw_for(data, name)
    values = LOSSES[name].per_list(s, lists, **params)
    alone = [LOSSES[name](x, Lists(g, [0, len(x)], [w]), **params)[0] for x, g, w in each_list(s, lists)]
    np.testing.assert_allclose(values, alone, rtol=1e-9, atol=1e-11)
    assert values.sum() == pytest.approx(LOSSES[name](s, lists, **params)[0], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_scaling_of_scores_matters_unless_the_record_says_so(name):
    rng = np.random.default_rng(2)
    s, lists = rng.normal(size=12), Lists(rng.integers(0, 3, 12), [0, 6, 12])
    same = LOSSES[name](2 * s, lists)[0] == pytest.approx(LOSSES[name](s, lists)[0], rel=1e-12)
    assert same == LOSSES[name].scale_invariant


@cases(HVPS, without=SAMPLED)
@examples
@given(data=st.data())
def test_convex_losses_bend_up_along_every_direction(name, params, data):
    s, lists = draw_for(data, name)
    v = np.cos(1.0 + np.arange(len(s)))
    along = float(v @ LOSSES[name].hvp(s, lists, v, **params))
    if LOSSES[name].convex or LOSSES[name].reweights:  # with the weights held
        assert along >= -1e-9 * max(1.0, abs(along))


@pytest.mark.parametrize("name", [k for k, v in LOSSES.items() if not v.convex and v.hvp and not v.reweights])
def test_losses_that_are_not_convex_bend_down_somewhere(name):
    rng, least = np.random.default_rng(0), 0.0
    lists = Lists([1, 1, 0, 1, 0, 0], [0, 3, 6])
    for _ in range(200):
        s, v = rng.normal(size=6), rng.normal(size=6)
        least = min(least, float(v @ LOSSES[name].hvp(s, lists, v)))
    assert least < -1e-3


@pytest.mark.parametrize("name", sorted(set(LOSSES) - SAMPLED))
def test_grades_count_by_value_only_where_the_record_says_so(name):
    rng = np.random.default_rng(3)
    s, grade = rng.normal(0, 0.01, 12), rng.permutation(12) % 4 + 1
    before, after = (LOSSES[name](s, Lists(g, [0, 6, 12]))[0] for g in (grade, grade**2))
    assert (before != pytest.approx(after, rel=1e-9)) == LOSSES[name].values_of_grades


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    ("s", "lists", "message"),
    [
        ([0.0, np.nan], Lists([1, 0], [0, 2]), "row 1: score nan is not finite"),
        ([0.0, 1.0], Lists([1, np.nan], [0, 2]), "grades must be finite; number 1 is nan"),
        ([0.0, 1.0], Lists([1, 0], [0, 2], [-1.0]), "list 0: weight -1.0 is negative"),
        ([0.0, 1.0], Lists([1, 0], [0, 2], [np.inf]), "weights must be finite"),
        ([0.0, 1.0], Lists([1, 0], [0, 1.5, 2]), "offsets must be whole numbers"),
        ([0.0, 1.0], Lists([1, 0], [0, 3]), "offsets must rise from 0 to the number of rows, 2"),
        ([0.0, 1.0], Lists([1, 0], [1, 2]), "offsets must rise from 0"),
        ([0.0, 1.0], Lists([1, 0], [0, 2, 1, 2]), "offsets must rise from 0"),
        ([0.0], Lists([1, 0], [0, 2]), "score column has shape"),
    ],
)
def test_what_is_no_list_is_refused(name, s, lists, message):
    with pytest.raises(ValueError, match=message):
        LOSSES[name](s, lists)


@pytest.mark.parametrize("name", LOSSES)
def test_a_list_of_weight_zero_is_not_looked_at(name):
    s, lists = np.array([0.3, -0.2, 1e308, -1e308]), Lists([1, 0, 1, 0], [0, 2, 4], [1.0, 0.0])
    value, grad = LOSSES[name](s, lists)
    alone, alone_grad = LOSSES[name](s[:2], Lists([1, 0], [0, 2]))
    assert value == alone
    np.testing.assert_array_equal(grad, [*alone_grad, 0.0, 0.0])


@cases(without=SAMPLED)
@examples
@given(data=st.data())
def test_bound_is_the_loss_per_unit_weight(name, params, data):
    s, lists = draw_for(data, name)
    total = float(np.sum(lists.weight)) or 1.0
    bound = Bound(name, lists, params)
    value, grad = LOSSES[name](s, lists, **params)
    for _ in range(2):  # the second time from what was kept
        got, got_grad = bound.value_and_grad(s)
        assert got == pytest.approx(value / total, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(got_grad, grad / total, rtol=1e-9, atol=1e-12)
    if len(lists.weight):
        which = np.arange(0, len(lists.weight), 2)
        rows, part = bound.part(which)
        offsets = np.append(0, np.cumsum(np.diff(lists.offsets)[which]))
        own = Lists(lists.grade[rows], offsets, lists.weight[which])
        expected = LOSSES[name](s[rows], own, **params)[0] / (own.weight.sum() or 1.0)
        if not LOSSES[name].draws:
            assert part.value_and_grad(s[rows])[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_bound_sends_a_search_back_from_scores_that_are_not_finite():
    bound = Bound("structrank", Lists([1, 0, 2], [0, 3]))
    value, grad = bound.value_and_grad(np.array([0.0, np.nan, np.inf]))
    assert value == np.inf
    np.testing.assert_array_equal(grad, 0.0)


@pytest.mark.parametrize("name", ["bregman-ce", "bregman-square", "bregman", "bregman-qnorm"])
def test_the_best_level_is_where_the_slope_vanishes(name):
    rng = np.random.default_rng(4)
    s, lists = rng.normal(0, 0.01, 12), Lists(rng.integers(0, 3, 12), [0, 6, 12])
    bound = Bound(name, lists)
    level = bound.best_level(s)
    here, up, down = (bound.value_and_grad(s + level + e)[0] for e in (0.0, 1e-3, -1e-3))
    assert here <= min(up, down)
    assert Bound("pmop-fd", lists).best_level(s) == 0.0


def test_needs_says_in_one_way_what_a_loss_lacks():
    assert needs("pmop-fd", "curvature", who="TreeRanker") is LOSSES["pmop-fd"]
    with pytest.raises(
        ValueError, match=r"TreeRanker needs a loss with curvature, which 'pmop-mh' does not offer; choose from pl-"
    ):
        needs("pmop-mh", "curvature", who="TreeRanker")
    with pytest.raises(ValueError, match="loss 'plackett' is unknown"):
        needs("plackett", who="TreeRanker")


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("lambdarank", {"k": 2.7}, "parameter k of the loss must be a whole number or none, not 2.7"),
        ("pl-topk", {"k": "10"}, "parameter k of the loss must be a whole number or none, not '10'"),
        ("neural-ndcg", {"k": float("nan")}, "parameter k of the loss must be a whole number or none, not nan"),
        ("neural-ndcg", {"sinkhorn": "a"}, "parameter sinkhorn of the loss must be a whole number, not 'a'"),
        ("lambdarank", {"norm": "no"}, "parameter norm of the loss must be true or false, not 'no'"),
        ("structrank", {"w1": "a"}, "parameter w1 of the loss must be a number, not 'a'"),
        (
            "xendcg",
            {"gama": 1},
            r"parameter 'gama' is unknown to the loss .did you mean 'gamma'..; choose from gamma, ",
        ),
        ("pl-partition", {"gain": "nonsense"}, r"gain 'nonsense' is unknown; choose from exp2, "),
        ("pmop-fd", {"discount": "nonsense"}, r"discount 'nonsense' is unknown; choose from log2, "),
    ],
)
def test_parameters_of_a_wrong_kind_are_refused(name, params, message):
    with pytest.raises(ValueError, match=message):
        LOSSES[name]([0.0, 1.0], Lists([1, 0], [0, 2]), **params)


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if "gain" in loss.parameters])
def test_a_grade_without_a_gain_is_found_in_the_row_of_the_caller(name):
    lists = Lists([1, 0, 2, -1, 3, -2], [0, 3, 6])
    params = {"stage_weight": "dcg"} if "stage_weight" in LOSSES[name].parameters else {}
    message = r"row 3: the gain of grade -1 is -0.5, not a finite number of at least 0 \(2 such rows\)"
    with pytest.raises(ValueError, match=message) as found:
        LOSSES[name](np.zeros(6), lists, **params)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)  # workers send it to the parent process


def test_scores_that_a_caller_hands_to_a_bound_loss_are_checked():
    bound, masked = Bound("pl-partition", Lists([2, 0, 1], [0, 3])), np.ma.masked_array(np.zeros(3), [1, 0, 0])
    for call in (bound.value_and_grad, bound.value_grad_slopes, bound.per_list, bound.curvature):
        with pytest.raises(ValueError, match="masked"):
            call(masked)
    with pytest.raises(ValueError, match="masked"):
        bound.hvp(np.zeros(3), masked)
    own = bound.evaluate(np.array([0.5, 0.0, -1.0]), {})
    assert own[0] == bound.value_and_grad([0.5, 0.0, -1.0])[0]
