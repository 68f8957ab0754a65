"""Adding to a table is enough: a new loss, rule, metric, ranker or format works everywhere at once (CONTRIBUTING.md)."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import placet
from placet.aggregate import METHODS
from placet.aggregate.method import Method
from placet.axioms import audit
from placet.cli import app
from placet.data import Comparisons, Lists, Rankings
from placet.io.files import read_text, writing
from placet.io.formats import FORMATS, Format
from placet.kernels.jit import jit
from placet.losses import LOSSES, Bound, Loss
from placet.losses.loss import Plan
from placet.metrics import METRICS, metric
from placet.rank import LinearRanker, TreeRanker
from placet.report import consensus_page
from placet.studio.tasks.catalog import catalog


def run(*args):
    return CliRunner().invoke(app, [str(a) for a in args])


# A loss: a kernel, a function that plans it, a record (and an oracle and a line of docs/models.md)


@jit()
def squares(s, grade, offsets, weight, values, grad):
    """1/2 |s - grade|^2."""
    for q in range(len(weight)):
        for r in range(offsets[q], offsets[q + 1]):
            values[q] += 0.5 * weight[q] * (s[r] - grade[r]) ** 2
            grad[r] = weight[q] * (s[r] - grade[r])


@jit()
def squares_second(s, grade, offsets, weight, out):
    for q in range(len(weight)):
        for r in range(offsets[q], offsets[q + 1]):
            out[r] = weight[q]


def plan_squares(lists) -> Plan:
    """1/2 sum (s - grade)^2."""
    return Plan((squares,), curvature=(squares_second,))


@pytest.fixture
def new_loss(monkeypatch):
    record = Loss(plan_squares, "Gauss", gives=("curvature",), shift_invariant=False, values_of_grades=True)
    monkeypatch.setitem(LOSSES, "squares", record)
    return "squares"


def test_a_new_loss_is_its_kernel_its_plan_and_its_record(new_loss, tmp_path):
    lists = Lists([2.0, 0.0, 1.0], [0, 3])
    value, grad = LOSSES[new_loss](np.zeros(3), lists)
    assert value == 2.5
    np.testing.assert_array_equal(grad, [-2, 0, -1])
    assert Bound(new_loss, lists).best_level(np.zeros(3)) == pytest.approx(1.0)
    train = placet.simulate.queries(30, 10, 3, noise=0.3, random_state=1)
    linear = LinearRanker(new_loss).fit(train)
    assert linear.score(train) > 0.8
    pytest.importorskip("lightgbm")
    assert TreeRanker(new_loss, n_trees=10).fit(train).score(train) > 0.8
    placet.io.write(train, tmp_path / "train.letor")
    done = run("train", tmp_path / "train.letor", "--loss", new_loss, "--save", tmp_path / "model.placet")
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(
        placet.load(tmp_path / "model.placet").predict(train), linear.predict(train), rtol=1e-3, atol=1e-3
    )


# A rule: one record


def test_a_new_rule_is_one_record(monkeypatch, tmp_path):
    words = "Items come in the order in which they are listed."
    first = Method("first-listed", "First listed", words, lambda data: -np.arange(float(data.n_items)), "nobody")
    monkeypatch.setitem(METHODS, "first-listed", first)
    ballots = Rankings.from_orders([["b", "a", "c"], ["c", "b", "a"]])
    assert placet.consensus(ballots, "first-listed").ranking == ["b", "a", "c"]
    assert placet.consensus(ballots, "first-listed", bootstrap=3).stderr.max() == 0
    assert audit(ballots, "first-listed").majorities == 1
    path = tmp_path / "b.ballots"
    placet.io.write(ballots, path)
    done = run("aggregate", path, "--method", "first-listed", "--json")
    assert json.loads(done.stdout)["ranking"][0]["item"] == "b"
    assert words in consensus_page(placet.consensus(ballots, "first-listed"), ballots)
    assert any(one["name"] == "first-listed" for one in catalog(None))


# A metric: a function and a row


def test_a_new_metric_is_a_function_and_a_row(monkeypatch, tmp_path):
    def rows(s, grade, offsets, k=None):
        return np.diff(offsets).astype(float)

    monkeypatch.setitem(METRICS, "rows", rows)
    assert metric("rows@3")([1.0, 2.0], [0, 1], [0, 2]).tolist() == [2.0]
    data = placet.simulate.queries(3, 4, 2, random_state=1)
    assert LinearRanker("ranknet").fit(data).score(data, metric="rows") == 4.0


# A format: a module with two functions, or three if it is written, a record (and a test and a row of docs/howto/formats.md)


def test_a_new_format_is_its_functions_and_one_record(monkeypatch, tmp_path):
    def read(source, *, on_error="raise"):
        with open(source) as file:
            return Rankings.from_orders([line.split("/") for line in file.read().split()])

    def write(data, target):
        with writing(target) as file:
            for a, b in zip(data.offsets[:-1], data.offsets[1:]):
                file.write(("/".join(str(data.items[k]) for k in data.item[a:b]) + "\n").encode())

    record = Format(read, write, Rankings, (".slash",), lambda sample: {} if "/" in sample.first else None)
    monkeypatch.setitem(FORMATS, "slash", record)
    path = tmp_path / "ballots.slash"
    path.write_text("a/b/c\nb/a\n")
    assert len(placet.read(path)) == 2
    done = run("aggregate", path, "--method", "borda", "--json")
    assert json.loads(done.stdout)["ranking"][0]["item"] == "a", done.output
    assert run("convert", path, tmp_path / "again.slash").exit_code == 0
    assert (tmp_path / "again.slash").read_text() == "a/b/c\nb/a\n"


def test_a_new_log_is_its_reader_and_one_record(monkeypatch, tmp_path):
    """A log is found by its first bytes, whatever its suffix says, and is not written."""

    def read(source, *, on_error="raise"):
        votes = [line.split() for line in read_text(source).splitlines()[1:]]
        return Comparisons.from_battles([one[0] for one in votes], [one[1] for one in votes], ["a"] * len(votes))

    found = Format(read, None, Comparisons, (".csv",), lambda head: {} if head.first == "duels" else None, by_head=True)
    monkeypatch.setitem(FORMATS, "duels", found)
    path = tmp_path / "d.csv"
    path.write_text("duels\nx y\nx z\n")
    done = run("aggregate", path, "--json")
    assert json.loads(done.stdout)["ranking"][0]["item"] == "x", done.output
    refused = run("convert", path, tmp_path / "again.csv", "--to", "duels")
    assert "cannot be written as duels" in str(refused.exception)


# The table "to add, touch" of CONTRIBUTING.md: how many files a row names, and that no other file is needed


ROOT = Path(__file__).parents[1]
MOST = {"a rule": 3, "a metric": 3, "a ranker": 3, "an option of `aggregate`": 3, "a format": 4, "a loss": 5}
"""What is added -> the number of files that it touches, its test among them."""


def table():
    """What is added -> the paths that its row names; a name in angle brackets is free."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("| to add | touch |\n|---|---|\n")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in text.splitlines()]
    return {what: re.findall(r"`([\w<>/.]+/[\w<>/.]+)`", touched) for what, touched in cells}


