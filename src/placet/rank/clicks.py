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
from placet.losses import Bound
from placet.optim import lbfgs
from placet.rank.linear import LinearRanker
from placet.rank.ranker import Ranker
from placet.rank.trees import TreeRanker

POSITION_L2 = 1e-4  # penalty on effects: those of the weights would shrink them, and give positions' share to features


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
    position-based model given one click.  ``valid``: queries with grades, as in ``fit``; where there are none,
    `choose_by_clicks` judges rankers by clicks that they were not fitted to.
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
    fitted = clone(ranker)
    if isinstance(fitted, LinearRanker) and ranker.control_l2 is None:
        fitted.set_params(control_l2=POSITION_L2)
    fitted.fit(data, valid=valid, control=shown if shown.shape[1] else None)
    effect = np.append(0.0, list(fitted.controls_.values()))
    fitted.controls_ = {}
    if isinstance(fitted, LinearRanker):
        fitted.intercept_, fitted.control_l2 = 0.0, ranker.control_l2
    examination = np.exp(effect) if debias else np.ones(len(positions))
    return ClickFit(fitted, positions, examination, len(offsets) - 1, n_silent)


def choose_by_clicks(
    rankers: Sequence[Ranker],
    X: Any,
    clicks: Clicks,
    valid: Clicks,
    *,
    keys: Sequence[tuple[Hashable, Hashable]] | None = None,
    X_valid: Any = None,
) -> tuple[ClickFit, Floats]:
    """Fit every ranker to ``clicks``; the best on the clicks ``valid``, and the values (rankers,) of all.

    A value is `click_likelihood` on ``valid``, whose rows have the features ``X_valid``, or are among ``keys`` too.
    No grade is needed, and a tie goes to the earlier.
    """
    if not len(rankers):
        raise ValueError("there is no ranker to choose from; give at least one")
    if (keys is None) == (X_valid is None):
        raise ValueError("give X_valid, the features of every row of valid, or keys that name the rows of both logs")
    fits = [fit_clicks(ranker, X, clicks, keys=keys) for ranker in rankers]
    rows = X if X_valid is None else X_valid
    values = np.array([click_likelihood(fit.ranker, rows, valid, keys=keys) for fit in fits])
    return fits[int(np.argmax(values))], values


def click_likelihood(
    ranker: Any, X: Any, clicks: Clicks, *, keys: Sequence[tuple[Hashable, Hashable]] | None = None
) -> float:
    """Mean log likelihood of a click, given what was shown beside it and left, of scores a s + b_position.

    ``ranker``: whatever has ``predict(X)``; ``X`` and ``keys`` as in `fit_clicks`.  The scale a >= 0 and the effects b
    are those that are best for these clicks: so rankers of any loss and library are judged alike, by how well their
    scores tell apart rows that were shown at the same positions.
    """
    row, lists, _ = clicks.choices()
    if not row.size:
        raise DataError(f"none of {len(clicks)} impressions has a click beside something unclicked")
    s = np.asarray(ranker.predict(X), dtype=np.float64)
    s = s[row] if keys is None else s[clicks.rows_of(keys)[row]]
    s = s / (float(np.std(s)) or 1.0)
    positions, code = np.unique(clicks.position, return_inverse=True)
    code, n = code.ravel()[row], len(positions)
    bound = Bound("pl-partition", lists)

    def penalized(x: Floats) -> tuple[float, Floats]:
        b = np.append(0.0, x[1:])
        value, g = bound.value_and_grad(x[0] * s + b[code])
        grad = np.append(g @ s, np.bincount(code, g, n)[1:] + POSITION_L2 * b[1:])
        return value + 0.5 * POSITION_L2 * float(b @ b), grad

    low = np.append(0.0, np.full(n - 1, -np.inf))
    found = lbfgs(penalized, np.zeros(n), bounds=(low, np.full(n, np.inf)), tol=1e-7).x
    return -bound.value_and_grad(found[0] * s + np.append(0.0, found[1:])[code])[0]
