"""Read files of votes, ballots and ratings as one dataset, and boards to update with new votes."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from placet.cli.common.console_output import say

if TYPE_CHECKING:
    from placet.aggregate.result.boards import Board
    from placet.data import Comparisons, Rankings, Scores


def read_boards(files: Sequence[Path]) -> "tuple[list[Board], list[Path]]":
    """The boards among the files, and the other files."""
    from placet.aggregate.result.boards import is_board, read_board

    own = [file for file in files if file.suffix == ".json" and is_board(file)]
    return [read_board(file) for file in own], [file for file in files if file not in own]


def read_parts(files: Sequence[Path], by: str, format: str, options: dict[str, Any]) -> "dict[Hashable, Any]":
    """Read all files in slices by the values of a column."""
    from placet.data import Comparisons, DataError, Rankings, Scores
    from placet.io import read_slices

    slices = read_slices([str(file) for file in files], by, format or None, **options)
    notes = dict.fromkeys(note for part in slices.values() for note in getattr(part, "notes", ()))
    for note in notes:
        say(note)
    for name, part in slices.items():
        if not isinstance(part, Rankings | Comparisons | Scores):
            raise DataError(f"{by} {name!r}: {type(part).__name__} cannot be aggregated; votes, ballots or ratings can")
    return slices


def read_all(files: Sequence[Path], format: str, options: dict[str, Any]) -> "Rankings | Comparisons | Scores":
    """Read all files as one set of ballots or votes, or one table of scores."""
    from placet.data import Comparisons, DataError, Rankings, Scores, concat
    from placet.io import read

    parts: list[Rankings | Comparisons | Scores] = []
    for file in files:
        data = read(file, format or None, **options)
        for note in getattr(data, "notes", ()):
            say(note)
        data = ballots_of(data)
        if not isinstance(data, Rankings | Comparisons | Scores):
            raise DataError(f"{file}: {type(data).__name__} cannot be aggregated; votes, ballots or ratings can")
        if parts and type(data) is not type(parts[0]):
            kinds = {Rankings: "ballots", Comparisons: "votes", Scores: "scores"}
            raise DataError(
                f"{files[0]} holds {kinds[type(parts[0])]} and {file} {kinds[type(data)]}; aggregate them separately"
            )
        parts.append(data)
    if len(parts) == 1:
        return parts[0]
    try:
        return concat(cast("list[Rankings]", _distinct_agents(files, parts)))  # or all of another type
    except DataError as error:
        raise DataError(f"{', '.join(map(str, files))}: {error}") from error


def ballots_of(data: Any) -> Any:
    """The ballots of rank lists by engines, with the queries as instances; any other data unchanged."""
    from placet.io import LetorAgg

    return data.rankings if isinstance(data, LetorAgg) else data


def _distinct_agents(
    files: Sequence[Path], parts: "Sequence[Rankings | Comparisons | Scores]"
) -> "Sequence[Rankings | Comparisons | Scores]":
    """Distinguish equal tags by file: rank lists for the same topics come from different engines."""
    import numpy as np

    from placet.data import Rankings

    lists = [part for part in parts if isinstance(part, Rankings) and part.instance is not None]
    if len(lists) < len(parts):
        return parts
    if all(part.agent is None for part in lists):
        unnamed = [(_name(file, files), part) for file, part in zip(files, lists)]
        return [replace(part, agent=np.zeros(len(part), np.int64), agents=(name,)) for name, part in unnamed]
    if any(part.agent is None for part in lists):
        return parts
    met: Counter[tuple[Hashable, Hashable]] = Counter()
    for part in lists:
        pairs = zip(part.agent.tolist(), part.instance.tolist())  # type: ignore[union-attr]
        met.update({(part.agents[a], part.instances[k]) for a, k in pairs})  # type: ignore[index]
    if max(met.values(), default=0) < 2:
        return parts
    tags = Counter(tag for part in lists for tag in set(part.agents or ()))
    clear = []
    for file, part in zip(files, lists):
        name, own = _name(file, files), part.agents or ()
        agents = tuple(name if len(own) == 1 else f"{name}:{tag}" if tags[tag] > 1 else tag for tag in own)
        clear.append(replace(part, agents=agents))
    twice = next(tag for tag, count in tags.items() if count > 1)
    say(f"several files have the tag {twice!r}; their runs are named after the files")
    return clear


def _name(file: Path, files: Sequence[Path]) -> str:
    """The file's name, or its path if another file has the same name."""
    return file.name if sum(other.name == file.name for other in files) == 1 else str(file)
