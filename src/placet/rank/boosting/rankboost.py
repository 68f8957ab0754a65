"""RankBoost: boosting of the exponential loss of ordered pairs.

Freund, Iyer, Schapire and Singer, An efficient boosting algorithm for combining preferences, JMLR 2003.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq

from placet.data import Queries
from placet.data.arrays import Floats
from placet.kernels.ranges import descending_order
from placet.kernels.rank import exponential_pairs as kernels
from placet.rank import similarity
from placet.rank.boosting.additive import Additive, Backend, BoostingRound, NewTerm, reason_no_edge


class RankBoost(Additive):
    """s = sum_t alpha_t h_t, fitted to lower Z = sum over pairs (i graded above j) of e^(s_j - s_i).

    Each round selects the weak ranking with the largest |r|, r = sum over pairs of D_ij (h_i - h_j), D_ij = e^(s_j -
    s_i) / Z and h scaled to a range of 1 on the training rows.  Pairs are never enumerated: a round is O(entries of
    the features).  ``rounds_`` records |r| (``gamma``) and log(Z / initial Z) after the round (``value``).

    Parameters
    ----------
    n_rounds : int
        Maximum number of rounds.
    learners : str or sequence of str
        Families that compete in every round: "stump" (1 above a threshold, as published), "feature" (x_k), "tree",
        "listwise" (x_k or 1, times exp(w T), T the sums of ``kernels`` over the other rows of the list).
    step : str
        "bound": alpha = 1/2 log((1 + r) / (1 - r)), which minimizes a bound on Z; "line-search": minimize Z itself.
    balance : str
        "pairs": all pairs have equal weight; "queries": all queries do (a query's weight is split among its pairs).
    learning_rate : float
        Factor of alpha.
    kernels : sequence
        Similarities of the listwise learners: see ``placet.rank.similarity``.
    bandwidth : float
        Bandwidth of "gaussian".
    backend : str
        Tree library: "lightgbm" or "sklearn".
    leaves : int
        Maximum leaves per tree.
    min_rows : int
        Minimum rows per leaf.
    min_edge : float
        Stop when no weak ranking has a larger |r|.
    patience : int
        Stop after this many rounds without a better ``metric`` on the validation set.
    metric : str
        Validation metric.
    random_state : int
        Seed of the trees.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> booster = RankBoost(100).fit(data[:40])
    >>> booster.rounds_[-1].value < booster.rounds_[0].value < 0, booster.score(data[40:]) > 0.85
    (True, True)
    """

    def __init__(
        self,
        n_rounds: int = 300,
        *,
        learners: str | Sequence[str] = "stump",
        step: Literal["bound", "line-search"] = "bound",
        balance: Literal["pairs", "queries"] = "pairs",
        learning_rate: float = 1.0,
        kernels: Sequence[similarity.SimilarityKernel] = ("cosine",),
        bandwidth: float = 0.25,
        backend: Backend = "lightgbm",
        leaves: int = 16,
        min_rows: int = 20,
        min_edge: float = 1e-6,
        patience: int = 50,
        metric: str = "ndcg@10",
        random_state: int = 0,
    ) -> None:
        self.n_rounds = n_rounds
        self.learners = learners
        self.step = step
        self.balance = balance
        self.learning_rate = learning_rate
        self.kernels = kernels
        self.bandwidth = bandwidth
        self.backend = backend
        self.leaves = leaves
        self.min_rows = min_rows
        self.min_edge = min_edge
        self.patience = patience
        self.metric = metric
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        self._check_learners()
        if not (self.learning_rate > 0 and self.min_edge >= 0):
            raise ValueError("learning_rate must be above 0 and min_edge not negative")
        model = self._new_sum(queries)
        groups = self._families(queries, model)
        pairs = OrderedPairs(queries, self.balance)
        s = np.zeros(pairs.n_rows)
        start, potential = pairs.log_sum(s)

        def make(n: int) -> NewTerm | str:
            nonlocal s, potential
            name, h, function, unit, r = self._best_ranking(groups, potential)
            if abs(r) <= self.min_edge:
                return reason_no_edge(n, abs(r), self.min_edge)
            step = pairs.bound_step(r) if self.step == "bound" else pairs.exact_step(s, h, r)
            alpha = self.learning_rate * step
            s = s + alpha * h
            log_z, potential = pairs.log_sum(s)
            return NewTerm(function, alpha * unit, BoostingRound(name, float(alpha), abs(r), log_z - start, None))

        best, stopped = self._boost(model, groups, valid, make)
        self.fit_summary_ = self._summary(best, stopped, 0.0)

    def _best_ranking(self, groups: dict[str, Any], potential: Floats) -> tuple[str, Any, Any, float, float]:
        """(family, h, function, its factor, r) of the weak ranking with the largest |r|."""
        found: tuple[str, Any, Any, float, float] = ("", None, None, 1.0, 0.0)
        for name, group in groups.items():
            proposal = group.propose_by_range(potential)
            if proposal is not None:
                h, function, unit = proposal
                r = float(potential @ h)
                if abs(r) > abs(found[4]):
                    found = name, h, function, unit, r
        return found


class OrderedPairs:
    """The ordered pairs of all lists; rows are in the caller's order."""

    def __init__(self, queries: Queries, balance: str) -> None:
        self.n_rows, self.offsets = len(queries.grade), queries.offsets
        self.order = descending_order(queries.grade, queries.offsets)
        self.grade = np.ascontiguousarray(queries.grade[self.order], np.float64)
        count = np.zeros(len(queries))
        for q, (a, b) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:])):
            ties = np.unique(self.grade[a:b], return_counts=True)[1].astype(np.float64)
            count[q] = ((b - a) ** 2 - (ties**2).sum()) / 2.0
        self.n_pairs = float(count.sum())
        counts = (count > 0) & (queries.weight > 0)
        share = queries.weight / np.where(balance == "queries", np.maximum(count, 1.0), 1.0)
        self.log_weight = np.full(len(count), -np.inf)
        self.log_weight[counts] = np.log(share[counts])

    def log_sum(self, s: Floats) -> tuple[float, Floats]:
        """log Z, and the potential (rows,): the weight of pairs with the row above minus below."""
        sorted_potential, potential = np.empty(self.n_rows), np.empty(self.n_rows)
        log_z = kernels.pair_potential(s[self.order], self.grade, self.offsets, self.log_weight, sorted_potential)
        potential[self.order] = sorted_potential
        return float(log_z), potential

    def bound_step(self, r: float) -> float:
        """The published alpha; if h orders all pairs, the finite value for half a pair out of order."""
        most = 1.0 - 1.0 / self.n_pairs
        r = min(max(r, -most), most)
        return 0.5 * float(np.log((1.0 + r) / (1.0 - r)))

    def exact_step(self, s: Floats, h: Floats, r: float) -> float:
        """The alpha that minimizes Z, in absolute value at most ``bound_step(1)``."""
        direction = np.sign(r) * h
        slope = lambda alpha: float(self.log_sum(s + alpha * direction)[1] @ direction)  # noqa: E731
        high, most = abs(self.bound_step(r)), self.bound_step(1.0)
        while high < most and slope(high) > 0:
            high *= 2.0
        if high >= most:
            return float(np.sign(r)) * most
        return float(np.sign(r)) * float(brentq(slope, 0.0, high, xtol=1e-4 * high))
