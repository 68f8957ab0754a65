"""``placet next``: the pairs, or sets of items, to ask about next."""

from typing import Annotated, Any

import typer

from placet.cli.common.console_output import check_suffix, deliver, say
from placet.cli.common.goal_options import BoardFile, GoalText, ItemNames, Margin, board_with_votes, item_of
from placet.cli.common.options import AsJson, Level, Out


def next(
    board: BoardFile,
    goal: GoalText = "order",
    n: Annotated[int, typer.Option("--n", min=1, metavar="N", help="How many pairs or sets.")] = 10,
    item: ItemNames = "",
    each: Annotated[int, typer.Option(min=1, metavar="N", help="How often a pair may be in the list.")] = 1,
    size: Annotated[int, typer.Option(min=2, metavar="M", help="Sets of M items to show together, for ballots.")] = 2,
    margin: Margin = 0.0,
    level: Level = 0.95,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """List the pairs to ask about next, those that settle a goal with the fewest votes; none once it is reached."""
    check_suffix(out)
    asked = board_with_votes(board)
    given: dict[str, Any] = {"goal": goal, "item": item_of(asked, item), "level": level, "margin": margin}
    verdict = asked.enough(**given)
    if verdict:
        say(f"{verdict.goal}: the votes are enough; nothing is left to ask")
        found: list[tuple[Any, ...]] = []
    elif size == 2:
        found = list(asked.next_pairs(n, each=each, **given))
    else:
        found = asked.next_sets(n, size, **given)
    deliver(out, as_json, [f"item_{k + 1}" for k in range(size)], found)
