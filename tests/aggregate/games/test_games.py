"""Games: laws against their formulas, derivatives against differences, fits against scipy, sides of several items."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import skellam

import placet
from placet.aggregate.games.game_design import decayed_weight
from placet.aggregate.games.game_fit import goals, margin_bounds, margins
from placet.aggregate.games.game_likelihoods import OrderedMargins, PoissonGoals
from placet.data import DataError, Games
from placet.losses.pairwise import outcome_probabilities


def season(rng, teams=6, rounds=6, strength=0.5, level=0.3, home=0.3, shared=0.0):
    """Every pair meets ``rounds`` times; goals by Poisson's law with attack and defense."""
    attack, defense = strength * rng.normal(size=(2, teams))
    pairs = [pair for pair in itertools.permutations(range(teams), 2) for _ in range(rounds)]
    i, j = np.array(pairs).T
    both = rng.poisson(shared, len(i))
    x = rng.poisson(np.exp(level + attack[i] - defense[j] + home)) + both
    y = rng.poisson(np.exp(level + attack[j] - defense[i])) + both
    games = Games.from_results(i.tolist(), j.tolist(), x, y, control={"home": np.ones(len(i))}, items=range(teams))
    return games, attack + defense


LAWS = [
    (OrderedMargins(np.array([1.0]), True), [0.4]),
    (OrderedMargins(np.array([1.0, 2.0, 4.0]), True), [0.3, 1.1, 2.0]),
    (OrderedMargins(np.array([1.0, 3.0]), False), [1.2]),
    (PoissonGoals(False), []),
    (PoissonGoals(True), [math.log(0.3)]),
    (PoissonGoals(False, drawn=True), [0.4]),
    (PoissonGoals(True, drawn=True), [math.log(0.3), -0.7]),
]


def pmf(k, mean):
    """Poisson's law, by hand: that of scipy takes 50 times as long for one number."""
    return math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))


def probability(law, eta, own, x, y):
    """By the definition."""
    if isinstance(law, OrderedMargins):
        cuts = list(own) if law.drawn else [0.0, *own]
        sure = lambda z: 1 / (1 + math.exp(-z))  # noqa: E731
        at_least = lambda k, d: 1.0 if k == 0 else 0.0 if k > len(cuts) else sure(d - cuts[k - 1])  # noqa: E731
        m, d = x - y, eta[0]
        k = sum(abs(m) >= bound for bound in law.bounds)
        if m == 0:
            return 1 - at_least(1, d) - at_least(1, -d)
        return at_least(k, d if m > 0 else -d) - at_least(k + 1, d if m > 0 else -d)
    a, b, c = math.exp(eta[0]), math.exp(eta[1]), math.exp(own[0]) if law.shared else 0.0
    both = range(int(min(x, y)) + 1 if law.shared else 1)
    p = sum(pmf(x - k, a) * pmf(y - k, b) * (pmf(k, c) if law.shared else 1.0) for k in both)
    if not law.drawn:
        return p
    odds, draw = math.exp(own[-1]), sum(pmf(k, a) * pmf(k, b) for k in range(60))
    return p * (odds if x == y else 1.0) / (1 + (odds - 1) * draw)


@pytest.mark.parametrize(("law", "own"), LAWS)
def test_a_law_is_its_formula_and_its_slopes_are_its_derivatives(law, own):
    rng = np.random.default_rng(0)
    own = np.array(own)
    points = rng.integers(0, 6, (12, 2)).astype(float)
    if isinstance(law, OrderedMargins) and not law.drawn:
        points = points[points[:, 0] != points[:, 1]]
    eta = rng.normal(size=(len(points), law.rows)) * 0.7
    found = law.slopes(eta, own, points)
    for k, (x, y) in enumerate(points):
        assert math.exp(-found.cost[k]) == pytest.approx(probability(law, eta[k], own, x, y), rel=1e-9)
        both = np.concatenate([eta[k], own])

        def slopes(z, k=k):
            return law.slopes(z[None, : law.rows], z[law.rows :], points[k : k + 1])

        cost = lambda z: float(slopes(z).cost[0])  # noqa: E731
        assert found.first[k] == pytest.approx(approx_fprime(both, cost, 1e-7), abs=2e-5)
        step = [(slopes(both + h).first[0] - slopes(both - h).first[0]) / 2e-5 for h in 1e-5 * np.eye(len(both))]
        assert found.second[k] == pytest.approx(np.array(step), abs=1e-4)


