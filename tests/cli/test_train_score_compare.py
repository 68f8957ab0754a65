"""train, score and compare through the command itself."""

import json
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import placet
from placet.io import write
from placet.io.tables.tables import write_table
from placet.metrics import compare, ndcg
from placet.rank import RANKERS
from placet.simulate import queries


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    data = queries(60, 9, 4, noise=0.5, random_state=0)
    write(data[:40], folder / "train.letor")
    write(data[40:], folder / "valid.letor")
    write(queries(10, 5, 3), folder / "narrow.letor")
    write(queries(10, 5, 6), folder / "wide.letor")
    return folder


@pytest.fixture
def run(folder, monkeypatch, answer):
    monkeypatch.chdir(folder)
    return answer


@pytest.fixture
def model(run, folder):
    if not (folder / "m.placet").exists():
        run("train", "train.letor", "--valid", "valid.letor", "--loss", "pl-partition", "--save", "m.placet")
    return "m.placet"


@pytest.mark.parametrize("ranker", ["linear", "trees"])
def test_train_then_score(run, folder, ranker):
    words = ["-p", "n_trees=10", "-p", "min_rows=3"] if ranker == "trees" else ["-p", "l2=0.01"]
    out = run(
        "train", "train.letor", "--valid", "valid.letor", "--ranker", ranker, "--loss", "ranknet", "--save", "r.placet",
        "--metric", "ndcg@5", "--json", *words,
    )  # fmt: skip
    about = json.loads(out)
    ranker = placet.load(folder / "r.placet")
    valid = placet.read_letor(folder / "valid.letor")
    assert about["loss"] == ranker.loss == "ranknet"
    assert about["validation"] == pytest.approx(ranker.score(valid, metric="ndcg@5"))
    lines = run("score", "r.placet", "valid.letor").splitlines()
    np.testing.assert_array_equal([float(line) for line in lines], ranker.predict(valid))
    run("score", "r.placet", "valid.letor", "--out", "scores.txt")
    assert (folder / "scores.txt").read_text().splitlines() == lines


QUICK = {
    "neural": ["epochs=3", "hidden=8,4"],
    "booster": ["n_rounds=5", "learners=feature,stump"],
    "forest": ["n_trees=5", "splits=best"],
    "rankboost": ["n_rounds=5", "learners=stump,feature"],
    "adarank": ["n_rounds=5"],
    "coordinate": ["max_iter=1", "starts=1"],
    "surrogate": ["max_evaluations=3", "psi=ce,square"],
    "listwise": ["parts=place,similarity"],
    "structrank": ["scorer=linear", "epochs=1", "starts=1"],
    "reranker": ["base=1", "kernels=cosine,gaussian"],
    "crf": ["max_iter=5"],
}


@pytest.mark.jit
@pytest.mark.parametrize("ranker", QUICK)
def test_every_ranker_of_graded_rows_trains_from_a_file(run, folder, ranker):
    if ranker == "neural":
        pytest.importorskip("torch")
    words = [word for text in QUICK[ranker] for word in ("-p", text)]
    run("train", "train.letor", "--valid", "valid.letor", "--ranker", ranker, "--save", "e.placet", *words)
    model = placet.load(folder / "e.placet")
    assert type(model) is RANKERS[ranker]
    scores = [float(line) for line in run("score", "e.placet", "valid.letor").split()]
    np.testing.assert_array_equal(scores, model.predict(placet.read_letor(folder / "valid.letor")))


def test_parameters_with_commas_are_several_and_a_base_may_be_a_file(run, folder, model):
    run(
        "train",
        "train.letor",
        "--ranker",
        "reranker",
        "--save",
        "f.placet",
        "-p",
        "kernels=cosine",
        "-p",
        f"base={model}",
    )
    found = placet.load(folder / "f.placet")
    assert found.kernels == ("cosine",)
    assert type(found.base_) is RANKERS["linear"]


