"""Data of several files as one: names are matched, and what does not fit together is said."""

import numpy as np
import pytest

from placet import concat
from placet.data import Comparisons, DataError, Rankings


def test_ballots_are_matched_by_name():
    one = Rankings.from_orders([["a", ("b", "c")]], weight=[2], agent=["x"], instance=[1])
    two = Rankings.from_orders([["c", "d"], []], weight=[1, 3], agent=["y", "x"], instance=[2, 1])
    both = concat([one, two])
    assert both.orders() == [["a", ("b", "c")], ["c", "d"], []]
    assert both.items == ("a", "b", "c", "d")
    assert both.weight.tolist() == [2, 1, 3]
    assert [both.agents[k] for k in both.agent] == ["x", "y", "x"]
    assert [both.instances[k] for k in both.instance] == [1, 2, 1]
    assert concat([one]) == one


def test_scores_are_kept_where_all_have_them():
    frame = {"who": [1, 1], "what": ["a", "b"], "s": [5.0, 3.0]}
    scored = Rankings.from_scores(frame, ballot="who", item="what", score="s")
    assert concat([scored, scored]).score.tolist() == [5, 3, 5, 3]
    plain = Rankings(scored.item, scored.tier, scored.offsets, agent=[0], items=scored.items, agents=(2,))
    assert concat([scored, plain]).score is None


def test_votes_add_up():
    one = Comparisons.from_battles(["a", "b"], ["b", "c"], ["a", "tie"])
    two = Comparisons.from_battles(["c", "b"], ["b", "a"], ["b", "a"])
    both = concat([one, two])
    whole = Comparisons.from_battles(["a", "b", "c", "b"], ["b", "c", "b", "a"], ["a", "tie", "b", "a"])
    assert both == whole


def test_what_does_not_fit_together_is_said():
    ballots, votes = Rankings.from_orders([["a"]]), Comparisons.from_battles(["a"], ["b"], ["a"])
    with pytest.raises(TypeError, match="all Rankings or all Comparisons"):
        concat([ballots, votes])
    with pytest.raises(ValueError, match="nothing to concatenate"):
        concat([])
    with pytest.raises(DataError, match="1 of 2 parts have no instance"):
        concat([ballots, Rankings.from_orders([["a"]], instance=["q"])])
    with pytest.raises(DataError, match="which item came first"):
        concat([votes, Comparisons.from_battles(["a"], ["b"], ["a"], ordered=True)])
    assert len(concat([Rankings(np.zeros(0, int), [], [0]), ballots])) == 1
