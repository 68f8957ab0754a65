"""Score tables: read as they are, missing cells never 0, errors from tasks drawn in pairs, ranks that cover."""

import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

import placet
from placet.aggregate.method_table import METHODS
from placet.aggregate.scores.rasch import fit_rasch
from placet.aggregate.scores.score_consensus import mean, mean_win_rate, rasch
from placet.cli import main

NAN = float("nan")
WIDE = "Model,Average,MMLU,GSM8K,License\nalpha,80,71.3%,90,mit\nbeta,60,-,60,apache\ngamma,50,40,60,mit\n"

SCORE_METHODS = [name for name, method in METHODS.items() if method.takes == ("scores",)]


def ones(scores):
    return np.ones(len(scores.task))


@st.composite
def tables(draw, missing=True, low=-5.0, high=5.0):
    n, t = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    cell = st.floats(low, high, width=32) if not missing else st.one_of(st.just(NAN), st.floats(low, high, width=32))
    value = np.array([[draw(cell) for _ in range(t)] for _ in range(n)])
    value[:, 0] = [draw(st.floats(low, high, width=32)) for _ in range(n)]  # a task that all have
    value[0] = [draw(st.floats(low, high, width=32)) for _ in range(t)]  # an item that has all tasks
    return placet.Scores.from_table(value, items=[f"i{k}" for k in range(n)])


# Reading


def test_a_wide_table_is_read_as_it_is(tmp_path):
    (tmp_path / "board.csv").write_text(WIDE)
    found = placet.read(tmp_path / "board.csv")
    assert isinstance(found, placet.Scores)
    assert found.tasks == ("MMLU", "GSM8K")
    np.testing.assert_array_equal(found.value, [[71.3, 90], [NAN, 60], [40, 60]])
    assert found.notes == ("read as scores: Model, MMLU, GSM8K; ignored: Average, License",)
    assert found.describe()["missing"] == 1


def test_a_long_table_with_and_without_questions():
    rows = {"model": ["x", "y", "x", "y"], "task": ["p", "p", "q", "q"], "score": [1, 0, 0.5, None]}
    found = placet.read(rows)
    np.testing.assert_array_equal(found.value, [[1, 0.5], [0, NAN]])
    rows = {
        "model": ["x", "x", "y", "y"],
        "task": ["p"] * 4,
        "question": [1, 2, 1, 2],
        "correct": [True, False, True, True],
    }
    found = placet.read_scores(pl.DataFrame(rows))
    assert found.questions == (1, 2)
    np.testing.assert_array_equal(found.by_task(), [[0.5], [1.0]])
    assert repr(found) == "Scores(2 items, 1 tasks, 2 questions, 4 scores)"


@pytest.mark.parametrize("questions", [False, True])
def test_tables_are_read_back_as_they_were_written(tmp_path, questions):
    value = np.array([[1.0, 0.25, NAN], [0.0, 0.5, 1.0]])
    names = ("q1", "q2", "q1") if questions else None
    task, tasks = (np.array([0, 0, 1]), ("p", "r")) if questions else (np.arange(3), ("p", "q", "r"))
    scores = placet.Scores(value, task, ("x", "y"), tasks, names)
    for suffix in (".csv", ".parquet", ".jsonl"):
        placet.io.write(scores, tmp_path / f"s{suffix}")
        again = placet.read(tmp_path / f"s{suffix}")
        assert (again.items, again.tasks, again.questions) == (scores.items, scores.tasks, scores.questions)
        np.testing.assert_array_equal(again.value, value)


def test_lower_is_better_where_it_is_said():
    rows = {"model": ["x", "y"], "accuracy_1": [0.5, 0.6], "seconds": [1.0, 9.0]}
    found = placet.read_scores(rows, lower="seconds")
    np.testing.assert_array_equal(found.value, [[0.5, -1], [0.6, -9]])
    with pytest.raises(placet.DataError, match="lower names 'time'"):
        placet.read_scores(rows, lower="time")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"model": ["x", "x"], "p": [1, 2], "q": [1, 2]}, "model 'x' has a second row"),
        ({"model": ["x", "y"], "task": ["p", "p"], "score": ["good", 1]}, "score 'good' is not a score"),
        ({"model": ["x", "x"], "task": ["p", "p"], "score": [1, 2]}, "item 'x' has 2 scores for task 'p'"),
        ({"who": ["x", "y"], "p": [1, 2]}, "name no model or system"),
    ],
)
def test_bad_tables_are_named(rows, words):
    with pytest.raises(placet.DataError, match=words):
        placet.read_scores(rows)


