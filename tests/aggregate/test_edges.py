"""The edges of what can be asked: errors that cannot be known, weights out of all proportion, nothing to learn from."""

import warnings

import numpy as np
import pytest

from placet import Comparisons, DataError, Rankings, consensus
from placet.aggregate.likelihood import information
from placet.aggregate.likelihood.prior import with_width
from placet.aggregate.result.result import Consensus
from placet.aggregate.sources import width_evidence
from placet.data import Parts
from placet.data.scores import Scores

VOTES = ("aabbc", "bbcca", ["a", "b", "a", "a", "b"])
RATED = Comparisons.from_battles(*VOTES, agent=list("uvuvu"))


@pytest.mark.parametrize("kind", ["simultaneous", "marginal", "simulated"])
@pytest.mark.parametrize("errors", ["draws", "stderr"])
def test_what_ties_within_the_tolerance_is_never_separated(kind, errors):
    """Scores that differ by rounding share a rank, however small their errors: the rank lies in its own interval."""
    scores = np.array([1.0, 1.0 + 1e-13, 1.0 - 1e-13, -3.0])
    known = {"draws": np.tile(scores, (20, 1))} if errors == "draws" else {"stderr": np.full(4, 1e-16)}
    c = Consensus(tuple("abcd"), scores, method="m", **known)
    assert c.ranks.tolist() == [1, 1, 1, 4]
    low, high = c.rank_interval(kind=kind)
    assert ((low <= c.ranks) & (c.ranks <= high)).all()
    assert not c.separated()[:3, :3].any()
    assert c.separated()[:3, 3].all()
    assert [set(tier) for tier in c.tiers()] == [{"a", "b", "c"}, {"d"}]


def test_many_items_that_tie_are_not_separated_either():
    """Beyond the number of items with a table of differences."""
    scores = np.repeat([1.0, 0.0], 2500) + 1e-13 * np.arange(5000) % 7e-13
    c = Consensus(range(5000), scores, method="m", stderr=np.full(5000, 1e-16), tolerance=1e-9)
    low, high = c.rank_interval()
    assert set(c.ranks.tolist()) == {1, 2501}
    assert ((low <= c.ranks) & (c.ranks <= high)).all()


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "pmop", "pmop-fd"])
@pytest.mark.parametrize("prior", [1.5, "learn"])
def test_an_item_without_votes_has_the_width_of_the_prior_as_its_error(method, prior):
    """The sandwich alone would say 0, or NaN by rounding."""
    orders = [["a", "b"], ["b", "c", "a"], ["a", "c"], ["c", "b"]] * 5
    data = Rankings.from_orders(orders, items=["a", "b", "c", "d"])
    c = consensus(data, method, stderr="sandwich", prior=prior)
    plain = consensus(data, method, prior=prior)
    assert np.isfinite(c.stderr).all()
    assert c.stderr[3] == pytest.approx(plain.stderr[3], rel=0.05)


def test_the_sandwich_by_definition():
    """H^-1 (sum of outer products of the votes' gradients + prior precision) H^-1, centered."""
    data = Comparisons.from_battles("aabbcbcb", "bbccaaad", ["a", "b", "a", "a", "b", "a", "tie", "b"])
    c = consensus(data, "bradley-terry", prior=0.8, ties="none", stderr="sandwich")
    n, H, M = len(c.items), np.eye(len(c.items)) / 0.64, np.eye(len(c.items)) / 0.64
    for i, j, won, lost, tied in zip(data.i, data.j, data.wins_i, data.wins_j, data.ties):
        e = np.zeros(n)
        e[i], e[j] = 1, -1
        p = 1 / (1 + np.exp(c.scores[j] - c.scores[i]))
        H += (won + lost + tied) * p * (1 - p) * np.outer(e, e)
        M += (won * (1 - p) ** 2 + lost * p**2 + tied * (0.5 - p) ** 2) * np.outer(e, e)
    center = np.eye(n) - 1 / n
    expected = center @ np.linalg.inv(H) @ M @ np.linalg.inv(H) @ center
    np.testing.assert_allclose(c.covariance, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "borda", "mpm"])
