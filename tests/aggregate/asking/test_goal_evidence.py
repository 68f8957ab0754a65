"""What votes prove about a goal: true statements give true answers, a false answer needs one of the counted false statements."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from placet.aggregate.asking.goal_evidence import GoalEvidence, n_false
from placet.aggregate.asking.head_to_head import HeadToHead
from placet.aggregate.asking.pairs_to_ask import batch, costs, open_claims, sets_to_show
from placet.aggregate.goal_verdict import Goal
from placet.aggregate.result.separation import separated_cuts
from placet.data import Comparisons, Rankings

MANY = 400.0


def counts(won):
    won = np.asarray(won, np.float64)
    i, j = np.nonzero(np.triu(won + won.T, 1))
    return HeadToHead(tuple(range(len(won))), i, j, won[i, j], won[j, i])


def standing(won, scores, **goal):
    return GoalEvidence(counts(won), np.argsort(-np.asarray(scores), kind="stable"), Goal(**goal))


def chance_of(scores):
    scores = np.asarray(scores, np.float64)

    def chance(high, low):
        share = 1 / (1 + np.exp(-np.abs(scores[high] - scores[low])))
        return share, 1 - share

    return chance


@st.composite
def tables(draw):
    """Scores, wins of each item against each other, and a goal."""
    n = draw(st.integers(2, 7))
    scores = draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
    won = np.array(draw(st.lists(st.sampled_from([0.0, 0.0, 0.0, 2.0, 9.0, 40.0]), min_size=n * n, max_size=n * n)))
    name = draw(st.sampled_from(["best", "top", "order", "tiers", "above"]))
    items = {"above": (0, 1), "best": ()}.get(name, ())
    if name == "above" and draw(st.booleans()):
        items = (0,)
    goal = {
        "name": name,
        "k": draw(st.integers(1, n)),
        "items": items,
        "margin": draw(st.sampled_from([0.0, 0.0, 0.7])),
    }
    won = won.reshape(n, n)
    np.fill_diagonal(won, 0)
    return won, scores, goal


@given(tables())
def test_votes_on_the_open_pairs_reach_the_goal(case):
    """If the higher item of every open pair wins and wins, nothing stays open: the plan suffices."""
    won, scores, goal = case
    won = np.where(np.subtract.outer(scores, scores) > 0, won, 0.0)  # the votes agree with the scores
    for _ in range(5):
        now = standing(won, scores, **goal)
        claims = open_claims(now, chance_of(scores))
        if now.is_reached():
            break
        assert len(claims)
        won[claims.high, claims.low] += MANY
    assert now.is_reached()
    assert not len(claims)
    assert batch(now, chance_of(scores), 5) == []
    assert sets_to_show(now, chance_of(scores), 5, 2) == []


@given(tables())
def test_the_open_pairs_are_not_settled_and_a_batch_repeats_none(case):
    won, scores, goal = case
    now = standing(won, scores, **goal)
    claims = open_claims(now, chance_of(scores))
    assert now.is_reached() <= (len(claims) == 0)
    assert (claims.votes > 0).all()
    assert not now.above[claims.high, claims.low].any()
    pairs = batch(now, chance_of(scores), 100)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert pairs[: len(claims)] == list(zip(claims.high.tolist(), claims.low.tolist()))
    twice = batch(now, chance_of(scores), 100, each=2)
    assert all(twice.count(pair) <= 2 for pair in twice)
    for one in sets_to_show(now, chance_of(scores), 3, len(scores)):
        assert sorted(one) == list(range(len(scores)))


@given(tables(), st.randoms())
def test_numbers_of_items_do_not_matter(case, random):
    won, scores, goal = case
    if goal["name"] == "above" or len(set(scores)) < len(scores):
        return
    order = list(range(len(scores)))
    random.shuffle(order)
    now = standing(won, scores, **goal)
    other = standing(won[np.ix_(order, order)], [scores[k] for k in order], **goal)
    assert now.is_reached() == other.is_reached()
    there = open_claims(other, chance_of([scores[k] for k in order]))
    here = open_claims(now, chance_of(scores))
    assert sorted(here.votes.round(9)) == sorted(there.votes.round(9))


@given(tables())
def test_a_wrong_answer_needs_a_false_statement_that_is_counted(case):
    """Whatever was proven: if no counted statement is false, what is said is true."""
    won, scores, goal = case
    theta, n = np.arange(len(scores), 0, -1.0), len(scores)  # the truth: 0 is best, whatever the scores say
    if goal["margin"]:
        return
    now = standing(won, scores, **goal)
    direct = now.evidence >= now.bound
    false = direct & (theta[:, None] <= theta)
    if goal["name"] == "best":
        assert n_false(now.goal, n) == 2 * (n - 1)
        if now.is_reached() and now.leader != 0:
            assert now.not_best[0]
        if now.not_best[0]:  # the mean of n - 1 pieces of evidence, each fair, reached 2 / alpha
            assert np.exp(now.evidence[1:, 0]).mean() >= 2 / 0.05 * (1 - 1e-9)
    elif goal["name"] == "top" and goal["k"] < n:
        k = goal["k"]
        assert n_false(now.goal, n) == 2 * k * (n - k)
        if now.is_reached() and set(now.ahead[:k].tolist()) != set(range(k)):
            assert false[k:, :k].any()
    else:
        assert not (now.above & (theta[:, None] <= theta)).any() or false.any()
        assert n_false(now.goal, n) >= (~np.eye(n, dtype=bool)).sum() or goal["name"] in ("above", "top")


def test_goals_one_by_one():
    """Four items; 0 above 1 and 1 above 2 are proven, 3 has not been asked about."""
    won = np.zeros((4, 4))
    won[0, 1] = won[1, 2] = 50
    scores = [3.0, 2.0, 1.0, 0.0]
    now = standing(won, scores, name="order")
    assert now.above[0, 2]
    assert not now.is_reached()
    assert now.ahead.tolist() == [0, 1, 2, 3]
    best = standing(won, scores, name="best")
    assert best.not_best.tolist() == [False, True, True, False]
    claims = open_claims(best, chance_of(scores))
    assert list(zip(claims.high.tolist(), claims.low.tolist())) == [(0, 3)]  # the new item is asked about
    assert standing(won, scores, name="best", items=(1,)).is_reached()  # it is known not to be the best
    assert not standing(won, scores, name="best", items=(0,)).is_reached()
    assert standing(won, scores, name="above", items=(0, 1)).is_reached()
    assert not standing(won, scores, name="above", items=(0, 2)).is_reached()  # only their own votes count
    assert standing(won, scores, name="top", k=4).is_reached()
    won[2, 3] = 50
    assert standing(won, scores, name="order").is_reached()
    assert standing(won, scores, name="tiers", k=4).is_reached()
    assert standing(won, scores, name="top", k=2).is_reached()


def test_what_is_proven_goes_before_the_scores():
    won = np.zeros((3, 3))
    won[2, 0] = won[0, 1] = 60
    now = standing(won, [2.0, 1.0, 0.0], name="order")
    assert now.ahead.tolist() == [2, 0, 1]
    assert now.is_reached()


def test_a_circle_settles_nothing():
    won = np.zeros((3, 3))
    won[0, 1] = won[1, 2] = won[2, 0] = 60
    now = standing(won, [2.0, 1.0, 0.0], name="order")
    assert now.contradicted.all()
    assert not now.above.any()
    assert not now.is_reached()
    assert not standing(won, [2.0, 1.0, 0.0], name="best").is_reached()


def test_a_margin_gives_items_too_close_to_call_up_as_a_tie():
    won = np.array([[0.0, 1000.0], [1000.0, 0.0]])
    for goal in ("order", "best", "top"):
        assert not standing(won, [0.1, 0.0], name=goal).is_reached()
        assert standing(won, [0.1, 0.0], name=goal, margin=0.5).is_reached()
        assert not standing(won, [0.1, 0.0], name=goal, margin=0.05).is_reached()
    assert not standing(won, [0.1, 0.0], name="tiers", k=2, margin=0.5).is_reached()


def test_only_one_step_of_a_path_may_use_the_margin():
    """0 is at most a margin below 1, and 1 at most a margin below 2: that does not say so of 0 and 2."""
    won = np.zeros((3, 3))
    for a, b in ((0, 1), (1, 2)):
        won[a, b] = won[b, a] = 1000.0
    now = standing(won, [0.0, 0.1, 0.2], name="best", margin=0.5)
    assert now.within[0, 1]
    assert now.within[1, 2]
    assert not now.within[0, 2]
    won[0, 1] = 3000.0
    now = standing(won, [0.0, 0.1, 0.2], name="best", margin=0.5)
    assert now.above[0, 1]
    assert now.within[0, 2]


def test_the_top_of_many_is_proven_through_its_lowest_item():
    """With far items, 19 statements suffice for the best 3 of 20 instead of 51."""
    scores = -2.0 * np.arange(20)
    claims = open_claims(standing(np.zeros((20, 20)), scores, name="top", k=3), chance_of(scores))
    assert len(claims) == 19


def test_costs_are_what_simulation_needs():
    rng, needed = np.random.default_rng(0), []
    now = standing(np.zeros((2, 2)), [1.0, 0.0], name="order")
    for _ in range(200):
        won = np.zeros((2, 2))
        while not standing(won, [1.0, 0.0], name="order").is_reached():
            first = int(rng.random() > 1 / (1 + np.exp(-1.0)))
            won[first, 1 - first] += 1
        needed.append(won.sum())
    about = costs(now, chance_of([1.0, 0.0]), np.array([0]), np.array([1]))[0]
    assert 0.5 * np.mean(needed) < about < 1.5 * np.mean(needed)


@given(st.integers(1, 8), st.randoms())
def test_cuts_by_hand(n, random):
    above = np.array([[random.random() < 0.8 and a < b for b in range(n)] for a in range(n)])
    by_hand = [m for m in range(1, n) if above[:m, m:].all()]
    assert separated_cuts(above).tolist() == by_hand


# Counting


def test_votes_are_counted_by_pairs_without_ties():
    battles = ["a", "a", "b", "b"], ["b", "b", "a", "c"], ["a", "tie", "a", "b"]
    votes = Comparisons.from_battles(*battles, ordered=True)
    found = HeadToHead.from_data(votes)
    assert found.items == ("a", "b", "c")
    assert list(zip(found.i, found.j, found.wins_i, found.wins_j)) == [(0, 1, 1.0, 1.0), (1, 2, 0.0, 1.0)]


def test_an_agent_counts_once_for_a_pair():
    votes = Comparisons.from_battles(["a"] * 5, ["b"] * 5, ["a", "a", "a", "b", "b"], agent=["u", "u", "v", "v", "w"])
    found = HeadToHead.from_data(votes)
    assert (found.wins_i.tolist(), found.wins_j.tolist()) == ([1.0], [1.0])  # u for a, w for b, v for neither


def test_ballots_are_counted_by_pairs_an_agent_once():
    orders = [["a", ("b", "c")], ["b", "a"], ["b", "a"]]
    plain = HeadToHead.from_data(Rankings.from_orders(orders))
    assert list(zip(plain.i, plain.j, plain.wins_i, plain.wins_j)) == [
        (0, 1, 1.0, 2.0),
        (0, 2, 1.0, 0.0),
        (1, 2, 0.0, 0.0),
    ]
    one_each = HeadToHead.from_data(Rankings.from_orders(orders, agent=["u", "v", "w"]))
    assert one_each.wins_j.tolist() == plain.wins_j.tolist()
    twice = HeadToHead.from_data(Rankings.from_orders(orders, agent=["u", "v", "v"]))
    assert (twice.wins_i[0], twice.wins_j[0]) == (1.0, 1.0)


def test_votes_under_other_numbers():
    votes = HeadToHead(("a", "b", "c"), np.array([0, 1]), np.array([1, 2]), np.array([3.0, 4.0]), np.array([1.0, 2.0]))
    moved = votes.among(("new", "c", "b"))
    assert list(zip(moved.i, moved.j, moved.wins_i, moved.wins_j)) == [(2, 1, 4.0, 2.0)]
    assert votes.among(("a", "b", "c")) is votes


@pytest.mark.parametrize("n", [1, 2])
def test_few_items(n):
    for name in ("best", "top", "order", "tiers"):
        now = standing(np.zeros((n, n)), np.arange(n), name=name, k=1)
        assert now.is_reached() == (n == 1 or name == "tiers")
