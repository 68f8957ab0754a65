"""The options that several commands have, each written once and checked before any work is done."""

from pathlib import Path
from typing import Annotated

import typer

READ_HELP = "name=value, passed to the reader of --format, such as the name of a column."


def check_level(value: float) -> float:
    """A level of confidence as a share; percents are answered with the share that is meant."""
    if not 0 < value < 1:
        meant = f"; for {value:g} % say --level {value / 100:g}" if 1 < value < 100 else ""
        raise ValueError(f"--level {value:g} is not between 0 and 1{meant}")
    return value


def check_target(value: Path | None) -> Path | None:
    """A file that can be written: its folder is there, and it is no folder itself."""
    if value is None:
        return value
    if not value.parent.is_dir():
        raise ValueError(f"{value}: there is no such folder as {value.parent} to write to; make it first")
    if value.is_dir():
        raise ValueError(f"{value} is a folder; name a file in it")
    return value


def complete_methods(incomplete: str) -> list[str]:
    """Names of methods that begin so."""
    from placet.aggregate import MODELS, RULES

    return [name for name in (*MODELS, *RULES) if name.startswith(incomplete)]


def complete_formats(incomplete: str) -> list[str]:
    """Names of formats that begin so."""
    from placet.io.formats import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def complete_losses(incomplete: str) -> list[str]:
    """Names of losses that begin so."""
    from placet.losses import LOSSES

    return [name for name in LOSSES if name.startswith(incomplete)]


def complete_rankers(incomplete: str) -> list[str]:
    """Names of rankers that begin so."""
    from placet.rank import RANKERS

    return [name for name in (*RANKERS, "auto") if name.startswith(incomplete)]


Level = Annotated[float, typer.Option(callback=check_level, help="Level of the intervals, such as 0.95.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
Out = Annotated[
    Path | None,
    typer.Option(
        callback=check_target, help="Write to a file instead of stdout: .csv, .tsv, .json or .parquet by its suffix."
    ),
]
Report = Annotated[Path | None, typer.Option(callback=check_target, help="Write a page about the result (HTML).")]
FormatName = Annotated[
    str, typer.Option(help="Format of the files; guessed if not given.", autocompletion=complete_formats)
]
Read = Annotated[list[str] | None, typer.Option("--read", "-r", help=READ_HELP)]
Param = Annotated[list[str] | None, typer.Option("--param", "-p", help="name=value, passed to the method.")]
Relations = Annotated[
    list[str] | None,
    typer.Option("--relation", help="name=FILE: similarity, links or sitemap of documents named by #docid."),
]
