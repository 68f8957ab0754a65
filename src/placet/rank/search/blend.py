"""Weighted mean of several rankers, each divided by the spread of its scores."""

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from placet.data import DataError, Queries
from placet.data.arrays import Ints, list_of_rows
from placet.rank.query_rows import ScoreColumn, check_columns
from placet.rank.ranker import Ranker
from placet.rank.saving.fitted_state import Array, RankerOf, Several, holds
from placet.rank.saving.onnx_export import OnnxGraph


class Blend(Ranker):
    """Mean of rankers m, s = sum_m w_m s_m / d_m: d_m is the deviation of s_m within lists, and w_m = 1 / members.

    Rankers that are about equally good and err on different rows are better together than the best of them, and the
    mean of the best few on a small validation set depends less on luck than the single best.  The d_m are measured
    once, on the validation queries (or else the training queries), so a score depends on other rows only if a member's
    does.  ``fit`` clones the ``rankers`` and fits each; ``Blend.of`` accepts fitted rankers and any weights w_m
    (``weight_``), such as those learned by `placet.rank.search.stacking`.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> blend = Blend([placet.rank.LinearRanker("pmop-fd"), placet.rank.LinearRanker("attrank")]).fit(data[:40])
    >>> blend.score(data[40:]) > 0.9
    True
    """

    learns_from = "rankers"
    records_metrics = False
    _state = holds(
        members_=Several(RankerOf(), least=1), spread_=Array("members", above=0), weight_=Array("members", low=0)
    )

    def __init__(self, rankers: Sequence[Ranker] = (), *, metric: str = "ndcg@10") -> None:
        self.rankers = rankers
        self.metric = metric

    @property
    def _missing(self) -> Any:  # type: ignore[override]
        """Allow NaN if every member does."""
        return "keep" if all(ranker._missing == "keep" for ranker in self.rankers) else "error"

    @classmethod
    def of(
        cls,
        members: Sequence[Ranker],
        queries: Queries,
        metric: str = "ndcg@10",
        *,
        spreads: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Blend rankers that are already fitted, measuring their spread on ``queries``.

        ``spreads`` (members,): the d_m, if known; ``weights`` (members,): the w_m, normalized to sum 1.
        """
        blend = cls([clone(ranker) for ranker in members], metric=metric)
        blend._set_columns(queries)
        blend._set_members(members, queries, spreads, weights)
        return blend

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        best = self._keep_best(None, len(self.rankers))
        members: list[Ranker] = []
        with best:
            for ranker in self.rankers:
                members.append(clone(ranker).fit(queries, valid=valid))
                best.see(list(members))
                if members[-1].fit_summary_["interrupted"]:
                    raise KeyboardInterrupt
        self._set_members([] if best.empty else best.state, queries if valid is None else valid)
        self.fit_summary_["interrupted"] = best.interrupted

    def _set_members(
        self,
        members: Sequence[Ranker],
        queries: Queries,
        spreads: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        n = len(members)
        if not n:
            raise ValueError("a blend needs at least one ranker")
        weight = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        if weight.shape != (n,) or not (weight >= 0).all() or not 0 < weight.sum() < np.inf:
            raise ValueError(f"weights {weights!r} must be {n} numbers of at least 0, one for each ranker, not all 0")
        for member in members:
            check_columns(queries.X, queries.features, member.n_features_in_, member.features_)
        self.members_ = list(members)
        if spreads is None:
            spreads = [spread(member.predict(queries), queries.offsets) for member in members]
        self.spread_ = np.array(spreads, dtype=np.float64)
        self.weight_ = weight / weight.sum()
        self.fit_summary_ = {"members": [member.fit_summary_ for member in members], "interrupted": False}

    def _check_state(self) -> None:
        n = self.n_features_in_
        if len(self.spread_) != len(self.members_) or any(member.n_features_in_ != n for member in self.members_):
            raise DataError(f"{len(self.members_)} members and {len(self.spread_)} spreads do not fit {n} features")
        if not abs(self.weight_.sum() - 1.0) < 1e-9:
            raise DataError(f"the weights of the members sum to {self.weight_.sum()}, not to 1")

    def _scores(self, queries: Queries) -> ScoreColumn:
        out = np.zeros(len(queries.grade))
        shared: dict[Hashable, Any] = {}
        for member, factor in self._factors():
            out += factor * member._scores_sharing(queries, shared)
        return out

    def _factors(self) -> list[tuple[Ranker, float]]:
        """The members whose weight is not 0, and the factors of their scores."""
        found = zip(self.members_, self.spread_, self.weight_)
        return [(member, float(weight / unit)) for member, unit, weight in found if weight > 0.0]

    def _add_onnx(self, graph: OnnxGraph) -> str:
        return graph.weighted_sum([(m._add_onnx(graph), graph.kind, factor) for m, factor in self._factors()])


def spread(s: ScoreColumn, offsets: Ints) -> float:
    """Root mean square deviation of scores from the mean of their list; 1 if the scores of every list are constant.

    >>> spread(np.array([1.0, 3.0, 7.0]), np.array([0, 2, 3])).round(4)  # deviations 1, 1 and 0
    np.float64(0.8165)
    """
    query = list_of_rows(offsets)
    mean = np.bincount(query, s, len(offsets) - 1) / np.maximum(np.diff(offsets), 1)
    found = np.sqrt(np.mean((s - mean[query]) ** 2)) if len(s) else 0.0
    return found if found > 0 else 1.0
