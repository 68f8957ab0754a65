"""LETOR text: numbers to the last bit, rows against a slow reader, bad lines by their number, memory that stays small."""

import copy
import io
import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from placet.data import DataError, Queries
from placet.io import DataWarning, read_letor, write_letor
from placet.io.sparse import sparse_text
from placet.kernels import parse

decimals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(st.integers(0, 10**25), st.integers(-340, 320)).map(lambda t: f"{t[0]}e{t[1]}"),
    st.tuples(st.integers(-(10**6), 10**6), st.text("0123456789", min_size=1, max_size=24)).map(
        lambda t: f"{t[0]}.{t[1]}"
    ),
    st.integers(2**53, 2**63).map(lambda m: str(2 * m + 1)),  # half way between two doubles
    st.sampled_from(["0", "-0", "+1", ".5", "5.", "1E3", "1e+3", "4.9e-324", "2.2250738585072011e-308", "1e-400"]),
)


def bits(value):
    return struct.pack("d", value)


def table(text, **options):
    """The queries of a text as compiled kernels read it, once plain Python was seen to read the same."""
    found = []
    for small in (1 << 15, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sparse_text, "SMALL_TEXT", small)
            patch.setattr(sparse_text, "MIDDLE_TEXT", small)
            try:
                text_bytes = text.encode() if isinstance(text, str) else text
                found.append((read_letor(io.BytesIO(text_bytes), **copy.deepcopy(options)), ""))
            except DataError as error:
                found.append((None, str(error)))
    (by_python, words), (by_kernels, same) = found
    assert words == same
    if words:
        raise DataError(words)
    assert by_python == by_kernels
    return by_kernels


@settings(max_examples=600)
@given(decimals)
def test_numbers_are_correctly_rounded(text):
    value = float(text)
    if math.isinf(value):
        with pytest.raises(DataError, match="beyond any finite"):
            table(f"1 qid:1 1:{text}\n")
        return
    q = table(f"{text} qid:1 1:{text}\n1 qid:1\n")
    assert bits(q.X[0, 0]) == bits(value)
    assert bits(q.grade[0]) == bits(value)


def test_most_numbers_need_no_care():
    rng = np.random.default_rng(0)

    def state(text):
        value, end, state = parse.number(np.frombuffer(text.encode() + b"\n", np.uint8), 0)
        assert end == len(text)
        assert state != 1 or value == float(text)
        return state

    assert {state(f"{x:.6f}") for x in rng.random(500)} == {1}
    assert sum(state(repr(x)) == 2 for x in rng.standard_normal(2000).tolist()) < 40
    assert (
        sum(state(f"{m}e{e}") == 2 for m, e in zip(rng.integers(2**62, 2**63, 2000), rng.integers(-50, 50, 2000))) < 40
    )


@pytest.mark.parametrize("text", ["753398352865428550e-2", "1868873260916941456e-37", "15541731305716253e35"])
def test_numbers_whose_truncated_product_lies_just_below_a_half(text):
    assert table(f"1 qid:1 1:{text}\n").X[0, 0] == float(text)


@pytest.mark.parametrize(
    "text",
    ["nan", "inf", "-inf", "Infinity", "1_000", "0x10", "1e", "e5", ".", "-", "", "1.2.3", "1d5", "１", "1,5", "--1"],
)
def test_what_is_not_a_number_is_refused(text):
    with pytest.raises(DataError, match=r"<stream>:2: feature 3 has the value .* \(1 such line\)"):
        table(f"1 qid:1 3:1\n1 qid:1 3:{text}\n")
    with pytest.raises(DataError, match="<stream>:1: "):
        table(f"{text} qid:1 3:1\n")


def slow_reader(text, base=1):
    """What the fast reader must return, by splitting."""
    rows = []
    for line in text.split("\n"):
        body = line.partition("#")[0].split()
        if body:
            pairs = [token.split(":") for token in body[2:]]
            rows.append((float(body[0]), body[1][4:], {int(k) - base: float(v) for k, v in pairs}))
    width = max((k for _, _, row in rows for k in row), default=-1) + 1
    X = np.zeros((len(rows), width))
    for r, (_, _, row) in enumerate(rows):
        for k, v in row.items():
            X[r, k] = v
    return X, np.array([grade for grade, _, _ in rows]), [name for _, name, _ in rows]


