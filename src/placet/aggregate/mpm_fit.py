"""Fitting the multinomial preference model: scores, adherences in turn with scores, variances, and covariances."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from placet.aggregate.mpm_data import Preferences, net_tables
from placet.aggregate.uncertainty import MOST_SIMULATED
from placet.data import DataError
from placet.data.arrays import Floats, Ints, offsets_from_sizes
from placet.kernels import mpm as kernels
from placet.optim import lbfgs
from placet.threads import map_ordered

ROUNDS = 200
"""Most rounds of scores and adherences in turn."""

SETTLED = 1e-5
"""Change of adherences in a round below which they have settled."""

ADHERENCE_CAP = 100.0
"""Largest adherence in a round, relative to the largest of the round before."""

MOST_GROUPS = 64
"""Different adherences up to which standard errors of many items are computed."""

SMALL = 128
"""Items up to which a table is inverted by one thread: small instances would only wait for each other's threads."""


@dataclass(frozen=True)
class Found:
    """Scores of all entries, adherence of all agents, and how they were got."""

    s: Floats
    adherence: Floats
    value: float
    grad_norm: float
    n_iter: int
    converged: bool
    message: str


@dataclass(frozen=True)
class Groups:
    """Agents of an instance put together by adherence: groups bounds[l]:bounds[l + 1] are those of instance l."""

    bounds: Ints
    adherence: Floats
    total: Floats


def groups(p: Preferences, adherence: Floats) -> Groups:
    """Parts of equal adherence in the same instance as one.  O(parts log parts)."""
    t = adherence[p.part_agent]
    order = np.lexsort((t, p.part_instance))
    inst, t, total = p.part_instance[order], t[order], p.total[order]
    new = np.ones(len(t), bool)
    new[1:] = (inst[1:] != inst[:-1]) | (t[1:] != t[:-1])
    number = np.cumsum(new) - 1
    counts = np.bincount(inst[new], minlength=len(p.instances))
    size = int(new.sum())
    return Groups(offsets_from_sizes(counts), t[new], np.bincount(number, total, size).astype(np.float64))


def scores(
    p: Preferences, adherence: Floats, precision: float, max_iter: int, tol: float, start: Floats | None = None
) -> Found:
    """Scores of every instance at given adherences, by Newton's method."""
    g = groups(p, adherence)
    net = np.bincount(p.entry, adherence[p.part_agent][p.row_part] * p.net, len(p.item)).astype(np.float64)
    if precision == 0:
        _refuse_infinite(p, g, net)
    s = np.zeros(len(p.item)) if start is None else start.copy()
    norm, steps = np.zeros(len(p.instances)), np.zeros(len(p.instances), np.int64)
    value = kernels.fit_scores(net, p.bounds, g.adherence, g.total, g.bounds, precision, s, max_iter, tol, norm, steps)
    worst = float(norm.max(initial=0.0))
    converged = bool(worst <= tol)
    message = f"largest gradient {worst:.1e} for each preference after {steps.max(initial=0)} Newton steps"
    return Found(
        s, adherence, value, worst, int(steps.max(initial=0)), converged,
        message if converged else message + f", above tol={tol:g}; raise max_iter",
    )  # fmt: skip


def learn(p: Preferences, precision: float, max_iter: int, tol: float) -> Found:
    """Scores and adherences in turn, each step the best given the other, until adherences settle; the largest is 1.

    Scores can be multiplied by what adherences are divided by, so the largest adherence is put to 1 after each round.
    """
    order = np.argsort(p.part_agent, kind="stable")
    offsets = np.searchsorted(p.part_agent[order], np.arange(p.n_agents + 1))
    instance, total = p.part_instance[order], p.total[order]
    t = np.ones(p.n_agents)
    found = scores(p, t, precision, max_iter, tol)
    change, rounds = np.inf, 0
    while change > SETTLED and rounds < ROUNDS:
        rounds += 1
        agreement = np.bincount(p.row_part, p.net * found.s[p.entry], len(p.total))[order].astype(np.float64)
        new = t.copy()
        kernels.fit_adherence(found.s, p.bounds, instance, total, agreement, offsets, ADHERENCE_CAP, new)
        top = float(new.max(initial=0.0))
        if top <= 0.0:
            raise DataError("no agent agrees with any order of the items; adherences cannot be learned from these data")
        change = float(np.abs(new / top - t).max(initial=0.0))
        t = new / top
        found = scores(p, t, precision, max_iter, tol, found.s * top)
    converged = found.converged and change <= SETTLED
    message = f"adherences moved by {change:.1e} in the last of {rounds} rounds; {found.message}"
    return replace(found, n_iter=rounds, converged=converged, message=message)


def variances(
    p: Preferences, found: Found, precision: float, spread: float, max_iter: int, tol: float
) -> tuple[Found, Floats]:
    """Scores and variances of every instance at given adherences, by L-BFGS from the scores without variances."""
    g = groups(p, found.adherence)
    s, gamma = found.s.copy(), np.ones(len(p.item))
    value, worst, steps = 0.0, 0.0, 0
    for k, net in enumerate(net_tables(p, found.adherence)):
        own, mine = slice(p.bounds[k], p.bounds[k + 1]), slice(g.bounds[k], g.bounds[k + 1])
        M = p.bounds[k + 1] - p.bounds[k]
        T = float(g.total[mine].sum())
        if M < 2 or T == 0:
            continue
        objective = partial(
            _over_pairs,
            net=net,
            adherence=g.adherence[mine],
            total=g.total[mine],
            precision=precision,
            spread=spread,
            unit=T,
        )
        fit = lbfgs(objective, np.concatenate([2 * found.s[own], np.zeros(M)]), tol=tol, max_iter=10 * max_iter)
        s[own], gamma[own] = fit.x[:M] - fit.x[:M].mean(), np.exp(fit.x[M:])
        value, worst, steps = value + T * fit.value, max(worst, fit.grad_norm), max(steps, fit.n_iter)
    message = f"largest gradient {worst:.1e} for each preference after {steps} steps with variances"
    converged = worst <= tol
    result = replace(found, s=s, value=value, grad_norm=worst, n_iter=steps, converged=converged, message=message)
    return result, gamma


