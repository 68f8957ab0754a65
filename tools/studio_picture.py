"""Write docs/studio.png and studio-dark.png: a board of docs/files/votes.csv in the studio, rendered by chromium."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        command = [sys.executable, "-m", "placet", "serve", DOCS / "files" / "votes.csv", "--no-browser"]
        server = subprocess.Popen([*command, "--workspace", folder], stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip()
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, colors in (("studio", "light"), ("studio-dark", "dark")):
                show_board(browser, address, colors, DOCS / f"{name}.png")
            browser.close()
        finally:
            server.terminate()
            server.wait()


def show_board(browser: Browser, address: str, colors: str, target: Path) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 790}, color_scheme=colors)
    page.set_default_timeout(120_000)
    page.goto(address)
    page.get_by_role("link", name="votes.csv").first.click()
    page.get_by_role("link", name="Board").first.click()
    page.get_by_text("eel").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=target)
    page.close()


if __name__ == "__main__":
    main()
