"""requirements.lock holds what pyproject.toml names, every package with its digests, and names no place."""

import runpy
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "lock.py"
LOCK = runpy.run_path(str(TOOL))["LOCK"]


@pytest.fixture(scope="module")
def faults():
    return runpy.run_path(str(TOOL))["faults"]


def test_the_lock_is_whole(faults):
    assert faults(LOCK.read_text()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("numpy==", "numpie=="), "numpy is not in it"),
        (lambda text: text + "alone==1.0\n", "alone has no digest"),
        (lambda text: "--index-url https://example.org/simple\n" + text, "a place is named: --index-url"),
        (lambda text: text + "x @ file:///somewhere/x.whl\n", "a place is named: x @ file"),
    ],
)
def test_what_is_wrong_is_said(faults, change, said):
    assert any(one.startswith(said) for one in faults(change(LOCK.read_text())))
