"""Ballots of raters who differ in sharpness: against enumeration, against votes, recovery, spammers, held-out ballots."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
from placet.aggregate import consensus
from placet.aggregate.ballots.ballot_models import PlackettLuce
from placet.aggregate.ballots.ballot_raters import RaterBallots
from placet.data import Comparisons, Rankings
from placet.losses import LOSSES


def panel(seed, *, n=8, m=20, ballots=12, size=5, sharpness=0.4, coins=0, tiers=None, effect=0.0):
    """Scores, sharpness of raters (the last ``coins`` order at random), and ballots; ``tiers``: places that are kept."""
    rng = np.random.default_rng(seed)
    theta = 1.2 * rng.normal(size=n)
    theta -= theta.mean()
    sharp = np.maximum(1 + sharpness * rng.normal(size=m), 0.1)
    sharp[m - coins :] = 0.0
    agent = np.repeat(np.arange(m), ballots)
    item = np.array([rng.choice(n, size, replace=False) for _ in agent])
    z = rng.normal(size=item.shape)
    s = sharp[agent][:, None] * theta[item] + effect * z + rng.gumbel(size=item.shape)
    tier = np.argsort(np.argsort(-s, axis=1), axis=1)
    tier = tier if tiers is None else np.minimum(tier, tiers)
    beside = {"control": z.reshape(-1, 1), "controls": ("z",)} if effect else {}
    offsets, names = size * np.arange(len(agent) + 1), tuple(f"r{k}" for k in range(m))
    data = Rankings(item.ravel(), tier.ravel(), offsets, agent=agent, items=tuple(range(n)), agents=names, **beside)
    return theta, sharp, data


def slow_value(ballots, theta, sharp, gamma, prior, width):
    """Minus the log posterior by all orders that agree with a ballot, each place a softmax of those left."""
    total = sum(t**2 for t in theta) / (2 * prior**2) + sum((a - 1) ** 2 for a in sharp) / (2 * width**2)
    total += sum(g**2 for g in gamma) / (2 * 10.0**2)
    for b in range(len(ballots)):
        rows = range(ballots.offsets[b], ballots.offsets[b + 1])
        a = sharp[ballots.agent[b]]
        s = {r: a * theta[ballots.item[r]] for r in rows}
        for r in rows:
            s[r] += sum(g * z for g, z in zip(gamma, () if ballots.control is None else ballots.control[r]))
        tiers = [[r for r in rows if ballots.tier[r] == t] for t in sorted({ballots.tier[r] for r in rows})]
        probability = 0.0
        for parts in itertools.product(*(itertools.permutations(tier) for tier in tiers)):
            left, p = list(rows), 1.0
            for r in itertools.chain(*parts):
                p *= math.exp(s[r]) / sum(math.exp(s[q]) for q in left)
                left.remove(r)
            probability += p
        total -= ballots.weight[b] * math.log(probability)
    return total


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from([None, 2, 1]), st.booleans())
def test_value_gradient_and_hessian_are_those_of_enumeration(seed, tiers, controlled):
    _, _, data = panel(seed, n=4, m=3, ballots=2, size=4, tiers=tiers, effect=0.7 if controlled else 0.0)
    weight = np.random.default_rng(seed).integers(1, 4, len(data)).astype(float)
    data = Rankings(**{**vars(data), "weight": weight})
    v = RaterBallots(data, weight)
    v.set_widths(1.5, {"sharpness": 0.7})
    x = 0.5 * np.random.default_rng(seed + 1).normal(size=len(v.precision))
    k = v.n_shared - v.n

    def slow(x):
        gamma = x[
            4 : 4 + k
        ]  # of the control less its mean in the ballot, in units: a shift of a ballot changes nothing
        return slow_value(data, x[:4], 1 + x[4 + k :], gamma / v.unit, 1.5, 0.7) - (
            sum(g**2 for g in gamma / v.unit) - sum(g**2 for g in gamma)
        ) / (2 * 10.0**2)

    assert v.value(x) == pytest.approx(slow(x), rel=1e-8)
    h, eye = 1e-5, np.eye(len(x))
    gradient = np.array([(slow(x + h * e) - slow(x - h * e)) / (2 * h) for e in eye])
    np.testing.assert_allclose(v.gradient(x), gradient, atol=1e-5)
    H = np.array([(v.gradient(x + h * e) - v.gradient(x - h * e)) / (2 * h) for e in eye])
    if np.linalg.eigvalsh(H).min() > 1e-3:
        arrow = v.arrow(x)
        np.testing.assert_allclose(arrow.solve(gradient), np.linalg.solve(H, gradient), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(arrow.variances(), np.diag(np.linalg.inv(H))[v.n_shared :], rtol=1e-3)
        np.testing.assert_allclose(arrow.covariance, np.linalg.inv(H)[: v.n_shared, : v.n_shared], rtol=1e-3, atol=1e-4)


def test_ballots_of_two_are_votes():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 5, 400)
    b = (a + rng.integers(1, 5, 400)) % 5
    won = np.where(rng.random(400) < 0.7, np.minimum(a, b), np.maximum(a, b))
    who = [f"r{k}" for k in rng.integers(0, 8, 400)]
    votes = Comparisons.from_battles(a, b, np.where(won == a, "a", "b"), items=range(5), agent=who)
    pairs, lists = (consensus(votes, name, agents="sharpness") for name in ("bradley-terry", "plackett-luce"))
    np.testing.assert_allclose(lists.scores, pairs.scores, atol=1e-4)
    np.testing.assert_allclose(lists.stderr, pairs.stderr, rtol=1e-3)
    frames = [c.agents_frame().sort("agent") for c in (pairs, lists)]
    np.testing.assert_allclose(frames[1]["sharpness"], frames[0]["sharpness"], atol=1e-3)
    np.testing.assert_allclose(frames[1]["sharpness_stderr"], frames[0]["sharpness_stderr"], rtol=1e-2)


@pytest.mark.parametrize("tiers", [None, 2])
def test_sharpness_is_recovered_and_held_out_ballots_gain(tiers):
    theta, sharp, data = panel(8, m=30, ballots=20, sharpness=0.5, coins=4, tiers=tiers)
    held = np.arange(len(data)) % 5 == 0
    train, test = data[~held], data[held]
    found, plain = (consensus(train, "plackett-luce", agents=agents) for agents in ("sharpness", None))
    frame = found.agents_frame()
    truth = dict(zip(data.agents, sharp))
    true = np.array([truth[name] for name in frame["agent"]])
    assert np.corrcoef(frame["sharpness"], true)[0, 1] > 0.85
    z = (frame["sharpness"].to_numpy() - true) / frame["sharpness_stderr"].to_numpy()
    assert np.mean(np.abs(z) < 1.96) > 0.75  # coins are none of the normal law of raters that is assumed
    coins = set(frame.filter(frame["note"].str.contains("like a coin"))["agent"])
    assert len(coins & {"r26", "r27", "r28", "r29"}) >= 3
    assert coins <= {name for name, a in truth.items() if a < 0.35}
    own = dict(zip(frame["agent"], frame["sharpness"]))
    sharpness = np.array([own[data.agents[k]] for k in test.agent])[test.ballot]
    lists = test.lists()
    costs = [
        LOSSES["pl-partition"](s, lists)[0] / len(test)
        for s in (sharpness * found.scores[test.item], plain.scores[test.item])
    ]
    assert costs[0] < costs[1] - 0.05
    error = lambda c: np.linalg.norm(c.scores - theta)  # noqa: E731
    assert error(found) < error(plain)
    best, worst = found.rank_interval(0.95)
    rank = np.argsort(np.argsort(-theta)) + 1
    assert ((best <= rank) & (rank <= worst)).all()
    assert found.fit.converged


def test_scores_and_sharpness_are_covered():
    """Sixteen panels: nine in ten of the true scores, and of the raters' sharpness, within 95% intervals, at the least."""
    scores, sharpness = [], []
    for seed in range(16):
        theta, sharp, data = panel(seed, n=10, m=40, ballots=10, sharpness=0.4)
        found = consensus(data, "plackett-luce", agents="sharpness")
        low, high = found.interval(0.95)
        scores += ((low <= theta) & (theta <= high)).tolist()
        frame = found.agents_frame()
        truth = np.array([sharp[int(name[1:])] for name in frame["agent"]])
        sharpness += (abs(frame["sharpness"].to_numpy() - truth) < 1.96 * frame["sharpness_stderr"].to_numpy()).tolist()
    assert np.mean(scores) > 0.9
    assert np.mean(sharpness) > 0.9


