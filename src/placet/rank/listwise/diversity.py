"""Diversity: rankings whose rows complement each other, by a classical rule and by a learned one.

Rows are judged for several subtopics of the query: ``judged`` (rows, subtopics) is above 0 where the row serves the
subtopic, as ``placet.metrics.alpha_ndcg`` and ``err_ia`` expect.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, as_csr, offsets_from_sizes, table
from placet.data.errors import one_of
from placet.metrics import metric as metric_of
from placet.rank import similarity
from placet.rank.linear.surrogate_search import pattern_search
from placet.rank.listwise.reranker import base_scores, check_kernels, fit_base
from placet.rank.query_rows import as_queries, check_columns, mean_defined
from placet.rank.ranker import Ids, Ranker, TrainingProgress
from placet.rank.saving.fitted_state import Array, Base, holds

Similar = Callable[[int], Floats]
METRICS = ("alpha_ndcg", "err_ia")
STEP = 4.0  # initial step of the pattern search over -w


def mmr(X: Any, relevance: ArrayLike, offsets: ArrayLike, *, trade_off: float = 0.5, k: int | None = None) -> Floats:
    """Scores of maximal marginal relevance: the next row has the largest trade_off b_i - (1 - trade_off) max_j S_ij.

    The maximum is over the rows j chosen before it (0 for the first); b is the relevance scaled to [0, 1] in the list,
    and S the cosine of features scaled likewise.  The first ``k`` rows (None: all) are chosen this way; the others
    follow by relevance.  O(k rows features) per list.  Carbonell and Goldstein, SIGIR 1998.

    Returns
    -------
    array
        A score per row; sorted by it, the rows are in the order chosen.

    >>> mmr(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [3.0, 2.9, 1.0], [0, 3]).argsort()[::-1]
    array([0, 2, 1])
    """
    if not 0 <= trade_off <= 1:
        raise ValueError(f"trade_off {trade_off} must lie in [0, 1]")
    b, cut = np.asarray(relevance, dtype=np.float64), np.asarray(offsets, dtype=np.int64)
    unit = similarity.normalize(b[:, None], cut)[:, 0]

    def value(own: Floats, nearest: Floats, total: Floats) -> Floats:
        return trade_off * own - (1.0 - trade_off) * nearest[:, 0]

    return _greedy(unit, [_cosine(X, cut)], cut, value, k)


def _cosine(X: Any, offsets: Ints) -> Callable[[int, int], Similar]:
    U = similarity.unit_rows(X, offsets)

    def of_list(a: int, b: int) -> Similar:
        part = U[a:b]
        return lambda i: np.asarray(
            part @ part[i].T if isinstance(part, np.ndarray) else (part @ part[[i]].T).toarray()[:, 0]
        )

    return of_list


def _greedy(
    b: Floats,
    similar: Sequence[Callable[[int, int], Similar]],
    offsets: Ints,
    value: Callable[[Floats, Floats, Floats], Floats],
    k: int | None,
) -> Floats:
    """Scores that sort the rows in the order in which a greedy rule selects them.

    It maximizes ``value(b, nearest, total)``, where ``nearest`` and ``total`` (rows, kernels) are the maximum and the
    sum of the similarities to the rows already selected.  Ties go to the larger b, then to the first row.
    """
    out = np.empty(len(b))
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        n = high - low
        own, rows = b[low:high], [s(low, high) for s in similar]
        nearest, total = np.zeros((n, len(rows))), np.zeros((n, len(rows)))
        left = np.ones(n, bool)
        depth = n if k is None else min(k, n)
        place = np.empty(n)
        for rank in range(depth):
            rest = np.flatnonzero(left)
            worth = value(own, nearest, total)[rest]
            best = rest[worth == worth.max()]
            i = int(best[np.argmax(own[best])])
            left[i] = False
            place[i] = rank
            for c, kernel in enumerate(rows):
                row = kernel(i)
                nearest[:, c] = np.maximum(nearest[:, c], row) if rank else row
                total[:, c] += row
        rest = np.flatnonzero(left)
        place[rest] = depth + np.unique(-own[rest], return_inverse=True)[1]  # equal b stay tied
        out[low:high] = -place
    return out


class DiversityReranker(Ranker):
    """Greedy reranking: the next row maximizes b(x_i) exp(sum_k w_k sum_{j selected} S_k(x_i, x_j)).

    This is the listwise function of ``ListwiseReranker`` with the product over the rows above instead of all others;
    w = 0 is the base ranking, w < 0 separates similar rows.  The weights maximize ``metric`` ("alpha_ndcg@k" or
    "err_ia@k") on the training queries by a derivative-free pattern search over w <= 0, since the metric has no
    gradient.  The first k positions are filled this way; the other rows follow by b.  ``base`` and ``kernels`` as in
    ``ListwiseReranker`` (including functions and relations); b is scaled to [0, 1] in each list.  O(k rows features)
    time per list, never O(rows^2) memory.

    >>> import placet
    >>> data = simulated_intents(40, random_state=1)
    >>> reranker = DiversityReranker(base=0).fit(data.queries[:20], data.judged[: data.queries.offsets[20]])
    >>> test = data.queries[20:]
    >>> judged = data.judged[data.queries.offsets[20] :]
    >>> base = placet.metrics.alpha_ndcg(test.X[:, 0], judged, test.offsets, 10).mean()
    >>> bool(placet.metrics.alpha_ndcg(reranker.predict(test), judged, test.offsets, 10).mean() > base + 0.05)
    True
    """

    learns_from = "subtopics"
    records_metrics = False
    _state = holds(base_=Base(), w_=Array("kernels", high=0))

    def __init__(
        self,
        base: Any = 0,
        kernels: Sequence[similarity.SimilarityKernel] = ("cosine",),
        metric: str = "alpha_ndcg@10",
        *,
        bandwidth: float = 0.25,
        max_evaluations: int = 40,
    ) -> None:
        self.base = base
        self.kernels = kernels
        self.metric = metric
        self.bandwidth = bandwidth
        self.max_evaluations = max_evaluations

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Ids | None = None,
        *,
        weight: ArrayLike | None = None,
        valid: Any = None,
        progress: TrainingProgress | None = None,
        start: Any = None,
        engine: Any = None,
        control: Any = None,
        **others: Any,
    ) -> Self:
        """Fit to queries and the judgments ``y`` (rows, subtopics) of their rows, dense or sparse, in the same order.

        ``X`` is ``Queries``, or features with ``qid``; ``valid`` is (queries, judged) or (X, judged, qid): the weights
        that are best on it are kept.  An interrupt (Ctrl-C) keeps the best weights so far.
        """
        others |= {"progress": progress, "start": start, "engine": engine, "control": control}
        return super().fit(X, y, qid, weight=weight, valid=valid, **others)

    def _training_data(self, X: Any, y: Any, qid: Ids | None, weight: ArrayLike | None) -> "Subtopics":
        self._check()
        data = with_subtopics(X, y, qid, weight)
        self._set_columns(data.queries)
        return data

    def _validation_data(self, valid: Any, data: "Subtopics") -> "Subtopics":
        if not isinstance(valid, tuple) or len(valid) not in (2, 3):
            raise ValueError("valid must be (queries, judged) or (X, judged, qid)")
        held_out = with_subtopics(*valid)
        check_columns(held_out.queries.X, held_out.queries.features, data.queries.n_features, data.queries.features)
        return held_out

    def _fit(self, data: "Subtopics", valid: "Subtopics | None") -> None:
        queries = data.queries
        self.base_, _, interrupted = fit_base(self.base, queries, None if valid is None else valid.queries, 0, 0)
        quality = self._quality_on(data)
        judge = None if valid is None else self._quality_on(valid)
        n = len(self.kernels)
        best = self._keep_best(
            None if judge is None else lambda state: judge(state[0]), self.max_evaluations, instead=lambda s: s[1]
        )
        of_base = quality(np.zeros(n))
        if not np.isfinite(of_base):
            raise DataError(
                f"no subtopic has a relevant row in any of the {len(queries)} queries: nothing to learn from"
            )

        def evaluate(minus_w: Floats) -> float:
            found = quality(-minus_w)
            best.see((-minus_w, found))
            return found

        with best:
            best.consider((np.zeros(n), of_base))
            if interrupted:
                raise KeyboardInterrupt
            starts = [np.zeros(n), np.ones(n)]
            pattern_search(evaluate, starts, step=STEP, max_evaluations=self.max_evaluations)
        self.w_, value = best.state
        self.fit_summary_ = {
            "value": value,
            "value of the base": of_base,
            "evaluations": best.steps,
            **best.summary(),
        }

    def score(
        self,
        X: Any,
        y: Any = None,
        qid: Ids | None = None,
        metric: str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean of ``metric`` (by default the ranker's own) over the queries for which it is defined."""
        chosen = metric_of(metric or self.metric)
        data = with_subtopics(X, y, qid, sample_weight)
        weight = None if sample_weight is None else data.queries.weight
        return mean_defined(chosen(self.predict(data.queries), data.judged, data.queries.offsets), weight)

    def _quality_on(self, data: "Subtopics") -> Callable[[Floats], float]:
        """w -> mean of the metric."""
        parts, metric, offsets = self._parts(data.queries), metric_of(self.metric), data.queries.offsets
        return lambda w: mean_defined(metric(self._order(parts, w), data.judged, offsets))

    def _check(self) -> None:
        one_of(metric_of(self.metric).name, METRICS, "metric")
        if isinstance(self.kernels, str) or not len(self.kernels):
            raise ValueError(f"kernels {self.kernels!r} must be a sequence of at least one kernel")

    def _check_state(self) -> None:
        check_kernels(self.kernels, len(self.w_))

    def _scores(self, queries: Queries) -> Floats:
        return self._order(self._parts(queries), self.w_)

    def _parts(self, queries: Queries) -> tuple[Floats, list[Callable[[int, int], Similar]], Ints]:
        b = similarity.normalize(base_scores(self.base_, queries)[:, None], queries.offsets)[:, 0]
        return b, [self._similar(kernel, queries) for kernel in self.kernels], queries.offsets

    def _similar(self, kernel: similarity.SimilarityKernel, queries: Queries) -> Callable[[int, int], Similar]:
        """(a, b) -> (i -> similarities of row i of the list to all its rows)."""
        X, offsets = queries.X, queries.offsets
        if kernel == "cosine":
            return _cosine(X, offsets)
        if callable(kernel) or kernel == "gaussian":
            function = kernel if callable(kernel) else similarity.gaussian(self.bandwidth)
            table = X if callable(kernel) else similarity.gaussian_table(X, offsets)
            return lambda a, b: lambda i: np.asarray(function(table[a:b], table[a + i : a + i + 1]))[:, 0]
        matrix = similarity.relation(queries.relations, kernel)
        return lambda a, b: lambda i: matrix[a:b, a:b][[i]].toarray()[0]

    def _order(self, parts: Any, w: Floats) -> Floats:
        b, similar, offsets = parts
        log_b = np.full(len(b), -np.inf)
        np.log(b, out=log_b, where=b > 0)

        def value(own: Floats, nearest: Floats, total: Floats) -> Floats:
            return own + total @ w  # logarithm of the product, which cannot overflow in long lists

        return _greedy(log_b, similar, offsets, value, metric_of(self.metric).k)


