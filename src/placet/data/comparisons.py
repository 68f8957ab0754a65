"""Pairwise results: how often one item beat another, and how often they tied."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import graph
from placet.data.arrays import (
    Floats,
    Ints,
    Names,
    WeightKind,
    data_html,
    effective_weights,
    encode,
    integers,
    numbers,
    recode,
    refuse_masked_or_complex,
    same_columns,
    set_columns,
    table,
    trusted,
    unique_names,
)
from placet.data.errors import DataError, one_of
from placet.data.times import time_column

Outcome = Literal["a", "b", "tie"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
TABLE_CELLS_PER_VOTE = 4
VOTES_AT_ONCE = 1 << 15


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons:
    """Comparisons with one row per pair (and agent, if there are agents), sorted by agent, i, j.

    ``wins_i``, ``wins_j``, ``ties`` (rows,) are summed weights.  ``i < j``, unless ``ordered`` records who came first
    (home advantage, position bias): then ``i`` is the one that came first and (i, j), (j, i) are two rows.
    Rows that repeat a pair are summed.  ``notes`` are sentences about how the data were read.
    ``control`` (rows, k) holds numbers that may have helped ``i`` (how much longer its answer was, 1 if it played at
    home), and ``controls`` their names; ``time`` (rows,) holds dates (datetime64) or plain numbers.  There is then one
    row per pair, agent, time and controls; where i and j are swapped, the controls change sign.  ``weights``: whether
    weights are counts, or design weights of agents (`from_battles`), whose scatter then gives the errors of a result.

    >>> Comparisons.from_battles(["x", "y", "x"], ["y", "x", "y"], ["a", "a", "tie"])
    Comparisons(1 pairs, 2 items, 3 votes)
    """

    i: Ints
    j: Ints
    wins_i: Floats
    wins_j: Floats
    ties: Floats
    agent: Ints | None = None
    items: Names = None  # type: ignore[assignment]  # 0, 1, ...
    agents: Names | None = None
    ordered: bool = False
    notes: tuple[str, ...] = ()
    control: Floats | None = None
    controls: tuple[str, ...] | None = None
    time: NDArray[Any] | None = None
    weights: WeightKind = "counts"

    def __new__(cls, *columns: Any, **named: Any) -> Self:
        if len(columns) == 1 and not named:
            raise TypeError(
                "columns of numbers are wanted; Comparisons.from_battles makes them of names, placet.read of a file"
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        one_of(self.weights, get_args(WeightKind), "weights")
        if self.weights == "design" and self.agent is None:
            raise DataError('design weights belong to votes, not to pairs: from_battles(..., weights="design")')
        i, j = integers(self.i, "i"), integers(self.j, "j")
        counts = [numbers(getattr(self, name), name, positive=True) for name in ("wins_i", "wins_j", "ties")]
        agent = None if self.agent is None else integers(self.agent, "agent")
        for name, values in zip(("j", "wins_i", "wins_j", "ties", "agent"), (j, *counts, agent)):
            if values is not None and len(values) != len(i):
                raise DataError(f"{name} has {len(values)} entries; {len(i)} are needed")
        top = max(i.max(initial=-1), j.max(initial=-1))
        items = unique_names(range(int(top) + 1) if self.items is None else self.items, "item")
        agents = None
        if agent is not None:
            agents = unique_names(
                range(int(agent.max(initial=-1)) + 1) if self.agents is None else self.agents, "agent"
            )
        _refuse_codes(i, j, agent, items, agents)
        control, controls = control_columns(self.control, self.controls, len(i))
        time = None if self.time is None else time_column(self.time, len(i))
        swap = i > j
        if not self.ordered and swap.any():
            i, j = np.where(swap, j, i), np.where(swap, i, j)
            counts[:2] = np.where(swap, counts[1], counts[0]), np.where(swap, counts[0], counts[1])
            control = None if control is None else np.where(swap[:, None], 0.0 - control, control)
        if control is None and time is None:
            i, j, agent, (wins_i, wins_j, ties) = _merge(i, j, agent, counts, len(items))
        else:
            pair_keys(len(items), agent)
            rows, starts = _equal_rows(i, j, agent, time, control)
            wins_i, wins_j, ties = (_sums_of_runs(column[rows], starts) for column in counts)
            first = rows[starts]
            i, j, agent = i[first], j[first], None if agent is None else agent[first]
            control, time = (None if column is None else column[first] for column in (control, time))
        columns = {"i": i, "j": j, "wins_i": wins_i, "wins_j": wins_j, "ties": ties, "agent": agent, "time": time}
        set_columns(self, **columns, items=items, agents=agents, control=control, controls=controls)

    def __setstate__(self, state: dict[str, Any]) -> None:
        set_columns(self, **state)  # unpickled arrays are writable

    @classmethod
    def from_battles(
        cls,
        a: Sequence[Hashable],
        b: Sequence[Hashable],
        outcome: Sequence[str],
        *,
        weight: ArrayLike | None = None,
        agent: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
        ordered: bool = False,
        control: Any = None,
        time: Any = None,
        weights: WeightKind = "counts",
    ) -> "Comparisons":
        """Build comparisons from individual votes: ``outcome`` is "a", "b" or "tie".

        ``ordered=True`` records that ``a`` came first.  ``weight`` is how often a vote counts.  ``control``: a data
        frame or mapping of numeric columns that may have helped ``a`` against ``b``, such as
        ``{"length": length_a - length_b}``.  ``time``: dates (or text such as 2024-06-01, or numbers).
        ``weights="design"``: the weight of a vote says how many voters like this one it stands for; votes are then kept
        apart (each is an agent of its own unless agents are given) and weigh as much as their effective number.

        Returns
        -------
        Comparisons
            The pairs, with their wins and ties.

        >>> Comparisons.from_battles(["ant", "bee"], ["bee", "cat"], ["a", "tie"])
        Comparisons(2 pairs, 3 items, 2 votes)
        """
        n = len(a)
        result = outcome_codes(outcome)
        weight = None if weight is None else numbers(weight, "weight", positive=True)
        for name, values in (("b", b), ("outcome", result), ("weight", weight), ("agent", agent)):
            if values is not None and len(values) != n:
                raise DataError(f"{name} has {len(values)} entries; {n} are needed")
        first, second, names = _encode_pairs(a, b, items)
        voter, voters = (None, None) if agent is None else encode(agent, "agent")
        optional = _optional_columns(control, time, n)
        if one_of(weights, get_args(WeightKind), "weights") == "design":
            weight, voter, voters = _designed(weight, voter, voters, n)
            optional["weights"] = weights
        return cls._from_votes(first, second, result, weight, voter, names, voters, ordered, (), **optional)

    @classmethod
    def from_codes(
        cls,
        a: Ints,
        b: Ints,
        outcome: NDArray[np.int8],
        names: Sequence[Hashable],
        *,
        weight: Floats | None = None,
        agent: tuple[Ints, Sequence[Hashable]] | None = None,
        items: Sequence[Hashable] | None = None,
        ordered: bool = False,
        notes: tuple[str, ...] = (),
        control: Any = None,
        time: Any = None,
        weights: WeightKind = "counts",
    ) -> "Comparisons":
        """Build comparisons from votes whose items are codes of ``names`` and whose outcomes are 0 (a), 1 (b), 2 (tie).

        The items are ``items``, or else the names that occur, by first appearance in ``a``, then in ``b``.  ``agent``
        is a pair of codes and names too.  ``weights``: see `from_battles`.

        Returns
        -------
        Comparisons
            The votes, counted by pair.

        >>> import numpy as np
        >>> Comparisons.from_codes(np.array([0, 1]), np.array([1, 2]), np.array([0, 2], np.int8), ["a", "b", "c"])
        Comparisons(2 pairs, 3 items, 2 votes)
        """
        code, found = recode(np.concatenate([a, b]), names, "item", items)
        voter, voters = (None, None) if agent is None else recode(*agent, "agent")
        first, second = code[: len(a)], code[len(a) :]
        optional = _optional_columns(control, time, len(a))
        if weights == "design":
            weight, voter, voters = _designed(weight, voter, voters, len(a))
            optional["weights"] = weights
        return cls._from_votes(first, second, outcome, weight, voter, found, voters, ordered, notes, **optional)

    @classmethod
    def _from_votes(
        cls,
        first: Ints,
        second: Ints,
        result: NDArray[np.int8],
        weight: Floats | None,
        voter: Ints | None,
        names: Names,
        voters: Names | None,
        ordered: bool,
        notes: tuple[str, ...],
        **optional: Any,
    ) -> "Comparisons":
        n = len(first)
        if not optional and voter is None and not ordered and len(names) ** 2 <= TABLE_CELLS_PER_VOTE * n:
            if (first == second).any():
                _refuse_codes(first, second, None, names, None)
            i, j, wins_i, wins_j, ties = _count_votes(first, second, result, weight, len(names))
            return trusted(cls, i=i, j=j, wins_i=wins_i, wins_j=wins_j, ties=ties, items=names, notes=notes)
        weight = np.ones(n) if weight is None else weight
        wins_a, wins_b, ties = (np.where(result == k, weight, 0.0) for k in range(3))
        return cls(first, second, wins_a, wins_b, ties, voter, names, voters, ordered, notes, **optional)

    @cached_property
    def n_items(self) -> int:
        return len(self.items)

    def __len__(self) -> int:
        return len(self.i)

    _repr_html_ = data_html

    def __repr__(self) -> str:
        votes = float(self.wins_i.sum() + self.wins_j.sum() + self.ties.sum())
        return f"Comparisons({len(self)} pairs, {self.n_items} items, {votes:.10g} votes)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comparisons):
            return NotImplemented
        return same_columns(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, which: Any) -> "Comparisons":
        """The selected rows (slice, mask or indices)."""
        rows = np.atleast_1d(np.arange(len(self))[which])
        agent = None if self.agent is None else self.agent[rows]
        i, j, wins_i, wins_j, ties = (getattr(self, name)[rows] for name in ("i", "j", "wins_i", "wins_j", "ties"))
        control, time = (None if column is None else column[rows] for column in (self.control, self.time))
        names: dict[str, Any] = {"agents": self.agents, "controls": self.controls, "weights": self.weights}
        columns = (i, j, wins_i, wins_j, ties, agent, self.items)
        return Comparisons(*columns, ordered=self.ordered, control=control, time=time, **names)

    def __add__(self, other: "Comparisons") -> "Comparisons":
        """Concatenate the two, matching items by name; ``concat`` accepts more than two."""
        from placet.data.concatenation import concat

        return concat([self, other]) if isinstance(other, Comparisons) else NotImplemented

    def by_agent(self) -> Iterator[tuple[Hashable, "Comparisons"]]:
        """Iterate over (agent, its rows); the agent is ``None`` if there are no agents.

        Returns
        -------
        iterator
            Pairs of a name and `Comparisons`.

        >>> votes = Comparisons.from_battles("xx", "yy", ["a", "tie"], agent=["u", "v"])
        >>> [(name, own.ties.tolist()) for name, own in votes.by_agent()]
        [('u', [0.0]), ('v', [1.0])]
        """
        if self.agent is None or self.agents is None:
            yield None, self
            return
        bounds = np.searchsorted(self.agent, np.arange(len(self.agents) + 1))
        for k, name in enumerate(self.agents):
            yield name, self[bounds[k] : bounds[k + 1]]

    def reweighted(
        self, factor: Floats | float, *, agents: bool = True, ordered: bool = True, time: bool = True
    ) -> "Comparisons":
        """The same results, each row counted ``factor`` (rows,) times; False leaves out agents, who came first, times.

        Returns
        -------
        Comparisons
            The same data, changed so.

        >>> votes = Comparisons.from_battles("xx", "yy", ["a", "tie"], agent=["u", "v"])
        >>> votes.reweighted(2.0, agents=False)
        Comparisons(1 pairs, 2 items, 4 votes)
        """
        won, lost, tied = (column * factor for column in (self.wins_i, self.wins_j, self.ties))
        kept: dict[str, Any] = {"control": self.control, "controls": self.controls, "time": self.time if time else None}
        if agents:
            kept |= {"agent": self.agent, "agents": self.agents, "weights": self.weights}
        return Comparisons(self.i, self.j, won, lost, tied, items=self.items, ordered=self.ordered and ordered, **kept)

    def pooled(self) -> "Comparisons":
        """The same results per pair only: without agents, controls, times or who came first.

        Returns
        -------
        Comparisons
            A row per pair.

        >>> votes = Comparisons.from_battles("xx", "yy", ["a", "tie"], agent=["u", "v"])
        >>> len(votes), len(votes.pooled())
        (2, 1)
        """
        return Comparisons(self.i, self.j, self.wins_i, self.wins_j, self.ties, items=self.items)

    def describe(self) -> dict[str, Any]:
        """Counts, ties, coverage, and connectivity of the "beats" graph.  O(rows).

        Returns
        -------
        dict
            Words -> what there is.

        >>> Comparisons.from_battles(["ant"], ["bee"], ["a"]).describe()["votes"]
        1.0
        """
        wins, ties = float(self.wins_i.sum() + self.wins_j.sum()), float(self.ties.sum())
        pairs = len(np.unique(np.minimum(self.i, self.j) * self.n_items + np.maximum(self.i, self.j)))
        seen = np.zeros(self.n_items, bool)
        seen[self.i] = seen[self.j] = True
        over, under = (self.wins_i > 0) | (self.ties > 0), (self.wins_j > 0) | (self.ties > 0)
        winner = np.concatenate([self.i[over], self.j[under]])
        loser = np.concatenate([self.j[over], self.i[under]])
        parts = graph.components_of_pairs(winner, loser, self.n_items)
        return {
            "kind": "comparisons",
            "items": self.n_items,
            "votes": wins + ties,
            "ties": ties,
            "pairs": pairs,
            "pairs possible": self.n_items * (self.n_items - 1) // 2,
            "items never compared": int((~seen).sum()),
            "groups with wins both ways": int(parts.max(initial=-1)) + 1,
            "agents": None if self.agents is None else len(self.agents),
            "controls": None if self.controls is None else ", ".join(self.controls),
            "first date": None if self.time is None or not len(self) else str(self.time.min()),
            "last date": None if self.time is None or not len(self) else str(self.time.max()),
        }


def control_columns(
    control: Any, names: Sequence[str] | None, n_rows: int
) -> tuple[Floats | None, tuple[str, ...] | None]:
    """Controls as a (rows, k) array of finite numbers, and the names of its columns."""
    if control is None:
        return None, None
    values, own = table(control)
    refuse_masked_or_complex(values)
    try:
        values = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(f"controls must be numbers: {error}") from None
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != n_rows:
        raise DataError(f"controls have the shape {values.shape}; {n_rows} rows are needed")
    given = own if names is None else names
    known = tuple(f"control {k + 1}" for k in range(values.shape[1])) if given is None else tuple(map(str, given))
    if len(known) != values.shape[1]:
        raise DataError(f"{len(known)} names for {values.shape[1]} controls")
    unique_names(known, "control")
    bad = ~np.isfinite(values)
    if bad.any():
        row, k = np.argwhere(bad)[0]
        raise DataError(
            f"row {row}: control {known[k]!r} is {values[row, k]} ({bad.any(axis=1).sum()} such rows); "
            "correct or remove them"
        )
    return values, known


def _designed(weight: Any, voter: Any, voters: Any, n: int) -> tuple[Floats, Ints, Names]:
    """Effective weights of votes with design weights, and their agents: those given, or one for each vote."""
    weight = effective_weights(np.ones(n) if weight is None else weight)
    return (weight, np.arange(n), tuple(range(n))) if voter is None else (weight, voter, voters)


def _optional_columns(control: Any, time: Any, n: int) -> dict[str, Any]:
    """Optional columns of the votes (controls, time) as keyword arguments; only those that are given."""
    values, known = control_columns(control, None, n)
    found: dict[str, Any] = {} if values is None else {"control": values, "controls": known}
    return found if time is None else found | {"time": time_column(time, n)}


def _equal_rows(
    i: Ints, j: Ints, agent: Ints | None, time: NDArray[Any] | None, control: Floats | None
) -> tuple[Ints, Ints]:
    """Row order by agent, i, j, time and controls, and the positions where a new combination starts."""
    columns = [c for c in (agent, i, j, time) if c is not None]
    columns += [] if control is None else list(control.T)
    rows = np.lexsort(columns[::-1])
    new = np.ones(len(rows), bool)
    new[1:] = False
    for values in columns:
        ordered = values[rows]
        new[1:] |= ordered[1:] != ordered[:-1]
    return rows, np.flatnonzero(new)


def _sums_of_runs(values: Floats, starts: Ints) -> Floats:
    """The sum of each run of values; ``starts`` are the positions where runs begin."""
    return np.add.reduceat(values, starts) if len(values) else values


def outcome_codes(outcome: Sequence[str]) -> NDArray[np.int8]:
    """Codes of outcomes: 0 for "a", 1 for "b", 2 for "tie"; the error for anything else shows the first one."""
    if isinstance(outcome, np.ndarray):
        if outcome.dtype.kind == "U" and outcome.dtype.isnative and outcome.ndim == 1:
            letters = np.ascontiguousarray(outcome).view(np.uint32).reshape(len(outcome), -1)
            found, known = _match_words(letters, OUTCOMES)
            if known:
                return found
        outcome = outcome.tolist()
    code: dict[str, int] = {name: k for k, name in enumerate(OUTCOMES)}
    try:
        return np.fromiter(map(code.__getitem__, outcome), np.int8, len(outcome))
    except (KeyError, TypeError):
        bad = [k for k, value in enumerate(outcome) if not (isinstance(value, str) and value in code)]
        raise DataError(
            f"row {bad[0]}: outcome {outcome[bad[0]]!r} is not a, b or tie ({len(bad)} such rows); "
            "correct or remove them"
        ) from None


def _match_words(letters: Any, words: Sequence[str]) -> tuple[NDArray[np.int8], bool]:
    """Index of the word that each row of letters spells (rows padded with 0), and whether every row spells one."""
    found, known = np.zeros(len(letters), np.int8), 0
    for k, word in enumerate(words):
        if len(word) <= letters.shape[1]:
            spelt = np.array([ord(letter) for letter in word] + [0] * (letters.shape[1] - len(word)), np.uint32)
            same_word = letters[:, 0] == spelt[0]
            for column in range(1, letters.shape[1]):
                same_word &= letters[:, column] == spelt[column]
            known += int(np.count_nonzero(same_word))
            found += np.multiply(same_word, k, dtype=np.int8)  # a row spells at most one word
    return found, known == len(letters)


def pair_keys(n_items: int, agent: Ints | None) -> int:
    """Number of possible (agent, i, j) keys; an error if it does not fit in 64 bits."""
    span = n_items * n_items * (1 if agent is None else int(agent.max(initial=0)) + 1)
    if span >= 2**63:
        raise DataError(f"{n_items} items squared times the agents do not fit in 64 bits; leave the agents out")
    return span


def _encode_pairs(a: Any, b: Any, items: Sequence[Hashable] | None) -> tuple[Ints, Ints, Names]:
    """Codes of both sides of each vote, and the names; integers in a small range are coded without a dictionary."""
    refuse_masked_or_complex(a)
    refuse_masked_or_complex(b)
    both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.size and b.size
    if both and a.dtype.kind in "iu" and b.dtype.kind in "iu" and items is None:
        low, high = min(int(a.min()), int(b.min())), max(int(a.max()), int(b.max()))
        if high - low <= 4 * (a.size + b.size) and low >= -(2**63) and high < 2**63:
            a, b = a.astype(np.int64, copy=False), b.astype(np.int64, copy=False)  # differences of narrow types wrap
            present = np.zeros(high - low + 1, bool)
            present[a - low if low else a] = present[b - low if low else b] = True
            if low == 0 and present.all():
                return a, b, tuple(range(high + 1))
            code = np.cumsum(present) - 1
            return code[a - low], code[b - low], tuple((np.flatnonzero(present) + low).tolist())
    same_type = both and a.dtype == b.dtype  # other arrays would be cast to a common type, which may merge names
    sides = np.concatenate([a, b]) if same_type else [*_plain(a), *_plain(b)]
    code, names = encode(sides, "item", items)
    return code[: len(a)], code[len(a) :], names


def _plain(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _count_votes(
    a: Ints, b: Ints, result: NDArray[np.int8], weight: Floats | None, n_items: int
) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """Columns i, j, wins_i, wins_j, ties of votes, from a table of the results of all pairs.  O(votes + n^2)."""
    kinds = 3 if (result == 2).any() else 2
    key = np.empty(len(a), np.int64)
    for start in range(0, len(a), VOTES_AT_ONCE):  # in blocks, so that temporaries stay in the cache
        rows = slice(start, start + VOTES_AT_ONCE)
        x, y, won = a[rows], b[rows], result[rows]
        kind = (won == 0) != (x < y)  # whether j won
        pair = np.minimum(x, y) * n_items + np.maximum(x, y)
        key[rows] = kinds * pair + (np.where(won == 2, 2, kind) if kinds == 3 else kind)
    table = np.bincount(key, weight, kinds * n_items * n_items).reshape(-1, kinds).T
    pair = np.flatnonzero(sum(table[1:], table[0]) > 0)
    counts = [column[pair].astype(np.float64, copy=False) for column in table]
    i = pair // n_items
    return i, pair - i * n_items, counts[0], counts[1], counts[2] if kinds == 3 else np.zeros(len(pair))


def _refuse_codes(i: Ints, j: Ints, agent: Ints | None, items: Names, agents: Names | None) -> None:
    outside = (i < 0) | (j < 0) | (i >= len(items)) | (j >= len(items))
    if outside.any():
        k = int(np.argmax(outside))
        raise DataError(f"row {k}: items {i[k]}, {j[k]} are not in 0..{len(items) - 1} ({outside.sum()} such rows)")
    if (i == j).any():
        k = int(np.argmax(i == j))
        raise DataError(
            f"row {k}: item {items[i[k]]!r} is compared with itself ({(i == j).sum()} such rows); "
            "correct or remove them"
        )
    if agent is not None and len(agent) and (agent.min() < 0 or agent.max() >= len(agents or ())):
        raise DataError(f"agent codes must be in 0..{len(agents or ()) - 1}, found {agent.min()}..{agent.max()}")


def _merge(
    i: Ints, j: Ints, agent: Ints | None, counts: list[Floats], n_items: int
) -> tuple[Ints, Ints, Ints | None, list[Floats]]:
    """Sort rows by agent, i, j and merge equal ones, summing their counts."""
    span = pair_keys(n_items, agent)
    key = i * n_items + j
    if agent is not None:
        key = key + agent * (n_items * n_items)
    if (key[1:] > key[:-1]).all():
        return i, j, agent, counts
    if span <= 4 * len(key):
        present = np.bincount(key, minlength=span) > 0
        unique = np.flatnonzero(present)
        group = (np.cumsum(present) - 1)[key]
    else:
        unique, group = np.unique(key, return_inverse=True)
    counts = [np.bincount(group, values, len(unique)).astype(np.float64) for values in counts]
    pair = unique % (n_items * n_items)
    return pair // n_items, pair % n_items, None if agent is None else unique // (n_items * n_items), counts
