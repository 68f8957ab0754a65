"""``placet train --order``: cases with an order of labels each, from a table to orders of new cases."""

import numpy as np
import pytest

import placet
from placet.io import read_label_orders
from placet.io.tables.tables import write_table
from placet.metrics import kendall_tau

WEIGHTS = np.array([[2.0, -2.0, 0.0], [0.0, 1.5, -1.5]])
LABELS = ["tea", "milk", "hot cocoa"]


def cases(n, seed, bent=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    s = (np.abs(X) - 0.8 if bent else X) @ WEIGHTS + rng.gumbel(size=(n, 3))
    orders = [" > ".join(LABELS[k] for k in row) for row in np.argsort(-s, axis=1)]
    return {"age": X[:, 0], "income": X[:, 1], "order": orders}


@pytest.fixture(scope="module", params=["linear", "trees"])
def tables(tmp_path_factory, request):
    folder, bent = tmp_path_factory.mktemp(request.param), request.param == "trees"
    for name, n, seed in (("train", 300, 1), ("test", 150, 2)):
        write_table(folder / f"{name}.csv", cases(n, seed, bent))
    return request.param, folder


def test_one_table_and_one_command(placet_command, tables):
    ranker, folder = tables
    model = folder / "model.placet"
    _, err = placet_command(
        "train", folder / "train.csv", "--order", "order", "--ranker", ranker, "--valid", folder / "test.csv",
        "--out", model,
    )  # fmt: skip
    assert "kendall_tau on" in err
    assert "an order of the labels for each case" in err
    out, _ = placet_command("score", model, folder / "test.csv")
    lines = out.splitlines()
    assert len(lines) == 150
    assert sorted(lines[0].split(" > ")) == sorted(LABELS)
    fitted, test = placet.load(model), read_label_orders(folder / "test.csv")
    assert fitted.loss == "pl-partition"
    right = kendall_tau(fitted.predict(test), test.grade, test.offsets).mean()
    assert right > 0.5  # the other kind of ranker, or labels mixed up, is below
    out, _ = placet_command("compare", model, model, folder / "test.csv", "--metric", "kendall_tau")
    assert float(out.splitlines()[1].split("\t")[2]) == pytest.approx(right)
    out, err = placet_command("verify", model, folder / "train.csv", "--valid", folder / "test.csv")
    assert "the same" in out + err


def test_the_linear_ranker_finds_the_weights_of_plackett_luce(tmp_path):
    write_table(tmp_path / "cases.csv", cases(3000, 5))
    rows = read_label_orders(tmp_path / "cases.csv")
    w = (
        placet.LinearRanker("pl-partition", l2=1e-6).fit(rows).coef_.reshape(3, 3)
    )  # constants, age, income; labels sorted
    found = w - w.mean(axis=1, keepdims=True)
    truth = np.vstack([np.zeros(3), WEIGHTS])[:, [LABELS.index(name) for name in sorted(LABELS)]]
    assert np.abs(found - truth).max() < 0.15


def test_validation_cases_have_the_labels_and_features_of_the_training_cases(placet_command, tables, tmp_path):
    _, folder = tables
    held_out = {"income": [0.1, -2.0], "age": [1.0, -1.0], "order": ["tea > milk", "milk > tea"]}
    write_table(tmp_path / "valid.csv", held_out)
    options = ["--order", "order", "--valid", tmp_path / "valid.csv", "--out", tmp_path / "m.placet"]
    _, err = placet_command("train", folder / "train.csv", *options)
    assert "kendall_tau on" in err
    assert placet.load(tmp_path / "m.placet").n_features_in_ == 9


def test_what_does_not_fit_is_refused(placet_command, tables, tmp_path):
    _, folder = tables
    train = folder / "train.csv"
    _, err = placet_command("train", train, "--out", tmp_path / "m", code=2)
    assert "--order" in err
    _, err = placet_command("train", train, "--order", "rank", "--out", tmp_path / "m", code=2)
    assert "'rank' is not there" in err
    _, err = placet_command("train", train, "--order", "order", "--ranker", "labels", "--out", tmp_path / "m", code=2)
    assert "--ranker linear" in err
    _, err = placet_command("train", train, "--order", "order", "--qid", "age", "--out", tmp_path / "m", code=2)
    assert "qid" in err
