"""What single votes, or agents with all their votes, add to the scores of a fit to pair counts.

With the gradient u_g and the Hessian H_g of the cost of unit g at the fit x = (theta, rest), and H their sum with the
prior, unit g adds c_g = H^-1 (H_g (theta, 0) - u_g).  These add up to the scores, up to the prior's pull, and if two
items are equal the difference that a unit adds has mean zero.  The covariance by unit is H^-1 M H^-1 with
M = G / (G - 1) sum u_g u_g' + the prior's precision: with one vote per unit that is close to H^-1.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from placet.aggregate.likelihood.existence import factor_by_agent
from placet.aggregate.likelihood.information import inverse_of, sampled_stderr, sandwich
from placet.aggregate.likelihood.prior import trend_root, width_uncertainty, with_width
from placet.aggregate.pairs.pair_likelihood import (
    Derivatives,
    PairCounts,
    extra_stderr,
    hessian,
    parameters,
    scores_alone,
)
from placet.aggregate.resample import agents_note, are_counts, busy_agents
from placet.aggregate.result.independent_units import MOST_ITEMS, MOST_UNITS, Units
from placet.aggregate.result.uncertainty import MOST_SIMULATED, SAMPLED
from placet.data import Comparisons, Parts, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.parts import as_parts
from placet.kernels.losses import pairs as kernels
from placet.losses.pairwise import PAIR_MODELS


class UnitGradients(NamedTuple):
    """(units, unknowns): the gradients u_g, and the products H_g (theta, 0), both divided by the fit's ``scale``."""

    gradient: csr_matrix
    pull: csr_matrix


def rows_of_units(votes: Comparisons, p: PairCounts) -> PairCounts:
    """The counts of ``votes``, which keep their agents, in the units and with the model of the pooled counts ``p``."""
    control = np.zeros((len(votes), 0)) if votes.control is None else np.asarray(votes.control)
    if control.shape[1] < len(p.unit):
        control = np.column_stack([control, np.ones(len(votes))])  # the effect of coming first
    return p._replace(
        i=votes.i.astype(np.int32),
        j=votes.j.astype(np.int32),
        wins_i=votes.wins_i / p.scale,
        wins_j=votes.wins_j / p.scale,
        ties=votes.ties / p.scale,
        control=np.ascontiguousarray(control / p.unit),
    )


def unit_gradients(rows: PairCounts, x: Floats, unit: Ints, n_units: int) -> UnitGradients:
    """Gradients of the units that ``unit`` (rows,) names, at x.  O(rows)."""
    theta, t, effect = parameters(rows, x)
    n = len(rows.i)
    d, slope, curvature = np.empty((3, n))
    cross, tie_slope, tie_curvature = np.zeros((3, n))
    kernels.advantage(theta, rows.control, effect, rows.i, rows.j, d)
    counts = (rows.wins_i, rows.wins_j, rows.ties)
    slopes = PAIR_MODELS[rows.model].kernel("slopes")
    slopes(d, t, *counts, slope, curvature, cross, tie_slope, tie_curvature)
    gap = theta[rows.i] - theta[rows.j]

    def spread(by_gap: Floats, by_tie: Floats) -> csr_matrix:
        parts = [(rows.i, by_gap), (rows.j, -by_gap)]
        if rows.tie:
            parts.append((np.full(n, rows.n_items), by_tie))
        first = rows.n_items + int(rows.tie)
        parts += [(np.full(n, first + k), rows.control[:, k] * by_gap) for k in range(rows.control.shape[1])]
        values, columns = (np.concatenate([part[k] for part in parts]) for k in (1, 0))
        return csr_matrix((values, (np.tile(unit, len(parts)), columns)), shape=(n_units, len(x)))

    return UnitGradients(spread(slope, tie_slope), spread(curvature * gap, cross * gap))


def units_of_votes(votes: Comparisons, p: PairCounts, at: Derivatives, x: Floats) -> Units | None:
    """What every vote adds to the scores; None if votes are many or are not counts."""
    counts = np.concatenate([votes.wins_i, votes.wins_j, votes.ties])
    if not are_counts(counts) or counts.sum() > MOST_UNITS or p.n_items > MOST_ITEMS:
        return None
    rows, n = rows_of_units(votes, p), len(votes)
    found = []
    for k in range(3):
        won, lost, tied = (np.full(n, float(k == m) / p.scale) for m in range(3))
        single = rows._replace(wins_i=won, wins_j=lost, ties=tied)
        found.append(_contributions(unit_gradients(single, x, np.arange(n), n), inverse_of(hessian(p, at)), p.n_items))
    told = counts > 0
    return Units("vote", np.concatenate(found)[told], counts[told])


