"""Witnesses: ballots on which a method violates an axiom, and the profiles that a search examines."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from placet.axioms.outcome import Above, CachedMethod
from placet.axioms.profiles import Profile
from placet.data import Rankings


@dataclass(frozen=True, eq=False)
class Witness:
    """Ballots on which a method violates an axiom.

    ``items`` are the items concerned; ``profiles`` the ballots (before and after a change, or two parts and their
    union), with the method's outcome on each; ``share`` is the share of the weight in the axiom's premise; ``voter``
    is the dictator; ``reason`` is why the method gave no outcome.

    >>> import placet
    >>> found = placet.axioms.search("condorcet", "plurality", placet.axioms.Domain(3, 5)).witness
    >>> found.items, placet.axioms.explain(found)
    (('A', 'B'), 'At least 66.7% of the voters put A above each other item in turn, yet A and B tie.')
    """

    axiom: str
    method: str
    items: tuple[Hashable, ...]
    profiles: tuple[Profile, ...]
    outcomes: tuple[Above | None, ...]
    share: float | None = None
    voter: int | None = None
    reason: str = ""

    @property
    def margin(self) -> float | None:
        """Distance of the share from 1/2: the relaxed axiom is violated for every epsilon up to it."""
        return None if self.share is None else abs(self.share - 0.5)

    @property
    def rankings(self) -> tuple[Rankings, ...]:
        """The profiles as ``Rankings``, which every method accepts."""
        return tuple(profile.to_rankings() for profile in self.profiles)

    def __repr__(self) -> str:
        ballots = " and ".join(str(len(p.ballots)) for p in self.profiles)
        return f"Witness({self.axiom} broken by {self.method} for {self.items}, ballots: {ballots})"


Profiles = Rankings | Profile | Iterable[Profile]


def search_inputs(data: Profiles, method: Any) -> tuple[CachedMethod, Iterable[Profile], bool]:
    """Return the method with its cache, the profiles, and whether there is only one profile."""
    rule = method if isinstance(method, CachedMethod) else CachedMethod(method)
    if isinstance(data, Rankings):
        data = Profile.from_rankings(data)
    return (rule, [data], True) if isinstance(data, Profile) else (rule, data, False)


def outcomes(rule: CachedMethod, profiles: Iterable[Profile]) -> Iterator[tuple[Profile, Above]]:
    """Yield each profile that has an outcome, with the outcome; only universality concerns the other profiles."""
    for profile in profiles:
        above = rule.outcome(profile)
        if above is not None:
            yield profile, above