def test_rank_lists_are_fused_in_the_order_of_the_file(run, folder):
    rng = np.random.default_rng(0)
    lines = [
        f"{int(rng.integers(3))} qid:{k % 10} 1:{rng.integers(1, 20)} 2:{'NULL' if k % 7 == 0 else rng.integers(1, 20)} #docid = d{k}"
        for k in range(600)
    ]
    (folder / "ranks.agg").write_text("\n".join(lines) + "\n")
    run("train", "ranks.agg", "--ranker", "fusion", "--save", "g.placet")
    scores = run("score", "g.placet", "ranks.agg").splitlines()
    order = sorted(range(600), key=lambda k: k % 10)  # queries one after the other
    (folder / "grouped.agg").write_text("\n".join(lines[k] for k in order) + "\n")
    assert run("score", "g.placet", "grouped.agg").splitlines() == [scores[k] for k in order]
    assert "these are graded rows, not rank lists by engines" in run("score", "g.placet", "train.letor", code=2)
    assert "these are rank lists by engines, not rows" in run("train", "ranks.agg", "--save", "x.placet", code=2)


@pytest.fixture
def named(folder):
    """Rows with document names, similarities and links between them, and judgments of subtopics."""
    rng = np.random.default_rng(1)
    for part, first in (("named_train", 0), ("named_valid", 8)):
        rows = [(q, d) for q in range(first, first + 8) for d in range(9)]
        lines = [f"{d % 3} qid:{q} " + " ".join(f"{k + 1}:{x:.4f}" for k, x in enumerate(rng.random(3)))
                 + f" #docid = d{q}-{d}" for q, d in rows]  # fmt: skip
        order = rng.permutation(len(lines))
        (folder / f"{part}.txt").write_text("".join(lines[k] + "\n" for k in order))
    every = [(q, d) for q in range(16) for d in range(9)]
    sims = [f"{q} d{q}-{d} d{q}-{e} {rng.random():.3f}" for q, d in every for e in range(d)]
    (folder / "similarity.txt").write_text("\n".join(sims) + "\n")
    (folder / "links.txt").write_text("".join(f"d{q}-{d} d{q}-{(d * 2) % 9}\n" for q, d in every))
    (folder / "topics.qrels").write_text("".join(f"{q} {d % 4 + 1} d{q}-{d} {int(d % 3 > 0)}\n" for q, d in every))
    return folder


RELATED = ["--relation", "similarity=similarity.txt", "--relation", "links=links.txt"]


@pytest.mark.jit
@pytest.mark.parametrize(
    ("ranker", "words"),
    [("reranker", ["-p", "kernels=similarity,links.T"]), ("crf", ["-p", "relation=similarity", "-p", "max_iter=5"])],
)
def test_relations_from_files_train_score_and_compare(run, named, ranker, words):
    told = ["train", "named_train.txt", "--valid", "named_valid.txt", "--ranker", ranker, "--save", "n.placet"]
    run(*told, *words, *RELATED)
    model = placet.load(named / "n.placet")
    rows = placet.read_letor(
        named / "named_valid.txt", relations={n: named / f"{n}.txt" for n in ("similarity", "links")}
    )
    scores = [float(line) for line in run("score", "n.placet", "named_valid.txt", *RELATED).split()]
    np.testing.assert_array_equal(scores, rows.restore(model.predict(rows)))
    run("train", "named_train.txt", "--save", "plain.placet")
    out = run("compare", "plain.placet", "n.placet", "named_valid.txt", *RELATED, "--json")
    assert json.loads(out)[1]["mean"] == pytest.approx(model.score(rows))
    assert "relation" in run("score", "n.placet", "named_valid.txt", code=2)


