"""The ranking of a page: one row per item, best first, with its interval as a bar."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from placet.aggregate import Consensus
from placet.aggregate.result.result_tables import repeats_ranks
from placet.aggregate.result.separation import MOST_PAIRED
from placet.data.arrays import Floats, Ints
from placet.output.numbers import aligned_numbers, counts, decimals_for, decimals_of, each_with_decimals
from placet.report.figures import TEMPLATES, Figure, PageBlock, TableColumn, best_of, span_text
from placet.report.owner_columns import NO_COLUMNS, OwnerColumns, anchors
from placet.report.ticks import round_numbers

TIER_WORDS = "Items in the same tier cannot be told apart; some neighbors in different tiers cannot, either."


class Standing(NamedTuple):
    """Arrays over the items shown, best first, or None if the method does not provide them; ``scored``: whether the
    scores say more than the ranks."""

    names: Sequence[Hashable]
    scores: Floats
    ranks: Ints
    support: Floats | None
    stderr: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    best: Ints | None = None
    worst: Ints | None = None
    tier: Ints | None = None
    scored: bool = True


@dataclass(frozen=True, kw_only=True)
class RankingTable(Figure):
    """Rows of the anchor, rank, rank interval, tier, whether a tier starts, name, start and width of the bar, place of
    the score, score, its interval, support (None for what the method does not provide), link and texts of the owner;
    ``grid``: places of vertical lines, in percent."""

    template = f"{TEMPLATES}/ranking.html"
    label: str
    columns: Sequence[TableColumn]
    rows: Sequence[tuple[Any, ...]]
    last: float
    grid: Sequence[float] = ()


def ranking_blocks(
    c: Consensus, level: float, most: int, label: str = "Ranking", part: str = "", owner: OwnerColumns = NO_COLUMNS
) -> list[PageBlock]:
    """The best ``most`` items, below the words that explain the table; empty without items.

    ``part`` names one of several rankings of a page, so that anchors of rows differ.
    """
    if not len(c.items):
        return []
    rows = _standing(c, level, most)
    ends = _axis(rows)
    words = ["This method gives scores without standard errors; a bootstrap adds them."]
    if not rows.scored:
        words = ["This method gives an order without scores."]
    if rows.low is not None and rows.high is not None:
        words = [
            f"Bars are {level:.0%} intervals of the scores. “Could be”: the ranks compatible with the data "
            f"({level:.0%} confidence for all items together)."
        ]
        if rows.tier is not None:
            words.append(TIER_WORDS)
        if (rows.low < ends[0]).any() or (rows.high > ends[1]).any():
            words.append("Bars that end at the edge of the chart extend beyond it.")
    words += ["Support: votes or ballots that include the item."] if rows.support is not None else []
    return [" ".join(words), _table(rows, ends, label, level, best_of(len(c.items), most), part, owner)]


def _standing(c: Consensus, level: float, most: int) -> Standing:
    chosen = c.order[:most]
    support = None if c.support is None else c.support[chosen]
    rows = Standing([c.items[k] for k in chosen], c.scores[chosen], c.ranks[chosen], support)
    if c.stderr is None:
        return rows._replace(scored=not repeats_ranks(c))
    low, high = c.interval(level)
    best, worst = c.rank_interval(level)
    tier = c.tier_numbers(level)[chosen] if len(c.items) <= MOST_PAIRED else None
    rows = rows._replace(stderr=c.stderr[chosen], low=low[chosen], high=high[chosen], tier=tier)
    return rows._replace(best=best[chosen], worst=worst[chosen])


def _axis(rows: Standing) -> tuple[float, float]:
    """The range of the chart: all scores, and intervals, clipped lest a few very long ones dwarf the others."""
    left, right = float(np.min(rows.scores)), float(np.max(rows.scores))
    if rows.low is not None and rows.high is not None:
        room = max(0.25 * (right - left), 1.5 * float(np.median(rows.high - rows.low)))
        left, right = max(left - room, float(rows.low.min())), min(right + room, float(rows.high.max()))
    return (left, right) if left < right else (left - 1.0, right + 1.0)


def _table(
    rows: Standing,
    ends: tuple[float, float],
    label: str,
    level: float,
    left_out: str,
    part: str,
    owner: OwnerColumns,
) -> RankingTable:
    """Texts and places of all cells; a column is as wide as its longest text."""
    values = rows.scores.tolist()
    decimals = [decimals_of(values)] * len(values) if rows.stderr is None else decimals_for(rows.stderr.tolist())
    absent: list[Any] = [None] * len(values)
    spans = tiers = starts = start = width = at = scores = between = support = absent
    columns = [TableColumn("rank", "up", "num place", max(4, 1.2 * len(str(rows.ranks.max()))))]
    if rows.best is not None and rows.worst is not None:
        spans = list(map(span_text, rows.best.tolist(), rows.worst.tolist()))
        columns.append(TableColumn("could be", "up", "span", 0.95 * max(8, *map(len, spans))))
    if rows.tier is not None:
        tiers = rows.tier.tolist()
        starts = [k == 0 or tiers[k - 1] != tier for k, tier in enumerate(tiers)]
        columns.append(TableColumn("tier", "up", "num tier", 3.5))
    columns.append(TableColumn("item", "text", "name"))
    last, grid = float(len("score")), list[tuple[float, str]]()
    if rows.scored:
        start, width, at = _bars(rows, ends)
        grid = _grid(ends)
        scores = aligned_numbers(values, decimals)
        widest = max(map(len, scores))
        last = float(max(last, widest))
        columns.append(TableColumn("", "", "plot", ticks=grid))
        columns.append(TableColumn("score", "down", "num score", 1.2 * widest))
    if rows.low is not None and rows.high is not None:
        pairs = zip(each_with_decimals(rows.low.tolist(), decimals), each_with_decimals(rows.high.tolist(), decimals))
        between = [f"{low} to {high}" for low, high in pairs]
        columns.append(TableColumn(f"{level:.0%} interval", "", "num between", 0.95 * max(map(len, between))))
    if rows.support is not None:
        support = counts(rows.support.tolist())
        longest = max(map(len, support))
        columns.append(TableColumn("support", "down", "num support", max(8, 1.2 * longest)))
        last = max(last, 0.9 * max(len("support"), longest))
    ids, own = anchors(rows.names, part), [owner.of(name) for name in rows.names]
    for k, head in enumerate(owner.heads):
        columns.append(
            TableColumn(head, "text", "owner", min(max(map(len, (head, *(cells.texts[k] for cells in own)))), 18))
        )
    shown = zip(
        ids, rows.ranks.tolist(), spans, tiers, starts, rows.names, start, width, at, scores, between, support, own
    )
    lines = [place for place, _ in grid]
    return RankingTable(label=label, columns=columns, rows=list(shown), last=last + 1, grid=lines, left_out=left_out)


def _grid(ends: tuple[float, float]) -> list[tuple[float, str]]:
    """Places, in percent of the chart, and texts of round numbers."""
    ticks = round_numbers(*ends)
    texts = each_with_decimals(ticks, [decimals_of(ticks, 3)] * len(ticks))
    return [(round(100 * (tick - ends[0]) / (ends[1] - ends[0]), 2), text) for tick, text in zip(ticks, texts)]


def _bars(rows: Standing, ends: tuple[float, float]) -> tuple[list[Any], list[Any], list[float]]:
    """Starts and widths of the bars, and the places of the scores, in percent of the chart."""
    at = lambda values: 100 * np.clip((values - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)  # noqa: E731
    scores = np.round(at(rows.scores), 1).tolist()
    if rows.low is None or rows.high is None:
        return [None] * len(scores), [None] * len(scores), scores
    start, stop = at(rows.low), at(rows.high)
    return np.round(start, 1).tolist(), np.round(stop - start, 1).tolist(), scores
