"""Draw the pictures of the how-to pages from the results of their examples: python tools/pictures.py [PAGE ...].

Each as SVG without scripts or fonts, and a second time in colors for dark pages (``-dark``).
"""

import contextlib
import doctest
import sys
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

import placet
from placet.aggregate import Consensus
from placet.aggregate.result.election_record import Record
from placet.data import DataError, Queries, Rankings
from placet.data.arrays import Floats
from placet.escaping import visible_lines
from placet.io.files import writing
from placet.metrics import ndcg
from placet.output.numbers import number
from placet.report.history_chart import history_chart
from placet.report.ticks import round_numbers
from placet.tracking import Track

PAGES = Path(__file__).parent.parent / "docs" / "howto"
TARGET = PAGES.parent / "pictures"
MOST_ITEMS, MOST_RATERS = 30, 60
LEFT, WIDTH, RIGHT, ROW, HEAD = 130, 470, 110, 26, 34
HUES = (210, 20, 140, 280)
FONT = "text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:%s}.soft{fill:%s;font-size:12px}"
LINES = ".axis{stroke:%s}.tier{stroke:%s;stroke-dasharray:3 3}.far{fill:none;stroke:%s}"
STYLE = FONT % ("#1b2430", "#5b6673") + LINES % ("#d9dfe6", "#5b6673", "#5b6673")
DARK = FONT % ("#e7ebf0", "#9aa5b1") + LINES % ("#323a44", "#9aa5b1", "#9aa5b1")
"""Colors by day and by night; those of the marks serve both."""


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

    def grid(self, low: float, high: float, bottom: float, x: Callable[[float], float], title: str = "score") -> None:
        """Vertical grid lines at round numbers, labeled below, and what they measure."""
        self.add("text", title, class_="soft", x=LEFT + WIDTH + 10, y=bottom + 18)
        for value in round_numbers(low, high):
            place = x(value)
            self.add("line", class_="axis", x1=place, x2=place, y1=HEAD - 4, y2=bottom)
            self.add("text", number(value), class_="soft", x=place, y=bottom + 18, text_anchor="middle")

    def squares(
        self, xs: Floats, ys: Floats, names: tuple[str, str], wide: float = 470, high: float = 300
    ) -> tuple[Callable[[float], float], Callable[[float], float]]:
        """Both axes with titles; the functions that put values in their place."""
        (x0, x1), (y0, y1) = ((float(v.min()), float(v.max())) for v in (xs, ys))
        x = lambda value: float(60 + wide * (value - x0) / ((x1 - x0) or 1.0))  # noqa: E731
        y = lambda value: float(HEAD + high - high * (value - y0) / ((y1 - y0) or 1.0))  # noqa: E731
        for value in round_numbers(x0, x1):
            self.add("line", class_="axis", x1=x(value), x2=x(value), y1=HEAD, y2=HEAD + high)
            self.add("text", number(value), class_="soft", x=x(value), y=HEAD + high + 18, text_anchor="middle")
        for value in round_numbers(y0, y1):
            self.add("line", class_="axis", x1=60, x2=60 + wide, y1=y(value), y2=y(value))
            self.add("text", number(value), class_="soft", x=52, y=y(value) + 4, text_anchor="end")
        self.add("text", names[0], class_="soft", x=60 + wide, y=HEAD + high + 36, text_anchor="end")
        self.add("text", names[1], class_="soft", x=8, y=18)
        return x, y

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
    picture.grid(low, high, bottom, x, "sharpness")
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


def intervals_picture(rows: list[tuple[str, float, float, float]], title: str) -> str:
    """A dot and a bar for each name, value, low and high end."""
    low, high = min(row[2] for row in rows), max(row[3] for row in rows)
    x = lambda value: float(LEFT + WIDTH * (value - low) / ((high - low) or 1.0))  # noqa: E731
    picture = Picture()
    bottom = HEAD + ROW * len(rows)
    picture.grid(low, high, bottom, x, title)
    for k, (name, value, a, b) in enumerate(rows):
        y = HEAD + ROW * k + ROW / 2
        picture.add("text", name, x=LEFT - 12, y=y + 4, text_anchor="end")
        picture.dot(x(value), x(a), x(b), y, HUES[0], number(value))
    return picture.svg(LEFT + WIDTH + RIGHT, bottom + 30, f"{title} with 95% intervals")