def test_ballots_and_features_stay_what_they_are():
    assert isinstance(placet.read({"apple": [1, 2], "pear": [2, 1]}), placet.Rankings)
    assert isinstance(placet.read({"qid": [1, 1], "label": [0, 1], "f0": [0.5, 1.5]}), placet.Queries)
    assert isinstance(placet.read({"model_a": ["x"], "model_b": ["y"], "winner": ["a"]}), placet.Comparisons)


# Methods against slow twins


@settings(max_examples=60)
@given(tables())
def test_the_mean_is_least_squares_over_the_cells_that_are_there(scores):
    n, t = scores.value.shape
    i, c = np.nonzero(~np.isnan(scores.value))
    X = np.zeros((len(i), n + t))
    X[np.arange(len(i)), i] = X[np.arange(len(i)), n + c] = 1
    z = np.linalg.lstsq(X, scores.value[i, c], rcond=None)[0]
    np.testing.assert_allclose(mean(scores, ones(scores)), z[:n] + z[n:].mean(), atol=1e-8)


@settings(max_examples=40)
@given(tables(missing=False))
def test_without_missing_cells_the_mean_is_the_mean(scores):
    np.testing.assert_allclose(mean(scores, ones(scores)), scores.value.mean(axis=1), atol=1e-12)


def slow_win_rate(value):
    n, t = value.shape
    answer = []
    for i in range(n):
        rates = []
        for c in range(t):
            others = [value[j, c] for j in range(n) if j != i and value[j, c] == value[j, c]]
            if value[i, c] == value[i, c] and others:
                rates.append(np.mean([(value[i, c] > y) + 0.5 * (value[i, c] == y) for y in others]))
        answer.append(np.mean(rates))
    return answer


@settings(max_examples=60)
@given(tables())
def test_the_win_rate_is_that_of_the_loop(scores):
    np.testing.assert_allclose(mean_win_rate(scores, ones(scores)), slow_win_rate(scores.value), atol=1e-12)


def test_rasch_is_at_the_minimum_of_its_own_objective():
    rng = np.random.default_rng(0)
    value = (rng.random((4, 12)) < 0.6).astype(float)
    value[0, :3] = NAN
    scores = placet.Scores.from_table(value)

    def cost(z):
        """By integration over each difficulty, without quadrature nodes of the model."""
        d = np.linspace(-8, 8, 2001)
        p = expit(z[:4, None] - np.exp(z[4]) * d)
        each = np.full((12, len(d)), norm.pdf(d))
        for c in range(12):
            for i in range(4):
                if value[i, c] == value[i, c]:
                    each[c] *= p[i] ** value[i, c] * (1 - p[i]) ** (1 - value[i, c])
        theta = z[:4] - z[:4].mean()
        return -np.log(each.sum(axis=1) * (d[1] - d[0])).sum() + 0.5 * theta @ theta / 4 + 0.5 * (z[4] / 1.5) ** 2

    best = minimize(cost, np.zeros(5), tol=1e-10).x[:4]
    np.testing.assert_allclose(rasch(scores, ones(scores), prior=2.0), best - best.mean(), atol=1e-4)


def test_free_difficulties_are_a_logistic_regression_of_shares():
    rng = np.random.default_rng(0)
    value = rng.random((4, 7))
    value[0, :2] = NAN
    there, x = ~np.isnan(value), np.where(np.isnan(value), 0, value)

    def cost(z):
        p = expit(z[:4, None] - z[4:])
        theta = z[:4] - z[:4].mean()
        return -(there * (x * np.log(p) + (1 - x) * np.log(1 - p))).sum() + 0.5 * theta @ theta / 4

    best = minimize(cost, np.zeros(11), tol=1e-10).x[:4]
    np.testing.assert_allclose(fit_rasch(value, np.ones(7), 2.0).theta, best - best.mean(), atol=1e-4)


