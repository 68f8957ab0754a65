"""Data in parts: the same answers as in memory, whatever the cut; files cut between lists; memory within its bound."""

import json
import os
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
from placet.aggregate import MODELS, RULES
from placet.aggregate.likelihood.ballot_objective import Ballots, is_closed
from placet.aggregate.places import listed_weight
from placet.aggregate.resample import units_of
from placet.data import Comparisons, DataError, Parts, Queries, Rankings
from placet.data.engines.serial import CACHE, Serial, tree
from placet.data.graph import components, components_of_edges, free_to_rise, free_to_rise_over, reduced_edges

NAMES = [f"item {k}" for k in range(7)]


def ballots(n, rng, *, ties=True, partial=True, names=NAMES):
    orders = []
    for _ in range(n):
        chosen = rng.permutation(len(names))[: rng.integers(2, len(names) + 1) if partial else len(names)]
        order, k = [], 0
        while k < len(chosen):
            size = int(rng.integers(1, 3)) if ties else 1
            order.append(tuple(names[i] for i in chosen[k : k + size]))
            k += size
        orders.append(order)
    return Rankings.from_orders(orders, weight=rng.integers(1, 4, n))


def cut(data, sizes):
    """The data in parts of this many lists."""
    bounds = np.cumsum([0, *sizes])
    return Parts.of([data[a:b] for a, b in pairwise(bounds)])


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def same(parts, whole, close=1e-10):
    assert set(parts.items) == set(whole.items)
    order = [parts.items.index(name) for name in whole.items]
    np.testing.assert_allclose(parts.scores[order], whole.scores, rtol=close, atol=close)
    np.testing.assert_allclose(parts.support[order], whole.support, rtol=1e-12)
    assert (parts.stderr is None) == (whole.stderr is None)
    if whole.stderr is not None:
        np.testing.assert_allclose(parts.stderr[order], whole.stderr, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("method", [*RULES, *MODELS])
def test_every_method_gives_on_parts_what_it_gives_in_memory(method, rng):
    params = {"mode": {}, "mallows": {}}.get(method, {})
    data = ballots(40, rng, ties=method not in ("cps",), partial=method not in ("mallows", "cps"))
    if RULES.get(method) is not None and RULES[method].reads_scores:
        columns = {"who": np.repeat(np.arange(40), 7), "what": NAMES * 40, "stars": rng.integers(1, 6, 280)}
        data = Rankings.from_scores(columns, ballot="who", item="what", score="stars")
    same(placet.consensus(cut(data, [11, 3, 1, 25]), method, **params), placet.consensus(data, method, **params))


@pytest.mark.parametrize("method", ["plackett-luce", "pmop-fd", "pmop"])
@pytest.mark.parametrize("how", [{"ties": False}, {"ties": True}])
@pytest.mark.parametrize("stderr", ["observed", "sandwich"])
def test_likelihoods_on_parts(method, how, stderr, rng):
    data = ballots(60, rng, **how)
    same(
        placet.consensus(cut(data, [20, 20, 20]), method, stderr=stderr), placet.consensus(data, method, stderr=stderr)
    )


@pytest.mark.parametrize("prior", ["learn", 1.5])
def test_ballots_with_ties_and_without_share_the_closed_hessian(rng, monkeypatch, prior):
    strict, tied = ballots(60, rng, ties=False), ballots(90, rng)
    data = strict + tied
    parts = cut(data, [20, 40, 90])
    assert Ballots(data, data.weight, "pl-partition", 1.0).closed
    found = placet.consensus(data, "plackett-luce", prior=prior)
    same(placet.consensus(parts, "plackett-luce", prior=prior), found, close=1e-9)
    alone = placet.consensus(strict, "plackett-luce", prior=prior)
    assert np.abs(found.scores - alone.scores).max() > 1e-3  # the others count
    for limit in ("MOST_ROW_PAIRS", "MOST_ROW_PAIRS_PER_ROW"):
        monkeypatch.setattr(f"placet.aggregate.likelihood.ballot_objective.{limit}", 0)
    assert not Ballots(data, data.weight, "pl-partition", 1.0).closed
    for by_products in (data, parts):
        slow = placet.consensus(by_products, "plackett-luce", prior=prior)
        np.testing.assert_allclose(slow.scores, found.scores, atol=1e-5)
        np.testing.assert_allclose(slow.stderr, found.stderr, rtol=1e-4)


def test_long_ballots_give_by_products_what_short_ones_give_by_the_closed_hessian(rng, monkeypatch):
    data = ballots(60, rng, ties=False)
    closed = placet.consensus(data, "plackett-luce", prior=1.5)
    monkeypatch.setattr("placet.aggregate.likelihood.ballot_objective.MOST_ROW_PAIRS", 0)
    same(placet.consensus(data, "plackett-luce", prior=1.5), closed)
    assert is_closed(50.0 * 420, 420)
    monkeypatch.setattr("placet.aggregate.likelihood.ballot_objective.MOST_ROW_PAIRS_PER_ROW", 0)
    assert not is_closed(50.0, 420)
    for by_products in (data, cut(data, [20, 40])):
        same(placet.consensus(by_products, "plackett-luce", prior=1.5), closed, close=1e-7)


def test_many_items_sample_their_standard_errors(rng, monkeypatch):
    monkeypatch.setattr("placet.aggregate.likelihood.ballot_objective.MOST_SIMULATED", 4)
    data = ballots(200, rng)
    whole, parts = placet.consensus(data, "plackett-luce"), placet.consensus(cut(data, [100, 60, 40]), "plackett-luce")
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-7)
    np.testing.assert_allclose(parts.stderr, whole.stderr, rtol=0.3)  # two sets of 16 draws
    again = placet.consensus(cut(data, [100, 60, 40]), "plackett-luce")
    assert again.stderr.tobytes() == parts.stderr.tobytes()


