"""Search for a small removal that changes a claim: greedy by influence, confirmed by exact refits.

Each way to change the claim (`Attack`) is planned with a first-order model of what a removal does, made anew at the
removal found until it stays the same: the things with the most influence are taken until the model says that the claim
falls.  Exact refits then find the shortest beginning of this order that changes the claim.  The smallest removal over
all ways is an upper bound of the fewest things that decide the claim.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple, Protocol

import numpy as np

from placet.aggregate.proof.claims import Claim
from placet.aggregate.proof.removal import Removable
from placet.aggregate.proof.vote_influence import Attack
from placet.aggregate.result.result import Consensus
from placet.data import DataError
from placet.data.arrays import Floats, Ints

MOST_ROUNDS = 8
"""Rounds in which the order of influence is made anew."""

MOST_PLANS = 6
"""Ways to change a claim that are tried with refits, those that need the fewest first."""


class RemovalInfluence(Protocol):
    """What a removal does to first order."""

    def effects(self, take: Ints, attack: Attack) -> tuple[float, Floats]:
        """How far an attack is from its end, and how much nearer each further thing of a kind brings it."""


class RemovalPlan(NamedTuple):
    """Kinds in order of influence, and how many things of them the model says are enough; all, if none are."""

    order: Ints
    need: int
    enough: bool = True


class RemovalSearch:
    """The search for the smallest removal that changes a claim."""

    def __init__(self, pieces: Removable, claim: Claim, again: Callable[[object], Consensus]):
        self.pieces, self.claim, self.again = pieces, claim, again
        self.known: dict[bytes, bool] = {}

    @property
    def n_refits(self) -> int:
        """How many removals were refitted."""
        return len(self.known)

    def changes(self, take: Ints) -> bool:
        """Whether the claim no longer holds after a removal, by an exact refit; not if nothing is left to fit."""
        key = take.tobytes()
        if key not in self.known:
            self.known[key] = self._changes(take)
        return self.known[key]

    def _changes(self, take: Ints) -> bool:
        if int(take.sum()) > self.pieces.total - self.pieces.stays:
            return False
        try:
            return not self.claim.holds(self.again(self.pieces.without(take)))
        except DataError:
            return False

    def smallest(self, attacks: Sequence[Attack], influence: RemovalInfluence) -> Ints | None:
        """The smallest removal found that changes the claim, or None."""
        plans = sorted((plan for one in attacks for plan in self._plans(one, influence)), key=lambda plan: plan.need)
        best: Ints | None = None
        for plan in plans[:MOST_PLANS]:
            most = None if best is None else int(best.sum()) - 1
            found = self._shortest(plan, most)
            best = found if found is not None else best
        return best

    def _plans(self, attack: Attack, influence: RemovalInfluence) -> list[RemovalPlan]:
        """The order of influence at the removal that it leads to itself; if none lasts, that of all votes too."""
        take, plans = np.zeros(len(self.pieces.size), np.int64), []
        for _ in range(MOST_ROUNDS):
            gap, nearer = influence.effects(take, attack)
            found = fewest(self.pieces.size, nearer, gap + float(nearer @ take))
            if found is None:
                break
            plans.append(found)
            before, take = take, prefix(found.order, self.pieces.size, found.need)
            if np.array_equal(take, before):
                return plans[-1:]
            if not found.enough:  # the model is too coarse: refits decide how many of the order it takes
                break
        return [plans[0], plans[-1]] if len(plans) > 1 else plans

    def _shortest(self, plan: RemovalPlan, most: int | None) -> Ints | None:
        """The shortest beginning of the plan's order that changes the claim; None if none of at most ``most`` does."""
        size = self.pieces.size
        every = int(size[plan.order].sum())
        limit = every if most is None else min(most, every)
        if limit < 1:
            return None
        at = lambda count: prefix(plan.order, size, count)  # noqa: E731
        high, step = min(max(plan.need, 1), limit), 1
        low = 0
        while not self.changes(at(high)):
            if high == limit:
                return None
            low, high, step = high, min(high + step, limit), 2 * step
        step = 1
        while high - low > 1 and step < high and low == 0 and self.changes(at(max(high - step, 1))):
            high, step = max(high - step, 1), 2 * step
        low = max(low, high - step) if high > 1 else 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.changes(at(middle)) else (middle, high)
        return at(high)

    def polish(self, take: Ints, most: int) -> tuple[Ints, bool]:
        """The smallest removal, if at most ``most`` refits can tell, else ``take``; and whether it is the smallest.

        Sizes are tried from 1 up, so that the first that changes the claim is the smallest of all.
        """
        kinds = np.flatnonzero(self.pieces.size)
        left = most
        for count in range(1, int(take.sum())):
            left -= comb(len(kinds) + count - 1, count)
            if left < 0:
                return take, False
            for one in self._removals(kinds, count):
                if self.changes(one):
                    return one, True
        return take, True

    def _removals(self, kinds: Ints, count: int) -> Iterator[Ints]:
        for chosen in combinations_with_replacement(kinds.tolist(), count):
            take = np.bincount(chosen, minlength=len(self.pieces.size))
            if (take <= self.pieces.size).all():
                yield take.astype(np.int64)


def fewest(size: Ints, nearer: Floats, need: float) -> RemovalPlan | None:
    """The fewest things whose influences add up to ``need``; None if no influence is positive.

    >>> fewest(np.array([2, 5]), np.array([2.0, 1.0]), 4.5)
    RemovalPlan(order=array([0, 1]), need=3, enough=True)
    """
    useful = np.flatnonzero((nearer > 0) & (size > 0))
    order = useful[np.argsort(-nearer[useful], kind="stable")]
    total = np.cumsum(nearer[order] * size[order])
    if not len(order) or np.isnan(need):
        return None
    if need <= 0:
        return RemovalPlan(order, 1)
    row = int(np.searchsorted(total, need))
    if row >= len(order):
        return RemovalPlan(order, int(size[order].sum()), False)
    before = float(total[row - 1]) if row else 0.0
    part = min(int(np.ceil((need - before) / nearer[order[row]])), int(size[order[row]]))
    return RemovalPlan(order, int(size[order[:row]].sum()) + part)


def prefix(order: Ints, size: Ints, count: int) -> Ints:
    """(kinds,): the first ``count`` things in the order of kinds."""
    take = np.zeros(len(size), np.int64)
    before = np.cumsum(size[order]) - size[order]
    take[order] = np.clip(count - before, 0, size[order])
    return take
