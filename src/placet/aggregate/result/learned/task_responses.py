"""Tasks of a score table as item response found them: difficulties, slopes, and predictions of cells."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import beta

from placet.aggregate.result.uncertainty import check_level
from placet.data.arrays import Floats, Ints, Names, plain_names

if TYPE_CHECKING:
    import polars as pl

EDGE = 0.005
"""Expected shares are kept this far from 0 and 1 where an interval is computed."""


class CellPrediction(NamedTuple):
    """The expected score of an item on a task, and an interval for what would be observed."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class TaskResponses:
    """``x`` = (abilities, difficulties, log slopes) with its ``covariance``; ``dispersion`` and ``cells`` (tasks,);
    numbers are ``center`` + ``unit`` times what the model sees, shares are what it sees.
    """

    items: Names
    tasks: Names
    x: Floats
    covariance: Floats
    dispersion: Floats
    cells: Ints
    is_share: bool
    center: Floats
    unit: Floats

    def predict(self, item: int, task: int, level: float) -> CellPrediction:
        """Prediction for the item and the task of these numbers."""
        check_level(level)
        n, t = len(self.items), len(self.tasks)
        at = [item, n + task, n + t + task]
        s = float(np.exp(self.x[at[2]]))
        eta = s * float(self.x[at[0]] - self.x[at[1]])
        slope = np.array([s, -s, eta])
        variance = max(float(slope @ self.covariance[np.ix_(at, at)] @ slope), 0.0)
        if not self.is_share:
            wide = -ndtri((1 - level) / 2) * np.sqrt(variance + self.dispersion[task])
            own = self.center[task] + self.unit[task] * np.array([eta, eta - wide, eta + wide])
            return CellPrediction(*own.tolist())
        p = float(np.clip(expit(eta / np.sqrt(1 + np.pi * variance / 8)), EDGE, 1 - EDGE))
        spread = min((p * (1 - p)) ** 2 * variance + p * (1 - p) * self.dispersion[task], 0.98 * p * (1 - p))
        size = p * (1 - p) / spread - 1
        low, high = beta.ppf([(1 - level) / 2, (1 + level) / 2], p * size, (1 - p) * size)
        return CellPrediction(p, float(low), float(high))

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame, the task that tells most first: task, cells, difficulty, slope with standard errors,
        dispersion, and information: what a score on it says about an ability, on average over the items.
        """
        import polars as pl

        n, t = len(self.items), len(self.tasks)
        error = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        slope = np.exp(self.x[n + t :])
        p = expit(slope * (self.x[:n, None] - self.x[n : n + t]))
        bend = (p * (1 - p)).mean(axis=0) if self.is_share else np.ones(t)
        information = slope**2 * bend / self.dispersion
        order = np.argsort(-information, kind="stable")
        frame = {
            "task": plain_names([self.tasks[k] for k in order]),
            "cells": self.cells[order],
            "difficulty": self.x[n : n + t][order],
            "difficulty_stderr": error[n : n + t][order],
            "slope": slope[order],
            "slope_stderr": (slope * error[n + t :])[order],
            "dispersion": self.dispersion[order],
            "information": information[order],
        }
        return pl.DataFrame(frame)

    def number(self, task: Hashable) -> int:
        """The number of a task by name."""
        if task not in self.tasks:
            raise ValueError(f"task {task!r} is not among the {len(self.tasks)} tasks: {list(self.tasks)[:10]}")
        return self.tasks.index(task)