def _over_pairs(
    x: Floats, net: Floats, adherence: Floats, total: Floats, precision: float, spread: float, unit: float
) -> tuple[float, Floats]:
    """Value and gradient by (s, beta) for each preference, the pairs shared among threads.  O(groups M^2)."""
    M = len(net)
    s, gamma = x[:M], np.exp(x[M:])
    cuts = _blocks(M)
    share = lambda f: map_ordered(f, len(cuts) - 1)  # noqa: E731
    shift = max(share(lambda k: kernels.largest_gap(s, gamma, cuts[k], cuts[k + 1])), default=0.0)

    def rows(k: int) -> Floats:
        out = np.zeros((len(adherence) + 1, 2 * M + 1))
        kernels.variance_rows(s, gamma, net, adherence, shift, cuts[k], cuts[k + 1], out)
        return out

    sums = np.sum(share(rows), axis=0)
    Z = sums[:-1, -1]
    value = float(total @ (np.log(Z) + adherence * shift)) - sums[-1, -1]
    grad = (total / Z) @ sums[:-1, :-1] - sums[-1, :-1]
    penalty = np.concatenate([np.full(M, precision), np.full(M, spread)]) * x
    return (value + 0.5 * float(penalty @ x)) / unit, (grad + penalty) / unit


def _blocks(M: int) -> Ints:
    """Rows cut so that each block has about 100,000 pairs."""
    pairs = np.concatenate([[0], np.cumsum(np.arange(M - 1, -1, -1))])
    return np.unique(np.append(np.searchsorted(pairs, np.arange(0, pairs[-1], 100_000)), M)).astype(np.int64)


def covariances(p: Preferences, found: Found, precision: float) -> Iterator[Any]:
    """For every instance the covariance of its scores, their standard errors beyond 4,096 items, or ``None``.

    The Hessian is a diagonal and three outer products for each group: O(M^3), or O(M groups^2) for standard errors.
    """
    g = groups(p, found.adherence)
    for k in range(len(p.instances)):
        own, mine = slice(p.bounds[k], p.bounds[k + 1]), slice(g.bounds[k], g.bounds[k + 1])
        yield _covariance(found.s[own], g.adherence[mine], g.total[mine], precision)


def _covariance(s: Floats, t: Floats, total: Floats, precision: float) -> Any:
    M = len(s)
    if M < 2:
        return np.zeros((M, M))
    if not total.sum() > 0:
        return (np.eye(M) - 1 / M) / precision
    x = t[:, None] * s
    up, down = np.exp(x - x.max(axis=1, keepdims=True)), np.exp(x.min(axis=1, keepdims=True) - x)
    A, B = up.sum(axis=1), down.sum(axis=1)
    Z = A * B - M * np.exp(x.min(axis=1) - x.max(axis=1))
    c = total * t**2 / Z
    slope = (up * B[:, None] - down * A[:, None]) / np.sqrt(Z)[:, None]
    diagonal = precision + (c * B) @ up + (c * A) @ down
    level = float(diagonal.mean())
    shift = 1 / (M * (level + precision))  # scores are relative: a common shift is no part of their uncertainty
    if M <= MOST_SIMULATED:
        cross = (up * c[:, None]).T @ down
        H = np.diag(diagonal) - cross - cross.T - (slope * c[:, None]).T @ slope
        H += level / M
        return (kernels.inverse(H) if M <= SMALL else np.linalg.inv(H)) - shift
    if len(t) > MOST_GROUPS:
        return None
    U = np.concatenate([up, down, slope, np.ones((1, M))])
    n = len(t)
    middle = np.zeros((3 * n + 1, 3 * n + 1))
    middle[range(n), range(n, 2 * n)] = middle[range(n, 2 * n), range(n)] = -c
    middle[range(2 * n, 3 * n), range(2 * n, 3 * n)] = -c
    middle[-1, -1] = level / M
    scaled = U / diagonal
    inner = np.linalg.solve(np.eye(len(U)) + middle @ (scaled @ U.T), middle)
    reduction = ((inner @ scaled) * scaled).sum(axis=0)
    return np.sqrt(np.maximum(1 / diagonal - reduction - shift, 0.0))


def _refuse_infinite(p: Preferences, g: Groups, net: Floats) -> None:
    """Scores are finite iff some item both wins and loses: sum_i abs(net_i) < 2 sum_g t_g T_g, in every instance."""
    entry_instance = np.repeat(np.arange(len(p.instances)), np.diff(p.bounds))
    size = np.bincount(entry_instance, np.abs(net), len(p.instances))
    part = np.repeat(np.arange(len(p.instances)), np.diff(g.bounds))
    most = 2 * np.bincount(part, g.adherence * g.total, len(p.instances))
    bad = (np.diff(p.bounds) > 1) & (size >= most * (1 - 1e-12))
    if bad.any():
        k = int(np.argmax(bad))
        where = f"instance {p.instances[k]!r}: " if p.several else ""
        more = f" ({bad.sum()} such instances)" if p.several else ""
        raise DataError(f"{where}no finite scores exist: no item both wins and loses{more}; give a prior, such as 10")
