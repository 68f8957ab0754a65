"""Tables in the layouts of real exports, read at the first try, or refused with the words that help; and every door."""

import io
import os
import shlex
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import placet
import placet.io as pio
from placet import Comparisons, DataError, Queries, Rankings

# name: (text, what it is read as, the note)
VOTES = {
    "arena export": (
        "question_id,model_a,model_b,winner,judge,turn,tstamp\n1,x,y,model_a,u,1,1.7e9\n2,y,z,tie (bothbad),v,1,1.7e9\n",
        [("x", "y", "a"), ("y", "z", "tie")],
        "read as votes: model_a, model_b, winner; ignored: question_id, judge, turn, tstamp",
    ),
    "Kaggle one-hot": (
        "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
        '7,x,y,"hi, there",p,q,1,0,0\n8,y,z,b,c,d,0,0,1\n9,z,x,b,c,d,0,1,0\n',
        [("x", "y", "a"), ("y", "z", "tie"), ("z", "x", "b")],
        "read as votes: model_a, model_b, winner_model_a, winner_model_b, winner_tie; "
        "ignored: id, prompt, response_a, response_b",
    ),
    "chess results": (
        "Event,Date,White,Black,Result,ECO\nOpen,2024.01.01,Ann,Bob,1-0,C50\nOpen,2024.01.02,Bob,Cid,1/2-1/2,B01\n"
        "Open,2024.01.03,Cid,Ann,0-1,A00\n",
        [("Ann", "Bob", "a"), ("Bob", "Cid", "tie"), ("Cid", "Ann", "b")],
        "read as votes: White, Black, Result; ignored: Event, Date, ECO",
    ),
    "tennis": (
        "tourney_id,winner_name,loser_name,score,date\n1,Ann,Bob,6-1 6-2,20240101\n1,Cid,Bob,6-1 6-2,20240102\n",
        [("Ann", "Bob", "a"), ("Cid", "Bob", "a")],
        "read as votes: winner_name, loser_name; ignored: tourney_id, score, date",
    ),
    "winner and loser": (
        "winner;loser\nx;y\nz;y\n",
        [("x", "y", "a"), ("z", "y", "a")],
        "read as votes: winner, loser",
    ),
    "player scores": (
        "player1,player2,score1,score2\nx,y,3,1\ny,z,2,2\nx,z,0,4\n",
        [("x", "y", "a"), ("y", "z", "tie"), ("x", "z", "b")],
        "read as votes: player1, player2, score1, score2",
    ),
    "left and right": (
        "image_id\tleft\tright\twinner\n1\tp.png\tq.png\tleft\n2\tq.png\tr.png\tright\n3\tp.png\tr.png\tp.png\n",
        [("p.png", "q.png", "a"), ("q.png", "r.png", "b"), ("p.png", "r.png", "a")],
        "read as votes: left, right, winner; ignored: image_id",
    ),
    "football by letters": (
        "Div,Date,HomeTeam,AwayTeam,FTR\nE0,1,Kent,York,H\nE0,2,York,Hull,A\nE0,3,Hull,Kent,D\n",
        [("Kent", "York", "a"), ("York", "Hull", "b"), ("Hull", "Kent", "tie")],
        "read as votes: HomeTeam, AwayTeam, FTR; ignored: Div, Date",
    ),
    "football by goals": (
        "Date,Home Team,Away Team,Home Goals,Away Goals\n1,Kent,York,2,1\n2,York,Hull,0,0\n",
        [("Kent", "York", "a"), ("York", "Hull", "tie")],
        "read as votes: Home Team, Away Team, Home Goals, Away Goals; ignored: Date",
    ),
    "winner 1 or 2": (
        "team1|team2|winner\nx|y|2\ny|z|1\n",
        [("x", "y", "b"), ("y", "z", "a")],
        "read as votes: team1, team2, winner",
    ),
    "counts of pairs": (
        "\ufeffoption_a,option_b,preference,count\nx,y,option_a,3\nx,y,option_b,2\n",
        [("x", "y", "a")] * 3 + [("x", "y", "b")] * 2,
        "read as votes: option_a, option_b, preference, count",
    ),
    "JSON array": (
        '[{"model_a": "x", "model_b": "y", "winner": "model_b"},\n {"model_a": "y", "model_b": "z", "winner": "tie"}]',
        [("x", "y", "b"), ("y", "z", "tie")],
        "read as votes: model_a, model_b, winner",
    ),
    "JSON lines": (
        '{"model_a": "x", "model_b": "y", "winner": "model_b"}\n{"model_a": "y", "model_b": "z", "winner": "tie"}\n',
        [("x", "y", "b"), ("y", "z", "tie")],
        "read as votes: model_a, model_b, winner",
    ),
}
BALLOTS = {
    "Google Forms, items in brackets": (
        "Timestamp,Rank the fruit [Apple],Rank the fruit [Fig],Rank the fruit [Kiwi]\n"
        "2024/01/01 9:00:00 AM GMT,1st choice,2nd choice,3rd choice\n2024/01/01 9:05:00 AM GMT,2nd choice,1st choice,\n",
        [[("Apple",), ("Fig",), ("Kiwi",)], [("Fig",), ("Apple",)]],
    ),
    "Google Forms, places in brackets": (
        "Timestamp,Vote [First choice],Vote [Second choice],Vote [Third choice]\n1/1/2024 9:00,Apple,Fig,\n1/1/2024,Fig,Kiwi,Apple\n",
        [[("Apple",), ("Fig",)], [("Fig",), ("Kiwi",), ("Apple",)]],
    ),
    "choices in columns": (
        "Voter ID;First choice;Second choice;Third choice\n17;Ann;Bob;\n18;Bob;;Ann\n",
        [[("Ann",), ("Bob",)], [("Bob",), ("Ann",)]],
    ),
    "cast vote record": (
        "precinct,ballot_id,rank1,rank2,rank3\nA,1,Ann,Bob,skipped\nA,2,overvote,Bob,Ann\n",
        [[("Ann",), ("Bob",)], [("Bob",), ("Ann",)]],
    ),
    "survey with an age": (
        "id,age,timestamp,Tea,Coffee,Water\n1,34,2024-01-01,1,2,3\n2,27,2024-01-02,3,1,2\n3,1,2024-01-03,2,,1\n",
        [[("Tea",), ("Coffee",), ("Water",)], [("Coffee",), ("Water",), ("Tea",)], [("Water",), ("Tea",)]],
    ),
    "orders in text": (
        "id,ballot\n1,Ann > Bob = Cid\n2,Bob\n3,Cid > Ann\n",
        [[("Ann",), ("Bob", "Cid")], [("Bob",)], [("Cid",), ("Ann",)]],
    ),
    "orders with counts": ("count,order\n3,Ann>Bob\n2,Bob>Ann\n", [[("Ann",), ("Bob",)], [("Bob",), ("Ann",)]]),
    "Microsoft Forms": (
        "ID,Start time,Completion time,Email,Name,Rank these drinks\n"
        "1,1/1/24 9:00,1/1/24 9:01,anonymous,,Tea;Coffee;Water;\n2,1/1/24 9:02,1/1/24 9:03,anonymous,,Water;Tea;Coffee;\n",
        [[("Tea",), ("Coffee",), ("Water",)], [("Water",), ("Tea",), ("Coffee",)]],
    ),
    "long": (
        "voter,candidate,rank,date\nu,Ann,1,9\nu,Bob,2,9\nv,Bob,1,9\n",
        [[("Ann",), ("Bob",)], [("Bob",)]],
    ),
    "weighted ranks": ("Ann|Bob|weight\n1|2|2.5\n2|1|1\n", [[("Ann",), ("Bob",)], [("Bob",), ("Ann",)]]),
}
RATINGS = {
    "MovieLens": "userId,movieId,rating,timestamp\nu,a,3,9\nu,b,5,9\nv,a,1,9\n",
    "reviews": "reviewer,title,stars\nu,a,3\nu,b,5\nv,a,1\n",
    "marketplace": "customer_id\tproduct_id\tstar_rating\treview_body\nu\ta\t3\tgood, \nu\tb\t5\tgreat\nv\ta\t1\tbad\n",
    "u.data": "u\ta\t3\t881250949\nu\tb\t5\t891717742\nv\ta\t1\t891717742\n",
}
FEATURES = {
    "numbered": "qid,label,f0,f1\n7,2,0.5,1\n7,0,0.25,3\n8,1,1,0\n",
    "with a document": "query_id;doc_id;relevance;f0;f1;title\n7;d1;2;0.5;1;x y\n7;d2;0;0.25;3;z\n8;d3;1;1;0;w\n",
}


