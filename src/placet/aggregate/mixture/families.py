"""Per-voter likelihoods, gradients and fits (`Family`) for models of ballots, of pairs and of distances."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from placet import optim
from placet.aggregate.distance.mallows import Mallows
from placet.aggregate.likelihood import ballot_objective, information
from placet.aggregate.likelihood.prior import EXTRA_PRIOR, LEARN
from placet.aggregate.mixture.mallows_family import Distances
from placet.aggregate.mixture.voters import Family, Voters, plain_copy
from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, Lists, Rankings
from placet.data.arrays import Floats, Ints
from placet.kernels.losses import pairs as pair_kernels
from placet.losses import Bound
from placet.losses.pairwise import PAIR_MODELS, TIES, outcome_costs, win_probability

FEW_STEPS, SCORING_STEPS = 5, 2
"""Newton steps, or steps by outer products of gradients, in one of many fits: each starts from the previous one."""


def family_of(model: Any, voters: Voters) -> Family:
    """The family of an estimator: ballot likelihood, pairs or Mallows."""
    if isinstance(model, BradleyTerry):
        return PairFamily(model, voters)
    if isinstance(model, Mallows):
        return Distances(model, voters)
    return BallotLists(model, voters)


@contextmanager
def _few_steps() -> Iterator[None]:
    with warnings.catch_warnings():  # one of many fits need not reach its optimum
        warnings.simplefilter("ignore", optim.ConvergenceWarning)
        yield


FIRST_WIDTH = 2.0
"""Width of the scores' prior while searching for groups, if it is finally learned from each group."""


class GroupFit(NamedTuple):
    """Unknowns, beginning with the items' scores, and the width of the scores' prior."""

    x: Floats
    width: float | None


def _first_width(model: Any) -> float | None:
    return FIRST_WIDTH if model.prior == LEARN else model.prior


class BallotLists:
    """Models whose loss is a function of row scores: Plackett-Luce and models over ordered partitions, in theta."""

    def __init__(self, model: Any, voters: Voters):
        self.model, self.voters = model, voters
        data = voters.data
        self.ballots = Rankings.from_comparisons(data) if isinstance(data, Comparisons) else data
        if isinstance(data, Comparisons):
            assert self.ballots.agent is not None
            self.voters = voters = replace(voters, data=self.ballots, of=self.ballots.agent)
        self.size, self.n_parameters = self.ballots.n_items, max(self.ballots.n_items - 1, 0)
        lists = Lists(-self.ballots.tier.astype(np.float64), self.ballots.offsets, None)
        self.bound = Bound(model.loss, lists, total=1.0)
        self.group = self._objective(voters.count, 1.0).group

    def _objective(self, weight: Floats, width: float | None) -> ballot_objective.Ballots:
        by_ballot = self.ballots.weight * weight[self.voters.of]
        objective = ballot_objective.Ballots(self.ballots, by_ballot, self.model.loss, width)
        if hasattr(self, "group"):
            objective.group = self.group
        return objective

    def start(self, weight: Floats) -> GroupFit:
        return GroupFit(np.zeros(self.size), _first_width(self.model))

    def improve(self, weight: Floats, state: GroupFit) -> GroupFit:
        b, x = self._objective(weight, state.width), state.x
        with _few_steps():
            if b.closed:
                found = ballot_objective.minimize(b, x, FEW_STEPS, self.model.tol).x
            else:
                found = optim.newton(b.value, partial(_scoring, b), x, tol=1e-9, max_iter=SCORING_STEPS).x
        found = b.average(found)
        found = found - found.mean() if self.size else found
        return GroupFit(found, state.width) if b.value(found)[0] <= b.value(x)[0] else state

    def log_likelihood(self, state: GroupFit) -> Floats:
        return -self.voters.per_voter(self.ballots.weight * self.bound.per_list(state.x[self.ballots.item]))

    def log_prior(self, state: GroupFit) -> float:
        return 0.0 if state.width is None else -0.5 * float(state.x @ state.x) / state.width**2

    def prior_slope(self, state: GroupFit) -> Floats:
        return np.zeros(self.size) if state.width is None else -state.x / state.width**2

    def gradient(self, state: GroupFit) -> csr_matrix:
        rows = self.bound.value_and_grad(state.x[self.ballots.item])[1]
        at = self.ballots.ballot
        value = -rows * self.ballots.weight[at]
        found = csr_matrix((value, (self.voters.of[at], self.ballots.item)), (len(self.voters), self.size))
        return (
            found
            if self.group is None
            else csr_matrix(found @ csr_matrix(ballot_objective.averages_in_groups(self.group)))
        )

    def information(self, weight: Floats, state: GroupFit) -> Floats:
        b = self._objective(weight, state.width)
        H = b.hessian(state.x) if b.closed else b.dense(state.x)
        H = H if b.closed or b.precision else information.with_precision(H, 0.0)
        return ballot_objective.with_curvature_in_groups(H, self.group) * b.scale

    def own_information(self, state: GroupFit, voter: int) -> Floats:
        own = self.ballots[self.voters.rows(voter)]
        b = ballot_objective.Ballots(own, own.weight, self.model.loss, None)
        b.group = self.group
        return (b.closed_hessian(state.x) if b.closed else b.dense(state.x)) * b.scale

    def scores(self, state: GroupFit) -> Floats:
        return state.x

    def vector(self, state: GroupFit) -> Floats:
        return state.x

    def from_vector(self, x: Floats, state: GroupFit) -> GroupFit:
        return GroupFit(x - x.mean() if self.size else x, state.width)

    def score_covariance(self, covariance: Floats) -> Floats:
        return information.with_mean_zero(ballot_objective.matrix_of_averages(covariance, self.group), self.size)

    def refitted(self, weight: Floats, state: GroupFit) -> tuple[Any, Any]:
        model = plain_copy(self.model).fit(self.voters.weighted(weight), start=state.x)
        return model, GroupFit(model.theta_, model.prior_)

    def with_state(self, result: Consensus, state: GroupFit) -> Consensus:
        return replace(result, scores=state.x)


