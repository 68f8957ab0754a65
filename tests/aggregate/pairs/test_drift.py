"""Scores that move: the factorization equals a dense one, walks are recovered and covered, dates in every form."""

import json
import math

import numpy as np
import polars as pl
import pytest

import placet
from placet.aggregate import consensus
from placet.aggregate.pairs import drift, drift_widths
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.data import Comparisons, DataError
from placet.data.times import TimeSteps, time_column
from placet.losses.pairwise import outcome_probabilities


def walks(seed, *, n=8, steps=12, each=60, sigma=0.4, tie=-0.5, family="davidson", home=0.0):
    """True scores (steps, items) and votes in each step, whose time is the step."""
    rng = np.random.default_rng(seed)
    theta = np.cumsum(np.vstack([rng.normal(size=n), sigma * rng.normal(size=(steps - 1, n))]), axis=0)
    k = np.repeat(np.arange(steps), each)
    a = rng.integers(0, n, len(k))
    b = (a + rng.integers(1, n, len(k))) % n
    win, loss, _ = outcome_probabilities(theta[k, a] - theta[k, b] + home, family, tie)
    u = rng.random(len(k))
    outcome = np.where(u < win, "a", np.where(u < win + loss, "b", "tie"))
    return theta, Comparisons.from_battles(a, b, outcome, items=range(n), time=k.astype(float), ordered=True)


def sparse_votes(seed=0):
    """Few votes, so that items skip steps."""
    return walks(seed, n=6, steps=9, each=4)[1]


def log_determinant(fronts):
    return 2 * sum(np.log(np.diag(L)).sum() for L, _ in fronts.factors)


