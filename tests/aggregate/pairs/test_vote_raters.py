"""Raters: derivatives, recovery of what they differ in, spammers found; agreement equal to published values."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import friedmanchisquare

import placet
from placet.aggregate import consensus
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.aggregate.pairs.vote_raters import RaterVotes, raters_of
from placet.data import Comparisons, DataError
from placet.losses.pairwise import outcome_probabilities
from placet.metrics import kendall_w, krippendorff_alpha


def panel(seed, *, n=12, m=40, votes=100, sharpness=0.5, ties=0.8, side=0.6, family="davidson", coins=0):
    """Votes of raters who differ, the last ``coins`` of whom toss one; scores and what the raters are like."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n)
    own = {
        "sharpness": np.maximum(1 + sharpness * rng.normal(size=m), 0.05),
        "ties": ties * rng.normal(size=m),
        "side": 0.3 + side * rng.normal(size=m),
    }
    if coins:
        own["sharpness"][-coins:] = 0.0
    agent = np.repeat(np.arange(m), votes)
    a = rng.integers(0, n, m * votes)
    b = (a + rng.integers(1, n, m * votes)) % n
    d = own["sharpness"][agent] * (theta[a] - theta[b]) + own["side"][agent]
    outcome = np.empty(m * votes, "<U3")
    u = rng.random(m * votes)
    for k in range(m):
        mine = agent == k
        win, loss, _ = outcome_probabilities(d[mine], family, float(own["ties"][k]) - 0.3)
        outcome[mine] = np.where(u[mine] < win, "a", np.where(u[mine] < win + loss, "b", "tie"))
    data = Comparisons.from_battles(a, b, outcome, items=range(n), agent=[f"r{k}" for k in agent], ordered=True)
    return theta, own, data


