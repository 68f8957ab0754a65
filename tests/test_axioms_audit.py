"""The audit of real and small ballots: its facts by counting, its numbers by exhaustion, its words as they are read."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import placet
from placet.aggregate import RULES, consensus
from placet.aggregate.likelihood import PlackettLuce
from placet.aggregate.positional import POSITIONAL, positional
from placet.axioms import agreement, audit
from placet.axioms.outcome import rule_of
from placet.axioms.sensitivity import fewest, item_points
from placet.data import Comparisons, Rankings
from placet.io.preflib import write_preflib
from placet.report.page import consensus_page

check = settings(deadline=None, max_examples=40)
FIVE = [["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2


@st.composite
def ballots(draw, max_items=4, complete=False):
    n = draw(st.integers(2, max_items))
    orders = []
    for _ in range(draw(st.integers(1, 6))):
        order = draw(st.permutations(range(n)))
        m = n if complete else draw(st.integers(1, n))
        cut = draw(st.lists(st.booleans(), min_size=m, max_size=m))
        tiers = []
        for item, joins in zip(order[:m], cut):
            tiers = [*tiers[:-1], (*tiers[-1], item)] if joins and tiers else [*tiers, (item,)]
        orders.append(tiers)
    weight = draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, 0.5]), min_size=len(orders), max_size=len(orders)))
    return Rankings.from_orders(orders, items=range(n), weight=weight)


def count(votes, x, y):
    """Weight for x above y, below, and level, ballot by ballot."""
    tally = [0.0, 0.0, 0.0]
    for ballot, w in zip(votes, votes.weight):
        place = {item: t for t, tier in enumerate(ballot) for item in tier}
        if x in place and y in place:
            tally[(place[x] > place[y]) + 2 * (place[x] == place[y])] += w
    return tally


@check
@given(ballots(), st.sampled_from(["borda", "plurality", "copeland", "median-rank"]))
def test_facts_are_those_of_counting(votes, name):
    found = audit(name, votes)
    rank = dict(zip(votes.items, found.consensus.ranks))
    pairs = list(itertools.permutations(votes.items, 2))
    tally = {pair: count(votes, *pair) for pair in pairs}
    majorities = {pair for pair, (more, less, _) in tally.items() if more > less}
    contradicted = {(x, y) for x, y in majorities if not rank[x] < rank[y]}
    assert found.majorities == len(majorities)
    assert {(d.x, d.y) for d in found.contradicted} == contradicted
    for duel in found.contradicted:
        assert [duel.wins, duel.losses, duel.ties] == tally[duel.x, duel.y]
        assert duel.level == (rank[duel.x] == rank[duel.y])
    margins = [(tally[p][0] + tally[p][2] / 2) / sum(tally[p]) - 0.5 for p in contradicted]
    assert found.epsilon == pytest.approx(max(margins, default=0.0))
    assert [d.margin for d in found.contradicted] == sorted((d.margin for d in found.contradicted), reverse=True)
    assert set(found.pareto) == {p for p, (more, less, level) in tally.items() if more > 0 and less == level == 0}
    assert set(found.pareto_broken) == {(x, y) for x, y in found.pareto if not rank[x] < rank[y]}
    beats_all = [x for x in votes.items if all((x, y) in majorities for y in votes.items if y != x)]
    assert found.condorcet_winner == (beats_all[0] if beats_all else None)
    first = {x: sum(w / len(b[0]) for b, w in zip(votes, votes.weight) if x in b[0]) for x in votes.items}
    ahead = [x for x in votes.items if first[x] / votes.weight.sum() > 0.5 + 1e-12]
    assert found.majority_winner == (ahead[0] if ahead else None)
    assert {frozenset(group) for group in found.ties} == {
        frozenset(x for x in rank if rank[x] == r) for r in rank.values() if sum(q == r for q in rank.values()) > 1
    }
    assert [f.words for f in audit(name, votes).findings] == found.sentences()  # deterministic


@check
@given(ballots(), st.sampled_from(list(POSITIONAL)), st.sampled_from(["absent", "last", "zero"]))
def test_points_of_ballots_add_up_to_the_scores_of_the_rule(votes, name, unlisted):
    points = item_points(votes, rule_of(name).h, unlisted)
    scores = [votes.weight @ points(k) for k in range(votes.n_items)]
    np.testing.assert_allclose(scores, RULES[name](votes, unlisted=unlisted), atol=1e-9)


def changed_winner(orders, h, changed, winner):
    """Whether some new ballots of the chosen voters put another item strictly above (or level with) the winner."""
    n = len(h)
    above = level = False
    for new in itertools.product(itertools.permutations(range(n)), repeat=len(changed)):
        cast = list(orders)
        for k, order in zip(changed, new):
            cast[k] = order
        scores = np.zeros(n)
        for order in cast:
            scores[list(order)] += h
        rest = np.delete(scores, winner).max()
        above |= rest > scores[winner] + 1e-9
        level |= rest >= scores[winner] - 1e-9
    return above, level


@settings(deadline=None, max_examples=25)
@given(st.lists(st.permutations(range(3)), min_size=2, max_size=5), st.sampled_from([[2, 1, 0], [1, 0, 0], [5, 4, 0]]))
def test_fewest_ballots_are_those_of_exhaustion(orders, h):
    votes = Rankings.from_orders(orders, items=range(3))
    scores = positional(votes, h)
    winner = int(np.argmax(scores))
    assume((scores == scores[winner]).sum() == 1)
    found = audit("positional", votes, h=np.array(h, float)).sensitivity
    fewest_change = fewest_tie = None
    for k in range(1, len(orders) + 1):
        outcomes = [changed_winner(orders, h, c, winner) for c in itertools.combinations(range(len(orders)), k)]
        if fewest_tie is None and any(level for _, level in outcomes):
            fewest_tie = k
        if any(above for above, _ in outcomes):
            fewest_change = k
            break
    assert found.exact
    assert (found.to_change, found.to_tie) == (fewest_change, fewest_tie)
    searched = audit(lambda v: positional(v, h), votes).sensitivity  # the same rule, not known to be positional
    assert not searched.exact
    assert searched.to_change >= fewest_change
    assert searched.tried > 0


@check
@given(st.integers(0, 10_000), st.sampled_from(list(POSITIONAL)), st.booleans())
def test_no_rival_is_left_out(seed, name, whole):
    """The fewest over all rivals, of which the audit may skip those that cannot do with fewer."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(6).tolist() for _ in range(9)]
    weight = rng.integers(1, 4, 9) if whole else rng.uniform(0.3, 4, 9)
    votes = Rankings.from_orders(orders, items=range(6), weight=weight)
    found = audit(name, votes, compare=()).sensitivity
    assume(found.winner is not None)
    h = rule_of(name).h(6)
    points = item_points(votes, rule_of(name).h, "absent")
    scores = RULES[name](votes)
    needed = {}
    for rival in set(range(6)) - {found.winner}:
        gain = np.ptp(h) - (points(rival) - points(found.winner))
        needed[rival] = fewest(gain, votes.weight, scores[found.winner] - scores[rival] + 1e-9 * np.abs(scores).max())
    assert found.to_change == min(needed.values()) == needed[found.challenger]