@pytest.mark.parametrize("family", ["bradley-terry", "davidson", "rao-kupper"])
def test_the_factorization_is_that_of_the_dense_hessian(family):
    c = sparse_votes()
    walk = drift.Walk(c, TimeSteps(1.0, c.time), family, True)
    walk.set_widths(1.3, 0.5)
    rng = np.random.default_rng(1)
    x = 0.3 * rng.normal(size=walk.n + walk.p.n_extra)
    x[walk.n :] = 0.4
    h, eye = 1e-5, np.eye(len(x))
    at = walk.derivatives(x)
    if family != "bradley-terry":
        gradient = [(walk.value(x + h * e) - walk.value(x - h * e)) / (2 * h) for e in eye]
        np.testing.assert_allclose(at.gradient, gradient, atol=1e-6)
    slope = lambda z: walk.derivatives(z).gradient  # noqa: E731
    H = np.array([(slope(x + h * e) - slope(x - h * e)) / (2 * h) for e in eye])
    factored = walk.factored(at)
    np.testing.assert_allclose(factored.solve(at.gradient), np.linalg.solve(H, at.gradient), rtol=1e-5, atol=1e-7)
    inverse = np.linalg.inv(H[: walk.n, : walk.n])
    own, link, gap = factored.fronts.variances(walk.p.i, walk.p.j)
    np.testing.assert_allclose(own, np.diag(inverse), rtol=1e-5)
    np.testing.assert_allclose(link[walk.linked], inverse[walk.linked, walk.following], rtol=1e-4, atol=1e-8)
    i, j = walk.p.i, walk.p.j
    np.testing.assert_allclose(gap, inverse[i, i] + inverse[j, j] - 2 * inverse[i, j], rtol=1e-4)
    assert log_determinant(factored.fronts) == pytest.approx(np.linalg.slogdet(H[: walk.n, : walk.n])[1], rel=1e-6)
    spread = walk.spread(x, factored)
    full = np.linalg.inv(H) / walk.p.scale
    np.testing.assert_allclose(spread.own, np.diag(full)[: walk.n], rtol=1e-5)
    last, end = walk.last_unknowns(6), walk.chains.step[-1]
    expected = full[np.ix_(last, last)] + np.diag(0.5**2 * (end - walk.chains.step[last]))
    np.testing.assert_allclose(walk.covariance(factored, 6), expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("family", ["bradley-terry", "davidson"])
def test_products_solve_what_factors_do(family, monkeypatch):
    c = walks(2, n=12, steps=15, each=25)[1]
    walk = drift.Walk(c, TimeSteps(1.0, c.time), family, True)
    walk.set_widths(1.3, 0.5)
    x = np.append(0.3 * np.random.default_rng(1).normal(size=walk.n), np.full(walk.p.n_extra, 0.4))
    at = walk.derivatives(x)
    exact = walk.factored(at)
    walk.direct = False
    found = walk.factored(at, 1e-9)
    np.testing.assert_allclose(found.solve(at.gradient), exact.solve(at.gradient), rtol=1e-5, atol=1e-8)
    v = np.sin(np.arange(walk.n))
    np.testing.assert_allclose(exact.fronts.solve(found.fronts.times(v)), v, atol=1e-8)
    assert found.fronts.solve(np.zeros((walk.n, 0))).shape == (walk.n, 0)
    monkeypatch.setattr("placet.aggregate.pairs.time_chains.DRAWS", 64)
    own, link, gap = found.fronts.variances(walk.p.i, walk.p.j)
    true = exact.fronts.variances(walk.p.i, walk.p.j)
    np.testing.assert_allclose(own, true[0], rtol=0.25)
    assert abs(np.mean(own / true[0]) - 1) < 0.03
    assert abs(np.mean(link[walk.linked] / true[1][walk.linked]) - 1) < 0.06
    assert abs(np.mean(gap / true[2]) - 1) < 0.1


def test_many_items_are_fitted_by_products(monkeypatch):
    """The same scores, drift and (sampled) standard errors; and nothing is dense."""
    theta, c = walks(4, n=60, steps=12, each=500, sigma=0.3)
    ask = {"ties": "davidson", "drift": "learn", "step": 1.0, "order_effect": True}
    exact = consensus(c, "bradley-terry", **ask)
    monkeypatch.setattr(drift, "MOST_WORK", 0.0)
    monkeypatch.setattr(drift, "Fronts", None)
    found = consensus(c, "bradley-terry", **ask)
    assert found.fit.converged
    assert found.covariance is None
    assert found.drift == pytest.approx(exact.drift, rel=0.05)
    np.testing.assert_allclose(found.scores, exact.scores, atol=0.03)
    np.testing.assert_allclose(found.stderr, exact.stderr, rtol=0.25)
    assert abs(np.mean(found.stderr / exact.stderr) - 1) < 0.05
    error = found.scores - (theta[-1] - theta[-1].mean())
    assert 0.85 < np.mean(np.abs(error) < 1.96 * found.stderr) <= 1.0
    assert any("standard errors are sampled" in note for note in found.notes)
    assert consensus(c, "bradley-terry", **ask).scores.tobytes() == found.scores.tobytes()


def test_the_learned_drift_does_not_depend_on_where_learning_starts(monkeypatch):
    """One vote of an item in a step: squares are near their prior whatever the drift is."""
    _, c = walks(3, n=100, steps=40, each=50, sigma=0.15, tie=-np.inf)
    found = []
    for first in (0.05, 0.2, 0.8):
        monkeypatch.setattr(drift_widths, "FIRST_DRIFT", first)
        found.append(consensus(c, "bradley-terry", drift="learn", step=1.0).drift)
    assert max(found) < 1.1 * min(found)
    assert 0.08 < found[0] < 0.25


def test_rounds_of_learning_are_told():
    _, c = walks(4, n=6, steps=6, each=40)
    told = []
    consensus(c, "bradley-terry", drift="learn", step=1.0, progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told[:-1]] == list(range(len(told) - 1))
    assert all(done < total for done, total in told[:-1])
    assert told[-1] == (1, 1)
    assert len(told) > 2


def test_memory_and_time_of_a_walk_are_known_before(monkeypatch):
    from placet.aggregate.consensus_door import expected_seconds

    _, c = walks(4, n=20, steps=10, each=50)
    assert expected_seconds(c, "bradley-terry", params={"drift": "learn", "step": 1.0}) < 2
    monkeypatch.setattr(drift, "MOST_WORK", 0.0)
    slow = expected_seconds(c, "bradley-terry", params={"drift": "learn", "step": 1.0})
    assert 0.03 < slow < 0.3
    monkeypatch.setattr("placet.data.engines.memory.available", lambda: 1000)
    monkeypatch.setattr("placet.data.engines.memory.SMALL", 0)
    with pytest.raises(DataError, match=r"scores of items at [0-9]+ steps needs about .* take longer steps"):
        consensus(c, "bradley-terry", drift=0.3, step=1.0)


def test_learned_widths_are_those_of_the_evidence():
    """Laplace's evidence by log determinants, on a grid, is greatest near the drift that was learned."""
    _, c = walks(0, n=10, steps=15, each=80)
    found = consensus(c, "bradley-terry", ties="davidson", drift="learn", step=1.0, order_effect=True)
    width, learned = found.prior, found.drift
    walk = drift.Walk(c, TimeSteps(1.0, c.time), "davidson", True)
    start = walk.start(Comparisons(c.i, c.j, c.wins_i, c.wins_j, c.ties, ordered=True), True, None, 100)[1]

    def evidence(sigma):
        walk.set_widths(width, sigma)
        fit, H = walk.fit(start, 100, 1e-10)
        data = walk.value(fit.x) * walk.p.scale
        logdet = log_determinant(H.fronts) + np.linalg.slogdet(H.schur)[1] + len(fit.x) * math.log(walk.p.scale)
        prior = -0.5 * (np.log(walk.gaps).sum() + 2 * len(walk.gaps) * math.log(sigma))
        return -data - 0.5 * logdet + prior

    def by_walk(sigma):
        walk.set_widths(width, sigma)
        fit, H = walk.fit(start, 100, 1e-10)
        return walk.evidence(fit.x, H)

    grid = learned * np.exp(np.linspace(-0.5, 0.5, 11))
    assert by_walk(grid[0]) - by_walk(grid[7]) == pytest.approx(evidence(grid[0]) - evidence(grid[7]), abs=1e-6)
    best = grid[np.argmax([evidence(sigma) for sigma in grid])]
    assert abs(math.log(best / learned)) <= 0.11
    assert 0.25 < learned < 0.6  # it was 0.4


@pytest.mark.parametrize("given", [True, False])
def test_scores_and_errors_are_those_of_the_posterior(given):
    """Two items over ten steps, by importance sampling from the prior with a flat density of the drift."""
    won, lost = np.array([[4, 4, 3, 4, 4, 2, 1, 1, 0, 1], [0, 0, 1, 0, 0, 2, 3, 3, 4, 3]], float)
    none = np.zeros(10)
    c = Comparisons(none.astype(int), none.astype(int) + 1, won, lost, none, time=np.arange(10.0))
    found = consensus(c, "bradley-terry", drift=0.5 if given else "learn", step=1.0, prior=1.0)
    rng, n = np.random.default_rng(0), 800_000
    sigma = np.full(n, 0.5) if given else 2.0 * rng.random(n)
    steps = math.sqrt(2) * rng.normal(size=(10, n))  # of the difference of the two
    steps[1:] *= sigma
    d = np.cumsum(steps, axis=0)
    log = -won @ np.logaddexp(0, -d) - lost @ np.logaddexp(0, d)
    weight = np.exp(log - log.max())
    assert weight.sum() ** 2 / (weight**2).sum() > 800
    mean = float(weight @ d[-1] / weight.sum())
    error = math.sqrt(float(weight @ (d[-1] - mean) ** 2 / weight.sum()))
    assert found.scores[0] - found.scores[1] == pytest.approx(mean, abs=0.1 * error)
    assert 2 * found.stderr[0] == pytest.approx(error, rel=0.1)
    if given:
        assert abs(2 * found.fit.x[-2] - mean) > 0.1 * error  # the mode


def test_walks_are_recovered_and_covered():
    inside, errors, static = [], [], []
    for seed in range(4):
        theta, c = walks(seed, steps=10, each=150)
        found = consensus(c, "bradley-terry", ties="davidson", drift="learn", step=1.0)
        assert found.fit.converged
        for k in (0, 4, 9):
            now, true = found.at(float(k) + 0.5), theta[k] - theta[k].mean()
            gap = now.scores - now.scores.mean() - true
            errors.append(np.abs(gap).mean())
            inside += (np.abs(gap) < 1.96 * now.stderr).tolist()
        plain = consensus(c.pooled(), "bradley-terry", ties="davidson")
        static.append(np.abs(plain.scores - (theta[9] - theta[9].mean())).mean())
        np.testing.assert_allclose(found.at(9.5).stderr, found.stderr, rtol=1e-5)  # the same scores, asked for twice
        low, high = found.interval(0.95)
        true = theta[9] - theta[9].mean()
        inside += ((low <= true) & (true <= high)).tolist()
    assert np.mean(inside) > 0.88
    assert np.mean(errors) < 0.6 * np.mean(static)


def test_a_tiny_drift_is_the_model_without_time():
    _, c = walks(5, sigma=0.0)
    c = c.reweighted(100.0)  # the posterior is not skewed: its mean, which drifting scores have, is its mode
    plain = consensus(c.pooled(), "bradley-terry", ties="davidson", prior=1.0)
    found = consensus(c, "bradley-terry", ties="davidson", prior=1.0, drift=1e-4, step=1.0)
    np.testing.assert_allclose(found.scores, plain.scores, atol=3e-4)
    np.testing.assert_allclose(found.stderr, plain.stderr, rtol=1e-3)
    assert found.tie == pytest.approx(plain.tie, abs=1e-5)
    np.testing.assert_allclose(found.covariance, plain.covariance, atol=1e-4)


def test_standard_errors_grow_where_nothing_is_known():
    a, b = ["x"] * 6 + ["y"] * 2, ["y"] * 6 + ["z"] * 2
    years = ["2000-01-01"] * 3 + ["2003-06-01"] * 3 + ["2010-01-01"] * 2
    c = Comparisons.from_battles(a, b, ["a", "b", "a", "a", "a", "b", "a", "b"], time=years)
    found = consensus(c, "bradley-terry", drift=0.3, prior=1.0, active_since=None)
    x = found.items.index("x")
    error = lambda year: found.at(f"{year}-07-01").stderr[x]  # noqa: E731
    assert error(2001) ** 2 > (2 * error(2000) ** 2 + error(2003) ** 2) / 3  # between two comparisons less is known
    assert error(2008) == pytest.approx(math.sqrt(error(2003) ** 2 + 0.09 * 5), rel=1e-3)
    assert error(1990) == pytest.approx(math.sqrt(error(2000) ** 2 + 0.09 * 10), rel=1e-3)
    middle = found.at("2001-07-01").scores[x]
    ends = sorted([found.at("2000-07-01").scores[x], found.at("2003-07-01").scores[x]])
    assert ends[0] <= middle <= ends[1]
    frame = found.history("x")
    assert frame.columns == ["item", "time", "score", "stderr"]
    assert [str(day) for day in frame["time"]] == ["2000-01-01", "2003-01-01"]
    assert len(found.history()) == 6
    now, later = found.win_probability("x", "z", at="2010-07-01"), found.win_probability("x", "z", at="2090-07-01")
    assert abs(later - 0.5) < abs(now - 0.5)
    assert any("last step, which begins 2010-01-01" in note for note in found.notes)


def test_nothing_depends_on_the_order_of_votes_or_names():
    _, c = walks(6, each=20)
    plain = consensus(c, "bradley-terry", ties="davidson", drift="learn", step=1.0)
    rng = np.random.default_rng(0)
    turned = rng.permutation(8)
    columns = (turned[c.i], turned[c.j], c.wins_i, c.wins_j, c.ties)
    order = rng.permutation(len(c))
    other = Comparisons(*(column[order] for column in columns), time=c.time[order], ordered=True)
    again = consensus(other, "bradley-terry", ties="davidson", drift="learn", step=1.0)
    np.testing.assert_allclose(again.scores[turned], plain.scores, atol=1e-5)
    halves = placet.concat([c[: len(c) // 2], c[len(c) // 2 :]])
    assert halves == c
    boot = consensus(c, "bradley-terry", ties="davidson", drift=0.4, step=1.0, bootstrap=3)
    assert boot.draws.shape == (3, 8)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"drift": "fast"}, "positive number or"),
        ({"drift": -1.0}, "positive number or"),
        ({"drift": 0.1, "prior": None}, "needs a prior"),
        ({"drift": 0.1, "stderr": "sandwich"}, "no stderr"),
        ({"drift": 0.1, "step": "often"}, "step must be such as"),
        ({"drift": 0.1, "step": 2.0}, "step must be such as"),
    ],
)
def test_what_is_wrong_is_said(params, message):
    votes = Comparisons.from_battles("ab", "ba", ["a", "a"], time=["2020-01-01", "2021-01-01"], agent="xy")
    with pytest.raises(ValueError, match=message):
        BradleyTerry(**params).fit(votes)
    with pytest.raises(ValueError, match="needs to know when"):
        BradleyTerry(drift=0.1).fit(votes.pooled())
    with pytest.raises(ValueError, match="scores do not move"):
        consensus(votes, "bradley-terry").at("2020-01-01")