def as_file(text, name="export.csv"):
    stream = io.BytesIO(text.encode())
    stream.name = name
    return stream


@pytest.mark.parametrize("suffix", [".csv", ".txt", ""])
@pytest.mark.parametrize("layout", VOTES)
def test_votes(layout, suffix):
    text, votes, note = VOTES[layout]
    if text[0] in "[{":
        suffix = suffix and {"[": ".json", "{": ".jsonl"}[text[0]]
    found = placet.read(as_file(text, f"export{suffix}"))
    a, b, outcome = zip(*votes)
    assert found == Comparisons.from_battles(a, b, outcome, items=found.items)
    assert found.notes[0] == note
    assert all("may say who voted" in more for more in found.notes[1:])


@pytest.mark.parametrize("layout", BALLOTS)
def test_ballots(layout):
    text, ballots = BALLOTS[layout]
    for name in ("export.csv", "export"):
        found = placet.read(as_file(text, name))
        assert isinstance(found, Rankings)
        assert list(found) == ballots
        assert found.notes[0].startswith("read as ballots (")
    ignored = found.notes[0].partition("ignored: ")[2]
    for column in ("age", "timestamp", "Timestamp", "precinct", "Email", "Voter ID", "date"):
        assert (column in text.split("\n")[0]) == (column in ignored)


