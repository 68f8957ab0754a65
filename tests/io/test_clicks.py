"""Clicks: reading them, choices, and rankers whose scores do not inherit the position at which rows were shown."""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from typer.testing import CliRunner

import placet
from placet.cli import app
from placet.data import DataError, Queries
from placet.data.arrays import same_columns
from placet.data.clicks import Clicks
from placet.io import read_clicks
from placet.losses import LOSSES
from placet.metrics import ndcg
from placet.rank import LinearRanker, NeuralRanker, TreeRanker, choose_by_clicks, click_likelihood, fit_clicks
from placet.rank.trees.tree_ranker import Slopes

pytestmark = pytest.mark.jit
CSV = """session,query,doc,position,clicked
1,q,b,2,1
1,q,a,1,0
2,r,a,1,1
1,q,c,3,0
2,r,d,2,1
2,r,e,3,0
3,q,a,1,0
3,q,b,2,0
"""


def test_unpickled_clicks_are_equal_and_read_only():
    log = Clicks.from_columns(["q", "q"], ["a", "b"], [1, 2], [0, 1], session=[7, 7])
    back = pickle.loads(pickle.dumps(log))
    assert same_columns(back, log)
    for name in ("query", "document", "position", "clicked", "offsets", "weight"):
        assert not getattr(back, name).flags.writeable, name


def test_a_table_is_read_by_the_names_of_its_columns(tmp_path):
    (tmp_path / "log.csv").write_text(CSV)
    log = read_clicks(tmp_path / "log.csv")
    assert len(log) == 3
    assert log.offsets.tolist() == [0, 3, 6, 8]
    shown = [[log.documents[d] for d in log.document[a:b]] for a, b in zip(log.offsets, log.offsets[1:])]
    assert shown == [["a", "b", "c"], ["a", "d", "e"], ["a", "b"]]
    assert [log.queries[q] for q in log.query] == ["q", "r", "q"]
    assert log.clicked.tolist() == [False, True, False, True, True, False, False, False]
    assert placet.read_clicks is read_clicks
    again = read_clicks(
        {"s": [1, 1], "qid": ["q", "q"], "url": ["x", "y"], "rank": [1, 2], "click": [0, 1]}, session="s"
    )
    assert again.clicked.tolist() == [False, True]


def test_without_sessions_positions_that_rise_are_one_impression():
    log = Clicks.from_columns(["q"] * 5 + ["r"], list("abcabx"), [1, 2, 3, 1, 3, 4], [0, 1, 0, 0, 0, 1])
    assert log.offsets.tolist() == [0, 3, 5, 6]
    assert "rising positions" in log.notes[0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("4,q,a,0,1", "position '0' is not a whole number of at least 1"),
        ("4,q,a,1.5,1", "position '1.5' is not a whole number"),
        ("4,q,a,1e30,1", r"position '1e30' is not below 2\^53"),
        ("4,q,a,1,2", "clicked '2' is not 0 or 1, true or false"),
        ("4,q,a,1,", r"clicked \(missing\) is not 0 or 1"),
        ("4,q,,1,1", "doc is missing"),
    ],
)
def test_wrong_rows_are_named(row, message, tmp_path):
    (tmp_path / "log.csv").write_text(CSV + row + "\n")
    with pytest.raises(DataError, match=rf"log.csv:10: {message}"):
        read_clicks(tmp_path / "log.csv")


