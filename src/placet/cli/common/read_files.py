"""Read files as one dataset, and boards to update with new votes; what the readers note is reported on stderr."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placet.cli.common.console_output import progress_bar, say

if TYPE_CHECKING:
    from placet.aggregate.result.boards import Board
    from placet.data import Comparisons, Rankings, Scores


def read_as_one(files: Sequence[Path], format: str, options: dict[str, Any]) -> Any:
    """Read the files as one dataset; the format they were read as is reported on stderr."""
    from placet.io import read

    source = files[0] if len(files) == 1 else list(files)
    with progress_bar("reading"):
        data = read(source, format or None, **options)
    for note in getattr(data, "notes", ()):
        say(note)
    return data


def read_boards(files: Sequence[Path]) -> "tuple[list[Board], list[Path]]":
    """The boards among the files, and the other files."""
    from placet.aggregate.result.boards import is_board, read_board

    own = [file for file in files if file.suffix == ".json" and is_board(file)]
    return [read_board(file) for file in own], [file for file in files if file not in own]


def read_slices(files: Sequence[Path], by: str, format: str, options: dict[str, Any]) -> "dict[Hashable, Any]":
    """Read all files in slices by the values of a column."""
    from placet import io

    slices = io.read_slices([str(file) for file in files], by, format or None, **options)
    for note in dict.fromkeys(note for part in slices.values() for note in getattr(part, "notes", ())):
        say(note)
    return {name: io.to_aggregate(part, f"{by} {name!r}") for name, part in slices.items()}


def read_all(files: Sequence[Path], format: str, options: dict[str, Any]) -> "Rankings | Comparisons | Scores":
    """Read all files as one set of ballots or votes, or one table of scores."""
    from placet.io import read_files, to_aggregate

    data = read_files(files, format or None, **options)
    for note in getattr(data, "notes", ()):
        say(note)
    return to_aggregate(data, str(files[0]))
