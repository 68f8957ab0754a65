"""The best of all committees by a score that adds over ballots: proportional approval voting, Chamberlin-Courant.

A ballot of which m items are elected is worth h(1) + ... + h(m), with h(l) = 1 / l (PAV) or h = 1, 0, 0, ... (it has a
representative).  An item adds the less the more are elected, so what items add now bounds what they add together later:
branch and bound, with floats for the bounds and whole numbers for the committees that come near the best.
"""

import math

import numpy as np

from placet.aggregate.committees.approval_profile import (
    Approvals,
    approvals_of,
    committee_answer,
    refuse_many,
)
from placet.aggregate.rules.approval import Threshold
from placet.aggregate.rules.order_scores import check_seats
from placet.aggregate.rules.scored import Scored
from placet.data import DataError, Rankings
from placet.data.arrays import Floats

MOST_NODES = 100_000
"""Maximum number of partial committees that a search may visit (about 10 seconds)."""


def pav(data: Rankings, seats: int = 1, threshold: Threshold = None) -> Scored:
    """Proportional approval voting: the committee for which the sum over ballots of 1 + 1/2 + ... + 1/m is largest, m
    being the number of elected items that the ballot approves.

    Found exactly, and refused if that takes too long.  The score is the share of the best committees that has the item.

    Parameters
    ----------
    seats : number of items to elect
    threshold : what a ballot approves, see `approval`

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> pav(Rankings.from_orders([[("a", "b")]] * 3 + [["c"]] * 2), seats=2).record.committees
    (('a', 'c'), ('b', 'c'))
    """
    approvals = approvals_of(data, "pav", threshold)
    number = check_seats(seats, approvals.n_items)
    common = math.lcm(*range(1, number + 1))
    return _search(approvals, number, [common // k for k in range(1, number + 1)], "'seq-pav' or 'phragmen'")


def chamberlin_courant(data: Rankings, seats: int = 1, threshold: Threshold = None) -> Scored:
    """Chamberlin and Courant's rule for approvals: as many ballots as possible approve at least one elected item.

    Parameters and scores as in `pav`.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> votes = Rankings.from_orders([[("a", "b")]] * 3 + [["b"], ["c"]])
    >>> chamberlin_courant(votes, seats=2).record.committees
    (('b', 'c'),)
    """
    approvals = approvals_of(data, "chamberlin-courant", threshold)
    number = check_seats(seats, approvals.n_items)
    return _search(approvals, number, [1] + [0] * (number - 1), "'phragmen' or 'equal-shares'")


def _search(approvals: Approvals, seats: int, parts: list[int], instead: str) -> Scored:
    """All committees of the highest worth; ``parts`` (seats,): what the first, second, ... elected item is worth."""
    number = min(seats, len(approvals.candidates))
    if not number:
        return committee_answer(approvals, seats, [()])
    found = _Search(approvals, number, parts)
    try:
        found.extend((), np.zeros(len(approvals.weight), np.int64), 0.0, approvals.candidates)
    except _TooLong:
        raise DataError(
            f"the best {number} of {len(approvals.candidates)} items were not found among {MOST_NODES} partial "
            f"committees; use {instead}, which elects seat by seat"
        ) from None
    return committee_answer(approvals, seats, found.best)


class _TooLong(Exception):
    """The search has visited too many nodes."""


class _Search:
    """Depth-first search for the best committees, the most promising items first."""

    def __init__(self, approvals: Approvals, number: int, parts: list[int]):
        self.approvals, self.number, self.parts = approvals, number, parts
        self.gain = np.array([*parts, 0], np.float64) / max(parts)
        self.table = np.zeros((approvals.n_items, len(approvals.weight)))
        self.table[approvals.item, approvals.group] = approvals.weight[approvals.group]
        self.slack = 1e-9 * float(approvals.total)
        self.most, self.best, self.nodes = -1, list[tuple[int, ...]](), 0
        self.near = -math.inf

    def extend(self, committee: tuple[int, ...], level: Floats, worth: float, items: list[int]) -> None:
        """Try every way of filling the seats left from ``items``."""
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise _TooLong
        left = self.number - len(committee)
        gains = self.table[items] @ self.gain[level]
        order = np.argsort(-gains, kind="stable")
        gains, items = gains[order], [items[k] for k in order]
        reach = np.concatenate([[0.0], np.cumsum(gains)])
        for k in range(len(items) - left + 1):
            if worth + reach[k + left] - reach[k] < self.near - self.slack:
                return  # what comes later adds even less
            more, now = (*committee, items[k]), worth + float(gains[k])
            if left == 1:
                self.compare(more, now)
            else:
                self.extend(more, level + self.approvals.approvers(items[k]), now, items[k + 1 :])

    def compare(self, committee: tuple[int, ...], worth: float) -> None:
        """Keep a whole committee if none is better, by exact worth."""
        inside = np.isin(self.approvals.item, committee)
        size = np.bincount(self.approvals.group[inside], minlength=len(self.approvals.weight))
        weight = np.bincount(size, self.approvals.weight, self.number + 1).astype(np.int64).tolist()
        exact = sum(w * sum(self.parts[:m]) for m, w in enumerate(weight))
        if exact > self.most:
            self.most, self.best, self.near = exact, [], worth
        if exact == self.most:
            self.best.append(committee)
            refuse_many(len(self.best))
