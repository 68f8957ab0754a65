"""The multinomial preference model against its definition, pair by pair, and what its parameters must do."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone

import placet
from placet.aggregate.mpm import item_variances, multinomial_preference, preference_errors
from placet.aggregate.mpm.multinomial_preference import MultinomialPreference, supervised_adherence
from placet.aggregate.mpm.preference_likelihood import learn, preferences, votes
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.data import Comparisons, DataError, Rankings
from placet.kernels.aggregate import multinomial_preferences as kernels

check = settings(max_examples=40)


def loss_by_definition(s, gamma, adherence, counts, precision=0.0):
    """-log P up to the multinomial coefficient; counts (agents, M, M); gamma ``None`` stands for gamma_i + gamma_j = 1."""
    M = len(s)
    total = 0.5 * precision * sum(x * x for x in s)
    for t, C in zip(adherence, counts):
        u = {
            (i, j): t * (s[i] - s[j]) / (1.0 if gamma is None else gamma[i] + gamma[j])
            for i, j in itertools.permutations(range(M), 2)
        }
        Z = math.fsum(math.exp(x) for x in u.values())
        total -= sum(C[i][j] * (x - math.log(Z)) for (i, j), x in u.items())
    return total


def counts_by_definition(r, strength):
    """(ballots, M, M) of C(i, j) times weight, from the ballots' own words."""
    out = np.zeros((len(r), r.n_items, r.n_items))
    for b, ballot in enumerate(r):
        rows = slice(r.offsets[b], r.offsets[b + 1])
        score = dict(zip(r.item[rows].tolist(), r.score[rows].tolist())) if r.score is not None else {}
        for k, m in itertools.combinations(range(len(ballot)), 2):
            for x, y in itertools.product(ballot[k], ballot[m]):
                i, j = r.index[x], r.index[y]
                size = {"binary": 1, "difference": m - k}.get(strength) or score[i] - score[j]
                out[b, i, j] += r.weight[b] * size
    return out


@st.composite
def ballots(draw, n=None, max_ballots=4, min_listed=2):
    """Partial, tied, weighted ballots that keep scores."""
    n = draw(st.integers(2, 5)) if n is None else n
    item, tier, score, sizes = [], [], [], []
    for _ in range(draw(st.integers(1, max_ballots))):
        order = draw(st.permutations(range(n)))
        m = draw(st.integers(min_listed, n))
        steps = [0, *draw(st.lists(st.integers(0, 3), min_size=m - 1, max_size=m - 1))]
        item += order[:m]
        tier += np.cumsum(np.array(steps) > 0).tolist()
        score += (-np.cumsum(steps)).tolist()
        sizes.append(m)
    weight = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(sizes), max_size=len(sizes)))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Rankings(
        np.array(item), np.array(tier), offsets, weight, items=tuple(range(n)), score=np.array(score, float)
    )


SCORES = st.floats(-3, 3).map(lambda x: round(x, 3))


def kernel_value(s, net, t, total, precision):
    G, M = len(t), len(s)
    up, down, sums, grad = np.empty((G, M)), np.empty((G, M)), np.empty((G, 3)), np.empty(M)
    value = kernels.scores_value(s, net, t, total, precision, up, down, sums, grad)
    return value, grad, (up, down, sums)


# Kernels


@pytest.mark.parametrize("strength", ["binary", "difference", "rating"])
@check
@given(r=ballots(), data=st.data())
def test_value_and_gradient_are_those_of_the_definition(strength, r, data):
    n = r.n_items
    s = np.array(data.draw(st.lists(SCORES, min_size=n, max_size=n)))
    t = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 1.0]), min_size=len(r), max_size=len(r))))
    counts = counts_by_definition(r, strength)
    p = preferences(r, strength)
    g = p.groups(t)
    net = p.net.T @ t[p.part_agent]
    value, grad, _ = kernel_value(s, net, g.adherence, g.total, 0.25)
    assert value == pytest.approx(loss_by_definition(s, None, t, counts, 0.25), rel=1e-10, abs=1e-9)
    numeric = [
        (loss_by_definition(s + h, None, t, counts, 0.25) - loss_by_definition(s - h, None, t, counts, 0.25)) / 2e-5
        for h in 1e-5 * np.eye(n)
    ]
    assert grad == pytest.approx(numeric, abs=1e-5 * (1 + np.abs(numeric).max()))


@check
@given(data=st.data())
def test_second_derivatives_are_those_of_the_gradient(data):
    n, G = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 3))
    draw = lambda k: np.array(data.draw(st.lists(SCORES, min_size=k, max_size=k)))  # noqa: E731
    s, net, v, t, total = draw(n), draw(n), draw(n), np.abs(draw(G)), 1 + np.abs(draw(G))
    _, _, kept = kernel_value(s, net, t, total, 0.1)
    out = np.empty(n)
    kernels.scores_hvp(v, t, total, 0.1, *kept, out)
    h = 1e-5
    after, before = (kernel_value(s + d * v, net, t, total, 0.1)[1] for d in (h, -h))
    numeric = (after - before) / (2 * h)
    assert out == pytest.approx(numeric, abs=1e-5 * (1 + np.abs(numeric).max()))
    columns = []
    for unit in np.eye(n):
        column = np.empty(n)
        kernels.scores_hvp(unit, t, total, 0.1, *kept, column)
        columns.append(column)
    H = np.array(columns)
    kernels.scores_diagonal(t, total, 0.1, *kept, out)
    assert out == pytest.approx(np.diag(H), rel=1e-9, abs=1e-9)
    assert pytest.approx(np.eye(n), abs=1e-6) == kernels.inverse(H + np.eye(n)) @ (H + np.eye(n))
    order = np.argsort(t)
    held = preference_errors.information(s, t[order], total[order], 0.1)
    V, inner = held.low_rank()
    ones = held.level / n
    assert held.dense() == pytest.approx(H + ones, rel=1e-9, abs=1e-9)
    assert np.diag(1 / held.diagonal) - V.T @ inner @ V == pytest.approx(np.linalg.inv(H + ones), rel=1e-6, abs=1e-8)


