"""Engines that compute sums over parts: parts are loaded, cached if they fit in memory, and added in a fixed tree.

The tree is that of a binary counter: parts 0 and 1, 2 and 3, ..., then pairs of these, any remainder joining from the
right.  It depends only on the number of parts, so a sum is bitwise identical for every engine, number of workers and
history of failures.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Protocol

from placet.data.engines.memory import array_bytes, memory_limit
from placet.data.errors import DataError

Function = Callable[..., Any]
Merge = Callable[[Any, Any], Any]


class Piece(Protocol):
    """A piece of data that any process can load: ``key`` is unique, ``name`` is for messages, and ``size`` is the
    number of bytes that loading it reads.
    """

    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def load(self) -> Any: ...


class Engine(Protocol):
    """Something that sums a function over pieces."""

    def sum(
        self, f: Function, pieces: Sequence[Piece], x: tuple[Any, ...], *, name: str, merge: Merge
    ) -> tuple[Any, int]:
        """Merge ``f(loaded piece, *x)`` over all pieces in the fixed tree; return the result and the bytes read.

        ``merge`` must not modify its arguments: a task whose result is lost with a worker is run again on them.
        """
        ...


class EngineError(RuntimeError):
    """The engine cannot continue: workers are lost, or lack what they need.

    ``checkpoint``: the file with the last iterate, if there is one; it can be passed as ``start``.
    """

    checkpoint: str | None = None


class Serial:
    """Single-process engine: pieces one after another, each on all threads."""

    def sum(
        self, f: Function, pieces: Sequence[Piece], x: tuple[Any, ...], *, name: str, merge: Merge
    ) -> tuple[Any, int]:
        return run(f, pieces, x, merge)


def run(f: Function, pieces: Sequence[Piece], x: tuple[Any, ...], merge: Merge) -> tuple[Any, int]:
    """Merge ``f`` over the pieces; return the result and the bytes read.  Pieces that do not fit are not cached."""

    def one(piece: Piece) -> tuple[Any, int]:
        data, read = CACHE.fetch(piece)
        return f(data, *x), read

    return tree(map(one, pieces), with_bytes(merge))


def with_bytes(merge: Merge) -> Merge:
    """Extend ``merge`` to pairs of a result and the bytes read for it."""
    return lambda a, b: (merge(a[0], b[0]), a[1] + b[1])


def tree(values: Iterable[Any], merge: Merge) -> Any:
    """Merge all values in the fixed tree, holding at most about log2(number of values) of them at a time.

    >>> tree("abcdefg", lambda x, y: f"({x}{y})")
    '(((ab)(cd))((ef)g))'
    """
    stack: list[tuple[int, Any]] = []
    for value in values:
        level = 0
        while stack and stack[-1][0] == level:
            value = merge(stack.pop()[1], value)
            level += 1
        stack.append((level, value))
    if not stack:
        raise DataError("there are no parts to sum over; give at least one")
    result = stack.pop()[1]
    while stack:
        result = merge(stack.pop()[1], result)
    return result


def add(a: Any, b: Any) -> Any:
    """The sum of numbers, arrays or lists, or elementwise of tuples of these."""
    if isinstance(a, tuple):
        return tuple(add(x, y) for x, y in zip(a, b))
    return a + b


class Cache:
    """Cache of loaded pieces, up to a memory limit.

    A piece is never evicted for another of the same ``owner``, since repeated passes in the same order would then never
    hit the cache: pieces that do not fit are loaded again in each pass.  Those of other owners are evicted.  ``bytes``:
    those in the cache.
    """

    def __init__(self) -> None:
        self.limit: int | None = None  # None: taken from PLACET_MEMORY
        self.bytes = 0
        self._pieces: dict[str, tuple[Any, int, str]] = {}
        self._lock = threading.RLock()

    def fetch(self, piece: Piece) -> tuple[Any, int]:
        """The loaded piece, and the bytes read by this call (0 if it was cached)."""
        with self._lock:
            if piece.key in self._pieces:
                return self._pieces[piece.key][0], 0
        value = piece.load()
        self._keep(piece.key, value, getattr(piece, "owner", ""))
        return value, piece.size

    def _keep(self, key: str, value: Any, owner: str) -> None:
        size, limit = array_bytes(value), memory_limit() if self.limit is None else self.limit
        with self._lock:
            if self.bytes + size > limit:
                for other, (_, _, whose) in list(self._pieces.items()):
                    if whose != owner:
                        self._remove(other)
                    if self.bytes + size <= limit:
                        break
            if self.bytes + size <= limit:
                self._remove(key)  # another thread may have been first
                self._pieces[key] = value, size, owner
                self.bytes += size

    def _remove(self, key: str) -> None:
        _, size, _ = self._pieces.pop(key, (None, 0, ""))
        self.bytes -= size

    def drop(self, owner: str | None = None) -> None:
        """Drop the cached pieces of an owner, or all of them."""
        with self._lock:
            for key, (_, _, whose) in list(self._pieces.items()):
                if owner is None or whose == owner:
                    self._remove(key)


CACHE = Cache()
"""The cache of this process."""

_HOMES = {"distributed": "placet.data.engines:dask"}
"""Top-level package of an object -> "module:function" that wraps it as an engine, imported on demand."""


def engine_of(given: Any) -> Engine:
    """Return an engine unchanged, wrap a Dask client, or use the serial engine for None; else a ``TypeError``."""
    if given is None:
        return Serial()
    if callable(getattr(given, "sum", None)):
        found: Engine = given
        return found
    home = _HOMES.get(type(given).__module__.split(".")[0])
    if home is None:
        raise TypeError(
            f"engine must be a distributed.Client, not {type(given).__name__}; placet.data.engines.dask makes one"
        )
    module, _, name = home.partition(":")
    made: Engine = getattr(import_module(module), name)(given)
    return made