def test_what_is_no_log_is_refused():
    with pytest.raises(DataError, match="position 2 occurs twice in its session"):
        Clicks.from_columns(["q", "q"], ["a", "b"], [2, 2], [0, 1], session=[1, 1])
    with pytest.raises(DataError, match="clicked has 1 entries; position has 2"):
        Clicks.from_columns(["q", "q"], ["a", "b"], [1, 2], [0])
    with pytest.raises(DataError, match="row 1: position 0 is below 1"):
        Clicks([0], [0, 1], [1, 0], [0, 1], [0, 2], ["q"], ["a", "b"])
    with pytest.raises(DataError, match="session has 1 entries; position has 2"):
        Clicks.from_columns(["q", "q"], ["a", "b"], [1, 2], [0, 1], session=[1])
    with pytest.raises(DataError, match="column 'nosuch' is not there; .* session= names the column"):
        read_clicks({"query": ["q"], "document": ["a"], "position": [1], "clicked": [1]}, session="nosuch")


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("clicked", [["TRUE", "false", "True"], [True, False, True], [1.0, 0.0, 1.0], ["1", "0", "1"]])
def test_clicks_are_read_from_booleans_numbers_and_words(clicked, frame):
    columns = {"query": ["q"] * 3, "document": ["a", "b", "c"], "position": [1, 2, 3], "clicked": clicked}
    assert read_clicks(frame(columns)).clicked.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("clicked", "message"),
    [
        (["0", "1", "0"], r"row 0: clicked '0' is not True, False, 0 or 1 \(3 such rows\)"),
        ([0, 2, 0], r"row 1: clicked 2 is not .* \(1 such rows\)"),
        ([0, 1, float("nan")], "row 2: clicked nan is not"),
        ([None, 1, None], r"row 0: clicked None is not .* \(2 such rows\)"),
        (pd.Series([True, pd.NA, False], dtype="boolean"), "row 1: clicked <NA> is not"),
        ([[0], [1], [0]], "one-dimensional"),
        (np.ma.masked_array([0, 1, 0], [0, 1, 0]), "masked array hides 1"),
    ],
)
def test_marks_that_are_no_clicks_are_refused_not_taken_for_clicks(clicked, message):
    """As booleans, "0", 2 and NaN would be True, and None False."""
    with pytest.raises(DataError, match=message):
        Clicks.from_columns(["q"] * 3, ["a", "b", "c"], [1, 2, 3], clicked)
    with pytest.raises(DataError, match=message):
        Clicks([0], [0, 1, 2], [1, 2, 3], clicked, [0, 3], ["q"], ["a", "b", "c"])


def test_marks_may_be_any_booleans_or_numbers():
    for clicked in ([True, False, 1], np.array([1, 0, 1], np.uint8), pl.Series([True, False, True]), [1.0, 0.0, 1.0]):
        log = Clicks.from_columns(["q"] * 3, ["a", "b", "c"], [1, 2, 3], clicked)
        assert log.clicked.tolist() == [True, False, True]
        assert not log.clicked.flags.writeable


def test_names_in_keys_are_compared_as_text_where_either_side_is_text():
    text = Clicks.from_columns(["7", "7", "8"], ["1", "2", "1"], [1, 2, 1], [0, 1, 1])
    whole = Clicks.from_columns([7, 7, 8], [1, 2, 1], [1, 2, 1], [0, 1, 1])
    for log in (text, whole):
        for query in (int, str, np.int64):
            for document in (int, str):
                keys = [(query(q), document(d)) for q, d in ((8, 1), (7, 1), (9, 1), (7, 2))]
                assert log.rows_of(keys).tolist() == [1, 3, 0]
    with pytest.raises(DataError, match=r"document '1' of query '7' has no features \(3 such pairs\)"):
        text.rows_of([(7.5, 1)])


def test_a_document_listed_twice_needs_the_same_features():
    log = Clicks.from_columns(["q", "q"], ["a", "b"], [1, 2], [0, 1])
    keys = [("q", "a"), ("q", "b"), ("q", "a"), ("q", "a")]
    X = np.array([[1.0, np.nan], [0.0, 3.0], [1.0, np.nan], [1.0, np.nan]])
    for values in (X, csr_matrix(np.nan_to_num(X)), X[:, 0]):
        assert log.rows_of(keys, values).tolist() == [0, 1]
    X[3, 0] = 5.0
    message = r"row 3: document 'a' of query 'q' occurs again after row 0, with other features \(1 such rows\)"
    for values in (X, csr_matrix(np.nan_to_num(X)), X[:, 0]):
        with pytest.raises(DataError, match=message):
            log.rows_of(keys, values)
    with pytest.raises(DataError, match=message):
        fit_clicks(LinearRanker("pl-partition"), X[:, :1], log, keys=keys)
    with pytest.raises(DataError, match=r"row 2: document 'a' .* after row 0 \(2 such rows\)"):
        log.rows_of(keys)