def test_counts_weigh_ballots():
    assert placet.read(as_file(BALLOTS["orders with counts"][0])).weight.tolist() == [3, 2]
    assert placet.read(as_file(BALLOTS["weighted ranks"][0])).weight.tolist() == [2.5, 1]


@pytest.mark.parametrize("layout", RATINGS)
def test_ratings(layout):
    expected = Rankings.from_scores(
        {"u": ["u", "u", "v"], "i": ["a", "b", "a"], "r": [3, 5, 1]}, ballot="u", item="i", score="r"
    )
    if layout != "u.data":
        assert placet.read(as_file(RATINGS[layout])) == expected
    name = "u.data" if layout == "u.data" else "export.txt"
    assert placet.read(as_file(RATINGS[layout], name)) == expected
    assert placet.read(as_file(RATINGS[layout], name)).notes[0].startswith("read as ratings: ")


@pytest.mark.parametrize("layout", FEATURES)
def test_features(layout, tmp_path):
    expected = Queries.from_arrays([[0.5, 1], [0.25, 3], [1, 0]], [2, 0, 1], [7, 7, 8])
    path = tmp_path / "rows.csv"
    path.write_text(FEATURES[layout])
    found = placet.read(path)
    np.testing.assert_array_equal(found.X, expected.X)
    assert (found.qid, found.grade.tolist(), found.features) == ((7, 8), [2, 0, 1], ("f0", "f1"))
    pio.write(found, tmp_path / "rows.parquet")
    assert placet.read(tmp_path / "rows.parquet") == found
    frame = pl.read_parquet(tmp_path / "rows.parquet")
    assert Queries.from_frame(frame) == found
    assert Queries.from_frame(frame.to_pandas()) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Pizza,Sushi,Tacos\n5,3,4\n4,5,5\n",
            'the columns .* do not tell which format this is; say format="battles".*layout="ranks"',
        ),
        ("Pizza,Sushi,Tacos\n3,3,2\n2,3,3\n", r"a row has no 1 .*ranks or scores; say layout=\"ranks\""),
        ("Ann,Bob,Cid\n1,2,3\n1,2,7\n", "column 'Cid' holds '7' beside ranks; correct it, or say ignore='Cid'"),
        ("Ann,Bob,Cid\n1,2,n/a\n2,1,3\n", "column 'Cid' holds 'n/a' beside ranks"),
        ("model_a,model_b,left,right,winner\nx,y,p,q,left\n", "the two sides may be 'model_a', 'model_b' or 'left'"),
        (
            "player1,player2,winner\n1,2,1\n2,1,1\n",
            "winner '1' may be a word for a side or the name.*outcomes=\"words\"",
        ),
        ("a,b\n1,x\n", "do not tell which format this is"),
        ("qid,label\n1,2\n", "do not tell which format this is"),
        ("winner,loser\nx,x\ny,x\n", r"export.csv:2: 'x' meets itself \(1 such line\).*on_error=\"skip\""),
        (
            "user,item,rating,qid,label,f1\nu,a,1,1,1,1\n",
            'may be read in 2 ways; say format="ratings" or format="features"',
        ),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(text, said):
    with pytest.raises(DataError, match=said):
        placet.read(as_file(text))


