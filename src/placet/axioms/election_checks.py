"""Axioms of elections, each a search over profiles that returns the first ``Witness`` against it, or ``None``.

clone-independence   adding a clone next to an item on every ballot changes nothing: the other items win as before, and
                     one of the two clones wins if the item did (Tideman 1987)
participation        a voter who prefers x to y does not make y win in place of x by voting (Moulin 1988)
reversal-symmetry    the sole winner does not win when all ballots are reversed (Saari 1994)
smith                all winners are in the Smith set: the smallest set whose items beat all others head to head
mutual-majority      a set that more than half of the weight puts above all other items contains the winners
later-no-harm        naming one more item below does not harm an item named above it (Woodall 1997)
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from placet.axioms.checks import CLOSE, GENERAL
from placet.axioms.outcome import Above, sole_winner, tiers
from placet.axioms.profiles import Profile, Tiers, movable_weights, pair_weights, reverse
from placet.axioms.witness import Profiles, Witness, outcomes, search_inputs

MOST_FLIPPED = 5
"""Up to this many ballots the clone is tried above the item on every subset; beyond, on none, all and every second."""


def winners(above: Above) -> tuple[int, ...]:
    """The items with none above them, or the best tier if the outcome has cycles."""
    return tiers(above)[0] if len(above) else ()


def clone_independence(data: Profiles, method: Any) -> Witness | None:
    """An item gets a clone next to it on every ballot, and the winners change other than by including the clone.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"], ["B", "A", "C"]])
    >>> explain(clone_independence(votes, "borda"))
    "A gets a clone next to it on every ballot, and the outcome turns from A = B > C to A > B > A' > C."
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        before = set(winners(above))
        for x in range(len(profile.items)):
            for cloned in _clone(profile, x):
                after = rule.outcome(cloned)
                if after is None:
                    continue
                now = {x if k == len(profile.items) else k for k in winners(after)}
                if now != before:
                    names = (profile.items[x],)
                    return Witness("clone-independence", rule.name, names, (profile, cloned), (above, after))
    return None


def participation(data: Profiles, method: Any) -> Witness | None:
    """A ballot that puts x above y is cast, and y wins in place of x.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["B", "C", "A"]])
    >>> participation(votes, "borda") is None  # nobody would rather not have voted
    True
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        y = sole_winner(above)
        if y is None or len(profile.ballots) < 2:
            continue
        for b, ballot in enumerate(profile.ballots):
            for amount in movable_weights(profile.weight[b]):
                without = _without(profile, b, amount)
                before = rule.outcome(without)
                x = None if before is None else sole_winner(before)
                if x is not None and x != y and 0 <= ballot[x] < ballot[y]:
                    names = (profile.items[x], profile.items[y])
                    return Witness("participation", rule.name, names, (without, profile), (before, above))
    return None


def reversal_symmetry(data: Profiles, method: Any) -> Witness | None:
    """The sole winner still wins when all ballots are reversed.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"], ["A", "C", "B"], ["B", "C", "A"]])
    >>> explain(reversal_symmetry(votes, "plurality"))
    'A wins, and wins again when every ballot is reversed.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        x = sole_winner(above)
        if x is None or len(profile.items) < 2:
            continue
        turned = replace(profile, ballots=tuple(map(reverse, profile.ballots)))
        after = rule.outcome(turned)
        if after is not None and x in winners(after):
            return Witness("reversal-symmetry", rule.name, (profile.items[x],), (profile, turned), (above, after))
    return None


def smith(data: Profiles, method: Any) -> Witness | None:
    """A winner that is not in the Smith set.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["B", "C", "A"]])
    >>> explain(smith(votes, "borda"))
    'B wins, yet A beats every item outside their group head to head.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        inside = smith_set(profile)
        outside = [x for x in winners(above) if x not in inside]
        if outside:
            names = (profile.items[outside[0]], *(profile.items[k] for k in inside))
            return Witness("smith", rule.name, names, (profile,), (above,))
    return None


def smith_set(profile: Profile) -> tuple[int, ...]:
    """The smallest set of items each of which beats every item outside it head to head.  O(n^2)."""
    wins = pair_weights(profile).wins
    close = CLOSE * max(float(wins.max(initial=0.0)), 1.0)
    unbeaten = wins - wins.T >= -close  # row is not beaten by column
    _, label = connected_components(unbeaten, directed=True, connection="strong")
    beaten = ~unbeaten
    for group in np.unique(label):
        inside = label == group
        if beaten[np.ix_(~inside, inside)].all():
            return tuple(np.flatnonzero(inside).tolist())
    return ()


def mutual_majority(data: Profiles, method: Any) -> Witness | None:
    """More than half of the weight puts some items above all others, and another item wins.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["B", "C", "A"]])
    >>> explain(mutual_majority(votes, "borda"))
    'Two of three voters put A above all others, yet B wins.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        support: dict[frozenset[int], float] = {}
        for ballot, weight in zip(profile.ballots, profile.weight):
            for top in _top_sets(ballot):
                support[top] = support.get(top, 0.0) + weight
        for top, weight in support.items():
            share = weight / profile.total
            outside = [x for x in winners(above) if x not in top]
            if share > 0.5 + CLOSE and outside:
                names = (profile.items[outside[0]], *(profile.items[k] for k in sorted(top)))
                return Witness("mutual-majority", rule.name, names, (profile,), (above,), share)
    return None