def test_equal_rows_listed_twice_may_have_scores_that_differ_in_the_last_digit():
    class Rounding:
        def predict(self, X):
            return X[:, 0] + 1e-16 * np.arange(len(X))

    log = Clicks.from_columns(["q", "q"], ["a", "b"], [1, 2], [0, 1])
    keys, X = [("q", "a"), ("q", "b"), ("q", "a")], np.array([[0.1], [0.7], [0.1]])
    assert np.isfinite(click_likelihood(Rounding(), X, log, keys=keys))


def test_a_log_of_clicks_given_to_read_points_to_its_reader():
    columns = {"session": [1, 1], "query": ["q", "q"], "url": ["a", "b"], "rank": [1, 2], "clicked": [0, 1]}
    command = r'placet train --qid session --label clicked --control "one-hot\(rank\)" --loss pl-partition'
    with pytest.raises(DataError, match=rf"log of clicks, which placet.read_clicks reads; .*: {command}"):
        placet.read(columns)


def test_one_click_per_session_is_trained_by_the_command_with_positions_as_controls(tmp_path):
    log = placet.simulate.clicks(TRAIN, PRODUCTION, 20, shown=4, one_click=True, random_state=0)
    session, X = np.repeat(np.arange(len(log)), 4), TRAIN.X[log.document]
    frame = pl.DataFrame({"session": session, "position": log.position, "clicked": log.clicked.astype(int)})
    frame.hstack(pl.DataFrame(X, schema=["a", "b", "c", "d"])).write_csv(tmp_path / "shown.csv")
    options = ["--qid", "session", "--label", "clicked", "--control", "one-hot(position)", "--loss", "pl-partition"]
    run = CliRunner().invoke(
        app, ["train", str(tmp_path / "shown.csv"), *options, "--out", str(tmp_path / "model.placet"), "--json"]
    )
    assert run.exit_code == 0, run.output
    found, fit = placet.load(tmp_path / "model.placet"), fit_clicks(LinearRanker("pl-partition"), X, log)
    np.testing.assert_allclose(found.coef_, fit.ranker.coef_, atol=0.01)
    np.testing.assert_allclose(list(found.controls_.values()), np.log(fit.examination[1:]), atol=0.02)


def test_choices_are_every_click_against_all_that_was_shown():
    log = read_clicks(
        {name: [line.split(",")[k] for line in CSV.split()[1:]] for k, name in enumerate(CSV.split()[0].split(","))}
    )
    row, lists, silent = log.choices()
    assert [row[a:b].tolist() for a, b in zip(lists.offsets, lists.offsets[1:])] == [[0, 1, 2], [3, 4, 5], [3, 4, 5]]
    assert lists.grade.tolist() == [0, 1, 0, 1, 0, 0, 0, 1, 0]
    assert silent == 1
    every = Clicks.from_columns(["q", "q", "r"], ["a", "b", "a"], [1, 2, 1], [1, 1, 1])  # both clicked; one row alone
    assert every.choices().lists.grade.tolist() == [1, 0, 0, 1]
    assert every.choices().n_silent == 1


def test_one_click_is_plackett_luce_at_the_first_place_with_the_log_of_examination():
    """By hand: P(click) in proportion to e^{s} times the examination of the position."""
    s, examination = np.array([0.3, -0.2, 0.9]), np.array([1.0, 0.5, 1 / 3])
    log = Clicks([0], [0, 1, 2], [1, 2, 3], [False, False, True], [0, 3], ["q"], ["a", "b", "c"])
    row, lists, _ = log.choices()
    value = LOSSES["pl-partition"]((s + np.log(examination))[row], lists)[0]
    weight = np.exp(s) * examination
    assert np.exp(-value) == pytest.approx(weight[2] / weight.sum())


