"""Output of commands: tables and JSON on stdout or in a file, messages and progress on stderr."""

import io
import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placet.cli.common.terminal_tables import Bar

LONG = 2.0
"""Seconds after which progress is shown."""

TABLE_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


class ClosedOutput(io.TextIOBase):
    """Standard output that was closed before the command began (``>&-``): writing to it is an error in words."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError("standard output is closed; name a file with --out, or leave out >&-")


def replace_closed_streams() -> None:
    """Give closed standard streams something to stand on, lest the next file that is opened takes their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  for as long as the command runs


_SILENT = threading.Event()
"""Set by ``--quiet``."""


def be_quiet(value: bool) -> bool:
    """Print no notes from now on if the value is true; else print them."""
    _SILENT.set() if value else _SILENT.clear()
    return value


def say(words: str, *, error: bool = False) -> None:
    """Print a message on stderr, with Python arguments written as command-line options; ``--quiet`` leaves errors."""
    if _SILENT.is_set() and not error:
        return
    from placet.cli.common.option_wording import in_options
    from placet.escaping import visible_lines

    text = visible_lines(in_options(words))
    print(_folded(text) if sys.stderr.isatty() else text, file=sys.stderr)


def _folded(text: str) -> str:
    """Lines broken between words to the width of the terminal."""
    width = shutil.get_terminal_size().columns
    fold = lambda line: textwrap.fill(line, max(width, 20), subsequent_indent="  ", break_on_hyphens=False)  # noqa: E731
    return "\n".join(line if len(line) <= width else fold(line) for line in text.split("\n"))


@contextmanager
def progress_bar(words: str, after: float = LONG) -> Iterator[Callable[..., None] | None]:
    """Yield ``update(done, total, words=None)``, which moves a bar on stderr; None if that is no terminal, or with
    ``--quiet``.

    The bar appears after ``after`` seconds; without updates it shows the elapsed time.
    """
    if not sys.stderr.isatty() or _SILENT.is_set():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(words, total=None)

    def update(done: int, total: int, words: str | None = None) -> None:
        bar.update(task, completed=done, total=total, description=words)

    timer = threading.Timer(after, bar.start)
    timer.daemon = True
    timer.start() if after > 0 else bar.start()
    try:
        yield update
    finally:
        timer.cancel()
        if after > 0:
            timer.join()
        bar.stop()


def show_json(value: Any) -> None:
    """Print JSON on stdout; NaN becomes null."""
    from placet.output.json_values import json_text

    print(json_text(value))


def check_suffix(out: Path | None, suffixes: Sequence[str] = TABLE_SUFFIXES) -> None:
    """Raise a ``ValueError`` unless a result can be written to a file with this suffix."""
    from placet.data.errors import as_choices
    from placet.io.files import bare_suffix

    if out is not None and bare_suffix(out) not in suffixes:
        sheet = "; spreadsheets open .csv" if bare_suffix(out) in (".xlsx", ".xls", ".ods") else ""
        raise ValueError(
            f"--out {out}: suffix {bare_suffix(out)!r} is unknown; choose from {as_choices(suffixes)}{sheet}"
        )


def deliver(
    out: Path | None, as_json: bool, head: Sequence[str], rows: Sequence[Sequence[Any]], value: Any = None
) -> None:
    """Write a table to a file in the format of its suffix, or to stdout as JSON or as a table.

    ``value`` is the content of the JSON; by default a list of the rows as objects.
    """
    objects = [dict(zip(head, row)) for row in rows] if value is None else value
    if out is None:
        show_json(objects) if as_json else show_table(head, rows)
        return
    from placet.io.files import bare_suffix, writing
    from placet.io.tables.tables import write_table
    from placet.output.json_values import json_text

    check_suffix(out)
    if bare_suffix(out) == ".json" or (as_json and bare_suffix(out) != ".jsonl"):
        with writing(out) as file:
            file.write(json_text(objects).encode() + b"\n")
    else:
        write_table(out, {name: _one_kind([row[k] for row in rows]) for k, name in enumerate(head)})


def _one_kind(cells: list[Any]) -> list[Any]:
    """The cells unchanged if they are of one type, else as text."""
    kinds = {
        bool if isinstance(c, bool) else float if isinstance(c, int | float) else type(c)
        for c in cells
        if c is not None
    }
    if kinds <= {float}:
        whole = all(isinstance(c, int) for c in cells if c is not None)
        return cells if whole else [None if c is None else float(c) for c in cells]
    return cells if kinds in ({str}, {bool}) else [None if c is None else str(c) for c in cells]


def show_table(head: Sequence[str], rows: Sequence[Sequence[Any]], bars: "Sequence[Bar | None]" = ()) -> None:
    """Print a table: tab-separated to a pipe or file; on a terminal drawn, without empty columns, and with ``bars`` if
    there is room.
    """
    from placet.escaping import tsv_line

    if not sys.stdout.isatty():
        for row in (head, *rows):
            print(tsv_line(["" if value is None else str(value) for value in row]))
        return
    from rich.console import Console

    from placet.cli.common.terminal_tables import drawn_table, marks_of

    console = Console()
    full = [k for k in range(len(head)) if not rows or any(row[k] is not None for row in rows)]
    shown = [[row[k] for k in full] for row in rows]
    table, least = drawn_table([head[k] for k in full], shown, console.width, bars, marks_of(console))
    Console(width=max(console.width, least)).print(table)