PASTED = {
    "sides.csv": (
        "model_a,model_b,left,right,winner\nx,y,p,q,left\n",
        ["--a model_a --b model_b", "--a left --b right"],
    ),
    "words.csv": ("player1,player2,winner\n1,2,1\n2,1,1\n", ["--read outcomes=words", "--read outcomes=names"]),
    "ranks.csv": ("Pizza,Sushi,Tacos\n3,3,2\n2,3,3\n", ["--read layout=ranks", "--read layout=scores"]),
    "formats.csv": (
        "user,item,rating,qid,label,f1\nu,a,1,1,1,1\nu,b,2,1,0,3\n",
        ["--format ratings", "--format features"],
    ),
    "two places.csv": (
        "choice1,choice2,winner\ntea,milk,tea\nmilk,water,water\n",
        ["--format battles --a choice1 --b choice2 --winner winner", "--read layout=places"],
    ),
    "places.csv": (
        "choice1,choice2,choice3,winner\ntea,milk,water,milk\nmilk,water,tea,tea\n",
        ["--format best-worst --read shown=choice1,choice2,choice3 --read best=winner", "--read layout=places"],
    ),
    "positions.csv": (
        "item1,item2,item3,best,worst\n1,2,3,2,3\n2,3,1,1,2\n",
        ["--format best-worst --read answers=names", "--format best-worst --read answers=positions"],
    ),
    "orders.csv": ("mine,yours\nA > B,B > A\nB > A,A > B\n", ["--ignore yours", "--ignore mine"]),
}


@pytest.mark.parametrize("name", PASTED)
def test_both_commands_can_be_pasted(name, placet_command, tmp_path):
    text, options = PASTED[name]
    path = tmp_path / name
    path.write_text(text)
    typed = shlex.join(["placet", "describe", str(path)])
    ways = [line.strip() for line in placet_command("describe", path, code=2)[1].splitlines()[1:]]
    assert ways == [f"{typed} {way}" for way in options]
    found = [placet_command(*shlex.split(way)[1:]) for way in ways]
    assert found[0] != found[1]


def test_the_one_chosen_of_several_shown_is_above_the_others():
    text = "choice1,choice2,choice3,winner\ntea,milk,water,milk\nmilk,water,tea,tea\n"
    chosen = placet.read(as_file(text), "best-worst", shown="choice1,choice2,choice3", best="winner")
    assert [[set(tier) for tier in ballot] for ballot in chosen] == [
        [{"milk"}, {"tea", "water"}],
        [{"tea"}, {"milk", "water"}],
    ]


def test_options_choose():
    ratings = "Pizza,Sushi,Tacos\n3,3,2\n2,3,3\n"
    ranks = placet.read(as_file(ratings), layout="ranks")
    assert list(ranks) == [[("Tacos",), ("Pizza", "Sushi")], [("Pizza",), ("Sushi", "Tacos")]]
    scores = placet.read(as_file(ratings), layout="scores")
    assert list(scores) == [[("Pizza", "Sushi"), ("Tacos",)], [("Sushi", "Tacos"), ("Pizza",)]]
    assert scores.score.tolist() == [3, 3, 2, 3, 3, 2]
    ids = "player1,player2,winner\n1,2,1\n2,1,1\n"
    assert placet.read(as_file(ids), outcomes="names").wins_i.tolist() == [2]
    assert placet.read(as_file(ids), outcomes="words").wins_i.tolist() == [1]
    clear = "player1,player2,winner\n1,2,1\n2,1,1\n3,1,3\n"  # 3 is the name of a player, and no word
    assert placet.read(as_file(clear)) == placet.read(as_file(clear), outcomes="names")
    both = "model_a,model_b,left,right,winner\nx,y,p,q,left\n"
    assert placet.read(as_file(both), a="left", b="right").items == ("p", "q")
    named = placet.read(as_file("u;v;w\nx;y;u\n"), a="u", b="v", winner="w")
    assert (named.items, named.wins_i.tolist()) == (("x", "y"), [1])
    assert placet.read(as_file("good,bad\nx,y\n"), winner="good", loser="bad").wins_i.tolist() == [1]
    assert placet.read(as_file("p,q,wp,wq\nx,y,1,0\n"), a="p", b="q", winner="wp,wq").wins_i.tolist() == [1]
    assert placet.read(as_file("p,q,m,n\nx,y,1,0\n"), a="p", b="q", scores="m,n").wins_i.tolist() == [1]
    only = placet.read(as_file("Ann,Bob,Cid\n1,2,7\n2,1,9\n"), ignore="Cid")
    assert only.items == ("Ann", "Bob")
    assert placet.read(as_file("Ann,Bob,Cid\n1,2,3\n2,1,3\n"), items=["Bob", "Ann"]).items == ("Bob", "Ann")
    with pytest.raises(ValueError, match="the reader of any format has no option 'sides'"):
        placet.read(as_file(both), sides="left,right")
    with pytest.raises(ValueError, match="the reader of 'ratings' has no option 'a'"):
        placet.read(as_file(both), "ratings", a="left")


