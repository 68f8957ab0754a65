"""How well the other sources predict one that is left out: its scores, and the share of its votes put the right way."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placet.data import Comparisons, Parts, Rankings, Scores
from placet.data.arrays import Floats, Names, plain_names
from placet.data.errors import as_choices
from placet.data.sources import Sources

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, repr=False)
class SourcePrediction:
    """The source ``name`` as the others see it.

    ``predicted`` and ``stderr`` (items,): scores of its items from the other sources alone, and their standard errors,
    which hold the typical width of the other sources' deviations from the target, if there are others beside it.
    ``own`` and ``own_stderr``: those of a board of the source alone.  ``correlation`` of the two; ``right`` and
    ``own_right``: share of the source's decided pairs that the prediction and its own board, which has seen them, put
    the right way (None for data in parts).
    """

    name: Hashable
    items: Names
    predicted: Floats
    stderr: Floats
    own: Floats
    own_stderr: Floats
    correlation: float
    right: float | None
    own_right: float | None

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame with a row per item of the source, the highest prediction first."""
        import polars as pl

        order = np.argsort(-self.predicted, kind="stable")
        columns = {name: getattr(self, name)[order] for name in ("predicted", "stderr", "own", "own_stderr")}
        return pl.DataFrame({"item": plain_names([self.items[k] for k in order]), **columns})

    def __repr__(self) -> str:
        said = f"SourcePrediction({self.name}: correlation {self.correlation:.2f}"
        if self.right is not None and self.own_right is not None:
            said += f", {self.right:.0%} of its pairs right, {self.own_right:.0%} by its own board"
        return said + ")"


def predict_source(asked: Any, widths: dict[Hashable, float], name: Hashable) -> SourcePrediction:
    """Fit all sources but one, and compare with it.

    ``asked`` is the question behind a joint fit, and ``widths`` those of its sources.
    """
    sources: Sources = asked.data
    if name not in sources:
        raise ValueError(f"source {name!r} is not among the sources; choose from {as_choices(list(sources))}")
    others, part = sources.without(name), sources[name]
    found = asked.door(others, **(asked.params if len(others) > 1 else {}))
    alone = asked.door(part)
    number = {item: k for k, item in enumerate(found.items)}
    shared = [item for item in part.items if item in number]
    at = np.array([number[item] for item in shared], np.int64)
    own_at = np.array([alone.items.index(item) for item in shared], np.int64)
    width = [value for other, value in widths.items() if other not in (name, sources.target)]
    spread = float(np.mean(np.square(width))) if width else 0.0
    predicted, own = found.scores[at], alone.scores[own_at]
    error = np.sqrt(found.stderr[at] ** 2 + spread)
    own_error = np.full(len(own), np.nan) if alone.stderr is None else alone.stderr[own_at]
    pairs = None if isinstance(part, Parts) else _pairs(part)
    return SourcePrediction(
        name,
        tuple(shared),
        predicted,
        error,
        own,
        own_error,
        float(np.corrcoef(predicted, own)[0, 1]) if np.ptp(predicted) > 0 and np.ptp(own) > 0 else float("nan"),
        None if pairs is None else _right(pairs, dict(zip(shared, predicted.tolist()))),
        None if pairs is None else _right(pairs, dict(zip(shared, own.tolist()))),
    )


def _pairs(part: Comparisons | Rankings | Scores) -> Comparisons:
    if isinstance(part, Scores):
        part = part.to_rankings()
    return part.to_comparisons() if isinstance(part, Rankings) else part


def _right(pairs: Comparisons, score: dict[Hashable, float]) -> float | None:
    """Share of the wins of items in ``score`` that went to the higher one; half of those between equals."""
    s = np.array([score.get(item, np.nan) for item in pairs.items])
    gap = s[pairs.i] - s[pairs.j]
    known = ~np.isnan(gap)
    first, second, gap = pairs.wins_i[known], pairs.wins_j[known], gap[known]
    total = float((first + second).sum())
    for_first = np.where(gap > 0, 1.0, np.where(gap < 0, 0.0, 0.5))
    return float(first @ for_first + second @ (1 - for_first)) / total if total else None
