"""Rules of committees by their definitions, in fractions, voter by voter; and against abcvoting."""

import itertools
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
from placet.aggregate import RULES
from placet.aggregate.committees import approval_profile, best_committee
from placet.aggregate.committees.approval_profile import whole_weights
from placet.data import DataError, Rankings

EXAMPLES = int(os.environ.get("PLACET_EXAMPLES", "20"))
NAMES = ("pav", "seq-pav", "rev-seq-pav", "phragmen", "equal-shares", "chamberlin-courant")


@st.composite
def approvals(draw, max_items=5, max_ballots=6):
    """(number of items, sets, weights): every item is approved by someone; some ballots approve nothing."""
    n = draw(st.integers(1, max_items))
    sets = draw(st.lists(st.sets(st.integers(0, n - 1)), min_size=1, max_size=max_ballots))
    sets.append({k for k in range(n) if not any(k in one for one in sets)})
    weights = draw(st.lists(st.sampled_from([1, 1, 2, 3, 0.5, 0.3]), min_size=len(sets), max_size=len(sets)))
    return n, sets, weights


def rated(n, sets, weights):
    """Ballots that rate all items, 1 if approved and else 0."""
    ballots = len(sets)
    score = np.array([[float(k in one) for k in range(n)] for one in sets])
    frame = {"who": np.repeat(np.arange(ballots), n), "what": np.tile(np.arange(n), ballots), "yes": score.ravel()}
    made = Rankings.from_scores(frame, ballot="who", item="what", score="yes", items=range(n))
    return Rankings(made.item, made.tier, made.offsets, weights, items=made.items, score=made.score)


def exact(weights):
    return [Fraction(str(w)) for w in weights]


# Slow and obvious: each rule returns the set of all winning committees


def worth(sets, weights, committee, h):
    return sum(w * sum(h(m + 1) for m in range(len(one & set(committee)))) for one, w in zip(sets, exact(weights)))


def best_by_worth(h):
    def rule(n, sets, weights, seats):
        every = [frozenset(c) for c in itertools.combinations(range(n), seats)]
        value = {c: worth(sets, weights, c, h) for c in every}
        return {c for c in every if value[c] == max(value.values())}

    return rule


harmonic = lambda m: Fraction(1, m)  # noqa: E731
pav_worth = lambda sets, weights, c: worth(sets, weights, c, harmonic)  # noqa: E731


def seq_pav(n, sets, weights, seats, begun=frozenset()):
    if len(begun) == seats:
        return {begun}
    value = {k: pav_worth(sets, weights, begun | {k}) for k in range(n) if k not in begun}
    best = [k for k in value if value[k] == max(value.values())]
    return set().union(*(seq_pav(n, sets, weights, seats, begun | {k}) for k in best))


def rev_seq_pav(n, sets, weights, seats, left=None):
    left = frozenset(range(n)) if left is None else left
    if len(left) == seats:
        return {left}
    value = {k: pav_worth(sets, weights, left - {k}) for k in left}
    best = [k for k in value if value[k] == max(value.values())]
    return set().union(*(rev_seq_pav(n, sets, weights, seats, left - {k}) for k in best))


def phragmen(n, sets, weights, seats, begun=frozenset(), load=None):
    load = [Fraction(0)] * len(sets) if load is None else load
    if len(begun) == seats:
        return {begun}
    time = {}
    for k in range(n):
        who = [v for v, one in enumerate(sets) if k in one]
        if k not in begun and who:
            heavy = exact(weights)
            time[k] = (1 + sum(heavy[v] * load[v] for v in who)) / sum(heavy[v] for v in who)
    if not time:
        return {begun}
    found = set()
    for k in (k for k in time if time[k] == min(time.values())):
        after = [time[k] if k in one else load[v] for v, one in enumerate(sets)]
        found |= phragmen(n, sets, weights, seats, begun | {k}, after)
    return found


