"""Memory limits for data that can be read again, and the size of objects in memory."""

import os
from typing import Any

import numpy as np

from placet.data.room import group_limit

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
