"""Voting rules based on pairwise contests, places or ratings.  Runoffs and transferable votes are in ``runoff``.

Ties are never broken by the order of items or ballots.  Where a rule must choose among equals, every choice is tried
(parallel universes), and an item's place is its best over all of them; so all items that can win share the first
place.  With too many universes, a stated rule treats equals alike, and a note says so.  Weights that differ by at most
1e-9 of the largest are equal.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from placet.aggregate.places import UnlistedPlaces, ballots_of, refuse_many_places, sum_by_item, tier_starts
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules import positional
from placet.aggregate.rules.kemeny import pair_tables
from placet.aggregate.rules.rule import Scored
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.kernels.aggregate import election_counts as kernels

Bools = NDArray[np.bool_]
Strength = Literal["winning-votes", "margins"]
MOST_UNIVERSES = 256
"""Maximum tie-breaking outcomes to explore; beyond, equals are treated alike."""


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


def scores_of(places: Ints) -> Floats:
    """Minus the number of items before each."""
    return 0.0 - places.astype(np.float64)


def schulze(data: Rankings | Comparisons, strength: Strength = "winning-votes") -> Floats:
    """Schulze's rule, used by Debian: x is above y if the widest path of majorities to y is wider than that from y.

    The width of a path is the strength of its weakest majority.  The relation is transitive but may leave pairs
    undecided; the score is minus the length of the longest chain above an item, so items with nothing above them share
    the first place.  O(n^3).

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 4 + [["b", "c", "a"]] * 3 + [["c", "a", "b"]] * 2)
    >>> schulze(votes)
    array([ 0., -1., -2.])
    """
    width = strength_classes(*majorities(data, strength)).astype(np.int32)
    kernels.widest_paths(width)
    return scores_of(chain_places(width > width.T))


def minimax(data: Rankings | Comparisons, strength: Strength = "winning-votes") -> Floats:
    """Simpson-Kramer: minus the strength of an item's worst defeat, 0 if no majority defeats it.  O(n^2).

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


def ties_note(ways: int, where: str) -> tuple[str, ...]:
    """A note that ties were broken in several ways; empty if there was only one."""
    if ways <= 1:
        return ()
    return (f"ties {where} have {ways} outcomes: an item's place is the best that it reaches in any of them",)


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


# Places


def dowdall(data: Rankings, unlisted: UnlistedPlaces = "absent") -> Floats:
    """The Dowdall system of Nauru: place i is worth 1 / i.  O(rows)."""
    return positional.positional(ballots_of(data, "dowdall"), "dowdall", unlisted)


def bucklin(data: Rankings) -> Floats:
    """Bucklin: items are ordered by the smallest k such that more than half of the weight ranks them in the top k.

    Equal k are ordered by the weight at k; items that never reach a majority come last, by the weight of the ballots
    that list them.  An item of a tied tier counts by the fraction of the tier's places that are in the top k.  The
    score is minus the number of items above.  O(rows + n^2).

    >>> bucklin(Rankings.from_orders([["a", "b", "c"]] * 2 + [["b", "c", "a"]] * 2 + [["c", "b", "a"]]))
    array([-2.,  0., -1.])
    """
    rankings = ballots_of(data, "bucklin")
    n = rankings.n_items
    refuse_many_places(n)
    total = float(rankings.weight[np.diff(rankings.offsets) > 0].sum())
    close = RELATIVE_TOLERANCE * total
    among_first = np.cumsum(place_weights(rankings), axis=1)
    majority = np.column_stack([among_first > total / 2 + close, np.ones(n, np.bool_)])
    reached = majority.argmax(axis=1)
    weight = among_first[np.arange(n), np.minimum(reached, n - 1)] if n else np.zeros(0)
    return scores_of(places_by((reached.astype(np.float64), 0.0), (-weight, close)))


def place_weights(rankings: Rankings) -> Floats:
    """Weight (n, n) of every item at every place; tied items share their places equally.  O(rows + n^2)."""
    n = rankings.n_items
    first, size = tier_starts(rankings)
    share = rankings.weight[rankings.ballot] / np.maximum(size, 1)
    row = rankings.item.astype(np.int64) * (n + 1)
    change = np.bincount(row + first, share, n * (n + 1)) - np.bincount(row + first + size, share, n * (n + 1))
    return np.cumsum(change.reshape(n, n + 1), axis=1)[:, :n]


def places_by(*keys: tuple[Floats, float]) -> Ints:
    """Number of items before each one, sorted by the first key, then by the second, ...; lower comes first.

    Every key has a tolerance within which values are equal.
    """
    n = len(keys[0][0])
    group = np.zeros(n, np.int64)
    for values, close in keys:
        order = np.lexsort((values, group))
        new = np.diff(group[order], prepend=-1) > 0
        new |= np.diff(values[order], prepend=-np.inf) > close
        group[order] = np.cumsum(new) - 1
    size = np.bincount(group, minlength=1)
    return (np.cumsum(size) - size)[group]


# Ratings


