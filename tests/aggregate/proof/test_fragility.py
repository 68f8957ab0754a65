"""Fragility: sets that change the claim, as few as a search of all sets finds, for every kind of data."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from smallest_removal import MOST, smallest

import placet
from placet.aggregate.proof.removal import removable

CASES = 200


def random_votes(seed):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(3, 6)), int(rng.integers(5, 13))
    a = rng.integers(0, n, size)
    b = (a + rng.integers(1, n, size)) % n
    skill = rng.normal(scale=0.8, size=n)
    won = rng.random(size) < 1 / (1 + np.exp(skill[b] - skill[a]))
    outcome = np.where(rng.random(size) < 0.15, "tie", np.where(won, "a", "b"))
    return placet.Comparisons.from_battles(a.tolist(), b.tolist(), outcome.tolist(), items=range(n))


def test_never_more_than_the_smallest_set_by_30_percent():
    """Every removal of up to four votes is fitted by an independent implementation."""
    compared = 0
    for seed in range(CASES + 20):
        votes = random_votes(seed)
        k = 1 + seed % (votes.n_items - 1)
        least = smallest(votes, k)
        found = placet.fragility(votes, "bradley-terry", goal="top", k=k, prior=1.0, ties="none", stderr=None)
        if least is None:
            assert found.count is None or found.count > MOST
            continue
        compared += 1
        assert least <= found.count <= 1.3 * least, seed
        assert not found.claims[0].exact or found.count == least, seed
    assert compared >= CASES


def many_votes(n=8, size=3000, seed=0, **columns):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, n, size)
    b = (a + rng.integers(1, n, size)) % n
    won = rng.random(size) < 1 / (1 + np.exp(-0.35 * (b - a)))
    outcome = np.where(rng.random(size) < 0.2, "tie", np.where(won, "a", "b"))
    names = np.array([f"item {k}" for k in range(n)])
    agent = [f"voter {k}" for k in rng.integers(0, 40, size)] if columns.get("agents") else None
    time = [f"2024-03-{day:02d}" for day in rng.integers(1, 29, size)] if columns.get("times") else None
    return placet.Comparisons.from_battles(names[a], names[b], outcome.tolist(), agent=agent, time=time)


@pytest.mark.parametrize(("goal", "by"), [("best", "vote"), ("top", "voter"), ("tiers", "vote"), ("best", "day")])
def test_every_listed_set_changes_the_claim_and_one_vote_less_does_not(goal, by):
    votes = many_votes(agents=by == "voter", times=by == "day")
    board = placet.consensus(votes)
    found = board.fragility(goal, k=3, by=by)
    pieces = removable(votes, by)
    assert found.claims
    assert found.unit == by
    for one in found.claims:
        assert one.count == int(one.take.sum()) < pieces.total / 2
        assert one.claim.holds(board)
        assert not one.claim.holds(placet.consensus(pieces.without(one.take)))
        listed = sum(row.get("removed", 1) for row in one.removed)
        assert listed == one.count


def test_a_lead_takes_about_as_many_votes_as_it_has():
    """x beat y 30 times and lost 20 times: with ten votes fewer they tie."""
    votes = placet.Comparisons.from_battles(["x"] * 50, ["y"] * 50, ["a"] * 30 + ["b"] * 20)
    found = placet.fragility(votes)
    assert found.count == 10
    assert found.sentences() == ["x is first: 10 of 50 votes decide it"]
    assert found.claims[0].removed == ({"item": "x", "against": "y", "outcome": "win", "removed": 10, "of": 30},)
    assert found.to_frame().rows() == [("x is first", 10, 0.2, True)]


@settings(max_examples=5)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_order_and_names_do_not_matter(seed, random):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, 14)
    b = (a + rng.integers(1, 4, 14)) % 4
    outcome = rng.choice(["a", "b", "tie"], 14)
    rows = list(zip(a.tolist(), b.tolist(), outcome.tolist()))
    name = dict(zip(range(4), random.sample("wxyz", 4)))
    counts = []
    for one in (rows, random.sample(rows, len(rows))):
        x, y, who = zip(*one)
        counts.append(placet.fragility(placet.Comparisons.from_battles(x, y, who), prior=1.0).count)
    x, y, who = zip(*rows)
    renamed = placet.Comparisons.from_battles([name[k] for k in x], [name[k] for k in y], who)
    counts.append(placet.fragility(renamed, prior=1.0).count)
    assert len(set(counts)) == 1


def test_one_voter_may_decide():
    """A voter with twenty votes carries a board of six others."""
    rows = [("x", "y", "a", "loud")] * 20 + [("y", "x", "a", f"v{k}") for k in range(6)]
    a, b, outcome, agent = zip(*rows)
    votes = placet.Comparisons.from_battles(a, b, outcome, agent=agent)
    found = placet.consensus(votes).fragility(by="voter")
    assert found.sentences() == ["x is first: 1 of 7 voters decides it"]
    assert found.claims[0].removed == ({"voter": "loud", "votes": 20.0},)
    assert placet.fragility(votes).count == 14


def test_ballots_by_a_likelihood():
    orders = [["a", "b", "c"]] * 12 + [["b", "c", "a"]] * 9 + [["c", "a", "b"]] * 3
    ballots = placet.Rankings.from_orders(orders)
    board = placet.consensus(ballots)
    found = board.fragility()
    assert board.method == "plackett-luce"
    pieces = removable(ballots, "vote")
    one = found.claims[0]
    assert one.count < 12
    assert not one.claim.holds(placet.consensus(pieces.without(one.take)))
    assert sum(row["removed"] for row in one.removed) == one.count


def test_tasks_of_a_score_table():
    """Without the task on which x excels, y is first."""
    table = placet.Scores.from_table(
        [[9.0, 1.0, 1.0], [2.0, 2.0, 2.0]], items=["x", "y"], tasks=["law", "maths", "art"]
    )
    found = placet.fragility(table, "mean", by="task")
    assert found.sentences() == ["x is first: 1 of 3 tasks decides it"]
    assert found.claims[0].removed == ({"task": "law"},)


def test_sources_by_judge():
    human = placet.Comparisons.from_battles("xyxyxz", "yxyxzy", ["a", "a", "a", "b", "a", "b"])
    judge = placet.Comparisons.from_battles("y" * 40 + "x" * 20, "x" * 40 + "z" * 20, ["a"] * 60)
    sources = placet.Sources({"human": human, "judge": judge}, target="human")
    found = placet.consensus(sources).fragility(by="judge")
    assert found.total == 1
    one = found.claims[0]
    alone = placet.consensus(human)
    assert one.count == (None if one.claim.holds(alone) else 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"goal": "winner"}, "goal 'winner' is unknown; choose from"),
        ({"by": "hour"}, "by 'hour' is unknown; choose from"),
        ({"goal": "top", "k": 4}, "the best 4 of 3 items: give a number in 1..2"),
        ({"by": "voter"}, "do not say who voted"),
        ({"by": "day"}, "have no dates"),
        ({"by": "task"}, "have no tasks"),
    ],
)
def test_what_cannot_be_asked_is_said(options, words):
    votes = placet.Comparisons.from_battles("xyz", "yzx", ["a", "a", "b"])
    with pytest.raises(ValueError, match=words):
        placet.fragility(votes, **options)


def test_boards_without_their_data_and_several_problems_are_refused():
    board = placet.Consensus(("x", "y"), [1.0, 0.0], method="borda")
    with pytest.raises(ValueError, match="does not hold its data"):
        board.fragility()
    lists = placet.Rankings.from_orders([["a", "b"], ["c", "d"]], instance=[1, 2])
    with pytest.raises(placet.DataError, match="2 problems"):
        placet.fragility(lists, "borda")


def test_all_borders_of_tiers_of_an_arena():
    folder = Path(os.environ.get("PLACET_DATA", Path(__file__).parents[4] / "shared/data"))
    path = folder / "votes/arena-human.json.xz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    votes = placet.read(path)
    board = placet.consensus(votes)
    found = board.fragility("tiers")
    assert len(found.claims) == len(board.tiers()) - 1
    assert found.refits < 200
    pieces = removable(votes, "vote")
    for one in found.claims:
        assert not one.claim.holds(placet.consensus(pieces.without(one.take)))
    assert board.fragility().count <= 178
