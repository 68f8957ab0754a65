"""What every command has in common: parameters refused before the work, one way out, completion, broken pipes."""

import io
import json
import os
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import placet
from placet.aggregate import MODELS, RULES
from placet.cli.common import console_output, terminal_tables
from placet.data.parameters import check_parameters

VOTES = "model_a,model_b,winner\nx,y,model_a\ny,z,model_b\nx,z,tie\nz,x,model_a\ny,x,model_a\n"


@pytest.fixture
def run(tmp_path, monkeypatch, answer):
    (tmp_path / "votes.csv").write_text(VOTES)
    monkeypatch.chdir(tmp_path)
    return answer


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["aggregate", "-p", "foo=1"], "parameter 'foo' is unknown to 'bradley-terry'; choose from ties"),
        (["aggregate", "-p", "prior=abc"], "prior must be a positive standard deviation"),
        (["aggregate", "-p", "max_iter=x"], "parameter max_iter of 'bradley-terry' must be a whole number, not 'x'"),
        (["aggregate", "-p", "tol=abc"], "must be a number, not 'abc'"),
        (["aggregate", "-m", "kemeny", "-p", "foo=1"], "parameter 'foo' is unknown to 'kemeny'"),
        (["aggregate", "-m", "copeland", "-p", "foo=1"], "unknown to 'copeland'; it has none"),
        (["aggregate", "-m", "stv", "-p", "seats=many"], "parameter seats of 'stv' must be a whole number"),
        (["aggregate", "-m", "schulze", "-p", "strength=3"], "must be 'winning-votes' or 'margins', not 3"),
        (["aggregate", "-m", "mpm", "-p", "variance=3"], "must be true or false, not 3"),
        (["aggregate", "--level", "95"], "for 95 % say --level 0.95"),
        (["aggregate", "--level", "0"], "--level 0 is not between 0 and 1"),
        (["aggregate", "--report", "nowhere/page.html"], "no such folder as nowhere"),
        (["aggregate", "--out", "nowhere/x.csv"], "no such folder as nowhere"),
        (["aggregate", "--out", "."], ". is a folder; name a file in it"),
        (["aggregate", "--out", "dangling.csv"], "dangling.csv: there is no such folder as"),
        (["aggregate", "--out", "circle.csv"], "circle.csv is a link that leads back to itself"),
        (["aggregate", "--out", "x.xls"], "suffix '.xls' is unknown; choose from .run, .csv, .tsv, .json"),
        (["aggregate", "--min-support", "100"], "all 3 items are with support below 100"),
        (["audit", "-p", "foo=1"], "parameter 'foo' is unknown to 'borda'"),
        (["audit", "--out", "x.run"], "suffix '.run' is unknown"),
        (["describe", "--out", "nowhere/x.csv"], "no such folder"),
        (["convert", "nowhere/x.csv"], "no such folder"),
        (["convert"], "name one file to write"),
    ],
)
def test_wrong_parameters_end_with_2_and_nothing_is_written(run, tmp_path, words, said):
    links = {"dangling.csv": "nowhere/x.csv", "circle.csv": "circle.csv"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    err = run(words[0], "votes.csv", *words[1:], code=2)
    assert said in err
    assert "Traceback" not in err
    assert {p.name for p in tmp_path.iterdir()} == {"votes.csv", *links}
    assert all((tmp_path / name).is_symlink() for name in links)


@pytest.mark.parametrize("words", [["-m", "kemeny", "-p", "foo=1"], ["--level", "2"], ["--out", "a/b.csv"]])
def test_a_wrong_parameter_is_said_before_the_file_is_looked_for(run, words):
    assert "none.csv" not in run("aggregate", "none.csv", *words, code=2)


@pytest.mark.parametrize("name", [*MODELS, *RULES])
def test_every_method_names_the_parameters_it_has_and_takes_its_own_defaults(name):
    function, skip = (MODELS[name], 0) if name in MODELS else (RULES[name].function, 1)
    with pytest.raises(ValueError, match="unknown to it"):
        check_parameters(function, {"foo": 1}, "it", skip)
    import inspect

    own = list(inspect.signature(function).parameters.values())[skip:]
    check_parameters(function, {p.name: p.default for p in own}, "it", skip)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".parquet", ".jsonl"])
@pytest.mark.parametrize("command", [["aggregate", "votes.csv"], ["audit", "votes.csv"], ["describe", "votes.csv"]])
def test_out_is_one_word_everywhere_and_its_suffix_chooses(run, tmp_path, command, suffix):
    path = tmp_path / f"x{suffix}"
    assert run(*command, "--out", path) == ""
    table = [line.split("\t") for line in run(*command).splitlines()]
    if suffix == ".json":
        assert json.loads(path.read_text()) == json.loads(run(*command, "--json"))
        return
    readers = {".csv": pl.read_csv, ".tsv": lambda p: pl.read_csv(p, separator="\t"), ".parquet": pl.read_parquet}
    frame = readers.get(suffix, pl.read_ndjson)(path)
    assert frame.columns == table[0]
    assert len(frame) == len(table) - 1
    assert frame.columns[0] in ("item", "check", "what", "asked")