@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_weights_out_of_all_proportion_are_finite_or_refused(method, weight):
    data = Comparisons.from_battles(*VOTES, weight=np.full(5, weight))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        c = consensus(data, method)
        assert c.stderr is None or np.isfinite(c.stderr).all()
        try:
            assert np.isfinite(consensus(data, method, bootstrap=3).stderr).all()
        except ValueError as error:
            assert "multiply all weights" in str(error)  # noqa: PT017  either is right


@pytest.mark.parametrize(
    "make", [Comparisons.from_battles, lambda a, b, o, weight: Rankings.from_orders([["a", "b"]] * 5, weight=weight)]
)
def test_weights_whose_sums_overflow_are_refused(make):
    with pytest.raises(DataError, match="row 0: weight 1e[+]308 is too large|ballot 0: weight 1e[+]308 is too large"):
        make(*VOTES, weight=np.full(5, 1e308))


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "mpm", "borda", "kemeny"])
@pytest.mark.parametrize(
    "data", [Comparisons.from_battles(*VOTES, weight=np.zeros(5)), Comparisons.from_battles([], [], [], items="ab")]
)
def test_nothing_to_resample(method, data):
    with pytest.raises(DataError, match="nothing to resample"):
        consensus(data, method, bootstrap=5)


@pytest.mark.parametrize("params", [{"agents": "sharpness"}, {"agents": "all", "ties": "davidson"}])
@pytest.mark.parametrize(
    "data",
    [Comparisons.from_battles(*VOTES, weight=np.zeros(5), agent=list("uvuvu"), ordered=True),
     Comparisons.from_battles([], [], [], agent=[], items="ab", ordered=True)],
)  # fmt: skip
def test_agents_without_votes(params, data):
    with pytest.raises(DataError, match="nothing is known about agents"):
        consensus(data, "bradley-terry", **params)
    with pytest.raises(DataError, match="nothing is known about agents"):
        consensus(Rankings.from_orders([], items="ab", agent=[]), "plackett-luce", agents="sharpness")


@pytest.mark.parametrize("prior", [1e-300, 1e160])
@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "mpm", "cps", "rasch"])
def test_a_prior_beyond_all_bounds_is_refused(method, prior):
    data = (
        Scores.from_table([[0.1, 0.5], [0.5, 1.0]])
        if method == "rasch"
        else Rankings.from_orders([["a", "b"], ["b", "a"]])
    )
    with pytest.raises(ValueError, match=r"prior must be a positive standard deviation in 1e-09..1e[+]09"):
        consensus(data, method, prior=prior)
    assert np.isfinite(consensus(data, method, prior=1e-9 if prior < 1 else 1e9).scores).all()


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "kemeny", "borda"])
def test_a_negative_seed_is_refused(method):
    with pytest.raises(ValueError, match="random_state must be a whole number from 0 on, not -1"):
        consensus(RATED, method, random_state=-1)


def test_rounds_of_a_score_table_are_checked():
    with pytest.raises(ValueError, match="bootstrap must be 0 or at least 2 rounds, not -1"):
        consensus(Scores.from_table([[0.1, 0.5], [0.5, 1.0]]), "mean", bootstrap=-1)


def test_a_task_without_scores_says_nothing():
    with_one = Scores.from_table([[1.0, np.nan, 3.0], [2.0, np.nan, np.nan]])
    without = Scores.from_table([[1.0, 3.0], [2.0, np.nan]])
    np.testing.assert_allclose(consensus(with_one, "mean").scores, consensus(without, "mean").scores)


def test_tuples_as_names():
    """In a table they are text."""
    c = consensus(Comparisons.from_battles([("a", 1), ("b", 2)], [("b", 2), ("c", 3)], ["a", "a"]))
    assert c.to_frame()["item"].to_list() == ["('a', 1)", "('b', 2)", "('c', 3)"]


