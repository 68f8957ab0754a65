"""A budget split between sources: who is asked, how often, and about what."""

import numpy as np
import pytest

import placet
from placet.aggregate.asking.budget_split import PricedSource, difference_covariance, sources_to_ask, split
from placet.aggregate.result.uncertainty import order_variance_fall

HIGH, LOW = np.array([0, 1, 2]), np.array([1, 2, 3])
GAP = np.array([0.2, 0.5, 0.1])
QUARTER = np.full(3, 0.25)


def covariance_of(*judges, w=1.0, n=4):
    """Of the differences of theta, of the target's, and of those of judges (a, v), before any vote."""
    E = np.eye(n)[HIGH] - np.eye(n)[LOW]
    scales, widths = [1.0, 1.0, *(a for a, _ in judges)], [0.0, 0.0, *(v for _, v in judges)]
    blocks = [
        [(a * b * w * w + (v * v if s == t > 1 else 0.0)) * E @ E.T for t, b in enumerate(scales)]
        for s, (a, v) in enumerate(zip(scales, widths))
    ]
    return np.block(blocks)


def people(price=1.0):
    return PricedSource(None, price, QUARTER, 1.0)


def judge(price, related=1.0):
    return PricedSource(0, price, QUARTER, related)


def spent(votes, asked):
    return float(sum(row.sum() * one.price for row, one in zip(votes, asked)))


def test_a_budget_is_spent_and_no_more():
    for budget in (1.0, 7.3, 40.0):
        asked = [people(), judge(0.07)]
        votes = split(GAP, covariance_of((0.9, 0.3)), asked, budget)
        assert budget - 0.07 < spent(votes, asked) <= budget * (1 + 1e-9)
        assert (votes >= 0).all()


def test_a_free_perfect_judge_gets_all_and_a_useless_one_nothing():
    votes = split(GAP, covariance_of((1.0, 0.0)), [people(), judge(1e-4)], 10.0)
    assert votes[0].sum() == 0
    assert votes[1].sum() == 100_000
    for useless in ((0.0, 1.0), (1e-6, 1.0)):
        votes = split(GAP, covariance_of(useless), [people(), judge(1e-4)], 10.0)
        assert votes.sum(axis=1).tolist() == [10, 0]
    votes = split(GAP, covariance_of((1.0, 0.0)), [people(), judge(1e-4, related=0.3)], 10.0)
    assert votes.sum(axis=1).tolist() == [10, 0]


def test_a_wide_judge_is_asked_until_it_has_said_what_it_knows():
    """The share of the budget that goes to a cheap judge of some width falls as the budget grows."""
    asked = [people(), judge(0.02)]
    shares = []
    for budget in (2.0, 20.0, 200.0):
        votes = split(GAP, covariance_of((1.0, 0.3)), asked, budget)
        shares.append(0.02 * votes[1].sum() / budget)
    assert shares[0] > 0.9
    assert shares[0] > shares[1] > shares[2]
    assert shares[2] < 0.3
    narrow, wide = (split(GAP, covariance_of((1.0, v)), asked, 50.0)[1].sum() for v in (0.1, 0.6))
    assert narrow > 2 * wide


def test_prices_count_relative_to_the_budget():
    one = split(GAP, covariance_of((1.0, 0.3)), [people(1.0), judge(0.05)], 30.0)
    two = split(GAP, covariance_of((1.0, 0.3)), [people(2.0), judge(0.10)], 60.0)
    assert one.tolist() == two.tolist()


def test_the_first_vote_is_the_one_that_lowers_doubt_most():
    C, asked = covariance_of((0.8, 0.4)), [people(), judge(0.3)]
    worth = np.zeros((2, 3))
    for s, one in enumerate(asked):
        for pair in range(3):
            c = C[:, 3 * (1 + s) + pair]
            after = C - np.outer(c, c) / (1 / 0.25 + c[3 * (1 + s) + pair])
            fall = order_variance_fall(GAP, np.diag(C)[:3], np.diag(C - after)[:3])
            worth[s, pair] = fall.sum() / one.price
    votes = split(GAP, C.copy(), asked, 1.0)
    assert votes[np.unravel_index(worth.argmax(), worth.shape)] > 0
    only = split(GAP, C.copy(), asked[:1], 1.0)
    assert only.tolist() == [np.eye(3)[worth[0].argmax()].tolist()]


