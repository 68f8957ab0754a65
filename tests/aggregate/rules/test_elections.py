"""Rules of elections by their definitions: every way of breaking ties enumerated, every tied tier in every order."""

import itertools
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
from placet.aggregate import RULES
from placet.aggregate.rules import pairwise_contests, runoff, stv as transferable
from placet.aggregate.rules.kemeny import pair_tables
from placet.aggregate.rules.stv import count_votes
from placet.data import Comparisons, DataError, Rankings

check = settings(max_examples=60)
HALF = Fraction(1, 2)


@st.composite
def ballots(draw, max_items=4, max_ballots=5, tied=True):
    """Ballots with ties, absences, empty ballots and weights over 1 to ``max_items`` items."""
    n = draw(st.integers(1, max_items))
    orders = []
    for _ in range(draw(st.integers(1, max_ballots))):
        order = draw(st.permutations(range(n)))
        m = draw(st.integers(0, n))
        tiers = []
        for k, x in enumerate(order[:m]):
            if tied and k and draw(st.booleans()):
                tiers[-1] = (*tiers[-1], x)
            else:
                tiers.append((x,))
        orders.append(tiers)
    weight = draw(st.lists(st.sampled_from([1, 1, 2, 3, 0.5]), min_size=len(orders), max_size=len(orders)))
    return Rankings.from_orders(orders, items=range(n), weight=weight)


def linear(rankings):
    """(order, weight): every ballot as all linear orders of its tiers, each with an equal share of the weight."""
    for ballot, weight in zip(rankings, rankings.weight):
        ways = list(itertools.product(*(itertools.permutations(tier) for tier in ballot)))
        for way in ways:
            yield tuple(itertools.chain(*way)), Fraction(float(weight)) / len(ways)


def wins_of(rankings):
    n = rankings.n_items
    wins = [[Fraction(0)] * n for _ in range(n)]
    for ballot, weight in zip(rankings, rankings.weight):
        for a, b in itertools.combinations(range(len(ballot)), 2):
            for x, y in itertools.product(ballot[a], ballot[b]):
                wins[x][y] += Fraction(float(weight))
    return wins


def strengths(rankings, strength):
    wins, n = wins_of(rankings), rankings.n_items
    value = lambda x, y: wins[x][y] if strength == "winning-votes" else wins[x][y] - wins[y][x]  # noqa: E731
    return {(x, y): value(x, y) for x in range(n) for y in range(n) if wins[x][y] > wins[y][x]}


def chain_above(pairs, n):
    """Length of the longest chain above each item, by following it."""
    above = {x: [a for a, b in pairs if b == x] for x in range(n)}
    depth = lambda x: max((depth(a) + 1 for a in above[x]), default=0)  # noqa: E731
    return [depth(x) for x in range(n)]


# Majorities


@pytest.mark.parametrize("strength", ["winning-votes", "margins"])
@check
@given(r=ballots(max_items=5))
def test_schulze_by_following_every_path(strength, r):
    beats, n = strengths(r, strength), r.n_items

    def width(x, y):
        best = 0
        for size in range(n - 1):
            for middle in itertools.permutations([z for z in range(n) if z not in (x, y)], size):
                path = (x, *middle, y)
                best = max(best, min(beats.get(step, 0) for step in itertools.pairwise(path)))
        return best

    above = [(x, y) for x, y in itertools.permutations(range(n), 2) if width(x, y) > width(y, x)]
    assert RULES["schulze"](r, strength=strength).tolist() == [-d for d in chain_above(above, n)]


@pytest.mark.parametrize("strength", ["winning-votes", "margins"])
@check
@given(r=ballots())
def test_minimax_by_definition(strength, r):
    beats = strengths(r, strength)
    worst = [max((v for (_, y), v in beats.items() if y == x), default=0) for x in range(r.n_items)]
    assert RULES["minimax"](r, strength=strength) == pytest.approx([-float(w) for w in worst])


def locked_in_order(order):
    reach = set()
    for x, y in order:
        if (y, x) not in reach:
            above, below = {x} | {a for a, b in reach if b == x}, {y} | {b for a, b in reach if a == y}
            reach |= set(itertools.product(above, below))
    return reach


