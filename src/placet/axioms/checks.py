"""The axioms, each a search over profiles that returns the first ``Witness`` against it, or ``None``.

With x above y on a share P(x, y) of the weight (ties count half) and an outcome that may tie items, the axioms of
distributional rank aggregation (Prasad, Pareek and Ravikumar 2015, D1-D10) read:

non-dictatorship   no voter's strict preferences are the outcome on every profile
universality       every profile has an outcome, and it has no ties
transitivity       x above y and y above z imply x above z
pareto             P(x, y) = 1 implies x above y
iia                P(x, y) alone (with the share of ties) decides which of x and y is above the other
anonymity          the outcome does not change when voters exchange ballots, or equal ballots are pooled
monotonicity       an item that moves up on one ballot, all else unchanged, does not fall in the outcome
consistency        the sole winner of two electorates is the sole winner of both together
majority           an item first on a share > 1/2 is the sole winner (ties share the first place)
condorcet          P(x, y) > 1/2 for all y implies that x is the sole winner
strong-condorcet   P(x, y) > 1/2 implies x above y
neutrality         items that swap names swap places

``epsilon`` selects the relaxed forms: majority, condorcet and strong-condorcet require shares of at least
1/2 + epsilon, and iia applies only to pairs with abs(P - 1/2) >= epsilon.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations, permutations
from typing import Any

import numpy as np

from placet.axioms.outcome import Above, CachedMethod, place_range, sole_winner
from placet.axioms.profiles import (
    Profile,
    first_shares,
    lift,
    movable_weights,
    pair_weights,
    rearrangements,
    relabel,
    reverse,
)
from placet.axioms.witness import Profiles, Witness, outcomes, search_inputs
from placet.data.arrays import Floats

CLOSE = 1e-12
MOST_PERMUTED = 5
"""Try all orders of the voters up to this many ballots; beyond, reversal, rotation and swaps of neighbors."""
MOST_SPLIT = 12
"""Try all splits of up to this many ballots; beyond, only cuts into a first and a second part."""


# One profile at a time


def universality(data: Profiles, method: Any) -> Witness | None:
    """Two items that tie in the outcome, or a profile without an outcome.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"], ["A", "C", "B"]])
    >>> explain(universality(votes, "borda"))
    'B and C tie, so there is no single ranking.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile in stream:
        above = rule.outcome(profile)
        if above is None:
            return Witness("universality", rule.name, (), (profile,), (None,), reason=rule.reason)
        pair = _first_pair(~(above | above.T))
        if pair:
            return _witness("universality", rule, profile, pair, above)
    return None


def transitivity(data: Profiles, method: Any) -> Witness | None:
    """x above y and y above z, yet x not above z.  Scores cannot violate this; a table of majorities can.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"], ["C", "A", "B"], ["B", "C", "A"]])
    >>> explain(transitivity(votes, "majority"))
    'A ends above B and B above C, yet A does not end above C.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        through = above.astype(np.int64) @ above.astype(np.int64) > 0
        pair = _first_pair(through & ~above)
        if pair:
            x, z = pair
            y = int(np.flatnonzero(above[x] & above[:, z])[0])
            return _witness("transitivity", rule, profile, (x, y, z), above)
    return None


def pareto(data: Profiles, method: Any) -> Witness | None:
    """Every ballot that compares the two puts x above y, yet x does not end above y.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"]])
    >>> explain(pareto(votes, "plurality"))
    'The one voter puts B above C, yet B and C tie.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        pair = _first_pair((pair_weights(profile).share >= 1 - CLOSE) & ~above)
        if pair:
            return _witness("pareto", rule, profile, pair, above, 1.0)
    return None


