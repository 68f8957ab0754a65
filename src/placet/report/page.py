"""The page: the question, the answer, its uncertainty, and the data it rests on."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from placet.aggregate import METHODS, Consensus, ConsensusSet, Groups
from placet.aggregate.result.separation import MOST_PAIRED
from placet.aggregate.rules.election_record import ELIMINATED, Record
from placet.data import Comparisons, Rankings, Scores
from placet.io.escaping import in_html
from placet.io.output.numbers import aligned_numbers, counts, decimals_of, number, percent
from placet.report import figures, groups_section
from placet.report.audit_section import audit_many, audit_one
from placet.report.document import Origin, Sections, data_files, document, write_page
from placet.report.figures import League, TableColumn, name_html, sentences_html, table
from placet.report.method_words import data_facts, method_name, method_words
from placet.report.model_sections import controls_table, history_chart, raters_table

MOST_LISTED = 20_000
MOST_ROWS = 200
MOST_CELLS = 40
MOST_INSTANCES = 30
MOST_OF_AN_INSTANCE = 20

ReportedData = Rankings | Comparisons | Scores


def consensus_page(
    consensus: Consensus | ConsensusSet,
    data: ReportedData,
    *,
    title: str = "Consensus",
    level: float = 0.95,
    origin: Origin | None = None,
) -> str:
    """HTML of one self-contained page.

    It lists all items (at most 20,000), with search and sort if scripts run, compares the best 40, and says what it
    omits.  For a `ConsensusSet` it names the winner of every instance, and lists the best 20 items of 30 instances and
    audits these.  All items of all instances can be downloaded from it in full precision.

    Parameters
    ----------
    consensus : the result
    data : the data it was computed from
    title : the heading
    level : confidence level of intervals
    origin : files, command, seed and date to state on the page, if given
    """
    if isinstance(consensus, Groups):
        lead, sections = groups_section.lead(consensus), _of_groups(consensus, level)
    elif isinstance(consensus, ConsensusSet):
        if not isinstance(data, Rankings):
            raise TypeError("the data of a ConsensusSet are Rankings")
        lead, sections = _instances_summary(consensus), _of_instances(consensus, data, level)
    else:
        lead, sections = _summary(consensus), _of_one(consensus, data, level)
    sections += [("Method", _method(consensus)), ("ReportedData", figures.key_values(data_facts(data.describe())))]
    about = {"title": title, "method": consensus.method, "params": dict(consensus.params), "level": level}
    about |= {"notes": list(consensus.notes)} | (dict(origin.facts()) if origin is not None else {})
    return document(title, lead, sections, origin, data_files(consensus.to_frame(level), about))


def write_consensus_page(
    path: str | os.PathLike[str], consensus: Consensus | ConsensusSet, data: ReportedData, **options: Any
) -> None:
    """Write the page; the file appears under its name only when it is complete."""
    write_page(path, consensus_page(consensus, data, **options))


def _of_one(c: Consensus, data: ReportedData, level: float) -> Sections:
    return [
        ("Ranking", _ranking(c, level)),
        ("Who beats whom", _wins(c)),
        ("How sure the ranks are", _ranks(c)),
        ("Scores over time", history_chart(c)),
        ("Controls", controls_table(c)),
        ("The voters", _agents(c)),
        ("The count", _count(c)),
        ("What to know", _notes(c)),
        ("Audit", audit_one(c, data)),
    ]


def _of_groups(found: Groups, level: float) -> Sections:
    """The groups of voters, then the ranking of each."""
    sections = [("Groups of voters", groups_section.section(found)), ("What to know", _notes(found))]
    shown = list(found.items())[:MOST_INSTANCES]
    return sections + [(f"Group {g}", _ranking(c, level, MOST_OF_AN_INSTANCE, f"Group {g}")) for g, c in shown]


def _of_instances(found: ConsensusSet, data: Rankings, level: float) -> Sections:
    shown = dict(list(found.items())[:MOST_INSTANCES])
    sections = [
        ("Instances", _winners(found)),
        ("The voters", next((_agents(c) for c in shown.values()), "")),
        ("What to know", _notes(found)),
        ("Audit", audit_many(shown, data)),
    ]
    sections += [
        (f"Instance {name}", _ranking(c, level, MOST_OF_AN_INSTANCE, f"Instance {name}")) for name, c in shown.items()
    ]
    if len(found) > MOST_INSTANCES:
        text = f"<p>{MOST_INSTANCES} of {len(found):,} instances are shown; the data to download hold all.</p>"
        sections.append(("More instances", text))
    return sections


def _instances_summary(found: ConsensusSet) -> str:
    items = sum(len(c.items) for c in found.values())
    return (
        f'<p class="lead"><strong>{len(found):,} instances</strong> with {items:,} items, each ranked on its own.</p>'
    )


def _winners(found: ConsensusSet) -> str:
    """A table of the item that comes first in each instance."""
    rows = [
        f'<tr><th scope="row">{name_html(name)}</th><td class="num">{len(c.items):,}</td><td>{_first(c)[0]}</td></tr>'
        for name, c in list(found.items())[:MOST_LISTED]
    ]
    head = [TableColumn("instance", "text"), TableColumn("items", "down", "num"), TableColumn("first", "text")]
    cut = f'<p class="soft">{MOST_LISTED:,} of {len(found):,} instances are listed.</p>'
    return table(head, rows, "Instances") + (cut if len(found) > MOST_LISTED else "")


def _first(c: Consensus) -> tuple[str, bool]:
    """The item that comes first, or those tied for first place, as HTML, and whether there is a tie."""
    first = c.order[c.ranks[c.order] == 1] if len(c.items) else []
    shown = [name_html(c.items[k]) for k in first[:5]] + ([f"{len(first) - 5:,} more"] if len(first) > 5 else [])
    text = ", ".join(shown[:-1]) + " and " + shown[-1] if len(shown) > 1 else "".join(shown) or "nothing"
    return text, len(first) > 1


def _summary(c: Consensus) -> str:
    best, tied = _first(c)
    sure = ""
    if c.stderr is not None and len(c.items) > 1 and not tied:
        sure = f" With probability {percent(c.top_k_probability(1)[c.order[0]], sampled=True)} it is truly first."
    verb = "tie for the first place" if tied else "comes first"
    items = "item" if len(c.items) == 1 else "items"
    return f'<p class="lead"><strong>{best}</strong> {verb} among {len(c.items):,} {items}.{sure}</p>'


def _ranking(c: Consensus, level: float, most: int | None = None, label: str = "Ranking") -> str:
    most = MOST_LISTED if most is None else most
    if not len(c.items):
        return ""
    chosen = c.order[:most]
    rows = League([c.items[k] for k in chosen], c.scores[chosen], c.ranks[chosen])
    if c.support is not None:
        rows = rows._replace(support=c.support[chosen])
    if c.stderr is None:
        words = "This method gives scores without standard errors; a bootstrap adds them."
    else:
        low, high = (ends[chosen] for ends in c.interval(level))
        best, worst = (ends[chosen] for ends in c.rank_interval(level))
        rows = rows._replace(stderr=c.stderr[chosen], low=low, high=high, best=best, worst=worst)
        words = (
            f"Bars are {level:.0%} intervals of the scores. “Could be”: the ranks compatible with the data "
            f"({level:.0%} confidence for all items together)."
        )
        if len(c.items) <= MOST_PAIRED:
            rows = rows._replace(tier=c.tier_numbers(level)[chosen])
            words += " Items in the same tier cannot be told apart."
        words += " Bars that end at the edge of the chart extend beyond it." if figures.is_clipped(rows) else ""
    if c.support is not None:
        words += " Support: votes or ballots that include the item."
    return f"<p>{words}</p>{figures.league(rows, label, level)}{_left_out(len(c.items), most)}"


def _wins(c: Consensus) -> str:
    if c.win is None or len(c.items) < 2:
        return ""
    chosen = c.order[:MOST_CELLS]
    matrix = c.win_between(chosen[:, None], chosen)
    np.fill_diagonal(matrix, np.nan)
    label = "Probability, in percent, that the row beats the column in one comparison"
    return figures.heat_map([c.items[k] for k in chosen], matrix, label) + _left_out(len(c.items), MOST_CELLS)


def _ranks(c: Consensus) -> str:
    if c.stderr is None or not 2 <= len(c.items) <= MOST_ROWS:
        return ""
    probability = c.rank_probabilities()[c.order]
    words = "<p>The darker a rank, the more probable; ranks of less than 0.5% are left out.</p>"
    return words + figures.rank_strips([c.items[k] for k in c.order], probability)


def _agents(c: Consensus) -> str:
    if "agents" in c.extras:
        return raters_table(c)
    adherence = c.extras.get("adherence")
    if not isinstance(adherence, Mapping) or not adherence:
        return ""
    names = sorted(adherence, key=lambda name: -adherence[name])[:MOST_LISTED]
    values = np.array([adherence[name] for name in names], dtype=np.float64)
    texts = aligned_numbers(values, [max(decimals_of(values, 3), 2)] * len(values))
    rows = [
        f'<tr><th scope="row">{name_html(name)}</th><td class="num">{text}</td></tr>'
        for name, text in zip(names, texts)
    ]
    words = "<p>Adherence: how closely each voter follows the consensus; a voter near 0 votes at random.</p>"
    head = [TableColumn("voter", "text"), TableColumn("adherence", "down", "num")]
    return words + table(head, rows, "The voters") + _left_out(len(adherence), MOST_LISTED)


def _notes(c: Consensus | ConsensusSet) -> str:
    names = c.items if isinstance(c, Consensus) else ()
    said = "".join(f"<li>{text}</li>" for text in sentences_html(c.notes, names))
    return f"<ul>{said}</ul>" if said else ""


def _count(c: Consensus) -> str:
    """The rounds of a count: a row per item, a column per round, up to the round in which the item is eliminated."""
    record = c.extras.get("record")
    if not isinstance(record, Record) or not record.counts:
        return ""
    rounds, chosen = record.counts[0], c.order[:MOST_CELLS]
    action = {i: step.actions[i] for step in rounds for i in step.actions}
    rows = []
    for i in [*chosen.tolist(), None]:
        out = next((k for k, step in enumerate(rounds) if i is not None and step.status[i] == ELIMINATED), len(rounds))
        votes = counts(np.array([step.exhausted if i is None else step.votes[i] for step in rounds[: out + 1]]))
        cells = "".join(f'<td class="num">{text}</td>' for text in votes) + "<td></td>" * (len(rounds) - len(votes))
        name, end = ("exhausted", "") if i is None else (name_html(c.items[i]), action.get(i, ""))
        rows.append(f'<tr><th scope="row">{name}</th>{cells}<td>{in_html(end)}</td></tr>')
    words = [f"Quota {number(record.quota, 6)}."] if record.quota is not None else []
    words += ["Votes at the start of each round, and what happened last to an item."]
    if record.ways > 1:
        words.append(f"The first of {record.ways} ways of breaking ties.")
    head = [
        TableColumn("item"),
        *(TableColumn(f"round {k + 1}", "", "num") for k in range(len(rounds))),
        TableColumn("end"),
    ]
    return f"<p>{' '.join(words)}</p>{table(head, rows, 'The count')}{_left_out(len(c.items), MOST_CELLS)}"


def _method(c: Consensus | ConsensusSet) -> str:
    """What the method does, without jargon, its non-default settings, and how the answer was computed."""
    record = METHODS.get(c.method)
    words = f"<p>{in_html(method_words(c.method))}</p>" if record else ""
    facts: list[tuple[str, object]] = [("method", method_name(c.method))]
    facts += [("published by", record.reference)] if record else []
    usual = record.parameters if record else {}
    facts += [(f"setting {k}", v) for k, v in c.params.items() if v is not None and str(usual.get(k, v)) != str(v)]
    if isinstance(c, Consensus) and c.fit is not None:
        facts += [("converged", bool(c.fit.converged)), ("iterations", int(c.fit.n_iter))]
    return words + figures.key_values(facts)


def _left_out(n: int, most: int) -> str:
    return f'<p class="soft">The best {most:,} of {n:,} items are shown.</p>' if n > most else ""
