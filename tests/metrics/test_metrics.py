"""Metrics against plain Python over every way to break ties, and properties over the table."""

import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import oracle_metrics as oracle
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse, stats

from placet import metrics as m

SCORES = st.sampled_from([-math.inf, -1.0, 0.0, 0.0, 0.5, 2.0, math.inf])
GRADES = st.integers(0, 4)
BINARY = st.integers(0, 1)
DEPTH = st.sampled_from([None, 1, 2, 3, 10])
CHECK = settings(max_examples=60)


@st.composite
def some_lists(draw, max_rows=5, max_lists=3, grades=GRADES, scores=SCORES):
    """``(s, grade, offsets)``: lists of 0 to ``max_rows`` rows, in no order, with many ties and rows not retrieved."""
    sizes = draw(st.lists(st.integers(0, max_rows), min_size=1, max_size=max_lists))
    n = sum(sizes)
    s = draw(st.lists(scores, min_size=n, max_size=n))
    grade = draw(st.lists(grades, min_size=n, max_size=n))
    return np.array(s, float), np.array(grade, float), np.append(0, np.cumsum(sizes)).astype(np.int64)


def by_list(function, s, x, offsets, *args, **params):
    """The oracle on each list: s and x as plain lists."""
    pairs = pairwise(offsets)
    return [function(s[a:b].tolist(), np.asarray(x)[a:b].tolist(), *args, **params) for a, b in pairs]


# Each metric equals its formula, averaged over every order of tied rows.


@given(some_lists(), DEPTH, st.sampled_from(["exp2", "linear", "log2"]))
@CHECK
def test_ndcg_is_the_mean_over_tie_breaks(data, k, gain):
    formula = {"exp2": lambda r: 2**r - 1, "linear": lambda r: r, "log2": lambda r: math.log2(1 + r)}[gain]
    np.testing.assert_allclose(m.ndcg(*data, k, gain=gain), by_list(oracle.ndcg, *data, k, formula), atol=1e-12)


@given(some_lists(), DEPTH)
@CHECK
def test_ndcg_takes_functions_as_gain_and_discount(data, k):
    ours = m.ndcg(*data, k, gain=lambda r: r * r, discount=lambda i: 1 / (i + 3))
    np.testing.assert_allclose(ours, by_list(oracle.ndcg, *data, k, lambda r: r * r, lambda i: 1 / (i + 3)), atol=1e-12)


@pytest.mark.parametrize("name", ["average_precision", "precision", "recall", "mrr"])
@given(data=some_lists(), k=DEPTH, threshold=st.sampled_from([None, 1, 2, 3.5]))
@CHECK
def test_binary_metrics_are_the_mean_over_tie_breaks(name, data, k, threshold):
    expected = by_list(getattr(oracle, name), *data, k, lambda r: r > 0 if threshold is None else r >= threshold)
    np.testing.assert_allclose(m.METRICS[name](*data, k, threshold=threshold), expected, atol=1e-12)


@given(some_lists(), DEPTH, st.sampled_from([4, 4, 5, 7]))
@CHECK
def test_err_is_the_mean_over_tie_breaks(data, k, max_grade):
    ours = m.err(*data, k, max_grade=max_grade)
    np.testing.assert_allclose(ours, by_list(oracle.err, *data, k, max_grade), atol=1e-12)


def test_err_takes_the_largest_grade_passed_unless_told():
    s, grade, offsets = [3.0, 2.0, 1.0, 1.0], [1, 0, 3, 0], [0, 2, 4]
    np.testing.assert_array_equal(m.err(s, grade, offsets), m.err(s, grade, offsets, max_grade=3))
    np.testing.assert_allclose(m.err([1.0], [1], [0, 1], max_grade=4), [1 / 16])  # (2^1 - 1)/2^4


@pytest.mark.jit
def test_long_tied_blocks_agree_with_sampling_of_their_orders():
    rng = np.random.default_rng(0)
    grade = rng.integers(0, 5, 300)
    n = 4000
    s = rng.random((n, 300))
    offsets = np.arange(n + 1) * 300
    for name in ("ndcg", "average_precision", "mrr", "err", "precision", "recall"):
        for k in (None, 7):
            sampled = m.METRICS[name](s.ravel(), np.tile(grade, n), offsets, k)
            exact = m.METRICS[name](np.zeros(300), grade, [0, 300], k)[0]
            assert abs(sampled.mean() - exact) < 5 * sampled.std() / math.sqrt(n) + 1e-12, (name, k)


