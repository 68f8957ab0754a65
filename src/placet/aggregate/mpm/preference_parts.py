"""Multinomial preferences for ballots in parts: net wins, totals and their products are sums over parts.

If all agents have adherence 1 the sums are over all agents; otherwise sums are kept per agent, and have to fit in
memory.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from placet.aggregate.likelihood.prior import prior_note
from placet.aggregate.mpm.multinomial_preference import MultinomialPreference
from placet.aggregate.mpm.preference_errors import Errors, Information, error_notes_for, information, structure_sums
from placet.aggregate.mpm.preference_likelihood import (
    AdherenceGroups,
    PreferenceFit,
    Preferences,
    preferences,
    refuse_infinite,
)
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import DataError, Parts, Rankings
from placet.data.arrays import Floats, Ints, Names
from placet.data.memory import PART_OF_MEMORY, array_bytes, memory_limit
from placet.kernels.aggregate import multinomial_preferences as kernels
from placet.optim import Fit


class Net(NamedTuple):
    """Net wins of items over all parts, the number of preferences, and the number of agents that state any."""

    items: Names
    net: Floats
    total: float
    units: float
    named: bool

    agents: Names = ()
    instances: tuple[Any, ...] = (None,)
    several: bool = False

    @property
    def bounds(self) -> Ints:
        return np.array([0, len(self.items)])

    @property
    def item(self) -> Ints:
        return np.arange(len(self.items))


def fit_parts(model: MultinomialPreference, parts: Parts) -> MultinomialPreference:
    """Fit the model to ballots in parts.  Variances are not supported, as they need the ballots themselves."""
    whole = all(one.whole_weights for one in parts.summaries) and parts.weight <= 2.0**53
    prepared = parts.map(_preferences, model.strength, whole)
    if model.adherence is not None:
        n_agents, most = len(parts.agents or ()), memory_limit() // PART_OF_MEMORY
        sums = prepared.sum(AgentSums.of, n_agents, most, name="net wins by agent", merge=AgentSums.merged)
        p = sums.preferences(parts, model.strength)
        return model.fit_preferences(p, model._adherence(parts, p, None), parts)
    return _fit_alike(model, parts, prepared)


def _fit_alike(model: MultinomialPreference, parts: Parts, prepared: Parts) -> MultinomialPreference:
    """Fit with adherence 1 for all agents."""
    net, total, units, agents = prepared.sum(_sums, name="net wins")
    p = Net(parts.items, net, float(total), float(units), parts.agents is not None)
    precision = 0.0 if model.prior is None else model.prior**-2
    found = _scores(p, precision, model.max_iter, model.tol)
    errors = Errors(None, None, [])
    if model.stderr is not None:
        robust = model.stderr == "sandwich" and p.units > 1
        if robust:
            _refuse_divided(parts, agents)
        errors = _errors(prepared, p, found.s, precision, robust)
        errors = errors._replace(notes=[*error_notes_for(p.named, False, model.stderr, p.units), *errors.notes])
    model.variance_, model.adherence_ = None, found.adherence
    model.fit_ = Fit(found.s, found.value, found.grad_norm, found.n_iter, found.converged, found.message)
    notes = [] if model.prior is None else [prior_note(model.prior, learned=False)]
    notes += [] if found.converged else [found.message]
    model.set_scores(parts, p, found, [errors], notes)  # type: ignore[arg-type]
    return model


@dataclass(frozen=True)
class AgentSums:
    """Net wins (agents, items) and number of preferences of every agent.

    Named agents have the same number in all parts, and their sums are added (``present``: agents with any ballot);
    otherwise every ballot is an agent, and parts are concatenated.
    """

    net: sparse.csr_array
    total: Floats
    count: Floats
    present: NDArray[np.bool_]
    named: bool
    most: int

    @classmethod
    def of(cls, p: Preferences, n_agents: int, most: int) -> "AgentSums":
        if not p.named:
            return cls(p.net, p.total, p.count, np.ones(len(p.total), bool), False, most)._refuse_large()
        rows = p.net.tocoo()
        net = sparse.csr_array((rows.data, (p.part_agent[rows.row], rows.col)), (n_agents, p.net.shape[1]))
        total = np.bincount(p.part_agent, p.total, n_agents).astype(np.float64)
        present = np.bincount(p.part_agent, minlength=n_agents) > 0
        return cls(net, total, present.astype(np.float64), present, True, most)._refuse_large()

    def merged(self, other: "AgentSums") -> "AgentSums":
        if self.named:
            present = self.present | other.present
            net, total = self.net + other.net, self.total + other.total
            return AgentSums(net, total, present.astype(np.float64), present, True, self.most)._refuse_large()
        net = sparse.vstack([self.net, other.net], format="csr")
        total, count = np.append(self.total, other.total), np.append(self.count, other.count)
        return AgentSums(net, total, count, np.append(self.present, other.present), False, self.most)._refuse_large()

    def _refuse_large(self) -> "AgentSums":
        if array_bytes(self) > self.most:
            raise DataError(
                f"mpm with adherence needs the net wins of every agent at once, and those of {len(self.total):,} "
                f"agents take more than {self.most:,} bytes (a quarter of PLACET_MEMORY); leave adherence out, and net "
                "wins are added over all agents"
            )
        return self

    def preferences(self, parts: Parts, strength: str) -> Preferences:
        agent = np.flatnonzero(self.present)
        n_items = len(parts.items)
        return Preferences(
            items=parts.items,
            agents=tuple(range(len(self.total))) if parts.agents is None else parts.agents,
            instances=(None,),
            several=False,
            bounds=np.array([0, n_items]),
            item=np.arange(n_items),
            entry=np.zeros(0, np.int64),
            net=self.net[agent],
            part_agent=agent,
            part_instance=np.zeros(len(agent), np.int64),
            total=self.total[agent],
            count=self.count[agent],
            named=self.named,
            data=None,
            strength=strength,
        )


def _preferences(number: int, data: Rankings, strength: str, whole: bool) -> Preferences:
    p = preferences(data, strength)
    if data.agent is not None or not whole:
        return p.with_count(np.ones(len(p.count)))
    return p.with_count(np.bincount(p.part_agent, data.weight, len(p.count)).astype(np.float64))


def _sums(p: Preferences) -> tuple[Floats, float, float, list[Ints]]:
    """Net wins, number of preferences, number of agents that state any, and their codes if they are named."""
    agents = [p.part_agent[p.total > 0]] if p.named else []
    net = np.asarray(p.net.sum(axis=0)).ravel()
    return net, float(p.total.sum()), float(p.count[p.total > 0].sum()), agents


def _refuse_divided(parts: Parts, agents: list[Ints]) -> None:
    """Raise `DataError` if an agent has ballots in several parts; standard errors by agent need them in one."""
    if not agents or parts.agents is None:
        return
    every = np.concatenate(agents)
    code, count = np.unique(every, return_counts=True)
    divided = code[count > 1]
    if len(divided):
        raise DataError(
            f"agent {parts.agents[int(divided[0])]!r} has ballots in several parts ({len(divided)} such agents), and "
            "standard errors are by agent; sort the files by agent, or take stderr='observed'"
        )


def _scores(p: Net, precision: float, max_iter: int, tol: float) -> PreferenceFit:
    """Scores by Newton's method, like `Preferences.scores`."""
    one, bounds = np.ones(1), np.array([0, 1])
    groups = AdherenceGroups(bounds, one, np.array([p.total]), np.zeros(1, np.int64))
    if precision == 0:
        refuse_infinite(p, groups, p.net)
    s, norm, steps = np.zeros(len(p.items)), np.zeros(1), np.zeros(1, np.int64)
    args = (p.bounds, one, groups.total, bounds, precision, s, max_iter, tol, norm, steps)
    value = kernels.fit_scores(p.net, *args)
    converged = bool(norm[0] <= tol)
    message = f"largest gradient {norm[0]:.1e} for each preference after {steps[0]} Newton steps"
    message += "" if converged else f", above tol={tol:g}; raise max_iter"
    return PreferenceFit(s, np.zeros(0), value, float(norm[0]), int(steps[0]), converged, message)


