"""A command does not write over the files it reads."""

import glob
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

OUTPUTS = ("out", "save", "target", "report", "members", "plot", "signals", "certificate", "history")
"""Parameters of commands that name a file to write; every other path is read."""


class CarefulCommand(TyperCommand):
    """A command that refuses to write over its own input, before it reads anything."""

    def invoke(self, ctx: Any) -> Any:
        refuse_own_input(ctx.params)
        return super().invoke(ctx)


def refuse_own_input(given: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` if a file to write is also read; a board may be updated in its place."""
    outputs = {name: given[name] for name in OUTPUTS if isinstance(given.get(name), Path) and given[name].is_file()}
    if not outputs:
        return
    inputs = [path for name, value in given.items() if name not in OUTPUTS for path in _files(value)]
    for name, out in outputs.items():
        for path in inputs:
            if os.path.samefile(path, out) and not (name == "out" and _is_board(path)):
                option = f"--{name} " if name != "target" else ""
                raise ValueError(f"{option}{out} would overwrite the file that is read; write to another file")


def _files(value: Any) -> Iterator[Path]:
    """The files that a parameter names: itself, all of a list, or those that match a pattern."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _files(one)
    elif isinstance(value, Path):
        if value.is_file():
            yield value
        else:
            yield from (Path(name) for name in glob.glob(str(value)) if os.path.isfile(name))


def _is_board(path: Path) -> bool:
    if path.suffix != ".json":
        return False
    from placet.aggregate.result.boards import is_board

    return is_board(path)
