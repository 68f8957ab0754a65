"""StructRank: special networks, order graphs, gradients of the scorers, feasible steps, choice of starts, files."""

import itertools
from typing import get_args

import numpy as np
import oracle
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Lists, Queries
from placet.losses import LOSSES
from placet.rank import StructRank
from placet.rank.listwise import structrank as scorers
from placet.rank.listwise.structrank import Graph, cumulative_network, feasible_step, order_graphs

scores = st.lists(st.floats(-5, 5), min_size=2, max_size=5).map(np.array)


@pytest.fixture(scope="module")
def data():
    return placet.simulate.queries(25, (2, 9), 3, 3, noise=0.3, random_state=7)


def edges(grade):
    return [(i, j) for i in range(len(grade)) for j in range(len(grade)) if grade[i] > grade[j]]


def network(s, functions, weight=None):
    """cumulative_network from a list of lists of edges."""
    flat = list(itertools.chain.from_iterable(functions))
    above, below = [e[0] for e in flat], [e[1] for e in flat]
    return cumulative_network(s, above, below, np.cumsum([0] + [len(f) for f in functions]), weight)


def same(a, b):
    assert a[0] == pytest.approx(b[0], rel=1e-9)
    np.testing.assert_allclose(a[1], b[1], atol=1e-9)


@given(scores)
def test_ranknet_is_the_network_of_single_edges(s):
    grade = np.arange(len(s)) % 3
    same(network(s, [[e] for e in edges(grade)]), LOSSES["ranknet"](s, Lists(grade, [0, len(s)])))


@given(scores)
def test_listmle_is_a_network_of_one_sigmoid_per_row_over_the_rows_after_it(s):
    n = len(s)
    functions = [[(i, k) for k in range(i + 1, n)] for i in range(n - 1)]
    same(network(s, functions), LOSSES["listmle"](s, Lists(np.arange(n)[::-1], [0, n])))


@given(scores)
def test_listnet_is_a_network_of_one_weighted_sigmoid_per_row_over_all_others(s):
    n = len(s)
    grade = (np.arange(n) % 3).astype(float)
    share = np.exp(grade) / np.exp(grade).sum()
    functions = [[(i, k) for k in range(n) if k != i] for i in range(n)]
    value, grad = network(s, functions, share)
    expected = LOSSES["listnet"](s, Lists(grade, [0, n]))
    shift = expected[0] - value  # ListNet may count the entropy of the labels, which does not depend on s
    assert shift == pytest.approx(LOSSES["listnet"](0 * s, Lists(grade, [0, n]))[0] - np.log(n), abs=1e-9)
    np.testing.assert_allclose(grad, expected[1], atol=1e-9)


@settings(max_examples=30)
@given(scores)
def test_connected_structrank_is_the_network_of_all_pairs_of_edges(s):
    grade = np.arange(len(s)) % 3
    functions = [[e, f] for e in edges(grade) for f in edges(grade)]
    same(network(s, functions), LOSSES["structrank"](s, Lists(grade, [0, len(s)])))


def test_the_network_is_a_distribution_function_and_finite_far_away():
    """F grows with every margin, from 0 to 1."""
    values = [np.exp(-network(np.array([x, 0.0, 0.0]), [[(0, 1), (0, 2)]])[0]) for x in np.linspace(-800, 800, 41)]
    assert (np.diff(values) >= 0).all()
    assert values[0] < 1e-300
    assert values[-1] == 1.0
    value, grad = network(np.array([-1e4, 1e4]), [[(0, 1)]])
    assert value == 2e4
    np.testing.assert_allclose(grad, [-1, 1])


