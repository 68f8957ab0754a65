"""Ballots, PrefLib, TREC, LETOR-agg and multi-label text: round trips, bad lines, and formats guessed."""

import io
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from preflibtools.instances import OrdinalInstance
from scipy.sparse import csr_matrix

import placet
import placet.io as pio
from placet.data import Comparisons, DataError, Queries, Rankings, Scores
from placet.io import DataWarning, LetorAgg, MultiLabel, Qrels
from placet.io.formats import NOT_WRITTEN

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=6)
odd_words = st.one_of(
    words, st.sampled_from(["a > b", "x = y", "# c", '"q"', "12: z", " blank ", "3", "nan:", "items:", "é, ü"])
)


def text_of(text):
    return io.StringIO(text)


@st.composite
def ballots(draw, names=odd_words, whole=False, empty=True):
    items = draw(st.lists(names, min_size=2, max_size=5, unique=True))
    orders, weights = [], []
    for _ in range(draw(st.integers(1, 6))):
        chosen = draw(st.permutations(items))[: draw(st.integers(0 if empty else 1, len(items)))]
        order, rest = [], list(chosen)
        while rest:
            size = draw(st.integers(1, len(rest)))
            order.append(tuple(rest[:size]))
            rest = rest[size:]
        orders.append(order)
        weights.append(draw(st.integers(1, 10**6) if whole else st.floats(0, 1e9)))
    return Rankings.from_orders(orders, items=items, weight=weights)


# Ballots as text


@settings(max_examples=200)
@given(ballots())
def test_written_ballots_read_back_equal(rankings):
    text = io.StringIO()
    pio.write_ballots(rankings, text)
    assert pio.read_ballots(text_of(text.getvalue())) == rankings


def test_ballots_as_people_write_them():
    read = pio.read_ballots(text_of('# a poll\n12: A>B = C # best\n\n  B > "A > C"  \n0.5:C\n3:\n'))
    assert list(read) == [[("A",), ("B", "C")], [("B",), ("A > C",)], [("C",)], []]
    assert read.weight.tolist() == [12, 1, 0.5, 3]
    last = pio.read_ballots(text_of("A > B\nC\n"), unlisted="last")
    assert list(last) == [[("A",), ("B",), ("C",)], [("C",), ("A", "B")]]
    assert pio.read_ballots(text_of("# items: Z = A\nA\n")).items == ("Z", "A")
    assert pio.read_ballots(text_of("A\n"), items=["Q", "A"]).items == ("Q", "A")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("A > A", "item 'A' occurs more than once on one ballot"),
        ("A > > B", "empty place"),
        ("> A", "empty place"),
        ("A =", "empty place"),
        ('"A > B', "open quote"),
        ('"A" B > C', "open quote"),
        ("-1: A", "weight '-1' is not"),
        ("nan: A", "weight 'nan' is not"),
        ("inf: A", "weight 'inf' is not"),
        ("1_000: A", "weight '1_000' is not"),
        ("0x10: A", "weight '0x10' is not"),
        ("1e999: A", "weight '1e999' is not"),
    ],
)
def test_bad_ballots_are_named_and_can_be_left_out(line, said):
    text = f"A > B\n{line}\nB\n"
    with pytest.raises(DataError, match=rf"<stream>:2: .*{said}.* \(1 such line\); a line is: count: A > B = C"):
        pio.read_ballots(text_of(text))
    with pytest.warns(DataWarning, match="left out 1 line: 1 such as line 2"):
        assert list(pio.read_ballots(text_of(text), on_error="skip")) == [[("A",), ("B",)], [("B",)]]


def test_strange_items_are_named():
    with pytest.raises(DataError, match=r"<stream>:3: item 'C' is not among the given items \(1 such line\)"):
        pio.read_ballots(text_of("# items: A = B\nA > B\nA > C\n"))
    with pytest.raises(DataError, match="no ballots"):
        pio.read_ballots(text_of("# only words\n"))
    with pytest.raises(ValueError, match="layout 'tall' is unknown"):
        pio.read_ballots(text_of("A"), layout="tall")
    with pytest.raises(ValueError, match="on_error 'ignore' is unknown"):
        pio.read_ballots(text_of("A"), on_error="ignore")
    with pytest.raises(DataError, match="cannot be written"):
        pio.write_ballots(Rankings.from_orders([["a\nb"]]), io.StringIO())