def test_fewest_counts_votes_where_weights_are_whole_and_rows_where_not():
    assert fewest(np.array([3.0, 1.0]), np.array([2.0, 10.0]), 5.9) == 2
    assert fewest(np.array([3.0, 1.0]), np.array([2.0, 10.0]), 6.0) == 3
    assert fewest(np.array([3.0, 1.0]), np.array([0.5, 10.0]), 6.0) == 1
    assert fewest(np.array([3.0, -1.0]), np.array([1.0, 10.0]), 4.0) == np.inf


def test_sensitivity_of_a_tie_and_of_a_rule_that_cannot_change():
    tie = audit("borda", Rankings.from_orders([["a", "b"], ["b", "a"]])).sensitivity
    assert tie.winner is None
    assert tie.to_tie == 0
    fixed = audit(lambda v: np.array([1.0, 0.0]), Rankings.from_orders([["a", "b"], ["b", "a"]])).sensitivity
    assert fixed.to_change is None
    assert audit("copeland", Rankings.from_orders([["a", "b"]]), rivals=0).sensitivity is None


@check
@given(ballots(complete=True))
def test_contested_pairs_are_those_that_rules_order_in_opposite_ways(votes):
    names = ("borda", "plurality", "copeland")
    found = agreement(votes, names)
    ranks = {name: consensus(votes, name).ranks for name in names}
    seen = {}
    for x, y in itertools.combinations(range(votes.n_items), 2):
        seen[x, y] = {int(np.sign(r[y] - r[x])) for r in ranks.values()}
    assert {(c.x, c.y) for c in found.contested} == {pair for pair, signs in seen.items() if {1, -1} <= signs}
    assert found.levelled == sum(len(signs) > 1 and not {1, -1} <= signs for signs in seen.values())
    for c in found.contested:
        assert all(ranks[name][c.x] < ranks[name][c.y] for name in c.above)
        assert all(ranks[name][c.x] > ranks[name][c.y] for name in c.below)
        assert set(c.above) | set(c.below) | set(c.level) == set(names)
    assert (np.diag(found.distance) == 0).all()
    np.testing.assert_array_equal(found.distance, found.distance.T)