def _errors(prepared: Parts, p: Net, s: Floats, precision: float, robust: bool) -> Errors:
    """Errors from the information or, if ``robust``, a sandwich with outer products of agents' gradients over parts."""
    M = len(s)
    if M < 2:
        return Errors(np.zeros((M, M)), None, [])
    if p.units == 0:
        return Errors((np.eye(M) - 1 / M) / precision, None, [])
    unit = max(p.total, precision)
    H = information(s, np.ones(1), np.array([p.total / unit]), precision / unit)
    whole = M <= MOST_SIMULATED
    notes = [] if whole else [f"more than {MOST_SIMULATED} items: standard errors are without correlations"]
    factor = p.units / (p.units - 1) if robust else 1.0
    sums = prepared.sum(_agent_products, H, unit, factor, whole, name="outer products") if robust else None
    covariance, stderr = H.errors_of(sums, precision / unit, unit, whole)
    return Errors(covariance, stderr, notes)


def _agent_products(p: Preferences, H: Information, unit: float, factor: float, whole: bool) -> Any:
    """Contribution of the agents of a part to the sandwich."""
    scale = np.sqrt(factor / np.maximum(p.count, 1e-300)) / unit
    X = p.net.multiply(scale[:, None]).tocsr()
    E = np.zeros((X.shape[0], len(H.U)))
    E[:, 2] = H.gradient_scale[0] * p.total * scale
    return structure_sums(X, E, H, whole)
