"""Every real file reads, and its counts are those of the folder's README and of the files' own headers.

The folder is the one that the variable PLACET_DATA names, else ../shared/data.
"""

import csv
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from preflibtools.instances import OrdinalInstance

import placet.io as pio
from placet.data import Comparisons, Queries, Rankings
from placet.io.tables.tables import read_table

DATA = Path(os.environ.get("PLACET_DATA", Path(__file__).parents[2] / "shared" / "data"))
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no data at {DATA}; set PLACET_DATA to the folder that holds them"
)


def parts(folder):
    return [DATA / folder / f"S{k}.txt.xz" for k in range(1, 6)]


@pytest.mark.parametrize(
    ("folder", "queries", "rows", "features"), [("letor4/MQ2008", 784, 15_211, 46), ("letor3/OHSUMED", 106, 16_140, 45)]
)
def test_learning_to_rank(folder, queries, rows, features):
    read = [pio.read(path) for path in parts(folder)]
    assert all(isinstance(q, Queries) for q in read)
    about = [q.describe() for q in read]
    assert sum(a["queries"] for a in about) == queries
    assert sum(a["rows"] for a in about) == rows
    assert {a["features"] for a in about} == {features}
    assert {grade for a in about for grade in a["grades"]} == {0, 1, 2}
    for q in read:
        assert isinstance(q.X, np.ndarray)
        assert q.X.min() >= 0
        assert q.X.max() <= 1  # normalised by query


@pytest.mark.parametrize(
    ("folder", "queries", "documents", "engines"),
    [("letor4/MQ2008-agg", 784, 15_211, 25), ("letor4/MQ2007-agg", 1_692, 69_623, 21)],
)
def test_rank_aggregation(folder, queries, documents, engines):
    read = [pio.read(path) for path in parts(folder)]
    about = [agg.describe() for agg in read]
    assert sum(a["queries"] for a in about) == queries
    assert sum(a["documents"] for a in about) == documents
    assert {a["engines"] for a in about} == {engines}
    for agg in read:
        listed = ~np.isnan(agg.rank)
        assert agg.rankings.item.size == listed.sum()
        assert agg.rank[listed].min() >= 1
        assert len(agg.rankings.instances) == len(agg)


def test_the_same_documents_are_judged_alike_in_both_forms_of_mq2008():
    for path, agg_path in zip(parts("letor4/MQ2008"), parts("letor4/MQ2008-agg")):
        queries, agg = pio.read(path), pio.read(agg_path)
        assert queries.qid == agg.qid
        np.testing.assert_array_equal(queries.grade, agg.grade)


def test_lightgbm_example():
    for part, queries in (("train", 201), ("test", 50)):
        q = pio.read(DATA / f"lightgbm_rank/rank.{part}.xz")  # takes the sizes from rank.*.query.xz beside it
        assert q.describe()["queries"] == queries
        assert set(q.describe()["grades"]) == {0, 1, 2, 3, 4}
        np.testing.assert_array_equal(np.diff(q.offsets), pio.read_sizes(DATA / f"lightgbm_rank/rank.{part}.query.xz"))


def test_extreme_classification():
    for part, points in (("train", 12_920), ("test", 3_185)):
        about = pio.read(DATA / f"xmc/delicious/{part}.txt.xz").describe()
        assert (about["points"], about["features"], about["labels"]) == (points, 500, 983)


def test_votes_on_language_models():
    path = DATA / "votes/llmfao-crowd.csv.xz"
    votes = pio.read_battles(path, a="left", b="right", agent="worker")
    about = votes.describe()
    assert (about["votes"], about["items"]) == (8_931, 59)
    assert about["ties"] > 0
    guessed = pio.read(path)
    assert isinstance(guessed, Comparisons)
    assert guessed == votes.pooled()


def test_football():
    path = DATA / "votes/international-football.csv.xz"
    games = pio.read_battles(path, a="home_team", b="away_team", scores=("home_score", "away_score"), ordered=True)
    assert games.describe()["votes"] == 49_520
    assert games.describe()["ties"] > 10_000
    assert pio.read(path) == games.pooled()


def test_nascar():
    races = pio.read_ballots(
        DATA / "votes/nascar2002.txt", layout="long", ballot="Race", item="DriverID", rank="Place", separator=" "
    )
    about = races.describe()
    assert (about["ballots"], about["items"], about["rows"]) == (36, 83, 1_543)
    assert about["groups with wins both ways"] == 1