@pytest.mark.parametrize("kinds", [("sharpness",), ("ties",), ("sharpness", "ties", "side")])
@pytest.mark.parametrize("family", ["davidson", "rao-kupper", "bradley-terry"])
def test_derivatives_and_steps_are_those_of_the_value(family, kinds):
    _, _, data = panel(0, n=4, m=3, votes=12)
    v = RaterVotes(data, family, kinds if v_has_ties(family) else kinds[:1], True)
    v.set_widths(1.5, {"sharpness": 0.7, "ties": 0.6, "side": 0.4})
    rng = np.random.default_rng(1)
    x = 0.3 * rng.normal(size=len(v.precision))
    h, eye = 1e-5, np.eye(len(x))
    gradient = np.array([(v.value(x + h * e) - v.value(x - h * e)) / (2 * h) for e in eye])
    np.testing.assert_allclose(v.gradient(x), gradient, atol=1e-5)
    H = np.array([(v.gradient(x + h * e) - v.gradient(x - h * e)) / (2 * h) for e in eye])
    if np.linalg.eigvalsh(H).min() > 0:
        arrow = v.arrow(x)
        np.testing.assert_allclose(arrow.solve(gradient), np.linalg.solve(H, gradient), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(arrow.variances(), np.diag(np.linalg.inv(H))[v.n_shared :], rtol=1e-4)
        np.testing.assert_allclose(arrow.covariance, np.linalg.inv(H)[: v.n_shared, : v.n_shared], atol=1e-5)


def v_has_ties(family):
    return family != "bradley-terry"


@pytest.mark.parametrize("family", ["davidson", "rao-kupper"])
def test_what_raters_differ_in_is_recovered(family):
    theta, own, data = panel(2, family=family)
    found = consensus(data, "bradley-terry", ties=family, agents="sharpness+ties+side")
    frame = found.agents_frame().sort("agent")
    order = np.argsort([f"r{k}" for k in range(40)])
    rate = [float(outcome_probabilities(0.0, family, t - 0.3)[2]) for t in own["ties"]]
    for name, truth in (("sharpness", own["sharpness"]), ("side", own["side"]), ("tie_rate", np.array(rate))):
        assert np.corrcoef(frame[name], truth[order])[0, 1] > 0.75, name
    for name, truth in (("sharpness", own["sharpness"]), ("side", own["side"])):
        z = (frame[name].to_numpy() - truth[order]) / frame[f"{name}_stderr"].to_numpy()
        assert np.mean(np.abs(z) < 1.96) > 0.8, name
    plain = consensus(data, "bradley-terry", ties=family, order_effect=True)
    error = lambda c: np.linalg.norm(c.scores - theta + theta.mean())  # noqa: E731
    assert error(found) < error(plain)
    low, high = found.interval(0.95)
    assert np.mean((low <= theta - theta.mean()) & (theta - theta.mean() <= high)) > 0.8
    assert found.fit.converged
    widths = found.agents.widths
    assert 0.3 < widths["sharpness"] < 0.8
    assert 0.5 < widths["ties"] < 1.2
    assert 0.35 < widths["side"] < 0.9


def test_spammers_are_found_and_few_votes_are_not_called_names():
    _, _, data = panel(5, coins=6, votes=150, sharpness=0.3)
    frame = consensus(data, "bradley-terry", ties="davidson", agents="all").agents_frame()
    coins = set(frame.filter(frame["note"].str.contains("like a coin"))["agent"])
    assert len(coins & {f"r{k}" for k in range(34, 40)}) >= 4
    assert coins <= {f"r{k}" for k in range(34, 40)}
    one = Comparisons.from_battles("ab", "ba", ["a", "a"], agent=["x", "y"])
    both = placet.concat([_unordered(data), one])
    few = consensus(both, "bradley-terry", agents="sharpness").agents_frame()
    assert few.filter(few["agent"].is_in(["x", "y"]))["note"].to_list() == ["", ""]


def _unordered(c):
    return Comparisons(c.i, c.j, c.wins_i, c.wins_j, c.ties, c.agent, c.items, c.agents)


def test_raters_who_do_not_differ_leave_the_scores_alone():
    _, _, data = panel(3, sharpness=0.0, ties=0.0, side=0.0)
    found = consensus(data, "bradley-terry", ties="davidson", agents="all")
    plain = consensus(data, "bradley-terry", ties="davidson", order_effect=True)
    np.testing.assert_allclose(found.scores, plain.scores, atol=0.1)
    assert max(found.agents.widths.values()) < 0.25
    assert found.tie == pytest.approx(plain.tie, abs=0.05)
    assert found.controls["name"].to_list() == ["order"]


def test_order_of_votes_and_names_does_not_matter():
    _, _, data = panel(4, m=8, votes=40)
    plain = consensus(data, "bradley-terry", ties="davidson", agents="all")
    shuffled = np.random.default_rng(0).permutation(data.n_items)
    other = Comparisons(
        shuffled[data.i],
        shuffled[data.j],
        data.wins_i,
        data.wins_j,
        data.ties,
        len(data.agents) - 1 - data.agent,
        agents=data.agents[::-1],
        ordered=True,
    )
    again = consensus(other, "bradley-terry", ties="davidson", agents="all")
    np.testing.assert_allclose(again.scores[shuffled], plain.scores, atol=1e-5)
    boot = consensus(data, "bradley-terry", ties="davidson", agents="sharpness", bootstrap=3)
    assert boot.draws.shape == (3, 12)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"agents": "mood"}, "agents 'mood' is unknown"),
        ({"agents": "side"}, "who came first"),
        ({"agents": "ties"}, "needs a model of ties"),
        ({"agents": "sharpness", "prior": None}, "needs a prior"),
        ({"agents": "sharpness", "stderr": "sandwich"}, "no stderr"),
    ],
)
def test_what_is_missing_is_said(params, message):
    votes = Comparisons.from_battles("abab", "baba", ["a", "a", "b", "b"], agent="xyxy")
    with pytest.raises(ValueError, match=message):
        BradleyTerry(**params).fit(votes)
    with pytest.raises(ValueError, match="needs votes that say who gave them"):
        BradleyTerry(agents="sharpness").fit(votes.pooled())
    with pytest.raises(ValueError, match="learned nothing about agents"):
        consensus(votes, "bradley-terry").agents_frame()


def test_probabilities_of_known_and_unknown_raters():
    _, _, data = panel(6, m=6, votes=60)
    found = consensus(data, "bradley-terry", ties="davidson", agents="all").agents
    win, loss, tied = found.probabilities(["r0", "nobody"], np.array([0.5, 0.5]))
    np.testing.assert_allclose(win + loss + tied, 1)
    typical = outcome_probabilities(0.5 + found.order, "davidson", found.typical_tie)
    np.testing.assert_allclose([win[1], loss[1], tied[1]], typical)
    d = found.columns["sharpness"][0] * 0.5 + found.columns["side"][0]
    np.testing.assert_allclose(win[0], outcome_probabilities(d, "davidson", found.tie[0])[0])


