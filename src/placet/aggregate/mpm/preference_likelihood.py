"""Likelihoods of multinomial preferences for ballots and votes: fits of scores at given adherences, and of both."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from placet.aggregate.likelihood.existence import notes_of_pairs
from placet.aggregate.resample import are_counts
from placet.data import Comparisons, DataError, Parts, Rankings
from placet.data.arrays import Floats, Ints, Names, offsets_from_sizes
from placet.kernels.aggregate import multinomial_preferences as kernels
from placet.optim import cg, newton

ROUNDS = 500
"""Maximum number of rounds that alternate between scores and adherences."""

SETTLED = 1e-7
"""Adherences have converged when each is this close to the best one at the same scores."""

ADHERENCE_CAP = 100.0
"""Largest adherence in a round, relative to the largest of the previous round."""

AGENTS_AT_ONCE = 1024


@dataclass(frozen=True)
class PreferenceFit:
    """Scores of all entries, adherences of all agents, and the outcome of the optimization."""

    s: Floats
    adherence: Floats
    value: float
    grad_norm: float
    n_iter: int
    converged: bool
    message: str


class AdherenceGroups(NamedTuple):
    """Agents of an instance grouped by adherence: groups bounds[l]:bounds[l + 1] belong to instance l."""

    bounds: Ints
    adherence: Floats
    total: Floats
    of_part: Ints


class Gradients(NamedTuple):
    """Contributions of a block of agents to the derivatives: ``score`` (agents, M) in the scores, dense or sparse;
    ``mixed`` (agents, M) in the scores and the agent's adherence; ``curvature`` (agents,), the second derivative in the
    adherence; ``agent``, the agents' numbers.
    """

    agent: Ints
    score: Any
    mixed: Any
    curvature: Floats


@dataclass(frozen=True)
class Preferences:
    """Net wins of items by agent and instance.

    Entries bounds[l]:bounds[l + 1] are the items of instance l, ``item`` their codes, and ``entry`` (rows,) the entry
    of each row of ``data``.  Part k is agent ``part_agent[k]`` in instance ``part_instance[k]``, with ``total[k]``
    preferences; row k of ``net`` has its wins minus losses for every entry.  It represents ``count[k]`` independent
    agents (a ballot of weight 3 is three voters).  ``data`` is None if the ballots themselves are not available.
    ``parts``: if all agents are alike, the preferences in parts whose sum over agents this is.
    """

    items: Names
    agents: Names
    instances: tuple[Hashable, ...]
    several: bool
    bounds: Ints
    item: Ints
    entry: Ints
    net: sparse.csr_array
    part_agent: Ints
    part_instance: Ints
    total: Floats
    count: Floats
    named: bool
    data: Rankings | None
    strength: str
    parts: Parts | None = None

    @cached_property
    def part_bounds(self) -> Ints:
        """Parts part_bounds[l]:part_bounds[l + 1] are in instance l."""
        return np.searchsorted(self.part_instance, np.arange(len(self.instances) + 1))

    @cached_property
    def _by_agent(self) -> tuple[Ints, Ints, Ints, Floats]:
        """Parts sorted by agent: the order, offsets of agents, instances and totals."""
        order = np.argsort(self.part_agent, kind="stable")
        offsets = np.searchsorted(self.part_agent[order], np.arange(len(self.agents) + 1))
        return order, offsets, self.part_instance[order], self.total[order]

    def groups(self, adherence: Floats) -> AdherenceGroups:
        """Group parts of equal adherence within each instance.  O(parts log parts)."""
        t = adherence[self.part_agent]
        order = np.lexsort((t, self.part_instance))
        inst, t = self.part_instance[order], t[order]
        new = np.ones(len(t), bool)
        new[1:] = (inst[1:] != inst[:-1]) | (t[1:] != t[:-1])
        number = np.empty(len(t), np.int64)
        number[order] = np.cumsum(new) - 1
        counts = np.bincount(inst[new], minlength=len(self.instances))
        total = np.bincount(number, self.total, int(new.sum())).astype(np.float64)
        return AdherenceGroups(offsets_from_sizes(counts), t[new], total, number)

    def scores(
        self,
        adherence: Floats,
        precision: float,
        max_iter: int,
        tol: float,
        start: Floats | None = None,
    ) -> PreferenceFit:
        """Scores of every instance at given adherences, by Newton's method."""
        g = self.groups(adherence)
        net = self.net.T @ adherence[self.part_agent]
        if precision == 0:
            refuse_infinite(self, g, net)
        s = np.zeros(len(self.item)) if start is None else start.copy()
        norm, steps = np.zeros(len(self.instances)), np.zeros(len(self.instances), np.int64)
        value = kernels.fit_scores(
            net, self.bounds, g.adherence, g.total, g.bounds, precision, s, max_iter, tol, norm, steps
        )
        worst, most = float(norm.max(initial=0.0)), int(steps.max(initial=0))
        converged = bool(worst <= tol)
        message = f"largest gradient {worst:.1e} for each preference after {most} Newton steps"
        message += "" if converged else f", above tol={tol:g}; raise max_iter"
        return PreferenceFit(s, adherence, value, worst, most, converged, message)

    def adherences(self, s: Floats, cap: float, start: Floats) -> Floats:
        """The most likely adherence of every agent in [0, cap] at given scores."""
        order, offsets, instance, total = self._by_agent
        t = start.copy()
        kernels.fit_adherence(s, self.bounds, instance, total, (self.net @ s)[order], offsets, cap, t)
        return t

    def gradients(self, k: int, s: Floats, adherence: Floats) -> Iterator[Gradients]:
        """Derivatives of every part of instance k at its scores, in blocks of agents; divided by the root of counts.

        With a = up, b = down, slope = (a B - b A) / Z: g = T t slope - t net, and its derivative in t is
        T slope - net + T t d slope / dt.
        """
        M = self.bounds[k + 1] - self.bounds[k]
        for first in range(self.part_bounds[k], self.part_bounds[k + 1], AGENTS_AT_ONCE):
            parts = slice(first, min(first + AGENTS_AT_ONCE, self.part_bounds[k + 1]))
            t = adherence[self.part_agent[parts]][:, None]
            root = np.sqrt(np.maximum(self.count[parts], 1e-300))[:, None]
            total = self.total[parts][:, None] / root
            net = self.net[parts, self.bounds[k] : self.bounds[k + 1]].toarray() / root
            x = t * s
            up, down = np.exp(x - x.max(axis=1, keepdims=True)), np.exp(x.min(axis=1, keepdims=True) - x)
            A, B = up.sum(axis=1, keepdims=True), down.sum(axis=1, keepdims=True)
            Z = A * B - M * np.exp(x.min(axis=1) - x.max(axis=1))[:, None]
            sa, sb = (up @ s)[:, None], (down @ s)[:, None]
            slope = (up * B - down * A) / Z
            mean = (sa * B - sb * A) / Z
            turn = (up * (s * B - sb) + down * (s * A - sa)) / Z - slope * mean
            second = ((up @ s**2)[:, None] * B + (down @ s**2)[:, None] * A - 2 * sa * sb) / Z - mean**2
            yield Gradients(
                self.part_agent[parts],
                t * (total * slope - net),
                total * (slope + t * turn) - net,
                (total * second)[:, 0],
            )

    def n_units(self, k: int) -> float:
        """Number of independent agents of instance k that state a preference."""
        parts = slice(self.part_bounds[k], self.part_bounds[k + 1])
        return float(self.count[parts][self.total[parts] > 0].sum())

    def with_count(self, count: Floats) -> "Preferences":
        """The same preferences with other counts of independent agents."""
        return replace(self, count=count)


