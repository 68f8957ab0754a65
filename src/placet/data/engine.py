"""How sums over parts are computed: parts are loaded and kept where there is room, and added in a fixed tree.

The tree is that of a binary counter: parts 0 and 1, 2 and 3, ..., then pairs of these, whatever is left over joining
from the right.  It depends on the number of parts alone, so a sum has the same bytes for every engine, number of
workers and history of failures.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Protocol

from placet.data.errors import DataError
from placet.data.memory import array_bytes, memory_limit

Function = Callable[..., Any]
Merge = Callable[[Any, Any], Any]


class Piece(Protocol):
    """A piece of data that any process can load: ``key`` tells it from all others, ``name`` is for messages, ``size``
    the bytes that loading it reads.
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
        """``f(loaded piece, *x)`` of all pieces, merged in the fixed tree; and the bytes that were read.

        ``merge`` leaves what it is given as it was: a task whose result is lost with a worker is run again on it.
        """
        ...


class EngineError(RuntimeError):
    """The engine cannot go on: workers are lost, or lack what they need.

    ``checkpoint``: the file that holds the last iterate, where there is one; it can be given as ``start``.
    """

    checkpoint: str | None = None


class Serial:
    """The engine of one process: pieces one after the other, each on all threads."""

    def sum(
        self, f: Function, pieces: Sequence[Piece], x: tuple[Any, ...], *, name: str, merge: Merge
    ) -> tuple[Any, int]:
        return run(f, pieces, x, merge)


def run(f: Function, pieces: Sequence[Piece], x: tuple[Any, ...], merge: Merge) -> tuple[Any, int]:
    """``f`` of consecutive pieces, merged; and the bytes that were read.  Pieces that do not fit are read and left."""

    def one(piece: Piece) -> tuple[Any, int]:
        data, read = KEPT.fetch(piece)
        return f(data, *x), read

    return tree(map(one, pieces), counted(merge))


def counted(merge: Merge) -> Merge:
    """A merge of results that come with the bytes that were read for them."""
    return lambda a, b: (merge(a[0], b[0]), a[1] + b[1])


def tree(values: Iterable[Any], merge: Merge) -> Any:
    """All values merged in the fixed tree; at most log2 of them are held at a time.

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
    """The sum of numbers, arrays or lists, or of tuples of these place by place."""
    if isinstance(a, tuple):
        return tuple(add(x, y) for x, y in zip(a, b))
    return a + b


class Kept:
    """Loaded pieces, kept while they fit within a limit.

    A piece is never dropped for another of the same kind of use, since a pass that goes round would then find none:
    what does not fit is loaded again at each pass.  Pieces of an earlier use (another ``owner``) make room.
    """

    def __init__(self) -> None:
        self.limit: int | None = None  # None: as PLACET_MEMORY says
        self._held: dict[str, tuple[Any, int, str]] = {}
        self._lock = threading.RLock()

    @property
    def bytes(self) -> int:
        """Bytes that are held."""
        return sum(size for _, size, _ in self._held.values())

    def fetch(self, piece: Piece) -> tuple[Any, int]:
        """The loaded piece, and the bytes that were read for it now."""
        with self._lock:
            if piece.key in self._held:
                return self._held[piece.key][0], 0
        value = piece.load()
        self._keep(piece.key, value, getattr(piece, "owner", ""))
        return value, piece.size

    def _keep(self, key: str, value: Any, owner: str) -> None:
        size, limit = array_bytes(value), memory_limit() if self.limit is None else self.limit
        with self._lock:
            for other, (_, _, whose) in list(self._held.items()):
                if self.bytes + size <= limit:
                    break
                if whose != owner:
                    del self._held[other]
            if self.bytes + size <= limit:
                self._held[key] = value, size, owner

    def drop(self, owner: str | None = None) -> None:
        """Let go of what belongs to an owner, or of everything."""
        with self._lock:
            for key, (_, _, whose) in list(self._held.items()):
                if owner is None or whose == owner:
                    del self._held[key]


KEPT = Kept()
"""What this process holds."""

_HOMES = {"distributed": "placet.scale:dask"}
"""The module of a foreign object -> what makes an engine of it; imported when it is met."""


def engine_of(given: Any) -> Engine:
    """An engine as it is, a Dask client as an engine, None as the serial one; else a ``TypeError``."""
    if given is None:
        return Serial()
    if callable(getattr(given, "sum", None)):
        found: Engine = given
        return found
    home = _HOMES.get(type(given).__module__.split(".")[0])
    if home is None:
        raise TypeError(f"engine must be a distributed.Client, not {type(given).__name__}; placet.scale.dask makes one")
    module, _, name = home.partition(":")
    made: Engine = getattr(import_module(module), name)(given)
    return made
