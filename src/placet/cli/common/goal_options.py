"""What ``placet next``, ``enough`` and ``plan`` share: a board with its votes, and the options of a goal."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from placet.aggregate import Consensus

BoardFile = Annotated[
    Path, typer.Argument(help="A board (placet aggregate --out board.json), or a file of votes, ballots or ratings.")
]
GoalText = Annotated[
    str, typer.Option(metavar="GOAL", help="best, top:3, order, tiers:3, or above with --item: what to settle.")
]
ItemNames = Annotated[str, typer.Option(metavar="NAME", help="With above: two items, comma-separated, or one.")]
Margin = Annotated[
    float, typer.Option(min=0.0, metavar="ODDS", help="Difference in log odds that does not matter: closer items tie.")
]

Budget = Annotated[
    float | None,
    typer.Option(metavar="AMOUNT", help="What may be spent on votes of the sources that have a --cost; not with --n."),
]
Cost = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=PRICE", help="Price of one vote of a source (human=1); repeat it for each."),
]


def prices_of(board: "Consensus", given: Sequence[str] | None) -> dict[Hashable, float]:
    """NAME=PRICE options as source -> price."""
    names = {str(name): name for name in board.sources.names} if board.sources is not None else {}
    found: dict[Hashable, float] = {}
    for text in given or ():
        name, equals, price = text.rpartition("=")
        try:
            found[names.get(name, name)] = float(price)
        except ValueError:
            equals = ""
        if not name or not equals:
            raise ValueError(f"--cost {text} is not understood; write NAME=PRICE, such as human=1")
    return found


def board_with_votes(path: Path) -> "Consensus":
    """The board of a file and the votes behind it; a ``ValueError`` if there is not one board, or no votes."""
    from placet.aggregate.asking.counted_votes import with_votes
    from placet.aggregate.consensus_door import consensus
    from placet.aggregate.method_table import SOURCES
    from placet.aggregate.result.boards import is_board, read_board
    from placet.aggregate.result.result import Consensus
    from placet.data import Sources
    from placet.io.formats import read

    if is_board(path):
        kept = read_board(path)
        found: Any = kept.consensus
        if kept.method == SOURCES.name and isinstance(kept.data, Mapping) and isinstance(found, Consensus):
            from placet.aggregate.asking.source_votes import with_sources

            found = with_sources(found, Sources(kept.data, kept.params.get("target")))
        else:
            found = with_votes(found, kept.data)
    else:
        found = consensus(read(path))
    if not isinstance(found, Consensus):
        raise ValueError(f"{path} holds several boards; goals are asked of one")
    return found


def item_of(board: "Consensus", text: str) -> Any:
    """The item that an option names, or two separated by a comma; None for no text."""
    number = {str(name): name for name in board.items}
    if not text or text in number:
        return number.get(text)
    first, _, second = text.partition(",")
    return (number.get(first.strip(), first.strip()), number.get(second.strip(), second.strip())) if second else first