@pytest.mark.parametrize("share", [0.0005, 0.3])
def test_a_tied_block_of_fifty_thousand_rows_is_exact_and_quick(share):
    n = 50_000
    grade = (np.arange(n) < share * n).astype(float)
    r = int(grade.sum())
    left = np.log1p(-r / (n - np.arange(n - r)))  # chance that the next row is irrelevant too, at each place
    first = np.exp(np.append(0.0, np.cumsum(left))) * r / (n - np.arange(n - r + 1))
    expected = (first / np.arange(1, n - r + 2)).sum()
    np.testing.assert_allclose(m.mrr(np.zeros(n), grade, [0, n]), [expected], rtol=1e-9)


# Propensity-scored metrics.


@st.composite
def labelled_points(draw):
    s, grade, offsets = draw(some_lists(grades=BINARY))
    p = draw(st.lists(st.sampled_from([0.1, 0.25, 0.5, 1.0]), min_size=len(s), max_size=len(s)))
    return s, grade, offsets, np.array(p)


def propensity_oracle(function, s, grade, offsets, p, k):
    """Value and best value of each list, and which lists have a true label."""
    value, best = [], []
    for a, b in pairwise(offsets):
        g, q = grade[a:b].tolist(), p[a:b].tolist()
        value.append(function(s[a:b].tolist(), g, k, q))
        best.append(function([r / x for r, x in zip(g, q)], g, k, q))
    return np.array(value), np.array(best), m.recall(s, grade, offsets) >= 0


@pytest.mark.parametrize(("name", "function"), [("psp", oracle.psp_sum), ("psndcg", oracle.psdcg_share)])
@given(data=labelled_points(), k=st.sampled_from([1, 2, 3, 10]))
@CHECK
def test_propensity_scores_are_ratios_of_sums(name, function, data, k):
    s, grade, offsets, p = data
    value, best, defined = propensity_oracle(function, s, grade, offsets, p, k)
    ours = {n: m.METRICS[name](s, grade, offsets, k, propensity=p, normalize=n) for n in ("all", "list", "none")}
    for values in ours.values():
        np.testing.assert_array_equal(np.isnan(values), ~defined)
    np.testing.assert_allclose(ours["none"][defined], value[defined], atol=1e-12)
    np.testing.assert_allclose(ours["list"][defined], value[defined] / best[defined], atol=1e-12)
    if defined.any():
        np.testing.assert_allclose(ours["all"][defined].mean(), value.sum() / best.sum(), atol=1e-12)


def test_labels_that_were_not_proposed_lower_the_score():
    short = m.psp([2.0, 1.0], [1, 0], [0, 2], 2, propensity=[0.5, 0.5])
    whole = m.psp([2.0, 1.0, -math.inf], [1, 0, 1], [0, 3], 2, propensity=[0.5, 0.5, 0.25])
    np.testing.assert_allclose([short[0], whole[0]], [1.0, 2 / (2 + 4)])


def test_propensities_follow_the_formula_and_rise_with_the_count():
    a, b, n = 0.6, 2.6, 490_449
    c = (math.log(n) - 1) * (b + 1) ** a
    np.testing.assert_allclose(m.propensities([7], n, a, b), [1 / (1 + c * math.exp(-a * math.log(7 + b)))])
    assert (np.diff(m.propensities(np.arange(100), 1000)) > 0).all()


# Subtopics.


@st.composite
def judged_lists(draw):
    s, _, offsets = draw(some_lists(max_rows=4))
    rows = draw(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=len(s), max_size=len(s)))
    return s, np.array(rows, dtype=float).reshape(len(s), 3), offsets


