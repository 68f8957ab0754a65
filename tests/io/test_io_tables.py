"""Battles, ratings and ballots in tables: files and frames of every kind, bad rows by their line."""

import io
import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import placet.io as pio
from placet.data import Comparisons, DataError, Rankings
from placet.io import DataWarning
from placet.io.battles import WORDS

BATTLES = {"model_a": ["x", "y", "x"], "model_b": ["y", "z", "z"], "winner": ["a", "tie", "b"], "w": [1.0, 2.0, 0.5]}
RATINGS = {"user": ["u", "u", "v"], "item": ["a", "b", "a"], "rating": [3.0, 5.0, 1.0]}

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=5)


def frames(columns):
    """The same columns in every kind of frame."""
    arrow = pa.table(columns)
    yield columns
    yield pd.DataFrame(columns)
    yield pl.DataFrame(columns)
    yield pl.LazyFrame(columns)
    yield arrow
    yield duckdb.from_arrow(arrow)


def csv_of(columns):
    return io.BytesIO(pl.DataFrame(columns).write_csv().encode())


def test_battles_from_every_frame_and_file(tmp_path):
    expected = Comparisons.from_battles(list("xyx"), list("yzz"), ["a", "tie", "b"], weight=[1, 2, 0.5])
    for frame in frames(BATTLES):
        assert pio.read_battles(frame, weight="w") == expected
    assert pio.read_battles(csv_of(BATTLES), weight="w") == expected
    frame = pl.DataFrame(BATTLES)
    frame.write_parquet(tmp_path / "b.parquet")
    frame.write_ndjson(tmp_path / "b.jsonl")
    (tmp_path / "b.tsv").write_text(frame.write_csv(separator="\t"))
    for path in sorted(tmp_path.iterdir()):
        assert pio.read_battles(path, weight="w") == expected
        assert pio.read_battles(io.BytesIO(path.read_bytes()), weight="w", format=path.suffix[1:]) == expected


@pytest.mark.parametrize("outcome", WORDS)
def test_every_word_for_an_outcome(outcome):
    for word in WORDS[outcome]:
        for said in (word, word.upper(), f" {word} "):
            text = io.StringIO(json.dumps({"model_a": "x", "model_b": "q", "winner": said}))
            expected = Comparisons.from_battles(["x"], ["q"], [outcome])
            assert pio.read_battles(text, format="jsonl") == expected, said


def test_words_do_not_overlap():
    every = [word for words in WORDS.values() for word in words]
    assert len(set(every)) == len(every)


def test_the_winner_may_be_a_name_a_number_or_explained():
    for winner in ("zed", "a", 1, 1.0):
        assert pio.read_battles({"model_a": ["zed"], "model_b": ["q"], "winner": [winner]}).wins_i.tolist() == [1]
    assert pio.read_battles({"model_a": ["zed"], "model_b": ["q"], "winner": ["q"]}).wins_j.tolist() == [1]
    explained = pio.read_battles({"model_a": ["v"], "model_b": ["q"], "winner": ["Egal"]}, outcomes={"egal": "tie"})
    assert explained.ties.tolist() == [1]
    with pytest.raises(ValueError, match="'c'; choose from"):
        pio.read_battles(BATTLES, outcomes={"w": "c"})


@pytest.mark.parametrize("winner", [True, False, None, float("nan"), 2, -1, "", "lefft", "nan"])
def test_what_says_no_outcome_is_an_error(winner):
    with pytest.raises(DataError, match=r"<frame>:1: winner .*\(1 such row\)"):
        pio.read_battles({"model_a": ["v", "v"], "model_b": ["q", "q"], "winner": ["tie", winner]})


def test_scores_say_who_won():
    table = {"home": ["x", "y", "x"], "away": ["y", "z", "z"], "h": [2, 1, 0], "g": [1, 1, 3]}
    expected = Comparisons.from_battles(list("xyx"), list("yzz"), ["a", "tie", "b"], ordered=True)
    assert pio.read_battles(table, a="home", b="away", scores=("h", "g"), ordered=True) == expected
    with pytest.raises(DataError, match="g nan|g 'nan'|g .missing. is not a finite number"):
        pio.read_battles(table | {"g": [1, float("nan"), 3]}, a="home", b="away", scores=("h", "g"))


