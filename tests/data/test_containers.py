"""Rankings, Comparisons, Queries: constructors, invariants, conversions, and what they refuse."""

import itertools
import math
import pickle
import tracemalloc
from collections import defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

import placet
from placet import Comparisons, DataError, Queries, Rankings
from placet.data.arrays import hold_out, with_columns


@st.composite
def ballots(draw, max_items=6, max_ballots=6):
    """Ballots with ties and absences, as from_orders takes them, and their weights."""
    items = list("abcdefgh"[: draw(st.integers(1, max_items))])
    orders, weights = [], []
    for _ in range(draw(st.integers(1, max_ballots))):
        listed = draw(st.lists(st.sampled_from(items), unique=True))
        tiers = [draw(st.integers(0, 3)) for _ in listed]
        groups = [tuple(x for x, t in zip(listed, tiers) if t == k) for k in range(4)]
        orders.append([g if len(g) > 1 else g[0] for g in groups if g])
        weights.append(draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])))
    return items, orders, weights


def rankings_of(drawn):
    items, orders, weights = drawn
    return Rankings.from_orders(orders, items=items, weight=weights)


def pairs_by_definition(rankings, strength):
    """(better, worse) -> weight and (a, b) -> tie weight, by looking at every pair of every ballot."""
    wins, ties = defaultdict(float), defaultdict(float)
    for ballot, weight in zip(rankings, rankings.weight):
        places = [(x, k) for k, tier in enumerate(ballot) for x in tier]
        for (x, k), (y, m) in itertools.combinations(places, 2):
            if k == m:
                ties[frozenset((x, y))] += weight
            else:
                size = 1 if strength == "binary" else abs(k - m)
                wins[(x, y) if k < m else (y, x)] += weight * size
    return wins, ties


# Rankings


@given(ballots())
def test_orders_round_trip(drawn):
    r = rankings_of(drawn)
    again = Rankings.from_orders(r.orders(), items=r.items, weight=r.weight)
    assert again == r
    assert [[set(tier) for tier in ballot] for ballot in r] == [
        [{x} if isinstance(x, str) else set(x) for x in order] for order in drawn[1]
    ]


@given(ballots())
def test_columns_are_read_only_and_in_normal_form(drawn):
    r = rankings_of(drawn)
    for column in (r.item, r.tier, r.offsets, r.weight):
        assert not column.flags.writeable
    for b in range(len(r)):
        tier = r.tier[r.offsets[b] : r.offsets[b + 1]]
        assert (np.diff(tier) >= 0).all()
        assert set(tier) == set(range(len(set(tier))))


def test_the_callers_array_stays_writable():
    weight = np.array([1.0, 2.0])
    r = Rankings.from_orders([["a"], ["b"]], weight=weight)
    weight[0] = 5
    assert weight.flags.writeable
    assert r.weight[1] == 2


@given(ballots(), st.sampled_from(["binary", "difference"]))
def test_to_comparisons_equals_looking_at_every_pair(drawn, strength):
    r = rankings_of(drawn)
    c = r.to_comparisons(strength)
    wins, ties = pairs_by_definition(r, strength)
    for k in range(len(c)):
        a, b = c.items[c.i[k]], c.items[c.j[k]]
        assert c.wins_i[k] == pytest.approx(wins.pop((a, b), 0))
        assert c.wins_j[k] == pytest.approx(wins.pop((b, a), 0))
        assert c.ties[k] == pytest.approx(ties.pop(frozenset((a, b)), 0))
    assert not wins
    assert not ties


def test_pairs_are_added_block_by_block(monkeypatch):
    r = Rankings.from_ranks(np.random.default_rng(0).integers(0, 5, size=(20, 7)).astype(float))
    whole = r.to_comparisons("difference")
    monkeypatch.setattr("placet.data.breaking.PAIRS_AT_ONCE", 10)
    assert r.to_comparisons("difference") == whole


@given(ballots(), st.sampled_from(["binary", "difference"]))
def test_net_wins_equal_the_pairs(drawn, strength):
    r = rankings_of(drawn)
    net, total = r.net_wins(strength)
    for b in range(len(r)):
        one = Rankings.from_orders(r[b : b + 1].orders(), items=r.items)
        wins, _ = pairs_by_definition(one, strength)
        assert total[b] == pytest.approx(sum(wins.values()))
        for row in range(r.offsets[b], r.offsets[b + 1]):
            x = r.items[r.item[row]]
            expected = sum(w for (a, _), w in wins.items() if a == x) - sum(w for (_, a), w in wins.items() if a == x)
            assert net[row] == pytest.approx(expected)


def test_net_wins_by_rating_difference():
    r = Rankings.from_scores(
        {"u": [1, 1, 1], "i": ["x", "y", "z"], "s": [5.0, 3.0, 2.5]}, ballot="u", item="i", score="s"
    )
    net, total = r.net_wins("rating")
    assert dict(zip((r.items[k] for k in r.item), net)) == pytest.approx({"x": 4.5, "y": -1.5, "z": -3.0})
    assert total == pytest.approx([2 + 2.5 + 0.5])
    assert r.to_comparisons("rating").wins_i == pytest.approx([2, 2.5, 0.5])


