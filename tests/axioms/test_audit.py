"""The audit of real and small ballots: its facts by counting, its numbers by exhaustion, its words as they are read."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import placet
from placet.aggregate import RULES, consensus
from placet.aggregate.ballots.ballot_models import PlackettLuce
from placet.aggregate.rules.positional import POSITIONAL, positional
from placet.axioms import AXIOMS, audit, compare_methods
from placet.axioms.evidence import beyond_chance
from placet.axioms.outcome import as_method
from placet.axioms.profiles import PairWeights
from placet.axioms.sensitivity import fewest_ballots, item_points
from placet.data import Comparisons, Rankings
from placet.io.preflib import write_preflib
from placet.report.page import consensus_page

check = settings(max_examples=40)
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
    found = audit(votes, name)
    rank = dict(zip(votes.items, found.consensus.ranks))
    pairs = list(itertools.permutations(votes.items, 2))
    tally = {pair: count(votes, *pair) for pair in pairs}
    majorities = {pair for pair, (more, less, _) in tally.items() if more > less}
    contradicted = {(x, y) for x, y in majorities if not rank[x] < rank[y]}
    assert found.majorities == len(majorities)
    assert {(d.x, d.y) for d in found.contradicted} == contradicted
    for duel in found.contradicted:
        assert [duel.wins, duel.losses, duel.ties] == tally[duel.x, duel.y]
        assert duel.tied == (rank[duel.x] == rank[duel.y])
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
    assert [f.text for f in audit(votes, name).findings] == found.sentences()  # deterministic


@check
@given(ballots(), st.sampled_from(list(POSITIONAL)), st.sampled_from(["absent", "last", "zero"]))
def test_points_of_ballots_add_up_to_the_scores_of_the_rule(votes, name, unlisted):
    points = item_points(votes, as_method(name).h, unlisted)
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


@settings(max_examples=25)
@given(st.lists(st.permutations(range(3)), min_size=2, max_size=5), st.sampled_from([[2, 1, 0], [1, 0, 0], [5, 4, 0]]))
def test_fewest_ballots_are_those_of_exhaustion(orders, h):
    votes = Rankings.from_orders(orders, items=range(3))
    scores = positional(votes, h)
    winner = int(np.argmax(scores))
    assume((scores == scores[winner]).sum() == 1)
    found = audit(votes, "positional", h=np.array(h, float)).sensitivity
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
    searched = audit(votes, lambda v: positional(v, h)).sensitivity  # the same rule, not known to be positional
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
    found = audit(votes, name, compare=()).sensitivity
    assume(found.winner is not None)
    h = as_method(name).h(6)
    points = item_points(votes, as_method(name).h, "absent")
    scores = RULES[name](votes)
    needed = {}
    for rival in set(range(6)) - {found.winner}:
        gain = np.ptp(h) - (points(rival) - points(found.winner))
        needed[rival] = fewest_ballots(
            gain, votes.weight, scores[found.winner] - scores[rival] + 1e-9 * np.abs(scores).max()
        )
    assert found.to_change == min(needed.values()) == needed[found.challenger]


def test_fewest_counts_votes_where_weights_are_whole_and_rows_where_not():
    assert fewest_ballots(np.array([3.0, 1.0]), np.array([2.0, 10.0]), 5.9) == 2
    assert fewest_ballots(np.array([3.0, 1.0]), np.array([2.0, 10.0]), 6.0) == 3
    assert fewest_ballots(np.array([3.0, 1.0]), np.array([0.5, 10.0]), 6.0) == 1
    assert fewest_ballots(np.array([3.0, -1.0]), np.array([1.0, 10.0]), 4.0) == np.inf


@pytest.mark.parametrize("items", ["abcd", "dcba", "bcad"])
def test_the_challenger_among_equals_is_the_runner_up_and_then_the_first_name(items):
    orders, weight = [["d", "c", "b", "a"], ["d", "b", "c", "a"], ["c", "d", "a", "b"]], [4, 4, 1]
    for method in ("borda", "copeland"):  # c is ahead of b, and both need as many ballots
        found = audit(Rankings.from_orders(orders, items=items, weight=weight), method, compare=()).sensitivity
        assert (found.winner, found.challenger) == ("d", "c"), method
    even = Rankings.from_orders([["d", "c", "b"], ["d", "b", "c"]], items=items.replace("a", ""), weight=[4, 4])
    assert audit(even, "borda", compare=()).sensitivity.challenger == "b"


def test_sensitivity_of_a_tie_and_of_a_rule_that_cannot_change():
    tie = audit(Rankings.from_orders([["a", "b"], ["b", "a"]]), "borda").sensitivity
    assert tie.winner is None
    assert tie.to_tie == 0
    fixed = audit(Rankings.from_orders([["a", "b"], ["b", "a"]]), lambda v: np.array([1.0, 0.0])).sensitivity
    assert fixed.to_change is None
    assert audit(Rankings.from_orders([["a", "b"]]), "copeland", rivals=0).sensitivity is None


@check
@given(ballots(complete=True))
def test_contested_pairs_are_those_that_rules_order_in_opposite_ways(votes):
    names = ("borda", "plurality", "copeland")
    found = compare_methods(votes, names)
    ranks = {name: consensus(votes, name).ranks for name in names}
    seen = {}
    for x, y in itertools.combinations(range(votes.n_items), 2):
        seen[x, y] = {int(np.sign(r[y] - r[x])) for r in ranks.values()}
    assert {(c.x, c.y) for c in found.contested} == {pair for pair, signs in seen.items() if {1, -1} <= signs}
    assert found.tied_by_some == sum(len(signs) > 1 and not {1, -1} <= signs for signs in seen.values())
    for c in found.contested:
        assert all(ranks[name][c.x] < ranks[name][c.y] for name in c.above)
        assert all(ranks[name][c.x] > ranks[name][c.y] for name in c.below)
        assert set(c.above) | set(c.below) | set(c.tied) == set(names)
    assert (np.diag(found.distance) == 0).all()
    np.testing.assert_array_equal(found.distance, found.distance.T)


def test_words_are_those_of_a_layman():
    votes = Rankings.from_orders(FIVE)
    text = audit(votes, "borda").sentences()
    assert "Three of five voters put A above B, yet B ends above A." in text
    assert "A is first on more than half of the ballots, yet finishes 2nd." in text
    assert "A beats every other item head to head, yet finishes 2nd." in text
    assert "All voters agree on 1 pair, and the ranking follows." in text
    assert "Changing one ballot would put A above B." in text
    level = audit(Rankings.from_orders([["A", "B", "C"], ["B", "A", "C"]]), "plurality").sentences()
    assert "Ties are shown, not broken: A and B tie." in level
    chooses = audit(Rankings.from_orders([["A", "B", "C"], ["B", "C", "A"], ["C", "A", "B"]]), "kemeny").sentences()
    assert any("Where several orders are equally good this rule takes one, the same each time." in s for s in chooses)


def test_words_count_voters_and_say_who_was_silent():
    votes = Rankings.from_orders([["A", "B"], ["A", "B"], ["C", "B"], ["C", "B"], ["C", "B"], ["C"]])
    text = audit(votes, lambda v: [0.0, 1.0, 2.0]).sentences()
    assert "Both voters who rank both put A above B, yet B ends above A." in text
    assert any(
        s.startswith("All voters who rank both items agree on 2 pairs; the ranking does not follow 1") for s in text
    )
    half = Rankings.from_orders([["A", "B"], ["B", "A"]], weight=[1.5, 1.0])
    assert "60.0% of the voters put A above B, yet A and B tie." in audit(half, lambda v: [0.0, 0.0]).sentences()
    one = Rankings.from_orders([["A", "B"]])
    assert "The one voter puts A above B, yet B ends above A." in audit(one, lambda v: [0.0, 1.0]).sentences()


def test_near_misses():
    votes = Rankings.from_orders([["A", "B"]] * 51 + [["B", "A"]] * 49)
    assert [(d.x, d.y) for d in audit(votes, "borda").near] == [("A", "B")]
    assert not audit(votes, "borda", near=0.001).near
    even = Comparisons.from_battles(["A", "B", "A", "B"], ["B", "A", "C", "C"], ["a", "a", "a", "b"])
    assert [line.margin for line in audit(even, "bradley-terry").findings if line.check == "near misses"] == []
    level = Rankings.from_orders(
        [["A", "B", "C"]] * 49 + [["B", "A", "C"]] * 49 + [["C", "A", "B"]] + [["C", "B", "A"]]
    )
    found = {(f.check, f.verdict) for f in audit(level, "borda").near_winners}
    assert found == {("condorcet", "near miss"), ("majority", "near miss")}


def test_models_functions_and_consensuses_are_audited_alike():
    votes = Rankings.from_orders([*FIVE, ["C", "A", "B"]])
    by_name = audit(votes, "plackett-luce")
    model = PlackettLuce().fit(votes)
    for other in (model, consensus(votes, "plackett-luce"), PlackettLuce()):
        assert audit(votes, other).sentences() == by_name.sentences()
    assert audit(votes, RULES["borda"]).theory
    assert audit(votes, lambda v: RULES["borda"](v)).theory == ()
    assert audit(votes, "borda").to_frame().columns == ["check", "verdict", "margin", "text"]
    assert audit(votes, "borda").pairs_frame().height == len(audit(votes, "borda").contradicted)


def test_pairs_are_audited_without_ballots():
    votes = Comparisons.from_battles(list("aabbc"), list("bbcca"), list("aabba"))
    found = audit(votes, "bradley-terry")
    assert found.sensitivity is None
    assert found.majority_winner is None
    assert found.majorities == 3
    many = Comparisons.from_battles(list("aabbc") * 8, list("bbcca") * 8, list("aabba") * 8)
    wrong = audit(many, lambda v: [0.0, 1.0, 2.0]).sentences()
    assert "All 16 votes put a above b, yet b ends above a." in wrong
    assert not any("first on more than half" in s or "voter" in s for s in wrong)
    assert any("some are unanimous (epsilon 0.5000)" in s for s in wrong)


def test_a_pair_with_few_votes_is_no_broken_majority():
    few = Comparisons.from_battles(list("aabbc"), list("bbcca"), list("aabba"))
    found = audit(few, lambda v: [0.0, 1.0, 2.0])
    assert {f.check: f.verdict for f in found.findings if f.check in ("pareto", "strong-condorcet")} == {
        "pareto": "within chance",
        "strong-condorcet": "within chance",
    }
    assert not any(d.beyond for d in found.contradicted)
    assert any("None of these is beyond chance (95%, all pairs at once)." in s for s in found.sentences())
    assert not any("yet b ends above a" in s for s in found.sentences())
    lone = Comparisons.from_battles(["a"] * 3 + ["b"] * 30, ["b"] * 3 + ["c"] * 30, ["a"] * 33)
    verdicts = {f.check: (f.verdict, f.text) for f in audit(lone, lambda v: [0.0, 0.5, 1.0]).findings}
    assert verdicts["pareto"][0] == "broken"
    assert verdicts["pareto"][1].endswith("1 of these beyond chance: b above c.")
    winner = Comparisons.from_battles(list("aab") * 2, list("bcc") * 2, list("aaa") * 2)
    condorcet = {f.check: f for f in audit(winner, lambda v: [0.0, 1.0, -1.0]).findings}["condorcet"]
    assert condorcet.verdict == "within chance"
    assert condorcet.text.startswith("a beats every other item head to head, yet finishes 2nd; the votes")


@check
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=6))
def test_majorities_beyond_chance_are_those_of_holm_and_the_sign_test(counts):
    n = len(counts) + 1
    wins = np.zeros((n, n))
    for k, (w, l) in enumerate(counts):  # noqa: E741
        wins[0, k + 1], wins[k + 1, 0] = w, l
    p = {
        k + 1: min(1.0, sum(math.comb(w + l, x) for x in range(max(w, l), w + l + 1)) / 2 ** (w + l - 1))
        for k, (w, l) in enumerate(counts)  # noqa: E741
        if w + l
    }
    expected = np.zeros((n, n), bool)
    for step, k in enumerate(sorted(p, key=p.get)):
        if p[k] > 0.05 / (len(p) - step):
            break
        expected[(0, k) if wins[0, k] > wins[k, 0] else (k, 0)] = True
    np.testing.assert_array_equal(beyond_chance(PairWeights(wins, np.zeros((n, n)))), expected)


def test_what_cannot_be_audited_says_so():
    votes = Rankings.from_orders(FIVE)
    with pytest.raises(ValueError, match="'brda' is unknown"):
        audit(votes, "brda")
    with pytest.raises(TypeError, match="not list"):
        audit(FIVE, "borda")
    with pytest.raises(ValueError, match="differ in their items"):
        audit(Rankings.from_orders([["A", "B"]]), consensus(votes, "borda"))
    with pytest.raises(ValueError, match="table of pairs"):
        audit(votes, "majority")


def test_one_item_and_two_items():
    assert audit(Rankings.from_orders([["a"]]), "borda").contradicted == ()
    two = audit(Rankings.from_orders([["a", "b"]]), "borda")
    assert {v.axiom for v in two.theory if not v.kept} == {"universality"}


# The command and the page


def cli(*arguments):
    from typer.testing import CliRunner

    from placet.cli import app

    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_command_audits_a_file(tmp_path):
    path = tmp_path / "votes.soc"
    write_preflib(Rankings.from_orders(FIVE), path)
    table = cli("audit", path, "--method", "borda")
    assert table.exit_code == 0, table.output
    assert "Three of five voters put A above B, yet B ends above A." in table.output
    data = json.loads(cli("audit", path, "--method", "borda", "--json").output)
    assert data["epsilon"] == pytest.approx(0.1)
    assert data["condorcet_winner"] == "A"
    assert data["contradicted"][0]["x"] == "A"
    assert data["sensitivity"]["to_change"] == 1


def test_the_command_gives_the_theory_alone():
    rows = [line.split("\t") for line in cli("audit", "--method", "log", "--items", "7").output.splitlines()]
    margin = {row[0]: row[2] for row in rows[1:]}
    assert float(margin["strong-condorcet"]) == pytest.approx(np.log(6) / (2 * np.log(49 / 6)))
    assert float(margin["majority"]) == pytest.approx(np.log(3.5) / (2 * np.log(14)))
    searched = json.loads(cli("audit", "--method", "copeland", "--items", "3", "--voters", "2", "--json").stdout)
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


# Many instances, and none


def two_topics():
    orders = [*FIVE, ["D", "E"], ["E", "D"], ["D", "E"]]
    return Rankings.from_orders(orders, instance=[7] * 5 + [8] * 3, agent=["u", "v", "w", "u", "v", "u", "v", "w"])


def test_instances_are_audited_one_by_one_over_their_own_items_and_summed_up():
    data = two_topics()
    found = audit(data, "borda")
    assert list(found) == [7, 8]
    assert found[7].consensus.items == ("A", "B", "C")
    assert found[7].sentences() == audit(Rankings.from_orders(FIVE), "borda").sentences()
    assert found[8].consensus.ranking == ["D", "E"]
    assert audit(data, "borda", instance=7).sentences() == found[7].sentences()
    text = found.sentences()
    assert text[0] == "2 instances were audited, 2 to 3 items each."
    assert text[1] == "No two items tie in 2 of 2 instances."
    majority = "In 2 of 2 instances an item is first on more than half of the ballots; it wins in 1 of them, not in 7."
    assert majority in text
    pareto = "In 1 of 2 instances all voters agree on some pair of items; the ranking follows all such pairs there."
    assert pareto in text
    assert "The rankings contradict 1 of 4 pairwise majorities, the widest in 7 (epsilon 0.1000)." in text
    assert repr(found) == "AuditSet(borda: 2 instances, 1 of 4 majorities contradicted)"
    frame = found.instances_frame()
    assert frame["first"].to_list() == ["B", "D"]
    assert frame["condorcet_winner"].to_list() == ["A", "D"]
    assert frame["contradicted"].to_list() == [1, 0]


@pytest.mark.parametrize("method", ["copeland", "plackett-luce", lambda v: RULES["borda"](v), PlackettLuce()])
def test_every_kind_of_method_is_audited_by_instance(method):
    found = audit(two_topics(), method, compare=("borda",))
    assert [a.consensus.ranking[0] for a in found.values()][1] == "D"


def test_what_cannot_be_audited_by_instance_says_so():
    data = two_topics()
    with pytest.raises(ValueError, match=r"instance 9 is unknown; choose from 7, 8"):
        audit(data, "borda", instance=9)
    with pytest.raises(ValueError, match="these data have no instances"):
        audit(Rankings.from_orders(FIVE), "borda", instance=7)
    with pytest.raises(ValueError, match="many instances"):
        audit(data, consensus(Rankings.from_orders(FIVE), "borda"))


def test_a_method_is_audited_without_data():
    found = audit(None, "log", items=5)
    assert found.proved
    assert [f.check for f in found.findings] == list(AXIOMS)[:12]  # what theorems settle
    assert found.to_frame().columns == ["check", "verdict", "margin", "text"]
    searched = audit(None, "copeland", items=3, voters=2)
    assert not searched.proved
    assert "breaks universality" in repr(searched)
    with pytest.raises(ValueError, match="2 or more, not None"):
        audit(None, "log")
    with pytest.raises(ValueError, match="items=4 is for a method without data; these data have 3"):
        audit(Rankings.from_orders(FIVE), "borda", items=4)


def test_the_command_takes_reader_options_and_instances(tmp_path):
    ratings = tmp_path / "stars.csv"
    ratings.write_text("who,film,stars\n" + "".join(f"{u},{f},{s}\n" for u in "uvw" for f, s in zip("abc", (5, 3, 1))))
    named = ("-r", "user=who", "-r", "item=film", "-r", "rating=stars")
    found = json.loads(cli("audit", ratings, "--format", "ratings", *named, "-m", "borda", "--json").stdout)
    assert found["ranking"] == ["a", "b", "c"]
    agg = tmp_path / "runs.txt"
    agg.write_text(
        "".join(f"2 qid:{q} 1:{a} 2:{b} #docid = {d}\n" for q in (1, 2) for d, a, b in [("x", 1, 2), ("y", 2, 1)])
    )
    table = cli("audit", agg, "--format", "letor-agg", "-m", "borda")
    assert table.exit_code == 0, table.output
    assert "2 instances were audited, 2 items each." in table.output
    data = json.loads(cli("audit", agg, "--format", "letor-agg", "--json").stdout)
    assert [row["items"] for row in data["instances"]] == [2, 2]
    one = json.loads(cli("audit", agg, "--format", "letor-agg", "--instance", "2", "--json").stdout)
    assert one["majorities"] == 0
    assert "choose from" in str(cli("audit", agg, "--format", "letor-agg", "--instance", "3").exception)


def test_models_that_learn_about_agents_are_audited_on_what_all_instances_gave():
    data = two_topics()
    whole = consensus(data, "mpm")
    found = audit(data, "mpm", compare=())
    for name, own in found.items():
        assert own.consensus.ranking == whole[name].ranking
    assert audit(data, whole, compare=()).sentences() == found.sentences()
