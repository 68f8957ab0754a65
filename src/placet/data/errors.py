"""The one exception for data that cannot be used as they are, and the one check of a choice."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


class DataError(ValueError):
    """Data that cannot be used as they are: the message says where, what, how many, and the way out.

    ``lines``: (source, line, what is wrong, way out) of the first hundred bad lines, where an error is about lines.
    """

    lines: tuple[tuple[str, int, str, str], ...] = ()


def one_of(value: T, choices: Iterable[T], what: str) -> T:
    """The value itself, or an error that lists the choices."""
    known = list(choices)
    if value not in known:
        raise ValueError(f"{what} {value!r} is unknown; choose from {known}")
    return value
