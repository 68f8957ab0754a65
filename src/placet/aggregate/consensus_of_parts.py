"""Consensus of ballots or votes in parts, which together may be larger than memory.

Votes are counted part by part and the counts added, so every method works.  Ballots contribute to sums: of points, of
pairs, of the values and derivatives of a likelihood.  Methods that need all ballots at once run on the distinct ballots
with their multiplicities if these fit in memory; otherwise an error names the methods that work on sums.
"""

import os
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from placet.aggregate.ballots.ballot_models import PMOP, PlackettLuce, PMOPFullDecomposition
from placet.aggregate.consensus_door import FitCounter, Run
from placet.aggregate.data_facts import notes_of_data, support
from placet.aggregate.likelihood import information
from placet.aggregate.likelihood.ballot_objective import (
    CLOSED,
    Ballots,
    average_in_groups,
    is_closed,
    matrix_of_averages,
    precision_of,
    scale_and_precision,
)
from placet.aggregate.likelihood.existence import (
    PartGraph,
    agent_factor,
    graph_of_part,
    informative_rows,
    notes_of_parts,
    refuse_free,
    united_groups,
)
from placet.aggregate.method_table import METHODS, MODELS, RULES
from placet.aggregate.mpm.multinomial_preference import MultinomialPreference
from placet.aggregate.mpm.preference_parts import fit_parts
from placet.aggregate.pairs.bradley_terry import INDEPENDENT_PAIRS, BradleyTerry
from placet.aggregate.result.initial_scores import start_scores, write_checkpoint
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, DataError, Parts, Queries, Rankings
from placet.data.arrays import Floats, Ints, Names
from placet.data.engines.serial import EngineError
from placet.data.memory import PART_OF_MEMORY, array_bytes, memory_limit
from placet.losses import LOSSES
from placet.optim import Progress
from placet.threads import algebra_threads

LIKELIHOODS = (PlackettLuce, PMOPFullDecomposition, PMOP)
CHECKPOINT = "placet-checkpoint.json"


def consensus_of_parts(
    parts: Parts,
    method: str,
    params: dict[str, Any],
    *,
    bootstrap: int,
    random_state: int,
    progress: Progress | None,
    start: Any,
) -> Consensus:
    """Consensus of parts by any method; see `placet.consensus`."""
    if parts.kind is Queries:
        raise TypeError("these parts hold queries, which rankers are fitted to; consensus takes ballots or votes")
    run = Run(method, params, bootstrap, random_state, start_scores(start, parts.items))
    steps = FitCounter(progress, 1 + bootstrap)
    with algebra_threads(parts.n_items):
        if parts.kind is Comparisons:
            result = run.answer(_with_names(parts, parts.sum(_itself, name="counts")), steps)
            assert isinstance(result, Consensus)
        else:
            result = _of_ballots(parts, run, steps)
    return result


def _of_ballots(parts: Parts, run: Run, steps: FitCounter) -> Consensus:
    method, params, start = run.method, run.params, run.start
    rule = RULES.get(method)
    if method == "bradley-terry":
        result, again = _bradley_terry(parts, params, start)
    elif rule is not None and (rule.adds or rule.pairs_suffice):
        result, again = _rule(parts, method, params)
    elif method in MODELS and issubclass(MODELS[method], LIKELIHOODS):
        result, again = _likelihood(parts, MODELS[method](**params), start)
    elif method in MODELS and issubclass(MODELS[method], MultinomialPreference) and not params.get("variance"):
        model = MODELS[method](**params)
        fit_parts(model, parts)
        quick = MODELS[method](**params | {"stderr": None})
        result, again = model.consensus_, lambda sample: fit_parts(quick, sample).theta_
    else:
        return _of_different_ballots(parts, run, steps)
    steps.step()
    if not run.bootstrap:
        return result
    draws = []
    for number in range(run.bootstrap):
        draws.append(again(parts.resampled_by(run.random_state, number)))
        steps.step()
    note = f"uncertainty from {run.bootstrap} bootstrap rounds of Poisson counts"
    return replace(result, stderr=None, covariance=None, draws=np.array(draws), notes=(*result.notes, note))