@pytest.mark.parametrize("connections", ["full", "none", 2, 0.6])
def test_given_edges_give_the_loss_of_grades(connections):
    grade = np.array([2.0, 1.0, 1.0, 0.0])
    above, below = (np.array(x) for x in zip(*edges(grade)))
    s, w = np.array([0.3, -0.2, 0.8, 0.1]), np.array([0.7, 1.3])
    by_grade = Graph(grade).loss(s, w, connections, 5)
    by_edge = Graph(grade, above, below).loss(s, w, connections, 5)
    if connections in (2, 0.6):  # partners are drawn from another numbering of seeds: the gradients are checked instead
        by_grade = by_edge
    else:
        assert by_edge[0] == pytest.approx(by_grade[0])
        np.testing.assert_allclose(by_edge[1], by_grade[1], atol=1e-12)
        np.testing.assert_allclose(by_edge[2], by_grade[2], atol=1e-12)
    for graph in (Graph(grade), Graph(grade, above, below)):
        _, g, slope = graph.loss(s, w, connections, 5)
        for k in range(4):
            step = 1e-6 * (np.arange(4) == k)
            change = graph.loss(s + step, w, connections, 5)[0] - graph.loss(s - step, w, connections, 5)[0]
            assert g[k] == pytest.approx(change / 2e-6, abs=1e-7)
        for k in range(2):
            step = 1e-6 * (np.arange(2) == k)
            change = graph.loss(s, w + step, connections, 5)[0] - graph.loss(s, w - step, connections, 5)[0]
            assert slope[k] == pytest.approx(change / 2e-6, abs=1e-7)


def test_the_number_of_edges():
    assert Graph(np.array([2.0, 1.0, 1.0, 0.0])).n_edges == 5
    assert Graph(np.ones(4)).n_edges == 0


def test_nadaraya_watson_is_the_printed_estimator(data):
    a = np.array([0.5, 1.0, 2.0])
    X, y = np.array(data.X), np.array(data.grade)
    s, _ = scorers.NadarayaWatson(X, y).forward(a, X[:6], None)
    left_out, _ = scorers.NadarayaWatson(X, y).forward(a, X[:6], (0, 6))
    for r in range(6):
        K = np.array(
            [np.exp(-0.5 * sum(a[f] ** 2 * (X[r, f] - X[i, f]) ** 2 for f in range(3))) for i in range(len(X))]
        )
        assert s[r] == pytest.approx(K @ y / K.sum())
        assert left_out[r] == pytest.approx(K[6:] @ y[6:] / K[6:].sum())


@pytest.mark.parametrize("name", get_args(scorers.Scorer))
def test_gradients_of_scorers(data, name, monkeypatch):
    monkeypatch.setattr(scorers, "ROWS_AT_ONCE", 4)  # blocks must add up
    X, y = np.array(data.X), np.array(data.grade)
    scorer = {
        "nadaraya-watson": scorers.NadarayaWatson(X, y),
        "linear": scorers.Linear(3),
        "network": scorers.Network(3, 4),
    }[name]
    a = scorer.start(np.random.default_rng(0), 50.0)[:-2]
    g = np.random.default_rng(1).normal(size=9)
    grad = scorer.forward(a, X[:9], None)[1](g)
    for k in range(len(a)):
        step = np.zeros(len(a))
        step[k] = 1e-6
        up, down = (scorer.forward(a + sign * step, X[:9], None)[0] for sign in (1, -1))
        assert grad[k] == pytest.approx(g @ (up - down) / 2e-6, abs=1e-6)
    np.testing.assert_allclose(scorers.all_scores(scorer, a, X[:9]), scorer.forward(a, X[:9], None)[0])


@given(st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=3, max_size=6), st.floats(0.01, 4))
def test_steps_stay_feasible_and_go_down_the_gradient(gradient, rate):
    g = np.array(gradient)
    theta = np.full(len(g), 0.5)
    new, used = feasible_step(theta, g, rate, 4.0, 1, "vector")
    assert new[0] >= 0
    assert new[-2:].min() >= 0
    assert np.abs(new).sum() <= 4.0
    moved = theta - new
    factor = moved @ g / (g @ g) if g.any() else 0.0
    np.testing.assert_allclose(moved, factor * g, atol=1e-12)
    assert used == pytest.approx(factor if factor > 0 else rate)
    halvings = np.log2(rate / factor) if factor > 0 else 0.0
    assert halvings == pytest.approx(round(halvings), abs=1e-6)
    if factor > 0 and round(halvings):  # the step before the last halving was not feasible
        longer = theta - 2 * factor * g
        assert min(longer[0], longer[-2:].min()) < 0 or np.abs(longer).sum() > 4.0


