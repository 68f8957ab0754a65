"""Rankers from clicks: the position at which a row was shown is a control, fitted with the ranker and then dropped.

A click is a choice among the rows shown: P(row) is proportional to e^{s + b_position}, with e^b the examination of a
position relative to the first.  So neither propensities nor randomized traffic are needed, only rows that were shown at
several positions (or share features with such rows).

This is the likelihood if users choose one row per impression, in proportion to examination times attraction.  If they
click any number of rows, each with such a probability (the position-based model), every click counts against all rows
shown: a pseudo-likelihood that also has its maximum at the true values as clicks become many, for independent clicks
and for any others (the conditional Poisson regression of Hausman, Hall and Griliches, 1984).  Only impressions selected
by their number of clicks mislead it: given exactly one of several independent clicks, P(row) is proportional to its
odds p / (1 - p).

Users may also trust the ranking and click top rows that look wrong to them.  Then a click at the top says less about
the row: P(row) is proportional to e^{a_position s + b_position}.  If rows are either relevant or irrelevant, and
clicked when examined with probability eps+_k or eps-_k, this is exactly the trust-bias model: a_k is proportional to
log(eps+_k / eps-_k), and b_k is log(examination_k eps-_k).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, table
from placet.data.clicks import Clicks
from placet.data.engines.memory import refuse_table
from placet.losses import Bound
from placet.optim import lbfgs
from placet.rank.linear.linear_ranker import LinearRanker
from placet.rank.ranker import Ranker
from placet.rank.trees.tree_ranker import TreeRanker

POSITION_L2 = 1e-4  # penalty on position effects; the penalty on weights would shrink them in favor of the features
TRUST_L2 = 1e-3  # penalty on the deviation of a position's sharpness from the mean, for standardized scores
ROUNDS, SETTLED = 10, 0.02  # maximum number of fits for sharpness, and the largest change that counts as converged


@dataclass(frozen=True)
class ClickFit:
    """A ranker fitted to clicks, ready to ``predict``, and the ``examination`` of each of ``positions`` (first: 1).

    ``sharpness`` (positions,): how strongly clicks there follow the score, with mean 1 over rows shown; all 1 without
    trust.  If it varies, the examination is that of a row with the mean score.

    >>> import placet
    >>> rows = placet.simulate.queries(50, 10, 3)
    >>> log = placet.simulate.clicks(rows, rows.X[:, 0], 50)
    >>> found = placet.rank.fit_clicks(placet.LinearRanker("pl-partition"), rows.X[log.document], log)
    >>> found.positions.tolist(), found.examination[:2].round(1)
    ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], array([1. , 0.5]))
    """

    ranker: Any
    positions: Ints
    examination: Floats
    n_choices: int
    n_silent: int
    sharpness: Floats


def fit_clicks(
    ranker: Ranker,
    X: Any,
    clicks: Clicks,
    *,
    keys: Sequence[tuple[Hashable, Hashable]] | None = None,
    valid: Queries | None = None,
    debias: bool = True,
    trust: bool = False,
) -> ClickFit:
    """Fit a linear or tree ranker to clicks, with the effects of positions unless ``debias`` is False.

    ``X``: features of every row of the log, or of every (query, document) pair in ``keys``, in that order.  To the
    ranker's loss, each click is a list with one row above all others shown; "pl-partition" makes it the likelihood of
    a choice in proportion to e^{s + b_position}.  ``valid``: queries with grades, as in ``fit``;
    without grades, `choose_by_clicks` compares rankers on held-out clicks.

    ``trust``: each position also has a sharpness, a factor of the scores shown there, so that rows clicked only for
    their position have less influence.  Ranker and sharpness are fitted alternately until both converge.

    Returns
    -------
    ClickFit
        The ranker, and how often each position was looked at.

    >>> import placet
    >>> rows = placet.simulate.queries(50, 10, 3)
    >>> log = placet.simulate.clicks(rows, rows.X[:, 0], 50)  # shown by the first feature alone
    >>> found = fit_clicks(placet.LinearRanker("pl-partition"), rows.X[log.document], log)
    >>> found.examination[:4].round(1)  # the truth is 1, 1/2, 1/3, 1/4
    array([1. , 0.5, 0.3, 0.3])
    """
    if trust and not debias:
        raise ValueError("trust=True is an effect of positions; leave debias=False out")
    if trust and getattr(ranker, "second_order", None) is not None:
        raise ValueError(
            "trust=True scales the features of a linear ranker, not their products; leave second_order out"
        )
    if not isinstance(ranker, (LinearRanker, TreeRanker)):
        raise ValueError(f"clicks are fitted by LinearRanker and TreeRanker, not by {type(ranker).__name__}")
    matrix, names = table(X)
    matrix = matrix if hasattr(matrix, "tocsr") else np.asarray(matrix)
    _refuse_length(matrix.shape[0], clicks, keys)
    row, lists, n_silent = clicks.choices()
    columns: tuple[Any, ...] = tuple(lists)
    grade, offsets, weight = columns
    if len(offsets) == 1:
        raise DataError(f"none of {len(clicks)} impressions has a click on one of several rows")
    own = row if keys is None else clicks.rows_of(keys, matrix)[row]
    positions, code = np.unique(clicks.position, return_inverse=True)
    code = code.ravel()[row] if debias else np.zeros(len(row), np.int64)
    refuse_table(len(row), len(positions), "a table of rows and positions", "take fewer positions or impressions")
    shown = np.zeros((len(row), len(positions) - 1 if debias else 0))
    later = np.flatnonzero(code)
    shown[later, code[later] - 1] = 1.0  # positions after the first

    fit = partial(_fit_rows, ranker, Queries(matrix[own], grade, offsets, weight, features=names), shown, valid)
    sharpness = np.ones(len(positions))
    fitted, effect = fit(sharpness[code])
    if trust:
        bound, n_shown = Bound("pl-partition", lists), np.bincount(code, minlength=len(positions))
        for _ in range(ROUNDS):
            before, s = sharpness, np.asarray(fitted.predict(matrix), dtype=np.float64)[own]
            sharpness, effect = position_effects(bound, s, code, len(positions), trust=True)
            sharpness = sharpness * n_shown.sum() / max(float(sharpness @ n_shown), np.finfo(float).tiny)
            fitted, _ = fit(sharpness[code])
            if np.abs(sharpness - before).max() < SETTLED:
                break
    examination = np.exp(effect) if debias else np.ones(len(positions))
    return ClickFit(fitted, positions, examination, len(offsets) - 1, n_silent, sharpness)


def _refuse_length(
    n_rows: int, clicks: Clicks, keys: Sequence[tuple[Hashable, Hashable]] | None, what: str = "X"
) -> None:
    """Refuse features that are not one row for every row of the log or, if given, of the keys."""
    named, by = (len(clicks.document), "log") if keys is None else (len(keys), "keys")
    if n_rows != named:
        raise DataError(f"{what} has {n_rows} rows; {named} are named by the {by}")


def _fit_rows(ranker: Any, data: Queries, shown: Floats, valid: Queries | None, factor: Floats) -> tuple[Any, Floats]:
    """Fit a clone of the ranker with scores factor s + effect; also return the effects (positions,), the first 0."""
    fitted = clone(ranker)
    if isinstance(fitted, LinearRanker):
        fitted.set_params(control_l2=POSITION_L2 if ranker.control_l2 is None else ranker.control_l2)
        data = replace(data, X=scale_rows(data.X, factor))
    else:
        fitted._factor = None if (factor == 1.0).all() else factor
    fitted.fit(data, valid=valid, control=shown if shown.shape[1] else None)
    effect = np.append(0.0, list(fitted.controls_.values()))
    fitted.controls_ = {}
    if isinstance(fitted, LinearRanker):
        fitted.intercept_, fitted.control_l2 = 0.0, ranker.control_l2
    fitted.__dict__.pop("_factor", None)
    return fitted, effect


def scale_rows(X: Any, factor: Floats) -> Any:
    """Multiply every row of a table (dense or sparse) by its factor."""
    if (factor == 1.0).all():
        return X
    return X.multiply(factor[:, None]).tocsr() if hasattr(X, "tocsr") else X * factor[:, None]


def position_effects(
    bound: Bound, s: Floats, code: Ints, n_positions: int, *, trust: bool = False
) -> tuple[Floats, Floats]:
    """Fit the sharpness a >= 0 and effect b (b_1 = 0) of each position to clicks with scores a s + b.

    ``s`` and ``code`` (rows,): score and position index of every row of the lists of ``bound``.  Without ``trust`` all
    positions share one a.  Effects are those at the mean score.  Small penalties pull b toward 0 and a toward its mean.
    """
    n, k = n_positions, n_positions if trust else 1
    z = (s - s.mean()) / (float(np.std(s)) or 1.0)
    of = code if trust else np.zeros(len(code), np.int64)

    def penalized(x: Floats) -> tuple[float, Floats]:
        a, b = x[:k], np.append(0.0, x[k:])
        value, g = bound.value_and_grad(a[of] * z + b[code])
        gap = a - a.mean()
        value += 0.5 * POSITION_L2 * float(b @ b) + 0.5 * TRUST_L2 * float(gap @ gap)
        along = np.bincount(of, g * z, k) + TRUST_L2 * gap
        return value, np.concatenate([along, np.bincount(code, g, n)[1:] + POSITION_L2 * b[1:]])

    low = np.concatenate([np.zeros(k), np.full(n - 1, -np.inf)])
    start = np.concatenate([np.ones(k) if trust else np.zeros(k), np.zeros(n - 1)])
    found = lbfgs(penalized, start, bounds=(low, np.full(len(low), np.inf)), tol=1e-7).x
    a = np.full(n, found[0]) if not trust else found[:k]
    return a / (float(np.std(s)) or 1.0), np.append(0.0, found[k:])


def choose_by_clicks(
    rankers: Sequence[Ranker],
    X: Any,
    clicks: Clicks,
    valid: Clicks,
    *,
    keys: Sequence[tuple[Hashable, Hashable]] | None = None,
    X_valid: Any = None,
    trust: bool = False,
) -> tuple[ClickFit, Floats]:
    """Fit every ranker to ``clicks``; return the best on the clicks ``valid``, and the values (rankers,) of all.

    A value is `click_likelihood` on ``valid``, whose rows have the features ``X_valid`` or also appear in ``keys``.
    No grades are needed; ties go to the earlier ranker.  ``trust``, as in `fit_clicks`, applies to fits and values.

    Returns
    -------
    (ClickFit, array)
        The best fit, and the value of each ranker (rankers,).

    >>> import placet
    >>> rows = placet.simulate.queries(60, 10, 3)
    >>> log, later = (placet.simulate.clicks(rows, rows.X[:, 0], 10, random_state=k) for k in range(2))
    >>> rankers = [placet.LinearRanker("pl-partition", l2) for l2 in (1e-4, 100.0)]
    >>> best, values = choose_by_clicks(rankers, rows.X[log.document], log, later, X_valid=rows.X[later.document])
    >>> best.ranker.l2
    100.0
    """
    if not len(rankers):
        raise ValueError("there is no ranker to choose from; give at least one")
    if (keys is None) == (X_valid is None):
        raise ValueError("give X_valid, the features of every row of valid, or keys that name the rows of both logs")
    if X_valid is not None:
        _refuse_length(np.shape(table(X_valid)[0])[0], valid, None, "X_valid")
    fits = [fit_clicks(ranker, X, clicks, keys=keys, trust=trust) for ranker in rankers]
    rows = X if X_valid is None else X_valid
    values = np.array([click_likelihood(fit.ranker, rows, valid, keys=keys, trust=trust) for fit in fits])
    return fits[int(np.argmax(values))], values


def click_likelihood(
    ranker: Any,
    X: Any,
    clicks: Clicks,
    *,
    keys: Sequence[tuple[Hashable, Hashable]] | None = None,
    trust: bool = False,
) -> float:
    """Mean log likelihood of a click among the rows shown with it, for scores a s + b_position.

    ``ranker``: any object with ``predict(X)``; ``X`` and ``keys`` as in `fit_clicks`.  The scale a >= 0 (one per
    position with ``trust``) and the effects b are fitted to these clicks, so rankers of any loss and library are
    comparable: what counts is how well their scores separate rows shown at the same positions.

    Returns
    -------
    float
        The mean; larger is better.

    >>> import placet
    >>> rows = placet.simulate.queries(60, 10, 3)
    >>> log = placet.simulate.clicks(rows, rows.X[:, 0], 10)
    >>> X = rows.X[log.document]
    >>> fitted = fit_clicks(placet.LinearRanker("pl-partition"), X, log).ranker
    >>> click_likelihood(fitted, X, log) > click_likelihood(placet.LinearRanker().fit(rows[:3]), X, log)
    True
    """
    row, lists, _ = clicks.choices()
    if not row.size:
        raise DataError(f"none of {len(clicks)} impressions has a click on one of several rows")
    s = np.asarray(ranker.predict(X), dtype=np.float64)
    _refuse_length(len(s), clicks, keys)
    s = s[row] if keys is None else s[clicks.rows_of(keys, table(X)[0])[row]]  # equal rows may differ in rounding
    positions, code = np.unique(clicks.position, return_inverse=True)
    code, bound = code.ravel()[row], Bound("pl-partition", lists)
    a, b = position_effects(bound, s, code, len(positions), trust=trust)
    return -bound.value_and_grad(a[code] * (s - s.mean()) + b[code])[0]