def test_the_command_takes_agents(tmp_path):
    from typer.testing import CliRunner

    from placet.cli import app

    _, _, data = panel(7, n=4, m=5, votes=30)
    votes = Comparisons(data.i, data.j, data.wins_i, data.wins_j, data.ties, data.agent, "wxyz", data.agents, True)
    path, page = tmp_path / "votes.csv", tmp_path / "page.html"
    placet.io.write_battles(votes, path)
    result = CliRunner().invoke(app, ["aggregate", str(path), "--agents", "all", "--json", "--report", str(page)])
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["agents"]) == 5
    assert "ties between equals" in page.read_text()


# ---- agreement

NAN = float("nan")
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]
"""Krippendorff, Computing Krippendorff's alpha-reliability (2011), section C: four observers, twelve units."""


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_alpha_is_the_published_one(level, published):
    assert round(krippendorff_alpha(FOUR_OBSERVERS, level).value, 3) == published


def test_alpha_by_its_definition_and_its_interval():
    rng = np.random.default_rng(0)
    ratings = rng.integers(0, 3, (4, 30)).astype(float)
    ratings[rng.random(ratings.shape) < 0.2] = NAN
    observed, pairs, values = 0.0, 0.0, []
    for unit in ratings.T:
        own = unit[~np.isnan(unit)]
        if len(own) > 1:
            values += own.tolist()
            observed += sum(a != b for a in own for b in own) / (len(own) - 1)
    pairs = sum(a != b for a in values for b in values) / (len(values) - 1)
    found = krippendorff_alpha(ratings, bootstrap=200)
    assert found.value == pytest.approx(1 - observed / pairs)
    assert found.low < found.value < found.high
    assert found.low < 0.1 < 1 - found.high + 0.5  # raters by chance


def test_alpha_of_votes_counts_pairs():
    agree = Comparisons.from_battles("aabb", "bbcc", ["a", "a", "a", "a"], agent="xyxy")
    assert krippendorff_alpha(Comparisons.from_battles("aacc", "bbbb", ["a", "a", "b", "b"], agent="xyxy")).value == 1.0
    assert np.isnan(krippendorff_alpha(agree).value)  # one outcome alone: nothing could have differed
    differ = Comparisons.from_battles("aacc", "bbbb", ["a", "b", "a", "b"], agent="xyxy")
    assert krippendorff_alpha(differ).value == pytest.approx(1 - 1 / (2 * 2 * 2 / (4 * 3)))
    with pytest.raises(DataError, match="no unit has two ratings"):
        krippendorff_alpha([[1.0, NAN], [NAN, 2.0]])


TEN_PROJECTS = [
    [1, 3, 4, 5, 2, 8, 6, 7, 10, 9],
    [2, 1, 4, 5, 6, 3, 8, 7, 10, 9],
    [3, 2, 1, 5, 7, 4, 6, 8, 9, 10],
    [4, 2, 3, 1, 6, 7, 5, 9, 8, 10],
]
"""A worked example without ties (scribd.com/document/659863121): four judges, ten projects, S = 1048."""

ANXIETY = [
    [3, 3, 3, 4, 5, 5, 2, 3, 5, 2, 2, 6, 1, 5, 2, 2, 1, 2, 4, 3],
    [3, 6, 4, 6, 2, 4, 2, 4, 3, 3, 2, 3, 3, 3, 2, 2, 1, 3, 3, 4],
    [2, 1, 4, 4, 3, 2, 1, 6, 1, 1, 1, 2, 3, 3, 1, 1, 3, 3, 2, 2],
]
"""Three raters, twenty subjects, many ties: the example of KendallW in the R package DescTools (of kendall in irr)."""


def test_w_is_the_published_one():
    assert kendall_w(TEN_PROJECTS) == pytest.approx(12 * 1048 / (4**2 * (10**3 - 10)))
    assert round(kendall_w(TEN_PROJECTS), 2) == 0.79
    assert kendall_w(ANXIETY) == pytest.approx(0.5396569, abs=5e-8)  # as printed there, corrected for ties


