"""Kemeny orders: least by brute force, certified, and honest where time runs out."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import placet
import placet.axioms
from placet.aggregate.rules import kemeny, linear_order
from placet.aggregate.rules.kemeny import kemeny_order, ordered_components, pair_tables
from placet.data import Comparisons, DataError, Rankings
from placet.kernels.aggregate import kemeny as kernels

check = settings(max_examples=60)


def distance(wins, order):
    return sum(wins[order[q], order[p]] for p in range(len(order)) for q in range(p + 1, len(order)))


@st.composite
def tables(draw, max_items=6):
    """Weights of i above j, with ties, cycles, pairs that never met, and numbers that are not whole."""
    n = draw(st.integers(1, max_items))
    weights = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0, 0.3, 2.7])
    return np.array(draw(st.lists(weights, min_size=n * n, max_size=n * n))).reshape(n, n) * (1 - np.eye(n))


def comparisons(wins):
    i, j = np.triu_indices(len(wins), 1)
    return Comparisons(i, j, wins[i, j], wins[j, i], 0.0 * wins[i, j], items=tuple(range(len(wins))))


def random_ballots(n, ballots, seed):
    rng = np.random.default_rng(seed)
    return Rankings.from_orders([rng.permutation(n).tolist() for _ in range(ballots)], items=range(n))


def mallows_ballots(n, phi, ballots, seed):
    rng = np.random.default_rng(seed)
    orders = []
    for _ in range(ballots):
        order: list[int] = []
        for i in range(n):
            chance = phi ** np.arange(i, -1, -1.0)
            order.insert(int(rng.choice(i + 1, p=chance / chance.sum())), i)
        orders.append(order)
    return Rankings.from_orders(orders, items=range(n))


@check
@given(wins=tables())
def test_exact_is_least_by_brute_force(wins):
    result = kemeny_order(comparisons(wins))
    best = min(distance(wins, order) for order in itertools.permutations(range(len(wins))))
    assert result.distance == pytest.approx(best, abs=1e-9)
    assert distance(wins, result.order) == pytest.approx(best, abs=1e-9)
    assert result.optimal
    assert result.lower_bound == result.distance


@check
@given(wins=tables())
def test_local_search_brackets_the_optimum(wins):
    best = min(distance(wins, order) for order in itertools.permutations(range(len(wins))))
    result = kemeny_order(comparisons(wins), "local")
    assert result.lower_bound <= best + 1e-9
    assert result.distance >= best - 1e-9
    assert distance(wins, result.order) == pytest.approx(result.distance, abs=1e-9)
    assert result.optimal == (abs(result.distance - result.lower_bound) < 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_programs_find_the_best_order_of_seven(seed):
    """Dense random margins are one component, so that programs, fixing and branching are all at work."""
    rng = np.random.default_rng(seed)
    whole = np.triu(rng.integers(-9, 10, (7, 7)), 1).astype(float)
    for margin in (whole - whole.T, (whole - whole.T) * np.pi):
        best = min(linear_order.lost_weight(margin, np.array(order)) for order in itertools.permutations(range(7)))
        order, bound = linear_order.solve(margin, np.arange(7), linear_order.deadline(None))
        assert linear_order.lost_weight(margin, order) == pytest.approx(best)
        assert bound == pytest.approx(best)


def test_branch_and_bound_agrees_with_the_full_program():
    """A margin table whose linear program is fractional (found by search), against all triangles at once."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rng = np.random.default_rng(8)
    n = 14
    upper = np.triu(rng.choice([-1.0, 1.0], (n, n)), 1)
    margin = upper - upper.T
    program = linear_order._Program(margin)
    rows = np.array([(*t, side) for t in itertools.combinations(range(n), 3) for side in (0, 1)])
    program.rows, program.slack_for = rows, np.zeros(len(rows), np.int64)
    A, b = program.matrix()
    ones = np.ones(len(program.cost))
    relaxed = milp(program.cost, bounds=Bounds(0, 1), constraints=LinearConstraint(A, ub=b))
    full = milp(program.cost, integrality=ones, bounds=Bounds(0, 1), constraints=LinearConstraint(A, ub=b))
    assert relaxed.fun < full.fun - 0.1  # else this test would not reach the branching
    order, bound = linear_order.solve(margin, np.arange(n), linear_order.deadline(None))
    assert linear_order.lost_weight(margin, order) == pytest.approx(full.fun + program.constant)
    assert bound == pytest.approx(full.fun + program.constant)


