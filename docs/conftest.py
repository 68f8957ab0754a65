"""Examples of the documentation run among the files that they start from."""

from pathlib import Path

import pytest

collect_ignore_glob = ["*.py"]  # what builds the pages needs Sphinx, and has no examples


@pytest.fixture(autouse=True)
def _among_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent / "files")