def test_no_step_is_feasible_out_of_the_boundary():
    theta, out = np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.5, 0.0])
    at, rate = feasible_step(theta, out, 0.5, 5.0, 1, "vector")
    np.testing.assert_array_equal(at, theta)
    assert rate == 0.5
    others_go_on, _ = feasible_step(theta, out, 0.5, 5.0, 1, "coordinate")
    np.testing.assert_array_equal(others_go_on, [0.0, 0.75, 1.0])
    halved, _ = feasible_step(theta, np.array([0.0, 3.0, 0.0]), 0.5, 5.0, 1, "coordinate")
    np.testing.assert_array_equal(halved, [0.0, 0.25, 1.0])


def test_a_step_is_halved_until_it_lowers():
    theta, down = np.array([1.0, 1.0, 1.0]), np.array([-1.0, 4.0, 0.0])
    new, rate = feasible_step(theta, down, 1.0, 9.0, 1, "loss", lambda at: at[0] < 1.2)
    assert rate == 0.125
    np.testing.assert_array_equal(new, [1.125, 0.875, 1.0])  # 4 is halved by itself to 1, then all by 8
    same, rate = feasible_step(theta, down, 1.0, 9.0, 1, "loss", lambda at: False)
    np.testing.assert_array_equal(same, theta)
    assert rate == 1.0


def test_a_halved_rate_stays_halved(data, monkeypatch):
    """Under "rate" the next step begins where the last one was feasible; under "vector" at the epoch's rate."""
    asked = {}
    for halving in ("rate", "vector"):
        steps = []

        def recorded(theta, gradient, rate, *rest, _steps=steps):
            _steps.append((rate, feasible_step(theta, gradient, rate, *rest)))
            return _steps[-1][1]

        monkeypatch.setattr(scorers, "feasible_step", recorded)
        StructRank("linear", epochs=2, starts=1, learning_rate=64.0, norm=5.0, halving=halving).fit(data)
        asked[halving] = steps
    n = len(asked["rate"]) // 2
    given, used = ([x[0] for x in asked["rate"]], [x[1][1] for x in asked["rate"]])
    assert given[0] == 64.0
    assert used[0] < 64.0
    assert given[1:n] == used[: n - 1]
    assert given[n] == pytest.approx(used[n - 1] / np.sqrt(2))
    assert [x[0] for x in asked["vector"]] == pytest.approx([64.0] * n + [64.0 / np.sqrt(2)] * n)


@pytest.mark.parametrize("scorer", get_args(scorers.Scorer))
@pytest.mark.parametrize("connections", ["full", "none", 1, 0.2])
def test_it_learns(data, scorer, connections):
    ranker = StructRank(scorer, connections, reduction="mean", learning_rate=2.0, starts=2)
    ranker.fit(data[:15], valid=data[15:])
    assert ranker.score(data[15:], metric="ndcg@5") > 0.8
    assert (ranker.theta_[-2:] >= 0).all()
    assert np.abs(ranker.theta_).sum() <= 50


@pytest.mark.parametrize("connections", ["full", "none", 2])
def test_the_published_sum_lowers_the_loss_at_the_published_rate(connections):
    """One feature helps and one harms, so that the untrained start, which weighs both alike, is a poor ranker."""
    data = placet.simulate.queries(30, (6, 14), 4, 3, w=[2.0, -2.0, 0.0, 0.0], noise=0.3, random_state=3)
    train, valid = data[:20], data[20:]
    ranker = StructRank(connections=connections, starts=2, halving="vector").fit(train, valid=valid)
    about = ranker.fit_summary_
    assert about["loss after"] < 0.97 * about["loss before"]
    start = StructRank(connections=connections, starts=2, halving="vector", learning_rate=1e-12).fit(train, valid=valid)
    assert start.fit_summary_["loss after"] == pytest.approx(start.fit_summary_["loss before"], rel=1e-6)
    assert np.abs(ranker.theta_ - start.theta_).max() > 0.1


