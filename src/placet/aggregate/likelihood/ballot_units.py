"""What single ballots, or agents with all their ballots, add to the scores of a likelihood model; errors by them.

As for votes (`placet.aggregate.pairs.vote_units`): with the gradient u_g and the Hessian H_g of unit g at the fit
x = (theta, rest), and H their sum with the prior, unit g adds H^-1 (H_g (theta, 0) - u_g) to the scores, and the
covariance by unit is H^-1 M H^-1 with M = G / (G - 1) sum u_g u_g' + the prior's precision.

Units are ballots for models that say how often ballots tie whatever the scores are (PMOP): where they tie more or less
often, each ballot says more or less about the scores than the model takes for granted, and H^-1 alone is too small.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.aggregate.likelihood.ballot_objective import (
    Ballots,
    averages_in_groups,
    dense_hessian,
    uncertainty_of,
    with_curvature_in_groups,
)
from placet.aggregate.likelihood.ballot_part import BallotPart, WeightOf
from placet.aggregate.likelihood.information import inverse_of, sampled_stderr
from placet.aggregate.likelihood.prior import trend_root
from placet.aggregate.resample import are_counts
from placet.aggregate.result.independent_units import MOST_ITEMS, MOST_UNITS, Units
from placet.aggregate.result.uncertainty import MOST_SIMULATED, SAMPLED
from placet.data import Parts, Rankings
from placet.data.arrays import Floats
from placet.data.engines.memory import PART_OF_MEMORY, memory_limit

BYTES_OF_ROW = 24
"""Memory of a row in the gradients by agent, with what is needed to add two parts of them."""


def fits_by_agent(b: Ballots) -> bool:
    """Whether the gradients of all agents fit in a quarter of the memory; those of data in memory always do."""
    return not isinstance(b.data, Parts) or BYTES_OF_ROW * b.n_rows <= memory_limit() // PART_OF_MEMORY


def errors_by_agent(
    b: Ballots, used: NDArray[np.bool_], x: Floats, rng: np.random.Generator
) -> tuple[dict[str, Any], list[str]]:
    """Fields of a result with the errors by agent, as `uncertainty_of` gives them, and notes.

    ``used`` (agents,): who gave anything.  Gradients of agents are sums over parts.  O(n^3).
    """
    n_units = int(used.sum())
    flips = n_units <= MOST_UNITS and b.n_items <= MOST_ITEMS and b.group is None
    found = b.data.sum(_by_agent, b.part, b.weight_of, b.loss, b.scale, x, flips, name="gradients by agent")
    gradient, *pull = (one[used] for one in found)
    if b.n > MOST_SIMULATED:
        return {"covariance": None, "stderr": _stderr_of_many(b, gradient, x, rng)}, [SAMPLED]
    meat = (gradient.T @ gradient).toarray() * (b.scale * n_units / max(n_units - 1, 1))
    meat[np.diag_indices(b.n)] += b.precisions
    meat = b.with_trend(meat)
    covariance, stderr, notes = uncertainty_of(b, x, "sandwich", rng, meat)
    fields: dict[str, Any] = {"covariance": covariance, "stderr": stderr}
    if flips and covariance is not None:
        added = np.linalg.solve(dense_hessian(b, x), (pull[0] - gradient).toarray().T)[: b.n_items]
        fields["units"] = Units("agent", np.ascontiguousarray(added.T), np.ones(n_units))
        notes = [*notes, *fields["units"].notes()]
    return fields, notes


def errors_by_ballot(b: Ballots, x: Floats, rng: np.random.Generator) -> tuple[dict[str, Any], list[str]]:
    """As `errors_by_agent` where every ballot is a unit, one of weight 3 being three.  O(n^3).

    Flips are a condition beside the errors: what few ballots add depends on where the scores of the others lie.
    """
    n_units, meat = b.total, None
    if n_units > 1 and b.n <= MOST_SIMULATED:
        meat = b.outer_products(x) / (1 - 1 / n_units)
        meat[np.diag_indices(b.n)] += b.precisions
        meat = b.with_trend(meat)
    covariance, stderr, notes = uncertainty_of(b, x, "observed" if meat is None else "sandwich", rng, meat)
    fields: dict[str, Any] = {"covariance": covariance, "stderr": stderr}
    if not 1 < n_units <= MOST_UNITS or b.n_items > MOST_ITEMS or covariance is None:
        return fields, notes
    parts = b.data.sum(_by_ballot, b.part, b.weight_of, b.loss, x, name="gradients by ballot")
    count = np.concatenate([one for one, _ in parts])
    if are_counts(count):
        H = with_curvature_in_groups(dense_hessian(b, x), b.group)
        share = np.eye(b.n) if b.group is None else averages_in_groups(b.group)
        added = np.concatenate([own for _, own in parts]) @ share @ inverse_of(b.scale * H) @ share
        fields["units"] = Units("ballot", added, count, decides=False)
        notes = [*notes, *fields["units"].notes()]
    return fields, notes


def _stderr_of_many(b: Ballots, gradient: Any, x: Floats, rng: np.random.Generator) -> Floats:
    """Standard errors of very many items, from draws whose covariance is that of the agents' gradients."""
    n_units = gradient.shape[0]
    size, prior = math.sqrt(b.scale * n_units / max(n_units - 1, 1)), math.sqrt(b.precision)

    def draw() -> Floats:
        by_agent = size * (gradient.T @ rng.standard_normal(n_units))
        return by_agent + prior * trend_root(b.trend, rng.standard_normal(b.n))

    found = sampled_stderr(partial(b.times, x), b.diagonal(x), draw, robust=True)
    return found / math.sqrt(b.scale)


def _by_agent(
    data: Rankings, kind: type[BallotPart], weight_of: WeightOf, loss: str, scale: float, x: Floats, flips: bool
) -> tuple[Any, ...]:
    """Sparse (agents, unknowns): the gradients of the agents at x and, for flips, their Hessians times the scores."""
    part = kind(data, weight_of(data) / scale, loss)
    assert data.agent is not None
    assert data.agents is not None
    unit, n_units = data.agent[data.ballot], len(data.agents)
    gradient = part.by_unit(part.row_gradient(x) * part.weight[data.ballot], unit, n_units)
    if not flips:
        return (gradient,)
    scores = np.append(x[: part.n], np.zeros(len(x) - part.n))
    return gradient, part.by_unit(part.bound.hvp(part.to_rows(x), part.to_rows(scores)), unit, n_units)


def _by_ballot(
    data: Rankings, kind: type[BallotPart], weight_of: WeightOf, loss: str, x: Floats
) -> list[tuple[Floats, Floats]]:
    """Weights (ballots,) that are not 0 and, if whole, (ballots, unknowns): Hessians times the scores less gradients.

    A list, as lists of parts are joined when they are added.
    """
    weight = weight_of(data)
    if not are_counts(weight):
        return [(weight, np.zeros((0, len(x))))]
    single, n = kind(data, np.ones(len(data)), loss), len(data)
    rows = single.bound.hvp(single.to_rows(x), single.to_rows(x)) - single.row_gradient(x)
    return [(weight[weight > 0], single.by_unit(rows, data.ballot, n).toarray()[weight > 0])]
