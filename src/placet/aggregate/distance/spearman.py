"""Mallows model with Spearman's distance: P(order) = e^{-t d} / Z, d the sum of squared differences of places.

A ballot of m items is compared with the center restricted to those m items; a tie has the total probability of all its
orders.  Tiers occupy disjoint places, so the sum over a ballot's orders is a product over tiers of sums over matchings
of the tier's places with the ranks of its items in the center; and Z is such a sum over all m places.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from placet.aggregate.rules.positional import borda
from placet.data import DataError, Rankings
from placet.data.arrays import Floats, Ints, offsets_from_sizes, tier_runs
from placet.data.engines.memory import refuse_square
from placet.kernels.aggregate import matchings as kernels

MOST_EXACT = 12
"""Largest number of items for which sums over matchings are exact."""

MOST_TIED_PAIRS = 1_000_000
"""Limit on the pairs of items in tiers of more than 12, over all ballots, so that a fit takes seconds."""

MOST_ENUMERATED = 6
"""Largest number of items for which every order is tried as the center if ballots are tied or partial."""

BAND, FROM_BAND = 8, 0.15
"""From this dispersion on, orders that move an item by more than 8 places are ignored: they weigh below e^-72 t."""

GRID = np.concatenate([[0.0], np.geomspace(1e-6, 50.0, 21)])
"""Dispersions from which the search starts; the last one is its upper bound."""


@dataclass(frozen=True)
class SpearmanFit:
    """Negative log likelihood, dispersion, mean place (n_items,) over equally likely centers, and notes."""

    value: float
    dispersion: float
    place: Floats
    notes: tuple[str, ...]


def log_sum(t: float, place: Floats, center: Floats) -> float:
    """Log of the sum over matchings of e^{-t sum (place_i - center_m(i))^2}, both sorted with integer differences.

    Exact for up to 12 items.  Beyond, orders that move an item by more than 8 places are ignored for t >= 0.15; for
    smaller t it is the saddle-point approximation n! / n^n det(I + J / n - B'B)^{-1/2} of the permanent of B, the
    doubly stochastic scaling, minus its error at t = 0.15 in proportion to t: the mean distance is then within 0.5%.
    """
    n = len(place)
    if n <= MOST_EXACT:
        return float(kernels.log_sums(t, place, center, np.array([0, n]), np.ones(1)))
    if t >= FROM_BAND:
        return _log_band_permanent(t, place, center)
    return _saddle_point(t, place, center) - _error(place.tobytes(), center.tobytes()) * t / FROM_BAND


@lru_cache(maxsize=10_000)
def _error(place: bytes, center: bytes) -> float:
    """Error of the saddle-point approximation at FROM_BAND, for arrays passed as bytes."""
    columns = np.frombuffer(place), np.frombuffer(center)
    return _saddle_point(FROM_BAND, *columns) - _log_band_permanent(FROM_BAND, *columns)


_TABLE, _FEWER = "a table of places", "take fewer items, or distance='kendall'"


def _log_band_permanent(t: float, place: Floats, center: Floats) -> float:
    refuse_square(len(place), _TABLE, _FEWER)
    A = np.empty((len(place), len(place)))
    cost = kernels.relative_weights(t, place, center, A)
    rest, log = kernels.band_permanent(A, min(BAND, math.ceil(math.sqrt(40 / t))))
    return float(math.log(rest) + log - t * cost)


def _saddle_point(t: float, place: Floats, center: Floats, rounds: int = 500) -> float:
    n = len(place)
    refuse_square(n, _TABLE, _FEWER, 4.0)
    A = np.empty((n, n))
    cost = kernels.relative_weights(t, place, center, A)
    column = np.ones(n)
    for _ in range(rounds):
        row = 1 / (A @ column)
        new = 1 / (row @ A)
        settled = np.abs(new / column - 1).max() < 1e-9
        column = new
        if settled:
            break
    B = row[:, None] * A * column
    _, log = np.linalg.slogdet(np.eye(n) + 1 / n - B.T @ B)
    flat = math.lgamma(n + 1) - n * math.log(n)
    return float(flat - 0.5 * log - np.log(row).sum() - np.log(column).sum()) - t * cost


@lru_cache(maxsize=10_000)
def log_normalizer(t: float, n: int) -> float:
    """log Z, where Z is the sum over orders of n items of e^{-t d}."""
    places: Floats = np.arange(n, dtype=np.float64)
    return log_sum(t, places, places) if n > 1 else 0.0


class TiedPlaces:
    """Ballots as tiers of places, for the likelihood at any center."""

    def __init__(self, rankings: Rankings):
        self.rankings = rankings
        rows = np.arange(len(rankings.tier)) - rankings.offsets[:-1][rankings.ballot]
        self.place = rows.astype(np.float64)
        self.weight = rankings.weight[rankings.ballot]
        self.opens, self.size = tier_runs(rankings.tier, rankings.offsets)
        sizes = np.diff(rankings.offsets)
        self.sizes = {int(m): float(rankings.weight[sizes == m].sum()) for m in np.unique(sizes) if m > 1}
        large = self.size[self.size > MOST_EXACT]
        if (large**2).sum() > MOST_TIED_PAIRS:
            raise DataError(
                f"{len(large)} ties of more than {MOST_EXACT} items: the sum over their orders takes too long with "
                "Spearman's distance; use distance='kendall', or leave unlisted items absent"
            )
        self.tied = bool((self.size > 1).any())
        self.partial = bool((sizes[rankings.weight > 0] < rankings.n_items).any())

    def ranks(self, center: Ints) -> Floats:
        """Rank (rows,) of every row on its ballot by the places of a center."""
        r = self.rankings
        rank = np.empty(len(r.item))
        kernels.ranks_on_ballots(center, r.item, r.tier, r.offsets, rank)
        return rank

    def at(self, center: Ints) -> "AtCenter":
        """The likelihood at a center, given by the place of every item."""
        rank = self.ranks(center)
        alone, few = self.size == 1, (self.size > 1) & (self.size <= MOST_EXACT)
        single = self.opens[alone]
        distance = float(self.weight[single] @ (self.place[single] - rank[single]) ** 2)
        rows = np.concatenate(
            [np.arange(a, a + k) for a, k in zip(self.opens[few], self.size[few])] or [self.opens[:0]]
        )
        small = self.place[rows], rank[rows], offsets_from_sizes(self.size[few]), self.weight[self.opens[few]]
        large = [
            (self.place[a : a + k], rank[a : a + k], float(self.weight[a]))
            for a, k in zip(self.opens, self.size)
            if k > MOST_EXACT
        ]
        return AtCenter(distance, small, large, self.sizes)

    def log_likelihoods(self, center: Ints, t: float) -> Floats:
        """(ballots,): log probability of every ballot at a center and a dispersion."""
        r, rank = self.rankings, self.ranks(center)
        alone = self.opens[self.size == 1]
        found = -t * np.bincount(r.ballot[alone], (self.place[alone] - rank[alone]) ** 2, len(r))
        for a, k in zip(self.opens, self.size):
            if k > 1:
                found[r.ballot[a]] += log_sum(t, self.place[a : a + k], rank[a : a + k])
        sizes = np.diff(r.offsets)
        whole = {int(m): log_normalizer(t, int(m)) for m in np.unique(sizes)}
        return found - np.array([whole[int(m)] for m in sizes])


@dataclass(frozen=True)
class AtCenter:
    """Negative log likelihood of ballots at one center, as a function of the dispersion."""

    distance: float
    small: tuple[Floats, Floats, Ints, Floats]
    large: list[tuple[Floats, Floats, float]]
    sizes: dict[int, float]

    def loss(self, t: float) -> float:
        value = t * self.distance + sum(w * log_normalizer(t, m) for m, w in self.sizes.items())
        value -= kernels.log_sums(t, *self.small)
        return value - sum(w * log_sum(t, place, rank) for place, rank, w in self.large)

    def least(self) -> tuple[float, float]:
        """The minimum and the dispersion that attains it: the best of a grid, refined between its neighbors."""
        values = [self.loss(float(t)) for t in GRID]
        k = int(np.argmin(values))
        ends = float(GRID[max(k - 1, 0)]), float(GRID[min(k + 1, len(GRID) - 1)])
        found = minimize_scalar(self.loss, bounds=ends, method="bounded", options={"xatol": 1e-8 * ends[1]})
        best = min((values[k], float(GRID[k])), (float(found.fun), float(found.x)))
        end = values[-1], float(GRID[-1])
        return end if end[0] <= best[0] + 1e-12 * (1 + abs(best[0])) else best


def fit(rankings: Rankings) -> SpearmanFit:
    """Maximum likelihood center and dispersion.

    For complete ballots without ties the center orders items by mean place for every t, and equal means in any order.
    For others all orders are tried for up to 6 items; beyond, the center is the order by the Borda count that skips
    absent items, and a note says so.
    """
    ballots = TiedPlaces(rankings)
    if (ballots.tied or ballots.partial) and rankings.n_items <= MOST_ENUMERATED:
        return _best_of_all_orders(ballots)
    place = _mean_places(borda(rankings))
    strict = np.empty(len(place), np.int64)
    strict[np.argsort(place, kind="stable")] = np.arange(len(place))
    value, t = ballots.at(strict).least()
    notes = []
    if ballots.tied or ballots.partial:
        notes.append(
            "ballots are tied or partial: the center is the order of their mean places, and only the dispersion is "
            "the likeliest"
        )
    elif len(np.unique(place)) < len(place):
        notes.append("items with equal mean places: the center may have them in any order")
    if max(ballots.sizes, default=0) > MOST_EXACT:
        notes.append(
            f"more than {MOST_EXACT} items: sums over orders are approximate, within 0.5% of the mean distance"
        )
    return SpearmanFit(value, t, place, tuple(notes))


def _best_of_all_orders(ballots: TiedPlaces) -> SpearmanFit:
    """The best of all orders: none has a higher likelihood at its optimal dispersion."""
    n = ballots.rankings.n_items
    centers = [np.array(order, np.int64) for order in itertools.permutations(range(n))]
    at = [ballots.at(center) for center in centers]
    chosen = {min(range(len(at)), key=lambda k: at[k].loss(float(t))) for t in GRID[::2]}
    while True:
        value, t = min(at[k].least() for k in chosen)
        losses = np.array([one.loss(t) for one in at])
        equal = losses <= value + 1e-9 * (1 + abs(value))
        better = int(np.argmin(losses))
        if equal[better]:
            break
        chosen.add(better)
    place = np.mean([center for center, same in zip(centers, equal) if same], axis=0)
    notes = (
        () if equal.sum() == 1 else (f"{equal.sum()} orders are equally likely as the center; places are their mean",)
    )
    return SpearmanFit(value, t, place, notes)


def _mean_places(scores: Floats) -> Floats:
    """Place of every item, from 0, by score; scores that differ only by rounding share the mean place."""
    size = float(np.abs(scores).max(initial=0.0)) or 1.0
    _, group, count = np.unique(-np.round(scores / size, 11), return_inverse=True, return_counts=True)
    return (np.cumsum(count) - count + (count - 1) / 2)[group]