@pytest.mark.parametrize("strength", ["winning-votes", "margins"])
@check
@given(r=ballots())
def test_ranked_pairs_by_every_order_of_equal_pairs(strength, r):
    beats = strengths(r, strength)
    classes = [[p for p in beats if beats[p] == v] for v in sorted(set(beats.values()), reverse=True)]
    outcomes = set()
    for way in itertools.product(*map(itertools.permutations, classes)):
        outcomes.add(frozenset(locked_in_order(itertools.chain(*way))))
    places = np.min([chain_above(locked, r.n_items) for locked in outcomes], axis=0)
    assert RULES["ranked-pairs"](r, strength=strength).tolist() == (-places).tolist()


def test_ranked_pairs_beyond_the_outcomes_that_are_followed_locks_none_of_the_equals(monkeypatch):
    cycle = Rankings.from_orders([["a", "b", "c", "d"], ["b", "c", "a", "d"], ["c", "a", "b", "d"]])
    assert RULES["ranked-pairs"](cycle).tolist() == [0, 0, 0, -3]
    monkeypatch.setattr(pairwise_contests, "MOST_UNIVERSES", 1)
    assert RULES["ranked-pairs"](cycle).tolist() == [0, 0, 0, -1]
    assert "more than 1 outcomes of ties" in RULES["ranked-pairs"].run(cycle).notes[0]


@check
@given(r=ballots())
def test_black_by_definition(r):
    wins, n = wins_of(r), r.n_items
    borda = RULES["borda"](r)
    champion = [x for x in range(n) if n > 1 and all(wins[x][y] > wins[y][x] for y in range(n) if y != x)]
    scores = RULES["black"](r)
    rest = [x for x in range(n) if x not in champion]
    assert scores[rest] == pytest.approx(borda[rest])
    assert all(scores[x] > scores[rest].max() for x in champion)


# Places and ratings


@check
@given(r=ballots())
def test_bucklin_by_every_order_of_ties(r):
    n = r.n_items
    total = sum(w for order, w in linear(r) if order)
    keys = []
    for x in range(n):
        among = [sum((w for order, w in linear(r) if x in order[:k]), Fraction(0)) for k in range(1, n + 1)]
        k = next((k for k in range(n) if among[k] > total / 2), n)
        keys.append((k, -among[min(k, n - 1)]))
    assert RULES["bucklin"](r).tolist() == [-sum(other < own for other in keys) for own in keys]


@check
@given(r=ballots())
def test_dowdall_by_every_order_of_ties(r):
    expected = [
        sum((w / (order.index(x) + 1) for order, w in linear(r) if x in order), Fraction(0)) for x in range(r.n_items)
    ]
    assert RULES["dowdall"](r, unlisted="zero") + 0 == pytest.approx(
        [float(e) + sum(float(w) / r.n_items for o, w in linear(r) if x not in o) for x, e in enumerate(expected)]
    )


STARS = st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=5)


def rated(table, weight=None):
    """A table of ratings, None where there is none, as ballots."""
    rows = [(b, x, s) for b, line in enumerate(table) for x, s in enumerate(line) if s is not None]
    columns = dict(zip(("who", "what", "stars"), zip(*rows)))
    r = Rankings.from_scores(columns, ballot="who", item="what", score="stars", items=range(len(table[0])))
    return r if weight is None else Rankings(r.item, r.tier, r.offsets, weight, items=r.items, score=r.score)


@check
@given(STARS)
def test_approval_by_counting(table):
    r = rated(table)
    assert RULES["approval"](r, threshold=3).tolist() == [sum(line[x] >= 3 for line in table) for x in range(3)]
    mean = [sum(line[x] * 3 >= sum(line) and any(line) for line in table) for x in range(3)]  # all 0: nothing
    assert RULES["approval"](r).tolist() == RULES["approval"](r, threshold="mean").tolist() == mean
    top = [sum(line[x] == max(line) for line in table) for x in range(3)]
    assert RULES["approval"](r, threshold="top").tolist() == top
    plain = Rankings(r.item, r.tier, r.offsets, items=r.items)
    assert RULES["approval"](plain).tolist() == top
    with pytest.raises(DataError, match="'approval' needs ratings.*threshold='top'"):
        RULES["approval"](plain, threshold=3)
    with pytest.raises(ValueError, match="threshold 'most' is unknown"):
        RULES["approval"](r, threshold="most")


