"""The page: the question, the answer, its uncertainty, and the data it rests on."""

import os
from collections.abc import Mapping
from typing import Any

from placet.aggregate import Consensus, ConsensusSet, Groups
from placet.aggregate.method_table import record_of
from placet.aggregate.result.election_record import ELIMINATED
from placet.data import Comparisons, Rankings, Scores, Sources
from placet.output.numbers import aligned_numbers, counts, decimals_of, number
from placet.report.audit_section import audit_many, audit_one
from placet.report.data_words import data_facts, evidence
from placet.report.document import Origin, document, write_page
from placet.report.figures import (
    Cell,
    Facts,
    Lead,
    PageBlock,
    Sections,
    TableColumn,
    TableFigure,
    best_of,
    rank_strips,
    wins,
)
from placet.report.groups_section import groups_blocks, groups_lead
from placet.report.history_chart import history_blocks
from placet.report.model_sections import controls_blocks, raters_blocks, sources_blocks, tasks_blocks
from placet.report.notes_section import log_blocks, notes_blocks
from placet.report.owner_columns import OwnerColumns, owner_columns
from placet.report.page_lead import first_of, lead_of
from placet.report.proof_section import check_blocks, fragility_blocks
from placet.report.ranking_table import ranking_blocks

MOST_LISTED = 20_000
MOST_ROWS = 200
MOST_COUNTED = 40
MOST_CELLS = 20
MOST_INSTANCES = 30
MOST_OF_AN_INSTANCE = 20

ReportedData = Rankings | Comparisons | Scores | Sources


