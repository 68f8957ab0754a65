"""The doors `Consensus.enough` and `Consensus.next_pairs`: votes, ballots and ratings, verdicts, refusals."""

import dataclasses

import numpy as np
import pytest

import placet
from placet import simulate
from placet.aggregate.asking.counted_votes import with_votes
from placet.aggregate.asking.simulated_poll import SimulatedPoll, by_plan, uniformly, votes_needed
from placet.aggregate.goal_verdict import Goal
from placet.aggregate.result.boards import read_board, write_board
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, Rankings

TIES = ("auto", "none", "rao-kupper", "davidson")


def some_votes(scores, n, tie=-1.0):
    """n votes on random pairs, by Davidson's model."""
    rng, names = np.random.default_rng(0), [f"item {k}" for k in range(len(scores))]
    first, second, outcome = [], [], []
    for _ in range(n):
        i, j = rng.choice(len(scores), 2, replace=False)
        chances = np.exp([(scores[i] - scores[j]) / 2, (scores[j] - scores[i]) / 2, tie])
        first, second = [*first, names[i]], [*second, names[j]]
        outcome.append(("a", "b", "tie")[rng.choice(3, p=chances / chances.sum())])
    return Comparisons.from_battles(first, second, outcome, items=names)


@pytest.fixture(scope="module")
def votes():
    return some_votes([2.0, 1.0, 0.0, -1.0], 600)


@pytest.mark.parametrize("ties", TIES)
def test_verdicts_do_not_depend_on_the_model_of_ties(votes, ties):
    board = placet.consensus(votes, "bradley-terry", ties=ties)
    verdict = board.enough("best")
    assert verdict
    assert (verdict.answer, verdict.look, verdict.open, verdict.missing) == ("item 0", "any", (), 0)
    assert board.enough("order").answer == [f"item {k}" for k in range(4)]
    assert board.next_pairs(goal="order") == []


def test_a_verdict_says_what_is_settled_and_what_is_missing():
    board = placet.consensus(some_votes([2.0, 1.9, -1.0, -1.1], 300))
    verdict = board.enough("top:1")
    assert not verdict
    assert verdict.answer is None
    assert {verdict.open[0][0], verdict.open[0][1]} == {"item 0", "item 1"}
    assert verdict.missing == verdict.open[0][2] > 20
    assert verdict.to_dict()["open"][0]["votes"] == verdict.missing
    assert "1 pair open, about" in str(verdict)
    assert "out: item 2, item 3" in str(verdict).replace("item 3, item 2", "item 2, item 3")
    assert board.enough("top", k=2).answer in (["item 0", "item 1"], ["item 1", "item 0"])
    tiers = board.enough("tiers")
    assert [sorted(tier) for tier in tiers.answer] == [["item 0", "item 1"], ["item 2", "item 3"]]
    assert "2 tiers" in str(tiers)
    assert board.enough("above", item=("item 2", "item 0")).answer in (["item 0", "item 2"],)
    assert not board.enough("above", item="item 0")
    assert board.enough("best", item="item 3").answer == "not item 3"


def test_the_fixed_answer_is_called_so(votes):
    board = placet.consensus(votes)
    fixed = board.enough("order", look="once")
    assert (bool(fixed), fixed.look) == (True, "once")
    assert "for a fixed amount of data" in str(fixed)
    few = placet.consensus(some_votes([0.1, 0.0], 20)).enough("order", look="once")
    assert (few.open[0][2], few.missing) == (None, None)
    for goal in ("tiers", "above"):
        assert board.enough(goal, item="item 1" if goal == "above" else None, look="once")


def test_ballots_and_ratings_are_asked_too():
    rng = np.random.default_rng(1)
    theta = np.array([3.0, 1.5, 0.0])
    orders = [[int(k) for k in np.argsort(-(theta + rng.gumbel(size=3)))] for _ in range(150)]
    ballots = Rankings.from_orders(orders, agent=range(150))
    for method in ("plackett-luce", "borda"):
        board = placet.consensus(ballots, method)
        assert board.enough("best").answer == 0
        assert board.enough("order").answer == [0, 1, 2]
    firsts = Rankings.from_orders([[order[0], tuple(order[1:])] for order in orders])
    assert placet.consensus(firsts).enough("best").answer == 0
    few = placet.consensus(Rankings.from_orders(orders[:8]))
    assert not few.enough("order")
    assert len(few.next_sets(2, 3)) == 2
    values = np.clip(np.round(theta + rng.normal(size=(150, 3))), -1, 4)  # many equal ratings
    users, films = np.repeat(np.arange(150), 3), np.tile(np.arange(3), 150)
    frame = {"user": users.tolist(), "film": films.tolist(), "stars": values.ravel()}
    rated = Rankings.from_scores(frame, ballot="user", item="film", score="stars")
    assert placet.consensus(rated).enough("best").answer == 0