@pytest.mark.parametrize(("law", "own"), LAWS)
def test_chances_add_to_one_and_swap_with_the_sides(law, own):
    eta = np.random.default_rng(1).normal(size=(5, law.rows))
    chances = law.outcomes(eta, np.array(own))
    assert chances.sum(axis=1) == pytest.approx(1)
    other = law.outcomes(-eta if law.rows == 1 else eta[:, ::-1], np.array(own))
    assert other[:, ::-1] == pytest.approx(chances)
    if isinstance(law, PoissonGoals):
        gap = np.array([[1 - skellam.cdf(0, *np.exp(one)), skellam.pmf(0, *np.exp(one))] for one in eta])
        more = math.exp(own[-1]) if law.drawn else 1.0
        assert chances[:, 0] == pytest.approx(gap[:, 0] / (1 + (more - 1) * gap[:, 1]))
        grid = [(x, y) for x in range(25) for y in range(25)]
        each = np.array([[probability(law, one, own, x, y) for x, y in grid] for one in eta[:2] / 2])
        assert each.sum(axis=1) == pytest.approx(1)
        assert law.means(eta[:2] / 2, np.array(own)) == pytest.approx(each @ np.array(grid), rel=1e-6)


def test_margins_of_wins_alone_are_the_model_of_rao_and_kupper():
    cut, d = 0.4, np.linspace(-2, 2, 5)
    win, loss, draw = outcome_probabilities(d, "rao-kupper", math.log(math.expm1(cut)))
    found = OrderedMargins(np.array([1.0]), True).outcomes(d[:, None], np.array([cut]))
    assert found == pytest.approx(np.stack([win, draw, loss], axis=1))


def plain_cost(games, law, x, width, kind):
    """The objective game by game: sides as sums over their items."""
    n, k = games.n_items, 0 if games.control is None else games.control.shape[1]
    total = 0.5 * sum(x[: n * (1 if kind == "margins" else 2)] ** 2) / width**2
    p = n + k if kind == "margins" else 2 * n + 1 + 2 * k
    total += 0.5 * sum(x[n if kind == "margins" else 2 * n :] ** 2) / 100
    for g in range(len(games)):
        parts = [slice(games.offsets[2 * g + s], games.offsets[2 * g + s + 1]) for s in (0, 1)]
        side = lambda z: [sum(games.share[r] * z[games.item[r]]) for r in parts]  # noqa: B023, E731
        shown = games.control[g] if k else np.zeros(0)
        if kind == "margins":
            a, b = side(x[:n])
            eta = [a - b + shown @ x[n:p]]
        else:
            attack, defense = (x[:n] + x[n : 2 * n]) / 2, (x[:n] - x[n : 2 * n]) / 2
            (aa, ab), (da, db) = side(attack), side(defense)
            level, scored, conceded = x[2 * n], x[2 * n + 1 : 2 * n + 1 + k], x[2 * n + 1 + k : p]
            eta = [level + aa - db + shown @ scored, level + ab - da + shown @ conceded]
        total -= games.weight[g] * math.log(max(probability(law, eta, x[p:], *games.points[g]), 1e-300))
    return total


@pytest.mark.parametrize("kind", ["margins", "goals", "shared", "without draws"])
def test_a_fit_with_teams_is_the_minimum_of_the_plain_objective(kind):
    rng = np.random.default_rng(2)
    names = list("abcd")
    teams = [tuple(rng.permutation(names)[: rng.integers(2, 4)]) for _ in range(25)]
    split = [(team[:1], team[1:]) for team in teams]
    x, y = rng.integers(0, 4, (2, 25))
    games = Games.from_results(
        [a for a, _ in split], [b for _, b in split], x, y, weight=rng.uniform(0.5, 2, 25),
        control={"home": rng.integers(0, 2, 25)}, items=names,
    )  # fmt: skip
    given = {"shared": kind == "shared", "draws": kind != "without draws"}
    fit = margins(games, prior=0.8, levels=2) if kind == "margins" else goals(games, prior=0.8, **given)
    law, own = fit.games.law, fit.games.own
    at = np.concatenate([fit.games.x, own])
    objective = lambda z: plain_cost(games, law, z, 0.8, "margins" if kind == "margins" else "goals")  # noqa: E731
    assert np.abs(approx_fprime(at, objective, 1e-6)).max() < 2e-3
    again = minimize(objective, at, method="BFGS", options={"maxiter": 20})
    assert again.fun == pytest.approx(objective(at), abs=1e-5)
    assert fit.scores == pytest.approx(fit.games.x[:4] - fit.games.x[:4].mean())


