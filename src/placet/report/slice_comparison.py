"""The page that compares slices: every item's rank in each, and where they differ beyond chance."""

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placet.aggregate import Consensus, ConsensusSet
from placet.aggregate.method_table import record_of
from placet.aggregate.result.slices import compare_slices
from placet.output.numbers import number
from placet.report.data_words import UNITS, evidence
from placet.report.document import Origin, document, write_page
from placet.report.figures import TEMPLATES, Cell, Figure, Lead, PageBlock, Sections, TableColumn, TableFigure
from placet.report.notes_section import log_blocks, notes_blocks
from placet.report.owner_columns import OwnerColumns, owner_columns, slug
from placet.report.ranking_table import ranking_blocks

MOST_ROWS = 5000
MOST_SLICES = 30
MOST_OF_A_SLICE = 500


@dataclass(frozen=True, kw_only=True)
class Switch(Figure):
    """Rankings of which one is shown at a time: anchor, name and table of each."""

    template = f"{TEMPLATES}/switch.html"
    label: str
    choices: Sequence[tuple[str, str, Figure]]


def slices_page(
    found: ConsensusSet,
    *,
    title: str = "",
    level: float = 0.95,
    origin: Origin | None = None,
    about: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """HTML of one self-contained page: the ranking of each slice, with a switch between them, and their comparison.

    Parameters
    ----------
    found : the results, one per slice
    title : the heading; by default "Rankings by language"
    level : confidence level of intervals
    origin : files, command, seed and date to state on the page, if given
    about : columns of yours to show beside the items, as in `consensus_page`

    Returns
    -------
    str
        The page, with at most 5,000 items and 30 slices; it says if any are omitted.

    >>> import placet
    >>> votes = placet.Comparisons.from_battles(["ant", "ant"], ["bee", "bee"], ["a", "a"])
    >>> page = slices_page(placet.consensus({"soil": votes, "air": votes}))
    >>> "One board for each" in page or "ranks differently" in page
    True
    """
    owner = owner_columns(about, [item for board in found.values() for item in board.items])
    frame = compare_slices(found, level)
    heading = "Ranks side by side"
    sections: Sections = [
        (f"Ranking by {found.by}", _switch(found, level, owner)),
        (heading, _ranks(found, frame, level, heading)),
        ("Slices", [_slices(found)]),
        ("What to know", notes_blocks(found.notes, several=True)),
        ("Method", [words] if (words := record_of(found.method).words) else []),
    ]
    known = {"method": found.method, "by": found.by, "level": level, "notes": list(found.notes)}
    lead, log = _lead(found, frame, level, origin), log_blocks(found.notes)
    title = title or f"Rankings by {found.by}"
    return document(title, lead, sections, origin, known, found.to_frame(level), log)


def write_slices_page(path: str | os.PathLike[str], found: ConsensusSet, **options: Any) -> None:
    """Write the page; the file appears under its name only when it is complete.

    >>> import pathlib, tempfile
    >>> import placet
    >>> table = {"model_a": ["ant", "bee"] * 20, "model_b": ["bee", "cat"] * 20, "winner": ["a", "b", "tie", "a"] * 10}
    >>> slices = placet.read_slices(table | {"language": ["en", "en", "de", "de"] * 10}, "language")
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "page.html"
    >>> write_slices_page(page, placet.consensus(slices))
    >>> "Rankings by slice" in page.read_text()
    True
    """
    write_page(path, slices_page(found, **options))


def _lead(found: ConsensusSet, frame: Any, level: float, origin: Origin | None) -> Lead:
    by = str(found.by)
    data = _evidence(found, origin)
    if not frame["p"].count():
        return Lead((), (f"One board for each of the {len(found):,} values of ", by, f"{data}."))
    differ = int(frame["differs"].fill_null(False).sum())
    who = f"{differ:,} of {len(frame):,} items rank" if differ else "No item ranks"
    start = f" differently between the {len(found):,} values of "
    return Lead((who,), (start, by, f" beyond chance ({level:.0%}, all items at once){data}."))


def _evidence(found: ConsensusSet, origin: Origin | None) -> str:
    """ ", from 900 votes (January to October 2026)", if the boards know their data."""
    own = [board.asked.data.describe() for board in found.values() if board.asked is not None]
    unit = next((unit for unit in UNITS if own and all(unit in one for one in own)), None)
    if unit is None or len(own) < len(found):
        return ""
    period = None if origin is None else origin.period
    return f", from {evidence({unit: sum(float(one[unit]) for one in own)}, period)}"


def _switch(found: ConsensusSet, level: float, owner: OwnerColumns) -> list[PageBlock]:
    """The rankings of the first slices; the words that explain them stand above, once."""
    words, choices = "", []
    for k, (name, board) in enumerate(list(found.items())[:MOST_SLICES]):
        blocks = ranking_blocks(board, level, MOST_OF_A_SLICE, f"Ranking of {name}", f"{k + 1} {name}", owner)
        if blocks and isinstance(blocks[1], Figure):
            words = words or str(blocks[0])
            choices.append((f"slice-{k + 1}-{slug(name)}", str(name), blocks[1]))
    return [words, Switch(label=str(found.by), choices=choices)] if choices else []


def _ranks(found: ConsensusSet, frame: Any, level: float, label: str) -> list[PageBlock]:
    """The rank of every item in every slice, and whether they differ."""
    shown = list(found)[:MOST_SLICES]
    places = {name: {str(item): k for k, item in enumerate(found[name].items)} for name in shown}
    rows = [_row(row, shown, found, places, level) for row in frame.head(MOST_ROWS).iter_rows(named=True)]
    columns = [TableColumn("item", "text"), *(TableColumn(str(name), "up", "num") for name in shown)]
    columns += [TableColumn("p", "up", "num"), TableColumn("differs", "text")]
    words = (
        f"In brackets: the ranks compatible with the data ({level:.0%} confidence for all items together). Items "
        "are listed by their mean rank; p is the chance of differences between slices as large as these if there were "
        "none."
    )
    cut = [f"The first {MOST_ROWS:,} of {len(frame):,} items are shown."] if len(frame) > MOST_ROWS else []
    cut += [f"The first {MOST_SLICES} of {len(found):,} slices are shown."] if len(found) > MOST_SLICES else []
    return [words, TableFigure(label=label, columns=columns, rows=rows, left_out=" ".join(cut))]


def _row(
    row: dict[str, Any],
    shown: list[Hashable],
    found: ConsensusSet,
    places: Mapping[Hashable, Mapping[str, int]],
    level: float,
) -> list[Cell]:
    cells = [_place(found[name], places[name].get(row["item"]), level) for name in shown]
    said = "" if row["differs"] is None else "yes" if row["differs"] else "no"
    p = "" if row["p"] is None else number(row["p"], 2) if row["p"] >= 0.001 else "< 0.001"
    return [row["item"], *cells, p, said]


def _place(board: Consensus, k: int | None, level: float) -> Cell:
    """An item's rank and its rank interval; nothing where it was not ranked."""
    if k is None:
        return ""
    if board.stderr is None:
        return str(board.ranks[k])
    low, high = board.rank_interval(level)
    return str(board.ranks[k]), f"({low[k]}–{high[k]})" if low[k] < high[k] else ""


def _slices(found: ConsensusSet) -> TableFigure:
    """A table of the slices: items, support and winner."""
    rows: list[list[Cell]] = []
    for name, board in found.items():
        support = "" if board.support is None or not len(board.support) else number(float(board.support.mean()), 3)
        first = ("", str(board.items[board.order[0]])) if len(board.items) else ""
        rows.append([str(name), f"{len(board.items):,}", support, first])
    columns = [TableColumn("slice", "text"), TableColumn("items", "down", "num")]
    columns += [TableColumn("mean support of an item", "down", "num"), TableColumn("first", "text")]
    return TableFigure(label="Slices", columns=columns, rows=rows)
