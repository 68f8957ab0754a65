"""``placet diff``: two boards side by side, and which changes are beyond chance."""

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import check_suffix, deliver, progress_bar, say
from placet.cli.common.options import AsJson, Level, Out

if TYPE_CHECKING:
    from placet.aggregate import Consensus, ConsensusSet


def diff(
    a: Annotated[Path, typer.Argument(help="A board: the JSON of placet aggregate --out a.json.")],
    b: Annotated[Path | None, typer.Argument(help="Another; none with --slices of the first.")] = None,
    slices: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="Two slices of boards by --by, separated by a comma: en,fr.")
    ] = "",
    level: Level = 0.95,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Compare two boards (dates, methods, slices): ranks, scores, and which changes are beyond chance.

    Boards with slices are compared slice by slice.  The boards are assumed to be independent of each other.
    """
    from placet.aggregate.result.boards import read_board
    from placet.aggregate.result.difference import difference

    check_suffix(out)
    first = read_board(a).consensus
    second = first if b is None else read_board(b).consensus
    pairs = _pairs(first, second, slices, b is None, a)
    head: list[str] = []
    rows: list[tuple[Any, ...]] = []
    for name, x, y in pairs:
        with progress_bar("comparing"):
            found = difference(x, y, level)
            frame = found.to_frame()
        head = frame.columns if name is None else ["slice", *frame.columns]
        rows += [row if name is None else (str(name), *row) for row in frame.rows()]
        for note in found.notes:
            say(note if name is None else f"{name}: {note}")
    deliver(out, as_json, head, rows)


def _pairs(
    first: "Consensus | ConsensusSet", second: "Consensus | ConsensusSet", slices: str, one_file: bool, name: Path
) -> "list[tuple[Hashable, Consensus, Consensus]]":
    """The pairs of boards to compare, each with a name."""
    from placet.aggregate import ConsensusSet

    chosen = [part.strip() for part in slices.split(",")] if slices else []
    if one_file and len(chosen) != 2:
        raise ValueError("give two boards, or one with --slices x,y")
    if not isinstance(first, ConsensusSet) and not isinstance(second, ConsensusSet):
        if chosen:
            raise ValueError(
                f"--slices {slices}: {name} holds one board; write slices with placet aggregate --by COLUMN"
            )
        return [(None, first, second)]
    if not isinstance(first, ConsensusSet) or not isinstance(second, ConsensusSet):
        raise ValueError("one board has slices and the other has none; aggregate both with --by, or neither")
    named = [{str(key): key for key in board} for board in (first, second)]
    if len(chosen) == 2:
        for k, (text, names) in enumerate(zip(chosen, named)):
            if text not in names:
                raise ValueError(f"--slices {slices}: {chosen[k]!r} is not among {list(names)}")
        return [(None, first[named[0][chosen[0]]], second[named[1][chosen[1]]])]
    common = [key for text, key in named[0].items() if text in named[1]]
    if not common:
        raise ValueError(f"the boards have no slice in common: {list(named[0])} and {list(named[1])}")
    return [(key, first[key], second[named[1][str(key)]]) for key in common]
