"""What readers of JSON logs share: the objects in a file with their lines, and fields that must be there."""

import json
from collections.abc import Iterator
from typing import Any, Literal

from placet.data import DataError
from placet.io.files import Source, name_of, read_text
from placet.io.tables.tables import FileHead
from placet.io.text import Problems, quote

Who = Literal["people", "judges"]
"""Whose answers are read of a log that holds those of people and of models."""


def has_keys(head: FileHead, *keys: str) -> bool:
    """Whether the first bytes are JSON with all of these keys."""
    if head.head[:1] not in (b"{", b"[") and head.text.lstrip()[:1] not in ("{", "["):
        return False
    return all(f'"{key}"' in head.text for key in keys)


def objects(source: Source, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """(place, object) of each object: one per line, a list of them, or one alone; the place is a line, or a number."""
    text = read_text(source)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        values = list(_lines(text, problems))
    else:
        values = list(enumerate(whole if isinstance(whole, list) else [whole], start=1))
    for place, value in values:
        if isinstance(value, dict):
            yield place, value
        else:
            problems.add(place, "object", f"{quote(json.dumps(value))} is not an object", "write one object per line")


def _lines(text: str, problems: Problems) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                problems.add(number, "json", f"not JSON ({str(error)[:80]})", "write one object per line")


def field(record: dict[str, Any], path: str) -> Any:
    """The value at a path of keys, such as ``data.rating``; None if it is not there."""
    value: Any = record
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def number_at(record: dict[str, Any], path: str) -> float | None:
    """The number at a path of keys; None for anything else."""
    value = field(record, path)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def refuse_empty(rows: list[Any], source: Source, what: str) -> None:
    """Raise a ``DataError`` if a log holds nothing to read."""
    if not rows:
        raise DataError(f"{name_of(source)}: no {what} in this log; give one that has them")
