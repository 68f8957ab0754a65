"""Rules by their definitions on small ballots, and what every rule of the table keeps."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placet
from placet.aggregate import RULES
from placet.aggregate.markov import rank_centrality
from placet.aggregate.positional import POSITIONAL, positional, positional_vector
from placet.data import Comparisons, DataError, Rankings

check = settings(deadline=None, max_examples=60)

CHOOSES = ("kemeny", "kemeny-local", "footrule")  # of several best orders these take one
OF_PAIRS = tuple(name for name, rule in RULES.items() if rule.of_pairs)
PARTLY_BLIND = ("plurality", "anti-plurality", "minimax", "irv", "stv", "nanson", "approval")
"""Rules that may tie items on which all ballots agree: they see one end of a ballot, or the worst defeat alone."""
NAMES = "abcdef"


@st.composite
def ballots(draw, max_items=5, complete=False, min_ballots=1):
    """Ballots over up to 5 items: ties, absences, an empty ballot now and then, weights; scores that agree with tiers."""
    n = draw(st.integers(1, max_items))
    item, tier, score, sizes = [], [], [], []
    for _ in range(draw(st.integers(min_ballots, 5))):
        order = draw(st.permutations(range(n)))
        m = n if complete else draw(st.integers(0, n))
        tiers = np.cumsum([0, *draw(st.lists(st.integers(0, 1), min_size=max(m - 1, 0), max_size=max(m - 1, 0)))])[:m]
        item += order[:m]
        tier += tiers.tolist()
        score += (-2.0 * tiers).tolist()
        sizes.append(m)
    weight = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=len(sizes), max_size=len(sizes)))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Rankings(
        np.array(item, int), np.array(tier, int), offsets, weight, items=tuple(NAMES[:n]), score=np.array(score, float)
    )


def rebuilt(r, item=None, ballots=None, weight=None):
    """The same ballots with items relabelled, in another order, or with other weights."""
    chosen = r if ballots is None else r[np.asarray(ballots, int)]
    code = chosen.item if item is None else np.asarray(item)[chosen.item]
    return Rankings(
        code,
        chosen.tier,
        chosen.offsets,
        chosen.weight if weight is None else weight,
        items=r.items,
        score=chosen.score,
    )


# What every rule keeps


@pytest.mark.parametrize("name", RULES)
@check
@given(data=st.data())
def test_relabelling_items_relabels_scores(name, data):
    r = data.draw(ballots())
    to = np.array(data.draw(st.permutations(range(r.n_items))))
    before, after = RULES[name](r), RULES[name](rebuilt(r, item=to))
    if name in CHOOSES:  # the cost of the order they choose is what cannot depend on labels
        assert cost_of(name, r, before) == pytest.approx(cost_of(name, rebuilt(r, item=to), after), abs=1e-9)
    else:
        assert after[to] == pytest.approx(before, abs=1e-9)


@pytest.mark.parametrize("name", RULES)
@check
@given(data=st.data())
def test_order_of_ballots_does_not_matter(name, data):
    r = data.draw(ballots())
    mixed = rebuilt(r, ballots=data.draw(st.permutations(range(len(r)))))
    assert RULES[name](mixed) == pytest.approx(RULES[name](r), abs=1e-9)


@pytest.mark.parametrize("name", RULES)
@check
@given(data=st.data())
def test_weight_two_is_the_ballot_twice(name, data):
    r = data.draw(ballots())
    b = data.draw(st.integers(0, len(r) - 1))
    weight = r.weight.copy()
    weight[b] *= 2
    twice = rebuilt(r, ballots=[*range(len(r)), b])
    assert RULES[name](rebuilt(r, weight=weight)) == pytest.approx(RULES[name](twice), abs=1e-9)


@pytest.mark.parametrize("name", RULES)
@check
@given(data=st.data())
def test_when_all_ballots_agree_so_does_the_result(name, data):
    r = data.draw(ballots(complete=True))
    same = rebuilt(r, ballots=np.zeros(len(r), int))
    scores = RULES[name](same)
    order, tier = same.item[: r.n_items], same.tier[: r.n_items]
    gaps = -np.diff(scores[order])
    tied = np.diff(tier) == 0
    assert gaps[tied] == pytest.approx(0, abs=1e-9)
    assert (gaps > -1e-9).all()
    if name not in PARTLY_BLIND:
        assert (gaps[~tied] > 1e-9).all()


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    "orders", [[], [[]], [["a"]], [["a"], ["a"]], [[("a", "b", "c")]], [["a"], ["b"], ["c"]], [["a", "b", "c"], []]]
)
def test_hard_cases_give_finite_scores(name, orders):
    items = sorted({x for order in orders for e in order for x in e})
    r = Rankings.from_orders(orders, items=items)
    r = Rankings(r.item, r.tier, r.offsets, r.weight, items=r.items, score=-r.tier.astype(float))
    scores = RULES[name](r)
    assert scores.shape == (r.n_items,)
    assert np.isfinite(scores).all()
    if orders == [[("a", "b", "c")]] or orders == [["a"], ["b"], ["c"]]:
        assert scores == pytest.approx(np.full(3, scores[0]))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_tiny_and_huge_weights_keep_the_order(name, scale):
    r = Rankings.from_orders([["c", "b", "a"], ["b", "c", "a"], ["c", "a", "b"]], items="abc")
    r = Rankings(r.item, r.tier, r.offsets, r.weight, items=r.items, score=-r.tier.astype(float))
    if name == "combmnz":
        scale = math.sqrt(scale)  # it multiplies a sum of weights by a sum of weights
    params = {"prior": scale} if name == "rank-centrality" else {}
    scaled = RULES[name](rebuilt(r, weight=r.weight * scale), **params)
    unscaled = RULES[name](r, **({"prior": 1.0} if params else {}))
    assert np.argsort(-scaled, kind="stable").tolist() == np.argsort(-unscaled, kind="stable").tolist()
    assert len(set(scaled)) == len(set(unscaled))


@pytest.mark.parametrize("name", RULES)
def test_rules_answer_through_consensus(name):
    ratings = {"who": [1, 1, 1, 2, 2], "what": ["a", "b", "c", "a", "b"], "stars": [5, 3, 1, 4, 2]}
    votes = Rankings.from_scores(ratings, ballot="who", item="what", score="stars")
    c = placet.consensus(votes, name)
    assert c.ranking[0] == "a" or "a" in c.ranking[0]
    assert c.method == name


@pytest.mark.parametrize("name", sorted(set(RULES) - set(OF_PAIRS)))
def test_rules_of_whole_ballots_refuse_pairs_and_say_what_to_use(name):
    pairs = Comparisons.from_battles(["a"], ["b"], ["a"])
    with pytest.raises(DataError, match="needs whole ballots.*'borda'"):
        RULES[name](pairs)
    with pytest.raises(TypeError, match="Rankings"):
        RULES[name]([["a", "b"]])


@pytest.mark.parametrize("name", OF_PAIRS)
@check
@given(r=ballots(complete=True))
def test_rules_of_pairs_take_pairs(name, r):
    assert RULES[name](r.to_comparisons()) == pytest.approx(RULES[name](r), abs=1e-9)


# Positional rules


def test_vectors_are_those_of_the_literature():
    assert positional_vector("borda", 4).tolist() == [3, 2, 1, 0]
    assert positional_vector("plurality", 3).tolist() == [1, 0, 0]
    assert positional_vector("anti-plurality", 3).tolist() == [1, 1, 0]
    assert positional_vector("log", 3) == pytest.approx([0, -math.log(2), -math.log(3)])
    assert positional_vector("squared", 3).tolist() == [-1, -4, -9]
    assert all(len(positional_vector(name, 0)) == 0 for name in POSITIONAL)
    with pytest.raises(ValueError, match="'bordo' is unknown; choose from"):
        positional_vector("bordo", 3)


def points_by_definition(r, h, unlisted):
    """Every way of breaking ties, averaged; unlisted items as the module says."""
    n, total = r.n_items, [0.0] * r.n_items
    for b, ballot in enumerate(r):
        tiers = [[r.index[x] for x in tier] for tier in ballot]
        listed = [i for tier in tiers for i in tier]
        rest = [i for i in range(n) if i not in listed]
        m = len(listed)
        if unlisted == "last" and rest:
            tiers.append(rest)
        linear = [list(itertools.chain(*ways)) for ways in itertools.product(*map(itertools.permutations, tiers))]
        for order in linear:
            share = r.weight[b] / len(linear)
            for p, i in enumerate(order):
                total[i] += share * (h(m)[p] - np.mean(h(m)) + np.mean(h(n)) if unlisted == "absent" else h(n)[p])
            for i in rest:
                if unlisted != "last":
                    total[i] += share * (np.mean(h(n)) if unlisted == "absent" else h(n)[-1])
    return total


@pytest.mark.parametrize("name", POSITIONAL)
@pytest.mark.parametrize("unlisted", ["absent", "last", "zero"])
@check
@given(r=ballots(max_items=4))
def test_positional_rules_by_every_way_of_breaking_ties(name, unlisted, r):
    expected = points_by_definition(r, lambda m: positional_vector(name, m), unlisted)
    assert RULES[name](r, unlisted=unlisted) == pytest.approx(expected, abs=1e-9)
    assert positional(r, name, unlisted) == pytest.approx(expected, abs=1e-9)


@check
@given(r=ballots())
def test_a_vector_of_points_is_cut_to_the_ballot(r):
    h = np.array([7.0, 4.0, 2.5, 0.5, 0.0])[: r.n_items]
    assert positional(r, h) == pytest.approx(points_by_definition(r, lambda m: h[:m], "absent"), abs=1e-9)
    assert positional(r, lambda m: h[:m]) == pytest.approx(positional(r, h))


def test_bad_parameters_are_named():
    r = Rankings.from_orders([["a", "b"]])
    with pytest.raises(DataError, match="2 finite points"):
        positional(r, [1, 2, 3])
    with pytest.raises(ValueError, match="unlisted 'first' is unknown"):
        RULES["borda"](r, unlisted="first")
    with pytest.raises(ValueError, match="k must be above -1"):
        RULES["rrf"](r, k=-1)
    with pytest.raises(ValueError, match="jump"):
        RULES["mc4"](r, jump=0)
    with pytest.raises(ValueError, match="normalise 'max' is unknown"):
        RULES["combsum"](Rankings(r.item, r.tier, r.offsets, score=[2, 1]), normalise="max")
    with pytest.raises(DataError, match="keep no scores"):
        RULES["combsum"](r)


@check
@given(r=ballots(max_items=4))
def test_reciprocal_rank_fusion_by_definition(r):
    expected = np.zeros(r.n_items)
    for b, ballot in enumerate(r):
        place = 1
        for tier in ballot:
            share = np.mean([1 / (60 + place + t) for t in range(len(tier))])
            place += len(tier)
            for x in tier:
                expected[r.index[x]] += r.weight[b] * share
    assert RULES["rrf"](r) == pytest.approx(expected)


# Pairs, medians, assignments


def wins_by_definition(r):
    wins = np.zeros((r.n_items, r.n_items))
    for b, ballot in enumerate(r):
        for above, below in itertools.combinations(range(len(ballot)), 2):
            for x, y in itertools.product(ballot[above], ballot[below]):
                wins[r.index[x], r.index[y]] += r.weight[b]
    return wins


@check
@given(r=ballots())
def test_copeland_by_definition(r):
    wins = wins_by_definition(r)
    n = r.n_items
    expected = [
        sum(int(wins[i, j] > wins[j, i]) - int(wins[i, j] < wins[j, i]) for j in range(n) if j != i) for i in range(n)
    ]
    assert RULES["copeland"](r).tolist() == expected


def places_by_definition(r, unlisted):
    """(item, place, weight) of every row as exact fractions."""
    for b, ballot in enumerate(r):
        tiers = list(map(list, ballot))
        rest = [x for x in r.items if x not in itertools.chain(*tiers)]
        if unlisted == "last" and rest:
            tiers.append(rest)
        m, before = sum(map(len, tiers)), 0
        for tier in tiers:
            place = before + Fraction(len(tier) + 1, 2)
            before += len(tier)
            for x in tier:
                yield r.index[x], place * (r.n_items + 1) / (m + 1), Fraction(r.weight[b])


@pytest.mark.parametrize("unlisted", ["absent", "last"])
@check
@given(r=ballots())
def test_median_rank_by_definition(unlisted, r):
    rows = list(places_by_definition(r, unlisted))
    for i, score in enumerate(RULES["median-rank"](r, unlisted=unlisted)):
        own = sorted((p, w) for x, p, w in rows if x == i)
        if not own:
            assert score == -(r.n_items + 1) / 2
            continue
        half = sum(w for _, w in own) / 2
        low = next(p for k, (p, _) in enumerate(own) if sum(w for _, w in own[: k + 1]) >= half)
        high = next(p for k, (p, _) in enumerate(own) if sum(w for _, w in own[: k + 1]) > half)
        assert score == pytest.approx(-float(low + high) / 2)


def footrule_cost(r, order):
    return float(sum(w * abs(order.index(i) + 1 - p) for i, p, w in places_by_definition(r, "absent")))


def kendall_cost(r, order):
    wins = wins_by_definition(r)
    return sum(wins[order[q], order[p]] for p in range(len(order)) for q in range(p + 1, len(order)))


def cost_of(name, r, scores):
    """Cost of the scores' order, whichever way their ties are broken: all must cost the same."""
    groups = [[int(i) for i in np.flatnonzero(scores == x)] for x in sorted(set(scores), reverse=True)]
    cost = footrule_cost if name == "footrule" else kendall_cost
    ways = itertools.product(*map(itertools.permutations, groups))
    costs = {round(cost(r, list(itertools.chain(*way))), 9) for way in ways}
    assert len(costs) == 1
    return costs.pop()


