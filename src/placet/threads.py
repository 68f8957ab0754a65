"""How many threads work, and how they share what there is to do."""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

SMALL_ALGEBRA = 2000
"""Unknowns up to which dense algebra runs on one thread: more gain little, and their number changes last digits."""

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Cores that this process may use: its affinity, and the quota of its container, rounded up."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota(_CGROUP)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def cpu_quota(folder: Path) -> float | None:
    """Cores that the control group grants (version 2 or 1); None where there is no limit."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            numbers = " ".join((folder / file).read_text() for file in files).split()
            quota, period = float(numbers[0]), float(numbers[1])
        except (OSError, ValueError, IndexError):  # no such file, or "max": no limit in this version
            continue
        if quota > 0 and period > 0:
            return quota / period
    return None


def _first_threads() -> int:
    given = os.environ.get("PLACET_THREADS", "")
    if given and not (given.isdigit() and int(given) > 0):
        raise ValueError(f"PLACET_THREADS must be a whole number of at least 1, not {given!r}")
    return int(given) if given else usable_cores()


_threads = _first_threads()


def set_threads(n: int) -> None:
    """Use ``n`` threads from now on (default: the variable PLACET_THREADS, else every core that may be used)."""
    global _threads
    if n < 1:
        raise ValueError(f"threads must be at least 1, not {n}")
    _threads = n


def get_threads() -> int:
    """Number of threads in use."""
    return _threads


@contextmanager
def algebra_threads(n: int = 0) -> Iterator[None]:
    """Inside, NumPy's and SciPy's linear algebra uses one thread where there are at most SMALL_ALGEBRA unknowns, else
    as many as Placet does.

    The number is that of the process: while several threads are inside, the smallest that any of them asked for holds,
    and the last to leave puts back what was there before the first came.
    """
    wanted = 1 if n <= SMALL_ALGEBRA else _threads
    with _inside_lock:
        if not _inside:
            _before[:] = [library.num_threads for library in _libraries()]
        _inside.append(wanted)
        _limit([min(_inside)] * len(_before))
    try:
        yield
    finally:
        with _inside_lock:
            _inside.remove(wanted)
            _limit([min(_inside)] * len(_before) if _inside else _before)


def _limit(numbers: list[int]) -> None:
    for library, n in zip(_libraries(), numbers):
        if library.num_threads != n:
            library.set_num_threads(n)


_inside: list[int] = []  # threads of algebra that were asked for, by all that are inside
_before: list[int] = []  # those of each library before the first
_inside_lock = Lock()


@cache
def _libraries() -> tuple[Any, ...]:
    """The libraries of linear algebra of NumPy and SciPy, which each bring their own."""
    import scipy.linalg  # noqa: F401  for its library to be there
    from threadpoolctl import ThreadpoolController

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


@lru_cache(maxsize=4)
def _pool(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, thread_name_prefix="placet")


_forked = False


def forked() -> bool:
    """Whether this process was forked from one that had imported Placet.

    A child has none of its parent's threads.  Placet starts a pool of its own; but OpenMP of GCC waits for the threads
    of the parent for ever, so that LightGBM and PyTorch must do with one thread there.
    """
    return _forked


def _after_fork() -> None:
    global _forked, _inside_lock
    _forked = True
    _pool.cache_clear()
    _inside_lock = Lock()  # a thread that the child does not have may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def map_ordered(work: Callable[[int], T], n: int) -> list[T]:
    """``[work(0), ..., work(n - 1)]``: the caller's thread starts at the front and the pool's at the back.

    The caller works too, since to hand everything over and wait costs as much as a short piece does; and from the other
    end, since two threads that touch new memory side by side wait for each other.
    """
    if _threads == 1 or n < 2:
        return [work(k) for k in range(n)]
    values: list[Any] = [None] * n
    left = deque(range(n))

    def take(following: Callable[[], int]) -> None:
        while left:
            try:
                k = following()
            except IndexError:  # another thread took the last
                return
            values[k] = work(k)

    helpers = [_pool(_threads - 1).submit(take, left.pop) for _ in range(min(_threads, n) - 1)]
    waits = True
    try:
        take(left.popleft)
    except KeyboardInterrupt:  # what helpers are at may take long, and nobody wants it any more
        waits = False
        raise
    finally:
        left.clear()
        for helper in helpers:
            if not helper.cancel() and waits:  # one that has not started has nothing left to do
                helper.result()
    return values


class Aside:
    """Steps that run one after the other in a thread of their own, so that the main thread, which waits, hears a signal
    at once: Python runs no handler inside a library that is at work.

    Where ``wanted`` is false, or the caller is not the main thread (which alone gets signals), steps run as they are.
    ``seconds`` is how long the last one took.
    """

    def __init__(self, wanted: bool = True) -> None:
        self._pool = ThreadPoolExecutor(1, "placet-aside") if wanted and current_thread() is main_thread() else None
        self._last: Future[Any] | None = None
        self.seconds = 0.0

    def run(self, step: Callable[[], T]) -> T:
        """What the step returns; an interrupt is raised here while the step goes on."""
        start = time.monotonic()
        if self._pool is None:
            found = step()
        else:
            self._last = self._pool.submit(step)
            found = self._last.result()
        self.seconds = time.monotonic() - start
        return found

    def settled(self, seconds: float) -> bool:
        """Whether no step is at work, or the last one ends within so many seconds."""
        return self._last is None or bool(wait([self._last], seconds).done)


def sum_over_rows(
    work: Callable[[slice, Any], None], n_rows: int, size: int, rows_per_range: int, most_ranges: int = 16
) -> Any:
    """Sum of what ``work(rows, out)`` adds to ``out`` (size,), zeros at first, over ranges of rows shared by threads.

    The ranges depend on the number of rows alone and are added in order: the number of threads does not change the sum.
    """
    n = min(most_ranges, -(-n_rows // rows_per_range))
    ends = [k * n_rows // n for k in range(n + 1)] if n else []

    def part(k: int) -> Any:
        out = np.zeros(size)
        work(slice(ends[k], ends[k + 1]), out)
        return out

    if n <= 1:
        return part(0) if n else np.zeros(size)
    return np.add.reduce(map_ordered(part, n))
