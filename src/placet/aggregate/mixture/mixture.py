"""Groups of voters: a mixture of one likelihood model, fitted by expectation maximization.

A voter belongs to group k with probability share_k, and its ballots or votes then follow the model with the scores of
group k: P(voter) = sum_k share_k p(voter | theta_k).
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeGuard

import numpy as np

from placet.aggregate.data_facts import data_kind, support, unused_note
from placet.aggregate.instances import refuse_instances
from placet.aggregate.likelihood.prior import LEARN
from placet.aggregate.method_table import MIXED, mixed_model
from placet.aggregate.mixture.em import MixtureFit, ascend, best_of_starts, in_own_order, responsibilities
from placet.aggregate.mixture.families import BallotLists, PairFamily, family_of
from placet.aggregate.mixture.joint_prior import (
    MOST_JOINT,
    JointPrior,
    joint_fit,
    joint_information,
    joint_maximum,
    uncertainty_of_widths,
)
from placet.aggregate.mixture.mallows_family import Distances
from placet.aggregate.mixture.mixture_errors import mixture_covariance
from placet.aggregate.mixture.voters import Family, Voters, seeding_table, voters_of
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.aggregate.resample import are_counts, resampled_counts
from placet.aggregate.result.groups import Groups, Tried, bic
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats
from placet.data.errors import as_choices
from placet.data.parameters import Estimator
from placet.threads import algebra_threads

GroupCriterion = Literal["bic", "valid"]
MOST_REFITS = 10
FOLDS = 5
HARDLY_BETTER = 20.0
"""How much lower the BIC of k groups must be than that of k - 1 for intervals of their scores to cover as they say."""

STARTS_OF_FEWER = 2
"""Starts of a fit with one group less, which only says whether the groups are told apart."""

WORSE_IN_A_ROW = 2
"""The search for the best number of groups ends after this many consecutive numbers that are worse."""


class Mixture(Estimator):
    """Mixture model: groups of voters, each with its own scores and a share of all voters.

    P(voter) = sum_k share_k p(voter | group k).  A voter is an agent with all its ballots or votes if the data name
    agents, else one ballot (of weight w: w voters with this ballot).  Shares and scores maximize the likelihood, with
    the model's prior on the scores of each group, by expectation maximization from several starts; the objective
    never decreases.  A learned prior is then one of all groups (`placet.aggregate.mixture.joint_prior`): what they have
    in common, and how far each is from it.  Groups are numbered by decreasing share.

    Parameters
    ----------
    model : "plackett-luce", "bradley-terry", "mallows", "pmop", "pmop-fd", or an estimator of one of them
    k : number of groups, or "auto": the best of 1, 2, ... ``most`` by ``criterion``, tried until two in a row are worse
    criterion : "bic", or "valid": the log likelihood of held-out voters, by five-fold cross-validation
    most : largest number of groups that "auto" tries
    restarts : number of starts; the best local optimum is returned, which may not be the global one
    max_iter, tol : maximum number of rounds; they end when the objective per voter rises by less than tol
    random_state : seed of the starts and of the folds

    Attributes
    ----------
    groups_ : `Groups`, a mapping of 1, 2, ... to the `Consensus` of each group
    k_, shares_, membership_ (voters, k)

    Standard errors are from the joint observed information of all groups and shares, so they include the uncertainty
    of memberships (Louis, Finding the observed information matrix when using the EM algorithm, JRSS B 1982).  Centers
    of Mallows models have none; a bootstrap gives draws.

    >>> from placet.data import Rankings
    >>> votes = Rankings.from_orders([["a", "b", "c", "d"], ["d", "c", "b", "a"]], weight=[60, 40])
    >>> groups = Mixture("mallows", 2).fit(votes).groups_
    >>> {k: c.ranking for k, c in groups.items()}, groups.shares.round(2)
    ({1: ['a', 'b', 'c', 'd'], 2: ['d', 'c', 'b', 'a']}, array([0.6, 0.4]))
    """

    def __init__(
        self,
        model: Any = "plackett-luce",
        k: Any = "auto",
        *,
        criterion: GroupCriterion = "bic",
        most: int = 6,
        restarts: int = 8,
        max_iter: int = 1000,
        tol: float = 1e-7,
        random_state: int = 0,
    ):
        self.model = model
        self.k = k
        self.criterion = criterion
        self.most = most
        self.restarts = restarts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, data: Rankings | Comparisons) -> "Mixture":
        """Fit to ballots, or to votes that name their voters."""
        estimator = self._check(data)
        voters = voters_of(data, getattr(estimator, "agent_weight", None))
        family = family_of(estimator, voters)
        with algebra_threads(family.size):
            if self.k == "auto":
                self.tried_, found = self._choose(family, voters)
            else:
                found, self.tried_ = self._best(family, voters, voters.count, self.k), ()
            return self._keep(estimator, family, voters, found, data, self._hardly_better(family, voters, found))

    def log_likelihood(self, data: Rankings | Comparisons) -> Floats:
        """(voters,): log likelihood of new voters on the same items; one entry per agent, else per ballot."""
        return self._look(data)[1]

    def membership(self, data: Rankings | Comparisons) -> Floats:
        """(voters, k): probabilities that new voters on the same items belong to each group."""
        return self._look(data)[0]

    def bootstrap(
        self,
        data: Rankings | Comparisons,
        rounds: int,
        *,
        random_state: int = 0,
        progress: Callable[[], None] | None = None,
    ) -> Groups:
        """The fitted groups with bootstrap draws: each round resamples voters and starts from the fit.

        Starting from the fit preserves the numbering of groups, but ignores that another optimum may become the best.
        """
        rng = np.random.default_rng(random_state)
        voters = voters_of(data, getattr(self._estimator, "agent_weight", None))
        family = family_of(self._estimator, voters)
        draws, shares = [], []
        for _ in range(rounds):
            count = resampled_counts(voters.count, rng)
            with algebra_threads(family.size):
                one = self._refit(family, count)
            draws.append([family.scores(state) for state in one.states])
            shares.append(one.shares)
            if progress is not None:
                progress()
        note = f"uncertainty from {rounds} bootstrap rounds of multinomial counts of voters, each from the fit"
        results = {
            g: replace(c, stderr=None, covariance=None, draws=np.array([draw[k] for draw in draws]))
            for k, (g, c) in enumerate(self.groups_.items())
        }
        stderr = np.std(shares, axis=0, ddof=1)
        notes = (*self.groups_.set_notes, note)
        return replace(self.groups_, results=results, share_stderr=stderr, set_notes=notes)

    # Internals

    def _covariances(self, family: Family, found: MixtureFit, count: Floats) -> tuple[Any, Any, list[str]]:
        """Those of `mixture_covariance`, under the prior of the groups."""
        if self._prior is None:
            return mixture_covariance(family, found, count)
        assert isinstance(family, BallotLists | PairFamily)
        information = partial(joint_information, prior=self._prior)
        moves = partial(uncertainty_of_widths, family, found, count, self._prior, self.tol)
        return mixture_covariance(family, found, count, information, moves)

    def _refit(self, family: Family, count: Floats) -> MixtureFit:
        """The maximum for other counts of the voters, from the fit."""
        if self._prior is None:
            return ascend(family, count, self.shares_, self._states, self.max_iter, 10 * self.tol)
        assert isinstance(family, BallotLists | PairFamily)
        return joint_maximum(family, count, self.shares_, self._states, self._prior, 10 * self.tol)

    def _check(self, data: Any) -> Any:
        """Check parameters and data; return the estimator used for the groups."""
        data_kind(data)
        refuse_instances(data, "mixture")
        if isinstance(self.model, str):
            estimator: Any = mixed_model(self.model, "model of a mixture")()
        elif isinstance(self.model, Estimator) and type(self.model) in MIXED.values():
            estimator = self.model.unfitted()
        else:
            raise ValueError(
                f"a mixture of {type(self.model).__name__} is not possible; choose from {as_choices(MIXED)}"
            )
        if getattr(estimator, "agents", None) is not None:
            raise ValueError(f"a mixture gives agents groups; agents={estimator.agents!r} of its model is not possible")
        self.check_parameters()
        whole = isinstance(self.k, int | np.integer) and not isinstance(self.k, bool)
        if self.k != "auto" and not (whole and self.k >= 1):
            raise ValueError(f'k must be a number of groups from 1 on, or "auto", not {self.k!r}')
        for name in ("most", "restarts", "max_iter"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not data.n_items or not len(data):
            raise DataError("there is nothing to group: no ballots, or no items")
        if isinstance(estimator, BradleyTerry):
            estimator._check(data)
        return estimator

    def _best(self, family: Family, voters: Voters, count: Floats, k: int) -> MixtureFit:
        if k > int((voters.count > 0).sum()):
            raise DataError(f"{k} groups of {int((voters.count > 0).sum())} different voters; ask for fewer groups")
        return best_of_starts(family, voters, count, k, self.restarts, self.max_iter, self.tol, self.random_state)

    def _choose(self, family: Family, voters: Voters) -> tuple[tuple[Tried, ...], MixtureFit]:
        """Every number of groups that was tried, and the fit with the best one."""
        total = float(voters.count.sum())
        tried: list[tuple[float, Tried, MixtureFit]] = []
        for k in range(1, min(self.most, int((voters.count > 0).sum())) + 1):
            found = self._best(family, voters, voters.count, k)
            valid = self._valid(family, voters, k) if self.criterion == "valid" else None
            one = Tried(k, found.log_likelihood, bic(found.log_likelihood, _parameters(family, k), total), valid)
            tried.append((one.bic if valid is None else -valid, one, found))
            best = min(range(len(tried)), key=lambda j: tried[j][0])
            if len(tried) - 1 - best >= WORSE_IN_A_ROW:
                break
        return tuple(one for _, one, _ in tried), tried[best][2]

    def _hardly_better(self, family: Family, voters: Voters, found: MixtureFit) -> list[str]:
        """A note if one group less describes the voters about as well.

        Where groups are hardly told apart, the likelihood is far from quadratic, and errors from its curvature are too
        small.
        """
        k, total = len(found.shares), float(voters.count.sum())
        if k == 1:
            return []
        known = [one.bic for one in self.tried_ if one.groups == k - 1]
        if not known:
            starts = min(self.restarts, STARTS_OF_FEWER)
            fewer = best_of_starts(
                family, voters, voters.count, k - 1, starts, self.max_iter, self.tol, self.random_state
            )
            known = [bic(fewer.log_likelihood, _parameters(family, k - 1), total)]
        gain = known[0] - bic(found.log_likelihood, _parameters(family, k), total)
        if gain >= HARDLY_BETTER:
            return []
        less = "one group describes" if k == 2 else f"{k - 1} groups describe"
        how, side = ("better", "lower") if gain < 0 else ("almost as well", "higher")
        cover = "90 to 93 %" if self._joins(family, k) else "84 to 91 %"
        return [
            f"{less} the voters {how} (BIC {abs(gain):.3g} {side}): the groups are hardly told apart, and 95 % "
            f"intervals of their scores cover only {cover} in simulations of such groups"
        ]

    def _valid(self, family: Family, voters: Voters, k: int) -> float:
        """Mean log likelihood of a held-out voter, over five folds of voters."""
        value, total = 0.0, 0.0
        for part in folds(voters, self.random_state):
            found = self._best(family, voters, voters.count - part, k)
            value += float(part @ responsibilities(family, found.shares, found.states)[1])
            total += float(part.sum())
        return value / total if total > 0 else np.nan

    def _keep(
        self, estimator: Any, family: Family, voters: Voters, found: MixtureFit, data: Any, said: list[str]
    ) -> "Mixture":
        """Set the fitted attributes: groups by decreasing share, each refitted by the model, with standard errors."""
        found, models = self._alternate_fits(family, voters, found)
        boards = [model.consensus_ for model in models]
        found, boards, self._prior = self._with_joint_prior(family, voters, found, boards)
        order = np.lexsort((np.arange(len(found.shares)), -found.shares))
        boards, states = [boards[g] for g in order], [found.states[g] for g in order]
        found = replace(found, shares=found.shares[order], states=states, membership=found.membership[:, order])
        blocks, share_covariance, notes = None, None, list[str]()
        if getattr(estimator, "stderr", "observed") is not None:
            blocks, share_covariance, notes = self._covariances(family, found, voters.count)
        notes += [*_notes(found, voters), *_prior_notes(self._prior), *said]
        results: dict[Hashable, Consensus] = {}
        for g, board in enumerate(boards):
            c = replace(board, support=support(voters.weighted(voters.count * found.membership[:, g])))
            results[g + 1] = _with_errors(c, family, None if blocks is None else blocks[g])
        stderr = None if share_covariance is None else np.sqrt(np.maximum(np.diag(share_covariance), 0.0))
        self._estimator, self._states = estimator, found.states
        self.k_, self.shares_, self.membership_ = len(results), found.shares, found.membership[voters.unit]
        self.groups_ = Groups(
            results,
            method=boards[0].method,
            params=self.get_params(deep=False),
            set_notes=(*data.notes, *unused_note(data, "mixture"), *notes),
            shares=found.shares,
            share_stderr=stderr,
            membership=self.membership_,
            voters=voters.names,
            count=voters.given,
            log_likelihood=found.log_likelihood,
            n_parameters=_parameters(family, len(results)),
            converged=found.converged,
            tried=self.tried_,
            trace=found.trace,
        )
        return self

    def _joins(self, family: Family, k: int) -> TypeGuard[BallotLists | PairFamily]:
        """Whether the groups have a joint prior: priors are learned, and the groups are not too large."""
        if not isinstance(family, BallotLists | PairFamily) or family.model.prior != LEARN:
            return False
        return k > 1 and k * family.size <= MOST_JOINT

    def _with_joint_prior(
        self, family: Family, voters: Voters, found: MixtureFit, boards: list[Consensus]
    ) -> tuple[MixtureFit, list[Consensus], JointPrior | None]:
        """The fit and the results of the groups with one prior, if priors are learned and the groups not too large."""
        if not self._joins(family, len(found.shares)):
            return found, boards, None
        joined = joint_fit(family, found, voters.count, self.tol)
        if joined is None:
            return found, boards, None
        found, prior = joined
        with_states = [family.with_state(board, state) for board, state in zip(boards, found.states)]
        width = math.hypot(*prior)
        return found, [replace(c, prior=width, notes=_without_prior(c.notes)) for c in with_states], prior

    def _alternate_fits(self, family: Family, voters: Voters, found: MixtureFit) -> tuple[MixtureFit, list[Any]]:
        """Alternate fits by the model itself (exact centers, learned prior widths) and EM until neither helps."""
        count, k = voters.count, len(found.shares)
        close = self.tol * max(float(count.sum()), 1.0)
        for _ in range(MOST_REFITS):
            pairs = []
            for g in range(k):
                try:
                    pairs.append(family.refitted(count * found.membership[:, g], found.states[g]))
                except DataError as error:
                    raise DataError(f"group {g + 1} of {k}: {error}") from error
            models, states = [model for model, _ in pairs], [state for _, state in pairs]
            membership, each = responsibilities(family, found.shares, states)
            value = float(count @ each)
            objective = value + sum(map(family.log_prior, states))
            last = replace(
                found, states=states, membership=membership, log_likelihood=value, trace=(*found.trace, objective)
            )
            if objective - found.objective <= close and not _width_changed(found.states, states):
                return (last if objective >= found.objective - close else found), models
            found = ascend(family, count, found.shares, states, self.max_iter, self.tol)
        return found, models

    def _look(self, data: Rankings | Comparisons) -> tuple[Floats, Floats]:
        data_kind(data)
        if tuple(data.items) != tuple(next(iter(self.groups_.values())).items):
            raise DataError(f"other items ({data.n_items}) than the mixture was fitted to ({self._n_items()})")
        voters = voters_of(data, getattr(self._estimator, "agent_weight", None))
        membership, each = responsibilities(family_of(self._estimator, voters), self.shares_, self._states)
        return membership[voters.unit], each[voters.unit]

    def _n_items(self) -> int:
        return len(next(iter(self.groups_.values())).items)


def folds(voters: Voters, random_state: int) -> list[Floats]:
    """Counts (voters,) of each of five folds.

    Integer counts are split voter by voter, other counts are never split; folds do not depend on the order of the data.
    """
    _, order = in_own_order(seeding_table(voters))
    rng = np.random.default_rng(random_state)
    count = voters.count[order]
    parts = np.zeros((FOLDS, len(count)))
    if are_counts(count):
        who = np.repeat(np.arange(len(count)), count.astype(np.int64))
        np.add.at(parts, (rng.permutation(np.arange(len(who)) % FOLDS), who), 1.0)
    else:
        parts[rng.permutation(np.arange(len(count)) % FOLDS), np.arange(len(count))] = count
    back = np.empty_like(parts)
    back[:, order] = parts
    return [part for part in back if part.sum() > 0]


def _parameters(family: Family, k: int) -> int:
    return k * family.n_parameters + k - 1


def _width_changed(before: list[Any], after: list[Any]) -> bool:
    """Whether a learned prior width has changed by more than 1%."""
    widths = [(a.width, b.width) for a, b in zip(before, after) if hasattr(a, "width") and a.width is not None]
    return any(abs(b / a - 1) > 0.01 for a, b in widths)


def _with_errors(c: Consensus, family: Family, covariance: Floats | None) -> Consensus:
    """The consensus of a group, its covariance replaced by the group's block of the mixture's covariance."""
    scores = None if covariance is None else family.score_covariance(covariance)
    beside: dict[str, Any] = {"tie_stderr": None, "effects": c.effects and replace(c.effects, stderr=None)}
    if covariance is not None:
        error = np.sqrt(np.diag(covariance))
        if isinstance(family, Distances):
            beside["dispersion_stderr"] = float(error[0])
        if isinstance(family, PairFamily):
            beside |= family.errors_beside(c, error)
    return replace(c, stderr=None, covariance=scores, roots=None, **beside)


def _without_prior(notes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(note for note in notes if not note.startswith("prior:"))


def _prior_notes(prior: JointPrior | None) -> list[str]:
    if prior is None:
        return []
    return [
        f"prior: what the groups have in common is normal with standard deviation {prior.common:.3g}, each group's "
        f"distance from it with {prior.apart:.3g}, both learned from the data"
    ]


def _notes(found: MixtureFit, voters: Voters) -> list[str]:
    notes = ["groups are numbered by falling share"]
    if not found.converged:
        notes.append(f"not converged in {len(found.trace)} rounds; raise max_iter")
    total = float(voters.count.sum())
    notes += [
        f"group {g + 1} has the weight of {share * total:.2g} voters; fewer groups describe the data as well"
        for g, share in enumerate(found.shares)
        if share * total < 1
    ]
    if isinstance(voters.data, Rankings) and voters.names is not None:
        notes.append(f"a voter is an agent with all its ballots: {int((voters.count > 0).sum())} voters")
    return notes