def rounds_picture(record: Record) -> str:
    """The votes of each item in each round of a count, side by side, and what became of it."""
    rows = record.rows()
    items, rounds = list(dict.fromkeys(row["item"] for row in rows)), sorted({row["round"] for row in rows})
    most, wide, high = max(row["votes"] for row in rows), 150, 130
    picture = Picture()
    for row in rows:
        k, n = items.index(row["item"]), rounds.index(row["round"])
        left, tall = 20 + n * (wide + 40) + k * wide / len(items), high * row["votes"] / most
        base, width = HEAD + high, wide / len(items) - 8
        out = "eliminated" in (row["action"] or "")
        fill = f"hsl({HUES[k % len(HUES)]},60%,50%)"
        picture.add("rect", x=left, y=base - tall, width=width, height=tall, fill=fill, opacity=".4" if out else "1")
        shown = number(row["votes"]) if row["votes"] else ""
        picture.add("text", shown, x=left + width / 2, y=base - tall - 5, text_anchor="middle")
        picture.add("text", row["item"], class_="soft", x=left + width / 2, y=base + 16, text_anchor="middle")
    for n, name in enumerate(rounds):
        said = next((f": {row['item']} {row['action']}" for row in rows if row["round"] == name and row["action"]), "")
        picture.add("text", f"round {name}{said}", x=20 + n * (wide + 40), y=18)
    return picture.svg(20 + len(rounds) * (wide + 40), HEAD + high + 30, "Votes in each round of the count")


def majorities_picture(ballots: Rankings, ranking: list[str]) -> str:
    """The share of voters who put the row above the column, in the order of a ranking; contradicted majorities are framed."""
    size, left = 76, 90
    picture = Picture()
    for i, row in enumerate(ranking):
        picture.add("text", row, x=left - 12, y=HEAD + size * (i + 0.5) + 4, text_anchor="end")
        picture.add("text", row, x=left + size * (i + 0.5), y=HEAD - 10, text_anchor="middle")
        for j, column in enumerate(ranking):
            if i == j:
                continue
            share = _share_above(ballots, row, column)
            hue = HUES[0] if share > 0.5 else HUES[1]
            place = {"x": left + size * j + 2, "y": HEAD + size * i + 2, "width": size - 4, "height": size - 4}
            picture.add("rect", fill=f"hsl({hue},60%,50%)", opacity=f"{abs(share - 0.5) + 0.1:.2f}", **place)
            if i < j and share < 0.5:
                picture.add("rect", class_="far", stroke_width=3, **place)
            middle = {"x": left + size * (j + 0.5), "y": HEAD + size * (i + 0.5) + 4, "text_anchor": "middle"}
            picture.add("text", f"{share:.0%}", **middle)
    words = "framed: the ranking puts the row above, most voters the column"
    bottom = HEAD + size * len(ranking)
    picture.add("text", words, class_="soft", x=0, y=bottom + 20)
    return picture.svg(400, bottom + 30, "Shares of voters who put one item above another")


def _share_above(ballots: Rankings, a: str, b: str) -> float:
    """The share of the weight of ballots with both that puts ``a`` above ``b``; a tie counts half."""
    total = above = 0.0
    for order, weight in zip(ballots, ballots.weight):
        place = {item: k for k, tier in enumerate(order) for item in tier}
        if a in place and b in place:
            total += weight
            above += weight * (0.5 * (place[a] == place[b]) + (place[a] < place[b]))
    return above / total


def examination_picture(found: Floats) -> str:
    """The probability that a position is examined, beside the truth of the simulated log, 1, 1/2, 1/3, ..."""
    place = np.arange(1, len(found) + 1)
    picture = Picture()
    x, y = picture.squares(place, np.array([0.0, 1.0]), ("position", "examined, relative to the first"))
    for values, hue, name in ((1 / place, HUES[1], "truth"), (found, HUES[0], "estimated")):
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(place, values))
        picture.add("polyline", points=points, fill="none", stroke=f"hsl({hue},60%,50%)", stroke_width=2)
        for a, b in zip(place, values):
            picture.add("circle", title=number(float(b)), cx=x(a), cy=y(b), r=4, fill=f"hsl({hue},60%,50%)")
        picture.add("text", name, x=x(place[-1]) + 10, y=y(float(values[-1])) + (-6 if name == "truth" else 12))
    return picture.svg(640, HEAD + 345, "Examination by position")


