"""The page: what was asked, the answer, how sure it is, and what it rests on."""

import inspect
import os
import re
from base64 import b64encode
from collections.abc import Hashable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

import placet
from placet.aggregate import MODELS, RULES, Consensus, ConsensusSet, Groups
from placet.aggregate.instances import split
from placet.aggregate.record import ELIMINATED, Record
from placet.aggregate.separation import MOST_PAIRED
from placet.axioms import Audit, AuditSet, audit
from placet.axioms.findings import Finding
from placet.data import Comparisons, Rankings
from placet.io.escaping import in_html
from placet.io.files import writing
from placet.report import figures, groups
from placet.report.models import controls_table, history_chart, raters_table
from placet.report.style import CSS

POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
    "style-src-attr 'unsafe-inline'; "
    f"style-src-elem 'sha256-{b64encode(sha256(CSS.encode()).digest()).decode()}'"
)
"""What a browser may do for the page: apply its own style sheet, and fetch or run nothing."""

MOST_ROWS = 200
MOST_CELLS = 40
MOST_AUDITED = 500
MOST_INSTANCES = 30
MOST_OF_AN_INSTANCE = 20


def consensus_page(
    consensus: Consensus | ConsensusSet, data: Rankings | Comparisons, *, title: str = "Consensus", level: float = 0.95
) -> str:
    """HTML of one self-contained page; it lists the best 200 items, compares the best 40, and says so.

    Of a `ConsensusSet` it names the winner of 200 instances, lists the best 20 items of 30, audits these, and says so.
    """
    if isinstance(consensus, Groups):
        lead, sections = groups.lead(consensus), _of_groups(consensus, level)
    elif isinstance(consensus, ConsensusSet):
        if not isinstance(data, Rankings):
            raise TypeError("the data of a ConsensusSet are Rankings")
        lead, sections = _instances_summary(consensus), _of_instances(consensus, data, level)
    else:
        lead, sections = _summary(consensus), _of_one(consensus, data, level)
    sections += [
        ("Method", _method(consensus)),
        ("Data", figures.key_values([(k, v) for k, v in data.describe().items() if v is not None])),
    ]
    body = "".join(f"<section><h2>{in_html(head)}</h2>{text}</section>" for head, text in sections if text)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{in_html(title)}</title><style>{CSS}</style></head><body><main>"
        f"<h1>{in_html(title)}</h1>{lead}{body}"
        f"<footer>Placet {placet.__version__}</footer></main></body></html>\n"
    )


def write_consensus_page(
    path: str | os.PathLike[str], consensus: Consensus | ConsensusSet, data: Rankings | Comparisons, **options: Any
) -> None:
    """Write the page; the file appears under its name only when it is whole."""
    page = consensus_page(consensus, data, **options)
    with writing(path) as file:
        file.write(page.encode())


Sections = list[tuple[str, str]]
"""Heads and HTML; a section without text is left out."""


def _of_one(c: Consensus, data: Rankings | Comparisons, level: float) -> Sections:
    return [
        ("Ranking", _ranking(c, level)),
        ("Who beats whom", _wins(c)),
        ("How sure the ranks are", _ranks(c)),
        ("Scores over time", history_chart(c)),
        ("Controls", controls_table(c)),
        ("The voters", _agents(c)),
        ("The count", _count(c)),
        ("What to know", _notes(c)),
        ("Audit", _audit(c, data)),
    ]


def _of_groups(found: Groups, level: float) -> Sections:
    """Kinds of voters, then the ranking of each."""
    sections = [("Kinds of voters", groups.kinds(found)), ("What to know", _notes(found))]
    shown = list(found.items())[:MOST_INSTANCES]
    return sections + [(f"Group {g}", _ranking(c, level, MOST_OF_AN_INSTANCE)) for g, c in shown]


def _of_instances(found: ConsensusSet, data: Rankings, level: float) -> Sections:
    shown = dict(list(found.items())[:MOST_INSTANCES])
    sections = [
        ("Instances", _winners(found)),
        ("The voters", next((_agents(c) for c in shown.values()), "")),
        ("What to know", _notes(found)),
        ("Audit", _audits(shown, data)),
    ]
    sections += [(f"Instance {name}", _ranking(c, level, MOST_OF_AN_INSTANCE)) for name, c in shown.items()]
    if len(found) > MOST_INSTANCES:
        sections.append(("More instances", f"<p>{MOST_INSTANCES} of {len(found):,} instances are shown.</p>"))
    return sections