Again = Callable[[Parts], Floats]


# Counts of pairs, and sums of points


def _bradley_terry(parts: Parts, params: dict[str, Any], start: Floats | None) -> tuple[Consensus, Again]:
    """Bradley-Terry on all pairs of the same ballot, counted part by part."""
    factor = _agent_factor(params.get("agent_weight"), parts)
    own = {name: value for name, value in params.items() if name != "agent_weight"}

    def fit(some: Parts, start: Any, **more: Any) -> BradleyTerry:
        counts = _with_names(parts, some.sum(_pairs_of, factor, name="pairs"))
        return BradleyTerry(**own | more).fit(counts, start=start)

    model = fit(parts, start)
    at = len(notes_of_data(parts)) + (model.prior_ is not None)
    notes = (*model.consensus_.notes[:at], INDEPENDENT_PAIRS, *model.consensus_.notes[at:])
    params = params | model.get_params(deep=False)
    result = replace(model.consensus_, notes=notes, params=params, support=support(parts))
    return result, lambda sample: fit(sample, model.theta_, stderr=None, prior=model.prior_).theta_


def _rule(parts: Parts, method: str, params: dict[str, Any]) -> tuple[Consensus, Again]:
    """A rule on the sums of points, or on the counts of pairs."""
    rule = RULES[method]

    def run(some: Parts) -> Any:
        if rule.adds:
            points, weight = some.sum(_points, method, params, name="points")
            factor = parts.weight / weight if some is not parts and weight > 0 else 1.0  # resampled ballots vary
            return rule.from_points((points[0] * factor, *points[1:]))
        return rule.run(_with_names(parts, some.sum(_pairs_of, None, name="pairs")), **params)

    scored = run(parts)
    result = Consensus(
        parts.items,
        scored.scores,
        method=method,
        params=params,
        notes=(*notes_of_data(parts), *scored.notes),
        support=support(parts),
        record=scored.record,
        tolerance=scored.tolerance,
    )
    return result, lambda sample: run(sample).scores


def _points(data: Rankings, method: str, params: dict[str, Any]) -> Any:
    return RULES[method].points(data, params), float(data.weight.sum())


def _pairs_of(data: Rankings, factor: Floats | None) -> Comparisons:
    weighted = data if factor is None else replace(data, weight=data.weight * factor[data.agent])
    return replace(weighted, agent=None, agents=None).to_comparisons()


def _itself(data: Any) -> Any:
    return data


def _with_names(parts: Parts, data: Any) -> Any:
    """The data with numbered items and agents replaced by their names."""
    agents = {} if data.agent is None else {"agents": parts.agents}
    return replace(data, items=parts.items, notes=notes_of_data(parts), **agents)


def _agent_factor(agent_weight: Any, parts: Parts) -> Floats | None:
    """The weight of every agent's ballots; None if all are 1."""
    if agent_weight is None:
        return None
    agent = None if parts.agents is None else np.arange(len(parts.agents))
    factor: Floats = agent_factor(agent_weight, SimpleNamespace(agent=agent, agents=parts.agents))
    return factor


# Likelihoods


