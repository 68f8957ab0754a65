"""Groups of choosers with coefficients of their own (latent classes), by expectation maximization.

A person n belongs to one group in all choices; with share_k of group k, the likelihood of the person's choices is
sum_k share_k prod_t P(choice t | coefficients of k).  Errors come from the observed information (Louis).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from placet.aggregate.mixture.em import KEPT_STARTS, ROUGH, SHORT, SURE, ascend, run_from
from placet.aggregate.mixture.mixture_errors import mixture_covariance
from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints
from placet.io.surveys.choice_tables import ChoiceTable
from placet.rank.linear.coefficients import CoefficientTable, WithError, inverse
from placet.stats import normal_quantile

MAX_ITER, TOL = 5000, 1e-12
NEWTON_STEPS, HALVINGS = 2, 30
"""Newton steps of a group in each round, which start from those before, and how often one may be halved."""

LEAST_CURVATURE = 1e-8
"""Least curvature of a group, relative to that of all choosers: keeps the steps of a group without choosers finite."""


@dataclass(frozen=True, eq=False)
class LatentClasses:
    """Groups of choosers, the largest first: shares, coefficients, and membership (persons, groups)."""

    shares: tuple[WithError, ...]
    coefficients: tuple[CoefficientTable, ...]
    membership: Floats
    log_likelihood: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.shares)


class ChoiceFamily:
    """Conditional logit on the choices of all persons, as a family of `placet.aggregate.mixture`; a state is w (p,).

    Thousands of small fits are made of it, so that choices are plain softmaxes here, each of one chosen row.
    """

    def __init__(self, rows: Queries, agent: Ints, unit: Floats) -> None:
        self.X, self.agent, self.unit = rows.X / unit, agent, unit
        self.first, self.query, self.weight = rows.offsets[:-1], rows.query, rows.weight
        self.chosen = np.flatnonzero(rows.grade > 0)
        self.n_agents = int(agent.max(initial=-1)) + 1
        self.size = self.n_parameters = self.X.shape[1]
        self.softness = LEAST_CURVATURE * self.information(np.ones(self.n_agents), np.zeros(self.size))

    def start(self, weight: Floats) -> Floats:
        """Coefficients of 0."""
        return np.zeros(self.size)

    def improve(self, weight: Floats, state: Floats) -> Floats:
        """Newton steps, halved while the weighted likelihood is lower."""
        value = float(weight @ self.log_likelihood(state))
        for _ in range(NEWTON_STEPS):
            gradient = np.asarray(weight @ self._gradients(state))
            step = np.linalg.solve(self.information(weight, state) + self.softness, gradient)
            for _ in range(HALVINGS):
                new = float(weight @ self.log_likelihood(state + step))
                if new >= value:
                    break
                step /= 2
            else:
                return state
            state, value = state + step, new
        return state

    def log_likelihood(self, state: Floats) -> Floats:
        """(persons,): log probability of each person's choices."""
        return np.bincount(self.agent, self.weight * self._choices(state)[0], self.n_agents).astype(np.float64)

    def log_prior(self, state: Floats) -> float:
        """There is no prior."""
        return 0.0

    def gradient(self, state: Floats) -> csr_matrix:
        """(persons, p): derivatives of the log likelihoods."""
        return csr_matrix(self._gradients(state))

    def information(self, weight: Floats, state: Floats) -> Floats:
        """(p, p): minus the second derivatives of the weighted log likelihood."""
        _, p, mean = self._choices(state)
        each = self.weight * weight[self.agent]
        return np.asarray(self.X.T @ ((each[self.query] * p)[:, None] * self.X) - mean.T @ (each[:, None] * mean))

    def _choices(self, state: Floats) -> tuple[Floats, Floats, Floats]:
        """Log probability (choices,) of what was chosen, probabilities (rows,), and mean columns (choices, p)."""
        s = self.X @ state
        s -= np.maximum.reduceat(s, self.first)[self.query]
        p = np.exp(s)
        total = np.add.reduceat(p, self.first)
        p /= total[self.query]
        return s[self.chosen] - np.log(total), p, np.add.reduceat(p[:, None] * self.X, self.first, axis=0)

    def _gradients(self, state: Floats) -> Floats:
        g = self.weight[:, None] * (self.X[self.chosen] - self._choices(state)[2])
        return np.stack([np.bincount(self.agent, column, self.n_agents) for column in g.T], axis=1)

    def vector(self, state: Floats) -> Floats:
        """The coefficients."""
        return state

    def from_vector(self, x: Floats, state: Any) -> Floats:
        """The coefficients."""
        return x


