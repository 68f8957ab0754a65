"""``placet describe --surprise``: which ballots matter."""

from typing import TYPE_CHECKING, Any

from placet.cli.common.console_output import say

if TYPE_CHECKING:
    import polars as pl

    from placet.data import Comparisons, Rankings

SHOWN = 20


def surprise_table(data: Any, method: str) -> "pl.DataFrame":
    """A table with one row per voter, the most surprising first; its meaning is explained on stderr."""
    import polars as pl

    from placet.aggregate.influence import leave_one_out, surprise, voter_names
    from placet.data import Comparisons, DataError, Rankings

    if not isinstance(data, Rankings | Comparisons):
        raise DataError(f"--surprise looks at ballots or votes, not at {type(data).__name__}")
    chosen = method or ("bradley-terry" if isinstance(data, Comparisons) else "plackett-luce")
    found, without = surprise(data, chosen), leave_one_out(data, chosen)
    say(
        f"{chosen}: about {found.share:.1%} of voters agree with the rest no more than chance would; evidence below 0 "
        "is less than a random ballot has"
    )
    if without.decisive:
        say(f"without any one of {len(without.decisive)} voters, {_names(without.winners)} would not come first")
    first = [_names(names) for names in without.first]
    columns: dict[str, Any] = {
        "voter": voter_names(found.voters, len(found.count)),
        "count": found.count,
        "surprise": found.surprise,
        "evidence": found.evidence,
        "random": found.random,
        "first_without": first,
        "gap": without.gap,
        "said": _ballot_texts(data),
    }
    return pl.DataFrame({k: v for k, v in columns.items() if v is not None}).sort("evidence", maintain_order=True)


def _names(names: Any) -> str:
    return " = ".join(map(str, names))


def _ballot_texts(data: "Rankings | Comparisons") -> list[str] | None:
    """The ballots as text, if each ballot is a voter."""
    from placet.data import Rankings

    if not isinstance(data, Rankings) or data.agent is not None:
        return None
    return [" > ".join(_names(entry) if isinstance(entry, tuple) else str(entry) for entry in o) for o in data.orders()]
