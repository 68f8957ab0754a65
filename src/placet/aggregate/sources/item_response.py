"""Item response with slopes: how likely an item of ability u solves a task of difficulty b and slope s.

A cell of the table is a share of questions solved, with mean p = expit(s (u - b)) and variance p (1 - p) (1/N + f):
N is the number of questions (infinite if unknown) and f the task's own dispersion, so that with f = 0 it is a binomial
share, and with N infinite it has the mean and variance of a beta distribution.  Scores that are no shares are
numbers: each task is standardized, and a cell has mean s (u - b) and variance f.  Slopes have log s ~ N(0, 0.5^2) and a
geometric mean over cells of 1; difficulties a weak prior.  The cost of a cell is its quasi-likelihood, the
cross-entropy (or squared error) divided by its dispersion, which stays finite for shares of 0 and 1.  Dispersions are
those of Pearson's residuals, by task, each drawn towards that of all tasks as if by `SHARED` cells.
"""

from typing import Literal, get_args

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit, log_expit

from placet.aggregate.sources.source_likelihood import EffectNames
from placet.data import DataError
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.data.scores import Scores

Response = Literal["auto", "share", "number"]

DIFFICULTY_PRIOR = 10.0
"""Standard deviation of the difficulties' prior."""

SLOPE_PRIOR, FIRST_DISPERSION = 0.5, 0.05
MEAN_PRECISION = 1e6
FIRST_PRECISION = 0.5
SHARED = 10.0
ALONE = 0.01
"""Dispersion of a task that is a source by itself: its noise cannot be told from its deviations, which take all."""

EDGE = 0.005
"""Expected shares are kept this far from 0 and 1 where a variance is divided by."""


