"""Controls: covariates that may have affected the grades, fitted along with the features and set to 0 in scores."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from placet.data import Parts
from placet.data.arrays import Floats
from placet.data.comparisons import control_columns

ControlTable = tuple[Floats, tuple[str, ...]]
"""A table (rows, controls), in the row order of the queries, and the names of its columns."""


def control_rows(control: Any, data: Any, in_order: bool) -> ControlTable | None:
    """Check the controls and return them in the row order of the queries.

    ``in_order``: they already have that order; otherwise, that of the rows from which the queries were built.
    """
    if isinstance(data, Parts) and control is not None:
        raise ValueError(
            "control is a table beside all rows and does not work on parts; load them (parts.load()) where they fit"
        )
    values, names = (None, None) if control is None else control_columns(control, None, len(data.grade))
    if values is None or names is None:
        return None
    return (values if in_order else values[data.row]), names


PRIOR_ROWS = 1.0
"""Curvature, in rows, of the penalty that keeps an effect near its previous value."""


class Effects:
    """Effects of controls in a score that is built step by step: s + Z @ effect, updated after each step of s.

    ``Z`` (rows, k): the standardized controls; ``effect`` (k,): their effects; ``history``: the effects at the start
    and after every step.
    """

    def __init__(self, control: ControlTable) -> None:
        values, self.names = control
        self.unit = np.std(values, axis=0)
        self.unit[self.unit == 0.0] = 1.0
        self.Z = (values - values.mean(axis=0)) / self.unit
        self.effect = np.zeros(len(self.names))
        self.history = [self.effect]

    def begin_at(self, known: Mapping[str, float]) -> None:
        """Start from known effects by name, per unit of each control; others start at 0."""
        self.effect = np.array([known.get(name, 0.0) for name in self.names]) * self.unit
        self.history = [self.effect]

    def scores(self) -> Floats:
        """The contribution of the controls to the score of every row."""
        return np.asarray(self.Z @ self.effect)

    def step(self, slope: Floats, curvature: Floats, rate: float) -> None:
        """Take ``rate`` times a Newton step, given the gradient and curvature (rows,) of the loss, scaled per row."""
        bend = self.Z.T @ (curvature[:, None] * self.Z) + PRIOR_ROWS * np.eye(len(self.effect))
        self.move(-rate * np.linalg.solve(bend, self.Z.T @ slope))

    def move(self, by: Floats) -> None:
        """Change the effects, and append them to the history."""
        self.effect = self.effect + by
        self.history.append(self.effect)

    def values_after(self, steps: int) -> dict[str, float]:
        """Effects by name after the given number of steps, per unit of each control as given."""
        found = self.history[min(steps, len(self.history) - 1)] / self.unit
        return dict(zip(self.names, found.tolist()))


def effects_of(control: ControlTable | None) -> Effects | None:
    """Effects to fit along with the scores, or None without controls."""
    return None if control is None else Effects(control)