class Subtopics(NamedTuple):
    """Queries with subtopic judgments: ``judged`` (rows, subtopics) is above 0 where a row serves a subtopic."""

    queries: Queries
    judged: Any


def with_subtopics(X: Any, judged: Any, qid: Ids | None = None, weight: ArrayLike | None = None) -> Subtopics:
    """Queries with checked judgments, in the order of the queries' rows."""
    if judged is None or (np.ndim(judged) != 2 and not hasattr(judged, "tocsr")):
        raise ValueError("give the queries and what their rows are judged for, a table of rows x subtopics")
    n_rows = len(X.grade) if isinstance(X, Queries) else np.shape(table(X)[0])[0]
    if judged.shape[0] != n_rows:
        raise DataError(f"judged has {judged.shape[0]} rows; the queries have {n_rows}")
    if isinstance(X, Queries):
        return Subtopics(as_queries(X, None, qid, weight), judged)
    judged = as_csr(judged, "subtopic") if hasattr(judged, "tocsr") else judged
    served = np.asarray((judged > 0).sum(axis=1), dtype=np.float64).ravel()
    queries = as_queries(X, served, qid, weight)
    return Subtopics(queries, judged[queries.row])


@dataclass(frozen=True)
class Intents:
    """Simulated queries with subtopic judgments; ``intent`` (rows,) is the single subtopic of each row."""

    queries: Queries
    judged: NDArray[np.int64]
    intent: NDArray[np.int64]


