"""``placet train --start``, ``--history`` and several metrics; ``placet score -k``."""

import csv
import json

import numpy as np
import pytest

import placet
from placet.simulate import queries

WORDS = ["train", "train.letor", "--valid", "valid.letor", "--out"]
TREES = [
    "--ranker",
    "trees",
    "-p",
    "n_trees=3",
    "-p",
    "min_rows=3",
    "-p",
    "subsample=1.0",
    "-p",
    "feature_fraction=1.0",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("more")
    data = queries(40, 9, 4, noise=0.5, random_state=0)
    placet.io.write(data[:25], folder / "train.letor")
    placet.io.write(data[25:], folder / "valid.letor")
    return folder


@pytest.fixture
def run(folder, monkeypatch, answer):
    monkeypatch.chdir(folder)
    return answer


def test_a_model_is_continued_with_its_own_parameters(run, folder):
    run(*WORDS, "a.placet", *TREES, "-p", "learning_rate=0.1", "--loss", "ranknet")
    about = json.loads(run(*WORDS, "b.placet", "--start", "a.placet", "-p", "n_trees=4", "--json"))
    before, after = placet.load(folder / "a.placet"), placet.load(folder / "b.placet")
    assert about["continued"] is True
    assert (after.loss, after.min_rows, after.n_trees, after.learning_rate) == ("ranknet", 3, 4, 0.1)
    assert before.n_trees_ <= after.n_trees_ <= before.n_trees_ + 4
    assert after.fit_summary_["validation"] >= before.fit_summary_["validation"]
    assert "continued another model" in run("verify", "b.placet", "train.letor", code=2)


def test_a_start_that_does_not_fit_is_refused(run):
    run(*WORDS, "l.placet")
    assert "is a model of --ranker linear; leave --ranker trees out" in run(
        *WORDS, "x.placet", "--start", "l.placet", "--ranker", "trees", code=2
    )
    assert "leave --parts and --dask out" in run(*WORDS, "x.placet", "--start", "l.placet", "--parts", code=2)
    assert "x.letor" in run(*WORDS, "x.placet", "--start", "x.letor", code=2)


def test_the_history_has_every_metric(run, folder):
    run(*WORDS, "h.placet", *TREES, "--metric", "ndcg@5", "--metric", "map", "--history", "history.csv")
    rows = list(csv.DictReader((folder / "history.csv").read_text().splitlines()))
    assert [row["step"] for row in rows] == ["1", "2", "3"]
    ranker, valid = placet.load(folder / "h.placet"), placet.read(folder / "valid.letor")
    best = max(rows, key=lambda row: float(row["ndcg@5"]))
    assert float(best["map"]) == pytest.approx(ranker.score(valid, metric="map"))
    run(*WORDS, "h.placet", *TREES, "--history", "history.svg")
    assert (folder / "history.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--history", "h.txt", "--valid", "valid.letor"], "a history is written as .csv"),
        (["--history", "h.csv"], "give --valid"),
        (["--metric", "map", "--metric", "err"], "give --valid"),
        (["--history", "h.csv", "--valid", "valid.letor", "--ranker", "auto"], "records no metrics by step"),
        (["--metric", "footrule", "--valid", "valid.letor"], "is a distance"),
    ],
)
def test_a_history_that_cannot_be_is_refused(run, folder, words, said):
    assert said in run("train", "train.letor", "--out", "no.placet", *words, code=2)
    assert not (folder / "no.placet").exists()


def test_the_best_rows_of_every_query(run, folder):
    run(*WORDS, "t.placet")
    run("score", "t.placet", "valid.letor", "-k", "2", "--out", "best.csv")
    rows = list(csv.DictReader((folder / "best.csv").read_text().splitlines()))
    valid = placet.read(folder / "valid.letor")
    s = valid.restore(placet.load(folder / "t.placet").predict(valid))
    assert [row["rank"] for row in rows[:4]] == ["1", "2", "1", "2"]
    for row in rows:
        own = np.sort(s[np.array(valid.qid)[valid.restore(valid.query)].astype(str) == row["query"]])
        assert s[int(row["row"]) - 1] == float(row["score"]) == own[-int(row["rank"])]
    assert "leave it out with --run TAG" in run("score", "t.placet", "valid.letor", "-k", "2", "--run", "me", code=2)
    assert "'-k': Input should be greater than or equal to 1" in run(
        "score", "t.placet", "valid.letor", "-k", "0", code=2
    )