def test_min_support_ranks_the_rest_among_themselves(run):
    frame = placet.consensus(placet.read("votes.csv"), "bradley-terry")
    out = [line.split("\t") for line in run("aggregate", "votes.csv", "--min-support", 3.5).splitlines()]
    assert [row[0] for row in out[1:]] == ["x"]
    kept = frame.with_min_support(3)
    assert list(kept.items) == [name for name, n in zip(frame.items, frame.support) if n >= 3]
    assert sorted(kept.ranks) == [*range(1, len(kept.items) + 1)]
    where = [frame.items.index(name) for name in kept.items]
    np.testing.assert_array_equal(kept.scores, frame.scores[where])
    np.testing.assert_array_equal(kept.covariance, frame.covariance[np.ix_(where, where)])
    assert frame.with_min_support(0) is frame


def test_a_wide_board_suggests_a_support(tmp_path, placet_command):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 12, (2, 6000))
    first = np.where(rng.random(6000) < 1 / (1 + np.exp((a - b) / 2.0)), "model_a", "model_b")
    rows = [f"v{x},v{y},{w}" for x, y, w in zip(a, b, first) if x != y]
    rows += [f"n{k},v{k % 12},{'model_a' if k % 3 else 'model_b'}" for k in range(150)]
    (tmp_path / "wide.csv").write_text("\n".join(["model_a,model_b,winner", *rows, ""]))
    out, said = placet_command("aggregate", tmp_path / "wide.csv")
    board = placet.consensus(placet.read(tmp_path / "wide.csv"))
    before, after = (c.rank_interval()[1][c.order[0]] for c in (board, board.with_min_support(2)))
    assert f"1..{before} of 162; --min-support 2 leaves 12 items, of which the first could be 1..{after}" in said
    assert after < 5 < 100 < before
    assert "--min-support" not in placet_command("aggregate", tmp_path / "wide.csv", "--min-support", 2)[1]
    assert len(out.splitlines()) == 163


def test_min_support_leaves_out_instances_without_items(tmp_path):
    lists = placet.Rankings.from_orders([["a", "b"], ["y", "x"], ["y", "x"]], instance=["cats", "dogs", "dogs"])
    found = placet.consensus(lists, "borda").with_min_support(2)
    assert found.ranking == {"dogs": ["y", "x"]}
    assert "1 instances have no item with support of 2" in found.notes[-1]


def test_the_command_runs_as_a_module_and_a_report_survives_a_broken_pipe(tmp_path):
    many = "\n".join(f"item number {k},item number {k + 1},model_a" for k in range(3000))
    (tmp_path / "votes.csv").write_text("model_a,model_b,winner\n" + many + "\n")
    words = [sys.executable, "-m", "placet", "aggregate", "votes.csv", "-m", "borda", "--report", "page.html"]
    done = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done.stdout.readline()
    done.stdout.close()
    err = done.stderr.read().decode()
    done.stderr.close()
    assert done.wait() == 1
    assert "Broken" not in err
    assert err.count("read as votes") == 1
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("placet agg", "aggregate"),
        ("placet aggregate -m bradley", "bradley-terry"),
        ("placet describe --format lettor-", None),
        ("placet describe --format letor-", "letor-agg"),
        ("placet train --loss pl-part", "pl-partition"),
        ("placet train --ranker lin", "linear"),
    ],
)
def test_the_shell_completes_commands_and_names(run, monkeypatch, words, expected):
    monkeypatch.setenv("_PLACET_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert run().split() == ([] if expected is None else [expected])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(run, shell):
    out = run("completion", shell)
    assert f"complete_{shell}" in out
    assert "placet" in out


HEAD = ["item", "score", "stderr", "rank", "text"]
ROWS = [["a-model-of-a-long-name-2024-10-22", 1.23456, 0.1, 1, "words " * 20], ["b", -0.5, 0.1, 2, "few"]]


@pytest.mark.parametrize(("width", "whole"), [(120, True), (90, True), (40, False), (10, False)])
def test_wide_tables_wrap_texts_first_names_last_and_numbers_never(width, whole):
    table, least = terminal_tables.drawn_table(HEAD, ROWS, width)
    paper = io.StringIO()
    Console(file=paper, width=max(width, least)).print(table)
    text = paper.getvalue()
    assert (ROWS[0][0] in text) is whole
    assert "1.23" in text
    assert "-0.50" in text
    assert "".join(text.split()).count("words") >= 1
    assert "…" not in text


def test_a_table_on_a_terminal_has_no_empty_column(monkeypatch, capsys):
    head, rows = ["item", "stderr", "rank"], [["ant", None, 1], ["bee", None, 2]]
    console_output.show_table(head, rows)
    assert capsys.readouterr().out.splitlines()[0].split("\t") == head
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    console_output.show_table(head, rows)
    assert capsys.readouterr().out.split() == ["item", "rank", "ant", "1", "bee", "2"]


def test_a_bar_is_drawn_only_when_work_takes_long(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with console_output.progress_bar("quick work", after=30.0) as bar:
        bar(1, 2)
    assert capsys.readouterr().err == ""
    with console_output.progress_bar("long work", after=0.05) as bar:
        time.sleep(0.3)
        bar(1, 2)
    assert "long work" in capsys.readouterr().err
    console_output.be_quiet(True)
    try:
        with console_output.progress_bar("quiet work", after=0.0) as bar:
            assert bar is None
    finally:
        console_output.be_quiet(False)
    assert capsys.readouterr().err == ""


def test_nobody_reads_stdout_any_more(tmp_path):
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "placet", "completion", "zsh"]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.stderr == b""