def test_strong_components_follow_one_another():
    margin = pair_tables(Rankings.from_orders([list("abcdef"), list("bcafde"), list("cabefd")]))[0]
    parts = ordered_components(margin - margin.T)[0]
    assert [sorted(part.tolist()) for part in parts] == [[0, 1, 2], [3, 4, 5]]
    assert kemeny_order(Rankings.from_orders([list("abcdef"), list("bcafde"), list("cabefd")])).components == 2


def test_forty_items_of_uniform_ballots_are_certified():
    results = [kemeny_order(random_ballots(40, ballots, 1)) for ballots in (10, 25, 101)]
    assert all(result.optimal for result in results)


def test_a_hundred_items_of_a_mallows_model_are_certified():
    result = kemeny_order(mallows_ballots(100, 0.97, 30, 0))
    assert result.optimal


def test_when_time_runs_out_the_bound_is_below_the_distance():
    votes = random_ballots(80, 20, 3)
    result = kemeny_order(votes, time_limit=1e-6)  # over before the first programme is solved, on any machine
    assert not result.optimal
    assert result.lower_bound < result.distance
    pairs = np.minimum(*(lambda w: (w, w.T))(pair_tables(votes)[0])).sum() / 2
    assert result.lower_bound >= pairs
    assert "at least" in repr(result)


@check
@given(wins=tables(), data=st.data())
def test_insertion_search_gains_what_it_says_and_stops_at_a_local_optimum(wins, data):
    margin = wins - wins.T
    n = len(margin)
    order = np.array(data.draw(st.permutations(range(n))))
    value = lambda o: np.triu(margin[np.ix_(o, o)], 1).sum()  # noqa: E731
    before = value(order)
    gained = kernels.insertion_search(margin, order)
    assert value(order) == pytest.approx(before + gained)
    for k, p in itertools.permutations(range(n), 2):
        moved = np.insert(np.delete(order, k), p, order[k])
        assert value(moved) <= value(order) + 1e-9
    best = order.copy()
    swaps = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=4, max_size=4)))[None, :]
    more = kernels.restarts(margin, order.copy(), swaps, best)
    assert value(best) == pytest.approx(value(order) + more)
    assert more >= 0


@pytest.mark.parametrize("pairs", [False, True])
def test_pairs_are_counted_once_for_all_rules_of_an_audit(monkeypatch, pairs):
    counted = []
    monkeypatch.setattr(
        kemeny, "_count_pairs", lambda data, count=kemeny._count_pairs: counted.append(data) or count(data)
    )
    votes = Rankings.from_orders([list("abc"), list("bca"), list("bac")])
    votes = votes.to_comparisons() if pairs else votes
    result = placet.consensus(votes, "borda")
    found = placet.axioms.audit(votes, result)
    assert {"copeland", "kemeny-local"} <= set(found.agreement.methods)
    assert [data is votes for data in counted].count(True) == 1


def test_tables_of_pairs_are_those_of_the_data_asked_for_and_end_with_them():
    one, other = (Rankings.from_orders([list(order)], items=["a", "b"]) for order in ("ab", "ba"))
    first = pair_tables(one)
    assert not first[0].flags.writeable
    assert pair_tables(one) is first
    assert pair_tables(other)[0].tolist() == first[0].T.tolist()
    assert pair_tables(one)[0].tolist() == first[0].tolist() == [[0, 1], [0, 0]]
    del one, other
    assert kemeny._last == []


def test_pair_tables_count_ballots_and_pairs_alike():
    votes = Rankings.from_orders([["a", ("b", "c")], ["c", "a"]], weight=[2, 1])
    wins, ties = pair_tables(votes)
    assert wins.tolist() == [[0, 2, 2], [0, 0, 0], [1, 0, 0]]
    assert ties.tolist() == [[0, 0, 0], [0, 0, 2], [0, 2, 0]]
    for from_ballots, from_pairs in zip((wins, ties), pair_tables(votes.to_comparisons())):
        assert np.array_equal(from_ballots, from_pairs)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="method 'fast' is unknown"):
        kemeny_order(random_ballots(3, 1, 0), "fast")
    with pytest.raises(TypeError, match="Rankings or Comparisons"):
        kemeny_order([["a", "b"]])
    with pytest.raises(DataError, match="too many for a table of pairs"):
        kemeny_order(Rankings([0], [0], [0, 1], items=tuple(range(20_001))))
    assert len(kemeny_order(Rankings([], [], [0])).order) == 0
