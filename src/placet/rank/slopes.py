"""Gradients and curvatures of any loss, for gradient boosting engines that do not know of queries."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import DataError, Lists
from placet.data.arrays import Floats, encode, offsets_from_sizes
from placet.kernels import ranges
from placet.losses import CURVATURES, LOSSES
from placet.rank.objective import learnt_for, parameters_for

FLOOR = 1e-3  # least curvature of a row, in units of the mean: keeps Newton steps of a leaf bounded


class Slopes:
    """Gradient and curvature of a loss in the order of the caller's rows, in the form that boosting engines call.

    Called with (scores, data set with get_label) as LightGBM and XGBoost do, or with two arrays (labels, scores) as
    their scikit-learn interfaces do.
    """

    def __init__(
        self,
        loss: str,
        params: Mapping[str, Any] | None = None,
        qid: Sequence[Hashable] | None = None,
        weight: ArrayLike | None = None,
    ) -> None:
        if loss not in CURVATURES:
            raise ValueError(f"loss {loss!r} has no curvature for trees; choose from {sorted(CURVATURES)}")
        self.loss, self.params, self.qid, self.weight = loss, parameters_for(loss, params), qid, weight
        self.learnt = learnt_for(loss, self.params)
        self.lists: Lists | None = None
        self.row: NDArray[np.int64] | None = None
        self.unit = self.level = 0.0

    def see(self, grade: ArrayLike, offsets: NDArray[np.int64], weight: ArrayLike | None = None) -> None:
        """Fix the lists; rows are put in descending grade once, not in every round."""
        grade = np.asarray(grade, dtype=np.float64)
        self.row = None if ranges.is_descending(grade, offsets) else ranges.descending_order(grade, offsets)
        self.lists = Lists(grade if self.row is None else grade[self.row], offsets, weight)

    def __call__(self, first: Any, second: Any) -> tuple[Floats, Floats]:
        labels = hasattr(second, "get_label")
        scores, grade = (first, second.get_label) if labels else (second, lambda: first)
        if self.lists is None:
            self._group(np.asarray(grade(), dtype=np.float64))
        return self.at(np.asarray(scores, dtype=np.float64))

    def at(self, s: Floats) -> tuple[Floats, Floats]:
        """Gradient and curvature at scores ``s``; learnt parameters take a step of their own on the way.

        Some losses see the level of the scores, though it changes no order; there the scores stand for ``s + level``,
        the level that was best at the first call: far from it all gradients point one way, and no split is worth it.
        """
        assert self.lists is not None
        s = s if self.row is None else s[self.row]
        if self.learnt:
            self._learn(s)
        if not self.unit:
            self.level = self._best_level(s)
        s = s + self.level if self.level else s
        _, g = LOSSES[self.loss](s, self.lists, **self.params, **self.learnt)
        h = CURVATURES[self.loss](s, self.lists, **self.params, **self.learnt)
        if not self.unit:
            self.unit = float(np.mean(h)) or 1.0
        g, h = g / self.unit, np.maximum(h / self.unit, FLOOR)
        if self.row is None:
            return g, h
        back_g, back_h = np.empty_like(g), np.empty_like(h)
        back_g[self.row], back_h[self.row] = g, h
        return back_g, back_h

    def _best_level(self, s: Floats) -> float:
        """The constant that, added to ``s``, minimises the loss: Newton steps, halved while the slope grows.

        0 where the level does not matter.
        """
        level, slope, bend = 0.0, *self._sums(s)
        noise = 1e-9 * float(np.abs(LOSSES[self.loss](s, self.lists, **self.params, **self.learnt)[1]).sum())
        for _ in range(100):
            if abs(slope) <= noise or not bend > 0:
                break
            step = -slope / bend
            while True:
                new_slope, new_bend = self._sums(s + level + step)
                if abs(new_slope) < abs(slope) or abs(step) < 1e-12:
                    break
                step /= 2
            level, slope, bend = level + step, new_slope, new_bend
        return level

    def _sums(self, s: Floats) -> tuple[float, float]:
        """Slope of the loss in the level, and its curvature with every row on its own."""
        params = {**self.params, **self.learnt}
        slope = LOSSES[self.loss](s, self.lists, **params)[1]
        return float(slope.sum()), float(CURVATURES[self.loss](s, self.lists, **params).sum())

    def _learn(self, s: Floats) -> None:
        """One safeguarded Newton step in each learnt parameter, its curvature taken from a difference of slopes."""
        slope = lambda learnt: LOSSES[self.loss](s, self.lists, **self.params, **learnt, parameter_gradient=True)[2]  # noqa: E731
        here = slope(self.learnt)
        for name, value in list(self.learnt.items()):
            near = slope({**self.learnt, name: value + 1e-4})
            bend = (near[name] - here[name]) / 1e-4
            step = -here[name] / bend if bend > 0 else -np.sign(here[name])
            self.learnt[name] = value + float(np.clip(step, -1.0, 1.0))

    def _group(self, grade: Floats) -> None:
        """Find the lists from ``qid``, when the first call brings the grades."""
        if self.qid is None or len(self.qid) != len(grade):
            raise DataError(
                f"qid has {0 if self.qid is None else len(self.qid)} entries; there are {len(grade)} labels"
            )
        code, names = encode(self.qid, "qid")
        if self.weight is not None and np.shape(self.weight) != (len(names),):
            raise DataError(f"weight has shape {np.shape(self.weight)}; give one for each of {len(names)} queries")
        self.row = np.lexsort((-grade, code))
        self.lists = Lists(grade[self.row], offsets_from_sizes(np.bincount(code, minlength=len(names))), self.weight)


def objective(
    loss: str, qid: Sequence[Hashable], *, weight: ArrayLike | None = None, **params: Any
) -> Callable[[Any, Any], tuple[Floats, Floats]]:
    """A custom objective for LightGBM's or XGBoost's own training loop, which does not tell it the groups.

    ``qid`` (rows,) names the query of each row, in any order; ``weight``: one per query, in order of first appearance.
    ``params`` are those of the loss.

    >>> f = objective("ranknet", qid=["q", "q"])
    >>> gradient, curvature = f(np.array([1.0, 0.0]), np.array([0.0, 0.0]))  # labels, scores
    >>> gradient.round(6), curvature.round(6)  # in units of the curvature at the start
    (array([-2.,  2.]), array([1., 1.]))
    """
    return Slopes(loss, params, qid, weight)