@pytest.mark.parametrize("method", ["plackett-luce", "pmop", "bradley-terry"])
def test_errors_by_agent_do_not_overflow_if_weights_are_vast(method):
    """A common factor of all weights of four agents changes no error by agent but through the prior."""
    rows = {"a": list("xyxyxy"), "b": list("yxyxyx"), "outcome": list("aababb"), "agent": list("uvwzuv")}
    small, vast = (
        consensus(Comparisons.from_battles(**rows, weight=np.full(6, factor)), method, prior=1.0)
        for factor in (1e9, 1e300)
    )
    np.testing.assert_allclose(vast.stderr, small.stderr, rtol=0.02)  # the prior is 1e-300 of H
    assert vast.stderr.min() > 0.01


def test_a_sandwich_that_rounding_spoils_has_no_negative_variance():
    """Weights from 1 to 1e24: the products of H^-1 M H^-1 cancel, and the variances of two items came out negative."""
    orders = [["c", ("d", "e")], ["e", "b", ("a", "d")], [("b", "d", "f")], ["f", "c", ("a", "d"), "e", "b"]]
    orders += [[("a", "c", "f")], ["d", "c", "b", "f", "e"], [("c", "f")], ["c", "b", ("d", "e")], ["e", "d"], []]
    weight = 10.0 ** np.array([24, 24, 16, 0, 0, 16, 8, 24, 8, 0])
    for seed in range(20):
        agent = np.random.default_rng(seed).choice(list("uvwx"), 10).tolist()
        data = Rankings.from_orders(orders, weight=weight, agent=agent, items=tuple("abcdef"))
        c = consensus(data, "plackett-luce")
        assert (c.stderr >= 0).all()
        assert c.prob_above("a", "b") + c.prob_above("b", "a") == pytest.approx(1)


def test_the_fallback_of_the_sandwich_is_the_sandwich(monkeypatch):
    """The square of a root gives what the products give where those are accurate."""
    rng = np.random.default_rng(0)
    half, other = rng.normal(size=(2, 5, 5))
    H, meat = half @ half.T + np.eye(5), other @ other.T
    inverse, center = np.linalg.inv(H), np.eye(5) - 1 / 5
    slow = center @ inverse @ meat @ inverse @ center / 7.0
    np.testing.assert_allclose(information.covariance(H.copy(), meat, 7.0), slow, rtol=1e-10)
    monkeypatch.setattr(information, "with_mean_zero", lambda found, n: -found)
    np.testing.assert_allclose(information.covariance(H.copy(), meat, 7.0), slow, rtol=1e-10)


def test_a_contest_without_items_has_an_adjusted_mean_of_nothing():
    empty = Rankings.from_orders([[]], instance=["p"], items=tuple("abc"))
    assert [len(c.items) for c in consensus(empty, "adjusted-mean", bootstrap=2).values()] == [0]


def test_a_task_that_nobody_took_is_no_warning_of_item_response():
    table = np.array([[0.1, np.nan, 2.0], [0.5, np.nan, 3.0], [0.9, np.nan, 7.0]])
    one, other = (
        consensus(
            Scores.from_table(values, items=tuple("abc"), tasks=range(values.shape[1])),
            "item-response",
            response="number",
        )
        for values in (table, table[:, [0, 2]])
    )
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce"])
def test_votes_that_are_all_ties_have_no_negative_variance(method):
    """Gradients of zero have a sandwich of the prior alone, less than what its uncertain width would take away."""
    tied = Rankings.from_orders([[("a", "b")]] * 8, agent=list("uvwxuvwx"), weight=np.full(8, 0.7))
    assert (consensus(tied, method).stderr >= 0).all()