@check
@given(STARS)
def test_star_by_every_pair_of_finalists(table):
    sums = [sum(line[x] for line in table) for x in range(3)]
    best = [3, 3, 3]
    for x, y in itertools.permutations(range(3), 2):
        z = 3 - x - y
        if not (sums[x] >= sums[z] and sums[y] >= sums[z]):
            continue
        lead = sum(np.sign(line[x] - line[y]) for line in table)
        if lead > 0 or (lead == 0 and sums[x] >= sums[y]):
            best = [min(b, p) for b, p in zip(best, ({x: 0, y: 1, z: 2}[k] for k in range(3)))]
    assert RULES["star"](rated(table)).tolist() == [-b for b in best]


def test_star_rates_what_is_left_out_lowest():
    r = rated([[5, 1, None], [None, 4, 3], [1, 2, 2]])
    assert RULES["star"](r).tolist() == RULES["star"](rated([[5, 1, 1], [1, 4, 3], [1, 2, 2]])).tolist()
    assert RULES["star"](r, lowest=0).tolist() == RULES["star"](rated([[5, 1, 0], [0, 4, 3], [1, 2, 2]])).tolist()
    with pytest.raises(ValueError, match="no more than the lowest rating, 1, not 2"):
        RULES["star"](r, lowest=2)
    with pytest.raises(DataError, match="'star' needs ratings"):
        RULES["star"](Rankings.from_orders([["a", "b"]]))


# Runoffs


def best_places(standing, last, ties):
    """The fewest items that can outlast each, over every way of breaking ties (or with equals gone together)."""
    if not standing:
        return {}
    tied = last(standing)
    best = {x: len(standing) for x in standing}
    for gone in [tied] if ties == "together" else [[x] for x in tied]:
        rest = [x for x in standing if x not in gone]
        found = best_places(rest, last, ties) | dict.fromkeys(gone, len(rest))
        best = {x: min(best[x], found[x]) for x in standing}
    return best


def first_choice_losers(r):
    cast = list(linear(r))

    def last(standing):
        votes = dict.fromkeys(standing, Fraction(0))
        for order, w in cast:
            choice = next((x for x in order if x in standing), None)
            if choice is not None:
                votes[choice] += w
        return [x for x in standing if votes[x] == min(votes.values())]

    return last


def borda_losers(r):
    def last(standing):
        inside = r.restricted(standing)
        scores = RULES["borda"](inside)
        return [x for x, s in zip(standing, scores) if s <= scores.min() + 1e-9]

    return last


@pytest.mark.parametrize("ties", ["parallel", "together"])
@pytest.mark.parametrize(("name", "losers"), [("irv", first_choice_losers), ("baldwin", borda_losers)])
@check
@given(r=ballots(max_items=4))
def test_runoffs_by_every_way_of_breaking_ties(name, losers, ties, r):
    best = best_places(list(range(r.n_items)), losers(r), ties)
    assert RULES[name](r, ties=ties).tolist() == [-best[x] for x in range(r.n_items)]


@check
@given(r=ballots(max_items=5))
def test_nanson_by_definition(r):
    standing, expected = list(range(r.n_items)), [0] * r.n_items
    while standing:
        scores = RULES["borda"](r.restricted(standing))
        out = [x for x, s in zip(standing, scores) if s < scores.mean() - 1e-9]
        if not out:
            break
        standing = [x for x in standing if x not in out]
        for x in out:
            expected[x] = -len(standing)
    assert RULES["nanson"](r).tolist() == expected


def test_too_many_ties_are_eliminated_together_and_it_is_said(monkeypatch):
    r = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]])
    assert "broken in every way" in RULES["irv"].run(r).notes[0]
    monkeypatch.setattr(runoff, "MOST_STATES", 0)
    found = RULES["irv"].run(r)
    assert found.notes == ("more than 0 outcomes of ties: items that tie for the last place go together",)
    assert found.scores.tolist() == RULES["irv"](r, ties="together").tolist() == [0, 0, 0]
    assert RULES["irv"].run(r, ties="together").notes == ()


# Transferable votes