@st.composite
def letor_text(draw):
    lines = []
    names = draw(
        st.sampled_from(
            [["1", "2", "30"], ["a", "b c".replace(" ", "_"), "é"], ["7", "007", "-1"], ["1" * 18, "1" * 19, "9" * 20]]
        )
    )
    width = draw(st.integers(1, 6))
    full = draw(st.booleans())
    for _ in range(draw(st.integers(1, 30))):
        kind = draw(st.integers(0, 9))
        if kind == 0:
            lines.append(draw(st.sampled_from(["", "   ", "# only words 1:2", "\t# x"])))
            continue
        keys = list(range(1, width + 1)) if full else draw(st.lists(st.integers(1, width), unique=True, max_size=width))
        blank = draw(st.sampled_from([" ", "  ", "\t"]))
        pairs = [f"{k}:{draw(st.sampled_from(['0', '1', '-2.5', '1e3', '0.471076']))}" for k in keys]
        grade = draw(st.sampled_from(["0", "1", "-2", "0.5", "3"]))
        tail = draw(st.sampled_from(["", " ", " #docid = G:1 2:3", "\r"]))
        lines.append(blank.join([grade, f"qid:{draw(st.sampled_from(names))}", *pairs]) + tail)
    lines.append("1 qid:1 1:1")
    return "\n".join(lines) + draw(st.sampled_from(["\n", "", "\n\n"]))


@settings(max_examples=300)
@given(
    letor_text(),
    st.integers(16, 300),
    st.sampled_from(["auto", True, False]),
    st.sampled_from([np.float32, np.float64]),
)
def test_rows_equal_the_slow_reader(text, block, sparse, dtype):
    X, grade, names = slow_reader(text.replace("\r", ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_text, "BLOCK", block)
        q = table(text, sparse=sparse, dtype=dtype)
    dense = q.X if isinstance(q.X, np.ndarray) else q.X.toarray()
    assert isinstance(q.X, np.ndarray) is (not sparse if sparse != "auto" else isinstance(q.X, np.ndarray))
    assert dense.dtype == dtype
    np.testing.assert_array_equal(q.restore(dense), X.astype(dtype))
    np.testing.assert_array_equal(q.restore(q.grade), grade)
    named = [str(q.qid[k]) for k in q.restore(q.query)]
    assert named == names
    whole = all(name.isascii() and name.isdigit() and str(int(name)) == name and len(name) <= 18 for name in names)
    assert all(isinstance(name, int if whole else str) for name in q.qid)


def test_bad_lines_are_counted_across_blocks(monkeypatch):
    monkeypatch.setattr(sparse_text, "BLOCK", 64)
    lines = [f"{k % 3} qid:{k // 10} 1:{k} 2:0.5" for k in range(200)]
    for k in (3, 77, 150):
        lines[k] = lines[k].replace("0.5", "NaN")
    lines[90] = "oops"
    with pytest.raises(
        DataError, match=r"<stream>:4: feature 2 has the value 'NaN'.*\(3 such lines\) and 1 bad lines of other"
    ):
        table("\n".join(lines))
    with pytest.warns(DataWarning, match=r"left out 4 lines: 3 such as line 4 .*, 1 such as line 91 \(grade 'oops'"):
        q = table("\n".join(lines), on_error="skip")
    left = [k for k in range(200) if k not in (3, 77, 90, 150)]
    np.testing.assert_array_equal(q.X[:, 0], left)
    np.testing.assert_array_equal(q.grade, [k % 3 for k in left])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 qid:1 1:1 1:2", "feature 1 occurs more than once"),
        ("1 qid:1 3:1 2:2 3:2", "feature 3 occurs more than once"),
        ("1 qid:1 1000000000:1", r"feature index 1000000000 is not in 1\.\.16777216 .*max_features"),
        ("1 qid:1 99999999999999999999:1", "feature index 99999999999999999999 is not in"),
        ("1 qid:1 0:1", r"feature index 0 .*zero_based=True"),
        ("1 qid:1 -1:1", "'-1:1' is not feature:value"),
        ("1 1:1", r"no qid: .*group="),
        ("1", "no qid:"),
        ("1 qid: 1:1", "query name after qid: is empty"),
        ("1 1:1 qid:3", "no qid:"),
        ("1 qid:1 1:1 qid:3", "'qid:3' is not feature:value"),
        ("1 qid:1 x", "'x' is not feature:value"),
        ("1 qid:1 1:", "feature 1 has the value ''"),
        ("1:2 qid:1 1:1", "grade '1:2'"),
        ("1 qid:1 1:1e999", "beyond any finite"),
        ("1e999 qid:1 1:1", "beyond any finite"),
        ("1 qid:1 1:2\x0b3:4", "not"),
        ("1 qid:1 " + "1:2;" * 100, r"\.\.\."),
    ],
)
def test_each_bad_line_is_named_and_can_be_left_out(line, said):
    text = f"2 qid:1 1:5\n{line}\n# fine\n\n0 qid:1 2:6\n"
    with pytest.raises(DataError, match=f"<stream>:2: .*{said}|<stream>:2: {said}"):
        table(text)
    with pytest.warns(DataWarning, match=r"left out 1 line: 1 such as line 2"):
        q = table(text, on_error="skip")
    np.testing.assert_array_equal(q.X, [[5, 0], [0, 6]])


