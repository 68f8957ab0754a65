"""The page that compares slices: every item's rank in each, and where they differ beyond chance."""

import os
from collections.abc import Hashable, Mapping
from typing import Any

from placet.aggregate import Consensus, ConsensusSet
from placet.aggregate.result.slices import compare_slices
from placet.io.escaping import in_html
from placet.io.output.numbers import number
from placet.report.document import Origin, Sections, data_files, document, write_page
from placet.report.figures import TableColumn, name_html, table
from placet.report.method_words import method_words

MOST_ROWS = 5000
MOST_SLICES = 30


def slices_page(
    found: ConsensusSet, *, title: str = "Slices", level: float = 0.95, origin: Origin | None = None
) -> str:
    """HTML of one self-contained page with at most 5,000 items and 30 slices; it says if any are omitted."""
    frame = compare_slices(found, level)
    shown = list(found)[:MOST_SLICES]
    places = {name: {str(item): k for k, item in enumerate(found[name].items)} for name in shown}
    rows = [_row(row, shown, found, places, level) for row in frame.head(MOST_ROWS).iter_rows(named=True)]
    columns = [TableColumn("item", "text"), *(TableColumn(name_html(name), "up", "num") for name in shown)]
    columns += [TableColumn("p", "up", "num"), TableColumn("differs", "text")]
    words = (
        f"<p>In brackets: the ranks compatible with the data ({level:.0%} confidence for all items together). Items "
        "are listed by their mean rank; p is the chance of differences between slices as large as these if there were "
        "none.</p>"
    )
    cut = [f"The first {MOST_ROWS:,} of {len(frame):,} items are shown."] if len(frame) > MOST_ROWS else []
    cut += [f"The first {MOST_SLICES} of {len(found):,} slices are shown."] if len(found) > MOST_SLICES else []
    left_out = f'<p class="soft">{" ".join(cut)}</p>' if cut else ""
    method = f"<p>{in_html(words)}</p>" if (words := method_words(found.method)) else ""
    notes = "".join(f"<li>{in_html(note)}</li>" for note in found.notes)
    sections: Sections = [
        (f"Ranks by {found.by}", words + table(columns, rows, f"Ranks by {found.by}") + left_out),
        ("Slices", _slices(found)),
        ("What to know", f"<ul>{notes}</ul>" if notes else ""),
        ("Method", method),
    ]
    about = {"title": title, "method": found.method, "by": found.by, "level": level, "notes": list(found.notes)}
    files = data_files(found.to_frame(level), about | (dict(origin.facts()) if origin is not None else {}))
    return document(title, _lead(found, frame, level), sections, origin, files)


def write_slices_page(path: str | os.PathLike[str], found: ConsensusSet, **options: Any) -> None:
    """Write the page; the file appears under its name only when it is complete."""
    write_page(path, slices_page(found, **options))


def _lead(found: ConsensusSet, frame: Any, level: float) -> str:
    by = name_html(found.by)
    if not frame["p"].count():
        return f'<p class="lead">One board for each of the {len(found):,} values of {by}.</p>'
    differ = int(frame["differs"].fill_null(False).sum())
    who = f"{differ:,} of {len(frame):,} items rank" if differ else "No item ranks"
    return (
        f'<p class="lead"><strong>{who}</strong> differently between the {len(found):,} values of {by} '
        f"beyond chance ({level:.0%}, all items at once).</p>"
    )


def _row(
    row: dict[str, Any],
    shown: list[Hashable],
    found: ConsensusSet,
    places: Mapping[Hashable, Mapping[str, int]],
    level: float,
) -> str:
    cells = []
    for name in shown:
        k = places[name].get(row["item"])
        cells.append(f'<td class="num">{"" if k is None else _place(found[name], k, level)}</td>')
    said = "" if row["differs"] is None else "yes" if row["differs"] else "no"
    p = "" if row["p"] is None else number(row["p"], 2) if row["p"] >= 0.001 else "&lt; 0.001"
    return (
        f'<tr><th scope="row">{name_html(row["item"])}</th>{"".join(cells)}<td class="num">{p}</td><td>{said}</td></tr>'
    )


def _place(board: Consensus, k: int, level: float) -> str:
    """An item's rank and its rank interval."""
    text = str(board.ranks[k])
    if board.stderr is not None:
        low, high = board.rank_interval(level)
        text += f' <span class="soft">({low[k]}–{high[k]})</span>' if low[k] < high[k] else ""
    return text


def _slices(found: ConsensusSet) -> str:
    """A table of the slices: items, support and winner."""
    rows = []
    for name, board in found.items():
        support = "" if board.support is None or not len(board.support) else number(float(board.support.mean()), 3)
        first = name_html(board.items[board.order[0]]) if len(board.items) else ""
        rows.append(
            f'<tr><th scope="row">{name_html(name)}</th><td class="num">{len(board.items):,}</td>'
            f'<td class="num">{support}</td><td>{first}</td></tr>'
        )
    heads = [
        TableColumn("slice", "text"),
        TableColumn("items", "down", "num"),
        TableColumn("mean support of an item", "down", "num"),
    ]
    return table([*heads, TableColumn("first", "text")], rows, "Slices")