@pytest.mark.parametrize("stderr", ["sandwich", "observed", None])
@pytest.mark.parametrize("agents", [False, True])
@pytest.mark.parametrize("n_items", [7, 30])
def test_preferences_on_parts(stderr, agents, n_items, rng):
    data = ballots(50, rng, names=[f"item {k}" for k in range(n_items)])
    if agents:
        data = Rankings(data.item, data.tier, data.offsets, data.weight, np.arange(50) // 2, items=data.items)
    same(placet.consensus(cut(data, [24, 26]), "mpm", stderr=stderr), placet.consensus(data, "mpm", stderr=stderr))


def test_an_agent_in_two_parts_has_no_sandwich(rng):
    data = ballots(6, rng)
    data = Rankings(data.item, data.tier, data.offsets, agent=[0, 1, 1, 2, 2, 3], items=data.items, agents="wxyz")
    with pytest.raises(DataError, match="agent 'x' has ballots in several parts"):
        placet.consensus(cut(data, [2, 4]), "mpm")
    same(
        placet.consensus(cut(data, [2, 4]), "mpm", stderr="observed"), placet.consensus(data, "mpm", stderr="observed")
    )


@pytest.mark.parametrize(
    "params",
    [{"adherence": "learned"}, {"adherence": True}, {"variance": True}, {"adherence": "learned", "variance": True}],
)
@pytest.mark.parametrize("agents", [False, True])
@pytest.mark.parametrize("strength", ["difference", "rating"])
def test_adherence_and_variance_on_parts(params, agents, strength, rng):
    stars = {"who": np.repeat(np.arange(40), 7), "what": NAMES * 40, "stars": rng.integers(1, 6, 280)}
    data = Rankings.from_scores(stars, ballot="who", item="what", score="stars")
    if agents:
        data = replace(data, agent=np.arange(40) % 9, agents=tuple("stuvwxyzq"))
    params = params | {"strength": strength}
    if params.get("adherence") is True:
        params["adherence"] = {name: 0.1 + 0.02 * k for k, name in enumerate(data.agents or range(40))}
    parts, whole = placet.consensus(cut(data, [13, 7, 20]), "mpm", **params), placet.consensus(data, "mpm", **params)
    same(parts, whole, close=1e-6)
    assert parts.notes[1:] == whole.notes
    if whole.adherence is not None:
        assert parts.adherence == pytest.approx(whole.adherence, abs=1e-6)


def test_net_wins_of_agents_that_do_not_fit_are_refused(rng, monkeypatch):
    monkeypatch.setenv("PLACET_MEMORY", "1K")
    with pytest.raises(
        DataError, match=r"net wins of every agent.*30 agents take more than 256 bytes.*leave adherence"
    ):
        placet.consensus(cut(ballots(60, rng), [30, 30]), "mpm", adherence="learned")


def test_different_ballots_that_do_not_fit_are_refused(rng, monkeypatch):
    monkeypatch.setenv("PLACET_MEMORY", "1K")
    with pytest.raises(DataError, match="'irv' needs all different ballots at once.*'plackett-luce'.*'borda'"):
        placet.consensus(cut(ballots(60, rng), [30, 30]), "irv")


def test_agent_weights_on_parts(rng):
    data = ballots(30, rng)
    data = Rankings(data.item, data.tier, data.offsets, data.weight, np.arange(30) % 3, items=data.items, agents="xyz")
    for method in ("plackett-luce", "bradley-terry"):
        weights = {"x": 0.5, "z": 3.0}
        asked = {"agent_weight": weights}
        whole = placet.consensus(data, method, **asked)
        same(placet.consensus(cut(data, [7, 23]), method, **asked), whole)


@pytest.mark.parametrize("method", [name for name, model in MODELS.items() if getattr(model, "fits_parts", False)])
def test_models_that_need_only_sums_are_fitted_to_parts(method, rng):
    data = ballots(40, rng)
    parts = cut(data, [15, 25])
    found = MODELS[method]().fit(parts).consensus_
    same(found, MODELS[method]().fit(data).consensus_)
    through_the_door = placet.consensus(parts, method)
    same(found, through_the_door, close=1e-12)  # the door limits the threads of linear algebra
    assert found.notes == through_the_door.notes
    assert found.support.tolist() == listed_weight(data).tolist()
    votes = data.to_comparisons()
    half = replace(votes, wins_i=votes.wins_i / 2, wins_j=votes.wins_j / 2, ties=votes.ties / 2)
    same(MODELS[method]().fit(Parts.of([half, half])).consensus_, MODELS[method]().fit(votes).consensus_)


@pytest.mark.parametrize("method", ["bradley-terry", "kemeny", "mpm", "plackett-luce"])
def test_votes_are_counted_part_by_part(method, rng):
    a, b = rng.integers(0, 6, 300), rng.integers(0, 5, 300)
    b += b >= a
    outcome = rng.choice(["a", "b", "tie"], 300)
    whole = Comparisons.from_battles(a.tolist(), b.tolist(), outcome.tolist())
    pieces = [
        Comparisons.from_battles(a[s].tolist(), b[s].tolist(), outcome[s].tolist())
        for s in np.split(np.arange(300), [50, 170])
    ]
    same(placet.consensus(Parts.of(pieces), method), placet.consensus(whole, method))


def test_existence_is_checked_over_all_parts():
    one, other = Rankings.from_orders([["a", "b"], ["c", "d"]]), Rankings.from_orders([["b", "c"], ["d", "a"]])
    assert np.isfinite(placet.consensus(Parts.of([one, other]), "plackett-luce", prior=None).scores).all()
    with pytest.raises(DataError, match="4 items fall into 2 groups"):
        placet.consensus(
            Parts.of([one, Rankings.from_orders([["b", "c"], ["d", "c"], ["b", "a"]])]), "plackett-luce", prior=None
        )
    notes = placet.consensus(Parts.of([one, Rankings.from_orders([["b", "c"]])]), "plackett-luce").notes
    whole = placet.consensus(Rankings.from_orders([["a", "b"], ["c", "d"], ["b", "c"]]), "plackett-luce").notes
    assert notes[1:] == whole


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=60)
def test_reduced_edges_reach_what_the_ballots_reach(seed, ties_link):
    rng = np.random.default_rng(seed)
    data = ballots(int(rng.integers(1, 8)), rng)
    first = int(rng.integers(0, len(data) + 1))
    parts = [data[:first], data[first:]]
    edges = [reduced_edges(p.item, p.tier, p.offsets, data.n_items, ties_link=ties_link) for p in parts]
    whole = components(data.item, data.tier, data.offsets, data.n_items, ties_link=ties_link)
    assert components_of_edges(edges, data.n_items).tolist() == whole.tolist()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=80)