class BallotParts:
    """The counterpart of `Ballots` for parts: every quantity is a sum over the parts."""

    def __init__(self, parts: Parts, factor: Floats | None, loss: str, prior: float | None, existence: str):
        together = not LOSSES[loss].convex
        found = parts.sum(_facts, factor, existence, together, name="comparisons")
        total, pairs, rows, self.graphs = found
        self.n = self.n_items = parts.n_items
        self.loss, self.n_rows = loss, parts.n_rows
        self.scale, self.precision = scale_and_precision(total, prior)
        self.closed = loss == CLOSED and is_closed(pairs, rows)
        self.group: Ints | None = united_groups(self.graphs, self.n)
        self.ballots, self.factor = parts, factor
        self.parts = parts.map(_bound_part, factor, loss, self.scale, self.closed)
        self.last: list[tuple[float, Floats]] = []  # the best value and scores so far under the current prior

    def notes(self, items: Names, prior: float | None, existence: str) -> list[str]:
        """Notes on what only the prior determines; without a prior, a ``DataError`` if no finite scores exist."""
        if existence != "sums" or prior is not None:
            return notes_of_parts(self.graphs, items, prior)
        rows = self.ballots.map(_informative_rows, self.factor)
        group = np.arange(self.n) if self.group is None else self.group
        refuse_free(lambda f, merge, *x: rows.sum(f, *x, name="existence", merge=merge), group, items)
        return []

    def with_prior(self, prior: float) -> "BallotParts":
        other = copy(self)
        other.precision = precision_of(prior, self.scale)
        other.last.clear()
        return other

    def average(self, theta: Floats) -> Floats:
        return average_in_groups(theta, self.group)

    def effects(self, x: Floats, covariance: Floats | None) -> None:
        """None: ballots in parts have no controls."""

    def value(self, theta: Floats) -> tuple[float, Floats]:
        def with_prior(value: float, grad: Floats) -> tuple[float, Floats]:
            prior = 0.5 * self.precision * float(theta @ theta)
            return value + prior, self.precision * theta + self.average(grad)

        found = self.parts.objective(_value, self.average(theta), then=with_prior)
        if not self.last or found[0] < self.last[0][0]:
            self.last[:] = [(found[0], theta.copy())]
        return found

    def times(self, theta: Floats, v: Floats) -> Floats:
        product = self.parts.sum(_times, self.average(theta), self.average(v), name="Hessian product")
        return self.average(product) + self.precision * v

    def hessian(self, theta: Floats) -> Floats:
        return information.with_precision(self.parts.sum(_hessian, theta, name="Hessian"), self.precision)

    def dense(self, theta: Floats) -> Floats:
        H = matrix_of_averages(self.parts.sum(_dense, self.average(theta), name="Hessian"), self.group)
        H[np.diag_indices(self.n)] += self.precision
        return H

    def diagonal(self, theta: Floats) -> Floats:
        d = self.parts.sum(_curvature, theta, name="curvature") + self.precision
        return np.where(d > 0, d, 1.0)

    def outer_products(self, theta: Floats) -> Floats:
        products: Floats = self.parts.sum(_outer_products, theta, name="outer products")
        return products

    def noise(self, theta: Floats, rng: np.random.Generator) -> Callable[[], Floats]:
        """As `Ballots.noise`; the draws of each part are seeded by its number."""
        own, number = int(rng.integers(1 << 62)), 0

        def draw() -> Floats:
            nonlocal number
            number += 1
            drawn: Floats = self.parts.sum(_noise, theta, (own, number), name="draws")
            return drawn + np.sqrt(self.precision) * rng.standard_normal(self.n)

        return draw


def _facts(
    data: Rankings, factor: Floats | None, existence: str, together: bool
) -> tuple[float, float, float, list[PartGraph]]:
    """Total weight, the costs of a Hessian and of a Hessian product, and the graph of comparisons."""
    weight = _weight(data, factor)
    own = Ballots.part(data, weight, "pl-partition", 1.0, False)
    graph = graph_of_part(data, weight, existence, together)
    return float(weight.sum()), *own.work(), [graph]


def _informative_rows(number: int, data: Rankings, factor: Floats | None) -> tuple[Ints, Ints, Ints]:
    return informative_rows(data, _weight(data, factor))


def _weight(data: Rankings, factor: Floats | None) -> Floats:
    return data.weight if factor is None else data.weight * factor[data.agent]


class _BoundPart:
    """The ballots of a part, with its number."""

    def __init__(self, number: int, b: Ballots):
        self.number, self.b = number, b


def _bound_part(
    number: int, data: Rankings, factor: Floats | None, loss: str, scale: float, closed: bool
) -> _BoundPart:
    b = Ballots.part(data, _weight(data, factor), loss, scale, closed)
    if not closed:
        b.bound  # noqa: B018  computed here so that its memory is counted
    return _BoundPart(number, b)