def later_no_harm(data: Profiles, method: Any) -> Witness | None:
    """A ballot names one more tier (the rest share the last place), and an item named above it stops winning.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", ("B", "C")], ["A", ("B", "C")], ["B", "A", "C"], ["B", "C", "A"]])
    >>> explain(later_no_harm(votes, "borda"))
    'A ballot that puts B above names one more item below, and B no longer wins alone.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile in stream:
        for b, ballot in enumerate(profile.ballots):
            for k in range(max(ballot) - 1):
                short, longer = (profile.with_ballot(b, _merge_after(ballot, k + d), profile.weight[b]) for d in (0, 1))
                before, after = rule.outcome(short), rule.outcome(longer)
                x = None if before is None else sole_winner(before)
                if after is not None and x is not None and 0 <= ballot[x] <= k and sole_winner(after) != x:
                    names = (profile.items[x],)
                    return Witness("later-no-harm", rule.name, names, (short, longer), (before, after))
    return None


OF_ELECTIONS: dict[str, Callable[..., Witness | None]] = {
    "clone-independence": clone_independence,
    "participation": participation,
    "reversal-symmetry": reversal_symmetry,
    "smith": smith,
    "mutual-majority": mutual_majority,
    "later-no-harm": later_no_harm,
}
AXIOMS = GENERAL | OF_ELECTIONS
"""All axioms: name -> ``axiom(data, method) -> Witness | None``."""


# Helpers


def _clone(profile: Profile, x: int) -> Iterator[Profile]:
    """The profile with a clone of x as its last item, above x on some ballots and below it on the others.

    Ballots that represent several voters are split in two, so that these may differ on the clones.
    """
    if any(w >= 2 for w in profile.weight):
        halves = [(b, part) for b, w in enumerate(profile.weight) for part in (w // 2, w - w // 2) if part > 0]
        profile = replace(profile.subset(tuple(b for b, _ in halves)), weight=tuple(part for _, part in halves))
    voters = range(len(profile.ballots))
    flips = [set(c) for size in range(len(voters) // 2 + 1) for c in combinations(voters, size)]
    if len(voters) > MOST_FLIPPED:
        flips = [set(), set(voters), set(voters[::2])]
    name = f"{profile.items[x]}'"
    for flip in flips:
        ballots = tuple(_with_clone(ballot, x, b in flip) for b, ballot in enumerate(profile.ballots))
        yield replace(profile, ballots=ballots, items=(*profile.items, name))


def _with_clone(ballot: Tiers, x: int, first: bool) -> Tiers:
    """The ballot with a clone of x as its last item, just above or below x; tied with it where x is tied or absent."""
    own = ballot[x]
    if own < 0 or sum(t == own for t in ballot) > 1:
        return (*ballot, own)
    moved = [t + 1 if t > own else t for t in ballot]
    moved[x] = own + 1 if first else own
    return (*moved, own if first else own + 1)


def _without(profile: Profile, b: int, amount: float) -> Profile:
    """The profile with the weight of ballot b reduced by ``amount``."""
    left = profile.weight[b] - amount
    if left <= 0:
        return profile.subset(tuple(k for k in range(len(profile.ballots)) if k != b))
    return replace(profile, weight=tuple(left if k == b else w for k, w in enumerate(profile.weight)))


def _top_sets(ballot: Tiers) -> Iterator[frozenset[int]]:
    """The sets of items that the ballot puts above all the others it lists."""
    for last in range(max(ballot)):
        yield frozenset(k for k, t in enumerate(ballot) if 0 <= t <= last)


def _merge_after(ballot: Tiers, k: int) -> Tiers:
    """The ballot with everything below tier k merged into one last tier."""
    return tuple(min(t, k + 1) for t in ballot)
