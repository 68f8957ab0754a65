"""Standalone pictures: boards side by side, raters, and scores over time, as SVG without scripts or fonts."""

import os
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from placet.aggregate import Consensus
from placet.aggregate.likelihood.raters import Raters
from placet.data import DataError
from placet.data.arrays import Floats
from placet.io.escaping import in_html
from placet.io.files import writing
from placet.io.output.numbers import number
from placet.report.model_sections import history_lines, line_color

MOST_ITEMS, MOST_RATERS = 30, 60
LEFT, WIDTH, RIGHT, ROW, HEAD = 130, 470, 110, 26, 34
HUES = (210, 20, 140, 280)
STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1b2430}.soft{fill:#5b6673;font-size:12px}"
    ".axis{stroke:#d9dfe6}.tier{stroke:#5b6673;stroke-dasharray:3 3}"
    "@media(prefers-color-scheme:dark){text{fill:#e7ebf0}.soft{fill:#9aa5b1}.axis{stroke:#323a44}.tier{stroke:#9aa5b1}}"
)


def boards_picture(boards: Mapping[str, Consensus], level: float = 0.95) -> str:
    """Items in the order of the last board; for each board, a dot at the score and a bar for its interval.

    Dashed lines separate the tiers of the last board.
    """
    names, found = list(boards), list(boards.values())
    last = found[-1]
    items = [last.items[k] for k in last.order[:MOST_ITEMS]]
    ends = [_ends(c, level) for c in found]
    low = min(float(e[0].min()) for e in ends)
    high = max(float(e[1].max()) for e in ends)
    x = lambda value: LEFT + WIDTH * (value - low) / ((high - low) or 1.0)  # noqa: E731
    marks = _grid(low, high, HEAD + ROW * len(items), x)
    first = _first_of_tiers(last, level)
    for row, item in enumerate(items):
        y = HEAD + ROW * row + ROW / 2
        if row and item in first:
            marks.append(f'<line class="tier" x1="0" x2="{LEFT + WIDTH}" y1="{y - ROW / 2}" y2="{y - ROW / 2}"/>')
        marks.append(f'<text x="{LEFT - 12}" y="{y + 4:.0f}" text-anchor="end">{in_html(str(item))}</text>')
        for n, (c, (a, b)) in enumerate(zip(found, ends)):
            if item in c.items:
                k = c.items.index(item)
                at = y + 7 * (n - (len(found) - 1) / 2)
                marks += _dot(x(c.scores[k]), x(a[k]), x(b[k]), at, HUES[n % len(HUES)], number(float(c.scores[k])))
    if len(found) > 1:
        place = LEFT
        for n, name in enumerate(names):
            marks.append(f'<circle cx="{place + 5}" cy="14" r="4" fill="hsl({HUES[n % len(HUES)]},60%,45%)"/>')
            marks.append(f'<text x="{place + 15}" y="18">{in_html(name)}</text>')
            place += 40 + 8 * len(name)
    return _svg(marks, LEFT + WIDTH + RIGHT, HEAD + ROW * len(items) + 30, f"Scores with {level:.0%} intervals")