@pytest.mark.parametrize("connections", ["full", "none", 2, 0.5])
def test_the_mean_is_the_sum_over_its_number_of_terms(connections):
    grade, s, w = np.array([2.0, 1.0, 1.0, 0.0, 0.0]), np.array([0.3, -0.2, 0.8, 0.1, -0.4]), np.array([0.7, 1.3])
    terms = {"full": 64, "none": 8, 2: 16, 0.5: 4}[connections]
    whole = Graph(grade).loss(s, w, connections, 5, "sum")
    mean = Graph(grade).loss(s, w, connections, 5, "mean")
    for a, b in zip(whole, mean):
        np.testing.assert_allclose(a, terms * np.asarray(b), rtol=1e-12)


def test_single_precision_scores_as_double_does(data):
    X, y, a = np.array(data.X), np.array(data.grade), np.array([0.5, 1.0, 2.0])
    double, single = (scorers.NadarayaWatson(X, y, dtype).forward(a, X[:9], None) for dtype in (np.float64, np.float32))
    assert single[0].dtype == np.float64
    np.testing.assert_allclose(single[0], double[0], atol=1e-5)
    g = np.random.default_rng(1).normal(size=9)
    np.testing.assert_allclose(single[1](g), double[1](g), atol=1e-3)
    assert StructRank(precision="single", epochs=1, starts=1).fit(data).predict(data).dtype == np.float64


def test_the_rate_falls_by_the_square_root_of_2_after_each_epoch(data, monkeypatch):
    rates = []

    def recorded(theta, gradient, rate, *rest):
        rates.append(rate)
        return theta, rate

    monkeypatch.setattr(scorers, "feasible_step", recorded)
    StructRank("linear", 1, epochs=3, starts=1, learning_rate=0.5).fit(data)
    steps = len(rates) // 3
    np.testing.assert_allclose(rates[::steps], [0.5, 0.5 / np.sqrt(2), 0.25])


def test_of_runs_the_last_epoch_counts(data):
    """Kept is the end of a run, though an epoch on the way may be better on the validation set."""
    train, valid = data[:15], data[15:]
    options = {"scorer": "linear", "epochs": 4, "starts": 2, "norm": (3.0, 30.0)}
    every, last = (StructRank(**options, keep=keep).fit(train, valid=valid).fit_summary_ for keep in ("epoch", "run"))
    assert last["epoch"] == 4
    assert every["validation"] >= last["validation"]
    ends = [
        StructRank(**{**options, "starts": 1, "norm": norm}, keep="run").fit(train, valid=valid).fit_summary_
        for norm in (3.0, 30.0)
    ]
    assert last["validation"] >= max(end["validation"] for end in ends)
    assert StructRank(**options, keep="run").fit(train).fit_summary_["epoch"] == 4


def test_a_sum_over_many_pairs_is_lowered_where_the_rate_finds_its_size():
    """Some 1,000 edges a list at rate 0.5: a step that is merely feasible is far too long, and raises the loss."""
    data = placet.simulate.queries(12, 60, 4, 3, w=[2.0, -2.0, 0.0, 0.0], noise=3.0, random_state=3)
    ratio = {}
    for halving in get_args(scorers.Halving):
        about = StructRank("linear", starts=1, epochs=6, halving=halving, keep="run").fit(data).fit_summary_
        ratio[halving] = about["loss after"] / about["loss before"]
    assert max(ratio["rate"], ratio["loss"]) < 0.9
    assert min(ratio["vector"], ratio["coordinate"]) > 2


def whole_objective(scorer, theta, X, graph, connections):
    s, back = scorer.forward(theta[:-2], X, None)
    value, g, slope = graph.loss(s, theta[-2:], connections, 3)
    return value, np.concatenate([back(g), slope])


@pytest.mark.parametrize("connections", ["full", "none", 2])
@pytest.mark.parametrize("name", get_args(scorers.Scorer))
def test_the_gradient_of_what_is_trained(data, name, connections):
    """In all parameters at once, through scores, margins and pairs of edges; and a short step goes down."""
    X, y = np.array(data.X), np.array(data.grade)
    scorer = {"nadaraya-watson": scorers.NadarayaWatson(X, y), "linear": scorers.Linear(3)}.get(name) or (
        scorers.Network(3, 4)
    )
    theta = scorer.start(np.random.default_rng(0), 50.0)
    a, b = data.offsets[:2]
    graph = Graph(y[a:b])
    value, grad = whole_objective(scorer, theta, X[a:b], graph, connections)
    expected = oracle.central_difference(
        lambda at: whole_objective(scorer, at, X[a:b], graph, connections)[0], theta, 1e-5
    )
    np.testing.assert_allclose(grad, expected, rtol=1e-6, atol=1e-6 * np.abs(grad).max())
    lower, _ = whole_objective(scorer, theta - 1e-4 / np.abs(grad).sum() * grad, X[a:b], graph, connections)
    assert lower < value


