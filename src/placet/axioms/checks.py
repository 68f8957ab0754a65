"""The axioms, each a search over profiles that returns the first ``Witness`` against it, or ``None``.

With x above y on a share P(x, y) of the weight (ties count half) and an outcome that may tie items, the axioms of
distributional rank aggregation (Prasad, Pareek and Ravikumar 2015, D1-D10) read:

non-dictatorship   no voter's strict preferences are the outcome on every profile
universality       every profile has an outcome, and it ties nothing
transitivity       x above y and y above z give x above z
pareto             P(x, y) = 1 gives x above y
iia                P(x, y) alone (with the share of ties) decides how x and y stand to each other
anonymity          the outcome does not change when ballots change hands, or equal ballots are pooled
monotonicity       an item that moves up on one ballot, all else as it was, does not fall in the outcome
consistency        the sole winner of two electorates is the sole winner of both together
majority           first on a share > 1/2: the sole winner (ties share the first place)
condorcet          P(x, y) > 1/2 for all y: x is the sole winner
strong-condorcet   P(x, y) > 1/2: x above y
neutrality         items that change names change places

With ``epsilon`` the relaxed forms: majority, condorcet and strong-condorcet ask for shares of at least 1/2 + epsilon,
and iia speaks only of pairs with abs(P - 1/2) >= epsilon.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, permutations
from typing import Any

import numpy as np

from placet.axioms.outcome import Observer, Relation
from placet.axioms.profiles import (
    Profile,
    amounts,
    first_shares,
    lifts,
    pairs_of,
    rearrangements,
    relabelled,
    reversed_ballot,
)
from placet.data import Rankings
from placet.data.arrays import Floats

CLOSE = 1e-12
MOST_PERMUTED = 5
"""All orders of the voters are tried up to this many ballots, then reversal, rotation and swaps of neighbours."""
MOST_SPLIT = 12
"""All splits of the ballots are tried up to this many, then cuts into a first and a second part."""


@dataclass(frozen=True, eq=False)
class Witness:
    """Ballots on which a rule breaks an axiom.

    ``items`` are those it concerns; ``profiles`` the ballots (before and after a change, or two parts and their union)
    with the rule's outcome for each; ``share`` is the share of the weight that the axiom rests on; ``voter`` the
    dictator; ``reason`` why the rule gave no outcome.
    """

    axiom: str
    rule: str
    items: tuple[Hashable, ...]
    profiles: tuple[Profile, ...]
    outcomes: tuple[Relation | None, ...]
    share: float | None = None
    voter: int | None = None
    reason: str = ""

    @property
    def margin(self) -> float | None:
        """How far the share is from one half: the axiom's relaxed form is broken for every epsilon up to it."""
        return None if self.share is None else abs(self.share - 0.5)

    @property
    def rankings(self) -> tuple[Rankings, ...]:
        """The profiles as ballots that every rule takes."""
        return tuple(profile.rankings() for profile in self.profiles)

    def __repr__(self) -> str:
        ballots = " and ".join(str(len(p.ballots)) for p in self.profiles)
        return f"Witness({self.axiom} broken by {self.rule} for {self.items}, ballots: {ballots})"


Profiles = Rankings | Profile | Iterable[Profile]


def prepared(rule: Any, profiles: Profiles) -> tuple[Observer, Iterable[Profile], bool]:
    """The rule with a memory, the profiles, and whether they are one profile alone."""
    see = rule if isinstance(rule, Observer) else Observer(rule)
    if isinstance(profiles, Rankings):
        profiles = Profile.of(profiles)
    return (see, [profiles], True) if isinstance(profiles, Profile) else (see, profiles, False)


def answered(see: Observer, profiles: Iterable[Profile]) -> Iterator[tuple[Profile, Relation]]:
    """Profiles that have an outcome, with it; an axiom says nothing of the others, but universality does."""
    for profile in profiles:
        above = see(profile)
        if above is not None:
            yield profile, above


# One profile at a time


