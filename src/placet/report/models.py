"""Sections of the report on what a model has beside the items: controls and raters."""

from placet.aggregate import Consensus
from placet.aggregate.controls import Controls
from placet.aggregate.raters import Raters
from placet.io.escaping import in_html
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
            f'<tr><th scope="row">{in_html(row["name"])}</th><td class="num">{number(row["coefficient"])}{error}</td>'
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


MOST_RATERS = 200


def raters_table(c: Consensus) -> str:
    """What each rater is like: votes, sharpness, tie rate, side and a word, most votes first."""
    found = c.extras.get("agents")
    if not isinstance(found, Raters):
        return ""
    frame = found.to_frame()
    heads = {"sharpness": "sharpness", "side": "side", "tie_rate": "ties between equals"}
    shown = [name for name in heads if name in frame.columns]
    rows = []
    for row in frame.head(MOST_RATERS).iter_rows(named=True):
        cells = ""
        for name in shown:
            error = row.get(f"{name}_stderr")
            said = "" if error is None else f' <span class="soft">± {number(error)}</span>'
            cells += f'<td class="num">{number(row[name])}{said}</td>'
        rows.append(
            f'<tr><th scope="row">{in_html(str(row["agent"]))}</th><td class="num">{row["votes"]:,.0f}</td>{cells}'
            f"<td>{in_html(row['note'])}</td></tr>"
        )
    head = "".join(f"<th>{text}</th>" for text in ("rater", "votes", *(heads[name] for name in shown), ""))
    words = (
        "<p>Sharpness is 1 for a typical rater and 0 for one whose answers have nothing to do with the scores; side is "
        "what the first of two gains. All are drawn to the typical rater as far as few votes ask for.</p>"
    )
    cut = f'<p class="soft">{MOST_RATERS} of {len(frame):,} raters are listed.</p>' if len(frame) > MOST_RATERS else ""
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'{words}<div class="wide"><table class="ranking">{table}</table></div>{cut}'
