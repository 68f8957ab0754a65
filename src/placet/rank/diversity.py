"""Diversity: orders whose rows complement each other, by a classical rule and by one that is learnt.

Rows are judged for several subtopics of the query: ``judged`` (rows, subtopics) above 0 where the row serves the
subtopic, as ``placet.metrics.alpha_ndcg`` and ``err_ia`` take it.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from placet.data import DataError, Queries
from placet.data.arrays import Floats, offsets_from_sizes
from placet.data.errors import one_of
from placet.metrics import alpha_ndcg, err_ia
from placet.rank import base_scores, files, similarity
from placet.rank.ranker import Ids, mean_defined, restored, rows_of
from placet.rank.surrogate import pattern_search

Similar = Callable[[int], Floats]
METRICS: dict[str, Callable[..., Floats]] = {"alpha_ndcg": alpha_ndcg, "err_ia": err_ia}
STEP = 4.0  # of the pattern search in -w


def mmr(X: Any, relevance: ArrayLike, offsets: ArrayLike, *, trade_off: float = 0.5, k: int | None = None) -> Floats:
    """Maximal marginal relevance: the next row has the largest trade_off b_i - (1 - trade_off) max_j S_ij; scores.

    The maximum is over the rows j chosen before it (0 for the first), b the relevance brought to [0, 1] in the list and
    S the cosine of features brought to [0, 1] in the list.  The first ``k`` rows (None: all) are chosen so; the others
    follow by relevance.  O(k rows features) per list.  Carbonell and Goldstein, SIGIR 1998.

    >>> mmr(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [3.0, 2.9, 1.0], [0, 3]).argsort()[::-1]
    array([0, 2, 1])
    """
    if not 0 <= trade_off <= 1:
        raise ValueError(f"trade_off {trade_off} must lie in [0, 1]")
    b, cut = np.asarray(relevance, dtype=np.float64), np.asarray(offsets, dtype=np.int64)
    unit = similarity.normalised(b[:, None], cut)[:, 0]

    def value(own: Floats, nearest: Floats, total: Floats) -> Floats:
        return trade_off * own - (1.0 - trade_off) * nearest[:, 0]

    return _greedy(unit, [_cosine(X, cut)], cut, value, k)


def _cosine(X: Any, offsets: NDArray[np.int64]) -> Callable[[int, int], Similar]:
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
    offsets: NDArray[np.int64],
    value: Callable[[Floats, Floats, Floats], Floats],
    k: int | None,
) -> Floats:
    """Scores that put the rows in the order in which a greedy rule takes them.

    ``value(b, nearest, total)`` of the rows left, given their largest similarity to a row taken and the sums of their
    similarities to the rows taken, (rows, kernels).  Equal values go to the larger b, then to the row that comes first.
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
            worth = np.where(left, value(own, nearest, total), -np.inf)
            best = np.flatnonzero(worth == worth.max())
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


