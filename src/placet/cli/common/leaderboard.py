"""The board of one ranking for a terminal: rank, ranks it could be, tier, item, score ± error, interval, support."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placet.cli.common.terminal_tables import MOST_CELLS, Bar, aligned_cells, interval_bars

if TYPE_CHECKING:
    from rich.text import Text

LEAST_BAR, LEAST_NAME, GAP = 12, 16, 2
"""Cells of the shortest bar, of the shortest name that is cut, and between columns."""

LEFT = ("item", "could be")
"""Columns that start at the left; numbers end at the right."""


def leaderboard(
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    bars: Sequence[Bar | None],
    width: int,
    marks: str,
    *,
    scored: bool = True,
) -> "list[Text]":
    """The lines of a board, from the columns of `Consensus.to_frame`; a rule stands between tiers.

    Columns that are empty are left out, and so are scores that are not ``scored``: they only repeat the ranks.  Names
    are cut in the middle, so that bars have room; bars are left out if there is none.  No line is longer than ``width``
    unless the numbers alone are.
    """
    from rich.text import Text

    columns = _shown_columns(head, rows)
    if not scored:
        del columns["score"]
    sizes = {name: max(map(len, cells)) for name, cells in columns.items()}
    room = width - sum(size for name, size in sizes.items() if name != "item") - GAP * (len(sizes) - 1)
    wanted = LEAST_BAR + GAP if any(bars) else 0
    sizes["item"] = min(sizes["item"], max(room - wanted, LEAST_NAME))
    cells = min(room - sizes["item"] - GAP, MOST_CELLS)
    drawn = []
    if wanted and cells >= LEAST_BAR:
        drawn = [Text("interval".ljust(cells), "bold"), *interval_bars(bars, cells, marks)]
        sizes["interval"] = cells
    rule = Text("─" * (sum(sizes.values()) + GAP * (len(sizes) - 1)), "dim")
    tiers = [row[head.index("tier")] for row in rows]
    lines = []
    for r in range(len(rows) + 1):
        if r > 1 and tiers[r - 1] is not None and tiers[r - 1] != tiers[r - 2]:
            lines.append(rule)
        lines.append(_line(columns, sizes, r, drawn))
    return lines


def _shown_columns(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[str]]:
    """The columns that hold something, each with its name first: those of the frame, some of them joined."""
    values = {name: [row[k] for row in rows] for k, name in enumerate(head)}
    texts = {name: list(cells) for name, cells in zip(head, zip(*aligned_cells(head, rows)))}
    holds = {name: any(value is not None for value in cells) for name, cells in values.items()}
    shown = {"rank": ["rank", *texts["rank"]]}
    if holds["rank_low"]:
        ranges = [_range(*ends) for ends in zip(values["rank_low"], values["rank_high"])]
        shown["could be"] = ["could be", *ranges]
    if holds["tier"]:
        shown["tier"] = ["tier", *texts["tier"]]
    shown["item"] = ["item", *texts["item"]]
    if holds["stderr"]:
        errors = (f"{score} ± {error}" for score, error in zip(texts["score"], texts["stderr"]))
        shown["score"] = ["score ± error", *errors]
    else:
        shown["score"] = ["score", *_without_zeros(texts["score"])]
    if holds["support"]:
        shown["support"] = ["support", *texts["support"]]
    return shown


def _line(columns: dict[str, list[str]], sizes: dict[str, int], r: int, drawn: "list[Text]") -> "Text":
    """Row r of the board, row 0 being its head; the bar stands behind the score."""
    from rich.text import Text

    cells = []
    for name, texts in columns.items():
        text = cut_middle(texts[r], sizes[name])
        style = "bold" if name == "item" or r == 0 else "dim" if name == "could be" else ""
        cells.append(Text(text.ljust(sizes[name]) if name in LEFT else text.rjust(sizes[name]), style))
        if name == "score" and drawn:
            cells.append(drawn[r])
    line = Text(" " * GAP).join(cells)
    line.rstrip()
    return line


def cut_middle(name: str, size: int) -> str:
    """A name of at most ``size`` characters: of a longer one the beginning and the end.

    >>> cut_middle("google/gemma-2-27b-it-quantized", 15), cut_middle("ant", 15)
    ('google/…antized', 'ant')
    """
    if len(name) <= size:
        return name
    kept = size - 1
    return f"{name[: kept - kept // 2]}…{name[len(name) - kept // 2 :]}"


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f"{low:.0f}" if low == high else f"{low:.0f}-{high:.0f}"


def _without_zeros(texts: Sequence[str]) -> list[str]:
    """Decimals without the zeros at the end that all of them have.

    >>> _without_zeros(["3.5000", "1.2500"]), _without_zeros(["3.0000", "12.0000"]), _without_zeros(["30", "10"])
    (['3.50', '1.25'], ['3', '12'], ['30', '10'])
    """
    if not all("." in text for text in texts):
        return list(texts)
    ends = min(len(text.rstrip()) - len(text.rstrip().rstrip("0")) for text in texts)
    return [text.rstrip()[: len(text.rstrip()) - ends].rstrip(".") for text in texts]
