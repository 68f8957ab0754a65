"""The negative log likelihood of one source as a function of its own scores u and a few parameters beside them.

Votes: Bradley-Terry with ties and controls (tie parameter, effects).  Ballots: Plackett-Luce with exact ties.  Score
tables: item response (`placet.aggregate.sources.item_response`).  Every likelihood has the items ``index`` (m,) among
all, ``size`` = m + q unknowns x = (u, others), ``start()``, ``value(x)``, ``derivatives(x)``: gradient (size,) and
Hessian (size, size), and ``skew(x, C)`` (m,): f''' : C / 2 in the scores, by how much the mean gradient exceeds that at
x if the scores have the covariance C (m, m).  The others have weak priors, which are part of the value.
"""

from typing import Any, Protocol

import numpy as np

from placet.aggregate.data_facts import with_votes_counted
from placet.aggregate.instances import refuse_instances
from placet.aggregate.likelihood.ballot_objective import Ballots
from placet.aggregate.likelihood.ballot_part import part_weight
from placet.aggregate.likelihood.controls import refuse_row_controls
from placet.aggregate.pairs import pair_likelihood
from placet.data import Comparisons, Parts, Rankings, Scores
from placet.data.arrays import Floats, Ints
from placet.losses.pairwise import TIES

FLAT = 1e6
"""Standard deviation of the prior that the objectives for votes and ballots carry: none to speak of."""

SKEW_STEP = 1e-2
"""Step of the differences by which third derivatives of ballots are found."""

MOST_CURVED = 12.0
"""Own scores of ballots are kept within this distance of 0 where the Hessian is taken, so that it does not vanish."""


class SourceLikelihood(Protocol):
    """What the joint fit asks of a source."""

    index: Ints
    size: int

    def start(self) -> Floats: ...
    def value(self, x: Floats) -> float: ...
    def derivatives(self, x: Floats) -> tuple[Floats, Floats]: ...
    def skew(self, x: Floats, covariance: Floats) -> Floats: ...


class VoteLikelihood:
    """Votes on pairs; beside the scores: a tie parameter, if there are ties, and the effects of controls."""

    def __init__(self, votes: Comparisons, index: Ints, ties: str):
        plain = votes.agent is None and votes.time is None and not votes.ordered
        self.votes = votes if plain else votes.reweighted(1.0, agents=False, ordered=False, time=False)
        self.index = index
        self.counts = pair_likelihood.pair_counts(self.votes, TIES[ties], FLAT, False)
        self.size = votes.n_items + self.counts.n_extra
        self.votes_per_item = 2 * float((votes.wins_i + votes.wins_j + votes.ties).sum()) / votes.n_items

    def start(self) -> Floats:
        return pair_likelihood.start_of(self.counts)

    def value(self, x: Floats) -> float:
        return self.counts.scale * pair_likelihood.value(self.counts, x)

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        at = pair_likelihood.derivatives(self.counts, x)
        H = pair_likelihood.hessian(self.counts, at)
        return self.counts.scale * at.gradient, self.counts.scale * H

    def skew(self, x: Floats, covariance: Floats) -> Floats:
        p, C = self.counts, covariance
        variance = C[p.i, p.i] + C[p.j, p.j] - 2 * C[p.i, p.j]
        pull = 0.5 * p.scale * pair_likelihood.third_derivative(p, x) * variance
        return np.asarray(np.bincount(p.i, pull, p.n_items) - np.bincount(p.j, pull, p.n_items))

    def tie(self, x: Floats) -> float:
        """The tie parameter; -inf if no ties are expected."""
        return pair_likelihood.tie_parameter(self.counts, x)[0]


class BallotLikelihood:
    """Ballots, by Plackett-Luce with exact ties; nothing beside the scores."""

    def __init__(self, ballots: Rankings | Parts, index: Ints):
        if isinstance(ballots, Rankings):
            refuse_instances(ballots, "sources")
            refuse_row_controls(ballots, "sources")
            weight: Any = ballots.weight
        else:
            weight = _weight_of_part
        self.ballots = Ballots(ballots, weight, "pl-partition", FLAT)
        self.index, self.size = index, ballots.n_items

    def start(self) -> Floats:
        return np.zeros(self.size)

    def value(self, x: Floats) -> float:
        return self.ballots.scale * self.ballots.value(x)[0]

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        scale, gradient = self.ballots.scale, self.ballots.value(x)[1]
        near = np.clip(x, -MOST_CURVED, MOST_CURVED)
        if self.ballots.closed:
            return scale * gradient, scale * self.ballots.closed_hessian(near)
        H = np.column_stack([self.ballots.times(near, unit) for unit in np.eye(self.size)])
        return scale * gradient, scale * (H + H.T) / 2

    def skew(self, x: Floats, covariance: Floats) -> Floats:
        """From second differences of the gradient along the axes of C.  O(m) gradients."""
        values, axes = np.linalg.eigh(covariance)
        here, total = self.ballots.value(x)[1], np.zeros(self.size)
        for value, axis in zip(values, SKEW_STEP * axes.T):
            bend = (self.ballots.value(x + axis)[1] - here) + (self.ballots.value(x - axis)[1] - here)
            total += 0.5 * max(float(value), 0.0) / SKEW_STEP**2 * bend
        return self.ballots.scale * total


def _weight_of_part(data: Rankings) -> Floats:
    return part_weight(None, data)


def likelihood_of(data: Any, index: Ints, ties: str, response: str) -> Any:
    """The likelihood of a source, by the kind of its data."""
    data = with_votes_counted(data)
    if isinstance(data, Scores):
        from placet.aggregate.sources.item_response import TableLikelihood

        return TableLikelihood.of(data, index, response)
    return VoteLikelihood(data, index, ties) if isinstance(data, Comparisons) else BallotLikelihood(data, index)
