"""Forecasts from a fit of drifting scores: where it ends, and how much results vary beyond it."""

import math

import numpy as np

from placet.aggregate.result.learned.forecast import Forecast, VoteLaw, filter_votes
from placet.aggregate.result.learned.history import History
from placet.data import Comparisons
from placet.data.arrays import Floats

USUAL_FORM = 0.5
WEAK = 1.0
"""Standard deviation of the normal prior of the logarithm of each width, around where the search starts."""

MOST_PASSES, ACCURACY = 40, 0.03


def forecast_of(history: History, votes: Comparisons, law: VoteLaw) -> Forecast:
    """The forecast after dated ``votes`` that gave the history.  O(passes x votes).

    Scores and their variances are those of the history, which weighs all votes at once.  ``drift`` and ``form`` are the
    values with which one pass over the votes, each predicted from those before it, gives them the highest probability:
    if past forecasts would have been too sure, they take up the difference.
    """
    assert votes.time is not None
    time, n = history.steps.fraction(votes.time), votes.n_items
    first = np.log([history.drift, USUAL_FORM])

    def run(u: Floats) -> tuple[float, Floats]:
        state = (np.zeros(n), np.full(n, history.prior**2), np.full(n, math.nan))
        cost = filter_votes(votes, time, law, float(np.exp(u[0])), float(np.exp(u[1])), state)
        return float(cost.sum()) + 0.5 * float(((u - first) ** 2).sum()) / WEAK**2, state[2]

    from scipy.optimize import minimize

    corners = np.vstack([first, first + 0.5 * np.eye(2)])
    options = {"initial_simplex": corners, "maxfev": MOST_PASSES, "xatol": ACCURACY, "fatol": 0.05}
    u = np.asarray(minimize(lambda u: run(u)[0], first, method="Nelder-Mead", options=options).x)
    mean, variance = np.zeros(n), np.full(n, history.prior**2)
    known = np.diff(history.offsets) > 0
    ends = history.offsets[1:][known] - 1
    mean[known], variance[known] = history.score[ends], history.variance[ends]
    drift, form = (float(value) for value in np.exp(u))
    return Forecast(mean, variance, run(u)[1], history.prior, drift, form, law, history.steps)