# PrefLib


@settings(max_examples=100)
@given(rankings=ballots(names=words, whole=True, empty=False))
def test_written_preflib_reads_back_equal_and_as_preflibtools_does(rankings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("preflib")
    path = folder / "votes.toi"
    pio.write_preflib(rankings, path)
    back = pio.read_preflib(path)
    assert back == rankings.collapsed()
    peer = OrdinalInstance(str(path))
    assert peer.num_voters == back.weight.sum()
    assert [peer.multiplicity[order] for order in peer.orders] == back.weight.tolist()
    codes = [[{back.index[name] + 1 for name in tier} for tier in ballot] for ballot in back]
    assert codes == [[set(tier) for tier in order] for order in peer.orders]


def test_preflib_data_types(tmp_path):
    strict = Rankings.from_orders([["a", "b"], ["b", "a"]])
    tied = Rankings.from_orders([[("a", "b")], ["b"]])
    for name in ("x.soc", "x.soi.gz", "x.toi"):
        pio.write_preflib(strict, tmp_path / name)
        assert pio.read_preflib(tmp_path / name) == strict
    for name in ("x.soc", "x.soi", "x.toc"):
        with pytest.raises(DataError, match="are of type toi"):
            pio.write_preflib(tied, tmp_path / name)
    for bad in (
        Rankings.from_orders([["a"]], weight=[0.5]),
        Rankings.from_orders([["a"]], agent=["v"]),
        Rankings.from_orders([[], ["a"]]),
    ):
        with pytest.raises(DataError, match=r"whole numbers|agent|lists nothing"):
            pio.write_preflib(bad, tmp_path / "y.soi")


HEAD = "# DATA TYPE: {kind}\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: x\n# ALTERNATIVE NAME 2: x\n"


@pytest.mark.parametrize(
    ("kind", "line", "said"),
    [
        ("toi", "1: 1,1", "alternative '1' occurs more than once"),
        ("toi", "1: 4", r"alternative '4' is not in 1\.\.3"),
        ("toi", "1: 0", r"alternative '0' is not in 1\.\.3"),
        ("toi", "1: {}", "'{}' is not an order"),
        ("toi", "1: {1,{2}}", "is not an order"),
        ("toi", "1: 1,,2", "is not an order"),
        ("toi", "1,2,3", "is not a count"),
        ("toi", "-1: 1", "'-1' is not a count"),
        ("toi", "1_0: 1", "'1_0' is not a count"),
        ("soi", "1: {1,2}", "ties alternatives in data of type soi"),
        ("toc", "1: {1,2}", "leaves out alternatives in data of type toc"),
    ],
)
def test_bad_preflib_lines_are_named(kind, line, said):
    with pytest.raises(DataError, match=f"<stream>:5: .*{said}.*1 such line"):
        pio.read_preflib(text_of(HEAD.format(kind=kind) + line + "\n"))


def test_preflib_headers():
    read = pio.read_preflib(text_of(HEAD.format(kind="toi") + "2: {1,3},2\n"))
    assert read.items == ("x (1)", "x (2)", "3")
    last = pio.read_preflib(text_of(HEAD.format(kind="toi") + "2: 1\n"), unlisted="last")
    assert list(last) == [[("x (1)",), ("x (2)", "3")]]
    for text, said in (
        ("# DATA TYPE: wmd\n# NUMBER ALTERNATIVES: 3\n1: 1\n", "data type 'wmd'"),
        ("# DATA TYPE: soi\n1: 1\n", "NUMBER ALTERNATIVES is missing"),
        ("# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 999999999999\n1: 1\n", "is not in 1"),
        ("# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 1\n# ALTERNATIVE NAME 7: z\n1: 1\n", "alternative 7 has a name"),
        ("# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 1\n# NUMBER VOTERS: 3\n1: 1\n", "NUMBER VOTERS '3' but there are 1"),
        ("# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 1\n", "no orders"),
    ):
        with pytest.raises(DataError, match=said):
            pio.read_preflib(text_of(text))


# TREC


def test_runs_and_judgments():
    run = pio.read_trec_run(text_of("1 Q0 d1 1 3.5 t\n1 Q0 d2 2 3.5 t\n2 Q0 d1 1 -1e2 t\n1\tQ0  d3 3 0 t\n"))
    assert run.instances == ("1", "2")
    assert run.agents == ("t",)
    assert list(run) == [[("d1", "d2"), ("d3",)], [("d1",)]]
    qrels = pio.read_qrels(text_of("1 0 d1 2\n1 0 d9 1\n3 0 d1 -2\n"))
    assert qrels.subtopics is None
    judged = pio.judge(run, qrels)
    assert judged.qid == ("1", "3")
    assert judged.offsets.tolist() == [0, 4, 5]
    assert judged.name.tolist() == ["d1", "d2", "d3", "d9", "d1"]
    assert judged.score.tolist() == [3.5, 3.5, 0, -np.inf, -np.inf]
    assert judged.grade.tolist() == [2, 0, 0, 1, -2]
    with pytest.raises(DataError, match="none of the 2 topics"):
        pio.judge(run, pio.read_qrels(text_of("7 0 d1 2\n")))
    with pytest.raises(DataError, match="2 runs in one file"):
        pio.judge(pio.read_trec_run(text_of("1 Q0 d 1 1 t\n1 Q0 d 1 1 u\n")), qrels)


def test_subtopics():
    qrels = pio.read_qrels(text_of("1 1 d1 1\n1 2 d1 3\n1 2 d2 0\n2 9 d1 1\n"))
    assert qrels.subtopics == ("1", "2", "9")
    run = pio.read_trec_run(text_of("1 Q0 d2 1 1 t\n1 Q0 d3 1 0 t\n"))
    judged = pio.judge(run, qrels)
    assert judged.grade.tolist() == [0, 0, 3, 1]
    assert judged.judged.toarray().tolist() == [[0, 0], [0, 0], [1, 3], [1, 0]]
    assert pio.read_qrels(text_of("1 0 d1 1\n1 0 d2 3\n"), subtopics=True).subtopics == ("0",)
    with pytest.raises(DataError, match=r"<stream>:2: document 'd1' is judged more than once .*subtopics=True"):
        pio.read_qrels(text_of("1 1 d1 1\n1 2 d1 3\n"), subtopics=False)


@pytest.mark.parametrize(
    ("read", "good", "bad", "said"),
    [
        (pio.read_trec_run, "1 Q0 d 1 1 t", "1 Q0 e 1 nan t", "score 'nan'"),
        (pio.read_trec_run, "1 Q0 d 1 1 t", "1 Q0 d 2 1 t", "document 'd' occurs more than once"),
        (pio.read_trec_run, "1 Q0 d 1 1 t", "1 Q0 e 1 1", "5 fields instead of 6"),
        (pio.read_qrels, "1 0 d 1", "1 0 e 0x10", "grade '0x10'"),
        (pio.read_qrels, "1 0 d 1", "1 0 d 2", "document 'd' is judged more than once"),
        (pio.read_qrels, "1 0 d 1", "1 0 d", "3 fields instead of 4"),
    ],
)
def test_bad_trec_lines_are_named(read, good, bad, said):
    with pytest.raises(DataError, match=rf"<stream>:2: {said}.*\(1 such line\)"):
        read(text_of(f"{good}\n{bad}\n"))
    with pytest.warns(DataWarning, match="left out 1 line"):
        read(text_of(f"{good}\n{bad}\n"), on_error="skip")


@settings(max_examples=80)
@given(st.data())
def test_written_trec_files_read_back_equal(data):
    rows = data.draw(
        st.lists(
            st.tuples(words, words, st.sampled_from("012"), st.floats(-1e9, 1e9)), min_size=1, unique_by=lambda r: r[:3]
        )
    )
    read = pio.read_qrels(text_of("".join(f"{t} {s} {d} {g!r}\n" for t, d, s, g in rows)), subtopics=True)
    out = io.StringIO()
    pio.write_qrels(read, out)
    assert pio.read_qrels(text_of(out.getvalue()), subtopics=True) == read
    unique = {(t, d): g for t, d, _, g in rows}
    run = pio.read_trec_run(text_of("".join(f"{t} Q0 {d} 0 {g!r} tag\n" for (t, d), g in unique.items())))
    out = io.StringIO()
    pio.write_trec_run(run, out)
    back = pio.read_trec_run(text_of(out.getvalue()))
    assert {k: sorted(b) for k, b in zip(back.instances, map(_named, back))} == {
        k: sorted(b) for k, b in zip(run.instances, map(_named, run))
    }
    assert sorted(back.score) == sorted(run.score)
    with pytest.raises(DataError, match="cannot be written"):
        pio.write_trec_run(Rankings.from_orders([["a b"]]), io.StringIO())


def _named(ballot):
    return [(k, name) for k, tier in enumerate(ballot) for name in tier]


# Scores and labels


def test_scores_meet_labels(tmp_path):
    (tmp_path / "labels.txt").write_text("1 qid:b 1:1\n2 qid:a 1:2\n3 qid:b 1:3\n")
    (tmp_path / "scores.txt").write_text("0.1\n0.2\n0.3\n")
    judged = pio.read_judged(tmp_path / "scores.txt", tmp_path / "labels.txt")
    assert judged.qid == ("b", "a")
    assert judged.score.tolist() == [0.1, 0.3, 0.2]
    assert judged.grade.tolist() == [1, 3, 2]
    run, qrels = "1 Q0 d1 1 3.5 t\n", "1 0 d1 2\n"
    assert pio.read_judged(text_of(run), text_of(qrels)).grade.tolist() == [2]
    for scores, labels in ((text_of(run), tmp_path / "labels.txt"), (tmp_path / "scores.txt", text_of(qrels))):
        with pytest.raises(DataError, match="give two that belong together"):
            pio.read_judged(scores, labels)
    (tmp_path / "scores.txt").write_text("0.1\n0.2\n")
    with pytest.raises(DataError, match="2 scores for 3 rows"):
        pio.read_judged(tmp_path / "scores.txt", tmp_path / "labels.txt")


# Rank aggregation and labels

AGG = "2 qid:7 1:3 2:NULL #docid = a inc = 1\n0 qid:8 2:5 #docid = b\n1 qid:7 1:1 2:1 #docid = b\n0 qid:7 1:3 #docid=c\n0 qid:7\n"


def test_rank_aggregation():
    agg = pio.read_letor_agg(text_of(AGG))
    assert repr(agg) == "LetorAgg(2 queries, 5 documents, 2 engines)"
    assert agg.qid == (7, 8)
    assert agg.doc == ("a", "b", "c", "4", "b")
    assert agg.grade.tolist() == [2, 1, 0, 0, 0]
    np.testing.assert_array_equal(agg.rank, [[3, np.nan], [1, 1], [3, np.nan], [np.nan, np.nan], [np.nan, 5]])
    assert list(agg.rankings) == [[("7:b",), ("7:a", "7:c")], [("7:b",)], [("8:b",)]]
    assert [agg.rankings.agents[k] for k in agg.rankings.agent] == [1, 2, 2]
    assert [agg.rankings.instances[k] for k in agg.rankings.instance] == [7, 7, 8]
    assert agg.describe()["documents ranked by no engine"] == 1
    out = io.StringIO()
    pio.write_letor_agg(agg, out)
    assert pio.read_letor_agg(text_of(out.getvalue())) == agg


@pytest.mark.parametrize(
    "bad", ["0 qid:7 1:null", "0 qid:7 1:NULLS", "0 qid:7 1:nan", "0 qid:7 1:1 1:NULL", "0 qid:7 99999:1"]
)
def test_bad_rank_aggregation(bad):
    with pytest.raises(DataError, match="<stream>:6: "):
        pio.read_letor_agg(text_of(AGG + bad + "\n"))


def test_documents_occur_once():
    with pytest.raises(DataError, match="'7:b' occurs more than once"):
        pio.read_letor_agg(text_of(AGG + "0 qid:7 1:1 #docid = b\n"))
    with pytest.raises(DataError, match="no rows with engines"):
        pio.read_letor_agg(text_of("1 qid:7\n"))
    with pytest.raises(DataError, match="is not a finite number"):
        pio.read_letor(text_of(AGG))


@settings(max_examples=80)
@given(st.data())
def test_written_labels_read_back_equal(data):
    n, d, m = (data.draw(st.integers(1, 6)) for _ in range(3))
    X = np.array(data.draw(st.lists(st.sampled_from([0, 0, 1, -0.1, 1e300]), min_size=n * d, max_size=n * d))).reshape(
        n, d
    )
    Y = np.array(data.draw(st.lists(st.booleans(), min_size=n * m, max_size=n * m))).reshape(n, m)
    points = MultiLabel(csr_matrix(X), csr_matrix(Y, dtype=float))
    out = io.StringIO()
    pio.write_xmc(points, out)
    back = pio.read_xmc(text_of(out.getvalue()))
    assert back == points
    np.testing.assert_array_equal(back.X.toarray(), X)
    np.testing.assert_array_equal(back.Y.toarray(), Y)
    assert back.describe()["labels per point"] == pytest.approx(Y.sum() / n)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2 3\n0 0:1\n", "<stream>:1: the header '2 3' is not three whole numbers"),
        ("1 3 1e9\n", "<stream>:1: the header"),
        ("1 3 999999999\n0 0:1\n", "999999999 labels are more than"),
        ("2 3 4\n0 0:1\n", "1 points, but the header says 2"),
        ("1 3 4\n0 0:1\n1 1:1\n", "2 points, but the header says 1"),
        ("1 3 4\n4 0:1\n", "<stream>:2: label '4' is not in 0..3"),
        ("1 3 4\n99999999999 0:1\n", "<stream>:2: label '99999999999' is not in 0..3"),
        ("1 3 4\n1,1 0:1\n", "<stream>:2: a label occurs more than once"),
        ("1 3 4\n1, 0:1\n", "<stream>:2: labels '1,' are not"),
        ("1 3 4\n-1 0:1\n", "<stream>:2: "),
        ("1 3 4\n1 3:1\n", "<stream>:2: feature index 3 is not in 0..2"),
        ("1 3 4\n1 0:nan\n", "<stream>:2: feature 0 has the value 'nan'"),
        ("1 3 4\n1 0:1 0:2\n", "<stream>:2: feature 0 occurs more than once"),
        ("1 3 4\n1 1000000000:1\n", "<stream>:2: feature index 1000000000"),
    ],
)
def test_bad_labels_are_named(text, said):
    with pytest.raises(DataError, match=said):
        pio.read_xmc(text_of(text))