def test_every_row_names_its_files():
    assert {what: len(paths) for what, paths in table().items()} == MOST


@pytest.mark.parametrize("what", MOST)
def test_the_files_that_a_row_names_are_there(what):
    for path in table()[what]:
        fixed = path.partition("<")[0]
        found = ROOT / fixed
        assert found.is_file() if fixed == path else found.is_dir(), path


ADDED = {
    "src/placet/aggregate/rules/positional.py": """

def first_listed(data: Rankings) -> Floats:
    \"\"\"Items in the order in which they were first named.\"\"\"
    return -np.arange(float(data.n_items))
""",
    "src/placet/kernels/losses/margins.py": '''

@jit()
def from_grades(s, grade, offsets, weight, values, grad):
    """1/2 |s - grade|^2."""
    for q in range(len(weight)):
        for r in range(offsets[q], offsets[q + 1]):
            values[q] += 0.5 * weight[q] * (s[r] - grade[r]) ** 2
            grad[r] = weight[q] * (s[r] - grade[r])
''',
    "src/placet/losses/pairwise.py": """

def from_grades(lists: ListColumns) -> Plan:
    \"\"\"1/2 sum (s - grade)^2.\"\"\"
    return Plan((margins.from_grades,))
""",
    "src/placet/aggregate/data_facts.py": """

def turned(result: Any) -> Any:
    \"\"\"The result with the last first.\"\"\"
    from dataclasses import replace

    return replace(result, scores=-result.scores)
""",
    "src/placet/metrics/relevance.py": """

def rows_of(s: Any, grade: Any, offsets: Any, k: int | None = None) -> Floats:
    \"\"\"Number of rows of each list.\"\"\"
    return np.diff(offsets).astype(np.float64)
""",
    "src/placet/rank/linear/first_feature.py": '''"""Ranking by one feature."""

from typing import Any

from placet.data import Queries
from placet.rank.ranker import Ranker


class FirstFeature(Ranker):
    """Scores are the first feature."""

    def __init__(self, sign: float = 1.0) -> None:
        self.sign = sign

    def _fit(self, data: Queries, valid: Queries | None) -> None:
        self.fit_summary_ = {"queries": len(data)}

    def _scores(self, data: Queries) -> Any:
        return self.sign * data.X[:, 0]
''',
    "src/placet/io/slashes.py": '''"""Ballots of one line each, items separated by slashes."""

from typing import Any

from placet.data import Rankings
from placet.io.files import read_text, writing


def read_slashes(source: Any, *, on_error: str = "raise") -> Rankings:
    """Read ballots such as a/b/c."""
    with open(source) as file:
        return Rankings.from_orders([line.split("/") for line in file.read().split()])


def write_slashes(data: Rankings, target: Any) -> None:
    """Write ballots without ties."""
    with writing(target) as file:
        for ballot in data.orders():
            file.write(("/".join(map(str, ballot)) + "\\n").encode())


def looks_like_slashes(sample: Any) -> dict[str, Any] | None:
    """Options of the reader if the first line has slashes."""
    return {} if "/" in sample.first else None
''',
}
"""File of the copy -> what is appended to it, or the whole new file."""

