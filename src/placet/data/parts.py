"""Data in parts that together may exceed memory; a ballot, vote or query is never split across parts."""

import hashlib
import pickle
import secrets
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data.arrays import Floats, Ints, Names, distinct
from placet.data.comparisons import Comparisons
from placet.data.concatenation import concat
from placet.data.engines.serial import CACHE, Engine, Function, Merge, Piece, Serial, add, engine_of
from placet.data.errors import DataError
from placet.data.queries import Queries
from placet.data.rankings import Rankings

PartData = Rankings | Comparisons | Queries


class PieceSummary(NamedTuple):
    """Results of the first pass over a piece; ``lists`` are hashes of the names of its ballots or queries.

    ``informative``: whether some query with positive weight has two different grades.
    """

    kind: type
    items: Names
    agents: Names | None
    features: Names | None
    n_features: int
    n_lists: int
    n_rows: int
    weight: float
    whole_weights: bool
    largest_grade: float
    informative: bool
    ordered: bool
    instances: bool
    scores: bool
    notes: tuple[str, ...]
    lists: NDArray[np.uint64] | None


class Pass(NamedTuple):
    """One pass over all parts: its number, purpose and bytes read, and for passes of the objective its value and
    largest gradient entry.
    """

    number: int
    name: str
    bytes_read: int
    value: float | None = None
    gradient: float | None = None


@dataclass
class Log:
    """Counter of passes and bytes that calls ``watch`` after each pass."""

    watch: Callable[[Pass], None] | None = None
    passes: int = 0
    bytes_read: int = 0

    def note(self, name: str, read: int, value: float | None, gradient: float | None) -> None:
        self.passes += 1
        self.bytes_read += read
        if self.watch is not None:
            self.watch(Pass(self.passes, name, read, value, gradient))


