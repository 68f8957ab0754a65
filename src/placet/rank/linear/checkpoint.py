"""Initial weights: from a fitted linear ranker, or from the checkpoint of an interrupted fit."""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.engines.serial import EngineError

CHECKPOINT = "placet-checkpoint.json"


def start_weights(start: Any, n_columns: int) -> tuple[Floats, float, dict[str, float]]:
    """Column weights, intercept and learned parameters of a ranker or of a checkpoint file."""
    if isinstance(start, str | os.PathLike):
        try:
            with open(start, encoding="utf-8") as file:
                kept = json.load(file)
            found = np.array(kept["weights"], np.float64), float(kept["constant"]), dict(kept["learned"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{os.fspath(start)}: not a checkpoint of a linear ranker ({error})") from None
    elif hasattr(start, "coef_"):
        found = np.asarray(start.coef_), float(start.intercept_), dict(start.learned_)
    else:
        raise TypeError(f"start must be a fitted linear ranker or a checkpoint's path, not {type(start).__name__}")
    if found[0].shape != (n_columns,):
        raise DataError(f"start has {len(found[0])} weights; there are {n_columns} columns")
    return found


def write_weights(error: EngineError, weights: Floats, constant: float, learned: Mapping[str, float]) -> None:
    """Write a checkpoint, and add its path to the error."""
    path = os.path.abspath(CHECKPOINT)
    unfinished = f"{path}.part"
    with open(unfinished, "w", encoding="utf-8") as file:
        kept = {"placet": "checkpoint", "weights": weights.tolist(), "constant": constant, "learned": dict(learned)}
        json.dump(kept, file)
    os.replace(unfinished, path)
    error.checkpoint = path
    error.args = (f"{error}; the best weights so far are in {path}: continue with start={path!r}",)
