"""The prior of all groups together: what groups have in common, and how far each is from it, both of learned width.

The scores of an item in k groups are normal with covariance w^2 11' + d^2 I, so that groups that are half alike lend
each other evidence, and what tells them apart is drawn together as far as the data do not say it.  The precision is
that of k separate priors of width d, less a 11' with a = w^2 / (d^2 (d^2 + k w^2)).

All groups and shares then move at once, by Newton's method with the observed information of the mixture.  The widths
are those whose squares are the expected squares under Laplace's approximation (expectation maximization).
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from placet.aggregate.likelihood.information import inverse_of
from placet.aggregate.likelihood.prior import NARROWEST, WIDEST_PRIOR
from placet.aggregate.mixture.em import MixtureFit, evaluate
from placet.aggregate.mixture.mixture_errors import regular_information
from placet.aggregate.mixture.voters import FamilyWithPrior, bounded_log
from placet.data.arrays import Floats

MOST_JOINT = 600
"""Largest number of unknowns of all groups together for which their prior is learned jointly."""

MOST_TURNS, CLOSE = 15, 0.01
"""Turns of the search for the widths, which ends when neither changes by more than this share."""

MOST_STEPS, ENOUGH_RISE, SHORTEST = 30, 1e-4, 1e-6
FLATTEST = 1e-3
"""Least curvature that a Newton step takes a direction to have."""

STEP = 0.1
"""Change of the logarithm of a width over which the unknowns are taken to move along a line."""


class JointPrior(NamedTuple):
    """Standard deviations: of what groups have in common, and of each group's distance from it."""

    common: float
    apart: float

    def pull(self, k: int) -> float:
        """The a of the module's description."""
        w, d = self.common**2, self.apart**2
        return w / (d * (d + k * w))


def joint_fit(
    family: FamilyWithPrior, found: MixtureFit, count: Floats, tol: float
) -> tuple[MixtureFit, JointPrior] | None:
    """The groups with a learned joint prior, from a fit with separate ones; None where the information is singular."""
    scores, trace = _scores(family, found), found.trace
    prior = _widths(scores[:, None] * scores[None])
    for _ in range(MOST_TURNS):
        found = joint_maximum(family, count, found.shares, found.states, prior, tol)
        try:
            C = inverse_of(joint_information(family, found, count, prior))
        except np.linalg.LinAlgError:
            return None
        scores, before = _scores(family, found), prior
        prior = _widths(scores[:, None] * scores[None] + _covariances(C, scores, family.size))
        if max(abs(math.log(new / old)) for new, old in zip(prior, before)) < CLOSE:
            break
    found = joint_maximum(family, count, found.shares, found.states, prior, tol)
    return replace(found, trace=trace), prior


def joint_maximum(
    family: FamilyWithPrior, count: Floats, shares: Floats, states: list[Any], prior: JointPrior, tol: float
) -> MixtureFit:
    """The maximum of the posterior of all groups and shares for a given prior, from these."""
    found = evaluate(family, count, shares, [state._replace(width=prior.apart) for state in states])
    close = tol * max(float(count.sum()), 1.0)
    for _ in range(MOST_STEPS):
        slope = joint_slope(family, found, count, prior)
        step = _ascent(joint_information(family, found, count, prior), slope)
        new = _uphill(family, found, count, prior, step, ENOUGH_RISE * float(slope @ step))
        if new is None:  # to the last digit
            return replace(found, converged=True)
        rise, found = _objective(family, new, prior) - _objective(family, found, prior), new
        if rise <= close:
            return replace(found, converged=True)
    return found


def _uphill(
    family: FamilyWithPrior, found: MixtureFit, count: Floats, prior: JointPrior, step: Floats, enough: float
) -> MixtureFit | None:
    """Where the longest of ever shorter steps ends that goes up by its share of ``enough``; None if none does."""
    value, length = _objective(family, found, prior), 1.0
    while length >= SHORTEST:
        new = _move(family, found, count, length * step)
        if new is not None and _objective(family, new, prior) >= value + length * enough:
            return new
        length /= 2
    return None


def _objective(family: FamilyWithPrior, found: MixtureFit, prior: JointPrior) -> float:
    """Log likelihood plus log prior, up to a constant."""
    common = _scores(family, found).sum(axis=0)
    return found.objective + 0.5 * prior.pull(len(found.shares)) * float(common @ common)