def test_raters_who_do_not_differ_leave_the_scores_alone():
    _, _, data = panel(3, m=15, ballots=20, sharpness=0.0, effect=0.5)
    found, plain = (
        consensus(data, "plackett-luce", agents=agents, stderr="observed") for agents in ("sharpness", None)
    )
    np.testing.assert_allclose(found.scores, plain.scores, atol=0.12)
    assert found.agents.widths["sharpness"] < 0.2
    for name in ("coefficient", "stderr"):
        np.testing.assert_allclose(found.controls[name], plain.controls[name], rtol=0.05)


def test_order_of_ballots_and_names_does_not_matter():
    _, _, data = panel(4, n=5, m=4, ballots=10, size=4, tiers=2)
    found = consensus(data, "plackett-luce", agents="sharpness")
    rng = np.random.default_rng(0)
    moved, item = data[rng.permutation(len(data))], rng.permutation(5)
    other = Rankings(
        item[moved.item], moved.tier, moved.offsets, agent=3 - moved.agent, items=range(5), agents=data.agents[::-1]
    )
    again = consensus(other, "plackett-luce", agents="sharpness")
    np.testing.assert_allclose(again.scores[item], found.scores, atol=1e-5)
    a, b = (c.agents_frame().sort("agent")["sharpness"].to_numpy() for c in (found, again))
    np.testing.assert_allclose(a, b, atol=1e-4)
    boot = consensus(data, "plackett-luce", agents="sharpness", bootstrap=2)
    assert boot.draws.shape == (2, 5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"agents": "side"}, 'for votes on pairs .* raters differ in agents="sharpness" alone'),
        ({"agents": "mood"}, "agents 'mood' is unknown"),
        ({"agents": "sharpness", "prior": None}, "needs a prior"),
        ({"agents": "sharpness", "stderr": "sandwich"}, "no stderr"),
    ],
)
def test_what_cannot_be_is_said(params, message):
    _, _, data = panel(5, n=4, m=2, ballots=3, size=3)
    with pytest.raises(ValueError, match=message):
        PlackettLuce(**params).fit(data)
    with pytest.raises(ValueError, match="needs ballots that say who cast them"):
        PlackettLuce(agents="sharpness").fit(Rankings.from_orders([list("abc"), list("bca")]))
    with pytest.raises(ValueError, match="parts"):
        consensus(placet.data.Parts.of([data]), "plackett-luce", agents="sharpness")


def test_the_command_finds_a_spammer(tmp_path):
    from typer.testing import CliRunner

    from placet.cli import app

    _, _, data = panel(6, n=6, m=6, ballots=25, coins=1)
    path, page = tmp_path / "ballots.csv", tmp_path / "page.html"
    placet.io.write_ballots(data, path)
    words = ["aggregate", str(path), "--agents", "sharpness", "--agent", "agent", "--json", "--report", str(page)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    rows = {row["agent"]: row for row in json.loads(result.stdout)["agents"]}
    assert {name for name, row in rows.items() if row["note"] == "answers like a coin"} == {"r5"}
    assert all(row["ballots"] == 25 for row in rows.values())
    assert "answers like a coin" in page.read_text()
