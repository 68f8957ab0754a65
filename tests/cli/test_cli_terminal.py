"""What a person sees at a terminal: numbers rounded to what is known, bars, colors; a pipe gets all digits."""

import io
import os
import re
import select
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st
from rich.console import Console

import placet
from placet import consensus, simulate
from placet.cli.common.consensus_output import interval_ends
from placet.cli.common.terminal_tables import aligned_cells, drawn_table, interval_bars

FINITE = st.floats(-1e6, 1e6)
ERRORS = st.floats(1e-6, 1e4)


@given(st.lists(st.tuples(FINITE, ERRORS), min_size=1))
def test_estimates_have_two_digits_of_their_errors_and_points_stand_under_points(rows):
    texts = aligned_cells(["item", "score", "stderr"], [["x", *row] for row in rows])
    for k in (1, 2):
        assert len({len(text[k]) for text in texts}) == 1
        points = {text[k].find(".") for text in texts if "." in text[k]}
        assert len(points) <= 1
    for (score, error), (_, shown, shown_error) in zip(rows, texts):
        assert abs(float(shown) - score) <= max(0.051 * error, 1e-8)
        assert float(shown_error) == pytest.approx(error, rel=0.051, abs=1e-8)
        if 1e-6 < error < 9:
            assert len(shown_error.strip().lstrip("0.").replace(".", "")) <= 2


@pytest.mark.parametrize(
    ("head", "row", "shown"),
    [
        (["score", "stderr"], [1.23456, None], ["1.2346", ""]),
        (["score", "stderr"], [1523.4, 12.3], ["1523", "12"]),
        (["mean", "stderr", "queries"], [0.43219, 0.0123, 50], ["0.432", "0.012", "50"]),
        (["a minus b", "low", "high", "p"], [0.03214, 0.0112, 0.0531, 1e-7], ["0.032", "0.011", "0.053", "<0.0001"]),
        (["minus first", "low", "high"], [None, None, None], ["", "", ""]),
        (["support", "share"], [400.0, 0.25], ["400", "0.2500"]),
        (["score", "stderr"], [2.0, 0.5], ["2.00", "0.50"]),
        (["change", "stderr"], [float("inf"), 0.0], ["inf", "0.0000"]),
        (["item"], [True], ["True"]),
        (["what", "value"], ["votes", 400.0], ["votes", "400"]),
    ],
)
def test_numbers_are_rounded_to_what_is_known(head, row, shown):
    assert [text.strip() for text in aligned_cells(head, [row])[0]] == shown


def test_numbers_among_words_are_short_and_whole_if_they_are_whole():
    rows = [["kind", "votes"], ["votes", 400.0], ["value", 17.280325348], ["pairs", 6], ["none", None]]
    assert [text for _, text in aligned_cells(["what", "value"], rows)] == ["votes", "400", "17.2803", "6", ""]


def test_bars_stand_where_the_numbers_are():
    bars = [(-1.0, 0.0, 1.0), (0.0, 2.0, 3.0), None, (0.0, float("nan"), 1.0), (3.0, 3.0, 3.0)]
    lines = [text.plain for text in interval_bars(bars, 21, "-o")]
    assert {len(line) for line in lines} == {21}
    assert lines[0] == "-----o-----          "
    assert lines[1].index("-") == 5
    assert lines[1].index("o") == 15
    assert lines[2].strip() == lines[3].strip() == ""
    assert lines[4] == " " * 20 + "o"
    assert [text.plain for text in interval_bars([(0.0, 0.0, 0.0)], 5, "-o")] == ["o    "]


@pytest.mark.parametrize(("width", "drawn"), [(100, True), (30, False)])
def test_bars_are_drawn_where_there_is_room(width, drawn):
    table, least = drawn_table(
        ["item", "score", "stderr"], [["x", 1.0, 0.1], ["y", 0.5, 0.1]], width, [(0.8, 1, 1.2), (0.3, 0.5, 0.7)]
    )
    paper = io.StringIO()
    Console(file=paper, width=max(width, least)).print(table)
    assert ("●" in paper.getvalue()) is drawn
    assert "1.00" in paper.getvalue()


def test_ends_are_those_of_the_result():
    votes = simulate.battles([0.9, 0.0, -0.9], 200, items=list("abc"), random_state=0)
    board = consensus(votes, "bradley-terry")
    low, high = board.interval(0.8)
    assert interval_ends(board, 0.8) == [(low[k], board.scores[k], high[k]) for k in board.order]
    assert interval_ends(consensus(votes, "copeland"), 0.8) == [None] * 3


