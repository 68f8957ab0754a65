"""``placet enough``: whether the votes are enough for a goal, at every look."""

from typing import Annotated, Literal

import typer

from placet.cli.common.console_output import show_json
from placet.cli.common.goal_options import BoardFile, GoalText, ItemNames, Margin, board_with_votes, item_of
from placet.cli.common.options import AsJson, Level


def enough(
    board: BoardFile,
    goal: GoalText = "best",
    item: ItemNames = "",
    look: Annotated[
        Literal["any", "once"],
        typer.Option(
            metavar="any|once", help="any: right at every look; once: for an amount of votes fixed beforehand."
        ),
    ] = ("any"),
    margin: Margin = 0.0,
    level: Level = 0.95,
    as_json: AsJson = False,
) -> None:
    """Say whether the votes are enough for a goal, what is settled, and about how many votes are missing.

    The answer may be looked at after every vote, whichever pairs were asked.
    """
    asked = board_with_votes(board)
    verdict = asked.enough(goal, item=item_of(asked, item), level=level, look=look, margin=margin)
    show_json(verdict.to_dict()) if as_json else print(verdict)
