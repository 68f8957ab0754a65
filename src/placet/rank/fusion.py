"""Supervised metasearch: the ranked lists of many engines become features, and rankers of any loss fuse them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import DataError, Queries
from placet.data.arrays import Floats, list_of_rows
from placet.rank.feature_tables import reduce_per_list
from placet.rank.ranker import Ranker, ranker_class
from placet.rank.saving.fitted_state import Number, RankerOf, Several, holds
from placet.rank.validation import Best

FusionMember = tuple[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]]

MEMBERS: tuple[FusionMember, ...] = (
    ("linear", {"loss": "pmop-fd", "l2": 0.1}),
    ("linear", {"loss": "pl-lower-bound", "l2": 0.1}),
    ("trees", {"loss": "pmop-fd", "learning_rate": 0.03, "leaves": 8, "min_rows": 100, "l2": 10.0,
               "feature_fraction": 0.3, "subsample": 0.5, "n_trees": 400, "backend": "lightgbm"}),
)  # fmt: skip

UNLISTED = 1e4
"""Rank of a document that no engine lists, where a number is needed."""

OF_ALL_ENGINES = 47
"""Features of a document over all engines, and of its query."""

ROUNDS = 3
"""Rounds of updating engine weights from their agreement."""


class SupervisedFusion(Ranker):
    """Fuse the ranks of several engines (rows x engines, lower is better, NaN if unlisted) into a score per document.

    Being listed at all is evidence, so absence is a feature, not a missing value.  Members are fitted to the same
    features, `fusion_features`.  ``members``: pairs of a ranker's short name ("linear", "trees") and its parameters.
    Member scores are standardized in each query, averaged over members of the same kind, and summed over kinds, so
    each kind of ranker has equal weight.  A member may have several sets of parameters: the best by ``metric`` on the
    validation set is kept (without one, the first).

    >>> nan = float("nan")
    >>> rank = [[1, 2], [2, nan], [nan, 1], [3, 1], [1, 3], [nan, 2]]
    >>> qid = [7, 7, 7, 8, 8, 8]
    >>> fusion = SupervisedFusion([("linear", {"loss": "ranknet"})]).fit(rank, [1, 0, 0, 0, 1, 0], qid=qid)
    >>> fusion.predict(rank, qid=qid).round(1)
    array([ 1.3, -0.3, -1.1,  0. ,  1.2, -1.2])
    """

    learns_from = "rank lists"
    _missing = "keep"
    records_metrics = False
    _state = holds(chosen_=Several(Number(low=0, whole=True)), members_=Several(RankerOf(), least=1))

    def __init__(
        self,
        members: Sequence[FusionMember] = MEMBERS,
        *,
        metric: str = "ndcg@5",
        random_state: int = 0,
    ) -> None:
        self.members = members
        self.metric = metric
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        seen = _as_features(queries)
        held_out = None if valid is None else _as_features(valid)
        best = self._keep_best(None, len(self.members))
        found: list[tuple[int, Ranker]] = []
        with best:
            for name, params in self.members:
                found.append(self._best_member(name, _parameter_sets(params), seen, held_out))
                best.see(list(found))
                if found[-1][1].fit_summary_["interrupted"]:
                    raise KeyboardInterrupt
        self.chosen_ = [k for k, _ in best.state]
        self.members_ = [member for _, member in best.state]
        self.fit_summary_ = {
            "members": [member.fit_summary_ for member in self.members_],
            "interrupted": best.interrupted,
        }

    def _best_member(
        self, name: str, choices: Sequence[Mapping[str, Any]], seen: Queries, valid: Queries | None
    ) -> tuple[int, Any]:
        """Index of the best parameters on the validation set, and the ranker fitted with them."""
        best: Best[tuple[int, Ranker]] = Best(
            None if valid is None else lambda state: state[1].score(valid, metric=self.metric)
        )
        with best:
            for k, params in enumerate(choices[:1] if valid is None else choices):
                given = {"metric": self.metric, "random_state": self.random_state, **params}
                member = ranker_class(name, "member")(**given).fit(seen, valid=valid)
                best.consider((k, member))
                if member.fit_summary_["interrupted"]:
                    raise KeyboardInterrupt
        if best.empty:
            raise ValueError(f"member {name!r} names no parameters; an empty mapping stands for the ranker's own")
        k, member = best.state
        member.fit_summary_["interrupted"] |= best.interrupted
        return k, member

    def _check_state(self) -> None:
        n = 5 * self.n_features_in_ + OF_ALL_ENGINES
        if len(self.members) < len(self.members_) or len(self.chosen_) != len(self.members_):
            raise DataError(f"{len(self.members_)} fitted members do not fit {len(self.members)} of them")
        if any(member.n_features_in_ != n for member in self.members_):
            raise DataError(f"a member takes other features than the {n} of {self.n_features_in_} engines")

    def _scores(self, queries: Queries) -> Floats:
        seen = _as_features(queries)
        kinds = [name for name, _ in self.members[: len(self.members_)]]
        shares = [
            standardize(member.predict(seen), queries.offsets) / kinds.count(kind)
            for kind, member in zip(kinds, self.members_)
        ]
        return np.sum(shares, axis=0)


def fusion_features(rank: ArrayLike, offsets: NDArray[np.int64]) -> Floats:
    """Features of each document for fusion, (rows, 5 engines + 47).

    Per engine: listed or not, position in the query's list scaled to (0, 1], reciprocal position,
    1 / log2(1 + position), and -log(1 + rank).  Over engines: sums of these and of 1 / (1 + rank / 10), means over the
    lists that contain the document, the best and third-best position, and sums weighted by the agreement of each engine
    with the others in this query (`sums_by_agreement`); the same standardized in the query.  Of the query: numbers of
    documents and of engines with a list, the fraction of these that list the document, the longest list; and the best
    rank.  O(rows x engines x log rows).
    """
    rank = np.asarray(rank, dtype=np.float64)
    if rank.ndim != 2 or (rank < 0).any() or np.isinf(rank).any():
        raise DataError("ranks must be a table of documents x engines, not negative, NaN where an engine did not list")
    listed = ~np.isnan(rank)
    place = _places(rank, offsets)
    length = reduce_per_list(np.add, listed.astype(np.float64), offsets)
    on = lambda values: np.where(listed, values, 0.0)  # noqa: E731
    by_place = on(1.0 - (place - 1.0) / np.maximum(length, 1.0))
    reciprocal, logged, by_rank = on(1.0 / place), on(1.0 / np.log2(1.0 + place)), on(-np.log1p(rank))
    tables = (listed.astype(np.float64), by_place, reciprocal, logged, by_rank)
    sums = [values.sum(axis=1) for values in (*tables, on(1.0 / (1.0 + rank / 10.0)))]
    lists = np.maximum(sums[0], 1.0)
    third = max(rank.shape[1] - 3, 0)
    sums += [by_place.sum(axis=1) / lists, logged.sum(axis=1) / lists]
    sums += [values.max(axis=1) for values in (by_place, reciprocal)]
    sums += [np.sort(values, axis=1)[:, third] for values in (by_place, reciprocal)]
    for values in (by_place, logged, tables[0]):
        sums += sums_by_agreement(values, offsets)
    engines = (length > 0).sum(axis=1)
    query = [
        reduce_per_list(np.add, np.ones(len(rank)), offsets),
        engines,
        sums[0] / np.maximum(engines, 1),
        length.max(axis=1, initial=0.0),
        np.min(np.where(listed, rank, UNLISTED), axis=1, initial=UNLISTED),
    ]
    return np.column_stack([*tables, *sums, *(standardize(values, offsets) for values in sums), *query])


def sums_by_agreement(values: Floats, offsets: NDArray[np.int64]) -> list[Floats]:
    """Sums over engines weighted by agreement: of standardized values, of values, and with squared weights.

    An engine's weight in a query is the positive part of the correlation of its values with the weighted sum of all,
    found in three rounds from equal weights.  O(rows x engines).
    """
    Z = np.column_stack([standardize(column, offsets) for column in values.T]) if values.size else values
    size = np.maximum(reduce_per_list(np.add, np.ones((len(Z), 1)), offsets), 1.0)
    weight = np.ones_like(Z)
    for _ in range(ROUNDS):
        consensus = standardize((weight * Z).sum(axis=1), offsets)
        weight = np.maximum(reduce_per_list(np.add, Z * consensus[:, None], offsets) / size, 0.0)
    return [(weight * Z).sum(axis=1), (weight * values).sum(axis=1), (weight**2 * values).sum(axis=1)]


def standardize(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Scale values to mean 0 and standard deviation 1 in each list; 0 where a list's values are all equal."""
    size = np.maximum(np.diff(offsets), 1)[list_of_rows(offsets)]
    centered = values - reduce_per_list(np.add, values, offsets) / size
    deviation = np.sqrt(reduce_per_list(np.add, centered**2, offsets) / size)
    flat = deviation <= 1e-12 * np.maximum(1.0, np.abs(values))
    return np.where(flat, 0.0, centered / np.where(flat, 1.0, deviation))


def _places(rank: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Position 1, 2, ... of each document among those of its query that the engine lists; ties share the best."""
    query = list_of_rows(offsets)
    out = np.ones_like(rank)
    for k in range(rank.shape[1]):
        value = np.where(np.isnan(rank[:, k]), np.inf, rank[:, k])
        order = np.lexsort((value, query))
        starts = np.ones(len(order), bool)
        starts[1:] = (value[order][1:] != value[order][:-1]) | (query[order][1:] != query[order][:-1])
        first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
        out[order, k] = first - offsets[:-1][query[order]] + 1.0
    return out


def _as_features(queries: Queries) -> Queries:
    return replace(queries, X=fusion_features(queries.X, queries.offsets), features=None)


def _parameter_sets(params: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return [params] if isinstance(params, Mapping) else params
