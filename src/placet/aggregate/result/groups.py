"""The result of a mixture: a consensus for every group of voters, the groups' shares, and each voter's membership."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placet.aggregate.result.consensus_set import ConsensusSet
from placet.data.arrays import Floats, Ints, frozen

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Tried:
    """One candidate number of groups: log likelihood, BIC, and mean held-out log likelihood per voter."""

    groups: int
    log_likelihood: float
    bic: float
    valid: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Groups(ConsensusSet):
    """A `Consensus` for every group of voters; groups are numbered 1, 2, ... by decreasing share.

    ``shares`` and ``share_stderr`` (k,); ``membership`` (voters, k) are the posterior probabilities that each voter
    belongs to each group; ``voters`` are the names of agents, or None if each voter is a ballot (``count`` is then its
    weight).  ``log_likelihood`` is that of all voters, without the priors of the scores; ``bic`` is
    -2 log_likelihood + n_parameters log(voters).  ``tried`` are the candidate numbers of groups from which k was
    chosen.  ``trace`` is the objective after each EM round of the final run, log likelihood plus log priors.

    >>> import placet
    >>> ballots = placet.Rankings.from_orders([["a", "b", "c", "d"]] * 20 + [["d", "c", "b", "a"]] * 10)
    >>> found = placet.consensus(ballots, placet.aggregate.Mixture("plackett-luce", 2, random_state=0))
    >>> found.shares.round(2), found[1].ranking, found[2].ranking
    (array([0.67, 0.33]), ['a', 'b', 'c', 'd'], ['d', 'c', 'b', 'a'])
    """

    by: str = "group"
    shares: Floats = None  # type: ignore[assignment]
    share_stderr: Floats | None = None
    membership: Floats = None  # type: ignore[assignment]
    voters: tuple[Hashable, ...] | None = None
    count: Floats = None  # type: ignore[assignment]
    log_likelihood: float = np.nan
    n_parameters: int = 0
    converged: bool = True
    tried: tuple[Tried, ...] = ()
    trace: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("shares", "count"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))
        self.membership.flags.writeable = False

    @property
    def bic(self) -> float:
        """-2 log likelihood + parameters log(voters); lower is better."""
        return bic(self.log_likelihood, self.n_parameters, float(self.count.sum()))

    @property
    def likeliest(self) -> Ints:
        """Number (voters,), from 1, of the most probable group of each voter."""
        return np.argmax(self.membership, axis=1) + 1

    @property
    def certainty(self) -> float:
        """Mean over voters of the largest membership: 1 if all groups are certain, 1/k if none is."""
        total = float(self.count.sum())
        return float(self.count @ self.membership.max(axis=1)) / total if total > 0 else np.nan

    def summary(self) -> list[dict[str, object]]:
        """A row per group: number, share and standard error, count of voters most likely in it, and best items."""
        sizes = np.bincount(self.likeliest, self.count, len(self) + 1)[1:]
        errors = [None] * len(self) if self.share_stderr is None else self.share_stderr.tolist()
        return [
            {
                "group": g,
                "share": float(self.shares[k]),
                "share_stderr": errors[k],
                "voters": float(sizes[k]),
                "first": " > ".join(_entry_text(entry) for entry in c.ranking[:3]),
            }
            for k, (g, c) in enumerate(self.items())
        ]

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A Polars frame by group, best items first: group, share, then the columns of `Consensus.to_frame`."""
        import polars as pl

        frame = super().to_frame(level)
        share = np.repeat(self.shares, [len(c.items) for c in self.values()])
        return frame.insert_column(1, pl.Series("share", share))

    def with_min_support(self, minimum: float) -> "Groups":
        """Every group without the items whose support in it is below ``minimum``."""
        return replace(self, results={g: c.with_min_support(minimum) for g, c in self.items()})

    def membership_frame(self) -> "pl.DataFrame":
        """A Polars frame with a row per voter: voter (agent, or ballot number from 0), count, most probable group, and
        the probability of each group.
        """
        import polars as pl

        names = range(len(self.count)) if self.voters is None else [str(name) for name in self.voters]
        columns = {"voter": pl.Series(list(names)), "count": pl.Series(self.count), "group": pl.Series(self.likeliest)}
        columns |= {f"group {k + 1}": pl.Series(self.membership[:, k]) for k in range(len(self))}
        return pl.DataFrame(columns)

    def to_dict(self) -> dict[str, object]:
        """Groups, candidate numbers of groups and voters as a JSON-compatible dict."""
        voters = list(range(len(self.count))) if self.voters is None else [str(name) for name in self.voters]
        return {
            "groups": self.summary(),
            "log_likelihood": self.log_likelihood,
            "bic": self.bic,
            "converged": self.converged,
            "tried": [vars(one) for one in self.tried],
            "voters": [
                {"voter": voters[n], "count": float(self.count[n]), "membership": self.membership[n].tolist()}
                for n in range(len(voters))
            ],
        }


def bic(log_likelihood: float, n_parameters: int, voters: float) -> float:
    """Schwarz's criterion: -2 log likelihood + parameters log(voters)."""
    return -2 * log_likelihood + n_parameters * float(np.log(max(voters, 1.0)))


def _entry_text(entry: object) -> str:
    return " = ".join(map(str, entry)) if isinstance(entry, tuple) else str(entry)
