"""Expectation maximization for mixtures of one family, from several starts.

Every round first assigns each voter to the groups in proportion to share_k p_k(voter), then fits each group to the
voters with these weights.  The objective, the sum over voters of count * log sum_k share_k p_k(voter) plus the log
priors of the groups, never decreases: a fit is accepted only if it is no worse.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import logsumexp

from placet.aggregate.mixture.voters import Family, Voters, bounded_log, seeding_table
from placet.data.arrays import Floats, Ints

SHORT, ROUGH = 20, 1e-5
"""Maximum rounds of a short run, and its tolerance per voter; the best two runs are continued to convergence."""

KEPT_STARTS = 2
SURE = 0.9
"""Initial membership of a voter in its assigned group, apart from an equal share of the rest."""


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """Result: shares (k,) and states of the groups, membership (voters, k), log likelihood, objective per round."""

    shares: Floats
    states: list[Any]
    membership: Floats
    log_likelihood: float
    trace: tuple[float, ...]
    converged: bool

    @property
    def objective(self) -> float:
        return self.trace[-1]


def responsibilities(family: Family, shares: Floats, states: list[Any]) -> tuple[Floats, Floats]:
    """Membership (voters, k) by Bayes' rule, and the log likelihood (voters,) under the mixture.

    Membership is share_k p_k(voter) divided by its sum over k; for a voter without data, the shares themselves.
    """
    joint = np.stack([family.log_likelihood(state) for state in states], axis=1) + bounded_log(shares)
    total = logsumexp(joint, axis=1)
    return np.exp(joint - total[:, None]), total


def shares_of(count: Floats, membership: Floats) -> Floats:
    """The fraction (k,) of all voters in each group."""
    total = float(count.sum())
    k = membership.shape[1]
    return count @ membership / total if total > 0 else np.full(k, 1 / k)


def ascend(
    family: Family,
    count: Floats,
    shares: Floats,
    states: list[Any],
    max_iter: int,
    tol: float,
    trace: tuple[float, ...] = (),
) -> MixtureFit:
    """Run EM rounds until the objective increases by at most ``tol`` per voter.

    After every two rounds an extrapolated step is tried (Varadhan and Roland, Simple and globally convergent methods
    for accelerating the convergence of any EM algorithm, 2008), and accepted only if it increases the objective.
    """
    close = tol * max(float(count.sum()), 1.0)
    point = evaluate(family, count, shares, states)
    rounds, converged = [*trace, point.objective], False
    path = [point]
    for _ in range(max_iter):
        columns = point.membership.T
        states = [family.improve(count * column, state) for column, state in zip(columns, point.states)]
        new = evaluate(family, count, shares_of(count, point.membership), states)
        path.append(new)
        if len(path) == 3:
            far = _extrapolate(family, path)
            tried = None if far is None else evaluate(family, count, *far)
            new = new if tried is None or not tried.objective > new.objective else tried
            path = [new]
        rise, point = new.objective - point.objective, new
        rounds.append(point.objective)
        if rise <= close:
            converged = True
            break
    return replace(point, trace=tuple(rounds), converged=converged)


def evaluate(family: Family, count: Floats, shares: Floats, states: list[Any]) -> MixtureFit:
    """The point with these shares and states: memberships, log likelihood and objective."""
    membership, each = responsibilities(family, shares, states)
    value = float(count @ each)
    objective = value + sum(map(family.log_prior, states))
    return MixtureFit(shares, states, membership, value, (objective,), False)


def _extrapolate(family: Family, path: list[MixtureFit]) -> tuple[Floats, list[Any]] | None:
    """Shares and states extrapolated from three points; None if states are not vectors or steps do not lengthen."""
    points = []
    for one in path:
        vectors = [family.vector(state) for state in one.states]
        if any(vector is None for vector in vectors):
            return None
        points.append(np.concatenate([bounded_log(one.shares), *vectors]))
    r, v = points[1] - points[0], points[2] - 2 * points[1] + points[0]
    size = float(np.linalg.norm(v))
    length = float(np.linalg.norm(r)) / size if size > 0 else 1.0
    if length <= 1.0:
        return None
    y = points[0] + 2 * length * r + length**2 * v
    k = len(path[0].shares)
    states = [family.from_vector(x, state) for x, state in zip(np.split(y[k:], k), path[2].states)]
    if any(state is None for state in states) or not np.isfinite(y).all():
        return None
    return np.exp(y[:k] - logsumexp(y[:k])), states


def run_from(family: Family, count: Floats, membership: Floats, max_iter: int, tol: float) -> MixtureFit:
    """Run EM from an initial membership (voters, k)."""
    weights = [count * column for column in membership.T]
    states = [family.improve(weight, family.start(weight)) for weight in weights]
    return ascend(family, count, shares_of(count, membership), states, max_iter, tol)


def best_of_starts(
    family: Family, voters: Voters, count: Floats, k: int, restarts: int, max_iter: int, tol: float, random_state: int
) -> MixtureFit:
    """The best of several starts: short runs, of which the best two are continued to convergence."""
    if k == 1:
        return run_from(family, count, np.ones((len(count), 1)), max_iter, tol)
    runs = [
        run_from(family, count, m, SHORT, max(tol, ROUGH))
        for m in first_memberships(voters, count, k, restarts, random_state)
    ]
    runs.sort(key=lambda run: -run.objective)
    ends = [ascend(family, count, run.shares, run.states, max_iter, tol, run.trace[:-1]) for run in runs[:KEPT_STARTS]]
    return max(ends, key=lambda run: run.objective)


def first_memberships(voters: Voters, count: Floats, k: int, restarts: int, random_state: int) -> Iterator[Floats]:
    """Yield starts: alternately k-means clusters of the voters' places and groups around k random voters.

    Neither depends on the order of the ballots or on the names and order of the items: voters are first sorted into a
    canonical order.
    """
    from sklearn.cluster import KMeans  # slow import (about a second)

    table, order = in_own_order(seeding_table(voters))
    rng = np.random.default_rng(random_state)
    weight = count[order]
    usable = np.flatnonzero((weight > 0) & (np.diff(table.indptr) > 0))
    for start in range(restarts):
        label = np.zeros(len(order), np.int64)
        state = int(rng.integers(2**31))
        if len(usable) > k and start % 2 == 0:
            means = KMeans(k, n_init=1, max_iter=20, random_state=state)
            label[usable] = means.fit_predict(table[usable], sample_weight=weight[usable])
        elif len(usable) > k:
            chosen = rng.choice(usable, k, replace=False, p=weight[usable] / weight[usable].sum())
            label[usable] = np.asarray((table[usable] @ table[chosen].T).todense()).argmax(axis=1)
        else:
            label = rng.integers(k, size=len(order))
        membership = np.full((len(order), k), (1 - SURE) / k)
        membership[order, label] += SURE
        yield membership


def in_own_order(table: csr_matrix) -> tuple[csr_matrix, Ints]:
    """The table in a canonical order that depends only on its entries, and the row numbers in that order.

    Columns are sorted by their totals, then rows by their entries, so that only equal rows, or columns with equal
    totals, keep their original order.
    """
    total, square = (np.asarray(x.sum(axis=0)).ravel() for x in (table, table.multiply(table)))
    columns = np.lexsort((np.round(square, 9), np.round(total, 9)))
    inner = csr_matrix(table[:, columns])
    rng = np.random.default_rng(0)
    keys = [np.round(inner @ rng.standard_normal(inner.shape[1]), 9) for _ in range(2)]
    order = np.lexsort(keys).astype(np.int64)
    return csr_matrix(inner[order]), order