def test_bad_rows_of_csv_are_named_by_their_line():
    text = (
        'model_a,model_b,winner,w\nx,y,a,1\n\n"x\nx",y,lefft,1\ny,z,lefft,1\nz,z,tie,1\n,z,a,1\nx,z,a,-1\nx,z,a,inf\n'
    )
    with pytest.raises(
        DataError,
        match=r"<stream>:4: winner 'lefft' is not a, b or tie \(2 such lines\) and 4 bad lines of other kinds",
    ):
        pio.read_battles(io.StringIO(text), weight="w")
    said = r"left out 6 lines: 2 such as line 4 .*, 1 such as line 7 \('z' meets itself\), 1 such as line 8 \(model_a is missing\), 2 such as line 9"
    with pytest.warns(DataWarning, match=said):
        left = pio.read_battles(io.StringIO(text), weight="w", on_error="skip")
    assert left == Comparisons.from_battles(["x"], ["y"], ["a"])


def test_malformed_csv_is_named_and_can_be_left_out():
    text = "model_a,model_b,winner\nx,y,a\nx,y,a,9\nx\ny,z,b\n"
    with pytest.raises(DataError, match=r"<stream>:3: 4 fields where the header has 3 \(2 such lines\)"):
        pio.read_battles(io.StringIO(text))
    with pytest.warns(DataWarning, match="left out 2 lines"):
        assert len(pio.read_battles(io.StringIO(text), on_error="skip")) == 2
    with pytest.raises(DataError, match="two columns are named 'a'"):
        pio.read_battles(io.StringIO("a,a\n1,2\n"), a="a")
    with pytest.raises(
        DataError, match=r"column 'model_a' is not there; the columns are \['left', 'right'\]; name the columns"
    ):
        pio.read_battles(io.StringIO("left,right\n1,2\n"), a="model_a", winner="right")
    with pytest.raises(DataError, match=r"the columns \['left', 'right'\] are not those of battles; name the columns"):
        pio.read_battles(io.StringIO("left,right\n1,2\n"))
    with pytest.raises(DataError, match="no votes in it"):
        pio.read_battles(io.StringIO("model_a,model_b,winner\n"))


def test_bad_json_lines_are_named():
    text = '{"model_a": "x", "model_b": "y", "winner": "a"}\n\n{"model_a": NaN}\n[1]\nnot json\n' + "[" * 100_000
    with pytest.raises(DataError, match=r"<stream>:3: not JSON \(NaN is not a number\) \(3 such lines\) and 1 bad"):
        pio.read_battles(io.StringIO(text), format="jsonl")
    nested = '{"model_a": ["x"], "model_b": {"y": 1}, "winner": "a"}'
    assert len(pio.read_battles(io.StringIO(nested), format="jsonl")) == 1


