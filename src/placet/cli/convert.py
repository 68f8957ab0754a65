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
    out: Annotated[Path | None, typer.Option("--out", "-o", callback=check_target, help="Same as TARGET.")] = None,
    from_format: Annotated[
        str,
        typer.Option(
            "--from",
            "--format",
            metavar="NAME",
            help="Format of the source; guessed if not given.",
            autocompletion=complete_formats,
        ),
    ] = "",
    to_format: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="NAME",
            help="Format of the target; by its ending if not given.",
            autocompletion=complete_formats,
        ),
    ] = "",
    hash_voters: Annotated[
        Path | None,
        typer.Option(
            metavar="SALT",
            help="Replace voters by hashes; the file SALT holds the secret salt, and is made if it is not there.",
        ),
    ] = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Read a file in one format and write it in another.

    To publish votes without names: placet convert votes.csv public.csv --agent user --hash-voters salt.txt
    """
    from placet.io import write
    from placet.io.formats import check_written

    if (target is None) == (out is None):
        raise ValueError("name one file to write: placet convert SOURCE TARGET, or --out TARGET")
    to = target or out
    check_written(to, to_format)  # type: ignore[arg-type]
    data = read_as_one([source], from_format, reading)
    if hash_voters is not None:
        data = _with_hashed_voters(data, hash_voters)
    with progress_bar("writing"):
        write(data, to, format=to_format or None)  # type: ignore[arg-type]
    say(f"{to}: {data!r}")


def _with_hashed_voters(data: Any, path: Path) -> Any:
    """The data with hashed voters; a salt file that is not there is made, readable by its owner alone."""
    import os
    import secrets

    from placet.data import Comparisons, DataError, Rankings
    from placet.io.hashed_voters import with_hashed_voters

    if not isinstance(data, Comparisons | Rankings):
        raise DataError(f"--hash-voters is for votes and ballots, which have voters, not {type(data).__name__}")
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(16) + "\n")
        say(f"salt: {path} (keep it secret; with it the same voters get the same hashes again)")
    return with_hashed_voters(data, path.read_text(encoding="utf-8").strip())
