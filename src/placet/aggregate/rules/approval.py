"""Rules of ratings: approval, and STAR (score, then automatic runoff)."""

from typing import Literal

import numpy as np

from placet.aggregate.places import ballots_of, sum_by_item
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules.order_scores import places_by, scores_of, ties_note
from placet.aggregate.rules.scored import Scored
from placet.data import DataError, Rankings
from placet.data.arrays import Floats, Ints

Threshold = float | Literal["mean", "top"] | None
TIERS_SUFFICE = ", and threshold='top' needs tiers only"


def approval(data: Rankings, threshold: Threshold = None) -> Scored:
    """Approval voting: the weight of the ballots that approve an item.

    ``threshold`` defines what a ballot approves: a number, items rated at least that; ``"mean"``, items rated at least
    the mean of the ballot's own ratings; ``"top"``, its first tier.  Default: ``"mean"`` if ballots have ratings, else
    ``"top"``.  A ballot that ties all its items approves all of them, or none if it rates them all 0.  O(rows).

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> votes = {"who": [1, 1, 1, 2, 2], "what": ["a", "b", "c", "a", "b"], "stars": [5, 4, 1, 2, 3]}
    >>> approval(Rankings.from_scores(votes, ballot="who", item="what", score="stars"), threshold=4).scores
    array([1., 1., 0.])
    """
    rankings = ballots_of(data, "approval")
    approved, words = approved_rows(rankings, threshold, "approval")
    scores = sum_by_item(rankings.item[approved], rankings.weight[rankings.ballot[approved]], rankings.n_items)
    return Scored(scores, (words,))


def approved_rows(rankings: Rankings, threshold: Threshold, rule: str) -> tuple[Ints, str]:
    """Mask (rows,) of the items that their ballot approves, and a sentence that says what a ballot approves."""
    if threshold is None:
        threshold = "top" if rankings.score is None else "mean"
    if threshold == "top":
        approved = rankings.tier == 0
    elif threshold == "mean":
        score = _ratings(rankings, rule, TIERS_SUFFICE)
        sizes = np.maximum(np.diff(rankings.offsets), 1)
        mean = np.bincount(rankings.ballot, score, len(rankings)) / sizes
        scale = np.bincount(rankings.ballot, np.abs(score), len(rankings)) / sizes
        approved = score >= (mean - RELATIVE_TOLERANCE * scale)[rankings.ballot]
        approved &= (scale > 0)[rankings.ballot]  # all 0: of what is approved or not, nothing is
    elif isinstance(threshold, int | float) and np.isfinite(threshold):
        approved = _ratings(rankings, rule, TIERS_SUFFICE) >= threshold
    else:
        raise ValueError(f"threshold {threshold!r} is unknown; choose 'mean', 'top' or a number")
    approves = {"top": "its first tier", "mean": "what it rates at least its own mean"}
    return approved, f"a ballot approves {approves.get(str(threshold)) or f'what it rates at least {threshold:g}'}"


def star(data: Rankings, lowest: float | None = None) -> Scored:
    """STAR: of the two items with the highest sums of ratings, the one rated higher by more weight wins.

    The other finalist comes second, the rest by their sums; the score is minus the number of items above.  An unlisted
    item is rated ``lowest``, by default the lowest rating in the data.  If sums are equal, every pair of finalists is
    tried; a tied runoff goes to the higher sum, and to both if the sums are equal too.  O(rows + ballots k^2) for k
    items tied with the finalists.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

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


def _ratings(rankings: Rankings, rule: str, way_out: str = "") -> Floats:
    if rankings.score is None:
        raise DataError(
            f"{rule!r} needs ratings, and these ballots keep none; Rankings.from_scores keeps them{way_out}"
        )
    return rankings.score
