"""Display of a consensus: a table with bars in a notebook, or a matplotlib chart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from placet.aggregate.result.result_tables import repeats_ranks
from placet.output.markup import render
from placet.output.numbers import with_error

if TYPE_CHECKING:
    from placet.aggregate.result.consensus_set import ConsensusSet
    from placet.aggregate.result.difference import Difference
    from placet.aggregate.result.result import Consensus

TEMPLATES = "aggregate/result/templates"
MOST_ROWS = 30
MOST_BOARDS, ROWS_OF_MANY, MOST_AXES = 20, 10, 6
"""Maximum number of boards of a set in a notebook, of rows in each, and of boards in a chart."""

LEVEL = 0.95


class ShownBoard(NamedTuple):
    """What a notebook shows: rows of ranks, name, whether it is stressed, the bar (start, width and tick in percent,
    and the place of zero if it is drawn), and the estimate."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, str, bool, tuple[float, ...] | None, str]]
    notes: Sequence[str]


def html_table(c: "Consensus", level: float = LEVEL, most: int = MOST_ROWS) -> str:
    """The best items as an HTML table: rank, item, a bar for the interval with a tick at the score, and the number."""
    return render(f"{TEMPLATES}/notebook_board.html", board=_board(c, level, most))


def html_tables(many: "ConsensusSet", level: float = LEVEL) -> str:
    """The first boards of a set as collapsible HTML tables of their best items; the first one is expanded."""
    shown = list(many.items())[:MOST_BOARDS]
    boards = [(f"{many.by} {name}", _board(c, level, ROWS_OF_MANY)) for name, c in shown]
    more = f"the first {len(shown)} of {len(many):,}" if len(shown) < len(many) else ""
    return render(f"{TEMPLATES}/notebook_boards.html", said=repr(many), boards=boards, more=more)


def _board(c: "Consensus", level: float, most: int) -> ShownBoard:
    chosen = c.order[:most]
    if not len(chosen):
        return ShownBoard(repr(c), (), (), c.notes)
    known = c.stderr is not None
    low, high = c.interval(level) if known else (c.scores, c.scores)
    best, worst = c.rank_interval(level) if known else (c.ranks, c.ranks)
    left, right = float(low[chosen].min()), float(high[chosen].max())
    scored = not repeats_ranks(c)
    rows: list[tuple[str, str, bool, tuple[float, ...] | None, str]] = []
    for k in chosen.tolist():
        span = f" ({best[k]}–{worst[k]})" if best[k] < worst[k] else ""
        mark, text = None, ""
        if scored:
            text = _estimate(float(c.scores[k]), float(c.stderr[k]) if c.stderr is not None else None)
            mark = _bar(float(low[k]), float(high[k]), float(c.scores[k]), left, right)
        rows.append((f"{c.ranks[k]}{span}", str(c.items[k]), False, mark, text))
    more = f", the best {most} of {len(c.items):,} items" if len(c.items) > most else ""
    caption = f"{c.method}{more}" + (f"; bars are {level:.0%} intervals" if known else "")
    return ShownBoard(caption, ("rank", "item", "", "score" if scored else ""), rows, c.notes)


def html_changes(d: "Difference", most: int = MOST_ROWS) -> str:
    """HTML table of ranks on both boards, and a bar for the interval of each change; those beyond chance are bold."""
    shown = d.to_frame().head(most).to_dicts()
    z = -float(scipy.special.ndtri((1 - d.level) / 2))
    ends = [row["change"] + sign * z * row["stderr"] for row in shown if row["stderr"] for sign in (-1, 1)]
    left, right = min([0.0, *ends]), max([0.0, *ends])
    rows = []
    for row in shown:
        mark, text = None, ""
        if row["stderr"]:
            change, reach = row["change"], z * row["stderr"]
            mark = (*_bar(change - reach, change + reach, change, left, right), _bar(0.0, 0.0, 0.0, left, right)[2])
            text = _estimate(change, row["stderr"])
        ranks = " → ".join("" if rank is None else str(rank) for rank in (row["rank_a"], row["rank_b"]))
        rows.append((ranks, str(row["item"]), bool(row["beyond_chance"]), mark, text))
    caption = f"changes, with {d.level:.0%} intervals; bold: beyond chance"
    return render(
        f"{TEMPLATES}/notebook_board.html", board=ShownBoard(caption, ("ranks", "item", "", "change"), rows, d.notes)
    )


