"""The exact minimum of rules against every removal."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

import placet
from placet.aggregate import fragility
from placet.aggregate.proof.removal import removable

RULES = ("borda", "plurality", "copeland", "irv")


def ballots(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 5))
    kinds = [rng.permutation(n)[: rng.integers(2, n + 1)].tolist() for _ in range(int(rng.integers(3, 6)))]
    return placet.Rankings.from_orders(kinds, weight=rng.integers(1, 5, len(kinds)), items=range(n))


def votes(seed):
    rng = np.random.default_rng(seed)
    n, size = 4, int(rng.integers(6, 11))
    a = rng.integers(0, n, size)
    b = (a + rng.integers(1, n, size)) % n
    outcome = rng.choice(["a", "b", "tie"], size, p=[0.5, 0.4, 0.1])
    return placet.Comparisons.from_battles(a.tolist(), b.tolist(), outcome.tolist(), items=range(n))


def best(data, method, k=1):
    result = placet.consensus(data, method)
    return {name for name, rank in zip(result.items, result.ranks) if rank <= k}


def by_enumeration(data, method, k, most=5):
    """The fewest ballots whose removal changes the set; None if more than ``most``, or if only all of them do."""
    pieces, first = removable(data, "vote"), best(data, method, k)
    for count in range(1, min(most, pieces.total - 1) + 1):
        for chosen in combinations_with_replacement(np.flatnonzero(pieces.size).tolist(), count):
            take = np.bincount(chosen, minlength=len(pieces.size))
            if (take <= pieces.size).all() and best(pieces.without(take), method, k) != first:
                return count
    return None


@pytest.mark.parametrize("method", RULES)
def test_the_minimum_of_ballots_is_that_of_all_removals(method):
    proved = 0
    for seed in range(12):
        data = ballots(seed)
        found = fragility(data, method).claims[0]
        least = by_enumeration(data, method, 1, most=4)
        assert found.exact or method == "irv" or found.count is None, seed
        if found.exact:
            proved += 1
            assert found.count == least if least is not None else found.count > 4, seed
            after = best(removable(data, "vote").without(found.take), method)
            assert after != found.claim.items
    assert proved >= 5


@pytest.mark.parametrize("method", ["borda", "copeland"])
def test_the_minimum_of_votes_is_that_of_all_removals(method):
    proved = 0
    for seed in range(12):
        data = votes(seed)
        k = 1 + seed % 2
        found = fragility(data, method, goal="top", k=k).claims[0]
        least = by_enumeration(data, method, k, most=3)
        if found.exact:
            proved += 1
            assert found.count == least if least is not None else found.count > 3, seed
        else:
            assert least is None or found.count is None or found.count >= least
    assert proved >= 4


def test_an_election_names_its_margin():
    """Burlington 2009 in small: 3 of 9 first choices, decided in the last round."""
    orders = [["a", "b", "c"]] * 4 + [["b", "c", "a"]] * 3 + [["c", "b", "a"]] * 2
    data = placet.Rankings.from_orders(orders)
    found = fragility(data, "irv")
    assert found.claims[0].exact
    assert found.count == by_enumeration(data, "irv", 1)
    assert found.sentences() == ["b is first: 1 of 9 ballots decides it"]
    assert found.claims[0].removed == ({"ballot": 5, "order": "b > c > a", "removed": 1, "of": 3},)