@pytest.mark.parametrize("family", ["none", "davidson", "rao-kupper"])
def test_controls_are_fitted_with_scores_that_move(family):
    """Effects of two controls beside walks: within 3 standard errors, and the scores near the truth."""
    rng = np.random.default_rng(3)
    theta = np.cumsum(0.4 * rng.normal(size=(8, 6)), axis=0) + rng.normal(size=6)
    step = np.repeat(np.arange(8), 150)
    a = rng.integers(0, 6, len(step))
    b = (a + rng.integers(1, 6, len(step))) % 6
    Z = rng.normal(size=(len(step), 2))
    kind = {"none": "bradley-terry"}.get(family, family)
    tie = -np.inf if family == "none" else -0.5
    win, loss, _ = outcome_probabilities(theta[step, a] - theta[step, b] + Z @ [0.8, -0.4], kind, tie)
    u = rng.random(len(step))
    outcome = np.where(u < win, "a", np.where(u < win + loss, "b", "tie"))
    beside = {"time": step.astype(float), "control": {"length": Z[:, 0], "bold": Z[:, 1]}}
    votes = Comparisons.from_battles(a, b, outcome, items=range(6), **beside)
    found = consensus(votes, "bradley-terry", ties=family, drift="learn", step=1.0)
    error = found.controls["coefficient"].to_numpy() - [0.8, -0.4]
    assert (abs(error) < 3 * found.controls["stderr"].to_numpy()).all()
    assert (found.controls["stderr"].to_numpy() < 0.15).all()
    assert np.corrcoef(found.scores, theta[-1])[0, 1] > 0.9