@given(ballots())
def test_collapsing_keeps_every_weighted_pair(drawn):
    r = rankings_of(drawn)
    small = r.collapsed()
    assert len({repr(ballot) for ballot in small}) == len(small)
    assert small.weight.sum() == pytest.approx(r.weight.sum())
    for a, b in zip(
        (small.to_comparisons().wins_i, small.to_comparisons().ties),
        (r.to_comparisons().wins_i, r.to_comparisons().ties),
    ):
        assert a == pytest.approx(b)


def test_collapsing_does_not_mix_agents_or_instances():
    r = Rankings.from_orders([["a", "b"]] * 4, agent=[1, 1, 2, 2], instance=["p", "p", "p", "q"])
    small = r.collapsed()
    assert small.weight.tolist() == [2, 1, 1]
    assert [small.agents[k] for k in small.agent] == [1, 2, 2]


@given(ballots())
def test_completing_lists_every_item_last(drawn):
    r = rankings_of(drawn)
    full = r.completed()
    assert full.describe()["complete ballots"] == len(r)
    for before, after in zip(r, full):
        listed = {x for tier in before for x in tier}
        assert after[: len(before)] == before
        assert {x for tier in after[len(before) :] for x in tier} == set(r.items) - listed


@given(ballots(), st.data())
def test_restricting_keeps_the_order_of_what_stays(drawn, data):
    r = rankings_of(drawn)
    keep = data.draw(st.lists(st.sampled_from(r.items), unique=True))
    small = r.restricted(keep)
    assert small.items == tuple(keep)
    for before, after in zip(r, small):
        cut = [{x for x in tier if x in keep} for tier in before]
        assert [set(tier) for tier in after] == [tier for tier in cut if tier]


@given(ballots(), st.data())
def test_slices_are_the_ballots(drawn, data):
    r = rankings_of(drawn)
    which = data.draw(st.lists(st.integers(0, len(r) - 1)))
    assert list(r[np.array(which, int)]) == [r[b] for b in which]
    assert list(r[::2]) == list(r)[::2]
    assert list(r[r.weight > 1]) == [b for b, w in zip(r, r.weight) if w > 1]


def test_by_instance_and_agent():
    r = Rankings.from_orders([["a", "b"], ["b"], ["a"]], agent=["x", "y", "x"], instance=[7, 7, 3])
    assert {name: list(part) for name, part in r.by_instance()} == {7: [[("a",), ("b",)], [("b",)]], 3: [[("a",)]]}
    assert {name: len(part) for name, part in r.by_agent()} == {"x": 2, "y": 1}


def test_from_ranks_and_from_scores_agree():
    ranks = np.array([[1, 2, 2, np.nan], [3, 1, np.nan, 2]])
    b, i = np.nonzero(~np.isnan(ranks))
    columns = {"b": b, "i": i, "s": -ranks[b, i]}
    r, s = Rankings.from_ranks(ranks), Rankings.from_scores(columns, ballot="b", item="i", score="s")
    assert list(r) == list(s)
    assert np.array_equal(r.score, s.score)


@pytest.mark.parametrize("make", ["pandas", "polars", "lazy", "pyarrow", "duckdb", "dict"])
def test_any_data_frame_is_a_source(make):
    columns = {"user": ["u", "u", "v"], "film": ["a", "b", "a"], "stars": [3.0, 4.0, 5.0]}
    if make == "pandas":
        frame = pytest.importorskip("pandas").DataFrame(columns)
    elif make == "polars":
        frame = pytest.importorskip("polars").DataFrame(columns)
    elif make == "lazy":
        frame = pytest.importorskip("polars").LazyFrame(columns)
    elif make == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(columns)
    elif make == "duckdb":
        duckdb, arrow = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow").table(columns)
        frame = duckdb.from_arrow(arrow)
    else:
        frame = columns
    r = Rankings.from_scores(frame, ballot="user", item="film", score="stars")
    assert r.orders() == [["b", "a"], ["a"]]
    assert r.agents == ("u", "v")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Rankings.from_orders([["a", "b", "a"]]), r"ballot 0: item 'a' occurs more than once \(1 such rows\)"),
        (lambda: Rankings.from_orders(["ab"]), "ballot 0: 'ab' is one name"),
        (lambda: Rankings.from_orders([["a", None]]), "row 1: item is missing"),
        (lambda: Rankings.from_orders([["a", math.nan]]), "row 1: item is missing"),
        (lambda: Rankings.from_orders([["a"]], weight=[-1]), r"ballot 0: weight -1.0 is not finite and not negative"),
        (lambda: Rankings.from_orders([["a"]], weight=[math.nan]), "ballot 0: weight nan"),
        (lambda: Rankings.from_orders([["a"]], weight=[1, 2]), "weight has 2 entries; 1 are needed"),
        (lambda: Rankings.from_orders([["a"], ["z"]], items=["a"]), r"row 1: item 'z' is not among the 1 given names"),
        (lambda: Rankings.from_orders([["a"]], items=["a", "a"]), "'a' occurs more than once"),
        (lambda: Rankings.from_ranks([[1, math.inf]]), "ballot 0, column 1: rank inf"),
        (lambda: Rankings.from_ranks([1, 2]), "table of ballots x items"),
        (lambda: Rankings([0, 5], [0, 1], [0, 2], items=["a"]), "row 1: item 5 is not in 0..0"),
        (lambda: Rankings([0], [0.5], [0, 1]), "tier must be whole numbers"),
        (lambda: Rankings([0], [0], [0, 2]), "offsets must rise from 0 to the number of rows, 1"),
        (lambda: Rankings([0, 1], [0, 1], [0, 2], score=[1.0, 2.0]), "contradict tiers"),
        (
            lambda: Rankings.from_scores({"u": [1], "i": ["a"], "s": [math.nan]}, ballot="u", item="i", score="s"),
            "row 0: s nan",
        ),
        (
            lambda: Rankings.from_scores({"u": [1]}, ballot="u", item="i", score="s"),
            r"column 's' is not there.*\['u'\]",
        ),
    ],
)
def test_bad_rankings_are_refused_with_place_value_and_count(make, words):
    with pytest.raises(DataError, match=words):
        make()