def test_words_are_those_of_a_layman():
    votes = Rankings.from_orders(FIVE)
    text = audit("borda", votes).sentences()
    assert "Three of five voters put A above B, yet B ends above A." in text
    assert "A is first on more than half of the ballots, yet ends at place 2." in text
    assert "A beats every other item one against one, yet ends at place 2." in text
    assert "All voters agree on 1 pair, and the ranking follows." in text
    assert "It takes one ballot, cast differently, to put A above B." in text
    level = audit("plurality", Rankings.from_orders([["A", "B", "C"], ["B", "A", "C"]])).sentences()
    assert "Ties are shown, not broken: A and B end level." in level
    chooses = audit("kemeny", Rankings.from_orders([["A", "B", "C"], ["B", "C", "A"], ["C", "A", "B"]])).sentences()
    assert any("Where several orders are equally good this rule takes one, the same each time." in s for s in chooses)


def test_words_count_voters_and_say_who_was_silent():
    votes = Rankings.from_orders([["A", "B"], ["A", "B"], ["C", "B"], ["C", "B"], ["C", "B"], ["C"]])
    text = audit(lambda v: [0.0, 1.0, 2.0], votes).sentences()
    assert "Both voters who rank both put A above B, yet B ends above A." in text
    assert any(
        s.startswith("All voters who rank both items agree on 2 pairs; the ranking does not follow 1") for s in text
    )
    half = Rankings.from_orders([["A", "B"], ["B", "A"]], weight=[1.5, 1.0])
    assert "60.0% of the voters put A above B, yet A and B end level." in audit(lambda v: [0.0, 0.0], half).sentences()
    one = Rankings.from_orders([["A", "B"]])
    assert "The one voter puts A above B, yet B ends above A." in audit(lambda v: [0.0, 1.0], one).sentences()


def test_near_misses():
    votes = Rankings.from_orders([["A", "B"]] * 51 + [["B", "A"]] * 49)
    assert [(d.x, d.y) for d in audit("borda", votes).near] == [("A", "B")]
    assert not audit("borda", votes, near=0.001).near
    level = Rankings.from_orders(
        [["A", "B", "C"]] * 49 + [["B", "A", "C"]] * 49 + [["C", "A", "B"]] + [["C", "B", "A"]]
    )
    found = {(f.check, f.verdict) for f in audit("borda", level).near_winners}
    assert found == {("condorcet", "near miss"), ("majority", "near miss")}


