"""Theory of positional rules: which axioms the points h(1), ..., h(n) satisfy or violate, and by what margin.

Three numbers decide this (Prasad, Pareek and Ravikumar 2015, propositions 13-21):

Omega    max over i < j of h(i) - h(j)
omega    min over i < j of h(i) - h(j)
omega_1  min over j > 1 of h(1) - h(j)

A margin epsilon is the least number beyond which the relaxed axiom holds; 1/2 means that not even unanimity suffices.
The paper's table of margins has errors: for the log rule it prints log(n) / (2 log(n^2 / (n - 1))) twice, where the
definitions give log(n - 1) / (2 log(n^2 / (n - 1))) and, for the majority, log(n / 2) / (2 log(2 n)).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.aggregate.rules.positional import POSITIONAL, positional_vector
from placet.axioms.linear_programs import condorcet_case
from placet.axioms.outcome import CachedMethod, ExaminedMethod, as_method, positional_method
from placet.axioms.profiles import Profile
from placet.axioms.witness import Witness
from placet.data.arrays import Floats

CLOSE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Margins:
    """Omega, omega, omega_1 of points ``h`` (n,), best place first, and the resulting margins.

    >>> Margins([3, 2, 1, 0])
    Margins(n=4, Omega=3, omega=1, omega_1=1, strong Condorcet 0.25, majority 0.25)
    """

    h: Floats

    def __post_init__(self) -> None:
        points = np.array(self.h, np.float64)
        if points.ndim != 1 or len(points) < 2 or not np.isfinite(points).all():
            raise ValueError(f"h must be two or more finite points, one for each place, not {points}")
        points.flags.writeable = False
        object.__setattr__(self, "h", points)

    @property
    def n(self) -> int:
        return len(self.h)

    @cached_property
    def _falls(self) -> Floats:
        """h(i) - h(j) where i < j, else NaN."""
        falls = self.h[:, None] - self.h[None, :]
        return np.where(np.triu(np.ones((self.n, self.n), bool), 1), falls, np.nan)

    @property
    def widest(self) -> tuple[int, int]:
        """Places i < j (from 0) with the largest drop in points, Omega."""
        i, j = np.unravel_index(np.nanargmax(self._falls), self._falls.shape)
        return int(i), int(j)

    @property
    def narrowest(self) -> tuple[int, int]:
        """Places i < j (from 0) with the smallest drop in points, omega."""
        i, j = np.unravel_index(np.nanargmin(self._falls), self._falls.shape)
        return int(i), int(j)

    @property
    def Omega(self) -> float:
        return float(self._falls[self.widest])

    @property
    def omega(self) -> float:
        return float(self._falls[self.narrowest])

    @property
    def omega_1(self) -> float:
        return float(self.h[0] - self.h[1:].max())

    @property
    def close(self) -> float:
        """Differences in points up to this size are due to rounding."""
        return CLOSE * float(np.abs(self.h).max())

    @property
    def constant(self) -> bool:
        return float(np.ptp(self.h)) <= self.close

    @property
    def pareto(self) -> bool:
        """Proposition 15: whether h is strictly decreasing."""
        return self.omega > self.close

    @property
    def monotone(self) -> bool:
        """Proposition 16: whether h is nonincreasing."""
        return self.omega >= -self.close

    @property
    def iia_margin(self) -> float:
        """Proposition 14: (Omega - omega) / (2 abs(Omega + omega)), at most 1/2; 0 if h is constant.

        The absolute value, which the paper omits, is for increasing points.
        """
        if self.constant:
            return 0.0
        total = abs(self.Omega + self.omega)
        return min(0.5, (self.Omega - self.omega) / (2 * total)) if total > self.close else 0.5

    @property
    def strong_condorcet_margin(self) -> float:
        """Proposition 21: (Omega - omega) / (2 (Omega + omega)) if omega > 0, else 1/2."""
        return (self.Omega - self.omega) / (2 * (self.Omega + self.omega)) if self.pareto else 0.5

    @property
    def majority_margin(self) -> float:
        """Proposition 19: (Omega - omega_1) / (2 (Omega + omega_1)) if omega_1 > 0, else 1/2.

        The paper's max(Omega, -omega) equals Omega if omega_1 > 0.
        """
        if self.omega_1 <= self.close:
            return 0.5
        return (self.Omega - self.omega_1) / (2 * (self.Omega + self.omega_1))

    @cached_property
    def condorcet_margin(self) -> float:
        """The exact margin of the Condorcet criterion, by a linear program of n (n - 1) variables.

        Since x must beat all others and not only y, it is at most that of the strong form, which the paper gives for
        both."""
        return condorcet_case(self.h).share - 0.5

    def __repr__(self) -> str:
        return (
            f"Margins(n={self.n}, Omega={self.Omega:g}, omega={self.omega:g}, omega_1={self.omega_1:g}, "
            f"strong Condorcet {self.strong_condorcet_margin:.4g}, majority {self.majority_margin:.4g})"
        )


def margins(h: str | ArrayLike, n: int | None = None) -> Margins:
    """Margins of a named positional rule for n items, or of given points.

    Returns
    -------
    Margins
        Omega, omega, omega_1, and the margin of each axiom.

    >>> round(margins("log", 5).majority_margin, 4)
    0.199
    """
    if not isinstance(h, str):
        return Margins(np.asarray(h, np.float64))
    if n is None:
        raise ValueError(f"how many items? margins({h!r}, n)")
    if n < 2:
        raise ValueError(f"n must be at least 2, not {n}")
    return Margins(positional_vector(h, n))


def margins_table(n: int) -> list[dict[str, Any]]:
    """Omega, omega, omega_1 and the margins of all named positional rules for n items, one row per rule.

    Returns
    -------
    list of dict
        A row per rule.

    >>> [row["rule"] for row in margins_table(4)]
    ['borda', 'plurality', 'anti-plurality', 'log', 'squared', 'dowdall']
    """
    return [
        {
            "rule": name,
            "Omega": m.Omega,
            "omega": m.omega,
            "omega_1": m.omega_1,
            "iia": m.iia_margin,
            "strong-condorcet": m.strong_condorcet_margin,
            "condorcet": m.condorcet_margin,
            "majority": m.majority_margin,
        }
        for name, m in ((name, margins(name, n)) for name in POSITIONAL)
    ]


# Profiles that attain the margins, for any n


def order_with_places(n: int, x: int, y: int, rotation: int = 0) -> list[int]:
    """An order of n items, best first, with item 0 at place x, item 1 at place y (from 0), the others in sequence."""
    others = [*range(2 + rotation, n), *range(2, 2 + rotation)]
    order = [others.pop(0) if place not in (x, y) and others else -1 for place in range(n)]
    order[x], order[y] = 0, 1
    return order


def pareto_profile(m: Margins) -> Profile:
    """One ballot that puts A narrowly above B, yet gives it no more points (if h is not strictly decreasing)."""
    i, j = m.narrowest
    return Profile.from_orders([order_with_places(m.n, i, j)], [1.0])


def strong_condorcet_profile(m: Margins) -> Profile:
    """A above B on a share of 1/2 + margin, yet tied in the outcome.

    A is narrowly above B on these ballots, and B widely above A on the others.
    """
    share = 0.5 + m.strong_condorcet_margin
    (i, j), (k, last) = m.narrowest, m.widest
    return Profile.from_orders([order_with_places(m.n, i, j), order_with_places(m.n, last, k)], [share, 1 - share])


def majority_profile(m: Margins) -> Profile:
    """A first on a share of 1/2 + margin, yet tied with B.

    B has the most points possible on these ballots, and is widely above A on the others.
    """
    share = 0.5 + m.majority_margin
    k, last = m.widest
    second = 1 + int(np.argmax(m.h[1:]))
    return Profile.from_orders([order_with_places(m.n, 0, second), order_with_places(m.n, last, k)], [share, 1 - share])


def iia_profiles(m: Margins) -> tuple[Profile, Profile]:
    """Two profiles with A above B on half of the weight: one puts A ahead, the other B."""
    (i, j), (k, last) = m.narrowest, m.widest
    return (
        Profile.from_orders([order_with_places(m.n, k, last), order_with_places(m.n, j, i)], [1.0, 1.0]),
        Profile.from_orders([order_with_places(m.n, i, j), order_with_places(m.n, last, k)], [1.0, 1.0]),
    )


def condorcet_profile(m: Margins) -> Profile:
    """A beats every other item with a share of 1/2 + margin, yet is tied with B in points.

    The places of A and B come from the linear program; the others appear in every rotation and are thus equivalent.
    """
    case = condorcet_case(m.h)
    turns = max(m.n - 2, 1)
    orders = [order_with_places(m.n, x, y, r) for (x, y) in case.places for r in range(turns)]
    return Profile.from_orders(orders, [w / turns for w in case.weight for _ in range(turns)])


def tie_profile(n: int) -> Profile:
    """Two ballots that differ only by swapping A and B: every neutral, anonymous rule must tie the two items."""
    return Profile.from_orders([order_with_places(n, 0, 1), order_with_places(n, 1, 0)], [1.0, 1.0])


def lifted_profiles(m: Margins) -> tuple[Profile, Profile]:
    """One ballot before and after A moves up one place and loses points (if h increases somewhere)."""
    i = int(np.argmax(np.diff(m.h)))
    return (
        Profile.from_orders([order_with_places(m.n, i + 1, i)], [1.0]),
        Profile.from_orders([order_with_places(m.n, i, i + 1)], [1.0]),
    )


# Impossibility, by construction


def find_tie_between(
    method: Any, first: list[int], second: list[int], x: int, y: int, steps: int = 60
) -> Witness | None:
    """Theorem 9: between two ballots that disagree on x and y, a continuous rule passes through a tie.

    Bisect over w in the mixture w first + (1 - w) second until x and y tie or the weights are numerically equal; return
    ``None`` if the rule jumps over the tie.  O(steps) runs of the rule.

    Returns
    -------
    Witness or None
        The mixture at which the items tie.

    >>> find_tie_between("squared", [0, 1, 2], [1, 2, 0], 0, 1).profiles[0].weight
    (0.727272..., 0.272727...)
    """
    rule = CachedMethod(method)
    ends = [Profile.from_orders([order], [1.0]) for order in (first, second)]
    above = [rule.outcome(end) for end in ends]
    if above[0] is None or above[1] is None or not (above[0][x, y] and above[1][y, x]):
        raise ValueError(f"{rule.name!r} must put {x} above {y} on the first ballot, below on the second")
    low, high = 0.0, 1.0
    for _ in range(steps):
        w = (low + high) / 2
        profile = Profile.from_orders([first, second], [w, 1 - w])
        now = rule.outcome(profile)
        if now is None or not (now[x, y] or now[y, x]):
            names = (profile.items[x], profile.items[y])
            return Witness(
                "universality", rule.name, names, (profile,), (now,), reason=rule.reason if now is None else ""
            )
        low, high = (low, w) if now[x, y] else (w, high)
    return None


def rotations(n: int) -> Profile:
    """Proposition 5: the n rotations of one order.  Each item is above the next on a share of 1 - 1/n.

    So every rule fails to follow one of these n majorities of margin 1/2 - 1/n (1/6 for n = 3).  Borda's margin is the
    same number: no rule, positional or not, has a smaller one.

    Returns
    -------
    Profile
        The n ballots.

    >>> from placet.axioms.sentences import format_profile
    >>> format_profile(rotations(3))
    '1 x A > B > C; 1 x B > C > A; 1 x C > A > B'
    """
    return Profile.from_orders([[*range(k, n), *range(k)] for k in range(n)], [1.0] * n)


def method_and_margins(method: Any, n: int) -> tuple[ExaminedMethod, Margins | None]:
    """The method, and its margins for n items if it is positional; an array is interpreted as points."""
    found = positional_method(method) if isinstance(method, np.ndarray | list | tuple) else as_method(method)
    return found, None if found.h is None else Margins(found.h(n))