def test_what_a_prior_of_unknown_width_adds_takes_no_variance_below_zero():
    base, wider = np.diag([1.0, 2.0]), np.diag([0.5, -1.0])
    np.testing.assert_array_equal(with_width(base, wider), base + wider)
    np.testing.assert_array_equal(with_width(base, 3 * wider), base)


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_an_adjusted_mean_of_vast_or_tiny_weights_is_that_of_common_ones(factor):
    orders = [["a", "b", "c"], ["b", "c", "a"], ["a", "c", "b"], ["a", "b", "c"]]
    common, other = (
        consensus(Rankings.from_orders(orders, weight=np.full(4, w)), "adjusted-mean", prior=None)
        for w in (1.0, factor)
    )
    np.testing.assert_allclose(other.scores, common.scores, atol=1e-8)
    assert (other.stderr >= 0).all()


def test_parts_with_vast_counts_are_resampled():
    """NumPy draws no Poisson number of mean 1e24; the count itself is within 1e-12 of it."""
    data = Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]], weight=[1e24, 1e24, 3.0])
    c = consensus(Parts.of([data[[0]], data[[1, 2]]]), "borda", bootstrap=3)
    assert np.isfinite(c.draws).all()


def test_sources_whose_weights_leave_no_digits_are_refused():
    with pytest.raises(DataError, match="precision of 1e[+]16.*divide all weights by a common factor"):
        width_evidence._cholesky(np.array([[1e16, 1e16], [1e16, 1e16 - 64]]))


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "adjusted-mean"])
def test_weights_of_agents_that_overflow_are_refused(method):
    rows = {"weight": [1e24, 1.0], "agent": ["u", "v"]}
    data = (
        Comparisons.from_battles("ab", "ba", ["a", "a"], **rows)
        if method == "bradley-terry"
        else Rankings.from_orders([["a", "b"], ["b", "a"]], **rows)
    )
    with pytest.raises(DataError, match="row 0: weight times agent_weight inf is not finite"):
        consensus(data, method, agent_weight={"u": 1e300})
    assert np.isfinite(consensus(data, method, agent_weight={"u": 1e-20}).scores).all()


NOTHING = {
    "no weight": Rankings.from_orders([["a", "b", "c"], ["b", "a"]], weight=[0, 0]),
    "all tied": Rankings.from_orders([[("a", "b", "c")]] * 2),
    "one item each": Rankings.from_orders([["a"], ["b"], ["c"]]),
    "votes of no weight": Comparisons.from_battles("ab", "bc", ["a", "b"], weight=[0, 0]),
}


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "pmop", "pmop-fd"])
@pytest.mark.parametrize("what", NOTHING)
def test_what_compares_nothing_teaches_no_prior(what, method):
    found = consensus(NOTHING[what], method)
    said = next(note for note in found.notes if note.startswith("prior"))
    told = what == "all tied" and method in (
        "bradley-terry",
        "pmop",
    )  # half a win each, and a tie that has a probability
    assert ("learned from the data" in said) == told
    assert ("assumed" in said) != told
    assert told or found.prior == pytest.approx(8**0.5)
    assert "learned from the data" in " ".join(
        consensus(Rankings.from_orders([list("abc"), list("bac"), list("cab")]), method).notes
    )


def test_tied_votes_of_raters_converge():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = consensus(Comparisons.from_battles("a", "b", ["tie"], agent=["u"]), "bradley-terry", agents="sharpness")
    assert found.fit.converged
    assert not any("no differences" in note for note in found.notes)  # one vote does not show that there are none


def test_variances_and_shares_that_round_away_leave_finite_answers():
    """Found by the fuzz of the door: a variance below 0 by rounding, and the logarithm of a share of 0."""
    orders = [["c", "d", "a", "e", "b"], ["d", "c", "e", "a", "b"]]
    heavy = Rankings.from_orders(orders, weight=[3e300, 1e300], items=list("abcde"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = consensus(heavy, "adjusted-mean")
        assert (found.stderr >= 0).all()
        chain = consensus(Rankings.from_orders([["a", "b", "c"]], weight=[3e300]), "rank-centrality", prior=1e-300)
    assert np.isfinite(chain.scores).all()
    assert chain.ranking[0] == "a"
