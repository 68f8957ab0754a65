"""Models over ordered partitions: enumeration, 40-digit sums over subsets, the laws of chains and draws, recovery."""

import math

import mpmath
import numpy as np
import oracle
import pytest
from scipy import optimize, stats

from placet import simulate
from placet.data import Lists
from placet.kernels.losses import pmop as fd, pmop_exact as exact, pmop_sampling as sampling
from placet.losses import LOSSES

FORMS = [
    ("pmop-fd", {}),
    ("pmop-fd", {"stage_scale": (1.5, 0.7, -0.4)}),
    ("pmop-exact", {}),
    ("pmop-backward", {}),
    ("pmop-backward", {"form": "exact"}),
]
S4 = np.array([1.2, -0.4, 0.3, 2.0])


def as_one_list(n, grade):
    return Lists(np.asarray(grade, float), np.array([0, n]))


@pytest.mark.parametrize(("name", "params"), FORMS)
def test_the_4683_partitions_of_6_items_sum_to_1(name, params):
    s = np.random.default_rng(0).normal(0, 1.5, 6)
    partitions = list(oracle.ordered_partitions(6))
    assert len(partitions) == 4683
    total = math.fsum(math.exp(-LOSSES[name](s, as_one_list(6, grade), **params)[0]) for grade in partitions)
    assert total == pytest.approx(1.0, abs=1e-12)


# ---- full decomposition


def both_paths(s, grade):
    """(value, gradient) by plain sums and by logarithms."""
    start = np.empty(len(s) + 1, np.int64)
    n_tiers = fd.find_tiers(grade, 0, len(s), start)
    for kernel in (fd.fd_narrow, fd.fd_wide):
        grad, rest, tier = np.zeros(len(s)), np.empty(len(s)), np.empty(len(s))
        yield kernel(s, start, n_tiers, 2.0, grad, rest, tier), grad


@pytest.mark.parametrize("spread", [1.0, 20.0, 140.0])
@pytest.mark.parametrize("levels", [1, 5, 10_000])
def test_plain_sums_and_logarithms_agree(spread, levels):
    rng = np.random.default_rng(int(spread))
    s = rng.uniform(-spread / 2, spread / 2, 300) + 40.0
    grade = np.sort(rng.integers(0, levels, 300))[::-1].astype(float)
    (value, grad), (log_value, log_grad) = both_paths(s, grade)
    assert value == pytest.approx(log_value, rel=1e-12)
    np.testing.assert_allclose(grad, log_grad, rtol=1e-9, atol=1e-12)


def test_scores_thousands_apart_keep_their_value():
    s, grade = [900.0, -800.0, -800.5, 10_000.0, -9_000.0], [2.0, 1.0, 1.0, 0.0, 0.0]
    value, grad = LOSSES["pmop-fd"](s, as_one_list(5, grade))
    assert value == pytest.approx(oracle.pmop_fd(s, grade), rel=1e-12)
    np.testing.assert_allclose(grad, [-1, -0.6224593312, -0.3775406688, 2, 0], atol=1e-9)


def test_a_million_equal_rows_chose_one_of_2_to_the_million():
    n = 1_000_000
    value, grad = LOSSES["pmop-fd"](np.zeros(n), as_one_list(n, np.zeros(n)))
    assert value == pytest.approx(n * math.log(2), rel=1e-12)
    assert not grad.any()


def test_without_ties_it_is_plackett_luce_and_a_constant():
    rng = np.random.default_rng(3)
    s, grade = rng.normal(size=40), rng.permutation(40)
    lists = as_one_list(40, grade)
    value, grad = LOSSES["pmop-fd"](s, lists)
    order_value, order_grad = LOSSES["listmle"](s, lists)
    constant = sum(math.log((2**n - 1) / n) for n in range(1, 41))
    assert value == pytest.approx(order_value + constant, rel=1e-12)
    np.testing.assert_allclose(grad, order_grad, rtol=1e-10, atol=1e-12)


def test_equal_stage_scales_are_one_scale():
    s, lists = 2.0 * S4, as_one_list(4, [1, 0, 1, 2])
    value, grad = LOSSES["pmop-fd"](s, lists)
    scaled_value, scaled_grad = LOSSES["pmop-fd"](S4, lists, stage_scale=[2.0])
    assert scaled_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(scaled_grad, 2.0 * grad, rtol=1e-12)