def raters_picture(c: Consensus) -> str:
    """Sharpness of raters, least sharp first, with two standard errors; those who answer at random are highlighted."""
    found = c.extras.get("agents")
    if not isinstance(found, Raters) or "sharpness" not in found.columns:
        raise DataError('this result says nothing about the sharpness of raters; fit it with agents="sharpness"')
    sharp, error, words = found.columns["sharpness"], found.stderr["sharpness"], found.words()
    order = np.argsort(sharp, kind="stable")[:MOST_RATERS]
    low, high = float((sharp - 2 * error)[order].min()), float((sharp + 2 * error)[order].max())
    low, high = min(low, 0.0), max(high, 1.0)
    row = 14
    x = lambda value: LEFT + WIDTH * (value - low) / ((high - low) or 1.0)  # noqa: E731
    bottom = HEAD + row * len(order)
    marks = _grid(low, high, bottom, x)
    for value, word in ((0.0, "a coin"), (1.0, "typical")):
        marks.append(f'<line class="tier" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{HEAD - 6}" y2="{bottom}"/>')
        marks.append(f'<text class="soft" x="{x(value):.1f}" y="{HEAD - 12}" text-anchor="middle">{word}</text>')
    for n, k in enumerate(order.tolist()):
        y = HEAD + row * n + row / 2
        coin = "coin" in words[k] or "other way" in words[k]
        name = in_html(str(found.agents[k]))
        marks.append(f'<text class="soft" x="{LEFT - 12}" y="{y + 4:.0f}" text-anchor="end">{name}</text>')
        ends = x(sharp[k] - 2 * error[k]), x(sharp[k] + 2 * error[k])
        marks += _dot(x(sharp[k]), *ends, y, HUES[int(coin)], f"{sharp[k]:.2f}")
        if words[k]:
            marks.append(f'<text class="soft" x="{LEFT + WIDTH + 10}" y="{y + 4:.0f}">{in_html(words[k])}</text>')
    return _svg(marks, LEFT + WIDTH + RIGHT + 60, bottom + 30, "Sharpness of raters")


def history_picture(c: Consensus) -> str:
    """Scores over time of the items that are best at the end, with bands of two standard errors."""
    marks, best = history_lines(c)
    if not marks:
        raise DataError('the scores of this result do not move; fit it with drift="learn"')
    for n, k in enumerate(best):
        marks.append(f'<rect x="775" y="{14 + 20 * n}" width="12" height="4" fill="{line_color(n)}"/>')
        marks.append(f'<text x="792" y="{20 + 20 * n}">{in_html(str(c.items[k]))}</text>')
    return _svg(marks, 900, 320, "Scores over time")


def write_picture(path: str | os.PathLike[str], picture: str) -> None:
    """Write a picture; the file appears under its name only when it is complete."""
    with writing(path) as file:
        file.write(picture.encode() + b"\n")


def _ends(c: Consensus, level: float) -> tuple[Floats, Floats]:
    low, high = c.interval(level) if c.stderr is not None else (c.scores, c.scores)
    return np.asarray(low), np.asarray(high)


def _first_of_tiers(c: Consensus, level: float) -> set[Hashable]:
    """The first item of each tier; empty if there are no standard errors."""
    return {tier[0] for tier in c.tiers(level)} if c.stderr is not None else set()


def _dot(at: float, a: float, b: float, y: float, hue: int, said: str) -> list[str]:
    """A dot with a bar from a to b."""
    return [
        f'<rect x="{a:.1f}" y="{y - 2:.1f}" width="{max(b - a, 1.0):.1f}" height="4" fill="hsl({hue},60%,50%)" '
        'opacity=".35"/>',
        f'<circle cx="{at:.1f}" cy="{y:.1f}" r="4" fill="hsl({hue},60%,45%)"><title>{said}</title></circle>',
    ]


def _grid(low: float, high: float, bottom: float, x: Callable[[float], float]) -> list[str]:
    """Vertical grid lines at round numbers, labeled below."""
    marks = []
    for value in _round_numbers(low, high):
        place = x(value)
        marks.append(f'<line class="axis" x1="{place:.1f}" x2="{place:.1f}" y1="{HEAD - 4}" y2="{bottom}"/>')
        marks.append(
            f'<text class="soft" x="{place:.1f}" y="{bottom + 18}" text-anchor="middle">{number(value)}</text>'
        )
    return marks


def _round_numbers(low: float, high: float) -> list[float]:
    """About five numbers that are easy to read.

    >>> _round_numbers(-0.93, 1.2)
    [-0.5, 0.0, 0.5, 1.0]
    """
    raw = (high - low or 1.0) / 5
    power = 10.0 ** np.floor(np.log10(raw))
    unit = power * next(f for f in (1, 2, 5, 10) if f * power >= 0.8 * raw)
    return [float(round(k * unit, 10)) for k in range(int(np.ceil(low / unit)), int(np.floor(high / unit)) + 1)]


def _svg(marks: Sequence[str], width: float, height: float, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" '
        f'aria-label="{in_html(label)}"><style>{STYLE}</style>{"".join(marks)}</svg>'
    )