@pytest.mark.jit
def test_diversity_trains_scores_and_is_evaluated_from_files(run, named):
    words = ["--ranker", "diversity", "--judged", "topics.qrels", "-p", "base=0", "--metric", "alpha_ndcg@5"]
    about = json.loads(
        run("train", "named_train.txt", "--valid", "named_valid.txt", "--save", "d.placet", *words, "--json")
    )
    assert (about["ranker"], about["queries"]) == ("DiversityReranker", 8)
    run("score", "d.placet", "named_valid.txt", "--run", "mine", "--out", "d.run")
    found = json.loads(run("evaluate", "d.run", "topics.qrels", "--metric", "alpha_ndcg@5,err_ia@5,ndcg@5", "--json"))
    lines = (named / "d.run").read_text().splitlines()
    assert len(lines) == 72
    assert lines[0].split()[1::2] == ["Q0", "1", "mine"]
    only = [line for line in (named / "topics.qrels").read_text().splitlines() if int(line.split()[0]) >= 8]
    (named / "valid.qrels").write_text("\n".join(only) + "\n")
    own = json.loads(run("evaluate", "d.run", "valid.qrels", "--metric", "alpha_ndcg@5", "--json"))
    assert own["alpha_ndcg@5"]["mean"] == pytest.approx(about["validation"])
    assert set(found) == {"alpha_ndcg@5", "err_ia@5", "ndcg@5"}
    (named / "flat.qrels").write_text("".join(f"{q} 0 d{q}-1 1\n" for q in range(8, 16)))
    assert "needs judgments of subtopics" in run("evaluate", "d.run", "flat.qrels", "--metric", "alpha_ndcg", code=2)
    run("train", "named_train.txt", "--save", "rows.placet")
    run("score", "rows.placet", "named_valid.txt", "--run", "rows", "--out", "rows.run")
    pair = ["compare", "d.run", "rows.run", "valid.qrels", "--metric", "alpha_ndcg@5,ndcg@5"]
    rows = json.loads(run(*pair, "--json"))
    assert [row["metric"] for row in rows] == ["alpha_ndcg@5"] * 2 + ["ndcg@5"] * 2
    assert rows[0]["mean"] == pytest.approx(about["validation"])
    both = json.loads(run(*pair, "--all-pairs", "--json"))
    assert {row["mean"] for row in both["systems"]} == {row["mean"] for row in rows}
    assert "needs judgments of subtopics" in run(
        "compare", "d.run", "rows.run", "flat.qrels", "--metric", "err_ia", code=2
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranker", "reranker", "--relation", "similarity"], "is not name=FILE"),
        (["--ranker", "reranker", "--relation", "anchors=links.txt"], "relation 'anchors' is unknown"),
        (["--ranker", "linear", "--judged", "topics.qrels"], "is for --ranker diversity"),
        (["--ranker", "labels", "--relation", "links=links.txt"], "--relation joins rows with features"),
    ],
)
def test_relations_and_judgments_that_are_wrong(run, named, words, said):
    assert said in run("train", "named_train.txt", "--save", "x.placet", *words, code=2)


def test_rows_without_names_make_no_run(run, folder, model):
    assert "no document name" in run("score", model, "valid.letor", "--run", "mine", code=2)


@pytest.mark.parametrize("ranker", sorted(RANKERS))
def test_rankers_that_need_more_than_a_file_say_what(run, ranker):
    if ranker in ("diversity", "blend"):
        err = run("train", "train.letor", "--ranker", ranker, "--save", "x.placet", code=2)
        assert {"diversity": "judged for subtopics", "blend": "--param blend=K"}[ranker] in err
    else:
        assert RANKERS[ranker].learns_from in ("queries", "labels", "rank lists")


def test_scores_are_in_the_order_of_the_file(run, folder, model):
    lines = (folder / "valid.letor").read_text().splitlines()
    order = np.random.default_rng(0).permutation(len(lines))
    (folder / "mixed.letor").write_text("\n".join(lines[k] for k in order) + "\n")
    straight = run("score", model, "valid.letor").splitlines()
    assert run("score", model, "mixed.letor").splitlines() == [straight[k] for k in order]


def test_directions_of_features_in_order_or_by_name(run, folder):
    train = ("train", "train.letor", "--save", "m.placet", "-p")
    for text, kept in (("1:-1", {"1": -1}), ("0:1, 2:0", {"0": 1, "2": 0})):
        run(*train, f"monotone={text}")
        assert placet.load("m.placet").monotone == kept
    for text, words in (("1", "1 entries"), ("1,0,x,0", "holds x"), ("f1:1", "'f1' is unknown"), ("0:1,0", "name:dir")):
        assert words in run(*train, f"monotone={text}", code=2)


def test_parameters_of_ranker_and_loss(run, folder):
    run("train", "train.letor", "--save", "s.placet", "-p", "l2=0.5", "--loss", "davidson", "--loss-param", "tie=0.25")
    ranker = placet.load(folder / "s.placet")
    assert (ranker.l2, ranker.loss_params, ranker.learned_) == (0.5, {"tie": 0.25}, {})


