"""Rules that minimize an expected loss: exact margins by linear programming (HiGHS).

The rule's order for a distribution P minimizes g_P(s) = sum over orders r of P(r) d(s, r).  With S the set of orders
in which A is where the axiom requires it, and T the set of all others,

L_gamma, U_gamma = least and largest value of min over S of g_P - min over T of g_P  over all P with premise = gamma

decide the axioms (Prasad, Pareek and Ravikumar 2015, propositions 8-11).  For one order t in T, g_P(t) and the bound
g_P(s) >= m for all s in S are linear in P.  U_gamma is therefore the maximum over a few linear programs, one for each t
up to renaming of the other items; the same holds for the largest share at which some t is a best order.
"""

from collections.abc import Callable
from functools import cache
from itertools import permutations

import numpy as np

from placet.axioms.linear_programs import WorstCase, maximize_share, order_profile, premise_rows, run_highs
from placet.axioms.outcome import Above
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of

MOST_ITEMS = 5
"""At 5 items there are 120 orders, the number of variables of a linear program."""


DISTANCES: dict[str, Callable[[Ints, Ints], float]] = {
    "kemeny": lambda a, b: float(((a[:, None] < a[None, :]) & (b[:, None] > b[None, :])).sum()),
    "footrule": lambda a, b: float(np.abs(a - b).sum()),
    "mode": lambda a, b: float((a != b).any()),
}
"""Rule -> the loss that it minimizes on strict complete ballots, as a function of two arrays of places: discordant
pairs, sum of absolute differences, 0-1 loss."""
AXIOMS_OF_SHARES = ("pareto", "majority", "condorcet", "strong-condorcet")


@cache
def _orders_and_losses(method: str, n: int) -> tuple[Ints, Floats]:
    """The orders (n!, n) as places, and the losses (n!, n!) between them."""
    one_of(method, DISTANCES, "rule that minimizes an expected loss")
    if not 2 <= n <= MOST_ITEMS:
        raise ValueError(f"n must be in 2..{MOST_ITEMS}, where all orders can be listed, not {n}")
    place = np.array(list(permutations(range(n))))
    return place, np.array([[DISTANCES[method](a, b) for b in place] for a in place])


def loss_gap_bounds(method: str, n: int, gamma: float) -> tuple[float, float]:
    """L_gamma and U_gamma for items A and B: the gap between the best orders with A above B and with B above A.

    Both negative: A ends above B for every such P; both positive: below; opposite signs: gamma alone does not decide.

    Returns
    -------
    (float, float)
        The lower and the upper bound of the gap.

    >>> low, high = loss_gap_bounds("kemeny", 3, 0.75)
    >>> round(low, 6), round(high, 6)
    (-1.25, -0.25)
    """
    place, loss = _orders_and_losses(method, n)
    above = place[:, 0] < place[:, 1]
    share = np.append(above.astype(np.float64), 0.0)
    high = max(_largest_gap(loss, above, t, share, gamma) for t in _representatives(place, ~above, 2))
    low = max(_largest_gap(loss, ~above, t, share, gamma) for t in _representatives(place, above, 2))
    return -low, high


def _largest_gap(loss: Floats, wanted: Above, t: int, share: Floats, gamma: float) -> float:
    """The largest m - g_P(t) subject to m <= g_P(s) for all wanted orders s, and share @ P = gamma."""
    goal = np.append(loss[t], -1.0)
    upper = np.column_stack([-loss[wanted], np.ones(int(wanted.sum()))])
    equal = np.vstack([np.append(np.ones(len(loss)), 0.0), share])
    return -float(run_highs(goal, upper, equal, np.array([1.0, gamma]), last=(None, None)).fun)


def loss_worst_case(axiom: str, method: str, n: int) -> WorstCase:
    """The largest share with which an axiom's premise can hold while an order that violates it is among the best.

    Counterpart of `worst_case` for positional rules; ``method`` is "kemeny", "footrule" or "mode".

    Returns
    -------
    WorstCase
        The share, and ballots that attain it.

    >>> round(loss_worst_case("strong-condorcet", "kemeny", 3).margin, 6)  # a cycle of three: 2/3
    0.166667
    >>> round(loss_worst_case("condorcet", "kemeny", 3).margin, 6)
    0.0
    """
    one_of(axiom, AXIOMS_OF_SHARES, "axiom with a worst case")
    place, loss = _orders_and_losses(method, n)
    first = axiom in ("majority", "condorcet")
    wanted = place[:, 0] == 0 if first else place[:, 0] < place[:, 1]
    premises = premise_rows(axiom, place)
    best, weight = -1.0, np.zeros(0)
    for t in _representatives(place, ~wanted, 1 if first else 2):
        share, weights = maximize_share(loss[t] - loss[wanted], premises, exactly=axiom == "pareto")
        if share > best + 1e-12:  # not if it is NaN
            best, (weight,) = share, weights
    if best < 0:
        return WorstCase(axiom, np.nan, ())
    return WorstCase(axiom, best, (order_profile(place, weight),))


def _representatives(place: Ints, chosen: Above, fixed: int) -> list[int]:
    """One chosen order for each placement of the first ``fixed`` items; the names of the others do not matter."""
    found: dict[tuple[int, ...], int] = {}
    for k in np.flatnonzero(chosen):
        found.setdefault(tuple(place[k, :fixed].tolist()), int(k))
    return list(found.values())
