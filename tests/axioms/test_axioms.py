"""Every axiom against brute force over all small profiles; margins against linear programs and their definitions."""

import functools
import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from placet.aggregate import RULES, consensus
from placet.aggregate.rules.positional import POSITIONAL, positional, positional_vector
from placet.axioms import (
    AXIOMS,
    RELAXED,
    Domain,
    Margins,
    Profile,
    as_method,
    explain,
    find_tie_between,
    majority_relation,
    margins,
    margins_table,
    rotations,
    search,
    worst_case,
)
from placet.axioms.checks import GENERAL
from placet.axioms.outcome import CachedMethod, relation
from placet.axioms.verdict import _limited_profiles, theorems
from placet.data import DataError, Rankings

check = settings(max_examples=30)
OF_VOTERS = ("non-dictatorship", "anonymity")

# Brute force: the definitions in plain Python, on tuples of ballots (the tier of each item)


def strict_above(answer, n):
    """{(x, y)}: x strictly above y, by scores or by a table."""
    values = np.asarray(answer, float)
    if values.ndim == 2:
        return frozenset((x, y) for x in range(n) for y in range(n) if values[x, y] > 0)
    close = 1e-9 * max(abs(values))
    return frozenset((x, y) for x in range(n) for y in range(n) if values[x] - values[y] > close)


@functools.lru_cache(maxsize=20_000)
def votes_of(profile, n):
    orders = [[tuple(x for x in range(n) if b[x] == t) for t in sorted(set(b))] for b, _ in profile]
    return Rankings.from_orders(orders, items=range(n), weight=[w for _, w in profile])


@functools.lru_cache(maxsize=100_000)
def share_of(p, x, y):
    weight = [Fraction(w) for _, w in p]
    parts = [Fraction(int(b[x] < b[y])) + Fraction(int(b[x] == b[y]), 2) for b, _ in p]
    return sum(w * q for w, q in zip(weight, parts)) / sum(weight)


