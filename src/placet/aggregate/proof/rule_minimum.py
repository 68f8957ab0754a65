"""The exact minimum for rules where it can be found: rules of points, Copeland's rule and instant runoff.

Points add up, so the ballots that favor one item most over another go first.  For Copeland's rule a linear program in
whole numbers chooses the ballots and the majorities to turn.  For instant runoff the orders of elimination that end
with another winner are searched from the end; the ballots that an end of an order needs are a lower bound for all
orders that end so (Magrino, Rivest, Shen and Wagner, Computing the margin of victory in IRV elections, EVT/WOTE 2011).
"""

import heapq
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np
import scipy

from placet.aggregate.method_table import METHODS, method_of
from placet.aggregate.proof.claims import Claim
from placet.aggregate.proof.removal import Removable, has_whole_numbers
from placet.aggregate.proof.removal_search import RemovalSearch, fewest, prefix
from placet.aggregate.result.result import Consensus
from placet.aggregate.rules.kemeny import pair_tables
from placet.aggregate.rules.runoff import first_choices
from placet.data import Comparisons, Rankings
from placet.data.arrays import Floats, Ints, with_columns

MOST_PROGRAMS = 4000
"""Linear programs that are solved for instant runoff before the search is given up."""

MOST_KINDS = 20_000
"""Kinds of ballots beyond which no exact minimum is sought."""

Minimum = Callable[[Removable, Claim, Consensus, Mapping[str, Any], "Ints | None"], "Ints | None"]


def exact_minimum(
    pieces: Removable,
    search: RemovalSearch,
    claim: Claim,
    whole: Consensus,
    params: Mapping[str, Any],
    bound: Ints | None,
) -> Ints | None:
    """The smallest removal that changes a claim, proved to be so; None if the rule has no such proof.

    ``bound`` is a removal known to change it.
    """
    minimum = _minimum_of(whole.method)
    counted = pieces.group is not None or has_whole_numbers(pieces.data)
    if minimum is None or claim.goal in ("tiers", "place") or not counted or len(pieces.size) > MOST_KINDS:
        return None
    if claim.goal == "top" and len(claim.items) != claim.k:  # a tie for the last place: more than pairs decides it
        return None
    take = minimum(pieces, claim, whole, params, bound)
    return take if take is not None and search.changes(take) else None


def _minimum_of(method: str) -> Minimum | None:
    if method_of(method).adds:
        return _by_points
    return {"copeland": _by_majorities, "irv": _by_eliminations}.get(method)


def claim_pairs(claim: Claim, whole: Consensus) -> list[tuple[int, int, bool]]:
    """Pairs (a, b, strictly): the set changes if and only if in one of them b, which is outside, comes to at least the
    score of a, which is inside; or, if both share the first place, to more.
    """
    inside = [name in claim.items for name in whole.items]
    every = range(len(inside))
    pairs = [(a, b, inside[b]) for a in every for b in every if inside[a] and a != b]
    return pairs if claim.goal == "best" else [pair for pair in pairs if not pair[2]]


# What one thing of each kind contributes


def contributions(pieces: Removable, value: Callable[[Any], Floats]) -> Floats:
    """(kinds, ...): the sum over each kind of ``value`` of a single vote or ballot, which is an array."""
    data = pieces.data
    known: dict[Any, Floats] = {}
    if isinstance(data, Comparisons):
        names = ("wins_i", "wins_j", "ties")
        rows = [
            _once(known, (int(data.i[r]), int(data.j[r]), k), value, lambda r=r, k=k: _single_vote(data, r, names[k]))  # type: ignore[misc]
            for k in range(3)
            for r in range(len(data))
        ]
        table: Any = np.array(rows).reshape(3, len(data), -1)
    else:
        each = [
            _once(known, _pattern(data, r), value, lambda r=r: _single_ballot(data, r))  # type: ignore[misc]
            for r in range(len(data))
        ]
        table = np.array(each).reshape(len(data), -1)
    return np.stack([pieces.sums(table[..., column]) for column in range(table.shape[-1])], axis=1)