class TableLikelihood:
    """Cells (item, task, score, 1/N); x = (abilities, difficulties (tasks,), log slopes (tasks,))."""

    def __init__(self, scores: Scores, index: Ints, link: str):
        table = scores.by_task()
        self.tasks, self.index, self.link = scores.tasks, index, link
        self.n, self.n_tasks = table.shape
        self.item, self.task = (np.asarray(k, np.int64) for k in np.nonzero(~np.isnan(table)))
        self.raw = table[self.item, self.task]
        self.center, self.unit = np.zeros(self.n_tasks), np.ones(self.n_tasks)
        if link == "number":
            some = ~np.isnan(table).all(axis=0)  # a task may have no score left, as in a sample of items
            self.center[some], self.unit[some] = np.nanmean(table[:, some], axis=0), np.nanstd(table[:, some], axis=0)
            self.unit[self.unit == 0] = 1.0
        self.y = (self.raw - self.center[self.task]) / self.unit[self.task]
        self.share = np.bincount(self.task, minlength=self.n_tasks) / max(len(self.y), 1)
        self.inverse_count = np.zeros(len(self.y))
        if scores.questions is not None and link == "share":
            there = ~np.isnan(scores.value)
            count = np.zeros((self.n, self.n_tasks))
            for c, t in enumerate(scores.task):
                count[:, t] += there[:, c]
            self.inverse_count = 1 / count[self.item, self.task]
        self.size, self.held, self.effects = self.n + 2 * self.n_tasks, self.n_tasks, EffectNames()
        self.precision = FIRST_PRECISION
        self.dispersion = np.full(self.n_tasks, FIRST_DISPERSION if self.n_tasks > 1 else ALONE)
        self.step, self.damping = np.zeros(self.n_tasks), 1.0

    @classmethod
    def of(cls, scores: Scores, index: Ints, response: str = "auto") -> "TableLikelihood":
        """The likelihood of a table: shares if all scores are in 0..1, else numbers, unless ``response`` says which."""
        one_of(response, get_args(Response), "response")
        value = scores.value
        wrong = (value < 0) | (value > 1)
        if response == "share" and wrong.any():
            i, c = np.argwhere(wrong)[0]
            raise DataError(
                f"item {scores.items[i]!r} has {value[i, c]:g} for task {scores.tasks[scores.task[c]]!r} "
                f"({int(wrong.sum())} such scores); shares are in 0..1: divide percents by 100, or say "
                'response="number"'
            )
        number = response == "number" or (response == "auto" and bool(wrong.any()))
        return cls(scores, index, "number" if number else "share")

    @property
    def weight(self) -> Floats:
        """(cells,): one over the dispersion of each cell."""
        return 1 / (self.inverse_count + self.dispersion[self.task])

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Abilities, difficulties, slopes."""
        n, t = self.n, self.n_tasks
        return x[:n], x[n : n + t], np.exp(x[n + t :])

    def predictor(self, x: Floats) -> Floats:
        """(cells,): s (u - b)."""
        u, b, s = self.split(x)
        return s[self.task] * (u[self.item] - b[self.task])

    def start(self) -> Floats:
        """Abilities from the mean logit of each item's cells relative to their tasks."""
        y = np.clip(self.y, 0.02, 0.98) if self.link == "share" else self.y
        level = np.log(y / (1 - y)) if self.link == "share" else y
        by_task = np.bincount(self.task, level, self.n_tasks) / np.maximum(
            np.bincount(self.task, minlength=self.n_tasks), 1
        )
        left = level - by_task[self.task]
        u = np.bincount(self.item, left, self.n) / (np.bincount(self.item, minlength=self.n) + 1.0)
        return np.concatenate([u, -by_task, np.zeros(self.n_tasks)])

    def value(self, x: Floats) -> float:
        eta, w = self.predictor(x), self.weight
        if self.link == "share":
            cost = -(self.y * log_expit(eta) + (1 - self.y) * log_expit(-eta))
        else:
            cost = 0.5 * (self.y - eta) ** 2
        rest = x[self.n :]
        return float(w @ cost) + 0.5 * float(rest @ self._precision() @ rest)

    def _precision(self) -> Floats:
        """Prior precision of difficulties and log slopes.

        The mean of the latter, weighted by cells, is 0, as abilities have a scale; tasks with few cells, whose slopes
        are hardly known, must not decide it.
        """
        t = self.n_tasks
        P = np.zeros((2 * t, 2 * t))
        P[np.arange(t), np.arange(t)] = 1 / DIFFICULTY_PRIOR**2
        P[t:, t:] = np.eye(t) / SLOPE_PRIOR**2 + MEAN_PRECISION * np.outer(self.share, self.share)
        return P

    def _jacobian(self, x: Floats) -> tuple[Floats, Floats]:
        """Predictor (cells,) and slopes of the cells' tasks (cells,)."""
        return self.predictor(x), self.split(x)[2][self.task]

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian; the expected Hessian where the observed one is not positive definite."""
        n, t = self.n, self.n_tasks
        eta, s = self._jacobian(x)
        p = expit(eta) if self.link == "share" else eta
        slope = self.weight * (p - self.y)
        bend = self.weight * (np.maximum(p * (1 - p), 1e-9) if self.link == "share" else 1.0)
        grad = np.concatenate([
            np.bincount(self.item, slope * s, n),
            -np.bincount(self.task, slope * s, t),
            np.bincount(self.task, slope * eta, t),
        ])  # fmt: skip
        H, i, b, c = np.zeros((self.size, self.size)), self.item, n + self.task, n + t + self.task
        places = ((i, i, s * s), (b, b, s * s), (c, c, eta * eta), (i, b, -s * s), (i, c, s * eta), (b, c, -s * eta))
        for row, column, value in places:
            np.add.at(H, (row, column), bend * value)
            if row is not column:
                np.add.at(H, (column, row), bend * value)
        P = self._precision()
        H[n:, n:] += P
        grad[n:] += P @ x[n:]
        observed = H.copy()
        for row, column, value in ((i, c, s), (b, c, -s)):
            np.add.at(observed, (row, column), slope * value)
            np.add.at(observed, (column, row), slope * value)
        np.add.at(observed, (c, c), slope * eta)
        return grad, observed if self._is_definite(observed) else H

    def _is_definite(self, H: Floats) -> bool:
        """Whether a Hessian is positive definite once the abilities have their prior."""
        near = H.copy()
        near[np.arange(self.n), np.arange(self.n)] += self.precision
        return bool(lapack.dpotrf(near, lower=1, overwrite_a=1)[1] == 0)

    def skew(self, x: Floats, covariance: Floats) -> Floats:
        """None: cells have a dispersion of their own, so a table is expanded about its mode."""
        return np.zeros(self.n)

    def slopes(self, x: Floats) -> Floats:
        """(cells,): derivative of each cell's cost in the ability of its item."""
        eta, s = self._jacobian(x)
        return self.weight * ((expit(eta) if self.link == "share" else eta) - self.y) * s

    def variance(self, eta: Floats) -> Floats:
        """Variance of a cell of dispersion 1, at predictors eta."""
        if self.link == "number":
            return np.ones_like(eta)
        p = np.clip(expit(eta), EDGE, 1 - EDGE)
        return np.asarray(p * (1 - p))

    def learn(self, x: Floats, precision: float) -> float:
        """Update dispersions from the fit x; returns the largest change of a logarithm.

        ``precision``: prior precision of the abilities, with which leverages are computed.
        """
        self.precision = precision
        if self.n_tasks == 1:
            return 0.0
        eta, s = self._jacobian(x)
        _, H = self.derivatives(x)
        H[np.arange(self.n), np.arange(self.n)] += precision
        C = np.linalg.inv(H)
        fitted = expit(eta) if self.link == "share" else eta
        variance = self.variance(eta)
        i, b, c = self.item, self.n + self.task, self.n + self.n_tasks + self.task
        J = np.column_stack([s, -s, eta])
        blocks = C[np.stack([i, b, c])[:, None], np.stack([i, b, c])[None]]  # (3, 3, cells)
        leverage = np.clip(self.weight * variance * np.einsum("cj,jkc,ck->c", J, blocks, J), 0.0, 0.95)
        excess = (self.y - fitted) ** 2 / variance - self.inverse_count * (1 - leverage)
        total, left = np.bincount(self.task, excess, self.n_tasks), np.bincount(self.task, 1 - leverage, self.n_tasks)
        common = max(float(total.sum() / left.sum()), 1e-4)
        new = np.maximum((SHARED * common + total) / (SHARED + left), 0.1 * common)
        step = np.log(new / self.dispersion)
        back = bool(self.step @ step < -0.5 * self.step @ self.step)  # as far back: it might go to and fro for ever
        self.damping = 0.5 * self.damping if back else min(1.0, 2 * self.damping)
        self.dispersion = self.dispersion * np.exp(self.damping * step)
        self.step = step
        return float(np.abs(step).max())