def test_sets_that_may_rise_are_found_over_parts(seed):
    rng = np.random.default_rng(seed)
    data = ballots(int(rng.integers(1, 12)), rng, names=NAMES[: rng.integers(2, 6)])
    n, first = data.n_items, int(rng.integers(0, len(data) + 1))
    rows = [(part.item, part.tier, part.offsets) for part in (data[:first], data[first:])]
    over_all = lambda f, merge, *x: merge(f(rows[0], *x), f(rows[1], *x))  # noqa: E731
    found = free_to_rise_over(over_all, np.arange(n))
    free = [
        chosen
        for chosen in (frozenset(s) for size in range(1, n) for s in combinations(range(n), size))
        if all(_rises(chosen, data, b) for b in range(len(data)))
    ]
    alone = free_to_rise(data.item, data.tier, data.offsets, n)
    assert (found is None) == (alone is None) == (not free)
    if found is not None:
        assert found.tolist() == alone.tolist()
        assert frozenset(np.flatnonzero(found).tolist()) in free


def _rises(chosen, data, ballot):
    """The tiers in which the set has an item are the first ones."""
    own = slice(data.offsets[ballot], data.offsets[ballot + 1])
    held = [{int(i) for i, k in zip(data.item[own], data.tier[own]) if k == tier} for tier in np.unique(data.tier[own])]
    has = [bool(chosen & tier) for tier in held]
    return has == sorted(has, reverse=True)


