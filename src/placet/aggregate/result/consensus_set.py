"""The results of many problems at once: a mapping from the name of each to its result."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from placet.aggregate.result import display, result_tables
from placet.aggregate.result.result import Consensus
from placet.data import Rankings
from placet.data.arrays import plain_names

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class ConsensusSet(Mapping[Hashable, Consensus]):
    """A mapping from the name of each instance to its `Consensus`.

    ``set_notes`` concern the data as a whole; ``notes`` adds those of the instances, each kind once.  ``by`` is what
    instances are called in tables: slices of votes have the name of their column.

    >>> one = Consensus(("a", "b"), [1.0, 0.0], method="borda")
    >>> two = Consensus(("b", "c"), [2.0, 2.0], method="borda")
    >>> found = ConsensusSet({"cats": one, "dogs": two}, method="borda")
    >>> found
    ConsensusSet(borda: 2 instances, 4 items)
    >>> found["dogs"].ranking
    [('b', 'c')]
    >>> found.ranking
    {'cats': ['a', 'b'], 'dogs': [('b', 'c')]}
    """

    results: Mapping[Hashable, Consensus]
    method: str
    params: Mapping[str, object] = field(default_factory=dict)
    set_notes: tuple[str, ...] = ()
    by: str = "instance"

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("results", dict(self.results))
        put("params", dict(self.params))
        put("set_notes", tuple(self.set_notes))

    def with_note(self, note: str) -> "ConsensusSet":
        """The same results with one note more on the whole.

        Returns
        -------
        ConsensusSet
            The same results.

        >>> import placet
        >>> lists = placet.Rankings.from_orders([["a", "b"], ["y", "x"]], instance=["cats", "dogs"])
        >>> boards = placet.consensus(lists, "borda")
        >>> boards.with_note("a first try").set_notes
        ('a first try',)
        """
        return replace(self, set_notes=(note, *self.set_notes))

    def __getitem__(self, instance: Hashable) -> Consensus:
        try:
            return self.results[instance]
        except KeyError:
            raise KeyError(f"{self.by} {instance!r} is not among the {len(self)} {self.by}s") from None

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        items = sum(len(c.items) for c in self.values())
        notes = f", {len(self.notes)} notes" if self.notes else ""
        return f"{type(self).__name__}({self.method}: {len(self)} {self.by}s, {items} items{notes})"

    def _repr_html_(self) -> str:
        return display.html_tables(self)

    def plot(self, level: float = 0.95, most: int = 10) -> Any:
        """Plot the best ``most`` items of the first six instances by matplotlib; returns their axes.

        Returns
        -------
        array of Axes
            Those of matplotlib, one for each instance.
        """
        return display.plot_many(self, level, most)

    @property
    def ranking(self) -> dict[Hashable, list[Hashable]]:
        """The ranking of every instance."""
        return {name: c.ranking for name, c in self.items()}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes on the whole, then on instances: a note common to all once, others with the number of their instances.

        Notes that differ only in numbers, or in names after a colon, count as one kind, and only the first is shown.
        """
        kinds: Counter[str] = Counter()
        first: dict[str, tuple[Hashable, str]] = {}
        texts: dict[str, set[str]] = {}
        for name, c in self.items():
            for note in c.notes:
                kind = re.sub(r"[0-9][0-9.,e+-]*", "#", note.partition(": ")[0])
                kinds[kind] += 1
                first.setdefault(kind, (name, note))
                texts.setdefault(kind, set()).add(note)
        found = list(self.set_notes)
        for kind, count in kinds.items():
            name, note = first[kind]
            everywhere = count == len(self) and len(texts[kind]) == 1
            those = f"All {count}" if count == len(self) else f"{count} of {len(self)}"
            such = name if count == 1 else f"as in {name}"
            found.append(note if everywhere else f"{those} {self.by}s ({such}): {note}")
        return tuple(found)

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A Polars frame, instance by instance and best first: ``by``, then the columns of `Consensus.to_frame`.

        Returns
        -------
        DataFrame
            A row per item of each instance (Polars); ``to_pandas`` gives the same for pandas.

        >>> import placet
        >>> lists = placet.Rankings.from_orders([["a", "b"], ["y", "x"]], instance=["cats", "dogs"])
        >>> boards = placet.consensus(lists, "borda")
        >>> boards.to_frame().select("instance", "item", "rank").rows()
        [('cats', 'a', 1), ('cats', 'b', 2), ('dogs', 'y', 1), ('dogs', 'x', 2)]
        """
        import polars as pl

        names = [name for name, c in self.items() for _ in c.items]
        frame = result_tables.frame(list(self.values()), level)
        return frame.insert_column(0, pl.Series(self.by, plain_names(names)))

    def with_min_support(self, minimum: float) -> "ConsensusSet":
        """Every instance without items whose support in it is below ``minimum``; instances left empty are dropped.

        Returns
        -------
        ConsensusSet
            The instances that have such items.

        >>> import placet
        >>> lists = placet.Rankings.from_orders([["a", "b"], ["y", "x"]], instance=["cats", "dogs"])
        >>> boards = placet.consensus(lists, "borda")
        >>> len(boards.with_min_support(2))
        0
        """
        enough = {name: c for name, c in self.items() if c.support is None or (c.support >= minimum).any()}
        notes = self.set_notes
        if len(enough) < len(self):
            notes += (f"{len(self) - len(enough)} instances have no item with support of {minimum:g} and are left out",)
        return replace(self, results={name: c.with_min_support(minimum) for name, c in enough.items()}, set_notes=notes)

    def to_rankings(self) -> Rankings:
        """One ballot with scores for each instance, as written to a TREC run.

        Returns
        -------
        Rankings
            A ballot for each instance.

        >>> import placet
        >>> lists = placet.Rankings.from_orders([["a", "b"], ["y", "x"]], instance=["cats", "dogs"])
        >>> boards = placet.consensus(lists, "borda")
        >>> boards.to_rankings().orders()
        [['a', 'b'], ['y', 'x']]
        """
        return result_tables.as_ballots(list(self.values()), list(self))
