"""Sections of the page on model components other than items: controls, raters, sources, tasks."""

from placet.aggregate.result.learned.control_effects import Controls
from placet.aggregate.result.learned.rater_parameters import Raters
from placet.aggregate.result.learned.source_parameters import SourceParameters
from placet.aggregate.result.learned.task_responses import TaskResponses
from placet.output.numbers import number, with_error
from placet.report.figures import PageBlock, TableColumn, TableFigure

MOST_RATERS = 5000
MOST_DEVIATIONS = 20


def controls_blocks(found: Controls) -> list[PageBlock]:
    """The effects of controls, with standard errors and in Elo points."""
    rows = []
    for row in found.to_frame().iter_rows(named=True):
        sizes = [number(row[name]) for name in ("points", "typical", "typical_points")]
        rows.append((row["name"], *with_error(row["coefficient"], row["stderr"]), *sizes))
    words = (
        "Controls are fitted with the scores; items are ranked, and probabilities of winning given, at 0 of each. A "
        "typical size is the root mean square over all votes, and its worth is in Elo points."
    )
    columns = [TableColumn("control"), TableColumn("effect of one unit", "", "num"), TableColumn("±", "", "num soft")]
    columns += [TableColumn(text, "", "num") for text in ("in Elo points", "typical size", "its worth")]
    return [words, TableFigure(label="Controls", columns=columns, rows=rows)]


def raters_blocks(found: Raters) -> list[PageBlock]:
    """A table of raters: votes, sharpness, tie rate, side bias and a description, most votes first."""
    frame = found.to_frame()
    heads = {"sharpness": "sharpness", "side": "side", "tie_rate": "ties between equals"}
    shown = [name for name in heads if name in frame.columns]
    rows = []
    for row in frame.head(MOST_RATERS).iter_rows(named=True):
        cells = [with_error(row[name], row.get(f"{name}_stderr")) for name in shown]
        rows.append((row["agent"], f"{row[found.unit]:,.0f}", *cells, row["note"]))
    side = "; side is what the first of two gains" if "side" in shown else ""
    words = (
        "Sharpness is 1 for a typical rater and 0 for one whose answers have nothing to do with the scores"
        f"{side}. All are drawn to the typical rater as far as few {found.unit} ask for."
    )
    columns = [TableColumn("rater", "text"), TableColumn(found.unit, "down", "num")]
    columns += [TableColumn(heads[name], "down", "num") for name in shown] + [TableColumn("remark", "text")]
    cut = f"{MOST_RATERS:,} of {len(frame):,} raters are listed." if len(frame) > MOST_RATERS else ""
    return [words, TableFigure(label="The voters", columns=columns, rows=rows, left_out=cut)]


def sources_blocks(found: SourceParameters) -> list[PageBlock]:
    """Tables of the sources: scale, width, agreement, worth; and of the items on which each differs most."""
    rows = []
    for row in found.to_frame().iter_rows(named=True):
        cells = [with_error(row[name], row[f"{name}_stderr"]) for name in ("agreement", "scale", "width")]
        flat = [cell for pair in cells for cell in pair]
        worth = "" if row["worth"] is None else f"{row['worth']:,.0f}"
        amount = f"{row['amount']:,.0f} {row['kind']}"
        rows.append((str(row["source"]), amount, *flat, worth, row["favors"]))
    whom = "the others" if found.target is None else str(found.target)
    words = (
        f"Agreement is the correlation of a source's own scores with those of {whom}, and its width the typical size "
        "of its deviations; scale is how far apart it sees the items. Its worth is the number of votes of the target "
        "that would have made the errors as small; what it favors is beyond chance."
    )
    columns = [TableColumn("source", "text"), TableColumn("amount", "", "num")]
    for head in ("agreement", "scale", "width"):
        columns += [TableColumn(head, "down", "num"), TableColumn("±", "", "num soft")]
    columns += [TableColumn("worth", "down", "num"), TableColumn("what it favors", "text")]
    blocks: list[PageBlock] = [words, TableFigure(label="The sources", columns=columns, rows=rows)]
    apart = found.deviations_frame().sort("p", "item").head(MOST_DEVIATIONS)
    told = [
        (str(r["source"]), str(r["item"]), *with_error(r["deviation"], r["stderr"]), f"{r['p']:.2g}")
        for r in apart.iter_rows(named=True)
    ]
    heads = [TableColumn("source", "text"), TableColumn("item", "text"), TableColumn("deviation", "down", "num")]
    heads += [TableColumn("±", "", "num soft"), TableColumn("p (Holm)", "up", "num")]
    cut = f"The {MOST_DEVIATIONS} deviations farthest beyond chance." if len(told) == MOST_DEVIATIONS else ""
    return [*blocks, TableFigure(label="Where the sources differ", columns=heads, rows=told, left_out=cut)]


def tasks_blocks(found: TaskResponses) -> list[PageBlock]:
    """A table of the tasks: difficulty, slope, and how much each tells."""
    rows = []
    for row in found.to_frame().head(MOST_RATERS).iter_rows(named=True):
        cells = [with_error(row[name], row[f"{name}_stderr"]) for name in ("difficulty", "slope")]
        flat = [cell for pair in cells for cell in pair]
        rows.append((str(row["task"]), f"{row['cells']:,}", *flat, number(row["information"])))
    words = (
        "An item whose ability is the difficulty of a task solves half of it; the larger the slope, the more sharply "
        "the task tells abilities apart. The last column is what one score on it says about an ability: the task that "
        "tells most comes first."
    )
    columns = [TableColumn("task", "text"), TableColumn("scores", "down", "num")]
    for head in ("difficulty", "slope"):
        columns += [TableColumn(head, "down", "num"), TableColumn("±", "", "num soft")]
    columns += [TableColumn("information", "down", "num")]
    return [words, TableFigure(label="The tasks", columns=columns, rows=rows)]
