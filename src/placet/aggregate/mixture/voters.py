"""Voters: the units of mixtures and of leave-one-out influence.

A voter is an agent with all its ballots or votes if the data name agents, else one ballot.  A family holds the data of
all voters and implements one model (`placet.aggregate.mixture.families`): weighted fits, one log likelihood per voter,
gradients and information.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from placet.aggregate.likelihood.existence import agent_factor
from placet.aggregate.places import tier_starts
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.breaking import equal_lists
from placet.data.parameters import Estimator


@dataclass(frozen=True, eq=False)
class Voters:
    """``data`` with weights within voters, the voter ``of`` (ballots or rows,) each, and the ``count`` of each voter.

    Without agents a ballot of weight 3 is three voters with this ballot: ``count`` is 3, and its weight within is 1.
    With agents every agent counts once (or ``agent_weight``), and the weights of its ballots are how often it cast
    them.  Equal ballots are merged into one voter; ``unit`` is the voter of every original ballot (or agent), and
    ``given`` the count of each of those.
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
        return d.reweighted(factor, agents=False)

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
    """The voters of the data; pairwise votes must name their agents."""
    if isinstance(data, Comparisons) and (data.control is not None or data.time is not None):
        columns = (data.i, data.j, data.wins_i, data.wins_j, data.ties, data.agent)
        data = Comparisons(*columns, items=data.items, agents=data.agents, ordered=data.ordered)
    if data.agent is not None and data.agents is not None:
        count = np.zeros(len(data.agents))
        count[data.agent] = agent_factor(agent_weight, data)
        return Voters(data, data.agent, count, data.agents, np.arange(len(count)), count)
    if agent_weight is not None:
        agent_factor(agent_weight, data)  # raises, as there are no agents
    if isinstance(data, Comparisons):
        raise DataError(
            f"{len(data)} pairs of votes name no agents, and a single vote cannot tell groups of voters apart; "
            "read the votes with the column of their voters"
        )
    first, unit = equal_lists(data.item, data.tier, data.offsets, None, None)
    each = replace(data[first], weight=np.ones(len(first)))
    count = np.bincount(unit, data.weight, len(first)).astype(np.float64)
    return Voters(each, np.arange(len(first)), count, None, unit, data.weight)


class Family(Protocol):
    """One model on the data of all voters.  A state holds the learned parameters; weights are (voters,)."""

    size: int
    n_parameters: int

    def start(self, weight: Floats) -> Any:
        """The initial state of a first fit."""

    def improve(self, weight: Floats, state: Any) -> Any:
        """A state whose weighted log posterior is no lower, and close to the maximum."""

    def log_likelihood(self, state: Any) -> Floats:
        """(voters,): log probability of each voter's ballots or votes."""

    def log_prior(self, state: Any) -> float:
        """Log prior density of the state up to a constant."""

    def gradient(self, state: Any) -> csr_matrix:
        """(voters, size): derivatives of the log likelihoods."""

    def information(self, weight: Floats, state: Any) -> Floats:
        """(size, size): minus the second derivatives of the weighted log posterior."""

    def scores(self, state: Any) -> Floats:
        """(n_items,): the items' scores."""

    def vector(self, state: Any) -> Floats | None:
        """The state as a vector that may be extrapolated; None if it is not one."""

    def from_vector(self, x: Floats, state: Any) -> Any:
        """The state with vector ``x`` and otherwise like ``state``; None if there is none."""

    def score_covariance(self, covariance: Floats) -> Floats | None:
        """Covariance of the scores from that of all parameters; None if scores have none."""

    def own_information(self, state: Any, voter: int) -> Floats:
        """(size, size): information of one voter, counted once, without the prior."""

    def refitted(self, weight: Floats, state: Any) -> tuple[Any, Any]:
        """The estimator fitted to the weighted data, and its state."""


class FamilyWithPrior(Family, Protocol):
    """A model whose scores have a normal prior of a width that a state holds."""

    def prior_slope(self, state: Any) -> Floats:
        """(size,): derivatives of the log prior density."""

    def with_state(self, result: Any, state: Any) -> Any:
        """A result of this model with the parameters of a state in place of its own."""


def seeding_table(voters: Voters) -> csr_matrix:
    """(voters, n_items): how far above the middle a voter places each item, 0 if not listed; rows have unit length.

    Equal voters have equal rows, and reordering the items permutes the columns.
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


def plain_copy(model: Estimator, **changes: Any) -> Any:
    """A copy without weights of agents, which are already included in the counts of the voters.

    A learned prior has mean 0 for every item, as in the objective of the mixture.
    """
    known = model.get_params(deep=False)
    copy: Any = model.unfitted(**{k: v for k, v in ({"agent_weight": None} | changes).items() if k in known})
    copy.level_prior = True
    return copy