def _once(known: dict[Any, Floats], key: Any, value: Callable[[Any], Floats], single: Callable[[], Any]) -> Floats:
    if key not in known:
        known[key] = np.asarray(value(single()), dtype=np.float64).ravel()
    return known[key]


def _single_vote(data: Comparisons, row: int, outcome: str) -> Comparisons:
    counts: dict[str, Any] = {name: np.array([float(name == outcome)]) for name in ("wins_i", "wins_j", "ties")}
    return Comparisons(data.i[row : row + 1], data.j[row : row + 1], **counts, items=data.items)


def _single_ballot(data: Rankings, row: int) -> Rankings:
    return with_columns(data[np.array([row])], weight=np.ones(1))


def _pattern(data: Rankings, row: int) -> tuple[bytes, ...]:
    rows = slice(data.offsets[row], data.offsets[row + 1])
    columns = (data.item, data.tier, data.score)
    return tuple(column[rows].tobytes() for column in columns if column is not None)


# Rules of points


def _by_points(
    pieces: Removable,
    claim: Claim,
    whole: Consensus,
    params: Mapping[str, Any],
    bound: Ints | None,
) -> Ints | None:
    rule = METHODS[whole.method]
    points = contributions(pieces, lambda single: rule._answer(single, **params).scores)
    best: Ints | None = None
    for a, b, strictly in claim_pairs(claim, whole):
        close = max(whole.tolerance, 1e-12)
        lead = float(whole.scores[a] - whole.scores[b]) + (2 * close if strictly else -close / 2)
        found = fewest(pieces.size, points[:, a] - points[:, b], lead)
        if found is not None and found.enough and (best is None or found.need < best.sum()):
            best = prefix(found.order, pieces.size, found.need)
    return best


# Copeland


def _by_majorities(
    pieces: Removable,
    claim: Claim,
    whole: Consensus,
    params: Mapping[str, Any],
    bound: Ints | None,
) -> Ints | None:
    n = len(whole.items)
    wins = contributions(pieces, lambda single: pair_tables(single)[0]).reshape(-1, n, n)
    margin = wins - wins.transpose(0, 2, 1)
    best = bound
    for a, b, strictly in claim_pairs(claim, whole):
        most = None if best is None else int(best.sum()) - 1
        found = turned_majorities(margin, pieces.size, (a, b), int(strictly), most)
        best = found if found is not None else best
    return best


def turned_majorities(
    margin: Floats, size: Ints, pair: tuple[int, int], more: int, most: int | None, new: Floats | None = None
) -> Ints | None:
    """The fewest things whose removal gives b of the ``pair`` (a, b) at least the Copeland score of a and ``more``.

    None if that takes more than ``most``.  With ``new`` (n, n) each becomes a ballot of these margins instead.

    Unknowns: how many of each kind are removed, and for every contest of a (and of b) two switches, "not won" and
    "lost" ("not lost" and "won"), each allowed only if the remaining margin is so.
    """
    kinds, n = margin.shape[:2]
    a, b = pair
    contests = [(a, x, -1.0) for x in range(n) if x != a] + [(b, x, 1.0) for x in range(n) if x not in (a, b)]
    total = np.tensordot(size.astype(np.float64), margin, 1)
    taken = margin if new is None else margin - new
    top = float((size[:, None, None] * np.abs(taken)).sum(axis=0).max(initial=1.0)) + np.abs(total).max(initial=0.0) + 1
    unknowns = kinds + 2 * len(contests)
    rows, upper, gain = [], [], np.zeros(unknowns)
    base = 0.0
    for c, (x, y, sign) in enumerate(contests):
        both = 2.0 if (x, y) == (a, b) else 1.0  # what a loses to b, b gains
        base += both  # a has won, b has lost, until a switch says otherwise
        for step in range(2):  # sign * (total - removed) >= step wherever the switch is on
            row = np.zeros(unknowns)
            row[:kinds] = sign * taken[:, x, y]
            row[kinds + 2 * c + step] = top + step
            rows.append(row)
            upper.append(sign * total[x, y] + top)
            gain[kinds + 2 * c + step] = both
    rows.append(-gain)
    upper.append(-base - more)
    if most is not None:
        rows.append(np.append(np.ones(kinds), np.zeros(unknowns - kinds)))
        upper.append(float(most))
    limits = np.append(size.astype(np.float64), np.ones(unknowns - kinds))
    return _program(np.array(rows), np.array(upper), limits, kinds, whole=True)


