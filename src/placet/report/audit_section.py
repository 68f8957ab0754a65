"""The section "Audit" of the page: which axioms the ranking satisfies, as questions and answers."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from placet.aggregate import Consensus
from placet.aggregate.instances import split
from placet.aggregate.method_table import record_of
from placet.axioms import Audit, AuditSet, audit
from placet.axioms.findings import Finding
from placet.axioms.sentences import MEANING, capitalize
from placet.data import Comparisons, Rankings
from placet.report.figures import TEMPLATES, Figure, PageBlock, Sentence, TableColumn, sentences

MOST_AUDITED = 500

QUESTIONS = {
    "ranking": "Who comes first?",
    "universality": "Is there one full ranking, without ties?",
    "majority": "Does an item win that most voters put first?",
    "condorcet": "Does the head-to-head winner come first?",
    "pareto": "If everyone prefers one item to another, does it rank higher?",
    "strong-condorcet": "Is every majority between two items followed?",
    "near misses": "How narrow is it?",
    "sensitivity": "How many ballots would change the winner?",
    "agreement": "Do other rules agree?",
    "instances": "What was looked at?",
    **{f"{axiom} in theory": f"Always, on any ballots: {meaning}?" for axiom, meaning in MEANING.items()},
}
"""Check of an audit -> the question it answers, without jargon."""

VERDICTS = {"kept": "yes", "broken": "no", "info": ""}
"""Verdict -> the answer shown; other verdicts are shown as they are."""


@dataclass(frozen=True, kw_only=True)
class AuditTable(Figure):
    """Questions, each with its findings: an answer and a sentence."""

    template = f"{TEMPLATES}/audit.html"
    questions: Sequence[tuple[str, Sequence[tuple[str, Sentence]]]]
    columns: Sequence[TableColumn] = (
        TableColumn("question", "", "question"),
        TableColumn("answer", "", "answer"),
        TableColumn("in words"),
    )


def audit_one(c: Consensus, data: object) -> list[PageBlock]:
    """Which axioms the ranking satisfies and violates on these ballots or votes."""
    method = record_of(c.method)
    if not method.words or not isinstance(data, Rankings | Comparisons) or not 2 <= len(c.items) <= MOST_AUDITED:
        return []
    if tuple(c.items) != tuple(data.items):
        return []
    found = audit(data, c, rivals=0).findings
    model = method.kind == "model"  # that its scores do not tie says nothing on whether items can be told apart
    said = ("ranking", "universality") if model else ()  # the first sentence of the page says who leads
    return [audit_table([one for one in found if one.check not in said], c.items)]


def audit_many(shown: Mapping[Hashable, Consensus], data: Rankings) -> list[PageBlock]:
    """Which axioms the rankings of the instances shown satisfy and violate, summarized."""
    audits = {}
    for name, part in split(data):
        c = shown.get(name)
        if c is not None and 2 <= len(c.items) <= MOST_AUDITED:
            own = audit(part.restricted(c.items), c, rivals=0, compare=())
            assert isinstance(own, Audit)
            audits[name] = own
    if not audits:
        return []
    names = [*audits, *(item for own in audits.values() for item in own.consensus.items)]
    return [audit_table(AuditSet(next(iter(shown.values())).method, audits).findings, names)]


def audit_table(findings: Sequence[Finding], names: Sequence[object]) -> AuditTable:
    """The findings, grouped by the question they answer."""
    texts = sentences([re.sub(r" \(epsilon [0-9.]+\)", "", one.text) for one in findings], names)
    answers = [(one.check, (VERDICTS.get(one.verdict, one.verdict), text)) for one, text in zip(findings, texts)]
    grouped = groupby(answers, key=itemgetter(0))
    questions = [
        (QUESTIONS.get(check) or capitalize(check), [answer for _, answer in group]) for check, group in grouped
    ]
    return AuditTable(questions=questions)
