"""Adding to a table is enough: a new loss, rule, metric or format works everywhere at once (see CONTRIBUTING.md)."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import placet
from placet.aggregate import METHODS
from placet.aggregate.method import Method
from placet.axioms import audit
from placet.cli import app
from placet.data import Lists, Rankings
from placet.io.files import writing
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


# A format: a module with three functions, a record (and a test and a row of docs/howto/formats.md)


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