@pytest.mark.parametrize("name", ["alpha_ndcg", "err_ia"])
@given(data=judged_lists(), k=DEPTH, alpha=st.sampled_from([0.0, 0.25, 0.5, 1.0]))
@CHECK
def test_subtopic_metrics_are_the_mean_over_tie_breaks(name, data, k, alpha):
    s, judged, offsets = data
    expected = by_list(getattr(oracle, name), s, judged, offsets, k, alpha)
    np.testing.assert_allclose(m.METRICS[name](s, judged, offsets, k, alpha=alpha), expected, atol=1e-12)
    np.testing.assert_array_equal(
        m.METRICS[name](s, sparse.csr_array(judged), offsets, k, alpha=alpha),
        m.METRICS[name](s, judged, offsets, k, alpha=alpha),
    )


@given(judged_lists(), DEPTH)
@CHECK
def test_the_greedy_order_has_value_one(data, k):
    _, judged, offsets = data
    s = np.zeros(len(judged))
    for a, b in pairwise(offsets):
        s[a + np.array(oracle.greedy_order(judged[a:b].tolist(), 0.5), dtype=int)] = -np.arange(b - a)
    values = m.alpha_ndcg(s, judged, offsets, k)
    np.testing.assert_allclose(values[~np.isnan(values)], 1.0)


def test_the_greedy_ideal_does_not_depend_on_row_order_where_gains_tie():
    rng = np.random.default_rng(7)
    for _ in range(50):
        judged = (rng.random((7, 5)) < 0.4).astype(float)
        s = rng.permutation(7).astype(float)
        orders = [rng.permutation(7) for _ in range(6)]
        values = [m.alpha_ndcg(s[order], judged[order], [0, 7], alpha=0.5)[0] for order in orders]
        np.testing.assert_allclose(values, oracle.alpha_ndcg(s.tolist(), judged.tolist()))


@given(some_lists(grades=BINARY), DEPTH)
@CHECK
def test_one_subtopic_without_novelty_is_plain_ndcg(data, k):
    s, grade, offsets = data
    np.testing.assert_allclose(m.alpha_ndcg(s, grade[:, None], offsets, k, alpha=0), m.ndcg(*data, k), atol=1e-12)


# Agreement of two orders.


@pytest.mark.parametrize("name", ["kendall_tau", "spearman_rho"])
@given(data=some_lists(max_rows=9))
@CHECK
def test_rank_correlations(name, data):
    np.testing.assert_allclose(m.METRICS[name](*data), by_list(getattr(oracle, name), *data), atol=1e-12)


