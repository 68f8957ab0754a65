"""Simulators: laws by chi-square against enumeration, parameters recovered by the losses, the same seed the same bytes."""

import itertools
import math
from collections import Counter

import numpy as np
import oracle
import pytest
from scipy import sparse, stats
from scipy.optimize import minimize

from placet import simulate
from placet.losses import LOSSES

THETA = np.array([0.8, 0.1, -0.3, -0.6])


def fits(counts, probability):
    """Whether counts could come from the law: chi-square, refused once in 10,000 times."""
    counts, expected = np.asarray(counts, float), np.asarray(probability, float) * np.sum(counts)
    assert np.sum(probability) == pytest.approx(1.0)
    assert expected.min() > 5, "too few draws for this test"
    return stats.chisquare(counts, expected).pvalue > 1e-4


def columns(data):
    return b"".join(
        np.ascontiguousarray(x).tobytes()
        for name in data.__dataclass_fields__
        if isinstance(x := getattr(data, name), np.ndarray)
    )


DRAWS = {
    "plackett_luce": lambda seed: simulate.plackett_luce(THETA, 20, partition=2, subset=(2, 4), random_state=seed),
    "mallows": lambda seed: simulate.mallows([2, 0, 1, 3], 0.7, 20, random_state=seed),
    "mallows_mixture": lambda seed: simulate.mallows_mixture([[0, 1, 2], [2, 1, 0]], 0.5, 20, random_state=seed),
    "multinomial_preferences": lambda seed: simulate.multinomial_preferences(
        THETA, 50, adherence=[1.0, 0.2], random_state=seed
    ),
    "battles": lambda seed: simulate.battles(THETA, 50, random_state=seed),
    "queries": lambda seed: simulate.queries(4, (3, 9), 5, random_state=seed),
    "ratings": lambda seed: simulate.ratings(12, 30, observed=0.2, random_state=seed),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_seed_same_bytes(name):
    draw = DRAWS[name]
    assert columns(draw(3)) == columns(draw(3)) == columns(draw(np.random.default_rng(3)))
    assert columns(draw(3)) != columns(draw(4))
    assert draw(3) == draw(3)


# ---- Plackett-Luce


def test_full_orders_follow_the_law():
    data = simulate.plackett_luce(THETA, 20_000, random_state=1)
    orders = list(itertools.permutations(range(4)))
    seen = Counter(tuple(row) for row in data.item.reshape(-1, 4).tolist())
    assert fits([seen[o] for o in orders], [math.exp(-oracle.order_value(THETA, o)) for o in orders])
    assert (data.tier.reshape(-1, 4) == np.arange(4)).all()


def test_top_puts_the_rest_last_or_leaves_it_out():
    data = simulate.plackett_luce(THETA, 6_000, top=2, random_state=2)
    pairs = list(itertools.permutations(range(4), 2))
    law = [math.exp(-oracle.order_value(THETA, [*p, *set(range(4)) - set(p)], 2)) for p in pairs]
    seen = Counter(tuple(row[:2]) for row in data.item.reshape(-1, 4).tolist())
    assert fits([seen[p] for p in pairs], law)
    assert (data.tier.reshape(-1, 4) == [0, 1, 2, 2]).all()
    short = simulate.plackett_luce(THETA, 6_000, top=2, unlisted="absent", random_state=2)
    np.testing.assert_array_equal(short.item.reshape(-1, 2), data.item.reshape(-1, 4)[:, :2])


def test_given_tiers_follow_the_partitioned_law():
    data = simulate.plackett_luce(THETA, 10_000, partition=[2, 1], random_state=3)
    assert (data.tier.reshape(-1, 4) == [0, 0, 1, 2]).all()
    outcomes = list(oracle.assignments([2, 1, 1]))
    grade = np.empty((10_000, 4), int)
    np.put_along_axis(grade, data.item.reshape(-1, 4), 2 - data.tier.reshape(-1, 4), axis=1)
    seen = Counter(map(tuple, grade.tolist()))
    assert fits([seen[g] for g in outcomes], [math.exp(-oracle.pl_partition(THETA.tolist(), g)) for g in outcomes])


def test_random_tiers_are_cut_uniformly():
    data = simulate.plackett_luce(np.zeros(7), 6_000, partition=4, random_state=4)
    tier = data.tier.reshape(-1, 7)
    assert (tier.max(axis=1) == 3).all()
    cuts = Counter(tuple(np.flatnonzero(np.diff(row)).tolist()) for row in tier)
    every = list(itertools.combinations(range(6), 3))
    assert fits([cuts[c] for c in every], np.full(len(every), 1 / len(every)))


def test_random_tiers_keep_the_top_short():
    data = simulate.plackett_luce(np.zeros(30), 50, partition=4, at_most=5, random_state=4)
    top = (data.tier.reshape(-1, 30) < 3).sum(axis=1)
    assert top.max() <= 5
    assert top.min() >= 3


def test_subsets_are_uniform_and_ranked_by_the_law():
    data = simulate.plackett_luce(THETA, 12_000, subset=2, random_state=5)
    seen = Counter(map(tuple, data.item.reshape(-1, 2).tolist()))
    pairs = list(itertools.permutations(range(4), 2))
    assert fits([seen[p] for p in pairs], [1 / 6 / (1 + math.exp(THETA[j] - THETA[i])) for i, j in pairs])
    sizes = np.diff(simulate.plackett_luce(THETA, 6_000, subset=(1, 3), random_state=5).offsets)
    assert fits(np.bincount(sizes, minlength=4)[1:], [1 / 3] * 3)


def test_plackett_luce_scores_are_recovered():
    theta = np.random.default_rng(0).normal(size=12)
    data = simulate.plackett_luce(theta, 3_000, subset=(3, 8), random_state=6)
    found = fitted("listmle", data)
    np.testing.assert_allclose(found - found.mean(), theta - theta.mean(), atol=0.15)


def test_many_ballots_come_in_several_draws():
    data = simulate.plackett_luce(THETA, 600_000, random_state=7)
    assert len(data) == 600_000
    first = data.item.reshape(-1, 4)[:, 0]
    halves = np.bincount(first[:500_000], minlength=4), np.bincount(first[550_000:], minlength=4)
    law = np.exp(THETA) / np.exp(THETA).sum()
    assert all(fits(half, law) for half in halves)


def fitted(loss, data, **params):
    """Scores that minimise a loss over ballots, by L-BFGS."""

    def objective(theta):
        value, grad = LOSSES[loss](theta[data.item], lists, **params)
        return value, np.bincount(data.item, grad, data.n_items)

    lists = data.lists()
    return minimize(objective, np.zeros(data.n_items), jac=True, method="L-BFGS-B").x


# ---- Mallows


def against(order, center):
    """Pairs that the order and the center put differently."""
    place = {x: k for k, x in enumerate(center)}
    return sum(place[x] > place[y] for x, y in itertools.combinations(order, 2))


@pytest.mark.parametrize("phi", [0.3, 0.8, 1.0])
def test_mallows_follows_its_law(phi):
    center = (2, 0, 3, 1)
    data = simulate.mallows(center, phi, 40_000, random_state=8)
    orders = list(itertools.permutations(range(4)))
    weight = np.array([phi ** against(o, center) for o in orders])
    seen = Counter(map(tuple, data.item.reshape(-1, 4).tolist()))
    assert data.items == (0, 1, 2, 3)
    assert fits([seen[o] for o in orders], weight / weight.sum())


def test_mallows_mixture_follows_its_law():
    centers, phi, share = ("dabc", "bcad"), (0.4, 0.7), (0.8, 0.2)
    data = simulate.mallows_mixture(centers, phi, 30_000, share=share, random_state=9)
    orders = list(itertools.permutations("abcd"))
    law = np.zeros(24)
    for center, f, w in zip(centers, phi, share):
        weight = np.array([f ** against(o, center) for o in orders])
        law += w * weight / weight.sum()
    seen = Counter(tuple(data.items[k] for k in row) for row in data.item.reshape(-1, 4).tolist())
    assert fits([seen[o] for o in orders], law)


def test_mallows_distance_has_its_mean_at_any_length():
    """E[d] = sum_k of the mean of a geometric step truncated at k."""
    phi, n, n_ballots = 0.9, 60, 2_000
    data = simulate.mallows(np.arange(n), phi, n_ballots, random_state=10)
    item = data.item.reshape(-1, n)
    distance = sum((item[:, [k]] > item[:, k + 1 :]).sum(axis=1) for k in range(n - 1))
    steps = [np.arange(k + 1) for k in range(n)]
    weights = [phi**d / np.sum(phi**d) for d in steps]
    mean = sum(d @ w for d, w in zip(steps, weights))
    variance = sum(d**2 @ w - (d @ w) ** 2 for d, w in zip(steps, weights))
    assert abs(distance.mean() - mean) < 4 * math.sqrt(variance / n_ballots)
    assert distance.var() == pytest.approx(variance, rel=0.15)


def test_phi_of_0_is_the_center():
    assert simulate.mallows(["x", "y", "z"], 0.0, 3).orders() == [["x", "y", "z"]] * 3


# ---- pairs


def preference_law(theta, a=1.0, gamma=None):
    """(i, j) cells of the multinomial preference model, from its definition."""
    n = len(theta)
    spread = np.ones((n, n)) if gamma is None else np.add.outer(gamma, gamma)
    weight = np.exp(a * np.subtract.outer(theta, theta) / spread)
    np.fill_diagonal(weight, 0)
    return weight / weight.sum()


def cells(data, n):
    table = np.zeros((n, n))
    np.add.at(table, (data.i, data.j), data.wins_i)
    np.add.at(table, (data.j, data.i), data.wins_j)
    return table


OFF = ~np.eye(4, dtype=bool)


@pytest.mark.parametrize("gamma", [None, [0.2, 0.5, 1.0, 0.3]])
def test_multinomial_preferences_follow_their_law(gamma):
    data = simulate.multinomial_preferences(THETA, 20_000, gamma=gamma, random_state=11)
    assert data.agent is None
    assert data.ties.sum() == 0
    table = cells(data, 4)
    assert table.sum() == 20_000
    law = preference_law(THETA, gamma=None if gamma is None else np.array(gamma))
    assert fits(table[OFF], law[OFF])


def test_agents_adhere_as_they_are_told():
    adherence = [1.0, 0.4, 0.0]
    data = simulate.multinomial_preferences(2 * THETA, 30_000, adherence=adherence, random_state=12)
    per_agent = [cells(part, 4) for _, part in data.by_agent()]
    assert fits([table.sum() for table in per_agent], [1 / 3] * 3)
    for a, table in zip(adherence, per_agent):
        assert fits(table[OFF], preference_law(2 * THETA, a)[OFF])
    exact = simulate.multinomial_preferences(THETA, [10, 0, 5], adherence=adherence)
    assert [cells(part, 4).sum() for _, part in exact.by_agent()] == [10, 0, 5]


def tie_law(model, d, tie):
    """Win, loss, tie of one pair, from the papers' formulas."""
    x, y = math.exp(d), 1.0
    if model == "davidson":
        t = math.exp(tie) * math.sqrt(x * y)
        return [x / (x + y + t), y / (x + y + t), t / (x + y + t)]
    t = 1 + math.exp(tie) if model == "rao-kupper" else 1.0
    return [x / (x + t * y), y / (t * x + y), (t * t - 1) * x * y / (x + t * y) / (t * x + y)]


@pytest.mark.parametrize(("model", "tie"), [("rao-kupper", 0.3), ("davidson", -0.5), ("davidson", 2.0)])
def test_battles_follow_their_law(model, tie):
    data = simulate.battles([1.1, 0.0], 20_000, model=model, tie=tie, random_state=13)
    assert fits([data.wins_i[0], data.wins_j[0], data.ties[0]], tie_law(model, 1.1, tie))


def test_battles_without_ties():
    for model, tie in (("bradley-terry", 0.0), ("davidson", -math.inf), ("rao-kupper", -math.inf)):
        data = simulate.battles([1.1, 0.0], 20_000, model=model, tie=tie, random_state=14)
        assert data.ties.sum() == 0
        assert fits([data.wins_i[0], data.wins_j[0]], tie_law("bradley-terry", 1.1, 0)[:2])


def test_battles_draw_pairs_uniformly_and_may_favour_the_first():
    data = simulate.battles(np.zeros(4), 30_000, first=0.7, model="bradley-terry", random_state=15)
    assert data.ordered
    assert fits(data.wins_i + data.wins_j, np.full(12, 1 / 12))
    assert fits([data.wins_i.sum(), data.wins_j.sum()], tie_law("bradley-terry", 0.7, 0)[:2])


# ---- queries and ratings


def test_queries_have_their_shares_and_their_truth():
    w = np.array([1.0, -0.5, 0.0, 0.25])
    data = simulate.queries(200, (20, 60), 4, grades=4, w=w, noise=0.3, random_state=17)
    share = np.bincount(data.grade.astype(int)) / len(data.grade)
    np.testing.assert_allclose(share, np.array([8, 4, 2, 1]) / 15, atol=0.002)
    sizes = np.diff(data.offsets)
    assert (sizes.min(), sizes.max()) == (20, 60)
    found = np.linalg.lstsq(data.X, data.grade - data.grade.mean(), rcond=None)[0]
    assert found @ w / np.linalg.norm(found) / np.linalg.norm(w) > 0.995
    uneven = simulate.queries(50, 40, 3, grades=[0.7, 0.0, 0.3])
    np.testing.assert_allclose(np.bincount(uneven.grade.astype(int)) / 2000, [0.7, 0, 0.3], atol=0.001)


def test_queries_may_be_sparse():
    data = simulate.queries(50, 40, 200, density=0.05, random_state=18)
    assert sparse.issparse(data.X)
    assert data.X.nnz / (2000 * 200) == pytest.approx(0.05, rel=0.05)


def test_ratings_are_sparse_tied_and_true():
    theta = np.linspace(-1.2, 1.2, 60)
    data = simulate.ratings(3_000, 60, observed=0.15, theta=theta, noise=0.8, popularity=0.5, random_state=19)
    assert len(data.item) / (3_000 * 60) == pytest.approx(0.15, rel=0.05)
    assert set(np.unique(data.score)) == {1, 2, 3, 4, 5}
    assert (np.diff(data.offsets) >= 1).all()
    mean = np.bincount(data.item, data.score, 60) / np.bincount(data.item, minlength=60)
    assert stats.spearmanr(mean, theta).statistic > 0.99
    seen = np.sort(np.bincount(data.item, minlength=60))[::-1]
    assert seen[0] > 2 * seen[-1]


# ---- what cannot be drawn


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: simulate.plackett_luce([1.0, np.nan], 3), "theta must be one or more finite numbers"),
        (lambda: simulate.plackett_luce([1.0, 2.0], 3, top=0), "top must be at least 1, not 0"),
        (lambda: simulate.plackett_luce([1.0, 2.0], 3, top=1, partition=2), "not both"),
        (lambda: simulate.plackett_luce([1.0, 2.0], 3, partition=3), "needs from 1 to 2 tiers"),
        (lambda: simulate.plackett_luce([1.0, 2.0], 3, partition=[0, 1]), "sizes of at least 1"),
        (lambda: simulate.plackett_luce([1.0, 2.0], 3, subset=3), "between 1 and the number of items, 2"),
        (lambda: simulate.plackett_luce([1.0, 2.0], 3, items="abc"), "3 names for 2 items"),
        (lambda: simulate.plackett_luce([1.0, 2.0], -1), "must not be negative, not -1"),
        (lambda: simulate.mallows("abc", 1.5, 3), "phi 1.5 must lie between 0"),
        (lambda: simulate.mallows("aba", 0.5, 3), "occurs more than once"),
        (lambda: simulate.mallows_mixture(["abc", "ab"], 0.5, 3), "must name each of the 3 items once"),
        (lambda: simulate.mallows_mixture([], 0.5, 3), "at least one center"),
        (lambda: simulate.mallows_mixture(["ab", "ba"], 0.5, 3, share=[0.5, 0.6]), "sum to 1"),
        (lambda: simulate.battles([0.0, 1.0], 3, model="elo"), "model 'elo' is unknown; choose from"),
        (lambda: simulate.battles([0.0], 3), "at least 2 items"),
        (lambda: simulate.multinomial_preferences([0.0, 1.0], 3, adherence=[-1.0]), "agent 0 has -1"),
        (lambda: simulate.multinomial_preferences([0.0, 1.0], [1, 2]), "1 numbers >= 0"),
        (lambda: simulate.multinomial_preferences([0.0, 1.0], 3, gamma=[1.0, 0.0]), "above 0 for each of the 2"),
        (lambda: simulate.queries(0, 3, 3), "at least one query"),
        (lambda: simulate.queries(3, 3, 3, w=[1.0]), "w has 1 entries; there are 3 features"),
        (lambda: simulate.queries(3, 3, 3, density=0.0), "density must lie above 0"),
        (lambda: simulate.ratings(3, 3, observed=0.0), "observed must lie above 0"),
        (lambda: simulate.ratings(3, 3, theta=[1.0]), "theta has 1 entries; there are 3 items"),
    ],
)
def test_refusals_say_what_is_wrong(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_no_ballots():
    assert len(simulate.plackett_luce(THETA, 0)) == 0
    assert len(simulate.mallows("abc", 0.5, 0)) == 0
    assert len(simulate.battles(THETA, 0)) == 0
    assert len(simulate.multinomial_preferences(THETA, 0)) == 0


def test_every_name_is_there():
    assert all(callable(getattr(simulate, name)) for name in simulate.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = simulate.nothing