@pytest.mark.parametrize("shares", [False, True])
def test_the_influence_of_a_column_is_the_change_of_a_refit(shares):
    rng = np.random.default_rng(0)
    value = (rng.random((3, 40)) < [[0.3], [0.5], [0.7]]).astype(float)
    value = 0.9 * value + 0.1 * rng.random((3, 40)) if shares else value
    fit = fit_rasch(value, np.ones(40), 3.0)
    weight = np.ones(40)
    weight[7] += 1e-4
    moved = fit_rasch(value, weight, 3.0).theta - fit.theta
    influence = fit.influence[:, 7] - fit.influence[:, 7].mean()
    np.testing.assert_allclose(moved / 1e-4, influence, atol=1e-3)


def test_rasch_recovers_abilities_where_tasks_are_not_shared():
    rng = np.random.default_rng(1)
    ability, difficulty = np.linspace(-1, 1, 8), rng.normal(0, 2, 1200)
    value = (rng.random((8, 1200)) < expit(ability[:, None] - difficulty)).astype(float)
    value[rng.random(value.shape) < np.where(difficulty > 0, 0.7, 0.1)[None] * np.linspace(1, 0, 8)[:, None]] = NAN
    scores = placet.Scores.from_table(value)
    found = rasch(scores, ones(scores), prior=None)
    assert np.abs(found - ability).max() < 0.25
    plain = np.nanmean(value, axis=1)
    assert np.corrcoef(found, ability)[0, 1] > np.corrcoef(plain, ability)[0, 1]  # weak items skipped hard tasks


@pytest.mark.parametrize("method", SCORE_METHODS)
def test_the_order_of_items_and_tasks_changes_nothing(method):
    rng = np.random.default_rng(2)
    value = rng.random((4, 9))
    value[1, 2] = NAN
    scores = placet.Scores.from_table(value, items=list("abcd"), tasks=list(range(9)))
    rows, columns = rng.permutation(4), rng.permutation(9)
    other = placet.Scores.from_table(
        value[rows][:, columns], items=[scores.items[k] for k in rows], tasks=[scores.tasks[k] for k in columns]
    )
    a, b = (placet.consensus(s, method, bootstrap=2) for s in (scores, other))
    for name in "abcd":
        assert a.scores[a.items.index(name)] == pytest.approx(b.scores[b.items.index(name)], abs=1e-7)


# How sure


def test_errors_of_means_are_those_of_paired_tasks():
    rng = np.random.default_rng(3)
    value = rng.normal(size=(3, 30)) + 5 * rng.normal(size=30)  # hard tasks are hard for all
    board = placet.consensus(placet.Scores.from_table(value), "mean", bootstrap=4000)
    np.testing.assert_allclose(board.stderr, value.std(axis=1, ddof=1) / np.sqrt(30), rtol=0.06)
    paired = np.std(board.draws[:, 0] - board.draws[:, 1])
    assert paired == pytest.approx((value[0] - value[1]).std(ddof=1) / np.sqrt(30), rel=0.06)
    assert paired < board.stderr[0] / 2


def test_questions_within_tasks_are_drawn_where_there_are_questions():
    rng = np.random.default_rng(4)
    value = rng.random((2, 40))
    scores = placet.Scores(value, np.repeat([0, 1], [30, 10]), ("x", "y"), ("p", "q"), tuple(range(40)))
    board = placet.consensus(scores, "mean", bootstrap=4000)
    assert board.scores[0] == pytest.approx((value[0, :30].mean() + value[0, 30:].mean()) / 2)
    expected = np.sqrt(value[0, :30].var(ddof=1) / 30 + value[0, 30:].var(ddof=1) / 10) / 2
    assert board.stderr[0] == pytest.approx(expected, rel=0.1)
    by_task = placet.consensus(scores, "mean", unit="task")
    assert "2 tasks: too few to separate" in by_task.notes[-1]
    with pytest.raises(ValueError, match='unit="question" needs a table with questions'):
        placet.consensus(placet.Scores.from_table(value), "mean", unit="question")