@dataclass(frozen=True, eq=False, repr=False)
class Parts:
    """Pieces of ballots, votes or queries, in order, with one vocabulary.

    ``placet.scan`` makes them from files, `Parts.of` from data in memory.  ``kind`` is `Rankings`, `Comparisons` or
    `Queries`; ``items`` and ``agents`` are the names in all parts, by first appearance, and ``features`` those of
    queries.  Each ballot or query is in one part.  ``engine`` does the work, ``log`` counts passes and bytes.

    >>> parts = Parts.of([Rankings.from_orders([["a", "b"]]), Rankings.from_orders([["c", "b"], ["b", "a"]])])
    >>> parts, parts.items
    (Parts(2 parts, 3 ballots, 3 items, 6 rows), ('a', 'b', 'c'))
    >>> parts[1][0]
    [('c',), ('b',)]
    """

    pieces: tuple[Piece, ...]
    summaries: tuple[PieceSummary, ...]
    kind: type
    items: Names
    agents: Names | None
    features: Names | None
    n_features: int
    engine: Engine = field(default_factory=Serial)
    log: Log = field(default_factory=Log)

    @classmethod
    def of(cls, data: Iterable[PartData], engine: Any = None) -> "Parts":
        """Make parts from data in memory."""
        return cls.from_pieces([DataPiece(k, one) for k, one in enumerate(data)], engine)

    @classmethod
    def from_pieces(cls, pieces: Sequence[Piece], engine: Any = None, *, items: Sequence[Hashable] = ()) -> "Parts":
        """Make parts from pieces, collecting the vocabulary in a first pass; ``items`` come first among the items."""
        worker, log = engine_of(engine), Log()
        found, read = worker.sum(summary_of, pieces, (), name="vocabulary", merge=add)
        log.note("vocabulary", read, None, None)
        return cls.from_summaries(pieces, found, worker, log, items)

    @classmethod
    def from_summaries(
        cls,
        pieces: Sequence[Piece],
        found: Sequence[PieceSummary],
        engine: Engine,
        log: Log,
        items: Sequence[Hashable] = (),
    ) -> "Parts":
        """Make parts from pieces whose first pass is done."""
        _refuse_mixed(pieces, found)
        _refuse_spans(pieces, found)
        first = found[0]
        names = distinct([items, *(one.items for one in found)])
        agents = None if first.agents is None else distinct(one.agents or () for one in found)
        coded: list[Piece] = []
        for piece, one in zip(pieces, found):
            if first.kind is Queries:
                coded.append(piece)
                continue
            voter = None if agents is None else _places(one.agents or (), agents)
            coded.append(RecodedPiece(piece, _places(one.items, names), len(names), voter, len(agents or ())))
        return cls(tuple(coded), tuple(found), first.kind, names, agents, first.features, first.n_features, engine, log)

    # Results of the first pass

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def n_rows(self) -> int:
        return sum(one.n_rows for one in self.summaries)

    @property
    def n_lists(self) -> int:
        """Number of ballots or queries, or of pairs for votes."""
        return sum(one.n_lists for one in self.summaries)

    @property
    def n_bytes(self) -> int:
        """Bytes that one pass reads if nothing is cached."""
        return sum(piece.size for piece in self.pieces)

    @property
    def weight(self) -> float:
        """Total weight of all ballots or queries."""
        return sum(one.weight for one in self.summaries)

    @property
    def largest_grade(self) -> float:
        """The largest grade of all queries, at least 0."""
        return max(one.largest_grade for one in self.summaries)

    @property
    def notes(self) -> tuple[str, ...]:
        return distinct(one.notes for one in self.summaries)

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        unit = {Rankings: "ballots", Comparisons: "pairs", Queries: "queries"}[self.kind]
        about = f"{self.n_features} features" if self.kind is Queries else f"{self.n_items} items"
        return f"Parts({len(self)} parts, {self.n_lists} {unit}, {about}, {self.n_rows} rows)"

    # Operations on parts

    def __getitem__(self, k: int) -> Any:
        """Load part ``k``, with the names of all parts."""
        data = CACHE.fetch(self.pieces[range(len(self))[k]])[0]
        if self.kind is Queries:
            return data
        return self.with_names(data)

    def with_names(self, data: Any, **changes: Any) -> Any:
        """The data with the numbers of items and agents replaced by their names, and with other changes."""
        agents = {} if data.agent is None else {"agents": self.agents}
        return replace(data, items=self.items, **agents, **changes)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def load(self) -> Any:
        """Load all parts into memory as one."""
        return concat(list(self))

    def on(self, engine: Any) -> "Parts":
        """The same parts on another engine (a Dask client, or None for this process)."""
        return replace(self, engine=engine_of(engine))

    def watched(self, watch: Callable[[Pass], None] | None) -> "Parts":
        """The same parts with a new log that calls ``watch`` after every pass."""
        return replace(self, log=Log(watch))

    def sum(self, f: Function, *x: Any, name: str = "", merge: Merge = add) -> Any:
        """Sum (or merge) ``f(part, *x)`` over all parts in a fixed tree, in one pass."""
        result, read = self.engine.sum(f, self.pieces, x, name=name or f.__name__.strip("_"), merge=merge)
        self.log.note(name or f.__name__.strip("_"), read, None, None)
        return result

    def objective(self, f: Function, *x: Any, then: Callable[..., tuple[float, Floats]]) -> tuple[float, Floats]:
        """Apply ``then`` to the summed value and gradient, and log the resulting value and gradient."""
        (value, gradient, *more), read = self.engine.sum(f, self.pieces, x, name="objective", merge=add)
        value, gradient = then(value, gradient, *more)
        self.log.note("objective", read, value, float(np.abs(gradient).max(initial=0.0)))
        return value, gradient

    def map(self, make: Function, *args: Any) -> "Parts":
        """Parts that load as ``make(part number, part, *args)``, which is then cached instead of the part."""
        owner = _digest(make.__module__, make.__qualname__, pickle.dumps(args), *(piece.key for piece in self.pieces))
        mapped = (MappedPiece(piece, make, (k, args), owner) for k, piece in enumerate(self.pieces))
        return replace(self, pieces=tuple(mapped))

    def resampled_by(self, random_state: int, number: int, agents: NDArray[np.bool_] | None = None) -> "Parts":
        """The same ballots with resampled weights: Poisson counts seeded by random state, round and part, so that each
        part can be resampled independently; or the agents of a mask, each with all its ballots, in whatever parts.
        """
        whole, shared = all(one.whole_weights for one in self.summaries), agents is not None
        seeds = ((random_state, number) if shared else (random_state, number, k) for k in range(len(self)))
        drawn = tuple(ResampledPiece(piece, seed, whole, agents) for piece, seed in zip(self.pieces, seeds))
        return replace(self, pieces=drawn)

    @property
    def is_resampled(self) -> bool:
        """Whether the weights are resampled ones."""
        return any(isinstance(piece, ResampledPiece) for piece in self.pieces)


