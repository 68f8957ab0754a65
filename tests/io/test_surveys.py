"""Best-worst choices and the rankings that survey tools export, read at the first try or refused with the way out."""

import io
import json

import numpy as np
import pytest

import placet
from placet import DataError, Rankings
from placet.io.surveys.best_worst import read_best_worst
from placet.io.surveys.qualtrics import read_qualtrics
from placet.io.surveys.surveyjs import read_surveyjs

WIDE = "person,set,item1,item2,item3,item4,best,worst\n7,1,a,b,c,d,c,a\n7,2,d,a,b,,a,\n8,1,c,d,a,b,,d\n"
LONG = "person,set,item,best,worst\n7,1,a,0,1\n7,1,b,0,0\n7,1,c,1,0\n7,2,d,0,0\n7,2,a,1,0\n8,1,c,,\n8,1,d,,1\n8,1,b,,\n"
QUALTRICS = (
    "StartDate,ResponseId,Duration (in seconds),Q4,Q5_1,Q5_2,Q5_3,Q6_1,Q6_2,Q5_3_TEXT\n"
    'Start Date,Response ID,Duration,How old?,"Rank it, please - Apple","Rank it, please - Fig","Rank it, please - Kiwi - green",Rate - tea,Rate - milk,Other\n'
    '"{""ImportId"":""startDate""}","{""ImportId"":""_recordId""}","{""ImportId"":""duration""}","{""ImportId"":""QID4""}",'
    '"{""ImportId"":""QID5_1""}","{""ImportId"":""QID5_2""}","{""ImportId"":""QID5_3""}","{""ImportId"":""QID6_1""}","{""ImportId"":""QID6_2""}","{""ImportId"":""QID5_3_TEXT""}"\n'
    "2024-01-01,R_1,33,41,2,1,3,5,5,\n2024-01-01,R_2,40,20,1,2,,4,1,\n2024-01-02,R_3,9,33,,,,1,1,\n"
)
ASKED = [
    {"age": 3, "fruit": ["Fig", "Kiwi", "Apple"], "likes": ["tea"]},
    {"fruit": ["Apple", "Fig", "Kiwi"]},
    {"age": 4},
]
CASES = {
    "MaxDiff, wide": (WIDE, [[("c",), ("b", "d"), ("a",)], [("a",), ("d", "b")], [("c", "a", "b"), ("d",)]]),
    "MaxDiff, positions": (
        "Respondent;Item 1;Item 2;Item 3;Best;Worst\nu;tea;milk;water;2;3\nv;water;tea;milk;1;2\n",
        [[("milk",), ("tea",), ("water",)], [("water",), ("milk",), ("tea",)]],
    ),
    "MaxDiff, most and least": (
        "option1,option2,option3,most,least,count\nx,y,z,z,x,3\n",
        [[("z",), ("y",), ("x",)]],
    ),
    "MaxDiff, two shown": ("item1,item2,best,worst\nx,y,y,x\n", [[("y",), ("x",)]]),
    "MaxDiff, long": (LONG, [[("c",), ("b",), ("a",)], [("a",), ("d",)], [("c", "b"), ("d",)]]),
    "Qualtrics": (QUALTRICS, [[("Fig",), ("Apple",), ("Kiwi - green",)], [("Apple",), ("Fig",)]]),
    "SurveyJS": (json.dumps(ASKED), [[("Fig",), ("Kiwi",), ("Apple",)], [("Apple",), ("Fig",), ("Kiwi",)]]),
    "SurveyJS, lines": (
        "\n".join(map(json.dumps, ASKED)),
        [[("Fig",), ("Kiwi",), ("Apple",)], [("Apple",), ("Fig",), ("Kiwi",)]],
    ),
}


def ballots(data):
    return [[tuple(sorted(tier)) for tier in ballot] for ballot in data]


