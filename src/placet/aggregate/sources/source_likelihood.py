"""The negative log likelihood of one source as a function of its own scores u and a few parameters beside them.

Votes: Bradley-Terry with ties, controls and the effect of coming first.  Ballots: Plackett-Luce with exact ties and
controls of rows.  Score tables: item response (`placet.aggregate.sources.item_response`).  Every likelihood has the
items ``index`` (m,) among all, ``size`` = m + q unknowns x = (u, others), ``start()``, ``value(x)``,
``derivatives(x)``: gradient (size,) and Hessian (size, size), ``skew(x, C)`` (m,): f''' : C / 2 in the scores, by how
much the mean gradient exceeds that at x if the scores have the covariance C (m, m), and ``effects``: what its last
unknowns mean.  The others have weak priors, which are part of the value.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from placet.aggregate.ballots.row_controls import ControlledBallots
from placet.aggregate.data_facts import with_votes_counted
from placet.aggregate.instances import refuse_instances
from placet.aggregate.likelihood.ballot_objective import Ballots
from placet.aggregate.likelihood.ballot_part import part_weight
from placet.aggregate.likelihood.controls import control_names
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


class EffectNames(NamedTuple):
    """Controls of a source, whose effects, times ``unit`` (k,), are its last unknowns; ``varies`` (k,): not all 0."""

    names: tuple[str, ...] = ()
    unit: Floats = np.zeros(0)
    varies: Any = np.zeros(0, bool)


class SourceLikelihood(Protocol):
    """What the joint fit asks of a source."""

    index: Ints
    size: int
    effects: EffectNames

    def start(self) -> Floats: ...
    def value(self, x: Floats) -> float: ...
    def derivatives(self, x: Floats) -> tuple[Floats, Floats]: ...
    def skew(self, x: Floats, covariance: Floats) -> Floats: ...


class VoteLikelihood:
    """Votes on pairs; beside the scores: a tie parameter, if there are ties, and the effects of controls and, with
    ``order``, of coming first.
    """

    def __init__(self, votes: Comparisons, index: Ints, ties: str, order: bool = False):
        plain = votes.agent is None and votes.time is None and votes.ordered == order
        self.votes = votes if plain else votes.reweighted(1.0, agents=False, ordered=order, time=False)
        self.index = index
        self.counts = pair_likelihood.pair_counts(self.votes, TIES[ties], FLAT, order)
        self.effects = EffectNames(control_names(self.votes, order), self.counts.unit, self.counts.control.any(axis=0))
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

    def allows(self, x: Floats) -> bool:
        """Whether the tie parameter is one, as stored in x: Rao-Kupper's is positive."""
        return not (self.counts.model == "rao-kupper" and x[self.counts.n_items] <= 0)

    def tie(self, x: Floats) -> float:
        """The tie parameter; -inf if no ties are expected."""
        return pair_likelihood.tie_parameter(self.counts, x)[0]


class BallotLikelihood:
    """Ballots, by Plackett-Luce with exact ties; beside the scores: the effects of controls of rows."""

    def __init__(self, ballots: Rankings | Parts, index: Ints):
        weight: Any = _weight_of_part
        kind: type[Ballots] = Ballots
        self.effects = EffectNames()
        if isinstance(ballots, Rankings):
            refuse_instances(ballots, "sources")
            weight = ballots.weight
            kind = Ballots if ballots.control is None else ControlledBallots
        self.ballots: Any = kind(ballots, weight, "pl-partition", FLAT)
        if isinstance(self.ballots, ControlledBallots):
            self.effects = EffectNames(self.ballots.names, self.ballots.unit, self.ballots.varies)
        self.index, self.size = index, self.ballots.n

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
            step = np.append(axis, np.zeros(self.size - len(axis)))
            bend = (self.ballots.value(x + step)[1] - here) + (self.ballots.value(x - step)[1] - here)
            total += 0.5 * max(float(value), 0.0) / SKEW_STEP**2 * bend
        return np.asarray(self.ballots.scale * total[: len(self.index)])


def _weight_of_part(data: Rankings) -> Floats:
    return part_weight(None, data)


def likelihood_of(data: Any, index: Ints, ties: str, response: str, order: bool = False) -> Any:
    """The likelihood of a source, by the kind of its data; ``order``: with that of coming first, if known."""
    data = with_votes_counted(data)
    if isinstance(data, Scores):
        from placet.aggregate.sources.item_response import TableLikelihood

        return TableLikelihood.of(data, index, response)
    if isinstance(data, Comparisons):
        return VoteLikelihood(data, index, ties, order and data.ordered)
    return BallotLikelihood(data, index)
