"""Evidence that may be looked at after every vote: a bet against "i is not above j" that nobody expects to win.

Let i win a decided vote against j with probability q (ties are left out), whatever was asked and answered before.
Under the hypothesis q <= b every factor (p / b)^[i wins] ((1 - p) / (1 - b))^[j wins] with p >= b has an expectation of
at most 1, given the past.  So has their product after any number of votes, chosen by any rule, and so has the average
of the products over p, here by a Beta(3, 3) law above b:

    E = [B(w + 3, l + 3) / B(3, 3)] [P(Beta(w + 3, l + 3) > b) / P(Beta(3, 3) > b)] / (b^w (1 - b)^l)

after w wins and l losses.  E starts at 1, and by Ville's inequality it ever reaches 1 / alpha with a probability of at
most alpha: a statement made when it does is wrong that rarely, though everybody watches and stops when it looks best.

Ville, Étude critique de la notion de collectif, 1939; Robbins, Annals of Mathematical Statistics 1970.
"""

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from placet.data.arrays import Floats

Truth = NDArray[np.bool_]

SHAPE = 3.0
"""Of the Beta law of the bets: votes needed are within 12 % of the best law's for winning shares from 0.55 to 0.8."""


def log_evidence(wins: ArrayLike, losses: ArrayLike, bar: float = 0.5) -> Floats:
    """log E against "the share of decided votes won is at most ``bar``"; -inf if it is too small for a number.

    >>> [round(float(log_evidence(w, 0)), 2) for w in (0, 1, 10)]
    [0.0, 0.27, 3.8]
    """
    won, lost = np.broadcast_arrays(np.asarray(wins, np.float64), np.asarray(losses, np.float64))
    rows, columns = (int(one.max(initial=0.0)) + 1 for one in (won, lost))
    if 2 * rows * columns > won.size or (won % 1).any() or (lost % 1).any():
        return _log_evidence(won, lost, bar)
    count = np.arange(float(max(rows, columns)))  # many pairs, few votes each
    first, second = np.broadcast_arrays(count[:rows, None], count[:columns])
    table = _log_evidence(first, second, bar)
    return table[won.astype(np.int64), lost.astype(np.int64)]


def _log_evidence(won: Floats, lost: Floats, bar: float) -> Floats:
    tail = scipy.special.betainc(lost + SHAPE, won + SHAPE, 1.0 - bar)
    first = scipy.special.betainc(SHAPE, SHAPE, 1.0 - bar)
    above = np.full(won.shape, -np.inf)
    np.log(tail / first, out=above, where=tail > 0)
    prior = scipy.special.betaln(SHAPE, SHAPE)
    found = scipy.special.betaln(won + SHAPE, lost + SHAPE) - prior + above
    found = found - won * np.log(bar) - lost * np.log1p(-bar)
    return np.asarray(found, np.float64)


def growth(share: Any, bar: float = 0.5) -> Floats:
    """Expected gain of log E by one decided vote if ``share`` of them are won: the divergence from ``bar``."""
    share = np.asarray(share, np.float64)
    gain = scipy.special.xlogy(share, share / bar) + scipy.special.xlogy(1 - share, (1 - share) / (1 - bar))
    return np.asarray(gain, np.float64)


def transitive_closure(proven: Truth) -> Truth:
    """(n, n): what follows from the statements "row is above column" by going from one to the next.  O(n^3 / 64)."""
    reach = np.packbits(proven, axis=1)
    for k in np.flatnonzero(proven.any(axis=0) & proven.any(axis=1)).tolist():
        to_k = (reach[:, k >> 3] >> (7 - (k & 7))) & 1
        reach[to_k.astype(bool)] |= reach[k]
    return np.unpackbits(reach, axis=1, count=len(proven)).astype(bool)