def strong_condorcet(data: Profiles, method: Any, epsilon: float = 0.0) -> Witness | None:
    """A majority puts x above y, yet x does not end above y.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["C", "A", "B"]])
    >>> explain(strong_condorcet(votes, "borda"))
    'Two of three voters put B above C, yet B and C tie.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        share = pair_weights(profile).share
        pair = _first_pair(is_majority(share, epsilon) & ~above)
        if pair:
            return _witness("strong-condorcet", rule, profile, pair, above, float(share[pair]))
    return None


def condorcet(data: Profiles, method: Any, epsilon: float = 0.0) -> Witness | None:
    """Majorities put x above every other item, yet x is not the sole winner.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["B", "C", "A"]])
    >>> explain(condorcet(votes, "borda"))
    'At least 66.7% of the voters put A above each other item in turn, yet A and B tie.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        least = least_shares(pair_weights(profile).share)
        x = _denied_winner(is_majority(least, epsilon), above)
        if x is not None:
            return _witness("condorcet", rule, profile, (x, _rival(above, x)), above, float(least[x]))
    return None


def majority(data: Profiles, method: Any, epsilon: float = 0.0) -> Witness | None:
    """More than half of the weight puts x first, yet x is not the sole winner.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["B", "C", "A"]])
    >>> explain(majority(votes, "borda"))
    'Two of three voters put A first, yet A and B tie.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        first = first_shares(profile)
        x = _denied_winner(is_majority(first, epsilon), above)
        if x is not None:
            return _witness("majority", rule, profile, (x, _rival(above, x)), above, float(first[x]))
    return None


# A profile and its variants


def iia(data: Profiles, method: Any, epsilon: float = 0.0) -> Witness | None:
    """Two profiles that agree on the shares of x above y and of ties, and differ in the order of x and y.

    All pairs of profiles are compared; a single profile is compared with those that differ from it in the place of a
    third item on one ballot.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"], ["A", "C", "B"]])
    >>> explain(iia(votes, "borda"))
    'In two elections the same share of voters, 50.0%, puts B above C, yet B and C tie in the one and B ends above C...'
    """
    rule, stream, single = search_inputs(data, method)
    if single:
        stream = _third_item_moves(next(iter(stream)))
    known: dict[tuple[int, int, float, float], tuple[int, Profile]] = {}
    for profile, above in outcomes(rule, stream):
        pairs = pair_weights(profile)
        for x, y in combinations(range(len(profile.items)), 2):
            share = pairs.share[x, y]
            if not abs(share - 0.5) >= epsilon - CLOSE:
                continue
            key = (x, y, round(float(share), 12), round(float(pairs.ties[x, y] / pairs.compared[x, y]), 12))
            sign = int(above[x, y]) - int(above[y, x])
            before = known.setdefault(key, (sign, profile))
            if before[0] != sign:
                names = (profile.items[x], profile.items[y])
                other = rule.outcome(before[1])
                return Witness("iia", rule.name, names, (before[1], profile), (other, above), float(share))
    return None


def monotonicity(data: Profiles, method: Any) -> Witness | None:
    """An item that moves one step up on one ballot, and falls in the outcome.

    An item falls if more items are above it, or more are above or tied with it; every lift is a chain of single steps.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["A", "C", "B"]] * 2)
    >>> explain(monotonicity(votes, "mode"))
    'B moves up on one ballot and drops from a tie for 2nd to 3rd.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        for b, x in np.ndindex(len(profile.ballots), len(profile.items)):
            for ballot in lift(profile.ballots[b], x, profile.is_strict):
                for amount in movable_weights(profile.weight[b]):
                    lifted = profile.with_ballot(b, ballot, amount)
                    after = rule.outcome(lifted)
                    if after is None:
                        continue
                    then, now = place_range(above, x), place_range(after, x)
                    if now[0] > then[0] or now[1] > then[1]:
                        names = (profile.items[x],)
                        return Witness("monotonicity", rule.name, names, (profile, lifted), (above, after))
    return None


