"""Games: two sides of one or several items, and the points of each side."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data.arrays import Floats, Ints, Names, encode, integers, numbers, offsets_of, set_columns, unique_names
from placet.data.comparisons import control_columns
from placet.data.errors import DataError, one_of
from placet.data.times import time_column

SideScore = Literal["sum", "mean"]


@dataclass(frozen=True, eq=False, repr=False)
class Games:
    """Games as frozen columns; members ``offsets[2 g]:offsets[2 g + 1]`` are the first side of game ``g``, and
    ``offsets[2 g + 1]:offsets[2 g + 2]`` its second.

    ``item`` (members,) holds codes of ``items``, ``share`` (members,) how much of an item's score counts for its side:
    the score of a side is the sum of ``share`` times the scores of its items.  ``points`` (games, 2) of both sides;
    ``weight`` (games,) is how often a game counts.  ``time`` (games,) holds dates or numbers, ``control`` (games, k)
    numbers that may have helped the first side (1 if it played at home), and ``controls`` their names.

    >>> Games.from_results(["x", "y"], ["y", ("x", "z")], [2, 0], [1, 0])
    Games(2 games, 3 items, sides of up to 2)
    """

    item: Ints
    share: Floats
    offsets: Ints
    points: Floats
    weight: Floats
    items: Names
    time: NDArray[Any] | None = None
    control: Floats | None = None
    controls: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        item, share = integers(self.item, "item"), numbers(self.share, "share")
        offsets = offsets_of(self.offsets, len(item))
        points = np.array(self.points, np.float64).reshape(-1, 2)
        weight = numbers(self.weight, "weight", positive=True, unit="game")
        items, n = unique_names(self.items, "item"), len(points)
        if len(offsets) != 2 * n + 1 or len(weight) != n or len(share) != len(item):
            raise DataError(f"{n} games need {2 * n + 1} offsets and {n} weights, and each member a share")
        if not np.isfinite(points).all():
            row = int(np.argmax(~np.isfinite(points).all(axis=1)))
            raise DataError(f"game {row}: points {points[row].tolist()} are not two finite numbers; leave it out")
        if len(item) and not 0 <= item.min() <= item.max() < len(items):
            raise DataError(f"an item is not in 0..{len(items) - 1}")
        empty = np.flatnonzero(np.diff(offsets) == 0)
        if len(empty):
            raise DataError(f"game {empty[0] // 2}: a side has no items ({len(empty)} such sides); leave it out")
        game = np.repeat(np.arange(2 * n) // 2, np.diff(offsets))
        pairs = np.sort(game * len(items) + item)
        twice = pairs[:-1][pairs[1:] == pairs[:-1]]
        if len(twice):
            name = items[int(twice[0] % len(items))]
            raise DataError(f"game {twice[0] // len(items)}: {name!r} is in it more than once; correct it")
        control, controls = control_columns(self.control, self.controls, n)
        time = None if self.time is None else time_column(self.time, n)
        columns = {"item": item, "share": share, "offsets": offsets, "points": points, "weight": weight, "time": time}
        set_columns(self, **columns, items=items, control=control, controls=controls)

    def __setstate__(self, state: dict[str, Any]) -> None:
        set_columns(self, **state)  # unpickled arrays are writable

    @classmethod
    def from_results(
        cls,
        a: Sequence[Any],
        b: Sequence[Any],
        points_a: ArrayLike,
        points_b: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        time: Any = None,
        control: Any = None,
        items: Sequence[Hashable] | None = None,
        side: SideScore = "sum",
        notes: tuple[str, ...] = (),
    ) -> "Games":
        """Build games from their sides and points.

        A side is a name, a tuple or list of names, or a mapping of names to shares.  ``side``: the score of a side is
        the "sum" of those of its items, or their "mean" (weighted by the shares, if there are any).

        Returns
        -------
        Games
            A game for each row.

        >>> Games.from_results([("Ann", "Bob")], [{"Cid": 2, "Dan": 1}], [6], [3], side="mean").share.round(2)
        array([0.5 , 0.5 , 0.67, 0.33])
        """
        one_of(side, get_args(SideScore), "side")
        lengths = {"a": len(a), "b": len(b), "points_a": np.size(points_a), "points_b": np.size(points_b)}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns differ in length: {', '.join(f'{k} {v}' for k, v in lengths.items())}")
        sides = [_members(one) for pair in zip(a, b) for one in pair]
        code, names = encode([name for one in sides for name in one], "item", items)
        sizes = [len(one) for one in sides]
        share = np.array([value for one in sides for value in one.values()], np.float64)
        offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
        if side == "mean" and len(share):
            share = share / np.repeat(np.add.reduceat(share, offsets[:-1]), sizes)
        points = np.column_stack([numbers(points_a, "points_a"), numbers(points_b, "points_b")])
        heavy = np.ones(len(a)) if weight is None else weight
        return cls(code, share, offsets, points, heavy, names, time, control, None, notes)  # type: ignore[arg-type]

    @cached_property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def margin(self) -> Floats:
        """Points (games,) of the first side minus those of the second."""
        return self.points[:, 0] - self.points[:, 1]

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        most = int(np.diff(self.offsets).max(initial=0))
        return f"Games({len(self)} games, {self.n_items} items{f', sides of up to {most}' if most > 1 else ''})"

    def describe(self) -> dict[str, Any]:
        """Counts, draws, the size of sides, and the time of the games.  O(members).

        Returns
        -------
        dict
            Fact -> value.

        >>> Games.from_results(["Ann"], ["Bob"], [6], [3]).describe()["games"]
        1.0
        """
        seen = np.bincount(self.item, minlength=self.n_items) > 0
        return {
            "kind": "games",
            "items": self.n_items,
            "games": float(self.weight.sum()),
            "draws": float(self.weight[self.margin == 0].sum()),
            "items of a side, at most": int(np.diff(self.offsets).max(initial=0)),
            "items without games": int((~seen).sum()),
            "controls": None if self.controls is None else ", ".join(self.controls),
            "first date": None if self.time is None or not len(self) else str(self.time.min()),
            "last date": None if self.time is None or not len(self) else str(self.time.max()),
        }

    def __getitem__(self, which: Any) -> "Games":
        """The selected games (slice, mask or indices)."""
        games = np.atleast_1d(np.arange(len(self))[which])
        sides = np.column_stack([2 * games, 2 * games + 1]).ravel()
        size = np.diff(self.offsets)[sides]
        offsets = np.append(0, np.cumsum(size))
        rows = np.repeat(self.offsets[sides] - offsets[:-1], size) + np.arange(offsets[-1])
        time, control = (None if column is None else column[games] for column in (self.time, self.control))
        columns = (self.item[rows], self.share[rows], offsets, self.points[games], self.weight[games])
        return Games(*columns, self.items, time, control, self.controls)


def _members(side: Any) -> dict[Hashable, float]:
    """The items of a side with their shares."""
    if isinstance(side, Mapping):
        return {name: float(share) for name, share in side.items()}
    names = list(side) if isinstance(side, tuple | list | set | frozenset) else [side]
    if len(set(names)) < len(names):
        raise DataError(f"a side names an item more than once: {names}; correct it")
    return dict.fromkeys(names, 1.0)