def _program(rows: Floats, upper: Floats, limits: Floats, kinds: int, *, whole: bool) -> Any:
    """Minimize the sum of the first ``kinds`` unknowns subject to rows @ x <= upper and 0 <= x <= limits.

    Gives the first unknowns in whole numbers, or without ``whole`` the least sum; None if there is no solution.
    """
    found = solved(rows, upper, limits, kinds, whole=whole)
    if found is None:
        return None
    return np.rint(found[:kinds]).astype(np.int64) if whole else float(found[:kinds].sum())


def solved(rows: Floats, upper: Floats, limits: Floats, kinds: int, *, whole: bool) -> Any:
    """The unknowns themselves, or None."""
    cost = np.append(np.ones(kinds), np.zeros(len(limits) - kinds))
    found = scipy.optimize.milp(
        cost,
        integrality=np.full(len(limits), int(whole)),
        bounds=scipy.optimize.Bounds(0.0, limits),
        constraints=scipy.optimize.LinearConstraint(rows, -np.inf, upper) if len(rows) else (),
    )
    return found.x if found.x is not None and found.success else None


# Instant runoff


def _by_eliminations(
    pieces: Removable,
    claim: Claim,
    whole: Consensus,
    params: Mapping[str, Any],
    bound: Ints | None,
) -> Ints | None:
    """Best first over ends of elimination orders, (runner-up, winner) and so on, by the ballots that they need."""
    if claim.goal != "best" or len(claim.items) != 1 or params.get("ties", "parallel") != "parallel":
        return None
    n, best, left = len(whole.items), bound, MOST_PROGRAMS
    rounds = EliminationRounds(pieces)
    number = count()
    inside = {k for k, name in enumerate(whole.items) if name in claim.items}
    waiting: list[tuple[float, int, tuple[int, ...]]] = [(0.0, next(number), (b,)) for b in range(n) if b not in inside]
    heapq.heapify(waiting)
    while waiting:
        need, _, end = heapq.heappop(waiting)
        if best is not None and np.ceil(need - 1e-6) >= best.sum():
            return best
        for item in range(n) if len(end) < n else ():
            if item in end:
                continue
            longer, left = (item, *end), left - 1
            if left < 0:
                return None
            rows, upper = rounds.constraints(longer)
            more = _program(rows, upper, pieces.size.astype(np.float64), len(pieces.size), whole=len(longer) == n)
            if more is None:
                continue
            if len(longer) < n:
                heapq.heappush(waiting, (more, next(number), longer))
            elif best is None or more.sum() < best.sum():
                best = more
    return best


class EliminationRounds:
    """What the ballots of each kind say in the rounds of an elimination."""

    def __init__(self, pieces: Removable):
        self.pieces = pieces
        self.known: dict[frozenset[int], Floats] = {}

    def votes(self, standing: frozenset[int]) -> Floats:
        """(kinds, n_items): the first choices of one thing of each kind among the standing items."""
        if standing not in self.known:
            codes = np.array(sorted(standing), np.int64)
            self.known[standing] = contributions(self.pieces, lambda single: first_choices(single, codes)[0])
        return self.known[standing]

    def constraints(self, order: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Rows and bounds: in each round the item that leaves has no more votes left than any other standing item."""
        rows, upper = [], []
        size = self.pieces.size.astype(np.float64)
        for k, out in enumerate(order[:-1]):
            votes = self.votes(frozenset(order[k:]))
            for other in order[k + 1 :]:
                lead = votes[:, other] - votes[:, out]
                rows.append(lead)  # what is removed of the lead must not exceed it
                upper.append(float(size @ lead))
        return np.array(rows).reshape(-1, len(size)), np.array(upper)
