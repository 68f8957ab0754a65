"""Single transferable vote: items that reach the quota are elected and pass on their surplus; else the last is dropped.

A ballot counts for its best hopeful item, divided equally among several that tie (the mean over all orders of the tie);
a ballot without hopeful items is exhausted.  Ties among surpluses, or for the last place, are broken in every possible
way (``ties="parallel"``), and an item's place is the best that it reaches in any count; or tied items are treated alike
(``ties="together"``).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from placet.aggregate.places import ballots_of
from placet.aggregate.result.election_record import ELECTED, ELIMINATED, HOPEFUL, Record, Round
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules.order_scores import MOST_UNIVERSES, check_seats, places_by, scores_of, ties_note
from placet.aggregate.rules.runoff import MOST_RECORDED, Ties, without_hope
from placet.aggregate.rules.scored import Scored
from placet.data import Rankings
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.kernels.aggregate import election_counts as kernels

Quota = Literal["droop", "exact"]
Transfer = Literal["gregory", "meek"]
MOST_STEPS = 2000
"""Maximum number of steps for the shares kept by elected items to converge (Meek)."""
NODES, NODE_WEIGHTS = (x / 2 for x in np.polynomial.legendre.leggauss(32))
NODES = NODES + 0.5
LATE = 1 << 30


@dataclass(frozen=True, eq=False)
class Election:
    """The result over all counts: ``places`` (n,), how many items come before each at best, and the ``record``.

    ``complete`` is False if there were too many ways of breaking ties, so tied items were treated alike.
    """

    places: Ints
    record: Record
    complete: bool

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.complete:
            return (f"more than {MOST_UNIVERSES} ways of breaking ties: equals are treated alike",)
        return ties_note(self.record.ways, "in the count")


def stv(
    data: Rankings,
    seats: int = 1,
    transfer: Transfer = "gregory",
    quota: Quota = "droop",
    ties: Ties = "parallel",
    batch: bool = False,
) -> Scored:
    """Single transferable vote: items that reach the quota are elected and pass on their surplus; else the last is
    eliminated and passes on all.  The score is minus the number of items elected before it, or that outlast it.

    Parameters
    ----------
    seats : number of items to elect
    transfer : "gregory", every ballot of the elected item passes on the same share of its value (weighted inclusive
        Gregory, as in Scotland), largest surplus first; "meek", every elected item keeps exactly the quota of the
        ballots that reach it, and the quota falls as ballots are exhausted (Hill, Wichmann and Woodall 1987)
    quota : "droop", floor(weight / (seats + 1)) + 1 if all weights are integers; otherwise, or with "exact", more than
        weight / (seats + 1).  Meek's is always exact.
    ties : "parallel" or "together"
    batch : eliminate the last items at once if they have fewer votes together than the next has alone, and their votes
        bring nobody to the quota, or there is one seat: the same items are elected, in fewer rounds

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> stv(Rankings.from_orders([["a", "b", "c"]] * 5 + [["c", "b", "a"]]), seats=2).scores
    array([ 0., -1., -2.])
    """
    found = count_votes(ballots_of(data, "stv"), seats, transfer, quota, ties, batch)
    return Scored(scores_of(found.places), found.notes, record=found.record)


def count_votes(
    rankings: Rankings,
    seats: int = 1,
    transfer: Transfer = "gregory",
    quota: Quota = "droop",
    ties: Ties = "parallel",
    batch: bool = False,
) -> Election:
    """The election of `stv`, with the record of every round.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 5 + [["c", "b", "a"]])
    >>> found = count_votes(votes, seats=2)
    >>> found.record
    Record(elected ['a', 'b'], rounds 4)
    >>> [(row["round"], row["item"], row["votes"], row["action"]) for row in found.record.rows() if row["action"]][:2]
    [(1, 'a', 5.0, 'reaches the quota'), (2, 'a', 5.0, 'passes on its surplus')]
    """
    one_of(transfer, ("gregory", "meek"), "transfer")
    one_of(quota, ("droop", "exact"), "quota")
    one_of(ties, ("parallel", "together"), "ties")
    rules = _Counting(rankings, check_seats(seats, rankings.n_items), transfer, quota, batch)
    counts = rules.run(parallel=True) if ties == "parallel" else None
    complete = counts is not None or ties == "together"
    if counts is None:
        counts = rules.run(parallel=False)
        assert counts is not None  # nothing branches
    wins = np.array([(count.status == ELECTED) & ~count.unsettled for count in counts])
    seated = np.array([count.status == ELECTED for count in counts])
    names = lambda mask: tuple(rankings.items[k] for k in np.flatnonzero(mask))  # noqa: E731
    record = Record(
        rankings.items,
        tuple(tuple(count.rounds) for count in counts[:MOST_RECORDED]),
        names(wins.all(axis=0)),
        names(seated.any(axis=0) & ~wins.all(axis=0)),
        len(counts),
        float(rules.quota),
    )
    places = np.min([places_by((count.key, 0.0), (-count.decided, rules.close)) for count in counts], axis=0)
    return Election(places, record, complete)


@dataclass
class _Count:
    """State of one count; copied when a tie can be broken in several ways.

    ``status`` (n,); ``votes`` (n,) of the last tally; ``key`` (n,) is the final order, lower is better, ties broken by
    ``decided``, the votes when it was set; ``value`` (rows,) is the part of the ballot's weight held by a row's item
    (Gregory), ``keep`` (n,) the share an item keeps (Meek); ``surplus`` holds elected items that may still pass on
    votes; ``unsettled`` (n,) marks items that tie for the last seats; ``rounds`` is the record.
    """

    status: Ints
    votes: Floats
    key: Floats
    decided: Floats
    value: Floats
    keep: Floats
    unsettled: Ints
    quota: float
    exhausted: float = 0.0
    surplus: frozenset[int] = frozenset()
    rounds: list[Round] = field(default_factory=list)

    def copy(self) -> "_Count":
        arrays = ("status", "votes", "key", "decided", "value", "keep", "unsettled")
        twin = replace(self, **{name: getattr(self, name).copy() for name in arrays})
        twin.rounds = list(self.rounds)
        return twin

    @property
    def hopeful(self) -> Ints:
        return np.flatnonzero(self.status == HOPEFUL)

    @property
    def elected(self) -> Ints:
        return np.flatnonzero(self.status == ELECTED)


class _Counting:
    """The ballots and the rules of one election."""

    def __init__(self, rankings: Rankings, seats: int, transfer: Transfer, quota: Quota, batch: bool):
        self.rankings, self.seats, self.meek, self.batch = rankings, seats, transfer == "meek", batch
        self.columns = rankings.item, rankings.tier, rankings.offsets, rankings.weight
        self.total = float(rankings.weight[np.diff(rankings.offsets) > 0].sum())
        self.close = RELATIVE_TOLERANCE * self.total
        self.whole = quota == "droop" and not self.meek and bool((rankings.weight % 1 == 0).all())
        self.quota = np.floor(self.total / (seats + 1)) + 1 if self.whole else self.total / (seats + 1)

    def run(self, parallel: bool) -> list[_Count] | None:
        """All counts, or None if ties lead to too many."""
        waiting, done = [self._first()], []
        while waiting:
            count = waiting.pop()
            if len(count.elected) >= self.seats or not len(count.hopeful):
                count.decided[count.hopeful] = count.votes[count.hopeful]
                done.append(count)
            else:
                waiting.extend(reversed(self._round(count, parallel)))
            if len(waiting) + len(done) > MOST_UNIVERSES:
                return None
        return done

    def _first(self) -> _Count:
        """The initial state: every ballot counts for its first tier."""
        n, tier, weight = self.rankings.n_items, self.rankings.tier, self.rankings.weight
        size = np.bincount(self.rankings.ballot[tier == 0], minlength=len(weight))
        value = np.where(tier == 0, (weight / np.maximum(size, 1))[self.rankings.ballot], 0.0)
        return _Count(
            status=np.full(n, HOPEFUL),
            votes=np.zeros(n),
            key=np.full(n, float(LATE)),
            decided=np.zeros(n),
            value=value,
            keep=np.ones(n),
            unsettled=np.zeros(n, np.bool_),
            quota=self.quota,
        )

    def _tally(self, count: _Count) -> None:
        """Tally the votes of every item; Meek's shares are adjusted until each elected item keeps exactly the quota."""
        n = self.rankings.n_items
        if not self.meek:
            count.votes = np.bincount(self.rankings.item, count.value, n).astype(np.float64)
            return
        elected = count.elected
        for _ in range(MOST_STEPS):
            count.votes = np.zeros(n)
            count.exhausted = kernels.kept_votes(*self.columns, count.keep, NODES, NODE_WEIGHTS, count.votes)
            count.quota = (self.total - count.exhausted) / (self.seats + 1)
            held = count.votes[elected]
            if not len(elected) or np.abs(held - count.quota).max() <= 0.01 * self.close:
                return
            count.keep[elected] = np.minimum(count.keep[elected] * count.quota / held, 1.0)

    def _round(self, count: _Count, parallel: bool) -> list[_Count]:
        """Run one round and return the resulting counts, several if a tie is broken in every way."""
        self._tally(count)
        hopeful, left = count.hopeful, self.seats - len(count.elected)
        votes = count.votes[hopeful]
        reached = votes >= count.quota - self.close if self.whole else votes > count.quota + self.close
        if reached.any():
            return self._elect(count, hopeful[reached], "reaches the quota")
        if len(hopeful) <= left:
            return self._elect(count, hopeful, "takes a seat that is left")
        over = np.array([k for k in sorted(count.surplus) if count.votes[k] - count.quota > self.close], np.int64)
        if len(over):
            tied = over[count.votes[over] >= count.votes[over].max() - self.close]
            return self._branch(count, tied, self._pass_on, parallel)
        low = float(votes.min())
        tied = hopeful[votes <= low + self.close]
        if low <= self.close and len(hopeful) - len(tied) >= left:
            return self._eliminate(count, tied)  # they have no votes to transfer, so their order does not matter
        if not parallel and len(hopeful) - len(tied) < left:
            count.unsettled[tied] = len(hopeful) > left
            return self._elect(count, tied, "ties for the last seats")
        together = self._hopeless(count, hopeful, votes, left) if self.batch else hopeful[:0]
        if len(together) > 1:
            return self._eliminate(count, together)
        return self._branch(count, tied, self._eliminate, parallel)

    def _hopeless(self, count: _Count, hopeful: Ints, votes: Floats, left: int) -> Ints:
        """The last items that can be eliminated at once: nobody is elected, and nobody passes another, in between."""
        last = np.argsort(votes, kind="stable")[: without_hope(votes, self.close, len(hopeful) - left)]
        freed = float(votes[last].sum())
        least = count.quota - (freed / (self.seats + 1) if self.meek else 0.0)  # Meek's quota falls if they are lost
        if self.seats > 1 and np.delete(votes, last).max(initial=0.0) + freed >= least - self.close:
            return hopeful[:0]
        return hopeful[last]

    def _branch(
        self, count: _Count, tied: Ints, act: Callable[[_Count, Ints], list[_Count]], parallel: bool
    ) -> list[_Count]:
        if len(tied) == 1 or not parallel:
            return act(count, tied)
        return [twin for k in tied for twin in act(count.copy(), np.array([k]))]

    def _elect(self, count: _Count, winners: Ints, why: str) -> list[_Count]:
        count.status[winners] = ELECTED
        count.key[winners] = len(count.rounds)
        count.decided[winners] = count.votes[winners]
        count.surplus = count.surplus if self.meek else count.surplus.union(winners.tolist())
        return self._note(count, winners, why)

    def _pass_on(self, count: _Count, givers: Ints) -> list[_Count]:
        """Transfer the surplus of elected items to the next choices on their ballots."""
        self._note(count, givers, "passes on its surplus")
        for giver in givers.tolist():
            share = (count.votes[giver] - count.quota) / count.votes[giver]
            count.exhausted += kernels.transfer(*self.columns, count.status, giver, share, count.value)
        count.surplus = count.surplus.difference(givers.tolist())
        return [count]

    def _eliminate(self, count: _Count, losers: Ints) -> list[_Count]:
        count.status[losers] = ELIMINATED
        count.key[losers] = 2 * LATE - len(count.rounds)
        self._note(count, losers, "is eliminated")
        count.keep[losers] = 0.0
        if not self.meek:
            for loser in losers.tolist():
                count.exhausted += kernels.transfer(*self.columns, count.status, loser, 1.0, count.value)
        return [count]

    def _note(self, count: _Count, items: Ints, action: str) -> list[_Count]:
        actions = dict.fromkeys(items.tolist(), action)
        count.rounds.append(Round(count.votes.copy(), count.exhausted, count.status.copy(), actions))
        return [count]