def test_broken_parquet_is_an_error(tmp_path):
    pl.DataFrame(BATTLES).write_parquet(tmp_path / "b.parquet")
    whole = (tmp_path / "b.parquet").read_bytes()
    for broken in (whole[:-20], whole[: len(whole) // 2], b"PAR1", b"PAR1" + bytes(50) + b"PAR1"):
        with pytest.raises(DataError, match="not a whole Parquet file"):
            pio.read_battles(io.BytesIO(broken), format="parquet")
    with pytest.raises(ValueError, match="format 'xls' is unknown"):
        pio.read_battles(io.BytesIO(whole), format="xls")


@settings(max_examples=60)
@given(st.data())
def test_written_battles_read_back_equal(tmp_path_factory, data):
    items = data.draw(st.lists(names, min_size=2, max_size=5, unique_by=lambda n: n.strip().lower()))
    n = data.draw(st.integers(1, 8))
    pairs = [data.draw(st.permutations(items))[:2] for _ in range(n)]
    outcome = data.draw(st.lists(st.sampled_from(["a", "b", "tie"]), min_size=n, max_size=n))
    weight = data.draw(st.lists(st.floats(1e-3, 1e6), min_size=n, max_size=n))
    agent = data.draw(st.lists(st.sampled_from(["p", "q r"]), min_size=n, max_size=n))
    ordered = data.draw(st.booleans())
    a, b = zip(*pairs)
    battles = Comparisons.from_battles(a, b, outcome, weight=weight, agent=agent, items=items, ordered=ordered)
    path = tmp_path_factory.mktemp("b") / (
        "b" + data.draw(st.sampled_from([".csv", ".jsonl.gz", ".parquet", ".tsv.zst"]))
    )
    pio.write_battles(battles, path)
    back = pio.read_battles(path, weight="weight", agent="agent", items=items, ordered=ordered)
    assert back.agents is not None
    assert battles.agents is not None
    same = [battles.agents[k] for k in battles.agent] == [back.agents[k] for k in back.agent]
    order = np.lexsort((battles.j, battles.i, [back.agents.index(battles.agents[k]) for k in battles.agent]))
    assert same or len(back.agents) == 2
    for column in ("i", "j", "wins_i", "wins_j", "ties"):
        np.testing.assert_array_equal(getattr(battles, column)[order], getattr(back, column))


def test_ratings_from_every_frame_and_file(tmp_path):
    expected = Rankings.from_scores(RATINGS, ballot="user", item="item", score="rating")
    for frame in frames(RATINGS):
        assert pio.read_ratings(frame) == expected
    for text in (
        "u::a::3::9\nu::b::5::9\nv::a::1::9\n",
        "u\ta\t3\nu\tb\t5\nv\ta\t1\n",
        "userId,movieId,stars,t\nu,a,3,9\nu,b,5,9\nv,a,1,9\n",
    ):
        assert pio.read_ratings(io.StringIO(text)) == expected
    pl.DataFrame(RATINGS).write_parquet(tmp_path / "r.parquet")
    assert pio.read_ratings(tmp_path / "r.parquet") == expected
    assert pio.read_ratings(io.BytesIO((tmp_path / "r.parquet").read_bytes())) == expected
    for name in ("r.data", "r.csv", "r.parquet", "r.jsonl.xz"):
        pio.write_ratings(expected, tmp_path / name)
        assert pio.read_ratings(tmp_path / name, items=expected.items) == expected
    with pytest.raises(DataError, match="no scores"):
        pio.write_ratings(Rankings.from_orders([["a"]]), tmp_path / "x.csv")


def test_bad_ratings_are_named():
    text = "user,item,rating\nu,a,3\nu,a,4\nu,b,1_000\nv,,1\nw,a,nan\n"
    with pytest.raises(DataError, match=r"<stream>:3: user 'u' rates 'a' more than once \(1 such line\) and 3 bad"):
        pio.read_ratings(io.StringIO(text))
    with pytest.warns(DataWarning, match="left out 4 lines"):
        assert pio.read_ratings(io.StringIO(text), on_error="skip").score.tolist() == [3]
    with pytest.raises(DataError, match="no column for the rating"):
        pio.read_ratings(io.StringIO("user,item\nu,a\n"))


BALLOTS = Rankings.from_orders([["A", ("B", "C")], ["C", "A"]], items=["A", "B", "C"], weight=[2, 1])


@pytest.mark.parametrize(
    "text",
    [
        "ballot,item,rank,weight\n1,A,1,2\n1,B,2,2\n1,C,2.0,2\n2,C,-5,1\n2,A,7,1\n",
        "A,B,C,count\n1,2,2,2\n9,,1e0,1\n",
        "ballot,A,B,C,count\nx,1,2,2,2\ny,9,,1,1\n",
    ],
)
def test_ballots_long_and_wide(text):
    options = {"layout": "long" if "rank" in text else "ranks"}
    assert pio.read_ballots(io.StringIO(text), format="csv", **options) == BALLOTS
    frame = pl.read_csv(io.StringIO(text))
    assert pio.read_ballots(frame, **options) == BALLOTS
    assert pio.read_ballots(frame.to_pandas(), **options) == BALLOTS


def test_ballots_by_places():
    for head in ("1,2,3", "rank1,rank2,rank3", "Choice 1,Choice 2,Choice 3", "1st,2nd,3rd"):
        read = pio.read_ballots(io.StringIO(f"{head}\nA,B,\nC,,A\n"), format="csv")
        assert list(read) == [[("A",), ("B",)], [("C",), ("A",)]]
    last = pio.read_ballots(io.StringIO("1,2\nA,B\nC,\n"), format="csv", unlisted="last")
    assert list(last) == [[("A",), ("B",), ("C",)], [("C",), ("A", "B")]]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("1,2,3\n1,2,\n", {}, 'may be read in two ways; say layout="ranks"'),
        ("A,B,C\n1,2,2\n9,,1\n", {}, "column 'A' holds '9' beside ranks; correct it, or say ignore='A'"),
        ("A,B\n2,2\n1,2\n", {}, r"a row has no 1 \(its cells are '2', '2'\): ranks or scores"),
        ("A,B\nx,y\n", {}, "may be read in two ways, or in none"),
        ("A,B\nx,y\n", {"layout": "places"}, "column 'A' is not the number of a place"),
        ("1,2\nA,A\n", {}, "<stream>:2: item 'A' occurs more than once on one ballot"),
        ("A,B\n1,x\n2,1\n", {"layout": "ranks"}, "<stream>:2: rank 'x' of 'B' is not a finite number"),
        ("A,B,weight\n1,2,-1\n", {}, "<stream>:2: weight '-1' is not"),
        ("ballot,item,rank\n1,A,1\n1,A,2\n", {}, "<stream>:3: item 'A' occurs more than once on ballot '1'"),
        ("ballot,item,rank\n1,A,nan\n", {}, "<stream>:2: rank 'nan' is not a finite number"),
        ("ballot,item,rank\n1,,1\n", {}, "<stream>:2: item is missing"),
        ("ballot,item,rank,weight\n1,A,1,1\n1,B,2,3\n", {}, "<stream>:3: weight '3.0' differs"),
    ],
)
def test_bad_ballots_of_tables_are_named(text, options, said):
    with pytest.raises(DataError, match=said):
        pio.read_ballots(io.StringIO(text), format="csv", **options)


