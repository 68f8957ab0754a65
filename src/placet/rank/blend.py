"""The mean of several rankers, each in units of its own spread."""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from placet.data import DataError, Queries
from placet.data.arrays import list_of_rows
from placet.rank import files
from placet.rank.ranker import Ids, Ranker, Scores, restored


class Blend(Ranker):
    """s = mean_m s_m / d_m: rankers m, with d_m the deviation of their scores inside lists.

    Rankers that are about as good and err on different rows are better together than the best of them, and a mean of
    the few that were best on a small validation set leans less on its luck than the choice of one.  The d_m are
    measured once, on the validation queries (else on those of the fit), so a score depends on other rows only where a
    member's does.  ``fit`` clones the ``rankers`` and fits each; ``Blend.of`` takes fitted ones.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> blend = Blend([placet.rank.LinearRanker("pmop-fd"), placet.rank.LinearRanker("attrank")]).fit(data[:40])
    >>> blend.score(data[40:]) > 0.9
    True
    """

    _state = ("spread_",)

    def __init__(self, rankers: Sequence[Ranker] = (), *, metric: str = "ndcg@10") -> None:
        self.rankers = rankers
        self.metric = metric

    @property
    def _missing(self) -> Any:  # type: ignore[override]
        """NaN is a value where every member takes it as one."""
        return "keep" if all(ranker._missing == "keep" for ranker in self.rankers) else "error"

    @classmethod
    def of(cls, fitted: Sequence[Ranker], queries: Queries, metric: str = "ndcg@10") -> Self:
        """The blend of rankers that are fitted already; ``queries`` are those to measure their spread on."""
        blend = cls([clone(ranker) for ranker in fitted], metric=metric)
        blend.n_features_in_, blend.features_ = queries.n_features, queries.features
        blend._take(fitted, queries)
        return blend

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        fitted = []
        for step, ranker in enumerate(self.rankers, 1):
            fitted.append(clone(ranker).fit(queries, valid=valid))
            self._tell(step, len(self.rankers), None)
        self._take(fitted, queries if valid is None else valid)

    def _take(self, fitted: Sequence[Ranker], queries: Queries) -> None:
        if not len(fitted):
            raise ValueError("a blend needs at least one ranker")
        self.members_ = list(fitted)
        self.spread_ = np.array([spread(member.predict(queries), queries.offsets) for member in fitted])
        self.fit_summary_ = {"members": [member.fit_summary_ for member in fitted]}

    def predict(self, X: Any, qid: Ids | None = None) -> Scores:
        """A score for every row, in the order given; ``qid`` matters where it does to a member."""
        queries = self._seen(X, qid)
        out = np.zeros(len(queries.grade))
        for member, unit in zip(self.members_, self.spread_):
            out += member.predict(queries) / (unit * len(self.members_))
        return out if isinstance(X, Queries) else restored(queries, out)

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Scores:
        return self.predict(Queries(X, np.zeros(X.shape[0]), offsets, features=self.features_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the blend with all its members to one file."""
        self._check_fitted()
        state: dict[str, Any] = {name: getattr(self, name) for name in (*self._common, *self._state)}
        state["members"] = [[type(member).__name__, member.get_params(deep=False)] for member in self.members_]
        for k, member in enumerate(self.members_):
            if type(member).save is not Ranker.save:
                raise ValueError(f"a blend with a {type(member).__name__} cannot be saved; save its members one by one")
            state |= {f"{k}/{name}": getattr(member, name) for name in (*member._common, *member._state)}
        files.write(path, type(self).__name__, {"metric": self.metric}, state)

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any]) -> Self:
        """The blend that ``save`` wrote, or a ``DataError``."""
        kinds = state.get("members")
        if not isinstance(kinds, list) or not all(_known(member) for member in kinds):
            raise DataError(f"the members of this blend are {kinds!r}; known are {sorted(files.KINDS)}")
        members = []
        for k, (kind, own) in enumerate(kinds):
            inner = {key.partition("/")[2]: value for key, value in state.items() if key.startswith(f"{k}/")}
            members.append(getattr(import_module(files.KINDS[kind]), kind).from_saved(own, inner))
        rest = {name: value for name, value in state.items() if "/" not in name and name != "members"}
        blend = super().from_saved(params, rest)
        blend.members_, blend.rankers = members, [clone(member) for member in members]
        return blend


def _known(member: Any) -> bool:
    """Whether an entry of a saved blend names a ranker and its parameters."""
    if not (isinstance(member, list) and len(member) == 2):
        return False
    kind, params = member
    return isinstance(kind, str) and kind in files.KINDS and isinstance(params, dict)


def spread(s: Scores, offsets: NDArray[np.int64]) -> float:
    """Root mean square of scores about the mean of their list; 1 where every list is flat.

    >>> spread(np.array([1.0, 3.0, 7.0]), np.array([0, 2, 3])).round(4)  # deviations 1, 1 and 0
    np.float64(0.8165)
    """
    query = list_of_rows(offsets)
    mean = np.bincount(query, s, len(offsets) - 1) / np.maximum(np.diff(offsets), 1)
    found = np.sqrt(np.mean((s - mean[query]) ** 2)) if len(s) else 0.0
    return found if found > 0 else 1.0
