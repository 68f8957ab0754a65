"""Ballots: ordered partitions of items, with ties, absences, weights, voters and instances."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import breaking
from placet.data.arrays import (
    Floats,
    Ints,
    Lists,
    Names,
    column,
    dense_tiers,
    encode,
    frozen,
    integers,
    list_of_rows,
    numbers,
    offsets_from_sizes,
    offsets_of,
    recode,
    refuse_masked_or_complex,
    rows_of,
    same_columns,
    set_columns,
    smallest_type,
    table,
    unique_names,
)
from placet.data.comparisons import Comparisons, control_columns
from placet.data.errors import DataError, one_of
from placet.data.memory import refuse_table

Unlisted = Literal["absent", "last"]
Ballot = list[tuple[Hashable, ...]]
ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """Ballots as frozen columns; rows ``offsets[b]:offsets[b + 1]`` are ballot ``b``.

    ``item`` (rows,) holds int32 codes of ``items``; ``tier`` (rows,), of the smallest signed type that fits, is 0 for
    the best, and equal tiers tie.  Rows of a ballot are sorted by tier, then item, and tiers are renumbered 0, 1, ...
    ``weight`` (ballots,) is how often a ballot counts.
    ``agent`` and ``instance`` (ballots,) are optional codes of ``agents`` (voters) and ``instances`` (problems).
    ``score`` (rows,) optionally keeps the numbers behind the tiers, higher is better.
    ``control`` (rows, k) optionally holds numbers that may have helped a row (such as the position at which it was
    shown), and ``controls`` their names.  An item that is absent from a ballot was not compared on it.  ``notes`` are
    sentences about how the data were read.

    >>> r = Rankings.from_orders([["a", ("b", "c"), "d"], ["d", "a"]], weight=[2, 1])
    >>> r
    Rankings(2 ballots, 4 items, 6 rows)
    >>> r[0]
    [('a',), ('b', 'c'), ('d',)]
    """

    item: Ints
    tier: Ints
    offsets: Ints
    weight: Floats = None  # type: ignore[assignment]  # ones
    agent: Ints | None = None
    instance: Ints | None = None
    items: Names = None  # type: ignore[assignment]  # 0, 1, ...
    agents: Names | None = None
    instances: Names | None = None
    score: Floats | None = None
    notes: tuple[str, ...] = ()
    control: Floats | None = None
    controls: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        item = integers(self.item, "item", np.int32)
        narrow = isinstance(self.tier, np.ndarray) and self.tier.dtype.kind == "i"
        tier = integers(self.tier, "tier", self.tier.dtype if narrow else np.int64)
        offsets = offsets_of(self.offsets, len(item))
        n = len(offsets) - 1
        weight = numbers(np.ones(n) if self.weight is None else self.weight, "weight", positive=True, unit="ballot")
        items = unique_names(range(int(item.max(initial=-1)) + 1) if self.items is None else self.items, "item")
        score = None if self.score is None else numbers(self.score, "score")
        for name, values, size in (("tier", tier, len(item)), ("weight", weight, n), ("score", score, len(item))):
            if values is not None and len(values) != size:
                raise DataError(f"{name} has {len(values)} entries; {size} are needed")
        if len(item) and not 0 <= item.min() <= item.max() < len(items):
            outside = (item < 0) | (item >= len(items))
            k = int(np.argmax(outside))
            raise DataError(f"row {k}: item {item[k]} is not in 0..{len(items) - 1} ({outside.sum()} such rows)")
        agent, instance = _codes(self.agent, "agent", n), _codes(self.instance, "instance", n)
        control, controls = control_columns(self.control, self.controls, len(item))
        if control is not None:
            control = control[np.lexsort((item, tier, list_of_rows(offsets)))]
        item, tier, score = _put_in_order(item, tier, score, offsets, items)
        set_columns(
            self,
            item=item,
            tier=tier,
            offsets=offsets,
            weight=weight,
            agent=agent,
            instance=instance,
            items=items,
            agents=_names(self.agents, agent, "agent"),
            instances=_names(self.instances, instance, "instance"),
            score=score,
            control=control,
            controls=controls,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        set_columns(self, **state)  # unpickled arrays are writable

    # Constructors

    @classmethod
    def from_orders(
        cls,
        orders: Iterable[Sequence[Any]],
        items: Sequence[Hashable] | None = None,
        weight: ArrayLike | None = None,
        agent: Sequence[Hashable] | None = None,
        instance: Sequence[Hashable] | None = None,
        unlisted: Unlisted = "absent",
    ) -> "Rankings":
        """Build ballots from sequences, best first; a tuple, list or set inside a ballot is a tie.

        ``unlisted="last"`` puts the items that a ballot leaves out in one last tier.

        >>> Rankings.from_orders([["a", ("b", "c")], ["c"]], unlisted="last")[1]
        [('c',), ('a', 'b')]
        """
        names: list[Hashable] = []
        tiers: list[int] = []
        sizes: list[int] = []
        for b, order in enumerate(orders):
            if isinstance(order, str | bytes):
                raise DataError(
                    f"ballot {b}: {order!r} is one name; a ballot is a sequence of names, such as [{order!r}]"
                )
            before = len(names)
            for t, entry in enumerate(order):
                group = sorted(entry, key=str) if isinstance(entry, set | frozenset) else entry
                group = group if isinstance(group, tuple | list) else (group,)
                names.extend(group)
                tiers.extend([t] * len(group))
            sizes.append(len(names) - before)
        code, items = encode(names, "item", items)
        result = cls.from_codes(code, tiers, offsets_from_sizes(sizes), items, weight, agent, instance)
        one_of(unlisted, ("absent", "last"), "unlisted")
        return result.completed() if unlisted == "last" else result

    @classmethod
    def from_codes(
        cls,
        item: ArrayLike,
        tier: ArrayLike,
        offsets: ArrayLike,
        items: Sequence[Hashable],
        weight: ArrayLike | None = None,
        agent: Sequence[Hashable] | None = None,
        instance: Sequence[Hashable] | None = None,
        score: ArrayLike | None = None,
    ) -> "Rankings":
        """Build ballots from items that are already codes, and agents and instances that are names."""
        code: dict[str, Any] = {}
        for what, values in (("agent", agent), ("instance", instance)):
            if values is not None:
                code[what], code[what + "s"] = encode(values, what, unit="ballot")
        return cls(item, tier, offsets, weight, items=items, score=score, **code)  # type: ignore[arg-type]

    @classmethod
    def from_scores(
        cls,
        frame: Any,
        *,
        ballot: str,
        item: str,
        score: str,
        items: Sequence[Hashable] | None = None,
        control: Sequence[str] = (),
    ) -> "Rankings":
        """Build one ballot per value of the column ``ballot``, with items by descending ``score``; equal scores tie.

        ``frame`` is a mapping of columns or any data frame.  The ballot's name becomes its agent; scores are kept.
        ``control``: numeric columns that may have helped a row.

        >>> ratings = {"user": [7, 7, 7], "film": ["a", "b", "c"], "stars": [3, 5, 3]}
        >>> Rankings.from_scores(ratings, ballot="user", item="film", score="stars")[0]
        [('b',), ('a', 'c')]
        """
        values = numbers(column(frame, score), score)
        code, names = encode(column(frame, item), item, items)
        voter, voters = encode(column(frame, ballot), ballot)
        if not len(code) == len(voter) == len(values):
            raise DataError(
                f"columns differ in length: {ballot} {len(voter)}, {item} {len(code)}, {score} {len(values)}"
            )
        beside = {
            name: numbers(column(frame, name), name) for name in ([control] if isinstance(control, str) else control)
        }
        return cls.from_coded_scores((voter, voters), (code, names), values, names, control=beside or None)

    @classmethod
    def from_coded_scores(
        cls,
        ballot: tuple[Ints, Sequence[Hashable]],
        item: tuple[Ints, Sequence[Hashable]],
        score: Floats,
        items: Sequence[Hashable] | None = None,
        notes: tuple[str, ...] = (),
        control: Any = None,
    ) -> "Rankings":
        """``from_scores`` for ballots and items that are given as codes and names."""
        voter, voters = recode(*ballot, "agent", dtype=np.int32)
        code, names = recode(*item, "item", items, dtype=np.int32)
        order = np.lexsort((-score, voter))
        offsets = offsets_from_sizes(np.bincount(voter, minlength=len(voters)))
        tier = dense_tiers(-score[order], offsets)
        agent = np.arange(len(voters))
        values, columns = control_columns(control, None, len(score))
        beside: dict[str, Any] = {} if values is None else {"control": values[order], "controls": columns}
        known: dict[str, Any] = {"items": names, "agents": voters, "notes": notes, **beside}
        return cls(code[order], tier, offsets, agent=agent, score=score[order], **known)

    @classmethod
    def from_ranks(cls, matrix: Any, items: Sequence[Hashable] | None = None) -> "Rankings":
        """Build ballots (rows) over items (columns) from ranks, lower is better; NaN is absent and equal ranks tie.

        The items of a data frame are its columns.

        >>> list(Rankings.from_ranks([[1, 2, 2], [float("nan"), 2, 1]], items="abc"))
        [[('a',), ('b', 'c')], [('c',), ('b',)]]
        """
        matrix, columns = table(matrix)
        refuse_masked_or_complex(matrix)
        try:
            ranks = np.asarray(matrix, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"ranks must be numbers, absent ones NaN: {error}") from None
        items = columns if items is None else items
        if ranks.ndim != 2:
            raise DataError(f"ranks must be a table of ballots x items, not of shape {ranks.shape}")
        if np.isinf(ranks).any():
            b, k = np.argwhere(np.isinf(ranks))[0]
            raise DataError(f"ballot {b}, column {k}: rank {ranks[b, k]} ({np.isinf(ranks).sum()} such); absent is NaN")
        listed = ~np.isnan(ranks)
        ballot, item = np.nonzero(listed)
        rank = ranks[listed]
        order = np.lexsort((rank, ballot))
        offsets = offsets_from_sizes(listed.sum(axis=1))
        names = range(ranks.shape[1]) if items is None else items
        if len(names) != ranks.shape[1]:
            raise DataError(f"{len(names)} item names for {ranks.shape[1]} columns")
        return cls(item[order], dense_tiers(rank[order], offsets), offsets, items=tuple(names), score=-rank[order])

    @classmethod
    def from_preferences(
        cls, frame: Any, *, ballot: str, better: str, worse: str, items: Sequence[Hashable] | None = None
    ) -> "Rankings":
        """Convert arbitrary pairwise preferences of each ballot into its finest consistent ordered partition.

        This is generalized rank breaking: items of an earlier tier are preferred, directly or through others, to all
        items of a later one; preferences within a tier are lost.  A cycle is an error that shows it.

        >>> pairs = {"who": [1, 1, 1], "over": ["a", "a", "b"], "under": ["b", "c", "d"]}
        >>> Rankings.from_preferences(pairs, ballot="who", better="over", worse="under")[0]
        [('a',), ('b', 'c', 'd')]
        """
        over, under = list(column(frame, better)), list(column(frame, worse))
        code, names = encode([*over, *under], "item", items)
        voter, voters = encode(column(frame, ballot), ballot)
        if not len(over) == len(under) == len(voter):
            raise DataError(
                f"columns differ in length: {ballot} {len(voter)}, {better} {len(over)}, {worse} {len(under)}"
            )
        item: list[int] = []
        tier: list[int] = []
        sizes = [0] * len(voters)
        better_code, worse_code = code[: len(over)], code[len(over) :]
        place = lambda v: f"{ballot} {voters[v]!r}"  # noqa: E731
        for v, found in breaking.partitions(voter, better_code, worse_code, names, place):
            for k, group in enumerate(found):
                item += group
                tier += [k] * len(group)
            sizes[v] = sum(map(len, found))
        return cls(
            np.array(item, np.int64),
            np.array(tier, np.int64),
            offsets_from_sizes(sizes),
            agent=np.arange(len(voters)),
            items=names,
            agents=voters,
        )

    @classmethod
    def from_comparisons(cls, comparisons: Comparisons) -> "Rankings":
        """Convert each row of comparisons into up to three weighted ballots: i over j, j over i, and a tie.

        The controls of a vote go to the row of i; the row of j has 0.
        """
        c = comparisons
        pair = np.stack([c.i, c.j], axis=1)
        item = np.concatenate([pair, pair[:, ::-1], pair])
        tier = np.repeat([[0, 1], [0, 1], [0, 0]], len(c), axis=0)
        weight = np.concatenate([c.wins_i, c.wins_j, c.ties])
        keep = weight > 0
        agent = None if c.agent is None else np.tile(c.agent, 3)[keep]
        offsets = np.arange(0, 2 * keep.sum() + 1, 2)
        known: dict[str, Any] = {"items": c.items, "agents": c.agents}
        if c.control is not None:
            beside = np.stack([c.control, np.zeros_like(c.control)], axis=1)
            control = np.concatenate([beside, beside[:, ::-1], beside])[keep]
            known |= {"control": control.reshape(-1, control.shape[2]), "controls": c.controls}
        return cls(item[keep].ravel(), tier[keep].ravel(), offsets, weight[keep], agent, **known)

    # Views

    @cached_property
    def n_items(self) -> int:
        return len(self.items)

    @cached_property
    def index(self) -> dict[Hashable, int]:
        """Mapping from item names to codes."""
        return {name: k for k, name in enumerate(self.items)}

    @cached_property
    def ballot(self) -> Ints:
        """The ballot number of every row."""
        return frozen(list_of_rows(self.offsets), np.int64)

    def lists(self) -> Lists:
        """Grades (minus the tiers), offsets and weights, for losses."""
        return Lists(-self.tier.astype(np.float64), self.offsets, self.weight)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        extra = f", {len(self.instances)} instances" if self.instances is not None else ""
        return f"Rankings({len(self)} ballots, {self.n_items} items, {len(self.item)} rows{extra})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rankings):
            return NotImplemented
        return same_columns(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Ballot]:
        return (self[b] for b in range(len(self)))

    @overload
    def __getitem__(self, which: int) -> Ballot: ...
    @overload
    def __getitem__(self, which: slice | NDArray[Any] | Sequence[int]) -> "Rankings": ...
    def __getitem__(self, which: Any) -> "Ballot | Rankings":
        """One ballot as its tiers of names, or the selected ballots (slice, mask or indices) as ``Rankings``."""
        if isinstance(which, int | np.integer):
            b = range(len(self))[which]
            a, z = self.offsets[b], self.offsets[b + 1]
            tiers: Ballot = [()] * (int(self.tier[z - 1]) + 1 if z > a else 0)
            for r in range(a, z):
                tiers[self.tier[r]] += (self.items[self.item[r]],)
            return tiers
        ballots = np.arange(len(self))[which]
        rows, offsets = rows_of(self.offsets, ballots)
        return Rankings(
            self.item[rows],
            self.tier[rows],
            offsets,
            self.weight[ballots],
            None if self.agent is None else self.agent[ballots],
            None if self.instance is None else self.instance[ballots],
            self.items,
            self.agents,
            self.instances,
            None if self.score is None else self.score[rows],
            control=None if self.control is None else self.control[rows],
            controls=self.controls,
        )

    def __add__(self, other: "Rankings") -> "Rankings":
        """Concatenate the two, matching items by name; ``concat`` accepts more than two."""
        from placet.data.concatenation import concat

        return concat([self, other]) if isinstance(other, Rankings) else NotImplemented

    def orders(self) -> list[list[Any]]:
        """Ballots in the form that ``from_orders`` accepts: single names, and tuples for ties."""
        return [[tier[0] if len(tier) == 1 else tier for tier in ballot] for ballot in self]

    def by_instance(self) -> Iterator[tuple[Hashable, "Rankings"]]:
        """Iterate over (instance, its ballots); the instance is ``None`` if there are no instances."""
        return self._by(self.instance, self.instances)

    def by_agent(self) -> Iterator[tuple[Hashable, "Rankings"]]:
        """Iterate over (agent, its ballots); the agent is ``None`` if there are no agents."""
        return self._by(self.agent, self.agents)

    def _by(self, code: Ints | None, names: Names | None) -> Iterator[tuple[Hashable, "Rankings"]]:
        if code is None or names is None:
            yield None, self
            return
        order = np.argsort(code, kind="stable")
        bounds = np.searchsorted(code[order], np.arange(len(names) + 1))
        for k, name in enumerate(names):
            yield name, self[order[bounds[k] : bounds[k + 1]]]

    def describe(self) -> dict[str, Any]:
        """Counts, ties, coverage, connectivity of the "beats" graph, and ballots that compare nothing.  O(rows)."""
        return breaking.describe_rankings(self.item, self.tier, self.offsets, self.weight, self.n_items) | {
            "agents": None if self.agents is None else len(self.agents),
            "instances": None if self.instances is None else len(self.instances),
        }

    # Conversions

    def heads_note(self) -> tuple[str, ...]:
        """A note if the ballots may be the top of longer lists: all of one length, with at most half of the items, and
        not always the same ones.  Pairs are votes, not tops of lists.

        >>> data = Rankings.from_orders([["a", "b", "c"], ["d", "e", "f"]])
        >>> data.heads_note()[0][:64], data.completed().heads_note()
        ('each of the 2 ballots ranks 3 of 6 items, not always the same on', ())
        """
        sizes = np.diff(self.offsets)
        k = int(sizes[0]) if len(sizes) else 0
        few = k == 1 or k >= 3
        if len(sizes) < 2 or not few or 2 * k > self.n_items or (sizes != k).any():
            return ()
        if self.instance is not None or np.count_nonzero(np.bincount(self.item, minlength=self.n_items)) <= k:
            return ()
        return (
            f"each of the {len(self):,} ballots ranks {k} of {self.n_items:,} items, not always the same ones; an item "
            'that a ballot leaves out counts as not compared on it (unlisted="absent"). If these are the best of all, '
            'the others belong in one last place, which may change the order much: read with unlisted="last", or use '
            "data.completed()",
        )

    def completed(self) -> "Rankings":
        """The same ballots with every unlisted item in one last tier; scores are not kept."""
        if self.control is not None:
            raise DataError("unlisted items have no controls; keep them absent, or list them with their controls")
        if len(self) * self.n_items >= 2**31:
            raise DataError(
                f"{len(self)} ballots x {self.n_items} items are too many rows to list; keep unlisted items absent"
            )
        refuse_table(len(self), self.n_items, "a list of all items on all ballots", "keep unlisted items absent", 8.0)
        present = np.zeros((len(self), self.n_items), bool)
        present[self.ballot, self.item] = True
        ballot, item = np.nonzero(~present)
        last = np.full(len(ballot), np.iinfo(np.int64).max)
        return self._from_rows(
            np.concatenate([self.ballot, ballot]), np.concatenate([self.item, item]), np.concatenate([self.tier, last])
        )

    def restricted(self, items: Iterable[Hashable]) -> "Rankings":
        """The same ballots restricted to ``items``, which become the items in that order."""
        names = unique_names(items, "item")
        missing = [name for name in names if name not in self.index]
        if missing:
            raise DataError(f"item {missing[0]!r} is not on any ballot's list of items ({len(missing)} such)")
        code = np.full(self.n_items, -1)
        code[[self.index[name] for name in names]] = np.arange(len(names))
        keep = code[self.item] >= 0
        score = None if self.score is None else self.score[keep]
        control = None if self.control is None else self.control[keep]
        return self._from_rows(self.ballot[keep], code[self.item[keep]], self.tier[keep], names, score, control)

    def collapsed(self) -> "Rankings":
        """Merge equal ballots (same agent and instance), summing their weights, in order of first appearance.

        Ballots with controls are returned unchanged.
        """
        if self.control is not None:
            return self
        first, group = breaking.equal_lists(self.item, self.tier, self.offsets, self.agent, self.instance)
        unique = self[first]
        set_columns(unique, weight=np.bincount(group, self.weight, len(first)).astype(np.float64))
        return unique

    def to_comparisons(self, strength: Literal["binary", "difference", "rating"] = "binary") -> Comparisons:
        """Pairs of items on the same ballot; a win counts once, or by the difference of tiers or of scores.

        A tie counts the weight of the ballot.  O(pairs); if only sums are needed, use ``net_wins``, which is O(rows).

        >>> Rankings.from_orders([["a", ("b", "c")]]).to_comparisons().wins_i
        array([1., 1., 0.])
        """
        value = breaking.strength_values(strength, self.tier, self.score)
        columns = breaking.count_pairs(self.item, value, self.offsets, self.weight, self.agent, self.n_items, strength)
        return Comparisons(*columns, items=self.items, agents=self.agents)

    def net_wins(self, strength: Literal["binary", "difference", "rating"] = "binary") -> tuple[Floats, Floats]:
        """Wins minus losses of each row on its ballot, and the total wins of each ballot, both unweighted.

        >>> Rankings.from_orders([["a", ("b", "c")]]).net_wins()
        (array([ 2., -1., -1.]), array([2.]))
        """
        value = breaking.strength_values(strength, self.tier, self.score)
        return breaking.net_wins(value, self.tier, self.offsets, strength)

    def _from_rows(
        self,
        ballot: Ints,
        item: Ints,
        tier: Ints,
        items: Names | None = None,
        score: Floats | None = None,
        control: Floats | None = None,
    ) -> "Rankings":
        """The same ballots with other rows, in any order; ``ballot`` (rows,) is the ballot of each."""
        order = np.lexsort((item, tier, ballot))
        offsets = offsets_from_sizes(np.bincount(ballot, minlength=len(self)))
        return Rankings(
            item[order],
            dense_tiers(tier[order], offsets),
            offsets,
            self.weight,
            self.agent,
            self.instance,
            self.items if items is None else items,
            self.agents,
            self.instances,
            None if score is None else score[order],
            control=None if control is None else control[order],
            controls=None if control is None else self.controls,
        )


def _put_in_order(
    item: Ints, tier: Ints, score: Floats | None, offsets: Ints, items: Names
) -> tuple[Ints, Ints, Floats | None]:
    """Check the rows of each ballot, sort them by tier, then item, and renumber tiers 0, 1, ..., in blocks of ballots.

    Temporary arrays hold about ``ROWS_AT_ONCE`` rows, not all rows.
    """
    longest = int(np.diff(offsets).max(initial=1))
    new_item, new_tier = item, np.empty(len(tier), smallest_type(longest - 1))
    new_score, top = score, 0
    first = 0
    while first < len(offsets) - 1:
        start = int(offsets[first])
        last = max(first + 1, int(np.searchsorted(offsets, start + ROWS_AT_ONCE, side="right")) - 1)
        own, rows = offsets[first : last + 1] - start, slice(start, int(offsets[last]))
        ballot, i, t = list_of_rows(own), item[rows], tier[rows]
        s = None if score is None else score[rows]
        order = _order(ballot, t, i)
        if order is not None:
            if new_item is item:
                new_item, new_score = item.copy(), None if score is None else score.copy()
            i, t = i[order], t[order]
            s = None if s is None else s[order]
            new_item[rows] = i
            if new_score is not None and s is not None:
                new_score[rows] = s
        _refuse_duplicates(ballot, i, items, first)
        if s is not None:
            _refuse_scores(ballot, t, s, first)
        dense = dense_tiers(t, own)
        new_tier[rows] = dense
        top = max(top, int(dense.max(initial=0)))
        first = last
    return new_item, new_tier.astype(smallest_type(top), copy=False), new_score


def _order(ballot: Ints, tier: Ints, item: Ints) -> Ints | None:
    """Row order by ballot, tier, item; ``None`` if the rows are already sorted."""
    same_ballot = ballot[1:] == ballot[:-1]
    falls = (tier[1:] < tier[:-1]) | ((tier[1:] == tier[:-1]) & (item[1:] < item[:-1]))
    return np.lexsort((item, tier, ballot)) if (same_ballot & falls).any() else None


def _refuse_duplicates(ballot: Ints, item: Ints, items: Names, before: int) -> None:
    """Refuse items that occur twice on a ballot; ``before`` ballots precede this block."""
    place = ballot * len(items) + item
    ordered = np.sort(place)
    twice = ordered[1:] == ordered[:-1]
    if twice.any():
        row = int(np.flatnonzero(place == ordered[1:][twice][0])[0])
        raise DataError(
            f"ballot {before + ballot[row]}: item {items[item[row]]!r} occurs more than once "
            f"({twice.sum()} such rows); "
            "an item has one place on a ballot: remove the repeats or split the ballot"
        )


def _refuse_scores(ballot: Ints, tier: Ints, score: Floats, before: int) -> None:
    """Refuse scores that are not equal within a tier or not lower in a later tier."""
    wrong = np.where(tier[1:] > tier[:-1], score[1:] >= score[:-1], score[1:] != score[:-1]) & (
        ballot[1:] == ballot[:-1]
    )
    if wrong.any():
        k = int(np.argmax(wrong))
        raise DataError(
            f"ballot {before + ballot[k]}: scores {score[k]}, {score[k + 1]} contradict tiers {tier[k]}, {tier[k + 1]} "
            f"({wrong.sum()} such rows); tiers must follow from the scores"
        )


def _codes(values: ArrayLike | None, what: str, n_ballots: int) -> Ints | None:
    if values is None:
        return None
    code = integers(values, what)
    if len(code) != n_ballots or (code < 0).any():
        raise DataError(f"{what} must be one code >= 0 for each of the {n_ballots} ballots")
    return code


def _names(names: Iterable[Hashable] | None, code: Ints | None, what: str) -> Names | None:
    if code is None:
        return None
    known = unique_names(range(int(code.max(initial=-1)) + 1) if names is None else names, what)
    if len(code) and code.max() >= len(known):
        raise DataError(f"{what} {code.max()} has no name; there are {len(known)}")
    return known
