"""Number of threads, and utilities to share work among them."""

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
"""Maximum unknowns for single-threaded linear algebra: more threads gain little and change last digits."""

NAP = 0.2
"""Seconds after which a waiting thread looks for signals."""

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Number of cores available to this process: its affinity, limited by the container's quota (rounded up)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota(_CGROUP)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def cpu_quota(folder: Path) -> float | None:
    """CPU quota of the control group (version 2 or 1) in cores; None without a limit."""
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
    """Use ``n`` threads from now on (default: environment variable PLACET_THREADS, else all usable cores).

    >>> before = get_threads()
    >>> set_threads(1)
    >>> get_threads()
    1
    >>> set_threads(before)
    """
    global _threads
    if n < 1:
        raise ValueError(f"threads must be at least 1, not {n}")
    _threads = n


def get_threads() -> int:
    """Number of threads in use."""
    return _threads


@contextmanager
def algebra_threads(n: int = 0) -> Iterator[None]:
    """Context in which NumPy's and SciPy's linear algebra uses one thread for at most SMALL_ALGEBRA unknowns, else as
    many threads as Placet.

    The setting is process-wide: while several threads are inside, the smallest requested number applies, and the last
    one to leave restores the original setting.
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


_inside: list[int] = []  # requested numbers of threads of all active contexts
_before: list[int] = []  # original number of threads of each library
_inside_lock = Lock()


@cache
def _libraries() -> tuple[Any, ...]:
    """The BLAS libraries of NumPy and SciPy, which each bundle their own."""
    import scipy.linalg  # noqa: F401  so that its library is loaded
    from threadpoolctl import ThreadpoolController

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


@lru_cache(maxsize=4)
def _pool(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, thread_name_prefix="placet")


_forked = False


def is_forked() -> bool:
    """Whether this process was forked from one that had imported Placet.

    A child has none of its parent's threads.  Placet starts a new pool, but GCC's OpenMP waits forever for the parent's
    threads, so LightGBM and PyTorch are limited to one thread there.
    """
    return _forked


def _after_fork() -> None:
    global _forked, _inside_lock
    _forked = True
    _pool.cache_clear()
    _inside_lock = Lock()  # it may have been held by a thread that does not exist in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def map_ordered(work: Callable[[int], T], n: int) -> list[T]:
    """``[work(0), ..., work(n - 1)]``: the calling thread works from the front and the pool from the back.

    The caller works too, since handing everything over and waiting costs as much as a short task; and from the opposite
    end, since threads that touch adjacent new memory wait for each other.
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
    except KeyboardInterrupt:  # helpers may still run for long, and their results are no longer needed
        waits = False
        raise
    finally:
        left.clear()
        for helper in helpers:
            if not helper.cancel() and waits:  # helpers that have not started have nothing to do
                await_result(helper)
    return values


def await_result(future: "Future[T]") -> T:
    """The result of a future, waited for in such a way that the main thread always hears a signal.

    A signal that arrives between the interpreter's last look and its sleep does not end a wait without a limit.
    """
    while not wait([future], NAP).done:
        pass
    return future.result()


class StepThread:
    """Run steps one after the other in a separate thread, so that the waiting main thread handles signals immediately:
    Python runs no signal handler while the main thread is inside a library call.

    If ``wanted`` is false, or the caller is not the main thread (the only one to receive signals), steps run directly.
    ``seconds`` is the duration of the last step.
    """

    def __init__(self, wanted: bool = True) -> None:
        self._pool = ThreadPoolExecutor(1, "placet-step") if wanted and current_thread() is main_thread() else None
        self._last: Future[Any] | None = None
        self.seconds = 0.0

    def run(self, step: Callable[[], T]) -> T:
        """Run a step and return its result; an interrupt is raised here while the step continues."""
        start = time.monotonic()
        if self._pool is None:
            found = step()
        else:
            self._last = self._pool.submit(step)
            found = await_result(self._last)
        self.seconds = time.monotonic() - start
        return found

    def ends_within(self, seconds: float) -> bool:
        """Whether no step is running, or the last one ends within ``seconds``."""
        return self._last is None or bool(wait([self._last], seconds).done)


def sum_over_rows(
    work: Callable[[slice, Any], None], n_rows: int, size: int, rows_per_range: int, most_ranges: int = 16
) -> Any:
    """Sum, over ranges of rows shared by threads, of what ``work(rows, out)`` adds to ``out`` (size,), initially zero.

    Ranges depend only on the number of rows and are added in order, so the number of threads does not change the sum.
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
