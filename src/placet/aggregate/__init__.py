"""Aggregation: from ballots, votes, rank lists or ratings to a consensus that knows its own uncertainty.

A model is an estimator in `MODELS`, a rule a function in `RULES`; `consensus` serves both and gives a `Consensus`.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from placet.aggregate.bradley_terry import BradleyTerry
from placet.aggregate.cps import CosetPermutation
from placet.aggregate.likelihood import PMOP, PlackettLuce, PMOPFullDecomposition
from placet.aggregate.mallows import Mallows
from placet.aggregate.mpm import MultinomialPreference
from placet.aggregate.resample import resampled
from placet.aggregate.result import Consensus
from placet.aggregate.rules import RULES
from placet.aggregate.spectral import SingularValueProjection
from placet.data import Comparisons, Rankings
from placet.data.errors import one_of

__all__ = ["MODELS", "RULES", "Consensus", "consensus"]

MODELS: dict[str, type] = {
    "bradley-terry": BradleyTerry,
    "plackett-luce": PlackettLuce,
    "pmop-fd": PMOPFullDecomposition,
    "pmop": PMOP,
    "mpm": MultinomialPreference,
    "mallows": Mallows,
    "cps": CosetPermutation,
    "svp": SingularValueProjection,
}
"""Name -> estimator class: ``fit(data)`` sets ``theta_``, ``consensus_`` and ``fit_``, and returns the estimator."""


def consensus(
    data: Rankings | Comparisons,
    method: str = "plackett-luce",
    *,
    bootstrap: int = 0,
    random_state: int = 0,
    **params: Any,
) -> Consensus:
    """Consensus of ballots or votes by a model of `MODELS` or a rule of `RULES`; ``params`` are those of the method.

    ``bootstrap`` is a number of rounds: ballots or votes are resampled by multinomial counts and the method is run on
    each, which gives every method, rules too, standard errors and rank intervals.
    """
    if not isinstance(data, Rankings | Comparisons):
        raise TypeError(
            f"data must be Rankings or Comparisons, not {type(data).__name__}; "
            "Rankings.from_orders and Comparisons.from_battles make them"
        )
    one_of(method, [*MODELS, *RULES], "method")
    if bootstrap < 0 or bootstrap == 1:
        raise ValueError(f"bootstrap must be 0 or at least 2 rounds, not {bootstrap}")
    chosen = MODELS.get(method) or RULES[method]
    if "random_state" in inspect.signature(chosen).parameters:
        params = {"random_state": random_state, **params}
    if method in RULES:
        result = Consensus(data.items, RULES[method](data, **params), method=method, params=params)
        again: Callable[..., Any] = lambda sample: RULES[method](sample, **params)  # noqa: E731
    else:
        model = MODELS[method](**params).fit(data)
        result = model.consensus_
        again = lambda sample: _refit(model, sample)  # noqa: E731
        if bootstrap and hasattr(model, "bootstrap"):
            return model.bootstrap(data, bootstrap, random_state=random_state)
    if not bootstrap:
        return result
    rng = np.random.default_rng(random_state)
    draws = np.array([again(resampled(data, rng)) for _ in range(bootstrap)])
    notes = (*result.notes, f"uncertainty from {bootstrap} bootstrap rounds of multinomial counts")
    return replace(result, stderr=None, covariance=None, draws=draws, notes=notes)


def _refit(model: Any, sample: Rankings | Comparisons) -> Any:
    """Scores of the same model on resampled data, started from the scores it has where it can."""
    params = model.get_params(deep=False)
    again = type(model)(**(params | {"stderr": None} if "stderr" in params else params))
    start = {"start": model.theta_} if "start" in inspect.signature(again.fit).parameters else {}
    return again.fit(sample, **start).consensus_.scores