def gregory_by_hand(r, seats, exact=False):
    """Sets of winners over every way of breaking ties: exact fractions, every ballot as linear orders of its tiers."""
    cast = [(order, w) for order, w in linear(r) if order]
    total = sum(w for _, w in cast)
    whole = not exact and all(float(w).is_integer() for w in r.weight)
    quota = total // (seats + 1) + 1 if whole else total / (seats + 1)

    def holder(order, hopeful, owner):
        return next((x for x in order if x in hopeful), None) if owner is None else owner

    def go(piles, hopeful, elected, surplus):
        """piles: [(order, value, owner)]"""
        piles = [(o, v, holder(o, hopeful, x)) for o, v, x in piles]
        votes = {x: sum((v for _, v, y in piles if y == x), Fraction(0)) for x in range(r.n_items)}
        if len(elected) >= seats or not hopeful:
            return {frozenset(elected)}
        new = [x for x in hopeful if (votes[x] >= quota if whole else votes[x] > quota)]
        if new:
            rest = hopeful - set(new)
            return go(piles, rest, elected | set(new), surplus | set(new))
        if len(hopeful) <= seats - len(elected):
            return {frozenset(elected | hopeful)}
        over = [x for x in surplus if votes[x] > quota]
        found = set()
        if over:
            most = max(votes[x] for x in over)
            for x in [x for x in over if votes[x] == most]:
                share = (votes[x] - quota) / votes[x]
                kept = [(o, v * (1 - share) if y == x else v, y) for o, v, y in piles]
                moved = [(o, v * share, None) for o, v, y in piles if y == x]
                found |= go(kept + moved, hopeful, elected, surplus - {x})
            return found
        low = min(votes[x] for x in hopeful)
        for x in [x for x in hopeful if votes[x] == low]:
            moved = [(o, v, None if y == x else y) for o, v, y in piles]
            found |= go(moved, hopeful - {x}, elected, surplus)
        return found

    return go([(o, w, None) for o, w in cast], set(range(r.n_items)), set(), set())


@pytest.mark.parametrize("quota", ["droop", "exact"])
@check
@given(r=ballots(max_items=4, max_ballots=4), seats=st.integers(1, 3))
def test_gregory_elects_whom_exact_fractions_elect_in_every_way_of_breaking_ties(quota, r, seats):
    seats = min(seats, r.n_items)
    outcomes = gregory_by_hand(r, seats, quota == "exact")
    found = count_votes(r, seats, quota=quota)
    assert found.complete
    assert set(found.record.elected) == set.intersection(*map(set, outcomes))
    assert set(found.record.elected) | set(found.record.tied) == set.union(*map(set, outcomes))
    assert sum(found.places < seats) >= seats


def meek_by_hand(r, seats):
    """One count with floats: shares by plain iteration, ballots as linear orders; winners, or None at a tie."""
    cast = [(order, float(w)) for order, w in linear(r) if order]
    total, n = sum(w for _, w in cast), r.n_items
    keep, hopeful, elected = [1.0] * n, set(range(n)), set()
    while len(elected) < seats and hopeful:
        for _ in range(3000):
            votes, excess = [0.0] * n, 0.0
            for order, w in cast:
                for x in order:
                    votes[x] += w * keep[x]
                    w *= 1 - keep[x]
                excess += w
            quota = (total - excess) / (seats + 1)
            if all(abs(votes[x] - quota) < 1e-12 * total for x in elected):
                break
            for x in elected:
                keep[x] = min(1.0, keep[x] * quota / votes[x])
        new = {x for x in hopeful if votes[x] > quota * (1 + 1e-7)}
        if new:
            elected |= new
            hopeful -= new
        elif len(hopeful) <= seats - len(elected):
            return elected | hopeful
        else:
            low = min(votes[x] for x in hopeful)
            tied = [x for x in hopeful if votes[x] <= low + 1e-7 * total]
            if len(tied) > 1:
                return None
            hopeful -= set(tied)
            keep[tied[0]] = 0.0
    return elected


@settings(max_examples=25)
@given(r=ballots(max_items=4, max_ballots=4), seats=st.integers(1, 2))
def test_meek_elects_whom_plain_iteration_elects(r, seats):
    seats = min(seats, r.n_items)
    expected = meek_by_hand(r, seats)
    found = count_votes(r, seats, "meek")
    if expected is not None and not found.record.tied:
        assert set(found.record.elected) == expected


