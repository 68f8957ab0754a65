"""Figures of the report as HTML tables and inline SVG."""

import re
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from placet.data.arrays import Floats, Ints
from placet.io.escaping import each_in_html, in_html
from placet.io.output.numbers import (
    aligned_numbers,
    counts,
    decimals_for,
    decimals_of,
    fact_text,
    number,
    percent,
    with_decimals,
)

__all__ = ["League", "TableColumn", "fact_text", "heat_map", "key_values", "league", "number", "rank_strips", "table"]

MOST_ON_SCREEN = 40
"""Number of rows beyond which a table scrolls in its own box."""


def name_html(name: object) -> str:
    """HTML of a name in any writing direction, isolated so as not to reorder the surrounding text."""
    return f"<bdi>{in_html(name)}</bdi>"


def names_html(names: Iterable[object]) -> list[str]:
    """`name_html` for a column of names."""
    return [f"<bdi>{text}</bdi>" for text in each_in_html(names)]


def sentences_html(texts: Sequence[str], names: Iterable[object]) -> list[str]:
    """HTML of sentences in which right-to-left ``names`` are isolated from the surrounding text."""
    turned = {str(name) for name in names if any(unicodedata.bidirectional(c) in ("R", "AL") for c in str(name))}
    sentences = each_in_html(texts)
    if not turned:
        return sentences
    longest_first: list[str] = sorted(turned, key=len, reverse=True)
    pattern = "|".join(re.escape(name) for name in each_in_html(longest_first))
    return [re.sub(f"({pattern})", r"<bdi>\1</bdi>", sentence) for sentence in sentences]


class TableColumn(NamedTuple):
    """A column: its heading (HTML), how the script sorts it ("text", "up" or "down" initially, "" not at all), the CSS
    class of its heading, and its fixed width in digits (0: share the remaining width)."""

    head: str
    sort: str = ""
    style: str = ""
    width: float = 0