def test_a_loss_of_sums_without_a_prior(rng):
    data = ballots(60, rng)
    same(
        placet.consensus(cut(data, [20, 20, 20]), "pmop-fd", prior=None), placet.consensus(data, "pmop-fd", prior=None)
    )
    orders = [["a", ("b", "c"), "d"], [("a", "c"), "b"], ["a", "d", "c"], ["d", "b"]]
    data = Rankings.from_orders(orders)
    with pytest.raises(
        DataError, match=r"1 of 4 items may rise together without end, and the likelihood with them \(\[a\]\)"
    ) as whole:
        placet.consensus(data, "pmop-fd", prior=None)
    with pytest.raises(DataError) as parts:
        placet.consensus(cut(data, [1, 3]), "pmop-fd", prior=None)
    assert str(parts.value) == str(whole.value)


def test_groups_that_ballots_never_tell_apart():
    one = Rankings.from_orders([[("a", "b"), "c"], ["c", "x"]], items="abcxyz")
    other = Rankings.from_orders([["c", ("a", "b")], ["x", "y"]], items="abcxyz")
    whole = placet.consensus(one + other, "pmop-fd")
    same(placet.consensus(Parts.of([one, other]), "pmop-fd"), whole)
    assert any("always tied together" in note and "[a, b]" in note for note in whole.notes)


@pytest.mark.parametrize("method", ["plackett-luce", "borda", "bradley-terry", "copeland"])
def test_the_bootstrap_draws_by_seed_round_and_part(method, rng):
    data = ballots(80, rng)
    parts = cut(data, [30, 30, 20])
    a, b = (placet.consensus(parts, method, bootstrap=40, random_state=3) for _ in range(2))
    assert a.draws.tobytes() == b.draws.tobytes()
    assert placet.consensus(parts, method, bootstrap=4, random_state=4).draws.tobytes() != a.draws[:4].tobytes()
    whole = placet.consensus(data, method, bootstrap=200)
    np.testing.assert_allclose(a.draws.std(axis=0), whole.draws.std(axis=0), rtol=0.6)
    drawn = parts.resampled_by(3, 0)
    again, other = parts.resampled_by(3, 0), parts.resampled_by(3, 1)
    assert drawn[1].weight.tolist() == again[1].weight.tolist() != other[1].weight.tolist()


def with_agents(data, n_agents):
    """The same ballots, given in turn by agents."""
    return replace(data, agent=np.arange(len(data)) % n_agents, agents=tuple(f"agent {k}" for k in range(n_agents)))


@pytest.mark.parametrize("n_agents", [2, 12])
@pytest.mark.parametrize("method", ["plackett-luce", "pmop", "bradley-terry"])
def test_errors_are_by_agent_in_whatever_parts_the_ballots_are(method, n_agents, rng):
    data = with_agents(ballots(60, rng), n_agents)
    whole, parts = (placet.consensus(d, method) for d in (data, cut(data, [25, 5, 30])))
    same(parts, whole)
    order = [parts.items.index(name) for name in whole.items]
    np.testing.assert_allclose(parts.units.part[:, order], whole.units.part, atol=1e-8)
    assert parts.units.total == n_agents
    assert any(f"by agent: {n_agents} agents" in note for note in parts.notes)
    apart = placet.consensus(cut(data, [25, 5, 30]), method, stderr="observed")
    assert apart.units is None
    assert np.abs(apart.stderr - parts.stderr).max() > 1e-3


