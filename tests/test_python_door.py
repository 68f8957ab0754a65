"""What a reader of the first page does in Python: typed, one import away, and boards that are read item by item."""

import subprocess
import sys
from typing import get_args, get_overloads, get_type_hints

import pytest

import placet
from placet.io.formats import FORMATS, BallotFormat


def test_the_first_example_is_typed():
    first = get_type_hints(get_overloads(placet.consensus)[0])
    assert {placet.Rankings, placet.Comparisons, placet.Scores} <= set(get_args(first["data"]))
    assert first["return"] is placet.Consensus
    typed = {get_type_hints(one)["return"] for one in get_overloads(placet.read)}
    assert {placet.Rankings, placet.Comparisons, placet.Scores, placet.Queries} <= typed


def test_every_format_of_ballots_has_their_type():
    assert set(get_args(BallotFormat)) == {name for name, one in FORMATS.items() if one.kind is placet.Rankings}


def test_a_board_is_read_item_by_item():
    votes = placet.simulate.battles([2.0, 0.0, -2.0], 300, items=["ant", "bee", "cat"], random_state=0)
    board = placet.consensus(votes)
    rows = list(board)
    assert len(board) == len(rows) == 3
    assert [row.item for row in rows] == board.ranking
    frame = board.to_frame().to_dicts()
    assert [row._asdict() for row in rows] == frame
    assert board.to_pandas().to_dict("records") == frame
    assert "ant" in board
    assert "eel" not in board
    with pytest.raises(ValueError, match="'eel' is not among the 3 items"):
        board["eel"]
    rule = placet.consensus(votes, "copeland")["ant"]
    assert (rule.rank, rule.stderr, rule.tier) == (1, None, None)


def test_the_names_of_commands_are_one_import_away():
    names = {
        "read",
        "write",
        "consensus",
        "audit",
        "compare",
        "evaluate",
        "load",
        "LinearRanker",
        "write_consensus_page",
    }
    assert names | {"fragility", "verify", "simulate", "tracking"} <= set(placet.__all__)
    assert all(callable(getattr(placet, name)) for name in names)
    light = "import sys, placet; assert 'numpy' not in sys.modules and 'placet.report' not in sys.modules"
    subprocess.run([sys.executable, "-c", light], check=True)