@check
@given(r=ballots(), data=st.data())
def test_value_and_gradient_with_variances(r, data):
    n = r.n_items
    x = np.array(data.draw(st.lists(SCORES, min_size=2 * n, max_size=2 * n)))
    t = np.array(data.draw(st.lists(st.sampled_from([0.2, 1.0]), min_size=len(r), max_size=len(r))))
    counts = counts_by_definition(r, "difference")
    p = preferences(r, "difference")
    g = p.groups(t)
    (net,) = item_variances.net_tables(p, t)
    assert net == pytest.approx((t[:, None, None] * (counts - counts.transpose(0, 2, 1))).sum(axis=0))
    precision = np.repeat([0.5, 2.0], n)
    model = item_variances.PairTable(net, g.adherence, g.total, precision)
    if model.unit == 0:
        return

    def definition(y):
        return (loss_by_definition(y[:n], np.exp(y[n:]) / 2, t, counts) + 0.5 * precision @ y**2) / model.unit

    value, grad = model.value(x)
    assert value == pytest.approx(definition(x), rel=1e-9, abs=1e-9)
    numeric = [(definition(x + h) - definition(x - h)) / 2e-5 for h in 1e-5 * np.eye(2 * n)]
    assert grad == pytest.approx(numeric, abs=1e-4 * (1 + np.abs(numeric).max()))
    H, _ = model.hessian(x)
    numeric = np.array([(model.value(x + h)[1] - model.value(x - h)[1]) / 2e-5 for h in 1e-5 * np.eye(2 * n)])
    assert pytest.approx(numeric, abs=1e-5 * (1 + np.abs(numeric).max())) == H


def test_pairs_cut_into_blocks_are_all_pairs():
    rng = np.random.default_rng(1)
    M = 700  # several blocks
    assert len(item_variances.row_blocks(M)) > 2
    net = rng.normal(size=(M, M))
    net -= net.T
    x = rng.normal(size=2 * M)
    model = item_variances.PairTable(net, np.ones(1), np.array([100.0]), np.repeat([0.1, 1.0], M))
    value, grad = model.value(x)
    out = np.zeros((2, 2 * M + 1))
    kernels.variance_rows(x[:M], np.exp(x[M:]) / 2, net, np.ones(1), 0.0, 0, M, out)
    expected = 100 * np.log(out[0, -1]) - out[1, -1] + 0.05 * (x[:M] @ x[:M]) + 0.5 * (x[M:] @ x[M:])
    assert value == pytest.approx(expected / 100)
    assert grad[:M] == pytest.approx((100 * out[0, :M] / out[0, -1] - out[1, :M] + 0.1 * x[:M]) / 100)


def test_scores_of_ten_thousand_stay_finite():
    s = np.array([-10_000.0, 0.0, 10_000.0])
    value, grad, _ = kernel_value(s, np.zeros(3), np.ones(1), np.array([7.0]), 0.0)
    assert value == pytest.approx(7 * 20_000)
    assert grad == pytest.approx([-7, 0, 7])
    x = np.concatenate([s, np.zeros(3)])
    model = item_variances.PairTable(np.zeros((3, 3)), np.ones(1), np.array([7.0]), np.zeros(6))
    value, grad = model.value(x)
    assert value == pytest.approx(20_000)
    assert np.isfinite(grad).all()
    assert np.isfinite(model.hessian(x)[0]).all()


@check
@given(r=ballots(max_ballots=3), data=st.data())
def test_adherence_is_where_its_derivative_vanishes(r, data):
    s = np.array(data.draw(st.lists(SCORES, min_size=r.n_items, max_size=r.n_items)))
    counts = counts_by_definition(r, "binary")
    p = preferences(r, "binary")
    out = p.adherences(s, 5.0, np.ones(len(r)))
    for b, t in enumerate(out):
        at = lambda x, b=b: loss_by_definition(s, None, [x], counts[b : b + 1])  # noqa: E731
        around = min(at(max(t - 1e-3, 0.0)), at(min(t + 1e-3, 5.0)))
        assert at(t) <= around + 1e-9 * (1 + abs(around))


# The estimator


@pytest.mark.parametrize("strength", ["binary", "difference", "rating"])
@check
@given(r=ballots())
def test_scores_minimize_the_definition(strength, r):
    model = MultinomialPreference(strength=strength, prior=2.0).fit(r)
    counts = counts_by_definition(r, strength)
    loss = lambda s: loss_by_definition(s, None, np.ones(len(r)), counts, 0.25)  # noqa: E731
    best = minimize(loss, np.zeros(r.n_items), method="BFGS", options={"gtol": 1e-9})
    assert loss(model.theta_) <= best.fun + 1e-7
    assert model.theta_ == pytest.approx(best.x - best.x.mean(), abs=2e-3)
    assert model.fit_.converged
    assert model.fit_.value == pytest.approx(loss(model.theta_), rel=1e-9, abs=1e-9)