class Brute:
    """One rule on all profiles of a domain, judged axiom by axiom."""

    def __init__(self, rule, n, voters, ties=False, weights=(1.0,), anonymous=False):
        self.rule, self.n, self.known = rule, n, {}
        self.anonymous = anonymous  # the order of ballots is not looked at: one answer for all orders
        self.pairs = list(itertools.permutations(range(n), 2))
        if ties:
            tiers = [t for t in itertools.product(range(n), repeat=n) if set(t) == set(range(len(set(t))))]
        else:
            tiers = list(itertools.permutations(range(n)))
        self.ties = ties
        cast = list(itertools.product(tiers, weights))
        self.ordered = [p for v in range(1, voters + 1) for p in itertools.product(cast, repeat=v)]
        self.profiles = [p for v in range(1, voters + 1) for p in itertools.combinations_with_replacement(cast, v)]

    def above(self, profile):
        profile = tuple(sorted(profile)) if self.anonymous else profile
        if profile not in self.known:
            try:
                self.known[profile] = strict_above(self.rule(votes_of(profile, self.n)), self.n)
            except DataError:
                self.known[profile] = None
        return self.known[profile]

    def answered(self, profiles=None):
        for p in self.profiles if profiles is None else profiles:
            if self.above(p) is not None:
                yield p, self.above(p)

    def share(self, p, x, y):
        return share_of(p, x, y)

    def tied(self, p, x, y):
        return sum(Fraction(w) for b, w in p if b[x] == b[y]) / sum(Fraction(w) for _, w in p)

    def first(self, p, x):
        return sum(Fraction(w) / b.count(0) for b, w in p if b[x] == 0) / sum(Fraction(w) for _, w in p)

    def wins(self, above, x):
        return all((x, y) in above for y in range(self.n) if y != x)

    def place(self, above, x):
        over = sum((y, x) in above for y in range(self.n))
        return over, self.n - 1 - sum((x, y) in above for y in range(self.n))

    def lifted(self, b, x):
        """Every ballot that agrees with b about the others and has x above more of them, or fewer above it."""
        tiers = sorted({b[y] for y in range(self.n) if y != x})
        others = [tiers.index(b[y]) if y != x else None for y in range(self.n)]
        spots = [2 * t - 1 for t in range(len(tiers) + 1)] + ([2 * t for t in range(len(tiers))] if self.ties else [])
        own = next(
            spot
            for spot in range(-1, 2 * len(tiers))
            if all(np.sign(spot - 2 * t) == np.sign(b[x] - b[y]) for y, t in enumerate(others) if t is not None)
        )
        for spot in spots:
            if spot < own:
                levels = [2 * t if t is not None else spot for t in others]
                yield tuple(sorted(set(levels)).index(level) for level in levels)

    # The axioms: True where the rule breaks them somewhere in the domain

    def universality(self):
        return any(
            a is None or any((x, y) not in a and (y, x) not in a for x, y in self.pairs)
            for a in map(self.above, self.profiles)
        )

    def transitivity(self):
        triples = list(itertools.permutations(range(self.n), 3))
        return any((x, y) in a and (y, z) in a and (x, z) not in a for _, a in self.answered() for x, y, z in triples)

    def pareto(self):
        return any((x, y) not in a and self.share(p, x, y) == 1 for p, a in self.answered() for x, y in self.pairs)

    def enough(self, share, epsilon):
        return share > Fraction(1, 2) and share >= Fraction(1, 2) + epsilon

    def strong_condorcet(self, epsilon=0):
        return any(
            (x, y) not in a and self.enough(self.share(p, x, y), epsilon)
            for p, a in self.answered()
            for x, y in self.pairs
        )

    def condorcet(self, epsilon=0):
        return any(
            not self.wins(a, x) and all(self.enough(self.share(p, x, y), epsilon) for y in range(self.n) if y != x)
            for p, a in self.answered()
            for x in range(self.n)
        )

    def majority(self, epsilon=0):
        return any(
            not self.wins(a, x) and self.enough(self.first(p, x), epsilon)
            for p, a in self.answered()
            for x in range(self.n)
        )

    def iia(self, epsilon=0):
        signs = {}
        for p, a in self.answered():
            for x, y in itertools.combinations(range(self.n), 2):
                share = self.share(p, x, y)
                if abs(share - Fraction(1, 2)) >= epsilon:
                    signs.setdefault((x, y, share, self.tied(p, x, y)), set()).add(((x, y) in a) - ((y, x) in a))
        return any(len(s) > 1 for s in signs.values())

    def monotonicity(self):
        for p, a in self.answered():
            for k, x in itertools.product(range(len(p)), range(self.n)):
                for ballot in self.lifted(p[k][0], x):
                    after = self.above((*p[:k], (ballot, p[k][1]), *p[k + 1 :]))
                    if after is not None:
                        before, now = self.place(a, x), self.place(after, x)
                        if now[0] > before[0] or now[1] > before[1]:
                            return True
        return False

    def consistency(self):
        for p, a in self.answered():
            for mask in range(1, 2 ** len(p) - 1):
                parts = [tuple(c for k, c in enumerate(p) if (mask >> k) % 2 == side) for side in (0, 1)]
                one, two = map(self.above, parts)
                if one is None or two is None:
                    continue
                if any(self.wins(one, x) and self.wins(two, x) and not self.wins(a, x) for x in range(self.n)):
                    return True
        return False

    def neutrality(self):
        for p, a in self.answered():
            for names in itertools.permutations(range(self.n)):
                renamed = tuple((tuple(b[names[x]] for x in range(self.n)), w) for b, w in p)
                after = self.above(renamed)
                if after is not None and any(((x, y) in after) != ((names[x], names[y]) in a) for x, y in self.pairs):
                    return True
        return False

    def anonymity(self):
        for p, a in self.answered(self.ordered):
            pooled = {}
            for b, w in p:
                pooled[b] = pooled.get(b, 0) + w
            for other in (
                tuple(sorted(p)),
                tuple(pooled.items()),
            ):  # all orders agree if each agrees with the sorted one
                after = self.above(other)
                if after is not None and after != a:
                    return True
        return False

    def non_dictatorship(self):
        answered = list(self.answered(self.ordered))
        for voters in {len(p) for p, _ in answered} - {1}:
            same = [(p, a) for p, a in answered if len(p) == voters]
            for d in range(voters):
                if all((x, y) in a for p, a in same for x, y in self.pairs if p[d][0][x] < p[d][0][y]):
                    return True
        return False


