"""How options come in and results leave: name=value texts; tables and JSON on stdout, words on stderr."""

import json
import sys
from collections.abc import Sequence
from typing import Any

READ_HELP = "name=value, passed to the reader of --format, such as the name of a column."


def say(words: str) -> None:
    """A sentence for the person at the terminal."""
    print(words, file=sys.stderr)


def show_json(value: Any) -> None:
    """JSON on stdout; NaN is null."""
    print(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def show_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table: drawn on a terminal, tab-separated into a pipe or file."""
    if not sys.stdout.isatty():
        for row in (head, *rows):
            print("\t".join(_text(value, exact=True) for value in row))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for k, name in enumerate(head):
        numeric = bool(rows) and all(isinstance(row[k], int | float) or row[k] is None for row in rows)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_text(value, exact=False) for value in row))
    Console().print(table)


def _text(value: Any, exact: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if exact else f"{value:.4f}"
    return str(value)


def _plain(value: Any) -> Any:
    """Only what JSON has: NumPy numbers become numbers, NaN becomes null, keys become text."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and value != value:
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def parameters(pairs: list[str]) -> dict[str, Any]:
    """``name=value`` texts as values: numbers, true/false/none, or text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"{pair!r} is not of the form name=value")
        values[name.strip().replace("-", "_")] = value_of(text.strip() or text)
    return values


def value_of(text: str) -> Any:
    """A number, true, false, none, or the text itself."""
    plain = {"true": True, "false": False, "none": None}
    if text.lower() in plain:
        return plain[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
