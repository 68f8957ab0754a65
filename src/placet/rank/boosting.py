"""Boosting of NDCG-consistent surrogates: functional gradient descent with weak ranking functions."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.data.rankings import rows_of
from placet.kernels import boosting as kernels
from placet.losses import Bound
from placet.rank import similarity, weak
from placet.rank.forest import check_nodes
from placet.rank.ranker import Ranker
from placet.rank.state import Array, Number, Record, Several, holds
from placet.rank.validation import Best


class Round(NamedTuple):
    """One round of boosting: what was added, by what factor, and its edge <gradient, h> / (|gradient|_1 |h|_inf)."""

    learner: str
    step: float
    gamma: float
    value: float
    validation: float | None


class ConsistentBooster(Ranker):
    """F = level + sum_t alpha_t h_t, each h_t the weak ranking function with the largest |<d, h>| / |h|, d = dR / ds.

    R is the loss per unit weight: a Bregman surrogate, whose gradient is d = grad psi*(s) - G(r) / |G(r)|_D, or any
    other loss of the table.  The surrogates are not invariant to shifts, though a shift changes no order:
    ``start="level"`` begins at the best constant, and ``center`` takes the mean from columns; "zero" and False are as
    published, and waste the features on the level.

    ``rounds_`` tells the edge gamma of each round: while gamma stays above some positive number the training loss goes
    to its minimum over the span of the learners.  ``fit_summary_["stopped"]`` says why training ended: no learner with
    an edge above ``min_edge``, ``patience`` rounds without a better ``metric`` on the validation set, or all rounds.

    Parameters
    ----------
    loss : str
        A name of ``LOSSES`` without learnt parameters, such as "bregman-ce", "bregman-square", "bregman-qnorm", or
        "bregman" with ``loss_params={"psi": ..., "alpha": ...}``.
    n_rounds : int
        Rounds at most.
    learners : str or sequence of str
        Which compete in every round: "feature" (x_k), "stump", "tree", "listwise" (x_k or 1, times exp(w T) over its
        largest in the list, T the sums of ``kernels`` over the other rows).
    step : str
        "line-search" (Newton's step along h, halved until the loss falls) or "projection" (alpha = -<g, h> / |h|^2,
        g the gradient of the loss summed over queries, as published; where it overshoots training stops and says so).
    learning_rate : float
        Factor of either step.
    subsample : float
        Share of the queries drawn for each round.
    feature_fraction : float
        Share of the features drawn for each round.
    kernels : sequence
        Similarities of the listwise learners: see ``placet.rank.similarity``.
    bandwidth : float
        Of the kernel "gaussian".
    engine : str
        What grows trees: "lightgbm" or "sklearn".
    leaves : int
        Leaves of a tree at most.
    min_rows : int
        Rows of a leaf at least.
    start : str
        "level" or "zero".
    center : bool
        Take the mean from columns.
    min_edge : float
        Training stops where no learner has a larger edge.
    patience : int
        Rounds without a better ``metric`` before training stops.
    metric : str
        Judges on the validation set.
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

    needs = ("no learnt parameters",)
    _state = holds(
        level_=Number(),
        coef_=Array("features"),
        listwise_coef_=Array("listwise"),
        nodes_=Array(3, "nodes", dtype="int64", low=-1),
        node_value_=Array("nodes"),
        node_threshold_=Array("nodes"),
        roots_=Array("trees", dtype="int64", low=0),
        scale_=Array("kernels", above=0),
        rounds_=Several(Record(((str,), (float,), (float,), (float,), (float, None)))),
    )

    def __init__(
        self,
        loss: str = "bregman-ce",
        n_rounds: int = 300,
        *,
        learners: str | Sequence[str] = "feature",
        step: str = "line-search",
        learning_rate: float = 1.0,
        subsample: float = 1.0,
        feature_fraction: float = 1.0,
        kernels: Sequence[similarity.Kernel] = ("cosine",),
        bandwidth: float = 0.25,
        engine: str = "lightgbm",
        leaves: int = 16,
        min_rows: int = 20,
        start: str = "level",
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
        self.engine = engine
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
        model = Sum(queries.n_features, len(self.kernels) if "listwise" in self._names() else 0)
        model.level = best_constant(bound) if self.start == "level" else 0.0
        if model.n_listwise:
            deviation = similarity.center(self._sums(queries), queries.offsets).std(axis=0)
            model.scale = np.where(deviation > 0, deviation, 1.0)
        groups = weak.families(
            self._names(), queries.X, self._listwise(queries, model.scale), center=self.center, engine=self.engine,
            leaves=self.leaves, min_rows=self.min_rows, random_state=self.random_state,
        )  # fmt: skip
        running = None if valid is None else RunningScores(valid, self._listwise(valid, model.scale), model.level)
        best, stopped = self._boost(queries, bound, model, groups, valid, running)
        model.cut(best.state)
        self.coef_, self.listwise_coef_ = model.coefficients()
        moved = [
            groups[name].mean @ w for name, w in (("feature", self.coef_), ("listwise", self.listwise_coef_)) if w.any()
        ]
        self.level_, self.scale_ = model.whole_level() - float(sum(moved)), model.scale
        self.nodes_, self.node_threshold_, self.node_value_, self.roots_ = model.trees()
        start = np.full(len(queries.grade), model.level)
        self.fit_summary_ = {
            "stopped": stopped,
            "rounds": len(self.rounds_),
            "rounds kept": best.state,
            "value": self.rounds_[best.state - 1].value if best.state else bound.value_and_grad(start)[0],
            "least edge": min((r.gamma for r in self.rounds_), default=0.0),
            **best.summary(),
        }

    def _boost(
        self,
        queries: Queries,
        bound: Bound,
        model: "Sum",
        groups: dict[str, Any],
        valid: Queries | None,
        running: "RunningScores | None",
    ) -> tuple[Best[int], str]:
        """Makes the rounds; their best number, and why there are no more."""
        rng = np.random.default_rng(self.random_state)
        s = np.full(len(queries.grade), model.level)
        value, d = bound.value_and_grad(s)
        self.rounds_: list[Round] = []
        judge = self._judge(valid, lambda n: running.s)  # type: ignore[union-attr]
        best = self._keep_best(judge, self.n_rounds, patience=self.patience)
        stopped = "interrupted"
        with best:
            best.consider(0)
            while True:
                n = len(self.rounds_)
                if n == self.n_rounds:
                    stopped = f"all {n} rounds were made; raise n_rounds for more"
                    break
                if best.stale:
                    stopped = f"{self.patience} rounds without a better {self.metric} on the validation set"
                    break
                found = self._best_learner(groups, d, *self._draw(queries, rng))
                if found is None or found[3] <= self.min_edge:
                    stopped = reason_no_edge(n, 0.0 if found is None else found[3], self.min_edge)
                    break
                name, h, function, gamma = found
                alpha, after, new_value, new_d = self._make_step(bound, s, value, d, h)
                if alpha == 0.0 or not (new_value <= value or (self.subsample < 1 and self.step == "projection")):
                    stopped = reason_no_step(n, value, new_value, alpha)
                    break
                s, value, d = after, new_value, new_d
                if running is not None:
                    running.add(name, function, alpha)
                model.add(name, function, alpha)
                self.rounds_.append(Round(name, float(alpha), float(gamma), float(value), None))
                quality = best.see(n + 1)
                self.rounds_[-1] = self.rounds_[-1]._replace(validation=quality)
        return best, stopped

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
        """(family, h, function, gamma) of the proposal with the largest margin on the rows drawn."""
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

    def _draw(self, queries: Queries, rng: np.random.Generator) -> tuple[Ints | None, Ints | None]:
        """Rows of the queries and features that this round may look at."""
        rows = columns = None
        if self.subsample < 1:
            n = max(1, round(self.subsample * len(queries)))
            rows = rows_of(queries.offsets, np.sort(rng.choice(len(queries), n, replace=False)))[0]
        if self.feature_fraction < 1:
            n = max(1, round(self.feature_fraction * queries.n_features))
            columns = np.sort(rng.choice(queries.n_features, n, replace=False))
        return rows, columns

    def _sums(self, queries: Queries) -> Floats:
        return similarity.sums(self.kernels, queries.X, queries.offsets, queries.relations, bandwidth=self.bandwidth)

    def _listwise(self, queries: Queries, scale: Floats) -> Any:
        if "listwise" not in self._names():
            return None
        return weak.listwise_table(queries.X, self._sums(queries) / scale, queries.offsets)

    def _scores(self, queries: Queries) -> Floats:
        out = np.full(len(queries.grade), float(self.level_))
        if self.coef_.any():
            out += np.asarray(queries.X @ self.coef_, dtype=np.float64)
        if self.listwise_coef_.any():
            out += self._listwise(queries, self.scale_) @ self.listwise_coef_
        if len(self.roots_):
            X = np.ascontiguousarray(queries.X, np.float64)
            feature, left, right = np.ascontiguousarray(self.nodes_)
            kernels.add_trees(X, feature, self.node_threshold_, left, right, self.node_value_, self.roots_, out)
        return out

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any] | None) -> "ConsistentBooster":
        ranker = super().from_saved(params, state)
        if state is not None:
            ranker.rounds_ = [Round(*row) for row in ranker.rounds_]
        return ranker

    def _check_state(self) -> None:
        n = self.n_features_in_
        model = Sum(n, len(self.kernels) if "listwise" in self._names() else 0)
        if (len(self.listwise_coef_), len(self.scale_)) != (model.n_listwise, len(model.scale)):
            raise DataError(f"{len(self.listwise_coef_)} weights of products do not fit {len(model.scale)} kernels")
        feature, left, right = self.nodes_
        check_nodes(feature, left, right, self.roots_, n)

    def _names(self) -> tuple[str, ...]:
        return (self.learners,) if isinstance(self.learners, str) else tuple(self.learners)

    def _check(self) -> None:
        unknown = [name for name in self._names() if name not in weak.LEARNERS]
        if unknown or not self._names():
            raise ValueError(f"learners {self.learners!r} are unknown; choose from {list(weak.LEARNERS)}")
        one_of(self.step, ("line-search", "projection"), "step")
        one_of(self.start, ("level", "zero"), "start")
        one_of(self.engine, ("lightgbm", "sklearn"), "engine")
        if self.n_rounds < 1 or self.patience < 1 or self.leaves < 2 or self.min_rows < 1:
            raise ValueError("n_rounds, patience and min_rows must be at least 1, leaves at least 2")
        if not (
            self.learning_rate > 0 and 0 < self.subsample <= 1 and 0 < self.feature_fraction <= 1 and self.min_edge >= 0
        ):
            raise ValueError(
                "learning_rate must be above 0, subsample and feature_fraction in (0, 1], min_edge not negative"
            )


