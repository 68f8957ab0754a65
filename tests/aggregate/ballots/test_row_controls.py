"""Controls of the rows of ballots: Plackett-Luce fits their effects, and data keep them beside their rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import approx_fprime, minimize

from placet.aggregate import consensus
from placet.aggregate.ballots.ballot_models import PlackettLuce
from placet.aggregate.ballots.row_controls import ControlledBallots, typical_differences
from placet.data import Comparisons, DataError, Parts, Rankings
from placet.data.concatenation import concat


def drawn(n, ballots, size, effect, seed, *, tiers=None):
    """Scores, and ballots of Plackett-Luce on some of the items with controls; ``tiers``: places that are kept."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n)
    theta -= theta.mean()
    item = np.array([rng.choice(n, size, replace=False) for _ in range(ballots)])
    Z = 2.0 + 3.0 * rng.normal(size=(ballots, size, len(effect)))
    s = theta[item] + Z @ np.asarray(effect) + rng.gumbel(size=(ballots, size))
    tier = np.argsort(np.argsort(-s, axis=1), axis=1)
    tier = tier if tiers is None else np.minimum(tier, tiers)
    offsets = size * np.arange(ballots + 1)
    names = tuple(f"z{k}" for k in range(len(effect)))
    data = Rankings(
        item.ravel(), tier.ravel(), offsets, items=range(n), control=Z.reshape(-1, len(effect)), controls=names
    )
    return theta, data


def votes(n, count, effect, seed):
    rng = np.random.default_rng(seed)
    theta, a = rng.normal(size=n), rng.integers(0, n, count)
    b = (a + rng.integers(1, n, count)) % n
    Z = rng.normal(size=(count, len(effect)))
    won = rng.random(count) < 1 / (1 + np.exp(theta[b] - theta[a] - Z @ effect))
    return Comparisons.from_battles(a, b, np.where(won, "a", "b"), items=range(n), control=Z)


@pytest.mark.parametrize("prior", [None, 1.5, "learn"])
def test_equal_to_bradley_terry_on_ballots_of_two(prior):
    data = votes(7, 600, [0.7, -0.3], 0)
    pairs = consensus(data, "bradley-terry", prior=prior)
    for ballots in (data, Rankings.from_comparisons(data)):
        found = consensus(ballots, "plackett-luce", prior=prior)
        atol = 1e-3 if prior == "learn" else 1e-6  # the width is where a search stops
        np.testing.assert_allclose(found.scores, pairs.scores, atol=atol)
        np.testing.assert_allclose(found.stderr, pairs.stderr, atol=atol)
        for column in ("coefficient", "stderr", "points", "typical", "typical_points"):
            np.testing.assert_allclose(found.controls[column], pairs.controls[column], rtol=10 * atol)
        assert not any("does not look" in note for note in found.notes)


