"""Sensitivity of the winner: the smallest number of ballots that, cast differently, would change it."""

from collections.abc import Hashable
from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np

from placet.aggregate.places import mean_points, tier_starts
from placet.axioms.outcome import Above, ExaminedMethod, tiers
from placet.axioms.profiles import rankings_of_tiers, tier_table
from placet.data import Rankings
from placet.data.arrays import Floats, Ints


@dataclass(frozen=True)
class Sensitivity:
    """Smallest number of ballots that must be cast differently for the challenger to tie or overtake the winner.

    ``to_tie`` and ``to_change`` count ballots, each of which may become any complete ballot.  If all weights are
    integers, a ballot of weight w counts as w ballots.  ``exact`` numbers are proved; others are the best found in
    ``tried`` runs of the rule, hence upper bounds.  None means that no change was found, or that there is no sole
    winner.  Among rivals that need equally many, the challenger is the one with the highest score, then the first name.

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> found = placet.audit(votes, "plurality").sensitivity
    >>> found.winner, found.challenger, found.to_tie, found.to_change, found.exact
    ('A', 'B', 1, 1, True)
    """

    winner: Hashable | None
    challenger: Hashable | None
    to_tie: int | None
    to_change: int | None
    exact: bool
    tried: int = 0


def sensitivity(rankings: Rankings, rule: ExaminedMethod, above: Above, rivals: int = 3) -> Sensitivity | None:
    """The sensitivity of the winner: exact for positional rules, O(n ballots log ballots), else found by a search.

    The search converts ballots in favor of one of the ``rivals`` next best items at a time; with 0 rivals there is no
    search, and the result is ``None``.
    """
    top = tiers(above)[0] if len(above) else ()
    if len(top) != 1 or len(above) < 2:
        return Sensitivity(None, None, 0 if len(top) > 1 else None, None, exact=True)
    if rule.h is not None:
        return _positional_sensitivity(rankings, rule, top[0])
    return _search_sensitivity(rankings, rule, above, top[0], rivals) if rivals > 0 else None


# Positional rules: points are additive, so the best change of a ballot does not depend on the others


def _positional_sensitivity(rankings: Rankings, rule: ExaminedMethod, winner: int) -> Sensitivity:
    assert rule.h is not None  # the caller has checked
    points = item_points(rankings, rule.h, rule.unlisted)
    weight, n = rankings.weight, rankings.n_items
    h = rule.h(n)
    widest = float(h.max() - h.min())
    scores = np.array([weight @ points(k) for k in range(n)])
    close = 1e-9 * float(np.abs(scores).max(initial=0.0))
    own = points(winner)
    heaviest = 1.0 if whole_numbers(weight) else float(weight.max())
    best: tuple[float, float, float, str, int] = (np.inf, np.inf, np.inf, "", -1)
    for rival in np.argsort(-scores, kind="stable"):
        if rival == winner:
            continue
        lead = float(scores[winner] - scores[rival])
        if lead - close > 2 * widest * heaviest * best[0]:
            break  # rivals come in decreasing score, and one ballot gains at most twice the range of points
        gain = widest - (points(int(rival)) - own)
        tie, change = (fewest_ballots(gain, weight, lead + slack) for slack in (-close, close))
        place = round(lead / close) if close > 0 else 0  # scores that differ by rounding are equal
        best = min(best, (change, tie, place, str(rankings.items[rival]), int(rival)))
    change, tie, _, _, rival = best
    if not np.isfinite(change):
        return Sensitivity(rankings.items[winner], None, None, None, exact=True)
    return Sensitivity(rankings.items[winner], rankings.items[rival], int(tie), int(change), exact=True)


def whole_numbers(weight: Floats) -> bool:
    """Whether all weights are integers, that is, counts of ballots."""
    return bool((weight == np.floor(weight)).all())


