"""Voters and what a model says of each of them: the parts from which mixtures and leave-one-out are made.

A voter is an agent with all its ballots or votes where the data name agents, else one ballot.  A family holds the data
of all voters and knows one model: weighted fits, one log likelihood per voter, gradients and information.
"""

import math
import warnings
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone

from placet import optim
from placet.aggregate import information, likelihood, pairs, spearman
from placet.aggregate.bradley_terry import TIES, BradleyTerry
from placet.aggregate.existence import agent_factor
from placet.aggregate.kemeny import margins
from placet.aggregate.mallows import Mallows, kendall_dispersion, log_normalizer
from placet.aggregate.places import places, tier_starts
from placet.aggregate.prior import LEARN
from placet.data import Comparisons, DataError, Lists, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.breaking import equal_lists
from placet.kernels import kemeny as kemeny_kernels
from placet.kernels import metrics as metric_kernels
from placet.kernels import pairs as pair_kernels
from placet.losses import Bound
from placet.losses.pairwise import outcome_costs

FEW_STEPS, SCORING_STEPS = 5, 2
"""Newton steps, or steps by outer products of gradients, in a fit that is one of many: it starts from the last one."""


@dataclass(frozen=True, eq=False)
class Voters:
    """``data`` whose weights are those inside a voter, the voter (ballots or rows,) of each, and what each counts.

    Without agents a ballot of weight 3 is three voters with this ballot: ``count`` is 3, and its weight inside is 1.
    With agents every agent counts once (or ``agent_weight``), and the weights of its ballots are how often it cast
    them.  Equal ballots are one voter that counts for all; ``unit`` is the voter of every ballot (or agent) as given,
    and ``given`` what each of those counts.
    """

    data: Rankings | Comparisons
    of: Ints
    count: Floats
    names: tuple[Hashable, ...] | None
    unit: Ints
    given: Floats

    def __len__(self) -> int:
        return len(self.count)

    def weighted(self, weight: Floats) -> Rankings | Comparisons:
        """The data with every voter counted ``weight`` (voters,) times, without agents."""
        d, factor = self.data, weight[self.of]
        if isinstance(d, Rankings):
            return replace(d, weight=d.weight * factor, agent=None, agents=None, notes=())
        won, lost, tied = (column * factor for column in (d.wins_i, d.wins_j, d.ties))
        return Comparisons(d.i, d.j, won, lost, tied, items=d.items, ordered=d.ordered)

    def rows(self, voter: int) -> Ints:
        """Numbers of the ballots or rows of one voter."""
        order, bounds = self._by_voter
        return order[bounds[voter] : bounds[voter + 1]]

    @cached_property
    def _by_voter(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.of, kind="stable")
        return order, np.searchsorted(self.of[order], np.arange(len(self) + 1))

    def per_voter(self, values: Floats) -> Floats:
        """Sums (voters,) of values per ballot or row."""
        return np.bincount(self.of, values, len(self)).astype(np.float64)


def voters_of(data: Rankings | Comparisons, agent_weight: Any = None) -> Voters:
    """The voters of the data; votes must name theirs."""
    if isinstance(data, Comparisons) and (data.control is not None or data.time is not None):
        columns = (data.i, data.j, data.wins_i, data.wins_j, data.ties, data.agent)
        data = Comparisons(*columns, items=data.items, agents=data.agents, ordered=data.ordered)
    if data.agent is not None and data.agents is not None:
        count = np.zeros(len(data.agents))
        count[data.agent] = agent_factor(agent_weight, data)
        return Voters(data, data.agent, count, data.agents, np.arange(len(count)), count)
    if agent_weight is not None:
        agent_factor(agent_weight, data)  # says that there are no agents
    if isinstance(data, Comparisons):
        raise DataError(
            f"{len(data)} pairs of votes name no agents, and a single vote cannot tell kinds of voters apart; "
            "read the votes with the column of their voters"
        )
    first, unit = equal_lists(data.item, data.tier, data.offsets, None, None)
    each = replace(data[first], weight=np.ones(len(first)))
    count = np.bincount(unit, data.weight, len(first)).astype(np.float64)
    return Voters(each, np.arange(len(first)), count, None, unit, data.weight)


