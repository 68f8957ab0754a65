"""Tables of texts and labels: columns, cells, what is refused."""

import io

import polars as pl
import pytest

from placet import DataError
from placet.io import read_labeled_texts

CELLS = [
    (["a; b", "c", ""], (("a", "b"), ("c",), ())),
    (["a|b", "c d", None], (("a", "b"), ("c d",), ())),
    (["a, b", "c", "b,a,"], (("a", "b"), ("c",), ("b", "a"))),
    (['["a, x", "b"]', "[]", '["c"]'], (("a, x", "b"), (), ("c",))),
    ([["a", "b; c"], [], ["c"]], (("a", "b; c"), (), ("c",))),
    ([1, 2, 3], (("1",), ("2",), ("3",))),
    (["only", "one", "[each"], (("only",), ("one",), ("[each",))),
]


@pytest.mark.parametrize(("cells", "expected"), CELLS, ids=lambda value: str(value[0])[:12])
def test_labels_of_a_cell(cells, expected, tmp_path):
    table = pl.DataFrame({"id": [1, 2, 3], "text": ["x y", "z", "w"], "tags": cells}, strict=False)
    assert read_labeled_texts(table).labels == expected
    table.write_parquet(tmp_path / "t.parquet")
    found = read_labeled_texts(tmp_path / "t.parquet", text="text", labels="tags")
    assert (found.labels, found.texts, found.column) == (expected, ("x y", "z", "w"), "text")


def test_two_delimiters_are_refused_with_both_commands_to_paste():
    table = {"body": ["x", "y"], "tags": ["Doe, Jane; Roe, Jo", "Doe, Jane"]}
    with pytest.raises(DataError, match=r"which one stands between") as refused:
        read_labeled_texts(table)
    assert refused.value.ways == ('delimiter=";"', 'delimiter=","')
    assert read_labeled_texts(table, delimiter=";").labels == (("Doe, Jane", "Roe, Jo"), ("Doe, Jane",))
    assert read_labeled_texts(table, delimiter=",").labels[1] == ("Doe", "Jane")


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("text,tags\nx,a\n,b\n", {}, r":3: text is missing"),
        ("text,tags\nx,a;a\n", {}, r":2: tags 'a;a': a label occurs twice"),
        ("note,tags\nx,a\n", {}, r"which column holds the text\? The columns are \['note', 'tags'\]"),
        ("text,n\nx,a\n", {}, r"which column holds the labels\?"),
        ("text,tags\nx,a\n", {"text": "words"}, r"column 'words' is not there"),
        ("text,tags\nx,a\n", {"text": "tags", "labels": "tags"}, "cannot be both"),
        ("text,tags\n", {}, "no texts|empty|no rows"),
    ],
)
def test_what_is_refused(text, options, words):
    with pytest.raises(DataError, match=words):
        read_labeled_texts(io.StringIO(text), format="csv", **options)


def test_columns_of_numbers_are_no_texts_and_bad_rows_can_be_skipped():
    with pytest.raises(DataError, match=r"'text' holds 1.5, which is not text \(2 such rows\)"):
        read_labeled_texts({"text": [1.5, 2.5], "tags": ["a", "b"]})
    with pytest.warns(UserWarning, match=r"left out 1 line: 1 such as line 3 \(text is missing\)"):
        found = read_labeled_texts(io.StringIO("text,tags\nx,a\n,b\n"), format="csv", on_error="skip")
    assert found.texts == ("x",)
    assert repr(found) == "LabeledTexts(1 texts, 1 labels)"
    assert read_labeled_texts(io.StringIO("text\nx\ny\n"), format="csv", labeled=False).labels is None
