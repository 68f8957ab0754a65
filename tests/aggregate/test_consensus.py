"""The result type and the short way: ranks, ties, intervals, bootstrap, the pair to ask next, errors that name the way out."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from placet.aggregate import MODELS, RULES, Consensus, consensus
from placet.aggregate.data_facts import support
from placet.aggregate.resample import resample, resampled_counts
from placet.aggregate.result import uncertainty
from placet.aggregate.result.result_tables import table_rows
from placet.data import Comparisons, DataError, Rankings
from placet.data.engines import memory

BALLOTS = Rankings.from_orders(
    [["a", "b", "c"], ["b", "a", "c"], ["a", ("b", "c")], ["c", "a", "b"]], weight=[4, 2, 3, 1]
)


def test_ties_share_a_rank_and_stay_together():
    c = Consensus("dcba", [2.0, 3.0, 2.0, 1.0], method="m")
    assert c.ranking == ["c", ("d", "b"), "a"]
    assert c.ranks.tolist() == [2, 1, 2, 4]
    assert c.order.tolist() == [1, 0, 2, 3]


@settings(max_examples=60)
@given(st.lists(st.integers(-3, 3), max_size=9))
def test_ranks_are_one_more_than_the_number_above(scores):
    c = Consensus(range(len(scores)), scores, method="m")
    assert c.ranks.tolist() == [1 + sum(other > s for other in scores) for s in scores]
    flat = [k for group in c.ranking for k in (group if isinstance(group, tuple) else (group,))]
    assert flat == sorted(range(len(scores)), key=lambda k: (-scores[k], k))


def test_scores_closer_than_the_tolerance_tie():
    assert Consensus("ab", [1.0, 1.0 + 1e-12], method="m").ranking == [("a", "b")]
    assert Consensus("ab", [1.0, 1.0 + 1e-6], method="m").ranking == ["b", "a"]
    assert Consensus("ab", [1.0, 1.0 + 1e-6], method="m", tolerance=1e-5).ranking == [("a", "b")]


def test_without_uncertainty_the_error_names_the_bootstrap():
    c = Consensus("ab", [1.0, 2.0], method="borda")
    for ask in (c.interval, c.rank_interval, lambda: c.prob_above("a", "b"), lambda: c.top_k_probability(1)):
        with pytest.raises(ValueError, match="bootstrap=200"):
            ask()
    with pytest.raises(ValueError, match="no probability of winning"):
        c.win_probability("a", "b")
    assert c.to_frame()["stderr"].to_list() == [None, None]
    assert c.to_frame()["rank_low"].to_list() == [None, None]


def test_bad_results_are_refused():
    with pytest.raises(ValueError, match="item 'b' has score nan"):
        Consensus("ab", [1.0, np.nan], method="m")
    with pytest.raises(ValueError, match="there are 2 items"):
        Consensus("ab", [1.0, 2.0, 3.0], method="m")
    with pytest.raises(ValueError, match="'z' is not among the 2 items"):
        Consensus("ab", [1.0, 2.0], method="m", stderr=[1, 1]).prob_above("a", "z")
    with pytest.raises(ValueError, match="level must be"):
        Consensus("ab", [1.0, 2.0], method="m", stderr=[1, 1]).interval(95)


def test_normal_answers_follow_from_the_covariance():
    C = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 4.0]])
    c = Consensus("abc", [1.0, 0.5, 0.0], method="m", covariance=C)
    np.testing.assert_allclose(c.stderr, [1, 1, 2])
    assert c.prob_above("a", "b") == pytest.approx(norm.cdf(0.5 / np.sqrt(0.4)))
    assert c.prob_above("a", "b") + c.prob_above("b", "a") == pytest.approx(1)
    np.testing.assert_allclose(c.interval(0.9)[1] - c.scores, norm.ppf(0.95) * c.stderr)
    first = np.random.default_rng(1).multivariate_normal(c.scores, C, 200_000).argmax(axis=1)
    np.testing.assert_allclose(c.top_k_probability(1), np.bincount(first) / 200_000, atol=0.03)
    assert c.top_k_probability(2).sum() == pytest.approx(2)
    P = c.rank_probabilities()
    np.testing.assert_allclose(P.sum(axis=0), 1)
    np.testing.assert_allclose(P[:, 0], c.top_k_probability(1))
    low, high = c.rank_interval(0.95)
    assert (low <= c.ranks).all()
    assert (c.ranks <= high).all()


def test_certain_scores_have_certain_ranks():
    c = Consensus(range(50), np.arange(50.0), method="m", stderr=np.full(50, 1e-3))
    low, high = c.rank_interval()
    np.testing.assert_array_equal(low, c.ranks)
    np.testing.assert_array_equal(high, c.ranks)


def test_rank_intervals_of_many_items_agree_with_simulation():
    rng = np.random.default_rng(0)
    scores, stderr = rng.normal(size=3000), rng.uniform(0.05, 0.3, 3000)
    simulated = uncertainty.rank_quantiles(uncertainty.simulated_scores(scores, stderr, None, rng), 0.95)
    pooled = uncertainty.rank_interval_of_many(scores, stderr, 0.95, 0)
    for a, b in zip(simulated, pooled):
        assert np.abs(a - b).mean() < 25  # of 3000 ranks
        assert np.corrcoef(a, b)[0, 1] > 0.999


def test_an_interval_of_draws_holds_another_draw_as_often_as_it_says():
    """Of 39 draws and one more, the last is the least or the greatest in 2 of 40 cases; linear quantiles lie inside."""
    draws = np.random.default_rng(0).permutation(39.0 + np.arange(39))[:, None]
    low, high = uncertainty.score_interval(np.zeros(1), None, draws, 0.95)
    assert (low.item(), high.item()) == (39.0, 77.0)
    low, high = uncertainty.score_interval(np.zeros(1), None, draws, 0.5)
    assert (low.item(), high.item()) == (48.0, 68.0)


def test_draws_answer_in_place_of_the_normal_approximation():
    draws = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    c = Consensus("ab", [0.0, 1.0], method="m", draws=draws)
    assert c.prob_above("b", "a") == 0.625
    np.testing.assert_allclose(c.top_k_probability(1), [0.375, 0.625])
    np.testing.assert_allclose(c.stderr, draws.std(axis=0, ddof=1))


@settings(max_examples=40)
@given(st.floats(-3, 3), st.floats(0.1, 4), st.floats(0.01, 0.99))
def test_the_fall_of_order_variance_is_the_variance_of_what_we_shall_believe(gap, variance, share):
    learned = share * variance
    sd, rest = np.sqrt(learned), np.sqrt(variance - learned)
    moment = lambda k: quad(lambda z: norm.pdf(z) * norm.cdf((gap + sd * z) / rest) ** k, -9, 9, limit=200)[0]  # noqa: E731
    assert uncertainty.order_variance_fall(gap, variance, learned) == pytest.approx(
        moment(2) - moment(1) ** 2, abs=1e-7
    )
    tiny = uncertainty.order_variance_fall(gap, variance, np.array([0.999e-6, 1.001e-6]) * variance)
    assert tiny[0] == pytest.approx(tiny[1], rel=0.01, abs=1e-15)


def test_the_next_pair_is_the_uncertain_close_one():
    c = consensus(
        Comparisons([0, 0, 1, 2], [1, 2, 2, 3], [60, 90, 90, 2], [40, 10, 10, 1], [0, 0, 0, 0], items="abcd"),
        "bradley-terry",
    )
    assert set(c.next_pairs(1)[0]) == {"c", "d"}
    assert len({frozenset(p) for p in c.next_pairs(6)}) == 6
    assert len(c.next_pairs(100)) == 6
    loose = Consensus(c.items, c.scores, method="m", stderr=c.stderr, win=c.win)
    assert set(loose.next_pairs(1)[0]) == {"c", "d"}


def test_the_frame_is_best_first_and_the_result_can_be_pickled():
    c = pickle.loads(pickle.dumps(consensus(BALLOTS)))
    frame = c.to_frame()
    assert frame.columns == ["item", "score", "stderr", "rank", "rank_low", "rank_high", "tier", "support"]
    assert frame["item"].to_list() == ["a", "b", "c"]
    assert frame["score"].is_sorted(descending=True)
    assert repr(c).startswith("Consensus(plackett-luce: a ")


def test_unknown_methods_and_data_are_explained():
    with pytest.raises(
        ValueError, match=r"method 'plackett' is unknown .did you mean 'plackett-luce'.*; choose from bradley-terry, "
    ):
        consensus(BALLOTS, "plackett")
    with pytest.raises(TypeError, match=r"not list; placet\.read.*Rankings\.from_orders"):
        consensus([["a", "b"]])
    with pytest.raises(ValueError, match="parameter 'colour' is unknown to 'plackett-luce'; choose from"):
        consensus(BALLOTS, colour="red")
    with pytest.raises(ValueError, match="at least 2 rounds"):
        consensus(BALLOTS, bootstrap=1)


@pytest.mark.parametrize("method", ["borda", "bradley-terry", "plackett-luce", "pmop-fd"])
def test_the_bootstrap_serves_rules_and_models(method):
    c = consensus(BALLOTS, method, bootstrap=20)
    assert c.draws.shape == (20, 3)
    assert (c.stderr > 0).any()
    assert "20 bootstrap rounds" in c.notes[-1]
    np.testing.assert_array_equal(c.draws, consensus(BALLOTS, method, bootstrap=20).draws)
    assert not np.array_equal(c.draws, consensus(BALLOTS, method, bootstrap=20, random_state=1).draws)


def test_resampling_keeps_the_total_and_the_expectation():
    rng = np.random.default_rng(0)
    weight = np.array([5.0, 0.0, 20.0, 75.0])
    draws = np.array([resampled_counts(weight, rng) for _ in range(3000)])
    assert (draws.sum(axis=1) == 100).all()
    assert (draws[:, 1] == 0).all()
    np.testing.assert_allclose(draws.mean(axis=0), weight, atol=0.6)
    np.testing.assert_allclose(draws.var(axis=0), weight * (1 - weight / 100), rtol=0.12, atol=0.1)
    fractional = resampled_counts(np.array([0.5, 0.25, 0.0]), rng)
    assert fractional[2] == 0
    assert resampled_counts(np.array([1e300, 1e300]), rng).max() in (1e300, 2e300)
    assert resample(BALLOTS, rng).weight.sum() == 10


def test_every_method_of_the_tables_gives_a_consensus():
    assert {"bradley-terry", "plackett-luce", "pmop-fd", "pmop"} <= set(MODELS)
    for method in ("bradley-terry", "plackett-luce", "pmop-fd", "pmop"):
        c = consensus(BALLOTS, method)
        assert c.ranking[0] == "a"
        assert c.method == method
        assert c.scores.mean() == pytest.approx(0, abs=1e-12)
        table = c.win_probabilities()
        assert ((table + table.T)[~np.eye(3, dtype=bool)] <= 1 + 1e-12).all()
    assert not set(MODELS) & set(RULES)


def test_no_prior_and_no_answer_names_the_groups():
    for method in ("bradley-terry", "plackett-luce", "pmop-fd", "pmop"):
        with pytest.raises(DataError, match=r"no finite scores exist.*give a prior"):
            consensus(Rankings.from_orders([["a", "b"], ["c", "d"], ["b", "a"]]), method, prior=None)


@pytest.mark.parametrize("method", ["plackett-luce", "borda"])
def test_rows_that_are_printed_are_those_of_the_frame(method):
    data = Rankings.from_orders([["a", "b", "c"], ["b", ("a", "c")], ["a", "c", "b"]])
    for c in (consensus(data, method), replace(consensus(data, method), support=None)):
        head, rows = table_rows(c, 0.9)
        assert head == c.to_frame(0.9).columns
        assert rows == c.to_frame(0.9).rows()
        assert [type(value) for value in rows[0]] == [type(value) for value in c.to_frame(0.9).rows()[0]]


@pytest.mark.parametrize(
    "method", ["borda", "bradley-terry", "plackett-luce", "pmop-fd", "mpm", "mallows", "cps", "svp"]
)
@pytest.mark.parametrize("noted", [False, True])
def test_a_result_is_built_once_and_memory_asked_once(method, noted, monkeypatch):
    data = replace(BALLOTS, notes=("two lines were skipped",)) if noted else BALLOTS
    built, asked = [], []
    make, ask = Consensus.__post_init__, memory.refuse_beyond_memory
    monkeypatch.setattr(Consensus, "__post_init__", lambda self: (built.append(self), make(self))[1])
    monkeypatch.setattr(memory, "refuse_beyond_memory", lambda *x: (asked.append(x), ask(*x))[1])
    found = consensus(data, method)
    assert len(built) == 1
    assert len(asked) <= 1
    assert found.support.tolist() == support(data).tolist()
    assert found.notes[: len(data.notes)] == data.notes


def test_plain_models_load_no_option():
    options = "drift drift_with_raters vote_raters unidentified_effects ballot_raters row_controls rater_posterior"
    code = (
        "import sys\n"
        "import placet.aggregate.pairs.bradley_terry, placet.aggregate.ballots.ballot_models\n"
        "loaded = {name.rpartition('.')[2] for name in sys.modules if name.startswith('placet.')}\n"
        f"assert not loaded & set({options.split()!r}), loaded\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
