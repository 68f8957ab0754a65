"""Boosting of NDCG-consistent surrogates: functional gradient descent with weak ranking functions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from placet.data import Queries
from placet.data.arrays import Floats, Ints
from placet.losses import Bound
from placet.rank import similarity
from placet.rank.boosting.additive import Additive, Backend, BoostingRound, NewTerm, reason_no_edge
from placet.rank.boosting.score_level import best_constant
from placet.rank.controls import effects_of
from placet.rank.saving.fitted_state import Learned, holds


class ConsistentBooster(Additive):
    """F = level + sum_t alpha_t h_t, where h_t is the weak ranking function with the largest |<d, h>| / |h|, d = dR/ds.

    R is the loss per unit weight: a Bregman surrogate, whose gradient is d = grad psi*(s) - G(r) / |G(r)|_D, or any
    other entry of ``LOSSES``.  The surrogates are not shift-invariant, though a shift changes no order:
    ``start="level"`` begins at the best constant, and ``center`` subtracts the mean of each column; "zero" and False
    are as published, and waste the features on fitting the shift.

    ``rounds_`` records the edge gamma = <d, h> / (|d|_1 |h|_inf) of each round.  Proposition 4: if, for all scores,
    some weak function has an edge above a fixed positive gamma, the training loss converges to its minimum over all
    scores, and the learners can be boosted to the optimum for NDCG.  A few columns have no such bound: their edge
    goes to 0, and the loss to its minimum over their span.  ``fit_summary_`` has the "least edge", and why training
    "stopped": no learner with an edge above ``min_edge``, ``patience`` rounds without a better ``metric`` on the
    validation set, or ``n_rounds`` reached.

    ``fit(..., control=Z)`` fits F + Z @ gamma: every round is followed by a line search along each control;
    ``controls_`` holds gamma by name, and `predict` returns F alone.

    Parameters
    ----------
    loss : str
        A name in ``LOSSES`` without learned parameters, such as "bregman-ce", "bregman-square", "bregman-qnorm", or
        "bregman" with ``loss_params={"psi": ..., "alpha": ...}``.
    n_rounds : int
        Maximum number of rounds.
    learners : str or sequence of str
        Families that compete in every round: "feature" (x_k), "stump", "tree", "listwise" (x_k or 1, times exp(w T)
        divided by its maximum in the list, T the sums of ``kernels`` over the other rows).
    step : str
        "line-search" (Newton step along h, halved until the loss falls) or "projection" (alpha = -<g, h> / |h|^2,
        g the gradient of the loss summed over queries, as published; training stops if it overshoots).
    learning_rate : float
        Factor of either step.
    subsample : float
        Fraction of the queries drawn for each round.
    feature_fraction : float
        Fraction of the features drawn for each round.
    kernels : sequence
        Similarities of the listwise learners: see ``placet.rank.similarity``.
    bandwidth : float
        Bandwidth of "gaussian".
    backend : str
        Tree library: "lightgbm" or "sklearn".
    leaves : int
        Maximum leaves per tree.
    min_rows : int
        Minimum rows per leaf.
    start : str
        "level" or "zero".
    center : bool
        Subtract the mean of each column.
    min_edge : float
        Stop when no learner has a larger edge.
    patience : int
        Stop after this many rounds without a better ``metric``.
    metric : str
        Validation metric.
    loss_params : mapping, optional
        Parameters of the loss.
    random_state : int
        Seed of the draws.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> booster = ConsistentBooster("bregman-square", n_rounds=30).fit(data[:40])
    >>> booster.rounds_[0].learner, booster.score(data[40:]) > 0.9
    ('feature', True)
    """

    needs = ("no learned parameters",)
    takes_control = True
    _state = holds(**Additive._state, controls_=Learned())

    def __init__(
        self,
        loss: str = "bregman-ce",
        n_rounds: int = 300,
        *,
        learners: str | Sequence[str] = "feature",
        step: Literal["line-search", "projection"] = "line-search",
        learning_rate: float = 1.0,
        subsample: float = 1.0,
        feature_fraction: float = 1.0,
        kernels: Sequence[similarity.SimilarityKernel] = ("cosine",),
        bandwidth: float = 0.25,
        backend: Backend = "lightgbm",
        leaves: int = 16,
        min_rows: int = 20,
        start: Literal["level", "zero"] = "level",
        center: bool = True,
        min_edge: float = 1e-6,
        patience: int = 50,
        metric: str = "ndcg@10",
        loss_params: Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.n_rounds = n_rounds
        self.learners = learners
        self.step = step
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.feature_fraction = feature_fraction
        self.kernels = kernels
        self.bandwidth = bandwidth
        self.backend = backend
        self.leaves = leaves
        self.min_rows = min_rows
        self.start = start
        self.center = center
        self.min_edge = min_edge
        self.patience = patience
        self.metric = metric
        self.loss_params = loss_params
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        self._check()
        params = self._loss_record().training_parameters(self.loss_params)
        bound = Bound(self.loss, queries.lists(), params)
        model = self._new_sum(queries)
        model.level = best_constant(bound) if self.start == "level" else 0.0
        groups = self._families(queries, model)
        rng = np.random.default_rng(self.random_state)
        s = np.full(len(queries.grade), model.level)
        value, d = bound.value_and_grad(s)
        at_start = value
        effects = effects_of(self._control)

        def step_controls() -> None:
            """Take a step along each control."""
            nonlocal s, value, d
            if effects is None:
                return
            moved = np.zeros(len(effects.effect))
            for k in range(len(moved)):
                moved[k], s, value, d = line_step(bound, s, value, d, effects.Z[:, k])
            effects.move(moved)

        def make(n: int) -> NewTerm | str:
            nonlocal s, value, d
            found = self._best_learner(groups, d, *self._draw(queries, rng))
            if found is None or found[3] <= self.min_edge:
                return reason_no_edge(n, 0.0 if found is None else found[3], self.min_edge)
            name, h, function, gamma = found
            alpha, after, new_value, new_d = self._make_step(bound, s, value, d, h)
            if alpha == 0.0 or not (new_value <= value or (self.subsample < 1 and self.step == "projection")):
                return reason_no_step(n, value, new_value, alpha)
            s, value, d = after, new_value, new_d
            step_controls()
            return NewTerm(function, alpha, BoostingRound(name, float(alpha), float(gamma), float(value), None))

        best, stopped = self._boost(model, groups, valid, make)
        self.controls_: dict[str, float] = {} if effects is None else effects.values_after(best.state)
        self.fit_summary_ = {
            **self._summary(best, stopped, at_start),
            "least edge": min((r.gamma for r in self.rounds_), default=0.0),
        }

    def _make_step(
        self, bound: Bound, s: Floats, value: float, d: Floats, h: Floats
    ) -> tuple[float, Floats, float, Floats]:
        """Factor of h, and scores, loss and gradient after the step."""
        if self.step == "projection":
            alpha = -self.learning_rate * bound.total * float(d @ h) / float(h @ h)
        else:
            whole, after, new_value, new_d = line_step(bound, s, value, d, h)
            alpha = self.learning_rate * whole
            if self.learning_rate == 1.0:
                return alpha, after, new_value, new_d
        after = s + alpha * h
        return alpha, after, *bound.value_and_grad(after)

    def _best_learner(self, groups: dict[str, Any], d: Floats, rows: Ints | None, columns: Ints | None) -> Any:
        """(family, h, function, gamma) of the candidate with the largest margin on the rows drawn."""
        best, best_margin = None, 0.0
        own = d if rows is None else d[rows]
        for name, group in groups.items():
            proposal = group.propose(d, rows, None if name == "listwise" else columns)
            if proposal is None:
                continue
            h, function = proposal
            part = h if rows is None else h[rows]
            length = float(np.sqrt(part @ part))
            dot = abs(float(own @ part))
            if length > 0 and dot / length > best_margin:
                best_margin = dot / length
                best = name, h, function, dot / (float(np.abs(own).sum()) * float(np.abs(part).max()))
        return best

    def _check(self) -> None:
        self._check_learners()
        if not (
            self.learning_rate > 0 and 0 < self.subsample <= 1 and 0 < self.feature_fraction <= 1 and self.min_edge >= 0
        ):
            raise ValueError(
                "learning_rate must be above 0, subsample and feature_fraction in (0, 1], min_edge not negative"
            )


def line_step(bound: Bound, s: Floats, value: float, d: Floats, h: Floats) -> tuple[float, Floats, float, Floats]:
    """Newton step along h, halved until the value falls by 1e-4 of the first-order prediction; 0 if it never does.

    Returns the step, and the scores, value and gradient after it.
    """
    slope, bend = float(d @ h), curvature_along(bound, s, h)
    step = -slope / bend if bend > 0 and np.isfinite(bend) else -slope * bound.total / float(h @ h)
    for _ in range(60):
        after = s + step * h
        new_value, new_d = bound.value_and_grad(after)
        if new_value <= value + 1e-4 * step * slope:
            return step, after, new_value, new_d
        step *= 0.5
    return 0.0, s, value, d


def curvature_along(bound: Bound, s: Floats, h: Floats) -> float:
    """Curvature <h, H h> along h, by a difference of gradients if the loss has no Hessian product."""
    if "hvp" in bound.loss.gives:
        return float(h @ bound.hvp(s, h))
    small = 1e-6 / max(float(np.abs(h).max(initial=0.0)), 1e-300)
    return float((bound.value_and_grad(s + small * h)[1] - bound.value_and_grad(s)[1]) @ h) / small


def reason_no_step(n: int, value: float, after: float, alpha: float) -> str:
    if alpha == 0.0:
        return f"no step along the best learner lowers the loss after {n} rounds: it is at its minimum, up to rounding"
    return (
        f"the step of round {n + 1} raises the loss from {value:.4g} to {after:.4g}; lower learning_rate or use "
        "step='line-search'"
    )
