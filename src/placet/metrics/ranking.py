"""Rows ranked by score: checked and sorted once, shared by all metrics."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data.arrays import Floats, Ints, list_of_rows, refuse_masked_or_complex
from placet.threads import map_ordered

BATCH_ROWS = 1 << 17  # rows sorted at a time: small enough to stay in the CPU cache


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows of every list in descending score, and the blocks of tied rows.

    ``s`` (rows,) scores in the caller's order; ``order`` (rows,) the caller's row at each place, list after list;
    ``offsets`` (lists + 1,).  Block b covers the places ``start[b]:stop[b]`` of list ``list_of[b]``, whose rows tie.
    Rows with a score of -inf were not retrieved: they belong to no block.  ``ties``: how ties were handled (see
    ``rank``).

    >>> import placet
    >>> placet.metrics.rank([1.0, 3.0, 2.0], [0, 3]).order
    array([1, 2, 0])
    """

    s: Floats
    order: Ints
    offsets: Ints
    ties: str
    blocks: tuple[Ints, Ints, Ints] | None = None  # start, stop and list_of; None: every row is its own block

    @property
    def n_lists(self) -> int:
        return len(self.offsets) - 1

    @property
    def untied(self) -> bool:
        """Whether every row is its own block: no scores tie, and all rows were retrieved."""
        return self.blocks is None

    @cached_property
    def start(self) -> Ints:
        return np.arange(len(self.order)) if self.blocks is None else self.blocks[0]

    @cached_property
    def stop(self) -> Ints:
        return self.start + 1 if self.blocks is None else self.blocks[1]

    @cached_property
    def list_of(self) -> Ints:
        return list_of_rows(self.offsets) if self.blocks is None else self.blocks[2]

    @property
    def before(self) -> Ints:
        """Number of places above each block in its list.  O(blocks)."""
        return self.start - self.offsets[self.list_of]

    def per_list(self, block_value: NDArray[Any], blocks: NDArray[Any] | slice = slice(None)) -> Floats:
        """Sum of the values of (some) blocks in each list.  O(blocks)."""
        return np.bincount(self.list_of[blocks], weights=block_value, minlength=self.n_lists).astype(np.float64)


def rank(s: ArrayLike | Ranking, offsets: ArrayLike, ties: str = "mean", name: ArrayLike | None = None) -> Ranking:
    """Sort the rows of each list by descending score.  O(rows log rows).

    ``ties="mean"`` keeps tied rows in one block, to average over all their orders; ``"input"`` puts the earlier row
    first; ``"input32"`` does the same after rounding the scores to single precision; ``"name"`` also rounds, and puts
    the row with the larger ``name`` (rows,) first, or the later row if there are no names.
    A ``Ranking`` of the same scores is returned unchanged if it has the requested ties, so that several metrics can
    share one sort.

    Returns
    -------
    Ranking
        The order of rows and the blocks of ties, which every metric takes instead of scores.

    >>> shared = rank([1.0, 3.0, 2.0], [0, 3])
    >>> shared.order
    array([1, 2, 0])
    >>> import placet
    >>> placet.metrics.mrr(shared, [0, 0, 1], [0, 3]), placet.metrics.recall(shared, [0, 0, 1], [0, 3], 1)
    (array([0.5]), array([0.]))
    """
    if isinstance(s, Ranking):
        if s.ties == ties and (ties != "name" or name is None):
            return s
        offsets, s = s.offsets, s.s
    s, offsets = checked_scores(s, offsets)
    key = _single(s) if ties in ("name", "input32") else s
    if ties == "name":
        order, tied = _order_by_name(key, offsets, name), True
    else:
        order, tied = sorted_rows(key, offsets)
    placed = key[order] if tied or key.min(initial=0.0) == -np.inf else None
    if placed is None:  # no two rows of a list tie, and all rows were retrieved
        return Ranking(s, order, offsets, ties)
    start, list_of = np.arange(len(s)), list_of_rows(offsets)
    if ties == "mean" and tied:
        new = np.empty(len(s), bool)
        new[1:] = placed[1:] != placed[:-1]
        new[offsets[:-1][np.diff(offsets) > 0]] = True
        start = np.flatnonzero(new)
        list_of = list_of[start]
    stop = np.append(start[1:], len(s))
    unseen = placed[start] == -np.inf
    if unseen.any():
        start, stop, list_of = start[~unseen], stop[~unseen], list_of[~unseen]
    return Ranking(s, order, offsets, ties, (start, stop, list_of))


