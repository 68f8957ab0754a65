"""Several datasets as sources of one fit: the board of the target, what each source says and where it differs."""

import shlex
import tempfile
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from placet.aggregate import Consensus, consensus
from placet.data import DataError, Sources
from placet.io import to_aggregate
from placet.report import write_consensus_page
from placet.studio.file_lists import paths_of, source_of, stamp_of
from placet.studio.tasks.board import board_columns
from placet.studio.tasks.preview import load

MOST_DEVIATIONS = 40
LEVEL = 0.95


def joint(
    progress: Any, *, paths: list[str], names: list[str], readings: list[dict[str, Any]], target: str | None
) -> dict[str, Any]:
    """The ranking in columns, best first; the sources, and the items on which they differ most."""
    sources, board, notes = fit_joint_board(paths, names, readings, target)
    assert board.sources is not None
    apart = board.sources.deviations_frame().sort("p", "item").head(MOST_DEVIATIONS)
    return {
        "method": board.method,
        "names": names,
        "target": target,
        "amounts": {name: about for name, about in sources.describe().items() if str(name).startswith("source ")},
        "notes": [*notes, *board.notes],
        "columns": board_columns(board, LEVEL),
        "sources": board.sources.to_frame().to_dicts(),
        "deviations": apart.to_dicts(),
        "command": _command(paths, names, readings, target),
        "python": _python(paths, names, readings, target),
        "stamp": " ".join(map(stamp_of, paths)),
    }


def joint_page(
    progress: Any, *, paths: list[str], names: list[str], readings: list[dict[str, Any]], target: str | None
) -> bytes:
    """The page of the report, as the command writes it."""
    sources, board, _ = fit_joint_board(paths, names, readings, target)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "board.html"
        write_consensus_page(page, board, sources, title=f"Consensus of {', '.join(names)}", level=LEVEL)
        return page.read_bytes()


def fit_joint_board(
    paths: list[str], names: list[str], readings: list[dict[str, Any]], target: str | None
) -> tuple[Sources, Consensus, list[str]]:
    """The sources, their joint board and what the readers said."""
    found: dict[Hashable, Any] = {}
    notes: list[str] = []
    for path, name, reading in zip(paths, names, readings):
        loaded = load(path, reading)
        found[name] = to_aggregate(loaded.data, name)
        notes += [f"{name}: {note}" for note in loaded.notes]
    sources = Sources(found, target)
    board = consensus(sources)
    if not isinstance(board, Consensus):
        raise DataError("a source holds several contests; choose data that are one problem")
    return sources, board, notes


def _command(paths: list[str], names: list[str], readings: list[dict[str, Any]], target: str | None) -> str:
    """The ``placet`` command with the same answer; empty where files are read with options, which it takes for all."""
    if any(readings):
        return ""
    named = [f"{name}={file}" for path, name in zip(paths, names) for file in paths_of(path)]
    return shlex.join(["placet", "aggregate", *named, *(["--target", target] if target else [])])


def _python(paths: list[str], names: list[str], readings: list[dict[str, Any]], target: str | None) -> str:
    """Python code with the same answer."""
    lines = ["import placet", "", "data = {"]
    for path, name, reading in zip(paths, names, readings):
        options = "".join(f", {key}={value!r}" for key, value in reading.items())
        lines.append(f"    {name!r}: placet.read({source_of(path)!r}{options}),")
    asked = f"placet.Sources(data, target={target!r})"
    return "\n".join([*lines, "}", f"result = placet.consensus({asked})", "result.to_frame()"])