def errors_by_agent(
    data: Rankings | Comparisons | Parts, model: Any, p: PairCounts, at: Derivatives
) -> tuple[dict[str, Any], Floats, list[str]] | None:
    """Fields of a result with the errors by agent, standard errors of the other unknowns, and notes; None if no agent
    gives more than one count.  ``model`` is the fitted Bradley-Terry model, ``p`` its pooled counts.  O(n^3).
    """
    used = busy_agents(data)
    if used is None:
        return None
    factor, n_units = factor_by_agent(model.agent_weight, data.agents), int(used.sum())
    summed = as_parts(data).sum(_gradients_of_agents, factor, p, model.order_effect, model.fit_.x, name="agents")
    found = UnitGradients(*(one[used] for one in summed))
    notes = [agents_note(data, n_units, "votes")]
    if p.n_items > MOST_SIMULATED:
        rng = np.random.default_rng(model.random_state)
        return {"stderr": _stderr_of_many(p, at, found.gradient, rng)}, extra_stderr(p, at, None), [*notes, SAMPLED]
    inverse = inverse_of(hessian(p, at))
    meat = (found.gradient.T @ found.gradient).toarray()
    meat *= p.scale * n_units / (n_units - 1)
    prior = np.append(np.full(p.n_items, p.precision), np.full(p.n_extra, p.extra_precision))
    meat[np.diag_indices(len(meat))] += prior
    meat[: p.n_items, : p.n_items] -= (p.precision * p.trend) @ p.trend.T
    full = sandwich(inverse, meat, p.scale, p.n_items)
    if model.prior_spread:
        theta = model.fit_.x[: p.n_items]
        wider = width_uncertainty(inverse / p.scale, theta, p.trend, p.precision * p.scale, model.prior_spread)
        full = with_width(full, wider)
    fields: dict[str, Any] = {"covariance": full[: p.n_items, : p.n_items]}
    if n_units <= MOST_UNITS and p.n_items <= MOST_ITEMS:
        fields["units"] = Units("agent", _contributions(found, inverse, p.n_items), np.ones(n_units))
        notes += fields["units"].notes()
    return fields, np.sqrt(np.diag(full)[p.n_items :]), notes


def _stderr_of_many(p: PairCounts, at: Derivatives, gradient: csr_matrix, rng: np.random.Generator) -> Floats:
    """Standard errors of very many items by agent; the tie parameter and effects of controls are taken as known."""
    n_units, (times, diagonal, _) = gradient.shape[0], scores_alone(p, at, rng, None)
    own = gradient[:, : p.n_items].T
    size, prior = math.sqrt(p.scale * n_units / (n_units - 1)), math.sqrt(p.precision)

    def draw() -> Floats:
        z = size * (own @ rng.standard_normal(n_units)) + prior * trend_root(p.trend, rng.standard_normal(p.n_items))
        return z - z.mean() if p.precision == 0.0 else z

    return sampled_stderr(times, diagonal, draw, robust=True) / math.sqrt(p.scale)


def _gradients_of_agents(
    data: Rankings | Comparisons, factor: Floats | None, p: PairCounts, ordered: bool, x: Floats
) -> tuple[csr_matrix, csr_matrix]:
    """The gradients of all agents; pairs of one ballot are votes of its agent."""
    votes = data.to_comparisons() if isinstance(data, Rankings) else data
    assert votes.agent is not None
    assert votes.agents is not None
    votes = votes.reweighted(1.0 if factor is None else factor[votes.agent], ordered=ordered, time=False)
    assert votes.agent is not None
    assert votes.agents is not None
    found = unit_gradients(rows_of_units(votes, p), x, votes.agent, len(votes.agents))
    return found.gradient, found.pull


def _contributions(found: UnitGradients, inverse: Floats, n_items: int) -> Floats:
    added: Floats = np.asarray((found.pull - found.gradient) @ inverse[:, :n_items])
    return added