def preflib_files():
    return sorted(path for path in DATA.glob("preflib/*/*") if path.suffix in (".soc", ".soi", ".toc", ".toi"))


def test_preflib_agrees_with_its_own_metadata():
    said = {}
    for path in DATA.glob("preflib/*/metadata.csv"):
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter=";"):
                said[row["file"]] = (int(row["numAlt"]), int(row["numVot"]), int(row["numUniq"]))
    assert Counter(path.suffix for path in preflib_files()) == {".soc": 185, ".soi": 245, ".toc": 38}
    for path in preflib_files():
        rankings = pio.read(path)
        about = rankings.describe()
        assert isinstance(rankings, Rankings)
        assert (about["items"], about["weight"], about["ballots"]) == said[path.name], path


def test_preflib_agrees_with_preflibtools():
    for path in preflib_files()[::9]:
        rankings, peer = pio.read_preflib(path), OrdinalInstance(str(path))
        orders = [tuple(tuple(rankings.index[name] + 1 for name in tier) for tier in ballot) for ballot in rankings]
        assert orders == [tuple(tuple(sorted(tier)) for tier in order) for order in peer.orders], path
        assert rankings.weight.tolist() == [peer.multiplicity[order] for order in peer.orders], path


def test_unlisted_debian_candidates_are_the_last_tier_of_preflibs_own_completion():
    """PrefLib's .toc is its .soi with the unranked alternatives at the bottom."""
    for path in sorted(DATA.glob("preflib/00002-debian/*.soi")):
        last = pio.read_preflib(path, unlisted="last").collapsed()
        complete = pio.read_preflib(path.with_suffix(".toc")).collapsed()
        count = {repr(ballot): weight for ballot, weight in zip(last, last.weight)}
        assert count == {repr(ballot): weight for ballot, weight in zip(complete, complete.weight)}


@pytest.mark.parametrize(("year", "topics", "lines"), [(2010, 48, 9_006), (2012, 50, 62_394)])
def test_diversity_judgments(year, topics, lines):
    about = pio.read(DATA / f"trec_web/{year}.qrels.diversity.txt.xz").describe()
    assert (about["topics"], about["judgments"]) == (topics, lines)
    assert about["subtopics of topics"] > topics


def test_sound_sources_and_floats_are_tables():
    assert len(read_table(DATA / "rafos/sound_sources.csv", "raise").rows()) == 53
    assert len(read_table(DATA / "rafos/dimes_floats.csv", "raise").rows()) == 140


@pytest.mark.parametrize(
    ("name", "votes", "models"),
    [
        ("arena-human.json", 26_919, 20),
        ("arena-gpt4.json", 26_919, 20),
        ("llmfao-gpt4-comparisons.csv", 3_236, 70),
        ("llmfao-gpt4-crowd-comparisons.csv", 2_139, 59),
    ],
)
def test_votes_of_people_and_of_judges(name, votes, models):
    read = pio.read(DATA / "votes" / f"{name}.xz")
    assert isinstance(read, Comparisons)
    assert (read.n_items, (read.wins_i + read.wins_j + read.ties).sum()) == (models, votes)


def test_a_table_of_benchmarks_with_most_cells_missing():
    columns = {"item": "model", "task": "benchmark", "score": "performance"}
    about = pio.read(DATA / "scores/epoch-benchmarks.csv.xz", format="scores", **columns).describe()
    assert (about["items"], about["tasks"], about["scores"]) == (179, 38, 1_324)


@pytest.mark.parametrize(("name", "choices"), [("fishing", 1_182), ("electricity", 4_308)])
def test_choices_are_tables_of_four_alternatives_with_one_chosen(name, choices):
    rows = read_table(DATA / f"choice/{name}.csv.xz", "raise").rows()
    assert len(rows) == 4 * choices
    assert Counter(rows.column("choice"))["1"] == choices


def test_no_file_is_left_unread():
    folders = {path.relative_to(DATA).parts[0] for path in DATA.rglob("*") if path.is_file()} - {"README.md"}
    assert folders == {
        *("choice", "letor3", "letor4", "lightgbm_rank", "preflib", "rafos", "scores", "trec_web", "votes", "xmc"),
    }
    others = {path.name for path in DATA.glob("preflib/*/*")} - {path.name for path in preflib_files()}
    assert others == {"info.txt", "metadata.csv"}
