"""``placet describe`` and ``placet convert``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from placet.cli.common.console_output import check_suffix, deliver, progress_bar, say
from placet.cli.common.options import AsJson, FormatName, Out, check_target, complete_formats, reads


def read_files(files: Sequence[Path], format: str, options: dict[str, Any]) -> Any:
    """Read the files as one dataset; the format they were read as is reported on stderr."""
    from placet.io import read

    source = files[0] if len(files) == 1 else list(files)
    with progress_bar("reading"):
        data = read(source, format or None, **options)
    for note in getattr(data, "notes", ()):
        say(note)
    return data


@reads
def describe(
    files: Annotated[list[Path], typer.Argument(help="Files to read as one; a folder; - for standard input.")],
    format: FormatName = "",
    out: Out = None,
    as_json: AsJson = False,
    surprise: Annotated[
        bool, typer.Option("--surprise", help="How well each voter fits, and what it decides.")
    ] = False,
    method: Annotated[str, typer.Option("--method", "-m", help="With --surprise: the model of the voters.")] = "",
    *,
    reading: dict[str, Any],
) -> None:
    """Describe the contents of files: counts, ties, coverage, connectedness, uninformative lists.

    With --surprise: one row per voter, those who agree least with the rest first.
    """
    check_suffix(out)
    if method and not surprise:
        raise ValueError("--method is for --surprise; placet aggregate ranks by a method")
    data = read_files(files, format, reading)
    if surprise:
        from placet.cli.common.surprise import surprise_table

        with progress_bar("voters"):
            frame = surprise_table(data, method)
        deliver(out, as_json, frame.columns, frame.rows(), frame.to_dicts())
        return
    from placet.metrics.interrater import describe_agreement

    with progress_bar("counting"):
        about = data.describe() | {"agreement": describe_agreement(data) or None}
    known = {key: value for key, value in about.items() if value is not None}
    deliver(out, as_json, ["what", "value"], list(known.items()), known)


@reads
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

    if (target is None) == (out is None):
        raise ValueError("name one file to write: placet convert SOURCE TARGET, or --out TARGET")
    to = target or out
    data = read_files([source], from_format, reading)
    with progress_bar("writing"):
        write(data, to, format=to_format or None)  # type: ignore[arg-type]
    say(f"{to}: {data!r}")
