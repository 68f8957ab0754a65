"""The page that compares slices: every item's rank in each, and where they differ beyond chance."""

import os
from collections.abc import Hashable
from html import escape

import placet
from placet.aggregate import ConsensusSet
from placet.aggregate.slices import compare_slices
from placet.io.files import writing
from placet.report.style import CSS

MOST_ROWS = 500
MOST_SLICES = 30


def slices_page(found: ConsensusSet, *, title: str = "Slices", level: float = 0.95) -> str:
    """HTML of one self-contained page: 500 items by 30 slices at most, and it says so."""
    frame = compare_slices(found, level)
    shown = list(found)[:MOST_SLICES]
    differ = [name for name, d in zip(frame["item"], frame["differs"]) if d]
    lead = (
        f"<strong>{len(differ)} of {len(frame)}</strong> items stand differently between the {len(found)} values of "
        f"{escape(found.by)} beyond chance ({level:.0%}, all items at once)."
        if frame["p"].count()
        else f"One board for each of the {len(found)} values of {escape(found.by)}."
    )
    heads = "".join(f"<th>{escape(str(name))}</th>" for name in shown)
    rows = "".join(_row(row, shown, found, level) for row in frame.head(MOST_ROWS).iter_rows(named=True))
    support = "".join(f'<td class="num">{_support(found, name)}</td>' for name in shown)
    notes = "".join(f"<li>{escape(note)}</li>" for note in found.notes)
    cut = [f"The first {MOST_ROWS} of {len(frame):,} items are shown."] if len(frame) > MOST_ROWS else []
    cut += [f"The first {MOST_SLICES} of {len(found):,} slices are shown."] if len(found) > MOST_SLICES else []
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body><main><h1>{escape(title)}</h1>"
        f'<p class="lead">{lead}</p><section><h2>Ranks by {escape(found.by)}</h2>'
        f"<p>In brackets are the ranks that the data leave open, all items at once with {level:.0%} confidence. "
        "Items are listed by their mean rank; p is the chance of differences between slices as large as these if there "
        "were none.</p>"
        f'<div class="wide"><table class="ranking"><thead><tr><th>item</th>{heads}<th>p</th><th>differs</th></tr>'
        "</thead>"
        f'<tbody>{rows}<tr><th scope="row">mean support of an item</th>{support}<td></td><td></td></tr>'
        "</tbody></table></div>"
        f'<p class="soft">{" ".join(cut)}</p></section>'
        + (f"<section><h2>What to know</h2><ul>{notes}</ul></section>" if notes else "")
        + f"<footer>Placet {placet.__version__}</footer></main></body></html>\n"
    )


def write_slices_page(path: str | os.PathLike[str], found: ConsensusSet, **options: object) -> None:
    """Write the page; the file appears under its name only when it is whole."""
    page = slices_page(found, **options)  # type: ignore[arg-type]
    with writing(path) as file:
        file.write(page.encode())


def _row(row: dict[str, object], shown: list[Hashable], found: ConsensusSet, level: float) -> str:
    cells = []
    for name in shown:
        board = found[name]
        k = next((k for k, item in enumerate(board.items) if str(item) == row["item"]), None)
        text = ""
        if k is not None:
            text = str(board.ranks[k])
            if board.stderr is not None:
                low, high = board.rank_interval(level)
                text += f" ({low[k]}–{high[k]})" if low[k] < high[k] else ""
        cells.append(f'<td class="rank">{text}</td>')
    p = row["p"]
    said = "" if row["differs"] is None else "yes" if row["differs"] else "no"
    number = "" if p is None else f"{p:.2g}"
    return (
        f'<tr><th scope="row"><bdi>{escape(str(row["item"]))}</bdi></th>{"".join(cells)}'
        f'<td class="num">{number}</td><td>{said}</td></tr>'
    )


def _support(found: ConsensusSet, name: Hashable) -> str:
    support = found[name].support
    return "" if support is None else f"{support.mean():,.1f}"