def test_the_best_start_epoch_and_norm_on_the_validation_set(data):
    train, valid = data[:15], data[15:]
    many = StructRank("linear", epochs=3, starts=3, norm=(1.0, 30.0)).fit(train, valid=valid).fit_summary_
    one = StructRank("linear", epochs=3, starts=1, norm=30.0).fit(train, valid=valid).fit_summary_
    assert many["validation"] >= one["validation"]
    again = StructRank("linear", epochs=3, starts=3, norm=(1.0, 30.0)).fit(train, valid=valid).fit_summary_
    assert again == many


def test_preferences_from_a_relation():
    """Edges that say the opposite of the grades are what counts."""
    data = placet.simulate.queries(20, 5, 2, 3, w=[1, 0], noise=0.01, random_state=1)
    full = (data.grade[:, None] < data.grade) & (data.query[:, None] == data.query)
    turned = Queries(data.X, data.grade, data.offsets, relations={"prefers": csr_matrix(full.astype(float))})
    assert sum(g.n_edges for g in order_graphs(turned, "prefers")) == sum(g.n_edges for g in order_graphs(turned, None))
    ranker = StructRank("linear", preferences="prefers", epochs=8, starts=1).fit(turned)
    assert ranker.theta_[0] < 0
    with pytest.raises(DataError, match="not a relation"):
        StructRank(preferences="other").fit(turned)
    own = Queries(data.X, data.grade, data.offsets, relations={"p": csr_matrix(np.eye(len(data.grade)))})
    with pytest.raises(DataError, match="preferred to itself"):
        StructRank(preferences="p").fit(own)
    empty = Queries(data.X, data.grade, data.offsets, relations={"p": csr_matrix((len(data.grade),) * 2)})
    with pytest.raises(DataError, match="nothing to learn"):
        StructRank(preferences="p").fit(empty)


@pytest.mark.parametrize("scorer", get_args(scorers.Scorer))
def test_saved_and_loaded(data, tmp_path, scorer):
    ranker = StructRank(scorer, 1, epochs=1, starts=1).fit(data)
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(data), ranker.predict(data))


def test_bad_input(data):
    for wrong, words in (({"scorer": "x"}, "choose from"), ({"connections": 0}, "partners"), ({"norm": 0.0}, "above 0"), ({"epochs": 0}, "at least 1"), ({"halving": "x"}, "choose from"), ({"keep": "x"}, "choose from"), ({"reduction": "x"}, "choose from"), ({"precision": "x"}, "choose from")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            StructRank(**wrong).fit(data)
    with pytest.raises(DataError, match="nothing to learn"):
        StructRank().fit(data.X, np.ones(len(data.grade)), data.query)
    with pytest.raises(DataError, match="dense"):
        StructRank().fit(placet.simulate.queries(5, 4, 3, density=0.5))
    one = np.vstack([data.X, data.X[:1]]), np.append(data.grade, 0.0), np.append(data.query, 999)
    ranker = StructRank("linear", 1, epochs=1, starts=1).fit(*one)  # a list of one teaches nothing and does no harm
    assert ranker.predict(data.X[:1]).shape == (1,)
    long = np.random.default_rng(0).normal(size=(11_000, 3))
    assert np.isfinite(StructRank(epochs=1, starts=1).fit(data).predict(long)).all()


@pytest.mark.parametrize("scorer", ["nadaraya-watson", "linear", "network"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_features_that_are_no_numbers_are_named(scorer, wrong):
    data = placet.simulate.queries(4, 12, 3, random_state=0)
    X = np.array(data.X)
    X[5, 1] = wrong
    with pytest.raises(DataError, match="feature 1 has NaN or infinite values"):
        StructRank(scorer, epochs=1, starts=1).fit(Queries(X, data.grade, data.offsets))
