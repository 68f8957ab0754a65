"""What the figures of a page hold: plain numbers, names and texts; each record says which template draws it."""

import re
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from placet.data.arrays import Floats, Ints
from placet.output.numbers import percents
from placet.report.ticks import round_numbers

TEMPLATES = "report/templates"

Sentence = tuple[str, ...]
"""Pieces of a sentence; every second one is a name, which is isolated so as not to reorder the surrounding text."""


class TableColumn(NamedTuple):
    """A column: its heading, how the script sorts it ("text", "up" or "down" initially, "" not at all), its CSS class,
    its fixed width in digits (0: share the remaining width), and in place of a heading the ticks of its scale: places
    in percent, and texts."""

    head: str
    sort: str = ""
    style: str = ""
    width: float = 0
    ticks: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the page; ``left_out`` says what it does not show."""

    template: ClassVar[str]
    left_out: str = ""


PageBlock = str | Figure
"""A part of a section: a paragraph, or a figure."""

Sections = list[tuple[str, Sequence[PageBlock]]]
"""Headings and what stands below them; a section without blocks is omitted."""


class Lead(NamedTuple):
    """The first paragraph: what it stresses, and the rest."""

    strong: Sentence
    rest: Sentence


Cell = str | tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TableFigure(Figure):
    """Rows of texts.  A pair in a column of numbers is a number and a remark; a tuple elsewhere is a `Sentence`."""

    template = f"{TEMPLATES}/table.html"
    label: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, kw_only=True)
class Facts(Figure):
    """Names and facts; those named in ``code`` are set as code."""

    template = f"{TEMPLATES}/facts.html"
    facts: Sequence[tuple[str, object]]
    code: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Notes(Figure):
    """A list of sentences."""

    template = f"{TEMPLATES}/notes.html"
    notes: Sequence[Sentence]


@dataclass(frozen=True, kw_only=True)
class Wins(Figure):
    """A square of cells, each a text, the side that wins more often ("up": the row), and by how much (0 to 1); columns
    are headed by the numbers of the rows."""

    template = f"{TEMPLATES}/wins.html"
    label: str
    names: Sequence[Hashable]
    rows: Sequence[Sequence[tuple[str, str, str]]]


@dataclass(frozen=True, kw_only=True)
class RankStrips(Figure):
    """Name, range of ranks in words, its best and worst rank, the most probable rank, its probability, and (rank, depth
    of color, probability) of each possible rank."""

    template = f"{TEMPLATES}/rank_strips.html"
    columns: Sequence[TableColumn]
    rows: Sequence[tuple[Any, ...]]
    n_ranks: int


def best_of(n: int, most: int) -> str:
    """What a figure of the best ``most`` of ``n`` items leaves out."""
    return f"The best {most:,} of {n:,} items are shown." if n > most else ""


def listed(names: Sequence[object], more: int = 0) -> Sentence:
    """Names as an enumeration, and how many more there are.

    >>> "".join(listed(["a", "b", "c"])), "".join(listed(["a", "b"], more=2))
    ('a, b and c', 'a, b and 2 more')
    """
    pieces = [""]
    for k, name in enumerate(names):
        pieces[-1] = "" if k == 0 else " and " if k == len(names) - 1 and not more else ", "
        pieces += [str(name), ""]
    return (*pieces[:-1], f" and {more:,} more" if more else "")


def sentences(texts: Iterable[str], names: Iterable[object]) -> list[Sentence]:
    """Sentences in which right-to-left ``names`` are isolated from the surrounding text."""
    turned = {str(name) for name in names if any(unicodedata.bidirectional(c) in ("R", "AL") for c in str(name))}
    if not turned:
        return [(text,) for text in texts]
    pattern = "|".join(re.escape(name) for name in sorted(turned, key=len, reverse=True))
    return [tuple(re.split(f"({pattern})", text)) for text in texts]


def span_text(best: int, worst: int) -> str:
    """A range of ranks.

    >>> span_text(2, 2), span_text(1, 3)
    ('2', '1–3')
    """
    return str(best) if best == worst else f"{best}–{worst}"


def wins(names: Sequence[Hashable], probability: Floats, left_out: str) -> Wins:
    """Probabilities that the row beats the column, in percent; if they leave room, the caption says that it is ties."""
    total = probability + probability.T
    label = "In how many of 100 votes the row beats the column, whose item has that number"
    if (total[~np.eye(len(total), dtype=bool)] < 0.999).any():
        label += "; the rest are ties"
    lead = np.divide(probability - probability.T, total, out=np.zeros_like(total), where=total > 0)
    rows = []
    for k, (chances, leads) in enumerate(zip(probability.tolist(), lead.tolist())):
        texts = ["<1" if 0 < p < 0.005 else ">99" if 0.995 <= p < 1 else f"{100 * p:.0f}" for p in chances]
        texts[k] = ""
        rows.append([(text, "up" if by >= 0 else "down", f"{abs(by):.2f}") for text, by in zip(texts, leads)])
    return Wins(label=f"{label}.", names=names, rows=rows, left_out=left_out)


def rank_strips(names: Sequence[Hashable], probability: Floats, best: Ints, worst: Ints) -> RankStrips:
    """The probabilities of ranks (those below 0.5% are left out), and the range from ``best`` to ``worst``."""
    rows = []
    for name, row, low, high in zip(names, probability.tolist(), best.tolist(), worst.tolist()):
        texts = percents(row)
        marks = [(k + 1, f"{p:.3f}", text) for k, (p, text) in enumerate(zip(row, texts)) if p >= 0.005]
        likely = row.index(max(row))
        rows.append((name, span_text(low, high), low, high, likely + 1, texts[likely], marks))
    n_ranks = probability.shape[1]
    most = (0.95 if n_ranks < 10 else 0.75) * n_ranks  # the last rank is written beyond
    shown = sorted({1, n_ranks} | {int(k) for k in round_numbers(1, n_ranks) if k == int(k) and 1 < k <= most})
    columns = [
        TableColumn("item", "text"),
        TableColumn("", "", "plot", ticks=[(round(100 * (k - 0.5) / n_ranks, 2), str(k)) for k in shown]),
        TableColumn("could be", "up", "rank"),
    ]
    return RankStrips(columns=columns, rows=rows, n_ranks=n_ranks)
