"""The answer to "how few votes would change it?": a set of votes for every claim, as tables and words."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from placet.aggregate.proof.claims import Claim, place_name

if TYPE_CHECKING:
    import polars as pl

ChangeHow = Literal["removed", "changed"]
HOWS: tuple[ChangeHow, ...] = ("removed", "changed")


@dataclass(frozen=True, eq=False)
class FragileClaim:
    """A claim, and a removal that changes it.

    ``count``: how many votes (ballots, voters, ...) are removed, None if no removal was found that changes the claim.
    ``exact``: whether it is proved that no smaller removal does; else ``count`` is an upper bound.  ``removed``: what
    is removed, one row per kind with its number.  ``after``: what the result claims instead.
    """

    claim: Claim
    count: int | None
    exact: bool
    removed: tuple[dict[str, Any], ...] = ()
    take: Any = None
    after: tuple[Hashable, ...] = ()


@dataclass(frozen=True, eq=False)
class Fragility:
    """How few things, removed, would change what a result claims; one entry of ``claims`` for each claim.

    ``unit``: what is removed ("vote", "ballot", "voter", "task", "day", "judge"); ``total``: how many there are.
    ``refits``: how often the method was run again.  ``how``: what happens to them, "removed" or "changed".
    """

    goal: str
    method: str
    unit: str
    total: int
    claims: tuple[FragileClaim, ...]
    refits: int
    notes: tuple[str, ...] = ()
    how: ChangeHow = "removed"

    @property
    def count(self) -> int | None:
        """The fewest that change any of the claims; None if no removal was found."""
        known = [one.count for one in self.claims if one.count is not None]
        return min(known) if known else None

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame with a row per claim: claim, count, share of all, exact."""
        import polars as pl

        rows = [
            (c.claim.words(), c.count, None if c.count is None else c.count / self.total, c.exact) for c in self.claims
        ]
        names = {"claim": pl.String, f"{self.unit}s": pl.Int64, "share": pl.Float64, "exact": pl.Boolean}
        return pl.DataFrame(rows, schema=names, orient="row")

    def removed_frame(self) -> "pl.DataFrame":
        """A Polars frame of what is removed for each claim: claim, the thing, its number."""
        import polars as pl

        rows = [{"claim": one.claim.words(), **row} for one in self.claims for row in one.removed]
        return pl.DataFrame(rows, schema=None if rows else {"claim": pl.String}, infer_schema_length=None)

    def sentences(self) -> list[str]:
        """A sentence per claim, such as "a is first: 3 of 40 votes decide it"."""
        return [self._sentence(one) for one in self.claims]

    def _sentence(self, one: FragileClaim) -> str:
        if one.count is None:
            what = "removal" if self.how == "removed" else "change"
            return f"{one.claim.words()}: no {what} of {self.unit}s was found that changes it"
        few = "" if one.exact else "at most "
        verb = "decides" if one.count == 1 else "decide"
        if self.how == "changed":
            return f"{one.claim.words()}: {few}{one.count:,} of {self._all()}, changed, {verb} it"
        return f"{one.claim.words()}: {few}{one.count:,} of {self._all()} {verb} it"

    def _all(self) -> str:
        return f"{self.total:,} {self.unit}{'' if self.total == 1 else 's'}"

    def place_words(self) -> str:
        """For goals "best" and "place": the answer as a sentence on the place, such as "One of 7 voters decides the
        third place"; empty if no removal was found.
        """
        if not self.claims or self.claims[0].count is None:
            return ""
        one = self.claims[0]
        if one.count == 1:
            return f"One of {self._all()} decides {place_name(one.claim.k)}"
        few = f"{one.count:,}" if one.exact else f"At most {one.count:,}"
        return f"{few} of {self._all()} decide {place_name(one.claim.k)}"

    def __repr__(self) -> str:
        return f"Fragility({'; '.join(self.sentences()[:3])}{'; ...' if len(self.claims) > 3 else ''})"

    def to_dict(self, *, voters: bool = True) -> dict[str, Any]:
        """The answer as plain values, for JSON; without ``voters`` it does not say who gave a vote."""
        hidden = () if voters or self.unit not in ("vote", "ballot") else ("voter",)
        claims = [
            {"claim": c.claim.words(), "items": sorted(map(str, c.claim.items)), "count": c.count, "exact": c.exact}
            | {
                "removed": [
                    {name: _plain(value) for name, value in row.items() if name not in hidden} for row in c.removed
                ]
            }
            for c in self.claims
        ]
        return {"goal": self.goal, "unit": self.unit, "total": self.total, "claims": claims, "notes": list(self.notes)}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
