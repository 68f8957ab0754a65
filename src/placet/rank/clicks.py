"""Rankers from clicks: the position at which a row was shown is a control, fitted with the ranker and then left out.

A click is a choice among what was shown: P(row) in proportion to e^{s + b_position}, e^b the examination of a position
relative to the first.  So neither propensities nor randomized traffic are needed, only rows that were seen at several
positions (or share features with such rows).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, table
from placet.data.clicks import Clicks
from placet.rank.linear import LinearRanker
from placet.rank.ranker import Ranker
from placet.rank.trees import Slopes, TreeRanker

PRIOR_ROWS = 1.0  # curvature that holds an effect near the one before, in rows


@dataclass(frozen=True)
class ClickFit:
    """A ranker fitted to clicks, ready to ``predict``, and the ``examination`` of each of ``positions`` (first: 1)."""

    ranker: Any
    positions: Ints
    examination: Floats
    n_choices: int
    n_silent: int


def fit_clicks(
    ranker: Ranker,
    X: Any,
    clicks: Clicks,
    *,
    keys: Sequence[tuple[Hashable, Hashable]] | None = None,
    valid: Queries | None = None,
    debias: bool = True,
) -> ClickFit:
    """Fit a linear or tree ranker to clicks, with the effects of positions unless ``debias`` is False.

    ``X``: features of every row of the log, or of every (query, document) of ``keys``, in their order.  The loss of
    the ranker sees each click as a list with one row above the others; "pl-partition" makes it the likelihood of the
    position-based model given one click.  ``valid``: queries with grades, as in ``fit``.
    """
    if not isinstance(ranker, (LinearRanker, TreeRanker)):
        raise ValueError(f"clicks are fitted by LinearRanker and TreeRanker, not by {type(ranker).__name__}")
    matrix, names = table(X)
    matrix = matrix if hasattr(matrix, "tocsr") else np.asarray(matrix)
    n_rows = len(clicks.document) if keys is None else len(keys)
    if matrix.shape[0] != n_rows:
        raise DataError(f"X has {matrix.shape[0]} rows; {n_rows} are named by the {'log' if keys is None else 'keys'}")
    row, lists, n_silent = clicks.choices()
    columns: tuple[Any, ...] = tuple(lists)
    grade, offsets, weight = columns
    if len(offsets) == 1:
        raise DataError(f"none of {len(clicks)} impressions has a click beside something unclicked")
    own = row if keys is None else clicks.rows_of(keys)[row]
    positions, code = np.unique(clicks.position, return_inverse=True)
    code = code.ravel()[row] if debias else np.zeros(len(row), np.int64)
    data = Queries(matrix[own], grade, offsets, weight, features=names)
    fit = _linear if isinstance(ranker, LinearRanker) else _trees
    fitted, effect = fit(clone(ranker), data, code, len(positions) if debias else 1, valid)
    examination = np.exp(effect - effect[0]) if debias else np.ones(len(positions))
    return ClickFit(fitted, positions, examination, len(offsets) - 1, n_silent)


def _linear(ranker: LinearRanker, data: Queries, code: Ints, n: int, valid: Queries | None) -> tuple[Any, Floats]:
    """Positions after the first as controls of 0 and 1."""
    shown = np.zeros((len(code), n - 1))
    later = np.flatnonzero(code)
    shown[later, code[later] - 1] = 1.0
    ranker.fit(data, valid=valid, control=shown)
    effect = np.append(0.0, list(ranker.controls_.values()))
    ranker.controls_, ranker.intercept_ = {}, 0.0
    return ranker, effect


def _trees(ranker: TreeRanker, data: Queries, code: Ints, n: int, valid: Queries | None) -> tuple[Any, Floats]:
    """Between two trees a Newton step in the effects, at the rate of the trees; the loss sees scores with them."""
    slopes: list[_Shown] = []

    class Grown(TreeRanker):
        """The same trees, at scores with the effects of positions."""

        def _slopes(self) -> Slopes:
            slopes.append(_Shown(self.loss, self.loss_params, code, n, self.learning_rate))
            return slopes[-1]

    grown = Grown(**ranker.get_params()).fit(data, valid=valid)
    ranker.__dict__.update(grown.__dict__)
    return ranker, slopes[-1].effect


class _Shown(Slopes):
    """Slopes at the scores plus the effects of positions, which take a step of their own at every call."""

    def __init__(self, loss: str, params: Any, code: Ints, n: int, rate: float) -> None:
        super().__init__(loss, params)
        self.code, self.effect, self.rate = code, np.zeros(n), rate

    def at(self, s: Floats) -> tuple[Floats, Floats]:
        g, h = super().at(s + self.effect[self.code])
        n = len(self.effect)
        if n > 1:
            pull, bend = np.bincount(self.code, g, n), np.bincount(self.code, h, n)
            self.effect = self.effect - self.rate * pull / (bend + PRIOR_ROWS)
            self.effect -= self.effect[0]
        return g, h