@pytest.fixture(scope="module")
def board():
    names = list("abcde")
    human = placet.simulate.battles([1.2, 0.7, 0.4, 0.0, -0.5], 60, items=names)
    llm = placet.simulate.battles([1.0, 0.8, 0.4, 0.1, -0.5], 60, items=names, random_state=1)
    return placet.consensus(placet.Sources({"human": human, "llm": llm}, target="human"))


def test_the_covariance_is_that_of_the_joint_posterior(board):
    """By the precision of theta and u, inverted as it stands."""
    fit = board.asking._fit(board.params)
    (w, (a,), (v,)), one = fit.widths, fit.evidence.sources[0]
    L = np.zeros((5, 5))
    L[np.ix_(one.items, one.items)] = (one.vectors * one.values) @ one.vectors.T
    link = np.eye(5) / v**2
    precision = np.block([[fit.evidence.base + np.eye(5) / w**2 + a * a * link, -a * link], [-a * link, L + link]])
    E = np.eye(5)[HIGH] - np.eye(5)[LOW]
    F = np.block([[E, 0 * E], [E, 0 * E], [0 * E, E]])
    asked = sources_to_ask(fit, ["llm"], {"human": 1.0, "llm": 0.1}, HIGH, LOW)
    found = difference_covariance(fit, asked, HIGH, LOW)
    np.testing.assert_allclose(found, F @ np.linalg.inv(precision) @ F.T, rtol=1e-6, atol=1e-9)
    x = fit.joint.own(fit.x, 0)  # Davidson's ties: a vote is worth the variance of (wins - losses) / 2
    half = (x[HIGH] - x[LOW]) / 2
    chances = np.exp([half, -half, np.full(3, fit.joint.others[0].tie(x))])
    win, loss, _ = chances / chances.sum(axis=0)
    np.testing.assert_allclose(asked[1].information, (win + loss - (win - loss) ** 2) / 4, rtol=1e-4)
    assert asked[0].related == 1.0


def test_a_board_of_sources_says_whom_to_ask(board):
    cost = {"human": 1.0, "llm": 0.05}
    rows = board.next_pairs(budget=20, cost=cost, goal="top:2")
    assert 20 - 0.05 < sum(cost[row.source] * row.votes for row in rows) <= 20 + 1e-9
    assert {row.source for row in rows} <= set(cost)
    top = set(board.ranking[:2])
    assert all(row.high in top and row.low not in top and row.votes > 0 for row in rows)
    alone = board.next_pairs(budget=20, cost={"human": 1.0})  # the whole order
    assert sum(row.votes for row in alone) == 20
    other = board.renamed([name.upper() for name in board.items]).next_pairs(budget=20, cost=cost, goal="top:2")
    assert [(one.source, one.high.lower(), one.low.lower(), one.votes) for one in other] == [tuple(row) for row in rows]
    target = placet.consensus(board.asking.data["human"])
    assert board.enough("best").settled == target.enough("best").settled  # only the target's votes prove anything


def test_a_coin_is_not_asked():
    names = list("abcde")
    human = placet.simulate.battles([1.2, 0.7, 0.4, 0.0, -0.5], 120, items=names)
    coin = placet.simulate.battles([0.0] * 5, 2000, items=names, random_state=1)
    board = placet.consensus(placet.Sources({"human": human, "coin": coin}, target="human"))
    rows = board.next_pairs(budget=20, cost={"human": 1.0, "coin": 0.001}, goal="order")
    assert {row.source for row in rows} == {"human"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"budget": 10}, "go together"),
        ({"budget": 0, "cost": {"human": 1}}, "budget must be positive"),
        ({"budget": 1, "cost": {}}, "cost="),
        ({"budget": 1, "cost": {"human": 0}}, "must be positive"),
        ({"budget": 1, "cost": {"you": 1}}, "'you' is no source"),
        ({"budget": 1, "cost": {"human": 1}, "margin": 0.1}, "margin"),
    ],
)
def test_what_cannot_be_split_is_refused(board, given, words):
    with pytest.raises(ValueError, match=words):
        board.next_pairs(**given)
    with pytest.raises(ValueError, match="between sources"):
        placet.consensus(board.asking.data["human"]).next_pairs(budget=1, cost={"human": 1})
