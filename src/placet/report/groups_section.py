"""The section "Groups of voters" of the page."""

import numpy as np

from placet.aggregate import Groups
from placet.output.numbers import number, with_decimals
from placet.report.figures import Lead, PageBlock, TableColumn, TableFigure

BINS = (0.5, 0.7, 0.9, 0.99)
"""Thresholds on the probability of a voter's likeliest group at which voters are counted."""


def groups_lead(found: Groups) -> Lead:
    """The number of groups, and how well they are separated."""
    voters = number(float(found.count.sum()), 6)
    certainty = f"the likeliest group of a voter has a probability of {found.certainty:.0%} on average."
    return Lead((f"{len(found):,} groups of voters",), (f" among {voters}; {certainty}",))


def groups_blocks(found: Groups) -> list[PageBlock]:
    """Shares with standard errors, the best items of each group, the certainty of memberships, and what was tried."""
    words = (
        "Each voter belongs to one of the groups, with a probability that follows from what it said; groups are "
        "numbered by falling share."
    )
    return [words, _shares(found), _certainty_text(found), *_attempts(found)]


def _shares(found: Groups) -> TableFigure:
    rows = []
    for row in found.summary():
        error = "" if row["share_stderr"] is None else f"± {row['share_stderr']:.1%}"
        voters = number(float(str(row["voters"])), 6)
        rows.append((str(row["group"]), f"{row['share']:.1%}", error, voters, ("", str(row["first"]))))
    columns = [TableColumn("group"), TableColumn("share", "", "num"), TableColumn("±", "", "num soft")]
    columns += [TableColumn("voters most likely in it", "", "num"), TableColumn("first")]
    return TableFigure(label="Groups of voters", columns=columns, rows=rows)


def _certainty_text(found: Groups) -> str:
    """Shares of voters whose likeliest group has at least the probability of each threshold in `BINS`."""
    best, total = found.membership.max(axis=1), max(float(found.count.sum()), 1e-300)
    parts = [f"{float(found.count @ (best >= bound)) / total:.0%} at {bound:g} or more" for bound in BINS]
    return f"Voters by the probability of their likeliest group: {', '.join(parts)}."


def _attempts(found: Groups) -> list[PageBlock]:
    if not found.tried:
        return []
    rows = []
    for one in found.tried:
        valid = "" if one.valid is None or np.isnan(one.valid) else with_decimals(one.valid, 4)
        groups = f"{one.groups} (chosen)" if one.groups == len(found) else str(one.groups)
        rows.append((groups, with_decimals(one.log_likelihood, 1), with_decimals(one.bic, 1), valid))
    heads = ("log likelihood", "BIC (lower is better)", "held out, per voter")
    columns = [TableColumn("groups"), *(TableColumn(text, "", "num") for text in heads)]
    label = "Numbers of groups that were tried"
    return [f"{label}:", TableFigure(label=label, columns=columns, rows=rows)]
