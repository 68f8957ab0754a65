"""``placet convert``: a file in another format."""

from pathlib import Path
from typing import Annotated, Any

import typer

from placet.cli.common.console_output import progress_bar, say
from placet.cli.common.options import check_target, complete_formats, reads
from placet.cli.common.read_files import read_as_one


@reads()
def convert(
    source: Annotated[Path, typer.Argument(help="Any file that Placet reads.")],
    target: Annotated[
        Path | None, typer.Argument(callback=check_target, help="File to write; its ending chooses the format.")
    ] = None,
    out: Annotated[Path | None, typer.Option(callback=check_target, help="Same as TARGET.")] = None,
    from_format: Annotated[
        str,
        typer.Option(
            "--from", "--format", help="Format of the source; guessed if not given.", autocompletion=complete_formats
        ),
    ] = "",
    to_format: Annotated[
        str,
        typer.Option("--to", help="Format of the target; by its ending if not given.", autocompletion=complete_formats),
    ] = "",
    *,
    reading: dict[str, Any],
) -> None:
    """Read a file in one format and write it in another."""
    from placet.io import write
    from placet.io.formats import check_written

    if (target is None) == (out is None):
        raise ValueError("name one file to write: placet convert SOURCE TARGET, or --out TARGET")
    to = target or out
    check_written(to)  # type: ignore[arg-type]
    data = read_as_one([source], from_format, reading)
    with progress_bar("writing"):
        write(data, to, format=to_format or None)  # type: ignore[arg-type]
    say(f"{to}: {data!r}")
