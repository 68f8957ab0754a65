"""No command writes over the file it reads; a board is updated in its place."""

import os

import pytest
from typer.testing import CliRunner

from placet.cli import app
from placet.cli.common.own_input import OUTPUTS, refuse_own_input

VOTES = "a,b,winner\nx,y,a\ny,z,a\nz,x,a\n"
ROWS = "2 qid:1 1:0.5\n0 qid:1 1:0.1\n0 qid:2 1:0.3\n1 qid:2 1:0.2\n"


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "more.csv").write_text(VOTES)
    (tmp_path / "rows.letor").write_text(ROWS)
    (tmp_path / "link.csv").symlink_to("votes.csv")
    os.link(tmp_path / "votes.csv", tmp_path / "hard.csv")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "aggregate votes.csv --out votes.csv", "aggregate more.csv votes.csv --out votes.csv", "aggregate votes.csv --out ./votes.csv", "aggregate votes.csv --out link.csv",
        "aggregate link.csv --out votes.csv", "aggregate hard.csv --out votes.csv", "aggregate *.csv --out votes.csv", "aggregate votes.csv --report votes.csv",
        "convert votes.csv votes.csv", "convert votes.csv --out votes.csv", "describe votes.csv --out votes.csv", "audit votes.csv --out votes.csv",
        "train rows.letor --save rows.letor", "train rows.letor --valid votes.csv --out votes.csv",
    ],
)  # fmt: skip
def test_a_command_refuses_to_write_over_what_it_reads(folder, words):
    found = run(*words.split())
    assert isinstance(found.exception, ValueError), found.output
    assert "would overwrite the file that is read; write to another file" in str(found.exception)
    assert (folder / "votes.csv").read_text() == VOTES
    assert (folder / "rows.letor").read_text() == ROWS


def test_other_files_may_be_overwritten_and_a_board_is_updated_in_its_place(folder):
    (folder / "out.csv").write_text("old")
    assert run("aggregate", "votes.csv", "--out", "out.csv").exit_code == 0
    assert (folder / "out.csv").read_text().startswith("item,")
    assert run("aggregate", "votes.csv", "--out", "board.json").exit_code == 0
    before = (folder / "board.json").read_text()
    assert run("aggregate", "board.json", "more.csv", "--out", "board.json").exit_code == 0
    assert (folder / "board.json").read_text() != before
    with pytest.raises(ValueError, match="--report"):
        refuse_own_input({"files": [folder / "board.json"], "report": folder / "board.json"})


def test_every_file_that_a_command_writes_is_known():
    """A parameter with the callback of targets is one of ``OUTPUTS``."""
    import ast
    from pathlib import Path

    import placet.cli

    found = set()
    for path in Path(placet.cli.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.arg) and node.annotation is not None:
                text = ast.unparse(node.annotation)
                if "check_target" in text or text in ("Out", "Report", "OutFile"):
                    found.add(node.arg)
    assert found <= set(OUTPUTS)
    assert len(found) >= 6