def test_points_may_lack_labels_or_features():
    read = pio.read_xmc(text_of("4 3 4\n0,1 2:1 0:3\n 1:2\n1:5\n\n\n"))
    assert read.X.toarray().tolist() == [[3, 0, 1], [0, 2, 0], [0, 5, 0], [0, 0, 0]]
    assert np.diff(read.Y.indptr).tolist() == [2, 0, 0, 0]
    with pytest.warns(DataWarning, match="left out 1 line: 1 such as line 3"):
        assert len(pio.read_xmc(text_of("3 3 4\n0 0:1\n9 0:1\n1 0:1\n"), on_error="skip")) == 2


# One way in


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("x.txt", "1 qid:1 1:0.5\n", Queries),
        ("x.svm.gz", "1 qid:1 1:0.5\n", Queries),
        ("x.txt", AGG, LetorAgg),
        ("x.txt", "1 qid:1 1:NULL 2:5\n", LetorAgg),
        ("x.toi", HEAD.format(kind="toi") + "1: 1\n", Rankings),
        ("x.txt", HEAD.format(kind="toi") + "1: 1\n", Rankings),
        ("x.txt", "12: A > B\n", Rankings),
        ("x.txt", "A > B = C\n", Rankings),
        ("x.ballots", "A\n", Rankings),
        ("x.csv", "model_a,model_b,winner\nx,y,tie\n", Comparisons),
        ("x.csv", "left,right,winner,agent,weight\nx,y,left,me,2\n", Comparisons),
        ("x.csv", "home_team,away_team,home_score,away_score\nx,y,1,2\n", Comparisons),
        ("x.csv", "userId,movieId,rating\n1,2,3\n", Rankings),
        ("x.csv", "ballot,item,rank\n1,2,3\n", Rankings),
        ("x.csv", "A,B\n1,2\n", Rankings),
        ("x.jsonl", '{"model_a": "x", "model_b": "y", "winner": "tie"}\n', Comparisons),
        ("u.data", "196\t242\t3\t881250949\n", Rankings),
        ("x.txt", "196\t242\t3\t881250949\n", Rankings),
        ("x.dat", "1::2::3::4\n", Rankings),
        ("x.txt", "301 Q0 d1 1 2.5 tag\n", Rankings),
        ("x.txt", "301 0 d1 1\n", Qrels),
        ("x.txt", "1 3 4\n0 0:1\n", MultiLabel),
    ],
)
def test_formats_are_guessed(name, text, kind, tmp_path):
    path = tmp_path / name
    pio.files.write_lines(path, iter(text.rstrip("\n").split("\n")))
    assert isinstance(pio.read(path), kind)
    stream = io.BytesIO(text.encode())
    stream.name = name.removesuffix(".gz")
    assert isinstance(pio.read(stream), kind)