def test_a_model_given_for_a_file_of_scores_is_called_one(run, model):
    assert "m.placet: a saved model (or other tensors), not text; placet score" in run(
        "evaluate", model, "valid.letor", code=2
    )


def test_auto_says_what_it_tried(run, folder, model, placet_command):
    out = run(
        "train", "train.letor", "--valid", "valid.letor", "--ranker", "auto", "--save", "a.placet", "-p", "budget=2"
    )
    assert "tried\t2" in out
    assert placet.load(folder / "a.placet").loss == "pmop-fd"
    words = ("train", "train.letor", "--ranker", "auto", "--save", "a.placet", "-p", "budget=2", "-p", "seconds=3600")
    out, err = placet_command(*words)
    assert "tried\t2" in out
    assert re.search(r"ndcg@10 on rows that were held out: 0\.\d{4}", err)
    auto = ("train", "train.letor", "--ranker", "auto", "--save", "x")
    assert "parameter seconds of --ranker auto must be" in run(*auto, "-p", "seconds=soon", code=2)
    assert "it takes only budget, seconds, blend, stack, folds" in run(*auto, "-p", "l2=1", code=2)
    err = run(
        "train", "train.letor", "--valid", "valid.letor", "--ranker", "auto", "--loss", "ranknet", "--save", "x", code=2
    )
    assert "chooses loss and parameters itself" in err


def test_auto_keeps_the_mean_of_the_best(run, folder, model):
    auto = ("train", "train.letor", "--valid", "valid.letor", "--ranker", "auto", "--save", "b.placet")
    assert "tried\t3" in run(*auto, "-p", "budget=3", "-p", "blend=2")
    assert len(placet.load(folder / "b.placet").members_) == 2
    in_turn = ("-p", "budget=3", "-p", "blend=3", "-p", "folds=2", "-p", "rotate=true")
    assert "tried\t3" in run(*auto, *in_turn)
    assert len(placet.load(folder / "b.placet").members_) == 3
    assert len(run("score", "b.placet", "valid.letor").split()) == len(placet.read_letor(folder / "valid.letor").grade)


def test_compare_scores_and_models(run, folder, model):
    valid = placet.read_letor(folder / "valid.letor")
    noise = np.random.default_rng(0).normal(size=len(valid.grade))
    (folder / "noise.txt").write_text("\n".join(map(repr, noise.tolist())) + "\n")
    rows = json.loads(run("compare", model, "noise.txt", model, "valid.letor", "--metric", "ndcg@10,map", "--json"))
    assert [(row["metric"], row["system"]) for row in rows] == [
        (metric, system) for metric in ("ndcg@10", "average_precision") for system in (model, "noise.txt", model)
    ]
    a, b = (ndcg(s, valid.grade, valid.offsets, 10) for s in (placet.load(folder / model).predict(valid), noise))
    gap = compare(b, a)
    assert rows[0]["minus first"] is None
    assert [rows[1][key] for key in ("mean", "minus first", "low", "high", "p")] == pytest.approx(
        [b.mean(), gap.difference, gap.low, gap.high, gap.p_value]
    )
    assert gap.p_value < 0.01
    assert (rows[2]["minus first"], rows[2]["p"]) == (0.0, 1.0)
    table = run("compare", model, "noise.txt", "valid.letor").splitlines()
    assert table[0].split("\t")[:3] == ["metric", "system", "mean"]
    assert "at least two systems" in run("compare", model, "valid.letor", code=2)
    (folder / "short.txt").write_text("1.0\n")
    assert "short.txt: 1 scores for 180 rows" in run("compare", model, "short.txt", "valid.letor", code=2)