@pytest.mark.parametrize("method", ["pmop", "pmop-fd"])
def test_ballots_in_parts_flip_the_signs_of_every_ballot(method, rng):
    data = ballots(25, rng)
    data = replace(data, weight=np.where(np.arange(25) % 7 == 3, 0.0, data.weight))
    whole, parts = (placet.consensus(d, method) for d in (data, cut(data, [10, 2, 13])))
    same(parts, whole)
    order = [parts.items.index(name) for name in whole.items]
    assert parts.units.count.tolist() == whole.units.count.tolist() == data.weight[data.weight > 0].tolist()
    np.testing.assert_allclose(parts.units.part[:, order], whole.units.part, atol=1e-8)
    assert parts.separated()[np.ix_(order, order)].tolist() == whole.separated().tolist()
    for mine, own in zip(parts.interval(), whole.interval()):
        np.testing.assert_allclose(mine[order], own, atol=1e-7)
    halves = replace(data, weight=data.weight + 0.5)  # no counts in any part
    assert placet.consensus(cut(halves, [10, 15]), method).units is placet.consensus(halves, method).units is None
    mixed = replace(data, weight=data.weight + 0.5 * (np.arange(25) > 20))
    assert placet.consensus(cut(mixed, [10, 15]), method).units is None


@pytest.mark.parametrize("method", ["plackett-luce", "pmop"])
def test_a_perfect_record_in_parts_is_as_sure_as_in_memory(method):
    data = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["a", ("b", "c")]], weight=[7.0, 6.0, 2.0])
    whole, parts = (placet.consensus(d, method, stderr="observed") for d in (data, cut(data, [1, 2])))
    order = [parts.items.index(name) for name in whole.items]
    for mine, own in zip(parts.interval(), whole.interval()):
        np.testing.assert_allclose(mine[order], own, rtol=1e-6)
    assert parts.prob_above("a", "b") == pytest.approx(whole.prob_above("a", "b"), rel=1e-9)
    normal = whole.scores - 1.96 * whole.stderr
    assert abs(whole.interval()[0][0] - normal[0]) > 1e-3  # not what the curvature alone says


def test_gradients_by_agent_that_do_not_fit_are_said(rng, monkeypatch):
    data = with_agents(ballots(60, rng), 5)
    monkeypatch.setenv("PLACET_MEMORY", "2000")
    found = placet.consensus(cut(data, [30, 30]), "plackett-luce")
    assert any("take the ballots of one agent as independent" in note for note in found.notes)
    monkeypatch.delenv("PLACET_MEMORY")
    same(found, placet.consensus(data, "plackett-luce", stderr="observed"))


@pytest.mark.parametrize("method", ["plackett-luce", "borda"])
def test_the_bootstrap_of_parts_draws_agents_with_all_their_ballots(method, rng):
    data = with_agents(ballots(60, rng), 6)
    found = [placet.consensus(cut(data, sizes), method, bootstrap=60) for sizes in ([60], [20, 40], [1, 9, 50])]
    for one in found:
        assert any("60 bootstrap rounds of 6 agents with all they gave" in note for note in one.notes)
        np.testing.assert_allclose(one.draws, found[0].draws, atol=1e-7)  # the same agents, whatever the cut
        assert (one.units.word, one.units.total, one.units.decides) == ("agent", 6, False)
    drawn = cut(data, [20, 40]).resampled_by(0, 0, np.ones(6, bool))
    counts = np.concatenate([part.weight for part in drawn]) / data.weight
    assert all(len(set(counts[k::6])) == 1 for k in range(6))
    assert len(set(counts)) > 1
    assert counts.sum() == 60
    order = [found[2].items.index(name) for name in data.items]
    np.testing.assert_allclose(found[2].units.part[:, order], units_of(data).part, atol=1e-12)


@pytest.mark.parametrize("method", ["plackett-luce", "bradley-terry"])
def test_sampled_errors_of_many_items_are_by_agent(method, rng, monkeypatch):
    data = with_agents(ballots(120, rng), 8)
    exact = placet.consensus(data, method, prior=1.0)
    for module in ("ballots.ballot_models", "likelihood.ballot_objective", "likelihood.ballot_units"):
        monkeypatch.setattr(f"placet.aggregate.{module}.MOST_SIMULATED", 4)
    monkeypatch.setattr("placet.aggregate.pairs.bradley_terry.MOST_SIMULATED", 4)
    monkeypatch.setattr("placet.aggregate.pairs.vote_units.MOST_SIMULATED", 4)
    found = placet.consensus(data, method, prior=1.0)
    assert found.covariance is None
    assert any("by agent: 8 agents" in note for note in found.notes)
    np.testing.assert_allclose(found.stderr, exact.stderr, rtol=0.35)
    np.testing.assert_allclose(np.mean(found.stderr / exact.stderr), 1.0, atol=0.15)


