"""Descriptions of data for people who read a ranking but not its manual."""

from collections.abc import Mapping
from typing import Any

from placet.io.output.numbers import counts

KINDS = {
    "comparisons": "votes on pairs",
    "rankings": "ballots",
    "scores": "a table of scores",
    "sources": "several sources",
}

DATA = {
    "weight": "weight of all ballots",
    "rows": "entries on ballots",
    "largest tier": "most items that one ballot ties",
    "coverage": "share of all items on a ballot, on average",
    "pairs": "pairs that were compared",
    "pairs possible": "pairs that there are",
    "strongly connected components": "groups that no chain of wins leads both into and out of",
    "agents": "voters",
}
"""Fact about data -> its label; other facts keep their names."""


UNITS = {"votes": "vote", "weight": "ballot", "scores": "score", "sources": "source"}
"""Fact that says how many data there are -> what one of them is."""


def amount(described: Mapping[str, Any]) -> str:
    """How many votes, ballots or scores there are.

    >>> amount({"votes": 1200.0}), amount({"weight": 1.0})
    ('1,200 votes', '1 ballot')
    """
    known, unit = next((known, unit) for known, unit in UNITS.items() if known in described)
    text = counts([float(described[known])])[0]
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"


def data_facts(described: Mapping[str, object]) -> list[tuple[str, object]]:
    """Facts about data with readable labels; unknown facts are omitted."""
    found: list[tuple[str, object]] = []
    for name, fact in described.items():
        if fact is None:
            continue
        if name == "kind":
            fact = KINDS.get(str(fact), fact)
        elif name == "coverage" and isinstance(fact, float):
            fact = f"{fact:.0%}"
        elif isinstance(fact, float) and fact == round(fact):
            fact = round(fact)
        found.append((DATA.get(name, name), fact))
    return found