def test_unlisted_must_be_known():
    with pytest.raises(ValueError, match="unlisted 'frist' is unknown.*; choose from"):
        Rankings.from_orders([["a"]], unlisted="frist")


# The "beats" graph


@given(ballots())
def test_components_equal_those_of_the_graph_of_pairs(drawn):
    r = rankings_of(drawn)
    wins, _ = pairs_by_definition(r, "binary")
    reach = {(a, b) for (a, b), w in wins.items() if w > 0} | {(a, a) for a in r.items}
    for k in r.items:  # Warshall
        reach |= {(a, b) for a in r.items for b in r.items if (a, k) in reach and (k, b) in reach}
    groups = {frozenset(b for b in r.items if (a, b) in reach and (b, a) in reach) for a in r.items}
    assert r.describe()["groups with wins both ways"] == len(groups)


def test_describing_comparisons_counts_ties_as_wins_both_ways():
    c = Comparisons.from_battles("abcc", "bcad", ["a", "tie", "a", "a"])
    about = c.describe()
    assert (about["items"], about["votes"], about["ties"], about["pairs"]) == (4, 4, 1, 4)
    assert about["groups with wins both ways"] == 2  # a > b = c > a, and d, which only loses
    assert about["items never compared"] == 0


def test_a_thousand_equal_edges_still_connect():
    r = Rankings.from_orders([["a", "b"], ["b", "a"]] * 512)
    assert r.describe()["groups with wins both ways"] == 1


# Generalised rank breaking


@given(st.integers(1, 6), st.data())
def test_partition_of_a_dag_is_sound_and_finest(n, data):
    order = data.draw(st.permutations(range(n)))
    pairs = [(a, b) for k, a in enumerate(order) for b in order[k + 1 :] if data.draw(st.booleans())]
    if not pairs:
        return
    nodes = {x for pair in pairs for x in pair}
    reach = set(pairs)
    for k in nodes:
        reach |= {(a, b) for a in nodes for b in nodes if (a, k) in reach and (k, b) in reach}
    r = Rankings.from_preferences(
        {"b": [0] * len(pairs), "x": [a for a, _ in pairs], "y": [b for _, b in pairs]},
        ballot="b",
        better="x",
        worse="y",
    )
    (ballot,) = list(r)
    assert {x for tier in ballot for x in tier} == nodes
    for upper, lower in itertools.combinations(ballot, 2):
        assert all((a, b) in reach for a in upper for b in lower)
    for tier in ballot:  # no tier can be cut in two
        for size in range(1, len(tier)):
            for top in itertools.combinations(tier, size):
                rest = set(tier) - set(top)
                assert not all((a, b) in reach for a in top for b in rest)


def test_a_cycle_of_preferences_is_shown():
    with pytest.raises(
        DataError, match=r"who 'eva': preferences go round in a cycle, (a > b > c > a|b > c > a > b|c > a > b > c)"
    ):
        Rankings.from_preferences(
            {"who": ["eva"] * 3, "x": ["a", "b", "c"], "y": ["b", "c", "a"]}, ballot="who", better="x", worse="y"
        )


