"""The worst distribution of ballots for a positional rule, by linear programming (HiGHS).

The programs find the largest share with which an axiom's premise can hold, over all distributions P on orders of n
items, while B scores at least as much as A.  The relaxed axiom holds beyond that share and at no smaller one.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from placet.axioms.profiles import Profile, letters
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of

MOST_ITEMS = 8
PREMISES = ("pareto", "iia", "majority", "condorcet", "strong-condorcet")
SOLVED, INFEASIBLE = 0, 2
"""Values of ``status`` in SciPy's results."""


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The largest ``share`` at which the axiom fails (at least 1/2), and a distribution that attains it.

    IIA needs two distributions that agree on the share and disagree on which item is ahead (one may tie them).
    If the axiom always holds, ``share`` is NaN and there is no distribution.

    >>> import placet
    >>> found = placet.axioms.worst_case("majority", [2, 1, 0])
    >>> round(found.share, 3), len(found.profiles)
    (0.667, 1)
    """

    axiom: str
    share: float
    profiles: tuple[Profile, ...]

    @property
    def margin(self) -> float:
        """The margin epsilon: the relaxed axiom holds for every larger epsilon."""
        return self.share - 0.5


def worst_case(axiom: str, h: ArrayLike) -> WorstCase:
    """The worst distribution over the n! orders for points ``h``: A deserves to be above B and is not.

    maximize t  subject to  P >= 0, sum P = 1, f(A) <= f(B), and the premise with share t: P(A above B) >= t (strong
    Condorcet), P(A above z) >= t for every z (Condorcet), P(A first) >= t (majority), P(A above B) = 1 (Pareto).  For
    IIA there are two distributions with P(A above B) = Q(A above B) = t, f(A) <= f(B) under P and f(A) >= f(B) under Q.
    n! + 1 variables, at most n + 1 rows; 720 orders at n = 6.

    Returns
    -------
    WorstCase
        The share, and distributions over orders that attain it.

    >>> round(worst_case("strong-condorcet", [2, 1, 0]).margin, 6)  # 1/2 - 1/3
    0.166667
    """
    points = np.asarray(h, np.float64)
    n = len(points)
    one_of(axiom, PREMISES, "axiom with a worst case")
    if not 2 <= n <= MOST_ITEMS:
        raise ValueError(f"{n} items have too many orders; from 2 to {MOST_ITEMS}, or use the margins for any n")
    place = np.array(list(permutations(range(n))))
    behind = points[place[:, 0]] - points[place[:, 1]]
    if axiom == "iia":
        share, weights = _maximize_common_share(behind, premise_rows(axiom, place)[0])
    else:
        share, weights = maximize_share(_scale(behind)[None, :], premise_rows(axiom, place), exactly=axiom == "pareto")
    return WorstCase(axiom, share, tuple(order_profile(place, weight) for weight in weights))


def order_profile(place: Ints, weight: Floats) -> Profile:
    """The orders with nonzero weight, given as places of the items, as a profile."""
    kept = np.flatnonzero(weight)
    ballots = tuple(tuple(row) for row in place[kept].tolist())
    return Profile(ballots, tuple(weight[kept].tolist()), letters(place.shape[1]))


def premise_rows(axiom: str, place: Ints) -> Floats:
    """(rows, orders): indicators of the events that the premise requires to be frequent."""
    if axiom == "majority":
        return (place[:, 0] == 0)[None, :].astype(np.float64)
    rivals = place[:, 1:] if axiom == "condorcet" else place[:, 1:2]
    return (place[:, :1] < rivals).T.astype(np.float64)


@dataclass(frozen=True)
class PlacesCase:
    """Pairs of places (A, B), counted from 0, and their weights that attain the largest share."""

    share: float
    places: tuple[tuple[int, int], ...]
    weight: tuple[float, ...]


def condorcet_case(h: ArrayLike) -> PlacesCase:
    """The Condorcet criterion's worst case for any n.

    The other n - 2 items may be averaged over all their orders: the points of A and B do not change, and the least
    share of A does not decrease.  So only the places (i, j) of A and B matter; A is then above any given other item
    with probability (n - i - 1 - [i < j]) / (n - 2), i counted from 0.  n (n - 1) + 1 variables, 4 rows.
    """
    points = np.asarray(h, np.float64)
    n = len(points)
    place = np.array(list(permutations(range(n), 2)))
    ahead = place[:, 0] < place[:, 1]
    premises = [ahead.astype(np.float64)]
    if n > 2:
        premises.append((n - place[:, 0] - 1 - ahead) / (n - 2))
    behind = _scale(points[place[:, 0]] - points[place[:, 1]])
    share, (weight,) = maximize_share(behind[None, :], np.array(premises))
    kept = np.flatnonzero(weight)
    return PlacesCase(share, tuple(map(tuple, place[kept].tolist())), tuple(weight[kept].tolist()))


def maximize_share(behind: Floats, premises: Floats, exactly: bool = False) -> tuple[float, list[Floats]]:
    """The largest t subject to premises @ P >= t, behind @ P <= 0, P a distribution; with ``exactly``, t = 1.

    Returned with P, or NaN and no distribution if there is none; ``behind`` and ``premises`` are (rows, orders).
    """
    required = np.column_stack([-premises, np.ones(len(premises))])
    upper = np.vstack([np.column_stack([behind, np.zeros(len(behind))]), required])
    total = np.append(np.ones(behind.shape[1]), 0.0)[None, :]
    return _maximize_last(upper, total, np.ones(1), (1.0, 1.0) if exactly else (0.0, 1.0), parts=1)


def _maximize_common_share(behind: Floats, ahead: Floats) -> tuple[float, list[Floats]]:
    """The largest t = ahead @ P = ahead @ Q subject to behind @ P <= 0 <= behind @ Q, P and Q distributions."""
    if not behind.any():
        return np.nan, []  # constant points tie all items on every profile
    zero, one = np.zeros(len(behind)), np.ones(len(behind))
    gap = _scale(behind)
    upper = np.vstack([np.concatenate([gap, zero, [0.0]]), np.concatenate([zero, -gap, [0.0]])])
    equal = np.vstack(
        [
            np.concatenate([one, zero, [0.0]]),
            np.concatenate([zero, one, [0.0]]),
            np.concatenate([ahead, zero, [-1.0]]),
            np.concatenate([zero, ahead, [-1.0]]),
        ]
    )
    return _maximize_last(upper, equal, np.array([1.0, 1.0, 0.0, 0.0]), (0.0, 1.0), parts=2)


def _scale(behind: Floats) -> Floats:
    return behind / (float(np.abs(behind).max()) or 1.0)


def _maximize_last(
    upper: Floats, equal: Floats, value: Floats, last: tuple[float, float], parts: int
) -> tuple[float, list[Floats]]:
    """Maximize the last variable; return it and the distributions before it, or NaN and none if infeasible."""
    goal = np.zeros(upper.shape[1])
    goal[-1] = -1.0
    answer = run_highs(goal, upper, equal, value, last, ends=(SOLVED, INFEASIBLE))
    if answer.status == INFEASIBLE:
        return np.nan, []
    weights = [np.where(part > 1e-11, part, 0.0) for part in np.split(answer.x[:-1], parts)]
    return float(answer.x[-1]), [weight / weight.sum() for weight in weights]


def run_highs(
    goal: Floats,
    upper: Floats,
    equal: Floats,
    value: Floats,
    last: tuple[float | None, float | None],
    ends: tuple[int, ...] = (SOLVED,),
) -> Any:
    """Minimize goal @ x subject to upper @ x <= 0 and equal @ x = value, as SciPy's result.

    The last variable is within the bounds ``last``, all others are at least 0.  A status not in ``ends`` is an error.
    """
    bounds = [(0.0, None)] * (len(goal) - 1) + [last]
    answer = linprog(goal, upper, np.zeros(len(upper)), equal, value, bounds, method="highs-ds")
    if answer.status not in ends:
        raise RuntimeError(f"HiGHS stopped without an answer: {answer.message}")
    return answer
