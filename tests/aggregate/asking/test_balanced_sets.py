"""Sets of items to show together: every item equally often, pairs as evenly as possible, none twice."""

from itertools import combinations
from random import Random

from hypothesis import given, strategies as st

from placet.aggregate.asking.balanced_sets import SetCounts, next_set


def spread(counts, keys):
    values = [counts[key] for key in keys]
    return max(values) - min(values)


@given(st.integers(3, 15), st.integers(3, 5), st.integers(0, 2**32), st.integers(1, 25))
def test_every_item_is_shown_equally_often(n, size, seed, questions):
    size, rng, counts = min(size, n), Random(seed), SetCounts()
    for _ in range(questions):
        shown = next_set(n, size, counts, counts, rng)
        assert len(set(shown)) == size
        assert set(shown) <= set(range(n))
        counts.add(shown)
        assert spread(counts.items, range(n)) <= 1


@given(st.integers(5, 12), st.integers(0, 2**32), st.integers(1, 15))
def test_a_person_sees_every_item_equally_often_whatever_others_saw(n, seed, questions):
    """Others broke off early, so that some items are far behind."""
    rng, own, everyone = Random(seed), SetCounts(), SetCounts([(0, 1, 2, 3)] * 40)
    for _ in range(questions):
        shown = next_set(n, 4, own, everyone, rng)
        own.add(shown)
        everyone.add(shown)
        assert spread(own.items, range(n)) <= 1


def test_pairs_are_more_even_than_by_chance_and_voters_differ():
    n, size, voters, rng = 12, 4, 30, Random(1)
    everyone, by_chance, designs = SetCounts(), SetCounts(), set()
    for _ in range(voters):
        own, seen = SetCounts(), set()
        for _ in range(9):  # three times each
            shown = next_set(n, size, own, everyone, rng, seen)
            own.add(shown)
            everyone.add(shown)
            seen.add(tuple(sorted(shown)))
            by_chance.add(rng.sample(range(n), size))
        assert set(own.items.values()) == {3}
        assert spread(own.pairs, combinations(range(n), 2)) <= 3
        designs.add(frozenset(seen))
    assert len(designs) == voters
    assert set(everyone.items.values()) == {3 * voters}
    pairs = list(combinations(range(n), 2))
    assert spread(everyone.pairs, pairs) <= 5 < spread(by_chance.pairs, pairs)


@given(st.integers(3, 6), st.integers(0, 2**32))
def test_no_set_comes_twice_until_all_have_come(n, seed):
    rng, counts, seen = Random(seed), SetCounts(), set()
    while (shown := next_set(n, 3, counts, counts, rng, seen)) is not None:
        assert tuple(sorted(shown)) not in seen
        seen.add(tuple(sorted(shown)))
        counts.add(shown)
    assert len(seen) == len(list(combinations(range(n), 3)))
