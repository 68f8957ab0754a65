"""Committees seat by seat: sequential and reverse sequential PAV, Phragmen's rule, and equal shares.

All of them look at the same table: how much weight approves an item at each *level* of a ballot, where the level is the
number of its items that are elected (PAV), its load (Phragmen) or its money (equal shares).  Ties are broken in every
way.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from placet.aggregate.committees.approval_profile import (
    Approvals,
    approvals_of,
    committee_answer,
    refuse_many,
)
from placet.aggregate.result.election_record import ELECTED, ELIMINATED, HOPEFUL, Round
from placet.aggregate.rules.approval import Threshold
from placet.aggregate.rules.order_scores import check_seats
from placet.aggregate.rules.runoff import MOST_RECORDED
from placet.aggregate.rules.scored import Scored
from placet.data import Rankings
from placet.data.arrays import Ints

Completion = Literal["phragmen", "approval", "none"]


@dataclass(frozen=True, eq=False)
class _State:
    """A count: items ``taken`` so far (elected or removed), the ``level`` (groups,) of ballots, what a level stands for
    (``values``, if not its number), whether seats are filled up (``completing``), and the rounds so far.
    """

    taken: tuple[int, ...]
    level: Ints
    values: tuple[Fraction, ...] = ()
    completing: bool = False
    rounds: tuple[Round, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for states from which the count goes on alike."""
        return frozenset(self.taken), self.level.tobytes(), self.values, self.completing


Step = Callable[[_State], list[_State]]


def _every_way(first: _State, step: Step) -> list[_State]:
    """The last states of all counts; ``step`` returns none for a state in which the count ends."""
    waiting, done = {first.key: first}, []
    while waiting:
        after: dict[tuple[object, ...], _State] = {}
        for state in waiting.values():
            found = step(state)
            done += [] if found else [state]
            for one in found:
                after.setdefault(one.key, one)
            refuse_many(len(after) + len(done))
        waiting = after
    return done


def _best(merit: dict[int, Fraction] | dict[int, int]) -> list[int]:
    """Items of the highest merit."""
    most = max(merit.values())
    return [k for k, value in merit.items() if value == most]


def _round(approvals: Approvals, state: _State, merit: dict[int, float], item: int, removes: bool, why: str) -> Round:
    """A round of the record: the merit of every item that stands, in votes, and what becomes of ``item``."""
    status = np.full(approvals.n_items, HOPEFUL)
    status[[*state.taken, item]] = ELIMINATED if removes else ELECTED
    votes = np.zeros(approvals.n_items)
    votes[list(merit)] = [float(value) * approvals.unit for value in merit.values()]
    return Round(votes, None, status, {item: why})


def _answer(approvals: Approvals, seats: int, done: Sequence[_State], removes: bool = False) -> Scored:
    everyone = set(approvals.candidates)
    committees = [sorted(everyone - set(one.taken)) if removes else one.taken for one in done]
    filled = any(one.completing for one in done)
    notes = ("seats that no ballots could pay for are filled by the completion",) if filled else ()
    return committee_answer(approvals, seats, committees, tuple(one.rounds for one in done[:MOST_RECORDED]), notes)


# Proportional approval voting