@pytest.mark.parametrize("name", ["footrule", "kemeny"])
@check
@given(r=ballots())
def test_no_order_is_closer(name, r):
    cost = footrule_cost if name == "footrule" else kendall_cost
    best = min(cost(r, list(order)) for order in itertools.permutations(range(r.n_items)))
    assert cost_of(name, r, RULES[name](r)) == pytest.approx(best, abs=1e-9)


def test_mode_is_the_most_frequent_ballot_and_ties_are_averaged():
    r = Rankings.from_orders([["a", "b", "c"], ["c"], ["c"], ["b", "a", "c"]], weight=[3, 1, 1, 1])
    assert RULES["mode"](r).tolist() == [-1, -2, -3]
    assert RULES["mode"](r[np.array([0, 3])]).tolist() == [-1, -2, -3]
    level = Rankings.from_orders([["a", "b", "c"], ["c"], ["c"], ["b", "a", "c"]], weight=[1, 0.5, 0.5, 1])
    # a: 1, 2.5 and 2; b: 2, 2.5 and 1; c: 3, 1 and 3
    assert RULES["mode"](level) == pytest.approx([-5.5 / 3, -5.5 / 3, -7 / 3])


# Random walks


def long_walk(walk):
    share = np.full(len(walk), 1 / len(walk))
    lazy = (walk + np.eye(len(walk))) / 2
    return share @ np.linalg.matrix_power(lazy, 2**22)


