"""Lines that cannot be read: gathered by kind, then raised as one error or reported as one warning."""

import re
import warnings
from dataclasses import dataclass, field
from typing import Literal

from placet.data import DataError
from placet.data.errors import one_of

OnError = Literal["raise", "skip"]
_QUOTE = re.compile("['\"]")


class DataWarning(UserWarning):
    """Something was left out of what was read: the message says what, where and how much."""


@dataclass
class _Kind:
    count: int
    line: int
    text: str
    way_out: str


@dataclass
class Problems:
    """Bad lines of one source.  ``add`` them while reading, ``close`` once: nothing is dropped without a word."""

    name: str
    on_error: OnError = "raise"
    unit: str = "line"
    may_skip: bool = True
    kinds: dict[str, _Kind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of(self.on_error, ("raise", "skip"), "on_error")

    def add(self, line: int, kind: str | None, text: str, way_out: str) -> None:
        """Note a bad line of a ``kind`` (default: the ``text`` up to the value that it quotes)."""
        kind = _QUOTE.split(text, maxsplit=1)[0] if kind is None else kind
        known = self.kinds.get(kind)
        if known is None:
            self.kinds[kind] = _Kind(1, line, text, way_out)
            return
        known.count += 1
        if line < known.line:
            known.line, known.text = line, text

    @property
    def total(self) -> int:
        return sum(kind.count for kind in self.kinds.values())

    def close(self) -> None:
        """Raise the first problem as a ``DataError``, or warn with a ``DataWarning`` of all that was left out."""
        if not self.kinds:
            return
        ordered = sorted(self.kinds.values(), key=lambda kind: kind.line)
        if self.on_error == "raise":
            first = ordered[0]
            message = f"{self.name}:{first.line}: {first.text} ({_times(first.count, self.unit)})"
            if len(ordered) > 1:
                message += f" and {self.total - first.count} bad {self.unit}s of other kinds"
            skip = f', or read with on_error="skip" to leave such {self.unit}s out' if self.may_skip else ""
            raise DataError(f"{message}; {first.way_out}{skip}")
        parts = [f"{k.count} such as {self.unit} {k.line} ({k.text})" for k in ordered]
        warnings.warn(
            DataWarning(f"{self.name}: left out {_plural(self.total, self.unit)}: {', '.join(parts)}"), stacklevel=3
        )


def _plural(n: int, unit: str) -> str:
    return f"{n} {unit}" if n == 1 else f"{n} {unit}s"


def _times(n: int, unit: str) -> str:
    return f"{n} such {unit}" if n == 1 else f"{n} such {unit}s"


def shown(value: object, limit: int = 60) -> str:
    """A value as it appears in a message: quoted, and cut where it is long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= limit else text[:limit] + "...")