def seq_pav(data: Rankings, seats: int = 1, threshold: Threshold = None) -> Scored:
    """Sequential proportional approval voting (Thiele's addition): seat by seat, the item that adds most.

    A ballot of which l items are elected adds 1 / (l + 1) for a further one.  The score is the share of the tied
    committees that has the item: 1 if it is elected.

    Parameters
    ----------
    seats : number of items to elect
    threshold : what a ballot approves, see `approval`

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> votes = Rankings.from_orders([[("a", "b")]] * 3 + [[("c", "d")]] * 2)
    >>> seq_pav(votes, seats=3).record.committees
    (('a', 'b', 'c'), ('a', 'b', 'd'))
    """
    approvals = approvals_of(data, "seq-pav", threshold)
    number = min(check_seats(seats, approvals.n_items), len(approvals.candidates))
    common = math.lcm(*range(1, number + 1))
    part = [common // (k + 1) for k in range(number + 1)]

    def step(state: _State) -> list[_State]:
        if len(state.taken) >= number:
            return []
        table = approvals.by_level(state.level, number + 1).tolist()
        merit = {k: sum(w * p for w, p in zip(table[k], part)) for k in approvals.candidates if k not in state.taken}
        votes = {k: value / common for k, value in merit.items()}
        return [_after_taking(approvals, state, k, votes, 1) for k in _best(merit)]

    done = _every_way(_State((), np.zeros(len(approvals.weight), np.int64)), step)
    return _answer(approvals, seats, done)


def rev_seq_pav(data: Rankings, seats: int = 1, threshold: Threshold = None) -> Scored:
    """Reverse sequential PAV (Thiele's elimination): of all approved items, the one that adds least is removed, again
    and again.  Parameters and scores as in `seq_pav`.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> rev_seq_pav(Rankings.from_orders([[("a", "b")]] * 3 + [["c"]] * 2), seats=2).record.committees
    (('a', 'c'), ('b', 'c'))
    """
    approvals = approvals_of(data, "rev-seq-pav", threshold)
    number = min(check_seats(seats, approvals.n_items), len(approvals.candidates))
    size = np.bincount(approvals.group, minlength=len(approvals.weight))
    most = int(size.max(initial=0))
    common = math.lcm(*range(1, most + 1))
    part = [0] + [common // k for k in range(1, most + 1)]

    def step(state: _State) -> list[_State]:
        if len(approvals.candidates) - len(state.taken) <= number:
            return []
        table = approvals.by_level(state.level, most + 1).tolist()
        merit = {k: -sum(w * p for w, p in zip(table[k], part)) for k in approvals.candidates if k not in state.taken}
        votes = {k: -value / common for k, value in merit.items()}
        return [_after_taking(approvals, state, k, votes, -1) for k in _best(merit)]

    return _answer(approvals, seats, _every_way(_State((), size), step), removes=True)


def _after_taking(approvals: Approvals, state: _State, item: int, votes: dict[int, float], change: int) -> _State:
    """The state after an item is elected (``change`` 1) or removed (-1)."""
    why = "is elected" if change > 0 else "is removed"
    step = _round(approvals, state, votes, item, change < 0, why)
    level = state.level + change * approvals.approvers(item)
    return _State((*state.taken, item), level, rounds=(*state.rounds, step))


# Loads and money


def phragmen(data: Rankings, seats: int = 1, threshold: Threshold = None) -> Scored:
    """Phragmen's sequential rule: money comes in at the same rate for all ballots, and an item is elected as soon as
    those that approve it can pay 1 for it.

    Parameters and scores as in `seq_pav`; the votes of a round are 1 over the time at which an item could be paid.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> votes = Rankings.from_orders([[("a", "b")]] * 3 + [[("c", "d")]] * 2)
    >>> phragmen(votes, seats=3).record.committees
    (('a', 'b', 'c'), ('a', 'b', 'd'))
    """
    approvals = approvals_of(data, "phragmen", threshold)
    number = min(check_seats(seats, approvals.n_items), len(approvals.candidates))
    first = _State((), np.zeros(len(approvals.weight), np.int64), (Fraction(0),))
    return _answer(approvals, seats, _every_way(first, lambda state: _phragmen_step(approvals, state, number)))


def _phragmen_step(approvals: Approvals, state: _State, number: int) -> list[_State]:
    """Elect the items whose approvers would bear the least load; each of them then bears the same."""
    if len(state.taken) >= number:
        return []
    table = approvals.by_level(state.level, len(state.values)).tolist()
    rate = {}
    for k in (k for k in approvals.candidates if k not in state.taken):
        load = 1 + sum((w * v for w, v in zip(table[k], state.values) if w), Fraction(0))
        rate[k] = sum(table[k]) / load  # 1 / load, and above 0: nobody has 1 left when a completion begins
    after = []
    for k in _best(rate):
        level = np.where(approvals.approvers(k), len(state.values), state.level)
        why = "is elected by the completion" if state.completing else "is elected"
        after.append(_after_payment(approvals, state, k, rate, level, (*state.values, 1 / rate[k]), why))
    return after


def _after_payment(
    approvals: Approvals,
    state: _State,
    item: int,
    rate: dict[int, Fraction],
    level: Ints,
    values: Sequence[Fraction],
    why: str,
) -> _State:
    """The state after an item is paid for, with equal values as one level and without levels of no ballot."""
    votes = {k: float(value) for k, value in rate.items()}
    step = _round(approvals, state, votes, item, False, why)
    used = sorted({values[k] for k in np.unique(level).tolist()})
    place = {value: k for k, value in enumerate(used)}
    again = np.array([place.get(value, 0) for value in values], np.int64)
    return _State((*state.taken, item), again[level], tuple(used), state.completing, (*state.rounds, step))


def equal_shares(
    data: Rankings, seats: int = 1, threshold: Threshold = None, completion: Completion = "phragmen"
) -> Scored:
    """Method of equal shares: every ballot gets seats / ballots of money, an item costs 1, and the item is bought for
    which each that approves it pays least; those that have less pay all they have.

    Parameters
    ----------
    seats : number of items to elect
    threshold : what a ballot approves, see `approval`
    completion : who gets the seats that nobody can pay for: "phragmen", Phragmen's rule, starting with the money left;
        "approval", the items with most approvals; "none", nobody

    Scores as in `seq_pav`; the votes of a round are 1 over the largest payment.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> votes = Rankings.from_orders([[("a", "b")]] * 3 + [[("c", "d")]] * 2)
    >>> equal_shares(votes, seats=3, completion="none").record.committees
    (('a', 'c'), ('a', 'd'), ('b', 'c'), ('b', 'd'))
    """
    approvals = approvals_of(data, "equal-shares", threshold)
    number = min(check_seats(seats, approvals.n_items), len(approvals.candidates))
    money = Fraction(seats, max(approvals.total, 1))

    def step(state: _State) -> list[_State]:
        if len(state.taken) >= number:
            return []
        rate = {} if state.completing else _rates(approvals, state)
        if rate:
            return [_after_purchase(approvals, state, k, rate) for k in _best(rate)]
        if completion == "none":
            return []
        if completion == "approval":
            return _approval_step(approvals, state)
        start = (
            state
            if state.completing
            else _State(state.taken, state.level, tuple(-v for v in state.values), True, state.rounds)
        )
        return _phragmen_step(approvals, start, number)

    first = _State((), np.zeros(len(approvals.weight), np.int64), (money,))
    return _answer(approvals, seats, _every_way(first, step))


def _rates(approvals: Approvals, state: _State) -> dict[int, Fraction]:
    """1 over the largest payment for each item that can be paid; ``state.values`` rise with the level."""
    table = approvals.by_level(state.level, len(state.values)).tolist()
    rates = {}
    for k in (k for k in approvals.candidates if k not in state.taken):
        due, weight = Fraction(1), sum(table[k])
        for w, v in zip(table[k], state.values):
            if weight and v * weight >= due:
                rates[k] = weight / due
                break
            due, weight = due - w * v, weight - w
    return rates


def _after_purchase(approvals: Approvals, state: _State, item: int, rate: dict[int, Fraction]) -> _State:
    """The state after those that approve an item have paid for it."""
    n = len(state.values)
    level = state.level + n * approvals.approvers(item)
    less = [max(v - 1 / rate[item], Fraction(0)) for v in state.values]
    return _after_payment(approvals, state, item, rate, level, (*state.values, *less), "is elected")


def _approval_step(approvals: Approvals, state: _State) -> list[_State]:
    """Elect the items with most approvals of those left."""
    total = approvals.approved.tolist()
    merit = {k: total[k] for k in approvals.candidates if k not in state.taken}
    votes = {k: float(value) for k, value in merit.items()}
    after = []
    for k in _best(merit):
        step = _round(approvals, state, votes, k, False, "is elected by the completion")
        after.append(_State((*state.taken, k), state.level, state.values, True, (*state.rounds, step)))
    return after
