"""Exact margins of rules that minimize an expected loss: closed forms, enumeration, random distributions."""

import itertools
from math import factorial

import numpy as np
import pytest

from placet.axioms import Domain, loss_gap_bounds, loss_worst_case, search, verdicts
from placet.axioms.expected_loss import DISTANCES


def kendall(a, b):
    return sum((a[x] < a[y]) != (b[x] < b[y]) for x, y in itertools.combinations(range(len(a)), 2))


LOSS = {
    "kemeny": kendall,
    "footrule": lambda a, b: sum(abs(p - q) for p, q in zip(a, b)),
    "mode": lambda a, b: int(tuple(a) != tuple(b)),
}


def costs(method, place, weight):
    return np.array([sum(w * LOSS[method](a, b) for b, w in zip(place, weight)) for a in place])


@pytest.mark.parametrize("n", [3, 4])
def test_margins_have_their_closed_forms(n):
    """Kemeny follows every majority beyond 1 - 1/n; the mode can be beaten by all orders that disagree with it."""
    margin = lambda axiom, method: loss_worst_case(axiom, method, n).margin  # noqa: E731
    assert margin("strong-condorcet", "kemeny") == pytest.approx(0.5 - 1 / n)
    assert margin("condorcet", "kemeny") == pytest.approx(0, abs=1e-9)
    assert margin("majority", "kemeny") == pytest.approx(0, abs=1e-9)
    half, first = factorial(n) / 2, factorial(n - 1)
    assert margin("strong-condorcet", "mode") == pytest.approx(half / (half + 1) - 0.5)
    assert margin("majority", "mode") == pytest.approx(first / (first + 1) - 0.5)
    assert np.isnan(loss_worst_case("pareto", "kemeny", n).share)


@pytest.mark.parametrize("method", DISTANCES)
@pytest.mark.parametrize("axiom", ["majority", "condorcet", "strong-condorcet"])
def test_the_distribution_attains_the_share_and_breaks_the_axiom(method, axiom):
    case = loss_worst_case(axiom, method, 3)
    profile = case.profiles[0]
    place = list(itertools.permutations(range(3)))
    weight = [dict(zip(profile.ballots, profile.weight)).get(p, 0.0) for p in place]
    cost = costs(method, place, weight)
    wanted = np.array([p[0] == 0 if axiom != "strong-condorcet" else p[0] < p[1] for p in place])
    assert cost[~wanted].min() <= cost[wanted].min() + 1e-9
    shares = {
        "majority": [sum(w for p, w in zip(place, weight) if p[0] == 0)],
        "strong-condorcet": [sum(w for p, w in zip(place, weight) if p[0] < p[1])],
        "condorcet": [sum(w for p, w in zip(place, weight) if p[0] < p[z]) for z in (1, 2)],
    }
    assert min(shares[axiom]) == pytest.approx(case.share)


@pytest.mark.parametrize("method", DISTANCES)
def test_no_distribution_leaves_the_bounds(method):
    """h(P) of random distributions lies between L and U of its own share of A above B."""
    rng = np.random.default_rng(0)
    place = list(itertools.permutations(range(3)))
    above = np.array([p[0] < p[1] for p in place])
    for gamma in (0.3, 0.5, 0.8):
        low, high = loss_gap_bounds(method, 3, gamma)
        assert low <= high
        for _ in range(60):
            weight = rng.dirichlet(np.full(6, 0.3))
            weight[above] *= gamma / max(weight[above].sum(), 1e-300)
            weight[~above] *= (1 - gamma) / max(weight[~above].sum(), 1e-300)
            cost = costs(method, place, weight)
            assert low - 1e-9 <= cost[above].min() - cost[~above].min() <= high + 1e-9


@pytest.mark.parametrize("method", DISTANCES)
def test_the_upper_bound_turns_positive_just_beyond_the_margin(method):
    share = loss_worst_case("strong-condorcet", method, 3).share
    assert loss_gap_bounds(method, 3, share)[1] == pytest.approx(0, abs=1e-7)
    assert loss_gap_bounds(method, 3, share + 0.02)[1] < 0
    assert loss_gap_bounds(method, 3, share - 0.02)[1] > 0


def test_wrong_parameters_are_named():
    with pytest.raises(ValueError, match="'borda' is unknown"):
        loss_worst_case("majority", "borda", 3)
    with pytest.raises(ValueError, match=r"n must be in 2\.\.5"):
        loss_gap_bounds("kemeny", 6, 0.5)
    with pytest.raises(ValueError, match="axiom with a worst case 'smith' is unknown"):
        loss_worst_case("smith", "kemeny", 3)


@pytest.mark.parametrize("method", ["kemeny", "footrule", "mode"])
def test_verdicts_have_the_exact_margins(method):
    """A search of small profiles finds no wider violation than the linear programs allow."""
    found = {v.axiom: v for v in verdicts(method, 3, voters=3, limit=200)}
    for axiom in ("majority", "condorcet", "strong-condorcet"):
        verdict = found[axiom]
        assert verdict.proved
        assert verdict.margin == pytest.approx(max(loss_worst_case(axiom, method, 3).margin, 0.0), abs=1e-9)
        assert verdict.kept == (verdict.margin <= 1e-9)
        assert search(axiom, method, Domain(3, 3), epsilon=verdict.margin + 1e-9, limit=100).witness is None
        if verdict.witness is not None:
            assert verdict.witness.margin <= verdict.margin + 1e-9