def _bar(low: float, high: float, at: float, left: float, right: float) -> tuple[float, float, float]:
    """Start and width of a bar, and the place of its tick, in percent of the chart from ``left`` to ``right``."""
    unit = 100 / ((right - left) or 1.0)
    return round(unit * (low - left), 2), round(unit * (high - low), 2), round(unit * (at - left), 2)


def _estimate(value: float, error: float | None) -> str:
    return " ".join(with_error(value, error, 4)).strip()


def plot(c: "Consensus", level: float = LEVEL, most: int = MOST_ROWS, axes: Any = None) -> Any:
    """Plot the best items with their intervals by matplotlib; their ranks if the rule only orders; returns the axes."""
    chosen, ordered = c.order[:most][::-1], repeats_ranks(c)
    if axes is None:
        _, axes = _pyplot().subplots(figsize=(6, 1 + 0.25 * len(chosen)), layout="constrained")
    place = np.arange(len(chosen))
    if c.stderr is not None:
        low, high = (ends[chosen] for ends in c.interval(level))
        axes.hlines(place, low, high, linewidth=3, alpha=0.4)
    axes.plot((c.ranks if ordered else c.scores)[chosen], place, "o", markersize=5)
    axes.set_yticks(place, [str(c.items[k]) for k in chosen], parse_math=False)
    if ordered:
        axes.set_xlabel("rank")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.xaxis.set_inverted(True)
    else:
        axes.set_xlabel("score" if c.stderr is None else f"score, with its {level:.0%} interval")
    axes.set_title(c.method)
    axes.grid(axis="x", alpha=0.3)
    return axes


def plot_many(many: "ConsensusSet", level: float = LEVEL, most: int = ROWS_OF_MANY) -> Any:
    """Plot the first boards of a set below one another; returns their axes (boards,)."""
    shown = list(many.items())[:MOST_AXES]
    rows = [1 + 0.25 * min(most, len(c.items)) for _, c in shown]
    figure = _pyplot().figure(figsize=(6, sum(rows) or 1), layout="constrained")
    axes = figure.subplots(max(len(shown), 1), squeeze=False, height_ratios=rows or [1])[:, 0]
    for (name, c), own in zip(shown, axes):
        plot(c, level, most, own)
        own.set_title(f"{many.by} {name}", parse_math=False)
    return axes


def plot_changes(d: "Difference", most: int = MOST_ROWS, axes: Any = None) -> Any:
    """Plot changes with their intervals around zero by matplotlib; returns the axes."""
    if d.change is None or d.stderr is None:
        raise ValueError("these boards have no scale in common, so that ranks alone are compared; to_frame() has them")
    number = {name: k for k, name in enumerate(d.items)}
    chosen = [number[d.b.items[k]] for k in d.b.order if d.b.items[k] in number][:most][::-1]
    if axes is None:
        _, axes = _pyplot().subplots(figsize=(6, 1 + 0.25 * len(chosen)), layout="constrained")
    place, z = np.arange(len(chosen)), -scipy.special.ndtri((1 - d.level) / 2)
    change, error = d.change[chosen], z * d.stderr[chosen]
    axes.axvline(0.0, color="0.6", linewidth=1)
    axes.hlines(place, change - error, change + error, linewidth=3, alpha=0.4)
    axes.plot(change, place, "o", markersize=5)
    axes.set_yticks(place, [str(d.items[k]) for k in chosen], parse_math=False)
    axes.set_xlabel(f"change of the score, with its {d.level:.0%} interval")
    return axes


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot() needs matplotlib; install it with: pip install 'placet[plot]'") from None
    return plt