def joint_slope(family: FamilyWithPrior, found: MixtureFit, count: Floats, prior: JointPrior) -> Floats:
    """(k size + k,): the gradient of the log posterior in the parameters of each group in turn, then in the logits."""
    common, k = _scores(family, found).sum(axis=0), len(found.shares)
    parts = []
    for g, state in enumerate(found.states):
        own = family.gradient(state).T @ (count * found.membership[:, g]) + family.prior_slope(state)
        own[: len(common)] += prior.pull(k) * common
        parts.append(own)
    return np.concatenate([*parts, count @ (found.membership - found.shares)])


def joint_information(family: FamilyWithPrior, found: MixtureFit, count: Floats, prior: JointPrior) -> Floats:
    """(k size + k, k size + k): minus the second derivatives of the log posterior."""
    k, size = len(found.shares), family.size
    H = regular_information(family, found, count)
    item = np.arange(len(family.scores(found.states[0])))
    for g in range(k):
        for h in range(k):
            H[g * size + item, h * size + item] -= prior.pull(k)
    return H


def uncertainty_of_widths(
    family: FamilyWithPrior, found: MixtureFit, count: Floats, prior: JointPrior, tol: float, covariance: Floats
) -> Floats:
    """(k size + k, 2): how far the unknowns move with one standard error of the logarithm of each width.

    That error is 1 / sqrt(2 n), n being how many numbers the width is learned from: of those it describes, what the
    data and not the prior say.  ``covariance`` is the inverse of the information.
    """
    scores = _scores(family, found)
    k, n = scores.shape
    own = _covariances(covariance, scores, family.size)
    middle = own.mean(axis=(0, 1))
    known = (
        n - float(middle.sum()) / (prior.common**2 + prior.apart**2 / k),
        (k - 1) * n - float((np.trace(own) - k * middle).sum()) / prior.apart**2,
    )
    moves = []
    for name, amount in zip(JointPrior._fields, known):
        ends = [
            joint_maximum(family, count, found.shares, found.states, prior._replace(**{name: width}), tol)
            for width in getattr(prior, name) * np.exp([-STEP, STEP])
        ]
        low, high = (_unknowns(family, end) for end in ends)
        moves.append((high - low) / (2 * STEP * math.sqrt(2 * max(amount, 1.0))))
    return np.array(moves).T


def _unknowns(family: FamilyWithPrior, found: MixtureFit) -> Floats:
    """(k size + k,): the parameters of each group in turn, then the logits of the shares."""
    logits = bounded_log(found.shares)
    return np.concatenate([*(family.vector(state) for state in found.states), logits - logits.mean()])


def _scores(family: FamilyWithPrior, found: MixtureFit) -> Floats:
    """(k, items)."""
    return np.array([family.scores(state) for state in found.states])


def _covariances(C: Floats, scores: Floats, size: int) -> Floats:
    """(k, k, items): covariances of the ``scores`` (k, items) of each item in two groups."""
    k, n = scores.shape
    at = np.arange(k)[:, None] * size + np.arange(n)
    return np.asarray(C[at[:, None], at[None]])


def _widths(square: Floats) -> JointPrior:
    """The widths from expected products (k, k, items) of an item's scores in two groups."""
    k = len(square)
    middle = square.mean(axis=(0, 1))
    apart = float((np.trace(square) - k * middle).mean()) / (k - 1)
    common = float(middle.mean()) - apart / k
    low, high = NARROWEST**2, WIDEST_PRIOR**2
    return JointPrior(math.sqrt(min(max(common, low), high)), math.sqrt(min(max(apart, low), high)))


def _ascent(H: Floats, slope: Floats) -> Floats:
    """A Newton step; where the objective is not concave, each direction goes up by its curvature without the sign."""
    try:
        return np.asarray(inverse_of(H.copy()) @ slope)
    except np.linalg.LinAlgError:
        value, vector = np.linalg.eigh(H)
        return np.asarray(vector @ ((vector.T @ slope) / np.maximum(np.abs(value), FLATTEST)))


def _move(family: FamilyWithPrior, found: MixtureFit, count: Floats, step: Floats) -> MixtureFit | None:
    """The groups and shares a step away; None if there are none."""
    k, size = len(found.shares), family.size
    states: list[Any] = []
    for g, state in enumerate(found.states):
        vector = family.vector(state)
        assert vector is not None
        states.append(family.from_vector(vector + step[g * size : (g + 1) * size], state))
    if any(state is None for state in states) or not np.isfinite(step).all():
        return None
    logit = bounded_log(found.shares) + step[k * size :]
    shares = np.exp(logit - logsumexp(logit))
    return evaluate(family, count, shares, states)