class Family(Protocol):
    """One model on the data of all voters.  A state is what the model learnt; weights are (voters,)."""

    size: int
    n_parameters: int

    def start(self, weight: Floats) -> Any:
        """The state from which a first fit starts."""

    def improve(self, weight: Floats, state: Any) -> Any:
        """A state whose weighted log posterior is no lower, and close to the highest."""

    def log_likelihood(self, state: Any) -> Floats:
        """(voters,) log probabilities of what each voter said."""

    def log_prior(self, state: Any) -> float:
        """Log density of the state's prior but for a constant."""

    def gradient(self, state: Any) -> csr_matrix:
        """(voters, size): derivatives of the log likelihoods."""

    def information(self, weight: Floats, state: Any) -> Floats:
        """(size, size): minus the second derivatives of the weighted log posterior."""

    def scores(self, state: Any) -> Floats:
        """(n_items,): the items' scores."""

    def vector(self, state: Any) -> Floats | None:
        """The state as numbers that may be extrapolated; None where it is no vector."""

    def from_vector(self, x: Floats, state: Any) -> Any:
        """The state of such numbers, else as ``state``; None where there is none."""

    def score_covariance(self, covariance: Floats) -> Floats | None:
        """That of the scores, from that of all unknowns; None where scores have none."""

    def own_information(self, state: Any, voter: int) -> Floats:
        """(size, size): the part of one voter, counted once, without the prior."""

    def refitted(self, weight: Floats, state: Any) -> tuple[Any, Any]:
        """The estimator fitted to the weighted data, and its state."""


def family_of(model: Any, voters: Voters) -> Family:
    """The family of an estimator: ballot likelihoods, pairs, or Mallows."""
    if isinstance(model, BradleyTerry):
        return Pairs(model, voters)
    if isinstance(model, Mallows):
        return Distances(model, voters)
    return BallotLists(model, voters)


@contextmanager
def _few_steps() -> Iterator[None]:
    with warnings.catch_warnings():  # a fit that is one of many need not end at its optimum
        warnings.simplefilter("ignore", optim.ConvergenceWarning)
        yield


def _plain(model: BaseEstimator, **changes: Any) -> Any:
    """A copy without weights of agents, which are in the counts of the voters already."""
    known = model.get_params(deep=False)
    return clone(model).set_params(**{k: v for k, v in ({"agent_weight": None} | changes).items() if k in known})


FIRST_WIDTH = 2.0
"""Width of the scores' prior while groups are looked for, where it is to be learnt from each group in the end."""


class Fitted(NamedTuple):
    """Unknowns, the items' scores first, and the width of the scores' prior."""

    x: Floats
    width: float | None


def _first_width(model: Any) -> float | None:
    return FIRST_WIDTH if model.prior == LEARN else model.prior


