"""Forecasts of dated votes: the filter against a slow one, calibration by simulation, updates, idle items."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import placet
from placet import Comparisons, DataError
from placet.aggregate.result.learned.forecast import VoteLaw, filter_votes
from placet.losses.pairwise import outcome_probabilities

FAMILIES = {"bradley-terry": -math.inf, "rao-kupper": 0.4, "davidson": -0.3}


def chances_at(x, family, tie):
    return np.array([np.broadcast_to(p, np.shape(x)) for p in outcome_probabilities(np.asarray(x), family, tie)])


def log_likelihood(x, counts, family, tie):
    return sum(c * math.log(max(p, 1e-300)) for c, p in zip(counts, chances_at([x], family, tie)[:, 0]) if c)


def slow_filter(rows, family, tie, prior, drift, form, n):
    """Vote after vote; modes by search, probabilities by a dense sum, updates in natural parameters."""
    mean, variance, last, cost = [0.0] * n, [prior**2] * n, [None] * n, []
    grid = np.linspace(-8, 8, 4001)
    density = np.exp(-grid * grid / 2) / np.exp(-grid * grid / 2).sum()
    for when in sorted({row[0] for row in rows}):
        at_once = [row for row in rows if row[0] == when]
        for _, i, j, _, _ in at_once:
            for k in (i, j):
                variance[k] += 0.0 if last[k] is None else drift**2 * (when - last[k])
                last[k] = when
        pulls = []
        for _, i, j, counts, offset in at_once:
            if family == "bradley-terry":
                counts = (counts[0] + counts[2] / 2, counts[1] + counts[2] / 2, 0.0)
            d, s = mean[i] - mean[j], variance[i] + variance[j]
            chances = chances_at(d + offset + math.sqrt(s + form**2) * grid, family, tie) @ density
            cost.append(-sum(c * math.log(p) for c, p in zip(counts, chances) if c))
            seen = lambda x, c=counts, o=offset: log_likelihood(x + o, c, family, tie)  # noqa: E731
            low, high = d - 40.0, d + 40.0
            for _ in range(150):
                a, b = low + (high - low) / 3, high - (high - low) / 3
                better = seen(a) - (a - d) ** 2 / (2 * s) < seen(b) - (b - d) ** 2 / (2 * s)
                low, high = (a, high) if better else (low, b)
            x, h = (low + high) / 2, 1e-3
            bend = -(seen(x + h) - 2 * seen(x) + seen(x - h)) / h**2
            for k, sign in ((i, 1.0), (j, -1.0)):
                v = variance[k]
                after, moved = v - v * v * bend / (1 + bend * s), mean[k] + sign * v * (x - d) / s
                pulls.append((k, 1 / after - 1 / v, moved / after - mean[k] / v))
        for k in {k for k, _, _ in pulls}:
            precision = 1 / variance[k] + sum(p for o, p, _ in pulls if o == k)
            mean[k] = (mean[k] / variance[k] + sum(e for o, _, e in pulls if o == k)) / precision
            variance[k] = 1 / precision
    return mean, variance, cost


def some_votes(rng, n_votes, n=4):
    time = np.sort(rng.integers(0, 6, n_votes)).astype(float)
    i = rng.integers(0, n, n_votes)
    j = (i + rng.integers(1, n, n_votes)) % n
    counts = rng.integers(0, 3, (n_votes, 3)).astype(float)
    counts[counts.sum(axis=1) == 0, 0] = 1.0
    return Comparisons(i, j, *counts.T, items=range(n), time=time, control=rng.normal(size=(n_votes, 1)), ordered=True)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_filter_is_the_slow_one(family, seed):
    votes, tie = some_votes(np.random.default_rng(seed), 6), FAMILIES[family]
    law = VoteLaw(family, tie, np.array([0.5]), False)
    state = (np.zeros(4), np.full(4, 1.2**2), np.full(4, math.nan))
    cost = filter_votes(votes, votes.time, law, 0.3, 0.7, state)
    columns = zip(votes.time, votes.i, votes.j, votes.wins_i, votes.wins_j, votes.ties, votes.control[:, 0])
    rows = [(float(t), int(i), int(j), (won, lost, tied), 0.5 * float(z)) for t, i, j, won, lost, tied, z in columns]
    mean, variance, slow = slow_filter(rows, family, tie, 1.2, 0.3, 0.7, 4)
    np.testing.assert_allclose(state[0], mean, atol=2e-5)
    np.testing.assert_allclose(state[1], variance, rtol=2e-5)
    assert cost.sum() == pytest.approx(sum(slow), rel=2e-4)  # nine nodes


@given(st.integers(0, 10_000))
def test_the_order_of_votes_and_of_names_is_irrelevant(seed):
    rng = np.random.default_rng(seed)
    votes = some_votes(rng, 8)
    law = VoteLaw("davidson", -0.3, np.array([0.5]), False)

    def run(v):
        state = (np.zeros(4), np.ones(4), np.full(4, math.nan))
        filter_votes(v, v.time, law, 0.3, 0.7, state)
        return state

    name = rng.permutation(4)
    counts = (votes.wins_i, votes.wins_j, votes.ties)
    same = {"items": range(4), "time": votes.time, "control": votes.control, "ordered": True}
    swapped = Comparisons(name[votes.i], name[votes.j], *counts, **same)
    np.testing.assert_allclose(run(swapped)[0][name], run(votes)[0], atol=1e-9)
    np.testing.assert_allclose(run(swapped)[1][name], run(votes)[1], rtol=1e-9)


def tour(seed, events, days=0.0, n=100, draw=16):
    """Knock-out tournaments; skills move, and players are in good and bad form for some tournaments in a row."""
    rng = np.random.default_rng(seed)
    skill, form, rows = rng.normal(size=n), np.zeros(n), []
    for event in range(events):
        skill = skill + 0.08 * rng.standard_t(4, n)
        form = 0.9 * form + math.sqrt(1 - 0.81) * days * rng.normal(size=n)
        today = skill + form
        left, level = rng.choice(n, draw, replace=False, p=np.exp(skill) / np.exp(skill).sum()).tolist(), 0
        while len(left) > 1:
            pairs = list(zip(left[::2], left[1::2]))
            won = [rng.random() < 1 / (1 + math.exp(today[j] - today[i])) for i, j in pairs]
            rows += [(i, j, "a" if w else "b", event / 20 + level / 1000) for (i, j), w in zip(pairs, won)]
            left, level = [i if w else j for (i, j), w in zip(pairs, won)], level + 1
    return rows


def votes_of(rows):
    i, j, outcome, time = zip(*rows)
    return Comparisons.from_battles(i, j, outcome, items=range(100), time=np.array(time))


def surprise(probability):
    """How much more often favorites were said to win than they won, from the probabilities of what happened."""
    said = np.maximum(probability, 1 - probability)
    return float(said.mean() - (probability > 0.5).mean())


def test_forecasts_are_calibrated_and_learn_how_much_form_matters():
    forms = []
    for days in (0.0, 1.0):
        rows = tour(1, 300, days)
        before, after = votes_of(rows[:3_000]), votes_of(rows[3_000:])
        forecast = placet.consensus(before, "bradley-terry", drift="learn", step=1.0).timeline.forecast
        _, cost = forecast.updated(after)
        assert abs(surprise(np.exp(-cost))) < 0.035  # Monte Carlo error 0.012
        assert cost.sum() < 0.97 * len(after) * math.log(2)
        forms.append(forecast.form)
    assert forms[1] > 1.25 * forms[0]


def test_an_update_is_the_filter_on_all_votes():
    rows = tour(4, 60)
    early, late = votes_of(rows[:600]), votes_of(rows[600:])
    board = placet.consensus(early, "bradley-terry", drift=0.3, step=1.0, prior=1.0)
    f = board.timeline.forecast
    np.testing.assert_allclose(f.mean, board.scores, atol=1e-9)  # where the fit ends
    once = board.updated(late)
    twice = board.updated(votes_of(rows[600:750])).updated(votes_of(rows[750:]))
    np.testing.assert_allclose(once.scores, twice.scores, atol=1e-9)
    state = (f.mean.copy(), f.variance.copy(), f.last.copy())
    filter_votes(late, f.steps.fraction(late.time), f.law, f.drift, f.form, state)
    np.testing.assert_allclose(once.scores, state[0] - state[0].mean(), atol=1e-9)
    assert "updated by 300 votes without a refit" in once.notes[-1]
    assert once.support.sum() == 2 * 900
    assert 0 < once.win_probability(0, 1, at=float(late.time.max()) + 0.5) < 1


def test_updates_that_cannot_be_are_refused():
    board = placet.consensus(votes_of(tour(5, 20)), "bradley-terry", drift=0.3, step=1.0)
    old = Comparisons.from_battles([1], [2], ["a"], items=range(100), time=[0.1])
    with pytest.raises(DataError, match="1 of these votes are older than the board"):
        board.updated(old)
    with pytest.raises(DataError, match="have no time"):
        board.updated(Comparisons.from_battles([1], [2], ["a"], items=range(100)))
    with pytest.raises(DataError, match="numbers where those of the board are dates"):
        board.updated(Comparisons.from_battles([1], [2], ["a"], time=["2020-01-01"]))
    with pytest.raises(ValueError, match="scores do not move here"):
        placet.consensus(old, "bradley-terry").updated(old)


def test_new_items_enter_at_the_mean():
    board = placet.consensus(votes_of(tour(5, 20)), "bradley-terry", drift=0.3, step=1.0)
    new = board.updated(Comparisons.from_battles(["new"], [7], ["a"], time=[2.0]))
    assert new.scores[new.items.index("new")] > 0
    assert new.win_probability("new", 7, at=2.5) > new.win_probability(7, "new", at=2.5)


def careers(**params):
    """ant stops in 2003, bee begins in 2006; cat and dog play on."""
    a, b, when = [], [], []
    for year in range(10):
        pairs = [("cat", "dog")] * 4 + [("ant", "cat")] * 4 * (year <= 3) + [("bee", "dog")] * 4 * (year >= 6)
        a, b = a + [x for x, _ in pairs], b + [y for _, y in pairs]
        when += [f"{2000 + year}-06-01"] * len(pairs)
    outcome = ["a", "b", "a", "a"] * (len(a) // 4)
    return placet.consensus(Comparisons.from_battles(a, b, outcome, time=when), "bradley-terry", drift=0.3, **params)


def test_boards_leave_out_the_idle_and_say_so():
    today = careers()
    assert sorted(today.items) == ["bee", "cat", "dog"]
    said = "1 item is left out, not compared since 2007-01-01 (active_since=None keeps them)"
    assert any(said in note for note in today.notes)
    assert sorted(today.at("2002-01-01").items) == ["ant", "cat", "dog"]  # bee has not begun
    for keeps in (None, "2003-01-01", "8y"):
        assert sorted(careers(active_since=keeps).items) == ["ant", "bee", "cat", "dog"]
    assert today.history("ant")["item"].unique().to_list() == ["ant"]
    assert today.history("bee")["time"].min().year == 2006
    assert 0 < today.win_probability("ant", "bee", at="2009-07-01") < 1
    with pytest.raises(ValueError, match="'fox' is not among"):
        today.history("fox")


def test_times_that_are_numbers_have_no_years():
    votes = Comparisons.from_battles("ab", "bc", "ab", time=[1.0, 50.0])
    assert len(placet.consensus(votes, "bradley-terry", drift=0.3, step=1.0).items) == 3
    assert placet.consensus(votes, "bradley-terry", drift=0.3, step=1.0, active_since=20).ranking == ["c", "b"]


def test_bootstrap_of_a_board_without_the_idle():
    a, b = ["ant", "bee", "cat", "bee"] * 3, ["bee", "cat", "bee", "cat"] * 3
    when = ["2000-01-01", "2009-01-01", "2009-02-01", "2009-03-01"] * 3
    votes = Comparisons.from_battles(a, b, ["a", "b", "a", "a"] * 3, time=when)
    board = placet.consensus(votes, "bradley-terry", drift=0.3, bootstrap=3)
    assert sorted(board.items) == ["bee", "cat"]
    assert board.draws.shape[1] == 2


def test_form_of_few_votes_stays_near_its_usual_size():
    votes = Comparisons.from_battles("ab", "ba", "ab", time=[0.0, 1.0])
    assert 0.2 < placet.consensus(votes, "bradley-terry", drift=0.3, step=1.0).timeline.forecast.form < 1.2