def _scoring(b: ballot_objective.Ballots, theta: Floats, gradient: Floats) -> Floats:
    """A Newton step with the Hessian approximated by the outer products of the ballots' gradients."""
    J = b.outer_products(theta)
    J[np.diag_indices(b.n)] += max(b.precision, 1e-6 * float(np.diag(J).max(initial=0.0)), 1e-14)
    return information.inverse_of(J) @ gradient


class PairFamily:
    """Bradley-Terry with its families of ties.  Pairs of one ballot count as independent votes."""

    def __init__(self, model: BradleyTerry, voters: Voters):
        self.model = model
        data = voters.data
        if isinstance(data, Rankings):  # a row for every voter and pair
            data = replace(data, agent=voters.of, agents=tuple(range(len(voters)))).to_comparisons()
        elif data.ordered and not model.order_effect:
            data = data.reweighted(1.0, ordered=False)
        assert data.agent is not None
        self.data = data
        self.voters = replace(voters, data=data, of=data.agent)
        self.all = voters
        n = data.n_items
        pair, self.of_pair = np.unique(data.i * n + data.j, return_inverse=True)
        won, lost, tied = (_sums(self.of_pair, column, len(pair)) for column in (data.wins_i, data.wins_j, data.ties))
        self.pooled = Comparisons(pair // n, pair % n, won, lost, tied, items=data.items, ordered=data.ordered)
        self.law = pair_likelihood.pair_counts(self.pooled, TIES[model.tie_model(self.pooled)], 1.0, model.order_effect)
        self.size = n + self.law.n_extra
        self.n_parameters = max(n - 1, 0) + self.law.n_extra

    def _counts(self, weight: Floats, width: float | None) -> pair_likelihood.PairCounts:
        """Weighted counts of each pair, with the same free parameters as the whole data."""
        factor, d = weight[self.voters.of], self.data
        n = len(self.pooled)
        won, lost, tied = (_sums(self.of_pair, c * factor, n) for c in (d.wins_i, d.wins_j, d.ties))
        whole = replace(self.pooled, wins_i=won, wins_j=lost, ties=tied)
        found = pair_likelihood.pair_counts(whole, self.law.model, width, self.model.order_effect)
        return found._replace(model=self.law.model, tie=self.law.tie)

    def start(self, weight: Floats) -> GroupFit:
        width = _first_width(self.model)
        p = self._counts(weight, width)
        return GroupFit(pair_likelihood.start_of(p), width)

    def improve(self, weight: Floats, state: GroupFit) -> GroupFit:
        p = self._counts(weight, state.width)
        with _few_steps():
            found = pair_likelihood.fit_counts(p, state.x, max_iter=FEW_STEPS, tol=self.model.tol)[0].x
        found = self._centered(found)
        return (
            GroupFit(found, state.width)
            if pair_likelihood.value(p, found) <= pair_likelihood.value(p, state.x)
            else state
        )

    def _centered(self, x: Floats) -> Floats:
        n = self.data.n_items
        return np.append(x[:n] - x[:n].mean(), x[n:]) if n else x

    def _advantage(self, state: GroupFit) -> Floats:
        theta, _, effect = pair_likelihood.parameters(self.law, state.x)
        d, first = np.empty(len(self.data)), np.ones((len(self.data), len(effect)))
        pair_kernels.advantage(theta, first, effect, self.data.i.astype(np.int32), self.data.j.astype(np.int32), d)
        return d

    def log_likelihood(self, state: GroupFit) -> Floats:
        tie, _ = pair_likelihood.tie_parameter(self.law, state.x)
        win, loss, tied = outcome_costs(self._advantage(state), self.law.model, tie)
        even = tied if self.law.tie else (win + loss) / 2
        d = self.data
        return -self.voters.per_voter(d.wins_i * win + d.wins_j * loss + d.ties * even)

    def log_prior(self, state: GroupFit) -> float:
        if state.width is None:
            return 0.0
        theta, _, effect = pair_likelihood.parameters(self.law, state.x)
        tie = pair_likelihood.tie_parameter(self.law, state.x)[0] if self.law.tie else 0.0
        beside = tie**2 + float(effect @ effect)
        return -0.5 * (float(theta @ theta) / state.width**2 + beside / EXTRA_PRIOR**2)

    def prior_slope(self, state: GroupFit) -> Floats:
        if state.width is None:
            return np.zeros(self.size)
        theta, _, effect = pair_likelihood.parameters(self.law, state.x)
        tie, slope = pair_likelihood.tie_parameter(self.law, state.x) if self.law.tie else (0.0, 0.0)
        beside = np.append([tie * slope] if self.law.tie else [], effect)
        return -np.append(theta / state.width**2, beside / EXTRA_PRIOR**2)

    def gradient(self, state: GroupFit) -> csr_matrix:
        d, n, rows = self.data, self.data.n_items, len(self.data)
        _, t, _ = pair_likelihood.parameters(self.law, state.x)
        slope, curvature, cross, tie_slope, tie_curvature = np.zeros((5, rows))
        extra = (cross, tie_slope, tie_curvature) if self.law.tie else (np.empty(0),) * 3
        counts = (d.wins_i, d.wins_j, d.ties)
        slopes = PAIR_MODELS[self.law.model].kernel("slopes")
        slopes(self._advantage(state), t, *counts, slope, curvature, *extra)
        columns, values = [d.i, d.j], [-slope, slope]
        if self.law.tie:
            columns, values = [*columns, np.full(rows, n)], [*values, -tie_slope]
        if self.model.order_effect:
            columns, values = [*columns, np.full(rows, self.size - 1)], [*values, -slope]
        where = np.tile(self.voters.of, len(columns)), np.concatenate(columns)
        return csr_matrix((np.concatenate(values), where), (len(self.voters), self.size))

    def information(self, weight: Floats, state: GroupFit) -> Floats:
        p = self._counts(weight, state.width)
        return pair_likelihood.hessian(p, pair_likelihood.derivatives(p, state.x)) * p.scale

    def own_information(self, state: GroupFit, voter: int) -> Floats:
        own = self.data[self.voters.rows(voter)].reweighted(1.0, agents=False)
        p = pair_likelihood.pair_counts(own, self.law.model, None, self.model.order_effect)
        p = p._replace(model=self.law.model, tie=self.law.tie)
        return pair_likelihood.hessian(p, pair_likelihood.derivatives(p, state.x), prior=False) * p.scale

    def errors_beside(self, result: Consensus, error: Floats) -> dict[str, Any]:
        """Standard errors of the tie parameter and of the effects of controls, from those of all unknowns."""
        n, law = self.data.n_items, self.law
        found: dict[str, Any] = {}
        if law.tie and result.fit is not None:
            found["tie_stderr"] = pair_likelihood.tie_parameter(law, result.fit.x)[1] * float(error[n])
        if result.effects is not None:
            found["effects"] = replace(result.effects, stderr=error[n + int(law.tie) :] / law.unit)
        return found

    def scores(self, state: GroupFit) -> Floats:
        return state.x[: self.data.n_items]

    def vector(self, state: GroupFit) -> Floats:
        return state.x

    def from_vector(self, x: Floats, state: GroupFit) -> GroupFit | None:
        if self.law.tie and self.law.model == "rao-kupper" and x[self.data.n_items] <= 0:
            return None
        return GroupFit(self._centered(x), state.width)

    def score_covariance(self, covariance: Floats) -> Floats:
        n = self.data.n_items
        return information.with_mean_zero(covariance, n)[:n, :n]

    def refitted(self, weight: Floats, state: GroupFit) -> tuple[Any, Any]:
        n = self.data.n_items
        model = plain_copy(self.model).fit(self.all.weighted(weight), start=state.x[:n])
        if len(model.fit_.x) != self.size:  # a group without ties has no tie parameter
            return model, state
        return model, GroupFit(self._centered(model.fit_.x), model.prior_)

    def with_state(self, result: Consensus, state: GroupFit) -> Consensus:
        assert result.fit is not None
        fields: dict[str, Any] = {"fit": replace(result.fit, x=state.x)}
        if result.tie is not None:
            fields["tie"] = tie = pair_likelihood.tie_parameter(self.law, state.x)[0]
            fields["win"] = partial(win_probability, family=self.law.model, tie=tie)
        if result.effects is not None:
            effect = pair_likelihood.parameters(self.law, state.x)[2]
            fields["effects"] = replace(result.effects, coefficient=effect / self.law.unit)
        return replace(result, scores=self.scores(state), **fields)


def _sums(group: Ints, values: Floats, n: int) -> Floats:
    return np.bincount(group, values, n).astype(np.float64)