def simulated_intents(
    n_queries: int, n_rows: int = 40, n_intents: int = 4, n_features: int = 8, *, random_state: int = 0
) -> Intents:
    """Simulate queries with several intents, which no pointwise ranker can diversify.

    Column 0 is a noisy relevance; the others point in the direction of the row's intent, which is drawn anew for each
    query.  So no function of a single row can tell common intents from rare ones: by symmetry, the best it can do is
    to sort by relevance.  The fraction of rows with intent t is proportional to 2^-t; a row serves its intent if its
    relevance is above 0.6.  Which rows are similar can be seen from the list, not from the row.
    """
    rng = np.random.default_rng(random_state)
    share = 0.5 ** np.arange(n_intents)
    X, judged, intents = [], [], []
    for _ in range(n_queries):
        intent = np.concatenate(
            [np.arange(n_intents), rng.choice(n_intents, n_rows - n_intents, p=share / share.sum())]
        )
        direction = rng.normal(size=(n_intents, n_features))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        relevance = rng.uniform(size=n_rows)
        relevance[:n_intents] = rng.uniform(0.6, 1.0, n_intents)  # every intent can be served
        seen = relevance + rng.normal(0.0, 0.05, n_rows)
        X.append(np.column_stack([seen, direction[intent] + rng.normal(0.0, 0.1, (n_rows, n_features))]))
        judged.append((intent[:, None] == np.arange(n_intents)) & (relevance > 0.6)[:, None])
        intents.append(intent)
    table = np.concatenate(judged).astype(np.int64)
    offsets = offsets_from_sizes(np.full(n_queries, n_rows))
    return Intents(
        Queries(np.concatenate(X), table.sum(axis=1).astype(np.float64), offsets), table, np.concatenate(intents)
    )


def subtopic_judgments(qrels: Any) -> Iterator[tuple[Any, tuple[Any, ...], NDArray[np.int64]]]:
    """Yield (topic, documents, judged (documents, subtopics)) for every topic of qrels with subtopics."""
    if qrels.subtopic is None:
        raise DataError("these judgments have no subtopics; diversity needs them (TREC Web diversity qrels)")
    for t, topic in enumerate(qrels.topics):
        rows = np.flatnonzero(qrels.topic == t)
        docs, at = np.unique(qrels.doc[rows], return_inverse=True)
        topics, column = np.unique(qrels.subtopic[rows], return_inverse=True)
        table = np.zeros((len(docs), len(topics)), np.int64)
        np.maximum.at(table, (at, column), (qrels.grade[rows] > 0).astype(np.int64))
        yield topic, tuple(qrels.docs[d] for d in docs), table