def test_rank_sets_cover_the_truth_at_near_ties():
    rng, covered, runs = np.random.default_rng(5), 0, 100
    truth = np.array([0.0, 0.01, 0.02, 0.5])
    for _ in range(runs):
        value = truth[:, None] + rng.normal(size=25) + 0.3 * rng.normal(size=(4, 25))
        board = placet.consensus(placet.Scores.from_table(value), "mean", bootstrap=300)
        low, high = board.rank_interval(0.95)
        covered += bool(((low <= [4, 3, 2, 1]) & (high >= [4, 3, 2, 1])).all())
    assert covered >= 88


def test_one_task_says_nothing_about_the_errors():
    board = placet.consensus(placet.Scores.from_table([[1.0], [2.0]]), "mean")
    assert board.stderr is None
    assert "one task alone" in board.notes[-1]


def test_missing_is_missing_never_zero():
    value = np.array([[0.9, 0.2], [0.8, NAN], [0.7, 0.1]])  # the second has the easy task alone
    scores = placet.Scores.from_table(value, items=list("xyz"))
    for method in SCORE_METHODS:
        assert placet.consensus(scores, method, bootstrap=5).ranking[0] == "x"
        assert placet.consensus(scores, method, bootstrap=5).ranking[-1] == "z"
    assert placet.consensus(scores, "mean", bootstrap=5).support.tolist() == [2, 1, 2]


def test_other_methods_take_a_ballot_for_each_task():
    value = np.array([[0.9, 0.2, 3.0], [0.8, NAN, 3.0], [0.7, 0.1, 9.0]])
    scores = placet.Scores.from_table(value, items=list("xyz"), tasks=list("pqr"))
    ballots = placet.Rankings.from_orders([["x", "y", "z"], ["x", "z"], ["z", ("x", "y")]])
    assert list(scores.to_rankings()) == list(ballots)
    for method in ("plackett-luce", "kemeny"):
        assert placet.consensus(scores, method).ranking == placet.consensus(ballots, method).ranking


@pytest.mark.parametrize(
    ("value", "method", "words"),
    [
        ([[71.0, 0.3], [20.0, 0.1]], "rasch", "needs shares of questions solved, 0..1; item 0 has 71"),
        ([[1.0, 1.0], [1.0, 1.0]], "rasch", "solves all or nothing"),
        ([[1.0, NAN], [NAN, 1.0]], "mean", "share no task, not even through others"),
        ([[1.0, 2.0], [NAN, NAN]], "mean", "item 1 has no score at all"),
    ],
)
def test_tables_that_cannot_be_ranked_say_why(value, method, words):
    with pytest.raises(placet.DataError, match=words):
        placet.consensus(placet.Scores.from_table(value), method)


def test_methods_of_tables_need_tables():
    with pytest.raises(ValueError, match="'rasch' needs a table of scores"):
        placet.consensus(placet.Rankings.from_orders([["a", "b"]]), "rasch")
    with pytest.raises(ValueError, match="parameter 'seats' is unknown to 'mean'"):
        placet.consensus(placet.Scores.from_table([[1.0], [2.0]]), "mean", seats=2)


def test_tasks_on_other_scales_are_said():
    board = placet.consensus(placet.Scores.from_table([[0.9, 71.0], [0.7, 80.0]]), "mean", bootstrap=5)
    assert any("different scales" in note for note in board.notes)


def test_the_command_shows_tiers(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    lines = [f"m{k}," + ",".join(f"{x:.3f}" for x in rng.normal([0.9, 0.9, 0.1][k], 0.05, 12)) for k in range(3)]
    (tmp_path / "s.csv").write_text("model," + ",".join(f"t{k}" for k in range(12)) + "\n" + "\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    for words, expected in (
        (["aggregate", "s.csv", "--tiers"], "tier\tranks\titems\n1\t1-2\t"),
        (["aggregate", "s.csv", "-m", "mean-win-rate", "--report", "p.html"], "item\tscore\tstderr\trank"),
        (["aggregate", "s.csv", "-m", "plackett-luce", "--tiers"], "tier\tranks\titems"),
        (["describe", "s.csv"], "what\tvalue\nkind\tscores\nitems\t3\ntasks\t12"),
        (["audit", "s.csv"], "check\tverdict"),
    ):
        monkeypatch.setattr(sys, "argv", ["placet", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        assert not stopped.value.code, err
        assert expected in out
    assert (tmp_path / "p.html").exists()
