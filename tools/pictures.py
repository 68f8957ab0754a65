"""Draw the pictures of the how-to pages from the results of their examples: python tools/pictures.py [PAGE ...].

Boards side by side, raters, and scores over time, as SVG without scripts or fonts.
"""

import contextlib
import doctest
import sys
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from placet.aggregate import Consensus
from placet.data import DataError
from placet.data.arrays import Floats
from placet.escaping import visible_lines
from placet.io.files import writing
from placet.output.numbers import number
from placet.report.history_chart import history_chart
from placet.report.ticks import round_numbers

PAGES = Path(__file__).parent.parent / "docs" / "howto"
TARGET = PAGES.parent / "pictures"
MOST_ITEMS, MOST_RATERS = 30, 60
LEFT, WIDTH, RIGHT, ROW, HEAD = 130, 470, 110, 26, 34
HUES = (210, 20, 140, 280)
STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1b2430}.soft{fill:#5b6673;font-size:12px}"
    ".axis{stroke:#d9dfe6}.tier{stroke:#5b6673;stroke-dasharray:3 3}"
    "@media(prefers-color-scheme:dark){text{fill:#e7ebf0}.soft{fill:#9aa5b1}.axis{stroke:#323a44}.tier{stroke:#9aa5b1}}"
)


class Picture:
    """An SVG picture: elements are added one by one, and their texts escaped when it is written."""

    def __init__(self) -> None:
        self.root = ElementTree.Element("svg")
        self.add("style", STYLE)

    def add(self, tag: str, text: object = None, title: object = None, **attributes: object) -> None:
        """Add an element; a trailing underscore and underscores in names of attributes are those of Python."""
        named = {name.rstrip("_").replace("_", "-"): _attribute(value) for name, value in attributes.items()}
        made = ElementTree.SubElement(self.root, tag, named)
        if text is not None:
            made.text = visible_lines(str(text))
        if title is not None:
            ElementTree.SubElement(made, "title").text = visible_lines(str(title))

    def dot(self, at: float, a: float, b: float, y: float, hue: int, said: str) -> None:
        """A dot with a bar from a to b."""
        self.add("rect", x=a, y=y - 2, width=max(b - a, 1.0), height=4, fill=f"hsl({hue},60%,50%)", opacity=".35")
        self.add("circle", title=said, cx=at, cy=y, r=4, fill=f"hsl({hue},60%,45%)")

    def grid(self, low: float, high: float, bottom: float, x: Callable[[float], float]) -> None:
        """Vertical grid lines at round numbers, labeled below."""
        for value in round_numbers(low, high):
            place = x(value)
            self.add("line", class_="axis", x1=place, x2=place, y1=HEAD - 4, y2=bottom)
            self.add("text", number(value), class_="soft", x=place, y=bottom + 18, text_anchor="middle")

    def svg(self, width: float, height: float, label: str) -> str:
        """The picture as text."""
        size = {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "role": "img", "aria-label": label}
        self.root.attrib.update({"xmlns": "http://www.w3.org/2000/svg", **size})
        return ElementTree.tostring(self.root, encoding="unicode")