@pytest.mark.parametrize("scale", [[], [1.0, np.nan], [[1.0]]])
def test_a_stage_scale_that_is_none_is_refused(scale):
    with pytest.raises(ValueError, match="stage_scale must hold"):
        LOSSES["pmop-fd"](S4, as_one_list(4, [1, 0, 1, 2]), stage_scale=scale)


# ---- general state


def subsets_in_40_digits(s):
    """log sum over subsets of e^{mean}, and its gradient."""
    with mpmath.workdps(40):
        total, by_row = mpmath.mpf(0), [mpmath.mpf(0)] * len(s)
        for subset in oracle.subsets(range(len(s))):
            weight = mpmath.exp(mpmath.fsum(s[r] for r in subset) / len(subset))
            total += weight
            for r in subset:
                by_row[r] += weight / len(subset)
        return float(mpmath.log(total)), np.array([x / total for x in by_row], float)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 10_000.0])
def test_every_subset_is_counted_in_full_precision(spread):
    s = np.random.default_rng(int(spread)).uniform(-spread, spread, 11)
    expected, expected_grad = subsets_in_40_digits(s.tolist())
    value, grad = LOSSES["pmop-exact"](s, as_one_list(11, np.zeros(11)))
    assert value == pytest.approx(expected - s.mean(), rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(grad, expected_grad - 1 / 11, rtol=1e-11, atol=1e-14)


def test_a_thousand_equal_scores_are_2_to_the_1000_subsets():
    first, second = np.empty(1000), np.empty(1000)
    assert exact.subset_moments(np.full(1000, 7.0), first, second) == pytest.approx(7 + 1000 * math.log(2), rel=1e-13)
    np.testing.assert_allclose(first, 1 / 1000, rtol=1e-10)


def test_the_longest_list_is_named():
    lists = Lists(np.zeros(1103), np.array([0, 2, 1103]))
    with pytest.raises(ValueError, match=r"list 1 has 1101 rows; .* at most 1000 \(1 such lists\): use pmop-fd"):
        LOSSES["pmop-exact"](np.zeros(1103), lists)


@pytest.mark.parametrize(("name", "params"), [case for case in FORMS if "exact" in str(case)])
def test_the_hessian_is_positive_semidefinite(name, params):
    s = np.random.default_rng(2).normal(0, 2, 7)
    lists = as_one_list(7, [2, 0, 0, 1, 1, 2, 0])
    hessian = np.array([LOSSES[name].hvp(s, lists, row, **params) for row in np.eye(7)])
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-13)
    values = np.linalg.eigvalsh(hessian)
    assert values[0] == pytest.approx(0.0, abs=1e-13)  # a shift of all scores
    assert values[1] > 1e-3


# ---- elimination order


@pytest.mark.parametrize("form", ["fd", "exact"])
def test_elimination_is_the_reversed_partition_at_negative_scores(form):
    grade = np.array([2.0, 0.0, 1.0, 1.0])
    value, grad = LOSSES["pmop-backward"](S4, as_one_list(4, grade), form=form)
    mirrored, mirrored_grad = LOSSES[f"pmop-{form}"](-S4, as_one_list(4, -grade))
    assert value == pytest.approx(mirrored, rel=1e-14)
    np.testing.assert_allclose(grad, -mirrored_grad, rtol=1e-13)
    assert value != pytest.approx(LOSSES[f"pmop-{form}"](S4, as_one_list(4, grade))[0], rel=1e-3)


def test_elimination_refuses_what_it_does_not_know():
    lists = as_one_list(4, [1, 0, 1, 2])
    with pytest.raises(ValueError, match=r"form 'gibbs' is unknown; choose from fd, exact"):
        LOSSES["pmop-backward"](S4, lists, form="gibbs")
    with pytest.raises(ValueError, match="stage_scale belongs to form 'fd'"):
        LOSSES["pmop-backward"](S4, lists, form="exact", stage_scale=[1.0])


# ---- chains

SUBSETS = list(oracle.subsets(range(4)))