def equal_shares(n, sets, weights, seats, completion="phragmen", begun=frozenset(), purse=None):
    heavy = exact(weights)
    purse = [Fraction(seats) / sum(heavy)] * len(sets) if purse is None else purse
    if len(begun) == seats:
        return {begun}
    price = {}
    for k in (k for k in range(n) if k not in begun):
        who = [v for v, one in enumerate(sets) if k in one]
        if sum(heavy[v] * purse[v] for v in who) >= 1:
            steps = sorted({purse[v] for v in who})
            price[k] = least_payment(lambda rho, who=who: sum(heavy[v] * min(purse[v], rho) for v in who), steps)
    found = set()
    for k in (k for k in price if price[k] == min(price.values())):
        after = [max(purse[v] - price[k], Fraction(0)) if k in one else purse[v] for v, one in enumerate(sets)]
        found |= equal_shares(n, sets, weights, seats, completion, begun | {k}, after)
    if found:
        return found
    if completion == "none":
        return {begun}
    if completion == "phragmen":
        return phragmen(n, sets, weights, seats, begun, [-money for money in purse])
    count = {k: sum(w for one, w in zip(sets, heavy) if k in one) for k in range(n) if k not in begun}
    ways = [set(c) for c in itertools.combinations(count, seats - len(begun))]
    total = [sum(count[k] for k in c) for c in ways]
    return {begun | c for c, t in zip(ways, total) if t == max(total)}


def least_payment(paid, steps):
    """The rho with ``paid(rho)`` = 1: paid is piecewise linear between the steps."""
    low = Fraction(0)
    for high in steps:
        if paid(high) >= 1:
            return low + (1 - paid(low)) * (high - low) / (paid(high) - paid(low))
        low = high
    raise AssertionError("affordable, and yet not paid")


ORACLES = {
    "pav": best_by_worth(harmonic),
    "chamberlin-courant": best_by_worth(lambda m: Fraction(int(m == 1))),
    "seq-pav": seq_pav,
    "rev-seq-pav": rev_seq_pav,
    "phragmen": phragmen,
    "equal-shares": equal_shares,
}


