"""The command: data on stdout, words on stderr, exit code 2 on bad data, nothing half-written."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import placet
from placet.cli import app
from placet.cli.common.metric_values import split_specs
from placet.cli.learning.evaluate import with_compat


def in_a_shell(*args, check=0):
    """Run ``placet`` as a user would, in a process of its own; returns (stdout, stderr)."""
    code = "from placet.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == check, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def run(placet_command):
    """Run ``placet`` in this process, which has imported everything already; returns (stdout, stderr)."""
    return lambda *args, check=0: placet_command(*args, code=check)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    for kind, name, *options in (
        ("battles", "votes.csv", "--items", 5, "--n", 300),
        ("plackett-luce", "ballots.txt", "--items", 5, "--n", 40, "--top", 3),
        ("queries", "search.letor", "--rows", 6, "--n", 20),
    ):
        words = ["simulate", kind, "--out", path / name, *options]
        assert CliRunner().invoke(app, list(map(str, words))).exit_code == 0
    return path


def test_version():
    assert in_a_shell("--version")[0].strip() == placet.__version__


def test_simulated_files_are_described(run, folder):
    out, _ = run("describe", folder / "votes.csv")
    assert dict(line.split("\t") for line in out.splitlines())["votes"] == "300.0"
    out, _ = run("describe", folder / "ballots.txt", "--json")
    assert json.loads(out)["ballots"] == 40
    assert json.loads(run("describe", folder / "search.letor", "--json")[0])["queries"] == 20


def test_the_same_seed_gives_the_same_bytes(run, folder, tmp_path):
    in_a_shell("simulate", "battles", "--out", tmp_path / "again.csv", "--items", 5, "--n", 300)
    assert (tmp_path / "again.csv").read_bytes() == (folder / "votes.csv").read_bytes()


def test_aggregate_prints_a_table_and_writes_a_report(run, folder, tmp_path):
    out, err = in_a_shell("aggregate", folder / "votes.csv", "--report", tmp_path / "page.html")
    head, *rows = (line.split("\t") for line in out.splitlines())
    assert head == ["item", "score", "stderr", "rank", "rank_low", "rank_high", "tier", "support"]
    assert [row[3] for row in rows] == ["1", "2", "3", "4", "5"]
    assert "prior" in err
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    out, _ = run("aggregate", folder / "ballots.txt", "--method", "borda", "--json")
    assert len(json.loads(out)["ranking"]) == 5
    run("aggregate", folder / "ballots.txt", "-m", "copeland", "--out", tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text().startswith("item,score")


def test_evaluate_equals_the_library(run, folder, tmp_path):
    queries = placet.read_letor(folder / "search.letor")
    scores = np.random.default_rng(0).normal(size=len(queries.grade))
    (tmp_path / "scores.txt").write_text("\n".join(map(repr, scores.tolist())) + "\n")
    out, _ = run("evaluate", tmp_path / "scores.txt", folder / "search.letor", "--metric", "ndcg@3,map(threshold=2)")
    rows = {line.split("\t")[0]: float(line.split("\t")[1]) for line in out.splitlines()[1:]}
    expected = np.nanmean(placet.metric("ndcg@3")(scores, queries.grade, queries.offsets))
    assert rows["ndcg@3"] == pytest.approx(expected)
    assert set(rows) == {"ndcg@3", "average_precision(threshold=2)"}
    out, _ = run("evaluate", tmp_path / "scores.txt", folder / "search.letor", "--per-query", "--json")
    assert len(json.loads(out)) == 20


def test_evaluate_a_trec_run(run, tmp_path):
    (tmp_path / "run").write_text("q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.0 x\n")
    (tmp_path / "qrels").write_text("q1 0 d2 1\nq1 0 d3 1\nq2 0 d1 0\n")
    out, err = run("evaluate", tmp_path / "run", tmp_path / "qrels", "--metric", "map,p@1")
    rows = {line.split("\t")[0]: float(line.split("\t")[1]) for line in out.splitlines()[1:]}
    assert rows["average_precision"] == pytest.approx(0.25)  # d2 at rank 2, d3 never found
    assert "1 of 2 queries have no value" in err


def test_convert_and_back(run, folder, tmp_path):
    run("convert", folder / "ballots.txt", tmp_path / "ballots.toi")
    run("convert", tmp_path / "ballots.toi", tmp_path / "ballots.txt")
    assert (
        placet.read_ballots(tmp_path / "ballots.txt").collapsed()
        == placet.read_ballots(folder / "ballots.txt").collapsed()
    )


@pytest.mark.parametrize(
    ("text", "args", "words"),
    [
        ("model_a,model_b,winner\nx,y,lefft\n", ["describe"], "lefft"),
        ("", ["describe"], "empty"),
        ("model_a,model_b,winner\nx,y,model_a\n", ["aggregate", "--method", "bordaa"], "method 'bordaa' is unknown"),
        ("model_a,model_b,winner\nx,y,model_a\n", ["aggregate", "-p", "prior"], "is not of the form name=value"),
        ("model_a,model_b,winner\nx,y,model_a\n", ["aggregate", "-p", "prior=none"], "no finite scores"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(run, tmp_path, text, args, words):
    path = tmp_path / "votes.csv"
    path.write_text(text)
    out, err = run(args[0], path, *args[1:], check=2)
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_a_missing_file_and_a_failed_write_leave_nothing(run, folder, tmp_path):
    _, err = in_a_shell("describe", tmp_path / "none.csv", check=2)
    assert "none.csv" in err
    run("convert", folder / "votes.csv", tmp_path / "votes.letor", check=2)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_runs_and_writes_what_it_says(run, tmp_path):
    out, err = run("demo", "--out", tmp_path / "demo")
    assert "item-1" in out
    for name in ("votes.csv", "leaderboard.html", "ballots.txt", "search.csv", "pl-partition.placet"):
        assert (tmp_path / "demo" / name).stat().st_size > 0
        assert name.split(".")[0] in out + err


def test_specifications_split_outside_brackets():
    assert split_specs("ndcg@5(gain=linear,compat=letor), map") == ["ndcg@5(gain=linear,compat=letor)", "map"]
    assert with_compat("map(threshold=2)", "letor") == "map(threshold=2,compat=letor)"
    assert with_compat("map", "letor") == "map(compat=letor)"
    assert with_compat("map", "") == "map"


# Rank lists by topic


def trec_run(path, tag, lists):
    """A run file from {topic: documents, best first}."""
    rows = [f"{topic} Q0 {doc} {k + 1} {10.0 - k} {tag}" for topic, docs in lists.items() for k, doc in enumerate(docs)]
    path.write_text("\n".join(rows) + "\n")
    return path


ONE = {"401": ["a", "b", "c"], "402": ["x", "y"], "403": ["p"]}
TWO = {"401": ["b", "a", "d"], "402": ["x", "z", "y"]}


def test_runs_of_several_engines_are_fused_into_a_run_that_evaluate_reads(run, tmp_path):
    files = [trec_run(tmp_path / "one.trec", "bm25", ONE), trec_run(tmp_path / "two.trec", "lm", TWO)]
    out, _ = run("aggregate", *files, "--method", "rrf", "--out", tmp_path / "fused.run")
    assert out == ""
    fused = placet.read_trec_run(tmp_path / "fused.run")
    lists = placet.concat([placet.read_trec_run(file) for file in files])
    expected = placet.consensus(lists, "rrf")
    assert fused.instances == ("401", "402", "403")
    assert fused.agents == ("rrf",)
    assert {fused.instances[fused.instance[b]]: fused.orders()[b] for b in range(3)} == expected.ranking
    (tmp_path / "qrels").write_text("401 0 b 1\n402 0 z 1\n403 0 p 1\n")
    out, _ = run("evaluate", tmp_path / "fused.run", tmp_path / "qrels", "--metric", "mrr")
    assert float(out.splitlines()[1].split("\t")[1]) > 0.5


def test_equal_tags_in_several_files_are_told_apart_by_file(run, tmp_path):
    files = [trec_run(tmp_path / "one.trec", "run", ONE), trec_run(tmp_path / "two.trec", "run", TWO)]
    out, err = run("aggregate", *files, "-m", "borda", "-p", "unlisted=zero", "--json")
    assert "several files have the tag 'run'" in err
    rows = json.loads(out)["ranking"]
    assert {row["item"] for row in rows if row["instance"] == "401" and row["rank"] == 1} == {"a", "b"}
    out, err = run("aggregate", files[0], files[0], "-m", "borda", "--json", check=0)
    assert "several files" in err


@pytest.mark.parametrize("method", ["", "mpm", "cps", "svp", "mallows", "kemeny", "combsum", "bradley-terry"])
def test_one_run_is_ranked_topic_by_topic(run, tmp_path, method):
    path = trec_run(tmp_path / "one.trec", "bm25", ONE)
    out, _ = run("aggregate", path, *(["-m", method] if method else []))
    head, *rows = (line.split("\t") for line in out.splitlines())
    assert head[:3] == ["instance", "item", "score"]
    assert [(row[0], row[1]) for row in rows] == [(topic, doc) for topic, docs in ONE.items() for doc in docs]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet", ".csv.gz"])
def test_results_are_written_as_the_suffix_says(run, tmp_path, suffix):
    import polars as pl

    path = trec_run(tmp_path / "one.trec", "bm25", ONE)
    target = tmp_path / f"result{suffix}"
    run("aggregate", path, "-m", "borda", "--out", target, "--report", tmp_path / "page.html")
    if suffix == ".json":
        rows = json.loads(target.read_text())["ranking"]
    else:
        rows = (pl.read_parquet(target) if suffix == ".parquet" else pl.read_csv(target)).to_dicts()
    assert [str(row["item"]) for row in rows] == ["a", "b", "c", "x", "y", "p"]
    assert "Instance 402" in (tmp_path / "page.html").read_text()


def test_what_cannot_be_joined_or_written_is_said_and_nothing_is_written(run, folder, tmp_path):
    path = trec_run(tmp_path / "one.trec", "bm25", ONE)
    _, err = run("aggregate", folder / "votes.csv", folder / "ballots.txt", "--out", tmp_path / "x.csv", check=2)
    assert "votes.csv holds votes and" in err
    _, err = run("aggregate", path, folder / "ballots.txt", "--out", tmp_path / "x.csv", check=2)
    assert "part 1 has no" in err
    _, err = run("aggregate", path, "--out", tmp_path / "x.docx", check=2)
    assert "suffix '.docx' is unknown" in err
    (tmp_path / "one.csv").write_text("model_a,model_b,winner\na b,c,model_a\n")
    _, err = run("aggregate", tmp_path / "one.csv", "--out", tmp_path / "x.run", check=2)
    assert "TREC fields have no blanks" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.csv", "one.trec"]


def test_votes_of_several_files_are_counted_together(run, folder):
    once = json.loads(run("aggregate", folder / "votes.csv", "-m", "borda", "--json")[0])["ranking"]
    twice = json.loads(run("aggregate", folder / "votes.csv", folder / "votes.csv", "-m", "borda", "--json")[0])[
        "ranking"
    ]
    assert [(row["item"], 2 * row["score"]) for row in once] == [(row["item"], row["score"]) for row in twice]
