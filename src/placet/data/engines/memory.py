"""Memory: how much is left, errors before more than that is allocated, limits for parts, and sizes of objects."""

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np

from placet.data.errors import DataError

_ROOT = Path("/")

SMALL = 1 << 20
"""Allocations up to this many bytes are not checked: asking the system would slow down the steps of small fits."""


def available(root: Path = _ROOT) -> int | None:
    """Bytes this process can still allocate, given the machine, its control group and its limits; None if unknown."""
    found = [_of_machine(root), _of_group(root), _of_limits(root)]
    known = [number for number in found if number is not None]
    return max(0, min(known)) if known else None


def refuse_beyond_memory(n_bytes: float, what: str, way_out: str) -> None:
    """Raise a ``DataError`` with the numbers and the remedy if ``what`` needs more memory than is available.

    >>> refuse_beyond_memory(1 << 60, "a table of all pairs", "take fewer items")
    Traceback (most recent call last):
    placet.data.errors.DataError: a table of all pairs needs about 1,152,921,504.6 GB of memory, and ... are left; take fewer items
    """  # noqa: E501
    if n_bytes <= SMALL:
        return
    left = available()
    if left is not None and n_bytes > left:
        raise DataError(f"{what} needs about {gigabytes(n_bytes)} of memory, and {gigabytes(left)} are left; {way_out}")


def refuse_square(n: int, what: str, way_out: str, copies: float = 3.0) -> None:
    """`refuse_beyond_memory` for ``copies`` n x n tables of doubles."""
    refuse_beyond_memory(8.0 * n * n * copies, f"{what} of {n:,} items", way_out)


def refuse_table(n_rows: int, n_columns: int, what: str, way_out: str, copies: float = 1.0) -> None:
    """`refuse_beyond_memory` for ``copies`` n_rows x n_columns tables of doubles."""
    refuse_beyond_memory(8.0 * n_rows * n_columns * copies, f"{what} of {n_rows:,} x {n_columns:,}", way_out)


def refuse_dense(X: Any, way_out: str) -> None:
    """`refuse_beyond_memory` for a dense copy of ``X``, if that is sparse."""
    if not isinstance(X, np.ndarray):
        n_rows, n_columns = X.shape
        refuse_table(n_rows, n_columns, "a dense copy of a sparse table", way_out)


def return_freed_memory() -> None:
    """Give freed memory back to the system where the C library can (glibc).

    It keeps what a thread freed in a pool of that thread, from which what is needed next is often not taken.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def gigabytes(n_bytes: float) -> str:
    """Format bytes in gigabytes.

    >>> gigabytes(2.5e9), gigabytes(3e6)
    ('2.5 GB', '0.003 GB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e9:.3f} GB"


def _number(file: Path) -> int | None:
    """The number in a file; None if there is no such file or it says "max"."""
    try:
        text = file.read_text().split()
        return int(text[0]) if text and text[0].isdigit() else None
    except OSError:
        return None


def _of_machine(root: Path) -> int | None:
    """Bytes that the machine can provide without swapping."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return found[0] if found else None


def group_limit(root: Path = _ROOT) -> int | None:
    """The lowest memory limit of the control groups of this process; None if there is no limit."""
    return min((most for most, _ in _groups(root)), default=None)


def _of_group(root: Path) -> int | None:
    """Bytes that the control groups of this process leave; cached files count as free."""
    return min((left for _, left in _groups(root)), default=None)


def _groups(root: Path) -> list[tuple[int, int]]:
    """(limit, bytes left) of each control group of this process with a limit, version 2 or 1."""
    folder = root / "sys/fs/cgroup"
    try:
        own = [line.split(":", 2)[2].strip("/") for line in (root / "proc/self/cgroup").read_text().splitlines()]
    except (OSError, IndexError):
        own = []
    found: list[tuple[int, int]] = []
    for place in {"", *own}:
        for group, limit, used in (
            (folder / place, "memory.max", "memory.current"),
            (folder / "memory" / place, "memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            most, now = _number(group / limit), _number(group / used)
            if most is not None and now is not None and most < 1 << 60:
                found.append((most, most - now + _cache(group / "memory.stat")))
    return found


def _cache(file: Path) -> int:
    """Bytes of inactive file cache of a control group."""
    try:
        pairs = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return 0
    return sum(int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] == "inactive_file")


def _of_limits(root: Path) -> int | None:
    """Bytes that the limit on address space (ulimit -v) leaves."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return None
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = _number(root / "proc/self/statm")
    if soft == resource.RLIM_INFINITY or pages is None:
        return None
    return soft - pages * os.sysconf("SC_PAGE_SIZE")


# Limits for data that can be read again, and sizes of objects

VARIABLE = "PLACET_MEMORY"
PART_OF_MEMORY = 4
"""Data that a method needs from all parts at once may take 1 / this of the memory limit for parts, since the method
allocates further arrays from it.
"""

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_bytes(text: str, what: str) -> int:
    """Parse a number of bytes such as ``500M`` or ``64G``; anything else is a ``ValueError`` that names ``what``.

    >>> parse_bytes("2K", "PLACET_MEMORY")
    2048
    """
    said = text.strip().upper().removesuffix("B").removesuffix("I")
    number, unit = (said[:-1], said[-1]) if said[-1:] in _UNITS else (said, "")
    if not number.isdecimal() or int(number) == 0:
        raise ValueError(f"{what} {text!r} is not a number of bytes; write it such as 500M or 64G")
    return int(number) * _UNITS.get(unit, 1)


def memory_limit() -> int:
    """Bytes of parts that may be cached: the environment variable PLACET_MEMORY, or half of the machine's memory."""
    given = os.environ.get(VARIABLE, "")
    return parse_bytes(given, VARIABLE) if given.strip() else total_memory() // 2


def total_memory() -> int:
    """Bytes of memory of this machine, or of its container if that has less."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not POSIX
        memory = 8 << 30
    limit = group_limit()
    return memory if limit is None else min(memory, limit)


def array_bytes(thing: Any) -> int:
    """Bytes of the arrays that an object holds, each counted once."""
    seen: set[int] = set()
    total = 0
    left = [thing]
    while left:
        one = left.pop()
        while isinstance(one, np.ndarray) and one.base is not None and isinstance(one.base, np.ndarray):
            one = one.base
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            total += one.nbytes
        elif isinstance(one, tuple | list):
            left.extend(one if len(one) < 1000 else ())  # names are not data
        elif isinstance(one, dict):
            left.extend(one.values())
        elif type(one).__module__.startswith(("placet.", "scipy.sparse")) and hasattr(one, "__dict__"):
            left.extend(vars(one).values())
    return total
