"""Figures of the report as inline SVG and HTML tables: numbers in, text out."""

from collections.abc import Sequence

import numpy as np

from placet.data.arrays import Floats
from placet.io.escaping import in_html


def number(value: float) -> str:
    """A number short enough to read: three significant digits, a true minus sign."""
    return f"{value:.3g}".replace("-", "−")


def intervals(
    names: Sequence[object],
    scores: Floats,
    low: Floats | None,
    high: Floats | None,
    ranks: Sequence[str],
    tier: Sequence[int] | None = None,
) -> str:
    """Ranking table: rank, name, a dot at the score with its interval as a bar, and the numbers.

    ``tier``: a rule is drawn where a new one starts, and its number is said.
    """
    ends = scores if low is None or high is None else np.concatenate([low, high])
    left, right = float(np.min(ends)), float(np.max(ends))
    width = (right - left) or 1.0
    place = lambda value: 100 * (value - left) / width  # noqa: E731
    rows = []
    for k, name in enumerate(names):
        bar, words = "", number(scores[k])
        if low is not None and high is not None:
            a, b = place(low[k]), place(high[k])
            bar = f'<rect class="bar" x="{a:.2f}" width="{max(b - a, 0.2):.2f}" y="5" height="4"/>'
            words += f' <span class="soft">[{number(low[k])}, {number(high[k])}]</span>'
        svg = (
            '<svg viewBox="-2 0 104 14" preserveAspectRatio="none" role="img" '
            f'aria-label="score {number(scores[k])}"><line x1="0" x2="100" y1="7" y2="7" class="axis"/>{bar}'
            f'<rect class="dot" x="{place(scores[k]) - 0.5:.2f}" width="1" y="2" height="10"/></svg>'
        )
        starts = tier is not None and (k == 0 or tier[k] != tier[k - 1])
        if starts and tier is not None:
            rows.append(f'<tr class="tier"><th colspan="4" scope="rowgroup">tier {tier[k]}</th></tr>')
        rows.append(
            f'<tr><td class="rank">{in_html(ranks[k])}</td><th scope="row">{in_html(name)}</th>'
            f'<td class="plot">{svg}</td><td class="num">{words}</td></tr>'
        )
    head = '<tr><th>rank</th><th>item</th><th class="plot">score</th><th></th></tr>'
    return f'<div class="wide"><table class="ranking"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def heat_map(names: Sequence[object], table: Floats, label: str) -> str:
    """Square table of probabilities that the row beats the column; the color says who wins more often of the two."""
    head = "".join(f'<th class="tilt"><span>{in_html(name)}</span></th>' for name in names)
    rows = []
    for k, name in enumerate(names):
        cells = "".join(_cell(win, loss) for win, loss in zip(table[k], table[:, k]))
        rows.append(f'<tr><th scope="row">{in_html(name)}</th>{cells}</tr>')
    return (
        f'<div class="wide"><table class="heat"><caption>{in_html(label)}</caption>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(win: float, loss: float) -> str:
    if np.isnan(win):
        return "<td></td>"
    lead = (win - loss) / (win + loss) if win + loss > 0 else 0.0
    side = "up" if lead >= 0 else "down"
    return f'<td class="{side}" style="--p:{abs(lead):.2f}" title="{win:.3f}">{100 * win:.0f}</td>'


def rank_strips(names: Sequence[object], probability: Floats) -> str:
    """For each item a strip of its possible ranks, darker where more probable."""
    n = probability.shape[1]
    rows = []
    for name, row in zip(names, probability):
        shown = np.flatnonzero(row >= 0.005)
        marks = "".join(
            f'<rect x="{k}" width="1" y="0" height="10" style="--p:{row[k]:.3f}">'
            f"<title>rank {k + 1}: {row[k]:.1%}</title></rect>"
            for k in shown
        )
        likely = int(np.argmax(row)) + 1
        rows.append(
            f'<tr><th scope="row">{in_html(name)}</th><td class="plot"><svg viewBox="0 0 {n} 10" '
            f'preserveAspectRatio="none" class="strip" role="img" aria-label="most probable rank {likely}">'
            f'{marks}</svg></td><td class="num">{likely} <span class="soft">({row[likely - 1]:.0%})</span></td></tr>'
        )
    head = f'<tr><th>item</th><th class="plot">rank 1 … {n}</th><th>most probable</th></tr>'
    return f'<div class="wide"><table class="ranking"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def key_values(pairs: Sequence[tuple[str, object]]) -> str:
    """A two-column table of facts."""
    rows = "".join(f'<tr><th scope="row">{in_html(k)}</th><td>{in_html(fact_text(v))}</td></tr>' for k, v in pairs)
    return f'<div class="wide"><table class="facts"><tbody>{rows}</tbody></table></div>'


def fact_text(value: object) -> str:
    """A fact as a person reads it: yes or no, four digits, thousands apart."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