DATA = placet.simulate.queries(150, 10, 4, 3, noise=0.3, w=[1.0, -0.7, 0.0, 0.0], random_state=3)
TRAIN, TEST = DATA[:100], DATA[100:]
PRODUCTION = 2 * TRAIN.X[:, 2] + np.random.default_rng(7).normal(size=len(TRAIN.grade))  # grades do not follow it


def quality(ranker):
    return float(np.nanmean(ndcg(ranker.predict(TEST), TEST.grade, TEST.offsets, 5)))


@pytest.mark.parametrize(
    "ranker",
    [
        LinearRanker("pl-partition", 1e-3),
        TreeRanker("pl-partition", 40, learning_rate=0.1, min_rows=100, leaves=8, subsample=1.0, feature_fraction=1.0),
    ],
    ids=["linear", "trees"],
)
def test_positions_are_learned_and_left_out(ranker):
    log = placet.simulate.clicks(TRAIN, PRODUCTION, 60, eta=1.0, noise=0.05, random_state=1)
    X = TRAIN.X[log.document]
    naive, fair = (fit_clicks(ranker, X, log, debias=debias) for debias in (False, True))
    assert quality(fair.ranker) > quality(naive.ranker) + 0.005
    along = np.zeros((2, 4))
    along[1, 2] = 1.0
    by_production = [abs(np.diff(found.ranker.predict(along))[0]) for found in (fair, naive)]
    assert by_production[0] < 0.5 * by_production[1]
    assert fair.positions.tolist() == list(range(1, 11))
    assert fair.examination[0] == 1.0
    bend = 0.3 if isinstance(ranker, LinearRanker) else 0.6  # trees tell rows apart, and each was shown at one position
    assert np.abs(np.log(fair.examination[:5] * np.arange(1, 6))).max() < bend  # 1 / k
    assert (naive.examination == 1).all()
    assert type(fair.ranker) is type(ranker)
    assert fair.ranker.n_features_in_ == 4
    assert fair.n_choices + fair.n_silent >= len(log)
    assert not hasattr(ranker, "n_features_in_")  # what was given stays as it was


BINARY = np.random.default_rng(0).integers(0, 2, 15_000)
SHOWN = Queries(BINARY[:, None].astype(float), BINARY, np.arange(0, 15_001, 5))
ANY_ORDER = np.random.default_rng(1).normal(size=15_000)


@pytest.mark.parametrize("one_click", [True, False])
def test_simulated_sessions_recover_examination_and_attraction(one_click):
    """Attraction 0.1 and 1, examination 1 / k, no trust in positions."""
    log = placet.simulate.clicks(SHOWN, ANY_ORDER, 6, shown=5, one_click=one_click, random_state=0)
    fit = fit_clicks(LinearRanker("pl-partition", 0.0), SHOWN.X[log.document], log)
    np.testing.assert_allclose(fit.examination, 1 / fit.positions, rtol=0.06)
    np.testing.assert_allclose(fit.ranker.coef_, np.log(10), rtol=0.03)
    trusting = fit_clicks(LinearRanker("pl-partition", 0.0), SHOWN.X[log.document], log, trust=True)
    np.testing.assert_allclose(trusting.sharpness, 1.0, atol=0.1)


