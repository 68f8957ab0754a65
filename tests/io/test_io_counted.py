"""The readers that count first give what the slow readers give, on good and on bad tables: data, warnings and errors."""

import csv
import io
import warnings

import numpy as np
import polars as pl
import pytest
import slow_tables
from hypothesis import given, settings, strategies as st

import placet.io as pio
from placet.data import Comparisons, DataError, Rankings

NAMES = ["x", "y", " x", "z", "v", "x y", 'q"q', "a,b", "line\nbreak", "é", "10", "007"]
WINNERS = ["model_a", "model_b", "tie", "A", "TIE (bothbad)", " model_a ", "draw"]
BAD_CELLS = ["", " ", "lefft", "nan", "inf", "1_0", "-1", "0x1", "None"]


def outcome_of(read, source, **options):
    """Data, or the words of an error, and the words of a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = read(source, **options)
        except DataError as error:
            return str(error), []
    return found, [str(warning.message) for warning in caught]


def written(columns, separator, ends, extra):
    """CSV with quotes where they are needed, blank lines and ragged lines now and then."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=ends)
    writer.writerow(columns)
    rows = list(zip(*columns.values()))
    for k, row in enumerate(rows):
        writer.writerow(row)
        if extra.get(k) == "blank":
            out.write(ends)
        elif extra.get(k) == "long":
            writer.writerow([*row, "9"])
        elif extra.get(k) == "short":
            writer.writerow(row[:1])
    return out.getvalue().encode()


@st.composite
def tables(draw, kinds):
    """Columns of cells, mostly good; ``kinds`` are the good cells of each column."""
    n = draw(st.integers(0, 12))
    bad = draw(st.sampled_from([0, 0, 1, 3]))
    columns = {}
    for name, good in kinds.items():
        columns[name] = draw(st.lists(st.sampled_from(good), min_size=n, max_size=n))
    for _ in range(bad if n else 0):
        columns[draw(st.sampled_from(list(kinds)))][draw(st.integers(0, n - 1))] = draw(st.sampled_from(BAD_CELLS))
    extra = draw(st.dictionaries(st.integers(0, n), st.sampled_from(["blank", "blank", "long", "short"]), max_size=2))
    return written(columns, draw(st.sampled_from(",;\t|")), draw(st.sampled_from(["\n", "\r\n"])), extra)


def separator_of(data):
    return next(mark for mark in ";\t|," if mark.encode() in data.split(b"\n")[0])


@settings(max_examples=300)
@given(
    tables({"model_a": NAMES, "model_b": NAMES, "winner": WINNERS, "weight": ["1", "2", "0.5"]}),
    st.sampled_from(["raise", "skip"]),
    st.booleans(),
)
def test_battles(data, on_error, ordered):
    mark = separator_of(data)
    commas = data if mark == "," else recut(data, mark)
    options = {"weight": "weight", "ordered": ordered, "on_error": on_error, "format": "csv"}
    theirs = outcome_of(slow_tables.read_battles, io.BytesIO(commas), **options)
    mine = outcome_of(pio.read_battles, io.BytesIO(data), separator=mark, **options)
    assert_same(mine, theirs)