@pytest.mark.parametrize("case", CASES)
def test_the_layout_is_found(case, tmp_path):
    text, wanted = CASES[case]
    path = tmp_path / ("x.json" if text[0] in "[{" else "x.csv")
    path.write_text(text)
    for data in (placet.read(path), placet.read(io.StringIO(text))):
        assert isinstance(data, Rankings)
        assert ballots(data) == [[tuple(sorted(tier)) for tier in ballot] for ballot in wanted]
    assert data.notes[0].startswith(
        ("read as best-worst choices (", "read as qualtrics: question Q5", "read as surveyjs: question fruit")
    )


def test_who_answered_and_how_often():
    data = placet.read(io.StringIO(WIDE))
    assert data.agents == ("7", "8")
    assert data.agent.tolist() == [0, 0, 1]
    assert (
        data.notes
        == (
            "read as best-worst choices (best > others shown > worst): item1, item2, item3, item4, person, best, worst; ignored: set",
        )
        or "ignored: set" in data.notes[0]
    )
    assert placet.read(io.StringIO(LONG)).agent.tolist() == [0, 0, 1]
    assert placet.read(io.StringIO(CASES["MaxDiff, most and least"][0])).weight.tolist() == [3]
    answered = placet.read(io.StringIO(QUALTRICS))
    assert answered.agents == ("R_1", "R_2")
    assert answered.notes[1] == "1 answer without any rank left out"
    assert placet.read(io.StringIO(json.dumps(ASKED))).notes[1] == "1 answer without any rank left out"


def test_names_or_positions_is_refused_with_both_ways(placet_command, tmp_path):
    text = "item1,item2,item3,best,worst\n1,2,3,2,1\n3,1,2,3,1\n"
    (tmp_path / "x.csv").write_text(text)
    said = placet_command("aggregate", tmp_path / "x.csv", code=2)[1]
    assert "for names say --format best-worst --answers names" in said or "--read answers=names" in said
    assert read_best_worst(io.StringIO(text), format="csv", answers="names").orders() == [
        ["2", "3", "1"],
        ["3", "2", "1"],
    ]
    assert read_best_worst(io.StringIO(text), format="csv", answers="positions").orders() == [
        ["2", "3", "1"],
        ["2", "1", "3"],
    ]
    same = "item1,item2,item3,best,worst\n1,2,3,2,1\n1,2,3,3,1\n"  # both readings choose the same items
    assert read_best_worst(io.StringIO(same), format="csv").orders() == [["2", "3", "1"], ["3", "2", "1"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item1,item2,item3,best,worst\na,b,c,d,a\n", ":2: best 'd' is not among the items shown"),
        ("item1,item2,item3,best,worst\na,b,c,a,a\n", ":2: the best item is the worst, too"),
        ("item1,item2,item3,best,worst\na,b,a,b,a\n", ":2: an item is shown twice"),
        ("item1,item2,item3,best,worst\na,b,c,,\n", ":2: neither best nor worst is given"),
        ("item1,item2,item3,best,worst\na,,,a,\n", ":2: fewer than 2 items are shown"),
        ("set,item,best,worst\n1,a,2,0\n1,b,0,1\n", ":2: best '2' is not 0 or 1"),
        ("set,item,best,worst\n1,a,1,0\n1,b,1,0\n", ":2: the question has several items marked best"),
        ("set,item,best,worst\n1,a,1,0\n1,a,0,1\n", ":3: item 'a' is twice in one question"),
        ("set,item,best,worst\n1,a,0,0\n1,b,0,0\n", ":2: nothing is chosen in this question"),
        ("set,item,best,worst\n1,a,1,1\n1,b,0,0\n", ":2: the best item is the worst, too"),
        ("set,item,best,worst\n1,a,1,0\n", ":2: the question shows one item"),
        (
            QUALTRICS.replace("R_1,33,41,2,1", "R_1,33,41,2,2"),
            'no question is answered by ranks; say question="Q5" or question="Q6"',
        ),
        (
            QUALTRICS.replace("5,5,", "2,1,").replace("4,1,", "1,2,").replace(",1,1,", ",1,2,"),
            '2 questions are answered by ranks; say question="Q5" or question="Q6"',
        ),
        (
            json.dumps([{"p": [1, 2], "q": ["a", "b"]}, {"p": [2, 1], "q": ["b", "a"]}]),
            """'p' and 'q' hold rankings; say question="p" or question="q\"""",
        ),
    ],
)
def test_what_is_wrong_is_refused(text, said):
    with pytest.raises(DataError) as error:
        placet.read(io.StringIO(text))
    assert said in str(error.value)