# Rules that keep and rules that break


def first_ballot(votes):
    scores = np.zeros(votes.n_items)
    scores[votes.item[: votes.offsets[1]]] = -votes.tier[: votes.offsets[1]]
    return scores


def imposed(votes):
    return -np.arange(votes.n_items, dtype=float)


def upside_down(votes):
    return -RULES["borda"](votes)


def middle(votes):
    return positional(votes, [0.0, 3.0, 1.0])


def only_odd(votes):
    if len(votes) % 2 == 0:
        raise DataError("an even number of ballots")
    return RULES["plurality"](votes)


def runoff(votes):
    """Two rounds: the two items with most first places, then the one that more ballots put above the other."""
    first = RULES["plurality"](votes)
    best = np.argsort(-first, kind="stable")[:2]
    duel = majority_relation(votes)[best[0], best[1]]
    scores = first.copy()
    scores[best] = 100 + np.sign(duel) * np.array([1, -1])
    return scores


ODD = {f.__name__: f for f in (first_ballot, imposed, upside_down, middle, only_odd, runoff, majority_relation)}
TESTED = [*POSITIONAL, "copeland", "median-rank", "footrule", "rrf", "kemeny", *ODD]


def rule(name):
    return ODD.get(name) or RULES[name]


def compare(name, brute, domain, axioms):
    see = CachedMethod(rule(name))
    for axiom in axioms:
        broken = getattr(brute, axiom.replace("-", "_"))()
        found = search(axiom, see, domain, limit=10**9)
        assert (found.witness is not None) == broken, axiom
        assert found.complete == (not broken)
        if found.witness:
            assert found.witness.axiom == axiom
            assert explain(found.witness).endswith(".")
            for profile, outcome in zip(found.witness.profiles, found.witness.outcomes):
                seen = brute.above(tuple(zip(profile.ballots, profile.weight)))
                assert seen == (None if outcome is None else frozenset(map(tuple, np.argwhere(outcome).tolist())))


@pytest.mark.parametrize("name", TESTED)
def test_verdicts_are_those_of_brute_force_on_all_profiles_of_three_items_and_five_voters(name):
    brute = Brute(rule(name), 3, 5, anonymous=name != "first_ballot")
    compare(name, brute, Domain(3, 5), [a for a in GENERAL if a not in OF_VOTERS])


@pytest.mark.parametrize("name", ["first_ballot", "copeland"])
def test_verdicts_on_voters_are_those_of_brute_force_up_to_five(name):
    compare(name, Brute(rule(name), 3, 5), Domain(3, 5), OF_VOTERS)


@pytest.mark.parametrize("name", [n for n in TESTED if n not in ("first_ballot", "copeland")])
def test_verdicts_on_voters_are_those_of_brute_force_up_to_three(name):
    compare(name, Brute(rule(name), 3, 3), Domain(3, 3), OF_VOTERS)


@pytest.mark.parametrize(
    "name", ["borda", "anti-plurality", "copeland", "median-rank", "first_ballot", "middle", "only_odd"]
)
def test_verdicts_are_those_of_brute_force_with_ties_on_ballots(name):
    compare(name, Brute(rule(name), 3, 2, ties=True), Domain(3, 2, ties=True), GENERAL)