@pytest.mark.filterwarnings("default::placet.io.DataWarning")
def test_compare_says_what_a_run_lacks_and_which_options_need_others(run, placet_command, folder):
    (folder / "two.qrels").write_text("1 0 d1 1\n1 0 d2 0\n2 0 d1 1\n2 0 d2 0\n")
    (folder / "all.run").write_text("1 Q0 d1 1 2.0 t\n1 Q0 d2 2 1.0 t\n2 Q0 d2 1 2.0 t\n2 Q0 d1 2 1.0 t\n")
    (folder / "half.run").write_text("1 Q0 d1 1 2.0 t\n1 Q0 d2 2 1.0 t\n1 Q0 d1 3 0.5 t\n")
    err = run("compare", "all.run", "half.run", "two.qrels", code=2)
    assert "half.run:3: document 'd1' occurs more than once for topic '1'" in err
    assert "--on-error skip" in err
    words = ("compare", "all.run", "half.run", "two.qrels", "--on-error", "skip", "--metric", "rr", "--json")
    out, err = placet_command(*words)
    assert "half.run: left out 1 line" in err
    rows = json.loads(out)
    assert [row["mean"] for row in rows] == [0.75, 0.5]
    (folder / "half.run").write_text("1 Q0 d1 1 2.0 t\n")
    for command in (["compare", "all.run", "half.run", "two.qrels"], ["evaluate", "half.run", "two.qrels"]):
        err = placet_command(*command)[1]
        assert "half.run: 1 of 2 queries are not in it; there it retrieves nothing" in err
        assert "all.run" not in err
    said = "a=all.run: files have names with --all-pairs only; add that, or give all.run alone"
    assert said in run("compare", "a=all.run", "half.run", "two.qrels", code=2)
    said = "--correction holm is for tiers of systems; add --all-pairs, or leave it out"
    assert said in run("compare", "all.run", "half.run", "two.qrels", "--correction", "holm", code=2)


def test_rows_that_do_not_fit_the_model_are_refused(run, model):
    assert "narrow.letor: its rows have 3 features; 4 are expected" in run("score", model, "narrow.letor", code=2)
    assert "wide.letor: its rows have 6 features; 4 are expected" in run("score", model, "wide.letor", code=2)
    err = run("train", "train.letor", "--valid", "wide.letor", "--save", "x.placet", code=2)
    assert "wide.letor: its rows have 6 features; 4 are expected" in err
    assert "not a saved model" in run("score", "valid.letor", "valid.letor", code=2)
    assert "none.letor" in run("score", model, "none.letor", code=2)


def test_sparse_rows_may_omit_their_last_features(run, folder):
    rng = np.random.default_rng(0)
    lines = [f"{k % 3} qid:{k // 6} {1 + k % 40}:{rng.random():.3f}" for k in range(120)]
    (folder / "sparse.letor").write_text("\n".join(lines) + "\n")
    (folder / "less.letor").write_text("\n".join(lines[:30]) + "\n")
    run("train", "sparse.letor", "--save", "p.placet", "--features", "50")
    assert placet.load(folder / "p.placet").n_features_in_ == 50
    straight = run("score", "p.placet", "sparse.letor").splitlines()
    assert run("score", "p.placet", "less.letor").splitlines() == straight[:30]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1 qid:1 1:0.5\n0 qid:2 1:0.1\n", "none of the 2 queries has two different grades (2 have one row"),
        (
            "1 qid:1 1:0.5\n1 qid:1 1:0.1\n",
            "none of the 1 queries has two different grades (0 have one row, 1 have equal",
        ),
        ("", "bad.letor: "),
        ("1 qid:1 1:x\n", "bad.letor:1: feature 1 has the value 'x'"),
    ],
)
def test_training_rows_that_teach_nothing(run, folder, content, words):
    (folder / "bad.letor").write_text(content)
    assert words in run("train", "bad.letor", "--save", "x.placet", code=2)
    assert not (folder / "x.placet").exists()


@pytest.fixture(scope="module")
def shown(folder):
    """Rows shown in the order of a feature that is worth nothing, each place further down worth -0.6; and a copy of the
    table without the places."""
    rng = np.random.default_rng(5)
    n, size = 250, 6
    X = rng.normal(size=(n, size, 2))
    place = np.argsort(np.argsort(X[..., 1] + 0.5 * rng.normal(size=(n, size)), axis=1), axis=1)
    order = np.argsort(-(X[..., 0] - 0.6 * place) - rng.gumbel(size=(n, size)), axis=1)
    columns = {
        "qid": np.repeat(np.arange(n), size),
        "place": place.ravel(),
        "good": X[..., 0].ravel(),
        "useless": X[..., 1].ravel(),
        "label": (size - np.argsort(order, axis=1)).ravel(),
    }
    mixed = rng.permutation(n * size)
    columns = {name: column[mixed] for name, column in columns.items()}
    write_table(folder / "shown.csv", columns)
    write_table(folder / "shown.parquet", columns)
    write_table(folder / "unshown.csv", {name: column for name, column in columns.items() if name != "place"})
    return columns


