"""Bradley-Terry: derivatives, agreement with a slow optimiser and with choix, recovery, coverage, and the hard cases."""

import math

import choix
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from sklearn.base import clone

from placet import simulate
from placet.aggregate import consensus
from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.aggregate.pairs.pair_bootstrap import gradients, sampler
from placet.data import Comparisons, DataError, Lists, Rankings
from placet.losses import LOSSES
from placet.losses.pairwise import PAIR_MODELS, TIES, outcome_probabilities, win_probability

FAMILIES = list(TIES)
TIED = ["rao-kupper", "davidson"]


def drawn(n, votes, seed, *, tie=0.0, order=0.0, family="none"):
    """Scores and ordered votes of a model, one by one."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n)
    theta -= theta.mean()
    a = rng.integers(0, n, votes)
    b = (a + rng.integers(1, n, votes)) % n
    p_a, p_b = plain_probabilities(theta[a] - theta[b] + order, tie, family)
    u = rng.random(votes)
    outcome = np.where(u < p_a, "a", np.where(u < p_a + p_b, "b", "tie"))
    return theta, Comparisons.from_battles(a, b, outcome, items=range(n), ordered=True)


def plain_probabilities(d, tie, family):
    if family == "davidson":
        total = np.exp(d / 2) + np.exp(-d / 2) + np.exp(tie)
        return np.exp(d / 2) / total, np.exp(-d / 2) / total
    theta = 1 + np.exp(tie) if family == "rao-kupper" else 1.0
    return 1 / (1 + theta * np.exp(-d)), 1 / (1 + theta * np.exp(d))


def plain_value(x, c, family, prior, with_order):
    """Minus the log posterior from the probabilities, in plain NumPy."""
    n = c.n_items
    order = x[-1] if with_order else 0.0
    d = x[c.i] - x[c.j] + order
    if family == "none":
        p, q = plain_probabilities(d, 0.0, family)
        value = -((c.wins_i + c.ties / 2) @ np.log(p) + (c.wins_j + c.ties / 2) @ np.log(q))
    else:
        p, q = plain_probabilities(d, x[n], family)
        value = -(c.wins_i @ np.log(p) + c.wins_j @ np.log(q) + c.ties @ np.log(1 - p - q))
    return value + 0.5 * (x[:n] @ x[:n]) / prior**2 + 0.5 * (x[n:] @ x[n:]) / pair_likelihood.EXTRA_PRIOR**2


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("with_order", [False, True])
def test_derivatives_are_those_of_the_plain_likelihood(family, with_order):
    _, c = drawn(5, 60, 3, tie=0.5, family="davidson")
    p = pair_likelihood.pair_counts(c, TIES[family], 2.0, with_order)
    x = np.random.default_rng(1).normal(size=5 + p.n_extra) * 0.5
    x[5:] = 0.3
    f = lambda z: plain_value(with_tie(p, z), c, family, 2.0, with_order)  # noqa: E731
    assert pair_likelihood.value(p, x) * p.scale == pytest.approx(f(x), rel=1e-12)
    h, eye = 1e-5, np.eye(len(x))
    at = pair_likelihood.derivatives(p, x)
    gradient = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in eye]
    np.testing.assert_allclose(at.gradient * p.scale, gradient, rtol=1e-5, atol=1e-6)
    slope = lambda z: pair_likelihood.derivatives(p, z).gradient  # noqa: E731
    H = np.array([(slope(x + h * e) - slope(x - h * e)) / (2 * h) for e in eye])
    np.testing.assert_allclose(pair_likelihood.hessian(p, at), H, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose([pair_likelihood.product(p, at, e) for e in eye], H, rtol=1e-5, atol=1e-8)


def with_tie(p, x):
    """x with the tie parameter in the place of the number that stands for it."""
    return np.concatenate([x[: p.n_items], [pair_likelihood.tie_parameter(p, x)[0]] * p.tie, x[p.n_items + p.tie :]])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("with_order", [False, True])
def test_the_optimum_is_that_of_a_slow_optimiser(family, with_order):
    _, c = drawn(6, 200, 5, tie=0.4, order=0.3, family="rao-kupper")
    model = BradleyTerry(ties=family, order_effect=with_order, prior=3.0).fit(c)
    assert model.fit_.converged
    data = c if with_order else c.pooled()
    start = np.full(6 + (family != "none") + with_order, 0.1)
    slow = minimize(plain_value, start, args=(data, family, 3.0, with_order), method="BFGS", options={"gtol": 1e-7})
    result = model.consensus_
    beside = [] if result.effects is None else result.effects.coefficient
    found = [*model.theta_, *([] if result.tie is None else [result.tie]), *beside]
    np.testing.assert_allclose(found, slow.x, atol=2e-5)
    np.testing.assert_allclose(model.fit_.value * votes(c), slow.fun, rtol=1e-8)


def votes(c):
    return float(c.wins_i.sum() + c.wins_j.sum() + c.ties.sum())


def test_without_a_prior_scores_are_those_of_choix():
    _, c = drawn(12, 2000, 0)
    c = c.pooled()
    table = np.zeros((12, 12))
    table[c.i, c.j], table[c.j, c.i] = c.wins_i, c.wins_j
    expected = choix.ilsr_pairwise_dense(table, tol=1e-12)
    result = consensus(c, "bradley-terry", prior=None)
    np.testing.assert_allclose(result.scores, expected - expected.mean(), atol=1e-8)
    assert not [note for note in result.notes if "prior" in note]


@pytest.mark.parametrize("size", [40, pair_likelihood.DIRECT + 50])
def test_scores_are_recovered_and_intervals_cover(size):
    """Below and above the size at which systems are factored."""
    theta, c = drawn(size, 60 * size, 2)
    fit = consensus(c, "bradley-terry")
    assert np.corrcoef(fit.scores, theta)[0, 1] > 0.95
    low, high = fit.interval(0.95)
    assert 0.90 <= np.mean((low <= theta) & (theta <= high)) <= 0.99


@pytest.mark.parametrize("family", TIED)
@pytest.mark.parametrize("stderr", ["observed", "sandwich"])
def test_tie_and_order_parameters_are_those_of_the_simulation(family, stderr):
    """Ten draws: |z| < 3 in each, and about as large as a standard normal number."""
    z = []
    for seed in range(10):
        votes = simulate.battles(np.linspace(1, -1, 8), 4000, model=family, tie=0.4, first=0.3, random_state=seed)
        c = consensus(votes, "bradley-terry", ties=family, order_effect=True, stderr=stderr)
        order, order_stderr = c.effects.of("order")
        z.append((c.tie - 0.4) / c.tie_stderr)
        z.append((order - 0.3) / order_stderr)
    assert np.abs(z).max() < 3
    assert 0.6 < np.std(z) < 1.5


@pytest.mark.parametrize("family", PAIR_MODELS)
@pytest.mark.parametrize("tie", [-np.inf, -30.0, -1.0, 0.4, 3.0, 800.0])
def test_loss_estimator_simulator_and_ranker_have_one_law(family, tie):
    from placet.rank.probabilities import probability_above

    d = np.array([0.0, 0.3, -2.0, 11.0, -500.0])
    win, loss, tied = outcome_probabilities(d, family, tie)
    np.testing.assert_allclose(win + loss + tied, 1.0, rtol=1e-14)
    np.testing.assert_allclose(win_probability(d, 0.0, family=family, tie=tie), win, atol=1e-15)
    name, params = ("ranknet", {}) if family == "bradley-terry" else (family, {"tie": tie})
    np.testing.assert_allclose(probability_above(d, name, params), win, atol=1e-15)
    result = lambda x, grade: math.exp(-LOSSES[name]([x, 0.0], Lists(grade, [0, 2]), **params)[0])  # noqa: E731
    np.testing.assert_allclose([result(x, [1, 0]) for x in d], win, atol=1e-12)
    np.testing.assert_allclose([result(x, [0, 1]) for x in d], loss, atol=1e-12)
    if family != "bradley-terry":
        np.testing.assert_allclose([result(x, [0, 0]) for x in d], tied, atol=1e-12)
    if abs(tie) < 100 and family != "bradley-terry":
        np.testing.assert_allclose([win[:4], loss[:4]], plain_probabilities(d[:4], tie, family), atol=1e-12)
        c = Comparisons([0], [1], [1.0], [0.0], [1.0])
        p = pair_likelihood.pair_counts(c, family, None, False)
        for k, x in enumerate(d):
            at = np.array([x, 0.0, PAIR_MODELS[family].inner(tie)])
            assert math.exp(-pair_likelihood.value(p, at)) == pytest.approx(win[k] * tied[k], abs=1e-12)


@pytest.mark.parametrize("family", TIED)
def test_without_ties_the_tie_parameter_is_minus_infinity(family):
    votes = simulate.battles([0.0, 1.0, 2.0], 300, model=family, tie=-np.inf)
    fit = consensus(votes, "bradley-terry", ties=family)
    assert fit.tie == -np.inf
    assert fit.tie_stderr is None
    np.testing.assert_allclose(fit.scores, consensus(votes, "bradley-terry").scores, atol=1e-12)
    assert fit.win_probability(2, 1) + fit.win_probability(1, 2) == pytest.approx(1.0)


@pytest.mark.parametrize("family", TIED)
def test_the_errors_of_tie_and_order_need_no_dense_matrix(family):
    _, c = drawn(300, 9000, 8, tie=0.3, order=0.2, family=family)
    p = pair_likelihood.pair_counts(c, family, 10.0, True)
    fit, at = pair_likelihood.fit_counts(p, pair_likelihood.start_of(p), max_iter=50, tol=1e-10)
    for robust in (None, pair_likelihood.gradient_products(p, fit.x)):
        exact = np.sqrt(np.diag(pair_likelihood.covariance_of(p, at, robust)))[300:]
        np.testing.assert_allclose(pair_likelihood.extra_stderr(p, at, robust), exact, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_sandwich_and_bootstrap_agree_with_the_information_where_the_model_holds(family):
    _, c = drawn(8, 6000, 6, tie=0.0 if family == "none" else 0.4, family=family)
    plain = consensus(c, "bradley-terry", ties=family)
    robust = consensus(c, "bradley-terry", ties=family, stderr="sandwich")
    boot = consensus(c, "bradley-terry", ties=family, bootstrap=300)
    np.testing.assert_allclose(robust.stderr, plain.stderr, rtol=0.1)
    np.testing.assert_allclose(boot.stderr, plain.stderr, rtol=0.2)
    np.testing.assert_allclose(boot.draws.mean(axis=0), plain.scores, atol=0.02)


def test_the_bootstrap_of_shared_steps_equals_a_fit_to_each_sample():
    _, c = drawn(6, 300, 7)
    c = c.pooled()
    model = BradleyTerry().fit(c)
    shared = model.bootstrap(c, 5, random_state=3).draws
    draw = sampler(np.concatenate([c.wins_i, c.wins_j, c.ties]), np.random.default_rng(3))
    for row in shared:
        won, lost, tied = np.split(draw(), 3)
        sample = Comparisons(c.i, c.j, won, lost, tied, items=c.items)
        np.testing.assert_allclose(BradleyTerry(stderr=None, prior=model.prior_).fit(sample).theta_, row, atol=1e-4)


@pytest.mark.parametrize("weight", [[3, 1, 2], [40_000, 1, 9000]])
def test_samplers_draw_votes_in_proportion(weight):
    draw = sampler(np.array(weight, float), np.random.default_rng(0))
    draws = np.array([draw() for _ in range(2000)])
    assert (draws.sum(axis=1) == sum(weight)).all()
    p = np.array(weight) / sum(weight)
    np.testing.assert_allclose(draws.mean(axis=0), weight, rtol=0.02, atol=0.1)
    np.testing.assert_allclose(draws.var(axis=0), sum(weight) * p * (1 - p), rtol=0.15, atol=0.1)


def test_the_sampler_of_single_votes_reaches_every_block():
    draw = sampler(np.ones(10_000), np.random.default_rng(0))
    draws = np.array([draw() for _ in range(200)])
    assert (draws.sum(axis=1) == 10_000).all()
    for part in np.split(draws, [4096, 8192], axis=1):
        assert part.mean() == pytest.approx(1, abs=0.01)
        assert part.var() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("spread", [1.0, 400.0])
def test_the_short_gradient_of_the_bootstrap_is_the_gradient(spread):
    _, c = drawn(7, 200, 11, tie=0.3)
    c = c.pooled()
    p = pair_likelihood.pair_counts(c, "bradley-terry", 2.0, False)
    x = spread * np.random.default_rng(0).normal(size=7)
    np.testing.assert_allclose(gradients(p)(x), pair_likelihood.derivatives(p, x).gradient, rtol=1e-9, atol=1e-12)


def test_sampled_standard_errors_agree_with_the_inverse():
    _, c = drawn(300, 9000, 8)
    c = c.pooled()
    p = pair_likelihood.pair_counts(c, "bradley-terry", 10.0, False)
    fit, at = pair_likelihood.fit_counts(p, pair_likelihood.start_of(p), max_iter=50, tol=1e-10)
    exact = np.sqrt(np.diag(pair_likelihood.covariance_of(p, at)))
    sampled = pair_likelihood.stderr_of_many(p, at, np.random.default_rng(0), None)
    np.testing.assert_allclose(sampled, exact, rtol=0.1)
    robust = pair_likelihood.stderr_of_many(
        p, at, np.random.default_rng(0), pair_likelihood.gradient_products(p, fit.x)
    )
    np.testing.assert_allclose(robust.mean(), exact.mean(), rtol=0.1)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from(FAMILIES))
def test_naming_order_and_splitting_of_rows_do_not_matter(seed, family):
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(4, 1)
    won, lost, tied = rng.integers(0, 4, (3, 6)).astype(float)
    base = consensus(Comparisons(i, j, won, lost, tied, items="abcd"), "bradley-terry", ties=family)
    twice = Comparisons(np.tile(j, 2), np.tile(i, 2), *(np.tile(x / 2, 2) for x in (lost, won, tied)), items="abcd")
    np.testing.assert_allclose(consensus(twice, "bradley-terry", ties=family).scores, base.scores, atol=1e-6)
    k = np.array([2, 0, 3, 1])
    renamed = consensus(Comparisons(k[i], k[j], won, lost, tied, items="wxyz"), "bradley-terry", ties=family)
    np.testing.assert_allclose(renamed.scores[k], base.scores, atol=1e-6)
    np.testing.assert_allclose(renamed.stderr[k], base.stderr, rtol=1e-5)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.booleans())
def test_counting_through_a_table_equals_counting_one_by_one(seed, weighted):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, 30)
    b = (a + rng.integers(1, 3, 30)) % 3
    outcome = rng.choice(["a", "b", "tie"], 30)
    weight = rng.random(30) if weighted else None
    c = Comparisons.from_battles(a, b, outcome, weight=weight, items=range(3))
    w = np.ones(30) if weight is None else weight
    for i, j, *counts in zip(c.i, c.j, c.wins_i, c.wins_j, c.ties):
        met = ((a == i) & (b == j)) | ((a == j) & (b == i))
        winner = np.where(outcome == "a", a, np.where(outcome == "b", b, -1))
        np.testing.assert_allclose(counts, [w[met & (winner == x)].sum() for x in (i, j, -1)])


def test_undefeated_and_winless_items_are_finite_wide_and_named():
    c = Comparisons.from_battles("aaabbc", "bbbccb", ["a", "a", "a", "a", "a", "a"], items=["a", "b", "c", "d"])
    fit = consensus(c, "bradley-terry", prior=10.0)
    assert fit.ranking[0] == "a"
    assert fit.stderr[0] > 3
    assert fit.stderr[3] == pytest.approx(10 * math.sqrt(3 / 4), rel=0.2)
    text = " ".join(fit.notes)
    assert "undefeated, so only the prior bounds the score above: [a]" in text
    assert "never compared, so the score is the prior's: [d]" in text
    with pytest.raises(DataError, match=r"\[b, c\].*give a prior"):
        consensus(c, "bradley-terry", prior=None)


def test_cycles_and_all_ties_tie():
    cycle = Comparisons.from_battles("abc", "bca", ["a", "a", "a"])
    for family in FAMILIES:
        assert consensus(cycle, "bradley-terry", ties=family, prior=None).ranking == [("a", "b", "c")]
    tied = Comparisons.from_battles("abc", "bca", ["tie"] * 3)
    assert consensus(tied, "bradley-terry", prior=None).ranking == [("a", "b", "c")]
    for family in ("rao-kupper", "davidson"):
        assert consensus(tied, "bradley-terry", ties=family).ranking == [("a", "b", "c")]
        with pytest.raises(DataError, match="every result is a tie"):
            consensus(tied, "bradley-terry", ties=family, prior=None)


def test_one_item_and_no_votes():
    nothing = Comparisons([], [], [], [], [], items=["only"])
    fit = consensus(nothing, "bradley-terry")
    assert fit.ranking == ["only"]
    assert fit.scores.tolist() == [0.0]
    assert consensus(Comparisons([], [], [], [], [], items=[]), "bradley-terry").ranking == []


def test_disconnected_groups_are_named():
    c = Comparisons([0, 2], [1, 3], [3, 2], [1, 2], [0, 0], items="abcd")
    notes = " ".join(consensus(c, "bradley-terry").notes)
    assert "2 groups" in notes
    assert "[a, b]; [c, d]" in notes


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_extreme_weights_stay_finite(size):
    c = Comparisons([0, 0, 1], [1, 2, 2], np.array([3, 1, 2]) * size, np.array([1, 1, 1]) * size, [0, 0, 0])
    fit = consensus(c, "bradley-terry")
    assert fit.fit.converged
    assert np.isfinite(fit.stderr).all()
    if size > 1:
        expected = consensus(Comparisons(c.i, c.j, [3, 1, 2], [1, 1, 1], [0, 0, 0]), "bradley-terry", prior=None)
        np.testing.assert_allclose(fit.scores, expected.scores, atol=1e-8)
    else:
        assert fit.ranking == [(0, 1, 2)]
    won = Comparisons([0], [1], [size], [0.0], [0.0])
    assert np.isfinite(consensus(won, "bradley-terry").scores).all()


def test_a_vote_repeated_a_million_times_is_its_weight():
    one = Comparisons([0], [1], [1e6], [2e5], [0])
    fit = consensus(one, "bradley-terry", prior=None)
    assert fit.scores[0] - fit.scores[1] == pytest.approx(math.log(5))
    assert fit.stderr[0] == pytest.approx(math.sqrt(1 / 1e6 + 1 / 2e5) / 2)


def test_agents_count_with_their_weight():
    c = Comparisons.from_battles("aab", "bba", ["a", "a", "a"], agent=["u", "u", "v"])
    pooled = consensus(Comparisons([0], [1], [1.0], [3.0], [0], items="ab"), "bradley-terry")
    weighted = consensus(c, "bradley-terry", agent_weight={"u": 0.5, "v": 3})
    np.testing.assert_allclose(weighted.scores, pooled.scores)
    with pytest.raises(ValueError, match="'w', who is not among the 2 agents"):
        consensus(c, "bradley-terry", agent_weight={"w": 1})


def test_parameters_are_checked_and_cloned():
    c = Comparisons([0], [1], [1], [1], [0])
    for params, message in (
        ({"ties": "elo"}, "ties 'elo' is unknown; choose from"),
        ({"stderr": "huge"}, "stderr 'huge' is unknown"),
        ({"prior": -1}, "prior must be a positive standard deviation"),
        ({"order_effect": True}, "needs to know who came first"),
    ):
        with pytest.raises(ValueError, match=message):
            consensus(c, "bradley-terry", **params)
    assert clone(BradleyTerry(ties="davidson")).get_params()["ties"] == "davidson"


def test_a_warm_start_reaches_the_same_scores_in_fewer_steps():
    _, c = drawn(30, 3000, 9)
    cold = BradleyTerry(prior=10.0).fit(c)
    warm = BradleyTerry(prior=10.0).fit(c, start=cold.theta_)
    assert warm.fit_.n_iter < cold.fit_.n_iter
    np.testing.assert_allclose(warm.theta_, cold.theta_, atol=1e-8)


def test_ballots_are_broken_into_pairs():
    ballots = Rankings.from_orders([["a", "b", "c"], ["c", "a"]])
    fit = consensus(ballots, "bradley-terry")
    np.testing.assert_allclose(fit.scores, consensus(ballots.to_comparisons(), "bradley-terry").scores)
    assert any("independent votes" in note for note in fit.notes)


def test_many_items_with_few_votes():
    theta, c = drawn(5000, 40_000, 10)
    fit = consensus(c, "bradley-terry")
    assert fit.covariance is None
    assert 0.9 < np.mean(np.abs(fit.scores - theta) < 1.96 * fit.stderr) < 0.99
    low, high = fit.rank_interval()
    assert np.mean((low <= fit.ranks) & (fit.ranks <= high)) > 0.99
    assert len(fit.next_pairs(3)) == 3


def test_two_hundred_thousand_items_with_four_votes_each():
    """No table of items squared is ever made (320 GB), and items that only the prior holds are counted in a note."""
    n = 200_000
    rng = np.random.default_rng(0)
    theta, a = rng.normal(size=n), np.tile(np.arange(n), 2)
    b = np.concatenate([(np.arange(n) + 1) % n, (np.arange(n) + rng.integers(1, n, n)) % n])
    won = (rng.random(2 * n) < 1 / (1 + np.exp(theta[b] - theta[a]))).astype(float)
    fit = consensus(Comparisons(a, b, won, 1 - won, np.zeros(2 * n), items=range(n)), prior=1.0, stderr=None)
    assert fit.fit.converged
    assert np.corrcoef(fit.scores, theta)[0, 1] > 0.6
    assert any("undefeated" in note and " items]" in note for note in fit.notes)


# ---- the prior's width


def laplace(c, family, width):
    """log density of the log of the scores' width, given the data, by Laplace, without its constants."""
    trend = pair_likelihood.item_trend(c, np.zeros((len(c), 0)))
    p = pair_likelihood.pair_counts(c, TIES[family], width, False, trend=trend)
    fit, at = pair_likelihood.fit_counts(p, pair_likelihood.start_of(p), max_iter=100, tol=1e-12)
    determinant = np.linalg.slogdet(pair_likelihood.hessian(p, at) * p.scale)[1]
    likelihood = -pair_likelihood.value(p, fit.x) * p.scale - p.n_items * math.log(width) - determinant / 2
    return likelihood + 2 * math.log(width) - 1.5 * math.log(1 + (width / 2) ** 2)