@pytest.mark.parametrize("name", ["plurality", "copeland", "first_ballot"])
def test_verdicts_are_those_of_brute_force_with_weights(name):
    weights = (1.0, 2.5)
    axioms = [a for a in GENERAL if a != "monotonicity"]  # a lift moves one vote or all of a weight, see below
    compare(name, Brute(rule(name), 3, 2, weights=weights), Domain(3, 2, weights=weights), axioms)


@pytest.mark.parametrize("name", ["borda", "median-rank", "runoff"])
@pytest.mark.parametrize("axiom", RELAXED)
def test_relaxed_axioms_are_those_of_brute_force(name, axiom):
    brute, see = Brute(rule(name), 3, 4), CachedMethod(rule(name))
    for epsilon in (Fraction(1, 20), Fraction(1, 6), Fraction(1, 4)):
        found = search(axiom, see, Domain(3, 4), epsilon=float(epsilon)).witness
        assert (found is not None) == getattr(brute, axiom.replace("-", "_"))(epsilon), epsilon
        assert found is None or found.margin >= epsilon - Fraction(1, 10**9)


def test_runoff_breaks_monotonicity():
    """The classical example: 17 voters, two of whom lift the winner, who then loses."""
    before = Profile(((0, 1, 2), (2, 0, 1), (1, 2, 0), (1, 0, 2)), (6.0, 4.0, 5.0, 2.0), ("A", "B", "C"))
    found = AXIOMS["monotonicity"](before, runoff)
    assert found.items == ("A",)
    assert explain(found) == "A moves up on one ballot and drops from 1st to 2nd."
    assert found.profiles[1].weight == (6.0, 4.0, 5.0, 2.0)  # both of the two voters move


# One profile alone


def test_one_profile_is_searched_with_its_neighbours():
    votes = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]])
    assert AXIOMS["iia"](votes, "borda").items == ("a", "b")
    assert AXIOMS["anonymity"](votes, first_ballot) is not None
    assert AXIOMS["non-dictatorship"](votes, first_ballot).voter == 0
    assert AXIOMS["neutrality"](votes, imposed).items == ("a", "b")
    assert AXIOMS["consistency"](votes, "kemeny") is None
    for axiom in ("anonymity", "non-dictatorship", "neutrality", "monotonicity"):
        assert AXIOMS[axiom](votes, "borda") is None


def test_many_voters_are_not_permuted_in_every_way():
    orders = [["a", "b", "c"]] * 3 + [["c", "b", "a"]] * 20
    votes = Rankings.from_orders(orders)
    assert AXIOMS["anonymity"](votes, "borda") is None
    assert AXIOMS["anonymity"](votes, first_ballot) is not None
    assert AXIOMS["consistency"](votes, "plurality") is None
    assert AXIOMS["non-dictatorship"](votes, "copeland") is None


def test_a_model_that_listens_to_who_voted_breaks_anonymity():
    orders = [["a", "b", "c", "d"]] * 3 + [["d", "b", "c", "a"], ["d", "c", "b", "a"], ["b", "a", "d", "c"]]
    votes = Rankings.from_orders(orders, agent=["u", "u", "u", "v", "v", "w"])

    def by_agent(data):
        first = data.agent[0] if data.agent is not None else 0
        own = data.weight * np.where(data.agent == first, 5.0, 1.0) if data.agent is not None else data.weight
        return RULES["borda"](Rankings(data.item, data.tier, data.offsets, own, items=data.items))

    assert AXIOMS["anonymity"](votes, by_agent) is not None
    assert AXIOMS["anonymity"](votes, "borda") is None


