"""Controls of ballots that are read from tables: long, wide, ratings; numbers of rows and of ballots."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import placet
from placet import DataError, Rankings
from placet.cli import app

LONG = {
    "voter": [1, 1, 1, 2, 2, 3, 3],
    "item": ["tea", "milk", "water", "milk", "tea", "water", "tea"],
    "rank": [1, 2, 3, 1, 2, 1, 2],
    "position": [1, 2, 3, 1, 2, 2, 1],
    "age": [30, 30, 30, 40, 40, 20, 20],
}
BY_ROW = {(0, "tea"): 1, (0, "milk"): 2, (0, "water"): 3, (1, "milk"): 1, (1, "tea"): 2, (2, "water"): 2, (2, "tea"): 1}
AGE = {0: 30, 1: 40, 2: 20}
WIDE = "tea,milk,water,shown_tea,Milk shown,shown [water],age\n1,2,3,1,2,3,30\n2,1,,2,1,,40\n2,,1,1,,2,20\n"
AGES = "tea,milk,water,age\n1,2,3,30\n2,1,,40\n2,,1,20\n"
PLACES = "1,2,3,shown_tea,shown_milk,shown_water,age\ntea,milk,water,1,2,3,30\nmilk,tea,,2,1,,40\nwater,tea,,1,,2,20\n"
ORDERS = "order,shown_tea,shown_milk,shown_water,age\ntea>milk>water,1,2,3,30\nmilk>tea,2,1,,40\nwater>tea,1,,2,20\n"


def table(tmp_path, text, name="ballots.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def by_row(ballots):
    """Column k of the controls by ballot and item."""
    assert ballots.control is not None
    keys = list(zip(ballots.ballot.tolist(), (ballots.items[k] for k in ballots.item)))
    return [dict(zip(keys, column.tolist())) for column in ballots.control.T]


@pytest.mark.parametrize("suffix", ["frame", ".csv", ".parquet", ".jsonl"])
def test_columns_of_a_long_table(tmp_path, suffix):
    source = pl.DataFrame(LONG)
    if suffix != "frame":
        placet.io.tables.tables.write_table(tmp_path / f"ballots{suffix}", LONG)
        source = tmp_path / f"ballots{suffix}"
    for reader in (placet.read, placet.read_ballots):
        options = {} if suffix == "frame" or reader is placet.read else {"layout": "long"}
        ballots = reader(source, control=["position", "age * tea"], **options)
        assert ballots.controls == ("position", "age * tea")
        place, age = by_row(ballots)
        assert place == BY_ROW
        assert age == {(b, item): AGE[b] if item == "tea" else 0 for b, item in BY_ROW}
        assert list(ballots) == list(placet.read(source))


@pytest.mark.parametrize("text", [WIDE, PLACES, ORDERS])
def test_a_column_for_each_item_of_a_wide_table(tmp_path, text):
    ballots = placet.read(table(tmp_path, text), control="shown, age * items")
    assert ballots.controls == ("shown", *(f"age * {item}" for item in ballots.items[1:]))
    shown, *ages = by_row(ballots)
    assert shown == BY_ROW
    for item, age in zip(ballots.items[1:], ages):
        assert age == {(b, other): AGE[b] if other == item else 0 for b, other in BY_ROW}
    assert list(ballots) == [[("tea",), ("milk",), ("water",)], [("milk",), ("tea",)], [("water",), ("tea",)]]


def test_one_hot_columns_of_places_leave_the_first_out():
    ballots = placet.read(LONG, control="one-hot(position)")
    assert ballots.controls == ("position=2", "position=3")
    np.testing.assert_array_equal(ballots.control.sum(axis=0), [3, 1])


def test_ratings_with_controls():
    columns = {"user": list("uuvv"), "item": list("abba"), "rating": [3, 5, 1, 2], "pos": [1, 2, 1, 2]}
    ballots = placet.read(columns, control="pos")
    assert by_row(ballots) == [{(0, "a"): 1, (0, "b"): 2, (1, "a"): 2, (1, "b"): 1}]
    assert (list(ballots), ballots.score.tolist()) == ([[("b",), ("a",)], [("a",), ("b",)]], [5, 3, 2, 1])


@settings(max_examples=30)
@given(st.data())
def test_a_long_table_in_any_order_is_the_same(data):
    ballots = [data.draw(st.permutations("abcd")) for _ in range(data.draw(st.integers(1, 4)))]
    rows = [(b, item, k, 10 * b + k + 0.5) for b, order in enumerate(ballots) for k, item in enumerate(order[:3])]
    mixed = data.draw(st.permutations(rows))
    read = [
        placet.read_ballots(dict(zip(("ballot", "item", "rank", "z"), map(list, zip(*own)))), control="z", items="abcd")
        for own in (rows, mixed)
    ]
    order = list(dict.fromkeys(row[0] for row in mixed))
    assert read[1] == read[0][np.array(order)]
    assert {(b, read[0].items[i]): z for b, i, z in zip(read[0].ballot, read[0].item, read[0].control[:, 0])} == {
        (b, item): z for b, item, _, z in rows
    }


def test_ballots_with_controls_are_written_and_read_back(tmp_path):
    ballots = placet.read(LONG, control=["position", "age * tea"])
    placet.io.write_ballots(ballots, tmp_path / "ballots.csv")
    again = placet.read_ballots(tmp_path / "ballots.csv", control=list(ballots.controls), items=ballots.items)
    assert again == ballots
    with pytest.raises(DataError, match="no place for the control"):
        placet.io.write_ballots(ballots, tmp_path / "x.ballots")


@pytest.mark.parametrize(
    ("text", "control", "message"),
    [
        (AGES, "age", r'"age \* tea" is its effect on tea, "age \* items" on each item'),
        (AGES, "age * beer", "'beer' is not an item; they are \\['tea', 'milk', 'water'\\]"),
        (WIDE, "size", "control 'size': column 'size' is not there"),
        (
            WIDE.replace("1,2,3,1,2,3,30", "1,2,3,1,,3,30"),
            "shown",
            "ballots.csv:2: Milk shown is empty, but 'milk' is on",
        ),
        (WIDE.replace("shown_tea", "seen"), "shown", "has no column for the item 'tea'"),
        (WIDE.replace("1,2,3,1,2,3,30", "1,2,3,1,x,3,30"), "shown", "ballots.csv:2: Milk shown 'x' is not a finite"),
        ("ballot,item,rank,z\n1,a,1,2\n1,b,2,\n", "z", r"ballots.csv:3: z \(missing\) is not a finite number"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, control, message):
    with pytest.raises(DataError, match=message):
        placet.read(table(tmp_path, text), control=control)


def test_bad_rows_can_be_left_out(tmp_path):
    path = table(tmp_path, "ballot,item,rank,z\n1,a,1,2\n1,b,2,3\n2,b,1,9\n2,a,2,\n2,c,3,4\n")
    with pytest.warns(placet.io.text.DataWarning, match="left out 1 line"):
        ballots = placet.read(path, control="z", on_error="skip")
    assert by_row(ballots) == [{(0, "a"): 2, (0, "b"): 3, (1, "b"): 9, (1, "c"): 4}]


def test_text_has_no_columns(tmp_path):
    with pytest.raises(DataError, match="ballots as text have no columns"):
        placet.read_ballots(table(tmp_path, "A > B\n", "x.ballots"), control="z")


def test_the_effect_of_a_place_is_found_by_the_command(tmp_path):
    """Ballots drawn with 0.8 for each place further down the page: recovered from the file, and the order with it."""
    rng = np.random.default_rng(0)
    names, theta = ["a", "b", "c", "d"], np.array([0.9, 0.3, -0.3, -0.9])
    rows = []
    for voter in range(300):
        place = np.argsort(np.argsort(theta + 0.6 * rng.normal(size=4)))  # the best are shown last
        order = np.argsort(-(theta - 0.8 * place + rng.gumbel(size=4)))
        rows += [(voter, names[i], k + 1, int(place[i])) for k, i in enumerate(order)]
    path = tmp_path / "ballots.csv"
    placet.io.tables.tables.write_table(path, dict(zip(("voter", "item", "rank", "position"), map(list, zip(*rows)))))
    asked = ["aggregate", str(path), "--json"]
    plain = json.loads(CliRunner().invoke(app, asked).stdout)
    result = CliRunner().invoke(app, [*asked, "--control", "position", "--report", str(tmp_path / "page.html")])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    (effect,) = found["controls"]
    assert abs(effect["coefficient"] + 0.8) < 2 * effect["stderr"] < 0.3
    assert [row["item"] for row in found["ranking"]] == names != [row["item"] for row in plain["ranking"]]
    assert "effect of one unit" in (tmp_path / "page.html").read_text()


def test_reading_equals_making_ballots_by_hand():
    read = placet.read_ballots(LONG, control="position")
    made = Rankings.from_scores(
        {**LONG, "score": [-r for r in LONG["rank"]]}, ballot="voter", item="item", score="score", control=["position"]
    )
    np.testing.assert_array_equal(read.control, made.control)


def test_a_voter_without_a_column_of_ballots_has_one():
    table = {"judge": list("xxyy"), "item": list("abab"), "rank": [1, 2, 2, 1]}
    ballots = placet.read_ballots(table, agent="judge")
    assert (ballots.agents, list(ballots)) == (("x", "y"), [[("a",), ("b",)], [("b",), ("a",)]])
    several = {**table, "ballot": [1, 1, 2, 2], "judge": ["x"] * 4}
    assert placet.read_ballots(several, agent="judge").agent.tolist() == [0, 0]


def test_text_that_has_no_columns_for_controls_says_so(tmp_path, answer):
    path = tmp_path / "lists.txt"
    path.write_text("2 qid:1 1:1 2:NULL 3:2 #docid = a\n0 qid:1 1:2 2:1 3:NULL #docid = b\n")
    said = answer("aggregate", path, "--control", "position", code=2)
    assert "lists.txt: this is letor-agg text, whose reader has no option 'control'" in said
    assert "columns beside ranks, votes or grades need a table, such as CSV; leave it out" in said
