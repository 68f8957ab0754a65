"""``placet describe`` and ``placet convert``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from placet.cli.output import READ_HELP, parameters, say, show_json, show_table

OnError = Literal["raise", "skip"]


def read_files(files: Sequence[Path], format: str, options: Sequence[str], on_error: OnError = "raise") -> Any:
    """What the files hold, read as one; what they were read as is said on stderr."""
    from placet.io import read

    source = files[0] if len(files) == 1 else list(files)
    data = read(source, format or None, on_error=on_error, **parameters(list(options)))
    for note in getattr(data, "notes", ()):
        say(note)
    return data


def describe(
    files: Annotated[list[Path], typer.Argument(help="Files to read as one; a folder; - for standard input.")],
    format: Annotated[str, typer.Option(help="Format of the files; guessed if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option("--read", "-r", help=READ_HELP)] = None,
    on_error: Annotated[OnError, typer.Option(help="raise, or skip (what is left out is counted and said).")] = "raise",
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Say what is in files: counts, ties, coverage, connectedness, lists that teach nothing."""
    about = read_files(files, format, option or [], on_error).describe()
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
    from placet.io import write

    data = read_files([source], from_format, option or [], on_error)
    write(data, target, format=to_format or None)
    say(f"{target}: {data!r}")
