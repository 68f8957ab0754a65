"""Round-by-round record of an election count."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placet.data.arrays import Floats, Ints, Names

if TYPE_CHECKING:
    import polars as pl

HOPEFUL, ELECTED, ELIMINATED = 0, 1, 2
STATUS = ("hopeful", "elected", "eliminated")


@dataclass(frozen=True, eq=False)
class Round:
    """Votes (n,) and exhausted votes at the start of a round, the status (n,) of items after it, and its actions.

    ``exhausted`` is None if votes are not transferred.
    """

    votes: Floats
    exhausted: float | None
    status: Ints
    actions: dict[int, str]


@dataclass(frozen=True, eq=False, repr=False)
class Record:
    """The rounds of one count, or of several if ties can be broken in several ways.

    ``elected`` items are elected in every count, ``tied`` ones in some, or tie for the last seats; ``ways`` is the
    total number of counts, of which ``counts`` are kept; ``quota`` is that of the first round, or None.
    ``committees``: all sets of items that tie for the seats, for rules of committees.
    """

    items: Names
    counts: tuple[tuple[Round, ...], ...]
    elected: tuple[Hashable, ...]
    tied: tuple[Hashable, ...] = ()
    ways: int = 1
    quota: float | None = None
    committees: tuple[tuple[Hashable, ...], ...] = ()

    def rows(self) -> list[dict[str, object]]:
        """Count, round, item, votes, status and action of every item standing as a round starts, most votes first.

        The last row of a round has no item; it holds the exhausted votes, if votes are transferred.
        """
        rows: list[dict[str, object]] = []
        for number, count in enumerate(self.counts):
            standing = np.ones(len(self.items), np.bool_)
            for k, step in enumerate(count):
                head = {"count": number + 1, "round": k + 1}
                rows += [
                    head
                    | {
                        "item": self.items[i],
                        "votes": float(step.votes[i]),
                        "status": STATUS[step.status[i]],
                        "action": step.actions.get(int(i), ""),
                    }
                    for i in np.argsort(-step.votes, kind="stable")
                    if standing[i]
                ]
                if step.exhausted is not None:
                    rows.append(head | {"item": None, "votes": step.exhausted, "status": "exhausted", "action": ""})
                standing &= step.status != ELIMINATED
        return rows

    def to_dict(self) -> dict[str, object]:
        """The record as a dict for JSON."""
        head = {name: getattr(self, name) for name in ("elected", "tied", "quota", "ways")}
        tied = {"committees": self.committees} if self.committees else {}
        return head | tied | {"rounds": self.rows()}

    def to_frame(self) -> "pl.DataFrame":
        """The rows as a Polars frame."""
        import polars as pl

        kinds = {"count": pl.Int64, "round": pl.Int64, "votes": pl.Float64, "status": pl.String, "action": pl.String}
        return pl.DataFrame(self.rows(), schema_overrides=kinds, infer_schema_length=None)

    def renamed(self, items: Sequence[Hashable]) -> "Record":
        """The same record with other item names."""
        code = {name: k for k, name in enumerate(self.items)}
        names = tuple(items)
        groups = (self.elected, self.tied, *self.committees)
        elected, tied, *committees = (tuple(names[code[x]] for x in group) for group in groups)
        return replace(self, items=names, elected=elected, tied=tied, committees=tuple(committees))

    def __repr__(self) -> str:
        rounds = ", ".join(str(len(count)) for count in self.counts)
        tied = f", tied {list(self.tied)}" if self.tied else ""
        return f"Record(elected {list(self.elected)}{tied}{f', rounds {rounds}' if rounds else ''})"