def test_what_cannot_be_guessed_says_so(tmp_path):
    with pytest.raises(DataError, match=r"begins with 'hello world'; name it with format=, one of \['preflib'"):
        pio.read(text_of("hello world\n"))
    with pytest.raises(DataError, match="it is empty"):
        pio.read(text_of(""))
    with pytest.raises(ValueError, match="format 'x' is unknown"):
        pio.read(text_of("A"), format="x")
    with pytest.raises(
        DataError,
        match=r'do not tell which format this is; say format="battles", a="...", b="...", winner="..."; format=',
    ):
        pio.read(_as("x.csv", "left,right\n1,2\n"))
    assert len(pio.read(text_of("A\nB\n"), format="ballots")) == 2
    assert isinstance(pio.read(_as("x.csv", "1,2,3\n1,3,4\n"), format="ratings"), Rankings)


def _as(name, text):
    stream = io.BytesIO(text.encode())
    stream.name = name
    return stream


def test_sizes_beside_the_file(tmp_path):
    (tmp_path / "rank.train").write_text("1 1:1\n0 1:2\n0 1:2\n")
    with pytest.raises(DataError, match="no qid:"):
        pio.read(tmp_path / "rank.train")
    pio.files.write_lines(tmp_path / "rank.train.query.xz", iter(["1", "2"]))
    assert len(pio.read(tmp_path / "rank.train")) == 2


