"""Display of a consensus: a table with bars in a notebook, or a matplotlib chart."""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from placet.io.escaping import in_html
from placet.io.output.numbers import with_error

if TYPE_CHECKING:
    from placet.aggregate.result.difference import Difference
    from placet.aggregate.result.result import Consensus, ConsensusSet

MOST_ROWS = 30
MOST_BOARDS, ROWS_OF_MANY, MOST_AXES = 20, 10, 6
"""Maximum number of boards of a set in a notebook, of rows in each, and of boards in a chart."""

LEVEL = 0.95


def html_table(c: "Consensus", level: float = LEVEL, most: int = MOST_ROWS) -> str:
    """The best items as an HTML table: rank, item, a bar for the interval with a tick at the score, and the number.

    Colors are inherited from the page, so it is readable in light and dark notebooks.
    """
    chosen = c.order[:most]
    if not len(chosen):
        return f"<p>{in_html(repr(c))}</p>"
    known = c.stderr is not None
    low, high = c.interval(level) if known else (c.scores, c.scores)
    best, worst = c.rank_interval(level) if known else (c.ranks, c.ranks)
    left = float(low[chosen].min())
    width = (float(high[chosen].max()) - left) or 1.0
    rows = []
    for k in chosen.tolist():
        a, b, at = (100 * (value - left) / width for value in (low[k], high[k], c.scores[k]))
        bar = _bar(a, b, at)
        span = f" ({best[k]}–{worst[k]})" if best[k] < worst[k] else ""
        rows.append(
            f"<tr><td>{c.ranks[k]}{span}</td><td>{in_html(c.items[k])}</td><td>{bar}</td>"
            f"<td>{_estimate(float(c.scores[k]), float(c.stderr[k]) if c.stderr is not None else None)}</td></tr>"
        )
    more = f", the best {most} of {len(c.items):,} items" if len(c.items) > most else ""
    notes = "".join(f"<li>{in_html(note)}</li>" for note in c.notes)
    about = f"{in_html(c.method)}{more}" + (f"; bars are {level:.0%} intervals" if known else "")
    return (
        f"<table><caption>{about}</caption><thead><tr><th>rank</th><th>item</th><th></th><th>score</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>" + (f"<ul>{notes}</ul>" if notes else "")
    )


def _bar(a: float, b: float, at: float, zero: float | None = None) -> str:
    """SVG bar from a to b with a tick at ``at``, all in 0..100; ``zero``: position of a vertical line."""
    line = "" if zero is None else f'<rect x="{zero - 0.15:.2f}" width=".3" y="0" height="10" opacity=".5"/>'
    return (
        f'<svg viewBox="-1 0 102 10" preserveAspectRatio="none" width="220" height="12" fill="currentColor">{line}'
        f'<rect x="{a:.2f}" width="{max(b - a, 0.3):.2f}" y="3.5" height="3" opacity=".35"/>'
        f'<rect x="{at - 0.4:.2f}" width=".8" y="1" height="8"/></svg>'
    )


def html_changes(d: "Difference", most: int = MOST_ROWS) -> str:
    """HTML table of ranks on both boards, and a bar for the interval of each change; those beyond chance are bold."""
    rows, shown = [], d.to_frame().head(most).to_dicts()
    z = -scipy.special.ndtri((1 - d.level) / 2)
    ends = [(row["change"] - z * row["stderr"], row["change"] + z * row["stderr"]) for row in shown if row["stderr"]]
    left, right = min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=1.0)
    left, right = min(left, 0.0), max(right, 0.0)
    at = lambda value: 100 * (value - left) / ((right - left) or 1.0)  # noqa: E731
    for row in shown:
        bar = text = ""
        if row["stderr"]:
            low, high = row["change"] - z * row["stderr"], row["change"] + z * row["stderr"]
            bar, text = _bar(at(low), at(high), at(row["change"]), at(0.0)), _estimate(row["change"], row["stderr"])
        name = f"<b>{in_html(row['item'])}</b>" if row["beyond_chance"] else in_html(row["item"])
        ranks = " → ".join("" if rank is None else str(rank) for rank in (row["rank_a"], row["rank_b"]))
        rows.append(f"<tr><td>{ranks}</td><td>{name}</td><td>{bar}</td><td>{text}</td></tr>")
    notes = "".join(f"<li>{in_html(note)}</li>" for note in d.notes)
    return (
        f"<table><caption>changes, with {d.level:.0%} intervals; bold: beyond chance</caption><thead><tr><th>ranks</th>"
        f"<th>item</th><th></th><th>change</th></tr></thead><tbody>{''.join(rows)}</tbody></table><ul>{notes}</ul>"
    )


