"""Shared parts of text readers: parsing and formatting of numbers and of orders (A > B = C), quoting of values in
messages, and bad lines, which are collected by kind and then raised as one error or reported as one warning.
"""

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from placet.data import DataError
from placet.data.errors import one_of

OnError = Literal["raise", "skip"]
TEXT: Literal["text"] = "text"
"""The layout of text that has no columns."""
_QUOTE = re.compile("['\"]")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,18}")
_ENTRY = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^">=#][^>=#]*))([>=]|#.*|$)', re.DOTALL)


def parse_decimal(text: str) -> float | None:
    """Parse a finite number in plain decimal notation; ``None`` for ``1_000``, ``0x10``, ``nan``, ``inf``.

    >>> parse_decimal("-1.5e3"), parse_decimal("1_000"), parse_decimal("nan")
    (-1500.0, None, None)
    """
    if _DECIMAL.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def parse_whole(text: str) -> int | None:
    """Parse a whole number of 1 to 18 digits; ``None`` for anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def format_number(value: float) -> str:
    """The shortest decimal that reads back as ``value``: ``3`` for 3.0.

    >>> format_number(3.0), format_number(0.1), format_number(1e300)
    ('3', '0.1', '1e+300')
    """
    if value == int(value) and abs(value) < 1e16 and not (value == 0 and math.copysign(1, value) < 0):
        return str(int(value))
    return repr(float(value))


def quote(value: object, limit: int = 60) -> str:
    """A value as it appears in a message: quoted, and truncated if it is long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= limit else text[:limit] + "...")


def plural(n: int, unit: str) -> str:
    """A count with its unit: ``1 line``, ``2 lines``."""
    return f"{n} {unit}" if n == 1 else f"{n} {unit}s"


class DataWarning(UserWarning):
    r"""Some input was skipped: the message says what, where and how much.

    ``lines`` are the first of the skipped lines, as in `DataError`.

    >>> import io
    >>> import warnings
    >>> import placet
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     votes = placet.read_battles(io.StringIO("a,b,winner\nx,y,a\nx,y,lefft\n"), on_error="skip")
    >>> said[0].message.lines[0][:3]
    ('<stream>', 3, "winner 'lefft' is not a, b or tie")
    """

    lines: tuple[tuple[str, int, str, str], ...] = ()


MOST_LISTED = 100
"""Maximum number of bad lines that an error or warning lists individually; all are counted."""


@dataclass
class _Kind:
    count: int
    place: int
    text: str
    way_out: str


@dataclass
class Problems:
    """Bad lines of one source.  ``add`` them while reading, then ``close``: nothing is dropped silently.

    ``locate`` converts places into (source, line); without it, a place is a line number of ``name``.
    """

    name: str
    on_error: OnError = "raise"
    unit: str = "line"
    may_skip: bool = True
    locate: Callable[[Sequence[int]], list[tuple[str, int]]] | None = None
    kinds: dict[str, _Kind] = field(default_factory=dict)
    listed: list[tuple[int, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.on_error != "raise":
            one_of(self.on_error, get_args(OnError), "on_error")

    def add(self, place: int, kind: str | None, text: str, way_out: str, count: int = 1) -> None:
        """Record ``count`` bad lines of a ``kind`` (default: the ``text`` before the value that it quotes), the first
        of them at ``place``.
        """
        kind = _QUOTE.split(text, maxsplit=1)[0] if kind is None else kind
        self.list_line(place, text, way_out)
        known = self.kinds.get(kind)
        if known is None:
            self.kinds[kind] = _Kind(count, place, text, way_out)
            return
        known.count += count
        if place < known.place:
            known.place, known.text = place, text

    def list_line(self, place: int, text: str, way_out: str) -> None:
        """List a bad line, if fewer than ``MOST_LISTED`` are listed, without counting it."""
        if len(self.listed) < MOST_LISTED:
            self.listed.append((place, text, way_out))

    def _lines(self) -> tuple[tuple[str, int, str, str], ...]:
        """(source, line, text, remedy) of the listed lines, in the order of the source."""
        ordered = sorted(self.listed)
        places = [place for place, _, _ in ordered]
        found = self.locate(places) if self.locate else [(self.name, place) for place in places]
        return tuple((name, line, text, way_out) for (name, line), (_, text, way_out) in zip(found, ordered))

    @property
    def total(self) -> int:
        return sum(kind.count for kind in self.kinds.values())

    def close(self) -> None:
        """Raise the first problem as a ``DataError``, or issue a ``DataWarning`` about everything that was skipped."""
        if not self.kinds:
            return
        ordered = sorted(self.kinds.values(), key=lambda kind: kind.place)
        places = [kind.place for kind in ordered]
        found = self.locate(places) if self.locate else [(self.name, place) for place in places]
        if self.on_error == "raise":
            first, (name, line) = ordered[0], found[0]
            message = f"{name}:{line}: {first.text} ({plural(first.count, f'such {self.unit}')})"
            if len(ordered) > 1:
                message += f" and {self.total - first.count} bad {self.unit}s of other kinds"
            skip = f', or read with on_error="skip" to leave such {self.unit}s out' if self.may_skip else ""
            error = DataError(f"{message}; {first.way_out}{skip}")
            error.lines = self._lines()
            raise error
        where = [f"{self.unit} {line}" if name == self.name else f"{name}:{line}" for name, line in found]
        parts = [f"{kind.count} such as {at} ({kind.text})" for kind, at in zip(ordered, where)]
        warning = DataWarning(f"{self.name}: left out {plural(self.total, self.unit)}: {', '.join(parts)}")
        warning.lines = self._lines()
        warnings.warn(warning, stacklevel=3)


def parse_tiers(text: str) -> list[tuple[str, ...]] | str:
    """Tiers of names, or what is wrong."""
    tiers: list[list[str]] = [[]]
    at = 0
    while True:
        match = _ENTRY.match(text, at)
        name = None if match is None else (match.group(2) or "").strip() or (match.group(1) or "").replace('""', '"')
        if match is None or not name:
            return f"{quote(text.strip())} has an empty place or an open quote"
        tiers[-1].append(name)
        if match.group(3) == ">":
            tiers.append([])
        elif match.group(3) != "=":
            return [tuple(tier) for tier in tiers]
        at = match.end()


def quoted_name(name: str) -> str:
    """A name as it is written in text, in quotes if it contains a special character of the format."""
    if not name.strip() or "\n" in name or "\r" in name:
        raise DataError(f"item name {name!r} cannot be written as text: a name is one line, not blank")
    plain = name == name.strip() and not any(c in name for c in '>=#:"')
    return name if plain else '"' + name.replace('"', '""') + '"'
