"""What a result claims: who comes first, who has a place, which are the best k, and where a tier ends."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placet.aggregate.result.result import Consensus
from placet.data.errors import one_of

ClaimGoal = Literal["best", "place", "top", "tiers"]
GOALS: tuple[ClaimGoal, ...] = ("best", "place", "top", "tiers")
ORDINALS = ("first", "second", "third")


@dataclass(frozen=True)
class Claim:
    """One claim of a result about the set ``items``: that they come first ("best"), that they have the rank ``k``
    ("place") or the ranks 1 .. ``k`` ("top"), or that a tier ends below them ("tiers", at confidence ``level``).
    """

    goal: ClaimGoal
    items: frozenset[Hashable]
    k: int = 1
    level: float = 0.95

    def holds(self, result: Consensus) -> bool:
        """Whether a result makes the same claim."""
        if self.goal == "tiers":
            return self.items in _sets_above_borders(result, self.level)
        if self.goal == "place":
            return self.items == _at(result, self.k)
        return self.items == _first(result, 1 if self.goal == "best" else self.k)

    def words(self) -> str:
        """The claim in words, such as "a and b are the best 2"."""
        names = sorted(map(str, self.items))
        if self.goal in ("best", "place"):
            if len(names) > 1:
                return f"{_listing(names)} share {place_name(self.k)}"
            return f"{names[0]} is {ORDINALS[self.k - 1]}" if self.k <= 3 else f"{names[0]} has rank {self.k}"
        if self.goal == "top":
            return f"{_listing(names)} are the best {self.k}" if len(names) > 1 else f"{names[0]} is the best"
        return f"a tier ends below {names[0]}" if len(names) == 1 else f"a tier ends below the best {len(names)}"


def claims_of(result: Consensus, goal: str, k: int, level: float) -> list[Claim]:
    """The claims of a result that belong to a goal; for "tiers" one for every border, from the top."""
    one_of(goal, GOALS, "goal")
    n = len(result.items)
    if goal == "tiers":
        return [Claim("tiers", items, level=level) for items in _sets_above_borders(result, level)]
    if goal in ("top", "place") and not 1 <= k < max(n, 2):
        what = "the best" if goal == "top" else "place"
        raise ValueError(f"{what} {k} of {n} items: give a number in 1..{max(n - 1, 1)}")
    if goal == "place" and k > 1:
        held = _at(result, k)  # nobody's, if more items share a place above it
        return [Claim("place", held, k=k)] if held else []
    if goal == "place":
        return [Claim("best", _first(result, 1))]
    return [
        Claim(
            "best" if goal == "best" else "top",
            _first(result, 1 if goal == "best" else k),
            k=1 if goal == "best" else k,
        )
    ]


def place_name(k: int) -> str:
    """A place in words.

    >>> place_name(3), place_name(12)
    ('the third place', 'rank 12')
    """
    return f"the {ORDINALS[k - 1]} place" if k <= len(ORDINALS) else f"rank {k}"


def _at(result: Consensus, k: int) -> frozenset[Hashable]:
    return frozenset(result.items[number] for number in np.flatnonzero(result.ranks == k))


def _first(result: Consensus, k: int) -> frozenset[Hashable]:
    return frozenset(result.items[number] for number in np.flatnonzero(result.ranks <= k))


def _sets_above_borders(result: Consensus, level: float) -> list[frozenset[Hashable]]:
    """For each border of tiers the items above it, from the top."""
    tier = result.tier_numbers(level)
    return [frozenset(result.items[n] for n in np.flatnonzero(tier <= t)) for t in range(1, int(tier.max(initial=1)))]


def _listing(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
