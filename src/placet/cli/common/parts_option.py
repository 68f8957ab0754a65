"""``--parts`` and ``--dask``: process files larger than memory part by part, locally or on a cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import progress_bar, say
from placet.cli.common.options import LARGE

if TYPE_CHECKING:
    from placet.data import Parts

InParts = Annotated[
    bool,
    typer.Option("--parts", help="Work on the files part by part: they need not fit in memory.", rich_help_panel=LARGE),
]
OnDask = Annotated[
    str,
    typer.Option(
        "--dask",
        metavar="ADDRESS|local",
        help="Let a Dask cluster work on the parts: tcp://host:port, or local to start one here.",
        rich_help_panel=LARGE,
    ),
]


@contextmanager
def open_parts(
    sources: Sequence[Sequence[Path]], format: str, options: Sequence[dict[str, Any]], dask: str, words: str
) -> "Iterator[list[Parts]]":
    """Yield each source, read with its own options, as parts; passes are shown on a terminal, and the amount read is
    reported at the end.
    """
    from placet.io import scan

    if dask:
        from placet.data.engines import connect

        cluster: Any = connect(dask)
    else:
        cluster = nullcontext(None)
    with cluster as client, progress_bar(words) as bar:
        found = [
            scan([str(file) for file in files], format or None, engine=client, **own)
            for files, own in zip(sources, options)
        ]
        for one in found:
            for note in one.notes:
                say(note)
        shown = [one.watched(_show(bar)) for one in found]
        yield shown
        passes, read = sum(one.log.passes for one in shown), sum(one.log.bytes_read for one in shown)
        say(f"{sum(map(len, shown))} parts, {passes} passes, {_size(read)} read" + (f" by {dask}" if dask else ""))


def _show(bar: Callable[..., None] | None) -> Callable[[Any], None] | None:
    """A callback that shows every pass on a terminal: its purpose, objective, gradient, bytes read."""
    if bar is None:
        return None
    total = 0

    def show(done: Any) -> None:
        nonlocal total
        total += done.bytes_read
        objective = "" if done.value is None else f" {done.value:.6g}, gradient {done.gradient:.1e}"
        bar(done.number, None, f"pass {done.number}: {done.name}{objective}, {_size(total)} read")

    return show


def _size(n: int) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n = n / 1000  # type: ignore[assignment]
    raise AssertionError
