"""Standard errors of multinomial preference scores, from the information or from a sandwich clustered by agent.

The gradient of agent n is g_n = T_n grad log Z(t_n) - t_n net_n; the first term is one vector per distinct adherence
and the second is sparse.  The information is a diagonal plus three outer products per adherence.  So with few distinct
adherences the sandwich H^-1 (sum_n g_n g_n' + prior) H^-1 takes O(rows + M^2), or O(rows) for its diagonal.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from placet.aggregate.likelihood.information import (
    LEAST_PRECISION,
    WAY_OUT,
    WHAT,
    inverse_of,
    outer_products,
    with_mean_zero,
)
from placet.aggregate.mpm.preference_likelihood import PreferenceFit, Preferences, Votes
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_square
from placet.kernels.aggregate import multinomial_preferences as kernels
from placet.optim import cg

MOST_GROUPS = 64
"""Largest number of distinct adherences for which standard errors of many items are computed rather than sampled."""

FEW_GROUPS = 1 / 12
"""Largest ratio of distinct adherences to items for which the low-rank structure of the information is used."""

SMALL = 128
"""Largest number of items for which a matrix is inverted in a single thread, to avoid contention in small instances."""

MOST_CORRELATIONS = 30_000_000
"""Entries of the covariances of all problems together: 240 MB."""

FEW_AGENTS = 10
ROUNDS = 64
"""Draws for sampled standard errors, which makes each accurate to about 9%."""


class Errors(NamedTuple):
    """Covariance (M, M) of mean-zero scores, or their standard errors (M,), or neither; and notes."""

    covariance: Floats | None
    stderr: Floats | None
    notes: list[str]


class Information(NamedTuple):
    """diag(diagonal) + U' middle U, per unit; the last row of U is ones, which fixes the common shift of all scores.

    The other rows are up, down and slope of every group, with slope scaled so that grad log Z = gradient_scale slope.
    """

    diagonal: Floats
    U: Floats
    middle: Floats
    gradient_scale: Floats

    @property
    def level(self) -> float:
        """Curvature in the direction of the common shift."""
        return float(self.middle[-1, -1]) * len(self.diagonal)

    def dense(self) -> Floats:
        return np.diag(self.diagonal) + self.U.T @ (self.middle @ self.U)

    def errors_of(
        self, sums: "tuple[Floats, Floats, Floats] | None", precision: float, unit: float, whole: bool
    ) -> tuple[Floats | None, Floats | None]:
        """The covariance if ``whole``, else standard errors; robust ones if ``sums`` over agents are given.

        The prior acts as one additional agent per item, with gradient sqrt(precision) at that item and T = 0.
        """
        V, inner = self.low_rank()
        M, level = len(self.diagonal), self.level + precision
        if sums is None:
            shift = 1 / (M * level)  # scores are relative: a common shift is not uncertain
            if whole:
                covariance = np.diag(1 / self.diagonal) - V.T @ inner @ V - shift
                return covariance / unit, None
            variance = 1 / self.diagonal - ((inner @ V) * V).sum(axis=0) - shift
            return None, np.sqrt(np.maximum(variance, 0.0) / unit)
        prior = sparse.csr_array(sparse.diags_array(np.full(M, np.sqrt(precision / unit))))
        own = structure_sums(prior, np.zeros((M, len(self.U))), self, whole)
        S, cross, square = (a + b for a, b in zip(sums, own))
        cross = cross / self.diagonal[:, None]
        shift = precision / unit / (M * level**2)
        if whole:
            mixed = cross @ V
            return S / self.diagonal / self.diagonal[:, None] - mixed - mixed.T + V.T @ square @ V - shift, None
        variance = S / self.diagonal**2 - 2 * (cross * V.T).sum(axis=1) + ((square @ V) * V).sum(axis=0) - shift
        return None, np.sqrt(np.maximum(variance, 0.0))

    def low_rank(self) -> tuple[Floats, Floats]:
        """V and inner such that the inverse is diag(1 / diagonal) - V' inner V."""
        V = self.U / self.diagonal
        inner = np.linalg.solve(np.eye(len(V)) + self.middle @ (V @ self.U.T), self.middle)
        return V, (inner + inner.T) / 2


