"""What no answer depends on: the order of ballots, the order and the names of items, how weights are written down.

Every rule and every model; ``PLACET_EXAMPLES=2000 pytest tests/test_invariance.py`` looks longer.
"""

import os

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import ballots

from placet import concat, consensus
from placet.aggregate import MODELS, RULES
from placet.data import Rankings

METHODS = [*RULES, *sorted(MODELS)]
EXAMPLES = int(os.environ.get("PLACET_EXAMPLES", "12"))
check = settings(max_examples=EXAMPLES)

OF_WEIGHTS = {"rank-centrality"}
"""Rules with a prior that weighs something, so that half of all weights is other data."""


def rebuilt(r, ballots=None, weight=None):
    """The same ballots in another order, or with other weights."""
    chosen = r if ballots is None else r[np.asarray(ballots, int)]
    weight = chosen.weight if weight is None else weight
    return Rankings(chosen.item, chosen.tier, chosen.offsets, weight, items=r.items, score=chosen.score)


def same(method, one, other, rename=None):
    """Whether both data get the same scores, by name; a model's to the accuracy of its search."""
    a, b = consensus(one, method), consensus(other, method)
    rename = rename or {}
    expected = dict(zip(a.items, a.scores))
    near = 1e-9 if method in RULES else 2e-5 * max(1.0, float(np.abs(a.scores).max(initial=0.0)))
    names = [rename.get(name, name) for name in b.items]
    assert b.scores == pytest.approx([expected[name] for name in names], abs=near)
    if method in RULES:
        tiers = [{rename.get(x, x) for x in (t if isinstance(t, tuple) else (t,))} for t in b.ranking]
        assert tiers == [set(t) if isinstance(t, tuple) else {t} for t in a.ranking]
        heads = {*one.heads_note(), *other.heads_note()}  # they count ballots, whatever these weigh
        assert set(a.notes) - heads == set(b.notes) - heads


@pytest.mark.parametrize("method", METHODS)
@check
@given(data=st.data())
def test_order_of_ballots(method, data):
    r = data.draw(ballots())
    same(method, r, rebuilt(r, ballots=data.draw(st.permutations(range(len(r))))))


@pytest.mark.parametrize("method", METHODS)
@check
@given(data=st.data())
def test_order_and_names_of_items(method, data):
    r = data.draw(ballots())
    to = np.array(data.draw(st.permutations(range(r.n_items))))
    names = tuple(f"item {name}" for name in np.array(r.items)[np.argsort(to)])
    other = Rankings(to[r.item], r.tier, r.offsets, r.weight, items=names, score=r.score)
    same(method, r, other, {name: name.removeprefix("item ") for name in names})


@pytest.mark.parametrize("method", METHODS)
@check
@given(data=st.data())
def test_weight_two_is_the_ballot_twice(method, data):
    r = data.draw(ballots())
    b = data.draw(st.integers(0, len(r) - 1))
    weight = r.weight.copy()
    weight[b] *= 2
    same(method, rebuilt(r, weight=weight), rebuilt(r, ballots=[*range(len(r)), b]))


@pytest.mark.parametrize("method", METHODS)
@check
@given(data=st.data())
def test_split_in_two_and_joined(method, data):
    r = data.draw(ballots())
    at = data.draw(st.integers(0, len(r)))
    parts = [r[np.arange(at)], r[np.arange(at, len(r))]]
    same(method, r, concat([parts[1], parts[0]]))


@pytest.mark.parametrize("method", sorted(set(RULES) - OF_WEIGHTS))
@check
@given(r=ballots(), factor=st.sampled_from([0.5, 0.1, 3.0, 1e-6]))
def test_a_common_factor_of_all_weights(method, r, factor):
    params = {"quota": "exact"} if method == "stv" else {}  # Droop's counts whole votes
    one, other = consensus(r, method, **params), consensus(rebuilt(r, weight=r.weight * factor), method, **params)
    assert one.ranking == other.ranking
    assert len(one.notes) == len(other.notes)
