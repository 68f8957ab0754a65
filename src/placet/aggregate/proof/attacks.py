"""Ways in which a claim may change: which items to swap, to bring together or to move apart."""

import numpy as np

from placet.aggregate.proof.claims import Claim
from placet.aggregate.proof.vote_influence import Attack
from placet.aggregate.result import separation
from placet.aggregate.result.result import Consensus
from placet.data.arrays import Floats, Ints

MOST_SWAPS = 16
"""Pairs to swap that are considered, those with the fewest standard errors between them first."""


MOST_DENSE = separation.MOST_PAIRED
"""Items up to which all pairs are looked at; of more, those near the border."""


def attacks_on(claim: Claim, result: Consensus) -> list[Attack]:
    """The ways to change a claim of a result that are worth planning."""
    inside = np.array([name in claim.items for name in result.items])
    near = _near(inside, result) if len(inside) > MOST_DENSE else np.arange(len(inside))
    gap = result.scores[near, None] - result.scores[near]
    within = inside[near]
    across = within[:, None] & ~within
    if claim.goal == "place":  # an item above may fall below it, too
        across = (within[:, None] != within) & (gap >= 0)
    if result.stderr is None or len(near) < len(inside):
        return [Attack(int(near[a]), int(near[b]), kind) for a, b, kind, _ in _swaps(within, across, gap, gap)]
    error = separation.difference_errors(result.stderr, result._covariance_or_draws(), None)
    ratio = separation.studentized(result.scores, error)
    swaps = _swaps(inside, across, ratio, gap)
    if claim.goal != "tiers":
        return swaps
    return [*swaps, *_border_attacks(claim, result, inside, ratio)]


def _near(inside: separation.Separated, result: Consensus) -> Ints:
    """The items of a set and the others that are nearest to each other in score, in their order; of more than these,
    no pair is among those that are nearest to be swapped.
    """
    place = np.argsort(-result.scores, kind="stable")
    own = np.flatnonzero(inside[place])
    low, high = own.min(initial=len(place)), own.max(initial=0)
    ends = np.concatenate([own[:MOST_SWAPS], own[-MOST_SWAPS:]])
    above, below = np.arange(max(low - MOST_SWAPS, 0), low), np.arange(high + 1, min(high + 1 + MOST_SWAPS, len(place)))
    chosen: Ints = np.sort(place[np.unique(np.concatenate([ends, above, below]))])
    return chosen


def _swaps(inside: separation.Separated, across: separation.Separated, near: Floats, gap: Floats) -> list[Attack]:
    """Pairs across the set, nearest first; tied items inside it too, as moving one of them changes the set."""
    tied = inside[:, None] & inside & (np.abs(gap) <= 1e-9 * (1 + np.abs(gap).max(initial=0.0)))
    np.fill_diagonal(tied, False)
    a, b = np.nonzero(across | tied)
    order = np.argsort(near[a, b], kind="stable")[:MOST_SWAPS]
    return [Attack(int(a[k]), int(b[k]), "swap") for k in order]


def _border_attacks(claim: Claim, result: Consensus, inside: separation.Separated, ratio: Floats) -> list[Attack]:
    """A tier ends where the next item is separated from one of the tier: bring these two together, or cut the tier
    earlier, so that the next item is compared with fewer.
    """
    tier = result.tier_numbers(claim.level)
    above = result.separated(claim.level)
    critical = _critical(ratio, above)
    last = np.flatnonzero(inside & (tier == tier[inside].max()))
    below = result.order[~inside[result.order]]
    next_tier = below[tier[below] == tier[below].min()]
    reached = [(int(a), int(b)) for b in next_tier[:1] for a in last if above[a, b]]
    merges = sorted(reached, key=lambda pair: -ratio[pair])[:1]
    top = int(last[np.argmax(result.scores[last])])
    splits = sorted((int(b) for b in last if b != top), key=lambda b: -ratio[top, b])[:2]
    return [*(Attack(a, b, "merge", critical) for a, b in merges), *(Attack(top, b, "split", critical) for b in splits)]


def _critical(ratio: Floats, above: separation.Separated) -> float:
    """About how many standard errors separate two items: between the most that do not and the fewest that do."""
    apart, near = ratio[above], ratio[~above & (ratio > 0)]
    most = float(near.max(initial=0.0))
    return (most + float(apart.min(initial=np.inf))) / 2 if len(apart) else most