@pytest.mark.parametrize(("family", "accuracy"), [("none", 0.01), ("rao-kupper", 0.03), ("davidson", 0.03)])
def test_the_learned_width_maximizes_the_marginal_likelihood(family, accuracy):
    """To the accuracy of the search; with ties, their parameter is taken as known in one term."""
    _, c = drawn(12, 80, 3, tie=0.0, family=family)
    grid = np.exp(np.linspace(math.log(0.2), math.log(5), 400))
    best = grid[np.argmax([laplace(c.pooled(), family, width) for width in grid])]
    fit = consensus(c, "bradley-terry", ties=family, prior="learn")
    assert fit.prior == pytest.approx(best, rel=accuracy + 0.01)
    assert f"standard deviation {fit.prior:.3g}, learned from the data" in fit.notes[0]


def unequal(n, seed, width):
    """Most items with two to five votes of their own, twenty with hundreds."""
    rng = np.random.default_rng(seed)
    theta, games = rng.normal(0, width, n), rng.integers(2, 6, n)
    games[rng.choice(n, 20, replace=False)] = 300
    a = np.repeat(np.arange(n), games)
    b = rng.choice(n, len(a), p=games / games.sum())
    a, b = a[a != b], b[a != b]
    won = rng.random(len(a)) < 1 / (1 + np.exp(theta[b] - theta[a]))
    return theta - theta.mean(), a, b, won