def test_write_chooses_by_suffix_and_type(tmp_path):
    ballots = Rankings.from_orders([["a", "b"]])
    for name in ("x.soc", "x.txt", "x.csv", "x.ballots.gz"):
        pio.write(ballots, tmp_path / name)
        assert pio.read(tmp_path / name) == ballots
    battles = Comparisons.from_battles(["a"], ["b"], ["tie"])
    pio.write(battles, tmp_path / "b.parquet")
    assert pio.read(tmp_path / "b.parquet") == battles
    with pytest.raises(DataError, match=r"Comparisons cannot be written as preflib; choose from battles"):
        pio.write(battles, tmp_path / "b.soc")
    with pytest.raises(DataError, match="int cannot be written"):
        pio.write(7, tmp_path / "b")
    with pytest.raises(ValueError, match="format 'x' is unknown"):
        pio.write(battles, tmp_path / "b", format="x")
    assert pl.read_parquet(tmp_path / "b.parquet").columns == ["model_a", "model_b", "winner", "weight"]


def test_nothing_is_said_when_nothing_is_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pio.read_ballots(text_of("A > B\n"), on_error="skip")


def test_the_page_names_every_format_and_suffix():
    page = (Path(__file__).parents[2] / "docs/howto/formats.md").read_text()
    words = set(page.replace("`", " ").replace(",", " ").split())
    for name, format in pio.FORMATS.items():
        assert format.read.__name__ in words, name
        assert format.kind.__name__ in words, name
        assert set(format.suffixes) <= words, set(format.suffixes) - words