@dataclass(frozen=True, eq=False)
class OnePart:
    """Data in memory as a single part: sums over parts are calls, and there is nothing to read, cache or count."""

    data: Any

    def sum(self, f: Function, *x: Any, name: str = "", merge: Merge = add) -> Any:
        """As `Parts.sum`."""
        return f(self.data, *x)

    def objective(self, f: Function, *x: Any, then: Callable[..., tuple[float, Floats]]) -> tuple[float, Floats]:
        """As `Parts.objective`."""
        return then(*f(self.data, *x))

    def map(self, make: Function, *args: Any) -> "OnePart":
        """As `Parts.map`."""
        return OnePart(make(0, self.data, *args))


def as_parts(data: Any) -> Parts | OnePart:
    """Data in parts unchanged, data in memory as one part."""
    return data if isinstance(data, Parts) else OnePart(data)


# Kinds of pieces


@dataclass(frozen=True)
class DataPiece:
    """Data in memory; ``key`` is unique across processes."""

    number: int
    data: Any
    key: str = field(default_factory=lambda: f"held-{secrets.token_hex(8)}")

    @property
    def name(self) -> str:
        return f"part {self.number}"

    @property
    def size(self) -> int:
        return 0

    def load(self) -> Any:
        return self.data


@dataclass(frozen=True)
class DerivedPiece:
    """A piece that is made from another one when it is loaded."""

    base: Piece

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def size(self) -> int:
        return self.base.size


@dataclass(frozen=True)
class RecodedPiece(DerivedPiece):
    """A piece recoded to the shared numbering of items and agents: local item k becomes ``item[k]``."""

    item: Ints
    n_items: int
    agent: Ints | None
    n_agents: int

    @cached_property
    def key(self) -> str:
        return f"coded-{self.base.key}-{_digest(self.item.tobytes(), self.n_items, self.n_agents)}"

    def load(self) -> Any:
        data = self.base.load()
        if len(data.items) != len(self.item):
            raise DataError(
                f"{self.name}: {len(data.items)} items where the first pass found {len(self.item)}; scan it again"
            )
        items = _numbers_as_names(self.n_items)
        agents: dict[str, Any] = {}
        if self.agent is not None and data.agent is not None:
            agents = {"agent": self.agent[data.agent], "agents": _numbers_as_names(self.n_agents)}
        if isinstance(data, Comparisons):
            return replace(data, i=self.item[data.i], j=self.item[data.j], items=items, **agents)
        coded = replace(data, item=self.item[data.item].astype(np.int32), items=items, **agents)
        return coded.completed() if getattr(self.base, "completes", False) else coded


@dataclass(frozen=True)
class MappedPiece(DerivedPiece):
    """The result of a function applied to the data of a piece."""

    make: Function
    call: tuple[int, tuple[Any, ...]]
    owner: str

    @cached_property
    def key(self) -> str:
        return f"{self.owner}-{self.base.key}"

    def load(self) -> Any:
        number, args = self.call
        return self.make(number, self.base.load(), *args)


LARGEST_DRAWN = 1e15
"""Counts beyond which a resampled count is taken as the count itself; NumPy draws none beyond 9e18."""


@dataclass(frozen=True)
class ResampledPiece(DerivedPiece):
    """Ballots of a piece with resampled weights: Poisson(weight) for whole weights, else weight times Poisson(1).

    ``agents``: a mask; weight times a multinomial count of the agent, the same in all pieces of equal ``entropy``.
    """

    entropy: tuple[int, ...]
    whole: bool
    agents: NDArray[np.bool_] | None = None

    @property
    def key(self) -> str:
        return f"drawn-{self.entropy}-{self.base.key}"

    def load(self) -> Any:
        data = CACHE.fetch(self.base)[0]
        rng = np.random.default_rng(np.random.SeedSequence(self.entropy))
        weight = data.weight
        if self.agents is not None:
            n, count = int(self.agents.sum()), np.zeros(len(self.agents))
            count[self.agents] = rng.multinomial(n, np.full(n, 1 / n))
            drawn = weight * count[data.agent]
        elif self.whole:
            drawn = rng.poisson(np.minimum(weight, LARGEST_DRAWN)).astype(np.float64)
            drawn = np.where(weight > LARGEST_DRAWN, weight, drawn)  # a Poisson number within 3e-8 of its mean
        else:
            drawn = weight * rng.poisson(1.0, len(weight))
        return replace(data, weight=drawn)


