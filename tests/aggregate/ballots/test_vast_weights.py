"""Weights so large, or so unequal, that float64 hardly holds what they outweigh."""

from dataclasses import replace

import numpy as np
import pytest

from placet.aggregate.ballots.adjusted_mean import AdjustedMean
from placet.aggregate.ballots.ballot_models import PMOP, PlackettLuce, PMOPFullDecomposition
from placet.data import Rankings


@pytest.mark.parametrize("model", [PMOP, PMOPFullDecomposition, PlackettLuce])
@pytest.mark.parametrize("vast", [1e6, 1e9, 1e12])
def test_vast_weights_elsewhere_leave_a_pair_as_it_is(model, vast):
    """Items that no ballot connects share nothing but the prior's mean, so each pair has the scores that it has alone."""
    pair = [["c", "d"], ["d", "c"]]
    alone = model(prior=1.0).fit(Rankings.from_orders(pair, weight=[3, 1])).theta_
    both = Rankings.from_orders([["a", "b"], ["b", "a"], *pair], weight=[3 * vast, vast, 3, 1])
    c = model(prior=1.0).fit(both).consensus_
    score = dict(zip(c.items, c.scores))
    assert score["c"] - score["d"] == pytest.approx(alone[0] - alone[1], abs=1e-6)
    assert any("hardly resolves the prior" in note for note in c.notes) == (vast > 1e10)


@pytest.mark.parametrize("model", [PMOP, PMOPFullDecomposition, PlackettLuce])
def test_weights_out_of_all_proportion_say_how_far_scores_are_rounded(model):
    rng = np.random.default_rng(9)
    orders, weight = [rng.permutation(5)[:3].tolist() for _ in range(12)], 10.0 ** (8 * rng.integers(0, 4, 12))
    found = []
    for order in (np.arange(12), rng.permutation(12)):
        c = model(stderr=None).fit(Rankings.from_orders([orders[k] for k in order], weight=weight[order])).consensus_
        assert c.tolerance > 1e-3
        assert any("accurate to about" in note for note in c.notes)
        found.append(dict(zip(c.items, c.scores)))
    assert all(abs(found[0][x] - found[1][x]) <= c.tolerance for x in range(5))


def test_vast_weights_change_no_score_and_no_error():
    """Ratings that one user explains: an item without ratings is as uncertain as scores differ, at any weight."""
    rated = {"user": list("uuuv"), "item": list("abcd"), "stars": [5, 3, 1, 2]}
    data = Rankings.from_scores(rated, ballot="user", item="item", score="stars")
    found = []
    for weight in (1e6, 1e9, 1e20, 3e300):
        c = AdjustedMean().fit(replace(data, weight=np.array([weight, 0.0]))).consensus_
        assert c.support.tolist() == [weight, weight, weight, 0.0]
        found.append([c.scores, c.stderr, np.full(4, c.prior)])
    np.testing.assert_allclose(found[1:], [found[0]] * 3, rtol=1e-2, atol=1e-5)
    assert found[0][1][3] > 0.5 * np.std(found[0][0])
    given = [AdjustedMean(prior=2.0).fit(replace(data, weight=np.array([w, 0.0]))).consensus_ for w in (1e6, 3e300)]
    assert [c.prior for c in given] == pytest.approx([2.0, 2.0], rel=1e-6)
