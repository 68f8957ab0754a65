"""Meta-search with labels: the rank lists of many engines become features, and any loss learns how to fuse them."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import DataError, Queries
from placet.data.arrays import Floats, list_of_rows
from placet.rank import files
from placet.rank.auto import ranker_class
from placet.rank.ranker import Ranker

Member = tuple[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]]

MEMBERS: tuple[Member, ...] = (
    ("linear", {"loss": "pmop-fd", "l2": 0.1}),
    ("linear", {"loss": "pl-lower-bound", "l2": 0.1}),
    ("trees", {"loss": "pmop-fd", "learning_rate": 0.03, "leaves": 8, "min_rows": 100, "l2": 10.0, "columns": 0.3,
               "rows": 0.5, "n_trees": 400}),
)  # fmt: skip

UNLISTED = 1e4
"""The rank that stands for an engine's silence where a number is needed."""

ROUNDS = 3
"""In which engines' weights follow from their agreement."""


class SupervisedFusion(Ranker):
    """Ranks by engines (rows x engines, lower is better, NaN where not listed) fused into one score per document.

    Being listed at all is evidence, so absence is a feature, not a gap.  ``fusion_features`` says what the members see.
    ``members``: pairs of a ranker's short name ("linear", "trees") and its parameters; each is fitted to the same
    features.  A document's score is the mean of the members' scores, standardised inside its query, over those of one
    kind, added over kinds: each kind of ranker has the same say.  A member may name several sets of parameters: the
    one that is best by ``metric`` on the validation set is kept (else the first).

    >>> nan = float("nan")
    >>> rank = [[1, 2], [2, nan], [nan, 1], [3, 1], [1, 3], [nan, 2]]
    >>> qid = [7, 7, 7, 8, 8, 8]
    >>> fusion = SupervisedFusion([("linear", {"loss": "ranknet"})]).fit(rank, [1, 0, 0, 0, 1, 0], qid=qid)
    >>> fusion.predict(rank, qid=qid).round(1)
    array([ 1.3, -0.3, -1.1,  0. ,  1.2, -1.2])
    """

    _missing = "keep"
    _state = ("chosen_",)

    def __init__(
        self,
        members: Sequence[Member] = MEMBERS,
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
        chosen = [self._best(name, _several(params), seen, held_out) for name, params in self.members]
        self.chosen_ = [k for k, _ in chosen]
        self.members_ = [member for _, member in chosen]
        self.fit_summary_ = {"members": [member.fit_summary_ for member in self.members_]}

    def _best(
        self, name: str, choices: Sequence[Mapping[str, Any]], seen: Queries, valid: Queries | None
    ) -> tuple[int, Any]:
        """The set of parameters that is best on the validation set, and the ranker fitted with it."""
        best: tuple[float, int, Any] | None = None
        for k, params in enumerate(choices[:1] if valid is None else choices):
            member = ranker_class(name, "member")(
                **{"metric": self.metric, "random_state": self.random_state, **params}
            )
            member.fit(seen, valid=valid)
            value = 0.0 if valid is None else member.score(valid, metric=self.metric)
            if best is None or value > best[0]:
                best = value, k, member
        if best is None:
            raise ValueError(f"member {name!r} names no parameters; an empty mapping stands for the ranker's own")
        return best[1], best[2]

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Floats:
        features = fusion_features(X, offsets)
        seen = Queries(features, np.zeros(len(features)), offsets)
        kinds = [name for name, _ in self.members]
        shares = [standardised(m.predict(seen), offsets) / kinds.count(k) for k, m in zip(kinds, self.members_)]
        return np.sum(shares, axis=0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fusion with all its members to one file."""
        self._check_fitted()
        state: dict[str, Any] = {name: getattr(self, name) for name in (*self._common, *self._state)}
        for k, member in enumerate(self.members_):
            state |= {f"{k}/{name}": getattr(member, name) for name in (*member._common, *member._state)}
        files.write(path, type(self).__name__, self.get_params(deep=False), state)

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any]) -> Self:
        """The fusion that ``save`` wrote, or a ``DataError``."""
        own = {name: value for name, value in state.items() if "/" not in name}
        fusion = super().from_saved(params, own)
        fusion.members_ = []
        for k, ((name, sets), choice) in enumerate(zip(fusion.members, fusion.chosen_)):
            inner = {key.partition("/")[2]: value for key, value in state.items() if key.startswith(f"{k}/")}
            fusion.members_.append(ranker_class(name, "member").from_saved(dict(_several(sets)[choice]), inner))
        return fusion


def fusion_features(rank: ArrayLike, offsets: NDArray[np.int64]) -> Floats:
    """What a fusion sees of each document, (rows, 5 engines + 47).

    By engine: listed or not, place on the query's list scaled to (0, 1], reciprocal place, 1 / log2(1 + place), and
    minus log(1 + rank).  Over engines: sums of these and of 1 / (1 + rank / 10), means over the lists it is on, the
    best and third best place; sums weighed by how far each engine agrees with the others in this query (`agreed`); the
    same standardised inside the query.  Of the query: documents, engines with a list, the longest list; and the best
    rank.  O(rows x engines x log rows).
    """
    rank = np.asarray(rank, dtype=np.float64)
    if rank.ndim != 2 or (rank < 0).any() or np.isinf(rank).any():
        raise DataError("ranks must be a table of documents x engines, not negative, NaN where an engine did not list")
    listed = ~np.isnan(rank)
    place = _places(rank, offsets)
    length = _per_query(np.add, listed.astype(np.float64), offsets)
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
        sums += agreed(values, offsets)
    engines = (length > 0).sum(axis=1)
    query = [
        _per_query(np.add, np.ones(len(rank)), offsets),
        engines,
        sums[0] / np.maximum(engines, 1),
        length.max(axis=1, initial=0.0),
        np.min(np.where(listed, rank, UNLISTED), axis=1, initial=UNLISTED),
    ]
    return np.column_stack([*tables, *sums, *(standardised(values, offsets) for values in sums), *query])


def agreed(values: Floats, offsets: NDArray[np.int64]) -> list[Floats]:
    """Sums over engines, weighed by agreement: of the standardised values, of the values, and of these by the square.

    An engine's weight in a query is the correlation, if positive, of its values with the weighed sum of all, found in
    three rounds from equal weights.  O(rows x engines).
    """
    Z = np.column_stack([standardised(column, offsets) for column in values.T]) if values.size else values
    size = np.maximum(_per_query(np.add, np.ones((len(Z), 1)), offsets), 1.0)
    weight = np.ones_like(Z)
    for _ in range(ROUNDS):
        consensus = standardised((weight * Z).sum(axis=1), offsets)
        weight = np.maximum(_per_query(np.add, Z * consensus[:, None], offsets) / size, 0.0)
    return [(weight * Z).sum(axis=1), (weight * values).sum(axis=1), (weight**2 * values).sum(axis=1)]


def standardised(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Values brought to mean 0 and deviation 1 inside each list; 0 where a list's values are all equal."""
    size = np.maximum(np.diff(offsets), 1)[list_of_rows(offsets)]
    centred = values - _per_query(np.add, values, offsets) / size
    deviation = np.sqrt(_per_query(np.add, centred**2, offsets) / size)
    flat = deviation <= 1e-12 * np.maximum(1.0, np.abs(values))
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviation))


def _places(rank: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Place 1, 2, ... of each document among those of its query that the engine lists; equal ranks share the best."""
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


def _per_query(reduce: np.ufunc, values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Reduction over the rows of each list, given back to each of its rows."""
    full = np.diff(offsets) > 0
    found = reduce.reduceat(values, offsets[:-1][full], axis=0) if full.any() else values[:0]
    return found[np.repeat(np.arange(full.sum()), np.diff(offsets)[full])]


def _as_features(queries: Queries) -> Queries:
    return Queries(
        fusion_features(queries.X, queries.offsets), queries.grade, queries.offsets, queries.weight, queries.qid
    )


def _several(params: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return [params] if isinstance(params, Mapping) else params
