"""Several sources of evidence about the same items: votes of people, votes of a judge, ballots, score tables."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from placet.data.arrays import Ints, Names, distinct, set_columns
from placet.data.comparisons import Comparisons
from placet.data.errors import DataError, as_choices
from placet.data.parts import DerivedPiece, Parts
from placet.data.rankings import Rankings
from placet.data.scores import Scores

MOST_NAMED = 5


@dataclass(frozen=True, eq=False, repr=False)
class Sources(Mapping[Hashable, Any]):
    """A mapping of names to votes, ballots or score tables (or `Parts` of the first two) about the same items.

    ``target`` is the source whose opinion is asked for; the others count as far as they agree with it.  Without a
    target, what the sources have in common is asked for.  ``paired``: agents of votes are ids of the answers that were
    compared, so that votes of two sources with the same agent and items are about the same answers, and their errors
    are correlated.  ``item_names`` are those of all sources, matched by name, the target's first.

    >>> human = Comparisons.from_battles(["x", "y"], ["y", "z"], ["a", "a"])
    >>> judge = Comparisons.from_battles(["x", "y"], ["z", "x"], ["a", "b"])
    >>> Sources({"human": human, "judge": judge}, target="human")
    Sources(human (target): 2 votes, judge: 2 votes; 3 items)
    """

    data: Mapping[Hashable, Any]
    target: Hashable = None
    paired: bool = False
    item_names: Names = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.data, Mapping) or not self.data:
            raise DataError('no sources; give a mapping of names to data, such as {"human": votes, "judge": judged}')
        for name, part in self.data.items():
            kind = part.kind if isinstance(part, Parts) else type(part)
            if kind not in (Comparisons, Rankings, Scores):
                raise TypeError(f"source {name!r} is {kind.__name__}; votes, ballots or a score table are needed")
            if len(part.items) < 2:
                found = f"source {name!r} has {len(part.items)} item"
                raise DataError(f"{found}; a source compares at least two, so leave it out")
        if self.target is not None and self.target not in self.data:
            raise DataError(f"target {self.target!r} is not a source; choose from {as_choices(self.data)}")
        if self.paired and self.target is None:
            raise DataError("paired sources need a target, whose votes are paired with those of a judge; name it")
        first = [self.data[self.target].items] if self.target is not None else []
        names = distinct([*first, *(part.items for part in self.data.values())])
        set_columns(self, data=dict(self.data), item_names=names)
        self._refuse_apart()

    @classmethod
    def of_tasks(cls, data: "Scores | Mapping[Hashable, Any]", target: Hashable = None) -> "Sources":
        """The tasks of a score table as sources of their own, each with the items that it has scores of.

        A mapping of names to data keeps its other sources; a task whose name is taken gets that of its table before it.

        Returns
        -------
        Sources
            One source for each task.

        >>> table = Scores.from_table([[0.5, 0.2], [0.7, np.nan], [0.1, 0.3]], items=list("xyz"), tasks=["a", "b"])
        >>> Sources.of_tasks(table, target="b")
        Sources(a: 3 scores, b (target): 2 scores; 3 items)
        """
        if isinstance(data, Scores):
            return cls(_tasks(data), target)
        found: dict[Hashable, Any] = {name: part for name, part in data.items() if not isinstance(part, Scores)}
        for name, part in data.items():
            for task, own in _tasks(part).items() if isinstance(part, Scores) else ():
                found[f"{name} {task}" if task in found else task] = own
        return cls(found, target)

    @classmethod
    def of_agents(cls, data: "Comparisons | Rankings | Parts", target: Hashable = None) -> "Sources":
        """What each agent says as a source of its own, with the items that it compared; in memory or in parts.

        Votes in parts are counted in one pass; ballots in parts stay in parts.

        Returns
        -------
        Sources
            One source for each agent.

        >>> votes = Comparisons.from_battles("xyx", "yzy", ["a", "a", "b"], agent=["human", "human", "judge"])
        >>> Sources.of_agents(votes, target="human")
        Sources(human (target): 2 votes, judge: 1 votes; 3 items)
        """
        if data.agents is None:
            raise DataError("the data do not say who judged; read them with agent=, the column of the sources")
        if isinstance(data, Parts) and data.kind is Comparisons:
            data = data.with_names(data.sum(_itself, name="counts"), notes=data.notes)
        if isinstance(data, Parts):
            return cls({name: _parts_of_agent(data, name) for name in data.agents or ()}, target)
        return cls({name: own_of_agent(data, name) for name in data.agents or ()}, target)

    def _refuse_apart(self) -> None:
        """Raise a `DataError` for sources whose items are joined by no other source."""
        first, *others = self.data
        seen = set(self.data[first].items)
        while others:
            joined = [name for name in others if seen & set(self.data[name].items)]
            if not joined:
                raise DataError(
                    f"source {others[0]!r} has no item in common with {first!r}, not even through other sources "
                    f"({self.data[others[0]].items[0]!r}, ... against {self.data[first].items[0]!r}, ...); "
                    "check the spelling of the items, or aggregate it alone"
                )
            seen = seen.union(*(self.data[name].items for name in joined))
            others = [name for name in others if name not in joined]

    def __getitem__(self, name: Hashable) -> Any:
        return self.data[name]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def n_items(self) -> int:
        return len(self.item_names)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all sources, and which items are in one source only."""
        found = [note if len(self) == 1 else f"{name}: {note}" for name, part in self.items() for note in part.notes]
        if len(self) > 1:
            owners: dict[Hashable, list[Hashable]] = {item: [] for item in self.item_names}
            for name, part in self.items():
                for item in part.items:
                    owners[item].append(name)
            for name in self:
                alone = [str(item) for item, own in owners.items() if own == [name]]
                if alone:
                    more = f" and {len(alone) - MOST_NAMED} more" if len(alone) > MOST_NAMED else ""
                    found.append(f"only {name} has {', '.join(alone[:MOST_NAMED])}{more}")
        return tuple(dict.fromkeys(found))

    def index(self, name: Hashable) -> Ints:
        """(items of the source,): their numbers among all items.

        Returns
        -------
        array of int
            The numbers of the items.

        >>> import placet
        >>> sources = placet.simulate.judged_votes([1.0, 0.0, -1.0], 200, 800, items="abc")
        >>> sources.index("judge")
        array([0, 1, 2])
        """
        number = {item: k for k, item in enumerate(self.item_names)}
        return np.array([number[item] for item in self.data[name].items], np.int64)

    def without(self, name: Hashable) -> "Sources":
        """The other sources; without the target, what they have in common is asked for.

        Returns
        -------
        Sources
            All sources but this one.

        >>> import placet
        >>> sources = placet.simulate.judged_votes([1.0, 0.0, -1.0], 200, 800, items="abc")
        >>> sources.without("judge")
        Sources(human (target): 200 votes; 3 items)
        """
        rest = {other: part for other, part in self.data.items() if other != name}
        target = None if name == self.target else self.target
        return Sources(rest, target, self.paired and target is not None and len(rest) > 1)

    def describe(self) -> dict[str, Any]:
        """Counts of items and sources, and how much evidence each source has.

        Returns
        -------
        dict
            Fact -> value.

        >>> import placet
        >>> sources = placet.simulate.judged_votes([1.0, 0.0, -1.0], 200, 800, items="abc")
        >>> sources.describe()["items"], sources.describe()["sources"]
        (3, 2)
        """
        about: dict[str, Any] = {"kind": "sources", "items": self.n_items, "sources": len(self)}
        return about | {f"source {name}": amount(part) for name, part in self.items()} | {"target": self.target}

    def __repr__(self) -> str:
        told = [f"{name}{' (target)' if name == self.target else ''}: {amount(part)}" for name, part in self.items()]
        return f"Sources({', '.join(told)}; {self.n_items} items)"


