"""Multinomial preferences with a variance for every item: joint fit of scores and variances, and standard errors.

u_ij = (s_i - s_j) / (gamma_i + gamma_j) with gamma = e^beta / 2, so that beta = 0 is the model without variances.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from placet.aggregate.likelihood.information import with_mean_zero
from placet.aggregate.mpm.preference_errors import Errors, error_notes
from placet.aggregate.mpm.preference_likelihood import AGENTS_AT_ONCE, PreferenceFit, Preferences
from placet.data.arrays import Floats, Ints, rows_of
from placet.data.breaking import strength_values
from placet.data.engines.memory import refuse_square
from placet.kernels.aggregate import multinomial_preferences as kernels
from placet.optim import Fit, lbfgs, newton
from placet.threads import map_ordered

MOST_DENSE = 2000
"""Largest number of items for which Newton's method with a dense Hessian is used; beyond, L-BFGS."""


@dataclass(frozen=True)
class PairTable:
    """The preferences of one instance, pair by pair: ``net`` (M, M) is sum_n t_n (C_n(i, j) - C_n(j, i)).

    Groups of agents with adherences ``t`` have ``total`` preferences.  x = (s, beta) has a normal prior with mean 0
    and precisions ``precision`` (2 M,).  Values are per preference.
    """

    net: Floats
    t: Floats
    total: Floats
    precision: Floats

    @property
    def unit(self) -> float:
        return float(self.total.sum())

    def value(self, x: Floats) -> tuple[float, Floats]:
        """Negative log posterior and its gradient, with pairs divided among threads.  O(groups M^2)."""
        M = len(self.net)
        s, gamma = x[:M], gamma_of(x[M:])
        cuts = row_blocks(M)
        share = partial(map_ordered, n=len(cuts) - 1)
        shift = max(share(lambda k: kernels.largest_gap(s, gamma, cuts[k], cuts[k + 1])), default=0.0)

        def rows(k: int) -> Floats:
            out = np.zeros((len(self.t) + 1, 2 * M + 1))
            kernels.variance_rows(s, gamma, self.net, self.t, shift, cuts[k], cuts[k + 1], out)
            return out

        sums = np.sum(share(rows), axis=0)
        Z = sums[:-1, -1]
        value = float(self.total @ (np.log(Z) + self.t * shift)) - sums[-1, -1]
        gradient = (self.total / Z) @ sums[:-1, :-1] - sums[-1, :-1]
        penalty = self.precision * x
        return (value + 0.5 * float(penalty @ x)) / self.unit, (gradient + penalty) / self.unit

    def hessian(self, x: Floats) -> tuple[Floats, Floats]:
        """Hessian (2 M, 2 M) of `value`, and for every group the gradient (2 M,) of log Z.  O(groups M^2).

        With r_ij the first and a_ij the second derivative in u_ij, every pair adds a grad u grad u' + r u'', and every
        group -T grad log Z grad log Z'.
        """
        M = len(self.net)
        s, gamma = x[:M], gamma_of(x[M:])
        d = gamma[:, None] + gamma
        u = (s[:, None] - s) / d
        top = np.abs(u).max()
        a, r, slopes = np.zeros((M, M)), -self.net / self.unit, np.empty((len(self.t), 2 * M))
        for k, t in enumerate(self.t):
            e = np.exp(t * (u - top))
            np.fill_diagonal(e, 0.0)
            e /= e.sum()
            both, lead = t * t * (e + e.T), t * (e - e.T)
            slopes[k] = np.concatenate([(lead / d).sum(axis=1), -gamma * (lead * u / d).sum(axis=1)])
            a += (self.total[k] / self.unit) * both
            r += (self.total[k] / self.unit) * lead
        square = d * d
        H = np.empty((2 * M, 2 * M))
        ss, sb, bb = a / square, (a * u + r) / square, u * (a * u + 2 * r) / square
        H[:M, :M] = np.diag(ss.sum(axis=1)) - ss
        H[:M, M:] = -np.diag(gamma * sb.sum(axis=1)) - sb * gamma
        H[M:, :M] = H[:M, M:].T
        own = gamma**2 * bb.sum(axis=1) - gamma * (r * u / d).sum(axis=1)
        H[M:, M:] = np.diag(own) + gamma[:, None] * bb * gamma
        H -= slopes.T @ (self.total[:, None] / self.unit * slopes)
        H[np.arange(2 * M), np.arange(2 * M)] += self.precision / self.unit
        if self.precision[0] == 0:  # nothing else fixes the common shift of all scores
            H[:M, :M] += np.trace(H[:M, :M]) / M**2
        return H, slopes