def line_step(bound: Bound, s: Floats, value: float, d: Floats, h: Floats) -> tuple[float, Floats, float, Floats]:
    """Newton's step along h, halved until the value falls by 1e-4 of what the slope promises; 0 if none does.

    Returns the step, and scores, value and gradient after it.
    """
    slope, bend = float(d @ h), bend_along(bound, s, h)
    step = -slope / bend if bend > 0 and np.isfinite(bend) else -slope * bound.total / float(h @ h)
    for _ in range(60):
        after = s + step * h
        new_value, new_d = bound.value_and_grad(after)
        if new_value <= value + 1e-4 * step * slope:
            return step, after, new_value, new_d
        step *= 0.5
    return 0.0, s, value, d


def bend_along(bound: Bound, s: Floats, h: Floats) -> float:
    """<h, H h>, by a difference of gradients where the loss has no Hessian product."""
    if "hvp" in bound.loss.gives:
        return float(h @ bound.hvp(s, h))
    small = 1e-6 / max(float(np.abs(h).max(initial=0.0)), 1e-300)
    return float((bound.value_and_grad(s + small * h)[1] - bound.value_and_grad(s)[1]) @ h) / small


def best_constant(bound: Bound) -> float:
    """The constant score with the least loss: over powers of 2, for losses can be flat far from it, then Newton's way.

    0 where the loss is invariant to shifts.
    """
    if bound.loss.shift_invariant:
        return 0.0
    ones = np.ones(bound.n_rows)
    steps = 2.0 ** np.arange(-14, 8)
    coarse = float(min([0.0, *steps, *-steps], key=lambda c: bound.value_and_grad(c * ones)[0]))
    return coarse + bound.best_level(coarse * ones)


