"""``placet serve``: the studio in a browser."""

import errno
import os
from pathlib import Path
from typing import Annotated

import typer


def serve(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Files to open; they stay where they are.")
    ] = None,
    join: Annotated[bool, typer.Option("--join", help="Open the files as one dataset.")] = False,
    workspace: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Folder of the studio's database, uploads and models; made if it is not there."
        ),
    ] = Path("placet-studio"),
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8642,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; another than this machine's needs --token.")
    ] = ("127.0.0.1"),
    token: Annotated[
        str,
        typer.Option(
            envvar="PLACET_TOKEN",
            help="Token of the address; a new one for each start if not given. Other users of this machine can see the "
            "options of a command: rather use --token-file or the variable.",
        ),
    ] = "",
    token_file: Annotated[Path | None, typer.Option(help="File whose first line is the token.")] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="Another name of the studio in browsers, as behind a proxy.")
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy", metavar="ADDRESS", help="Address of a proxy whose X-Forwarded-For and -Proto are believed."
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    max_upload: Annotated[int, typer.Option(help="The largest upload, in MB.")] = 1024,
) -> None:
    """Open the studio in a browser: load data, create boards, compare methods, make polls, train rankers.

    Its address, with a token, is printed on stdout.  Ctrl-C stops it; the workspace remains.
    """
    for file in files or []:
        if not file.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)
    try:
        from placet.studio.server import serve as run
    except ModuleNotFoundError as error:
        raise ValueError(f"the studio needs {error.name}; install it with: pip install 'placet[serve]'") from None
    if join and len(files or []) < 2:
        raise ValueError(f"--join takes two files at least, not {len(files or [])}")
    if token_file is not None:
        token = _first_line(token_file)
    run(
        files or [],
        join=join,
        workspace=workspace,
        host=host,
        port=port,
        token=token,
        names=name or [],
        proxies=proxy or [],
        browser=browser,
        most_upload=max_upload << 20,
    )


def _first_line(path: Path) -> str:
    """The token in a file."""
    text = path.read_text(encoding="utf-8").partition("\n")[0].strip()
    if not text:
        raise ValueError(f"--token-file {path}: its first line is empty; write the token there")
    return text