def test_every_format_is_recognized_by_what_it_writes(tmp_path):
    samples = {
        "preflib": Rankings.from_orders([["a", "b"], ["b", "a"]]),
        "letor-agg": pio.read_letor_agg(text_of(AGG)),
        "letor": Queries.from_arrays([[1.0], [2.0]], [0, 1], [1, 1]),
        "xmc": MultiLabel(csr_matrix([[1.0]]), csr_matrix([[1.0]])),
        "trec-run": pio.read_trec_run(text_of("1 Q0 d1 1 3.5 t\n1 Q0 d2 2 2.5 t\n")),
        "qrels": pio.read_qrels(text_of("1 0 d1 2\n1 0 d9 1\n")),
        "preferences": Rankings.from_orders([["a", ("b", "c")], ["b", "a"]], agent=["1", "2"]),
        "battles": Comparisons.from_battles(["x"], ["y"], ["a"]),
        "ratings": Rankings.from_scores(
            {"u": ["1", "1"], "i": ["4", "5"], "r": [1, 2]}, ballot="u", item="i", score="r"
        ),
        "scores": Scores.from_table([[0.5, 0.75], [0.25, 1.5]], items=["x", "y"], tasks=["p", "q"]),
        "features": Queries.from_frame({"qid": [1, 1, 2], "label": [0, 1, 2], "x": [1.0, 2, 3], "y1": [0.5, 0, 1]}),
        "ballots": Rankings.from_orders([["a", ("b", "c")]]),
        "best-worst": Rankings.from_orders([["a", ("b", "c"), "d"]]),
    }
    assert samples.keys() == {name for name, record in pio.FORMATS.items() if record.write}
    for name, data in samples.items():
        for suffix in pio.FORMATS[name].suffixes:
            if suffix not in NOT_WRITTEN and (name != "preflib" or suffix in (".toi", ".soc")):
                pio.write(data, tmp_path / f"file{suffix}", format=name)
                assert type(pio.read(tmp_path / f"file{suffix}")) is pio.FORMATS[name].kind
        if name not in ("best-worst", "preferences", "battles", "ratings", "features", "scores"):
            pio.write(data, tmp_path / "file.txt", format=name)
            assert pio.read(tmp_path / "file.txt") == data