@pytest.mark.parametrize("tiers", [None, 2])
def test_the_optimum_is_that_of_a_slow_optimizer(tiers):
    _, data = drawn(5, 60, 4, [0.4, -0.2], 1, tiers=tiers)
    found = consensus(data, "plackett-luce", prior=1.5)
    unit = typical_differences(data, data.weight)
    stages = 3 if tiers is None else tiers  # the last tier is one row, or the rest of them

    def cost(x):
        total = (x[:5] @ x[:5]) / 1.5**2 / 2 + (x[5:] * unit) @ (x[5:] * unit) / 10**2 / 2
        s = x[data.item] + data.control @ x[5:]
        for b in range(len(data)):
            own = s[data.offsets[b] : data.offsets[b + 1]]
            total += sum(np.log(np.exp(own[k:]).sum()) - own[k] for k in range(stages))
        return total

    slow = minimize(cost, np.zeros(7), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(found.scores, slow.x[:5] - slow.x[:5].mean(), atol=1e-5)
    np.testing.assert_allclose(found.controls["coefficient"], slow.x[5:], atol=1e-5)


@given(st.integers(0, 10**6), st.sampled_from([None, 1, 2]), st.sampled_from([None, 0.5]))
@settings(max_examples=15)
def test_derivatives_and_outer_products(seed, tiers, prior):
    _, data = drawn(4, 12, 3, [0.4, -0.2], seed, tiers=tiers)
    rng = np.random.default_rng(seed)
    b = ControlledBallots(data, rng.uniform(0.5, 2, len(data)), "pl-partition", prior)
    x, v = rng.normal(size=6), rng.normal(size=6)
    np.testing.assert_allclose(b.value(x)[1], approx_fprime(x, lambda y: b.value(y)[0], 1e-7), atol=1e-5)
    slope = (b.value(x + 1e-5 * v)[1] - b.value(x - 1e-5 * v)[1]) / 2e-5
    np.testing.assert_allclose(b.times(x, v), slope, atol=1e-6)
    slow = np.zeros((6, 6))
    part = b.parts.data
    rows = part.row_gradient(x)
    for k in range(len(data)):
        own = np.arange(data.offsets[k], data.offsets[k + 1])
        g = np.append(np.bincount(data.item[own], rows[own], 4), rows[own] @ part.Z[own])
        slow += part.weight[k] * np.outer(g, g)
    np.testing.assert_allclose(b.outer_products(x), slow, atol=1e-12)


def test_effects_are_recovered_and_covered():
    errors = []
    for seed in range(25):
        theta, data = drawn(6, 120, 4, [0.3], seed)
        found = consensus(data, "plackett-luce")
        row = found.controls.row(0, named=True)
        errors += [(row["coefficient"] - 0.3) / row["stderr"], *((found.scores - theta) / found.stderr)[:5]]
    assert 0.9 <= np.mean(np.abs(errors) < 1.96) <= 0.99
    assert 0.75 < np.std(errors) < 1.2


def test_sandwich_and_bootstrap():
    _, data = drawn(5, 300, 4, [0.3], 3)
    plain, robust = (consensus(data, "plackett-luce", stderr=kind) for kind in ("observed", "sandwich"))
    np.testing.assert_allclose(robust.controls["stderr"], plain.controls["stderr"], rtol=0.3)
    np.testing.assert_allclose(robust.scores, plain.scores, atol=1e-9)
    again = consensus(data, "plackett-luce", bootstrap=20)
    np.testing.assert_allclose(again.scores, plain.scores, atol=1e-9)
    none = consensus(data, "plackett-luce", stderr=None)
    assert none.controls["stderr"].to_list() == [None]


def test_rows_keep_their_controls():
    frame = {"who": [1, 2, 1, 1, 2], "what": list("acbcb"), "stars": [3, 1, 5, 3, 2], "place": [0, 1, 2, 3, 4]}
    data = Rankings.from_scores(frame, ballot="who", item="what", score="stars", control=["place"])

    def rows(ballots):
        names = [(ballots.items[k], float(z)) for k, z in zip(ballots.item, ballots.control[:, 0], strict=True)]
        return [names[a:z] for a, z in zip(ballots.offsets, ballots.offsets[1:])]

    first, second = [("b", 2.0), ("a", 0.0), ("c", 3.0)], [("b", 4.0), ("c", 1.0)]
    assert rows(data) == [first, second]
    assert data.controls == ("place",)
    assert rows(data[[1, 0]]) == [second, first]
    assert rows(data + data) == [first, second, first, second]
    assert rows(data.restricted(["c", "b"])) == [[("b", 2.0), ("c", 3.0)], second]
    assert len(concat([data, data]).collapsed()) == 4
    with pytest.raises(DataError, match="unlisted items have no controls"):
        data.completed()
    other = Rankings.from_scores(frame, ballot="who", item="what", score="stars")
    with pytest.raises(DataError, match="part 1 has no control and others have"):
        concat([data, other])
    assert data != other
    with pytest.raises(DataError, match=r"controls have the shape \(4, 1\); 5 rows are needed"):
        Rankings(data.item, data.tier, data.offsets, control=np.zeros(4))


def test_what_cannot_be_told_apart_is_refused_without_a_prior():
    _, data = drawn(4, 60, 3, [0.3], 4)
    same = Rankings(data.item, data.tier, data.offsets, control=0.1 * data.ballot)
    by_item = Rankings(data.item, data.tier, data.offsets, control=data.item**2.0)
    for confounded in (same, by_item):
        with pytest.raises(DataError, match="effects of the controls 'control 1' cannot be told"):
            consensus(confounded, "plackett-luce", prior=None)
        assert abs(consensus(confounded, "plackett-luce", prior=1.0).controls["coefficient"][0]) < 1.0


def test_a_control_that_tells_every_order_has_no_finite_effect():
    _, data = drawn(4, 60, 3, [0.3], 4)
    told = replace(data, control=np.column_stack([-1.0 * data.tier, data.control]), controls=("place", "z0"))
    with pytest.raises(DataError, match=r"effects of the controls '.*' have no finite values"):
        consensus(told, "plackett-luce", prior=None)
    assert 0 < consensus(told, "plackett-luce", prior=1.0).controls["coefficient"][0] < 100


def test_other_models_say_what_they_do_with_controls():
    _, data = drawn(4, 40, 3, [0.3], 5)
    assert "'pmop' does not look at the controls (z0)" in consensus(data, "pmop").notes
    assert "'borda' does not look at the controls (z0)" in consensus(data, "borda").notes
    with pytest.raises(DataError, match="counts the pairs of ballots, which have no controls of rows"):
        consensus(data, "bradley-terry")
    with pytest.raises(DataError, match="in parts are fitted without controls"):
        consensus(Parts.of([data[:20], data[20:]]), "plackett-luce")


def test_every_instance_has_the_controls_of_its_ballots():
    _, data = drawn(4, 60, 3, [0.3], 7)
    both = replace(data, instance=np.arange(60) % 2, instances=("x", "y"))
    found = consensus(both, "plackett-luce", prior=1.0)
    for k, name in enumerate("xy"):
        alone = consensus(data[k::2], "plackett-luce", prior=1.0)
        assert found[name].controls["coefficient"][0] == pytest.approx(alone.controls["coefficient"][0], abs=1e-6)


def test_equal_ballots_with_other_controls_are_other_problems():
    orders = Rankings.from_orders([list("ab"), list("ba"), list("ab")] * 2, instance=[1, 1, 1, 2, 2, 2])
    both = replace(orders, control=np.append([1.0, 0, 0, 1, 0, 0], [0, 2.0, 1, 0, 0, 1]))
    found = consensus(both, "plackett-luce", prior=1.0)
    effects = [found[k].controls["coefficient"][0] for k in (1, 2)]
    assert abs(effects[0] - effects[1]) > 0.1


def test_a_start_is_scores_alone():
    _, data = drawn(4, 60, 3, [0.3], 6)
    first = PlackettLuce(prior=1.0).fit(data)
    again = PlackettLuce(prior=1.0).fit(data, start=first.theta_)
    np.testing.assert_allclose(again.theta_, first.theta_, atol=1e-7)