def html_tables(many: "ConsensusSet", level: float = LEVEL) -> str:
    """The first boards of a set as collapsible HTML tables of their best items; the first one is expanded."""
    shown = list(many.items())[:MOST_BOARDS]
    parts = [
        f"<details{' open' if k == 0 else ''}><summary>{in_html(many.by)} {in_html(name)}</summary>"
        f"{html_table(c, level, ROWS_OF_MANY)}</details>"
        for k, (name, c) in enumerate(shown)
    ]
    more = f"<p>the first {len(shown)} of {len(many):,}</p>" if len(shown) < len(many) else ""
    return f"<p>{in_html(repr(many))}</p>{''.join(parts)}{more}"


def _estimate(value: float, error: float | None) -> str:
    return " ".join(with_error(value, error, 4)).strip()


def plot(c: "Consensus", level: float = LEVEL, most: int = MOST_ROWS, axes: Any = None) -> Any:
    """Plot the best items with their intervals by matplotlib; returns the axes."""
    chosen = c.order[:most][::-1]
    if axes is None:
        _, axes = _pyplot().subplots(figsize=(6, 1 + 0.25 * len(chosen)), layout="constrained")
    place = np.arange(len(chosen))
    if c.stderr is not None:
        low, high = (ends[chosen] for ends in c.interval(level))
        axes.hlines(place, low, high, linewidth=3, alpha=0.4)
    axes.plot(c.scores[chosen], place, "o", markersize=5)
    axes.set_yticks(place, [str(c.items[k]) for k in chosen], parse_math=False)
    axes.set_xlabel("score" if c.stderr is None else f"score, with its {level:.0%} interval")
    axes.set_title(c.method)
    axes.grid(axis="x", alpha=0.3)
    return axes


def plot_many(many: "ConsensusSet", level: float = LEVEL, most: int = ROWS_OF_MANY) -> Any:
    """Plot the first boards of a set below one another; returns their axes (boards,)."""
    shown = list(many.items())[:MOST_AXES]
    rows = [1 + 0.25 * min(most, len(c.items)) for _, c in shown]
    figure = _pyplot().figure(figsize=(6, sum(rows) or 1), layout="constrained")
    axes = figure.subplots(max(len(shown), 1), squeeze=False, height_ratios=rows or [1])[:, 0]
    for (name, c), own in zip(shown, axes):
        plot(c, level, most, own)
        own.set_title(f"{many.by} {name}", parse_math=False)
    return axes


def plot_changes(d: "Difference", most: int = MOST_ROWS, axes: Any = None) -> Any:
    """Plot changes with their intervals around zero by matplotlib; returns the axes."""
    if d.change is None or d.stderr is None:
        raise ValueError("these boards have no scale in common, so that ranks alone are compared; to_frame() has them")
    number = {name: k for k, name in enumerate(d.items)}
    chosen = [number[d.b.items[k]] for k in d.b.order if d.b.items[k] in number][:most][::-1]
    if axes is None:
        _, axes = _pyplot().subplots(figsize=(6, 1 + 0.25 * len(chosen)), layout="constrained")
    place, z = np.arange(len(chosen)), -scipy.special.ndtri((1 - d.level) / 2)
    change, error = d.change[chosen], z * d.stderr[chosen]
    axes.axvline(0.0, color="0.6", linewidth=1)
    axes.hlines(place, change - error, change + error, linewidth=3, alpha=0.4)
    axes.plot(change, place, "o", markersize=5)
    axes.set_yticks(place, [str(d.items[k]) for k in chosen], parse_math=False)
    axes.set_xlabel(f"change of the score, with its {d.level:.0%} interval")
    return axes


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot() needs matplotlib; install it with: pip install 'placet[plot]'") from None
    return plt
