"""Plackett-Luce and PMOP on ballots: the closed Hessian, agreement with choix, recovery, coverage, and the hard cases."""

import itertools
import math

import choix
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy.optimize import minimize

from placet.aggregate import consensus
from placet.aggregate.ballots.ballot_models import PlackettLuce, PMOPFullDecomposition
from placet.aggregate.likelihood import ballot_objective, ballot_prior, existence, information, local_optima
from placet.aggregate.likelihood.ballot_objective import Ballots, fit_optima
from placet.aggregate.likelihood.prior import Prior, freedom, learn_width
from placet.data import Comparisons, DataError, Lists, Rankings
from placet.data.graph import always_together, components, free_to_rise
from placet.kernels.aggregate import strict_orders
from placet.losses import LOSSES, Bound

MODELS = ["plackett-luce", "pmop-fd", "pmop"]


def drawn(n, ballots, seed, *, tiers):
    """Scores and ballots of Plackett-Luce, cut into tiers of the given sizes; the items left over are absent."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n)
    theta -= theta.mean()
    size = sum(tiers)
    best = np.argsort(-(theta + rng.gumbel(size=(ballots, n))), axis=1)[:, :size]
    tier = np.tile(np.repeat(np.arange(len(tiers)), tiers), ballots)
    return theta, Rankings.from_codes(best.ravel(), tier, np.arange(0, ballots * size + 1, size), range(n))


@st.composite
def mixed_ballots(draw):
    """Small weighted ballots; some complete, some not, some that tie in their lowest tier only, some anywhere."""
    n = draw(st.integers(2, 6))
    made = []
    for _ in range(draw(st.integers(1, 5))):
        items = draw(st.permutations(range(n)))[: draw(st.integers(1, n))]
        cuts = sorted(draw(st.sets(st.integers(1, len(items)))) | {len(items)})
        if draw(st.booleans()):
            cuts = [*range(1, draw(st.integers(0, len(items))) + 1), len(items)]
        made.append([tuple(items[a:z]) for a, z in zip([0, *cuts], cuts) if a < z])
    weight = draw(st.lists(st.floats(0, 3), min_size=len(made), max_size=len(made)))
    return Rankings.from_orders(made, items=range(n), weight=weight)


@settings(max_examples=60)
@given(mixed_ballots(), st.integers(0, 1000), st.sampled_from(["pl-partition", "pmop-exact"]))
@example(Rankings.from_orders([["a", ("b", "c")], ["d"], [("e", "f"), "a"]], weight=[2.0, 1.0, 0.5]), 1, "pmop-exact")
def test_hessians_by_places_of_ballots_are_those_by_items(ballots, seed, loss):
    more = Rankings.from_orders([[k] for k in range(7)], items=range(7))  # longer than any ballot
    ballots = Rankings(ballots.item, ballots.tier, ballots.offsets, ballots.weight, items=range(ballots.n_items)) + more
    theta = np.random.default_rng(seed).normal(size=ballots.n_items)
    b = Ballots(ballots, ballots.weight, loss, 2.0)
    assert np.diff(ballots.offsets).max() < b.n
    np.testing.assert_allclose(b.dense(theta), information.by_columns(lambda v: b.times(theta, v), b.n), atol=1e-8)


def test_standard_errors_do_not_depend_on_how_steps_are_solved(monkeypatch):
    _, ballots = drawn(60, 30, 0, tiers=(8, 8, 8))
    found = consensus(ballots, "plackett-luce", prior=1.0)
    for limit in ("MOST_ROW_PAIRS", "MOST_ROW_PAIRS_PER_ROW"):
        monkeypatch.setattr(ballot_objective, limit, 0)
    other = consensus(ballots, "plackett-luce", prior=1.0)
    np.testing.assert_allclose(other.stderr, found.stderr, rtol=1e-5)
    assert not any("outer" in note for note in other.notes)


@settings(max_examples=80)
@given(mixed_ballots(), st.integers(0, 1000), st.sampled_from([0.5, 3.0, 30.0]))
@example(Rankings.from_orders([[("a", "b"), ("c", "d"), ("e", "f")]]), 0, 1.0)
@example(Rankings.from_orders([["a", ("b", "c"), "d", ("e", "f"), "g"], ["g", "a"]], weight=[2.0, 0.5]), 1, 1.0)
def test_the_closed_form_is_the_loss(ballots, seed, spread):
    theta = spread * np.random.default_rng(seed).normal(size=ballots.n_items)
    b = Ballots(ballots, ballots.weight, "pl-partition", 2.0)
    assert b.closed
    value, gradient = b.value(theta)
    H = b.hessian(theta)
    b.closed = False
    slow_value, slow_gradient = b.value(theta)
    assert value == pytest.approx(slow_value, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(gradient, slow_gradient, atol=1e-10)
    np.testing.assert_allclose(H, information.by_columns(lambda v: b.times(theta, v), b.n), atol=1e-8)


@pytest.mark.parametrize("loss", ["pl-partition", "pmop-fd", "pmop-exact"])
def test_the_outer_products_are_those_of_each_ballot(loss):
    _, ballots = drawn(6, 9, 0, tiers=(2, 1, 2))
    theta = np.random.default_rng(1).normal(size=6)
    b = Ballots(ballots, ballots.weight, loss, None)
    part = b.parts.data
    expected = np.zeros((6, 6))
    for k in range(len(ballots)):
        one = ballots[k : k + 1]
        grad = np.bincount(one.item, LOSSES[loss](theta[one.item], one.lists())[1], 6)
        expected += np.outer(grad, grad) * part.weight[k]
    np.testing.assert_allclose(b.outer_products(theta), expected, atol=1e-12)
    rows = (part.row_gradient(theta), part.item, part.offsets, part.weight)
    by_loops = np.zeros((6, 6))
    strict_orders.add_outer_products(*rows, by_loops)
    np.testing.assert_allclose(by_loops, expected, atol=1e-12)


@settings(max_examples=80)
@given(mixed_ballots())
def test_the_quick_check_of_connection_is_never_wrong(ballots):
    says = ballots.weight > 0
    kept = ballots[np.flatnonzero(says)]
    one_group = components(kept.item, kept.tier, kept.offsets, ballots.n_items).max() == 0
    columns = (ballots.item, ballots.tier, ballots.offsets, ballots.weight, ballots.n_items)
    assert all(strict_orders.spreads(*columns, forward, 20) for forward in (True, False)) == one_group
    if one_group:
        assert existence.notes_of_rankings(ballots, ballots.weight, None) == []
    else:
        with pytest.raises(DataError, match="groups, and no wins lead from one back to another"):
            existence.notes_of_rankings(ballots, ballots.weight, None)


def test_without_a_prior_scores_are_those_of_choix():
    _, ballots = drawn(6, 40, 2, tiers=(1,) * 6)
    expected = choix.ilsr_rankings(6, ballots.item.reshape(-1, 6).tolist(), tol=1e-10)
    result = consensus(ballots, prior=None)
    np.testing.assert_allclose(result.scores, expected - expected.mean(), atol=1e-7)
    assert result.fit.converged


@pytest.mark.parametrize("tiers", [(1,) * 12, (1, 1, 1, 9), (1, 1, 1, 1), (3, 4, 5)], ids=str)
def test_scores_are_recovered_and_intervals_cover(tiers):
    theta, ballots = drawn(12, 600, 3, tiers=tiers)
    fit = consensus(ballots)
    assert fit.fit.converged
    assert np.corrcoef(fit.scores, theta)[0, 1] > 0.95 if sum(tiers) == 12 else True
    if sum(tiers) == 12:  # else items are absent by merit, which the model must not see as chance
        low, high = fit.interval(0.95)
        assert np.mean((low <= theta) & (theta <= high)) >= 0.75


def test_intervals_cover_over_many_samples():
    inside = []
    for seed in range(25):
        theta, ballots = drawn(5, 80, seed, tiers=(2, 1, 2))
        low, high = consensus(ballots).interval(0.9)
        inside.append((low <= theta) & (theta <= high))
    assert 0.84 <= np.mean(inside) <= 0.95


@pytest.mark.parametrize("tiers", [(1,) * 6, (2, 2, 2)], ids=["strict", "tied"])
def test_sandwich_and_bootstrap_agree_with_the_information_where_the_model_holds(tiers):
    _, ballots = drawn(6, 200, 4, tiers=tiers)
    plain = consensus(ballots)
    np.testing.assert_allclose(consensus(ballots, stderr="sandwich").stderr, plain.stderr, rtol=0.25)
    np.testing.assert_allclose(consensus(ballots, bootstrap=40).stderr, plain.stderr, rtol=0.45)


@pytest.mark.parametrize("method", MODELS)
def test_the_optimum_has_no_slope(method):
    rng = np.random.default_rng(5)
    made = [[tuple(g) for g in np.split(rng.permutation(5), np.sort(rng.choice(4, 2, False)) + 1)] for _ in range(60)]
    ballots = Rankings.from_orders(made, items=range(5))
    fit = consensus(ballots, method, prior=2.0, stderr="observed")
    f = lambda x: LOSSES[loss_of(method)](x[ballots.item], ballots.lists())[0] + x @ x / 8  # noqa: E731
    x, h = np.array(fit.scores), 1e-5
    slope = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(slope, 0, atol=1e-4)
    assert fit.fit.converged
    H = np.array([[second(f, x, a, b) for a in np.eye(5)] for b in np.eye(5)])
    centre = np.eye(5) - 0.2
    np.testing.assert_allclose(fit.covariance, centre @ np.linalg.inv(H) @ centre, atol=2e-3)
    if method == "plackett-luce":
        return
    u = np.array([LOSSES[loss_of(method)](x[one.item], one.lists())[1][np.argsort(one.item)] for one in singles(made)])
    by_ballot = np.linalg.inv(H) @ (60 / 59 * u.T @ u + np.eye(5) / 4) @ np.linalg.inv(H)
    default = consensus(ballots, method, prior=2.0)
    np.testing.assert_allclose(default.covariance, centre @ by_ballot @ centre, atol=2e-3)
    np.testing.assert_allclose(default.units.part.sum(axis=0), x, atol=1e-4)
    thrice = consensus(Rankings.from_orders(made[:20], weight=[3.0] * 20, items=range(5)), method, prior=2.0)
    same = consensus(
        Rankings.from_orders([one for one in made[:20] for _ in range(3)], items=range(5)), method, prior=2.0
    )
    np.testing.assert_allclose(thrice.covariance, same.covariance, atol=1e-6)
    np.testing.assert_array_equal(thrice.separated(), same.separated())


def singles(made):
    """Each ballot alone."""
    return [Rankings.from_orders([one], items=range(5)) for one in made]


def loss_of(method):
    return {"plackett-luce": "pl-partition", "pmop-fd": "pmop-fd", "pmop": "pmop-exact"}[method]


def second(f, x, a, b, h=1e-3):
    return (f(x + h * a + h * b) - f(x + h * a - h * b) - f(x - h * a + h * b) + f(x - h * a - h * b)) / (4 * h * h)


@pytest.mark.parametrize("method", MODELS)
def test_the_probability_of_winning_is_that_of_a_ballot_of_two(method):
    c = consensus(Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b", "c"], ["c", ("a", "b")]]), method)
    s = c.scores[:2]
    expected = math.exp(-LOSSES[loss_of(method)](s, Lists([1.0, 0.0], [0, 2]))[0])
    assert c.win_probability("a", "b") == pytest.approx(expected, rel=1e-9)


def test_plackett_luce_on_pairs_is_bradley_terry():
    votes = Comparisons([0, 0, 1], [1, 2, 2], [4, 2, 3], [2, 3, 1], [0, 0, 0], items="abc")
    one, other = consensus(votes), consensus(votes, "bradley-terry")
    assert one.prior == pytest.approx(other.prior, rel=0.01)
    one, other = consensus(votes, prior=10.0), consensus(votes, "bradley-terry", prior=10.0)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-8)
    np.testing.assert_allclose(one.stderr, other.stderr, rtol=1e-6)


@pytest.mark.parametrize("method", MODELS)
def test_hard_cases(method):
    one = consensus(Rankings.from_orders([["a", "b", "c"]]), method)
    assert one.ranking == ["a", "b", "c"]
    assert (one.stderr > 1).all()
    assert any("undefeated" in note and "[a]" in note for note in one.notes)
    assert any("winless" in note and "[c]" in note for note in one.notes)
    assert consensus(Rankings.from_orders([["only"]]), method).ranking == ["only"]
    assert consensus(Rankings.from_orders([], items=[]), method).ranking == []
    assert consensus(Rankings.from_orders([[("a", "b", "c")]]), method).ranking == [("a", "b", "c")]
    cycle = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]])
    assert consensus(cycle, method, prior=None).ranking == [("a", "b", "c")]
    groups = consensus(Rankings.from_orders([["a", "b"], ["b", "a"], ["c", "d"], ["d", "c"]]), method)
    assert any("2 groups" in note and "[a, b]; [c, d]" in note for note in groups.notes)


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_extreme_weights_stay_finite(method, size):
    ballots = [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", ("b", "c")]]
    fit = consensus(Rankings.from_orders(ballots, weight=np.full(4, size)), method)
    assert np.isfinite(fit.scores).all()
    assert np.isfinite(fit.stderr).all()
    if size > 1:
        expected = consensus(Rankings.from_orders(ballots), method, prior=None)
        np.testing.assert_allclose(fit.scores, expected.scores, atol=1e-6)
    else:
        np.testing.assert_allclose(fit.scores, 0, atol=1e-8)
    mixed = consensus(Rankings.from_orders(ballots, weight=[1e300, 1e300, 1e300, 1e-300]), method)
    np.testing.assert_allclose(mixed.scores, 0, atol=1e-6)


@pytest.mark.parametrize("method", MODELS)
def test_a_ballot_repeated_is_its_weight(method):
    ballots = Rankings.from_orders([["a", "b", "c"], ["c", ("a", "b")]], weight=[3, 2])
    repeated = Rankings.from_orders([["a", "b", "c"]] * 3 + [["c", ("a", "b")]] * 2)
    np.testing.assert_allclose(consensus(ballots, method).scores, consensus(repeated, method).scores, atol=1e-6)
    million = Rankings.from_orders([["a", "b"], ["b", "a"]], weight=[1e6, 1e6 / 4])
    if method == "plackett-luce":
        fit = consensus(million)
        assert fit.scores[0] - fit.scores[1] == pytest.approx(math.log(4), abs=1e-5)


def test_agents_count_with_their_weight_and_warm_starts_agree():
    ballots = Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"], ["b", "a"]], agent=["u", "v", "u"])
    weighted = consensus(ballots, agent_weight={"v": 2.0})
    expected = consensus(Rankings.from_orders(ballots.orders(), weight=[1, 2, 1]))
    np.testing.assert_allclose(weighted.scores, expected.scores, atol=1e-9)
    with pytest.raises(ValueError, match="name no agents"):
        consensus(Rankings.from_orders([["a", "b"]]), agent_weight={"u": 1})
    warm = PlackettLuce(agent_weight={"v": 2.0}).fit(ballots, start=weighted.scores)
    np.testing.assert_allclose(warm.theta_, weighted.scores, atol=1e-8)
    assert warm.fit_.n_iter <= 2


def test_many_items_with_few_ballots():
    _, ballots = drawn(4200, 2000, 6, tiers=(1,) * 8)
    fit = consensus(ballots)
    assert fit.covariance is None
    assert np.isfinite(fit.stderr).all()
    assert any("standard errors are sampled" in note for note in fit.notes)


@st.composite
def tied_ballots(draw):
    n = draw(st.integers(2, 4))
    strict_orders = []
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.lists(st.integers(0, n - 1), unique=True, min_size=1, max_size=n))
        tier = sorted(draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows))))
        strict_orders.append([tuple(i for i, t in zip(rows, tier) if t == k) for k in sorted(set(tier))])
    return Rankings.from_orders(strict_orders, items=range(n))


@settings(max_examples=150)
@given(tied_ballots(), st.sampled_from(["pmop", "pmop-fd", "plackett-luce"]))
def test_without_a_prior_scores_are_refused_where_the_likelihood_has_a_way_to_rise_for_ever(ballots, method):
    loss = {"pmop": "pmop-exact", "pmop-fd": "pmop-fd", "plackett-luce": "pl-partition"}[method]
    lists = Lists(-ballots.tier.astype(float), ballots.offsets, ballots.weight)
    group = always_together(*existence.informative_rows(ballots, ballots.weight), ballots.n_items)
    units = group if method == "pmop-fd" else np.arange(ballots.n_items)

    def flat(v):
        """Whether the loss does not grow along v, far out."""
        near, far = (LOSSES[loss](t * v[ballots.item], lists)[0] for t in (200.0, 400.0))
        return far - near < 1.0

    ways = [np.array(v)[units] for v in itertools.product([0.0, 1.0], repeat=units.max() + 1)]
    endless = any(flat(v) for v in ways if 0 < v.sum() < len(v))
    if method == "pmop-fd" and endless:  # the loss is bounded along some way; does it fall to the end?
        endless = not lowest_is_finite(ballots, units)
    if endless:
        with pytest.raises(DataError, match="no finite scores exist"):
            consensus(ballots, method, prior=None)
    else:
        found = consensus(ballots, method, prior=None, stderr=None)
        assert np.abs(found.scores).max() < 100


def lowest_is_finite(ballots, group):
    """Whether some of the lowest of many descents of pmop-fd, in a box, ends where scores differ little."""
    lists, n = Lists(-ballots.tier.astype(float), ballots.offsets, ballots.weight), group.max() + 1
    unit, rng = group[ballots.item], np.random.default_rng(0)
    bound = Bound("pmop-fd", lists, total=1.0)

    def loss(x):
        value, grad = bound.value_and_grad(x[unit])
        return value, np.bincount(unit, grad, n)

    starts = [np.zeros(n), *(width * rng.normal(size=n) for width in (0.1, 0.5, 1, 1, 2, 3, 3, 8, 8, 8))]
    found = [
        minimize(loss, x, jac=True, bounds=[(-40, 40)] * n, options={"ftol": 1e-15, "gtol": 1e-11, "maxiter": 2000})
        for x in starts
    ]
    lowest = min(fit.fun for fit in found)
    return any(fit.fun < lowest + 1e-8 and np.ptp(fit.x) < 12 and bends(loss, fit.x) for fit in found)


def bends(loss, x):
    """Whether the loss rises away from x in every direction but the common shift, by finite differences."""
    n, h = len(x), 1e-4
    H = np.array([(loss(x + h * e)[1] - loss(x - h * e)[1]) / (2 * h) for e in np.eye(n)])
    return n < 2 or np.linalg.eigvalsh(H + np.ones((n, n)))[0] > 1e-5


@pytest.mark.parametrize(
    "orders",
    [
        [
            ["b", "a"],
            ["a", "b"],
            ["b", ("c", "a")],
            [("c", "b"), "a"],
            ["b", "a"],
            [("a", "b"), "c"],
            [("c", "a"), "b"],
        ],
        [
            ["d", "a"],
            [("d", "b"), "a"],
            ["c", ("a", "d", "b")],
            ["a", ("d", "c")],
            ["a", ("b", "d", "c")],
            ["a", ("c", "b"), "d"],
        ],
    ],
)
def test_a_likelihood_that_is_bounded_but_falls_far_out_has_a_finite_optimum(orders):
    ballots = Rankings.from_orders(orders)
    assert free_to_rise(ballots.item, ballots.tier, ballots.offsets, ballots.n_items) is not None
    found = consensus(ballots, "pmop-fd", prior=None)
    assert np.abs(found.scores).max() < 2
    np.testing.assert_allclose(found.scores, consensus(ballots, "pmop-fd", prior=1e4).scores, atol=1e-4)


MIRRORED = [[("a", "b"), "c"], ["c", "a"], ["c", "b"]]


@pytest.mark.parametrize("times", [1, 10])
def test_items_with_one_record_are_equal_under_mirrored_optima(times):
    found = [
        consensus(Rankings.from_orders(MIRRORED * times, items=items), "pmop-fd", prior=10.0)
        for items in itertools.permutations("abc")
    ]
    for c in found:
        scores, errors = dict(zip(c.items, c.scores)), dict(zip(c.items, c.stderr))
        assert scores["a"] == pytest.approx(scores["b"], abs=1e-5)
        assert scores["a"] < scores["c"]
        assert errors["a"] == pytest.approx(errors["b"], abs=1e-5)
        assert not c.separated(0.95).any()
        assert any("not unique: 2 local optima (posterior probabilities 0.5, 0.5)" in note for note in c.notes)
        assert scores == pytest.approx(dict(zip(found[0].items, found[0].scores)), abs=1e-5)


def test_each_of_three_equal_items_has_its_own_optimum():
    orders = [[("a", "b", "d"), "c"], ["c", "a"], ["c", "b"], ["c", "d"]] * 10
    found = consensus(Rankings.from_orders(orders), "pmop-fd")
    assert any("3 local optima" in note and "[a, b, d]" in note for note in found.notes)
    np.testing.assert_allclose([found.scores[found.items.index(k)] for k in "bd"], found.scores[0], atol=1e-5)


def test_a_slightly_better_record_weighs_the_mirrored_optima():
    """The posterior probability of an optimum is e^-loss / sqrt(det H), relative to the others."""
    ballots = Rankings.from_orders([*MIRRORED, ["a", "b"]], weight=[10, 10, 10, 0.01])
    b = Ballots(ballots, ballots.weight, "pmop-fd", 10.0)
    found = fit_optima(b, np.zeros(3), None, 200, 1e-10, ballots.items)
    assert len(found.fits) == 2
    log = [-b.scale * fit.value - 0.5 * np.linalg.slogdet(b.dense(fit.x))[1] for fit in found.fits]
    assert found.share[0] == pytest.approx(1 / (1 + np.exp(log[1] - log[0])), rel=1e-9)
    assert 0.5 < found.share[0] < 0.6
    c = consensus(ballots, "pmop-fd", prior=10.0)
    assert 0 < c.scores[0] - c.scores[1] < 0.5
    away = found.fits[0].x - found.fits[1].x
    gap = (away[0] - away[1]) ** 2 * found.share[0] * found.share[1]  # of a mixture of two: the distance between
    difference = c.covariance[0, 0] + c.covariance[1, 1] - 2 * c.covariance[0, 1]
    assert difference > gap


def test_more_directions_than_are_searched_leave_equal_items_equal(monkeypatch):
    monkeypatch.setattr(local_optima, "MOST_DESCENTS", 1)
    found = consensus(Rankings.from_orders(MIRRORED), "pmop-fd", prior=10.0)
    assert found.scores[0] == pytest.approx(found.scores[1], abs=1e-6)
    assert any("more than 1 directions" in note for note in found.notes)


def test_items_that_no_ballot_tells_apart_have_one_score():
    ballots = Rankings.from_orders([[(1, 2), 3], [3, (1, 2)]], weight=[2000, 2])
    found = consensus(ballots, "pmop-fd")
    assert found.ranking == [(1, 2), 3]
    assert "always tied together, so they share one score: [1, 2]" in found.notes
    assert found.stderr is not None
    assert consensus(ballots, "pmop-fd", prior=None).stderr is not None
    assert consensus(ballots, "pmop", prior=None).ranking == [(1, 2), 3]


def test_ballots_that_compare_nothing_do_not_tell_items_apart():
    strict_orders = [[("a", "b"), "c"], [], ["a"]]
    found = [
        consensus(Rankings.from_orders(o, items="abcd", weight=w), "pmop-fd")
        for o, w in ((strict_orders, [0.5, 0.5, 1.0]), (strict_orders[::-1], [1.0, 0.5, 0.5]))
    ]
    for c in found:
        assert c.scores[0] == c.scores[1] > c.scores[3] > c.scores[2]
    with pytest.raises(DataError, match="instances"):
        PlackettLuce().fit(Rankings.from_orders([["a", "b"], ["b", "a"]], instance=[1, 2]))


@settings(max_examples=30)
@given(tied_ballots())
def test_the_answer_of_the_full_decomposition_is_no_saddle(ballots):
    model = PMOPFullDecomposition(prior=3.0).fit(ballots)
    b = Ballots(ballots, ballots.weight, "pmop-fd", 3.0)
    here = b.value(model.fit_.x)[0]
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(10):
            assert b.value(model.fit_.x + size * b.average(rng.normal(size=b.n)))[0] >= here - 1e-9


@pytest.mark.parametrize("method", ["plackett-luce", "pmop-fd", "pmop"])
@pytest.mark.parametrize("n", [6, 30])
def test_the_learned_width_of_ballots_maximizes_the_marginal_likelihood(method, n):
    rng = np.random.default_rng(n)
    theta = rng.normal(size=n)
    strict_orders = []
    for _ in range(8 * n if n < 10 else 40):
        own = rng.choice(n, 4, replace=False)
        strict_orders.append(own[np.argsort(-theta[own] - rng.gumbel(size=4))].tolist())
    if method != "plackett-luce":
        strict_orders[0] = [tuple(strict_orders[0][:2]), *strict_orders[0][2:]]
    ballots = Rankings.from_orders(strict_orders, items=range(n))
    width = consensus(ballots, method).prior

    def evidence(w):  # Laplace's, with the density of log w
        b = ballot_objective.Ballots(ballots, ballots.weight, fit_loss[method], w)
        b = b.with_prior(Prior(w, 0.0, b.item_trend()))
        x = ballot_objective.fit_ballots(b, start, 100, 1e-10).x
        H = ballot_prior._hessian(b, x) * b.scale
        density = 2 * np.log(w) - 1.5 * np.log(1 + (w / 2) ** 2)
        return density - b.value(x)[0] * b.scale - np.linalg.slogdet(H)[1] / 2 - n * np.log(w)

    start = consensus(ballots, method).scores
    fit_loss = {"plackett-luce": "pl-partition", "pmop-fd": "pmop-fd", "pmop": "pmop-exact"}
    step = 0.02 if n < 10 else 0.1  # beyond a few items the traces are sampled
    low, best, high = (evidence(width * f) for f in (1 - step, 1.0, 1 + step))
    assert best > low
    assert best > high


@pytest.mark.parametrize("root", [0.02, 0.1, 0.5, 2.0])
def test_a_width_near_which_data_say_little_is_found_all_the_same(root):
    calls = []

    def square_sum(w):  # almost that of the prior itself: the excess changes by a thousandth where w changes by half
        calls.append(w)
        free = freedom(50, w)[0]
        return free * w**2 * (1 + 1e-3 * (1 - (w / root) ** 2) / (1 + (w / root) ** 2)), 2.0

    assert learn_width(square_sum, 50)[0] == pytest.approx(root, rel=0.01)
    assert len(calls) <= 16


def test_ballots_of_unequal_numbers_rank_few_lists_where_they_belong():
    """Items with three ballots of luck do not come first, held-out loss is near the best fixed width's, intervals cover."""
    rng = np.random.default_rng(5)
    n, theta = 150, rng.normal(0, 0.8, 150)
    theta -= theta.mean()
    share = rng.pareto(1.0, n) + 0.02
    draw = lambda m: [rng.choice(n, 3, replace=False, p=share / share.sum()) for _ in range(m)]  # noqa: E731
    order = lambda own: own[np.argsort(-theta[own] - rng.gumbel(size=len(own)))].tolist()  # noqa: E731
    ballots = Rankings.from_orders([order(own) for own in draw(1500)], items=range(n))
    test = Rankings.from_orders([order(own) for own in draw(4000)], items=range(n))
    fit = consensus(ballots)
    assert fit.prior == pytest.approx(np.std(theta), rel=0.2)
    value = lambda c: LOSSES["pl-partition"](c.scores[test.item], test.lists())[0]  # noqa: E731
    fixed = {w: value(consensus(ballots, prior=w, stderr=None)) for w in (0.2, 0.5, 0.8, 1.2, 10.0)}
    assert value(fit) < min(fixed.values()) * 1.002 < fixed[10.0]
    low, high = fit.interval(0.95)
    assert 0.9 < np.mean((low <= theta) & (theta <= high)) < 0.99
    ranks = fit.to_frame()
    assert all(ranks["rank_low"] <= ranks["rank"])
    assert all(ranks["rank"] <= ranks["rank_high"])


def test_a_step_far_out_does_not_stop_strict_ballots():
    b = ballot_objective.Ballots(Rankings.from_orders([["a", "b", "c"], ["c", "b"]]), np.ones(2), "pl-partition", 10.0)
    assert np.isfinite(b.hessian(np.array([0.0, -700.0, -1500.0]))).all()