@given(some_lists(max_rows=9))
@CHECK
def test_footrule_is_the_sum_of_rank_differences_over_its_maximum(data):
    n = np.diff(data[2])
    total = np.where(n > 1, by_list(oracle.footrule, *data), np.nan)
    np.testing.assert_allclose(m.footrule(*data, normalize=False), total)
    np.testing.assert_allclose(m.footrule(*data), total / np.where(n > 1, n * n // 2, 1))


def test_the_footrule_of_a_reversed_order_is_its_maximum():
    for n in range(2, 8):
        assert m.footrule(np.arange(n), -np.arange(n), [0, n]) == [1.0]


@given(some_lists(max_rows=4, max_lists=2), DEPTH, st.sampled_from([0.3, 0.9]))
@CHECK
def test_rbo_is_the_mean_over_both_tie_breaks(data, k, p):
    s, grade, offsets = data
    s = np.where(np.isinf(s), np.sign(s) * 9, s)  # -inf is a score like others here
    np.testing.assert_allclose(m.rbo(*data, k, p=p), by_list(oracle.rbo, s, grade, offsets, k, p), atol=1e-12)


def test_rank_correlations_equal_scipy_on_long_lists():
    rng = np.random.default_rng(1)
    sizes = [2, 500, 3, 1001]
    offsets = np.append(0, np.cumsum(sizes))
    s, grade = rng.normal(size=offsets[-1]).round(1), rng.integers(0, 7, offsets[-1])
    pairs = list(pairwise(offsets))
    tau = [stats.kendalltau(s[a:b], grade[a:b]).statistic for a, b in pairs]
    rho = [stats.spearmanr(s[a:b], grade[a:b]).statistic for a, b in pairs]
    np.testing.assert_allclose(m.kendall_tau(s, grade, offsets), tau)
    np.testing.assert_allclose(m.spearman_rho(s, grade, offsets), rho)


# Properties of every metric of the table.

SPECS = [
    *("ndcg", "ndcg@2", "ndcg@3(gain=linear)", "err(max_grade=4)", "err@2(max_grade=4)", "map", "map@2", "p", "p@3"),
    *(
        "r@2",
        "rr",
        "rr@2",
        "psp@2(normalize=list)",
        "psndcg@3(normalize=list)",
        "alpha_ndcg",
        "alpha_ndcg@2(alpha=0.3)",
    ),
    *("err_ia", "err_ia@2", "kendall_tau", "spearman_rho", "footrule", "rbo", "rbo@2(p=0.5)"),
]
NORMALIZED = ["ndcg", "ndcg@2", "map", "r", "rr", "psp@2(normalize=list)", "psndcg@3(normalize=list)"]


def test_every_metric_of_the_table_is_put_to_the_properties():
    assert {m.metric(spec).name for spec in SPECS} == set(m.METRICS)


def apply(spec, s, grade, offsets):
    """A metric with the columns it needs derived from the grade, so that they go with their rows."""
    metric = m.metric(spec)
    if metric.name in ("alpha_ndcg", "err_ia"):
        return metric(s, np.column_stack([grade > 1, grade % 2 == 1]), offsets)
    return metric(s, grade, offsets, propensity=1 / (1 + grade))


@pytest.mark.parametrize("spec", SPECS)
@given(data=some_lists(), seed=st.integers(0, 9))
@settings(max_examples=25)
def test_row_order_list_order_and_monotone_scores_change_nothing(spec, data, seed):
    s, grade, offsets = data
    rng = np.random.default_rng(seed)
    before = apply(spec, *data)
    rows = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(offsets)]).astype(int)
    np.testing.assert_allclose(apply(spec, s[rows], grade[rows], offsets), before, atol=1e-12)
    np.testing.assert_allclose(apply(spec, np.arctan(s * 3) - np.where(s == -np.inf, np.inf, 0), *data[1:]), before)
    lists = rng.permutation(len(offsets) - 1)
    rows = np.concatenate([np.arange(offsets[q], offsets[q + 1]) for q in lists])
    moved = np.append(0, np.cumsum(np.diff(offsets)[lists]))
    np.testing.assert_allclose(apply(spec, s[rows], grade[rows], moved), before[lists], atol=1e-12)


@pytest.mark.parametrize("spec", SPECS)
@given(a=some_lists(), b=some_lists())
@settings(max_examples=25)
def test_values_of_joined_lists_are_joined_values(spec, a, b):
    joined = (np.append(a[0], b[0]), np.append(a[1], b[1]), np.append(a[2], a[2][-1] + b[2][1:]))
    np.testing.assert_allclose(apply(spec, *joined), np.append(apply(spec, *a), apply(spec, *b)), atol=1e-12)


@pytest.mark.parametrize("spec", SPECS)
@given(data=some_lists())
@settings(max_examples=25)
def test_values_lie_in_their_range(spec, data):
    values = apply(spec, *data)
    low = -1.0 if m.metric(spec).name in ("kendall_tau", "spearman_rho") else 0.0
    high = 1.2 if "alpha_ndcg" in spec else 1.0  # the greedy ideal need not be the best
    assert values.dtype == np.float64
    assert values.shape == (len(data[2]) - 1,)
    defined = values[~np.isnan(values)]
    assert ((defined >= low - 1e-12) & (defined <= high + 1e-12)).all()


@pytest.mark.parametrize("spec", NORMALIZED)
@given(data=some_lists(scores=st.just(0.0)))
@settings(max_examples=25)
def test_the_perfect_order_has_value_one(spec, data):
    _, grade, offsets = data
    best = apply(spec, grade, grade, offsets)
    np.testing.assert_allclose(best[~np.isnan(best)], 1.0)


