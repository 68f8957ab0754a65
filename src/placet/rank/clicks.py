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
from placet.rank.trees import TreeRanker


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
    shown = np.zeros((len(row), len(positions) - 1 if debias else 0))
    later = np.flatnonzero(code)
    shown[later, code[later] - 1] = 1.0  # positions after the first
    fitted = clone(ranker).fit(data, valid=valid, control=shown if shown.shape[1] else None)
    effect = np.append(0.0, list(fitted.controls_.values()))
    fitted.controls_ = {}
    if isinstance(fitted, LinearRanker):
        fitted.intercept_ = 0.0
    examination = np.exp(effect) if debias else np.ones(len(positions))
    return ClickFit(fitted, positions, examination, len(offsets) - 1, n_silent)
