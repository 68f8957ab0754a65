"""Mallows models: orders farther from a center are less likely, P(order) = e^{-t d(order, center)} / Z."""

import math
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize_scalar

from placet.aggregate.data_facts import support, unused_note
from placet.aggregate.distance import spearman
from placet.aggregate.instances import refuse_instances
from placet.aggregate.places import ballots_of
from placet.aggregate.result.result import Consensus
from placet.aggregate.rules.kemeny import KemenyOrder, kemeny_order
from placet.data import Rankings
from placet.data.arrays import Floats, Ints, tier_runs
from placet.data.parameters import Estimator
from placet.optim import Fit

LARGEST = 50.0
"""Upper bound of the dispersion, at which all orders but the center have negligible probability (e^-50)."""

MOST_EXACT = 60
"""Largest number of items for which the center is found exactly by default."""


class Mallows(Estimator):
    """Mallows model: a center order and a dispersion t >= 0, both by maximum likelihood; phi = e^-t.

    A tie on a ballot means that the order within it is unknown; its probability is the sum over all these orders.  A
    ballot of m items is compared with the center restricted to those m items.

    Parameters
    ----------
    distance : "kendall", the number of discordant pairs: the most likely center is then the Kemeny order for every t
        (`placet.aggregate.rules.kemeny` chooses among several).
        "spearman", the sum of squared differences of places: the most likely center orders items by mean place if
        ballots are complete and without ties.  Otherwise it is the best of all orders for up to 6 items, and beyond
        that the order by the Borda count that skips absent items, with the most likely t for it
        (see `placet.aggregate.distance.spearman`)
    center : "exact", "local", or None (exact for up to 60 items), for Kendall's distance
    random_state : seed of the local search

    Attributes
    ----------
    theta_ : minus the place in the center; for Spearman's distance, averaged over equally likely centers
    dispersion_ : t
    phi_ : e^-t

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "a", "c"]])
    >>> model = Mallows().fit(votes)
    >>> model.consensus_.ranking, round(model.dispersion_, 3)
    (['a', 'b', 'c'], 2.072)
    """

    def __init__(
        self,
        distance: Literal["kendall", "spearman"] = "kendall",
        center: Literal["exact", "local", None] = None,
        random_state: int = 0,
    ):
        self.distance = distance
        self.center = center
        self.random_state = random_state

    def fit(self, data: Rankings) -> "Mallows":
        """Fit to the ballots of one instance."""
        refuse_instances(data, "mallows")
        self.check_parameters()
        rankings = ballots_of(data, "mallows")
        if self.distance == "kendall":
            center = self._kemeny(rankings)
            self.theta_, notes = center.scores, list(center.notes())
            value, self.dispersion_ = kendall_dispersion(rankings, center.distance)
        else:
            found = spearman.fit(rankings)
            self.theta_, notes = -found.place, list(found.notes)
            value, self.dispersion_ = found.value, found.dispersion
        if self.dispersion_ >= LARGEST * (1 - 1e-6):
            notes.append("every ballot agrees with the center, so the dispersion is at its bound")
        self.fit_ = Fit(np.array([self.dispersion_]), value, 0.0, 1, True, "dispersion by a search in one dimension")
        self.consensus_ = Consensus(
            rankings.items,
            self.theta_,
            method="mallows",
            params=self.get_params(deep=False),
            fit=self.fit_,
            notes=(*data.notes, *notes, *unused_note(data, "mallows")),
            support=support(data),
            dispersion=self.dispersion_,
        )
        return self

    @property
    def phi_(self) -> float:
        """e^-t."""
        return math.exp(-self.dispersion_)

    def _kemeny(self, rankings: Rankings) -> KemenyOrder:
        how = self.center or ("exact" if rankings.n_items <= MOST_EXACT else "local")
        return kemeny_order(rankings, "exact" if how == "exact" else "local", random_state=self.random_state)


def log_normalizer(t: Any, n: int) -> Any:
    """log Z of Kendall's distance: the sum over j = 1 .. n of log((1 - q^j) / (1 - q)), q = e^-t.  O(n).

    >>> round(float(np.exp(log_normalizer(0.0, 4))))  # 4! orders of equal probability
    24
    """
    j = np.arange(2, n + 1)
    if t < 1e-9:
        return float(np.log(j).sum()) - t * n * (n - 1) / 4
    return float((np.log(-np.expm1(-t * j)) - math.log(-math.expm1(-t))).sum())


def kendall_dispersion(rankings: Rankings, distance: float) -> tuple[float, float]:
    """Negative log likelihood and the t that minimizes it, for a center at Kemeny ``distance`` from the ballots.

    A ballot with tiers of g_1, g_2, ... items has probability q^d Z_{g_1} Z_{g_2} ... / Z_m, where d counts its
    inversions between tiers.
    """
    sizes, weights = _sum_by_size(np.diff(rankings.offsets), rankings.weight)
    opens, size = tier_runs(rankings.tier, rankings.offsets)
    tier_sizes, tier_weights = _sum_by_size(size, rankings.weight[rankings.ballot[opens]])

    def loss(t: float) -> float:
        whole = sum(w * log_normalizer(t, m) for m, w in zip(sizes, weights))
        return t * distance + whole - sum(w * log_normalizer(t, m) for m, w in zip(tier_sizes, tier_weights))

    return least(loss, LARGEST)


def least(loss: Any, largest: float) -> tuple[float, float]:
    """Minimum over [0, largest] of a smooth function with a single minimum: its value and its location."""
    found = minimize_scalar(loss, bounds=(0.0, largest), method="bounded", options={"xatol": 1e-9})
    value, at = min((float(loss(0.0)), 0.0), (float(found.fun), float(found.x)))
    end = float(loss(largest))
    return (end, largest) if end <= value + 1e-12 * (1 + abs(value)) else (value, at)


def _sum_by_size(sizes: Ints, weight: Floats) -> tuple[list[int], list[float]]:
    """The sizes above 1 that have any weight, and the weight of each."""
    total = np.bincount(sizes, weight) if len(sizes) else np.zeros(0)
    kept = [m for m in range(2, len(total)) if total[m] > 0]
    return kept, [float(total[m]) for m in kept]