def test_float32_overflow_is_named():
    with pytest.raises(DataError, match=r"<stream>:2: value 1e\+300 does not fit float32 .*dtype=np.float64"):
        table("1 qid:1 1:1\n1 qid:1 1:1e300\n", dtype=np.float32)
    with pytest.warns(DataWarning):
        assert table("1 qid:1 1:1\n1 qid:1 1:1e300\n", dtype=np.float32, on_error="skip").X.tolist() == [[1]]


def test_other_types_are_refused():
    with pytest.raises(ValueError, match=r"dtype .* is not possible; choose from float32, float64"):
        table("1 qid:1 1:1\n", dtype=int)


def test_bounds_of_features():
    assert table("1 qid:1 1:1\n", n_features=5).n_features == 5
    assert table("1 qid:1 0:1\n", zero_based=True).n_features == 1
    q = table("1 qid:1 1000000000:1\n", max_features=10**9)
    assert q.n_features == 10**9
    assert not isinstance(q.X, np.ndarray)
    with pytest.raises(DataError, match=r"feature index 6 is not in 1\.\.5"):
        table("1 qid:1 6:1\n", n_features=5)
    for wrong in (0, -1, 2**31):
        with pytest.raises(ValueError, match="number of features"):
            table("1 qid:1 1:1\n", n_features=wrong)


def test_dense_or_sparse_by_density():
    assert isinstance(table("1 qid:1 4:1\n").X, np.ndarray)  # a quarter
    assert not isinstance(table("1 qid:1 5:1\n").X, np.ndarray)
    assert not isinstance(table("1 qid:1 1:1\n", sparse=True).X, np.ndarray)
    assert isinstance(table("1 qid:1 5:1\n", sparse=False).X, np.ndarray)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", " "])
def test_empty_text_is_an_error(text):
    with pytest.raises(DataError, match="no rows"):
        table(text)


def test_groups_from_sizes(tmp_path):
    text = "1 1:1\n# words\n0 1:2\n2 1:3\n"
    (tmp_path / "f.query").write_text("1\n2\n")
    for group in ([1, 2], tmp_path / "f.query", str(tmp_path / "f.query"), io.StringIO("1\n2\n")):
        q = table(text, group=group)
        assert q.offsets.tolist() == [0, 1, 3]
    with pytest.raises(DataError, match="3 rows, but group sizes add up to 4"):
        table(text, group=[2, 2])
    with pytest.raises(DataError, match="whole numbers"):
        table(text, group=[1.5, 1.5])
    for wraps in ([2**62] * 4 + [3], np.array([2**63 - 1, 2**63 - 1, 5])):  # 3 rows, modulo 2^64
        with pytest.raises(DataError, match=f"3 rows, but group sizes add up to {sum(map(int, wraps))}"):
            table(text, group=wraps)
    with pytest.raises(DataError, match="add up to 1844"):
        table(text, group=io.StringIO("999999999999999999\n" * 18 + "446744073709551634\n"))
    with pytest.raises(DataError, match=r":2: '1_0' is not a whole number \(1 such line\); write one size per line$"):
        table(text, group=io.StringIO("1\n1_0\n"))
    with pytest.warns(DataWarning):
        q = table("1 1:1\n0 1:x\n2 1:3\n", group=[1, 2], on_error="skip")
    assert q.offsets.tolist() == [0, 1, 2]
    assert q.X.ravel().tolist() == [1, 3]


def test_rows_of_a_query_may_lie_apart():
    q = table("1 qid:b 1:1\n2 qid:a 1:2\n3 qid:b 1:3\n")
    assert q.qid == ("b", "a")
    assert q.grade.tolist() == [1, 3, 2]
    assert q.restore(q.grade).tolist() == [1, 2, 3]