def fit_to_all_sessions(p, most=3, moods=(1.0,)):
    """Fit to every session of good and bad rows at three positions, weighted by its probability, with 1 to ``most`` clicks.

    ``p`` (2, 3): the probability of a click on a bad and a good row at each position, independent of the others given
    the mood of the session, which multiplies all of them.
    """
    sessions = [np.array(one) for one in product((0, 1), repeat=6) if 1 <= sum(one[3:]) <= most]
    row, clicked = (np.concatenate([one[part] for one in sessions]) for part in (slice(3), slice(3, 6)))
    position, n = np.tile([1, 2, 3], len(sessions)), len(sessions)
    chance = np.outer(moods, p[row, position - 1])
    weight = np.where(clicked, chance, 1 - chance).reshape(-1, n, 3).prod(axis=2).mean(axis=0)
    log = Clicks(np.zeros(n, int), row, position, clicked, 3 * np.arange(n + 1), "q", ["bad", "good"], weight)
    ranker = LinearRanker("pl-partition", 0.0, control_l2=0.0, tol=1e-9)
    return fit_clicks(ranker, row[:, None].astype(float), log)


@pytest.mark.parametrize(("often", "moods"), [(0.01, (1.0,)), (1.0, (1.0,)), (0.9, (0.1, 1.0))])
def test_examination_and_attraction_are_exact_however_many_rows_are_clicked(often, moods):
    """Rows attract 0.1 and 1 times ``often``, positions are examined with probability 1 / k; moods make clicks depend."""
    fit = fit_to_all_sessions(often * np.outer([0.1, 1.0], 1 / np.arange(1, 4)), moods=moods)
    np.testing.assert_allclose(fit.examination, 1 / fit.positions, rtol=1e-4)
    np.testing.assert_allclose(fit.ranker.coef_, np.log(10), rtol=1e-4)


def test_sessions_selected_for_their_one_click_tell_odds():
    """P(click) = sigmoid(s + b_position), so that the odds of row and position multiply."""
    b = np.array([0.0, -0.5, -1.5])
    fit = fit_to_all_sessions(1 / (1 + np.exp(-np.array([[-1.0], [1.0]]) - b)), most=1)
    np.testing.assert_allclose(np.log(fit.examination), b, atol=1e-4)
    np.testing.assert_allclose(fit.ranker.coef_, 2.0, atol=1e-4)


def test_features_by_key_are_those_by_row_and_what_does_not_fit_is_refused(tmp_path):
    log = placet.simulate.clicks(TRAIN[:20], PRODUCTION[: TRAIN.offsets[20]], 5, random_state=1)
    few = TRAIN[:20]
    keys = [(few.qid[q], k) for k, q in enumerate(few.query)]
    ranker = LinearRanker("pl-partition", monotone=[1, 0, 0, 0])
    by_row = fit_clicks(ranker, few.X[log.document], log, valid=TEST)
    by_key = fit_clicks(ranker, few.X, log, keys=keys, valid=TEST)
    np.testing.assert_array_equal(by_row.ranker.coef_, by_key.ranker.coef_)
    assert by_row.ranker.coef_[0] >= 0
    by_key.ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(TEST), by_key.ranker.predict(TEST))
    for call, error, message in (
        (lambda: fit_clicks(ranker, few.X[1:], log, keys=keys[1:]), DataError, "document 0 of query 0 has no features"),
        (lambda: fit_clicks(ranker, few.X, log), DataError, "X has 200 rows; 1000 are named by the log"),
        (lambda: fit_clicks(NeuralRanker(), few.X, log, keys=keys), ValueError, "not by NeuralRanker"),
    ):
        with pytest.raises(error, match=message):
            call()
    silent = replace(log, clicked=np.zeros(len(log.document), bool))
    with pytest.raises(DataError, match="none of 100 impressions has a click"):
        fit_clicks(ranker, few.X, silent, keys=keys)


