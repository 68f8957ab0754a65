"""Draw the pictures of the how-to pages from the results of their examples: python tools/pictures.py [PAGE ...]."""

import contextlib
import doctest
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from placet.report import pictures

PAGES = Path(__file__).parent.parent / "docs" / "howto"
TARGET = PAGES.parent / "pictures"

DRAWN: dict[str, Callable[[dict[str, Any]], str]] = {
    "leaderboard": lambda v: pictures.boards_picture({"Bradley-Terry": v["plain"]}),
    "style_control": lambda v: pictures.boards_picture(
        {"raw votes": v["raw"], "length and side taken out": v["taken_out"]}
    ),
    "raters": lambda v: pictures.raters_picture(v["board"]),
    "ratings_over_time": lambda v: pictures.history_picture(v["board"]),
    "score_tables": lambda v: pictures.boards_picture({"mean": v["board"]}),
}
"""Page -> its picture, as a function of the variables defined by the page's examples."""


def run_page(name: str) -> dict[str, Any]:
    """Run the examples of a page and return the variables they define."""
    found: dict[str, Any] = {}
    with contextlib.chdir(PAGES.parent / "files"):
        _run(name, found)
    return found


def _run(name: str, found: dict[str, Any]) -> None:
    for example in doctest.DocTestParser().get_examples((PAGES / f"{name}.md").read_text(encoding="utf-8")):
        if example.exc_msg is None:
            exec(compile(example.source, f"{name}.md:{example.lineno}", "single"), found)


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    for page in sys.argv[1:] or DRAWN:
        sys.displayhook = lambda value: None
        pictures.write_picture(TARGET / f"{page}.svg", DRAWN[page](run_page(page)))
        print(TARGET / f"{page}.svg")
