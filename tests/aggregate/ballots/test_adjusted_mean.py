"""Adjusted mean ratings: against dense least squares and its likelihood, invariant, with errors by user."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
from placet.aggregate.ballots import adjusted_mean
from placet.aggregate.ballots.adjusted_mean import AdjustedMean
from placet.data import DataError, Rankings


def rated(rows, weight=None):
    users, items, stars = zip(*rows)
    columns = {"user": users, "item": items, "stars": stars}
    return Rankings.from_scores(columns, ballot="user", item="item", score="stars")


def drawn(seed=0, users=40, items=12, observed=0.4):
    return placet.simulate.ratings(users, items, observed=observed, random_state=seed)


def dense(data, follows=False):
    """L, b and P by plain loops over ballots."""
    n = data.n_items
    L, b, support = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for k in range(len(data)):
        rows = slice(data.offsets[k], data.offsets[k + 1])
        own, w = data.item[rows], data.weight[k]
        M = np.eye(len(own)) - 1 / len(own)
        L[np.ix_(own, own)] += w * M
        b[own] += w * (M @ data.score[rows])
        support[own] += w
    x = np.log1p(support)
    Z = np.column_stack([np.ones(n), x]) if follows else np.ones((n, 1))
    return L, b, np.eye(n) - Z @ np.linalg.pinv(Z)


@given(st.integers(0, 1000))
@settings(max_examples=15)
def test_scores_solve_the_equations_of_least_squares(seed):
    data = drawn(seed, users=25, items=8 + seed % 20)
    model = AdjustedMean(prior=0.7).fit(data)
    L, b, P = dense(data, follows=any("line in the log" in note for note in model.consensus_.notes))
    ratio = model.noise_**2 / 0.7**2
    theta = np.linalg.lstsq(L + ratio * P, b, rcond=None)[0]
    np.testing.assert_allclose(model.theta_, theta - theta.mean(), atol=1e-5)
    np.testing.assert_allclose(np.diff(model.consensus_.scores), np.diff(model.theta_), atol=1e-9)


def test_without_a_prior_they_are_those_of_a_regression_on_users_and_items():
    data = drawn(3, users=30, items=6, observed=0.7)
    rows = len(data.item)
    X = np.zeros((rows, 6 + len(data)))
    X[np.arange(rows), data.item] = 1
    X[np.arange(rows), 6 + data.ballot] = 1
    theta = np.linalg.lstsq(X, data.score, rcond=None)[0][:6]
    found = AdjustedMean(prior=None).fit(data)
    np.testing.assert_allclose(found.theta_, theta - theta.mean(), atol=1e-7)
    left = data.score - X @ np.linalg.lstsq(X, data.score, rcond=None)[0]
    users = (np.bincount(data.ballot, minlength=len(data)) > 0).sum()
    assert found.noise_**2 == pytest.approx(left @ left / (rows - users - 5))


def test_the_prior_is_where_the_restricted_likelihood_is_highest():
    data = drawn(5, users=60, items=25)
    model = AdjustedMean().fit(data)
    L, b, P = dense(data, follows=any("line in the log" in note for note in model.consensus_.notes))
    basis = np.linalg.svd(np.ones((1, 25)))[2][1:]  # orthonormal, without the common shift
    A, c, Q = basis @ L @ basis.T, basis @ b, basis @ P @ basis.T
    deviation = data.score - (np.bincount(data.ballot, data.score) / np.bincount(data.ballot))[data.ballot]
    free = len(data.item) - len(data)
    rank = np.linalg.matrix_rank(Q)

    def minus_log(u, v):
        noise, width = np.exp(u), np.exp(v)
        H = A / noise + Q / width
        fit = deviation @ deviation / noise - (c / noise) @ np.linalg.solve(H, c / noise)
        value = free * u + (rank - 1) * v + np.linalg.slogdet(H)[1] + fit  # the density of the width is its own size
        return value / 2

    u, v = np.log(model.noise_**2), np.log(model.prior_**2)
    best = minus_log(u, v)
    for step in (0.1, -0.1):
        assert minus_log(u + step, v) > best
        assert minus_log(u, v + step) > best
    assert abs(minus_log(u, v + 0.02) - minus_log(u, v - 0.02)) < 0.05


def test_order_names_and_weights_change_nothing():
    data = drawn(7)
    rng = np.random.default_rng(0)
    rows = [(int(u), int(i), s) for u, i, s in zip(data.agent[data.ballot], data.item, data.score)]
    found = placet.consensus(rated(rows))
    mixed = [(999 - u, f"x{i}", s) for u, i, s in rng.permutation(np.array(rows)).tolist()]
    other = placet.consensus(rated([(u, f"x{int(float(i[1:]))}", s) for u, i, s in mixed]))
    at = [other.items.index(f"x{name}") for name in found.items]
    np.testing.assert_allclose(other.scores[at], found.scores, atol=1e-6)
    np.testing.assert_allclose(other.stderr[at], found.stderr, rtol=1e-4)
    shifted = placet.consensus(rated([(u, i, 2 * s + u) for u, i, s in rows]))
    np.testing.assert_allclose(np.diff(shifted.scores), 2 * np.diff(found.scores), atol=1e-5)
    np.testing.assert_allclose(shifted.stderr, 2 * found.stderr, rtol=1e-4)


def test_a_weight_is_a_number_of_voters():
    data = drawn(8)
    plain = {"items": data.items, "score": data.score}
    weighted = Rankings(data.item, data.tier, data.offsets, weight=np.full(len(data), 3.0), **plain)
    item, tier, score = (np.tile(column, 3) for column in (data.item, data.tier, data.score))
    offsets = np.concatenate([data.offsets[:-1] + k * len(data.item) for k in range(3)] + [[3 * len(data.item)]])
    copies = Rankings(item, tier, offsets, items=data.items, score=score)
    a, b = (placet.consensus(one, "adjusted-mean") for one in (weighted, copies))
    np.testing.assert_allclose(a.scores, b.scores, atol=1e-6)
    np.testing.assert_allclose(a.stderr, b.stderr, rtol=1e-2)
    assert (a.stderr < placet.consensus(data, "adjusted-mean").stderr).all()


def test_errors_are_those_of_the_sandwich_of_users():
    data = drawn(9, users=200, items=10, observed=0.5)
    model = AdjustedMean(prior=None).fit(data)
    L, _, _ = dense(data)
    inverse = np.linalg.pinv(L)
    G = np.zeros((len(data), 10))
    for k in range(len(data)):
        rows = slice(data.offsets[k], data.offsets[k + 1])
        left = data.score[rows] - model.theta_[data.item[rows]]
        G[k, data.item[rows]] = left - left.mean()
    meat = inverse @ (G.T @ G) @ inverse * len(data) / (len(data) - 1)
    share = np.diag(L) / (np.diag(L) + adjusted_mean.MODEL_RATINGS)
    expected = np.sqrt(share * np.diag(meat) + (1 - share) * model.noise_**2 * np.diag(inverse))
    np.testing.assert_allclose(model.consensus_.stderr, expected, rtol=0.02)
    observed = AdjustedMean(prior=None, stderr="observed").fit(data).consensus_
    np.testing.assert_allclose(observed.stderr, model.noise_ * np.sqrt(np.diag(inverse)), rtol=1e-6)


def test_errors_of_very_many_items_are_sampled_and_alike(monkeypatch):
    data = drawn(10, users=300, items=60, observed=0.3)
    full = placet.consensus(data)
    monkeypatch.setattr(adjusted_mean, "MOST_SIMULATED", 10)
    monkeypatch.setattr(adjusted_mean, "MOST_EXACT", 10)
    sampled = placet.consensus(data)
    assert sampled.covariance is None
    np.testing.assert_allclose(sampled.scores, full.scores, atol=5e-3)
    ratio = sampled.stderr / full.stderr
    assert abs(np.median(ratio) - 1) < 0.05
    assert (abs(ratio - 1) < 0.35).all()


def test_the_probability_of_being_rated_higher_is_calibrated():
    theta = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
    data = placet.simulate.ratings(1500, 5, observed=1.0, theta=theta, random_state=1)
    found = placet.consensus(data)
    at = {(int(k), int(i)): s for k, i, s in zip(data.ballot, data.item, data.score)}
    for i, j in ((0, 1), (0, 4), (2, 1)):
        both = [(at[k, i], at[k, j]) for k in range(len(data)) if (k, i) in at and (k, j) in at]
        seen = np.mean([a > b for a, b in both])
        assert found.win_probability(i, j) == pytest.approx(seen, abs=0.05)


def test_groups_that_nobody_connects_are_named():
    apart = rated([(1, "a", 5), (1, "b", 3), (2, "a", 4), (2, "b", 3), (3, "x", 2), (3, "y", 1)])
    found = placet.consensus(apart)
    assert any("2 groups" in note for note in found.notes)
    with pytest.raises(DataError, match="no finite scores exist"):
        placet.consensus(apart, prior=None)
    with pytest.raises(DataError, match="needs whole ballots"):
        placet.consensus(placet.Comparisons.from_battles("ab", "bc", ["a", "tie"]), "adjusted-mean")


def test_without_ratings_tiers_are_one_point_apart():
    orders = Rankings.from_orders([["a", "b", "c"], ["b", ("a", "c")], ["c", "a"]])
    found = placet.consensus(orders, "adjusted-mean")
    rows = [
        (k, name, -tier)
        for k, one in enumerate(([0, 1, 2], [1, 0, 1], [1, None, 0]))
        for name, tier in zip("abc", one)
        if tier is not None
    ]
    assert found.scores == pytest.approx(placet.consensus(rated(rows)).scores, abs=1e-6)
    assert any("no ratings" in note for note in found.notes)


def test_one_rating_by_each_user_says_nothing():
    found = placet.consensus(rated([(k, "abc"[k % 3], k % 5) for k in range(9)]))
    np.testing.assert_allclose(found.scores, found.scores[0])
    assert np.isfinite(found.stderr).all()


def test_items_of_few_ratings_follow_popularity_but_being_rare_is_no_merit():
    rng = np.random.default_rng(2)
    seen = np.array([[rng.random() < 1 / (1 + k / 3) for k in range(40)] for _ in range(300)])
    for better in (1.0, -1.0):
        theta = better * np.linspace(1, -1, 40)
        rows = [(u, i, 3 + theta[i] + rng.normal()) for u, i in np.argwhere(seen)]
        found = placet.consensus(rated([*rows, (0, "new", 4.5)]))
        assert any("twice as many: +" in note for note in found.notes) == (better > 0)
        if better > 0:
            assert found.ranks[found.items.index("new")] > 10