def test_the_tree_is_fixed_by_the_number_of_parts():
    def by_levels(values):
        while len(values) > 1:
            values = [
                f"({''.join(values[k : k + 2])})" if k + 1 < len(values) else values[k]
                for k in range(0, len(values), 2)
            ]
        return values[0]

    for n in range(1, 40):
        names = [chr(200 + k) for k in range(n)]
        assert tree(names, lambda a, b: f"({a}{b})") == by_levels(names)


class MergesTwice(Serial):
    """Every merge is done again on what it was given, as after the loss of a worker."""

    def sum(self, f, pieces, x, *, name, merge):
        return super().sum(f, pieces, x, name=name, merge=lambda a, b: (merge(a, b), merge(a, b))[1])


@pytest.mark.parametrize("method", ["irv", "borda", "copeland", "plackett-luce", "mpm"])
def test_merges_can_be_done_again(method, rng):
    parts = cut(ballots(40, rng), [10, 10, 20])
    again = placet.consensus(parts, method, engine=MergesTwice())
    assert again.scores.tobytes() == placet.consensus(parts, method).scores.tobytes()


def test_start_is_matched_by_name(rng):
    data = ballots(40, rng)
    old = placet.consensus(data, "plackett-luce", prior=10.0)
    again = placet.consensus(cut(data, [25, 15]), "plackett-luce", prior=10.0, start=old)
    assert again.fit.n_iter < old.fit.n_iter
    same(again, old, close=1e-7)
    backwards = dict(reversed(list(zip(old.items, old.scores))))
    again = placet.consensus(data, "plackett-luce", prior=10.0, start=backwards)
    np.testing.assert_allclose(again.scores, old.scores, atol=1e-7)


# Files


def votes_csv(path, rows, rng, *, quoted=False):
    names = ['a "quoted"\nname', "b", "c, d", "e"] if quoted else list("abcd")
    import csv

    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model_a", "model_b", "winner"])
        for _ in range(rows):
            a, b = rng.permutation(4)[:2]
            writer.writerow([names[a], names[b], rng.choice(["model_a", "model_b", "tie"])])


def ratings_frame(users, rng, first=0):
    import polars as pl

    user = np.repeat(np.arange(first, first + users), 5)
    item = np.concatenate([rng.permutation(9)[:5] for _ in range(users)])
    return pl.DataFrame({"user": user, "item": [f"m{k}" for k in item], "rating": rng.integers(1, 6, 5 * users)})


@pytest.mark.parametrize("quoted", [False, True])
def test_text_is_cut_at_lines_outside_quotes(tmp_path, rng, quoted):
    path = tmp_path / "votes.csv"
    votes_csv(path, 400, rng, quoted=quoted)
    parts = placet.scan(path, part_bytes=1000)
    assert len(parts) >= 5
    whole = placet.read(path)
    assert sum(one.wins_i.sum() + one.wins_j.sum() + one.ties.sum() for one in parts) == 400
    same(placet.consensus(parts, "bradley-terry"), placet.consensus(whole, "bradley-terry"))


def test_bad_lines_are_named_by_their_number_in_the_file(tmp_path, rng):
    path = tmp_path / "votes.csv"
    votes_csv(path, 300, rng)
    text = path.read_text().splitlines()
    text[250] = "a,b,lefft"
    path.write_text("\n".join(text) + "\n")
    with pytest.raises(DataError, match=r"votes\.csv:251: winner 'lefft' is not a, b or tie"):
        placet.scan(path, part_bytes=700)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_ratings_are_cut_between_users(tmp_path, rng, suffix):
    frames = [ratings_frame(60, rng), ratings_frame(60, rng, first=60)]
    for k, frame in enumerate(frames):
        getattr(frame, f"write_{suffix}")(tmp_path / f"{k}.{suffix}")
    parts = placet.scan(tmp_path / f"*.{suffix}", part_bytes=300)
    assert len(parts) > 6
    assert all(len(set(part.agent.tolist())) == len(part) for part in parts)
    assert sum(map(len, parts)) == 120
    whole = placet.read(sorted(tmp_path.iterdir()))
    for method in ("plackett-luce", "mpm", "combsum"):
        same(placet.consensus(parts, method), placet.consensus(whole, method))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_rows_of_a_list_that_lie_apart_make_one_part_of_a_file(tmp_path, rng, suffix):
    frame = ratings_frame(60, rng).sample(fraction=1, shuffle=True, seed=1)
    getattr(frame, f"write_{suffix}")(tmp_path / f"r.{suffix}")
    parts = placet.scan(tmp_path / f"r.{suffix}", part_bytes=300)
    assert len(parts) == 1
    assert len(parts[0]) == 60