def _attribute(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


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
    x = lambda value: float(LEFT + WIDTH * (value - low) / ((high - low) or 1.0))  # noqa: E731
    picture = Picture()
    picture.grid(low, high, HEAD + ROW * len(items), x)
    first = _first_of_tiers(last, level)
    for row, item in enumerate(items):
        y = HEAD + ROW * row + ROW / 2
        if row and item in first:
            picture.add("line", class_="tier", x1=0, x2=LEFT + WIDTH, y1=y - ROW / 2, y2=y - ROW / 2)
        picture.add("text", item, x=LEFT - 12, y=y + 4, text_anchor="end")
        for n, (c, (a, b)) in enumerate(zip(found, ends)):
            if item in c.items:
                k = c.items.index(item)
                at = y + 7 * (n - (len(found) - 1) / 2)
                picture.dot(x(c.scores[k]), x(a[k]), x(b[k]), at, HUES[n % len(HUES)], number(float(c.scores[k])))
    if len(found) > 1:
        place = LEFT
        for n, name in enumerate(names):
            picture.add("circle", cx=place + 5, cy=14, r=4, fill=f"hsl({HUES[n % len(HUES)]},60%,45%)")
            picture.add("text", name, x=place + 15, y=18)
            place += 40 + 8 * len(name)
    return picture.svg(LEFT + WIDTH + RIGHT, HEAD + ROW * len(items) + 30, f"Scores with {level:.0%} intervals")


def raters_picture(c: Consensus) -> str:
    """Sharpness of raters, least sharp first, with two standard errors; those who answer at random are highlighted."""
    found = c.agents
    if found is None or "sharpness" not in found.columns:
        raise DataError('this result says nothing about the sharpness of raters; fit it with agents="sharpness"')
    sharp, error, words = found.columns["sharpness"], found.stderr["sharpness"], found.words()
    order = np.argsort(sharp, kind="stable")[:MOST_RATERS]
    low, high = float((sharp - 2 * error)[order].min()), float((sharp + 2 * error)[order].max())
    low, high = min(low, 0.0), max(high, 1.0)
    row = 14
    x = lambda value: float(LEFT + WIDTH * (value - low) / ((high - low) or 1.0))  # noqa: E731
    bottom = HEAD + row * len(order)
    picture = Picture()
    picture.grid(low, high, bottom, x)
    for value, word in ((0.0, "a coin"), (1.0, "typical")):
        picture.add("line", class_="tier", x1=x(value), x2=x(value), y1=HEAD - 6, y2=bottom)
        picture.add("text", word, class_="soft", x=x(value), y=HEAD - 12, text_anchor="middle")
    for n, k in enumerate(order.tolist()):
        y = HEAD + row * n + row / 2
        coin = "coin" in words[k] or "other way" in words[k]
        picture.add("text", found.agents[k], class_="soft", x=LEFT - 12, y=y + 4, text_anchor="end")
        ends = x(sharp[k] - 2 * error[k]), x(sharp[k] + 2 * error[k])
        picture.dot(x(sharp[k]), *ends, y, HUES[int(coin)], f"{sharp[k]:.2f}")
        if words[k]:
            picture.add("text", words[k], class_="soft", x=LEFT + WIDTH + 10, y=y + 4)
    return picture.svg(LEFT + WIDTH + RIGHT + 60, bottom + 30, "Sharpness of raters")


def history_picture(c: Consensus) -> str:
    """Scores over time of the items that are best at the end, with bands of two standard errors."""
    chart = None if c.timeline is None else history_chart(c, c.timeline)
    if chart is None:
        raise DataError('the scores of this result do not move; fit it with drift="learn"')
    picture = Picture()
    for line in chart.lines:
        picture.add("polygon", points=line.band, fill=line.color, opacity=".12")
        shown = {"points": line.middle, "fill": "none", "stroke": line.color, "stroke_width": 2}
        picture.add("polyline", title=line.name, **shown)
    left, right, _, bottom = chart.edges
    for place, text in chart.times:
        picture.add("line", class_="axis", x1=place, x2=place, y1=bottom, y2=bottom + 6)
        picture.add("text", text, class_="soft", x=place, y=312, text_anchor="middle")
    for place, text in chart.values:
        picture.add("line", class_="axis", x1=left, x2=right, y1=place, y2=place)
        picture.add("text", text, class_="soft", x=left - 8, y=place + 4, text_anchor="end")
    for line in chart.lines:
        picture.add("line", x1=right, x2=right + 14, y1=line.end, y2=line.at, stroke=line.color)
        picture.add("text", line.label, x=right + 18, y=line.at + 4)
    return picture.svg(800, 320, "Scores over time")


def write_picture(path: Path, picture: str) -> None:
    """Write a picture; the file appears under its name only when it is complete."""
    with writing(path) as file:
        file.write(picture.encode() + b"\n")


def _ends(c: Consensus, level: float) -> tuple[Floats, Floats]:
    low, high = c.interval(level) if c.stderr is not None else (c.scores, c.scores)
    return np.asarray(low), np.asarray(high)


def _first_of_tiers(c: Consensus, level: float) -> set[Hashable]:
    """The first item of each tier; empty if there are no standard errors."""
    return {tier[0] for tier in c.tiers(level)} if c.stderr is not None else set()


DRAWN: dict[str, Callable[[dict[str, Any]], str]] = {
    "leaderboard": lambda v: boards_picture({"Bradley-Terry": v["plain"]}),
    "style_control": lambda v: boards_picture({"raw votes": v["raw"], "length and side taken out": v["taken_out"]}),
    "raters": lambda v: raters_picture(v["board"]),
    "ratings_over_time": lambda v: history_picture(v["board"]),
    "score_tables": lambda v: boards_picture({"mean": v["board"]}),
}
"""Page -> its picture, as a function of the variables defined by the page's examples."""


def run_page(name: str) -> dict[str, Any]:
    """Run the examples of a page and return the variables they define."""
    found: dict[str, Any] = {}
    with contextlib.chdir(PAGES.parent / "files"):
        _run(name, found)
    return found


def _run(name: str, found: dict[str, Any]) -> None:
    for example in doctest.DocTestParser().get_examples((PAGES / f"{name}.md").read_text(encoding="utf-8")):
        if example.exc_msg is None:
            exec(compile(example.source, f"{name}.md:{example.lineno}", "single"), found)


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    for page in sys.argv[1:] or DRAWN:
        sys.displayhook = lambda value: None
        write_picture(TARGET / f"{page}.svg", DRAWN[page](run_page(page)))
        print(TARGET / f"{page}.svg")
