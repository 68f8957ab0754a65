"""Axioms against pref_voting's checks, profile by profile, where the two speak of the same thing."""

import itertools
import warnings

import numpy as np
import pytest

from placet.axioms import AXIOMS, Profile
from placet.axioms.outcome import CachedMethod, sole_winner

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("pref_voting")
    from pref_voting.c1_methods import copeland
    from pref_voting.dominance_axioms import has_condorcet_winner_violation, has_pareto_dominance_violation
    from pref_voting.monotonicity_axioms import has_monotonicity_violation
    from pref_voting.profiles import Profile as Theirs
    from pref_voting.profiles_with_ties import ProfileWithTies
    from pref_voting.scoring_methods import anti_plurality, borda, borda_ranking, plurality, plurality_ranking
    from pref_voting.swf_axioms import has_pareto_ranking_violation
    from pref_voting.variable_voter_axioms import (
        has_reinforcement_violation,
        has_reinforcement_violation_with_undergeneration,
    )

pytestmark = pytest.mark.filterwarnings("ignore")
METHODS = {"borda": borda, "plurality": plurality, "anti-plurality": anti_plurality, "copeland": copeland}
SEEN = {name: CachedMethod(name) for name in METHODS}


def drawn(n_items, n_voters, n_profiles, seed=0):
    rng = np.random.default_rng(seed)
    orders = list(itertools.permutations(range(n_items)))
    for _ in range(n_profiles):
        yield [orders[k] for k in rng.integers(len(orders), size=n_voters)]


def ours(orders):
    return Profile.from_orders([list(order) for order in orders], [1.0] * len(orders))


@pytest.mark.parametrize("name", METHODS)
def test_condorcet(name):
    broken = 0
    for orders in drawn(4, 5, 150):
        theirs = has_condorcet_winner_violation(Theirs(orders), METHODS[name])
        assert (AXIOMS["condorcet"](ours(orders), SEEN[name]) is not None) == theirs
        broken += theirs
    assert (broken == 0) == (name == "copeland")


@pytest.mark.parametrize(("name", "ranking"), [("borda", borda_ranking), ("plurality", plurality_ranking)])
def test_pareto_of_whole_rankings(name, ranking):
    broken = 0
    for orders in drawn(4, 3, 120):
        theirs = has_pareto_ranking_violation(Theirs(orders), ranking)
        assert (AXIOMS["pareto"](ours(orders), SEEN[name]) is not None) == theirs
        broken += theirs
    assert (broken == 0) == (name == "borda")


@pytest.mark.parametrize("name", METHODS)
def test_pareto_of_winners_is_part_of_ours(name):
    for orders in drawn(4, 3, 80, seed=1):
        if has_pareto_dominance_violation(Theirs(orders), METHODS[name]):
            assert AXIOMS["pareto"](ours(orders), SEEN[name]) is not None


@pytest.mark.parametrize("name", ["borda", "copeland"])
def test_monotonicity_of_winners_is_part_of_ours(name):
    for orders in drawn(3, 4, 40, seed=2):
        assert not has_monotonicity_violation(Theirs(orders), METHODS[name])
        assert AXIOMS["monotonicity"](ours(orders), SEEN[name]) is None


@pytest.mark.parametrize("name", ["borda", "copeland"])
def test_consistency_lies_between_their_two_forms(name):
    """Ours asks for sole winners: it is broken only where reinforcement is; with sole winners throughout they are one."""
    for orders in drawn(4, 4, 60, seed=3):
        profile, theirs = ours(orders), Theirs(orders)
        found = AXIOMS["consistency"](profile, SEEN[name])
        if found is not None:
            assert has_reinforcement_violation(theirs, METHODS[name])
        elif sole_winner(SEEN[name].outcome(profile)) is None:
            continue
        elif has_reinforcement_violation_with_undergeneration(theirs, METHODS[name]):
            assert not all_parts_have_sole_winners(SEEN[name], profile)


def all_parts_have_sole_winners(see, profile):
    voters = range(len(profile.ballots))
    parts = [part for size in range(1, len(voters)) for part in itertools.combinations(voters, size)]
    return all(sole_winner(see.outcome(profile.subset(part))) is not None for part in parts)


def test_condorcet_and_pareto_with_ties_on_ballots():
    rng = np.random.default_rng(4)
    for _ in range(100):
        tiers = [tuple(np.unique(row, return_inverse=True)[1].tolist()) for row in rng.integers(0, 3, (5, 3))]
        theirs = ProfileWithTies([{x: t + 1 for x, t in enumerate(row)} for row in tiers])
        theirs.use_extended_strict_preference()
        profile = Profile(tuple(tiers), (1.0,) * 5, ("A", "B", "C"))
        found = AXIOMS["condorcet"](profile, SEEN["copeland"])
        assert (found is not None) == has_condorcet_winner_violation(theirs, copeland)
        if has_pareto_dominance_violation(theirs, copeland):
            assert AXIOMS["pareto"](profile, SEEN["copeland"]) is not None