class Sum:
    """The weak functions added so far, with their factors."""

    def __init__(self, n_features: int, n_kernels: int) -> None:
        self.n_features = n_features
        self.n_listwise = n_kernels * len(weak.EXPONENTS) * (n_features + 1)
        self.level, self.scale = 0.0, np.ones(n_kernels)
        self.parts: list[tuple[str, Any, float]] = []

    def add(self, name: str, function: Any, alpha: float) -> None:
        self.parts.append((name, function, alpha))

    def cut(self, n: int) -> None:
        del self.parts[n:]

    def whole_level(self) -> float:
        """The level at the start and all constants added since."""
        return self.level + float(sum(alpha for _, (kind, _), alpha in self.parts if kind == "level"))

    def coefficients(self) -> tuple[Floats, Floats]:
        """Weights of the features and of the listwise columns."""
        coef, listwise = np.zeros(self.n_features), np.zeros(self.n_listwise)
        for name, (kind, k), alpha in self.parts:
            if kind == "column":
                (coef if name == "feature" else listwise)[k] += alpha
        return coef, listwise

    def trees(self) -> tuple[Ints, Floats, Floats, Ints]:
        """(feature, left, right) of all nodes, their thresholds and values, and the roots."""
        all_nodes = [nodes.times(alpha) for _, (kind, nodes), alpha in self.parts if kind == "tree"]
        starts = np.cumsum([0] + [len(nodes.feature) for nodes in all_nodes])[:-1]
        if not all_nodes:
            return np.zeros((3, 0), np.int64), np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
        whole = [np.vstack([n.feature, n.left + at, n.right + at]) for n, at in zip(all_nodes, starts)]
        threshold = np.concatenate([n.threshold for n in all_nodes])
        value = np.concatenate([n.value for n in all_nodes])
        return np.concatenate(whole, axis=1).astype(np.int64), threshold, value, starts.astype(np.int64)


class RunningScores:
    """Scores of the validation rows, to which each weak function is added."""

    def __init__(self, valid: Queries, listwise: Floats | None, level: float) -> None:
        self.tables = {"feature": valid.X, "listwise": listwise}
        self.dense = np.ascontiguousarray(valid.X, np.float64) if isinstance(valid.X, np.ndarray) else None
        self.s = np.full(len(valid.grade), level)

    def add(self, name: str, function: Any, alpha: float) -> None:
        kind, what = function
        if kind == "column":
            self.s = self.s + alpha * weak.column(self.tables[name], what)  # the mean is missing: it moves all alike
        elif kind == "tree":
            assert self.dense is not None
            self.s = self.s + alpha * what(self.dense)


def reason_no_edge(n: int, gamma: float, least: float) -> str:
    return f"no weak learner has an edge after {n} rounds: gamma {gamma:.2g} is not above {least:.2g}"


def reason_no_step(n: int, value: float, after: float, alpha: float) -> str:
    if alpha == 0.0:
        return f"no step along the best learner lowers the loss after {n} rounds: it is at its minimum, up to rounding"
    return (
        f"the step of round {n + 1} raises the loss from {value:.4g} to {after:.4g}; lower learning_rate or use "
        "step='line-search'"
    )
