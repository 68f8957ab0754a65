"""Tables of cases with an order of labels each: what is read, and what is refused."""

import io

import numpy as np
import pytest

from placet.data import DataError
from placet.io import orders_of, read_label_orders
from placet.io.surveys.label_orders import case_columns

TEXT = """age,city,order
30,north,tea > milk > cocoa
40,south,milk > tea = cocoa
50,north,cocoa > milk
"""
RANKS = """age,city,rank_cocoa,rank_milk,rank_tea
30,north,3,2,1
40,south,2,1,2
50,north,1,2,
"""


def text(table):
    return io.StringIO(table)


def test_orders_and_ranks_are_the_same_lists():
    one, other = read_label_orders(text(TEXT)), read_label_orders(text(RANKS))
    assert one.features == other.features == (
        *("constant:cocoa", "constant:milk", "constant:tea"),
        *("age:cocoa", "age:milk", "age:tea"),
    )  # fmt: skip
    np.testing.assert_array_equal(one.X.toarray(), other.X.toarray())
    np.testing.assert_array_equal(np.diff(one.offsets), [3, 3, 2])
    for rows in (one, other):
        assert orders_of(rows, rows.grade)[0] == ("tea", "milk", "cocoa")
        assert orders_of(rows, rows.grade)[2] == ("cocoa", "milk")
        a, b = rows.grade[3:6][[0, 2]]
        assert a == b < rows.grade[4]
    dense = one.X.toarray()
    np.testing.assert_array_equal(dense[0], [1, 0, 0, 30, 0, 0])
    np.testing.assert_array_equal(dense[4], [0, 1, 0, 0, 40, 0])


@pytest.mark.parametrize("name", ["rank_{}", "Rank {}", "rank-{}"])
def test_ranks_of_numbered_labels_are_found(name):
    header = ",".join(["x", *(name.format(k) for k in (0, 1, 10))])
    rows = read_label_orders(text(f"{header}\n5,2,1,3\n6,1,2,3\n"))
    assert case_columns(rows.features) == (("0", "1", "10"), ("x",))
    assert orders_of(rows, rows.grade) == [("1", "0", "10"), ("0", "1", "10")]


def test_text_features_and_cases_to_score():
    rows = read_label_orders(text(TEXT), features="age,city")
    assert case_columns(rows.features).features == ("age", "city=south")
    new = read_label_orders(text("city,age\nsouth,20\nwest,30\n"), like=rows.features, graded=False)
    assert new.features == rows.features
    np.testing.assert_array_equal(np.diff(new.offsets), [3, 3])
    np.testing.assert_array_equal(new.X.toarray()[[0, 3]][:, -3], [1, 0])
    assert case_columns(("a", "b")) is None
    assert case_columns(("constant:a", "constant:b", "x:a")) is None


WRONG = {
    "no order": ("age,x\n1,2\n", {}, "which column has the orders"),
    "no such column": (TEXT, {"order": "rank"}, "'rank' is not there"),
    "open quote": (TEXT.replace("tea > milk > cocoa", "tea > > cocoa"), {}, ":2: order .*empty place"),
    "twice": (TEXT.replace("tea > milk > cocoa", "tea > tea"), {}, ":2: .*a label occurs twice"),
    "one label": (TEXT.replace("cocoa > milk", "cocoa"), {}, ":4: fewer than two labels"),
    "missing": (TEXT.replace("cocoa > milk", ""), {}, ":4: order is missing"),
    "empty feature": (TEXT.replace("40,", ","), {}, ":3: age is empty"),
    "rank": (RANKS.replace("3,2,1", "first,2,1"), {}, ":2: rank_cocoa 'first' is not"),
    "other label": (
        TEXT, {"like": ("constant:tea", "constant:milk", "age:tea", "age:milk")}, "label 'cocoa' is not one of the model's"
    ),
    "other ranks": (
        RANKS, {"like": ("constant:tea", "constant:milk", "age:tea", "age:milk")}, "the model orders"
    ),
    "other feature": (
        TEXT, {"like": ("constant:tea", "constant:milk", "h:tea", "h:milk"), "graded": False}, "'h' is not there"
    ),
    "no model": (TEXT, {"graded": False}, "like="),
    "like": (TEXT, {"like": ("a", "b")}, "must be the columns of a label ranking"),
}  # fmt: skip


@pytest.mark.parametrize(("table", "options", "words"), WRONG.values(), ids=WRONG)
def test_what_is_refused_and_why(table, options, words):
    with pytest.raises(ValueError, match=words):
        read_label_orders(text(table), **options)


def test_bad_cases_are_left_out_on_demand():
    with pytest.warns(UserWarning, match="left out 1 line"):
        found = read_label_orders(text(TEXT.replace("cocoa > milk", "cocoa")), on_error="skip")
    assert len(found) == 2
    with pytest.raises(DataError, match="no cases|left out"), pytest.warns(UserWarning, match="left out"):
        read_label_orders(text("age,order\n1,a\n"), on_error="skip")