def test_models_functions_and_consensuses_are_audited_alike():
    votes = Rankings.from_orders([*FIVE, ["C", "A", "B"]])
    by_name = audit("plackett-luce", votes)
    model = PlackettLuce().fit(votes)
    for other in (model, consensus(votes, "plackett-luce"), PlackettLuce()):
        assert audit(other, votes).sentences() == by_name.sentences()
    assert audit(RULES["borda"], votes).theory
    assert audit(lambda v: RULES["borda"](v), votes).theory == ()
    assert audit("borda", votes).to_frame().columns == ["check", "verdict", "margin", "words"]
    assert audit("borda", votes).pairs_frame().height == len(audit("borda", votes).contradicted)


def test_pairs_are_audited_without_ballots():
    votes = Comparisons.from_battles(list("aabbc"), list("bbcca"), list("aabba"))
    found = audit("bradley-terry", votes)
    assert found.sensitivity is None
    assert found.majority_winner is None
    assert found.majorities == 3
    wrong = audit(lambda v: [0.0, 1.0, 2.0], votes).sentences()
    assert "Both votes put a above b, yet b ends above a." in wrong
    assert not any("first on more than half" in s or "voter" in s for s in wrong)
    assert any("some are unanimous (epsilon 0.5000)" in s for s in wrong)


def test_what_cannot_be_audited_says_so():
    votes = Rankings.from_orders(FIVE)
    with pytest.raises(ValueError, match="'brda' is unknown"):
        audit("brda", votes)
    with pytest.raises(TypeError, match="not list"):
        audit("borda", FIVE)
    with pytest.raises(ValueError, match="differ in their items"):
        audit(consensus(votes, "borda"), Rankings.from_orders([["A", "B"]]))
    with pytest.raises(ValueError, match="table of pairs"):
        audit("majority", votes)


def test_one_item_and_two_items():
    assert audit("borda", Rankings.from_orders([["a"]])).contradicted == ()
    two = audit("borda", Rankings.from_orders([["a", "b"]]))
    assert {v.axiom for v in two.theory if not v.kept} == {"universality"}


# The command and the page


def cli(*arguments):
    from typer.testing import CliRunner

    from placet.cli import app

    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_command_audits_a_file(tmp_path):
    path = tmp_path / "votes.soc"
    write_preflib(Rankings.from_orders(FIVE), path)
    table = cli("audit", path, "--rule", "borda")
    assert table.exit_code == 0, table.output
    assert "Three of five voters put A above B, yet B ends above A." in table.output
    data = json.loads(cli("audit", path, "--rule", "borda", "--json").output)
    assert data["epsilon"] == pytest.approx(0.1)
    assert data["condorcet_winner"] == "A"
    assert data["contradicted"][0]["x"] == "A"
    assert data["sensitivity"]["to_change"] == 1


def test_the_command_gives_the_theory_alone():
    rows = [line.split("\t") for line in cli("audit", "--rule", "log", "--items", "7").output.splitlines()]
    margin = {row[0]: row[2] for row in rows[1:]}
    assert float(margin["strong-condorcet"]) == pytest.approx(np.log(6) / (2 * np.log(49 / 6)))
    assert float(margin["majority"]) == pytest.approx(np.log(3.5) / (2 * np.log(14)))
    searched = json.loads(cli("audit", "--rule", "copeland", "--items", "3", "--voters", "2", "--json").stdout)
    verdict = {row["axiom"]: row["verdict"] for row in searched}
    assert verdict["condorcet"] == "not broken"
    assert verdict["universality"] == "broken"
    wrong = cli("audit")
    assert isinstance(wrong.exception, ValueError)
    assert "--items" in str(wrong.exception)


def test_the_page_has_an_audit():
    votes = Rankings.from_orders(FIVE)
    page = consensus_page(placet.consensus(votes, "borda"), votes)
    assert "<h2>Audit</h2>" in page
    assert "Three of five voters put A above B, yet B ends above A." in page
    assert "<h2>Audit</h2>" in consensus_page(placet.consensus(votes, "plackett-luce"), votes)
