"""Names are text: markup, control characters, marks of direction and formulas are shown as they are, everywhere."""

import csv
import html
import io
import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given, settings, strategies as st
from rich.console import Console
from typer.testing import CliRunner

import placet
from placet import escaping
from placet.cli import app
from placet.cli.common.terminal_tables import drawn_table
from placet.output.json_values import json_text
from placet.output.markup import environment
from placet.report import consensus_page

NAMES = [
    "llama [instruct]", "[/]", "[bold red]x[/]", "[link=https://example.org]y[/link]", "a\tb", "a\nb", "a\rb", "\x1b[2Jgone", "\x07", "\u202etxt.exe",
    "\u2066x\u2069", "=cmd()", "+1+1", "-2+3", "@SUM(A1)", "'=quoted", "''=twice", "'plain", "<script>alert(1)</script>", '"><img src=x>', "a,b", 'a"b', "\\t", "\x85",
]  # fmt: skip
TEXT = st.text(st.characters(codec="utf-8"), min_size=1)
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def votes():
    return placet.Rankings.from_orders([NAMES, NAMES[::-1], NAMES[5:] + NAMES[:5]])


def test_a_drawn_table_shows_names_as_they_are():
    out = io.StringIO()
    table, _ = drawn_table(["item [x]", "score"], [[name, 1.0] for name in NAMES], 100)
    Console(file=out, width=100).print(table)
    text = out.getvalue()
    for name in (
        "item [x]",
        "llama [instruct]",
        "[/]",
        "[bold red]x[/]",
        "[link=https://example.org]y[/link]",
        r"a\tb",
        r"a\nb",
        r"\x1b[2Jgone",
        r"\u202etxt.exe",
    ):
        assert name in text
    assert not HARMFUL.search(text)
    assert len(text.splitlines()) == len(NAMES) + 1


def test_every_command_that_prints_names_keeps_lines_and_fields(tmp_path):
    path = tmp_path / "votes.jsonl"
    known = [name for name in NAMES if name.strip()]
    path.write_text(
        "".join(
            json.dumps({"model_a": a, "model_b": b, "winner": "model_a"}) + "\n"
            for a, b in zip(known, known[1:] + known[:1])
        )
    )
    for words in (
        ["aggregate", str(path), "--method", "borda"],
        ["aggregate", str(path), "--method", "borda", "--json"],
    ):
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        assert done.exit_code == 0
        assert not HARMFUL.search(done.output)
        if "--json" in words:
            continue
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        assert {len(row) for row in rows} == {len(rows[0])}
        assert {escaping.in_tsv(name.strip()) for name in known} <= {cell for row in rows for cell in row}


@settings(max_examples=200)
@given(TEXT)
def test_escapes_keep_names_apart_and_harmless(text):
    assert not HARMFUL.search(escaping.visible(text))
    assert "\n" not in escaping.visible(text)
    assert json.loads(escaping.in_json(json.dumps(text, ensure_ascii=False))) == text
    assert json.loads(json_text([text])) == [text]
    assert escaping.from_sheet(escaping.in_sheet(text)) == text
    assert not escaping.in_sheet(text).startswith(("=", "@", "\t", "\r"))
    shown = environment().from_string("{{ text }}").render(text=text)
    assert "<" not in shown
    assert html.unescape(shown) == escaping.visible_lines(text)


@settings(max_examples=200)
@given(TEXT, TEXT)
def test_no_two_names_look_alike_in_tab_separated_text(a, b):
    assert (escaping.in_tsv(a) == escaping.in_tsv(b)) == (a == b)


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_tables_are_safe_in_a_spreadsheet_and_read_back(tmp_path, suffix):
    path = tmp_path / f"votes.{suffix}"
    known = [name for name in NAMES if name == name.strip()]
    data = placet.Comparisons.from_battles(known, known[1:] + known[:1], ["a"] * len(known))
    placet.io.write(data, path)
    with path.open(newline="") as file:
        cells = [cell for row in csv.reader(file, delimiter="," if suffix == "csv" else "\t") for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+", "-"))]
    assert "'=cmd()" in cells
    assert sorted(placet.read(path).items) == sorted(data.items)


def test_the_page_is_sealed_by_a_policy_and_shows_names():
    data = votes()
    page = consensus_page(placet.consensus(data, "borda"), data)
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', page)[1]
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    assert "default-src 'none'" in policy
    assert f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" in policy
    assert page.index("Content-Security-Policy") < page.index("<style>")
    script = re.search(r"<script>(.*?)</script>", page, re.S)[1]
    assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
    assert not HARMFUL.search(page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<script") == 1
    assert r"\u202etxt.exe" in page


def test_a_consensus_shows_names_on_one_line():
    data = placet.Rankings.from_orders([["\x1b[2J", "a\nb", "\u202ex"]])
    assert not HARMFUL.search(repr(placet.consensus(data, "borda")))
    assert "\n" not in repr(placet.consensus(data, "borda"))
