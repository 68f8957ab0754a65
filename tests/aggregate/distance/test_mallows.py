"""Mallows, coset-permutation and spectral models: normalizers by enumeration, likelihoods by definition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone

import placet
from placet.aggregate import MODELS
from placet.aggregate.distance import spearman, svp
from placet.aggregate.distance.cps import CosetPermutation, StageCosts
from placet.aggregate.distance.mallows import LARGEST, Mallows, kendall_dispersion, log_normalizer
from placet.aggregate.distance.svp import SingularValueProjection, mean_differences, project
from placet.aggregate.instances import instances
from placet.aggregate.rules.kemeny import kemeny_order
from placet.data import Comparisons, DataError, Rankings
from placet.kernels.aggregate import matchings as kernels

check = settings(max_examples=40)


def kendall(order, center):
    return sum(
        (order.index(x) < order.index(y)) != (center.index(x) < center.index(y))
        for x, y in itertools.combinations(order, 2)
    )


def squared(order, center):
    return sum((order.index(x) - center.index(x)) ** 2 for x in order)


def absolute(order, center):
    return sum(abs(order.index(x) - center.index(x)) for x in order)


@st.composite
def ballots(draw, max_items=5, ties=True):
    n = draw(st.integers(1, max_items))
    orders = []
    for _ in range(draw(st.integers(1, 4))):
        order = draw(st.permutations(range(n)))[: draw(st.integers(0, n))]
        cuts = draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
        ballot: list[tuple[int, ...]] = []
        for x, joined in zip(order, cuts):
            if ties and joined and ballot:
                ballot[-1] += (x,)
            else:
                ballot.append((x,))
        orders.append(ballot)
    weight = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(orders), max_size=len(orders)))
    return Rankings.from_orders(orders, items=range(n), weight=weight)


# Mallows


@pytest.mark.parametrize("n", range(7))
@pytest.mark.parametrize("t", [0.0, 1e-12, 1e-6, 0.1, 1.0, 20.0])
def test_normalizers_by_enumeration(n, t):
    orders = [list(order) for order in itertools.permutations(range(n))]
    exact = math.fsum(math.exp(-t * kendall(order, list(range(n)))) for order in orders)
    assert log_normalizer(t, n) == pytest.approx(math.log(exact), abs=1e-7)
    exact = math.fsum(math.exp(-t * squared(order, list(range(n)))) for order in orders)
    assert spearman.log_normalizer(t, n) == pytest.approx(math.log(exact), abs=1e-9)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("t", [1e-3, 0.02, 0.1, 0.149, 0.16, 0.5, 3.0])
def test_sums_over_many_orders_are_close_to_exact_ones(t, gaps):
    n = 16
    place = np.arange(float(n))
    center = np.cumsum(1.0 + np.arange(n) % 3) if gaps else place
    least = ((place - center) ** 2).sum()

    def exact(x):
        A = np.empty((n, n))
        cost = kernels.relative_weights(x, place, center, A)
        return math.log(kernels.permanent(A)) - x * cost

    near = lambda x: spearman.log_sum(x, place, center)  # noqa: E731
    slope = lambda f: (f(t * 1.0003) - f(t * 0.9997)) / (6e-4 * t) + least  # noqa: E731
    assert near(t) == pytest.approx(exact(t), abs=0.02)
    assert slope(near) == pytest.approx(slope(exact), rel=5e-3, abs=1e-6)  # what t is fitted by: the mean distance
    assert exact(1e-12) == pytest.approx(math.lgamma(n + 1), abs=1e-6)


@check
@given(data=st.data())
def test_permanents_by_enumeration(data):
    n = data.draw(st.integers(1, 5))
    sides = [sorted(data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n, unique=True))) for _ in range(2)]
    place, center = (np.array(side, float) for side in sides)
    t = data.draw(st.sampled_from([0.0, 0.01, 0.3, 5.0]))
    costs = [sum((place[i] - center[j]) ** 2 for i, j in enumerate(m)) for m in itertools.permutations(range(n))]
    least = min(costs)
    exact = -t * least + math.log(math.fsum(math.exp(-t * (c - least)) for c in costs))
    assert spearman.log_sum(t, place, center) == pytest.approx(exact, abs=1e-9)
    if n > 1 and t > 0.2:  # a band as wide as the table leaves nothing out
        A = np.empty((n, n))
        cost = kernels.relative_weights(t, place, center, A)
        rest, log = kernels.band_permanent(A, n)
        assert math.log(rest) + log - t * cost == pytest.approx(exact, abs=1e-9)


def loss_by_definition(r, center, t, distance=kendall):
    """Ballots as sets of orders of their items: P is the sum over the orders that a ballot allows."""
    total = 0.0
    for b, ballot in enumerate(r):
        listed = [x for tier in ballot for x in tier]
        own = [x for x in center if x in listed]
        ways = [list(itertools.chain(*w)) for w in itertools.product(*map(itertools.permutations, ballot))]
        Z = sum(math.exp(-t * distance(list(o), own)) for o in itertools.permutations(listed))
        own_share = sum(math.exp(-t * distance(o, own)) for o in ways) / Z
        total -= r.weight[b] * (math.log(own_share) if own_share > 0 else -math.inf)
    return total


@check
@given(r=ballots())
def test_kendall_likelihood_by_definition(r):
    model = Mallows().fit(r)
    center = kemeny_order(r).order.tolist()
    assert model.fit_.value == pytest.approx(loss_by_definition(r, center, model.dispersion_), abs=1e-7)
    best = min(
        loss_by_definition(r, list(c), t)
        for c in itertools.permutations(center)
        for t in (0.0, 0.2, 0.5, 1.0, 2.0, 8.0)
    )
    assert model.fit_.value <= best + 1e-7
    near = [max(model.dispersion_ + d, 0.0) for d in (-0.01, 0.01)]
    assert model.fit_.value <= min(loss_by_definition(r, center, min(t, LARGEST)) for t in near) + 1e-9


def test_dispersion_is_found_again_in_drawn_orders():
    rng = np.random.default_rng(0)
    n, t = 8, 0.6
    orders = []
    for _ in range(1500):
        order: list[int] = []
        for i in range(n):
            chance = np.exp(-t * np.arange(i, -1, -1.0))
            order.insert(int(rng.choice(i + 1, p=chance / chance.sum())), i)
        orders.append(order)
    model = Mallows().fit(Rankings.from_orders(orders, items=range(n)))
    assert model.consensus_.ranking == list(range(n))
    assert model.dispersion_ == pytest.approx(t, abs=0.03)
    assert model.phi_ == pytest.approx(math.exp(-model.dispersion_))


def test_spearman_center_and_dispersion_by_enumeration():
    rng = np.random.default_rng(1)
    n, t = 5, 0.15
    orders = [list(o) for o in itertools.permutations(range(n))]
    p = np.array([math.exp(-t * squared(o, list(range(n)))) for o in orders])
    drawn = rng.choice(len(orders), 3000, p=p / p.sum())
    r = Rankings.from_orders([orders[k] for k in drawn], items=range(n))
    model = Mallows("spearman").fit(r)
    assert model.consensus_.ranking == list(range(n))
    assert model.dispersion_ == pytest.approx(t, abs=0.02)
    mean = np.mean([squared(orders[k], list(range(n))) for k in drawn])
    q = np.array([math.exp(-model.dispersion_ * squared(o, list(range(n)))) for o in orders])
    expected = sum(w * squared(o, list(range(n))) for w, o in zip(q / q.sum(), orders))
    assert expected == pytest.approx(
        mean, rel=1e-3
    )  # the likelihood is largest where the mean distance is the observed one


def test_two_orders_that_differ_in_one_pair():
    model = Mallows("spearman").fit(Rankings.from_orders([list("abc"), list("bac")]))
    x = math.exp(-2 * model.dispersion_)  # mean distance 1: 4 x + 12 x^3 + 8 x^4 = 1 + 2 x + 2 x^3 + x^4
    assert 2 * x + 10 * x**3 + 7 * x**4 == pytest.approx(1.0, abs=1e-5)
    assert model.dispersion_ == pytest.approx(0.5807, abs=1e-4)
    assert model.consensus_.ranking == [("a", "b"), "c"]
    assert any("equal mean places" in note for note in model.consensus_.notes)


@settings(max_examples=25)
@given(r=ballots(max_items=4))
def test_spearman_likelihood_by_definition(r):
    """Ties and partial ballots, against every order and many dispersions."""
    model = Mallows("spearman").fit(r)
    orders = [list(c) for c in itertools.permutations(range(r.n_items))]
    at = {tuple(c): loss_by_definition(r, c, model.dispersion_, squared) for c in orders}
    best = min(at.values())
    assert model.fit_.value == pytest.approx(best, abs=1e-6)
    for t in (0.0, 0.02, 0.1, 0.3, 0.6, 1.0, 2.0, 8.0):
        assert best <= min(loss_by_definition(r, c, t, squared) for c in orders) + 1e-6
    equal = [c for c, value in at.items() if value <= best + 1e-7 * (1 + best)]
    mean = np.mean([[c.index(i) for i in range(r.n_items)] for c in equal], axis=0)
    if len({round(v, 4) for v in at.values()}) > 1:  # some order is better than another
        assert model.theta_ == pytest.approx(-mean, abs=1e-9)


def test_ties_and_partial_ballots_of_six_items():
    rng = np.random.default_rng(5)
    orders = []
    for _ in range(12):
        order = np.argsort(np.arange(6) + 1.5 * rng.normal(size=6))[: rng.integers(2, 7)].tolist()
        orders.append([(order[0], order[1]), *order[2:]] if rng.random() < 0.5 else order)
    r = Rankings.from_orders(orders, items=range(6))
    model = Mallows("spearman").fit(r)
    center = [int(i) for i in np.argsort(-model.theta_, kind="stable")]
    at = loss_by_definition(r, center, model.dispersion_, squared)
    assert model.fit_.value == pytest.approx(at, abs=1e-6)
    for t in (0.9 * model.dispersion_, 1.1 * model.dispersion_):
        assert loss_by_definition(r, center, t, squared) >= at
    for i, j in itertools.combinations(range(6), 2):
        other = list(center)
        other[i], other[j] = other[j], other[i]
        assert loss_by_definition(r, other, model.dispersion_, squared) >= at - 1e-9


def test_what_is_not_the_likeliest_center_says_so():
    rng = np.random.default_rng(0)
    partial = Rankings.from_orders([rng.permutation(8)[:5].tolist() for _ in range(9)], items=range(8))
    assert any("only the dispersion" in note for note in Mallows("spearman").fit(partial).consensus_.notes)
    whole = Rankings.from_orders([rng.permutation(14).tolist() for _ in range(9)], items=range(14))
    assert any("approximate" in note for note in Mallows("spearman").fit(whole).consensus_.notes)
    top = Rankings.from_orders(
        [rng.permutation(300)[:3].tolist() for _ in range(20)], items=range(300), unlisted="last"
    )
    with pytest.raises(DataError, match=r"20 ties of more than 12 items.*'kendall'"):
        Mallows("spearman").fit(top)


def test_hard_cases_of_mallows():
    one = Mallows().fit(Rankings.from_orders([["a", "b", "c"]]))
    assert one.dispersion_ == LARGEST
    assert any("agrees with the center" in note for note in one.consensus_.notes)
    for distance in ("kendall", "spearman"):
        tied = Mallows(distance).fit(Rankings.from_orders([[("a", "b", "c")], []]))
        assert len(set(tied.theta_)) == 1
        assert np.isfinite(tied.dispersion_)
    level = Rankings.from_orders([["a", "b"], ["b", "a"]])
    assert kendall_dispersion(level, 1.0)[1] == pytest.approx(0.0, abs=1e-6)
    cycle = Rankings.from_orders([[*range(k, 15), *range(k)] for k in range(15)])
    local = Mallows(center="local").fit(cycle)
    assert any("no order is below" in note for note in local.consensus_.notes)
    with pytest.raises(ValueError, match="distance 'hamming' is unknown"):
        Mallows("hamming").fit(level)
    with pytest.raises(DataError, match="whole ballots"):
        Mallows().fit(Comparisons.from_battles(["a"], ["b"], ["a"]))


# Coset-permutation stagewise


@pytest.mark.parametrize(("name", "distance"), [("spearman", squared), ("footrule", absolute), ("kendall", kendall)])
@check
@given(data=st.data())
def test_stage_costs_are_mean_distances_of_all_completions(name, distance, data):
    n = data.draw(st.integers(2, 5))
    ballot = list(data.draw(st.permutations(range(n))))
    above = list(data.draw(st.permutations(range(n))))[: data.draw(st.integers(0, n - 1))]
    left = [i for i in range(n) if i not in above]
    (one,) = instances(Rankings.from_orders([ballot], items=range(n)))
    costs = StageCosts(one, name).at(len(above), np.array(left))[0]

    def mean_distance(first):
        rest = [i for i in left if i != first]
        return np.mean([distance([*above, first, *way], ballot) for way in itertools.permutations(rest)])

    by_definition = np.array([mean_distance(x) for x in left])
    assert costs - costs.mean() == pytest.approx(by_definition - by_definition.mean(), abs=1e-9)


@pytest.mark.parametrize("distance", ["spearman", "footrule", "kendall"])
@check
@given(r=ballots())
def test_relabelling_and_weights_of_cps(distance, r):
    theta = CosetPermutation(distance).fit(r).theta_
    to = np.roll(np.arange(r.n_items), 1)
    again = Rankings(to[r.item], r.tier, r.offsets, r.weight, items=r.items)
    assert CosetPermutation(distance).fit(again).theta_[to] == pytest.approx(theta)
    double = CosetPermutation(distance).fit(r[np.repeat(np.arange(len(r)), 2)]).theta_
    assert double == pytest.approx(theta)


def test_spearman_stages_are_a_borda_count():
    r = Rankings.from_orders([list("abcd"), list("bdca"), list("abdc")])
    assert CosetPermutation().fit(r).consensus_.ranking == placet.consensus(r, "borda").ranking


def simulated(n_instances=40, n_items=6, seed=0):
    """Four agents, of which the last orders at random; the true orders."""
    rng = np.random.default_rng(seed)
    orders, agent, instance, truth = [], [], [], []
    for q in range(n_instances):
        s = rng.normal(size=n_items)
        truth.append([f"{q}:{i}" for i in np.argsort(-s)])
        for a in range(4):
            order = np.argsort(-(s + (100.0 if a == 3 else 0.4) * rng.normal(size=n_items)))
            orders.append([f"{q}:{i}" for i in order])
            agent.append(a)
            instance.append(q)
    items = [f"{q}:{i}" for q in range(n_instances) for i in range(n_items)]
    return (
        Rankings.from_orders(orders, items=items, agent=agent, instance=instance),
        Rankings.from_orders(truth, items=items, instance=range(n_instances)),
    )


@pytest.mark.parametrize("distance", ["spearman", "footrule", "kendall"])
def test_weights_are_learned_from_labelled_instances(distance):
    data, truth = simulated()
    model = CosetPermutation(distance).fit(data, truth)
    assert model.fit_.converged
    assert abs(model.weight_[3]) < 0.2 * model.weight_[:3].min()
    assert set(model.consensus_) == set(range(40))
    assert clone(model).get_params() == model.get_params()


def test_cps_says_what_it_needs():
    data, truth = simulated(2)
    with pytest.raises(ValueError, match="distance 'cayley' is unknown"):
        CosetPermutation("cayley").fit(data)
    with pytest.raises(DataError, match="named agents"):
        CosetPermutation().fit(Rankings.from_orders([["a", "b"]]), truth)
    with pytest.raises(DataError, match="same items"):
        CosetPermutation().fit(data, truth.restricted(truth.items[:6]))


# Singular value projection


def test_row_means_where_all_pairs_are_known():
    r = Rankings.from_orders([list("abcd"), list("bacd"), list("dabc")])
    c = SingularValueProjection().fit(r).consensus_
    (one,) = instances(r)
    Y, known = mean_differences(one, "difference")
    assert pytest.approx(-Y.T) == Y
    assert known.all()
    assert c.scores == pytest.approx(Y.mean(axis=1), abs=1e-6)


def test_differences_of_ratings():
    # u rates a, b, c and v rates b, c, d: Y by hand; a and d were never rated together, which one step takes for a tie
    item, score = [0, 1, 2, 1, 2, 3], [5.0, 3.0, 1.0, 4.0, 4.0, 1.0]
    ratings = Rankings(item, [0, 1, 2, 0, 0, 1], [0, 3, 6], items=list("abcd"), score=score)
    (one,) = instances(ratings)
    Y, known = mean_differences(one, "rating")
    assert Y.tolist() == [[0, 2, 4, 0], [-2, 0, 1, 3], [-4, -1, 0, 3], [0, -3, -3, 0]]
    assert known.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]]
    U, s, V = np.linalg.svd(Y)
    once = SingularValueProjection("rating", max_iter=1).fit(ratings)
    assert once.theta_ == pytest.approx(((U[:, :2] * s[:2]) @ V[:2]).mean(axis=1))
    with pytest.raises(DataError, match="needs ballots with scores"):
        SingularValueProjection("rating").fit(Rankings.from_orders([["a", "b"]]))


def test_missing_pairs_are_completed():
    rng = np.random.default_rng(0)
    s = rng.normal(size=30)
    Y = s[:, None] - s[None, :]
    known = np.triu(rng.random((30, 30)) < 0.6, 1)
    known = (known | known.T).astype(float) + np.eye(30)
    X, change, _ = project(Y * known, known, 2000, 1e-8)
    assert change <= 1e-8
    assert pytest.approx(Y, abs=1e-4) == X
    assert pytest.approx(-X.T, abs=1e-6) == X


@pytest.mark.parametrize("strength", ["difference", "binary"])
def test_projection_of_instances_and_hard_cases(strength):
    data, _ = simulated(5)
    model = SingularValueProjection(strength).fit(data)
    assert set(model.consensus_) == set(range(5))
    assert np.isfinite(model.theta_).all()
    for orders in ([["a"]], [[("a", "b")]], [[], ["a", "b"]]):
        scores = SingularValueProjection(strength).fit(Rankings.from_orders(orders)).theta_
        assert np.isfinite(scores).all()
    with pytest.raises(ValueError, match="strength 'stars' is unknown"):
        SingularValueProjection("stars").fit(data)


@pytest.mark.parametrize("name", ["mpm", "mallows", "cps", "svp"])
def test_models_answer_through_consensus(name):
    votes = Rankings.from_orders([list("abcd"), list("abdc"), list("bacd"), ["a", "c"]])
    c = placet.consensus(votes, name)
    assert c.ranking[0] == "a"
    assert c.method == name
    assert MODELS[name]().fit(votes).theta_.shape == (4,)


def test_the_first_pair_of_singular_values_is_that_of_all_of_them(monkeypatch):
    rng = np.random.default_rng(2)
    scores = rng.normal(size=40)
    orders = [[int(k) for k in rng.permutation(40)[:12]] for _ in range(60)]
    votes = Rankings.from_orders([sorted(o, key=lambda k: scores[k] + rng.normal()) for o in orders], items=range(40))
    whole = SingularValueProjection().fit(votes)
    monkeypatch.setattr(svp, "SMALL", 5)
    quick = SingularValueProjection().fit(votes)
    np.testing.assert_allclose(quick.theta_, whole.theta_, atol=1e-8)
    assert quick.fit_.n_iter == whole.fit_.n_iter
    assert svp._leading_part(np.zeros((6, 6))) is None
    equal = np.kron(np.eye(3), [[0.0, 1.0], [-1.0, 0.0]])  # three equal pairs: left to the mean over all of them
    assert svp._leading_part(equal) is None
    assert svp.rank_two(equal) == pytest.approx(equal / 3, abs=1e-12)


def test_a_projection_that_stops_early_says_so():
    rng = np.random.default_rng(0)
    votes = Rankings.from_orders([rng.permutation(12)[:3].tolist() for _ in range(20)], items=range(12))
    notes = {steps: SingularValueProjection(max_iter=steps).fit(votes).consensus_.notes for steps in (1, 3)}
    assert any("not converged: step 3 still changed the table" in note for note in notes[3])
    assert notes[1] == ()
