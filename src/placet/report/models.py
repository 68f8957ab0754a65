"""Sections of the report on what a model has beside the items: controls."""

from html import escape

from placet.aggregate import Consensus
from placet.aggregate.controls import Controls
from placet.report.figures import number


def controls_table(c: Consensus) -> str:
    """The effects of controls, their standard errors, and what they are worth in Elo points."""
    found = c.extras.get("controls")
    if not isinstance(found, Controls):
        return ""
    rows = []
    for row in found.to_frame().iter_rows(named=True):
        error = "" if row["stderr"] is None else f' <span class="soft">± {number(row["stderr"])}</span>'
        rows.append(
            f'<tr><th scope="row">{escape(row["name"])}</th><td class="num">{number(row["coefficient"])}{error}</td>'
            f'<td class="num">{number(row["points"])}</td><td class="num">{number(row["typical"])}</td>'
            f'<td class="num">{number(row["typical_points"])}</td></tr>'
        )
    heads = ("control", "effect of one unit", "in Elo points", "typical size", "its worth")
    head = f"<tr>{''.join(f'<th>{text}</th>' for text in heads)}</tr>"
    words = (
        "<p>Controls are fitted with the scores; items are ranked, and probabilities of winning given, at 0 of each. A "
        "typical size is the root mean square over all votes, and its worth is in Elo points.</p>"
    )
    table = f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody>"
    return f'{words}<div class="wide"><table class="ranking">{table}</table></div>'
