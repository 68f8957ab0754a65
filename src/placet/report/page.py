"""The page: what was asked, the answer, how sure it is, and what it rests on."""

import inspect
import os
import re
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

import placet
from placet.aggregate import MODELS, RULES, Consensus
from placet.axioms import audit
from placet.data import Comparisons, Rankings
from placet.io.files import writing
from placet.report import figures
from placet.report.style import CSS

MOST_ROWS = 200
MOST_CELLS = 40
MOST_AUDITED = 500


def consensus_page(
    consensus: Consensus, data: Rankings | Comparisons, *, title: str = "Consensus", level: float = 0.95
) -> str:
    """HTML of one self-contained page; it lists the best 200 items, compares the best 40, and says so."""
    sections = [
        ("Ranking", _ranking(consensus, level)),
        ("Who beats whom", _wins(consensus)),
        ("How sure the ranks are", _ranks(consensus)),
        ("The voters", _agents(consensus)),
        ("What to know", _notes(consensus)),
        ("Audit", _audit(consensus, data)),
        ("Method", _method(consensus)),
        ("Data", figures.key_values([(k, v) for k, v in data.describe().items() if v is not None])),
    ]
    body = "".join(f"<section><h2>{escape(head)}</h2>{text}</section>" for head, text in sections if text)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body><main>"
        f"<h1>{escape(title)}</h1>{_summary(consensus)}{body}"
        f"<footer>Placet {placet.__version__}</footer></main></body></html>\n"
    )


def write_consensus_page(
    path: str | os.PathLike[str], consensus: Consensus, data: Rankings | Comparisons, **options: Any
) -> None:
    """Write the page; the file appears under its name only when it is whole."""
    page = consensus_page(consensus, data, **options)
    with writing(path) as file:
        file.write(page.encode())


def _summary(c: Consensus) -> str:
    first = c.ranking[0] if len(c.items) else "nothing"
    best = " and ".join(map(str, first)) if isinstance(first, tuple) else str(first)
    sure = ""
    if c.stderr is not None and len(c.items) > 1 and not isinstance(first, tuple):
        sure = f" With probability {c.top_k_probability(1)[c.order[0]]:.0%} it is truly first."
    verb = "tie for the first place" if isinstance(first, tuple) else "comes first"
    return f'<p class="lead"><strong>{escape(best)}</strong> {verb} among {len(c.items):,} items.{sure}</p>'


def _ranking(c: Consensus, level: float) -> str:
    chosen = c.order[:MOST_ROWS]
    names = [c.items[k] for k in chosen]
    if c.stderr is None:
        low = high = None
        ranks = [str(c.ranks[k]) for k in chosen]
        words = "<p>This method gives scores without standard errors; a bootstrap adds them.</p>"
    else:
        low, high = (ends[chosen] for ends in c.interval(level))
        best, worst = c.rank_interval(level)
        ranks = [f"{c.ranks[k]}" + (f" ({best[k]}–{worst[k]})" if best[k] < worst[k] else "") for k in chosen]
        words = (
            f"<p>Bars are {level:.0%} intervals of the scores; in brackets the {level:.0%} interval of the rank.</p>"
        )
    return words + figures.intervals(names, c.scores[chosen], low, high, ranks) + _left_out(len(c.items), MOST_ROWS)


def _wins(c: Consensus) -> str:
    if c.win is None or len(c.items) < 2:
        return ""
    chosen = c.order[:MOST_CELLS]
    scores = c.scores[chosen]
    table = np.array(c.win(scores[:, None], scores[None, :]), dtype=np.float64)
    np.fill_diagonal(table, np.nan)
    label = "Probability, in percent, that the row beats the column in one comparison"
    return figures.heat_map([c.items[k] for k in chosen], table, label) + _left_out(len(c.items), MOST_CELLS)


def _ranks(c: Consensus) -> str:
    if c.stderr is None or not 2 <= len(c.items) <= MOST_ROWS:
        return ""
    probability = c.rank_probabilities()[c.order]
    return figures.rank_strips([c.items[k] for k in c.order], probability)


def _agents(c: Consensus) -> str:
    adherence = c.extras.get("adherence")
    if not isinstance(adherence, Mapping) or not adherence:
        return ""
    names = sorted(adherence, key=lambda name: -adherence[name])[:MOST_ROWS]
    values = np.array([adherence[name] for name in names], dtype=np.float64)
    words = "<p>Adherence: how closely each voter follows the consensus; a voter near 0 votes at random.</p>"
    places = [str(k + 1) for k in range(len(names))]
    return words + figures.intervals(names, values, None, None, places) + _left_out(len(adherence), MOST_ROWS)


def _notes(c: Consensus) -> str:
    return "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in c.notes) + "</ul>" if c.notes else ""


def _audit(c: Consensus, data: Rankings | Comparisons) -> str:
    """What the ranking keeps and breaks on these ballots, in words."""
    known = c.method in MODELS or c.method in RULES
    if not known or len(c.items) < 2 or tuple(c.items) != tuple(data.items) or len(c.items) > MOST_AUDITED:
        return ""
    lines = audit(data, c, rivals=0).findings
    rows = "".join(
        f"<tr><td>{escape(f.check)}</td><td>{escape(f.verdict)}</td><td>{escape(f.text)}</td></tr>" for f in lines
    )
    head = "<tr><th>asked</th><th>verdict</th><th>in words</th></tr>"
    return f'<div class="wide"><table class="ranking"><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _method(c: Consensus) -> str:
    """What the method assumes, in the words of its own documentation, and how the answer was reached."""
    source: Any = MODELS.get(c.method) or RULES.get(c.method)
    words = inspect.getdoc(source) or ""
    prose = words.split(">>>")[0].strip()
    paragraphs = "".join(f"<p>{_code(text)}</p>" for text in prose.split("\n\n") if text.strip())
    facts: list[tuple[str, object]] = [("method", c.method), *((k, v) for k, v in c.params.items() if v is not None)]
    if c.fit is not None:
        facts += [("converged", bool(c.fit.converged)), ("iterations", int(c.fit.n_iter))]
    return paragraphs + figures.key_values(facts)


def _code(text: str) -> str:
    return re.sub(r"``(.+?)``", r"<code>\1</code>", escape(text))


def _left_out(n: int, most: int) -> str:
    return f'<p class="soft">The best {most} of {n:,} items are shown.</p>' if n > most else ""
