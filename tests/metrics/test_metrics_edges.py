"""What surrounds the metrics: specifications, checks of the input, summaries and comparisons."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from placet import metrics as m

# Specifications.


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("ndcg@10", "ndcg@10"),
        (" NDCG @ 10 ", "ndcg@10"),
        ("map", "average_precision"),
        ("P@5", "precision@5"),
        ("r@100(threshold=2)", "recall@100(threshold=2)"),
        ("rr", "mrr"),
        ("alpha-nDCG@20(alpha=0.3)", "alpha_ndcg@20(alpha=0.3)"),
        ("ndcg@5(gain=linear, compat=letor)", "ndcg@5(compat=letor,gain=linear)"),
        ("footrule(normalize=False)", "footrule(normalize=False)"),
        ("err(max_grade=4,empty=0)", "err(empty=0,max_grade=4)"),
    ],
)
def test_the_repr_of_a_metric_is_its_specification(spec, shown):
    metric = m.metric(spec)
    assert repr(metric) == shown
    assert m.metric(shown) == metric
    assert m.metric(metric) is metric
    assert len({metric, m.metric(shown)}) == 1
    with pytest.raises(AttributeError):
        metric.k = 3


def test_parameters_reach_the_metric():
    s, grade, offsets = [3.0, 2.0, 1.0], [1, 2, 0], [0, 3]
    np.testing.assert_array_equal(
        m.metric("ndcg@2(gain=linear)")(s, grade, offsets), m.ndcg(s, grade, offsets, 2, gain="linear")
    )
    np.testing.assert_array_equal(m.metric("map(threshold=2)")(s, grade, offsets), [0.5])
    assert m.metric("footrule(normalize=False)")(s, grade, offsets) == [2.0]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("ncdg@10", r"metric 'ncdg' is unknown; choose from ndcg, .*map"),
        ("ndcg@0", "depth '0' is not a whole number of at least 1"),
        ("ndcg@x", "depth 'x' is not"),
        ("ndcg@10(", "not of the form"),
        ("", "not of the form"),
        ("kendall_tau@3", "takes no depth"),
        ("ndcg(gains=linear)", r"'gains=linear' is not parameter=value, each once, of \['gain', 'discount'"),
        ("ndcg(gain=cubic)", r"gain 'cubic' is not one of \['exp2', 'linear', 'log2'\]"),
        ("ndcg(compat=ranx)", r"compat 'ranx' is not one of \['lightgbm'"),
        ("map(threshold=two)", "threshold 'two' is not a number"),
        ("map(threshold)", "is not parameter=value"),
        ("map(threshold=1,threshold=2)", "each once"),
        ("psp@3(propensity=1)", "is not parameter=value"),
    ],
)
def test_a_wrong_specification_names_what_is_known(spec, said):
    with pytest.raises(ValueError, match=said):
        m.metric(spec)


# Input is checked at the edge.


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: m.ndcg([1.0, math.nan, math.nan], [0, 1, 1], [0, 3]), r"row 1: score is nan \(2 such rows\); .*-inf"),
        (lambda: m.ndcg([1.0, 2.0], [0, math.nan], [0, 2]), r"row 1: grade is nan \(1 such rows\)"),
        (lambda: m.ndcg([1.0, 2.0], [0], [0, 2]), r"grades have shape \(1,\); there are 2 scores"),
        (lambda: m.ndcg([[1.0, 2.0]], [0, 1], [0, 2]), r"scores have shape \(1, 2\)"),
        (lambda: m.ndcg([1.0, 2.0], [0, 1], [2]), "from 2 to 2; they must go from 0 to the number of rows, 2"),
        (lambda: m.ndcg([1.0, 2.0], [0, 1], [0, 1]), "from 0 to 1"),
        (lambda: m.ndcg([1.0, 2.0], [0, 1], [0, 3, 2]), r"offsets\[2\] is 2, below 3 before it \(1 such places\)"),
        (lambda: m.ndcg([1.0, 2.0], [0, 1], [0, 0.5, 2]), "whole numbers"),
        (lambda: m.ndcg([1.0, 2.0], [0, 1], []), "offsets have shape"),
        (lambda: m.ndcg([1.0, 2.0], [0, 1], [0, 2], 0), "k is 0; it must be a whole number of at least 1"),
        (lambda: m.ndcg([1.0, 2.0], [0, 1], [0, 2], 2.5), "k is 2.5"),
        (
            lambda: m.ndcg([1.0, 2.0], [0, 1], [0, 2], compat="ranx"),
            r"compat 'ranx' is unknown; choose from lightgbm",
        ),
        (lambda: m.mrr([1.0, 2.0], [0, 1], [0, 2], compat="letor"), "'letor' does not define mrr; it defines"),
        (
            lambda: m.ndcg([1.0, 2.0], [0, -1], [0, 2]),
            r"row 1: the gain of grade -1 is -0.5, not a finite number of at least 0 \(1 such rows\)",
        ),
        (lambda: m.ndcg([1.0], [5000], [0, 1]), "the gain of grade 5000 is inf"),
        (lambda: m.ndcg([1.0], [1], [0, 1], gain="cubic"), "gain 'cubic' is unknown; choose from"),
        (lambda: m.ndcg([1.0], [1], [0, 1], discount="sqrt"), "discount 'sqrt' is unknown; choose from"),
        (lambda: m.ndcg([1.0], [1], [0, 1], discount=lambda i: 1 / (i - i)), "one finite number per place"),
        (lambda: m.err([1.0, 2.0], [0, -1], [0, 2]), r"row 1: grade -1 is not in \[0, 0\]"),
        (lambda: m.err([1.0, 2.0], [0, 5], [0, 2], max_grade=4), r"row 1: grade 5 is not in \[0, 4\] \(1 such rows\)"),
        (lambda: m.psp([1.0], [1], [0, 1], 1), "propensity is missing"),
        (lambda: m.psp([1.0], [1], [0, 1], 1, propensity=[2.0]), r"row 0: propensity 2 is not in \(0, 1\]"),
        (lambda: m.psp([1.0], [1], [0, 1], 1, propensity=[0.5], normalize="some"), "normalize 'some' is unknown"),
        (lambda: m.propensities([5], 4), "label 0: count 5 is not in 0..4"),
        (lambda: m.alpha_ndcg([1.0], [1], [0, 1]), r"judgments have shape \(1,\)"),
        (lambda: m.alpha_ndcg([1.0], [[1.0, math.nan]], [0, 1]), "row 0: a judgment is nan"),
        (lambda: m.err_ia([1.0], [[1]], [0, 1], alpha=1.5), "alpha is 1.5"),
        (lambda: m.rbo([1.0], [1], [0, 1], p=1.0), "p is 1.0"),
        (lambda: m.ndcg([1.0], [1], [0, 1], compat="trec_eval", name=["a", "b"]), "names have shape"),
        (lambda: m.average_precision([1.0], [1], [0, 1], 3, compat="sklearn"), "has no depth"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_bad_input_is_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_gains_whose_sum_is_beyond_the_largest_number():
    values = m.ndcg([1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0], [1023] * 5 + [1, 0], [0, 5, 7])
    assert values.tolist() == [1.0, 1 / math.log2(3)]


def test_a_string_is_one_metric():
    lists = [2.0, 1.0], [0, 1], [0, 2]
    assert m.evaluate("ndcg@1", *lists) == m.evaluate(m.metric("ndcg@1"), *lists) == m.evaluate(["ndcg@1"], *lists)
    assert list(m.evaluate("ndcg@1", *lists)) == ["ndcg@1"]


def test_tied_rows_keep_the_order_of_the_input():
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, 0, 1, 2, 50, 50, 300, 50])
    s = rng.choice([-math.inf, -1.5, -0.0, 0.0, 2.0, 3.0], offsets[-1])
    s[3:53] = rng.permutation(50)  # a list without ties among tied ones
    expected = [a + np.argsort(-s[a:b], kind="stable") for a, b in itertools.pairwise(offsets)]
    assert m.rank(s, offsets).order.tolist() == np.concatenate(expected).tolist()


# Summaries and comparisons.


def test_summary_counts_what_is_undefined():
    values = np.array([0.2, math.nan, 0.6, 0.7])
    result = m.summary(values)
    assert (result.n_lists, result.n_undefined) == (3, 1)
    assert result.mean == pytest.approx(0.5)
    assert result.stderr == pytest.approx(stats.sem([0.2, 0.6, 0.7]))
    nothing = m.summary([math.nan])
    assert math.isnan(nothing.mean)
    assert (nothing.n_lists, nothing.n_undefined) == (0, 1)


def test_compare_is_exact_for_few_lists():
    a, b = np.array([0.9, 0.8, 0.7, 0.4, 0.5]), np.array([0.6, 0.7, 0.5, 0.6, math.nan])
    d = (a - b)[:4]
    flips = [abs(sum((1 - 2 * s) * x for s, x in zip(signs, d))) for signs in np.ndindex(2, 2, 2, 2)]
    result = m.compare(a, b)
    assert result.difference == pytest.approx(d.mean())
    assert result.p_value == np.mean([f >= abs(d.sum()) - 1e-12 for f in flips])
    assert (result.n_lists, result.n_left_out) == (4, 1)


def test_compare_agrees_with_the_normal_theory_for_many_lists():
    rng = np.random.default_rng(5)
    a = rng.random(2000)
    d = rng.normal(0.01, 0.2, 2000)
    result = m.compare(a + d, a)
    p = stats.ttest_1samp(d, 0).pvalue
    half = 1.96 * d.std() / math.sqrt(2000)
    assert result.p_value == pytest.approx(p, abs=0.01)
    assert result.low == pytest.approx(d.mean() - half, abs=0.1 * half)
    assert result.high == pytest.approx(d.mean() + half, abs=0.1 * half)
    assert m.compare(a, a).p_value == 1.0
    other = m.compare(a, a + d)
    assert (other.low, other.high) == (pytest.approx(-result.high), pytest.approx(-result.low))


def test_compare_is_reproducible_and_keeps_its_level():
    rng = np.random.default_rng(6)
    a, b = rng.random(300), rng.random(300)
    assert m.compare(a, b, n_boot=200) == m.compare(a, b, n_boot=200)
    assert m.compare(a, b, n_boot=200) != m.compare(a, b, n_boot=200, random_state=1)
    wide, narrow = m.compare(a, b, level=0.99), m.compare(a, b, level=0.5)
    assert wide.low < narrow.low < narrow.high < wide.high
    p_values = [m.compare(rng.normal(size=30), np.zeros(30), n_boot=199).p_value for _ in range(400)]
    assert 0.02 < np.mean(np.array(p_values) <= 0.05) < 0.09


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: m.compare([1.0], [1.0, 2.0]), "a has 1 lists and b has 2"),
        (lambda: m.compare([math.nan], [1.0]), "no list is defined in both"),
        (lambda: m.compare([math.inf], [1.0]), "1 values are infinite"),
        (lambda: m.compare([1.0], [0.0], n_boot=0), "n_boot is 0"),
        (lambda: m.summary([[1.0]]), "one value per list"),
    ],
)
def test_bad_comparisons_are_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()
