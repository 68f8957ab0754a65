"""Forecasts of dated votes: scores as they are known after each vote, and updates without a refit."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placet.data import Comparisons, DataError
from placet.data.arrays import Floats
from placet.data.times import TimeSteps
from placet.kernels.aggregate import vote_filter
from placet.losses.pairwise import PAIR_MODELS

if TYPE_CHECKING:
    from placet.aggregate.result.learned.history import History

NODES = 9
"""Nodes of the Gauss-Hermite quadrature over the result of one vote."""

MODELS_OF_TIES = {
    "bradley-terry": vote_filter.BRADLEY_TERRY,
    "rao-kupper": vote_filter.RAO_KUPPER,
    "davidson": vote_filter.DAVIDSON,
}


@dataclass(frozen=True)
class VoteLaw:
    """What a vote says, given scores: the model of ties, its parameter, and the effects of controls in their units."""

    family: str
    tie: float
    effect: Floats
    order: bool

    def offset(self, votes: Comparisons) -> Floats:
        """What controls add to the difference of the two scores (rows,)."""
        k = len(self.effect) - int(self.order)
        if (0 if votes.control is None else votes.control.shape[1]) != k:
            raise DataError(f"these votes do not have the {k} controls of the board; read them with the same control=")
        shown = np.zeros(len(votes)) if votes.control is None else votes.control @ self.effect[:k]
        return shown + self.effect[k] if self.order else shown


@dataclass(frozen=True)
class Forecast:
    """Scores after the last vote: ``mean`` and ``variance`` (items,), and ``last``, when each item was last compared.

    Times are in steps; ``last`` is NaN for items without votes.  ``prior``, ``drift`` and ``form`` are standard
    deviations: of a first score, of its change in a step, and of what is particular to a single comparison.
    """

    mean: Floats
    variance: Floats
    last: Floats
    prior: float
    drift: float
    form: float
    law: VoteLaw
    steps: TimeSteps

    def at_step(self, tau: float) -> tuple[Floats, Floats]:
        """Means and variances (items,) at a time, counted in steps, not before the last vote."""
        idle = np.where(np.isnan(self.last), 0.0, np.maximum(tau - self.last, 0.0))
        return self.mean, self.variance + self.drift**2 * idle

    def gap(self, a: int, b: int, tau: float) -> tuple[float, float]:
        """Mean and standard deviation of the difference of items ``a`` and ``b`` in one comparison."""
        mean, variance = self.at_step(tau)
        return float(mean[a] - mean[b]), math.sqrt(float(variance[a] + variance[b]) + self.form**2)

    def updated(self, votes: Comparisons) -> "tuple[Forecast, Floats]":
        """After more votes on the same items, and -log of the probability that each row of votes had.  O(votes)."""
        if votes.time is None:
            raise DataError("these votes have no time; name its column: read_battles(..., time=)")
        time = self.steps.fraction(votes.time)
        newest = float(np.nanmax(self.last)) if not np.isnan(self.last).all() else -math.inf
        if len(time) and time.min() < newest:
            n = int((time < newest).sum())
            raise DataError(f"{n} of these votes are older than the board; fit all votes together")
        state = (self.mean.copy(), self.variance.copy(), self.last.copy())
        cost = filter_votes(votes, time, self.law, self.drift, self.form, state)
        return replace(self, mean=state[0], variance=state[1], last=state[2]), cost


def filter_votes(
    votes: Comparisons, time: Floats, law: VoteLaw, drift: float, form: float, state: tuple[Floats, Floats, Floats]
) -> Floats:
    """Update the ``state`` (mean, variance, last) by the votes; returns the cost (rows,) in the order of the votes."""
    rows = np.argsort(time, kind="stable")
    node, weight = np.polynomial.hermite_e.hermegauss(NODES)
    columns: list[Any] = [votes.i, votes.j, votes.wins_i, votes.wins_j, votes.ties, law.offset(votes), time]
    tie = PAIR_MODELS[law.family].inner(law.tie) if math.isfinite(law.tie) else 0.0
    cost, found = np.empty(len(rows)), np.empty(len(rows))
    vote_filter.filter_votes(
        *(np.ascontiguousarray(column[rows]) for column in columns),
        tie, MODELS_OF_TIES[law.family], drift, form, node, weight / weight.sum(), *state, cost,
    )  # fmt: skip
    found[rows] = cost
    return found


def join_votes(history: "History", votes: Comparisons) -> "tuple[History, float]":
    """The history with its forecast after the votes, and their number; new items follow those of the history.

    The scores over time remain those of the fit.
    """
    forecast = history.forecast
    if forecast is None:
        raise ValueError("this board cannot be updated: it was fitted with raters; fit all votes together")
    if forecast.law.order and not votes.ordered:
        raise DataError("these votes do not say who came first, as the board does; read them with ordered=True")
    new = tuple(name for name in votes.items if name not in history.number)
    items = (*history.items, *new)
    number = {name: k for k, name in enumerate(items)}
    code = np.array([number[name] for name in votes.items], np.int64)
    counts = {name: getattr(votes, name) for name in ("wins_i", "wins_j", "ties", "control", "controls", "time")}
    if votes.time is not None and votes.time.dtype.kind != np.asarray(history.last).dtype.kind:
        raise DataError(
            "the times of these votes are numbers where those of the board are dates, or the other way round"
        )
    votes = Comparisons(code[votes.i], code[votes.j], items=items, ordered=votes.ordered, **counts)
    grown = (np.zeros(len(new)), np.full(len(new), forecast.prior**2), np.full(len(new), math.nan))
    mean, variance, last = (np.append(a, b) for a, b in zip((forecast.mean, forecast.variance, forecast.last), grown))
    after, _ = replace(forecast, mean=mean, variance=variance, last=last).updated(votes)
    n = votes.wins_i + votes.wins_j + votes.ties
    more = np.bincount(votes.i, n, len(items)) + np.bincount(votes.j, n, len(items))
    columns: dict[str, Any] = {
        "items": items,
        "offsets": np.append(history.offsets, np.full(len(new), history.offsets[-1])),
        "support": None if history.support is None else np.append(history.support, np.zeros(len(new))) + more,
        "last": history.last if votes.time is None or not len(votes) else max(history.last, votes.time.max()),
    }
    return replace(history, forecast=after, **columns), float(n.sum())