def test_a_new_item_is_asked_about_and_others_keep_their_votes(votes):
    more = Comparisons(votes.i, votes.j, votes.wins_i, votes.wins_j, votes.ties, items=(*votes.items, "new"))
    board = placet.consensus(more)
    assert not board.enough("best")
    assert board.next_pairs(1, goal="best") == [("item 0", "new")]
    assert "new" in board.next_sets(1, 3, goal="best")[0]


def test_a_board_in_a_file_answers_the_same(votes, tmp_path):
    board = placet.consensus(votes)
    write_board(tmp_path / "board.json", board, votes)
    kept = read_board(tmp_path / "board.json")
    again = with_votes(kept.consensus, kept.data)
    for goal in ("best", "top:2", "order", "tiers:3"):
        assert again.enough(goal) == board.enough(goal)
        assert again.next_pairs(4, goal=goal, level=0.9999999) == board.next_pairs(4, goal=goal, level=0.9999999)


def test_names_and_left_out_items(votes):
    board = placet.consensus(votes)
    renamed = board.renamed(["a", "b", "c", "d"])
    assert renamed.enough("best").answer == "a"
    assert dataclasses.replace(
        board,
        items=board.items[:3],
        scores=board.scores[:3],
        stderr=board.stderr[:3],
        covariance=None,
        roots=None,
        support=None,
    ).enough("order").answer == list(board.items[:3])
    points = board.in_points("elo")
    assert points.enough("order").answer == board.enough("order").answer


def test_questions_that_make_no_sense_are_refused(votes):
    board = placet.consensus(votes)
    refused = [
        ({"goal": "all"}, "goal 'all' is unknown"),
        ({"goal": "top", "k": 5}, r"k must be in 1\.\.4"),
        ({"goal": "top:x"}, "'top:x' is not understood"),
        ({"goal": "best:2"}, "'best:2' is not understood"),
        ({"goal": "top:2", "k": 2}, "'top:2' is not understood"),
        ({"goal": "above"}, "needs item"),
        ({"goal": "above", "item": ("item 0", "item 0")}, "two different items"),
        ({"goal": "best", "item": "nobody"}, "'nobody' is not among the 4 items"),
        ({"goal": "best", "margin": -1.0}, "margin must be"),
        ({"goal": "best", "level": 1.0}, "level must be"),
        ({"goal": "best", "look": "often"}, "look 'often' is unknown"),
        ({"goal": "best", "look": "once", "margin": 0.1}, "a margin needs"),
    ]
    for given, words in refused:
        with pytest.raises(ValueError, match=words):
            board.enough(**given)
    with pytest.raises(ValueError, match="size must be"):
        board.next_sets(1, 9)
    alone = Consensus("ab", [1.0, 0.0], method="m", stderr=[0.1, 0.1])
    with pytest.raises(ValueError, match="the votes behind this board are not known"):
        alone.enough("best")
    with pytest.raises(ValueError, match="the votes behind this board are not known"):
        alone.next_pairs(goal="best")


def test_a_thousand_items():
    rng = np.random.default_rng(2)
    votes = simulate.battles(rng.normal(0, 1, 1000), 20_000, model="bradley-terry", random_state=3)
    board = placet.consensus(votes)
    assert not board.enough("top", k=10)
    pairs = board.next_pairs(200, goal="top", k=10)
    assert len({frozenset(pair) for pair in pairs}) == 200


# Simulated polls


def test_the_plan_needs_far_fewer_votes_than_uniform_asking():
    theta = 1.2 * np.arange(6)
    ours, uniform = (
        np.median(votes_needed(theta, Goal("best"), rule=rule, runs=5, n=10)) for rule in (by_plan, uniformly)
    )
    assert ours < 0.6 * uniform


@pytest.mark.parametrize("rule", [by_plan, uniformly])
def test_equal_items_are_rarely_told_apart(rule):
    told = [
        SimulatedPoll(np.zeros(3), Goal("order"), np.random.default_rng(k), -0.5).run(rule, 150, 20) for k in range(8)
    ]
    assert sum(told) == 0


def test_scores_of_a_simulated_poll_are_those_of_the_model():
    poll = SimulatedPoll(np.array([1.0, 0.0, -1.0]), Goal("order"), np.random.default_rng(0))
    for pair in uniformly(poll, 300):
        poll.ask(*pair)
    poll.fit()
    poll.fit()
    i, j = np.nonzero(np.triu(poll.won + poll.won.T, 1))
    votes = Comparisons(i, j, poll.won[i, j], poll.won[j, i], np.zeros(3))
    model = placet.consensus(votes, "bradley-terry", prior=2.0)
    np.testing.assert_allclose(poll.scores, model.scores, atol=1e-6)
    assert poll.votes == 300
    assert np.isinf(votes_needed([0.0, 0.0], Goal("best"), runs=2, most=50)).all()
