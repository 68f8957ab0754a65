"""The learned prior: its mean follows support and mean controls, and errors carry what is uncertain about it."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from placet import Comparisons, Rankings, consensus
from placet.aggregate.likelihood.prior import trend_of, trend_root, without_trend
from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.pairs.bradley_terry import BradleyTerry


def popular(n=12, votes=300, seed=0):
    """Votes among items of which the better are drawn more often, with a control that goes with quality."""
    rng = np.random.default_rng(seed)
    theta = np.linspace(1.5, -1.5, n)
    share = np.exp(theta) / np.exp(theta).sum()
    a, b = rng.choice(n, (2, votes), p=share)
    a, b = a[a != b], b[a != b]
    style = theta[a] - theta[b] + rng.normal(size=len(a))
    won = rng.random(len(a)) < 1 / (1 + np.exp(theta[b] - theta[a] - 0.5 * style))
    return theta, a, b, won, style


def board_of(a, b, won, style=None, items=range(12), repeat=1):
    control = None if style is None else {"style": np.tile(style, repeat)}
    outcome = np.tile(np.where(won, "a", "b"), repeat)
    return Comparisons.from_battles(np.tile(a, repeat), np.tile(b, repeat), outcome, items=items, control=control)


def test_the_trend_is_the_mean_of_a_joint_prior():
    """K of the trend is that of theta = Z b + e with b and e drawn, and its root is the root of K^-1."""
    rng = np.random.default_rng(0)
    support, means = rng.integers(1, 30, 15).astype(float), rng.normal(size=(15, 2))
    support[3] = 0.0
    known = support > 0
    U = trend_of(support, means)
    K = np.linalg.inv(np.eye(15) - U @ U.T)
    place = np.array([((support[known] < s).sum() + (support[known] <= s).sum()) / 2 / known.sum() for s in support])
    z = ndtri(np.maximum(place, place[known].min()))
    columns = np.column_stack([z, means])
    columns = columns - columns[known].mean(axis=0)
    own = columns[:, :1] / np.sqrt((columns[known, :1] ** 2).mean())
    metric = np.linalg.inv(columns[known, 1:].T @ columns[known, 1:] / known.sum())
    np.testing.assert_allclose(K, np.eye(15) + own @ own.T + 9 * columns[:, 1:] @ metric @ columns[:, 1:].T, atol=1e-9)
    v = rng.normal(size=15)
    np.testing.assert_allclose(trend_root(U, trend_root(U, v)), without_trend(U, v), atol=1e-12)
    assert trend_of(support[:7]).shape == (7, 0)
    assert trend_of(np.full(20, 3.0)).shape == (20, 0)
    nearly = np.full(20, 0.3)
    nearly[::2] = 0.1 + 0.2  # the same support but for rounding
    assert trend_of(nearly).shape == (20, 0)


@pytest.mark.parametrize("with_style", [False, True])
def test_the_trend_does_not_depend_on_order_names_or_items_without_votes(with_style):
    _, a, b, won, style = popular()
    style = style if with_style else None
    fit = consensus(board_of(a, b, won, style), "bradley-terry")
    assert "around a mean that follows the items' support" in fit.notes[0]
    turn = np.random.default_rng(1).permutation(len(a))
    rows = consensus(board_of(a[turn], b[turn], won[turn], None if style is None else style[turn]), "bradley-terry")
    np.testing.assert_allclose(rows.scores, fit.scores, atol=1e-7)
    np.testing.assert_allclose(rows.stderr, fit.stderr, atol=1e-7)
    names = np.random.default_rng(2).permutation(12)
    other = consensus(board_of(names[a], names[b], won, style), "bradley-terry")
    np.testing.assert_allclose(other.scores[names], fit.scores, atol=1e-6)
    np.testing.assert_allclose(other.stderr[names], fit.stderr, rtol=1e-5)
    swapped = consensus(board_of(b, a, ~won, None if style is None else -style), "bradley-terry")
    np.testing.assert_allclose(swapped.scores, fit.scores, atol=1e-6)
    more = consensus(board_of(a, b, won, style, items=range(14)), "bradley-terry")
    gaps = more.scores[:12] - more.scores[0]
    np.testing.assert_allclose(gaps, fit.scores - fit.scores[0], atol=2e-2)  # the width is learned to 0.5%
    assert more.prior == pytest.approx(fit.prior, rel=0.01)
    assert more.scores[12] == more.scores[13] < 0
    twice = board_of(a, b, won, style, repeat=2)
    weighted = board_of(a, b, won, style).reweighted(2.0)
    one, two = (consensus(c, "bradley-terry") for c in (twice, weighted))
    np.testing.assert_allclose(one.scores, two.scores, atol=1e-6)


def test_style_that_goes_with_quality_stays_in_the_scores():
    theta, a, b, won, style = popular(votes=4000)
    c = board_of(a, b, won, style)
    fit = consensus(c, "bradley-terry")
    assert abs(fit.effects.coefficient[0] - 0.5) < 2.5 * fit.effects.stderr[0]
    assert np.abs(fit.scores - theta).max() < 3.5 * fit.stderr.max()
    level = BradleyTerry()
    level.level_prior = True
    assert level.fit(c).consensus_.effects.coefficient[0] > fit.effects.coefficient[0]


def test_errors_include_the_uncertainty_of_the_width():
    """Against the mixture over a grid of widths, weighted by their density given the data."""
    _, a, b, won, _ = popular(votes=60, seed=3)
    c = board_of(a, b, won).pooled()
    trend = pair_likelihood.item_trend(c, np.zeros((len(c), 0)))
    fit = consensus(c, "bradley-terry")
    grid = np.exp(np.linspace(math.log(0.05), math.log(10), 60))
    logs, means, squares, plain = [], [], [], None
    for width in [*grid, fit.prior]:
        p = pair_likelihood.pair_counts(c, "bradley-terry", width, False, trend=trend)
        found, at = pair_likelihood.fit_counts(p, pair_likelihood.start_of(p), max_iter=100, tol=1e-12)
        x, determinant = found.x, np.linalg.slogdet(pair_likelihood.hessian(p, at) * p.scale)[1]
        likelihood = -pair_likelihood.value(p, x) * p.scale - p.n_items * math.log(width) - determinant / 2
        logs.append(likelihood + 2 * math.log(width) - 1.5 * math.log(1 + (width / 2) ** 2))
        plain = np.diag(pair_likelihood.covariance_of(p, at))
        means.append(x - x.mean())
        squares.append(plain + means[-1] ** 2)
    weight = np.exp(np.array(logs[:-1]) - max(logs))
    mean, square = (np.average(part[:-1], axis=0, weights=weight) for part in (means, squares))
    expected = np.sqrt(square - mean**2)
    assert fit.stderr.mean() > 1.02 * np.sqrt(plain).mean()
    np.testing.assert_allclose(fit.stderr, expected, rtol=0.12)
    assert np.abs(np.sqrt(plain) / expected - 1).max() > np.abs(fit.stderr / expected - 1).max()


def test_the_trend_of_many_items_needs_no_dense_matrix():
    rng = np.random.default_rng(0)
    n, m = 600, 9000
    theta = rng.normal(size=n)
    share = np.exp(theta) / np.exp(theta).sum()
    a, b = rng.choice(n, (2, m), p=share)
    a, b = a[a != b], b[a != b]
    won = rng.random(len(a)) < 1 / (1 + np.exp(theta[b] - theta[a]))
    fit = consensus(board_of(a, b, won, items=range(n)), "bradley-terry")
    inside = np.abs(fit.scores - theta + theta.mean()) <= 1.96 * fit.stderr
    assert inside.mean() > 0.93
    assert np.sqrt(np.mean((fit.scores - theta + theta.mean()) ** 2)) < 0.6


def test_ballots_follow_the_trend_as_votes_do():
    """Ballots of two under Plackett-Luce are votes under Bradley-Terry."""
    _, a, b, won, _ = popular(votes=200)
    orders = [[x, y] if w else [y, x] for x, y, w in zip(a.tolist(), b.tolist(), won)]
    ballots = consensus(Rankings.from_orders(orders, items=range(12)), "plackett-luce")
    votes = consensus(board_of(a, b, won), "bradley-terry")
    np.testing.assert_allclose(ballots.scores, votes.scores, atol=0.02)  # widths are learned to 0.5%
    np.testing.assert_allclose(ballots.stderr, votes.stderr, rtol=0.02)
    assert ballots.prior == pytest.approx(votes.prior, rel=0.01)
    assert "around a mean that follows the items' support" in ballots.notes[0]
