"""Rules of elections against pref_voting and votekit, profile by profile, and on PrefLib's files.

The variable PLACET_EXAMPLES is the number of random profiles for each rule (20 unless given; thousands take minutes).
"""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import placet
from placet.aggregate import RULES
from placet.aggregate.rules.stv import count_votes
from placet.data import Rankings

pytestmark = pytest.mark.filterwarnings("ignore")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("pref_voting")
    from pref_voting.c1_methods import copeland
    from pref_voting.combined_methods import blacks
    from pref_voting.grade_methods import approval, star
    from pref_voting.grade_profiles import GradeProfile
    from pref_voting.iterative_methods import baldwin, baldwin_put, instant_runoff, instant_runoff_put, strict_nanson
    from pref_voting.margin_based_methods import beat_path, minimax, minimax_support, ranked_pairs
    from pref_voting.other_methods import bucklin, kemeny_young
    from pref_voting.profiles import Profile
    from pref_voting.profiles_with_ties import ProfileWithTies
    from pref_voting.proportional_methods import stv_meek, stv_scottish
    from pref_voting.scoring_methods import anti_plurality, borda, dowdall, plurality

EXAMPLES = int(os.environ.get("PLACET_EXAMPLES", "20"))

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
    ("ranked-pairs", ranked_pairs, MARGINS),
    ("copeland", copeland, {}),
    ("borda", borda, {}),
    ("plurality", plurality, {}),
    ("anti-plurality", anti_plurality, {}),
    ("dowdall", dowdall, {}),
]
PUT = (ranked_pairs, baldwin_put, instant_runoff_put)
"""Peers that follow every way of breaking ties one by one, which takes them long."""