def test_search_is_bounded_seeded_and_says_what_it_saw():
    domain = Domain(4, 4)
    drawn = [search("condorcet", "copeland", domain, limit=400, random_state=3) for _ in range(2)]
    assert [v.searched for v in drawn] == [400, 400]
    assert not drawn[0].complete
    assert drawn[0].kept is None
    assert search("condorcet", "copeland", Domain(4, 2), limit=200).searched == 200  # of 24 + 300
    sizes = [len(p.ballots) for p in _limited_profiles(Domain(4, 4), 400, np.random.default_rng(0))]
    assert [sizes.count(v) for v in (1, 2, 3, 4)] == [24, 300, 38, 38]
    found = [search("strong-condorcet", "plurality", domain, limit=400) for _ in range(2)]
    assert found[0].witness.profiles == found[1].witness.profiles
    with pytest.raises(ValueError, match="'consitency' is unknown.*; choose from"):
        search("consitency", "borda")
    with pytest.raises(ValueError, match="no relaxed form"):
        search("pareto", "borda", epsilon=0.1)
    with pytest.raises(ValueError, match="8 items have too many ballots to search; from 1 to 7"):
        search("pareto", "kemeny", Domain(8))


@check
@given(st.integers(2, 4), st.integers(1, 3), st.booleans(), st.booleans())
def test_domains_hold_as_many_profiles_as_they_say(n, voters, ties, ordered):
    domain = Domain(n, min(voters, 2) if n > 3 else voters, ties and n < 4, ordered=ordered)
    profiles = list(domain)
    assert len(profiles) == domain.size() == len(set(profiles))


# Margins


def definition(h):
    n = len(h)
    falls = [h[i] - h[j] for i in range(n) for j in range(i + 1, n)]
    return max(falls), min(falls), min(h[0] - h[j] for j in range(1, n))


POINTS = st.lists(st.integers(-6, 6), min_size=2, max_size=5).map(lambda v: np.array(v, float))


@check
@given(POINTS)
def test_margins_are_the_worst_cases_of_linear_programmes(h):
    m = Margins(h)
    assert (m.Omega, m.omega, m.omega_1) == definition(h)
    for axiom, margin in (
        ("strong-condorcet", m.strong_condorcet_margin),
        ("majority", m.majority_margin),
        ("condorcet", m.condorcet_margin),
    ):
        case = worst_case(axiom, h)
        assert case.margin == pytest.approx(margin, abs=1e-7), axiom
        if margin > 1e-6:  # at a share of one half exactly there is no majority
            assert AXIOMS[axiom](case.profiles[0], CachedMethod(lambda v: positional(v, h))) is not None
    assert np.isnan(worst_case("pareto", h).share) == m.pareto
    iia = worst_case("iia", h)
    assert np.isnan(iia.share) if m.constant else iia.margin == pytest.approx(m.iia_margin, abs=1e-7)


@check
@given(POINTS)
def test_verdicts_of_positional_rules_are_those_of_the_theorems_and_come_with_witnesses(h):
    n = len(h)
    found = {v.axiom: v for v in theorems(h, n)}
    for v in found.values():
        assert v.proved
        assert v.kept == (v.witness is None)
    falls = np.diff(h)
    assert found["pareto"].kept == (falls < 0).all()
    assert found["monotonicity"].kept == (falls <= 0).all()
    assert found["iia"].kept == (n == 2 or (falls == 0).all())


@pytest.mark.parametrize("name", POSITIONAL)
def test_theorems_agree_with_a_search_of_small_profiles(name):
    """A search can only miss what theory says is broken; its margins stay within the exact ones."""
    seen = CachedMethod(rule(name))
    for v in (v for v in theorems(name, 3) if v.axiom not in OF_VOTERS):
        found = search(v.axiom, seen, Domain(3, 3))
        assert not (v.kept and found.witness), v.axiom
        if v.margin is not None and found.witness:
            assert found.witness.margin <= v.margin + 1e-9
        if v.axiom in RELAXED and v.margin < 0.5:
            assert search(v.axiom, seen, Domain(3, 3), epsilon=v.margin + 1e-6).witness is None