def test_a_question_with_a_bad_row_is_left_out_whole():
    text = "set,item,best,worst\n1,a,1,0\n1,b,0,7\n1,c,0,1\n2,a,1,0\n2,b,0,1\n2,c,0,0\n"
    with pytest.warns(placet.io.DataWarning, match="left out 3 lines"):
        data = placet.read(io.StringIO(text), on_error="skip")
    assert data.orders() == [["a", "c", "b"]]


def test_the_question_is_chosen():
    three = QUALTRICS.replace("5,5,", "2,1,").replace("4,1,", "1,2,").replace(",1,1,", ",1,2,")
    assert read_qualtrics(io.StringIO(three), question="Q6", format="csv").orders() == [
        ["milk", "tea"],
        ["tea", "milk"],
        ["tea", "milk"],
    ]
    assert placet.read(io.StringIO(three), question="Q5", items=["Fig", "Apple", "Kiwi - green"]).items[0] == "Fig"
    both = json.dumps([{"p": [1, 2], "q": ["a", "b"]}, {"p": [2, 1], "q": ["b", "a"]}])
    assert placet.read(io.StringIO(both), question="q").orders() == [["a", "b"], ["b", "a"]]
    with pytest.raises(DataError, match="is not a list of names"):
        read_surveyjs(io.StringIO('[{"p": "tea"}]'), question="p", format="json")


def test_lists_that_are_no_rankings_are_not_taken_for_them():
    votes = [{"model_a": "x", "model_b": "y", "winner": "x", "tags": ["a", "b"]}] * 3
    assert placet.read(io.StringIO(json.dumps(votes))).items == ("x", "y")


def test_choices_are_written_and_read_back(tmp_path):
    data = placet.simulate.best_worst([1.0, 0.0, -1.0, 0.5, 0.2], 40, shown=4, random_state=2)
    placet.io.write(data, tmp_path / "x.csv", format="best-worst")
    again = placet.read(tmp_path / "x.csv", items=list(map(str, data.items)))
    assert ballots(again) == [[tuple(sorted(map(str, tier))) for tier in ballot] for ballot in data]
    with pytest.raises(DataError, match="ballot 0 is not a best item, others, and a worst item"):
        placet.io.write(Rankings.from_orders([[("a", "b"), "c"]]), tmp_path / "y.csv", format="best-worst")
    with pytest.raises(DataError, match="cannot be written as qualtrics"):
        placet.io.write(data, tmp_path / "y.csv", format="qualtrics")


def test_scores_are_recovered_with_honest_errors():
    """600 answers: the standardized errors of the default have about unit size."""
    truth = np.linspace(-1.2, 1.2, 9)
    z = []
    for seed in range(8):
        board = placet.consensus(placet.simulate.best_worst(truth, 600, shown=5, random_state=seed))
        at = np.argsort(np.argsort([int(name) for name in board.items]))
        assert at.tolist() == [int(name) for name in board.items]
        theta = truth[[int(name) for name in board.items]]
        z.append((board.scores - board.scores.mean() - theta + theta.mean()) / board.stderr)
    size = np.sqrt(np.mean(np.square(z)))
    assert 0.75 < size < 1.25
    assert board.stderr.mean() < 0.11


def test_the_items_shown_are_not_taken_for_the_top_of_a_list():
    text = "item1,item2,item3,best,worst\na,b,c,a,b\nb,c,d,d,c\na,c,d,a,c\n"
    board = placet.consensus(placet.read(io.StringIO(text)))
    assert not any("leaves out" in note for note in (*board.notes, *placet.read(io.StringIO(text)).notes))


def test_a_named_format_finds_its_question_itself():
    assert placet.read(io.StringIO(json.dumps(ASKED)), "surveyjs").items == ("Fig", "Kiwi", "Apple")
    assert placet.read(io.StringIO(QUALTRICS), "qualtrics").items == ("Apple", "Fig", "Kiwi - green")
