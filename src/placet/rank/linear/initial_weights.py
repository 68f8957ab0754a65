"""Initial weights: from a fitted linear ranker, or from the checkpoint of an interrupted fit."""

import os
from typing import Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.engines.checkpoints import read_checkpoint

Start = tuple[Floats, float, dict[str, float]]


def start_weights(start: Any, n_columns: int) -> Start:
    """Column weights, intercept and learned parameters of a ranker or of a checkpoint file."""
    if isinstance(start, str | os.PathLike):
        found = read_checkpoint(start, _weights_of, "a linear ranker")
    elif hasattr(start, "coef_"):
        found = np.asarray(start.coef_), float(start.intercept_), dict(start.learned_)
    else:
        raise TypeError(f"start must be a fitted linear ranker or a checkpoint's path, not {type(start).__name__}")
    if found[0].shape != (n_columns,):
        raise DataError(f"start has {len(found[0])} weights; there are {n_columns} columns")
    return found


def _weights_of(kept: Any) -> Start:
    return np.array(kept["weights"], np.float64), float(kept["constant"]), dict(kept["learned"])
