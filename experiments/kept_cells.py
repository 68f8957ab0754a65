"""Cells of a long experiment, each written when it ends: a run that was stopped goes on where it was.

A cell counts only for the code that computed it: lines carry a digest of Placet's modules and of the script's, and
those of other code are computed anew.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import placet
from experiments.common import Timer, check, expected, output_folder, parser


def digest_of(script: str) -> str:
    """Of the text of all modules of placet and of those beside ``script``."""
    files = [*sorted(Path(placet.__file__).parent.rglob("*.py")), *sorted(Path(script).parent.glob("*.py"))]
    found = hashlib.sha256()
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()[:16]


Keep = Callable[[str, Callable[[], Any]], Any]
"""What `KeptCells.of` does, or `anew`."""


def anew(name: str, run: Callable[[], Any]) -> Any:
    """``run()``, and nothing is kept: for a quick run, which may have been broken by hand in memory."""
    return run()


class KeptCells:
    """``of(name, run)`` is what ``run()`` returns, or what it returned before a stop; anything that JSON holds."""

    def __init__(self, script: str):
        self.path, self.code = output_folder(expected(script)) / "cells.jsonl", digest_of(script)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        cells = [json.loads(line) for line in lines if line.endswith("}")]  # a stop may have cut the last line
        self.known = {cell["name"]: cell["value"] for cell in cells if cell["code"] == self.code}

    def of(self, name: str, run: Callable[[], Any]) -> Any:
        if name not in self.known:
            self.known[name] = run()
            with open(self.path, "a") as file:
                file.write("\n" + json.dumps({"name": name, "code": self.code, "value": self.known[name]}))
        return self.known[name]


Cell = tuple[str, Callable[[], Iterable[tuple[str, float]]]]
"""A name, and what computes the named quantities of the cell."""


def run_cells(cells: Iterable[Cell], given: argparse.Namespace, script: str) -> dict[str, float]:
    """The quantities of the cells whose names have all words of ``--only``, printed as they are done; kept if not quick."""
    keep = anew if given.quick else KeptCells(script).of
    ours: dict[str, float] = {}
    for name, compute in cells:
        if all(word in name for word in given.only):
            with Timer() as spent:
                found = keep(f"{name}; seed {given.seed}", lambda: {one: float(value) for one, value in compute()})  # noqa: B023
            words = ", ".join(f"{quantity.removeprefix(name).strip(', ')} {x:.4g}" for quantity, x in found.items())
            print(f"{name}: {words}  ({spent.cpu:.1f} CPU s)", flush=True)
            ours |= found
    return ours


def check_cells(cells: Callable[[bool, int], Iterable[Cell]], about: str | None, script: str) -> None:
    """All that a script of cells does: ``cells(quick, seed)`` are run and compared with what is expected of them."""
    given = parser(about, cells=True).parse_args()
    ours = run_cells(cells(given.quick, given.seed), given, script)
    check(ours, expected(script, "quick" if given.quick else ""), part=bool(given.only))