def test_features_of_another_length_are_refused_by_all_that_take_them():
    log = placet.simulate.clicks(TRAIN[:20], PRODUCTION[: TRAIN.offsets[20]], 5, random_state=1)
    few, keys = TRAIN[:20], [(TRAIN[:20].qid[q], k) for k, q in enumerate(TRAIN[:20].query)]
    X, ranker = few.X[log.document], LinearRanker("pl-partition").fit(few)
    for wrong in (X[:-3], np.vstack([X, X])):
        said = f"has {len(wrong)} rows; 1000 are named by the log"
        for call in (
            lambda rows: click_likelihood(ranker, rows, log),
            lambda rows: choose_by_clicks([ranker], X, log, log, X_valid=rows),
            lambda rows: choose_by_clicks([ranker], rows, log, log, X_valid=X),
            lambda rows: fit_clicks(ranker, rows, log),
        ):
            with pytest.raises(DataError, match=said):
                call(wrong)
    with pytest.raises(DataError, match="X has 199 rows; 200 are named by the keys"):
        click_likelihood(ranker, few.X[1:], log, keys=keys)


def test_simulated_clicks_fall_with_the_position_as_stated():
    one = Queries(np.zeros((20_000, 1)), np.tile([1.0, 0.0], 10_000), np.arange(0, 20_001, 2))
    log = placet.simulate.clicks(one, np.tile([0.0, 1.0], 10_000), 1, eta=1.0, noise=0.2, random_state=0)
    share = [log.clicked[log.position == k].mean() for k in (1, 2)]
    np.testing.assert_allclose(share, [0.2, 0.5], atol=0.02)  # grade 0 shown first, grade 1 second: 1 / 2


def test_one_click_is_one_row_per_session_in_proportion_to_examination_and_attraction():
    """By hand: grades 1, 0, 0 at positions 1, 2, 3 attract 1, 0.2, 0.2."""
    one = Queries(np.zeros((9000, 1)), np.tile([1.0, 0.0, 0.0], 3000), np.arange(0, 9001, 3))
    log = placet.simulate.clicks(one, np.zeros(9000), 10, noise=0.2, one_click=True, random_state=0)
    assert len(log) == 30_000
    assert (np.add.reduceat(log.clicked, log.offsets[:-1]) == 1).all()
    share = [log.clicked[log.position == k].mean() for k in (1, 2, 3)]
    chance = np.array([1.0, 0.2, 0.2]) / [1, 2, 3]
    np.testing.assert_allclose(share, chance / chance.sum(), atol=0.01)
    other = placet.simulate.clicks(one[:5], np.tile([0.0, 1.0, 1.0], 5), 4, noise=0.0, one_click=True, random_state=1)
    assert (other.position[other.clicked] == 3).all()  # what attracts nobody is never chosen
    nothing = Queries(np.zeros((3, 1)), [0.0, 0.0, 1.0], [0, 2, 3])
    silent = placet.simulate.clicks(nothing, np.zeros(3), 3, noise=0.0, one_click=True)
    assert silent.clicked.tolist() == [False] * 6 + [True] * 3


def test_a_strong_penalty_on_weights_leaves_the_effects_of_positions_alone():
    log = placet.simulate.clicks(TRAIN, PRODUCTION, 60, noise=0.05, random_state=1)
    X = TRAIN.X[log.document]
    weak, strong = (fit_clicks(LinearRanker("pl-partition", l2), X, log) for l2 in (1e-3, 1.0))
    assert np.abs(np.log(strong.examination[:5] / weak.examination[:5])).max() < 0.5
    shrunk = fit_clicks(LinearRanker("pl-partition", 1.0, control_l2=1.0), X, log)
    assert np.log(shrunk.examination[4]) > 0.5 * np.log(weak.examination[4])
    assert strong.ranker.control_l2 is None


class Scores:
    def __init__(self, s):
        self.s = s

    def predict(self, X):
        return self.s


