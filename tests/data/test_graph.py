"""The existence check: groups against a plain search over all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from placet.data import graph
from placet.data.graph import components, components_of_pairs


def groups_by_search(ballots, n_items):
    """Reachability over every pair that a ballot orders, then mutual reachability."""
    reach = np.eye(n_items, dtype=bool)
    for rows in ballots:
        for i, tier_i in rows:
            for j, tier_j in rows:
                reach[i, j] |= tier_i < tier_j
    for k in range(n_items):
        reach |= np.outer(reach[:, k], reach[k])
    both = reach & reach.T
    first = both.argmax(axis=1)
    return np.unique(first, return_inverse=True)[1]


@st.composite
def ballots(draw):
    n_items = draw(st.integers(1, 6))
    found = []
    for _ in range(draw(st.integers(0, 5))):
        on_it = draw(st.lists(st.integers(0, n_items - 1), unique=True, max_size=n_items))
        found.append(sorted(((i, draw(st.integers(0, 3))) for i in on_it), key=lambda row: row[1]))
    return found, n_items


@settings(max_examples=300)
@given(ballots())
def test_groups_are_those_of_the_search(data):
    found, n_items = data
    item = [i for rows in found for i, _ in rows]
    tier = [t for rows in found for _, t in rows]
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in found])])
    np.testing.assert_array_equal(components(item, tier, offsets, n_items), groups_by_search(found, n_items))


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] != pair[1])))
def test_pairs_are_ballots_of_two(pairs):
    winner, loser = np.array(pairs, dtype=int).reshape(-1, 2).T
    expected = groups_by_search([[(i, 0), (j, 1)] for i, j in pairs], 6)
    np.testing.assert_array_equal(components_of_pairs(winner, loser, 6), expected)


def test_edges_grow_with_rows_not_with_pairs():
    n = 200_000
    order = np.random.default_rng(0).permutation(n)
    item = np.concatenate([order, order[::-1]])
    tier = np.tile(np.arange(n) // 2, 2)
    assert components(item, tier, [0, n, 2 * n], n).max() == 0


def test_a_pair_seen_often_still_counts():
    """256 equal edges are one edge, not none."""
    assert components_of_pairs([0] * 256 + [1] * 512, [1] * 256 + [0] * 512, 2).max() == 0


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_connect(n):
    np.testing.assert_array_equal(components([], [], [0], n), np.zeros(n))
    np.testing.assert_array_equal(components_of_pairs([], [], n), np.zeros(n))


@settings(max_examples=100)
@given(st.integers(1, 40), st.integers(0, 120), st.integers(0, 2**32 - 1))
def test_few_edges_have_the_groups_that_scipy_finds(n, n_edges, state):
    winner, loser = np.random.default_rng(state).integers(0, n, (2, n_edges))
    by_python = components_of_pairs(winner, loser, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "FEW", 0)
        np.testing.assert_array_equal(components_of_pairs(winner, loser, n), by_python)


def test_a_long_chain_is_no_deep_recursion():
    n = 4000
    chain = np.arange(n)
    assert len(set(components_of_pairs(chain[:-1], chain[1:], n))) == n
    assert set(components_of_pairs(chain, np.roll(chain, -1), n)) == {0}