# ---- dates


@pytest.mark.parametrize(
    "column",
    [
        ["2024-06-01", "2024-06-02"],
        ["2024/06/01", "2024-06-02T00:00:00"],
        np.array(["2024-06-01", "2024-06-02"], "datetime64[D]"),
        pl.Series(["2024-06-01", "2024-06-02"]).str.to_date(),
        ["2024-06-01T02:00:00+02:00", "2024-06-01 22:00:00-02:00"],
    ],
    ids=str,
)
def test_dates_in_every_form(column):
    expected = np.array(["2024-06-01", "2024-06-02"], "datetime64[s]")
    np.testing.assert_array_equal(time_column(column, 2), expected)


def test_steps_of_the_calendar():
    days = np.array(["2023-12-31", "2024-01-01", "2024-07-01", "2025-01-01"], "datetime64[s]")
    assert np.diff(TimeSteps("1y", days).number(days)).tolist() == [1, 0, 1]
    assert np.diff(TimeSteps("6m", days).number(days)).tolist() == [1, 1, 1]
    assert str(TimeSteps("1y", days).start(54)) == "2024-01-01T00:00:00"
    assert TimeSteps("1y", days).fraction(days[2:3])[0] == pytest.approx(54, abs=0.01)
    assert TimeSteps(10.0, np.zeros(1)).number(np.array([9.9, 10.0, -1.0])).tolist() == [0, 1, -1]
    for wrong in (["2024-13-01"], ["soon"], [None], [float("nan")]):
        with pytest.raises(DataError):
            time_column(wrong, 1)


