"""``placet describe``: what files hold, and with --surprise which voters agree with the rest."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import check_suffix, deliver, progress_bar, say
from placet.cli.common.options import AsJson, FormatName, Out, reads
from placet.cli.common.read_files import read_as_one

if TYPE_CHECKING:
    import polars as pl

    from placet.data import Comparisons, Rankings


@reads()
def describe(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="A file, several to read as one, or a folder; - for standard input."),
    ],
    format: FormatName = "",
    out: Out = None,
    as_json: AsJson = False,
    surprise: Annotated[
        bool, typer.Option("--surprise", help="How well each voter fits, and what it decides.")
    ] = False,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help="With --surprise: the model of the voters.")
    ] = "",
    *,
    reading: dict[str, Any],
) -> None:
    """Describe what files hold: how many votes, ties, items and pairs, and whether wins connect all items.

    Items are in one group if chains of wins lead from each of them to every other. With more groups than one, the
    votes alone do not say how far apart the groups are.

    With --surprise: one row per voter, those who agree least with the rest first.
    """
    check_suffix(out)
    if method and not surprise:
        raise ValueError("--method is for --surprise; placet aggregate ranks by a method")
    data = read_as_one(files, format, reading)
    if surprise:
        with progress_bar("voters"):
            frame = _surprise_table(data, method)
        deliver(out, as_json, frame.columns, frame.rows(), frame.to_dicts())
        return
    from placet.io.several_files import kind_of
    from placet.metrics.interrater import describe_agreement

    with progress_bar("counting"):
        about = {"kind": "", **data.describe(), "agreement": describe_agreement(data) or None}
    about["kind"] = kind_of(data)
    known = {key: value for key, value in about.items() if value is not None}
    deliver(out, as_json, ["what", "value"], list(known.items()), known)


def _surprise_table(data: Any, method: str) -> "pl.DataFrame":
    """A table with one row per voter, the most surprising first; its meaning is explained on stderr."""
    import polars as pl

    from placet.aggregate.defaults import BALLOTS, VOTES
    from placet.aggregate.influence import leave_one_out, surprise, voter_names
    from placet.data import Comparisons, DataError, Rankings
    from placet.io.several_files import kind_of

    if not isinstance(data, Rankings | Comparisons):
        raise DataError(f"--surprise looks at ballots or votes, not at {kind_of(data)}")
    chosen = method or (VOTES if isinstance(data, Comparisons) else BALLOTS).name
    found, without = surprise(data, chosen), leave_one_out(data, chosen)
    say(
        f"{found.method}: about {found.share:.1%} of voters agree with the rest no more than chance would; evidence "
        "below 0 is less than a random ballot has"
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