def test_written_tables_of_ballots_read_back_equal(tmp_path):
    ballots = Rankings.from_orders(
        [["A", ("B", "C")], ["C", "A"]],
        items=["A", "B", "C", "D"],
        weight=[2, 0.5],
        agent=["u", "v"],
        instance=["q", "q"],
    )
    for name in ("b.csv", "b.tsv.gz", "b.jsonl", "b.parquet"):
        pio.write_ballots(ballots, tmp_path / name)
        assert pio.read_ballots(tmp_path / name, items=ballots.items, agent="agent", instance="instance") == ballots
    with pytest.raises(DataError, match="agent; write a table"):
        pio.write_ballots(ballots, tmp_path / "b.txt")
    with pytest.raises(DataError, match="lists nothing"):
        pio.write_ballots(Rankings.from_orders([[], ["A"]]), tmp_path / "e.csv")
    with pytest.raises(DataError, match="different types"):
        pio.write_ballots(Rankings.from_orders([["A", 1]]), tmp_path / "e.csv")


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("short", [True, False])
def test_wide_and_narrow_tables_are_read_alike(wide, short, monkeypatch):
    """Blank lines, empty cells, quotes of spreadsheets and lines with too many fields, by both ways to filter rows and
    both ways to code columns.
    """
    monkeypatch.setattr(pio.tables.row_sources, "WIDE", 2 if wide else 10**6)
    monkeypatch.setattr(pio.tables.cells, "SHORT", 10**6 if short else 0)
    text = b"ballot,a,'=b,c,note\nx, 1,2,3,\n\n,,,,\ny,,1,2,so\nz,2 ,1,,\n"
    found = pio.read_ballots(io.BytesIO(text), format="csv", ballot="ballot", ignore="note")
    assert found == Rankings.from_orders([["a", "=b", "c"], ["=b", "c"], ["=b", "a"]], items=["a", "=b", "c"])
    with pytest.raises(DataError, match=r":3: 6 fields where the header has 5"):
        pio.read_ballots(io.BytesIO(b"ballot,a,b,c,note\nx,1,2,3,\ny,1,2,3,so,more\n"), format="csv", layout="ranks")