def test_agreement_stands_beside_the_raters_and_in_the_description(tmp_path, answer):
    _, _, data = panel(3, m=10, votes=60)
    alpha = krippendorff_alpha(data)
    said = next(note for note in consensus(data, "bradley-terry", agents="sharpness").notes if "alpha" in note)
    assert f"alpha = {alpha.value:.3f} (95%: " in said
    ballots = placet.Rankings.from_orders([["a", "b", "c"], ["a", ("b", "c")], ["a", "c", "b"]], agent="xyz")
    ranks = [[1, 2, 3], [1, 2, 2], [1, 3, 2]]
    assert kendall_w(ballots) == pytest.approx(kendall_w(ranks))
    found = consensus(ballots, "plackett-luce", agents="sharpness")
    assert any(f"Kendall's W = {kendall_w(ranks):.3f}" in note for note in found.notes)
    twice = placet.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], weight=[2.0, 1.0])
    assert kendall_w(twice) == pytest.approx(kendall_w([[1, 2, 3], [1, 2, 3], [2, 1, 3]]))
    with pytest.raises(DataError, match=r"ballot 1 ranks 1 of 2 items \(1 such ballots\)"):
        kendall_w(placet.Rankings.from_orders([["a", "b"], ["a"]]))
    path = tmp_path / "votes.csv"
    path.write_text("a,b,winner,judge\nx,y,a,p\nx,y,b,q\nx,z,a,p\nx,z,a,q\n")
    assert "Krippendorff's alpha" in json.loads(answer("describe", path, "--agent", "judge", "--json"))["agreement"]
    assert "agreement" not in json.loads(answer("describe", path, "--json"))
    path.write_text("a,b,winner,judge\nx,y,a,p\nx,z,a,q\n")
    assert "no pair was judged twice" in answer("describe", path, "--agent", "judge")


def test_errors_of_sides_and_ties_are_those_of_the_sums():
    """A rater's side is the common effect plus its own: as that of votes of the rater alone, were all others far off."""
    _, _, data = panel(4, m=6, votes=150)
    v = RaterVotes(data, "davidson", ("ties", "side"), True)
    v.set_widths(1.0, {"ties": 0.8, "side": 0.6})
    fit, arrow = v.fit(v.start(), 100, 1e-12)
    full = np.linalg.inv(
        np.array([(v.gradient(fit.x + 1e-5 * e) - v.gradient(fit.x - 1e-5 * e)) / 2e-5 for e in np.eye(len(fit.x))])
    )
    found = raters_of(v, fit.x, arrow, {"ties": 0.8, "side": 0.6})
    for k in range(6):
        for kind, shared, column in (("ties", v.n, 0), ("side", v.n_shared - 1, 1)):
            own = v.n_shared + 2 * k + column
            variance = full[own, own] + full[shared, shared] + 2 * full[own, shared]
            assert found.stderr[kind][k] == pytest.approx(np.sqrt(variance), rel=1e-4)