class BallotLists:
    """Models whose loss sees row scores: Plackett-Luce and models over ordered partitions.  The unknowns are theta."""

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

    def _objective(self, weight: Floats, width: float | None) -> likelihood.Ballots:
        by_ballot = self.ballots.weight * weight[self.voters.of]
        objective = likelihood.Ballots(self.ballots, by_ballot, self.model.loss, width)
        if hasattr(self, "group"):
            objective.group = self.group
        return objective

    def start(self, weight: Floats) -> Fitted:
        return Fitted(np.zeros(self.size), _first_width(self.model))

    def improve(self, weight: Floats, state: Fitted) -> Fitted:
        b, x = self._objective(weight, state.width), state.x
        with _few_steps():
            if b.strict:
                found = likelihood.minimize(b, x, FEW_STEPS, self.model.tol).x
            else:
                found = optim.newton(b.value, partial(_scoring, b), x, tol=1e-9, max_iter=SCORING_STEPS).x
        found = b.average(found)
        found = found - found.mean() if self.size else found
        return Fitted(found, state.width) if b.value(found)[0] <= b.value(x)[0] else state

    def log_likelihood(self, state: Fitted) -> Floats:
        return -self.voters.per_voter(self.ballots.weight * self.bound.per_list(state.x[self.ballots.item]))

    def log_prior(self, state: Fitted) -> float:
        return 0.0 if state.width is None else -0.5 * float(state.x @ state.x) / state.width**2

    def gradient(self, state: Fitted) -> csr_matrix:
        rows = self.bound.value_and_grad(state.x[self.ballots.item])[1]
        at = self.ballots.ballot
        value = -rows * self.ballots.weight[at]
        found = csr_matrix((value, (self.voters.of[at], self.ballots.item)), (len(self.voters), self.size))
        return found if self.group is None else csr_matrix(found @ csr_matrix(self._averages()))

    def _averages(self) -> Floats:
        """(n, n): the matrix that replaces every score by the mean of its group."""
        assert self.group is not None
        return (self.group[:, None] == self.group) / np.bincount(self.group)[self.group]

    def information(self, weight: Floats, state: Fitted) -> Floats:
        b = self._objective(weight, state.width)
        H = b.hessian(state.x) if b.strict else b.dense(state.x)
        H = H if b.strict or b.precision else information.with_precision(H, 0.0)
        if self.group is not None:  # differences inside a group are no unknowns: any curvature will do for them
            H = H + (np.eye(self.size) - self._averages()) * np.trace(H) / self.size
        return H * b.scale

    def own_information(self, state: Fitted, voter: int) -> Floats:
        own = self.ballots[self.voters.rows(voter)]
        b = likelihood.Ballots(own, own.weight, self.model.loss, None)
        b.group = self.group
        return (b.strict_hessian(state.x) if b.strict else b.dense(state.x)) * b.scale

    def scores(self, state: Fitted) -> Floats:
        return state.x

    def vector(self, state: Fitted) -> Floats:
        return state.x

    def from_vector(self, x: Floats, state: Fitted) -> Fitted:
        return Fitted(x - x.mean() if self.size else x, state.width)

    def score_covariance(self, covariance: Floats) -> Floats:
        if self.group is not None:
            covariance = self._averages() @ covariance @ self._averages().T
        return information.with_mean_zero(covariance, self.size)

    def refitted(self, weight: Floats, state: Fitted) -> tuple[Any, Any]:
        model = _plain(self.model).fit(self.voters.weighted(weight), start=state.x)
        return model, Fitted(model.theta_, model.prior_)


def _scoring(b: likelihood.Ballots, theta: Floats, gradient: Floats) -> Floats:
    """A step by the outer products of the ballots' gradients, which stand for the Hessian."""
    J = b.outer_products(theta)
    J[np.diag_indices(b.n)] += max(b.precision, 1e-6 * float(np.diag(J).max(initial=0.0)), 1e-14)
    return information.inverse_of(J) @ gradient


