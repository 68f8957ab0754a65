"""What the votes prove so far about a goal, in item numbers.

A goal is a family of statements "i is above j", of which at most ``n_false`` could be false at once; each is made when
its evidence reaches n_false / (1 - level), so by the union bound any false one is ever made with probability at most
1 - level.  What follows from statements made (a above b, b above c) is no new statement.

- "best": let b be best.  A wrong name needs "x is above b" for some x; with a tie for the best, of b or of its twin.
  2 (n - 1) statements.  Their evidence is added up: "b is not the best" is said when the sum over x reaches the bound.
- "top": let S be the best k.  A wrong set needs a path from outside S into S, and one of its steps enters S:
  k (n - k) statements; with a tie at the border, of one such set or of its neighbor: twice as many.
- "above": only votes between the two items count: 2 statements, or 2 (n - 1) for an item and every other.
- "order", "tiers": every statement about two items: n (n - 1).
- with a margin, any goal: "i is above j" and "i is not below j by the margin", for every two items: 2 n (n - 1).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from placet.aggregate.asking.head_to_head import HeadToHead
from placet.aggregate.asking.pair_evidence import Truth, log_evidence, transitive_closure
from placet.aggregate.goal_verdict import Goal
from placet.aggregate.result.separation import separated_cuts
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_square


def n_false(goal: Goal, n: int) -> float:
    """The greatest number of statements for a goal that could be false at once among ``n`` items."""
    if goal.margin:
        return 2.0 * n * (n - 1)
    if goal.name == "best":
        return 2.0 * (n - 1)
    if goal.name == "top":
        return 2.0 * goal.k * (n - goal.k)
    if goal.name == "above":
        return 2.0 * (n - 1 if len(goal.items) == 1 else 1)
    return float(n * (n - 1))


@dataclass(frozen=True, eq=False)
class GoalEvidence:
    """The evidence of ``votes`` for a ``goal``; ``order`` are the item numbers, best first."""

    votes: HeadToHead
    order: Ints
    goal: Goal

    @property
    def n(self) -> int:
        return len(self.order)

    @cached_property
    def ahead(self) -> Ints:
        """The items, best first: by what is proven, and else by ``order``.  O(n^2)."""
        if not np.tril(self.above[np.ix_(self.order, self.order)]).any():
            return self.order
        found, blocked = [], self.above.sum(axis=0)
        left = self.order
        while len(left):
            first = int(np.argmax(blocked[left] == 0))
            found.append(int(left[first]))
            blocked = blocked - self.above[left[first]]
            left = np.delete(left, first)
        return np.array(found, np.int64)

    @cached_property
    def place(self) -> Ints:
        """(n,): the place of each item in ``ahead``, from 0."""
        place = np.empty(self.n, np.int64)
        place[self.ahead] = np.arange(self.n)
        return place

    @cached_property
    def bound(self) -> float:
        """The log evidence at which a statement is made."""
        return float(np.log(max(n_false(self.goal, self.n), 1.0)) - np.log1p(-self.goal.level))

    @cached_property
    def evidence(self) -> Floats:
        """(n, n): log evidence that row is above column; 0 where they have not met."""
        return self._table(0.5)

    @cached_property
    def evidence_within(self) -> Floats:
        """(n, n): log evidence that row is not below column by the margin or more."""
        return self._table(float(scipy.special.expit(-self.goal.margin))) if self.goal.margin else self.evidence

    def _table(self, bar: float) -> Floats:
        refuse_square(self.n, "a table of the evidence", "ask about fewer items (--min-support)", 2.0)
        out = np.zeros((self.n, self.n))
        i, j, won, lost = self.votes.i, self.votes.j, self.votes.wins_i, self.votes.wins_j
        out[i, j], out[j, i] = log_evidence(won, lost, bar), log_evidence(lost, won, bar)
        return out

    @cached_property
    def _reach(self) -> Truth:
        return transitive_closure(self.evidence >= self.bound)

    @cached_property
    def contradicted(self) -> Truth:
        """(n,): items that the votes put above themselves, going round in a circle."""
        return np.diagonal(self._reach).copy()

    @cached_property
    def above(self) -> Truth:
        """(n, n): row is proven to be above column; for the goal "above", by votes between the two alone."""
        if self.goal.name == "above":
            return self.evidence >= self.bound
        return self._reach & ~self._reach.T

    @cached_property
    def within(self) -> Truth:
        """(n, n): row is proven to be above column, or below it by less than the margin."""
        if not self.goal.margin:
            return self.above
        step = self.evidence_within >= self.bound
        if self.goal.name == "above":
            return step | self.above
        both = [one.astype(np.float32) for one in (self.above | np.eye(self.n, dtype=bool), step)]
        reached: Truth = both[0] @ both[1] @ both[0] > 0
        return reached | self.above

    @cached_property
    def not_best(self) -> Truth:
        """(n,): items that are proven not to be the best; with a margin, items that some item is proven above."""
        if self.goal.margin:
            return np.asarray(self.above.any(axis=0), bool)
        other = self.evidence.copy()
        np.fill_diagonal(other, -np.inf)
        if self.n == 1:
            return np.zeros(1, bool)
        return np.asarray(np.logaddexp.reduce(other, axis=0) >= self.bound, bool)

    @cached_property
    def sure_top(self) -> tuple[Truth, Truth]:
        """(n,) and (n,): items proven to be in the best k, and items proven to be outside."""
        n, k = self.n, self.goal.k
        return self.within.sum(axis=1) >= n - k, self.within.sum(axis=0) >= k

    @cached_property
    def leader(self) -> int:
        """The first of the order among those that may be the best."""
        open_ = self.order[~self.not_best[self.order]]
        return int(open_[0] if len(open_) else self.order[0])

    @cached_property
    def cuts(self) -> Ints:
        """Numbers m of items such that the first m of ``ahead`` are all proven to be above all the others."""
        return separated_cuts(self.above[np.ix_(self.ahead, self.ahead)])

    def is_reached(self) -> bool:
        """Whether the goal is reached."""
        n, goal, ahead = self.n, self.goal, self.ahead
        if goal.name == "best":
            return self._best_is_known()
        if goal.name == "top":
            return goal.k >= n or bool(self.within[np.ix_(ahead[: goal.k], ahead[goal.k :])].all())
        if goal.name == "tiers":
            return len(self.cuts) + 1 >= goal.k
        return bool(self.is_told(*self.pairs()).all())

    def pairs(self) -> tuple[Ints, Ints]:
        """The pairs that the goals "order" and "above" ask about: neighbors; or an item, or two, and the others."""
        if self.goal.name == "order":
            return self.ahead[:-1], self.ahead[1:]
        a, *named = self.goal.items
        others = np.array(named or [b for b in range(self.n) if b != a], np.int64)
        return np.full(len(others), a), others

    def is_told(self, i: Ints, j: Ints) -> Truth:
        """Whether each pair is settled: one above the other, or a tie within the margin."""
        told = self.above[i, j] | self.above[j, i]
        return told | (self.within[i, j] & self.within[j, i]) if self.goal.margin else told

    def _best_is_known(self) -> bool:
        if self.goal.items:
            (item,) = self.goal.items
            return bool(self.not_best[item]) or self._is_best(item)
        return self._is_best(self.leader)

    def _is_best(self, item: int) -> bool:
        others = np.arange(self.n) != item
        if self.goal.margin:
            return bool(self.within[item, others].all())
        return bool(self.not_best[others].all() and not self.not_best[item])
