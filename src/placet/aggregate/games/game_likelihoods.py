"""Likelihoods of games as functions of row scores: ordered margins of one row score, goals of two.

A law knows nothing of items: it takes the row scores ``eta`` (games, rows) and a few numbers of its own, and returns
-log p of each game with its derivatives.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, ive, log_expit

from placet.data.arrays import Floats, Ints

MOST_GOALS = 30
"""Goals of a side up to which probabilities are added, at least."""


class GameSlopes(NamedTuple):
    """-log p (games,); first derivatives by row scores (games, rows) and own numbers (games, own); second derivatives
    (games, rows + own, rows + own).
    """

    cost: Floats
    first: Floats
    second: Floats


@dataclass(frozen=True)
class OrderedMargins:
    """Cumulative logit of the margin m, cut into classes: P(m >= bound_k) = 1 / (1 + e^(c_k - d)), and the same for the
    other side with -d.

    ``bounds`` (k,) are the least margins of the classes, the first of them that of a win; c_1 < c_2 < ... are learned.
    If nothing is ever drawn, c_1 = 0.  With one class it is Rao and Kupper's model.
    """

    bounds: Floats
    drawn: bool
    rows: int = 1

    @property
    def own(self) -> int:
        return len(self.bounds) - (0 if self.drawn else 1)

    def start(self) -> Floats:
        first = 0.5 if self.drawn else 1.0
        return first + np.arange(self.own, dtype=np.float64)

    def cuts(self, own: Floats) -> Floats:
        """c_1, c_2, ..."""
        return own if self.drawn else np.append(0.0, own)

    def allows(self, own: Floats) -> bool:
        cuts = self.cuts(own)
        return bool(cuts[0] >= 0 and (np.diff(cuts) > 0).all()) and (not self.drawn or bool(cuts[0] > 0))

    def classes(self, margin: Floats) -> Ints:
        """Class of each margin, from -k to k."""
        return (np.sign(margin) * np.searchsorted(self.bounds, np.abs(margin), side="right")).astype(np.int64)

    def slopes(self, eta: Floats, own: Floats, points: Floats) -> GameSlopes:
        """With b the cut above, a that below, each minus d: p = s(b) s(-a) (1 - e^(a - b)), s(x) = 1 / (1 + e^-x)."""
        k, cuts = len(self.bounds), self.cuts(own)
        edges = np.concatenate([[-np.inf], -cuts[::-1], cuts, [np.inf]])
        jacobian = np.zeros((2 * k + 2, k))
        jacobian[k + 1 + np.arange(k), np.arange(k)], jacobian[k - np.arange(k), np.arange(k)] = 1.0, -1.0
        jacobian = jacobian[:, len(cuts) - self.own :]
        place = self.classes(points[:, 0] - points[:, 1]) + k
        d = eta[:, 0]
        below, above = edges[place] - d, edges[place + 1] - d
        gap = edges[place + 1] - edges[place]
        cost = -log_expit(above) - log_expit(-below) - np.log(-np.expm1(-gap))
        down, up = expit(-above), expit(below)
        inside = np.where(np.isfinite(gap), 1.0 / np.expm1(np.minimum(gap, 700.0)), 0.0)
        above_own, below_own = jacobian[place + 1], jacobian[place]
        span = above_own - below_own
        own_first = -down[:, None] * above_own + up[:, None] * below_own - inside[:, None] * span
        first = np.column_stack([down - up, own_first])
        lead = np.column_stack([-np.ones(len(d)), above_own])  # of the edge above minus d
        tail = np.column_stack([-np.ones(len(d)), below_own])
        wide = np.column_stack([np.zeros(len(d)), span])
        second = (down * (1 - down))[:, None, None] * lead[:, :, None] * lead[:, None, :]
        second += (up * (1 - up))[:, None, None] * tail[:, :, None] * tail[:, None, :]
        second += (inside * (1 + inside))[:, None, None] * wide[:, :, None] * wide[:, None, :]
        return GameSlopes(cost, first, second)

    def outcomes(self, eta: Floats, own: Floats) -> Floats:
        """Probabilities (games, 3) of a win, a draw and a loss of the first side."""
        cut, d = self.cuts(own)[0], eta[..., 0]
        win, loss = expit(d - cut), expit(-d - cut)
        return np.stack([win, 1 - win - loss, loss], axis=-1)


@dataclass(frozen=True)
class PoissonGoals:
    """Poisson goals of both sides with the log rates ``eta``; ``shared`` adds a third Poisson count to both, and
    ``drawn`` multiplies the odds of a draw by a number that is learned (e^delta).

    The bivariate law of X = U + W and Y = V + W: W is never seen, and the derivatives are those of the complete counts,
    given X and Y (Louis 1982).  W changes no margin, so with D the chance of a draw of independent counts, and whatever
    W, p(x, y) is multiplied by e^(delta [x = y]) / (1 + (e^delta - 1) D).
    """

    shared: bool
    drawn: bool = False
    rows: int = 2

    @property
    def own(self) -> int:
        return int(self.shared) + int(self.drawn)

    def start(self) -> Floats:
        return np.array([math.log(0.1)] * self.shared + [0.0] * self.drawn)

    def allows(self, own: Floats) -> bool:
        return bool((np.abs(own) < 30).all())

    def slopes(self, eta: Floats, own: Floats, points: Floats) -> GameSlopes:
        counts = self._counts(eta, own, points)
        if not self.drawn:
            return counts
        draws = _draw_slopes(eta, float(own[-1]), points)
        first = np.column_stack([counts.first, np.zeros(len(eta))])
        second = np.pad(counts.second, ((0, 0), (0, 1), (0, 1)))
        at = np.array([0, 1, 1 + self.own])
        first[:, at] += draws.first
        second[:, at[:, None], at] += draws.second
        return GameSlopes(counts.cost + draws.cost, first, second)

    def _counts(self, eta: Floats, own: Floats, points: Floats) -> GameSlopes:
        """Of the counts alone, without what is learned of draws."""
        n, rate = len(eta), np.exp(np.minimum(eta, 100.0))
        second = np.zeros((n, 2 + self.shared, 2 + self.shared))
        if not self.shared:
            cost = (rate - points * eta + gammaln(points + 1)).sum(axis=1)
            second[:, [0, 1], [0, 1]] = rate
            return GameSlopes(cost, rate - points, second)
        third = float(np.exp(own[0]))
        k = np.arange(int(points.min(axis=1).max(initial=0.0)) + 1)
        left = points[:, :, None] - k
        logs = (left * eta[:, :, None] - gammaln(np.maximum(left, 0) + 1)).sum(axis=1) + k * own[0] - gammaln(k + 1)
        logs = np.where((left >= 0).all(axis=1), logs, -np.inf)
        top = logs.max(axis=1, keepdims=True)
        share = np.exp(logs - top)
        total = share.sum(axis=1)
        cost = rate.sum(axis=1) + third - np.log(total) - top[:, 0]
        mean = (share @ k) / total
        spread = (share @ k**2) / total - mean**2
        first = np.column_stack([rate[:, 0] - points[:, 0] + mean, rate[:, 1] - points[:, 1] + mean, third - mean])
        sign = np.array([1.0, 1.0, -1.0])
        second[:, [0, 1], [0, 1]], second[:, 2, 2] = rate, third
        second -= spread[:, None, None] * sign[:, None] * sign
        return GameSlopes(cost, first, second)

    def outcomes(self, eta: Floats, own: Floats) -> Floats:
        """Probabilities (games, 3) of a win, a draw and a loss of the first side; a shared count changes no margin."""
        rate = np.exp(eta)
        top = float(rate.max(initial=0.0))
        k = np.arange(max(MOST_GOALS, int(top + 8 * math.sqrt(top)) + 10))
        each = np.exp(k * eta[..., None] - rate[..., None] - gammaln(k + 1))
        first, second = each[..., 0, :], each[..., 1, :]
        draw = (first * second).sum(axis=-1)
        win = (first[..., 1:] * np.cumsum(second, axis=-1)[..., :-1]).sum(axis=-1)
        loss = (second[..., 1:] * np.cumsum(first, axis=-1)[..., :-1]).sum(axis=-1)
        chances = np.stack([win, draw, loss], axis=-1)
        if not self.drawn:
            return chances
        more = np.expm1(own[-1])
        return (chances + more * draw[..., None] * np.array([0.0, 1.0, 0.0])) / (1 + more * draw)[..., None]

    def means(self, eta: Floats, own: Floats) -> Floats:
        """Expected goals (games, 2) of both sides."""
        mean = np.exp(eta)
        if self.drawn:
            level, z, ratio = _log_draw(eta)
            more = np.expm1(own[-1]) * np.exp(level)
            mean = (mean + (more * ratio * z / 2)[..., None]) / (1 + more)[..., None]
        return mean + (np.exp(own[0]) if self.shared else 0.0)


def _log_draw(eta: Floats) -> tuple[Floats, Floats, Floats]:
    """log D of independent Poisson counts with log rates eta; z = 2 sqrt(product of the rates), and I1(z) / I0(z).

    D = e^-(a + b) I0(z), and the mean of either count over draws alone is D z I1(z) / (2 I0(z)).
    """
    root = np.exp(np.minimum(eta, 100.0) / 2)
    z = 2 * root[..., 0] * root[..., 1]
    return -((root[..., 0] - root[..., 1]) ** 2) + np.log(ive(0, z)), z, ive(1, z) / ive(0, z)


def _draw_slopes(eta: Floats, delta: float, points: Floats) -> GameSlopes:
    """-delta [x = y] + log(1 + (e^delta - 1) D), and its derivatives by eta and delta.

    log D has the derivatives -rate + r z / 2, and -rate (on the diagonal) + z^2 (1 - r^2) / 4, with r = I1 / I0.
    """
    rate = np.exp(np.minimum(eta, 100.0))
    level, z, ratio = _log_draw(eta)
    draw = np.exp(level)
    total = 1 + np.expm1(delta) * draw
    drawn, more = np.exp(delta) * draw / total, np.expm1(delta) * draw / total
    slope = ratio[:, None] * z[:, None] / 2 - rate
    bend = (z**2 * (1 - ratio**2) / 4)[:, None, None] * np.ones((2, 2))
    bend[:, [0, 1], [0, 1]] -= rate
    tied = points[:, 0] == points[:, 1]
    second = np.zeros((len(eta), 3, 3))
    second[:, :2, :2] = more[:, None, None] * (bend + (1 - more)[:, None, None] * slope[:, :, None] * slope[:, None, :])
    second[:, 2, :2] = second[:, :2, 2] = (drawn * (1 - more))[:, None] * slope
    second[:, 2, 2] = drawn * (1 - drawn)
    first = np.column_stack([more[:, None] * slope, drawn - tied])
    return GameSlopes(np.log(total) - delta * tied, first, second)


GameLaw = OrderedMargins | PoissonGoals
"""The law of a game, given its row scores: ``rows`` of them, and ``own`` numbers of its own."""