@pytest.mark.parametrize("ranker", ["linear", "trees", "booster"])
def test_controls_are_columns_of_the_table_and_no_features(run, folder, shown, ranker):
    words = {"linear": ["l2=1e-6"], "trees": ["n_trees=60", "leaves=8"], "booster": ["n_rounds=40"]}[ranker]
    given = [word for text in words for word in ("-p", text)]
    asked = ["--ranker", ranker, "--loss", "pl-partition", "--out", "c.placet", "--control", "place", *given]
    about = json.loads(run("train", "shown.csv", *asked, "--json"))
    model = placet.load(folder / "c.placet")
    assert model.features_ == ("good", "useless")
    X = np.column_stack([shown["good"], shown["useless"]])
    fresh = type(model)(**model.get_params()).fit(X, shown["label"], shown["qid"], control={"place": shown["place"]})
    assert about["controls"] == model.controls_ == pytest.approx(fresh.controls_)
    assert about["controls"]["place"] == pytest.approx(-0.6, abs=0.15)
    scores = run("score", "c.placet", "shown.csv")
    assert scores == run("score", "c.placet", "unshown.csv") == run("score", "c.placet", "shown.parquet")
    np.testing.assert_allclose([float(line) for line in scores.splitlines()], fresh.predict(X), rtol=1e-12)
    run("train", "shown.parquet", *asked, "--valid", "shown.csv")  # whose controls do not matter
    assert placet.load(folder / "c.placet").n_features_in_ == 2
    (folder / "c.txt").write_text(scores)
    both = json.loads(run("compare", "c.placet", "c.txt", "shown.csv", "--json"))
    assert both[0]["mean"] > both[1]["mean"] - 0.05
    assert "effect of place\t" in run("train", "shown.csv", *asked)


def test_one_hot_controls_are_one_for_each_place_but_the_first(run, folder, shown):
    asked = ["--loss", "pl-partition", "-p", "l2=1e-6", "--control", "one-hot(place)", "--out", "h.placet", "--json"]
    effects = json.loads(run("train", "shown.csv", *asked))["controls"]
    assert list(effects) == [f"place={k}" for k in range(1, 6)]
    np.testing.assert_allclose(list(effects.values()), -0.6 * np.arange(1, 6), atol=0.5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["shown.csv", "--control", "shelf"], "control 'shelf': column 'shelf' is not there; the columns are ['qid', "),
        (["shown.csv", "--control", "qid"], "control 'qid' is the same for all rows of a query"),
        (["shown.csv", "--control", "place", "--ranker", "rankboost"], "--control place: --ranker rankboost fits no"),
        (
            ["shown.csv", "--control", "place", "--ranker", "auto"],
            "choose from linear, trees, neural, booster",
        ),
        (["shown.csv", "--control", "place", "--parts"], "--control place takes a table in memory; leave --parts out"),
        (["shown.csv", "--control", "place", "--valid", "valid.letor"], "give the validation rows as a table too"),
        (["train.letor", "--control", "3"], "placet convert train.letor train.csv; feature 7 is the column feature7"),
    ],
)
def test_controls_that_cannot_be_had_are_refused(run, folder, shown, words, said):
    assert said in run("train", *words, "--out", "no.placet", code=2)
    assert not (folder / "no.placet").exists()


def test_letor_text_made_a_table_has_controls(run, folder):
    run("convert", "train.letor", "train.csv")
    about = json.loads(run("train", "train.csv", "--control", "feature2", "--out", "t.placet", "--json"))
    assert list(about["controls"]) == ["feature2"]
    assert placet.load(folder / "t.placet").features_ == ("feature1", "feature3", "feature4")


