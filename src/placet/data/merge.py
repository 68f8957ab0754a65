"""Data from several files as one: names are matched, whatever their order in each."""

from collections.abc import Hashable, Sequence
from typing import Any, cast, overload

import numpy as np

from placet.data.arrays import Ints, Names
from placet.data.comparisons import Comparisons
from placet.data.errors import DataError
from placet.data.rankings import Rankings


@overload
def concat(parts: Sequence[Rankings]) -> Rankings: ...
@overload
def concat(parts: Sequence[Comparisons]) -> Comparisons: ...
@overload
def concat(parts: Sequence[Rankings | Comparisons]) -> Rankings | Comparisons: ...
def concat(parts: Sequence[Rankings] | Sequence[Comparisons] | Sequence[Rankings | Comparisons]) -> Any:
    """All ballots, or all votes, of the parts; items, agents and instances of the same name are the same.

    Names come in order of first appearance.  Either all parts name agents (or instances) or none does.  Scores of
    ballots are kept where all parts have them.  O(rows).

    >>> one, two = Rankings.from_orders([["a", "b"]]), Rankings.from_orders([["b", "c", "a"]])
    >>> concat([one, two]).orders()
    [['a', 'b'], ['b', 'c', 'a']]
    """
    if not parts:
        raise ValueError("there is nothing to concatenate; give at least one part")
    kinds = {type(part).__name__ for part in parts}
    if len(kinds) > 1 or not isinstance(parts[0], Rankings | Comparisons):
        raise TypeError(f"parts must be all Rankings or all Comparisons, not {sorted(kinds)}")
    if isinstance(parts[0], Comparisons):
        return _votes(cast(Sequence[Comparisons], parts))
    return _ballots(cast(Sequence[Rankings], parts))


def _ballots(parts: Sequence[Rankings]) -> Rankings:
    items, codes = _merged([part.items for part in parts])
    agents, agent = _labels(parts, "agent")
    instances, instance = _labels(parts, "instance")
    starts = np.cumsum([0, *(len(part.item) for part in parts)])
    scored = all(part.score is not None for part in parts)
    return Rankings(
        np.concatenate([code[part.item] for code, part in zip(codes, parts)]),
        np.concatenate([part.tier for part in parts]),
        np.concatenate([np.zeros(1, np.int64), *(part.offsets[1:] + at for part, at in zip(parts, starts))]),
        np.concatenate([part.weight for part in parts]),
        agent,
        instance,
        items,
        agents,
        instances,
        np.concatenate([part.score for part in parts]) if scored else None,
    )


def _votes(parts: Sequence[Comparisons]) -> Comparisons:
    if len({part.ordered for part in parts}) > 1:
        raise DataError("some parts say which item came first and others do not; read all with the same option")
    items, codes = _merged([part.items for part in parts])
    agents, agent = _labels(parts, "agent")
    return Comparisons(
        np.concatenate([code[part.i] for code, part in zip(codes, parts)]),
        np.concatenate([code[part.j] for code, part in zip(codes, parts)]),
        np.concatenate([part.wins_i for part in parts]),
        np.concatenate([part.wins_j for part in parts]),
        np.concatenate([part.ties for part in parts]),
        agent,
        items,
        agents,
        parts[0].ordered,
    )


def _merged(names: Sequence[Names]) -> tuple[Names, list[Ints]]:
    """All names in order of first appearance, and the new codes of the names of each part."""
    index: dict[Hashable, int] = {}
    codes = [np.array([index.setdefault(name, len(index)) for name in own], np.int64) for own in names]
    return tuple(index), codes


def _labels(parts: Sequence[Rankings] | Sequence[Comparisons], what: str) -> tuple[Names | None, Ints | None]:
    """Names and codes of the parts' agents or instances; ``None`` where no part has any."""
    columns = [getattr(part, what) for part in parts]
    if all(column is None for column in columns):
        return None, None
    if any(column is None for column in columns):
        missing = sum(column is None for column in columns)
        raise DataError(f"{missing} of {len(parts)} parts have no {what}, and the others do; name it in all or in none")
    names, codes = _merged([getattr(part, what + "s") for part in parts])
    return names, np.concatenate([code[column] for code, column in zip(codes, columns)])
