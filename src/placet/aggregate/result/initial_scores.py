"""Initial scores from an earlier consensus, or from the checkpoint of an interrupted fit, matched by name."""

import json
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from placet.aggregate.result.result import Consensus
from placet.data import DataError
from placet.data.arrays import Floats


def start_scores(start: Any, items: Sequence[Hashable]) -> Floats | None:
    """(n_items,): scores by name, 0 for items that ``start`` does not have.

    ``start`` is a `Consensus`, a mapping of names to scores, a checkpoint's path, or scores in the order of the items.
    """
    if start is None:
        return None
    if isinstance(start, Consensus):
        known: Mapping[Any, float] = dict(zip(start.items, start.scores.tolist()))
    elif isinstance(start, Mapping):
        known = start
    elif isinstance(start, str | os.PathLike):
        known = read_checkpoint(start)
    else:
        scores = np.asarray(start, dtype=np.float64)
        if scores.shape != (len(items),) or not np.isfinite(scores).all():
            raise DataError(f"start must be {len(items)} finite scores, one for each item, not of shape {scores.shape}")
        return scores
    return np.array([float(known.get(name, 0.0)) for name in items])


def write_checkpoint(path: str, items: Sequence[Hashable], scores: Floats) -> None:
    """Write the last iterate as JSON: names and scores."""
    unfinished = f"{path}.part"
    with open(unfinished, "w", encoding="utf-8") as file:
        rows = [[name if isinstance(name, str | int) else str(name), float(x)] for name, x in zip(items, scores)]
        json.dump({"placet": "checkpoint", "scores": rows}, file, ensure_ascii=False)
    os.replace(unfinished, path)


def read_checkpoint(path: str | os.PathLike[str]) -> dict[Hashable, float]:
    """Names and scores of a checkpoint."""
    try:
        with open(path, encoding="utf-8") as file:
            return {name: float(score) for name, score in json.load(file)["scores"]}
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{os.fspath(path)}: not a checkpoint of Placet ({error}); give scores by name") from None
