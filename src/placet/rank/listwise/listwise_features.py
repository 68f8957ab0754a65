"""Listwise features for any ranker: the position of a row in its list, and its similarity to the other rows."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone

from placet.data import DataError, Queries
from placet.data.arrays import Floats, list_of_rows
from placet.rank import similarity
from placet.rank.feature_tables import need_dense, reduce_per_list
from placet.rank.linear.linear_ranker import LinearRanker
from placet.rank.listwise.listwise_onnx import GRID, add_list_columns
from placet.rank.ranker import Ranker
from placet.rank.saving.fitted_state import RankerOf, holds
from placet.rank.saving.onnx_export import OnnxGraph

PARTS = ("deviation", "place", "similarity")


class ListwiseFeatures(Ranker):
    """Any ranker (linear, trees, network), fitted to features of a row and of its list.

    Besides x_k, a row has, for each of ``parts``: "deviation", (x_k - mean) / deviation of feature k in the list;
    "place", the fraction of the list's rows with a smaller x_k, counting ties as half; "similarity", the mean of each
    kernel over the other rows.  All are permutation-equivariant: reordering the rows only reorders the features.  They
    are rounded to multiples of 2^-30: trees would split between values that differ by the error of a sum alone.

    Parameters
    ----------
    base : Ranker, optional
        Ranker to clone and fit; ``LinearRanker("pmop-fd")`` if None.
    parts : sequence of str
        Which features to add.
    kernels : sequence
        Kernels of "similarity": see ``placet.rank.similarity``.
    bandwidth : float
        Bandwidth of "gaussian".
    metric : str
        Validation metric, also that of the base.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> ranker = ListwiseFeatures(placet.rank.LinearRanker("ranknet"), parts=("place", "similarity")).fit(data[:40])
    >>> ranker.base_.n_features_in_, ranker.score(data[40:]) > 0.9
    (7, True)
    """

    takes_control = True
    _state = holds(base_=RankerOf())

    def __init__(
        self,
        base: Ranker | None = None,
        parts: Sequence[str] = PARTS,
        *,
        kernels: Sequence[similarity.SimilarityKernel] = ("cosine",),
        bandwidth: float = 0.25,
        metric: str = "ndcg@10",
    ) -> None:
        self.base = base
        self.parts = parts
        self.kernels = kernels
        self.bandwidth = bandwidth
        self.metric = metric

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        if isinstance(self.parts, str) or not len(self.parts) or any(part not in PARTS for part in self.parts):
            raise ValueError(f"parts {self.parts!r} must be one or more of {list(PARTS)}")
        base = LinearRanker("pmop-fd") if self.base is None else self.base
        if not isinstance(base, Ranker) or base.learns_from != "queries":
            raise ValueError(f"base {base!r} must be a ranker of rows with features")
        own = {"metric": self.metric} if "metric" in base.get_params(deep=False) else {}
        self.base_ = clone(base).set_params(**own)
        held_out = None if valid is None else self._expand(valid)
        control = None if self._control is None else dict(zip(self._control[1], self._control[0].T))
        given = {"progress": self._progress, "control": control, "metrics": self._also_record}
        self.base_.fit(self._expand(queries), valid=held_out, **given)
        self.fit_summary_ = dict(self.base_.fit_summary_)

    @property
    def controls_(self) -> dict[str, float]:
        """Effects of the controls by name, as fitted by the base."""
        return getattr(self.base_, "controls_", {})

    def _expand(self, queries: Queries) -> Queries:
        """The queries with added columns, (rows, features (1 + deviation + place) + kernels)."""
        X = np.asarray(need_dense(queries.X, "listwise features need"), np.float64)
        tables = []
        if "deviation" in self.parts:
            tables.append(deviations(X, queries))
        if "place" in self.parts:
            tables.append(places(X, queries))
        if "similarity" in self.parts:
            T = similarity.sums(self.kernels, X, queries.offsets, queries.relations, bandwidth=self.bandwidth)
            tables.append(similarity.means_from_sums(T, queries.offsets))
        added = np.round(np.concatenate(tables, axis=1) * GRID) / GRID
        return replace(queries, X=np.concatenate([X, added], axis=1), features=None)

    def _scores(self, queries: Queries) -> Floats:
        return self._scores_sharing(queries, {})

    def _scores_sharing(self, queries: Queries, shared: dict[Hashable, Any]) -> Floats:
        key = self._settings()
        if key not in shared:
            shared[key] = self._expand(queries)
        return self.base_._scores(shared[key])

    def _settings(self) -> Hashable:
        """What decides on the added columns."""
        return frozenset(self.parts), tuple(self.kernels), self.bandwidth

    def _add_onnx(self, graph: OnnxGraph) -> str:
        before, key = graph.table, (graph.table, self._settings())
        if key not in graph.shared:
            graph.shared[key] = add_list_columns(graph, self.parts, self.kernels)
        graph.table = graph.shared[key]
        last = self.base_._add_onnx(graph)
        graph.table = before
        return last

    def _check_state(self) -> None:
        n, own = self.n_features_in_, set(self.parts)
        width = n * (1 + len(own & {"deviation", "place"})) + len(self.kernels) * ("similarity" in own)
        if self.base_.n_features_in_ != width:
            raise DataError(f"the base takes {self.base_.n_features_in_} features, not {width}")


def deviations(X: Floats, queries: Queries) -> Floats:
    """(x - mean) / standard deviation within the list, by column; 0 if all values are equal.  O(rows features)."""
    n = np.diff(queries.offsets)[list_of_rows(queries.offsets), None]
    mean = reduce_per_list(np.add, X, queries.offsets) / n
    out = X - mean
    spread = np.sqrt(reduce_per_list(np.add, out**2, queries.offsets) / n)
    flat = spread <= 1e-12 * np.abs(mean)
    return np.where(flat, 0.0, out / np.where(flat, 1.0, spread))


def places(X: Floats, queries: Queries) -> Floats:
    """Fraction of the list's other rows with a smaller value, ties counting half, by column; 0.5 for a single row.

    O(features rows log rows).
    """
    out = np.full(X.shape, 0.5)
    for a, b in zip(queries.offsets[:-1].tolist(), queries.offsets[1:].tolist()):
        if b - a > 1:
            out[a:b] = (rankdata(X[a:b], axis=0) - 1.0) / (b - a - 1)
    return out
