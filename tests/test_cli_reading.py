"""Options of readers: the same on every command that reads, refused where no reader takes them."""

import json
import sys

import pytest
from typer.main import get_command

import placet
from placet.cli import app, main

COMMANDS = ["aggregate", "audit", "describe", "convert", "train", "score", "evaluate"]
OPTIONS = ["a", "b", "winner", "qid", "label", "items", "ignore", "weight", "agent", "time", "on-error", "read"]

VOTES = "left,right,best,times,judge,day,who\nx,y,left,2,j1,2024-01-01,x\ny,z,right,1,j2,2024-01-02,y\nx,z,tie,3,j1,2024-01-03,z\n"
BAD = "model_a,model_b,winner\nx,y,model_a\ny,y,model_a\ny,z,model_b\nz,x,model_b\n"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "bad.csv").write_text(BAD)
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0):
        monkeypatch.setattr(sys, "argv", ["placet", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        assert (stopped.value.code or 0) == code, err
        return out if code == 0 else err

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_reads_has_every_option_once(name):
    command = get_command(app).commands[name]
    said = [option for parameter in command.params for option in parameter.opts]
    assert len(said) == len(set(said))
    assert {f"--{option}" for option in OPTIONS} <= set(said)


SIDES = ["--a", "left", "--b", "right", "--winner", "best"]


def test_columns_reach_the_reader_of_every_command(run, tmp_path):
    expected = placet.read("votes.csv", a="left", b="right", winner="best", weight="times")
    about = json.loads(run("describe", "votes.csv", *SIDES, "--weight", "times", "--json"))
    assert about["votes"] == expected.describe()["votes"] == 6
    run("convert", "votes.csv", "again.csv", *SIDES, "--weight", "times")
    assert placet.read("again.csv").describe() == expected.describe()
    board = json.loads(run("aggregate", "votes.csv", *SIDES, "--weight", "times", "--items", "z,y,x,w", "--json"))
    assert {row["item"]: row["support"] for row in board["ranking"]} == {"x": 5, "y": 3, "z": 4, "w": 0}
    assert run("audit", "votes.csv", *SIDES, "--items", "x,y,z", "--json").startswith("{")
    assert run("audit", "votes.csv", *SIDES) != ""


def test_agent_and_time_name_columns(run):
    about = run("describe", "votes.csv", *SIDES, "--agent", "judge", "--time", "day", "--json")
    expected = placet.read("votes.csv", a="left", b="right", winner="best", agent="judge", time="day")
    assert json.loads(about) == json.loads(
        run(
            "describe",
            "votes.csv",
            *(word for name, column in OLD.items() for word in ("-r", f"{name}={column}")),
            "--json",
        )
    )
    assert expected.agents == ("j1", "j2")
    assert expected.time is not None


OLD = {"a": "left", "b": "right", "winner": "best", "agent": "judge", "time": "day"}


@pytest.mark.filterwarnings("ignore:bad.csv. left out 1 line")
@pytest.mark.parametrize("command", [["aggregate"], ["audit"], ["describe"]])
def test_bad_rows_are_skipped_where_that_is_said(run, command):
    assert "bad.csv:3: 'y' meets itself" in run(*command, "bad.csv", code=2)
    assert run(*command, "bad.csv", "--on-error", "skip") != ""


def test_one_thing_said_twice_is_refused_unless_it_is_the_same(run):
    assert "--a left and --read a=right: give one" in run("describe", "votes.csv", *SIDES, "-r", "a=right", code=2)
    assert run("describe", "votes.csv", *SIDES, "-r", "a=left") != ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["aggregate", "votes.csv", "--qid", "day"], "--qid day: placet aggregate reads"),
        (
            ["aggregate", "votes.csv", "--format", "ratings", "--time", "day"],
            "--time day: placet aggregate reads ratings",
        ),
        (["aggregate", "votes.csv", "--format", "votes"], "--format 'votes' is unknown"),
        (["audit", "votes.csv", "--label", "day"], "--label day: placet audit reads"),
        (["audit", "votes.csv", "--items", "3"], "--items 3 is a number, for the theory alone"),
        (["audit", "--items", "x,y"], "--items with the number of items"),
        (["evaluate", "scores.txt", "rows.letor", "--a", "left"], "--a left: placet evaluate reads"),
        (["train", "rows.letor", "--out", "m", "--winner", "best"], "--winner best: a ranker of queries reads"),
        (["train", "x.txt", "--ranker", "labels", "--out", "m", "--qid", "q"], "reads xmc, which has no such option"),
        (["describe", "votes.csv", "--a", "left", "--qid", "day"], "no reader has the options"),
        (["describe", "votes.csv", "-r", "foo=1"], "has no option 'foo'; leave it out, or choose from ["),
    ],
)
def test_options_that_no_reader_takes_are_refused_with_the_way_out(run, tmp_path, words, said):
    err = run(*words, code=2)
    assert said in err
    assert "Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv", "votes.csv"]
