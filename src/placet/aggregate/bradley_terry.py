"""Bradley-Terry on pair counts, with Rao-Kupper or Davidson ties and the effect of coming first."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from placet.aggregate import pairwise
from placet.aggregate.existence import agent_factor, data_kind, notes_of_pairs
from placet.aggregate.pair_bootstrap import bootstrap_draws
from placet.aggregate.result import Consensus
from placet.aggregate.uncertainty import MOST_SIMULATED
from placet.data import Comparisons, DataError, Rankings
from placet.data.errors import one_of

SCORE_TOLERANCE = 1e-8
STDERRS = ("observed", "sandwich", None)


class BradleyTerry(BaseEstimator):
    """Item i beats item j with probability 1 / (1 + e^-d), d = theta_i - theta_j.

    ``ties``: "none" counts a tie as half a win for either side; "rao-kupper" has P(i) = 1 / (1 + e^{t - d}) and gives
    ties the rest, t > 0; "davidson" has P(i), P(j), P(tie) in proportion to e^{d/2}, e^{-d/2}, e^t.
    ``order_effect=True`` adds a constant to d for the item that came first (``Comparisons`` with ``ordered=True``).
    ``prior``: scores (and t, and the effect of order) have a normal prior with mean 0 and this standard deviation; the
    default, 10, weighs as much as 1/25 of a vote between equals.  ``None``: no prior, and a ``DataError`` where no
    finite scores exist.
    ``stderr``: "observed" (information), "sandwich" (votes independent, model not trusted), or None.
    ``agent_weight``: a mapping of agents' names to what their votes count (others: 1).

    Newton's method: O(pairs) per step, plus O(n^3) once for standard errors up to 4,096 items; beyond, sampled ones.

    >>> votes = Comparisons.from_battles("aabbc", "bbcca", ["a", "b", "a", "a", "b"])
    >>> model = BradleyTerry().fit(votes)
    >>> model.consensus_.ranking
    ['b', 'a', 'c']
    """

    def __init__(
        self,
        ties: str = "none",
        order_effect: bool = False,
        prior: float | None = 10.0,
        stderr: str | None = "observed",
        agent_weight: Any = None,
        max_iter: int = 200,
        tol: float = 1e-10,
        random_state: int = 0,
    ):
        self.ties = ties
        self.order_effect = order_effect
        self.prior = prior
        self.stderr = stderr
        self.agent_weight = agent_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, data: Rankings | Comparisons, start: Any = None) -> "BradleyTerry":
        """Fit to votes, or to all pairs on the same ballot; ``start`` are scores to start from."""
        self._check(data)
        counts, notes = self._counts(data)
        pairs = self._pairs(counts)
        columns = (pairs.i, pairs.j, pairs.wins_i, pairs.wins_j, pairs.ties)
        notes += notes_of_pairs(*columns, counts.items, self.prior)
        if self.prior is None and pairs.tie and not (pairs.wins_i.any() or pairs.wins_j.any()):
            raise DataError("every result is a tie, so the tie parameter has no finite value; give a prior")
        x = pairwise.start_of(pairs, start)
        self.fit_, at = pairwise.newton(pairs, x, max_iter=self.max_iter, tol=self.tol)
        theta = self.fit_.x[: counts.n_items]
        self.theta_ = theta - theta.mean() if len(theta) else theta
        self.consensus_ = self._consensus(counts, pairs, at, notes)
        return self

    def bootstrap(self, data: Rankings | Comparisons, rounds: int, *, random_state: int = 0) -> Consensus:
        """The fitted consensus with ``rounds`` bootstrap draws: ballots, or votes by pair, counted anew.

        For votes every round starts from the fit and shares its inverse Hessian: O(pairs + n^2) for each step.
        """
        rng = np.random.default_rng(random_state)
        if isinstance(data, Rankings):
            from placet.aggregate.resample import resampled

            again = BradleyTerry(**(self.get_params(deep=False) | {"stderr": None}))
            draws = np.array([again.fit(resampled(data, rng), start=self.theta_).theta_ for _ in range(rounds)])
        else:
            counts, _ = self._counts(data)
            draws = bootstrap_draws(counts, self._pairs, self.fit_.x, rounds, rng, self.max_iter, self.tol, self.prior)
        note = f"uncertainty from {rounds} bootstrap rounds of multinomial counts"
        return replace(self.consensus_, stderr=None, covariance=None, draws=draws, notes=(*self.consensus_.notes, note))

    def _check(self, data: Any) -> None:
        data_kind(data)
        one_of(self.ties, pairwise.FAMILIES, "ties")
        one_of(self.stderr, STDERRS, "stderr")
        if self.prior is not None and not 0 < self.prior < np.inf:
            raise ValueError(f"prior must be a positive standard deviation or None, not {self.prior}")
        if self.order_effect and not getattr(data, "ordered", False):
            raise ValueError("order_effect=True needs to know who came first: Comparisons made with ordered=True")

    def _counts(self, data: Rankings | Comparisons) -> tuple[Comparisons, list[str]]:
        """One row for each pair, agents pooled with their weights; and what to note about it."""
        factor = agent_factor(self.agent_weight, data)
        notes = (
            []
            if self.prior is None
            else [f"prior: scores are normal with mean 0 and standard deviation {self.prior:g}"]
        )
        if isinstance(data, Rankings):
            weighted = data if self.agent_weight is None else replace(data, weight=data.weight * factor)
            data, factor = weighted.to_comparisons(), 1.0
            notes.append("pairs of one ballot were taken as independent votes; 'plackett-luce' or bootstrap does not")
        if data.agent is not None or (data.ordered and not self.order_effect):
            won, lost, tied = (c * factor for c in (data.wins_i, data.wins_j, data.ties))
            data = Comparisons(data.i, data.j, won, lost, tied, items=data.items, ordered=self.order_effect)
        n_ties = float(data.ties.sum())
        if n_ties and self.ties == "none":
            notes.append(f"{n_ties:g} ties were counted as half a win for either side")
        if not n_ties and self.ties != "none":
            notes.append("there are no ties, so the tie parameter is at its bound: no ties expected")
        return data, notes

    def _pairs(self, counts: Comparisons) -> pairwise.Pairs:
        columns = (counts.i, counts.j, counts.wins_i, counts.wins_j, counts.ties)
        return pairwise.scaled(*columns, counts.n_items, self.ties, self.prior, self.order_effect)

    def _consensus(
        self, counts: Comparisons, p: pairwise.Pairs, at: pairwise.Derivatives, notes: list[str]
    ) -> Consensus:
        n = counts.n_items
        _, tie, order = pairwise.parameters(p, self.fit_.x)
        extras: dict[str, Any] = {"tie": tie} if p.tie else {}
        if self.order_effect:
            extras["order_effect"] = order
        if not self.fit_.converged:
            notes.append(self.fit_.message)
        covariance = stderr = None
        robust = pairwise.meat(p, self.fit_.x) if self.stderr == "sandwich" else None
        if self.stderr is not None and n <= MOST_SIMULATED:
            full = pairwise.covariance_of(p, at, robust)
            covariance = full[:n, :n]
            for k, name in enumerate(tuple(extras)):
                extras[f"{name}_stderr"] = float(np.sqrt(full[n + k, n + k]))
        elif self.stderr is not None:
            stderr = pairwise.sampled_stderr(p, at, np.random.default_rng(self.random_state), robust)
            notes.append(
                f"more than {MOST_SIMULATED} items: standard errors are sampled and differences leave correlations out"
            )
        return Consensus(
            counts.items,
            self.theta_,
            method="bradley-terry",
            params=self.get_params(deep=False),
            stderr=stderr,
            covariance=covariance,
            win=partial(win_probability, family=p.family, tie=tie),
            fit=self.fit_,
            notes=tuple(notes),
            extras=extras,
            tolerance=SCORE_TOLERANCE,
        )


def win_probability(x: Any, y: Any, *, family: str, tie: float) -> Any:
    """The probability that an item of score x strictly beats one of score y, neither coming first."""
    d = np.subtract(x, y)
    if family == "davidson":
        return 1 / (1 + np.exp(-d) + np.exp(tie - 0.5 * d))
    return expit(d - tie)