def test_variances_minimize_the_definition():
    r = Rankings.from_orders([list("abcd"), list("bacd"), list("dabc"), ["c", "a"]], weight=[2, 1, 1, 3])
    model = MultinomialPreference(variance=True, prior=3.0, variance_prior=2.0).fit(r)
    counts = counts_by_definition(r, "difference")
    precision = 2 * counts.sum() / 4 / 2.0**2

    def loss(x):
        data = loss_by_definition(x[:4], np.exp(x[4:]) / 2, np.ones(4), counts, 1 / 9)
        return data + 0.5 * precision * float(x[4:] @ x[4:])

    at = np.concatenate([model.theta_, np.log(2 * model.variance_)])
    assert model.fit_.converged
    assert np.abs(approx_fprime(at, loss, 1e-6)).max() < 1e-4 * counts.sum()
    assert loss(at) <= minimize(loss, np.zeros(8), method="BFGS").fun + 1e-6
    assert model.consensus_.spread == pytest.approx(model.variance_)


@check
@given(r=ballots(), data=st.data())
def test_weight_two_is_the_ballot_twice_and_labels_do_not_matter(r, data):
    theta = MultinomialPreference().fit(r).theta_
    b = data.draw(st.integers(0, len(r) - 1))
    weight = r.weight.copy()
    weight[b] *= 2
    heavy = MultinomialPreference().fit(Rankings(r.item, r.tier, r.offsets, weight, items=r.items))
    twice = MultinomialPreference().fit(r[[*range(len(r)), b]])
    assert heavy.theta_ == pytest.approx(twice.theta_, abs=1e-5)
    to = np.array(data.draw(st.permutations(range(r.n_items))))
    relabelled = MultinomialPreference().fit(Rankings(to[r.item], r.tier, r.offsets, r.weight, items=r.items))
    assert relabelled.theta_[to] == pytest.approx(theta, abs=1e-5)


def simulated(n_items=12, n_agents=6, n_instances=30, seed=0, liars=(0,)):
    """Ballots of agents of which some order at random; the truth of every instance."""
    rng = np.random.default_rng(seed)
    orders, agent, instance, truths = [], [], [], []
    for q in range(n_instances):
        s = rng.normal(size=n_items)
        truths.append([f"{q}:{i}" for i in np.argsort(-s)])
        for a in range(n_agents):
            noise = 100.0 if a in liars else 0.5
            listed = rng.permutation(n_items)[: rng.integers(4, n_items + 1)]
            order = listed[np.argsort(-(s + noise * rng.gumbel(size=n_items))[listed])]
            orders.append([f"{q}:{i}" for i in order])
            agent.append(f"agent {a}")
            instance.append(q)
    items = [f"{q}:{i}" for q in range(n_instances) for i in range(n_items)]
    data = Rankings.from_orders(orders, items=items, agent=agent, instance=instance)
    return data, Rankings.from_orders(truths, items=items, instance=range(n_instances))


def test_instances_together_are_the_instances_alone():
    data, _ = simulated(n_instances=4)
    adherence = {f"agent {a}": 0.2 * a for a in range(6)}
    together = MultinomialPreference(adherence=adherence).fit(data)
    assert list(together.consensus_) == [0, 1, 2, 3]
    for name, own in data.by_instance():
        listed = [x for x in own.items if own.index[x] in set(own.item.tolist())]
        alone = Rankings.from_orders(own.orders(), items=listed, agent=[own.agents[a] for a in own.agent])
        c = MultinomialPreference(adherence=adherence).fit(alone).consensus_
        assert together.consensus_[name].items == c.items
        assert together.consensus_[name].scores == pytest.approx(c.scores, abs=1e-6)
        assert together.consensus_[name].stderr == pytest.approx(c.stderr, rel=1e-4)
        assert together.theta_[[data.index[x] for x in c.items]] == pytest.approx(c.scores, abs=1e-6)


def test_an_item_in_several_instances_has_a_score_in_each():
    data = Rankings.from_orders([["a", "b"], ["b", "a"], ["c", "b", "a"]], instance=["x", "y", "y"])
    model = MultinomialPreference().fit(data)
    assert model.consensus_["x"].ranking == ["a", "b"]
    assert model.consensus_["y"].ranking == ["c", "b", "a"]
    assert set(model.theta_) == {"x", "y"}


def test_learned_adherence_finds_who_orders_at_random_and_helps():
    data, truth = simulated(liars=(0, 3))
    plain, learned = MultinomialPreference().fit(data), MultinomialPreference(adherence="learned").fit(data)
    assert learned.fit_.converged
    assert learned.adherence_.max() == 1.0
    assert learned.adherence_[[0, 3]].max() < 0.3 < learned.adherence_[[1, 2, 4, 5]].min()
    assert learned.consensus_[0].adherence["agent 0"] == learned.adherence_[0]

    def inversions(model):
        return sum(
            model.theta_[truth.item[x]] < model.theta_[truth.item[y]]
            for q in range(len(truth))
            for x, y in itertools.combinations(range(truth.offsets[q], truth.offsets[q + 1]), 2)
        )

    assert inversions(learned) < 0.9 * inversions(plain)