@check
@given(r=ballots(max_items=4))
def test_one_seat_goes_to_the_winner_of_the_instant_runoff(r):
    winners = set(np.flatnonzero(RULES["irv"](r) == 0).tolist())
    for transfer in ("gregory", "meek"):
        found = count_votes(r, 1, transfer)
        assert set(found.record.elected) | set(found.record.tied) == winners
        assert set(np.flatnonzero(found.places == 0).tolist()) == winners


# Batch elimination


@pytest.mark.parametrize("transfer", ["gregory", "meek"])
def test_batches_of_the_hopeless_elect_the_same_in_fewer_rounds(transfer):
    """Random elections with a few strong and many weak candidates."""
    rng, fewer = np.random.default_rng(7), {1: 0, 2: 0}
    for k in range(80):
        n, seats, size = int(rng.integers(6, 9)), int(rng.integers(1, 3)), int(rng.integers(30, 90))
        liked = np.where(np.arange(n) < seats + 2, 1.0, 0.05) * rng.uniform(0.7, 1.3, n)
        orders = [rng.choice(n, int(rng.integers(1, n + 1)), False, liked / liked.sum()).tolist() for _ in range(size)]
        r = Rankings.from_orders(orders, items=range(n))
        plain, batch = (count_votes(r, seats, transfer, batch=how).record for how in (False, True))
        assert (set(plain.elected), set(plain.tied)) == (set(batch.elected), set(batch.tied)), (k, orders, seats)
        fewer[seats] += len(batch.counts[0]) < len(plain.counts[0])
        if seats == 1:
            first = lambda how: np.flatnonzero(RULES["irv"](r, batch=how) == 0).tolist()  # noqa: B023, E731
            assert first(False) == first(True)
    assert min(fewer.values()) > 4


def test_a_batch_waits_while_its_votes_may_elect_someone_in_between():
    """One by one, c is eliminated and elects a, whose surplus is that of fewer ballots than if d had gone, too."""
    orders = [["a"], ["b"], ["e"], ["c", "a"], ["d", "a"]]
    r = Rankings.from_orders(orders, weight=[31, 26, 25, 4, 3])
    one = count_votes(r, 2, batch=True).record
    gone = [row["item"] for row in one.rows() if row["action"] == "is eliminated"]
    assert gone[:1] == ["d"]
    two = count_votes(r, 1, batch=True).record
    assert [row["round"] for row in two.rows() if row["item"] in ("c", "d") and row["action"]] == [1, 1]


def test_a_batch_leaves_as_many_as_there_are_seats():
    r = Rankings.from_orders([["z"], ["a"], ["b"], ["c"]], weight=[89, 8, 2, 1])
    for transfer in ("gregory", "meek"):
        assert set(count_votes(r, 3, transfer, batch=True).record.elected) == {"z", "a", "b"}


def test_batches_break_no_ties_that_do_not_matter():
    orders = [["a", "b"], ["b", "a"], *([x, "a"] for x in "cdefghij")]
    r = Rankings.from_orders(orders, weight=[35, 34] + [1] * 8)
    assert not count_votes(r).complete
    found = count_votes(r, batch=True)
    assert (found.complete, found.record.ways, found.record.elected) == (True, 1, ("a",))
    assert RULES["irv"].run(r, batch=True).scores.tolist()[:2] == [0, -1]


@pytest.mark.parametrize("transfer", ["gregory", "meek"])
@check
@given(r=ballots(max_items=5), seats=st.integers(1, 4))
def test_the_record_adds_up(transfer, r, seats):
    """In every round votes and exhausted votes are all the weight; as many are elected as there are seats."""
    seats = min(seats, r.n_items)
    found = count_votes(r, seats, transfer)
    total = r.weight[np.diff(r.offsets) > 0].sum()
    by_round = {}
    for row in found.record.rows():
        by_round.setdefault((row["count"], row["round"]), []).append(row)
    for rows in by_round.values():
        assert sum(row["votes"] for row in rows) == pytest.approx(total)
        assert rows[-1]["item"] is None
    counts = {row["count"] for row in found.record.rows()}
    assert len(counts) == min(found.record.ways, transferable.MOST_RECORDED)
    for k in counts:
        last = max(row["round"] for row in found.record.rows() if row["count"] == k)
        seated = [
            row
            for row in found.record.rows()
            if row["count"] == k and row["round"] == last and row["status"] == "elected"
        ]
        assert len(seated) == seats


