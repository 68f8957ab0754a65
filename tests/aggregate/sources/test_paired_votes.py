"""Votes of two sources on the same answers: derivatives, evidence by integration, invariances, honest errors."""

import numpy as np
import pytest

from placet import Comparisons, DataError, Sources, consensus
from placet.aggregate.sources.joint_mode import Widths
from placet.aggregate.sources.paired_votes import PairedEvidence, PairedPosterior, PairedVotes, paired_rows
from placet.aggregate.sources.source_likelihood import likelihood_of
from placet.aggregate.sources.width_evidence import SourceEvidence, log_prior


def answers(seed, n=6, voted=150, judged=400, shared=2.0, ties=0.2):
    """True scores, votes of people and of a judge on the same answers, whose quality both see."""
    rng = np.random.default_rng(seed)
    theta = 0.7 * rng.standard_normal(n)
    i = rng.integers(0, n, judged)
    j = (i + rng.integers(1, n, judged)) % n
    quality = shared * rng.standard_normal(judged)
    steep = np.sqrt(1 + 0.346 * shared**2)

    def votes(scores, count):
        odds = steep * (scores[i] - scores[j]) + quality
        outcome = np.where(rng.random(judged) < 1 / (1 + np.exp(-odds)), "a", "b")
        outcome = np.where(rng.random(judged) < ties, "tie", outcome)[:count].tolist()
        return Comparisons.from_battles(
            i[:count].tolist(), j[:count].tolist(), outcome, agent=[f"q{k}" for k in range(count)], items=range(n)
        )

    seen = 1.2 * (theta + 0.2 * rng.standard_normal(n))
    return theta - theta.mean(), votes(theta, voted), votes(seen, judged)


def posterior(ties="davidson"):
    _, human, judge = answers(0)
    sources = Sources({"human": human, "judge": judge}, "human", paired=True)
    own = likelihood_of(judge, sources.index("judge"), ties, "auto")
    target = PairedVotes(paired_rows(sources), sources.index("human"), ties, own, 0)
    target.steepness = np.where(target.seen > 0, 1.3, 1.0)
    joint = PairedPosterior(target, [own], 6)
    joint.widths = Widths(1.1, np.array([1.2]), np.array([0.4]))
    return joint


def test_verdicts_are_matched_by_id_and_items():
    human = Comparisons.from_battles("xyxx", "yzzy", ["a", "b", "a", "tie"], agent=["1", "2", "3", "4"])
    judge = Comparisons.from_battles("yyxz", "xzxx"[:2] + "zx"[:2], ["a", "tie", "b", "a"], agent=["1", "2", "9", "3"])
    rows = paired_rows(Sources({"human": human, "judge": judge}, "human", paired=True))
    named = {(rows.votes.items[i], rows.votes.items[j]) for i, j in zip(rows.votes.i, rows.votes.j)}
    assert named == {("x", "y"), ("x", "z"), ("y", "z")}
    found = {
        (rows.votes.items[i] + rows.votes.items[j], v, s)
        for i, j, v, s in zip(rows.votes.i, rows.votes.j, rows.verdict, rows.seen)
    }
    assert found == {("xy", -1.0, 1.0), ("xy", 0.0, 0.0), ("xz", -1.0, 1.0), ("yz", 0.0, 1.0)}
    assert rows.answered == 3


@pytest.mark.parametrize("ties", ["davidson", "none"])
def test_gradient_and_newton_step(ties):
    joint = posterior(ties)
    rng = np.random.default_rng(1)
    x = joint.start() + 0.2 * rng.standard_normal(joint.size)
    x[joint.n_shared - 1] = 0.8
    step = 1e-5
    by_difference = [
        (joint.value_and_gradient(x + step * e)[0] - joint.value_and_gradient(x - step * e)[0]) / (2 * step)
        for e in np.eye(joint.size)
    ]
    assert joint.value_and_gradient(x)[1] == pytest.approx(np.array(by_difference), abs=1e-5)
    found = joint.mode(joint.start(), joint.widths, 100)
    assert found.converged
    assert found.n_iter < 15