def on_a_terminal(args, folder, columns=100):
    """What a command writes to a terminal of its own."""
    import pty

    ours, theirs = pty.openpty()
    known = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLUMNS": str(columns),
        "LINES": "40",
        "PYTHONIOENCODING": "utf-8",
    }
    known.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "placet", *args], stdout=theirs, stderr=theirs, cwd=folder, env=known
    )
    os.close(theirs)
    text, end = b"", time.monotonic() + 240
    while time.monotonic() < end:
        if select.select([ours], [], [], 1)[0]:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
        elif process.poll() is not None:
            break
    os.close(ours)
    assert process.wait(60) == 0, text
    return text.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_terminal_gets_bars_and_colors_and_a_pipe_gets_all_digits(tmp_path):
    from placet.io import read, write

    write(simulate.battles([0.9, 0.0, -0.9], 300, items=list("abc"), random_state=0), tmp_path / "votes.csv")
    args = ["aggregate", "votes.csv", "--method", "bradley-terry"]
    seen = on_a_terminal(args, tmp_path)
    assert "\x1b[" in seen
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert "●" in plain
    assert "━" in plain
    assert re.search(r" 1 +1 +1  a +\d\.\d{2,3} ± 0\.\d{2,3} ", plain)
    done = subprocess.run(
        [sys.executable, "-m", "placet", *args], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    head, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert "\x1b" not in done.stdout
    board = consensus(read(tmp_path / "votes.csv"), "bradley-terry")
    assert [float(row[head.index("score")]) for row in rows] == board.scores[board.order].tolist()
    assert [float(row[head.index("stderr")]) for row in rows] == np.asarray(board.stderr)[board.order].tolist()


HEAD = ["item", "score", "stderr", "rank", "rank_low", "rank_high", "tier", "support"]


def board_lines(rows, width=80):
    from placet.cli.common.leaderboard import leaderboard

    bars = [None if row[2] is None else (row[1] - 2 * row[2], row[1], row[1] + 2 * row[2]) for row in rows]
    return [line.plain for line in leaderboard(HEAD, rows, bars, width, "-o")]


def test_a_board_starts_with_the_rank_and_has_bars_at_80_columns_and_rules_between_tiers():
    names = ["ant", "a-very-long-name-of-a-model-with-its-version-and-date-2026-11-01", "cat"]
    rows = [(name, 1.25 - k, 0.25, k + 1, 1, 3 - k, 1 + k // 2, 40.0) for k, name in enumerate(names)]
    lines = board_lines(rows)
    assert lines[0].split() == ["rank", "could", "be", "tier", "item", "score", "±", "error", "interval", "support"]
    assert lines[1].split()[:7] == ["1", "1-3", "1", "ant", "1.25", "±", "0.25"]
    assert set(lines[3]) == {"─"}  # before the second tier
    assert max(map(len, lines)) <= 80
    assert all("o" in line[30:] and "--" in line for line in (lines[1], lines[2], lines[4]))
    assert "a-very-" in lines[2]
    assert "…" in lines[2]
    assert lines[2].split()[3].endswith("11-01")
    assert len(board_lines(rows, 40)) == len(lines)  # without bars


def test_a_board_of_a_rule_has_no_empty_columns_and_whole_numbers_whole():
    rows = [
        (name, score, None, k + 1, None, None, None, 4.0) for k, (name, score) in enumerate([("x", 12.0), ("y", 3.0)])
    ]
    assert [line.split() for line in board_lines(rows)] == [
        ["rank", "item", "score", "support"],
        ["1", "x", "12", "4"],
        ["2", "y", "3", "4"],
    ]
    rows = [(*row[:1], row[1] / 8, *row[2:]) for row in rows]
    assert [line.split()[2] for line in board_lines(rows)] == ["score", "1.500", "0.375"]


def test_scores_that_only_repeat_ranks_are_shown_to_pipes_and_not_to_people(tmp_path, monkeypatch, placet_command):
    """Instant runoff orders, and its scores 0, -1, -2 say no more; Borda's points do."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "club.ballots").write_text("9: Ann > Bob > Cid\n6: Cid > Bob > Ann\n5: Bob > Cid > Ann\n")
    assert placet_command("aggregate", "club.ballots", "--method", "irv")[0].startswith("item\tscore\t")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    heads = {}
    for method in ("irv", "borda"):
        said = placet_command("aggregate", "club.ballots", "--method", method)[0]
        heads[method] = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()[0].split()
    assert heads == {"irv": ["rank", "item", "support"], "borda": ["rank", "item", "score", "support"]}
    ballots = placet.read("club.ballots")
    irv, borda = placet.consensus(ballots, "irv"), placet.consensus(ballots, "borda")
    assert repr(irv).startswith("Consensus(irv: Cid, Ann, Bob, ")
    assert repr(borda).startswith("Consensus(borda: Bob 25, Ann 18, Cid 17")
    assert "<th>score</th>" in borda._repr_html_()
    assert "score" not in irv._repr_html_()
    assert "svg" not in irv._repr_html_()


def test_notes_are_broken_between_words_on_a_terminal(monkeypatch):
    from placet.cli.common.console_output import _folded

    monkeypatch.setenv("COLUMNS", "40")
    text = "prior: scores are normal with mean 0 and standard deviation 1.13, learned from the data"
    assert max(map(len, _folded(text).split("\n"))) <= 40
    assert " ".join(_folded(text).split()) == text