def summary_of(data: PartData, lists: NDArray[np.uint64] | None = None) -> list[PieceSummary]:
    """Summary of a part as a one-element list, so that adding the lists gives the summaries of all parts."""
    items: Names = ()
    agents, features, n_features = getattr(data, "agents", None), None, 0
    ordered = instances = scores = informative = False
    largest_grade = 0.0
    if isinstance(data, Comparisons):
        weight, n_rows, items = data.wins_i + data.wins_j + data.ties, len(data), data.items
        ordered = data.ordered
    elif isinstance(data, Rankings):
        weight, n_rows, items = data.weight, len(data.item), data.items
        instances, scores = data.instance is not None, data.score is not None
    elif isinstance(data, Queries):
        weight, n_rows = data.weight, len(data.grade)
        features, n_features = data.features, data.n_features
        largest_grade = float(data.grade.max(initial=0.0))
        same = (data.query[1:] == data.query[:-1]) & (data.weight[data.query[1:]] > 0)
        informative = bool((same & (data.grade[1:] != data.grade[:-1])).any())
    else:
        raise DataError(f"{type(data).__name__} cannot be worked on in parts; votes, ballots, ratings and queries can")
    found = PieceSummary(
        kind=type(data),
        items=items,
        agents=agents,
        features=features,
        n_features=n_features,
        n_lists=len(data),
        n_rows=n_rows,
        weight=float(weight.sum()),
        whole_weights=bool(np.array_equal(weight, np.floor(weight))),
        largest_grade=largest_grade,
        informative=informative,
        ordered=ordered,
        instances=instances,
        scores=scores,
        notes=data.notes,
        lists=lists,
    )
    return [found]


def _places(names: Sequence[Hashable], among: Names) -> Ints:
    if names == among:
        return np.arange(len(among))
    index = _index(among)
    return np.fromiter((index[name] for name in names), np.int64, len(names))


@lru_cache(maxsize=2)
def _index(names: Names) -> dict[Hashable, int]:
    return {name: k for k, name in enumerate(names)}


@lru_cache(maxsize=4)
def _numbers_as_names(n: int) -> Names:
    """Numbers as names; cached, so that all parts share one object."""
    return tuple(range(n))


def _refuse_mixed(pieces: Sequence[Piece], found: Sequence[PieceSummary]) -> None:
    """Refuse parts that differ in kind, agents, features or order, and ballots with instances."""
    for piece, one in zip(pieces, found):
        for what, own, first in (
            ("holds", one.kind.__name__, found[0].kind.__name__),
            ("names agents:", one.agents is not None, found[0].agents is not None),
            ("keeps who came first:", one.ordered, found[0].ordered),
            ("features are", (one.n_features, one.features), (found[0].n_features, found[0].features)),
        ):
            if own != first:
                raise DataError(
                    f"{piece.name} {what} {_short(own)}, and {pieces[0].name} {what} {_short(first)}; give all parts "
                    "the same columns"
                )
        if one.instances:
            raise DataError(
                f"{piece.name}: ballots that belong to instances are separate problems, each of which fits in memory; "
                "read them file by file with placet.read"
            )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _refuse_spans(pieces: Sequence[Piece], found: Sequence[PieceSummary]) -> None:
    """Refuse ballots or queries that span two parts."""
    span = first_span(found)
    if span is None:
        return
    a, b, key = span
    name = getattr(pieces[a], "list_named", lambda _: "a list")(key)
    raise DataError(
        f"{name} spans {pieces[a].name} and {pieces[b].name}; a ballot or query stands in one file: put its rows "
        "together, or give it two names"
    )


def first_span(found: Sequence[PieceSummary]) -> tuple[int, int, int] | None:
    """Two parts that contain the same list, and the hash of its name; None if there are none."""
    keys = [one.lists for one in found if one.lists is not None]
    if not keys:
        return None
    every = np.concatenate(keys)
    owner = np.repeat([k for k, one in enumerate(found) if one.lists is not None], [len(own) for own in keys])
    order = np.argsort(every, kind="stable")
    twice = np.flatnonzero(every[order][1:] == every[order][:-1])
    if not len(twice):
        return None
    at = int(twice[np.argmin(order[twice])])
    return int(owner[order[at]]), int(owner[order[at + 1]]), int(every[order[at]])


def _digest(*values: Any) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for value in values:
        digest.update(value if isinstance(value, bytes) else repr(value).encode())
        digest.update(b"\0")
    return digest.hexdigest()


__all__ = ["Log", "Parts", "Pass", "PieceSummary"]
