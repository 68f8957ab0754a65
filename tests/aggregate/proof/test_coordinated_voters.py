"""Who pulls what, and who votes alike: pulls are those of refits, p-values those of enumeration, few are named falsely."""

import itertools

import numpy as np
import pytest
from scipy import stats

from placet import Comparisons, DataError, Rankings, consensus
from placet.aggregate import influence_map
from placet.aggregate.proof import coordinated_voters as module
from placet.aggregate.proof.coordinated_voters import adjusted, coordinated_voters, exact_tail, spread_of

ITEMS, VOTERS = 12, 24
FIRST, SECOND = np.triu_indices(ITEMS, 1)


def poll(seed, ring=0, copied=0.95, sharp=1.0):
    """Votes of all voters on all pairs; the first ``ring`` of them copy the first."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=ITEMS)
    sharpness = sharp if np.ndim(sharp) else np.full(VOTERS, sharp)
    says = rng.random((VOTERS, len(FIRST))) < 1 / (1 + np.exp(-sharpness[:, None] * (theta[FIRST] - theta[SECOND])))
    if ring:
        says[1:ring] = np.where(rng.random((ring - 1, len(FIRST))) < copied, says[0], says[1:ring])
    return battles(says)


def battles(says, names=None):
    n = len(says)
    outcome = np.where(says.ravel(), "a", "b").tolist()
    voter = np.repeat(np.arange(n) if names is None else names, len(FIRST)).tolist()
    return Comparisons.from_battles(np.tile(FIRST, n).tolist(), np.tile(SECOND, n).tolist(), outcome, agent=voter)


def without(votes, voter):
    rows = votes.agent != voter
    left = [getattr(votes, name)[rows] for name in ("i", "j", "wins_i", "wins_j", "ties")]
    return Comparisons(*left, items=votes.items)


def test_pulls_are_those_of_refits():
    votes = poll(0)
    whole, found = consensus(votes, "copeland").scores, influence_map(votes, "copeland")
    for voter in (0, 7):
        pull = whole - consensus(without(votes, voter), "copeland").scores
        assert found.pull[voter] == pytest.approx(pull - pull.mean())
    found = influence_map(votes, "bradley-terry", prior=2.0)
    whole = consensus(votes, "bradley-terry", prior=2.0).scores
    pull = whole - consensus(without(votes, 3), "bradley-terry", prior=2.0).scores
    assert found.pull[3] == pytest.approx(pull - pull.mean(), abs=0.02 * np.abs(pull).max())
    row = found.to_frame().filter(voter="3").row(0, named=True)
    assert (row["up"], row["down"]) == (str(pull.argmax()), str(pull.argmin()))
    assert row["count"] == len(FIRST)
    top = found.pulls_frame().row(0)
    assert abs(top[2]) == np.abs(found.pull).max()
    assert found.sentences()[0].startswith(f"{top[0]} pulls {top[1]} {'up' if top[2] > 0 else 'down'} by ")


def test_the_tail_is_that_of_all_orders():
    """Every way to spread the favorites of the second voter within strata is equally likely."""
    left, right = [[1, 1, 0, 0], [1, 0, 1]], [[1, 0, 1, 0], [1, 0, 0]]
    seen = sum(a * b for x, y in zip(left, right) for a, b in zip(x, y))
    sums = [
        sum(a * b for a, b in zip(left[0], y)) + sum(a * b for a, b in zip(left[1], z))
        for y in itertools.permutations(right[0])
        for z in itertools.permutations(right[1])
    ]
    table = [np.array(column, float) for column in ([4, 3], [2, 2], [2, 1], [1, 1])]
    assert seen == 2
    assert exact_tail(*table) == pytest.approx(np.mean(np.array(sums) >= seen))
    mean, variance = module.moments(module.VoterTable(*(column[:, None] for column in table)))
    assert (mean[0], variance[0]) == pytest.approx((np.mean(sums), np.var(sums)))


def test_holm_and_the_spread():
    assert adjusted(np.array([0.04, 0.001, 0.02])) == pytest.approx([0.04, 0.003, 0.04])
    z = np.append(stats.norm.ppf((np.arange(200) + 0.5) / 200) * 1.5 + 0.4, [9.0] * 20)
    center, spread = spread_of(z)
    assert 0.4 < center < 0.7
    assert 1.4 < spread < 1.9
    assert spread_of(-np.abs(z) / 100) == (0.0, 1.0)


@pytest.mark.parametrize("copied", [0.9, 1.0])
def test_a_ring_is_found_and_named(copied):
    found = coordinated_voters(poll(3, ring=4, copied=copied))
    assert [group.voters for group in found.groups] == [(0, 1, 2, 3)]
    group = found.groups[0]
    assert group.agree > group.expected + 0.1
    assert group.common == len(FIRST)
    assert "4 voters vote alike beyond chance: 0, 1, 2, 3" in found.sentences()[0]
    assert found.to_frame()["voter"].to_list() == list("0123")
    assert influence_map(poll(3, ring=4, copied=copied)).to_frame()["group"].drop_nulls().to_list() == [1] * 4


def test_the_shares_are_counted():
    votes = poll(3, ring=2, copied=0.97)
    said = np.zeros((VOTERS, len(FIRST)))
    order = np.lexsort((votes.j, votes.i, votes.agent))
    said[votes.agent[order], np.tile(np.arange(len(FIRST)), VOTERS)] = votes.wins_i[order]
    (group,) = coordinated_voters(votes).groups
    assert group.agree == pytest.approx((said[0] == said[1]).mean())


def test_independent_voters_are_rarely_named():
    """Of unequal sharpness; experiments/proof has more settings and runs."""
    sharp = np.linspace(0, 3, VOTERS)
    assert sum(len(coordinated_voters(poll(seed, sharp=sharp)).groups) > 0 for seed in range(12)) <= 3


def test_votes_are_counted_once_for_a_pair_whatever_their_side_and_number():
    votes = poll(3, ring=4)
    swapped = Comparisons(
        votes.j,
        votes.i,
        3 * votes.wins_j,
        3 * votes.wins_i,
        votes.ties + 2,
        votes.agent,
        votes.items,
        votes.agents,
        True,
    )
    assert coordinated_voters(swapped).groups == coordinated_voters(votes).groups


def test_what_cannot_be_seen_is_said():
    votes = poll(0)
    nameless = Comparisons(votes.i, votes.j, votes.wins_i, votes.wins_j, votes.ties, items=votes.items)
    assert coordinated_voters(nameless).notes == ("the votes do not name voters, so none can be compared",)
    few = Comparisons.from_battles("ab", "bc", ["a", "a"], agent=["u", "v"])
    assert "no two voters decided 15 common pairs" in coordinated_voters(few).notes[0]
    ballots = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]])
    found = influence_map(ballots, "borda")
    assert found.coordinated is None
    assert "in votes on pairs only" in found.notes[-1]
    with pytest.raises(DataError, match="votes on pairs"):
        coordinated_voters(ballots)
    with pytest.raises(ValueError, match="level"):
        coordinated_voters(votes, level=1.0)
    with pytest.raises(DataError, match="votes or ballots"):
        influence_map(object())


def test_the_voters_with_most_votes_are_compared_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(module, "MOST_VOTERS", 10)
    found = coordinated_voters(poll(3, ring=4))
    assert found.tested == 45
    assert found.notes == ("the 10 voters with the most votes of 24 are compared",)
