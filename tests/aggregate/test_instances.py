"""The one door: instances are split once for every method, and each is answered as if it were alone."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from html_pages import parsed
from hypothesis import given, settings, strategies as st

import placet
from placet.aggregate import (
    METHODS as RECORDS,
    MODELS,
    RULES,
    Consensus,
    ConsensusSet,
    consensus,
    consensus_door as door,
)
from placet.aggregate.instances import split
from placet.data import Comparisons, DataError, Rankings
from placet.report import consensus_page

METHODS = [*MODELS, *RULES]
check = settings(max_examples=10)


def scored(orders, **columns):
    """Ballots that keep scores, so that every method takes them."""
    r = Rankings.from_orders(orders, **columns)
    return Rankings(
        r.item,
        r.tier,
        r.offsets,
        r.weight,
        r.agent,
        r.instance,
        r.items,
        r.agents,
        r.instances,
        -2.0 * r.tier.astype(float),
    )


LISTS = [["a", "b", "c", "d"], ["b", "a", "d"], ["d", ("c", "b")], ["x", "y", "a"], ["x", "a", "y"], ["b"], ["a", "y"]]
TOPICS = ["cats", "cats", "cats", "dogs", "dogs", "pigs", "dogs"]
RUNS = ["one", "two", "odd", "one", "two", "one", "odd"]


@pytest.fixture(scope="module")
def lists():
    return scored(LISTS, agent=RUNS, instance=TOPICS, weight=[1, 1, 2, 1, 1, 1, 0.5])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_each_instance_over_its_own_items(method, lists):
    found = consensus(lists, method)
    assert isinstance(found, ConsensusSet)
    assert list(found) == ["cats", "dogs", "pigs"]
    assert {name: set(c.items) for name, c in found.items()} == {
        "cats": {"a", "b", "c", "d"},
        "dogs": {"x", "y", "a"},
        "pigs": {"b"},
    }
    assert found.method == method
    for name, part in split(lists):
        alone = consensus(part, method)
        assert isinstance(alone, Consensus)
        expected = dict(zip(alone.items, alone.scores))
        own = found[name]
        assert own.scores == pytest.approx([expected[item] for item in own.items], abs=1e-6)
        assert own.ranking[0] == alone.ranking[0] or set(own.ranking[0]) == set(alone.ranking[0])


@pytest.mark.parametrize("method", METHODS)
def test_the_bootstrap_draws_inside_each_instance(method, lists):
    found = consensus(lists, method, bootstrap=3, random_state=5)
    again = consensus(lists, method, bootstrap=3, random_state=5)
    for name, c in found.items():
        if c.draws is None:  # of one ballot
            assert any("alone does not say how sure the order is" in note for note in c.notes)
            continue
        assert c.draws.shape == (3, len(c.items))
        np.testing.assert_array_equal(c.draws, again[name].draws)
        assert any("3 bootstrap rounds" in note for note in c.notes)
    if not RECORDS[method].shares_agents:
        for name, part in split(lists):
            alone = consensus(part, method, bootstrap=3, random_state=5).draws
            assert (alone is None) == (found[name].draws is None)
            if alone is not None:
                np.testing.assert_allclose(found[name].draws, alone)


@pytest.mark.parametrize("method", METHODS)
def test_data_without_instances_give_one_consensus(method, lists):
    (_, part), *_ = split(lists)
    assert isinstance(consensus(part, method), Consensus)
    alone = Rankings(
        part.item, part.tier, part.offsets, instance=[0] * len(part), instances=("only",), score=part.score
    )
    found = consensus(alone, method)
    assert isinstance(found, ConsensusSet)
    assert list(found) == ["only"]


@pytest.mark.parametrize("name", [*RULES, "mallows"])
def test_rules_and_models_of_one_problem_do_not_mix_instances(name, lists):
    run = RULES[name] if name in RULES else MODELS[name]().fit
    with pytest.raises(DataError, match=r"belong to 3 instances.*placet\.consensus\(data, "):
        run(lists)
    run(lists[:3])  # ballots of one instance are one problem


@check
@given(st.data())
def test_ballots_in_any_order_give_the_same_set(data):
    lists = scored(LISTS, agent=RUNS, instance=TOPICS)
    mixed = lists[np.array(data.draw(st.permutations(range(len(lists)))))]
    for method in ("borda", "mpm", "plackett-luce"):
        one, other = consensus(lists, method), consensus(mixed, method)
        assert set(one) == set(other)
        for name, c in one.items():
            expected = dict(zip(c.items, c.scores))
            assert other[name].scores == pytest.approx([expected[x] for x in other[name].items], abs=1e-6)


def test_the_set_is_a_mapping_with_a_frame_notes_and_rankings(lists):
    found = pickle.loads(pickle.dumps(consensus(lists, "plackett-luce")))
    frame = found.to_frame(0.9)
    assert frame.columns == ["instance", "item", "score", "stderr", "rank", "rank_low", "rank_high", "tier", "support"]
    assert frame["instance"].to_list() == ["cats"] * 4 + ["dogs"] * 3 + ["pigs"]
    for name, part in frame.group_by("instance"):
        assert part.drop("instance").equals(found[name[0]].to_frame(0.9))
    rules = consensus(lists, "borda").to_frame()
    assert rules["rank_low"].null_count() == len(rules)
    assert found.ranking["dogs"][0] == "x"
    assert len(found) == 3
    assert "cats" in found
    assert dict(found) == dict(found.items())
    with pytest.raises(KeyError, match="'cows' is not among the 3 instances"):
        found["cows"]
    assert repr(found).startswith("ConsensusSet(plackett-luce: 3 instances, 8 items")
    assert "prior" in found.notes[0]
    assert any("1 of 3 instances (dogs): undefeated" in note for note in found.notes), found.notes


def test_a_set_becomes_one_ballot_for_each_instance(lists):
    ballots = consensus(lists, "borda").to_rankings()
    assert ballots.instances == ("cats", "dogs", "pigs")
    assert [len(x) for x in ballots] == [len(c.ranking) for c in consensus(lists, "borda").values()]
    tied = Consensus(("a", "b", "c"), [1.0, 1.0 + 1e-12, 0.0], method="borda").to_rankings()
    assert tied[0] == [("a", "b"), ("c",)]
    assert tied.score[0] == tied.score[1]


def test_what_is_on_no_ballot_is_noted():
    lists = Rankings([0, 1], [0, 1], [0, 2], instance=[1], items="abc", instances=("none", "one", "no more"))
    found = consensus(lists, "borda")
    assert list(found) == ["one"]
    assert found.notes == (
        "2 instances have no ballots and are left out, first 'none'",
        "1 items are on no ballot and are left out, first 'c'",
    )
    empty = Rankings([], [], [0], instance=[], items="ab")
    assert len(consensus(empty, "borda")) == 0
    assert consensus(empty, "mpm").to_frame().columns[0] == "instance"


def test_equal_problems_are_solved_once_and_keep_their_own_names(monkeypatch):
    """Each topic of a single run is the same problem under other names."""
    lists = Rankings.from_orders([list("abc"), list("pqr"), list("xy")], instance=["one", "two", "three"])
    solved = []
    model = MODELS["plackett-luce"]
    fit = model.fit
    monkeypatch.setattr(model, "fit", lambda self, data, *start: solved.append(data.n_items) or fit(self, data, *start))
    found = consensus(lists, "plackett-luce")
    assert sorted(solved) == [2, 3]
    assert found.ranking == {"one": ["a", "b", "c"], "two": ["p", "q", "r"], "three": ["x", "y"]}
    for name, letters in (("one", "abc"), ("two", "pqr"), ("three", "xy")):
        expected = consensus(Rankings.from_orders([list(letters)]), "plackett-luce")
        assert found[name].notes == expected.notes
        assert found[name].scores == pytest.approx(expected.scores)
        assert found[name].prob_above(letters[0], letters[1]) == expected.prob_above(letters[0], letters[1])
        for one, other in zip(found[name].rank_interval(), expected.rank_interval()):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(DataError, match=r"instance 'one': no finite scores exist.*\[a\]"):
        consensus(lists, "plackett-luce", prior=None)


def test_many_items_keep_standard_errors_alone(monkeypatch, lists):
    monkeypatch.setattr(door, "MOST_COVARIANCES", 10)
    found = consensus(lists, "plackett-luce")
    assert found["cats"].covariance is None
    assert found["cats"].stderr == pytest.approx(consensus(lists[:3], "plackett-luce")["cats"].stderr, rel=1e-9)
    assert any("too many items to keep covariances" in note for note in found.notes)


@pytest.mark.parametrize("method", ["borda", "mpm", "bradley-terry", "plackett-luce"])
def test_progress_counts_every_fit(method, lists):
    told = []
    consensus(lists, method, bootstrap=2, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] == (3 if method == "mpm" else 9)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_votes_have_no_instances():
    votes = Comparisons.from_battles(["a"], ["b"], ["a"])
    assert isinstance(consensus(votes, "bradley-terry"), Consensus)
    assert placet.ConsensusSet is ConsensusSet


@pytest.mark.parametrize("method", ["borda", "plackett-luce", "mpm"])
def test_the_page_of_a_set_has_every_instance_and_its_cap(method, lists, monkeypatch):
    params = {"adherence": "learned"} if method == "mpm" else {}
    words = " ".join(parsed(consensus_page(consensus(lists, method, **params), lists)).words)
    for expected in ("3 instances", "with 8 items", "Instance cats", "Instance pigs", "Audit", "Method", "Data"):
        assert expected in words
    assert ("The voters" in words) == (method == "mpm")
    monkeypatch.setattr("placet.report.page.MOST_INSTANCES", 1)
    words = " ".join(parsed(consensus_page(consensus(lists, method), lists)).words)
    assert "Instance dogs" not in words
    assert "1 of 3 instances are shown" in words
    assert "instance was audited" in words


def test_the_time_that_is_expected_grows_with_instances_items_and_rounds():
    def lists(topics, docs):
        item = np.concatenate([np.arange(docs + k) for k in range(topics)])
        offsets = np.cumsum([0, *(docs + k for k in range(topics))])
        return Rankings(item, item, offsets, instance=np.arange(topics))

    few, many = lists(2, 50), lists(60, 900)
    assert door.expected_seconds(few, "borda") < 0.1
    alike = door.expected_seconds(few, "plackett-luce")
    assert door.expected_seconds(few, "plackett-luce", params={"agents": "sharpness"}) > 10 * alike
    assert door.expected_seconds(many, "plackett-luce") > 2
    assert door.expected_seconds(many, "borda") < 2
    assert door.expected_seconds(few, "mpm", 200) > 20 * door.expected_seconds(few, "mpm")
    rated = placet.simulate.ratings(100, 8000, observed=0.1, random_state=0)  # 80,000 ratings take 0.02 seconds
    assert 0.007 < door.expected_seconds(rated, "mpm") < 0.07
    same = Rankings(
        np.tile(np.arange(900), 60), np.tile(np.arange(900), 60), np.arange(0, 54001, 900), instance=range(60)
    )
    assert door.expected_seconds(same, "plackett-luce") < door.expected_seconds(many, "plackett-luce") / 10


def test_ties_above_the_last_tier_take_time():
    """They are integrals; a tie of the last tier is none, whether a ballot has one item above it or several."""
    ties = lambda *orders: door._inner_ties(Rankings.from_orders(orders))  # noqa: E731
    assert ties([("a", "b"), "c", ("d", "e")], ["a", ("b", "c", "d"), "e"], [("a", "b")], ["c", ("a", "b")]) == 5
    assert ties(["a", "b"]) == ties() == door._inner_ties(placet.Comparisons.from_battles("a", "b", ["tie"])) == 0
    strict, tied = (placet.simulate.plackett_luce([0.0] * 10, 1000, partition=k) for k in (None, 3))
    assert door.expected_seconds(tied, "plackett-luce") > 4 * door.expected_seconds(strict, "plackett-luce")
    assert door.expected_seconds(tied, "borda") == door.expected_seconds(strict, "borda")


def test_notes_on_how_data_were_read_reach_the_result(lists):
    read = replace(lists, notes=("3 lines were skipped",))
    assert consensus(read, "borda").notes[0] == "3 lines were skipped"
    assert consensus(read, "mpm").notes[0] == "3 lines were skipped"
    (_, part), *_ = split(read)
    assert consensus(replace(part, notes=read.notes), "borda").notes == read.notes
