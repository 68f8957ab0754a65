"""The section "Kinds of voters" of the page."""

from html import escape

import numpy as np

from placet.aggregate import Groups
from placet.report import figures

BINS = (0.5, 0.7, 0.9, 0.99)
"""Probabilities of the likeliest group at which voters are counted."""


def lead(found: Groups) -> str:
    """How many kinds, and how well voters are told apart."""
    voters = float(found.count.sum())
    return (
        f'<p class="lead"><strong>{len(found):,} kinds of voters</strong> among {voters:,.6g}; the likeliest group of '
        f"a voter has a probability of {found.certainty:.0%} on average.</p>"
    )


def kinds(found: Groups) -> str:
    """Shares with their standard errors, the best items of each group, how sure memberships are, and what was tried."""
    rows = []
    for row in found.summary():
        error = "" if row["share_stderr"] is None else f" ± {row['share_stderr']:.1%}"
        rows.append(
            f'<tr><th scope="row">{row["group"]}</th><td class="num">{row["share"]:.1%}{error}</td>'
            f'<td class="num">{row["voters"]:,.6g}</td><td>{escape(str(row["first"]))}</td></tr>'
        )
    head = "<tr><th>group</th><th>share</th><th>voters most likely in it</th><th>first</th></tr>"
    words = (
        "<p>Each voter belongs to one of the groups, with a probability that follows from what it said; groups are "
        "numbered by falling share.</p>"
    )
    return words + _table(head, rows) + _sure(found) + _tried(found)


def _sure(found: Groups) -> str:
    """How many voters have a likeliest group of at least so much probability."""
    best, total = found.membership.max(axis=1), max(float(found.count.sum()), 1e-300)
    parts = [f"{float(found.count @ (best >= bound)) / total:.0%} at {bound:g} or more" for bound in BINS]
    return f"<p>Voters by the probability of their likeliest group: {', '.join(parts)}.</p>"


def _tried(found: Groups) -> str:
    if not found.tried:
        return ""
    rows = []
    for one in found.tried:
        valid = "" if one.valid is None or np.isnan(one.valid) else figures.number(one.valid)
        chosen = " (chosen)" if one.groups == len(found) else ""
        rows.append(
            f'<tr><th scope="row">{one.groups}{chosen}</th><td class="num">{figures.number(one.log_likelihood)}</td>'
            f'<td class="num">{figures.number(one.bic)}</td><td class="num">{valid}</td></tr>'
        )
    head = "<tr><th>groups</th><th>log likelihood</th><th>BIC</th><th>held out, per voter</th></tr>"
    return "<p>Numbers of groups that were tried:</p>" + _table(head, rows)


def _table(head: str, rows: list[str]) -> str:
    body = "".join(rows)
    return f'<div class="wide"><table class="ranking"><thead>{head}</thead><tbody>{body}</tbody></table></div>'
