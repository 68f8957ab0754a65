"""The exception for unusable data, and the check of a value against its choices."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


class DataError(ValueError):
    """Data that cannot be used as given: the message says where, what, how many, and what to do about it.

    ``lines``: (source, line, problem, remedy) of the first hundred bad lines, if the error is about lines of a file.
    """

    lines: tuple[tuple[str, int, str, str], ...] = ()


def one_of(value: T, choices: Iterable[T], what: str) -> T:
    """Return the value, or raise an error that lists the choices."""
    known = list(choices)
    if value not in known:
        raise ValueError(f"{what} {value!r} is unknown; choose from {known}")
    return value
