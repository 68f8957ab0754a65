"""Lists as the kernels of losses expect them: checked, read-only, near 0, and cut into ranges for the threads."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import Lists
from placet.data.arrays import Floats, Ints, refuse_masked_or_complex

ROWS_PER_RANGE = 8192  # minimum: a call costs as much as a few hundred rows
MOST_RANGES = 64
FAR = 2.0**16
"""Scores beyond this that are close to each other are moved near 0, as sums of exponentials lose digits out there."""


NO_ROWS: Floats = np.zeros(0)
NO_ROWS.flags.writeable = False


class ListColumns(NamedTuple):
    """Lists as kernels expect them: contiguous, float64 (``offsets`` int64), read-only, by descending grade."""

    grade: Floats
    offsets: Ints
    weight: Floats


def read_only(values: ArrayLike, dtype: Any = np.float64) -> NDArray[Any]:
    """A read-only contiguous view for the kernels; a copy only if type or layout require it.

    Numba compiles separately for writable and read-only arrays, so all inputs are made read-only.
    """
    refuse_masked_or_complex(values)
    view = np.require(values, dtype, ["C", "A"]).view()
    view.flags.writeable = False
    return view


def checked_lists(lists: Lists) -> ListColumns:
    """Grades, offsets and weights as kernels expect them (rows not yet sorted), or a ``ValueError``."""
    grade, given = _numbers(lists[0], "grades"), np.asarray(lists[1])
    if (
        given.ndim != 1
        or not len(given)
        or (given.dtype.kind not in "iu" and not np.array_equal(given, np.rint(given)))
    ):
        raise ValueError(f"offsets must be whole numbers that rise from 0 to the number of rows, {len(grade)}")
    offsets = read_only(given, np.int64)
    if offsets[0] != 0 or offsets[-1] != len(grade) or (np.diff(offsets) < 0).any():
        raise ValueError(f"offsets must rise from 0 to the number of rows, {len(grade)}")
    n_lists = len(offsets) - 1
    weight = read_only(np.ones(n_lists)) if lists[2] is None else _numbers(lists[2], "weights")
    if weight.shape != (n_lists,):
        raise ValueError(f"weight has shape {weight.shape}; there are {n_lists} lists")
    if (weight < 0).any():
        at = int(np.argmax(weight < 0))
        raise ValueError(f"list {at}: weight {weight[at]} is negative ({(weight < 0).sum()} such lists)")
    return ListColumns(grade, offsets, weight)


def _numbers(values: ArrayLike, what: str) -> Floats:
    column = read_only(values)
    if column.ndim != 1:
        raise ValueError(f"{what} have shape {column.shape}; they must be one-dimensional")
    bad = ~np.isfinite(column)
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(f"{what} must be finite; number {at} is {column[at]} ({bad.sum()} such numbers)")
    return column


def row_vector(values: ArrayLike, n_rows: int, what: str) -> Floats:
    column = read_only(values)
    if column.shape != (n_rows,):
        raise ValueError(f"the {what} has shape {column.shape} and the lists have {n_rows} rows; both must be (rows,)")
    return column


def near_zero(s: Floats, offsets: Ints) -> Floats:
    """The scores minus the first of their list, in lists where it is beyond ``FAR`` and the others are close to it.

    Close is within half of it: then the differences are exact (Sterbenz's lemma), and sums of exponentials do not lose
    digits to the level of the scores.  O(rows).
    """
    filled = np.diff(offsets) > 0
    starts, sizes = offsets[:-1][filled], np.diff(offsets)[filled]
    first = np.repeat(s[starts], sizes)
    close = (np.abs(first) > FAR) & (np.abs(0.5 * s - 0.5 * first) <= 0.25 * np.abs(first))
    return s - np.where(np.repeat(np.logical_and.reduceat(close, starts), sizes), first, 0.0)


def cut_into_ranges(offsets: Ints) -> Ints:
    """First list of each range, followed by the number of lists.

    Ranges consist of whole lists with about ROWS_PER_RANGE rows or more in total, at most about MOST_RANGES of them.
    They do not depend on the number of threads, so neither do the results.
    """
    n_lists = len(offsets) - 1
    marks = np.arange(0, offsets[-1] + 1, max(ROWS_PER_RANGE, -(-int(offsets[-1]) // MOST_RANGES)))
    return np.unique(np.append(np.searchsorted(offsets, marks, side="left").clip(0, n_lists), n_lists))
