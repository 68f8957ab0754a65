"""A consensus on stdout: all items, or the best of the first instances on a terminal, or tiers."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placet.cli.common.console_output import progress_bar, say, show_table

if TYPE_CHECKING:
    from placet.aggregate import Consensus, ConsensusSet
    from placet.cli.common.terminal_tables import Bar

SHOWN_INSTANCES, SHOWN_ITEMS = 20, 10


def show_result(result: "Consensus | ConsensusSet", level: float, top: int = 0) -> None:
    """Print all items to a pipe; on a terminal, the best items of the first instances and the number omitted.

    ``top``: only this many of each board, if it is not 0.
    """
    from placet.aggregate import Consensus, ConsensusSet, Groups
    from placet.aggregate.result.result_tables import repeats_ranks, table_rows

    if isinstance(result, Consensus):
        with progress_bar("ranks"):
            (head, rows), bars = table_rows(result, level), interval_ends(result, level)
        _show_board(head, rows[: top or None], bars[: top or None], scored=not repeats_ranks(result))
        return
    if isinstance(result, Groups) or not (isinstance(result, ConsensusSet) and sys.stdout.isatty()):
        with progress_bar("ranks"):
            frame, bars = result.to_frame(level), interval_ends(result, level, top)
        frame = frame.group_by(frame.columns[0], maintain_order=True).head(top) if top else frame
        show_table(frame.columns, frame.rows(), bars)
        return
    shown = dict(list(result.items())[:SHOWN_INSTANCES])
    with progress_bar("ranks"):
        frame = replace(result, results=shown).to_frame(level)
    if all(map(repeats_ranks, shown.values())):
        frame = frame.drop("score")
    frame = frame.group_by(result.by, maintain_order=True).head(top or SHOWN_ITEMS)
    bars = [bar for c in shown.values() for bar in interval_ends(c, level)[: top or SHOWN_ITEMS]]
    show_table(frame.columns, frame.rows(), bars)
    total = sum(len(c.items) for c in result.values())
    if len(frame) < total:
        say(
            f"the best {top or SHOWN_ITEMS} items of {len(shown)} of {len(result)} instances are shown "
            f"({len(frame):,} of {total:,} rows); --out writes all"
        )


def _show_board(head: list[str], rows: list[tuple[Any, ...]], bars: "list[Bar | None]", *, scored: bool) -> None:
    """Print one board: all digits to a pipe; on a terminal what a reader of a leaderboard looks for, and bars.

    ``scored``: whether the scores say more than the ranks.
    """
    if not sys.stdout.isatty() or not rows:
        show_table(head, rows, bars)
        return
    from rich.console import Console

    from placet.cli.common.leaderboard import leaderboard
    from placet.cli.common.terminal_tables import marks_of

    console = Console()
    for line in leaderboard(head, rows, bars, console.width, marks_of(console), scored=scored):
        console.print(line, soft_wrap=True)


def interval_ends(result: "Consensus | ConsensusSet", level: float, top: int = 0) -> "list[Bar | None]":
    """For each row of the table (the first ``top`` of each board), the score between the ends of its interval."""
    from placet.aggregate import ConsensusSet

    if isinstance(result, ConsensusSet):
        return [bar for c in result.values() for bar in interval_ends(c, level)[: top or None]]
    if result.stderr is None:
        return [None] * len(result.items)
    low, high = result.interval(level)
    return [(float(low[k]), float(result.scores[k]), float(high[k])) for k in result.order]


def show_tiers(result: "Consensus | ConsensusSet", level: float) -> None:
    """Print one row per tier: its number, its ranks, and its items; no tier contains a separated pair."""
    from placet.aggregate import ConsensusSet

    boards = list(result.items()) if isinstance(result, ConsensusSet) else [(None, result)]
    head = ["tier", "ranks", "items"]
    rows: list[list[Any]] = []
    for name, board in boards:
        first = 1
        for k, tier in enumerate(board.tiers(level)):
            last = first + len(tier) - 1
            row = [k + 1, str(first) if first == last else f"{first}-{last}", ", ".join(map(str, tier))]
            rows.append(row if name is None else [str(name), *row])
            first = last + 1
    show_table(head if not isinstance(result, ConsensusSet) else [result.by, *head], rows)