@pytest.mark.parametrize(("n", "width"), [(200, 0.7), (1200, 1.3)])
def test_with_very_unequal_numbers_of_games_the_learned_width_is_right(n, width):
    """Factored and sampled: the width is recovered, held-out votes are foretold as well as by the best of a grid, the
    intervals cover, and those who come first are good, not merely unknown.
    """
    theta, a, b, won = unequal(n, 1, width)
    test = np.random.default_rng(0).random(len(a)) < 0.2
    votes = Comparisons.from_battles(a[~test], b[~test], np.where(won[~test], "a", "b"), items=range(n))
    sign = np.where(won[test], 1, -1)

    def log_loss(scores):
        return np.logaddexp(0, -sign * (scores[a[test]] - scores[b[test]])).mean()

    fit = consensus(votes, "bradley-terry", prior="learn")
    assert fit.prior == pytest.approx(np.std(theta), rel=0.15)
    grid = {w: consensus(votes, "bradley-terry", prior=w, stderr=None) for w in (0.3, 0.6, 1.0, 1.4, 2.0, 10.0)}
    losses = {w: log_loss(other.scores) for w, other in grid.items()}
    assert log_loss(fit.scores) < min(losses.values()) + 0.003 < losses[10.0] - 0.01
    low, high = fit.interval(0.95)
    assert 0.91 < np.mean((low <= theta) & (theta <= high)) < 0.98
    top, flat_top = (np.argsort(-other.scores)[:10] for other in (fit, grid[10.0]))
    assert abs(fit.scores[top].mean() - theta[top].mean()) < 0.6
    assert grid[10.0].scores[flat_top].mean() > theta[flat_top].mean() + 3
    if n > 1000:
        assert theta[top].mean() > theta[flat_top].mean() + 0.5


