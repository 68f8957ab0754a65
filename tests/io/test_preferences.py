"""Preferences of any shape: their reader, rows with features, and the most probable tiers."""

import io
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
from placet.data import DataError, Queries, Rankings
from placet.io import DataWarning, read_preferences, write_preferences
from placet.losses.pairwise import outcome_costs
from placet.rank import LinearRanker
from placet.rank.probabilities import most_probable_tiers

TIED = ["rao-kupper", "davidson"]


def compositions(n):
    """All ways to cut n rows in a row: the tier of each."""
    for cuts in itertools.product([0, 1], repeat=max(n - 1, 0)):
        yield np.concatenate([[0], np.cumsum(cuts)]).astype(int) if n else np.zeros(0, int)


def log_probability(s, tier, loss, tie):
    total = 0.0
    for i, j in itertools.combinations(range(len(s)), 2):
        win, lose, tied = outcome_costs(s[i] - s[j], loss, tie)
        total -= float(tied if tier[i] == tier[j] else win if tier[i] < tier[j] else lose)
    return total


@pytest.mark.parametrize("loss", TIED)
@settings(max_examples=30)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6, unique=True), st.floats(-2, 2))
def test_the_tiers_are_the_most_probable_ones_that_agree_with_the_scores(loss, scores, tie):
    s = np.array(scores)
    order = np.argsort(-s, kind="stable")
    candidates = []
    for cut in compositions(len(s)):
        tier = np.empty(len(s), int)
        tier[order] = cut
        candidates.append((log_probability(s, tier, loss, tie), tier))
    best = max(value for value, _ in candidates)
    found = most_probable_tiers(s, loss, {"tie": tie})
    assert log_probability(s, found, loss, tie) == pytest.approx(best, abs=1e-9)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))


def test_equal_scores_share_a_tier():
    for loss in TIED:
        assert len(set(most_probable_tiers([1.0, 1.0, 1.0], loss, {"tie": -5.0}).tolist())) == 1
        assert len(most_probable_tiers([], loss, {})) == 0


def test_rankers_predict_tiers():
    rng = np.random.default_rng(0)
    X = np.repeat([[3.0], [0.0], [-3.0]], 4, axis=0) + 0.01 * rng.normal(size=(12, 1))
    X, qid = np.tile(X, (30, 1)), np.repeat(np.arange(30), 12)
    grade = np.tile(np.repeat([2, 1, 0], 4), 30)
    shuffle = rng.permutation(len(X))
    ranker = LinearRanker("davidson").fit(X[shuffle], grade[shuffle], qid[shuffle])
    tiers = ranker.predict_tiers(X[shuffle], qid[shuffle])
    np.testing.assert_array_equal(tiers, 2 - grade[shuffle])
    with pytest.raises(ValueError, match="'pl-partition' gives no probability of ties; fit with one of"):
        LinearRanker("pl-partition").fit(X, grade, qid).predict_tiers(X, qid)


@st.composite
def ballots(draw):
    names = draw(
        st.lists(
            st.text('ab :>="#é', min_size=1, max_size=4).map(str.strip).filter(bool),
            min_size=2,
            max_size=5,
            unique=True,
        )
    )
    orders = []
    for _ in range(draw(st.integers(1, 4))):
        chosen = draw(st.permutations(names))
        cut = draw(st.integers(1, len(names) - 1))
        orders.append([tuple(chosen[:cut]), tuple(chosen[cut:])])
    return Rankings.from_orders(orders, items=names, agent=[f"v{k}: x" for k in range(len(orders))])


@settings(max_examples=60)
@given(ballots(), st.sampled_from([None, "csv", "jsonl"]))
def test_what_is_written_reads_back(data, format):
    target = io.BytesIO()
    write_preferences(data, target, format=format)
    assert read_preferences(io.BytesIO(target.getvalue()), items=data.items, format=format) == data


def test_lines_of_a_list_may_stand_anywhere_and_cycles_are_named():
    text = "anna: a > b\nbert: a > b > a\n\n# a comment\nanna: b > c\ncarl: x > y\n"
    with pytest.raises(DataError, match=r"<stream>:2: list 'bert': .* cycle, .*\(1 such list\); remove one"):
        read_preferences(io.StringIO(text))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_preferences(io.StringIO(text), on_error="skip")
    assert found.describe()["votes"] == 3  # a > b, b > c, x > y: nobody said a > c
    assert found.agents == ("anna", "carl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ballots = read_preferences(io.StringIO(text), on_error="skip", kind="ballots")
    assert ballots.orders() == [["a", "b", "c"], ["x", "y"]]
    assert [w.category for w in caught] == [DataWarning]
    for bad, why in (("a > b\n", "names no list"), ("x: a = b\n", "is not a preference"), ("x: a > \n", "empty place")):
        with pytest.raises(DataError, match=f"<stream>:1: .*{why}"):
            read_preferences(io.StringIO(bad))
    with pytest.raises(DataError, match="item 'b' of 'x' is not among"):
        read_preferences(io.StringIO("x: a > b\n"), items=["a"])
    loose = read_preferences({"list": [1, 1], "over": ["a", "c"], "under": ["b", "d"]}, kind="ballots")
    assert "1 of 1 lists separate no two groups of items" in loose.notes[1]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda p: p[0] < p[1]), min_size=1, max_size=6),
        min_size=1,
        max_size=3,
    )
)
def test_pairs_are_ballots_only_if_every_list_states_all_pairs_across_tiers(lists):
    rows = [(k, str(a), str(b)) for k, own in enumerate(lists) for a, b in own]
    table = dict(zip(("list", "over", "under"), map(list, zip(*rows))))
    found = read_preferences(table)
    complete = []
    for own in map(set, lists):
        names = sorted({name for pair in own for name in pair})
        bound = [t for t in itertools.product(range(len(names)), repeat=len(names)) if set(t) == set(range(max(t) + 1))]
        across = [{(a, b) for a, s in zip(names, t) for b, u in zip(names, t) if s < u} for t in bound]
        complete.append(own in across)
    assert isinstance(found, Rankings) == all(complete)
    if not all(complete):
        assert found.describe()["votes"] == sum(len(set(own)) for own in lists)
        assert any("is a vote of its list" in note for note in found.notes)
    else:
        assert any("ordered partition" in note for note in found.notes)