def test_untied_perfect_orders_are_exactly_one():
    rng = np.random.default_rng(2)
    grade = rng.integers(0, 5, 2000)
    s = grade + rng.random(2000) / 2
    assert (m.ndcg(s, grade, np.arange(0, 2001, 50)) == 1.0).all()
    assert (m.ndcg(s, grade, np.arange(0, 2001, 50), 10) == 1.0).all()


@given(some_lists())
@CHECK
def test_a_list_with_nothing_relevant_is_nan_or_what_is_asked_for(data):
    s, grade, offsets = data
    grade = np.where(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) == 0, 0.0, grade)
    for spec in SPECS:
        metric = m.metric(spec)
        if metric.name in ("kendall_tau", "spearman_rho", "footrule", "rbo"):
            continue
        nothing = m.recall(s, grade, offsets) != m.recall(s, grade, offsets)
        values = apply(spec, s, grade, offsets)
        np.testing.assert_array_equal(np.isnan(values), nothing)
        filled = apply(m.Metric(metric.name, metric.k, (*metric.params, ("empty", 0.5))), s, grade, offsets)
        np.testing.assert_allclose(filled, np.where(nothing, 0.5, values))


# Many lists at once, one sort for all.


def test_evaluate_gives_what_each_metric_gives_and_sorts_once(monkeypatch):
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 40, 200)
    offsets = np.append(0, np.cumsum(sizes))
    s, grade = rng.normal(size=offsets[-1]).round(1), rng.integers(0, 3, offsets[-1])
    specs = ["ndcg@10", "map", "err", "rr(compat=trec_eval)", "ndcg(compat=letor)"]
    alone = {repr(m.metric(spec)): m.metric(spec)(s, grade, offsets) for spec in specs}
    together = m.evaluate(specs, s, grade, offsets)
    assert list(together) == list(alone)
    for spec, values in alone.items():
        np.testing.assert_array_equal(together[spec], values)
    ranking = m.rank(s, offsets)
    monkeypatch.setattr("placet.metrics.ranking.sorted_rows", None)
    np.testing.assert_array_equal(m.ndcg(ranking, grade, offsets, 10), alone["ndcg@10"])


def test_the_common_metrics_load_neither_numba_nor_scipy():
    code = (
        "import sys; from placet.metrics import evaluate; "
        "evaluate(['ndcg@10', 'map', 'p@5', 'r@5', 'psp@3(normalize=list)'], [1.0], [1], [0, 1], propensity=[0.5]); "
        "assert not {'numba', 'scipy', 'sklearn'} & set(sys.modules), 'a heavy package was imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_long_and_short_lists_together_keep_their_places():
    rng = np.random.default_rng(4)
    sizes = np.append(rng.integers(0, 4, 60_000), [5000, 0, 1])  # more than one batch of one length
    offsets = np.append(0, np.cumsum(sizes))
    s, grade = rng.normal(size=offsets[-1]), rng.integers(0, 3, offsets[-1])
    some = [*rng.integers(0, 60_000, 300).tolist(), 60_000, 60_001, 60_002]
    for name in ("ndcg", "average_precision", "kendall_tau"):
        values = m.METRICS[name](s, grade, offsets)
        for q in some:
            a, b = offsets[q], offsets[q + 1]
            np.testing.assert_allclose(m.METRICS[name](s[a:b], grade[a:b], [0, b - a]), values[q : q + 1])


def test_a_depth_past_every_list_costs_nothing():
    s, grade, offsets = [3.0, 2.0, 1.0], [0, 2, 1], [0, 3]
    for name in ("ndcg", "average_precision", "recall", "mrr", "err", "rbo"):
        np.testing.assert_array_equal(m.METRICS[name](s, grade, offsets, 10**15), m.METRICS[name](s, grade, offsets))
    assert m.precision(s, grade, offsets, 10**15) == [2e-15]


def test_no_lists_give_no_values():
    for spec in SPECS:
        assert apply(spec, np.zeros(0), np.zeros(0), [0]).shape == (0,)


def test_the_arrays_of_the_caller_stay_as_they_are():
    s, grade = np.array([1.0, 3.0, 2.0]), np.array([0.0, 2.0, 1.0])
    s.flags.writeable = grade.flags.writeable = False
    for spec in SPECS:
        apply(spec, s, grade, [0, 3])
