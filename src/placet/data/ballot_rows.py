"""Rows of ballots: made from orders, ranks and preferences, checked, and put in order."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.data import breaking
from placet.data.arrays import (
    Floats,
    Ints,
    Names,
    dense_tiers,
    integers,
    list_of_rows,
    offsets_from_sizes,
    refuse_masked_or_complex,
    smallest_type,
    table,
    unique_names,
)
from placet.data.comparisons import Comparisons
from placet.data.errors import DataError

ROWS_AT_ONCE = 1 << 18


def rows_of_orders(orders: Iterable[Sequence[Any]]) -> tuple[list[Hashable], list[int], list[int]]:
    """Names and tiers of the rows, and the number of rows of each ballot; ballots are sequences, best first."""
    names: list[Hashable] = []
    tiers: list[int] = []
    sizes: list[int] = []
    for b, order in enumerate(orders):
        if isinstance(order, str | bytes):
            raise DataError(f"ballot {b}: {order!r} is one name; a ballot is a sequence of names, such as [{order!r}]")
        before = len(names)
        for t, entry in enumerate(order):
            group = sorted(entry, key=str) if isinstance(entry, set | frozenset) else entry
            group = group if isinstance(group, tuple | list) else (group,)
            names.extend(group)
            tiers.extend([t] * len(group))
        sizes.append(len(names) - before)
    return names, tiers, sizes


def rows_of_ranks(matrix: Any, items: Sequence[Hashable] | None) -> tuple[Ints, Ints, Ints, Floats, Names]:
    """Items, tiers and offsets of a table of ranks (ballots x items, NaN is absent), minus the ranks, and the names."""
    matrix, columns = table(matrix)
    refuse_masked_or_complex(matrix)
    try:
        ranks = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"ranks must be numbers, absent ones NaN: {error}") from None
    items = columns if items is None else items
    if ranks.ndim != 2:
        raise DataError(f"ranks must be a table of ballots x items, not of shape {ranks.shape}")
    if np.isinf(ranks).any():
        b, k = np.argwhere(np.isinf(ranks))[0]
        raise DataError(f"ballot {b}, column {k}: rank {ranks[b, k]} ({np.isinf(ranks).sum()} such); absent is NaN")
    listed = ~np.isnan(ranks)
    ballot, item = np.nonzero(listed)
    rank = ranks[listed]
    order = np.lexsort((rank, ballot))
    offsets = offsets_from_sizes(listed.sum(axis=1))
    names = tuple(range(ranks.shape[1]) if items is None else items)
    if len(names) != ranks.shape[1]:
        raise DataError(f"{len(names)} item names for {ranks.shape[1]} columns")
    return item[order], dense_tiers(rank[order], offsets), offsets, -rank[order], names


def rows_of_preferences(
    voter: Ints, n_voters: int, better: Ints, worse: Ints, names: Names, place: Callable[[int], str]
) -> tuple[Ints, Ints, Ints]:
    """Items, tiers and offsets of the finest partition that the preferences of each voter allow."""
    item: list[int] = []
    tier: list[int] = []
    sizes = [0] * n_voters
    for v, found in breaking.partitions(voter, better, worse, names, place):
        for k, group in enumerate(found):
            item += group
            tier += [k] * len(group)
        sizes[v] = sum(map(len, found))
    return np.array(item, np.int64), np.array(tier, np.int64), offsets_from_sizes(sizes)


def rows_of_pairs(c: Comparisons) -> dict[str, Any]:
    """Columns of ballots of two items: i over j, j over i, and a tie, as often as each came about."""
    pair = np.stack([c.i, c.j], axis=1)
    weight = np.concatenate([c.wins_i, c.wins_j, c.ties])
    keep = weight > 0
    columns: dict[str, Any] = {
        "item": np.concatenate([pair, pair[:, ::-1], pair])[keep].ravel(),
        "tier": np.repeat([[0, 1], [0, 1], [0, 0]], len(c), axis=0)[keep].ravel(),
        "offsets": np.arange(0, 2 * keep.sum() + 1, 2),
        "weight": weight[keep],
        "agent": None if c.agent is None else np.tile(c.agent, 3)[keep],
    }
    if c.control is not None:
        beside = np.stack([c.control, np.zeros_like(c.control)], axis=1)
        control = np.concatenate([beside, beside[:, ::-1], beside])[keep]
        columns |= {"control": control.reshape(-1, control.shape[2]), "controls": c.controls}
    return columns


def put_in_order(
    item: Ints, tier: Ints, score: Floats | None, offsets: Ints, items: Names
) -> tuple[Ints, Ints, Floats | None]:
    """Check the rows of each ballot, sort them by tier, then item, and renumber tiers 0, 1, ..., in blocks of ballots.

    Temporary arrays hold about ``ROWS_AT_ONCE`` rows, not all rows.
    """
    longest = int(np.diff(offsets).max(initial=1))
    new_item, new_tier = item, np.empty(len(tier), smallest_type(longest - 1))
    new_score, top = score, 0
    first = 0
    while first < len(offsets) - 1:
        start = int(offsets[first])
        last = max(first + 1, int(np.searchsorted(offsets, start + ROWS_AT_ONCE, side="right")) - 1)
        own, rows = offsets[first : last + 1] - start, slice(start, int(offsets[last]))
        ballot, i, t = list_of_rows(own), item[rows], tier[rows]
        s = None if score is None else score[rows]
        order = _order(ballot, t, i)
        if order is not None:
            if new_item is item:
                new_item, new_score = item.copy(), None if score is None else score.copy()
            i, t = i[order], t[order]
            s = None if s is None else s[order]
            new_item[rows] = i
            if new_score is not None and s is not None:
                new_score[rows] = s
        _refuse_duplicates(ballot, i, items, first)
        if s is not None:
            _refuse_scores(ballot, t, s, first)
        dense = dense_tiers(t, own)
        new_tier[rows] = dense
        top = max(top, int(dense.max(initial=0)))
        first = last
    return new_item, new_tier.astype(smallest_type(top), copy=False), new_score


def _order(ballot: Ints, tier: Ints, item: Ints) -> Ints | None:
    """Row order by ballot, tier, item; ``None`` if the rows are already sorted."""
    same_ballot = ballot[1:] == ballot[:-1]
    falls = (tier[1:] < tier[:-1]) | ((tier[1:] == tier[:-1]) & (item[1:] < item[:-1]))
    return np.lexsort((item, tier, ballot)) if (same_ballot & falls).any() else None


def _refuse_duplicates(ballot: Ints, item: Ints, items: Names, before: int) -> None:
    """Refuse items that occur twice on a ballot; ``before`` ballots precede this block."""
    place = ballot * len(items) + item
    ordered = np.sort(place)
    twice = ordered[1:] == ordered[:-1]
    if twice.any():
        row = int(np.flatnonzero(place == ordered[1:][twice][0])[0])
        raise DataError(
            f"ballot {before + ballot[row]}: item {items[item[row]]!r} occurs more than once "
            f"({twice.sum()} such rows); "
            "an item has one place on a ballot: remove the repeats or split the ballot"
        )


def _refuse_scores(ballot: Ints, tier: Ints, score: Floats, before: int) -> None:
    """Refuse scores that are not equal within a tier or not lower in a later tier."""
    wrong = np.where(tier[1:] > tier[:-1], score[1:] >= score[:-1], score[1:] != score[:-1]) & (
        ballot[1:] == ballot[:-1]
    )
    if wrong.any():
        k = int(np.argmax(wrong))
        raise DataError(
            f"ballot {before + ballot[k]}: scores {score[k]}, {score[k + 1]} contradict tiers {tier[k]}, {tier[k + 1]} "
            f"({wrong.sum()} such rows); tiers must follow from the scores"
        )


def codes_of_ballots(values: ArrayLike | None, what: str, n_ballots: int) -> Ints | None:
    """One code for each ballot, such as that of its agent."""
    if values is None:
        return None
    code = integers(values, what)
    if len(code) != n_ballots or (code < 0).any():
        raise DataError(f"{what} must be one code >= 0 for each of the {n_ballots} ballots")
    return code


def names_of_codes(names: Iterable[Hashable] | None, code: Ints | None, what: str) -> Names | None:
    """The names of codes, by default 0, 1, ...; None if there are no codes."""
    if code is None:
        return None
    known = unique_names(range(int(code.max(initial=-1)) + 1) if names is None else names, what)
    if len(code) and code.max() >= len(known):
        raise DataError(f"{what} {code.max()} has no name; there are {len(known)}")
    return known


def heads_note(item: Ints, offsets: Ints, n_items: int) -> tuple[str, ...]:
    """A note if the ballots may be the top of longer lists (``Rankings.heads_note``)."""
    sizes = np.diff(offsets)
    k = int(sizes[0]) if len(sizes) else 0
    few = k == 1 or k >= 3
    if len(sizes) < 2 or not few or 2 * k > n_items or (sizes != k).any():
        return ()
    if np.count_nonzero(np.bincount(item, minlength=n_items)) <= k:
        return ()
    return (
        f"each of the {len(sizes):,} ballots ranks {k} of {n_items:,} items, not always the same ones; an item "
        'that a ballot leaves out counts as not compared on it (unlisted="absent"). If these are the best of all, '
        'the others belong in one last place, which may change the order much: read with unlisted="last", or use '
        "data.completed()",
    )
