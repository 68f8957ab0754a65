"""How options come in and results leave: name=value texts; tables and JSON on stdout, words on stderr."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

READ_HELP = "name=value, passed to the reader of --format, such as the name of a column."


def say(words: str) -> None:
    """A sentence for the person at the terminal."""
    print(words, file=sys.stderr)


@contextmanager
def progress_bar(words: str) -> Iterator[Callable[..., None] | None]:
    """``update(done, total, words=None)`` draws a bar on stderr; None where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)

        def update(done: int, total: int, words: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=words)

        yield update


def show_json(value: Any) -> None:
    """JSON on stdout; NaN is null."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False))


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


def plain(value: Any) -> Any:
    """Only what JSON has: NumPy numbers become numbers, NaN becomes null, keys become text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
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