def consistency(data: Profiles, method: Any) -> Witness | None:
    """A split of the ballots into two parts with the same sole winner, which is not the sole winner on all ballots.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> from placet.axioms import explain
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 3 + [["A", "C", "B"]] * 2 + [["B", "A", "C"]] * 4)
    >>> explain(consistency(votes, "mode"))
    'A wins with either group of voters (five and four), yet not with both together.'
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        for part, rest in _splits(len(profile.ballots)):
            one, two = profile.subset(part), profile.subset(rest)
            first, second = rule.outcome(one), rule.outcome(two)
            if first is None or second is None:
                continue
            x = sole_winner(first)
            if x is not None and x == sole_winner(second) and x != sole_winner(above):
                names = (profile.items[x],)
                return Witness("consistency", rule.name, names, (one, two, profile), (first, second, above))
    return None


def neutrality(data: Profiles, method: Any) -> Witness | None:
    """Two items swap names on all ballots, and the outcome does not swap them.

    Neighbors in the list of items are swapped: such swaps generate all relabelings.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["B", "C", "A"]])
    >>> neutrality(votes, "borda") is None  # names do not matter
    True
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        n = len(profile.items)
        for x in range(n - 1):
            code = (*range(x), x + 1, x, *range(x + 2, n))
            swapped = relabel(profile, code)
            after = rule.outcome(swapped)
            if after is not None and (after != above[np.ix_(code, code)]).any():
                names = (profile.items[x], profile.items[x + 1])
                return Witness("neutrality", rule.name, names, (profile, swapped), (above, after))
    return None


def anonymity(data: Profiles, method: Any) -> Witness | None:
    """A different outcome from the same ballots in another order, or with equal ballots pooled.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["B", "C", "A"]])
    >>> anonymity(votes, "borda") is None  # the order of the ballots does not matter
    True
    """
    rule, stream, _ = search_inputs(data, method)
    for profile, above in outcomes(rule, stream):
        for other in _voter_permutations(profile):
            after = rule.outcome(other)
            if after is not None and (after != above).any():
                return Witness("anonymity", rule.name, (), (profile, other), (above, after))
    return None


def non_dictatorship(data: Profiles, method: Any) -> Witness | None:
    """A voter whose strict preferences are the outcome on every profile with the same number (at least 2) of voters.

    A single profile is varied: first each possible dictator's ballot is reversed, then all the others.

    Returns
    -------
    Witness or None
        Ballots on which the method breaks the axiom, if there are any.

    >>> from placet.data import Rankings
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 2 + [["B", "C", "A"]])
    >>> non_dictatorship(votes, "borda") is None  # nobody decides alone
    True
    """
    rule, stream, single = search_inputs(data, method)
    if single:
        stream = _reversals(rule, next(iter(stream)))
    obeyed: dict[int, dict[int, Profile]] = {}
    for profile, above in outcomes(rule, stream):
        voters = len(profile.ballots)
        if voters < 2:
            continue
        alive = obeyed.setdefault(voters, dict.fromkeys(range(voters), profile))
        for voter in list(alive):
            if not _obeys(above, profile.ballots[voter]):
                del alive[voter]
    for alive in obeyed.values():
        for voter, profile in alive.items():
            return Witness("non-dictatorship", rule.name, (), (profile,), (rule.outcome(profile),), voter=voter)
    return None


GENERAL: dict[str, Callable[..., Witness | None]] = {
    "non-dictatorship": non_dictatorship,
    "universality": universality,
    "transitivity": transitivity,
    "pareto": pareto,
    "iia": iia,
    "anonymity": anonymity,
    "monotonicity": monotonicity,
    "consistency": consistency,
    "majority": majority,
    "condorcet": condorcet,
    "strong-condorcet": strong_condorcet,
    "neutrality": neutrality,
}
"""Name -> ``axiom(data, method) -> Witness | None`` on ballots or profiles; those in ``RELAXED`` accept ``epsilon``."""

RELAXED = ("iia", "majority", "condorcet", "strong-condorcet")
ORDERED = ("non-dictatorship",)
"""Axioms for which a search must distinguish voters; the check of anonymity permutes them itself."""


