"""Markup is made by templates alone: they all compile, escape what they are given, and are loaded only for a page."""

import ast
import re
from pathlib import Path

import pytest

import placet
from placet.output.markup import environment

ROOT = Path(placet.__file__).parent
TEMPLATES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("templates/*.html"))
TAG = re.compile(r"</?[a-z][a-z0-9]*( [a-z-]+=|/?>)")


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_compiles_and_escapes(name):
    made = environment()
    assert made.autoescape is True
    made.get_template(name)
    assert "|safe" not in (ROOT / name).read_text() or name == "report/templates/page.html"


@pytest.mark.parametrize("room", ["data", "aggregate", "rank", "axioms", "tracking", "report", "studio"])
def test_no_markup_in_strings(room):
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and TAG.search(node.value)
    ]
    assert found == []


def test_what_is_marked_safe_is_our_own():
    marked = re.findall(r"{{ (\w+)\|safe }}", (ROOT / "report/templates/page.html").read_text())
    assert sorted(marked) == ["policy", "script", "style"]  # files of this package, and a policy of their digests