def table(
    columns: Sequence[TableColumn], rows: Sequence[str], label: str, kind: str = "ranking", last: float = 0
) -> str:
    """An HTML table with headings, in its own scrolling box if it is wide or long.

    If a column is sortable, the script of the page adds buttons, and a search over the row headings.
    ``last`` is the width, in digits, of the last of three columns on a phone.
    """
    sortable = " sortable" if any(column.sort for column in columns) else ""
    heads = []
    for column in columns:
        told = f' data-sort="{column.sort}"' if column.sort else ""
        style = f' class="{column.style}"' if column.style else ""
        width = f' style="width:{column.width + 2:.1f}ch"' if column.width else ""
        heads.append(f'<th scope="col"{style}{told}{width}>{column.head}</th>')
    phone = f' style="--last:{last:.1f}ch"' if last else ""
    tall = " tall" if len(rows) > MOST_ON_SCREEN else ""
    return (
        f'<div class="wide{tall}" tabindex="0" role="region" aria-label="{in_html(label)}">'
        f'<table class="{kind}{sortable}"{phone}><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


class League(NamedTuple):
    """The columns of a ranking table: arrays over items, best first, or None if the method does not provide them."""

    names: Sequence[Hashable]
    scores: Floats
    ranks: Ints
    stderr: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    best: Ints | None = None
    worst: Ints | None = None
    tier: Ints | None = None
    support: Floats | None = None


def league(rows: League, label: str, level: float = 0.95) -> str:
    """A ranking table: rank, rank interval, tier, name, a dot at the score with its interval as a bar, the numbers, and
    the support.  A line separates the tiers."""
    n = len(rows.names)
    decimals = [decimals_of(rows.scores)] * n if rows.stderr is None else decimals_for(rows.stderr)
    score = aligned_numbers(rows.scores, decimals)
    support = None if rows.support is None else counts(rows.support)
    left, right = _axis(rows)
    cells = [[f'<td class="num place">{rank}</td>' for rank in rows.ranks.tolist()]]
    columns = [TableColumn("rank", "up", "num place", max(4, 1.2 * len(str(rows.ranks.max()))))]
    if rows.best is not None and rows.worst is not None:
        spans = [str(a) if a == b else f"{a}–{b}" for a, b in zip(rows.best.tolist(), rows.worst.tolist())]
        cells.append([f'<td class="rank soft span">{text}</td>' for text in spans])
        columns.append(TableColumn("could be", "up", "span", 0.95 * _widest(spans, "could be")))
    if rows.tier is not None:
        cells.append([f'<td class="num tier">{tier}</td>' for tier in rows.tier.tolist()])
        columns.append(TableColumn("tier", "up", "num tier", 3.5))
    cells.append([f'<th scope="row" class="name">{name}</th>' for name in names_html(rows.names)])
    columns.append(TableColumn("item", "text", "name"))
    cells.append([_bar(rows, k, left, right) for k in range(n)])
    places = max(decimals_of(np.array([left, right]), 3), 0)
    axis = "".join(f"<span>{with_decimals(end, places)}</span>" for end in (left, right))
    ends = f'<span class="ends">{axis}</span>'
    columns.append(TableColumn(ends, "", "plot"))
    cells.append([f'<td class="num score">{text}</td>' for text in score])
    columns.append(TableColumn("score", "down", "num score", 1.2 * _widest(score, "")))
    if rows.low is not None and rows.high is not None:
        ends_of = [f"{with_decimals(a, d)} to {with_decimals(b, d)}" for a, b, d in zip(rows.low, rows.high, decimals)]
        cells.append([f'<td class="num soft between">{text}</td>' for text in ends_of])
        columns.append(TableColumn(f"{level:.0%} interval", "", "num between", 0.95 * _widest(ends_of, "")))
    if support is not None:
        cells.append([f'<td class="num support">{text}</td>' for text in support])
        columns.append(TableColumn("support", "down", "num support", max(8, 1.2 * _widest(support, ""))))
    tier = rows.tier
    starts = [tier is not None and (k == 0 or tier[k] != tier[k - 1]) for k in range(n)]
    lines = [
        f"<tr{' class=starts' if start else ''}>{''.join(parts)}</tr>" for start, parts in zip(starts, zip(*cells))
    ]
    last = max(_widest(score, "score"), 0.9 * _widest(support or [], "support"))
    return table(columns, lines, label, "league", last + 1)


def is_clipped(rows: League) -> bool:
    """Whether some interval extends beyond the chart."""
    left, right = _axis(rows)
    return rows.low is not None and rows.high is not None and bool((rows.low < left).any() or (rows.high > right).any())


def _axis(rows: League) -> tuple[float, float]:
    """The range of the chart: all scores, and intervals, clipped lest a few very long ones dwarf the others."""
    left, right = float(np.min(rows.scores)), float(np.max(rows.scores))
    if rows.low is not None and rows.high is not None:
        room = max(0.25 * (right - left), 1.5 * float(np.median(rows.high - rows.low)))
        left, right = max(left - room, float(rows.low.min())), min(right + room, float(rows.high.max()))
    return (left, right) if left < right else (left - 1.0, right + 1.0)


def _bar(rows: League, k: int, left: float, right: float) -> str:
    place = lambda value: 100 * min(max((float(value) - left) / (right - left), 0.0), 1.0)  # noqa: E731
    bar = ""
    if rows.low is not None and rows.high is not None:
        a, b = place(rows.low[k]), place(rows.high[k])
        bar = f'<i style="left:{a:.1f}%;width:{b - a:.1f}%"></i>'
    return f'<td class="plot">{bar}<b style="left:{place(rows.scores[k]):.1f}%"></b></td>'


def _widest(texts: Sequence[str], head: str) -> int:
    return max(len(head), *(len(text) for text in texts)) if texts else len(head)


def heat_map(names: Sequence[object], table: Floats, label: str) -> str:
    """Square table of probabilities that the row beats the column; the color shows which of the two wins more often."""
    caption, *texts = each_in_html([label, *names])
    head = "".join(f'<th class="tilt" scope="col" title="{name}"><span><bdi>{name}</bdi></span></th>' for name in texts)
    rows = []
    for k, name in enumerate(texts):
        cells = "".join(_cell(win, loss) for win, loss in zip(table[k], table[:, k]))
        rows.append(f'<tr><th scope="row"><bdi>{name}</bdi></th>{cells}</tr>')
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="Who beats whom"><table class="heat">'
        f"<caption>{caption}</caption>"
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(win: float, loss: float) -> str:
    if np.isnan(win):
        return "<td></td>"
    lead = (win - loss) / (win + loss) if win + loss > 0 else 0.0
    side = "up" if lead >= 0 else "down"
    text = "&lt;1" if 0 < win < 0.005 else "&gt;99" if 0.995 <= win < 1 else f"{100 * win:.0f}"
    return f'<td class="{side}" style="--p:{abs(lead):.2f}">{text}</td>'


def rank_strips(names: Sequence[object], probability: Floats) -> str:
    """A strip of the possible ranks of each item, darker where more probable."""
    n = probability.shape[1]
    rows = []
    for name, row in zip(names_html(names), probability):
        shown = np.flatnonzero(row >= 0.005)
        marks = "".join(
            f'<rect x="{k}" width="1" y="0" height="10" style="--p:{row[k]:.3f}">'
            f"<title>rank {k + 1}: {percent(row[k])}</title></rect>"
            for k in shown
        )
        likely = int(np.argmax(row)) + 1
        rows.append(
            f'<tr><th scope="row">{name}</th><td class="plot"><svg viewBox="0 0 {n} 10" '
            f'preserveAspectRatio="none" class="strip" role="img" aria-label="most probable rank {likely}">'
            f'{marks}</svg></td><td class="num">{likely}</td><td class="num">{percent(row[likely - 1])}</td></tr>'
        )
    head = [
        TableColumn("item", "text"),
        TableColumn(f'<span class="ends"><span>rank 1</span><span>{n}</span></span>', "", "plot"),
        TableColumn("most probable", "up", "num"),
        TableColumn("probability", "down", "num"),
    ]
    return table(head, rows, "How sure the ranks are", "ranking strips")


def key_values(pairs: Sequence[tuple[str, object]], code: Sequence[str] = ()) -> str:
    """A two-column table of facts; those named in ``code`` are set as code."""
    rows = []
    heads, texts = each_in_html(key for key, _ in pairs), each_in_html([fact_text(fact) for _, fact in pairs])
    for (key, _), head, text in zip(pairs, heads, texts):
        rows.append(f'<tr><th scope="row">{head}</th><td>{f"<code>{text}</code>" if key in code else text}</td></tr>')
    return f'<table class="facts"><tbody>{"".join(rows)}</tbody></table>'