def test_evidence_is_that_of_the_joint_quadratic():
    """The source's own scores integrated out in closed form, against a dense normal of all unknowns."""
    joint = posterior("none")
    x = joint.mode(joint.start(), joint.widths, 100).x
    evidence = PairedEvidence(joint, x, np.ones(3))
    target = joint.target
    g, H = target.derivatives(joint.of_target(x))
    G, K = joint.others[0].derivatives(joint.own(x, 0))
    m = 6
    full = np.zeros((m + 1 + m, m + 1 + m))  # theta, gamma, u
    full[:7, :7], full[:7, 7:], full[7:, :7] = H, target.cross, target.cross.T
    full[7:, 7:] = K + target.own
    right = full @ x - np.concatenate([g, G + target.pull])

    def dense(z):
        w, a, v = Widths.of(z)
        prior = np.zeros_like(full)
        prior[:6, :6] = np.eye(6) * (w**-2 + a[0] ** 2 / v[0] ** 2)
        prior[:6, 7:] = prior[7:, :6] = -np.eye(6) * a[0] / v[0] ** 2
        prior[7:, 7:] = np.eye(6) / v[0] ** 2
        C = np.linalg.inv(full + prior)
        value = -6 * np.log(w) - 6 * np.log(v[0]) - 0.5 * np.linalg.slogdet(full + prior)[1]
        return value + 0.5 * right @ C @ right + log_prior(z)[0], (C @ right)[:6], C[:6, :6]

    z = np.log([0.9, 1.2, 0.5])
    here, other = evidence.at(z), evidence.at(z + 0.3)
    assert here.value - other.value == pytest.approx(dense(z)[0] - dense(z + 0.3)[0], abs=1e-7)
    assert here.mean == pytest.approx(dense(z)[1])
    assert here.covariance == pytest.approx(dense(z)[2])
    gradient, hessian, slope = evidence.derivatives(z, here)
    assert gradient == pytest.approx([(dense(z + e)[0] - dense(z - e)[0]) / 2e-4 for e in 1e-4 * np.eye(3)], abs=1e-4)
    move = np.array([0, 1e-4, 0])
    assert slope[1] == pytest.approx((dense(z + move)[1] - dense(z - move)[1]) / 2e-4, abs=1e-5)
    near = [(evidence.derivatives(z + e, evidence.at(z + e))[0] - gradient) / 1e-3 for e in 1e-3 * np.eye(3)]
    assert hessian == pytest.approx(np.array(near), abs=0.05)
    plain = SourceEvidence(joint, x, np.ones(3))
    assert np.abs(plain.at(z).covariance - here.covariance).max() > 1e-4  # the tie matters


def test_errors_of_the_same_answers_are_correlated():
    """Judged on the same answers only, both see the same luck: taken as independent, it would look like agreement."""
    ratio = []
    for seed in range(3):
        _, human, judge = answers(seed, n=8, voted=300, judged=300, shared=3.0, ties=0.0)
        found = [consensus(Sources({"human": human, "judge": judge}, "human", paired=p)) for p in (True, False)]
        ratio.append(found[0].stderr.mean() / found[1].stderr.mean())
        assert found[0].sources.worth[1] < found[1].sources.worth[1]
    assert np.mean(ratio) > 1.05  # experiments/sources/pairing: intervals that ignore it cover too rarely


def test_without_common_answers_or_luck_nothing_changes():
    _, human, judge = answers(3)
    other = Comparisons(judge.i, judge.j, judge.wins_i, judge.wins_j, judge.ties, judge.agent, judge.items,
                        tuple(f"other {name}" for name in judge.agents))  # fmt: skip
    apart = consensus(Sources({"human": human, "judge": other}, "human", paired=True))
    plain = consensus(Sources({"human": human, "judge": judge}, "human"))
    assert apart.scores == pytest.approx(plain.scores)
    assert any("nothing is paired" in note for note in apart.notes)
    _, human, judge = answers(4, voted=400, judged=2000, shared=0.0)
    paired, plain = (consensus(Sources({"human": human, "judge": judge}, "human", paired=p)) for p in (True, False))
    assert np.abs(paired.scores - plain.scores).max() < 0.25 * plain.stderr.mean()
    assert paired.fit.converged


def test_order_bootstrap_and_words():
    _, human, judge = answers(5)
    first = consensus(Sources({"human": human, "judge": judge}, "human", paired=True), bootstrap=3)
    assert first.draws.shape == (3, 6)
    assert any("judge judged the answers of 150 of 150 human votes" in note for note in first.notes)
    second = consensus(Sources({"judge": judge, "human": human}, "human", paired=True))
    by_name = dict(zip(second.items, second.scores))
    assert [by_name[name] for name in first.items] == pytest.approx(first.scores.tolist(), abs=1e-3)
    with pytest.raises(DataError, match="paired sources need a target"):
        Sources({"human": human, "judge": judge}, paired=True)
    with pytest.raises(DataError, match="with an id of the answers as their agent"):
        consensus(Sources({"human": human.pooled(), "judge": judge}, "human", paired=True))
    assert not Sources({"human": human, "judge": judge}, "human", paired=True).without("human").paired