def errors(
    p: Preferences | Votes, found: PreferenceFit, precision: float, stderr: str, learned: bool, rng: Any
) -> Iterator[Errors]:
    """Errors of the scores of every instance; ``learned``: adherences were fitted together with the scores."""
    most = most_correlated(np.diff(p.bounds))
    for k in range(len(p.instances)):
        s = found.s[p.bounds[k] : p.bounds[k + 1]]
        M, units = len(s), p.n_units(k)
        if M <= MOST_SIMULATED or units == 0:  # beyond, errors need no dense matrix
            refuse_square(M, WHAT, WAY_OUT)
        if M < 2:
            yield Errors(np.zeros((M, M)), None, [])
        elif units == 0:
            alone = (1 - 1 / M) / precision
            whole = (np.eye(M) - 1 / M) / precision if most >= M else None
            yield Errors(whole, None if most >= M else np.full(M, np.sqrt(alone)), [])
        else:
            robust = stderr == "sandwich" and units > 1
            notes = error_notes(p, stderr, units)
            profile = learned and not p.several and M <= MOST_SIMULATED
            if learned and not profile:
                notes.append("learned adherences are taken as known in standard errors")
            problem = _InstanceErrors(p, k, s, found.adherence, precision, robust, profile, units, most)
            covariance, errors = problem.errors(rng)
            if most < M <= MOST_SIMULATED:
                notes.append(f"more than {most} items, in {len(p.instances)} problems: errors are without correlations")
            if M > MOST_SIMULATED:
                how = "" if problem.structured else "sampled, and " if errors is not None else "not computed, and "
                notes.append(f"more than {MOST_SIMULATED} items: standard errors are {how}without correlations")
            yield Errors(covariance, errors, notes)


def most_correlated(sizes: Ints) -> int:
    """Items up to which a problem keeps the covariance of its scores, so that those of all problems fit in memory."""
    kept = sizes[sizes <= MOST_SIMULATED].astype(np.float64)
    if float(kept @ kept) <= MOST_CORRELATIONS:
        return MOST_SIMULATED
    return int(np.sqrt(MOST_CORRELATIONS / len(sizes)))


def error_notes(p: Preferences | Votes, stderr: str, units: float) -> list[str]:
    """Notes on how standard errors were computed, given the number of independent units."""
    votes = isinstance(p, Votes)
    unit = "agent" if p.named else "vote" if votes else "ballot"
    many = "" if votes and not p.named else "; their preferences are taken as independent of one another"
    if stderr == "observed":
        return [f"standard errors are from the information{many}"]
    if units <= 1:
        return [f"there is one {unit}, so standard errors are from the information{many}"]
    few = f", and {units:g} are few to tell" if units < FEW_AGENTS else ""
    return [f"standard errors allow for what preferences of one {unit} have in common (sandwich by {unit}){few}"]


