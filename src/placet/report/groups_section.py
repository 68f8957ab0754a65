"""The section "Groups of voters" of the page."""

import numpy as np

from placet.aggregate import Groups
from placet.io.output.numbers import number, with_decimals
from placet.report.figures import TableColumn, name_html, table

BINS = (0.5, 0.7, 0.9, 0.99)
"""Thresholds on the probability of a voter's likeliest group at which voters are counted."""


def lead(found: Groups) -> str:
    """Lead paragraph: the number of groups, and how well they are separated."""
    voters = float(found.count.sum())
    return (
        f'<p class="lead"><strong>{len(found):,} groups of voters</strong> among {number(voters, 6)}; the likeliest '
        f"group of a voter has a probability of {found.certainty:.0%} on average.</p>"
    )


def section(found: Groups) -> str:
    """Shares with standard errors, the best items of each group, the certainty of memberships, and what was tried."""
    rows = []
    for row in found.summary():
        voters = number(float(str(row["voters"])), 6)
        error = "" if row["share_stderr"] is None else f"± {row['share_stderr']:.1%}"
        rows.append(
            f'<tr><th scope="row">{row["group"]}</th><td class="num">{row["share"]:.1%}</td><td class="num soft">'
            f'{error}</td><td class="num">{voters}</td><td>{name_html(row["first"])}</td></tr>'
        )
    heads = ("share", "±", "voters most likely in it")
    columns = [TableColumn("group"), *(TableColumn(text, "", "num") for text in heads), TableColumn("first")]
    words = (
        "<p>Each voter belongs to one of the groups, with a probability that follows from what it said; groups are "
        "numbered by falling share.</p>"
    )
    return words + table(columns, rows, "Groups of voters") + _certainty_text(found) + _tried_table(found)


def _certainty_text(found: Groups) -> str:
    """Shares of voters whose likeliest group has at least the probability of each threshold in `BINS`."""
    best, total = found.membership.max(axis=1), max(float(found.count.sum()), 1e-300)
    parts = [f"{float(found.count @ (best >= bound)) / total:.0%} at {bound:g} or more" for bound in BINS]
    return f"<p>Voters by the probability of their likeliest group: {', '.join(parts)}.</p>"


def _tried_table(found: Groups) -> str:
    if not found.tried:
        return ""
    rows = []
    for one in found.tried:
        valid = "" if one.valid is None or np.isnan(one.valid) else with_decimals(one.valid, 4)
        chosen = " (chosen)" if one.groups == len(found) else ""
        rows.append(
            f'<tr><th scope="row">{one.groups}{chosen}</th><td class="num">{with_decimals(one.log_likelihood, 1)}</td>'
            f'<td class="num">{with_decimals(one.bic, 1)}</td><td class="num">{valid}</td></tr>'
        )
    heads = ("log likelihood", "BIC (lower is better)", "held out, per voter")
    columns = [TableColumn("groups"), *(TableColumn(text, "", "num") for text in heads)]
    return "<p>Numbers of groups that were tried:</p>" + table(columns, rows, "Numbers of groups that were tried")