def test_a_list_in_two_files_is_named(tmp_path, rng):
    ratings_frame(3, rng).write_csv(tmp_path / "0.csv")
    ratings_frame(3, rng, first=2).write_csv(tmp_path / "1.csv")
    with pytest.raises(DataError, match=r"user '2' spans .*0\.csv and .*1\.csv"):
        placet.scan(tmp_path / "*.csv")


def test_long_ballots_in_two_files_are_named(tmp_path):
    (tmp_path / "0.csv").write_text("ballot,item,rank\n1,x,1\n1,y,2\n2,x,1\n")
    (tmp_path / "1.csv").write_text("ballot,item,rank\n2,y,2\n3,x,1\n3,y,2\n")
    with pytest.raises(DataError, match="ballot '2' spans"):
        placet.scan(tmp_path / "*.csv")


def letor(path, queries, rng, first=0):
    lines = []
    for q in range(first, first + queries):
        for _ in range(4):
            x = rng.normal(size=3)
            lines.append(f"{int(x[0] > 0)} qid:{q} 1:{x[0]:.5f} 2:{x[1]:.5f} 3:{x[2]:.5f}")
    path.write_text("\n".join(lines) + "\n")


def test_letor_text_is_cut_between_queries(tmp_path, rng):
    letor(tmp_path / "a.letor", 30, rng)
    letor(tmp_path / "b.letor", 20, rng, first=30)
    parts = placet.scan(tmp_path / "*.letor", part_bytes=500)
    assert len(parts) > 6
    assert parts.kind is Queries
    assert parts.load() == placet.read(sorted(tmp_path.iterdir()))
    text = (tmp_path / "a.letor").read_text().splitlines()
    text[77] = "1 qid:19 1:x"
    (tmp_path / "a.letor").write_text("\n".join(text) + "\n")
    with pytest.raises(DataError, match=r"a\.letor:78"):
        placet.scan(tmp_path / "a.letor", part_bytes=500)


def test_queries_with_fewer_features_in_one_file(tmp_path):
    (tmp_path / "a.letor").write_text("1 qid:1 1:2 5:1\n0 qid:1 2:1\n")
    (tmp_path / "b.letor").write_text("1 qid:2 1:2\n0 qid:2 2:1\n")
    assert {part.n_features for part in placet.scan(tmp_path / "*.letor")} == {5}


def test_features_in_parquet_stay_float32(tmp_path, rng):
    import polars as pl

    X = rng.normal(size=(200, 3)).astype(np.float32)
    frame = pl.DataFrame(
        {"qid": np.repeat(np.arange(40), 5), "label": rng.integers(0, 3, 200), **{f"f{k}": X[:, k] for k in range(3)}}
    )
    frame.write_parquet(tmp_path / "q.parquet", row_group_size=30)
    parts = placet.scan(tmp_path / "q.parquet", part_bytes=600)
    assert len(parts) > 2
    assert all(part.X.dtype == np.float32 for part in parts)
    assert all((np.diff(part.offsets) == 5).all() for part in parts)
    assert np.concatenate([part.X for part in parts]).tobytes() == X.tobytes()


def test_unlisted_last_means_all_items_of_all_parts(tmp_path):
    (tmp_path / "0.ballots").write_text("A > B\n")
    (tmp_path / "1.ballots").write_text("C > A\n")
    parts = placet.scan(tmp_path / "*.ballots", unlisted="last")
    assert parts[0][0] == [("A",), ("B",), ("C",)]


def test_a_file_that_changes_or_vanishes_is_named(tmp_path, rng):
    for name in ("a.csv", "b.csv"):
        votes_csv(tmp_path / name, 20, rng)
    parts = placet.scan(tmp_path / "*.csv")
    (tmp_path / "b.csv").write_text((tmp_path / "b.csv").read_text() + "a,b,tie\n")
    with pytest.raises(DataError, match=r"b\.csv: the file has changed since it was scanned"):
        placet.consensus(parts, "borda")
    CACHE.drop()
    (tmp_path / "b.csv").unlink()
    with pytest.raises(DataError, match=r"b\.csv: the file is gone since it was scanned"):
        placet.consensus(parts, "borda")


def test_compressed_files_and_other_formats_are_parts_of_their_own(tmp_path, rng):
    import gzip

    votes_csv(tmp_path / "a.csv", 50, rng)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    parts = placet.scan(tmp_path, part_bytes=300)
    assert [one.name.endswith(".gz") for one in parts.pieces].count(True) == 1
    (tmp_path / "x.run").write_text("q1 Q0 d1 1 2.0 tag\n")
    with pytest.raises(DataError, match="instances are separate problems"):
        placet.scan(tmp_path / "x.run")


