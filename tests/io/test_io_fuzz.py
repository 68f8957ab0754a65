"""Whatever the bytes, a reader returns or raises ``DataError``: never another exception, never much memory."""

import bz2
import gzip
import io
import lzma
import tracemalloc
import warnings

import polars as pl
import pytest
import zstandard
from hypothesis import given, settings, strategies as st

import placet.io as pio
from placet.data import DataError

VALID = {
    "letor": [b"1 qid:1 1:0.5 2:1 #docid = a\n0 qid:1 1:0.25 2:3e-5\n2 qid:b 2:-1 1:7\n"],
    "letor-agg": [b"1 qid:1 1:3 2:NULL #docid = a\n0 qid:1 1:1 2:1 #docid = b\n"],
    "preflib": [
        b"# DATA TYPE: toi\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: x\n# NUMBER VOTERS: 3\n2: 1,{2,3}\n1: 3\n"
    ],
    "ballots": [b'# items: A = B = C = "d e"\n3: A > B # c\n0.5: B > A = C\n"d e" = C\n'],
    "battles": [b'model_a,model_b,winner\nx,y,tie\n"y, z",z,model_a\nx,z,z\n'],
    "ratings": [
        b"1\t10\t3\t881250949\n1\t11\t5\t881250949\n",
        b"userId,movieId,rating\n1,2,3.5\n",
        b"1::2::3::4\n2::2::1::4\n",
    ],
    "trec-run": [b"301 Q0 d1 1 2.5 tag\n301 Q0 d2 2 1.5 tag\n"],
    "qrels": [b"301 0 d1 1\n301 0 d2 0\n", b"51 2 d1 1\n51 3 d1 -2\n"],
    "xmc": [b"2 3 4\n0,2 0:1 2:0.5\n 1:2\n"],
    "preferences": [b'anna: tea > milk > "w: x"\n"b: c": milk > tea\nanna: tea > milk\n'],
    "features": [b"qid,label,f0,f1\n7,2,0.5,1\n7,0,0.25,3\n"],
}
TABLES = [
    b"ballot,item,rank,weight\n1,A,1,2\n1,B,1,2\n2,B,1,1\n",
    b"A,B,C,count\n1,2,,2\n2,1,1,1\n",
    b"1,2,3\nA,B,\nB,A,C\n",
    b'{"model_a": "x", "model_b": "y", "winner": "tie", "n": {"q": [1]}}\n{"model_a": "x", "model_b": "y", "winner": 1}\n',
]
NASTY = [
    b"\0",
    b"\xff",
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b'"',
    b"nan",
    b"inf",
    b"1e999",
    b"-1",
    b"1_0",
    b"0x1",
    b":",
    b",",
    b"#",
    b">",
    b"=",
    b"{",
    b"}",
]
NASTY += [
    b"999999999999999999999",
    b"1000000000",
    b"qid:",
    b"NULL",
    b"::",
    b"\xef\xbb\xbf",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"Q0",
    b"0.",
    b".",
]


@st.composite
def mutated(draw, seeds):
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 8)))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            data[at:end] = draw(st.sampled_from(NASTY))
        elif kind == 1:
            data[at:end] = draw(st.binary(max_size=4))
        elif kind == 2:
            data[at:at] = data[draw(st.integers(0, len(data))) :][:40]
        else:
            del data[at:]
    return bytes(data)


def survives(read, *args, **options):
    """Call a reader; anything but an answer, a ``DataError`` or a ``DataWarning`` fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", pio.DataWarning)
        try:
            found = read(*args, **options)
        except DataError:
            return
    described = getattr(found, "describe", None)
    if described is not None:
        described()


fuzz = settings(max_examples=150)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("kind", VALID)
@fuzz
@given(data=st.data())
def test_mutated_files(kind, on_error, data):
    survives(pio.FORMATS[kind].read, io.BytesIO(data.draw(mutated(VALID[kind]))), on_error=on_error)


@pytest.mark.parametrize("kind", VALID)
@fuzz
@given(data=st.binary(max_size=300))
def test_arbitrary_bytes(kind, data):
    survives(pio.FORMATS[kind].read, io.BytesIO(data))


@fuzz
@given(
    mutated([*TABLES, *VALID["battles"], *VALID["ratings"]]),
    st.sampled_from(["csv", "tsv", "jsonl"]),
    st.sampled_from(["raise", "skip"]),
)
def test_mutated_tables(data, format, on_error):
    survives(pio.read_battles, io.BytesIO(data), format=format, on_error=on_error)
    survives(pio.read_ratings, io.BytesIO(data), format=format, on_error=on_error)
    survives(pio.read_ballots, io.BytesIO(data), format=format, on_error=on_error)
    columns = {"ballot": "ballot", "better": "item", "worse": "rank"}
    survives(pio.read_preferences, io.BytesIO(data), format=format, on_error=on_error, **columns)
    for layout in ("long", "ranks", "places"):
        survives(pio.read_ballots, io.BytesIO(data), format=format, layout=layout, on_error=on_error)


@settings(max_examples=400)
@given(
    mutated([seed for seeds in VALID.values() for seed in seeds] + TABLES),
    st.sampled_from(["", ".txt", ".csv", ".svm", ".toi", ".jsonl", ".data", ".parquet"]),
)
def test_guessing(data, suffix):
    stream = io.BytesIO(data)
    stream.name = "file" + suffix
    survives(pio.read, stream)
    survives(pio.read_judged, io.BytesIO(data), io.BytesIO(VALID["qrels"][0]))
    survives(pio.read_judged, io.BytesIO(b"1\n2\n3\n"), io.BytesIO(data))


def packed():
    text = VALID["ballots"][0] * 20
    frame = pl.DataFrame({"model_a": ["x", "y"], "model_b": ["y", "z"], "winner": ["a", "tie"]})
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    return [
        gzip.compress(text),
        lzma.compress(text),
        bz2.compress(text),
        zstandard.ZstdCompressor().compress(text),
        zstandard.ZstdCompressor(write_checksum=True).compress(text),
        parquet.getvalue(),
    ]


@settings(max_examples=400)
@given(mutated(packed()))
def test_mutated_archives_and_parquet(data):
    survives(pio.read_ballots, io.BytesIO(data))
    survives(pio.read_battles, io.BytesIO(data))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("letor", b"1 qid:1 16777216:1\n" * 200),
        ("letor", b"1 qid:1 1000000000:1\n"),
        ("letor-agg", b"1 qid:1 4096:1\n" * 200),
        ("preflib", b"# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 999999999\n1: 1\n"),
        ("xmc", b"999999999999 16777216 16777216\n0 0:1\n"),
        ("xmc", b"1 999999999999 3\n0 0:1\n"),
        ("xmc", b"2 3 4\n9999999999999999999990,2 0:1 99999999999:1\n 1:2\n"),
        ("ballots", b"1e300: A > B\n"),
        ("trec-run", b"1 Q0 d 999999999999999999999 1 t\n"),
    ],
)
def test_large_numbers_take_little_memory(kind, text):
    survives(pio.FORMATS[kind].read, io.BytesIO(VALID[kind][0]))  # compile first
    tracemalloc.start()
    try:
        survives(pio.FORMATS[kind].read, io.BytesIO(text))
        assert tracemalloc.get_traced_memory()[1] < 48e6
    finally:
        tracemalloc.stop()


def test_a_long_run_of_blanks_takes_linear_time():
    for kind in VALID:
        for piece in (b" ", b'"', b">", b"=", b"1", b"{", b",", b"\t", b"A ", b":"):
            survives(pio.FORMATS[kind].read, io.BytesIO(VALID[kind][0] + piece * 100_000))