def _value(part: _BoundPart, theta: Floats) -> tuple[float, Floats]:
    return part.b.value(theta)


def _times(part: _BoundPart, theta: Floats, v: Floats) -> Floats:
    return part.b.times(theta, v)


def _hessian(part: _BoundPart, theta: Floats) -> Floats:
    return part.b.closed_hessian(theta)


def _dense(part: _BoundPart, theta: Floats) -> Floats:
    return part.b.dense(theta)


def _curvature(part: _BoundPart, theta: Floats) -> Floats:
    return part.b.curvature(theta)


def _outer_products(part: _BoundPart, theta: Floats) -> Floats:
    return part.b.outer_products(theta)


def _noise(part: _BoundPart, theta: Floats, entropy: tuple[int, int]) -> Floats:
    rng = np.random.default_rng(np.random.SeedSequence((*entropy, part.number)))
    return part.b.noise(theta, rng)()


def _likelihood(parts: Parts, model: Any, start: Floats | None) -> tuple[Consensus, Again]:
    """Fit a ballot likelihood, whose value and derivatives are sums over parts."""
    model._check()
    if getattr(model, "agents", None):
        raise ValueError("agents= does not work on parts; load them (parts.load()) where they fit in memory")
    factor = _agent_factor(model.agent_weight, parts)

    def fit(some: Parts, model: Any, start: Floats | None) -> Any:
        b = BallotParts(some, factor, model.loss, model.first_prior, model.existence)
        notes = b.notes(parts.items, model.first_prior, model.existence)
        try:
            return model.fit_objective(b, notes, parts, start)
        except EngineError as error:
            if b.last:
                path = os.path.abspath(CHECKPOINT)
                write_checkpoint(path, parts.items, b.last[0][1])
                error.checkpoint = path
                error.args = (f"{error}; the best scores so far are in {path}: continue with start={path!r}",)
            raise

    fit(parts, model, start)
    again = type(model)(**model.get_params(deep=False) | {"stderr": None, "prior": model.prior_})
    return model.consensus_, lambda sample: fit(sample, again, model.theta_).theta_


# What needs all ballots at once


def _of_different_ballots(parts: Parts, run: Run, steps: FitCounter) -> Consensus:
    """Run any method on the distinct ballots of all parts with their multiplicities."""
    most = memory_limit() // PART_OF_MEMORY
    reads_scores = METHODS[run.method].reads_scores
    reads_scores |= run.params.get("strength") == "rating"
    agents = run.method in MODELS  # models may distinguish voters
    united = parts.sum(
        _Distinct, not reads_scores, agents, most, run.method, name="different ballots", merge=_Distinct.merged
    )
    result = run.answer(_with_names(parts, united.data), steps)
    assert isinstance(result, Consensus)
    return result


class _Distinct:
    """Ballots of some parts, with equal ones merged."""

    def __init__(self, data: Rankings, collapse: bool, agents: bool, most: int, method: str):
        self.collapse, self.most, self.method = collapse, most, method
        plain = data if agents else replace(data, agent=None, agents=None)
        self.data = self._refuse_large(replace(plain, score=None).collapsed() if collapse else plain)

    def merged(self, other: "_Distinct") -> "_Distinct":
        both, united = self.data + other.data, copy(self)
        united.data = self._refuse_large(both.collapsed() if self.collapse else both)
        return united

    def _refuse_large(self, data: Rankings) -> Rankings:
        if array_bytes(data) > self.most:
            sums = [name for name, rule in RULES.items() if rule.adds or rule.pairs_suffice]
            models = ["bradley-terry", "plackett-luce", "pmop-fd", "pmop", "mpm"]
            raise DataError(
                f"{self.method!r} needs all different ballots at once, and {len(data):,} of them take more than "
                f"{self.most:,} bytes (a quarter of PLACET_MEMORY); use a method that works on sums: {models + sums}"
            )
        return data