RECORDS = {
    "src/placet/aggregate/method_table.py": (
        "",
        "_TABLE = (\n",
        'Method("first-listed", "First listed", "Items come as they were named.", "rules.positional:first_listed", "nobody"),\n',
    ),
    "src/placet/losses/__init__.py": (
        "",
        "LOSSES: dict[str, Loss] = {\n",
        '"from-grades": Loss(_pairs.from_grades, "Gauss", gives=(), shift_invariant=False, values_of_grades=True),\n',
    ),
    "src/placet/metrics/metric_table.py": (
        "from placet.metrics.relevance import rows_of\n\n",
        "METRICS: dict[str, Callable[..., Floats]] = {\n",
        '"rows_of": rows_of,\n',
    ),
    "src/placet/rank/ranker.py": (
        "",
        '        "labels": "multilabel.label_ranker:LabelRanker",\n',
        '"first-feature": "linear.first_feature:FirstFeature",\n',
    ),
    "src/placet/io/formats.py": (
        "from placet.io.slashes import looks_like_slashes, read_slashes, write_slashes\n\n",
        "FORMATS: dict[str, Format] = {\n",
        '"slashes": Format(read_slashes, write_slashes, Rankings, (".slashes",), looks_like_slashes),\n',
    ),
}
"""File of the copy -> an import, the line of its table after which the record is put, and the record."""

OPTION = {
    "    parts: InParts = False,\n": '    turned: Annotated[bool, typer.Option(help="The last first.")] = False,\n',
    "    result = _in_points(result, scale, anchor) if scale else result\n": (
        "    if turned:\n        from placet.aggregate import data_facts\n\n        result = data_facts.turned(result)\n"
    ),
}
"""Line of src/placet/cli/aggregate.py -> what is put after it."""

USED = """
import json, sys
from typer.testing import CliRunner
import placet
from placet.cli import app
from placet.report import consensus_page

def run(*words):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout

assert placet.__file__.startswith(sys.argv[1]), placet.__file__
open("b.slashes", "w").write("b/a/c\\nc/b/a\\n")
found = json.loads(run("aggregate", "b.slashes", "--method", "first-listed", "--json"))
turned = json.loads(run("aggregate", "b.slashes", "--method", "first-listed", "--turned", "--json"))
run("convert", "b.slashes", "again.slashes")
placet.io.write(placet.simulate.queries(6, 4, 2, random_state=1), "q.letor")
run("train", "q.letor", "--ranker", "first-feature", "--out", "m.placet")
run("train", "q.letor", "--loss", "from-grades", "--out", "l.placet")
open("scores.txt", "w").write(run("score", "m.placet", "q.letor"))
rows = run("evaluate", "scores.txt", "q.letor", "--metric", "rows_of")
ballots = placet.read("b.slashes")
page = consensus_page(placet.consensus(ballots, "first-listed"), ballots)
print(json.dumps({"first": found["ranking"][0]["item"], "turned": turned["ranking"][0]["item"], "again": open("again.slashes").read(),
                  "rows": rows.split()[-5:], "page": "Items come as they were named." in page}))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package in which only the files of the table changed."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "vendor"))
    for path, text in ADDED.items():
        with open(folder / path, "a") as file:
            file.write(text)
    for path, (imports, line, record) in RECORDS.items():
        text = (folder / path).read_text()
        assert text.count(line) == 1, path
        (folder / path).write_text(text.replace(line, imports + line + record))
    command = folder / "src/placet/cli/aggregate.py"
    for line, more in OPTION.items():
        assert command.read_text().count(line) == 1, line
        command.write_text(command.read_text().replace(line, line + more))
    return folder


def test_a_copy_with_only_these_files_changed_has_them_everywhere(copy, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(copy / "src")}
    done = subprocess.run(
        [sys.executable, "-c", USED, str(copy)], capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["first"] == "b"
    assert found["turned"] == "c"
    assert found["again"] == "b/a/c\nc/b/a\n"
    assert found["page"]
    assert "4.0" in found["rows"]


def test_the_copy_changes_no_more_than_the_table_says():
    """Of each kind the files of the package; its test comes on top, and a row of the how-to for a format."""
    shown: set[str] = set()
    patterns = {what: [re.sub(r"<\w+>", r"\\w+", path) for path in paths] for what, paths in table().items()}
    for changed in {*ADDED, *RECORDS, "src/placet/cli/aggregate.py"}:
        kinds = [what for what, known in patterns.items() if any(re.fullmatch(one, changed) for one in known)]
        assert kinds, f"{changed} is in no row of CONTRIBUTING.md"
        shown.update(kinds)
    assert shown == set(MOST)