def fit_classes(
    rows: Queries, table: ChoiceTable, pooled: Floats, k: int, level: float, restarts: int, random_state: int
) -> LatentClasses:
    """Fit ``k`` groups from several starts: persons divided by directions of their gradients at the ``pooled`` fit."""
    if k < 1 or restarts < 1:
        raise ValueError(f"classes ({k}) and restarts ({restarts}) must be at least 1")
    agent = np.arange(len(table)) if table.agent is None else table.agent
    count, notes = _counts_of_agents(table, agent)
    if len(count) <= k:
        raise DataError(f"{len(count)} persons are too few for {k} groups; take fewer")
    own = rows if table.agent is not None else replace(rows, weight=np.ones(len(rows)))  # the weight is in the count
    unit = rows.X.std(axis=0)
    family: Any = ChoiceFamily(own, agent, unit)
    runs = [run_from(family, count, m, SHORT, ROUGH) for m in _starts(family, pooled * unit, k, restarts, random_state)]
    runs.sort(key=lambda run: -run.objective)
    ends = [ascend(family, count, run.shares, run.states, MAX_ITER, TOL) for run in runs[:KEPT_STARTS]]
    best = max(ends, key=lambda run: run.objective)
    order = np.argsort(-best.shares, kind="stable")
    states = [best.states[g] for g in order]
    best = replace(best, shares=best.shares[order], states=states, membership=best.membership[:, order])
    if not best.converged:
        notes.append(f"the groups still changed after {MAX_ITER} rounds")
    of_groups, of_shares, said = mixture_covariance(family, best, count)
    if of_groups is None or of_shares is None:
        raise DataError(
            f"{k} groups are not determined by these choices: the information matrix is singular; take fewer groups or "
            "columns"
        )
    names = tuple(rows.features or range(rows.n_features))
    found = [
        CoefficientTable(names, state / family.unit, C / np.outer(family.unit, family.unit), "observed", level=level)
        for state, C in zip(best.states, of_groups)
    ]
    half = normal_quantile((1 + level) / 2)
    errors = np.sqrt(np.maximum(np.diag(of_shares), 0.0))
    shares = [
        WithError(float(s), float(e), float(s - half * e), float(s + half * e)) for s, e in zip(best.shares, errors)
    ]
    return LatentClasses(tuple(shares), tuple(found), best.membership, best.log_likelihood, (*notes, *said))


def _counts_of_agents(table: ChoiceTable, agent: Ints) -> tuple[Floats, list[str]]:
    """How often each person counts (weights of choices without persons are counts of choosers), and notes."""
    if table.agent is not None:
        return np.ones(len(table.agents)), []
    note = "no column says who chose (agent=): each choice is taken for a person of its own"
    return table.weight.copy(), [note]


def _starts(family: ChoiceFamily, pooled: Floats, k: int, restarts: int, random_state: int) -> list[Floats]:
    """Memberships (persons, k): each person in the group whose random direction is nearest to its own gradient."""
    rng = np.random.default_rng(random_state)
    own = family.gradient(pooled).toarray()
    whitened = inverse(own.T @ own)
    if whitened is not None:
        own = own @ np.linalg.cholesky(whitened)
    found = []
    for _ in range(restarts if k > 1 else 1):
        label = np.argmax(own @ rng.standard_normal((own.shape[1], k)), axis=1)
        membership = np.full((len(own), k), (1 - SURE) / k)
        membership[np.arange(len(own)), label] += SURE
        found.append(membership)
    return found