class _InstanceErrors:
    """One instance: its information and the gradients of its agents, divided by ``unit``."""

    def __init__(
        self,
        p: Preferences | Votes,
        k: int,
        s: Floats,
        adherence: Floats,
        precision: float,
        robust: bool,
        profile: bool,
        units: float,
        most: int,
    ):
        self.p, self.k, self.s, self.t = p, k, s, adherence
        self.whole = len(s) <= most
        self.robust, self.profile = robust, profile
        self.factor = units / (units - 1) if robust else 1.0
        if isinstance(p, Votes):
            self.unit = max(p.unit, precision)
            self.precision = max(precision / self.unit, LEAST_PRECISION) if precision else 0.0
            self.structured = False
            return
        g = p.groups(adherence)
        own = slice(g.bounds[k], g.bounds[k + 1])
        self.group_adherence, total = g.adherence[own], g.total[own]
        self.unit = max(float(total.sum()), precision)
        self.precision = max(precision / self.unit, LEAST_PRECISION) if precision else 0.0
        self.group_total = total / self.unit
        self.group = g.of_part[p.part_bounds[k] : p.part_bounds[k + 1]] - g.bounds[k]
        few = FEW_GROUPS * len(s) > len(total) if len(s) <= MOST_SIMULATED else len(total) <= MOST_GROUPS
        self.structured = (few or p.parts is not None) and not profile

    def errors(self, rng: np.random.Generator) -> tuple[Floats | None, Floats | None]:
        """The covariance, or only standard errors if there are too many items for it."""
        if self.structured:
            return self._from_structure()
        if len(self.s) <= MOST_SIMULATED:
            covariance = self._from_matrices()
            return (covariance, None) if self.whole else (None, np.sqrt(np.maximum(np.diag(covariance), 0.0)))
        return None, self._sampled_errors(rng) if self.robust else None

    def _from_matrices(self) -> Floats:
        """H^-1, or H^-1 J H^-1 with J the sum of outer products of agents' gradients; O(M^3 + agents M^2)."""
        M = len(self.s)
        H, J = self._hessian(), np.zeros((M, M))
        if self.robust or self.profile:
            for block in self.p.gradients(self.k, self.s, self.t):
                t = self.t[block.agent]
                free = (t > 0) & (t < 1) & (block.curvature > 0)
                if self.robust:
                    J += _square(block.score / self.unit, np.ones(len(t)))
                if self.profile and free.any():
                    H -= _square(block.mixed[free] / self.unit, self.unit / block.curvature[free])
        inverse = kernels.inverse(H) if M <= SMALL else inverse_of(H)
        if self.robust:
            J *= self.factor
            J[np.arange(M), np.arange(M)] += self.precision / self.unit
            return with_mean_zero(inverse @ J @ inverse, M)
        return with_mean_zero(inverse, M) / self.unit

    def _hessian(self) -> Floats:
        if isinstance(self.p, Votes):
            H = self.p.hessian(self.s, self.t).toarray() / self.unit
            return H + self.precision * np.eye(len(H)) + np.trace(H) / len(H) ** 2
        return information(self.s, self.group_adherence, self.group_total, self.precision).dense()

    def _from_structure(self) -> tuple[Floats | None, Floats | None]:
        """The covariance, or standard errors, from the low-rank structure of the information."""
        H = information(self.s, self.group_adherence, self.group_total, self.precision)
        sums = None
        if self.robust:
            p: Any = self.p
            known = (H, self.group_adherence, self.unit, self.factor, self.whole)
            if p.parts is None:
                sums = agent_products(p, *known, self.k, self.group)
            else:
                sums = p.parts.sum(agent_products, *known, name="outer products")
        return H.errors_of(sums, self.precision, self.unit, self.whole)

    def _sampled_errors(self, rng: np.random.Generator) -> Floats:
        """Standard errors from x = H^-1 z, where z is drawn with covariance J + prior.  O(rounds x solves)."""
        M = len(self.s)
        times, diagonal = self._products()
        spread, Z = np.zeros(M), np.zeros((ROUNDS, M))
        for block in self.p.gradients(self.k, self.s, self.t):
            Z += rng.standard_normal((ROUNDS, block.score.shape[0])) @ (block.score / self.unit)
        Z *= np.sqrt(self.factor)
        Z += np.sqrt(self.precision / self.unit) * rng.standard_normal((ROUNDS, M))
        for z in Z:
            x = cg(times, z - z.mean(), rtol=1e-3, diagonal=diagonal, max_iter=1000)
            spread += (x - x.mean()) ** 2
        return np.sqrt(spread / ROUNDS)

    def _products(self) -> tuple[Any, Floats]:
        """A function that multiplies by the information, and its diagonal."""
        if isinstance(self.p, Votes):
            L = self.p.hessian(self.s, self.t) / self.unit
            diagonal = L.diagonal() + self.precision
            return lambda v: L @ v + self.precision * v, np.where(diagonal > 0, diagonal, 1.0)
        t, total, M = self.group_adherence, self.group_total, len(self.s)
        up, down, sums, out = np.empty((len(t), M)), np.empty((len(t), M)), np.empty((len(t), 3)), np.empty(M)
        kernels.scores_value(self.s, np.zeros(M), t, total, self.precision, up, down, sums, out)
        kernels.scores_diagonal(t, total, self.precision, up, down, sums, out)

        def times(v: Floats) -> Floats:
            product = np.empty(M)
            kernels.scores_hvp(v, t, total, self.precision, up, down, sums, product)
            return product

        return times, np.maximum(out, 1e-12)


