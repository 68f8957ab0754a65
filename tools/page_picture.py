"""Write docs/pictures/page.png and page-dark.png: the report page of docs/files/votes.csv, rendered by chromium."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import placet
from placet.report import Origin, write_consensus_page

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    votes = placet.read(DOCS / "files" / "votes.csv")
    board = placet.consensus(votes, "bradley-terry", ties="davidson")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        origin = Origin(files=("votes.csv",), seed=0, date="2026-11-16 12:00 UTC")
        write_consensus_page(path, board, votes, title="Which animal do people prefer?", origin=origin)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, colors in (("page", "light"), ("page-dark", "dark")):
            shown = browser.new_page(viewport={"width": 1000, "height": 820}, color_scheme=colors)
            shown.set_default_timeout(120_000)
            shown.goto(path.as_uri())
            shown.screenshot(path=DOCS / "pictures" / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