def test_votes_are_no_rows_with_features(run, folder):
    (folder / "votes.csv").write_text("a,b,winner\nx,y,a\n")
    assert "votes.csv: these are votes" in run("train", "votes.csv", "--save", "x.placet", code=2)


def test_empty_cells_are_kept_for_trees_as_the_error_says(run, folder):
    (folder / "gaps.csv").write_text("qid,label,x,y\n1,1,,2\n1,0,3,\n1,2,5,1\n")
    words = ("train", "gaps.csv", "--ranker", "trees", "-p", "n_trees=2", "-p", "min_rows=1", "--save", "gaps.placet")
    said = "gaps.csv:2: x is empty (2 such lines); fill it in, keep empty cells for trees with --read missing=keep, or"
    assert said in run(*words, code=2)
    run(*words, "--read", "missing=keep")
    assert said in run("score", "gaps.placet", "gaps.csv", code=2)
    assert len(run("score", "gaps.placet", "gaps.csv", "--read", "missing=keep").split()) == 3
    assert "gaps.csv:2: x is empty" in run("compare", "gaps.placet", "gaps.placet", "gaps.csv", code=2)
    same = json.loads(run("compare", "gaps.placet", "gaps.placet", "gaps.csv", "--read", "missing=keep", "--json"))
    assert same[0]["mean"] == same[1]["mean"]


def test_validation_rows_that_say_nothing(run, folder):
    (folder / "empty.letor").write_text("")
    assert "empty.letor: " in run("train", "train.letor", "--valid", "empty.letor", "--save", "x.placet", code=2)
    (folder / "zeros.letor").write_text("0 qid:1 1:1 2:1 3:1 4:1\n0 qid:1 1:2 2:1 3:1 4:1\n")
    err = run("train", "train.letor", "--valid", "zeros.letor", "--save", "x.placet", code=2)
    assert "ndcg@10 is undefined in all 1 queries of the validation set" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranker", "oak"], "ranker 'oak' is unknown; choose from linear, "),
        (["--ranker", "autoo"], "ranker 'autoo' is unknown (did you mean 'auto'?)"),
        (["--loss", "plackett"], "loss 'plackett' is unknown"),
        (["-p", "depth=3"], "--param depth is unknown to LinearRanker"),
        (["-p", "l2"], "not of the form name=value"),
        (["--loss-param", "beta=1"], "has no parameter 'beta'"),
        (["--loss", "pmop-mh"], "LinearRanker needs a loss with no sampling"),
        (["--metric", "fame"], "metric 'fame' is unknown"),
        (["--ranker", "surrogate", "--loss", "ranknet"], "--loss ranknet: SurrogateSearch has none to choose"),
        (["--save", "nowhere/x.placet"], "no such folder"),
    ],
)
def test_parameters_that_are_wrong(run, words, said):
    assert said in run("train", "train.letor", "--valid", "valid.letor", "--save", "x.placet", *words, code=2)


INTERRUPTED = """
import os, signal, sys
from placet.cli import main
from placet.rank.ranker import Ranker

tell = Ranker._report_progress
def tell_and_interrupt(self, step, steps, value):
    tell(self, step, steps, value)
    if step == 3:
        os.kill(os.getpid(), signal.SIGINT)

Ranker._report_progress = tell_and_interrupt
main()
"""


@pytest.mark.parametrize("ranker", ["linear", "trees"])
def test_an_interrupt_saves_the_best_model_so_far(folder, ranker):
    words = ["train", "train.letor", "--valid", "valid.letor", "--ranker", ranker, "--save", f"{ranker}.placet"]
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"interrupted: {ranker}.placet holds the best model so far" in done.stderr
    summary = placet.load(folder / f"{ranker}.placet").fit_summary_
    assert summary["interrupted"]
    assert summary.get("n_iter", summary.get("rounds")) == 3


def test_progress_is_drawn_only_on_a_terminal(monkeypatch, capsys):
    from placet.cli.learning.train import showing_progress

    with showing_progress("ndcg@10") as silent:
        assert silent is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with showing_progress("ndcg@10") as draw:
        draw(3, 10, 0.1234)
        time.sleep(0.2)
        draw(4, 10, None)
    out, err = capsys.readouterr()
    assert out == ""
    assert "ndcg@10 0.1234" in err
