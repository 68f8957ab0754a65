"""Descriptions of data for people who read a ranking but not its manual."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from placet.output.numbers import counts

KINDS = {
    "comparisons": "votes on pairs",
    "rankings": "ballots",
    "scores": "a table of scores",
    "games": "games with points",
    "sources": "several sources",
}

DATA = {
    "weight": "weight of all ballots",
    "rows": "entries on ballots",
    "largest tier": "most items that one ballot ties",
    "coverage": "share of all items on a ballot, on average",
    "pairs": "pairs that were compared",
    "pairs possible": "pairs that there are",
    "groups with wins both ways": "groups of items that wins connect both ways",
    "agents": "voters",
}
"""Fact about data -> its label; other facts keep their names."""


UNITS = {"votes": "vote", "weight": "ballot", "scores": "score", "sources": "source", "games": "game"}
"""Fact that says how many data there are -> what one of them is."""


def amount(described: Mapping[str, Any]) -> str:
    """How many votes, ballots or scores there are.

    >>> amount({"votes": 1200.0}), amount({"weight": 1.0})
    ('1,200 votes', '1 ballot')
    """
    known, unit = next((known, unit) for known, unit in UNITS.items() if known in described)
    text = counts([float(described[known])])[0]
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def period_text(first: str, last: str) -> str:
    """The time between two dates, in months; a day if they are the same. Empty if they are not dates.

    >>> period_text("2026-01-03", "2026-10-30"), period_text("2024-12-01T10:00:00", "2026-01-03")
    ('January to October 2026', 'December 2024 to January 2026')
    >>> period_text("2026-03-01", "2026-03-02"), period_text("2026-03-01", "2026-03-01"), period_text("1.0", "9.0")
    ('March 2026', '1 March 2026', '')
    """
    try:
        start, end = (date.fromisoformat(text[:10]) for text in (first, last))
    except ValueError:
        return ""
    month = f"{MONTHS[end.month - 1]} {end.year}"
    if start == end:
        return f"{end.day} {month}"
    if start.year != end.year:
        return f"{MONTHS[start.month - 1]} {start.year} to {month}"
    return month if start.month == end.month else f"{MONTHS[start.month - 1]} to {month}"


def evidence(described: Mapping[str, Any], period: tuple[str, str] | None = None) -> str:
    """How many data there are, and from when, if it is known.

    >>> evidence({"votes": 900, "first date": "2026-01-03", "last date": "2026-10-30"})
    '900 votes (January to October 2026)'
    """
    first, last = period or (described.get("first date"), described.get("last date"))
    when = period_text(str(first), str(last)) if first and last else ""
    return f"{amount(described)} ({when})" if when else amount(described)


def data_facts(described: Mapping[str, object]) -> list[tuple[str, object]]:
    """Facts about data with readable labels; unknown facts are omitted."""
    found: list[tuple[str, object]] = []
    for name, fact in described.items():
        if fact is None:
            continue
        if name == "kind":
            fact = KINDS.get(str(fact), fact)
        elif name in ("first date", "last date"):
            fact = str(fact).removesuffix("T00:00:00")
        elif name == "coverage" and isinstance(fact, float):
            fact = f"{fact:.0%}"
        elif isinstance(fact, float) and fact == round(fact):
            fact = round(fact)
        found.append((DATA.get(name, name), fact))
    return found
