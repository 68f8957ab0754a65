"""Scores that move and raters who differ, together: derivatives, both models inside, recovery, the command."""

import json

import numpy as np
import pytest

import placet
from placet.aggregate import consensus
from placet.aggregate.likelihood.information import with_mean_zero
from placet.aggregate.pairs import drift, drift_with_raters
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.data import Comparisons
from placet.data.times import TimeSteps
from placet.losses.pairwise import outcome_probabilities

ASK = {"ties": "davidson", "step": 1.0}


def judged(seed, *, n=6, steps=8, each=120, raters=12, coins=2, sigma=0.4, family="davidson", tie=-0.5, beside=None):
    """True scores (steps, items), sharpness of raters, and their votes; the first raters toss coins."""
    rng = np.random.default_rng(seed)
    theta = np.cumsum(np.vstack([rng.normal(size=n), sigma * rng.normal(size=(steps - 1, n))]), axis=0)
    sharp = np.where(np.arange(raters) < coins, 0.0, rng.uniform(0.6, 1.6, raters))
    k = np.repeat(np.arange(steps), each)
    who = rng.integers(0, raters, len(k))
    a = rng.integers(0, n, len(k))
    b = (a + rng.integers(1, n, len(k))) % n
    z = rng.normal(size=len(k))
    d = sharp[who] * (theta[k, a] - theta[k, b]) + (0.0 if beside is None else beside * z)
    win, loss, _ = outcome_probabilities(d, family, tie)
    u = rng.random(len(k))
    outcome = np.where(u < win, "a", np.where(u < win + loss, "b", "tie"))
    control = None if beside is None else {"length": z}
    names = [f"r{w}" for w in who]
    told = {"agent": names, "time": k.astype(float), "ordered": True, "control": control}
    return theta, sharp, Comparisons.from_battles(a, b, outcome, items=range(n), **told)


