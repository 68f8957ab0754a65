"""How a kernel meets its lists: rows put in order, lists cut into ranges, ranges shared among threads.

The ranges depend on the data alone and their values are added in order, so a result does not depend on the number of
threads.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from placet.data import Lists
from placet.data.arrays import Floats
from placet.kernels import ranges
from placet.threads import get_threads, map_ordered, set_threads

__all__ = ["Columns", "checked", "cut", "frozen", "get_threads", "over_lists", "set_threads"]


ROWS_PER_RANGE = 8192  # at least: a call costs as much as some hundred rows
MOST_RANGES = 64


class Columns(NamedTuple):
    """Scores and lists as kernels take them: contiguous, float64 (``offsets`` int64), read-only."""

    s: Floats
    grade: Floats
    offsets: NDArray[np.int64]
    weight: Floats


def frozen(values: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray:
    """A read-only view of ``values`` as kernels take them; a copy only if type or layout ask for one.

    Numba compiles again for arrays that differ in being writable, so that all inputs are of one kind.
    """
    view = np.require(values, dtype, ["C", "A"]).view()
    view.flags.writeable = False
    return view


def checked(s: ArrayLike, lists: Lists) -> Columns:
    """Scores and lists as contiguous arrays of the types that kernels take, or a ``ValueError``."""
    s, grade, offsets = frozen(s), frozen(lists[0]), frozen(lists[1], np.int64)
    n_lists = len(offsets) - 1
    weight = frozen(np.ones(max(n_lists, 0)) if lists[2] is None else lists[2])
    if s.shape != grade.shape or s.ndim != 1:
        raise ValueError(f"scores have shape {s.shape} and grades {grade.shape}; both must be (rows,)")
    if n_lists < 0 or offsets[0] != 0 or offsets[-1] != len(grade) or (n_lists and (np.diff(offsets) < 0).any()):
        raise ValueError(f"offsets must rise from 0 to the number of rows, {len(grade)}")
    if weight.shape != (n_lists,):
        raise ValueError(f"weight has shape {weight.shape}; there are {n_lists} lists")
    return Columns(s, grade, offsets, weight)


def cut(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lists that start a range, and the number of lists at the end.

    Whole lists, of about ROWS_PER_RANGE rows together or more, so that there are at most about MOST_RANGES.
    """
    n_lists = len(offsets) - 1
    marks = np.arange(0, offsets[-1] + 1, max(ROWS_PER_RANGE, -(-int(offsets[-1]) // MOST_RANGES)))
    return np.unique(np.append(np.searchsorted(offsets, marks, side="left").clip(0, n_lists), n_lists))


def _by_row(values: ArrayLike, n_rows: int) -> Floats:
    column = frozen(values)
    if column.shape != (n_rows,):
        raise ValueError(f"the vector has shape {column.shape} and the scores ({n_rows},); both must be (rows,)")
    return column


def _summed(
    kernel: Callable[..., float], lists: Columns, more: Sequence[object], descending: bool
) -> tuple[float, Floats] | None:
    """Sum of the kernel over ranges and its gradient; nothing if ``descending`` is asked for and some list is not.

    Order is looked at, and the gradient set to zero, range by range: there the kernel finds both in the cache, and no
    thread does it for all.
    """
    s, grade, offsets, weight = lists
    grad = np.empty(len(s))
    cuts = cut(offsets)
    out_of_order = False

    def value_of(k: int) -> float:
        nonlocal out_of_order
        a, b = cuts[k], cuts[k + 1]
        within = offsets[a : b + 1]
        if out_of_order or not ranges.clear(grad, grade, within, descending):
            out_of_order = True
            return 0.0
        return kernel(s, grade, within, weight[a:b], grad, *more)

    values = map_ordered(value_of, len(cuts) - 1)
    return None if out_of_order else (float(sum(values)), grad)


def over_lists(
    kernel: Callable[..., float],
    s: ArrayLike,
    lists: Lists,
    *args: object,
    rows: Sequence[ArrayLike] = (),
    in_order: bool = True,
) -> tuple[float, Floats]:
    """Sum of ``kernel(s, grade, offsets, weight, grad, *rows, *args)`` over ranges of lists, and the gradient.

    The kernel returns its value and writes the gradient of its rows into ``grad`` (zeros at first).  With ``in_order``
    it may assume that grades never rise inside a list: scores, grades and the columns of ``rows`` are put in that
    order, and the gradient goes back in the caller's.  ``args`` are passed on as they are.
    """
    given = checked(s, lists)
    columns = [_by_row(column, len(given.s)) for column in rows]
    found = _summed(kernel, given, (*columns, *args), in_order)
    if found is not None:
        return found
    order = ranges.descending_order(given.grade, given.offsets)
    sorted_rows = given._replace(s=frozen(given.s[order]), grade=frozen(given.grade[order]))
    found = _summed(kernel, sorted_rows, (*(frozen(column[order]) for column in columns), *args), False)
    assert found is not None
    back = np.empty_like(found[1])
    back[order] = found[1]
    return found[0], back
