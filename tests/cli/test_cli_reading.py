"""Options of readers: the same on every command that reads, refused where no reader takes them."""

import json
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from typer.main import get_command

import placet
from placet.cli import app

COMMANDS = ["aggregate", "audit", "describe", "convert", "train", "score", "evaluate"]
OPTIONS = ["a", "b", "winner", "qid", "label", "items", "ignore", "weight", "agent", "time", "on-error", "read"]

VOTES = "left,right,best,times,judge,day,who\nx,y,left,2,j1,2024-01-01,x\ny,z,right,1,j2,2024-01-02,y\nx,z,tie,3,j1,2024-01-03,z\n"
BAD = "model_a,model_b,winner\nx,y,model_a\ny,y,model_a\ny,z,model_b\nz,x,model_b\n"


@pytest.fixture
def run(tmp_path, monkeypatch, answer):
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "bad.csv").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    return answer


NOT_TAKEN = {
    **dict.fromkeys(["aggregate", "audit"], ("qid", "label")),
    **dict.fromkeys(["train", "score", "evaluate"], ("a", "b", "winner", "items", "agent", "time")),
}
"""Options that no format of a command takes: its help does not show them."""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_reads_has_every_option_once(name):
    command = get_command(app).commands[name]
    said = [option for parameter in command.params for option in parameter.opts]
    assert len(said) == len(set(said))
    taken = {f"--{option}" for option in OPTIONS if option not in NOT_TAKEN.get(name, ())}
    assert taken <= set(said)
    assert not {f"--{option}" for option in NOT_TAKEN.get(name, ())} & set(said)


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
        (["aggregate", "votes.csv", "--qid", "day"], "placet aggregate has no option --qid"),
        (
            ["aggregate", "votes.csv", "--format", "ratings", "--time", "day"],
            "--time day: placet aggregate reads ratings",
        ),
        (["aggregate", "votes.csv", "--format", "votes"], "--format 'votes' is unknown"),
        (["audit", "votes.csv", "--label", "day"], "placet audit has no option --label"),
        (["audit", "votes.csv", "--items", "3"], "--items 3 is a number, for the theory alone"),
        (["audit", "--items", "x,y"], "--items with the number of items"),
        (["evaluate", "scores.txt", "rows.letor", "--a", "left"], "placet evaluate has no option --a"),
        (["train", "rows.letor", "--out", "m", "--winner", "best"], "placet train has no option --winner"),
        (["train", "x.txt", "--ranker", "labels", "--out", "m", "--qid", "q"], "reads xmc, which has no such option"),
        (["describe", "votes.csv", "--a", "left", "--qid", "day"], "no reader has the options"),
        (["describe", "votes.csv", "-r", "foo=1"], "has no option 'foo'; leave it out, or choose from "),
    ],
)
def test_options_that_no_reader_takes_are_refused_with_the_way_out(run, tmp_path, words, said):
    err = run(*words, code=2)
    assert said in err
    assert "Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv", "votes.csv"]