class DiversityReranker(BaseEstimator):
    """The next row is the one with the largest b(x_i) exp(sum_k w_k sum_{j taken} S_k(x_i, x_j)).

    The listwise function of ``ListwiseReranker`` with the product over the rows above in place of all others; w = 0 is
    the base ranking, w < 0 puts unlike rows side by side.  The weights maximise ``metric`` ("alpha_ndcg" or "err_ia" at
    ``k``) on the training queries by a pattern search over w <= 0 without derivatives, since the metric has none.
    ``base`` and ``kernels`` as in ``ListwiseReranker`` (functions and relations too); b is brought to [0, 1] in each
    list.  O(k rows features) per list, never O(rows^2) memory.

    >>> data = simulated_intents(40, random_state=1)
    >>> reranker = DiversityReranker(base=0).fit(data.queries[:20], data.judged[: data.queries.offsets[20]])
    >>> test = data.queries[20:]
    >>> judged = data.judged[data.queries.offsets[20] :]
    >>> base = alpha_ndcg(test.X[:, 0], judged, test.offsets, 10).mean()
    >>> bool(alpha_ndcg(reranker.predict(test), judged, test.offsets, 10).mean() > base + 0.05)
    True
    """

    def __init__(
        self,
        base: Any = 0,
        kernels: Sequence[similarity.Kernel] = ("cosine",),
        metric: str = "alpha_ndcg",
        k: int = 10,
        *,
        bandwidth: float = 0.25,
        max_evaluations: int = 40,
    ) -> None:
        self.base = base
        self.kernels = kernels
        self.metric = metric
        self.k = k
        self.bandwidth = bandwidth
        self.max_evaluations = max_evaluations

    def fit(self, queries: Queries, judged: ArrayLike) -> Self:
        """Fit on queries whose rows are judged for subtopics, (rows, subtopics), dense or sparse, in their order."""
        one_of(self.metric, METRICS, "metric")
        if self.k < 1 or isinstance(self.kernels, str) or not len(self.kernels):
            raise ValueError(f"k {self.k} must be at least 1, and kernels {self.kernels!r} a sequence of at least one")
        if np.shape(judged)[:1] != (len(queries.grade),):
            raise DataError(f"judged has {np.shape(judged)[0]} rows; the queries have {len(queries.grade)}")
        metric = METRICS[self.metric]
        parts = self._parts(queries)

        def quality(minus_w: Floats) -> float:
            return mean_defined(metric(self._order(parts, -minus_w), judged, queries.offsets, self.k))

        found = quality(np.zeros(len(self.kernels)))
        if not np.isfinite(found):
            raise DataError(
                f"no subtopic has a relevant row in any of the {len(queries)} queries: nothing to learn from"
            )
        n = len(self.kernels)
        search = pattern_search(
            quality, [np.zeros(n), np.full(n, 1.0)], step=STEP, max_evaluations=self.max_evaluations
        )
        self.w_ = -search.x
        self.n_features_in_ = queries.n_features
        self.fit_summary_ = {"value": search.value, "value of the base": found, "evaluations": len(search.tried)}
        return self

    def predict(self, X: Any, qid: Ids | None = None) -> Floats:
        """Scores that put the rows of each list in the learnt order; ``X`` is ``Queries`` or a table with ``qid``."""
        check_is_fitted(self, "w_")
        if isinstance(X, Queries):
            return self._order(self._parts(X), self.w_)
        matrix, _ = rows_of(X)
        n = matrix.shape[0]
        queries = Queries.from_arrays(matrix, np.zeros(n), np.zeros(n, int) if qid is None else qid)
        return restored(queries, self._order(self._parts(queries), self.w_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the reranker with its base (a ranker of Placet or of LightGBM, or a column) to one file."""
        check_is_fitted(self, "w_")
        params = {**self.get_params(deep=False), "base": None}
        state = {"w_": self.w_, "n_features_in_": self.n_features_in_, "fit_summary_": self.fit_summary_}
        files.write(path, type(self).__name__, params, {**state, **base_scores.packed(self.base)})

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any]) -> Self:
        """The reranker that ``save`` wrote, or a ``DataError``."""
        own, base = base_scores.unpacked(state)
        if set(own) != {"w_", "n_features_in_", "fit_summary_"} or not set(params) <= set(cls._get_param_names()):
            raise DataError(f"the state of a {cls.__name__} is not {sorted(own)} with parameters {sorted(params)}")
        ranker = cls(**{**params, "base": base, "kernels": tuple(params["kernels"])})
        for name, value in own.items():
            setattr(ranker, name, value)
        return ranker

    def _parts(self, queries: Queries) -> tuple[Floats, list[Callable[[int, int], Similar]], NDArray[np.int64]]:
        b = similarity.normalised(base_scores.scored(self.base, queries)[:, None], queries.offsets)[:, 0]
        return b, [self._similar(kernel, queries) for kernel in self.kernels], queries.offsets

    def _similar(self, kernel: similarity.Kernel, queries: Queries) -> Callable[[int, int], Similar]:
        """(a, b) -> (i -> similarities of row i of the list to all its rows)."""
        X, offsets = queries.X, queries.offsets
        if kernel == "cosine":
            return _cosine(X, offsets)
        if callable(kernel) or kernel == "gaussian":
            function = kernel if callable(kernel) else similarity.gaussian(self.bandwidth)
            table = X if callable(kernel) else similarity.normalised(similarity.dense(X), offsets)
            return lambda a, b: lambda i: np.asarray(function(table[a:b], table[a + i : a + i + 1]))[:, 0]
        matrix = similarity.relation(queries.relations, kernel)
        return lambda a, b: lambda i: matrix[a:b, a:b][[i]].toarray()[0]

    def _order(self, parts: Any, w: Floats) -> Floats:
        b, similar, offsets = parts

        def value(own: Floats, nearest: Floats, total: Floats) -> Floats:
            return own * np.exp(np.clip(total @ w, -30.0, 30.0))

        return _greedy(b, similar, offsets, value, self.k)


@dataclass(frozen=True)
class Intents:
    """Simulated queries and what their rows are judged for; ``intent`` (rows,) is the one subtopic of each row."""

    queries: Queries
    judged: NDArray[np.int64]
    intent: NDArray[np.int64]


def simulated_intents(
    n_queries: int, n_rows: int = 40, n_intents: int = 4, n_features: int = 8, *, random_state: int = 0
) -> Intents:
    """Queries with several intents in which no pointwise ranker can win.

    Column 0 is a relevance seen through noise; the others point in the direction of the row's intent, which is drawn
    anew for each query, so no function of a row alone knows which intent is common and which is rare: by symmetry the
    best it can do is to sort by relevance.  Intent t has a share 2^-t of the rows; a row serves its intent if its
    relevance is above that of 60 % of the rows.  Which rows are alike can be seen from the list, not from the row.
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


def judgements(qrels: Any) -> Iterator[tuple[Any, tuple[Any, ...], NDArray[np.int64]]]:
    """(topic, documents, judged (documents, subtopics)) of every topic of ``placet.read_qrels`` with subtopics."""
    if qrels.subtopic is None:
        raise DataError("these judgements have no subtopics; diversity needs them (TREC Web diversity qrels)")
    for t, topic in enumerate(qrels.topics):
        rows = np.flatnonzero(qrels.topic == t)
        docs, at = np.unique(qrels.doc[rows], return_inverse=True)
        topics, column = np.unique(qrels.subtopic[rows], return_inverse=True)
        table = np.zeros((len(docs), len(topics)), np.int64)
        np.maximum.at(table, (at, column), (qrels.grade[rows] > 0).astype(np.int64))
        yield topic, tuple(qrels.docs[d] for d in docs), table
