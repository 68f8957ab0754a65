"""Initial scores from an earlier consensus, or from the checkpoint of an interrupted fit, matched by name."""

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from placet.aggregate.result.result import Consensus
from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.engines.checkpoints import read_checkpoint, write_checkpoint
from placet.data.engines.serial import EngineError


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
        known = read_checkpoint(start, _scores_of, "a consensus, which has scores by name")
    else:
        scores = np.asarray(start, dtype=np.float64)
        if scores.shape != (len(items),) or not np.isfinite(scores).all():
            raise DataError(f"start must be {len(items)} finite scores, one for each item, not of shape {scores.shape}")
        return scores
    return np.array([float(known.get(name, 0.0)) for name in items])


@contextmanager
def kept_if_lost(items: Sequence[Hashable], best: list[tuple[float, Floats]]) -> Iterator[None]:
    """If the engine is lost, write the scores of the ``best`` value so far to a checkpoint that the error names."""
    try:
        yield
    except EngineError as error:
        if best:
            names = (name if isinstance(name, str | int) else str(name) for name in items)
            write_checkpoint(error, "scores", {"scores": [list(row) for row in zip(names, best[0][1].tolist())]})
        raise


def _scores_of(kept: Any) -> dict[Hashable, float]:
    return {name: float(score) for name, score in kept["scores"]}