def test_rows_that_meet_themselves_can_be_left_out():
    with pytest.warns(pio.DataWarning, match=r"left out 1 line: 1 such as line 2 \('x' meets itself\)"):
        found = placet.read(as_file("winner,loser\nx,x\ny,x\n"), on_error="skip")
    assert found == Comparisons.from_battles(["y"], ["x"], ["a"])


def test_matches_of_winners_and_losers_with_columns_beside_them(tmp_path):
    rng = np.random.default_rng(0)
    n = 3000
    a = rng.integers(0, 50, n)
    b = (a + rng.integers(1, 50, n)) % 50
    b[[7, 99]] = a[[7, 99]]
    columns = {"winner": [f"p{k}" for k in a], "loser": [f"p{k}" for k in b]}
    columns["date"] = (np.datetime64("1990-01-01") + np.arange(n)).astype(str).tolist()
    columns |= {"surface": rng.choice(["Hard", "Clay"], n).tolist(), "best_of": rng.choice([3, 5], n).tolist()}
    columns |= {"winner_age": rng.normal(25, 4, n).tolist(), "loser_age": rng.normal(25, 4, n).tolist()}
    path = tmp_path / "matches.csv"
    placet.io.tables.tables.write_table(path, columns)
    with pytest.raises(DataError, match=r"matches.csv:9: 'p\d+' meets itself \(2 such lines\).*on_error=.skip"):
        placet.read(path)
    with pytest.warns(placet.io.text.DataWarning, match="left out 2 lines"):
        games = placet.read(path, on_error="skip", time="date", control="age")
    assert (games.wins_i.sum() + games.wins_j.sum(), games.ties.sum()) == (n - 2, 0)
    age = dict(zip(zip(a, b, columns["date"]), np.subtract(columns["winner_age"], columns["loser_age"])))
    at = {name: k for k, name in enumerate(games.items)}
    for (x, y, when), value in list(age.items())[:5]:
        row = (games.time == np.datetime64(when)) & np.isin(games.i, [at[f"p{x}"], at[f"p{y}"]])
        sign = 1 if games.items[games.i[row][0]] == f"p{x}" else -1
        assert sign * games.control[row, 0][0] == pytest.approx(value)
    good = {name: [v for k, v in enumerate(values) if k not in (7, 99)] for name, values in columns.items()}
    assert set(placet.read_slices(good, by="surface")) == {"Hard", "Clay"}
    with pytest.raises(DataError, match="'best_of' is never negative in a table of winners and losers"):
        placet.read(good, control="best_of")
    with pytest.raises(DataError, match="who won and not who came first"):
        placet.read_battles(good, ordered=True)


def test_every_kind_of_frame():
    columns = {"white": ["x", "y"], "black": ["y", "z"], "result": ["1-0", "1/2-1/2"], "when": [1, 2]}
    expected = Comparisons.from_battles(["x", "y"], ["y", "z"], ["a", "tie"])
    arrow = pa.table(columns)
    frames = [
        columns,
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        pl.LazyFrame(columns),
        arrow,
        duckdb.from_arrow(arrow),
    ]
    for frame in frames:
        found = placet.read(frame)
        assert found == expected
        assert found.notes == ("read as votes: white, black, result; ignored: when",)
    assert placet.read(frames) == placet.concat([expected] * 6)
    with pytest.raises(TypeError, match="expected a path, an open file or a data frame, not int"):
        placet.read(7)


