"""Tables of choices, long and wide: what is read, and what is refused with the row and a way out."""

import io

import numpy as np
import pytest

from placet.data import DataError
from placet.io import read_choices

LONG = """person,task,alt,chosen,price,speed,age
a,1,bus,1,2,10,30
a,1,car,0,5,50,30
a,2,car,0,6,40,30
a,2,bus,1,1,20,30
b,1,bus,0,3,10,50
b,1,car,1,4,60,50
"""
WIDE = """person,mode,price_bus,price_car,speed_bus,speed_car,age
a,bus,2,5,10,50,30
a,bus,1,6,20,40,30
b,car,3,4,10,60,50
"""


def text(table):
    return io.StringIO(table)


def same(one, other):
    assert one.alternatives == other.alternatives
    for name in ("chosen", "offsets", "alternative", "agent", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.attributes.keys() == other.attributes.keys()
    for name, values in one.attributes.items():
        np.testing.assert_array_equal(values, other.attributes[name])
    assert one.agents == other.agents


FORMS = {
    "suffix": lambda what, alt: f"{what}_{alt}",
    "point": lambda what, alt: f"{what}.{alt}",
    "prefix": lambda what, alt: f"{alt}_{what}",
    "capitals": lambda what, alt: f"{alt.upper()} {what}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_row_per_choice_is_a_row_per_alternative(form):
    wide = WIDE
    for what in ("price", "speed"):
        for alt in ("bus", "car"):
            wide = wide.replace(f"{what}_{alt}", form(what, alt))
    found = read_choices(text(wide), case="age")
    long = read_choices(text(LONG), case="age")
    rows = [0, 1, 3, 2, 4, 5]  # the second choice has its rows the other way round
    np.testing.assert_array_equal(found.attributes["price"], long.attributes["price"][rows])
    np.testing.assert_array_equal(found.chosen, long.chosen[rows])
    np.testing.assert_array_equal(found.case["age"], [30, 30, 50])
    assert (found.alternatives, found.agents, list(found.agent)) == (("bus", "car"), ("a", "b"), [0, 0, 1])
    assert (long.alternatives, long.agents, list(long.agent)) == (("bus", "car"), ("a", "b"), [0, 0, 1])


def test_the_order_of_rows_does_not_matter_and_sets_may_be_numbered_within_persons():
    head, *lines = LONG.splitlines()
    mixed = "\n".join([head, *(lines[k] for k in (4, 0, 2, 5, 1, 3))])
    long, again = read_choices(text(LONG)), read_choices(text(mixed))
    assert len(long) == len(again) == 3
    sets = [
        {
            (one.agents[one.agent[q]], name, *sorted(zip(one.attributes["price"][a:b], one.chosen[a:b])))
            for q, (name, a, b) in enumerate(zip(one.names, one.offsets, one.offsets[1:]))
        }
        for one in (long, again)
    ]
    assert sets[0] == sets[1]
    assert "age" not in long.attributes
    assert "not used, being equal for all alternatives of a choice: age" in long.notes[1]


def test_numbered_alternatives_and_one_that_nobody_chose():
    found = read_choices(text("choice,price1,price2,price3,size1,size2,size3\n1,4,5,6,1,1,1\n2,4,3,6,1,2,1\n"))
    assert found.alternatives == ("1", "2", "3")
    np.testing.assert_array_equal(found.attributes["price"], [4, 5, 6, 4, 3, 6])
    np.testing.assert_array_equal(found.chosen, [True, False, False, False, True, False])


def test_a_number_of_the_row_is_not_who_chose():
    found = read_choices(text("id,task,alt,chosen,x\n1,1,a,1,2\n2,1,b,0,3\n3,2,a,0,2\n4,2,b,1,1\n"))
    assert (len(found), found.agent, list(found.attributes)) == (2, None, ["x"])


def test_numbered_attributes_beside_marks_are_no_alternatives():
    found = read_choices(text("id,chosen,x0,x1\n1,0,2,3\n1,1,4,5\n2,1,4,1\n2,0,6,5\n"))
    assert list(found.attributes) == ["x0", "x1"]
    assert len(found) == 2


def test_alternatives_that_were_not_available_are_left_out():
    found = read_choices(text("mode,price_bus,price_car,price_walk\nbus,2,5,\ncar,3,1,0\nwalk,3,1,0\n"))
    np.testing.assert_array_equal(np.diff(found.offsets), [2, 3, 3])
    assert [found.alternatives[k] for k in found.alternative[found.chosen]] == ["bus", "car", "walk"]


def test_text_becomes_indicators_where_it_is_asked_for():
    rows = LONG.replace("speed", "brand").replace(",10,", ",slow,").replace(",50,", ",fast,").replace(",40,", ",fast,")
    rows = rows.replace(",20,", ",slow,").replace(",60,", ",wild,")
    found = read_choices(text(rows), attributes="price,brand")
    assert list(found.attributes) == ["price", "brand=slow", "brand=wild"]
    np.testing.assert_array_equal(found.attributes["brand=slow"], [1, 0, 0, 1, 1, 0])


def test_frames_marks_and_weights():
    frame = {"obs": [1, 1, 2, 2], "chosen": [True, False, False, True], "x": [1.0, 2, 3, 4], "weight": [2, 2, 1, 1]}
    found = read_choices(frame)
    np.testing.assert_array_equal(found.weight, [2, 1])
    assert (found.alternative, found.alternatives) == (None, ())
    same(found, read_choices({**frame, "chosen": ["yes", "no", None, "YES"]}))


WRONG = {
    "nothing names the choice": ("price,speed\n1,2\n", {}, "which column says what was chosen"),
    "no rows": ("set,chosen,x\n", {}, "no rows"),
    "no such column": (LONG, {"agent": "who"}, "'who' is not there"),
    "no such attribute": (LONG, {"attributes": "colour"}, "'colour' is not there"),
    "no such wide attribute": (WIDE, {"attributes": "colour"}, "has no column for each alternative"),
    "neither layout": ("id,chosen,x\n1,bus,3\n2,car,4\n", {}, "neither marks rows"),
    "both layouts": ("id,chosen,x_0,x_1\n1,0,2,3\n1,1,2,3\n", {}, "layout='long' or layout='wide'"),
    "no sets": ("chosen,x\n1,3\n0,4\n", {}, "no column says which rows are one choice"),
    "two chosen": (LONG.replace("car,0,5", "car,1,5"), {}, ":2: choice '1' has 2 chosen rows"),
    "none chosen": (LONG.replace("bus,1,2,", "bus,0,2,"), {}, ":2: in choice '1' nothing is chosen"),
    "bad mark": (LONG.replace("bus,1,2,", "bus,7,2,"), {"layout": "long"}, ":2: chosen '7' is not 0 or 1"),
    "one row": (LONG + "c,1,bus,1,3,1,2\n", {}, ":8: choice '1' has one row"),
    "twice": (LONG.replace("car,0,5", "bus,0,5"), {}, ":3: alt 'bus' is twice"),
    "no number": (LONG.replace(",5,50", ",five,50"), {"attributes": "price"}, ":3: price 'five' is not"),
    "empty": (LONG.replace(",5,50", ",,50"), {}, ":3: price is empty"),
    "case differs": (LONG.replace("0,5,50,30", "0,5,50,31"), {"case": "age"}, ":3: age '31' differs"),
    "half empty": (WIDE.replace("a,bus,2,5,", "a,bus,2,,"), {}, ":2: some attributes of an alternative are empty"),
    "chosen was absent": (
        "mode,p_bus,p_car,p_tram\nbus,,5,3\ncar,3,1,0\ntram,3,1,0\n", {}, ":2: mode 'bus' has no attributes"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("table", "options", "words"), WRONG.values(), ids=WRONG)
def test_what_is_refused_and_why(table, options, words):
    with pytest.raises(DataError, match=words.replace("?", r"\?")):
        read_choices(text(table), **options)


def test_bad_choices_are_skipped_whole():
    with pytest.warns(UserWarning, match="left out 2 lines"):
        found = read_choices(text(LONG.replace("car,0,5", "car,1,5")), on_error="skip")
    assert len(found) == 2