def _instances_summary(found: ConsensusSet) -> str:
    items = sum(len(c.items) for c in found.values())
    return (
        f'<p class="lead"><strong>{len(found):,} instances</strong> with {items:,} items, each ranked on its own.</p>'
    )


def _winners(found: ConsensusSet) -> str:
    """Which item comes first in each instance."""
    rows = "".join(
        f'<tr><th scope="row">{in_html(name)}</th><td class="num">{len(c.items):,}</td>'
        f"<td>{in_html(_first(c)[0])}</td></tr>"
        for name, c in list(found.items())[:MOST_ROWS]
    )
    head = "<tr><th>instance</th><th>items</th><th>first</th></tr>"
    cut = f'<p class="soft">{MOST_ROWS} of {len(found):,} instances are listed.</p>' if len(found) > MOST_ROWS else ""
    return f'<div class="wide"><table class="ranking"><thead>{head}</thead><tbody>{rows}</tbody></table></div>{cut}'


def _audits(shown: Mapping[Hashable, Consensus], data: Rankings) -> str:
    """What the rankings of the instances that are shown keep and break, summed up."""
    audits = {}
    for name, part in split(data):
        c = shown.get(name)
        if c is not None and 2 <= len(c.items) <= MOST_AUDITED:
            own = audit(part.restricted(c.items), c, rivals=0, compare=())
            assert isinstance(own, Audit)
            audits[name] = own
    if not audits:
        return ""
    return _findings(AuditSet(next(iter(shown.values())).method, audits).findings)


def _first(c: Consensus) -> tuple[str, bool]:
    """The item that comes first, or those that tie for it, and whether they tie."""
    first = c.ranking[0] if len(c.items) else "nothing"
    tied = len(c.items) > 0 and int((c.ranks == 1).sum()) > 1
    return (" and ".join(map(str, first)) if tied and isinstance(first, tuple) else str(first)), tied


def _summary(c: Consensus) -> str:
    best, tied = _first(c)
    sure = ""
    if c.stderr is not None and len(c.items) > 1 and not tied:
        sure = f" With probability {c.top_k_probability(1)[c.order[0]]:.0%} it is truly first."
    verb = "tie for the first place" if tied else "comes first"
    return f'<p class="lead"><strong>{in_html(best)}</strong> {verb} among {len(c.items):,} items.{sure}</p>'


def _ranking(c: Consensus, level: float, most: int = MOST_ROWS) -> str:
    chosen = c.order[:most]
    names = [c.items[k] for k in chosen]
    tier = None
    if c.stderr is None:
        low = high = None
        ranks = [str(c.ranks[k]) for k in chosen]
        words = "<p>This method gives scores without standard errors; a bootstrap adds them.</p>"
    else:
        low, high = (ends[chosen] for ends in c.interval(level))
        best, worst = c.rank_interval(level)
        ranks = [f"{c.ranks[k]}" + (f" ({best[k]}–{worst[k]})" if best[k] < worst[k] else "") for k in chosen]
        words = (
            f"<p>Bars are {level:.0%} intervals of the scores. In brackets are the ranks that the data leave open, all "
            f"items at once with {level:.0%} confidence; items of one tier cannot be told apart.</p>"
        )
        if len(c.items) <= MOST_PAIRED:
            tier = c.tier_numbers(level)[chosen].tolist()
    return words + figures.intervals(names, c.scores[chosen], low, high, ranks, tier) + _left_out(len(c.items), most)


def _wins(c: Consensus) -> str:
    if c.win is None or len(c.items) < 2:
        return ""
    chosen = c.order[:MOST_CELLS]
    table = c.win_between(chosen[:, None], chosen)
    np.fill_diagonal(table, np.nan)
    label = "Probability, in percent, that the row beats the column in one comparison"
    return figures.heat_map([c.items[k] for k in chosen], table, label) + _left_out(len(c.items), MOST_CELLS)


def _ranks(c: Consensus) -> str:
    if c.stderr is None or not 2 <= len(c.items) <= MOST_ROWS:
        return ""
    probability = c.rank_probabilities()[c.order]
    return figures.rank_strips([c.items[k] for k in c.order], probability)