def shrinkage_picture(board: Consensus, mean: dict[str, float]) -> str:
    """The score of each item against its plain mean; a dot is as large as the support."""
    names = [name for name in board.items if name in mean]
    xs = np.array([mean[name] for name in names])
    ys = np.array([board[name].score for name in names])
    picture = Picture()
    x, y = picture.squares(np.append(xs, ys.max()), ys, ("mean of the ratings", "score"))
    ends = {"x1": x(ys.min()), "y1": y(ys.min()), "x2": x(ys.max()), "y2": y(ys.max())}
    picture.add("line", class_="tier", **ends)
    for name, a, b in zip(names, xs, ys):
        r = 1.5 + float(np.sqrt(board[name].support)) / 3
        picture.add("circle", title=name, cx=x(a), cy=y(b), r=r, fill=f"hsl({HUES[0]},60%,50%)", opacity=".6")
    return picture.svg(560, HEAD + 345, "Scores against means")


def track_picture(track: Track, way: Floats, beacons: Floats) -> str:
    """The track with ellipses of its uncertainty, the true way, and the beacons."""
    picture = Picture()
    every = np.concatenate([beacons, way, track.position])
    x, y = picture.squares(every[:, 0], every[:, 1], ("x", "y"), 420, 420)
    for outline in track.outline():
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in outline)
        picture.add("polygon", points=points, fill=f"hsl({HUES[0]},60%,50%)", opacity=".15")
    for values, hue, width in ((way, HUES[1], 4), (track.position, HUES[0], 1.5)):
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in values)
        picture.add("polyline", points=points, fill="none", stroke=f"hsl({hue},60%,50%)", stroke_width=width)
    for a, b in beacons:
        picture.add("rect", x=x(a) - 4, y=y(b) - 4, width=8, height=8, fill=f"hsl({HUES[2]},50%,45%)")
    for k, (hue, name) in enumerate(((HUES[0], "track"), (HUES[1], "true way"), (HUES[2], "beacon"))):
        picture.add("rect", x=500, y=HEAD + 22 * k, width=10, height=10, fill=f"hsl({hue},60%,50%)")
        picture.add("text", name, x=518, y=HEAD + 22 * k + 10)
    return picture.svg(600, HEAD + 465, "The track of a float")


def means_of(rankers: dict[str, Any], queries: Queries) -> list[tuple[str, float, float, float]]:
    """The mean NDCG@10 of each ranker, with 95% intervals over queries."""
    rows = []
    for name, ranker in rankers.items():
        values = ndcg(ranker.predict(queries), queries.grade, queries.offsets, 10)
        mean, error = float(np.nanmean(values)), float(np.nanstd(values) / np.sqrt(len(values)))
        rows.append((name, mean, mean - 1.96 * error, mean + 1.96 * error))
    return rows


def write_picture(path: Path, picture: str) -> None:
    """Write a picture and its dark form; a file appears under its name only when it is complete."""
    for target, text in ((path, picture), (path.with_stem(f"{path.stem}-dark"), picture.replace(STYLE, DARK))):
        with writing(target) as file:
            file.write(text.encode() + b"\n")


def _ends(c: Consensus, level: float) -> tuple[Floats, Floats]:
    low, high = c.interval(level) if c.stderr is not None else (c.scores, c.scores)
    return np.asarray(low), np.asarray(high)


def _first_of_tiers(c: Consensus, level: float) -> set[Hashable]:
    """The first item of each tier; empty if there are no standard errors."""
    return {tier[0] for tier in c.tiers(level)} if c.stderr is not None else set()


DRAWN: dict[str, Callable[[dict[str, Any]], str]] = {
    "leaderboard": lambda v: boards_picture({"Bradley-Terry": v["plain"]}),
    "style_control": lambda v: boards_picture({"raw votes": v["raw"], "length and side taken out": v["board"]}),
    "raters": lambda v: raters_picture(v["board"]),
    "ratings_over_time": lambda v: history_picture(v["board"]),
    "score_tables": lambda v: boards_picture({"mean": v["board"]}),
    "audit": lambda v: majorities_picture(v["votes"], placet.consensus(v["votes"], "borda").ranking),
    "election": lambda v: rounds_picture(v["count"].record),
    "voters": lambda v: boards_picture(
        {f"group {k} ({s:.0%})": v["groups"][k] for k, s in zip((1, 2), v["groups"].shares)}
    ),
    "comparing": lambda v: boards_picture({"English": v["slices"]["en"], "French": v["slices"]["fr"]}),
    "clicks": lambda v: examination_picture(v["fair"].examination),
    "search": lambda v: intervals_picture(
        means_of({"linear": v["ranker"], "trees": v["trees"], "mean of 4": v["choice"].ranker}, v["test"]), "NDCG@10"
    ),
    "ratings": lambda v: shrinkage_picture(v["default"], dict(zip(v["mean"]["film"], v["mean"]["stars"]))),
    "tracking": lambda v: track_picture(v["track"], v["way"], v["beacons"].position),
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
