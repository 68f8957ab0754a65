"""Profiles: small sets of ballots that can be enumerated, changed one at a time, and turned into ``Rankings``.

A distribution over rankings is a profile of strict ballots whose weights are probabilities; only shares of the weight
matter, so counts serve as well.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations_with_replacement, permutations, product
from math import comb

import numpy as np

from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, Ints, Names, offsets_from_sizes

Tiers = tuple[int, ...]
"""Tier of every item: 0 is best, -1 means absent."""
MOST_ORDERED, MOST_TIED = 7, 5
"""Maximum numbers of items for which all ballots can be listed: 5,040 orders, 541 ordered partitions."""


@dataclass(frozen=True)
class Profile:
    """Ballots as tiers of the items, with weights; ``agent`` identifies the voters if one may cast several ballots.

    >>> Profile(((0, 1, 2), (2, 0, 0)), (3.0, 2.0), ("a", "b", "c")).to_rankings().orders()
    [['a', 'b', 'c'], [('b', 'c'), 'a']]
    """

    ballots: tuple[Tiers, ...]
    weight: tuple[float, ...]
    items: Names
    agent: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.weight) != len(self.ballots) or not all(0 <= one < np.inf for one in self.weight):
            raise DataError(f"a profile has a weight of at least 0 for each of its {len(self.ballots)} ballots")

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> "Profile":
        """The same ballots as a profile, without empty ones and those of weight 0.  O(ballots n)."""
        tiers = tier_table(rankings)
        keep = (rankings.weight > 0) & (np.diff(rankings.offsets) > 0)
        agent = None if rankings.agent is None else tuple(rankings.agent[keep].tolist())
        ballots = tuple(map(tuple, tiers[keep].tolist()))
        return cls(ballots, tuple(rankings.weight[keep].tolist()), rankings.items, agent)

    @classmethod
    def from_orders(cls, orders: list[list[int]], weight: list[float], items: Names | None = None) -> "Profile":
        """A profile of strict ballots, each a list of item numbers, best first; those of weight 0 are dropped."""
        n = len(orders[0])
        ballots = tuple(tuple(np.argsort(order).tolist()) for order, w in zip(orders, weight) if w > 0)
        return cls(ballots, tuple(float(w) for w in weight if w > 0), letters(n) if items is None else items)

    def to_rankings(self) -> Rankings:
        """The profile as ``Rankings``; scores are minus the tiers, so that rules on scores apply too.  O(ballots n)."""
        tiers = np.array(self.ballots, np.int64).reshape(len(self.ballots), len(self.items))
        agent = None if self.agent is None else np.array(self.agent, np.int64)
        return rankings_of_tiers(tiers, np.array(self.weight), self.items, agent)

    @cached_property
    def is_strict(self) -> bool:
        """Whether no ballot ties two items."""
        return all(len(set(b)) == len(b) for b in (tuple(t for t in ballot if t >= 0) for ballot in self.ballots))

    @property
    def total(self) -> float:
        return float(sum(self.weight))

    def with_ballot(self, which: int, ballot: Tiers, amount: float) -> "Profile":
        """The profile after moving ``amount`` of the weight of ballot ``which`` to another ballot."""
        ballots, weight = list(self.ballots), list(self.weight)
        if amount >= weight[which]:
            ballots[which] = ballot
            return replace(self, ballots=tuple(ballots))
        weight[which] -= amount
        agent = None if self.agent is None else (*self.agent, self.agent[which])
        return replace(self, ballots=(*ballots, ballot), weight=(*weight, amount), agent=agent)

    def subset(self, which: tuple[int, ...]) -> "Profile":
        """The profile of the chosen ballots only."""
        agent = None if self.agent is None else tuple(self.agent[k] for k in which)
        ballots, weight = tuple(self.ballots[k] for k in which), tuple(self.weight[k] for k in which)
        return replace(self, ballots=ballots, weight=weight, agent=agent)

    def pool(self) -> "Profile":
        """The profile with equal ballots merged and their weights added; voters are dropped."""
        weight: dict[Tiers, float] = {}
        for ballot, w in zip(self.ballots, self.weight):
            weight[ballot] = weight.get(ballot, 0.0) + w
        return replace(self, ballots=tuple(weight), weight=tuple(weight.values()), agent=None)


def tier_table(rankings: Rankings) -> Ints:
    """Tier (ballots, n) of every item on every ballot; -1 means absent."""
    tiers = np.full((len(rankings), rankings.n_items), -1)
    tiers[rankings.ballot, rankings.item] = rankings.tier
    return tiers


def rankings_of_tiers(tiers: Ints, weight: Floats, items: Names, agent: Ints | None = None) -> Rankings:
    """The ballots of a table (ballots, n) of tiers, where -1 means absent; scores are minus the tiers."""
    order = np.argsort(tiers, axis=1, kind="stable")
    tier = np.take_along_axis(tiers, order, 1)
    listed = tier >= 0
    score = -tier[listed].astype(np.float64)
    offsets = offsets_from_sizes(listed.sum(axis=1))
    ballots = Rankings.of_rows(order[listed], tier[listed], offsets, items, weight, score=score)
    return ballots if agent is None else replace(ballots, agent=agent)


@dataclass(frozen=True)
class PairWeights:
    """Pairwise weights: ``wins`` (n, n) is the weight for row above column, ``ties`` (n, n) the weight of ties."""

    wins: Floats
    ties: Floats

    @cached_property
    def compared(self) -> Floats:
        """Weight of the ballots that list both items."""
        return self.wins + self.wins.T + self.ties

    @cached_property
    def share(self) -> Floats:
        """P(row above column) among ballots that list both items; ties count half; NaN if no ballot lists both.

        A majority is a share above 1/2, that is, more weight for than against.
        """
        blank = np.full(self.wins.shape, np.nan)
        return np.divide(self.wins + self.ties / 2, self.compared, out=blank, where=self.compared > 0)


def pair_weights(data: Profile | Rankings | Comparisons) -> PairWeights:
    """Pairwise weights.  O(pairs on ballots + n^2)."""
    from placet.aggregate.rules.kemeny import pair_tables

    if not isinstance(data, Profile):
        return PairWeights(*pair_tables(data))
    tier, weight = np.array(data.ballots), np.array(data.weight)
    listed = tier >= 0
    both = (listed[:, :, None] & listed[:, None, :]) * weight[:, None, None]
    wins = ((tier[:, :, None] < tier[:, None, :]) * both).sum(axis=0)
    ties = ((tier[:, :, None] == tier[:, None, :]) * both).sum(axis=0)
    np.fill_diagonal(ties, 0.0)
    return PairWeights(wins, ties)


def first_shares(data: Profile | Rankings) -> Floats:
    """P^1: the share of the weight that puts each item first; items tied for the first place share it.  O(rows)."""
    if isinstance(data, Profile):
        top = (np.array(data.ballots) == 0) * 1.0
        return np.array(data.weight) @ (top / top.sum(axis=1, keepdims=True)) / data.total
    top = data.tier == 0
    sharing = np.bincount(data.ballot[top], minlength=len(data))
    points = np.divide(data.weight, sharing, out=np.zeros(len(data)), where=sharing > 0)[data.ballot[top]]
    total = data.weight[sharing > 0].sum()
    return np.bincount(data.item[top], points, data.n_items) / (total if total > 0 else 1.0)


# Enumeration


@dataclass(frozen=True)
class Domain:
    """All profiles of up to ``voters`` ballots over ``n_items`` items, fewest ballots first.

    ``ties`` lets ballots tie items, ``weights`` are the weights that a ballot may have, and ``ordered`` distinguishes
    voters (needed only if a rule may depend on who voted).

    >>> Domain(3, 5).size(), Domain(3, 5, ordered=True).size(), Domain(3, 2, ties=True).size()
    (461, 9330, 104)
    """

    n_items: int = 3
    voters: int = 4
    ties: bool = False
    weights: tuple[float, ...] = (1.0,)
    ordered: bool = False

    def __post_init__(self) -> None:
        most = MOST_TIED if self.ties else MOST_ORDERED
        if not 1 <= self.n_items <= most:
            raise ValueError(
                f"{self.n_items} items have too many ballots to search; from 1 to {most} "
                "(positional rules have theorems for any number)"
            )
        if self.voters < 1 or not self.weights or min(self.weights) <= 0:
            raise ValueError(f"a domain needs voters and weights above 0, not {self.voters} and {self.weights}")

    def ballots(self) -> list[Tiers]:
        """Every ballot: n! orders, or all ordered partitions."""
        n = self.n_items
        if not self.ties:
            return list(permutations(range(n)))
        return [t for t in product(range(n), repeat=n) if set(t) == set(range(max(t) + 1))]

    def weighted_ballots(self) -> list[tuple[Tiers, float]]:
        """Every ballot with every weight."""
        return list(product(self.ballots(), self.weights))

    def count(self, voters: int) -> int:
        """The number of profiles with this many voters."""
        m = len(self.weighted_ballots())
        return m**voters if self.ordered else comb(m + voters - 1, voters)

    def size(self) -> int:
        return sum(map(self.count, range(1, self.voters + 1)))

    def with_voters(self, voters: int) -> Iterator[Profile]:
        """Every profile with this many voters."""
        ballots = self.weighted_ballots()
        chosen = product(ballots, repeat=voters) if self.ordered else combinations_with_replacement(ballots, voters)
        return map(self.profile, chosen)

    def profile(self, chosen: tuple[tuple[Tiers, float], ...]) -> Profile:
        ballots, weight = zip(*chosen)
        return Profile(ballots, weight, letters(self.n_items))

    def __iter__(self) -> Iterator[Profile]:
        return chain.from_iterable(map(self.with_voters, range(1, self.voters + 1)))


def letters(n: int) -> Names:
    """Names for n items: A, B, ..., or 1, 2, ... if there are more than 26."""
    names: tuple[Hashable, ...] = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n])
    return names if n <= 26 else tuple(range(1, n + 1))


# Changes to a ballot


def movable_weights(weight: float) -> list[float]:
    """The amounts of a ballot's weight that may move: one vote, or all of it."""
    return [weight] if weight <= 1 else [1.0, weight]


