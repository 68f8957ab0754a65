"""Tables for a terminal: rounded to the precision of the estimates, aligned, with bars for intervals, in color."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

Bar = tuple[float, float, float]
"""The lower end of an interval, the estimate, the upper end."""

ESTIMATES = ("score", "coefficient", "mean", "change", "score_a", "score_b", "stderr")
"""Columns whose error is in the column ``stderr``."""

DIFFERENCES = ("minus first", "a minus b", "low", "high")
"""Columns whose error is derived from the columns ``low`` and ``high``."""

P_VALUES = ("p", "p holm", "p max-t")
STYLES = {"item": "bold", "system": "bold", "metric": "bold", "stderr": "dim", "rank_low": "dim", "rank_high": "dim"}
FEWEST_CELLS, MOST_CELLS = 12, 40
MARKS, PLAIN_MARKS = "━●", "-o"


def marks_of(console: Any) -> str:
    """The characters for a line and a dot that a terminal can show."""
    return MARKS if console.encoding.startswith("utf") else PLAIN_MARKS


def drawn_table(
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    width: int,
    bars: Sequence[Bar | None] = (),
    marks: str = MARKS,
) -> tuple[Any, int]:
    """A table for a terminal, and its minimum width.

    Numbers are never wrapped; if the table is too wide, long texts wrap first and the first column of names last.
    ``bars`` holds an interval for each row, drawn if there is room; ``marks`` the characters for a line and a dot.
    """
    from rich.table import Table
    from rich.text import Text  # literal text; a plain string would be parsed as markup

    texts = aligned_cells(head, rows)
    longest = [max([len(name), *(len(row[k]) for row in texts)]) for k, name in enumerate(head)]
    numeric = [_is_numeric([row[k] for row in rows]) for k in range(len(head))]
    wordy = [k for k in range(len(head)) if not numeric[k]]
    rigid = sum(longest[k] for k in range(len(head)) if numeric[k]) + 2 * len(head)
    room = max(width - rigid, 8 * len(wordy))
    least = rigid + 8 * len(wordy)
    cells = min(width - sum(longest) - 2 * len(head) - 2, MOST_CELLS)
    drawn = interval_bars(bars, cells, marks) if any(bars) and cells >= FEWEST_CELLS else []
    table = Table(box=None, header_style="bold")
    for k, name in enumerate(head):
        style = STYLES.get(name, "")
        if numeric[k]:
            table.add_column(Text(name), justify="right", no_wrap=True, min_width=longest[k], style=style)
        else:
            others = 8 * (len(wordy) - 1)
            kept = min(longest[k], max(room - others, 8)) if k == wordy[0] else min(longest[k], 8)
            table.add_column(Text(name), justify="left", overflow="fold", min_width=kept, style=style)
    if drawn:
        table.add_column(Text("interval"), no_wrap=True, min_width=cells)
    for r, row in enumerate(texts):
        table.add_row(*map(Text, row), *drawn[r : r + 1])
    return table, least


def aligned_cells(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    """The cells as text: estimates to two digits of their standard errors, decimal points aligned.

    >>> aligned_cells(["score", "stderr"], [[1.23456, 0.0321], [-12.3, 4.0], [-1e-17, 0.5]])
    [['  1.235', '0.032'], ['-12.3  ', '4.0  '], ['  0.00 ', '0.50 ']]
    """
    from placet.escaping import visible

    columns = [_column(head, rows, k) for k in range(len(head))]
    texts = [list(row) for row in zip(*columns)] if columns else [[] for _ in rows]
    return [[visible(text) for text in row] for row in texts]


def _column(head: Sequence[str], rows: Sequence[Sequence[Any]], k: int) -> list[str]:
    values = [row[k] for row in rows]
    if not _is_numeric(values) or all(not isinstance(value, float) for value in values):
        return [_plain(value) for value in values]
    known = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    if all(value.is_integer() for value in known) and head[k] not in ESTIMATES + DIFFERENCES + P_VALUES:
        return ["" if value is None else f"{value:.0f}" for value in values]
    texts = [_number(head, row, k) for row in rows]
    ends = [len(text) - text.find(".") if "." in text else 0 for text in texts]
    texts = [text + " " * (max(ends) - end) for text, end in zip(texts, ends)]
    return [text.rjust(max(map(len, texts))) for text in texts]


def _plain(value: Any) -> str:
    """A value among words: nothing, a number with six digits and whole if it is whole, or its text."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)


def _number(head: Sequence[str], row: Sequence[Any], k: int) -> str:
    """A number, rounded by the error in its row; four decimals if there is none."""
    from placet.output.numbers import error_decimals, with_decimals

    value, name = row[k], head[k]
    if value is None:
        return ""
    if name in P_VALUES:
        return "<0.0001" if 0 <= value < 0.0001 else f"{value:.4f}"
    error = None
    if name in ESTIMATES and "stderr" in head:
        error = row[head.index("stderr")]
    elif name in DIFFERENCES and "low" in head and "high" in head:
        low, high = row[head.index("low")], row[head.index("high")]
        error = None if low is None or high is None else (high - low) / 4  # 95 % is four standard errors wide
    return with_decimals(value, 4 if error is None or not 0 < error < math.inf else error_decimals(error), plain=True)


def _is_numeric(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, int | float) or value is None for value in values)


def interval_bars(bars: Sequence[Bar | None], cells: int, marks: str = MARKS) -> "list[Text]":
    """Draw intervals on a common scale, each as a line with a dot at the estimate.

    >>> [text.plain for text in interval_bars([(0.0, 1.0, 2.0), (1.0, 2.0, 4.0), None], 9, "-o")]
    ['--o--    ', '  --o----', '         ']
    """
    from rich.text import Text

    ends = [end for bar in bars if bar is not None for end in (bar[0], bar[2]) if math.isfinite(end)]
    left, right = (min(ends), max(ends)) if ends else (0.0, 1.0)
    scale = (cells - 1) / ((right - left) or 1.0)
    found = []
    for bar in bars:
        if bar is None or not all(map(math.isfinite, bar)):
            found.append(Text(" " * cells))
            continue
        a, at, b = (round((value - left) * scale) for value in bar)
        text = Text(" " * a + marks[0] * (at - a), style="cyan")
        text.append(marks[1], style="bold")
        text.append(marks[0] * (b - at), style="cyan")
        found.append(text + Text(" " * (cells - b - 1)))
    return found