# Comparisons


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.sampled_from(["a", "b", "tie"])), min_size=1
    )
)
def test_battles_are_counted(votes):
    votes = [vote for vote in votes if vote[0] != vote[1]]
    if not votes:
        return
    a, b, outcome = zip(*votes)
    c = Comparisons.from_battles(a, b, outcome)
    expected = defaultdict(lambda: [0, 0, 0])
    for x, y, result in votes:
        first = c.items.index(x) < c.items.index(y)
        key = (x, y) if first else (y, x)
        expected[key][2 if result == "tie" else (result == "a") != first] += 1
    got = {(c.items[i], c.items[j]): [*w] for i, j, *w in zip(c.i, c.j, c.wins_i, c.wins_j, c.ties)}
    assert got == expected
    assert (c.i < c.j).all()
    assert Comparisons(c.i, c.j, c.wins_i, c.wins_j, c.ties, items=c.items) == c


def test_ordered_comparisons_keep_who_came_first():
    c = Comparisons.from_battles(["x", "y"], ["y", "x"], ["a", "a"], ordered=True)
    assert len(c) == 2
    assert c.wins_i.tolist() == [1, 1]
    assert c.pooled().wins_i.tolist() == [1]
    assert c.pooled().wins_j.tolist() == [1]


def test_numbers_as_items_and_names_as_items_count_alike():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 9, 200), rng.integers(10, 19, 200)
    outcome = rng.choice(["a", "b", "tie"], 200)
    by_number = Comparisons.from_battles(a, b, outcome)
    by_name = Comparisons.from_battles(
        [str(x) for x in a], [str(x) for x in b], outcome, items=[str(x) for x in by_number.items]
    )
    assert by_name.items == tuple(map(str, by_number.items))
    assert np.array_equal(by_name.wins_i, by_number.wins_i)


def test_agents_are_kept_apart_and_rows_can_become_ballots():
    c = Comparisons.from_battles("aab", "bba", ["a", "tie", "a"], agent=["u", "v", "u"], weight=[2, 1, 1])
    assert [(name, len(part)) for name, part in c.by_agent()] == [("u", 1), ("v", 1)]
    r = Rankings.from_comparisons(c)
    assert r.to_comparisons() == c


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Comparisons.from_battles("ab", "ba", ["a", "lefft"]),
            r"row 1: outcome 'lefft' is not a, b or tie \(1 such",
        ),
        (lambda: Comparisons.from_battles("ab", "ba", ["a", False]), "outcome False is not a, b or tie"),
        (lambda: Comparisons.from_battles("ab", "ab", ["a", "b"]), r"'a' is compared with itself \(2 such rows\)"),
        (lambda: Comparisons.from_battles(["a", None], ["b", "b"], ["a", "a"]), "row 1: item is missing"),
        (lambda: Comparisons.from_battles("a", "bc", ["a"]), "b has 2 entries; 1 are needed"),
        (lambda: Comparisons([0], [-1], [1], [0], [0]), "row 0: items 0, -1 are not in"),
        (lambda: Comparisons([0], [1], [-1], [0], [0]), "wins_i -1.0 is not finite and not negative"),
        (lambda: Comparisons.from_battles("a", "b", ["a"], weight=[math.inf]), "weight inf"),
    ],
)
def test_bad_comparisons_are_refused(make, words):
    with pytest.raises(DataError, match=words):
        make()


# Queries


@given(st.lists(st.sampled_from(["q1", "q2", "q3"]), min_size=1), st.booleans())
def test_rows_may_come_in_any_order(qid, as_sparse):
    X = np.arange(2.0 * len(qid)).reshape(-1, 2)
    grade = np.arange(len(qid)) % 3 - 1.5
    q = Queries.from_arrays(sparse.csr_matrix(X) if as_sparse else X, grade, qid)
    assert np.array_equal(q.restore(q.grade), grade)
    dense = q.X.toarray() if as_sparse else q.X
    assert np.array_equal(q.restore(dense[:, 1]), X[:, 1])
    assert [q.qid[k] for k in q.query] == [qid[r] for r in q.row]
    assert list(q.qid) == list(dict.fromkeys(qid))


def test_slices_of_queries_restore_in_the_callers_order():
    q = Queries.from_arrays(np.arange(6.0).reshape(-1, 1), np.arange(6), [1, 2, 1, 3, 2, 3])
    part = q[[0, 2]]
    assert part.qid == (1, 3)
    assert part.restore(part.X[:, 0]).tolist() == [0, 2, 3, 5]
    assert [one.qid for one in q] == [(1,), (2,), (3,)]
    assert q[1:] == q[np.array([False, True, True])]
    assert q != q[1:]


def test_float32_and_names_are_kept():
    pandas = pytest.importorskip("pandas")
    X = np.eye(3, dtype=np.float32)
    q = Queries.from_arrays(pandas.DataFrame(X, columns=["u", "v", "w"]), [0, 1, 0], ["s", "s", "t"])
    assert q.X.dtype == np.float32
    assert q.features == ("u", "v", "w")
    assert not q.X.flags.writeable


def test_features_come_from_a_lazy_frame():
    polars = pytest.importorskip("polars")
    q = Queries.from_arrays(polars.LazyFrame({"u": [1.0, 2.0], "v": [3.0, 4.0]}), [0, 1], [1, 1])
    assert q.features == ("u", "v")
    assert q.X.tolist() == [[1, 3], [2, 4]]


