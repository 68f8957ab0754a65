"""Questions about a goal, such as which item is the best, and their answers: what is settled, and what is not."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from placet.data.errors import one_of
from placet.io.text import plural

GOALS = ("best", "top", "order", "tiers", "above")
NUMBERED = ("top", "tiers")
"""Goals that have a number: how many items, how many tiers."""

LOOKS = ("any", "once")
Look = Literal["any", "once"]

HOPELESS = 1_000_000
"""Votes beyond which items count as too close to tell apart."""


@dataclass(frozen=True)
class Goal:
    """A goal, its number ``k``, and the numbers of the ``items`` it names, with the ``level`` and the ``margin``."""

    name: str
    k: int = 1
    items: tuple[int, ...] = ()
    level: float = 0.95
    margin: float = 0.0

    @property
    def text(self) -> str:
        return f"{self.name}:{self.k}" if self.name in NUMBERED else self.name


def ask_question(
    number: Mapping[Hashable, int], goal: str, k: int | None, item: Any, level: float, margin: float
) -> Goal:
    """The question, checked; ``number`` are the numbers of all items by name, and ``goal`` may be "top:3"."""
    word, _, count = goal.partition(":")
    name, n = one_of(word, GOALS, "goal"), len(number)
    if ":" in goal:
        if k is not None or name not in NUMBERED or not count.isdecimal():
            raise ValueError(f"goal {goal!r} is not understood; 'top:3' and 'tiers:3' are goals with a number")
        k = int(count)
    k = k if k is not None else 2 if name == "tiers" else 1
    if name in NUMBERED and not 1 <= k <= n:
        raise ValueError(f"k must be in 1..{n}, the number of items, not {k}")
    if not 0 <= margin < np.inf:
        raise ValueError(f"margin must be a difference in log odds, 0 or more, not {margin}")
    named = _items_of(number, name, item)
    missing = next((one for one in named if one not in number), None)
    if missing is not None:
        raise ValueError(f"item {missing!r} is not among the {n} items")
    return Goal(name, k, tuple(number[one] for one in named), level, float(margin))


def _items_of(number: Mapping[Hashable, int], goal: str, item: Any) -> tuple[Hashable, ...]:
    """The items that a question names: none, one, or two."""
    if goal == "above" and item is None:
        raise ValueError("the goal 'above' needs item=(a, b), or one item whose place is wanted")
    is_pair = isinstance(item, list) or (isinstance(item, tuple) and item not in number)
    if goal != "above" or not is_pair:
        return () if item is None else (item,)
    if len(item) != 2 or item[0] == item[1]:
        raise ValueError(f"item must be two different items, or one, not {item!r}")
    return tuple(item)


@dataclass(frozen=True, repr=False)
class GoalVerdict:
    """Whether the votes are enough for a goal; true in a condition if they are.

    ``answer`` is what is asked for, once it is known: the best item, the items of the top, of the order, the tiers, or
    the higher of two items.  ``settled`` says in words what is known so far; ``open`` are the pairs that still have to
    be settled, each with about how many votes that takes (None: not known, or too close to tell).  ``look`` is "any" if
    the verdict holds at every look, and "once" if it is the fixed-sample answer.
    """

    goal: str
    level: float
    look: str
    reached: bool
    answer: Any = None
    settled: tuple[str, ...] = ()
    open: tuple[tuple[Hashable, Hashable, int | None], ...] = field(default=())

    def __repr__(self) -> str:
        return f"GoalVerdict({self.goal}: {'enough' if self.reached else 'not enough'}, look={self.look!r})"

    def __bool__(self) -> bool:
        return self.reached

    @property
    def missing(self) -> int | None:
        """About how many votes are missing, if the open pairs are asked about; None if nobody can say."""
        votes = [count for *_, count in self.open if count is not None]
        return sum(votes) if len(votes) == len(self.open) else None

    def to_dict(self) -> dict[str, Any]:
        """What the verdict says, for JSON."""
        about = {"goal": self.goal, "level": self.level, "look": self.look, "reached": self.reached}
        pairs = [{"high": high, "low": low, "votes": votes} for high, low, votes in self.open]
        return about | {"answer": self.answer, "settled": list(self.settled), "open": pairs, "missing": self.missing}

    def __str__(self) -> str:
        when = "at every look" if self.look == "any" else "for a fixed amount of data"
        lines = [f"{self.goal}: {'enough' if self.reached else 'not enough'} ({self.level:.0%} {when})", *self.settled]
        if self.open:
            lines.append(f"{plural(len(self.open), 'pair')} open{self._missing_words()}")
        return "\n".join(lines)

    def _missing_words(self) -> str:
        if self.missing is not None:
            return f", about {plural(self.missing, 'vote')} missing"
        return ", too close to tell how many votes are missing" if self.look == "any" else ""


class SourcePair(NamedTuple):
    """``votes`` that a source is to be asked for about two items, the one that is higher so far first."""

    source: Hashable
    high: Hashable
    low: Hashable
    votes: int


class VotesBehind(Protocol):
    """The votes behind a board, as `placet.aggregate.asking` counts them."""

    def verdict(self, board: Any, question: Goal) -> GoalVerdict:
        """Whether the votes are enough, at any look."""

    def next_pairs(self, board: Any, question: Goal, n: int, each: int) -> list[tuple[int, int]]:
        """The numbers of the items of the next ``n`` pairs."""

    def next_sets(self, board: Any, question: Goal, n: int, size: int) -> list[tuple[int, ...]]:
        """The numbers of the items of the next ``n`` sets."""

    def split(self, board: Any, question: Goal, budget: float, cost: Mapping[Hashable, float]) -> list[SourcePair]:
        """The votes to ask each source for within a budget."""

    def renamed(self, names: Mapping[Hashable, Hashable]) -> "VotesBehind":
        """The same votes with other names of the items."""
