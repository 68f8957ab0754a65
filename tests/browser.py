"""A real browser: Debian's chromium, if there is one its headless shell, which takes half of the CPU time.

axe-core is taken from ``$PLACET_AXE`` or build/axe.min.js, which ``make browser`` fetches.  Without a browser its tests
are skipped, unless ``$PLACET_BROWSER`` is set, as on CI.
"""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="pip install playwright")
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
REQUIRED = bool(os.environ.get("PLACET_BROWSER"))  # set where a missing browser is a fault, not a reason to skip
AXE = Path(os.environ.get("PLACET_AXE", ROOT / "build" / "axe.min.js"))

needs_browser = pytest.mark.skipif(
    CHROMIUM is None and not REQUIRED, reason="no chromium on this machine; apt-get install chromium-headless-shell"
)


@contextmanager
def launched():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def faults_by_axe(page, **options):
    """What axe-core calls a violation: its name, where, and the advice; None without axe-core."""
    if not AXE.is_file():
        assert not REQUIRED, f"{AXE} is not there; make {AXE.relative_to(ROOT)}"
        return None
    page.evaluate(AXE.read_text() + ";0")
    found = page.evaluate("options => axe.run(document, options)", {"resultTypes": ["violations"], **options})
    return [
        (one["id"], [node["target"] for node in one["nodes"]][:3], one["nodes"][0]["failureSummary"])
        for one in found["violations"]
    ]