def law(s, by_binomial=False):
    """P(S) ~ e^{mean of s over S}, over binom(N, |S|) if asked."""
    weight = [
        math.exp(sum(s[r] for r in subset) / len(subset)) / (math.comb(len(s), len(subset)) if by_binomial else 1)
        for subset in SUBSETS
    ]
    return np.array(weight) / sum(weight)


def after_one_step(step, start, n=40_000):
    """How often each subset stands after one step from subsets drawn under ``start``."""
    rng = np.random.default_rng(11)
    counts = np.zeros(len(SUBSETS))
    number = {subset: k for k, subset in enumerate(SUBSETS)}
    for k, u in zip(rng.choice(len(SUBSETS), n, p=start), rng.random((n, 6))):
        inside = np.array([r in SUBSETS[k] for r in range(4)])
        step(inside, u)
        counts[number[tuple(np.flatnonzero(inside).tolist())]] += 1
    return counts


def metropolis(corrected):
    return lambda inside, u: sampling.metropolis_step(S4, inside, np.arange(4), u, corrected)


@pytest.mark.parametrize(
    ("step", "stationary"),
    [
        (lambda inside, u: sampling.gibbs_sweep(S4, inside, u), law(S4)),
        (metropolis(True), law(S4)),
        (metropolis(False), law(S4, by_binomial=True)),
    ],
    ids=["gibbs", "hastings", "as published"],
)
def test_a_step_keeps_its_law(step, stationary):
    counts = after_one_step(step, stationary)
    assert stats.chisquare(counts, stationary * counts.sum()).pvalue > 1e-3


def test_the_printed_rule_leaves_the_model():
    counts = after_one_step(metropolis(False), law(S4))
    assert stats.chisquare(counts, law(S4) * counts.sum()).pvalue < 1e-12


def test_a_gibbs_chain_never_empties_its_set():
    rng = np.random.default_rng(0)
    s = np.array([-10_000.0, 10_000.0, -5.0])
    for _ in range(2000):
        inside = rng.random(3) < 0.5
        inside[rng.integers(3)] = True
        sampling.gibbs_sweep(s, inside, rng.random(3))
        assert inside.any()


def copies(n, grade):
    return Lists(np.tile(grade, n), len(grade) * np.arange(n + 1), np.full(n, 1 / n))


@pytest.mark.parametrize(("name", "params"), [("pmop-gibbs", {}), ("pmop-mh", {}), ("pmop-mh", {"as_published": True})])
def test_long_chains_find_the_gradient_of_their_law(name, params):
    """400 steps, 400 chains: the bias of the start is about 1 / 400, the noise less."""
    grade = np.array([1.0, 0.0, 1.0, 0.0])
    _, grad = LOSSES[name](np.tile(S4, 400), copies(400, grade), n_steps=400, **params)
    estimate = grad.reshape(400, 4).sum(axis=0)
    exactly = LOSSES["pmop-exact"](S4, as_one_list(4, grade))[1]
    gap = np.abs(estimate - exactly).max()
    if params:
        assert gap > 0.02
    else:
        assert gap < 0.006


def test_the_bias_falls_with_the_number_of_steps():
    grade = np.array([0.0, 1.0, 0.0, 0.0])
    exactly = LOSSES["pmop-exact"](S4, as_one_list(4, grade))[1]
    gaps = []
    for n_steps in (1, 3, 30):
        _, grad = LOSSES["pmop-gibbs"](np.tile(S4, 20_000), copies(20_000, grade), n_steps=n_steps)
        gaps.append(np.abs(grad.reshape(-1, 4).sum(axis=0) - exactly).max())
    assert gaps[0] > 2 * gaps[1] > 6 * gaps[2]


@pytest.mark.parametrize("name", ["pmop-gibbs", "pmop-mh"])
def test_the_gradient_is_that_of_the_contrast_with_chains_held_fixed(name):
    rng = np.random.default_rng(1)
    s, lists = rng.normal(size=12), Lists(rng.integers(0, 3, 12), np.array([0, 5, 5, 12]), np.array([0.5, 1.0, 2.0]))
    grad = LOSSES[name](s, lists, n_steps=3, random_state=5)[1]
    slope = oracle.central_difference(lambda x: LOSSES[name](x, lists, n_steps=3, random_state=5)[0], s, 1e-7)
    np.testing.assert_allclose(grad, slope, atol=1e-7)
    assert np.abs(grad).max() > 0.1


