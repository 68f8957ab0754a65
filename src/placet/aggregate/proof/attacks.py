"""Ways in which a claim may change: which items to swap, to bring together or to move apart."""

import numpy as np

from placet.aggregate.proof.claims import Claim
from placet.aggregate.proof.vote_influence import Attack
from placet.aggregate.result import separation
from placet.aggregate.result.result import Consensus
from placet.data.arrays import Floats

MOST_SWAPS = 16
"""Pairs to swap that are considered, those with the fewest standard errors between them first."""


def attacks_on(claim: Claim, result: Consensus) -> list[Attack]:
    """The ways to change a claim of a result that are worth planning."""
    inside = np.array([name in claim.items for name in result.items])
    gap = result.scores[:, None] - result.scores
    if result.stderr is None or len(result.items) > separation.MOST_PAIRED:
        return _swaps(inside, gap, gap)
    error = separation.difference_errors(result.stderr, result._covariance_or_draws(), None)
    ratio = separation.studentized(result.scores, error)
    swaps = _swaps(inside, ratio, gap)
    if claim.goal != "tiers":
        return swaps
    return [*swaps, *_border_attacks(claim, result, inside, ratio)]


def _swaps(inside: separation.Separated, near: Floats, gap: Floats) -> list[Attack]:
    """Pairs across the set, nearest first; tied items inside it too, as moving one of them changes the set."""
    across = inside[:, None] & ~inside
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
