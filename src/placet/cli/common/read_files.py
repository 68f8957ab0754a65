"""Read files as one dataset, and boards to update with new votes; what the readers note is reported on stderr."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placet.cli.common.console_output import progress_bar, say

if TYPE_CHECKING:
    from placet.aggregate.result.boards import Board
    from placet.data import Comparisons, Games, Rankings, Scores


def read_as_one(files: Sequence[Path], format: str, options: dict[str, Any]) -> Any:
    """Read the files as one dataset; the format they were read as is reported on stderr."""
    from placet.io import read

    source = files[0] if len(files) == 1 else list(files)
    with progress_bar("reading"):
        data = read(source, format or None, **options)
    for note in getattr(data, "notes", ()):
        say(note)
    return data


def read_or_update(files: list[Path], by: str, format: str, options: dict[str, Any]) -> "tuple[Any, Board | None]":
    """Read all files as one set of data, or in slices; with boards among them, also return the first, to update."""
    from placet.data import DataError, concat

    boards, others = _read_boards(files)
    if not boards:
        return (_read_slices(files, by, format, options) if by else _read_all(files, format, options)), None
    if by or any(board.data is None or isinstance(board.data, Mapping) for board in boards):
        raise DataError(
            f"{files[0]}: this board cannot be updated: it has slices, or no votes; aggregate all files together"
        )
    parts = [board.data for board in boards]
    if others:
        parts.append(_read_all(others, format, _as_before(boards[0].data, options)))
    if len({type(part) for part in parts}) > 1:
        raise DataError(
            f"{', '.join(map(str, files))}: a board of {_kind(parts[0])} cannot be updated with {_kind(parts[-1])}; "
            "give --format where a file was read as something else"
        )
    say(f"continuing from {boards[0].consensus!r}")
    return concat(parts), boards[0]


def _as_before(data: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options with the controls of the board to continue, unless some are given or their names are not plain."""
    known = getattr(data, "controls", None) or ()
    if not known or "control" in options or any("=" in name for name in known):
        return options
    say(f"controls as before: {', '.join(known)}")
    return options | {"control": list(known)}


def _kind(data: Any) -> str:
    from placet.io.several_files import KINDS

    return KINDS.get(type(data), "other data")


def _read_boards(files: Sequence[Path]) -> "tuple[list[Board], list[Path]]":
    """The boards among the files, and the other files."""
    from placet.aggregate.result.boards import is_board, read_board

    own = [file for file in files if file.suffix == ".json" and is_board(file)]
    return [read_board(file) for file in own], [file for file in files if file not in own]


def _read_slices(files: Sequence[Path], by: str, format: str, options: dict[str, Any]) -> "dict[Hashable, Any]":
    """Read all files in slices by the values of a column."""
    from placet import io

    slices = io.read_slices([str(file) for file in files], by, format or None, **options)
    for note in dict.fromkeys(note for part in slices.values() for note in getattr(part, "notes", ())):
        say(note)
    return {name: io.to_aggregate(part, f"{by} {name!r}") for name, part in slices.items()}


def _read_all(files: Sequence[Path], format: str, options: dict[str, Any]) -> "Rankings | Comparisons | Scores | Games":
    """Read all files as one set of ballots or votes, or one table of scores."""
    from placet.io import read_files, to_aggregate

    data = read_files(files, format or None, **options)
    for note in getattr(data, "notes", ()):
        say(note)
    return to_aggregate(data, str(files[0]))
