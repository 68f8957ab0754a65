"""``placet next``: the pairs, or sets of items, to ask about next."""

from typing import Annotated, Any

import typer

from placet.cli.common.console_output import check_suffix, deliver, say
from placet.cli.common.goal_options import (
    BoardFile,
    Budget,
    Cost,
    GoalText,
    ItemNames,
    Margin,
    board_with_votes,
    item_of,
    prices_of,
)
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
    budget: Budget = None,
    cost: Cost = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """List the pairs to ask about next, those that settle a goal with the fewest votes; none once it is reached.

    With --budget and --cost, of a board of several sources: how many votes to ask of whom about which pairs.
    """
    check_suffix(out)
    asked = board_with_votes(board)
    given: dict[str, Any] = {"goal": goal, "item": item_of(asked, item), "level": level, "margin": margin}
    if budget is not None or cost:
        from placet.io.text import plural

        rows = asked.next_pairs(budget=budget, cost=prices_of(asked, cost) if cost else None, **given)
        for name in dict.fromkeys(row.source for row in rows):
            own = [row.votes for row in rows if row.source == name]
            say(f"{name}: {plural(sum(own), 'vote')} on {plural(len(own), 'pair')}")
        deliver(out, as_json, ["source", "item_1", "item_2", "votes"], rows)
        return
    verdict = asked.enough(**given)
    if verdict:
        say(f"{verdict.goal}: the votes are enough; nothing is left to ask")
        found: list[tuple[Any, ...]] = []
    elif size == 2:
        found = list(asked.next_pairs(n, each=each, **given))
    else:
        found = asked.next_sets(n, size, **given)
    deliver(out, as_json, [f"item_{k + 1}" for k in range(size)], found)