def test_parts_are_kept_while_they_fit_and_read_again_otherwise(tmp_path, rng, monkeypatch):
    frames = [ratings_frame(40, rng, first=40 * k) for k in range(6)]
    for k, frame in enumerate(frames):
        frame.write_parquet(tmp_path / f"{k}.parquet")
    parts = placet.scan(tmp_path / "*.parquet")
    CACHE.drop()
    roomy = placet.consensus(parts, "plackett-luce")
    kept, once = CACHE.bytes, parts.n_bytes
    assert kept > 0
    CACHE.drop()
    limit = kept // 3
    monkeypatch.setenv("PLACET_MEMORY", str(limit))
    before = parts.log.bytes_read
    tight = placet.consensus(parts, "plackett-luce")
    assert CACHE.bytes == sum(size for _, size, _ in CACHE._pieces.values())
    assert 0 < CACHE.bytes <= limit
    assert parts.log.bytes_read - before > 4 * once
    assert tight.scores.tobytes() == roomy.scores.tobytes()
    assert tight.stderr.tobytes() == roomy.stderr.tobytes()
    CACHE.drop()


def test_memory_is_said_in_bytes(monkeypatch):
    from placet.data.engines.memory import memory_limit, total_memory

    monkeypatch.setenv("PLACET_MEMORY", "3G")
    assert memory_limit() == 3 << 30
    monkeypatch.setenv("PLACET_MEMORY", "much")
    with pytest.raises(ValueError, match="PLACET_MEMORY 'much' is not a number of bytes"):
        memory_limit()
    monkeypatch.delenv("PLACET_MEMORY")
    assert memory_limit() == total_memory() // 2


def test_every_pass_is_told(rng):
    told = []
    parts = cut(ballots(30, rng), [10, 20]).watched(told.append)
    placet.consensus(parts, "plackett-luce")
    values = [one.value for one in told if one.name == "objective"]
    assert len(values) > 3
    assert values[-1] < values[0]
    assert told[-1].number == len(told)
    assert min(one.gradient for one in told if one.gradient is not None) < 1e-6


def test_wrong_engines_and_kinds_are_refused(rng):
    data = ballots(4, rng)
    with pytest.raises(ValueError, match="engine works on data in parts"):
        placet.consensus(data, engine=Serial())
    with pytest.raises(TypeError, match=r"engine must be a distributed\.Client"):
        placet.consensus(cut(data, [2, 2]), engine=3)
    with pytest.raises(DataError, match="part 1 holds Comparisons"):
        Parts.of([data, Comparisons.from_battles("a", "b", ["a"])])
    with pytest.raises(TypeError, match="only files can be read in parts"):
        placet.scan({"model_a": ["x"]})
    with pytest.raises(ValueError, match="part_bytes must be at least 1"):
        placet.scan(os.devnull, part_bytes=0)


# The command


def test_the_command_works_on_parts(placet_command, tmp_path, rng):
    for k in range(2):
        ratings_frame(20, rng, first=20 * k).write_csv(tmp_path / f"{k}.csv")
    whole, _ = placet_command("aggregate", tmp_path / "*.csv", "--json")
    parts, said = placet_command("aggregate", tmp_path / "*.csv", "--json", "--parts")
    a, b = ({row["item"]: row["score"] for row in json.loads(out)["ranking"]} for out in (whole, parts))
    assert a == pytest.approx(b, abs=1e-9)
    assert "2 parts, " in said
    assert "passes, " in said
    _, refused = placet_command("aggregate", tmp_path / "*.csv", "--parts", "--report", tmp_path / "x.html", code=2)
    assert "need them in memory" in refused
    _, nowhere = placet_command("aggregate", tmp_path / "*.csv", "--dask", "here", code=2)
    assert "write tcp://host:port, or local" in nowhere


def test_the_command_trains_on_parts(placet_command, tmp_path, rng):
    letor(tmp_path / "a.letor", 30, rng)
    out, _ = placet_command(
        "train",
        tmp_path / "a.letor",
        "--parts",
        "--out",
        tmp_path / "m",
        "--loss",
        "ranknet",
        "--valid",
        tmp_path / "a.letor",
    )
    assert placet.load(tmp_path / "m").coef_[0] > 0
    assert "queries\t30" in out