def refuse_infinite(p: Any, g: AdherenceGroups, net: Floats) -> None:
    """Raise `DataError` unless every instance has finite scores: some item both wins and loses, which holds iff
    sum_i abs(net_i) < 2 sum_g t_g T_g.
    """
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


def preferences(data: Rankings, strength: str) -> Preferences:
    """Net wins and totals of every agent in every instance.  O(rows log rows)."""
    value, wins = data.net_wins(strength)  # type: ignore[arg-type]
    several = data.instance is not None
    code = np.zeros(len(data), np.int64) if data.instance is None else data.instance
    agent = np.arange(len(data)) if data.agent is None else data.agent
    agents = tuple(range(len(data))) if data.agents is None else data.agents
    if several:
        key = code[data.ballot] * data.n_items + data.item
        used, entry = np.unique(key, return_inverse=True)
        bounds = np.searchsorted(used // max(data.n_items, 1), np.arange(len(data.instances or ()) + 1))
        item = used % max(data.n_items, 1)
    else:
        entry, item, bounds = data.item, np.arange(data.n_items), np.array([0, data.n_items])
    part, part_of = np.unique(code * len(agents) + agent, return_inverse=True)
    weighted = value * data.weight[data.ballot]
    counted = data.agent is None and are_counts(data.weight)
    return Preferences(
        items=data.items,
        agents=agents,
        instances=data.instances if data.instances is not None else (None,),
        several=several,
        bounds=bounds.astype(np.int64),
        item=item,
        entry=entry.astype(np.int64),
        net=sparse.csr_array((weighted, (part_of[data.ballot], entry)), (len(part), len(item))),
        part_agent=part % max(len(agents), 1),
        part_instance=part // max(len(agents), 1),
        total=np.bincount(part_of, wins * data.weight, len(part)).astype(np.float64),
        count=np.bincount(part_of, data.weight, len(part)).astype(np.float64) if counted else np.ones(len(part)),
        named=data.agent is not None,
        data=data,
        strength=strength,
    )


@dataclass(frozen=True)
class Votes:
    """Votes given the pair that was asked about: agent n says "i" with probability 1 / (1 + e^{-2 t_n (s_i - s_j)}).

    Columns have one entry per row of the comparisons; without agents, votes are independent and share one adherence.
    """

    items: Names
    agents: Names
    i: Ints
    j: Ints
    wins_i: Floats
    wins_j: Floats
    agent: Ints
    named: bool

    instances = (None,)
    several = False

    @property
    def bounds(self) -> Ints:
        return np.array([0, len(self.items)])

    @property
    def item(self) -> Ints:
        return np.arange(len(self.items))

    @cached_property
    def incidence(self) -> sparse.csr_array:
        """(rows, n_items): 1 at i and -1 at j."""
        rows = np.arange(len(self.i))
        one = np.ones(len(rows))
        columns = np.concatenate([rows, rows]), np.concatenate([self.i, self.j])
        return sparse.csr_array((np.concatenate([one, -one]), columns), (len(rows), len(self.items)))

    @property
    def unit(self) -> float:
        """Number of votes, by which the objective is divided so that ``tol`` does not depend on it."""
        return float(self.wins_i.sum() + self.wins_j.sum()) or 1.0

    def _rows(self, s: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
        """For every row, x = 2 t d and the first and second derivative of the negative log likelihood in x."""
        x = 2 * t[self.agent] * (self.incidence @ s)
        p, n = expit(x), self.wins_i + self.wins_j
        return x, n * p - self.wins_i, n * p * expit(-x)

    def _by_agent(self, rows: Floats) -> Floats:
        """Sums over the rows of each agent."""
        return np.bincount(self.agent, rows, len(self.agents)).astype(np.float64)

    def value(self, s: Floats, t: Floats, precision: float) -> tuple[float, Floats]:
        """Negative log posterior and its gradient in the scores.  O(rows)."""
        x, slope, _ = self._rows(s, t)
        value = self.wins_i @ np.logaddexp(0.0, -x) + self.wins_j @ np.logaddexp(0.0, x)
        gradient = self.incidence.T @ (2 * t[self.agent] * slope)
        return float(value) + 0.5 * precision * float(s @ s), gradient + precision * s

    def hessian(self, s: Floats, t: Floats) -> sparse.csr_array:
        """Hessian of the negative log likelihood in the scores: the Laplacian with weights 4 t^2 n p (1 - p)."""
        _, _, curvature = self._rows(s, t)
        weighted = sparse.diags_array(4 * t[self.agent] ** 2 * curvature) @ self.incidence
        return sparse.csr_array(self.incidence.T @ weighted)

    def scores(
        self,
        adherence: Floats,
        precision: float,
        max_iter: int,
        tol: float,
        start: Floats | None = None,
    ) -> PreferenceFit:
        """Scores at given adherences, by Newton's method with conjugate gradients."""
        n, unit = len(self.items), self.unit
        if precision == 0:
            counts = (
                np.where(adherence[self.agent] > 0, self.wins_i, 0),
                np.where(adherence[self.agent] > 0, self.wins_j, 0),
            )
            notes_of_pairs(self.i, self.j, *counts, np.zeros(len(self.i)), self.items, None)

        def solve(s: Floats, gradient: Floats) -> Floats:
            H = self.hessian(s, adherence)
            diagonal = H.diagonal() / unit + precision / unit
            times = lambda v: H @ v / unit + (precision / unit) * v  # noqa: E731
            return cg(times, gradient, rtol=1e-4, diagonal=np.where(diagonal > 0, diagonal, 1.0))

        def fun(s: Floats) -> tuple[float, Floats]:
            value, gradient = self.value(s, adherence, precision)
            return value / unit, gradient / unit

        fit = newton(fun, solve, np.zeros(n) if start is None else start, tol=tol, max_iter=max_iter)
        s = fit.x - fit.x.mean() if n else fit.x
        return PreferenceFit(s, adherence, fit.value * unit, fit.grad_norm, fit.n_iter, fit.converged, fit.message)

    def adherences(self, s: Floats, cap: float, start: Floats) -> Floats:
        """The most likely adherence of every agent in [0, cap] at given scores, by bisection with Newton steps."""
        n = len(self.agents)
        d = 2 * (self.incidence @ s)
        low, high = np.zeros(n), np.full(n, cap)
        agrees = self._by_agent((self.wins_i - self.wins_j) * d) > 0
        t = np.full(n, cap)
        for _ in range(80):
            _, slope, curvature = self._rows(s, t)
            slope, curvature = self._by_agent(slope * d), self._by_agent(curvature * d * d)
            low, high = np.where(slope <= 0, t, low), np.where(slope > 0, t, high)
            step = t - np.divide(slope, curvature, out=np.full(n, np.inf), where=curvature > 0)
            new = np.where((step > low) & (step < high), step, (low + high) / 2)
            new = np.where(low >= cap, cap, new)
            if np.abs(new - t).max(initial=0.0) <= 1e-13 * cap:
                break
            t = new
        return np.where(agrees, t, 0.0)

    def gradients(self, k: int, s: Floats, adherence: Floats) -> Iterator[Gradients]:
        """Derivatives of every agent, or of every row if agents are not named, as sparse matrices."""
        t = adherence[self.agent]
        x, slope, curvature = self._rows(s, adherence)
        if not self.named:  # a vote for i has the derivative p - 1, a vote for j has p
            p = expit(x)
            root = np.sqrt(self.wins_i * (1 - p) ** 2 + self.wins_j * p**2)
            rows = sparse.csr_array(sparse.diags_array(2 * t * root) @ self.incidence)
            none = np.zeros(len(x), np.int64)
            yield Gradients(none, rows, 0 * rows, np.zeros(len(x)))
            return
        shape = len(self.agents), len(x)
        who = sparse.csr_array((np.ones(len(x)), (self.agent, np.arange(len(x)))), shape)
        d = 2 * (self.incidence @ s)
        yield Gradients(
            np.arange(len(self.agents)),
            who @ sparse.diags_array(2 * t * slope) @ self.incidence,
            who @ sparse.diags_array(2 * slope + 2 * t * curvature * d) @ self.incidence,
            self._by_agent(curvature * d * d),
        )

    def n_units(self, k: int) -> float:
        """Number of independent agents, or of votes if agents are not named."""
        n = self.wins_i + self.wins_j
        return float(len(np.unique(self.agent[n > 0]))) if self.named else float(n.sum())


def votes(data: Comparisons) -> Votes:
    """The columns of the comparisons; ties are not preferences, and are skipped."""
    return Votes(
        items=data.items,
        agents=(None,) if data.agents is None else data.agents,
        i=data.i,
        j=data.j,
        wins_i=data.wins_i,
        wins_j=data.wins_j,
        agent=np.zeros(len(data), np.int64) if data.agent is None else data.agent,
        named=data.agent is not None,
    )


def learn(p: Preferences | Votes, precision: float, max_iter: int, tol: float) -> PreferenceFit:
    """Scores and adherences in [0, 1] that jointly minimize the negative log posterior, at least one adherence being 1.

    Each round optimizes the adherences at given scores, then the scores at given adherences.  Two ways to keep
    adherences within [0, 1] are tried: clipping each at 1, which never raises the value; and dividing all by the
    largest while multiplying the scores by it, which leaves the likelihood unchanged but not the prior.  A third trial
    extrapolates from the last two rounds.  The best trial is kept, so every round lowers the value.
    """
    fit = partial(p.scores, precision=precision, max_iter=max_iter, tol=tol)
    found = fit(np.ones(len(p.agents)))
    before: Floats | None = None
    distance, rounds = np.inf, 0
    while rounds < ROUNDS:
        t = found.adherence
        free = p.adherences(found.s, ADHERENCE_CAP, t)
        top = float(free.max(initial=0.0))
        if top <= 0.0:
            raise DataError("no agent agrees with any order of the items; adherences cannot be learned from these data")
        capped = np.minimum(free, 1.0)  # the likelihood of each agent is concave in its adherence
        distance = float(np.abs(capped - t).max(initial=0.0))
        if distance <= SETTLED:
            break
        rounds += 1
        trials = [fit(free / top, start=found.s * top)]
        if top != 1.0 and precision > 0:
            trials.append(fit(capped, start=found.s))
        if before is not None:
            further = _extrapolated_limit(before, t, min(trials, key=_value).adherence)
            trials.append(fit(further, start=found.s))
        before = t if before is None else None
        found = min(trials, key=_value)
    converged = found.converged and distance <= SETTLED
    message = f"adherences are within {distance:.1e} of the best at these scores after {rounds} rounds; {found.message}"
    return replace(found, n_iter=rounds, converged=converged, message=message)


def _value(found: PreferenceFit) -> float:
    return found.value


def _extrapolated_limit(first: Floats, second: Floats, third: Floats) -> Floats:
    """Limit of a linearly converging sequence by squared extrapolation, clipped to [0, 1] and scaled to maximum 1."""
    step, bend = second - first, (third - second) - (second - first)
    length = max(1.0, float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300))
    t = np.clip(first + 2 * length * step + length**2 * bend, 0.0, 1.0)
    return t / t.max() if t.max(initial=0.0) > 0 else third