@pytest.mark.parametrize("n", [2, 3, 5, 7, 20])
def test_tables_hold_the_closed_forms_with_the_slips_corrected(n):
    log = np.log
    table = {row.pop("rule"): row for row in margins_table(n)}
    expected = {
        "borda": (n - 1, 1, 1),
        "plurality": (1, 0 if n > 2 else 1, 1),
        "anti-plurality": (1, 0 if n > 2 else 1, 0 if n > 2 else 1),
        "log": (log(n), log(n / (n - 1)), log(2)),
        "squared": (n**2 - 1, 3, 3),
    }
    for name, values in expected.items():
        assert list(table[name].values())[:3] == pytest.approx(values), name
    strong = {
        "borda": 0.5 - 1 / n,
        "plurality": 0.5 if n > 2 else 0,
        "anti-plurality": 0.5 if n > 2 else 0,
        "log": log(n - 1) / (2 * log(n**2 / (n - 1))),
        "squared": (n**2 - 4) / (2 * (n**2 + 2)),
    }
    majority = strong | {"plurality": 0.0, "log": log(n / 2) / (2 * log(2 * n))}
    for name in expected:
        row = table[name]
        assert row["iia"] == pytest.approx(row["strong-condorcet"]) == pytest.approx(strong[name], abs=1e-12)
        assert row["majority"] == pytest.approx(majority[name], abs=1e-12)
        assert majority[name] - 1e-9 <= row["condorcet"] <= strong[name] + 1e-9


@check
@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=12), st.floats(-5, 5), st.floats(0.1, 10))
def test_borda_has_the_least_margin_of_all_positional_rules(falls, shift, scale):
    """Theorem 11, and lemma 1; margins do not change when points are shifted or stretched."""
    h = np.concatenate([[0.0], -np.cumsum(falls)])
    m, n = Margins(h), len(h)
    assert m.Omega >= (n - 1) * m.omega - 1e-9
    assert m.strong_condorcet_margin >= margins("borda", n).strong_condorcet_margin - 1e-9
    moved = Margins(shift + scale * h)
    assert moved.strong_condorcet_margin == pytest.approx(m.strong_condorcet_margin, abs=1e-6)
    assert moved.majority_margin == pytest.approx(m.majority_margin, abs=1e-6)
    assert moved.iia_margin == pytest.approx(m.iia_margin, abs=1e-6)


def test_for_the_condorcet_criterion_borda_is_not_the_best():
    """The paper's margin is that of the strong form; a Condorcet winner must beat everyone, which leaves less room."""
    assert margins("log", 5).condorcet_margin < margins("borda", 5).condorcet_margin - 0.05
    assert margins("log", 5).strong_condorcet_margin > margins("borda", 5).strong_condorcet_margin


def test_a_wide_programme_is_the_narrow_one():
    h = positional_vector("log", 6)
    assert worst_case("condorcet", h).margin == pytest.approx(Margins(h).condorcet_margin, abs=1e-9)
    with pytest.raises(ValueError, match="too many orders; from 2 to"):
        worst_case("condorcet", np.arange(9.0))
    with pytest.raises(ValueError, match="axiom with a worst case 'anonymity' is unknown"):
        worst_case("anonymity", h)
    with pytest.raises(ValueError, match="two or more finite points"):
        Margins([1.0, np.nan])
    with pytest.raises(ValueError, match="how many items"):
        margins("borda")


# Impossibility by construction


@pytest.mark.parametrize("name", ["borda", "log", "squared", "plackett-luce"])
def test_a_continuous_rule_that_follows_unanimity_ties_somewhere(name):
    """Theorem 9, for positional rules and a likelihood."""
    found = find_tie_between(name, [0, 1, 2], [1, 2, 0], 0, 1, steps=80)
    assert found.items == ("A", "B")
    above = found.outcomes[0]
    assert not above[0, 1]
    assert not above[1, 0]
    share = found.profiles[0].weight[0]
    if name in POSITIONAL:
        h = positional_vector(name, 3)
        assert share == pytest.approx((h[0] - h[2]) / (h[0] - h[2] + h[0] - h[1]), abs=1e-8)