def test_a_learned_width_has_bounds_and_says_so():
    even = Comparisons.from_battles("abc" * 20, "bca" * 20, ["a", "b"] * 30)
    fit = consensus(even, "bradley-terry", prior="learn")
    assert 0.1 < fit.prior < 0.8  # three items cannot be known as equal
    two = Comparisons([0], [1], [52.0], [48.0], [0.0])
    assert consensus(two, "bradley-terry").stderr[0] == pytest.approx(0.1, rel=0.02)
    many = Comparisons(np.arange(200), (np.arange(200) + 1) % 200, *np.full((2, 200), 1e6), np.zeros(200))
    fit = consensus(many, "bradley-terry")
    assert fit.prior < 0.011
    assert "no differences" in fit.notes[0]
    sweep = Comparisons([0, 0, 1], [1, 2, 2], [9.0] * 3, [0.0] * 3, [0.0] * 3)
    fit = consensus(sweep, "bradley-terry", prior="learn")
    assert 3 < fit.prior < 10  # there is no upset, so that the density of the width decides
    ladder = np.arange(199)
    swept = Comparisons(ladder, ladder + 1, np.full(199, 1e6), np.zeros(199), np.zeros(199))
    assert "at the upper limit of the search" in consensus(swept, "bradley-terry", stderr=None).notes[0]
    nothing = consensus(Comparisons([], [], [], [], [], items=["a", "b"]), "bradley-terry", prior="learn")
    assert nothing.ranking == [("a", "b")]
    with pytest.raises(ValueError, match='positive standard deviation, "learn" or None'):
        consensus(even, "bradley-terry", prior="guess")


def test_the_learned_width_of_many_items_needs_no_dense_matrix(monkeypatch):
    monkeypatch.setattr(pair_likelihood, "hessian", lambda *_, **__: pytest.fail("a dense matrix"))
    theta, c = drawn(5000, 15_000, 12)
    fit = consensus(c, "bradley-terry", prior="learn", stderr=None)
    assert fit.prior == pytest.approx(1.0, abs=0.15)
    assert np.corrcoef(fit.scores, theta)[0, 1] > 0.65