def shared_items(seed=0, n=8, n_agents=12):
    """One instance: full and partial orders of agents that are more or less careful."""
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n)
    orders = []
    for a in range(n_agents):
        seen = rng.permutation(n)[: rng.integers(4, n + 1)]
        orders.append(seen[np.argsort(-(s + (0.2 + 0.4 * a) * rng.gumbel(size=n))[seen])].tolist())
    return Rankings.from_orders(orders, items=range(n), agent=range(n_agents))


@pytest.mark.parametrize("prior", [0.05, 0.1, 0.3, 1.0, 3.0, 10.0, None])
@pytest.mark.parametrize("kind", ["instances", "one", "votes"])
def test_learned_adherence_is_an_optimum_of_the_posterior_that_is_stated(kind, prior):
    data = simulated(n_items=6, n_instances=5, seed=3)[0] if kind == "instances" else shared_items()
    data = data.to_comparisons() if kind == "votes" else data
    p = votes(data) if kind == "votes" else preferences(data, "difference")
    precision = 0.0 if prior is None else prior**-2
    if kind == "votes" and prior is None:
        with pytest.raises(DataError, match="no finite scores exist"):  # of those who are left with some adherence
            learn(p, precision, 200, 1e-10)
        return
    found = learn(p, precision, 200, 1e-10)
    t = found.adherence
    assert found.converged
    assert t.max() == 1.0
    assert t.min() >= 0.0

    def joint(x):
        return p.scores(x, precision, 200, 1e-10, found.s).value

    at, rng = joint(t), np.random.default_rng(0)
    assert found.value == pytest.approx(at, rel=1e-12)
    for n in range(len(t)):  # the derivative by each adherence vanishes, or points out of [0, 1]
        h = 1e-4
        up, down = min(t[n] + h, 1.0), max(t[n] - h, 0.0)
        values = [joint(np.where(np.arange(len(t)) == n, x, t)) for x in (down, up)]
        assert min(values) >= at - 1e-9 * abs(at)
    for size in (1e-3, 0.03, 0.3):  # and no point nearby is better
        for _ in range(10):
            x = np.clip(t + size * rng.normal(size=len(t)), 0.0, 1.0)
            assert joint(x) >= at - 1e-9 * abs(at)


def test_supervised_adherence_by_hand():
    data = Rankings.from_orders(
        [["a", "b", "c"], ["c", "b", "a"], [("a", "b"), "c"], ["d", "e"], ["e", "d"]],
        agent=[1, 2, 3, 1, 2],
        instance=["x", "x", "x", "y", "y"],
    )
    truth = Rankings.from_orders(
        [["a", ("b", "c")], ["e", "d"]], items=data.items, instance=["x", "y"]
    )  # pairs of x: ab, ac; of y: ed
    raw = supervised_adherence(data, truth, rescale=False)
    assert raw == pytest.approx({1: (1 + 0) / 2, 2: (0 + 1) / 2, 3: 0.75})
    assert supervised_adherence(data, truth) == pytest.approx({1: 0.0, 2: 0.0, 3: 1.0})
    model = MultinomialPreference(adherence="supervised", rescale=False).fit(data, truth)
    assert model.adherence_ == pytest.approx([0.5, 0.5, 0.75])
    by_hand = MultinomialPreference(adherence=raw).fit(data)
    assert by_hand.theta_ == pytest.approx(model.theta_)


# Votes


def votes_loss(s, t, counts, precision):
    """-log P(winner | pair), counts (agents, M, M)."""
    value = 0.5 * precision * sum(x * x for x in s)
    for a, C in zip(t, counts):
        for i, j in itertools.permutations(range(len(s)), 2):
            value += C[i][j] * math.log1p(math.exp(-2 * a * (s[i] - s[j])))
    return value


def random_votes(seed=0, n=5, n_agents=4, named=True):
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    counts = rng.integers(0, 4, (n_agents, n, n))
    rows = [(a, x, y, counts[a, x, y], counts[a, y, x]) for a in range(n_agents) for x, y in zip(i, j)]
    agent, x, y, won, lost = np.array(rows).T
    return Comparisons(x, y, won, lost, 0 * x, agent if named else None, items=range(n)), counts


def test_votes_are_given_their_pair():
    data, counts = random_votes()
    t = {0: 1.0, 1: 0.4, 2: 0.0, 3: 0.8}
    model = MultinomialPreference(adherence=t, prior=2.0).fit(data)
    best = minimize(
        lambda s: votes_loss(s, t.values(), counts, 0.25), np.zeros(5), method="BFGS", options={"gtol": 1e-9}
    )
    assert model.theta_ == pytest.approx(best.x - best.x.mean(), abs=1e-5)
    assert model.fit_.value == pytest.approx(best.fun)
    assert model.consensus_.win_probability(0, 1) == pytest.approx(
        1 / (1 + math.exp(-2 * (model.theta_[0] - model.theta_[1])))
    )


def test_votes_of_equal_agents_are_a_bradley_terry_model():
    data, _ = random_votes(named=False)
    one = MultinomialPreference(prior=2.0).fit(data).consensus_
    for kind in ("observed", "sandwich"):
        two = BradleyTerry(prior=4.0, stderr=kind).fit(data).consensus_
        one = MultinomialPreference(prior=2.0, stderr=kind).fit(data).consensus_
        assert 2 * one.scores == pytest.approx(two.scores, abs=1e-6)
        # the sandwich of the two differs in N / (N - 1), and in the prior, which is as uncertain as it says
        assert 2 * one.stderr == pytest.approx(two.stderr, rel=0.02)