def test_a_count_by_hand():
    """Nine voters, two seats, quota 4: a passes on 2/6 of its six ballots."""
    r = Rankings.from_orders([["a", "b", "c"]] * 3 + [["a", "c"]] * 3 + [["d"]] * 1 + [["c", "d"]] * 1 + [["b"]] * 1)
    found = count_votes(r, 2)
    assert found.record.quota == 4
    assert found.record.tied == ("b", "c")  # each has 1 + 1, d goes, then neither has more
    acted = [
        (row["round"], row["item"], row["votes"], row["action"])
        for row in found.record.rows()
        if row["action"] and row["count"] == 1
    ]
    assert acted[:3] == [
        (1, "a", 6.0, "reaches the quota"),
        (2, "a", 6.0, "passes on its surplus"),
        (3, "d", 1.0, "is eliminated"),
    ]
    exhausted = [row["votes"] for row in found.record.rows() if row["item"] is None and row["count"] == 1]
    assert exhausted[:4] == pytest.approx([0, 0, 0, 1])
    places = dict(zip(r.items, found.places.tolist()))
    assert places == {"a": 0, "b": 1, "c": 1, "d": 3}


def test_ties_together_fill_no_seat_by_lot(monkeypatch):
    r = Rankings.from_orders([["a"], ["b"], ["c"]])
    together = count_votes(r, 2, ties="together")
    assert together.record.elected == ()
    assert together.record.tied == ("a", "b", "c")
    assert together.complete
    monkeypatch.setattr(transferable, "MOST_UNIVERSES", 2)
    many = count_votes(r, 2)
    assert not many.complete
    assert many.record.tied == ("a", "b", "c")


def test_wrong_parameters_are_named():
    r = Rankings.from_orders([["a", "b"]])
    with pytest.raises(ValueError, match=r"seats must be a whole number in 1\.\.2.*not 3"):
        RULES["stv"](r, seats=3)
    with pytest.raises(ValueError, match="transfer 'hare' is unknown"):
        RULES["stv"](r, transfer="hare")
    with pytest.raises(ValueError, match="quota 'hare' is unknown"):
        RULES["stv"](r, quota="hare")
    with pytest.raises(ValueError, match="ties 'lot' is unknown"):
        RULES["irv"](r, ties="lot")
    with pytest.raises(ValueError, match="strength 'votes' is unknown"):
        RULES["schulze"](r, strength="votes")


# Scale, decimals, doors


def test_decimal_weights_tie_within_rounding():
    """0.1 + 0.2 is 0.3 for every rule: a and b fare alike."""
    orders = [["a", "b", "c"], ["a", "b", "c"], ["b", "a", "c"]]
    r = Rankings.from_orders(orders, weight=[0.1, 0.2, 0.3])
    scored = Rankings(r.item, r.tier, r.offsets, r.weight, items=r.items, score=-r.tier.astype(float))
    for name in ("schulze", "ranked-pairs", "minimax", "irv", "stv", "baldwin", "nanson", "bucklin", "black", "star"):
        assert placet.consensus(scored, name).ranking[0] == ("a", "b"), name
    assert placet.consensus(scored, "dowdall").ranking[0] == ("a", "b")


def test_two_hundred_items_with_few_ballots_and_many_ties():
    rng = np.random.default_rng(0)
    r = Rankings.from_orders([rng.permutation(200).tolist() for _ in range(7)], items=range(200))
    for name in ("schulze", "ranked-pairs", "minimax", "irv", "stv", "baldwin", "nanson", "bucklin", "black"):
        scores = RULES[name](r)
        to = rng.permutation(200)
        renamed = Rankings(to[r.item], r.tier, r.offsets, items=r.items)
        assert RULES[name](renamed)[to] == pytest.approx(scores), name


