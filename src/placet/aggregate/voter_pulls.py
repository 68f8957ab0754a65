"""Which voters pull which items, and which voters vote alike beyond chance."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placet.aggregate.defaults import default_of
from placet.aggregate.influence import leave_one_out, voter_names
from placet.aggregate.proof.coordinated_voters import CoordinatedVoters, coordinated_voters
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats

if TYPE_CHECKING:
    import polars as pl

MOST_SAID = 3
DIGITS = 12
TINY = 10.0**-DIGITS
"""A pull that is only a rounding error."""


@dataclass(frozen=True, eq=False)
class InfluenceMap:
    """What every voter does to every item.

    ``pull`` (voters, n_items): the score of the item, over the mean of all items, less that without the voter; above 0,
    the voter pulls it up.  ``count`` (voters,): votes or ballots.  ``voters``: names of agents, or None for ballots.
    ``coordinated``: groups of voters that vote alike beyond chance; None for ballots.
    """

    method: str
    items: tuple[Hashable, ...]
    voters: tuple[Hashable, ...] | None
    count: Floats
    pull: Floats
    coordinated: CoordinatedVoters | None
    notes: tuple[str, ...] = ()

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame, strongest voters first: voter, count, the item pulled up most (up) and how far, the one
        pulled down most (down) and how far, both null where no item is, and the voter's group (from 1; null for none).
        """
        import polars as pl

        names = voter_names(self.voters, len(self.count))
        columns: dict[str, Any] = {"voter": names, "count": self.count}
        for name, sign in (("up", 1.0), ("down", -1.0)):
            best = [int(row.argmax()) if (row > TINY).any() else None for row in sign * self.pull]
            far = [None if k is None else float(row[k]) for row, k in zip(self.pull, best)]
            columns[name] = pl.Series([None if k is None else str(self.items[k]) for k in best], dtype=pl.String)
            columns[f"{name}_by"] = pl.Series(far, dtype=pl.Float64)
        group = self._group_of()
        columns["group"] = pl.Series([group.get(name) for name in names], dtype=pl.Int64)
        order = np.argsort(-np.abs(self.pull).max(axis=1, initial=0.0).round(DIGITS), kind="stable")
        return pl.DataFrame(columns)[order]

    def pulls_frame(self) -> "pl.DataFrame":
        """A Polars frame with a row per voter and item, strongest first: voter, item, pull."""
        import polars as pl

        voter, item = np.divmod(
            np.argsort(-np.abs(self.pull).round(DIGITS), axis=None, kind="stable"), max(len(self.items), 1)
        )
        names = voter_names(self.voters, len(self.count))
        return pl.DataFrame(
            {
                "voter": [names[v] for v in voter],
                "item": [str(self.items[k]) for k in item],
                "pull": self.pull[voter, item],
            }
        )

    def sentences(self) -> list[str]:
        """The strongest pulls and the groups, in words."""
        said = [
            f"{voter} pulls {item} {'up' if pull > 0 else 'down'} by {abs(pull):.3g}"
            for voter, item, pull in self.pulls_frame().head(MOST_SAID).rows()
            if abs(pull) > TINY
        ]
        return [*said, *(self.coordinated.sentences() if self.coordinated is not None else ()), *self.notes]

    def _group_of(self) -> dict[Any, int]:
        groups = self.coordinated.groups if self.coordinated is not None else ()
        return {str(voter): k for k, group in enumerate(groups, 1) for voter in group.voters}


def influence_map(
    data: Rankings | Comparisons, method: str | None = None, *, level: float = 0.95, **params: Any
) -> InfluenceMap:
    """Which voters pull which items, and in votes on pairs, which voters vote alike beyond chance.

    The result without each voter is counted anew for rules, and is by one Newton step for models (`leave_one_out`).
    Anyone is named as coordinated falsely with a chance of at most 1 - ``level``.  Not seen are voters who plan
    together but judge different pairs of items.

    Parameters
    ----------
    data : votes or ballots
    method, **params : as for `placet.consensus`
    level : confidence level of the groups

    Returns
    -------
    InfluenceMap
        What each voter pulls up and down, and the groups of voters that vote alike.

    Examples
    --------
    >>> votes = Comparisons.from_battles("aaabb", "bbbcc", ["a", "a", "b", "a", "b"], agent=["u", "v", "w", "u", "w"])
    >>> found = influence_map(votes, "borda")
    >>> found.to_frame().select("voter", "up", "down").rows()
    [('u', 'a', 'c'), ('v', 'a', 'b'), ('w', 'b', 'a')]
    """
    if not isinstance(data, Rankings | Comparisons):
        raise DataError("an influence map is made of votes or ballots, not of score tables or several sources")
    chosen = default_of(data).method if method is None else method
    without = leave_one_out(data, chosen, **params)
    pull = without.overall - without.scores
    pull -= pull.mean(axis=1, keepdims=True)
    coordinated, notes = None, list(without.notes)
    if isinstance(data, Comparisons):
        coordinated = coordinated_voters(data, level=level)
    else:
        notes.append("voters that vote alike are looked for in votes on pairs only, as the places on a ballot depend")
    return InfluenceMap(
        without.method, without.items, without.voters, _votes(data, without.count), pull, coordinated, tuple(notes)
    )


def _votes(data: Rankings | Comparisons, ballots: Floats) -> Floats:
    """(voters,): votes or ballots of each."""
    if data.agent is None or data.agents is None:
        return ballots
    votes = data.wins_i + data.wins_j + data.ties if isinstance(data, Comparisons) else data.weight
    return np.bincount(data.agent, votes, len(data.agents)).astype(np.float64)
