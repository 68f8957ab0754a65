"""Mallows models as components of a mixture: a center, a dispersion, and the distances of ballots from the center."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from placet.aggregate.distance import spearman
from placet.aggregate.distance.mallows import Mallows, kendall_dispersion, log_normalizer
from placet.aggregate.mixture.voters import Voters, plain_copy
from placet.aggregate.places import places
from placet.aggregate.rules.kemeny import margins
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, Ints, tier_runs
from placet.data.engines.memory import refuse_square
from placet.kernels import metrics as metric_kernels
from placet.kernels.aggregate import kemeny as kemeny_kernels


class Center(NamedTuple):
    """Items best first, and the dispersion t."""

    order: Ints
    dispersion: float


class Distances:
    """Mallows models: centers are searched by moving one item at a time; the final fit is made by the model itself.

    The gradient and the information cover the dispersion only; a center has no derivative.
    """

    def __init__(self, model: Mallows, voters: Voters):
        if isinstance(voters.data, Comparisons):
            raise DataError("'mallows' needs whole ballots, and votes on pairs are none; use 'bradley-terry'")
        self.model, self.voters, self.ballots = model, voters, voters.data
        self.size, n = 1, voters.data.n_items
        self.n_parameters = n  # the dispersion, and a center that orders n items
        self.spearman = spearman.TiedPlaces(self.ballots) if model.distance == "spearman" else None
        opens, self.tier_size = tier_runs(self.ballots.tier, self.ballots.offsets)
        self.tier_ballot = self.ballots.ballot[opens]

    def start(self, weight: Floats) -> Center:
        data = self.voters.weighted(weight)
        assert isinstance(data, Rankings)
        place = places(data)
        by_row = data.weight[data.ballot]
        seen = np.bincount(data.item, by_row, data.n_items)
        total = np.bincount(data.item, by_row * place, data.n_items)
        mean = np.where(seen > 0, total / np.maximum(seen, 1e-300), (data.n_items + 1) / 2)
        return Center(np.argsort(mean, kind="stable").astype(np.int64), 0.0)

    def improve(self, weight: Floats, state: Center) -> Center:
        data = self.voters.weighted(weight)
        assert isinstance(data, Rankings)
        if self.spearman is not None:
            found = self.start(weight).order
            own = spearman.TiedPlaces(data)
            options = [(*own.at(_places(order)).least(), order) for order in (found, state.order)]
            _, t, order = min(options, key=lambda option: option[0])
            return Center(order, t)
        refuse_square(data.n_items, "a table of all pairs", "take fewer items, or a mixture of another model")
        wins = np.zeros((data.n_items, data.n_items))
        kemeny_kernels.pair_wins(data.item, data.tier, data.offsets, data.weight, wins, np.zeros_like(wins))
        order = state.order.copy()
        kemeny_kernels.insertion_search(margins(wins), order)
        against = float(np.tril(wins[np.ix_(order, order)], -1).sum())
        return Center(order, kendall_dispersion(data, against)[1])

    def distances(self, order: Ints) -> Floats:
        """(ballots,): number of pairs that each ballot orders against the center."""
        b = self.ballots
        ranked = np.lexsort((_places(order)[b.item], b.ballot))
        found = np.zeros(len(b))
        metric_kernels.inversions(-b.tier[ranked].astype(np.float64), b.offsets, found)
        return found

    def log_likelihood(self, state: Center) -> Floats:
        t, b = state.dispersion, self.ballots
        if self.spearman is not None:
            values = self.spearman.log_likelihoods(_places(state.order), t)
        else:
            whole = _by_size(np.diff(b.offsets), lambda m: log_normalizer(t, m))
            tiers = _by_size(self.tier_size, lambda m: log_normalizer(t, m))
            inside = np.bincount(self.tier_ballot, tiers, len(b))
            values = inside - whole - t * self.distances(state.order)
        return self.voters.per_voter(b.weight * values)

    def log_prior(self, state: Center) -> float:
        return 0.0

    def _step(self, state: Center) -> float:
        return 1e-4 * max(state.dispersion, 1e-2)

    def _three(self, state: Center) -> tuple[Floats, Floats, Floats, float]:
        """Log likelihoods at t - h, t and t + h, and h; t is at least h."""
        h = self._step(state)
        t = max(state.dispersion, h)
        low, mid, high = (self.log_likelihood(state._replace(dispersion=t + step)) for step in (-h, 0.0, h))
        return low, mid, high, h

    def gradient(self, state: Center) -> csr_matrix:
        low, _, high, h = self._three(state)
        return csr_matrix(((high - low) / (2 * h))[:, None])

    def information(self, weight: Floats, state: Center) -> Floats:
        low, mid, high, h = self._three(state)
        return np.array([[-float(weight @ (high - 2 * mid + low)) / h**2]])

    def refitted(self, weight: Floats, state: Center) -> tuple[Any, Any]:
        model = plain_copy(self.model).fit(self.voters.weighted(weight))
        order = np.lexsort((_places(state.order), -model.theta_)).astype(np.int64)
        return model, Center(order, model.dispersion_)

    def own_information(self, state: Center, voter: int) -> Floats:
        low, mid, high, h = self._three(state)
        return np.array([[-float((high - 2 * mid + low)[voter]) / h**2]])

    def scores(self, state: Center) -> Floats:
        return -_places(state.order).astype(np.float64)

    def vector(self, state: Center) -> None:
        return None

    def from_vector(self, x: Floats, state: Center) -> None:
        return None

    def score_covariance(self, covariance: Floats) -> None:
        return None


def _places(order: Ints) -> Ints:
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def _by_size(sizes: Ints, value: Any) -> Floats:
    """value(m) for each entry m of ``sizes``, computed once per distinct size."""
    table = np.array([value(m) if m > 1 else 0.0 for m in range(int(sizes.max(initial=0)) + 1)])
    return table[sizes]