def test_chains_of_pairs_give_the_right_winner():
    rng = np.random.default_rng(0)
    theta = np.array([1.0, 0.5, 0.0, -0.5])
    rows = []
    for voter in range(400):
        for i, j in ((0, 1), (1, 2), (2, 3)):
            a, b = (i, j) if rng.random() < 1 / (1 + np.exp(theta[j] - theta[i])) else (j, i)
            rows.append((voter, "abcd"[a], "abcd"[b]))
    data = read_preferences(dict(zip(("list", "over", "under"), map(list, zip(*rows)))))
    found = placet.consensus(data)
    assert found.ranking == ["a", "b", "c", "d"]
    a, d = found.items.index("a"), found.items.index("d")
    assert abs(found.scores[a] - found.scores[d] - 1.5) < 4 * np.hypot(found.stderr[a], found.stderr[d])


def test_writing_refuses_what_has_no_place():
    with pytest.raises(DataError, match="1 tiers"):
        write_preferences(Rankings.from_orders([[("a", "b")]]), io.BytesIO())
    with pytest.raises(DataError, match="weights"):
        write_preferences(Rankings.from_orders([["a", "b"]], weight=[2]), io.BytesIO())
    with pytest.raises(DataError, match="several ballots"):
        write_preferences(Rankings.from_orders([["a", "b"], ["b", "a"]], agent=["x", "x"]), io.BytesIO())


def test_rows_with_features():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    qid = np.repeat(np.arange(20), 10)[rng.permutation(200)]
    truth = X @ [1.0, -1.0]
    pairs = [(i, j) for i, j in rng.integers(0, 200, (900, 2)) if qid[i] == qid[j] and truth[i] > truth[j]]
    better, worse = np.array(pairs).T
    queries = Queries.from_preferences(X, better, worse, qid)
    kept = np.unique(np.concatenate([better, worse]))
    assert sorted(queries.row.tolist()) == kept.tolist()
    np.testing.assert_array_equal(queries.X, X[queries.row])
    assert f"{200 - len(kept)} of 200 rows" in queries.notes[0]
    rows = dict(zip(queries.row.tolist(), queries.grade))
    by_query = Rankings.from_preferences({"q": qid[better], "a": better, "b": worse}, ballot="q", better="a", worse="b")
    for ballot in by_query:
        grades = [{rows[row] for row in tier} for tier in ballot]
        assert grades == [{len(ballot) - 1 - k} for k in range(len(ballot))]
    assert LinearRanker("ranknet").fit(queries).coef_ @ [1.0, -1.0] > 0
    with pytest.raises(DataError, match=r"preference 0 is between rows of .* compare rows of one query"):
        Queries.from_preferences(X[:2], [0], [1], ["a", "b"])
    with pytest.raises(DataError, match=r"worse\[0\] is row 7; rows are 0 to 1"):
        Queries.from_preferences(X[:2], [0], [7], ["a", "a"])
    with pytest.raises(DataError, match="query 'a', rows: preferences go round in a cycle"):
        Queries.from_preferences(X[:2], [0, 1], [1, 0], ["a", "a"])


def test_from_the_command_line(placet_command, tmp_path):
    out = tmp_path / "drawn.toc"
    placet_command("simulate", "ordered-partitions", "--out", out, "--items", 5, "--n", 40, "--seed", 1)
    drawn = placet.read(out)
    assert drawn.weight.sum() == 40
    assert any(len(tier) > 1 for ballot in drawn for tier in ballot)
    placet_command("simulate", "ordered-partitions", "--out", out, "--form", "half", code=2)
    (tmp_path / "p.prefs").write_text("anna: tea > milk\nbert: tea > milk\ncarl: milk > tea\n")
    placet_command("aggregate", tmp_path / "p.prefs", "--method", "pmop-fd", "--json")
    (tmp_path / "bad.prefs").write_text("anna: tea > milk > tea\n")
    placet_command("aggregate", tmp_path / "bad.prefs", code=2)


def test_a_table_without_faults_is_read_once(tmp_path, monkeypatch):
    path = tmp_path / "votes.csv"
    path.write_text("ballot,over,under\n" + "".join(f"b{k},x,y\n" for k in range(300)))
    monkeypatch.setattr(
        "placet.io.tables.row_sources.Delimited.lines", None
    )  # which reads the file again for the number of a line
    assert len(placet.read(path)) == 300
    path.write_text("ballot,over,under\n" + "".join(f"b{k},x,y\nb{k},y,x\n" for k in range(300)))
    asked = []
    monkeypatch.setattr(
        "placet.io.tables.row_sources.Delimited.lines", lambda self, records: asked.append(records) or list(records)
    )
    with pytest.raises(placet.DataError, match=r"go round in a cycle.*\(300 such lists\)"):
        placet.read(path)
    assert len(asked) == 2  # of the kind of fault, and of the first hundred