def test_a_rule_that_jumps_has_no_tie_on_the_way():
    def jumps(votes):
        scores = RULES["borda"](votes)
        return [1.0 if scores[0] >= scores[1] else -1.0, 0.0, -2.0]

    assert find_tie_between(jumps, [0, 1, 2], [1, 2, 0], 0, 1) is None
    with pytest.raises(ValueError, match="must put 0 above 1 on the first ballot"):
        find_tie_between("borda", [0, 1, 2], [0, 1, 2], 0, 1)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_no_rule_follows_all_majorities_of_a_rotations(n):
    """Proposition 5 (n = 3: 1/6), with its form for n items: 1/2 - 1/n, which is Borda's margin."""
    for name in ("borda", "copeland", "kemeny", "median-rank", "plackett-luce"):
        found = AXIOMS["strong-condorcet"](rotations(n), name, epsilon=0.5 - 1 / n)
        assert found is not None
        assert found.margin == pytest.approx(0.5 - 1 / n)
    assert margins("borda", n).strong_condorcet_margin == pytest.approx(0.5 - 1 / n)
    assert AXIOMS["strong-condorcet"](rotations(n), "majority") is None
    assert AXIOMS["transitivity"](rotations(n), "majority") is not None


# The table


@pytest.mark.parametrize("name", RULES)
def test_the_scores_of_a_rule_order_items_as_its_consensus_does(name):
    rng = np.random.default_rng(5)
    for _ in range(20):
        orders = [rng.permutation(4)[: rng.integers(1, 5)].tolist() for _ in range(7)]
        data = Rankings.from_orders([[f"i{k}" for k in order] for order in orders], items=[f"i{k}" for k in range(4)])
        method = as_method(name)
        try:
            expected = relation(method.run(data), 4)
        except DataError:
            with pytest.raises(DataError):
                method.outcome(data)
            continue
        assert (method.outcome(data) == expected).all()


def test_every_rule_and_model_can_be_asked():
    profile = Domain(3, 1).profile((((0, 1, 2), 1.0), ((1, 2, 0), 1.0), ((0, 2, 1), 1.0)))
    for name in [*RULES, "plackett-luce", "mpm"]:
        method, seen = as_method(name), []
        kind = "run" if method.scores is None else "scores"
        ask = getattr(method, kind)
        see = CachedMethod(replace(method, **{kind: lambda data, ask=ask, seen=seen: seen.append(data) or ask(data)}))
        for axiom in ("universality", "transitivity", "pareto", "majority", "condorcet", "strong-condorcet"):
            AXIOMS[axiom](profile, see)
        assert len(seen) == 1


def test_rules_come_by_name_function_model_or_consensus():
    votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    answers = {
        AXIOMS["strong-condorcet"](votes, r).method
        for r in ("borda", RULES["borda"], consensus(votes, "borda"), lambda v: RULES["borda"](v))
    }
    assert answers == {"borda", "<lambda>"}
    with pytest.raises(ValueError, match="method 'brda' is unknown"):
        AXIOMS["pareto"](votes, "brda")
    with pytest.raises(TypeError, match="not int"):
        AXIOMS["pareto"](votes, 3)
    with pytest.raises(ValueError, match="must give 3 scores"):
        AXIOMS["pareto"](votes, lambda v: np.zeros(2))
    assert "not finite" in AXIOMS["universality"](votes, lambda v: np.full(3, np.nan)).reason


@pytest.mark.parametrize("weight", [(1.0,), (1.0, np.nan), (1.0, -1.0), (1.0, np.inf)])
def test_a_profile_has_a_valid_weight_for_each_ballot(weight):
    with pytest.raises(DataError, match="a weight of at least 0 for each of its 2 ballots"):
        Profile(((0, 1), (1, 0)), weight, ("a", "b"))