def test_query_weights_by_query_or_by_row():
    X = np.zeros((3, 1))
    assert Queries.from_arrays(X, [0, 1, 2], "aba", weight=[2, 3]).weight.tolist() == [2, 3]
    q = Queries.from_arrays(X, [0, 1, 2], list("aab"), weight=[2, 2, 3])
    assert q.weight.tolist() == [2, 3]
    with pytest.raises(DataError, match="row 1: weight 5.0 differs"):
        Queries.from_arrays(X, [0, 1, 2], list("aab"), weight=[2, 5, 3])


def test_relations_follow_their_rows():
    link = sparse.csr_matrix(np.array([[0, 0, 2.0], [0, 0, 0], [1, 0, 0]]))
    q = Queries.from_arrays(np.zeros((3, 1)), [0, 1, 2], ["a", "b", "a"], relations={"link": link})
    assert q.relations["link"].toarray().tolist() == [[0, 2, 0], [1, 0, 0], [0, 0, 0]]
    assert q[0].relations["link"].toarray().tolist() == [[0, 2], [1, 0]]
    with pytest.raises(DataError, match="entries between different queries"):
        Queries.from_arrays(np.zeros((3, 1)), [0, 1, 2], ["a", "b", "b"], relations={"link": link})


@pytest.mark.parametrize(
    ("X", "grade", "qid", "words"),
    [
        ([[1.0], [math.nan]], [0, 1], [1, 1], r"row 1, feature 0: nan \(1 such values\)"),
        ([[1.0], [math.inf]], [0, 1], [1, 1], "row 1, feature 0: inf"),
        ([[1.0]], [math.nan], [1], "row 0: grade nan"),
        ([[1.0]], [0, 1], [1], "grade has 2 entries; X has 1 rows"),
        ([[1.0]], [0], [1, 2], "qid has 2 entries"),
        ([[1.0], [2.0]], [0, 1], ["a", None], "row 1: qid is missing"),
        ([1.0, 2.0], [0, 1], [1, 1], "table of rows x features"),
        ([["x"]], [0], [1], "features must be numbers"),
    ],
)
def test_bad_queries_are_refused(X, grade, qid, words):
    with pytest.raises(DataError, match=words):
        Queries.from_arrays(X, grade, qid)


def test_missing_features_can_be_kept():
    q = Queries.from_arrays([[1.0], [math.nan]], [0, 1], [1, 1], missing="keep")
    assert np.isnan(q.X).sum() == 1
    with pytest.raises(DataError, match="inf"):
        Queries.from_arrays([[math.inf]], [0], [1], missing="keep")


def test_describe_counts_degenerate_lists():
    q = Queries.from_arrays(np.ones((6, 2)), [0, 0, 1, 2, 2, 0], [1, 1, 2, 3, 3, 3])
    about = q.describe()
    assert (about["queries"], about["rows"], about["features"]) == (3, 6, 2)
    assert (about["queries with one row"], about["queries with one grade"]) == (1, 1)
    assert about["grades"] == {0.0: 3, 1.0: 1, 2.0: 2}
    r = Rankings.from_orders([["a", ("b", "c")], ["a"], [("a", "b")], []], items="abcd").describe()
    assert (r["ballots"], r["ballots with ties"], r["ballots that compare nothing"], r["items never listed"]) == (
        4,
        2,
        3,
        1,
    )
    assert r["largest tier"] == 2


def test_queries_become_rankings_by_grade():
    q = Queries.from_arrays(np.zeros((4, 1)), [-1.5, 3, 3, 9], ["a", "a", "a", "b"])
    assert q.to_rankings().orders() == [[(("a", 1), ("a", 2)), ("a", 0)], [("b", 0)]]


def test_lists_are_what_a_loss_sees():
    r = Rankings.from_orders([["a", ("b", "c")], ["c", "a"]], weight=[2, 1])
    grade, offsets, weight = r.lists()
    assert grade.tolist() == [0, -1, -1, 0, -1]
    assert offsets.tolist() == [0, 3, 5]
    assert weight.tolist() == [2, 1]


def test_the_public_names_are_there_and_light():
    import subprocess
    import sys

    heavy = "numba sklearn polars scipy torch pandas lightgbm".split()
    code = f"import placet, sys; print([m for m in {heavy} if m in sys.modules]); placet.Rankings.from_orders([['a']])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
    for name in dir(placet):
        assert getattr(placet, name) is not None