def agent_products(
    p: Preferences,
    H: Information,
    t: Floats,
    unit: float,
    factor: float,
    whole: bool,
    k: int = 0,
    group: Ints | None = None,
) -> tuple[Floats, Floats, Floats]:
    """`structure_sums` over the agents of instance k, which are in groups with adherences ``t``; all in one by default.

    The gradients of the agents are E U - X.
    """
    parts = slice(p.part_bounds[k], p.part_bounds[k + 1])
    scale = np.sqrt(factor / np.maximum(p.count[parts], 1e-300)) / unit
    own = np.zeros(len(scale), np.int64) if group is None else group
    net = p.net[parts, p.bounds[k] : p.bounds[k + 1]]
    X = sparse.csr_array(sparse.diags_array(t[own] * scale) @ net)
    E = np.zeros((X.shape[0], len(H.U)))
    E[np.arange(len(own)), 2 * len(t) + own] = H.gradient_scale[own] * p.total[parts] * scale
    return structure_sums(X, E, H, whole)


def structure_sums(X: Any, E: Floats, H: Information, whole: bool) -> tuple[Floats, Floats, Floats]:
    """X'X (only its diagonal unless ``whole``), X'F and F'F for agents with gradients g = E U - X, where
    g H^-1 = F V - X / diagonal.  The sums are additive over agents.
    """
    V, inner = H.low_rank()
    F = E - (E @ (H.U @ V.T) - X @ V.T) @ inner
    if whole:
        S = outer_products(X.data, X.indices, X.indptr, np.ones(X.shape[0]), X.shape[1])
    else:
        S = np.asarray((X * X).sum(axis=0)).ravel()
    return S, np.asarray(X.T @ F), F.T @ F


def information(s: Floats, t: Floats, total: Floats, precision: float) -> Information:
    """The information of scores at group adherences ``t`` with ``total`` preferences.  O(groups M)."""
    M, G = len(s), len(t)
    x = t[:, None] * s
    up, down = np.exp(x - x.max(axis=1, keepdims=True)), np.exp(x.min(axis=1, keepdims=True) - x)
    A, B = up.sum(axis=1), down.sum(axis=1)
    Z = A * B - M * np.exp(x.min(axis=1) - x.max(axis=1))
    c = total * t**2 / Z
    slope = (up * B[:, None] - down * A[:, None]) / np.sqrt(Z)[:, None]
    diagonal = precision + (c * B) @ up + (c * A) @ down
    middle = np.zeros((3 * G + 1, 3 * G + 1))
    a, b, third = np.arange(G), np.arange(G, 2 * G), np.arange(2 * G, 3 * G)
    middle[a, b] = middle[b, a] = middle[third, third] = -c
    middle[-1, -1] = diagonal.mean() / M
    return Information(diagonal, np.concatenate([up, down, slope, np.ones((1, M))]), middle, t / np.sqrt(Z))


def _square(rows: Any, weight: Floats) -> Floats:
    """rows' diag(weight) rows, as a dense array."""
    if sparse.issparse(rows):
        return (rows.T @ sparse.diags_array(weight) @ rows).toarray()
    return rows.T @ (weight[:, None] * rows)
