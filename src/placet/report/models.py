"""Sections of the report on what a model has beside the items: how scores moved, controls, raters."""

from collections.abc import Iterable

import numpy as np

from placet.aggregate import Consensus
from placet.aggregate.controls import Controls
from placet.aggregate.drift import History
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


MOST_LINES, POINTS_OF_A_LINE = 8, 80
HUES = (210, 20, 140, 280, 45, 330, 180, 100)


def history_chart(c: Consensus) -> str:
    """Lines of the best items' scores over time, with bands of two standard errors where an item was compared."""
    history = c.extras.get("history")
    if not isinstance(history, History) or len(history.step) < 2 or history.step.min() == history.step.max():
        return ""
    best = [int(k) for k in c.order if history.offsets[k] < history.offsets[k + 1]][:MOST_LINES]
    low, high = float(history.step.min()), float(history.step.max())
    at = np.linspace(low, high, POINTS_OF_A_LINE)
    found = [history.at_step(float(tau)) for tau in at]
    score = np.array([values for values, _ in found])[:, best]
    error = np.array([errors for _, errors in found])[:, best]
    first = np.array([history.step[history.offsets[k]] for k in best], np.float64)
    seen = at[:, None] >= first - (high - low) / POINTS_OF_A_LINE
    bottom, top = float((score - 2 * error)[seen].min()), float((score + 2 * error)[seen].max())
    x = 60 + 700 * (at - low) / (high - low)
    y = lambda values: 290 - 270 * (values - bottom) / ((top - bottom) or 1.0)  # noqa: E731
    marks = []
    for n, k in enumerate(best):
        rows = seen[:, n]
        middle, spread = score[rows, n], 2 * error[rows, n]
        up, down, line = y(middle + spread), y(middle - spread), y(middle)
        ends = [*zip(x[rows], up), *zip(x[rows][::-1], down[::-1])]
        name, hue = in_html(str(c.items[k])), HUES[n % len(HUES)]
        marks.append(f'<polygon points="{_points(ends)}" fill="hsl({hue},60%,50%)" opacity=".12"/>')
        marks.append(
            f'<polyline points="{_points(zip(x[rows], line))}" fill="none" stroke="hsl({hue},60%,45%)" '
            f'stroke-width="2"><title>{name}</title></polyline>'
        )
        marks.append(f'<rect x="775" y="{14 + 20 * n}" width="12" height="4" fill="hsl({hue},60%,45%)"/>')
        marks.append(f'<text x="792" y="{20 + 20 * n}">{name}</text>')
    for tau in np.linspace(low, high, 6):
        when = history.steps.start(round(float(tau)))
        text = str(np.datetime_as_string(when, unit="D"))[:7] if history.steps.dates else number(float(when))
        place = 60 + 700 * (tau - low) / (high - low)
        marks.append(f'<text x="{place:.0f}" y="312" text-anchor="middle">{in_html(text)}</text>')
    for value in np.linspace(bottom, top, 5):
        marks.append(f'<line class="axis" x1="60" x2="760" y1="{y(value):.0f}" y2="{y(value):.0f}"/>')
        marks.append(f'<text x="52" y="{y(value) + 4:.0f}" text-anchor="end">{number(float(value))}</text>')
    words = f"<p>The best {len(best)} items of today, with bands of two standard errors.</p>"
    return (
        f'{words}<div class="wide"><svg viewBox="0 0 960 320" class="history" role="img" aria-label="Scores over time">'
        f"{''.join(marks)}</svg></div>"
    )


def _points(pairs: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
