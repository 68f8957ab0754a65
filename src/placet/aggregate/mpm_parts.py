"""Multinomial preferences on ballots in parts, all of one adherence: net wins, totals and their products are sums."""

from typing import Any, NamedTuple

import numpy as np

from placet.aggregate.mpm import MultinomialPreference
from placet.aggregate.mpm_errors import Errors, Information, error_notes_for, information, structure_sums
from placet.aggregate.mpm_fit import Found, Groups, Preferences, preferences, refuse_infinite
from placet.aggregate.uncertainty import MOST_SIMULATED
from placet.data import DataError, Parts, Rankings
from placet.data.arrays import Floats, Ints, Names
from placet.kernels import mpm as kernels
from placet.optim import Fit


class Net(NamedTuple):
    """Net wins of items over all parts, the number of preferences, and of agents that state one."""

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
    """Fit the model to ballots in parts; adherences and variances, which tie all agents together, are refused."""
    for name, used in (("adherence", model.adherence is not None), ("variance", model.variance)):
        if used:
            raise DataError(
                f"mpm with {name} goes round all agents many times and does not work on parts; leave {name} out, "
                "or load all ballots (parts.load()) where they fit in memory"
            )
    model._check(Rankings.from_orders([]), None)
    whole = all(one.whole_weights for one in parts.summaries) and parts.weight <= 2.0**53
    prepared = parts.made(_preferences, model.strength, whole)
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
    notes = (
        [] if model.prior is None else [f"prior: scores are normal with mean 0 and standard deviation {model.prior:g}"]
    )
    model._set_scores(p, found, [errors], notes if found.converged else [*notes, found.message])  # type: ignore[arg-type]
    return model


def _preferences(number: int, data: Rankings, strength: str, whole: bool) -> Preferences:
    p = preferences(data, strength)
    if data.agent is not None or not whole:
        return p.with_count(np.ones(len(p.count)))
    return p.with_count(np.bincount(p.part_agent, data.weight, len(p.count)).astype(np.float64))


def _sums(p: Preferences) -> tuple[Floats, float, float, list[Ints]]:
    """Net wins, preferences, agents that state one, and the numbers of agents that have names."""
    named = p.data.agent is not None
    agents = [p.part_agent[p.total > 0]] if named else []
    net = np.asarray(p.net.sum(axis=0)).ravel()
    return net, float(p.total.sum()), float(p.count[p.total > 0].sum()), agents


def _refuse_divided(parts: Parts, agents: list[Ints]) -> None:
    """Standard errors by agent need all ballots of an agent in one part."""
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


def _scores(p: Net, precision: float, max_iter: int, tol: float) -> Found:
    """Scores by Newton's method, as `Preferences.scores` has them."""
    one, bounds = np.ones(1), np.array([0, 1])
    groups = Groups(bounds, one, np.array([p.total]), np.zeros(1, np.int64))
    if precision == 0:
        refuse_infinite(p, groups, p.net)
    s, norm, steps = np.zeros(len(p.items)), np.zeros(1), np.zeros(1, np.int64)
    args = (p.bounds, one, groups.total, bounds, precision, s, max_iter, tol, norm, steps)
    value = kernels.fit_scores(p.net, *args)
    converged = bool(norm[0] <= tol)
    message = f"largest gradient {norm[0]:.1e} for each preference after {steps[0]} Newton steps"
    message += "" if converged else f", above tol={tol:g}; raise max_iter"
    return Found(s, np.zeros(0), value, float(norm[0]), int(steps[0]), converged, message)


def _errors(prepared: Parts, p: Net, s: Floats, precision: float, robust: bool) -> Errors:
    """From the information, or with the outer products of the gradients of agents, summed over parts."""
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
    """What the agents of a part add to the sandwich."""
    scale = np.sqrt(factor / np.maximum(p.count, 1e-300)) / unit
    X = p.net.multiply(scale[:, None]).tocsr()
    E = np.zeros((X.shape[0], len(H.U)))
    E[:, 2] = H.gradient_scale[0] * p.total * scale
    return structure_sums(X, E, H, whole)
