"""Voting rules based on pairwise contests, places or ratings.  Runoffs and transferable votes are in ``runoff``.

Ties are never broken by the order of items or ballots.  Where a rule must choose among equals, every choice is tried
(parallel universes), and an item's place is its best over all of them; so all items that can win share the first
place.  With too many universes, a stated rule treats equals alike, and a note says so.  Weights that differ by at most
1e-9 of the largest are equal.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules import positional
from placet.aggregate.rules.kemeny import margins, pair_tables
from placet.aggregate.rules.order_scores import MOST_UNIVERSES, scores_of, ties_note
from placet.aggregate.rules.scored import Scored
from placet.data import Comparisons, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.kernels.aggregate import election_counts as kernels

Bools = NDArray[np.bool_]
Strength = Literal["winning-votes", "margins"]


# Majorities


def majorities(data: Rankings | Comparisons, strength: Strength) -> tuple[Floats, float]:
    """Strength (n, n) of every majority, 0 where row does not beat column, and the tolerance for equal strengths.

    The strength of a majority is the weight for it ("winning-votes") or that weight minus the weight against it
    ("margins"); ballots that list only one of the two items do not count.
    """
    one_of(strength, ("winning-votes", "margins"), "strength")
    wins, _ = pair_tables(data)
    close = RELATIVE_TOLERANCE * float(wins.max(initial=0.0))
    margin = wins - wins.T
    return np.where(margin > close, wins if strength == "winning-votes" else margin, 0.0), close


def strength_classes(strength: Floats, close: float) -> Ints:
    """Strengths as integer classes 0, 1, ... in the same order; values within ``close`` share a class."""
    positive = strength > 0
    values = strength[positive]
    order = np.argsort(values, kind="stable")
    number = np.empty(len(values), np.int64)
    number[order] = 1 + np.cumsum(np.diff(values[order], prepend=values[order[:1]]) > close)
    classes = np.zeros(strength.shape, np.int64)
    classes[positive] = number
    return classes


def chain_places(above: Bools) -> Ints:
    """Length of the longest chain above every item in a transitive relation (n, n); 0 if nothing is above it."""
    count = above.sum(axis=0)
    place = np.zeros(len(above), np.int64)
    for item in np.argsort(count, kind="stable"):
        if count[item]:
            place[item] = place[above[:, item]].max() + 1
    return place


def copeland(data: Rankings | Comparisons) -> Floats:
    """Number of opponents beaten by a majority of those who compared the two, minus opponents lost to.  O(pairs + n^2).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> copeland(Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]]))
    array([ 1.,  1., -2.])
    """
    return np.sign(margins(pair_tables(data)[0])).sum(axis=1)


def schulze(data: Rankings | Comparisons, strength: Strength = "winning-votes") -> Floats:
    """Schulze's rule, used by Debian: x is above y if the widest path of majorities to y is wider than that from y.

    The width of a path is the strength of its weakest majority.  The relation is transitive but may leave pairs
    undecided; the score is minus the length of the longest chain above an item, so items with nothing above them share
    the first place.  O(n^3).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 4 + [["b", "c", "a"]] * 3 + [["c", "a", "b"]] * 2)
    >>> schulze(votes)
    array([ 0., -1., -2.])
    """
    width = strength_classes(*majorities(data, strength)).astype(np.int32)
    kernels.widest_paths(width)
    return scores_of(chain_places(width > width.T))


def minimax(data: Rankings | Comparisons, strength: Strength = "winning-votes") -> Floats:
    """Simpson-Kramer: minus the strength of an item's worst defeat, 0 if no majority defeats it.  O(n^2).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 4 + [["b", "c", "a"]] * 3 + [["c", "a", "b"]] * 2)
    >>> minimax(votes)
    array([-5., -6., -7.])
    """
    defeats, _ = majorities(data, strength)
    return 0.0 - defeats.max(axis=0, initial=0.0)


def ranked_pairs(data: Rankings | Comparisons, strength: Strength = "winning-votes") -> Scored:
    """Tideman's ranked pairs: majorities are locked in, strongest first, unless they close a cycle with locked ones.

    The score is minus the length of the longest chain of locked pairs above an item.  Equally strong majorities that
    form a cycle together are locked in every order, up to 256 outcomes; beyond, none of them is locked.  O(n^3).

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 4 + [["b", "c", "a"]] * 3 + [["c", "a", "b"]] * 2)
    >>> ranked_pairs(votes).scores
    array([ 0., -1., -2.])
    """
    classes = strength_classes(*majorities(data, strength))
    over, under = np.nonzero(classes)
    order = np.argsort(-classes[over, under], kind="stable")
    over, under = over[order], under[order]
    falls = np.flatnonzero(np.diff(classes[over, under])) + 1
    bounds = np.concatenate([[0], falls, [len(over)]]).astype(np.int64)
    outcomes = _locked_outcomes(over, under, bounds, data.n_items)
    if outcomes is None:
        reach = np.zeros((data.n_items, data.n_items), np.bool_)
        kernels.lock_classes(over, under, bounds, 0, True, np.empty(len(over), np.int64), reach)
        note = f"more than {MOST_UNIVERSES} outcomes of ties: no equally strong majorities that form a cycle are locked"
        return Scored(scores_of(chain_places(reach)), (note,))
    places = np.min([chain_places(reach) for reach in outcomes], axis=0)
    return Scored(scores_of(places), ties_note(len(outcomes), "among equally strong majorities"))


def _locked_outcomes(over: Ints, under: Ints, bounds: Ints, n: int) -> list[Bools] | None:
    """All locked relations reachable by reordering equally strong pairs; None if there are too many."""
    pairs = np.empty(len(over), np.int64)
    start = np.zeros((n, n), np.bool_)
    waiting = [(0, np.empty(0, np.int64), start)]
    seen: set[tuple[int, bytes]] = set()
    outcomes: list[Bools] = []
    steps = 0
    while waiting:
        c, choices, reach = waiting.pop()
        if not len(choices):
            c, count = kernels.lock_classes(over, under, bounds, c, False, pairs, reach)
            choices = pairs[:count].copy()
        key = (c, np.packbits(reach).tobytes())
        if key in seen:
            continue
        seen.add(key)
        if not len(choices):
            outcomes.append(reach)
        steps += len(choices)
        if len(seen) > MOST_UNIVERSES or steps > 8 * MOST_UNIVERSES:
            return None
        for p in choices:
            after, left = reach.copy(), choices[choices != p]
            kernels.lock(over[p], under[p], after)
            count = kernels.settle(over, under, left, after)
            waiting.append((c, left[:count], after) if count else (c + 1, left[:0], after))
    return outcomes


def black(data: Rankings | Comparisons) -> Floats:
    """Black's rule: the item that beats every other one head-to-head, if there is one, then the Borda count.

    That item's score is at least the best of the others plus the largest weight that compares two items.  O(n^2).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> black(Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2))
    array([12.,  7.,  2.])
    """
    scores = positional.borda(data)
    defeats, _ = majorities(data, "margins")
    winner = np.flatnonzero((defeats > 0).sum(axis=1) == data.n_items - 1)
    if len(winner) == 1 and data.n_items > 1:
        wins, ties = pair_tables(data)
        step, others = float((wins + wins.T + ties).max()), np.delete(scores, winner)
        scores[winner] = max(float(scores[winner[0]]), float(others.max()) + step)
    return scores
