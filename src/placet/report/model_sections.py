"""Sections of the report on model components other than items: score histories, controls, raters."""

from collections.abc import Iterable

import numpy as np

from placet.aggregate import Consensus
from placet.aggregate.likelihood.controls import Controls
from placet.aggregate.likelihood.raters import Raters
from placet.aggregate.result.history import History
from placet.io.escaping import in_html
from placet.io.output.numbers import decimals_of, number, with_decimals, with_error
from placet.report.figures import TableColumn, name_html, table


def controls_table(c: Consensus) -> str:
    """The effects of controls, with standard errors and in Elo points."""
    found = c.extras.get("controls")
    if not isinstance(found, Controls):
        return ""
    rows = []
    for row in found.to_frame().iter_rows(named=True):
        effect, error = with_error(row["coefficient"], row["stderr"])
        rows.append(
            f'<tr><th scope="row">{name_html(row["name"])}</th><td class="num">{effect}</td>'
            f'<td class="num soft">{error}</td><td class="num">{number(row["points"])}</td>'
            f'<td class="num">{number(row["typical"])}</td><td class="num">{number(row["typical_points"])}</td></tr>'
        )
    heads = ("effect of one unit", "±", "in Elo points", "typical size", "its worth")
    words = (
        "<p>Controls are fitted with the scores; items are ranked, and probabilities of winning given, at 0 of each. A "
        "typical size is the root mean square over all votes, and its worth is in Elo points.</p>"
    )
    return words + table([TableColumn("control"), *(TableColumn(text, "", "num") for text in heads)], rows, "Controls")


MOST_RATERS = 5000


def raters_table(c: Consensus) -> str:
    """A table of raters: votes, sharpness, tie rate, side bias and a description, most votes first."""
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
            value, error = with_error(row[name], row.get(f"{name}_stderr"))
            cells += f'<td class="num">{value} <span class="soft">{error}</span></td>'
        rows.append(
            f'<tr><th scope="row">{name_html(row["agent"])}</th><td class="num">{row[found.unit]:,.0f}</td>{cells}'
            f"<td>{in_html(row['note'])}</td></tr>"
        )
    words = (
        "<p>Sharpness is 1 for a typical rater and 0 for one whose answers have nothing to do with the scores"
        f"{'; side is what the first of two gains' if 'side' in shown else ''}. "
        f"All are drawn to the typical rater as far as few {found.unit} ask for.</p>"
    )
    columns = [TableColumn("rater", "text"), TableColumn(found.unit, "down", "num")]
    columns += [TableColumn(heads[name], "down", "num") for name in shown] + [TableColumn("remark", "text")]
    cut = f'<p class="soft">{MOST_RATERS:,} of {len(frame):,} raters are listed.</p>'
    return words + table(columns, rows, "The voters") + (cut if len(frame) > MOST_RATERS else "")


MOST_LINES, POINTS_OF_A_LINE = 8, 80
HUES = (210, 20, 140, 280, 45, 330, 180, 100)


def history_chart(c: Consensus) -> str:
    """Line chart of the best items' scores over time, with bands of two standard errors while an item was compared."""
    marks, best = history_lines(c)
    if not marks:
        return ""
    keys = [
        f'<li><svg viewBox="0 0 12 4" aria-hidden="true"><rect width="12" height="4" fill="{line_color(n)}"/></svg>'
        f"{name_html(c.items[k])}</li>"
        for n, k in enumerate(best)
    ]
    words = f"<p>The best {len(best)} items of today, with bands of two standard errors.</p>"
    return (
        f'{words}<div class="wide" tabindex="0" role="region" aria-label="Scores over time">'
        f'<svg viewBox="0 0 800 320" class="history" role="img" aria-label="Lines of scores over time">'
        f'{"".join(marks)}</svg></div><ul class="keys">{"".join(keys)}</ul>'
    )


def line_color(n: int) -> str:
    """The color of line number ``n``."""
    return f"hsl({HUES[n % len(HUES)]},60%,45%)"


def history_lines(c: Consensus) -> tuple[list[str], list[int]]:
    """The SVG elements of the chart, 800 x 320, and the items of its lines; both empty if scores are constant."""
    history = c.extras.get("history")
    if not isinstance(history, History) or len(history.step) < 2 or history.step.min() == history.step.max():
        return [], []
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
        marks.append(f'<polygon points="{_points(ends)}" fill="{line_color(n)}" opacity=".12"/>')
        marks.append(
            f'<polyline points="{_points(zip(x[rows], line))}" fill="none" stroke="{line_color(n)}" '
            f'stroke-width="2"><title>{in_html(str(c.items[k]))}</title></polyline>'
        )
    for tau in np.linspace(low, high, 6):
        when = history.steps.start(round(float(tau)))
        text = str(np.datetime_as_string(when, unit="D"))[:7] if history.steps.dates else number(float(when))
        place = 60 + 700 * (tau - low) / (high - low)
        marks.append(f'<text x="{place:.0f}" y="312" text-anchor="middle">{in_html(text)}</text>')
    places = decimals_of(np.linspace(bottom, top, 5), 3)
    for value in np.linspace(bottom, top, 5):
        marks.append(f'<line class="axis" x1="60" x2="760" y1="{y(value):.0f}" y2="{y(value):.0f}"/>')
        marks.append(
            f'<text x="52" y="{y(value) + 4:.0f}" text-anchor="end">{with_decimals(float(value), places)}</text>'
        )
    return marks, best


def _points(pairs: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
