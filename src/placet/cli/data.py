"""``placet describe`` and ``placet convert``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from placet.cli.output import READ_HELP, parameters, say, show_json, show_table

OnError = Literal["raise", "skip"]


def describe(
    file: Annotated[Path, typer.Argument(help="Any file that Placet reads.")],
    format: Annotated[str, typer.Option(help="Format of the file; guessed if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option("--read", "-r", help=READ_HELP)] = None,
    on_error: Annotated[OnError, typer.Option(help="raise, or skip (what is left out is counted and said).")] = "raise",
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Say what is in a file: counts, ties, coverage, connectedness, lists that teach nothing."""
    from placet.io import read

    about = read(file, format or None, on_error=on_error, **parameters(option or [])).describe()
    known = {key: value for key, value in about.items() if value is not None}
    show_json(known) if as_json else show_table(["what", "value"], list(known.items()))


def convert(
    source: Annotated[Path, typer.Argument(help="Any file that Placet reads.")],
    target: Annotated[Path, typer.Argument(help="File to write; its ending chooses the format.")],
    from_format: Annotated[str, typer.Option("--from", help="Format of the source; guessed if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option("--read", "-r", help=READ_HELP)] = None,
    to_format: Annotated[str, typer.Option("--to", help="Format of the target; by its ending if not given.")] = "",
    on_error: Annotated[OnError, typer.Option(help="raise, or skip (what is left out is counted and said).")] = "raise",
) -> None:
    """Read a file in one format and write it in another."""
    from placet.io import read, write

    data = read(source, from_format or None, on_error=on_error, **parameters(option or []))
    write(data, target, format=to_format or None)
    say(f"{target}: {data!r}")