def test_files_with_dates_and_the_command(tmp_path):
    from typer.testing import CliRunner

    from placet.cli import app

    _, c = walks(7, n=4, steps=6, each=30)
    path, page = tmp_path / "games.csv", tmp_path / "page.html"
    row, outcome = np.nonzero(np.stack([c.wins_i, c.wins_j, c.ties], axis=1))
    names = np.array(["ant", "bee", "cat", "dog"])
    placet.io.tables.tables.write_table(
        path,
        {
            "date": [f"{2000 + int(year)}-05-01" for year in c.time[row]],
            "home_team": names[c.i[row]],
            "away_team": names[c.j[row]],
            "home_score": (outcome == 0).astype(int),
            "away_score": (outcome == 1).astype(int),
        },
    )
    games = placet.read_battles(path, time="date")
    assert games.time.dtype == "datetime64[s]"
    asked = ["aggregate", str(path), "--drift", "learn", "--step", "1y", "-r", "time=date", "--json"]
    result = CliRunner().invoke(app, [*asked, "--report", str(page)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["history"]
    assert {row["item"] for row in found} == {"ant", "bee", "cat", "dog"}
    assert "Scores over time" in page.read_text()
    path.write_text("date,model_a,model_b,winner\n2020-01-01,x,y,a\nsoon,x,y,b\n")
    with pytest.raises(DataError, match=r"games.csv:3: date 'soon' is neither a date nor a number"):
        placet.read_battles(path, time="date")