def minimize(pairs: PairTable, x: Floats, max_iter: int, tol: float) -> Fit:
    """Minimize by damped Newton's method with a dense Hessian up to 2,000 items, and by L-BFGS beyond."""
    if len(pairs.net) > MOST_DENSE:
        return lbfgs(pairs.value, x, tol=tol, max_iter=20 * max_iter)
    return newton(pairs.value, damped_solver(lambda x: pairs.hessian(x)[0]), x, tol=tol, max_iter=max_iter)


def damped_solver(hessian: Callable[[Floats], Floats]) -> Callable[[Floats, Floats], Floats]:
    """A ``solve`` for `newton`: (H + mu diag(abs H))^-1 g, mu raised by factors of 4 until H is positive definite."""
    damping = 0.0

    def solve(x: Floats, gradient: Floats) -> Floats:
        nonlocal damping
        H = hessian(x)
        diagonal = np.abs(np.diag(H)) + 1e-12
        damping = damping / 16 if damping > 1e-4 else 0.0
        while True:
            try:
                return cho_solve(cho_factor(H + np.diag(damping * diagonal)), gradient)
            except np.linalg.LinAlgError:
                damping = max(4 * damping, 1e-4)

    return solve


def variances(
    p: Preferences,
    found: PreferenceFit,
    precision: float,
    width: float,
    max_iter: int,
    tol: float,
) -> tuple[PreferenceFit, Floats, list[PairTable | None]]:
    """Scores and variances of every instance at the adherences of ``found``, starting from its scores.

    The prior of beta has the weight of 1 / width^2 times the preferences that involve an average item, so an item with
    fewer preferences keeps its variance close to the others', however one-sided they are.
    """
    g = p.groups(found.adherence)
    s, gamma = found.s.copy(), np.full(len(p.item), 0.5)
    kept: list[PairTable | None] = []
    value, worst, steps, converged = 0.0, 0.0, 0, True
    for k, net in enumerate(net_tables(p, found.adherence)):
        own, mine = slice(p.bounds[k], p.bounds[k + 1]), slice(g.bounds[k], g.bounds[k + 1])
        M, T = len(net), float(g.total[mine].sum())
        if M < 2 or T == 0:
            kept.append(None)
            continue
        weights = np.repeat([precision, 2 * T / M / width**2], M)
        pairs = PairTable(net, g.adherence[mine], g.total[mine], weights)
        fit = minimize(pairs, np.concatenate([found.s[own], np.zeros(M)]), max_iter, tol)
        s[own], gamma[own] = fit.x[:M] - fit.x[:M].mean(), gamma_of(fit.x[M:])
        value, worst, steps = value + T * fit.value, max(worst, fit.grad_norm), max(steps, fit.n_iter)
        converged &= fit.converged
        kept.append(pairs)
    message = f"largest gradient {worst:.1e} for each preference after {steps} steps with variances"
    return (
        replace(found, s=s, value=value, grad_norm=worst, n_iter=steps, converged=converged, message=message),
        gamma,
        kept,
    )