def universality(rule: Any, profiles: Profiles) -> Witness | None:
    """Two items that tie in the outcome, or a profile without one."""
    see, stream, _ = prepared(rule, profiles)
    for profile in stream:
        above = see(profile)
        if above is None:
            return Witness("universality", see.rule.name, (), (profile,), (None,), reason=see.reason)
        pair = _first(~(above | above.T))
        if pair:
            return _about("universality", see, profile, pair, above)
    return None


def transitivity(rule: Any, profiles: Profiles) -> Witness | None:
    """x above y and y above z, yet x not above z.  Scores cannot do this, a table of majorities can."""
    see, stream, _ = prepared(rule, profiles)
    for profile, above in answered(see, stream):
        through = above.astype(np.int64) @ above.astype(np.int64) > 0
        pair = _first(through & ~above)
        if pair:
            x, z = pair
            y = int(np.flatnonzero(above[x] & above[:, z])[0])
            return _about("transitivity", see, profile, (x, y, z), above)
    return None


def pareto(rule: Any, profiles: Profiles) -> Witness | None:
    """Every ballot that compares the two puts x above y, yet x does not end above y."""
    see, stream, _ = prepared(rule, profiles)
    for profile, above in answered(see, stream):
        pair = _first((pairs_of(profile).share >= 1 - CLOSE) & ~above)
        if pair:
            return _about("pareto", see, profile, pair, above, 1.0)
    return None


def strong_condorcet(rule: Any, profiles: Profiles, epsilon: float = 0.0) -> Witness | None:
    """A majority puts x above y, yet x does not end above y."""
    see, stream, _ = prepared(rule, profiles)
    for profile, above in answered(see, stream):
        share = pairs_of(profile).share
        pair = _first(beyond(share, epsilon) & ~above)
        if pair:
            return _about("strong-condorcet", see, profile, pair, above, float(share[pair]))
    return None


def condorcet(rule: Any, profiles: Profiles, epsilon: float = 0.0) -> Witness | None:
    """Majorities put x above every other item, yet x is not the sole winner."""
    see, stream, _ = prepared(rule, profiles)
    for profile, above in answered(see, stream):
        least = duels(pairs_of(profile).share)
        x = _not_alone_on_top(beyond(least, epsilon), above)
        if x is not None:
            return _about("condorcet", see, profile, (x, _rival(above, x)), above, float(least[x]))
    return None


def majority(rule: Any, profiles: Profiles, epsilon: float = 0.0) -> Witness | None:
    """More than half of the weight puts x first, yet x is not the sole winner."""
    see, stream, _ = prepared(rule, profiles)
    for profile, above in answered(see, stream):
        first = first_shares(profile)
        x = _not_alone_on_top(beyond(first, epsilon), above)
        if x is not None:
            return _about("majority", see, profile, (x, _rival(above, x)), above, float(first[x]))
    return None


# A profile and what it may become


def iia(rule: Any, profiles: Profiles, epsilon: float = 0.0) -> Witness | None:
    """Two profiles that agree on the shares of x above y and of ties, and differ in how x and y end.

    Of many profiles every two are compared; one profile is compared with those that differ in the place of a third item
    on one ballot.
    """
    see, stream, single = prepared(rule, profiles)
    if single:
        stream = _with_third_items_moved(next(iter(stream)))
    known: dict[tuple[int, int, float, float], tuple[int, Profile]] = {}
    for profile, above in answered(see, stream):
        pairs = pairs_of(profile)
        for x, y in combinations(range(len(profile.items)), 2):
            share = pairs.share[x, y]
            if not abs(share - 0.5) >= epsilon - CLOSE:
                continue
            key = (x, y, round(float(share), 12), round(float(pairs.ties[x, y] / pairs.compared[x, y]), 12))
            sign = int(above[x, y]) - int(above[y, x])
            before = known.setdefault(key, (sign, profile))
            if before[0] != sign:
                names = (profile.items[x], profile.items[y])
                other = see(before[1])
                return Witness("iia", see.rule.name, names, (before[1], profile), (other, above), float(share))
    return None