def checked_scores(s: ArrayLike, offsets: ArrayLike) -> tuple[Floats, Ints]:
    """Scores and offsets as arrays; raises a ``ValueError`` that explains what is wrong with them."""
    refuse_masked_or_complex(s)
    s = np.asarray(s, dtype=np.float64)
    if s.ndim != 1:
        raise ValueError(f"scores have shape {s.shape}; they must be (rows,), one score per row")
    _no_nan(s, "score", "drop these rows, or give them -inf to say that they were not retrieved")
    given = np.asarray(offsets)
    if given.ndim != 1 or len(given) == 0 or (given.dtype.kind not in "iu" and (given != np.floor(given)).any()):
        raise ValueError(
            f"offsets have shape {given.shape} and type {given.dtype}; they must be (lists + 1,) whole numbers"
        )
    offsets = given.astype(np.int64)
    falls = np.flatnonzero(np.diff(offsets) < 0)
    if len(falls):
        at = falls[0]
        raise ValueError(
            f"offsets[{at + 1}] is {offsets[at + 1]}, below {offsets[at]} before it ({len(falls)} such places); "
            "offsets never fall"
        )
    if offsets[0] != 0 or offsets[-1] != len(s):
        raise ValueError(
            f"offsets go from {offsets[0]} to {offsets[-1]}; they must go from 0 to the number of rows, {len(s)} "
            "(group sizes become offsets by np.append(0, np.cumsum(sizes)))"
        )
    return s, offsets


def checked_column(x: ArrayLike, ranking: Ranking, what: str) -> Floats:
    """A column with one number per row, or a ``ValueError``."""
    refuse_masked_or_complex(x)
    x = np.asarray(x, dtype=np.float64)
    if x.shape != ranking.s.shape:
        raise ValueError(
            f"{what}s have shape {x.shape}; there are {len(ranking.s)} scores, and each row needs one {what}"
        )
    _no_nan(x, what, "judge these rows or drop them")
    return x


def checked_depth(k: int | None, offsets: Ints) -> int:
    """Largest number of places needed: the length of the longest list, or k if smaller."""
    longest = int(np.diff(offsets).max(initial=0))
    if k is None:
        return longest
    if isinstance(k, bool) or k != int(k) or k < 1:
        raise ValueError(f"k is {k!r}; it must be a whole number of at least 1, or None for the whole list")
    return min(int(k), longest)


def _no_nan(x: Floats, what: str, way_out: str) -> None:
    bad = np.isnan(x)
    if bad.any():
        raise ValueError(f"row {int(np.argmax(bad))}: {what} is nan ({int(bad.sum())} such rows); {way_out}")


def batches(offsets: Ints) -> Iterator[tuple[Ints, Ints | slice]]:
    """Batches of lists of equal length: their numbers (n,) and their rows, as a table (n, length) or, if contiguous, as
    a slice.  ``x[rows].reshape(n, -1)`` are the rows' values in both cases.  O(rows + lists log lists).
    """
    lengths = np.diff(offsets)
    by_length = np.argsort(lengths, kind="stable")
    sizes, first = np.unique(lengths[by_length], return_index=True)
    for length, same in zip(sizes, np.split(by_length, first[1:])):
        if length == 0:
            continue
        step = max(1, BATCH_ROWS // int(length))
        for a in range(0, len(same), step):
            lists = same[a : a + step]
            if lists[-1] - lists[0] == len(lists) - 1:
                yield lists, slice(int(offsets[lists[0]]), int(offsets[lists[-1] + 1]))
            else:
                yield lists, offsets[lists][:, None] + np.arange(length)


def sorted_rows(key: NDArray[Any], offsets: Ints) -> tuple[Ints, bool]:
    """Rows of each list in descending key, equal keys in input order, and whether any are equal.  O(rows log rows).

    NumPy's unstable sort is vectorized, and faster even twice: lists with equal keys are sorted again, by block of
    equal keys and row.  Batches are sorted in threads.
    """
    order = np.empty(len(key), np.int64)
    parts = list(batches(offsets))

    def work(k: int) -> bool:
        lists, rows = parts[k]
        falling = -key[rows].reshape(len(lists), -1)
        place = np.argsort(falling, axis=1)
        placed = np.sort(falling, axis=1)  # faster than indexing by place
        new = placed[:, 1:] != placed[:, :-1]
        tied = ~new.all(axis=1)
        if tied.any():
            place[tied] = _rows_within_blocks(place[tied], new[tied])
        place += offsets[lists][:, None]
        order[rows] = place.ravel() if isinstance(rows, slice) else place
        return bool(tied.any())

    return order, any(map_ordered(work, len(parts)))


def _rows_within_blocks(place: Ints, new: NDArray[np.bool_]) -> Ints:
    """The rows ``place`` (lists, n), ascending within each block; ``new`` (lists, n - 1): does a block start here?"""
    n = place.shape[1]
    block = np.zeros_like(place)
    np.cumsum(new, axis=1, out=block[:, 1:])
    both = np.sort(block * n + place, axis=1)
    return both - block * n


def _single(s: Floats) -> Floats:
    """Scores rounded to single precision, as some packages store them."""
    with np.errstate(over="ignore"):  # scores out of range become infinite there too
        return s.astype(np.float32).astype(np.float64)


def _order_by_name(key: NDArray[Any], offsets: Ints, name: ArrayLike | None) -> Ints:
    """Rows of each list in descending key, equal keys in descending name.  O(rows log rows)."""
    by_name = np.arange(len(key)) if name is None else np.argsort(np.asarray(name), kind="stable")
    if by_name.shape != key.shape:
        raise ValueError(f"names have shape {by_name.shape}; there are {len(key)} rows, and each needs one")
    place = np.empty(len(key), np.int64)
    place[by_name] = np.arange(len(key))
    return np.lexsort((-place, -key, list_of_rows(offsets)))