def variance_errors(
    p: Preferences,
    found: PreferenceFit,
    gamma: Floats,
    pairs: list[PairTable | None],
    stderr: str,
) -> Iterator[Errors]:
    """Errors of the scores of every instance when variances are estimated too: blocks of the joint sandwich."""
    for k, own_pairs in enumerate(pairs):
        own = slice(p.bounds[k], p.bounds[k + 1])
        M, units = own.stop - own.start, p.n_units(k)
        if own_pairs is None:
            yield Errors(None, None, [])
            continue
        if M > MOST_DENSE:
            yield Errors(None, None, [])
            continue
        refuse_square(2 * M, "the information of scores and variances", "take fewer items, or stderr=None")
        H, slopes = own_pairs.hessian(np.concatenate([found.s[own], np.log(2 * gamma[own])]))
        try:
            inverse = np.asarray(cho_solve(cho_factor(H), np.eye(2 * M)))[:M]
        except np.linalg.LinAlgError:
            yield Errors(None, None, ["no standard errors: the information is not positive definite"])
            continue
        T = own_pairs.unit
        if stderr == "sandwich" and units > 1:
            J = np.zeros((2 * M, 2 * M))
            for rows in _gradients(p, k, found.s[own], gamma[own], found.adherence, own_pairs, slopes):
                J += (rows / T).T @ (rows / T)
            J *= units / (units - 1)
            J[np.arange(M), np.arange(M)] += own_pairs.precision[:M] / T / T
            covariance = inverse @ J @ inverse.T
        else:
            covariance = inverse[:, :M] / T
        yield Errors(with_mean_zero(covariance, M), None, error_notes(p, stderr, units))


def _gradients(
    p: Preferences,
    k: int,
    s: Floats,
    gamma: Floats,
    adherence: Floats,
    pairs: PairTable,
    slopes: Floats,
) -> Iterator[Floats]:
    """Gradients (agents, 2 M) in (s, beta), in blocks of parts of instance k; divided by the root of counts."""
    r = p.data
    assert r is not None  # variances need the ballots, and are refused without them
    agent = np.arange(len(r)) if r.agent is None else r.agent
    value = strength_values(p.strength, r.tier, r.score)
    ballots = np.arange(len(r)) if r.instance is None else np.flatnonzero(r.instance == k)
    part = np.searchsorted(p.part_agent[p.part_bounds[k] : p.part_bounds[k + 1]], agent[ballots])
    order = np.argsort(part, kind="stable")
    ballots, part = ballots[order], part[order]
    parts = np.arange(p.part_bounds[k], p.part_bounds[k + 1])
    for first in range(0, len(parts), AGENTS_AT_ONCE):
        block = parts[first : first + AGENTS_AT_ONCE]
        mine = slice(*np.searchsorted(part, [first, first + len(block)]))
        rows, offsets = rows_of(r.offsets, ballots[mine])
        t = adherence[p.part_agent[block]]
        factor = r.weight[ballots[mine]] * adherence[agent[ballots[mine]]]
        out = p.total[block][:, None] * slopes[np.searchsorted(pairs.t, t)]
        columns = (p.entry[rows] - p.bounds[k], value[rows], r.tier[rows], offsets, part[mine] - first, factor)
        kernels.subtract_gradients(*columns, p.strength == "binary", s, gamma, out)
        yield out / np.sqrt(np.maximum(p.count[block], 1e-300))[:, None]


def net_tables(p: Preferences, adherence: Floats) -> Iterator[Floats]:
    """For every instance, the (M, M) matrix sum_n t_n (C_n(i, j) - C_n(j, i)).  O(pairs)."""
    r = p.data
    assert r is not None  # variances need the ballots, and are refused without them
    value = strength_values(p.strength, r.tier, r.score)
    agent = np.arange(len(r)) if r.agent is None else r.agent
    factor = r.weight * adherence[agent]
    code = np.zeros(len(r), np.int64) if r.instance is None else r.instance
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(len(p.instances) + 1))
    for k in range(len(p.instances)):
        ballots = order[starts[k] : starts[k + 1]]
        M = p.bounds[k + 1] - p.bounds[k]
        net = np.zeros((M, M))
        rows, offsets = rows_of(r.offsets, ballots)
        columns = (p.entry[rows] - p.bounds[k], value[rows], r.tier[rows], offsets, factor[ballots])
        kernels.net_table(*columns, p.strength == "binary", net)
        yield net


def gamma_of(beta: Floats) -> Floats:
    """e^beta / 2, clipped so that a step that overshoots stays finite until it is shortened."""
    return np.exp(np.clip(beta, -50.0, 50.0)) / 2


def row_blocks(M: int) -> Ints:
    """Boundaries of blocks of rows with about 100,000 pairs each."""
    pairs = np.concatenate([[0], np.cumsum(np.arange(M - 1, -1, -1))])
    return np.unique(np.append(np.searchsorted(pairs, np.arange(0, pairs[-1], 100_000)), M)).astype(np.int64)