def monotonicity(rule: Any, profiles: Profiles) -> Witness | None:
    """An item that moves one step up on one ballot, and falls in the outcome.

    To fall is to have more items above, or more items above or level; all lifts are chains of single steps.
    """
    see, stream, _ = prepared(rule, profiles)
    for profile, above in answered(see, stream):
        for b, x in np.ndindex(len(profile.ballots), len(profile.items)):
            for ballot in lifts(profile.ballots[b], x, profile.strict):
                for amount in amounts(profile.weight[b]):
                    lifted = profile.changed(b, ballot, amount)
                    after = see(lifted)
                    if after is not None and any(now > then for now, then in zip(place(after, x), place(above, x))):
                        return Witness(
                            "monotonicity", see.rule.name, (profile.items[x],), (profile, lifted), (above, after)
                        )
    return None


def consistency(rule: Any, profiles: Profiles) -> Witness | None:
    """A split of the ballots into two parts with the same sole winner, who does not win alone with all ballots."""
    see, stream, _ = prepared(rule, profiles)
    for profile, above in answered(see, stream):
        for part, rest in _splits(len(profile.ballots)):
            one, two = profile.picked(part), profile.picked(rest)
            first, second = see(one), see(two)
            if first is None or second is None:
                continue
            x = sole_winner(first)
            if x is not None and x == sole_winner(second) and x != sole_winner(above):
                names = (profile.items[x],)
                return Witness("consistency", see.rule.name, names, (one, two, profile), (first, second, above))
    return None


def neutrality(rule: Any, profiles: Profiles) -> Witness | None:
    """Two items exchange names on all ballots, and the outcome is not the one with names exchanged.

    Neighbours in the list of items are exchanged: such exchanges generate all relabellings.
    """
    see, stream, _ = prepared(rule, profiles)
    for profile, above in answered(see, stream):
        n = len(profile.items)
        for x in range(n - 1):
            code = (*range(x), x + 1, x, *range(x + 2, n))
            swapped = relabelled(profile, code)
            after = see(swapped)
            if after is not None and (after != above[np.ix_(code, code)]).any():
                names = (profile.items[x], profile.items[x + 1])
                return Witness("neutrality", see.rule.name, names, (profile, swapped), (above, after))
    return None


def anonymity(rule: Any, profiles: Profiles) -> Witness | None:
    """The same ballots in other hands, or equal ballots pooled, and another outcome."""
    see, stream, _ = prepared(rule, profiles)
    for profile, above in answered(see, stream):
        for other in _in_other_hands(profile):
            after = see(other)
            if after is not None and (after != above).any():
                return Witness("anonymity", see.rule.name, (), (profile, other), (above, after))
    return None


def non_dictatorship(rule: Any, profiles: Profiles) -> Witness | None:
    """A voter whose strict preferences are the outcome on every profile of as many voters (two or more).

    Of one profile its variants are taken too: each possible dictator's ballot upside down, and all others upside down.
    """
    see, stream, single = prepared(rule, profiles)
    if single:
        stream = _upside_down(see, next(iter(stream)))
    obeyed: dict[int, dict[int, Profile]] = {}
    for profile, above in answered(see, stream):
        voters = len(profile.ballots)
        if voters < 2:
            continue
        alive = obeyed.setdefault(voters, dict.fromkeys(range(voters), profile))
        for voter in list(alive):
            if not _follows(above, profile.ballots[voter]):
                del alive[voter]
    for alive in obeyed.values():
        for voter, profile in alive.items():
            return Witness("non-dictatorship", see.rule.name, (), (profile,), (see(profile),), voter=voter)
    return None


