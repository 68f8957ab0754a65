"""Monotonicity constraints: how the score may change with each feature."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placet.data.arrays import Ints
from placet.data.errors import one_of


def directions(monotone: Mapping[str, int] | Sequence[int] | None, names: Sequence[Any] | None, n: int) -> Ints:
    """(features,) 1, -1 or 0: whether the score may only rise, only fall, or do either, with each feature.

    ``monotone`` lists all directions, or maps feature names (or column numbers, as text) to those that are not 0.
    """
    given: dict[int, Any] = {}
    if isinstance(monotone, Mapping):
        columns = {str(name): k for k, name in enumerate(range(n) if names is None else names)}
        for name, sign in monotone.items():
            given[columns[one_of(str(name), columns, "monotone feature")]] = sign
    elif monotone is not None:
        if isinstance(monotone, str) or not np.iterable(monotone):
            raise ValueError(
                f"monotone is {monotone!r}; give 1, -1 or 0 for each of {n} features, or map names to directions"
            )
        if len(monotone) != n:
            raise ValueError(f"monotone has {len(monotone)} entries; there are {n} features")
        given = dict(enumerate(monotone))
    wrong = [sign for sign in given.values() if sign not in (-1, 0, 1)]
    if wrong:
        raise ValueError(f"monotone holds {wrong[0]}; give 1 (rising), -1 (falling) or 0 for each feature")
    out = np.zeros(n, np.int64)
    out[list(given)] = list(given.values())
    return out


def directions_from_text(text: str) -> dict[str, Any] | tuple[Any, ...]:
    """Directions as they are written in a command: one for each feature, or those of some features by name.

    >>> directions_from_text("1,0,-1"), directions_from_text("price:-1, stars:1")
    ((1, 0, -1), {'price': -1, 'stars': 1})
    """
    signs = {"1": 1, "+1": 1, "-1": -1, "0": 0}  # anything else is refused by ``directions``, in words
    parts = [part.strip() for part in text.split(",")]
    if not any(":" in part for part in parts):
        return tuple(signs.get(part, part) for part in parts)
    pairs = [part.rpartition(":") for part in parts]
    if not all(colon for _, colon, _ in pairs):
        raise ValueError(f"monotone={text}: give name:direction for every feature named, or 1, -1 or 0 for all of them")
    return {name.strip(): signs.get(sign.strip(), sign.strip()) for name, _, sign in pairs}