def consensus_page(
    consensus: Consensus | ConsensusSet,
    data: ReportedData,
    *,
    title: str = "",
    level: float = 0.95,
    origin: Origin | None = None,
    certificate: Mapping[str, Any] | None = None,
    about: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """HTML of one self-contained page.

    It lists all items (at most 20,000), with search and sort if scripts run, compares the best 20, and says what it
    omits.  For a `ConsensusSet` it names the winner of every instance, and lists the best 20 items of 30 instances and
    audits these.  All items of all instances can be downloaded from it in full precision.

    Parameters
    ----------
    consensus : the result
    data : the data it was computed from
    title : the heading; by default "Ranking of 12 items"
    level : confidence level of intervals
    origin : files, command, seed and date to state on the page, if given
    certificate : of the result (`Consensus.certificate`), for the page to carry, with how to check it
    about : columns of yours to show beside the items: item -> column -> text (`placet.io.read_item_columns`); names of
        items link to the first column with web addresses

    Returns
    -------
    str
        The page.

    >>> import placet
    >>> votes = placet.Comparisons.from_battles(["ant", "ant"], ["bee", "cat"], ["a", "b"])
    >>> page = consensus_page(placet.consensus(votes), votes, about={"ant": {"kind": "insect"}})
    >>> "Ranking of 3 items" in page, "insect" in page
    (True, True)
    """
    described = data.describe()
    period = None if origin is None else origin.period
    items = (
        list(consensus.items) if isinstance(consensus, Consensus) else [i for c in consensus.values() for i in c.items]
    )
    owner = owner_columns(about, items)
    title = title or (f"Ranking of {len(items):,} items" if isinstance(consensus, Consensus) else "Rankings")
    if isinstance(consensus, Groups):
        lead, sections = groups_lead(consensus), _of_groups(consensus, level, owner)
    elif isinstance(consensus, ConsensusSet):
        if not isinstance(data, Rankings):
            raise TypeError("the data of a ConsensusSet are Rankings")
        lead, sections = _instances_lead(consensus), _of_instances(consensus, data, level, owner)
    else:
        lead = lead_of(consensus, evidence(described, period), level)
        sections = _of_one(consensus, data, level, owner)
    sections += [("Method", _method(consensus)), ("Data", [Facts(facts=data_facts(described))])]
    sections.append(("Check this page", check_blocks(certificate)))
    known = {"method": consensus.method, "params": dict(consensus.params), "level": level}
    known["notes"] = list(consensus.notes)
    log = log_blocks(consensus.notes, items)
    return document(title, lead, sections, origin, known, consensus.to_frame(level), log)


def write_consensus_page(
    path: str | os.PathLike[str], consensus: Consensus | ConsensusSet, data: ReportedData, **options: Any
) -> None:
    """Write the page; the file appears under its name only when it is complete.

    >>> import tempfile, pathlib
    >>> import placet
    >>> votes = placet.simulate.battles([1.0, 0.0, -1.0], 60, items=["ant", "bee", "cat"], random_state=0)
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "page.html"
    >>> write_consensus_page(page, placet.consensus(votes), votes, title="Three animals")
    >>> "Three animals" in page.read_text()
    True
    """
    write_page(path, consensus_page(consensus, data, **options))


def _of_one(c: Consensus, data: ReportedData, level: float, owner: OwnerColumns) -> Sections:
    """The ranking, what the data leave open, what else the model found, and the audit."""
    return [
        ("Ranking", ranking_blocks(c, level, MOST_LISTED, owner=owner)),
        ("What to know", notes_blocks(c.notes, c.items)),
        ("Who beats whom", _wins(c)),
        ("How sure the ranks are", _ranks(c, level)),
        ("Scores over time", [] if c.timeline is None else history_blocks(c, c.timeline)),
        ("The sources", [] if c.sources is None else sources_blocks(c.sources)),
        ("The tasks", [] if c.responses is None else tasks_blocks(c.responses)),
        ("Controls", [] if c.effects is None else controls_blocks(c.effects)),
        ("The voters", _agents(c)),
        ("The count", _count(c)),
        ("How few votes decide it", fragility_blocks(c)),
        ("Audit", audit_one(c, data)),
    ]


def _of_groups(found: Groups, level: float, owner: OwnerColumns) -> Sections:
    """The groups of voters, then the ranking of each."""
    shown = list(found.items())[:MOST_INSTANCES]
    return [
        ("Groups of voters", groups_blocks(found)),
        ("What to know", notes_blocks(found.notes, several=True)),
        *(
            (f"Group {g}", ranking_blocks(c, level, MOST_OF_AN_INSTANCE, f"Group {g}", f"group {g}", owner))
            for g, c in shown
        ),
    ]


def _of_instances(found: ConsensusSet, data: Rankings, level: float, owner: OwnerColumns) -> Sections:
    """The winner of each instance, then the rankings of the first ones."""
    shown = dict(list(found.items())[:MOST_INSTANCES])
    more = f"{MOST_INSTANCES} of {len(found):,} instances are shown; the data to download hold all."
    return [
        ("Instances", [_winners(found)]),
        ("The voters", next((_agents(c) for c in shown.values()), [])),
        ("What to know", notes_blocks(found.notes, several=True)),
        ("Audit", audit_many(shown, data)),
        *(
            (
                f"Instance {name}",
                ranking_blocks(c, level, MOST_OF_AN_INSTANCE, f"Instance {name}", f"{k + 1} {name}", owner),
            )
            for k, (name, c) in enumerate(shown.items())
        ),
        ("More instances", [more] if len(found) > MOST_INSTANCES else []),
    ]


def _instances_lead(found: ConsensusSet) -> Lead:
    items = sum(len(c.items) for c in found.values())
    return Lead((f"{len(found):,} instances",), (f" with {items:,} items, each ranked on its own.",))


def _winners(found: ConsensusSet) -> TableFigure:
    """The item that comes first in each instance."""
    rows = [(str(name), f"{len(c.items):,}", first_of(c)[0]) for name, c in list(found.items())[:MOST_LISTED]]
    columns = [TableColumn("instance", "text"), TableColumn("items", "down", "num"), TableColumn("first", "text")]
    cut = f"{MOST_LISTED:,} of {len(found):,} instances are listed." if len(found) > MOST_LISTED else ""
    return TableFigure(label="Instances", columns=columns, rows=rows, left_out=cut)


def _wins(c: Consensus) -> list[PageBlock]:
    if c.win is None or len(c.items) < 2:
        return []
    chosen = c.order[:MOST_CELLS]
    matrix = c.win_between(chosen[:, None], chosen)
    return [wins([c.items[k] for k in chosen], matrix, best_of(len(c.items), MOST_CELLS))]


def _ranks(c: Consensus, level: float) -> list[PageBlock]:
    if c.stderr is None or not 2 <= len(c.items) <= MOST_ROWS:
        return []
    words = (
        "The darker a rank, the more probable it is for this item on its own; ranks of less than 0.5% are left out. "
        f"The outline is “could be”, as in the ranking: it holds for all items together ({level:.0%}), and so is wider."
    )
    best, worst = c.rank_interval(level)
    names = [c.items[k] for k in c.order]
    return [words, rank_strips(names, c.rank_probabilities()[c.order], best[c.order], worst[c.order])]


def _agents(c: Consensus) -> list[PageBlock]:
    """What the model found about the voters."""
    if c.agents is not None:
        return raters_blocks(c.agents)
    adherence = c.adherence
    if not adherence:
        return []
    names = sorted(adherence, key=lambda name: -adherence[name])[:MOST_LISTED]
    values = [float(adherence[name]) for name in names]
    texts = aligned_numbers(values, [max(decimals_of(values, 3), 2)] * len(values))
    words = "Adherence: how closely each voter follows the consensus; a voter near 0 votes at random."
    columns = [TableColumn("voter", "text"), TableColumn("adherence", "down", "num")]
    rows = list(zip(map(str, names), texts))
    return [
        words,
        TableFigure(label="The voters", columns=columns, rows=rows, left_out=best_of(len(adherence), MOST_LISTED)),
    ]


def _count(c: Consensus) -> list[PageBlock]:
    """The rounds of a count: a row per item, a column per round, up to the round in which the item is eliminated."""
    record = c.record
    if record is None or not record.counts:
        return []
    rounds = record.counts[0]
    action = {i: step.actions[i] for step in rounds for i in step.actions}
    rows: list[list[Cell]] = []
    for i in c.order[:MOST_COUNTED].tolist():
        out = next((k for k, step in enumerate(rounds) if step.status[i] == ELIMINATED), len(rounds))
        votes = counts([float(step.votes[i]) for step in rounds[: out + 1]])
        rows.append([str(c.items[i]), *votes, *[""] * (len(rounds) - len(votes)), str(action.get(i, ""))])
    exhausted = [float(step.exhausted) for step in rounds if step.exhausted is not None]
    rows += [["exhausted", *counts(exhausted), ""]] if exhausted else []
    words = [f"Quota {number(record.quota, 6)}."] if record.quota is not None else []
    words += ["Votes at the start of each round, and what happened last to an item."]
    words += [f"The first of {record.ways} ways of breaking ties."] if record.ways > 1 else []
    heads = [TableColumn(f"round {k + 1}", "", "num") for k in range(len(rounds))]
    columns, cut = [TableColumn("item"), *heads, TableColumn("end")], best_of(len(c.items), MOST_COUNTED)
    return [" ".join(words), TableFigure(label="The count", columns=columns, rows=rows, left_out=cut)]


def _method(c: Consensus | ConsensusSet) -> list[PageBlock]:
    """What the method does, without jargon, its non-default settings, and how the answer was computed."""
    record = record_of(c.method)
    usual = record.parameters if record.words else {}
    facts: list[tuple[str, object]] = [("method", record.title)]
    facts += [("published by", record.reference)] if record.reference else []
    facts += [(f"setting {k}", v) for k, v in c.params.items() if v is not None and str(usual.get(k, v)) != str(v)]
    if isinstance(c, Consensus) and c.fit is not None:
        facts += [("converged", bool(c.fit.converged)), ("iterations", int(c.fit.n_iter))]
    return [*([record.words] if record.words else []), Facts(facts=facts)]