def approval(data: Rankings, threshold: float | Literal["mean", "top"] | None = None) -> Scored:
    """Approval voting: the weight of the ballots that approve an item.

    ``threshold`` defines what a ballot approves: a number, items rated at least that; ``"mean"``, items rated at least
    the mean of the ballot's own ratings; ``"top"``, its first tier.  Default: ``"mean"`` if ballots have ratings, else
    ``"top"``.  A ballot that ties all its items approves all of them.  O(rows).

    >>> votes = {"who": [1, 1, 1, 2, 2], "what": ["a", "b", "c", "a", "b"], "stars": [5, 4, 1, 2, 3]}
    >>> approval(Rankings.from_scores(votes, ballot="who", item="what", score="stars"), threshold=4).scores
    array([1., 1., 0.])
    """
    rankings = ballots_of(data, "approval")
    if threshold is None:
        threshold = "top" if rankings.score is None else "mean"
    if threshold == "top":
        approved = rankings.tier == 0
    elif threshold == "mean":
        score = _ratings(rankings, "approval")
        sizes = np.maximum(np.diff(rankings.offsets), 1)
        mean = np.bincount(rankings.ballot, score, len(rankings)) / sizes
        scale = np.bincount(rankings.ballot, np.abs(score), len(rankings)) / sizes
        approved = score >= (mean - RELATIVE_TOLERANCE * scale)[rankings.ballot]
    elif isinstance(threshold, int | float) and np.isfinite(threshold):
        approved = _ratings(rankings, "approval") >= threshold
    else:
        raise ValueError(f"threshold {threshold!r} is unknown; choose 'mean', 'top' or a number")
    scores = sum_by_item(rankings.item[approved], rankings.weight[rankings.ballot[approved]], rankings.n_items)
    approves = {"top": "its first tier", "mean": "what it rates at least its own mean"}
    words = approves.get(str(threshold)) or f"what it rates at least {threshold:g}"
    return Scored(scores, (f"a ballot approves {words}",))


def star(data: Rankings, lowest: float | None = None) -> Scored:
    """STAR: of the two items with the highest sums of ratings, the one rated higher by more weight wins.

    The other finalist comes second, the rest by their sums; the score is minus the number of items above.  An unlisted
    item is rated ``lowest``, by default the lowest rating in the data.  If sums are equal, every pair of finalists is
    tried; a tied runoff goes to the higher sum, and to both if the sums are equal too.  O(rows + ballots k^2) for k
    items tied with the finalists.

    >>> votes = {"who": [1, 1, 2, 2, 3, 3], "what": ["a", "b"] * 3, "stars": [5, 4, 3, 4, 3, 4]}
    >>> star(Rankings.from_scores(votes, ballot="who", item="what", score="stars")).scores
    array([-1.,  0.])
    """
    rankings = ballots_of(data, "star")
    score, n = _ratings(rankings, "star"), rankings.n_items
    least = float(score.min()) if len(score) else 0.0
    low = least if lowest is None else float(lowest)
    if low > least:
        raise ValueError(f"lowest must be no more than the lowest rating, {least:g}, not {low:g}")
    sums = sum_by_item(rankings.item, rankings.weight[rankings.ballot] * (score - low), n)
    close = RELATIVE_TOLERANCE * float(sums.max(initial=0.0))
    place = places_by((-sums, close))
    if n < 2:
        return Scored(scores_of(place))
    best, second = np.flatnonzero(place == 0), np.flatnonzero(place == 1)
    finalists = [(x, y) for x in best for y in (best if len(best) > 1 else second) if x < y or len(best) == 1]
    found, ways = np.full(n, n), 0
    ratings = _rating_table(rankings, np.union1d(best, second), score, low)
    for x, y in finalists:
        lead = float(rankings.weight @ np.sign(ratings[int(x)] - ratings[int(y)]))
        level = abs(lead) <= RELATIVE_TOLERANCE * float(rankings.weight.sum())
        winners = [x, y] if level and len(best) > 1 else [x] if level or lead > 0 else [y]
        for winner in winners:
            ways += 1
            stage = np.full(n, 2.0)
            stage[[x, y]] = 1.0
            stage[winner] = 0.0
            found = np.minimum(found, places_by((stage, 0.0), (-sums, close)))
    notes = ties_note(ways, "for the runoff")
    if len(score) < len(rankings) * n:
        notes += (f"an item that a ballot leaves out is rated {low:g}",)
    return Scored(scores_of(found), notes)


def _rating_table(rankings: Rankings, items: Ints, score: Floats, low: float) -> dict[int, Floats]:
    """The ratings (ballots,) of each of ``items``."""
    table = {}
    for item in items:
        rows = rankings.item == item
        table[int(item)] = np.full(len(rankings), low)
        table[int(item)][rankings.ballot[rows]] = score[rows]
    return table


def _ratings(rankings: Rankings, rule: str) -> Floats:
    if rankings.score is None:
        raise DataError(
            f"{rule!r} needs ratings, and these ballots keep none; Rankings.from_scores keeps them"
            + (", and threshold='top' needs tiers only" if rule == "approval" else "")
        )
    return rankings.score
