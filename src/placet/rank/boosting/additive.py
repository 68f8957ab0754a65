"""Sums of weak ranking functions: the shared base of boosted rankers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, rows_of
from placet.data.errors import as_choices
from placet.rank import similarity
from placet.rank.boosting import weak_rankers
from placet.rank.ranker import Ranker
from placet.rank.saving.fitted_state import Array, Number, Several, TreesOf, TupleOf, holds
from placet.rank.saving.onnx_export import OnnxGraph, add_linear, add_trees
from placet.rank.tree_arrays import Forest
from placet.rank.validation import Best


class BoostingRound(NamedTuple):
    """One round of boosting: the learner added, its factor, and its edge <gradient, h> / (|gradient|_1 |h|_inf)."""

    learner: str
    step: float
    gamma: float
    value: float
    validation: float | None


class NewTerm(NamedTuple):
    """The result of one round: a weak function, its ``factor``, and the record of the round."""

    function: Any
    factor: float
    round: BoostingRound


Backend = Literal["lightgbm", "sklearn"]
"""Libraries that grow the trees of boosters."""


class Additive(Ranker):
    """Base of rankers with the score level + sum_t alpha_t h_t(x), h_t features, stumps, trees or listwise terms.

    A subclass has the parameters ``learners``, ``n_rounds``, ``subsample``, ``feature_fraction``, ``kernels``,
    ``bandwidth``, ``backend``, ``leaves``, ``min_rows``, ``patience`` and ``random_state``, and passes a ``Sum`` to
    ``_boost``, which runs the rounds.
    """

    learners: str | Sequence[str]
    n_rounds: int
    subsample: float = 1.0
    feature_fraction: float = 1.0
    kernels: Sequence[similarity.SimilarityKernel]
    bandwidth: float
    backend: Backend
    leaves: int
    min_rows: int
    patience: int
    metric: str
    random_state: int
    center: bool = False
    rounds_: list[BoostingRound]

    _state = holds(
        level_=Number(),
        coef_=Array("features"),
        listwise_coef_=Array("listwise"),
        trees_=TreesOf(),
        scale_=Array("kernels", above=0),
        rounds_=Several(TupleOf(((str,), (float,), (float,), (float,), (float, None)))),
    )

    def _new_sum(self, queries: Queries) -> "Sum":
        """An empty sum, with the scale of the listwise terms of these queries."""
        model = Sum(queries.n_features, len(self.kernels) if "listwise" in self._names() else 0)
        if model.n_listwise:
            deviation = similarity.center(self._sums(queries), queries.offsets).std(axis=0)
            model.scale = np.where(deviation > 0, deviation, 1.0)
        return model

    def _families(self, queries: Queries, model: "Sum") -> dict[str, Any]:
        return weak_rankers.families(
            self._names(), queries.X, self._listwise(queries, model.scale), center=self.center, backend=self.backend,
            leaves=self.leaves, min_rows=self.min_rows, random_state=self.random_state,
        )  # fmt: skip

    def _keep(self, model: "Sum", groups: Mapping[str, Any]) -> None:
        """Set the fitted state."""
        self.coef_, self.listwise_coef_ = model.coefficients()
        moved = [
            groups[name].mean @ w for name, w in (("feature", self.coef_), ("listwise", self.listwise_coef_)) if w.any()
        ]
        self.level_, self.scale_ = model.whole_level() - float(sum(moved)), model.scale
        self.trees_ = model.trees()

    def _boost(
        self,
        model: "Sum",
        groups: Mapping[str, Any],
        valid: Queries | None,
        make: Callable[[int], NewTerm | str],
        *,
        instead: Callable[[int], float] | None = None,
    ) -> tuple[Best[int], str]:
        """Run rounds with ``make(n)`` until it returns a reason to stop, and truncate the model to the best number.

        ``instead`` rates the first n rounds if there is no validation set; without either, all rounds are kept.
        Returns the best number of rounds, and the reason to stop.
        """
        running = None if valid is None else RunningScores(valid, self._listwise(valid, model.scale), model.level)
        self.rounds_ = []
        judge = self._judge(valid, lambda n: running.s)  # type: ignore[union-attr]
        best = self._keep_best(judge, self.n_rounds, patience=self.patience, instead=instead)
        stopped = "interrupted"
        with best:
            best.consider(0)
            while True:
                n = len(self.rounds_)
                if n == self.n_rounds:
                    stopped = f"all {n} rounds were made; raise n_rounds for more"
                    break
                if best.stale:
                    where = "the validation set" if valid is not None else "the training queries"
                    stopped = f"{self.patience} rounds without a better {self.metric} on {where}"
                    break
                made = make(n)
                if isinstance(made, str):
                    stopped = made
                    break
                model.add(made.round.learner, made.function, made.factor)
                if running is not None:
                    running.add(made.round.learner, made.function, made.factor)
                self.rounds_.append(made.round)
                quality = best.see(n + 1)
                self.rounds_[-1] = made.round._replace(validation=quality if best.validates else None)
        model.cut(best.state)
        self._keep(model, groups)
        return best, stopped

    def _summary(self, best: Best[int], stopped: str, at_start: float | None) -> dict[str, Any]:
        """The training summary of all boosted rankers; ``at_start`` is the value before the first round."""
        return {
            "stopped": stopped,
            "rounds": len(self.rounds_),
            "rounds kept": best.state,
            "value": self.rounds_[best.state - 1].value if best.state else at_start,
            **best.summary(),
        }

    def _draw(self, queries: Queries, rng: np.random.Generator) -> tuple[Ints | None, Ints | None]:
        """Draw the rows (of whole queries) and the features to use in this round; None for all."""
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
        return weak_rankers.listwise_table(queries.X, self._sums(queries) / scale, queries.offsets)

    def _scores(self, queries: Queries) -> Floats:
        out = np.full(len(queries.grade), float(self.level_))
        if self.coef_.any():
            out += np.asarray(queries.X @ self.coef_, dtype=np.float64)
        if self.listwise_coef_.any():
            out += self._listwise(queries, self.scale_) @ self.listwise_coef_
        return out + self.trees_.predict(queries.X) if len(self.trees_.roots) else out

    def _add_onnx(self, graph: OnnxGraph) -> str:
        if self.listwise_coef_.any():
            raise ValueError(f"{type(self).__name__} with listwise learners has no ONNX form; give learners='feature'")
        linear = add_linear(graph, graph.table, self.coef_, float(self.level_)), graph.kind, 1.0
        if not len(self.trees_.roots):
            return linear[0]
        return graph.weighted_sum([linear, (add_trees(graph, self.trees_), graph.kind, 1.0)])

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any] | None) -> Self:
        ranker = super().from_saved(params, state)
        if state is not None:
            ranker.rounds_ = [BoostingRound(*row) for row in ranker.rounds_]
        return ranker

    def _check_state(self) -> None:
        n = self.n_features_in_
        model = Sum(n, len(self.kernels) if "listwise" in self._names() else 0)
        if (len(self.listwise_coef_), len(self.scale_)) != (model.n_listwise, len(model.scale)):
            raise DataError(f"{len(self.listwise_coef_)} weights of products do not fit {len(model.scale)} kernels")

    def _names(self) -> tuple[str, ...]:
        return (self.learners,) if isinstance(self.learners, str) else tuple(self.learners)

    def _check_learners(self) -> None:
        unknown = [name for name in self._names() if name not in weak_rankers.LEARNERS]
        if unknown or not self._names():
            raise ValueError(f"learners {self.learners!r} are unknown; choose from {as_choices(weak_rankers.LEARNERS)}")
        if self.n_rounds < 1 or self.patience < 1 or self.leaves < 2 or self.min_rows < 1:
            raise ValueError("n_rounds, patience and min_rows must be at least 1, leaves at least 2")


class Sum:
    """The weak functions added so far, with their factors."""

    def __init__(self, n_features: int, n_kernels: int) -> None:
        self.n_features = n_features
        self.n_listwise = n_kernels * len(weak_rankers.EXPONENTS) * (n_features + 1)
        self.level, self.scale = 0.0, np.ones(n_kernels)
        self.parts: list[tuple[str, Any, float]] = []

    def add(self, name: str, function: Any, alpha: float) -> None:
        self.parts.append((name, function, alpha))

    def cut(self, n: int) -> None:
        del self.parts[n:]

    def whole_level(self) -> float:
        """The initial level plus all constants added since."""
        return self.level + float(sum(alpha for _, (kind, _), alpha in self.parts if kind == "level"))

    def coefficients(self) -> tuple[Floats, Floats]:
        """Weights of the features and of the listwise columns."""
        coef, listwise = np.zeros(self.n_features), np.zeros(self.n_listwise)
        for name, (kind, k), alpha in self.parts:
            if kind == "column":
                (coef if name == "feature" else listwise)[k] += alpha
        return coef, listwise

    def trees(self) -> Forest:
        """All trees, with their factors."""
        own = [(tree, alpha) for _, (kind, tree), alpha in self.parts if kind == "tree"]
        return Forest.sum_of(own, self.n_features)


class RunningScores:
    """Scores of the validation rows, updated with each weak function."""

    def __init__(self, valid: Queries, listwise: Floats | None, level: float) -> None:
        self.tables = {"feature": valid.X, "listwise": listwise}
        self.dense = np.ascontiguousarray(valid.X, np.float64) if isinstance(valid.X, np.ndarray) else None
        self.s = np.full(len(valid.grade), level)

    def add(self, name: str, function: Any, alpha: float) -> None:
        kind, what = function
        if kind == "column":
            self.s = self.s + alpha * weak_rankers.column(
                self.tables[name], what
            )  # uncentered: a shift changes no order
        elif kind == "tree":
            assert self.dense is not None
            self.s = self.s + alpha * what.predict(self.dense)


def reason_no_edge(n: int, gamma: float, least: float) -> str:
    return f"no weak learner has an edge after {n} rounds: gamma {gamma:.2g} is not above {least:.2g}"
