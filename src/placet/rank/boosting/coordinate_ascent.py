"""Coordinate ascent: a weighted sum of columns whose weights are changed one at a time to raise the metric itself.

Metzler and Croft, Linear feature-based models for information retrieval, Information Retrieval 2007.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from placet.data import Queries
from placet.data.arrays import Floats
from placet.metrics import metric as metric_of
from placet.rank import similarity
from placet.rank.boosting import weak_rankers
from placet.rank.boosting.additive import Additive, BoostingRound
from placet.rank.query_rows import mean_defined

STEPS = 2.0 ** np.arange(-6, 3)


class CoordinateAscent(Additive):
    """Maximize ``metric`` on the training queries over s = sum_k w_k x_k, |w|_1 = 1, x_k scaled to unit deviation.

    A pass visits every column in random order and tries, for its weight, 0 and steps up and down of 2^-6 to 4 times
    the mean weight; the best is kept.  A start ends after a pass that gains less than ``tol``.  The pass with the
    best metric on the validation set (or else on the training queries) is kept, over all starts.

    Parameters
    ----------
    max_iter : int
        Maximum number of passes per start.
    starts : int
        Starts: the first with equal weights, the others with random ones.
    learners : str or sequence of str
        Families of columns to weight: "feature", "stump", "listwise" (see ``RankBoost``) or several.  Trees are not
        fixed columns, since each is grown for the current scores; use ``RankBoost`` or ``AdaRank`` for them.
    thresholds : int
        Number of stumps per feature, at quantiles.
    kernels, bandwidth : see ``RankBoost``
    tol : float
        Minimum gain in the metric for another pass.
    metric : str
        Metric to maximize, also used for validation.
    random_state : int
        Seed of the starts and of the order of columns.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> CoordinateAscent(starts=1).fit(data[:40]).score(data[40:]) > 0.9
    True
    """

    n_rounds, patience, backend, leaves, min_rows = 1, 1, "sklearn", 2, 1

    def __init__(
        self,
        max_iter: int = 10,
        *,
        starts: int = 2,
        learners: str | Sequence[str] = "feature",
        thresholds: int = 15,
        kernels: Sequence[similarity.SimilarityKernel] = ("cosine",),
        bandwidth: float = 0.25,
        tol: float = 1e-3,
        metric: str = "ndcg@10",
        random_state: int = 0,
    ) -> None:
        self.max_iter = max_iter
        self.starts = starts
        self.learners = learners
        self.thresholds = thresholds
        self.kernels = kernels
        self.bandwidth = bandwidth
        self.tol = tol
        self.metric = metric
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        wrong = [name for name in self._names() if name not in ("feature", "stump", "listwise")]
        if wrong or not self._names():
            raise ValueError(
                f"learners {self.learners!r}: coordinate ascent weights columns of 'feature', 'stump' or 'listwise'"
            )
        if self.max_iter < 1 or self.starts < 1 or self.thresholds < 1 or not self.tol >= 0:
            raise ValueError("max_iter, starts and thresholds must be at least 1, tol not negative")
        model = self._new_sum(queries)
        groups = self._families(queries, model)
        columns = [
            (name, function, unit)
            for name, group in groups.items()
            for function, unit in group.functions_with_deviations(self.thresholds)
        ]
        if not columns:
            raise ValueError("no column varies inside the training rows; there is nothing to weight")
        listwise = self._listwise(queries, model.scale)
        table = [weak_rankers.values_of(name, f, queries.X, listwise) / unit for name, f, unit in columns]
        listwise_valid = None if valid is None else self._listwise(valid, model.scale)
        on_valid = self._judge(valid, lambda w: _weighted_scores(valid.X, listwise_valid, columns, w))  # type: ignore[union-attr]
        best = self._keep_best(
            on_valid, self.max_iter * self.starts, instead=lambda w: self.rounds_[-1].value if self.rounds_ else -np.inf
        )
        self.rounds_ = []
        with best:
            for start in range(self.starts):
                rng = np.random.default_rng([self.random_state, start])
                w = np.full(len(table), 1.0 / len(table))
                if start:
                    w = rng.dirichlet(np.ones(len(table))) * rng.choice([-1.0, 1.0], len(table))
                self._ascend(queries, table, w, rng, best)
        for (name, function, unit), weight in zip(columns, best.state):
            if weight:
                model.add(name, function, float(weight / unit))
        self._keep(model, groups)
        self.fit_summary_ = {"passes": len(self.rounds_), "pass kept": best.best_step, **best.summary()}

    def _ascend(self, queries: Queries, table: list[Floats], w: Floats, rng: np.random.Generator, best: Any) -> None:
        """Run the passes of one start, reporting each to ``best``."""
        judged = metric_of(self.metric)
        mean = lambda s: mean_defined(judged(s, queries.grade, queries.offsets))  # noqa: E731
        s = np.zeros(len(queries.grade))
        for weight, x in zip(w, table):
            s += weight * x
        value = mean(s)
        for _ in range(self.max_iter):
            before = value
            for k in rng.permutation(len(w)):
                best.report_within_step()
                changes = np.concatenate([[-w[k]], STEPS / len(w), -STEPS / len(w)])
                found = [mean(s + change * table[k]) for change in changes]
                top = int(np.argmax(found))
                if found[top] > value:
                    value, w = found[top], w + changes[top] * (np.arange(len(w)) == k)
                    s = s + changes[top] * table[k]
            length = float(np.abs(w).sum())
            w, s = w / length, s / length
            self.rounds_.append(BoostingRound("feature", 1.0, value - before, value, None))
            quality = best.see(w.copy())
            self.rounds_[-1] = self.rounds_[-1]._replace(validation=quality if best.validates else None)
            if value - before < self.tol:
                break


def _weighted_scores(X: Any, listwise: Any, columns: list[tuple[str, Any, float]], w: Floats) -> Floats:
    """Scores of rows, for weights of columns scaled to unit deviation."""
    s = np.zeros(X.shape[0])
    for (name, function, unit), weight in zip(columns, w.tolist()):
        if weight:
            s += weight / unit * weak_rankers.values_of(name, function, X, listwise)
    return s
