"""The margin of victory as elections call it: the fewest ballots that, *changed*, would change the result.

A changed ballot may become any strict order of all items.  Points add up, so the ballots that gain most by it go first,
and each is best changed into one with b first and a last; so it is for Copeland's rule, whose score of a and of b
rests on their own contests alone.  For instant runoff a new ballot matters by whom it counts for in each round, which
is one of 2^(n-1) cases for n items (Magrino, Rivest, Shen and Wagner, EVT/WOTE 2011).
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from placet.aggregate.method_table import METHODS, method_of
from placet.aggregate.proof.claims import Claim
from placet.aggregate.proof.fragility_result import FragileClaim
from placet.aggregate.proof.removal import Removable, has_whole_numbers
from placet.aggregate.proof.removal_search import fewest, prefix
from placet.aggregate.proof.rule_minimum import (
    MOST_KINDS,
    MOST_PROGRAMS,
    EliminationRounds,
    claim_pairs,
    contributions,
    solved,
    turned_majorities,
)
from placet.aggregate.result.result import Consensus
from placet.aggregate.rules.kemeny import pair_tables
from placet.data import DataError, Rankings
from placet.data.arrays import Floats, Ints, with_columns

MOST_RUNOFF = 10
"""Items up to which the margin of instant runoff is sought."""

NewBallots = dict[tuple[int, ...], int]
"""Order of items -> how many ballots become it."""


class BallotChange(NamedTuple):
    """How many ballots of each kind are changed, and into what."""

    take: Ints
    into: NewBallots


FindMargin = Callable[[Removable, Claim, Consensus, Mapping[str, Any]], "BallotChange | None"]


def margin_of(
    pieces: Removable, claim: Claim, whole: Consensus, params: Mapping[str, Any], again: Callable[[Any], Consensus]
) -> FragileClaim:
    """The fewest ballots whose change changes a claim, confirmed by a count; no number if the search was given up."""
    find = _margin_of(whole.method)
    if find is None or not isinstance(pieces.data, Rankings):
        rules = "borda, plurality and other rules of points, copeland and irv"
        raise DataError(f"how many ballots to change is known for ballots by {rules}, not by {whole.method}")
    if not has_whole_numbers(pieces.data) or pieces.unit != "ballot" or claim.goal not in ("best", "top"):
        raise DataError("changed ballots are single ones of whole numbers, and the goal is 'best' or 'top'")
    tie = claim.goal == "top" and len(claim.items) != claim.k
    found = None if tie or len(pieces.size) > MOST_KINDS else find(pieces, claim, whole, params)
    if found is None or claim.holds(again(changed(pieces, found))):
        return FragileClaim(claim, None, False)
    return FragileClaim(claim, int(found.take.sum()), True, tuple(_rows(pieces, found)), found.take)


def changed(pieces: Removable, change: BallotChange) -> Rankings:
    """The ballots after a change."""
    data: Rankings = pieces.data
    names = data.items
    orders = [[names[k] for k in order] for order in change.into]
    new = Rankings.from_orders(orders, weight=list(change.into.values()), items=names)
    left: Rankings = with_columns(pieces.without(change.take), agent=None, agents=None)
    return left + new if len(left) else new


def _rows(pieces: Removable, change: BallotChange) -> Iterator[dict[str, Any]]:
    """Which ballots become which: both in order, the most numerous first."""
    kinds = np.flatnonzero(change.take)
    kinds = kinds[np.argsort(-change.take[kinds], kind="stable")]
    orders = sorted(change.into, key=lambda order: (-change.into[order], order))
    into = [order for order in orders for _ in range(change.into[order])]
    for (kind, order), number in Counter(zip(np.repeat(kinds, change.take[kinds]).tolist(), into)).items():
        names = " > ".join(str(pieces.data.items[k]) for k in order)
        yield {**pieces.name(kind), "changed": number, "of": int(pieces.size[kind]), "into": names}


def _margin_of(method: str) -> FindMargin | None:
    if method_of(method).adds:
        return _by_points
    return {"copeland": _by_majorities, "irv": _by_eliminations}.get(method)


def _ends(n: int, a: int, b: int) -> tuple[int, ...]:
    """The order with b first and a last."""
    return (b, *(k for k in range(n) if k not in (a, b)), a)


def _by_points(pieces: Removable, claim: Claim, whole: Consensus, params: Mapping[str, Any]) -> BallotChange | None:
    rule, n, data = METHODS[whole.method], len(whole.items), pieces.data
    points = contributions(pieces, lambda single: rule._answer(single, **params).scores)
    best: BallotChange | None = None
    for a, b, strictly in claim_pairs(claim, whole):
        order = _ends(n, a, b)
        single = Rankings.from_orders([[data.items[k] for k in order]], items=data.items)
        new = rule._answer(single, **params).scores
        close = max(whole.tolerance, 1e-12)
        lead = float(whole.scores[a] - whole.scores[b]) + (2 * close if strictly else -close / 2)
        gain = points[:, a] - points[:, b] + float(new[b] - new[a])
        found = fewest(pieces.size, gain, lead)
        if found is not None and found.enough and (best is None or found.need < best.take.sum()):
            best = BallotChange(prefix(found.order, pieces.size, found.need), {order: found.need})
    return best


def _by_majorities(pieces: Removable, claim: Claim, whole: Consensus, params: Mapping[str, Any]) -> BallotChange | None:
    n = len(whole.items)
    wins = contributions(pieces, lambda single: pair_tables(single)[0]).reshape(-1, n, n)
    margin = wins - wins.transpose(0, 2, 1)
    best: BallotChange | None = None
    for a, b, strictly in claim_pairs(claim, whole):
        order = _ends(n, a, b)
        place = np.argsort(order)
        new = np.sign(place - place[:, None]).astype(np.float64)  # 1 where the row is above the column
        most = None if best is None else int(best.take.sum()) - 1
        found = turned_majorities(margin, pieces.size, (a, b), int(strictly), most, new)
        if found is not None:
            best = BallotChange(found, {order: int(found.sum())})
    return best


def _by_eliminations(
    pieces: Removable, claim: Claim, whole: Consensus, params: Mapping[str, Any]
) -> BallotChange | None:
    """Best first over ends of elimination orders, as for removals."""
    n, best, left = len(whole.items), None, MOST_PROGRAMS
    if claim.goal != "best" or len(claim.items) != 1 or params.get("ties", "parallel") != "parallel" or n > MOST_RUNOFF:
        return None
    rounds, number = EliminationRounds(pieces), count()
    waiting: list[tuple[float, int, tuple[int, ...]]] = []
    waiting += [(0.0, next(number), (b,)) for b in range(n) if whole.items[b] not in claim.items]
    heapq.heapify(waiting)
    while waiting:
        need, _, end = heapq.heappop(waiting)
        if best is not None and np.ceil(need - 1e-6) >= best.take.sum():
            return best
        for item in (k for k in range(n) if k not in end):
            longer, left = (item, *end), left - 1
            if left < 0:
                return None
            found = _eliminated(rounds, pieces, longer, whole=len(longer) == n)
            if isinstance(found, BallotChange):
                best = found if best is None or found.take.sum() < best.take.sum() else best
            elif found is not None:
                heapq.heappush(waiting, (found, next(number), longer))
    return best


def _eliminated(
    rounds: EliminationRounds, pieces: Removable, order: tuple[int, ...], *, whole: bool
) -> BallotChange | float | None:
    """The fewest changed ballots with which an elimination ends in this order, or a lower bound if it is not whole."""
    rows, upper = rounds.constraints(order)
    paths = _paths(len(order))
    votes = np.array([[min(p for p in path if p >= r) for path in paths] for r in range(len(order))])
    new = np.array(
        [
            (votes[r] == o).astype(float) - (votes[r] == r)
            for r in range(len(order) - 1)
            for o in range(r + 1, len(order))
        ]
    )
    kinds = len(pieces.size)
    equal = np.append(np.ones(kinds), -np.ones(len(paths)))
    table: Floats = np.vstack([np.hstack([rows, -new.reshape(len(rows), -1)]), equal, -equal])
    limits = np.append(pieces.size, np.full(len(paths), pieces.total)).astype(np.float64)
    found = solved(table, np.append(upper, [0.0, 0.0]), limits, kinds, whole=whole)
    if found is None or not whole:
        return None if found is None else float(found[:kinds].sum())
    into: NewBallots = {}
    for path, number in zip(paths, np.rint(found[kinds:]).astype(np.int64).tolist()):
        if number:
            into[(*(order[p] for p in path), *(order[p] for p in range(len(order)) if p not in path))] = number
    return BallotChange(np.rint(found[:kinds]).astype(np.int64), into)


def _paths(n: int) -> list[tuple[int, ...]]:
    """Whom a ballot may count for, one after the other: any of those that are eliminated, then the winner.

    >>> _paths(3)
    [(2,), (0, 2), (1, 2), (0, 1, 2)]
    """
    return [(*(k for k in range(n - 1) if number >> k & 1), n - 1) for number in range(2 ** (n - 1))]