def fewest_ballots(gain: Floats, weight: Floats, need: float) -> float:
    """Smallest number of ballots whose gains add up to more than ``need``, largest gains first; infinite if all fail.

    With integer weights the ballots of a row change one by one, else a row changes as a whole.  O(ballots log ballots).

    >>> fewest_ballots(np.array([2.0, 1.0]), np.array([2.0, 5.0]), 4.5)
    3.0
    """
    useful = (gain > 0) & (weight > 0)
    gain, weight = gain[useful], weight[useful]
    whole = whole_numbers(weight)
    count = weight if whole else np.ones(len(weight))
    value = gain if whole else gain * weight
    order = np.argsort(-value, kind="stable")
    value, count = value[order], count[order]
    total = np.cumsum(value * count)
    row = int(np.searchsorted(total, need, side="right"))
    if row == len(total):
        return np.inf
    before = float(total[row - 1]) if row else 0.0
    return float(count[:row].sum()) + min(floor((need - before) / value[row]) + 1.0, float(count[row]))


def item_points(rankings: Rankings, h: Any, unlisted: str) -> Any:
    """Return a function from an item to the points (ballots,) it gets from each ballot by the positional rule ``h``."""
    n, sizes = rankings.n_items, np.diff(rankings.offsets)
    first, size = tier_starts(rankings)
    whole = h(n)
    if unlisted == "absent":
        row_points = np.empty(len(first))
        for m in np.unique(sizes[sizes > 0]):
            rows = sizes[rankings.ballot] == m
            own = h(int(m)) if m < n else whole
            row_points[rows] = mean_points(own, first[rows], size[rows]) - own.mean() + whole.mean()
        default = np.full(len(sizes), whole.mean())
    else:
        row_points = mean_points(whole, first, size)
        rest = np.concatenate([np.cumsum(whole[::-1])[::-1], [0.0]])[sizes] / np.maximum(n - sizes, 1)
        default = rest if unlisted == "last" else np.full(len(sizes), whole[-1])
    order = np.argsort(rankings.item, kind="stable")
    bounds = np.searchsorted(rankings.item[order], np.arange(n + 1))

    def points(item: int) -> Floats:
        values = default.copy()
        rows = order[bounds[item] : bounds[item + 1]]
        values[rankings.ballot[rows]] = row_points[rows]
        return values

    return points


# Any rule: convert ballots to favor a rival, starting with those that favor the winner most


def _search_sensitivity(
    rankings: Rankings, rule: ExaminedMethod, above: Above, winner: int, most_rivals: int
) -> Sensitivity:
    tier = tier_table(rankings)
    whole = whole_numbers(rankings.weight)
    most = int(rankings.weight.sum()) if whole else len(rankings)
    names = rankings.items
    ranked = [k for level in tiers(above) for k in sorted(level, key=lambda k: str(names[k])) if k != winner]
    rivals = ranked[:most_rivals]
    tried, best, by = 0, most + 1, None

    def changes(count: int, rival: int) -> bool:
        nonlocal tried
        tried += 1
        after = rule.outcome(_convert_ballots(rankings, tier, winner, rival, count, whole))
        return bool(after[:, winner].any())

    for rival in rivals:
        if best <= 1 or not changes(best - 1, rival):
            continue
        low, high = 0, best - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if changes(middle, rival) else (middle, high)
        best, by = high, rankings.items[rival]
    return Sensitivity(rankings.items[winner], by, None, best if by is not None else None, exact=False, tried=tried)


def _convert_ballots(rankings: Rankings, tier: Ints, winner: int, rival: int, count: int, whole: bool) -> Rankings:
    """The ballots after ``count`` of them move the rival to the first place and the winner to the last."""
    gap = np.where((tier[:, winner] >= 0) & (tier[:, rival] >= 0), tier[:, winner] - tier[:, rival], 0)
    order = np.argsort(gap, kind="stable")
    size = rankings.weight[order] if whole else np.ones(len(order))
    moved = np.clip(count - (np.cumsum(size) - size), 0, size)
    amount = np.empty(len(order))
    amount[order] = moved if whole else moved * rankings.weight[order]
    rows = np.flatnonzero(amount > 0)
    new = np.where(tier[rows] >= 0, tier[rows] + 1, -1)
    new[:, rival], new[:, winner] = 0, tier.shape[1] + 1
    weight = np.concatenate([rankings.weight - amount, amount[rows]])
    return rankings_of_tiers(np.vstack([tier, new])[weight > 0], weight[weight > 0], rankings.items)
