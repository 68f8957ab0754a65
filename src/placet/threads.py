"""How many threads work, and how they share what there is to do."""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

_threads = max(1, int(os.environ.get("PLACET_THREADS", os.cpu_count() or 1)))


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
    try:
        take(left.popleft)
    finally:
        left.clear()
        for helper in helpers:
            if not helper.cancel():  # one that has not started has nothing left to do
                helper.result()
    return values