def test_unpickled_data_are_equal_and_read_only():
    q = Queries.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], ["b", "a", "b"])
    r = Rankings.from_orders([["a", ("b", "c")], ["c"]], agent=["u", "v"], weight=[2, 1])
    for data in (q, r, r.to_comparisons()):
        back = pickle.loads(pickle.dumps(data))
        assert back == data
        for name in data.__dataclass_fields__:
            value = getattr(back, name)
            assert not isinstance(value, np.ndarray) or not value.flags.writeable, name


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("as_list", [False, True])
def test_integers_of_every_width_are_names(dtype, as_list):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    ends = np.array([info.min, info.max], dtype)
    ids = np.unique(np.concatenate([rng.integers(info.min, info.max, 50, dtype=dtype), ends]))
    a, b = rng.permutation(np.repeat(ids, 4)), rng.permutation(np.repeat(ids, 4))
    a, b = a[a != b], b[a != b]
    outcome = rng.choice(["a", "b", "tie"], len(a))
    expected = Comparisons.from_battles([str(k) for k in a.tolist()], [str(k) for k in b.tolist()], outcome)
    found = Comparisons.from_battles(a.tolist() if as_list else a, b.tolist() if as_list else b, outcome)
    assert {str(k) for k in found.items} == set(expected.items)
    assert _by_name(found) == _by_name(expected)
    mixed = Comparisons.from_battles(a, b.astype(object), outcome)
    assert _by_name(mixed) == _by_name(expected)


def _by_name(c):
    rows = zip(c.i.tolist(), c.j.tolist(), c.wins_i.tolist(), c.wins_j.tolist(), c.ties.tolist())
    named = {}
    for i, j, x, y, t in rows:
        p, q = str(c.items[i]), str(c.items[j])
        named[min(p, q), max(p, q)] = (x, y, t) if p < q else (y, x, t)
    return named


def test_arrays_of_different_types_are_not_cast_together():
    big = 2**53
    a, b = np.array([big, big + 2], np.int64), np.array([big + 1, big + 3], np.uint64)
    assert Comparisons.from_battles(a, b, ["a", "a"]).items == (big, big + 1, big + 2, big + 3)
    assert Comparisons.from_battles(np.array([1]), np.array(["1"]), ["a"]).items == (1, "1")
    assert Comparisons.from_battles([2**64], [2**64 + 1], ["a"]).items == (2**64, 2**64 + 1)
    top = np.array([2**64 - 1, 2**64 - 2], np.uint64)
    assert Comparisons.from_battles(top, top[::-1], ["a", "a"]).items == (2**64 - 1, 2**64 - 2)
    assert Comparisons.from_battles(np.array([True]), np.array([False]), ["a"]).items == (True, False)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ([2.0**53], ["x"], r"9007199254740992.0 is a floating-point number beyond 2\^53"),
        (np.array([1.0, np.nan]), np.array([2.0, 3.0]), "row 1: item is missing"),
        ([None, "x"], ["y", "z"], "row 0: item is missing"),
        ([True, "x"], [1, "y"], "mix True or False with 1 or 0"),
        ([0, 2], [False, 3], "mix True or False with 1 or 0"),
        (np.ma.array([1, 2], mask=[False, True]), np.array([3, 4]), "a masked array hides 1 of its 2 values"),
    ],
)
def test_names_that_cannot_be_told_apart_are_refused(a, b, said):
    with pytest.raises(DataError, match=said):
        Comparisons.from_battles(a, b, ["a"] * len(a))


def test_masked_arrays_are_not_data():
    masked = np.ma.array([[1.0, 2.0]], mask=[[False, True]])
    for make in (
        lambda: Rankings.from_ranks(masked),
        lambda: Queries.from_arrays(masked, [1], [1]),
        lambda: Queries.from_arrays([[1.0]], np.ma.array([1.0]), [1]),
        lambda: Rankings(np.ma.array([0]), [0], [0, 1]),
        lambda: Rankings.from_orders([["a"]], weight=np.ma.array([2.0])),
        lambda: Rankings.from_orders([["a"]], agent=np.ma.array([2.0])),
    ):
        with pytest.raises(DataError, match="masked array"):
            make()


def test_codes_beyond_64_bits_are_refused():
    for values in (np.array([2**64 - 1], np.uint64), np.array([1e30])):
        with pytest.raises(DataError, match="beyond 32-bit"):
            Rankings(values, [0], [0, 1])


def test_ranks_of_a_frame_keep_their_names():
    columns = {"x": [1, 2], "y": [2.0, None], "z": [2, 1]}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), {"x": [1, 2], "y": [2.0, np.nan], "z": [2, 1]}):
        read = Rankings.from_ranks(frame)
        assert read.items == ("x", "y", "z")
        assert list(read) == [[("x",), ("y", "z")], [("z",), ("x",)]]
    assert Rankings.from_ranks(pd.DataFrame(columns), items="abc").items == ("a", "b", "c")
    with pytest.raises(DataError, match="ranks must be numbers"):
        Rankings.from_ranks(pd.DataFrame({"x": ["first"]}))


# Parts put together


def random_rankings(rng, n, items, **extra):
    orders = [list(rng.permutation(items))[: rng.integers(0, len(items) + 1)] for _ in range(n)]
    return Rankings.from_orders(orders, weight=rng.uniform(0, 2, n), **extra)