class Pairs:
    """Bradley-Terry with its families of ties.  Pairs of one ballot count as independent votes."""

    def __init__(self, model: BradleyTerry, voters: Voters):
        self.model = model
        data = voters.data
        if isinstance(data, Rankings):  # a row for every voter and pair
            data = replace(data, agent=voters.of, agents=tuple(range(len(voters)))).to_comparisons()
        elif data.ordered and not model.order_effect:
            columns = (data.i, data.j, data.wins_i, data.wins_j, data.ties, data.agent)
            data = Comparisons(*columns, items=data.items, agents=data.agents)
        assert data.agent is not None
        self.data = data
        self.voters = replace(voters, data=data, of=data.agent)
        self.all = voters
        n = data.n_items
        pair, self.of_pair = np.unique(data.i * n + data.j, return_inverse=True)
        won, lost, tied = (_sums(self.of_pair, column, len(pair)) for column in (data.wins_i, data.wins_j, data.ties))
        self.pooled = Comparisons(pair // n, pair % n, won, lost, tied, items=data.items, ordered=data.ordered)
        self.law = pairs.pair_counts(self.pooled, TIES[model.ties], 1.0, model.order_effect)
        self.size = n + self.law.n_extra
        self.n_parameters = max(n - 1, 0) + self.law.n_extra

    def _counts(self, weight: Floats, width: float | None) -> pairs.PairCounts:
        """Weighted counts of each pair; which parameters are unknown is as in all the data together."""
        factor, d = weight[self.voters.of], self.data
        n = len(self.pooled)
        won, lost, tied = (_sums(self.of_pair, c * factor, n) for c in (d.wins_i, d.wins_j, d.ties))
        whole = replace(self.pooled, wins_i=won, wins_j=lost, ties=tied)
        found = pairs.pair_counts(whole, TIES[self.model.ties], width, self.model.order_effect)
        return found._replace(model=self.law.model, tie=self.law.tie)

    def start(self, weight: Floats) -> Fitted:
        width = _first_width(self.model)
        p = self._counts(weight, width)
        return Fitted(pairs.start_of(p), width)

    def improve(self, weight: Floats, state: Fitted) -> Fitted:
        p = self._counts(weight, state.width)
        with _few_steps():
            found = pairs.fit_counts(p, state.x, max_iter=FEW_STEPS, tol=self.model.tol)[0].x
        found = self._centered(found)
        return Fitted(found, state.width) if pairs.value(p, found) <= pairs.value(p, state.x) else state

    def _centered(self, x: Floats) -> Floats:
        n = self.data.n_items
        return np.append(x[:n] - x[:n].mean(), x[n:]) if n else x

    def _advantage(self, state: Fitted) -> Floats:
        theta, _, effect = pairs.parameters(self.law, state.x)
        d, first = np.empty(len(self.data)), np.ones((len(self.data), len(effect)))
        pair_kernels.advantage(theta, first, effect, self.data.i.astype(np.int32), self.data.j.astype(np.int32), d)
        return d

    def log_likelihood(self, state: Fitted) -> Floats:
        tie, _ = pairs.tie_parameter(self.law, state.x)
        win, loss, tied = outcome_costs(self._advantage(state), self.law.model, tie)
        even = tied if self.law.tie else (win + loss) / 2
        d = self.data
        return -self.voters.per_voter(d.wins_i * win + d.wins_j * loss + d.ties * even)

    def log_prior(self, state: Fitted) -> float:
        if state.width is None:
            return 0.0
        theta, _, effect = pairs.parameters(self.law, state.x)
        tie = pairs.tie_parameter(self.law, state.x)[0] if self.law.tie else 0.0
        beside = tie**2 + float(effect @ effect)
        return -0.5 * (float(theta @ theta) / state.width**2 + beside / pairs.EXTRA_PRIOR**2)

    def gradient(self, state: Fitted) -> csr_matrix:
        d, n, rows = self.data, self.data.n_items, len(self.data)
        _, t, _ = pairs.parameters(self.law, state.x)
        slope, curvature, cross, tie_slope, tie_curvature = np.zeros((5, rows))
        extra = (cross, tie_slope, tie_curvature) if self.law.tie else (np.empty(0),) * 3
        counts = (d.wins_i, d.wins_j, d.ties)
        self.law.law.slopes(self._advantage(state), t, *counts, slope, curvature, *extra)
        columns, values = [d.i, d.j], [-slope, slope]
        if self.law.tie:
            columns, values = [*columns, np.full(rows, n)], [*values, -tie_slope]
        if self.model.order_effect:
            columns, values = [*columns, np.full(rows, self.size - 1)], [*values, -slope]
        where = np.tile(self.voters.of, len(columns)), np.concatenate(columns)
        return csr_matrix((np.concatenate(values), where), (len(self.voters), self.size))

    def information(self, weight: Floats, state: Fitted) -> Floats:
        p = self._counts(weight, state.width)
        return pairs.hessian(p, pairs.derivatives(p, state.x)) * p.scale

    def own_information(self, state: Fitted, voter: int) -> Floats:
        own = self.data[self.voters.rows(voter)]
        whole = Comparisons(own.i, own.j, own.wins_i, own.wins_j, own.ties, items=own.items, ordered=own.ordered)
        p = pairs.pair_counts(whole, TIES[self.model.ties], None, self.model.order_effect)
        p = p._replace(model=self.law.model, tie=self.law.tie)
        return pairs.dense(p, pairs.derivatives(p, state.x)) * p.scale

    def extra_errors(self, result: Any, error: Floats) -> dict[str, float]:
        """Standard errors of the tie parameter and the effect of order, from those of all unknowns."""
        n, found = self.data.n_items, {}
        if self.law.tie:
            slope = pairs.tie_parameter(self.law, result.fit.x)[1]
            found["tie_stderr"] = slope * float(error[n])
        if self.model.order_effect:
            found["order_effect_stderr"] = float(error[-1])
        return found

    def scores(self, state: Fitted) -> Floats:
        return state.x[: self.data.n_items]

    def vector(self, state: Fitted) -> Floats:
        return state.x

    def from_vector(self, x: Floats, state: Fitted) -> Fitted | None:
        if self.law.tie and self.law.model == "rao-kupper" and x[self.data.n_items] <= 0:
            return None
        return Fitted(self._centered(x), state.width)

    def score_covariance(self, covariance: Floats) -> Floats:
        n = self.data.n_items
        return information.with_mean_zero(covariance, n)[:n, :n]

    def refitted(self, weight: Floats, state: Fitted) -> tuple[Any, Any]:
        n = self.data.n_items
        model = _plain(self.model).fit(self.all.weighted(weight), start=state.x[:n])
        if len(model.fit_.x) != self.size:  # a group without a tie: no ties are expected in it
            return model, state
        return model, Fitted(self._centered(model.fit_.x), model.prior_)


class Center(NamedTuple):
    """Items best first, and the dispersion t."""

    order: Ints
    dispersion: float


class Distances:
    """Mallows models: orders are searched by moving one item at a time, and the last fit is that of the model itself.

    The gradient and the information are those of the dispersion alone; a center has no derivative.
    """

    def __init__(self, model: Mallows, voters: Voters):
        if isinstance(voters.data, Comparisons):
            raise DataError("'mallows' needs whole ballots, and votes on pairs are none; use 'bradley-terry'")
        self.model, self.voters, self.ballots = model, voters, voters.data
        self.size, n = 1, voters.data.n_items
        self.n_parameters = n  # the dispersion, and a center that orders n items
        self.spearman = spearman.Ballots(self.ballots) if model.distance == "spearman" else None
        first, size = tier_starts(self.ballots)
        opens = np.flatnonzero(np.arange(len(first)) - self.ballots.offsets[:-1][self.ballots.ballot] == first)
        self.tier_size, self.tier_ballot = size[opens], self.ballots.ballot[opens]

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
            own = spearman.Ballots(data)
            options = [(*own.at(_places(order)).least(), order) for order in (found, state.order)]
            _, t, order = min(options, key=lambda option: option[0])
            return Center(order, t)
        wins = np.zeros((data.n_items, data.n_items))
        kemeny_kernels.pair_wins(data.item, data.tier, data.offsets, data.weight, wins, np.zeros_like(wins))
        order = state.order.copy()
        kemeny_kernels.insertion_search(margins(wins), order)
        against = float(np.tril(wins[np.ix_(order, order)], -1).sum())
        return Center(order, kendall_dispersion(data, against)[1])

    def distances(self, order: Ints) -> Floats:
        """(ballots,) pairs that a ballot orders against the center."""
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
        """Log likelihoods at t - h, t and t + h, and h; t is held h away from 0."""
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
        model = _plain(self.model).fit(self.voters.weighted(weight))
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


def _sums(group: Ints, values: Floats, n: int) -> Floats:
    return np.bincount(group, values, n).astype(np.float64)


def _places(order: Ints) -> Ints:
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def _by_size(sizes: Ints, value: Any) -> Floats:
    """value(m) of every size m, worked out once for each."""
    table = np.array([value(m) if m > 1 else 0.0 for m in range(int(sizes.max(initial=0)) + 1)])
    return table[sizes]


def seeding_table(voters: Voters) -> csr_matrix:
    """(voters, n_items): how far above the middle a voter puts each item, in units of its list; 0 where it is silent.

    A row for every voter; equal voters have equal rows, and items in another order permute the columns.
    """
    data = voters.data
    shape = len(voters), data.n_items
    if isinstance(data, Rankings):
        sizes = np.diff(data.offsets)[data.ballot]
        first, size = tier_starts(data)
        value = 1 - 2 * (first + (size + 1) / 2) / (sizes + 1)
        columns: tuple[Floats, Ints, Ints] = (value * data.weight[data.ballot], voters.of[data.ballot], data.item)
    else:
        lead = data.wins_i - data.wins_j
        columns = (np.append(lead, -lead), np.tile(voters.of, 2), np.append(data.i, data.j))
    table = csr_matrix((columns[0], (columns[1], columns[2])), shape)
    length = np.sqrt(np.asarray(table.multiply(table).sum(axis=1))).ravel()
    scale = np.divide(1.0, length, out=np.zeros(len(length)), where=length > 0)
    return csr_matrix(table.multiply(scale[:, None]))


def bounded_log(x: Floats) -> Floats:
    """log x, with a finite number in place of log 0."""
    return np.log(np.maximum(x, math.exp(-700)))