@pytest.fixture
def features(tmp_path):
    """Features with a signal: 12 queries of 5 rows, as CSV, Parquet and LETOR text."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)).round(3)
    columns = {"search": np.repeat([f"q{k}" for k in range(12)], 5), "clicks": (X[:, 0] > 0).astype(int)}
    frame = pl.DataFrame({**columns, **{f"f{k + 1}": X[:, k] for k in range(3)}, "comment": ["x"] * 60})
    frame.write_csv(tmp_path / "features.csv")
    frame.write_parquet(tmp_path / "features.parquet")
    lines = [
        f"{row['clicks']} qid:{row['search'][1:]} 1:{row['f1']} 2:{row['f2']} 3:{row['f3']}" for row in frame.to_dicts()
    ]
    (tmp_path / "features.letor").write_text("\n".join(lines) + "\n")
    return frame


NAMED = ["--qid", "search", "--label", "clicks"]


@pytest.mark.parametrize("ranker", ["linear", "trees"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_train_and_score_as_letor_text_does(run, tmp_path, features, suffix, ranker):
    run("train", f"features.{suffix}", *NAMED, "--out", "m", "--ranker", ranker)
    run("train", "features.letor", "--out", "old", "--ranker", ranker)
    expected = np.array(run("score", "old", "features.letor").split(), float)
    assert len(set(expected)) > 1
    np.testing.assert_allclose(np.array(run("score", "m", f"features.{suffix}", *NAMED).split(), float), expected)
    # rows to score: no grades, columns in another order, more of them, rows of a query apart
    order = np.random.default_rng(0).permutation(60)
    new = features[order].select("f3", pl.lit(None, pl.Float64).alias("f0"), "f1", "comment", "f2", "search")
    new.write_parquet(tmp_path / "new.parquet")
    scores = np.array(run("score", "m", "new.parquet", "--qid", "search").split(), float)
    np.testing.assert_allclose(scores, expected[order])


def test_tables_of_grades_are_evaluated_like_letor_text(run, tmp_path, features):
    (tmp_path / "s.txt").write_text("".join(f"{value}\n" for value in features["f1"]))
    expected = run("evaluate", "s.txt", "features.letor")
    assert run("evaluate", "s.txt", "features.csv", *NAMED) == expected
    assert run("evaluate", "s.txt", "features.parquet", *NAMED) == expected
    assert "name the columns with --qid, --label" in run("evaluate", "s.txt", "features.csv", code=2)


def test_a_table_without_a_feature_of_the_model_is_refused_by_name(run, tmp_path, features):
    run("train", "features.csv", *NAMED, "--out", "m")
    features.drop("f2").write_csv(tmp_path / "new.csv")
    assert "no column 'f2', a feature of the model (1 of 3 are missing)" in run(
        "score", "m", "new.csv", "--qid", "search", code=2
    )
    assert "leave --run out" in run("score", "m", "features.csv", *NAMED, "--run", "tag", code=2)
    assert "column 'who' is not there" in run("score", "m", "features.csv", "--qid", "who", code=2)


def test_a_list_of_features_in_one_column_trains_and_scores(run, tmp_path, features):
    lists = features.select("search", "clicks", pl.concat_list("f1", "f2", "f3").alias("f"))
    lists.write_parquet(tmp_path / "lists.parquet")
    run("train", "lists.parquet", *NAMED, "--out", "m")
    run("train", "features.csv", *NAMED, "--out", "plain")
    lists.drop("clicks").write_parquet(tmp_path / "new.parquet")
    scores = [run("score", "m", "new.parquet", "--qid", "search"), run("score", "plain", "features.csv", *NAMED)]
    np.testing.assert_allclose(*(np.array(text.split(), float) for text in scores))


RATED = "user,item,rating,w\nu1,a,5,1\nu1,b,3,2\nu2,a,4,1\nu2,c,2,1\n"


def test_columns_to_pass_over_are_passed_over_in_every_layout(run, tmp_path):
    (tmp_path / "judged.csv").write_text("model_a,model_b,winner,weight,note\nx,y,model_a,2,n\ny,x,tie,1,m\n")
    (tmp_path / "rated.csv").write_text(RATED)
    weighted = json.loads(run("describe", "judged.csv", "--json"))
    plain = json.loads(run("describe", "judged.csv", "--ignore", "weight,note", "--json"))
    assert (weighted["votes"], plain["votes"]) == (3, 2)
    assert "ignored: weight, note" in placet.read("judged.csv", ignore="weight,note").notes[0]
    assert placet.read("rated.csv", ignore=["w"]) == placet.read("rated.csv")
    for file in ("judged.csv", "rated.csv"):
        assert "column 'nosuch' is not there" in run("describe", file, "--ignore", "nosuch", code=2)
    assert "placet: nosuch.csv: no such file or directory\n" in run("describe", "nosuch.csv", code=2)


def test_an_option_that_the_layout_does_not_take_is_named(run, tmp_path):
    (tmp_path / "rated.csv").write_text(RATED)
    (tmp_path / "orders.txt").write_text("a>b>c\nb>a>c\n")
    said = run("describe", "rated.csv", "--weight", "w", code=2)
    assert "are those of ratings, which are read without --weight; leave it out" in said
    for option in ("--weight", "--ignore", "--agent"):
        said = run("describe", "orders.txt", option, "w", code=2)
        assert f"ballots in lines of text have no columns; leave {option} out" in said


def test_unknown_losses_metrics_and_parameters_are_said_before_a_file_is_read(run):
    for words, said in (
        (["train", "none.csv", "--metric", "ndgc", "--save", "m"], "metric 'ndgc' is unknown"),
        (["train", "none.csv", "--loss", "nosuch", "--save", "m"], "loss 'nosuch' is unknown"),
        (["aggregate", "none.csv", "-p", "foo=1"], "parameter 'foo' is unknown"),
        (["aggregate", "none.csv", "-p", "prior=abc"], "prior must be"),
    ):
        assert said in run(*words, code=2)


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="no /dev/stdin")
def test_what_is_judged_comes_from_standard_input_too(tmp_path):
    """Either side of evaluate, and a system of compare, out of a pipe or a file."""
    (tmp_path / "t.letor").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.1\n")
    (tmp_path / "s.txt").write_text("0.3\n0.2\n")
    command = [sys.executable, "-m", "placet"]
    asked = {"cwd": tmp_path, "capture_output": True, "text": True, "check": True}
    expected = subprocess.run([*command, "evaluate", "s.txt", "t.letor"], **asked).stdout
    for words, given in ((("-", "t.letor"), "s.txt"), (("s.txt", "-"), "t.letor")):
        piped = (tmp_path / given).read_text()
        assert subprocess.run([*command, "evaluate", *words], input=piped, **asked).stdout == expected
    with open(tmp_path / "s.txt") as file:
        assert subprocess.run([*command, "evaluate", "-", "t.letor"], stdin=file, **asked).stdout == expected
    found = subprocess.run([*command, "compare", "-", "s.txt", "t.letor"], input="0.1\n0.2\n", **asked).stdout
    assert "/dev/stdin\t0.63" in found
