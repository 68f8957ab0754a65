"""Boards people read: points, slices, boards as files that go on, and two boards side by side."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm

import placet
from placet.aggregate import Consensus, ConsensusSet
from placet.aggregate.result.boards import MOST_ITEMS, board_dict, is_board, read_board, write_board
from placet.aggregate.result.difference import difference
from placet.aggregate.result.scales import in_log_odds, rescale
from placet.aggregate.result.slices import compare_slices
from placet.report.slice_comparison import slices_page
from placet.simulate import battles
from placet.stats import holm

TRUTH = np.array([1.0, 0.5, 0.0, -0.5, -1.0])


@pytest.fixture(scope="module")
def board():
    return placet.consensus(battles(TRUTH, 800, tie=-1.0, items=list("abcde"), random_state=3), "bradley-terry")


@pytest.fixture
def run(tmp_path, monkeypatch, answer):
    monkeypatch.chdir(tmp_path)
    return answer


# Points


@pytest.mark.parametrize(("anchor", "value"), [(None, None), ("c", None), ("e", 1200.0), (None, 1500.0)])
def test_points_change_no_probability_rank_set_or_tier(board, anchor, value):
    points = board.in_points("elo", anchor, value)
    expected = 1000.0 if value is None else value
    assert (points.scores.mean() if anchor is None else points.scores[board.items.index(anchor)]) == pytest.approx(
        expected
    )
    for x in "abcde":
        for y in "abcde":
            if x != y:
                assert points.win_probability(x, y) == pytest.approx(board.win_probability(x, y), rel=1e-12)
                assert points.prob_above(x, y) == pytest.approx(board.prob_above(x, y), abs=1e-12)
    assert points.ranking == board.ranking
    assert points.tiers() == board.tiers()
    np.testing.assert_array_equal(points.rank_interval(), board.rank_interval())
    frame = board.to_frame(scale="elo", anchor=anchor, anchor_value=value)
    assert frame.equals(points.to_frame())


def test_400_points_are_odds_of_10_to_1(board):
    points = board.in_points()
    d = points.scores[0] - points.scores[1]
    win = points.win_probability(board.items[0], board.items[1])
    lose = points.win_probability(board.items[1], board.items[0])
    assert win / lose == pytest.approx(10 ** (d / 400))
    assert win + lose < 1  # some votes tie
    assert points.stderr[0] == pytest.approx(board.stderr[0] * 400 / np.log(10))


def test_points_and_back(board):
    again = in_log_odds(board.in_points("elo", "b", 777))
    np.testing.assert_allclose(again.scores, board.scores, atol=1e-12)
    np.testing.assert_allclose(again.covariance, board.covariance, atol=1e-12)
    assert again.win_probability("a", "b") == pytest.approx(board.win_probability("a", "b"), abs=1e-12)


def test_scores_that_are_no_log_odds_have_no_points(board):
    votes = battles(TRUTH, 50, random_state=0)
    with pytest.raises(ValueError, match="'borda' are not log odds"):
        placet.consensus(votes, "borda").in_points()
    with pytest.raises(ValueError, match="scale 'glicko' is unknown"):
        board.in_points("glicko")
    with pytest.raises(ValueError, match="in points already"):
        board.in_points().in_points()
    with pytest.raises(ValueError, match="item 'z' is not among"):
        board.in_points(anchor="z")


# Slices

ROWS = [
    ("x", "y", "a", "en"), ("y", "x", "a", "fr"), ("y", "z", "tie", "en"), ("z", "x", "b", "en"), ("z", "y", "b", "fr"),
    ("x", "y", "a", None), ("x", "z", "a", "fr"), ("x", "y", "a", "en"),
]  # fmt: skip


def table(rows):
    return {name: [row[k] for row in rows] for k, name in enumerate(("model_a", "model_b", "winner", "language"))}


def test_slices_are_what_the_rows_alone_give(tmp_path):
    pl.DataFrame(table(ROWS)).write_csv(tmp_path / "votes.csv")
    pl.DataFrame(table(ROWS)).write_parquet(tmp_path / "votes.parquet")
    for source in (table(ROWS), pl.DataFrame(table(ROWS)), tmp_path / "votes.csv", str(tmp_path / "votes.parquet")):
        slices = placet.read_slices(source, by="language")
        assert list(slices) == ["en", "fr", "(none)"]
        for value, part in slices.items():
            own = [row for row in ROWS if (row[3] or "(none)") == value]
            assert part == placet.read_battles(table(own))
    found = placet.consensus(slices, "borda")
    assert isinstance(found, ConsensusSet)
    assert found["fr"].ranking == placet.consensus(slices["fr"], "borda").ranking


def test_slices_of_ballots_and_of_several_files(tmp_path):
    (tmp_path / "one.csv").write_text("id,town,apple,pear,plum\n1,A,1,2,3\n2,B,2,1,3\n")
    (tmp_path / "two.csv").write_text("id,town,apple,pear,plum\n3,A,1,3,2\n")
    slices = placet.read_slices([tmp_path / "one.csv", tmp_path / "two.csv"], by="town", layout="ranks")
    assert {town: len(part) for town, part in slices.items()} == {"A": 2, "B": 1}
    assert slices["B"].items == ("apple", "pear", "plum")


def test_a_bad_row_of_a_slice_is_named_by_its_line(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,winner,language\nx,y,model_a,en\nx,y,lefft,fr\nx,x,model_a,en\n")
    with pytest.raises(placet.DataError, match=r"language 'en': .*votes.csv:4: 'x' meets itself"):
        placet.read_slices(path, by="language")
    with pytest.raises(placet.DataError, match="column 'tongue' is not there"):
        placet.read_slices(path, by="tongue")


def test_slices_that_differ_are_found_and_slices_that_do_not_are_not():
    other = TRUTH[[1, 0, 2, 3, 4]] + np.array([0, 0.6, 0, 0, 0])
    same = {k: battles(TRUTH, 2000, items=list("abcde"), random_state=k) for k in range(3)}
    apart = {**same, "odd": battles(other, 2000, items=list("abcde"), random_state=9)}
    frame = compare_slices(placet.consensus(same, "bradley-terry"))
    assert not any(frame["differs"])
    assert {"a", "b"} <= set(compare_slices(placet.consensus(apart, "bradley-terry")).filter(pl.col("differs"))["item"])
    page = slices_page(placet.consensus(apart, "bradley-terry"), title="<b>")
    assert "&lt;b&gt;" in page
    assert "odd" in page


# Side by side


def slow_holm(p, alpha):
    found, m = [False] * len(p), len(p)
    for k, i in enumerate(sorted(range(m), key=lambda i: p[i])):
        if p[i] * (m - k) > alpha:
            break
        found[i] = True
    return found


@given(st.lists(st.floats(0, 0.1), min_size=1, max_size=8))
def test_holm_equals_the_loop(p):
    assert (holm(p) <= 0.05).tolist() == slow_holm(p, 0.05)


def test_changes_by_hand():
    a = Consensus(tuple("xyz"), [1.0, 0.0, -1.0], method="m", stderr=[0.1, 0.2, 0.3])
    b = Consensus(tuple("yxw"), [2.0, 0.0, 5.0], method="m", stderr=[0.3, 0.4, 0.1])
    d = difference(a, b)
    assert d.items == ("x", "y")
    np.testing.assert_allclose(d.change, [(0 - 1) - (1 - 0.5), (2 - 1) - (0 - 0.5)])
    variance = (0.1**2 + 0.2**2) / 4 + (0.3**2 + 0.4**2) / 4  # of (x - y) / 2, and of its negative
    np.testing.assert_allclose(d.stderr, np.sqrt([variance, variance]))
    np.testing.assert_allclose(d.p, 2 * norm.sf(1.5 / np.sqrt(variance)))
    assert (d.only_a, d.only_b) == (("z",), ("w",))
    frame = d.to_frame()
    assert frame["item"].to_list() == ["w", "y", "x", "z"]
    assert frame.filter(pl.col("item") == "w")["rank_a"].to_list() == [None]


def test_equal_boards_differ_by_chance_alone_and_other_truths_are_found():
    wrong = 0
    for k in range(60):
        one, two = (battles(TRUTH, 300, items=list("abcde"), random_state=2 * k + s) for s in (0, 1))
        found = difference(placet.consensus(one, "bradley-terry"), placet.consensus(two, "bradley-terry"))
        wrong += bool(found.beyond.any())
    assert wrong <= 8  # 3 expected at 95 %; more than 8 has probability below 0.5 %
    turned = battles(TRUTH[::-1].copy(), 300, items=list("abcde"), random_state=1)
    found = difference(placet.consensus(one, "bradley-terry"), placet.consensus(turned, "bradley-terry"))
    assert found.beyond[[0, 4]].all()
    assert ("a", "e") in found.flips


def test_other_scales_are_compared_by_ranks(board):
    votes = battles(TRUTH[::-1].copy(), 5000, items=list("abcde"), random_state=1)
    found = difference(board, placet.consensus(votes, "borda", bootstrap=50))
    assert found.p is None
    assert "by ranks alone" in found.notes[0]
    assert found.beyond[[0, 4]].all()
    with pytest.raises(placet.DataError, match="1 items in common"):
        difference(board, Consensus(("a", "zz"), [1.0, 0.0], method="m"))


# Files that go on


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "borda", "mpm"])
def test_a_board_is_read_as_it_was_written(tmp_path, method):
    votes = battles(TRUTH, 300, tie=0.0, items=list("abcde"), random_state=3)
    board = placet.consensus(votes, method)
    write_board(tmp_path / "board.json", board, votes)
    assert is_board(tmp_path / "board.json")
    again = read_board(tmp_path / "board.json")
    assert again.data == votes
    assert again.method == method
    assert again.consensus.ranking == board.ranking
    np.testing.assert_array_equal(again.consensus.scores, board.scores)
    if board.covariance is not None:
        np.testing.assert_array_equal(again.consensus.covariance, board.covariance)
    if method in ("bradley-terry", "plackett-luce"):
        assert again.consensus.win_probability("a", "c") == pytest.approx(board.win_probability("a", "c"), rel=1e-12)


@settings(max_examples=20)
@given(
    st.lists(st.permutations(["x", "y", 3]), min_size=1, max_size=4),
    st.lists(st.sampled_from(["p", "q"]), min_size=4, max_size=4),
)
def test_ballots_with_agents_come_back(orders, agents):
    ballots = placet.Rankings.from_orders(orders, agent=agents[: len(orders)])
    from placet.aggregate.result.boards import _read_data

    kept = json.loads(json.dumps(board_dict(placet.consensus(ballots, "borda"), ballots)["data"]))
    assert _read_data(kept) == ballots


def test_very_many_items_keep_standard_errors_alone():
    names = [f"i{k}" for k in range(MOST_ITEMS + 1)]
    votes = battles(np.zeros(len(names)), 3000, items=names, random_state=0)
    state = board_dict(placet.consensus(votes, "bradley-terry"))["state"]
    assert state["covariance"] is None
    assert len(state["stderr"]) == len(names)


def test_old_board_and_new_votes_give_what_all_votes_give(run, tmp_path):
    votes = [battles(TRUTH, 300, tie=-1.0, items=list("abcde"), random_state=k) for k in (0, 1)]
    for name, part in zip(("old", "new"), votes):
        placet.io.write(part, tmp_path / f"{name}.csv")
    run("aggregate", "old.csv", "-p", "ties=davidson", "--out", "old.json", "--scale", "elo")
    out = run("aggregate", "old.json", "new.csv", "--json")
    grown = json.loads(out)
    both = json.loads(run("aggregate", "old.csv", "new.csv", "-p", "ties=davidson", "--json"))
    assert grown["params"]["ties"] == "davidson"
    of = lambda board: {row["item"]: row["score"] for row in board["ranking"]}  # noqa: E731
    assert of(grown) == pytest.approx(of(both), abs=1e-6)
    (tmp_path / "grown.json").write_text(out)
    assert read_board(tmp_path / "grown.json").data == placet.concat(votes)


def test_slices_diff_and_anchors_from_the_command(run, tmp_path):
    rows = [(*row[:3], row[3] or "de") for row in ROWS for _ in range(30)]
    pl.DataFrame(table(rows)).write_csv(tmp_path / "votes.csv")
    run("aggregate", "votes.csv", "--by", "language", "--out", "s.json", "--report", "p.html")
    assert "<h2>Ranking by language</h2>" in (tmp_path / "p.html").read_text()
    out = run("aggregate", "votes.csv", "--by", "language").splitlines()
    assert out[0].split("\t")[0] == "language"
    assert {line.split("\t")[0] for line in out[1:]} == {"en", "fr", "de"}
    rows = [line.split("\t") for line in run("diff", "s.json", "--slices", "en,fr").splitlines()]
    assert rows[0] == ["item", "rank_a", "rank_b", "score_a", "score_b", "change", "stderr", "p", "beyond_chance"]
    assert any(row[-1] == "True" for row in rows[1:])
    same = run("diff", "s.json", "s.json").splitlines()
    assert same[0].startswith("slice\titem")
    assert not any("True" in line for line in same)
    assert "give two boards" in run("diff", "s.json", code=2)
    assert "'it' is not among" in run("diff", "s.json", "--slices", "en,it", code=2)
    assert "not a board of Placet" in run("diff", "votes.csv", "s.json", code=2)
    assert "needs --scale" in run("aggregate", "votes.csv", "--anchor", "x", code=2)
    assert "--scale 'glicko' is unknown" in run("aggregate", "votes.csv", "--scale", "glicko", code=2)
    assert "item 'q' is not among the 3 items" in run(
        "aggregate", "votes.csv", "--scale", "elo", "--anchor", "q", code=2
    )
    for anchor, item, points in (("x", "x", 1000.0), ("y=1500", "y", 1500.0)):
        out = run("aggregate", "votes.csv", "--scale", "elo", "--anchor", anchor)
        scores = {line.split("\t")[0]: line.split("\t")[1] for line in out.splitlines()[1:]}
        assert float(scores[item]) == pytest.approx(points)


def test_a_set_is_rescaled_board_by_board():
    found = placet.consensus({"one": battles(TRUTH, 99, random_state=0)}, "bradley-terry")
    assert rescale(found)["one"].scores.mean() == pytest.approx(1000)


# Score tables that go on


def test_two_tables_are_one_and_no_score_is_lost_or_said_twice():
    old = placet.Scores.from_table([[0.9, 0.7], [0.8, np.nan]], items=["x", "y"], tasks=["maths", "law"])
    new = placet.Scores.from_table([[0.6, 0.5], [0.8, 0.4]], items=["z", "y"], tasks=["maths", "law"])
    both = old + new
    assert (both.items, both.tasks) == (("x", "y", "z"), ("maths", "law"))
    np.testing.assert_array_equal(both.value, [[0.9, 0.7], [0.8, 0.4], [0.6, 0.5]])
    more = both + placet.Scores.from_table([[1.0]], items=["x"], tasks=["code"])
    np.testing.assert_array_equal(more.value[:, 2], [1.0, np.nan, np.nan])
    with pytest.raises(placet.DataError, match="item 'y' has 0.8 for task 'maths' in one table and 0.3 in another"):
        old + placet.Scores.from_table([[0.3]], items=["y"], tasks=["maths"])
    asked = placet.Scores.from_rows(["x", "x"], ["maths", "maths"], [1, 0], question=["q1", "q2"])
    with pytest.raises(placet.DataError, match="1 of 2 score tables have questions"):
        old + asked
    grown = asked + placet.Scores.from_rows(["y", "y"], ["maths", "law"], [1, 1], question=["q2", "q1"])
    assert (grown.questions, grown.task.tolist()) == (("q1", "q2", "q1"), [0, 0, 1])
    np.testing.assert_array_equal(grown.value, [[1, 0, np.nan], [np.nan, 1, 1]])
    assert grown == grown + grown != asked


@pytest.mark.parametrize("method", ["mean", "plackett-luce"])
def test_an_old_table_and_a_new_one_give_what_one_table_gives(run, tmp_path, method):
    rng = np.random.default_rng(5)
    rows = [(f"m{i}", f"t{t}", round(float(rng.random() + i / 4), 3)) for i in range(5) for t in range(6) if i or t]
    for name, own in (("old", rows[:-6]), ("new", rows[-6:]), ("all", rows)):
        lines = ["model,task,score", *(",".join(map(str, row)) for row in own)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    run("aggregate", "old.csv", "-m", method, "--out", "old.json")
    grown = json.loads(run("aggregate", "old.json", "new.csv", "--json"))
    assert grown["method"] == method
    of = lambda board: {row["item"]: row["score"] for row in board["ranking"]}  # noqa: E731
    for files in (["all.csv"], ["old.csv", "new.csv"]):
        assert of(grown) == pytest.approx(of(json.loads(run("aggregate", *files, "-m", method, "--json"))), abs=1e-6)
    assert len(grown["ranking"]) == 5


def test_dates_and_controls_of_a_board_come_back(tmp_path):
    columns = {"a": ["x", "y", "x"], "b": ["y", "x", "y"], "winner": ["a", "a", "tie"], "z": [1.0, 2.0, 3.0]}
    columns |= {"date": ["2024-01-01", "2024-02-01", "2025-01-01"], "agent": ["p", "q", "p"]}
    votes = placet.read_battles(columns, control=["z"], time="date", ordered=True)
    write_board(tmp_path / "board.json", placet.consensus(votes, "bradley-terry", drift=0.1), votes)
    assert read_board(tmp_path / "board.json").data == votes
