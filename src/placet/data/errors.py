"""The exception for unusable data, and the check of a value against its choices."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


class DataError(ValueError):
    """Data that cannot be used as given: the message says where, what, how many, and what to do about it.

    ``lines``: (source, line, problem, remedy) of the first hundred bad lines, if the error is about lines of a file.
    ``ways``: if data may be read in several ways, the arguments that choose each of them, as text.

    >>> from placet import Comparisons
    >>> Comparisons.from_battles(["ant"], ["ant"], ["a"])
    Traceback (most recent call last):
    placet.data.errors.DataError: row 0: item 'ant' is compared with itself...
    """

    lines: tuple[tuple[str, int, str, str], ...] = ()
    ways: tuple[str, ...] = ()

    @classmethod
    def of_ways(cls, message: str, ways: Iterable[str]) -> "DataError":
        """An error about data that may be read in several ways."""
        error = cls(message)
        error.ways = tuple(ways)
        return error


def one_of(value: T, choices: Iterable[T], what: str) -> T:
    """Return the value, or raise an error that lists the choices, the one that may be meant before the others."""
    known = list(choices)
    if value not in known:
        near = nearest(str(value), [str(choice) for choice in known])
        meant = f" (did you mean {near!r}?)" if near else ""
        raise ValueError(f"{what} {value!r} is unknown{meant}; choose from {as_choices(known)}")
    return value


def as_choices(names: Iterable[object]) -> str:
    """Choices as a message lists them."""
    return ", ".join(map(str, names))


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that a misspelled word may mean, if one is near enough.

    >>> nearest("bradly-terry", ["borda", "bradley-terry"]), nearest("Elo", ["elo"]), nearest("rules", ["borda"])
    ('bradley-terry', 'elo', None)
    """
    from difflib import get_close_matches  # imported only when something is wrong

    plain = {choice.lower().replace("_", "-"): choice for choice in choices}
    found = get_close_matches(word.lower().replace("_", "-"), plain, n=1, cutoff=0.7)
    return plain[found[0]] if found else None
