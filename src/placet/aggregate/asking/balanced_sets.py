"""Which items to show together: every item equally often, and every two items together as evenly as possible."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from random import Random

ATTEMPTS = 20
"""How often a set that was shown before is drawn anew before the first other one is taken."""

Set = tuple[int, ...]


class SetCounts:
    """How often each item, and each pair of items, was shown."""

    def __init__(self, sets: Iterable[Sequence[int]] = ()) -> None:
        self.items: Counter[int] = Counter()
        self.pairs: Counter[Set] = Counter()
        for shown in sets:
            self.add(shown)

    def add(self, shown: Sequence[int]) -> None:
        """Count a set."""
        self.items.update(shown)
        self.pairs.update(combinations(sorted(shown), 2))

    def together(self, item: int, others: Iterable[int]) -> int:
        """How often an item was shown with these others, in all."""
        return sum(self.pairs[min(item, other), max(item, other)] for other in others)


def next_set(
    n_items: int, size: int, own: SetCounts, everyone: SetCounts, rng: Random, seen: Collection[Set] = ()
) -> Set | None:
    """The next items to show a person, in random order; None if the person has seen every set.

    Items that the person was shown least often come first; of these, those that the person least often saw together
    with the items already chosen, then those shown least often, alone and together, to everyone.  So the numbers of
    times that a person was shown two items differ by at most one at any time, unless few items make sets repeat
    (``seen``: sorted sets that may not come again).  O(size^2 items).

    >>> counts, rng = SetCounts(), Random(0)
    >>> for _ in range(3):
    ...     counts.add(next_set(6, 4, counts, counts, rng))
    >>> sorted(counts.items.values())
    [2, 2, 2, 2, 2, 2]
    """
    if len(seen) >= math.comb(n_items, size):
        return None
    for _ in range(ATTEMPTS):
        chosen: list[int] = []
        for _ in range(size):
            left = [item for item in range(n_items) if item not in chosen]
            chosen.append(
                min(left, key=lambda k: (own.items[k], own.together(k, chosen), everyone.items[k],
                                         everyone.together(k, chosen), rng.random()))
            )  # fmt: skip
        if tuple(sorted(chosen)) not in seen:
            break
    else:
        chosen = list(next(one for one in combinations(range(n_items), size) if one not in seen))
    rng.shuffle(chosen)
    return tuple(chosen)