@pytest.mark.parametrize("seed", range(20))
def test_ballots_put_together_are_the_ballots_of_each(seed):
    rng = np.random.default_rng(seed)
    parts = [
        random_rankings(rng, n, names, agent=[f"v{k % 3}" for k in range(n)], instance=["q", "r"] * (n // 2))
        for n, names in ((4, ["a", "b", "c"]), (2, ["d", "a"]), (6, ["c", "e", "f", "b"]))
    ]
    both = placet.concat(parts)
    assert list(both) == [ballot for part in parts for ballot in part]
    assert both == parts[0] + parts[1] + parts[2]
    assert both.weight.tolist() == [w for part in parts for w in part.weight]
    for code, names in (("agent", "agents"), ("instance", "instances")):
        said = [getattr(part, names)[k] for part in parts for k in getattr(part, code)]
        assert [getattr(both, names)[k] for k in getattr(both, code)] == said
    assert set(both.items) == {name for part in parts for name in part.items}
    assert placet.concat(parts[:1]) is parts[0]
    whole = both.to_comparisons()
    joined = placet.concat([part.to_comparisons() for part in parts])
    assert _by_name(joined.pooled()).keys() == _by_name(whole.pooled()).keys()
    for pair, counts in _by_name(joined.pooled()).items():
        assert counts == pytest.approx(_by_name(whole.pooled())[pair])


@pytest.mark.parametrize("ordered", [False, True])
def test_votes_split_in_two_and_joined_are_the_votes(ordered):
    rng = np.random.default_rng(1)
    names = np.array([f"m{k}" for k in range(6)])
    a, step = rng.integers(0, 6, 200), rng.integers(1, 6, 200)
    sides = names[a], names[(a + step) % 6], rng.choice(["a", "b", "tie"], 200)
    agent = rng.choice(["u", "v"], 200)
    weight = rng.integers(1, 5, 200)
    make = lambda rows: Comparisons.from_battles(  # noqa: E731
        *(side[rows] for side in sides), weight=weight[rows], agent=agent[rows], ordered=ordered
    )
    whole, joined = make(slice(None)), make(slice(0, 70)) + make(slice(70, None))
    for c in (whole, joined):
        assert c.ordered is ordered
    key = lambda c: sorted(  # noqa: E731
        (c.agents[v], *sorted([(c.items[i], x), (c.items[j], y)]), t)
        for v, i, j, x, y, t in zip(c.agent, c.i, c.j, c.wins_i, c.wins_j, c.ties)
    )
    assert key(whole) == key(joined)


def test_queries_put_together():
    a = Queries.from_arrays([[1.0, 2], [3, 4], [5, 6]], [0, 1, 2], ["q", "r", "q"])
    b = Queries.from_arrays(sparse.csr_matrix([[0.0, 7]]), [3], ["s"], weight=[2])
    both = a + b
    assert both.qid == ("q", "r", "s")
    assert both.restore(both.grade).tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(both.X.toarray(), [[1, 2], [5, 6], [3, 4], [0, 7]])
    assert both.weight.tolist() == [1, 1, 2]
    assert list(both[:2]) == list(Queries(sparse.csr_matrix(a.X), a.grade, a.offsets, qid=a.qid, row=a.row))
    relation = {"near": sparse.csr_matrix([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=float)}
    c = Queries.from_arrays([[1.0, 2], [3, 4], [5, 6]], [0, 1, 2], ["t", "t", "t"], relations=relation)
    d = Queries.from_arrays([[1.0, 2], [3, 4], [5, 6]], [0, 1, 2], ["u", "u", "u"], relations=relation)
    assert (c + d).relations["near"].nnz == 2
    for other, said in (
        (a[:1], "query 'q' is in parts 0 and 1"),
        (Queries.from_arrays([[1.0]], [1], ["z"]), "part 1 has 1 features and part 0 has 2"),
        (c, "other relations"),
    ):
        with pytest.raises(DataError, match=said):
            a + other


def test_what_cannot_be_put_together_says_so():
    r, c = Rankings.from_orders([["a", "b"]]), Comparisons.from_battles(["a"], ["b"], ["a"])
    with pytest.raises(TypeError, match="Comparisons and Rankings cannot be put together"):
        placet.concat([r, c])
    with pytest.raises(TypeError):
        r + c
    with pytest.raises(ValueError, match="at least one part"):
        placet.concat([])
    with pytest.raises(DataError, match="part 0 has no agents and others have"):
        r + Rankings.from_orders([["a"]], agent=["v"])
    with pytest.raises(DataError, match="who came first"):
        c + Comparisons.from_battles(["a"], ["b"], ["a"], ordered=True)
    scored = Rankings.from_ranks([[1, 2]], items=["a", "b"])
    assert (scored + scored).score.tolist() == [-1, -2, -1, -2]
    assert (scored + r).score is None
    assert (scored + r).notes == ("scores are left out: 1 of 2 parts have none",)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_of_ballots_are_checked_as_all_at_once(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 7, 40)
    item = np.concatenate([rng.permutation(9)[:n] for n in sizes]).astype(np.int64)
    tier = rng.integers(0, 4, len(item))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    whole = Rankings(item, tier, offsets, items=tuple(range(9)), score=-tier.astype(float))
    monkeypatch.setattr("placet.data.ballot_rows.ROWS_AT_ONCE", 5)
    assert Rankings(item, tier, offsets, items=tuple(range(9)), score=-tier.astype(float)) == whole
    late = int(np.flatnonzero(sizes >= 2)[-1])
    twice = item.copy()
    twice[offsets[late] + 1] = twice[offsets[late]]
    with pytest.raises(DataError, match=f"ballot {late}: item .* occurs more than once"):
        Rankings(twice, tier, offsets, items=tuple(range(9)))


@pytest.mark.parametrize(
    ("n", "dtype"), [(3, np.int8), (127, np.int8), (128, np.int16), (300, np.int16), (40_000, np.int32)]
)
def test_tiers_take_the_smallest_type_and_never_wrap(n, dtype):
    r = Rankings(np.arange(n), np.arange(n), [0, n], items=tuple(range(n)))
    assert (r.item.dtype, r.tier.dtype) == (np.int32, dtype)
    np.testing.assert_array_equal(r.tier, np.arange(n))
    np.testing.assert_array_equal((r.tier + r.tier.dtype.type(1)) > 0, True)
    np.testing.assert_array_equal(r.lists().grade, -np.arange(n))
    np.testing.assert_array_equal(r.net_wins()[0], n - 1 - 2.0 * np.arange(n))
    assert r.describe()["ballots with ties"] == 0
    assert (r + r) == r[[0, 0]]
    tied = Rankings(np.arange(n), np.zeros(n, np.int64), [0, n])
    assert tied.tier.dtype == np.int8


def test_codes_of_many_items_do_not_wrap():
    n = 70_000  # its square is beyond 32 bits
    r = Rankings([n - 2, n - 1, 0, n - 1], [0, 1, 0, 1], [0, 2, 4], items=tuple(range(n)))
    pairs = r.to_comparisons()
    assert list(zip(pairs.i.tolist(), pairs.j.tolist())) == [(0, n - 1), (n - 2, n - 1)]
    assert pairs.wins_i.tolist() == [1, 1]
    assert Rankings.from_comparisons(pairs).collapsed() == Rankings.from_comparisons(pairs)
    assert r.restricted([n - 1, 0])[1] == [(0,), (n - 1,)]
    assert r.describe()["groups with wins both ways"] == n


def test_making_ballots_takes_little_memory_beyond_what_is_kept():
    rng = np.random.default_rng(0)
    n, m = 2_000_000, 20
    item, tier = rng.permuted(np.tile(np.arange(m), (n // m, 1)), axis=1).ravel(), rng.integers(0, 4, n)
    offsets, items = np.arange(0, n + 1, m), tuple(range(m))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("placet.data.ballot_rows.ROWS_AT_ONCE", 1 << 15)
        tracemalloc.start()
        try:
            r = Rankings(item, tier, offsets, items=items)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    kept = sum(column.nbytes for column in (r.item, r.tier, r.offsets, r.weight))
    assert kept < 6 * n
    assert peak < 2.5 * kept


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.99, 1.0])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 50])
def test_a_share_held_out_leaves_at_least_one_on_each_side(n, share):
    rest, held_out = hold_out(n, share, np.random.default_rng(4))
    assert sorted([*rest, *held_out]) == list(range(n))
    assert (np.diff(rest) > 0).all()
    assert (np.diff(held_out) > 0).all()
    assert len(held_out) == (0 if n < 2 else sorted([1, round(share * n), n - 1])[1])
    other = [hold_out(n, share, np.random.default_rng(seed))[1].tolist() for seed in range(20)]
    assert n < 2 or len(set(map(tuple, other))) > 1


@given(ballots(), st.randoms(use_true_random=False))
def test_columns_that_are_trusted_are_valid(drawn, random):
    """Selections and changes of valid ballots are what the checking constructor would make of them."""
    data = rankings_of(drawn)
    some = [b for b in range(len(data)) if random.random() < 0.6]
    kept = [name for name in data.items if random.random() < 0.7]
    weighted = with_columns(data, weight=data.weight * 2)
    for made in (data, data[some], data[::-1], data.restricted(kept), weighted, data.completed()):
        columns = {name: getattr(made, name) for name in made.__dataclass_fields__}
        checked = Rankings(**columns)
        assert made == checked
        for name, column in columns.items():
            if isinstance(column, np.ndarray):
                assert not column.flags.writeable, name
                assert column.dtype == getattr(checked, name).dtype, name


def test_a_million_votes_are_written_out():
    votes = Comparisons([0], [1], [1_234_567.0], [0.0], [2_541.0], None, ("a", "b"))
    assert repr(votes) == "Comparisons(1 pairs, 2 items, 1237108 votes)"
    assert any(note.startswith("2,541 ties were fitted") for note in placet.consensus(votes).notes)
    assert any(note.startswith("2,541 ties counted as half") for note in placet.consensus(votes, "borda").notes)