def test_all_rules_have_an_oracle():
    assert sorted(ORACLES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(votes=approvals(), seats=st.integers(1, 4))
def test_all_committees_are_those_of_the_definition(name, votes, seats):
    n, sets, weights = votes
    seats = min(seats, n)
    expected = ORACLES[name](n, sets, weights, seats)
    found = RULES[name].run(rated(n, sets, weights), seats=seats)
    assert {frozenset(c) for c in found.record.committees} == expected
    assert len(found.record.committees) == len(expected) == found.record.ways
    assert set(found.record.elected) == set.intersection(*map(set, expected))
    share = [sum(k in c for c in expected) / len(expected) for k in range(n)]
    assert found.scores == pytest.approx(share)


COMPLETED = [("equal-shares", {"completion": how}) for how in ("phragmen", "approval", "none")]


@pytest.mark.parametrize(("name", "params"), [*((name, {}) for name in NAMES if name != "equal-shares"), *COMPLETED])
def test_committees_of_random_ballots_are_those_of_the_definition(name, params):
    """Enough ballots that rules which are nearly alike elect others."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        n, sets, _ = random_profile(rng, least=5, most=6)
        seats = int(rng.integers(2, 5))
        expected = ORACLES[name](n, sets, [1] * len(sets), seats, **params)
        found = RULES[name].run(rated(n, sets, [1] * len(sets)), seats=seats, **params).record
        assert {frozenset(c) for c in found.committees} == expected


PEERS = [
    ("pav", "pav", {}),
    ("seq-pav", "seqpav", {}),
    ("rev-seq-pav", "revseqpav", {}),
    ("phragmen", "seqphragmen", {}),
    ("equal-shares", "equal-shares", {}),
    ("equal-shares", "equal-shares-with-av-completion", {"completion": "approval"}),
    ("equal-shares", "equal-shares-without-completion", {"completion": "none"}),
    ("chamberlin-courant", "cc", {}),
]


def random_profile(rng, least=2, most=8):
    n, voters = int(rng.integers(least, most + 1)), int(rng.integers(2, 16))
    table = rng.random((voters, n)) < rng.uniform(0.15, 0.6)
    table[0, ~table.any(axis=0)] = True
    return n, [set(np.flatnonzero(row).tolist()) for row in table], int(rng.integers(1, n + 1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "theirs", "params"), PEERS)
def test_committees_are_those_of_abcvoting(name, theirs, params):
    abc = pytest.importorskip("abcvoting.abcrules", reason="abcvoting is not installed")
    from abcvoting.preferences import Profile

    rng, several = np.random.default_rng(1), 0
    for _ in range(2 * EXAMPLES):
        n, sets, seats = random_profile(rng)
        profile = Profile(n)
        profile.add_voters(sets)
        every = {"resolute": False, "max_num_of_committees": None}
        answer = abc.compute(theirs, profile, seats, algorithm=exact_algorithm(abc, theirs), **every)
        found = RULES[name].run(rated(n, sets, [1] * len(sets)), seats=seats, **params).record.committees
        assert sorted(tuple(sorted(c)) for c in answer) == sorted(found), (sets, seats)
        several += len(found) > 1
    assert several > 2


def exact_algorithm(abc, rule):
    """Exact arithmetic where theirs has it; no solver that may not be there."""
    known = abc.Rule(rule).algorithms
    return next(one for one in ("standard-fractions", "standard", "branch-and-bound", "brute-force") if one in known)


@pytest.mark.filterwarnings("ignore")
def test_the_first_items_by_approval_are_the_committee_of_abcvoting():
    abc = pytest.importorskip("abcvoting.abcrules", reason="abcvoting is not installed")
    from abcvoting.preferences import Profile

    rng = np.random.default_rng(2)
    for _ in range(EXAMPLES):
        n, sets, seats = random_profile(rng)
        profile = Profile(n)
        profile.add_voters(sets)
        answer = [set(c) for c in abc.compute("av", profile, seats, resolute=False, max_num_of_committees=None)]
        scores = RULES["approval"](rated(n, sets, [1] * len(sets)))
        sure = {k for k in range(n) if sum(scores >= scores[k]) <= seats}
        may = {k for k in range(n) if sum(scores > scores[k]) < seats}
        assert sure == set.intersection(*answer)
        assert may == set.union(*answer)


# Weights, what is approved, vacant seats, limits


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10)
@given(votes=approvals(), seats=st.integers(1, 3), factor=st.sampled_from([2, 0.1, 1 / 7]))
def test_weights_count_ballots_and_their_unit_does_not_matter(name, votes, seats, factor):
    n, sets, weights = votes
    seats, counts = min(seats, n), [max(int(w), 1) for w in weights]
    once = RULES[name].run(rated(n, sets, counts), seats=seats).record.committees
    copies = [one for one, w in zip(sets, counts) for _ in range(w)]
    assert RULES[name].run(rated(n, copies, [1] * len(copies)), seats=seats).record.committees == once
    assert RULES[name].run(rated(n, sets, [factor * w for w in counts]), seats=seats).record.committees == once


def test_whole_weights_keep_ratios_and_sums():
    whole, unit = whole_weights(np.array([0.1, 0.2, 0.3, 0.0]))
    assert whole.tolist() == [1, 2, 3, 0]
    assert unit == pytest.approx(0.1)
    assert whole_weights(np.array([0.1, 0.25]))[0].tolist() == [2, 5]
    odd = np.array([np.pi, np.e, 1.0])
    whole, unit = whole_weights(odd)
    assert whole * unit == pytest.approx(odd, rel=1e-12)
    assert whole_weights(np.zeros(2))[0].tolist() == [0, 0]


def test_tiers_and_thresholds_say_what_is_approved():
    plain = Rankings.from_orders([[("a", "b"), "c"], ["c"], ["c"]])
    assert RULES["seq-pav"].run(plain, seats=1).record.elected == ("c",)
    stars = {"who": list("uuuvvv"), "what": list("abcabc"), "stars": [5, 4, 1, 1, 4, 5]}
    rated = Rankings.from_scores(stars, ballot="who", item="what", score="stars")
    assert RULES["phragmen"].run(rated, threshold=4).record.elected == ("b",)
    assert RULES["phragmen"].run(rated, threshold=5).record.committees == (("a",), ("c",))
    with pytest.raises(DataError, match="'phragmen' needs ratings"):
        placet.consensus(plain, "phragmen", threshold=4)


def test_a_ballot_that_rates_all_0_approves_nothing():
    votes = rated(2, [{0}, set(), set()], [1, 1, 1])
    assert RULES["approval"](votes).tolist() == [1, 0]
    assert RULES["approval"](rated(2, [{0, 1}], [1])).tolist() == [1, 1]


@pytest.mark.parametrize("name", NAMES)
def test_seats_that_nobody_approves_an_item_for_stay_vacant(name):
    votes = rated(4, [{0}, {0, 2}, set()], [1, 1, 1])
    found = placet.consensus(votes, name, seats=3)
    assert found.record.elected == (0, 2)
    assert "1 of 3 seats stays vacant" in found.notes
    none = placet.consensus(rated(3, [set()], [1]), name, seats=2)  # and nobody is elected
    assert none.record.elected == ()
    assert none.scores.tolist() == [0, 0, 0]


def test_every_ballot_has_its_share_of_all_seats():
    votes = rated(4, [{0}, {1}, {1}, set()], [1, 1, 1, 1])  # 3 / 4 each: 0 is not paid, 2 and 3 are not approved
    assert RULES["equal-shares"].run(votes, seats=3, completion="none").record.elected == (1,)
    assert RULES["equal-shares"].run(votes, seats=4, completion="none").record.elected == (0, 1)


@pytest.mark.parametrize("name", NAMES)
def test_seats_are_checked_and_ties_are_said(name):
    votes = rated(3, [{0}, {1}, {2}], [1, 1, 1])
    with pytest.raises(ValueError, match="seats must be a whole number in 1..3"):
        placet.consensus(votes, name, seats=4)
    found = placet.consensus(votes, name, seats=2)
    assert any(note.startswith("3 committees tie") and "0 in all of them, 3 in some" in note for note in found.notes)
    assert found.record.committees == ((0, 1), (0, 2), (1, 2))
    assert found.ranking == [(0, 1, 2)]
    assert found.record.tied == (0, 1, 2)


@pytest.mark.parametrize("name", NAMES)
def test_more_ties_than_can_be_told_are_refused(name, monkeypatch):
    monkeypatch.setattr(approval_profile, "MOST_COMMITTEES", 5)
    with pytest.raises(DataError, match="more than 5 committees tie"):
        placet.consensus(rated(6, [{k} for k in range(6)], [1] * 6), name, seats=3)


def test_a_search_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(best_committee, "MOST_NODES", 3)
    votes = rated(6, [{0, 1, 2}, {3, 4}, {5, 1}, {2, 5, 3}], [1] * 4)
    with pytest.raises(DataError, match="use 'seq-pav' or 'phragmen'"):
        placet.consensus(votes, "pav", seats=3)


def test_the_record_holds_rounds_and_committees():
    votes = Rankings.from_orders([[("a", "b")]] * 3 + [[("c", "d")]] * 2)
    record = placet.consensus(votes, "equal-shares", seats=3).record
    first = [row for row in record.rows() if row["count"] == 1 and row["action"]]
    assert [row["action"] for row in first] == ["is elected", "is elected", "is elected by the completion"]
    assert first[0]["votes"] == pytest.approx(3)
    assert record.to_dict()["committees"] == record.committees
    assert record.to_frame().height == len(record.rows())
    other = record.renamed(["A", "B", "C", "D"])
    assert other.committees[0] == ("A", "B", "C")
    removed = placet.consensus(votes, "rev-seq-pav", seats=3).record
    assert [row["action"] for row in removed.rows() if row["action"]] == ["is removed"] * removed.ways
    assert removed.rows()[0]["votes"] == pytest.approx(1.5)


def test_pav_of_thirty_items_in_a_moment():
    rng = np.random.default_rng(0)
    table = rng.random((200, 30)) < 0.15
    votes = rated(30, [set(np.flatnonzero(row).tolist()) for row in table], [1] * 200)
    best = placet.consensus(votes, "pav", seats=5).record
    steps = placet.consensus(votes, "seq-pav", seats=5).record
    sets = [set(np.flatnonzero(row).tolist()) for row in table]
    assert pav_worth(sets, [1] * 200, best.committees[0]) >= pav_worth(sets, [1] * 200, steps.committees[0])
