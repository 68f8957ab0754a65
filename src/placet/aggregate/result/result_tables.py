"""Results as tables: columns, rows, a data frame, ballots; several results one after another."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placet.aggregate.result import separation
from placet.data import Rankings
from placet.data.arrays import Floats, Ints, offsets_from_sizes, plain_names

if TYPE_CHECKING:
    import polars as pl

    from placet.aggregate.result.result import Consensus

MEASURED = ("score", "stderr", "support")  # columns of decimals in the table of a result; the others are whole numbers


def table_columns(results: Sequence["Consensus"], level: float) -> dict[str, Any]:
    """The columns of `Consensus.to_frame`, results one after another: names as a list, numbers as an array with NaN for
    unknown values, or None if all are unknown.
    """
    columns: dict[str, list[Floats | Ints]] = {
        name: [] for name in ("score", "stderr", "rank", "rank_low", "rank_high", "tier", "support")
    }
    known = any(c.stderr is not None for c in results)
    for c in results:
        order = c.order
        columns["score"].append(c.scores[order])
        columns["rank"].append(c.ranks[order])
        if known:
            unknown = np.full(len(order), np.nan)
            low, high = (unknown, unknown) if c.stderr is None else c.rank_interval(level)
            columns["stderr"].append(unknown if c.stderr is None else c.stderr[order])
            columns["rank_low"].append(low[order])
            columns["rank_high"].append(high[order])
            tiered = c.stderr is not None and len(order) <= separation.MOST_PAIRED
            columns["tier"].append(c.tier_numbers(level)[order] if tiered else unknown)
        if c.support is not None:
            columns["support"].append(c.support[order])
    names = plain_names([c.items[k] for c in results for k in c.order])
    return {"item": names, **{name: np.concatenate(parts) if parts else None for name, parts in columns.items()}}


def table_rows(c: "Consensus", level: float) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of `Consensus.to_frame` without a data frame, with None for unknown values.

    Printing a few numbers then need not wait for the import of Polars.
    """
    columns = table_columns([c], level)
    shown: list[list[Any]] = [list(columns.pop("item"))]
    for name, values in columns.items():
        plain = [None] * len(c.items) if values is None else [None if v != v else v for v in values.tolist()]
        shown.append(plain if name in MEASURED else [None if v is None else int(v) for v in plain])
    return ["item", *columns], list(zip(*shown))


def repeats_ranks(c: "Consensus") -> bool:
    """Whether the scores are those of an order: minus the number of items above, where ties may share their places.

    Such scores say nothing beyond the ranks, so they are not shown where people read.
    """
    if c.stderr is not None:
        return False
    _, tied, size = np.unique(c.ranks, return_inverse=True, return_counts=True)
    above = c.ranks - 1.0
    return any(np.array_equal(-c.scores, above + share * (size[tied] - 1)) for share in (0.0, 0.5))


def frame(results: Sequence["Consensus"], level: float) -> "pl.DataFrame":
    """A Polars frame of `table_columns`."""
    import polars as pl

    columns = table_columns(results, level)
    names = columns.pop("item")
    series = {"item": pl.Series(names)}
    for name, values in columns.items():
        kind = pl.Float64 if name in MEASURED else pl.Int64
        column = pl.Series([None] * len(names), dtype=kind) if values is None else pl.Series(values).fill_nan(None)
        series[name] = column.cast(kind)
    return pl.DataFrame(series)


def as_ballots(results: Sequence["Consensus"], instance: Sequence[Hashable] | None) -> Rankings:
    """Every result as a ballot with its tiers, and scores that are equal within a tier."""
    names: dict[Hashable, int] = {}
    item = [names.setdefault(c.items[k], len(names)) for c in results for k in c.order]
    tier, score = [], []
    for c in results:
        own, size = c._tiers
        mean = np.bincount(own, c.scores, len(size)) / size
        tier.append(own[c.order])
        score.append(np.where(size == 1, c.scores[c.order[np.cumsum(size) - size]], mean)[own[c.order]])
    return Rankings.from_codes(
        np.array(item, np.int64),
        np.concatenate([np.zeros(0, np.int64), *tier]),
        offsets_from_sizes([len(c.items) for c in results]),
        tuple(names),
        instance=instance,
        score=np.concatenate([np.zeros(0), *score]),
    )


class StandingRow(NamedTuple):
    """A row of a board; None for what the method does not provide.

    >>> StandingRow("ant", 1, 2.0).rank
    1
    """

    item: Hashable
    rank: int
    score: float
    stderr: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None
    support: float | None = None
