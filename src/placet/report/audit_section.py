"""The section "Audit" of the page: which axioms the ranking satisfies, as questions and answers."""

import re
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby

from placet.aggregate import METHODS, Consensus
from placet.aggregate.instances import split
from placet.axioms import Audit, AuditSet, audit
from placet.axioms.findings import Finding
from placet.axioms.sentences import MEANING, capitalize
from placet.data import Comparisons, Rankings
from placet.report.figures import TableColumn, sentences_html, table

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
}
"""Check of an audit -> the question it answers, without jargon."""

VERDICTS = {"kept": "yes", "broken": "no", "info": ""}
"""Verdict -> the answer shown; other verdicts are shown as they are."""


def audit_one(c: Consensus, data: object) -> str:
    """HTML: which axioms the ranking satisfies and violates on these ballots or votes."""
    known = c.method in METHODS
    if not known or not isinstance(data, Rankings | Comparisons) or not 2 <= len(c.items) <= MOST_AUDITED:
        return ""
    if tuple(c.items) != tuple(data.items):
        return ""
    return findings_table(audit(data, c, rivals=0).findings, c.items)


def audit_many(shown: Mapping[Hashable, Consensus], data: Rankings) -> str:
    """HTML: which axioms the rankings of the instances shown satisfy and violate, summarized."""
    audits = {}
    for name, part in split(data):
        c = shown.get(name)
        if c is not None and 2 <= len(c.items) <= MOST_AUDITED:
            own = audit(part.restricted(c.items), c, rivals=0, compare=())
            assert isinstance(own, Audit)
            audits[name] = own
    if not audits:
        return ""
    names = [*audits, *(item for own in audits.values() for item in own.consensus.items)]
    return findings_table(AuditSet(next(iter(shown.values())).method, audits).findings, names)


def question(check: str) -> str:
    """The question that a check answers."""
    axiom, theory, _ = check.partition(" in theory")
    return f"Always, on any ballots: {MEANING[axiom]}?" if theory else QUESTIONS.get(check) or capitalize(check)


def findings_table(lines: Sequence[Finding], names: Sequence[object]) -> str:
    """A table of questions, answers and sentences; findings on the same question are grouped."""
    rows = []
    texts = iter(sentences_html([re.sub(r" \(epsilon [0-9.]+\)", "", line.text) for line in lines], names))
    for check, group in groupby(lines, key=lambda line: line.check):
        own = list(group)
        for k, line in enumerate(own):
            head = f'<th scope="row" rowspan="{len(own)}">{question(check)}</th>' if k == 0 else ""
            answer = VERDICTS.get(line.verdict, line.verdict)
            rows.append(f"<tr>{head}<td>{answer}</td><td>{next(texts)}</td></tr>")
    columns = [TableColumn("question", "", "question"), TableColumn("answer", "", "answer"), TableColumn("in words")]
    return table(columns, rows, "Audit", "ranking answers")
