"""The multinomial preference model: every preference is a draw from one distribution over all ordered item pairs."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit

from placet.aggregate.data_facts import data_kind, notes_of_data, support, unused_note, with_votes_counted
from placet.aggregate.likelihood.information import Stderr
from placet.aggregate.likelihood.prior import check_width, prior_note
from placet.aggregate.mpm.item_variances import MOST_DENSE, variance_errors, variances
from placet.aggregate.mpm.preference_errors import Errors, errors
from placet.aggregate.mpm.preference_likelihood import PreferenceFit, Preferences, Votes, learn, preferences, votes
from placet.aggregate.mpm.preference_parts import preferences_of_parts
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, DataError, Parts, Rankings
from placet.data.arrays import Floats
from placet.data.breaking import PairStrength
from placet.data.parameters import Estimator
from placet.kernels.aggregate import multinomial_preferences as kernels
from placet.optim import Fit
from placet.output.numbers import count_text


class MultinomialPreference(Estimator):
    """Multinomial preference model: P(agent n states "i over j") is proportional to e^{t_n (s_i - s_j) / (g_i + g_j)},
    over all i != j.

    The pair itself is random, so an item that few ballots mention gets a score near the middle.  For votes the pair was
    asked about: given the pair, "i over j" has probability 1 / (1 + e^{-2 t_n (s_i - s_j)}), and ties are skipped.

    Parameters
    ----------
    strength : a ballot's pair counts once ("binary"), by the difference of tiers ("difference") or of scores ("rating")
    variance : learn g_i; otherwise g_i + g_j = 1, and no array has an entry per pair
    adherence : t_n is 1 (None); "learned" in [0, 1], together with the scores; "supervised", set by
        `supervised_adherence` from the labeled instances passed to ``fit``; or a mapping of agents to numbers.
        Without agents, each ballot counts as an agent
    rescale : stretch supervised adherences to [0, 1]
    prior : standard deviation of the normal prior of the scores, with mean 0; None: no prior, and a ``DataError`` if no
        finite scores exist
    variance_prior : g_i = e^beta / 2, and beta has a normal prior with mean 0 and precision 1 / variance_prior^2 times
        the preferences of an average item: items with fewer keep a variance close to that of the others
    stderr : "sandwich" (agents are independent, their preferences are not), "observed" (information; every preference
        is independent), or None
    max_iter, tol : maximum number of Newton steps; they stop when no gradient entry per preference exceeds tol
    random_state : seed of sampled standard errors

    Attributes
    ----------
    consensus_ : a `Consensus`; for ballots with ``instance``, separate problems that share agents, a `ConsensusSet`,
        each over the items on its ballots
    theta_ : (n_items,) scores, 0 for an item that nobody listed; a mapping if an item occurs in several instances
    adherence_ : (n_agents,)
    variance_ : (n_items,) or None

    Newton's method, O(rows) once and O(items x distinct adherences) per step.  With variances, O(items^3) per step up
    to 2,000 items, and L-BFGS with O(items^2) per step beyond.

    >>> votes = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]])
    >>> MultinomialPreference().fit(votes).consensus_.ranking
    ['a', 'b', 'c']
    """

    def __init__(
        self,
        strength: PairStrength = "difference",
        variance: bool = False,
        adherence: str | Mapping[Hashable, float] | None = None,
        rescale: bool = True,
        prior: float | None = 10.0,
        variance_prior: float = 0.3,
        stderr: Stderr = "sandwich",
        max_iter: int = 200,
        tol: float = 1e-8,
        random_state: int = 0,
    ):
        self.strength = strength
        self.variance = variance
        self.adherence = adherence
        self.rescale = rescale
        self.prior = prior
        self.variance_prior = variance_prior
        self.stderr = stderr
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @property
    def fits_parts(self) -> bool:
        """Whether sums over parts suffice; variances need the ballots themselves."""
        return not self.variance

    def fit(self, data: Rankings | Comparisons | Parts, truth: Rankings | None = None) -> "MultinomialPreference":
        """Fit to ballots or votes; ``truth`` has one ballot for each labeled instance, for supervised adherence."""
        data = with_votes_counted(data)
        self._check(data, truth)
        p = self._preferences(data)
        fixed = self._adherence(data, p, truth)
        precision = 0.0 if self.prior is None else self.prior**-2
        if fixed is None:
            found = learn(p, precision, self.max_iter, self.tol)
        else:
            found = p.scores(fixed, precision, self.max_iter, self.tol)
        self.variance_ = None
        known: Iterable[Errors] = (Errors(None, None, []) for _ in p.instances)
        if self.variance:
            assert isinstance(p, Preferences)  # checked before
            found, self.variance_, pairs = variances(
                p, found, precision, self.variance_prior, self.max_iter, max(self.tol, 1e-8)
            )
            if self.stderr is not None:
                known = variance_errors(p, found, self.variance_, pairs, self.stderr)
        elif self.stderr is not None:
            rng = np.random.default_rng(self.random_state)
            known = errors(p, found, precision, self.stderr, fixed is None, rng)
        self.adherence_ = found.adherence
        self.fit_ = Fit(found.s, found.value, found.grad_norm, found.n_iter, found.converged, found.message)
        self._set_scores(data, p, found, known, self._notes(data, p, found))
        return self

    def _preferences(self, data: Rankings | Comparisons | Parts) -> Preferences | Votes:
        """The preferences in the data, by agent; of parts, those of all agents together unless they may differ."""
        if isinstance(data, Comparisons):
            return votes(data)
        if isinstance(data, Rankings):
            return preferences(data, self.strength)
        robust = self.stderr == "sandwich"
        return preferences_of_parts(data, self.strength, by_agent=self.adherence is not None, robust=robust)

    def _check(self, data: Any, truth: Any) -> None:
        if not isinstance(data, Parts):
            data_kind(data)
        self.check_parameters()
        if isinstance(self.adherence, str) and self.adherence not in ("learned", "supervised"):
            raise ValueError(
                f"adherence {self.adherence!r} is unknown; choose from None, learned, supervised, or give a mapping"
            )
        for name, value in (("prior", self.prior), ("variance_prior", self.variance_prior)):
            if value is not None:
                check_width(value, name)
        if (truth is not None) != (self.adherence == "supervised"):
            raise ValueError("adherence='supervised' and the labeled instances, fit(data, truth), belong together")
        if self.variance and isinstance(data, Comparisons):
            raise DataError(
                "variance=True needs ballots: it learns from which pairs agents mention, and votes are asked"
            )

    def _adherence(self, data: Any, p: Preferences | Votes, truth: Any) -> Floats | None:
        """Adherence of every agent, or ``None`` if it is to be learned."""
        if self.adherence is None:
            return np.ones(len(p.agents))
        if isinstance(self.adherence, Mapping):
            return _by_agent(self.adherence, p)
        if self.adherence == "learned":
            return None
        if not isinstance(data, Rankings):
            raise DataError("supervised adherence needs ballots that belong to instances, not pairs")
        return _by_agent(supervised_adherence(data, truth, rescale=self.rescale), p)

    def _notes(self, data: Rankings | Comparisons | Parts, p: Preferences | Votes, found: PreferenceFit) -> list[str]:
        """Notes that hold for all instances."""
        notes = []
        if self.prior is not None:
            notes.append(prior_note(self.prior, learned=False))
        if isinstance(data, Comparisons):
            notes.append("votes are taken given the pair that was asked about")
            if data.ties.any():
                n_ties = data.ties.sum()
                notes.append(f"{count_text(n_ties)} {'tie was' if n_ties == 1 else 'ties were'} left out")
        if self.adherence == "learned":
            top = int((found.adherence == 1).sum())
            notes.append(f"scores are in units of the most adherent agents, {top} of {len(found.adherence)}")
        if self.variance:
            weight = self.variance_prior**-2
            notes.append(f"variances: their prior weighs {weight:.3g} times the preferences of an average item")
            if np.diff(p.bounds).max(initial=0) > MOST_DENSE:
                notes.append(f"more than {MOST_DENSE} items: fitted by L-BFGS, without standard errors")
            if self.adherence == "learned":
                notes.append("adherences were learned without variances")
        if not found.converged:
            notes.append(found.message)
        return notes

    def _set_scores(
        self,
        data: Rankings | Comparisons | Parts,
        p: Preferences | Votes,
        found: PreferenceFit,
        known: Iterable[Errors],
        notes: list[str],
    ) -> None:
        """Keep the scores and the result; what the data say about themselves is noted once for all instances."""
        unused = unused_note(data, "mpm")
        before, after = ((), ()) if p.several else (notes_of_data(data), unused)
        about: dict[str, Any] = {} if p.several else {"support": support(data)}
        consensus: dict[Hashable, Consensus] = {}
        params = self.get_params(deep=False)
        adherence = None if self.adherence is None else dict(zip(p.agents, found.adherence.tolist()))
        for k, (name, error) in enumerate(zip(p.instances, known)):
            own = slice(p.bounds[k], p.bounds[k + 1])
            consensus[name] = Consensus(
                tuple(p.items[i] for i in p.item[own]) if p.several else p.items,
                found.s[own],
                method="mpm",
                params=params,
                stderr=error.stderr,
                covariance=error.covariance,
                win=win_probability,
                spread=None if self.variance_ is None else self.variance_[own],
                fit=self.fit_,
                notes=(*before, *notes, *error.notes, *after),
                prior=self.prior,
                adherence=adherence,
                **about,
            )
        several = ConsensusSet(consensus, method="mpm", params=params, set_notes=(*data.notes, *unused))
        self.consensus_ = several if p.several else consensus[p.instances[0]]
        self.theta_: Any = np.zeros(len(p.items))
        if len(np.unique(p.item)) == len(p.item):
            self.theta_[p.item] = found.s
        else:
            self.theta_ = {name: c.scores for name, c in consensus.items()}


def win_probability(x: Any, y: Any) -> Any:
    """P(i over j, given that a preference is between i and j) = 1 / (1 + e^{-2 (s_i - s_j)}).

    With variances, divide the scores by g_i + g_j first.
    """
    return expit(2.0 * (np.asarray(x) - np.asarray(y)))


def _by_agent(adherence: Mapping[Hashable, float], p: Preferences | Votes) -> Floats:
    missing = [name for name in p.agents if name not in adherence]
    if missing:
        raise ValueError(f"adherence of agent {missing[0]!r} is not given ({len(missing)} such agents)")
    values = np.array([float(adherence[name]) for name in p.agents])
    if not ((values >= 0) & np.isfinite(values)).all():
        raise ValueError(f"adherence must be finite and not negative, found {values[~(values >= 0)][:1]}")
    return values


def supervised_adherence(data: Rankings, truth: Rankings, *, rescale: bool = True) -> dict[Hashable, float]:
    """Adherence of every agent: the mean over labeled instances of 1 - Kendall distance from the truth.

    ``truth`` holds one ballot for each labeled instance.  The distance is taken over pairs of items on the agent's
    ballot with different labels: the share that the ballot orders the other way, ties counting half.  Instances without
    such pairs are skipped, and an agent without any gets the mean of the others.  ``rescale`` maps the smallest
    adherence to 0 and the largest to 1.  O(pairs on ballots).
    """
    if data.instance is None or truth.instance is None or data.instances is None or truth.instances is None:
        raise DataError("supervised adherence needs ballots and truth that belong to instances")
    if truth.items != data.items:
        raise DataError("the truth must be over the same items as the ballots")
    if len(np.unique(truth.instance)) != len(truth):
        raise DataError("the truth must have one ballot for each instance, and has more for some")
    number = {name: k for k, name in enumerate(data.instances)}
    unknown = [truth.instances[k] for k in truth.instance if truth.instances[k] not in number]
    if unknown:
        raise DataError(f"instance {unknown[0]!r} of the truth has no ballots ({len(unknown)} such instances)")
    code = np.array([number[truth.instances[k]] for k in truth.instance], np.int64)
    key = code[truth.ballot] * data.n_items + truth.item
    order = np.argsort(key)
    wanted = data.instance[data.ballot] * data.n_items + data.item
    at = np.minimum(np.searchsorted(key[order], wanted), max(len(key) - 1, 0))
    label = np.where(key[order][at] == wanted, truth.tier[order][at], -1) if len(key) else np.full(len(wanted), -1)
    wrong, pairs = np.zeros(len(data)), np.zeros(len(data))
    kernels.discordance(data.tier, label, data.offsets, wrong, pairs)
    agents = tuple(range(len(data))) if data.agents is None else data.agents
    agent = np.arange(len(data)) if data.agent is None else data.agent
    compared = pairs > 0
    if not compared.any():
        raise DataError("no ballot compares two items with different labels; adherence cannot be told from this truth")
    count = np.bincount(agent[compared], minlength=len(agents))
    right = np.bincount(agent[compared], 1 - wrong[compared] / pairs[compared], len(agents))
    mean = np.divide(right, count, out=np.full(len(agents), np.nan), where=count > 0)
    mean = np.where(count > 0, mean, np.nanmean(mean))
    if rescale:
        spread = mean.max() - mean.min()
        mean = (mean - mean.min()) / spread if spread > 0 else np.ones(len(agents))
    return dict(zip(agents, mean.tolist()))