def test_how_often_a_pair_was_asked_does_not_matter():
    rng = np.random.default_rng(0)
    s = np.array([1.0, 0.4, -0.2, -1.2])
    i, j = np.triu_indices(4, 1)
    asked = np.array([20_000, 200, 200, 200, 200, 20_000])  # a against b and c against d most of all
    won = rng.binomial(asked, 1 / (1 + np.exp(-2 * (s[i] - s[j]))))
    model = MultinomialPreference().fit(Comparisons(i, j, won, asked - won, 0 * i))
    assert model.theta_ == pytest.approx(s - s.mean(), abs=0.15)
    errors = model.consensus_.stderr
    assert (np.abs(model.theta_ - (s - s.mean())) < 3 * errors).all()


def test_votes_without_finite_scores_are_refused():
    with pytest.raises(DataError, match="no finite scores exist"):
        MultinomialPreference(prior=None).fit(Comparisons.from_battles("ab", "bc", "aa"))
    with pytest.raises(DataError, match="needs ballots"):
        MultinomialPreference(variance=True).fit(Comparisons.from_battles("ab", "bc", "aa"))
    tied = MultinomialPreference().fit(Comparisons.from_battles("aab", "bbc", ["a", "tie", "b"])).consensus_
    assert any("1 tie was left out" in note for note in tied.notes)


# How sure it is


def test_standard_errors_match_many_repeated_fits():
    rng = np.random.default_rng(0)
    s = np.array([1.0, 0.3, 0.0, -1.3])
    i, j = np.triu_indices(4, 1)
    p = 1 / (1 + np.exp(-2 * (s[i] - s[j])))
    drawn = [rng.binomial(200, p) for _ in range(150)]
    models = [MultinomialPreference(stderr="observed").fit(Comparisons(i, j, w, 200 - w, 0 * i)) for w in drawn]
    theta = np.array([m.theta_ for m in models])
    assert theta.mean(axis=0) == pytest.approx(s - s.mean(), abs=0.02)
    assert models[0].consensus_.stderr == pytest.approx(theta.std(axis=0), rel=0.15)


def ratings(seed, n=15, users=150, mixed=True):
    """Ratings of items that are seen more or less often; users rate many items, and differ in taste and in care."""
    rng = np.random.default_rng(seed)
    quality, seen = np.linspace(-1, 1, n), np.linspace(0.9, 0.2, n)[np.argsort(np.arange(n) * 7 % n)]
    rows = []
    for u in range(users):
        taste, noise = 0.5 * rng.normal(size=n), rng.choice([0.3, 1.5] if mixed else [0.6])
        stars = np.clip(np.round(3 + quality + taste + noise * rng.normal(size=n)), 1, 5)
        rows += [(u, k, stars[k]) for k in np.flatnonzero(rng.random(n) < seen)]
    user, item, stars = zip(*rows)
    columns = {"user": user, "item": item, "stars": stars}
    return Rankings.from_scores(columns, ballot="user", item="item", score="stars", items=range(n))


def by_hand(model, data, strength, t, precision):
    """H^-1 (N / (N - 1) sum_n g_n g_n' + precision) H^-1 of scores of mean zero, by differences."""
    counts, s, n = counts_by_definition(data, strength), model.theta_, data.n_items
    one = lambda x, b: loss_by_definition(x, None, [t[b]], counts[b : b + 1])  # noqa: E731
    h = 1e-4 * np.eye(n)
    G = np.array([[(one(s + e, b) - one(s - e, b)) / 2e-4 for e in h] for b in range(len(data))])
    gradient = lambda x: np.array([(sum(one(x + e, b) - one(x - e, b) for b in range(len(data)))) / 2e-4 for e in h])  # noqa: E731
    H = np.array([(gradient(s + e) - gradient(s - e)) / 2e-4 for e in h]) + precision * np.eye(n)
    N = (counts.sum(axis=(1, 2)) > 0).sum()
    C = np.linalg.inv(H) @ (N / (N - 1) * G.T @ G + precision * np.eye(n)) @ np.linalg.inv(H)
    center = np.eye(n) - 1 / n
    return center @ C @ center


@pytest.mark.parametrize("strength", ["binary", "rating"])
def test_the_sandwich_by_definition(strength, monkeypatch):
    data = ratings(1, n=5, users=7)
    equal = MultinomialPreference(strength, prior=1.0).fit(data)
    expected = by_hand(equal, data, strength, np.ones(7), 1.0)
    assert equal.consensus_.covariance == pytest.approx(expected, rel=1e-3, abs=1e-5)
    t = dict(zip(range(7), [0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0]))
    unequal = MultinomialPreference(strength, adherence=t, prior=1.0).fit(data)
    expected = by_hand(unequal, data, strength, list(t.values()), 1.0)
    assert unequal.consensus_.covariance == pytest.approx(expected, rel=1e-3, abs=1e-5)
    assert any("sandwich by agent" in note for note in equal.consensus_.notes)