# Helpers


def is_majority(share: Floats, epsilon: float) -> Any:
    """Whether a share is a majority of at least 1/2 + epsilon."""
    return (share > 0.5 + CLOSE) & (share >= 0.5 + epsilon - CLOSE)


def least_shares(share: Floats) -> Floats:
    """(n,): the smallest share of each item against any other; a pair that nobody compared counts as 0."""
    least = np.where(np.isnan(share), 0.0, share)
    np.fill_diagonal(least, 1.0)
    return least.min(axis=1, initial=1.0)


def _first_pair(mask: Any) -> tuple[int, ...] | None:
    """The first pair of distinct items for which the mask is True."""
    marked = np.argwhere(mask & ~np.eye(len(mask), dtype=bool))
    return (int(marked[0, 0]), int(marked[0, 1])) if len(marked) else None


def _denied_winner(entitled: Any, above: Above) -> int | None:
    for x in np.flatnonzero(entitled):
        if above[x].sum() < len(above) - 1:
            return int(x)
    return None


def _rival(above: Above, x: int) -> int:
    """An item above x, or tied with it."""
    rivals = above[:, x] if above[:, x].any() else ~above[x] & (np.arange(len(above)) != x)
    return int(np.flatnonzero(rivals)[0])


def _witness(
    axiom: str,
    rule: CachedMethod,
    profile: Profile,
    items: tuple[int, ...],
    above: Above,
    share: float | None = None,
) -> Witness:
    names = tuple(profile.items[k] for k in items)
    return Witness(axiom, rule.name, names, (profile,), (above,), share)


def _obeys(above: Above, ballot: tuple[int, ...]) -> bool:
    tier = np.array(ballot)
    wants = (tier[:, None] < tier[None, :]) & (tier >= 0)[:, None] & (tier >= 0)[None, :]
    return bool(above[wants].all())


def _third_item_moves(profile: Profile) -> Iterator[Profile]:
    yield profile
    for b, ballot in enumerate(profile.ballots):
        for x, y in combinations(range(len(ballot)), 2):
            for other in rearrangements(ballot, x, y, profile.is_strict):
                for amount in movable_weights(profile.weight[b]):
                    yield profile.with_ballot(b, other, amount)


def _splits(voters: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Splits of the ballots into two nonempty parts, each split once."""
    if voters > MOST_SPLIT:
        for cut in range(1, voters):
            yield tuple(range(cut)), tuple(range(cut, voters))
        return
    for size in range(voters - 1):
        for others in combinations(range(1, voters), size):
            part = (0, *others)
            yield part, tuple(k for k in range(voters) if k not in part)


def _voter_permutations(profile: Profile) -> Iterator[Profile]:
    voters = len(profile.ballots)
    here = tuple(range(voters))
    orders: Iterable[tuple[int, ...]] = permutations(here)
    if voters > MOST_PERMUTED:
        swaps = ((*here[:k], k + 1, k, *here[k + 2 :]) for k in range(voters - 1))
        orders = chain((here[::-1], here[1:] + here[:1]), swaps)
    for order in orders:
        moved = profile.subset(order)
        if (moved.ballots, moved.weight) != (profile.ballots, profile.weight):
            yield Profile(moved.ballots, moved.weight, profile.items, profile.agent)
    if profile.agent is None and len(set(profile.ballots)) < voters:
        yield profile.pool()


def _reversals(rule: CachedMethod, profile: Profile) -> Iterator[Profile]:
    yield profile
    above = rule.outcome(profile)
    for voter, ballot in enumerate(profile.ballots):
        if above is None or not _obeys(above, ballot):
            continue
        yield profile.with_ballot(voter, reverse(ballot), profile.weight[voter])
        others = tuple(b if k == voter else reverse(b) for k, b in enumerate(profile.ballots))
        yield Profile(others, profile.weight, profile.items, profile.agent)