AXIOMS: dict[str, Callable[..., Witness | None]] = {
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
"""Name -> ``axiom(rule, profiles) -> Witness | None``; those of ``RELAXED`` take ``epsilon`` too."""

RELAXED = ("iia", "majority", "condorcet", "strong-condorcet")
ORDERED = ("non-dictatorship",)
"""Axioms for which a search must tell voters apart; anonymity changes their order itself."""


# Inside


def beyond(share: Floats, epsilon: float) -> Any:
    """Whether a share is a majority, and reaches 1/2 + epsilon."""
    return (share > 0.5 + CLOSE) & (share >= 0.5 + epsilon - CLOSE)


def duels(share: Floats) -> Floats:
    """(n,): the least share that an item has against any other; a pair that nobody compared counts as none."""
    least = np.where(np.isnan(share), 0.0, share)
    np.fill_diagonal(least, 1.0)
    return least.min(axis=1, initial=1.0)


def sole_winner(above: Relation) -> int | None:
    """The item that stands above all others."""
    wins = np.flatnonzero(above.sum(axis=1) == len(above) - 1)
    return int(wins[0]) if len(wins) else None


def place(above: Relation, x: int) -> tuple[int, int]:
    """Items above x, and items above or level with x."""
    return int(above[:, x].sum()), len(above) - 1 - int(above[x].sum())


def _first(mask: Any) -> tuple[int, ...] | None:
    """The first pair of different items that the mask marks."""
    marked = np.argwhere(mask & ~np.eye(len(mask), dtype=bool))
    return (int(marked[0, 0]), int(marked[0, 1])) if len(marked) else None


def _not_alone_on_top(entitled: Any, above: Relation) -> int | None:
    for x in np.flatnonzero(entitled):
        if above[x].sum() < len(above) - 1:
            return int(x)
    return None


def _rival(above: Relation, x: int) -> int:
    """An item that stands above x, or level with it."""
    rivals = above[:, x] if above[:, x].any() else ~above[x] & (np.arange(len(above)) != x)
    return int(np.flatnonzero(rivals)[0])


def _about(
    axiom: str, see: Observer, profile: Profile, items: tuple[int, ...], above: Relation, share: float | None = None
) -> Witness:
    names = tuple(profile.items[k] for k in items)
    return Witness(axiom, see.rule.name, names, (profile,), (above,), share)


def _follows(above: Relation, ballot: tuple[int, ...]) -> bool:
    tier = np.array(ballot)
    wants = (tier[:, None] < tier[None, :]) & (tier >= 0)[:, None] & (tier >= 0)[None, :]
    return bool(above[wants].all())


def _with_third_items_moved(profile: Profile) -> Iterator[Profile]:
    yield profile
    for b, ballot in enumerate(profile.ballots):
        for x, y in combinations(range(len(ballot)), 2):
            for other in rearrangements(ballot, x, y, profile.strict):
                for amount in amounts(profile.weight[b]):
                    yield profile.changed(b, other, amount)


def _splits(voters: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Two parts of the ballots, neither empty, each split once."""
    if voters > MOST_SPLIT:
        for cut in range(1, voters):
            yield tuple(range(cut)), tuple(range(cut, voters))
        return
    for size in range(voters - 1):
        for others in combinations(range(1, voters), size):
            part = (0, *others)
            yield part, tuple(k for k in range(voters) if k not in part)


def _in_other_hands(profile: Profile) -> Iterator[Profile]:
    voters = len(profile.ballots)
    here = tuple(range(voters))
    orders: Iterable[tuple[int, ...]] = permutations(here)
    if voters > MOST_PERMUTED:
        swaps = ((*here[:k], k + 1, k, *here[k + 2 :]) for k in range(voters - 1))
        orders = chain((here[::-1], here[1:] + here[:1]), swaps)
    for order in orders:
        moved = profile.picked(order)
        if (moved.ballots, moved.weight) != (profile.ballots, profile.weight):
            yield Profile(moved.ballots, moved.weight, profile.items, profile.agent)
    if profile.agent is None and len(set(profile.ballots)) < voters:
        yield profile.pooled()


def _upside_down(see: Observer, profile: Profile) -> Iterator[Profile]:
    yield profile
    above = see(profile)
    for voter, ballot in enumerate(profile.ballots):
        if above is None or not _follows(above, ballot):
            continue
        yield profile.changed(voter, reversed_ballot(ballot), profile.weight[voter])
        others = tuple(b if k == voter else reversed_ballot(b) for k, b in enumerate(profile.ballots))
        yield Profile(others, profile.weight, profile.items, profile.agent)
