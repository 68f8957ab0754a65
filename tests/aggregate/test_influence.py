"""Which ballots matter: surprise is a value per list, leaving out a voter is a new count, or near a new fit."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from oracle import pl_partition
from sklearn.metrics import roc_auc_score
from strategies import ballots
from typer.testing import CliRunner

import placet
from placet import simulate
from placet.aggregate import MODELS, RULES
from placet.aggregate.influence import leave_one_out, random_voters, surprise
from placet.cli import app
from placet.data import Comparisons, DataError, Rankings, concat

THETA = [3.0, 1.5, 0.0, -1.5, -3.0]


def with_spam(n=150, spam=30, seed=0):
    good = simulate.plackett_luce(THETA, n, items="abcde", random_state=seed)
    bad = simulate.plackett_luce([0.0] * 5, spam, items="abcde", random_state=seed + 1)
    return concat([good, bad]), np.repeat([0, 1], [n, spam])


@settings(max_examples=15)
@given(ballots(max_items=4, min_ballots=2))
def test_surprise_is_minus_the_log_probability(votes):
    found = surprise(votes, prior=2.0)
    theta = MODELS["plackett-luce"](prior=2.0).fit(votes).theta_
    for b in range(len(votes)):
        rows = slice(votes.offsets[b], votes.offsets[b + 1])
        item, tier = votes.item[rows], votes.tier[rows]
        want = pl_partition(theta[item], -tier) if len(item) else 0.0
        flat = pl_partition(0.0 * theta[item], -tier) if len(item) else 0.0
        assert found.surprise[b] == pytest.approx(want, abs=1e-6)
        assert found.evidence[b] == pytest.approx(flat - want, abs=1e-6)


def test_random_voters_have_little_evidence():
    votes, spam = with_spam()
    found = surprise(votes)
    assert roc_auc_score(spam, -found.evidence) > 0.9
    assert found.share == pytest.approx(30 / 180, abs=0.08)
    assert found.to_frame()["evidence"].is_sorted()


def test_the_share_of_random_voters_is_the_likeliest():
    rng = np.random.default_rng(0)
    evidence, count = rng.normal(1.0, 2.0, 50), rng.integers(1, 4, 50).astype(float)
    share, random = random_voters(evidence, count)
    value = lambda s: float(count @ np.log(s + (1 - s) * np.exp(evidence)))  # noqa: E731
    assert value(share) >= max(value(share - 0.01), value(share + 0.01))
    np.testing.assert_allclose(random, share / (share + (1 - share) * np.exp(evidence)), atol=1e-8)


@pytest.mark.parametrize("method", ["plackett-luce", "bradley-terry", "pmop-fd", "pmop"])
def test_a_newton_step_is_near_a_new_fit(method):
    votes, _ = with_spam(25, 5)
    params = {"prior": 2.0}
    found = leave_one_out(votes, method, **params)
    full = MODELS[method](**params).fit(votes).theta_
    for b in range(0, len(votes), 5):
        keep = np.arange(len(votes)) != b
        true = MODELS[method](**params).fit(votes[keep]).theta_
        change = np.abs(true - full).max()
        assert np.abs(found.scores[b] - true).max() < 0.1 * change + 1e-6
    assert not found.exact


def test_agents_are_left_out_whole():
    rng = np.random.default_rng(1)
    rows = [
        (*rng.choice(list("abcd"), 2, replace=False), "a" if rng.random() < 0.7 else "b", k % 8) for k in range(200)
    ]
    a, b, outcome, agent = zip(*rows)
    votes = Comparisons.from_battles(a, b, outcome, agent=agent, items="abcd")
    found = leave_one_out(votes, "bradley-terry", prior=2.0)
    full = MODELS["bradley-terry"](prior=2.0).fit(votes).theta_
    for n, name in enumerate(votes.agents):
        true = MODELS["bradley-terry"](prior=2.0).fit(votes[votes.agent != votes.agents.index(name)]).theta_
        assert np.abs(found.scores[n] - true).max() < 0.1 * np.abs(true - full).max() + 1e-6
    with pytest.raises(DataError, match="name no agents"):
        leave_one_out(votes.pooled(), "bradley-terry")


@pytest.mark.parametrize("method", ["borda", "irv", "schulze", "kemeny", "stv", "plurality", "mallows"])
def test_rules_are_counted_again(method):
    votes, _ = with_spam(8, 4, seed=3)
    found = leave_one_out(votes, method)
    for b in range(len(votes)):
        rest = placet.consensus(votes[np.arange(len(votes)) != b], method)
        np.testing.assert_allclose(found.scores[b], rest.scores, atol=1e-9)
        assert set(found.first[b]) == {rest.items[k] for k in np.flatnonzero(rest.ranks == 1)}
    assert found.exact


def test_one_of_several_equal_voters_is_left_out():
    votes = Rankings.from_orders([["a", "b"], ["b", "a"]], weight=[3, 2])
    found = leave_one_out(votes, "plurality")
    np.testing.assert_allclose(found.scores, [[2, 2], [3, 1]])
    assert found.decisive == [0]
    assert found.winners == ("a",)
    assert found.gap.tolist() == [-1, 1]
    assert RULES["plurality"](votes).tolist() == [3, 2]


def test_wrong_methods_are_refused():
    votes, _ = with_spam(4, 1)
    with pytest.raises(ValueError, match="plackett-luce"):
        surprise(votes, "borda")
    with pytest.raises(ValueError, match="not possible"):
        leave_one_out(votes, "svp")
    with pytest.raises(ValueError, match="unknown"):
        leave_one_out(votes, "nothing")


def test_the_command(tmp_path):
    votes, _ = with_spam(20, 4)
    file = tmp_path / "ballots.soc"
    placet.io.write(votes, file)
    result = CliRunner().invoke(app, ["describe", str(file), "--surprise", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [row["evidence"] for row in rows] == sorted(row["evidence"] for row in rows)
    assert {"voter", "surprise", "random", "first_without", "gap", "said"} <= set(rows[0])
    table = CliRunner().invoke(app, ["describe", str(file), "--surprise", "--method", "mallows"])
    assert table.stdout.startswith("voter\tcount\tsurprise\tevidence\trandom\tfirst_without\tgap\tsaid")