@settings(max_examples=100)
@given(st.data())
def test_a_written_file_reads_back_equal(tmp_path_factory, data):
    n, d = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4))
    values = st.one_of(st.just(0.0), st.floats(-1e300, 1e300), st.floats(-9, 9, width=32))
    X = np.array(data.draw(st.lists(values, min_size=n * d, max_size=n * d))).reshape(n, d)
    grade = data.draw(st.lists(st.floats(-1e9, 1e9), min_size=n, max_size=n))
    qid = data.draw(
        st.lists(
            st.sampled_from(data.draw(st.sampled_from([[3, 1, 10**12], ["a", "ß:1", "0x"]]))), min_size=n, max_size=n
        )
    )
    suffix = data.draw(st.sampled_from(["", ".gz", ".xz", ".zst", ".bz2"]))
    path = tmp_path_factory.mktemp("letor") / f"file.svm{suffix}"
    dense = Queries.from_arrays(X, grade, qid)
    write_letor(dense, path)
    assert read_letor(path, sparse=False) == dense
    from scipy.sparse import csr_matrix

    sparse = Queries.from_arrays(csr_matrix(X), grade, qid)
    write_letor(sparse, path)
    assert read_letor(path, n_features=d, sparse=True) == sparse
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_what_cannot_be_written_is_refused(tmp_path):
    X, grade = np.ones((2, 1)), [0, 1]
    for queries, said in (
        (Queries.from_arrays(X, grade, ["a b", "c"]), "'a b' cannot be written"),
        (Queries.from_arrays(X, grade, ["a", "c"], weight=[1, 2]), "query weights"),
        (Queries.from_arrays(X * np.nan, grade, ["a", "c"], missing="keep"), "missing values"),
    ):
        with pytest.raises(DataError, match=said):
            write_letor(queries, tmp_path / "f.svm")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("threads", ["1", "3"])
def test_full_rows_go_straight_into_one_table(threads, monkeypatch):
    """Blank, bad and late wide lines leave gaps that must close; the result does not depend on the number of threads."""
    monkeypatch.setattr(sparse_text, "BLOCK", 256)
    monkeypatch.setenv("PLACET_THREADS", threads)
    lines = [f"{k % 5} qid:{k // 7} 1:{k} 2:{k / 8} 3:-{k}" for k in range(500)]
    expected = np.array([[k, k / 8, -k] for k in range(500)])
    np.testing.assert_array_equal(table("\n".join(lines)).X, expected)
    gaps = [line + ("\n\n# gap\n" if k % 11 == 0 else "") for k, line in enumerate(lines)]
    np.testing.assert_array_equal(table("\n".join(gaps)).X, expected)
    first = lines[0] + " # " + "x" * 200  # the estimate of rows from the first block is far too low
    many = table("\n".join([first, *(lines[1:] * 6)]))
    np.testing.assert_array_equal(many.restore(many.X), np.vstack([expected[:1], *[expected[1:]] * 6]))
    wider = [*lines, "0 qid:x 1:1 2:2 3:3 4:4"]
    np.testing.assert_array_equal(table("\n".join(wider)).X[:500, :3], expected)
    ragged = [*lines[:300], "0 qid:x 2:9", *lines[300:]]
    q = table("\n".join(ragged))
    X = q.restore(q.X)
    np.testing.assert_array_equal(np.delete(X, 300, axis=0), expected)
    assert X[300].tolist() == [0, 9, 0]


def test_a_line_longer_than_a_block(monkeypatch):
    monkeypatch.setattr(sparse_text, "BLOCK", 64)
    line = "1 qid:1 " + " ".join(f"{k}:{k}" for k in range(1, 500))
    q = table(f"{line}\n0 qid:1 # {'x' * 1000}\n{line}")
    np.testing.assert_array_equal(q.X, np.outer([1, 0, 1], np.arange(1, 500)))


def test_a_far_index_takes_no_memory_and_is_said():
    q = table("1 qid:1 1:1 16777216:1\n0 qid:1 2:1\n")
    assert q.X.nnz == 3
    assert q.X.data.nbytes + q.X.indices.nbytes + q.X.indptr.nbytes < 100
    assert q.notes[0].startswith("read as letor: of 16,777,216 features only 3 occur")
    assert table("1 qid:1 1:1\n").notes == ()