@pytest.mark.parametrize(("name", "theirs", "params"), METHODS)
def test_winners_are_those_of_pref_voting(name, theirs, params):
    rng = np.random.default_rng(0)
    most = 4 if theirs in PUT else 5
    for _ in range(EXAMPLES // 4 if theirs is ranked_pairs else EXAMPLES):
        n, voters = int(rng.integers(2, most + 1)), int(rng.integers(1, 13))
        orders = [rng.permutation(n).tolist() for _ in range(voters)]
        assert first(name, Rankings.from_orders(orders, items=range(n)), params) == sorted(
            map(int, theirs(Profile(orders)))
        ), orders


def first(name, votes, params):
    """Numbers of the items that come first."""
    scores = RULES[name](votes, **params)
    return np.flatnonzero(scores == scores.max()).tolist()


def test_a_kemeny_order_that_is_the_only_one_is_that_of_pref_voting():
    rng, compared = np.random.default_rng(3), 0
    for _ in range(EXAMPLES):
        n, voters = int(rng.integers(2, 6)), int(rng.integers(1, 13))
        orders = [rng.permutation(n).tolist() for _ in range(voters)]
        found = placet.consensus(Rankings.from_orders(orders, items=range(n)), "kemeny")
        theirs = sorted(map(int, kemeny_young(Profile(orders))))
        if len(theirs) == 1:  # of several, ours chooses by a stated rule
            assert found.ranking[0] == theirs[0], orders
            compared += 1
    assert compared > EXAMPLES // 4


@pytest.mark.parametrize("name", ["star", "approval"])
def test_winners_by_ratings_are_those_of_pref_voting(name):
    rng, compared = np.random.default_rng(4), 0
    for _ in range(EXAMPLES):
        n, voters = int(rng.integers(2, 6)), int(rng.integers(1, 13))
        stars = rng.integers(0, 6 if name == "star" else 2, (voters, n))
        frame = {"who": np.repeat(np.arange(voters), n), "what": np.tile(np.arange(n), voters), "stars": stars.ravel()}
        votes = Rankings.from_scores(frame, ballot="who", item="what", score="stars", items=range(n))
        grades = list(range(6 if name == "star" else 2))
        maps = [{k: int(x) for k, x in enumerate(row)} for row in stars]
        theirs = GradeProfile(maps, grades, candidates=list(range(n)))
        if name == "star":
            total = np.sort(stars.sum(axis=0))[::-1]
            a, b = np.argsort(-stars.sum(axis=0), kind="stable")[:2]
            if (n > 2 and total[1] == total[2]) or (stars[:, a] > stars[:, b]).sum() == (
                stars[:, a] < stars[:, b]
            ).sum():
                continue  # a level runoff goes to the higher sum here, to both there
            won = sorted(map(int, star(theirs)))
            found = first("star", votes, {})
        else:
            won, found = sorted(map(int, approval(theirs))), first("approval", votes, {"threshold": 1})
        assert found == won, stars
        compared += 1
    assert compared > EXAMPLES // 4


@pytest.mark.parametrize(("name", "theirs"), [("schulze", beat_path), ("minimax", minimax_support)])
def test_winning_votes_on_partial_ballots_are_those_of_pref_voting(name, theirs):
    rng = np.random.default_rng(5)
    for _ in range(EXAMPLES):
        n, orders, _ = truncated(rng)
        profile = ProfileWithTies([{x: k + 1 for k, x in enumerate(o)} for o in orders], candidates=list(range(n)))
        profile.use_strict_preference()
        strength = {"strength_function": profile.support} if name == "schulze" else {}
        won = sorted(map(int, theirs(profile, **strength)))
        votes = Rankings.from_orders(orders, items=range(n))
        assert first(name, votes, {"strength": "winning-votes"}) == won, orders


DATA = Path(os.environ.get("PLACET_DATA", Path(__file__).parents[4] / "shared" / "data")) / "preflib"
LINEAR = ["00009-agh/00009-00000001.soc", "00009-agh/00009-00000002.soc"]
LINEAR += [f"00006-skate/00006-000000{k:02}.soc" for k in (3, 7, 11, 18, 21)]


@pytest.mark.parametrize("file", LINEAR)
def test_winners_of_preflib_files_are_those_of_pref_voting(file):
    path = DATA / file
    if not path.exists():
        pytest.skip(f"no file {path}; set PLACET_DATA to the folder that holds them")
    votes = placet.read(path)
    orders = [[votes.index[name] for (name,) in ballot] for ballot in votes]
    theirs = Profile(orders, rcounts=votes.weight.astype(int).tolist())
    compared = 0
    for name, peer, params in METHODS:
        if peer in PUT and votes.n_items > 9:
            continue
        assert first(name, votes, params) == sorted(map(int, peer(theirs))), name
        compared += 1
    assert compared >= 10


@pytest.mark.parametrize("number", range(1, 9))
def test_debian_by_schulze_is_that_of_pref_voting(number):
    path = DATA / f"00002-debian/00002-0000000{number}.toc"
    if not path.exists():
        pytest.skip(f"no file {path}; set PLACET_DATA to the folder that holds them")
    votes = placet.read(path)
    ranks = [
        {int(i): int(t) + 1 for i, t in zip(votes.item[a:z], votes.tier[a:z])}
        for a, z in zip(votes.offsets[:-1], votes.offsets[1:])
    ]
    weights = votes.weight.astype(int).tolist()
    theirs = ProfileWithTies(ranks, rcounts=weights, candidates=list(range(votes.n_items)))
    won = sorted(map(int, beat_path(theirs, strength_function=theirs.support)))
    assert first("schulze", votes, {"strength": "winning-votes"}) == won
    assert first("minimax", votes, MARGINS) == sorted(map(int, minimax(theirs)))


def truncated(rng):
    n, voters = int(rng.integers(3, 7)), int(rng.integers(5, 40))
    orders = [rng.permutation(n)[: int(rng.integers(1, n + 1))].tolist() for _ in range(voters)]
    return n, orders, int(rng.integers(1, min(4, n)))


@pytest.mark.parametrize("transfer", ["gregory", "meek"])
def test_the_elected_are_those_of_pref_voting(transfer):
    rng, compared = np.random.default_rng(1), 0
    for _ in range(2 * EXAMPLES):
        n, orders, seats = truncated(rng)
        found = count_votes(Rankings.from_orders(orders, items=range(n)), seats, transfer).record
        if found.ways > 1 or found.tied:
            continue  # theirs draw lots
        compared += 1
        theirs = ProfileWithTies([{x: k + 1 for k, x in enumerate(o)} for o in orders], candidates=list(range(n)))
        options = {"decimals": 14} if transfer == "gregory" else {}
        elected = (stv_scottish if transfer == "gregory" else stv_meek)(theirs, num_seats=seats, **options)
        assert sorted(map(int, elected)) == list(found.elected), orders
    assert compared > 10


def votekit_profile(orders, n):
    from votekit import RankBallot, RankProfile

    ballots = tuple(RankBallot(ranking=tuple(frozenset({str(x)}) for x in order)) for order in orders)
    return RankProfile(ballots=ballots, candidates=tuple(map(str, range(n))))


@pytest.mark.parametrize("name", ["irv", "schulze", "ranked-pairs", "plurality", "borda"])
def test_the_elected_are_those_of_votekit(name):
    """Where one item alone comes first; votekit breaks ties by lot, or refuses."""
    pytest.importorskip("votekit")
    from votekit.elections import IRV, Borda, Plurality, RankedPairs, Schulze

    theirs = {"irv": IRV, "schulze": Schulze, "ranked-pairs": RankedPairs, "plurality": Plurality, "borda": Borda}
    rng, compared = np.random.default_rng(2), 0
    for _ in range(2 * EXAMPLES):
        n, orders, _ = truncated(rng)
        if name != "irv":  # what an absence says differs
            orders = [rng.permutation(n).tolist() for _ in orders]
        found = first(name, Rankings.from_orders(orders, items=range(n)), {})
        if len(found) > 1:
            continue
        answer = theirs[name](votekit_profile(orders, n)).get_elected()
        assert [int(x) for group in answer for x in group] == found, orders
        compared += 1
    assert compared > EXAMPLES // 2


def test_the_elected_of_several_seats_are_those_of_votekit():
    pytest.importorskip("votekit")
    from votekit.elections import STV

    rng, compared = np.random.default_rng(6), 0
    for _ in range(2 * EXAMPLES):
        n, orders, seats = truncated(rng)
        found = count_votes(Rankings.from_orders(orders, items=range(n)), seats, "gregory").record
        if found.ways > 1 or found.tied:
            continue
        answer = STV(votekit_profile(orders, n), m=seats, simultaneous=True).get_elected()
        assert sorted(int(x) for group in answer for x in group) == sorted(found.elected), orders
        compared += 1
    assert compared > EXAMPLES // 4
