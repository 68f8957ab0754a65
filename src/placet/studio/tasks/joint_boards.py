"""Sources of one fit, as datasets or in a column: the board of the target, what each says and where it differs."""

import shlex
import tempfile
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placet.aggregate import Consensus, consensus
from placet.data import DataError, Sources
from placet.io import to_aggregate
from placet.report import write_consensus_page
from placet.report.data_words import evidence
from placet.report.page_lead import lead_of
from placet.studio.file_lists import paths_of, source_of
from placet.studio.question import LEVEL, MOST_SOURCES, Question
from placet.studio.tasks.board import board_columns
from placet.studio.tasks.preview import load

MOST_DEVIATIONS = 40


@dataclass(frozen=True)
class JointQuestion:
    """The question behind a joint board: datasets that are sources, each with its name and how its files are read, or
    one dataset and the ``column`` whose values are the sources.
    """

    paths: list[str]
    names: list[str]
    readings: list[dict[str, Any]]
    target: str | None = None
    column: str = ""

    def read(self) -> tuple[Sources, list[str], list[str]]:
        """The sources, what the readers said, and the stamps of the files."""
        if self.column:
            data, notes, stamp = load(self.paths[0], self.readings[0], self.column)
            if len(data) > MOST_SOURCES:
                raise DataError(
                    f"column {self.column!r} has {len(data):,} values; at most {MOST_SOURCES} sources are fitted "
                    "together: does it say who voted?"
                )
            parts: dict[Hashable, Any] = {}
            for name, part in data.items():
                parts[str(name)] = to_aggregate(part, f"{self.column} {name!r}")
            return Sources(parts, self.target), notes, [stamp]
        loaded = {name: load(path, own) for path, name, own in zip(self.paths, self.names, self.readings)}
        parts = {name: to_aggregate(one.data, name) for name, one in loaded.items()}
        notes = [f"{name}: {note}" for name, one in loaded.items() for note in one.notes]
        return Sources(parts, self.target), notes, [one.stamp for one in loaded.values()]

    def command(self) -> str:
        """The ``placet`` command with the same answer; empty where files have options of their own, for it has none."""
        target = ["--target", self.target] if self.target else []
        if self.column:
            read = Question(reading=self.readings[0]).command(self.paths[0])
            return f"{read} {shlex.join(['--source', self.column, *target])}"
        if any(self.readings):
            return ""
        named = [f"{name}={file}" for path, name in zip(self.paths, self.names) for file in paths_of(path)]
        return shlex.join(["placet", "aggregate", *named, *target])

    def python(self) -> str:
        """Python code with the same answer."""
        lines, data = ["import placet", ""], "data"
        options = ["".join(f", {key}={value!r}" for key, value in reading.items()) for reading in self.readings]
        if self.column:
            lines.append(f"data = placet.io.read_slices({source_of(self.paths[0])!r}, {self.column!r}{options[0]})")
            data = "{str(name): part for name, part in data.items()}"
        else:
            read = zip(self.names, self.paths, options)
            lines += [
                "data = {",
                *(f"    {name!r}: placet.read({source_of(path)!r}{own})," for name, path, own in read),
                "}",
            ]
        return "\n".join(
            [*lines, f"result = placet.consensus(placet.Sources({data}, target={self.target!r}))", "result.to_frame()"]
        )


def joint(progress: Any, **question: Any) -> dict[str, Any]:
    """The ranking in columns, best first; the sources, and the items on which they differ most."""
    asked = JointQuestion(**question)
    sources, notes, stamps = asked.read()
    board, about = joint_consensus(sources), sources.describe()
    assert board.sources is not None
    apart = board.sources.deviations_frame().sort("p", "item").head(MOST_DEVIATIONS)
    return {
        "method": board.method,
        "names": list(sources),
        "target": asked.target,
        "amounts": {name: told for name, told in about.items() if str(name).startswith("source ")},
        "notes": [*notes, *board.notes],
        "lead": lead_of(board, evidence(about), LEVEL),
        "columns": board_columns(board, LEVEL),
        "sources": board.sources.to_frame().to_dicts(),
        "deviations": apart.to_dicts(),
        "command": asked.command(),
        "python": asked.python(),
        "stamps": stamps,
    }


def joint_page(progress: Any, **question: Any) -> bytes:
    """The page of the report, as the command writes it."""
    sources, _, _ = JointQuestion(**question).read()
    board = joint_consensus(sources)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "board.html"
        write_consensus_page(page, board, sources, title=f"Consensus of {', '.join(map(str, sources))}", level=LEVEL)
        return page.read_bytes()


def joint_consensus(sources: Sources) -> Consensus:
    """The board of all sources; a `DataError` for sources that are many problems."""
    board = consensus(sources)
    if not isinstance(board, Consensus):
        raise DataError("a source holds several contests; choose data that are one problem")
    return board