def lift(ballot: Tiers, item: int, strict: bool) -> list[Tiers]:
    """The ballot with ``item`` moved up one step and all others unchanged; every lift is a chain of such steps.

    In a strict profile the item swaps places with the one above.  Otherwise, a tied item moves into a tier just above
    its own, and an untied one joins the tier above.
    """
    own = ballot[item]
    alone = sum(t == own for t in ballot) == 1
    if own < 0 or (own == 0 and alone):
        return []
    if strict:
        return [tuple(own - 1 if k == item else own if t == own - 1 else t for k, t in enumerate(ballot))]
    if alone:
        return [tuple(t - 1 if t >= own else t for t in ballot)]
    return [tuple(t + 1 if t > own or (t == own and k != item) else t for k, t in enumerate(ballot))]


def rearrangements(ballot: Tiers, x: int, y: int, strict: bool) -> Iterator[Tiers]:
    """The ballots obtained by moving a third item elsewhere, so that x and y keep their relative order.

    Sequences of such moves reach every ballot that agrees on x and y.
    """
    for z in range(len(ballot)):
        if z in (x, y) or ballot[z] < 0:
            continue
        others = [t if k != z else -1 for k, t in enumerate(ballot)]
        levels = sorted({t for t in others if t >= 0})
        dense = [levels.index(t) if t >= 0 else -1 for t in others]
        for place in range(len(levels) + 1):
            gap = tuple(place if k == z else t + (t >= place) if t >= 0 else -1 for k, t in enumerate(dense))
            if gap != ballot:
                yield gap
            if not strict and place < len(levels):
                joined = tuple(place if k == z else t for k, t in enumerate(dense))
                if joined != ballot:
                    yield joined


def reverse(ballot: Tiers) -> Tiers:
    """The ballot in reverse order."""
    last = max(ballot)
    return tuple(last - t if t >= 0 else -1 for t in ballot)


def relabel(profile: Profile, code: tuple[int, ...]) -> Profile:
    """The profile in which item k takes the place of item ``code[k]``."""
    return replace(profile, ballots=tuple(tuple(b[c] for c in code) for b in profile.ballots))
