"""The layout that ``looks_like`` finds is the one that the reader uses: it is found once."""

from dataclasses import replace

import numpy as np
import pytest

import placet
from placet.io import FORMATS, ballots, battles, ratings
from placet.io.battles import BattleColumns
from placet.io.features import FeatureColumns
from placet.io.formats import roles_in_table
from placet.io.score_tables import ScoreColumns
from placet.io.sparse.letor import QueriesBy
from placet.io.tables.tables import open_head
from placet.io.text import TEXT

VOTES = "model_a,model_b,winner,agent,n\nx,y,model_a,u,2\ny,z,tie,v,1\n"
TABLES = {
    "battles": (VOTES, {}, BattleColumns("model_a", "model_b", "winner", agent="agent")),
    "ratings": ("user,film,stars\n1,x,5\n1,y,3\n", {}, {"user": "user", "item": "film", "rating": "stars"}),
    "scores": ("model,t,u\nx,1,2\ny,2,1\n", {}, ScoreColumns("model", tasks=("t", "u"))),
    "features": ("qid,label,f\n1,1,2\n1,0,1\n", {}, FeatureColumns("qid", "label", features=("f",))),
    "preferences": ("list,over,under\n1,x,y\n", {}, {"ballot": "list", "better": "over", "worse": "under"}),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_columns_by_role_as_its_layout(tmp_path, name):
    text, options, layout = TABLES[name]
    (tmp_path / "x.csv").write_text(text)
    with open_head([tmp_path / "x.csv"], "raise", options) as head:
        head.open_table()
        assert FORMATS[name].looks_like(head) == layout
    assert placet.read(tmp_path / "x.csv").notes[0].startswith("read as")


def test_the_options_of_the_reader_are_used_to_find_the_layout(tmp_path):
    (tmp_path / "x.csv").write_text(VOTES)
    with open_head([tmp_path / "x.csv"], "raise", {"weight": "n", "ordered": True}) as head:
        head.open_table()
        found = battles.looks_like_battles(head)
    assert (found.agent, found.weight) == ("agent", "n")
    data = placet.read(tmp_path / "x.csv", weight="n")
    assert data == placet.read_battles(tmp_path / "x.csv", weight="n")
    assert data.wins_i.sum() == 2
    (tmp_path / "r.csv").write_text("user,dish,rating\n1,x,5\n1,y,3\n")
    assert placet.read(tmp_path / "r.csv", item="dish").items == ("x", "y")


def roles(name, columns, named=False, **options):
    with open_head([columns], "raise", options) as head:
        head.open_table()
        return roles_in_table(replace(head, named=named), name)


def test_a_layout_says_the_role_of_each_column():
    votes = {"a": ["x"], "b": ["y"], "a_wins": [1], "b_wins": [0], "agent": ["u"], "n": [2]}
    found = {"a": "a", "b": "b", "a_wins": "winner", "b_wins": "winner", "agent": "agent", "n": "weight"}
    assert roles("battles", votes, weight="n") == found
    assert roles("battles", {"better": ["x"], "worse": ["y"]}) == {"better": "winner", "worse": "loser"}
    goals = {"home": ["x"], "away": ["y"], "home_goals": [1], "away_goals": [0]}
    assert list(roles("battles", goals).values()) == ["a", "b", "scores", "scores"]
    assert roles("ratings", {"user": [1], "film": ["x"], "stars": [3]}) == {
        "user": "user",
        "film": "item",
        "stars": "rating",
    }
    assert roles("ratings", votes) == {}
    rows = {"date": [1, 2], "qid": [1, 1], "label": [0, 1], "f": [1, 2], "w": [1, 1]}
    assert roles("features", rows, weight="w") == {"qid": "qid", "label": "label", "w": "weight", "f": "features"}
    long = {"voter": [1, 1], "item": ["x", "y"], "rank": [1, 2], "count": [3, 3]}
    assert roles("ballots", long) == {"voter": "ballot", "item": "item", "rank": "rank", "count": "weight"}
    wide = {"tea": [1, 2], "milk": [2, 1], "shown_tea": [0, 1], "shown_milk": [1, 0]}
    assert list(roles("ballots", wide, control="shown").values()) == ["control", "control", "an item", "an item"]
    assert roles("ballots", {"1": ["x"], "2": ["y"]}) == {"1": "a place", "2": "a place"}


def test_a_named_format_takes_all_columns_that_its_reader_takes():
    scores = {"date": [1, 2], "model": ["x", "y"], "math": [1, 2], "law": [2, 3]}
    assert roles("scores", scores) == {}  # the model is not first: perhaps something else
    assert roles("scores", scores, named=True) == {"model": "item", "math": "tasks", "law": "tasks"}
    assert placet.read(scores, "scores").tasks == ("math", "law")
    rows = {"qid": [1, 1], "label": [0, 1]}
    assert roles("features", rows) == {}
    assert roles("features", rows, named=True) == {"qid": "qid", "label": "label"}


@pytest.mark.parametrize(
    ("columns", "tasks"),
    [
        ({"item": ["x", "y"], "t": [1, 2], "u": [2, 1]}, ("t", "u")),
        ({"item": ["x", "y"], "task": ["t", "t"], "score": [1, 2]}, ("t",)),
        ({"model": ["x", "y"], "mmlu": [0.3, 0.5]}, ("mmlu",)),
        ({"model": ["x"], "score": [0.3]}, ("score",)),
    ],
)
def test_small_tables_of_scores(columns, tasks):
    data = placet.read(columns)
    assert isinstance(data, placet.Scores)
    assert data.tasks == tasks


def test_scores_of_an_item_that_somebody_gave_are_ratings():
    rated = {"item": ["x", "y"], "user": ["u", "u"], "score": [1, 2], "test": [1, 2]}
    assert isinstance(placet.read(rated), placet.Rankings)
    with pytest.raises(placet.DataError, match="look like ratings, but none says who rated"):
        placet.read({"item": ["x", "y"], "score": [1, 2]})
    with pytest.raises(placet.DataError, match="which format"):
        placet.read({"model": ["x", "y"], "made": ["US", "EU"], "size": [1, 2]})


def test_wide_ballots_and_text():
    table = {"tea": [1, 2], "milk": [2, 1], "count": [3, 1], "shown_tea": [0, 1], "shown_milk": [1, 0]}
    with open_head([table], "raise", {"control": "shown"}) as head:
        head.open_table()
        found = ballots.looks_like_ballots(head)
    assert (found.layout, found.main, found.special) == ("ranks", ["tea", "milk"], {"weight": "count"})
    assert found.control == ["shown_tea", "shown_milk"]
    assert placet.read(table, control="shown").controls == ("shown",)


def test_text_without_columns_and_text_with_sizes_beside_it(tmp_path):
    (tmp_path / "x.txt").write_text("2: a > b\n")
    with open_head([tmp_path / "x.txt"], "raise") as head:
        assert ballots.looks_like_ballots(head) == TEXT
    for name, qid in (("a", "1"), ("b", "")):
        (tmp_path / f"{name}.train").write_text("".join(f"{k % 2} {'qid:1 ' if qid else ''}1:{k}\n" for k in range(4)))
    (tmp_path / "b.train.query").write_text("1\n3\n")
    for name, group in (("a", None), ("b", str(tmp_path / "b.train.query"))):
        with open_head([tmp_path / f"{name}.train"], "raise") as head:
            assert FORMATS["letor"].looks_like(head) == QueriesBy(group)
    np.testing.assert_array_equal(placet.read(tmp_path / "b.train").offsets, [0, 1, 4])


def test_each_file_has_its_own_sizes_beside_it(tmp_path):
    for name, sizes in (("a", "1\n3\n"), ("b", "2\n2\n")):
        (tmp_path / f"{name}.svm").write_text("".join(f"{k % 2} 1:{k}\n" for k in range(4)))
        (tmp_path / f"{name}.svm.query").write_text(sizes)
    parts = placet.scan([tmp_path / "a.svm"])
    assert parts.n_rows == 4
    for name, offsets in (("a", [0, 1, 4]), ("b", [0, 2, 4])):
        np.testing.assert_array_equal(placet.read(tmp_path / f"{name}.svm").offsets, offsets)


@pytest.mark.parametrize(
    ("module", "finder", "name", "text"),
    [
        (battles, "find_layout", "votes.csv", VOTES),
        (ballots, "find_columns", "ballots.csv", "tea,milk\n1,2\n2,1\n"),
        (ratings, "find_roles", "ratings.csv", "user,item,rating\n1,x,5\n1,y,3\n"),
    ],
)
def test_the_columns_are_found_once(tmp_path, monkeypatch, module, finder, name, text):
    find, times = getattr(module, finder), []

    def counted(*args, **options):
        found = find(*args, **options)
        times.append(found)
        return found

    monkeypatch.setattr(module, finder, counted)
    (tmp_path / name).write_text(text)
    placet.read(tmp_path / name)
    assert len(times) == 1


def test_values_of_options_are_checked_against_the_signature_of_the_reader(tmp_path):
    (tmp_path / "x.csv").write_text(VOTES)
    with pytest.raises(
        ValueError, match=r"parameter ordered of the reader of 'battles' must be true or false, not 'x'"
    ):
        placet.read(tmp_path / "x.csv", ordered="x")
    with pytest.raises(ValueError, match=r"layout 'tall' is unknown; choose from text, long"):
        placet.read(tmp_path / "x.csv", layout="tall")
    with pytest.raises(ValueError, match="on_error 'x' is unknown"):
        placet.read(tmp_path / "x.csv", on_error="x")