def own_of_agent(data: "Comparisons | Rankings", name: Hashable) -> Any:
    """The votes or ballots of one agent, with the items that it compared."""
    own: Any = dict(data.by_agent())[name]
    if isinstance(own, Rankings):
        own = replace(own, agent=None, agents=None)
        return own.restricted([own.items[k] for k in np.unique(own.item)])
    seen, code = np.unique(np.concatenate([own.i, own.j]), return_inverse=True)
    i, j = np.split(code, 2)
    return replace(own, i=i, j=j, agent=None, agents=None, items=tuple(own.items[k] for k in seen))


@dataclass(frozen=True)
class AgentPiece(DerivedPiece):
    """What one agent says in a piece."""

    agent: Hashable

    @property
    def key(self) -> str:
        return f"agent-{self.agent!r}-{self.base.key}"

    def load(self) -> Any:
        return own_of_agent(self.base.load(), self.agent)


def _parts_of_agent(parts: Parts, name: Hashable) -> Parts:
    """The ballots of one agent, from the pieces that have any, before these were recoded."""
    pairs = zip(parts.pieces, parts.summaries)
    own = [AgentPiece(getattr(piece, "base", piece), name) for piece, one in pairs if name in (one.agents or ())]
    return Parts.from_pieces(own, parts.engine)


def _itself(data: Comparisons) -> Comparisons:
    return data


def _tasks(scores: Scores) -> dict[Hashable, Scores]:
    """Every task of a table as a table of its own."""
    found: dict[Hashable, Scores] = {}
    for t, task in enumerate(scores.tasks):
        column = scores.task == t
        value = scores.value[:, column]
        there = np.flatnonzero((~np.isnan(value)).sum(axis=1))
        items = tuple(scores.items[i] for i in there)
        questions = None
        if scores.questions is not None:
            questions = tuple(name for name, own in zip(scores.questions, column) if own)
        found[task] = Scores(value[there], np.zeros(int(column.sum()), np.int64), items, (task,), questions)
    return found


def amount(part: Any) -> str:
    """How much evidence a source has, in words."""
    if isinstance(part, Parts):
        return f"{len(part)} parts"
    n = evidence_count(part)
    return (
        f"{n:.10g} {'votes' if isinstance(part, Comparisons) else 'scores' if isinstance(part, Scores) else 'ballots'}"
    )


def evidence_count(part: Any) -> float:
    """The number of votes, ballots (by weight) or cells of a score table."""
    if isinstance(part, Comparisons):
        return float((part.wins_i + part.wins_j + part.ties).sum())
    if isinstance(part, Scores):
        return float((~np.isnan(part.by_task())).sum())
    if isinstance(part, Parts):
        return float(part.weight)
    return float(part.weight.sum())
