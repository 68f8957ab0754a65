"""How a kernel meets its lists: rows put in order, lists cut into ranges, ranges shared among threads.

The ranges depend on the data alone and their values are added in order, so a result does not depend on the number of
threads.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from placet.data import Lists
from placet.kernels import ranges

Array = NDArray[np.float64]

ROWS_PER_RANGE = 8192
TASKS_PER_THREAD = 4

_threads = max(1, int(os.environ.get("PLACET_THREADS", os.cpu_count() or 1)))


class Columns(NamedTuple):
    """Scores and lists as kernels take them: contiguous, float64 (``offsets`` int64), read-only."""

    s: Array
    grade: Array
    offsets: NDArray[np.int64]
    weight: Array


def set_threads(n: int) -> None:
    """Use ``n`` threads from now on (default: the variable PLACET_THREADS, else every core)."""
    global _threads
    if n < 1:
        raise ValueError(f"threads must be at least 1, not {n}")
    _threads = n


def get_threads() -> int:
    """Number of threads in use."""
    return _threads


@lru_cache(maxsize=4)
def _pool(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, thread_name_prefix="placet")


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
    """Lists that start a range, and the number of lists at the end: about ROWS_PER_RANGE rows each, in whole lists."""
    n_lists = len(offsets) - 1
    marks = np.arange(0, offsets[-1] + 1, ROWS_PER_RANGE)
    return np.unique(np.append(np.searchsorted(offsets, marks, side="left").clip(0, n_lists), n_lists))


def _by_row(values: ArrayLike, n_rows: int) -> Array:
    column = frozen(values)
    if column.shape != (n_rows,):
        raise ValueError(f"the vector has shape {column.shape} and the scores ({n_rows},); both must be (rows,)")
    return column


def over_lists(
    kernel: Callable[..., float],
    s: ArrayLike,
    lists: Lists,
    *args: object,
    rows: Sequence[ArrayLike] = (),
    in_order: bool = True,
) -> tuple[float, Array]:
    """Sum of ``kernel(s, grade, offsets, weight, grad, *rows, *args)`` over ranges of lists, and the gradient.

    The kernel returns its value and writes the gradient of its rows into ``grad`` (zeros at first).  With ``in_order``
    it may assume that grades never rise inside a list: scores, grades and the columns of ``rows`` are put in that
    order, and the gradient goes back in the caller's.  ``args`` are passed on as they are.
    """
    s, grade, offsets, weight = checked(s, lists)
    columns = [_by_row(column, len(s)) for column in rows]
    order = None
    if in_order and not ranges.is_descending(grade, offsets):
        order = ranges.descending_order(grade, offsets)
        s, grade, *columns = (frozen(column[order]) for column in (s, grade, *columns))
    grad = np.zeros(len(s))
    cuts = cut(offsets)

    def some(which: Sequence[int]) -> list[float]:
        pieces = [(cuts[k], cuts[k + 1]) for k in which]
        return [kernel(s, grade, offsets[a : b + 1], weight[a:b], grad, *columns, *args) for a, b in pieces]

    n = len(cuts) - 1
    if _threads == 1 or n < 2:
        values = some(range(n))
    else:
        # a few tasks for each thread: handing a task over costs as much as a short range does
        tasks = np.array_split(np.arange(n), min(n, TASKS_PER_THREAD * _threads))
        values = [value for done in _pool(_threads).map(some, tasks) for value in done]
    if order is not None:
        back = np.empty_like(grad)
        back[order] = grad
        grad = back
    return float(sum(values)), grad
