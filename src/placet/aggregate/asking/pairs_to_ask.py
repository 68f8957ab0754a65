"""The statements that would reach a goal with the fewest votes, and the pairs to ask about for them.

What is asked and what is proved are the same: a vote on a pair is evidence about that pair.  A statement "i is above j"
costs about (bound - log E) / (expected gain of log E per vote) votes.  Statements are chosen by their costs:

- "best": every item that may be best needs one item above it: the cheapest, mostly the leader.
- "top": every item of the top must be above every other item, by statements that follow each other.  Items of the top
  are proven above the lowest of the top, or above the items outside one by one, whichever is cheaper; items outside
  likewise below the highest outside.
- "order": neighbors.  "tiers": the border of each tier like that of a top, the widest gaps first.
- "above": the pairs themselves.

The statement whose evidence is farthest short of the bound is asked about first, so a wrong leader is found early.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placet.aggregate.asking.goal_evidence import GoalEvidence
from placet.aggregate.asking.pair_evidence import Truth, growth
from placet.data.arrays import Floats, Ints

Chance = Callable[[Ints, Ints], tuple[Floats, Floats]]
"""``chance(i, j)``: how often i, the better one, is expected to win against j, and to lose."""

LEAST_GROWTH = 1e-6
MOST_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Claims:
    """Statements "``high`` is above ``low``" that are not proven yet, and about how many ``votes`` each still needs;
    those farthest from proof first.
    """

    high: Ints
    low: Ints
    votes: Floats

    def __len__(self) -> int:
        return len(self.high)


def open_claims(standing: GoalEvidence, chance: Chance) -> Claims:
    """The statements that are still needed for the goal; none once it is reached."""
    if standing.is_reached():
        return _claims(standing, chance, [])
    goal = standing.goal
    if goal.name == "best":
        return _claims(standing, chance, [_below_one(standing, chance)])
    if goal.name == "top":
        return _claims(standing, chance, _across(standing, chance, goal.k))
    if goal.name == "tiers":
        borders = [_across(standing, chance, m) for m in _cuts(standing, chance)]
        return _claims(standing, chance, [pairs for border in borders for pairs in border])
    first, second = standing.pairs()
    swap = standing.place[first] > standing.place[second]
    high, low = np.where(swap, second, first), np.where(swap, first, second)
    return _claims(standing, chance, [(high, low)])


def costs(standing: GoalEvidence, chance: Chance, high: Ints, low: Ints, *, strict: bool = False) -> Floats:
    """About how many more votes prove each "``high`` is above ``low``", 0 if it is proven; with a margin and unless
    ``strict``, what the margin leaves of it.
    """
    won, lost = chance(high, low)
    decided = np.maximum(won + lost, LEAST_GROWTH)
    share = np.clip(won / decided, 0.5, 1.0)
    gain = np.maximum(decided * growth(share), LEAST_GROWTH)
    votes = np.maximum(standing.bound - standing.evidence[high, low], 0.0) / gain
    if strict or not standing.goal.margin or standing.goal.name == "tiers":
        return np.where(standing.above[high, low], 0.0, votes)
    within = _votes_within(standing, high, low, share, decided)
    if standing.goal.name not in ("order", "above"):
        return np.where(standing.within[high, low], 0.0, np.minimum(votes, within))
    within = np.maximum(within, _votes_within(standing, low, high, 1 - share, decided))  # a tie says it both ways
    return np.where(standing.is_told(high, low), 0.0, np.minimum(votes, within))


def _votes_within(standing: GoalEvidence, i: Ints, j: Ints, share: Floats, decided: Floats) -> Floats:
    """About how many more votes prove that i is not below j by the margin, if i wins ``share`` of those decided."""
    bar = float(1 / (1 + np.exp(standing.goal.margin)))
    gain = np.where(share > bar, decided * growth(share, bar), 0.0)
    return np.maximum(standing.bound - standing.evidence_within[i, j], 0.0) / np.maximum(gain, LEAST_GROWTH)


def _claims(standing: GoalEvidence, chance: Chance, pairs: list[tuple[Ints, Ints]]) -> Claims:
    """The pairs (each as high, low) that are not proven yet, each once, those farthest from proof first."""
    n, none = standing.n, [np.zeros(0, np.int64)]
    key = np.unique(np.concatenate([high * n + low for high, low in pairs] or none))
    high, low = key // n, key % n
    votes = costs(standing, chance, high, low)
    open_ = votes > 0
    high, low, votes = high[open_], low[open_], votes[open_]
    evidence = standing.evidence_within if standing.goal.margin else standing.evidence
    first = np.lexsort((standing.place[low], standing.place[high], evidence[high, low]))
    return Claims(high[first], low[first], votes[first])


def _below_one(standing: GoalEvidence, chance: Chance) -> tuple[Ints, Ints]:
    """For each item that may be best, the item that is most cheaply proven above it."""
    leader, every = standing.leader, np.arange(standing.n)
    if standing.goal.items and standing.goal.items[0] != leader:
        return np.array([leader]), np.array(standing.goal.items)
    open_ = ~standing.within[leader] if standing.goal.margin else ~standing.not_best
    low = np.flatnonzero(open_ & (every != leader))
    if standing.goal.margin:  # of the steps that a margin shortens only one may be taken
        return np.full(len(low), leader), low
    return _links(standing, chance, low, leader, every, up=True)[0], low


def _links(
    standing: GoalEvidence, chance: Chance, items: Ints, hub: int, among: Ints, *, up: bool
) -> tuple[Ints, Floats]:
    """For each of ``items`` the one that is most cheaply proven above it (``up``) or below it, and the cost: the
    ``hub``, or an item ``among`` those it has met.
    """
    i, j = standing.votes.i, standing.votes.j
    swap = (standing.place[i] < standing.place[j]) == up
    own, other = np.where(swap, j, i), np.where(swap, i, j)
    wanted, allowed = np.zeros(standing.n, bool), np.zeros(standing.n, bool)
    wanted[items], allowed[among] = True, True
    use = wanted[own] & allowed[other] & (own != hub)
    own = np.concatenate([own[use], items])
    other = np.concatenate([other[use], np.full(len(items), hub)])
    high, low = (other, own) if up else (own, other)
    cost = costs(standing, chance, high, low, strict=True)
    link, least = np.full(standing.n, hub), np.full(standing.n, np.inf)
    np.minimum.at(least, own, cost)
    at = np.flatnonzero(cost == least[own])
    link[own[at]] = other[at]  # of several at the same cost the last is kept: the hub, if it is one of them
    return link[items], least[items]


def _across(standing: GoalEvidence, chance: Chance, k: int) -> list[tuple[Ints, Ints]]:
    """Pairs that prove the first k items above all others.

    ``roots`` of the first k are proven above each of the ``heads`` of the others; the remaining items hang on these.
    Given the heads, an item is a root if that is cheaper than its link, and the other way round, in turns.
    """
    top, rest = standing.ahead[:k], standing.ahead[k:]
    down, down_cost = _links(standing, chance, top[:-1], int(top[-1]), top, up=False)
    up, up_cost = _links(standing, chance, rest[1:], int(rest[0]), rest, up=True)
    down_cost, up_cost = np.append(down_cost, np.inf), np.insert(up_cost, 0, np.inf)
    table = costs(standing, chance, np.repeat(top, len(rest)), np.tile(rest, k)).reshape(k, len(rest))
    best: tuple[float, Truth, Truth] | None = None
    for roots in (np.isinf(down_cost), np.ones(k, bool)):
        for _ in range(MOST_ROUNDS):
            heads = table[roots].sum(axis=0) < up_cost
            total = float(table[np.ix_(roots, heads)].sum() + down_cost[~roots].sum() + up_cost[~heads].sum())
            if best is None or total < best[0]:
                best = total, roots, heads
            new = table[:, heads].sum(axis=1) < down_cost
            if (new == roots).all():
                break
            roots = new
    assert best is not None
    _, roots, heads = best
    cross = (np.repeat(top[roots], heads.sum()), np.tile(rest[heads], roots.sum()))
    linked = (top[:-1][~roots[:-1]], down[~roots[:-1]]), (up[~heads[1:]], rest[1:][~heads[1:]])
    return [cross, *linked]


def _cuts(standing: GoalEvidence, chance: Chance) -> list[int]:
    """Where tiers are to end: where they are proven to, and where neighbors are told apart most cheaply."""
    ahead = standing.ahead
    cost = costs(standing, chance, ahead[:-1], ahead[1:], strict=True)
    cost[standing.cuts - 1] = -1.0
    return (1 + np.sort(np.argsort(cost, kind="stable")[: standing.goal.k - 1])).tolist()


def batch(standing: GoalEvidence, chance: Chance, n: int, each: int = 1) -> list[tuple[int, int]]:
    """The next ``n`` pairs to ask about, each at most ``each`` times; fewer if there are no more of use.

    The open statements come first, in turns; then other pairs of their items, near ones first.
    """
    claims = open_claims(standing, chance)
    found = list(zip(claims.high.tolist(), claims.low.tolist()))
    turns = [pair for _ in range(each) for pair in found][:n]
    if len(turns) == n or not found:
        return turns
    known, more = set(found), []
    items = np.unique(np.concatenate([claims.high, claims.low]))
    items = items[np.argsort(standing.place[items])]
    for step in range(1, len(items)):
        for a, b in zip(items[:-step].tolist(), items[step:].tolist()):
            if (a, b) not in known and not standing.is_told(np.array([a]), np.array([b]))[0]:
                more.append((a, b))
        if each * len(more) + len(turns) >= n:
            break
    return (turns + [pair for _ in range(each) for pair in more])[:n]


def sets_to_show(standing: GoalEvidence, chance: Chance, n: int, size: int) -> list[tuple[int, ...]]:
    """The next ``n`` sets of ``size`` items to show together: each holds as much of what is open as possible.

    An open statement weighs one over one more than the earlier sets that hold it; a set grows by the item that adds the
    most, and by neighbors in the order where nothing is open.
    """
    claims = open_claims(standing, chance)
    if not len(claims):
        return []
    held = np.zeros((standing.n, standing.n))
    weight = np.zeros((standing.n, standing.n))
    weight[claims.high, claims.low] = weight[claims.low, claims.high] = 1.0
    found = []
    for _ in range(n):
        worth = weight / (1.0 + held)
        rank = np.argmax(worth[claims.high, claims.low])  # the first of the heaviest is the farthest from proof
        chosen = [int(claims.high[rank]), int(claims.low[rank])]
        while len(chosen) < size:
            near = 1e-6 / (1.0 + np.abs(standing.place - np.mean(standing.place[chosen])))
            gain = worth[chosen].sum(axis=0) + near
            gain[chosen] = -1.0
            chosen.append(int(np.argmax(gain)))
        held[np.ix_(chosen, chosen)] += 1.0
        found.append(tuple(sorted(chosen, key=lambda k: int(standing.place[k]))))
    return found
