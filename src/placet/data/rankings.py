"""Ballots: ordered partitions of items, with ties, absences, weights, voters and instances."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import breaking
from placet.data.arrays import (
    Floats,
    Ints,
    Lists,
    Names,
    WeightKind,
    column,
    data_html,
    dense_tiers,
    effective_weights,
    encode,
    frozen,
    integers,
    list_of_rows,
    numbers,
    offsets_from_sizes,
    offsets_of,
    recode,
    rows_of,
    same_columns,
    set_columns,
    smallest_type,
    trusted,
    unique_names,
    with_columns,
)
from placet.data.ballot_rows import (
    codes_of_ballots,
    heads_note,
    names_of_codes,
    put_in_order,
    rows_of_orders,
    rows_of_pairs,
    rows_of_preferences,
    rows_of_ranks,
)
from placet.data.comparisons import Comparisons, control_columns
from placet.data.engines.memory import refuse_table
from placet.data.errors import DataError, one_of

Unlisted = Literal["absent", "last"]
Ballot = list[tuple[Hashable, ...]]


SHOWN_WHOLE = "read as best-worst"
"""The start of the note of a reader whose ballots hold all items that were shown, and are no tops of lists."""


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
    sentences about how the data were read.  ``weights``: whether weights are counts, or design weights
    (`with_design_weights`).

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
    weights: WeightKind = "counts"

    def __new__(cls, *columns: Any, **named: Any) -> Self:
        if len(columns) == 1 and not named:
            raise TypeError(
                "numbers are wanted; Rankings.from_orders makes them of lists of names, placet.read of files"
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        one_of(self.weights, get_args(WeightKind), "weights")
        if self.weights == "design" and self.agent is None:
            raise DataError("design weights belong to agents; ballots.with_design_weights() makes one of each ballot")
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
        agent, instance = codes_of_ballots(self.agent, "agent", n), codes_of_ballots(self.instance, "instance", n)
        control, controls = control_columns(self.control, self.controls, len(item))
        if control is not None:
            control = control[np.lexsort((item, tier, list_of_rows(offsets)))]
        item, tier, score = put_in_order(item, tier, score, offsets, items)
        columns = {"item": item, "tier": tier, "offsets": offsets, "weight": weight, "score": score}
        agents = names_of_codes(self.agents, agent, "agent")
        instances = names_of_codes(self.instances, instance, "instance")
        set_columns(self, **columns, items=items, control=control, controls=controls)
        set_columns(self, agent=agent, agents=agents, instance=instance, instances=instances)

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

        Returns
        -------
        Rankings
            The ballots.

        >>> Rankings.from_orders([["a", ("b", "c")], ["c"]], unlisted="last")[1]
        [('c',), ('a', 'b')]
        """
        one_of(unlisted, get_args(Unlisted), "unlisted")
        names, tiers, sizes = rows_of_orders(orders)
        code, known = encode(names, "item", items)
        if weight is not None:
            weight = numbers(weight, "weight", positive=True, unit="ballot")
        for what, values in (("weight", weight), ("agent", agent), ("instance", instance)):
            if values is not None and len(values) != len(sizes):
                raise DataError(f"{what} has {len(values)} entries; {len(sizes)} are needed")
        result = cls.of_rows(code, np.array(tiers, np.int64), offsets_from_sizes(sizes), known, weight, agent, instance)
        return result.completed() if unlisted == "last" else result

    @classmethod
    def of_rows(
        cls,
        item: Ints,
        tier: Ints,
        offsets: Ints,
        items: Names,
        weight: Floats | None = None,
        agent: Sequence[Hashable] | None = None,
        instance: Sequence[Hashable] | None = None,
        score: Floats | None = None,
        **others: Any,
    ) -> "Rankings":
        """Ballots from valid columns, for those who have just made them, such as readers: see ``from_codes``.

        Only the rows of each ballot are looked at: they are put in order, and no item may occur twice.

        Returns
        -------
        Rankings
            The ballots.

        >>> import numpy as np
        >>> ballots = Rankings.of_rows(np.array([1, 0]), np.array([0, 1]), np.array([0, 2]), ("a", "b"), np.ones(1))
        >>> ballots.orders()
        [['b', 'a']]
        """
        item, tier, score = put_in_order(item.astype(np.int32, copy=False), tier, score, offsets, items)
        weight = np.ones(len(offsets) - 1) if weight is None else weight
        for what, values in (("agent", agent), ("instance", instance)):
            if values is not None:
                others[what], others[what + "s"] = encode(values, what, unit="ballot")
        return trusted(
            cls, item=item, tier=tier, offsets=offsets, weight=weight, items=tuple(items), score=score, **others
        )

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
        """Build ballots from items that are already codes, and agents and instances that are names.

        Returns
        -------
        Rankings
            The ballots.

        >>> Rankings.from_codes([1, 0, 0, 1], [0, 1, 0, 0], [0, 2, 4], ["a", "b"]).orders()
        [['b', 'a'], [('a', 'b')]]
        """
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

        Returns
        -------
        Rankings
            The ballots.

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
        """``from_scores`` for ballots and items that are given as codes and names.

        Returns
        -------
        Rankings
            A ballot for each code.

        >>> import numpy as np
        >>> rows = (np.array([0, 0]), ["u"]), (np.array([0, 1]), ["a", "b"])
        >>> Rankings.from_coded_scores(*rows, np.array([3.0, 5.0])).orders()
        [['b', 'a']]
        """
        voter, voters = recode(*ballot, "agent", dtype=np.int32)
        code, names = recode(*item, "item", items, dtype=np.int32)
        order = np.lexsort((-score, voter))
        offsets = offsets_from_sizes(np.bincount(voter, minlength=len(voters)))
        tier = dense_tiers(-score[order], offsets)
        values, columns = control_columns(control, None, len(score))
        who = {"agent": np.arange(len(voters)), "agents": voters}
        if values is not None:
            known: dict[str, Any] = {"items": names, "notes": notes, "control": values[order], "controls": columns}
            return cls(code[order], tier, offsets, score=score[order], **who, **known)  # type: ignore[arg-type]
        made = cls.of_rows(code[order], tier, offsets, names, score=score[order], notes=notes)
        set_columns(made, **who)
        return made

    @classmethod
    def from_ranks(cls, matrix: Any, items: Sequence[Hashable] | None = None) -> "Rankings":
        """Build ballots (rows) over items (columns) from ranks, lower is better; NaN is absent and equal ranks tie.

        The items of a data frame are its columns.

        Returns
        -------
        Rankings
            The ballots.

        >>> list(Rankings.from_ranks([[1, 2, 2], [float("nan"), 2, 1]], items="abc"))
        [[('a',), ('b', 'c')], [('c',), ('b',)]]
        """
        item, tier, offsets, score, names = rows_of_ranks(matrix, items)
        return cls(item, tier, offsets, items=names, score=score)

    @classmethod
    def from_preferences(
        cls, frame: Any, *, ballot: str, better: str, worse: str, items: Sequence[Hashable] | None = None
    ) -> "Rankings":
        """Convert arbitrary pairwise preferences of each ballot into its finest consistent ordered partition.

        This is generalized rank breaking: items of an earlier tier are preferred, directly or through others, to all
        items of a later one; preferences within a tier are lost.  A cycle is an error that shows it.

        Returns
        -------
        Rankings
            A ballot for each value of ``ballot``.

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
        sides = code[: len(over)], code[len(over) :]
        place = lambda v: f"{ballot} {voters[v]!r}"  # noqa: E731
        item, tier, offsets = rows_of_preferences(voter, len(voters), *sides, names, place)
        return cls(item, tier, offsets, agent=np.arange(len(voters)), items=names, agents=voters)

    @classmethod
    def from_comparisons(cls, comparisons: Comparisons) -> "Rankings":
        """Convert each row of comparisons into up to three weighted ballots: i over j, j over i, and a tie.

        The controls of a vote go to the row of i; the row of j has 0.

        Returns
        -------
        Rankings
            Ballots of two items, with weights.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("ab", "bc", ["a", "tie"])
        >>> Rankings.from_comparisons(votes).orders()
        [['a', 'b'], [('b', 'c')]]
        """
        own = {"items": comparisons.items, "agents": comparisons.agents, "weights": comparisons.weights}
        return cls(**rows_of_pairs(comparisons), **own)  # type: ignore[arg-type]

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
        """Grades (minus the tiers), offsets and weights, for losses.

        Returns
        -------
        Lists
            A list per ballot.

        >>> import placet
        >>> ballots = placet.Rankings.from_orders([["a", ("b", "c")], ["b", "a"]])
        >>> ballots.lists().offsets
        array([0, 3, 5])
        """
        return Lists(-self.tier.astype(np.float64), self.offsets, self.weight)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    _repr_html_ = data_html

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
        tier = self.tier[rows]
        parts = {name: getattr(self, name) for name in ("agent", "instance")}
        columns = {name: getattr(self, name) for name in ("score", "control")}
        return trusted(
            Rankings,
            item=self.item[rows],
            tier=tier.astype(smallest_type(int(tier.max(initial=0))), copy=False),
            offsets=offsets,
            weight=self.weight[ballots],
            items=self.items,
            agents=self.agents,
            instances=self.instances,
            controls=self.controls,
            weights=self.weights,
            **{name: None if values is None else values[ballots] for name, values in parts.items()},
            **{name: None if values is None else values[rows] for name, values in columns.items()},
        )

    def __add__(self, other: "Rankings") -> "Rankings":
        """Concatenate the two, matching items by name; ``concat`` accepts more than two."""
        from placet.data.concatenation import concat

        return concat([self, other]) if isinstance(other, Rankings) else NotImplemented

    def orders(self) -> list[list[Any]]:
        """Ballots in the form that ``from_orders`` accepts: single names, and tuples for ties.

        Returns
        -------
        list of list
            A list per ballot, best first.

        >>> import placet
        >>> ballots = placet.Rankings.from_orders([["a", ("b", "c")], ["b", "a"]])
        >>> ballots.orders()
        [['a', ('b', 'c')], ['b', 'a']]
        """
        return [[tier[0] if len(tier) == 1 else tier for tier in ballot] for ballot in self]

    def by_instance(self) -> Iterator[tuple[Hashable, "Rankings"]]:
        """Iterate over (instance, its ballots); the instance is ``None`` if there are no instances.

        Returns
        -------
        iterator
            Pairs of a name and `Rankings`.

        >>> import placet
        >>> lists = placet.Rankings.from_orders([["a", "b"], ["y", "x"]], instance=["cats", "dogs"])
        >>> [(name, own.orders()) for name, own in lists.by_instance()]
        [('cats', [['a', 'b']]), ('dogs', [['y', 'x']])]
        """
        return self._by(self.instance, self.instances)

    def by_agent(self) -> Iterator[tuple[Hashable, "Rankings"]]:
        """Iterate over (agent, its ballots); the agent is ``None`` if there are no agents.

        Returns
        -------
        iterator
            Pairs of a name and `Rankings`.

        >>> import placet
        >>> ballots = placet.Rankings.from_orders([["a", "b"], ["b", "a"]], agent=["u", "v"])
        >>> [(name, own.orders()) for name, own in ballots.by_agent()]
        [('u', [['a', 'b']]), ('v', [['b', 'a']])]
        """
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
        """Counts, ties, coverage, connectivity of the "beats" graph, and ballots that compare nothing.  O(rows).

        Returns
        -------
        dict
            Words -> what there is.

        >>> Rankings.from_orders([["a", "b"], ["b", "a"]]).describe()["ballots"]
        2
        """
        return breaking.describe_rankings(self.item, self.tier, self.offsets, self.weight, self.n_items) | {
            "agents": None if self.agents is None else len(self.agents),
            "instances": None if self.instances is None else len(self.instances),
        }

    # Conversions

    def heads_note(self) -> tuple[str, ...]:
        """A note if the ballots may be the top of longer lists: all of one length, with at most half of the items, and
        not always the same ones.  Pairs are votes, not tops of lists.

        Returns
        -------
        tuple of str
            The note, or nothing.

        >>> data = Rankings.from_orders([["a", "b", "c"], ["d", "e", "f"]])
        >>> data.heads_note()[0][:64], data.completed().heads_note()
        ('each of the 2 ballots ranks 3 of 6 items, not always the same on', ())
        """
        if any(note.startswith(SHOWN_WHOLE) for note in self.notes):
            return ()
        return () if self.instance is not None else heads_note(self.item, self.offsets, len(self.items))

    def completed(self) -> "Rankings":
        """The same ballots with every unlisted item in one last tier; scores are not kept.

        Returns
        -------
        Rankings
            Ballots of all items.

        >>> import placet
        >>> ballots = placet.Rankings.from_orders([["a", ("b", "c")], ["b", "a"]])
        >>> ballots.completed().orders()
        [['a', ('b', 'c')], ['b', 'a', 'c']]
        """
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
        """The same ballots restricted to ``items``, which become the items in that order.

        Returns
        -------
        Rankings
            Ballots without other items.

        >>> import placet
        >>> ballots = placet.Rankings.from_orders([["a", ("b", "c")], ["b", "a"]])
        >>> ballots.restricted(["b", "a"]).orders()
        [['a', 'b'], ['b', 'a']]
        """
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

    def with_design_weights(self) -> "Rankings":
        """The same ballots with their weights as design weights: how much of a population each stands for.

        Errors of a result are then from the scatter of agents (each ballot is one unless agents are given), and ballots
        weigh as much as their effective number, (sum w)^2 / sum w^2.

        Returns
        -------
        Rankings
            The same data, changed so.

        >>> Rankings.from_orders([["a", "b"], ["b", "a"]], weight=[10, 30]).with_design_weights().weight
        array([0.4, 1.2])
        """
        own: dict[str, Any] = {"weight": effective_weights(self.weight), "weights": "design"}
        if self.agent is None:
            own |= {"agent": np.arange(len(self)), "agents": tuple(range(len(self)))}
        return with_columns(self, **own)

    def collapsed(self) -> "Rankings":
        """Merge equal ballots (same agent and instance), summing their weights, in order of first appearance.

        Ballots with controls are returned unchanged.

        Returns
        -------
        Rankings
            Different ballots only.

        >>> same = Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]]).collapsed()
        >>> same.orders(), same.weight
        ([['a', 'b'], ['b', 'a']], array([2., 1.]))
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

        Returns
        -------
        Comparisons
            The pairs, with their wins and ties.

        >>> Rankings.from_orders([["a", ("b", "c")]]).to_comparisons().wins_i
        array([1., 1., 0.])
        """
        value = breaking.strength_values(strength, self.tier, self.score)
        columns = breaking.count_pairs(self.item, value, self.offsets, self.weight, self.agent, self.n_items, strength)
        return Comparisons(*columns, items=self.items, agents=self.agents, weights=self.weights)

    def net_wins(self, strength: Literal["binary", "difference", "rating"] = "binary") -> tuple[Floats, Floats]:
        """Wins minus losses of each row on its ballot, and the total wins of each ballot, both unweighted.

        Returns
        -------
        (array, array)
            Of the rows, and of the ballots.

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
        dense = dense_tiers(tier[order], offsets)
        return with_columns(
            self,
            item=item[order].astype(np.int32, copy=False),
            tier=dense.astype(smallest_type(int(dense.max(initial=0)))),
            offsets=offsets,
            items=self.items if items is None else items,
            score=None if score is None else score[order],
            control=None if control is None else control[order],
            controls=None if control is None else self.controls,
            notes=(),
        )