def recut(data, mark):
    """The same records, comma-separated."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n" if b"\r\n" in data else "\n")
    for record in csv.reader(io.StringIO(data.decode(), newline=""), delimiter=mark):
        writer.writerow(record) if record else out.write(writer.dialect.lineterminator)
    return out.getvalue().encode()


def assert_same(mine, theirs):
    assert type(mine[0]) is type(theirs[0])
    if isinstance(mine[0], Comparisons):
        assert mine[0].items == theirs[0].items
        for name in ("i", "j", "wins_i", "wins_j", "ties", "agent"):
            a, b = getattr(mine[0], name), getattr(theirs[0], name)
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-14)
    else:
        assert mine[0] == theirs[0]
    assert mine[1] == theirs[1]


@settings(max_examples=200)
@given(
    tables({"model_a": NAMES[3:], "model_b": NAMES[3:], "winner": NAMES[3:] + WINNERS, "agent": ["u", "v", "w"]}),
    st.sampled_from(["raise", "skip"]),
)
def test_battles_of_agents_whose_winner_is_a_name(data, on_error):
    mark = separator_of(data)
    options = {"agent": "agent", "on_error": on_error, "format": "csv"}
    theirs = outcome_of(slow_tables.read_battles, io.BytesIO(recut(data, mark)), **options)
    mine = outcome_of(pio.read_battles, io.BytesIO(data), separator=mark, **options)
    assert_same(mine, theirs)


@settings(max_examples=300)
@given(
    tables({"user": ["u", "v", "w"], "item": NAMES, "rating": ["1", "2.5", "5", "1e0"], "t": ["9"]}),
    st.sampled_from(["raise", "skip"]),
)
def test_ratings(data, on_error):
    commas = recut(data, separator_of(data))
    theirs = outcome_of(slow_tables.read_ratings, io.BytesIO(commas), on_error=on_error)
    assert_same(outcome_of(pio.read_ratings, io.BytesIO(data), separator=separator_of(data), on_error=on_error), theirs)


@settings(max_examples=300)
@given(
    tables({"ballot": ["1", "2", "3"], "item": NAMES, "rank": ["1", "2", "3", "1.0"], "weight": ["1"], "agent": ["u"]}),
    st.sampled_from(["raise", "skip"]),
    st.sampled_from(["absent", "last"]),
)
def test_long_ballots(data, on_error, unlisted):
    mark = separator_of(data)
    options = {"on_error": on_error, "layout": "long", "agent": "agent", "format": "csv", "unlisted": unlisted}
    theirs = outcome_of(slow_tables.read_ballots, io.BytesIO(recut(data, mark)), **options)
    assert_same(outcome_of(pio.read_ballots, io.BytesIO(data), separator=mark, **options), theirs)


@settings(max_examples=300)
@given(
    st.one_of(
        tables({"A": ["1", "2", ""], "B": ["1", "2", "3", ""], "C": ["2", "3.0", ""], "count": ["1", "2"]}),
        tables({"1": ["A", "B", ""], "2": ["A", "C", "D"], "choice 3": ["D", "E", ""], "count": ["1", "2"]}),
    ),
    st.sampled_from(["raise", "skip"]),
)
def test_wide_ballots(data, on_error):
    mark = separator_of(data)
    layout = "ranks" if data.startswith(b"A") else "places"
    options = {"on_error": on_error, "layout": layout, "format": "csv"}
    theirs = outcome_of(slow_tables.read_ballots, io.BytesIO(recut(data, mark)), **options)
    mine = outcome_of(pio.read_ballots, io.BytesIO(data), separator=mark, **options)
    theirs = (theirs[0].split("; ")[0], []) if isinstance(theirs[0], str) else theirs
    mine = (mine[0].split("; ")[0], []) if isinstance(mine[0], str) else mine
    assert_same(mine, theirs)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".csv.gz", ".jsonl", ".json"])
def test_large_tables(tmp_path, suffix):
    """Enough rows for several blocks of the streaming reader, with line breaks in names and one bad row late."""
    rng = np.random.default_rng(0)
    n = 60_000
    names = np.array([f"model\n{k}" if k % 5 == 0 else f"model {k}" for k in range(40)])
    a = rng.integers(0, 40, n)
    columns = {
        "model_a": names[a].tolist(),
        "model_b": names[(a + rng.integers(1, 40, n)) % 40].tolist(),
        "winner": rng.choice(["model_a", "model_b", "tie"], n).tolist(),
        "prompt": ["word, " * 30] * n,
    }
    path = tmp_path / f"votes{suffix}"
    pio.tables.tables.write_table(path, columns)
    expected = Comparisons.from_battles(columns["model_a"], columns["model_b"], _outcomes(columns))
    assert pio.read_battles(path) == expected
    assert pio.read(path) == expected
    columns["winner"][50_000] = columns["winner"][50_007] = "?"
    pio.tables.tables.write_table(path, columns)
    if suffix.startswith(".csv"):
        line = 2 + sum(1 + (x + y).count("\n") for x, y in zip(columns["model_a"][:50_000], columns["model_b"]))
    else:
        line = 50_001
    with pytest.raises(DataError, match=rf":{line}: winner '\?' is not a, b or tie \(2 such (lines|rows)\)"):
        pio.read_battles(path)


def _outcomes(columns):
    words = {"model_a": "a", "model_b": "b", "tie": "tie"}
    return [words[word] for word in columns["winner"]]


def test_bad_rows_of_several_files_are_named_by_their_file(tmp_path):
    for name, winner in (("1.csv", "model_a"), ("2.csv", "lefft"), ("3.csv", "lefft")):
        (tmp_path / name).write_text(f"model_a,model_b,winner\nx,y,tie\ny,z,{winner}\n")
    with pytest.raises(DataError, match=r"2\.csv:3: winner 'lefft' is not a, b or tie \(2 such lines\)"):
        pio.read(tmp_path)
    with pytest.warns(pio.DataWarning, match=r"1\.csv and 2 others: left out 2 lines: 2 such as .*2\.csv:3"):
        found = pio.read(str(tmp_path / "*.csv"), on_error="skip")
    assert found == Comparisons.from_battles(list("xyxx"), list("yzyy"), ["tie", "a", "tie", "tie"])


def test_ratings_of_one_user_in_two_files_are_one_ballot(tmp_path):
    (tmp_path / "a.csv").write_text("user,item,rating\nu,x,1\nv,y,2\n")
    pl.DataFrame({"user": ["u"], "item": ["y"], "rating": [5.0]}).write_parquet(tmp_path / "b.parquet")
    found = pio.read([tmp_path / "a.csv", tmp_path / "b.parquet"])
    assert isinstance(found, Rankings)
    assert list(found) == [[("y",), ("x",)], [("y",)]]
    assert found.agents == ("u", "v")


def test_names_that_were_escaped_for_a_spreadsheet_are_counted_with_those_that_were_not(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,winner\ny,'plain,tie\n'=x,y,model_a\n=x,y,model_a\n'=x,y,model_a\n")
    votes = pio.read_battles(path)
    assert votes.items == ("y", "=x", "'plain")
    assert sorted(votes.wins_i + votes.wins_j) == [0.0, 3.0]
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("user,item,rating\nu,'=x,3\nu,y,2\nv,=x,1\nv,y,4\n")
    assert pio.read_ratings(ratings).items == ("=x", "y")