def test_ranked_pairs_of_many_items_without_ties_is_an_order_that_contradicts_no_stronger_chain():
    rng = np.random.default_rng(1)
    i, j = np.triu_indices(60, 1)
    share = rng.uniform(size=len(i))
    pairs = Comparisons(i, j, share, 1 - share, 0 * share)
    place = -RULES["ranked-pairs"](pairs, strength="margins")
    assert sorted(place) == list(range(60))
    margin = np.zeros((60, 60))
    margin[i, j], margin[j, i] = 2 * share - 1, 1 - 2 * share
    widest = np.where(margin > 0, margin, 0.0)
    for x in np.argsort(place):  # locked: x above y unless a chain of stronger majorities leads from y to x
        for y in range(60):
            if margin[x, y] > 0 and place[x] > place[y]:
                strong = np.where((margin >= margin[x, y]) & (place[:, None] < place[None, :]), 1.0, 0.0)
                reach = np.linalg.matrix_power(np.eye(60) + strong, 60) > 0
                assert reach[y, x]
    assert widest.any()


@pytest.mark.parametrize("name", ["schulze", "ranked-pairs", "irv", "stv", "star"])
def test_bootstrap_and_audit_through_the_one_door(name):
    r = rated([[5, 3, 1], [5, 4, 2], [4, 5, 1], [5, 1, 2], [3, 5, 4]])
    found = placet.consensus(r, name, bootstrap=20)
    assert found.ranking[0] == 0
    assert found.top_k_probability(1)[0] >= 0.5
    assert placet.axioms.audit(r, name, compare=("borda",)).condorcet_winner == 0


def test_the_record_is_in_json_and_on_the_page(tmp_path):
    import json

    from typer.testing import CliRunner

    from placet.cli import app
    from placet.report.page import consensus_page

    votes = Rankings.from_orders([["a", "b", "c"]] * 5 + [["c", "b", "a"]])
    path = tmp_path / "votes.soc"
    placet.io.write(votes, path)
    command = ["aggregate", str(path), "--method", "stv", "-p", "seats=2", "--json"]
    record = json.loads(CliRunner().invoke(app, command).stdout)["record"]
    assert record["elected"] == ["a", "b"]
    assert record["quota"] == 3
    assert record["rounds"] == count_votes(votes, 2).record.rows()
    page = consensus_page(placet.consensus(votes, "stv", seats=2), votes)
    assert "<h2>The count</h2>" in page
    assert "Quota 3." in page
    assert "passes on its surplus" in page
    frame = placet.consensus(votes, "irv").record.to_frame()
    assert frame.columns == ["count", "round", "item", "votes", "status", "action"]
    assert frame.filter(frame["action"] == "is elected")["item"].to_list() == ["a"]


def test_the_record_of_an_instance_has_its_own_names():
    orders = [["a", "b"], ["a", "b"], ["x", "y"], ["x", "y"]]
    found = placet.consensus(Rankings.from_orders(orders, instance=[1, 1, 2, 2]), "irv")
    assert found[1].record.elected == ("a",)
    assert found[2].record.elected == ("x",)
    assert {row["item"] for row in found[2].record.rows()} == {"x", "y", None}


# Real elections


DATA = Path(os.environ.get("PLACET_DATA", Path(__file__).parents[4] / "shared" / "data")) / "preflib" / "00002-debian"
PUBLISHED = {
    1: "Bdale Garbee",
    3: "Branden Robinson",
    5: "Sam Hocevar",
    6: "Stefano Zacchiroli",
    7: "Stefano Zacchiroli",
    8: "Swirl",
}


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data at {DATA}; set PLACET_DATA to the folder that holds them")
def test_schulze_elects_whom_debian_elected():
    """In files 2 and 4 (2003 and 2006) the ballots of PrefLib have another majority than the published result:
    252 to 228 and 213 to 190 against the candidate that Debian declared the winner."""
    for number, winner in PUBLISHED.items():
        votes = placet.read(DATA / f"00002-0000000{number}.toc")
        assert placet.consensus(votes, "schulze").ranking[0] == winner
    for number, x, y, share, other in (
        (2, "Bdale Garbee", "Martin Michlmayr", 252, 228),
        (4, "Steve McIntyre", "Anthony Towns", 213, 190),
    ):
        votes = placet.read(DATA / f"00002-0000000{number}.toc")
        assert placet.consensus(votes, "schulze").ranking[0] == x
        wins, _ = pair_tables(votes)
        i, j = votes.index[x], votes.index[y]
        assert (wins[i, j], wins[j, i]) == (share, other)