def test_patterns_folders_and_lists(tmp_path):
    one = Comparisons.from_battles(["x"], ["y"], ["a"])
    two = Comparisons.from_battles(["y"], ["z"], ["tie"])
    pio.write(one, tmp_path / "1.csv")
    pio.write(two, tmp_path / "2.parquet")
    (tmp_path / ".hidden").write_text("not data")
    for source in (tmp_path, str(tmp_path / "[12].*"), [tmp_path / "1.csv", tmp_path / "2.parquet"]):
        assert placet.read(source) == one + two
    odd = tmp_path / "votes[1].csv"
    pio.write(one, odd)
    assert placet.read(odd) == one  # a file whose name looks like a pattern
    with pytest.raises(FileNotFoundError, match="no file matches"):
        placet.read(str(tmp_path / "*.tsv"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="the folder holds no files"):
        placet.read(tmp_path / "empty")
    with pytest.raises(DataError, match="list of sources is empty"):
        placet.read([])


def test_several_files_of_text(tmp_path):
    runs = {"a.run": "1 Q0 d1 1 2.0 p\n1 Q0 d2 2 1.0 p\n", "b.run": "1 Q0 d2 1 9.0 q\n2 Q0 d3 2 8.0 q\n"}
    for name, text in runs.items():
        (tmp_path / name).write_text(text)
    both = placet.read(sorted(tmp_path.iterdir()))
    assert list(both) == [[("d1",), ("d2",)], [("d2",)], [("d3",)]]
    assert both.agents == ("p", "q")
    assert both.instances == ("1", "2")
    assert both.notes == ("read as trec-run",)
    for k in (1, 2):
        (tmp_path / f"{k}.qrels").write_text("1 0 d1 1\n")
        (tmp_path / f"{k}.letor").write_text(f"1 qid:{k} 1:1\n")
    assert placet.read(str(tmp_path / "*.letor")).qid == (1, 2)
    with pytest.raises(DataError, match="several files of qrels cannot be read as one"):
        placet.read(str(tmp_path / "*.qrels"))


def test_standard_input():
    code = "import placet; found = placet.read('-'); print(found, found.notes[0])"
    for text, expected in (
        ("winner,loser\nx,y\n", "Comparisons(1 pairs, 2 items, 1 votes) read as votes: winner, loser"),
        ("3: A > B\n", "Rankings(1 ballots, 2 items, 2 rows) read as ballots"),
        ("1 qid:1 1:2\n", "Queries(1 queries, 1 rows, 1 features) read as letor"),
    ):
        done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, env=os.environ)
        assert done.stdout.strip() == expected, done.stderr


def test_features_of_every_shape(tmp_path):
    frame = pl.DataFrame({"qid": ["a", "b", "a"], "label": [1, 0, 2], "v": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]})
    frame.write_parquet(tmp_path / "lists.parquet")
    found = placet.read(tmp_path / "lists.parquet")
    np.testing.assert_array_equal(found.restore(found.X), [[1, 2], [3, 4], [5, 6]])
    assert found.features == ("v1", "v2")
    single = frame.select("qid", "label", x=pl.Series([1, 2, 3], dtype=pl.Float32))
    assert placet.read(single).X.dtype == np.float32
    assert Queries.from_frame(single).X.dtype == np.float32
    assert placet.read(single.with_columns(y=pl.Series([1.0, 2.0, 3.0]))).X.dtype == np.float64
    gaps = as_file("qid,label,x,y\n1,1,,2\n1,0,3,\n")
    with pytest.raises(DataError, match=r"export.csv:2: x is empty \(2 such lines\); fill it in"):
        placet.read(gaps)
    kept = placet.read(as_file("qid,label,x,y\n1,1,,2\n1,0,3,\n"), missing="keep")
    np.testing.assert_array_equal(kept.X, [[np.nan, 2], [3, np.nan]])
    with pytest.raises(DataError, match=r"export.csv:3: x 'n/a' is not a finite number"):
        placet.read(as_file("qid,label,x\n1,1,5\n1,0,n/a\n"))
    weighted = placet.read(as_file("qid,label,x,w\n1,1,5,2\n2,0,3,1\n"), weight="w", format="features")
    assert weighted.weight.tolist() == [2, 1]
    assert weighted.features == ("x",)
    with pytest.raises(DataError, match="column 'x' is not numbers"):
        Queries.from_frame({"qid": [1], "label": [1], "x": ["n/a"]})


def test_the_command_says_what_it_read(placet_command, tmp_path):
    path = tmp_path / "games.csv"
    path.write_text(VOTES["chess results"][0])
    code = "from placet.cli import main; main()"
    piped = subprocess.run(
        [sys.executable, "-c", code, "describe", "-"],
        input=path.read_text(),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    _, twice = placet_command("describe", path, path)
    _, converted = placet_command("convert", path, tmp_path / "games.parquet")
    for said in (piped.stderr, twice, converted):
        assert said.startswith("read as votes: White, Black, Result; ignored: Event, Date, ECO\n")
    assert placet.read(tmp_path / "games.parquet") == placet.read(path)