def test_errors_are_those_of_scores_seen_by_the_mean_rater():
    """The delta method by differences of the step that puts the mean sharpness to 1."""
    _, _, data = panel(5, n=5, m=4, votes=60)
    v = RaterVotes(data, "davidson", ("sharpness", "side"), True)
    widths = {"sharpness": 0.5, "side": 0.6}
    v.set_widths(1.0, widths)
    fit, arrow = v.fit(v.start(), 100, 1e-12)
    eye = np.eye(len(fit.x))
    H = np.array([(v.gradient(fit.x + 1e-5 * e) - v.gradient(fit.x - 1e-5 * e)) / 2e-5 for e in eye])
    J = np.array([(v.normalize(fit.x + 1e-5 * e) - v.normalize(fit.x - 1e-5 * e)) / 2e-5 for e in eye]).T
    full = J @ np.linalg.inv(H) @ J.T
    v.normalize(fit.x)
    covariance, variances = v.final_errors(arrow)
    np.testing.assert_allclose(covariance, full[: v.n_shared, : v.n_shared], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(variances.ravel(), np.diag(full)[v.n_shared :], rtol=1e-4)


def test_w_is_that_of_friedmans_test():
    rng = np.random.default_rng(1)
    for ratings in (rng.normal(size=(5, 7)), rng.integers(0, 3, (6, 5)).astype(float)):
        m, n = ratings.shape
        expected = friedmanchisquare(*ratings.T).statistic / (m * (n - 1))
        assert kendall_w(ratings) == pytest.approx(expected)
    assert kendall_w([[1, 2, 3], [2, 4, 9]]) == pytest.approx(1)
    assert np.isnan(kendall_w([[1, 1], [2, 2]]))
    with pytest.raises(DataError, match="1 ratings are missing"):
        kendall_w([[1, NAN], [1, 2]])


@pytest.mark.parametrize(("n", "m", "coins"), [(60, 6, 2), (12, 30, 5)])
def test_scores_keep_their_scale_whether_raters_or_items_are_more(n, m, coins):
    """Scores twice as small with raters twice as sharp are as likely; widths that are learned must not follow them."""
    rng = np.random.default_rng(1)
    theta = rng.normal(size=n)
    sharp = np.where(np.arange(m) < coins, 0.0, rng.uniform(0.6, 1.6, m))
    who, a = rng.integers(0, m, 4000), rng.integers(0, n, 4000)
    b = (a + rng.integers(1, n, 4000)) % n
    win = 1 / (1 + np.exp(-sharp[who] * (theta[a] - theta[b])))
    outcome = np.where(rng.random(4000) < win, "a", "b")
    votes = Comparisons.from_battles(a, b, outcome, agent=who.tolist(), items=range(n))
    found = consensus(votes, "bradley-terry", agents="sharpness")
    frame = found.agents_frame().sort("agent")
    assert frame["sharpness"].mean() == pytest.approx(1.0)
    assert np.polyfit(theta, found.scores, 1)[0] == pytest.approx(sharp.mean(), rel=0.15)
    assert 0.6 < found.prior / (sharp.mean() * theta.std()) < 1.4
    true = sharp.mean() * (theta - theta.mean())
    assert 0.85 < np.mean(np.abs(found.scores - true) < 1.96 * found.stderr) <= 1.0
    coin = frame.filter(frame["note"] == "answers like a coin")["agent"].to_list()
    assert set(coin) <= set(range(coins))
    assert len(coin) >= coins // 2
    lists = placet.Rankings.from_orders(
        [[x, y] if won == "a" else [y, x] for x, y, won in zip(a.tolist(), b.tolist(), outcome)],
        agent=who.tolist(),
        items=range(n),
    )
    ballots = consensus(lists, "plackett-luce", agents="sharpness")
    np.testing.assert_allclose(ballots.scores, found.scores, atol=0.05)


def test_scores_are_those_with_raters_integrated_out():
    """Against quadrature over every rater's sharpness: joint modes are farther out than that."""
    rng = np.random.default_rng(3)
    theta, sharp, each, w = np.array([1.2, 0.2, -1.4]), rng.uniform(0.3, 1.7, 15), 12, 0.5
    who = np.repeat(np.arange(15), each)
    a = rng.integers(0, 3, len(who))
    b = (a + rng.integers(1, 3, len(who))) % 3
    won = rng.random(len(who)) < 1 / (1 + np.exp(-sharp[who] * (theta[a] - theta[b])))
    votes = Comparisons.from_battles(a, b, np.where(won, "a", "b"), agent=who, items=range(3))
    v = RaterVotes(votes, "bradley-terry", ("sharpness",), False)
    v.set_widths(2.0, {"sharpness": w})
    fit, arrow = v.fit(v.start(), 100, 1e-10)
    node, weight = np.polynomial.hermite_e.hermegauss(30)

    def likelihoods(x):
        d = np.where(won, 1, -1)[:, None] * (x[a] - x[b])[:, None] * (1 + w * node)
        logs = np.zeros((15, 30))
        np.add.at(logs, who, -np.logaddexp(0, -d))
        return np.exp(logs) * weight

    best = minimize(lambda x: -np.log(likelihoods(x).sum(axis=1)).sum() + x @ x / 8, np.zeros(3)).x
    at = likelihoods(best)
    exact = best * (at @ (1 + w * node) / at.sum(axis=1)).mean()
    joint, averaged = (v.normalize(x)[:3] for x in (fit.x, v.with_raters_averaged(fit.x, arrow)))
    assert np.abs(averaged - exact).max() < 0.4 * np.abs(joint - exact).max()
