"""Clicks: reading them, choices, and rankers whose scores do not inherit the position at which rows were shown."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Queries
from placet.data.arrays import same_columns
from placet.data.clicks import Clicks
from placet.io import read_clicks
from placet.losses import LOSSES
from placet.metrics import ndcg
from placet.rank import LinearRanker, NeuralRanker, TreeRanker, choose_by_clicks, click_likelihood, fit_clicks
from placet.rank.trees import Slopes

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
        ("4,q,a,1,2", "clicked '2' is not 0 or 1"),
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


def test_choices_are_every_click_against_what_was_left():
    log = read_clicks(
        {name: [line.split(",")[k] for line in CSV.split()[1:]] for k, name in enumerate(CSV.split()[0].split(","))}
    )
    row, lists, silent = log.choices()
    assert [row[a:b].tolist() for a, b in zip(lists.offsets, lists.offsets[1:])] == [[0, 1, 2], [3, 5], [4, 5]]
    assert lists.grade.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert silent == 1


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
    [LinearRanker("pl-partition", 1e-3), TreeRanker("pl-partition", 40, min_rows=100, leaves=8)],
    ids=["linear", "trees"],
)
def test_positions_are_learnt_and_left_out(ranker):
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
    assert np.abs(np.log(fair.examination[:5] * np.arange(1, 6))).max() < 0.6  # 1 / k, and clicks on two rows bend it
    assert (naive.examination == 1).all()
    assert type(fair.ranker) is type(ranker)
    assert fair.ranker.n_features_in_ == 4
    assert fair.n_choices + fair.n_silent >= len(log)
    assert not hasattr(ranker, "n_features_in_")  # what was given stays as it was


def test_with_one_click_the_effects_are_those_of_the_positions():
    """Drawn from the model itself: one click per session, in proportion to e^s / k."""
    rng = np.random.default_rng(0)
    s = TRAIN.X @ np.array([1.0, -0.5, 0.5, 0.0])
    log = placet.simulate.clicks(TRAIN, rng.normal(size=len(s)), 40, random_state=2)
    row = log.document
    gumbel = s[row] - np.log(log.position) + rng.gumbel(size=len(row))
    best = np.maximum.reduceat(gumbel, log.offsets[:-1])
    drawn = Clicks(
        log.query,
        row,
        log.position,
        gumbel == np.repeat(best, np.diff(log.offsets)),
        log.offsets,
        log.queries,
        log.documents,
    )
    fit = fit_clicks(LinearRanker("pl-partition", 1e-6, tol=1e-6), TRAIN.X[row], drawn)
    np.testing.assert_allclose(np.log(fit.examination), -np.log(fit.positions), atol=0.25)
    np.testing.assert_allclose(fit.ranker.coef_, [1.0, -0.5, 0.5, 0.0], atol=0.1)


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
    silent = Clicks(
        log.query,
        log.document,
        log.position,
        np.zeros(len(log.document), bool),
        log.offsets,
        log.queries,
        log.documents,
    )
    with pytest.raises(DataError, match="none of 100 impressions has a click"):
        fit_clicks(ranker, few.X, silent, keys=keys)


def test_simulated_clicks_fall_with_the_position_as_stated():
    one = Queries(np.zeros((20_000, 1)), np.tile([1.0, 0.0], 10_000), np.arange(0, 20_001, 2))
    log = placet.simulate.clicks(one, np.tile([0.0, 1.0], 10_000), 1, eta=1.0, noise=0.2, random_state=0)
    share = [log.clicked[log.position == k].mean() for k in (1, 2)]
    np.testing.assert_allclose(share, [0.2, 0.5], atol=0.02)  # grade 0 shown first, grade 1 second: 1 / 2
    single = placet.simulate.clicks(one, np.zeros(20_000), 1, one_click=True, random_state=0)
    assert (np.add.reduceat(single.clicked, single.offsets[:-1]) == 1).all()


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
    # one click by choice in proportion to the probability of a click: the model itself
    p = np.where(relevant[log.document] == 1, 1.0, eps[log.position - 1]) / log.position
    gumbel = np.log(p) + rng.gumbel(size=len(p))
    clicked = gumbel == np.repeat(np.maximum.reduceat(gumbel, log.offsets[:-1]), np.diff(log.offsets))
    log = Clicks(log.query, log.document, log.position, clicked, log.offsets, log.queries, log.documents)
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