@check
@given(r=ballots())
def test_mc4_by_walking(r):
    wins, n = wins_by_definition(r), r.n_items
    walk = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        walk[i, j] = (wins[j, i] > wins[i, j]) / n
    walk += np.diag(1 - walk.sum(axis=1))
    assert RULES["mc4"](r) == pytest.approx(long_walk(0.95 * walk + 0.05 / n), abs=1e-9)


@check
@given(r=ballots(complete=True))
def test_rank_centrality_by_walking(r):
    n = r.n_items
    wins = wins_by_definition(r)
    total = r.weight.sum()
    won = wins + (total - wins - wins.T) / 2 + 0.1
    walk = np.array([[0.0 if i == j else won[j, i] / (won[i, j] + won[j, i]) for j in range(n)] for i in range(n)])
    walk /= max(n - 1, 1)
    walk += np.diag(1 - walk.sum(axis=1))
    expected = np.log(long_walk(walk))
    assert RULES["rank-centrality"](r) == pytest.approx(expected - expected.mean(), abs=1e-6)


def test_rank_centrality_is_right_at_many_items_and_recovers_strengths():
    rng = np.random.default_rng(0)
    n = 320  # beyond the size that is eliminated without subtractions
    strength = rng.normal(size=n)
    i, j = np.triu_indices(n, 1)
    p = 1 / (1 + np.exp(strength[j] - strength[i]))
    exact = rank_centrality(Comparisons(i, j, 1000 * p, 1000 * (1 - p), 0 * p), prior=None)
    assert exact == pytest.approx(strength - strength.mean(), abs=1e-8)


