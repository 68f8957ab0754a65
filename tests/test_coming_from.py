"""The page for people who come from other libraries: both sides are run where the other one is installed, and agree."""

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import placet

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "howto" / "coming_from.md").read_text()
SECTIONS = {text.split("\n", 1)[0].strip(): text for text in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
AGREE = {"choix": 1e-4, "evalica": 1e-3, "LightGBM": 0.05, "ranx": 1e-6}
"""How far ``theirs`` and ``ours`` may differ."""


def test_every_section_is_compared():
    assert set(SECTIONS) == set(AGREE)


@pytest.mark.parametrize("library", AGREE)
def test_both_sides_agree(library, monkeypatch):
    if find_spec(library.lower()) is None:
        pytest.skip(f"{library} is not installed")
    monkeypatch.chdir(DOCS / "files")
    blocks = re.findall(r"^```python\n(.*?)^```$", SECTIONS[library], re.DOTALL | re.MULTILINE)
    plain = [block for block in blocks if ">>>" not in block]
    ours = [
        line[4:] for block in blocks if ">>>" in block for line in block.splitlines() if line[:4] in (">>> ", "... ")
    ]
    names = {"np": np, "placet": placet, "names": ["ant", "bee", "cat", "dog", "eel"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what other libraries warn of is theirs
        exec("\n".join(plain), names)
    exec("\n".join(ours), names)
    np.testing.assert_allclose(names["ours"], names["theirs"], atol=AGREE[library])