def test_categories_of_preflib_are_ratings(tmp_path):
    path = tmp_path / "club.cat"
    head = "# DATA TYPE: cat\n# NUMBER ALTERNATIVES: 3\n# NUMBER CATEGORIES: 2\n# CATEGORY NAME 1: Yes\n"
    path.write_text(head + "2: {1,3},2\n1: {},{1,2,3}\n1: {2}\n")
    votes = placet.read(path)
    assert list(votes) == [[("1", "3"), ("2",)], [("1", "2", "3")], [("2",)]]
    assert votes.score.tolist() == [1, 1, 0, 0, 0, 0, 1]
    assert votes.weight.tolist() == [2, 1, 1]
    assert placet.read(path, unlisted="last").score.tolist() == [1, 1, 0, 0, 0, 0, 1, 0, 0]
    assert placet.consensus(votes, "approval").scores.tolist() == [2, 1, 2]
    path.write_text(head + "2: {1,4},2\n")
    with pytest.raises(DataError, match="alternative '4' is not in 1..3"):
        placet.read(path)
    with pytest.raises(DataError, match="categories are only read; name the file .toc"):
        placet.write(votes[:1], tmp_path / "other.cat")
    path.write_text(head + "2: {1,,2}\n")
    with pytest.raises(DataError, match="'{1,,2}' is not a list of categories"):
        placet.read(path)
    path.write_text(head.replace("cat", "toi") + "2: {},1\n")
    with pytest.raises(DataError, match="is not an order"):
        placet.read(path)