@pytest.mark.parametrize("stderr", ["sandwich", "observed"])
@pytest.mark.parametrize("weight", [None, "whole", "real"])
def test_every_way_to_the_same_errors(stderr, weight, monkeypatch):
    data = ratings(2, n=40, users=60)
    rng = np.random.default_rng(0)
    if weight is not None:
        values = rng.integers(0, 4, len(data)) if weight == "whole" else rng.random(len(data))
        data = Rankings(data.item, data.tier, data.offsets, values, items=data.items, score=data.score)
    groups = {name: (0.3 if k % 3 else 1.0) for k, name in enumerate(data.agents or range(len(data)))}
    for adherence in (None, groups):
        fit = lambda: MultinomialPreference("rating", adherence=adherence, stderr=stderr).fit(data).consensus_  # noqa: E731,B023
        structured = fit()
        with monkeypatch.context() as patch:  # all agents' gradients, in matrices
            patch.setattr(preference_errors, "FEW_GROUPS", 0)
            assert fit().covariance == pytest.approx(structured.covariance, rel=1e-6, abs=1e-12)
        with monkeypatch.context() as patch:  # many items: the diagonal alone
            patch.setattr(preference_errors, "MOST_SIMULATED", 10)
            many = fit()
            assert many.covariance is None
            assert many.stderr == pytest.approx(structured.stderr, rel=1e-6)
            patch.setattr(preference_errors, "MOST_GROUPS", 0)
            patch.setattr(preference_errors, "ROUNDS", 2000)
            sampled = fit()
            if stderr == "observed":
                assert sampled.stderr is None
                continue
            assert any("sampled" in note for note in sampled.notes)
            assert sampled.stderr == pytest.approx(structured.stderr, rel=0.12)
            assert np.mean(sampled.stderr / structured.stderr) == pytest.approx(1.0, abs=0.02)


