"""AdaRank: boosting of a ranking metric by reweighting queries.

Xu and Li, AdaRank: a boosting algorithm for information retrieval, SIGIR 2007.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from placet.data import Queries
from placet.data.arrays import Floats
from placet.metrics import metric as metric_of
from placet.rank import similarity
from placet.rank.boosting import weak_rankers
from placet.rank.boosting.additive import Additive, Backend, BoostingRound, NewTerm
from placet.rank.query_rows import mean_defined


class AdaRank(Additive):
    """s = sum_t alpha_t h_t, where h_t is the weak ranking with the best ``metric`` E under the query weights P.

    alpha_t = 1/2 log(sum_q P_q (1 + E_q(h_t)) / sum_q P_q (1 - E_q(h_t))), then P_q is proportional to e^(-E_q(s)):
    queries that the sum ranks badly count more.  Weak rankings are scaled to a range of 1 on the training rows and
    may be negated.  The metrics of features, stumps and listwise terms are computed only once.  ``rounds_`` records
    sum_q P_q E_q (``gamma``) and the mean metric of the sum on the training queries (``value``).

    Parameters
    ----------
    n_rounds : int
        Maximum number of rounds.
    learners : str or sequence of str
        Families that compete: "feature" (as published), "stump", "listwise", and "tree" (a regression tree for the
        grades, minus their mean in the list, times P of the query).
    thresholds : int
        Number of stumps per feature, at quantiles.
    repeats : int or None
        Maximum number of consecutive rounds with the same feature, stump or listwise term.  None, as published, sets
        no limit: one term can be chosen forever, because the query weights change only when the order of the sum does.
    kernels, bandwidth, backend, leaves, min_rows : see ``RankBoost``
    patience : int
        Stop after this many rounds without a better ``metric``, on the validation set or else on the training queries.
    metric : str
        Metric to boost, also used for validation; its values must lie between 0 and 1.
    random_state : int
        Seed of the trees.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> AdaRank(50).fit(data[:40]).score(data[40:]) > 0.85
    True
    """

    def __init__(
        self,
        n_rounds: int = 300,
        *,
        learners: str | Sequence[str] = "feature",
        thresholds: int = 15,
        repeats: int | None = 3,
        kernels: Sequence[similarity.SimilarityKernel] = ("cosine",),
        bandwidth: float = 0.25,
        backend: Backend = "lightgbm",
        leaves: int = 16,
        min_rows: int = 20,
        patience: int = 50,
        metric: str = "ndcg@10",
        random_state: int = 0,
    ) -> None:
        self.n_rounds = n_rounds
        self.learners = learners
        self.thresholds = thresholds
        self.repeats = repeats
        self.kernels = kernels
        self.bandwidth = bandwidth
        self.backend = backend
        self.leaves = leaves
        self.min_rows = min_rows
        self.patience = patience
        self.metric = metric
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        self._check_learners()
        if self.thresholds < 1 or (self.repeats is not None and self.repeats < 1):
            raise ValueError(f"thresholds {self.thresholds} and repeats {self.repeats} must be at least 1")
        model = self._new_sum(queries)
        groups = self._families(queries, model)
        fixed = [
            (name, *found)
            for name, group in groups.items()
            if name != "tree"
            for found in group.all_by_range(self.thresholds)
        ]
        trees = groups.get("tree")
        judged = metric_of(self.metric)
        per_query = lambda s: judged(s, queries.grade, queries.offsets)  # noqa: E731
        s = np.zeros(len(queries.grade))
        counts = ~np.isnan(per_query(s)) & (queries.weight > 0)
        values = np.array([per_query(h)[counts] for _, h, _, _ in fixed]).reshape(len(fixed), int(counts.sum()))
        turned = np.array([per_query(-h)[counts] for _, h, _, _ in fixed]).reshape(values.shape)
        prior = queries.weight[counts]
        P = prior / prior.sum()
        taken: list[int] = []  # index into ``fixed`` chosen in each round, -1 for a tree

        def make(n: int) -> NewTerm:
            nonlocal s, P
            last = taken[-self.repeats :] if self.repeats and n >= self.repeats else [-1]
            resting = last[0] if len(set(last)) == 1 else -1
            found = self._best_ranking(queries, fixed, values, turned, trees, P, counts, resting)
            name, h, function, unit, E, place = found
            taken.append(place)
            gamma = float(P @ E)
            capped = min(gamma, 1.0 - 1e-6)  # a weak ranking that is perfect on all queries has no finite factor
            alpha = 0.5 * float(np.log((1.0 + capped) / (1.0 - capped)))
            s = s + alpha * h
            own = per_query(s)[counts]
            P = prior * np.exp(-own)
            P /= P.sum()
            return NewTerm(function, alpha * unit, BoostingRound(name, alpha, gamma, mean_defined(own), None))

        on_training = lambda n: self.rounds_[-1].value if n else -np.inf  # noqa: E731
        best, stopped = self._boost(model, groups, valid, make, instead=on_training)
        self.fit_summary_ = self._summary(best, stopped, None)

    def _best_ranking(
        self,
        queries: Queries,
        fixed: list[tuple[str, Floats, Any, float]],
        values: Floats,
        turned: Floats,
        trees: "weak_rankers.TreeLearner | None",
        P: Floats,
        counts: Any,
        resting: int,
    ) -> tuple[str, Floats, Any, float, Floats, int]:
        """The best ranking under P: (family, h, function, its factor, metric per query, index in ``fixed`` or -1)."""
        found: tuple[str, Floats, Any, float, Floats, int] | None = None
        if fixed:
            both = np.stack([values @ P, turned @ P])
            if resting >= 0 and len(fixed) > 1:
                both[:, resting] = -np.inf
            side, k = np.unravel_index(int(both.argmax()), both.shape)
            name, h, function, unit = fixed[int(k)]
            sign = 1.0 if side == 0 else -1.0
            found = name, sign * h, function, sign * unit, (values, turned)[int(side)][int(k)], int(k)
        if trees is not None:
            centered = similarity.center(queries.grade[:, None], queries.offsets)[:, 0]
            whole = np.zeros(len(queries))
            whole[counts] = P
            proposal = trees.propose_by_range(whole[queries.query] * centered)
            if proposal is not None:
                h, function, unit = proposal
                E = metric_of(self.metric)(h, queries.grade, queries.offsets)[counts]
                if found is None or P @ (E - found[4]) > 0:
                    found = "tree", h, function, unit, E, -1
        if found is None:
            raise ValueError("no weak ranking tells rows apart; look for features that vary, or lower min_rows")
        return found