def test_intervals_cover_and_the_order_is_found():
    covered = []
    for seed in range(12):
        games, truth = season(np.random.default_rng(seed), teams=8, rounds=4)
        board = goals(games)
        low, high = board.interval(0.9)
        truth = truth - truth.mean()
        covered.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.8 < np.mean(covered) < 0.97
    games, truth = season(np.random.default_rng(99), teams=8, rounds=40)
    for method in ("margins", "goals"):
        board = placet.consensus(games, method)
        assert np.corrcoef(board.scores, truth)[0, 1] > (0.98 if method == "goals" else 0.95)  # goals are the truth
        assert board.games.effects.coefficient[0] > 2 * board.games.effects.stderr[0]
    assert board.games.effects.coefficient[0] == pytest.approx(0.3, abs=0.1)
    assert board.effects is None  # not in units of odds
    assert any(note.startswith("control home: each unit multiplies the ratio of goals") for note in board.notes)


@pytest.mark.parametrize("method", ["margins", "goals"])
def test_the_width_of_the_prior_is_learned_where_games_are_few(method):
    """200 items with 6 games each: the scores alone, drawn to 0, would say less than half of the width."""
    found = []
    for seed in range(3 if method == "margins" else 1):
        rng = np.random.default_rng(seed)
        strength = rng.normal(size=200)
        a, b = np.array([rng.choice(200, 2, replace=False) for _ in range(600)]).T
        d = strength[a] - strength[b]
        x, y = rng.poisson(np.exp(d / 2)), rng.poisson(np.exp(-d / 2))
        if method == "margins":
            x = (rng.random(600) < 1 / (1 + np.exp(-d))).astype(int)
            y = 1 - x
        found.append(placet.consensus(Games.from_results(a.tolist(), b.tolist(), x, y), method).prior)
    assert np.mean(found) == pytest.approx(1.0, abs=0.15)


def test_draws_beyond_those_of_poisson_are_found_and_forecast():
    games, _ = season(np.random.default_rng(5), teams=6, rounds=40)
    close = np.abs(games.margin) == 1
    changed = close & (np.random.default_rng(6).random(len(games)) < 0.4)  # the better side lets the other come level
    games = replace(games, points=np.where(changed[:, None], games.points.max(axis=1, keepdims=True), games.points))
    seen = float(np.mean(games.margin == 0))
    learned, plain = (placet.consensus(games, "goals", draws=draws) for draws in (True, False))
    said = [board.games.chances_of(games)[:, 1].mean() for board in (learned, plain)]
    assert said[0] == pytest.approx(seen, abs=0.005)
    assert said[1] < seen - 0.05
    assert learned.games.costs(games).mean() < plain.games.costs(games).mean() - 0.01
    assert any("times those of Poisson's law" in note for note in learned.notes)
    without = Games.from_results(["x", "y", "x"], ["y", "z", "z"], [3, 2, 5], [0, 1, 0])
    assert placet.consensus(without, "goals", prior=1.0).games.law == PoissonGoals(False)  # nothing is drawn


def test_shared_goals_are_found():
    games, _ = season(np.random.default_rng(3), teams=6, rounds=40, shared=0.4)
    board = placet.consensus(games, "goals", shared=True)
    assert math.exp(board.games.own[0]) == pytest.approx(0.4, abs=0.12)
    expected = board.games.expected_points(games[:5])
    assert expected.shape == (5, 2)
    assert board.games.expected_points(games).mean(axis=0) == pytest.approx(games.points.mean(axis=0), rel=0.06)


def test_forecasts_take_sides_of_names_and_say_what_is_unknown():
    games, _ = season(np.random.default_rng(4))
    board = placet.consensus(games, "margins")
    best, worst = board.order[0], board.order[-1]
    chances = board.games.chances([board.items[best]], [board.items[worst]])
    assert chances.shape == (1, 3)
    assert chances[0, 0] > chances[0, 2]
    at_home = board.games.chances([board.items[best]], [board.items[worst]], control={"home": [1.0]})
    assert at_home[0, 0] > chances[0, 0]
    assert board.games.costs(games).mean() < math.log(3)
    with pytest.raises(DataError, match="item 'x' is not on the board"):
        board.games.chances(["x"], [0])
    with pytest.raises(DataError, match="margins say nothing about points"):
        board.games.expected_points(games)
    few = placet.consensus(games[:6], "margins", prior=2.0).games.chances([0], [1], control={"home": [0.0]})
    sure = OrderedMargins(np.array([1.0]), True)
    assert abs(few[0, 0] - few[0, 2]) < 1
    assert sure.allows(np.array([0.1]))
    assert not sure.allows(np.array([-0.1]))


