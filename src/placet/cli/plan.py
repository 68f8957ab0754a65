"""``placet plan``: about how many votes a goal will take, by simulation."""

from typing import Annotated

import typer

from placet.cli.common.console_output import check_suffix, deliver, progress_bar
from placet.cli.common.goal_options import GoalText
from placet.cli.common.options import AsJson, Level, Out, SeedOption


def plan(
    items: Annotated[int, typer.Option(min=2, metavar="N", help="Number of items.")],
    goal: GoalText = "best",
    gap: Annotated[
        float, typer.Option(metavar="ODDS", help="Difference between neighboring items, in log odds: 0.2 is 55 to 45.")
    ] = 0.3,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Simulated polls.")] = 20,
    most: Annotated[int, typer.Option(min=1, metavar="N", help="Votes after which a poll is given up.")] = 20_000,
    level: Level = 0.95,
    seed: SeedOption = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Say how many votes a goal will take if the pairs are asked that 'placet next' lists, by simulated polls.

    The items are equally spaced; a tenth, half and nine tenths of the polls need at most the numbers of votes shown.
    """
    import numpy as np

    from placet.aggregate.asking.simulated_poll import votes_needed
    from placet.aggregate.goal_verdict import ask_question

    check_suffix(out)
    if not gap > 0:
        raise ValueError(f"--gap must be positive, not {gap}: equal items are never told apart")
    question = ask_question({k: k for k in range(items)}, goal, None, None, level, 0.0)
    with progress_bar("simulating polls"):
        votes = votes_needed([gap * k for k in range(items)], question, runs=runs, most=most, random_state=seed)
    shares = (0.1, 0.5, 0.9)
    cells = [None if np.isinf(v) else int(v) for v in np.quantile(votes, shares, method="higher")]
    deliver(out, as_json, ["polls", "votes"], [(f"{share:.0%}", cell) for share, cell in zip(shares, cells)])
