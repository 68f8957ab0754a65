"""The chart of scores over time: a line for each of the best items, named at its end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.aggregate import Consensus
from placet.aggregate.result.learned.history import History
from placet.data.arrays import Floats
from placet.output.numbers import decimals_of, each_with_decimals
from placet.report.figures import TEMPLATES, Figure, PageBlock
from placet.report.ticks import round_dates, round_numbers, spread_apart

MOST_LINES, POINTS_OF_A_LINE = 8, 80
HUES = (210, 20, 140, 280, 45, 330, 180, 100)
LEFT, RIGHT, TOP, BOTTOM = 50.0, 620.0, 20.0, 290.0
"""Edges of the plot in a chart of 800 x 320; names of the lines stand on its right."""
ROOM_OF_A_LABEL = 16.0
LONGEST_LABEL = 24


class HistoryLine(NamedTuple):
    """A line of a chart: the item, its color, the points of the line and of the band around it, and its label: a text,
    the height of the line's end, and that of the text."""

    name: str
    color: str
    middle: str
    band: str
    label: str
    end: float
    at: float


@dataclass(frozen=True, kw_only=True)
class HistoryChart(Figure):
    """Lines in a chart of 800 x 320, and the places of the labels of its axes."""

    template = f"{TEMPLATES}/history.html"
    lines: Sequence[HistoryLine]
    times: Sequence[tuple[int, str]]
    values: Sequence[tuple[int, str]]
    edges: tuple[float, float, float, float] = (LEFT, RIGHT, TOP, BOTTOM)


def history_blocks(c: Consensus, history: History) -> list[PageBlock]:
    """Line chart of the best items' scores over time; empty if the scores are constant."""
    chart = history_chart(c, history)
    if chart is None:
        return []
    return [f"The best {len(chart.lines)} items of today, with bands of two standard errors.", chart]


def history_chart(c: Consensus, history: History) -> HistoryChart | None:
    """The best items' scores, with bands of two standard errors, from when an item was first compared."""
    if len(history.step) < 2 or history.step.min() == history.step.max():
        return None
    ranked = [history.number[c.items[k]] for k in c.order]
    best = [k for k in ranked if history.offsets[k] < history.offsets[k + 1]][:MOST_LINES]
    low, high = float(history.step.min()), float(history.step.max())
    at = np.linspace(low, high, POINTS_OF_A_LINE)
    found = [history.at_step(float(tau)) for tau in at]
    score = np.array([values for values, _ in found])[:, best]
    error = np.array([errors for _, errors in found])[:, best]
    first = np.array([history.step[history.offsets[k]] for k in best], np.float64)
    seen = at[:, None] >= first - (high - low) / POINTS_OF_A_LINE
    bottom, top = float((score - 2 * error)[seen].min()), float((score + 2 * error)[seen].max())
    x = LEFT + (RIGHT - LEFT) * (at - low) / (high - low)
    y = lambda values: BOTTOM - (BOTTOM - TOP) * (values - bottom) / ((top - bottom) or 1.0)  # noqa: E731
    names = [str(history.items[k]) for k in best]
    ticks = np.array(round_numbers(bottom, top))
    texts = each_with_decimals(ticks.tolist(), [decimals_of(ticks.tolist(), 3)] * len(ticks))
    return HistoryChart(
        lines=_lines(names, x, y(score), y(score + 2 * error), y(score - 2 * error), seen),
        times=_times(history, low, high),
        values=list(zip(np.round(y(ticks)).astype(int).tolist(), texts)),
    )


def _lines(
    names: Sequence[str], x: Floats, middle: Floats, above: Floats, below: Floats, seen: NDArray[np.bool_]
) -> list[HistoryLine]:
    """A line for each column of the heights, from where its item is seen, with a label that no other covers."""
    lines = []
    ends = middle[-1]
    places = spread_apart(ends.tolist(), ROOM_OF_A_LABEL, TOP, BOTTOM)
    for n, name in enumerate(names):
        rows = seen[:, n]
        across = x[rows]
        around = [*zip(across, above[rows, n]), *zip(across[::-1], below[rows, n][::-1])]
        color, label = f"hsl({HUES[n % len(HUES)]},60%,45%)", _shortened(name)
        line, band = _points(zip(across, middle[rows, n])), _points(around)
        lines.append(HistoryLine(name, color, line, band, label, round(float(ends[n]), 1), round(float(places[n]), 1)))
    return lines


def _shortened(name: str) -> str:
    """A name that fits beside the chart, cut in the middle."""
    if len(name) <= LONGEST_LABEL:
        return name
    half = (LONGEST_LABEL - 1) // 2
    return f"{name[: LONGEST_LABEL - 1 - half]}…{name[-half:]}"


def _times(history: History, low: float, high: float) -> list[tuple[int, str]]:
    """Places and texts of round points in time."""
    start, stop = (history.steps.start(round(tau)) for tau in (low, high))
    if history.steps.dates:
        ticks = [
            (history.step_of(when), text)
            for when, text in round_dates(np.datetime64(str(start)), np.datetime64(str(stop)))
        ]
    else:
        ticks = [(history.step_of(when), f"{when:g}") for when in round_numbers(float(start), float(stop))]
    return [
        (round(LEFT + (RIGHT - LEFT) * (tau - low) / (high - low)), text) for tau, text in ticks if low <= tau <= high
    ]


def _points(pairs: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
