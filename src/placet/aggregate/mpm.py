"""The multinomial preference model: every preference a draw from one distribution over all ordered pairs of items."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from placet.aggregate import mpm_fit
from placet.aggregate.existence import data_kind
from placet.aggregate.mpm_data import Preferences, preferences, supervised_adherence
from placet.aggregate.result import Consensus, ConsensusSet
from placet.aggregate.uncertainty import MOST_SIMULATED
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats
from placet.data.breaking import STRENGTHS
from placet.data.errors import one_of
from placet.optim import Fit

REPEATED = "a difference of d places or stars counts as d observations, so standard errors are small; bootstrap is not"


class MultinomialPreference(BaseEstimator):
    """A preference of agent n is "i over j" with probability proportional to e^{t_n (s_i - s_j) / (g_i + g_j)}, all i
    != j.

    ``strength``: a ballot's pair counts once ("binary"), by the difference of tiers ("difference") or of scores
    ("rating").  ``variance=True`` learns g_i = e^{beta_i}; otherwise g_i + g_j = 1 and nothing of the size of pairs is
    built.  ``adherence``: t_n is 1 (None); "learned" with the scores, with the largest at 1; "supervised", set by
    `supervised_adherence` from the labelled instances that ``fit`` is given; or a mapping of agents to numbers.
    Without agents every ballot is its own.  ``rescale`` stretches supervised adherences to [0, 1].
    ``prior``: scores are normal with mean 0 and this standard deviation; ``None``: no prior, and a ``DataError``
    where no finite scores exist.  ``variance_prior``: the standard deviation of beta, whose scale the data do not tell.

    Ballots with ``instance`` are separate problems that share agents: ``consensus_`` is then a `ConsensusSet`, each
    over the items on its ballots.  ``theta_`` (n_items,) holds the scores (0 for an item that nobody listed), or is a
    mapping as well where an item occurs in several instances.

    Newton's method, O(rows) once and O(items x different adherences) per step; with variances L-BFGS, O(items^2).

    >>> votes = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]])
    >>> MultinomialPreference().fit(votes).consensus_.ranking
    ['a', 'b', 'c']
    """

    shares_agents = True

    def __init__(
        self,
        strength: str = "difference",
        variance: bool = False,
        adherence: str | Mapping[Hashable, float] | None = None,
        rescale: bool = True,
        prior: float | None = 10.0,
        variance_prior: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-8,
    ):
        self.strength = strength
        self.variance = variance
        self.adherence = adherence
        self.rescale = rescale
        self.prior = prior
        self.variance_prior = variance_prior
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, data: Rankings | Comparisons, truth: Rankings | None = None) -> "MultinomialPreference":
        """Fit to ballots or pairs; ``truth``: one ballot for each labelled instance, for supervised adherence."""
        self._check(data, truth)
        p = preferences(data, self.strength)
        precision = 0.0 if self.prior is None else self.prior**-2
        fixed = self._adherence(data, p, truth)
        if fixed is None:
            found = mpm_fit.learn(p, precision, self.max_iter, self.tol)
        else:
            found = mpm_fit.scores(p, fixed, precision, self.max_iter, self.tol)
        gamma = None
        if self.variance:
            spread = self.variance_prior**-2
            found, gamma = mpm_fit.variances(p, found, precision, spread, self.max_iter, max(self.tol, 1e-6))
        self.adherence_ = found.adherence
        self.variance_ = gamma
        self.fit_ = Fit(found.s, found.value, found.grad_norm, found.n_iter, found.converged, found.message)
        self._set_scores(p, found, gamma, precision)
        return self

    def _check(self, data: Any, truth: Any) -> None:
        data_kind(data)
        one_of(self.strength, STRENGTHS, "strength")
        if isinstance(self.adherence, str) and self.adherence not in ("learned", "supervised"):
            raise ValueError(
                f"adherence {self.adherence!r} is unknown; choose from [None, 'learned', 'supervised'] or a mapping"
            )
        for name, value in (("prior", self.prior), ("variance_prior", self.variance_prior)):
            if value is not None and not 0 < value < np.inf:
                raise ValueError(f"{name} must be a positive standard deviation, not {value}")
        if (truth is not None) != (self.adherence == "supervised"):
            raise ValueError("adherence='supervised' and the labelled instances, fit(data, truth), belong together")
        if self.variance and isinstance(data, Comparisons) and data.agent is not None and self.adherence is not None:
            raise DataError("variances with adherence need ballots, not pairs; fit one of the two")

    def _adherence(self, data: Rankings | Comparisons, p: Preferences, truth: Rankings | None) -> Floats | None:
        """Adherence of every agent, or ``None`` where it is to be learned."""
        if self.adherence is None:
            return np.ones(p.n_agents)
        if isinstance(self.adherence, Mapping):
            return _by_agent(self.adherence, p)
        if self.adherence == "learned":
            return None
        assert isinstance(truth, Rankings)  # checked before
        if not isinstance(data, Rankings):
            raise DataError("supervised adherence needs ballots that belong to instances, not pairs")
        return _by_agent(supervised_adherence(data, truth, rescale=self.rescale), p)

    def _set_scores(self, p: Preferences, found: mpm_fit.Found, gamma: Floats | None, precision: float) -> None:
        covariance = mpm_fit.covariances(p, found, precision) if gamma is None else (None for _ in p.instances)
        consensus: dict[Hashable, Consensus] = {}
        params = self.get_params(deep=False)
        adherence = dict(zip(p.agents, found.adherence.tolist()))
        notes = (
            []
            if self.prior is None
            else [f"prior: scores are normal with mean 0 and standard deviation {self.prior:g}"]
        )
        notes += [REPEATED] if self.strength != "binary" else []
        notes += [] if found.converged else [found.message]
        if self.variance and not self.prior:
            notes.append("scores and variances can be multiplied together; the prior of beta fixes their scale")
        for k, (name, C) in enumerate(zip(p.instances, covariance)):
            own = slice(p.bounds[k], p.bounds[k + 1])
            extras: dict[str, Any] = {} if gamma is None else {"variance": gamma[own]}
            if self.adherence is not None:
                extras["adherence"] = adherence
            kept = {"covariance": C} if C is not None and C.ndim == 2 else {"stderr": C}
            consensus[name] = Consensus(
                p.items if p.whole else tuple(p.items[i] for i in p.item[own]),
                found.s[own],
                method="mpm",
                params=params,
                win=win_probability if gamma is None else None,
                fit=self.fit_,
                notes=tuple(notes),
                extras=extras,
                **kept,
            )
        several = ConsensusSet(consensus, method="mpm", params=params) if p.several else None
        self.consensus_ = consensus[p.instances[0]] if several is None else several
        self.theta_: Any = np.zeros(len(p.items))
        if len(np.unique(p.item)) == len(p.item):
            self.theta_[p.item] = found.s
        else:
            self.theta_ = {name: c.scores for name, c in consensus.items()}


def win_probability(x: Any, y: Any) -> Any:
    """P(i over j, given that a preference is between i and j) = 1 / (1 + e^{-2 (s_i - s_j)})."""
    return expit(2.0 * (np.asarray(x) - np.asarray(y)))


def _by_agent(adherence: Mapping[Hashable, float], p: Preferences) -> Floats:
    missing = [name for name in p.agents if name not in adherence]
    if missing:
        raise ValueError(f"adherence of agent {missing[0]!r} is not given ({len(missing)} such agents)")
    values = np.array([float(adherence[name]) for name in p.agents])
    if not ((values >= 0) & np.isfinite(values)).all():
        raise ValueError(f"adherence must be finite and not negative, found {values[~(values >= 0)][:1]}")
    return values


__all__ = ["MOST_SIMULATED", "MultinomialPreference", "supervised_adherence", "win_probability"]