def test_rank_centrality_without_a_prior_says_when_there_is_no_answer():
    with pytest.raises(DataError, match=r"2 groups.*give a prior"):
        rank_centrality(Rankings.from_orders([["a", "b"]]), prior=None)


# Scores of engines


def test_combsum_and_combmnz_by_hand():
    run = {"who": [1, 1, 1, 2, 2], "doc": ["a", "b", "c", "b", "d"], "s": [10.0, 5.0, 0.0, 3.0, 1.0]}
    r = Rankings.from_scores(run, ballot="who", item="doc", score="s")
    by_name = lambda scores: dict(zip(r.items, scores.tolist()))  # noqa: E731
    assert by_name(RULES["combsum"](r)) == {"a": 1.0, "b": 1.5, "c": 0.0, "d": 0.0}
    assert by_name(RULES["combmnz"](r)) == {"a": 1.0, "b": 3.0, "c": 0.0, "d": 0.0}
    assert by_name(RULES["combsum"](r, normalise="none")) == {"a": 10.0, "b": 8.0, "c": 0.0, "d": 1.0}
    assert by_name(RULES["combsum"](r, normalise="sum")) == {"a": 2.0, "b": 3.0, "c": 0.0, "d": 0.0}


def test_equal_scores_of_a_ballot_count_half():
    r = Rankings([0, 1], [0, 0], [0, 2], score=[4, 4])
    assert RULES["combsum"](r).tolist() == [0.5, 0.5]
