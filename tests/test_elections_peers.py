"""Rules of elections against pref_voting and votekit, profile by profile."""

import warnings

import numpy as np
import pytest

from placet.aggregate import RULES
from placet.aggregate.stv import count_votes
from placet.data import Rankings

pytestmark = pytest.mark.filterwarnings("ignore")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("pref_voting")
    from pref_voting.combined_methods import blacks
    from pref_voting.iterative_methods import baldwin, baldwin_put, instant_runoff, instant_runoff_put, strict_nanson
    from pref_voting.margin_based_methods import beat_path, minimax
    from pref_voting.other_methods import bucklin
    from pref_voting.profiles import Profile
    from pref_voting.profiles_with_ties import ProfileWithTies
    from pref_voting.proportional_methods import stv_meek, stv_scottish

MARGINS = {"strength": "margins"}
TOGETHER = {"ties": "together"}
METHODS = [
    ("schulze", beat_path, MARGINS),
    ("minimax", minimax, MARGINS),
    ("irv", instant_runoff_put, {}),
    ("irv", instant_runoff, TOGETHER),
    ("baldwin", baldwin_put, {}),
    ("baldwin", baldwin, TOGETHER),
    ("nanson", strict_nanson, {}),
    ("bucklin", bucklin, {}),
    ("black", blacks, {}),
]


@pytest.mark.parametrize(("name", "theirs", "params"), METHODS)
def test_winners_are_those_of_pref_voting(name, theirs, params):
    rng = np.random.default_rng(0)
    for _ in range(20):
        n, voters = int(rng.integers(2, 6)), int(rng.integers(1, 13))
        orders = [rng.permutation(n).tolist() for _ in range(voters)]
        scores = RULES[name](Rankings.from_orders(orders, items=range(n)), **params)
        assert np.flatnonzero(scores == scores.max()).tolist() == sorted(map(int, theirs(Profile(orders)))), orders


def truncated(rng):
    n, voters = int(rng.integers(3, 7)), int(rng.integers(5, 40))
    orders = [rng.permutation(n)[: int(rng.integers(1, n + 1))].tolist() for _ in range(voters)]
    return n, orders, int(rng.integers(1, min(4, n)))


@pytest.mark.parametrize("transfer", ["gregory", "meek"])
def test_the_elected_are_those_of_pref_voting(transfer):
    rng, compared = np.random.default_rng(1), 0
    for _ in range(40):
        n, orders, seats = truncated(rng)
        found = count_votes(Rankings.from_orders(orders, items=range(n)), seats, transfer).record
        if found.ways > 1:
            continue  # theirs draw lots
        compared += 1
        theirs = ProfileWithTies([{x: k + 1 for k, x in enumerate(o)} for o in orders], candidates=list(range(n)))
        options = {"decimals": 14} if transfer == "gregory" else {}
        elected = (stv_scottish if transfer == "gregory" else stv_meek)(theirs, num_seats=seats, **options)
        assert sorted(map(int, elected)) == list(found.elected), orders
    assert compared > 10


def test_the_elected_are_those_of_votekit():
    pytest.importorskip("votekit")
    from votekit import RankBallot, RankProfile
    from votekit.elections import IRV

    rng, compared = np.random.default_rng(2), 0
    for _ in range(40):
        n, orders, _ = truncated(rng)
        scores = RULES["irv"](Rankings.from_orders(orders, items=range(n)))
        if (scores == 0).sum() > 1:
            continue
        ballots = tuple(RankBallot(ranking=tuple(frozenset({str(x)}) for x in order)) for order in orders)
        theirs = IRV(RankProfile(ballots=ballots, candidates=tuple(map(str, range(n)))))
        assert [int(x) for group in theirs.get_elected() for x in group] == np.flatnonzero(scores == 0).tolist()
        compared += 1
    assert compared > 10