@pytest.mark.parametrize("family", ["bradley-terry", "davidson", "rao-kupper"])
def test_derivatives_are_those_of_the_posterior(family):
    """Value = minus the log likelihood by plain arithmetic, with the priors; its derivatives by differences."""
    _, _, c = judged(0, n=4, steps=4, each=5, raters=3, beside=0.5)
    kinds = ("sharpness", "side") if family == "bradley-terry" else ("sharpness", "ties", "side")
    steps = TimeSteps(1.0, c.time)
    walk = drift.Walk(c, steps, family, True)
    v = drift_with_raters.RatedWalk(walk, c, steps, family, kinds, True)
    widths = {"sharpness": 0.3, "ties": 0.6, "side": 0.4, "drift": 0.5}
    v.set_widths(1.2, widths)
    rng = np.random.default_rng(1)
    x = 0.3 * rng.normal(size=len(v.precision))
    tied = family != "bradley-terry"
    theta, raters = x[: v.n], x[v.n_shared :].reshape(v.m, v.r)
    number = {(int(i), int(s)): k for k, (i, s) in enumerate(zip(walk.chains.item, walk.chains.step))}
    total = 0.0
    for r in range(len(c)):
        i, j = (number[int(item), int(c.time[r])] for item in (c.i[r], c.j[r]))
        own = dict(zip(kinds, raters[c.agent[r]]))
        effects = x[v.n + tied : v.n_shared] / v.unit
        d = (1 + own["sharpness"]) * (theta[i] - theta[j]) + own["side"] + c.control[r, 0] * effects[0] + effects[1]
        win, loss, even = outcome_probabilities(d, family, x[v.n] + own["ties"] if tied else -np.inf)
        if tied:
            total -= c.wins_i[r] * np.log(win) + c.wins_j[r] * np.log(loss) + c.ties[r] * np.log(even)
        else:
            total -= (c.wins_i[r] + c.ties[r] / 2) * np.log(win) + (c.wins_j[r] + c.ties[r] / 2) * np.log(loss)
    for (item, step), k in number.items():
        later = sorted(s for i, s in number if i == item and s > step)
        if not any(i == item and s < step for i, s in number):
            total += theta[k] ** 2 / (2 * 1.2**2)
        if later:
            total += (theta[number[item, later[0]]] - theta[k]) ** 2 / (2 * 0.5**2 * (later[0] - step))
    total += sum((raters[:, k] ** 2).sum() / (2 * widths[kind] ** 2) for k, kind in enumerate(kinds))
    total += (x[v.n : v.n_shared] ** 2).sum() / (2 * 10.0**2)
    assert v.value(x) == pytest.approx(total, rel=1e-10)
    h, eye = 1e-5, np.eye(len(x))
    slope = np.array([(v.value(x + h * e) - v.value(x - h * e)) / (2 * h) for e in eye])
    np.testing.assert_allclose(v.gradient(x), slope, rtol=1e-5, atol=1e-6)
    fit, arrow = v.fit(x, 100, 1e-12)
    H = np.array([(v.gradient(fit.x + h * e) - v.gradient(fit.x - h * e)) / (2 * h) for e in eye])
    np.testing.assert_allclose(arrow.covariance, np.linalg.inv(H)[: v.n_shared, : v.n_shared], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(v.gradient(fit.x), 0.0, atol=1e-6)


def test_a_tiny_drift_is_the_model_of_raters_without_time():
    _, _, c = judged(1, sigma=0.0)
    asked = {"ties": "davidson", "agents": "ties+side", "prior": 1.0}
    plain = consensus(c, "bradley-terry", **asked)
    found = consensus(c, "bradley-terry", drift=1e-4, step=1.0, **asked)
    np.testing.assert_allclose(found.scores, plain.scores, atol=2e-3)
    np.testing.assert_allclose(found.stderr, plain.stderr, rtol=1e-2)
    both = plain.agents_frame().sort("agent"), found.agents_frame().sort("agent")
    np.testing.assert_allclose(both[1]["tie_rate"], both[0]["tie_rate"], atol=5e-3)
    np.testing.assert_allclose(both[1]["side"], both[0]["side"], atol=5e-3)


def test_raters_who_are_alike_leave_the_walk_as_it_is():
    _, _, c = judged(2)
    steps = TimeSteps(1.0, c.time)
    first = drift.fit_walk(
        Comparisons(c.i, c.j, c.wins_i, c.wins_j, c.ties, items=c.items, time=c.time),
        *(1.0, "davidson", False, (1.0, 0.4), None),
        max_iter=100,
        tol=1e-10,
    )
    plain = Comparisons(c.i, c.j, c.wins_i, c.wins_j, c.ties, c.agent, c.items, agents=c.agents, time=c.time)
    v = drift_with_raters.RatedWalk(first.walk, plain, steps, "davidson", ("sharpness", "ties"), False)
    widths = {"sharpness": 1e-3, "ties": 1e-3, "drift": 0.4}
    v.set_widths(1.0, widths)
    fit, arrow = v.fit(np.zeros(len(v.precision)), 100, 1e-10)
    found = drift_with_raters.RatedWalkFit(v, steps, fit, arrow, 1.0, widths)
    history, covariance = found.results(plain, uncertain=True)
    walk, n = first.walk, c.n_items  # the mode, as with raters; without them, scores are posterior means
    alone = drift.history_of(
        walk, plain, steps, first.fit.x, walk.from_mean(walk.spread(first.fit.x, first.H), first.H, n)
    )
    end = float(walk.chains.step[-1])
    np.testing.assert_allclose(history.score, alone.score - alone.at_step(end)[0].mean(), atol=1e-3)
    np.testing.assert_allclose(history.variance, alone.variance, rtol=1e-2)
    np.testing.assert_allclose(covariance, with_mean_zero(walk.covariance(first.H, n), n), rtol=1e-2, atol=1e-4)


def test_walks_coins_and_drift_are_recovered():
    inside, gains, n_coins = [], [], 0
    for seed in range(3):
        theta, sharp, c = judged(seed, each=250, coins=4, beside=0.6)
        found = consensus(c, "bradley-terry", drift="learn", agents="sharpness", **ASK)
        assert found.fit.converged
        assert 0.6 < found.drift / (0.4 * sharp.mean()) < 1.7  # the mean rater has a sharpness of 1
        assert found.agents_frame()["sharpness"].mean() == pytest.approx(1.0)
        frame = found.agents_frame().sort("agent")
        names = [f"r{k}" for k in range(4)]
        coins = frame.filter(frame["note"] == "answers like a coin")["agent"].to_list()
        assert set(coins) <= set(names)
        n_coins += len(coins)
        order = [int(name[1:]) for name in frame["agent"]]
        assert np.corrcoef(frame["sharpness"], sharp[order])[0, 1] > 0.9
        effect = found.controls
        assert abs(effect["coefficient"][0] - 0.6) < 3 * effect["stderr"][0]
        without = consensus(c, "bradley-terry", drift="learn", **ASK)
        for k in (2, 7):
            true = sharp.mean() * (theta[k] - theta[k].mean())
            now, plain = found.at(k + 0.5), without.at(k + 0.5)
            inside += (np.abs(now.scores - now.scores.mean() - true) < 1.96 * now.stderr).tolist()
            shape = lambda s: 1 - np.corrcoef(s, true)[0, 1]  # noqa: B023, E731
            gains.append(shape(plain.scores) - shape(now.scores))
        np.testing.assert_allclose(found.at(7.5).stderr, found.stderr, rtol=1e-5)
    assert np.mean(inside) > 0.85
    assert np.mean(gains) > 0
    assert n_coins >= 8  # of 12


def test_drift_is_learned_where_steps_hold_few_votes_of_an_item():
    _, _, c = judged(1, n=12, steps=15, each=80, raters=20, coins=3, sigma=0.15)
    alone = consensus(c, "bradley-terry", drift="learn", **ASK).drift
    found = consensus(c, "bradley-terry", drift="learn", agents="sharpness", **ASK).drift
    assert 0.5 * alone < found < 1.7 * alone


def test_the_command_the_page_and_going_on(tmp_path):
    from typer.testing import CliRunner

    from placet.cli import app

    _, _, c = judged(5, n=4, steps=5, each=60, raters=5, coins=1)
    row, outcome = np.nonzero(np.stack([c.wins_i, c.wins_j, c.ties], axis=1))
    columns = {
        "a": np.array(["ant", "bee", "cat", "dog"])[c.i[row]],
        "b": np.array(["ant", "bee", "cat", "dog"])[c.j[row]],
        "winner": np.array(["a", "b", "tie"])[outcome],
        "date": [f"{2000 + int(year)}-05-01" for year in c.time[row]],
        "rater": [c.agents[k] for k in c.agent[row]],
    }
    placet.io.tables.tables.write_table(tmp_path / "votes.csv", columns)
    asked = ["--drift", "learn", "--agents", "all", "--agent", "rater", "--time", "date"]
    board, page = tmp_path / "board.json", tmp_path / "page.html"
    run = lambda *words: CliRunner().invoke(app, list(map(str, words)))  # noqa: E731
    result = run("aggregate", tmp_path / "votes.csv", *asked, "--report", page, "--out", board)
    assert result.exit_code == 0, result.output
    answer = json.loads(board.read_text())
    assert len(answer["agents"]) == 5
    assert {one["item"] for one in answer["history"]} == {"ant", "bee", "cat", "dog"}
    text = page.read_text()
    assert "Scores over time" in text
    assert "sharpness" in text
    again = run("aggregate", board, tmp_path / "votes.csv", "--agent", "rater", "--time", "date", "-r", "ordered=true")
    assert again.exit_code == 0, again.output
    boot = consensus(c, "bradley-terry", drift=0.3, agents="sharpness", bootstrap=2, **ASK)
    assert boot.draws.shape == (2, 4)


def test_what_cannot_be_had_is_said(monkeypatch):
    _, _, c = judged(6, n=4, steps=4, each=20)
    monkeypatch.setattr(drift_with_raters, "MOST_SIMULATED", 10)
    with pytest.raises(ValueError, match=r"at most 10 scores of items at steps, and step=1.0 gives 16; take lon"):
        BradleyTerry(drift=0.1, agents="sharpness", step=1.0).fit(c)
    nameless = Comparisons(c.i, c.j, c.wins_i, c.wins_j, c.ties, time=c.time)
    with pytest.raises(ValueError, match="needs votes that say who gave them"):
        BradleyTerry(drift=0.1, agents="sharpness", step=1.0).fit(nameless)
    with pytest.raises(ValueError, match="needs a prior"):
        BradleyTerry(drift=0.1, agents="sharpness", step=1.0, prior=None).fit(c)