def _agents(c: Consensus) -> str:
    if "agents" in c.extras:
        return raters_table(c)
    adherence = c.extras.get("adherence")
    if not isinstance(adherence, Mapping) or not adherence:
        return ""
    names = sorted(adherence, key=lambda name: -adherence[name])[:MOST_ROWS]
    values = np.array([adherence[name] for name in names], dtype=np.float64)
    words = "<p>Adherence: how closely each voter follows the consensus; a voter near 0 votes at random.</p>"
    places = [str(k + 1) for k in range(len(names))]
    return words + figures.intervals(names, values, None, None, places) + _left_out(len(adherence), MOST_ROWS)


def _notes(c: Consensus | ConsensusSet) -> str:
    return "<ul>" + "".join(f"<li>{in_html(note)}</li>" for note in c.notes) + "</ul>" if c.notes else ""


def _count(c: Consensus) -> str:
    """The rounds of a count: a row for each item, a column for each round, up to the round in which it goes."""
    record = c.extras.get("record")
    if not isinstance(record, Record) or not record.counts:
        return ""
    rounds, chosen = record.counts[0], c.order[:MOST_CELLS]
    action = {i: step.actions[i] for step in rounds for i in step.actions}
    rows = []
    for i in [*chosen.tolist(), None]:
        out = next((k for k, step in enumerate(rounds) if i is not None and step.status[i] == ELIMINATED), len(rounds))
        votes = [figures.number(step.exhausted if i is None else step.votes[i]) for step in rounds[: out + 1]]
        cells = "".join(f'<td class="num">{text}</td>' for text in votes) + "<td></td>" * (len(rounds) - len(votes))
        name, end = ("exhausted", "") if i is None else (str(c.items[i]), action.get(i, ""))
        rows.append(f'<tr><th scope="row">{in_html(name)}</th>{cells}<td>{in_html(end)}</td></tr>')
    heads = "".join(f"<th>{k + 1}</th>" for k in range(len(rounds)))
    words = [f"Quota {figures.number(record.quota)}."] if record.quota is not None else []
    words += ["Votes at the start of each round, and what happened last to an item."]
    if record.ways > 1:
        words.append(f"The first of {record.ways} ways of breaking ties.")
    table = f"<thead><tr><th>item</th>{heads}<th></th></tr></thead><tbody>{''.join(rows)}</tbody>"
    left_out = _left_out(len(c.items), MOST_CELLS)
    return f'<p>{" ".join(words)}</p><div class="wide"><table class="ranking">{table}</table></div>{left_out}'


def _audit(c: Consensus, data: Rankings | Comparisons) -> str:
    """What the ranking keeps and breaks on these ballots, in words."""
    known = c.method in MODELS or c.method in RULES
    if not known or len(c.items) < 2 or tuple(c.items) != tuple(data.items) or len(c.items) > MOST_AUDITED:
        return ""
    return _findings(audit(data, c, rivals=0).findings)


def _findings(lines: Sequence[Finding]) -> str:
    rows = "".join(
        f"<tr><td>{in_html(f.check)}</td><td>{in_html(f.verdict)}</td><td>{in_html(f.text)}</td></tr>" for f in lines
    )
    head = "<tr><th>asked</th><th>verdict</th><th>in words</th></tr>"
    return f'<div class="wide"><table class="ranking"><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _method(c: Consensus | ConsensusSet) -> str:
    """What the method assumes, in the words of its own documentation, and how the answer was reached."""
    rule = RULES.get(c.method)
    source = MODELS.get(c.method) if rule is None else rule.function
    words = (inspect.getdoc(source) if source is not None else None) or ""
    prose = words.split(">>>")[0].strip()
    prose += f"\n\nReference: {rule.reference}." if rule is not None else ""
    paragraphs = "".join(f"<p>{_code(text)}</p>" for text in prose.split("\n\n") if text.strip())
    facts: list[tuple[str, object]] = [("method", c.method), *((k, v) for k, v in c.params.items() if v is not None)]
    if isinstance(c, Consensus) and c.fit is not None:
        facts += [("converged", bool(c.fit.converged)), ("iterations", int(c.fit.n_iter))]
    return paragraphs + figures.key_values(facts)


def _code(text: str) -> str:
    return re.sub(r"``(.+?)``", r"<code>\1</code>", in_html(text))


def _left_out(n: int, most: int) -> str:
    return f'<p class="soft">The best {most} of {n:,} items are shown.</p>' if n > most else ""
