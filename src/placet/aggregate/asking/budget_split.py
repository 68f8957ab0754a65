"""A budget split between sources: how many votes of whom, about which pairs, settle the most.

Source k answers by scores of its own, u_k = a_k theta + e_k with e_k ~ N(0, v_k^2) (`placet.aggregate.sources`), the
target by theta.  At the fit all scores are jointly normal, and n votes of source k about i and j observe
c = u_ki - u_kj with precision n h, h the Fisher information of a vote.  A difference d = theta_p - theta_q then loses

    Cov(d, c)^2 n h / (1 + n h Var c)

of its variance, and with endless votes Cov(d, c)^2 / Var c.  If nothing else is known about d, which then has the
variance 2 w^2, that leaves 2 r^2 / (1 + r^2 / w^2) with the width r = v_k / a_k, however many votes the judge has.
What is spent next is what lowers the expected doubt of the open differences most, for its price: p (1 - p), p the
probability that d > 0, summed over them (`order_variance_fall`), times the probability that the source is related to
theta at all.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from placet.aggregate.result.uncertainty import order_variance_fall
from placet.aggregate.sources.source_fit import SourceFit
from placet.aggregate.sources.source_likelihood import VoteLikelihood
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_square
from placet.losses.pairwise import TIES, outcome_probabilities

STEPS = 200
"""The budget is spent in steps of at most this part of it, or of one vote."""

SLOPE_STEP = 1e-4
SURELY_UNRELATED = 0.5


class PricedSource(NamedTuple):
    """What a vote of one source costs; its number among the sources but the target, None for the target; the
    ``information`` of one vote about each open difference, and the probability that it is ``related`` to the target.
    """

    number: int | None
    price: float
    information: Floats
    related: float


def sources_to_ask(
    fit: SourceFit, others: Sequence[Hashable], prices: Mapping[Hashable, float], high: Ints, low: Ints
) -> list[PricedSource]:
    """The sources that have a price, with what one of their votes says about each pair."""
    found = []
    for name, price in prices.items():
        k = others.index(name) if name in others else None
        related = 1.0 if k is None else 1 - float(fit.unrelated[k])
        found.append(PricedSource(k, price, _information(fit, k, high, low), related))
    return found


def _information(fit: SourceFit, k: int | None, high: Ints, low: Ints) -> Floats:
    """Fisher information of one vote of a source about its own difference of each pair."""
    likelihood: Any = fit.joint.target if k is None else fit.joint.others[k]
    x = fit.joint.of_target(fit.x) if k is None else fit.joint.own(fit.x, k)
    own = fit.mean * (1.0 if k is None else fit.widths.a[k])  # what is expected of items it has not seen
    own[likelihood.index] = x[: len(likelihood.index)]
    family, tie = TIES["none"], -np.inf
    if isinstance(likelihood, VoteLikelihood):
        family, tie = likelihood.counts.model, likelihood.tie(x)
    gap, total = own[high] - own[low], np.zeros(len(high))
    sides = [outcome_probabilities(gap + step, family, tie) for step in (-SLOPE_STEP, SLOPE_STEP)]
    for before, after in zip(*sides):
        middle = (before + after) / 2
        slope = (after - before) / (2 * SLOPE_STEP)
        total += np.divide(slope**2, middle, out=np.zeros_like(gap), where=middle > 0)
    return total


def difference_covariance(fit: SourceFit, asked: Sequence[PricedSource], high: Ints, low: Ints) -> Floats:
    """Covariance of the differences of theta, and then of those of each source asked: (1 + sources) x pairs, square.

    In units of the priors, theta / w and e_k / v_k, the precision is 1 plus what the votes say, so it may be inverted
    for any width, 0 and infinity included.  A source that is more likely unrelated than not says nothing.
    """
    (w, scale, v), n = fit.widths, fit.joint.n
    a = np.where(fit.unrelated < SURELY_UNRELATED, scale, 0.0)
    size = n * (1 + len(v))
    refuse_square(size, "the scores of all sources", "ask about fewer items", 3.0)
    S = np.eye(size)
    S[:n, :n] += w * w * fit.evidence.base
    for k, one in enumerate(fit.evidence.sources):
        L = (one.vectors * one.values) @ one.vectors.T
        shared, own = one.items, n * (1 + k) + one.items
        S[np.ix_(shared, shared)] += (a[k] * w) ** 2 * L
        S[np.ix_(own, own)] += v[k] ** 2 * L
        S[np.ix_(shared, own)] += a[k] * w * v[k] * L
        S[np.ix_(own, shared)] += a[k] * w * v[k] * L
    D, column = len(high), np.arange(len(high))
    F = np.zeros((size, D * (1 + len(asked))))
    for block, number in enumerate([None, *(one.number for one in asked)]):
        at = block * D + column
        F[high, at] = w * (1.0 if number is None else a[number])
        if number is not None:
            F[n * (1 + number) + high, at], F[n * (1 + number) + low, at] = v[number], -v[number]
        F[low, at] = -F[high, at]
    half = solve_triangular(cholesky(S, lower=True), F, lower=True)
    return np.asarray(half.T @ half)


def split(gap: Floats, covariance: Floats, asked: Sequence[PricedSource], budget: float) -> Ints:
    """(sources, pairs): the votes to ask for, greedily by the fall of doubt for its price, until no vote can be paid.

    ``gap`` (pairs,): the differences as they are known now; ``covariance``: see `difference_covariance`; changed.
    """
    D, votes = len(gap), np.zeros((len(asked), len(gap)), np.int64)
    first = np.maximum(np.diag(covariance)[:D].copy(), 1e-300)
    left = budget * (1 + 1e-12)  # what adds up to the budget but for rounding may be paid
    while True:
        best, choice = 0.0, (0, 0, 0)
        known = first - np.diag(covariance)[:D]
        already = order_variance_fall(gap, first, known)
        for s, one in enumerate(asked):
            count = int(min(max(budget / (STEPS * one.price), 1.0), left / one.price))
            if not count:
                continue
            own = slice((1 + s) * D, (2 + s) * D)
            strength = count * one.information
            shrink = strength / (1 + strength * np.diag(covariance)[own])
            learned = covariance[:D, own] ** 2 * shrink
            fall = order_variance_fall(gap[:, None], first[:, None], known[:, None] + learned) - already[:, None]
            gain = one.related * fall.sum(axis=0) / (count * one.price)
            if one.related >= SURELY_UNRELATED and gain.max() > best:
                best, choice = float(gain.max()), (s, int(gain.argmax()), count)
        s, pair, count = choice
        if not count:
            return votes
        votes[s, pair] += count
        left -= count * asked[s].price
        at = (1 + s) * D + pair
        strength = count * asked[s].information[pair]
        column = covariance[:, at].copy()
        covariance -= np.outer(column, column) * (strength / (1 + strength * column[at]))