@pytest.mark.parametrize("name", ["pmop-gibbs", "pmop-mh"])
def test_generators_move_on(name):
    rng = np.random.default_rng(7)
    s, lists = rng.normal(size=300), Lists(rng.integers(0, 3, 300), np.arange(0, 301, 5))
    grad = LOSSES[name](s, lists, n_steps=2, random_state=9)[1]
    fresh = np.random.default_rng(9)
    np.testing.assert_array_equal(LOSSES[name](s, lists, n_steps=2, random_state=fresh)[1], grad)
    assert (LOSSES[name](s, lists, n_steps=2, random_state=fresh)[1] != grad).any()


def test_a_chain_takes_a_step_at_least():
    with pytest.raises(ValueError, match="n_steps must be at least 1, not 0"):
        LOSSES["pmop-gibbs"](S4, as_one_list(4, [1, 0, 1, 2]), n_steps=0)


# ---- draws


def tiers(rankings):
    """(ballots, items) tiers of ballots that rank every item."""
    n_items = len(rankings.items)
    tier = np.empty((len(rankings.offsets) - 1, n_items), np.int64)
    tier[np.repeat(np.arange(len(tier)), n_items), rankings.item] = rankings.tier
    return tier


@pytest.mark.parametrize("form", ["fd", "exact"])
def test_draws_follow_the_law_over_all_partitions(form):
    theta = np.array([0.9, 0.1, -0.3, -1.1])
    drawn = tiers(simulate.ordered_partitions(theta, 40_000, form=form, random_state=3))
    outcomes = [tuple(max(grade) - g for g in grade) for grade in oracle.ordered_partitions(4)]
    value = {"fd": oracle.pmop_fd, "exact": oracle.pmop_exact}[form]
    expected = np.array([math.exp(-value(theta.tolist(), [-t for t in tier])) for tier in outcomes]) * len(drawn)
    counts = np.array([(drawn == tier).all(axis=1).sum() for tier in outcomes])
    assert counts.sum() == len(drawn)
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize("form", ["fd", "exact"])
def test_scores_are_recovered_from_draws(form):
    theta = np.array([1.5, 0.5, 0.0, -0.5, -1.5])
    rankings = simulate.ordered_partitions(theta, 4000, form=form, random_state=1)
    lists = Lists(-rankings.tier.astype(float), rankings.offsets)

    def objective(x):
        value, grad = LOSSES[f"pmop-{form}"](x[rankings.item], lists)
        return (value + x @ x) / 4000, (np.bincount(rankings.item, grad, 5) + 2 * x) / 4000

    fit = optimize.minimize(objective, np.zeros(5), jac=True, method="L-BFGS-B", options={"gtol": 1e-9})
    hessian = np.array(
        [
            np.bincount(rankings.item, LOSSES[f"pmop-{form}"].hvp(fit.x[rankings.item], lists, row[rankings.item]), 5)
            for row in np.eye(5)
        ]
    )
    error = np.sqrt(np.diag(np.linalg.pinv(hessian, rcond=1e-9)))  # of the centred scores
    assert error.max() < 0.15
    assert (np.abs(fit.x - fit.x.mean() - theta) < 4 * error).all()


@pytest.mark.parametrize("form", ["fd", "exact"])
def test_draws_at_scores_of_10_000_keep_to_the_order(form):
    drawn = tiers(simulate.ordered_partitions([10_000.0, 0.0, -10_000.0], 50, form=form, random_state=0))
    assert (drawn[:, 0] == 0).all()


def test_draws_refuse_what_they_do_not_know():
    with pytest.raises(ValueError, match=r"form 'mh' is unknown; choose from fd, exact"):
        simulate.ordered_partitions([0.0, 1.0], 3, form="mh")
    with pytest.raises(ValueError, match="at most 1000 items, not 1001"):
        simulate.ordered_partitions(np.zeros(1001), 1, form="exact")
    assert len(simulate.ordered_partitions([0.0, 1.0], 0).offsets) == 1