@check
@given(r=ballots(min_listed=2), copies=st.integers(2, 3))
def test_a_ballot_of_weight_three_is_three_voters(r, copies):
    whole = Rankings(r.item, r.tier, r.offsets, np.full(len(r), float(copies)), items=r.items)
    again = r[np.repeat(np.arange(len(r)), copies)]
    again = Rankings(again.item, again.tier, again.offsets, items=r.items)
    one, two = (MultinomialPreference().fit(x).consensus_.stderr for x in (whole, again))
    assert one == pytest.approx(two, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("adherence", [None, "learned"])
def test_the_sandwich_agrees_with_a_bootstrap_over_agents(adherence):
    data = ratings(3, n=10, users=200) if adherence is None else ratings(3, n=12, users=60)
    prior = 10.0 if adherence is None else 0.3
    model = MultinomialPreference("rating", adherence=adherence, prior=prior).fit(data)
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(200 if adherence is None else 80):
        users = rng.integers(0, len(data), len(data))
        sample = Rankings(*columns_of(data[users]), items=data.items, score=data[users].score)
        again = MultinomialPreference("rating", adherence=adherence, prior=prior, stderr=None)
        draws.append(again.fit(sample).theta_)
    ratio = model.consensus_.stderr / np.std(draws, axis=0)
    assert np.mean(ratio) == pytest.approx(1.0, abs=0.06 if adherence is None else 0.1)
    if adherence is None:
        naive = MultinomialPreference("rating", stderr="observed").fit(data)
        assert naive.consensus_.stderr.mean() < 0.6 * model.consensus_.stderr.mean()
    else:  # as if adherences were known
        known = dict(zip(data.agents, model.adherence_))
        other = MultinomialPreference("rating", adherence=known, prior=prior).fit(data).consensus_
        assert other.stderr.mean() < 0.85 * model.consensus_.stderr.mean()


def columns_of(r):
    return r.item, r.tier, r.offsets


def test_intervals_cover_when_users_rate_many_items():
    many = MultinomialPreference("rating", stderr=None).fit(ratings(99, n=8, users=20_000)).theta_
    covered = []
    for seed in range(80):
        low, high = MultinomialPreference("rating").fit(ratings(seed, n=8, users=100)).consensus_.interval(0.9)
        covered.append((low <= many) & (many <= high))
    assert np.mean(covered) == pytest.approx(0.9, abs=0.03)


# Variances


def test_variances_end_at_the_model_without_them():
    data = ratings(4, n=8, users=40)
    plain = MultinomialPreference("rating").fit(data)
    tight = MultinomialPreference("rating", variance=True, variance_prior=1e-4).fit(data)
    assert tight.theta_ == pytest.approx(plain.theta_, abs=1e-5)
    assert tight.variance_ == pytest.approx(0.5, abs=1e-5)
    assert tight.consensus_.covariance == pytest.approx(plain.consensus_.covariance, rel=1e-3, abs=1e-6)


def test_errors_and_wins_with_variances_by_definition():
    data = ratings(1, n=4, users=7)
    model = MultinomialPreference("rating", variance=True, prior=1.0, variance_prior=1.0).fit(data)
    counts, n = counts_by_definition(data, "rating"), 4
    precision = np.repeat([1.0, 2 * counts.sum() / n], n)
    x = np.concatenate([model.theta_, np.log(2 * model.variance_)])
    one = lambda y, b: loss_by_definition(y[:n], np.exp(y[n:]) / 2, [1.0], counts[b : b + 1])  # noqa: E731
    h = 1e-4 * np.eye(2 * n)
    G = np.array([[(one(x + e, b) - one(x - e, b)) / 2e-4 for e in h] for b in range(len(data))])
    whole = lambda y: sum(one(y, b) for b in range(len(data)))  # noqa: E731
    H = np.array(
        [[(whole(x + e + f) - whole(x + e - f) - whole(x - e + f) + whole(x - e - f)) / 4e-8 for f in h] for e in h]
    )
    H += np.diag(precision)
    N = (counts.sum(axis=(1, 2)) > 0).sum()
    J = N / (N - 1) * G.T @ G + np.diag(np.repeat([1.0, 0.0], n))
    center = np.eye(n) - 1 / n
    C = center @ (np.linalg.inv(H) @ J @ np.linalg.inv(H))[:n, :n] @ center
    assert model.consensus_.covariance == pytest.approx(C, rel=1e-3, abs=1e-4)
    observed = MultinomialPreference("rating", variance=True, prior=1.0, variance_prior=1.0, stderr="observed").fit(
        data
    )
    assert observed.consensus_.covariance == pytest.approx(
        center @ np.linalg.inv(H)[:n, :n] @ center, rel=1e-3, abs=1e-4
    )
    c, g = model.consensus_, model.variance_
    u = (model.theta_[0] - model.theta_[1]) / (g[0] + g[1])
    assert c.win_probability(0, 1) == pytest.approx(1 / (1 + math.exp(-2 * u)))
    assert c.win_probabilities()[0, 1] == pytest.approx(c.win_probability(0, 1))
    assert len(c.next_pairs(3)) == 3


def test_errors_with_variances_agree_with_a_bootstrap_over_agents():
    data = ratings(3, n=6, users=120)
    model = MultinomialPreference("rating", variance=True).fit(data)
    rng, draws = np.random.default_rng(1), []
    for _ in range(100):
        sample = data[rng.integers(0, len(data), len(data))]
        sample = Rankings(*columns_of(sample), items=data.items, score=sample.score)
        draws.append(MultinomialPreference("rating", variance=True, stderr=None).fit(sample).theta_)
    assert np.mean(model.consensus_.stderr / np.std(draws, axis=0)) == pytest.approx(1.0, abs=0.08)


@pytest.mark.parametrize("width", [0.3, 1.0, 3.0, 30.0])
def test_newton_and_lbfgs_find_the_same_variances(width, monkeypatch):
    data = ratings(5, n=12, users=60)
    newton = MultinomialPreference("rating", variance=True, variance_prior=width).fit(data)
    assert newton.fit_.converged
    assert newton.fit_.n_iter < 60
    for module in (multinomial_preference, item_variances):
        monkeypatch.setattr(module, "MOST_DENSE", 3)
    lbfgs = MultinomialPreference("rating", variance=True, variance_prior=width, max_iter=1000).fit(data)
    assert newton.fit_.value <= lbfgs.fit_.value + 1e-6 * abs(lbfgs.fit_.value)
    if width <= 3:
        assert newton.theta_ == pytest.approx(lbfgs.theta_, abs=1e-3)
    assert lbfgs.consensus_.stderr is None
    assert any("L-BFGS" in note for note in lbfgs.consensus_.notes)


@pytest.mark.parametrize("variance", [False, True])
def test_few_raters_do_not_come_first(variance):
    few = Rankings.from_scores(
        {"user": ["v", "v", "w", "w", "w"], "item": ["new", 0, "new", 1, 2], "stars": [5.0, 1.0, 5.0, 1.0, 2.0]},
        ballot="user",
        item="item",
        score="stars",
        items=[*range(15), "new"],
    )
    data = placet.concat([ratings(6), few])
    model = MultinomialPreference("rating", variance=variance).fit(data)
    assert model.consensus_.ranks[15] > 4
    assert model.consensus_.ranking[0] in (13, 14)
    if variance:  # the more ratings, the smaller the variance: figure 5 of the paper
        count = np.bincount(data.item, minlength=16)
        assert np.corrcoef(np.log(model.variance_), np.log(count))[0, 1] < -0.4


def test_errors_of_one_agent_are_from_the_information():
    one = MultinomialPreference().fit(Rankings.from_orders([["a", "b", "c"]])).consensus_
    other = MultinomialPreference(stderr="observed").fit(Rankings.from_orders([["a", "b", "c"]])).consensus_
    assert one.stderr == pytest.approx(other.stderr)
    assert any("there is one ballot" in note for note in one.notes)
    assert MultinomialPreference(stderr=None).fit(Rankings.from_orders([["a", "b"]])).consensus_.stderr is None


# What cannot be answered, and what is large


def test_without_a_prior_only_finite_scores_are_given():
    with pytest.raises(DataError, match="no item both wins and loses"):
        MultinomialPreference(prior=None).fit(Rankings.from_orders([["a", "b"], ["a", ("b", "c")]]))
    assert MultinomialPreference().fit(Rankings.from_orders([["a", "b"]])).consensus_.ranking == ["a", "b"]
    middle = Rankings.from_orders([["a", "b", "c"]])
    assert MultinomialPreference(prior=None).fit(middle).consensus_.ranking == ["a", "b", "c"]
    data = Rankings.from_orders([["a", "b", "c"], ["d", "e"]], instance=["x", "y"])
    with pytest.raises(DataError, match=r"instance 'y'.*1 such"):
        MultinomialPreference(prior=None).fit(data)


@pytest.mark.parametrize("variance", [False, True])
@pytest.mark.parametrize("orders", [[["a"]], [[("a", "b")]], [[], ["a", "b"]], [["a", "b", "c"], ["c", "b", "a"]]])
def test_hard_cases(orders, variance):
    c = MultinomialPreference(variance=variance).fit(Rankings.from_orders(orders)).consensus_
    assert np.isfinite(c.scores).all()
    if len(orders) < 2 or len(orders[0]) == 3:
        assert c.scores == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_tiny_and_huge_weights(scale):
    data = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]], weight=[scale] * 3)
    c = MultinomialPreference(prior=None).fit(data).consensus_
    assert c.ranking == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"strength": "stars"}, "strength 'stars' is unknown"),
        ({"adherence": "guess"}, "adherence 'guess' is unknown"),
        ({"prior": -1}, "prior must be a positive"),
        ({"adherence": "supervised"}, "belong together"),
        ({"adherence": {"nobody": 1.0}}, "adherence of agent 0 is not given"),
        ({"adherence": {0: -1.0}}, "not negative"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        MultinomialPreference(**params).fit(Rankings.from_orders([["a", "b"]]))


def test_bad_truth_is_named():
    data, truth = simulated(n_instances=2)
    with pytest.raises(DataError, match="belong to instances"):
        supervised_adherence(data, Rankings.from_orders([["0:1", "0:2"]], items=data.items))
    with pytest.raises(DataError, match="same items"):
        supervised_adherence(data, truth.restricted(truth.items[:12]))
    with pytest.raises(DataError, match="instance 9 of the truth"):
        supervised_adherence(data, Rankings.from_orders([["0:1", "0:2"]], items=data.items, instance=[9]))
    with pytest.raises(DataError, match="different labels"):
        supervised_adherence(data, Rankings.from_orders([[("0:1", "0:2")]], items=data.items, instance=[0]))


def test_it_is_an_estimator():
    model = MultinomialPreference(strength="binary", adherence="learned")
    assert clone(model).get_params() == model.get_params()


def test_many_items_need_no_table_of_pairs():
    rng = np.random.default_rng(0)
    n, users, each = 100_000, 2000, 200
    item = np.concatenate([rng.choice(n, each, replace=False) for _ in range(users)])
    score = rng.integers(1, 6, len(item)).astype(float)
    order = np.lexsort((-score, np.repeat(np.arange(users), each)))
    data = Rankings(
        item[order], 5 - score[order].astype(int), np.arange(0, len(item) + 1, each), items=range(n), score=score[order]
    )
    model = MultinomialPreference(strength="rating").fit(data)
    assert model.fit_.converged
    assert np.corrcoef(model.theta_, np.bincount(data.item, data.score - 3, n))[0, 1] > 0.7
    assert model.consensus_.stderr.shape == (n,)


def test_an_item_with_one_best_rating_is_not_on_top():
    """Ratings with very unequal numbers: a few items have most of them."""
    drawn = placet.simulate.ratings(400, 300, observed=0.06, popularity=1.2, random_state=3)
    user, item, stars = drawn.agent[drawn.ballot], drawn.item, drawn.score
    columns = {"user": [*user, 0], "item": [*item.tolist(), 300], "stars": [*stars, 5.0]}
    data = Rankings.from_scores(columns, ballot="user", item="item", score="stars", items=range(301))
    for params in ({}, {"adherence": "learned"}, {"variance": True}):
        c = placet.consensus(data, "mpm", strength="rating", **params)
        count = np.bincount(data.item, minlength=301)
        assert c.ranks[300] > 30
        assert count[c.order[:5]].min() > 20
        assert c.stderr is not None


@pytest.mark.parametrize("kind", ["ballots", "votes"])
def test_mixed_derivatives_are_those_of_the_gradients(kind):
    data = shared_items()
    p = preferences(data, "difference") if kind == "ballots" else votes(data.to_comparisons())
    rng = np.random.default_rng(0)
    s, t, h = rng.normal(size=8), rng.uniform(0.2, 0.9, 12), 1e-5
    dense = lambda rows: rows.toarray() if hasattr(rows, "toarray") else rows  # noqa: E731
    (at,), (up,), (down,) = (list(p.gradients(0, s, x)) for x in (t, t + h, t - h))
    assert dense(at.mixed) == pytest.approx((dense(up.score) - dense(down.score)) / (2 * h), rel=1e-5, abs=1e-5)
    # by t twice: a gradient by s along s is t times the derivative by t
    by_t = lambda block, x: dense(block.score) @ s / x  # noqa: E731
    assert at.curvature == pytest.approx((by_t(up, t + h) - by_t(down, t - h)) / (2 * h), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("adherence", [None, "learned"])
@pytest.mark.parametrize("strength", ["difference", "binary"])
def test_errors_of_many_large_problems_leave_correlations_out_to_save_memory(monkeypatch, adherence, strength):
    rng = np.random.default_rng(0)
    orders, instance = [], []
    for k, n in enumerate((3, 9, 30)):
        orders += [[f"{k}-{x}" for x in rng.permutation(n)] for _ in range(6)]
        instance += [k] * 6
    runs = Rankings.from_orders(orders, instance=instance, agent=[0, 1, 2, 3, 4, 5] * 3)
    model = MultinomialPreference(strength, adherence=adherence)
    whole = model.fit(runs).consensus_
    monkeypatch.setattr(preference_errors, "MOST_CORRELATIONS", 3 * 9**2)
    small = model.fit(runs).consensus_
    for k in range(3):
        assert whole[k].covariance is not None
        np.testing.assert_allclose(small[k].stderr, whole[k].stderr, rtol=1e-9)
    assert [small[k].covariance is None for k in range(3)] == [False, False, True]
    assert any("more than 9 items, in 3 problems: errors are without correlations" in note for note in small[2].notes)