def test_old_games_count_less():
    when = ["2020-01-01", "2022-01-01", "2024-01-01"]
    games = Games.from_results("xxx", "yyy", [1, 0, 0], [0, 1, 3], time=when)
    assert decayed_weight(games, "2y") == pytest.approx([0.25, 0.5, 1.0])
    assert decayed_weight(games, None) == pytest.approx([1, 1, 1])
    gap = [float(np.ptp(margins(games, prior=1.0, half_life=how).scores)) for how in (None, "1y")]
    assert gap[1] > gap[0]
    board = margins(games, prior=1.0, half_life="1y").games
    soon, late = (Games.from_results("x", "y", [0], [0], time=[when]) for when in ("2024-01-02", "2026-01-01"))
    assert board._growth(soon) == pytest.approx([1.0], abs=0.01)
    assert board._growth(late) == pytest.approx([4.0], abs=0.01)
    assert abs(np.ptp(board.chances_of(late)[0, ::2])) < abs(np.ptp(board.chances_of(soon)[0, ::2]))
    with pytest.raises(ValueError, match="half_life must be such as"):
        margins(games, half_life="soon")
    with pytest.raises(ValueError, match="half_life= needs to know when"):
        margins(Games.from_results(["x"], ["y"], [1], [0]), half_life="1y")


def test_margins_are_cut_where_they_occur():
    ones = np.ones(6)
    assert margin_bounds(np.array([1.0, -1.0, 2.0, 0.0, 1.0, 2.0]), ones, 5).tolist() == [1, 2]
    many = np.arange(1.0, 101)
    assert margin_bounds(many, np.ones(100), 4).tolist() == [1, 26, 51, 76]
    with pytest.raises(DataError, match="all games are drawn"):
        margin_bounds(np.zeros(3), np.ones(3), 4)


def test_games_refuse_what_is_wrong():
    with pytest.raises(DataError, match="'x' is in it more than once"):
        Games.from_results([("x", "y")], ["x"], [1], [0])
    with pytest.raises(DataError, match="more than once"):
        Games.from_results([("x", "x")], ["y"], [1], [0])
    with pytest.raises(DataError, match="a side has no items"):
        Games.from_results([()], ["y"], [1], [0])
    with pytest.raises(DataError, match="columns differ in length"):
        Games.from_results(["x"], ["y"], [1, 2], [0])
    games = Games.from_results(["x", "y"], ["y", "x"], [1.5, 2], [0, 1])
    with pytest.raises(DataError, match=r"goals \[1.5, 0.0\] are not whole numbers"):
        placet.consensus(games, "goals")
    with pytest.raises(ValueError, match="'bradley-terry' does not take games"):
        placet.consensus(games, "bradley-terry")
    with pytest.raises(ValueError, match="leave bootstrap out"):
        placet.consensus(games, "margins", bootstrap=20)
    with pytest.raises(ValueError, match="'goals' needs games with points"):
        placet.consensus(placet.Comparisons.from_battles(["a"], ["b"], ["a"]), "goals")
    assert "default for games" in placet.consensus(games).notes[0]
    assert games[1:].points.tolist() == [[2, 1]]
    assert len(games[[]]) == 0


def test_tables_of_games_are_read_with_teams_home_and_points(tmp_path):
    path = tmp_path / "cup.csv"
    path.write_text(
        "home_team,away_team,home_score,away_score,neutral,date\nx,y,2,1,FALSE,2024-01-01\ny,z,0,0,TRUE,2024-02-01\n"
    )
    games = placet.read_games(path, ordered=True, neutral="neutral", time="date")
    assert (games.items, games.controls) == (("x", "y", "z"), ("first",))
    assert games.control.ravel().tolist() == [1, 0]
    assert games.points.tolist() == [[2, 1], [0, 0]]
    assert isinstance(placet.read(path), placet.Comparisons)
    pairs = {"a1": ["p", "q"], "a2": ["q", None], "b1": ["r", "p"], "winner": ["a", "tie"]}
    doubles = placet.read_games(pairs, a="a1,a2", b="b1", side="mean")
    assert doubles.share.tolist() == [0.5, 0.5, 1, 1, 1]
    assert doubles.points.tolist() == [[1, 0], [0, 0]]
    cells = placet.read({"home": ["p+q"], "away": ["r"], "score_a": [3], "score_b": [1]}, members="+")
    assert [cells.items[k] for k in cells.item] == ["p", "q", "r"]
    with pytest.raises(DataError, match="an item is in the game twice"):
        placet.read_games({"home": ["p+q"], "away": ["q"], "score_a": [3], "score_b": [1]}, members="+")
    with pytest.raises(DataError, match="no points and no winner"):
        placet.read_games({"home": ["p"], "away": ["q"]})
