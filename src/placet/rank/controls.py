"""Controls of rows: numbers that may have moved the grades, fitted beside the features and held at 0 in scores."""

from typing import Any

import numpy as np

from placet.data import Parts
from placet.data.arrays import Floats
from placet.data.comparisons import control_columns

Controls = tuple[Floats, tuple[str, ...]]
"""A table (rows, controls), its rows as those of the queries, and the names of its columns."""


def control_rows(control: Any, data: Any, in_order: bool) -> Controls | None:
    """The controls of the rows of queries, checked; ``in_order``: they come as the rows stand in the queries.

    Otherwise they come in the order of the rows that the queries were made from.
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
"""Curvature that holds an effect near the one before, in rows."""


class Effects:
    """Effects of controls beside a score that grows step by step: s + Z @ effect, each step followed by one of theirs.

    ``Z`` (rows, k): the controls less their means, divided by their deviations; ``effect`` (k,) in these units, and
    ``history`` what it was at the start and after every step.
    """

    def __init__(self, control: Controls) -> None:
        values, self.names = control
        self.unit = np.std(values, axis=0)
        self.unit[self.unit == 0.0] = 1.0
        self.Z = (values - values.mean(axis=0)) / self.unit
        self.effect = np.zeros(len(self.names))
        self.history = [self.effect]

    def scores(self) -> Floats:
        """What the controls add to the score of every row."""
        return np.asarray(self.Z @ self.effect)

    def step(self, slope: Floats, curvature: Floats, rate: float) -> None:
        """``rate`` of a Newton step, from the slope and curvature (rows,) of the loss in units of a row."""
        bend = self.Z.T @ (curvature[:, None] * self.Z) + PRIOR_ROWS * np.eye(len(self.effect))
        self.move(-rate * np.linalg.solve(bend, self.Z.T @ slope))

    def move(self, by: Floats) -> None:
        """Change the effects, and remember."""
        self.effect = self.effect + by
        self.history.append(self.effect)

    def after(self, steps: int) -> dict[str, float]:
        """Names and effects after so many steps, for one unit of each control as it was given."""
        found = self.history[min(steps, len(self.history) - 1)] / self.unit
        return dict(zip(self.names, found.tolist()))


def effects_of(control: Controls | None) -> Effects | None:
    """Effects to fit beside the scores, where there are controls."""
    return None if control is None else Effects(control)
