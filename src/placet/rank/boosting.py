"""Boosting of NDCG-consistent surrogates: functional gradient descent with weak ranking functions."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data import Lists, Queries
from placet.data.arrays import Floats, Ints
from placet.data.rankings import rows_of
from placet.kernels import boosting as kernels
from placet.kernels import ranges
from placet.losses import HVPS, LEARNT, LOSSES
from placet.metrics import metric as metric_of
from placet.rank import similarity, weak
from placet.rank.objective import parameters_for
from placet.rank.ranker import Ids, Ranker, mean_defined, restored


class Round(NamedTuple):
    """One round of boosting: what was added, by what factor, and its edge <gradient, h> / (|gradient|_1 |h|_inf)."""

    learner: str
    step: float
    gamma: float
    value: float
    validation: float | None


class ConsistentBooster(Ranker):
    """F = level + sum_t alpha_t h_t, each h_t the weak ranking function with the largest |<d, h>| / |h|, d = dR / ds.

    R is the loss per unit weight: any Bregman surrogate ("bregman-ce", "bregman-square", "bregman-qnorm", or "bregman"
    with ``loss_params={"psi": ..., "alpha": ...}``), whose gradient is d = grad psi*(s) - G(r) / |G(r)|_D, or any other
    loss of the table.  These losses see the level of the scores, though it changes no order: ``start="level"`` begins
    at the best constant, and ``centre`` takes the mean from columns; "zero" and False are as published, and waste the
    features on the level.

    ``learners``, one or several that compete in every round: "feature" (x_k), "stump", "tree" (at most ``leaves``
    leaves, by ``engine`` "lightgbm" or "sklearn"), "listwise" (x_k or 1, times exp(w T) with the sums T of ``kernels``
    over the other rows).  ``step``: "line-search" (Newton's step along h, halved until the loss falls) or "projection"
    (alpha = -rate <g, h> / |h|^2 with g the gradient of the loss summed over queries, as published; where it overshoots
    training stops and says so).
    Either is multiplied by ``rate``.  ``rows`` and ``columns``: the share of queries and features drawn in each round.

    ``rounds_`` tells the edge gamma of each round: while gamma stays above some positive number the training loss goes
    to its minimum over the span of the learners.  ``fit_summary_["stopped"]`` says why training ended: no learner with
    an edge above ``min_edge``, ``patience`` rounds without a better ``metric`` on the validation set, or all rounds.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> booster = ConsistentBooster("bregman-square", n_rounds=30).fit(data[:40])
    >>> booster.rounds_[0].learner, booster.score(data[40:]) > 0.9
    ('feature', True)
    """

    _state = (
        "level_",
        "coef_",
        "listwise_coef_",
        "nodes_",
        "node_value_",
        "node_threshold_",
        "roots_",
        "scale_",
        "rounds_",
    )

    def __init__(
        self,
        loss: str = "bregman-ce",
        n_rounds: int = 300,
        *,
        learners: str | Sequence[str] = "feature",
        step: str = "line-search",
        rate: float = 1.0,
        rows: float = 1.0,
        columns: float = 1.0,
        kernels: Sequence[similarity.Kernel] = ("cosine",),
        bandwidth: float = 0.25,
        engine: str = "lightgbm",
        leaves: int = 16,
        min_rows: int = 20,
        start: str = "level",
        centre: bool = True,
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
        self.rate = rate
        self.rows = rows
        self.columns = columns
        self.kernels = kernels
        self.bandwidth = bandwidth
        self.engine = engine
        self.leaves = leaves
        self.min_rows = min_rows
        self.start = start
        self.centre = centre
        self.min_edge = min_edge
        self.patience = patience
        self.metric = metric
        self.loss_params = loss_params
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        self._check()
        risk = Risk(queries.lists(), self.loss, parameters_for(self.loss, self.loss_params))
        model = Sum(queries.n_features, len(self.kernels) if "listwise" in self._names() else 0)
        model.level = risk.best_level() if self.start == "level" else 0.0
        listwise = self._listwise(queries, model, fitting=True)
        how: dict[str, Any] = {"engine": self.engine, "leaves": self.leaves, "min_rows": self.min_rows}
        groups = weak.families(self._names(), queries.X, listwise, centre=self.centre, seed=self.random_state, **how)
        watch = (
            None if valid is None else Held(valid, self._listwise(valid, model), metric_of(self.metric), model.level)
        )
        self.rounds_, kept, stopped = self._boost(queries, risk, model, groups, watch)
        model.cut(kept)
        self.coef_, self.listwise_coef_ = model.coefficients()
        moved = [
            groups[name].mean @ w for name, w in (("feature", self.coef_), ("listwise", self.listwise_coef_)) if w.any()
        ]
        self.level_, self.scale_ = model.whole_level() - float(sum(moved)), model.scale
        self.nodes_, self.node_threshold_, self.node_value_, self.roots_ = model.trees()
        self.fit_summary_ = {
            "stopped": stopped,
            "rounds": len(self.rounds_),
            "rounds kept": kept,
            "value": self.rounds_[kept - 1].value if kept else risk.value(np.full(len(queries.grade), model.level)),
            "least edge": min((r.gamma for r in self.rounds_), default=0.0),
            "validation": None if watch is None else watch.best,
        }

    def _boost(
        self, queries: Queries, risk: "Risk", model: "Sum", groups: dict[str, Any], watch: "Held | None"
    ) -> tuple[list[Round], int, str]:
        """Rounds, the number of them to keep, and why there are no more."""
        rng = np.random.default_rng(self.random_state)
        s = np.full(len(queries.grade), model.level)
        value, d = risk(s)
        rounds: list[Round] = []
        stopped = f"all {self.n_rounds} rounds were made; raise n_rounds for more"
        try:
            while len(rounds) < self.n_rounds:
                found = self._best(groups, d, *self._drawn(queries, rng))
                if found is None or found[3] <= self.min_edge:
                    stopped = no_edge(len(rounds), 0.0 if found is None else found[3], self.min_edge)
                    break
                name, h, function, gamma = found
                alpha, after, new_value, new_d = self._stepped(risk, s, value, d, h)
                if alpha == 0.0 or not (new_value <= value or (self.rows < 1 and self.step == "projection")):
                    stopped = no_step(len(rounds), value, new_value, alpha)
                    break
                s, value, d = after, new_value, new_d
                model.add(name, function, alpha)
                score = None if watch is None else watch.see(name, function, alpha)
                rounds.append(Round(name, float(alpha), float(gamma), float(value), score))
                self._tell(len(rounds), self.n_rounds, score)
                if watch is not None and len(rounds) - watch.best_round >= self.patience:
                    stopped = f"{self.patience} rounds without a better {self.metric} on the validation set"
                    break
        except KeyboardInterrupt:
            stopped = "interrupted"
        return rounds, len(rounds) if watch is None else watch.best_round, stopped

    def _stepped(
        self, risk: "Risk", s: Floats, value: float, d: Floats, h: Floats
    ) -> tuple[float, Floats, float, Floats]:
        """Factor of h, and scores, loss and gradient after the step."""
        if self.step == "projection":
            alpha = -self.rate * risk.total * float(d @ h) / float(h @ h)
        else:
            whole, after, new_value, new_d = risk.line_step(s, value, d, h)
            alpha = self.rate * whole
            if self.rate == 1.0:
                return alpha, after, new_value, new_d
        after = s + alpha * h
        return alpha, after, *risk(after)

    def _best(self, groups: dict[str, Any], d: Floats, rows: Ints | None, columns: Ints | None) -> Any:
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

    def _drawn(self, queries: Queries, rng: np.random.Generator) -> tuple[Ints | None, Ints | None]:
        """Rows of the queries and features that this round may look at."""
        rows = columns = None
        if self.rows < 1:
            n = max(1, round(self.rows * len(queries)))
            rows = rows_of(queries.offsets, np.sort(rng.choice(len(queries), n, replace=False)))[0]
        if self.columns < 1:
            n = max(1, round(self.columns * queries.n_features))
            columns = np.sort(rng.choice(queries.n_features, n, replace=False))
        return rows, columns

    def _listwise(self, queries: Queries, model: "Sum", fitting: bool = False) -> Floats | None:
        if "listwise" not in self._names():
            return None
        sums = similarity.sums(self.kernels, queries.X, queries.offsets, queries.relations, bandwidth=self.bandwidth)
        if fitting:
            deviation = sums.std(axis=0)
            model.scale = np.where(deviation > 0, deviation, 1.0)
        return weak.listwise_table(queries.X, sums, model.scale)

    def predict(self, X: Any, qid: Ids | None = None) -> Floats:
        """A score for every row, in the order given; with listwise learners the list matters: give ``qid``."""
        queries = self._seen(X, qid)
        out = np.full(len(queries.grade), float(self.level_))
        if self.coef_.any():
            out += np.asarray(queries.X @ self.coef_, dtype=np.float64)
        if self.listwise_coef_.any():
            sums = similarity.sums(
                self.kernels, queries.X, queries.offsets, queries.relations, bandwidth=self.bandwidth
            )
            out += weak.listwise_table(queries.X, sums, self.scale_) @ self.listwise_coef_
        if len(self.roots_):
            X64 = np.ascontiguousarray(queries.X, np.float64)
            feature, left, right = np.ascontiguousarray(self.nodes_)
            kernels.add_trees(X64, feature, self.node_threshold_, left, right, self.node_value_, self.roots_, out)
        return out if isinstance(X, Queries) else restored(queries, out)

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Floats:
        return self.predict(Queries(X, np.zeros(X.shape[0]), offsets, features=self.features_))

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any]) -> "ConsistentBooster":
        ranker = super().from_saved(params, state)
        ranker.rounds_ = [Round(*row) for row in state["rounds_"]]
        return ranker

    def _names(self) -> tuple[str, ...]:
        return (self.learners,) if isinstance(self.learners, str) else tuple(self.learners)

    def _check(self) -> None:
        if self.loss not in LOSSES or self.loss in LEARNT:
            raise ValueError(f"loss {self.loss!r} is unknown here; choose from {sorted(set(LOSSES) - set(LEARNT))}")
        unknown = [name for name in self._names() if name not in weak.LEARNERS]
        if unknown or not self._names():
            raise ValueError(f"learners {self.learners!r} are unknown; choose from {list(weak.LEARNERS)}")
        for name, value, allowed in (
            ("step", self.step, ("line-search", "projection")),
            ("start", self.start, ("level", "zero")),
            ("engine", self.engine, ("lightgbm", "sklearn")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} {value!r} is unknown; choose from {list(allowed)}")
        if self.n_rounds < 1 or self.patience < 1 or self.leaves < 2 or self.min_rows < 1:
            raise ValueError("n_rounds, patience and min_rows must be at least 1, leaves at least 2")
        if not (self.rate > 0 and 0 < self.rows <= 1 and 0 < self.columns <= 1 and self.min_edge >= 0):
            raise ValueError("rate must be above 0, rows and columns in (0, 1], min_edge not negative")


class Risk:
    """The loss per unit weight of row scores, with rows put in the order that kernels want once."""

    def __init__(self, lists: Lists, loss: str, params: Mapping[str, Any]) -> None:
        grade, offsets = np.asarray(lists.grade), np.asarray(lists.offsets)
        self.order = None if ranges.is_descending(grade, offsets) else ranges.descending_order(grade, offsets)
        self.lists = lists if self.order is None else lists._replace(grade=grade[self.order])
        self.total = float(np.asarray(lists.weight).sum())
        self.name, self.loss, self.params = loss, LOSSES[loss], dict(params)

    def __call__(self, s: Floats) -> tuple[float, Floats]:
        value, g = self.loss(s if self.order is None else s[self.order], self.lists, **self.params)
        return value / self.total, self._back(g) / self.total

    def value(self, s: Floats) -> float:
        return self(s)[0]

    def _back(self, g: Floats) -> Floats:
        if self.order is None:
            return g
        back = np.empty_like(g)
        back[self.order] = g
        return back

    def bend(self, s: Floats, h: Floats) -> float:
        """<h, H h>, by a difference of gradients where the loss has no Hessian product."""
        if self.name in HVPS:
            at, along = (s, h) if self.order is None else (s[self.order], h[self.order])
            return float(along @ HVPS[self.name](at, self.lists, along, **self.params)) / self.total
        small = 1e-6 / max(float(np.abs(h).max(initial=0.0)), 1e-300)
        return float((self(s + small * h)[1] - self(s)[1]) @ h) / small

    def line_step(self, s: Floats, value: float, d: Floats, h: Floats) -> tuple[float, Floats, float, Floats]:
        """Newton's step along h, halved until the value falls by 1e-4 of what the slope promises; 0 if none does.

        Returns the step, and scores, value and gradient after it.
        """
        slope, bend = float(d @ h), self.bend(s, h)
        step = -slope / bend if bend > 0 and np.isfinite(bend) else -slope * self.total / float(h @ h)
        for _ in range(60):
            after = s + step * h
            new_value, new_d = self(after)
            if new_value <= value + 1e-4 * step * slope:
                return step, after, new_value, new_d
            step *= 0.5
        return 0.0, s, value, d

    def best_level(self) -> float:
        """The constant score with the least loss: over powers of 2, then Newton; 0 where it does not matter."""
        ones = np.ones(len(self.lists.grade))  # type: ignore[arg-type]
        steps = 2.0 ** np.arange(-14, 8)
        level = float(min([0.0, *steps, *-steps], key=lambda c: self.value(c * ones)))
        for _ in range(50):
            value, d = self(level * ones)
            step = self.line_step(level * ones, value, d, ones)[0]
            level += step
            if abs(step) <= 1e-10 * max(abs(level), 1e-10):
                break
        return level


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


class Held:
    """Scores of the validation set, kept up to date, and the best round on it."""

    def __init__(self, valid: Queries, listwise: Floats | None, metric: Any, level: float) -> None:
        self.valid, self.metric = valid, metric
        self.tables = {"feature": valid.X, "listwise": listwise}
        self.dense = np.ascontiguousarray(valid.X, np.float64) if isinstance(valid.X, np.ndarray) else None
        self.s = np.full(len(valid.grade), level)
        self.best, self.best_round, self.seen = self._score(), 0, 0

    def _score(self) -> float:
        return mean_defined(self.metric(self.s, self.valid.grade, self.valid.offsets))

    def see(self, name: str, function: Any, alpha: float) -> float:
        kind, what = function
        if kind == "column":
            self.s = self.s + alpha * weak.column(self.tables[name], what)  # the mean is missing: it moves all alike
        elif kind == "tree":
            assert self.dense is not None
            self.s = self.s + alpha * what(self.dense)
        self.seen += 1
        found = self._score()
        if found > self.best:
            self.best, self.best_round = found, self.seen
        return found


def no_edge(n: int, gamma: float, least: float) -> str:
    return f"no weak learner has an edge after {n} rounds: gamma {gamma:.2g} is not above {least:.2g}"


def no_step(n: int, value: float, after: float, alpha: float) -> str:
    if alpha == 0.0:
        return f"no step along the best learner lowers the loss after {n} rounds: it is at its minimum, up to rounding"
    return (
        f"the step of round {n + 1} raises the loss from {value:.4g} to {after:.4g}; lower rate or use "
        "step='line-search'"
    )
