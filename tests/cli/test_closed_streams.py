"""Standard streams that were closed before the command began, and labels with options of another format."""

import subprocess
import sys

import pytest

COMMAND = f"{sys.executable} -c 'from placet.cli import main; main()'"


@pytest.fixture
def votes(tmp_path):
    (tmp_path / "v.csv").write_text("a,b,winner\nx,y,a\ny,z,a\nx,z,b\n")
    return tmp_path


def run(line, folder):
    return subprocess.run(["sh", "-c", f"{COMMAND} {line}"], cwd=folder, capture_output=True, text=True)


def test_closed_output_is_an_error_in_words(votes):
    done = run("describe v.csv >&-", votes)
    assert done.returncode == 2
    assert "placet: standard output is closed; name a file with --out" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_is_written_all_the_same_and_nothing_else_into_it(votes):
    """Without a stream of number 1, a file that is opened would take that number, and what libraries print."""
    done = run("aggregate v.csv --method borda --out out.csv >&- 2>&- <&-", votes)
    assert done.returncode == 0
    assert (votes / "out.csv").read_text().startswith("item,score")


def test_options_that_labels_do_not_have(tmp_path):
    (tmp_path / "x.letor").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.2\n")
    (tmp_path / "s.txt").write_text("0.5\n0.2\n")
    (tmp_path / "q.qrels").write_text("1 0 d 1\n1 0 e 0\n")
    (tmp_path / "r.run").write_text("1 Q0 d 1 0.5 x\n1 Q0 e 2 0.4 x\n")
    for line, words in (
        ("compare s.txt s.txt x.letor --label grade", "LETOR rows are read without the option --label"),
        ("evaluate r.run q.qrels --label grade", "TREC judgments are read without the option --label"),
    ):
        done = run(line, tmp_path)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        assert words in done.stderr.replace("'label'", "--label")
