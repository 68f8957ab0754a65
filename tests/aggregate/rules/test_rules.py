"""Rules by their definitions on small ballots, and what every rule of the table keeps."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import ballots

import placet
from placet.aggregate import MODELS, RULES
from placet.aggregate.rules.markov import rank_centrality
from placet.aggregate.rules.positional import POSITIONAL, positional, positional_vector
from placet.data import Comparisons, DataError, Rankings

check = settings(max_examples=60)

OF_PAIRS = tuple(name for name, rule in RULES.items() if rule.of_pairs)
PARTLY_BLIND = ("plurality", "anti-plurality", "minimax", "irv", "stv", "nanson", "approval")
COMMITTEES = ("pav", "seq-pav", "rev-seq-pav", "phragmen", "equal-shares", "chamberlin-courant")
PARTLY_BLIND += COMMITTEES
"""Rules that may tie items on which all ballots agree: they see one end of a ballot, or the worst defeat alone."""


def with_scores(r):
    """The same ballots, with scores that agree with their tiers."""
    return Rankings(r.item, r.tier, r.offsets, r.weight, items=r.items, score=-2.0 * r.tier)


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
    with pytest.raises(ValueError, match="'bordo' is unknown .did you mean 'borda'.*; choose from"):
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
    with pytest.raises(ValueError, match="normalize 'max' is unknown"):
        RULES["combsum"](Rankings(r.item, r.tier, r.offsets, score=[2, 1]), normalize="max")
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
    """Over the items that somebody lists; the others take no part."""
    listed = r.restricted([name for name in r.items if any(name in itertools.chain(*ballot) for ballot in r)])
    place = {name: k + 1 for k, name in enumerate(r.items[i] for i in order if r.items[i] in listed.index)}
    rows = places_by_definition(listed, "absent")
    return float(sum(w * abs(place[listed.items[i]] - p) for i, p, w in rows))


def kendall_cost(r, order):
    wins = wins_by_definition(r)
    return sum(wins[order[q], order[p]] for p in range(len(order)) for q in range(p + 1, len(order)))


def refinements(scores):
    """All orders that follow the scores, ties broken in every way."""
    groups = [[int(i) for i in np.flatnonzero(scores == x)] for x in sorted(set(scores), reverse=True)]
    return [list(itertools.chain(*way)) for way in itertools.product(*map(itertools.permutations, groups))]


@pytest.mark.parametrize("name", ["footrule", "kemeny", "kemeny-local"])
@check
@given(r=ballots())
def test_no_order_is_closer_and_the_number_of_closest_ones_is_noted(name, r):
    cost = footrule_cost if name == "footrule" else kendall_cost
    costs = {order: cost(r, list(order)) for order in itertools.permutations(range(r.n_items))}
    best = min(costs.values())
    found = RULES[name].run(r)
    assert min(costs[tuple(order)] for order in refinements(found.scores)) == pytest.approx(best, abs=1e-9)
    count = sum(value <= best + 1e-9 for value in costs.values())
    if name == "footrule":  # orders of the items that are listed
        unlisted = r.n_items - len(set(r.item.tolist()))
        count //= math.factorial(r.n_items) // math.factorial(r.n_items - unlisted)
    told = [note for note in found.notes if "orders are equally close" in note]
    assert [note.partition(" ")[0] for note in told] == ([str(count)] if count > 1 else [])
    if name != "footrule":
        assert f"Kemeny distance {best:g}: no order is closer" in found.notes


@check
@given(r=ballots())
def test_kemeny_says_no_more_than_its_best_orders(r):
    """What it puts above is above in some best order; what is above in all of them it never puts below."""
    costs = {order: kendall_cost(r, list(order)) for order in itertools.permutations(range(r.n_items))}
    best = [order for order, value in costs.items() if value <= min(costs.values()) + 1e-9]
    scores = RULES["kemeny"](r)
    for i, j in itertools.permutations(range(r.n_items), 2):
        above = [order.index(i) < order.index(j) for order in best]
        assert not all(above) or scores[i] >= scores[j]
        assert any(above) or scores[i] <= scores[j]


CYCLE = [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]


@pytest.mark.parametrize("name", [*RULES, *MODELS])
@pytest.mark.parametrize("items", ["abc", "cab", "bca", "cba"])
def test_a_condorcet_cycle_ties(name, items):
    r = with_scores(Rankings.from_orders(CYCLE, items=items))
    assert placet.consensus(r, name).ranking == [tuple(items)]
    if name in ("kemeny", "kemeny-local", "mallows"):
        assert any(note.startswith("3 orders are equally close") for note in placet.consensus(r, name).notes)


@pytest.mark.parametrize("n", [15, 20])
def test_long_cycles_tie_too(n):
    """Beyond the sizes at which all orders are looked at."""
    orders = [[*range(k, n), *range(k)] for k in range(n)]
    found = RULES["kemeny-local"].run(Rankings.from_orders(orders, items=range(n)))
    assert len(set(found.scores)) == 1
    assert any(note.startswith("at least") for note in found.notes)


def test_an_item_that_nobody_listed_is_neither_first_nor_last():
    r = Rankings.from_orders([["a", "b"], ["a", "b"], ["b", "a"]], items="zab")
    for name in ("footrule", "kemeny", "kemeny-local", "median-rank", "borda"):
        assert placet.consensus(r, name).ranking == ["a", "z", "b"], name


def test_the_cheapest_way_to_break_a_cycle_is_chosen_by_net_wins_from_the_top():
    """a > b by 3, b > c and c > a by 1: abc and cab are as close, and a has most net wins."""
    pairs = Comparisons([0, 1, 0], [1, 2, 2], [3, 1, 0], [0, 0, 1], [0, 0, 0], items="abc")
    found = RULES["kemeny"].run(pairs)
    assert found.scores.tolist() == [0, -1, -2]
    assert found.notes[-1].startswith("2 orders are equally close; chosen by net wins")


def test_footrule_counts_no_ballot_twice():
    """The ballots that showed that the answer depended on how the problem was written."""
    orders = [[("a", "c")], [], ["a", "c"], []]
    once = Rankings.from_orders(orders, items="abc", weight=[4, 0.5, 0.5, 0.5])
    twice = Rankings.from_orders([*orders, orders[0]], items="abc", weight=[2, 0.5, 0.5, 0.5, 2])
    assert RULES["footrule"](once).tolist() == RULES["footrule"](twice).tolist()


@pytest.mark.parametrize("name", [*RULES, *MODELS])
def test_decimal_weights_tie_where_they_add_up_to_the_same(name):
    orders = [["a", "b"], ["a", "b"], ["b", "a"]]
    weight = np.array([0.1, 0.2, 0.3])
    for at in itertools.permutations(range(3)):
        r = with_scores(Rankings.from_orders([orders[k] for k in at], weight=weight[list(at)], items="ab"))
        if name == "mode":  # 0.1 + 0.2 for one ballot, 0.3 for the other
            assert set(RULES[name](r)) == {-1.5}
        assert placet.consensus(r, name).ranking == [("a", "b")], at
    skewed = Rankings.from_orders(orders, weight=weight, items="ab")
    assert (
        RULES["positional"](skewed, h=[1, -1]).tolist() == [0, 0]
        or len(set(RULES["positional"](skewed, h=[1, -1]))) == 1
    )


@pytest.mark.parametrize("name", RULES)
def test_no_ranking_changes_with_the_order_of_ballots_with_decimal_weights(name):
    rng = np.random.default_rng(4)
    for _ in range(12):
        n, m = rng.integers(2, 6), rng.integers(2, 9)
        orders = [rng.permutation(n)[: rng.integers(1, n + 1)].tolist() for _ in range(m)]
        weight = rng.choice([0.1, 0.2, 0.3, 0.7], m)
        rankings = set()
        for _ in range(4):
            at = rng.permutation(m)
            r = with_scores(Rankings.from_orders([orders[k] for k in at], items=range(n), weight=weight[at]))
            rankings.add(str(placet.consensus(r, name).ranking))
        assert len(rankings) == 1


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
    assert by_name(RULES["combsum"](r, normalize="none")) == {"a": 10.0, "b": 8.0, "c": 0.0, "d": 1.0}
    assert by_name(RULES["combsum"](r, normalize="sum")) == {"a": 2.0, "b": 3.0, "c": 0.0, "d": 0.0}


def test_equal_scores_of_a_ballot_count_half():
    r = Rankings([0, 1], [0, 0], [0, 2], score=[4, 4])
    assert RULES["combsum"](r).tolist() == [0.5, 0.5]