def test_the_likelihood_of_clicks_is_the_best_one_over_scale_and_positions():
    log = placet.simulate.clicks(TRAIN[:30], PRODUCTION[: TRAIN.offsets[30]], 10, shown=3, random_state=4)
    s = TRAIN.X[:, 0][log.document]
    row, lists, _ = log.choices()
    found = click_likelihood(Scores(s), None, log)
    n = len(lists.offsets) - 1

    def value(x):
        b = np.array([0.0, x[1], x[2]])[log.position[row] - 1]
        return -LOSSES["pl-partition"](x[0] * s[row] + b, lists)[0] / n

    from scipy.optimize import minimize

    best = minimize(lambda x: -value(x), np.zeros(3), bounds=[(0, None), (None, None), (None, None)])
    assert found == pytest.approx(-best.fun, abs=1e-4)
    assert click_likelihood(Scores(5.0 * s + 2.0), None, log) == pytest.approx(found, abs=1e-6)
    assert click_likelihood(Scores(-s), None, log) < found  # a wrong order counts as no order
    assert click_likelihood(Scores(-s), None, log) == pytest.approx(
        click_likelihood(Scores(0 * s), None, log), abs=1e-6
    )


def test_rankers_are_chosen_by_clicks_alone():
    log = placet.simulate.clicks(TRAIN, PRODUCTION, 20, random_state=1)
    other = 2 * TEST.X[:, 2] + np.random.default_rng(8).normal(size=len(TEST.grade))
    valid = placet.simulate.clicks(TEST, other, 20, random_state=2)
    rankers = [LinearRanker("ranknet", 1e6), LinearRanker("ranknet", 1e-3), LinearRanker("pl-partition", 10.0)]
    X, X_valid = TRAIN.X[log.document], TEST.X[valid.document]
    best, values = choose_by_clicks(rankers, X, log, valid, X_valid=X_valid)
    fits = [fit_clicks(ranker, X, log) for ranker in rankers]
    np.testing.assert_allclose(values, [click_likelihood(fit.ranker, X_valid, valid) for fit in fits])
    np.testing.assert_array_equal(best.ranker.coef_, fits[int(np.argmax(values))].ranker.coef_)
    assert best.ranker.l2 == 1e-3
    for call, message in (
        (lambda: choose_by_clicks([], X, log, valid, X_valid=X_valid), "no ranker to choose from"),
        (lambda: choose_by_clicks(rankers, X, log, valid), "give X_valid"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def drawn_clicks(s, log, sharpness, rng):
    """One click per session, in proportion to e^{a_k s} / k."""
    row = log.document
    gumbel = sharpness[log.position - 1] * s[row] - np.log(log.position) + rng.gumbel(size=len(row))
    best = np.repeat(np.maximum.reduceat(gumbel, log.offsets[:-1]), np.diff(log.offsets))
    return Clicks(log.query, row, log.position, gumbel == best, log.offsets, log.queries, log.documents)


@pytest.mark.parametrize("ranker", ["linear", "trees"])
def test_trust_in_high_positions_is_found(ranker):
    rng = np.random.default_rng(0)
    s = TRAIN.X @ np.array([1.0, -0.5, 0.5, 0.0])
    a = np.array([0.3, 0.6, 1.0, 1.2, 1.4])
    log = drawn_clicks(s, placet.simulate.clicks(TRAIN, rng.normal(size=len(s)), 25, shown=5, random_state=2), a, rng)
    made = {
        "linear": LinearRanker("pl-partition", 1e-6, tol=1e-5),
        "trees": TreeRanker("pl-partition", 12, learning_rate=0.3, min_rows=100, leaves=6),
    }[ranker]
    X = TRAIN.X[log.document]
    fit, plain = (fit_clicks(made, X, log, trust=trust) for trust in (True, False))
    np.testing.assert_allclose(fit.sharpness, a / a.mean(), atol=0.2)
    np.testing.assert_allclose(np.log(fit.examination), -np.log(fit.positions), atol=0.3)
    assert (plain.sharpness == 1).all()
    likelihood = [click_likelihood(one.ranker, X, log, trust=True) for one in (fit, plain)]
    assert likelihood[0] > likelihood[1]
    assert click_likelihood(fit.ranker, X, log) < likelihood[0] - 0.01
    if ranker == "linear":
        np.testing.assert_allclose(fit.ranker.coef_ / a.mean(), [1.0, -0.5, 0.5, 0.0], atol=0.06)
        sparse = fit_clicks(made, csr_matrix(X), log, trust=True)
        np.testing.assert_allclose(sparse.ranker.coef_, fit.ranker.coef_, atol=1e-3)


def test_trees_see_the_slopes_of_the_scaled_scores():
    rng = np.random.default_rng(3)
    lists, s, a = TRAIN[:4].lists(), rng.normal(size=40), rng.uniform(0.3, 2.0, 40)
    slopes, plain = Slopes("pl-partition"), Slopes("pl-partition")
    for one in (slopes, plain):
        one.bind(lists)
    slopes.factor = a
    g, h = slopes.at(s)
    at = plain.at(a * s)
    np.testing.assert_allclose(g, a * at[0], rtol=1e-12)
    np.testing.assert_allclose(h, np.maximum(a**2 * at[1], 1e-3), rtol=1e-12)
    step = 1e-5 * rng.normal(size=40)
    gain = LOSSES["pl-partition"](a * (s + step), lists)[0] - LOSSES["pl-partition"](a * (s - step), lists)[0]
    assert gain == pytest.approx(2 * (g @ step) * slopes.unit * lists.weight.sum(), rel=1e-3)


def test_where_nobody_trusts_sharpness_is_even_and_the_ranker_the_same():
    rng = np.random.default_rng(1)
    s = TRAIN.X @ np.array([1.0, -0.5, 0.5, 0.0])
    shown = placet.simulate.clicks(TRAIN, rng.normal(size=len(s)), 25, shown=5, random_state=2)
    log = drawn_clicks(s, shown, np.ones(5), rng)
    made = LinearRanker("pl-partition", 1e-6, tol=1e-5)
    fit, plain = (fit_clicks(made, TRAIN.X[log.document], log, trust=trust) for trust in (True, False))
    np.testing.assert_allclose(fit.sharpness, 1.0, atol=0.2)
    np.testing.assert_allclose(fit.ranker.coef_, plain.ranker.coef_, atol=0.03)


def test_with_relevant_and_irrelevant_rows_sharpness_is_the_logarithm_of_their_clicks():
    """The model of trust bias: clicked where examined with probability eps+ (1 here) or eps-_k = noise + trust / k."""
    rng = np.random.default_rng(0)
    relevant = rng.integers(0, 2, 4000)
    data = Queries(relevant[:, None].astype(float), relevant, np.arange(0, 4001, 5))
    log = placet.simulate.clicks(
        data, rng.normal(size=4000), 10, shown=5, eta=1.0, noise=0.05, trust=0.6, random_state=3
    )
    eps = 0.05 + 0.95 * 0.6 / np.arange(1, 6)
    shares = [
        [log.clicked[(log.position == k) & (relevant[log.document] == r)].mean() * k for k in range(1, 6)]
        for r in (0, 1)
    ]
    np.testing.assert_allclose(shares, [eps, np.ones(5)], atol=0.06)
    fit = fit_clicks(LinearRanker("pl-partition", 1e-6, tol=1e-5), data.X[log.document], log, trust=True)
    truth = -np.log(eps)
    np.testing.assert_allclose(fit.sharpness * fit.ranker.coef_[0], truth, rtol=0.2)


def test_trust_that_cannot_be_fitted_is_refused():
    log = placet.simulate.clicks(TRAIN[:20], PRODUCTION[: TRAIN.offsets[20]], 5, random_state=1)
    X = TRAIN.X[log.document]
    for call, message in (
        (lambda: fit_clicks(LinearRanker(), X, log, trust=True, debias=False), "leave debias=False out"),
        (lambda: fit_clicks(LinearRanker(second_order=0.1), X, log, trust=True), "leave second_order out"),
        (lambda: placet.simulate.clicks(TRAIN, PRODUCTION, trust=2.0), "trust 2.0 in"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
